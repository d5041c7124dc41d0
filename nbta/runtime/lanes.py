"""Lanes: private arrays that threads fill side by side, and that are joined in their order.

Lanes are a store without elements. Its `_gradients` buffer holds the owners of the array they
belong to and of the lanes' own arrays. Its state bytes are flags: one a lane, raised when it is
taken, and one more, raised when all are joined. What a lane gets to do depends on the number of
lanes alone, so that the result is the same, to the bit, for any number of threads.
"""

import numpy as np

from nbta.runtime import memory as mem
from nbta.runtime import request as rq
from nbta.runtime import settings
from nbta.runtime import status as st
from nbta.runtime.atomics import swap_byte
from nbta.runtime.buffers import hold_owners, new_buffer, new_points
from nbta.runtime.gradients import shape_gradient
from nbta.runtime.lane_joins import join_forward, join_gradient, lane_at, owners_of
from nbta.runtime.layout import (
    PATTERN,
    decide_layout,
    give,
    pattern_of,
    refresh,
    set_pattern,
    shape_known,
    state_of,
)
from nbta.runtime.memory import kernel
from nbta.runtime.request import COUNT, EXPECTED, GOT, INDEX, OWNER, RANK, RESULT, SLOT
from nbta.runtime.settings import setting
from nbta.runtime.sharing import acquire, release
from nbta.runtime.store import CLEARED, READ, new_store, store_address, store_at, store_owner
from nbta.runtime.vector_code import room

#: More are no help to any machine; each takes about half a kilobyte.
MOST_LANES = 1 << 16
#: Where Python's larger integers end up.
MOST_ITERATIONS = 1 << 62


@kernel
def raise_flag(address):
    """Set the byte at an address to 1: whether this call, and not another thread's, changed it."""
    return swap_byte(address, 0, 1)


_TRAIL = tuple(map(ord, "[lane "))


@kernel
def lane_trail(trail, number):
    """``trail`` + "[lane NUMBER]", as code points; no points when there is no memory."""
    digits, rest = 1, number // 10
    while rest:
        digits, rest = digits + 1, rest // 10
    start = len(trail)
    longer = new_points(start + len(_TRAIL) + digits + 1)
    if len(longer) == 0:
        return longer
    longer[:start] = trail
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
    other._read_state, other._trail = s._read_state, s._trail


@kernel
def shape_forward_lane(s, lane, r):
    """A lane of a growing array: empty, and growing."""
    copy_facts(s, lane)
    lane._dynamic = 1
    set_pattern(lane, pattern_of(s, room(PATTERN)))
    status = decide_layout(lane, r) if shape_known(lane) else st.OK
    refresh(lane)
    return status


@kernel
def shape_gradient_lane(s, lane, r):
    """A lane of a gradient array: virtual zeros; slots that were read take no more here either."""
    r[INDEX], r[RANK] = s._clear_after_read, 0
    r[rq.VALUE], r[COUNT] = mem.address_of(s._source), len(s._source)
    status = shape_gradient(s, lane, r)
    if status != st.OK:
        return status
    lane._trail = s._trail
    for i in range(s._size):
        if state_of(s, i) & READ:
            mem.store_byte(lane._states + i, READ | CLEARED)
    return st.OK


@kernel
def make_lanes(s, r):
    """LANES: as many as INDEX says, of the array whose owner is in VALUE."""
    count, array = r[INDEX], r[rq.VALUE]
    if s._closed:
        return st.CLOSED
    if not (s._dynamic or s._gradient):
        return st.LANES_FIXED_SIZE
    if not 1 <= count <= MOST_LANES:
        r[GOT], r[EXPECTED] = count, MOST_LANES
        return st.LANES_COUNT
    lanes, status = new_store(), st.TOO_LARGE
    if store_address(lanes):
        status = fill_lanes(s, array, lanes, r)
    if status == st.TOO_LARGE:
        r[GOT], r[EXPECTED] = count, 8
    return status if status != st.OK else give(lanes, r)


