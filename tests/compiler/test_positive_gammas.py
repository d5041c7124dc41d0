"""Gamma functions of positive numbers in vector instructions, and what is left to SciPy."""

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import partial

import numba
import numpy as np
import pytest
from scipy import special

import nbta
from nbta.codegen.positive_gammas import (
    positive_digamma,
    positive_gammaln,
    positive_tetragamma,
    positive_trigamma,
)
from nbta.testing import check_grads
from nbta.tuning import POSITIVE_GAMMAS_LEAST, POSITIVE_GAMMAS_MOST, SUM_BLOCK

#: How far functions are moved up to where their series have 40 digits.
FAR = 400
#: Bernoulli numbers.
NUMBERS = [
    *("1/6", "-1/30", "1/42", "-1/30", "5/66", "-691/2730", "7/6", "-3617/510", "43867/798"),
    *("-174611/330", "854513/138"),
]
#: Where the logarithm of gamma is least, and its slope 0.
ROOT = 1.4616321449683622


def _series(z, of_slope):
    total = Decimal(0)
    for k, text in enumerate(NUMBERS, start=1):
        number = Fraction(text) / (2 * k if of_slope else 2 * k * (2 * k - 1))
        power = 2 * k if of_slope else 2 * k - 1
        total += Decimal(number.numerator) / Decimal(number.denominator) / z**power
    return total


def exact_gammaln(x):
    with localcontext(prec=50):
        x, factors = Decimal(x), Decimal(1)
        for k in range(FAR):
            factors *= x + k
        z = x + FAR
        half_log = (2 * Decimal("3.14159265358979323846264338327950288419716939937511")).ln() / 2
        return (z - Decimal("0.5")) * z.ln() - z + half_log + _series(z, False) - factors.ln()


def exact_digamma(x):
    with localcontext(prec=50):
        x = Decimal(x)
        rest = sum(1 / (x + k) for k in range(FAR))
        z = x + FAR
        return z.ln() - 1 / (2 * z) - _series(z, True) - rest


def exact_polygamma(n, x):
    """By Euler's and Maclaurin's formula for the sum of powers."""
    with localcontext(prec=50):
        x = Decimal(x)
        z = x + FAR
        total = sum(1 / (x + k) ** (n + 1) for k in range(FAR))
        total += 1 / (n * z**n) + 1 / (2 * z ** (n + 1))
        for k, text in enumerate(NUMBERS, start=1):
            number = Fraction(text) * math.factorial(2 * k + n - 1) / math.factorial(2 * k)
            number /= math.factorial(n)
            total += Decimal(number.numerator) / Decimal(number.denominator) / z ** (2 * k + n)
        return (-1) ** (n + 1) * math.factorial(n) * total


def samples():
    """Numbers of all sizes, more of those near zeros and where one formula follows another."""
    random = np.random.default_rng(3)
    parts = [
        random.uniform(0, 3, 300),
        random.uniform(0, 12, 300),
        10 ** random.uniform(-9, 6, 200),
    ]
    parts += [10 ** random.uniform(-285, 285, 50)]
    for place in (0.5, 1.0, 1.5, 2.0, 2.5, 8.0, 10.0, ROOT):
        parts += [place + random.normal(size=20) * 10 ** random.uniform(-13, -2, 20)]
        parts += [np.array([place, np.nextafter(place, 0), np.nextafter(place, 9)])]
    return np.concatenate(parts)


