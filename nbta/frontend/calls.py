"""Calls in functions that are traced: who is called with what."""

from __future__ import annotations

import builtins
import contextvars
import copy
import dataclasses
import functools
import inspect
import itertools
import math
import operator
import os
import sys
import types
import weakref
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, ParamSpec, TypeVar

import numpy as np
from numba import prange
from numpy.polynomial import polyutils

from nbta.control.captured import names_of
from nbta.control.control_flow import while_loop
from nbta.errors import InvalidArgumentError, NbtaError, UnimplementedError, invalid
from nbta.frontend import (
    control,
    conversion,
    effects,
    followed,
    identity,
    iteration,
    messages,
    native,
    operators,
    python_numbers,
    read_views,
    recursion,
    searching,
    stencils,
    telling,
    texts,
    typed_containers,
)
from nbta.frontend.array_wrappers import (
    ArrayWrapper,
    Attribute,
    AxesStep,
    View,
    born,
    common_read_only,
    in_trace,
    laid_as,
    link,
    made,
    made_read_only,
    new_array,
    normalized_axes,
    note_place,
    only_item,
    spend,
    wrapped,
)
from nbta.frontend.constants import Chosen
from nbta.frontend.containers import (
    CHANGING,
    KINDS,
    WRITING,
    Watched,
    holds_tensors,
    note_whole,
)
from nbta.frontend.declared_types import call_declared, python_function
from nbta.frontend.dict_items import dict_item, open_item_or
from nbta.frontend.draws import SOURCES, copying, drawn, is_draw, with_states
from nbta.frontend.draws import made as made_generator
from nbta.frontend.extremes import extreme_item, extreme_of
from nbta.frontend.jit_classes import (
    class_of,
    constructed,
    is_compiled_object,
    placeholder,
    python_class,
)
from nbta.frontend.languages import as_numba, is_numbas
from nbta.frontend.lists import Listing, listing
from nbta.frontend.math_functions import call_math, rounded
from nbta.frontend.maybe import check_keys, is_maybe, may_be_gone, open_keys, used
from nbta.frontend.ordering import extreme_by, in_order
from nbta.frontend.outside import note_class, note_member, reading, see_whole, seen_by
from nbta.frontend.overloads import implementation
from nbta.frontend.picking import nonzero
from nbta.frontend.pickling import Sent
from nbta.frontend.problems import (
    at_line,
    here,
    is_of_placeholder,
    lead,
    refuse_class,
    refuse_numbas,
)
from nbta.frontend.raising import (
    check_integer,
)
from nbta.frontend.ranges import Once
from nbta.frontend.records import Record, Records, empty_records
from nbta.frontend.source import described, no_source
from nbta.frontend.taken import note_searched, note_sources, note_taken
from nbta.frontend.tensor_array_wrappers import TensorArrayWrapper, in_wrapper, unwrapped
from nbta.frontend.tries import check_index
from nbta.frontend.universal import call_universal
from nbta.frontend.universal_methods import METHODS_OF_UFUNCS, call_method
from nbta.graph.graph import at_once, current
from nbta.graph.operation import Tensor, asked, label_of
from nbta.immutable import METHODS, own_numpy
from nbta.locations import LIBRARIES, OWN
from nbta.ops.axes import diagonals, places
from nbta.ops.core import arithmetic, filling
from nbta.ops.core.dispatch import (
    OF_NUMPY,
    as_tensor,
    in_our_names,
    known_as,
    nearest,
    sensible,
    strange,
)
from nbta.ops.core.filling import constant
from nbta.ops.core.numpy_arguments import refused_argument, settled
from nbta.ops.core.shaping import cast, reshape, stop_gradient
from nbta.ops.elementary import rounding
from nbta.ops.indexing import arranging, joining
from nbta.ops.indexing.items import add_item, getitem, set_item
from nbta.ops.numbers import Number
from nbta.ops.random.draws import GENERATORS
from nbta.ops.statistics import distributions
from nbta.ops.tensor_methods import called_in_dtypes
from nbta.runtime.numba_private import (
    GENERALIZED,
    STENCIL,
    VECTORIZED,
    Dispatcher,
    JitClassType,
    declared_signatures,
    overloads_of,
)
from nbta.structure import map_leaves
from nbta.symbolic import SymbolicTensorArray

if TYPE_CHECKING:
    from collections.abc import Callable

P, R = ParamSpec("P"), TypeVar("R")

#: Methods that give containers of their own.
_COPYING = {"copy", "difference", "fromkeys", "intersection", "symmetric_difference", "union"}
#: Functions of Python's to which it does not matter what a container holds.
_OF_CLASSES = {callable, id, isinstance, issubclass, type}
#: Methods of dicts and sets that take in the keys of others.
_OF_KEYS = {"difference", "fromkeys", "intersection", "symmetric_difference", "union", "update"} | {
    f"{name}_update" for name in ("difference", "intersection", "symmetric_difference")
}
#: Those that go along what they are given.
_OF_ITEMS = _OF_KEYS | {"extend", "extendleft"}
#: Where the functions are that converted code calls.
_RUNTIME = "nbta.frontend.runtime"
#: Functions of Python's that go along their arguments.
_ITERATING = {functools.reduce}
#: Functions of nbta whose arguments are blocks of the user's program.
_WITH_BLOCKS = {"while_loop", "cond", "switch_case", "scan", "foldl", "foldr", "map_fn"}


def call(function, /, *args, **kwargs):
    """``function(*args, **kwargs)`` in a function that is traced."""
    if current() is None:
        return function(*args, **kwargs)
    if any(isinstance(arg, iteration.Generator) for arg in args):
        ours = _going_along(function, args, kwargs)
        if ours is not None:
            return _converted(ours, tuple(map(iteration.run_range, args)), kwargs)
        args = _with_lists(function, args)
    if any(isinstance(arg, identity.Class) for arg in (*args, *kwargs.values())):
        args, kwargs = _with_dtypes(function, args, kwargs)
    special = _special_of(function)
    if special is not None:
        for arg in args if function not in _OF_CLASSES else ():
            check_keys(arg, f"{function.__name__}()")
        found = special(*args, **kwargs)
    else:
        found = _called(function, args, kwargs)
    takes = isinstance(found, Iterator) and not isinstance(found, Once)  # which goes by numbers
    if takes and not _is_users(function):
        note_sources(found, (*args, *kwargs.values()))
    return found


def _with_dtypes(function, args, kwargs):
    """Arguments for NumPy, to which Python's class of a number and its own are one dtype."""
    if (
        not isinstance(getattr(function, "__self__", None), Tensor)
        and _library(function) != "numpy"
    ):
        return args, kwargs
    given = [a.kinds[-1] if isinstance(a, identity.Class) else a for a in (*args, *kwargs.values())]
    return given[: len(args)], dict(zip(kwargs, given[len(args) :], strict=True))


def _going_along(function, args, kwargs):
    """What takes a user's generator item by item, as it may go on for ever; None for others."""
    places = [k for k, arg in enumerate(args) if isinstance(arg, iteration.Yielding)]
    if len(places) != 1:
        return None
    if function is zip and not kwargs and len(args) > 1:
        others = args[: places[0]] or args[1:]
        if places[0] in (0, len(args) - 1) and all(map(iteration.has_places, others)):
            return followed.zip_last if places[0] else followed.zip_first
        return None
    is_one = isinstance(function, type) and function in followed.OF_GENERATORS
    return followed.OF_GENERATORS[function] if is_one else None


def _with_lists(function, args):
    """Arguments with lists in place of generators, but for users' functions and ``next``."""
    if _is_users(function) or function in (next, iter, print, any, all):
        return args
    for k, arg in enumerate(args):
        if isinstance(arg, iteration.Generator) and any(arg is each for each in args[:k]):
            message = f"{here()}: {function.__name__}() of one generator twice; make a list of it"
            raise UnimplementedError(message)
    found = tuple(map(iteration.settled, args))
    if isinstance(function, type) and issubclass(function, Iterator):
        for arg in args:
            if isinstance(arg, iteration.Generator):  # it may not come to the last item
                note_taken(arg, True)
    return found


def _is_users(function):
    return isinstance(function, types.FunctionType | types.MethodType | Dispatcher)


def _special_of(function):
    """What stands for a function of Python's."""
    if isinstance(function, identity.Class):
        return None
    if (tell := telling.teller(function)) is not None:
        return functools.partial(tell, function)
    try:
        return _SPECIAL.get(function)
    except TypeError:  # it has no hash
        return None


def _called(function, args, kwargs):
    """A call by what kind of function it is."""
    if isinstance(function, Dispatcher):
        with as_numba():
            return _compiled(function, args, kwargs)
    if isinstance(function, identity.Class):
        return call(function.kinds[-1], *args, **kwargs)
    if is_draw(function):
        return drawn(function, args, kwargs, _foreign)
    for kind, handle in _KINDS:
        if isinstance(function, kind):
            return handle(function, args, kwargs)
    method = user_method(function)
    if method is not None:  # whatever name it has taken over
        return call(types.MethodType(method, function), *args, **kwargs)
    if _library(function) == "numpy":
        return _numpy(function, args, kwargs)
    if _is_distribution(function) and not native.is_known((args, kwargs)):
        return _of_distribution(function, None, args, kwargs)
    if _module(function).startswith("scipy.fft"):  # whose functions are objects
        return _scipy(function, args, kwargs)
    return _foreign(function, args, kwargs)


def user_method(owner, name="__call__"):
    """The special method of an object's class that is the user's; None for others'.

    Without a name it is what calls of the object call.
    """
    if isinstance(owner, _NO_USERS):
        return None
    method = getattr(class_of(owner), name, None)
    if not isinstance(method, types.FunctionType) or is_library(method):
        return None
    if not is_compiled_object(owner):
        note_member(type(owner), name)
    return method


def seen_by_users(owner, name):
    """The special method of an object's class that is the user's; others see all that it holds."""
    method = user_method(owner, name)
    if method is None:
        seen_by(owner, name)
    return method


def by_special(value, *names):
    """What the first of some special methods gives that a user's object has; others as they are."""
    for name in names:
        method = seen_by_users(value, name)
        if method is not None:
            return call(method, value)
    return value


def truth_of_object(value):
    """The truth of what Python knows."""
    for name in ("__bool__", "__len__"):
        method = seen_by_users(value, name)
        if method is not None:
            return control.truth(call(method, value))
        if hasattr(type(value), name):
            break
    return bool(value)


def special(owner, name, *args):
    """A special method of an object, as Python calls it: followed where it is the user's."""
    method = getattr(class_of(owner), name)
    own = isinstance(owner, _NO_USERS) or getattr(method, "__objclass__", owner) in _NO_USERS
    if own or (isinstance(method, types.FunctionType) and _is_ours(method)):
        return method(owner, *args)
    return call(types.MethodType(method, owner), *args)


