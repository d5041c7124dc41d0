"""What a trace reads from outside of the function: guards of the trace, and inputs of its graph.

A traced function reads variables of modules and of functions around it, defaults, attributes, and
items of containers. Each such place is noted once, with what it held. Arrays become inputs of the
graph, which are fed as they are at each call. All else is a guard: numbers, strings and the like
are held by value, bit by bit; functions, classes and objects by identity; containers by the items
that were read, or by all of them where the trace saw the whole. One straight-line function of
Python's looks at all places (`Outside.looking`); where one differs the graph is not for this call.

Objects are held weakly, and containers are reached by the place that they were read from, so that
a trace keeps nothing alive that its function does not.
"""

from __future__ import annotations

import contextlib
import copy
import ctypes
import functools
import operator
import os
import sys
import types
import weakref
from array import array as array_of_python
from collections import OrderedDict, deque
from dataclasses import dataclass
from typing import Any

import numpy as np

from nbta.bitwise import same
from nbta.control.captured import names_of
from nbta.frontend.array_wrappers import ArrayWrapper
from nbta.frontend.source import trusted
from nbta.graph.graph import current
from nbta.graph.lengths import Look
from nbta.graph.operation import Spec, Tensor
from nbta.locations import LIBRARIES, OWN
from nbta.ops.core.filling import PLACEHOLDER, is_promised
from nbta.runtime.numba_private import Box as CompiledObject
from nbta.runtime.numba_private import Dispatcher
from nbta.shapes import Dim
from nbta.symbolic import SymbolicTensorArray

#: What is compared by value.
_VALUES = (
    bool, int, float, complex, str, bytes, slice, range, np.generic, np.dtype, type(None),
    type(Ellipsis), type(NotImplemented),
)  # fmt: skip
#: What is held by identity and by a strong reference, as it refers to no object of the user's.
_FIRM = (type, types.ModuleType, types.BuiltinFunctionType, np.ufunc)
#: Code, which seldom changes.
_CODE = (
    types.FunctionType, types.MethodType, types.MethodWrapperType, functools.partial, Dispatcher,
    functools._lru_cache_wrapper,
)  # fmt: skip
_SEQUENCES = (list, tuple, deque)
_MAPPINGS = (dict, types.MappingProxyType)
#: Views of dicts, which hold what these do.
_VIEWS = tuple(
    type(getattr(made(), view)())
    for made in (dict, OrderedDict)
    for view in ("keys", "values", "items")
)
#: Containers of which a guard makes a copy, and how.
_COPIED = (
    ((set, frozenset), frozenset),
    (array_of_python, lambda items: (items.typecode, items.tobytes())),
    (memoryview, lambda items: (items.format, items.shape, items.tobytes())),
    ((bytearray, ctypes.Array), bytes),
)
CONTAINERS = (
    *_SEQUENCES, *_MAPPINGS, *_VIEWS, set, frozenset, array_of_python, memoryview, bytearray,
    ctypes.Array,
)  # fmt: skip
#: Modules whose functions nobody replaces: a guard for each ``np.sin`` would tell nothing.
_STABLE = {"numpy", "scipy", "numba", "nbta", "math", "cmath", "operator", "functools", "itertools"}
#: Attributes of functions that hold what a call without all arguments gets.
_DEFAULTS = ("__defaults__", "__kwdefaults__")


#: Kinds of places whose owners lines give, so that a trace keeps none of them.
BY_TEXT = ("attribute", "member", "items", "item", "whole", "class")


class ArrayLook(Look):
    """The length of an axis of an array from outside; its leaf is the array's identity."""


@dataclass
class Read:
    """A place that was read: how to get there, and what it held."""

    text: str
    label: str
    number: int


class _Array:
    """An array from outside.

    Attributes
    ----------
    array : np.ndarray
    read : Read
    tensor : Tensor or None
        Its placeholder, once the trace computes with it.
    wrapper : ArrayWrapper or None
    fixed : np.ndarray or None
        What it held, where the trace goes by its values.
    promised : bool
        Whether the user says that nobody changes it.
    """

    def __init__(self, array, read, promised=False):
        self.array, self.read, self.promised = array, read, promised
        self.tensor = self.fixed = self.wrapper = None

    @property
    def is_used(self):
        """Whether anything is computed from its placeholder."""
        if self.tensor is None:
            return False
        inside = current() is not self.tensor.graph
        used = (each for op in self.tensor.graph.operations for each in op.inputs)
        return inside or any(each is self.tensor for each in used)

    @property
    def is_constant(self):
        """Whether the trace goes by its values."""
        return self.promised or self.fixed is not None


