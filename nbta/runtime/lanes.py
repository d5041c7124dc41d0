"""Lanes: private arrays that threads fill side by side, and that are joined in their order.

Lanes are a store without elements. Its buffer of gradient arrays holds the owners of the array they
belong to and of the lanes' own arrays. Its state bytes are flags: one a lane, raised when it is
taken, and one more, raised when all are joined. What a lane gets to do depends on the number of
lanes alone, so that the result is the same, to the bit, for any number of threads.

When lanes are joined, everything is checked first, then memory is found, then elements move: an
error changes nothing. A ragged element changes hands with its block; elements of one buffer are
copied lane by lane.
"""

import numpy as np

from nbta.dtypes import BOOL
from nbta.errors import STATUS
from nbta.runtime import memory as mem
from nbta.runtime import request as rq
from nbta.runtime import settings
from nbta.runtime.accumulation import add_stored
from nbta.runtime.buffers import (
    FIRST,
    hold_owners,
    keep_older,
    new_buffer,
    new_memory,
    new_points,
    record_at,
)
from nbta.runtime.cold_fields import (
    GRADIENTS,
    NAME,
    SOURCE,
    SUFFIX,
    cold_address,
    cold_points,
    ensure_cold,
    put_cold_array,
)
from nbta.runtime.kernels import shape_gradient
from nbta.runtime.layout import (
    PATTERN,
    block_owner,
    decide_layout,
    fits_pattern,
    give,
    pattern_of,
    prepare,
    put_block,
    ready_element,
    refresh,
    set_pattern,
    settle,
    shape_known,
    slot_data,
    state_of,
    tell_pattern,
    tell_slot_shape,
)
from nbta.runtime.memory import kernel, room, swap_byte
from nbta.runtime.packed import packed_count, trim_packed
from nbta.runtime.reading import slot_items
from nbta.runtime.request import (
    COUNT,
    EXPECTED,
    GOT,
    INDEX,
    MAX_RANK,
    OUT_RANK,
    OUT_SHAPE,
    OWNER,
    RANK,
    RESULT,
    SHAPE,
    SLOT,
)
from nbta.runtime.settings import setting
from nbta.runtime.sharing import acquire, release
from nbta.runtime.slots import CLEARED, READ, WRITTEN, holds_sum
from nbta.runtime.sources import gradients_of, may_keep
from nbta.runtime.store import (
    RAGGED,
    UNDECIDED,
    UNIFORM,
    new_store,
    replace_memory,
    store_address,
    store_at,
)
from nbta.runtime.writing import check_slot, forget_layout, occupy
from nbta.tuning import MOST_LANES

#: Where Python's larger integers end up.
MOST_ITERATIONS = 1 << 62


@kernel
def raise_flag(address):
    """Set the byte at an address to 1: whether this call, and not another thread's, changed it."""
    return swap_byte(address, 0, 1)


_TRAIL = tuple(map(ord, "[lane "))


@kernel
def lane_suffix(suffix, number):
    """``suffix`` + "[lane NUMBER]", as code points; no points when there is no memory."""
    digits, rest = 1, number // 10
    while rest:
        digits, rest = digits + 1, rest // 10
    start = len(suffix)
    longer = new_points(start + len(_TRAIL) + digits + 1)
    if len(longer) == 0:
        return longer
    longer[:start] = suffix
    for i in range(len(_TRAIL)):
        longer[start + i] = _TRAIL[i]
    for i in range(digits):
        longer[-2 - i] = ord("0") + number % 10
        number //= 10
    longer[-1] = ord("]")
    return longer


@kernel
def copy_facts(s, other):
    """What lanes, and a lane, of an array have in common with it."""
    other._id, other._dtype = s._id, s._dtype
    other._itemsize, other._storage_itemsize = s._itemsize, s._storage_itemsize
    other._infer_shape, other._clear_after_read = s._infer_shape, s._clear_after_read
    other._read_state = s._read_state


@kernel
def shape_forward_lane(s, lane, r):
    """A lane of a growing array: empty, and growing."""
    copy_facts(s, lane)
    if not ensure_cold(lane):
        return STATUS.too_large
    put_cold_array(lane, NAME, cold_points(s, NAME))
    lane._dynamic = 1
    set_pattern(lane, pattern_of(s, room(PATTERN)))
    status = decide_layout(lane, r) if shape_known(lane) else STATUS.ok
    refresh(lane)
    return status