def by_users(names, left, right):
    """What methods of users' classes give for an operator; NotImplemented where there are none.

    ``names`` are those of the left operand's method and of the right one's.
    """
    ways = [(left, names[0], right)]
    if type(left) is not type(right):
        first = isinstance(right, type(left)) and _is_own(right, names[1], left)
        ways.insert(len(ways) - first, (right, names[1], left))
    for owner, name, other in ways:
        method = seen_by_users(owner, name)
        is_number = isinstance(owner, _NUMBERS | np.generic) or identity.is_run_number(owner)
        if method is None and not is_number and hasattr(type(owner), name):
            return NotImplemented  # Python asks that one
        found = NotImplemented if method is None else call(method, owner, other)
        if found is not NotImplemented:
            return found
    return NotImplemented


def _is_own(owner, name, other):
    """Whether the class of an operand goes before the one that it inherits from."""
    is_comparison = not name.startswith("__r")
    return is_comparison or getattr(type(owner), name, None) is not getattr(type(other), name, None)


_NUMBERS = bool | int | float | complex
#: Kinds of objects whose special methods no user has written; of subclasses too, which are ours.
_NO_USERS = (
    type, Tensor, np.ndarray, np.generic, types.ModuleType, type(os.environ), _NUMBERS,
)  # fmt: skip


def _partial(function, args, kwargs):
    first = map(conversion.outer, function.args)
    named = {key: conversion.outer(value) for key, value in function.keywords.items()}
    return call(function.func, *first, *args, **{**named, **kwargs})


def _stencil(function, args, kwargs):
    """A call of a function of ``numba.stencil``."""
    if native.is_known((args, kwargs)):
        return wrapped(function(*native.plain(args), **native.plain(kwargs)))
    with as_numba():
        return _converted(followed.stencil, stencils.unrolled(function, args, **kwargs), {})


def _universal(function, args, kwargs):
    """A universal function that a user made."""
    if native.is_known((args, kwargs)):
        if (outside := reading()) is not None:
            outside.native((getattr(function, "pyfunc", None), *args))
        return wrapped(function(*native.plain(args), **native.plain(kwargs)))
    return call_universal(function, args, kwargs)


def _cached(function, args, kwargs):
    """A function of `functools.lru_cache`: Python's cache answers, or is filled, where it can."""
    outside = reading()
    if outside is None or outside.is_inner(function.__wrapped__):
        return _cached_in_graph(function, args, kwargs)
    values = [*args, *kwargs.values()]
    for value in values:
        _check_hash(value)
    if native.is_known(values) and not any(map(holds_tensors, values)):
        return _by_cache(function, args, kwargs)
    with outside.recording() as read:
        found = _cached_in_graph(function, args, kwargs)
    if read:
        name = getattr(function, "__qualname__", "a function")
        message = (
            f"{here()}: {name} has a cache (functools.lru_cache) and is given a value that only "
            f"the run knows, and reads {read[0]} from outside: Python's cache may hold results "
            f"for what that was before; make it an argument, or call {name}.__wrapped__, which "
            f"has no cache"
        )
        raise invalid("cache", message)
    return found


def _check_hash(value):
    """Raise Python's error for an array as a key; lengths are asked for."""
    if isinstance(value, tuple):
        for part in value:
            _check_hash(part)
    elif isinstance(value, ArrayWrapper):
        raise TypeError(f"{here()}: unhashable type: 'numpy.ndarray'")
    elif isinstance(value, Number):
        hash(value)


def _by_cache(function, args, kwargs):
    """What a function with a cache gives, which each call asks it again."""
    outside = reading()
    try:
        with at_once(), own_numpy():
            found = function(*args, **kwargs)
    except Exception as error:
        outside.read_error(function, args, kwargs, error)
        raise
    if holds_tensors(found):
        function.cache_clear()  # it is of this trace
        name = getattr(function, "__qualname__", "a function")
        message = (
            f"{here()}: {name} has a cache (functools.lru_cache) and reads an object that holds "
            f"a value that only the run knows; make that an argument, or call {name}.__wrapped__"
        )
        raise invalid("cache", message)
    outside.read_result(function, args, kwargs, found)
    return conversion.outer(found)


def _cached_in_graph(function, args, kwargs):
    """A function with a cache that is traced; what it gave is saved with its graph."""
    key = (
        function,
        tuple(map(_cache_key, args)),
        tuple((k, _cache_key(v)) for k, v in kwargs.items()),
    )
    graph = current()
    while graph is not None:
        if key in (kept := graph.cache.get(_CACHED, {})):
            return kept[key][0]
        graph = getattr(graph, "outer", None)
    found = call(function.__wrapped__, *args, **kwargs)
    current().cache.setdefault(_CACHED, {})[key] = found, args, kwargs
    return found


_CACHED = "what functions with a cache gave"


def _cache_key(value):
    """A tensor is one object; the same numbers of two types are not of one dtype."""
    return id(value) if isinstance(value, Tensor) else (type(value), value)


def _module(function):
    """The module that a function is of: its own, not one that `functools.wraps` has named."""
    if isinstance(function, types.FunctionType):
        return function.__globals__.get("__name__") or ""
    return getattr(function, "__module__", None) or ""


def _library(function):
    """The package that a function is of: a user's module may be called numpy_tools."""
    return _module(function).partition(".")[0]


def is_library(function):
    """Whether a function is no one's who would have it converted."""
    if is_followed(function):
        return False
    if _library(function) in ("numpy", "numba", "scipy") or _is_ours(function):
        return True
    return function.__code__.co_filename.startswith(LIBRARIES)


def is_call_alone(function):
    """Whether a callable, and no class, is NumPy's or SciPy's, or a universal one of Numba's.

    These have no code of their own to convert, and are called as in converted code.
    """
    if isinstance(function, (VECTORIZED, GENERALIZED)):
        return True
    return not isinstance(function, type) and _library(function) in ("numpy", "scipy")


#: NumPy's modules whose classes are plain Python, `np.poly1d` and those of `np.polynomial`, and
#: what stands for functions of other libraries.
_FOLLOWED = ("numpy.lib._polynomial_impl", "numpy.polynomial.", followed.__name__)


def is_followed(function):
    """Whether a function is a library's, and followed by its source as users' functions are."""
    return (function.__globals__.get("__name__") or "").startswith(_FOLLOWED)


def _is_ours(function):
    """Whether a function of Python's is nbta's, by its file: doctests are in nbta's modules."""
    return function.__code__.co_filename.startswith(OWN)


def _plain_function(function, args, kwargs):
    if _is_ours(function):
        return (_converted if is_followed(function) else _ours)(function, args, kwargs)
    if is_followed(function):
        is_method = "." in function.__qualname__  # of an object that may hold any coefficients
        known = not is_method and native.is_known((args, kwargs))
        return (_numpy if known else _converted)(function, args, kwargs)
    if _library(function) == "numpy":
        return _numpy(function, args, kwargs)
    if _library(function) == "scipy":
        return _scipy(function, args, kwargs)
    if is_library(function):
        return _foreign(function, args, kwargs)
    if is_numbas() and (makers := overloads_of(function)):
        found = implementation(function, makers, args, kwargs)
        if found is not function:  # as it is of register_jitable
            return call(found, *args, **kwargs)
    return _converted(function, args, kwargs)


def _ours(function, args, kwargs):
    """A function of nbta, which knows tensors only, unless it is of this package."""
    if function.__module__ == _RUNTIME:
        return function(*args, **kwargs)
    if function.__name__ in _WITH_BLOCKS:
        args = [_block(a, function.__name__) for a in args]
        kwargs = {k: _block(v, function.__name__) for k, v in kwargs.items()}
    return in_wrapper(function(*native.plain(tuple(args)), **native.plain(kwargs)))


def _block(value, what):
    """A function that becomes the body of a loop or a branch, and changes nothing around it."""
    if isinstance(value, list | tuple) and any(callable(v) for v in value):
        return type(value)(_block(v, what) for v in value)
    if isinstance(value, dict) and any(callable(v) for v in value.values()):
        return {k: _block(v, what) for k, v in value.items()}
    if not callable(value) or isinstance(value, Tensor | type):
        return value

    @functools.wraps(value) if hasattr(value, "__name__") else lambda f: f
    def block(*args, **kwargs):
        with control.Frame(explicit=True), effects.in_block():
            given = in_wrapper(args), in_wrapper(kwargs)
            return native.plain(call(value, *given[0], **given[1]))

    return block


def _converted(function, args, kwargs):
    """A function of the user's."""
    found = conversion.converted(function)
    if found is None:
        return _unconverted(function, args, kwargs)
    if inspect.isgeneratorfunction(function):
        return born(iteration.Yielding(found, args, kwargs))
    try:
        with recursion.followed(function):
            return found(*args, **kwargs)
    except RecursionError as error:
        raise recursion.endless(function, error) from None


def _compiled(function, args, kwargs):
    """A function that Numba compiles."""
    python = python_function(function)
    if kwargs and declared_signatures(function):
        bound = inspect.signature(python).bind(*args, **kwargs)
        args, kwargs = bound.args, bound.kwargs
    if kwargs:
        return _converted(python, args, kwargs)
    return call_declared(function, args, lambda args: _converted(python, args, {}), call)


def _unconverted(function, args, kwargs):
    """A function of the user's whose source is not to be found; the error where it needs that."""
    try:
        return _foreign(function, args, kwargs)
    except NbtaError as error:
        if error.reason in ("symbolic", "immutable") and not native.is_known((args, kwargs)):
            raise no_source(function) from error
        raise


def _is_distribution(owner):
    """Whether an object is one of SciPy's distributions, or one with its parameters."""
    return _module(type(owner)).startswith("scipy.stats._")


def _of_distribution(owner, what, args, kwargs):
    """A method of a distribution, with values that only the run knows."""
    if (outside := reading()) is not None:
        outside.native(owner)
    args, kwargs = native.plain(tuple(args)), native.plain(kwargs)
    kind = type(owner).__name__
    if hasattr(owner, "dist"):  # of one variable, with its parameters
        owner, args, kwargs = owner.dist, (*args, *owner.args), {**owner.kwds, **kwargs}
    elif kind == "multivariate_normal_frozen":
        args = (*args, owner.mean, owner.cov)
    elif kind == "dirichlet_frozen":
        args = (*args, owner.alpha)
    name = getattr(owner, "name", None) or kind.removesuffix("_frozen").removesuffix("_gen")
    if what is None:
        return distributions.Frozen(name, args, kwargs)
    return wrapped(distributions.method(name, what, args, kwargs))


def _next(items, *default):
    """``next``, which cannot be put back."""
    reason = (
        f"{here()}: next() of an iterator in a data-dependent loop or branch; take items by their "
        "index"
    )
    if isinstance(items, iteration.Generator):
        return items.take(*default)
    spend(items, reason)
    return next(items, *default)


def _iter(*args):
    found = iterated(args[0]) if len(args) == 1 else None
    if found is not None:
        return found
    if len(args) == 2:
        return born(iter(_callable(args[0]), args[1]))
    if len(args) == 1 and isinstance(args[0], Iterator):
        return args[0]
    return born(iter(*map(iteration.one_by_one, args)))


