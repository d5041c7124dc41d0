"""The kernels' entrances, and the kernels that make and close arrays.

An entrance is compiled once for all dtypes and ranks and kept in Numba's disk cache. There are
three, so that a program waits only for the compiling of what it uses. Compiled user code calls
them by address instead of linking the kernels in, so a user's function compiles quickly.
"""

import numpy as np

from nbta.runtime import memory as mem
from nbta.runtime import request as rq
from nbta.runtime import settings
from nbta.runtime import status as st
from nbta.runtime.buffers import keep_older, new_buffer
from nbta.runtime.gradients import gradient
from nbta.runtime.joining import concat, gather, stack
from nbta.runtime.layout import decide_layout, give, refresh, reserve, shape_known
from nbta.runtime.looking import look, look_at_all
from nbta.runtime.memory import kernel
from nbta.runtime.reading import read, view
from nbta.runtime.request import COUNT, DTYPE, EXPECTED, GOT, INDEX, LIST, MAX_RANK, RANK, SHAPE
from nbta.runtime.settings import add_to_setting, setting
from nbta.runtime.sharing import acquire, change_use, free, release
from nbta.runtime.store import (
    CLEARED,
    READ,
    UNIFORM,
    WRITTEN,
    new_store,
    set_extent,
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


@kernel
def new_id():
    """The next number for a handle."""
    return add_to_setting(settings.NEXT_ID, 1)


@kernel
def create(r):
    """CREATE: INDEX is the size, COUNT the item size, LIST the flags."""
    size, flags = r[INDEX], r[LIST]
    if size < 0:
        r[GOT] = size
        return st.NEGATIVE_SIZE
    if r[RANK] > MAX_RANK:
        r[GOT] = r[RANK]
        return st.RANK
    s = new_store()
    if store_address(s) == 0:
        r[GOT], r[EXPECTED] = size, r[COUNT]
        return st.TOO_LARGE
    s._id, s._dtype = new_id(), r[DTYPE]
    s._itemsize = s._storage_itemsize = r[COUNT]
    s._dynamic = flags & DYNAMIC
    s._clear_after_read = (flags & CLEARS) // CLEARS
    s._infer_shape = (flags & INFERS) // INFERS
    s._read_state = WRITTEN | READ | (CLEARED if s._clear_after_read else 0)
    s._rank = r[RANK]
    for axis in range(MAX_RANK):
        set_extent(s, axis, r[SHAPE + axis])
    status = decide_layout(s, r) if shape_known(s) else st.OK
    if status == st.OK and size > 0:
        status = reserve(s, r, size)
    if status != st.OK:
        return status
    s._size = size
    refresh(s)
    return give(s, r)


@kernel
def views_uncounted(s):
    """Whether compiled code may look at the buffer by views whose references nobody counts."""
    if s._layout != UNIFORM or s._rank == 0 or len(s._data_buffer) == 0:
        return False
    states, seen = mem.array_at(s._states, s._size, np.uint8), 0
    for i in range(len(states)):
        seen |= states[i] & READ
    return seen != 0


@kernel
def close(s, r):
    """CLOSE: free everything; views handed out keep what they show.

    INDEX tells whether compiled code asks. Then a buffer that it has views of goes with the array,
    kept by that of the gradient arrays.
    """
    if r[INDEX] and not s._closed and views_uncounted(s):
        if mem.owner_of(s._gradients) == 0:
            s._gradients = new_buffer(0, False)
        if mem.owner_of(s._gradients) == 0:
            r[GOT], r[EXPECTED] = 1, 16
            return st.TOO_LARGE
        keep_older(s._gradients, s._data_buffer)
    s._closed = 1
    s._capacity = s._size = s._layout = 0
    free(s)
    refresh(s)
    return st.OK


def storage_entry(operation, store, request):
    """CREATE, WRITE, APPEND, READ, VIEW, LOOK, CLOSE, and who uses an array."""
    r = mem.array_at(request, rq.WORDS, np.int64)
    if operation == rq.CREATE:
        return create(r)
    s = store_at(store)
    if s._gradient and operation in (rq.WRITE, rq.APPEND, rq.ACCUMULATE):
        # Before the lock is held: the first call of an entrance runs in Python.
        return mem.call_entry(setting(settings.GRADIENT_ENTRY), operation, store, request)
    held = acquire(s)
    status = storage(operation, s, r)
    release(s, held)
    return status


@kernel
def storage(operation, s, r):
    """An operation of the storage entrance on a store that is locked where it has users."""
    if operation == rq.READ:
        return read(s, r)
    if operation == rq.VIEW:
        return view(s, r)
    if operation == rq.LOOK:
        return look(s, r)
    if operation == rq.CLOSE:
        return close(s, r)
    if operation >= rq.ENTER:
        change_use(operation, s, r)
        return st.OK
    if operation == rq.ACCUMULATE:
        return st.CLOSED if s._closed else st.NOT_GRADIENT
    return write_forward(operation, s, r)


def bulk_entry(operation, store, request):
    """GATHER, STACK, LOOK_AT_ALL, SCATTER, CONCAT and SPLIT."""
    r = mem.array_at(request, rq.WORDS, np.int64)
    s = store_at(store)
    held = acquire(s)
    status = st.BULK_IN_LOOP if s._parallel else bulk(operation, s, r)
    release(s, held)
    return status


@kernel
def bulk(operation, s, r):
    """An operation of the bulk entrance on a store that is locked where it has users."""
    if operation == rq.STACK:
        return stack(s, r)
    if operation == rq.GATHER:
        return gather(s, r)
    if operation == rq.LOOK_AT_ALL:
        return look_at_all(s, r)
    if operation == rq.CONCAT:
        return concat(s, r)
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
