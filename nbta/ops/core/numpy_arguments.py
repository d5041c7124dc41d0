"""Calls of NumPy's functions, bound to the signatures that NumPy gives them.

What a call leaves as it is by default is taken out, and what is the memory's matter alone; of the
rest each argument is honoured by what stands for the function, or refused by its name.
"""

from __future__ import annotations

import functools
import inspect
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from nbta.errors import invalid
from nbta.graph.operation import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_PLAIN = (bool, int, float, str, type(None))
_BY_PLACE = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
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
    "overwrite_ab": lambda value: isinstance(value, bool),
    "overwrite_b": lambda value: isinstance(value, bool),
}


#: Limits, of which a call gives both, by one pair of names.
_LIMITS = {"a_max", "a_min", "max", "min"}
#: Arguments that say how a function computes, whatever its arrays are: what it says of a value to
#: small arrays it says to all.
_CHOICES = {
    "M", "UPLO", *_LIMITS, "casting", "copy", "correction", "ddof", "device", "initial",
    "k", "keepdims", "kind", "left", "mean", "nan", "ndmin", "neginf", "optimize",
    "ord", "posinf", "rcond", "requirements", "right", "signature", "to_begin", "to_end", "w",
    "where",
}  # fmt: skip
#: Those of which that holds for None, ``()`` and truth values.
_AXES = {"append", "axes", "axis", "n", "prepend"}
#: Those that have an item for each of an array, so that a list of them is right for some arrays.
_ITEMWISE = {"mean", "nan", "neginf", "posinf", "w", "where"}
_ARRAYS = (np.ndarray, np.generic, Tensor)
#: Values that are right for some arrays and wrong for others.
_RIGHT = {
    "casting": lambda value: value in ("no", "equiv", "safe", "same_kind", "unsafe"),
    "copy": lambda value: value is None or isinstance(value, bool),
    "optimize": lambda value: isinstance(value, list | tuple) and "einsum_path" in value[:1],
}


def _small_calls(dtype):
    """Arguments by place that functions may take, in new arrays; those of numbers are last."""
    one, row = np.eye(1, dtype=dtype), np.arange(3.0).astype(dtype)
    yield from [(one,), (row,), (one, 0), (one, 1), (one, one), (row, row), (one, one, one)]
    yield from [(row, row, 1), (row, row, row), (one, float), ("ij", one), (4,), (0, 1)]


def check_choices(function: Callable, named: Mapping[str, Any], args: Sequence[Any] = ()) -> None:
    """Raise what a function of NumPy's says of how it is told to compute.

    ``args`` are further arguments, which say whether numbers are complex.

    SciPy's are not asked, as wrong values make its LAPACK routines write outside of their memory.
    """
    if (_CHOICES.isdisjoint(named) and _AXES.isdisjoint(named)) or not _is_numpys(function):
        return
    signature = signature_of(function)
    parameters = {} if signature is None else signature.parameters
    needed = [p for p in parameters.values() if p.kind in _BY_PLACE and p.default is p.empty]
    given = {name: value for name, value in named.items()
             if name not in parameters or _is_optional(parameters[name])}  # fmt: skip
    known = tuple((name, _Placeholder(name, value)) for name, value in given.items())
    arrays = [value for value in (*args, *named.values()) if isinstance(value, _ARRAYS)]
    is_complex = any(array.dtype.kind == "c" for array in arrays)
    asked = function, known, len(needed) or None, complex if is_complex else float
    name = _wrong_argument(*asked)
    if name is not None:  # a new error, which keeps no frames of earlier calls
        raise _objection_to(*asked, name)


def _is_optional(one):
    return one.kind in _BY_NAME and one.default is not one.empty


def _is_numpys(function):
    if isinstance(function, np.ufunc):
        return getattr(np, function.__name__, None) is function
    return (getattr(function, "__module__", None) or "").partition(".")[0] == "numpy"


