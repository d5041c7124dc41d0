"""Jitclass types whose names do not change from process to process.

Numba names a jitclass type after the address of its Python class, so a compiled function that
takes one is never found again in the disk cache (numba/numba#4830). The types here are named
after module, class and fields; constructor, methods and callers are then cached on disk.
"""

from functools import cache

from llvmlite import ir
from numba import types
from numba.extending import NativeValue, box, models, register_model, unbox

from nbta.runtime.numba_private import (
    BOX_FIELDS,
    BOX_OWNER,
    Box,
    ClassBuilder,
    InstanceModel,
    cgutils,
    register_class_type,
    unbox_instance,
)

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
__all__ = ["NativeValue", "StableClassType", "StableInstanceType", "stable_jitclass"]
