"""write, append and accumulate in compiled code."""

import numpy as np
from numba.core import cgutils, types
from numba.extending import intrinsic, register_jitable

from nbta.runtime import memory as mem
from nbta.runtime import request as rq
from nbta.runtime import settings
from nbta.runtime import status as st
from nbta.runtime.arguments import check_index, check_value, code_of, item_bytes, item_words
from nbta.runtime.extension import (
    new_request,
    same_array_type,
    stack_block,
    store_fields,
    store_owner,
)
from nbta.runtime.failures import raise_failure
from nbta.runtime.fast_paths import addable, below, fast, field, fits, method, occupy
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


def _value_parts(value):
    """A function that takes a value apart: an item, or an array's address and shape.

    In the hot path only these go on. The caller keeps the array alive, and a reference to it is
    not held across an error exit.
    """
    if isinstance(value, types.Array):
        return fast(lambda value: (mem.address_of(value), value.shape))
    return fast(lambda value: (value, ()))


def _put_strided(array, operation):
    """A function that puts a contiguous copy of a value into a slot.

    The copy is given back before anything is raised: what compiled code holds then is lost.
    """
    kernel_write, item, itemsize = (
        _kernel_write(array, operation),
        array.dtype,
        item_bytes(array.dtype),
    )

    @register_jitable
    def put_copy(store, index, value):
        words, nbytes = new_request(), value.size * itemsize
        owner = mem.allocate_owner(nbytes)
        if owner == 0:
            mem.store_int(words + 8 * rq.GOT, 1)
            mem.store_int(words + 8 * rq.EXPECTED, nbytes)
            raise_failure(st.TOO_LARGE, operation, store, words)
        address = mem.owner_payload(owner)
        mem.array_at(address, value.size, item).reshape(value.shape)[...] = value
        status = kernel_write(store, index, address, value.shape, words)
        mem.release(owner)
        if status != st.OK:
            raise_failure(status, operation, store, words)

    return put_copy


@intrinsic
def _borrowed(typingctx, value):
    """The same array without its owner: nothing is counted, so that nothing is lost by a raise."""

    def codegen(context, builder, sig, args):
        array = context.make_array(value)(context, builder, args[0])
        array.meminfo = cgutils.get_null_value(array.meminfo.type)
        array.parent = cgutils.get_null_value(array.parent.type)
        return array._getvalue()

    return value(value), codegen


def _is_strided(value):
    return isinstance(value, types.Array) and value.layout != "C"


def _put_method(array, operation, value, put):
    """The implementation of a method that puts a value into a slot."""
    again = same_array_type(array)
    if _is_strided(value):
        put_copy = _put_strided(array, operation)

        def strided(ta, index, value):
            owner, store = store_owner(ta), store_fields(ta)
            put_copy(store, np.int64(index), _borrowed(value))
            return again(owner)

        return strided
    parts = _value_parts(value)

    def implementation(ta, index, value):
        owner, store = store_owner(ta), store_fields(ta)
        item, shape = parts(value)
        put(store, np.int64(index), item, shape)
        return again(owner)

    return implementation


def _append_method(array, operation, value, put):
    """The implementation of `append`."""
    again = same_array_type(array)
    if _is_strided(value):
        put_copy = _put_strided(array, operation)

        def strided(ta, value):
            owner, store = store_owner(ta), store_fields(ta)
            put_copy(store, field(store, FIELD.size), _borrowed(value))
            return again(owner)

        return strided
    parts = _value_parts(value)

    def implementation(ta, value):
        owner, store = store_owner(ta), store_fields(ta)
        item, shape = parts(value)
        put(store, field(store, FIELD.size), item, shape)
        return again(owner)

    return implementation


@method("write")
def _write(ta, index, value):
    check_index("write", index)
    check_value("write", ta, value)
    make = _element_write if isinstance(value, types.Array) else _scalar_write
    return _put_method(ta, rq.WRITE, value, make(ta, rq.WRITE))


@method("append")
def _append(ta, value):
    check_value("append", ta, value)
    make = _element_write if isinstance(value, types.Array) else _scalar_write
    return _append_method(ta, rq.APPEND, value, make(ta, rq.APPEND))


def _scalar_add(array):
    """Add an item in place where that is simple, else by the kernels."""
    load_item, store_item = mem.item_reader(array.dtype), mem.item_writer(array.dtype)
    slow = _slow_item_write(array, rq.ACCUMULATE)

    @fast
    def add(store, index, value, shape):
        if addable(store, index) and field(store, FIELD.rank) == 0:
            target = field(store, FIELD.data) + index * field(store, FIELD.element_bytes)
            store_item(target, load_item(target) + value)
            return
        slow(store, index, value, shape)

    return add


def _element_add(array):
    """Add an element in place where that is simple, else by the kernels."""
    slow, item = _slow_write(array, rq.ACCUMULATE), array.dtype
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
def _accumulate(ta, index, value):
    check_index("accumulate", index)
    check_value("accumulate", ta, value)
    is_array, is_number = isinstance(value, types.Array), isinstance(ta.dtype, types.Number)
    if is_array:
        add = _element_add(ta) if is_number else _slow_write(ta, rq.ACCUMULATE)
    else:
        add = _scalar_add(ta) if is_number else _slow_item_write(ta, rq.ACCUMULATE)
    return _put_method(ta, rq.ACCUMULATE, value, add)
