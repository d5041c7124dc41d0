"""map_fn on several threads: the results and gradients of rows one after another."""

import numba
import numpy as np
import pytest
from compiled_pairs import Pair, compare, error_of

import nbta
from nbta.testing import check_grads

RNG = np.random.default_rng(3)
W, X = RNG.normal(size=(3, 2)), RNG.normal(size=(7, 3))


def rows(w, x, threads):
    return nbta.map_fn(lambda r: nbta.tanh(r @ w) * nbta.sum(r), x, parallel_iterations=threads)


def loss(threads):
    return lambda w, x: nbta.sum(rows(w, x, threads) ** 2)


@pytest.mark.slow_but_every(6)
@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("argnums", [0, 1, (0, 1)])
def test_gradients_are_those_of_rows_in_order(compiled, argnums):
    both = nbta.value_and_grad(loss(2), argnums, compiled=compiled)
    expected = nbta.value_and_grad(loss(None), argnums, compiled=False)
    for n in (7, 1, 3):
        compare(both(W, X[:n]), expected(W, X[:n]), 1e-12)


def test_the_function_and_its_gradient_are_an_operation_each():
    for threads, expected in ((2, True), (1, False), (None, False)):
        both = nbta.value_and_grad(loss(threads), compiled=True)
        both(W, X)
        assert ("Map x 2" in both.explain()) == expected


def test_gradients_agree_with_differences():
    check_grads(loss(3), (W, X), order=2)


@pytest.mark.slow
@pytest.mark.parametrize("compiled", [True, False])
def test_second_derivatives(compiled):
    def make(threads):
        f = loss(threads)
        return nbta.function(lambda w: nbta.hvp(lambda v: f(v, X), w, w * 0.3), compiled=compiled)

    compare(make(2)(W), make(None)(W), 1e-11)

    def forward(threads):
        f = loss(threads)
        return nbta.function(lambda w: nbta.jvp(lambda v: f(v, X), w, w * 0.3), compiled=compiled)

    compare(forward(2)(W), forward(None)(W), 1e-11)


@pytest.mark.slow
def test_in_a_loop_and_in_a_branch():
    def f(w, x):
        def step(h, _):
            y = nbta.map_fn(lambda r: nbta.tanh(r * h), x, parallel_iterations=2)
            h = nbta.cond(
                nbta.sum(h) > 0,
                lambda: nbta.sum(nbta.map_fn(lambda r: r * w, y, parallel_iterations=2), 0) + h,
                lambda: h * 0.5,
            )
            return h, nbta.sum(y)

        h, ys = nbta.scan(step, w, None, length=4)
        return nbta.sum(h) + nbta.sum(ys * ys)

    pair = Pair(f, lambda g, compiled: nbta.value_and_grad(g, (0, 1), compiled=compiled))
    for n in (5, 2):
        pair(np.array([0.5, -0.2, 0.3]), X[:n])
    check_grads(f, (np.array([0.5, -0.2, 0.3]), X[:2]))


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("checkpoint", [2, "sqrt", "online"])
def test_in_a_loop_that_is_computed_again(checkpoint):
    def make(threads, checkpoint):
        def f(w, x):
            def step(h, row):
                y = nbta.map_fn(lambda r: nbta.sin(r + h), x, parallel_iterations=threads)
                return nbta.sum(y, 0) * w, row

            return nbta.sum(nbta.scan(step, w, x, checkpoint=checkpoint)[0])

        return nbta.value_and_grad(f, (0, 1), compiled=True)

    w = np.array([0.4, 0.1, -0.3])
    compare(make(2, checkpoint)(w, X), make(None, None)(w, X), 1e-12)


@pytest.mark.slow
def test_loops_and_arrays_in_the_function():
    def f(w, x, threads):
        def run(row):
            path = nbta.TensorArray("float64", dynamic_size=True, element_shape=())
            _, path = nbta.while_loop(
                lambda y, path: y < 10.0,
                lambda y, path: (y * w + 1.0, path.append(y)),
                (nbta.sum(row * row), path),
            )
            return nbta.sum(path.stack() ** 2), path.size()

        total, sizes = nbta.map_fn(run, x, parallel_iterations=threads)
        return nbta.sum(total), sizes

    fast = nbta.value_and_grad(lambda w, x: f(w, x, 4), (0, 1), True, True)
    slow = nbta.value_and_grad(lambda w, x: f(w, x, None), (0, 1), True, False)
    for n in (7, 4):
        compare(fast(1.3, X[:n]), slow(1.3, X[:n]), 1e-12)


