"""Containers of Python's in a function that is traced, and what functions change of them.

Blocks that become the body of a loop or a branch are run once, so that all that they change must be
known. What converted code changes it tells. A function that nbta does not look into may change what
it is given, and what that holds: so that is looked at before and after its call. What it is given
holds arrays and tensors in place of wrappers meanwhile.
"""

from __future__ import annotations

import types
from array import array
from collections import OrderedDict, deque

import numpy as np

from nbta.frontend import native
from nbta.frontend.array_wrappers import (
    ArrayWrapper,
    Attribute,
    born,
    containers_in,
    link,
    made_read_only,
    note_place,
    taken_apart,
    wrapped,
)
from nbta.graph.graph import current, lies_in
from nbta.graph.operation import Tensor
from nbta.ops.random.draws import GENERATORS

KINDS = (list, dict, set, deque, bytearray, array)

#: Methods that change them.
CHANGING = {
    "add", "append", "appendleft", "byteswap", "clear", "difference_update", "discard", "extend",
    "extendleft", "frombytes", "fromfile", "fromlist", "fromunicode", "insert",
    "intersection_update", "move_to_end", "pop", "popitem", "popleft", "remove", "reverse",
    "rotate", "setdefault", "sort", "symmetric_difference_update", "update",
}  # fmt: skip

#: Those that say nothing of what a container holds.
WRITING = {
    "add", "append", "appendleft", "clear", "difference_update", "discard", "extend", "extendleft",
    "insert", "reverse", "rotate", "sort", "update",
}  # fmt: skip
#: What is not looked into.
_CLOSED = (
    type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType, types.MethodType,
    Tensor, np.ndarray, np.generic, str, bytes, int, float, complex,
)  # fmt: skip
#: How deep objects in objects are looked into.
_DEEP = 4


#: What messages call what a container holds.
ITEMS = "the items"
_COPIED = (
    (list | deque, tuple), (dict, dict), (set, frozenset), (bytearray, bytes),
    (array, array.tobytes),
)  # fmt: skip


class Whole:
    """All items of a container, as a place."""

    def __init__(self, owner):
        self.owner, self.key = owner, (id(owner), "whole")

    def of(self, owner):
        """The same of another container."""
        return Whole(owner)

    @property
    def value(self):
        """A copy: a tuple or a dict, whose items loops and branches forward, or what is fixed."""
        return next((made(self.owner) for kind, made in _COPIED if isinstance(self.owner, kind)))

    @value.setter
    def value(self, new):
        fill(self.owner, new)

    def __str__(self):
        kind = "list" if isinstance(self.owner, list) else type(self.owner).__name__
        return f"{ITEMS} of {'an' if kind[0] in 'aeiouAEIOU' else 'a'} {kind}"


def fill(owner, items) -> None:
    """Let a container hold other items, without a note of it."""
    if isinstance(owner, list):
        list.__setitem__(owner, slice(None), items)
    elif isinstance(owner, dict):
        kind = OrderedDict if isinstance(owner, OrderedDict) else dict  # whatever others add
        kind.clear(owner)
        kind.update(owner, items)
    elif isinstance(owner, array):
        del owner[:]
        owner.frombytes(items)
    else:
        owner.clear()
        (owner.update if isinstance(owner, set) else owner.extend)(items)


def put_item(owner, key, value) -> None:
    """Assign an item of a list or dict, without a note of it if it is of this package's kind."""
    if isinstance(owner, list):
        list.__setitem__(owner, key, value)
    else:
        owner[key] = value


#: By the identity of a list or dict: others, and tensors that say in which runs they are it.
_LINKS = "lists and dicts that may be one"


def link_items(one, other, holds) -> None:
    """Say that two lists or dicts of as many items are one in runs in which something holds."""
    links = current().root.cache.setdefault(_LINKS, {})
    for each, found in ((one, other), (other, one)):
        links.setdefault(id(each), (each, []))[1].append((found, holds))


def linked_items(owner) -> list:
    """The lists or dicts that a list or dict may be, and in which runs, where that is known."""
    return [(other, holds) for other, holds in _links(owner) if lies_in(current(), holds.graph)]


def _links(owner):
    return current().root.cache.get(_LINKS, {}).get(id(owner), (None, ()))[1]


def relatives(structure) -> list:
    """The lists and dicts that those in a structure may be, and those that these may be."""
    todo = containers_in(structure)
    own, found = set(map(id, todo)), {}
    while todo:
        for other, _ in _links(todo.pop()):
            if id(other) not in found and id(other) not in own:
                found[id(other)] = other
                todo.append(other)
    return list(found.values())


def note_whole(owner) -> None:
    """Note what a container holds before a function changes it."""
    if isinstance(owner, list | dict) and linked_items(owner):
        raise taken_apart(Whole(owner))
    note_place(Whole(owner))


