"""Which tensors change with given ones, through arrays, loops and branches at all depths.

A value that is written to an array makes the array *active*, which all its handles are then, and
so is what is read from it: forward mode has an array of tangents beside it. An array is told by its
handles: those that captures, variables of loops and results of branches forward are one, and so are
those on one tape, and gradient arrays of one array for one source.
"""

from __future__ import annotations

from collections import defaultdict

from nbta.graph.dependence import connections
from nbta.graph.graph import subgraphs
from nbta.graph.operation import FLOW, HANDLE, TAPES, Operation, Tensor
from nbta.graph.order import ordered
from nbta.graph.views import Branch, Loop, arguments, is_branch, is_loop
from nbta.ops.arrays.tensor_arrays import CREATE, LOOKUPS, READS, WRITES
from nbta.ops.loops.residuals import RESTORE, SAVE


def active_tensors(operations: list[Operation], xs: list[Tensor], ys: list[Tensor]) -> set[Tensor]:
    """The tensors that depend on ``xs`` and that ``ys`` depend on; handles of arrays of such.

    Flows, which only order, and tapes of them, are among them where something of an active array
    comes before.

    Parameters
    ----------
    operations : list of Operation
        Of one graph; those of bodies are found.
    xs, ys : list of Tensor
    """
    found = _Edges(_all(operations))
    needed = _reached(found.before, ys)
    passable = lambda node: node in needed or node.kind in _FLOWS  # noqa: E731
    active = _reached(found.onwards, [x for x in map(found.node, xs) if passable(x)], passable)
    handles = {tensor for tensor in found.handles if found.node(tensor) in active}
    return {node for node in active if node.kind not in _HANDLES} | handles


_HANDLES, _FLOWS = {HANDLE, TAPES[HANDLE]}, {FLOW, TAPES[FLOW]}


def _all(operations):
    """Operations that may run, those of bodies too."""
    for op in operations:
        yield op
        for body in subgraphs(op):
            yield from _all(ordered({tensor.op for tensor in body.outputs}))


def _reached(edges, start, passable=lambda node: True):
    found, todo = set(), list(start)
    while todo:
        node = todo.pop()
        if node not in found:
            found.add(node)
            todo += filter(passable, edges.get(node, ()))
    return found


class _Edges:
    """From each tensor to those that it makes active; handles of one array are one node."""

    def __init__(self, operations):
        self.onwards, self.before, self._same = defaultdict(list), defaultdict(list), {}
        self.handles = set()
        operations = list(operations)
        pairs = [pair for op in operations for pair in _forwarded(op)]
        tapes = [pair for op in operations for pair in _of_one_tape(op)]
        for op in operations:
            self.handles |= {t for t in [*op.inputs, *op.outputs] if t.kind in _HANDLES}
        self.handles |= {t for pair in pairs for t in pair if t.kind in _HANDLES}
        for one, other in [*pairs, *tapes]:
            if one.kind in _HANDLES:
                self._join(one, other)
        while self._join_more(operations):
            pass
        for one, other in [*pairs, *(pair for op in operations for pair in _own(op))]:
            one, other = self.node(one), self.node(other)
            self.onwards[one].append(other)
            self.before[other].append(one)

    def node(self, tensor):
        """The tensor that stands for all handles of an array; of other tensors the tensor."""
        if tensor.kind not in _HANDLES:
            return tensor
        path = []
        while (following := self._same.get(tensor, tensor)) is not tensor:
            path.append(tensor)
            tensor = following
        self._same.update(dict.fromkeys(path, tensor))
        return tensor

    def _join(self, one, other):
        one, other = self.node(one), self.node(other)
        if one is other:
            return False
        self._same[other] = one
        return True

    def _join_more(self, operations):
        """Join handles of gradient arrays of one array for one source."""
        found, changed = {}, False
        for op in operations:
            if op.record in LOOKUPS:
                key, handle = (self.node(op.inputs[0]), op.attrs["source"]), op.outputs[0]
                changed |= self._join(found.setdefault(key, handle), handle)
        return changed


def _value(op):
    return op.inputs[op.record.value_input]


def _of_one_tape(op):
    """A tape with what is saved on it, and what it gives back."""
    if op.record is SAVE:
        yield from ((op.outputs[0], tensor) for tensor in (op.inputs[0], op.inputs[2]))
    elif op.record is RESTORE:
        yield op.inputs[0], op.outputs[0]


def _forwarded(op):
    """Tensors that are the values of others, in bodies and around them."""
    for body in subgraphs(op):
        yield from zip(arguments(op, body), body.inputs, strict=True)
    if is_loop(op):
        for variable in Loop(op).variables():
            yield variable.following, variable.parameter
            yield variable.following, variable.last
            yield variable.first, variable.last
    elif is_branch(op):
        for place, result in enumerate(op.outputs):
            for end in Branch(op).ends(place):
                yield end, result


def _passes(tensor):
    """Whether forward mode has something beside a tensor: flows too, by which gradients pass."""
    return tensor.kind in (HANDLE, FLOW) or tensor.spec.differentiable


def _own(op):
    """What an operation makes active by itself."""
    record, inputs, outputs = op.record, op.inputs, op.outputs
    if is_loop(op) or is_branch(op):
        return
    if record is CREATE:
        yield outputs[0], outputs[1]
        return
    if record in WRITES:
        if _passes(_value(op)):
            yield _value(op), inputs[0]
        yield inputs[0], outputs[0]
    elif record in READS and _passes(outputs[0]):
        yield inputs[0], outputs[0]
    elif record in LOOKUPS:
        yield outputs[0], outputs[1]
    flows = [tensor for tensor in inputs if tensor.kind == FLOW]
    yield from ((flow, out) for flow in flows for out in outputs if out.kind == FLOW)
    if record not in READS and record not in WRITES and record not in LOOKUPS:
        for output, ways in zip(outputs, connections(op), strict=True):
            yield from ((tensor, output) for tensor in ways)
