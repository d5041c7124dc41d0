"""Numbers of Python's that only the run knows, beside NumPy's numbers of narrower dtypes.

NumPy gives an integer of Python's the dtype of what it meets: a counter times a float32 is a
float32; times a pixel of uint8 it is a uint8, which wraps around, and one that does not fit is an
error. So it is noted which numbers of int64 are Python's: counters of loops, variables that begin
with one and stay one, and what is computed of these. Of an integer about which nothing is noted
nobody knows which of the two it is, and it counts as NumPy's. That a variable of a loop stays one
is an assumption, which the end of an iteration tells. Floats of Python's are noted, too, where a
branch chooses among them and where they are computed of such numbers.
"""

from __future__ import annotations

import numpy as np

from nbta.frontend.languages import is_numbas
from nbta.frontend.naturals import is_natural
from nbta.frontend.problems import here
from nbta.frontend.tries import NoIntegerError, where_it_holds
from nbta.graph.graph import current
from nbta.graph.operation import DATA, Tensor
from nbta.ops.core.arithmetic import greater_equal, less_equal, logical_and, maximum, minimum
from nbta.ops.core.dimensions import outside
from nbta.ops.core.dispatch import as_tensor
from nbta.ops.core.elementwise import common_dtype
from nbta.ops.core.numpy_arguments import resolved
from nbta.ops.core.shaping import INT64, cast
from nbta.ops.numbers import Number

#: Of the outermost graph: for each number of Python's the assumptions that make it one, which are
#: variables of loops; and the assumptions by which something was cast.
_NOTED, _USED = "numbers of Python's", "numbers of Python's that were cast"
#: Of the outermost graph: what such variables are before their loops.
_ENTRIES = "numbers of Python's before loops"


#: Functions that compute what operators do, by the names of their nodes.
_UFUNCS = {
    "Add": np.add, "Sub": np.subtract, "Mult": np.multiply, "Div": np.divide, "Mod": np.remainder,
    "FloorDiv": np.floor_divide, "Pow": np.power, "LShift": np.left_shift, "MatMult": np.matmul,
    "RShift": np.right_shift, "BitAnd": np.bitwise_and, "BitOr": np.bitwise_or,
    "BitXor": np.bitwise_xor, "Eq": np.equal, "NotEq": np.not_equal, "Lt": np.less,
    "LtE": np.less_equal, "Gt": np.greater, "GtE": np.greater_equal,
}  # fmt: skip
#: Functions that take integers as they are.
_COMPARING = {
    np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal, np.logical_and,
    np.logical_or, np.logical_xor,
}  # fmt: skip


#: The dtypes of numbers of Python's, and their types.
_DTYPES = {INT64: int, np.dtype(np.float64): float}
_PYTHONS = set(_DTYPES.values())


def _table():
    return current().root.cache.setdefault(_NOTED, {})


def used() -> set:
    """Variables of loops of which it matters that they are numbers of Python's."""
    return current().root.cache.setdefault(_USED, set())


def assumptions(value) -> frozenset | None:
    """By which variables of loops a value is a number of Python's; None if it is none."""
    if type(value) in _PYTHONS or (isinstance(value, Number) and value.weak in _PYTHONS):
        return frozenset()
    if current() is None or type(value) is not Tensor or value.kind != DATA:
        return None
    return _table().get(outside(value)) if value.dtype in _DTYPES else None


def note(value, *sources) -> None:
    """Note a number of a run as Python's, if all that it is computed of are such."""
    if type(value) is not Tensor or value.dtype not in _DTYPES or is_numbas():
        return
    if value.spec.rank != 0:
        return
    found = [assumptions(each) for each in sources]
    if None not in found:
        _table()[outside(value)] = frozenset().union(*found)


def note_joined(value, *ways) -> None:
    """Note what a branch gives as Python's, if each way is, or is a float of fewer digits.

    As a float of Python's it meets float32 as that, and float64 with all digits of either way.
    """
    note(value, *(way for way in ways if assumptions(way) is not None or not _is_narrow(way)))


def _is_narrow(value) -> bool:
    dtype = getattr(value, "dtype", None)
    return dtype is not None and dtype.kind == "f" and dtype.itemsize < 8


def assume(variable, entry) -> None:
    """Note a variable of a loop as a number of Python's, if it is one before the loop."""
    note(variable, entry)
    if type(variable) is Tensor and (found := assumptions(variable)) is not None:
        _table()[variable] = found | {variable}
        current().root.cache.setdefault(_ENTRIES, {})[variable] = entry


def is_assumed(value) -> bool:
    """Whether a value is a variable of a loop that counts as a number of Python's."""
    return type(value) is Tensor and outside(value) in (assumptions(value) or ())


def takes(value, dtype) -> bool:
    """Whether a variable of a loop that counts as Python's has a dtype where a branch assigns one.

    Of floats it must have what the variable is before the loop, which other branches leave.
    """
    if not is_assumed(value):
        return False
    if dtype.kind in "iu":
        return value.dtype == INT64
    entry = current().root.cache[_ENTRIES][outside(value)]
    if type(entry) not in _PYTHONS:
        return dtype.kind in "fc" and takes(entry, dtype)
    return dtype.kind in "fc" and holds(dtype, entry)


