"""Where elements lie: element shapes, room for slots, packed elements, ragged blocks."""

import numpy as np

from nbta.dtypes import BOOL, OTHER
from nbta.errors import STATUS
from nbta.runtime import memory as mem
from nbta.runtime import settings
from nbta.runtime.accumulation import is_half
from nbta.runtime.buffers import (
    FIRST,
    LARGEST,
    OWNERS,
    STATES,
    grown_capacity,
    hand_on,
    hold_owner_at,
    may_allocate,
    new_memory,
    paint,
    paint_around,
    painted,
    painted_around,
    record_at,
)
from nbta.runtime.memory import kernel, publish_int, room
from nbta.runtime.packed import (
    PACKED_COUNT,
    PACKED_RANK,
    ROW_BYTES,
    ROW_SHAPE,
    forget_packed,
    head_word,
    offset_at,
    offsets_intact,
    packed_bytes,
    packed_count,
    packed_head,
    packs_shape,
    put_head_word,
    put_offset,
    ready_offsets,
)
from nbta.runtime.request import EXPECTED, GOT, MAX_RANK, OUT_RANK, OUT_SHAPE, OWNER, RANK, SHAPE
from nbta.runtime.settings import setting
from nbta.runtime.slots import CLEARED, WRITTEN, after_write, holds_sum
from nbta.runtime.store import (
    BLOCK_HEAD,
    BLOCK_RANK,
    BLOCK_ROOM,
    BLOCK_SHAPE,
    FIELD,
    PACKED,
    RAGGED,
    UNDECIDED,
    UNIFORM,
    field_address,
    get_dimension,
    replace_memory,
    set_dimension,
)
from nbta.tuning import MOST_PACKED


@kernel
def shape_known(s):
    """Whether the element shape is fully known."""
    unknown = s._rank < 0
    for axis in range(s._rank):
        unknown = unknown or get_dimension(s, axis) < 0
    return not unknown


@kernel
def give(s, r, status):
    """Pass the reference to a new store to the caller, or drop it where making it failed."""
    if status == STATUS.ok:
        r[OWNER] = s._owner
    else:
        mem.release(s._owner)
    return status


#: Bytes of an element shape pattern.
PATTERN = 8 * (1 + MAX_RANK)


@kernel
def pattern_of(s, place):
    """The element shape pattern as ``[rank, dimensions...]``, at an address with room for it."""
    pattern = mem.array_at(place, 1 + MAX_RANK, np.int64)
    pattern[0] = s._rank
    for axis in range(s._rank):
        pattern[1 + axis] = get_dimension(s, axis)
    return pattern


@kernel
def set_pattern(s, pattern):
    """Make ``[rank, dimensions...]`` the element shape pattern."""
    s._rank = pattern[0]
    for axis in range(s._rank):
        set_dimension(s, axis, pattern[1 + axis])


@kernel
def tell_pattern(s, r):
    """Put the element shape pattern where the message of an error finds it."""
    r[OUT_RANK] = s._rank
    for axis in range(s._rank):
        r[OUT_SHAPE + axis] = get_dimension(s, axis)


@kernel
def fits_pattern(s, rank, shape, first):
    """Whether ``shape[first:first + rank]`` is an element shape that the pattern admits."""
    if s._rank < 0:
        return True
    if s._rank != rank:
        return False
    for axis in range(rank):
        dimension = get_dimension(s, axis)
        if dimension >= 0 and dimension != shape[first + axis]:
            return False
    return True