def iterated(items):
    """What an object of a user's class gives to go along; None for others."""
    method = user_method(items, "__iter__")
    if method is None:
        getter = None if hasattr(type(items), "__iter__") else user_method(items, "__getitem__")
        return None if getter is None else born(_items_at(getter, items))
    found = call(method, items)
    following = user_method(iteration.spent(found), "__next__")
    return found if following is None else born(_items_by(following, found))


def _items_at(getter, items):
    """The items that a user's ``__getitem__`` gives, one after another."""
    for place in itertools.count():
        try:
            item = call(getter, items, place)
        except IndexError:
            return
        yield item


def _items_by(following, found):
    """The items that a user's ``__next__`` gives."""
    while True:
        try:
            item = call(following, found)
        except StopIteration:
            return
        yield item


def _method(function, args, kwargs):
    owner, inner = function.__self__, function.__func__
    if is_compiled_object(owner):
        return call(getattr(placeholder(owner), function.__name__), *args, **kwargs)
    if isinstance(owner, ArrayWrapper) and hasattr(np.ndarray, inner.__name__):
        return _array_method(owner, inner, args, kwargs)
    if isinstance(owner, ArrayWrapper | Listing | TensorArrayWrapper):
        return inner(owner, *args, **kwargs)
    if isinstance(inner, types.FunctionType) and _is_ours(inner):
        return in_wrapper(function(*native.plain(args), **native.plain(kwargs)))
    if typed_containers.is_typed(owner):  # one of its constructors
        return born(typed_containers.empty(owner, *args, **kwargs))
    if _is_distribution(owner) and not native.is_known((args, kwargs)):
        return _of_distribution(owner, inner.__name__, args, kwargs)
    if (isinstance(inner, types.FunctionType) and is_library(inner)) or owner is os.environ:
        return _foreign(function, args, kwargs)
    return call(inner, owner, *args, **kwargs)


def _array_method(owner, inner, args, kwargs):
    """A method of an array, bound to the signature of NumPy's."""
    name = inner.__name__
    (owner, *args), kwargs = _bound(getattr(np.ndarray, name), (owner, *args), kwargs)
    if kwargs.get("out") is not None:
        function = getattr(np, name, None)
        if function is None:
            raise refused_argument(name, "out=", here())
        return _into(function, (owner, *args), kwargs)
    if not native.is_known((owner, args, kwargs)):
        unknown = strange(inner, (owner, *args), kwargs)
        if unknown:
            raise refused_argument(f"ndarray.{name}", unknown, here())
    return inner(owner, *args, **kwargs)


def _list(items=()):
    """``list``."""
    return items.copy() if control.is_filled(items) else iteration.listed(items)


def _made(kind, args, kwargs):
    """An object of a class."""
    if kind in (map, filter):
        given = map(_callable, args[:1]) if kind is map else _tested(kind, args[:1])
        return born(kind(*given, *map(iteration.one_by_one, args[1:])))
    kind = typed_containers.python_kind(kind)
    if kind is list:
        return _list(*args)
    args, kwargs = _taken_by(kind, args, kwargs)
    if issubclass(kind, np.generic) and args and not native.is_known(args):
        return _cast(python_numbers.stored(args[0], np.dtype(kind)), kind)
    if not native.is_known((args, kwargs)):
        refuse_class(kind)
    if issubclass(kind, BaseException):
        return _error(kind, tuple(map(texts.text_of_error, args)), kwargs)
    initial = kind.__init__
    plain = isinstance(initial, types.FunctionType) and kind.__new__ is object.__new__
    if plain and not is_library(initial) and type(kind).__call__ is type.__call__:
        found = conversion.converted(initial)
        if found is not None:
            owner = born(kind.__new__(kind))
            found(owner, *args, **kwargs)
            return owner
    if issubclass(kind, (*GENERATORS, *SOURCES)):
        return made_generator(kind, *args, **kwargs)
    if _library(kind) in ("nbta", "numpy"):
        return in_wrapper(kind(*native.plain(args), **native.plain(kwargs)))
    return _as_it_makes_it(kind, args, kwargs)


def _error(kind, args, kwargs):
    """An error, in whose text names stand for values that only the run knows."""
    if kind.__module__ == builtins.__name__:
        return kind(*args, **kwargs)
    try:
        return kind(
            *(messages.shown(value, _name_of(value)) for value in args),
            **{key: messages.shown(value, _name_of(value)) for key, value in kwargs.items()},
        )
    except (TypeError, AttributeError, ValueError):  # it computes with the values
        return kind(*args, **kwargs)


def _name_of(value):
    """What the user calls a value, for texts."""
    label = value.root.label if isinstance(value, ArrayWrapper) else None
    label = label_of(value) if isinstance(value, Tensor) and label is None else label
    return label or "..."


def _as_it_makes_it(kind, args, kwargs):
    """An object of a class that is not followed into."""
    if _is_librarys(kind):
        with _without_values(kind, kind.__qualname__, args, kwargs):
            found = kind(*args, **kwargs)
    else:
        found = kind(*args, **kwargs)
    found = born(identity.checked_keys(found))
    return _with_listings(found, (*args, *kwargs.values()))


def _is_librarys(kind):
    """Whether a class is none of the user's."""
    place = getattr(sys.modules.get(kind.__module__), "__file__", None)
    return kind.__module__ != "__main__" and (place is None or place.startswith(LIBRARIES))


#: Iterators of Python's whose first argument is a test.
_TESTING = (itertools.takewhile, itertools.dropwhile, itertools.filterfalse)


def _taken_by(kind, args, kwargs):
    """Arguments of a class, of which one of Python's goes along what users' objects give."""
    if kind in (tuple, set, frozenset, deque):
        args = tuple(map(iteration.own_items, args))
        if args and control.is_filled(args[0]):
            args[0].ask_length()
            name = kind.__name__
            raise UnimplementedError(
                f"{here()}: only the run knows how many items this {name} has; use list(...), or "
                f"the list itself"
            )
    elif _library(kind) == "itertools":
        args = list(map(iteration.own_items, args))
        if kind in _TESTING and args:
            args[:1] = _tested(kind, args[:1])
        args = tuple(map(_callable, args))
        kwargs = {name: _callable(value) for name, value in kwargs.items()}
    elif issubclass(kind, dict):
        for arg in args:
            seen_by(arg, "keys", "__getitem__", "__iter__", followed=False)
    elif _library(kind) in ("nbta", "numpy") and (outside := reading()) is not None:
        outside.native((*args, *kwargs.values()), fix=False)
    return tuple(map(iteration.spent, args)), kwargs


def _compiled_class(kind, args, kwargs):
    """What stands for an object of a jitclass that the function makes."""
    return constructed(kind, args, kwargs)


def _tested(kind, functions):
    """What an iterator of Python's asks of an item, of which it must know whether it is true."""
    return [functools.partial(_known_test, kind.__name__, function) for function in functions]


def _known_test(kind, function, item):
    found = item if function is None else call(function, item)
    if control.is_traced(found) and not isinstance(found, Number):
        message = (
            f"{here()}: {kind}() with a test whose result only the run knows, where items are "
            f"taken one by one; write a comprehension, [v for v in items if test(v)], or a loop"
        )
        raise invalid("symbolic", message)
    return found


def filtered(function, *args, **kwargs):
    """``filter(test, items)`` where a call takes all items at once."""
    if current() is None or function is not filter or len(args) != 2 or kwargs:
        return call(function, *args, **kwargs)
    test, items = args
    given = (lambda item: item) if test is None else _callable(test)
    return iteration.comprehension(lambda item: item, given, items)


def call_of_items(function, /, *args, **kwargs):
    """A call of a method, or of a module's function, of which an argument may be `Items`."""
    is_users = isinstance(function, types.FunctionType | types.MethodType) and not is_library(
        function
    )
    made = [
        (arg.one_by_one() if is_users else arg.items) if isinstance(arg, iteration.Items) else arg
        for arg in args
    ]
    return call(function, *made, **kwargs)


def _with_listings(owner, given):
    """An object of a dataclass, whose fields that factories made are the function's own.

    Those that begin with ``[]`` have lists that loops fill, and arrays are in wrappers.
    """
    for each in dataclasses.fields(owner) if dataclasses.is_dataclass(owner) else ():
        value = getattr(owner, each.name, None)
        made = each.default_factory is not dataclasses.MISSING
        if not made or any(value is part for part in given):
            continue
        if each.default_factory is list and type(value) is list and not value:
            object.__setattr__(owner, each.name, listing(()))
        elif type(value) is np.ndarray and value.ndim:
            object.__setattr__(owner, each.name, wrapped(value))
    return owner


def _owner_of(function):
    """What a method of Python's is of, which sees all that it holds."""
    owner = getattr(function, "__self__", None)
    if function.__name__ not in WRITING:
        see_whole(owner)
    return owner


def _builtin(function, args, kwargs):
    owner = _owner_of(function)
    is_item = isinstance(owner, KINDS) and function.__name__ == "__getitem__"
    if is_item and user_method(owner, "__getitem__") is None:  # else it is what super() has
        return conversion.runtime().item(owner, *args)
    if isinstance(owner, KINDS) and function.__name__ in CHANGING:
        note_whole(owner)
    if isinstance(owner, (*KINDS, frozenset, tuple, str, bytes, type)):
        method = _of_text if isinstance(owner, str | bytes) else _of_containers
        return method(function, args, kwargs)
    if isinstance(owner, np.ufunc):
        return _method_of_universal(function, args, kwargs)
    if isinstance(owner, np.ndarray | np.generic):
        return _of_numpys(function, args, kwargs)
    if _library(function) == "numpy":
        return _numpy(function, args, kwargs)
    if _module(function) in ("math", "cmath"):
        own = {"floor": ("__floor__",), "ceil": ("__ceil__",), "trunc": ("__trunc__",)}
        names = *own.get(function.__name__, ()), "__float__", "__index__"
        args = [iteration.own_items(by_special(arg, *names)) for arg in args]
        return call_math(function, args, kwargs)
    if function in _ITERATING:
        return function(*map(_callable, args[:1]), *map(iteration.elements, args[1:]), **kwargs)
    if _module(function) == "builtins":
        return function(*map(iteration.spent, args), **kwargs)
    return _foreign(function, args, kwargs)


def _of_text(function, args, kwargs):
    """A method of a text."""
    if function.__name__ == "join":
        args = map(list, map(iteration.elements, args))
    args = tuple(map(iteration.spent, args))
    text = texts.of_method(function.__self__, function.__name__, args, kwargs)
    return function(*args, **kwargs) if text is None else text


def _of_containers(function, args, kwargs):
    """A method of Python's containers."""
    owner, name = function.__self__, function.__name__
    if isinstance(owner, list | tuple) and name in _SEARCHING:
        return _SEARCHING[name](owner, *args)
    if isinstance(owner, dict | set | frozenset) and args and not identity.is_known_key(args[0]):
        if name == "get" and isinstance(owner, dict):
            return dict_item(owner, args[0], *(args[1:] or (None,)))
        identity.check_key(args[0], owner)
    if open_keys(owner) and name != "copy":
        if name != "get":
            check_keys(owner, f".{name}()")
        held = owner.get(*args[:1])
        if may_be_gone(held):
            return open_item_or(held, *(args[1:] or (None,)))
    if name in _OF_ITEMS and not isinstance(owner, dict):
        args = map(iteration.own_items, args)
    found = function(*map(iteration.spent, args), **kwargs)
    if name in _OF_KEYS:
        identity.checked_keys(owner if found is None else found)
    return born(found) if name in _COPYING else found


