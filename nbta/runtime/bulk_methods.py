"""gather, scatter, unstack, concat and split in compiled code."""

import numpy as np
from numba.extending import register_jitable

from nbta.runtime import memory as mem
from nbta.runtime import request as rq
from nbta.runtime import settings
from nbta.runtime import status as st
from nbta.runtime.arguments import check_rows, check_vector, code_of, rank_of, require_rank
from nbta.runtime.construct import dtype_code, put_extents, rank_asked
from nbta.runtime.extension import new_request, same_array_type, store_fields, store_owner
from nbta.runtime.failures import raise_failure
from nbta.runtime.fast_paths import field, method
from nbta.runtime.given import in_memory, integers
from nbta.runtime.read_methods import result_of
from nbta.runtime.results import Concat
from nbta.runtime.settings import setting
from nbta.runtime.store import FIELD


@register_jitable
def _tell_too_large(words, nbytes):
    """Put what there was no memory for where the message finds it."""
    mem.store_int(words + 8 * rq.GOT, 1)
    mem.store_int(words + 8 * rq.EXPECTED, nbytes)


@register_jitable
def _finish(status, operation, store, words, first, second):
    """Give copies back, then raise what a status stands for."""
    if first > 0:
        mem.release(first)
    if second > 0:
        mem.release(second)
    if status != st.OK:
        raise_failure(status, operation, store, words)


# Writing.


@register_jitable
def _put_rows(words, shape):
    """Describe a value that is written row by row."""
    mem.store_int(words + 8 * rq.INDEX, shape[0])
    mem.store_int(words + 8 * rq.RANK, len(shape) - 1)
    mem.store_extents(words + 8 * rq.SHAPE, shape[1:])


@register_jitable
def _put_all_rows(words, shape):
    """Describe a value whose rows go to the first slots."""
    _put_rows(words, shape)
    mem.store_int(words + 8 * rq.COUNT, shape[0])


@register_jitable
def _put_scalar(words, shape):
    """Describe a value without rows."""
    mem.store_int(words + 8 * rq.RANK, -1)


@register_jitable
def _put_whole(words, shape):
    """Describe a value as it is."""
    mem.store_int(words + 8 * rq.RANK, len(shape))
    mem.store_extents(words + 8 * rq.SHAPE, shape)


def _bulk_write(array, operation, value, listed):
    """A function that writes a value to many slots; ``listed`` is the type of the list, or None."""
    code, (block, load, shape_of) = code_of(array.dtype), in_memory(array.dtype, value)
    if operation == rq.SPLIT:
        describe = _put_whole
    elif rank_of(value) == 0:
        describe = _put_scalar
    else:
        describe = _put_all_rows if listed is None else _put_rows

    @register_jitable
    def write(store, words, address, value):
        mem.store_int(words + 8 * rq.DTYPE, code)
        mem.store_int(words + 8 * rq.VALUE, address)
        describe(words, shape_of(value))
        return mem.call_entry(setting(settings.BULK_ENTRY), operation, store, words)

    if listed is None:

        @register_jitable
        def write_in_order(store, block, value, listed):
            words, status = new_request(), st.TOO_LARGE
            address, copy = load(block, value)
            _tell_too_large(words, address)
            if copy >= 0:
                status = write(store, words, address, value)
            _finish(status, operation, store, words, copy, 0)

        return block, write_in_order
    count_of, load_list = integers(listed)

    @register_jitable
    def write_listed(store, block, value, listed):
        words, status = new_request(), st.TOO_LARGE
        address, copy = load(block, value)
        places, owner = load_list(0, listed)
        _tell_too_large(words, places if copy >= 0 else address)
        if copy >= 0 and owner > 0:
            mem.store_int(words + 8 * rq.LIST, places)
            mem.store_int(words + 8 * rq.COUNT, count_of(listed))
            status = write(store, words, address, value)
        _finish(status, operation, store, words, copy, owner)

    return block, write_listed


@method("scatter")
def _scatter(ta, indices, value, name=None):
    check_vector("scatter", "indices", indices)
    check_rows("scatter", ta, value, spare=1)
    again, (block, write) = same_array_type(ta), _bulk_write(ta, rq.SCATTER, value, indices)

    def implementation(ta, indices, value, name=None):
        owner = store_owner(ta)
        write(store_fields(ta), block(), value, indices)
        return again(owner)

    return implementation


