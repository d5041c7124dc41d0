"""Lengths in traced functions are numbers: what Python makes of them is what it makes of NumPy's.

Each thing that Python or NumPy can ask of a length, of the axis of an argument, of what is computed
from it, and of what a body of a loop is given, at several lengths, with its gradient.
"""

import warnings

import numpy as np
import pytest
from fuzz.ways import in_python
from shape_decisions import ALL, COMPUTING, DECIDING, DIVIDING, OF_ARRAYS

import nbta

LENGTHS = (2, 3, 5, 0, 1, 3)
COMPILED = (2, 3, 0)


def _argument(m, decide, x):
    return decide(x.shape[0]) * m.sum(x * x)


def _derived(m, decide, x):
    y = m.concatenate([x[1:], x * 2.0])[::2]
    return decide(y.shape[0]) * m.sum(y * y)


def _loop_body(m, decide, x):
    rows = m.stack([x, x * 3.0])
    if m is np:
        return sum(decide(row.shape[0]) * np.sum(row * row) for row in rows)
    step = lambda total, row: (total + decide(row.shape[0]) * nbta.sum(row * row), None)  # noqa: E731
    return nbta.scan(step, 0.0, rows)[0]


def _captured(m, decide, x):
    if m is np:
        return sum((decide(x.shape[0]) * np.sum(x * x) * i for i in range(2)), 0.0)
    step = lambda i, total: (i + 1, total + decide(x.shape[0]) * nbta.sum(x * x) * i)  # noqa: E731
    return nbta.while_loop(lambda i, total: i < 2, step, (0, 0.0))[1]


#: Those that a graph without arguments refuses.
TEXTS = {"f-string", "str", "np.random"}
ASKING = (set(DECIDING) - TEXTS) | set(DIVIDING) | {"and"}
PLACES = {"argument": _argument, "derived": _derived, "loop": _loop_body, "captured": _captured}


def _outcome(f, *args):
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("error")
        try:
            return f(*args)
        except (ZeroDivisionError, IndexError, ValueError, OverflowError) as error:
            return type(error) if not isinstance(error, nbta.NbtaError) else error


def _slope(f, x):
    """The gradient by central differences; the functions are quadratic, for which it is exact."""
    h, found = 1e-3, np.zeros_like(x)
    for i in range(x.size):
        step = np.zeros_like(x)
        step[i] = h
        found[i] = (f(x + step) - f(x - step)) / (2 * h)
    return found


def _agree(found, expected, rtol=1e-12):
    if isinstance(expected, type):
        assert found is expected, (found, expected)
    else:
        np.testing.assert_allclose(found, expected, rtol=rtol, atol=rtol)


@pytest.mark.slow_but_every(8)
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", ALL)
def test_what_python_makes_of_a_length(name, place):
    f = lambda x: PLACES[place](np, ALL[name], x)  # noqa: E731
    traced = lambda x: PLACES[place](nbta, ALL[name], x)  # noqa: E731
    both = nbta.value_and_grad(traced, compiled=False)
    compiled = nbta.function(traced, compiled=True)
    for n in LENGTHS:
        x = np.linspace(0.5, 1.5, n)
        expected = _outcome(f, x)
        if n in COMPILED:
            with in_python():
                _agree(_outcome(compiled, x), expected)
        found = _outcome(both, x)
        if isinstance(expected, type):
            assert found is expected
        else:
            _agree(found[0], expected)
            _agree(found[1], _slope(f, x), 1e-7)


@pytest.mark.parametrize("name", OF_ARRAYS)
def test_what_python_makes_of_shapes(name):
    decide = OF_ARRAYS[name]
    f = nbta.function(lambda x, y: decide(x, y) * nbta.sum(x), compiled=False)
    fast = nbta.function(lambda x, y: decide(x, y) * nbta.sum(x), compiled=True)
    for n in LENGTHS:
        for k in (2, 3):
            x, y = np.arange(1.0, n + 1), np.ones(k)
            expected = decide(x, y) * np.sum(x)
            assert f(x, y) == pytest.approx(expected)
            with in_python():
                assert fast(x, y) == pytest.approx(expected)


@pytest.mark.parametrize("name", COMPUTING)
def test_arithmetic_needs_one_graph_for_all_lengths(name):
    f = nbta.function(lambda x: COMPUTING[name](x.shape[0]) * nbta.sum(x), compiled=False)
    for n in (2, 3, 5, 7):
        x = np.arange(1.0, n + 1)
        assert f(x) == pytest.approx(COMPUTING[name](n) * np.sum(x))
    assert f.traces == 1


