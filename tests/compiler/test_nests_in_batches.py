"""Loops over random nests: as many copies as for one, which is none where that has none.

What an array costs where items are written in a nest is copied by no iteration around it, whatever
else the iteration keeps.
"""

import numpy as np
import pytest
from fuzz import item_nests
from fuzz.ways import in_python
from test_in_place import copies, held

import nbta

#: A copy of zeros for each item of a batch, where one function has them already.
MADE = {11: 1}


def durbin(r):
    """Levinson's and Durbin's recursion for several series at once, whose numbers are rows."""
    y, z = np.zeros_like(r), np.zeros_like(r)
    alpha = -r[0]
    y[0] = alpha
    for k in range(1, len(r)):
        s = np.zeros(r.shape[1])
        for i in range(k):
            s = s + r[k - i - 1] * y[i]
        alpha = np.tanh(r[k] + s)
        for i in range(k):
            z[i] = y[i] + alpha * y[k - i - 1]
        for i in range(k):
            y[i] = z[i]
        y[k] = alpha
    return np.sum(y * y)


def test_rows_that_loops_inside_and_around_still_need():
    given = np.random.default_rng(0).normal(size=(7, 3))
    held(durbin, given, make=nbta.value_and_grad)
    nbta.testing.check_grads(durbin, (given,), order=1)


def batch(f, c, w):
    return nbta.vmap(lambda c, w: nbta.value_and_grad(f, (0, 1))(c, w))(c, w)


@pytest.mark.parametrize(
    "seed", [*(27, 34), *(pytest.param(k, marks=pytest.mark.slow) for k in range(12))]
)
def test_random_nests(seed):
    f, (c, w) = item_nests.program(seed).function(), item_nests.arguments()
    one = nbta.value_and_grad(f, (0, 1), compiled=True)
    many = nbta.function(lambda c, w: batch(f, c, w), compiled=True)
    given = np.stack([c, c * 0.9]), np.stack([w, w * 1.1])
    with item_nests.as_loops(), in_python(), np.errstate(all="ignore"):
        value, gradients = many(*given)
        for k in range(2):
            expected, slopes = one(*(each[k] for each in given))
            np.testing.assert_allclose(value[k], expected, rtol=1e-8)
            for found, slope in zip(gradients, slopes, strict=True):
                np.testing.assert_allclose(found[k], slope, rtol=1e-8, atol=1e-10)
        assert len(copies(many)) <= len(copies(one)) + MADE.get(seed, 0)
