"""Rounding to integers, remainders and signs of floats, and which floats are no numbers."""

from __future__ import annotations

import builtins
import math
import operator
from functools import reduce
from typing import TYPE_CHECKING

import numpy as np

from nbta.codegen.fusion import INF, Elementary, Elementwise, ElementwiseOf, parts_of
from nbta.errors import invalid
from nbta.graph.operation import Tensor, is_inexact
from nbta.loops import call, either, select
from nbta.ops.core.arithmetic import (
    divide,
    equal,
    floor_divide,
    greater,
    imag,
    less,
    less_equal,
    logical_and,
    logical_not,
    logical_or,
    multiply,
    not_equal,
    real,
    real_counted,
    subtract,
    where,
)
from nbta.ops.core.descriptions import COUNTED, REAL_FLOATS, REAL_TRUTHS, TRUTHS
from nbta.ops.core.dispatch import as_array, exported, stands_for
from nbta.ops.core.elementwise import INTEGER, binary, promoted, real_only, truth, unary
from nbta.ops.core.filling import zeros_like
from nbta.ops.core.shaping import cast
from nbta.ops.elementary.basic import STEPS, abs, exp2, sign

if TYPE_CHECKING:
    from nbta.typing import Array, ArrayLike


@unary("Ceil", np.ceil, STEPS, infer=real_only, emit=Elementwise(lambda x: -call("floor", -x), "f"))
def ceil(x: ArrayLike, *, name: str | None = None) -> Array:
    """The smallest integer that is at least ``x``, as a float, as `numpy.ceil`; it has no gradient.

    Examples
    --------
    >>> nbta.ceil([-1.5, 2.0])
    array([-1.,  2.])
    """


@unary(
    "Trunc",
    np.trunc,
    STEPS,
    infer=real_only,
    emit=Elementwise(lambda x: select(x >= 0, call("floor", x), -call("floor", -x)), "f"),
)
def trunc(x: ArrayLike, *, name: str | None = None) -> Array:
    """``x`` rounded towards 0, as a float, as `numpy.trunc`; it has no gradient.

    Examples
    --------
    >>> nbta.trunc([-1.5, 2.5])
    array([-1.,  2.])
    """


@unary("Rint", np.rint, STEPS, infer=real_only, emit=Elementary("rint", compiled=np.rint))
def rint(x: ArrayLike, *, name: str | None = None) -> Array:
    """The nearest integer as a float, the even one of two, as `numpy.rint`; it has no gradient.

    Examples
    --------
    >>> nbta.rint([0.5, 1.5, -1.2])
    array([ 0.,  2., -1.])
    """


def _emit_is_nan(op, item):
    return reduce(operator.or_, (part.differs(part) for part in parts_of(op, item)))


@unary("IsNaN", np.isnan, INTEGER, infer=truth, emit=ElementwiseOf(_emit_is_nan, "fc"))
def isnan(x: ArrayLike, *, name: str | None = None) -> Array:
    """Whether each element is NaN, as `numpy.isnan`.

    Examples
    --------
    >>> nbta.isnan([1.0, np.nan])
    array([False,  True])
    """


def _emit_is_infinite(op, item):
    return reduce(operator.or_, (call("abs", part).equals(INF) for part in parts_of(op, item)))


@unary("IsInf", np.isinf, INTEGER, infer=truth, emit=ElementwiseOf(_emit_is_infinite, "fc"))
def isinf(x: ArrayLike, *, name: str | None = None) -> Array:
    """Whether each element is infinite, as `numpy.isinf`.

    Examples
    --------
    >>> nbta.isinf([1.0, -np.inf])
    array([False,  True])
    """


@binary(
    "CopySign",
    np.copysign,
    lambda x, y, z, dz: (dz * (sign(x) * sign(z)), None),
    infer=real_only,
    floats=True,
    emit=Elementary("copysign", compiled=math.copysign),
)
def copysign(x: ArrayLike, y: ArrayLike, *, name: str | None = None) -> Array:
    """``x`` with the sign of ``y``, as `numpy.copysign`; the derivative at 0 is 0.

    Examples
    --------
    >>> nbta.copysign([1.0, -2.0], -0.0)
    array([-1., -2.])
    """


