"""Who uses a store without the interpreter's lock, what that changes, and the store's own lock.

Python code and users' plain ``@njit`` functions hold the interpreter's lock, so they come one
after another and need no other: their fast paths have no atomic steps, and their kernels take no
lock. A store has *users* while anybody works on it without the interpreter's lock:

* calls from Python that move much and let go of it meanwhile (`lend`),
* nogil functions that were given the array (`arrive`), and
* parallel loops, which run without it (`enter`).

With users there are no fast paths, and kernels run under the store's lock. Users come and go with
the interpreter's lock held, when nobody is in the middle of a fast path; so the counts need no
atomic steps either. Gradient arrays have the users of their forward arrays, from which anybody
can look them up.

A lock is one word of its store, held for the length of a kernel. Whoever holds it never waits for
the interpreter's lock, so that one may wait for a store with the interpreter's lock held.

A fork would leave the child with what a kernel of another thread had done half, so it waits until
no lock is held (`settings.LOCKS`), and nobody gets one meanwhile. Holders of the interpreter's
lock do, as no fork comes between: the thread that forks may be waiting for them.
"""

import numpy as np
from numba import types

from nbta.runtime import memory as mem
from nbta.runtime import request as rq
from nbta.runtime import settings
from nbta.runtime.cold_fields import (
    FAILED,
    FAILED_AT,
    FAILED_IN,
    FAILURE,
    cold_address,
    cold_number,
    ensure_cold,
    put_cold_number,
)
from nbta.runtime.layout import refresh, settle
from nbta.runtime.memory import kernel, publish_int, relax, seen_int, setting_address, swap_int
from nbta.runtime.packed import forget_packed
from nbta.runtime.settings import add_to_setting, change_setting, setting
from nbta.runtime.slots import DEPOSIT, PENDING
from nbta.runtime.sources import gradients_of
from nbta.runtime.store import FIELD, field_address, replace_memory, store_address, store_at

# Python's own lock, for code that may run without it.
python_held = types.ExternalFunction("PyGILState_Check", types.int32())
hold_python = types.ExternalFunction("PyGILState_Ensure", types.int32())
let_python_go = types.ExternalFunction("PyGILState_Release", types.void(types.int32))
forget_python_error = types.ExternalFunction("PyErr_Clear", types.void())


@kernel
def lock(s):
    """Wait until no other thread holds a store's lock, and hold it."""
    wait_for_forks()
    turn = 0
    while not swap_int(field_address(s, FIELD.lock), 0, 1):
        relax(turn)
        turn += 1


@kernel
def wait_for_forks():
    """Count one more holder of a lock, unless a fork is about to come."""
    turn = 0
    while True:
        add_to_setting(settings.LOCKS, 1)
        if setting(settings.FORKS) == 0 or python_held():
            return
        add_to_setting(settings.LOCKS, -1)
        relax(turn)
        turn += 1


@kernel
def unlock(s):
    """Let the next thread in."""
    publish_int(field_address(s, FIELD.lock), 0)
    add_to_setting(settings.LOCKS, -1)


@kernel
def acquire(s):
    """Hold a store's lock where it has users; whether it is held. States are settled then."""
    if s._users == 0:
        settle(s)
        return False
    lock(s)
    forget_vanished(s)
    return True


@kernel
def release(s, held):
    """Let go of a store's lock, if it is held."""
    if held:
        unlock(s)


@kernel
def forget_vanished(s):
    """In a process that was forked: nobody uses the store whom the fork left after.

    What those had claimed and not yet written is free again.
    """
    epoch = setting(settings.EPOCH)
    if s._epoch == epoch:
        return
    s._epoch = epoch
    if s._users:
        s._lent = s._threads = s._parallel = 0
        count_users(s)
        drop_bits(s, PENDING | DEPOSIT)
        refresh(s)


@kernel
def count_users(s):
    """Bring up to date what follows from the counts of users."""
    s._users = s._lent + s._threads + s._parallel
    if s._parallel == 0:
        s._claims = 0


@kernel
def drop_bits(s, bits):
    """Take state bits from all slots."""
    states = mem.array_at(s._states, min(s._size, s._capacity), np.uint8)
    keep = np.uint8(~bits & 0xFF)
    for i in range(len(states)):
        states[i] &= keep


@kernel
def lend(s):
    """A call from Python is about to let go of the interpreter's lock.

    This waits for no lock: whoever holds the store's lets nobody onto a fast path anyway.
    """
    forget_vanished(s)
    settle(s)
    s._lent += 1
    s._users += 1
    s._fast_write = s._fast_read = s._fast_add = 0


@kernel
def take_back(s):
    """The call holds the interpreter's lock again."""
    s._lent -= 1
    s._users -= 1
    if s._users == 0:
        refresh(s)


@kernel
def arrive(s):
    """ARRIVE: a nogil function begins. It may not claim slots that a loop's iterations claim."""
    s._threads += 1
    s._claims = 0


@kernel
def enter(s, r):
    """ENTER: a parallel loop begins; INDEX tells whether its function is a nogil one.

    Its iterations may claim slots if all other users keep to the interpreter's or the store's
    lock. A nogil function that waits for the end of its own loop does nothing meanwhile.
    """
    if s._parallel == 0:
        s._claims = s._threads <= (1 if r[rq.INDEX] else 0)
        forget_failure(s)
    s._parallel += 1


