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


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("convert", [False, True])
def test_the_attribute_of_tensors(compiled, convert):
    def changed(x, i):
        y = x.at[i, 1:].set(x[0, :2] * 2.0)
        for name in ("add", "mul", "min", "max"):
            y = getattr(y.at[0], name)(0.5).at[i, 0].add(x.T.at[1].set(3.0)[1, 0])
        return y, x[1].at[0].set(9.0), (x * 2).at[np.array([0, 0])].add(1.0)

    want = nbta.function(changed_by_function, compiled=False)(X, 1)
    found = nbta.function(changed, compiled=compiled, convert=convert)(X, 1)
    for values, others in zip(found, want, strict=True):
        np.testing.assert_array_equal(values, others)
    check_grads(lambda x: nbta.sum(changed_by_function(x, 1)[0]), (X,))
    slope = nbta.grad(lambda x: nbta.sum(changed(x, 1)[0]), compiled=compiled, convert=convert)
    np.testing.assert_allclose(
        slope(X), nbta.grad(lambda x: nbta.sum(changed_by_function(x, 1)[0]))(X)
    )


def changed_by_function(x, i):
    y = nbta.at(x)[i, 1:].set(x[0, :2] * 2.0)
    for name in ("add", "mul", "min", "max"):
        y = getattr(nbta.at(y)[0], name)(0.5)
        y = nbta.at(y)[i, 0].add(nbta.at(x.T)[1].set(3.0)[1, 0])
    return y, nbta.at(x[1])[0].set(9.0), nbta.at(x * 2)[np.array([0, 0])].add(1.0)


@pytest.mark.parametrize("compiled", [False, True])
def test_arrays_of_traced_functions_have_it(compiled):
    """What changes later is not in what was made before; known arrays stay known."""

    def changed(x):
        filled = np.zeros(3).at[1].set(x[1, 1])
        before = x.at[0]
        x[0, 0] = 7.0
        count = np.zeros(2, int).at[0].set(3)
        for i in range(int(count[0])):
            filled = filled.at[i].add(1.0)
        return filled, before.add(1.0), x.at[0].add(1.0)

    filled, before, after = nbta.function(changed, compiled=compiled)(X)
    np.testing.assert_array_equal(filled, [1.0, X[1, 1] + 1, 1.0])
    np.testing.assert_array_equal(before, X + np.array([[1.0], [0.0]]))
    np.testing.assert_array_equal(after[0], [8.0, X[0, 1] + 1, X[0, 2] + 1])


def test_arrays_in_bodies_outside_of_graphs_have_it():
    def step(carry, row):
        return carry.at[0].add(row[1]), carry.at[1:].set(row[0])

    eager = nbta.scan(step, np.zeros(2), X)
    graph = nbta.function(lambda x: nbta.scan(step, np.zeros(2), x), compiled=True)(X)
    for one, other in zip(eager, graph, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", CHANGES)
def test_masks(compiled, name):
    def changed(x, rows):
        return getattr(nbta.at(x)[x > 0.0], name)(0.5), getattr(nbta.at(x)[rows], name)(x[0, 0])

    rows = np.array([False, True])
    found = nbta.function(changed, compiled=compiled)(X, rows)
    for values, plain, mask, value in zip(
        found, changed(X, rows), (X > 0.0, rows), (0.5, X[0, 0]), strict=True
    ):
        want = X.copy()
        want[mask] = CHANGES[name](want[mask], value)
        np.testing.assert_array_equal(values, want)
        np.testing.assert_array_equal(plain, want)
    check_grads(lambda x: changed(x, rows), (X,))


def test_masks_that_are_refused():
    for mask in (np.ones(3, bool), np.ones(1, bool), np.ones((2, 1), bool)):
        with pytest.raises(nbta.InvalidArgumentError):
            nbta.at(X)[mask].set(1.0)
    with pytest.raises(nbta.InvalidArgumentError, match="mask"):
        nbta.at(X)[X > 0].set(np.ones(4))
    with pytest.raises(nbta.InvalidArgumentError, match="float64"):
        nbta.at(np.arange(3))[np.ones(3, bool)].set(1.5)
