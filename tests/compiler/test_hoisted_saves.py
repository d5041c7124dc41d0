"""Tapes of what loops between do not change, filled once; loops that run short and often."""

import random

import numpy as np
import pytest
from compact import compact_source
from loop_programs import ranged
from test_in_place import section

import nbta
from nbta.compiler import emitter, hoisted_saves, linearised_tapes
from nbta.testing import check_grads


def forward(start, moves, steps):
    """A vector times a matrix, step by step, into another vector."""

    def step(_, now, other):
        def to(j, other):
            arrived = ranged(moves.shape[0], lambda i, s: s + now[i] * moves[i, j], 0.0)
            return nbta.set_item(other, j, nbta.tanh(arrived))

        return ranged(moves.shape[1], to, other), now

    return nbta.sum(ranged(steps.shape[0], step, start, nbta.zeros_like(start))[0] ** 2)


def in_place(start, moves, steps):
    """The same, but for items that the loops after change."""

    def step(_, now, other):
        def to(j, other):
            arrived = ranged(moves.shape[0], lambda i, s: s + now[i] * moves[i, j], 0.0)
            return nbta.set_item(other, j, arrived)

        other = ranged(moves.shape[1], to, other)
        new = lambda j, now: nbta.set_item(now, j, nbta.tanh(other[j] + 0.1 * now[j]))  # noqa: E731
        return ranged(moves.shape[1], new, now), other

    return nbta.sum(ranged(steps.shape[0], step, start, nbta.zeros_like(start))[0] ** 2)


def arguments(n, steps, dtype="float64"):
    rng = np.random.default_rng(n)
    draw = [rng.uniform(-1, 1, shape) for shape in ((n,), (n, n))]
    if dtype.startswith("complex"):
        draw = [x + 1j * rng.uniform(-1, 1, x.shape) for x in draw]
    return *(x.astype(dtype) for x in draw), np.zeros(steps)


def both(f, *args, places=(0, 1)):
    """Compiled and one by one."""
    fast = nbta.value_and_grad(f, places, compiled=True)
    return fast, fast(*args), nbta.value_and_grad(f, places, compiled=False)(*args)


def same(found, expected, rtol=1e-12):
    np.testing.assert_allclose(found[0], expected[0], rtol=rtol)
    for one, other in zip(found[1], expected[1], strict=True):
        np.testing.assert_allclose(one, other, rtol=rtol, atol=rtol)


@pytest.mark.smoke_every(2)
@pytest.mark.parametrize("f", [forward, in_place])
def test_items_of_a_vector_are_kept_once_for_all_that_read_them(f):
    args = arguments(5, 7)
    fast, found, expected = both(f, *args)
    same(found, expected)
    assert "/once" in compact_source(fast)
    assert section(fast.explain(), "copies of whole tensors in loops") == []
    assert section(fast.explain(), "operations that run in Python") == []
    for n, steps in [(0, 3), (1, 0), (1, 1), (2, 5), (4, 1)]:
        args = arguments(n, steps)
        same(fast(*args), both(f, *args)[2])


@pytest.mark.slow_but_every(2)
@pytest.mark.parametrize("f", [forward, in_place])
def test_second_order(f):
    *args, steps = arguments(3, 2)
    check_grads(lambda start, moves: f(start, moves, steps), args, order=2)


@pytest.mark.slow_but_every(2)
@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_other_dtypes(dtype):
    def real(start, moves, steps):
        def step(_, now, other):
            def to(j, other):
                zero = nbta.zeros((), dtype)
                arrived = ranged(moves.shape[0], lambda i, s: s + now[i] * moves[i, j], zero)
                return nbta.set_item(other, j, arrived)

            return ranged(moves.shape[1], to, other), now

        last = ranged(steps.shape[0], step, start, nbta.zeros_like(start))[0]
        return nbta.sum(nbta.abs(last))

    fast, found, expected = both(real, *arguments(4, 3, dtype))
    same(found, expected, 1e-5 if dtype == "float32" else 1e-12)
    assert "/once" in compact_source(fast)


@pytest.mark.smoke
def test_what_no_iteration_reads_is_not_read():
    """Where the loop between runs no iteration, nobody asks for items that are not there."""

    def f(x, m, steps):
        def step(t, s, x):
            def row(j, s):
                return ranged(m.shape[0], lambda i, s: s + nbta.sin(s * x[i]) * m[i, j], s)

            s = ranged(m.shape[1], row, s)
            return s, x * 0.5

        return ranged(steps.shape[0], step, 0.3, x)[0]

    fast = nbta.value_and_grad(f, (0, 1), compiled=True)
    rng = np.random.default_rng(0)
    for rows, columns in [(4, 3), (3, 3), (4, 0)]:
        args = rng.normal(size=rows), rng.normal(size=(rows, columns)), np.zeros(3)
        same(fast(*args), both(f, *args)[2])
    assert "/once" in compact_source(fast)
    fallbacks = fast._last.runner.fallbacks
    short = rng.normal(size=2), rng.normal(size=(4, 0)), np.zeros(3)
    same(fast(*short), both(f, *short)[2])
    assert fast._last.runner.fallbacks == fallbacks
    with pytest.raises(nbta.errors.InvalidArgumentError, match=r"index"):
        fast(short[0], rng.normal(size=(4, 2)), np.zeros(3))


