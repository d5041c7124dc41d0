"""write, append, accumulate, identity and close in compiled code."""

import numpy as np
from numba import types
from numba.extending import register_jitable

from nbta.runtime import memory as mem
from nbta.runtime import request as rq
from nbta.runtime import settings
from nbta.runtime import status as st
from nbta.runtime.arguments import (
    check_index,
    check_value,
    code_of,
    item_bytes,
    item_words,
    rank_of,
)
from nbta.runtime.extension import (
    new_request,
    same_array_type,
    stack_block,
    store_fields,
    store_owner,
)
from nbta.runtime.failures import call_kernel, raise_failure
from nbta.runtime.fast_paths import addable, below, fast, field, fits, method, occupy
from nbta.runtime.given import LISTS, in_memory
from nbta.runtime.loop_calls import write_in_loop
from nbta.runtime.settings import setting
from nbta.runtime.store import FIELD


def _kernel_write(array, operation):
    """A function that writes through the kernels and gives a status, with the facts in a request.

    For shapes to infer, growth, sums, errors.
    """
    code = code_of(array.dtype)
    may_claim = operation == rq.WRITE

    @register_jitable
    def kernel_write(store, index, address, shape, words):
        claimable = may_claim and field(store, FIELD.claim_write) and fits(store, shape)
        if claimable and write_in_loop(store, index, address):
            return st.OK
        mem.store_int(words + 8 * rq.INDEX, index)
        mem.store_int(words + 8 * rq.DTYPE, code)
        mem.store_int(words + 8 * rq.VALUE, address)
        mem.store_int(words + 8 * rq.RANK, len(shape))
        mem.store_extents(words + 8 * rq.SHAPE, shape)
        return mem.call_entry(setting(settings.STORAGE_ENTRY), operation, store, words)

    return kernel_write


def _slow_write(array, operation):
    """`_kernel_write`, whose failure is an exception."""
    kernel_write = _kernel_write(array, operation)

    @register_jitable
    def slow(store, index, address, shape):
        words = new_request()
        status = kernel_write(store, index, address, shape, words)
        if status != st.OK:
            raise_failure(status, operation, store, words)

    return slow


def _slow_item_write(array, operation):
    """`_slow_write` for an item, which it puts into memory first."""
    slow, item_place = _slow_write(array, operation), stack_block(item_words(array.dtype))
    store_item = mem.item_writer(array.dtype)

    @register_jitable
    def slow_item(store, index, value, shape):
        place = item_place()
        store_item(place, value)
        slow(store, index, place, shape)

    return slow_item


def _scalar_write(array, operation):
    """Write an item: five loads, two stores and three branches."""
    store_item, itemsize = mem.item_writer(array.dtype), item_bytes(array.dtype)
    slow, rank_known = _slow_item_write(array, operation), array.ndim == 0

    @fast
    def write(store, index, value, shape):
        if below(index, field(store, FIELD.fast_write)) and (
            rank_known or field(store, FIELD.rank) == 0
        ):
            state = field(store, FIELD.states) + index
            if mem.load_byte(state) == 0:
                store_item(field(store, FIELD.data) + index * itemsize, value)
                occupy(store, state, index)
                return
        slow(store, index, value, shape)

    return write


#: Up to here a plain loop beats a call of memcpy.
_LOOP_BYTES = 64


