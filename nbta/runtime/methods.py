"""Methods of tensor arrays in compiled code.

Each has a fast path of a few loads and one store, emitted into the user's function, and hands
everything else to the kernels' entrances. The loads go by address: a jitclass field that is an
array would count references at each access.
"""

import numpy as np
from numba.core import types
from numba.core.errors import TypingError
from numba.extending import overload, overload_method, register_jitable

from nbta.runtime import memory as mem
from nbta.runtime import request as rq
from nbta.runtime import settings
from nbta.runtime.arguments import (
    check_index,
    check_value,
    code_of,
    item_bytes,
    put_value,
    require_rank,
)
from nbta.runtime.direct_calls import direct_function
from nbta.runtime.extension import (
    TensorArrayType,
    new_array_type,
    new_request,
    same_array_type,
    stack_block,
    store_fields,
    store_owner,
)
from nbta.runtime.failures import call_kernel
from nbta.runtime.memory import kernel
from nbta.runtime.store import CLEARED, FIELD, PENDING, WRITTEN, ZERO

#: Fast paths are inlined into the user's function whatever they cost the inliner.
_INLINE = {"forceinline": True, "error_model": "numpy"}
fast = register_jitable(**_INLINE)


def method(name):
    """Define a method of tensor arrays, and the function that direct calls of it become."""

    def define(implementation):
        overload(direct_function(name), jit_options=_INLINE)(implementation)
        overload_method(TensorArrayType, name, jit_options=_INLINE)(implementation)
        return implementation

    return define


_READABLE = WRITTEN | CLEARED | PENDING | ZERO


@fast
def field(store, index):
    """One int64 field of a store."""
    return mem.load_int(store + 8 * index)


@fast
def below(index, limit):
    """``0 <= index < limit`` in one comparison."""
    return np.uint64(index) < np.uint64(limit)


@fast
def fits(store, value):
    """Whether an array has the element shape of a uniform store."""
    same = field(store, FIELD.rank) == value.ndim
    for axis in range(value.ndim):
        same = same and value.shape[axis] == field(store, FIELD.extent0 + axis)
    return same


@fast
def occupy(store, state, index):
    """Mark a slot as written; the array reaches at least this far."""
    mem.store_byte(state, WRITTEN)
    if index >= field(store, FIELD.size):
        mem.store_int(store + 8 * FIELD.size, index + 1)