@kernel
def shape_gradient_lane(s, lane, r):
    """A lane of a gradient array: virtual zeros; slots that were read take no more here either."""
    r[INDEX], r[RANK] = s._clear_after_read, 0
    source = cold_points(s, SOURCE)
    r[rq.VALUE], r[COUNT] = mem.address_of(source), len(source)
    status = shape_gradient(s, lane, r)
    if status != STATUS.ok:
        return status
    for i in range(s._size):
        if state_of(s, i) & READ:
            mem.store_byte(lane._states + i, READ | CLEARED)
    return STATUS.ok


@kernel
def make_lanes(s, r):
    """LANES: as many as INDEX says, of the array whose owner is in VALUE."""
    count, array = r[INDEX], r[rq.VALUE]
    if s._closed:
        return STATUS.closed
    if not (s._dynamic or s._gradient):
        return STATUS.lanes_fixed_size
    if not 1 <= count <= MOST_LANES:
        r[GOT], r[EXPECTED] = count, MOST_LANES
        return STATUS.lanes_count
    lanes, status = new_store(8 * MAX_RANK), STATUS.too_large
    if store_address(lanes):
        status = give(lanes, r, fill_lanes(s, array, lanes, r))
    if status == STATUS.too_large:
        r[GOT], r[EXPECTED] = count, 8
    return status


@kernel
def fill_lanes(s, array, lanes, r):
    """Make the lanes' arrays, and hold them and the array they belong to."""
    count = r[INDEX]
    copy_facts(s, lanes)
    if not (may_keep(s) and ensure_cold(lanes)):
        return STATUS.too_large
    owned, flags = new_buffer(8 * (1 + count), False), new_memory(count + 1, 0, False, True)
    if len(owned) == 0 or flags == 0:
        mem.release(flags)
        return STATUS.too_large
    replace_memory(lanes, 0, 0, 0, flags, record_at(flags)[FIRST])
    lanes._size, lanes._capacity = count, count + 1
    refresh(lanes)
    put_cold_array(lanes, GRADIENTS, owned)
    hold_owners(mem.owner_of(owned))
    put_cold_array(lanes, NAME, cold_points(s, NAME))
    put_cold_array(lanes, SUFFIX, cold_points(s, SUFFIX))
    owners = gradients_of(lanes)
    owners[0] = array
    mem.retain(array)
    for k in range(lanes._size):
        lane = new_store(8 * MAX_RANK)  # its elements are in buffers, which the array may keep
        if store_address(lane) == 0:
            return STATUS.too_large
        owners[1 + k] = lane._owner
        if s._gradient:
            status = shape_gradient_lane(s, lane, r)
        else:
            status = shape_forward_lane(s, lane, r)
        if status != STATUS.ok:
            return status
        suffix = lane_suffix(cold_points(s, SUFFIX), k)
        if len(suffix) == 0:
            return STATUS.too_large
        put_cold_array(lane, SUFFIX, suffix)
    return STATUS.ok


@kernel
def check_lane(lanes, r):
    """Whether there is a lane of the number in INDEX."""
    r[SLOT], r[EXPECTED] = r[INDEX], lanes._size
    return STATUS.ok if 0 <= r[INDEX] < lanes._size else STATUS.no_lane


@kernel
def take(lanes, r):
    """TAKE: the array of a lane, for the first who asks."""
    status = check_lane(lanes, r)
    if status != STATUS.ok:
        return status
    if mem.load_byte(lanes._states + lanes._size):
        return STATUS.lanes_joined
    if not raise_flag(lanes._states + r[INDEX]):
        return STATUS.lane_taken
    r[OWNER] = gradients_of(lanes)[1 + r[INDEX]]
    mem.retain(r[OWNER])
    return STATUS.ok


@kernel
def share(lanes, r):
    """RANGE: of COUNT iterations, a lane's share begins at RESULT and has then COUNT."""
    status = check_lane(lanes, r)
    if status == STATUS.ok and not 0 <= r[COUNT] < MOST_ITERATIONS:
        r[GOT] = r[COUNT]
        status = STATUS.lanes_total
    if status == STATUS.ok:
        each, more = r[COUNT] // lanes._size, r[COUNT] % lanes._size
        r[RESULT] = r[INDEX] * each + min(r[INDEX], more)
        r[COUNT] = each + (1 if r[INDEX] < more else 0)
    return status


