"""Joining lanes: what each holds goes to the array they belong to, in the order of the lanes.

Everything is checked first, then memory is found, then elements move: an error changes nothing.
A ragged element changes hands with its block; elements of one buffer are copied lane by lane.
"""

import numpy as np

from nbta.dtypes import BOOL
from nbta.runtime import memory as mem
from nbta.runtime import status as st
from nbta.runtime.arithmetic import add_stored
from nbta.runtime.buffers import keep_older
from nbta.runtime.joining import slot_items
from nbta.runtime.layout import (
    PATTERN,
    block_owner,
    fits_pattern,
    pattern_of,
    prepare,
    ready_block,
    refresh,
    slot_data,
    state_of,
    tell_pattern,
    tell_slot_shape,
)
from nbta.runtime.memory import kernel
from nbta.runtime.request import EXPECTED, GOT, MAX_RANK, OUT_RANK, OUT_SHAPE, RANK, SHAPE, SLOT
from nbta.runtime.store import CLEARED, RAGGED, READ, UNDECIDED, UNIFORM, WRITTEN, ZERO, store_at
from nbta.runtime.vector_code import room
from nbta.runtime.writing import check_slot, forget_layout, occupy


@kernel
def owners_of(lanes):
    """Owners of the array that lanes belong to and of the lanes' arrays."""
    return mem.array_at(mem.address_of(lanes._gradients), len(lanes._gradients) // 8, np.int64)


@kernel
def lane_at(lanes, k):
    """The array of a lane; for -1 the array that the lanes belong to."""
    return store_at(mem.owner_payload(owners_of(lanes)[1 + k]))


# Elements on the move.


@kernel
def tell_value_shape(lane, r, slot):
    """Put the shape of a lane's element where a request has the shape of a value."""
    tell_slot_shape(lane, r, slot)
    for word in range(1 + MAX_RANK):
        r[RANK + word] = r[OUT_RANK + word]


@kernel
def gives_block(s, lane, slot):
    """Whether the block of a lane's element becomes the array's; not if views of it may be out.

    Sums would change under the views.
    """
    return s._layout == RAGGED and lane._layout == RAGGED and not state_of(lane, slot) & READ


@kernel
def ready_element(s, at, lane, r, slot):
    """Find memory for a lane's element, where it does not bring its own."""
    if s._layout != RAGGED or gives_block(s, lane, slot):
        return st.OK
    tell_value_shape(lane, r, slot)
    return ready_block(s, r, at, r[RANK], r, SHAPE)


@kernel
def element_bytes(s, slot):
    """Bytes of a slot's element as stored."""
    return slot_items(s, slot) * s._storage_itemsize


@kernel
def move_element(s, at, lane, slot):
    """Give a lane's element to a slot; blocks are swapped."""
    if gives_block(s, lane, slot):
        stub = block_owner(s, at)
        mem.store_int(s._data + 8 * at, block_owner(lane, slot))
        mem.store_int(lane._data + 8 * slot, stub)
    else:
        nbytes = element_bytes(lane, slot)
        mem.copy_bytes(slot_data(s, at), slot_data(lane, slot), nbytes)


@kernel
def keep_views(s, lane):
    """Compiled code counts no references to views of one buffer, so the array keeps it for them."""
    states = mem.array_at(lane._states, lane._size, np.uint8)
    seen = 0
    for i in range(len(states)):
        seen |= states[i] & READ
    if seen and lane._layout == UNIFORM and len(lane._data_buffer) and len(s._data_buffer):
        keep_older(s._data_buffer, lane._data_buffer)


# Forward arrays.


@kernel
def join_forward(s, lanes, r):
    """Append the lanes' slots; those of a lane lie behind those of the lane before it."""
    total, first = 0, -1
    for k in range(lanes._size):
        lane = lane_at(lanes, k)
        if lane._size == 0:
            continue
        first = k if first < 0 else first
        status = check_lane_states(lane, r, k)
        if status == st.OK:
            status = check_lane_shapes(s, lane, r, k)
        if status == st.OK and s._infer_shape:
            status = check_lane_shapes(lane_at(lanes, first), lane, r, k)
        if status != st.OK:
            return status
        total += lane._size
    if total and not s._dynamic:
        r[SLOT] = r[EXPECTED] = s._size
        return st.WRITE_OUT_OF_RANGE
    return append_lanes(s, lanes, r, first, total) if total else st.OK


@kernel
def check_lane_states(lane, r, k):
    """Whether all slots of a lane hold values."""
    states = mem.array_at(lane._states, lane._size, np.uint8)
    missing = 0  # counted without a branch: 1 ns for eight slots
    for i in range(len(states)):
        missing += (states[i] & (WRITTEN | CLEARED)) != WRITTEN
    if missing == 0:
        return st.OK
    slot = 0
    while states[slot] & (WRITTEN | CLEARED) == WRITTEN:
        slot += 1
    r[SLOT], r[GOT] = slot, k
    return st.LANE_CLEARED if states[slot] & CLEARED else st.LANE_UNWRITTEN


@kernel
def check_lane_shapes(s, lane, r, k):
    """Whether the elements of a lane fit the pattern of an array."""
    for slot in range(1 if lane._layout == UNIFORM else lane._size):
        tell_value_shape(lane, r, slot)
        if not fits_pattern(s, r[RANK], r, SHAPE):
            tell_pattern(s, r)
            r[SLOT], r[GOT] = slot, k
            return st.LANE_SHAPE
    return st.OK


@kernel
def append_lanes(s, lanes, r, first, total):
    """Find the memory for so many slots, then move the lanes' elements there."""
    before, undecided = pattern_of(s, room(PATTERN)), s._layout == UNDECIDED
    tell_value_shape(lane_at(lanes, first), r, 0)
    status = prepare(s, r, s._size + total, r[RANK], r, SHAPE)
    if status != st.OK:
        return status
    status = ready_blocks(s, lanes, r)
    if status != st.OK:
        if undecided:
            forget_layout(s, before)
        return status
    for k in range(lanes._size):
        append_lane(s, lane_at(lanes, k))
    refresh(s)
    return st.OK


@kernel
def ready_blocks(s, lanes, r):
    """Blocks behind a ragged array's last slot for all elements that do not bring their own."""
    at, status = s._size, st.OK
    for k in range(lanes._size if s._layout == RAGGED else 0):
        lane = lane_at(lanes, k)
        for slot in range(lane._size):
            if status == st.OK:
                status = ready_element(s, at, lane, r, slot)
            at += 1
    for i in range(s._size, at if status != st.OK else 0):  # growth copies used slots only
        mem.release(block_owner(s, i))
        mem.store_int(s._data + 8 * i, 0)
    return status


@kernel
def append_lane(s, lane):
    """Move a lane's elements and states behind the last slot."""
    if s._layout == UNIFORM and lane._layout == UNIFORM:
        target = s._data + s._size * s._element_bytes
        mem.copy_bytes(target, lane._data, lane._size * s._element_bytes)
    else:
        for slot in range(lane._size):
            move_element(s, s._size + slot, lane, slot)
    mem.copy_bytes(s._states + s._size, lane._states, lane._size)
    keep_views(s, lane)
    s._size += lane._size


# Gradient arrays.


@kernel
def join_gradient(s, lanes, r):
    """Add the lanes' sums, slot by slot, in the order of the lanes."""
    slots = 0
    for k in range(lanes._size):
        slots = max(slots, lane_at(lanes, k)._size)
    status = check_sums(s, lanes, r, slots)
    if status != st.OK:
        return status
    before, undecided = pattern_of(s, room(PATTERN)), s._layout == UNDECIDED
    status = ready_sums(s, lanes, r, slots)
    if status != st.OK:
        if undecided and s._layout != UNDECIDED:
            forget_layout(s, before)
        return status
    for slot in range(slots):
        for k in range(lanes._size):
            if has_sum(lane_at(lanes, k), slot):
                add_sum(s, lane_at(lanes, k), slot)
    for k in range(lanes._size):
        keep_views(s, lane_at(lanes, k))
    refresh(s)
    return st.OK


@kernel
def has_sum(s, slot):
    """Whether something was added into a slot."""
    return slot < s._size and state_of(s, slot) & (WRITTEN | ZERO) == WRITTEN


@kernel
def check_sums(s, lanes, r, slots):
    """Whether all sums of the lanes add."""
    like, like_slot = -1, 0
    for slot in range(slots):
        if not s._infer_shape:
            like = -1
        before = False
        for k in range(lanes._size):
            if not has_sum(lane_at(lanes, k), slot):
                continue
            status = check_sum(s, lane_at(lanes, k), r, slot)
            if status == st.OK and like >= 0:
                status = check_like(lane_at(lanes, like), r, like_slot)
            if status == st.OK and before and s._dtype == BOOL:
                status = check_bools(lane_at(lanes, k), slot)
            if status != st.OK:
                r[SLOT], r[GOT] = slot, k
                return status
            like, like_slot, before = k, slot, True
    return st.OK


@kernel
def check_sum(s, lane, r, slot):
    """Whether a lane's sum may be added into the array's slot; leaves its shape."""
    if state_of(lane, slot) & CLEARED:
        return st.LANE_CLEARED
    tell_value_shape(lane, r, slot)
    status = check_slot(s, r, slot, r[RANK], SHAPE)
    if status in (st.INCOMPATIBLE_ELEMENT_SHAPE, st.AGGREGATE_SHAPE):
        return st.LANE_SHAPE
    return status


@kernel
def check_like(other, r, slot):
    """Whether another lane's sum has the shape that the request has."""
    tell_slot_shape(other, r, slot)
    same = r[OUT_RANK] == r[RANK]
    for axis in range(r[RANK] if same else 0):
        same = same and r[OUT_SHAPE + axis] == r[SHAPE + axis]
    return st.OK if same else st.LANE_SHAPE


@kernel
def check_bools(lane, slot):
    """Bools of two lanes have no sum, unless there are none."""
    return st.AGGREGATE_DTYPE if slot_items(lane, slot) else st.OK


@kernel
def ready_sums(s, lanes, r, slots):
    """Find memory for the first sums of slots that have none."""
    for slot in range(slots):
        filled = has_sum(s, slot)
        for k in range(lanes._size):
            lane = lane_at(lanes, k)
            if filled or not has_sum(lane, slot):
                continue
            tell_value_shape(lane, r, slot)
            status = prepare(s, r, s._size, r[RANK], r, SHAPE)
            if status == st.OK:
                status = ready_element(s, slot, lane, r, slot)
            if status != st.OK:
                return status
            filled = True
    return st.OK


@kernel
def add_sum(s, lane, slot):
    """Add a lane's sum into a slot; the first one becomes the slot's own."""
    if has_sum(s, slot):
        nbytes = element_bytes(lane, slot)
        add_stored(s._dtype, slot_data(s, slot), slot_data(lane, slot), nbytes)
    else:
        move_element(s, slot, lane, slot)
        occupy(s, slot)