@pytest.mark.parametrize("name", DIVIDING)
def test_dividing_by_a_length_needs_one_graph(name):
    f = nbta.function(lambda x: DIVIDING[name](x.shape[0]) * nbta.sum(x), compiled=False)
    for n in (2, 3, 5, 7):
        f(np.ones(n))
    assert f.traces == 1


@pytest.mark.parametrize("name", ALL)
def test_graphs_without_arguments_say_which_line_asks(name):
    """A placeholder has no length: the same number, or an error with the user's line."""
    decide = ALL[name]
    with nbta.Graph().as_default() as graph:
        x = nbta.placeholder("float64", (None,))
        if name in TEXTS:  # "?" is not a number
            with pytest.raises((ValueError, TypeError)):
                decide(x.shape[0])
            return
        if name in ASKING:
            with pytest.raises(nbta.InvalidArgumentError, match="Python needs") as caught:
                decide(x.shape[0])
            assert "shape_decisions.py:" in str(caught.value)
            assert caught.value.reason == "symbolic"
            return
        fetch = nbta.identity(decide(x.shape[0]))
    for n in (2, 3, 5):
        expected = decide(n)
        assert nbta.Session(graph).run(fetch, {x: np.ones(n)}) == pytest.approx(expected)


# In operations, where one graph is for all lengths.

SYMBOLIC = {
    "zeros": lambda m, x: m.zeros((2, x.shape[0])) + x,
    "zeros of a shape": lambda m, x: m.zeros(x.shape) - x,
    "ones": lambda m, x: m.ones(x.shape[0]) * x,
    "full": lambda m, x: (m.fill if m is nbta else m.full)((x.shape[0], 2), 1.5),
    "arange": lambda m, x: m.arange(x.shape[0]) * x,
    "arange from": lambda m, x: m.arange(1, x.shape[0] + 1) * x,
    "reshape": lambda m, x: m.reshape(x, (x.shape[0], 1)) * x,
    "reshape method": lambda m, x: x.reshape(x.shape[0], 1) * x,
    "np.reshape": lambda m, x: np.reshape(x, (1, x.shape[0])),
    "broadcast_to": lambda m, x: m.broadcast_to(x, (3, x.shape[0])),
    "slice": lambda m, x: x[: x.shape[0] - 1],
    "slice from the middle": lambda m, x: x[x.shape[0] // 2 :],
    "item": lambda m, x: x[x.shape[0] - 1],
    "scaled": lambda m, x: x / x.shape[0],
    "weighted": lambda m, x: x * (1 / x.shape[0]) + x.size,
    "variance": lambda m, x: m.sum(x * x) / (x.shape[0] - 1),
    "root": lambda m, x: x * x.shape[0] ** -0.5,
    "where": lambda m, x: m.where(x.shape[0] > 3, x, -x),
    "compared": lambda m, x: m.where(x > x.shape[0] - 2, x, -x),
    "maximum": lambda m, x: m.maximum(x, x.shape[0]),
    "ufunc": lambda m, x: np.sqrt(x.shape[0]) * x,
    "array on the left": lambda m, x: np.array([1.0, 2.0]) * x.shape[0],
}


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "int8"])
@pytest.mark.parametrize("name", SYMBOLIC)
def test_operations_take_lengths(name, dtype):
    """With the values, shapes and dtypes of NumPy, from one graph."""
    program = SYMBOLIC[name]
    f = nbta.function(lambda x: program(nbta, x), compiled=False)
    fast = nbta.function(lambda x: program(nbta, x), compiled=True)
    for n in (2, 3, 5, 7):
        x = np.arange(1, n + 1).astype(dtype)
        expected = program(np, x)
        with in_python():
            results = [f(x), fast(x)]
        for found in results:
            assert found.dtype == expected.dtype
            np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert f.traces == 1 or dtype == "int8"


