"""Gamma and beta functions, their logarithms, derivatives of these, and incomplete ones."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from nbta.codegen.fusion import INF, Elementary
from nbta.codegen.gammas import (
    gamma_bend,
    gamma_slope,
    gammainc_bend,
    gammainc_slope,
    over_arrays,
)
from nbta.codegen.positive_gammas import POLYGAMMAS, in_vectors
from nbta.codegen.special import BERNOULLI, OfSciPy, hurwitz_zeta, riemann_zeta
from nbta.errors import invalid
from nbta.loops import between, call, select
from nbta.ops.core.arithmetic import (
    divide,
    equal,
    less,
    less_equal,
    logical_and,
    logical_or,
    maximum,
    minimum,
    mod,
    multiply,
    negative,
    not_equal,
    square,
    where,
)
from nbta.ops.core.descriptions import REAL_FLOATS
from nbta.ops.core.dispatch import apply, exported, stands_for
from nbta.ops.core.elementwise import (
    binary,
    define_elementwise,
    floats_only,
    from_scipy,
    of_one,
    of_three,
    of_two,
    promoted,
    real_only,
    summed,
    unary,
    without_gradient,
)
from nbta.ops.core.filling import ones_like, zeros_like
from nbta.ops.core.shaping import cast
from nbta.ops.elementary.basic import abs, cos, exp, floor, log, power, sin
from nbta.ops.elementary.rounding import copysign, rint
from nbta.ops.special.information import xlog1py, xlogy
from nbta.tuning import ZETA_FROM

if TYPE_CHECKING:
    from nbta.typing import Array, ArrayLike


@unary(
    "Gamma",
    lambda x: from_scipy("gamma", x),
    lambda x, y: y * polygamma(0, x),
    infer=real_only,
    emit=Elementary("gamma", compiled=math.gamma),
)
def gamma(x: ArrayLike, *, name: str | None = None) -> Array:
    """Gamma function, ``(x - 1)!`` for positive integers, as ``scipy.special.gamma``.

    Examples
    --------
    >>> nbta.gamma([0.5, 5.0])
    array([ 1.77245385, 24.        ])
    """


def _gammaln(x):
    """SciPy's, but as C has it, and `math.lgamma`, at minus infinity and for subnormal numbers."""
    found, size = from_scipy("gammaln", x), np.abs(x)
    tiny = (size > 0) & (size < np.finfo(np.float64).tiny)
    return np.where(x == -np.inf, size, np.where(tiny, -np.log(size), found)).astype(x.dtype)


class _EmitGammaLn(OfSciPy):
    """SciPy's likewise: near 1 Numba's `math.lgamma` is 2000 units in the last place off."""

    def __init__(self):
        super().__init__("gammaln")

    def item(self, op, items, code):
        """An item of the result."""
        (x,) = items
        size, tiny = call("abs", x), float(np.finfo(np.float64).tiny)
        is_tiny = between(0, "<", size, "<", tiny)
        usual = select(is_tiny, -call("log", size), super().item(op, items, code))
        return select(x.equals(-INF), INF, usual)

    def in_vectors(self, op, items):
        """For positive numbers."""
        return in_vectors("positive_gammaln", *items)


@unary(
    "GammaLn",
    _gammaln,
    lambda x, y: polygamma(0, x),
    infer=real_only,
    emit=_EmitGammaLn(),
)
def gammaln(x: ArrayLike, *, name: str | None = None) -> Array:
    """Logarithm of the absolute value of the gamma function, as ``scipy.special.gammaln``.

    Examples
    --------
    >>> nbta.gammaln([0.5, 100.0])
    array([  0.57236494, 359.13420537])
    """


@stands_for("gammaln")
def _gammaln_of_scipy(x):
    """SciPy's, which is -inf at minus infinity, and infinite where ``1 / x`` is."""
    (x,) = promoted(x, floats=True)
    found = where(less(abs(x), 5.56268464626801e-309), math.inf, gammaln(x))
    return where(equal(x, -math.inf), x, found)


def _pi_wave(function, x):
    """A sine or cosine of ``pi x``, which is exact at whole numbers."""
    turns = rint(x)
    return function(math.pi * (x - turns)) * (1 - 2 * mod(turns, 2))