def _searching(name, of_run):
    """A method of lists and tuples that compares items, as only the run can."""

    def search(items, *args):
        if not native.is_python(items) or native.is_known((items, args)):
            plain = of_lists if isinstance(items, list) else getattr(tuple, name)
            return plain(items, *args)
        if len(args) > 1:
            message = f"{here()}: {name}() between bounds of what only the run knows; give a slice"
            raise UnimplementedError(message)
        is_item = conversion.runtime().is_item
        return of_run(items, [is_item(*args, each) for each in items])

    of_lists = getattr(searching, name)
    setattr(Listing, name, search)
    return search


def _count(_, holds):
    return sum(map(_int, holds))


def _index(items, holds):
    place, found = -1, False
    for k, each in reversed([*enumerate(holds)]):
        place = control.either(each, lambda k=k: k, lambda place=place: place)
        found = control.any_of(True, each, lambda found=found: found)
    missing = ValueError(f"{here()}: the value is not in the {identity.called_by_python(items)}")
    if control.is_traced(found):
        effects.check(found, missing)
    elif not found:
        raise missing
    return place


_SEARCHING = {"count": _searching("count", _count), "index": _searching("index", _index)}


def _of_numpys(function, args, kwargs):
    """A method of NumPy's: of an array perhaps with values that only the run knows."""
    owner, name = function.__self__, function.__name__
    if not isinstance(owner, np.ndarray) or native.is_known((args, kwargs)):
        return _foreign(function, args, kwargs)
    if name in METHODS:
        message = (
            f"{here()}: .{name}() would change an array from outside of the function by what only "
            f"the run knows; make a copy first, and give it back"
        )
        raise invalid("effect", message)
    return getattr(ArrayWrapper(owner), name)(*args, **kwargs)


def _callable(value):
    """A function that Python itself calls, such as the first argument of `map`."""
    return functools.partial(call, value) if callable(value) else value


class Opaque(Sent):
    """A function that is called as it is; see `opaque`."""

    def __init__(self, function):
        functools.update_wrapper(self, function)
        self._function = function

    def __call__(self, *args, **kwargs):
        """Call it with tensors in place of arrays that change."""
        found = self._function(*native.plain(args), **native.plain(kwargs))
        return found if current() is None else wrapped(map_leaves(_without_gradient, found))

    def _recipe(self):
        return (self._function,)

    def __repr__(self):
        return f"<nbta.opaque of {described(self._function)}>"


def opaque(function: Callable[P, R]) -> Callable[P, R]:
    """Let a function be called without conversion and without a gradient.

    Parameters
    ----------
    function : callable
        It is called with tensors when a function is traced, and may call functions of nbta.

    Returns
    -------
    callable
        The same function, whose results are treated as constants by gradients.

    Examples
    --------
    >>> @nbta.opaque
    ... def scale(x):
    ...     return nbta.max(nbta.abs(x))
    >>> nbta.grad(lambda x: nbta.sum(x / scale(x)))(np.array([1.0, -4.0]))
    array([0.25, 0.25])
    """
    return Opaque(function)


def _without_gradient(leaf):
    return stop_gradient(leaf) if isinstance(leaf, Tensor) and leaf.kind == "data" else leaf


def _copied(function):
    """``copy.copy`` and ``copy.deepcopy``: what they make is the function's own."""

    def copied(value, *memo):
        if (outside := reading()) is not None and outside.holds(value):
            (outside.native if function is copy.deepcopy else outside.parts)(value)
        watched = Watched((value,))
        with copying(watched.generators):
            return watched.mark_new(function(value, *memo))

    return copied


def _is_users(value):
    """Whether a value is a function of the user's, which may know what only the run knows."""
    return isinstance(value, types.FunctionType | types.MethodType | functools.partial)


def _check_callable(function):
    if isinstance(function, Tensor) or not callable(function):
        kind = identity.called_by_python(function)
        raise TypeError(f"{here()}: {kind!r} object is not callable")


def _interpolation(owner, args, kwargs):
    """What gives the values of an object of SciPy's that interpolates; None for others."""
    if not _module(type(owner)).startswith("scipy.interpolate") or native.is_known(args):
        return None
    return followed.interpolated(owner, conversion.runtime().attribute, call, *args, **kwargs)


def _looked_up(function, args, kwargs):
    """What a weak reference, a context variable or the environment gives now, in a tuple.

    These may give something else at the next call. None for other functions.
    """
    owner, name = getattr(function, "__self__", None), getattr(function, "__name__", "")
    if kwargs or not all(isinstance(arg, str | int | float | None) for arg in args):
        return None
    call = f".get({', '.join(map(repr, args))})"
    if isinstance(function, weakref.ref):
        owner, call = function, "()"
    elif function is os.getenv:
        owner = os.environ
    elif name != "get" or not (owner is os.environ or isinstance(owner, contextvars.ContextVar)):
        return None
    found = function(*args)
    if (outside := reading()) is not None:
        outside.read_call(owner, call, found)
    return (conversion.outer(found),)


def _foreign(function, args, kwargs):
    """A function that nbta cannot look into."""
    if (found := _interpolation(function, args, kwargs)) is not None:
        return _converted(*found, {})
    _check_callable(function)
    if (found := _looked_up(function, args, kwargs)) is not None:
        return found[0]
    return _called_as_it_is(function, args, kwargs)


def _called_as_it_is(function, args, kwargs):
    """What a function gives that sees tensors, and may change what it is given."""
    of_class = isinstance(function, types.MethodDescriptorType | types.WrapperDescriptorType)
    if of_class and args and isinstance(args[0], Listing):
        return call(getattr(args[0], function.__name__), *args[1:], **kwargs)
    name = getattr(function, "__qualname__", repr(function))
    owner = getattr(function, "__self__", None)
    if not native.is_known((args, kwargs)):
        refuse_numbas(function if owner is None else owner)
    if (outside := reading()) is not None:
        outside.native((owner, *args, *kwargs.values()))
        if isinstance(function, types.FunctionType):
            outside.around(function, names_of(function.__code__)[0])
    watched = Watched((owner, *map(iteration.spent, (*args, *kwargs.values()))))
    with _without_values(function, name, args, kwargs):
        with watched, with_states(function, owner, watched.generators):
            given = [watched.opened(arg) for arg in args]
            named = {key: watched.opened(value) for key, value in kwargs.items()}
            found = function(*given, **named)
        return watched.mark_new(watched.closed(found))


@contextmanager
def _without_values(function, name, args, kwargs):
    """Around a call that nbta does not follow, which is refused where it goes by a run's values.

    A library may handle the error that asking for such a value raises, and go on in another way
    than with the value, or raise an error of its own.
    """
    has_users = any(map(_is_users, (*args, *kwargs.values())))
    known, before = native.is_known((args, kwargs)) and not has_users, asked.times
    refusal = _unknown_to(f"{name} of {_module(function) or 'another library'}", name)
    try:
        yield
    except NbtaError as error:
        if not known and _library(type(function)) != "nbta":
            lead(error, refusal)
        raise
    except Exception as error:
        of_types = isinstance(error, TypeError) and not has_users
        by_value = asked.times > before or is_of_placeholder(error)
        if known or not (by_value or (of_types and _takes(function, args, kwargs))):
            raise
        raise invalid("symbolic", f"{refusal} ({type(error).__name__}: {error})") from error
    if not known and asked.times > before:
        raise invalid("symbolic", refusal)


def _takes(function, args, kwargs):
    """Whether a function takes as many arguments, and of these names, as far as it says so."""
    try:
        inspect.signature(function).bind(*args, **kwargs)
    except TypeError:
        return False
    except ValueError:  # it does not say
        pass
    return True


# Numbers.


def _cast(value, dtype):
    if isinstance(value, ArrayWrapper):
        return wrapped(cast(value.itself, dtype))
    return cast(as_tensor(value), dtype)


def _int(value=0, *base):
    value = by_special(value, "__int__", "__index__", "__trunc__")
    if not control.is_traced(value):
        return int(_known_text(value), *base)
    if isinstance(value, Number) and value.weak is int:
        return value
    value = _one_number(value)
    if value.dtype.kind == "f":
        check_integer("int()", value)
        value = rounding.trunc(value)
    found = cast(value, np.int64)
    if found is not value:  # an integer of NumPy's is one, too
        python_numbers.note(found)
    return found


def _one_number(value):
    """A number, or an array of one item, which Python's classes of numbers take."""
    message = f"{here()}: only an array of one item can be converted to a number"
    return only_item(value, TypeError(message))


def _known_text(value):
    """A value that a number is made of, which is no text with values of a run."""
    return texts.text_of(value) if isinstance(value, texts.Text) else value


def _float(value=0.0):
    value = by_special(value, "__float__", "__index__")
    if not _traced(value):
        return float(_known_text(value))
    value = _one_number(value)
    found = cast(value, np.float64)
    if found is not value:  # a float of NumPy's is one, too
        python_numbers.note(found)
    return found


def _complex(*parts):
    """``complex``."""
    parts = [by_special(part, "__complex__", "__float__", "__index__") for part in parts]
    if not any(map(_traced, parts)):
        return complex(*parts)
    real, imag = (*parts, 0)[:2]
    real, imag = map(_one_number, (real, imag))
    if imag.dtype.kind == "c":
        real, imag = real - arithmetic.imag(imag), arithmetic.real(imag)
    if real.dtype.kind == "c":
        real, imag = arithmetic.real(real), arithmetic.imag(real) + imag
    return arithmetic.complex_of(cast(real, np.float64), cast(imag, np.float64))


def _traced(value):
    return control.is_traced(value)


def _range(*bounds):
    return iteration.range_(*(by_special(bound, "__index__") for bound in bounds))


def _bool(value=False):
    return control.truth(value)


def _len(value):
    value = used(value)
    if isinstance(value, ArrayWrapper):
        return value.length
    if isinstance(value, TensorArrayWrapper):
        return wrapped(cast(native.plain(value.size()), np.int64))  # as in compiled code
    if isinstance(value, Records):
        return value.shape[0]
    if _is_number(value):
        kind = identity.called_by_python(value)
        raise TypeError(f"{here()}: object of type {kind!r} has no len()")
    if isinstance(value, Tensor) and value.ndim:
        return value.shape[0] if value.shape is not None else len(value)
    if isinstance(value, iteration.Indexed):
        return value.count
    if isinstance(value, Listing) and value.array is not None:
        return value.length
    if isinstance(value, Chosen):
        return value.of_each(len)
    method = seen_by_users(value, "__len__")
    return len(value) if method is None else call(method, value)


def _abs(value):
    method = seen_by_users(value, "__abs__")
    if method is not None:
        return call(method, value)
    found = abs(native.plain(value))
    python_numbers.note(found, value)
    return wrapped(found)


