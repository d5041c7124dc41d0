"""Kernels that look: at a slot or at all of them, which stay as they were.

Nothing is marked, so a look may be followed by a write or by another look. What is handed out
never changes: a view only of what nobody may change, take back or clear any more, else a copy.
"""

from nbta.runtime import memory as mem
from nbta.runtime import status as st
from nbta.runtime.buffers import may_allocate
from nbta.runtime.claims import settled
from nbta.runtime.joining import all_written, push_axis, same_shapes
from nbta.runtime.layout import (
    block_owner,
    count_bytes,
    shape_known,
    slot_data,
    state_of,
    tell_pattern,
    tell_slot_shape,
)
from nbta.runtime.memory import kernel
from nbta.runtime.reading import copy_items
from nbta.runtime.request import (
    COUNT,
    EXPECTED,
    GOT,
    INDEX,
    LIST,
    MAX_RANK,
    OUT_RANK,
    OUT_SHAPE,
    OWNER,
    RANK,
    RESULT,
    SLOT,
)
from nbta.runtime.store import CLEARED, PENDING, RAGGED, WRITTEN, ZERO
from nbta.runtime.writing import check_array


@kernel
def has_value(s, index):
    """Whether a slot holds a value that takes memory."""
    return state_of(s, index) & (WRITTEN | CLEARED | ZERO) == WRITTEN


@kernel
def check_look(s, r, index):
    """Whether a slot that exists has, or stands for, a value to look at."""
    r[SLOT] = index
    state = settled(s._states + index) if s._parallel else state_of(s, index)
    if state & (CLEARED | PENDING):
        return st.CLEARED
    if s._parallel and (s._gradient or state & WRITTEN == 0):
        return st.LOOK_IN_LOOP
    if state & WRITTEN == 0 and not shape_known(s):
        tell_pattern(s, r)
        return st.UNKNOWN_ELEMENT_SHAPE
    return st.OK


@kernel
def new_memory(s, r, items):
    """Memory for a copy of so many items, in the dtype that users see."""
    nbytes = items * s._itemsize
    owner = mem.allocate_owner(nbytes) if may_allocate() else 0
    if owner == 0:
        r[GOT], r[EXPECTED] = 1, nbytes
        return st.TOO_LARGE
    r[OWNER], r[RESULT] = owner, mem.owner_payload(owner)
    return st.OK


@kernel
def copy_slot(s, target, index, items):
    """Copy a slot's value, or the zeros that it stands for."""
    if has_value(s, index):
        copy_items(s, target, slot_data(s, index), items)
    else:
        mem.clear_bytes(target, items * s._itemsize)


@kernel
def look(s, r):
    """LOOK: the value of a slot; a negative INDEX counts from the end."""
    status = check_array(s, r, st.READ_DTYPE)
    if status != st.OK:
        return status
    index = r[INDEX] + s._size if r[INDEX] < 0 else r[INDEX]
    if index < 0 or index >= s._size:
        r[SLOT], r[EXPECTED] = r[INDEX], s._size
        return st.NO_SLOT
    status = check_look(s, r, index)
    if status != st.OK:
        return status
    tell_slot_shape(s, r, index)
    if not s._gradient and not s._clear_after_read and has_value(s, index):
        r[OWNER] = block_owner(s, index) if s._layout == RAGGED else mem.owner_of(s._data_buffer)
        r[RESULT] = slot_data(s, index)
        mem.retain(r[OWNER])
        return st.OK
    items = count_bytes(r[OUT_RANK], r, OUT_SHAPE, 1)
    status = new_memory(s, r, items)
    if status == st.OK:
        copy_slot(s, r[RESULT], index, items)
    return status


@kernel
def look_at_all(s, r):
    """LOOK_AT_ALL: all values, stacked."""
    status = check_array(s, r, st.READ_DTYPE)
    if status != st.OK:
        return status
    r[LIST], r[COUNT], r[RANK] = 0, s._size, -1
    if r[COUNT] == 0:
        tell_pattern(s, r)
        if not shape_known(s):
            return st.EMPTY_GATHER
        push_axis(r, 0)
        return st.OK
    k = 0
    while status == st.OK and k < r[COUNT]:
        status = check_look(s, r, k)
        k += 1
    if status == st.OK:
        status = same_shapes(s, r, 0)
    if status == st.OK:
        status = stack_seen(s, r)
    if status == st.OK:
        push_axis(r, r[COUNT])
    return status


@kernel
def stack_seen(s, r):
    """Stack all values, of one shape, without marking them as read."""
    if r[OUT_RANK] >= 2 * MAX_RANK:
        r[GOT] = r[OUT_RANK] + 1
        return st.RANK
    if all_written(s, r) and not s._clear_after_read:
        r[OWNER], r[RESULT] = mem.owner_of(s._data_buffer), s._data
        mem.retain(r[OWNER])
        return st.OK
    items = count_bytes(r[OUT_RANK], r, OUT_SHAPE, 1)
    status = new_memory(s, r, items * r[COUNT])
    for k in range(r[COUNT] if status == st.OK else 0):
        copy_slot(s, r[RESULT] + k * items * s._itemsize, k, items)
    return status