def _reciprocal_slope(x, y):
    """By reflection below 0.5, where it has slopes at its zeros."""
    low = less(x, 0.5)
    other = 1 - where(low, x, zeros_like(x))
    wave = _pi_wave(cos, x) - digamma(other) * _pi_wave(sin, x) / math.pi
    usual = where(logical_or(low, equal(y, 0)), ones_like(x), x)  # infinite ones have the slope 0
    return where(low, gamma(other) * wave, -digamma(usual) * y)


@of_one("ReciprocalGamma", "rgamma", _reciprocal_slope)
def rgamma(x: ArrayLike, *, name: str | None = None) -> Array:
    """``1 / gamma(x)``, as ``scipy.special.rgamma``; 0 at the poles of the gamma function.

    Examples
    --------
    >>> nbta.rgamma([-1.0, 0.5, 5.0])
    array([0.        , 0.56418958, 0.04166667])
    """


@stands_for("gammasgn")
def _gammasgn(x):
    """SciPy's: the sign of the gamma function; NaN where it jumps from one to the other."""
    (x,) = promoted(x, floats=True)
    sign = where(equal(x, 0), copysign(1.0, x), 1 - 2 * mod(floor(minimum(x, 0)), 2))
    jumps = logical_and(less(x, 0), equal(floor(x), x))
    return where(logical_or(jumps, not_equal(x, x)), np.array(math.nan, x.dtype), sign)


def _infer_polygamma(spec, *, n):
    return floats_only(spec)


def _evaluate_polygamma(x, *, n):
    return from_scipy("psi", x) if n == 0 else from_scipy("polygamma", x, n)


def _polygamma_gradient(op, dy):
    return [dy * polygamma(op.attrs["n"] + 1, op.inputs[0])]


class _EmitPolygamma(OfSciPy):
    """SciPy's digamma function, and the others by sums of powers."""

    def __init__(self):
        super().__init__("psi")

    def item(self, op, items, code):
        """An item of the result."""
        n = op.attrs["n"]
        if n == 0:
            return super().item(op, items, code)
        return (-1) ** (n + 1) * math.gamma(n + 1) * call("hurwitz_zeta", n + 1.0, *items)

    def in_vectors(self, op, items):
        """The first of them of positive numbers."""
        n = op.attrs["n"]
        return in_vectors(POLYGAMMAS[n], *items) if n < len(POLYGAMMAS) else None


POLYGAMMA = define_elementwise(
    "Polygamma", _infer_polygamma, _evaluate_polygamma, _polygamma_gradient, emit=_EmitPolygamma()
)


@exported(also="scipy.special.polygamma", numpy=2)
def polygamma(n: int, x: ArrayLike, *, name: str | None = None) -> Array:
    """Derivatives of the digamma function, as ``scipy.special.polygamma``.

    Parameters
    ----------
    n : int
        Order of the derivative; 0 gives `nbta.digamma` itself.
    x : array-like or Tensor
        Real numbers, of any shape.

    Returns
    -------
    Tensor or numpy.ndarray
        Of the shape and dtype of ``x``; float64 for integers and booleans.

    Raises
    ------
    InvalidArgumentError
        For a negative n.

    Examples
    --------
    >>> nbta.polygamma(0, 1.0)
    np.float64(-0.5772156649015329)
    """
    if n < 0:
        raise invalid("value", f"n must be 0 or more, not {n}")
    return apply(POLYGAMMA, promoted(x, floats=True), {"n": int(n)}, name=name)


@exported(also="psi", family=REAL_FLOATS)
def digamma(x: ArrayLike, *, name: str | None = None) -> Array:
    """Derivative of `nbta.gammaln`, as ``scipy.special.digamma``.

    Examples
    --------
    >>> nbta.digamma([1.0, 10.0])
    array([-0.57721566,  2.25175259])
    """
    return polygamma(0, x, name=name)


@stands_for("loggamma")
def _loggamma(x):
    """SciPy's, which is complex for negative numbers, and so NaN where numbers are real."""
    (x,) = promoted(x, floats=True)
    return where(less(x, 0), np.array(math.nan, x.dtype), gammaln(x))


