"""Kernels that read many slots: stacked along a new axis, or joined along the first."""

import numpy as np

from nbta.runtime import memory as mem
from nbta.runtime import status as st
from nbta.runtime.arithmetic import is_half
from nbta.runtime.buffers import may_allocate
from nbta.runtime.layout import (
    PATTERN,
    block_at,
    block_owner,
    count_bytes,
    merge_pattern,
    pattern_of,
    refresh,
    set_pattern,
    shape_known,
    slot_data,
    state_of,
    tell_pattern,
    tell_slot_shape,
)
from nbta.runtime.memory import kernel
from nbta.runtime.reading import (
    check_read,
    copy_items,
    make_readable,
    mark_read,
    take_copy,
)
from nbta.runtime.request import (
    COUNT,
    DTYPE,
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
    SHAPE,
    SLOT,
    VALUE,
)
from nbta.runtime.store import (
    BLOCK_RANK,
    BLOCK_SHAPE,
    CLEARED,
    PENDING,
    RAGGED,
    UNIFORM,
    WRITTEN,
    ZERO,
)
from nbta.runtime.vector_code import room
from nbta.runtime.writing import check_array, forget_layout, item_of, unmark


@kernel
def claim(s, r):
    """Check every listed slot; a clearing array lets each be named once."""
    if all_written(s, r):
        return st.OK
    done, status = 0, st.OK
    while status == st.OK and done < r[COUNT]:
        slot = item_of(r, done)
        status = check_read(s, r, slot)
        if status == st.OK:
            status = make_readable(s, r, slot)
        if status == st.OK:
            if s._clear_after_read:
                mem.store_byte(s._states + slot, state_of(s, slot) | PENDING)
            done += 1
    unmark(s, r, done)
    return status


@kernel
def all_written(s, r):
    """Whether the first slots, in order, all have values that lie side by side.

    So it is after a loop of appends. Going slot by slot, a stack took 50 ns for each.
    """
    if r[LIST] or s._layout != UNIFORM or s._gradient or r[COUNT] > s._capacity:
        return False
    states, missing = s._states, 0
    for k in range(r[COUNT]):
        missing |= (mem.load_byte(states + k) ^ WRITTEN) & (WRITTEN | CLEARED | ZERO | PENDING)
    return missing == 0


@kernel
def same_shapes(s, r, from_axis):
    """Whether the listed elements agree from an axis on; leaves the first one's shape."""
    tell_slot_shape(s, r, item_of(r, 0))
    if s._layout != RAGGED:
        return st.OK
    first_rank = r[OUT_RANK]
    first = mem.array_at(room(PATTERN), MAX_RANK, np.int64)
    for axis in range(first_rank):
        first[axis] = r[OUT_SHAPE + axis]
    status = st.OK
    for k in range(1, r[COUNT]):
        tell_slot_shape(s, r, item_of(r, k))
        same = r[OUT_RANK] == first_rank
        for axis in range(from_axis, first_rank if same else 0):
            same = same and r[OUT_SHAPE + axis] == first[axis]
        if not same and status == st.OK:
            status, r[SLOT] = st.INCONSISTENT_SHAPES, item_of(r, k)
            r[RANK] = r[OUT_RANK]
            for axis in range(r[OUT_RANK]):
                r[SHAPE + axis] = r[OUT_SHAPE + axis]
    r[OUT_RANK] = first_rank
    for axis in range(first_rank):
        r[OUT_SHAPE + axis] = first[axis]
    return status


@kernel
def in_a_row(s, r):
    """Whether the listed slots lie one behind the other, to be handed out as they are."""
    if s._layout != UNIFORM or (is_half(s._dtype) and s._gradient):
        return False
    if r[LIST] == 0:
        return True
    in_order = True
    for k in range(1, r[COUNT]):
        in_order = in_order and item_of(r, k) == item_of(r, 0) + k
    return in_order


