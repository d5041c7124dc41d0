"""From a graph to what a picture of it shows, before anybody has laid that out."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from nbta.display.array_view import elements_text, html_in_graph
from nbta.display.picture import shortened
from nbta.graph.graph import Closed, Graph, SubGraph, all_bodies
from nbta.graph.labels import called, written
from nbta.graph.operation import DATA, FLOW, HANDLE, Operation, Tensor, label_of
from nbta.graph.printer import attributes, is_scalar, line_of
from nbta.graph.views import (
    Loop,
    arguments,
    is_branch,
    is_loop,
    place_of,
    variable_of,
    variables_in,
)
from nbta.inspect.flow_check import Race, UnusedWrite, check_flow
from nbta.ops.arrays import tensor_arrays as arrays
from nbta.ops.arrays.tensor_arrays import CREATE, LOOKUPS
from nbta.ops.core.dimensions import outside
from nbta.ops.core.dispatch import CONSTANT, PARAMETER
from nbta.ops.loops.residuals import EMPTY
from nbta.symbolic import SymbolicTensorArray

# Boxes, arrows and frames.

#: What an arrow means, and what the legend says of it.
EDGES = {
    "data": "data",
    "flow": "flow: order only",
    "handle": "handle: which array",
    "tape": "tape: what a loop saves for its gradient",
    "control": "control: order only",
    "next": "next iteration",
    "race": "race: nothing orders these",
    "again": "to a line above",
}


_LARGE = 120


@dataclass(frozen=True)
class Cell:
    """A part of a bar: a variable of a loop, a captured tensor, a result."""

    kind: str  # "variable", "captured", "result"
    lines: tuple[str, ...]
    source: str | None = None


@dataclass(eq=False)
class Node:
    """A box: an operation, or a bar of cells on the frame of a loop or branch."""

    key: str
    kind: str  # "op", "array", "input", "constant", "folded", "bar"
    lines: list[str] = field(default_factory=list)  # the first is the name
    tooltip: str = ""
    source: str | None = None
    warning: str = ""
    cells: list[Cell] = field(default_factory=list)


@dataclass(eq=False)
class Frame:
    """A box around others: an operation with bodies, or one of these."""

    key: str
    kind: str  # "graph", "operation", "body"
    title: str
    source: str | None = None
    items: list = field(default_factory=list)

    def nodes(self) -> Iterator[Node]:
        """All nodes inside, however deep."""
        for item in self.items:
            if isinstance(item, Frame):
                yield from item.nodes()
            else:
                yield item

    def frames(self) -> Iterator["Frame"]:
        """All frames inside, however deep."""
        for item in self.items:
            if isinstance(item, Frame):
                yield item
                yield from item.frames()


@dataclass(frozen=True)
class End:
    """Where an arrow starts or ends: a node, and the number of a cell where it has cells."""

    node: Node
    cell: int | None = None


@dataclass(frozen=True)
class Edge:
    """An arrow."""

    tail: End
    head: End
    kind: str
    source: str | None = None


@dataclass(eq=False)
class Diagram:
    """All of a picture."""

    root: Frame
    edges: list[Edge] = field(default_factory=list)

    @property
    def count(self) -> int:
        """How many nodes it has."""
        return sum(1 for _ in self.root.nodes())

    @property
    def large(self) -> bool:
        """Whether it has so many nodes that quick ways and fewer arrows are called for."""
        return self.count > _LARGE

    def thin_out(self) -> None:
        """Leave out handles of operations that a flow of the same array leads to."""
        led = {edge.head.node for edge in self.edges if edge.kind == "flow"}
        self.edges = [e for e in self.edges if e.kind != "handle" or e.head.node not in led]

    @property
    def sources(self) -> list[str]:
        """Gradient computations that anything belongs to, in the order of their first part."""
        owners = [*self.root.nodes(), *self.root.frames()]
        cells = [cell for node in self.root.nodes() for cell in node.cells]
        return list(dict.fromkeys(o.source for o in [*owners, *cells] if o.source is not None))

    @property
    def kinds(self) -> list[str]:
        """Kinds of arrows in it."""
        there = {edge.kind for edge in self.edges}
        return [kind for kind in EDGES if kind in there]

    @property
    def warned(self) -> bool:
        """Whether a node has a warning."""
        return any(node.warning for node in self.root.nodes())


# Which gradient computation an operation belongs to.


def source_of(op: Operation) -> str | None:
    """The source of the call of `gradients` that made an operation, or whose array it works on.

    An operation belongs to the innermost scope that `gradients` opened. Outside of these it belongs
    to the source of the gradient array that it looks up or uses. What a loop saves on a tape
    belongs to whom the tape belongs to.
    """
    return _scope_of(op.graph, op.name) or _of_array(op)


def scope_source(graph: Graph, scope: str) -> str | None:
    """The source that a scope, such as that of a body, belongs to."""
    return _scope_of(graph, scope)


def _scope_of(graph, name):
    scopes = graph.root.gradient_scopes
    parts = name.split("/")
    for count in range(len(parts) - 1, 0, -1):
        scope = "/".join(parts[:count])
        if f"{scope}/" in scopes:
            return scope
    return None


def _of_array(op):
    if op.record in LOOKUPS:
        return op.attrs["source"]
    if not op.inputs or not (op.inputs[0].kind == HANDLE or op.inputs[0].spec.is_tape):
        return None
    maker = _made(op.inputs[0]).op
    if maker.record in LOOKUPS:
        return source_of(maker)
    return _scope_of(maker.graph, maker.name) if maker.record in (CREATE, EMPTY) else None


def _made(tensor):
    """What a handle comes from; of a tape that a loop carries what the loop begins with."""
    tensor = outside(tensor)
    while tensor.spec.is_tape and variable_of(tensor) is not None:
        tensor = outside(variable_of(tensor).first)
    return tensor


# What stands in the box of an operation.

_SLOTS = {arrays.WRITE, arrays.READ}
_LISTS = {arrays.SCATTER, arrays.GATHER}
#: Attributes that differ from these are worth a line in the box of an array.
_DEFAULTS = {"dynamic_size": (True, "grows"), "clear_after_read": (False, "keeps what is read")}
_LINES = 4  # attributes of one operation that are shown


def kind_of(tensor: Tensor) -> str:
    """Dtype and shape of a tensor, or what else it is."""
    return str(tensor.spec) if tensor.kind == DATA else tensor.kind


def short_name(graph: Graph, name: str) -> str:
    """A name as it is called within its body."""
    scope = graph.scope if isinstance(graph, SubGraph) else ""
    return name.removeprefix(scope)


def inlined(tensor: Tensor) -> str | None:
    """The value of a small constant, which stands where it is used; None for other tensors.

    Small are scalars, and short vectors of integers, which mostly are shapes.
    """
    op = outside(tensor).op
    if is_scalar(op):
        return "none" if tensor.kind != DATA else shortened(_scalar(op.attrs["value"]), 14)
    value = op.attrs["value"] if op.record is CONSTANT else None
    short = value is not None and value.ndim == 1 and value.size <= 3 and value.dtype.kind in "iu"
    return str(value.tolist()) if short else None


def _scalar(value):
    value = np.asarray(value)
    return str(value) if value.dtype.kind in "biufcmM" else repr(value[()])


def tensor_name(tensor: Tensor) -> str:
    """The last part of the name of what gives a tensor, with a number after loops and branches.

    A variable of a loop is called after its first value, if that has a name.
    """
    label = called(tensor)
    if label is not None:
        return shortened(label, 26)
    tensor = outside(tensor)
    op, graph = tensor.op, tensor.graph
    if op.record is PARAMETER and isinstance(graph, SubGraph) and graph.owner is not None:
        first = arguments(graph.owner, graph)[place_of(tensor)]
        if inlined(first) is None:
            return tensor_name(first)
    name = tensor.name if all_bodies(op) else op.name
    return shortened(name.rpartition("/")[2], 26)


def type_beside(op: Operation) -> str:
    """The type of an operation where its name does not show it."""
    plain = re.sub(r"_\d+$", "", op.name.rpartition("/")[2])
    return "" if plain.lower() == op.type.lower() else op.type


def node_of(graph: Graph, op: Operation, key: str) -> Node:
    """The box of an operation."""
    label = label_of(op.outputs[0]) if len(op.outputs) == 1 else None
    lines = [shortened(short_name(graph, op.name)), *filter(None, [type_beside(op)])]
    if label is not None:
        lines = [shortened(label), op.type] if not op.record.fed else [shortened(label)]
    lines += [shortened(line, 44) for line in details_of(op)]
    lines += [kind_of(t) for t in op.outputs if t.kind == DATA]
    return Node(key, _kind(op), lines, line_of(graph, op), source_of(op))


def _kind(op):
    if op.record is arrays.CREATE or op.record in arrays.LOOKUPS:
        return "array"
    if all_bodies(op):
        return "folded"
    if op.record.fed:
        return "input"
    return "constant" if op.record is CONSTANT else "op"


def details_of(op: Operation) -> list[str]:
    """What an operation is given when the graph is built, a line each."""
    if all_bodies(op):
        return [f"{len(body.operations)} operations inside" for body in all_bodies(op)]
    if op.record.fed:
        return []
    if op.record is CONSTANT:
        value = op.attrs["value"]
        return [] if value.size > 6 else [str(value.tolist())]
    if op.record is arrays.CREATE:
        return _of_new_array(op)
    if op.record in arrays.LOOKUPS:
        return [f"source {op.attrs['source']!r}"]
    if op.record in _SLOTS | _LISTS:
        return _slots_named(op)
    shown = [kind for kind in map(inlined, op.inputs) if kind is not None]
    given = [f"({', '.join(inlined(t) or '·' for t in op.inputs)})"] if shown else []
    return [*given, *attributes(op)[:_LINES]]


def _of_new_array(op):
    attrs, size = op.attrs, inlined(op.inputs[0])
    known = attrs["element_shape"]
    lines = [
        f"{attrs['tensor_array_name']!r}",
        f"{attrs['dtype'].name} {elements_text(known)}",
        *([] if size is None else [f"size {size}"]),
    ]
    return lines + [text for key, (value, text) in _DEFAULTS.items() if attrs[key] is value]


def _slots_named(op):
    """The slots that an operation names, where these are constants."""
    index = outside(op.inputs[1]).op
    if index.record is not CONSTANT or np.size(index.attrs["value"]) > 6:
        return []
    found = index.attrs["value"].tolist()
    slot = f"slot {found}" if op.record in _SLOTS else f"slots {found}"
    value = inlined(op.inputs[2]) if op.record is arrays.WRITE else None
    return [slot if value is None else f"{slot} gets {value}"]


# What stands on the frame of a loop or a branch: what goes in, and what comes out.


def named_bodies(op: Operation) -> list[tuple[str, SubGraph]]:
    """The bodies of an operation, each with what it is for."""
    found = []
    for key, value in op.attrs.items():
        if isinstance(value, Closed):
            found.append(("each row", value.graph))
        elif isinstance(value, SubGraph):
            found.append(({"cond": "go on?", "body": "each iteration"}.get(key, key), value))
        elif isinstance(value, tuple) and value and isinstance(value[0], SubGraph):
            found += [(_branch(op, i), branch) for i, branch in enumerate(value)]
    return found


def _branch(op, number):
    if op.inputs[0].dtype.kind == "b":
        return f"if {not number}"
    return f"branch {number}"


def entry_places(op: Operation) -> list[int]:
    """Which inputs the bar of what goes in shows: all that a body uses, and loops' variables.

    A captured scalar constant is no part of it; its value stands where it is used.
    """
    shown = set(range(_variables(op)))
    for body in all_bodies(op):
        shift = len(op.inputs) - len(body.inputs)
        used = {tensor for inner in body.operations for tensor in inner.inputs} | set(body.outputs)
        for place, parameter in enumerate(body.inputs, shift):
            if parameter in used and inlined(op.inputs[place]) is None:
                shown.add(place)
    return sorted(shown)


def _variables(op):
    """How many inputs are no captured tensors: variables, the number of a branch, rows."""
    return len(variables_in(op)) or op.attrs.get("rows", 1)


def entry_cell(op: Operation, place: int) -> Cell:
    """The cell of an input."""
    tensor = op.inputs[place]
    late = place >= _variables(op)
    lines = (_entry_name(op, place, tensor), kind_of(tensor))
    return Cell("captured" if late else "variable", lines, _first_source(tensor))


def _entry_name(op, place, tensor):
    if is_loop(op) and place == 0:
        return "iteration"
    value = inlined(tensor)
    name = f"from {value}" if value is not None and tensor.kind == DATA else tensor_name(tensor)
    label = called(Loop(op).parameters[place]) if is_loop(op) and place < _variables(op) else None
    if label is not None:
        name = shortened(label, 26) + f" {name}" * name.startswith("from ")
    if is_branch(op) and place == 0:
        return f"which: {name}"
    return f"rows of {name}" if place < op.attrs.get("rows", 0) else name


def result_cells(op: Operation) -> list[Cell]:
    """The bar of what comes out; a loop's first cell is whether there is another iteration."""
    question = [Cell("result", ("go on?",))] if is_loop(op) else []
    return question + [
        Cell("result", (_result_name(op, tensor), kind_of(tensor)), _first_source(tensor))
        for tensor in op.outputs
    ]