class Outside:
    """What one trace reads from outside.

    Parameters
    ----------
    arguments : dict
        By the identity of an array that is an argument: its number among the inputs, and the
        placeholder.
    fixed : callable
        Of an array: whether the trace goes by its values, as Python needs them.
    exact : set
        Identities of arrays whose lengths Python needs.
    """

    def __init__(self, arguments=None, fixed=None, exact=()):
        self._arguments, self._fixed, self._exact = arguments or {}, fixed, exact
        self._wrappers: dict[Any, Any] = {}  # of arguments, by their placeholders
        self._lines: list[str] = []
        self._labels: list[str] = []
        self._expected: list[Any] = []
        self._names: dict[str, Any] = {}
        self._held: list[Any] = []  # so that identities stay
        self._objects: dict[int, str] = {}  # by identity: the name in the lines
        self._cells: dict[int, str] = {}
        self._seen: set[Any] = set()
        #: What places held that the trace changed by what they held, such as by ``n += 1``: a guard
        #: only where the trace goes by it afterwards, as a counter of calls is none of a result.
        self._before: dict[Any, Any] = {}
        self._arrays: dict[int, _Array] = {}
        self._made: set[int] = set()
        self._inner: set[Any] = set()  # identities of codes of functions that others make
        self._recordings: list[list[str]] = []  # what `recording` gives
        self.hidden = False
        #: What holds all places that lines look at, as pairs of a kind and an object: dicts, cells
        #: as a function and a number, and functions with their code or defaults, by weak
        #: references; attributes of an object (by the text that gives it, and the name), members of
        #: a class, items of a dict or a tuple, all of a list or a dict, and the class of an object
        #: (by the text), and an item of a list (by the text, and the number); None where others
        #: hold some.
        self.places: list[tuple[str, Any]] | None = []
        self._holder: tuple[str, Any] | None = None
        self._cell_places: dict[int, tuple[Any, int]] = {}
        #: By the address of the fields of a compiled object: what stands for it.
        self.placeholders: dict[int, Any] = {}

    # What was read.

    def read_global(self, names, name, value, changes=False) -> None:
        """Note a variable of a module, or a name of Python's own that the module does not have."""
        around = self._constant(names)
        with self._held_by("dict", names):
            if name in names:
                self._record(name, value)
                place = (id(names), "global", name), f"{around}[{name!r}]", value, name
                self._note_before(*place) if changes else self._note(*place)
            elif (key := (id(names), "global", name)) not in self._seen:
                self._seen.add(key)
                self._check(f"{name!r} in {around}", name)

    def read_cell(self, cell, name, value, changes=False) -> None:
        """Note a variable of a function around one from outside."""
        if id(cell) in self._cells:
            self._record(name, value)
            place = (id(cell), "cell"), self._cells[id(cell)], value, name
            with self._held_by("cell", self._cell_places[id(cell)]):
                self._note_before(*place) if changes else self._note(*place)

    def read_attribute(self, owner, name, value, changes=False) -> None:
        """Note an attribute of an object from outside; whether by ``+=`` and its like."""
        text = self._objects.get(id(owner))
        if text is None and self._is_outer(owner):
            text = self.root(owner)
        if id(owner) not in self._objects:
            self._read_of_class(owner, name)
            return
        if not name.isidentifier():
            return
        if isinstance(owner, types.ModuleType) and _is_stable(owner):
            return
        label = f"{_name_of(owner)}.{name}"
        self._record(label, value)
        if isinstance(owner, types.ModuleType) and vars(owner).get(name, self) is value:
            with self._held_by("dict", vars(owner)):
                self._read_attribute(owner, name, value, changes, text, label)
        else:
            with self._held_by("attribute", (text, name)):
                self._read_attribute(owner, name, value, changes, text, label)

    def _read_attribute(self, owner, name, value, changes, text, label):
        key = id(owner), "attribute", name
        if isinstance(value, types.MethodType):
            self._note(key, f"{text}.{name}.__func__", value.__func__, label)
            if value.__self__ is not owner:
                self._note((*key, "self"), f"{text}.{name}.__self__", value.__self__, label)
        elif changes:
            self._note_before(key, f"{text}.{name}", value, label)
        elif not isinstance(value, types.BuiltinMethodType | types.MethodWrapperType):
            fresh = functools.partial(getattr, owner, name)
            self._note(key, f"{text}.{name}", value, label, again=fresh)

    def _is_outer(self, owner):
        """Whether what the trace did not read from another place is a user's class or module.

        A method has its class without reading it, and ``sys.modules`` gives modules.
        """
        if isinstance(owner, types.ModuleType):
            return not _is_stable(owner)
        return isinstance(owner, type) and not self.has_made(owner) and not _is_of_library(owner)

    def _read_of_class(self, owner, name):
        """Note what an object that the trace made has from its class, which is from outside."""
        if isinstance(owner, super):
            kinds = owner.__self_class__.__mro__
            kinds = kinds[kinds.index(owner.__thisclass__) + 1 :]
        elif isinstance(owner, Tensor | type | types.ModuleType):
            return
        else:
            kinds = type(owner).__mro__
            if name in getattr(owner, "__dict__", ()) or _is_of_library(kinds[0]):
                return
        base = next((kind for kind in kinds if name in vars(kind)), None)
        if base is not None:
            self.read_member(base, name)

    def read_member(self, kind, name) -> None:
        """Note what a user's class, or one that it inherits from, has under a name."""
        base = next((base for base in kind.__mro__ if name in vars(base)), None)
        if base is None or _is_of_library(base) or self.has_made(base) or self.has_made(kind):
            return
        value = vars(base)[name]
        text = f"{self.root(kind)}.{name}"
        if getattr(kind, name, None) is not value:  # a descriptor
            text = f"{self.root(base)}.__dict__[{name!r}]"
        if not isinstance(value, types.MemberDescriptorType | types.GetSetDescriptorType):
            with self._held_by("member", self.root(kind)):
                self._note((id(kind), "member", name), text, value, f"{kind.__name__}.{name}")

    def read_class(self, value) -> None:
        """Note of which class an object from outside is, which may be given another one."""
        text = self._objects.get(id(value))
        kind = type(value)
        if text is not None and not issubclass(kind, type) and not _is_of_library(kind):
            place = (id(value), "class"), f"type({text})", kind, f"the class of a {kind.__name__}"
            with self._held_by("class", text):
                self._note(*place)

    def read_call(self, owner, call, value) -> None:
        """Note what a call gives that only looks something up; ``call`` stands after the owner."""
        text = f"{self.root(owner)}{call}"
        self._note((id(owner), "call", call), text, value, f"{type(owner).__name__}{call}")

    def read_result(self, function, args, kwargs, value) -> None:
        """Note what a function gives that has a cache, which each call asks for it."""
        text = self._call_of(function, args, kwargs)
        self._note((id(function), "result", text), text, value, self._label_of(function))

    def read_error(self, function, args, kwargs, error) -> None:
        """Note that a function raises an error for some arguments."""
        called = "lambda: " + self._call_of(function, args, kwargs)
        kind = self._constant(type(error))
        self._check(f"not raises({kind}, {called})", self._label_of(function))

    def _label_of(self, function):
        return f"what {getattr(function, '__qualname__', 'a function')} gives"

    def _call_of(self, function, args, kwargs):
        """A call in the lines."""
        given = [self._argument(value) for value in args]
        given += [f"{name}={self._argument(value)}" for name, value in kwargs.items()]
        return f"{self.root(function)}({', '.join(given)})"

    def _argument(self, value):
        if type(value) in (int, str, bool, type(None)):
            return repr(value)
        return self._objects.get(id(value)) or self._constant(value)

    @contextlib.contextmanager
    def recording(self):
        """Labels of what a trace reads in a context that may change, other than functions."""
        self._recordings.append([])
        try:
            yield self._recordings[-1]
        finally:
            self._recordings.pop()

    def _record(self, label, value):
        if not isinstance(value, (*_FIRM, *_CODE)):
            for labels in self._recordings:
                labels.append(label)

    def read_missing(self, owner, name) -> None:
        """Note that an object from outside does not have an attribute, but by ``__getattr__``."""
        text = self._objects.get(id(owner))
        key = id(owner), "missing", name
        if text is not None and key not in self._seen and hasattr(owner, "__dict__"):
            self._seen.add(key)
            self._check(f"{name!r} in {text}.__dict__", f"{type(owner).__name__}.{name}")

    def read_whether(self, owner, name, found) -> None:
        """Note whether an object from outside has an attribute."""
        text = self._objects.get(id(owner))
        key = id(owner), "whether", name
        if text is not None and key not in self._seen:
            self._seen.add(key)
            self._check(f"hasattr({text}, {name!r}) is not {bool(found)}", f"hasattr {name}")

    def read_lacking(self, owner, key) -> None:
        """Note that a dict from outside does not have a key."""
        text = self._objects.get(id(owner))
        place = id(owner), "lacking", key
        if text is not None and place not in self._seen:
            self._seen.add(place)
            self._check(f"{self._constant(key)} in {text}", f"{type(owner).__name__}[{key!r}]")

    def read_item(self, owner, key, value) -> None:
        """Note an item of a container from outside."""
        text = self._objects.get(id(owner))
        if text is None and (owner is os.environ or _is_of_module(owner)):
            text = self.root(owner)
        if text is None or (id(owner), "whole") in self._seen:
            return None
        if isinstance(key, slice):
            return self.whole(owner)
        try:
            shown = repr(key) if type(key) in (int, str) else self._constant(key)
            place = (id(owner), "item", key)
            label = f"{type(owner).__name__}[{key!r}]"
            again = functools.partial(operator.getitem, owner, key)
            with self._holding_item(owner, key, text):
                self._note(place, f"{text}[{shown}]", value, label, again=again)
        except TypeError:  # no hash
            self.whole(owner)
        return None

    def _holding_item(self, owner, key, text):
        if type(owner) is dict or isinstance(owner, tuple):
            return self._held_by("items", text)
        is_place = type(owner) is list and type(key) is int
        return self._held_by("item", (text, key)) if is_place else contextlib.nullcontext()

    def whole(self, value, deep=True) -> None:
        """Note all that a container from outside holds."""
        text = self._objects.get(id(value))
        if text is None or not isinstance(value, CONTAINERS):
            return
        key = id(value), "whole"
        if key not in self._before and (key in self._seen or id(value) in self._made):
            return
        self._seen.add(key)
        kind = "items" if isinstance(value, tuple) else "whole"
        with self._held_by(kind, text):
            self._note_whole(key, value, text, deep)

    def _note_whole(self, key, value, text, deep):
        value, owner = self._before.pop(key, value), value
        label = f"a {type(value).__name__}"
        if isinstance(value, _VIEWS):
            mapping = f"{text}.mapping"
            self._note((id(owner), "mapping"), mapping, value.mapping, label, whole=True)
        elif (copied := _copying(value)) is not None:
            number = self._expect(copied(value))
            self._check(f"differs({number}, {self._constant(copied)}({text}))", label)
        elif isinstance(value, _MAPPINGS):
            self._all_of(f"{text}", text, list(value), label)
            self._parts(text, f"{text}.values()", owner, value.items(), label, deep)
        else:
            if not isinstance(value, tuple):
                self._check(f"len({text}) != {len(value)}", label)
            self._parts(text, text, owner, enumerate(value), label, deep)

    def _parts(self, text, items, owner, pairs, label, deep):
        pairs = list(pairs)
        if all(_is_value(part) for _, part in pairs):
            if not isinstance(owner, tuple):  # of which the place itself is a guard
                self._all_of(items, text, [part for _, part in pairs], label)
            return
        for key, part in pairs:
            shown = repr(key) if type(key) in (int, str) else self._constant(key)
            place = id(owner), "item", key
            self._note(place, f"{text}[{shown}]", part, f"{label}'s [{key!r}]", whole=deep)

    def _all_of(self, items, text, held, label):
        """A guard of many values at once."""
        number = self._expect(held)
        self._check(f"len({text}) != {len(held)} or not all(map(is_, {items}, k{number})) "
                    f"and differ({number}, {items})", label)  # fmt: skip

    def native(self, value, depth=8, fix=True) -> None:
        """Note all that code sees that nbta cannot look into.

        ``fix`` says that it sees items of arrays, too.
        """
        if depth and isinstance(value, CONTAINERS) and getattr(value, "array", None) is None:
            self.whole(value)
            if isinstance(value, (*_SEQUENCES, *_MAPPINGS, set, frozenset)):
                for part in value.values() if isinstance(value, _MAPPINGS) else value:
                    self.native(part, depth - 1, fix)
        elif fix and (found := self._arrays.get(id(value))) is not None:
            self._fix(found)
        if depth:
            for function in _functions_of(value):
                self._may_run(function, fix)
        if depth and self.holds(value) and not isinstance(value, (*_FIRM, types.FunctionType)):
            self.parts(value, depth - 1, fix)

    def _may_run(self, function, fix):
        """Note what a function reads by names that is called by code nbta cannot look into."""
        key = id(function), "may run"
        if key in self._seen or function.__code__.co_filename.startswith(OWN):
            return
        self._seen.add(key)
        if not _is_of_others(function):
            self.around(function, names_of(function.__code__)[0], fix)
            return
        for cell in function.__closure__ or ():
            with contextlib.suppress(ValueError):  # no value yet
                self.native(cell.cell_contents, fix=fix)

    def parts(self, value, depth=0, fix=False) -> None:
        """Note all attributes of an object from outside, and what these hold."""
        parts = getattr(value, "__dict__", None)
        if isinstance(parts, dict):
            text, label = f"{self._objects[id(value)]}.__dict__", type(value).__name__
            self._note((id(value), "parts"), text, parts, f"attributes of {label}")
            self.whole(parts, deep=False)
            self.native(parts, depth, fix)
        names = _slots(type(value))
        if isinstance(value, CompiledObject):
            names = value._numba_type_.struct
        for name in names:
            if hasattr(value, name):
                part = getattr(value, name)
                self.read_attribute(value, name, part)
                self.native(part, depth, fix)
            else:
                self.read_whether(value, name, False)

    def seen_by(self, value, *methods, followed=True) -> None:
        """Note all that special methods see of an object from outside.

        ``followed`` says that those of users are.
        """
        if not self.holds(value):
            return
        if isinstance(value, CONTAINERS):
            self.whole(value)
        for method in methods:
            function = getattr(type(value), method, None)
            if isinstance(function, types.FunctionType) and (
                not followed or _is_of_others(function)
            ):
                self.native(value)

    def enter(self, function) -> None:
        """Note that a function from outside runs: its cells are from outside, and its defaults."""
        code = function.__code__
        if self.is_inner(function) or code.co_filename.startswith(OWN):  # or reads nothing itself
            return
        key = id(function), "entered"
        if key in self._seen:
            return
        self._seen.add(key)
        cells = function.__closure__ or ()
        given = [name for name in _DEFAULTS if getattr(function, name)]
        text = self.root(function)
        # Notebooks give functions that were edited their new code.
        home = weakref.ref(function)  # not the function, which the graph must not keep
        with self._held_by("__code__", home):
            changed = f"{text}.__code__ is not {self._constant(code)}"
            self._check(changed, f"{function.__name__}'s code")
        around = f"v{len(self._lines)}"
        if cells:
            self._lines.append(f"{around} = {text}.__closure__")
        for number, cell in enumerate(cells):
            self._held.append(cell)
            self._cells.setdefault(id(cell), f"{around}[{number}].cell_contents")
            self._cell_places.setdefault(id(cell), (home, number))
        for name in given:
            parts, label = getattr(function, name), f"a default of {function.__name__}"
            with self._held_by(name, home):
                self._note((id(function), name), f"{text}.{name}", parts, label, whole=True)

    def is_inner(self, function) -> bool:
        """Whether the trace made a function, from code in that of another one."""
        code = getattr(function, "__code__", None)
        return bool(trusted.get(code)) or id(code) in self._inner

    def around(self, function, names, fix=True) -> None:
        """Note what a function that is not converted, and those in it, read by names.

        ``fix`` says that arrays are read, too, and are not replaced by tensors.
        """
        if function.__code__.co_filename.startswith(OWN):
            return
        self.enter(function)
        self._held.append(function)
        self._inner.update(map(id, _codes_in(function.__code__)))
        cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
        for name in sorted(names):
            if name in function.__globals__:
                value = function.__globals__[name]
                self.read_global(function.__globals__, name, value)
                self._see(value, fix)
        for name, cell in cells:
            with contextlib.suppress(ValueError):  # no value yet
                self.read_cell(cell, name, cell.cell_contents)
                self._see(cell.cell_contents, fix)

    def _see(self, value, fix):
        if fix or not isinstance(value, np.ndarray):
            self.native(value)

    def root(self, value) -> str:
        """The name of an object that was not read from another one."""
        if id(value) not in self._objects and id(value) not in self._made:
            name = self._constant(value, weak=not isinstance(value, _FIRM))
            if name.endswith(")"):
                line = f"v{len(self._lines)}"
                self._lines.append(f"{line} = {name}")
                name = line
            self._objects[id(value)] = name
        return self._objects.get(id(value), "None")

    def given(self, value) -> None:
        """Note what a function is that is traced, or an argument that is no array."""
        if isinstance(value, functools.partial):
            text = self.root(value)
            for name in ("args", "keywords"):
                parts = getattr(value, name)
                self._note((id(value), name), f"{text}.{name}", parts, "partial", whole=True)
            self.given(value.func)
        elif isinstance(value, types.MethodType):
            self.given(value.__self__)
        elif isinstance(value, Dispatcher):
            self.given(value.py_func)
        elif isinstance(value, types.FunctionType):
            self.enter(value)
        elif not isinstance(value, (*_VALUES, *_FIRM, np.ndarray, Tensor)):
            self.root(value)

    # What the trace changes itself.

    def wrote(self, key, owner) -> None:
        """Note that the trace gives a place something else, which is not from outside."""
        if key[1] == "whole" and key not in self._seen and id(owner) in self._objects:
            self._before[key] = copy.copy(owner)
        self._seen.add(key)

    def makes(self, value) -> None:
        """Note an object that the trace made."""
        if id(value) not in self._objects:
            self._made.add(id(value))
            self._held.append(value)

    def has_made(self, value) -> bool:
        """Whether the trace made an object."""
        return id(value) in self._made

    def holds(self, value) -> bool:
        """Whether an object is from outside of the function."""
        return id(value) in self._objects

    # Notes.

    def _constant(self, value, weak=False):
        """A name for an object in the lines."""
        name = f"c{len(self._names)}"
        self._held.append(value)
        if weak:
            try:
                self._names[name] = weakref.ref(value)
            except TypeError:
                pass
            else:
                return f"{name}()"
        else:
            known = self._seen_constants.get(id(value))
            if known is not None:
                return known
            self._seen_constants[id(value)] = name
        self._names[name] = value
        return name

    @functools.cached_property
    def _seen_constants(self):
        return {}

    def _expect(self, value):
        self._expected.append(value)
        return len(self._expected) - 1

    @contextlib.contextmanager
    def _held_by(self, kind, owner):
        """What is noted in the context is held by an object, as that is now."""
        before, self._holder = self._holder, (kind, owner)
        try:
            yield
        finally:
            self._holder = before

    def _keep_place(self):
        """Say what holds a place that lines look at."""
        if self._holder is None:
            self.places = None
        elif self.places is not None and not any(map(self._is_holder, self.places)):
            self.places.append(self._holder)

    def _is_holder(self, place):
        (kind, owner), (held_by, holder) = place, self._holder
        return kind == held_by and (owner == holder if kind in BY_TEXT else owner is holder)

    def _check(self, condition, label):
        self._keep_place()
        self._lines.append(f"if {condition}: return miss({len(self._labels)})")
        self._labels.append(label)

    def _note_before(self, key, text, value, label):
        """Note what a place holds that changes by what it holds."""
        if key not in self._seen:
            self._held.append(value)
            self._before[key] = text, value, label
            self._seen.add(key)

    def _note(self, key, text, value, label, whole=False, again=None):
        """Note a place; ``again`` reads it once more."""
        if key in self._before:
            text, value, label = self._before.pop(key)
        elif key in self._seen:
            return
        self._seen.add(key)
        if isinstance(value, Tensor | SymbolicTensorArray) or id(value) in self._made:
            return  # what the trace has put there
        self._held.append(value)
        if isinstance(value, _VALUES):
            self._note_value(text, value, label)
            return
        known = self._objects.get(id(value))
        if known is not None and not isinstance(value, np.ndarray):
            if not isinstance(value, CONTAINERS) or not isinstance(value, tuple):
                self._check(f"{text} is not {known}", label)
            return
        name = f"v{len(self._lines)}"
        if isinstance(value, np.ndarray):
            self._note_array(name, text, value, label)
        elif isinstance(value, CONTAINERS):
            self._note_container(name, text, value, label, whole)
        elif _is_open(value) or (again is not None and again() is not value):
            # The latter is such as a column of a table, which is made when it is asked for.
            self._lines.append(f"{name} = {text}")
            self._check(f"type({name}) is not {self._constant(type(value))}", label)
            self._objects[id(value)] = name
        else:
            self._note_object(name, text, value, label)

    def _note_value(self, text, value, label):
        number, name = self._expect(value), "v"
        if not _is_value(value):
            name = f"v{len(self._lines)}"
            self._objects[id(value)] = name
        self._check(f"({name} := {text}) is not k{number} and differs({number}, {name})", label)

    def _note_object(self, name, text, value, label):
        held = value
        if not isinstance(value, _FIRM):
            try:
                held = weakref.ref(value)
            except TypeError:
                held = value
        number = self._expect(held)
        call = "()" if held is not value else ""
        self._lines.append(f"{name} = {text}")
        self._check(f"{name} is not k{number}{call}", label)
        self._objects[id(value)] = name
        if isinstance(value, functools.partial | types.MethodType | Dispatcher):
            self.given(value)

    def _note_container(self, name, text, value, label, whole):
        self._lines.append(f"{name} = {text}")
        kind = self._constant(type(value))
        if isinstance(value, tuple):
            number = self._expect(value if _is_plain(value) else None)
            if _is_plain(value):
                self._check(f"{name} is not k{number} and differs({number}, {name})", label)
            else:
                self._check(f"type({name}) is not {kind} or len({name}) != {len(value)}", label)
        else:
            self._check(f"type({name}) is not {kind}", label)
        self._objects[id(value)] = name
        if whole or isinstance(value, tuple):
            self.whole(value)

    def _note_array(self, name, text, value, label):
        self._lines.append(f"{name} = {text}")
        if id(value) in self._arrays:  # the same array in another place
            first = self._arrays[id(value)].read.text
            self._check(f"{name} is not {first}", label)
            return
        self._keep_place()
        read = Read(name, label, len(self._lines))
        self._lines.append("")  # which is filled in where the trace is over
        self._objects[id(value)] = name
        found = self._arrays[id(value)] = _Array(value, read, is_promised(value))
        plain = type(value) is np.ndarray and value.ndim and not value.dtype.names
        if not plain or value.dtype.kind not in "biufcV":
            self._fix(found)

    def _fix(self, found):
        if found.fixed is not None:
            return
        array = found.array
        found.fixed = np.array(array)
        for place, part in enumerate(array.flat if array.dtype.hasobject else ()):
            key, text = (id(array), "item", place), f"{found.read.text}.flat[{place}]"
            self._note(key, text, part, f"an item of {found.read.label}", whole=True)

    # Arrays.

    def tensor(self, array):
        """The placeholder of an array; None for one that is no input."""
        found = self._arrays.get(id(array))
        if found is None:
            return None
        if found.tensor is None:
            if not found.is_constant and self._fixed is not None and self._fixed(array):
                self._fix(found)
            if found.is_constant:
                return None
            found.tensor = self._placeholder(array, found.read.label)
            self.hidden = True
        return found.tensor

    def _placeholder(self, array, label):
        root = current().root
        exact = not array.size or id(array) in self._exact
        shape = tuple(
            n if exact or n == 1 else root.lengths.dimension(id(array), axis, n, Dim(), ArrayLook)
            for axis, n in enumerate(array.shape)
        )
        attrs = {"spec": Spec(array.dtype, shape), "label": label}
        with root.as_default(), root.control_dependencies(None):
            return root.create(PLACEHOLDER, [], attrs, name="outside").outputs[0]

    def wrapper(self, array, name, fixed):
        """The array as converted code sees it; None for one that was not read from outside."""
        found = self._arrays.get(id(array))
        if found is None:
            return None
        tensor = self.tensor(array)
        if found.wrapper is None:
            found.wrapper = ArrayWrapper(array if tensor is None else tensor, name, fixed)
        return found.wrapper

    def stands_for(self, placeholder, wrapper) -> None:
        """Say which wrapper an argument is in."""
        self._wrappers[placeholder] = wrapper

    def is_same(self, one, other) -> bool:
        """Whether one of two wrappers is an argument's, and the other that of the same array."""
        for wrapper, mate in ((one, other), (other, one)):
            found = self._of_wrapper(wrapper)
            argument = None if found is None else self._arguments.get(id(found.array))
            if argument is not None and self._wrappers.get(argument[1]) is mate:
                return True
        return False

    def array_of(self, tensor):
        """The array that a placeholder stands for; None for other tensors."""
        return next((a.array for a in self._arrays.values() if a.tensor is tensor), None)

    def promised(self, value):
        """An array that nobody will change, as its user says; other values as they are."""
        found = (
            self._of_wrapper(value)
            if isinstance(value, ArrayWrapper)
            else self._arrays.get(id(value))
        )
        if found is None or id(found.array) in self._arguments:
            return value
        if not found.is_used:
            found.tensor, found.promised = None, True
        return np.array(found.array)

    def as_it_is(self, value):
        """An array that NumPy itself is asked about, whose values the trace goes by; others."""
        found = (
            self._of_wrapper(value)
            if isinstance(value, ArrayWrapper)
            else self._arrays.get(id(value))
        )
        if found is None:
            return value
        self._fix(found)
        return found.array

    def _of_wrapper(self, wrapper):
        return next((each for each in self._arrays.values() if each.wrapper is wrapper), None)

    @property
    def inputs(self) -> list:
        """The placeholders of arrays, in the order in which these were read."""
        return [a.tensor for a in self._arrays.values() if a.tensor is not None]

    # Looking again.

    def looking(self, arguments):
        """What looks at all places again, for arguments of some specs."""
        for found in self._arrays.values():
            lines = self._array_lines(found, arguments)
            self._lines[found.read.number] = "\n    ".join(lines)
        return Looking(self, [each for each in self._arrays.values() if each.tensor is not None])

    def _array_lines(self, found, arguments):
        """What looks at an array again."""
        name, array, label = found.read.text, found.array, len(self._labels)
        self._labels.append(found.read.label)
        if not found.promised and (found.tensor is None or found.fixed is not None):
            self.places = None
        miss = f"return miss({label})"
        large, lines = array.nbytes > _SMALL, []
        number = self._expect(weakref.ref(array) if large else array)
        is_other = f"{name} is not k{number}{'()' if large else ''}"
        if found.promised:
            return [f"if {is_other}: {miss}"]
        if found.fixed is not None:
            fixed = self._expect(found.fixed)
            kind = self._constant(type(array))
            lines = [f"if type({name}) is not {kind} or changed({name}, k{fixed}): {miss}"]
        if found.tensor is None:
            return lines or [f"if type({name}) is not ndarray: {miss}"]
        # Arrays may be given another dtype in place; what launches looks at their shapes.
        dtype = self._constant(found.tensor.spec.dtype)
        lines += [
            f"if {is_other} or {name}.dtype is not {dtype}:",
            f"    {name} = fitting({name}, {self._constant(found.tensor.spec)})",
            f"    if {name} is None: {miss}",
            f"    refresh({number}, {'ref' if large else 'small'}({name}))",
        ]
        if (argument := self._arguments.get(id(array))) is not None:
            return [*lines, f"if {name} is not given[{argument[0]}]: {miss}"]
        alike = [
            f"{name} is given[{k}]"
            for k, spec in enumerate(arguments)
            if spec.dtype == array.dtype and len(spec.shape) == array.ndim
        ]
        return [*lines, *([f"if {' or '.join(alike)}: {miss}"] if alike else [])]


