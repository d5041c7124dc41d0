"""Tensor arrays in users' own ``@njit`` functions: the Numba type, and arguments and results.

The type knows the dtype and, where it can, the rank of the elements. Its methods are in
`nbta.runtime.methods`.
"""

import hashlib
from functools import cache, partial

from llvmlite import ir
from numba import from_dtype, types
from numba.extending import NativeValue, box, intrinsic, models, register_model, unbox

from nbta.dtypes import own
from nbta.runtime import compiled, request, settings
from nbta.runtime.arguments import item_bytes, require_rank
from nbta.runtime.memory import INT64, setting_place
from nbta.runtime.numba_private import ConfigStack, as_dtype, cgutils, imputils
from nbta.runtime.records import value_type
from nbta.runtime.store import HEADER, STORE

#: Changes when code compiled against another layout of the store must not be used again.
LAYOUT = hashlib.sha256(repr((HEADER, request.WORDS)).encode()).hexdigest()[:8]


class _SameRuntime:
    """Goes into the disk cache with code that was compiled against this version of the runtime.

    Fast paths know the layout of the store, so other versions must not run them. Numba takes an
    OSError while loading for a missing file, and compiles again.
    """

    def __reduce__(self):
        return _same_runtime, (compiled.runtime_stamp(),)


def _same_runtime(stamp):
    if stamp != compiled.runtime_stamp():
        raise OSError("compiled against another version of nbta")
    return _SAME_RUNTIME


_SAME_RUNTIME = _SameRuntime()


class TensorArrayIteratorType(types.SimpleIteratorType):
    """What a loop over a tensor array goes by.

    Parameters
    ----------
    array : TensorArrayType
        What it goes over.
    """

    def __init__(self, array):
        self.array = array
        super().__init__(f"nbta.iterator({array})", array.element)


class TensorArrayType(types.IterableType):
    """A tensor array in compiled code.

    Parameters
    ----------
    dtype : numba type
        Of the elements.
    ndim : int or None
        Rank of the elements; None where it is not known when compiling.
    uniform : bool
        Whether all elements are known to lie in one buffer, so that reads hand out views of it.
    """

    def __init__(self, dtype, ndim, uniform):
        self.dtype, self.ndim, self.uniform = dtype, ndim, uniform
        rank = "unknown rank" if ndim is None else f"rank {ndim}"
        layout = "uniform" if uniform else "any layout"
        super().__init__(f"nbta.TensorArray({dtype}, {rank}, {layout}, version {LAYOUT})")

    #: Parallel loops tell arrays when they begin and end; see `nbta.runtime.loop_calls`.
    used_in_loops = True

    @property
    def element(self):
        """The type of what a look gives."""
        require_rank("a loop", self)
        if self.ndim == 0:
            return value_type(self.dtype)
        return types.Array(self.dtype, self.ndim, "C", readonly=True)

    @property
    def iterator_type(self):
        """For loops."""
        return TensorArrayIteratorType(self)

    @property
    def gradient(self):
        """The type of a gradient array; half precision is kept in float32 there, and copied."""
        return TensorArrayType(self.dtype, self.ndim, self.uniform and self.dtype != types.float16)


class LanesType(types.Type):
    """Lanes of a tensor array in compiled code.

    Parameters
    ----------
    array : TensorArrayType
        Of the array that they belong to; those of the lanes are of the same type.
    """

    def __init__(self, array):
        self.array = array
        super().__init__(f"nbta.Lanes({array})")

    used_in_loops = True

    @property
    def dtype(self):
        """Of the elements."""
        return self.array.dtype


@register_model(LanesType)
@register_model(TensorArrayType)
class _TensorArrayModel(models.StructModel):
    def __init__(self, manager, kind):
        super().__init__(manager, kind, [("store", STORE)])


@cache
def type_of(dtype, ndim, uniform):
    """The Numba type of an array with a NumPy dtype; TypeError for what Numba cannot compute."""
    try:
        item = from_dtype(dtype)
        item_bytes(item)
    except Exception as error:  # Numba raises several unrelated classes here
        raise TypeError(
            f"Numba cannot compute with dtype {dtype}, so an array of it cannot be passed to "
            f"compiled code ({error}); use it from Python, or hold the values in another dtype"
        ) from None
    return TensorArrayType(item, ndim, uniform)


