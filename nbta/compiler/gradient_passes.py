"""Gradient arrays of numbers as tensors.

Where a loop reads items of an array of numbers, such as a list that it fills or what a scan goes
along, the adjoint loop adds to a gradient array, slot by slot, and reads it slot by slot where the
array was written. A tensor of zeros takes its place: it goes through loops and branches, and code
adds to it where it is, without states of slots and without looking the gradient array up in each
iteration.
"""

from itertools import pairwise
from typing import NamedTuple

from nbta.compiler.array_fills import filling, slots_in_order
from nbta.compiler.carrying import as_long, carried
from nbta.compiler.manager import Fact, analysis, contract
from nbta.compiler.passes import prune
from nbta.compiler.program import Program, changes
from nbta.compiler.tapes import Tapes
from nbta.graph.copying import keep_shapes
from nbta.graph.graph import lies_in, substitute
from nbta.graph.operation import DATA, Operation, Tensor
from nbta.graph.views import Loop, holder_in, is_loop, owners
from nbta.ops.arrays.tensor_arrays import (
    CREATE,
    GATHER,
    LOOKUP,
    READ,
    SCATTER,
    SIZE,
    WRITE,
    WRITES,
    clears,
)
from nbta.ops.core.filling import zeros
from nbta.ops.indexing.items import add_item, getitem


@contract(requires=[Fact.RANKS])
@changes
def gradients_to_tensors(program: Program) -> Program:
    """Let gradient arrays of numbers be tensors, to which code adds in place.

    They stay arrays where an access may fail, or find anything but the sum of what was added: where
    a user writes to a slot that may not exist, where slots that are cleared may be read twice,
    where a user reads single slots.
    """
    tapes = analysis(Tapes, program)
    found: dict[tuple, _Sums] = {}
    arrays = [array for array in tapes.uses.users if array is not None and len(array) > 1]
    for array in sorted(arrays, key=len, reverse=True):  # its own gradient arrays before an array
        sums = _as_sums(tapes, array, found)
        if sums is not None:
            found[array] = sums
    for sums in found.values():
        sums.replace(tapes)
    return prune.in_place(program) if found else program


class _Sums(NamedTuple):
    """A gradient array: what makes its forward array, what looks it up, and what touches it."""

    create: Operation
    lookups: list[Operation]
    users: list[Operation]

    def replace(self, tapes) -> None:
        """Put a tensor that goes through the loops in place of the array."""
        home = self.create.graph
        with home.as_default(), home.control_dependencies(None):
            first = zeros((self._size(tapes),), self.create.attrs["dtype"])
        carried(home, self.users, first, _access, tapes.order)
        for lookup in self.lookups:
            substitute(lookup.graph, {lookup.outputs[1]: lookup.inputs[1]})

    def _size(self, tapes) -> Tensor:
        """How many slots the array has."""
        create, home = self.create, self.create.graph
        if not create.attrs["dynamic_size"]:
            return home.resolve(create.inputs[0])
        filled = filling(tapes, create)
        if filled is not None:
            return Loop(filled.loop).iterations
        flow = tapes.last_flow(create)
        return as_long(home.create(SIZE, [create.outputs[0], flow], {}).outputs[0])


def _access(op, sums):
    """A tensor after what an operation does to the gradient array in whose place it is."""
    if op.record in WRITES:
        key = op.inputs[1] if op.record is WRITE else slice(op.graph.resolve(slots_in_order(op)))
        sums = add_item(sums, key, op.inputs[2])
        substitute(op.graph, {op.outputs[0]: op.inputs[3]})
    else:
        value = getitem(sums, op.inputs[1]) if op.record is READ else sums
        keep_shapes(op.outputs, [value])
        substitute(op.graph, {op.outputs[0]: value})
    return sums


