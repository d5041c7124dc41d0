"""check_flow: operations on arrays that nothing orders, and writes that are never run."""

from __future__ import annotations

from typing import NamedTuple

from nbta.errors import invalid
from nbta.graph.graph import Graph, all_bodies, current, lies_in, subgraphs
from nbta.graph.operation import FLOW, HANDLE, Operation
from nbta.graph.order import before, ordered
from nbta.ops.arrays import tensor_arrays as arrays
from nbta.ops.core.dimensions import outside
from nbta.ops.core.dispatch import PARAMETER
from nbta.ops.loops.aliases import array_of, origins

_ALL = None  # in place of a set of slots: it may be any


class Race(NamedTuple):
    """Two operations on one array that nothing orders.

    A run does them in the order of their creation.
    """

    first: Operation
    second: Operation
    slots: tuple | None

    def __str__(self):
        where = "may touch one slot" if self.slots is None else f"both touch slot {self.slots[0]}"
        return (
            f"{self.first.name!r} ({self.first.type}) and {self.second.name!r} "
            f"({self.second.type}) {where}, and no flow, data or control edge orders them"
        )


class UnusedWrite(NamedTuple):
    """A write whose flow nobody uses, so that fetching later results does not run it."""

    op: Operation

    def __str__(self):
        return f"nobody uses the flow of {self.op.name!r} ({self.op.type}): it may never run"


class Touch(NamedTuple):
    """What an operation does to an array."""

    op: Operation
    array: tuple | None  # as `array_of` has it; None where it may be any
    slots: frozenset | None
    kind: str  # "write", "add", "read", "lookup", "close"
    clears: bool  # whether a read ends other reads of a slot


def check_flow(graph: Graph | None = None) -> list[Race | UnusedWrite]:
    """Find races and lost writes on tensor arrays, about which TensorFlow does not warn.

    Parameters
    ----------
    graph : Graph, optional
        By default, the graph that is being built.

    Returns
    -------
    list of Race and UnusedWrite
        Findings in the graph and in the bodies of its loops and branches; empty if there are none.

    Raises
    ------
    InvalidArgumentError
        If there is no graph.

    Notes
    -----
    Two operations race if both use, or may use, the same slot of an array, at least one of them
    changes it, and no flow, data or control edge leads from one to the other. Additions to a
    gradient array do not race with each other.

    Examples
    --------
    >>> with nbta.Graph().as_default() as g:
    ...     ta = nbta.TensorArray("float64", size=1)
    ...     written = ta.write(0, 1.0)
    ...     value = ta.read(0)  # of the old name, which knows nothing of the write
    >>> for finding in nbta.check_flow(g):
    ...     print(finding)
    'TensorArrayWriteV3' (TensorArrayWriteV3) and 'TensorArrayReadV3' (TensorArrayReadV3) both
    touch slot 0, and no flow, data or control edge orders them
    nobody uses the flow of 'TensorArrayWriteV3' (TensorArrayWriteV3): it may never run
    """
    graph = graph or current()
    if graph is None:
        raise invalid("graph", "check_flow: no graph is being built; give one")
    found = [*_races(graph), *_unused(graph)]
    for op in graph.operations:
        for body in all_bodies(op):
            found += check_flow(body)
    return found


def lost_write(graph: Graph, used) -> tuple[Operation, Operation] | None:
    """A write whose flow nobody uses, and a later operation that may look for what it wrote.

    Later means by the name that was written to, or by one that came of it.

    Parameters
    ----------
    graph : Graph
    used : set of Tensor
        Flows that are used from outside of the graph.
    """
    lost = {op: write for op, write in _lost_below(graph) if write.outputs[0] not in used}
    if not lost:
        return None
    for race in (found for found in check_flow(graph) if isinstance(found, Race)):
        write = lost.get(race.first)
        later = write is not None and not _past(race.second).isdisjoint(_names(write))
        if later and _looks_for(race, write):
            return write, race.second
    return None


def _names(write):
    """The flow that a write took; of a gradient array that was looked up for it, also those before.

    Another lookup finds the same array.
    """
    flow = outside(write.inputs[-1])
    while flow.op.record in arrays.LOOKUPS:
        yield flow
        flow = outside(flow.op.inputs[1])
    yield flow


def _looks_for(race, write):
    """Whether the second operation reads what was written, or any slot; one slot may be another."""
    array = _array(write.inputs[0])
    reads = [t for t in _touches(race.second) if t.kind == "read" and t.array == array]
    return any(touch.slots is _ALL or race.slots for touch in reads)


def _past(op):
    """The flows that an operation comes after: those of all names of an array up to its own."""
    seen, todo = set(), [tensor for tensor in op.inputs if tensor.kind == FLOW]
    while todo:
        flow = outside(todo.pop())
        if flow not in seen:
            seen.add(flow)
            todo += [tensor for tensor in flow.op.inputs if tensor.kind == FLOW]
    return seen