@kernel
def join(lanes, r):
    """JOIN: put what the lanes hold into the array, lane by lane; all of it, or nothing."""
    joined = lanes._states + lanes._size
    if not raise_flag(joined):
        return STATUS.lanes_joined
    s = lane_at(lanes, -1)
    held = acquire(s)
    status = check_open(s, lanes, r)
    if status == STATUS.ok:
        status = join_gradient(s, lanes, r) if s._gradient else join_forward(s, lanes, r)
    release(s, held)
    if status != STATUS.ok:
        mem.store_byte(joined, 0)
        return status
    free_lanes(lanes, r)
    r[OWNER] = gradients_of(lanes)[0]
    mem.retain(r[OWNER])
    return STATUS.ok


@kernel
def check_open(s, lanes, r):
    """Whether nobody closed the array or a lane, and no parallel loop uses the array."""
    if s._closed:
        return STATUS.closed
    if s._parallel:
        return STATUS.bulk_in_loop
    for k in range(lanes._size):
        if lane_at(lanes, k)._closed:
            r[GOT] = k
            return STATUS.lane_closed
    return STATUS.ok


@kernel
def free_lanes(lanes, r):
    """Close the lanes, whoever may still hold one, and let go of them."""
    owners = gradients_of(lanes)
    for k in range(1, 1 + lanes._size):
        entry, lane = setting(settings.STORAGE_ENTRY), mem.owner_payload(owners[k])
        mem.call_entry(entry, rq.CLOSE, lane, mem.address_of(r))
        mem.release(owners[k])
        owners[k] = 0


def lanes_entry(operation, store, request):
    """LANES of an array; TAKE, RANGE and JOIN of lanes."""
    r = mem.array_at(request, rq.WORDS, np.int64)
    s = store_at(store)
    if operation == rq.LANES:
        held = acquire(s)
        status = STATUS.bulk_in_loop if s._parallel else make_lanes(s, r)
        release(s, held)
        return status
    if operation == rq.TAKE:
        return take(s, r)
    return share(s, r) if operation == rq.RANGE else join(s, r)


@kernel
def lane_at(lanes, k):
    """The array of a lane; for -1 the array that the lanes belong to."""
    lane = store_at(mem.owner_payload(gradients_of(lanes)[1 + k]))
    settle(lane)
    return lane


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
def ready_moved(s, at, lane, r, slot):
    """Find memory for a lane's element, where it does not bring its own."""
    if s._layout == UNIFORM or gives_block(s, lane, slot):
        return STATUS.ok
    tell_value_shape(lane, r, slot)
    return ready_element(s, r, at, r[RANK], r, SHAPE)


@kernel
def element_bytes(s, slot):
    """Bytes of a slot's element as stored."""
    return slot_items(s, slot) * s._storage_itemsize


@kernel
def move_element(s, at, lane, slot):
    """Give a lane's element to a slot; blocks are swapped."""
    if gives_block(s, lane, slot):
        stub = block_owner(s, at)
        put_block(s, at, block_owner(lane, slot))
        put_block(lane, slot, stub)
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
    if seen and lane._layout == UNIFORM and lane._data_bytes:
        keep_older(mem.load_int(cold_address(s, GRADIENTS)), lane._data_owner)


# Forward arrays.


@kernel
def join_forward(s, lanes, r):
    """Append the lanes' slots; those of a lane lie after those of the lane before it."""
    total, first = 0, -1
    for k in range(lanes._size):
        lane = lane_at(lanes, k)
        if lane._size == 0:
            continue
        first = k if first < 0 else first
        status = check_lane_states(lane, r, k)
        if status == STATUS.ok:
            status = check_lane_shapes(s, lane, r, k)
        if status == STATUS.ok and s._infer_shape:
            status = check_lane_shapes(lane_at(lanes, first), lane, r, k)
        if status != STATUS.ok:
            return status
        total += lane._size
    if total and not s._dynamic:
        r[SLOT] = r[EXPECTED] = s._size
        return STATUS.write_out_of_range
    return append_lanes(s, lanes, r, first, total) if total else STATUS.ok


@kernel
def check_lane_states(lane, r, k):
    """Whether all slots of a lane hold values."""
    states = mem.array_at(lane._states, lane._size, np.uint8)
    missing = 0  # counted without a branch: 1 ns for eight slots
    for i in range(len(states)):
        missing += (states[i] & (WRITTEN | CLEARED)) != WRITTEN
    if missing == 0:
        return STATUS.ok
    slot = 0
    while states[slot] & (WRITTEN | CLEARED) == WRITTEN:
        slot += 1
    r[SLOT], r[GOT] = slot, k
    return STATUS.lane_cleared if states[slot] & CLEARED else STATUS.lane_unwritten


