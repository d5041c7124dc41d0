"""Inverse circular functions, hyperbolic functions and their inverses, and right triangles."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from nbta.codegen.fusion import Elementary, ElementwiseOf
from nbta.codegen.values import typed
from nbta.loops import call, select
from nbta.ops.core.arithmetic import add, equal, imag, less, multiply, real, square, where
from nbta.ops.core.descriptions import FLOATS
from nbta.ops.core.dispatch import exported, stands_for
from nbta.ops.core.elementwise import binary, narrow, of_one, promoted, real_only, unary, widened
from nbta.ops.core.filling import ones_like, zeros_like
from nbta.ops.elementary.basic import abs, arctan2, cos, rsqrt, sin, sqrt

if TYPE_CHECKING:
    from nbta.typing import Array, ArrayLike


@unary(
    "ArcSin",
    np.arcsin,
    lambda x, y: 1 / sqrt(1 - square(x)),
    emit=Elementary("asin", compiled=math.asin),
)
def arcsin(x: ArrayLike, *, name: str | None = None) -> Array:
    """Inverse sine, in radians from -pi/2 to pi/2, as `numpy.arcsin`.

    Examples
    --------
    >>> nbta.arcsin([0.0, 1.0])
    array([0.        , 1.57079633])
    """


@unary(
    "ArcCos",
    np.arccos,
    lambda x, y: -1 / sqrt(1 - square(x)),
    emit=Elementary("acos", compiled=math.acos),
)
def arccos(x: ArrayLike, *, name: str | None = None) -> Array:
    """Inverse cosine, in radians from 0 to pi, as `numpy.arccos`.

    Examples
    --------
    >>> nbta.arccos([1.0, 0.0])
    array([0.        , 1.57079633])
    """


@unary(
    "ArcTan",
    np.arctan,
    lambda x, y: 1 / (1 + square(x)),
    emit=Elementary("atan", compiled=math.atan),
)
def arctan(x: ArrayLike, *, name: str | None = None) -> Array:
    """Inverse tangent, in radians from -pi/2 to pi/2, as `numpy.arctan`.

    Examples
    --------
    >>> nbta.arctan([0.0, 1.0])
    array([0.        , 0.78539816])
    """


@unary(
    "Sinh",
    np.sinh,
    lambda x, y: cosh(x),
    emit=Elementary("sinh", "complex_sinh", compiled=math.sinh),
)
def sinh(x: ArrayLike, *, name: str | None = None) -> Array:
    """Hyperbolic sine, as `numpy.sinh`.

    Examples
    --------
    >>> nbta.sinh([0.0, 1.0])
    array([0.        , 1.17520119])
    """


@unary(
    "Cosh",
    np.cosh,
    lambda x, y: sinh(x),
    emit=Elementary("cosh", "complex_cosh", compiled=math.cosh),
)
def cosh(x: ArrayLike, *, name: str | None = None) -> Array:
    """Hyperbolic cosine, as `numpy.cosh`.

    Examples
    --------
    >>> nbta.cosh([0.0, 1.0])
    array([1.        , 1.54308063])
    """


@unary(
    "ArcSinh",
    np.arcsinh,
    lambda x, y: 1 / sqrt(1 + square(x)),
    emit=Elementary("asinh", compiled=math.asinh),
)
def arcsinh(x: ArrayLike, *, name: str | None = None) -> Array:
    """Inverse hyperbolic sine, as `numpy.arcsinh`.

    Examples
    --------
    >>> nbta.arcsinh([0.0, 1.0])
    array([0.        , 0.88137359])
    """


@unary(
    "ArcCosh",
    np.arccosh,
    lambda x, y: rsqrt(x - 1) * rsqrt(x + 1),
    emit=Elementary("acosh", compiled=math.acosh),
)
def arccosh(x: ArrayLike, *, name: str | None = None) -> Array:
    """Inverse hyperbolic cosine, as `numpy.arccosh`; NaN below 1.

    Examples
    --------
    >>> nbta.arccosh([1.0, 2.0])
    array([0.        , 1.3169579])
    """


@unary(
    "ArcTanh",
    np.arctanh,
    lambda x, y: 1 / (1 - square(x)),
    emit=Elementary("atanh", compiled=math.atanh),
)
def arctanh(x: ArrayLike, *, name: str | None = None) -> Array:
    """Inverse hyperbolic tangent, as `numpy.arctanh`; NaN outside of -1 to 1.

    Examples
    --------
    >>> nbta.arctanh([0.0, 0.5])
    array([0.        , 0.54930614])
    """


def _hypot_gradient(x, y, length, dlength):
    """In the origin it has no slope in any direction, as `abs` has none at 0."""
    zero = equal(length, 0)
    share = where(zero, zeros_like(dlength), dlength / where(zero, ones_like(length), length))
    return share * x, share * y


@binary(
    "Hypot",
    np.hypot,
    _hypot_gradient,
    infer=real_only,
    floats=True,
    emit=Elementary("hypot", compiled=math.hypot),
)
def hypot(x: ArrayLike, y: ArrayLike, *, name: str | None = None) -> Array:
    """``sqrt(x**2 + y**2)``, without overflow, as `numpy.hypot`; its gradient at the origin is 0.

    Examples
    --------
    >>> nbta.hypot([3.0, 0.0], 4.0)
    array([5., 4.])
    """


@of_one("SinDg", "sindg", lambda x, y: math.pi / 180 * cosdg(x))
def sindg(x: ArrayLike, *, name: str | None = None) -> Array:
    """Sine of an angle in degrees, as ``scipy.special.sindg``.

    Examples
    --------
    >>> nbta.sindg([0.0, 90.0, 180.0])
    array([ 0.,  1., -0.])
    """


@of_one("CosDg", "cosdg", lambda x, y: -math.pi / 180 * sindg(x))
def cosdg(x: ArrayLike, *, name: str | None = None) -> Array:
    """Cosine of an angle in degrees, as ``scipy.special.cosdg``.

    Examples
    --------
    >>> nbta.cosdg([0.0, 90.0, 180.0])
    array([ 1., -0., -1.])
    """


@of_one("TanDg", "tandg", lambda x, y: math.pi / 180 * (1 + square(y)))
def tandg(x: ArrayLike, *, name: str | None = None) -> Array:
    """Tangent of an angle in degrees, as ``scipy.special.tandg``.

    Examples
    --------
    >>> nbta.tandg([0.0, 45.0])
    array([0., 1.])
    """


@of_one("CotDg", "cotdg", lambda x, y: -math.pi / 180 * (1 + square(y)))
def cotdg(x: ArrayLike, *, name: str | None = None) -> Array:
    """Cotangent of an angle in degrees, as ``scipy.special.cotdg``.

    Examples
    --------
    >>> nbta.cotdg([45.0, 90.0])
    array([1., 0.])
    """


@stands_for("radian")
def _radian(d, m, s):
    """SciPy's: degrees, minutes and seconds as radians."""
    d, m, s = promoted(d, m, s, floats=True)
    return multiply(add(multiply(add(multiply(d, 60), m), 60), s), math.pi / 648000)


