"""Floats of Python's that only the run knows take the dtype of NumPy's, as known ones do."""

import math

import numpy as np
import pytest

import nbta

X = np.linspace(0.1, 2.5, 9, dtype=np.float32)
WIDE = np.linspace(0.1, 0.9, 9)


def chosen(x, wide, u):
    """A branch chooses a float of Python's."""
    k = 0.1 if u > 0.0 else 3
    least = max(0.2, k * 0.5)
    y = x * k
    y[0] += k
    return y, x[0] - k / 3, least - x, np.maximum(x, k), np.where(x > 1.0, x, k), x + float(x[1])


def compared(x, wide, u):
    """In its dtype a number is compared with one of Python's, which is rounded."""
    k = 0.1 if u > 0.0 else 0.2
    return 1.0 * (x > k), 1.0 * (k == x[0]), 1.0 * (wide[0] == k)


def summed(x, wide, u):
    """A loop changes a float of Python's, which stays one, or becomes a number of NumPy's."""
    still, narrow, best = 1.0, 0.0, 0.5
    y = 0.0 * x
    for i in range(len(x)):
        still = still * 0.5 + 0.1 * i
        narrow += x[i]
        y += x * still
        if x[i] > 1.0:
            best = 0.1 * i
    return x * still, narrow, x * best, y


def assigned(x, wide, u):
    """A branch gives a loop's float of Python's a number of NumPy's, or a loop makes one alone."""
    best, total = -1.0, 0.0
    for i in range(len(x)):
        if x[i] > best:
            best = x[i]
        if x[i] < 0.4:
            continue
        total += x[i]
        half = 0.5 * i
    return best, total * 1.0, x * half


def kept(x, wide, u):
    """A branch leaves a float of Python's that float32 has not to its digits, or a float32."""
    k, exact, other, total = 0.1, 0.5, 0.1 if u > 0.0 else x[1], 0.0
    if u < 0.0:
        k, exact = x[1], x[2]
    for i in range(len(x)):
        if x[i] > 1.0:
            other = x[i]
        total += other * wide[i]
    return k * wide, x * k, exact * exact * x[3], x[0] * other, total


def widened(x, wide, u):
    """Floats of NumPy's among what a loop computes make it one of theirs."""
    total, other = 0.0, 0.0
    for i in range(len(x)):
        other = other + 0.5 * total
        total += wide[i]
    return x * total, x[0] * other, x * np.sqrt(wide[0]), x * math.sqrt(wide[0])


def computed(x, wide, u):
    """Functions of Python's compute in double precision, and give floats of Python's."""
    return math.sin(x[1]), x * math.exp(x[1]), x[0] * math.atan2(wide[1], 3)


@pytest.mark.parametrize("f", [chosen, compared, summed, assigned, kept, widened, computed])
def test_results_have_numpys_dtypes(f):
    expected = f(X, WIDE, 1.0)
    for compiled in (False, True):
        found = nbta.function(f, compiled=compiled)(X, WIDE, 1.0)
        for one, other in zip(found, expected, strict=True):
            assert one.dtype == np.asarray(other).dtype
            np.testing.assert_allclose(one, other, rtol=1e-6 if one.dtype == np.float32 else 1e-14)


def test_gradients_pass_through_them():
    def loss(wide, x):
        k = 2.0 if wide[0] > 0.0 else 3.0
        still = 1.0
        for i in range(len(x)):
            still = still * 0.5 + 0.1 * i
        return np.sum(wide * k * still) + k * math.sin(wide[1]) * float(x[0])

    step = np.zeros(9)
    step[1] = 1e-6
    expected = (loss(WIDE + step, X) - loss(WIDE - step, X)) / 2e-6
    for compiled in (False, True):
        found = nbta.grad(loss, compiled=compiled)(WIDE, X)
        np.testing.assert_allclose(found[1], expected, rtol=1e-6)


def wrapped_around(mask, a, u):
    """Whether Python knows an integer or only the run, `np.where` has it in the array's dtype."""
    return (
        np.where(mask, a, 300),
        np.where(mask, a, 300 if u > 0.0 else 2),
        np.select([mask], [a], -300),
        np.where(mask, 300, 5),
    )


def test_choices_have_integers_of_python_wrapped_around():
    mask, a = np.array([True, False, True]), np.array([1, 2, 3], np.int8)
    for compiled in (False, True):
        found = nbta.function(wrapped_around, compiled=compiled)(mask, a, 1.0)
        for one, other in zip(found, wrapped_around(mask, a, 1.0), strict=True):
            assert one.dtype == other.dtype
            np.testing.assert_array_equal(one, other)
