"""Users' arrays that one loop fills, an element in each iteration: lists of what it computes.

Their elements lie one after the other without states, and gradient arrays of numbers are tensors,
to which code adds in place.
"""

from collections import defaultdict
from functools import partial
from typing import NamedTuple

from nbta.compiler.manager import Fact, analysis, contract
from nbta.compiler.nests import added_in_place, bodies_of, packing, threaded
from nbta.compiler.passes import prune
from nbta.compiler.program import Program, changes
from nbta.compiler.tapes import Tapes, place_of_flow
from nbta.graph.graph import lies_in, substitute
from nbta.graph.operation import DATA, Operation, Tensor
from nbta.graph.views import Loop, Variable, holder_in, is_loop, origin
from nbta.ops.arrays import CREATE, GATHER, LOOKUP, READ, SIZE, WRITE, WRITES
from nbta.ops.filling import zeros
from nbta.ops.indexing import getitem
from nbta.ops.trip_counts import constant_of, counts_trips


class _Filled(NamedTuple):
    """An array, the loop that makes all of its one write, and the place of its flow there."""

    create: Operation
    loop: Operation
    place: int
    write: Operation

    @property
    def flow(self) -> Variable:
        """The variable of the loop that has the array's flow."""
        return Loop(self.loop).variable(self.place)

    @property
    def value(self) -> Tensor:
        """What each iteration writes."""
        return self.write.inputs[2]


def _filled(tapes) -> list[_Filled]:
    """All such arrays of a program."""
    found = []
    for array, users in list(tapes.uses.users.items()):
        if array is not None and len(array) == 1 and tapes.is_known(array):
            found.append(_as_filled(array[0], [op for op in users if op.record in WRITES]))
    return [each for each in found if each is not None]


def _as_filled(create, writes):
    plain = create.record is CREATE and constant_of(create.inputs[0]) == 0
    plain = plain and create.attrs["dynamic_size"] and not create.attrs["clear_after_read"]
    if not plain or [op.record for op in writes] != [WRITE]:
        return None
    (write,) = writes
    body = write.graph
    loop = getattr(body, "owner", None)
    if loop is None or not is_loop(loop) or loop.graph is not create.graph:
        return None
    if body is not Loop(loop).body or not counts_trips(Loop(loop)):
        return None
    place = place_of_flow(loop, write, create)
    if write.inputs[1] is not Loop(loop).counter or place is None:
        return None
    return _Filled(create, loop, place, write)


@contract(requires=[Fact.RANKS])
@changes
def pack_arrays(program: Program) -> Program:
    """Let numbers in arrays that are only read lie one after the other, without states.

    So do short rows.
    """
    tapes = analysis(Tapes, program)
    for each in _filled(tapes):
        users = tapes.uses.users[(each.create,)]
        records = {op.record for op in users}
        found = packing(each.value.spec) if records <= _READING else {}
        each.create.attrs.update(found)
        for op in users if found else ():
            if op.record is READ and _is_there(tapes, each, op):
                op.attrs["sure"] = True
    return program


_READING = {READ, GATHER, WRITE, SIZE}


def _is_there(tapes, filled, read):
    """Whether what a read takes was written, for sure."""
    if origin(read.inputs[2]) is not filled.flow.last:
        return False
    return tapes.is_row(tapes.number(read.inputs[1]), tapes.trips(filled.loop))


@contract(requires=[Fact.RANKS])
@changes
def gradients_to_tensors(program: Program) -> Program:
    """Let gradient arrays of arrays of numbers be tensors, to which code adds in place."""
    tapes, found = analysis(Tapes, program), []
    for each in _filled(tapes):
        lookups = [op for op in tapes.uses.users[(each.create,)] if op.record is LOOKUP]
        number = each.value.kind == DATA and each.value.spec.rank == 0
        here = all(origin(op.inputs[0]) is each.create.outputs[0] for op in lookups)
        if lookups and number and here:
            found += [(each, gradient) for gradient in _gradients(tapes, each, lookups) or []]
    for each, gradient in found:
        _as_tensor(each, gradient)
    return prune.in_place(program) if found else program


class _Gradient(NamedTuple):
    """A gradient array: lookups, writes and reads.

    Writes are listed by the operation after the loop that they are in, one after the other.
    """

    lookups: list[Operation]
    writes: list[list[Operation]]
    reads: list[Operation]


def _gradients(tapes, filled, lookups):
    """The gradient arrays that come after a loop, and theirs after them, or None.

    Of these all that touches them is known: writes, in one body for each operation after the loop,
    and after all of them reads.
    """
    found, todo = [], [((filled.create,), lookups)]
    for array, users in todo:
        for source, ops in _by_source(users).items():
            gradient = _gradient(tapes, (*array, source), ops, filled.loop)
            if gradient is None:
                return None
            found.append(gradient)
            todo.append(((*array, source), tapes.uses.users[(*array, source)]))
    return found


def _by_source(users):
    """The lookups among the users of an array."""
    sources = defaultdict(list)
    for op in users:
        if op.record is LOOKUP:
            sources[op.attrs["source"]].append(op)
    return sources


def _gradient(tapes, array, lookups, loop):
    users = tapes.uses.users[array]
    hidden = array in tapes.uses.passed or tapes.uses.holders[array]
    plain = all(len(op.inputs) == 2 and _is_free(tapes, op) for op in lookups)
    if hidden or not plain or not all(_is_of(tapes, op, lookups) for op in users):
        return None
    number = tapes.order(loop.graph)
    writes, reads = defaultdict(list), []
    for op in users:
        if not lies_in(op.graph, loop.graph):
            return None
        if op.record is not LOOKUP:
            (reads if op.record is READ else writes[holder_in(loop.graph, op)]).append(op)
    last = max((number[op] for op in writes), default=-1)
    in_order = all(number[loop] < number[op] for op in writes)
    in_order &= all(number[holder_in(loop.graph, op)] > max(last, number[loop]) for op in reads)
    if not in_order or any(len({op.graph for op in ops}) > 1 for ops in writes.values()):
        return None
    return _Gradient(lookups, [writes[op] for op in sorted(writes, key=number.get)], reads)


def _is_free(tapes, op):
    return not op.control_inputs and op not in tapes.uses.waited


def _is_of(tapes, op, lookups):
    """Whether an operation touches a slot that it names, in what one of some lookups gives.

    Or looks its gradient array up.
    """
    if op.record not in (READ, WRITE, LOOKUP) or not _is_free(tapes, op):
        return False
    return origin(op.inputs[0]).op in lookups


def _as_tensor(filled, gradient):
    """Put a tensor, that goes through loops, in place of a gradient array."""
    home = filled.loop.graph
    with home.as_default(), home.control_dependencies(None):
        sums = zeros((Loop(filled.loop).trips,), filled.value.dtype)
        for writes in gradient.writes:
            *_, sums = threaded(bodies_of(home, writes[0]), sums, partial(added_in_place, writes))
    for read in gradient.reads:
        with read.graph.as_default(), read.graph.control_dependencies(None):
            value = getitem(read.graph.resolve(sums), read.inputs[1])
        substitute(read.graph, {read.outputs[0]: value})
    for lookup in gradient.lookups:
        substitute(lookup.graph, {lookup.outputs[1]: lookup.inputs[1]})
