"""Indices that count through several loops, as of packed triangles: followed, and not saved."""

import inspect
import linecache
import random

import numpy as np
import pytest
from test_residuals import notes

import nbta

INNER = ("range(n)", "range(j)", "range(j, n)", "range(j + 1, n)", "range(1, j + 1)", "range(3)")
FIRST = """
def program(a, x, step):
    n, p = len(x), {start}
    y = np.zeros(n)
"""
LAST = """
    return np.sum(np.sin(y) * x)
"""
USE = "y[i] += a[p] * x[j]"


def nest(lines, rng, before="    "):
    """A loop along ``j`` of statements and loops along ``i`` that raise ``p``, in some order."""
    lines.append(f"{before}for j in range(n):")
    for _ in range(rng.randint(1, 3)):
        part = rng.choice(("loop", "loop", "step", "down"))
        if part == "loop":
            lines.append(f"{before}    for i in {rng.choice(INNER)}:")
            lines += [f"{before}        {USE}", f"{before}        p += {rng.randint(1, 3)}"]
        elif part == "step":
            lines += [f"{before}    y[j] *= a[p]", f"{before}    p += {rng.randint(1, 2)}"]
        else:
            lines += [f"{before}    p -= 1", f"{before}    y[j] += x[j] * a[p]"]


def random_program(seed):
    """A nest of two or three loops; the outermost of three runs as many iterations each time."""
    rng = random.Random(seed)
    lines = FIRST.format(start=rng.choice(("0", "1", "40"))).splitlines()
    if rng.random() < 0.4:
        lines += ["    for t in range(4):", "        y[0] += a[p] * x[t % n] * (t + 1.0)"]
        nest(lines, rng, "        ")
    else:
        nest(lines, rng)
    if rng.random() < 0.3:
        nest(lines, rng)
    source, name = "\n".join(lines) + LAST, f"<packed indices {seed}>"
    linecache.cache[name] = len(source), None, source.splitlines(True), name
    found = {"np": np}
    exec(compile(source, name, "exec"), found)
    return found["program"]


def arguments(n):
    rng = np.random.default_rng(n)
    return rng.normal(size=60 + 40 * n * n), rng.normal(size=n), 2


def differences(f, arguments, place, h=1e-6):
    """Central ones, of the items of an argument that the function looks at."""
    found = np.zeros_like(arguments[place])
    for k in range(found.size):
        ends = []
        for sign in (1, -1):
            moved = [np.copy(argument) for argument in arguments]
            moved[place][k] += sign * h
            ends.append(f(*moved))
        found[k] = (ends[0] - ends[1]) / (2 * h)
    return found


def hold(f, n):
    given = arguments(n)
    found = nbta.value_and_grad(f, (0, 1), compiled=True)(*given)
    reference = nbta.value_and_grad(f, (0, 1), compiled=False)(*given)
    np.testing.assert_allclose(found[0], f(*given), rtol=1e-12)
    for place in (0, 1):
        np.testing.assert_allclose(found[1][place], reference[1][place], rtol=1e-10, atol=1e-12)
    expected = differences(f, given, 1)
    np.testing.assert_allclose(
        found[1][1], expected, rtol=1e-6, atol=1e-6 * max(1.0, abs(found[0]))
    )


@pytest.mark.slow_but_every(10)
@pytest.mark.parametrize("seed", range(30))
def test_random_programs(seed):
    f = random_program(seed)
    for n in (3, 13):
        hold(f, n)
    of_index = [note for note in notes(f, *arguments(13)) if "`a[p]`" in note or note[:2] == "p "]
    assert not of_index, inspect.getsource(f)


def triangle(a, x, step):
    n, p = len(x), 0
    y = np.zeros(n)
    for j in range(n):
        for i in range(j + 1, n):
            y[i] += a[p] * x[j]
            p += 1
    return np.sum(np.sin(y) * x)


def argument_step(a, x, step):
    n, p = len(x), 0
    y = np.zeros(n)
    for j in range(n):
        for i in range(n):
            y[i] += a[p] * x[j]
            p += step
        p += step
    return np.sum(np.sin(y) * x)


def three_rectangles(a, x, step):
    n, p = len(x), 0
    y = np.zeros(n)
    for t in range(9):
        for j in range(n):
            for i in range(2):
                y[i % n] += a[p] * x[j] * (t + 1.0)
                p += 1
    return np.sum(np.sin(y) * x)


@pytest.mark.parametrize("f", [triangle, argument_step, three_rectangles])
def test_nothing_is_saved(f):
    hold(f, 13)
    assert not [note for note in notes(f, *arguments(13)) if "a[p]" in note or note[:2] == "p "]


def clamped(a, x, step):
    """The last loops run no iteration, where the difference of the bounds is negative."""
    n, p = len(x), 0
    y = np.zeros(n)
    for j in range(n):
        for i in range(j + 3, n):
            y[i] += a[p] * x[j]
            p += 1
    return np.sum(np.sin(y) * x)


def by_data(a, x, step):
    n, p = len(x), 0
    y = np.zeros(n)
    for j in range(n):
        if x[j] > 0.0:
            p += 1
        for i in range(j):
            y[i] += a[p] * x[j]
            p += 1
    return np.sum(np.sin(y) * x)


def left_early(a, x, step):
    n, p = len(x), 0
    y = np.zeros(n)
    for j in range(n):
        for i in range(n):
            if y[i] > 0.5:
                break
            y[i] += a[p] * x[j]
            p += 1
    return np.sum(np.sin(y) * x)


def tetrahedron(a, x, step):
    n, p = len(x), 0
    y = np.zeros(n)
    for t in range(n):
        for j in range(t):
            for i in range(j):
                y[i] += a[p] * x[j] * x[t]
                p += 1
    return np.sum(np.sin(y) * x)


@pytest.mark.parametrize("f", [clamped, by_data, left_early, tetrahedron])
@pytest.mark.parametrize("n", [1, 2, 4, 13])
def test_others_are_right_too(f, n):
    hold(f, n)
