"""Dtypes of variables and of items: unified as Numba does, cast as NumPy does."""

import cmath
import functools
import math

import numba
import numpy as np
import pytest
from fuzz.ways import in_python

import nbta

X = np.array([0.31, -0.72, 1.43, -2.61, 3.17])
BOTH = pytest.mark.parametrize("compiled", [False, True])


def slope(f, x, step=1e-6):
    """Central differences."""
    units = np.eye(len(x)) * step
    return np.array([(f(x + u) - f(x - u)) / (2 * step) for u in units])


def hold(f, x=X, compiled=True, of=None):
    """Value and gradient are those of the plain function; ``of`` is what nbta is given."""
    value, gradient = nbta.value_and_grad(of or f, compiled=compiled)(x)
    np.testing.assert_allclose(value, f(x), rtol=1e-6)
    np.testing.assert_allclose(gradient, slope(f, x.astype(np.float64)), rtol=1e-5, atol=1e-7)


# Variables.


def wider_in_one_branch(x):
    total = 0.0
    for i in range(len(x)):
        if x[i] > 0.5:
            y = x[i] * np.float32(2.0)
        else:
            y = np.float32(1.0)
        total += y * y
    return total


def complex_in_one_branch(x):
    z = 0.0
    for i in range(len(x)):
        if i % 2:
            z = z + 1j * x[i]
        else:
            z = z * x[i] + x[i]
    return abs(z)


def complex_from_the_second_iteration(x):
    z = x[0]
    for i in range(len(x)):
        z = z * z + complex(x[i], 0.5)
        if abs(z) > 3.0:
            break
    return z.real - z.imag


def integer_then_float(x):
    k = 2
    for v in x:
        k = k + v if v > 0.0 else k * 2
    return k * k


@BOTH
def test_variables_are_unified(compiled):
    programs = [
        wider_in_one_branch, complex_in_one_branch, complex_from_the_second_iteration,
        integer_then_float,
    ]  # fmt: skip
    for f in programs:
        hold(f, compiled=compiled)
        hold(f, compiled=compiled, of=numba.njit(f))


@BOTH
def test_a_float32_variable_becomes_the_float64_that_iterations_make(compiled):
    def decayed(x, weights):
        v = x[0]
        for i in range(20):
            v = v * 0.9 + weights[i % 3]
        return v

    x, weights = X.astype(np.float32), np.array([0.1, 0.2, 0.4])
    value, gradient = nbta.value_and_grad(decayed, compiled=compiled)(x, weights)
    assert value.dtype == np.float64
    assert gradient.dtype == np.float32
    np.testing.assert_allclose(value, decayed(x, weights), rtol=1e-6)
    np.testing.assert_allclose(gradient, [0.9**20, 0, 0, 0, 0], rtol=1e-6)


@BOTH
def test_arrays_of_a_variable_are_unified(compiled):
    def powers(x):
        z = x
        for _ in range(12):
            z = z * (0.5 + 0.5j)
        return np.sum(np.abs(z) ** 2)

    hold(powers, compiled=compiled)


# Items.


def stored(x, dtype):
    a = np.zeros(len(x), dtype)
    for i in range(len(x)):
        a[i] = x[i]
    return a


INSIDE = [0.0, -0.5, 1.7, -1.7, 127.9, -128.9]
OUTSIDE = [300.0, -300.0, 1e5, -1e5]


def test_items_are_cast_into_integers_as_numpy_does():
    for dtype in ("int8", "int16", "int32", "int64", "uint8", "uint16", "bool"):
        values = INSIDE if dtype[0] == "i" else [*INSIDE, *OUTSIDE]
        f = functools.partial(stored, dtype=dtype)
        for kind in ("float64", "float32", "int64"):
            x = np.array(values, kind)
            for compiled in (False, True):
                found = nbta.function(f, compiled=compiled)(x)
                assert found.dtype == dtype
                np.testing.assert_array_equal(found, f(x))


@BOTH
def test_numbers_that_signed_integers_cannot_hold_are_errors(compiled):
    """As in NumPy, which goes by Python's integers there."""
    for dtype, x in [
        ("int8", [300.0]), ("int8", [-129.0]), ("int8", [math.nan]), ("int8", np.array([300])),
        ("int32", [3e9]), ("int64", [2.0**63]), ("int64", [math.inf]),
    ]:  # fmt: skip
        f = functools.partial(stored, dtype=dtype)
        with pytest.raises((OverflowError, ValueError)):
            f(np.asarray(x))
        with pytest.raises(
            nbta.InvalidArgumentError, match=f"does not fit into an item of {dtype}"
        ):
            nbta.function(f, compiled=compiled)(np.asarray(x))
    assert nbta.function(stored, compiled=compiled, static_argnums=1)(
        np.array([-(2.0**63)]), "int64"
    ) == [-(2**63)]


@BOTH
def test_integers_pass_no_gradient(compiled):
    def counted(x):
        a = np.zeros(3, np.int32)
        for i in range(len(x)):
            a[i % 3] = x[i] * 3.0
        return np.sum(a * x[:3])

    hold(counted, compiled=compiled)


