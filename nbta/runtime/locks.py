"""The lock of each store, and Python's own.

A lock is one word of its store, held for the length of a kernel. Whoever holds it never waits for
the interpreter's lock, so that one may wait for a store with the interpreter's lock held.

A fork would leave the child with what a kernel of another thread had done half, so it waits until
no lock is held (`settings.LOCKS`), and nobody gets one meanwhile. Holders of the interpreter's
lock do, as no fork comes between: the thread that forks may be waiting for them.
"""

import sys

from numba import types

from nbta.runtime import settings
from nbta.runtime.atomics import pause, publish_int, swap_int
from nbta.runtime.memory import kernel
from nbta.runtime.settings import add_to_setting, setting
from nbta.runtime.store import FIELD, field_address

_yield = "SwitchToThread" if sys.platform == "win32" else "sched_yield"
_let_others_run = types.ExternalFunction(_yield, types.int32())

# Python's own lock, for code that may run without it.
python_held = types.ExternalFunction("PyGILState_Check", types.int32())
hold_python = types.ExternalFunction("PyGILState_Ensure", types.int32())
let_python_go = types.ExternalFunction("PyGILState_Release", types.void(types.int32))
forget_python_error = types.ExternalFunction("PyErr_Clear", types.void())

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