@pytest.mark.slow
def test_maps_in_maps_and_structures():
    def f(w, x, threads):
        def inner(pair):
            a, b = pair["a"], pair["b"]
            return {"y": a * w + b, "n": nbta.cast(a > 0, "int32")}

        def outer(row):
            made = nbta.map_fn(inner, {"a": row, "b": row * row}, parallel_iterations=threads)
            return nbta.sum(made["y"]), made["n"]

        return nbta.map_fn(outer, x, parallel_iterations=threads)

    for compiled in (True, False):
        fast = nbta.function(lambda w, x: f(w, x, 2), compiled=compiled)
        compare(fast(0.5, X), nbta.function(lambda w, x: f(w, x, None))(0.5, X))
        fast = nbta.grad(lambda w, x: nbta.sum(f(w, x, 2)[0] ** 2), (0, 1), compiled=compiled)
        slow = nbta.grad(lambda w, x: nbta.sum(f(w, x, None)[0] ** 2), (0, 1), compiled=False)
        compare(fast(0.5, X), slow(0.5, X), 1e-12)


@pytest.mark.slow
def test_the_number_of_threads_changes_no_bit():
    w, x = W.astype(np.float32), RNG.normal(size=(200, 3)).astype(np.float32)
    before, found = numba.get_num_threads(), []
    for iterations in (2, 16):
        both = nbta.value_and_grad(loss(iterations), (0, 1), compiled=True)
        for threads in (1, numba.config.NUMBA_NUM_THREADS):
            numba.set_num_threads(threads)
            found += [both(w, x) for _ in range(2)]
    numba.set_num_threads(before)
    value, slopes = found[0]
    for other, others in found[1:]:
        assert other == value
        for mine, theirs in zip(others, slopes, strict=True):
            np.testing.assert_array_equal(mine, theirs)


# Where rows come one after another.


@pytest.mark.parametrize("compiled", [True, False])
def test_writes_to_arrays_from_outside_come_in_order(compiled):
    def f(x):
        seen = nbta.TensorArray("float64", dynamic_size=True, element_shape=())
        kept = seen.write(0, x[0])
        return nbta.map_fn(lambda r: r + kept.read(0), x, parallel_iterations=4)

    with pytest.raises(nbta.InvalidArgumentError) as parallel:
        nbta.function(f, compiled=compiled)(X[:, 0])
    assert "cleared" in str(parallel.value)


def test_outside_of_graphs():
    found = nbta.map_fn(lambda r: nbta.sum(r) * W[0, 0], X, parallel_iterations=2)
    np.testing.assert_allclose(found, X.sum(1) * W[0, 0])
    found = nbta.map_fn(lambda r: nbta.TensorArray("float64", size=1).write(0, r).stack(), X, 2)
    np.testing.assert_allclose(found, X[:, None])


# What cannot be.


@pytest.mark.parametrize("value", [0, -1, 2.0, "2", True])
def test_other_numbers_of_iterations_are_refused(value):
    with pytest.raises(nbta.InvalidArgumentError, match="integer of 1 or more"):
        nbta.map_fn(lambda r: r, X, parallel_iterations=value)


def test_the_first_row_that_fails_is_named():
    def f(x, n):
        return nbta.map_fn(lambda k: x[k], n, parallel_iterations=2)

    for compiled in (True, False):
        function = nbta.function(f, compiled=compiled)
        np.testing.assert_array_equal(function(X, np.array([2, 0])), X[[2, 0]])
        error = error_of(function, X, np.array([0, 9, 3, 8]))
        assert str(error).endswith("(row 1 of map_fn)")


def test_a_lost_write_is_refused():
    def f(v):
        ta = nbta.TensorArray("float64", size=1, element_shape=())
        ta.write(0, v)
        return ta.read(0)

    for rows in (None, 2):
        g = lambda x, rows=rows: nbta.map_fn(f, x, rows)  # noqa: E731
        with pytest.raises(nbta.InvalidArgumentError) as failed:
            nbta.function(g, convert=False)(X[:, 0])
        assert failed.value.reason == "lost_write"
        np.testing.assert_array_equal(nbta.function(g)(X[:, 0]), X[:, 0])


