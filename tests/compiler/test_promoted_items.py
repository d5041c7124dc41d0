"""Items that stay in registers in parts of a loop, around the iteration that meets them."""

import random
import re
from types import SimpleNamespace

import numpy as np
import pytest
from compact import compact_source
from fuzz.ways import executed
from loop_programs import ranged

import nbta
from nbta.compiler import promoted_items
from nbta.compiler.induction import Linear
from nbta.testing import check_grads


def shortest_paths(w):
    """Floyd and Warshall's, in which rows and columns of the table meet."""
    (n, m), d = w.shape, w.copy()
    for k in range(n):
        for i in range(n):
            for j in range(m):
                d[i, j] = min(d[i, j], d[i, k] + d[k, j])
    return np.sum(d)


def shortest_paths_by_if(w):
    (n, m), d = w.shape, w.copy()
    for k in range(n):
        for i in range(n):
            for j in range(m):
                t = d[i, k] + d[k, j]
                if t < d[i, j]:
                    d[i, j] = t
    return np.sum(d)


def widest_paths(w):
    (n, m), d = w.shape, w.copy()
    for k in range(n):
        for i in range(n):
            for j in range(m - 1, -1, -1):
                d[i, j] = max(d[i, j], min(d[i, k], d[k, j]))
    return np.sum(d * w)


def by_columns(w):
    (n, m), d = w.shape, w.copy()
    for k in range(n):
        for j in range(n):
            for i in range(m):
                d[j, i] = 0.5 * d[j, i] + 0.1 * np.sin(d[k, i]) * d[j, k]
    return np.sum(d * d)


def jordan(w):
    """Elimination of all other rows, by rows in place."""
    (n, m), a = w.shape, w.copy()
    for k in range(n):
        for i in range(n):
            if i != k:
                for j in range(m):
                    a[i, j] = a[i, j] - a[i, k] * a[k, j] / (2.0 + a[k, k])
    return np.sum(a * a)


def first_item(w):
    x = w[0].copy()
    for t in range(3):
        for j in range(len(x)):
            x[j] = 0.9 * x[j] + x[0] * w[1, j] * x[t]
    return np.sum(x * x)


PROMOTED = [
    shortest_paths, shortest_paths_by_if, widest_paths, by_columns, jordan, first_item,
]  # fmt: skip


@pytest.mark.parametrize("f", PROMOTED)
def test_items_that_one_iteration_meets(f):
    ways = [nbta.value_and_grad(f, compiled=kind) for kind in (True, False)]
    for m in (5, 13, 12, 11):
        w = np.random.default_rng(m).uniform(0.1, 1.0, (3, m))
        (value, slopes), (expected, their) = (way(w) for way in ways)
        np.testing.assert_allclose([value, expected], f(w), rtol=1e-12)
        np.testing.assert_allclose(slopes, their, rtol=1e-11, atol=1e-13 * abs(their).max())
    check_grads(f, (np.random.default_rng(1).uniform(0.1, 1.0, (2, 13)),))


@pytest.mark.parametrize("f", [shortest_paths, shortest_paths_by_if, widest_paths])
def test_are_read_before_a_part_and_added_to_after_it(f):
    gradient = nbta.value_and_grad(f, compiled=True)
    gradient(np.random.default_rng(0).uniform(0.1, 1.0, (13, 13)))
    source = compact_source(gradient)
    assert re.search(r"^ +t\d+ = r0$", source, re.M)
    sums = re.findall(r"^ +(r\d+) = fast_add\(\1, ", source, re.M)
    assert sums
    for name in sums:  # not in each iteration
        assert re.search(rf"^ +(\w+\[.*\]) = float64\(\1 \+ {name}\)$", source, re.M)


def test_rows_longer_than_a_stretch():
    def f(x):
        y = x.copy()
        for k in (600, 2047):
            for j in range(len(x)):
                y[j] = min(y[j], y[k] + x[j])
        return np.sum(y * x)

    x = np.random.default_rng(0).uniform(-1.0, 1.0, 2100)
    found, expected = (nbta.value_and_grad(f, compiled=kind)(x) for kind in (True, False))
    np.testing.assert_allclose(found[0], f(x), rtol=1e-12)
    np.testing.assert_allclose(found[1], expected[1], rtol=1e-11)


def changed(step):
    """A loop in which ``step(x, y, k, j)`` does something with an item k of x, and others."""

    def f(x):
        y, s = x.copy(), 0.0
        for k in range(min(4, len(x))):
            for j in range(len(x)):
                s += step(y, x, k, j)
        return s + np.sum(y * x)

    return f