def changed_between(start, moves, steps):
    """The loop between changes the items."""

    def step(_, s, now):
        def to(j, s, now):
            s = ranged(moves.shape[0], lambda i, s: s + nbta.sin(now[i]) * now[i] * moves[i, j], s)
            return s, nbta.set_item(now, j, 0.5 * now[j] + s)

        return ranged(moves.shape[1], to, s, now)

    return ranged(steps.shape[0], step, 0.0, start)[0]


def of_another_item(start, moves, steps):
    """Which is another one for each iteration of the loop between."""

    def step(_, s, now):
        def to(j, s):
            return ranged(j + 1, lambda i, s: s + now[j - i] * moves[i, j] * s, s)

        return ranged(moves.shape[1], to, s), now * 0.5

    return ranged(steps.shape[0], step, 1.0, start)[0]


@pytest.mark.smoke
@pytest.mark.parametrize("f", [changed_between, of_another_item])
def test_what_changes_is_kept_each_time(f):
    fast, found, expected = both(f, *arguments(4, 3))
    same(found, expected)
    assert "/once" not in compact_source(fast)


def of_two_items(start, moves, steps):
    """One of the iteration of the loop between, one of that of the innermost."""

    def step(_, s, now):
        def to(j, s):
            one = lambda i, s: s + nbta.sin(now[i] * s) * nbta.tanh(now[j] * s) * moves[i, j]  # noqa: E731
            return ranged(moves.shape[0], one, 0.5 * s)

        return ranged(moves.shape[1], to, s), now * 0.5 + s

    return ranged(steps.shape[0], step, 1.0, start)[0]


@pytest.mark.smoke
def test_items_of_the_loop_between_are_not_those_of_the_innermost():
    fast, found, expected = both(of_two_items, *arguments(4, 3))
    same(found, expected)
    assert "/once" in compact_source(fast)


# Random nests.


class Drawn:
    """A nest of three loops, one of which may change what the innermost reads."""

    def __init__(self, seed):
        pick = random.Random(seed).choice
        self.index = pick(["i", "i", "n-1-i", "i+1", "2*i", "j", "last"])
        self.value = pick(["item", "item", "product", "outer", "sum", "two"])
        self.count = pick(["all", "all", "half", "j"])
        self.between = pick(["nothing", "nothing", "nothing", "a branch", "changes"])
        self.after = pick(["scaled", "in place", "swapped"])
        self.use = pick([nbta.sin, nbta.tanh, lambda v: v * v])
        self.rows, self.columns, self.steps = (random.Random(-seed).randrange(5) for _ in range(3))

    def __call__(self, x, m, w, steps):
        def step(t, s, x, y):
            s, x, y = ranged(m.shape[1], self.column(m, w, t), s, x, y)
            if self.after == "swapped":
                return s, nbta.tanh(y), x
            if self.after == "scaled":
                return s, x * 0.5 + 0.1 * s, y
            half = lambda k, x: nbta.set_item(x, k, nbta.cos(x[k]) + 0.1 * s)  # noqa: E731
            return s, ranged(x.shape[0], half, x), y

        s, x, y = ranged(steps.shape[0], step, 0.5, x, nbta.zeros_like(x))
        return s + nbta.sum(x * y) + nbta.sum(x)

    def column(self, m, w, t):
        def column(j, s, x, y):
            def more(s):
                return ranged(self.iterations(m, j), lambda i, s: self.item(i, j, s, x, m, w, t), s)

            branch = self.between == "a branch"
            s = nbta.cond(w[0] * s < 2.0, lambda: more(s), lambda: 0.5 * s) if branch else more(s)
            if self.between == "changes":
                x = nbta.set_item(x, j, x[j] * 0.9)
            return 0.5 * s, x, nbta.set_item(y, j, s)

        return column

    def iterations(self, m, j):
        return {"all": m.shape[0], "half": (m.shape[0] + 1) // 2, "j": j}[self.count]

    def item(self, i, j, s, x, m, w, t):
        n = m.shape[0]
        places = {"i": i, "n-1-i": n - 1 - i, "i+1": i + 1, "2*i": 2 * i, "j": j, "last": -1}
        found = x[places[self.index]]
        value = {
            "item": lambda: found,
            "product": lambda: found * w[t],
            "outer": lambda: found * s,
            "sum": lambda: found + nbta.exp(x[0] * 0.1),
            "two": lambda: found * x[i],
        }[self.value]()
        return s + self.use(value) * m[i, j] * nbta.cos(0.1 * s)

    def arguments(self):
        """There is an item for each index."""
        rng = np.random.default_rng(self.rows)
        n, columns = self.rows, self.columns
        shapes = (2 * max(n, columns) + 2,), (max(n, columns), columns), (self.steps + 1,)
        return *(rng.uniform(-1, 1, shape) for shape in shapes), np.zeros(self.steps)


def compared(seed, monkeypatch):
    """Whether a random nest has a tape that is kept once; it is right in any case."""
    drawn, met = Drawn(seed), []

    def counted(nested, counts):
        found = hoisted_saves.hoisted(nested, counts)
        met.append(found is not nested)
        return found

    args = drawn.arguments()
    with monkeypatch.context() as patched:
        patched.setattr(linearised_tapes, "hoisted", counted)
        _, found, expected = both(drawn, *args, places=(0, 1, 2))
    with monkeypatch.context() as patched:
        patched.setattr(linearised_tapes, "hoisted", lambda nested, _: nested)
        patched.setattr(emitter, "is_short_counted_loop", lambda *_: False)
        _, without, _ = both(drawn, *args, places=(0, 1, 2))
    same(found, expected, 1e-10)
    same(found, without, 1e-10)
    return any(met)


def floor(count, wanted, first, monkeypatch):
    met = sum(compared(seed, monkeypatch) for seed in range(first, first + count))
    assert met >= wanted, met


def test_random_nests(monkeypatch):
    floor(5, 1, 0, monkeypatch)


@pytest.mark.slow
def test_more_random_nests(monkeypatch):
    floor(60, 15, 100, monkeypatch)


def test_a_nest_in_a_branch_without_loops_around():
    def f(x, c):
        s = 0.0
        if c > 0.5:
            for j in range(len(x) + 4):
                for i in range(len(x) + 4):
                    s += np.sin(x[i % 3]) * np.exp(x[j % 3] * c)
        return s * s

    args = np.linspace(0.1, 0.4, 5), 0.7
    compiled, reference = (nbta.value_and_grad(f, (0, 1), compiled=k) for k in (True, False))
    for c in (0.7, 0.3):
        value, slopes = compiled(args[0], c)
        same, expected = reference(args[0], c)
        np.testing.assert_allclose(value, same, rtol=1e-12)
        for one, other in zip(slopes, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12)
    assert "once" in compiled.source
    check_grads(f, args, order=2)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(300, 312))
