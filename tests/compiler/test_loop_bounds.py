"""What code knows of loops: how many iterations run, and which indices are within their axes.

Where it knows too much, it runs other iterations, or reads and writes past the end. So each program
runs in the reference executor too, which asks each time, with the same result or the same error.
"""

import random

import numpy as np
import pytest
from compact import compact_source
from compiled_pairs import compare
from fuzz.ways import in_python, outcome
from many import each

import nbta

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # numbers that wrap are meant


def held(f, *calls, make=nbta.function):
    """Both executors give the same for each list of arguments, or fail for the same reason."""
    slow, fast = make(f, compiled=False), make(f, compiled=True)
    failed = 0
    for args in calls:
        expected = outcome(slow, args)
        with in_python():
            found = outcome(fast, args)
        if isinstance(expected, Exception) or isinstance(found, Exception):
            assert getattr(found, "reason", found) == getattr(expected, "reason", expected)
            failed += 1
        else:
            compare(found, expected)
    return failed


# Iterations.

INT = np.int64
W = nbta.while_loop


def counted(below, step=1, start=0):
    """A loop that sums its counter while ``below(i, n)``."""
    following = lambda i, s: (i + np.asarray(step)[()], s + i)  # noqa: E731
    return lambda n: W(lambda i, s: below(i, n), following, (np.asarray(start)[()], INT(0)))


def limited(n, m):
    following = lambda i, s: (i + 1, s + i)  # noqa: E731
    return W(lambda i, s: i < n, following, (INT(0), INT(0)), maximum_iterations=m)


