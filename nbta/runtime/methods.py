"""Tensor arrays in compiled code: making them, and their methods and those of their lanes.

What writes or reads one slot has a fast path, made of the rules in `nbta.runtime.slots`; all else
goes to the kernels' entry points.
"""

import operator
from functools import cache
from math import prod

import numpy as np
from numba import from_dtype, types
from numba.extending import (
    intrinsic,
    lower_builtin,
    models,
    overload,
    overload_attribute,
    overload_method,
    register_jitable,
    register_model,
)

from nbta.dtypes import INT32_MAX
from nbta.errors import OPERATIONS, STATUS, not_of_arrays
from nbta.runtime import memory as mem
from nbta.runtime import request as rq
from nbta.runtime import settings
from nbta.runtime.arguments import (
    check_index,
    check_rows,
    check_value,
    check_vector,
    code_of,
    item_bytes,
    nested_shape,
    rank_of,
    require_rank,
)
from nbta.runtime.borrowing import BORROWED, COUNTED, STEADY
from nbta.runtime.compiled import out_of_line, stay_out_of_line
from nbta.runtime.extension import (
    FlowType,
    LanesType,
    TensorArrayIteratorType,
    TensorArrayType,
    fast,
    fits,
    inlined,
    method,
    new_array_type,
    new_request,
    promoted_function,
    same_array_type,
    stack_block,
    store_fields,
    store_owner,
    unchecked_function,
)
from nbta.runtime.failures import call_kernel, raise_failure, refusal
from nbta.runtime.fields import (
    ScratchType,
    address_of_store,
    count_of,
    element_reader,
    exchange,
    field,
    promoter_of,
    reload,
    seen_field,
    set_count,
)
from nbta.runtime.memory import INT64, room
from nbta.runtime.numba_private import cgutils, imputils
from nbta.runtime.parallel_loops import look_in_loop, read_in_loop, write_in_loop
from nbta.runtime.records import value_reader
from nbta.runtime.request import Concat
from nbta.runtime.runs import item_getter, item_putter, put_field, put_state
from nbta.runtime.settings import setting
from nbta.runtime.slots import (
    CLEARED,
    after_write,
    extend,
    is_free,
    is_next,
    is_sum,
    is_value,
    likely,
    occupy,
    state_place,
    take,
)
from nbta.runtime.store import FIELD
from nbta.shapes import MAX_RANK
from nbta.tuning import LOOP_BYTES

# Values and indices, as memory that the kernels can take. An array in C order is where it is. Other
# arrays, and lists, are copied to memory of their own, and tuples and items to the stack of the
# method. Whoever calls gives the copy back before anything is raised: what compiled code holds then
# is lost.

LISTS = types.List | types.ListType


@intrinsic
def store_layout(typingctx, address, value):
    """Store an array's dimensions, and after them its strides, as int64 from an address on."""

    def codegen(context, builder, sig, args):
        array = context.make_array(value)(context, builder, args[1])
        words = [*cgutils.unpack_tuple(builder, array.shape)]
        words += cgutils.unpack_tuple(builder, array.strides)
        for k, word in enumerate(words):
            place = builder.add(args[0], INT64(8 * k))
            builder.store(word, builder.inttoptr(place, INT64.as_pointer()))
        return context.get_dummy_value()

    return types.void(types.int64, value), codegen


#: Bytes of a counter for each axis of a value of rows.
_COUNTERS = 8 * (MAX_RANK + 1)


@out_of_line
def copy_strided(target, source, layout, rank, itemsize):
    """Copy an array in C order; its layout is what `store_layout` left.

    One function for all dtypes and ranks, where Numba's assignment took seconds to compile in each
    function of a user's.
    """
    stay_out_of_line()
    dimensions = mem.array_at(layout, rank, np.int64)
    strides = mem.array_at(layout + 8 * rank, rank, np.int64)
    at = mem.array_at(room(_COUNTERS), rank, np.int64)
    count = 1
    for axis in range(rank):
        count *= dimensions[axis]
        at[axis] = 0
    for _ in range(count):
        mem.copy_bytes(target, source, itemsize)
        target += itemsize
        axis = rank - 1
        while axis >= 0:
            at[axis] += 1
            source += strides[axis]
            if at[axis] < dimensions[axis]:
                break
            source -= strides[axis] * dimensions[axis]
            at[axis] = 0
            axis -= 1


@cache
def items_writer(item):
    """An intrinsic ``(address, value)`` that stores the items of a nested tuple, or one item."""

    @intrinsic
    def store_items(typingctx, address, value):
        def codegen(context, builder, sig, args):
            memory_type = context.data_model_manager[item].get_data_type()
            size = context.get_abi_sizeof(memory_type)
            for k, (kind, part) in enumerate(_items(builder, value, args[1])):
                place = builder.add(args[0], INT64(k * size))
                place = builder.inttoptr(place, memory_type.as_pointer())
                context.pack_value(
                    builder, item, context.cast(builder, part, kind, item), place, align=1
                )
            return context.get_dummy_value()

        return types.void(types.int64, value), codegen

    return store_items


def _items(builder, kind, value):
    """Types and values of the items of a nested tuple."""
    if not isinstance(kind, types.BaseTuple):
        yield kind, value
        return
    for k, member in enumerate(kind):
        yield from _items(builder, member, builder.extract_value(value, k))