@unbox(LanesType)
@unbox(TensorArrayType)
def _unbox(kind, value, c):
    store = c.pyapi.object_getattr_string(value, "_store")
    native = c.unbox(STORE, store)
    c.pyapi.decref(store)
    array = cgutils.create_struct_proxy(kind)(c.context, c.builder)
    array.store = native.value
    value, cleanup = array._getvalue(), None
    if ConfigStack.top_or_none().release_gil:
        with c.builder.if_then(c.builder.not_(native.is_error), likely=True):
            _change_use(c, kind, value, request.ARRIVE)
        cleanup = partial(_change_use, c, kind, value, request.DEPART)
    return NativeValue(value, is_error=native.is_error, cleanup=cleanup)


def _change_use(c, kind, value, operation):
    """Tell an array that a nogil function begins or has ended; the wrapper holds Python's lock."""
    store = c.builder.ptrtoint(_store_of(c.context, c.builder, kind, value).data, INT64)
    entry = c.builder.load(setting_place(c.builder, settings.STORAGE_ENTRY))
    function = c.builder.inttoptr(entry, ir.FunctionType(INT64, [INT64] * 3).as_pointer())
    c.builder.call(function, [INT64(operation), store, INT64(0)])


#: Makes a Python array, or lanes, over a store; set by the module that defines the classes.
faces = {}


def _face(store, dtype):
    """The Python array over a store that compiled code hands out."""
    return faces["make"](store, own(dtype))


def _lanes_face(store, dtype):
    """The same for lanes."""
    return faces["lanes"](store, own(dtype))


@box(LanesType)
@box(TensorArrayType)
def _box(kind, value, c):
    array = cgutils.create_struct_proxy(kind)(c.context, c.builder, value=value)
    store = c.box(STORE, array.store)
    face = _lanes_face if isinstance(kind, LanesType) else _face
    make = c.pyapi.unserialize(c.pyapi.serialize_object(face))
    dtype = c.pyapi.unserialize(c.pyapi.serialize_object(as_dtype(kind.dtype)))
    result = c.pyapi.call_function_objargs(make, (store, dtype))
    for reference in (store, make, dtype):
        c.pyapi.decref(reference)
    return result


def _store_of(context, builder, kind, value):
    proxy = cgutils.create_struct_proxy(kind)(context, builder, value=value)
    return context.make_helper(builder, STORE, value=proxy.store)


@intrinsic
def store_fields(typingctx, array):
    """Address of the fields of an array's store."""

    def codegen(context, builder, sig, args):
        return builder.ptrtoint(_store_of(context, builder, array, args[0]).data, INT64)

    return types.int64(array), codegen


@intrinsic
def store_owner(typingctx, array):
    """Address of the owner of an array's store."""

    def codegen(context, builder, sig, args):
        return builder.ptrtoint(_store_of(context, builder, array, args[0]).meminfo, INT64)

    return types.int64(array), codegen


def _array_over(context, builder, kind, meminfo):
    """The native value of an array whose store an owner keeps."""
    store = context.make_helper(builder, STORE)
    store.meminfo = builder.inttoptr(meminfo, cgutils.voidptr_t)
    data = context.nrt.meminfo_data(builder, store.meminfo)
    store.data = builder.bitcast(data, store.data.type)
    proxy = cgutils.create_struct_proxy(kind)(context, builder)
    proxy.store = store._getvalue()
    return proxy._getvalue()


@cache
def new_array_type(kind):
    """An intrinsic ``(owner)`` that makes an array of a type; takes over one reference."""

    @intrinsic
    def array_of(typingctx, owner):
        def codegen(context, builder, sig, args):
            return _array_over(context, builder, kind, args[0])

        return kind(types.int64), codegen

    return array_of


@cache
def same_array_type(kind):
    """An intrinsic ``(owner)`` that gives an array of a type once more, with a new reference."""

    @intrinsic
    def array_of(typingctx, owner):
        def codegen(context, builder, sig, args):
            value = _array_over(context, builder, kind, args[0])
            return imputils.impl_ret_borrowed(context, builder, kind, value)

        return kind(types.int64), codegen

    return array_of


@cache
def stack_block(words):
    """An intrinsic that gives the address of zeroed int64 on the compiled function's stack.

    All methods need it, so what is compiled with it is marked as compiled against this runtime.
    """

    @intrinsic
    def block_address(typingctx):
        def codegen(context, builder, sig, args):
            context.environment.consts.append(_SAME_RUNTIME)
            block = cgutils.alloca_once(builder, ir.ArrayType(INT64, words))
            cgutils.memset(builder, block, INT64(8 * words), 0)
            return builder.ptrtoint(block, INT64)

        return types.int64(), codegen

    return block_address


new_request = stack_block(request.WORDS)


def register():
    """The ``numba_extensions`` entry point: importing this package has registered everything."""