@stands_for("scipy.special.multigammaln", numpy=2)
def _multigammaln(a, d):
    """Logarithm of the multivariate gamma function."""
    (a,) = promoted(a, floats=True)
    total = d * (d - 1) * 0.25 * math.log(math.pi)
    for j in range(d):
        total = gammaln(a - 0.5 * j) + total
    return total


def _zeta_slope(s, q):
    """By the exponent: what the derivatives of the sums of Euler and Maclaurin are.

    As many first terms are added up as make what ten corrections leave nothing for exponents up to
    15; of greater ones the first terms are nearly all.
    """
    total = 0.0
    for k in range(20):
        total = total - exp(-s * log(q + k)) * log(q + k)
    far = q + 20
    last, height = exp(-s * log(far)), log(far)
    total = total - last * far / (s - 1) * (height + divide(1.0, s - 1)) - 0.5 * last * height
    term, slope = last * s / far, last * (1.0 - s * height) / far
    for j, ratio in enumerate(BERNOULLI):
        total = total + ratio * slope
        one, other = s + (2 * j + 1), s + (2 * j + 2)
        slope = (slope * one * other + term * (one + other)) / (far * far)
        term = term * one * other / (far * far)
    return total


def _zeta_gradient(s, q, z, dz):
    """NaN where the value is: the formulas would go on below 1, as SciPy's function does not."""
    low = less(s, 1.0)
    slopes = _zeta_slope(s, q), -s * zeta(s + 1, q)
    return tuple(dz * where(low, math.nan, slope) for slope in slopes)


ZETA = define_elementwise(
    "Zeta",
    floats_only,
    of_two("zeta"),
    summed(_zeta_gradient),
    emit=Elementary("hurwitz_zeta", compiled=hurwitz_zeta),
)


RIEMANN_ZETA = define_elementwise(
    "RiemannZeta",
    floats_only,
    lambda s: from_scipy("zeta", np.where(s < ZETA_FROM, s.dtype.type(np.nan), s)),
    lambda op, dz: [dz * _zeta_slope(op.inputs[0], 1.0)],
    emit=Elementary("riemann_zeta", compiled=riemann_zeta),
)


def _reflection(s):
    """What zeta(s) is of zeta(1 - s): ``2**s pi**(s-1) sin(pi s/2) gamma(1-s)``.

    By the duplication formula of gamma, whose halves stay in range; the sine of an angle that is
    reduced first, so that it is 0 at even numbers. From -338 down all but these is infinite.
    """
    turns = rint(s / 2)
    sine = sin((s / 2 - turns) * math.pi) * (1 - 2 * mod(turns, 2))
    s = maximum(s, -338.0)
    root = power(math.pi, s / 2 - 0.75)
    return root * gamma((1 - s) / 2) * sine * (root * gamma(1 - s / 2))


def _riemann(x, name):
    """By reflection below -0.1; between that and 0 it would take digits from ``1 - x``."""
    (x,) = promoted(x, floats=True)
    s = x if x.dtype == np.float64 or x.dtype.kind == "c" else cast(x, np.float64)
    low = less(s, ZETA_FROM)
    found = apply(RIEMANN_ZETA, [where(low, 1.0 - s, s)])
    found = where(low, _reflection(where(low, s, -1.0)) * found, found)
    return cast(found, x.dtype, name=name)


@exported(also=("scipy.special.zeta", "_zeta", "_riemann_zeta"), numpy=2, family=REAL_FLOATS)
def zeta(x: ArrayLike, q: ArrayLike | None = None, *, name: str | None = None) -> Array:
    """Sum of ``(k + q)**-x`` over all integers k from 0 on, as ``scipy.special.zeta``.

    Without ``q`` it is Riemann's zeta function, which also has values for ``x`` below 1. With ``q``
    it is NaN there. Both are infinite at 1.

    Parameters
    ----------
    x : array-like or Tensor
        Exponents: real numbers. Integers and booleans become float64.
    q : array-like or Tensor, optional
        Real numbers that are added to the integers, of a shape that broadcasts with ``x``; 1 by
        default.

    Examples
    --------
    >>> nbta.zeta([2.0, 4.0, -1.0])
    array([ 1.64493407,  1.08232323, -0.08333333])
    >>> nbta.zeta(2.0, [1.0, 2.0])
    array([1.64493407, 0.64493407])
    """
    if q is None:
        return _riemann(x, name)
    return apply(ZETA, promoted(x, q, floats=True), name=name)


