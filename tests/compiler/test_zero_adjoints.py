"""Adjoint iterations that have nothing to do: where they are skipped, and where they are not."""

import re

import numpy as np
import pytest

import nbta
from nbta.testing import check_grads

A = np.random.default_rng(1).normal(size=7)
B = np.random.default_rng(2).normal(size=6)
M = np.random.default_rng(3).uniform(size=(5, 6))


def warped(a, b):
    m = len(b)
    prev, cur = np.full(m + 1, 1e3), np.empty(m + 1)
    prev[0] = 0.0
    for i in range(len(a)):
        cur[0] = 1e3
        for j in range(m):
            c = (a[i] - b[j]) ** 2
            cur[j + 1] = c + min(prev[j + 1], min(cur[j], prev[j]))
        prev, cur = cur, prev
    return prev[m] * 1.5


def warped_all(a, b):
    """As `warped`; all of the last row counts, so that many adjoints are not zero."""
    m = len(b)
    prev, cur = np.full(m + 1, 3.0), np.zeros(m + 1)
    for i in range(len(a)):
        for j in range(m):
            c = (a[i] - b[j]) ** 2
            cur[j + 1] = c + min(prev[j + 1], min(cur[j], prev[j]))
        prev, cur = cur, prev
    return np.sum(prev * prev)


def edited(a, b):
    m = len(b)
    prev, cur = np.arange(m + 1) * 0.7, np.zeros(m + 1)
    for i in range(len(a)):
        cur[0] = (i + 1) * 0.7
        for j in range(m):
            best = prev[j] + abs(a[i] - b[j])
            if prev[j + 1] + 0.7 < best:
                best = prev[j + 1] + 0.7
            if cur[j] + 0.7 < best:
                best = cur[j] + 0.7
            cur[j + 1] = best
        prev, cur = cur, prev
    return prev[m]


def aligned(a, b):
    """Smith and Waterman: the best of all items."""
    m, best = len(b), 0.0
    prev, cur = np.zeros(m + 1), np.zeros(m + 1)
    for i in range(len(a)):
        for j in range(m):
            s = max(0.0, prev[j] + a[i] * b[j])
            s = max(s, max(prev[j + 1], cur[j]) - 0.3)
            cur[j + 1] = s
            best = max(best, s)
        prev, cur = cur, prev
    return best


def carved(e):
    n, m = e.shape
    c = e.copy()
    for i in range(1, n):
        for j in range(m):
            best = c[i - 1, j]
            if j > 0:
                best = min(best, c[i - 1, j - 1])
            if j < m - 1:
                best = min(best, c[i - 1, j + 1])
            c[i, j] = e[i, j] + best
    s = c[n - 1, 0]
    for j in range(1, m):
        s = min(s, c[n - 1, j])
    return s


def wrapping(a, b):
    """As `warped`, where a neighbour's index wraps around."""
    m = len(b)
    row = b.copy()
    for i in range(len(a)):
        for j in range(m):
            row[j] = (a[i] - b[j]) ** 2 + min(row[j], row[j - 1])
    return row[m - 1] + 0.5 * row[0]


def drawdown(x):
    peak, worst = x[0], 0.0
    for i in range(len(x)):
        if x[i] > peak:
            peak = x[i]
        worst = max(worst, peak - x[i])
    return worst


def ranged(x):
    low, high, worst = x[0], x[0], 0.0
    for i in range(len(x)):
        low = min(low, x[i])
        high = max(high, x[i])
        worst = max(worst, high - x[i])
        worst = max(worst, x[i] - low)
    return worst


def subsequence(a, b):
    """Each branch takes the same item."""
    table = np.zeros((len(a) + 1, len(b) + 1))
    for i in range(len(a)):
        for j in range(len(b)):
            if (i + 2 * j) % 3 == 0:
                table[i + 1, j + 1] = table[i, j] + a[i] * b[j]
            else:
                table[i + 1, j + 1] = max(table[i, j + 1], table[i + 1, j])
    return table[len(a), len(b)]


