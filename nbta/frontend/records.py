"""Structured arrays in functions that are traced: one array a field.

`Records` stands for a structured array and `Record` for an item of one. What is read and assigned
is read and assigned in the arrays of the fields, so that loops, compiled code and gradients know
nothing of records. `Records` are structures, whose leaves are these arrays; they are taken apart
before a graph is looked up and become a structured array again where their fields are NumPy's.
"""

from __future__ import annotations

import functools

import numpy as np

from nbta import classes
from nbta.errors import invalid
from nbta.frontend import native
from nbta.frontend.array_wrappers import new_array
from nbta.frontend.problems import here
from nbta.ops.core.filling import fill
from nbta.structure import leaves, map_leaves


class Records:
    """A structured array, as the arrays of its fields.

    Parameters
    ----------
    dtype : np.dtype
    fields : dict
        By name: an array, or `Records` for a structured field.
    """

    def __init__(self, dtype, fields):
        self._dtype, self._fields = dtype, fields
        #: How messages name the parts of the structure.
        self.part_names = tuple(f"[{name!r}]" for name in dtype.names)

    @property
    def dtype(self):
        """NumPy's."""
        return self._dtype

    @property
    def shape(self):
        """Without the axes that fields have of their own."""
        name, first = next(iter(self._fields.items()))
        return first.shape[: len(first.shape) - self._dtype[name].ndim]

    @property
    def ndim(self):
        """How many axes it has."""
        return len(self.shape)

    @property
    def size(self):
        """How many records it has."""
        found = 1
        for length in self.shape:
            found = found * length
        return found

    def copy(self):
        """Another array of the same values."""
        return Records(self._dtype, {name: part.copy() for name, part in self._fields.items()})

    def __getitem__(self, key):
        if isinstance(key, str):
            return self._field(key)
        if isinstance(key, list) and all(isinstance(name, str) for name in key):
            message = f"{here()}: several fields at once, {key}; take one after the other"
            raise invalid("symbolic", message)
        parts = key if isinstance(key, tuple) else (key,)  # () of a record is the record
        if len(parts) == self.ndim and all(map(native.is_integer, map(native.plain, parts))):
            return Record(self, key)
        return Records(self._dtype, {name: part[key] for name, part in self._fields.items()})

    def __setitem__(self, key, value):
        if isinstance(key, str):
            self._field(key)[...] = value
            return
        for name, part in self._fields.items():
            part[key] = _part_of(value, name, self._dtype)

    def _field(self, name):
        if name not in self._fields:
            raise _no_field(name, self._dtype)
        return self._fields[name]

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        return self._field(name)


class Record:
    """An item of a structured array: a view, as NumPy's is."""

    def __init__(self, whole, key):
        object.__setattr__(self, "_whole", whole)
        object.__setattr__(self, "_key", key)

    @property
    def dtype(self):
        """NumPy's."""
        return self._whole.dtype

    def _name(self, name):
        return self.dtype.names[name] if isinstance(name, int) else name

    def __getitem__(self, name):
        return self._whole._field(self._name(name))[self._key]

    def __setitem__(self, name, value):
        self._whole._field(self._name(name))[self._key] = value

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        return self[name]

    def __setattr__(self, name, value):
        self[name] = value

    def copy(self):
        """A record of its own."""
        found = empty_records((1,), self.dtype)
        found[0] = self
        return Record(found, 0)

    def values(self):
        """Its fields as they are now."""
        return Records(self.dtype, {name: _values(self[name]) for name in self.dtype.names})


def _values(part):
    return part.values() if isinstance(part, Record) else part


def _no_field(name, dtype):
    message = f"{here()}: a record has no field {name!r}; it has {', '.join(dtype.names)}"
    return invalid("record", message)


def _part_of(value, name, dtype):
    """What a field gets of a value that is assigned to a record."""
    if isinstance(value, tuple):
        if len(value) != len(dtype.names):
            message = f"{here()}: a record of {len(dtype.names)} fields is given {len(value)}"
            raise invalid("record", message)
        return value[dtype.names.index(name)]
    if isinstance(value, Record | Records) or is_structured(value):
        return value[name]
    return value


def _unflattened(dtype, parts):
    """Records, or NumPy's array of them where all fields are arrays of NumPy's."""
    fields = dict(zip(dtype.names, parts, strict=True))
    if not all(isinstance(part, np.ndarray | np.generic) for part in parts):
        return Records(dtype, fields)
    first = np.asarray(parts[0])
    found = np.empty(first.shape[: first.ndim - dtype[0].ndim], dtype)
    for name, part in fields.items():
        found[name] = part
    return found[()]


classes.add(Records, (lambda r: (tuple(r._fields.values()), r._dtype), _unflattened))


def has_attribute(owner, name) -> bool:
    """Whether NumPy's structured array or record has an attribute: recarrays have their fields."""
    alike = np.zeros((), owner.dtype)
    alike = alike[()] if isinstance(owner, Record) else alike
    return hasattr(alike, name) or (owner.dtype.type is np.record and name in owner.dtype.names)


def is_structured(value) -> bool:
    """Whether a value is a structured array or record of NumPy's."""
    return isinstance(value, np.ndarray | np.void) and value.dtype.names is not None


def with_values(structure):
    """A result with `Records` in place of views of single records."""
    if not any(isinstance(leaf, Record) for leaf in leaves(structure)):
        return structure
    return map_leaves(_values, structure)


def as_records(value, label=None, wrapper=None):
    """A structured array as the arrays of its fields, or as ``wrapper(array, label)`` of each."""
    _check_apart(value.dtype)
    fields, value = {}, np.asarray(value)  # a text of a single record has its own length
    for name in value.dtype.names:
        # They stay views: what shares memory with other arguments is seen by its address.
        part, own = value[name], f"{label or 'records'}[{name!r}]"
        if part.dtype.names is not None:
            fields[name] = as_records(part, own, wrapper)
        else:
            fields[name] = part if wrapper is None else wrapper(part, own)
    return Records(value.dtype, fields)


@functools.cache
def _check_apart(dtype):
    """Refuse fields in one place, as an assignment to one would change the others; and none."""
    if not dtype.names:
        raise invalid("record", "a record has no fields; drop it, or give it one")
    end, before = 0, None
    for name in sorted(dtype.names, key=lambda name: dtype.fields[name][1]):
        kind, start = dtype.fields[name][:2]
        if start < end:
            message = (
                f"{before!r} and {name!r} share memory in {dtype}; give arrays of records whose "
                f"fields lie apart"
            )
            raise invalid("record", message)
        end, before = start + kind.itemsize, name


def empty_records(shape, dtype):
    """A structured array of zeros."""
    shape = tuple(shape) if isinstance(shape, list | tuple) else (shape,)
    fields = {}
    for name in dtype.names:
        kind = dtype[name]
        dimensions = (*shape, *kind.shape)
        if kind.base.names is not None:
            fields[name] = empty_records(dimensions, kind.base)
        else:
            fields[name] = new_array(fill(dimensions, np.zeros((), kind.base)[()]))
    return Records(dtype, fields)
