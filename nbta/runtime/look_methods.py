"""``ta[i]``, loops over arrays and ``np.asarray`` in compiled code: looks, which mark nothing."""

import operator

import numpy as np
from numba import types
from numba.extending import lower_builtin, models, overload, register_model

from nbta.runtime import memory as mem
from nbta.runtime import request as rq
from nbta.runtime.arguments import check_index, code_of, require_rank
from nbta.runtime.extension import TensorArrayIteratorType, TensorArrayType, store_fields
from nbta.runtime.fast_paths import READABLE, below, fast, field, inlined
from nbta.runtime.memory import INT64
from nbta.runtime.numba_private import cgutils, imputils
from nbta.runtime.read_methods import slow_read
from nbta.runtime.records import value_reader
from nbta.runtime.store import FIELD, WRITTEN


def _item_look(array):
    """Look at an item of a uniform array."""
    load_item = value_reader(array.dtype)
    slow = slow_read(array, rq.LOOK, 0, code_of(array.dtype))

    @fast
    def look(store, index):
        slot = index + field(store, FIELD.size) if index < 0 else index
        if below(slot, field(store, FIELD.fast_read)):
            state = mem.load_byte(field(store, FIELD.states) + slot)
            if state & READABLE == WRITTEN:
                address = field(store, FIELD.data) + slot * field(store, FIELD.element_bytes)
                return load_item(address)
        return slow(store, index)

    return look


@overload(operator.getitem, jit_options=inlined)
def _getitem(ta, index):
    if not isinstance(ta, TensorArrayType):
        return None
    check_index("getitem", index)
    require_rank("getitem", ta)
    if ta.uniform and ta.ndim == 0:
        look = _item_look(ta)
    else:
        look = slow_read(ta, rq.LOOK, ta.ndim, code_of(ta.dtype))
    return lambda ta, index: look(store_fields(ta), np.int64(index))


@overload(np.asarray)
def _asarray(a, dtype=None):
    if not isinstance(a, TensorArrayType):
        return None
    require_rank("asarray", a)
    look = slow_read(a, rq.LOOK_AT_ALL, a.ndim + 1, code_of(a.dtype))
    if dtype is None or isinstance(dtype, types.NoneType | types.Omitted):
        return lambda a, dtype=None: look(store_fields(a), 0)
    return lambda a, dtype=None: np.asarray(look(store_fields(a), 0), dtype)


@overload(np.array)
def _array(object, dtype=None):
    if not isinstance(object, TensorArrayType):
        return None
    if dtype is None or isinstance(dtype, types.NoneType | types.Omitted):
        return lambda object, dtype=None: np.asarray(object).copy()
    return lambda object, dtype=None: np.asarray(object).astype(dtype)


@register_model(TensorArrayIteratorType)
class _IteratorModel(models.StructModel):
    def __init__(self, manager, kind):
        members = [("array", kind.array), ("index", types.EphemeralPointer(types.int64))]
        super().__init__(manager, kind, members)


@lower_builtin("getiter", TensorArrayType)
def _begin(context, builder, sig, args):
    iterator = context.make_helper(builder, sig.return_type)
    iterator.array = args[0]
    iterator.index = cgutils.alloca_once(builder, INT64)
    builder.store(INT64(0), iterator.index)
    context.nrt.incref(builder, sig.args[0], args[0])
    return imputils.impl_ret_new_ref(context, builder, sig.return_type, iterator._getvalue())


@lower_builtin("iternext", TensorArrayIteratorType)
@imputils.iternext_impl(imputils.RefType.NEW)
def _next(context, builder, sig, args, result):
    """The array may grow meanwhile, as a list may."""
    kind = sig.args[0]
    iterator = context.make_helper(builder, kind, value=args[0])
    index = builder.load(iterator.index)
    count = types.int64(kind.array)
    size = context.compile_internal(builder, lambda ta: len(ta), count, [iterator.array])
    more = builder.icmp_signed("<", index, size)
    result.set_valid(more)
    with builder.if_then(more):
        look = kind.yield_type(kind.array, types.int64)
        given = [iterator.array, index]
        result.yield_(context.compile_internal(builder, lambda ta, k: ta[k], look, given))
        builder.store(builder.add(index, INT64(1)), iterator.index)