def read_after_its_change(y, x, k, j):
    y[j] = 0.5 * y[j] + x[j]
    return y[k] * x[j]


def changed_in_two_iterations(y, x, k, j):
    a = y[k] * x[j]
    y[j] = 0.5 * y[j] + a
    y[len(x) - 1 - j] = a
    return a


def every_other_item(y, x, k, j):
    a = y[k] * x[j]
    y[(2 * j) % 5] = a
    return a


def at_an_index_of_the_run(y, x, k, j):
    a = y[k] * x[j]
    y[int(10 * x[j]) % 5] = a
    return a


def set_always(y, x, k, j):
    a = y[k] * x[j]
    y[k] = 0.5 * a
    return a


def in_another_version(y, x, k, j):
    before = y[k]
    y[j] = 0.5 * y[j] + x[j]
    return before * y[k]


@pytest.mark.parametrize(
    ("step", "reads"),
    [
        (read_after_its_change, 0), (changed_in_two_iterations, 0), (every_other_item, 0),
        (at_an_index_of_the_run, 0), (set_always, 0), (in_another_version, 1),
    ],
)  # fmt: skip
def test_others_are_read_in_each_iteration(step, reads):
    f = changed(step)
    plain = nbta.function(f, compiled=True)
    x = np.random.default_rng(0).uniform(0.1, 1.0, 14)
    np.testing.assert_allclose(plain(x), f(x), rtol=1e-12)
    assert len(re.findall(r"^ +t\d+ = r\d+$", compact_source(plain), re.M)) == reads
    found, expected = (nbta.value_and_grad(f, compiled=kind)(x) for kind in (True, False))
    np.testing.assert_allclose(found[1], expected[1], rtol=1e-11)


def read_at(far, own):
    def step(y, x, k, j):
        a = y[own(k)] * x[j]
        y[j + far] = 0.5 * y[j + far] + 0.1 * a
        return a

    return changed(step)


@pytest.mark.parametrize("far", [0, -3])
@pytest.mark.parametrize("own", [lambda k: k - 2, lambda k: -1, lambda k: 3 - k])
def test_indices_that_wrap_around(far, own):
    f = read_at(far, own)
    ways = [nbta.value_and_grad(f, compiled=kind) for kind in (True, False)]
    for n in (4, 12, 13):
        x = np.random.default_rng(n).uniform(0.1, 1.0, n)
        found, expected = (way(x) for way in ways)
        np.testing.assert_allclose(found[0], f(x), rtol=1e-12)
        np.testing.assert_allclose(found[1], expected[1], rtol=1e-11)


def test_an_index_that_is_outside_is_an_error():
    f = nbta.value_and_grad(read_at(1, lambda k: k), compiled=True)
    for n in (3, 14):
        with pytest.raises(IndexError):
            f(np.ones(n))


ROWS = [lambda i, k: i, lambda i, k: k, lambda i, k: 2]
#: Columns of items: the same in all iterations over ``j``, and others.
PLACES = [
    lambda i, j, k, n: k, lambda i, j, k, n: i, lambda i, j, k, n: 1, lambda i, j, k, n: k - 1,
    lambda i, j, k, n: -1, lambda i, j, k, n: j, lambda i, j, k, n: j, lambda i, j, k, n: j,
    lambda i, j, k, n: n - 1 - j, lambda i, j, k, n: j - 1, lambda i, j, k, n: j // 2,
]  # fmt: skip


def done(d, a, kind, p, q):
    if kind == "read":
        a += 0.3 * d[p, q]
    elif kind == "change":
        d[p, q] = np.sin(a + d[p, q])
    elif kind == "add":
        d[p, q] += 0.1 * a
    elif a > 0.2:
        d[p, q] = 0.5 * a
    return a


def drawn(seed):
    """Loops over a table, in which accesses of other iterations meet fixed items."""
    draw = random.Random(seed)
    backwards = draw.random() < 0.4
    kinds = draw.choices(["read", "change", "change by if", "add"], [3, 2, 1, 2], k=4)
    places = [(draw.choice(ROWS), draw.choice(PLACES)) for _ in kinds]

    def f(x):
        n, d, s = x.shape[1], x.copy(), 0.0
        for k in range(3):
            for i in range(2):
                for place in range(n):
                    j = n - 1 - place if backwards else place
                    a = 0.1 * d[i, j]
                    for kind, (row, column) in zip(kinds, places, strict=True):
                        a = done(d, a, kind, row(i, k), column(i, j, k, n))
                    s += a
        return s + np.sum(d * x)

    return f