def _poch_gradient(z, m, y, dy):
    both = digamma(z + m)
    return dy * y * (both - digamma(z)), dy * y * both


@binary(
    "Poch",
    of_two("poch"),
    _poch_gradient,
    infer=floats_only,
    floats=True,
    also=("poch",),
    emit=OfSciPy("poch"),
)
def poch(z: ArrayLike, m: ArrayLike, *, name: str | None = None) -> Array:
    """Rising factorial, ``gamma(z + m) / gamma(z)``, as ``scipy.special.poch``.

    The derivatives are NaN at the poles of the gamma functions.

    Examples
    --------
    >>> nbta.poch([1.0, 0.5], 3.0)
    array([6.   , 1.875])
    """


def _binom_gradient(n, k, y, dy):
    beside = digamma(n - k + 1)
    return dy * y * (digamma(n + 1) - beside), dy * y * (beside - digamma(k + 1))


@binary(
    "Binom",
    of_two("binom"),
    _binom_gradient,
    infer=floats_only,
    floats=True,
    also=("binom",),
    emit=OfSciPy("binom"),
)
def binom(n: ArrayLike, k: ArrayLike, *, name: str | None = None) -> Array:
    """Binomial coefficient of real numbers, as ``scipy.special.binom``.

    The derivatives are NaN at poles of the gamma functions that it is made of, as for integers with
    ``k`` above ``n``.

    Examples
    --------
    >>> nbta.binom([5.0, 2.5], 2.0)
    array([10.   ,  1.875])
    """


@stands_for("scipy.special.comb", numpy=2)
def _comb(N, k, *, exact=False, repetition=False):  # noqa: N803 - SciPy's name
    """SciPy's: how many ways there are, and none where ``k`` is not from 0 to ``N``."""
    if exact or repetition:
        message = "comb: exact=True is for Python's integers, and for repetition=True use binom"
        raise invalid("value", message)
    count, k = promoted(N, k, floats=True)
    fits = logical_and(less_equal(0, k), logical_and(less_equal(k, count), less_equal(0, count)))
    found = binom(where(fits, count, ones_like(count)), where(fits, k, ones_like(k)))
    return where(fits, found, 0.0)


@stands_for("scipy.special.perm", numpy=2)
def _perm(N, k, exact=False):  # noqa: N803 - SciPy's name
    """SciPy's: how many sequences there are, likewise."""
    if exact:
        raise invalid("value", "perm: exact=True is for Python's integers; leave it out")
    count, k = promoted(N, k, floats=True)
    fits = logical_and(less_equal(0, k), logical_and(less_equal(k, count), less_equal(0, count)))
    low = where(fits, count - k + 1, ones_like(count))
    return where(fits, poch(low, where(fits, k, ones_like(k))), 0.0)


@stands_for("scipy.special.factorial", numpy=1)
def _factorial(n, exact=False, extend="zero"):
    """SciPy's: the gamma function of one more, and 0 of negative numbers."""
    if exact or extend != "zero":
        raise invalid("value", "factorial: give neither exact=True nor extend=; see nbta.gamma")
    (n,) = promoted(n, floats=True)
    low = less(n, 0)
    return where(low, zeros_like(n), gamma(1 + where(low, ones_like(n), n)))


@binary(
    "Beta",
    of_two("beta"),
    lambda a, b, y, dy: _beta_slopes(a, b, dy * y),
    infer=floats_only,
    floats=True,
    also=("beta",),
    emit=OfSciPy("beta"),
)
def beta(a: ArrayLike, b: ArrayLike, *, name: str | None = None) -> Array:
    """Beta function, ``gamma(a) * gamma(b) / gamma(a + b)``, as ``scipy.special.beta``.

    Examples
    --------
    >>> nbta.beta([1.0, 2.0], 3.0)
    array([0.33333333, 0.08333333])
    """


def _beta_slopes(a, b, scale):
    both = digamma(a + b)
    return scale * (digamma(a) - both), scale * (digamma(b) - both)


