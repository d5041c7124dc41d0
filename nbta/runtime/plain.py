"""Arrays of compiled graphs: a record of words, items in one buffer, and a byte a slot.

What an operation does to a slot is said in `nbta.runtime.slots`, what else it checks in `writing`
and `reading`, here for arrays whose elements have one rank. What those would refuse is refused
here without a word: the reference executor runs the program again and says what it was. Results
below 0 are minus a status.

Elements are taken to have one shape, and each slot its place by its number, until one is written
that has another shape. From then on a new element goes after all others, and a table has the
place and the dimensions of each.

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
    address,
    call,
    call_word,
    pointer,
    word_at,
)
from nbta.runtime.memory import (
    clear_bytes,
    copy_bytes,
    kernel,
    load_byte,
    load_int,
    store_byte,
    store_int,
)
from nbta.runtime.numba_private import cgutils
from nbta.runtime.slots import (
    FREE,
    WRITTEN,
    after_read,
    after_write,
    holds_value,
    in_python,
    likely,
    read_status,
    rule,
    write_status,
)

#: Words of a record. Addresses of buffers are followed by their lengths in bytes; DIMENSIONS has
#: those of all elements, or of the last one that was looked at, GIVEN takes those of an element
#: that is to be written, ASKED those that all must have; HINT takes how many slots a loop will have
#: written; USED counts items where each element has a place of its own.
(
    DATA, STATE, TABLE, SIZE, GROWS, KNOWN, COUNT, FLAGS, ITEM, RANK, THERE, GROW, USED, HINT,
    DIMENSIONS, GIVEN, ASKED, WORDS,
) = (0, 2, 4, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 25, 33, 41)  # fmt: skip
#: Of KNOWN: no element was there yet; all have one shape; each has its own.
NOTHING, ALIKE, UNLIKE = range(3)
#: Of FLAGS: reading clears; the first write fixes the shape; writes add up.
CLEARS, INFERS, ADDS = 1, 2, 4
#: What to do.
CREATE, LOOK_UP, WRITE_SLOT, READ_SLOT, WRITE_ALL, READ_ALL, RESERVE, LOOK_AT, FIT = range(9)
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
    if what == LOOK_AT:
        return look_at(record, a)
    if what == FIT:
        return fit(record)
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
    """An empty array; its dimensions are given, -1 where they are not known."""
    if size < 0:
        return -FAILED
    record[SIZE], record[GROWS], record[HINT] = size, grows, 0
    known, count = ALIKE, 1
    for axis in range(record[RANK]):
        dimension = record[GIVEN + axis]
        record[DIMENSIONS + axis] = record[ASKED + axis] = dimension
        known = known if dimension >= 0 else NOTHING
        count *= dimension
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
        record[DIMENSIONS + axis] = parent[DIMENSIONS + axis]
        record[ASKED + axis] = parent[ASKED + axis]
    status = no_slots(record, r, record[SIZE])
    if status == 0 and record[KNOWN] == UNLIKE:
        status = same_places(record, r, parent)
    if status == 0 and record[KNOWN] != NOTHING and record[FLAGS] & INFERS == 0:
        return zeros_of_written(record, r, parent)
    return status


@kernel
def same_places(record, r, parent):
    """Let elements have the shapes and the places of those of another array."""
    nbytes = record[SIZE] * entry_bytes(record)
    status = room(record, r, TABLE, nbytes, 0)
    if status == 0:
        copy_bytes(record[TABLE], parent[TABLE], nbytes)
        record[USED] = parent[USED]
    return status


@kernel
def zeros_of_written(record, r, parent):
    """Zeros where the forward array was written; of other slots nobody knows the shape."""
    unlike = record[KNOWN] == UNLIKE
    nbytes = (record[USED] if unlike else record[SIZE] * record[COUNT]) * record[ITEM]
    status = room(record, r, DATA, nbytes, 0)
    if status == 0:
        clear_bytes(record[DATA], nbytes)
        for slot in range(record[SIZE]):
            if load_byte(parent[STATE] + slot) != FREE:
                store_byte(record[STATE] + slot, WRITTEN)
    return status


@rule
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


@rule
def fit(record):
    """Hold the given dimensions against those of the elements, or learn them; 1 for other ones."""
    if record[KNOWN] == ALIKE:
        for axis in range(record[RANK]):
            if record[DIMENSIONS + axis] != record[GIVEN + axis]:
                return -FAILED if record[FLAGS] & INFERS else 1
        return 0
    if record[KNOWN] == UNLIKE:
        return 1
    count = 1
    for axis in range(record[RANK]):
        record[DIMENSIONS + axis] = record[GIVEN + axis]
        count *= record[GIVEN + axis]
    record[KNOWN], record[COUNT] = ALIKE, count
    return 0 if is_as_asked(record) else -FAILED


@kernel
def is_as_asked(record):
    """Whether the given dimensions are those that all elements must have."""
    for axis in range(record[RANK]):
        if record[ASKED + axis] >= 0 and record[ASKED + axis] != record[GIVEN + axis]:
            return False
    return True


@rule
def place_for(record, r, count):
    """Room for slots up to a number, and for elements like the given one; 1 if not all are."""
    status = reserve(record, r, count)
    if status == 0:
        status = fit(record)
    if status == 0 and record[DATA + 1] < record[SIZE] * bytes_of(record):
        return place_for_more(record, r, count)
    return status


@kernel
def place_for_more(record, r, count):
    """Room for elements that are alike up to now; who knows how large the second one is."""
    if count == 1 and record[FLAGS] & INFERS == 0:
        return room(record, r, DATA, bytes_of(record), 0)
    return grown(record, r, DATA, record[SIZE], bytes_of(record))


@rule  # with what it asks of alike elements: calls and checks took a third of a write's time
def write_slot(record, r, slot):
    """Where a slot's items go; for arrays that add, twice that, and 1 more for the first write."""
    status = -FAILED if slot < 0 else place_for(record, r, slot + 1)
    if status < 0:
        return status
    state, adds = load_byte(record[STATE] + slot), record[FLAGS] & ADDS != 0
    if write_status(state, adds) != 0:
        return -FAILED
    first = slot * record[COUNT]
    if not likely(status == 0):
        first = place_apart(record, r, slot, state == FREE)
        if first < 0:
            return first
    store_byte(record[STATE] + slot, after_write(adds, False))
    return 2 * first + (1 if state == FREE else 0) if adds else first


