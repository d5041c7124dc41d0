"""Calls from Python into the store, made to cost as little as NumPy's own.

Numba's dispatcher looks at the type of each argument and compiles for each dtype and rank. These
functions take Python objects as they are and look into them natively: one compiled function for
everything, 55 ns a call instead of 140. What the fast path does not know (it answers 0) goes
through the kernels' entry point.
"""

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import NativeValue, intrinsic, models, register_model, unbox

from nbta.dtypes import FLOAT64
from nbta.runtime import memory as mem
from nbta.runtime import settings
from nbta.runtime.buffers import copied_points
from nbta.runtime.cold_fields import (
    GRADIENTS,
    NAME,
    OFFSETS,
    SOURCE,
    SUFFIX,
    cold_bytes,
    cold_points,
    ensure_cold,
    put_cold_array,
)
from nbta.runtime.compiled import loaded_once
from nbta.runtime.fields import field
from nbta.runtime.layout import block_at, store_intact
from nbta.runtime.machine_code import Routine
from nbta.runtime.memory import (
    ARRAY_DATA,
    ARRAY_DIMENSIONS,
    ARRAY_DTYPE,
    ARRAY_FLAGS,
    ARRAY_RANK,
    ARRAY_READY,
    INT64,
    kernel,
)
from nbta.runtime.numba_private import cgutils
from nbta.runtime.packed import PACKED_HEAD
from nbta.runtime.pool import empty_pool
from nbta.runtime.settings import setting
from nbta.runtime.sharing import acquire, lend, release, take_back
from nbta.runtime.sources import hold_gradient
from nbta.runtime.store import (
    BLOCK_HEAD,
    BLOCK_ROOM,
    FIELD,
    STORE,
    store_at,
    store_of_owner,
)


class PythonObject(types.Type):
    """Any Python object, passed as its address."""

    def __init__(self):
        super().__init__("nbta.PythonObject")


PYTHON_OBJECT = PythonObject()


@register_model(PythonObject)
class _AddressModel(models.PrimitiveModel):
    def __init__(self, manager, kind):
        super().__init__(manager, kind, INT64)


@unbox(PythonObject)
def _unbox_address(kind, value, c):
    return NativeValue(c.builder.ptrtoint(value, INT64))


@intrinsic
def address(typingctx, value):
    """Address of a Python object."""
    return types.int64(PYTHON_OBJECT), lambda context, builder, sig, args: args[0]


@intrinsic
def int_value(typingctx, value):
    """Value of a Python int (not checked); -1 where it does not fit an int64."""

    def codegen(context, builder, sig, args):
        flag = cgutils.alloca_once_value(builder, ir.IntType(32)(0))
        parameters = [cgutils.voidptr_t, flag.type]
        function = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(INT64, parameters), "PyLong_AsLongLongAndOverflow"
        )
        return builder.call(function, [builder.inttoptr(args[0], cgutils.voidptr_t), flag])

    return types.int64(types.int64), codegen


@kernel
def type_address(value):
    """Address of an object's type: the last word of its head."""
    return mem.load_int(value + setting(settings.OBJECT_HEAD) - 8)


@kernel
def array_address(store, dtype, value):
    """Address of an array's items where it is just what a slot takes; else 0.

    Its dtype object must be that of whoever calls, who holds it. Another one may stand for the same
    dtype: Python compares what they say.
    """
    fields = value + setting(settings.OBJECT_HEAD)
    flags = mem.load_int(fields + ARRAY_FLAGS) & ARRAY_READY
    rank = mem.load_int(fields + ARRAY_RANK) & 0xFFFFFFFF
    if flags != ARRAY_READY or rank != field(store, FIELD.rank):
        return 0
    if mem.load_int(fields + ARRAY_DTYPE) != dtype:
        return 0
    dimensions = mem.load_int(fields + ARRAY_DIMENSIONS)
    for axis in range(rank):
        if mem.load_int(dimensions + 8 * axis) != field(store, FIELD.dimension0 + axis):
            return 0
    return mem.load_int(fields + ARRAY_DATA)


@kernel
def value_address(store, dtype, value):
    """Address of the bytes of a value that needs no conversion; else 0."""
    kind = type_address(value)
    if kind == setting(settings.ARRAY_TYPE):
        return array_address(store, dtype, value)
    is_float = kind == setting(settings.FLOAT_TYPE) or kind == setting(settings.FLOAT64_TYPE)
    if is_float and field(store, FIELD.dtype) == FLOAT64 and field(store, FIELD.rank) == 0:
        return value + setting(settings.OBJECT_HEAD)
    return 0


def own_store(owner):
    """The store after an owner, as a Python object; takes over one reference."""
    return store_of_owner(owner)