@binary(
    "BetaLn",
    of_two("betaln"),
    lambda a, b, y, dy: _beta_slopes(a, b, dy),
    infer=floats_only,
    floats=True,
    also=("betaln",),
    emit=OfSciPy("betaln"),
)
def betaln(a: ArrayLike, b: ArrayLike, *, name: str | None = None) -> Array:
    """Logarithm of the absolute value of the beta function, as ``scipy.special.betaln``.

    Examples
    --------
    >>> nbta.betaln([1.0, 2.0], 3.0)
    array([-1.09861229, -2.48490665])
    """


def _fixed(value, what):
    """A parameter that must not be differentiated by."""
    message = (
        f"{what}: nbta has no derivative with respect to it; differentiate with respect to x, or "
        "hold it fixed with nbta.stop_gradient"
    )
    return without_gradient(value, message)


def _on_floats(function):
    """A function of two numbers that takes arrays, and goes by float64."""

    def evaluate(a, x):
        found = over_arrays(function)(a.astype(np.float64), x.astype(np.float64))
        return np.asarray(found).astype(a.dtype)

    return evaluate


def _density(a, x):
    """Of gamma variates of order a."""
    return exp(xlogy(a - 1, x) - x - gammaln(a))


def _by_x(a, x, slope):
    """The derivative of a variate's slope by the variate."""
    return digamma(a) - log(x) - slope * (divide(a - 1, x) - 1)


def _bend_by_x(a, x, bend):
    return polygamma(1, a) - bend * (divide(a - 1, x) - 1) - divide(variate_slope(a, x), x)


# Third derivatives by a, which is fixed, are put off to where a gradient arrives, and refused.
VARIATE_BEND = define_elementwise(
    "GammaVariateBend",
    floats_only,
    _on_floats(gamma_bend),
    summed(lambda a, x, y, dy: (dy, dy * _bend_by_x(a, x, y))),
    emit=Elementary("gamma_bend", compiled=gamma_bend),
)
VARIATE_SLOPE = define_elementwise(
    "GammaVariateSlope",
    floats_only,
    _on_floats(gamma_slope),
    summed(lambda a, x, y, dy: (dy * _bend(VARIATE_BEND, a, x), dy * _by_x(a, x, y))),
    emit=Elementary("gamma_slope", compiled=gamma_slope),
)
GAMMAINC_BEND = define_elementwise(
    "GammaIncBend",
    floats_only,
    _on_floats(gammainc_bend),
    summed(lambda a, x, y, dy: (dy, dy * _density(a, x) * _log_ratio_bend(a, x))),
    emit=Elementary("gammainc_bend", compiled=gammainc_bend),
)
GAMMAINC_SLOPE = define_elementwise(
    "GammaIncSlope",
    floats_only,
    _on_floats(gammainc_slope),
    summed(
        lambda a, x, y, dy: (
            dy * _bend(GAMMAINC_BEND, a, x), dy * _density(a, x) * (log(x) - digamma(a))
        )
    ),
    emit=Elementary("gammainc_slope", compiled=gammainc_slope),
)  # fmt: skip


def _log_ratio_bend(a, x):
    """What the density's second derivative by a is of it."""
    return square(log(x) - digamma(a)) - polygamma(1, a)


def _bend(record, a, x):
    return apply(record, [_fixed(a, "the order of the gamma distribution (third derivative)"), x])


def variate_slope(a, x):
    """By how much a gamma variate of order a moves with a, as its quantile does."""
    return apply(VARIATE_SLOPE, [a, x])


def _gammainc_slope(sign):
    def gradient(a, x, y, dy):
        dy = dy if sign > 0 else -dy
        return dy * apply(GAMMAINC_SLOPE, [a, x]), dy * _density(a, x)

    return gradient


GAMMAINC = define_elementwise(
    "GammaInc",
    floats_only,
    of_two("gammainc"),
    summed(_gammainc_slope(1)),
    emit=OfSciPy("gammainc"),
)
GAMMAINCC = define_elementwise(
    "GammaIncC",
    floats_only,
    of_two("gammaincc"),
    summed(_gammainc_slope(-1)),
    emit=OfSciPy("gammaincc"),
)