def compare(seed, machine_code, lengths):
    f = drawn(seed)
    ways = [nbta.value_and_grad(f, compiled=kind) for kind in (True, False)]
    with executed(machine_code):
        for n in lengths:
            x = np.random.default_rng(n).uniform(0.1, 0.9, (3, n))
            found, expected = (way(x) for way in ways)
            np.testing.assert_allclose(found[0], f(x), rtol=1e-11, err_msg=f"{seed}, {n}")
            most = 1e-10 * abs(expected[1]).max()
            np.testing.assert_allclose(found[1], expected[1], atol=most, err_msg=f"{seed}, {n}")


@pytest.mark.slow_but_every(8)
@pytest.mark.parametrize("seed", range(40))
def test_random_loops(seed):
    compare(seed, False, (13, 4))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(40, 60))
def test_random_loops_in_machine_code(seed):
    compare(seed, True, (14, 12, 25, 3))


# Sums that the next iteration takes.


def taken(step):
    """A loop down an array, in which ``step(y, a, j)`` changes it after item j is cleared."""

    def f(x):
        n = x.shape[0]

        def iteration(k, y, s):
            j = n - 1 - k
            a = y[j]
            y = nbta.set_item(y, j, 0.0)
            return step(y, 0.5 * a * x[j], j), s + a * x[j]

        y, s = ranged(2, lambda t, y, s: ranged(n - 2, iteration, y + 1.0, s), x, 0.0)
        return s + nbta.sum(y * x)

    return f


def to_the_next(y, a, j):
    return nbta.add_item(y, j - 1, a)


def twice(y, a, j):
    return to_the_next(to_another_too(y, a, j), nbta.sin(a), j)


def to_another_too(y, a, j):
    return to_the_next(nbta.add_item(y, j - 2, a), nbta.sin(a), j)


def at_an_index_of_a_value(y, a, j):
    return nbta.add_item(to_the_next(y, a, j), nbta.cast(a > 0.2, "int64"), a)


def of_its_own(y, a, j):
    return nbta.add_item(y, j, a)


def of_the_one_after(y, a, j):
    return nbta.add_item(y, j - 2, a)


def before_it_is_set(y, a, j):
    return nbta.set_item(to_the_next(y, a, j), j - 1, 0.5)


def before_another_is_set(y, a, j):
    return nbta.set_item(to_the_next(y, a, j), 3, 0.5)


def before_it_is_read(y, a, j):
    y = to_the_next(y, a, j)
    return nbta.add_item(y, j, y[j - 1])


STEPS = [
    (to_the_next, 0), (twice, 2), (to_another_too, 1), (at_an_index_of_a_value, 1),
    (of_its_own, 0), (of_the_one_after, 0), (before_it_is_set, 0), (before_another_is_set, 0),
    (before_it_is_read, 0),
]  # fmt: skip


@pytest.mark.parametrize(("step", "sums"), STEPS)
def test_sums_that_the_next_iteration_takes(step, sums):
    f = taken(step)
    plain = nbta.function(f, compiled=True)
    ways = [nbta.value_and_grad(f, compiled=kind) for kind in (True, False)]
    for n in (15, 4, 14):
        x = np.random.default_rng(n).uniform(0.1, 1.0, n)
        found, expected = (way(x) for way in ways)
        np.testing.assert_allclose([plain(x), found[0]], expected[0], rtol=1e-12)
        np.testing.assert_allclose(found[1], expected[1], rtol=1e-11, atol=1e-14)
    source = compact_source(plain)
    assert len(re.findall(r"^ +(r\d+) = fast_add\(\1, ", source, re.M)) == sums


def test_gradients_of_recurrences_in_tables():
    def f(x):
        c = x.copy()
        for i in range(1, len(c)):
            for j in range(1, c.shape[1]):
                c[i, j] = x[i, j] * min(c[i - 1, j], c[i, j - 1]) + np.sin(c[i - 1, j - 1])
        return np.sum(c[-1] * c[-1])

    ways = [nbta.value_and_grad(f, compiled=kind) for kind in (True, False)]
    for m in (14, 5, 1030):
        x = np.random.default_rng(m).uniform(0.1, 1.0, (3, m))
        found, expected = (way(x) for way in ways)
        np.testing.assert_allclose(found[0], f(x), rtol=1e-12)
        np.testing.assert_allclose(found[1], expected[1], rtol=1e-11, atol=1e-14)
    assert re.search(r"^ +(r\d+) = fast_add\(\1, ", compact_source(ways[0]), re.M)
    check_grads(f, (np.random.default_rng(1).uniform(0.1, 1.0, (2, 14)),))