@binary(
    "FMod",
    np.fmod,
    lambda x, y, z, dz: (dz, -dz * trunc(divide(x, y))),
    infer=real_counted,
    family=COUNTED,
    emit=Elementary("fmod", compiled=np.fmod),
)
def fmod(x: ArrayLike, y: ArrayLike, *, name: str | None = None) -> Array:
    """Remainder of division towards 0, with the sign of ``x``, as `numpy.fmod`.

    Examples
    --------
    >>> nbta.fmod([7.0, -7.0], 4.0)
    array([ 3., -3.])
    """


def _larger_gradient(first):
    """To the one that was taken, as `maximum` has it; a NaN is not taken beside a number."""

    def gradient(x, y, z, dz):
        taken = logical_or(first(x, y), logical_and(isnan(y), logical_not(isnan(x))))
        both = logical_or(equal(x, y), logical_and(isnan(x), isnan(y)))
        half = where(both, 0.5 * dz, 0.0)
        return where(taken, dz, half), where(taken, 0.0, where(both, half, dz))

    return gradient


def _first_if(order):
    """An emitted rule: the first where it is on that side or the second is NaN."""
    return Elementwise(lambda x, y: select(either(order(x, y), y.differs(y)), x, y), "iuf")


@binary("FMax", np.fmax, _larger_gradient(lambda x, y: greater(x, y)), emit=_first_if(operator.ge))
def fmax(x: ArrayLike, y: ArrayLike, *, name: str | None = None) -> Array:
    """The larger of two elements, ignoring NaN, as `numpy.fmax`; equal ones share the gradient.

    Examples
    --------
    >>> nbta.fmax([1.0, np.nan], [np.nan, 2.0])
    array([1., 2.])
    """


@binary("FMin", np.fmin, _larger_gradient(lambda x, y: less(x, y)), emit=_first_if(operator.le))
def fmin(x: ArrayLike, y: ArrayLike, *, name: str | None = None) -> Array:
    """The smaller of two elements, ignoring NaN, as `numpy.fmin`; equal ones share the gradient.

    Examples
    --------
    >>> nbta.fmin([1.0, np.nan], [0.5, 2.0])
    array([0.5, 2. ])
    """


@unary(
    "SignBit",
    np.signbit,
    INTEGER,
    infer=lambda spec: truth(real_only(spec)),
    family=REAL_TRUTHS,
    emit=Elementwise(lambda x: call("copysign", 1.0, x) < 0, "f"),
)
def signbit(x: ArrayLike, *, name: str | None = None) -> Array:
    """Whether the sign bit of each element is set, as it is for -0.0; as `numpy.signbit`.

    Examples
    --------
    >>> nbta.signbit([1.0, -0.0])
    array([False,  True])
    """


@binary(
    "Heaviside",
    np.heaviside,
    lambda x, y, z, dz: (None, dz * cast(equal(x, 0), dz.dtype)),
    infer=real_only,
    floats=True,
    emit=Elementwise(
        lambda x, at_0: select(x.equals(0), at_0, select(x > 0, 1, select(x < 0, 0, x))), "f"
    ),
)
def heaviside(x: ArrayLike, y: ArrayLike, *, name: str | None = None) -> Array:
    """0 for negative ``x``, 1 for positive ``x`` and ``y`` at 0, as `numpy.heaviside`.

    The gradient with respect to ``x`` is 0: the function is constant except at its step.

    Examples
    --------
    >>> nbta.heaviside([-1.5, 0.0, 2.0], 0.5)
    array([0. , 0.5, 1. ])
    """


@exported(also="fix", numpy=1, family=REAL_FLOATS)
def fix(x: ArrayLike, *, name: str | None = None) -> Array:
    """``x`` rounded towards 0, as a float, as `numpy.fix`; see `nbta.trunc`.

    Examples
    --------
    >>> nbta.fix([-1.5, 2.5])
    array([-1.,  2.])
    """
    return trunc(x, name=name)


