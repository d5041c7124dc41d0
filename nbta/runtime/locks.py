"""The lock of each store, and Python's own.

A lock is one word of its store: 0, or the number of the process's *epoch* while somebody holds
it. A fork starts another epoch in the child (`settings.EPOCH`), and a lock of an earlier one was
held by a thread that the child does not have: it may be taken.

Whoever holds a lock never waits for the interpreter's lock, so that one may wait for a store with
the interpreter's lock held. A lock is held for the length of a kernel.
"""

import sys

from numba.core import types

from nbta.runtime import settings
from nbta.runtime.atomics import pause, publish_int, seen_int, swap_int
from nbta.runtime.memory import kernel
from nbta.runtime.settings import setting
from nbta.runtime.store import FIELD, field_address

_yield = "SwitchToThread" if sys.platform == "win32" else "sched_yield"
_let_others_run = types.ExternalFunction(_yield, types.int32())

#: Turns of a waiting loop before other threads get the processor: 2 us, about a system call.
_SPINS = 64


@kernel
def relax(turn):
    """One turn of a loop that waits for another thread."""
    if turn < _SPINS:
        pause()
    else:
        _let_others_run()


@kernel
def lock(s):
    """Wait until no other thread holds a store's lock, and hold it."""
    place, epoch = field_address(s, FIELD.lock), setting(settings.EPOCH)
    turn = 0
    while True:
        held = seen_int(place)
        if held != epoch and swap_int(place, held, epoch):
            return
        relax(turn)
        turn += 1


@kernel
def unlock(s):
    """Let the next thread in."""
    publish_int(field_address(s, FIELD.lock), 0)


# Python's own lock, for code that may run without it.
python_held = types.ExternalFunction("PyGILState_Check", types.int32())
hold_python = types.ExternalFunction("PyGILState_Ensure", types.int32())
let_python_go = types.ExternalFunction("PyGILState_Release", types.void(types.int32))
forget_python_error = types.ExternalFunction("PyErr_Clear", types.void())