def holds(dtype, value) -> bool:
    """Whether a dtype has the value of a float of Python's to all its digits."""
    if dtype.kind not in "fc" or type(value) is not float:
        return True
    with np.errstate(over="ignore"):
        return value != value or dtype.type(value).item() == value


def is_noted(value) -> bool:
    """Whether a value is a number of Python's that only the run knows."""
    return type(value) is Tensor and assumptions(value) is not None


def is_integer(value) -> bool:
    """Whether a value is an integer of Python's that only the run knows."""
    return is_noted(value) and value.dtype == INT64


def rely_on(value) -> bool:
    """Whether a value is a number of Python's that only the run knows, if that matters."""
    found = is_noted(value)
    if found:
        used().update(assumptions(value))
    return found


def as_operands(function, *operands) -> tuple:
    """Operands of an operator, by the name of its node, or of a universal function of NumPy's."""
    function = _UFUNCS.get(function, function)
    if is_numbas() or not any(map(is_noted, operands)):
        return operands
    kinds = [_kind(each) for each in operands]
    if None in kinds or all(isinstance(kind, type) for kind in kinds):
        return operands
    try:
        found, _ = resolved(function, kinds, None, "same_kind")
    except TypeError:  # it is not for such numbers
        return operands
    if function in _COMPARING and found[0].kind not in "fc":
        return operands
    return tuple(map(_as_number, operands, found))


def _kind(value):
    """The dtype of an operand, or the type of what is Python's; None for what is no number."""
    if is_noted(value):
        return _DTYPES[value.dtype]
    if isinstance(value, Tensor | np.ndarray | np.generic):
        return getattr(value, "weak", None) or value.dtype
    return type(value) if isinstance(value, bool | int | float | complex) else None


def _as_number(value, dtype):
    """A number of Python's in the dtype in which a function computes; others unchanged."""
    if not is_noted(value) or dtype in _WIDE:
        return value
    if dtype.kind in "iu":
        return fitted(value, dtype)
    rely_on(value)
    return cast(value, dtype)


#: Dtypes that results have without a cast, too.
_WIDE = {np.dtype(kind) for kind in (np.int64, np.float64, np.complex128)}


def as_alternatives(*values) -> tuple:
    """Arrays and numbers of which NumPy chooses items, where Python's integers wrap around."""
    alone = all(isinstance(each, Tensor | np.ndarray | _NUMBERS) for each in values)
    known = alone and any(type(each) is int for each in values)
    if is_numbas() or not (known or any(map(is_noted, values))):
        return values
    dtype = common_dtype_of(values)
    return tuple(_wrapped_around(each, dtype) for each in values)


#: Numbers that Python knows.
_NUMBERS = bool | int | float | complex | np.generic


def _wrapped_around(value, dtype):
    """A number of Python's in a dtype, where integers wrap around; others unchanged."""
    if type(value) is int and not fits(value, dtype):
        return np.asarray(value).astype(dtype)[()]
    return cast(value, dtype) if rely_on(value) else value


def as_limits(array, *limits) -> tuple:
    """The least and the greatest of `np.clip`: Python's may lie beyond the dtype of the array."""
    if is_numbas() or not any(type(each) is int or is_noted(each) for each in limits):
        return limits
    dtype = common_dtype_of((array, *limits))
    if dtype.kind in "iu":
        of_dtype, largest = np.iinfo(dtype), np.iinfo(INT64).max
        bounds = (max, of_dtype.min), (min, min(of_dtype.max, largest))
        limits = tuple(map(_within, bounds, limits))
    return tuple(_as_number(each, dtype) for each in limits)


def _within(bound, value):
    """An integer of Python's, or a bound of a dtype that lies beyond it; others unchanged."""
    function, limit = bound
    if type(value) is int:
        return function(value, limit)
    if not is_noted(value):
        return value
    found = (maximum if function is max else minimum)(value, limit)
    note(found, value)
    return found


def common_dtype_of(values):
    """The dtype of what is computed of values, of which some are Python's."""
    return common_dtype(*(_without_size(each) for each in values if each is not None))


def zero_like(value) -> int | float:
    """0 of the type of a noted number."""
    return _DTYPES[value.dtype](0)


def _without_size(value):
    """A number of Python's that has any dtype for the value of an integer; others unchanged."""
    if is_noted(value):
        return zero_like(value)
    return 0 if type(value) is int else value


def stored(value, dtype):
    """What is stored in an array: integers of Python's in its dtype, which they must fit."""
    if isinstance(value, list | tuple) and getattr(value, "array", None) is None:
        kind = list if isinstance(value, list) else tuple
        return kind(stored(each, dtype) for each in value)
    narrow = dtype.kind in "iu" and dtype != INT64
    return fitted(value, dtype) if narrow and is_integer(value) and not is_numbas() else value


def as_choices(left, right) -> tuple:
    """Numbers of which one is chosen, for a variable of a loop that is one of them."""
    return _beside(left, right), _beside(right, left)


def _beside(value, other):
    if not isinstance(value, Tensor) or not isinstance(other, Tensor | np.ndarray | np.generic):
        return value
    dtype = other.dtype
    is_other = dtype.kind in "iu" and dtype != INT64 and getattr(other, "weak", None) is None
    return fitted(value, dtype) if is_other and is_assumed(value) else value


def fitted(value, dtype):
    """An integer of Python's in a dtype, which fails in a run where it does not fit."""
    rely_on(value)
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
