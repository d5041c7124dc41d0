"""Arrays of compiled graphs: a record of words, items in one buffer, and a byte a slot.

What an operation does to a slot is said in `nbta.runtime.slots`, what else it checks in `writing`
and `reading`, here for arrays whose elements have one shape. What those would refuse is refused
here without a word: the reference executor runs the program again and says what it was. Results
below 0 are minus a status.

A call of `plain` costs 5 ns. Generated code does at once, in 1 to 2 ns, what is simple: a scalar is
written to a slot which is there and free, or read from one which is written.
"""

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from nbta.runtime.intrinsics import (
    FAILED,
    INT64,
    INTERRUPTED,
    MEMORY,
    MOST_ITEMS,
    PLAIN,
    RAGGED,
    call,
    call_word,
    pointer,
    word_at,
)
from nbta.runtime.memory import clear_bytes, copy_bytes, kernel, load_byte, store_byte
from nbta.runtime.numba_private import cgutils
from nbta.runtime.slots import (
    FREE,
    WRITTEN,
    after_read,
    after_write,
    holds_value,
    in_python,
    read_status,
    rule,
    write_status,
)

#: Words of a record. Addresses of buffers are followed by their lengths in bytes; GIVEN takes the
#: extents of an element that is to be written, HINT how many slots a loop will have written.
(
    DATA, STATE, SIZE, GROWS, KNOWN, COUNT, FLAGS, ITEM, RANK, THERE, GROW, EXTENTS, GIVEN, HINT,
    WORDS,
) = (0, 2, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 21, 29, 30)  # fmt: skip
#: Of FLAGS: reading clears; the first write fixes the shape; writes add up.
CLEARS, INFERS, ADDS = 1, 2, 4
#: What to do.
CREATE, LOOK_UP, WRITE_SLOT, READ_SLOT, WRITE_ALL, READ_ALL, RESERVE = range(7)
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
    if what == RESERVE:
        return reserve_items(record, r, a)
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
def reserve_items(record, r, count):
    """Room for the numbers of a packed array."""
    if count > MOST_ITEMS:
        return -MEMORY
    return grown(record, r, DATA, count, record[ITEM])


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
    state, adds = load_byte(record[STATE] + slot), record[FLAGS] & ADDS != 0
    if write_status(state, adds) != 0:
        return -FAILED
    store_byte(record[STATE] + slot, after_write(adds, False))
    first = slot * record[COUNT]
    return 2 * first + (1 if state == FREE else 0) if adds else first


@rule  # a call more took a tenth of the time of a loop's gradient
def read_slot(record, r, slot):
    """Where a slot's items are: an unwritten one becomes zeros, a cleared one is gone."""
    if slot < 0 or slot >= record[SIZE]:
        return -FAILED
    state, after = load_byte(record[STATE] + slot), state_behind_read(record[FLAGS])
    known = state != FREE or (record[KNOWN] != 0 and record[FLAGS] & INFERS != 0)
    if read_status(state, known) != 0:
        return -FAILED
    if state == FREE:
        status = zeros(record, r, slot)
        if status != 0:
            return status
    if state != after:
        store_byte(record[STATE] + slot, after)
    return slot * record[COUNT]


@rule
def state_behind_read(flags):
    """The state that a read leaves.

    A forward array that does not clear goes without the mark READ: its slots take no second write
    as it is, and tapes need no store.
    """
    return after_read(flags & CLEARS) if flags & (CLEARS | ADDS) else after_write(False, False)


@kernel
def zeros(record, r, slot):
    """Let an unwritten slot hold zeros."""
    nbytes = bytes_of(record)
    status = room(record, r, DATA, record[SIZE] * nbytes, record[DATA + 1])
    if status == 0:
        clear_bytes(record[DATA] + slot * nbytes, nbytes)
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
        if write_status(load_byte(record[STATE] + slot), False) != 0:
            return -FAILED
        store_byte(record[STATE] + slot, after_write(False, False))
    copy_bytes(record[DATA], source, count * bytes_of(record))
    return 0


# In generated code.

_BYTE = ir.IntType(8)


@intrinsic
def slot(typingctx, w, record, what, a, b):
    """What an operation on a plain array gives, or the function is left."""

    def codegen(context, builder, sig, args):
        return _called(context, builder, args)

    number = types.int64
    return number(number, number, number, number, number), codegen


def _called(context, builder, args):
    result = call_word(builder, args[0], PLAIN, args)
    with cgutils.if_unlikely(builder, builder.icmp_signed("<", result, INT64(0))):
        context.call_conv.return_value(builder, builder.neg(result))
    return result


@intrinsic(prefer_literal=True)
def write_item(typingctx, w, record, index, itemsize):
    """The place for a scalar in a slot, which is written from now on, or the function is left."""

    def codegen(context, builder, sig, args):
        w, record, index, size = args
        need = builder.mul(builder.add(index, INT64(1)), size)
        room = builder.icmp_signed("<=", need, _field(builder, w, record, DATA + 1))
        after = in_python(after_write)(False, False)
        return _at_once(context, builder, args, room, (0xFF, FREE), after, WRITE_SLOT)

    number = types.int64
    return number(number, number, number, number), codegen


@intrinsic(prefer_literal=True)
def read_item(typingctx, w, record, index, flags):
    """The place of a scalar in a slot, which counts as read now, or the function is left."""
    after = in_python(state_behind_read)(flags.literal_value)
    again = in_python(holds_value)(after)  # then it differs from WRITTEN in a bit that is not asked
    simple = (0xFF ^ after ^ WRITTEN if again else 0xFF, WRITTEN)

    def codegen(context, builder, sig, args):
        return _at_once(context, builder, args, cgutils.true_bit, simple, after, READ_SLOT)

    number = types.int64
    return number(number, number, number, flags), codegen


def _at_once(context, builder, args, fits, simple, after, what):
    """A slot's number where some bits of its state are as expected, else what the call gives."""
    w, record, index, _ = args
    result = cgutils.alloca_once_value(builder, index)
    there = builder.icmp_unsigned("<", index, _field(builder, w, record, SIZE))
    done = cgutils.alloca_once_value(builder, cgutils.false_bit)
    with cgutils.if_likely(builder, builder.and_(there, fits)):
        place = builder.inttoptr(
            builder.add(_field(builder, w, record, STATE), index), _BYTE.as_pointer()
        )
        bits, wanted = simple
        found = builder.and_(builder.load(place), _BYTE(bits))
        with cgutils.if_likely(builder, builder.icmp_unsigned("==", found, _BYTE(wanted))):
            if after != wanted:
                builder.store(_BYTE(after), place)
            builder.store(cgutils.true_bit, done)
    with cgutils.if_unlikely(builder, builder.not_(builder.load(done))):
        zero = INT64(0)
        found = _called(context, builder, [w, record, INT64(what), index, zero])
        builder.store(found, result)
    return builder.load(result)


def _field(builder, w, record, field):
    return builder.load(word_at(builder, w, builder.add(record, INT64(field))))
