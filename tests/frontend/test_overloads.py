"""Compiled functions call overloaded functions by the implementations that Numba compiles."""

import numba
import numpy as np
import pytest
from numba import njit, types
from numba.extending import overload, register_jitable

import nbta

BOTH = pytest.mark.parametrize("compiled", [False, True])
X = np.array([0.4, 1.5, 2.2])


def interpolated(x, y, out=None):
    """A stub, as packages have them for functions of compiled code alone."""


@overload(interpolated)
def _interpolated(x, y, out=None):
    if isinstance(x, types.Float):
        return lambda x, y, out=None: y[0] + x * (y[1] - y[0])
    if isinstance(x, types.Array) and x.ndim == 1:

        def each(x, y, out=None):
            found = np.empty(len(x))
            for i in range(len(x)):
                found[i] = interpolated(x[i], y)
            return found

        return each
    return None


def power(x, kind):
    raise NotImplementedError


@overload(power)
def _power(x, kind):
    if not isinstance(kind, types.StringLiteral):
        return None
    if kind.literal_value == "square":
        return lambda x, kind: x * x
    return lambda x, kind: x * x * x


def halved(x):
    """The same in Python and in compiled code but for what is divided."""
    return x / 2


@overload(halved)
def _halved(x):
    if isinstance(x, types.Integer):
        return lambda x: x // 2
    return lambda x: x / 2


@register_jitable
def shifted(x, by=1.0):
    return x + by


@njit
def of_number(x):
    return interpolated(x[0], x) * x[1]


@njit
def of_array(x):
    return np.sum(interpolated(x, x) ** 2)


@njit
def of_texts(x):
    return power(x[0], "square") + power(x[1], "cube")


@njit
def of_integers(x):
    return halved(5) * x[0] + halved(x[1])


@njit
def in_loop(x):
    total = 0.0
    for i in range(12):
        total += interpolated(x[i % 3], x) * shifted(x[i % 2], by=0.5)
    return total


FUNCTIONS = [of_number, of_array, of_texts, of_integers, in_loop]


@BOTH
@pytest.mark.parametrize("f", FUNCTIONS)
def test_values_and_gradients_are_those_of_the_implementations(f, compiled):
    value, gradient = nbta.value_and_grad(f, compiled=compiled)(X)
    assert value == pytest.approx(f(X), rel=1e-13)
    central = [(f(X + step) - f(X - step)) / 2e-6 for step in 1e-6 * np.eye(3)]
    np.testing.assert_allclose(gradient, central, rtol=1e-7, atol=1e-8)


def test_python_calls_the_python_function():
    def f(x):
        return halved(5) * x

    assert nbta.function(f)(2.0) == 5.0


def test_types_without_an_overload_are_an_error():
    @njit
    def f(x):
        return interpolated(x.reshape((3, 1)), x)

    with pytest.raises(numba.TypingError):
        f(X)
    with pytest.raises(TypeError, match=r"interpolated at .* has no overload for array"):
        nbta.function(f)(X)
