"""Gamma variates from random bits, and derivatives of the incomplete gamma function by its order.

With P(a, x) the regularised lower incomplete gamma function and p its derivative by x, the density,
``gamma_slope`` is ``-(dP/da) / p``: by how much the number at which P has a value moves with a. It
is a sum or an integral of positive terms everywhere, so that no digits cancel:

* of small x, ``P = p * sum(c_n)`` with ``c_n = x**(n+1) / (a (a+1) ... (a+n))``, and so the slope
  is the sum of ``c_n * (digamma(a + n + 1) - log(x))``, positive up to ``x = a + 1/2``;
* elsewhere ``t = x * exp(-v)`` below x, or ``t = x * exp(v)`` above it, in the integral of
  ``t**(a-1) * exp(-t) * (digamma(a) - log(t))``, by the double exponential formula for half a line:
  H. Takahasi, M. Mori, "Double exponential formulas for numerical integration", Publ. RIMS 9, 1974.

Implicit differentiation of variates: M. Figurnov, S. Mohamed, A. Mnih, "Implicit reparameterization
gradients", NeurIPS 2018.
"""

import functools
import math

import numba
import numpy as np

from nbta.codegen.philox import philox, unit_of
from nbta.tuning import GAMMA_INTEGRAL_ORDER, GAMMA_INTEGRAL_STEP, GAMMA_SERIES_FROM

_TIMES = np.arange(-52, 57) * GAMMA_INTEGRAL_STEP
#: Where the integrand is looked at, and with which weight, for a decay like ``exp(-u)``.
_NODES = np.exp(_TIMES - np.exp(-_TIMES))
_WEIGHTS = GAMMA_INTEGRAL_STEP * _NODES * (1.0 + np.exp(-_TIMES))
#: By B_2k: what log exceeds the digamma function by, its derivative, and Stirling's formula.
_DIGAMMA = (
    1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12, -3617 / 8160,
)  # fmt: skip
_TRIGAMMA = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510)
_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)


@numba.njit(error_model="numpy")
def _in_squares(coefficients, z):
    """The sum of ``coefficients[k] / z**(2 k)``."""
    total, square = 0.0, 1.0 / (z * z)
    for k in range(len(coefficients) - 1, -1, -1):
        total = total * square + coefficients[k]
    return total


@numba.njit(error_model="numpy")
def _log_over_digamma(x, a):
    """``log(x) - digamma(a)``, with no more error than its terms have for x near a."""
    shift = 0.0
    while a < GAMMA_SERIES_FROM:
        shift += 1.0 / a
        a += 1.0
    near = math.log1p((x - a) / a) if 0.5 * a < x < 2.0 * a else math.log(x) - math.log(a)
    return near + 0.5 / a + _in_squares(_DIGAMMA, a) / (a * a) + shift


@numba.njit(error_model="numpy")
def _trigamma(a):
    """The derivative of the digamma function."""
    shift = 0.0
    while a < GAMMA_SERIES_FROM:
        shift += 1.0 / (a * a)
        a += 1.0
    return (1.0 + 0.5 / a + _in_squares(_TRIGAMMA, a) / (a * a)) / a + shift


@numba.njit(error_model="numpy")
def _exp_excess(w):
    """``exp(w) - 1 - w``."""
    if abs(w) > 0.5:
        return math.expm1(w) - w
    total = 1.0
    for k in range(15, 2, -1):
        total = 1.0 + total * w / k
    return 0.5 * w * w * total


@numba.njit(error_model="numpy")
def _log_excess(y):
    """``y - log(1 + y)``."""
    if not -0.4 < y < 0.6:
        return y - math.log1p(y)
    r, total = y / (2.0 + y), 0.0
    for k in range(33, 1, -2):
        total = total * r * r + 1.0 / k
    return r * (y - 2.0 * r * r * total)


@numba.njit(error_model="numpy")
def _slopes_by_sum(a, x):
    term, gap = x / a, 1.0 / a - _log_over_digamma(x, a)
    total, inverses, bend = term * gap, 1.0 / a, _trigamma(a) - 1.0 / (a * a)
    second = term * (bend - inverses * gap)
    while term * gap * max(1.0, inverses) > 1e-17 * total:
        a += 1.0
        term *= x / a
        gap += 1.0 / a
        inverses += 1.0 / a
        bend -= 1.0 / (a * a)
        total += term * gap
        second += term * (bend - inverses * gap)
    return total, second


