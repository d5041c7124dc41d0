"""Packed elements: rows that lie back to back in one growing buffer, as in Arrow's lists.

A forward array whose elements may differ in their first dimension packs them while they are written
in the order of their slots. Beside the buffer of rows lie a head, with the shape that all elements
have after their first axis, and the offsets: where the rows of each element begin, and where those
of the last one end. All slots below the count in the head are written, and none after it is.
"""

import numpy as np

from nbta.runtime import memory as mem
from nbta.runtime.buffers import (
    FIRST,
    LARGEST,
    grown_capacity,
    hand_on,
    new_memory,
    no_bytes,
    note_used,
    painted_around,
    record_at,
)
from nbta.runtime.cold_fields import OFFSETS, cold_address, ensure_cold, put_cold_array
from nbta.runtime.memory import kernel
from nbta.runtime.request import MAX_RANK

#: The head, in int64: elements, bytes of a row, their rank, their dimensions after the first one.
PACKED_COUNT, ROW_BYTES, PACKED_RANK, ROW_SHAPE = 0, 1, 2, 3
#: Words of the head; the offsets follow.
PACKED_HEAD = ROW_SHAPE + MAX_RANK - 1


@kernel
def packed_head(s):
    """Address of the head; 0 where there is none."""
    return mem.load_int(cold_address(s, OFFSETS + 1)) if s._cold else 0


@kernel
def head_word(head, word):
    """A number in a head."""
    return mem.load_int(head + 8 * word)


@kernel
def put_head_word(head, word, number):
    """Change a number in a head."""
    mem.store_int(head + 8 * word, number)


@kernel
def offset_at(head, k):
    """The rows before those of element k, which may be one past the last."""
    return mem.load_int(head + 8 * (PACKED_HEAD + k))


@kernel
def put_offset(head, k, rows):
    """Note how many rows there are before those of element k."""
    mem.store_int(head + 8 * (PACKED_HEAD + k), rows)


@kernel
def packed_count(s):
    """How many elements are packed."""
    head = packed_head(s)
    return head_word(head, PACKED_COUNT) if head else 0


@kernel
def packed_bytes(s):
    """Bytes of all rows."""
    head = packed_head(s)
    if head == 0:
        return 0
    return offset_at(head, head_word(head, PACKED_COUNT)) * head_word(head, ROW_BYTES)


@kernel
def trim_packed(s, count):
    """Take the last elements back, so that so many are left."""
    head = packed_head(s)
    if head and head_word(head, PACKED_COUNT) > count:
        put_head_word(head, PACKED_COUNT, count)


@kernel
def packs_shape(s, index, rank, shape, first):
    """Whether an element of ``shape[first:first + rank]`` goes on after those that are packed."""
    head = packed_head(s)
    count = head_word(head, PACKED_COUNT) if head else 0
    if index != count or rank == 0:
        return False
    if count == 0:
        return True
    if rank != head_word(head, PACKED_RANK):
        return False
    for axis in range(1, rank):
        if shape[first + axis] != head_word(head, ROW_SHAPE + axis - 1):
            return False
    return offset_at(head, count) <= LARGEST  # elements without items have any number of rows


@kernel
def offsets_room(s):
    """How many offsets there is room for."""
    return mem.load_int(cold_address(s, OFFSETS + 2)) if s._cold else 0


@kernel
def ready_offsets(s, needed):
    """Find room for so many offsets; whether there is memory."""
    if needed <= offsets_room(s):
        return True
    if not ensure_cold(s):
        return False
    head, first, second = packed_head(s), needed, needed
    if s._dynamic:
        first, second = grown_capacity(offsets_room(s), needed, 8)
    owner, count = new_memory(8 * (PACKED_HEAD + first), 0, True, False), first
    if owner == 0 and second < first:
        owner, count = new_memory(8 * (PACKED_HEAD + second), 0, True, False), second
    if owner == 0:
        return False
    larger = record_at(owner)[FIRST]
    if head:
        older, used = mem.load_int(cold_address(s, OFFSETS)), 1 + head_word(head, PACKED_COUNT)
        mem.copy_bytes(larger, head, 8 * (PACKED_HEAD + used))
        hand_on(owner, older, True)
    else:
        mem.clear_bytes(larger, 8 * (PACKED_HEAD + 1))
    put_cold_array(s, OFFSETS, mem.adopt_array(owner, larger, count, np.int64))
    return True


@kernel
def note_offsets(s):
    """Tell the buffer of head and offsets how much of it was used, when its store lets it go."""
    head = packed_head(s)
    if head:
        used = 8 * (PACKED_HEAD + 1 + head_word(head, PACKED_COUNT))
        note_used(mem.load_int(cold_address(s, OFFSETS)), used)


@kernel
def forget_packed(s):
    """Let go of head and offsets."""
    if packed_head(s):
        note_offsets(s)
        put_cold_array(s, OFFSETS, no_bytes())


@kernel
def offsets_intact(s):
    """Whether nobody wrote beside head and offsets."""
    return painted_around(packed_head(s), 8 * (PACKED_HEAD + offsets_room(s)))
