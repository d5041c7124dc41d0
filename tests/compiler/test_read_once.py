"""What an adjoint iteration reads again is read where the iteration did, not in inner loops."""

import re

import numpy as np
import pytest
from test_saved_around import differences, hold

import nbta


def compressed(a, x, start, column):
    """A product of compressed rows, over and over."""
    y = x.copy()
    for t in range(3):
        for i in range(len(start) - 1):
            s = 0.0
            for k in range(start[i], start[i + 1]):
                s += a[k] * y[column[k]]
            y[i] = np.sin(s) + 0.1 * t * y[i]
    return np.sum(y * y)


def triangular(a, x, start, column):
    """Rows before the diagonal: a loop between makes other numbers of iterations each time."""
    total = 0.0
    for t in range(len(start) - 1):
        for i in range(t):
            s = x[i]
            for k in range(start[i], start[i + 1]):
                s = np.sin(s * a[k])
            total += s * x[column[i]]
    return total


def in_a_branch(a, x, start, column):
    """Rows of which some are not asked for; the start of theirs is beyond all items."""
    y = x.copy()
    for _ in range(2):
        for i in range(len(start) - 1):
            if start[i + 1] >= start[i]:
                for k in range(start[i], start[i + 1]):
                    y[i] = np.sin(y[i] + a[k] * y[column[k]])
    return np.sum(y * y)


def never_read(a, x, start, column):
    """An item that only the inner loop reads, which no iteration of some rows would find."""
    s = 0.5
    for _ in range(2):
        for i in range(len(start) - 1):
            for k in range(start[i + 1] - start[i]):
                s = np.sin(s + x[column[start[i]]] * a[k])
    return s


PROGRAMS = [never_read, compressed, triangular, in_a_branch]


def arguments(counts, seed=0):
    """Numbers, and rows that are as long as they are told."""
    rng = np.random.default_rng(seed)
    start = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)]).astype(np.int64)
    column = rng.integers(0, len(counts), max(start[-1], len(counts)))
    return rng.normal(size=max(start[-1], 1)), rng.normal(size=len(counts)), start, column


COUNTS = [[2, 0, 3, 1, 9], [0, 0, 0]]


@pytest.mark.slow_but_every(2)
@pytest.mark.parametrize("f", PROGRAMS)
def test_gradients(f):
    many = [list(arguments(counts)) for counts in COUNTS]
    for given in many:
        if f is in_a_branch:
            given[2] = np.array([9, 0, 3, -5, -3, 0, 6])
            given[0], given[1] = np.ones(7) * 0.3, np.linspace(-1, 1, 6)
            given[3] = np.array([1, 2, 3, 4, 5, 0, 1])
        if f is never_read:  # where a row is empty, the item after it does not exist
            given[3] = np.where(np.isin(np.arange(len(given[3])), given[2][:-1]), 1, 10**6)
    hold(f, many)


@pytest.mark.slow
@pytest.mark.parametrize("f", [triangular, compressed])
def test_second_derivatives(f):
    a, x, start, column = arguments(COUNTS[0])

    def squared(a, x):
        return sum(np.sum(g * g) for g in nbta.grad(f, (0, 1))(a, x, start, column))

    found, reference = (
        nbta.value_and_grad(squared, (0, 1), compiled=how)(a, x) for how in (True, False)
    )
    for place in (0, 1):
        np.testing.assert_allclose(found[1][place], reference[1][place], rtol=1e-8, atol=1e-10)
        expected = differences(squared, (a, x), place)
        np.testing.assert_allclose(found[1][place], expected, rtol=1e-4, atol=1e-5)


def innermost(source):
    """The lines of loops without loops in them, a list a loop."""
    lines, found = source.splitlines(), []
    for number, line in enumerate(lines):
        if not re.match(r" *for ", line):
            continue
        indent = len(line) - len(line.lstrip())
        body = []
        for other in lines[number + 1 :]:
            if other.lstrip().startswith("#"):
                continue
            if other.strip() and len(other) - len(other.lstrip()) <= indent:
                break
            body.append(other)
        if not any(re.match(r" *for ", other) for other in body):
            found.append(body)
    return found


@pytest.mark.parametrize("f", [compressed])
def test_inner_loops_read_no_start(f):
    """Then the indices of their rows are checked before them, too."""
    gradient = nbta.value_and_grad(f, (0, 1), compiled=True)
    gradient(*arguments(COUNTS[0]))
    loops = innermost(gradient.source)
    assert not [line for body in loops for line in body if " start[" in line or "(start[" in line]
    rows = [body for body in loops if any("d_a[" in line for line in body)]
    assert any(not any("len_a" in line for line in body) for body in rows)