@rule  # a call more took a tenth of the time of a loop's gradient
def read_slot(record, r, slot):
    """Where a slot's items are: an unwritten one becomes zeros, a cleared one is gone."""
    if slot < 0 or slot >= record[SIZE]:
        return -FAILED
    state, after = load_byte(record[STATE] + slot), state_after_read(record[FLAGS])
    known = state != FREE or (record[KNOWN] != NOTHING and record[FLAGS] & INFERS != 0)
    if read_status(state, known) != 0:
        return -FAILED
    if state == FREE:
        status = zeros(record, r, slot)
        if status != 0:
            return status
    if state != after:
        store_byte(record[STATE] + slot, after)
    return slot * record[COUNT] if likely(record[KNOWN] != UNLIKE) else own_place(record, slot)


@rule
def state_after_read(flags):
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
    if record[KNOWN] == NOTHING:
        return -FAILED
    for slot in range(first, first + count):
        place = read_slot(record, r, slot)
        if place < 0:
            return place
    return together(record, r, count, first) if record[KNOWN] == UNLIKE else first * record[COUNT]


@kernel
def write_all(record, r, count, source):
    """Copy elements that lie together into the first slots; 0."""
    if count == 0:
        return 0
    status = place_for(record, r, count)
    if status < 0:
        return status
    nbytes = items_at(record, address(record, GIVEN)) * record[ITEM]
    for slot in range(count):
        if write_status(load_byte(record[STATE] + slot), False) != 0:
            return -FAILED
        place = slot * record[COUNT] if status == 0 else place_apart(record, r, slot, True)
        if place < 0:
            return place
        store_byte(record[STATE] + slot, after_write(False, False))
        copy_bytes(record[DATA] + place * record[ITEM], source + slot * nbytes, nbytes)
    return 0


# Elements of several shapes: a table has the place of each slot's first item, and the dimensions.