@exported(also="around", numpy=2)
def round(x: ArrayLike, decimals: int = 0, *, name: str | None = None) -> Array:
    """``x`` rounded to a number of decimals, halves to the even neighbour, as `numpy.round`.

    Parameters
    ----------
    x : array-like or Tensor
        Real or complex numbers, of any shape. Integers are not changed by decimals from 0 on.
    decimals : int, default 0
        Number of decimals; negative numbers round to tens, hundreds and so on.

    Returns
    -------
    Tensor or numpy.ndarray
        Of the shape and dtype of ``x``.

    Raises
    ------
    InvalidArgumentError
        For negative decimals of integers.

    Examples
    --------
    >>> nbta.round([2.5, -1.27], 1)
    array([ 2.5, -1.3])
    """
    (x,) = promoted(x)
    decimals = operator.index(decimals)
    if x.dtype.kind in "biu" and decimals >= 0:
        return x
    if x.dtype.kind in "biu":
        message = f"decimals: {decimals} of {x.dtype}; cast it to a float first"
        raise invalid("dtype", message)
    if x.dtype.kind == "c":
        parts = (round(part, decimals) for part in (real(x), imag(x)))
        one, other = (cast(part, x.dtype) for part in parts)
        return one + multiply(other, 1j)
    if not decimals:
        return rint(x, name=name)
    scale = 10.0 ** builtins.abs(decimals)
    there, back = (multiply, divide) if decimals > 0 else (divide, multiply)
    return back(rint(there(x, scale)), scale, name=name)


@exported(numpy=1)
def nan_to_num(
    x: ArrayLike,
    nan: ArrayLike = 0.0,
    posinf: ArrayLike | None = None,
    neginf: ArrayLike | None = None,
    *,
    copy: bool = True,
    name: str | None = None,
) -> Array:
    """``x`` with finite numbers in place of NaN and infinities, as `numpy.nan_to_num`.

    The gradient with respect to a replaced element is 0.

    Parameters
    ----------
    x : array-like or Tensor
        Real numbers, of any shape. Integers are not changed.
    nan : scalar or Tensor, default 0.0
        Value in place of NaN.
    posinf, neginf : scalar or Tensor, optional
        Values in place of infinities; by default the largest and the smallest number of the dtype.
    copy : bool, default True
        Accepted for compatibility with NumPy: the result is always a new array.

    Returns
    -------
    Tensor or numpy.ndarray
        Of the shape and dtype of ``x``.

    Raises
    ------
    InvalidArgumentError
        For complex numbers.

    Examples
    --------
    >>> nbta.nan_to_num([1.0, np.nan, np.inf], posinf=9.0)
    array([1., 0., 9.])
    """
    (x,) = promoted(x)
    if x.dtype.kind == "c":
        raise invalid("dtype", f"it is for real numbers, not {x.dtype}; use real and imag")
    if not is_inexact(x.dtype):
        return x
    most = _greatest(x.dtype)
    high, low = (most if posinf is None else posinf), (-most if neginf is None else neginf)
    finite = where(isposinf(x), cast(high, x.dtype), where(isneginf(x), cast(low, x.dtype), x))
    return where(isnan(x), cast(nan, x.dtype), finite, name=name)


def _greatest(dtype):
    """The greatest number of a dtype."""
    if dtype.kind == "f":
        return float(np.finfo(dtype).max)
    import ml_dtypes  # which knows bfloat16, and is there where that is used

    return float(ml_dtypes.finfo(dtype).max)


@exported(numpy=1, family=TRUTHS)
def isposinf(x: ArrayLike, *, name: str | None = None) -> Array:
    """Whether each element is positive infinity, as `numpy.isposinf`.

    Examples
    --------
    >>> nbta.isposinf([np.inf, -np.inf])
    array([ True, False])
    """
    return equal(x, math.inf, name=name)


@exported(numpy=1, family=TRUTHS)
def isneginf(x: ArrayLike, *, name: str | None = None) -> Array:
    """Whether each element is negative infinity, as `numpy.isneginf`.

    Examples
    --------
    >>> nbta.isneginf([np.inf, -np.inf])
    array([False,  True])
    """
    return equal(x, -math.inf, name=name)


