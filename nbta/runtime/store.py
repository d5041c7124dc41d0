"""The jitclass that stores a tensor array, what its fields mean, and its type with a stable name.

All fields are int64, and references are counted by hand: a store of a few numbers is one block of
memory, with its elements and their state bytes after its fields.

A *uniform* array (element shape fully known) keeps all elements in one buffer, one state byte a
slot beside it. Where shapes differ, a *packed* array has its elements back to back in one buffer,
with offsets (see `nbta.runtime.packed`). A *ragged* array has elements that differ in more than
their first dimension or were not written in order, or is a gradient array of elements that differ:
it keeps a table with the owner of one block a slot; a block holds its capacity, its rank, eight
dimensions and then the element.

Numba names a jitclass type after the address of its Python class, so a compiled function that
takes one is never found again in the disk cache (numba/numba#4830). The types here are named
after module, class and fields; constructor, methods and callers are then cached on disk.
"""

from collections import namedtuple
from functools import cache

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import (
    box,
    infer_getattr,
    intrinsic,
    lower_getattr_generic,
    lower_setattr_generic,
    models,
    register_model,
    unbox,
)

from nbta.runtime import memory as mem
from nbta.runtime import settings
from nbta.runtime.buffers import may_allocate, note_used
from nbta.runtime.memory import INT64, kernel
from nbta.runtime.numba_private import (
    BOX_FIELDS,
    BOX_OWNER,
    AttributeTemplate,
    Box,
    ClassBuilder,
    InstanceModel,
    cgutils,
    register_class_type,
    unbox_instance,
)
from nbta.runtime.packed import note_offsets, packed_bytes
from nbta.runtime.request import MAX_RANK
from nbta.runtime.settings import setting
from nbta.tuning import INLINE_BYTES, LONGEST_INLINE

_class_types = {}


class StaleType(types.Opaque):
    """Stands for a type of another version that a cache index names; no argument has it."""


def _class_type(name):
    """The registered class type of that name."""
    return _class_types.get(name) or StaleType(name)


def _instance_type(name):
    """The type of that class's instances."""
    kind = _class_type(name)
    return kind if isinstance(kind, StaleType) else kind.instance_type


class StableInstanceType(types.ClassInstanceType):
    """Instances of a jitclass with a stable name."""

    def __reduce__(self):
        return _instance_type, (self.class_type.name,)


class StableClassType(types.ClassType):
    """A jitclass with a stable name."""

    instance_type_class = StableInstanceType

    def __init__(self, class_def, *args):
        super().__init__(class_def, *args)
        fields = ",".join(f"{name}:{kind}" for name, kind in self.struct.items())
        self.name = f"jitclass.{class_def.__module__}.{class_def.__qualname__}<{fields}>"
        _class_types[self.name] = self

    @property
    def instance_type(self):
        """The type of instances."""
        return StableInstanceType(self)

    def __reduce__(self):
        return _class_type, (self.name,)

    def get_impl_key(self, sig):
        """Constructors of all jitclasses are lowered alike."""
        return types.ClassType


register_model(StableClassType)(models.OpaqueModel)
register_model(StableInstanceType)(InstanceModel)


@cache
def _box_class(name):
    """The Python class of instances: a bare box.

    Numba's own has a property for each field and compiles its getter at once, 50 ms a field.
    """
    members = {"__slots__": (), "_numba_type_": _instance_type(name)}
    return type(_class_type(name).class_name, (Box,), members)


def stable_jitclass(spec):
    """`numba.experimental.jitclass` with a stable type name and a bare box."""

    def wrap(cls):
        return register_class_type(cls, spec, StableClassType, ClassBuilder)

    return wrap


@box(StableInstanceType)
def _box_instance(typ, value, c):
    """Like Numba's own boxing, but finds the Python class by name instead of by address."""
    meminfo, data = cgutils.unpack_tuple(c.builder, value)
    find = c.pyapi.unserialize(c.pyapi.serialize_object(_box_class))
    name = c.pyapi.unserialize(c.pyapi.serialize_object(typ.class_type.name))
    box_class = c.pyapi.call_function_objargs(find, (name,))
    instance = c.pyapi.call_function_objargs(box_class, ())
    pointer = ir.IntType(8).as_pointer()
    for offset, part in ((BOX_OWNER, meminfo), (BOX_FIELDS, data)):
        place = cgutils.pointer_add(
            c.builder, instance, c.context.get_constant(types.uintp, offset)
        )
        place = c.builder.bitcast(place, pointer.as_pointer())
        c.builder.store(c.builder.bitcast(part, pointer), place)
    for reference in (find, name, box_class):
        c.pyapi.decref(reference)
    return instance


