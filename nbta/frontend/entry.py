"""Where users' functions come in: arrays become wrappers, and what they give tensors again."""

from __future__ import annotations

import functools
import inspect
import types
from contextlib import contextmanager, nullcontext

import numpy as np

from nbta.control.captured import guarded
from nbta.errors import NbtaError, UnimplementedError, invalid
from nbta.frontend import effects, native, runtime, source
from nbta.frontend.arguments import taken_apart
from nbta.frontend.array_wrappers import ArrayWrapper, check_apart, watched_changes, wrapped
from nbta.frontend.calls import call, is_call_alone, is_library, user_method
from nbta.frontend.conversion import converted
from nbta.frontend.lists import listing
from nbta.frontend.maybe import result_of
from nbta.frontend.outside import reading
from nbta.frontend.problems import in_pythons_words, is_pythons, unfollowed
from nbta.frontend.records import with_values
from nbta.frontend.rewriting import converted_text
from nbta.frontend.tensor_array_wrappers import in_wrapper
from nbta.graph.graph import current, locating
from nbta.graph.operation import Tensor
from nbta.locations import is_raised_here, of_error
from nbta.ops.core.dispatch import building
from nbta.ops.core.shaping import IDENTITY
from nbta.runtime.numba_private import Dispatcher
from nbta.structure import leaves, pack, paths

_INSTALLED = runtime  # converted code calls it


def prepared(function, what, convert=True, outputs=(), *, for_run=False):
    """A function for a trace: converted, or with the arrays from around it guarded.

    Parameters
    ----------
    function : callable
        The user's.
    what : str
        What messages call it.
    convert : bool
    outputs : sequence of str
        Arguments that it gives, as it leaves them, after what it gives itself.
    for_run : bool
        Whether what it gives is what a run gives, so that it may be None in some runs.
    """
    inner = _python_function(function)
    _refuse_generator(inner, what)
    if outputs and (not convert or inner is None or converted(inner) is None):
        message = f"outputs: {what} is not converted, so that it cannot fill {', '.join(outputs)}"
        raise invalid("outputs", message)
    if not (convert and inner is None and is_call_alone(function)):
        if not convert or inner is None:
            return _as_it_is(guarded(function, what))
        if converted(inner) is None:
            return _without_source(_as_it_is(guarded(function, what)), inner)

    def run(*args, **kwargs):
        graph = building(*leaves((args, kwargs)))
        with graph.as_default() if current() is None else nullcontext():
            return in_graph(*args, **kwargs)

    def in_graph(*args, **kwargs):
        names = () if inner is None else _names(function, inner)
        graph = current()
        if (outside := graph.root.outside) is not None:
            outside.given(function)
        given = [_given(value, name) for name, value in zip(names, args, strict=False)]
        given += [_given(value, None) for value in args[len(given) :]]
        with effects.ordered() as after, _placed_errors(), locating():
            named = {k: _given(v, k) for k, v in kwargs.items()}
            wrappers = leaves((given, named))  # what lists have now; the function may change them
            with watched_changes((given, named)) as changed:
                found = call(function, *given, **named)
            _note_changes(leaves((args, kwargs)), wrappers)
            if changed():
                check_apart((args, kwargs))
                graph.root.cache[_OBJECTS] = True
            found = result_of(found, inner and inner.__code__, for_run)
            if outputs:
                found = _with_outputs(found, outputs, inspect.signature(function), given, named)
            return after(native.plain(with_values(native.plain(found))))

    return run


def _refuse_generator(function, what):
    if inspect.isgeneratorfunction(function):
        code = function.__code__
        raise UnimplementedError(
            f"{what} ({code.co_filename}:{code.co_firstlineno}) is a generator; return a list "
            f"or an array"
        )


def _as_it_is(function):
    """A function that is not converted, whose results wait for what it prints."""

    def run(*args, **kwargs):
        graph = building(*leaves((args, kwargs)))
        if graph is None:
            return function(*args, **kwargs)
        if (outside := graph.root.outside) is not None:
            outside.given(function)
        with graph.as_default(), effects.ordered() as after:
            return after(function(*args, **kwargs))

    return run


