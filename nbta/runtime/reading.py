"""Kernels that read: one slot, many, stacked or joined; and those that look, and mark nothing.

A uniform or packed array hands out views of its own buffer, a ragged one its blocks. Where reads
give memory back (large clearing arrays), they copy the element out first, so no view loses its
pages.

A look may be followed by a write or by another look. What it hands out never changes: a view only
of what nobody may change, take back or clear any more, else a copy.
"""

import numpy as np

from nbta.errors import STATUS
from nbta.runtime import memory as mem
from nbta.runtime.accumulation import is_half, narrow
from nbta.runtime.buffers import HUGE_PAGE, give_back, may_allocate
from nbta.runtime.cold_fields import OFFSETS, cold_address
from nbta.runtime.layout import (
    PATTERN,
    block_at,
    block_owner,
    count_bytes,
    gives_back,
    merge_pattern,
    new_block,
    pattern_of,
    prepare,
    put_block,
    refresh,
    set_pattern,
    shape_known,
    slot_data,
    state_of,
    tell_pattern,
    tell_slot_shape,
    unpack,
)
from nbta.runtime.memory import kernel, publish_byte, room, swap_byte
from nbta.runtime.packed import (
    PACKED_COUNT,
    PACKED_HEAD,
    ROW_BYTES,
    head_word,
    offset_at,
    packed_count,
    packed_head,
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
from nbta.runtime.slots import (
    CLEARED,
    PENDING,
    WRITTEN,
    claim_read,
    holds_sum,
    holds_value,
    look_status,
    published,
    read_status,
)
from nbta.runtime.store import BLOCK_RANK, BLOCK_SHAPE, PACKED, RAGGED, UNIFORM
from nbta.runtime.writing import check_array, forget_layout, item_of, unmark


@kernel
def check_read(s, r, index):
    """Whether a slot has, or can make, a value to read."""
    r[SLOT] = index
    if index < 0 or (index >= s._size and not s._gradient):
        r[EXPECTED] = s._size
        return STATUS.read_out_of_range
    if index >= s._size and s._parallel:
        return STATUS.growth_in_loop
    state = published(s._states + index) if s._parallel else state_of(s, index)
    status = read_status(state, shape_known(s))
    if status == STATUS.unknown_element_shape:
        tell_pattern(s, r)
    return status


@kernel
def make_readable(s, r, index):
    """Room for a slot that may lie past a gradient array's end, and zeros where it has none."""
    pattern = pattern_of(s, room(PATTERN))
    status = prepare(s, r, max(index + 1, s._size), pattern[0], pattern, 1)
    if status == STATUS.ok and s._layout == PACKED:
        if index < packed_count(s):
            return STATUS.ok
        status = unpack(s, r)
    if status == STATUS.ok and s._layout == RAGGED:
        return fill_block(s, r, index)
    if status == STATUS.ok:
        fill_slot(s, index)
    return status


@kernel
def fill_slot(s, index):
    """Zeros for a slot of a uniform array that has no data; its memory may hold anything.

    In a parallel loop the slot is claimed meanwhile, as an iteration may be about to write there.
    """
    place = s._states + index
    while True:
        state = published(place) if s._parallel else mem.load_byte(place)
        if holds_sum(state):
            return
        if not s._parallel or swap_byte(place, state, state | PENDING):
            mem.clear_bytes(slot_data(s, index), s._element_bytes)
            if s._parallel:
                publish_byte(place, state)
            return


@kernel
def fill_block(s, r, index):
    """A block of zeros for a ragged slot that has no data."""
    if holds_sum(state_of(s, index)):
        return STATUS.ok
    tell_slot_shape(s, r, index)
    room = count_bytes(r[OUT_RANK], r, OUT_SHAPE, s._storage_itemsize)
    owner = new_block(r[OUT_RANK], r, OUT_SHAPE, room)
    if owner == 0:
        r[GOT], r[EXPECTED] = 1, room
        return STATUS.too_large
    mem.release(block_owner(s, index))
    put_block(s, index, owner)
    mem.clear_bytes(slot_data(s, index), room)
    return STATUS.ok


@kernel
def new_memory(s, r, items):
    """Memory for a copy of so many items, in the dtype that users see."""
    nbytes = items * s._itemsize
    owner = mem.allocate_owner(nbytes) if may_allocate() else 0
    if owner == 0:
        r[GOT], r[EXPECTED] = 1, nbytes
        return STATUS.too_large
    r[OWNER], r[RESULT] = owner, mem.owner_payload(owner)
    return STATUS.ok


@kernel
def take_copy(s, r, source, count):
    """Copy ``count`` items into memory of their own, in the dtype that users see."""
    status = new_memory(s, r, count)
    if status == STATUS.ok:
        copy_items(s, r[RESULT], source, count)
    return status


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
        put_block(s, index, stub)
        mem.release(old)


@kernel
def return_pages(s, index):
    """Return the pages of a stretch of slots once the last slot of it is cleared."""
    if s._layout == PACKED:
        return_rows(s, index)
        return
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
def return_rows(s, index):
    """The same of each huge page that a packed element is the first or the last one to reach."""
    head = packed_head(s)
    width, count = head_word(head, ROW_BYTES), head_word(head, PACKED_COUNT)
    begin, end = offset_at(head, index) * width, offset_at(head, index + 1) * width
    first = begin - begin % HUGE_PAGE
    while first < end:
        stop = min(first + HUGE_PAGE, offset_at(head, count) * width)
        if (begin <= first or end >= stop) and rows_cleared(s, head, index, first, stop):
            give_back(s._data + first, s._data + stop)
        first += HUGE_PAGE


@kernel
def rows_cleared(s, head, index, first, stop):
    """Whether all packed elements with bytes in a range are cleared; one of them is known."""
    width, count = head_word(head, ROW_BYTES), head_word(head, PACKED_COUNT)
    low = high = index
    while low > 0 and offset_at(head, low) * width > first:
        low -= 1
    while high < count and offset_at(head, high) * width < stop:
        high += 1
    for k in range(low, high):
        has_rows = offset_at(head, k + 1) != offset_at(head, k)
        if has_rows and state_of(s, k) & CLEARED == 0:
            return False
    return True


@kernel
def ready_to_read(s, r):
    """Check a read and find the memory for what it hands out."""
    status = check_array(s, r, STATUS.read_dtype)
    if status == STATUS.ok:
        status = check_read(s, r, r[INDEX])
    if status == STATUS.ok:
        status = make_readable(s, r, r[INDEX])
    if status == STATUS.ok and s._parallel:
        status = claim_read(s, r, r[INDEX])
    return status


@kernel
def view(s, r):
    """VIEW: mark a slot of a uniform array as read; compiled code looks at it where it lies.

    From then on the array keeps its pages: compiled code counts no references to such views.
    """
    status = ready_to_read(s, r)
    if status != STATUS.ok:
        return status
    grows = r[INDEX] >= s._size
    mark_read(s, r[INDEX])
    if grows or gives_back(s):
        s._shared = 1
        refresh(s)
    return STATUS.ok


@kernel
def read(s, r):
    """READ: hand out the value of a slot."""
    status = ready_to_read(s, r)
    if status != STATUS.ok:
        return status
    index, grows = r[INDEX], r[INDEX] >= s._size
    tell_slot_shape(s, r, index)
    count = count_bytes(r[OUT_RANK], r, OUT_SHAPE, 1)
    returns = gives_back(s)
    if returns or (is_half(s._dtype) and s._gradient):
        status = take_copy(s, r, slot_data(s, index), count)
        if status != STATUS.ok:
            return status
    else:
        r[OWNER] = block_owner(s, index) if s._layout == RAGGED else s._data_owner
        r[RESULT] = slot_data(s, index)
        mem.retain(r[OWNER])
        if s._layout == PACKED:  # reads give no pages back any more
            s._shared = 1
    mark_read(s, index)
    if returns:
        return_pages(s, index)
    if grows:
        refresh(s)
    return STATUS.ok


# Many slots: stacked along a new axis, or joined along the first.


@kernel
def claim(s, r):
    """Check every listed slot; a clearing array lets each be named once."""
    if all_written(s, r):
        return STATUS.ok
    done, status = 0, STATUS.ok
    while status == STATUS.ok and done < r[COUNT]:
        slot = item_of(r, done)
        status = check_read(s, r, slot)
        if status == STATUS.ok:
            status = make_readable(s, r, slot)
        if status == STATUS.ok:
            if s._clear_after_read:
                mem.store_byte(s._states + slot, state_of(s, slot) | PENDING)
            done += 1
    unmark(s, r, done)
    return status


@kernel
def all_written(s, r):
    """Whether the first slots, in order, all have values that lie side by side.

    So it is after a loop of appends. Going slot by slot, a stack took 50 ns for each; a loop that
    looks at the store's fields in between 1.5 ns.
    """
    if r[LIST] or s._gradient:
        return False
    if s._layout == PACKED:
        there = packed_count(s)
    else:
        there = s._capacity if s._layout == UNIFORM else 0
    if r[COUNT] > there:
        return False
    states, missing = mem.array_at(s._states, r[COUNT], np.uint8), 0
    for k in range(len(states)):
        missing |= not holds_value(states[k])
    return missing == 0


@kernel
def same_shapes(s, r, from_axis):
    """Whether the listed elements agree from an axis on; leaves the first one's shape."""
    tell_slot_shape(s, r, item_of(r, 0))
    if s._layout == UNIFORM or (s._layout == PACKED and from_axis and r[COUNT] <= packed_count(s)):
        return STATUS.ok
    first_rank = r[OUT_RANK]
    first = mem.array_at(room(PATTERN), MAX_RANK, np.int64)
    for axis in range(first_rank):
        first[axis] = r[OUT_SHAPE + axis]
    status = STATUS.ok
    for k in range(1, r[COUNT]):
        tell_slot_shape(s, r, item_of(r, k))
        same = r[OUT_RANK] == first_rank
        for axis in range(from_axis, first_rank if same else 0):
            same = same and r[OUT_SHAPE + axis] == first[axis]
        if not same and status == STATUS.ok:
            status, r[SLOT] = STATUS.inconsistent_shapes, item_of(r, k)
            r[RANK] = r[OUT_RANK]
            for axis in range(r[OUT_RANK]):
                r[SHAPE + axis] = r[OUT_SHAPE + axis]
    r[OUT_RANK] = first_rank
    for axis in range(first_rank):
        r[OUT_SHAPE + axis] = first[axis]
    return status


@kernel
def in_a_row(s, r):
    """Whether the listed slots lie one after the other, to be handed out as they are."""
    if s._layout == RAGGED or (is_half(s._dtype) and s._gradient):
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
        r[OWNER] = s._data_owner
        r[RESULT] = slot_data(s, item_of(r, 0))
        mem.retain(r[OWNER])
        # Reads give no pages back any more; listed slots may lie past a gradient array's end.
        changes = r[LIST] or (s._clear_after_read and not s._shared)
        s._shared = 1
    else:
        status = take_copy(s, r, 0, 0) if total == 0 else copy_listed(s, r, total)
        if status != STATUS.ok:
            return status
        changes = True
    mark_listed(s, r)
    if changes:
        refresh(s)
    return STATUS.ok


@kernel
def mark_listed(s, r):
    """Note that all listed slots were read."""
    if r[LIST] == 0 and s._layout != RAGGED and r[COUNT] <= s._size:
        states, after = mem.array_at(s._states, r[COUNT], np.uint8), np.uint8(s._read_state)
        for k in range(len(states)):  # LLVM makes a memset of it
            states[k] = after
    else:
        for k in range(r[COUNT]):
            mark_read(s, item_of(r, k))


@kernel
def copy_listed(s, r, total):
    """Copy the listed elements one after the other."""
    status = new_memory(s, r, total)
    if status != STATUS.ok:
        return status
    target = r[RESULT]
    for k in range(r[COUNT]):
        slot = item_of(r, k)
        count = slot_items(s, slot)
        copy_items(s, target, slot_data(s, slot), count)
        target += count * s._itemsize
    return STATUS.ok


@kernel
def slot_items(s, index):
    """How many items a slot's element has."""
    if s._layout == UNIFORM:
        return s._element_bytes // s._storage_itemsize
    if s._layout == PACKED:
        packed = packed_head(s)
        rows = offset_at(packed, index + 1) - offset_at(packed, index)
        return rows * head_word(packed, ROW_BYTES) // s._storage_itemsize
    head = block_at(block_owner(s, index))
    return count_bytes(head[BLOCK_RANK], head, BLOCK_SHAPE, 1)


@kernel
def push_axis(r, dimension):
    """Put an axis before the result's shape."""
    rank = r[OUT_RANK]
    for axis in range(rank, 0, -1):
        r[OUT_SHAPE + axis] = r[OUT_SHAPE + axis - 1]
    r[OUT_SHAPE] = dimension
    r[OUT_RANK] = rank + 1


@kernel
def gather(s, r):
    """GATHER: stack the listed slots; the shape asked for stays with the array."""
    status = check_array(s, r, STATUS.read_dtype)
    if status == STATUS.closed and r[COUNT] == 0:  # nothing is read: TensorFlow lets it pass
        status = STATUS.ok if r[DTYPE] == s._dtype else STATUS.read_dtype
    if status != STATUS.ok:
        return status
    before, undecided = pattern_of(s, room(PATTERN)), s._layout == 0
    status = merge_pattern(s, r)
    if status == STATUS.ok:
        status = gather_merged(s, r)
    if status != STATUS.ok:
        if undecided and s._layout != 0:
            forget_layout(s, before)
        set_pattern(s, before)
    return status


@kernel
def stack(s, r):
    """STACK: gather of every slot."""
    if s._closed:
        return STATUS.closed
    r[LIST], r[COUNT], r[RANK] = 0, s._size, -1
    if r[COUNT] and r[DTYPE] == s._dtype and s._layout == UNIFORM and all_written(s, r):
        tell_pattern(s, r)
        status = hand_out(s, r, 0)
        push_axis(r, r[COUNT])
        return status
    return gather(s, r)


@kernel
def gather_merged(s, r):
    """Gather, the element shape asked for being the array's by now."""
    if r[COUNT] == 0:
        return nothing_listed(s, r)
    status = claim(s, r)
    if status != STATUS.ok:
        return status
    tell_slot_shape(s, r, item_of(r, 0))
    if r[OUT_RANK] >= 2 * MAX_RANK:
        r[GOT] = r[OUT_RANK] + 1
        return STATUS.rank
    if not first_fits(r):
        return STATUS.gather_element_shape
    items = count_bytes(r[OUT_RANK], r, OUT_SHAPE, 1)
    if items > 0:  # else TensorFlow looks at the first one only
        status = same_shapes(s, r, 0)
    if status == STATUS.ok:
        status = hand_out(s, r, items * r[COUNT])
    if status == STATUS.ok:
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
        return STATUS.empty_gather
    push_axis(r, 0)
    return STATUS.ok


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
    status = check_array(s, r, STATUS.read_dtype)
    if status != STATUS.ok:
        return status
    lengths, r[LIST] = r[LIST], 0
    r[COUNT] = s._marked if s._gradient and s._marked else s._size
    if r[VALUE]:
        r[COUNT] = r[VALUE]
    if r[COUNT] > r[INDEX]:
        r[LIST], r[OUT_RANK] = lengths, 0
        return STATUS.ok
    status = concat_empty(s, r) if r[COUNT] == 0 else concat_elements(s, r, lengths)
    r[LIST] = lengths
    return status


@kernel
def concat_empty(s, r):
    """Joining nothing needs to be told the shape after the first axis."""
    tell_pattern(s, r)
    if r[RANK] < 0:
        return STATUS.empty_concat
    for axis in range(r[RANK]):
        if r[SHAPE + axis] < 0:
            return STATUS.empty_concat
        r[OUT_SHAPE + axis + 1] = r[SHAPE + axis]
    r[OUT_RANK], r[OUT_SHAPE] = r[RANK] + 1, 0
    return STATUS.ok


@kernel
def check_first(s, r):
    """The first element to join has a first axis, and after it the shape that was asked for."""
    r[SLOT] = 0
    tell_slot_shape(s, r, 0)
    if r[OUT_RANK] == 0:
        return STATUS.concat_scalar
    fits = r[RANK] < 0 or r[OUT_RANK] == r[RANK] + 1
    for axis in range(r[RANK] if fits else 0):
        fits = fits and r[SHAPE + axis] in (-1, r[OUT_SHAPE + axis + 1])
    return STATUS.ok if fits else STATUS.concat_except0


@kernel
def concat_elements(s, r, lengths):
    """Join elements, of which there is at least one."""
    status = claim(s, r)
    if status == STATUS.ok:
        status = check_first(s, r)
    if status == STATUS.ok:
        status = same_shapes(s, r, 1)
        if status != STATUS.ok and r[RANK] == 0:  # the shape that came is there
            status = STATUS.concat_scalar
    if status != STATUS.ok:
        return status
    rows = 0
    items = np.int64(0)
    if s._layout == PACKED:
        head = packed_head(s)
        for k in range(r[COUNT]):
            mem.store_int(lengths + 8 * k, offset_at(head, k + 1) - offset_at(head, k))
        rows = offset_at(head, r[COUNT])
        items = rows * head_word(head, ROW_BYTES) // s._storage_itemsize
    else:
        for k in range(r[COUNT]):
            tell_slot_shape(s, r, k)
            mem.store_int(lengths + 8 * k, r[OUT_SHAPE])
            rows += r[OUT_SHAPE]
            items += slot_items(s, k)
    status = hand_out(s, r, items)
    if status == STATUS.ok:
        r[OUT_SHAPE] = rows
    return status


@kernel
def offsets(s, r):
    """OFFSETS: where each element's rows begin among those of all, and where the last ones end.

    A view of what a packed array has, whose items never change.
    """
    if s._closed:
        return STATUS.closed
    r[LIST], r[COUNT] = 0, s._size
    if s._layout == PACKED and s._size and s._size == packed_count(s):
        r[OWNER] = mem.load_int(cold_address(s, OFFSETS))
        r[RESULT] = packed_head(s) + 8 * PACKED_HEAD
        mem.retain(r[OWNER])
    else:
        status = check_rows(s, r)
        if status == STATUS.ok:
            status = count_rows(s, r)
        if status != STATUS.ok:
            return status
    r[OUT_RANK], r[OUT_SHAPE] = 1, s._size + 1
    return STATUS.ok


@kernel
def check_rows(s, r):
    """Whether all slots have elements of known shapes that `concat` could join."""
    known = shape_known(s)
    for k in range(s._size):
        if not known and state_of(s, k) & WRITTEN == 0:
            tell_pattern(s, r)
            r[SLOT] = k
            return STATUS.unknown_element_shape
    if s._size == 0:
        return STATUS.ok
    r[SLOT] = 0
    status = same_shapes(s, r, 1)
    if r[OUT_RANK] == 0 or (status != STATUS.ok and r[RANK] == 0):
        return STATUS.concat_scalar
    return status


@kernel
def count_rows(s, r):
    """The offsets, in memory of their own."""
    nbytes = 8 * (s._size + 1)
    owner = mem.allocate_owner(nbytes) if may_allocate() else 0
    if owner == 0:
        r[GOT], r[EXPECTED] = 1, nbytes
        return STATUS.too_large
    r[OWNER], r[RESULT] = owner, mem.owner_payload(owner)
    rows = np.int64(0)
    mem.store_int(r[RESULT], rows)
    for k in range(s._size):
        tell_slot_shape(s, r, k)
        rows += r[OUT_SHAPE]
        mem.store_int(r[RESULT] + 8 * (k + 1), rows)
    return STATUS.ok


# Looks.


@kernel
def check_look(s, r, index):
    """Whether a slot that exists has, or stands for, a value to look at."""
    r[SLOT] = index
    state = published(s._states + index) if s._parallel else state_of(s, index)
    status = look_status(state, shape_known(s), s._gradient, s._parallel)
    if status == STATUS.unknown_element_shape:
        tell_pattern(s, r)
    return status


@kernel
def copy_slot(s, target, index, items):
    """Copy a slot's value, or the zeros that it stands for."""
    if holds_value(state_of(s, index)):
        copy_items(s, target, slot_data(s, index), items)
    else:
        mem.clear_bytes(target, items * s._itemsize)


@kernel
def look(s, r):
    """LOOK: the value of a slot; a negative INDEX counts from the end."""
    status = check_array(s, r, STATUS.read_dtype)
    if status != STATUS.ok:
        return status
    index = r[INDEX] + s._size if r[INDEX] < 0 else r[INDEX]
    if index < 0 or index >= s._size:
        r[SLOT], r[EXPECTED] = r[INDEX], s._size
        return STATUS.no_slot
    status = check_look(s, r, index)
    if status != STATUS.ok:
        return status
    tell_slot_shape(s, r, index)
    if not s._gradient and not s._clear_after_read and holds_value(state_of(s, index)):
        r[OWNER] = block_owner(s, index) if s._layout == RAGGED else s._data_owner
        r[RESULT] = slot_data(s, index)
        mem.retain(r[OWNER])
        return STATUS.ok
    items = count_bytes(r[OUT_RANK], r, OUT_SHAPE, 1)
    status = new_memory(s, r, items)
    if status == STATUS.ok:
        copy_slot(s, r[RESULT], index, items)
    return status


@kernel
def look_at_all(s, r):
    """LOOK_AT_ALL: all values, stacked."""
    status = check_array(s, r, STATUS.read_dtype)
    if status != STATUS.ok:
        return status
    r[LIST], r[COUNT], r[RANK] = 0, s._size, -1
    if r[COUNT] == 0:
        tell_pattern(s, r)
        if not shape_known(s):
            return STATUS.empty_gather
        push_axis(r, 0)
        return STATUS.ok
    k = 0
    while status == STATUS.ok and k < r[COUNT]:
        status = check_look(s, r, k)
        k += 1
    if status == STATUS.ok:
        status = same_shapes(s, r, 0)
    if status == STATUS.ok:
        status = stack_seen(s, r)
    if status == STATUS.ok:
        push_axis(r, r[COUNT])
    return status


@kernel
def stack_seen(s, r):
    """Stack all values, of one shape, without marking them as read."""
    if r[OUT_RANK] >= 2 * MAX_RANK:
        r[GOT] = r[OUT_RANK] + 1
        return STATUS.rank
    if all_written(s, r) and not s._clear_after_read:
        r[OWNER], r[RESULT] = s._data_owner, s._data
        mem.retain(r[OWNER])
        return STATUS.ok
    items = count_bytes(r[OUT_RANK], r, OUT_SHAPE, 1)
    status = new_memory(s, r, items * r[COUNT])
    for k in range(r[COUNT] if status == STATUS.ok else 0):
        copy_slot(s, r[RESULT] + k * items * s._itemsize, k, items)
    return status
