"""SciPy's integrals, filters, statistics and interpolations of samples that only the run knows."""

import warnings

import numpy as np
import pytest
import scipy.fftpack
import scipy.integrate
import scipy.interpolate
import scipy.signal
import scipy.stats

import nbta
from nbta.testing import check_grads

Y = np.array([0.5, -1.2, 2.0, 0.7, 1.9, -0.3, 0.8])
X = np.array([0.0, 0.4, 1.1, 1.5, 2.7, 3.0, 3.3])
W = np.array([0.3, -1.0, 0.25])
P = np.array([0.0, 1.0, 2.5, 4.0, 4.5])
V = np.array([1.0, 3.0, 2.0, 5.0, 1.0])
ROWS = np.arange(12.0).reshape(3, 4) ** 1.5


def _check(f, *args):
    expected = np.asarray(f(*args))
    for compiled in (False, True):
        found = nbta.function(f, compiled=compiled)(*args)
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-13)
        assert np.asarray(found).dtype == expected.dtype
    weights = np.cos(np.arange(1.0, expected.size + 1.0)).reshape(expected.shape)
    check_grads(lambda *values: np.sum(f(*values) * weights), args, order=2)


INTEGRALS = {
    "trapezoid": lambda y: scipy.integrate.trapezoid(y, dx=0.5),
    "cumulative_trapezoid": lambda y: scipy.integrate.cumulative_trapezoid(y, dx=0.5, initial=0),
    "simpson": lambda y: scipy.integrate.simpson(y, dx=0.5),
}


@pytest.mark.slow_but_every(2)
@pytest.mark.parametrize("count", [2, 3, 4, 5, 6, 7])
@pytest.mark.parametrize("name", INTEGRALS)
def test_integrals(name, count):
    _check(INTEGRALS[name], Y[:count])
    of_points = getattr(scipy.integrate, name)
    _check(lambda y, x: of_points(y, x=x), Y[:count], X[:count])


@pytest.mark.slow_but_every(2)
@pytest.mark.parametrize("axis", [0, 1, -1, -2])
@pytest.mark.parametrize("name", INTEGRALS)
def test_integrals_along_axes(name, axis):
    function = getattr(scipy.integrate, name)
    _check(lambda y: function(y, axis=axis), ROWS)
    points = X[: ROWS.shape[axis]]
    _check(lambda y: function(y, x=points, axis=axis), ROWS)


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize("function", [scipy.signal.convolve, scipy.signal.fftconvolve])
def test_convolutions(function, mode):
    _check(lambda a, b: function(a, b, mode), Y, W)
    _check(lambda a: function(a, Y, mode=mode), W)
    _check(lambda a: function(a, W[:2], mode=mode), Y)


@pytest.mark.slow_but_every(2)
@pytest.mark.parametrize("orders", [(1, 1), (3, 1), (1, 2), (2, 3), (3, 2)])
def test_filters(orders):
    b, a = W[: orders[0]], np.array([2.0, -0.6, 0.1])[: orders[1]]
    _check(lambda x: scipy.signal.lfilter(b, a, x), Y)
    _check(scipy.signal.lfilter, b, a, Y)
    assert nbta.function(scipy.signal.lfilter)(b, a, Y.astype(np.float32)).dtype == np.float64


def test_filters_of_what_is_not_taken():
    with pytest.raises((nbta.NbtaError, NotImplementedError), match="one by one"):
        nbta.function(lambda x: scipy.signal.lfilter([1.0], [1.0, 0.5], x))(ROWS)


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
def test_correlations(mode):
    _check(lambda a, b: scipy.signal.correlate(a, b, mode), Y, W[:3])
    with pytest.raises((nbta.NbtaError, NotImplementedError), match="longer than the first"):
        nbta.function(lambda a: scipy.signal.correlate(a[:2], a, mode))(Y)


SIGNALS = {
    "a line": scipy.signal.detrend,
    "the mean": lambda y: scipy.signal.detrend(y, type="constant"),
    "lines of columns": lambda y: scipy.signal.detrend(y[:6].reshape(3, 2) ** 2, axis=0),
    "analytic": lambda y: np.abs(scipy.signal.hilbert(y)),
    "analytic of an odd number": lambda y: scipy.signal.hilbert(y[:5]).imag,
    "analytic of more": lambda y: np.abs(scipy.signal.hilbert(y[:5], N=8)),
    "analytic of columns": lambda y: np.abs(scipy.signal.hilbert(y[:6].reshape(3, 2), axis=0)),
    "fft": lambda y: np.abs(scipy.fftpack.fft(y, 8)),
    "ifft": lambda y: scipy.fftpack.ifft(y[:6].reshape(3, 2), axis=0).real,
}


@pytest.mark.parametrize("name", SIGNALS)
def test_signals(name):
    _check(SIGNALS[name], Y)


