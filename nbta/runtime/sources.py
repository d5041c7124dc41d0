"""Gradient arrays by their sources: what a store holds of them, and the index that finds one.

A store has the owners of its gradient arrays in the order in which they were made. Up to
`SOURCES_LISTED` are compared one after another. Then a table of open addressing (Knuth, The Art of
Computer Programming, volume 3, section 6.4) has their numbers at places that the hashes of sources
give, so that a lookup takes the same time however many there are.
"""

import numpy as np

from nbta.runtime import memory as mem
from nbta.runtime import request as rq
from nbta.runtime.buffers import (
    COUNT,
    enlarged,
    hold_owners,
    new_buffer,
    record_of,
)
from nbta.runtime.layout import refresh
from nbta.runtime.memory import kernel
from nbta.runtime.store import store_at, store_owner
from nbta.tuning import SOURCES_LISTED


@kernel
def source_hash(r):
    """A hash of the source that is asked for (FNV-1a), by which others are passed over quickly."""
    points, found = (
        mem.array_at(r[rq.VALUE], r[rq.COUNT], np.int32),
        np.uint64(14695981039346656037),
    )
    for i in range(len(points)):
        found = (found ^ np.uint64(points[i])) * np.uint64(1099511628211)
    return np.int64(found >> np.uint64(1))


@kernel
def same_source(g, r):
    """Whether a gradient array's source is the one asked for, whose hash is in RESULT."""
    if g._source_hash != r[rq.RESULT]:
        return False
    asked = mem.array_at(r[rq.VALUE], 4 * r[rq.COUNT], np.uint8)
    mine = mem.array_at(mem.address_of(g._source), 4 * len(g._source), np.uint8)
    same = len(asked) == len(mine)
    for i in range(len(mine) if same else 0):
        same = same and asked[i] == mine[i]
    return same


@kernel
def gradients_of(s):
    """Owners of a store's gradient arrays."""
    return mem.array_at(mem.address_of(s._gradients), len(s._gradients) // 8, np.int64)


@kernel
def numbers_of(buffer):
    """The table in a buffer: numbers of gradient arrays, from 1; 0 where there is none."""
    return mem.array_at(mem.address_of(buffer), len(buffer) // 8, np.int64)


@kernel
def first_place(table, source_hash):
    """Where a source of a hash may be in a table; if not there, then further on."""
    return (source_hash ^ (source_hash >> 32)) & (len(table) - 1)


@kernel
def find_gradient(s, r):
    """Owner of the gradient array for a source, whose hash is in RESULT; 0 where there is none."""
    owners, table = gradients_of(s), numbers_of(s._sources)
    if len(table) == 0:
        for i in range(len(owners)):
            if same_source(store_at(mem.owner_payload(owners[i])), r):
                return owners[i]
        return 0
    place = first_place(table, r[rq.RESULT])
    while table[place]:
        owner = owners[table[place] - 1]
        if same_source(store_at(mem.owner_payload(owner)), r):
            return owner
        place = (place + 1) & (len(table) - 1)
    return 0


@kernel
def put_number(table, source_hash, number):
    """Put a number into a table that has room."""
    place = first_place(table, source_hash)
    while table[place]:
        place = (place + 1) & (len(table) - 1)
    table[place] = number


@kernel
def prepare_table(s, count):
    """Let the table have room for so many gradient arrays; whether there is memory."""
    if count <= SOURCES_LISTED or 2 * count <= len(s._sources) // 8:
        return True
    larger = new_buffer(8 * max(4 * SOURCES_LISTED, len(s._sources) // 4), False)
    if len(larger) == 0:
        return False
    owners, table = gradients_of(s), numbers_of(larger)
    for i in range(len(owners)):
        put_number(table, store_at(mem.owner_payload(owners[i]))._source_hash, i + 1)
    s._sources = larger
    return True


@kernel
def hold_gradient(s, g):
    """Let a store hold a gradient array, which ends its growth; whether there is memory."""
    used = len(s._gradients)
    if not prepare_table(s, used // 8 + 1):
        return False
    owners = s._gradients
    if used == 0 or used + 8 > record_of(owners)[COUNT]:
        owners = enlarged(owners, used, max(8, 2 * used), False, False)
        if len(owners) == 0:
            return False
        hold_owners(owners)
    mem.store_int(mem.address_of(owners) + used, store_owner(g))
    mem.retain(store_owner(g))
    # The array is as long as what is used of its buffer, which the finalizer goes through.
    mem.retain(mem.owner_of(owners))
    address = mem.address_of(owners)
    s._gradients = mem.adopt_array(mem.owner_of(owners), address, used + 8, np.uint8)
    if len(s._sources):
        put_number(numbers_of(s._sources), g._source_hash, used // 8 + 1)
    s._dynamic = 0
    refresh(s)
    return True
