"""Objects of users' classes as structures: how they are taken apart, and put together again.

Registered classes say it themselves. Objects of other dataclasses consist of their fields, where
these are all that they hold.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from nbta.errors import invalid

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence


class Node(NamedTuple):
    """What an object consists of.

    Attributes
    ----------
    kind : type
    parts : tuple
        Structures.
    rest : any
        With a hash: what a graph is for.
    names : tuple of str
        How the parts are distinguished in messages.
    packed : callable
        From other parts to an object like it.
    is_value : bool
        Whether the class is registered, so that nobody minds which of two equal objects it is.
    """

    kind: type
    parts: tuple
    rest: Any
    names: tuple[str, ...]
    packed: Callable[[Iterable[Any]], Any]
    is_value: bool


#: Users' classes: how an object is taken apart, and put together; None for the fields of one.
_REGISTERED: dict[type, tuple[Callable, Callable] | None] = {}
#: Those and named tuples, by what files call them.
_BY_NAME: dict[str, type] = {}


def node_of(structure) -> Node | None:
    """The parts of an object of a registered class or a dataclass; None for anything else."""
    kind = type(structure)
    if kind in _REGISTERED:
        rules = _REGISTERED[kind]
        return _of_fields(structure, True) if rules is None else _of_rules(structure, *rules)
    if not hasattr(kind, "__dataclass_fields__") or not_rebuilt(structure):
        return None
    return _of_fields(structure, False)


def _of_rules(structure, flatten, unflatten):
    parts, rest = flatten(structure)
    parts = tuple(parts)
    names = getattr(structure, "part_names", tuple(f"<{i}>" for i in range(len(parts))))
    if dataclasses.is_dataclass(structure) and len(parts) == len(field_names(type(structure))):
        names = tuple(f".{name}" for name in field_names(type(structure)))
    made = functools.partial(_unflattened, unflatten, rest)
    return Node(type(structure), parts, rest, names, made, True)


def _unflattened(unflatten, rest, parts):
    return unflatten(rest, tuple(parts))


@functools.lru_cache(maxsize=1024)
def field_names(kind: type) -> tuple[str, ...]:
    """The fields of a dataclass, also those that its `__init__` does not take."""
    return tuple(field.name for field in dataclasses.fields(kind))


class Missing:
    """In place of a field that has no value."""


def _of_fields(structure, is_value):
    kind, names, parts, rest = type(structure), [], [], []
    for name, value in fields_of(structure):
        if is_static(value):
            rest.append((name, value))
        else:
            names.append(name)
            parts.append(value)
    names, rest = tuple(names), tuple(rest)
    made = functools.partial(_of_parts, kind, names, rest)
    return Node(kind, tuple(parts), rest, tuple(f".{name}" for name in names), made, is_value)


def _of_parts(kind, names, rest, parts):
    return with_fields(kind, [*zip(names, parts, strict=True), *rest])


def with_fields(kind: type, values: Iterable[tuple[str, Any]]) -> Any:
    """An object of a dataclass with these fields, without a call of what checks values."""
    made = object.__new__(kind)
    for name, value in values:
        if value is not Missing:
            object.__setattr__(made, name, value)
    return made


def fields_of(structure) -> list[tuple[str, Any]]:
    """The fields of an object of a dataclass."""
    return [(name, getattr(structure, name, Missing)) for name in field_names(type(structure))]


#: What is no array, and does not change.
_STATIC = str | bytes | enum.Enum | np.dtype | type | type(...)


def is_static(value) -> bool:
    """Whether a field is part of what a graph is for, and no structure of arrays.

    Texts, members of enumerations, dtypes, classes and functions are, and tuples of these.
    """
    if type(value) is tuple:
        return bool(value) and all(map(is_static, value))
    if not isinstance(value, _STATIC) and not (callable(value) and node_of(value) is None):
        return False
    try:
        hash(value)
    except TypeError:
        return False
    return True


def not_rebuilt(structure) -> str:
    """Why an object of a dataclass cannot be made of its fields again; empty where it can."""
    return _not_made(type(structure)) or more_than_fields(structure)


def more_than_fields(structure) -> str:
    """What an object of a dataclass holds besides, as part of a message; empty for nothing."""
    kind = type(structure)
    held = {*getattr(structure, "__dict__", ()), *_slots(kind)}
    more = [name for name in held.difference(field_names(kind)) if not _is_cache(kind, name)]
    if not more or not hasattr(structure, min(more)):
        return ""
    return f"it has an attribute {min(more)!r}, which is no field"


@functools.lru_cache(maxsize=1024)
def _not_made(kind):
    """What of a class may do more than to set fields."""
    if kind.__new__ is not object.__new__:
        return "its class has a __new__ of its own"
    code = getattr(kind.__init__, "__code__", None)
    if code is not None and code.co_filename == "<string>":  # written by `dataclass`
        return ""
    return "its class has an __init__ of its own"


@functools.lru_cache(maxsize=1024)
def _slots(kind):
    found = [getattr(each, "__slots__", ()) for each in kind.__mro__]
    names = {n for slots in found for n in ([slots] if isinstance(slots, str) else slots)}
    return frozenset(names - {"__dict__", "__weakref__"})


def _is_cache(kind, name):
    """Whether an attribute is one that is computed again when it is asked for."""
    return isinstance(getattr(kind, name, None), functools.cached_property)


def objects_in(structure) -> list:
    """Objects in a structure that others may change: those of dataclasses as they are."""
    if isinstance(structure, dict):
        return [found for part in structure.values() for found in objects_in(part)]
    if isinstance(structure, list | tuple):
        return [found for part in structure for found in objects_in(part)]
    node = node_of(structure)
    if node is None:
        return []
    inner = [found for part in node.parts for found in objects_in(part)]
    return inner if node.is_value or is_frozen(node.kind) else [structure, *inner]


def is_frozen(kind: type) -> bool:
    """Whether fields of a dataclass's objects keep their values."""
    return kind.__dataclass_params__.frozen


def is_namedtuple(kind: type) -> bool:
    """Whether a class is that of named tuples."""
    return issubclass(kind, tuple) and hasattr(kind, "_fields")


def file_name(kind: type) -> str:
    """What files call a class."""
    return f"{kind.__module__}.{kind.__qualname__}"


def named(name: str) -> type | None:
    """The registered class that files call so; None where there is none."""
    return _BY_NAME.get(name)


def is_registered(kind: type) -> bool:
    """Whether a file may have objects of a class."""
    return _BY_NAME.get(file_name(kind)) is kind


def rules_of(kind: type) -> tuple[Callable, Callable] | None:
    """How objects of a registered class are taken apart and put together; None for by fields."""
    return _REGISTERED.get(kind)


def add(kind: type, rules: Sequence[Callable] | None) -> None:
    """Register a class.

    Raises
    ------
    InvalidArgumentError
        For one that is a structure already.
    """
    if kind in _REGISTERED or is_registered(kind):
        raise invalid("register", f"register_structure: {kind.__name__} is a structure already")
    if not is_namedtuple(kind):
        _REGISTERED[kind] = rules if rules is None else (rules[0], rules[1])
    _BY_NAME[file_name(kind)] = kind