class Looking:
    """Looks at what a trace read from outside.

    Attributes
    ----------
    at_launch : callable
        The same as `now` for who refuses arrays of ranks and lengths that the trace is not for.
    missed : str
        What differed last.
    arrays : tuple of np.ndarray, or None
        Those from outside, as they were at the trace, until that is over.
    is_empty : bool
        Whether nothing was read.
    places : list of (str, object), or None
        What holds all that was read; see `Outside`.
    """

    def __init__(self, outside, hidden):
        self.places = outside.places
        self._owners = None
        labels, expected = outside._labels, outside._expected
        self.missed, self.arrays = "", tuple(each.array for each in hidden)
        self._specs = [(each.tensor.spec, each.read.label) for each in hidden]
        lines = outside._lines
        picked = "".join(f"{each.read.text}, " for each in hidden)
        body = "".join(f"    {line}\n" for line in lines if line)
        # As defaults they are variables of the function's own, which are quickest to read.
        fast = {**outside._names, **{f"k{n}": value for n, value in enumerate(expected)}}
        self.source = f"def f({', '.join(['given', *fast])}):\n{body}    return ({picked})\n"
        start = len(outside._names)

        def miss(number):
            self.missed = labels[number]

        def refresh(number, value):
            values = list(look.__defaults__)
            values[start + number] = value
            look.__defaults__ = tuple(values)

        def differs(number, value):
            if not same(look.__defaults__[start + number], value):
                return True
            refresh(number, value)
            return False

        def differ(number, values):
            held, values = look.__defaults__[start + number], list(values)
            if len(held) != len(values) or not all(map(same, held, values)):
                return True
            refresh(number, values)
            return False

        names = {
            "miss": miss, "refresh": refresh, "differs": differs, "differ": differ,
            "is_": operator.is_, "changed": _is_changed, "fitting": _fitting, "ref": weakref.ref,
            "ndarray": np.ndarray, "small": _small, "raises": _raises,
        }  # fmt: skip
        self.is_empty = not any(lines)
        exec(compile(self.source, "<what a trace reads from outside>", "exec"), names)
        self._look = look = names["f"]
        look.__defaults__ = tuple(fast.values())
        self._names = names

    def owners(self, given):
        """What holds the places now whose owners lines give, in their order; see `Outside`.

        Parameters
        ----------
        given : sequence of np.ndarray
            As for `now`.

        Returns
        -------
        tuple or None
            None where the trace is for others.
        """
        if self._owners is None:
            places = [place for place in self.places if place[0] in BY_TEXT]
            texts = [text if isinstance(text, str) else text[0] for _, text in places]
            lines, _, _ = self.source.rpartition("    return (")
            source = f"{lines}    return ({''.join(f'{text}, ' for text in texts)})\n"
            exec(compile(source, "<what holds what a trace reads>", "exec"), self._names)
            self._owners = self._names["f"]
        self._owners.__defaults__ = self._look.__defaults__
        try:
            return self._owners(given)
        except Exception:  # as in `at_launch`
            return None

    def at_launch(self, given):
        """See the class."""
        try:
            return self._look(given)
        except Exception as error:  # a place that is there no more
            self.missed = f"{type(error).__name__}: {error}"
            return None

    def now(self, given):
        """The arrays from outside that are inputs; None where the trace is for others.

        Parameters
        ----------
        given : sequence of np.ndarray
            The arrays among the arguments.
        """
        arrays = self.at_launch(given)
        for array, (spec, label) in zip(arrays or (), self._specs, strict=False):
            if _fitting(array, spec) is None:  # it has been given another shape in place
                self.missed = label
                return None
        return arrays