def filled_bag(a, b):
    """What a branch takes is taken once more after it."""
    best = np.zeros((len(a) + 1, len(b) + 1))
    for i in range(1, len(a) + 1):
        weight = 1 + (3 * i) % 4
        for c in range(len(b) + 1):
            best[i, c] = best[i - 1, c]
            if c >= weight:
                best[i, c] = max(best[i - 1, c], best[i - 1, c - weight] + a[i - 1] * b[c - 1])
    return best[len(a), len(b)]


def affine_gaps(a, b):
    """Gotoh: an iteration adds to an item of one table, for two others, before it takes it."""
    n, m = len(a), len(b)
    match, gap, other = np.zeros((n + 1, m + 1)), np.zeros((n + 1, m + 1)), np.zeros((n + 1, m + 1))
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            before = max(gap[i - 1, j - 1], other[i - 1, j - 1])
            match[i, j] = a[i - 1] * b[j - 1] + max(match[i - 1, j - 1], before)
            gap[i, j] = max(match[i - 1, j] - 0.3, gap[i - 1, j] - 0.1)
            other[i, j] = max(match[i, j - 1] - 0.3, other[i, j - 1] - 0.1)
    return max(match[n, m], max(gap[n, m], other[n, m]))


TABLES = (warped, warped_all, edited, aligned, wrapping, subsequence, filled_bag, affine_gaps)


@pytest.mark.parametrize("f", TABLES)
def test_tables_of_smallest_costs_have_their_derivatives(f):
    check_grads(f, (A, B))


@pytest.mark.parametrize("f", [carved, drawdown, ranged])
def test_seams_and_extremes_have_their_derivatives(f):
    check_grads(f, (M if f is carved else np.cumsum(A),))


@pytest.mark.parametrize("f", [*TABLES, carved, drawdown, ranged])
def test_both_executors_agree(f):
    args = {carved: (M,), drawdown: (np.cumsum(A),), ranged: (np.cumsum(A),)}.get(f, (A, B))
    places = tuple(range(len(args)))
    one, other = (
        nbta.value_and_grad(f, places, convert=True, compiled=way)(*args) for way in (False, True)
    )
    np.testing.assert_allclose(one[0], other[0], rtol=1e-12)
    for found, wanted in zip(one[1], other[1], strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-12)


def skips(f, *args):
    """Whether adjoint iterations of a function are branches."""
    g = nbta.value_and_grad(f, tuple(range(len(args))), compiled=True, convert=True)
    g(*args)
    return "skip_zero_adjoints" in str(g.explain())


@pytest.mark.parametrize("f", [*TABLES, carved, drawdown, ranged])
def test_adjoints_of_what_was_not_chosen_are_skipped(f):
    args = {carved: (M,), drawdown: (np.cumsum(A),), ranged: (np.cumsum(A),)}.get(f, (A, B))
    assert skips(f, *args)


def smoothed(a, b):
    row = b.copy()
    for i in range(len(a)):
        for j in range(1, len(b)):
            row[j] = np.sin(a[i]) * row[j] + 0.5 * row[j - 1]
    return np.sum(row)


def rectified(a, b):
    """Adjoints of all items at least in part go on to others."""
    row = b.copy()
    for i in range(len(a)):
        for j in range(1, len(b)):
            row[j] = max(row[j], a[i]) + 0.5 * row[j - 1]
    return np.sum(row)


def spread(a, b):
    """In a branch, as many items have an adjoint as before, and more."""
    row = b.copy()
    for i in range(len(a)):
        for j in range(2, len(b)):
            if (i + j) % 3:
                row[j] = row[j - 1] + a[i] * row[j - 2]
    return np.sum(row)


def held_or_sold(a, b):
    """The item that was not replaced hands on to two others."""
    row = b.copy()
    for t in range(len(b) - 1, 0, -1):
        for i in range(t):
            row[i] = max(0.4 * row[i] + 0.5 * row[i + 1], a[i])
    return row[0]


def in_part(a, b):
    """An item that some iterations take may be none of the array in others."""
    row = np.zeros(len(b))
    for i in range(len(a)):
        for j in range(len(a) + 4):
            if 1 < j < len(b):
                row[j] = max(row[j - 1] + a[i], row[j - 2] + b[j])
    return np.sum(row)