ITERATIONS = {
    "below": (counted(lambda i, n: i < n), [7, 0, -3, 1023, 1024, 1025, 2049, -(2**63)]),
    "up to": (counted(lambda i, n: i <= n, 1, 5), [2, 4, 5, 9]),
    "two at a time": (counted(lambda i, n: i < n, 2), [7, 8, 1, 0]),
    "downwards": (counted(lambda i, n: i > n, -1, 5), [2, 5, 9, -2]),
    "downwards and equal": (counted(lambda i, n: i >= n, -1, 5), [2, 5, 6, 9]),
    "turned round": (counted(lambda i, n: n > i, 1, 5), [9, 5, 2]),
    "unequal": (counted(nbta.not_equal, 1, 5), [9, 5]),
    "a sum below": (counted(lambda i, n: i + 2 < n), [7, 2, 3, 1]),
    "below a product": (counted(lambda i, n: i < 2 * n - 1), [3, 1, 0]),
    "two conditions": (counted(lambda i, n: nbta.logical_and(i < n, i * i < 10)), [9, 2]),
    "a float below": (counted(lambda i, n: i < n), [2.5, -1.5, 3.0, np.nan]),
    "a float counts": (counted(lambda i, n: nbta.cast(i, "float64") * 0.5 < n), [3, 0]),
    "int32": (counted(lambda i, n: i < nbta.cast(n, "int32"), np.int32(1), np.int32(0)), [5, -5]),
    "unsigned": (counted(lambda i, n: i < n, np.uint8(1), np.uint8(3)), [5, 1, -5]),
    "a truth value": (counted(lambda i, n: i < n), [np.True_, np.False_]),
    "a limit that iterations lower": (
        lambda n: W(lambda i, n: i < n, lambda i, n: (i + 1, n - 1), (INT(0), n)), [7, -3],
    ),
    "a counter that not all iterations raise": (
        lambda n: W(
            lambda i, s: i < n,
            lambda i, s: (nbta.cond(s % 2 > 0, lambda: i + 1, lambda: i), s + 1),
            (INT(0), INT(0)),
        ), [3, 0],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ITERATIONS)
def test_iterations(name):
    f, numbers = ITERATIONS[name]
    calls = [
        (np.asarray(n, None if isinstance(n, float | np.bool_) else INT)[()],) for n in numbers
    ]
    for kind in {call[0].dtype for call in calls}:
        assert held(f, *[call for call in calls if call[0].dtype == kind]) == 0


def test_iterations_with_a_limit():
    rows = [(9, 3), (2, 7), (2, 0), (4, -1), (0, 5)]
    assert held(limited, *[(INT(n), INT(m)) for n, m in rows]) == 0
    assert held(lambda n: limited(n, 4), (INT(9),), (INT(2),), (INT(-2),)) == 0


# Indices.


def indices(r, names, n=2):
    """Some texts of indices: sums of counters and lengths, some of them cut to what there is."""
    found = []
    for _ in range(n):
        terms = [r.choice(["", "", "-", "2 * "]) + name for name in names if r.random() < 0.75]
        terms += [r.choice(["n", "-n", "k"])] if r.random() < 0.3 else []
        terms += [str(r.choice([0, 0, 1, -1, 2, -2]))]
        text = " + ".join(terms)
        cut = ["nbta.clip({0}, 0, n - 1)", "nbta.maximum({0}, 0)", "nbta.minimum({0}, n - 1)",
               "({0}) % n"]  # fmt: skip
        found.append(r.choice(["{0}", "{0}", names[-1], r.choice(names), *cut]).format(text))
    return found


CHANGES = [
    "a = nbta.set_item(a, {0}, 0.5 * nbta.sin(a[{1}]) + x[{1}])",
    "a = nbta.add_item(a, {0}, 0.3 * a[{1}])",
    "s = nbta.tanh(s * x[{0}] + a[{1}])",
    "a = nbta.add_item(a, np.s_[{0}:], 0.1)",
    "s = s + 0.1 * nbta.sum(a[{0}:{1}])",
    "a = nbta.cond(s > 0.1, lambda a=a: nbta.set_item(a, {0}, s), "
    "lambda a=a: nbta.add_item(a, {1}, x[{1}]))",
]


def program(seed):
    """The source of a nest of loops over one array."""
    r = random.Random(seed)
    names = "ijl"[: r.randint(1, 3)]

    def limit(around):
        near = [text.format(v) for v in around for text in ("{}", "{} + 1", "n - {}", "{} - 1")]
        return r.choice(["n", "n", "n", "n - 1", "n - 2", "n + 1", "3", "k", "n // 2", *near])

    def first(around):
        near = [text.format(v) for v in around for text in ("{}", "{} + 1")]
        return r.choice(["0", "0", "0", "1", "1", "2", "-1", "k", *near])

    def lines(level):
        if level == len(names):
            return [r.choice(CHANGES).format(*indices(r, names)) for _ in range(r.randint(1, 3))]
        v, around = names[level], names[:level]
        below = [f"    {line}" for line in lines(level + 1)]
        most = r.choice(["", "", "", ", maximum_iterations=4"])
        return [
            f"def body{level}({v}, a, s):", *below, f"    return {v} + 1, a, s",
            f"_, a, s = nbta.while_loop(lambda {v}, a, s: {v} {r.choice(['<', '<', '<='])} "
            f"{limit(around)}, body{level}, (nbta.cast({first(around)}, 'int64'), a, s){most})",
        ]  # fmt: skip

    whole = ["n, a, s = nbta.shape(x)[0], nbta.tanh(x), 0.5", *lines(0)]
    body = "".join(f"    {line}\n" for line in [*whole, "return nbta.sum(nbta.sin(a)) + s"])
    return f"def f(x, k):\n{body}"


def check(seed):
    """Values and gradients of one program for a few lengths; how many calls failed."""
    names = {"nbta": nbta, "np": np}
    exec(program(seed), names)
    calls = [(np.linspace(-0.9, 1.3, n), INT(k)) for n, k in ((5, 2), (3, 3), (2, -1), (7, 0))]
    return sum(held(names["f"], *calls, make=make) for make in (nbta.function, nbta.value_and_grad))


@pytest.mark.slow_but_every(4)
@pytest.mark.parametrize("first", range(0, 48, 6))
def test_random_indices_in_random_nests(first):
    each(range(first, first + 6), check)


def test_programs_fail_and_do_not():
    """Else nothing is known of indices that are out of range, or of those that are not."""
    found = [check(seed) for seed in range(6)]
    assert max(found) > 0 == min(found)


# Checks before loops.


def rows_of(m, n):
    """Sums over a matrix as far as ``n``, which nothing relates to its second axis."""

    def row(i, s):
        return W(lambda j, s: j < n, lambda j, s: (j + 1, s + m[i, j] * m[j, i]), (INT(0), s))[1]

    return W(lambda i, s: i < n, lambda i, s: (i + 1, row(i, s)), (INT(0), 0.0))[1]


def test_a_loop_is_told_whether_its_indices_stay_within():
    """Before its first iteration; in each of them it looks only where they do not, or may not."""
    m = np.arange(12.0).reshape(3, 4)
    calls = [(m, INT(n)) for n in (3, 0, -1, 4, 2**62)]
    calls += [(m.T.copy(), INT(n)) for n in (3, 4)]
    for make in (nbta.function, nbta.value_and_grad):
        assert held(rows_of, *calls, make=make) == 3
    fast = nbta.function(rows_of, compiled=True)
    fast(m, INT(3))
    assert "refuse(u" in compact_source(fast)


def test_a_last_index_that_wraps_around_is_not_trusted():
    """4 * 2**62 is 0 again: the iterations between leave the axis all the same."""

    def f(x, n):
        step = lambda i, s: (i + 1, s + x[i * 4])  # noqa: E731
        return W(lambda i, s: i < n, step, (INT(0), 0.0))[1]

    x = np.arange(6.0)
    assert held(f, (x, INT(2)), (x, INT(2**62 + 1)), (x, INT(2**62 + 2))) == 2


def test_an_axis_that_a_loop_makes_longer_is_looked_at_in_each_iteration():
    def f(x, n):
        def iteration(i, x, s):
            return i + 1, nbta.concatenate([x, x[:1]]), s + x[i * 2]

        shapes = (), (None,), ()
        return W(lambda i, *_: i < n, iteration, (INT(0), x, 0.0), shape_invariants=shapes)[2]

    assert held(f, (np.arange(3.0), INT(3)), (np.arange(3.0), INT(4))) == 1


# Ranges of longer steps.


@pytest.mark.parametrize("step", [2, 3, 7, -2, -5])
def test_ranges_of_longer_steps(step):
    def total(x, a, b):
        s, last = 0.0, -1
        for i in range(a, b, step):
            s += x[i] * (i + 1)
            last = i
        return s, last

    x = np.linspace(0.5, 1.5, 12)
    bounds = [(0, 12), (11, 0), (11, -1), (1, 11), (5, 5), (4, 3), (0, 1), (-3, 4), (0, 14)]
    calls = [(x, np.int64(a), np.int64(b)) for a, b in bounds]
    assert held(total, *calls) == sum(
        any(i >= len(x) for i in range(a, b, step)) for a, b in bounds
    )
    traced = nbta.function(total, compiled=True)
    for a, b in bounds[:-1]:
        compare(traced(x, np.int64(a), np.int64(b)), total(x, a, b))
    assert "while True" not in traced.source