@exported(numpy=2)
def ldexp(x: ArrayLike, exponent: ArrayLike, *, name: str | None = None) -> Array:
    """``x * 2**exponent``, element by element, as `numpy.ldexp`.

    Parameters
    ----------
    x : array-like or Tensor
        Real numbers.
    exponent : array-like or Tensor of int
        Exponents, of a shape that broadcasts with ``x``. They have no gradient.

    Returns
    -------
    Tensor or numpy.ndarray
        Of the broadcast shape and the dtype of ``x``; float64 for integers.

    Raises
    ------
    InvalidArgumentError
        For exponents that are no integers.

    Examples
    --------
    >>> nbta.ldexp([1.0, 3.0], [3, -1])
    array([8. , 1.5])
    """
    (x,) = promoted(x)
    exponent = exponent if isinstance(exponent, Tensor) else as_array(exponent)
    if exponent.dtype.kind not in "biu":
        message = (
            f"exponent: {exponent.dtype} is not an integer dtype; use multiply(x, exp2(exponent))"
        )
        raise invalid("dtype", message)
    x = x if is_inexact(x.dtype) else cast(x, np.float64)
    # By two factors, as one alone may be out of range where the result is not.
    half = floor_divide(cast(exponent, np.int64), 2)
    rest = subtract(cast(exponent, np.int64), half)
    first, second = (cast(exp2(cast(part, np.float64)), x.dtype) for part in (half, rest))
    return multiply(multiply(x, first), second, name=name)


@stands_for("modf")
def _modf(x):
    """What is after the point, and what is before it, each with the sign of x."""
    (x,) = promoted(x, floats=True)
    whole = trunc(x)
    after = where(isinf(x), zeros_like(x), subtract(x, whole))
    return copysign(after, x), copysign(whole, x)


@stands_for("frexp", "spacing", "nextafter")
def _by_bits(*values):
    """What takes floats apart."""
    message = "floats are not taken apart into bits, or put together; use nbta.log2 and nbta.ldexp"
    raise invalid("symbolic", message)


@exported(numpy=2, family=TRUTHS)
def isclose(
    x: ArrayLike,
    y: ArrayLike,
    rtol: ArrayLike = 1e-05,
    atol: ArrayLike = 1e-08,
    equal_nan: bool = False,
    *,
    name: str | None = None,
) -> Array:
    """Whether ``abs(x - y) <= atol + rtol * abs(y)``, element by element, as `numpy.isclose`.

    Infinities are close to infinities of the same sign alone.

    Parameters
    ----------
    x, y : array-like or Tensor
        Real or complex numbers, of shapes that broadcast.
    rtol : float, default 1e-5
        Relative tolerance.
    atol : float, default 1e-8
        Absolute tolerance.
    equal_nan : bool, default False
        Whether NaN is close to NaN.

    Examples
    --------
    >>> nbta.isclose([1.0, 2.0], [1.0 + 1e-9, 2.1])
    array([ True, False])
    """
    x, y = promoted(x, y, floats=True)
    near = less_equal(abs(subtract(x, y)), atol + multiply(rtol, abs(y)))
    # An infinite difference is below an infinite bound.
    near = logical_and(near, not_equal(abs(y), math.inf))
    if equal_nan:
        near = logical_or(near, logical_and(isnan(x), isnan(y)))
    return logical_or(near, equal(x, y), name=name)


@stands_for("isreal", numpy=1)
def _isreal(x):
    """NumPy's: whether the imaginary part is 0."""
    return equal(imag(x), 0)


@stands_for("iscomplex", numpy=1)
def _iscomplex(x):
    """NumPy's: whether the imaginary part is not 0, or is NaN."""
    return not_equal(imag(x), 0)


@stands_for("isrealobj", numpy=1)
def _isrealobj(x):
    return not _iscomplexobj(x)


@stands_for("iscomplexobj", numpy=1)
def _iscomplexobj(x):
    """NumPy's: what the dtype says, which is known."""
    return (x if isinstance(x, Tensor) else as_array(x)).dtype.kind == "c"
