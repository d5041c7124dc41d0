"""fori_loop, and functions of batches from functions of items."""

import numpy as np
import pytest

import nbta
from nbta.testing import check_grads

X = np.array([[0.3, -0.7, 1.1], [0.2, 0.9, -0.4]])


@pytest.mark.smoke_every(2)
@pytest.mark.parametrize("compiled", [False, True])
def test_loops_over_numbers(compiled):
    def power(x, n):
        step = lambda i, s: {"x": s["x"] * x + i, "n": s["n"] + 1}  # noqa: E731
        return nbta.fori_loop(2, n, step, {"x": x, "n": 0})

    found = nbta.function(power, compiled=compiled)(0.5, 6)
    want = 0.5
    for i in range(2, 6):
        want = want * 0.5 + i
    assert (found["x"], found["n"]) == (want, 4)
    assert nbta.function(power, compiled=compiled)(0.5, -3)["x"] == 0.5
    check_grads(lambda x: power(x, 6)["x"], (0.5,))


def test_axes():
    f = nbta.vmap(lambda x, y, p: {"a": x * y[0] + p["b"]}, (1, 0, None), 1)
    y = np.arange(6.0).reshape(3, 2)
    found = f(X, y, {"b": 1.0})
    np.testing.assert_allclose(found["a"], X * y[:, 0] + 1.0)
    assert found["a"].shape == (2, 3)


def test_axes_of_parts():
    """Structures of axes, arguments by name, and axes of results, as in JAX."""
    f = nbta.vmap(
        lambda p, pair, *, k: (p["a"] * pair[0] + p["b"] * k, [pair[0]]),
        ({"a": 0, "b": None}, (1, None)),
        (0, [-1]),
    )
    p, k = {"a": np.array([1.0, 2.0]), "b": 0.5}, np.array([3.0, 4.0])
    first, (second,) = f(p, (X.T, 7.0), k=k)
    np.testing.assert_allclose(first, p["a"][:, None] * X + 0.5 * k[:, None])
    np.testing.assert_array_equal(second, X.T)


@pytest.mark.parametrize("count", [1, 20])
def test_threads_give_the_same_bits(count):
    def f(x):
        total = 0.0
        for _ in range(50):
            total = np.sin(total + x[0]) * x[1]
        return total

    x = np.random.default_rng(0).normal(size=(count, 2))
    alone = nbta.vmap(f, compiled=True)(x)
    for threads in (2, 4):
        both = nbta.vmap(f, compiled=True, parallel_iterations=threads)
        np.testing.assert_array_equal(both(x), alone)


def test_items_do_not_write_to_arrays_around_them():
    """Such a write was lost where no result waited for it."""

    def total(x):
        array = nbta.TensorArray("float64", size=3)

        def item(row):
            array.write(0, row)
            return row

        return nbta.vmap(item)(x)

    with pytest.raises(nbta.InvalidArgumentError, match="belongs to the body of a loop"):
        nbta.function(total)(np.ones(3))


def test_results_of_rank_0_are_stacked():
    np.testing.assert_allclose(nbta.vmap(np.sum, 1)(X), X.sum(0))


@pytest.mark.smoke_every(2)
@pytest.mark.parametrize("compiled", [False, True])
def test_branches_nests_and_gradients(compiled):
    def f(x):
        return np.sin(x) if x > 0 else x**2

    nested = nbta.vmap(nbta.vmap(f), compiled=compiled)
    np.testing.assert_allclose(nested(X), np.where(X > 0, np.sin(X), X**2))
    slopes = nbta.vmap(nbta.vmap(nbta.grad(f)), compiled=compiled)
    np.testing.assert_allclose(slopes(X), np.where(X > 0, np.cos(X), 2 * X))
    check_grads(lambda x: nbta.vmap(lambda row: np.tanh(row) * row[0])(x), (X,))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: nbta.vmap(np.sum, (0, 0))(X), "for 1 arguments"),
        (lambda: nbta.vmap(np.sum, None)(X), "an axis for one at least"),
        (lambda: nbta.vmap(np.sum, out_axes=None)(X), "out_axes has None"),
        (lambda: nbta.vmap(np.sum, out_axes=(0, 0))(X), r"out_axes has \(0, 0\) for the result"),
        (lambda: nbta.vmap(np.sum, "x")(X), r"in_axes has 'x' for args\[0\]"),
        (lambda: nbta.vmap(lambda p: p["a"], ({"b": 0},))({"a": X}), "a structure like it"),
        (lambda: nbta.vmap(np.sum, 3)(X), r"args\[0\] has 2 axes"),
        (lambda: nbta.vmap(np.sum, parallel_iterations=0), "an integer of 1 or more"),
        (
            lambda: nbta.vmap(np.add)(X, X[:1]),
            r"args\[1\] and args\[0\] have different numbers of items",
        ),
        (lambda: nbta.fori_loop(0, 2.5, lambda i, s: s, 0.0), "upper .*must be one integer"),
    ],
    ids=[
        "axes",
        "none",
        "no axis of a result",
        "structure of results",
        "text",
        "structure",
        "no such axis",
        "threads",
        "lengths",
        "bound",
    ],
)
def test_what_is_refused(call, words):
    with pytest.raises(nbta.InvalidArgumentError, match=words):
        call()
