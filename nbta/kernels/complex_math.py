"""Functions of complex numbers, with the values that NumPy's have.

NumPy calls the C library, which follows annex G of the C standard for infinities and NaN; Numba
computes with products that are NaN there, and with quotients that overflow. Here both parts are
formulas of real functions with few roundings, and what is not finite has its own lines. Numbers of
complex64 are computed in complex128.
"""

import math

import numba
import numpy as np

from nbta.kernels.vector_math import complex_divide as quotient
from nbta.kernels.vector_math import complex_exp

#: From here on, the exponential of twice a real part exceeds what float64 has digits for.
_LARGE = 22.0
#: Above, a hyperbolic cosine overflows, and its product with a small cosine may not.
_TOP = 709.0
#: Steps in which an exponential that overflows is multiplied into a product that does not.
_STEP = 700.0
_LN2 = math.log(2.0)
_LN10 = math.log(10.0)
#: Integers below are exponents of products; those from here on are multiplied by a logarithm.
_MOST_PRODUCTS = 100.0
#: Splits a float64 into halves whose products are exact.
_SPLITTER = 2.0**27 + 1.0


@numba.njit(error_model="numpy")
def _scaled(x, y):
    """``exp(x) / 2 * (cos(y) + i sin(y))`` for ``x`` whose exponential overflows."""
    c, s = 0.5 * math.cos(y), 0.5 * math.sin(y)
    while x > _STEP:
        grown = math.exp(_STEP)
        c, s, x = c * grown, s * grown, x - _STEP
        if math.isinf(c) and math.isinf(s):
            break
    grown = math.exp(x)
    return c * grown, s * grown


@numba.njit(error_model="numpy")
def _cosh(x, y):
    """Both parts of the hyperbolic cosine of ``x + i y``."""
    if math.isfinite(x) and math.isfinite(y):
        if y == 0.0:
            return math.cosh(x), x * y
        if abs(x) < _TOP:
            return math.cosh(x) * math.cos(y), math.sinh(x) * math.sin(y)
        c, s = _scaled(abs(x), y)
        return c, math.copysign(1.0, x) * s
    if x == 0.0:
        return y - y, math.copysign(0.0, x * (y - y))
    if y == 0.0:
        return x * x, math.copysign(0.0, x) * y
    if math.isfinite(x):
        return y - y, x * (y - y)
    if math.isinf(x):
        if math.isfinite(y):
            return x * x * math.cos(y), x * math.sin(y)
        return x * x, x * (y - y)
    return (x * x) * (y - y), (x + x) * (y - y)


@numba.njit(error_model="numpy")
def _sinh(x, y):
    """Both parts of the hyperbolic sine of ``x + i y``."""
    if math.isfinite(x) and math.isfinite(y):
        if y == 0.0:
            return math.sinh(x), y
        if abs(x) < _TOP:
            return math.sinh(x) * math.cos(y), math.cosh(x) * math.sin(y)
        c, s = _scaled(abs(x), y)
        return math.copysign(1.0, x) * c, s
    if x == 0.0:
        return math.copysign(0.0, x * (y - y)), y - y
    if y == 0.0:
        return x, y
    if math.isfinite(x):
        return y - y, x * (y - y)
    if math.isinf(x):
        if math.isfinite(y):
            return x * math.cos(y), abs(x) * math.sin(y)
        return x * x, x * (y - y)
    return (x * x) * (y - y), (x + x) * (y - y)


@numba.njit(error_model="numpy")
def _tanh(x, y):
    """Both parts of the hyperbolic tangent of ``x + i y``, by Kahan's formula."""
    if not math.isfinite(x):
        if math.isnan(x):
            return x, y if y == 0.0 else x * y
        sign = math.sin(y) * math.cos(y) if math.isfinite(y) else 1.0
        return math.copysign(1.0, x), math.copysign(0.0, sign)
    if not math.isfinite(y):
        return x if x == 0.0 else y - y, y - y
    if abs(x) >= _LARGE:
        small = math.exp(-abs(x))
        return math.copysign(1.0, x), 4.0 * math.sin(y) * math.cos(y) * small * small
    t, s = math.tan(y), math.sinh(x)
    beta, rho = 1.0 + t * t, math.sqrt(1.0 + s * s)
    denominator = 1.0 + beta * s * s
    return beta * rho * s / denominator, t / denominator


@numba.njit(error_model="numpy")
def _square(x):
    """A square and what its rounding left out (Dekker's product)."""
    high = _SPLITTER * x
    high -= high - x
    low = x - high
    square = x * x
    return square, low * low - ((square - high * high) - 2.0 * high * low)


@numba.njit(error_model="numpy")
def _sum(x, y):
    """A sum and what its rounding left out (Knuth's)."""
    total = x + y
    part = total - x
    return total, (x - (total - part)) + (y - part)