@fast
def copy_element(target, source, nbytes):
    """Copy an element."""
    if nbytes > _LOOP_BYTES or nbytes % 8:
        mem.copy_bytes(target, source, nbytes)
        return
    words = mem.array_at(target, nbytes // 8, np.int64)
    given = mem.array_at(source, nbytes // 8, np.int64)
    for k in range(len(words)):
        words[k] = given[k]


def _element_write(array, operation):
    """Write an element with dimensions."""
    slow = _slow_write(array, operation)

    @fast
    def write(store, index, address, shape):
        if below(index, field(store, FIELD.fast_write)) and fits(store, shape):
            state = field(store, FIELD.states) + index
            if mem.load_byte(state) == 0:
                nbytes = field(store, FIELD.element_bytes)
                copy_element(field(store, FIELD.data) + index * nbytes, address, nbytes)
                occupy(store, state, index)
                return
        slow(store, index, address, shape)

    return write


def _put_copy(array, operation, value):
    """A function that puts a value into a slot by way of a copy, which is given back."""
    kernel_write = _kernel_write(array, operation)
    _, load, shape_of = in_memory(array.dtype, value)

    @register_jitable
    def put_copy(store, index, value):
        words, status = new_request(), st.TOO_LARGE
        address, copy = load(0, value)
        mem.store_int(words + 8 * rq.GOT, 1)
        mem.store_int(words + 8 * rq.EXPECTED, address)
        if copy > 0:
            status = kernel_write(store, index, address, shape_of(value), words)
            mem.release(copy)
        if status != st.OK:
            raise_failure(status, operation, store, words)

    return put_copy


def _is_copied(value):
    """Whether a value is no memory that a slot takes, nor on the stack."""
    return isinstance(value, LISTS) or (isinstance(value, types.Array) and value.layout != "C")


def _putter(array, operation, value, put_item, put_element):
    """``block()``, ``item(block, value)``, ``shape(value)`` and ``put(store, index, item, shape)``.

    A method takes the value apart at once. In the hot path only an item, or an address and extents,
    go on: the caller keeps the value alive, and no reference is held across an error exit.
    """
    block, load, shape_of = in_memory(array.dtype, value)
    whole, no_axes = fast(lambda block, value: value), fast(lambda value: ())
    if _is_copied(value):
        put_copy = _put_copy(array, operation, value)
        put = fast(lambda store, index, value, _: put_copy(store, index, value))
        return block, whole, no_axes, put
    if rank_of(value) == 0 and not isinstance(value, types.Array):
        return _no_block, whole, no_axes, put_item(array, operation)
    address = fast(lambda block, value: load(block, value)[0])
    return block, address, shape_of, put_element(array, operation)


_no_block = fast(lambda: 0)


def _put_method(array, putter):
    """The implementation of a method that puts a value into a slot."""
    again, (block, item, shape, put) = same_array_type(array), putter

    def implementation(ta, index, value, name=None):
        owner, store = store_owner(ta), store_fields(ta)
        put(store, np.int64(index), item(block(), value), shape(value))
        return again(owner)

    return implementation


@method("write")
def _write(ta, index, value, name=None):
    check_index("write", index)
    check_value("write", ta, value)
    return _put_method(ta, _putter(ta, rq.WRITE, value, _scalar_write, _element_write))


@method("append")
def _append(ta, value, name=None):
    check_value("append", ta, value)
    again = same_array_type(ta)
    block, item, shape, put = _putter(ta, rq.APPEND, value, _scalar_write, _element_write)

    def implementation(ta, value, name=None):
        owner, store = store_owner(ta), store_fields(ta)
        put(store, field(store, FIELD.size), item(block(), value), shape(value))
        return again(owner)

    return implementation


def _scalar_add(array, operation):
    """Add an item in place where that is simple, else by the kernels."""
    if not isinstance(array.dtype, types.Number):
        return _slow_item_write(array, operation)
    load_item, store_item = mem.item_reader(array.dtype), mem.item_writer(array.dtype)
    slow = _slow_item_write(array, operation)

    @fast
    def add(store, index, value, shape):
        if addable(store, index) and field(store, FIELD.rank) == 0:
            target = field(store, FIELD.data) + index * field(store, FIELD.element_bytes)
            store_item(target, load_item(target) + value)
            return
        slow(store, index, value, shape)

    return add


def _element_add(array, operation):
    """Add an element in place where that is simple, else by the kernels."""
    if not isinstance(array.dtype, types.Number):
        return _slow_write(array, operation)
    slow, item = _slow_write(array, operation), array.dtype
    itemsize = item_bytes(item)

    @fast
    def add(store, index, address, shape):
        if addable(store, index) and fits(store, shape):
            nbytes = field(store, FIELD.element_bytes)
            target, count = field(store, FIELD.data) + index * nbytes, nbytes // itemsize
            sums = mem.array_at(target, count, item)
            terms = mem.array_at(address, count, item)
            for k in range(count):
                sums[k] += terms[k]
            return
        slow(store, index, address, shape)

    return add


@method("accumulate")
def _accumulate(ta, index, value, name=None):
    check_index("accumulate", index)
    check_value("accumulate", ta, value)
    return _put_method(ta, _putter(ta, rq.ACCUMULATE, value, _scalar_add, _element_add))


@method("identity")
def _identity(ta, name=None):
    again = same_array_type(ta)
    return lambda ta, name=None: again(store_owner(ta))


@method("close")
def _close(ta, name=None):
    def implementation(ta, name=None):
        words = new_request()
        mem.store_int(words + 8 * rq.INDEX, 1)
        call_kernel(settings.STORAGE_ENTRY, rq.CLOSE, store_fields(ta), words)

    return implementation
