"""Pictures of large graphs: a box for each of the user's lines, or for each loop."""

from __future__ import annotations

import linecache
import os
from collections import Counter
from typing import TYPE_CHECKING

from nbta.display.picture import shortened
from nbta.graph.graph import SubGraph, everything, is_of_gradient, within
from nbta.graph.labels import called
from nbta.graph.operation import DATA, HANDLE
from nbta.graph.views import Branch, Loop, is_branch, is_loop, place_of
from nbta.inspect.diagram import (
    Cell,
    Diagram,
    Edge,
    End,
    Frame,
    Node,
    kind_of,
    result_name,
    source_of,
)
from nbta.ops.core.dispatch import CONSTANT, PARAMETER

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from nbta.graph.graph import Graph
    from nbta.graph.operation import Operation, Tensor

#: Boxes that a folded picture has at most, but for arguments: lines that follow one another share
#: one where there are more. Arguments and results that have a box of their own at most.
MOST, MOST_ENDS = 60, 8
#: Letters of a line of the user's that a box shows.
LONGEST = 52
NO_LINE = "(from no line)"


def folded_diagram(graph: Graph, results=(), by: str = "line") -> Diagram:
    """What a picture shows of a graph that has a box for each line, or for each loop.

    Parameters
    ----------
    graph : Graph
    results : list of Tensor
        What whoever made the graph returns.
    by : {"line", "loop"}
    """
    return _Folding(graph, list(results) or list(getattr(graph, "outputs", ())), by).diagram


class _Line:
    """Operations that share a box.

    Attributes
    ----------
    place : (str, int) or None
        File and line.
    backward : bool
        Whether they are of the gradient of that line.
    """

    def __init__(self, place, backward):
        self.place, self.backward, self.ops = place, backward, []
        self.last = place

    def take(self, other):
        """Have what another one has, too."""
        self.ops += other.ops
        self.last = other.last or self.last
        self.place = self.place or other.place

    @property
    def texts(self) -> list[str]:
        """What its box says."""
        if self.place is None:
            return [NO_LINE, _count(self.ops)]
        file, number = self.place
        text = shortened(linecache.getline(file, number).strip(), LONGEST)
        place, beside = f"{os.path.basename(file)}:{number}", ""
        if self.last != self.place:
            place += f" to {os.path.basename(self.last[0])}:{self.last[1]}"
            beside = " ..."
        head = "gradient of " * self.backward
        return [f"{text or place}{beside}", f"{head}{place}, {_count(self.ops)}"]


def _count(ops):
    return f"{len(ops)} operation{'s' * (len(ops) != 1)}"