@exported(also=("deg2rad",), family=FLOATS)
def radians(x: ArrayLike, *, name: str | None = None) -> Array:
    """Degrees converted to radians, as `numpy.radians`.

    Examples
    --------
    >>> nbta.radians([0.0, 180.0])
    array([0.        , 3.14159265])
    """
    return multiply(*promoted(x, math.pi / 180, floats=True), name=name)


@exported(also=("rad2deg",), family=FLOATS)
def degrees(x: ArrayLike, *, name: str | None = None) -> Array:
    """Radians converted to degrees, as `numpy.degrees`.

    Examples
    --------
    >>> nbta.degrees([0.0, np.pi])
    array([  0., 180.])
    """
    return multiply(*promoted(x, 180 / math.pi, floats=True), name=name)


@exported(numpy=2)
def angle(x: ArrayLike, deg: bool = False, *, name: str | None = None) -> Array:
    """Angle of complex numbers, from -pi to pi, as `numpy.angle`.

    The gradient is NaN at 0, which has no direction.

    Parameters
    ----------
    x : array-like or Tensor
        Real or complex numbers, of any shape.
    deg : bool, default False
        Whether to return degrees instead of radians.

    Returns
    -------
    Tensor or numpy.ndarray
        Of the shape of ``x``: float32 for complex64, float64 for complex128; for real numbers their
        dtype, and float64 for integers and booleans.

    Examples
    --------
    >>> nbta.angle([1.0, 1j], deg=True)
    array([ 0., 90.])
    """
    (x,) = promoted(x)
    if not deg:
        return arctan2(imag(x), real(x), name=name)
    return degrees(arctan2(imag(x), real(x)), name=name)


#: Of x, up to which the derivative of `sinc` is summed by powers.
_NEAR = 0.5
#: Of odd powers of x in that derivative, from the first one on: pi**2k (-1)**k 2k / (2k + 1)!, as
#: many as leave less than the last place of a derivative of third order at 0.5.
_SLOPES = [(-1) ** k * math.pi ** (2 * k) * 2 * k / math.factorial(2 * k + 1) for k in range(1, 15)]


def _sinc_slope(x, y):
    """``(cos(pi x) - y) / x``, whose parts cancel near 0."""
    near = less(abs(x), _NEAR)
    far = where(near, ones_like(x), x)
    x = where(near, x, zeros_like(x))
    by_powers, squared = zeros_like(x), square(x)
    for coefficient in reversed(_SLOPES):
        by_powers = by_powers * squared + coefficient
    return where(near, by_powers * x, (cos(math.pi * far) - y) / far)


def _emit_sinc(op, x):
    y = typed(math.pi, op.inputs[0].dtype) * x
    return select(x.equals(0), 1, call("sin", y) / y)


def _sinc(x):
    return narrow(np.asarray(np.sinc(widened(x))), x.dtype)


@stands_for("sinc", numpy=1)
@unary("Sinc", _sinc, _sinc_slope, infer=real_only, emit=ElementwiseOf(_emit_sinc, "f"))
def sinc(x: ArrayLike, *, name: str | None = None) -> Array:
    """``sin(pi * x) / (pi * x)``, and 1 at 0, as `numpy.sinc`.

    Examples
    --------
    >>> nbta.sinc([0.0, 0.5])
    array([1.        , 0.63661977])
    """


@stands_for("cosm1")
def _cosm1(x):
    """SciPy's: the cosine less 1, without that difference."""
    (x,) = promoted(x, floats=True)
    return multiply(-2.0, square(sin(multiply(0.5, x))))