def best_of_intervals(w, ends):
    """Weights of intervals that do not overlap, of which each follows an earlier one."""
    best = np.zeros(len(w) + 1)
    for i in range(1, len(w) + 1):
        best[i] = max(best[i - 1], w[i - 1] + best[min(ends[i - 1], i - 1)])
    return best[-1] * best[-1] + best[len(w) // 2]


def largest_so_far(w, ends):
    m = w * w
    for i in range(1, len(w)):
        m[i] = max(m[i - 1], w[i])
    return np.sum((m - w) ** 2)


@pytest.mark.parametrize("f", [best_of_intervals, largest_so_far])
def test_sums_that_the_next_iteration_takes_in_a_branch(f):
    ways = [nbta.value_and_grad(f, compiled=kind) for kind in (True, False)]
    for n in (40, 5, 1030, 12):
        made = np.random.default_rng(n)
        w, ends = made.normal(size=n), made.integers(0, n, n)
        found, expected = (way(w, ends) for way in ways)
        np.testing.assert_allclose(found[0], f(w, ends), rtol=1e-12)
        np.testing.assert_allclose(found[1], expected[1], rtol=1e-11, atol=1e-14)
    assert re.search(r"^ +(r\d+) = fast_add\(\1, ", compact_source(ways[0]), re.M)
    check_grads(lambda w: f(w, ends), (w,), order=2)


def test_a_sum_that_cancels_an_item_leaves_zero_where_a_branch_would_clear_it():
    def f(y, x, places):
        def iteration(k, y):
            j = x.shape[0] - 1 - k
            a = y[j]

            def moved():
                z = nbta.add_item(nbta.set_item(y, j, 0.0), places[j], a * x[j])
                return nbta.add_item(z, j - 1, a)

            return nbta.cond(a != 0.0, moved, lambda: y)

        return ranged(x.shape[0] - 1, iteration, y)

    made = np.random.default_rng(2)
    plain = nbta.function(f, compiled=True)
    for n in (30, 7, 1300):
        y, x, places = made.integers(-1, 2, n) * 1.0, made.integers(-1, 2, n) * 1.0, np.arange(n)
        places = np.maximum(places - made.integers(1, 4, n), 0)
        expected = nbta.function(f, compiled=False)(y, x, places)
        np.testing.assert_array_equal(plain(y, x, places), expected)
    assert re.search(r"^ +(r\d+) = fast_add\(\1, ", compact_source(plain), re.M)


def test_no_item_before_an_array_is_added_to_after_a_branch_that_guards_it():
    def f(y, x):
        def iteration(k, y):
            j = x.shape[0] - 1 - k
            a = y[j]
            y = nbta.set_item(y, j, 0.0)
            y = nbta.add_item(y, j, 0.5 * a)
            return nbta.cond(j > 0, lambda: nbta.add_item(y, j - 1, a * x[j]), lambda: y)

        return ranged(x.shape[0], iteration, y)

    plain = nbta.function(f, compiled=True)
    for n in (30, 7, 1300):
        y, x = np.random.default_rng(n).normal(size=(2, n))
        expected = nbta.function(f, compiled=False)(y, x)
        np.testing.assert_allclose(plain(y, x), expected, rtol=1e-12)


def test_constant_indices_tell_items_apart(monkeypatch):
    """Of 40 items of a row, one is compared with its own and with those of the run."""
    monkeypatch.setattr(promoted_items, "indices_of", lambda op: op)
    counts = SimpleNamespace(unwrapped=lambda n: Linear(n) if n >= 0 else None)
    accesses = [(0, n) for n in range(40)] + [(-1, 7), (0, -1), (1, 3), (-1, -1)]
    found = promoted_items._ByIndices(counts, accesses)
    assert found.beside((0, 3)) == [(0, 3), (0, -1), (1, 3), (-1, -1)]
    assert found.beside((1, -1)) == [(-1, 7), (1, 3), (-1, -1)]
    assert found.beside((-1, -1)) == accesses
