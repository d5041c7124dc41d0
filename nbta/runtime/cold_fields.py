"""Cold fields: what few stores have, in a block of its own that is made when somebody needs it.

Most arrays have no name, no gradient array and no failure in a parallel loop. A million small
arrays are a million stores, so a store has one word for all of these: the owner of the block, or 0.
"""

import numpy as np

from nbta.runtime import memory as mem
from nbta.runtime.buffers import may_allocate
from nbta.runtime.memory import kernel
from nbta.runtime.request import WORDS

# Arrays, each as owner, address and number of items:
GRADIENTS = 0  # owners of the gradient arrays' stores, as bytes
SOURCES = 3  # their numbers by the hashes of their sources, where they are many, as bytes
SOURCE = 6  # of a gradient array, as code points
NAME = 9  # that the array was given, or its forward array, as code points
SUFFIX = 12  # what its name adds to that: @SOURCE, maybe twice
OFFSETS = 15  # of packed elements, after their head (see `nbta.runtime.packed`)
_ARRAYS = 18
# Numbers:
SOURCE_HASH = 18  # of a gradient array
FAILED = 19  # status of a failure in a parallel loop, kept until the loop ends; 0: none
FAILED_IN = 20  # its operation
FAILED_AT = 21  # the array's own store, or that of a gradient array of it
FAILURE = 22  # its request
_COUNT = FAILURE + WORDS


@kernel
def _finalize_cold(address):
    """Give back what the arrays hold."""
    for place in range(0, _ARRAYS, 3):
        mem.release(mem.load_int(address + 8 * place))
    return 0


@kernel
def cold_address(s, place):
    """Address of a cold field of a store that has such."""
    return mem.owner_payload(s._cold) + 8 * place


@kernel
def ensure_cold(s):
    """Let a store have cold fields; whether there is memory."""
    if s._cold:
        return True
    owner = mem.allocate_finalized(8 * _COUNT, _finalize_cold) if may_allocate() else 0
    if owner:
        mem.clear_bytes(mem.owner_payload(owner), 8 * _COUNT)
        s._cold = owner
    return owner != 0


@kernel
def cold_number(s, place):
    """A number among the cold fields; 0 where there are none."""
    return mem.load_int(cold_address(s, place)) if s._cold else 0


@kernel
def put_cold_number(s, place, number):
    """Change a number among the cold fields that there are."""
    mem.store_int(cold_address(s, place), number)


@kernel
def _cold_array(s, place, dtype):
    if s._cold == 0:
        return mem.adopt_array(0, 0, 0, dtype)
    address = cold_address(s, place)
    owner = mem.load_int(address)
    mem.retain(owner)
    return mem.adopt_array(owner, mem.load_int(address + 8), mem.load_int(address + 16), dtype)


@kernel
def cold_bytes(s, place):
    """An array of bytes among the cold fields; empty where there are none."""
    return _cold_array(s, place, np.uint8)


@kernel
def cold_points(s, place):
    """An array of code points among the cold fields; empty where there are none."""
    return _cold_array(s, place, np.int32)


@kernel
def put_cold_array(s, place, array):
    """Replace an array among the cold fields that there are."""
    address, owner = cold_address(s, place), mem.owner_of(array)
    before = mem.load_int(address)
    mem.retain(owner)
    mem.store_int(address, owner)
    mem.store_int(address + 8, mem.address_of(array))
    mem.store_int(address + 16, len(array))
    mem.release(before)