def test_arrays_and_iteration_counts_take_lengths():
    def running(x):
        n = x.shape[0]
        ta = nbta.TensorArray("float64", size=n, element_shape=())
        ta = nbta.while_loop(
            lambda i, ta: i < n, lambda i, ta: (i + 1, ta.write(i, x[i] * n)), (0, ta)
        )[1]
        steps = nbta.scan(lambda c, _: (c + n, c), 0, None, length=x.shape[0])[1]
        picked = nbta.cond(n > 3, lambda: n, lambda: 0.5)
        return ta.stack(), steps, picked

    f = nbta.function(running)
    for n in (2, 3, 5, 7):
        x = np.arange(1.0, n + 1)
        stacked, steps, picked = f(x)
        np.testing.assert_array_equal(stacked, x * n)
        np.testing.assert_array_equal(steps, np.arange(n) * n)
        assert picked == (n if n > 3 else 0.5)
    assert f.traces == 1


def test_a_length_that_only_the_run_tells_is_refused_by_the_line():
    def grow(x):
        def body(i, y):
            if y.shape[0] == 3:  # the line that is named
                y = y * 2.0
            return i + 1, nbta.concatenate([y, x])

        return nbta.while_loop(lambda i, y: i < 2, body, (0, x))[1]

    with pytest.raises(nbta.InvalidArgumentError, match=r"truth value.*nbta.cond") as caught:
        nbta.function(grow, convert=False)(np.ones(3))
    assert caught.value.reason == "symbolic"
    line = grow.__code__.co_firstlineno + 2
    assert f"{__file__}:{line}: " in str(caught.value)


def test_what_users_catch_does_not_hide_that_a_length_was_asked_for():
    def guarded(x):
        try:
            n = int(x.shape[0])
        except:  # noqa: E722
            n = 100
        return nbta.sum(x) * n

    f = nbta.function(guarded)
    assert [f(np.ones(n)) for n in (2, 3, 2)] == [4.0, 9.0, 4.0]


def test_only_the_axes_that_python_looks_at_make_graphs():
    def f(x, y):
        return nbta.sum(x) * (2.0 if x.shape[1] == 3 else 1.0) + nbta.sum(y)

    traced = nbta.function(f)
    for rows in (2, 4):
        for columns in (3, 5):
            for others in (2, 6):
                x, y = np.ones((rows, columns)), np.ones(others)
                assert traced(x, y) == x.sum() * (2 if columns == 3 else 1) + others
    assert traced.traces == 2


def test_graphs_for_many_lengths_warn_once_with_the_line():
    f = nbta.function(lambda x: nbta.sum(x) * int(str(x.shape[0])))
    line = f.__wrapped__.__code__.co_firstlineno
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for n in range(2, 22):
            assert f(np.ones(n)) == n * n
    assert len(caught) == 1
    for word in ("lambda", "args[0]", f"{__file__}:{line}", "nbta.cond"):
        assert word in str(caught[0].message)
    assert (caught[0].category, caught[0].filename) == (nbta.PerformanceWarning, __file__)


def test_compiled_functions_for_lengths_are_not_mixed_up():
    """Machine code, called in the short way, for lengths in turns."""
    f = nbta.function(lambda x: nbta.sum(x) if x.shape[-1] == 3 else -nbta.sum(x), compiled=True)
    g = nbta.function(lambda x: nbta.sum(x) * (1 / x.shape[0]), compiled=True)
    for n in (3, 2, 3, 4, 2, 3, 4, 4):
        x = np.arange(1.0, n + 1)
        assert f(x) == (x.sum() if n == 3 else -x.sum())
        assert g(x) == pytest.approx(x.mean())
    with pytest.raises(ZeroDivisionError):
        g(np.zeros(0))


def test_batches_of_items_of_other_lengths():
    def loss(w, x):
        return w * nbta.sum(x) if x.shape[0] == 2 else -w * nbta.sum(x)

    items = [np.ones(n) for n in (2, 3, 2, 5, 3, 2)]
    value, slope = nbta.value_and_grad(loss, batch_axis=0)(1.5, items)
    expected = sum(len(x) if len(x) == 2 else -len(x) for x in items)
    assert (value, slope) == (1.5 * expected, expected)
    rows = np.ones((4, 2))
    assert nbta.value_and_grad(loss, batch_axis=0)(1.5, rows) == (12.0, 8.0)


def test_functions_in_functions_ask_the_outer_one():
    inner = nbta.function(lambda x: nbta.sum(x) if x.shape[0] == 3 else nbta.sum(x) * 0)
    outer = nbta.function(lambda x: inner(x) + inner(x[1:]))
    assert [outer(np.ones(n)) for n in (2, 3, 4)] == [0.0, 3.0, 3.0]
    grad = nbta.grad(nbta.grad(lambda x: x**3 * len(nbta.reshape(x, (-1,)))))
    assert grad(2.0) == 12.0