@kernel
def hand_out(s, r, total):
    """The listed elements, ``total`` items in all: a view where they lie in a row, or a copy."""
    if in_a_row(s, r):
        r[OWNER] = mem.owner_of(s._data_buffer)
        r[RESULT] = slot_data(s, item_of(r, 0))
        mem.retain(r[OWNER])
        s._shared = 1
    else:
        status = take_copy(s, r, 0, 0) if total == 0 else copy_listed(s, r, total)
        if status != st.OK:
            return status
    mark_listed(s, r)
    refresh(s)
    return st.OK


@kernel
def mark_listed(s, r):
    """Note that all listed slots were read."""
    if r[LIST] == 0 and s._layout == UNIFORM and r[COUNT] <= s._size:
        for k in range(r[COUNT]):  # LLVM makes a memset of it
            mem.store_byte(s._states + k, s._read_state)
    else:
        for k in range(r[COUNT]):
            mark_read(s, item_of(r, k))


@kernel
def copy_listed(s, r, total):
    """Copy the listed elements one behind the other."""
    nbytes = total * s._itemsize
    owner = mem.allocate_owner(nbytes) if may_allocate() else 0
    if owner == 0:
        r[GOT], r[EXPECTED] = 1, nbytes
        return st.TOO_LARGE
    r[OWNER], r[RESULT] = owner, mem.owner_payload(owner)
    target = r[RESULT]
    for k in range(r[COUNT]):
        slot = item_of(r, k)
        count = slot_items(s, slot)
        copy_items(s, target, slot_data(s, slot), count)
        target += count * s._itemsize
    return st.OK


@kernel
def slot_items(s, index):
    """How many items a slot's element has."""
    if s._layout == UNIFORM:
        return s._element_bytes // s._storage_itemsize
    head = block_at(block_owner(s, index))
    return count_bytes(head[BLOCK_RANK], head, BLOCK_SHAPE, 1)


@kernel
def push_axis(r, extent):
    """Put an axis in front of the result's shape."""
    rank = r[OUT_RANK]
    for axis in range(rank, 0, -1):
        r[OUT_SHAPE + axis] = r[OUT_SHAPE + axis - 1]
    r[OUT_SHAPE] = extent
    r[OUT_RANK] = rank + 1


@kernel
def gather(s, r):
    """GATHER: stack the listed slots; the shape asked for stays with the array."""
    status = check_array(s, r, st.READ_DTYPE)
    if status == st.CLOSED and r[COUNT] == 0:  # nothing is read: TensorFlow lets it pass
        status = st.OK if r[DTYPE] == s._dtype else st.READ_DTYPE
    if status != st.OK:
        return status
    before, undecided = pattern_of(s, room(PATTERN)), s._layout == 0
    status = merge_pattern(s, r)
    if status == st.OK:
        status = gather_merged(s, r)
    if status != st.OK:
        if undecided and s._layout != 0:
            forget_layout(s, before)
        set_pattern(s, before)
    return status


@kernel
def stack(s, r):
    """STACK: gather of every slot."""
    if s._closed:
        return st.CLOSED
    r[LIST], r[COUNT], r[RANK] = 0, s._size, -1
    return gather(s, r)


@kernel
def gather_merged(s, r):
    """Gather, the element shape asked for being the array's by now."""
    if r[COUNT] == 0:
        return nothing_listed(s, r)
    status = claim(s, r)
    if status != st.OK:
        return status
    tell_slot_shape(s, r, item_of(r, 0))
    if r[OUT_RANK] >= 2 * MAX_RANK:
        r[GOT] = r[OUT_RANK] + 1
        return st.RANK
    if not first_fits(r):
        return st.GATHER_ELEMENT_SHAPE
    items = count_bytes(r[OUT_RANK], r, OUT_SHAPE, 1)
    if items > 0:  # else TensorFlow looks at the first one only
        status = same_shapes(s, r, 0)
    if status == st.OK:
        status = hand_out(s, r, items * r[COUNT])
    if status == st.OK:
        push_axis(r, r[COUNT])
    return status