def _round(number, ndigits=None):
    """``round``."""
    value, digits = number, ndigits
    if (method := seen_by_users(value, "__round__")) is not None:
        return call(method, value, *(() if digits is None else (digits,)))
    if not _traced(value) or isinstance(value, Number):
        return round(value) if digits is None else round(value, digits)
    value = as_tensor(native.plain(value))
    if digits is None:
        check_integer("round()", value)
        return rounded(rounding.rint)(value)
    digits = digits if isinstance(digits, Tensor) else operator.index(digits)
    if native.dtype_of(digits).kind not in "biu":
        raise TypeError(f"{here()}: 'float' object cannot be interpreted as an integer")
    scale = 10.0 ** abs(native.plain(digits))
    ways = [
        lambda: value if value.dtype.kind in "iu" else rounding.rint(value * scale) / scale,
        lambda: cast(rounding.rint(value / scale) * scale, value.dtype),
    ]
    if not isinstance(digits, Tensor):
        return ways[digits < 0]()
    is_kept = arithmetic.greater_equal(digits, 0)
    return arithmetic.where(is_kept, *(way() for way in ways))


def _extreme(plain):
    """``max`` or ``min``."""

    def extreme(*args, key=None, **default):
        if default and len(args) == 1 and control.is_filled(args[0]):
            some = functools.partial(extreme, *args, key=key)
            return control.either(args[0], some, lambda: default["default"])
        items = args if len(args) > 1 else args[0]
        if key is not None or (control.is_filled(items) and items.is_of_tuples):
            return extreme_by(plain, items, _callable(key), default)
        items = _together(items)
        if isinstance(items, ArrayWrapper):
            if not _traced(items):
                return plain(items.content, **default)
            return wrapped(extreme_item(plain, items, default))
        items = list(iteration.elements(items))
        if any(isinstance(item, tuple) and not native.is_known(item) for item in items):
            return extreme_by(plain, items, None, default)
        if default or not any(map(_traced, items)):
            return _extreme_known(plain, items, default)
        return extreme_of(plain, items)

    return extreme


def _extreme_known(plain, items, default):
    """``max`` or ``min`` of what Python compares, which may be objects that only the run can."""
    try:
        return plain(items, **default)
    except InvalidArgumentError as error:
        kind = type(items[0]).__name__
        if error.reason != "symbolic":
            raise
    which = "largest" if plain is max else "smallest"
    message = (
        f"{here()}: only the run knows which {kind} is the {which} one; compare numbers that they "
        f"have, and choose among these with if, such as both attributes in turn"
    )
    raise invalid("symbolic", message)


def _truth_of_all(name, combine):
    of_nothing = combine is control.both

    def found(items):
        return effects.early(f"{name}()", lambda: of_each(items), _traced)

    def of_each(items):
        given, items = items, _together(iteration.settled(items))
        if isinstance(items, ArrayWrapper):
            value = wrapped(native.method(name, items.content, (), {}))
        else:
            value = of_nothing
            for item in iteration.elements(items):
                value = combine(True, control.truth(value), lambda item=item: control.truth(item))
                if not _traced(value) and value is not of_nothing:
                    break
        note_searched(given, value if _traced(value) else value is not of_nothing)
        return value

    found.__doc__ = f"``{name}``."
    return found


def _together(items, of_numpy=False):
    """The items of a list that a loop fills as one array; others as they are."""
    if control.is_filled(items) and items.is_of_tuples and not of_numpy:
        items.refuse("a Python function that iterates over the tuples")
    if of_numpy and isinstance(items, iteration.Range):
        return items.as_array()
    return items.stacked() if control.is_filled(items) else items


def _sum(items, start=0):
    add = conversion.runtime().binary
    items = _together(items)
    if isinstance(items, ArrayWrapper):
        added = items.sum(axis=0)
        if items.dtype.kind in "iu" and not is_numbas():  # one by one, NumPy's keep their dtype
            added = cast(as_tensor(native.plain(added)), items.dtype)
        found = wrapped(added)
        return found if _is_zero(start) else add("Add", start, found)
    for item in iteration.elements(items):
        is_sum = _is_zero(start) and isinstance(item, Tensor) and item.dtype.kind != "b"
        start = item if is_sum else add("Add", start, item)  # 0 + True is 1
    return start


def _sorted(items, *, key=None, reverse=False):
    """``sorted``."""
    return in_order(items, _callable(key), reverse)


def _is_zero(value):
    return type(value) is int and value == 0


def _pow(base, exponent, modulus=None):
    if modulus is None:
        return conversion.runtime().binary("Pow", base, exponent)
    if native.is_known((base, exponent, modulus)):
        return pow(base, exponent, modulus)
    return _power_modulo(*(as_tensor(native.plain(v)) for v in (base, exponent, modulus)))


#: The square of each smaller number is an int64.
_SQUARED = 3_037_000_499


def _power_modulo(base, exponent, modulus):
    """``pow`` of three integers, by squaring."""
    if any(value.dtype.kind not in "iu" for value in (base, exponent, modulus)):
        raise TypeError(f"{here()}: pow() with a modulus is for integers")
    base, exponent, modulus = (cast(value, np.int64) for value in (base, exponent, modulus))
    message = (
        f"{here()}: pow() with a modulus: the exponent is negative, or the modulus is 0 or greater "
        f"than {_SQUARED}, so that squares may not fit into int64"
    )
    holds = arithmetic.logical_and(exponent >= 0, modulus != 0)
    holds = arithmetic.logical_and(holds, abs(modulus) <= _SQUARED)
    effects.check(holds, invalid("value", message))
    modulus = arithmetic.where(holds, modulus, 1)

    def iteration(left, factor, found):
        more = arithmetic.where(left % 2 == 1, found * factor % modulus, found)
        return left // 2, factor * factor % modulus, more

    return while_loop(
        lambda left, *_: left > 0, iteration, (exponent, base % modulus, 1 % modulus)
    )[2]


def _setattr(owner, name, value):
    if not isinstance(name, str):
        kind = identity.called_by_python(name)
        raise TypeError(f"{here()}: attribute name must be string, not {kind!r}")
    conversion.runtime().set_attribute(value, owner, name)


def _delattr(owner, name):
    note_place(Attribute(owner, name))
    delattr(owner, name)


def _divmod(a, b):
    if not (_traced(a) or _traced(b)):
        return divmod(a, b)
    binary = conversion.runtime().binary
    rest = binary("Mod", a, b)
    return binary("FloorDiv", a, b), rest


def _isinstance(value, kinds):
    value = unwrapped(value)
    if isinstance(value, Chosen):
        return value.of_each(lambda constant: _isinstance(constant, kinds))
    if is_maybe(value):
        found = _isinstance(value.parts.value, kinds)
        return control.both(True, value.parts.present, lambda: True) if found else False
    if not isinstance(value, Tensor):
        note_class(value)
        return isinstance(value, _real_classes(kinds))
    # object is asked for last: the classes of tensors, by users of graphs
    classes = _real_classes(kinds)
    return identity.is_instance(value, classes) or _is_tensor_of(value, classes)


def _real_classes(kinds):
    """What ``isinstance`` may ask for, with Python's classes in place of those of numbers."""
    if isinstance(kinds, tuple):
        return tuple(map(_real_classes, kinds))
    if isinstance(kinds, JitClassType):
        return kinds, python_class(kinds)
    return kinds.kinds if isinstance(kinds, identity.Class) else kinds


def _is_tensor_of(value, kinds):
    """Whether one of nbta's own classes is asked for, and a value is of it."""
    if isinstance(kinds, tuple):
        return any(_is_tensor_of(value, kind) for kind in kinds)
    if isinstance(kinds, types.UnionType):
        return _is_tensor_of(value, kinds.__args__)
    return issubclass(kinds, Tensor) and isinstance(value, kinds)


# NumPy.


def _in_dtype(function):
    """A function that joins such a list, of which ``dtype=`` and ``casting=`` are NumPy's."""

    def joined(listing, dtype=None, casting="same_kind", **axis):
        found = function(listing, **axis)
        if dtype is None or found.dtype == dtype:
            return found
        return found.astype(dtype, casting=casting)

    one = inspect.signature(function).parameters.values()
    more = inspect.signature(joined).parameters.values()
    joined.__signature__ = inspect.Signature([*one, *list(more)[1:3]])
    return joined


def _stacked(listing, axis=0):
    """``np.stack`` of such a list."""
    found = listing.stacked()
    if axis == 0:
        return found
    order = list(range(1, found.ndim))
    order.insert(axis % found.ndim, 0)
    return found.transpose(order).copy()


def _joined(listing, axis=0):
    """``np.concatenate`` of such a list."""
    if axis != 0 or not listing.array.element_shape:
        listing.refuse("joining numbers, or along another axis than the first,")
    filled = listing if listing.slots is None else listing.copy()
    return wrapped(filled.array.concat().value)


def _stacked_rows(listing):
    """``np.vstack`` of such a list."""
    rank = len(listing.array.element_shape)
    return listing.stacked() if rank == 1 else _joined(listing)


def _numpy(function, args, kwargs):
    """A function of NumPy's, whose arguments are honoured or refused by their names."""
    if isinstance(function, np.ufunc) and len(args) > function.nin:
        args, kwargs = args[: function.nin], {**kwargs, "out": args[function.nin :]}
    if function is np.arange and (args or kwargs):
        args, kwargs = _ends(*args, **kwargs)
    args, kwargs = _bound(function, tuple(map(used, args)), kwargs)
    args, kwargs = _with_numbers(function, args, kwargs)
    if kwargs.get("out") is not None:
        return _into(function, args, kwargs)
    order = _layout_of(function, kwargs)
    own = _OF_LISTS.get(getattr(function, "__name__", ""))
    if args and own is not None and control.is_filled(args[0]):
        return own(*args, **_honoured(function, own, args, kwargs))
    args = tuple(list(a) if isinstance(a, deque) else _together(a, of_numpy=True) for a in args)
    special = _OF_NUMPY.get(known_as(function))
    if special is not None:
        known = native.is_known((args, kwargs))
        if not known or not strange(special, args, kwargs):
            found = special(*args, **_honoured(function, special, args, kwargs))
            if found is not NotImplemented:
                return _in_order(_laid(function, found, args), order)
    if native.is_known((args, kwargs)):
        return _in_order(_known_numpy(function, args, kwargs), order)
    found = wrapped(_symbolic_numpy(function, native.plain(args), native.plain(kwargs)))
    found = _linked(found, args) if function.__name__ in _SHARING else found
    return _in_order(_laid(function, found, args), order)


