"""The jitclass that stores a tensor array, and what its fields mean.

A *uniform* array (element shape fully known) keeps all elements in one buffer, one state byte a
slot beside it. A *ragged* array keeps a table with the owner of one block a slot; a block holds
its capacity, its rank, eight extents and then the element.
"""

from collections import namedtuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from nbta.runtime.buffers import may_allocate
from nbta.runtime.jitclass_types import stable_jitclass
from nbta.runtime.memory import INT64, kernel
from nbta.runtime.numba_private import cgutils, instance_destructor
from nbta.runtime.request import MAX_RANK, WORDS

#: The int64 fields, in memory order, so that Python and compiled fast paths can find them.
HEADER = (
    "id",  # the k of the handle NAME_k; for a gradient array, its forward array's
    "dtype",  # dtype code
    "itemsize",  # bytes of an item as users see it
    "storage_itemsize",  # bytes of an item as stored (float16 gradients are kept in float32)
    "size",  # slots
    "capacity",  # slots there is room for
    "rank",  # element rank, -1: unknown
    *(f"extent{axis}" for axis in range(MAX_RANK)),  # element shape, -1: unknown
    "element_bytes",  # stored bytes of an element of a uniform array
    "layout",
    "dynamic",  # writes past the end make the array grow
    "clear_after_read",
    "infer_shape",
    "gradient",  # a gradient array: writes accumulate
    "closed",
    "shared",  # views of a large buffer are out, so its pages stay
    "marked",  # slots that the last split filled, here or in the forward array
    "data_owner",  # what keeps the data buffer alive
    "data",  # address of the elements (uniform) or of the table (ragged)
    "states",  # address of the state bytes
    "fast_write",  # slots below this may be written in place when their state is 0
    "fast_read",  # ... handed out in place when their state says written
    "fast_add",  # ... added to in place when their state says written
    "read_state",  # state bits that a read sets
    # Use without the interpreter's lock (see `nbta.runtime.sharing`).
    "lock",  # 1 while somebody holds the store's lock, else 0
    "users",  # how many of the next three there are together; 0: no lock is needed
    "lent",  # calls from Python that let go of the interpreter's lock meanwhile
    "threads",  # calls of nogil functions that were given the array
    "parallel",  # parallel loops that use the array
    "epoch",  # the process's number when these were counted (a fork starts a new one)
    "claims",  # iterations of the loops are the only such users, and may claim slots
    "claim_write",  # slots below this may be claimed for writing when their state is 0
    "claim_read",  # ... for reading when their state says written
    "claim_add",  # ... for adding
    "failed",  # status of a failure in a parallel loop, kept until the loop ends; 0: none
    "failed_in",  # its operation
    "failed_at",  # the array's own store, or that of a gradient array of it
    *(f"failure{word}" for word in range(WORDS)),  # its request
)
#: Where each of them stands; a named tuple, which compiled code can use too.
FIELD = namedtuple("FIELD", HEADER)(*range(len(HEADER)))

#: Layouts.
UNDECIDED, UNIFORM, RAGGED = range(3)

#: State bits of a slot. ZERO: written, but its zeros take no memory yet. PENDING: claimed by an
#: operation that runs. DEPOSIT: added to in the parallel loop that runs.
WRITTEN, READ, CLEARED, ZERO, PENDING, DEPOSIT = 1, 2, 4, 8, 16, 32

_BYTES = types.Array(types.uint8, 1, "C")


@stable_jitclass(
    [("_" + name, types.int64) for name in HEADER]
    + [
        ("_data_buffer", _BYTES),
        ("_state_buffer", _BYTES),
        ("_gradients", _BYTES),  # owners of the gradient arrays' stores
        ("_source", types.Array(types.int32, 1, "C")),  # of a gradient array, as code points
        ("_trail", types.Array(types.int32, 1, "C")),  # what its name adds: @SOURCE, maybe twice
    ]
)
class Store:
    """Storage of one tensor array; `nbta.runtime.kernels` holds its rules."""

    def __init__(self):
        """Kernels call `new_store`, which raises nothing."""


STORE = Store.class_type.instance_type


