"""Tensor arrays in users' own ``@njit`` functions: the type, in and out, and fast paths.

The type knows the dtype and, where it can, the rank of the elements. Its methods are in
`nbta.runtime.methods`.

A fast path is a few loads and a store, emitted into the user's function; everything else goes to
the kernels' entry points. The loads go by address: a jitclass field that is an array would count
references at each access. Nothing that is counted is held across an error exit: LLVM could not
remove the counting, two atomic operations or 12 ns.

So method calls become function calls. For ``ta.write(i, v)`` Numba first makes a bound method,
which takes a reference to the array and gives it back after the call, with the error exit in
between. An argument of a function stays alive without one. Calls of a method that was stored in a
variable first, and calls with ``*arguments``, are left as they are: right, and slower.
"""

import hashlib
import inspect
from collections import Counter
from functools import cache, partial

from llvmlite import ir
from numba import from_dtype, types
from numba.extending import (
    NativeValue,
    box,
    infer_getattr,
    intrinsic,
    lower_cast,
    models,
    overload,
    overload_method,
    register_jitable,
    register_model,
    unbox,
)

from nbta.dtypes import own
from nbta.runtime import compiled, request, settings
from nbta.runtime.arguments import item_bytes, rank_of, require_rank
from nbta.runtime.fields import field, same_dimensions
from nbta.runtime.memory import INT64, setting_place
from nbta.runtime.numba_private import (
    AbstractTemplate,
    AttributeTemplate,
    ConfigStack,
    Conversion,
    Rewrite,
    as_dtype,
    cgutils,
    imputils,
    register_rewrite,
)
from nbta.runtime.numba_private import ir as numba_ir
from nbta.runtime.records import value_type
from nbta.runtime.store import FIELD, HEADER, STORE

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
    inferred : bool, default False
        Whether the array itself may have no rank, or another one, so that who counts on ``ndim``
        compares them. Where ``ndim`` is None the first write in the function tells it.
    """

    def __init__(self, dtype, ndim, uniform, inferred=False):
        self.dtype, self.ndim, self.uniform = dtype, ndim, uniform
        self.inferred = inferred and (uniform or ndim is not None)
        rank = "unknown rank" if ndim is None else f"rank {ndim}"
        rank += ", inferred" * self.inferred
        layout = "uniform" if uniform else "any layout"
        super().__init__(f"nbta.TensorArray({dtype}, {rank}, {layout}, version {LAYOUT})")

    #: Parallel loops tell arrays when they begin and end; see `nbta.runtime.parallel_loops`.
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
        uniform = self.uniform and self.dtype != types.float16
        return TensorArrayType(self.dtype, self.ndim, uniform, self.inferred)

    def with_rank(self, ndim):
        """The type after a write of elements of a rank; of any rank where another was written."""
        is_new = self.ndim not in (None, ndim)
        return TensorArrayType(self.dtype, None if is_new else ndim, self.uniform, not is_new)

    def unify(self, typingctx, other):
        """The type of a variable that is assigned arrays of both types.

        An array whose rank no write has told yet takes that of the other; two ranks are any rank,
        which no write narrows, so that inference ends.
        """
        if not isinstance(other, TensorArrayType):
            return None
        if (self.dtype, self.uniform) != (other.dtype, other.uniform):
            return None
        for kind in (self, other):
            if kind.ndim is None and not kind.inferred:
                return kind
        known = self if other.ndim is None else other
        return known.with_rank(known.ndim if self.ndim is None else self.ndim)

    def can_convert_to(self, typingctx, other):
        """Arrays are the same in memory; one of an inferred rank is checked where it is read."""
        if self.unify(typingctx, other) == other:
            return Conversion.safe
        return None


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


class HandleType(types.Type):
    """The handle of a tensor array in compiled code: the array itself, without its methods.

    Parameters
    ----------
    array : TensorArrayType
    """

    def __init__(self, array):
        self.array = array
        super().__init__(f"nbta.Handle({array})")

    used_in_loops = True

    @property
    def dtype(self):
        """Of the elements."""
        return self.array.dtype


class FlowType(types.Type):
    """A flow in compiled code: the array that it is of, whatever that holds."""

    def __init__(self):
        super().__init__(f"nbta.Flow(version {LAYOUT})")


FLOW = FlowType()


@register_model(FlowType)
@register_model(HandleType)
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
    return TensorArrayType(item, ndim, uniform, inferred=ndim is None)


@lower_cast(TensorArrayType, TensorArrayType)
def _same_array(context, builder, kind, other, value):
    return value


@unbox(FlowType)
@unbox(HandleType)
@unbox(LanesType)
@unbox(TensorArrayType)
def _unbox(kind, value, c):
    store = c.pyapi.object_getattr_string(value, "_store")
    native = c.unbox(STORE, store)
    c.pyapi.decref(store)
    array = cgutils.create_struct_proxy(kind)(c.context, c.builder)
    array.store = native.value
    value, cleanup = array._getvalue(), None
    if ConfigStack.top_or_none().release_gil and not isinstance(kind, FlowType):
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
wrappers = {}


def _wrapper(store, dtype):
    """The Python array over a store that compiled code hands out."""
    return wrappers["make"](store, own(dtype))


def _lanes_wrapper(store, dtype):
    """The same for lanes."""
    return wrappers["lanes"](store, own(dtype))


def _handle_wrapper(store, dtype):
    """The same for handles."""
    return _wrapper(store, dtype).handle


def _flow_wrapper(store, _):
    """The same for flows."""
    return wrappers["make"](store, None).flow


_WRAPPERS = {
    TensorArrayType: _wrapper,
    LanesType: _lanes_wrapper,
    HandleType: _handle_wrapper,
    FlowType: _flow_wrapper,
}


@box(FlowType)
@box(HandleType)
@box(LanesType)
@box(TensorArrayType)
def _box(kind, value, c):
    array = cgutils.create_struct_proxy(kind)(c.context, c.builder, value=value)
    store = c.box(STORE, array.store)
    wrapper = _WRAPPERS[type(kind)]
    c.env_manager.add_const(_SAME_RUNTIME)  # another version may have no such function
    make = c.pyapi.unserialize(c.pyapi.serialize_object(wrapper))
    item = None if isinstance(kind, FlowType) else as_dtype(kind.dtype)
    dtype = c.pyapi.unserialize(c.pyapi.serialize_object(item))
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


#: What is beneath the methods of tensor arrays, by name.
methods = {}
#: The same for an array whose fields are promoted, which are their first argument; for looks and
#: reads by name and by how they give a view (see `nbta.runtime.borrowing`).
promoted_functions = {}
#: The same for slots that are known to be in the right state, in loops that have looked ahead.
unchecked_functions = {}


@register_rewrite("after-inference")
class _DirectMethodCalls(Rewrite):
    """Turn ``m = array.name; r = m(...)`` into ``m = function; r = m(array, ...)``."""

    def match(self, func_ir, block, typemap, calltypes):
        if not any(isinstance(kind, TensorArrayType) for kind in typemap.values()):
            return False
        self.block, self.typemap, self.calltypes = block, typemap, calltypes
        pairs = _method_calls(block, self.uses)
        self.calls = [pair for pair in pairs if self._is_ours(pair[0].value)]
        return bool(self.calls)

    def _is_ours(self, getattr_expr):
        kind = self.typemap.get(getattr_expr.value.name)
        return isinstance(kind, TensorArrayType) and getattr_expr.attr in methods

    def apply(self):
        replaced = {}
        for lookup, call in self.calls:
            function = methods[lookup.value.attr]
            self._retype(lookup, call.value, function)
            name = numba_ir.Global(function.__name__, function, lookup.loc)
            replaced[lookup] = numba_ir.Assign(name, lookup.target, lookup.loc)
        block = self.block.copy()
        block.body = [replaced.get(statement, statement) for statement in self.block.body]
        return block

    def _retype(self, lookup, call, function):
        """Give the call its first argument and the types that go with it."""
        array = lookup.value.value
        old = self.calltypes.pop(call)
        context = self.typingctx
        kind = context.resolve_value_type(function)
        call.args = [array, *call.args]
        count = len(call.args) - 1
        keywords = {name: self.typemap[var.name] for name, var in call.kws}
        positional = (self.typemap[array.name], *old.args[:count])
        self.calltypes[call] = kind.get_call_type(context, positional, keywords)
        del self.typemap[lookup.target.name]
        self.typemap[lookup.target.name] = kind

    def __init__(self, state):
        super().__init__(state)
        self.typingctx = state.typingctx
        statements = (one for block in state.func_ir.blocks.values() for one in block.body)
        self.uses = Counter(
            variable.name
            for one in statements
            if not isinstance(one, numba_ir.Del)
            for variable in one.list_vars()
        )


def _method_calls(block, uses):
    """Pairs of a method's lookup and its one call, both in this block.

    ``uses`` counts the statements' uses of all variables, assignments among them.
    """
    lookups = {}
    for statement in block.find_insts(numba_ir.Assign):
        value = statement.value
        if not isinstance(value, numba_ir.Expr):
            continue
        if value.op == "getattr" and uses[statement.target.name] == 2:
            lookups[statement.target.name] = statement
        elif value.op == "call" and value.func.name in lookups and value.vararg is None:
            yield lookups.pop(value.func.name), statement


def _element_rank(value):
    return rank_of(value)


def _row_rank(value):
    """Of the rows; None for a scalar, which has none."""
    return rank_of(value) - 1 if rank_of(value) else None


#: Methods that write elements, and how their argument ``value`` tells the rank of these.
_RANK_TOLD = {
    "write": _element_rank,
    "append": _element_rank,
    "accumulate": _element_rank,
    "split": _element_rank,
    "scatter": _row_rank,
    "unstack": _row_rank,
}


@infer_getattr
class _RankFromWrites(AttributeTemplate):
    """Methods that write to an array of an inferred rank, which make its type more precise.

    So Numba goes about lists: the signature has the type that the receiver has from there on, and
    inference carries it back to the variable. It is registered before the methods themselves and
    is asked first.
    """

    key = TensorArrayType

    def generic_resolve(self, array, name):
        """The method with its receiver, or None for Numba to go on with others."""
        if not array.inferred or name not in _RANK_TOLD:
            return None

        class Write(AbstractTemplate):
            key = (TensorArrayType, name)

            def generic(self, args, kws):
                return _writing(self.context, name, self.this, args, kws)

        return types.BoundFunction(Write, array)


def _writing(context, name, array, args, kws):
    """The signature of a write, with the type that the array has after it."""
    function = methods[name]
    parameters = inspect.signature(function)
    try:
        given = parameters.bind(array, *args, **kws).arguments
    except TypeError:
        given = {}  # for Numba to refuse
    rank = _RANK_TOLD[name](given["value"]) if "value" in given else None
    array = array if rank is None else array.with_rank(rank)
    called = context.resolve_value_type(function)
    signature = called.get_call_type(context, (array, *args), kws)
    return signature and signature.replace(pysig=parameters).as_method()


#: Fast paths are inlined into the user's function whatever they cost the inliner.
inlined = {"forceinline": True, "error_model": "numpy"}
fast = register_jitable(**inlined)


def method(name):
    """Define a method of tensor arrays.

    Numba makes the implementation a function of its own, too, which direct calls become: it is the
    one that typing has compiled. With another there, all after a method was compiled twice.
    """

    def define(implementation):
        methods[name] = implementation
        overload_method(TensorArrayType, name, jit_options=inlined)(implementation)
        return implementation

    return define


def promoted_function(name, way=None):
    """Define what a method, or getitem, becomes for an array whose fields are promoted."""

    def define(implementation):
        promoted_functions[name if way is None else (name, way)] = implementation
        overload(implementation, jit_options=inlined)(implementation)
        return implementation

    return define


def unchecked_function(name):
    """Define what a promoted function becomes where no slot has to be looked at."""

    def define(implementation):
        unchecked_functions[name] = implementation
        overload(implementation, jit_options=inlined)(implementation)
        return implementation

    return define


@fast
def fits(store, shape):
    """Whether a shape is the element shape of a uniform store."""
    return field(store, FIELD.rank) == len(shape) and same_dimensions(store, shape)


def register():
    """The ``numba_extensions`` entry point: importing this package has registered everything."""
