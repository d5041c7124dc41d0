"""Kernels that read one slot.

A uniform array hands out views of its own buffer, a ragged one its blocks. Where reads give
memory back (large clearing arrays), they copy the element out first, so no view loses its pages.
"""

import numpy as np

from nbta.runtime import memory as mem
from nbta.runtime import status as st
from nbta.runtime.arithmetic import is_half, narrow
from nbta.runtime.buffers import HUGE_PAGE, give_back, may_allocate
from nbta.runtime.claims import claim_read, settled
from nbta.runtime.layout import (
    PATTERN,
    block_at,
    block_owner,
    count_bytes,
    gives_back,
    new_block,
    pattern_of,
    prepare,
    refresh,
    shape_known,
    slot_data,
    state_of,
    tell_pattern,
    tell_slot_shape,
)
from nbta.runtime.memory import kernel
from nbta.runtime.request import (
    EXPECTED,
    GOT,
    INDEX,
    OUT_RANK,
    OUT_SHAPE,
    OWNER,
    RESULT,
    SLOT,
)
from nbta.runtime.store import (
    BLOCK_RANK,
    BLOCK_SHAPE,
    CLEARED,
    PENDING,
    RAGGED,
    WRITTEN,
    ZERO,
)
from nbta.runtime.vector_code import room
from nbta.runtime.writing import check_array


@kernel
def check_read(s, r, index):
    """Whether a slot has, or can make, a value to read."""
    r[SLOT] = index
    if index < 0 or (index >= s._size and not s._gradient):
        r[EXPECTED] = s._size
        return st.READ_OUT_OF_RANGE
    if index >= s._size and s._parallel:
        return st.GROWTH_IN_LOOP
    state = settled(s._states + index) if s._parallel else state_of(s, index)
    if state & (CLEARED | PENDING):
        return st.CLEARED
    if state & WRITTEN == 0 and not shape_known(s):
        tell_pattern(s, r)
        return st.UNKNOWN_ELEMENT_SHAPE
    return st.OK


@kernel
def make_readable(s, r, index):
    """Room for a slot that may lie past a gradient array's end, and zeros where it has none."""
    pattern = pattern_of(s, room(PATTERN))
    status = prepare(s, r, max(index + 1, s._size), pattern[0], pattern, 1)
    if status == st.OK and s._layout == RAGGED:
        status = fill_block(s, r, index)
    return status


@kernel
def fill_block(s, r, index):
    """A block of zeros for a ragged slot that has no data."""
    if state_of(s, index) & (WRITTEN | ZERO) == WRITTEN:
        return st.OK
    tell_slot_shape(s, r, index)
    room = count_bytes(r[OUT_RANK], r, OUT_SHAPE, s._storage_itemsize)
    owner = new_block(r[OUT_RANK], r, OUT_SHAPE, room)
    if owner == 0:
        r[GOT], r[EXPECTED] = 1, room
        return st.TOO_LARGE
    mem.release(block_owner(s, index))
    mem.store_int(s._data + 8 * index, owner)
    mem.clear_bytes(slot_data(s, index), room)
    return st.OK


@kernel
def take_copy(s, r, source, count):
    """Copy ``count`` items into memory of their own, in the dtype that users see."""
    nbytes = count * s._itemsize
    owner = mem.allocate_owner(nbytes) if may_allocate() else 0
    if owner == 0:
        r[GOT], r[EXPECTED] = 1, nbytes
        return st.TOO_LARGE
    r[OWNER], r[RESULT] = owner, mem.owner_payload(owner)
    copy_items(s, r[RESULT], source, count)
    return st.OK


@kernel
def copy_items(s, target, source, count):
    """Copy stored items out, in the dtype that users see."""
    if is_half(s._dtype) and s._gradient:
        narrow(s._dtype, target, source, count)
    else:
        mem.copy_bytes(target, source, count * s._itemsize)


@kernel
def mark_read(s, index):
    """Note that a slot was read; a clearing array gives a ragged block's reference up."""
    if index >= s._size:
        s._size = index + 1
    mem.store_byte(s._states + index, s._read_state)
    if s._clear_after_read and s._layout == RAGGED:
        strip_block(s, index)


@kernel
def strip_block(s, index):
    """Give a block up and keep its shape, which a gradient array asks for later."""
    old = block_owner(s, index)
    head = block_at(old)
    stub = new_block(head[BLOCK_RANK], head, BLOCK_SHAPE, 0)
    if stub:  # without memory for a stub, the block itself stays: nothing else changes
        mem.store_int(s._data + 8 * index, stub)
        mem.release(old)


@kernel
def return_pages(s, index):
    """Give back the pages of a stretch of slots once the last slot of it is cleared."""
    per_stretch = max(HUGE_PAGE // max(s._element_bytes, 1), 1)
    first = index - index % per_stretch
    last = min(first + per_stretch, s._size)
    if index != first and index != last - 1:
        return
    states = mem.array_at(s._states, last, np.uint8)
    for i in range(first, last):
        if states[i] & CLEARED == 0:
            return
    give_back(s._data + first * s._element_bytes, s._data + last * s._element_bytes)


@kernel
def ready_to_read(s, r):
    """Check a read and find the memory for what it hands out."""
    status = check_array(s, r, st.READ_DTYPE)
    if status == st.OK:
        status = check_read(s, r, r[INDEX])
    if status == st.OK:
        status = make_readable(s, r, r[INDEX])
    if status == st.OK and s._parallel:
        status = claim_read(s, r, r[INDEX])
    return status


@kernel
def view(s, r):
    """VIEW: mark a slot of a uniform array as read; compiled code looks at it where it lies.

    From then on the array keeps its pages: compiled code counts no references to such views.
    """
    status = ready_to_read(s, r)
    if status != st.OK:
        return status
    grows = r[INDEX] >= s._size
    mark_read(s, r[INDEX])
    if grows or gives_back(s):
        s._shared = 1
        refresh(s)
    return st.OK


@kernel
def read(s, r):
    """READ: hand out the value of a slot."""
    status = ready_to_read(s, r)
    if status != st.OK:
        return status
    index, grows = r[INDEX], r[INDEX] >= s._size
    tell_slot_shape(s, r, index)
    count = count_bytes(r[OUT_RANK], r, OUT_SHAPE, 1)
    returns = gives_back(s)
    if returns or (is_half(s._dtype) and s._gradient):
        status = take_copy(s, r, slot_data(s, index), count)
        if status != st.OK:
            return status
    else:
        r[OWNER] = block_owner(s, index) if s._layout == RAGGED else mem.owner_of(s._data_buffer)
        r[RESULT] = slot_data(s, index)
        mem.retain(r[OWNER])
    mark_read(s, index)
    if returns:
        return_pages(s, index)
    if grows:
        refresh(s)
    return st.OK
