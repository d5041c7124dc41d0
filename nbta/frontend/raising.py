"""Errors that Python raises for numbers that only the run knows: a run raises them too.

Numba's functions raise them where Numba does. Floats divide as NumPy's do, in both, and functions
of `math` give NaN and infinity, as a number in a trace may be NumPy's.
"""

from __future__ import annotations

import functools

from nbta.errors import invalid
from nbta.frontend import effects
from nbta.frontend.languages import is_numbas
from nbta.frontend.naturals import is_natural
from nbta.frontend.problems import here
from nbta.frontend.tries import NoIntegerError, in_a_try, where_it_holds
from nbta.graph.operation import Tensor
from nbta.locations import of_caller
from nbta.ops.core.arithmetic import (
    equal,
    greater_equal,
    less,
    logical_and,
    logical_not,
    logical_or,
    not_equal,
)  # fmt: skip
from nbta.ops.core.dispatch import as_tensor
from nbta.ops.elementary.basic import abs as absolute
from nbta.ops.elementary.basic import isfinite, power
from nbta.ops.elementary.rounding import isinf, isnan
from nbta.ops.numbers import Number
from nbta.structure import leaves


def checked(name, left, right):
    """The right operand of an operator, after Python's checks of divisors, shifts and powers."""
    check_divisor(name, left, right)
    if name not in _NEGATIVE or not _are_integers(left, right):
        return right
    if name == "Pow" and getattr(left, "weak", None) is int and not isinstance(right, Tensor):
        return right  # of an integer of Python's it is a float
    return _not_negative(name, right)


def check_divisor(name, left, right) -> None:
    """Fail in a run that divides integers by 0."""
    check_division(name, left, right)
    if name not in ("FloorDiv", "Mod") or not _are_integers(left, right):
        return
    if not isinstance(right, Tensor):
        if right == 0:
            raise ZeroDivisionError(f"{here()}: {_ZERO}")
    elif not (isinstance(right, Number) and right.least is not None and right.least > 0):
        effects.check(not_equal(right, 0), ZeroDivisionError(f"{here()}: {_ZERO}"))


#: What is raised for a negative right operand.
_NEGATIVE = {
    "LShift": "negative shift count",
    "RShift": "negative shift count",
    "Pow": (
        "the power of an integer is negative, of which Python makes a float; raise a float, such "
        "as float(n) ** k"
    ),
}


def _not_negative(name, right):
    known = not isinstance(right, Tensor)
    if is_natural(right) or (
        right >= 0 if known else right.weak is not None or right.dtype.kind != "i"
    ):
        return right
    place = of_caller()
    where = here() if place is None else f"{place}: {place.expression!r}"
    message = f"{where}: {_NEGATIVE[name]}"
    error = invalid("value", message) if name == "Pow" else ValueError(message)
    if known:
        error.nbta_raised = True  # by the user's code: one for runs that come to it
        raise error
    value = as_tensor(right)
    return where_it_holds(value, greater_equal(value, 0), error)


_ZERO = "integer division or modulo by zero"
_DIVIDING = {"Div": "/", "FloorDiv": "//", "Mod": "%"}


def check_division(name, left, right) -> None:
    """Fail in a run that divides numbers by 0, or where a power does, if a handler waits for that.

    NumPy's own numbers raise nothing, but a tensor may stand for either.
    """
    if not in_a_try() or not _are_run_numbers(left, right):
        return
    if name in _DIVIDING and isinstance(right, Tensor):
        is_divided = functools.partial(not_equal, right, 0)
        effects.check_for_handlers(is_divided, _DIVIDING[name], ZeroDivisionError)
    elif name == "Pow":
        for kind, is_base in ((ZeroDivisionError, equal), (OverflowError, not_equal)):

            def holds(is_base=is_base):
                infinite = _becomes(isinf, power(left, right), (left, right))
                return logical_not(logical_and(is_base(left, 0), infinite))

            effects.check_for_handlers(holds, "**", kind)


def check_math(name, module, found, given) -> None:
    """Fail in a run where a function of math or cmath raises an error that a handler waits for.

    As in Python that shows in what it gives: NaN of numbers, or infinity of finite ones.
    """
    if name in _TOTAL or not in_a_try():
        return

    def holds():
        wrong = [_becomes(test, each, given) for test in (isnan, isinf) for each in leaves(found)]
        return logical_not(functools.reduce(logical_or, wrong))

    effects.check_for_handlers(holds, f"{module}.{name}", ValueError, OverflowError)


#: Functions of math's that raise nothing, whatever number they are given.
_TOTAL = {
    "asinh", "atan", "atan2", "cbrt", "copysign", "degrees", "erf", "erfc", "fabs", "frexp",
    "hypot", "isclose", "isfinite", "isinf", "isnan", "modf", "radians", "tanh",
}  # fmt: skip


def _becomes(test, found, given):
    """Whether a result is NaN or infinite, of numbers that are finite, or at least not NaN."""
    fit = isfinite if test is isinf else lambda value: logical_not(isnan(value))
    return functools.reduce(logical_and, map(fit, leaves(given)), test(found))


def _are_run_numbers(*operands):
    """Whether operands are numbers, of which only the run knows one."""
    tensors = [value for value in operands if isinstance(value, Tensor)]
    plain = all(isinstance(value, Tensor | int | float | complex) for value in operands)
    return bool(tensors) and plain and not any(tensor.spec.rank for tensor in tensors)


def _are_integers(left, right):
    """Whether two numbers are integers, of which only the run knows one."""
    dtypes = [getattr(value, "dtype", None) for value in (left, right)]
    kinds = ["i" if isinstance(value, int) else dtype.kind if dtype is not None else ""
             for value, dtype in zip((left, right), dtypes, strict=True)]  # fmt: skip
    tensors = [value for value in (left, right) if isinstance(value, Tensor)]
    plain = tensors and not any(tensor.spec.rank for tensor in tensors)
    return plain and all(kind in ("i", "u", "b") for kind in kinds)


def check_integer(what, value) -> None:
    """Fail in a run that makes an integer of a float that is none, or is too large for int64."""
    if is_numbas() or as_tensor(value).dtype.kind != "f":
        return
    message = f"{here()}: {what} of NaN, of infinity, or of a number that is too large for int64"
    error = NoIntegerError(message)
    error.reason = "value"
    effects.check(less(absolute(as_tensor(value)), 2.0**63), error, what)