@exported(family=REAL_FLOATS)
def gammainc(a: ArrayLike, x: ArrayLike, *, name: str | None = None) -> Array:
    """Regularised lower incomplete gamma function, as ``scipy.special.gammainc``.

    Raises
    ------
    UnimplementedError
        For third derivatives with respect to ``a``.

    Notes
    -----
    The derivative by ``a`` is exact to 1e-11 of itself, for orders from 1e-3 to 1e7, and the
    second one to 1e-11 of the terms whose difference it is, up to 1e5.

    Examples
    --------
    >>> nbta.gammainc(2.0, [0.0, 1.0])
    array([0.        , 0.26424112])
    >>> nbta.grad(nbta.gammainc, argnums=(0, 1))(2.0, 1.0)
    (np.float64(-0.27619...), np.float64(0.36787...))
    >>> nbta.hessian(lambda a: nbta.gammainc(a, 1.0))(2.0)
    np.float64(0.20511...)
    """
    return apply(GAMMAINC, promoted(a, x, floats=True), name=name)


@exported(family=REAL_FLOATS)
def gammaincc(a: ArrayLike, x: ArrayLike, *, name: str | None = None) -> Array:
    """Regularised upper incomplete gamma function, ``1 - gammainc(a, x)``.

    It follows ``scipy.special.gammaincc``.

    Raises
    ------
    UnimplementedError
        For third derivatives with respect to ``a``.

    Examples
    --------
    >>> nbta.gammaincc(2.0, [0.0, 1.0])
    array([1.        , 0.73575888])
    """
    return apply(GAMMAINCC, promoted(a, x, floats=True), name=name)


def _betainc_slope(a, b, x, y, dy):
    density = exp(xlogy(a - 1, x) + xlog1py(b - 1, negative(x)) - betaln(a, b))
    return dy, dy, dy * density


BETAINC = define_elementwise(
    "BetaInc", floats_only, of_three("betainc"), summed(_betainc_slope), emit=OfSciPy("betainc")
)


@exported(family=REAL_FLOATS)
def betainc(a: ArrayLike, b: ArrayLike, x: ArrayLike, *, name: str | None = None) -> Array:
    """Regularised incomplete beta function, as ``scipy.special.betainc``.

    Raises
    ------
    UnimplementedError
        For derivatives with respect to ``a`` and ``b``.

    Examples
    --------
    >>> nbta.betainc(2.0, 3.0, [0.0, 0.5])
    array([0.    , 0.6875])
    """
    return _of_beta(BETAINC, "betainc", a, b, x, name)


BETAINCC = define_elementwise(
    "BetaIncC",
    floats_only,
    of_three("betaincc"),
    summed(lambda a, b, x, y, dy: _betainc_slope(a, b, x, y, -dy)),
    emit=OfSciPy("betaincc"),
)


def _of_beta(record, what, a, b, x, name):
    """With parameters that must not be differentiated by."""
    given = promoted(a, b, x, floats=True)
    fixed = [_fixed(v, f"{what}: {one}") for v, one in zip(given, "ab", strict=False)]
    return apply(record, [*fixed, given[2]], name=name)


@exported(family=REAL_FLOATS)
def betaincc(a: ArrayLike, b: ArrayLike, x: ArrayLike, *, name: str | None = None) -> Array:
    """``1 - betainc(a, b, x)``, accurate where it is small, as ``scipy.special.betaincc``.

    Raises
    ------
    UnimplementedError
        For derivatives with respect to ``a`` and ``b``.

    Examples
    --------
    >>> nbta.betaincc(2.0, 3.0, [0.0, 0.5])
    array([1.    , 0.3125])
    """
    return _of_beta(BETAINCC, "betaincc", a, b, x, name)


def _beta_quantile_slope(sign):
    """One over the density, at what was found."""

    def gradient(a, b, p, x, dx):
        density = exp(betaln(a, b) - xlogy(a - 1, x) - xlog1py(b - 1, negative(x)))
        return dx, dx, dx * density if sign > 0 else -dx * density

    return gradient


def _gamma_quantile_slope(sign):
    def gradient(a, p, x, dx):
        density = exp(x + gammaln(a) - xlogy(a - 1, x))
        return dx * variate_slope(a, x), dx * density if sign > 0 else -dx * density

    return gradient


def _quantile(record, name, of, slope):
    return define_elementwise(record, floats_only, of(name), summed(slope), emit=OfSciPy(name))