@kernel
def nothing_listed(s, r):
    """No slots have the array's element shape, or, where INDEX is set, the one asked for.

    The latter is TensorFlow's raw operation, which its methods tell what they know.
    """
    tell_pattern(s, r)
    known = shape_known(s)
    if r[INDEX]:
        r[OUT_RANK], known = r[RANK], r[RANK] >= 0
        for axis in range(r[RANK]):
            r[OUT_SHAPE + axis] = r[SHAPE + axis]
            known = known and r[SHAPE + axis] >= 0
    if not known:
        return st.EMPTY_GATHER
    push_axis(r, 0)
    return st.OK


@kernel
def first_fits(r):
    """Whether the first of the elements has the shape asked for."""
    fits = r[RANK] < 0 or r[RANK] == r[OUT_RANK]
    for axis in range(r[RANK] if fits else 0):
        fits = fits and r[SHAPE + axis] in (-1, r[OUT_SHAPE + axis])
    return fits


@kernel
def concat(s, r):
    """CONCAT: join all elements along their first axis; lengths go to the request's list.

    There is room for INDEX lengths. Where that is too little, nothing is done but to tell COUNT.
    VALUE elements are joined; all where it is 0, of a gradient array those that a split marked.
    """
    status = check_array(s, r, st.READ_DTYPE)
    if status != st.OK:
        return status
    lengths, r[LIST] = r[LIST], 0
    r[COUNT] = s._marked if s._gradient and s._marked else s._size
    if r[VALUE]:
        r[COUNT] = r[VALUE]
    if r[COUNT] > r[INDEX]:
        r[LIST], r[OUT_RANK] = lengths, 0
        return st.OK
    status = concat_empty(s, r) if r[COUNT] == 0 else concat_elements(s, r, lengths)
    r[LIST] = lengths
    return status


@kernel
def concat_empty(s, r):
    """Joining nothing needs to be told the shape behind the first axis."""
    tell_pattern(s, r)
    if r[RANK] < 0:
        return st.EMPTY_CONCAT
    for axis in range(r[RANK]):
        if r[SHAPE + axis] < 0:
            return st.EMPTY_CONCAT
        r[OUT_SHAPE + axis + 1] = r[SHAPE + axis]
    r[OUT_RANK], r[OUT_SHAPE] = r[RANK] + 1, 0
    return st.OK


@kernel
def check_first(s, r):
    """The first element to join has a first axis, and behind it the shape that was asked for."""
    r[SLOT] = 0
    tell_slot_shape(s, r, 0)
    if r[OUT_RANK] == 0:
        return st.CONCAT_SCALAR
    fits = r[RANK] < 0 or r[OUT_RANK] == r[RANK] + 1
    for axis in range(r[RANK] if fits else 0):
        fits = fits and r[SHAPE + axis] in (-1, r[OUT_SHAPE + axis + 1])
    return st.OK if fits else st.CONCAT_EXCEPT0


@kernel
def concat_elements(s, r, lengths):
    """Join elements, of which there is at least one."""
    status = claim(s, r)
    if status == st.OK:
        status = check_first(s, r)
    if status == st.OK:
        status = same_shapes(s, r, 1)
        if status != st.OK and r[RANK] == 0:  # the shape that came is there
            status = st.CONCAT_SCALAR
    if status != st.OK:
        return status
    rows = 0
    items = np.int64(0)
    for k in range(r[COUNT]):
        tell_slot_shape(s, r, k)
        mem.store_int(lengths + 8 * k, r[OUT_SHAPE])
        rows += r[OUT_SHAPE]
        items += slot_items(s, k)
    status = hand_out(s, r, items)
    if status == st.OK:
        r[OUT_SHAPE] = rows
    return status