def _with_numbers(function, args, kwargs):
    """Arguments in which Python's numbers, which only the run knows, have the dtypes of NumPy."""
    if isinstance(function, np.ufunc):
        args = python_numbers.as_operands(function, *args) if len(args) == 2 else args
    elif function is np.where and len(args) == 3:
        args = (args[0], *python_numbers.as_alternatives(*args[1:]))
    elif function is np.choose:
        kwargs = {**kwargs, "choices": python_numbers.as_alternatives(*kwargs["choices"])}
    elif function is np.select:
        given = *kwargs["choicelist"], kwargs.get("default", 0)
        *choices, default = python_numbers.as_alternatives(*given)
        kwargs = {**kwargs, "choicelist": choices, "default": default}
    elif function is np.insert and isinstance(args[0], ArrayWrapper):
        values = native.settled(native.plain(kwargs["values"]), args[0].dtype)
        kwargs = {**kwargs, "values": values}
    elif function is np.clip:
        names = ("min", "max") if "min" in kwargs or "max" in kwargs else ("a_min", "a_max")
        limits = python_numbers.as_limits(args[0], *map(kwargs.get, names))
        kwargs = {**kwargs, **dict(zip(names, limits, strict=True))}
    return args, kwargs


def _ends(start=None, stop=None, step=1, dtype=None, **options):
    """Arguments of `np.arange`, which takes more forms than its signature has."""
    if dtype is not None:
        options["dtype"] = dtype
    if stop is None or start is None:
        start, stop = 0, start if stop is None else stop
    return (start, stop, step), options


def _arange(start, stop, step=1, dtype=None):
    """``np.arange`` of bounds that only the run knows."""
    given = native.plain((start, stop, step))
    return NotImplemented if native.is_known(given) else wrapped(filling.arange(*given, dtype))


def _bound(function, args, kwargs):
    """Arguments bound to NumPy's signature; its error, with the line, for others."""
    try:
        return settled(function, args, kwargs)
    except Exception as error:
        raise at_line(error) from None


def _honoured(function, ours, args, kwargs):
    """Arguments by name, of which what stands for a function takes each."""
    unknown = strange(ours, args, kwargs)
    if unknown:
        raise refused_argument(known_as(function), unknown, here())
    return kwargs


#: Functions whose ``order`` says in which order they read, or fields to sort by, and not how their
#: result lies in memory.
_READING = {
    "ravel", "reshape", "ravel_multi_index", "unravel_index", "sort", "argsort", "partition",
    "argpartition",
}  # fmt: skip
#: Functions that make arrays by their shape, which lie in one of two orders.
_MAKING = {"zeros", "ones", "empty", "full", "eye"}


def _layout_of(function, kwargs):
    """In which order the result is to lie in memory, taken out of the arguments by name."""
    name = getattr(function, "__name__", "")
    order = kwargs.get("order")
    if name == "asfortranarray":
        return "F"
    if not isinstance(order, str) or order not in "CFAK" or name in _READING:
        return None
    if len(order) != 1 or (name in _MAKING and order in "AK"):
        raise ValueError(f"{here()}: order={order!r} is not an order of np.{name}")
    return kwargs.pop("order")


#: Functions whose results lie in C's order, whatever their arguments do.
_IN_C_ORDER = {"matmul", "dot", "ascontiguousarray", "take", "outer"}


def _laid(function, found, args):
    """A result that lies as its arguments do, where that is not C's order."""
    return found if function.__name__ in _IN_C_ORDER else laid_as(found, args)


def _in_order(found, order):
    """A result that lies in memory with its first axis fastest, if that is asked for."""
    if order == "C" and isinstance(found, ArrayWrapper) and not isinstance(found, View):
        found.apart = False
    if order != "F" or not isinstance(found, ArrayWrapper) or found.ndim < 2 or is_turned(found):
        return found
    return found.transpose().copy().transpose()


def is_turned(wrapper):
    """Whether an array is known to lie with its first axis fastest."""
    turned = (
        isinstance(wrapper, View) and isinstance(wrapper.step, AxesStep) and wrapper.base.together
    )
    return turned and list(wrapper.step.axes) == list(range(wrapper.ndim))[::-1]


def _into(function, args, kwargs):
    """A call that leaves what it computes in arrays that it is given."""
    kwargs = dict(kwargs)
    out = kwargs.pop("out")
    name, elementwise = known_as(function) or function.__name__, isinstance(function, np.ufunc)
    where = kwargs.pop("where", True) if elementwise else True
    targets = out if isinstance(out, tuple) else (out,)
    found = call(function, *args, **kwargs)
    results = found if len(targets) > 1 else (found,)
    given = [
        result if target is None else _left_in(name, elementwise, target, result, where)
        for target, result in zip(targets, results, strict=True)
    ]
    return tuple(given) if len(given) > 1 else given[0]


def _left_in(name, elementwise, target, result, where):
    """An array that takes a result as ``out=``."""
    what = f"{here()}: np.{name} with out="
    if not isinstance(target, ArrayWrapper) or name.startswith("fft."):
        raise invalid("symbolic", f"{what}: nbta does not take it here; assign to array[...]")
    have, want = native.dtype_of(result), target.dtype
    if have != want and not (elementwise and np.can_cast(have, want, "same_kind")):
        message = f"{what}: the array is of {want}, and the result of {have}"
        raise invalid("dtype", f"{message}; assign to array[...], which casts")
    shapes = (np.shape(result) if native.is_known(result) else result.shape), target.shape
    if not elementwise and len(shapes[0]) != len(shapes[1]):
        message = f"{what}: the array has {len(shapes[1])} axes, and the result {len(shapes[0])}"
        raise invalid("shape", message)
    target[...] = result if where is True else call(np.where, where, result, target)
    return target


def _linked(found, args):
    """What NumPy gives as views of its arguments: to change one spoils the other."""
    sources = [arg for arg in args if isinstance(arg, ArrayWrapper)]
    for part in found if isinstance(found, list | tuple) else [found]:
        for source in sources if isinstance(part, ArrayWrapper) else ():
            link(part, source.root)
            part.read_only = common_read_only(sources)
    return found


def _known_numpy(function, args, kwargs):
    """NumPy's own function, whose results are arrays of their own."""
    if (outside := reading()) is not None:
        outside.native((*args, *kwargs.values()))
    given = native.plain(args), native.plain(kwargs)
    with np.errstate(all="ignore"):
        found = function(*given[0], **given[1])
    sources = [a for a in args if isinstance(a, ArrayWrapper)]
    return _own(found, sources)


def _own(found, sources):
    if isinstance(found, list | tuple):
        return type(found)(_own(part, sources) for part in found)
    if not isinstance(found, np.ndarray) or not found.ndim:
        return wrapped(found)
    for source in sources:
        if found is source.content:
            return source
    shared = [s for s in sources if np.may_share_memory(found, s.content)]
    copy = ArrayWrapper(found.copy() if shared else found)
    copy.read_only = made_read_only(found, [source.content for source in shared])
    copy.read_only = copy.read_only or (bool(shared) and common_read_only(shared))
    for source in shared:
        link(copy, source.root)
    return copy


def _symbolic_numpy(function, args, kwargs):
    ours, shared = OF_NUMPY.get(known_as(function), (None, 0))
    kwargs = sensible(kwargs)
    if ours is not None and isinstance(function, np.ufunc) and not kwargs:
        return called_in_dtypes(function, ours, args)
    if ours is not None and shared is not None:
        kwargs = in_our_names(function, ours, shared, kwargs)
        if len(args) <= shared:
            return ours(*args, **_honoured(function, ours, args, kwargs))
    elif ours is not None and not kwargs:
        return ours(*args)
    try:
        return function(*args, **kwargs)
    except TypeError as error:
        if isinstance(error, NbtaError) or not isinstance(function, np.ufunc):
            raise
        raise TypeError(f"{here()}: np.{function.__name__}: {error}") from None  # no such loop
    except NbtaError as error:
        if function.__name__ not in str(error):
            lead(error, _unknown_to(f"np.{known_as(function)}", function.__name__, kwargs))
        raise


def _unknown_to(what, name, kwargs=()):
    """Who could not do with a tensor, and what can."""
    given = "".join(f", and {each}=" for each in kwargs)
    return (
        f"{here()}: {what} was called with values that are known only when the function runs"
        f"{given}; {nearest(name)}"
    )


def _scipy(function, args, kwargs):
    """A function of SciPy's, whose arguments are honoured or refused by their names."""
    name = known_as(function)
    if native.is_known((args, kwargs)):
        return _foreign(function, args, kwargs)
    if name in followed.FUNCTIONS:
        ours = followed.FUNCTIONS[name]
        args, kwargs = _bound(function, args, kwargs)
        return _converted(ours, args, _honoured(function, ours, args, kwargs))
    if name not in OF_NUMPY:
        return _foreign(function, args, kwargs)
    ours, shared = OF_NUMPY[name]
    if shared is not None and shared != math.inf:
        args, kwargs = _bound(function, args, kwargs)
        kwargs = in_our_names(function, ours, shared, kwargs)
        kwargs = _honoured(function, ours, args, kwargs)
    return wrapped(ours(*native.plain(args), **native.plain(kwargs)))


def _new(fill):
    """An array of one value, which code fills where it needs it."""

    def make(shape, dtype=None):
        dtype = np.dtype(float if dtype is None else _dtype(dtype))
        return _constant_array(native.plain(shape), fill, dtype)

    return make


def _dtype(dtype):
    """A dtype, also of Numba's or as a type of Python's."""
    if hasattr(dtype, "as_numpy_dtype"):
        return dtype.as_numpy_dtype
    text = str(dtype)
    return np.dtype(text) if _library(type(dtype)) == "numba" else dtype


def _constant_array(shape, value, dtype):
    if dtype.names is not None:
        return empty_records(shape, dtype)
    value = native.plain(value)
    if native.is_known((shape, value)):
        array = np.full(shape, value, dtype)
        fixed = np.asarray(value, dtype)[()]
        return ArrayWrapper(array, maker=lambda: filling.fill(array.shape, fixed))
    value = python_numbers.stored(value, dtype)
    value = value if isinstance(value, Tensor) else np.asarray(value, dtype)[()]
    value = cast(value, dtype) if isinstance(value, Tensor) and value.dtype != dtype else value
    return new_array(filling.fill(shape, value))


def _full(shape, fill_value, dtype=None):
    value = native.plain(fill_value)
    if dtype is None:
        dtype = value.dtype if hasattr(value, "dtype") else np.asarray(value).dtype
    return _constant_array(native.plain(shape), value, np.dtype(_dtype(dtype)))


def _is_number(value):
    """Whether a value is a number of the run, of whose kind NumPy makes arrays without axes."""
    return identity.is_run_number(value) and value.spec.rank == 0


def _like(fill):
    def make(array, dtype=None, shape=None):
        if isinstance(array, Records) and dtype is None:
            return empty_records(array.shape if shape is None else shape, array.dtype)
        if not (isinstance(array, ArrayWrapper) or _is_number(array)):
            return NotImplemented
        if dtype is None and isinstance(array, ArrayWrapper):
            array.check_one_dtype("what an array is made like")
        kind = np.dtype(array.dtype if dtype is None else _dtype(dtype))
        if shape is not None:
            return _constant_array(native.plain(shape), fill, kind)
        shape = array.shape
        if not native.is_known(shape) or shape is None:
            return new_array(filling._full_like(array._shaped, fill, kind, None))
        return _constant_array(shape, fill, kind)

    return make