def take_bytes(owner, address, count):
    """Bytes at an address as an array that keeps their owner; takes over one reference."""
    return mem.adopt_array(owner, address, count, np.uint8)


def lend_store(store):
    """Before a call lets go of the interpreter's lock: shut the fast paths of a store."""
    lend(store_at(store))
    return 0


def take_store_back(store):
    """When the call has the interpreter's lock again."""
    take_back(store_at(store))
    return 0


def data_bytes(store):
    """All bytes of a store's data buffer."""
    s = store_at(store)
    held = acquire(s)
    mem.retain(s._data_owner)
    buffer = mem.adopt_array(s._data_owner, s._data, s._data_bytes, np.uint8)
    release(s, held)
    return buffer


def state_bytes(store):
    """The state bytes of all slots there is room for."""
    s = store_at(store)
    held = acquire(s)
    mem.retain(s._states_owner)
    buffer = mem.adopt_array(s._states_owner, s._states, s._capacity, np.uint8)
    release(s, held)
    return buffer


def block_bytes(owner):
    """All bytes of a ragged block: its head and, at the end, its element."""
    count = BLOCK_HEAD + setting(settings.GUARD) + block_at(owner)[BLOCK_ROOM]
    mem.retain(owner)
    return mem.adopt_array(owner, mem.owner_payload(owner), count, np.uint8)


def head_bytes(store):
    """Head and offsets of packed elements; empty where there are none."""
    s = store_at(store)
    held = acquire(s)
    offsets = cold_bytes(s, OFFSETS)
    count = 8 * (PACKED_HEAD + len(offsets)) if len(offsets) else 0
    owner = mem.owner_of(offsets)
    mem.retain(owner)
    head = mem.adopt_array(owner, mem.address_of(offsets), count, np.uint8)
    release(s, held)
    return head


def gradient_owners(store):
    """Owners of the gradient arrays' stores, eight bytes each."""
    s = store_at(store)
    held = acquire(s)
    owners = cold_bytes(s, GRADIENTS)
    release(s, held)
    return owners


def share_store(owner):
    """The store after an owner, as a Python object, beside those who hold it already."""
    mem.retain(owner)
    return store_of_owner(owner)


def source_points(store):
    """The source of a gradient array, as code points."""
    return cold_points(store_at(store), SOURCE)


def attach_gradient(store, gradient):
    """Let a store hold a gradient array, which ends its growth; 0 when there is no memory."""
    return int(hold_gradient(store_at(store), store_at(gradient)))


def name_points(store):
    """The name that an array was given, or its forward array, as code points."""
    return cold_points(store_at(store), NAME)


def name_suffix(store):
    """What a gradient array's name adds to its forward array's, as code points."""
    return cold_points(store_at(store), SUFFIX)


def put_suffix(store, address, count):
    """Let a gradient array that comes from a file have its suffix; 0 when there is no memory."""
    s = store_at(store)
    suffix = copied_points(address, count)
    if len(suffix) < count or not ensure_cold(s):
        return 0
    put_cold_array(s, SUFFIX, suffix)
    return 1


def guards_intact(store):
    """Whether nobody wrote beside the store's buffers."""
    s = store_at(store)
    held = acquire(s)
    intact = store_intact(s)
    release(s, held)
    return intact


def return_pool():
    """Return the memory of dropped arrays to the system."""
    return empty_pool()


@loaded_once
def native(function):
    """One of this module's functions, loaded or compiled at its first use."""
    return ROUTINES[function].load().function


_WORD = types.int64
_ARRAY = types.Array(types.uint8, 1, "C")
_SIGNATURES = {
    lend_store: _WORD(_WORD),
    take_store_back: _WORD(_WORD),
    own_store: STORE(_WORD),
    take_bytes: _ARRAY(_WORD, _WORD, _WORD),
    data_bytes: _ARRAY(_WORD),
    state_bytes: _ARRAY(_WORD),
    block_bytes: _ARRAY(_WORD),
    head_bytes: _ARRAY(_WORD),
    gradient_owners: _ARRAY(_WORD),
    share_store: STORE(_WORD),
    source_points: types.Array(types.int32, 1, "C")(_WORD),
    attach_gradient: _WORD(_WORD, _WORD),
    name_points: types.Array(types.int32, 1, "C")(_WORD),
    name_suffix: types.Array(types.int32, 1, "C")(_WORD),
    put_suffix: _WORD(_WORD, _WORD, _WORD),
    guards_intact: types.boolean(_WORD),
    return_pool: _WORD(),
}
ROUTINES = {f: Routine(f, kind, {"error_model": "numpy"}) for f, kind in _SIGNATURES.items()}
