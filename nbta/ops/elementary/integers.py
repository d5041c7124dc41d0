"""Bits of integers, shifts, and common divisors and multiples."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING

import numpy as np

from nbta.codegen.fusion import Elementwise, ElementwiseOf, by_kind
from nbta.codegen.values import typed
from nbta.errors import invalid
from nbta.loops import between, negated, select
from nbta.ops.core.arithmetic import add, counted
from nbta.ops.core.descriptions import BITS, DIVISIBLE, WHOLE
from nbta.ops.core.dispatch import apply, exported, stands_for
from nbta.ops.core.elementwise import INTEGER, binary, broadcasting, define_elementwise, promoted
from nbta.ops.core.shaping import cast
from nbta.ops.elementary.basic import abs

if TYPE_CHECKING:
    from nbta.typing import Array, ArrayLike


def _bits(*specs):
    """Shape rule of operations on bits."""
    dtype = specs[0].dtype
    if dtype.kind not in "biu":
        raise invalid("dtype", f"{dtype} has no bits to compute with; cast it to an integer first")
    return broadcasting(*specs)


def _whole(*specs):
    """Shape rule of operations on integers; truth values count as int8, by NumPy's rules."""
    _bits(*specs)
    return counted(*specs)


@binary(
    "BitwiseAnd", np.bitwise_and, INTEGER, infer=_bits, emit=Elementwise(operator.and_, "biu"),
    family=BITS, cheap=True,
)  # fmt: skip
def bitwise_and(x: ArrayLike, y: ArrayLike, *, name: str | None = None) -> Array:
    """Bitwise AND, element by element, as `numpy.bitwise_and`; the logical AND of booleans.

    Examples
    --------
    >>> nbta.bitwise_and([6, 7], 3)
    array([2, 3])
    """


@binary(
    "BitwiseOr", np.bitwise_or, INTEGER, infer=_bits, emit=Elementwise(operator.or_, "biu"),
    family=BITS, cheap=True,
)  # fmt: skip
def bitwise_or(x: ArrayLike, y: ArrayLike, *, name: str | None = None) -> Array:
    """Bitwise OR, element by element, as `numpy.bitwise_or`; the logical OR of booleans.

    Examples
    --------
    >>> nbta.bitwise_or([4, 6], 3)
    array([7, 7])
    """


@binary(
    "BitwiseXor", np.bitwise_xor, INTEGER, infer=_bits, emit=Elementwise(operator.xor, "biu"),
    family=BITS, cheap=True,
)  # fmt: skip
def bitwise_xor(x: ArrayLike, y: ArrayLike, *, name: str | None = None) -> Array:
    """Bitwise XOR, element by element, as `numpy.bitwise_xor`; the logical XOR of booleans.

    Examples
    --------
    >>> nbta.bitwise_xor([4, 6], 3)
    array([7, 5])
    """


INVERT = define_elementwise(
    "Invert", _bits, np.invert, INTEGER, emit=by_kind(negated, operator.invert, "biu"),
    cheap=True,
)  # fmt: skip


@exported(also="bitwise_not", family=BITS)
def invert(x: ArrayLike, *, name: str | None = None) -> Array:
    """Bitwise NOT, ``-x - 1`` for signed integers, as `numpy.invert`; the logical NOT of booleans.

    Examples
    --------
    >>> nbta.invert([0, 5])
    array([-1, -6])
    """
    return apply(INVERT, promoted(x), name=name)


def _emit_left_shift(op, x, count):
    dtype = op.outputs[0].dtype
    fits = between(0, "<=", count, "<", 8 * dtype.itemsize)
    return select(fits, x << count, typed(0, dtype))


@binary(
    "LeftShift", np.left_shift, INTEGER, infer=_whole, emit=ElementwiseOf(_emit_left_shift, "iu"),
    family=WHOLE, cheap=True,
)  # fmt: skip
def left_shift(x: ArrayLike, y: ArrayLike, *, name: str | None = None) -> Array:
    """``x`` shifted to the left by ``y`` bits, as `numpy.left_shift`.

    The result is 0 for negative counts and for counts of all bits or more, as in NumPy.

    Examples
    --------
    >>> nbta.left_shift([1, 3], 2)
    array([ 4, 12])
    """


def _emit_right_shift(op, x, count):
    dtype = op.outputs[0].dtype
    bits = 8 * dtype.itemsize
    rest = typed(0, dtype) if dtype.kind == "u" else x >> typed(bits - 1, dtype)
    return select(between(0, "<=", count, "<", bits), x >> count, rest)


@binary(
    "RightShift", np.right_shift, INTEGER, infer=_whole,
    emit=ElementwiseOf(_emit_right_shift, "iu"), family=WHOLE, cheap=True,
)  # fmt: skip
def right_shift(x: ArrayLike, y: ArrayLike, *, name: str | None = None) -> Array:
    """``x`` shifted to the right by ``y`` bits, as `numpy.right_shift`: ``x / 2**y`` rounded down.

    The result is 0, or -1 for negative ``x``, for negative counts and counts of all bits or more.

    Examples
    --------
    >>> nbta.right_shift([12, -5], 2)
    array([ 3, -2])
    """


def _divisible(*specs):
    """Shape rule of what divides integers."""
    if specs[0].dtype.kind == "b":
        raise invalid("dtype", "booleans have no divisors; cast them first")
    return _bits(*specs)


@binary("Gcd", np.gcd, INTEGER, infer=_divisible, family=DIVISIBLE)
def gcd(x: ArrayLike, y: ArrayLike, *, name: str | None = None) -> Array:
    """Greatest common divisor, element by element, as `numpy.gcd`.

    Examples
    --------
    >>> nbta.gcd([12, 7], 18)
    array([6, 1])
    """


@binary("Lcm", np.lcm, INTEGER, infer=_divisible, family=DIVISIBLE)
def lcm(x: ArrayLike, y: ArrayLike, *, name: str | None = None) -> Array:
    """Least common multiple, element by element, as `numpy.lcm`.

    Examples
    --------
    >>> nbta.lcm([4, 7], 6)
    array([12, 42])
    """


@stands_for("bitwise_count")
def _bitwise_count(x):
    """NumPy's: how many bits are set in the absolute value: summed in pairs, then of pairs."""
    (x,) = promoted(x)
    if x.dtype.kind not in "iu":
        raise invalid("dtype", f"bitwise_count: {x.dtype} has no bits to count; cast it first")
    x = x if x.dtype == np.uint64 else cast(abs(cast(x, np.int64)), np.uint64)
    for width, mask in zip((1, 2, 4, 8, 16, 32), _MASKS, strict=True):
        part = bitwise_and(right_shift(x, np.uint64(width)), mask)
        x = add(bitwise_and(x, mask), part)
    return cast(x, np.uint8)


#: Every second bit, every second pair of bits, and so on, from the lowest one.
_MASKS = [np.uint64((1 << 64) // ((1 << width) + 1)) for width in (1, 2, 4, 8, 16, 32)]