def _copying(value):
    """What gives all that a container holds, where a guard compares that at once; else None."""
    return next((made for kinds, made in _COPIED if isinstance(value, kinds)), None)


def _fitting(array, spec):
    """An array from outside where it fits a placeholder, else None."""
    if type(array) is not np.ndarray or array.ndim != len(spec.shape):
        return None
    if array.dtype != spec.dtype:
        return None
    exact = all(type(n) is int for n in spec.shape)
    for n, m in zip(array.shape, spec.shape, strict=True):
        if n != m if type(m) is int else n == 1:
            return None
    if not array.size and not exact:
        return None
    return array if array.dtype is spec.dtype else array.view(spec.dtype)


#: Bytes of arrays that a trace may keep alive, which is quicker to compare than a weak reference
#: (by 25 ns), and that are compared as strings.
_SMALL = 1 << 14


def _small(array):
    """An array where it is small; of others a trace does not keep one."""
    return array if array.nbytes <= _SMALL else None


def _is_changed(array, held):
    """Whether an array is another one than was held, bit by bit."""
    if not isinstance(array, np.ndarray) or array.dtype != held.dtype or array.shape != held.shape:
        return True
    if array.dtype.hasobject:
        return any(a is not b for a, b in zip(array.flat, held.flat, strict=True))
    if held.nbytes <= _SMALL or not array.flags.c_contiguous:
        return array.tobytes() != held.tobytes()
    return not np.array_equal(array.reshape(-1).view(np.uint8), held.reshape(-1).view(np.uint8))