def _full_like(a, fill_value, dtype=None, shape=None):
    if not (isinstance(a, ArrayWrapper) or _is_number(a)):
        return NotImplemented
    if dtype is None and isinstance(a, ArrayWrapper):
        a.check_one_dtype("what an array is made like")
    return _full(
        a.shape if shape is None else shape, fill_value, a.dtype if dtype is None else dtype
    )


def array(values, dtype=None, copy=True, ndmin=0):
    """``np.array``: a copy, unless it says that there need not be one."""
    if not copy:
        found = _asarray(values, dtype, copy=copy)
    else:
        found = _copied_array(values, dtype)
    missing = ndmin - found.ndim if isinstance(found, ArrayWrapper) else 0
    return found[(*[None] * missing, ...)] if missing > 0 else found


def _copied_array(values, dtype):
    values = values if dtype is None else python_numbers.stored(values, np.dtype(_dtype(dtype)))
    values = _together(values)
    if isinstance(values, ArrayWrapper):
        copy = values.copy()
        keeps = dtype is None or (dtype == copy.dtype and copy.chosen_dtypes is None)
        return copy if keeps else made(copy.astype(dtype))
    if native.is_known(values):
        return _known_number(values, dtype)
    if isinstance(values, list | tuple):
        found = native.together(values)
        return made(found if dtype is None else cast(found, np.dtype(_dtype(dtype))))
    if isinstance(values, SymbolicTensorArray):
        return wrapped(values.stack())
    found = as_tensor(values)
    return new_array(found if dtype is None else cast(found, np.dtype(_dtype(dtype))))


def _known_number(value, dtype):
    """An array of no axes, of a number that Python knows."""
    if not isinstance(value, bool | int | float | complex | np.number | np.bool_):
        return NotImplemented
    return ArrayWrapper(np.array(value, None if dtype is None else _dtype(dtype)))


def _fromiter(iter, dtype, count=-1):
    """``np.fromiter``."""
    held = isinstance(iter, list | tuple | range | np.ndarray | ArrayWrapper | Tensor)
    items = iter if held else _list(iter)
    if native.is_known((items, count)):
        return made(np.fromiter(native.plain(items), _dtype(dtype), count))
    found = array(items, dtype)
    if found.ndim != 1:
        raise ValueError(f"{here()}: np.fromiter takes numbers, and one of the items is a sequence")
    if isinstance(count, int) and count == -1:
        return found
    length, count = found.shape[0], native.plain(count)
    short = ValueError(f"{here()}: np.fromiter: fewer items than count=")
    if not native.is_known((length, count)):
        effects.check(arithmetic.less_equal(count, length), short)
    elif length < count:
        raise short
    return found[:count]


def _asarray(values, dtype=None, copy=None):
    if copy:
        return array(values, dtype)
    if isinstance(values, ArrayWrapper) and (
        dtype is None or np.dtype(_dtype(dtype)) == values.dtype
    ):
        return values
    if not isinstance(values, ArrayWrapper) and native.is_known(values):
        return NotImplemented
    if copy is not None:
        message = "copy=False: a copy is needed, as the dtype differs or the value is not an array"
        raise ValueError(f"{here()}: {message}")
    return _copied_array(values, dtype)


def _contiguous(values, dtype=None):
    """``np.ascontiguousarray``."""
    found = _asarray(values, dtype)
    return found if found is not values or values.together else values.copy()


def _require(a, dtype=None, requirements=None):
    """``np.require``, without what an array of NumPy's has in any case."""
    asked = requirements.upper() if isinstance(requirements, str) else requirements or ()
    letters = {str(each).upper()[:1] for each in asked}
    if letters & {"F", "E"}:
        raise refused_argument("require", "requirements=", here())
    return (_contiguous if "C" in letters else _asarray)(a, dtype)


def _transpose(a, axes=None):
    return a.transpose(axes) if isinstance(a, ArrayWrapper) else NotImplemented


def _swapaxes(a, axis1, axis2):
    return a.swapaxes(axis1, axis2) if isinstance(a, ArrayWrapper) else NotImplemented


def _moveaxis(a, source, destination):
    return a.moveaxis(source, destination) if isinstance(a, ArrayWrapper) else NotImplemented


def _reshape(a, shape, order="C", copy=None):
    return (
        a.reshape(shape, order=order, copy=copy) if isinstance(a, ArrayWrapper) else NotImplemented
    )


def _ravel(a, order="C"):
    return a.ravel(order) if isinstance(a, ArrayWrapper) else NotImplemented


def _copy(a):
    """``np.copy``, also of numbers and lists."""
    return array(a)


def _squeeze(a, axis=None):
    return a.squeeze(axis) if isinstance(a, ArrayWrapper) else NotImplemented


def _expand_dims(a, axis):
    return a.expand_dims(axis) if isinstance(a, ArrayWrapper) else NotImplemented


def _flip(m, axis=None):
    return m.flip(axis) if isinstance(m, ArrayWrapper) else NotImplemented


def _einsum(subscripts, *operands, optimize=False):
    """``np.einsum``, which gives views where it only puts axes in another order."""
    axes = _order_of_axes(subscripts, operands)
    if axes is not None:
        return operands[0].transpose(axes)
    if not (
        isinstance(subscripts, str) and len(operands) == 1 and isinstance(operands[0], ArrayWrapper)
    ):
        return NotImplemented
    given, arrow, left = subscripts.replace(" ", "").partition("->")
    is_diagonal = len(set(given)) < len(given) and set(given) == set(left) and arrow
    if not is_diagonal or native.is_known(operands):
        return NotImplemented
    if len(given) == 2:
        return operands[0].diagonal_view()
    found = wrapped(_symbolic_numpy(np.einsum, native.plain((subscripts, *operands)), {}))
    return _linked(found, operands)


def _order_of_axes(subscripts, operands):
    """Which order of the axes of its one operand einsum gives; None where it computes."""
    if not (
        isinstance(subscripts, str) and len(operands) == 1 and isinstance(operands[0], ArrayWrapper)
    ):
        return None
    given, arrow, left = subscripts.replace(" ", "").partition("->")
    left = left if arrow else "".join(sorted(given))
    simple = given.isalpha() and len(set(given)) == len(given) == operands[0].ndim
    return (
        [given.index(each) for each in left] if simple and sorted(given) == sorted(left) else None
    )


def _size(a, axis=None):
    """``np.size``: a length, as ``a.size`` is."""
    if not isinstance(a, ArrayWrapper):
        return NotImplemented
    if axis is None:
        return a.size
    found = [a.shape[each] for each in normalized_axes(axis, a.ndim)]
    return functools.reduce(operator.mul, found, 1)


def _shape(a):
    """``np.shape``: lengths, as ``a.shape`` has."""
    return a.shape if isinstance(a, ArrayWrapper) and a.shape is not None else NotImplemented


def _atleast(rank):
    def make(*arrays):
        if native.is_known(arrays):
            return NotImplemented
        found = tuple(map(one, arrays))
        return found[0] if len(found) == 1 else found

    def one(array):
        if isinstance(array, list | tuple):
            array = wrapped(native.together(array))
        elif not isinstance(array, ArrayWrapper):
            array = wrapped(joining.stack([native.plain(array)]))
        if array.ndim >= rank:
            return array
        middle, after = (rank == 3 and array.ndim == n for n in (1, 2))
        front = (None,) * (rank - array.ndim)
        return array[(None, ..., None) if middle else (..., None) if after else front]

    return make


def _matrix_transpose(array):
    return array.swapaxes(-1, -2) if isinstance(array, ArrayWrapper) else NotImplemented


def _meshgrid(*rows, copy=True, sparse=False, indexing="xy"):
    """With views of the rows where no copies are asked for."""
    if native.is_known(rows):
        return NotImplemented
    found = wrapped(arranging.meshgrid(*native.plain(rows), sparse=sparse, indexing=indexing))
    return found if copy else _linked(found, rows)


def _mapdomain(x, old, new):
    """`numpy.polynomial.polyutils.mapdomain`, which asks for the class of a number first."""
    if native.is_known((x, old, new)):
        return _known_numpy(polyutils.mapdomain, (x, old, new), {})
    offset, scale = call(polyutils.mapparms, old, new)
    return offset + scale * x


def _rot90(m, k=1, axes=(0, 1)):
    """Views of views, as NumPy has it."""
    if not isinstance(m, ArrayWrapper) or not native.is_known((k, axes)) or len(axes) != 2:
        return NotImplemented
    one, other = (axis % m.ndim for axis in axes)
    if one == other or k % 4 == 0:
        return NotImplemented if one == other else m[...]
    if k % 4 == 2:
        return m.flip((one, other))
    turned = m.flip(other).swapaxes(one, other) if k % 4 == 1 else m.swapaxes(one, other)
    return turned if k % 4 == 1 else turned.flip(other)


def _rollaxis(a, axis, start=0):
    if not isinstance(a, ArrayWrapper) or not -a.ndim <= axis < a.ndim:
        return NotImplemented
    axis, start = axis % a.ndim, start + a.ndim * (start < 0)
    return a.moveaxis(axis, start - (axis < start))


def _identity(n, dtype=None):
    """As `nbta.identity` is another function."""
    return (
        NotImplemented
        if native.is_known(n)
        else made(diagonals.eye(n, dtype=float if dtype is None else dtype))
    )


def _fill_diagonal(a, val, wrap=False):
    dimensions = a.shape
    if wrap or len(dimensions) != 2:
        message = (
            f"{here()}: np.fill_diagonal takes a matrix and no wrap=; otherwise write a loop over "
            "a[i, i]"
        )
        raise UnimplementedError(message)
    places = filling.arange(iteration.least(dimensions))
    a[places, places] = val


def _ndim(array):
    if isinstance(array, list | tuple) and not native.is_known(array):
        array = native.together(array)
    return array.ndim if isinstance(array, Tensor) else NotImplemented


def _isscalar(element):
    if isinstance(element, Tensor):
        return not isinstance(element, ArrayWrapper) and element.ndim == 0
    return np.isscalar(element)


def _by_dtypes(function):
    """A function of NumPy's that asks arrays and numbers for their dtypes alone."""

    def called(*arrays):
        return function(*map(_sample, arrays))

    return called


def _sample(value):
    """Something of the dtype of an array or number, and as weak as that."""
    if not isinstance(value, Tensor):
        return value
    if isinstance(value, ArrayWrapper):
        value.check_one_dtype("asked for its dtype")
    return value.weak(0) if value.weak else np.zeros((1,) * (value.ndim or 0), value.dtype)[()]


def _put_along_axis(arr, indices, values, axis):
    arr.check_writable()
    given = native.plain(indices), native.settled(native.plain(values), arr.dtype)
    if native.is_known((arr, *given)):
        found = np.array(arr.content)
        np.put_along_axis(found, *given, axis)
    else:
        found = places.put_along_axis(arr.itself, *given, axis)
    arr[...] = found


def _put(a, ind, v, mode="raise"):
    """``np.put``: items of the array in one row."""
    found = wrapped(places.put_along_axis(*_in_one_row(a, ind, v, mode), 0))
    a[...] = found.reshape(a.shape)


