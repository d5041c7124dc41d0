"""Changes of items that give a new array."""

import numpy as np
import pytest

import nbta
from nbta.testing import check_grads

X = np.array([[0.3, -0.7, 1.1], [0.2, 0.9, -0.4]])
CHANGES = {"set": lambda a, b: b, "add": np.add, "mul": np.multiply, "min": np.minimum,
           "max": np.maximum}  # fmt: skip


@pytest.mark.parametrize("compiled", [False, True])
def test_changes(compiled):
    def changed(x, i):
        return tuple(getattr(nbta.at(x)[i, 1:], name)(x[0, :2] * 2.0) for name in CHANGES)

    found = nbta.function(changed, compiled=compiled)(X, 1)
    for values, plain, change in zip(found, changed(X, 1), CHANGES.values(), strict=True):
        want = X.copy()
        want[1, 1:] = change(X[1, 1:], X[0, :2] * 2.0)
        np.testing.assert_allclose(values, want)
        np.testing.assert_allclose(plain, want)
    check_grads(lambda x: changed(x, 1), (X,))


def test_arrays_of_indices_add_up_or_are_refused():
    with pytest.raises(nbta.InvalidArgumentError, match="items may repeat"):
        nbta.at(X)[np.array([0, 0])].mul(2.0)
    found = nbta.at(X)[np.array([0, 0])].add(np.ones((2, 3)))
    np.testing.assert_allclose(found, X + np.array([[2.0], [0.0]]))


def test_masked_arrays_are_refused():
    with pytest.raises(nbta.InvalidArgumentError, match="mask"):
        nbta.at(np.ma.masked_array([1.0, 2.0], [0, 1]))[0].set(1.0)
