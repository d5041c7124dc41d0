"""read, stack, size, grad and grad_with_shape in compiled code."""

import numpy as np
from numba import types
from numba.extending import overload, register_jitable

from nbta.errors import OPERATIONS
from nbta.runtime import memory as mem
from nbta.runtime import request as rq
from nbta.runtime import settings
from nbta.runtime import status as st
from nbta.runtime.arguments import check_index, check_vector, code_of, require_rank
from nbta.runtime.atomics import seen_int
from nbta.runtime.construct import dtype_code
from nbta.runtime.extension import (
    TensorArrayType,
    new_array_type,
    new_request,
    store_fields,
)
from nbta.runtime.failures import call_kernel, raise_failure
from nbta.runtime.fast_paths import fast, field, method, take
from nbta.runtime.given import integers
from nbta.runtime.loop_calls import read_in_loop
from nbta.runtime.records import value_reader
from nbta.runtime.refusals import refusal
from nbta.runtime.settings import setting
from nbta.runtime.store import FIELD


def result_of(array, ndim):
    """A function that turns a request's result into a scalar or a read-only array."""
    if ndim == 0:
        load_item = value_reader(array.dtype)

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


def slow_read(array, operation, ndim, code):
    """A function that reads through the kernels."""
    result = result_of(array, ndim)
    many = operation in (rq.STACK, rq.LOOK_AT_ALL)
    entry = settings.BULK_ENTRY if many else settings.STORAGE_ENTRY

    @register_jitable
    def slow(store, index):
        words = new_request()
        mem.store_int(words + 8 * rq.INDEX, index)
        mem.store_int(words + 8 * rq.DTYPE, code)
        call_kernel(entry, operation, store, words)
        return result(words)

    return slow


@register_jitable
def take_in_loop(store, slot):
    """`take`, where a parallel loop uses the array."""
    return field(store, FIELD.claim_read) != 0 and read_in_loop(store, slot)


def _item_read(array):
    """Read an item of a uniform array."""
    load_item, code = value_reader(array.dtype), code_of(array.dtype)
    slow = slow_read(array, rq.READ, 0, code)

    @fast
    def read(store, slot):
        if take(store, slot) or take_in_loop(store, slot):
            address = field(store, FIELD.data) + slot * field(store, FIELD.element_bytes)
            return load_item(address)
        return slow(store, slot)

    return read


def _element_read(array):
    """Read an element of a uniform array: a view, whose owner is the same on every path.

    Were it another one after the slow path, LLVM could not remove the counting of references.
    """
    array_of, code = mem.array_reader(array.dtype, array.ndim), code_of(array.dtype)

    @fast
    def read(store, slot):
        if not take(store, slot) and not take_in_loop(store, slot):
            words = new_request()
            mem.store_int(words + 8 * rq.INDEX, slot)
            mem.store_int(words + 8 * rq.DTYPE, code)
            call_kernel(settings.STORAGE_ENTRY, rq.VIEW, store, words)
        # Others may let the array grow meanwhile; the later owner keeps the earlier elements.
        elements = seen_int(store + 8 * FIELD.data)
        owner = field(store, FIELD.data_owner)
        address = elements + slot * field(store, FIELD.element_bytes)
        mem.retain(owner)
        return array_of(owner, address, store + 8 * FIELD.extent0)

    return read


@method("read")
def _read(ta, index, dtype=None, name=None):
    check_index("read", index)
    require_rank("read", ta)
    code = dtype_code(ta, dtype)
    if not ta.uniform or code < 0:
        read = slow_read(ta, rq.READ, ta.ndim, code)
    else:
        read = _item_read(ta) if ta.ndim == 0 else _element_read(ta)

    def implementation(ta, index, dtype=None, name=None):
        return read(store_fields(ta), np.int64(index))

    return implementation


@method("stack")
def _stack(ta, name=None):
    require_rank("stack", ta)
    slow = slow_read(ta, rq.STACK, ta.ndim + 1, code_of(ta.dtype))

    def implementation(ta, name=None):
        return slow(store_fields(ta), 0)

    return implementation


_SIZE = OPERATIONS.index("size")