@kernel
def fill_lanes(s, array, lanes, r):
    """Make the lanes' arrays, and hold them and the array they belong to."""
    count = r[INDEX]
    copy_facts(s, lanes)
    lanes._gradients = new_buffer(8 * (1 + count), False)
    lanes._state_buffer = new_buffer(count + 1, False)
    if len(lanes._gradients) == 0 or len(lanes._state_buffer) == 0:
        return st.TOO_LARGE
    lanes._size = count
    refresh(lanes)
    hold_owners(lanes._gradients)
    owners = owners_of(lanes)
    owners[0] = array
    mem.retain(array)
    for k in range(lanes._size):
        lane = new_store()
        if store_address(lane) == 0:
            return st.TOO_LARGE
        if s._gradient:
            status = shape_gradient_lane(s, lane, r)
        else:
            status = shape_forward_lane(s, lane, r)
        if status != st.OK:
            return status
        lane._trail = lane_trail(s._trail, k)
        if len(lane._trail) == 0:
            return st.TOO_LARGE
        owners[1 + k] = store_owner(lane)
        mem.retain(owners[1 + k])
    return st.OK


@kernel
def check_lane(lanes, r):
    """Whether there is a lane of the number in INDEX."""
    r[SLOT], r[EXPECTED] = r[INDEX], lanes._size
    return st.OK if 0 <= r[INDEX] < lanes._size else st.NO_LANE


@kernel
def take(lanes, r):
    """TAKE: the array of a lane, for the first who asks."""
    status = check_lane(lanes, r)
    if status != st.OK:
        return status
    if mem.load_byte(lanes._states + lanes._size):
        return st.LANES_JOINED
    if not raise_flag(lanes._states + r[INDEX]):
        return st.LANE_TAKEN
    r[OWNER] = owners_of(lanes)[1 + r[INDEX]]
    mem.retain(r[OWNER])
    return st.OK


@kernel
def share(lanes, r):
    """RANGE: of COUNT iterations, a lane's share begins at RESULT and has then COUNT."""
    status = check_lane(lanes, r)
    if status == st.OK and not 0 <= r[COUNT] < MOST_ITERATIONS:
        r[GOT] = r[COUNT]
        status = st.LANES_TOTAL
    if status == st.OK:
        each, more = r[COUNT] // lanes._size, r[COUNT] % lanes._size
        r[RESULT] = r[INDEX] * each + min(r[INDEX], more)
        r[COUNT] = each + (1 if r[INDEX] < more else 0)
    return status


@kernel
def join(lanes, r):
    """JOIN: put what the lanes hold into the array, lane by lane; all of it, or nothing."""
    joined = lanes._states + lanes._size
    if not raise_flag(joined):
        return st.LANES_JOINED
    s = lane_at(lanes, -1)
    held = acquire(s)
    status = check_open(s, lanes, r)
    if status == st.OK:
        status = join_gradient(s, lanes, r) if s._gradient else join_forward(s, lanes, r)
    release(s, held)
    if status != st.OK:
        mem.store_byte(joined, 0)
        return status
    free_lanes(lanes, r)
    r[OWNER] = owners_of(lanes)[0]
    mem.retain(r[OWNER])
    return st.OK


@kernel
def check_open(s, lanes, r):
    """Whether nobody closed the array or a lane, and no parallel loop uses the array."""
    if s._closed:
        return st.CLOSED
    if s._parallel:
        return st.BULK_IN_LOOP
    for k in range(lanes._size):
        if lane_at(lanes, k)._closed:
            r[GOT] = k
            return st.LANE_CLOSED
    return st.OK


@kernel
def free_lanes(lanes, r):
    """Close the lanes, whoever may still hold one, and let go of them."""
    owners = owners_of(lanes)
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
        status = st.BULK_IN_LOOP if s._parallel else make_lanes(s, r)
        release(s, held)
        return status
    if operation == rq.TAKE:
        return take(s, r)
    return share(s, r) if operation == rq.RANGE else join(s, r)
