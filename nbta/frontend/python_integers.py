"""Integers of Python's that only the run knows, beside NumPy's of other dtypes than int64.

NumPy gives an integer of Python's the dtype of what it meets: a counter times a pixel of uint8 is a
uint8, which wraps around, and one that does not fit is an error. So it is noted which numbers of
int64 are Python's: counters of loops, variables that begin with one and stay one, and what is
computed of these. Of an integer about which nothing is noted nobody knows which of the two it is,
and it counts as NumPy's. That a variable of a loop stays one is an assumption, which the end of an
iteration tells.
"""

from __future__ import annotations

import numpy as np

from nbta.frontend.naturals import is_natural
from nbta.frontend.problems import here
from nbta.frontend.raising import NoIntegerError, is_numbas, where_it_holds
from nbta.graph.graph import current
from nbta.graph.operation import DATA, Tensor
from nbta.ops.core.arithmetic import greater_equal, less_equal, logical_and
from nbta.ops.core.dimensions import outside
from nbta.ops.core.dispatch import as_tensor
from nbta.ops.core.shaping import INT64, cast

#: Of the outermost graph: for each integer of Python's the assumptions that make it one, which are
#: variables of loops; and the assumptions by which something was cast.
_INTEGERS, _USED = "integers of Python's", "integers of Python's that were cast"


#: What computes integers of integers.
_OF_INTEGERS = {
    "Add", "Sub", "Mult", "FloorDiv", "Mod", "Pow", "LShift", "RShift", "BitAnd", "BitOr", "BitXor",
    "MatMult", "add", "subtract", "multiply", "floor_divide", "remainder", "power", "maximum",
    "minimum", "fmax", "fmin", "left_shift", "right_shift", "bitwise_and", "bitwise_or",
    "bitwise_xor",
}  # fmt: skip


def _table():
    return current().root.cache.setdefault(_INTEGERS, {})


def used() -> set:
    """Variables of loops of which it matters that they are integers of Python's."""
    return current().root.cache.setdefault(_USED, set())


def assumptions(value) -> frozenset | None:
    """By which variables of loops a value is an integer of Python's; None if it is none."""
    if type(value) is int:
        return frozenset()
    if current() is None or type(value) is not Tensor or value.kind != DATA:
        return None
    return _table().get(outside(value)) if value.dtype == INT64 else None


def note(value, *sources) -> None:
    """Note an integer of a run as Python's, if all that it is computed of are such."""
    if type(value) is not Tensor or value.dtype != INT64 or value.spec.rank != 0 or is_numbas():
        return
    found = [assumptions(each) for each in sources]
    if None not in found:
        _table()[outside(value)] = frozenset().union(*found)


def assume(variable, entry) -> None:
    """Note a variable of a loop as an integer of Python's, if it is one before the loop."""
    note(variable, entry)
    if type(variable) is Tensor and (found := assumptions(variable)) is not None:
        _table()[variable] = found | {variable}


def is_assumed(value) -> bool:
    """Whether a value is a variable of a loop that counts as an integer of Python's."""
    return type(value) is Tensor and outside(value) in (assumptions(value) or ())


def is_noted(value) -> bool:
    """Whether a value is an integer of Python's that only the run knows."""
    return isinstance(value, Tensor) and assumptions(value) is not None


def as_operands(name, left, right) -> tuple:
    """Operands of an operator or a function of NumPy's, by the name of its node or its own.

    An integer of Python's has the dtype of an integer of NumPy's, but for a quotient: both are
    floats there.
    """
    if is_numbas() or name not in _OF_INTEGERS:
        return left, right
    return _beside(left, right, is_noted), _beside(right, left, is_noted)


def as_choices(left, right) -> tuple:
    """Numbers of which one is chosen, for a variable of a loop that is one of them."""
    return _beside(left, right, is_assumed), _beside(right, left, is_assumed)


def _beside(value, other, is_cast):
    if not isinstance(value, Tensor) or not isinstance(other, Tensor | np.ndarray | np.generic):
        return value
    dtype = other.dtype
    is_other = dtype.kind in "iu" and dtype != INT64 and getattr(other, "weak", None) is None
    return fitted(value, dtype) if is_other and is_cast(value) else value


def fitted(value, dtype):
    """An integer of Python's in a dtype, which fails in a run where it does not fit."""
    used().update(assumptions(value))
    message = f"{here()}: an integer of Python's does not fit {dtype}, the dtype of what it meets"
    error = NoIntegerError(message)
    error.reason = "value"
    limits, value = np.iinfo(dtype), as_tensor(value)
    bounds = []
    if limits.max < np.iinfo(INT64).max:
        bounds.append(less_equal(value, limits.max))
    if not is_natural(value):
        bounds.append(greater_equal(value, limits.min))
    found = cast(value, dtype)
    holds = bounds[0] if len(bounds) == 1 else bounds and logical_and(*bounds)
    return where_it_holds(found, holds, error) if bounds else found


def fits(value, dtype) -> bool:
    """Whether an integer of Python's may have a dtype, as far as anybody knows."""
    if dtype.kind not in "iu" or type(value) is not int:
        return True
    return np.iinfo(dtype).min <= value <= np.iinfo(dtype).max