def in_memory(item, value):
    """Functions for a value of a type that `check_value` took: block, load and shape.

    ``block()`` gives the address of room on the stack. ``load(block, value)`` gives the address of
    the items and the owner of a copy: 0 for none, -1 where there is no memory; the address is then
    the bytes that were asked for. ``shape(value)`` is the shape.
    """
    if isinstance(value, types.Array) and value.layout == "C":
        return _no_block, fast(lambda block, value: (mem.address_of(value), 0)), _array_shape
    if isinstance(value, types.Array):
        return _no_block, _strided_loader(item, value.ndim), _array_shape
    if isinstance(value, LISTS):
        return _no_block, _item_by_item(item), fast(lambda value: (len(value),))
    shape, store = nested_shape(value), items_writer(item)
    block = stack_block(max(1, -(-prod(shape) * item_bytes(item) // 8)))

    @fast
    def load(block, value):
        store(block, value)
        return block, 0

    return block, load, fast(lambda value: shape)


_no_block = fast(lambda: 0)
_array_shape = fast(lambda value: value.shape)


def _strided_loader(item, rank):
    itemsize, layout_block = item_bytes(item), stack_block(2 * rank)

    @register_jitable
    def copy_array(block, value):
        nbytes = value.size * itemsize
        owner = mem.allocate_owner(nbytes)
        if owner == 0:
            return nbytes, -1
        address, layout = mem.owner_payload(owner), layout_block()
        store_layout(layout, value)
        copy_strided(address, mem.address_of(value), layout, rank, itemsize)
        return address, owner

    return copy_array


def _item_by_item(item):
    """A loader of lists, and of vectors that are cast."""
    itemsize, store = item_bytes(item), mem.item_writer(item)

    @register_jitable
    def copy_items(block, value):
        nbytes = len(value) * itemsize
        owner = mem.allocate_owner(nbytes)
        if owner == 0:
            return nbytes, -1
        address = mem.owner_payload(owner)
        for k in range(len(value)):
            store(address + k * itemsize, value[k])
        return address, owner

    return copy_items


def integers(value):
    """Functions ``(count, load)`` for a vector of integers.

    ``load(block, value)`` gives what `in_memory` does, of int64. Arrays are copied too, as other
    threads may change them between a kernel's check and its act.
    """
    if isinstance(value, types.Array | LISTS):
        return fast(lambda value: len(value)), _item_by_item(types.int64)
    count, store = len(value), items_writer(types.int64)

    @register_jitable
    def copy_tuple(block, value):
        owner = mem.allocate_owner(8 * count)
        if owner == 0:
            return 8 * count, -1
        store(mem.owner_payload(owner), value)
        return mem.owner_payload(owner), owner

    return fast(lambda value: count), copy_tuple


# Making an array.

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
        _check_dimensions(method, argument, shape)
        return len(shape)
    if isinstance(shape, types.Integer | types.IntegerLiteral):
        return 1
    raise refusal(f"{method}: {argument} must be a tuple or None, not {shape}")


def _check_dimensions(method, argument, shape):
    if len(shape) > rq.MAX_RANK:
        raise refusal(
            f"{method}: elements have at most {rq.MAX_RANK} dimensions, and {argument} has "
            f"{len(shape)}; join some of them"
        )
    for dimension in shape:
        if not isinstance(dimension, types.Integer | types.IntegerLiteral | types.NoneType):
            raise refusal(
                f"{method}: {argument} has a dimension of type {dimension}; use an integer, or "
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
def put_dimension(words, axis, dimension, operation, store):
    """Store a known dimension of an element shape."""
    if dimension < 0:
        put_word(words, rq.GOT, dimension)
        raise_failure(STATUS.negative_extent, operation, store, words)
    put_word(words, rq.SHAPE + axis, dimension)


def put_dimensions(words, axis, shape, operation, store):
    """Describe an element shape, axis by axis; None for an unknown dimension."""
    raise NotImplementedError("compiled code only")


@overload(put_dimensions)
def _put_dimensions(words, axis, shape, operation, store):
    if isinstance(shape, types.Integer | types.IntegerLiteral):
        return lambda words, axis, shape, operation, store: put_dimension(
            words, 0, shape, operation, store
        )
    if not isinstance(shape, types.BaseTuple) or len(shape) == 0:
        return lambda words, axis, shape, operation, store: None
    if isinstance(shape[0], types.NoneType):

        def unknown(words, axis, shape, operation, store):
            put_word(words, rq.SHAPE + axis, -1)
            put_dimensions(words, axis + 1, shape[1:], operation, store)

        return unknown

    def known(words, axis, shape, operation, store):
        put_dimension(words, axis, shape[0], operation, store)
        put_dimensions(words, axis + 1, shape[1:], operation, store)

    return known


def _is_nothing(name):
    """Whether no name is given: None, or an empty text, when compiling."""
    value = name.value if isinstance(name, types.Omitted) else name
    if isinstance(value, types.StringLiteral):
        value = value.literal_value
    return not value or isinstance(value, types.NoneType)


def check_name(method, argument, name):
    """A name is a string, or None."""
    if not _is_nothing(name) and not isinstance(name, types.UnicodeType | types.StringLiteral):
        raise refusal(
            f"{method}: {argument} must be a string or None, not {name}; give str({argument})"
        )


def first_name(name, other):
    """The first of two names that is not empty; an empty one stands for none."""
    raise NotImplementedError("compiled code only")


@overload(first_name)
def _first_name(name, other):
    if _is_nothing(name):
        return (lambda name, other: "") if _is_nothing(other) else lambda name, other: other
    if _is_nothing(other):
        return lambda name, other: name
    return lambda name, other: name if len(name) else other


@register_jitable
def run_with_text(entry, operation, store, words, text, count_word):
    """Run a kernel that is given a text, as code points at the address in VALUE."""
    call_with_text(setting(entry), operation, store, words, text, count_word)


@out_of_line
def call_with_text(kernel, operation, store, words, text, count_word):
    """Run the kernel at an address with a text.

    It is compiled once for all: Numba takes two seconds to compile what it does with texts. The
    code points are returned before anything is raised: what compiled code holds then is lost.
    """
    stay_out_of_line()
    count = len(text)
    points, status = mem.allocate_owner(4 * count), STATUS.too_large
    if points:
        code_points = mem.array_at(mem.owner_payload(points), count, np.int32)
        for k in range(count):
            code_points[k] = ord(text[k])
        mem.store_int(words + 8 * rq.VALUE, mem.owner_payload(points))
        mem.store_int(words + 8 * count_word, count)
        status = mem.call_entry(kernel, operation, store, words)
        mem.release(points)
    else:
        _tell_too_large(words, 4 * count)
    if status != STATUS.ok:
        raise_failure(status, operation, store, words)


def create(words, name):
    """Make an array of a name; its owner is in the request."""
    raise NotImplementedError("compiled code only")


@overload(create)
def _create(words, name):
    if _is_nothing(name):
        return lambda words, name: call_kernel(settings.STORAGE_ENTRY, rq.CREATE, 0, words)
    return lambda words, name: run_with_text(
        settings.STORAGE_ENTRY, rq.CREATE, 0, words, name, rq.RESULT
    )


@register_jitable
def _make_named(words, tensor_array_name, name):
    create(words, first_name(tensor_array_name, name))


@register_jitable
def _make_nameless(words, tensor_array_name, name):
    """Without a text: passing an empty one to a kernel took 50 ns and an allocation."""
    call_kernel(settings.STORAGE_ENTRY, rq.CREATE, 0, words)


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
    """The implementation of `TensorArray`, for arguments of these types."""
    _check_size(size)
    check_name("TensorArray", "tensor_array_name", tensor_array_name)
    check_name("TensorArray", "name", name)
    item, rank = item_of(dtype), rank_asked("TensorArray", "element_shape", element_shape)
    code, itemsize = code_of(item), _item_bytes(item)
    uniform = _is_uniform(element_shape, infer_shape)
    kind = TensorArrayType(item, rank, uniform, inferred=rank is None)
    array_over = new_array_type(kind)
    words_rank = -1 if rank is None else rank
    make = _make_nameless if _is_nothing(tensor_array_name) and _is_nothing(name) else _make_named

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
        put_dimensions(words, 0, element_shape, rq.CREATE, 0)
        make(words, tensor_array_name, name)
        return array_over(mem.load_int(words + 8 * rq.OWNER))

    return implementation


def register_constructor(cls):
    """Let compiled code call a class whose constructor has `TensorArray`'s signature."""
    overload(cls, prefer_literal=True)(construct)


# write, append, accumulate, identity, close.


# What is compiled for one method is so for all that are alike: each function that can fail takes
# 0.3 s, and a method has a chain of these.


@cache
def _kernel_write(dtype, operation):
    """A function that writes through the kernels and gives a status, with the facts in a request.

    For shapes to infer, growth, sums, errors.
    """
    code = code_of(dtype)
    may_claim = operation == rq.WRITE

    @register_jitable
    def kernel_write(store, index, address, shape, words):
        claimable = may_claim and field(store, FIELD.claim_write) and fits(store, shape)
        if claimable and write_in_loop(store, index, address):
            return STATUS.ok
        mem.store_int(words + 8 * rq.INDEX, index)
        mem.store_int(words + 8 * rq.DTYPE, code)
        mem.store_int(words + 8 * rq.VALUE, address)
        mem.store_int(words + 8 * rq.RANK, len(shape))
        mem.store_dimensions(words + 8 * rq.SHAPE, shape)
        return mem.call_entry(setting(settings.STORAGE_ENTRY), operation, store, words)

    return kernel_write


@cache
def _slow_write(dtype, operation):
    """`_kernel_write`, whose failure is an exception."""
    kernel_write = _kernel_write(dtype, operation)

    @register_jitable
    def slow(store, index, address, shape):
        words = new_request()
        status = kernel_write(store, index, address, shape, words)
        if status != STATUS.ok:
            raise_failure(status, operation, store, words)

    return slow


@cache
def _slow_items_write(dtype, operation, count=1):
    """`_slow_write` for an item or a tuple of so many, which it puts into memory first."""
    kernel_write = _kernel_write(dtype, operation)
    items_place = stack_block(max(1, -(-count * item_bytes(dtype) // 8)))
    store_items = items_writer(dtype)

    @register_jitable
    def slow_items(store, index, value, shape):
        words, place = new_request(), items_place()
        store_items(place, value)
        status = kernel_write(store, index, place, shape, words)
        if status != STATUS.ok:
            raise_failure(status, operation, store, words)

    return slow_items


@cache
def _has_items(array):
    """A function that tells whether an array's elements have no dimensions; known by most types."""
    if array.ndim == 0 and not array.inferred:
        return fast(lambda store: True)
    return fast(lambda store: field(store, FIELD.rank) == 0)


@cache
def _adds_in_place(dtype):
    """Whether terms of a dtype are added to sums by compiled code, and not by kernels alone."""
    return isinstance(dtype, types.Number) and dtype != types.float16


def _fast_put(array, operation, fits_slot, place, add, slow):
    """A function ``(store, index, value, shape)`` that puts a value by the first way that it can.

    ``fits_slot(store, shape)`` compares the value with the elements, ``place(data, index, value,
    shape)`` stores it, ``add`` of the same parameters adds it to a sum, and ``slow`` has a kernel
    put it.
    """

    def way(may_put, act, mark):
        @fast
        def put(store, index, value, shape):
            if not (may_put(store, index) and fits_slot(store, shape)):
                return False
            act(field(store, FIELD.data), index, value, shape)
            mark(store, index)
            return True

        return put

    ways = []
    if operation == rq.APPEND:
        ways.append(way(is_next, place, extend))
    if operation != rq.ACCUMULATE:
        mark_free = fast(lambda store, index: occupy(store, state_place(store, index), index))
        ways.append(way(is_free, place, mark_free))
    if operation != rq.APPEND and _adds_in_place(array.dtype):
        ways.append(way(is_sum, add, fast(lambda store, index: None)))  # its state stays
    return _first_of(ways, slow)


def _first_of(ways, slow):
    """A function that puts a value by the first of some ways, which tell whether they did."""
    if not ways:

        @fast
        def put_slowly(store, index, value, shape):
            slow(address_of_store(store), index, value, shape)
            reload(store)

        return put_slowly
    put, others = ways[0], _first_of(ways[1:], slow)

    @fast
    def put_first(store, index, value, shape):
        if not put(store, index, value, shape):
            others(store, index, value, shape)

    return put_first


@cache
def _put_item(array, operation):
    """Put an item: a write takes five loads, two stores and three branches."""
    load_item, store_item = mem.item_reader(array.dtype), mem.item_writer(array.dtype)
    itemsize, is_item = item_bytes(array.dtype), _has_items(array)

    @fast
    def place(data, index, value, shape):
        store_item(data + index * itemsize, value)

    @fast
    def add(data, index, value, shape):
        target = data + index * itemsize
        store_item(target, load_item(target) + value)

    fits_slot = fast(lambda store, shape: is_item(store))
    slow = _slow_items_write(array.dtype, operation)
    return _fast_put(array, operation, fits_slot, place, add, slow)


@intrinsic
def count_items(typingctx, shape):
    """How many items an element has, by its dimensions.

    LLVM sees that those of a value do not change in a loop, where the array's own may.
    """

    def codegen(context, builder, sig, args):
        count = INT64(1)
        for dimension in cgutils.unpack_tuple(builder, args[0]):
            count = builder.mul(count, dimension)
        return count

    return types.int64(shape), codegen


@cache
def element_copier(itemsize):
    """A function ``(target, source, nbytes)`` that copies an element of items of a size."""
    size = itemsize if itemsize in (1, 2, 4) else 8
    word = from_dtype(np.dtype(f"i{size}"))

    @fast
    def copy_element(target, source, nbytes):
        if nbytes > LOOP_BYTES or nbytes % size:
            mem.copy_bytes(target, source, nbytes)
            return
        words = mem.array_at(target, nbytes // size, word)
        given = mem.array_at(source, nbytes // size, word)
        for k in range(len(words)):
            words[k] = given[k]

    return copy_element


@cache
def _element_adder(item):
    """A function ``(target, source, count)`` that adds items to sums."""

    @fast
    def add_items(target, source, count):
        sums, terms = mem.array_at(target, count, item), mem.array_at(source, count, item)
        for k in range(count):
            sums[k] += terms[k]

    return add_items


@cache
def _put_element(array, operation):
    """Put an element with dimensions, by its address."""
    itemsize, add_items = item_bytes(array.dtype), _element_adder(array.dtype)
    copy_element = element_copier(itemsize)

    @fast
    def place(data, index, address, shape):
        nbytes = count_items(shape) * itemsize
        copy_element(data + index * nbytes, address, nbytes)

    @fast
    def add(data, index, address, shape):
        count = count_items(shape)
        add_items(data + index * (count * itemsize), address, count)

    slow = _slow_write(array.dtype, operation)
    return _fast_put(array, operation, fits, place, add, slow)


@cache
def _put_tuple(array, operation, shape):
    """Put a tuple of items, each where it belongs."""
    store_items, count = items_writer(array.dtype), prod(shape)
    nbytes, add_items = count * item_bytes(array.dtype), _element_adder(array.dtype)
    items_place = stack_block(max(1, -(-nbytes // 8)))

    @fast
    def place(data, index, value, shape):
        store_items(data + index * nbytes, value)

    @fast
    def add(data, index, value, shape):
        terms = items_place()
        store_items(terms, value)
        add_items(data + index * nbytes, terms, count)

    slow = _slow_items_write(array.dtype, operation, count)
    return _fast_put(array, operation, fits, place, add, slow)


@cache
def _item_copier(item):
    """A function ``(target, source)`` that copies an item."""
    itemsize = item_bytes(item)
    return fast(lambda target, source: mem.copy_bytes(target, source, itemsize))


@cache
def _item_adder(item):
    """A function ``(target, source)`` that adds an item to a sum."""
    load_item, store_item = mem.item_reader(item), mem.item_writer(item)
    return fast(lambda target, source: store_item(target, load_item(target) + load_item(source)))


@cache
def _strided(act, itemsize, rank):
    """A function ``(target, source, shape, strides)`` that acts on each item, in C order.

    The target has the items side by side. ``act(target, source)`` is about one of them.
    """
    if rank == 0:
        return fast(lambda target, source, shape, strides: act(target, source))
    act_on_part = _strided(act, itemsize, rank - 1)

    @fast
    def act_on_all(target, source, shape, strides):
        nbytes = count_items(shape[1:]) * itemsize
        for k in range(shape[0]):
            act_on_part(target + k * nbytes, source + k * strides[0], shape[1:], strides[1:])

    return act_on_all


@cache
def _put_strided(array, operation, rank):
    """Put an array that is not in C order, by its address and strides."""
    item, itemsize = array.dtype, item_bytes(array.dtype)
    kernel_write = _kernel_write(item, operation)
    copy_items = _strided(_item_copier(item), itemsize, rank)
    add_items = _strided(_item_adder(item), itemsize, rank)

    @fast
    def place(data, index, value, shape):
        source, strides = value
        copy_items(data + index * (count_items(shape) * itemsize), source, shape, strides)

    @fast
    def add(data, index, value, shape):
        source, strides = value
        add_items(data + index * (count_items(shape) * itemsize), source, shape, strides)

    @register_jitable
    def slow(store, index, value, shape):
        words, status = new_request(), STATUS.too_large
        source, strides = value
        nbytes = count_items(shape) * itemsize
        _tell_too_large(words, nbytes)
        owner = mem.allocate_owner(nbytes)
        if owner:
            address = mem.owner_payload(owner)
            copy_items(address, source, shape, strides)
            status = kernel_write(store, index, address, shape, words)
            mem.release(owner)
        if status != STATUS.ok:
            raise_failure(status, operation, store, words)

    return _fast_put(array, operation, fits, place, add, slow)


@cache
def _put_list(array, operation, value):
    """Put a list by way of a copy, which is returned."""
    kernel_write = _kernel_write(array.dtype, operation)
    _, load, shape_of = in_memory(array.dtype, value)

    @register_jitable
    def put_copy(store, index, value):
        words, status = new_request(), STATUS.too_large
        address, copy = load(0, value)
        _tell_too_large(words, address)
        if copy > 0:
            status = kernel_write(store, index, address, shape_of(value), words)
            mem.release(copy)
        if status != STATUS.ok:
            raise_failure(status, operation, store, words)

    @fast
    def put(store, index, value, shape):
        put_copy(address_of_store(store), index, value)
        reload(store)

    return put


@cache
def _putter(array, operation, value):
    """``take(value)``, ``shape(value)`` and ``put(store, index, taken, shape)``.

    A method takes the value apart at once. In the hot path only items, or an address and
    dimensions, go on: the caller keeps the value alive, and no reference is held across an error
    exit.
    """
    whole, no_axes = fast(lambda value: value), fast(lambda value: ())
    if isinstance(value, LISTS):
        return whole, no_axes, _put_list(array, operation, value)
    if isinstance(value, types.Array):
        if value.layout == "C":
            return mem.address_of, _array_shape, _put_element(array, operation)
        apart = fast(lambda value: (mem.address_of(value), value.strides))
        return apart, _array_shape, _put_strided(array, operation, value.ndim)
    shape = nested_shape(value)
    if shape == ():
        return whole, no_axes, _put_item(array, operation)
    return whole, fast(lambda value: shape), _put_tuple(array, operation, shape)


def _put_methods(ta, operation, index, value):
    """Implementations of a method that puts a value in a slot: plain, and with promoted fields."""
    name = OPERATIONS[operation]
    check_index(name, index)
    check_value(name, ta, value)
    again, promote = same_array_type(ta), promoter_of(ta)
    take_apart, shape, put = _putter(ta, operation, value)

    def plain(ta, index, value, name=None):
        owner, fields = store_owner(ta), promote(store_fields(ta))
        put(fields, np.int64(index), take_apart(value), shape(value))
        return again(owner)

    def promoted(fields, ta, index, value, name=None):
        owner = store_owner(ta)
        put(fields, np.int64(index), take_apart(value), shape(value))
        return again(owner)

    return plain, promoted


@method("write")
def _write(ta, index, value, name=None):
    return _put_methods(ta, rq.WRITE, index, value)[0]


@promoted_function("write")
def _promoted_write(fields, ta, index, value, name=None):
    return _put_methods(ta, rq.WRITE, index, value)[1]


def _append_methods(ta, value):
    """Implementations of `append`: plain, and with promoted fields."""
    check_value("append", ta, value)
    again, promote = same_array_type(ta), promoter_of(ta)
    take_apart, shape, put = _putter(ta, rq.APPEND, value)

    def plain(ta, value, name=None):
        owner, fields = store_owner(ta), promote(store_fields(ta))
        put(fields, field(fields, FIELD.size), take_apart(value), shape(value))
        return again(owner)

    def promoted(fields, ta, value, name=None):
        owner = store_owner(ta)
        put(fields, field(fields, FIELD.size), take_apart(value), shape(value))
        return again(owner)

    return plain, promoted


@method("append")
def _append(ta, value, name=None):
    return _append_methods(ta, value)[0]


@promoted_function("append")
def _promoted_append(fields, ta, value, name=None):
    return _append_methods(ta, value)[1]


@method("accumulate")
def _accumulate(ta, index, value, name=None):
    return _put_methods(ta, rq.ACCUMULATE, index, value)[0]


@promoted_function("accumulate")
def _promoted_accumulate(fields, ta, index, value, name=None):
    return _put_methods(ta, rq.ACCUMULATE, index, value)[1]


# Operations on scalars in loops that have looked at the slots ahead.


@cache
def _item_put(item):
    """A function that puts an item into a slot that is known to be free."""
    put_item = item_putter(item)

    @fast
    def put(store, index, value):
        put_item(field(store, FIELD.data), index, value)
        put_state(field(store, FIELD.states), index, after_write(False, False))

    return put


@unchecked_function("write")
def _unchecked_write(fields, ta, index, value):
    put = _item_put(ta.dtype)

    def implementation(fields, ta, index, value):
        slot = np.int64(index)
        put(fields, slot, value)
        put_field(fields, FIELD.size, max(field(fields, FIELD.size), slot + 1))

    return implementation


@unchecked_function("append")
def _unchecked_append(fields, ta, value):
    put = _item_put(ta.dtype)

    def implementation(fields, ta, value):
        slot = field(fields, FIELD.size)
        put(fields, slot, value)
        put_field(fields, FIELD.size, slot + 1)

    return implementation


@unchecked_function("accumulate")
def _unchecked_accumulate(fields, ta, index, value):
    get, put = item_getter(ta.dtype), item_putter(ta.dtype)

    def implementation(fields, ta, index, value):
        data, slot = field(fields, FIELD.data), np.int64(index)
        put(data, slot, get(data, slot) + value)

    return implementation


@unchecked_function("read")
def _unchecked_read(fields, ta, index):
    get = item_getter(ta.dtype)

    def implementation(fields, ta, index):
        slot = np.int64(index)
        put_state(field(fields, FIELD.states), slot, field(fields, FIELD.read_state))
        return get(field(fields, FIELD.data), slot)

    return implementation


@unchecked_function("getitem")
def _unchecked_getitem(fields, ta, index):
    get = item_getter(ta.dtype)
    return lambda fields, ta, index: get(field(fields, FIELD.data), np.int64(index))


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


# read, stack, size, grad, grad_with_shape.


@cache
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


@cache
def slow_read(array, operation, ndim, code):
    """A function that reads through the kernels."""
    result = result_of(array, ndim)
    many = operation in (rq.STACK, rq.LOOK_AT_ALL)
    entry = settings.BULK_ENTRY if many else settings.STORAGE_ENTRY
    check = rank_check(array, operation)

    @register_jitable
    def slow(store, index):
        check(store)
        words = new_request()
        ask_kernel(entry, operation, store, index, code, words)
        return result(words)

    return slow


@register_jitable
def ask_kernel(entry, operation, store, index, code, words):
    """Let a kernel read; its failure is an exception."""
    mem.store_int(words + 8 * rq.INDEX, index)
    mem.store_int(words + 8 * rq.DTYPE, code)
    status = mem.call_entry(setting(entry), operation, store, words)
    if status != STATUS.ok:
        raise_failure(status, operation, store, words)


@cache
def _is_of_rank(array):
    """A function that compares an array's rank with one that was inferred; a load and a branch.

    Fast paths ask it, and leave the refusal to the slow ones: two exits took three times as long.
    """
    if not array.inferred or array.ndim is None:
        return fast(lambda store: True)
    ndim = array.ndim
    return fast(lambda store: field(store, FIELD.rank) == ndim)


@cache
def rank_check(array, operation):
    """A function that refuses an array of another rank than was inferred.

    An array without a rank has no elements to read, which the kernels say.
    """
    if not array.inferred or array.ndim is None:
        return fast(lambda store: None)
    ndim = array.ndim

    @register_jitable
    def check(store):
        rank = field(store, FIELD.rank)
        if rank >= 0 and rank != ndim:
            words = new_request()
            mem.store_int(words + 8 * rq.EXPECTED, ndim)
            mem.store_int(words + 8 * rq.GOT, rank)
            raise_failure(STATUS.inferred_rank, operation, store, words)

    return check


@register_jitable
def take_in_loop(store, slot):
    """`take`, where a parallel loop uses the array."""
    return field(store, FIELD.claim_read) != 0 and read_in_loop(store, slot)


@cache
def _item_read(array):
    """Read an item of a uniform array."""
    load_item, code = value_reader(array.dtype), code_of(array.dtype)
    result, check = result_of(array, 0), rank_check(array, rq.READ)
    is_of_rank, itemsize = _is_of_rank(array), item_bytes(array.dtype)

    @register_jitable
    def slow(store, slot):
        if is_of_rank(store) and take_in_loop(store, slot):
            return load_item(field(store, FIELD.data) + slot * itemsize)
        check(store)
        words = new_request()
        ask_kernel(settings.STORAGE_ENTRY, rq.READ, store, slot, code, words)
        return result(words)

    @fast
    def read(store, slot):
        if is_of_rank(store) and take(store, slot):
            return load_item(field(store, FIELD.data) + slot * itemsize)
        item = slow(address_of_store(store), slot)
        reload(store)
        return item

    return read


@cache
def _view_of(array, hold):
    """A function ``(store, slot)`` that gives a view of an element of a uniform array.

    ``hold(owner)`` counts a reference to the elements; None where the view is borrowed.
    """
    element_of, own = element_reader(array.dtype, array.ndim), fast(lambda store: 0)
    if hold is not None:

        @fast
        def own(store):
            owner = field(store, FIELD.data_owner)
            hold(owner)
            return owner

    @fast
    def view(store, slot):
        # Others may let the array grow meanwhile; the later owner keeps the earlier elements.
        elements, owner = seen_field(store, FIELD.data), own(store)
        return element_of(store, owner, elements + slot * field(store, FIELD.element_bytes))

    return view


@cache
def _element_read(array, way):
    """Read an element of a uniform array: a view, whose owner is the same on every path.

    Were it another one after the slow path, LLVM could not remove the counting of references.
    """
    view = _view_of(array, mem.retain if way == COUNTED else None)
    code = code_of(array.dtype)
    is_of_rank, check = _is_of_rank(array), rank_check(array, rq.READ)

    @register_jitable
    def take_slowly(store, slot):
        if not (is_of_rank(store) and take_in_loop(store, slot)):
            check(store)
            ask_kernel(settings.STORAGE_ENTRY, rq.VIEW, store, slot, code, new_request())

    @fast
    def read(store, slot):
        if not (is_of_rank(store) and take(store, slot)):
            take_slowly(address_of_store(store), slot)
            reload(store)
        return view(store, slot)

    return read


@cache
def _only_slow_read(slow):
    """A way to read that has no fast path."""

    @fast
    def read(store, slot):
        found = slow(address_of_store(store), slot)
        reload(store)
        return found

    return read


def _read_of(ta, index, dtype, way=COUNTED):
    """What reads a slot: ``(store, index)``."""
    check_index("read", index)
    require_rank("read", ta)
    code = dtype_code(ta, dtype)
    if not ta.uniform or code < 0:
        return _only_slow_read(slow_read(ta, rq.READ, ta.ndim, code))
    return _item_read(ta) if ta.ndim == 0 else _element_read(ta, way)


@method("read")
def _read(ta, index, dtype=None, name=None):
    read, promote = _read_of(ta, index, dtype), promoter_of(ta)

    def implementation(ta, index, dtype=None, name=None):
        return read(promote(store_fields(ta)), np.int64(index))

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
            raise_failure(STATUS.closed, _SIZE, store, new_request())
        count = field(store, FIELD.size)
        if count > INT32_MAX:
            _refuse_count(store, count)
        return np.int32(count)

    return implementation


@out_of_line
def _refuse_count(store, count):
    stay_out_of_line()
    words = new_request()
    mem.store_int(words + 8 * rq.GOT, count)
    raise_failure(STATUS.size_int32, _SIZE, store, words)


@overload(len)
def _len(ta):
    if not isinstance(ta, TensorArrayType):
        return None

    def implementation(ta):
        store = store_fields(ta)
        if field(store, FIELD.closed):
            raise_failure(STATUS.closed, _SIZE, store, new_request())
        return np.int64(field(store, FIELD.size))

    return implementation


@register_jitable
def look_up(store, source, clear, words):
    """Look a gradient array up; its owner is in the request."""
    mem.store_int(words + 8 * rq.INDEX, clear)
    run_with_text(settings.GRADIENT_ENTRY, rq.GRAD, store, words, source, rq.COUNT)


@register_jitable
def check_gradient_rank(store, owner, rank, words):
    """A gradient array may have been made with a prefix, and then has another rank."""
    found = field(mem.owner_payload(owner), FIELD.rank)
    if rank >= 0 and found != rank:
        mem.store_int(words + 8 * rq.EXPECTED, rank)
        mem.store_int(words + 8 * rq.GOT, found)
        mem.release(owner)
        raise_failure(STATUS.gradient_rank, rq.GRAD, store, words)


def _rank_to_check(gradient):
    """What `check_gradient_rank` takes: an inferred rank is compared where elements are read."""
    return -1 if gradient.ndim is None or gradient.inferred else gradient.ndim


def check_flow(argument, flow):
    """A flow, or a scalar that may stand for one, as `nbta.tensor_array.as_flow` takes them."""
    is_array = isinstance(flow, types.Array) and flow.ndim == 0 and flow.dtype == types.float32
    if isinstance(flow, FlowType) or types.unliteral(flow) in _FLOW_SCALARS or is_array:
        return
    raise refusal(
        f"{argument} must be a flow that an operation on the array gave, or a float32 scalar; "
        f"this is {flow}"
    )


#: Python's own numbers have the types of int64 and float64 in compiled code.
_FLOW_SCALARS = {types.int64, types.float32, types.float64}


def own_flow(store, flow):
    """Refuse the flow of another array."""
    raise NotImplementedError("compiled code only")


@overload(own_flow)
def _own_flow(store, flow):
    if isinstance(flow, types.NoneType | types.Omitted) or flow is None:
        return lambda store, flow: None
    check_flow("grad: flow", flow)
    if not isinstance(flow, FlowType):
        return lambda store, flow: None

    def compare(store, flow):
        if store_fields(flow) != store:
            raise_failure(STATUS.flow, rq.GRAD, store, new_request())

    return compare


def _check_source(method, source):
    if not isinstance(source, types.UnicodeType | types.StringLiteral):
        raise refusal(f"{method}: source must be a string, not {source}")


@method("grad")
def _grad(ta, source, flow=None, clear_after_read=True, name=None):
    _check_source("grad", source)
    array_over, rank = new_array_type(ta.gradient), _rank_to_check(ta.gradient)

    def implementation(ta, source, flow=None, clear_after_read=True, name=None):
        words, store = new_request(), store_fields(ta)
        own_flow(store, flow)
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
    inferred = ta.inferred or rank is None
    made = TensorArrayType(ta.dtype, rank, ta.gradient.uniform, inferred)
    array_over, rank = new_array_type(made), _rank_to_check(made)

    def implementation(ta, source, shape_to_prepend, flow=None, clear_after_read=True, name=None):
        words, store = new_request(), store_fields(ta)
        own_flow(store, flow)
        count = count_of(shape_to_prepend)
        dimensions, owner = load_list(0, shape_to_prepend)
        status = STATUS.ok if owner > 0 else STATUS.too_large
        mem.store_int(words + 8 * rq.GOT, 1)
        mem.store_int(words + 8 * rq.EXPECTED, dimensions)
        if status == STATUS.ok and count > rq.MAX_RANK:
            status = STATUS.rank
            mem.store_int(words + 8 * rq.GOT, count)
        if status == STATUS.ok:
            mem.store_int(words + 8 * rq.RANK, count)
            mem.copy_bytes(words + 8 * rq.SHAPE, dimensions, 8 * count)
        if owner > 0:
            mem.release(owner)
        if status != STATUS.ok:
            raise_failure(status, rq.GRAD, store, words)
        look_up(store, source, np.int64(clear_after_read), words)
        found = mem.load_int(words + 8 * rq.OWNER)
        check_gradient_rank(store, found, rank, words)
        return array_over(found)

    return implementation


# gather, scatter, unstack, split, concat.


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
    if status != STATUS.ok:
        raise_failure(status, operation, store, words)


# Writing.


@register_jitable
def _put_rows(words, shape):
    """Describe a value that is written row by row."""
    mem.store_int(words + 8 * rq.INDEX, shape[0])
    mem.store_int(words + 8 * rq.RANK, len(shape) - 1)
    mem.store_dimensions(words + 8 * rq.SHAPE, shape[1:])


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
    mem.store_dimensions(words + 8 * rq.SHAPE, shape)


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
            words, status = new_request(), STATUS.too_large
            address, copy = load(block, value)
            _tell_too_large(words, address)
            if copy >= 0:
                status = write(store, words, address, value)
            _finish(status, operation, store, words, copy, 0)

        return block, write_in_order
    count_of, load_list = integers(listed)

    @register_jitable
    def write_listed(store, block, value, listed):
        words, status = new_request(), STATUS.too_large
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
            raise_failure(STATUS.gather_element_shape, operation, store, words)
        return result(words)

    return checked


def gather_of(ta, indices, element_shape, dtype, strict):
    """The implementation of `gather`; if strict, no slots have the shape that is asked for."""
    check_vector("gather", "indices", indices)
    asked, code = rank_asked("gather", "element_shape", element_shape), dtype_code(ta, dtype)
    if asked is None:
        require_rank("gather", ta)
    ndim = asked if ta.ndim is None or (strict and asked is not None) else ta.ndim
    result, words_rank = _checked_result(ta, ndim + 1, ta.ndim == ndim), _or_unknown(asked)
    count_of, load_list = integers(indices)
    check = rank_check(ta, rq.GATHER)

    def implementation(ta, indices, element_shape=None, dtype=None, name=None):
        store, words, status = store_fields(ta), new_request(), STATUS.too_large
        check(store)
        mem.store_int(words + 8 * rq.INDEX, strict)
        mem.store_int(words + 8 * rq.DTYPE, code)
        mem.store_int(words + 8 * rq.RANK, words_rank)
        put_dimensions(words, 0, element_shape, rq.GATHER, store)
        places, owner = load_list(0, indices)
        _tell_too_large(words, places)
        if owner > 0:
            mem.store_int(words + 8 * rq.LIST, places)
            mem.store_int(words + 8 * rq.COUNT, count_of(indices))
            status = mem.call_entry(setting(settings.BULK_ENTRY), rq.GATHER, store, words)
        _finish(status, rq.GATHER, store, words, owner, 0)
        return result(rq.GATHER, store, words)

    return implementation


@method("gather")
def _gather(ta, indices, element_shape=None, dtype=None, name=None):
    return gather_of(ta, indices, element_shape, dtype, strict=False)


def _or_unknown(rank):
    return -1 if rank is None else rank


@register_jitable
def _join_all(store, words):
    """Run CONCAT with room for all lengths; their owner."""
    while True:
        room = field(store, FIELD.size)
        owner, status = mem.allocate_owner(8 * room), STATUS.too_large
        if owner:
            mem.store_int(words + 8 * rq.LIST, mem.owner_payload(owner))
            mem.store_int(words + 8 * rq.INDEX, room)
            status = mem.call_entry(setting(settings.BULK_ENTRY), rq.CONCAT, store, words)
        else:
            _tell_too_large(words, 8 * room)
        if status != STATUS.ok:
            _finish(status, rq.CONCAT, store, words, owner, 0)
        if mem.load_int(words + 8 * rq.COUNT) <= room:
            return owner
        mem.release(owner)  # another thread made it grow meanwhile; nothing was done


@method("concat")
def _concat(ta, element_shape_except0=None, dtype=None, name=None):
    after = rank_asked("concat", "element_shape_except0", element_shape_except0)
    code, words_rank = dtype_code(ta, dtype), _or_unknown(after)
    if after is None:
        require_rank("concat", ta)
    # An array of scalars is an error of the kernel, whatever the rank.
    ndim = max(ta.ndim, 1) if after is None else after + 1
    result = result_of(ta, ndim)
    check = rank_check(ta, rq.CONCAT)

    def implementation(ta, element_shape_except0=None, dtype=None, name=None):
        store, words = store_fields(ta), new_request()
        check(store)
        mem.store_int(words + 8 * rq.DTYPE, code)
        mem.store_int(words + 8 * rq.RANK, words_rank)
        put_dimensions(words, 0, element_shape_except0, rq.CONCAT, store)
        owner = _join_all(store, words)
        count, address = mem.load_int(words + 8 * rq.COUNT), mem.owner_payload(owner)
        lengths = mem.adopt_array(owner, address, count, np.int64)
        return Concat(result(words), lengths)

    return implementation


@overload_attribute(TensorArrayType, "offsets")
def _offsets(ta):
    array_of = mem.array_reader(types.int64, 1)

    def implementation(ta):
        words = new_request()
        call_kernel(settings.BULK_ENTRY, rq.OFFSETS, store_fields(ta), words)
        owner, address = mem.load_int(words + 8 * rq.OWNER), mem.load_int(words + 8 * rq.RESULT)
        return array_of(owner, address, words + 8 * rq.OUT_SHAPE)

    return implementation


# ``ta[i]``, loops over arrays, np.asarray: looks, which mark nothing.


@register_jitable
def has_value_in_loop(store, slot):
    """Whether a parallel loop uses the array, and a slot can be looked at there at once."""
    return field(store, FIELD.claim_read) != 0 and look_in_loop(store, slot)


@cache
def _item_look(array):
    """Look at an item of a uniform array."""
    load_item, is_of_rank = value_reader(array.dtype), _is_of_rank(array)
    by_kernel = slow_read(array, rq.LOOK, 0, code_of(array.dtype))
    itemsize = item_bytes(array.dtype)

    @register_jitable
    def slow(store, index):
        slot = index + field(store, FIELD.size) if index < 0 else index
        if is_of_rank(store) and has_value_in_loop(store, slot):
            return load_item(field(store, FIELD.data) + slot * itemsize)
        return by_kernel(store, index)

    @fast
    def look(store, index, scratch):
        slot = index + field(store, FIELD.size) if index < 0 else index
        if is_of_rank(store) and is_value(store, slot):
            return load_item(field(store, FIELD.data) + slot * itemsize)
        item = slow(address_of_store(store), index)
        reload(store)
        return item

    return look


@out_of_line
def hold_owner(owner):
    """Count a reference that LLVM cannot remove, as `close` knows nothing of looks."""
    stay_out_of_line()
    mem.retain(owner)


@cache
def _scratch_look(array):
    """A function ``(store, index, scratch)`` that copies an element; where the copy is."""
    code, check = code_of(array.dtype), rank_check(array, rq.LOOK)

    @register_jitable
    def copy_of(store, index, scratch):
        check(store)
        words = new_request()
        ask_kernel(settings.STORAGE_ENTRY, rq.LOOK, store, index, code, words)
        mem.release(exchange(scratch, mem.load_int(words + 8 * rq.OWNER)))
        return mem.load_int(words + 8 * rq.RESULT)

    return copy_of


@cache
def _copied_element(array, scratched):
    """A function ``(store, index, scratch)`` that gives a copy of an element.

    Where a scratch place has the copy, the array counts no references: its owner is then the same
    on every path of a look, none, so that LLVM sees that there is nothing to count.
    """
    if not scratched:
        slow = slow_read(array, rq.LOOK, array.ndim, code_of(array.dtype))

        @fast
        def counted(store, index, scratch):
            element = slow(address_of_store(store), index)
            reload(store)
            return element

        return counted
    element_of, copy_of = element_reader(array.dtype, array.ndim), _scratch_look(array)

    @fast
    def borrowed(store, index, scratch):
        address = copy_of(address_of_store(store), index, scratch)
        reload(store)
        return element_of(store, 0, address)

    return borrowed


@cache
def _element_look(array, way, scratched, in_loops):
    """Look at an element of a uniform array.

    A view of what can neither change nor be cleared, or, where that is known not to happen while
    it is used, of any written slot. All else is copied. ``in_loops`` says that the function may be
    part of a parallel loop.
    """
    view = _view_of(array, hold_owner if way == COUNTED else None)
    steady = way == STEADY
    copied, is_of_rank = _copied_element(array, scratched), _is_of_rank(array)

    @fast
    def stays(store):
        return steady or (
            field(store, FIELD.gradient) == 0 and field(store, FIELD.read_state) & CLEARED == 0
        )

    @fast
    def look(store, index, scratch):
        slot = index + field(store, FIELD.size) if index < 0 else index
        if is_of_rank(store) and likely(stays(store)) and is_value(store, slot):
            return view(store, slot)
        if in_loops and is_of_rank(store) and has_value_in_loop(address_of_store(store), slot):
            reload(store)  # the loop may have begun, and the array have grown, since it was loaded
            return view(store, slot)
        return copied(store, index, scratch)

    return look


def _look_of(ta, index, way=COUNTED, scratch=None, in_loops=False):
    """What looks at a slot: ``(store, index, scratch)``; ``scratch`` is the type of the last."""
    check_index("getitem", index)
    require_rank("getitem", ta)
    if not ta.uniform:
        return _copied_element(ta, False)
    if ta.ndim == 0:
        return _item_look(ta)
    return _element_look(ta, way, isinstance(scratch, ScratchType), in_loops)


@overload(operator.getitem, jit_options=inlined)
def _getitem(ta, index):
    if not isinstance(ta, TensorArrayType):
        return None
    look, promote = _look_of(ta, index, in_loops=True), promoter_of(ta)
    return lambda ta, index: look(promote(store_fields(ta)), np.int64(index), None)


# Steps of a loop over an array whose fields are promoted.


@register_jitable
def _more_slowly(store, index):
    if field(store, FIELD.closed):
        raise_failure(STATUS.closed, _SIZE, store, new_request())
    return index < field(store, FIELD.size)


@promoted_function("more")
def _promoted_more(fields, ta, counter):
    def implementation(fields, ta, counter):
        index = count_of(counter)
        return is_value(fields, index) or _more_slowly(address_of_store(fields), index)

    return implementation


@cache
def _nothing(array):
    """A function that gives what stands for an element where there is none."""
    if array.ndim:
        element_of = element_reader(array.dtype, array.ndim)
        return fast(lambda store: element_of(store, 0, 0))
    load_item, zeros = value_reader(array.dtype), stack_block(-(-item_bytes(array.dtype) // 8))
    return fast(lambda store: load_item(zeros()))


def _define_views(way):
    """Define looks and reads with promoted fields, which give views in one way."""

    @promoted_function("read", way)
    def promoted_read(fields, ta, index, dtype=None, name=None):
        read = _read_of(ta, index, dtype, way)
        return lambda fields, ta, index, dtype=None, name=None: read(fields, np.int64(index))

    @promoted_function("getitem", way)
    def promoted_getitem(fields, ta, index, scratch=None):
        look = _look_of(ta, index, way, scratch)
        return lambda fields, ta, index, scratch=None: look(fields, np.int64(index), scratch)

    @promoted_function("next", way)
    def promoted_next(fields, ta, counter, more, scratch=None):
        look, nothing = _look_of(ta, types.int64, way, scratch), _nothing(ta)

        def implementation(fields, ta, counter, more, scratch=None):
            if not more:
                return nothing(fields)
            index = count_of(counter)
            set_count(counter, index + 1)
            return look(fields, index, scratch)

        return implementation


for _way in (COUNTED, BORROWED, STEADY):
    _define_views(_way)


@overload(operator.setitem)
def _setitem(ta, index, value):
    if isinstance(ta, TensorArrayType):
        raise refusal(not_of_arrays("__setitem__"))


@overload(operator.delitem)
def _delitem(ta, index):
    if isinstance(ta, TensorArrayType):
        raise refusal(not_of_arrays("__delitem__"))


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


# Lanes.


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
