"""Whether two values are the same, bit by bit, and not merely equal as Python has it."""

from __future__ import annotations

import enum
import struct
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

_ITSELF = (bool, str, bytes, int, type(None), type(Ellipsis), type(NotImplemented))


def key_of(value: Any) -> Any:
    """A key that two values share where nothing tells them apart: 1, 1.0 and True differ.

    Numbers, strings, tuples, frozen sets, slices, members of enumerations, and frozen dataclasses
    of these go by type and value; all else is itself, by identity.
    """
    kind = type(value)
    if kind in _ITSELF:
        return kind, value
    made = _KEYS.get(kind) or next((m for k, m in _KINDS.items() if isinstance(value, k)), None)
    if made is not None:
        return kind, made(value)
    if _is_frozen(value):
        return kind, tuple(key_of(getattr(value, each.name)) for each in fields(value))
    return kind, _Itself(value)


def _parts(value: Any) -> Any:
    return tuple(map(key_of, (value.start, value.stop, value.step)))


#: What tells values of a type apart.
_KEYS = {
    float: lambda value: struct.pack("d", value),
    complex: lambda value: struct.pack("dd", value.real, value.imag),
    frozenset: lambda value: frozenset(map(key_of, value)),
    slice: _parts,
    range: _parts,
}
#: The same for subclasses, too.
_KINDS = {
    enum.Enum: lambda value: value.name,
    np.generic: lambda value: (value.dtype.str, value.tobytes()),
    np.dtype: lambda value: value,
    tuple: lambda value: tuple(map(key_of, value)),
}


def _is_frozen(value: Any) -> bool:
    """Whether a dataclass's fields say all about it."""
    if not is_dataclass(value) or isinstance(value, type):
        return False
    own = getattr(value, "__dict__", {})
    return value.__dataclass_params__.frozen and own.keys() <= {f.name for f in fields(value)}


class _Itself:
    """An object in a key, by its identity."""

    __slots__ = ("_value",)

    def __init__(self, value: Any) -> None:
        self._value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Itself) and self._value is other._value

    def __hash__(self) -> int:
        return id(self._value)


def same(one: Any, other: Any) -> bool:
    """Whether nothing tells two values apart."""
    return one is other or (type(one) is type(other) and key_of(one) == key_of(other))
