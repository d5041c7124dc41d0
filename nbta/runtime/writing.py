"""Kernels that write: one slot, many slots, pieces of a value.

Each checks everything first, then finds the memory, then writes: an error changes nothing.
"""

from nbta.dtypes import BOOL
from nbta.errors import STATUS
from nbta.runtime import memory as mem
from nbta.runtime.accumulation import add_elements, add_widened, is_half, widen
from nbta.runtime.buffers import LARGEST
from nbta.runtime.layout import (
    PATTERN,
    count_bytes,
    expect_appends,
    fits_pattern,
    pattern_of,
    prepare,
    ready_element,
    refresh,
    set_pattern,
    shape_known,
    slot_data,
    state_of,
    tell_pattern,
    tell_slot_shape,
)
from nbta.runtime.memory import kernel, publish_byte, room
from nbta.runtime.packed import (
    PACKED_COUNT,
    PACKED_RANK,
    ROW_BYTES,
    ROW_SHAPE,
    head_word,
    offset_at,
    offsets_room,
    packed_count,
    packed_head,
    put_head_word,
    put_offset,
    trim_packed,
)
from nbta.runtime.request import (
    APPEND,
    COUNT,
    DTYPE,
    EXPECTED,
    GOT,
    INDEX,
    LIST,
    MAX_RANK,
    OUT_RANK,
    OUT_SHAPE,
    RANK,
    SHAPE,
    SLOT,
    VALUE,
)
from nbta.runtime.slots import (
    FREE,
    PENDING,
    WRITTEN,
    ZERO,
    after_write,
    claim,
    claim_limit,
    holds_sum,
    write_status,
)
from nbta.runtime.store import (
    FIELD,
    PACKED,
    RAGGED,
    UNIFORM,
    replace_memory,
    set_dimension,
    store_address,
)
from nbta.tuning import MOST_PACKED


@kernel
def item_of(r, k):
    """The k-th of the request's indices or lengths; k itself where it lists none."""
    return mem.load_int(r[LIST] + 8 * k) if r[LIST] else k


@kernel
def check_array(s, r, dtype_status):
    """Closed arrays take no operation, and a value's dtype is the array's."""
    if s._closed:
        return STATUS.closed
    return STATUS.ok if r[DTYPE] == s._dtype else dtype_status


@kernel
def check_slot(s, r, index, rank, first):
    """Whether a slot takes a value of shape ``r[first:first + rank]``."""
    r[SLOT] = index
    if index < 0 or (index >= s._size and not s._dynamic):
        r[EXPECTED] = s._size
        return STATUS.write_out_of_range
    if index >= s._size and s._parallel:
        return STATUS.growth_in_loop
    if index >= LARGEST:
        r[GOT], r[EXPECTED] = index, s._itemsize
        return STATUS.too_large
    if rank > MAX_RANK:
        r[GOT] = rank
        return STATUS.rank
    if not fits_pattern(s, rank, r, first):
        tell_pattern(s, r)
        return STATUS.incompatible_element_shape
    return check_state(s, r, index, rank, first)


@kernel
def check_state(s, r, index, rank, first):
    """Forward slots are written once; gradient slots add what has their shape."""
    state = state_of(s, index)
    status = write_status(state, s._gradient)
    if status != STATUS.ok or state & (WRITTEN | PENDING) == 0:
        return status
    if s._layout == RAGGED and state & WRITTEN:
        tell_slot_shape(s, r, index)
        same = r[OUT_RANK] == rank
        for axis in range(rank if same else 0):
            same = same and r[OUT_SHAPE + axis] == r[first + axis]
        if not same:
            return STATUS.aggregate_shape
    adds = state & ZERO == 0 or state & PENDING  # to an earlier row of this scatter
    if s._dtype == BOOL and adds and count_bytes(rank, r, first, 1):
        return STATUS.aggregate_dtype
    return STATUS.ok


@kernel
def fill(s, index, source, nbytes):
    """Store a value in a slot of a forward array that is ready for it."""
    mem.copy_bytes(slot_data(s, index), source, nbytes)
    occupy(s, index)