unbox(StableInstanceType)(unbox_instance)


#: The int64 fields, in memory order, so that Python and compiled fast paths can find them. After
#: them a store has room for small contents, where the first of it may be more dimensions.
HEADER = (
    # Fast paths go by these.
    "size",  # slots
    "data",  # address of the elements (uniform, packed) or of the table (ragged)
    "states",  # address of the state bytes
    "element_bytes",  # stored bytes of an element of a uniform array
    "rank",  # element rank, -1: unknown
    "fast_write",  # slots below this may be written in place when their state is 0
    "fast_read",  # ... handed out in place when their state says written
    "fast_add",  # ... added to in place when their state says written
    "fast_append",  # appends go below this, and leave states to whoever looks; 0: they do not
    "read_state",  # state bits that a read sets
    "data_owner",  # what keeps the data alive: a buffer, or the store itself
    # All others.
    "id",  # the k of the handle NAME_k; for a gradient array, its forward array's
    "dtype",  # dtype code
    "itemsize",  # bytes of an item as users see it
    "storage_itemsize",  # bytes of an item as stored (float16 gradients are kept in float32)
    "capacity",  # slots there is room for
    "layout",
    "dynamic",  # writes past the end make the array grow
    "clear_after_read",
    "infer_shape",
    "gradient",  # a gradient array: writes accumulate
    "closed",
    "shared",  # views of a large buffer are out, so its pages stay
    "marked",  # slots that the last split filled, here or in the forward array
    "data_bytes",  # of the elements or of the table
    "states_owner",  # what keeps the state bytes alive
    "owner",  # what keeps the store alive, and what it has room for
    "end",  # address of the end of the store
    "settled",  # with fast_append: from here on states are not stored yet
    "cold",  # owner of the cold fields (see `nbta.runtime.cold_fields`); 0: none
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
    *(f"dimension{axis}" for axis in range(MAX_RANK)),  # element shape, -1: unknown
)
#: Where each of them stands; a named tuple, which compiled code can use too.
FIELD = namedtuple("FIELD", HEADER)(*range(len(HEADER)))

#: Layouts.
UNDECIDED, UNIFORM, RAGGED, PACKED = range(4)


@stable_jitclass([("_" + name, types.int64) for name in HEADER])
class Store:
    """Storage of one tensor array; `nbta.runtime.kernels` holds its rules.

    It counts one reference to each owner that it names, but none to itself.
    """

    def __init__(self):
        """Kernels call `new_store`, which raises nothing."""


STORE = Store.class_type.instance_type


class BorrowedStoreType(types.Type):
    """A store in kernels: its address alone. Whoever runs a kernel holds a reference meanwhile.

    An instance of the jitclass brings its owner along, which Numba counts a reference to in each
    function that takes one.
    """

    def __init__(self):
        super().__init__("nbta.BorrowedStore")


BORROWED = BorrowedStoreType()


@register_model(BorrowedStoreType)
class _BorrowedStoreModel(models.PrimitiveModel):
    def __init__(self, manager, kind):
        super().__init__(manager, kind, INT64.as_pointer())


@infer_getattr
class _FieldsOfStores(AttributeTemplate):
    key = BorrowedStoreType

    def generic_resolve(self, store, name):
        """All fields are int64."""
        return types.int64 if name[1:] in HEADER else None


def _place(builder, store, number):
    """Pointer to a field by its number."""
    return builder.gep(store, [number], inbounds=True)


def _named_place(builder, store, name):
    return _place(builder, store, INT64(getattr(FIELD, name[1:])))


@lower_getattr_generic(BorrowedStoreType)
def _get_field(context, builder, kind, store, name):
    return builder.load(_named_place(builder, store, name))


@lower_setattr_generic(BorrowedStoreType)
def _set_field(context, builder, sig, args, name):
    store, value = args
    builder.store(value, _named_place(builder, store, name))


@kernel
def _finalize_store(fields):
    """Give back what a store holds, when its last user is gone."""
    s = store_at(fields)
    replace_memory(s, 0, 0, 0, 0, 0)
    note_offsets(s)
    mem.release(s._cold)
    return 0


