"""A slot: what each operation does to it, and the ways in which that is done.

A slot's state is a byte of bits. The rules below say from which states an operation goes on, what
it answers from all others, and which state it leaves. They are plain functions of numbers, and all
who touch a slot ask them:

* *at once*, without atomic steps: whoever holds the interpreter's lock, which is Python's own calls
  and the fast paths of users' compiled code;
* *by a claim*: the iterations of parallel loops. There a slot belongs to whoever changes its state
  first, in one step. A writer makes it PENDING, copies, and then publishes WRITTEN; a reader makes
  it read. What is not that simple (memory that is not there yet, ragged elements, errors) is left
  to the kernels, which hold the array's lock and claim slots in the same way, as others may do so
  meanwhile;
* kernels (`writing`, `reading`), and the arrays of compiled graphs (`plain`).

States of slots that were appended may not be stored yet (`nbta.runtime.layout.expect_appends`);
then no fast path but that of appends takes a free slot, and kernels store them first.

A child of a fork has no iterations of its parent's loops, and would wait for ever for a slot that
one of them had claimed. There the limits of another epoch count as 0, until a kernel resets them.
"""

from functools import partial
from types import FunctionType

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from nbta.errors import STATUS
from nbta.runtime import memory as mem
from nbta.runtime import settings
from nbta.runtime.accumulation import rounds
from nbta.runtime.fields import field, set_field
from nbta.runtime.memory import kernel, publish_byte, relax, seen_byte, seen_int, swap_byte
from nbta.runtime.numba_private import cgutils
from nbta.runtime.request import SLOT
from nbta.runtime.settings import setting
from nbta.runtime.store import FIELD

#: Bits of a state. ZERO: written, but its zeros take no memory yet. PENDING: claimed by an
#: operation that runs. DEPOSIT: added to in the parallel loop that runs.
WRITTEN, READ, CLEARED, ZERO, PENDING, DEPOSIT = 1, 2, 4, 8, 16, 32
#: The state of a slot that no operation has touched.
FREE = 0
#: Those that tell whether there is a value: WRITTEN alone.
VALUE = WRITTEN | CLEARED | ZERO | PENDING

#: Part of kernels, inlined wherever it is used, fast paths among them.
rule = partial(kernel, forceinline=True)


def in_python(function):
    """A rule as a function of Python's; parts of kernels give nothing when Python calls them."""
    own = function.py_func
    names = {
        name: own.__globals__[name] for name in own.__code__.co_names if name in own.__globals__
    }
    for name, value in names.items():
        names[name] = in_python(value) if hasattr(value, "py_func") else value
    return FunctionType(own.__code__, names)


# The rules.


@rule
def holds_value(state):
    """Whether there is a value that takes memory and that nobody is about to change."""
    return state & VALUE == WRITTEN


@rule
def holds_sum(state):
    """Whether there are terms to add to; else the first one is stored."""
    return state & (WRITTEN | ZERO) == WRITTEN


@rule
def write_status(state, gradient):
    """Forward slots are written once; gradient slots take terms until they are read."""
    if state & READ:
        return STATUS.already_read
    if state & (WRITTEN | PENDING) and not gradient:
        return STATUS.already_written
    return STATUS.ok


@rule
def claim_status(state, gradient, ordered):
    """`write_status` in a parallel loop.

    A sum of floating point numbers depends on the order of its terms, and a parallel loop has
    none: within one, a slot takes one such (``ordered``) term.
    """
    if state & DEPOSIT and ordered and not state & READ:
        return STATUS.deposited_twice
    return write_status(state, gradient)


@rule
def read_status(state, known):
    """A cleared slot is gone; an unwritten one is zeros, if their shape is known."""
    if state & (CLEARED | PENDING):
        return STATUS.cleared
    return STATUS.ok if known or state & WRITTEN else STATUS.unknown_element_shape


@rule
def look_status(state, known, gradient, parallel):
    """`read_status`, except for what other iterations of a parallel loop may be changing."""
    if parallel and not state & (CLEARED | PENDING) and (gradient or not state & WRITTEN):
        return STATUS.look_in_loop
    return read_status(state, known)


@rule
def claimed(state, gradient):
    """The state while a write that was claimed runs."""
    return state | PENDING | DEPOSIT if gradient else state | PENDING


@rule
def after_write(gradient, parallel):
    """The state that a write leaves."""
    return WRITTEN | DEPOSIT if gradient and parallel else WRITTEN


@rule
def after_read(clears):
    """The state that a read leaves; a look leaves the one that it found."""
    return WRITTEN | READ | CLEARED if clears else WRITTEN | READ


# At once. A store is its address here, or fields of it that were promoted to local variables.


@intrinsic
def likely(typingctx, condition):
    """The same condition; code for when it is false is laid out of the way."""

    def codegen(context, builder, sig, args):
        bit = ir.IntType(1)
        expect = ir.FunctionType(bit, [bit, bit])
        function = builder.module.declare_intrinsic("llvm.expect", [bit], expect)
        return builder.call(function, [args[0], cgutils.true_bit])

    return types.boolean(types.boolean), codegen