@numba.njit(error_model="numpy")
def _slopes_by_integral(a, x, sign):
    """Of t above x (1) or below it (-1)."""
    slope, offset = sign * (x - a), sign * _log_over_digamma(x, a)
    half = 0.5 * slope
    width = 1.0 / (half + math.sqrt(half * half + 0.5 * x)) if half > 0.0 else math.sqrt(2.0 / x)
    total, second, bend = 0.0, 0.0, _trigamma(a)
    for node, weight in zip(_NODES, _WEIGHTS):  # noqa: B905 # which Numba does not know
        v = width * node
        decay = slope * v + x * _exp_excess(sign * v)
        if decay > 60.0:
            break
        weight *= math.exp(-decay)
        total += weight * (v + offset)
        second += weight * (v * (v + offset) - bend)
    return total * width * x, sign * second * width * x


@numba.njit(error_model="numpy")
def _slopes(a, x):
    """The slope, and its derivative by a."""
    a, x = float(a), float(x)
    if not (a > 0.0 and x >= 0.0 and a < math.inf):
        return math.nan, math.nan
    if x == 0.0 or x == math.inf:
        return x, -x
    if a < GAMMA_INTEGRAL_ORDER:
        return _slopes_by_sum(a, x) if x <= a + 0.5 else _slopes_by_integral(a, x, 1.0)
    return _slopes_by_integral(a, x, 1.0 if _log_over_digamma(x, a) > 0.0 else -1.0)


@numba.njit(error_model="numpy")
def gamma_slope(a, x):
    """``-(dP/da) / p`` for positive a and x; 0 for x = 0."""
    return _slopes(a, x)[0]


@numba.njit(error_model="numpy")
def gamma_bend(a, x):
    """The derivative of `gamma_slope` by a, with x held fixed."""
    return _slopes(a, x)[1]


@numba.njit(error_model="numpy")
def _weighted_density(a, x):
    """``x * p(a, x)``."""
    if a < GAMMA_SERIES_FROM:
        return math.exp(a * math.log(x) - x - math.lgamma(a))
    decay = a * _log_excess((x - a) / a) + _in_squares(_STIRLING, a) / a
    return math.sqrt(a / (2.0 * math.pi)) * math.exp(-decay)


@numba.njit(error_model="numpy")
def gammainc_slope(a, x):
    """``dP/da`` for positive a and x; 0 at the ends."""
    a, x = float(a), float(x)
    if x == math.inf and a < math.inf:
        return 0.0 if a > 0.0 else math.nan
    slope = gamma_slope(a, x)
    if not slope > 0.0:
        return slope
    return -slope / x * _weighted_density(a, x)


@numba.njit(error_model="numpy")
def gammainc_bend(a, x):
    """The second derivative of P by a."""
    a, x = float(a), float(x)
    slope, bend = _slopes(a, x)
    if not slope > 0.0:
        return slope
    if x == math.inf:
        return 0.0
    return -(_log_over_digamma(x, a) * slope + bend) / x * _weighted_density(a, x)


#: The third part of the counter: what one draws with a key are numbers (0), keys (1) and these.
_GAMMAS, _ONE, _REST = np.uint64(2), np.uint64(1), np.uint64(12)
_NEXT = np.uint64(1 << 32)


@numba.njit(error_model="numpy")
def gamma_of(key, counter, a):
    """A gamma variate of order a for a counter; NaN for negative orders.

    By rejection, with the next bits for each attempt: G. Marsaglia, W. W. Tsang, "A simple method
    for generating gamma variables", ACM TOMS 26(3), 2000. Of orders below 1 it is one of ``a + 1``
    times a power of a uniform number.
    """
    a = float(a)
    if not 0.0 < a < math.inf:
        return a if a >= 0.0 else math.nan
    stream, boost = _GAMMAS, 0.0
    if a < 1.0:
        boost = math.log(unit_of(philox(key, counter, stream), _REST)) / a
    d = (a if a >= 1.0 else a + 1.0) - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    while True:
        one = unit_of(philox(key, counter, stream + _NEXT), _REST)
        other = unit_of(philox(key, counter, stream + _NEXT + _NEXT), _REST)
        stream += _NEXT + _NEXT + _NEXT
        x = math.sqrt(-2.0 * math.log(one)) * math.cos(2.0 * math.pi * other)
        v = 1.0 + c * x
        if v > 0.0:
            v = v * v * v
            limit = 0.5 * x * x + d * (1.0 - v + math.log(v))
            if math.log(unit_of(philox(key, counter, stream), _REST)) < limit:
                return d * v * math.exp(boost)


@functools.cache
def over_arrays(function):
    """One of these for arrays, broadcast: the same machine code, so bitwise identical."""
    return numba.vectorize(cache=True)(function.py_func)


#: Names in generated code.
NAMES = {
    "gamma_slope": gamma_slope,
    "gamma_bend": gamma_bend,
    "gammainc_slope": gammainc_slope,
    "gammainc_bend": gammainc_bend,
    "gamma_of": gamma_of,
}