@numba.njit(error_model="numpy")
def _log_absolute(x, y):
    """The logarithm of an absolute value; near 1 of what it exceeds 1 by, without cancellation."""
    a, b = max(abs(x), abs(y)), min(abs(x), abs(y))
    if math.isnan(x) or math.isnan(y) or math.isinf(a):
        return math.log(math.hypot(x, y))
    if 0.5 < a < 2.0 and a * a + b * b > 0.5:
        square, rest = _square(a)
        other, other_rest = _square(b)
        excess, lost = _sum(square, -1.0)
        total, more = _sum(excess, other)
        return 0.5 * math.log1p(total + (more + lost + rest + other_rest))
    if a > 1e300:
        return math.log(math.hypot(0.5 * x, 0.5 * y)) + _LN2
    if 0.0 < a < 1e-300:
        return math.log(math.hypot(x * 2.0**100, y * 2.0**100)) - 100.0 * _LN2
    return math.log(math.hypot(x, y)) if a > 0.0 else -math.inf


@numba.njit(error_model="numpy")
def complex_cosh(z):
    """Hyperbolic cosine."""
    x, y = _cosh(float(z.real), float(z.imag))
    return type(z)(complex(x, y))


@numba.njit(error_model="numpy")
def complex_sinh(z):
    """Hyperbolic sine."""
    x, y = _sinh(float(z.real), float(z.imag))
    return type(z)(complex(x, y))


@numba.njit(error_model="numpy")
def complex_tanh(z):
    """Hyperbolic tangent."""
    x, y = _tanh(float(z.real), float(z.imag))
    return type(z)(complex(x, y))


@numba.njit(error_model="numpy")
def complex_cos(z):
    """Cosine: the hyperbolic one of ``i z``."""
    x, y = _cosh(-float(z.imag), float(z.real))
    return type(z)(complex(x, y))


@numba.njit(error_model="numpy")
def complex_sin(z):
    """Sine: the hyperbolic one of ``i z``, divided by ``i``."""
    if math.isinf(z.imag) and not math.isfinite(z.real):
        return type(z)(complex(math.nan, math.inf))
    x, y = _sinh(-float(z.imag), float(z.real))
    return type(z)(complex(y, -x))


@numba.njit(error_model="numpy")
def complex_tan(z):
    """Tangent: the hyperbolic one of ``i z``, divided by ``i``."""
    x, y = _tanh(-float(z.imag), float(z.real))
    return type(z)(complex(y, -x))


@numba.njit(error_model="numpy")
def complex_log(z):
    """Natural logarithm, with the imaginary part from -pi to pi."""
    x, y = float(z.real), float(z.imag)
    return type(z)(complex(_log_absolute(x, y), math.atan2(y, x)))


@numba.njit(error_model="numpy")
def complex_log2(z):
    """Binary logarithm."""
    x, y = float(z.real), float(z.imag)
    return type(z)(complex(_log_absolute(x, y) / _LN2, math.atan2(y, x) / _LN2))


@numba.njit(error_model="numpy")
def complex_log10(z):
    """Decimal logarithm."""
    x, y = float(z.real), float(z.imag)
    return type(z)(complex(_log_absolute(x, y) / _LN10, math.atan2(y, x) / _LN10))


@numba.njit(error_model="numpy")
def complex_expm1(z):
    """``exp(z) - 1``; the real part is a sum that does not cancel near 0."""
    x, y = float(z.real), float(z.imag)
    half = math.sin(0.5 * y)
    real = np.expm1(x) * math.cos(y) - 2.0 * half * half
    return type(z)(complex(real, math.exp(x) * math.sin(y)))


@numba.njit(error_model="numpy")
def _whole_power(z, n):
    """A power by products, as NumPy computes it: 1 times infinity gives NaN, too."""
    if 1 <= n <= 3:
        return z if n == 1 else z * z if n == 2 else z * z * z
    result, base, left = complex(1.0, 0.0), z, abs(n)
    while left:
        if left & 1:
            result *= base
        left >>= 1
        base = base * base if left else base
    return result if n > 0 else quotient(complex(1.0, 0.0), result)


@numba.njit(error_model="numpy")
def complex_power(base, exponent):
    """``base ** exponent`` of complex numbers, which are complex128 in between."""
    b, e = complex(base), complex(exponent)
    if e == 0:
        return type(base)(complex(1.0, 0.0))
    if b == 0:
        return type(base)(complex(0.0, 0.0) if e.real > 0.0 else complex(math.nan, math.nan))
    if e.imag == 0.0 and abs(e.real) < _MOST_PRODUCTS and e.real == math.floor(e.real):
        return type(base)(_whole_power(b, int(e.real)))
    return type(base)(complex_exp(e * complex_log(b)))


NAMES = (
    "complex_power",
    "complex_cosh", "complex_sinh", "complex_tanh", "complex_cos", "complex_sin", "complex_tan",
    "complex_log", "complex_log2", "complex_log10", "complex_expm1",
)  # fmt: skip