@kernel
def add(s, index, source, nbytes):
    """Add a value into a slot of a gradient array that is ready for it."""
    adds, target = holds_sum(state_of(s, index)), slot_data(s, index)
    if is_half(s._dtype):
        if adds:
            add_widened(s._dtype, target, source, nbytes // 2)
        else:
            widen(s._dtype, target, source, nbytes // 2)
    elif adds:
        add_elements(s._dtype, target, source, nbytes)
    else:
        mem.copy_bytes(target, source, nbytes)
    occupy(s, index)


@kernel
def occupy(s, index):
    """Mark a slot as written; the array reaches at least this far."""
    publish_byte(s._states + index, after_write(s._gradient, s._parallel))
    if index >= s._size:
        s._size = index + 1


@kernel
def put(s, index, source, nbytes):
    """`fill` or `add`, as the array is."""
    if s._gradient:
        add(s, index, source, nbytes)
    else:
        fill(s, index, source, nbytes)


@kernel
def append_rows(s, r):
    """Write an element after those that are packed, where there is room and nothing to find out.

    False where `write` must see to it, which takes four times as long.
    """
    head, rank = packed_head(s), r[RANK]
    if head == 0 or s._parallel or r[DTYPE] != s._dtype or rank != head_word(head, PACKED_RANK):
        return False
    index, rows, width = head_word(head, PACKED_COUNT), r[SHAPE], head_word(head, ROW_BYTES)
    if r[INDEX] != index or index == 0 or not fits_pattern(s, rank, r, SHAPE):
        return False
    for axis in range(1, rank):
        if r[SHAPE + axis] != head_word(head, ROW_SHAPE + axis - 1):
            return False
    limit = s._capacity if s._dynamic else s._size
    if index >= limit or index + 2 > offsets_room(s) or max(rows, width) > MOST_PACKED:
        return False
    begin, nbytes = offset_at(head, index), rows * width
    place = begin * width
    if nbytes >= MOST_PACKED or place + nbytes > s._data_bytes:
        return False
    if mem.load_byte(s._states + index) != FREE:
        return False
    mem.copy_bytes(s._data + place, r[VALUE], nbytes)
    put_offset(head, index + 1, begin + rows)
    put_head_word(head, PACKED_COUNT, index + 1)
    occupy(s, index)
    return True


def _writer(put_value):
    """WRITE for one kind of array; only what it needs is compiled."""

    @kernel
    def write(s, r):
        status = check_array(s, r, STATUS.write_dtype)
        if status == STATUS.ok:
            status = check_slot(s, r, r[INDEX], r[RANK], SHAPE)
        if status != STATUS.ok:
            return status
        nbytes = count_bytes(r[RANK], r, SHAPE, s._itemsize)
        needed = max(r[INDEX] + 1, s._size)
        status = prepare(s, r, needed, r[RANK], r, SHAPE)
        if status == STATUS.ok and s._layout != UNIFORM:
            status = ready_element(s, r, r[INDEX], r[RANK], r, SHAPE)
        if status == STATUS.ok and s._parallel:
            status = claim(s, r, r[INDEX])
            if status != STATUS.ok:
                trim_packed(s, r[INDEX])
        if status == STATUS.ok:
            put_value(s, r[INDEX], r[VALUE], nbytes)
        return status

    return write


_write, _accumulate = _writer(fill), _writer(add)


@kernel
def write_forward(operation, s, r):
    """WRITE and APPEND of a forward array."""
    if operation == APPEND:
        r[INDEX] = s._size
    if s._layout == PACKED and append_rows(s, r):
        return STATUS.ok
    capacity = s._capacity
    status = _write(s, r)
    if operation == APPEND and s._capacity > capacity:
        expect_appends(s)
    return status


@kernel
def write_gradient(operation, s, r):
    """The same of a gradient array, which adds."""
    if operation == APPEND:
        r[INDEX] = s._size
    return _accumulate(s, r)


#: The answer of `add_by_claim` where it did nothing; no status is negative.
NOT_CLAIMED = -1


@kernel
def add_by_claim(operation, s, r):
    """Add to a slot of a uniform array in a parallel loop, without the store's lock."""
    index = r[INDEX]
    if operation == APPEND or index < 0 or index >= claim_limit(store_address(s), FIELD.claim_add):
        return NOT_CLAIMED
    if r[DTYPE] != s._dtype or not fits_pattern(s, r[RANK], r, SHAPE):
        return NOT_CLAIMED
    status = claim(s, r, index)
    if status == STATUS.ok:
        add(s, index, r[VALUE], s._element_bytes)
    return status


@kernel
def mark_pending(s, r, slot):
    """Claim a slot for this operation, so that it is not named twice."""
    if slot < s._capacity:
        state = mem.load_byte(s._states + slot)
        mem.store_byte(s._states + slot, state | PENDING)


@kernel
def unmark(s, r, count):
    """Undo `mark_pending` for the first ``count`` listed slots."""
    for k in range(count):
        slot = item_of(r, k)
        if 0 <= slot < s._capacity:
            state = mem.load_byte(s._states + slot)
            mem.store_byte(s._states + slot, state & ~PENDING)


@kernel
def highest(s, r):
    """Slots the array needs when every listed slot is written."""
    needed = s._size
    for k in range(r[COUNT]):
        needed = max(needed, item_of(r, k) + 1)
    return needed


@kernel
def check_bounds(s, r):
    """Whether no listed slot lies past the end of an array that does not grow."""
    for k in range(0 if s._dynamic else r[COUNT]):
        slot = item_of(r, k)
        if slot >= s._size:
            r[SLOT], r[EXPECTED] = slot, s._size
            return STATUS.scatter_out_of_range
    return STATUS.ok


@kernel
def scatter(s, r):
    """SCATTER: row k goes to slot ``indices[k]``; INDEX rows, of the shape in RANK and SHAPE."""
    status = check_array(s, r, STATUS.write_dtype)
    if status != STATUS.ok:
        return status
    if r[RANK] < 0:
        return STATUS.scatter_scalar
    if r[INDEX] != r[COUNT]:
        r[EXPECTED], r[GOT] = r[COUNT], r[INDEX]
        return STATUS.scatter_length
    status = check_bounds(s, r)
    if status == STATUS.ok and r[COUNT] == 0:
        return STATUS.ok if r[LIST] else learn_shape(s, r)
    if status != STATUS.ok:
        return status
    if not fits_pattern(s, r[RANK], r, SHAPE):
        tell_pattern(s, r)
        r[SLOT] = item_of(r, 0)
        return STATUS.incompatible_element_shape
    return scatter_rows(s, r)


@kernel
def learn_shape(s, r):
    """Rows of which there are none tell the shape of elements where a first write would."""
    r[SLOT] = 0
    if s._gradient or not s._infer_shape:
        return STATUS.ok
    if r[RANK] > MAX_RANK:
        r[GOT] = r[RANK]
        return STATUS.rank
    if not fits_pattern(s, r[RANK], r, SHAPE):
        tell_pattern(s, r)
        return STATUS.incompatible_element_shape
    s._rank = r[RANK]
    for axis in range(r[RANK]):
        set_dimension(s, axis, r[SHAPE + axis])
    return STATUS.ok


@kernel
def scatter_rows(s, r):
    """Claim all slots, find memory for all, then write all."""
    before, undecided = pattern_of(s, room(PATTERN)), s._layout == 0
    status = prepare(s, r, highest(s, r), r[RANK], r, SHAPE)
    if status != STATUS.ok:
        return status
    packed = packed_count(s)
    done = 0
    while status == STATUS.ok and done < r[COUNT]:
        slot = item_of(r, done)
        status = check_slot(s, r, slot, r[RANK], SHAPE)
        if status == STATUS.ok and s._layout != UNIFORM:
            status = ready_element(s, r, slot, r[RANK], r, SHAPE)
        if status == STATUS.ok:
            mark_pending(s, r, slot)
            done += 1
    unmark(s, r, done)
    if status != STATUS.ok:
        trim_packed(s, packed)
        if undecided:
            forget_layout(s, before)
        return status
    nbytes = count_bytes(r[RANK], r, SHAPE, s._itemsize)
    for k in range(r[COUNT]):
        put(s, item_of(r, k), r[VALUE] + k * nbytes, nbytes)
    refresh(s)
    return STATUS.ok


@kernel
def forget_layout(s, before):
    """Back to an undecided layout, after an operation that decided it failed."""
    s._layout, s._element_bytes = 0, 0
    trim_packed(s, 0)
    replace_memory(s, 0, 0, 0, s._states_owner, s._states)
    set_pattern(s, before)
    refresh(s)


@kernel
def split(s, r):
    """SPLIT: cut the value along its first axis and write piece k to slot k.

    INDEX says whether there may be fewer pieces than slots.
    """
    status = check_array(s, r, STATUS.write_dtype)
    if status == STATUS.ok:
        status = check_lengths(s, r)
    if status != STATUS.ok or r[COUNT] == 0:
        return status
    lengths, r[LIST] = r[LIST], 0
    before, undecided = pattern_of(s, room(PATTERN)), s._layout == 0
    status = split_check(s, r, lengths)
    if status == STATUS.ok:
        r[SHAPE] = mem.load_int(lengths)
        status = prepare(s, r, max(s._size, r[COUNT]), r[RANK], r, SHAPE)
    if status == STATUS.ok:
        status = split_pieces(s, r, lengths)
        if status != STATUS.ok and undecided:
            forget_layout(s, before)
    return status


@kernel
def check_lengths(s, r):
    """Lengths are not negative, add up to the rows there are, and number the slots."""
    if r[RANK] == 0:
        return STATUS.split_scalar
    total = negative = 0
    for k in range(r[COUNT]):
        length = mem.load_int(r[LIST] + 8 * k)
        if length < 0 and negative == 0:
            r[SLOT], negative = k, length
        total += length
    if total != r[SHAPE]:
        r[GOT], r[EXPECTED] = total, r[SHAPE]
        return STATUS.split_sum
    if negative:
        r[GOT] = negative
        return STATUS.split_negative
    too_few = r[COUNT] < s._size and not r[INDEX]
    if too_few or (r[COUNT] > s._size and not s._dynamic):
        r[GOT], r[EXPECTED] = r[COUNT], s._size
        return STATUS.split_count
    return STATUS.ok


@kernel
def split_check(s, r, lengths):
    """Whether every slot takes its piece; with infer_shape, the first piece sets the shape."""
    one_shape = s._infer_shape and not shape_known(s)
    first = mem.load_int(lengths)
    status, k = STATUS.ok, 0
    while status == STATUS.ok and k < r[COUNT]:
        r[SHAPE] = mem.load_int(lengths + 8 * k)
        status = check_slot(s, r, k, r[RANK], SHAPE)
        if status == STATUS.ok and one_shape and r[SHAPE] != first:
            r[OUT_RANK] = r[RANK]
            for axis in range(r[RANK]):
                r[OUT_SHAPE + axis] = r[SHAPE + axis]
            r[OUT_SHAPE] = first
            status = STATUS.incompatible_element_shape
        k += 1
    return status


@kernel
def split_pieces(s, r, lengths):
    """Find memory for all pieces, then write them."""
    packed = packed_count(s)
    for k in range(r[COUNT] if s._layout != UNIFORM else 0):
        r[SHAPE] = mem.load_int(lengths + 8 * k)
        status = ready_element(s, r, k, r[RANK], r, SHAPE)
        if status != STATUS.ok:
            trim_packed(s, packed)
            return status
    source = r[VALUE]
    for k in range(r[COUNT]):
        r[SHAPE] = mem.load_int(lengths + 8 * k)
        nbytes = count_bytes(r[RANK], r, SHAPE, s._itemsize)
        put(s, k, source, nbytes)
        source += nbytes
    if not s._gradient:  # whose mark is the forward array's
        s._marked = r[COUNT]
    refresh(s)
    return STATUS.ok
