"""Arrays of compiled graphs: a record of words, items in one buffer, and a byte a slot.

The rules are those of `nbta.runtime.writing` and `reading`, for arrays whose elements have one
shape. What those would refuse is refused here without a word: the reference executor runs the
program again and says what it was. Results below 0 are minus a status.
"""

from numba import types

from nbta.runtime.memory import clear_bytes, copy_bytes, kernel, load_byte, store_byte
from nbta.runtime.pointers import call, pointer
from nbta.runtime.protocol import FAILED, INTERRUPTED, MEMORY, RAGGED

#: Words of a record. Addresses of buffers are followed by their lengths in bytes; GIVEN takes the
#: extents of an element that is to be written, HINT how many slots a loop will have written.
(
    DATA, STATE, SIZE, GROWS, KNOWN, COUNT, FLAGS, ITEM, RANK, THERE, GROW, EXTENTS, GIVEN, HINT,
    WORDS,
) = (0, 2, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 21, 29, 30)  # fmt: skip
#: Of FLAGS: reading clears; the first write fixes the shape; writes add up.
CLEARS, INFERS, ADDS = 1, 2, 4
#: Of a slot.
WRITTEN, READ = 1, 2
#: What to do.
CREATE, LOOK_UP, WRITE_SLOT, READ_SLOT, WRITE_ALL, READ_ALL = range(6)
MAX_RANK = 8


def plain(w, r, what, a, b):
    """One operation on the array whose record begins at word ``r``; a slot's first item, or 0."""
    record = pointer(types.int64, w + 8 * r, 0)
    if what == WRITE_SLOT:
        return write_slot(record, r, a)
    if what == READ_SLOT:
        return read_slot(record, r, a)
    if what == CREATE:
        return create(record, r, a, b)
    if what == LOOK_UP:
        return look_up(record, r, pointer(types.int64, w + 8 * a, 0))
    if what == READ_ALL:
        return read_all(record, r, a, b)
    return write_all(record, r, a, b)


@kernel
def room(record, r, buffer, nbytes, kept):
    """See to it that a buffer has so many bytes; its first ``kept`` stay."""
    if record[buffer + 1] >= nbytes:
        return 0
    status = call(record[GROW], (r + buffer, nbytes, kept))
    if record[buffer + 1] >= nbytes:
        return 0
    return -MEMORY if status == MEMORY else -INTERRUPTED


@kernel
def grown(record, r, buffer, count, unit):
    """`room` for slots: as many as will be written if that is known, else twice what there was."""
    have = record[buffer + 1]
    if have >= count * unit:
        return 0
    expected = record[HINT]
    nbytes = expected * unit if expected >= count else max(count * unit, 2 * have)
    return room(record, r, buffer, nbytes, have)


@kernel
def bytes_of(record):
    """Bytes of an element."""
    return record[COUNT] * record[ITEM]


@kernel
def create(record, r, size, grows):
    """An empty array; its extents are given, -1 where they are not known."""
    if size < 0:
        return -FAILED
    record[SIZE], record[GROWS], record[HINT] = size, grows, 0
    known, count = 1, 1
    for axis in range(record[RANK]):
        extent = record[GIVEN + axis]
        record[EXTENTS + axis] = extent
        known = known if extent >= 0 else 0
        count *= extent
    record[KNOWN], record[COUNT] = known, count
    return no_slots(record, r, size)


@kernel
def no_slots(record, r, size):
    """All slots unwritten."""
    status = room(record, r, STATE, size, 0)
    if status == 0:
        clear_bytes(record[STATE], size)
    return status


@kernel
def look_up(record, r, parent):
    """The gradient array of another one, made if there is none yet."""
    if record[THERE] != 0:
        return 0
    parent[GROWS] = 0
    record[THERE], record[GROWS] = 1, 0
    record[SIZE], record[KNOWN], record[COUNT] = parent[SIZE], parent[KNOWN], parent[COUNT]
    for axis in range(record[RANK]):
        record[EXTENTS + axis] = parent[EXTENTS + axis]
    status = no_slots(record, r, record[SIZE])
    if status == 0 and record[KNOWN] != 0 and record[FLAGS] & INFERS == 0:
        return zeros_of_written(record, r, parent)
    return status