def _as_sums(tapes, array, found):
    """A gradient array that may be a tensor; None for all others."""
    create, uses = array[0], tapes.uses
    prefixes = [array[:n] for n in range(1, len(array) + 1)]
    if not _is_of_numbers(tapes, create) or not all(map(tapes.is_known, prefixes)):
        return None
    if not all(map(uses.is_plain, prefixes)):
        return None
    lookups = uses.lookups(array)
    users = [op for op in uses.users[array] if op.record is not LOOKUP]
    inner = [op for op in uses.users[array] if op.record is LOOKUP]
    if any(uses.array(op.outputs[0]) not in found for op in inner):
        return None
    if not all(_is_after(tapes, create, op) for op in users):
        return None
    asked = (op.attrs.get("clear_after_read") for op in lookups)
    clearing = any(clears(each, len(array) > 2) for each in asked)
    if not _may_read(tapes, create, [op for op in users if op.record not in WRITES], clearing):
        return None
    if not all(_is_added(tapes, op, create) for op in users if op.record in WRITES):
        return None
    return _Sums(create, lookups, users)


def _is_of_numbers(tapes, create):
    """Whether an array has numbers for elements, and a size that is known after all writes."""
    if create.record is not CREATE:
        return False
    dtype = create.attrs["dtype"]
    if dtype.kind not in "iufc" or dtype.itemsize <= 2:  # sums of halves are taken in float32
        return False
    if create.attrs["dynamic_size"]:
        filled = filling(tapes, create)
        if filled is not None:
            return filled.value.kind == DATA and filled.value.spec.rank == 0
        appended = create.facts.is_appended and create.attrs["element_shape"] == ()
        return appended and tapes.last_flow(create) is not None
    size = create.inputs[0]
    natural = size.spec.rank == 0 and tapes.is_natural(tapes.number(size))
    return natural and create.attrs["element_shape"] == ()


def _is_after(tapes, create, op):
    """Whether an operation comes after all that fills an array, in bodies that run in turn."""
    home = create.graph
    if not lies_in(op.graph, home):
        return False
    here = [op, *(owner for owner in owners(op) if lies_in(owner.graph, home))]
    if any(is_loop(owner) and inner.graph is Loop(owner).cond for inner, owner in pairwise(here)):
        return False
    if not create.attrs["dynamic_size"]:
        return True
    number = tapes.order(home)
    writes = [each for each in tapes.uses.users[(create,)] if each.record in WRITES]
    return all(number[holder_in(home, each)] < number[here[-1]] for each in writes)


def _may_read(tapes, create, reads, clearing):
    """Whether what reads a gradient array finds in a tensor what it finds there."""
    gathers = [op for op in reads if op.record is GATHER]
    if not all(_is_whole(tapes, op, create) for op in gathers):
        return False
    if clearing and gathers:
        return len(reads) == 1
    return all(op in gathers or _is_of_a_slot(op, create) for op in reads)


def _is_of_a_slot(read, create):
    """Whether a read is of reverse mode's; a user's may be past the end, where it finds zero."""
    return (
        read.record is READ
        and read.attrs["dtype"] == create.attrs["dtype"]
        and read.facts.of_adjoint
    )


def _is_whole(tapes, stack, create):
    """Whether all slots are gathered in order, once, where the forward array is made."""
    count = slots_in_order(stack)
    return (
        stack.graph is create.graph
        and not create.attrs["dynamic_size"]
        and count is not None
        and tapes.number(count) == tapes.number(create.inputs[0])
        and stack.attrs["dtype"] == create.attrs["dtype"]
        and stack.attrs.get("element_shape") in (None, ())
    )


def _is_added(tapes, write, create):
    """Whether a write adds numbers, to slots that there are.

    Reverse mode writes where the forward array was read. A user's slot is proven to exist: an
    addition past the end is an error also where nobody reads the sum, and code leaves that out.
    """
    value = write.inputs[2] if write.record in (WRITE, SCATTER) else None
    if value is None or value.dtype != create.attrs["dtype"]:
        return False
    own = write.facts.of_adjoint
    if write.record is SCATTER:
        return own and value.spec.rank == 1 and slots_in_order(write) is not None
    return value.spec.rank == 0 and (own or _has_slot(tapes, write, create))


def _has_slot(tapes, write, create):
    """Whether the slot of a write is proven to exist, in an array of a size that is known."""
    if create.attrs["dynamic_size"]:
        filled = filling(tapes, create)
        size = None if filled is None else tapes.iterations(filled.loop)
    else:
        size = tapes.number(create.inputs[0])
    return tapes.is_within(write.inputs[1], size, write.graph)