@pytest.mark.parametrize("axis", [1, None])
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("gmean", {}),
        ("hmean", {}),
        ("sem", {}),
        ("sem", {"ddof": 0}),
        ("zscore", {}),
        ("zscore", {"ddof": 1}),
        ("skew", {}),
        ("skew", {"bias": False}),
        ("kurtosis", {}),
        ("kurtosis", {"bias": False}),
        ("kurtosis", {"fisher": False}),
    ],
)
def test_statistics(name, options, axis):
    function = getattr(scipy.stats, name)
    rows = np.cos(np.arange(20.0)).reshape(4, 5) + 2.0
    _check(lambda a: function(a, axis=axis, **options), rows)


def test_statistics_of_weights_and_of_what_is_none():
    weights = np.arange(1.0, 7.0)
    for mean in (scipy.stats.gmean, scipy.stats.hmean):
        _check(lambda a, w, mean=mean: mean(a, weights=w), weights**0.7, weights)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in ("skew", "kurtosis", "zscore"):
            function = getattr(scipy.stats, name)
            found = nbta.function(function)(np.ones(5) * 0.3)
            np.testing.assert_array_equal(found, function(np.ones(5) * 0.3))
        assert np.isnan(nbta.function(scipy.stats.hmean)(weights - 2.0))
        assert np.isnan(scipy.stats.hmean(weights - 2.0))
    with pytest.raises(nbta.InvalidArgumentError, match="takes no argument nan_policy="):
        nbta.function(lambda a: scipy.stats.skew(a, nan_policy="omit"))(weights)


INTERPOLATIONS = {
    "CubicSpline": scipy.interpolate.CubicSpline(P, V),
    "natural": scipy.interpolate.CubicSpline(P, V, bc_type="natural", extrapolate=False),
    "periodic": scipy.interpolate.CubicSpline(P, V, bc_type="periodic"),
    "Pchip": scipy.interpolate.PchipInterpolator(P, V),
    "Akima": scipy.interpolate.Akima1DInterpolator(P, V),
    "PPoly": scipy.interpolate.PPoly(np.array([[1.0, 2.0], [3.0, -1.0]]), [0.0, 1.5, 4.5]),
    "BSpline": scipy.interpolate.make_interp_spline(P, V, k=3),
    "quadratic": scipy.interpolate.make_interp_spline(P, V, k=2),
    "linear": scipy.interpolate.interp1d(P, V, fill_value="extrapolate"),
    "filled": scipy.interpolate.interp1d(P, V, bounds_error=False, fill_value=(-1.0, 7.0)),
}
POINTS = np.array([0.3, 1.7, 2.2, 3.9, 4.4])


@pytest.mark.parametrize("name", INTERPOLATIONS)
def test_interpolations(name):
    found = INTERPOLATIONS[name]
    _check(lambda x: found(x) * x, POINTS)
    _check(lambda x: found(x) * x, 2.2)
    for x in (P, np.array([-0.7, 5.3])):
        expected = found(x)
        for compiled in (False, True):
            given = nbta.function(lambda x: found(x), compiled=compiled)(x)
            np.testing.assert_allclose(given, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("nu", [0, 1, 2, 3, 4])
def test_derivatives_of_interpolations(nu):
    spline = INTERPOLATIONS["CubicSpline"]
    _check(lambda x: spline(x, nu) * x + spline(x, nu=nu, extrapolate=False), POINTS)


def test_interpolations_that_are_made_inside():
    def value(x):
        slope = scipy.interpolate.CubicSpline(P, V).derivative()
        return scipy.interpolate.PchipInterpolator(P, V)(x) * slope(x)

    _check(value, POINTS)


def test_interpolations_out_of_bounds():
    found = scipy.interpolate.interp1d(P, V)
    for compiled in (False, True):
        function = nbta.function(lambda x: found(x), compiled=compiled)
        np.testing.assert_allclose(function(0.5), found(0.5))
        with pytest.raises(ValueError, match="interpolation range"):
            function(5.0)


@pytest.mark.parametrize("name", ["CubicSpline", "make_interp_spline"])
def test_interpolations_that_change(name):
    spline = getattr(scipy.interpolate, name)(P, V)
    function = nbta.value_and_grad(lambda x: spline(x) * 1.0)
    for factor in (1.0, 2.0, -0.5):
        spline.c *= factor
        value, slope = function(0.7)
        np.testing.assert_allclose([value, slope], [spline(0.7), spline(0.7, 1)])


def test_interpolations_of_what_is_not_taken():
    of_rows = scipy.interpolate.CubicSpline(P, np.stack([V, V], 1))
    with pytest.raises(nbta.NbtaError, match=r"test_samples\.py"):
        nbta.function(lambda x: of_rows(x))(0.7)