class _Folding:
    """Goes through a graph: operations to lines, lines to boxes, tensors to arrows."""

    def __init__(self, graph, results, by):
        self.diagram = Diagram(Frame("root", "graph", ""))
        self._by, self._keys, self._makers = by, 0, {}
        self._frames: dict[Any, Frame] = {None: self.diagram.root}  # by loop
        self._lines: dict[Any, dict] = {}  # by loop, those in it
        self._nodes: dict[Operation, Node] = {}
        self._inputs = _inputs_of(graph)
        ops = [op for op in everything(graph) if _is_shown(op)]
        self._sort(ops)
        self._merge()
        self._boxes_of_inputs()
        self._boxes(graph.operations, None)
        order = {node: k for k, node in enumerate(self.diagram.root.nodes())}
        edges = dict(self._arrows(ops))
        for (tail, head), kind in edges.items():
            if order[tail] > order[head]:
                kind = "again"
            self.diagram.edges.append(Edge(End(tail), End(head), kind))
        self._results(results)

    def _key(self, letter):
        self._keys += 1
        return f"{letter}{self._keys}"

    # Operations to lines.

    def _sort(self, ops):
        """Find the line of each operation.

        What has none goes to that of what uses it first, or of what it is computed from.
        """
        users: dict[Tensor, Operation] = {}
        for op in ops:
            for tensor in op.inputs:
                users.setdefault(tensor, op)
        places: dict[Operation, Any] = {}
        for op in reversed(ops):
            used = (users.get(tensor) for tensor in op.outputs)
            places[op] = _own_place(op) or _next_place(op, used, places)
        for op in ops:
            if places[op] is None:
                made = (tensor.op for tensor in op.inputs)
                places[op] = _next_place(op, made, places) or _place(op)
        for op in ops:
            loop, place = _loop_around(op), places[op]
            if self._by == "loop":
                place = None, is_of_gradient(op)
            line = self._lines.setdefault(loop, {}).setdefault(
                place, _Line(*(place or (None, is_of_gradient(op))))
            )
            line.ops.append(op)

    def _merge(self):
        """Let lines that follow one another share a box where there are too many."""
        while sum(map(len, self._lines.values())) > MOST:
            done = False
            for lines in self._lines.values():
                found = list(lines.values())
                if len(found) < 2:
                    continue
                done, kept = True, []
                for line in found:
                    if kept and kept[-1].backward == line.backward and kept[-1].half:
                        kept[-1].take(line)
                        kept[-1].half = False
                    else:
                        line.half = True
                        kept.append(line)
                done = len(kept) < len(found)
                lines.clear()
                lines.update((k, line) for k, line in enumerate(kept))
            if not done:
                return

    # Boxes.

    def _boxes_of_inputs(self):
        """A box an argument, or for all parts of one where there are many."""
        labels = [called(op.outputs[0]) or op.name for op in self._inputs]
        roots = [label.partition("[")[0].partition(".")[0] for label in labels]
        names = labels if len(labels) <= MOST_ENDS else roots
        names = names if len(set(names)) <= MOST_ENDS else ["arguments"] * len(names)
        counts, boxes = Counter(names), {}
        for op, name in zip(self._inputs, names, strict=True):
            if name not in boxes:
                count = counts[name]
                kind = kind_of(op.outputs[0]) if count == 1 else f"{count} arrays"
                boxes[name] = Node(self._key("n"), "input", [shortened(name, 30), kind], name)
                self.diagram.root.items.append(boxes[name])
            self._nodes[op] = boxes[name]

    def _boxes(self, operations, loop):
        """Boxes of what is in a loop, in order; frames for loops in it."""
        frame, lines = self._frames[loop], self._lines.get(loop, {})
        for item in self._in_order(operations, lines):
            if isinstance(item, _Line):
                self._box(frame, item, loop)
                continue
            title = _title(item)
            inner = Frame(self._key("f"), "operation", title, source_of(item))
            self._frames[item] = inner
            frame.items.append(inner)
            body = [*Loop(item).cond.operations, *Loop(item).body.operations]
            self._boxes(body, item)
            if not any(inner.nodes()):
                frame.items.remove(inner)

    def _in_order(self, operations, lines) -> Iterator[Any]:
        """Lines and loops, by their first operations."""
        first = {line.ops[0]: line for line in lines.values()}
        for op in _through_branches(operations):
            if op in first:
                yield first[op]
            if is_loop(op):
                yield op

    def _box(self, frame, line, loop):
        texts = line.texts
        if self._by == "loop":
            texts = ["outside of loops" if loop is None else "each iteration", _count(line.ops)]
            if loop is None and line.backward:
                texts[0] = "gradient, outside of loops"
            places = dict.fromkeys(filter(None, map(_place, line.ops)))
            texts.append(f"{len(places)} line{'s' * (len(places) != 1)}")
        types = Counter(op.type for op in line.ops)
        tooltip = ", ".join(f"{count} {kind}" for kind, count in types.most_common())
        node = Node(self._key("n"), "op", texts, tooltip, source_of(line.ops[0]))
        names = dict.fromkeys(name for op in line.ops for name in _names(op))
        if names:
            given = ", ".join(list(names)[:4]) + ", ..." * (len(names) > 4)
            node.lines.append(shortened(f"gives {given}", LONGEST))
        frame.items.append(node)
        for op in line.ops:
            self._nodes[op] = node

    def _results(self, results):
        """A bar for what the whole gives."""
        cells = [
            Cell("result", (result_name(k, t), kind_of(t)))
            for k, t in enumerate(results[:MOST_ENDS])
        ]
        more = len(results) - MOST_ENDS
        if more > 0:
            cells.append(Cell("result", (f"and {more} more",)))
        if not cells:
            return
        bar = Node(self._key("b"), "bar", [], "results", cells=cells)
        self.diagram.root.items.append(bar)
        for place, tensor in enumerate(results):
            for node in self._makers_of(tensor):
                edge = Edge(End(node), End(bar, min(place, MOST_ENDS)), _kind(tensor))
                if edge not in self.diagram.edges:
                    self.diagram.edges.append(edge)

    # Arrows.

    def _arrows(self, ops) -> Iterator[tuple[tuple[Node, Node], str]]:
        """Pairs of boxes with the kind of their arrow, where data goes before order."""
        found: dict[tuple[Node, Node], str] = {}
        for op in ops:
            head = self._nodes.get(op)
            if head is None:
                continue
            for tensor in op.inputs:
                if tensor.kind == HANDLE:
                    continue
                for tail in self._makers_of(tensor):
                    if tail is not head and found.get((tail, head)) != "data":
                        found[tail, head] = _kind(tensor)
        yield from found.items()

    def _makers_of(self, tensor) -> tuple[Node, ...]:
        """The boxes that a tensor comes from."""
        todo, seen, found = [tensor], set(), {}
        while todo:
            one = todo.pop()
            if one in seen:
                continue
            seen.add(one)
            if one in self._makers:
                found.update(dict.fromkeys(self._makers[one]))
            elif one.op in self._nodes:
                found[self._nodes[one.op]] = None
            else:
                todo += _made_of(one)
        self._makers[tensor] = tuple(found)
        return self._makers[tensor]


