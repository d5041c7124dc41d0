"""Logarithms of the gamma function, and derivatives, of positive numbers in vector instructions.

What SciPy has branches and takes 15 to 20 ns a number, and derivatives of the digamma function, as
sums of powers, 130 ns. Here nothing branches, as in `nbta.kernels.vector_math`. From 8 on it is
Stirling's series, below it the functional equation, which leads to a polynomial near a zero: that
of the logarithm at 2, and that of the digamma function between 1 and 2. Further derivatives have no
zero, and their functional equation leads to the series, from 10 on. Terms and factors of the
functional equation are put together before a logarithm is taken, or a quotient. The polynomials are
Chebyshev interpolations in 50 digits, by the distance from what stands beside them; results are
within 5 units in the last place, near zeros too.
"""

from math import comb, factorial

from nbta.kernels.vector_math import Value, _log, _polynomial, _scalar, select
from nbta.loops import Expression, call
from nbta.tuning import (
    POLYGAMMA_FROM,
    POSITIVE_GAMMAS_LEAST,
    POSITIVE_GAMMAS_MOST,
    STIRLING_FROM,
    STIRLING_STEPS,
)

#: ``log(gamma(2 + t)) / t``, to 1/2 on each side.
_AT_2 = (
    2.7475390051909663e-07, -5.811277768921246e-07, 9.242852225162277e-07, -1.9743106888421067e-06,
    4.3828545383846665e-06, -9.45628851510172e-06, 2.050601970174762e-05, -4.4923727564247656e-05,
    9.945761692157133e-05, -0.00022315497746292723, 0.0005096695196526673, -0.0011927539009983087,
    0.002890510330865901, -0.007385551028935545, 0.02058080842778338, -0.06735230105319563,
    0.3224670334241132, 0.42278433509846713,
)  # fmt: skip
#: The zero of the digamma function, in two parts.
_ZERO, _ZERO_LOW = 1.4616321449683622, 9.549995429965697e-17
#: ``digamma(1.5 + t) / (1.5 + t - zero)``, to 1/2 on each side.
_AT_ZERO = (
    -0.00017312261802727394, 0.00025968482126430747, -0.00015148586836773365,
    0.0002272331660987376, -0.0004821990530566789, 0.0007233266279287554, -0.0010376374098418604,
    0.0015566317474486838, -0.002345267632540769, 0.003519006401502276, -0.005279964873257405,
    0.007926944646403797, -0.011908218001568644, 0.0179072524394512, -0.02697579675613825,
    0.04076083381242074, -0.061922133273064534, 0.09498872445494122, -0.14840492305390884,
    0.2405424842407742, -0.4236274212814605, 0.951055876031833,
)  # fmt: skip
#: Stirling's series, by ``1 / x**2``, and that of its slope.
_STIRLING = (
    -3617 / 122400,
    1 / 156,
    -691 / 360360,
    1 / 1188,
    -1 / 1680,
    1 / 1260,
    -1 / 360,
    1 / 12,
)
_SLOPE = (
    43867 / 14364, -3617 / 8160, 1 / 12, -691 / 32760, 1 / 132, -1 / 240, 1 / 252, -1 / 120, 1 / 12,
)  # fmt: skip
_HALF_LOG_2_PI = 0.9189385332046727
#: Bernoulli numbers of 2, 4, ...; from where on the series of derivatives need no others.
_BERNOULLI = (
    1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798,
    -174611 / 330,
)  # fmt: skip


def _number(x, value):
    """A constant of the type of x."""
    return Value(x.builder, x.like(value))


def _by_horner(x, coefficients):
    """A polynomial term by term, which rounds least where what stands beside it takes most away."""
    y, *rest = coefficients
    for coefficient in rest:
        y = y * x + coefficient
    return y


def _positive_gammaln(x, c):
    far, low, tiny = x >= STIRLING_FROM, x < 1.5, x < 0.5
    u, factors = x, _number(x, 1)
    for _ in range(STIRLING_STEPS):
        above = u > 2.5
        u = select(above, u - 1, u)
        factors = select(above, factors * u, factors)
    factors = select(low, select(tiny, x * (x + 1), x), factors)
    t = select(low, select(tiny, x, x - 1), u - 2)
    log = _log(select(far, x, factors), c)
    near = t * _by_horner(t, _AT_2) + select(low, -log, log)
    w = _number(x, 1) / x
    series = w * _polynomial(w * w, _STIRLING)
    return select(far, (x - 0.5) * (log - 1) + (series + (_HALF_LOG_2_PI - 0.5)), near)


def _positive_digamma(x, c):
    far, low = x >= STIRLING_FROM, x < 1
    u, over, under = x, _number(x, 0), _number(x, 1)
    for _ in range(STIRLING_STEPS):
        above = u > 2
        u = select(above, u - 1, u)
        over = select(above, over * u + under, over)
        under = select(above, under * u, under)
    u = select(low, x + 1, u)
    rest = select(low, -1, over) / select(low, x, under)
    near = ((u - _ZERO) - _ZERO_LOW) * _by_horner(u - 1.5, _AT_ZERO) + rest
    w = _number(x, 1) / x
    series = w * (0.5 + w * _polynomial(w * w, _SLOPE))
    return select(far, _log(x, c) - series, near)


def _positive_polygamma(n):
    """The derivative of the digamma function of an order from 1 on."""
    series = [number * comb(n + 1 + 2 * k, n - 1) for k, number in enumerate(_BERNOULLI)]
    sign = (-1) ** (n + 1)

    def definition(x, c):
        u, over, under = x, _number(x, 0), _number(x, 1)
        for _ in range(POLYGAMMA_FROM):
            low, power = u < POLYGAMMA_FROM, u
            for _ in range(n):
                power = power * u
            over = select(low, over * power + under, over)
            under = select(low, under * power, under)
            u = select(low, u + 1, u)
        w = _number(x, 1) / u
        scale = _number(x, sign * factorial(n - 1))
        for _ in range(n):
            scale = scale * w
        far = scale + scale * (w * (0.5 * n + w * _polynomial(w * w, series[::-1])))
        return far + over * (sign * factorial(n)) / under

    definition.__name__ = f"_positive_polygamma_{n}"
    return definition


positive_gammaln, positive_digamma, positive_trigamma, positive_tetragamma = map(
    _scalar,
    (_positive_gammaln, _positive_digamma, _positive_polygamma(1), _positive_polygamma(2)),
)
#: Names in generated code.
NAMES = {
    "positive_gammaln": positive_gammaln,
    "positive_digamma": positive_digamma,
    "positive_trigamma": positive_trigamma,
    "positive_tetragamma": positive_tetragamma,
}
#: Those of derivatives of the digamma function, by their order.
POLYGAMMAS = ("positive_digamma", "positive_trigamma", "positive_tetragamma")


def in_vectors(name, item) -> tuple[Expression, Expression]:
    """One of these for a number, and an integer that is 0 if it is for that."""
    x = call("float64", item)
    low, high = x >= POSITIVE_GAMMAS_LEAST, x <= POSITIVE_GAMMAS_MOST
    return call(name, x), 1 - call("int64", low) * call("int64", high)
