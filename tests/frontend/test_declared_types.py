"""Compiled functions with declared types take, give and bind numbers in these types."""

import numba
import numpy as np
import pytest
from numba import njit

import nbta

BOTH = pytest.mark.parametrize("compiled", [False, True])


@njit("f8(f8, i8)")
def divided(x, n):
    return x / n + n // 2


@njit("f8[:](f8, i8)")
def filled(value, length):
    a = np.full(length, value)
    a[0] = 0.5
    return a


@njit(["f4(f4)", "f8(f8)"])
def third(x):
    return x / 3


@njit(["i8(i8)", "f8(f8)"])
def half(x):
    return x * x // 2


@njit("i8(f8)")
def rounded_down(x):
    return x * 1.5


@njit("b1(f8)")
def is_something(x):
    return x


@njit("Tuple((f8, i8))(f8, f8)")
def product_and_sum(x, y):
    return x * y, x + y * 3


@njit("f8(UniTuple(f8, 3), i8)")
def of_three(t, k):
    return t[0] * t[1] / k + t[2] // 2


@njit("optional(f8)(f8)")
def doubled_if_positive(x):
    if x > 0:
        return x * 2
    return None


@njit(["f8(f8[:], f8)", "f4(f4[::1], f4)"])
def weighted(a, weight):
    total = 0
    for v in a:
        total += v * weight
    return total


@njit
def caller(x):
    return divided(x, x * 4) + third(np.float32(x)) * third(3) + filled(2, 2)[0] + half(x)


def by_keywords(x):
    return divided(n=3.3 * x, x=x)


def in_a_loop(x):
    total = 0.0
    for i in range(12):
        total += divided(x[i % 3], 2.2 * x[i % 3] + 1.0) * rounded_down(x[i % 2])
    return total


@njit(locals={"n": numba.int64})
def of_an_integer(x):
    n = x / 2
    n = n + 0.7
    n += x / 3
    return n * x


@njit(locals={"n": numba.int64})
def of_an_integer_in_a_branch(x):
    n = 0
    if x > 1:
        n = x
    return n * x


@njit(locals={"i": numba.int64, "rest": numba.float64})
def looked_up(x):
    total = 0.0
    for k in range(12):
        place = x[k % 3] / (k % 4 + 2)
        i = np.floor(place)
        rest = place - i
        total += x[i] * (1 - rest) + rest * x[i + 1]
    return total


@njit(locals={"i": numba.int64, "j": numba.int64})
def of_several(x):
    i, (j, rest) = x[0] * 2.0, (x[1], x[2])
    return i * 100.0 + j * rest


@njit(locals={"total": numba.float32, "i": numba.types.intp})
def in_single_precision(x):
    total = 0.0
    for i in range(x.shape[0]):
        total += x[i] * 0.1
    return total * 1.0


CALLS = [
    (divided, 1.5, 7.9), (divided, 3, 2), (filled, 3, 2), (third, 1), (third, np.float32(1.0)),
    (third, np.int32(2)), (half, 3), (half, 2.7), (half, np.float32(2.7)), (rounded_down, 3.3),
    (is_something, 3.3), (is_something, 0.0), (product_and_sum, 3.3, 1.2),
    (of_three, (1, 2.5, 3), 2.9),
    (doubled_if_positive, 2), (doubled_if_positive, -1.0), (weighted, np.arange(3.0), 2),
    (weighted, np.arange(3, dtype=np.float32), 0.1), (caller, 1.7), (by_keywords, 1.5),
    (in_a_loop, np.array([1.3, 2.2, 3.4])), (of_an_integer, 3.9), (of_an_integer_in_a_branch, 3.9),
    (of_an_integer_in_a_branch, 0.5), (looked_up, np.array([1.3, 2.2, 3.4])),
    (of_several, np.array([1.3, 2.2, 3.4])), (in_single_precision, np.arange(5.0)),
]  # fmt: skip


@BOTH
@pytest.mark.parametrize(("f", "args"), [(f, args) for f, *args in CALLS])
def test_numbers_are_cast_as_numba_casts_them(f, args, compiled):
    expected, found = f(*args), nbta.function(f, compiled=compiled)(*args)
    if expected is None:
        assert found is None
        return
    for want, got in zip(np.atleast_1d(expected), np.atleast_1d(found), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-7)
    if isinstance(expected, np.ndarray):
        assert found.dtype == expected.dtype


@BOTH
def test_gradients_are_those_of_the_casts(compiled):
    x = np.array([1.3, 2.2, 3.4])
    value, found = nbta.value_and_grad(in_a_loop, compiled=compiled)(x)
    assert value == pytest.approx(in_a_loop(x), rel=1e-13)
    steps = 1e-6 * np.eye(3)
    central = [(in_a_loop(x + step) - in_a_loop(x - step)) / 2e-6 for step in steps]
    np.testing.assert_allclose(found, central, rtol=1e-7)
    assert nbta.grad(divided, compiled=compiled)(1.5, 7.9) == pytest.approx(1 / 7, rel=1e-14)
    assert nbta.grad(divided, argnums=1, compiled=compiled)(1.5, 7.9) == 0.0


def test_the_python_function_of_a_compiled_one_casts_nothing():
    assert nbta.function(of_an_integer)(3.9) == of_an_integer(3.9)
    assert nbta.function(of_an_integer.py_func)(3.9) == of_an_integer.py_func(3.9)
    assert nbta.function(of_an_integer)(3.9) == of_an_integer(3.9)


@BOTH
def test_gradients_of_variables_with_declared_types(compiled):
    x = np.array([1.3, 2.2, 3.4])
    central = [(looked_up(x + step) - looked_up(x - step)) / 2e-6 for step in 1e-6 * np.eye(3)]
    np.testing.assert_allclose(nbta.grad(looked_up, compiled=compiled)(x), central, rtol=1e-7)


def test_calls_in_compiled_functions_cast_too():
    f, g = nbta.function(in_a_loop), nbta.grad(in_a_loop)

    @numba.njit
    def both(x):
        return f(x), g(x)

    x = np.array([1.3, 2.2, 3.4])
    value, gradient = both(x)
    assert value == pytest.approx(in_a_loop(x), rel=1e-13)
    np.testing.assert_array_equal(gradient, g(x))