def _check_flags(function, given, parameters):
    """Refuse what is neither true nor false where SciPy's functions take one of both.

    Its LAPACK routines refuse most other values, and write outside of their memory for some.
    """
    for name, value in given.items():
        one = parameters.get(name)
        is_flag = one is not None and type(one.default) is bool and not isinstance(value, Tensor)
        of_numbers = isinstance(value, int | np.integer | np.bool_)
        if is_flag and not (of_numbers and value in (0, 1)):
            raise invalid("value", f"{_title(function)}: {name}={value!r}; give True or False")
        if name == "axis" and isinstance(value, bool | np.bool_):
            raise invalid("value", f"{_title(function)}: axis={value!r}; give an integer")


def check_choice(function: str, name: str, value: Any, choices: Sequence[Any]) -> None:
    """Refuse a value of an argument that has but a few, in the name of a function of SciPy's."""
    if not any(type(value) is type(each) and value == each for each in choices):
        known = ", ".join(map(repr, choices))
        raise invalid("value", f"{function}: {name}={value!r}; there are {known}")


def _title(function):
    module = (getattr(function, "__module__", None) or "").split(".")
    return ".".join([*(part for part in module if part[:1] != "_"), function.__name__])


class _Placeholder:
    """An argument for small calls, in a table of what was asked: of an array, one of one item."""

    def __init__(self, name, value):
        is_array = name in _ITEMWISE and isinstance(value, list | tuple)
        self.is_plain = _is_plain(value) and not is_array
        self.is_array = not self.is_plain and isinstance(value, np.ndarray | Tensor | list | tuple)
        self.value = None if self.is_array else value
        self.text = self.is_array, repr(self.value)

    def __hash__(self):
        return hash(self.text)

    def __eq__(self, other):
        return self.text == other.text

    def given(self, dtype):
        """What a small call is given."""
        return np.eye(1, dtype=dtype) if self.is_array else self.value

    def is_asked(self, name):
        """Whether what NumPy says of it to small arrays it says to all."""
        if name in _LIMITS:
            return True
        if not self.is_plain or (name in _RIGHT and _RIGHT[name](self.value)):
            return False
        is_empty = self.value is None or (type(self.value) is tuple and not self.value)
        is_strange = is_empty or type(self.value) is bool
        return name in _CHOICES or (name in _AXES and is_strange)


def _is_plain(value):
    """Whether a value is Python's, or a number of NumPy's, with nothing of a trace in it."""
    if type(value) in (list, tuple):
        return all(map(_is_plain, value))
    of_numpy = isinstance(value, np.generic) or (isinstance(value, np.ndarray) and not value.ndim)
    return of_numpy or type(value) in (*_PLAIN, complex)


@functools.lru_cache(1024)
def _wrong_argument(function, known, needed, dtype):
    """The first argument that makes each small call fail that goes well without it, if any."""
    asked = (name for name, value in known if value.is_asked(name))
    return next((n for n in asked if _objection_to(function, known, needed, dtype, n)), None)


def _objection_to(function, known, needed, dtype, name):
    """The error that an argument makes in each small call that goes well without it, if any."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return _last_error(function, known, needed, dtype, name)


def _last_error(function, known, needed, dtype, name):
    found = None
    for args in _small_calls(dtype):
        named = {each: value.given(dtype) for each, value in known}
        without = {each: value for each, value in named.items() if each != name}
        of_numbers = not any(isinstance(each, np.ndarray) for each in args)
        if (needed is not None and len(args) != needed) or (found is not None and of_numbers):
            continue
        try:
            function(*args, **without)
        except Exception:  # no such call, as far as is known
            continue
        try:
            function(*args, **named)
        except Exception as error:  # whatever it is, the user gets it
            found = error
        else:
            return None
    return found


def settled(
    function: Callable, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[tuple, dict[str, Any]]:
    """The arguments of a call without those that leave everything as it is.

    All but the first, and those that cannot be, are given by the names that NumPy has for them.

    Raises
    ------
    TypeError
        Python's, for arguments that the function does not have.
    Exception
        The function's own, for values that it does not have of what says how it computes.
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
        check_choices(function, kwargs, args)
        known = {name: one for name, one in parameters.items() if one.kind is one.KEYWORD_ONLY}
        return tuple(args), {name: value for name, value in kwargs.items()
                             if name not in known or not _is_idle(known[name], value)}  # fmt: skip
    check_choices(function, given, args)
    if (getattr(function, "__module__", None) or "").startswith("scipy."):
        _check_flags(function, given, parameters)
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
