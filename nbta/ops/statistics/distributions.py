"""Densities, distribution functions and quantiles of `scipy.stats` of values of a run.

They have no names of their own here: a method of SciPy's distribution, such as
``scipy.stats.norm.logpdf``, takes tensors. Formulas are those of the standard distribution
(Johnson, Kotz and Balakrishnan, *Continuous Univariate Distributions*; SciPy's tutorial on
continuous distributions); location, scale, support and invalid parameters are dealt with once.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any, NamedTuple

from nbta.errors import UnimplementedError
from nbta.ops.axes.diagonals import diagonal
from nbta.ops.axes.reductions import sum as total
from nbta.ops.core.arithmetic import logical_and, logical_or, where
from nbta.ops.core.axis_arguments import operand
from nbta.ops.elementary.basic import exp, expm1, floor, log, log1p, sqrt, tan
from nbta.ops.elementary.trigonometry import arctan
from nbta.ops.indexing.items import getitem
from nbta.ops.indexing.joining import concatenate
from nbta.ops.indexing.transposing import swapaxes
from nbta.ops.linalg.triangular import cholesky, solve_triangular
from nbta.ops.special.gammas import (
    betainc,
    betaincc,
    betainccinv,
    betaincinv,
    betaln,
    gammainc,
    gammaincc,
    gammainccinv,
    gammaincinv,
    gammaln,
)
from nbta.ops.special.information import xlog1py, xlogy
from nbta.ops.special.normal import log_ndtr, ndtr, ndtri

if TYPE_CHECKING:
    from collections.abc import Callable

LOG_2_PI = math.log(2.0 * math.pi)


class Continuous(NamedTuple):
    """A distribution on an interval, of location 0 and scale 1.

    Functions take a value and the shapes; of `least` and `most` see scipy.stats' ``support``.
    """

    shapes: tuple[str, ...]
    least: float
    most: float
    log_density: Callable[..., Any]
    below: Callable[..., Any]
    above: Callable[..., Any]
    quantile: Callable[..., Any]
    #: Logarithms of `below` and `above`, where these are more exact than that of the value.
    log_below: Callable[..., Any] | None = None
    log_above: Callable[..., Any] | None = None
    #: The quantile of a share above; None where the distribution is its own mirror image.
    upper: Callable[..., Any] | None = None


class Discrete(NamedTuple):
    """A distribution on the integers from 0 on, of location 0."""

    shapes: tuple[str, ...]
    log_mass: Callable[..., Any]
    below: Callable[..., Any]
    above: Callable[..., Any]
    #: The largest value, of the shapes, and whether shapes are valid.
    most: Callable[..., Any]
    valid: Callable[..., Any]


def _t_log_density(y, df):
    scale = gammaln((df + 1.0) / 2.0) - gammaln(df / 2.0) - 0.5 * log(df * math.pi)
    return scale - (df + 1.0) / 2.0 * log1p(y * y / df)


def _t_below(y, df):
    """By the incomplete beta function, whose slope is infinite in the middle."""
    middle = y == 0.0
    away = where(middle, 1.0, y)
    tail = 0.5 * betainc(df / 2.0, 0.5, df / (df + away * away))
    found = where(away < 0.0, tail, 1.0 - tail)
    return where(middle, 0.5 + y * exp(_t_log_density(0.0 * y, df)), found)


def _t_quantile(p, df):
    middle = p == 0.5
    away = where(middle, 0.25, p)
    tail = where(away < 0.5, away, 1.0 - away)
    size = sqrt(df * (1.0 / betaincinv(df / 2.0, 0.5, 2.0 * tail) - 1.0))
    slope = exp(-_t_log_density(0.0 * p, df))
    return where(middle, (p - 0.5) * slope, where(away < 0.5, -size, size))


def _laplace_below(y):
    return where(
        y < 0.0, 0.5 * exp(where(y < 0.0, y, 0.0)), 1.0 - 0.5 * exp(-where(y < 0.0, 0.0, y))
    )


def _laplace_quantile(p):
    low = p < 0.5
    return where(low, log(2.0 * where(low, p, 0.5)), -log(2.0 * (1.0 - where(low, 0.5, p))))


def _cauchy_quantile(p):
    low = p < 0.25  # of which less a half not all digits are left
    return where(
        low, -1.0 / tan(math.pi * where(low, p, 0.25)), tan(math.pi * (where(low, 0.5, p) - 0.5))
    )


def _lognorm_log_density(y, s):
    at_0 = y == 0.0
    y = where(at_0, 1.0, y)
    found = -(log(y) ** 2) / (2.0 * s * s) - log(s * y) - 0.5 * LOG_2_PI
    return where(at_0, -math.inf, found)


CONTINUOUS = {
    "norm": Continuous(
        (), -math.inf, math.inf, lambda y: -0.5 * (y * y + LOG_2_PI), ndtr, lambda y: ndtr(-y),
        ndtri, log_ndtr, lambda y: log_ndtr(-y),
    ),
    "t": Continuous(
        ("df",), -math.inf, math.inf, _t_log_density, _t_below,
        lambda y, df: _t_below(-y, df), _t_quantile,
    ),
    "gamma": Continuous(
        ("a",), 0.0, math.inf, lambda y, a: xlogy(a - 1.0, y) - y - gammaln(a),
        lambda y, a: gammainc(a, y), lambda y, a: gammaincc(a, y), lambda p, a: gammaincinv(a, p),
        upper=lambda p, a: gammainccinv(a, p),
    ),
    "beta": Continuous(
        ("a", "b"), 0.0, 1.0,
        lambda y, a, b: xlog1py(b - 1.0, -y) + xlogy(a - 1.0, y) - betaln(a, b),
        lambda y, a, b: betainc(a, b, y), lambda y, a, b: betaincc(a, b, y),
        lambda p, a, b: betaincinv(a, b, p), upper=lambda p, a, b: betainccinv(a, b, p),
    ),
    "chi2": Continuous(
        ("df",), 0.0, math.inf,
        lambda y, df: xlogy(df / 2.0 - 1.0, y / 2.0) - y / 2.0 - gammaln(df / 2.0) - math.log(2.0),
        lambda y, df: gammainc(df / 2.0, y / 2.0), lambda y, df: gammaincc(df / 2.0, y / 2.0),
        lambda p, df: 2.0 * gammaincinv(df / 2.0, p),
        upper=lambda p, df: 2.0 * gammainccinv(df / 2.0, p),
    ),
    "lognorm": Continuous(
        ("s",), 0.0, math.inf, _lognorm_log_density, lambda y, s: ndtr(log(y) / s),
        lambda y, s: ndtr(-log(y) / s), lambda p, s: exp(s * ndtri(p)),
        lambda y, s: log_ndtr(log(y) / s), lambda y, s: log_ndtr(-log(y) / s),
        lambda p, s: exp(-s * ndtri(p)),
    ),
    "expon": Continuous(
        (), 0.0, math.inf, lambda y: -y, lambda y: -expm1(-y), lambda y: exp(-y),
        lambda p: -log1p(-p), None, lambda y: -y, lambda p: -log(p),
    ),
    "uniform": Continuous(
        (), 0.0, 1.0, lambda y: 0.0 * y, lambda y: y, lambda y: 1.0 - y, lambda p: p,
        upper=lambda p: 1.0 - p,
    ),
    "laplace": Continuous(
        (), -math.inf, math.inf, lambda y: math.log(0.5) - abs(y), _laplace_below,
        lambda y: _laplace_below(-y), _laplace_quantile,
    ),
    "cauchy": Continuous(
        (), -math.inf, math.inf, lambda y: -math.log(math.pi) - log1p(y * y),
        lambda y: 0.5 + arctan(y) / math.pi, lambda y: 0.5 - arctan(y) / math.pi,
        _cauchy_quantile,
    ),
}  # fmt: skip
DISCRETE = {
    "poisson": Discrete(
        ("mu",), lambda k, mu: xlogy(k, mu) - gammaln(k + 1.0) - mu,
        lambda k, mu: gammaincc(k + 1.0, mu), lambda k, mu: gammainc(k + 1.0, mu),
        lambda mu: math.inf, lambda mu: mu >= 0.0,
    ),
    "binom": Discrete(
        ("n", "p"),
        lambda k, n, p: gammaln(n + 1.0) - gammaln(k + 1.0) - gammaln(n - k + 1.0)
        + xlogy(k, p) + xlog1py(n - k, -p),
        lambda k, n, p: betaincc(k + 1.0, n - k, p), lambda k, n, p: betainc(k + 1.0, n - k, p),
        lambda n, p: n,
        lambda n, p: logical_and(
            logical_and(n >= 0.0, floor(n) == n), logical_and(p >= 0.0, p <= 1.0)
        ),
    ),
    "nbinom": Discrete(
        ("n", "p"),
        lambda k, n, p: gammaln(n + k) - gammaln(k + 1.0) - gammaln(n)
        + n * log(p) + xlog1py(k, -p),
        lambda k, n, p: betainc(n, k + 1.0, p), lambda k, n, p: betaincc(n, k + 1.0, p),
        lambda n, p: math.inf, lambda n, p: logical_and(n > 0.0, logical_and(p > 0.0, p <= 1.0)),
    ),
}  # fmt: skip


def method(name, what, args, kwargs):
    """What a method of a distribution of SciPy's gives.

    Parameters
    ----------
    name, what : str
        Of the distribution and of the method.
    args : tuple
        The value, then shapes, location and scale, as in SciPy.
    kwargs : dict

    Raises
    ------
    UnimplementedError
        For distributions and methods that there is no formula for here.
    TypeError
        For arguments that the method does not have.
    """
    known = _MULTIVARIATE.get((name, what))
    if known is not None:
        return known(*args, **kwargs)
    found = CONTINUOUS.get(name) or DISCRETE.get(name)
    rule = None if found is None else (_RULES if name in CONTINUOUS else _DISCRETE_RULES).get(what)
    if rule is None:
        names = ", ".join((*CONTINUOUS, *DISCRETE, "dirichlet", "multivariate_normal"))
        raise UnimplementedError(
            f"scipy.stats.{name}.{what} of values that only the run knows: nbta has "
            f"{', '.join(_RULES)} (pmf, logpmf) of {names}; write it as a formula"
        )
    return _floating(rule, found, *_bound(f"{name}.{what}", found, args, kwargs))


def _bound(what, family, args, kwargs):
    """The value, the shapes, the location and the scale."""
    places = ["loc", "scale"] if isinstance(family, Continuous) else ["loc"]
    names = ["x", *family.shapes, *places]
    first = next((n for n in ("x", "k", "q") if n in kwargs), "x")
    given = dict(zip(names, args, strict=False)) | {
        "x" if name == first else name: value for name, value in kwargs.items()
    }
    missing = [name for name in names[: 1 + len(family.shapes)] if name not in given]
    unknown = [name for name in given if name not in names]
    if missing or unknown or len(args) > len(names):
        more = f"has no argument {unknown[0]!r}" if unknown else "is given too many arguments"
        raise TypeError(f"scipy.stats.{what} {f'lacks {missing[0]!r}' if missing else more}")
    defaults = {"loc": 0.0, "scale": 1.0}
    return [given.get(name, defaults.get(name)) for name in names]


def _floating(rule, family, x, *parameters):
    """A rule on floats: integers become float64."""
    values = [operand(each, floats=True) for each in (x, *parameters)]
    count = len(family.shapes)
    return rule(family, values[0], values[1 : 1 + count], *values[1 + count :])


def _valid(shapes, scale):
    return functools.reduce(logical_and, [each > 0.0 for each in shapes], scale > 0.0)


def _outside(family, y):
    return logical_or(y < family.least, y > family.most)


def _within(family, y, outside):
    """Values, with one of the inner in place of those outside, whose formula may be infinite."""
    middle = 0.5 if math.isfinite(family.most) else 1.0
    return where(outside, middle, y)


def _log_density(family, x, shapes, loc, scale):
    y = (x - loc) / scale
    outside = _outside(family, y)
    found = family.log_density(_within(family, y, outside), *shapes) - log(scale)
    return where(_valid(shapes, scale), where(outside, -math.inf, found), math.nan)


def _density(*args):
    return exp(_log_density(*args))


def _share(of, at_least, at_most):
    """The share of a distribution below or above a value: the shares at the ends are known."""

    def share(family, x, shapes, loc, scale):
        y = (x - loc) / scale
        ends = logical_or(y <= family.least, y >= family.most)
        found = of(family)(_within(family, y, ends), *shapes)
        found = where(y <= family.least, at_least, where(y >= family.most, at_most, found))
        return where(_valid(shapes, scale), found, math.nan)

    return share


def _logarithm(logarithm, plain):
    """Of a share: by a formula of its own where there is one."""

    def chosen(family):
        own = logarithm(family)
        return own or (lambda *args: log(plain(family)(*args)))

    return chosen


def _quantile(upper):
    """The value below which a share of a distribution is, or above which it is."""

    def quantile(family, p, shapes, loc, scale):
        rule = family.quantile if not upper else family.upper or (lambda *p: -family.quantile(*p))
        inner = logical_and(p > 0.0, p < 1.0)
        found = rule(where(inner, p, 0.5), *shapes) * scale + loc
        at_0, at_1 = (
            end * scale + loc if math.isfinite(end) else end for end in (family.least, family.most)
        )
        if upper:
            at_0, at_1 = at_1, at_0
        ends = where(p == 0.0, at_0, where(p == 1.0, at_1, math.nan))
        return where(_valid(shapes, scale), where(inner, found, ends), math.nan)

    return quantile


_RULES = {
    "pdf": _density,
    "logpdf": _log_density,
    "cdf": _share(lambda f: f.below, 0.0, 1.0),
    "logcdf": _share(_logarithm(lambda f: f.log_below, lambda f: f.below), -math.inf, 0.0),
    "sf": _share(lambda f: f.above, 1.0, 0.0),
    "logsf": _share(_logarithm(lambda f: f.log_above, lambda f: f.above), 0.0, -math.inf),
    "ppf": _quantile(upper=False),
    "isf": _quantile(upper=True),
}


def _log_mass(family, x, shapes, loc):
    k = x - loc
    outside = logical_or(logical_or(k < 0.0, k > family.most(*shapes)), floor(k) != k)
    found = family.log_mass(where(outside, 0.0, k), *shapes)
    return where(family.valid(*shapes), where(outside, -math.inf, found), math.nan)


def _discrete_share(of, under, over):
    def share(family, x, shapes, loc):
        k = floor(x - loc)
        ends = logical_or(k < 0.0, k >= family.most(*shapes))
        found = getattr(family, of)(where(ends, 0.0, k), *shapes)
        found = where(k < 0.0, under, where(ends, over, found))
        return where(family.valid(*shapes), found, math.nan)

    return share


_DISCRETE_RULES = {
    "pmf": lambda *args: exp(_log_mass(*args)),
    "logpmf": _log_mass,
    "cdf": _discrete_share("below", 0.0, 1.0),
    "sf": _discrete_share("above", 1.0, 0.0),
    "logcdf": lambda *args: log(_DISCRETE_RULES["cdf"](*args)),
    "logsf": lambda *args: log(_DISCRETE_RULES["sf"](*args)),
}  # fmt: skip


def _dirichlet(x, alpha):
    """The logarithm of the density; ``x`` has a column an observation, perhaps less one row."""
    x, alpha = operand(x, floats=True), operand(alpha, floats=True)
    if x.shape[0] != alpha.shape[0]:
        rest = 1.0 - total(x, axis=0, keepdims=True)
        x = concatenate([x, rest], axis=0)
    if x.ndim > 1:
        alpha = getitem(alpha, (slice(None), *[None] * (x.ndim - 1)))
    scale = total(gammaln(alpha), axis=0) - gammaln(total(alpha, axis=0))
    return total(xlogy(alpha - 1.0, x), axis=0) - scale


def _multivariate_normal(x, mean=0.0, cov=1.0, allow_singular=False):
    """The logarithm of the density, by the Cholesky factor of the covariances."""
    if allow_singular:
        raise UnimplementedError(
            "scipy.stats.multivariate_normal: allow_singular=True of values that only the run "
            "knows; add a small number to the diagonal"
        )
    x, mean, cov = (operand(each, floats=True) for each in (x, mean, cov))
    if cov.ndim == 0:
        apart = x - mean
        if mean.ndim == 0:  # numbers; else a multiple of the identity
            return -0.5 * (apart * apart / cov + log(cov) + LOG_2_PI)
        size = float(mean.shape[0])
        return -0.5 * (total(apart * apart, axis=-1) / cov + size * (log(cov) + LOG_2_PI))
    if cov.ndim == 1:
        apart = x - mean
        return -0.5 * total(apart * apart / cov + log(cov) + LOG_2_PI, axis=-1)
    factor = cholesky(cov)
    apart = x - mean
    columns = getitem(apart, (..., None)) if apart.ndim == 1 else swapaxes(apart, -1, -2)
    white = solve_triangular(factor, columns, lower=True)
    scale = total(log(diagonal(factor)))
    found = -0.5 * (total(white * white, axis=-2) + cov.shape[0] * LOG_2_PI) - scale
    return getitem(found, 0) if apart.ndim == 1 else found


_MULTIVARIATE = {
    ("dirichlet", "logpdf"): _dirichlet,
    ("dirichlet", "pdf"): lambda *args, **kwargs: exp(_dirichlet(*args, **kwargs)),
    ("multivariate_normal", "logpdf"): _multivariate_normal,
    ("multivariate_normal", "pdf"): lambda *args, **kwargs: exp(
        _multivariate_normal(*args, **kwargs)
    ),
}


class Frozen:
    """A distribution with its parameters, as calls of SciPy's distributions give it."""

    def __init__(self, name, args, kwargs):
        self._name, self._args, self._kwargs = name, args, kwargs

    def __getattr__(self, what):
        if what.startswith("_"):
            raise AttributeError(what)
        return lambda *x: method(self._name, what, (*x, *self._args), self._kwargs)
