"""Compiled functions with declared types: Numba casts the numbers that they take, give and bind.

``@njit("f8[:](f8, i8)")`` is compiled for these types alone. What is called with others is the
signature that Numba's own rules choose, with each number cast to the type that is declared for it.
``@njit(locals={"n": numba.int64})`` casts each number that is assigned to the variable.
"""

import types
import weakref

import numba
import numpy as np

from nbta.frontend import native
from nbta.frontend.array_wrappers import ArrayWrapper
from nbta.frontend.maybe import is_maybe
from nbta.frontend.rewriting import declared_variables
from nbta.graph.operation import Tensor
from nbta.runtime.numba_private import declared_signatures, resolved_signature

#: What a cast in compiled code is called in Python; the others are NumPy's scalars.
_PYTHONS = {"bool": bool, "int64": int, "float64": float, "complex128": complex}


#: By compiled functions with declared variables: their Python functions with codes of their own,
#: as the same code without Numba casts nothing.
_twins: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()


def python_function(function):
    """The Python function of a compiled one, of whose code the declared variables are noted."""
    python = function.py_func
    kinds = {name: kind.name for name, kind in function.locals.items() if _is_numbers(kind)}
    if not kinds:
        return python
    if function not in _twins:
        around = python.__globals__, python.__name__, python.__defaults__, python.__closure__
        twin = types.FunctionType(python.__code__.replace(), *around)
        twin.__kwdefaults__, twin.__module__ = python.__kwdefaults__, python.__module__
        twin.__qualname__ = python.__qualname__
        declared_variables[twin.__code__] = kinds
        _twins[function] = twin
    return _twins[function]


def declared(kind, value, call):
    """A number that is assigned to a variable of a declared type."""
    return _cast(value, getattr(numba.types, kind), call)


def call_declared(function, args, run, call):
    """What a compiled function gives, with its arguments and results in the declared types.

    Parameters
    ----------
    function : numba.core.dispatcher.Dispatcher
    args : tuple
        The arguments by position.
    run : callable
        Runs the function's Python code with arguments.
    call : callable
        Calls a class, for a cast: ``call(float, value)``.
    """
    signature = _chosen(declared_signatures(function), function, args)
    if signature is None:
        return run(args)
    args = tuple(_cast(a, kind, call) for a, kind in zip(args, signature.args, strict=True))
    return _cast(run(args), signature.return_type, call)


def _chosen(signatures, function, args):
    """The signature that Numba calls; None where it compiles one for each call, or refuses it."""
    fitting = [each for each in signatures if len(each.args) == len(args)]
    if len(fitting) < 2:
        return fitting[0] if fitting else None
    try:
        kinds = tuple(map(type_of, args))
    except (ValueError, TypeError, NotImplementedError):  # Numba has no type for one
        return None
    return resolved_signature(function, fitting, kinds)


def type_of(value) -> numba.types.Type:
    """Numba's type of a value; a ValueError or so for what Numba has none for."""
    if isinstance(value, tuple):
        return numba.types.Tuple([type_of(each) for each in value])
    if isinstance(value, Tensor | np.ndarray):
        dtype = numba.from_dtype(native.dtype_of(value))
        return numba.types.Array(dtype, value.ndim, "C") if value.ndim else dtype
    return numba.typeof(value)


def _cast(value, kind, call):
    """A number, or those of a tuple, in a declared type; all else as it is."""
    if isinstance(kind, numba.types.Optional):
        return _cast(value, kind.type, call)
    if isinstance(kind, numba.types.BaseTuple) and isinstance(value, tuple):
        if len(value) != len(kind):
            return value
        cast = [_cast(each, part, call) for each, part in zip(value, kind, strict=True)]
        return value._make(cast) if hasattr(value, "_make") else tuple(cast)
    if not _is_numbers(kind) or not _is_number(value):
        return value
    dtype = np.dtype(kind.name)
    if native.dtype_of(value) == dtype:
        return value
    return call(_PYTHONS.get(dtype.name, dtype.type), value)


def _is_numbers(kind):
    return isinstance(kind, numba.types.Number | numba.types.Boolean)


def _is_number(value):
    if isinstance(value, Tensor):
        is_number = not isinstance(value, ArrayWrapper) and not is_maybe(value)
        return is_number and value.spec.rank == 0 and value.dtype.kind in "biufc"
    return isinstance(value, bool | int | float | complex | np.number | np.bool_)