@intrinsic
def _blank_store(typingctx):
    """A store of zeros, at address 0 when there is no memory, where ``Store()`` would raise."""

    def codegen(context, builder, sig, args):
        fields = context.get_data_type(STORE.get_data_type())
        nbytes = context.get_constant(types.uintp, context.get_abi_sizeof(fields))
        destructor = instance_destructor(context, builder.module, STORE)
        instance = context.make_helper(builder, STORE)
        instance.meminfo = context.nrt.meminfo_alloc_dtor_unchecked(builder, nbytes, destructor)
        place = cgutils.alloca_once_value(builder, cgutils.get_null_value(instance.data.type))
        with builder.if_then(cgutils.is_not_null(builder, instance.meminfo)):
            data = context.nrt.meminfo_data(builder, instance.meminfo)
            data = builder.bitcast(data, instance.data.type)
            builder.store(cgutils.get_null_value(fields), data)
            builder.store(data, place)
        instance.data = builder.load(place)
        return instance._getvalue()

    return STORE(), codegen


@kernel
def new_store():
    """An empty store of unknown rank, or one at address 0 when there is no memory."""
    if not may_allocate():
        return store_at(0)
    s = _blank_store()
    if store_address(s):
        s._rank = -1
    return s


@intrinsic
def store_at(typingctx, address):
    """The store whose fields lie at an address (a borrowed reference)."""

    def codegen(context, builder, sig, args):
        instance = context.make_helper(builder, STORE)
        instance.meminfo = cgutils.get_null_value(instance.meminfo.type)
        instance.data = builder.inttoptr(args[0], instance.data.type)
        return instance._getvalue()

    return STORE(types.int64), codegen


@intrinsic
def store_of_owner(typingctx, owner):
    """The store behind an owner; takes over one reference."""

    def codegen(context, builder, sig, args):
        instance = context.make_helper(builder, STORE)
        instance.meminfo = builder.inttoptr(args[0], cgutils.voidptr_t)
        data = context.nrt.meminfo_data(builder, instance.meminfo)
        instance.data = builder.bitcast(data, instance.data.type)
        return instance._getvalue()

    return STORE(types.int64), codegen


@intrinsic
def store_address(typingctx, store):
    """Address of a store's fields."""

    def codegen(context, builder, sig, args):
        instance = context.make_helper(builder, STORE, value=args[0])
        return builder.ptrtoint(instance.data, INT64)

    return types.int64(STORE), codegen


@intrinsic
def store_owner(typingctx, store):
    """Address of the object that keeps a store alive (a borrowed reference)."""

    def codegen(context, builder, sig, args):
        instance = context.make_helper(builder, STORE, value=args[0])
        return builder.ptrtoint(instance.meminfo, INT64)

    return types.int64(STORE), codegen


def _field_pointer(context, builder, store, first, axis):
    """Pointer to one of a run of int64 fields (the extents) by a run-time number."""
    instance = context.make_helper(builder, STORE, value=store)
    base = builder.bitcast(instance.data, ir.IntType(64).as_pointer())
    return builder.gep(base, [builder.add(axis, INT64(first))])


@intrinsic
def get_extent(typingctx, store, axis):
    """Extent of the element shape along an axis."""

    def codegen(context, builder, sig, args):
        first = FIELD.extent0
        return builder.load(_field_pointer(context, builder, args[0], first, args[1]))

    return types.int64(STORE, types.int64), codegen


@intrinsic
def set_extent(typingctx, store, axis, value):
    """Change the extent of the element shape along an axis."""

    def codegen(context, builder, sig, args):
        first = FIELD.extent0
        builder.store(args[2], _field_pointer(context, builder, args[0], first, args[1]))
        return context.get_dummy_value()

    return types.void(STORE, types.int64, types.int64), codegen


@kernel
def field_address(s, field):
    """Address of one of a store's int64 fields."""
    return store_address(s) + 8 * field


# A ragged block, in int64: room in bytes, rank, eight extents; the element follows.
BLOCK_ROOM, BLOCK_RANK, BLOCK_SHAPE = 0, 1, 2
BLOCK_HEAD = 8 * (2 + MAX_RANK)
assert np.int64(BLOCK_HEAD) % 16 == 0
