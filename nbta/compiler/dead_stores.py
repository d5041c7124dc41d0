"""Items that a loop sets and nothing reads again: the array stays as it is.

The adjoint of ``new[i] = u[i - 1] + u[i + 1]`` takes the adjoint of an item and sets it to zero, as
an assignment before that one would have no part in the result. Mostly there is none: each item is
assigned once, and the zeros are stored for nobody.

Whether anything reads them follows from the versions of the array that come after: in the same
iteration, in later ones of each loop around, and after those. Each read there is of another item if
some index is proven to be greater (`Counts.is_above`). A result, or a use of the whole array, is a
read of all items.
"""

from collections.abc import Iterator
from typing import NamedTuple

from nbta.compiler.access_sets import OF_ITEMS, AccessSets, indices_of, is_same_item, is_within
from nbta.compiler.induction import Counts, Order
from nbta.compiler.manager import Fact, analysis, contract
from nbta.compiler.passes import prune
from nbta.compiler.program import Program, changes
from nbta.graph.graph import Graph, SubGraph, running, substitute
from nbta.graph.operation import Operation, Tensor
from nbta.graph.views import Branch, Loop, Variable, is_branch, is_loop
from nbta.ops.core.shaping import SHAPE, SIZE
from nbta.ops.indexing.items import GETITEM, SET_ITEM
from nbta.tuning import FOLLOWED_ACCESSES


@contract(requires=[Fact.RANKS])
@changes
def drop_dead_stores(program: Program) -> Program:
    """Leave items as they are that loops set and nothing reads again."""
    counts, access = analysis(Counts, program), analysis(AccessSets, program)
    found = [
        op
        for op in running(program)
        if op.record is SET_ITEM
        and _body_of_loop(op.graph)
        and op.outputs[0].spec.rank
        and _is_checked(op, counts, access)
        and _is_dead(op, counts, access)
    ]
    for op in found:
        substitute(op.graph, {op.outputs[0]: op.inputs[0]})
    return prune.in_place(program) if found else program


def _body_of_loop(graph):
    owner = getattr(graph, "owner", None)
    return owner is not None and is_loop(owner) and graph is Loop(owner).body


def _is_checked(op, counts, access):
    """Whether the store is of one item, and what it would refuse is refused without it."""
    if any(isinstance(index, slice) for index in indices_of(op)):
        return False
    others = access.users(op.graph)[op.inputs[0]]  # of the version that it changes
    read = any(o is not None and o.record is GETITEM and _reads_same(o, op) for o in others)
    return read or is_within(counts, op)


def _reads_same(read, store):
    return read.inputs[0] is store.inputs[0] and is_same_item(read, store)


class _Read(NamedTuple):
    """A read of items of a later version of an array.

    Attributes
    ----------
    op : Operation
    body : SubGraph
        Of the innermost loop around both the read and the store; of the outermost around the store,
        where the read is outside.
    order : Order
        In which iterations of that loop the read may be.
    """

    op: Operation
    body: SubGraph
    order: Order


def _is_dead(op, counts, access):
    """Whether nothing reads what an operation stores."""
    try:
        reads = enumerate(_reads_after(op, access))
        return all(n < FOLLOWED_ACCESSES and _misses(read, op, counts) for n, read in reads)
    except _UnknownError:
        return False


def _misses(read, store, counts):
    """Whether a read is of another item than those that an operation stores."""
    pairs = zip(indices_of(store), indices_of(read.op), strict=True)
    return any(
        not isinstance(other, slice) and _differ(counts, one, other, store.graph, read)
        for one, other in pairs
    )


def _differ(counts, one, other, graph, read):
    """Whether the index of a read is never that of a store, which has been run before."""
    one, other, when = counts.unwrapped(one), counts.number(other), (read.body, read.order)
    if one is None or not counts.is_natural_after(other, graph, *when):
        return False
    return any(counts.is_above(other * s, one * s, *when, after=graph) for s in (1, -1))


class _UnknownError(Exception):
    """Somebody has all items, or does with them what is not known."""


def _reads_after(op, access) -> Iterator[_Read]:
    """The reads of items of all versions of an array that come after a store."""
    version, graph, body = op.outputs[0], op.graph, op.graph
    while _body_of_loop(graph):
        body, variables = graph, Loop(graph.owner).variables()
        ends = yield from _Versions(access, body, Order.SAME).made_of(version, graph)
        if not ends:
            return
        if len(ends) > 1:
            raise _UnknownError
        variable = variables[ends[0]]
        yield from _Versions(access, body, Order.LATER).carried_by(variable)
        version, graph = variable.last, graph.owner.graph
    if (yield from _Versions(access, body, Order.ANY).made_of(version, graph)):
        raise _UnknownError


class _Versions(NamedTuple):
    """What is done to versions of an array: see `_Read` for the attributes."""

    access: AccessSets
    body: SubGraph
    order: Order

    def made_of(self, version: Tensor, graph: Graph):
        """The reads of a version, and of those made of it in a graph; the places of its results."""
        found, users = [version], self.access.users(graph)
        for version in found:
            if len(found) > FOLLOWED_ACCESSES:
                raise _UnknownError
            for op in {user: None for user in users.get(version, ()) if user is not None}:
                made = yield from self._by_user(op, version)
                found += [t for t in made if not any(t is other for other in found)]
        return [p for p, end in enumerate(graph.outputs) if any(end is t for t in found)]

    def _by_user(self, op, version):
        """The reads that an operation does, and what it makes of a version."""
        places = [place for place, tensor in enumerate(op.inputs) if tensor is version]
        if op.record in (SHAPE, SIZE):
            return []
        if op.record in OF_ITEMS and places == [0]:
            if op.record is not SET_ITEM:
                yield _Read(op, self.body, self.order)
            return [] if op.record is GETITEM else op.outputs
        if is_loop(op) and places:
            return (yield from self._by_loop(Loop(op), places))
        if is_branch(op) and places and places[0]:
            inner = [(b, b.inputs[place - 1]) for b in Branch(op).branches for place in places]
            made = set()
            for branch, parameter in inner:
                made.update((yield from self.made_of(parameter, branch)))
            return [op.outputs[place] for place in sorted(made)]
        raise _UnknownError

    def _by_loop(self, loop, places):
        """Those of a loop, which may carry the array or only read it."""
        for place in places:
            if place < loop.count:
                yield from self.carried_by(loop.variable(place))
                continue
            for graph in (loop.cond, loop.body):
                if (yield from self.made_of(graph.inputs[place], graph)):
                    raise _UnknownError
        return [loop.op.outputs[place] for place in places if place < loop.count]

    def carried_by(self, variable: Variable):
        """The reads of an array in all iterations of a loop that carries it."""
        loop, place = variable.loop, variable.place
        if self.access.users(loop.cond).get(variable.tested):
            raise _UnknownError
        if (yield from self.made_of(variable.parameter, loop.body)) not in ([], [place]):
            raise _UnknownError
