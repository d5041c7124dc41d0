"""The normal distribution and error functions, their inverses, logits."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from nbta.codegen.special import OfSciPy
from nbta.ops.arithmetic import divide, greater, multiply, negative, reciprocal, square, where
from nbta.ops.dispatch import exported
from nbta.ops.elementary import exp, softplus
from nbta.ops.elementwise import floats_only, from_scipy, unary
from nbta.ops.filling import ones_like

if TYPE_CHECKING:
    from nbta.typing import Array, ArrayLike


def _of_scipy(record, name, derivative):
    """A function of one real number that SciPy has."""
    return unary(
        record,
        lambda x: from_scipy(name, x),
        derivative,
        infer=floats_only,
        also=(name,),
        emit=OfSciPy(name),
    )


@_of_scipy("ErfInv", "erfinv", lambda x, y: math.sqrt(math.pi) / 2 * exp(square(y)))
def erfinv(x: ArrayLike, *, name: str | None = None) -> Array:
    """What `nbta.erf` is ``x`` of, for numbers from -1 to 1.

    Examples
    --------
    >>> nbta.erfinv([0.0, 0.5])
    array([0.        , 0.47693628])
    """


@_of_scipy("ErfcInv", "erfcinv", lambda x, y: -math.sqrt(math.pi) / 2 * exp(square(y)))
def erfcinv(x: ArrayLike, *, name: str | None = None) -> Array:
    """What `nbta.erfc` is ``x`` of, for numbers from 0 to 2.

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


@_of_scipy("ErfcX", "erfcx", _erfcx_slope)
def erfcx(x: ArrayLike, *, name: str | None = None) -> Array:
    """``exp(x**2) * erfc(x)``, without overflow or underflow for positive numbers.

    Examples
    --------
    >>> nbta.erfcx([0.0, 100.0])
    array([1.        , 0.00564161])
    """


@_of_scipy("Ndtr", "ndtr", lambda x, y: exp(-0.5 * square(x)) * (1 / math.sqrt(2 * math.pi)))
def ndtr(x: ArrayLike, *, name: str | None = None) -> Array:
    """The distribution function of the standard normal distribution.

    Examples
    --------
    >>> nbta.ndtr([0.0, 1.96])
    array([0.5      , 0.9750021])
    """


@_of_scipy("NdtrI", "ndtri", lambda x, y: math.sqrt(2 * math.pi) * exp(0.5 * square(y)))
def ndtri(x: ArrayLike, *, name: str | None = None) -> Array:
    """Quantiles of the standard normal distribution, for numbers from 0 to 1.

    Examples
    --------
    >>> nbta.ndtri([0.5, 0.975])
    array([0.        , 1.95996398])
    """


@_of_scipy(
    "LogNdtr",
    "log_ndtr",
    lambda x, y: math.sqrt(2 / math.pi) / erfcx(multiply(x, -math.sqrt(0.5))),
)
def log_ndtr(x: ArrayLike, *, name: str | None = None) -> Array:
    """The logarithm of `nbta.ndtr`, exact where that is nearly 0.

    Examples
    --------
    >>> nbta.log_ndtr([0.0, -100.0])
    array([-6.93147181e-01, -5.00552421e+03])
    """


@_of_scipy("Logit", "logit", lambda x, y: divide(1.0, x * (1 - x)))
def logit(x: ArrayLike, *, name: str | None = None) -> Array:
    """``log(x / (1 - x))``, the inverse of `nbta.sigmoid`.

    Examples
    --------
    >>> nbta.logit([0.5, 0.75])
    array([0.        , 1.09861229])
    """


@exported(also="log_expit")
def log_sigmoid(x: ArrayLike, *, name: str | None = None) -> Array:
    """The logarithm of `nbta.sigmoid`, without underflow.

    Examples
    --------
    >>> nbta.log_sigmoid([0.0, -1000.0])
    array([-6.93147181e-01, -1.00000000e+03])
    """
    return negative(softplus(negative(x)), name=name)
