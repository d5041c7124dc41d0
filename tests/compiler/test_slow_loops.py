"""Compiled loops that call Python in each iteration: who is warned, how often, and of what."""

import threading
import warnings
from pathlib import Path

import numpy as np
import pytest

import nbta
from nbta.api import tracing
from nbta.compiler import executable
from nbta.compiler.explain import warn_of
from nbta.execution import runner
from nbta.frontend import recursion

X = np.linspace(0.1, 0.9, 6)
ROWS = X.reshape(2, 3)


def nested(w, rows):
    """A loop in a loop, which reads one of two arrays that the outer iteration makes of a row."""

    def inner(h, row):
        pieces = pieces_of(row * h)
        advance = lambda h, k: step(w, h, nbta.sum(pieces.read(k)))  # noqa: E731
        return nbta.foldl(advance, np.arange(2), h), None  # the inner one

    return nbta.scan(inner, 0.1, rows)[0]  # the outer one


def pieces_of(row):
    made = lambda row: nbta.TensorArray("float64", 2).write(0, row).write(1, row * row)  # noqa: E731
    return nbta.cond(row[0] > 0.2, lambda: made(row), lambda: made(-row))


def line_of(words):
    """The number of the line that has a comment."""
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    return next(k for k, line in enumerate(lines, 1) if line.endswith(f"# {words}"))


def step(w, h, x):
    return nbta.tanh(w * h + x)


def flat(w, xs):
    return nbta.scan(lambda h, x: (step(w, h, x), None), 0.1, xs)[0]


def told(function, *args):
    """The warnings that a call gives."""
    with warnings.catch_warnings(record=True, action="always") as found:
        function(*args)
    return [one for one in found if one.category is nbta.PerformanceWarning]


def notes(f, *args):
    """The warnings that the code of a function would give; nothing is compiled."""
    traced = f if isinstance(f, nbta.api.tracing.Function) else nbta.function(f, compiled=False)
    traced(*args)
    return [str(one.message) for one in told(warn_of, traced._compiled_program().generated)]


def test_it_names_the_loops_with_their_lines_and_the_cure():
    (one,) = told(nbta.grad(nested, compiled=True), 0.5, ROWS)
    outer, inner = line_of("the outer one"), line_of("the inner one")
    assert (one.filename, one.lineno) == (__file__, outer)
    text = str(one.message)
    assert text.startswith(
        f"the loop 'scan' (test_slow_loops.py:{outer}), with 'scan/body/foldl' "
        f"(test_slow_loops.py:{inner}) in it, is compiled"
    )
    assert "TensorArrayReadV3 x" in text
    assert "append or write to it" in text
    assert issubclass(nbta.PerformanceWarning, UserWarning)


def test_the_operations_are_those_that_explain_lists():
    slope = nbta.grad(nested, compiled=True)
    (one,) = told(slope, 0.5, ROWS)
    _, listed = slope.explain().split("operations that run in Python:\n")
    assert listed.split("\n")[0].strip() in str(one.message)
    assert all(row.strip() in str(one.message) for row in listed.splitlines())


def test_once_for_a_program():
    slope = nbta.grad(nested, compiled=True)
    assert len(told(slope, 0.5, ROWS)) == 1
    assert told(slope, 0.5, ROWS) == told(slope, 0.7, np.ones((5, 4))) == []
    assert len(told(slope, 0.5, np.ones((1, 3)))) == 1  # another program


def test_two_nests_are_two_warnings():
    def both(w, rows):
        return nested(w, rows) + nested(w * w, rows)

    first, second = notes(nbta.grad(both), 0.5, ROWS)
    assert "'scan'" in first
    assert "'scan_1'" in second


def test_the_users_name_of_a_loop():
    def named(w, rows):
        def weeks(h, row):
            pieces = pieces_of(row * h)
            advance = lambda h, k: step(w, h, nbta.sum(pieces.read(k)))  # noqa: E731
            return nbta.foldl(advance, np.arange(2), h, name="days"), None

        return nbta.scan(weeks, 0.1, rows, name="weeks")[0]

    (text,) = notes(nbta.grad(named), 0.5, ROWS)
    assert text.startswith("the loop 'weeks' (")
    assert "with 'weeks/body/days' (" in text


