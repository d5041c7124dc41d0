"""How often parts of a function are traced: each trace of a block costs what its operations cost.

Loops and branches in each other, and functions that they call, multiply what one of them does too
often.
"""

from collections import Counter

import numpy as np
import pytest
from frontend_checks import check_first
from frontend_random import built

import nbta
from nbta.frontend import calls, control
from nbta.graph import dependence


def inner(x):
    return np.sin(x) * x


def chosen(kind, x):
    if kind == 0:
        value = np.exp(-x)
    elif kind == 1:
        value = inner(x)
    else:
        raise ValueError("unknown kind")
    return value


def chosen_in_loop(kinds, x):
    total = 0.0
    for k in range(len(kinds)):
        total += chosen(kinds[k], x) * (k + 1)
    return total


def in_nested_ways(kind, x):
    if kind < 3:
        if kind == 2:
            value = inner(x)
        else:
            raise ValueError("odd kind")
    else:
        raise ValueError("unknown kind")
    return value


def swapped(x, n):
    a, b, largest = x.copy(), np.zeros(len(x)), 0.0
    for k in range(n):
        b[k % len(b)] = np.sum(a) * 0.3
        a = np.sin(a) + b
        largest = max(largest, inner(a[0]))
        for j in range(len(a)):
            b[j] += 0.1 * a[j]
            a = a * 0.9
    return np.sum(a * b) + largest


def with_unread_items(x, n):
    total, a = 0.0, np.zeros(3)
    for k in range(n):
        a[k % 3] = x[k] * 2.0
        x[k + 1]
        a = a * inner(0.9)
        total += a[0]
        assert total < 1e9
    return total


@pytest.fixture
def counts(monkeypatch):
    """By the name of a function how often it was traced; attempts of loops, and of them in vain."""
    found = Counter()
    converted, attempt = calls._converted, control._Loop._attempt

    def counted(function, args, kwargs):
        found[function.__name__] += 1
        return converted(function, args, kwargs)

    def counted_attempt(loop, *args):
        found["attempts"] += 1
        try:
            return attempt(loop, *args)
        except control.Again:
            found["in vain"] += 1
            raise

    monkeypatch.setattr(calls, "_converted", counted)
    monkeypatch.setattr(control._Loop, "_attempt", counted_attempt)
    return found


def check(f, *args, place):
    """Hold value and gradient in both executors against the function and central differences."""
    for compiled in (False, True):
        check_first(f, (place,), args, compiled)


@pytest.mark.parametrize(
    ("f", "args"), [(chosen, (np.int64(1), 0.7)), (in_nested_ways, (np.int64(2), 0.7))]
)
def test_a_block_beside_an_error_is_traced_once(counts, f, args):
    nbta.function(f, compiled=False)(*args)
    assert counts["inner"] == 1
    check(f, *args, place=1)


@pytest.mark.parametrize("compiled", [False, True])
def test_errors_beside_blocks_are_those_of_their_runs(compiled):
    f, g = (nbta.function(each, compiled=compiled) for each in (chosen, in_nested_ways))
    with pytest.raises(ValueError, match="unknown kind"):
        f(np.int64(4), 0.7)
    for kind, message in ((0, "odd kind"), (5, "unknown kind")):
        with pytest.raises(ValueError, match=message):
            g(np.int64(kind), 0.7)


def test_functions_in_a_branch_of_a_loop_are_traced_with_it(counts):
    nbta.function(chosen_in_loop, compiled=False)(np.array([0, 1, 1, 0]), 0.7)
    assert counts["inner"] == counts["attempts"] <= 2
    check(chosen_in_loop, np.array([0, 1, 1, 0]), 0.7, place=1)


def test_a_loop_learns_of_arrays_and_variables_at_once(counts):
    nbta.function(swapped, compiled=False)(np.array([0.3, -0.8, 1.1, 0.4]), 12)
    assert counts["inner"] <= 4
    check(swapped, np.array([0.3, -0.8, 1.1, 0.4]), 12, place=0)


def test_a_second_trace_begins_with_what_the_first_found(counts, monkeypatch):
    vain = []
    make = nbta.api.tracing._Trace.make

    def counted_make(trace, *args):
        before = counts["in vain"]
        made = make(trace, *args)
        vain.append(counts["in vain"] - before)
        return made

    monkeypatch.setattr(nbta.api.tracing._Trace, "make", counted_make)
    nbta.function(with_unread_items, compiled=False)(np.linspace(0.0, 1.0, 21), 20)
    assert len(vain) == 2  # the second one computes the items that nobody reads
    assert vain[0] >= 1
    assert vain[1] == 0
    check(with_unread_items, np.linspace(0.0, 1.0, 21), 20, place=0)
    with pytest.raises(IndexError):
        nbta.function(with_unread_items)(np.linspace(0.0, 1.0, 20), 20)


def nest(depth):
    """A function of branches in each other."""
    lines = ["def f(x):", "    y = x"]
    for k in range(depth):
        space = "    " * (k + 1)
        lines += [f"{space}if x > {0.01 * k}:", f"{space}    y = y * 1.1 + {k}"]
    return built("\n".join([*lines, "    return y", ""]))[0]


def test_what_branches_need_is_found_once_for_each(monkeypatch):
    looks, look = [], dependence.UsesThroughBodies._has_effects

    def counted(uses, op):
        looks[-1] += 1
        return look(uses, op)

    monkeypatch.setattr(dependence.UsesThroughBodies, "_has_effects", counted)
    for depth in (8, 16):
        looks.append(0)
        nbta.value_and_grad(nest(depth), compiled=True)(2.0)
    assert 0 < looks[1] < 2.6 * looks[0]
