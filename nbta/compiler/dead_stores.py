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

from nbta.compiler.access_sets import AccessSets, indices_of, is_same_item, is_within
from nbta.compiler.array_versions import Access, UnknownError, Versions
from nbta.compiler.induction import Counts, Order
from nbta.compiler.manager import Fact, analysis, contract
from nbta.compiler.passes import prune
from nbta.compiler.program import Program, changes
from nbta.graph.graph import running, substitute
from nbta.graph.views import Loop, is_loop
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


def _is_dead(op, counts, access):
    """Whether nothing reads what an operation stores."""
    try:
        found = (each for each in _after(op, access) if each.op.record is not SET_ITEM)
        reads = enumerate(found)
        return all(n < FOLLOWED_ACCESSES and _misses(read, op, counts) for n, read in reads)
    except UnknownError:
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


def _after(op, access) -> Iterator[Access]:
    """The accesses to all versions of an array that come after a store."""
    version, graph, body = op.outputs[0], op.graph, op.graph
    while _body_of_loop(graph):
        body, variables = graph, Loop(graph.owner).variables()
        ends = yield from Versions(access, body, Order.SAME).made_of(version, graph)
        if not ends:
            return
        if len(ends) > 1:
            raise UnknownError
        variable = variables[ends[0]]
        yield from Versions(access, body, Order.LATER).carried_by(variable)
        version, graph = variable.last, graph.owner.graph
    if (yield from Versions(access, body, Order.ANY).made_of(version, graph)):
        raise UnknownError