@pytest.mark.parametrize(
    ("definition", "exact", "scipys"),
    [
        (positive_gammaln, exact_gammaln, special.gammaln),
        (positive_digamma, exact_digamma, special.psi),
        (positive_trigamma, partial(exact_polygamma, 1), partial(special.polygamma, 1)),
        (positive_tetragamma, partial(exact_polygamma, 2), partial(special.polygamma, 2)),
    ],
    ids=["gammaln", "digamma", "trigamma", "tetragamma"],
)
def test_within_5_units_in_the_last_place(definition, exact, scipys):
    """Near their zeros, too, where SciPy's logarithm of gamma is only as good as near others."""

    @numba.njit(error_model="numpy", fastmath={"contract"})
    def computed(x, out):
        for i in range(x.size):
            out[i] = definition(x[i])

    x = samples()
    out = np.empty_like(x)
    computed(x, out)
    for value, given in zip(out.tolist(), x.tolist(), strict=True):
        wanted = exact(given)
        if not np.isfinite(float(wanted)):
            assert value == float(wanted)
            continue
        unit = Decimal(float(np.spacing(abs(float(wanted)))))
        assert abs(Decimal(value) - wanted) <= 5 * unit + Decimal("1e-40"), given
    ends = np.array([POSITIVE_GAMMAS_LEAST, POSITIVE_GAMMAS_MOST])
    out = np.empty(2)
    computed(ends, out)
    np.testing.assert_allclose(out, scipys(ends), rtol=1e-15)


FUNCTIONS = {
    "gammaln": (nbta.gammaln, special.gammaln),
    "digamma": (nbta.digamma, special.psi),
    "trigamma": (partial(nbta.polygamma, 1), partial(special.polygamma, 1)),
    "tetragamma": (partial(nbta.polygamma, 2), partial(special.polygamma, 2)),
}
OUTSIDE = [0.0, -0.0, -0.5, -1.0, -170.25, np.inf, np.nan, 1e-300, 1e300]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_other_numbers_are_left_to_others(name, dtype):
    """In blocks of their own: each of them among others, and all values and sums are right.

    What SciPy does not export to C is a sum of powers, and as good as its own.
    """
    ours, scipys = FUNCTIONS[name]
    function = nbta.function(lambda x: (ours(x * 2), np.sum(ours(x))), compiled=True)
    x = np.linspace(0.25, 30.0, 3 * SUM_BLOCK + 7).astype(dtype)
    close = {"rtol": 1e-13 if dtype == np.float64 else 1e-5, "atol": 1e-15}
    with np.errstate(all="ignore"):
        for place, value in zip(range(5, 3000, 301), OUTSIDE, strict=False):
            given = x.copy()
            given[place] = value
            found, total = function(given)
            np.testing.assert_allclose(found, scipys(given * 2), **close)
            np.testing.assert_allclose(total, np.sum(scipys(given.astype(float))), **close)
            outside = np.asarray(scipys(given[place] * 2), dtype)
            far = 0 if name in ("gammaln", "digamma") else close["rtol"]
            np.testing.assert_allclose(found[place], outside, rtol=far)
            assert found.dtype == dtype
    assert "positive_" in function.source


@pytest.mark.parametrize("n", [0, 1, 5, SUM_BLOCK, SUM_BLOCK + 1])
def test_lengths(n):
    x = np.linspace(0.1, 9.0, n)
    found = nbta.function(lambda x: nbta.gammaln(x) + nbta.digamma(x), compiled=True)(x)
    np.testing.assert_allclose(found, special.gammaln(x) + special.psi(x), rtol=1e-14, atol=1e-15)


def test_along_rows():
    """Where sums stay along the last axis, the loop is not gone through twice."""

    def f(x):
        return np.sum(nbta.gammaln(x), axis=0), np.sum(nbta.gammaln(x), axis=1)

    x = np.linspace(-2.75, 9.0, 5 * 1100).reshape(5, 1100)
    for found, axis in zip(nbta.function(f, compiled=True)(x), (0, 1), strict=True):
        np.testing.assert_allclose(found, np.sum(special.gammaln(x), axis=axis), rtol=1e-12)


def test_exact_gradients():
    def f(x, y):
        return np.sum(nbta.gammaln(x * y) - y * nbta.digamma(x))

    x, y = np.array([0.3, 1.2, 3.5, 12.0]), np.array([1.5, 0.4, 2.0, 1.0])
    check_grads(f, (x, y), order=2)
    (one, expected), (other, found) = (
        nbta.value_and_grad(f, argnums=(0, 1), compiled=compiled)(x, y)
        for compiled in (False, True)
    )
    for pair in ((other, one), *zip(found, expected, strict=True)):
        np.testing.assert_allclose(*pair, rtol=1e-13)