def _note_changes(values, wrappers):
    """Note which arguments were changed; refuse that if another one is the same array."""
    found = current().root.cache.setdefault(_ARGUMENTS, [])
    for value, wrapper in zip(values, wrappers, strict=True):
        if not isinstance(wrapper, ArrayWrapper) or wrapper is value:
            continue
        if isinstance(value, Tensor):
            found.append((value, wrapper.label, wrapper.written))
        if not wrapper.written:
            continue
        other = next(
            (o for v, o in zip(values, wrappers, strict=True) if v is value and o is not wrapper),
            None,
        )
        if other is not None:
            message = (
                f"{wrapper.label} and {other.label} are one array, and the function changes "
                f"{wrapper.label}; give a copy"
            )
            raise invalid("aliased", message)


_ARGUMENTS = "arguments of unmodified functions"
#: In a graph's cache: arguments whose items lie in another order than C's.
APART = "arguments that lie apart"
_OBJECTS = "whether they change objects, lists or dicts among the arguments"


def arguments_of(graph) -> list:
    """What unmodified functions were given in a graph: tensor, name, and whether it changed."""
    return graph.root.cache.get(_ARGUMENTS, [])


def changes_objects(graph) -> bool:
    """Whether unmodified functions changed objects, lists or dicts that they were given."""
    return graph.root.cache.get(_OBJECTS, False)


def _with_outputs(found, outputs, signature, args, kwargs):
    """What a function gives, and after it arguments as they are now."""
    given = signature.bind(*args, **kwargs).arguments
    missing = [each for each in outputs if each not in given]
    if missing:
        message = f"outputs: there is no argument {missing[0]!r}; there are {', '.join(given)}"
        raise invalid("outputs", message)
    filled = tuple(given[each] for each in outputs)
    parts = filled if found is None else (found, *filled)
    return parts[0] if len(parts) == 1 else parts


def source_of(function) -> str | None:
    """What a function is converted to, for reading; None for what is not converted."""
    inner = _python_function(function)
    return None if inner is None or converted(inner) is None else converted_text(inner)


@contextmanager
def _placed_errors():
    """Say in errors of nbta's which line of the user's they came from.

    What came up in nbta, and says nothing to its users, becomes such an error.
    """
    try:
        yield
    except Exception as error:
        if not isinstance(error, NbtaError) and not is_raised_here(error):
            if is_pythons(error) or getattr(error, "nbta_raised", False):
                in_pythons_words(error)
                raise
            raise unfollowed(error) from error
        place = of_error(error)
        notes = getattr(error, "__notes__", ())
        if place is not None and not any(str(place) in text for text in (str(error), *notes)):
            error.add_note(f"({place})")
        raise


def _given(value, name):
    value = taken_apart(value)
    found = leaves(value)
    names = paths(value, name) if name else [None] * len(found)
    return pack(value, map(_given_leaf, found, names), listing)


def _given_leaf(leaf, name):
    """An argument as an array that may change: the caller's own stays as it is."""
    if isinstance(leaf, np.ndarray) and type(leaf) is np.ndarray and leaf.ndim:
        return wrapped(leaf.copy(), name)
    if not isinstance(leaf, Tensor):
        return in_wrapper(leaf)
    if name is not None:
        for each in (leaf if type(leaf) is Tensor else leaf.itself, origin(leaf)):
            each.graph.labels.setdefault(each, name)
    found, outside = wrapped(leaf, name), reading()
    if isinstance(found, ArrayWrapper) and origin(leaf) in current().root.cache.get(APART, ()):
        found.apart = True
    if outside is not None and isinstance(found, ArrayWrapper):
        outside.stands_for(origin(leaf), found)
    return found


def origin(tensor):
    """The tensor that one is under another name."""
    while tensor.op.record is IDENTITY:
        tensor = tensor.op.inputs[0]
    return tensor


def _names(function, inner):
    """Names of arguments by position."""
    code = inner.__code__
    names = code.co_varnames[: code.co_argcount]
    bound = isinstance(function, types.MethodType)
    return names[1:] if bound else names


def _python_function(function):
    """The user's Python function that is called in the end; None where it is no such one."""
    if isinstance(function, functools.partial):
        return _python_function(function.func)
    if isinstance(function, Dispatcher):
        return function.py_func
    if isinstance(function, types.MethodType):
        return _python_function(function.__func__)
    if isinstance(function, types.FunctionType):
        return None if is_library(function) else function
    return user_method(function)


def _without_source(guarded_function, inner):
    """A function that is traced as it is; where that does not do, the error says why."""

    def run(*args, **kwargs):
        try:
            return guarded_function(*args, **kwargs)
        except NbtaError as error:
            if error.reason in ("symbolic", "immutable"):
                raise source.no_source(inner) from error
            raise

    return run