def test_it_waits_until_it_is_compiled(monkeypatch):
    monkeypatch.setattr(runner.Runner.__init__, "__defaults__", (1e9,))
    slope = nbta.grad(nested)
    assert len(told(slope, 0.5, ROWS)) == 0  # operation by operation
    slope._last.runner._patience = 0.0
    assert [len(told(slope, 0.5, ROWS)) for _ in range(3)] == [1, 0, 0]


def test_users_filters_hold():
    slope = nbta.grad(nested, compiled=True)
    for options in ({}, {"module": __name__}, {"message": "the loop 'scan'"}):
        with warnings.catch_warnings(record=True, action="always") as found:
            warnings.filterwarnings("ignore", category=nbta.PerformanceWarning, **options)
            nbta.grad(nested, compiled=True)(0.5, ROWS)
        assert found == []
    with warnings.catch_warnings():
        warnings.simplefilter("error", nbta.PerformanceWarning)
        for _ in range(2):  # not lost where it was an error
            with pytest.raises(nbta.PerformanceWarning, match="'scan'"):
                slope(0.5, ROWS)
    expected = nbta.grad(nested, compiled=False)(0.5, ROWS)
    assert slope(0.5, ROWS) == pytest.approx(expected, rel=1e-12)


def test_threads_that_call_it_together_warn_once():
    slope = nbta.grad(nested, compiled=True)
    slope.bound(((0.5, ROWS), {}))  # traced once
    start = threading.Barrier(4)

    def work():
        start.wait()
        slope(0.5, ROWS)

    def together():
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    assert len(told(together)) == 1


def test_a_batch_warns_once():
    both = nbta.value_and_grad(nested, batch_axis=0, compiled=True)
    assert len(told(both, 0.5, [ROWS, ROWS, np.ones((4, 3)), ROWS])) == 1
    assert told(both, 0.5, [ROWS, ROWS]) == []


@pytest.mark.slow
def test_rows_on_threads_warn_once():
    def total(w, items):
        rows = nbta.map_fn(lambda one: nested(w, one), items, parallel_iterations=2)
        return nbta.sum(rows)

    slope = nbta.grad(total, compiled=True)
    assert len(told(slope, 0.5, np.stack([ROWS] * 5))) == 1
    assert told(slope, 0.5, np.stack([ROWS] * 7)) == []


@pytest.mark.slow
def test_a_profile_warns_once():
    slope = nbta.grad(nested, compiled=True)
    assert len(told(slope.profile, 0.5, ROWS)) == 1


# What each kind of program is told.


def folded(fold, **options):
    def loop(w, xs):
        return fold(lambda h, x: step(w, h, x), xs, 0.1, **options)

    return loop


def mapped(w, xs):
    return nbta.sum(nbta.map_fn(lambda x: nbta.tanh(w * x), xs))


def grown(w, xs):
    ta = nbta.TensorArray("float64", dynamic_size=True, element_shape=())
    _, ta = nbta.while_loop(
        lambda h, ta: h < 2.0, lambda h, ta: (h + w, ta.append(h * xs[0])), (0.0, ta)
    )
    return nbta.sum(ta.stack())


def around_and_after(w, xs):
    """Calls of Python, which are outside of the loop."""
    found = nbta.map_fn(lambda x: w * x, xs, parallel_iterations=2)
    return nbta.sum(found) + flat(w, xs)


FLAT = {
    "scan": flat,
    "foldl": folded(nbta.foldl),
    "foldr": folded(nbta.foldr),
    "map_fn": mapped,
    "while_loop": grown,
    "Python outside of loops": around_and_after,
}


@pytest.mark.slow_but_every(6)
@pytest.mark.parametrize("kind", FLAT)
@pytest.mark.parametrize("order", [0, 1, 2])
def test_flat_loops_say_nothing(kind, order):
    f = FLAT[kind]
    for _ in range(order):
        f = nbta.grad(f)
    assert notes(f, 0.5, X) == []