@method("unstack")
def _unstack(ta, value, name=None):
    check_rows("unstack", ta, value, spare=1)
    again, (block, write) = same_array_type(ta), _bulk_write(ta, rq.SCATTER, value, None)

    def implementation(ta, value, name=None):
        owner = store_owner(ta)
        write(store_fields(ta), block(), value, 0)
        return again(owner)

    return implementation


@method("split")
def _split(ta, value, lengths, name=None):
    check_vector("split", "lengths", lengths)
    check_rows("split", ta, value)
    again, (block, write) = same_array_type(ta), _bulk_write(ta, rq.SPLIT, value, lengths)

    def implementation(ta, value, lengths, name=None):
        owner = store_owner(ta)
        write(store_fields(ta), block(), value, lengths)
        return again(owner)

    return implementation


# Reading.


def _checked_result(array, ndim, counts_on):
    """`result_of`, where the array may turn out to hold elements of another rank."""
    result = result_of(array, ndim)
    if counts_on:
        return register_jitable(lambda operation, store, words: result(words))

    @register_jitable
    def checked(operation, store, words):
        if mem.load_int(words + 8 * rq.OUT_RANK) != ndim:
            mem.release(mem.load_int(words + 8 * rq.OWNER))
            raise_failure(st.GATHER_ELEMENT_SHAPE, operation, store, words)
        return result(words)

    return checked


@method("gather")
def _gather(ta, indices, element_shape=None, dtype=None, name=None):
    check_vector("gather", "indices", indices)
    asked, code = rank_asked("gather", "element_shape", element_shape), dtype_code(ta, dtype)
    if asked is None:
        require_rank("gather", ta)
    ndim = asked if ta.ndim is None else ta.ndim
    result, words_rank = _checked_result(ta, ndim + 1, ta.ndim is not None), _or_unknown(asked)
    count_of, load_list = integers(indices)

    def implementation(ta, indices, element_shape=None, dtype=None, name=None):
        store, words, status = store_fields(ta), new_request(), st.TOO_LARGE
        mem.store_int(words + 8 * rq.DTYPE, code)
        mem.store_int(words + 8 * rq.RANK, words_rank)
        put_extents(words, 0, element_shape, rq.GATHER, store)
        places, owner = load_list(0, indices)
        _tell_too_large(words, places)
        if owner > 0:
            mem.store_int(words + 8 * rq.LIST, places)
            mem.store_int(words + 8 * rq.COUNT, count_of(indices))
            status = mem.call_entry(setting(settings.BULK_ENTRY), rq.GATHER, store, words)
        _finish(status, rq.GATHER, store, words, owner, 0)
        return result(rq.GATHER, store, words)

    return implementation


def _or_unknown(rank):
    return -1 if rank is None else rank


@register_jitable
def _join_all(store, words):
    """Run CONCAT with room for all lengths; their owner."""
    while True:
        room = field(store, FIELD.size)
        owner, status = mem.allocate_owner(8 * room), st.TOO_LARGE
        if owner:
            mem.store_int(words + 8 * rq.LIST, mem.owner_payload(owner))
            mem.store_int(words + 8 * rq.INDEX, room)
            status = mem.call_entry(setting(settings.BULK_ENTRY), rq.CONCAT, store, words)
        else:
            _tell_too_large(words, 8 * room)
        if status != st.OK:
            _finish(status, rq.CONCAT, store, words, owner, 0)
        if mem.load_int(words + 8 * rq.COUNT) <= room:
            return owner
        mem.release(owner)  # another thread made it grow meanwhile; nothing was done


@method("concat")
def _concat(ta, element_shape_except0=None, dtype=None, name=None):
    behind = rank_asked("concat", "element_shape_except0", element_shape_except0)
    code, words_rank = dtype_code(ta, dtype), _or_unknown(behind)
    if behind is None:
        require_rank("concat", ta)
    # An array of scalars is an error of the kernel, whatever the rank.
    ndim = max(ta.ndim, 1) if behind is None else behind + 1
    result = result_of(ta, ndim)

    def implementation(ta, element_shape_except0=None, dtype=None, name=None):
        store, words = store_fields(ta), new_request()
        mem.store_int(words + 8 * rq.DTYPE, code)
        mem.store_int(words + 8 * rq.RANK, words_rank)
        put_extents(words, 0, element_shape_except0, rq.CONCAT, store)
        owner = _join_all(store, words)
        count, address = mem.load_int(words + 8 * rq.COUNT), mem.owner_payload(owner)
        lengths = mem.adopt_array(owner, address, count, np.int64)
        return Concat(result(words), lengths)

    return implementation
