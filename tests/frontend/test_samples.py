"""SciPy's integrals, filters and interpolations of samples that only the run knows."""

import numpy as np
import pytest
import scipy.integrate
import scipy.interpolate
import scipy.signal

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


@pytest.mark.parametrize("count", [2, 3, 4, 5, 6, 7])
@pytest.mark.parametrize("name", INTEGRALS)
def test_integrals(name, count):
    _check(INTEGRALS[name], Y[:count])
    of_points = getattr(scipy.integrate, name)
    _check(lambda y, x: of_points(y, x=x), Y[:count], X[:count])


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


@pytest.mark.parametrize("orders", [(1, 1), (3, 1), (1, 2), (2, 3), (3, 2)])
def test_filters(orders):
    b, a = W[: orders[0]], np.array([2.0, -0.6, 0.1])[: orders[1]]
    _check(lambda x: scipy.signal.lfilter(b, a, x), Y)
    _check(scipy.signal.lfilter, b, a, Y)
    assert nbta.function(scipy.signal.lfilter)(b, a, Y.astype(np.float32)).dtype == np.float64


def test_filters_of_what_is_not_taken():
    with pytest.raises((nbta.NbtaError, NotImplementedError), match="one by one"):
        nbta.function(lambda x: scipy.signal.lfilter([1.0], [1.0, 0.5], x))(ROWS)


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
