"""Functions with converted code: made once for each code, with what is around the function now."""

from __future__ import annotations

import types
import weakref

import numpy as np

from nbta.frontend import source
from nbta.frontend.array_wrappers import ArrayWrapper
from nbta.frontend.jumps import PREFIX
from nbta.frontend.outside import reading
from nbta.frontend.records import as_records
from nbta.frontend.rewriting import converted_code
from nbta.graph.graph import current

#: Converted codes; None where there is no source.
_made = source.CodeTable()
#: What stands for a code that was not asked for.
_UNKNOWN = object()
#: Converted codes, which are not converted again.
_ours: weakref.WeakSet = weakref.WeakSet()


def converted(function):
    """A function whose control flow nbta can follow; None where its source is not to be found.

    Parameters
    ----------
    function : types.FunctionType

    Returns
    -------
    callable or None
    """
    if (outside := reading()) is not None:
        outside.enter(function)
    if function.__code__ in _ours:
        return function
    code = _code_of(function)
    if code is None:
        return None
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    cells[PREFIX] = types.CellType(_runtime_with(_unproven_of(cells)))
    closure = tuple(cells[each] for each in code.co_freevars)
    defaults = function.__defaults__ and tuple(map(_default, function.__defaults__))
    made = types.FunctionType(code, function.__globals__, function.__name__, defaults, closure)
    named = function.__kwdefaults__
    made.__kwdefaults__ = named and {key: _default(value) for key, value in named.items()}
    made.__qualname__, made.__module__ = function.__qualname__, function.__module__
    return made


def _code_of(function):
    code = function.__code__
    found = _made.get(code, _UNKNOWN)
    if found is _UNKNOWN:
        try:
            found = converted_code(function)
        except source.NoSourceError:
            found = None
        except RecursionError as error:
            raise source.too_deep(function) from error
        _made[code] = found
    if found is not None:
        _ours.add(found)
    return found


def _default(value):
    return outer(value, "a default value")


def outer(value, name=None):
    """A value from outside of a function: arrays, which it may not change, in wrappers."""
    if type(value) is not np.ndarray or not value.ndim:
        return value
    if value.dtype.names is not None:
        return as_records(value, name, outer)
    fixed = (
        f"{name or 'an array'} is from outside of the function, which may not change it: give it "
        f"as an argument, or change a copy, such as {name or 'a'}.copy()"
    )
    outside = reading()
    found = None if outside is None else outside.wrapper(value, name, fixed)
    return ArrayWrapper(value, name, fixed) if found is None else found


_RUNTIME: list[types.ModuleType] = []


class _Unproven:
    """What code calls of a function that reads variables of an enclosing one, which may have none.

    Parameters
    ----------
    flags : dict
        By the name of a variable a function that gives whether it has a value.
    """

    def __init__(self, flags):
        self._flags, self._runtime = flags, runtime()

    def __getattr__(self, name):
        return getattr(self._runtime, name)

    def cell(self, get, name):
        """A variable of the enclosing function, of which a run asks whether it is there."""
        value = self._runtime.cell(get, name)
        if name in self._flags:
            value = self._runtime.checked(value, self._flags[name](), name, NameError)
        return value


_CELLS = "variables that functions in their function see, and whether they have values"


def note_unproven(cell, has_value) -> None:
    """Note that a variable of a function may have no value where functions in it read it."""
    current().root.cache.setdefault(_CELLS, {})[id(cell)] = cell, has_value


def _runtime_with(flags):
    return _Unproven(flags) if flags else runtime()


def _unproven_of(cells):
    """Those of a function's cells that may have no value, and who says so."""
    graph = current()
    known = graph.root.cache.get(_CELLS, {}) if graph is not None else {}
    return {name: known[id(cell)][1] for name, cell in cells.items() if id(cell) in known}


def runtime():
    """The module that converted code calls, which is above this one."""
    return _RUNTIME[0]


def provide(module) -> None:
    """Say which module converted code calls."""
    _RUNTIME[:] = [module]
