"""Items that a loop reads and nothing writes any more: what comes after it reads them again.

A loop that fills an array, or changes it in place, mostly reads items that are final: those of
earlier iterations in a recurrence, the rows above in a decomposition. The last version of the array
has them, so that no tape need keep them; tools for source transformation know that as the analysis
of values to be recorded (Hascoet, Naumann and Pascual, "To be recorded" analysis in reverse-mode
automatic differentiation, 2005).

That a write in a later iteration, or later in the same one, goes to another item is shown along one
axis, or along a diagonal of two: the indices of both, or the differences or sums of two of them,
are linear forms in the numbers of iterations, and one is proven to be greater. In a table over
pairs of ends, as those of matrix chains and of parsing are, an item depends on those of shorter
spans. This is the dependence test of compilers, direction by direction (Banerjee, Dependence
Analysis, 1997): for a later iteration of each loop around both, the loops around that in the same
one.
"""

from collections.abc import Iterator
from itertools import combinations
from typing import NamedTuple

from nbta.compiler.induction import Counts, Linear, Order
from nbta.graph.graph import lies_in
from nbta.graph.operation import Operation, Tensor
from nbta.graph.views import Branch, Loop, Variable, is_branch, is_loop, origin, owners
from nbta.ops.core.dispatch import PARAMETER
from nbta.ops.indexing.items import ADD_ITEM, SET_ITEM, indexes_of


class Item(NamedTuple):
    """Items of an array as they were at some point: what ``key`` picks, with the scalars in it."""

    array: Tensor
    scalars: list[Tensor]
    key: tuple


class _Made(NamedTuple):
    """A version of an array in an iteration, and whether it comes after the one that is read."""

    version: Tensor
    is_later: bool


def last_version(counts: Counts, item: Item, graph) -> Tensor | None:
    """The version of an array that a graph sees, where that has the item; None if unknown.

    Parameters
    ----------
    counts : Counts
    item : Item
        Of an array in the body of a loop that the graph does not lie in.
    graph : SubGraph
    """
    version, read, writes, bodies = origin(item.array), None, [], []
    while not lies_in(graph, version.graph):
        found = _variable(version)
        if found is None:
            return None
        variable, iteration = found
        bodies.append(variable.loop.body)
        others = [made for made in iteration if made.version is not read]
        writes += [(write, bodies[-1], made.is_later) for made in others for write in _writes(made)]
        version = read = variable.last
    if not bodies or is_replaced(version, graph):
        return None
    forms = _Forms(counts, item, bodies)
    return version if all(forms.miss(*write) for write in writes) else None


def is_replaced(version: Tensor, graph) -> bool:
    """Whether an iteration changes an array that it was given before a graph in it runs.

    Both versions would be needed then: a copy of the whole array in each iteration, of which the
    graph may read an item. What is not in a loop is copied once at most, and an array that the
    iteration makes is paid for already.

    Parameters
    ----------
    version : Tensor
        An array that the graph sees.
    graph : SubGraph
    """
    version = origin(version)
    body, owner = version.graph, getattr(version.graph, "owner", None)
    if owner is None or not any(map(is_loop, (owner, *owners(owner)))):
        return False
    ends = [v.following for v in Loop(owner).variables()] if is_loop(owner) else body.outputs
    for versions in (_versions(end, body) for end in ends):
        places = [place for place, each in enumerate(versions) if each is version]
        if places and places[0] and versions[-1].op.record is PARAMETER:
            return not _runs_before(graph, body, versions[places[0] - 1].op)
    return False


def _runs_before(graph, body, write) -> bool:
    """Whether a graph in a loop or branch of a body runs before an operation of the body."""
    while graph is not body:
        op, graph = graph.owner, graph.outer
        if graph is body:
            return body.operations.index(op) < body.operations.index(write)
    return False


def _variable(version) -> tuple[Variable, list[_Made]] | None:
    """The variable of a loop that a version belongs to, and all versions of an iteration."""
    body, owner = version.graph, getattr(version.graph, "owner", None)
    if owner is None or not is_loop(owner) or body is not Loop(owner).body:
        return None
    for variable in Loop(owner).variables():
        versions = _versions(variable.following, body)
        places = [place for place, each in enumerate(versions) if each is version]
        if places and versions[-1] is variable.parameter:
            return variable, [_Made(v, place < places[0]) for place, v in enumerate(versions[:-1])]
    return None


