"""Calls of NumPy's functions, bound to the signatures that NumPy gives them.

What a call leaves as it is by default is taken out, and what is the memory's matter alone; of the
rest each argument is honoured by what stands for the function, or refused by its name.
"""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any

import numpy as np

from nbta.errors import invalid
from nbta.graph.operation import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_PLAIN = (bool, int, float, str, type(None))
_BY_PLACE = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
#: Signatures of functions in C before NumPy 2.4, which do not tell them.
_OLDER = {
    "arange": "start_or_stop, /, stop=None, step=1, *, dtype=None, device=None, like=None",
    "array": "object, dtype=None, *, copy=True, order='K', subok=False, ndmin=0, like=None",
    "asanyarray": "a, dtype=None, order=None, *, device=None, copy=None, like=None",
    "asarray": "a, dtype=None, order=None, *, device=None, copy=None, like=None",
    "ascontiguousarray": "a, dtype=None, *, like=None",
    "asfortranarray": "a, dtype=None, *, like=None",
    "bincount": "x, /, weights=None, minlength=0",
    "concatenate": "arrays, /, axis=0, out=None, *, dtype=None, casting='same_kind'",
    "copyto": "dst, src, casting='same_kind', where=True",
    "dot": "a, b, out=None",
    "empty": "shape, dtype=None, order='C', *, device=None, like=None",
    "empty_like": "prototype, /, dtype=None, order='K', subok=True, shape=None, *, device=None",
    "inner": "a, b, /",
    "lexsort": "keys, axis=-1",
    "putmask": "a, /, mask, values",
    "ravel_multi_index": "multi_index, dims, mode='raise', order='C'",
    "unravel_index": "indices, shape, order='C'",
    "vdot": "a, b, /",
    "where": "condition, x=None, y=None, /",
    "zeros": "shape, dtype=None, order='C', *, device=None, like=None",
}
_OF_UFUNCS = "*, where=True, casting='same_kind', order='K', dtype=None, subok=True, signature=None"


@functools.cache
def signature_of(function: Callable) -> inspect.Signature | None:
    """The signature of a function of NumPy's; None where nobody knows."""
    try:
        return inspect.signature(function)
    except ValueError:
        pass
    if isinstance(function, np.ufunc):
        names = ", ".join(f"x{k + 1}" for k in range(function.nin))
        text = f"{names}, /, out=None, {_OF_UFUNCS}"
    else:
        text = _OLDER.get(getattr(function, "__name__", ""))
    if text is None or _of_methods(function):
        return None
    return inspect.signature(eval(f"lambda {text}: None"))


def _of_methods(function):
    return hasattr(function, "__objclass__") or isinstance(
        getattr(function, "__self__", None), np.ndarray | np.ufunc
    )


def is_default(value: Any, default: Any) -> bool:
    """Whether an argument is what a function takes where it is left out."""
    if value is default:
        return True
    if type(value) is tuple and type(default) is tuple:
        return len(value) == len(default) and all(map(is_default, value, default))
    return type(value) is type(default) and type(value) in _PLAIN and value == default


#: Arguments that say of what kind of object the result is, or on which device: there is one. Of
#: SciPy's those that let it change what it is given, or leave out a check.
_IDLE = {
    "subok": lambda value: isinstance(value, bool),
    "device": lambda value: value == "cpu",
    "like": lambda value: isinstance(value, np.ndarray | Tensor),
    "check_finite": lambda value: isinstance(value, bool),
    "overwrite_a": lambda value: isinstance(value, bool),
    "overwrite_b": lambda value: isinstance(value, bool),
    "lwork": lambda value: value is None or isinstance(value, int),
}


def settled(
    function: Callable, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[tuple, dict[str, Any]]:
    """The arguments of a call without those that leave everything as it is.

    All but the first, and those that cannot be, are given by the names that NumPy has for them.

    Raises
    ------
    TypeError
        Python's, for arguments that the function does not have.
    """
    if not kwargs and len(args) < 2:
        return tuple(args), {}
    signature = signature_of(function)
    if signature is None:
        return tuple(args), dict(kwargs)
    try:
        given = signature.bind(*args, **kwargs).arguments
    except TypeError as error:
        raise TypeError(f"{getattr(function, '__name__', 'a function')}(): {error}") from None
    parameters = signature.parameters
    if any(one.kind is one.VAR_POSITIONAL for one in parameters.values()):
        known = {name: one for name, one in parameters.items() if one.kind is one.KEYWORD_ONLY}
        return tuple(args), {name: value for name, value in kwargs.items()
                             if name not in known or not _is_idle(known[name], value)}  # fmt: skip
    placed, named = [], {}
    for k, (name, value) in enumerate(given.items()):
        one = parameters[name]
        if one.kind is one.POSITIONAL_ONLY or (k == 0 and one.kind in _BY_PLACE):
            placed.append(value)
        elif one.kind is one.VAR_KEYWORD:
            named.update({n: v for n, v in value.items() if v is not np._NoValue})
        elif not _is_idle(one, value):
            named[name] = value
    return tuple(placed), named


def _is_idle(one, value):
    """Whether an argument says what is so without it."""
    if is_default(value, one.default):
        return True
    try:
        return one.name in _IDLE and bool(_IDLE[one.name](value))
    except (TypeError, ValueError):  # a truth value that nobody knows
        return False


def resolved(ufunc: np.ufunc, kinds: Sequence[Any], dtype: Any, casting: str) -> tuple:
    """In which dtypes a universal function computes: those of its arguments and of its results.

    ``kinds`` are dtypes of the arguments, and types of Python for its numbers.

    Raises
    ------
    TypeError
        NumPy's, where there is no such loop, or casting forbids it.
    """
    kinds = [kind if isinstance(kind, type) else np.dtype(kind) for kind in kinds]
    chosen = {} if dtype is None else {"signature": _signature(ufunc, dtype)}
    found = ufunc.resolve_dtypes((*kinds, *[None] * ufunc.nout), casting=casting, **chosen)
    return found[: ufunc.nin], found[ufunc.nin : ufunc.nin + ufunc.nout]


def _signature(ufunc, dtype):
    return (None,) * ufunc.nin + (np.dtype(dtype),) * ufunc.nout


#: What to do without an argument, where leaving it out is not all.
_IN_PLACE_OF = {
    "where=": "give out=, too, or leave it out, and choose with np.where (nbta.where in a graph)",
    "out=": "leave it out, and assign to array[...]",
}


def refused_argument(name: str, unknown: str, where: str = "", tensor: Tensor | None = None):
    """The error of an argument that what stands for a function does not take."""
    begin = f"{where}: " if where else ""
    given = "values that only the run knows"
    if tensor is not None:
        given = f"{tensor.name!r}, one of the symbolic tensors,"
    library = "" if name.startswith("scipy.") else "np."
    message = f"{begin}{library}{name} with {given} takes no argument {unknown} in nbta"
    if unknown == "where=" and isinstance(getattr(np, name, None), np.ufunc):
        message += " without out=, as the other items are uninitialised in NumPy"
    return invalid("symbolic", f"{message}; {_IN_PLACE_OF.get(unknown, 'leave it out')}")
