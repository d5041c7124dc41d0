"""The kernels' entry points, and the kernels that make and close arrays and their gradient arrays.

One serves all dtypes and ranks. They come with a wheel, or are compiled and kept on disk. There are
three, so that a program waits only for the compiling of what it uses. Compiled user code calls
them by address instead of linking the kernels in, so a user's function compiles quickly.
"""

import numpy as np

from nbta.dtypes import OTHER
from nbta.errors import STATUS
from nbta.runtime import memory as mem
from nbta.runtime import request as rq
from nbta.runtime import settings
from nbta.runtime.accumulation import is_half
from nbta.runtime.buffers import LARGEST, copied_points, keep_older, new_points, no_bytes
from nbta.runtime.cold_fields import (
    GRADIENTS,
    NAME,
    SOURCE,
    SOURCE_HASH,
    SOURCES,
    SUFFIX,
    cold_address,
    cold_points,
    ensure_cold,
    put_cold_array,
    put_cold_number,
)
from nbta.runtime.layout import (
    block_at,
    decide_layout,
    expect_appends,
    give,
    inline_capacity,
    lie_inline,
    new_block,
    put_block,
    refresh,
    reserve,
    reserve_ahead,
    shape_known,
    state_of,
    tell_slot_shape,
    try_capacity,
)
from nbta.runtime.memory import kernel
from nbta.runtime.reading import concat, gather, look, look_at_all, offsets, read, stack, view
from nbta.runtime.request import COUNT, DTYPE, EXPECTED, GOT, INDEX, LIST, MAX_RANK, RANK, SHAPE
from nbta.runtime.settings import add_to_setting, setting
from nbta.runtime.sharing import acquire, change_use, free, inherit, release
from nbta.runtime.slots import READ, WRITTEN, ZERO, after_read
from nbta.runtime.sources import (
    find_gradient,
    gradients_of,
    hold_gradient,
    may_keep,
    source_hash,
)
from nbta.runtime.store import (
    BLOCK_RANK,
    BLOCK_SHAPE,
    PACKED,
    RAGGED,
    UNIFORM,
    get_dimension,
    new_store,
    room_for,
    set_dimension,
    store_address,
    store_at,
)
from nbta.runtime.writing import (
    NOT_CLAIMED,
    add_by_claim,
    scatter,
    split,
    write_forward,
    write_gradient,
)

#: Bits of the request's LIST word for CREATE.
DYNAMIC, CLEARS, INFERS = 1, 2, 4
#: What comes before a source in a name, and before such a character in the source.
AT, ESCAPE = ord("@"), ord("\\")


@kernel
def new_id():
    """The next number for a handle."""
    return add_to_setting(settings.NEXT_ID, 1)


@kernel
def first_bytes(r):
    """Bytes of an element of the shape that CREATE is given; unknown dimensions count as 1."""
    nbytes = r[COUNT]
    for axis in range(r[RANK]):
        nbytes = min(nbytes * max(r[SHAPE + axis], 1), LARGEST) if r[SHAPE + axis] else 0
    return nbytes


@kernel
def take_name(s, r):
    """Let a new array have the name that CREATE is given; whether there is memory."""
    if not ensure_cold(s):
        return False
    name = copied_points(r[rq.VALUE], r[rq.RESULT])
    put_cold_array(s, NAME, name)
    return len(name) == r[rq.RESULT]


@kernel
def create(r):
    """CREATE: INDEX is the size, COUNT the item size, LIST the flags, VALUE and RESULT the name."""
    size = r[INDEX]
    if size < 0:
        r[GOT] = size
        return STATUS.negative_size
    if r[RANK] > MAX_RANK:
        r[GOT] = r[RANK]
        return STATUS.rank
    s = new_store(room_for(r[RANK], size, first_bytes(r)))
    if store_address(s) == 0:
        r[GOT], r[EXPECTED] = size, r[COUNT]
        return STATUS.too_large
    return give(s, r, describe(s, r))


@kernel
def describe(s, r):
    """What CREATE says of a new array."""
    size, flags = r[INDEX], r[LIST]
    if r[rq.RESULT] and not take_name(s, r):
        r[GOT], r[EXPECTED] = 1, 4 * r[rq.RESULT]
        return STATUS.too_large
    s._id, s._dtype = new_id(), r[DTYPE]
    s._itemsize = s._storage_itemsize = r[COUNT]
    s._dynamic = flags & DYNAMIC
    s._clear_after_read = (flags & CLEARS) // CLEARS
    s._infer_shape = (flags & INFERS) // INFERS
    s._read_state = after_read(s._clear_after_read)
    s._rank = r[RANK]
    for axis in range(s._rank):
        set_dimension(s, axis, r[SHAPE + axis])
    status = decide_layout(s, r) if shape_known(s) else STATUS.ok
    if status == STATUS.ok and size > 0:
        status = reserve(s, r, size)
    if status != STATUS.ok:
        return status
    if size == 0 and s._dynamic and s._element_bytes:
        lie_inline(s, inline_capacity(s, s._element_bytes), s._element_bytes)
    s._size = size
    refresh(s)
    return STATUS.ok