@method("size")
def _size(ta, name=None):
    def implementation(ta, name=None):
        store = store_fields(ta)
        if field(store, FIELD.closed):
            raise_failure(st.CLOSED, _SIZE, store, new_request())
        return np.int32(field(store, FIELD.size))

    return implementation


@overload(len)
def _len(ta):
    if isinstance(ta, TensorArrayType):
        return lambda ta: np.int64(ta.size())
    return None


@register_jitable
def look_up(store, source, clear, words):
    """Look a gradient array up; its owner is in the request.

    The source's code points are given back before anything is raised: what compiled code holds
    then is lost.
    """
    count = len(source)
    points, status = mem.allocate_owner(4 * count), st.TOO_LARGE
    mem.store_int(words + 8 * rq.GOT, 1)
    mem.store_int(words + 8 * rq.EXPECTED, 4 * count)
    if points:
        code_points = mem.array_at(mem.owner_payload(points), count, np.int32)
        for k in range(count):
            code_points[k] = ord(source[k])
        mem.store_int(words + 8 * rq.VALUE, mem.owner_payload(points))
        mem.store_int(words + 8 * rq.COUNT, count)
        mem.store_int(words + 8 * rq.INDEX, clear)
        status = mem.call_entry(setting(settings.GRADIENT_ENTRY), rq.GRAD, store, words)
        mem.release(points)
    if status != st.OK:
        raise_failure(status, rq.GRAD, store, words)


@register_jitable
def check_gradient_rank(store, owner, rank, words):
    """A gradient array may have been made with a prefix, and then has another rank."""
    found = field(mem.owner_payload(owner), FIELD.rank)
    if rank >= 0 and found != rank:
        mem.store_int(words + 8 * rq.EXPECTED, rank)
        mem.store_int(words + 8 * rq.GOT, found)
        mem.release(owner)
        raise_failure(st.GRADIENT_RANK, rq.GRAD, store, words)


def _check_source(method, source):
    if not isinstance(source, types.UnicodeType | types.StringLiteral):
        raise refusal(f"{method}: source must be a string, not {source}")


@method("grad")
def _grad(ta, source, flow=None, clear_after_read=True, name=None):
    _check_source("grad", source)
    array_over, rank = new_array_type(ta.gradient), -1 if ta.ndim is None else ta.ndim

    def implementation(ta, source, flow=None, clear_after_read=True, name=None):
        words, store = new_request(), store_fields(ta)
        look_up(store, source, np.int64(clear_after_read), words)
        owner = mem.load_int(words + 8 * rq.OWNER)
        check_gradient_rank(store, owner, rank, words)
        return array_over(owner)

    return implementation


@method("grad_with_shape")
def _grad_with_shape(ta, source, shape_to_prepend, flow=None, clear_after_read=True, name=None):
    _check_source("grad_with_shape", source)
    check_vector("grad_with_shape", "shape_to_prepend", shape_to_prepend)
    count_of, load_list = integers(shape_to_prepend)
    rank = None
    if isinstance(shape_to_prepend, types.BaseTuple) and ta.ndim is not None:
        rank = ta.ndim + len(shape_to_prepend)
    made = TensorArrayType(ta.dtype, rank, ta.gradient.uniform)
    array_over, rank = new_array_type(made), -1 if rank is None else rank

    def implementation(ta, source, shape_to_prepend, flow=None, clear_after_read=True, name=None):
        words, store = new_request(), store_fields(ta)
        count = count_of(shape_to_prepend)
        extents, owner = load_list(0, shape_to_prepend)
        status = st.OK if owner > 0 else st.TOO_LARGE
        mem.store_int(words + 8 * rq.GOT, 1)
        mem.store_int(words + 8 * rq.EXPECTED, extents)
        if status == st.OK and count > rq.MAX_RANK:
            status = st.RANK
            mem.store_int(words + 8 * rq.GOT, count)
        if status == st.OK:
            mem.store_int(words + 8 * rq.RANK, count)
            mem.copy_bytes(words + 8 * rq.SHAPE, extents, 8 * count)
        if owner > 0:
            mem.release(owner)
        if status != st.OK:
            raise_failure(status, rq.GRAD, store, words)
        look_up(store, source, np.int64(clear_after_read), words)
        found = mem.load_int(words + 8 * rq.OWNER)
        check_gradient_rank(store, found, rank, words)
        return array_over(found)

    return implementation