@kernel
def replace_memory(s, data_owner, data, nbytes, states_owner, states):
    """Give a store other data and state bytes; references to owners that are new pass to it."""
    old_data, old_states = s._data_owner, s._states_owner
    if s._layout == UNIFORM:  # no slot past the size was ever marked
        if old_data != 0 and old_data != s._owner and old_data != data_owner:
            note_used(old_data, s._size * s._element_bytes)
        if old_states != 0 and old_states != s._owner and old_states != states_owner:
            note_used(old_states, s._size)
    elif s._layout == PACKED and old_data != 0 and old_data != data_owner:
        note_used(old_data, packed_bytes(s))
    s._data_owner = data_owner  # first: an owner keeps what it replaces
    mem.publish_int(field_address(s, FIELD.data), data)
    s._data_bytes, s._states_owner, s._states = nbytes, states_owner, states
    for old in (old_data, old_states if old_states != old_data else 0):
        if old != 0 and old != s._owner and old != data_owner and old != states_owner:
            mem.release(old)


@kernel
def room_for(rank, slots, unit):
    """Bytes after the fields of a store for so many slots, if they are few and small.

    A store of unknown rank (-1) may turn out to be one of items of ``unit`` bytes.
    """
    guards, most = 4 * setting(settings.GUARD), LONGEST_INLINE
    if slots < 0 or slots > most or unit > most or slots * (unit + 1) > most:
        return max(INLINE_BYTES, 8 * MAX_RANK) + guards
    fields = 8 * FIELD.dimension0
    data = ((fields + 8 * max(rank, 0) + 15) & -16) - fields + slots * unit
    return max(INLINE_BYTES, 8 * MAX_RANK + slots, data + slots) + guards


@kernel
def new_store(nbytes):
    """An empty store of unknown rank with so much room; one at address 0 without memory.

    Whoever asks for it has the one reference that there is, in `_owner`.
    """
    total = 8 * FIELD.dimension0 + nbytes
    owner = mem.allocate_finalized(total, _finalize_store) if may_allocate() else 0
    if owner == 0:
        return store_at(0)
    mem.clear_bytes(mem.owner_payload(owner), total)
    s = store_at(mem.owner_payload(owner))
    s._owner, s._end = owner, mem.owner_payload(owner) + total
    s._rank = -1
    return s


@intrinsic
def store_at(typingctx, address):
    """The store whose fields lie at an address."""

    def codegen(context, builder, sig, args):
        return builder.inttoptr(args[0], INT64.as_pointer())

    return BORROWED(types.int64), codegen


@intrinsic
def store_address(typingctx, store):
    """Address of a store's fields."""

    def codegen(context, builder, sig, args):
        return builder.ptrtoint(args[0], INT64)

    return types.int64(BORROWED), codegen


@intrinsic
def store_of_owner(typingctx, owner):
    """The store after an owner, for Python; takes over one reference."""

    def codegen(context, builder, sig, args):
        instance = context.make_helper(builder, STORE)
        instance.meminfo = builder.inttoptr(args[0], cgutils.voidptr_t)
        data = context.nrt.meminfo_data(builder, instance.meminfo)
        instance.data = builder.bitcast(data, instance.data.type)
        return instance._getvalue()

    return STORE(types.int64), codegen


@intrinsic
def get_dimension(typingctx, store, axis):
    """Dimension of the element shape along an axis."""

    def codegen(context, builder, sig, args):
        store, axis = args
        return builder.load(_place(builder, store, builder.add(axis, INT64(FIELD.dimension0))))

    return types.int64(BORROWED, types.int64), codegen


@intrinsic
def set_dimension(typingctx, store, axis, value):
    """Change the dimension of the element shape along an axis."""

    def codegen(context, builder, sig, args):
        store, axis, value = args
        place = _place(builder, store, builder.add(axis, INT64(FIELD.dimension0)))
        builder.store(value, place)
        return context.get_dummy_value()

    return types.void(BORROWED, types.int64, types.int64), codegen


@kernel
def field_address(s, field):
    """Address of one of a store's int64 fields."""
    return store_address(s) + 8 * field


# A ragged block, in int64: room in bytes, rank, eight dimensions; the element follows.
BLOCK_ROOM, BLOCK_RANK, BLOCK_SHAPE = 0, 1, 2
BLOCK_HEAD = 8 * (2 + MAX_RANK)
assert np.int64(BLOCK_HEAD) % 16 == 0