@pytest.mark.slow_but_every(4)
@pytest.mark.parametrize("kind", ["scan", "foldl", "foldr", "map_fn"])
@pytest.mark.parametrize("order", [1, 2])
def test_nested_loops_say_nothing(kind, order):
    def f(w, rows):
        return nbta.foldl(lambda h, row: h + FLAT[kind](w * h, row), rows, 0.5, name="outer")

    for _ in range(order):
        f = nbta.grad(f)
    assert notes(f, 0.5, ROWS) == []


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("checkpoint", [2, "sqrt", "online"])
@pytest.mark.parametrize("fold", [nbta.foldl, nbta.foldr])
def test_checkpoints(fold, checkpoint):
    loop = folded(fold, checkpoint=checkpoint)
    assert notes(loop, 0.5, X) == []
    assert notes(nbta.grad(loop), 0.5, X) == []
    assert notes(nbta.grad(nbta.grad(loop)), 0.5, X) == []
    assert notes(nbta.grad(nbta.grad(nbta.grad(loop))), 0.5, X) == []


def array_in_an_iteration(w, xs):
    """One of two, which branches make."""

    def iteration(h, x):
        made = lambda y: nbta.TensorArray("float64", 2).write(0, h).write(1, y)  # noqa: E731
        ta = nbta.cond(x > 0.4, lambda: made(w * x), lambda: made(x * w))
        return ta.read(0) + ta.read(1), None

    return nbta.scan(iteration, 0.1, xs)[0]


def stacked_in_an_iteration(w, xs):
    """The cure of the above."""
    return nbta.scan(lambda h, x: (nbta.sum(nbta.stack([h, w * x])), None), 0.1, xs)[0]


def threads_in_an_iteration(w, xs):
    def iteration(h, x):
        return h + nbta.sum(nbta.map_fn(lambda v: v * w, xs, parallel_iterations=2)), None

    return nbta.scan(iteration, 0.1, xs)[0]


@nbta.custom_gradient
def in_python(x):
    return np.sin(x)


@in_python.backward
def _(dy, x, y):
    return dy * np.cos(x)


def users_python(w, xs):
    return nbta.scan(lambda h, x: (in_python(w * h + x), None), 0.1, xs)[0]


def in_half_precision(w, xs):
    w, xs = nbta.cast(w, "float16"), nbta.cast(xs, "float16")
    return nbta.scan(lambda h, x: (step(w, h, x), None), np.float16(0.1), xs)[0]


def handed_out(w, xs):
    ta = nbta.TensorArray("float64", size=nbta.shape(xs)[0], element_shape=())
    more, iteration = (
        lambda i, ta: i < nbta.shape(xs)[0],
        lambda i, ta: (i + 1, ta.write(i, w * xs[i])),
    )
    return nbta.while_loop(more, iteration, (0, ta))[1]


@pytest.mark.slow_but_every(2)
@pytest.mark.parametrize(
    ("f", "cure"),
    [
        (nbta.grad(array_in_an_iteration), "Each iteration makes an array that"),
        (threads_in_an_iteration, "leave parallel_iterations= out"),
        (in_half_precision, "compute with float16; cast"),
        (users_python, "give it one that @njit compiled"),
        (handed_out, "'TensorArrayV3' is kept by Python, as its handle is a result"),
    ],
)
def test_causes_and_cures(f, cure):
    (text,) = notes(f, 0.5, X)
    assert cure in text


def test_the_cure_of_an_array_in_an_iteration():
    assert notes(nbta.grad(nbta.grad(stacked_in_an_iteration)), 0.5, X) == []
    expected = nbta.grad(array_in_an_iteration)(0.5, X)
    assert nbta.grad(stacked_in_an_iteration)(0.5, X) == pytest.approx(expected)


def test_a_bar_is_not_an_operation():
    pytest.importorskip("tqdm")
    shown = nbta.function(
        lambda x: nbta.while_loop(lambda i: i < 3, lambda i: i + 1, x, progress=True),
        compiled=False,
    )
    assert notes(shown, 0) == []
    assert "Python" not in shown.explain()


# Copies of whole arrays, large buffers, and programs that are written out.


def written_twice(x):
    m = np.zeros(len(x))
    for t in range(len(x)):
        if x[t] > 0:
            m[t] = 0.5 * x[t]
            m[t] *= np.exp(-m[len(x) - 1 - t])  # changes it again
    return np.sum(m**2)


