"""Making a tensor array inside compiled code."""

import numpy as np
from numba import from_dtype, types
from numba.extending import overload, register_jitable

from nbta.runtime import memory as mem
from nbta.runtime import request as rq
from nbta.runtime import settings
from nbta.runtime import status as st
from nbta.runtime.arguments import code_of, item_bytes
from nbta.runtime.extension import TensorArrayType, new_array_type, new_request
from nbta.runtime.failures import call_kernel, raise_failure
from nbta.runtime.refusals import refusal

_PYTHON_TYPES = {
    bool: types.boolean,
    int: types.int64,
    float: types.float64,
    complex: types.complex128,
}


def item_of(dtype):
    """The Numba dtype that an argument ``dtype`` names."""
    if isinstance(dtype, types.DTypeSpec):
        return dtype.dtype
    if isinstance(dtype, types.StringLiteral):
        return _named(dtype.literal_value)
    if isinstance(dtype, types.Function) and dtype.typing_key in _PYTHON_TYPES:
        return _PYTHON_TYPES[dtype.typing_key]
    raise refusal(f"TensorArray: dtype must be a dtype such as np.float64, not {dtype}")


def _named(name):
    try:
        return from_dtype(np.dtype(name))
    except Exception as error:
        raise refusal(f"TensorArray: {name!r} is not a dtype ({error})") from None


def _item_bytes(item):
    try:
        return item_bytes(item)
    except NotImplementedError:
        raise refusal(f"TensorArray: Numba cannot compute with dtype {item}") from None


def rank_asked(method, argument, shape):
    """Rank of an ``element_shape``, None where that is unknown."""
    if isinstance(shape, types.Omitted):
        shape = shape.value
    if isinstance(shape, types.NoneType) or shape is None:
        return None
    if isinstance(shape, types.BaseTuple):
        _check_extents(method, argument, shape)
        return len(shape)
    if isinstance(shape, types.Integer | types.IntegerLiteral):
        return 1
    raise refusal(f"{method}: {argument} must be a tuple or None, not {shape}")


def _check_extents(method, argument, shape):
    if len(shape) > rq.MAX_RANK:
        raise refusal(
            f"{method}: elements have at most {rq.MAX_RANK} dimensions, and {argument} has "
            f"{len(shape)}; join some of them"
        )
    for extent in shape:
        if not isinstance(extent, types.Integer | types.IntegerLiteral | types.NoneType):
            raise refusal(
                f"{method}: {argument} has an extent of type {extent}; use an integer, or "
                f"None where unknown"
            )


def dtype_code(array, dtype):
    """Code of the dtype that a read asks for; -1 for one that is not the array's."""
    if isinstance(dtype, types.Omitted):
        dtype = dtype.value
    if dtype is None or isinstance(dtype, types.NoneType) or item_of(dtype) == array.dtype:
        return code_of(array.dtype)
    return -1


def _check_size(size):
    if not isinstance(size, types.Integer | types.IntegerLiteral | types.Omitted | int):
        raise refusal(f"TensorArray: size must be one integer, not {size}")


def _is_uniform(shape, infer_shape):
    """Whether the arguments promise one buffer for all elements."""
    if infer_shape is True or getattr(infer_shape, "value", None) is True:
        return True
    if getattr(infer_shape, "literal_value", None) is True:
        return True
    parts = shape if isinstance(shape, types.BaseTuple) else (shape,)
    return all(isinstance(part, types.Integer | types.IntegerLiteral) for part in parts)


@register_jitable
def put_word(words, word, value):
    """Store one word of a request."""
    mem.store_int(words + 8 * word, np.int64(value))


@register_jitable
def put_extent(words, axis, extent, operation, store):
    """Store a known extent of an element shape."""
    if extent < 0:
        put_word(words, rq.GOT, extent)
        raise_failure(st.NEGATIVE_EXTENT, operation, store, words)
    put_word(words, rq.SHAPE + axis, extent)


def put_extents(words, axis, shape, operation, store):
    """Describe an element shape, axis by axis; None for an unknown extent."""
    raise NotImplementedError("compiled code only")


@overload(put_extents)
def _put_extents(words, axis, shape, operation, store):
    if isinstance(shape, types.Integer | types.IntegerLiteral):
        return lambda words, axis, shape, operation, store: put_extent(
            words, 0, shape, operation, store
        )
    if not isinstance(shape, types.BaseTuple) or len(shape) == 0:
        return lambda words, axis, shape, operation, store: None
    if isinstance(shape[0], types.NoneType):

        def unknown(words, axis, shape, operation, store):
            put_word(words, rq.SHAPE + axis, -1)
            put_extents(words, axis + 1, shape[1:], operation, store)

        return unknown

    def known(words, axis, shape, operation, store):
        put_extent(words, axis, shape[0], operation, store)
        put_extents(words, axis + 1, shape[1:], operation, store)

    return known


def register_constructor(cls):
    """Let compiled code call a class whose constructor has `TensorArray`'s signature."""

    @overload(cls, prefer_literal=True)
    def construct(
        dtype,
        size=0,
        dynamic_size=False,
        clear_after_read=False,
        tensor_array_name=None,
        element_shape=None,
        infer_shape=True,
        name=None,
    ):
        _check_size(size)
        item, rank = item_of(dtype), rank_asked("TensorArray", "element_shape", element_shape)
        code, itemsize = code_of(item), _item_bytes(item)
        uniform = _is_uniform(element_shape, infer_shape)
        array_over = new_array_type(TensorArrayType(item, rank, uniform))
        words_rank = -1 if rank is None else rank

        def implementation(
            dtype,
            size=0,
            dynamic_size=False,
            clear_after_read=False,
            tensor_array_name=None,
            element_shape=None,
            infer_shape=True,
            name=None,
        ):
            words = new_request()
            put_word(words, rq.INDEX, size)
            put_word(words, rq.DTYPE, code)
            put_word(words, rq.COUNT, itemsize)
            flags = np.int64(bool(dynamic_size)) | np.int64(bool(clear_after_read)) << 1
            put_word(words, rq.LIST, flags | np.int64(bool(infer_shape)) << 2)
            put_word(words, rq.RANK, words_rank)
            put_extents(words, 0, element_shape, rq.CREATE, 0)
            call_kernel(settings.STORAGE_ENTRY, rq.CREATE, 0, words)
            return array_over(mem.load_int(words + 8 * rq.OWNER))

        return implementation

    return construct
