"""Objects of Numba's jitclasses in functions that are traced.

A compiled object cannot hold what only the run knows. An object of a dataclass takes its place,
with the same methods by their source and the same fields, which cast numbers to the dtypes that the
jitclass declares. As with other dataclasses, the fields of an argument are inputs of the graph.
"""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import numba
import numpy as np

from nbta.classes import with_fields
from nbta.errors import UnimplementedError
from nbta.frontend import conversion, native
from nbta.frontend.boxes import born, boxed
from nbta.frontend.problems import here
from nbta.frontend.source import no_source
from nbta.graph.operation import Tensor
from nbta.ops.dispatch import as_tensor
from nbta.ops.shaping import cast
from nbta.runtime.numba_private import Box as CompiledObject
from nbta.runtime.numba_private import JitClassType

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
        return value if plain.dtype == dtype else boxed(cast(as_tensor(plain), dtype))
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


def python_object(value):
    """An object in place of one of a jitclass, with what its fields hold now."""
    kind, parts = python_class(value._numba_type_.class_type), []
    for name in kind.dtypes:
        part = getattr(value, name)
        if type(part).__module__.startswith("numba.typed"):
            raise UnimplementedError(
                f"the field {name!r} of {kind.__name__} is a {type(part).__name__.lower()} of "
                f"Numba's, which nbta does not take in a jitclass; give an array"
            )
        parts.append((name, python_object(part) if is_compiled_object(part) else part))
    return with_fields(kind, parts)


def refuse_from_outside(owner, name):
    """Refuse a method of an object of a jitclass that is no argument."""
    raise UnimplementedError(
        f"{here()}: {type(owner).__name__}.{name} of an object of a jitclass from outside of the "
        f"function: give the object as an argument"
    )
