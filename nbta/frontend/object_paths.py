"""Where objects are that a traced function changes, so that a later trace finds those of its own.

A block that is traced again makes the objects in it again. What was found of a loop in it is of
arrays, lists and objects of the trace before: each is noted by a variable of the loop's body and
the keys and attributes from there. What has no such path and is older than all blocks is there in
all traces.
"""

from __future__ import annotations

import types
from collections import deque

import numpy as np

from nbta.frontend import native
from nbta.frontend.array_wrappers import ArrayWrapper, cells_of, frames
from nbta.frontend.containers import own_attributes
from nbta.frontend.lists import Lost
from nbta.graph.graph import current, lies_in
from nbta.graph.operation import Tensor

#: Objects that are looked at for the path to one: about 1 us each, less than a trace of a loop.
LOOKED_AT = 5000
_CLOSED = (
    type, types.ModuleType, types.BuiltinFunctionType, types.MethodType, np.ndarray, np.generic,
    str, bytes, int, float, complex,
)  # fmt: skip


class ObjectPaths:
    """The paths from the variables of a function to what these hold.

    Parameters
    ----------
    function : callable
    """

    def __init__(self, function):
        self._function, self._found = function, None

    def reference(self, owner):
        """What a later trace finds an object by; None where it would not."""
        if self._found is None:
            self._found = self._all_paths()
        path = self._found.get(id(owner))
        return owner if path is None and _is_older_than_blocks(owner) else path

    def object(self, reference):
        """What stands at a reference now; None where nothing does."""
        if not isinstance(reference, _Path):
            return reference if _has_value_here(reference) else None
        found = self._function
        for step in reference:
            found = _part(found, step)
        return found if _has_value_here(found) else None

    def _all_paths(self):
        """The paths of objects and arrays, the shortest of each."""
        found, todo = {}, deque([(_Path(), self._function)])
        while todo and len(found) < LOOKED_AT:
            path, owner = todo.popleft()
            if id(owner) in found:
                continue
            found[id(owner)] = path
            todo.extend((_Path((*path, step)), part) for step, part in _parts(owner))
        return found


def is_path(reference) -> bool:
    """Whether a reference leads to the objects of any trace, not to one of its own."""
    return isinstance(reference, _Path)


class _Path(tuple):
    """Steps from a function to an object: a kind, and a name or a key."""

    __slots__ = ()


def _parts(owner):
    """The steps to what an object holds that may change, and that."""
    if isinstance(owner, ArrayWrapper):
        return [(("root", ""), owner.root)] if owner.root is not owner else []
    if isinstance(owner, types.FunctionType):
        cells = [(("cell", cell.name), cell.owner) for cell in cells_of(owner)]
        return cells if owner.__closure__ else []
    if isinstance(owner, types.CellType):
        found = [(("contents", ""), _contents(owner))]
    elif isinstance(owner, dict):
        found = [(("item", key), part) for key, part in dict.items(owner)]
    elif _is_read_by_python(owner):
        kind = list if isinstance(owner, list) else tuple
        found = [(("item", k), part) for k, part in enumerate(kind.__iter__(owner))]
    else:
        found = [
            (("attribute", name), part) for name, part in (own_attributes(owner) or {}).items()
        ]
    return [(step, part) for step, part in found if _is_open(part)]


def _is_open(value):
    if value is None or isinstance(value, _CLOSED):
        return False
    return isinstance(value, ArrayWrapper) or not isinstance(value, Tensor)


def _part(owner, step):
    """What a step leads to; None where there is nothing."""
    kind, name = step
    if kind == "root":
        return owner.root if isinstance(owner, ArrayWrapper) else None
    if kind == "cell":
        of_function = isinstance(owner, types.FunctionType)
        cells = cells_of(owner) if of_function else ()
        return next((cell.owner for cell in cells if cell.name == name), None)
    if kind == "contents":
        return _contents(owner) if isinstance(owner, types.CellType) else None
    if kind == "attribute":
        return (own_attributes(owner) or {}).get(name)
    if isinstance(owner, dict):
        return dict.get(owner, name)
    if not _is_read_by_python(owner) or type(name) is not int:
        return None
    kind = list if isinstance(owner, list) else tuple
    return kind.__getitem__(owner, name) if name < kind.__len__(owner) else None


def _is_read_by_python(owner):
    """Whether it is a list or a tuple whose items Python has; a list that is lost has none."""
    return (
        isinstance(owner, list | tuple) and not isinstance(owner, Lost) and native.is_python(owner)
    )


def _contents(cell):
    try:
        return cell.cell_contents
    except ValueError:
        return None


def _is_older_than_blocks(owner):
    """Whether an object was there before all blocks that are traced."""
    if isinstance(owner, ArrayWrapper):
        return type(owner) is ArrayWrapper and all(frame.is_before(owner) for frame in frames())
    return not any(frame.made(owner) for frame in frames())


def _has_value_here(found):
    """Whether it is an object, or an array that holds what has a value in what is traced."""
    if not isinstance(found, ArrayWrapper):
        return found is not None
    held = found.root._value
    return not isinstance(held, Tensor) or lies_in(current(), held.graph)
