"""Gradient arrays of numbers as tensors.

Where a loop reads items of an array of numbers, such as what a scan goes along, its gradient writes
to the gradient array slot by slot, and stacks that in the end. A tensor of zeros takes its place:
it goes through the loops, and code adds to it where it is, without states of slots and without
looking the gradient array up in each trip.
"""

from collections import defaultdict
from functools import partial
from typing import NamedTuple

from nbta.compiler.manager import Fact, analysis, contract
from nbta.compiler.nests import added_in_place, bodies_of, threaded
from nbta.compiler.program import Program, changes
from nbta.compiler.tapes import Tapes
from nbta.graph.copying import keep_shapes
from nbta.graph.graph import lies_in, substitute
from nbta.graph.operation import Operation
from nbta.graph.views import holder_in, origin
from nbta.ops.arrays import CREATE, GATHER, WRITE
from nbta.ops.filling import zeros
from nbta.ops.joining import RANGE
from nbta.ops.trip_counts import constant_of


@contract(requires=[Fact.RANKS])
@changes
def stacked_gradients_to_tensors(program: Program) -> Program:
    """Let gradient arrays of numbers that are only stacked be tensors, to which code adds in place.

    They stay arrays where anything but writes of sure slots in front of one stack may touch them.
    """
    tapes = analysis(Tapes, program)
    found = [_as_sums(tapes, array) for array in list(tapes.uses.users)]
    for each in found:
        if each is not None:
            each.replace()
    return program


class _Sums(NamedTuple):
    """A gradient array: what makes its forward array, and all that touches it.

    Writes are listed by the operation of the graph that they are in, one behind the other.
    """

    create: Operation
    lookups: list[Operation]
    writes: list[list[Operation]]
    stack: Operation

    def replace(self) -> None:
        """Put a tensor that goes through the loops in place of the array."""
        home, value = self.create.graph, self.stack.outputs[0]
        with home.as_default(), home.control_dependencies(None):
            sums = zeros((home.resolve(self.create.inputs[0]),), value.dtype)
            sums.op.attrs["pattern"] = value.spec.shape
            keep_shapes([value], [sums])
            for writes in self.writes:
                *_, sums = threaded(
                    bodies_of(home, writes[0]), sums, partial(added_in_place, writes)
                )
        substitute(home, {value: sums})
        for lookup in self.lookups:
            substitute(lookup.graph, {lookup.outputs[1]: lookup.inputs[1]})


def _as_sums(tapes, array):
    """A gradient array that may be a tensor; None for all others."""
    if array is None or len(array) != 2 or not _is_of_numbers(tapes, array):
        return None
    create, writes, stacks = array[0], defaultdict(list), []
    for op in tapes.uses.users[array]:
        if not lies_in(op.graph, create.graph) or op.record not in (WRITE, GATHER):
            return None
        (stacks if op.record is GATHER else writes[holder_in(create.graph, op)]).append(op)
    if len(stacks) != 1 or not _is_whole(tapes, stacks[0], create):
        return None
    number = tapes.order(create.graph)
    in_front = all(number[op] < number[stacks[0]] for op in writes)
    together = all(len({op.graph for op in ops}) == 1 for ops in writes.values())
    added = all(_is_added(tapes, op, create) for ops in writes.values() for op in ops)
    if not (in_front and together and added):
        return None
    in_turn = [writes[op] for op in sorted(writes, key=number.get)]
    return _Sums(create, tapes.uses.lookups(array), in_turn, stacks[0])


def _is_of_numbers(tapes, array):
    """Whether an array has a fixed size and numbers for elements, and all its users are known."""
    create, uses = array[0], tapes.uses
    if create.record is not CREATE or create.attrs.get("dynamic_size"):
        return False
    size, attrs = create.inputs[0], create.attrs
    return (
        attrs["element_shape"] == ()
        and attrs["dtype"].itemsize > 2  # sums of halves are taken in float32
        and size.spec.rank == 0
        and tapes.is_natural(tapes.number(size))
        and all(uses.is_plain(known) and tapes.is_known(known) for known in (array[:1], array))
    )


def _is_whole(tapes, stack, create):
    """Whether all slots are gathered in order, once, where the forward array is made."""
    slots = origin(stack.inputs[1]).op
    return (
        stack.graph is create.graph
        and slots.record is RANGE
        and (constant_of(slots.inputs[0]), constant_of(slots.inputs[2])) == (0, 1)
        and tapes.number(slots.inputs[1]) == tapes.number(create.inputs[0])
        and stack.attrs["dtype"] == create.attrs["dtype"]
        and stack.attrs.get("element_shape") in (None, ())
    )


def _is_added(tapes, write, create):
    """Whether a write adds a number; that there is such a slot code finds as it adds."""
    value = write.inputs[2]
    fits = value.spec.rank == 0 and value.dtype == create.attrs["dtype"]
    return fits and tapes.is_index(write.inputs[1])