def _versions(version, body) -> list[Tensor]:
    """An array's versions in a body, from the one that is given back to the first."""
    found = []
    while version is not None and origin(version).graph is body:
        found.append(origin(version))
        version = _before(found[-1])
    return found


def _before(version):
    op = version.op
    if is_loop(op):
        return Loop(op).variable(version.index).first
    if is_branch(op):
        return _before_branch(Branch(op), version.index)
    return op.inputs[0] if op.record in (SET_ITEM, ADD_ITEM) else None


def _before_branch(case, place):
    """The version around branches that one of them changes, or passes on."""
    for end in map(origin, case.ends(place)):
        while end is not None and end.graph in case.branches:
            before = _before(end)
            end = None if before is None else origin(before)
        if end is not None:
            return end
    return None


def _writes(made) -> Iterator[Operation | None]:
    """What makes a version of the one before, in iterations too; None for what is unknown."""
    op = made.version.op
    if is_branch(op):
        yield from _writes_of_branch(made)
        return
    if not is_loop(op):
        yield op
        return
    variable = Loop(op).variable(made.version.index)
    versions = _versions(variable.following, variable.loop.body)
    if not versions or versions[-1] is not variable.parameter:
        yield None
        return
    for version in versions[:-1]:
        yield from _writes(_Made(version, made.is_later))


def _writes_of_branch(made) -> Iterator[Operation | None]:
    """What either way writes, as each may be taken."""
    case, place = Branch(made.version.op), made.version.index
    around = _before_branch(case, place)
    for end in map(origin, case.ends(place)):
        versions = _versions(end, end.graph) if end.graph in case.branches else []
        before = _before(versions[-1]) if versions else end
        if around is None or before is None or origin(before) is not around:
            yield None
            return
        for version in versions:
            yield from _writes(_Made(version, made.is_later))


class _Forms:
    """The indices of an item that is read, held against those of writes.

    Parameters
    ----------
    counts : Counts
    item : Item
    bodies : list of SubGraph
        Of the loops around what is read that change the array, from the inside out.
    """

    def __init__(self, counts, item, bodies):
        self._counts, self._bodies = counts, bodies
        self._read = self._indices(item)

    def _indices(self, item):
        """The least and the greatest index of each axis, and of each diagonal of two."""
        parts = indexes_of(item.key, item.scalars, item.array.spec.shape)
        found = [self._range(part) for part in parts]
        return found + [
            _between(one, other, sign) for one, other in combinations(found, 2) for sign in (1, -1)
        ]

    def _range(self, part):
        """Linear forms that the indices of an axis lie between; None for what is not known.

        A slice may end earlier, where the axis does.
        """
        if not isinstance(part, slice):
            return (self._counts.unwrapped(part),) * 2
        if part.step is not None and not (type(part.step) is int and part.step > 0):
            return None, None
        first = Linear(0) if part.start is None else self._counts.unwrapped(part.start)
        end = None if part.stop is None else self._counts.unwrapped(part.stop)
        return first, None if end is None else end - Linear(1)

    def miss(self, write, body, is_later) -> bool:
        """Whether a write goes to other items in later iterations, or later in the same one.

        ``body`` is the innermost that it is in together with the read.
        """
        if write is None:
            return False
        inputs = write.inputs
        indices = self._indices(Item(inputs[0], inputs[2:], write.attrs["key"]))
        pairs = list(zip(self._read, indices, strict=True))
        around = self._bodies[next(k for k, b in enumerate(self._bodies) if b is body) :]
        cases = [(each, Order.LATER) for each in around]
        cases += [(body, Order.SAME)] * is_later
        return all(any(self._differ(*pair, *case) for pair in pairs) for case in cases)

    def _differ(self, read, write, body, order):
        """Whether indices of a write are always above others, or below, in such iterations."""
        (low, high), (least, greatest) = read, write
        if None not in (least, high) and self._counts.is_above(least, high, body, order):
            return True
        known = None not in (low, greatest)
        return known and self._counts.is_above(greatest * -1, low * -1, body, order)


def _between(one, other, sign):
    """The least and the greatest of sums of two indices, or of differences; None for unknown."""
    ends = zip(one, other if sign > 0 else other[::-1], strict=True)
    return tuple(None if None in pair else pair[0] + pair[1] * sign for pair in ends)