@kernel
def merge_pattern(s, r):
    """Narrow the element shape pattern by the request's; they must not contradict."""
    if r[RANK] < 0:
        return STATUS.ok
    if s._rank < 0:
        s._rank = r[RANK]
        for axis in range(r[RANK]):
            set_dimension(s, axis, r[SHAPE + axis])
        return STATUS.ok
    fits = s._rank == r[RANK]
    for axis in range(s._rank if fits else 0):
        mine, asked = get_dimension(s, axis), r[SHAPE + axis]
        fits = fits and (mine < 0 or asked < 0 or mine == asked)
    if not fits:
        tell_pattern(s, r)
        return STATUS.gather_element_shape
    for axis in range(s._rank):
        if get_dimension(s, axis) < 0:
            set_dimension(s, axis, r[SHAPE + axis])
    return STATUS.ok


@kernel
def count_bytes(rank, shape, first, itemsize):
    """Bytes of an element of ``shape[first:first + rank]``; -1 for more than an address holds."""
    nbytes, empty = itemsize, False
    for axis in range(rank):
        dimension = shape[first + axis]
        empty = empty or dimension == 0
        if dimension > 1 and nbytes > LARGEST // dimension:
            nbytes = LARGEST
        else:
            nbytes *= max(dimension, 1)
    if empty:
        return 0
    return nbytes if nbytes < LARGEST else -1


@kernel
def decide_layout(s, r):
    """Choose the layout of an array whose element shape is as known as it will get."""
    if not shape_known(s):
        s._layout = RAGGED if s._gradient else PACKED
        return STATUS.ok
    pattern = pattern_of(s, room(PATTERN))
    nbytes = count_bytes(s._rank, pattern, 1, s._storage_itemsize)
    if nbytes < 0:
        r[GOT], r[EXPECTED] = 1, LARGEST
        return STATUS.too_large
    s._layout, s._element_bytes = UNIFORM, nbytes
    return STATUS.ok


@kernel
def slot_bytes(s):
    """Bytes a slot takes in the data buffer; 0 where slots differ."""
    if s._layout == UNIFORM:
        return s._element_bytes
    return 8 if s._layout == RAGGED else 0


@kernel
def refresh(s):
    """Recompute the addresses and limits that the fast paths go by.

    Fast paths have no atomic steps. They rest on the interpreter's lock, and stay shut while
    anybody uses the array without it; iterations of parallel loops may then claim slots.
    """
    settle(s)
    write, read, add = 0, 0, 0
    has_data = s._data_bytes >= s._capacity * s._element_bytes
    if not s._closed and s._layout == UNIFORM and has_data:
        # Nothing grows in a parallel loop.
        limit = s._capacity if s._dynamic and not s._parallel else s._size
        write, read, add = limits(s, limit)
    alone, claims = s._users == 0, s._claims != 0
    s._fast_write = write if alone else 0
    s._fast_read = read if alone else 0
    s._fast_add = add if alone else 0
    publish(s, FIELD.claim_write, write if claims else 0)
    publish(s, FIELD.claim_read, read if claims else 0)
    publish(s, FIELD.claim_add, add if claims else 0)


@kernel
def expect_appends(s):
    """Let appends store elements and the size alone, as far as there is room.

    A store to another line for each state byte took two thirds of such a loop. Nothing else has a
    fast path that takes a slot for a free one until states are settled; nobody has marked a slot
    past the size.
    """
    if s._dynamic and s._fast_write > s._size:
        s._fast_append, s._settled, s._fast_write = s._fast_write, s._size, 0


@kernel
def settle(s):
    """Store the states that appends have left."""
    if s._fast_append:
        state = after_write(False, False)
        mem.fill_bytes(s._states + s._settled, s._size - s._settled, state)
        s._fast_write, s._fast_append = s._fast_append, 0


@kernel
def publish(s, field, value):
    """Change a field for threads that look at it without the store's lock."""
    publish_int(field_address(s, field), value)


@kernel
def limits(s, limit):
    """Up to where a uniform array may be written, read and added to in place."""
    half, write, read, add = is_half(s._dtype), 0, 0, 0
    if not s._gradient:
        write = limit
    elif not half and s._dtype not in (BOOL, OTHER):
        add = limit
    has_address = s._data != 0  # elements without data may have no buffer to point into
    if has_address and not gives_back(s) and not (s._gradient and half):
        read = limit
    return write, read, add