def _result_name(op, tensor):
    if not is_loop(op):
        return f":{tensor.index}"
    if tensor.index == 0:
        return "iteration"
    label = called(Loop(op).parameters[tensor.index])
    if label is not None:
        return shortened(label, 26)
    first = op.inputs[tensor.index]
    return f":{tensor.index}" if inlined(first) is not None else tensor_name(first)


def result_name(place: int, tensor: Tensor) -> str:
    """What a result of the whole is called."""
    name = called(tensor)
    return f"result {place}" if name is None else f"result {place}: {shortened(name, 20)}"


def _first_source(tensor):
    """The source of what gives a tensor; for a variable of a loop, of what gives its first value.

    So what a gradient added to a forward loop has the gradient's colour.
    """
    op = outside(tensor).op
    if is_loop(op):
        return _first_source(op.inputs[outside(tensor).index]) or source_of(op)
    return source_of(op)


def parameter_cells(graph: SubGraph) -> tuple[list[Tensor], list[Cell]]:
    """Parameters of a body that is shown by itself, as far as it uses them, and their cells."""
    used = {tensor for op in graph.operations for tensor in op.inputs} | set(graph.outputs)
    shown = [p for p in graph.inputs if p in used and inlined(p) is None]
    cells = [
        Cell(
            "captured" if p in graph.sources else "variable",
            (tensor_name(p), kind_of(p)),
        )
        for p in shown
    ]
    return shown, cells


