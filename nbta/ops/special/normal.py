"""The normal distribution and error functions, their inverses, logits."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from nbta.ops.core.arithmetic import divide, greater, multiply, negative, reciprocal, square, where
from nbta.ops.core.descriptions import REAL_FLOATS
from nbta.ops.core.dispatch import exported
from nbta.ops.core.elementwise import of_one, promoted
from nbta.ops.core.filling import ones_like, zeros_like
from nbta.ops.elementary.basic import abs, exp, softplus

if TYPE_CHECKING:
    from nbta.typing import Array, ArrayLike


@of_one("ErfInv", "erfinv", lambda x, y: math.sqrt(math.pi) / 2 * exp(square(y)))
def erfinv(x: ArrayLike, *, name: str | None = None) -> Array:
    """Inverse of `nbta.erf`, for numbers from -1 to 1, as ``scipy.special.erfinv``.

    Examples
    --------
    >>> nbta.erfinv([0.0, 0.5])
    array([0.        , 0.47693628])
    """


@of_one("ErfcInv", "erfcinv", lambda x, y: -math.sqrt(math.pi) / 2 * exp(square(y)))
def erfcinv(x: ArrayLike, *, name: str | None = None) -> Array:
    """Inverse of `nbta.erfc`, for numbers from 0 to 2, as ``scipy.special.erfcinv``.

    Examples
    --------
    >>> nbta.erfcinv([1.5, 0.5])
    array([-0.47693628,  0.47693628])
    """


#: From where on the derivative of `erfcx` is summed by powers of 1 / x**2, as its two parts cancel
#: but for about that: as many as leave less than the last place.
_FAR = 50.0
_TAIL = [(-1) ** k * math.prod(range(1, 2 * k, 2)) / 2**k for k in range(1, 8)]


def _erfcx_slope(x, y):
    """``2 x y - 2 / sqrt(pi)``, in which far out nearly all cancels."""
    far = greater(x, _FAR)
    near = 2 * where(far, ones_like(x), x) * y - 2 / math.sqrt(math.pi)
    inverse = square(reciprocal(where(far, x, ones_like(x))))
    tail = 0.0
    for coefficient in reversed(_TAIL):
        tail = (tail + coefficient) * inverse
    return where(far, 2 / math.sqrt(math.pi) * tail, near)


@of_one("ErfcX", "erfcx", _erfcx_slope)
def erfcx(x: ArrayLike, *, name: str | None = None) -> Array:
    """``exp(x**2) * erfc(x)``, without overflow for positive numbers, as ``scipy.special.erfcx``.

    Examples
    --------
    >>> nbta.erfcx([0.0, 100.0])
    array([1.        , 0.00564161])
    """


def _dawson_slope(x, y):
    """``1 - 2 x y``, in which far out nearly all cancels, as in that of `erfcx`."""
    far = greater(abs(x), _FAR)
    near = 1 - 2 * where(far, zeros_like(x), x) * y
    inverse = square(reciprocal(where(far, x, ones_like(x))))
    tail = 0.0
    for coefficient in reversed(_TAIL):
        tail = (tail - math.fabs(coefficient)) * inverse
    return where(far, tail, near)


@of_one("Dawson", "dawsn", _dawson_slope)
def dawsn(x: ArrayLike, *, name: str | None = None) -> Array:
    """Dawson's integral, as ``scipy.special.dawsn``.

    It is ``exp(-x**2)`` times the integral of ``exp(t**2)`` from 0 to ``x``.

    Examples
    --------
    >>> nbta.dawsn([0.0, 1.0])
    array([0.        , 0.53807951])
    """


@of_one("ErfI", "erfi", lambda x, y: 2 / math.sqrt(math.pi) * exp(square(x)))
def erfi(x: ArrayLike, *, name: str | None = None) -> Array:
    """Imaginary error function, ``-1j * erf(1j * x)``, as ``scipy.special.erfi``.

    Examples
    --------
    >>> nbta.erfi([0.0, 1.0])
    array([0.        , 1.65042576])
    """


@of_one("Ndtr", "ndtr", lambda x, y: exp(-0.5 * square(x)) * (1 / math.sqrt(2 * math.pi)))
def ndtr(x: ArrayLike, *, name: str | None = None) -> Array:
    """Cumulative distribution function of the standard normal, as ``scipy.special.ndtr``.

    Examples
    --------
    >>> nbta.ndtr([0.0, 1.96])
    array([0.5      , 0.9750021])
    """


@of_one("NdtrI", "ndtri", lambda x, y: math.sqrt(2 * math.pi) * exp(0.5 * square(y)))
def ndtri(x: ArrayLike, *, name: str | None = None) -> Array:
    """Quantiles of the standard normal, for numbers from 0 to 1, as ``scipy.special.ndtri``.

    Examples
    --------
    >>> nbta.ndtri([0.5, 0.975])
    array([0.        , 1.95996398])
    """


@of_one(
    "LogNdtr",
    "log_ndtr",
    lambda x, y: math.sqrt(2 / math.pi) / erfcx(multiply(x, -math.sqrt(0.5))),
)
def log_ndtr(x: ArrayLike, *, name: str | None = None) -> Array:
    """Logarithm of `nbta.ndtr`, accurate in the lower tail, as ``scipy.special.log_ndtr``.

    Examples
    --------
    >>> nbta.log_ndtr([0.0, -100.0])
    array([-6.93147181e-01, -5.00552421e+03])
    """


@of_one(
    "NdtrIExp",
    "ndtri_exp",
    lambda y, x: math.sqrt(math.pi / 2) * erfcx(multiply(x, -math.sqrt(0.5))),
)
def ndtri_exp(y: ArrayLike, *, name: str | None = None) -> Array:
    """Inverse of `nbta.log_ndtr`, for numbers up to 0, as ``scipy.special.ndtri_exp``.

    Examples
    --------
    >>> nbta.ndtri_exp([-100.0, -0.1])
    array([-13.88847603,   1.3096178 ])
    """


@of_one("Logit", "logit", lambda x, y: divide(1.0, x * (1 - x)))
def logit(x: ArrayLike, *, name: str | None = None) -> Array:
    """``log(x / (1 - x))``, the inverse of `nbta.sigmoid`, as ``scipy.special.logit``.

    Examples
    --------
    >>> nbta.logit([0.5, 0.75])
    array([0.        , 1.09861229])
    """


@exported(also="log_expit", family=REAL_FLOATS)
def log_sigmoid(x: ArrayLike, *, name: str | None = None) -> Array:
    """Logarithm of `nbta.sigmoid`, without underflow, as ``scipy.special.log_expit``.

    Examples
    --------
    >>> nbta.log_sigmoid([0.0, -1000.0])
    array([-6.93147181e-01, -1.00000000e+03])
    """
    (x,) = promoted(x, floats=True)
    return negative(softplus(negative(x)), name=name)