def _raises(kind, call):
    """Whether a call raises an error of a class."""
    try:
        call()
    except kind:
        return True
    return False


def _is_open(value):
    """Whether an object of which there are no weak references has what matters as attributes."""
    kind = type(value)
    own = kind is types.SimpleNamespace or hasattr(kind, "__slots__")
    return own and not kind.__weakrefoffset__


def _slots(kind):
    """Attributes that objects of a class have by ``__slots__``, as they are called in there."""
    slots = (vars(base) for base in kind.__mro__ if "__slots__" in vars(base))
    return [
        name for names in slots for name, slot in names.items()
        if isinstance(slot, types.MemberDescriptorType)
    ]  # fmt: skip


def _functions_of(value):
    """Functions that run where somebody calls a value, or asks something of it."""
    if isinstance(value, functools.partial):
        return [each for part in (value.func, *value.args) for each in _functions_of(part)]
    if isinstance(value, types.MethodType):
        return [*_functions_of(value.__func__), *_functions_of(value.__self__)]
    if isinstance(value, functools._lru_cache_wrapper | staticmethod | classmethod):
        return _functions_of(value.__wrapped__)
    if isinstance(value, types.FunctionType):
        return [value]
    kind = value if isinstance(value, type) else type(value)
    if _is_of_library(kind):
        return []
    members = [each for base in kind.__mro__ if not _is_of_library(base) for each in _members(base)]
    return [each for each in members if isinstance(each, types.FunctionType)]