@rule
def below(index, limit):
    """``0 <= index < limit`` in one comparison."""
    return np.uint64(index) < np.uint64(limit)


@rule
def state_place(store, slot):
    """Address of a slot's state."""
    return field(store, FIELD.states) + slot


@rule
def is_free(store, slot):
    """Whether a slot takes its first value at once."""
    return likely(below(slot, field(store, FIELD.fast_write))) and likely(
        mem.load_byte(state_place(store, slot)) == FREE
    )


@rule
def is_next(store, slot):
    """Whether the slot after the last one takes its value at once, and its state later."""
    return likely(below(slot, field(store, FIELD.fast_append)))


@rule
def is_sum(store, slot):
    """Whether a gradient slot takes another term at once."""
    return likely(below(slot, field(store, FIELD.fast_add))) and likely(
        mem.load_byte(state_place(store, slot)) == WRITTEN
    )


@rule
def is_value(store, slot):
    """Whether a slot can be looked at at once."""
    return likely(below(slot, field(store, FIELD.fast_read))) and likely(
        holds_value(mem.load_byte(state_place(store, slot)))
    )


@rule
def occupy(store, place, slot):
    """Mark a free slot as written, its state being at ``place``; the array reaches this far.

    The value is stored ahead of this, which is 0.2 ns quicker than after it, and the place found
    ahead of the value: after a store of anything its address would be loaded again.
    """
    mem.store_byte(place, after_write(False, False))
    if slot >= field(store, FIELD.size):
        set_field(store, FIELD.size, slot + 1)


@rule
def extend(store, slot):
    """Let an array reach as far as a slot that `is_next`."""
    set_field(store, FIELD.size, slot + 1)


@rule
def take(store, slot):
    """Mark a slot as read where that is simple; False where it is not."""
    if is_value(store, slot):
        mem.store_byte(state_place(store, slot), field(store, FIELD.read_state))
        return True
    return False


# By a claim.


@kernel
def claim_limit(store, limit):
    """Slots below this may be claimed: one of the limits of loops that run in this process."""
    slots = seen_int(store + 8 * limit)
    return slots if seen_int(store + 8 * FIELD.epoch) == setting(settings.EPOCH) else 0


@kernel
def put_by_claim(store, slot, source):
    """Write to a free slot of a uniform array; False where the kernels must see to it."""
    if slot < 0 or slot >= claim_limit(store, FIELD.claim_write):
        return False
    state = seen_int(store + 8 * FIELD.states) + slot
    if not swap_byte(state, FREE, claimed(FREE, False)):
        return False
    nbytes = seen_int(store + 8 * FIELD.element_bytes)
    mem.copy_bytes(seen_int(store + 8 * FIELD.data) + slot * nbytes, source, nbytes)
    publish_byte(state, after_write(False, True))
    return True


@kernel
def take_by_claim(store, slot):
    """Mark a written slot of a uniform array as read; False where the kernels must see to it."""
    if slot < 0 or slot >= claim_limit(store, FIELD.claim_read):
        return False
    state = seen_int(store + 8 * FIELD.states) + slot
    after = seen_int(store + 8 * FIELD.read_state)
    while True:
        before = published(state)
        if not holds_value(before):
            return False
        if before == after or swap_byte(state, before, after):
            return True


@kernel
def seen_by_claim(store, slot):
    """Whether a uniform array has a value in a slot that can neither change nor be cleared.

    It takes no claim: nothing but marks of reads happens to such a slot any more.
    """
    if slot < 0 or slot >= claim_limit(store, FIELD.claim_read):
        return False
    if field(store, FIELD.gradient) != 0 or field(store, FIELD.read_state) & CLEARED != 0:
        return False
    return holds_value(published(seen_int(store + 8 * FIELD.states) + slot))


@kernel
def published(state):
    """A slot's state, once nobody is about to change its contents."""
    turn = 0
    while True:
        bits = seen_byte(state)
        if bits & PENDING == 0:
            return bits
        relax(turn)
        turn += 1


@kernel
def claim(s, r, index):
    """Claim a slot for the kernel that is about to write or add to it."""
    r[SLOT] = index
    place, ordered = s._states + index, rounds(s._dtype)
    while True:
        before = seen_byte(place)
        status = claim_status(before, s._gradient, ordered)
        if status != STATUS.ok:
            return status
        if before & PENDING:
            published(place)
        elif swap_byte(place, before, claimed(before, s._gradient)):
            return STATUS.ok


@kernel
def claim_read(s, r, index):
    """Mark a slot as read for the kernel that is about to hand it out."""
    r[SLOT] = index
    while True:
        before = published(s._states + index)
        status = read_status(before, True)  # whether its shape is known was found out before
        if status != STATUS.ok or swap_byte(s._states + index, before, s._read_state):
            return status