def _in_one_row(target, indices, values, mode):
    target.check_writable()
    numbers, values = (
        native.together(part) if isinstance(part, list | tuple) else native.plain(part)
        for part in (indices, values)
    )
    numbers = reshape(numbers, (-1,))
    count = values.size if isinstance(values, Tensor) else np.size(values)
    if mode != "raise" or (count != 1 and count != numbers.shape[0]):
        message = (
            f"{here()}: np.put takes one value, or one for each index, and no mode=; otherwise "
            "write a.flat[indices] = values"
        )
        raise UnimplementedError(message)
    values = reshape(native.settled(values, target.dtype), () if count == 1 else (-1,))
    return reshape(target.itself, (-1,)), numbers, values


def _putmask(a, mask, values):
    """``np.putmask``, which puts values at their own places, over and over."""
    if not isinstance(a, ArrayWrapper):
        return NotImplemented
    if np.ndim(native.plain(values)) if native.is_known(values) else values.ndim:
        return _copyto(a, call(np.resize, values, a.shape), where=mask)
    a[mask] = values
    return None


def _place(arr, mask, vals):
    """``np.place``, which puts values one after another where a mask is true, over and over."""
    if not isinstance(arr, ArrayWrapper):
        return NotImplemented
    vals = call(np.ravel, call(np.asarray, vals, arr.dtype))
    mask = call(np.ravel, mask).astype(bool)
    order = (call(np.cumsum, mask) - 1) % call(len, vals)
    _copyto(arr, call(np.reshape, vals[order], arr.shape), where=call(np.reshape, mask, arr.shape))
    return None


def _copyto(dst, src, casting="same_kind", where=True):
    """``np.copyto``, of the places where a condition holds."""
    if not isinstance(dst, ArrayWrapper):
        return NotImplemented
    weak = isinstance(src, bool | int | float | complex) and not isinstance(src, np.generic)
    weak = weak or python_numbers.is_noted(src)
    if not weak and not np.can_cast(native.dtype_of(src), dst.dtype, casting):
        message = f"from {native.dtype_of(src)} to {dst.dtype} according to the rule {casting!r}"
        raise TypeError(f"{here()}: np.copyto: there is no cast {message}")
    dst[...] = src if where is True else call(np.where, where, src, dst)
    return None


def _nan_to_num(x, copy=True, nan=0.0, posinf=None, neginf=None):
    """``np.nan_to_num``, which may leave its result where it found the numbers."""
    if copy or not isinstance(x, ArrayWrapper):
        return NotImplemented
    x[...] = call(np.nan_to_num, x, nan=nan, posinf=posinf, neginf=neginf)
    return x


def _nonzero(a):
    if native.is_known(a):
        return NotImplemented
    return wrapped(nonzero(native.plain(a)))


def _flatnonzero(a):
    return (
        _nonzero(a.ravel())[0] if isinstance(a, ArrayWrapper) and not a.is_known else NotImplemented
    )


def _argwhere(a):
    return NotImplemented if native.is_known(a) else call(np.stack, _nonzero(a), 1)


def _where(condition, *ways):
    return NotImplemented if ways else _nonzero(condition)


def _unique(
    ar, return_index=False, return_inverse=False, return_counts=False, axis=None,
    *, equal_nan=True, sorted=True,
):  # fmt: skip
    """``np.unique``, whose items are always in order."""
    if native.is_known(ar):
        return NotImplemented
    if axis is not None:
        rank = call(np.ndim, ar)
        normalized_axes(axis, rank)
        if rank != 1:
            message = (
                f"{here()}: np.unique with axis=, of rows that only the run knows; make a number "
                f"of each row, or loop over the rows"
            )
            raise invalid("symbolic", message)
    options = (return_index, return_inverse, return_counts, equal_nan)
    return _converted(followed.unique, (ar, *options), {})


def _extract(condition, arr):
    """``np.extract``."""
    if native.is_known(condition):
        return NotImplemented
    return call(np.take, call(np.ravel, arr), _flatnonzero(condition))


def _compress(condition, a, axis=None):
    """``np.compress``."""
    if native.is_known(condition):
        return NotImplemented
    return call(np.take, a, _flatnonzero(condition), axis)


def _method_of_universal(function, args, kwargs):
    """``np.add.reduce`` and its like."""
    owner, name = function.__self__, function.__name__
    if name not in METHODS_OF_UFUNCS or (name != "at" and native.is_known((args, kwargs))):
        return _foreign(function, args, kwargs)

    def into(found, out):
        if out is None:
            return found
        return _left_in(f"{owner.__name__}.{name}", False, out, found, True)

    args = tuple(_together(arg, of_numpy=True) for arg in args)
    return call_method(owner, name, args, kwargs, into)


def _append(arr, values, axis=None):
    if native.is_known((arr, values)):
        return NotImplemented
    parts = [native.together(v) if isinstance(v, list | tuple) else native.plain(v)
             for v in (arr, values)]  # fmt: skip
    return wrapped(arranging.append(*parts, axis))


_OF_NUMPY = {
    "zeros": _new(0), "ones": _new(1), "empty": _new(0), "full": _full,
    "zeros_like": _like(0), "ones_like": _like(1), "empty_like": _like(0),
    "full_like": _full_like, "array": array, "asarray": _asarray, "asanyarray": _asarray,
    "copy": _copy, "ascontiguousarray": _contiguous, "asfortranarray": _asarray, "ravel": _ravel,
    "require": _require, "reshape": _reshape, "transpose": _transpose, "size": _size,
    "shape": _shape, "einsum": _einsum, "fill_diagonal": _fill_diagonal, "copyto": _copyto,
    "fromiter": _fromiter, "arange": _arange,
    "result_type": _by_dtypes(np.result_type), "common_type": _by_dtypes(np.common_type),
    "ndim": _ndim, "isscalar": _isscalar, "put_along_axis": _put_along_axis, "put": _put,
    "putmask": _putmask, "place": _place,
    "atleast_1d": _atleast(1), "atleast_2d": _atleast(2), "atleast_3d": _atleast(3),
    "append": _append, "rot90": _rot90, "matrix_transpose": _matrix_transpose,
    "meshgrid": _meshgrid, "rollaxis": _rollaxis, "identity": _identity,
    "swapaxes": _swapaxes, "moveaxis": _moveaxis, "squeeze": _squeeze,
    "expand_dims": _expand_dims, "flip": _flip,
    "nan_to_num": _nan_to_num, "nonzero": _nonzero, "flatnonzero": _flatnonzero,
    "argwhere": _argwhere, "where": _where, "unique": _unique,
    "extract": _extract, "compress": _compress,
    "flipud": lambda m: _flip(m, 0), "fliplr": lambda m: _flip(m, 1), **read_views.FUNCTIONS,
}  # fmt: skip
#: Functions of NumPy whose results are views of what they are given.
_SHARING = {
    "split", "array_split", "hsplit", "vsplit", "dsplit", "rollaxis", "rot90", "atleast_3d",
    "matrix_transpose", "unstack", "broadcast_arrays",
}  # fmt: skip
#: What NumPy's functions of several arrays are for a list that a loop fills.
_OF_LISTS = {
    "stack": _in_dtype(_stacked), "vstack": _in_dtype(_stacked_rows),
    "concatenate": _in_dtype(_joined), "hstack": _in_dtype(_joined),
}  # fmt: skip


def _getattr(owner, name, *default):
    """``getattr``."""
    followed = isinstance(owner, Tensor | Record | Records)
    if followed or identity.may_be_gone(getattr(owner, name, None)):
        return identity.attribute_of(owner, name, *default)
    try:
        return conversion.outer(conversion.runtime().attribute(owner, name), name)
    except AttributeError:
        if not default:
            raise
    return default[0]


def _vars(owner):
    """``vars`` of an object."""
    found = conversion.runtime().attribute(owner, "__dict__")
    see_whole(found)
    return found


def _hasattr(owner, name):
    """``hasattr``."""
    found = identity.has_attribute(owner, name)
    if (outside := reading()) is not None and isinstance(found, bool):
        outside.read_whether(owner, name, found)
    return found


def _constant(value, *args, **kwargs):
    """`nbta.constant`: an array from outside is what it was at the trace."""
    if (outside := reading()) is not None:
        value = outside.promised(value)
    return wrapped(constant(native.plain(value), *args, **kwargs))


def _by_index(function):
    """A function of nbta's that takes or changes items by a key."""

    def called(*args, **kwargs):
        if len(args) > 1:
            check_index(args[0], args[1])
        return _called(function, args, kwargs)

    return called


def _followed(function, ours):
    """A function of a module of Python's, followed where it is given what only the run knows."""

    def called(*args, **kwargs):
        args = tuple(map(iteration.own_items, args))
        if native.is_known((args, kwargs)) and not any(map(in_trace, args)):
            return _foreign(function, args, kwargs)
        return _converted(ours, args, kwargs)

    return called


def _special():
    return {
        **{each: _followed(each, ours) for each, ours in followed.OF_PYTHON.items()},
        builtins.range: _range, builtins.len: _len, builtins.enumerate:
        iteration.enumerate_, builtins.zip: iteration.zip_, builtins.reversed:
        iteration.reversed_, builtins.int: _int, builtins.float: _float, builtins.bool: _bool,
        builtins.complex: _complex,
        builtins.abs: _abs, builtins.round: _round, builtins.sum: _sum, builtins.pow: _pow,
        builtins.divmod: _divmod, builtins.sorted: _sorted,
        builtins.getattr: _getattr, builtins.hasattr: _hasattr, builtins.vars: _vars,
        constant: _constant,
        **{each: _by_index(each) for each in (getitem, set_item, add_item)},
        builtins.setattr: _setattr, builtins.delattr: _delattr,
        builtins.min: _extreme(min),
        builtins.max: _extreme(max),
        builtins.any: _truth_of_all("any", control.any_of),
        builtins.all: _truth_of_all("all", control.both),
        builtins.isinstance: _isinstance, builtins.next: _next, builtins.iter: _iter,
        builtins.print: telling.print_, **identity.FUNCTIONS,
        copy.copy: _copied(copy.copy), copy.deepcopy: _copied(copy.deepcopy),
        np.random.default_rng: functools.partial(made_generator, np.random.default_rng),
        np.ndindex: iteration.ndindex, np.ndenumerate: iteration.ndenumerate,
        polyutils.mapdomain: _mapdomain,
        iteration.unroll: iteration.unroll, prange: iteration.range_, **operators.FUNCTIONS,
    }  # fmt: skip


_SPECIAL = _special()
#: Kinds of functions, and what calls them.
_KINDS = (
    (VECTORIZED, _universal),
    (GENERALIZED, _universal),
    (STENCIL, _stencil),
    (np.vectorize, _universal),
    (functools.partial, _partial),
    (operator.itemgetter, operators.items_of),
    (operator.attrgetter, operators.attributes_of),
    (functools._lru_cache_wrapper, _cached),
    (types.MethodType, _method),
    (types.FunctionType, _plain_function),
    (JitClassType, _compiled_class),
    (type, _made),
    (np.ufunc, _numpy),
    (types.BuiltinFunctionType, _builtin),
    (Sent, _foreign),  # has taken over the module of what it is made of, which may be NumPy
)