@kernel
def views_uncounted(s):
    """Whether compiled code may look at the buffer by views whose references nobody counts."""
    if s._layout != UNIFORM or s._rank == 0 or s._data_bytes == 0:
        return False
    states, seen = mem.array_at(s._states, s._size, np.uint8), 0
    for i in range(len(states)):
        seen |= states[i] & READ
    return seen != 0


@kernel
def gradients_seen(s):
    """The same of a gradient array, or what that may hold, which the array keeps alive."""
    owners, found = gradients_of(s), False
    for i in range(len(owners)):
        g = store_at(mem.owner_payload(owners[i]))
        found = found or len(gradients_of(g)) > 0 or views_uncounted(g)
    return found


@kernel
def close(s, r):
    """CLOSE: free everything; views handed out keep what they show.

    INDEX tells whether compiled code asks. Then a buffer that it has views of goes with the array,
    kept by that of the gradient arrays. Else that lets go of gradient arrays, which nobody finds
    any more.
    """
    first, seen = not s._closed, r[INDEX] and not s._closed and views_uncounted(s)
    if seen and s._data_owner != s._owner:
        if not may_keep(s):
            r[GOT], r[EXPECTED] = 1, 16
            return STATUS.too_large
        keep_older(mem.load_int(cold_address(s, GRADIENTS)), s._data_owner)
    if first and not seen and not s._users and not (r[INDEX] and gradients_seen(s)) and s._cold:
        put_cold_array(s, GRADIENTS, no_bytes())
        put_cold_array(s, SOURCES, no_bytes())
    s._closed = 1
    free(s)
    s._capacity = s._size = s._layout = 0
    refresh(s)
    return STATUS.ok


def storage_entry(operation, store, request):
    """CREATE, WRITE, APPEND, READ, VIEW, LOOK, CLOSE, RESERVE, and who uses an array."""
    r = mem.array_at(request, rq.WORDS, np.int64)
    if operation == rq.CREATE:
        return create(r)
    s = store_at(store)
    if s._gradient and operation in (rq.WRITE, rq.APPEND, rq.ACCUMULATE):
        # Before the lock is held: the first call of an entry point runs in Python.
        return mem.call_entry(setting(settings.GRADIENT_ENTRY), operation, store, request)
    held = acquire(s)
    status = storage(operation, s, r)
    release(s, held)
    return status


@kernel
def storage(operation, s, r):
    """An operation of the storage entry point on a store that is locked where it has users."""
    if operation == rq.READ:
        return read(s, r)
    if operation == rq.VIEW:
        return view(s, r)
    if operation == rq.LOOK:
        return look(s, r)
    if operation == rq.CLOSE:
        return close(s, r)
    if operation == rq.RESERVE:
        reserve_ahead(s, r[INDEX])
        expect_appends(s)
        return STATUS.ok
    if operation >= rq.ENTER:
        change_use(operation, s, r)
        return STATUS.ok
    if operation == rq.ACCUMULATE:
        return STATUS.closed if s._closed else STATUS.not_gradient
    return write_forward(operation, s, r)


def bulk_entry(operation, store, request):
    """GATHER, STACK, LOOK_AT_ALL, SCATTER, CONCAT, SPLIT and OFFSETS."""
    r = mem.array_at(request, rq.WORDS, np.int64)
    s = store_at(store)
    held = acquire(s)
    status = STATUS.bulk_in_loop if s._parallel else bulk(operation, s, r)
    release(s, held)
    return status


@kernel
def bulk(operation, s, r):
    """An operation of the bulk entry point on a store that is locked where it has users."""
    if operation == rq.STACK:
        return stack(s, r)
    if operation == rq.GATHER:
        return gather(s, r)
    if operation == rq.LOOK_AT_ALL:
        return look_at_all(s, r)
    if operation == rq.CONCAT:
        return concat(s, r)
    if operation == rq.OFFSETS:
        return offsets(s, r)
    return scatter(s, r) if operation == rq.SCATTER else split(s, r)


def gradient_entry(operation, store, request):
    """GRAD, and writes to gradient arrays, which accumulate."""
    r = mem.array_at(request, rq.WORDS, np.int64)
    s = store_at(store)
    if operation != rq.GRAD:
        status = add_by_claim(operation, s, r)
        if status != NOT_CLAIMED:
            return status
    held = acquire(s)
    status = gradient(s, r) if operation == rq.GRAD else write_gradient(operation, s, r)
    release(s, held)
    return status


# Gradient arrays: lookup by source, creation, virtual zeros.


@kernel
def gradient(s, r):
    """GRAD: the gradient array for a source, made at the first lookup; ends growth."""
    if s._closed:
        return STATUS.closed
    if s._dtype == OTHER:
        return STATUS.no_gradient
    for axis in range(r[RANK]):
        if r[SHAPE + axis] < 0:
            r[GOT] = r[SHAPE + axis]
            return STATUS.prepend_negative
    r[rq.RESULT] = source_hash(r)
    r[rq.OWNER] = find_gradient(s, r)
    if r[rq.OWNER]:
        mem.retain(r[rq.OWNER])
        return STATUS.ok
    return new_gradient(s, r)


