"""Passes on what gradients add up: arrays as tensors, and single items as numbers.

Where a loop reads items of an array of numbers, such as what a scan goes along, its gradient writes
to the gradient array slot by slot, and stacks that in the end. A tensor of zeros takes its place:
it goes through the loops, and code adds to it where it is, without states of slots and without
looking the gradient array up in each trip.
"""

from collections import Counter, defaultdict
from functools import partial
from typing import NamedTuple

import numpy as np

from nbta.compiler.induction import Counts, Linear
from nbta.compiler.nests import added_in_place, bodies_of, holder_in, threaded
from nbta.compiler.program import Program, changes
from nbta.compiler.tapes import Tapes
from nbta.graph.copying import keep_shapes
from nbta.graph.graph import lies_in, running, substitute
from nbta.graph.operation import Operation, Tensor, is_inexact
from nbta.graph.views import Loop, is_loop, origin
from nbta.ops.arithmetic import add
from nbta.ops.arrays import CREATE, GATHER, WRITE
from nbta.ops.dispatch import as_tensor
from nbta.ops.filling import zeros
from nbta.ops.indexing import ADD_ITEM, index_of
from nbta.ops.joining import RANGE
from nbta.ops.trip_counts import constant_of


@changes
def stacked_gradients_to_tensors(program: Program) -> Program:
    """Let gradient arrays of numbers that are only stacked be tensors, to which code adds in place.

    They stay arrays where anything but writes of sure slots in front of one stack may touch them.
    """
    tapes = Tapes(program)
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
                sums = threaded(bodies_of(home, writes[0]), sums, partial(added_in_place, writes))
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


@changes
def add_items_behind_loops(program: Program) -> Program:
    """Add up in a number what each trip of a loop adds to one item, and add that behind the loop.

    So the gradient of ``x[i]`` in a loop over ``j`` is in a register there, and what goes to other
    items need not wait for it. The sums are the same but for the order of additions.
    """
    counts = Counts()
    for op in reversed(list(running(program))):  # from the inside out
        if is_loop(op):
            for variable in Loop(op).variables():
                for change in _only_added(variable):
                    if _is_one_item(counts, change, variable):
                        _add_behind(change, variable)
    return program


def _only_added(variable) -> list[Operation]:
    """What adds items to an array that a loop carries, where trips do nothing else to it."""
    body, tensor, found = variable.loop.body, variable.following, []
    if variable.parameter.spec.rank == 0 or not is_inexact(variable.parameter.dtype):
        return []
    used = Counter(tensor for op in body.operations for tensor in op.inputs)
    used.update(body.outputs)
    while tensor.op.record is ADD_ITEM and used[tensor] == 1:
        found.append(tensor.op)
        tensor = tensor.op.inputs[0]
    return found if tensor is variable.parameter and used[tensor] == 1 else []


def _is_one_item(counts, change, variable):
    """Whether each trip adds a number to the same item, which is sure to be there."""
    x, value, *scalars = change.inputs
    body, around = variable.loop.body, variable.loop.op.graph
    indices = index_of(change.attrs["key"], scalars, x.spec.shape)
    named = [index for index in indices if index is not None]
    one = len(named) == x.spec.rank == len(change.attrs["key"])
    if not one or value.spec.rank != 0 or value.dtype != x.dtype or change.control_inputs:
        return False
    return all(
        _is_there(counts, index, counts.length(variable.first, axis), body, around)
        for axis, index in enumerate(named)
    )


def _is_there(counts, index, length, body, around):
    """Whether an index in a body is one of around it, and sure to be within a length."""
    if isinstance(index, Tensor):
        outside = body.sources.get(index)
        return outside is not None and counts.is_within(outside, length, around)
    return length is not None and index >= 0 and (length - Linear(index + 1)).is_natural()


def _add_behind(change, variable):
    loop, last = variable.loop, variable.last
    body, around = loop.body, loop.op.graph
    x, value, *scalars = change.inputs
    with around.as_default(), around.control_dependencies(None):
        zero = as_tensor(np.zeros((), value.dtype), around)
        total = loop.add_variable(zero, lambda number: add(number, value))
        substitute(body, {change.outputs[0]: x})
        inputs = [last, total, *(body.sources[scalar] for scalar in scalars)]
        made = around.create(ADD_ITEM, inputs, dict(change.attrs))
    keep_shapes([last], made.outputs)
    substitute(around, {last: made.outputs[0]})
    made.inputs[0] = last
    around.changed()
