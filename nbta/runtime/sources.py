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
    record_at,
)
from nbta.runtime.cold_fields import (
    GRADIENTS,
    SOURCE,
    SOURCE_HASH,
    SOURCES,
    cold_address,
    cold_bytes,
    cold_number,
    cold_points,
    ensure_cold,
    put_cold_array,
)
from nbta.runtime.layout import refresh
from nbta.runtime.memory import kernel
from nbta.runtime.store import store_at
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
    if cold_number(g, SOURCE_HASH) != r[rq.RESULT]:
        return False
    source = cold_points(g, SOURCE)
    asked = mem.array_at(r[rq.VALUE], 4 * r[rq.COUNT], np.uint8)
    mine = mem.array_at(mem.address_of(source), 4 * len(source), np.uint8)
    same = len(asked) == len(mine)
    for i in range(len(mine) if same else 0):
        same = same and asked[i] == mine[i]
    return same


@kernel
def gradients_of(s):
    """Owners of a store's gradient arrays."""
    if s._cold == 0:
        return mem.array_at(0, 0, np.int64)
    place = cold_address(s, GRADIENTS)
    return mem.array_at(mem.load_int(place + 8), mem.load_int(place + 16) // 8, np.int64)


@kernel
def may_keep(s):
    """Let a store have a buffer of gradient arrays, to keep others alive; whether it has one."""
    if not ensure_cold(s):
        return False
    if mem.load_int(cold_address(s, GRADIENTS)) == 0:
        put_cold_array(s, GRADIENTS, new_buffer(0, False))
    return mem.load_int(cold_address(s, GRADIENTS)) != 0


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
    sources = cold_bytes(s, SOURCES)
    owners, table = gradients_of(s), numbers_of(sources)
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
    room = len(cold_bytes(s, SOURCES))
    if count <= SOURCES_LISTED or 2 * count <= room // 8:
        return True
    larger = new_buffer(8 * max(4 * SOURCES_LISTED, room // 4), False)
    if len(larger) == 0:
        return False
    owners, table = gradients_of(s), numbers_of(larger)
    for i in range(len(owners)):
        put_number(table, cold_number(store_at(mem.owner_payload(owners[i])), SOURCE_HASH), i + 1)
    put_cold_array(s, SOURCES, larger)
    return True


@kernel
def hold_gradient(s, g):
    """Let a store hold a gradient array, which ends its growth; whether there is memory."""
    if not ensure_cold(s):
        return False
    owners = cold_bytes(s, GRADIENTS)
    used = len(owners)
    if not prepare_table(s, used // 8 + 1):
        return False
    if used == 0 or used + 8 > record_at(mem.owner_of(owners))[COUNT]:
        owners = enlarged(owners, used, max(8, 2 * used))
        if len(owners) == 0:
            return False
        hold_owners(mem.owner_of(owners))
    mem.store_int(mem.address_of(owners) + used, g._owner)
    mem.retain(g._owner)
    # The array is as long as what is used of its buffer, which the finalizer goes through.
    mem.retain(mem.owner_of(owners))
    address = mem.address_of(owners)
    longer = mem.adopt_array(mem.owner_of(owners), address, used + 8, np.uint8)
    put_cold_array(s, GRADIENTS, longer)
    sources = cold_bytes(s, SOURCES)
    if len(sources):
        put_number(numbers_of(sources), cold_number(g, SOURCE_HASH), used // 8 + 1)
    s._dynamic = 0
    refresh(s)
    return True
