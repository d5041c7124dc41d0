"""Kernels of gradient arrays: lookup by source, creation, virtual zeros."""

import numpy as np

from nbta.dtypes import OTHER
from nbta.runtime import memory as mem
from nbta.runtime import request as rq
from nbta.runtime import status as st
from nbta.runtime.arithmetic import is_half
from nbta.runtime.buffers import enlarged, hold_owners, new_points
from nbta.runtime.layout import (
    block_at,
    block_owner,
    decide_layout,
    give,
    new_block,
    refresh,
    shape_known,
    state_of,
    try_capacity,
)
from nbta.runtime.memory import kernel
from nbta.runtime.request import COUNT, EXPECTED, GOT, INDEX, MAX_RANK, RANK, SHAPE
from nbta.runtime.sharing import inherit
from nbta.runtime.store import (
    BLOCK_RANK,
    BLOCK_SHAPE,
    CLEARED,
    RAGGED,
    READ,
    WRITTEN,
    ZERO,
    get_extent,
    new_store,
    set_extent,
    store_address,
    store_at,
    store_owner,
)


@kernel
def same_source(g, r):
    """Whether a gradient array's source is the one asked for."""
    asked = mem.array_at(r[rq.VALUE], 4 * r[COUNT], np.uint8)
    mine = mem.array_at(mem.address_of(g._source), 4 * len(g._source), np.uint8)
    same = len(asked) == len(mine)
    for i in range(len(mine) if same else 0):
        same = same and asked[i] == mine[i]
    return same


@kernel
def gradient(s, r):
    """GRAD: the gradient array for a source, made at the first lookup; ends growth."""
    if s._closed:
        return st.CLOSED
    if s._dtype == OTHER:
        return st.NO_GRADIENT
    for axis in range(r[RANK]):
        if r[SHAPE + axis] < 0:
            return st.PREPEND_NEGATIVE
    owners = mem.array_at(mem.address_of(s._gradients), len(s._gradients) // 8, np.int64)
    for i in range(len(owners)):
        if same_source(store_at(mem.owner_payload(owners[i])), r):
            r[rq.OWNER] = owners[i]
            mem.retain(owners[i])
            return st.OK
    return new_gradient(s, r)


@kernel
def new_gradient(s, r):
    """Make a gradient array and let the forward array hold it."""
    if s._rank + r[RANK] > MAX_RANK:
        r[GOT] = s._rank + r[RANK]
        return st.RANK
    count = len(s._gradients)
    owners = enlarged(s._gradients, count, count + 8, False, False)
    g = new_store()
    status = st.TOO_LARGE
    if len(owners) and store_address(g):
        status = shape_gradient(s, g, r)
    if status == st.TOO_LARGE:
        r[GOT], r[EXPECTED] = s._size, max(s._element_bytes, 1)
    if status != st.OK:
        return status
    hold_owners(owners)
    mem.store_int(mem.address_of(owners) + count, store_owner(g))
    mem.retain(store_owner(g))
    s._gradients = owners
    s._dynamic = 0
    refresh(s)
    return give(g, r)


@kernel
def longer_trail(trail, source):
    """``trail`` + "@" + ``source``, as code points; no points when there is no memory."""
    longer = new_points(len(trail) + 1 + len(source))
    if len(longer) == 0:
        return longer
    longer[: len(trail)] = trail
    longer[len(trail)] = ord("@")
    longer[len(trail) + 1 :] = source
    return longer


@kernel
def shape_gradient(s, g, r):
    """Size, element shape and virtual zeros of a gradient array, after its forward array's."""
    g._id, g._dtype = s._id, s._dtype
    inherit(s, g)
    g._itemsize = s._itemsize
    g._storage_itemsize = 4 if is_half(s._dtype) else s._itemsize
    g._gradient, g._infer_shape = 1, s._infer_shape
    g._clear_after_read, g._marked = r[INDEX], s._marked
    g._read_state = WRITTEN | READ | (CLEARED if r[INDEX] else 0)
    g._source = new_points(r[COUNT])
    mem.copy_bytes(mem.address_of(g._source), r[rq.VALUE], 4 * len(g._source))
    g._trail = longer_trail(s._trail, g._source)
    if len(g._source) < r[COUNT] or len(g._trail) == 0:
        return st.TOO_LARGE
    if s._rank >= 0:
        g._rank = s._rank + r[RANK]
        for axis in range(r[RANK]):
            set_extent(g, axis, r[SHAPE + axis])
        for axis in range(s._rank):
            set_extent(g, r[RANK] + axis, get_extent(s, axis))
    status = st.OK
    if s._layout == RAGGED:
        g._layout = RAGGED
    elif shape_known(g):
        status = decide_layout(g, r)
    unit = 8 if g._layout == RAGGED else 0  # elements get memory at the first write or read
    if status == st.OK and s._size > 0 and not try_capacity(g, s._size, unit, True):
        status = st.TOO_LARGE
    if status != st.OK:
        return status
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
            if status != st.OK:
                return status
        mem.store_byte(g._states + i, WRITTEN | ZERO)
    return st.OK


@kernel
def stub_shape(s, g, r, index):
    """Note the shape of a ragged gradient slot: the prefix, then the forward slot's."""
    source = block_at(block_owner(s, index))
    rank = r[RANK] + source[BLOCK_RANK]
    if rank > MAX_RANK:
        r[GOT] = rank
        return st.RANK
    stub = new_block(0, source, 0, 0)
    if stub == 0:
        return st.TOO_LARGE
    head = block_at(stub)
    head[BLOCK_RANK] = rank
    for axis in range(r[RANK]):
        head[BLOCK_SHAPE + axis] = r[SHAPE + axis]
    for axis in range(source[BLOCK_RANK]):
        head[BLOCK_SHAPE + r[RANK] + axis] = source[BLOCK_SHAPE + axis]
    mem.store_int(g._data + 8 * index, stub)
    return st.OK