class Watched:
    """What a function is given that it may change, as it was before.

    Parameters
    ----------
    values : iterable
        The arguments, and the object whose method it is.

    Attributes
    ----------
    generators : list
        Those of random numbers among what it is given.
    """

    def __init__(self, values):
        self._containers, self._attributes, self._wrappers, self._plain = {}, {}, {}, {}
        self._found, self.generators = set(), []
        for value in self._level_by_level(values):
            self._note(value)

    def _level_by_level(self, values):
        """Values that were not found before, and what they hold."""
        for _ in range(_DEEP + 1):
            level, values = values, []
            for value in level:
                if self._is_found(value):
                    continue
                yield value
                if _is_open(value):
                    values += _parts(value)

    def _is_found(self, value):
        is_closed = value is None or (
            isinstance(value, _CLOSED) and not isinstance(value, ArrayWrapper)
        )
        if is_closed or id(value) in self._found:
            return True
        self._found.add(id(value))
        return False

    def _note(self, value):
        if isinstance(value, ArrayWrapper):
            self._note_wrapper(value)
        elif isinstance(value, GENERATORS):
            self.generators.append(value)
        elif isinstance(value, KINDS):
            if _is_open(value):
                self._containers[id(value)] = value, Whole(value).value
        elif own_attributes(value) is not None:
            self._attributes[id(value)] = value, dict(own_attributes(value))

    def _note_wrapper(self, wrapper):
        if wrapper.spoiled is None:
            content = wrapper.content
            held = content.copy() if isinstance(content, np.ndarray) else None
            self._wrappers[id(content)] = wrapper, content, held

    def opened(self, value):
        """What stands for a value while the function runs: one for an object in two places."""
        if id(value) in self._containers:
            return value
        if type(value) is tuple:
            return tuple(map(self.opened, value))
        if id(value) not in self._plain:
            self._plain[id(value)] = native.plain(value)
        return self._plain[id(value)]

    def __enter__(self):
        self._open = {key: self._opened_items(held) for key, (_, held) in self._containers.items()}
        for key, items in self._open.items():
            owner, held = self._containers[key]
            if not _is_same(items, held):  # others' are left alone, which threads may use
                fill(owner, items)
        return self

    def _opened_items(self, held):
        if isinstance(held, dict):
            return {key: self.opened(part) for key, part in held.items()}
        return tuple(map(self.opened, held)) if isinstance(held, tuple) else held

    def __exit__(self, *_):
        for key, (owner, held) in self._containers.items():
            self._close(owner, held, self._open[key])
        for owner, held in self._attributes.values():
            for name in held.keys() | own_attributes(owner).keys():
                self._close_attribute(owner, name, held)
        for wrapper, content, held in list(self._wrappers.values()):
            if held is not None and not _is_equal(content, held):
                changed = content.copy()
                content[...] = held
                wrapper.store(changed)

    def _close(self, owner, held, opened):
        now = Whole(owner).value
        is_changed = not _is_same(now, opened)
        if is_changed or not _is_same(opened, held):
            fill(owner, held)
        if is_changed:
            note_whole(owner)
            fill(owner, self._closed_items(now))

    def _closed_items(self, now):
        if isinstance(now, dict):
            return {key: self.closed(part) for key, part in now.items()}
        return tuple(map(self.closed, now)) if isinstance(now, tuple) else now

    def _close_attribute(self, owner, name, held):
        place = Attribute(owner, name)
        now = own_attributes(owner).get(name, place)
        if now is held.get(name, place):
            return
        _put(owner, name, held.get(name, place), place)
        note_place(place)
        _put(owner, name, now if now is place else self.closed(now), place)

    def closed(self, value):
        """What stands for a value that the function left or gave."""
        if id(value) in self._wrappers:
            return self._wrappers[id(value)][0]
        if type(value) in (tuple, list) and id(value) not in self._containers:
            return type(value)(map(self.closed, value))
        if isinstance(value, np.ndarray) and value.ndim:
            return self._own(value)
        return value if isinstance(value, KINDS) else wrapped(value)

    def mark_new(self, found):
        """What the function gives, of which all that it was not given was made by it."""
        for value in self._level_by_level([found]):
            if not isinstance(value, ArrayWrapper):
                born(value)
        return found

    def _own(self, array):
        """An array in a wrapper of its own, which is linked to those that it may be a part of."""
        shared = [wrapper for wrapper, content, held in self._wrappers.values()
                  if held is not None and np.may_share_memory(content, array)]  # fmt: skip
        found = ArrayWrapper(array.copy() if shared else np.asarray(array))
        found.read_only = made_read_only(array, [wrapper.content for wrapper in shared])
        for wrapper in shared:
            link(found, wrapper.root)
        return found


def _is_open(value):
    """Whether what an object holds is looked at: not of arrays and of lists that a loop fills."""
    return not isinstance(value, ArrayWrapper) and (
        not isinstance(value, list) or native.is_python(value)
    )


def _parts(value):
    """What an object holds."""
    if isinstance(value, dict):
        return list(value.values())
    if isinstance(value, list | tuple | deque):
        return list(value)
    return list((own_attributes(value) or {}).values())


def holds_tensors(value, depth=_DEEP) -> bool:
    """Whether a value is one of a trace, or holds one."""
    if isinstance(value, Tensor) or (isinstance(value, list) and not native.is_python(value)):
        return True
    if not depth or value is None or isinstance(value, _CLOSED):
        return False
    parts = value if isinstance(value, set | frozenset) else _parts(value)
    return any(holds_tensors(part, depth - 1) for part in parts)


def own_attributes(value):
    """An object's own attributes, whatever its class makes of asking for one."""
    try:
        return object.__getattribute__(value, "__dict__")
    except AttributeError:
        return None


def _put(owner, name, value, missing):
    if value is missing:
        own_attributes(owner).pop(name, None)
    else:
        own_attributes(owner)[name] = value


def is_held(place, value) -> bool:
    """Whether a place holds what it held before."""
    now = place.value
    return now is value or (isinstance(place, Whole) and _is_same(now, value))


def _is_same(one, other) -> bool:
    """Whether two copies have the same items in the same order."""
    if isinstance(one, bytes | frozenset):
        return one == other
    if len(one) != len(other) or (isinstance(one, dict) and list(one) != list(other)):
        return False
    return all(a is b for a, b in zip(*map(_parts, (one, other)), strict=True))


def _is_equal(one, other):
    return np.array_equal(one, other, equal_nan=one.dtype.kind in "fc")
