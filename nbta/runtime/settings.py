"""Process-wide numbers that compiled code reads at run time.

They sit in one block of int64 whose address compiled code finds by symbol, so that nothing of
one process is baked into code that the next process loads from the disk cache.
"""

import ctypes
import os
import sys
import time

import numpy as np
from llvmlite import binding
from numba import types

from nbta.runtime.memory import (
    HEAD,
    SETTINGS_SYMBOL,
    add_int,
    kernel,
    load_int,
    setting_address,
    store_int,
)
from nbta.runtime.request import WORDS
from nbta.tuning import POOL_BYTES as POOL_DEFAULT
from nbta.tuning import POOL_PLACES

NAMES = (
    "next_id",  # counter after the k of a handle NAME_k
    "guard",  # guard bytes on each side of a buffer (0: none; set by NBTA_DEBUG=1)
    "map_threshold",  # from this many bytes on, a buffer is mapped pages, grown in place
    "release_threshold",  # from this many bytes on, clearing reads give pages back
    "first_capacity",  # slots of a growing array at its first write
    "live_bytes",  # bytes in buffers now
    "allocations_left",  # allocations that still succeed; negative: no limit (tests inject one)
    "int_type",  # addresses of Python type objects, for the fast path of eager writes
    "float_type",
    "float64_type",
    "array_type",
    "object_head",  # bytes of a Python object before its own fields
    "storage_entry",  # addresses of the kernels' entry points (see `nbta.runtime.compiled`)
    "bulk_entry",
    "gradient_entry",
    "lanes_entry",
    "epoch",  # 1, and one more for each fork on the way to this process
    "forks",  # forks that are about to happen
    "locks",  # locks of stores that are held or waited for
    "loops",  # parallel loops with arrays that run now, one for each array of each
    "stray",  # status of a failure in one of them, of an array that an iteration made; 0: none
    "stray_in",  # its operation
    "large",  # from this many bytes on, a call from Python lets go of the interpreter's lock
    "pool_limit",  # bytes of dropped arrays that the process keeps (see `nbta.runtime.pool`)
    "pool_bytes",  # ... that are so now
    "pool_clock",  # how often memory was put there
)
(
    NEXT_ID,
    GUARD,
    MAP_THRESHOLD,
    RELEASE_THRESHOLD,
    FIRST_CAPACITY,
    LIVE_BYTES,
    ALLOCATIONS_LEFT,
    INT_TYPE,
    FLOAT_TYPE,
    FLOAT64_TYPE,
    ARRAY_TYPE,
    OBJECT_HEAD,
    STORAGE_ENTRY,
    BULK_ENTRY,
    GRADIENT_ENTRY,
    LANES_ENTRY,
    EPOCH,
    FORKS,
    LOCKS,
    LOOPS,
    STRAY,
    STRAY_IN,
    LARGE,
    POOL_LIMIT,
    POOL_BYTES,
    POOL_CLOCK,
) = range(len(NAMES))

NEVER = 2**62
#: After the settings: the request of the stray failure.
STRAY_REQUEST = len(NAMES)
#: After that: the places of the pool of dropped memory, and the words of each.
POOL_TABLE = STRAY_REQUEST + WORDS
POOL_STATE, POOL_BASE, POOL_TOTAL, POOL_TOUCHED, POOL_NONZERO, POOL_KIND, POOL_AGE = range(7)
POOL_PLACE = 8
#: States of a place. BUSY: a thread puts memory there or takes it.
POOL_EMPTY, POOL_BUSY, POOL_FULL = range(3)
_block = (ctypes.c_int64 * (POOL_TABLE + POOL_PLACES * POOL_PLACE))()
binding.add_symbol(SETTINGS_SYMBOL, ctypes.addressof(_block))


def get(field: int) -> int:
    """The value of one setting."""
    return _block[field]


def put(field: int, value: int) -> int:
    """Change one setting; gives its old value."""
    old, _block[field] = _block[field], value
    return old


#: Types that compiled code knows by their addresses; held here for as long as the block.
TYPES = {INT_TYPE: int, FLOAT_TYPE: float, FLOAT64_TYPE: np.float64, ARRAY_TYPE: np.ndarray}


def _defaults():
    """Mapped, growable-in-place buffers need Linux's mmap flags; elsewhere malloc serves."""
    linux = sys.platform == "linux"
    put(GUARD, 64 if os.environ.get("NBTA_DEBUG") == "1" else 0)
    put(MAP_THRESHOLD, 1 << 20 if linux else NEVER)
    put(RELEASE_THRESHOLD, 32 << 20 if linux else NEVER)
    put(FIRST_CAPACITY, 8)
    put(ALLOCATIONS_LEFT, -1)
    put(POOL_LIMIT, POOL_DEFAULT)
    put(EPOCH, 1)
    put(LARGE, 64 << 10)  # adding so much takes 7 us; letting go and coming back 0.9 us
    put(OBJECT_HEAD, HEAD)
    for field, kind in TYPES.items():
        put(field, id(kind))


_defaults()


def _before_fork():
    """Wait until no thread is in the middle of changing an array."""
    put(FORKS, get(FORKS) + 1)
    while True:
        time.sleep(0)  # also a barrier: the count is looked at after the fork was announced
        if get(LOCKS) == 0:
            return


def _after_fork():
    put(FORKS, get(FORKS) - 1)


def _in_child():
    """No other thread is here: whom they counted is gone."""
    put(FORKS, 0)
    put(LOCKS, 0)
    put(LOOPS, 0)
    put(EPOCH, get(EPOCH) + 1)
    held = 0
    for place in range(POOL_TABLE, len(_block), POOL_PLACE):
        if _block[place + POOL_STATE] == POOL_FULL:
            held += _block[place + POOL_TOUCHED]
        else:
            _block[place + POOL_STATE] = POOL_EMPTY
    put(POOL_BYTES, held)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_in_child)


@kernel
def setting(field):
    """A setting's value, in compiled code."""
    return load_int(setting_address() + 8 * types.int64(field))


@kernel
def change_setting(field, value):
    """Change a setting in compiled code."""
    store_int(setting_address() + 8 * types.int64(field), value)


@kernel
def add_to_setting(field, value):
    """Add to a setting in one step; gives what it was."""
    return add_int(setting_address() + 8 * types.int64(field), value)