def _made_of(tensor):
    """Tensors of which one without a box of its own is one."""
    op, graph = tensor.op, tensor.graph
    if is_loop(op):
        following = Loop(op).body.outputs[tensor.index]
        return [following, op.inputs[tensor.index]]
    if is_branch(op):
        return [branch.outputs[tensor.index] for branch in Branch(op).branches]
    if op.record is PARAMETER and isinstance(graph, SubGraph) and graph.owner is not None:
        if tensor in graph.sources:
            return [graph.sources[tensor]]
        return [graph.owner.inputs[place_of(tensor)]] if is_loop(graph.owner) else []
    return op.inputs if op.type == "Identity" else []


def _inputs_of(graph):
    fed = [op for op in graph.operations if op.record.fed]
    return [*(tensor.op for tensor in getattr(graph, "inputs", ())), *fed]


def _is_shown(op):
    """Whether an operation counts: not what only forwards, or stands where it is used."""
    if op.record in (PARAMETER, CONSTANT) or op.record.fed or op.type == "Identity":
        return False
    return not (is_loop(op) or is_branch(op))


def _place(op):
    """File and line of an operation, and whether it is of the gradient; None where it has none."""
    location = op.location
    return None if location is None else ((location.filename, location.line), is_of_gradient(op))


def _own_place(op):
    """The same; None too where a gradient only forwards what it reads or adds up, at its loop."""
    place, loop = _place(op), _loop_around(op)
    if place is not None and place[1] and loop is not None and is_of_gradient(loop):
        origin = Loop(loop).origin
        if origin is not None and origin.location is not None and place[0] == origin.location[:2]:
            return None
    return place


def _next_place(op, others, places):
    """The line of the first of some operations that has one, in the same loop."""
    loop = _loop_around(op)
    near = (each for each in others if each in places and _loop_around(each) is loop)
    return next(filter(None, map(places.get, near)), None)


def _loop_around(op):
    """The innermost loop that an operation is in; None for none."""
    graph = op.graph
    while isinstance(graph, SubGraph) and graph.owner is not None:
        if is_loop(graph.owner):
            return graph.owner
        graph = graph.outer
    return None


def _through_branches(operations) -> Iterator[Operation]:
    """Operations, and those in branches among them."""
    for op in operations:
        if is_branch(op):
            for branch in Branch(op).branches:
                yield from _through_branches(branch.operations)
        yield op


def _title(loop):
    """A loop as it was written, with its place, and how many operations are in it."""
    origin = Loop(loop).origin
    bodies = [*Loop(loop).cond.operations, *Loop(loop).body.operations]
    count = _count([op for op in within(bodies) if _is_shown(op)])
    if origin is None or origin.location is None:
        return f"{shortened(loop.name, 40)}, {count}"
    text = linecache.getline(origin.location.filename, origin.location.line).strip()
    place = f"{os.path.basename(origin.location.filename)}:{origin.location.line}"
    head = "gradient of " * is_of_gradient(loop)
    return f"{head}{shortened(text, LONGEST)}  {place}, {count}"


def _names(op):
    """What the user calls the results of an operation."""
    return filter(None, (called(t) for t in op.outputs if t.kind == DATA))


def _kind(tensor):
    return "data" if tensor.kind == DATA else "flow"