@kernel
def check_lane_shapes(s, lane, r, k):
    """Whether the elements of a lane fit the pattern of an array."""
    for slot in range(1 if lane._layout == UNIFORM else lane._size):
        tell_value_shape(lane, r, slot)
        if not fits_pattern(s, r[RANK], r, SHAPE):
            tell_pattern(s, r)
            r[SLOT], r[GOT] = slot, k
            return STATUS.lane_shape
    return STATUS.ok


@kernel
def append_lanes(s, lanes, r, first, total):
    """Find the memory for so many slots, then move the lanes' elements there."""
    before, undecided = pattern_of(s, room(PATTERN)), s._layout == UNDECIDED
    tell_value_shape(lane_at(lanes, first), r, 0)
    status = prepare(s, r, s._size + total, r[RANK], r, SHAPE)
    if status != STATUS.ok:
        return status
    status = ready_elements(s, lanes, r)
    if status != STATUS.ok:
        if undecided:
            forget_layout(s, before)
        return status
    for k in range(lanes._size):
        append_lane(s, lane_at(lanes, k))
    refresh(s)
    return STATUS.ok


@kernel
def ready_elements(s, lanes, r):
    """Memory after the last slot for all elements that do not bring their own blocks."""
    at, status, packed = s._size, STATUS.ok, packed_count(s)
    for k in range(lanes._size if s._layout != UNIFORM else 0):
        lane = lane_at(lanes, k)
        for slot in range(lane._size):
            if status == STATUS.ok:
                status = ready_moved(s, at, lane, r, slot)
            at += 1
    if status != STATUS.ok:
        trim_packed(s, packed)
    for i in range(s._size, at if status != STATUS.ok and s._layout == RAGGED else 0):
        mem.release(block_owner(s, i))
        put_block(s, i, 0)
    return status


@kernel
def append_lane(s, lane):
    """Move a lane's elements and states after the last slot."""
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
    if status != STATUS.ok:
        return status
    before, undecided = pattern_of(s, room(PATTERN)), s._layout == UNDECIDED
    status = ready_sums(s, lanes, r, slots)
    if status != STATUS.ok:
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
    return STATUS.ok


@kernel
def has_sum(s, slot):
    """Whether something was added into a slot."""
    return slot < s._size and holds_sum(state_of(s, slot))


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
            if status == STATUS.ok and like >= 0:
                status = check_like(lane_at(lanes, like), r, like_slot)
            if status == STATUS.ok and before and s._dtype == BOOL:
                status = check_bools(lane_at(lanes, k), slot)
            if status != STATUS.ok:
                r[SLOT], r[GOT] = slot, k
                return status
            like, like_slot, before = k, slot, True
    return STATUS.ok


@kernel
def check_sum(s, lane, r, slot):
    """Whether a lane's sum may be added into the array's slot; leaves its shape."""
    if state_of(lane, slot) & CLEARED:
        return STATUS.lane_cleared
    tell_value_shape(lane, r, slot)
    status = check_slot(s, r, slot, r[RANK], SHAPE)
    if status in (STATUS.incompatible_element_shape, STATUS.aggregate_shape):
        return STATUS.lane_shape
    return status


@kernel
def check_like(other, r, slot):
    """Whether another lane's sum has the shape that the request has."""
    tell_slot_shape(other, r, slot)
    same = r[OUT_RANK] == r[RANK]
    for axis in range(r[RANK] if same else 0):
        same = same and r[OUT_SHAPE + axis] == r[SHAPE + axis]
    return STATUS.ok if same else STATUS.lane_shape


@kernel
def check_bools(lane, slot):
    """Bools of two lanes have no sum, unless there are none."""
    return STATUS.aggregate_dtype if slot_items(lane, slot) else STATUS.ok


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
            if status == STATUS.ok:
                status = ready_moved(s, slot, lane, r, slot)
            if status != STATUS.ok:
                return status
            filled = True
    return STATUS.ok


@kernel
def add_sum(s, lane, slot):
    """Add a lane's sum into a slot; the first one becomes the slot's own."""
    if has_sum(s, slot):
        nbytes = element_bytes(lane, slot)
        add_stored(s._dtype, slot_data(s, slot), slot_data(lane, slot), nbytes)
    else:
        move_element(s, slot, lane, slot)
        occupy(s, slot)
