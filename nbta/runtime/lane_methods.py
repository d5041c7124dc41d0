"""lanes, take, range and join in compiled code."""

import numpy as np
from numba.extending import overload, overload_method, register_jitable

from nbta.runtime import memory as mem
from nbta.runtime import request as rq
from nbta.runtime import settings
from nbta.runtime.arguments import check_index
from nbta.runtime.extension import (
    LanesType,
    new_array_type,
    new_request,
    store_fields,
    store_owner,
)
from nbta.runtime.failures import call_kernel
from nbta.runtime.fast_paths import field, method
from nbta.runtime.store import FIELD


@register_jitable
def _ask(words, operation, store, index, owner, count):
    """Run an operation of lanes; what comes of it is in the request."""
    mem.store_int(words + 8 * rq.INDEX, index)
    mem.store_int(words + 8 * rq.VALUE, owner)
    mem.store_int(words + 8 * rq.COUNT, count)
    call_kernel(settings.LANES_ENTRY, operation, store, words)


@method("lanes")
def _lanes(ta, count):
    check_index("lanes", count, "count")
    lanes_over = new_array_type(LanesType(ta))

    def implementation(ta, count):
        words = new_request()
        _ask(words, rq.LANES, store_fields(ta), np.int64(count), store_owner(ta), 0)
        return lanes_over(mem.load_int(words + 8 * rq.OWNER))

    return implementation


@overload_method(LanesType, "take")
def _take(lanes, lane):
    check_index("take", lane, "lane")
    array_over = new_array_type(lanes.array)

    def implementation(lanes, lane):
        words = new_request()
        _ask(words, rq.TAKE, store_fields(lanes), np.int64(lane), 0, 0)
        return array_over(mem.load_int(words + 8 * rq.OWNER))

    return implementation


@overload_method(LanesType, "range")
def _range(lanes, lane, total):
    check_index("range", lane, "lane")
    check_index("range", total, "total")

    def implementation(lanes, lane, total):
        words = new_request()
        _ask(words, rq.RANGE, store_fields(lanes), np.int64(lane), 0, np.int64(total))
        first = mem.load_int(words + 8 * rq.RESULT)
        return range(first, first + mem.load_int(words + 8 * rq.COUNT))

    return implementation


@overload_method(LanesType, "join")
def _join(lanes):
    array_over = new_array_type(lanes.array)

    def implementation(lanes):
        words = new_request()
        _ask(words, rq.JOIN, store_fields(lanes), 0, 0, 0)
        return array_over(mem.load_int(words + 8 * rq.OWNER))

    return implementation


@overload(len)
def _len(lanes):
    if isinstance(lanes, LanesType):
        return lambda lanes: field(store_fields(lanes), FIELD.size)
    return None