# A graph as a whole.

UNUSED = "nobody uses its flow: it may never run"


def diagram_of(graph: Graph | Operation, results=(), depth: int | None = None) -> Diagram:
    """What a picture shows of a graph.

    Parameters
    ----------
    graph : Graph
        Or a sub-graph, or an operation that has some.
    results : list of Tensor
        What whoever made the graph returns.
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
            shown, cells = parameter_cells(graph)
            bar = self._bar(root, cells, "what goes in")
            self._ends |= {parameter: End(bar, i) for i, parameter in enumerate(shown)}
        else:
            for parameter in getattr(graph, "inputs", ()):
                self._node(root, graph, parameter.op)

    def results(self, tensors):
        """A bar for what the whole gives."""
        cells = [Cell("result", (result_name(i, t), kind_of(t))) for i, t in enumerate(tensors)]
        bar = self._bar(self.diagram.root, cells, "results")
        for place, tensor in enumerate(tensors):
            self._connect(tensor, End(bar, place))

    def operations(self, graph, frame, level):
        """All operations of a graph or a body, and the arrows between them."""
        used = {tensor for op in graph.operations for tensor in op.inputs}
        for op in graph.operations:
            if op.record is PARAMETER or _stands_elsewhere(op, used):
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
        title = (is_loop(op) and written(op)) or title
        outer = Frame(self._key("f"), "operation", title, source_of(op))
        frame.items.append(outer)
        places = entry_places(op)
        cells = [entry_cell(op, place) for place in places]
        entry = self._bar(outer, cells, f"what goes into {op.name}")
        ends = {place: End(entry, number) for number, place in enumerate(places)}
        for place, end in ends.items():
            self._connect(op.inputs[place], end)
        for name, body in named_bodies(op):
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
        """What the bodies give, and the way back to the next iteration."""
        bar = self._boxes[op] = self._bar(outer, result_cells(op), f"what {op.name} gives")
        before = 1 if is_loop(op) else 0
        for _, body in named_bodies(op):
            asks = is_loop(op) and body is Loop(op).cond
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
            self._edge(tail, head, "tape" if tensor.spec.is_tape else tensor.kind)

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
    return op.record is CONSTANT and inlined(op.outputs[0]) is not None and op.outputs[0] in used


# Arrays of graphs as HTML: what is known of them, and what their flow comes after.

_STEPS = 12


def symbolic_html(array) -> str:
    """A symbolic array as HTML."""
    facts = [str(array.dtype), elements_text(array.element_shape)]
    facts += ["grows"] * array.dynamic_size + ["writes add"] * array.is_gradient
    facts.append("in a graph: it has slots when that runs; its flow comes after")
    steps = _after(array.flow)
    shown = [(op.name, " ".join(details_of(op)[:2]) or op.type) for op in steps[-_STEPS:]]
    if len(steps) > _STEPS:
        shown.insert(0, ("…", f"{len(steps) - _STEPS} more"))
    return html_in_graph(array.handle.op.name, facts, shown)


SymbolicTensorArray._repr_html_ = symbolic_html


def _after(flow):
    """The operations that a flow comes after, the first one first, as far as there is one way."""
    steps, flow = [], outside(flow)
    while flow is not None:
        steps.append(flow.op)
        flows = [outside(tensor) for tensor in flow.op.inputs if tensor.kind == FLOW]
        flow = flows[0] if len(flows) == 1 else None
    return steps[::-1]