@kernel
def leave(s):
    """LEAVE: a parallel loop has ended."""
    s._parallel -= 1
    if s._threads:
        s._claims = 0  # its function goes on beside the iterations of other loops
    if s._parallel == 0 and s._gradient:
        drop_bits(s, DEPOSIT)


@kernel
def change_use(operation, s, r):
    """ARRIVE, DEPART, ENTER and LEAVE, for a store and its gradient arrays; it is locked."""
    s._epoch = setting(settings.EPOCH)
    if operation == rq.ARRIVE:
        arrive(s)
    elif operation == rq.DEPART:
        s._threads -= 1
    elif operation == rq.ENTER:
        enter(s, r)
    else:
        leave(s)
    count_users(s)
    if s._closed:
        free(s)
    refresh(s)
    owners = gradients_of(s)
    again = setting(settings.STORAGE_ENTRY)
    for i in range(len(owners)):
        store = mem.owner_payload(owners[i])
        mem.call_entry(again, operation, store, mem.address_of(r))
        if operation == rq.LEAVE:
            hand_up_failure(s, store_at(store))


@kernel
def inherit(s, g):
    """A new gradient array has the users of its forward array that know no single array."""
    g._threads, g._parallel, g._claims = s._threads, s._parallel, s._claims
    g._epoch = s._epoch
    count_users(g)


@kernel
def free(s):
    """Free a closed store's memory, unless somebody may be about to look at it."""
    if s._threads == 0 and s._parallel == 0:
        replace_memory(s, 0, 0, 0, 0, 0)
        forget_packed(s)


@kernel
def failure_words(s):
    """Where the request of a failure in a parallel loop is kept; there are cold fields."""
    return mem.array_at(cold_address(s, FAILURE), rq.WORDS, np.int64)


@kernel
def forget_failure(s):
    """No failure is kept any more."""
    if s._cold:
        put_cold_number(s, FAILED, 0)


@kernel
def put_failure(s, status, operation, store, r):
    """Keep a failure, with its request."""
    put_cold_number(s, FAILED, status)
    put_cold_number(s, FAILED_IN, operation)
    put_cold_number(s, FAILED_AT, store)
    copy_request(failure_words(s), r)


@kernel
def copy_request(target, source):
    """Copy the words of a request.

    An assignment of arrays would bring Numba's text for those that do not fit into each function
    that can fail, and into each of a user's.
    """
    mem.copy_bytes(mem.address_of(target), mem.address_of(source), 8 * rq.WORDS)


@kernel
def keep_failure(status, operation, s, r):
    """Keep a failure until the loop ends: the one with the lowest slot.

    Without memory to keep it here, it is one of the process.
    """
    held = acquire(s)
    kept = ensure_cold(s)
    if kept and lowest_failure(s, r):
        put_failure(s, status, operation, store_address(s), r)
    release(s, held)
    if not kept:
        keep_stray(status, operation, r)


@kernel
def lowest_failure(s, r):
    """Whether no failure at a lower slot than a request's is kept."""
    return cold_number(s, FAILED) == 0 or r[rq.SLOT] < failure_words(s)[rq.SLOT]


@kernel
def hand_up_failure(s, g):
    """Let a gradient array's failure be that of the array, which the loop may know alone."""
    held = acquire(g)
    status, operation, store = failure_facts(g)
    if status:
        if not ensure_cold(s):
            keep_stray(status, operation, failure_words(g))
        elif lowest_failure(s, failure_words(g)):
            put_failure(s, status, operation, store, failure_words(g))
    if g._parallel == 0:
        forget_failure(g)
    release(g, held)


@kernel
def failure_facts(s):
    """Status, operation and store of the failure that is kept; status 0 for none."""
    return cold_number(s, FAILED), cold_number(s, FAILED_IN), cold_number(s, FAILED_AT)


@kernel
def kept_failure(s, r):
    """Status, operation and store of the failure that is kept; status 0 for none.

    Its request goes to ``r``. It is forgotten once no loop uses the array.
    """
    held = acquire(s)
    status, operation, store = failure_facts(s)
    if status:
        copy_request(r, failure_words(s))
    if s._parallel == 0:
        forget_failure(s)
    release(s, held)
    return status, operation, store


@kernel
def keep_stray(status, operation, r):
    """Keep a failure of an array that an iteration made: nobody else knows the array.

    The first is kept until the last loop has ended. Where several loops run, all of them raise it.
    """
    place = setting_address() + 8 * settings.STRAY
    if swap_int(place, 0, -1):
        change_setting(settings.STRAY_IN, operation)
        copy_request(stray_request(), r)
        publish_int(place, status)


@kernel
def stray_request():
    """Where the request of a stray failure is kept."""
    return mem.array_at(setting_address() + 8 * settings.STRAY_REQUEST, rq.WORDS, np.int64)


@kernel
def stray_failure(r):
    """Status and operation of a stray failure, with its request; status 0 for none."""
    status = seen_int(setting_address() + 8 * settings.STRAY)
    if status <= 0:
        return 0, 0
    operation = setting(settings.STRAY_IN)
    copy_request(r, stray_request())
    if setting(settings.LOOPS) == 0:
        change_setting(settings.STRAY, 0)
    return status, operation