@kernel
def gives_back(s):
    """Whether reads of this array return pages to the system (then they copy the element)."""
    if s._layout == PACKED:
        clears = s._clear_after_read and not s._shared
        return clears and packed_bytes(s) >= setting(settings.RELEASE_THRESHOLD)
    large = s._capacity * s._element_bytes >= setting(settings.RELEASE_THRESHOLD)
    if not (large and s._clear_after_read and s._layout == UNIFORM) or s._shared:
        return False
    states = mem.array_at(s._states, s._size, np.uint8)
    for i in range(s._size if s._dynamic else 0):  # cleared while small: views may be out
        if states[i] & CLEARED:
            s._shared = 1
            return False
    return True


@kernel
def inline_capacity(s, unit):
    """How many slots of ``unit`` bytes the store itself has room for, after its dimensions."""
    first, guard = inline_start(s), 2 * setting(settings.GUARD)
    room = (s._end - first - (2 * guard if unit else guard)) // (unit + 1)
    after_all_dimensions = s._end - field_address(s, FIELD.dimension0 + MAX_RANK) - guard
    return max(min(room, after_all_dimensions), 0)


@kernel
def inline_start(s):
    """Where elements in the store itself begin: after as many dimensions as its rank has."""
    axes = MAX_RANK if s._rank < 0 else s._rank
    return (field_address(s, FIELD.dimension0 + axes) + 15) & -16


@kernel
def may_lie_inline(s, capacity, unit):
    """Whether the store itself may hold so many slots."""
    if s._data_owner or s._layout == RAGGED:
        return False
    first = s._capacity == 0 and capacity > 0
    more_data = s._states_owner == s._owner and s._capacity == capacity
    return (first or more_data) and capacity <= inline_capacity(s, unit)


@kernel
def lie_inline(s, capacity, unit):
    """Let the store itself hold so many slots, its first or all that it has; whether it does.

    State bytes are at its end, beyond all dimensions, as a rank that is known may be forgotten.
    """
    if not may_lie_inline(s, capacity, unit):
        return False
    guard = setting(settings.GUARD)
    states, data, nbytes = s._end - guard - capacity, 0, capacity * unit
    if s._capacity == 0:  # the state bytes have never been written
        paint_around(states, capacity)
    if nbytes:
        data = inline_start(s) + guard
        mem.clear_bytes(data, nbytes)  # dimensions may have been there
        paint_around(data, nbytes)
    owner = s._owner if nbytes else 0
    replace_memory(s, owner, data, nbytes, s._owner, states)
    s._capacity = capacity
    return True


