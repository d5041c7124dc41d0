"""Values and indices that compiled code gives to a method, as memory that the kernels can take.

An array in C order is where it is. Other arrays, and lists, are copied to memory of their own, and
tuples and items to the stack of the method. Whoever calls gives the copy back before anything is
raised: what compiled code holds then is lost.
"""

from math import prod

import numpy as np
from numba import types
from numba.extending import intrinsic, register_jitable

from nbta.runtime import memory as mem
from nbta.runtime.arguments import item_bytes, nested_shape
from nbta.runtime.compiled import out_of_line, stay_out_of_line
from nbta.runtime.extension import stack_block
from nbta.runtime.fast_paths import fast
from nbta.runtime.memory import INT64
from nbta.runtime.numba_private import cgutils
from nbta.runtime.vector_code import room
from nbta.shapes import MAX_RANK

LISTS = types.List | types.ListType


@intrinsic
def store_layout(typingctx, address, value):
    """Store an array's extents, and behind them its strides, as int64 from an address on."""

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
    extents = mem.array_at(layout, rank, np.int64)
    strides = mem.array_at(layout + 8 * rank, rank, np.int64)
    at = mem.array_at(room(_COUNTERS), rank, np.int64)
    count = 1
    for axis in range(rank):
        count *= extents[axis]
        at[axis] = 0
    for _ in range(count):
        mem.copy_bytes(target, source, itemsize)
        target += itemsize
        axis = rank - 1
        while axis >= 0:
            at[axis] += 1
            source += strides[axis]
            if at[axis] < extents[axis]:
                break
            source -= strides[axis] * extents[axis]
            at[axis] = 0
            axis -= 1


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
