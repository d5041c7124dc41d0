"""Indices that iterations count up or down are not saved for gradients."""

import itertools

import numpy as np
import pytest
from compiled_pairs import compare
from running import written
from test_in_place import section

import nbta
from nbta.testing import check_grads

#: Loops whose number of iterations only the run knows; {first}, {step} and {test} are drawn.
PROGRAM = """
def f(x, k):
    a = x.copy()
    total = 0.0
    for i in range(2, len(a) - 2):
        j = {first}
        while {test} and a[j] * a[j] > 0.3 * a[i]:
            {body}
            j {step}
        total += a[j] * i
    return total
"""
FIRSTS = {"up": "i - 2", "down": "i + 2"}
STEPS = {"up": ["+= 1", "= 1 + j", "+= k", "-= -1"], "down": ["-= 1", "= j - 2", "-= k", "+= -1"]}
TESTS = {"up": "j < len(a) - 2", "down": "j > 1"}
BODIES = ["a[j] = 0.9 * a[j]", "a[j] *= x[j - 1]", "a[j - 1] += 0.2 * a[j]"]
DRAWN = [
    (way, step, body) for way in FIRSTS for step, body in itertools.product(STEPS[way], BODIES)
]


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize(("way", "step", "body"), DRAWN)
def test_it_follows_from_the_number_of_the_iteration(way, step, body, tmp_path):
    text = PROGRAM.format(first=FIRSTS[way], step=step, test=TESTS[way], body=body)
    f = written(tmp_path, text)
    x = np.random.default_rng(0).uniform(0.9, 1.3, 9)
    ways = np.eye(9) * 1e-6
    slopes = [(f(x + each, 1) - f(x - each, 1)) / 2e-6 for each in ways]
    for compiled in (False, True):
        both = nbta.value_and_grad(f, compiled=compiled)
        value, slope = both(x, 1)
        np.testing.assert_allclose(value, f(x, 1), rtol=1e-13)
        np.testing.assert_allclose(slope, slopes, rtol=1e-5, atol=1e-8)
    inner = f"`while {TESTS[way]} and a[j] * a[j] > 0.3 * a[i]`"
    saved = [
        line for line in both.explain().splitlines() if f"an iteration of the loop {inner}" in line
    ]
    assert not [line for line in saved if line.strip().startswith(("j", "`j"))], saved


def insertions(x):
    """Medians of windows: where the inner loop stops is where it began, less its iterations."""
    window, total = np.zeros(5), 0.0
    for i in range(len(x) - 4):
        for k in range(5):
            window[k] = x[i + k]
        for k in range(1, 5):
            value, place = window[k], k - 1
            while place >= 0 and window[place] > value:
                window[place + 1] = window[place]
                place -= 1
            window[place + 1] = value
        total += window[2] * window[2] * window[3]
    return total


def after_a_search(x):
    """What a search counts indexes the item that is changed."""
    bins, total = np.ones(5), 0.0
    for i in range(len(x)):
        k = 4
        while k > 0 and 0.25 * k > x[i]:
            k -= 1
        total += bins[k] * bins[k]
        bins[k] = bins[k] * x[i]
    return total + np.sum(bins)


@pytest.mark.parametrize(("f", "arrays"), [(insertions, 6), (after_a_search, 2)])
def test_what_a_loop_counts_follows_from_its_iterations_if_these_are_saved(f, arrays):
    x = np.random.default_rng(3).uniform(0.1, 1.2, 9)
    both = nbta.value_and_grad(f, compiled=True)
    value, slope = both(x)
    compare((value, slope), nbta.value_and_grad(f, compiled=False)(x))
    slopes = [(f(x + each) - f(x - each)) / 2e-6 for each in np.eye(9) * 1e-6]
    np.testing.assert_allclose(slope, slopes, rtol=1e-5, atol=1e-8)
    assert len(section(both.explain(), "arrays")) == arrays


def filled(v, w):
    """A bag: the condition bounds the index of the other item from below."""
    best = np.zeros(9)
    for i in range(len(v)):
        for c in range(8, -1, -1):
            if c >= w[i]:
                best[c] = max(best[c], best[c - w[i]] + v[i])
    return np.sum(best * best)


def filled_else(v, w):
    best = np.zeros(9)
    for i in range(len(v)):
        for c in range(8, -1, -1):
            if c < w[i]:
                best[c] *= 1.5
            else:
                best[c] = max(best[c], best[c - w[i]] + v[i])
    return np.sum(best * best)


@pytest.mark.parametrize("f", [filled, filled_else])
def test_a_condition_bounds_an_index_in_its_branch(f):
    v = np.random.default_rng(1).uniform(1.0, 2.0, 5)
    for w in ([3, 2, 4, 1, 2], [9, 12, 1, 9, 3], [1, 1, 1, 1, 1], [20, 20, 20, 20, 20]):
        weights = np.array(w)
        check_grads(lambda v, w=weights: f(v, w), (v,))
    g = nbta.value_and_grad(f, compiled=True, convert=True)
    g(v, np.array([3, 2, 4, 1, 2]))
    assert str(-(2**62)) in g.source  # iterations that do not take the branch may be below 0


@pytest.mark.parametrize("f", [filled, filled_else])
@pytest.mark.parametrize("weight", [-1, -9, -(2**40), -(2**63), -(2**63) + 4])
def test_an_index_is_checked_from_above_and_where_it_wraps_around(f, weight):
    v, w = np.arange(1.0, 6.0), np.array([3, 2, weight, 1, 2])
    for compiled in (False, True):
        with pytest.raises(IndexError):
            nbta.value_and_grad(f, compiled=compiled, convert=True)(v, w)