BETAINCINV = _quantile("BetaIncInv", "betaincinv", of_three, _beta_quantile_slope(1))
BETAINCCINV = _quantile("BetaIncCInv", "betainccinv", of_three, _beta_quantile_slope(-1))
GAMMAINCINV = _quantile("GammaIncInv", "gammaincinv", of_two, _gamma_quantile_slope(1))
GAMMAINCCINV = _quantile("GammaIncCInv", "gammainccinv", of_two, _gamma_quantile_slope(-1))


@exported(family=REAL_FLOATS)
def betaincinv(a: ArrayLike, b: ArrayLike, y: ArrayLike, *, name: str | None = None) -> Array:
    """Inverse of `nbta.betainc` with respect to its last argument.

    The result is the ``x`` with ``betainc(a, b, x) == y``. It follows ``scipy.special.betaincinv``.

    Raises
    ------
    UnimplementedError
        For derivatives with respect to ``a`` and ``b``.

    Examples
    --------
    >>> nbta.betaincinv(2.0, 3.0, [0.0, 0.6875])
    array([0. , 0.5])
    """
    return _of_beta(BETAINCINV, "betaincinv", a, b, y, name)


@exported(family=REAL_FLOATS)
def betainccinv(a: ArrayLike, b: ArrayLike, y: ArrayLike, *, name: str | None = None) -> Array:
    """Inverse of `nbta.betaincc` with respect to its last argument.

    The result is the ``x`` with ``betaincc(a, b, x) == y``. It follows
    ``scipy.special.betainccinv``.

    Raises
    ------
    UnimplementedError
        For derivatives with respect to ``a`` and ``b``.

    Examples
    --------
    >>> nbta.betainccinv(2.0, 3.0, [1.0, 0.3125])
    array([0. , 0.5])
    """
    return _of_beta(BETAINCCINV, "betainccinv", a, b, y, name)


@exported(family=REAL_FLOATS)
def gammaincinv(a: ArrayLike, y: ArrayLike, *, name: str | None = None) -> Array:
    """Inverse of `nbta.gammainc` with respect to its last argument.

    The result is the ``x`` with ``gammainc(a, x) == y``. It follows ``scipy.special.gammaincinv``.

    Raises
    ------
    UnimplementedError
        For third derivatives with respect to ``a``.

    Examples
    --------
    >>> nbta.gammaincinv(1.0, [0.0, 0.5])
    array([0.        , 0.69314718])
    """
    return apply(GAMMAINCINV, promoted(a, y, floats=True), name=name)


@exported(family=REAL_FLOATS)
def gammainccinv(a: ArrayLike, y: ArrayLike, *, name: str | None = None) -> Array:
    """Inverse of `nbta.gammaincc` with respect to its last argument.

    The result is the ``x`` with ``gammaincc(a, x) == y``. It follows
    ``scipy.special.gammainccinv``.

    Raises
    ------
    UnimplementedError
        For third derivatives with respect to ``a``.

    Examples
    --------
    >>> nbta.gammainccinv(1.0, [1.0, 0.5])
    array([0.        , 0.69314718])
    """
    return apply(GAMMAINCCINV, promoted(a, y, floats=True), name=name)


# Distributions that are these functions, by SciPy's names.


@stands_for("chdtr")
def _chdtr(v, x):
    """SciPy's: of chi squares."""
    return gammainc(multiply(v, 0.5), multiply(x, 0.5))


@stands_for("chdtrc")
def _chdtrc(v, x):
    return gammaincc(multiply(v, 0.5), multiply(x, 0.5))


@stands_for("chdtri")
def _chdtri(v, p):
    (p,) = promoted(p, floats=True)
    fits = logical_and(less_equal(0, p), less_equal(p, 1))
    return where(
        fits, multiply(gammainccinv(multiply(v, 0.5), p), 2.0), np.array(math.nan, p.dtype)
    )


def _of_rate(function):
    """Of gamma variates of order b and rate a, which are not negative."""

    def found(a, b, x):
        a, b, x = promoted(a, b, x, floats=True)
        low = less(x, 0)
        there = function(b, multiply(a, where(low, zeros_like(x), x)))
        return where(low, np.array(math.nan, x.dtype), there)

    return found


stands_for("gdtr")(_of_rate(gammainc))
stands_for("gdtrc")(_of_rate(gammaincc))