@kernel
def entry_bytes(record):
    """Bytes of an entry of the table."""
    return 8 * (1 + record[RANK])


@kernel
def entry(record, slot):
    """The address of a slot's entry."""
    return record[TABLE] + slot * entry_bytes(record)


@kernel
def items_at(record, dimensions):
    """How many items an element has whose dimensions are at an address."""
    count = 1
    for axis in range(record[RANK]):
        count *= load_int(dimensions + 8 * axis)
    return count


@kernel
def enter(record, slot, place, dimensions):
    """Note where an element is, and its dimensions, which are at an address."""
    store_int(entry(record, slot), place)
    copy_bytes(entry(record, slot) + 8, dimensions, 8 * record[RANK])


@kernel
def tell_apart(record, r):
    """Begin the table: up to now all elements had one shape."""
    status = grown(record, r, TABLE, record[SIZE], entry_bytes(record))
    if status != 0:
        return status
    record[KNOWN], record[USED] = UNLIKE, 0
    for slot in range(record[SIZE]):
        if load_byte(record[STATE] + slot) != FREE:
            enter(record, slot, slot * record[COUNT], address(record, DIMENSIONS))
            record[USED] = (slot + 1) * record[COUNT]
    return 0


@kernel
def place_apart(record, r, slot, is_new):
    """Where an element goes whose shape is its own: after all others, or to its sum."""
    if record[KNOWN] == ALIKE:
        status = tell_apart(record, r)
        if status != 0:
            return status
    place = entry(record, slot)
    if not is_new:
        return load_int(place) if are_given(record, place + 8) else -FAILED
    return new_place(record, r, slot) if is_as_asked(record) else -FAILED


@kernel
def are_given(record, dimensions):
    """Whether the dimensions at an address are the given ones."""
    same = True
    for axis in range(record[RANK]):
        same &= record[GIVEN + axis] == load_int(dimensions + 8 * axis)
    return same


@kernel
def new_place(record, r, slot):
    """The place after all elements, which an element of the given dimensions has from now on."""
    dimensions, place = address(record, GIVEN), record[USED]
    used = place + items_at(record, dimensions)
    status = grown(record, r, TABLE, record[SIZE], entry_bytes(record))
    if status == 0:
        status = grown(record, r, DATA, used, record[ITEM])
    if status != 0:
        return status
    enter(record, slot, place, dimensions)
    record[USED] = used
    return place


@kernel
def own_place(record, slot):
    """Where an element is; its dimensions become those of the record."""
    place = entry(record, slot)
    for axis in range(record[RANK]):
        record[DIMENSIONS + axis] = load_int(place + 8 + 8 * axis)
    return load_int(place)


@kernel
def look_at(record, slot):
    """Let the record have the dimensions of a slot that is written; 0."""
    if slot < 0 or slot >= record[SIZE] or record[KNOWN] == NOTHING:
        return -FAILED
    if record[KNOWN] == UNLIKE:
        if load_byte(record[STATE] + slot) == FREE:
            return -FAILED
        own_place(record, slot)
    return 0


@kernel
def together(record, r, count, first):
    """Where elements of one shape lie one after the other, which they are brought to do."""
    if count == 0:
        return -FAILED
    start, apart = own_place(record, first), False
    items = items_at(record, address(record, DIMENSIONS))
    for k in range(count):
        dimensions = entry(record, first + k) + 8
        for axis in range(record[RANK]):
            if load_int(dimensions + 8 * axis) != record[DIMENSIONS + axis]:
                return -FAILED
        apart |= load_int(dimensions - 8) != start + k * items
    return copied(record, r, count, first, items) if apart else start


@kernel
def copied(record, r, count, first, items):
    """Where copies of elements are that lie one after the other, after all elements."""
    place, nbytes = record[USED], items * record[ITEM]
    status = grown(record, r, DATA, place + count * items, record[ITEM])
    if status != 0:
        return status
    for k in range(count):
        source = record[DATA] + load_int(entry(record, first + k)) * record[ITEM]
        copy_bytes(record[DATA] + place * record[ITEM] + k * nbytes, source, nbytes)
    record[USED] = place + count * items
    return place


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
    after = in_python(state_after_read)(flags.literal_value)
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