def _slow_write(array, value, operation):
    """A function that writes through the kernels: shapes to infer, growth, sums, errors."""
    put, item_place = put_value(array, value), stack_block(-(-item_bytes(array.dtype) // 8))
    copies = isinstance(value, types.Array) and value.layout != "C"

    @register_jitable
    def slow(store, index, value):
        words = new_request()
        mem.store_int(words + 8 * rq.INDEX, index)
        put(words, item_place(), value)
        call_kernel(settings.STORAGE_ENTRY, operation, store, words)

    @register_jitable
    def slow_strided(store, index, value):
        contiguous = value.copy()
        slow(store, index, contiguous)
        mem.keep_alive(contiguous)

    return slow_strided if copies else slow


def _scalar_write(array, value, operation):
    """Write an item: five loads, two stores and two branches."""
    item, itemsize = array.dtype, item_bytes(array.dtype)
    store_item, slow = mem.item_writer(item), _slow_write(array, value, operation)
    rank_known = array.ndim == 0

    @fast
    def write(store, index, value):
        if below(index, field(store, FIELD.fast_write)) and (
            rank_known or field(store, FIELD.rank) == 0
        ):
            state = field(store, FIELD.states) + index
            if mem.load_byte(state) == 0:
                store_item(field(store, FIELD.data) + index * itemsize, value)
                occupy(store, state, index)
                return
        slow(store, index, value)

    return write


#: Up to here a loop that the compiler vectorises beats a call of memcpy.
_LOOP_BYTES = 512


@fast
def copy_small(target, source, nbytes):
    """Copy an element."""
    if nbytes > _LOOP_BYTES or nbytes % 8:
        mem.copy_bytes(target, source, nbytes)
    else:
        for k in range(0, nbytes, 8):
            mem.store_int(target + k, mem.load_int(source + k))


def _array_write(array, value, operation):
    """Write an element with dimensions."""
    slow = _slow_write(array, value, operation)
    contiguous = value.layout == "C"

    @fast
    def write(store, index, value):
        if contiguous and below(index, field(store, FIELD.fast_write)) and fits(store, value):
            state = field(store, FIELD.states) + index
            if mem.load_byte(state) == 0:
                nbytes = field(store, FIELD.element_bytes)
                target = field(store, FIELD.data) + index * nbytes
                copy_small(target, mem.address_of(value), nbytes)
                occupy(store, state, index)
                return
        slow(store, index, value)

    return write


def _writer(name, array, value, operation):
    check_value(name, array, value)
    make = _array_write if isinstance(value, types.Array) else _scalar_write
    return make(array, value, operation)


@method("write")
def _write(ta, index, value):
    check_index("write", index)
    write, again = _writer("write", ta, value, rq.WRITE), same_array_type(ta)

    def implementation(ta, index, value):
        owner, store = store_owner(ta), store_fields(ta)
        write(store, np.int64(index), value)
        return again(owner)

    return implementation


@method("append")
def _append(ta, value):
    write, again = _writer("append", ta, value, rq.APPEND), same_array_type(ta)

    def implementation(ta, value):
        owner, store = store_owner(ta), store_fields(ta)
        write(store, field(store, FIELD.size), value)
        return again(owner)

    return implementation


def _scalar_add(array, value):
    load_item, store_item = mem.item_reader(array.dtype), mem.item_writer(array.dtype)

    @fast
    def add(target, value):
        store_item(target, load_item(target) + value)

    @fast
    def is_fit(store, value):
        return field(store, FIELD.rank) == 0

    return add, is_fit


def _array_add(array, value):
    item = array.dtype

    @fast
    def add(target, value):
        sums = mem.array_at(target, value.size, item)
        terms = mem.array_at(mem.address_of(value), value.size, item)
        for k in range(value.size):
            sums[k] += terms[k]

    contiguous = value.layout == "C"

    @fast
    def is_fit(store, value):
        return contiguous and fits(store, value)

    return add, is_fit


def _adder(array, value):
    """A function that adds a value into a slot in place where it can, else by the kernels."""
    slow = _slow_write(array, value, rq.ACCUMULATE)
    if not isinstance(array.dtype, types.Number):
        return slow
    make = _array_add if isinstance(value, types.Array) else _scalar_add
    add, is_fit = make(array, value)

    @fast
    def accumulate(store, index, value):
        if below(index, field(store, FIELD.fast_add)) and is_fit(store, value):
            if mem.load_byte(field(store, FIELD.states) + index) == WRITTEN:
                nbytes = field(store, FIELD.element_bytes)
                add(field(store, FIELD.data) + index * nbytes, value)
                return
        slow(store, index, value)

    return accumulate


@method("accumulate")
def _accumulate(ta, index, value):
    check_index("accumulate", index)
    check_value("accumulate", ta, value)
    accumulate, again = _adder(ta, value), same_array_type(ta)

    def implementation(ta, index, value):
        owner, store = store_owner(ta), store_fields(ta)
        accumulate(store, np.int64(index), value)
        return again(owner)

    return implementation


def _result_of(array, ndim):
    """A function that turns a request's result into a scalar or a read-only array."""
    if ndim == 0:
        load_item = mem.item_reader(array.dtype)

        @register_jitable
        def result(words):
            item = load_item(mem.load_int(words + 8 * rq.RESULT))
            mem.release(mem.load_int(words + 8 * rq.OWNER))
            return item

        return result
    array_of = mem.array_reader(array.dtype, ndim)

    @register_jitable
    def result(words):
        owner, address = mem.load_int(words + 8 * rq.OWNER), mem.load_int(words + 8 * rq.RESULT)
        return array_of(owner, address, words + 8 * rq.OUT_SHAPE)

    return result


def _slow_read(array, operation, ndim):
    """A function that reads through the kernels."""
    result, code = _result_of(array, ndim), code_of(array.dtype)
    entry = settings.BULK_ENTRY if operation == rq.STACK else settings.STORAGE_ENTRY

    @register_jitable
    def slow(store, index):
        words = new_request()
        mem.store_int(words + 8 * rq.INDEX, index)
        mem.store_int(words + 8 * rq.DTYPE, code)
        call_kernel(entry, operation, store, words)
        return result(words)

    return slow


def _fast_result(array):
    """A function that hands out the element at an address of a uniform store."""
    if array.ndim == 0:
        load_item = mem.item_reader(array.dtype)

        @fast
        def hand_out(store, address):
            return load_item(address)

        return hand_out
    array_of = mem.array_reader(array.dtype, array.ndim)

    @fast
    def hand_out(store, address):
        owner = field(store, FIELD.data_owner)
        mem.retain(owner)
        return array_of(owner, address, store + 8 * FIELD.extent0)

    return hand_out


@method("read")
def _read(ta, index):
    check_index("read", index)
    require_rank("read", ta)
    hand_out, slow = _fast_result(ta), _slow_read(ta, rq.READ, ta.ndim)

    def implementation(ta, index):
        store, slot = store_fields(ta), np.int64(index)
        if below(slot, field(store, FIELD.fast_read)):
            state = field(store, FIELD.states) + slot
            if mem.load_byte(state) & _READABLE == WRITTEN:
                mem.store_byte(state, field(store, FIELD.read_state))
                nbytes = field(store, FIELD.element_bytes)
                return hand_out(store, field(store, FIELD.data) + slot * nbytes)
        return slow(store, slot)

    return implementation


@method("stack")
def _stack(ta):
    require_rank("stack", ta)
    slow = _slow_read(ta, rq.STACK, ta.ndim + 1)

    def implementation(ta):
        return slow(store_fields(ta), 0)

    return implementation


@method("size")
def _size(ta):
    def implementation(ta):
        store = store_fields(ta)
        if field(store, FIELD.closed):
            call_kernel(settings.STORAGE_ENTRY, rq.APPEND, store, new_request())
        return np.int32(field(store, FIELD.size))

    return implementation


@overload(len)
def _len(ta):
    if isinstance(ta, TensorArrayType):
        return lambda ta: np.int64(ta.size())
    return None


@kernel
def source_words(words, code_points, clear):
    """Describe a gradient lookup in a request."""
    mem.store_int(words + 8 * rq.VALUE, mem.address_of(code_points))
    mem.store_int(words + 8 * rq.COUNT, len(code_points))
    mem.store_int(words + 8 * rq.INDEX, clear)


@method("grad")
def _grad(ta, source, flow=None, name=None, clear_after_read=True):
    if not isinstance(source, types.UnicodeType | types.StringLiteral):
        raise TypingError(f"grad: source must be a string, not {source}")
    array_over = new_array_type(ta)

    def implementation(ta, source, flow=None, name=None, clear_after_read=True):
        code_points = np.empty(len(source), np.int32)
        for k in range(len(source)):
            code_points[k] = ord(source[k])
        words = new_request()
        source_words(words, code_points, np.int64(clear_after_read))
        call_kernel(settings.GRADIENT_ENTRY, rq.GRAD, store_fields(ta), words)
        array = array_over(mem.load_int(words + 8 * rq.OWNER))
        mem.keep_alive(code_points)
        return array

    return implementation
