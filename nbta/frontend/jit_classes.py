"""Objects of Numba's jitclasses in functions that are traced.

A compiled object cannot hold what only the run knows. An object of a dataclass takes its place,
with the same methods by their source and the same fields, which cast numbers to the dtypes that the
jitclass declares. As with other dataclasses, the fields of an argument are inputs of the graph.
Fields of an object from outside are read as its methods ask for them, like attributes of any other:
arrays are inputs, and the rest are guards.
"""

from __future__ import annotations

import ctypes
import dataclasses
import functools
from typing import ClassVar

import numba
import numpy as np

from nbta.classes import with_fields
from nbta.errors import UnimplementedError
from nbta.frontend import conversion, native
from nbta.frontend.array_wrappers import born, wrapped
from nbta.frontend.outside import reading
from nbta.frontend.problems import here
from nbta.frontend.source import no_source
from nbta.graph.operation import Tensor
from nbta.ops.core.dispatch import as_tensor
from nbta.ops.core.shaping import cast
from nbta.runtime.numba_private import BOX_FIELDS, JitClassType
from nbta.runtime.numba_private import Box as CompiledObject

#: By the class type of Numba's.
_made: dict = {}


class PythonObject:
    """An object in place of one of a jitclass: of a dataclass with its fields.

    Attributes
    ----------
    dtypes : dict
        Of fields by name; None for arrays and others, which are taken as they are.
    constructor : types.FunctionType
        The jitclass's ``__init__``.
    """

    dtypes: ClassVar[dict]
    constructor: ClassVar

    def put(self, name, value):
        """Assign a field, which casts numbers as the jitclass does."""
        dtype = self.dtypes[name]
        setattr(self, name, value if dtype is None else _as_field(value, dtype))


def _as_field(value, dtype):
    if isinstance(value, Tensor) and not native.is_known(value):
        plain = native.plain(value)
        return value if plain.dtype == dtype else wrapped(cast(as_tensor(plain), dtype))
    return dtype.type(native.plain(value))


def python_class(kind) -> type:
    """The class of Python's for a jitclass, given as what Python or Numba calls it."""
    kind = kind.class_type if isinstance(kind, JitClassType) else kind
    if kind not in _made:
        members = {name: f for name, f in kind.methods.items() if name != "__init__"}
        members |= {name: staticmethod(f) for name, f in kind.static_methods.items()}
        for name, pair in kind.jit_props.items():
            members[name] = property(*(f and f.py_func for f in map(pair.get, ("get", "set"))))
        members["dtypes"] = {name: _dtype(field) for name, field in kind.struct.items()}
        members["constructor"] = staticmethod(kind.methods["__init__"])
        _made[kind] = dataclasses.make_dataclass(
            kind.class_name, list(kind.struct), bases=(PythonObject,), namespace=members, eq=False
        )
    return _made[kind]


def _dtype(field):
    if isinstance(field, numba.types.Boolean):
        return np.dtype(bool)
    return np.dtype(field.name) if isinstance(field, numba.types.Number) else None


def constructed(kind, args, kwargs):
    """An object that a function makes; numbers that its constructor leaves out are 0."""
    found = python_class(kind)
    zeros = [(name, dtype.type(0)) for name, dtype in found.dtypes.items() if dtype is not None]
    made = born(with_fields(found, zeros))
    constructor = conversion.converted(found.constructor)
    if constructor is None:
        raise no_source(found.constructor)
    constructor(made, *args, **kwargs)
    return made


def is_compiled_object(value) -> bool:
    """Whether a value is an object of a user's jitclass."""
    return isinstance(value, CompiledObject)


def class_of(value) -> type:
    """The class of an object; of a compiled one that of what stands for it."""
    if is_compiled_object(value):
        return python_class(value._numba_type_.class_type)
    return type(value)


def _field(owner, name):
    """A field of a compiled object as it is now."""
    value = getattr(owner, name)
    if type(value).__module__.startswith("numba.typed"):
        raise UnimplementedError(
            f"the field {name!r} of {class_of(owner).__name__} is a {type(value).__name__.lower()} "
            f"of Numba's, which nbta does not take in a jitclass; give an array"
        )
    return value


def place_of(value) -> int:
    """Where the fields of a compiled object are, whichever object of Python's stands for it."""
    return ctypes.c_void_p.from_address(id(value) + BOX_FIELDS).value


def python_object(value):
    """An object in place of one of a jitclass, with what its fields hold now."""
    kind = class_of(value)
    fields = {name: _field(value, name) for name in kind.dtypes}
    return with_fields(
        kind,
        [(n, python_object(v) if is_compiled_object(v) else v) for n, v in fields.items()],
    )


# Objects from outside.


class OuterObject:
    """In place of a compiled object from outside, whose fields are read when they are asked for."""

    def __getattr__(self, name):
        if name not in self.dtypes:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        owner, dtype = self.__dict__["from_outside"], self.dtypes[name]
        value = _field(owner, name)
        if (outside := reading()) is not None:
            outside.read_attribute(owner, name, value)
        if is_compiled_object(value):
            value = placeholder(value)
        else:
            label = f"{type(self).__name__}.{name}"
            value = conversion.outer(value, label) if dtype is None else dtype.type(value)
        self.__dict__[name] = value
        return value

    def put(self, name, value):
        """Refuse to assign a field."""
        raise UnimplementedError(
            f"{here()}: {type(self).__name__}.{name} is assigned, of an object of a jitclass from "
            f"outside of the function, which may not change it: give the object as an argument"
        )


def placeholder(value):
    """What stands for a compiled object from outside, the same for all objects that share it."""
    outside = reading()
    known = {} if outside is None else outside.placeholders
    place = place_of(value)
    if place not in known:
        made = object.__new__(_outer_class(class_of(value)))
        made.__dict__["from_outside"] = value
        known[place] = made
    return known[place]


@functools.cache
def _outer_class(kind):
    return type(kind.__name__, (OuterObject, kind), {})


def asked(owner, name):
    """What has an attribute: the compiled object itself for its numbers, which are Python's."""
    is_number = class_of(owner).dtypes.get(name) is not None
    return owner if is_number else placeholder(owner)