def test_derivatives_of_random_nests(seed):
    drawn = Drawn(seed)
    *args, steps = drawn.arguments()
    check_grads(lambda x, m, w: drawn(x, m, w, steps), args, order=2)


# Loops that run short and often.


def is_divided(f, *args):
    """By loop whether code goes along it in stretches; the innermost ones last."""
    source = nbta.value_and_grad(f, compiled=True)
    source(*args)
    lines = [line.strip() for line in source.source.splitlines()]
    return ["min(" in line for line in lines if line.startswith("for _ in range(")]


def test_loops_along_axes_in_loops_are_not_divided():
    def f(x):
        row = lambda i, s: ranged(x.shape[0], lambda j, s: s + nbta.sin(s * x[j]), s)  # noqa: E731
        return ranged(x.shape[0], row, 0.5)

    assert is_divided(f, np.linspace(0.0, 1.0, 5)) == [True, False, True, False]


def test_loops_that_may_run_for_long_are():
    def of_the_run(x):
        n = nbta.cast(x[0], "int64")
        row = lambda i, s: ranged(n, lambda j, s: s + nbta.sin(s * x[0]), s)  # noqa: E731
        return ranged(x.shape[0], row, 0.5)

    def of_rows(x):
        row = lambda i, x: ranged(x.shape[0], lambda j, x: nbta.sin(x), x)  # noqa: E731
        return nbta.sum(ranged(x.shape[0], row, x))

    def of_other_items(x):
        """LLVM is to look at what each iteration of the loop around reads and changes by itself."""

        def row(i, x):
            return ranged(i, lambda j, x: nbta.add_item(x, i, x[i] * x[j]), x)

        return nbta.sum(ranged(x.shape[0], row, x))

    for f in (of_the_run, of_rows, of_other_items):
        assert all(is_divided(f, np.linspace(2.0, 3.0, 5)))


def test_signals_are_looked_for_before_long_ones():
    def f(x):
        row = lambda i, s: ranged(x.shape[0], lambda j, s: s + nbta.sin(s * x[j]), s)  # noqa: E731
        return ranged(3, row, 0.5)

    source = nbta.function(f, compiled=True)
    x = np.linspace(0.0, 1.0, 5000)
    np.testing.assert_allclose(source(x), nbta.function(f, compiled=False)(x), rtol=1e-12)
    assert f"> {emitter.UNWATCHED_TURNS}:\n" in source.source


def test_a_value_that_is_an_operand_many_times_over_is_made_once():
    """Each squaring needs the last one twice, so that a walk through all ways would not end."""

    def f(x):
        def row(i, s):
            def item(j, s):
                power = x[j]
                for _ in range(40):
                    power = power * power
                return s + nbta.sin(power) * x[i]

            return ranged(x.shape[0], item, s)

        return ranged(3, lambda t, s: ranged(x.shape[0], row, s), 0.0)

    slope = nbta.value_and_grad(f, compiled=True)
    x = np.array([0.5, 1.0, 1.0 + 1e-13])
    value, found = slope(x)
    same, expected = nbta.value_and_grad(f, compiled=False)(x)
    np.testing.assert_allclose(value, same, rtol=1e-12)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