@kernel
def prepended_bytes(s, r):
    """Bytes of an element with the shape to prepend, for a message: 2**62 where there are more."""
    found, most = max(s._element_bytes, 1), 1 << 62
    for axis in range(r[RANK]):
        length = r[SHAPE + axis]
        found = most if length and found > most // length else found * length
    return found


@kernel
def new_gradient(s, r):
    """Make a gradient array and let the forward array hold it."""
    rank = -1 if s._rank < 0 else s._rank + r[RANK]
    if s._rank + r[RANK] > MAX_RANK:
        r[GOT] = s._rank + r[RANK]
        return STATUS.rank
    g, status = new_store(room_for(rank, s._size, prepended_bytes(s, r))), STATUS.too_large
    if store_address(g):
        status = shape_gradient(s, g, r)
        if status == STATUS.ok and not hold_gradient(s, g):
            status = STATUS.too_large
        status = give(g, r, status)
    if status == STATUS.too_large:
        r[GOT], r[EXPECTED] = s._size, prepended_bytes(s, r)
    return status


@kernel
def longer_suffix(suffix, source):
    """What `nbta.naming.gradient_name` adds to a name; no points when there is no memory."""
    count = len(suffix) + 1 + len(source)
    for point in source:
        count += point in (AT, ESCAPE)
    longer = new_points(count)
    if len(longer) == 0:
        return longer
    longer[: len(suffix)] = suffix
    longer[len(suffix)] = AT
    end = len(suffix) + 1
    for point in source:
        if point in (AT, ESCAPE):
            longer[end] = ESCAPE
            end += 1
        longer[end] = point
        end += 1
    return longer


@kernel
def name_gradient(s, g, r):
    """Source and name of a gradient array; whether there is memory for them."""
    if not ensure_cold(g):
        return False
    source = copied_points(r[rq.VALUE], r[COUNT])
    suffix = longer_suffix(cold_points(s, SUFFIX), source)
    if len(source) < r[COUNT] or len(suffix) == 0:
        return False
    put_cold_array(g, SOURCE, source)
    put_cold_number(g, SOURCE_HASH, source_hash(r))
    put_cold_array(g, NAME, cold_points(s, NAME))
    put_cold_array(g, SUFFIX, suffix)
    return True


@kernel
def shape_gradient(s, g, r):
    """Size, element shape and virtual zeros of a gradient array, after its forward array's."""
    g._id, g._dtype = s._id, s._dtype
    inherit(s, g)
    g._itemsize = s._itemsize
    g._storage_itemsize = 4 if is_half(s._dtype) else s._itemsize
    g._gradient, g._infer_shape = 1, s._infer_shape
    g._clear_after_read, g._marked = r[INDEX], s._marked
    g._read_state = after_read(r[INDEX])
    if not name_gradient(s, g, r):
        return STATUS.too_large
    if s._rank >= 0:
        g._rank = s._rank + r[RANK]
        for axis in range(r[RANK]):
            set_dimension(g, axis, r[SHAPE + axis])
        for axis in range(s._rank):
            set_dimension(g, r[RANK] + axis, get_dimension(s, axis))
    status = STATUS.ok
    if s._layout in (RAGGED, PACKED):
        g._layout = RAGGED
    elif shape_known(g):
        status = decide_layout(g, r)
    unit = 8 if g._layout == RAGGED else 0  # elements get memory at the first write or read
    if status != STATUS.ok:
        return status
    inline = s._size == 0 or lie_inline(g, s._size, unit)
    if not inline and not try_capacity(g, s._size, unit, True):
        return STATUS.too_large
    g._size = s._size
    refresh(g)
    return virtual_zeros(s, g, r)


@kernel
def virtual_zeros(s, g, r):
    """Slots written in the forward array hold zeros of its shapes, which take no memory."""
    for i in range(s._size):
        if state_of(s, i) & WRITTEN == 0:
            continue
        if g._layout == RAGGED:
            status = stub_shape(s, g, r, i)
            if status != STATUS.ok:
                return status
        mem.store_byte(g._states + i, WRITTEN | ZERO)
    return STATUS.ok


@kernel
def stub_shape(s, g, r, index):
    """Note the shape of a ragged gradient slot: the prefix, then the forward slot's."""
    tell_slot_shape(s, r, index)
    rank = r[RANK] + r[rq.OUT_RANK]
    if rank > MAX_RANK:
        r[GOT] = rank
        return STATUS.rank
    stub = new_block(0, r, SHAPE, 0)
    if stub == 0:
        return STATUS.too_large
    head = block_at(stub)
    head[BLOCK_RANK] = rank
    for axis in range(r[RANK]):
        head[BLOCK_SHAPE + axis] = r[SHAPE + axis]
    for axis in range(r[rq.OUT_RANK]):
        head[BLOCK_SHAPE + r[RANK] + axis] = r[rq.OUT_SHAPE + axis]
    put_block(g, index, stub)
    return STATUS.ok