def test_copies_of_large_arrays_are_told_at_their_line():
    f = nbta.value_and_grad(written_twice, compiled=True)
    assert told(f, np.linspace(-1, 1, 40)) == []
    f = nbta.value_and_grad(written_twice, compiled=True)
    found = told(f, np.linspace(-1, 1, 800))
    assert line_of("changes it again") in {one.lineno for one in found}
    assert all("copies a whole array of 6,400 bytes" in str(one.message) for one in found)
    assert told(f, np.linspace(-1, 1, 800)) == []


def beside_a_loop(x, count):
    m, total = np.zeros(len(x)), 0.0
    for _ in range(20):
        old = m.copy()
        for j in range(count):
            m[j] = 0.5 * x[j] + old[j - 1] * np.cos(m[j])
        total = total + m[0]
    return total + np.sum(m)


def beside_a_short_loop(x):
    m = np.zeros(len(x))
    for t in range(len(x)):
        for j in range(5):
            m[j] += 0.1 * np.sin(x[t])
        if x[t] > 0:
            m[t] = 0.5 * x[t]
            m[t] *= np.exp(-m[len(x) - 1 - t])  # changes it beside a short loop
    return np.sum(m**2)


def beside_a_sum(x):
    m = np.zeros(len(x))
    for i in range(20):
        old = m.copy()
        m[i] = np.sum(np.sin(old * x))
        m[0] = old[i] + old[1]
    return np.sum(m)


def test_copies_are_weighed_against_the_rest_of_the_iteration():
    x = np.linspace(-1, 1, 800)
    for f in (lambda x: beside_a_loop(x, len(x)), lambda x: beside_a_loop(x, 800), beside_a_sum):
        g = nbta.value_and_grad(f, compiled=True)
        assert told(g, x) == []
        assert "copies of whole tensors in loops" in g.explain()
    found = told(nbta.value_and_grad(beside_a_short_loop, compiled=True), x)
    assert line_of("changes it beside a short loop") in {one.lineno for one in found}


def test_large_buffers_are_told_once(monkeypatch):
    def relaxed(x):
        state = np.zeros(2000)
        for _ in range(1000):
            state = np.tanh(state + x)
        return np.sum(state)

    monkeypatch.setattr(executable, "NOTED_BUFFERS", 1 << 20)
    f = nbta.grad(relaxed, compiled=True)
    (found,) = told(f, 0.1)
    assert "MB in buffers, for arguments of 0.0 MB" in str(found.message)
    assert told(f, 0.1) == []


def test_recursion_that_is_written_out_is_told(monkeypatch):
    def tree(x, depth):
        if depth == 0:
            return np.sin(x)  # the leaves
        return tree(x * 1.1, depth - 1) + tree(x * 0.9, depth - 1)

    def in_branches(x, depth):
        if depth == 0 or x > 9.0:
            return np.sin(x)  # the leaves
        return in_branches(x * 1.1, depth - 1) + in_branches(x * 0.9, depth - 1)

    monkeypatch.setattr(tracing, "WRITTEN_OUT", 200)
    monkeypatch.setattr(recursion, "WRITTEN_OUT", 200)
    assert told(nbta.grad(lambda x: tree(x, 4), compiled=False), 0.3) == []
    assert told(nbta.grad(lambda x: in_branches(x, 2), compiled=False), 0.3) == []
    (found,) = told(nbta.grad(lambda x: in_branches(x, 6), compiled=False), 0.3)
    assert "in_branches (test_slow_loops.py:" in str(found.message)
    assert "calls itself, 7 calls deep so far" in str(found.message)
    assert found.lineno == in_branches.__code__.co_firstlineno + 3
    (found,) = told(nbta.grad(lambda x: tree(x, 8), compiled=False), 0.3)
    assert "operations, " in str(found.message)
    assert "tree (test_slow_loops.py:" in str(found.message)
    monkeypatch.setattr(recursion, "MOST", 400)
    words = (
        r"test_slow_loops.py:\d+: .*tree .*calls itself, .* more than 400 operations. Write a loop"
    )
    with pytest.raises(nbta.NbtaError, match=words):
        nbta.grad(lambda x: tree(x, 8), compiled=False)(0.3)