def test_a_sum_is_cast_as_a_whole():
    """3 - 0.5 is 2 as an integer; adding the integer of -0.5 would leave 3."""

    def lowered(x):
        a = np.full(2, 3)
        for i in range(len(x)):
            a[i % 2] -= x[i]
        return a

    x = np.array([0.5, 0.2, 0.7])
    for compiled in (False, True):
        np.testing.assert_array_equal(nbta.function(lowered, compiled=compiled)(x), lowered(x))


def sums_of_items(x):
    a = x.astype(np.float32)
    for i in range(len(x)):
        a[i] += x[i - 1]
        a[i - 2] -= x[i] * 0.3
    return a


def sums_of_rows(x):
    a = np.outer(x, x).astype(np.float32)
    for i in range(len(x)):
        a[i] += x * x[i]
        a[i, 1:] -= 0.7 * x[:-1]
    return a


@BOTH
@pytest.mark.parametrize("f", [sums_of_items, sums_of_rows])
def test_a_sum_of_two_precisions_is_rounded_once(f, compiled):
    x = np.cos(np.arange(12.0))
    with in_python():
        found = nbta.function(f, compiled=compiled)(x)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, f(x))


@BOTH
def test_a_sum_that_its_item_cannot_hold_is_an_error(compiled):
    """An int8 and an int64 are an int64, which does not wrap around when it is stored."""

    def raised(x):
        a, b = np.full(3, 100, np.int8), x.astype(np.int64)
        for i in range(len(x)):
            a[i % 3] += b[i]
        return a

    small, large = np.array([3.0, -7.0, 11.0]), np.array([3.0, 50.0])
    function = nbta.function(raised, compiled=compiled)
    with in_python():
        np.testing.assert_array_equal(function(small), raised(small))
        with pytest.raises(nbta.InvalidArgumentError, match="does not fit into an item of int8"):
            function(large)


def test_known_items_are_cast_or_fail_as_numpys():
    def known(x, item):
        a = np.zeros(2, np.int64)
        a[1] = x[0]
        a[0] = item
        return a[0] * x[0] + a[1]

    assert nbta.function(lambda x: known(x, 2.7))(X) == 2 * X[0]
    with pytest.raises(ValueError, match="NaN"):
        nbta.function(lambda x: known(x, math.nan))(X)


def test_what_in_place_operators_refuse_stays_refused():
    def whole(x):
        a = np.zeros(5, np.int64)
        a += x
        return a

    def complex_item(x):
        a = np.zeros(5)
        a[0] = x[0] * 1j
        return a

    for f in (whole, complex_item):
        with pytest.raises(nbta.InvalidArgumentError, match=r"in place|what it goes into"):
            nbta.function(f)(X)


# cmath.


ELEMENTARY = "exp log log10 sqrt sin cos tan asin acos atan"
ELEMENTARY += " sinh cosh tanh asinh acosh atanh phase"


@pytest.mark.parametrize("name", ELEMENTARY.split())
def test_functions_of_cmath(name):
    def f(x):
        w = getattr(cmath, name)(complex(x[0], x[1]))
        return w.real + 2.0 * w.imag

    for compiled in (False, True):
        for point in ([0.3, 0.7], [-0.4, 0.2], [-0.5, -0.9]):
            hold(f, np.array(point), compiled)


@BOTH
def test_other_functions_of_cmath(compiled):
    def f(x):
        radius, phase = cmath.polar(complex(x[0], x[1]))
        total = radius * phase + cmath.rect(x[2], x[1]).imag + cmath.log(x[3], 10).real
        if cmath.isfinite(x[0]) and cmath.isclose(x[0], x[0] + 1e-12) and not cmath.isnan(x[1]):
            total += cmath.sqrt(x[1]).imag
        return total

    hold(f, compiled=compiled)


@BOTH
def test_a_run_fails_where_a_function_of_cmath_raises_in_a_try(compiled):
    def f(x):
        try:
            return cmath.log(x[0]).real
        except ValueError:
            return 0.0

    found = nbta.value_and_grad(f, compiled=compiled)
    np.testing.assert_allclose(found(X)[0], f(X))
    with pytest.raises(nbta.UnimplementedError, match=r"cmath\.log raises ValueError in this run"):
        found(np.zeros_like(X))


@BOTH
def test_numba_cuts_fractions_of_bounds_off(compiled):
    def total(x, n):
        found = 0.0
        for i in range(n):
            found += x * i
        for i in range(0.5, n / 2, 1.0):
            found += x * x * i
        return found

    f = numba.njit(total)
    value, slope = nbta.value_and_grad(f, compiled=compiled)(2.0, 7.9)
    assert value == f(2.0, 7.9) == 2.0 * 21 + 4.0 * 3
    assert slope == 21 + 4.0 * 3
    with pytest.raises(nbta.InvalidArgumentError, match=r"range\(\) is given float64"):
        nbta.grad(total, compiled=compiled)(2.0, 7.9)
