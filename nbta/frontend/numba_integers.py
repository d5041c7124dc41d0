"""Integers in functions that Numba compiles, where they have other types than NumPy's.

Numba widens integers to 64 bits, signed if one of them is: the difference of two pixels of uint8
wraps in NumPy, and does not in Numba. Python's integers, which have no end, have 64 bits there too.
Operands are cast as Numba casts them. Where its integers would be other numbers than the code says,
that is refused: powers with a negative exponent, and what needs more than 64 bits.

Source: ``integer_binop_cases`` of ``numba.core.typing.builtins``.
"""

from __future__ import annotations

import numpy as np

from nbta.errors import UnimplementedError
from nbta.frontend.array_wrappers import wrapped
from nbta.frontend.native import plain
from nbta.frontend.problems import here
from nbta.graph.operation import DATA, Tensor
from nbta.ops.core.dispatch import as_tensor
from nbta.ops.core.shaping import cast

_SIGNED, _UNSIGNED = np.dtype(np.int64), np.dtype(np.uint64)
_SHIFTS = {"LShift", "RShift"}
_OF_TRUTHS = {"BitAnd", "BitOr", "BitXor"}


def as_operands(name, left, right):
    """The operands of an operator, as Numba casts them.

    Raises
    ------
    UnimplementedError
        For a negative power of an integer.
    """
    dtypes = _dtype(left), _dtype(right)
    if None in dtypes:
        return left, right
    if _rank(left) != 0 or _rank(right) != 0:  # NumPy's rules, but that numbers have a dtype
        return _strong(left), _strong(right)
    if name == "Pow" and not isinstance(right, Tensor) and right < 0:
        raise UnimplementedError(
            f"{here()}: a power of an integer with a negative exponent, for which Numba gives an "
            f"integer, mostly 0; write float(n) ** k"
        )
    if all(dtype == _SIGNED for dtype in dtypes):
        return left, right
    if name in _OF_TRUTHS and all(dtype.kind == "b" for dtype in dtypes):
        return left, right
    if name in _SHIFTS:
        return _widened(left, _wide(dtypes[0])), _widened(right, _SIGNED)
    wide = _wide(*dtypes)
    return _widened(left, wide), _widened(right, wide)


def checked_result(value):
    """A result, if it is an integer of Python's that Numba has, too.

    Raises
    ------
    UnimplementedError
        For one of more than 64 bits.
    """
    if type(value) is int and not -(1 << 63) <= value < 1 << 64:
        raise UnimplementedError(
            f"{here()}: an integer of more than 64 bits, which Numba does not have; begin with a "
            f"float, such as 1.0"
        )
    return value


def _dtype(value):
    """The dtype of an integer or a truth value, or of an array of them; None for others."""
    if isinstance(value, bool):
        return np.dtype(bool)
    if isinstance(value, int):
        return _SIGNED
    if isinstance(value, Tensor) and value.kind != DATA:
        return None
    dtype = getattr(value, "dtype", None)
    is_number = isinstance(value, Tensor | np.generic | np.ndarray)
    return dtype if is_number and isinstance(dtype, np.dtype) and dtype.kind in "biu" else None


def _rank(value):
    return value.spec.rank if isinstance(value, Tensor) else np.ndim(value)


def _wide(*dtypes):
    """What Numba computes with for some dtypes."""
    return _UNSIGNED if all(dtype.kind == "u" for dtype in dtypes) else _SIGNED


def _strong(value):
    return np.int64(value) if type(value) is int and -(1 << 63) <= value < 1 << 63 else value


def _widened(value, dtype):
    if _dtype(value) == dtype:
        return value
    if not isinstance(value, Tensor):
        return np.asarray(value).astype(dtype)[()]
    return wrapped(cast(as_tensor(plain(value)), dtype))