def _lost_below(graph):
    """Writes that nobody uses, each with every operation that stands for it in a graph around."""
    for finding in _unused(graph):
        if finding.op not in graph.put_back:
            yield finding.op, finding.op
    for op in graph.operations:
        for body in all_bodies(op):
            for inner, write in _lost_below(body):
                yield inner, write
                yield op, write


def _races(graph):
    touches = [touch for op in graph.operations for touch in _touches(op)]
    reach = _ancestors(graph)
    for i, first in enumerate(touches):
        for second in touches[i + 1 :]:
            if second.op is not first.op and _conflict(first, second):
                one, other = first.op, second.op
                free = one not in reach[other] and other not in reach[one]
                if free and not _decided(first, second, touches, reach):
                    yield Race(one, other, _shared(first, second))


def _decided(first, second, touches, reach):
    """Whether a lookup's order beside a write does not matter: an earlier lookup came after it.

    The first lookup of a source makes the gradient array and ends growth, later ones find it. In a
    gradient, reads of an array's older names look it up again, after the flows they knew.
    """
    by_kind = {first.kind: first, second.kind: second}
    if by_kind.keys() != {"write", "lookup"} or None in (first.array, second.array):
        return False
    write, lookup = by_kind["write"].op, by_kind["lookup"].op
    if lookup.record not in arrays.LOOKUPS:  # a loop or a branch that has one
        return False
    return any(
        touch.op.record is lookup.record
        and touch.op.number < lookup.number
        and touch.array == first.array
        and touch.op.attrs["source"] == lookup.attrs["source"]
        and write in reach[touch.op]
        for touch in touches
    )


def _conflict(first, second):
    kinds = {first.kind, second.kind}
    if first.array is not None and second.array is not None and first.array != second.array:
        return False
    if kinds <= {"lookup", "add"} or kinds == {"lookup", "read"}:
        return False
    if kinds == {"read"} and not first.clears and not second.clears:
        return False
    return _shared(first, second) is None or bool(_shared(first, second))


def _clears(handle):
    """Whether a read of an array ends other reads of a slot; true where that is not known."""
    op = _source(handle).op
    if op.record not in arrays.LOOKUPS:
        return op.attrs.get("clear_after_read", True)
    of_gradient = _source(op.inputs[0]).op.record in arrays.LOOKUPS
    return arrays.clears(op.attrs.get("clear_after_read"), of_gradient)


def _shared(first, second):
    """Slots that both touch for sure; None where that is not known, () where none."""
    if first.slots is None or second.slots is None:
        return None
    return tuple(sorted(first.slots & second.slots))


def _ancestors(graph):
    """For each operation, all that run before it."""
    reach: dict[Operation, set] = {}
    for op in ordered(graph.operations):
        reach[op] = set()
        for other in before(op):
            reach[op] |= reach[other] | {other}
    return reach


def _touches(op):
    if subgraphs(op):
        yield from _touches_of_bodies(op)
        return
    if not op.inputs or op.inputs[0].kind != HANDLE:
        return
    array, clears = _array(op.inputs[0]), _clears(op.inputs[0])
    if op.record in arrays.WRITES:
        yield Touch(
            op, array, arrays.slots(op), "add" if array and len(array) > 1 else "write", clears
        )
    elif op.record in arrays.READS:
        yield Touch(op, array, arrays.slots(op), "read", clears)
    elif op.record in arrays.LOOKUPS:
        yield Touch(op, array, _ALL, "lookup", clears)
    elif op.record is arrays.CLOSE:
        yield Touch(op, array, _ALL, "close", clears)


def _touches_of_bodies(op):
    """What the bodies do to arrays from outside, any slot of them."""
    for body in subgraphs(op):
        for inner in body.operations:
            for touch in _touches(inner):
                made = touch.array and touch.array[0]
                if made is None or not lies_in(made.graph, body):
                    yield Touch(op, touch.array, _ALL, touch.kind, touch.clears)
                elif made.record is PARAMETER:
                    yield Touch(op, None, _ALL, touch.kind, touch.clears)


def _array(handle):
    """The array of a handle, which may be known as a parameter; None where only the run knows."""
    return array_of(handle, _source, frozenset({arrays.CREATE, PARAMETER}))


def _source(handle):
    """The one place where a handle comes from."""
    found = origins(handle)
    return found.pop() if len(found) == 1 else outside(handle)


def _unused(graph):
    used = {tensor for op in graph.operations for tensor in op.inputs}
    used |= set(getattr(graph, "outputs", ()))
    waited = {other for op in graph.operations for other in op.control_inputs}
    for op in graph.operations:
        if op.record in arrays.WRITES and op not in waited and op.outputs[0] not in used:
            yield UnusedWrite(op)
