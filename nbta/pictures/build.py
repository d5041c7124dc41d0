"""From a graph to what a picture of it shows."""

from nbta.flow_check import Race, UnusedWrite, check_flow
from nbta.graph.graph import Graph, SubGraph, all_bodies
from nbta.graph.operation import Operation, Tensor
from nbta.pictures import bars
from nbta.pictures.diagram import Cell, Diagram, Edge, End, Frame, Node
from nbta.pictures.labels import inlined, kind_of, node_of, short_name, type_beside
from nbta.pictures.sources import scope_source, source_of
from nbta.pictures.text import shortened

UNUSED = "nobody uses its flow: it may never run"


def diagram_of(graph: Graph | Operation, results=(), depth: int | None = None) -> Diagram:
    """What a picture shows of a graph.

    Parameters
    ----------
    graph : Graph
        Or a sub-graph, or an operation that has some.
    results : list of Tensor
        What whoever made the graph gives back.
    depth : int, optional
        How many bodies within bodies are unfolded; all by default.
    """
    builder = _Builder(depth)
    if isinstance(graph, Operation):
        builder.unfolded(graph.graph, builder.diagram.root, graph, 1)
        return builder.diagram
    results = list(results) or list(getattr(graph, "outputs", ()))
    builder.parameters(graph)
    builder.operations(graph, builder.diagram.root, 0)
    builder.results(results)
    builder.findings(graph, set(results))
    if builder.diagram.large:
        builder.diagram.thin_out()
    return builder.diagram


class _Builder:
    """Goes through a graph and its bodies.

    Scalar constants have no boxes: their values stand where they are used.
    """

    def __init__(self, depth):
        self.diagram = Diagram(Frame("root", "graph", ""))
        self._depth, self._count = depth, 0
        self._ends: dict[Tensor, End] = {}  # where arrows from a tensor start
        self._boxes: dict[Operation, Node] = {}  # what stands for an operation

    def _key(self, letter):
        self._count += 1
        return f"{letter}{self._count}"

    # Boxes.

    def parameters(self, graph):
        """What a sub-graph is given: a bar, or boxes where it is a program by itself."""
        root = self.diagram.root
        if isinstance(graph, SubGraph) and graph.owner is not None:
            shown, cells = bars.parameter_cells(graph)
            bar = self._bar(root, cells, "what goes in")
            self._ends |= {parameter: End(bar, i) for i, parameter in enumerate(shown)}
        else:
            for parameter in getattr(graph, "inputs", ()):
                self._node(root, graph, parameter.op)

    def results(self, tensors):
        """A bar for what the whole gives."""
        cells = [Cell("result", (f"result {i}", kind_of(t))) for i, t in enumerate(tensors)]
        bar = self._bar(self.diagram.root, cells, "results")
        for place, tensor in enumerate(tensors):
            self._connect(tensor, End(bar, place))

    def operations(self, graph, frame, level):
        """All operations of a graph or a body, and the arrows between them."""
        used = {tensor for op in graph.operations for tensor in op.inputs}
        for op in graph.operations:
            if op.type == "Parameter" or _stands_elsewhere(op, used):
                continue
            if all_bodies(op) and (self._depth is None or level < self._depth):
                self.unfolded(graph, frame, op, level + 1)
            else:
                self._node(frame, graph, op)
        self._control_edges(graph)

    def _node(self, frame, graph, op):
        node = self._boxes[op] = node_of(graph, op, self._key("n"))
        frame.items.append(node)
        self._ends |= {tensor: End(node) for tensor in op.outputs}
        for tensor in dict.fromkeys(op.inputs):
            self._connect(tensor, End(node))

    def _bar(self, frame, cells, tooltip):
        bar = Node(self._key("b"), "bar", [], tooltip, frame.source, cells=cells)
        if cells:
            frame.items.append(bar)
        return bar

    def unfolded(self, graph, frame, op, level):
        """A frame around the bodies, with a bar for what goes in and one for what comes out."""
        kind = type_beside(op)
        title = shortened(short_name(graph, op.name), 48) + (f" ({kind})" if kind else "")
        outer = Frame(self._key("f"), "operation", title, source_of(op))
        frame.items.append(outer)
        places = bars.entry_places(op)
        cells = [bars.entry_cell(op, place) for place in places]
        entry = self._bar(outer, cells, f"what goes into {op.name}")
        ends = {place: End(entry, number) for number, place in enumerate(places)}
        for place, end in ends.items():
            self._connect(op.inputs[place], end)
        for name, body in bars.named_bodies(op):
            self._body(op, outer, name, body, ends, level)
        self._leave(op, outer, ends)

    def _body(self, op, outer, name, body, ends, level):
        shift = len(op.inputs) - len(body.inputs)
        for place, parameter in enumerate(body.inputs, shift):
            if place in ends:
                self._ends[parameter] = ends[place]
        inner = Frame(self._key("f"), "body", name, scope_source(body, body.scope))
        self.operations(body, inner, level)
        if inner.items:
            outer.items.append(inner)

    def _leave(self, op, outer, ends):
        """What the bodies give, and the way back to the next trip."""
        bar = self._boxes[op] = self._bar(outer, bars.result_cells(op), f"what {op.name} gives")
        before = 1 if bars.is_loop(op) else 0
        for _, body in bars.named_bodies(op):
            asks = bars.is_loop(op) and body is op.attrs["cond"]
            for place, tensor in enumerate(body.outputs):
                self._connect(tensor, End(bar, 0 if asks else place + before))
        for place, tensor in enumerate(op.outputs):
            self._ends[tensor] = End(bar, place + before)
        if before and op.outputs:
            self._edge(End(bar), End(ends[0].node), "next")

    # Arrows.

    def _edge(self, tail, head, kind):
        self.diagram.edges.append(Edge(tail, head, kind))

    def _connect(self, tensor, head):
        tail = self._ends.get(tensor)
        if tail is not None:
            self._edge(tail, head, tensor.kind)

    def _control_edges(self, graph):
        for op in graph.operations:
            for other in dict.fromkeys(op.control_inputs):
                if op in self._boxes and other in self._boxes:
                    self._edge(End(self._boxes[other]), End(self._boxes[op]), "control")

    def findings(self, graph, used):
        """What `check_flow` finds, on the boxes concerned."""
        for finding in check_flow(graph):
            if isinstance(finding, UnusedWrite):
                if finding.op in self._boxes and finding.op.outputs[0] not in used:
                    self._boxes[finding.op].warning = UNUSED
            elif isinstance(finding, Race) and {finding.first, finding.second} <= set(self._boxes):
                ends = [End(self._boxes[op]) for op in (finding.first, finding.second)]
                self._edge(*ends, "race")


def _stands_elsewhere(op, used):
    """Whether a constant is shown where it is used only."""
    return op.type == "Constant" and inlined(op.outputs[0]) is not None and op.outputs[0] in used
