"""What a trip of a loop does with the items of an array that the loop carries.

Two accesses touch different items where along some axis one index is sure to be greater: both are
linear forms in the numbers of trips, as in `final_values`.
"""

from collections import defaultdict
from typing import NamedTuple

from nbta.compiler.induction import Counts, Linear, Trip
from nbta.graph.graph import SubGraph, live
from nbta.graph.operation import Operation, Tensor
from nbta.graph.views import Branch, Loop, Variable
from nbta.ops.branch import CASE
from nbta.ops.dispatch import PARAMETER
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
    found = Touched([], [])
    if variable.parameter.spec.rank == 0 or users.get(variable.tested):
        return None
    return found if _followed(variable.following, users, found) is variable.parameter else None


def _followed(version, users, found) -> Tensor | None:
    """The parameter of a body that the last version of an array was; None where that is unknown.

    What is done to it on the way, by branches too, is noted.
    """
    behind = None
    while True:
        others = [op for op in users[version] if op is not behind]
        known = all(_note(op, version, found) for op in others)
        if len(others) != len(users[version]) - 1 or not known:
            return None
        behind = version.op
        if behind.record is PARAMETER:
            return version
        if behind.record in (ADD_ITEM, SET_ITEM):
            found.changes.append(behind)
            version = behind.inputs[0]
        elif behind.record is CASE:
            firsts = set()
            for branch in Branch(behind).branches:
                first = _followed(branch.outputs[version.index], users_of(branch), found)
                firsts.add(None if first is None else branch.sources.get(first))
            version = firsts.pop() if len(firsts) == 1 else None
            if version is None:
                return None
        else:
            return None


def _note(op, version, found) -> bool:
    """Note what an operation, or its branches, read of an array; whether they do nothing else."""
    if op is None:
        return False
    if op.record is GETITEM:
        found.reads.append(op)
        return True
    if op.record is not CASE:
        return False
    branches = [b for b in Branch(op).branches if version in b.captures]
    return all(
        _note(inner, b.captures[version], found)
        for b in branches
        for inner in users_of(b)[b.captures[version]]
    )


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
