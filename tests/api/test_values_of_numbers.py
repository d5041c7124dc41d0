"""Whole numbers among the arguments, where Python needs their values: a graph for each value."""

import warnings

import numba
import numpy as np
import pytest

import nbta

X = np.array([0.3, 1.2, 2.2, 0.4, 1.9, 2.5])


def knots(x, n):
    return np.sum(np.linspace(x[0], x[1], n) ** 3)


def binned(x, n):
    return np.sum(np.histogram(x, n, range=(0.0, 3.0), weights=x**2)[0] * np.arange(n))


def fitted(x, n):
    return np.sum(np.polyfit(np.arange(6.0), x, n) ** 2)


def windows(x, n):
    return np.sum(np.convolve(x, np.ones(n) / n, "valid") ** 2)


def differences(x, n):
    return np.sum(np.diff(x, n) ** 2)


def padded(x, n):
    return np.sum(np.pad(x, n, mode="edge") ** 2)


def transformed(x, n):
    return np.sum(np.abs(np.fft.fft(x, n)) ** 2)


def in_a_loop(x, n):
    total = 0.0
    for i in range(4):
        total += np.sum(np.array_split(x * i, n)[0] ** 2)
    return total


FUNCTIONS = [
    knots, binned, fitted, windows, differences, padded, transformed, in_a_loop,
]  # fmt: skip


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("f", FUNCTIONS)
def test_values_are_taken_as_python_takes_them(f, compiled):
    g = nbta.value_and_grad(f, compiled=compiled)
    step = 1e-6 * np.cos(np.arange(6.0))
    for n in (2, 3, 2, np.int64(3)):
        for _ in range(3):  # the third call goes the short way
            value, slope = g(X, n)
            np.testing.assert_allclose(value, f(X, n), rtol=1e-12)
        difference = f(X + step, n) - f(X - step, n)
        np.testing.assert_allclose(np.sum(slope * step), difference / 2, rtol=1e-6, atol=1e-14)
    assert g.traces == 2


def test_a_number_that_python_does_not_need_stays_one_of_the_run():
    g = nbta.grad(lambda x, n: np.sum(x**n) + np.sum(np.zeros(n)))
    for n in range(2, 6):
        np.testing.assert_allclose(g(X, n), n * X ** (n - 1), rtol=1e-13)
    assert g.traces == 1


def test_they_are_integers_of_python():
    def f(x, n, m):
        return knots(x, n) * (n // m) * (2.0 if isinstance(n, int) else 3.0) * 2**m

    g = nbta.function(f)
    assert g(X, 3, 2) == f(X, 3, 2)
    assert g(X, 3, 1) == f(X, 3, 1)
    with pytest.raises(ZeroDivisionError):
        g(X, 3, 0)
    assert nbta.function(lambda x, n, m: knots(x, n) * 2**m)(X, 3, 70) == knots(X, 3) * 2**70


def test_lengths_and_numbers_together():
    def f(x, n):
        return np.sum(np.linspace(x[0], x[1], n)) * (2.0 if len(x) > 4 else 1.0)

    g = nbta.function(f)
    for x in (X, X[:3], X):
        for n in (2, 3):
            np.testing.assert_allclose(g(x, n), f(x, n), rtol=1e-13)


def test_errors_are_those_of_python():
    with pytest.raises(nbta.InvalidArgumentError, match="is not an integer; give one"):
        nbta.grad(lambda x, n: np.sum(np.zeros((n, x[0]))))(X, 3)
    with pytest.raises(ValueError, match="few"):
        nbta.grad(_checked)(X, 1)
    with pytest.raises(nbta.InvalidArgumentError, match="num: -1 is negative") as found:
        nbta.grad(knots)(X, -1)
    assert found.value.__context__ is None


def _checked(x, n):
    if n < 2:
        raise ValueError("few")
    return knots(x, n)


def test_many_values_are_worth_a_warning():
    g = nbta.function(knots, compiled=False)
    for n in range(2, 17):
        g(X, n)
    with pytest.warns(
        nbta.PerformanceWarning, match=r"each value of args\[1\], 16 so far, as .*py"
    ):
        g(X, 17)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        g(X, 25)


def test_calls_from_compiled_code_have_them():
    g = nbta.grad(knots)
    call = numba.njit(lambda x, n: g(x, n))
    for n in (3, 2, 3):
        np.testing.assert_allclose(call(X, n), g(X, n), rtol=1e-13)


def test_batches_share_them():
    g = nbta.grad(knots, batch_axis=(0, None))
    expected = nbta.grad(knots)
    rows = np.stack([X, X + 1.0])
    for n in (3, 2):
        np.testing.assert_allclose(g(rows, n), [expected(row, n) for row in rows], rtol=1e-13)
        call = numba.njit(lambda rows, n: g(rows, n))
        np.testing.assert_allclose(call(rows, n), g(rows, n), rtol=1e-13)
    with pytest.raises(nbta.UnimplementedError, match=r"value of args\[1\] for each item; let all"):
        nbta.grad(knots, batch_axis=0)(rows, [3, 2])
    later = nbta.grad(lambda x, n: knots(x, n) if len(x) < 6 else np.sum(x * n), batch_axis=0)
    with pytest.raises(nbta.UnimplementedError, match=r"value of args\[1\] for each item; let all"):
        later([X, X[:5], X[:5]], [1, 3, 2])