def _members(kind):
    """Functions and the like that a class has."""
    for member in vars(kind).values():
        yield from (
            (member.fget, member.fset)
            if isinstance(member, property)
            else (getattr(member, "__wrapped__", member),)
        )


def _is_of_others(function):
    """Whether a function is of a package, or Python's own, and not nbta's."""
    file = function.__code__.co_filename
    return file.startswith(LIBRARIES) and not file.startswith(OWN)


def _codes_in(code):
    """Codes of the functions in a function."""
    for part in code.co_consts:
        if isinstance(part, types.CodeType):
            yield part
            yield from _codes_in(part)


def _is_plain(value):
    return all(_is_value(part) or (type(part) is tuple and _is_plain(part)) for part in value)


def _is_value(part):
    """Whether a value is compared as such, and has no attributes besides."""
    return isinstance(part, _VALUES) and not hasattr(part, "__dict__")


@functools.lru_cache(maxsize=4096)
def _is_stable_name(name, file):
    if name.partition(".")[0] in _STABLE or name in sys.builtin_module_names:
        return True
    return file is not None and file.startswith(LIBRARIES)


def _name_of(owner):
    """The name of a function, a class or a module; of other objects that of their class."""
    if isinstance(owner, type | types.ModuleType | types.FunctionType):
        return owner.__name__
    return type(owner).__name__


def _is_of_module(names):
    """Whether a dict has the variables of a module."""
    if type(names) is not dict or type(names.get("__name__")) is not str:
        return False
    return getattr(sys.modules.get(names["__name__"]), "__dict__", None) is names


def _is_of_library(kind):
    module = sys.modules.get(kind.__module__)
    return module is None or _is_stable(module)


def _is_stable(module):
    return _is_stable_name(module.__name__, getattr(module, "__file__", None))


def reading():
    """What the trace reads that runs now; None where nothing is traced from arguments."""
    graph = current()
    return None if graph is None else graph.root.outside


def see_whole(value) -> None:
    """Note all that a container holds, if it is from outside."""
    if isinstance(value, CONTAINERS) and (outside := reading()) is not None:
        outside.whole(value)


def seen_by(value, *methods, followed=True) -> None:
    """Note all that special methods of an object see; see `Outside.seen_by`."""
    if (outside := reading()) is not None:
        outside.seen_by(value, *methods, followed=followed)


def note_member(kind, name) -> None:
    """Note what a class has under a name."""
    if (outside := reading()) is not None:
        outside.read_member(kind, name)


def note_class(value) -> None:
    """Note of which class an object is."""
    if (outside := reading()) is not None:
        outside.read_class(value)
