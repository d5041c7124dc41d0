"""What a trip of a loop does with the items of an array that the loop carries.

Two accesses touch different items where along some axis one index is sure to be greater: both are
linear forms in the numbers of trips, as in `final_values`.
"""

from collections import defaultdict
from typing import NamedTuple

from nbta.compiler.induction import Counts, Linear, Trip
from nbta.graph.graph import SubGraph, live
from nbta.graph.operation import Operation
from nbta.graph.views import Loop, Variable
from nbta.ops.indexing import ADD_ITEM, GETITEM, SET_ITEM, picks_of


class Touched(NamedTuple):
    """The changes that a trip makes to items of an array, from the last one on, and its reads."""

    changes: list[Operation]
    reads: list[Operation]


def users_of(*graphs: SubGraph) -> dict:
    """The users of each tensor in some bodies, once for each time; None stands for a result."""
    users = defaultdict(list)
    for graph in graphs:
        for op in live(graph):
            for tensor in op.inputs:
                users[tensor].append(op)
        for tensor in graph.outputs:
            users[tensor].append(None)
    return users


def users_in(loop: Loop) -> dict:
    """Those in a loop."""
    return users_of(loop.body, loop.cond)


def touched(variable: Variable, users) -> Touched | None:
    """What a trip does with an array; None where that is more than to read and to change items.

    Parameters
    ----------
    variable : Variable
    users : dict
        Those in the loop, of `users_in`.
    """
    version, found, behind = variable.following, Touched([], []), None
    if variable.parameter.spec.rank == 0 or users.get(variable.tested):
        return None
    while True:
        reads = [op for op in users[version] if op is not behind]
        if len(reads) != len(users[version]) - 1 or not all(map(_is_read, reads)):
            return None
        found.reads.extend(reads)
        if version is variable.parameter:
            return found
        behind = version.op
        if behind.record not in (ADD_ITEM, SET_ITEM):
            return None
        found.changes.append(behind)
        version = behind.inputs[0]


def _is_read(op):
    return op is not None and op.record is GETITEM


def differ(counts: Counts, one: Operation, other: Operation, body: SubGraph) -> bool:
    """Whether two accesses touch different items, in whatever trips of a body each of them is."""
    pairs = zip(_indices(counts, one), _indices(counts, other), strict=True)
    return any(_is_apart(counts, *pair, body) for pair in pairs)


def _is_apart(counts, one, other, body):
    """Whether an index is always above another one, or below."""
    if one is None or other is None:
        return False
    trip = Trip(body)
    if one.terms.get(trip, 0) and other.terms.get(trip, 0):
        return False  # each is in a trip of its own
    return any(counts.is_natural(gap + -1) for gap in (one - other, other - one))


def is_of_its_trip(counts: Counts, one: Operation, other: Operation, body: SubGraph) -> bool:
    """Whether two accesses touch the same item only in the same trip of a body."""
    trip = Trip(body)
    pairs = zip(_indices(counts, one), _indices(counts, other), strict=True)
    return any(
        index is not None and index.terms.get(trip, 0) and index == another
        for index, another in pairs
    )


def _indices(counts, op) -> list[Linear | None]:
    """The index of each axis, as a form that is not negative; None for slices and what else is."""
    x, *rest = op.inputs
    scalars = rest if op.record is GETITEM else rest[1:]
    parts = picks_of(op.attrs["key"], scalars, x.spec.shape)
    return [_form(counts, part) for part in parts]


def _form(counts, part):
    if isinstance(part, slice):
        return None
    form = Linear(part) if type(part) is int else counts.number(part)
    return form if counts.is_natural(form) else None  # others wrap around
