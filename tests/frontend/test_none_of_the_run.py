"""Counts of what only the run knows to be empty: NumPy's."""

import numpy as np
import pytest

import nbta

X = np.array([0.5, 1.25, 3.0, 2.75, 1.5])
WIDTHS = np.array([1.0, -2.0, 3.0, 0.5])

CASES = {
    "histogram": lambda x, limit: np.histogram(x[x > limit], bins=3),
    "density": lambda x, limit: np.histogram(x[x < limit + 3.0], bins=3, density=True),
    "weights": lambda x, limit: np.histogram(x[x > limit], bins=3, weights=x[x > limit]),
    "integers": lambda x, limit: np.histogram(x[x > limit].astype(np.int64), bins=3),
    "rows": lambda x, limit: np.histogram(np.outer(x[x > limit], x), bins=3),
    "edges": lambda x, limit: (np.histogram_bin_edges(x[x > limit], bins=3),),
    "histogram2d": lambda x, limit: np.histogram2d(x[x > limit], x[x > limit] ** 2, bins=2),
}


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_counts(name, compiled):
    made = nbta.function(CASES[name], compiled=compiled)
    for limit in (1.0, 10.0, 2.8):
        found, wanted = made(X, limit), CASES[name](X, limit)
        for one, other in zip(found, wanted, strict=True):
            assert one.dtype == other.dtype
            np.testing.assert_allclose(one, other, rtol=1e-14)


@pytest.mark.parametrize("compiled", [False, True])
def test_gradients_of_edges(compiled):
    def loss(x, limit):
        return np.sum(np.histogram(x[x > limit], bins=3)[1] * WIDTHS)

    made = nbta.value_and_grad(loss, compiled=compiled)
    for limit in (1.0, 10.0):
        value, gradient = made(X, limit)
        assert value == pytest.approx(loss(X, limit), rel=1e-14)
        for k in range(len(X)):
            step = 1e-4 * np.eye(len(X))[k]
            ends = loss(X + step, limit) - loss(X - step, limit)
            assert gradient[k] == pytest.approx(ends / 2e-4, abs=1e-8)