def summed(a, b):
    """What is added up is needed in each iteration."""
    best, s = a[0], 0.0
    for i in range(len(a)):
        best = max(best, a[i])
        s += best * a[i]
    return s + np.sum(b)


def clipped(a, b):
    """Not an extreme, but a number that often is cut off."""
    s = b[0]
    for i in range(len(a)):
        s = max(0.0, s + a[i])
    return s * s


@pytest.mark.parametrize("f", [smoothed, rectified, spread, held_or_sold, in_part, summed, clipped])
def test_adjoints_that_are_mostly_other_numbers_are_not(f):
    assert not skips(f, A, B)
    check_grads(f, (A, B))


def test_no_table_is_copied_for_what_an_iteration_takes_after_additions():
    g = nbta.value_and_grad(affine_gaps, (0, 1), convert=True, compiled=True)
    g(A, B)
    assert not re.search(r"^ {12,}copy\(", g.source, re.MULTILINE)


def test_zeros_of_the_program_are_no_adjoints():
    """A number that is zero times infinity is NaN, in a user's own loop that clears items."""

    def f(x, y):
        c = x.copy()
        for i in range(len(x) - 1, 0, -1):
            v = c[i]
            c[i] = 0.0
            c[i - 1] += v * y[i] if y[i] > 1.0 else 0.0
        return c[0]

    x, y = np.array([1.0, 2.0, 0.0]), np.array([2.0, np.inf, np.inf])
    g = nbta.function(f, convert=True, compiled=True)
    with np.errstate(all="ignore"):
        assert np.isnan(f(x, y))
    assert np.isnan(g(x, y))


def test_an_infinite_factor_leaves_a_zero_adjoint_zero():
    def f(a, b):
        row = np.zeros(len(b) + 1)
        for i in range(len(a)):
            for j in range(len(b)):
                row[j + 1] = min(row[j] + a[i] * np.sqrt(b[j]), row[j + 1] + 1.0)
        return row[len(b)]

    a, b = np.array([3.0, 2.0]), np.array([0.0, 1.0, 4.0])
    ways = [nbta.grad(f, (0, 1), convert=True, compiled=way)(a, b) for way in (False, True)]
    for one, other in zip(*ways, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("x", [np.arange(9.0), -np.arange(9.0), np.zeros(9)])
def test_extremes_that_are_replaced_always_never_or_equal(x):
    for f in (drawdown, ranged):
        ways = [
            nbta.value_and_grad(f, convert=True, compiled=way)(x.copy()) for way in (False, True)
        ]
        assert ways[0][0] == ways[1][0]
        np.testing.assert_array_equal(ways[0][1], ways[1][1])


def test_a_second_call_finds_no_truth_values_of_the_first():
    g = nbta.value_and_grad(drawdown, convert=True, compiled=True)
    plain = nbta.value_and_grad(drawdown, convert=True, compiled=False)
    rising, other = np.cumsum(np.abs(A)), np.cumsum(A)[::-1].copy()
    for x in (rising, other, rising[:4].copy(), other):
        np.testing.assert_array_equal(g(x)[1], plain(x)[1])
        assert g(x)[0] == plain(x)[0]


def test_an_adjoint_that_is_chosen_among_an_array_and_zeros():
    """Of several items, zeros in place of an adjoint are an array, too."""

    def f(x, k):
        n, rest = len(x), x[1:]
        for _ in range(9):
            now = rest.copy()
            rest[now < 1.07] += x[0]
            rest[k], rest[n % len(rest)] = rest[n % len(rest)], rest[k]
        return np.sum(x)

    x = np.array([-0.78, 0.96, -0.26, 0.78, -0.17, -0.08, 0.41])
    check_grads(lambda x: f(x, 4), (x,))
    plain, compiled = (nbta.grad(f, convert=True, compiled=way)(x, 4) for way in (False, True))
    np.testing.assert_allclose(compiled, plain, rtol=1e-14)