@kernel
def try_capacity(s, capacity, unit, charged):
    """Get room for ``capacity`` slots, or change nothing.

    ``charged`` room is memory asked for, which the system may refuse; other room is address space
    to grow into.
    """
    if capacity > LARGEST or (unit > 0 and capacity > LARGEST // unit):
        return False
    more_states, more_data = capacity > s._capacity, s._data_bytes < capacity * unit
    together = more_states and (unit + 1) * capacity < setting(settings.MAP_THRESHOLD)
    data_owner = states_owner = 0
    if more_data:
        states, zeroed = capacity if together else 0, s._layout != UNIFORM
        data_owner = new_memory(capacity * unit, states, not charged, zeroed)
        if data_owner == 0:
            return False
    if more_states and not (more_data and together):
        states_owner = new_memory(capacity, 0, not charged, True)
        if states_owner == 0:
            mem.release(data_owner)
            return False
    if more_data:
        put_data(s, data_owner, capacity * unit)
    if more_states:
        put_states(s, states_owner, capacity)
    return True


@kernel
def put_data(s, owner, nbytes):
    """Move the elements, or the table, of a store to a larger buffer."""
    data = record_at(owner)[FIRST]
    mem.copy_bytes(data, s._data, used_bytes(s))
    if s._data_owner and s._data_owner != s._owner:
        hand_on(owner, s._data_owner, True)
    replace_memory(s, owner, data, nbytes, s._states_owner, s._states)


@kernel
def used_bytes(s):
    """Bytes from the first on of a store's data that may hold anything."""
    if s._layout == PACKED:
        return packed_bytes(s)
    if s._layout == RAGGED:
        return 8 * record_at(s._data_owner)[OWNERS] if s._data_owner else 0
    return min(s._size * slot_bytes(s), s._data_bytes)


@kernel
def put_states(s, owner, capacity):
    """Move the state bytes of a store to a larger buffer; where there is none, after its data.

    All that there was room for: a gather has notes past the end, and zeros in ragged slots there.
    """
    states = record_at(owner)[FIRST] if owner else record_at(s._data_owner)[STATES]
    mem.copy_bytes(states, s._states, s._capacity)
    states_owner = owner if owner else s._data_owner
    replace_memory(s, s._data_owner, s._data, s._data_bytes, states_owner, states)
    s._capacity = capacity


@kernel
def reserve(s, r, needed):
    """Make room for ``needed`` slots, with their data once the layout is decided."""
    unit = slot_bytes(s)
    if needed <= s._capacity and s._data_bytes >= s._capacity * unit:
        return STATUS.ok
    # Room to grow into is for steps: a jump, or a first size, is memory that somebody wants. What
    # grows keeps the buffers that it outgrew, so no step may be of just one slot.
    step = s._capacity < needed <= 2 * s._capacity + 8
    grows = (s._dynamic or s._gradient) and s._layout != UNDECIDED and step
    many = grows and (unit or s._layout == PACKED)
    inline = inline_capacity(s, unit) if many else max(needed, s._capacity)
    if inline >= needed and lie_inline(s, inline, unit):
        refresh(s)
        return STATUS.ok
    if (grows and grow(s, needed, unit)) or try_capacity(s, max(needed, s._capacity), unit, True):
        refresh(s)
        return STATUS.ok
    r[GOT], r[EXPECTED] = needed, unit
    return STATUS.too_large


@kernel
def reserve_ahead(s, needed):
    """Make room for slots that a loop is about to append, if there is memory.

    What is mapped has room to grow anyway, and what will be is mapped at once.
    """
    unit = s._element_bytes
    if s._closed or s._layout != UNIFORM or not s._dynamic or s._parallel or unit == 0:
        return
    mapped = setting(settings.MAP_THRESHOLD) // unit
    if needed <= s._capacity or s._capacity > mapped:
        return
    if needed > mapped:
        done = grow(s, max(mapped + 1, s._size + 1), unit)
    else:
        done = try_capacity(s, needed, unit, True)
    if done:
        refresh(s)


@kernel
def grow(s, needed, unit):
    """Make room for ``needed`` slots and for as many more as the system lets us."""
    each = 8 if s._layout == PACKED else max(unit, 1)  # an offset
    first, second = grown_capacity(s._capacity, needed, each)
    return try_capacity(s, first, unit, False) or try_capacity(s, second, unit, False)


@kernel
def prepare(s, r, needed, rank, shape, first):
    """Room for ``needed`` slots whose next element has this shape; undone when that fails."""
    if s._layout != UNDECIDED:
        return reserve(s, r, needed)
    before = pattern_of(s, room(PATTERN))
    if s._infer_shape and not shape_known(s):
        s._rank = rank
        for axis in range(rank):
            set_dimension(s, axis, shape[first + axis])
    status = decide_layout(s, r)
    if status == STATUS.ok:
        status = reserve(s, r, needed)
    if status != STATUS.ok:
        s._layout, s._element_bytes = UNDECIDED, 0
        set_pattern(s, before)
    return status


@kernel
def state_of(s, index):
    """A slot's state bits; 0 past the room there is."""
    return mem.load_byte(s._states + index) if index < s._capacity else 0


@kernel
def block_owner(s, index):
    """Owner of a ragged slot's block, 0 for none."""
    return mem.load_int(s._data + 8 * index) if s._data_bytes else 0


@kernel
def put_block(s, index, owner):
    """Let a ragged slot have another block; the reference to it passes to the table."""
    mem.store_int(s._data + 8 * index, owner)
    hold_owner_at(s._data_owner, index)


@kernel
def block_at(owner):
    """The head of a ragged block."""
    return mem.array_at(mem.owner_payload(owner), BLOCK_HEAD // 8, np.int64)


@kernel
def block_data(owner):
    """Address of the element in a ragged block."""
    return mem.owner_payload(owner) + BLOCK_HEAD + setting(settings.GUARD)


@kernel
def new_block(rank, shape, first, room):
    """A ragged block for an element of that shape, or 0 when there is no memory."""
    from_here = BLOCK_HEAD + setting(settings.GUARD)
    if room < 0 or not may_allocate():
        return 0
    owner = mem.allocate_owner(from_here + room + setting(settings.GUARD))
    if owner == 0:
        return 0
    head = block_at(owner)
    head[BLOCK_ROOM], head[BLOCK_RANK] = room, rank
    for axis in range(rank):
        head[BLOCK_SHAPE + axis] = shape[first + axis]
    guard_block(owner, room)
    return owner


@kernel
def guard_block(owner, room):
    """Paint the guards of a block."""
    guard = setting(settings.GUARD)
    paint(block_data(owner) - guard, guard)
    paint(block_data(owner) + room, guard)


@kernel
def ready_element(s, r, index, rank, shape, first):
    """Find memory for an element of that shape, where elements may differ."""
    if s._layout == PACKED:
        nbytes = count_bytes(rank, shape, first, s._storage_itemsize)
        if 0 <= nbytes < MOST_PACKED and packs_shape(s, index, rank, shape, first):
            return pack_element(s, r, rank, shape, first, nbytes)
        status = unpack(s, r)
        if status != STATUS.ok:
            return status
    return ready_block(s, r, index, rank, shape, first)


@kernel
def pack_element(s, r, rank, shape, first, nbytes):
    """Find memory for an element after those that are packed, and count it among them.

    Whoever does not write it then takes it back by `trim_packed`.
    """
    r[GOT], r[EXPECTED] = 1, nbytes
    count = packed_count(s)
    if not ready_offsets(s, max(count, s._size - 1) + 2):
        return STATUS.too_large
    head = packed_head(s)
    if count == 0:
        row_bytes = count_bytes(rank - 1, shape, first + 1, s._storage_itemsize)
        put_head_word(head, ROW_BYTES, row_bytes)
        put_head_word(head, PACKED_RANK, rank)
        for axis in range(1, rank):
            put_head_word(head, ROW_SHAPE + axis - 1, shape[first + axis])
    begin = offset_at(head, count)
    end = begin * head_word(head, ROW_BYTES) + nbytes
    if end > s._data_bytes and not more_rows(s, end, max(nbytes, 1)):
        return STATUS.too_large
    put_offset(head, count + 1, begin + shape[first])
    put_head_word(head, PACKED_COUNT, count + 1)
    return STATUS.ok


@kernel
def more_rows(s, needed, unit):
    """Room for so many bytes of packed elements, and for more of ``unit`` bytes."""
    first, second = grown_capacity(s._data_bytes // unit, (needed + unit - 1) // unit, unit)
    nbytes = first * unit
    owner = new_memory(nbytes, 0, True, False)
    if owner == 0:
        nbytes = max(needed, second * unit)
        owner = new_memory(nbytes, 0, True, False)
    if owner == 0:
        return False
    put_data(s, owner, nbytes)
    return True


@kernel
def unpack(s, r):
    """Move each packed element to a block of its own; a cleared one leaves its shape."""
    count, head, nbytes = packed_count(s), packed_head(s), 8 * s._capacity
    table = new_memory(nbytes, 0, True, True)
    if table == 0:
        r[GOT], r[EXPECTED] = s._capacity, 8
        return STATUS.too_large
    place = record_at(table)[FIRST]
    rank = head_word(head, PACKED_RANK) if count else 0
    shape = mem.array_at(room(PATTERN), MAX_RANK, np.int64)
    for axis in range(1, rank):
        shape[axis] = head_word(head, ROW_SHAPE + axis - 1)
    for k in range(count):
        begin, width = offset_at(head, k), head_word(head, ROW_BYTES)
        shape[0] = offset_at(head, k + 1) - begin
        size = 0 if state_of(s, k) & CLEARED else shape[0] * width
        block = new_block(rank, shape, 0, size)
        if block == 0:
            mem.release(table)
            r[GOT], r[EXPECTED] = 1, size
            return STATUS.too_large
        mem.store_int(place + 8 * k, block)
        hold_owner_at(table, k)
        mem.copy_bytes(block_data(block), s._data + begin * width, size)
    replace_memory(s, table, place, nbytes, s._states_owner, s._states)
    s._layout = RAGGED
    forget_packed(s)
    return STATUS.ok


@kernel
def ready_block(s, r, index, rank, shape, first):
    """Give a ragged slot a block that takes an element of that shape."""
    room = count_bytes(rank, shape, first, s._storage_itemsize)
    old = block_owner(s, index)
    if old and block_at(old)[BLOCK_ROOM] == room and holds_sum(state_of(s, index)):
        return STATUS.ok
    owner = new_block(rank, shape, first, room)
    if owner == 0:
        r[GOT], r[EXPECTED] = 1, room
        return STATUS.too_large
    put_block(s, index, owner)
    mem.release(old)
    return STATUS.ok


@kernel
def tell_slot_shape(s, r, index):
    """Put the shape of a written slot's element into the request's results."""
    if s._layout == UNIFORM or state_of(s, index) & WRITTEN == 0:
        tell_pattern(s, r)
        return
    if s._layout == PACKED:
        head = packed_head(s)
        r[OUT_RANK] = head_word(head, PACKED_RANK)
        r[OUT_SHAPE] = offset_at(head, index + 1) - offset_at(head, index)
        for axis in range(1, r[OUT_RANK]):
            r[OUT_SHAPE + axis] = head_word(head, ROW_SHAPE + axis - 1)
        return
    head = block_at(block_owner(s, index))
    r[OUT_RANK] = head[BLOCK_RANK]
    for axis in range(head[BLOCK_RANK]):
        r[OUT_SHAPE + axis] = head[BLOCK_SHAPE + axis]


@kernel
def slot_data(s, index):
    """Address of the element in a slot that has one."""
    if s._layout == RAGGED:
        return block_data(block_owner(s, index))
    if s._layout == PACKED:
        head = packed_head(s)
        return s._data + offset_at(head, index) * head_word(head, ROW_BYTES)
    return s._data + index * s._element_bytes


@kernel
def block_intact(owner):
    """Whether nobody wrote beside a ragged block."""
    guard, data = setting(settings.GUARD), block_data(owner)
    return painted(data - guard, guard) and painted(data + block_at(owner)[BLOCK_ROOM], guard)


@kernel
def store_intact(s):
    """Whether the guards around everything that a store holds are as they were painted."""
    if not painted_around(s._data, s._data_bytes):
        return False
    if not painted_around(s._states, s._capacity) or not offsets_intact(s):
        return False
    for i in range(s._size if s._layout == RAGGED and s._data_bytes else 0):
        owner = block_owner(s, i)
        if owner and not block_intact(owner):
            return False
    return True