def test_what_is_in_the_body_is_shown_and_checked():
    with nbta.Graph().as_default() as graph:
        x = nbta.placeholder("float64", (None,))
        nbta.map_fn(lambda r: nbta.sin(r) * 2.0, x, 2)
    assert "= Sin(" in str(graph)
    assert nbta.check_flow(graph) == []


def test_what_is_not_connected_has_no_gradient():
    with nbta.Graph().as_default():
        x, y = nbta.placeholder("float64", (None,)), nbta.placeholder("float64", ())
        a, b = nbta.map_fn(lambda r: (r * r, nbta.cast(y, "float64")), x, 2)
        assert nbta.gradients(a, [y]) == [None]
        assert nbta.gradients(b, [x]) == [None]


@pytest.mark.parametrize("compiled", [True, False, "auto"])
def test_functions_of_python_are_called_once_a_row(compiled):
    calls = []

    @nbta.custom_gradient(backward=lambda dy, x, y: dy)
    def same(x):
        calls.append(1)
        return x * 1.0

    f = nbta.function(lambda x: nbta.map_fn(lambda r: same(r), x, 2), compiled=compiled)
    for _ in range(3):
        calls.clear()
        np.testing.assert_array_equal(f(X), X)
        assert len(calls) == len(X)


def test_rows_of_results_of_other_shapes_are_refused():
    def f(n):
        return nbta.map_fn(lambda k: nbta.arange(k), n, parallel_iterations=2)

    for compiled in (True, False):
        function = nbta.function(f, compiled=compiled)
        np.testing.assert_array_equal(function(np.array([3, 3])), [[0, 1, 2]] * 2)
        assert "shapes" in str(error_of(function, np.array([2, 3])))


def test_other_numbers_of_rows_are_refused():
    def f(x, y):
        return nbta.map_fn(lambda p: p[0] + p[1], (x, y), parallel_iterations=2)

    for compiled in (True, False):
        error = error_of(nbta.function(f, compiled=compiled), np.ones(3), np.ones(4))
        assert "map_fn: elems have [3, 4] rows" in str(error)


def test_a_scalar_of_unknown_rank_has_no_rows():
    with nbta.Graph().as_default() as graph:
        x = nbta.placeholder("float64")
        y = nbta.map_fn(lambda r: r * 2.0, x, parallel_iterations=2)
    with nbta.Session(graph) as session:
        np.testing.assert_array_equal(session.run(y, {x: [1.0, 2.0]}), [2.0, 4.0])
        with pytest.raises(nbta.InvalidArgumentError, match="scalar, which has no first axis"):
            session.run(y, {x: 3.0})


@pytest.mark.parametrize("compiled", [True, False])
def test_no_rows(compiled):
    both = nbta.value_and_grad(loss(2), (0, 1), compiled=compiled)
    value, (dw, dx) = both(W, X[:0])
    assert value == 0
    np.testing.assert_array_equal(dw, np.zeros_like(W))
    assert dx.shape == (0, 3)
    sums = nbta.function(lambda x: nbta.map_fn(nbta.sum, x, 2), compiled=compiled)(X[:0])
    assert sums.shape == (0,)
    slope = nbta.grad(
        lambda x: nbta.sum(nbta.map_fn(lambda r: nbta.sum(r[: nbta.shape(r)[0] // 2]), x, 2)),
        compiled=compiled,
    )
    assert slope(X[:0]).shape == (0, 3)


def test_a_function_that_calls_another_one():
    """Arrays run as a graph of their own, which may be traced more than once."""
    scaled = lambda r, n: nbta.sum(r) * n  # noqa: E731
    total = lambda r, n: nbta.fori_loop(0, n, lambda i, t: t + scaled(r, i), 0.0)  # noqa: E731
    ways = (lambda q: total(*q)), (lambda q: _TOTAL(*q))
    for f in ways:
        found = nbta.map_fn(f, (X, np.arange(7)), parallel_iterations=2)
        expected = [sum(row.sum() * i for i in range(n)) for n, row in enumerate(X)]
        np.testing.assert_allclose(found, expected)


_TOTAL = lambda r, n: nbta.while_loop(  # noqa: E731
    lambda i, t: i < n, lambda i, t: (i + 1, t + nbta.sum(r) * i), (0, 0.0)
)[1]