@kernel
def zeros_of_written(record, r, parent):
    """Zeros where the forward array was written; of other slots nobody knows the shape."""
    nbytes = record[SIZE] * bytes_of(record)
    status = room(record, r, DATA, nbytes, 0)
    if status == 0:
        clear_bytes(record[DATA], nbytes)
        for slot in range(record[SIZE]):
            if load_byte(parent[STATE] + slot) != 0:
                store_byte(record[STATE] + slot, WRITTEN)
    return status


@kernel
def reserve(record, r, count):
    """Let there be so many slots, if there may."""
    size = record[SIZE]
    if count <= size:
        return 0
    if record[GROWS] == 0:
        return -FAILED
    status = grown(record, r, STATE, count, 1)
    if status == 0:
        clear_bytes(record[STATE] + size, count - size)
        record[SIZE] = count
    return status


@kernel
def fit(record):
    """Hold the given extents against those of the elements, or learn them."""
    rank = record[RANK]
    if record[KNOWN] != 0:
        for axis in range(rank):
            if record[EXTENTS + axis] != record[GIVEN + axis]:
                return -FAILED if record[FLAGS] & INFERS else -RAGGED
        return 0
    count = 1
    for axis in range(rank):
        extent = record[GIVEN + axis]
        if record[EXTENTS + axis] >= 0 and record[EXTENTS + axis] != extent:
            return -FAILED
        record[EXTENTS + axis] = extent
        count *= extent
    record[KNOWN], record[COUNT] = 1, count
    return 0


@kernel
def place_for(record, r, count):
    """Room for slots up to a number, and for elements like the given one."""
    status = reserve(record, r, count)
    if status == 0:
        status = fit(record)
    if status == 0:
        status = grown(record, r, DATA, record[SIZE], bytes_of(record))
    return status


@kernel
def write_slot(record, r, slot):
    """Where a slot's items go; for arrays that add, twice that, and 1 more for the first write."""
    status = -FAILED if slot < 0 else place_for(record, r, slot + 1)
    if status != 0:
        return status
    state = load_byte(record[STATE] + slot)
    first = slot * record[COUNT]
    if record[FLAGS] & ADDS:
        if state & READ:
            return -FAILED
        first = 2 * first + (1 if state == 0 else 0)
    elif state != 0:
        return -FAILED
    store_byte(record[STATE] + slot, WRITTEN)
    return first


@kernel
def read_slot(record, r, slot):
    """Where a slot's items are: an unwritten one becomes zeros, a cleared one is gone."""
    if slot < 0 or slot >= record[SIZE]:
        return -FAILED
    state, flags = load_byte(record[STATE] + slot), record[FLAGS]
    if flags & CLEARS and state & READ:
        return -FAILED
    if state == 0:
        status = zeros(record, r, slot)
        if status != 0:
            return status
    if flags & (CLEARS | ADDS):  # others take no second write as it is, and tapes need no store
        store_byte(record[STATE] + slot, WRITTEN | READ)
    return slot * record[COUNT]


@kernel
def zeros(record, r, slot):
    """Let an unwritten slot hold zeros, where its shape is known."""
    if record[KNOWN] == 0 or record[FLAGS] & INFERS == 0:
        return -FAILED
    nbytes = bytes_of(record)
    status = room(record, r, DATA, record[SIZE] * nbytes, record[DATA + 1])
    if status == 0:
        clear_bytes(record[DATA] + slot * nbytes, nbytes)
        if record[FLAGS] & CLEARS == 0:
            store_byte(record[STATE] + slot, WRITTEN)
    return status


@kernel
def read_all(record, r, count, first):
    """Let slots be read that lie together; where the first one's items are."""
    if record[KNOWN] == 0:
        return -FAILED
    for slot in range(first, first + count):
        place = read_slot(record, r, slot)
        if place < 0:
            return place
    return first * record[COUNT]


@kernel
def write_all(record, r, count, source):
    """Copy elements that lie together into the first slots; 0."""
    if count == 0:
        return 0
    status = place_for(record, r, count)
    if status != 0:
        return status
    for slot in range(count):
        if load_byte(record[STATE] + slot) != 0:
            return -FAILED
        store_byte(record[STATE] + slot, WRITTEN)
    copy_bytes(record[DATA], source, count * bytes_of(record))
    return 0
