"""Arrays without axes, and numbers: what NumPy makes of them, and one truth value as a key."""

import numpy as np
import pytest

import nbta


def zeros_of_a_number(x, limit):
    made = np.zeros_like(np.sqrt(x))
    made[...] = x * 3.0
    return made


def empty_of_a_number(x, limit):
    made = np.empty_like(x * 2.0)
    made[()] = x
    return made * x


def full_of_a_number(x, limit):
    return np.full_like(x, 3.0) * x


def assigned(x, limit):
    made = np.asarray(x * 2.0)
    made[made > limit] = 1.0
    return made


def added(x, limit):
    made = np.zeros_like(x)
    made[np.sqrt(x) > limit] += x
    return made - x**2


def chosen(x, limit):
    root = np.sqrt(x)
    return np.sum(root[root > limit]) * 2.0


def count(x, limit):
    return len(np.asarray(x)[x > limit]) + x


def of_rows(x, limit):
    rows = np.outer(np.arange(1.0, 4.0), np.ones(2)) * x
    rows[1:][x > limit] *= 2.0
    return np.sum(rows[x > limit] ** 2) + np.sum(rows[0])


def one_row(x, limit):
    rows = np.outer(np.arange(1.0, 4.0), np.ones(2)) * x
    rows[2, x > limit] = 7.0 * x
    return np.sum(rows**2)


def number_or_array(x, limit):
    """As libraries write for both."""
    root = np.sqrt(x)
    is_far = root > limit
    try:
        root[is_far] = limit * root[is_far]
    except TypeError:
        if is_far:
            root = limit * root
    return root


def has_no_length(x, limit):
    try:
        return len(x * limit) * x
    except TypeError:
        return x * limit


def has_no_items(x, limit):
    total = 1.0
    try:
        for part in np.sqrt(x):
            total = total * part
    except TypeError:
        total = total + np.sqrt(x)
    return total


CASES = [
    zeros_of_a_number, empty_of_a_number, full_of_a_number, assigned, added, chosen, count,
    of_rows, one_row, number_or_array, has_no_length, has_no_items,
]  # fmt: skip


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("f", CASES, ids=lambda f: f.__name__)
def test_value_and_gradient(f, compiled):
    made = nbta.value_and_grad(f, compiled=compiled)
    for x, limit in ((2.0, np.float64(1.25)), (0.5, np.float64(1.25)), (2.0, np.float64(9.0))):
        x = np.float64(x)
        value, slope = made(x, limit)
        np.testing.assert_allclose(value, f(x, limit), rtol=1e-14)
        ends = f(x + 1e-5, limit) - f(x - 1e-5, limit)
        assert slope == pytest.approx(float(ends) / 2e-5, rel=1e-7, abs=1e-8)
