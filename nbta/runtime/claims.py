"""Claims: how the iterations of a parallel loop share an array without taking its lock.

In a parallel loop a slot belongs to whoever changes its state byte first, in one step. A writer
makes it PENDING, copies, and then publishes WRITTEN; a reader makes it read. What is not that
simple (memory that is not there yet, ragged elements, errors) is left to the kernels, which hold
the array's lock and claim slots in the same way, as others may do so meanwhile.

A child of a fork has no iterations of its parent's loops, and would wait for ever for a slot that
one of them had claimed. There the limits of another epoch count as 0, until a kernel resets them.
"""

from nbta.runtime import memory as mem
from nbta.runtime import settings
from nbta.runtime import status as st
from nbta.runtime.arithmetic import rounds
from nbta.runtime.atomics import publish_byte, seen_byte, seen_int, swap_byte
from nbta.runtime.locks import relax
from nbta.runtime.memory import kernel
from nbta.runtime.request import SLOT
from nbta.runtime.settings import setting
from nbta.runtime.store import CLEARED, DEPOSIT, FIELD, PENDING, READ, WRITTEN, ZERO


@kernel
def _word(store, field):
    """One int64 field of the store at an address, and all that was written before it."""
    return seen_int(store + 8 * field)


@kernel
def claim_limit(store, field):
    """Slots below this may be claimed: one of the limits of loops that run in this process."""
    limit = _word(store, field)
    return limit if _word(store, FIELD.epoch) == setting(settings.EPOCH) else 0


@kernel
def put_by_claim(store, slot, source):
    """Write to a free slot of a uniform array; False where the kernels must see to it."""
    if slot < 0 or slot >= claim_limit(store, FIELD.claim_write):
        return False
    state = _word(store, FIELD.states) + slot
    if not swap_byte(state, 0, PENDING):
        return False
    nbytes = _word(store, FIELD.element_bytes)
    mem.copy_bytes(_word(store, FIELD.data) + slot * nbytes, source, nbytes)
    publish_byte(state, WRITTEN)
    return True


@kernel
def take_by_claim(store, slot):
    """Mark a written slot of a uniform array as read; False where the kernels must see to it."""
    if slot < 0 or slot >= claim_limit(store, FIELD.claim_read):
        return False
    state, after = _word(store, FIELD.states) + slot, _word(store, FIELD.read_state)
    while True:
        before = settled(state)
        if before & (WRITTEN | CLEARED | ZERO) != WRITTEN:
            return False
        if before == after or swap_byte(state, before, after):
            return True


@kernel
def settled(state):
    """A slot's state, once nobody is about to change its contents."""
    turn = 0
    while True:
        bits = seen_byte(state)
        if bits & PENDING == 0:
            return bits
        relax(turn)
        turn += 1


@kernel
def claim_write(s, r, index):
    """Claim a free slot for the kernel that is about to write it."""
    if swap_byte(s._states + index, 0, PENDING):
        return st.OK
    r[SLOT] = index
    return st.ALREADY_READ if seen_byte(s._states + index) & READ else st.ALREADY_WRITTEN


@kernel
def claim_read(s, r, index):
    """Mark a slot as read for the kernel that is about to hand it out."""
    r[SLOT] = index
    while True:
        before = settled(s._states + index)
        if before & CLEARED:
            return st.CLEARED
        if swap_byte(s._states + index, before, s._read_state):
            return st.OK


@kernel
def claim_deposit(s, r, index):
    """Claim a slot of a gradient array for a term.

    A sum of floating point numbers depends on the order of its terms, and a parallel loop has
    none: within one, a slot takes one term.
    """
    r[SLOT] = index
    while True:
        before = seen_byte(s._states + index)
        if before & READ:
            return st.ALREADY_READ
        if before & DEPOSIT and rounds(s._dtype):
            return st.DEPOSITED_TWICE
        if before & PENDING:
            settled(s._states + index)
        elif swap_byte(s._states + index, before, before | PENDING | DEPOSIT):
            return st.OK


@kernel
def claim(s, r, index):
    """Claim a slot for the kernel that is about to write or add to it."""
    return claim_deposit(s, r, index) if s._gradient else claim_write(s, r, index)


@kernel
def written_state(s):
    """The state of a slot that was just written."""
    return WRITTEN | DEPOSIT if s._parallel and s._gradient else WRITTEN
