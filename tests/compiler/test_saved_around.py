"""Numbers that no iteration of an inner loop changes: saved by the loop around it, once for all."""

import numpy as np
import pytest
from test_residuals import notes

import nbta


def items(a, x):
    """The item of a vector that each outer iteration fills anew."""
    n, d = x.shape
    off, y, total = np.zeros(d), np.zeros(d), 0.0
    for t in range(n):
        for i in range(d):
            off[i] = np.sin(x[t, i])
            y[i] = 0.0
        for j in range(d):
            for i in range(j + 1, d):
                y[i] += a[i, j] * off[j]
        total += np.sum(y * y)
    return total


def computed(a, x):
    """What is computed from such items in the inner loop."""
    n, d = x.shape
    off, y, total = np.zeros(d), np.zeros(d), 0.0
    for t in range(n):
        for i in range(d):
            off[i] = np.sin(x[t, i])
            y[i] = 0.0
        for j in range(d):
            for i in range(d - 2):
                y[i] += a[i, j] * np.exp(off[j] * off[0])
        total += np.sum(y * y)
    return total


def number(a, x):
    """A number that the outer loop changes, and iterations whose count is in the data."""
    n, d = x.shape
    s = 1.0
    for t in range(n):
        s = np.sin(s) + x[t, 0]
        u = np.exp(s)
        count = d if x[t, 1] > 0.0 else 0
        for i in range(count):
            s += a[i, 0] * u
    return s


def three(a, x):
    """A loop between, and an item that is the same in both of the inner ones."""
    n, d = x.shape
    off, y, total = np.zeros(d), np.zeros(d), 0.0
    for t in range(n):
        for i in range(d):
            off[i] = np.tanh(x[t, i] + total)
        for j in range(d):
            for k in range(j):
                for i in range(k):
                    y[i] = 0.5 * np.sin(y[i]) + a[j, k] * off[k]
        total += 0.1 * np.sum(y * y)
    return total


def in_a_branch(a, x):
    """The inner loop runs in some iterations of the outer one only."""
    n, d = x.shape
    off, y, total = np.zeros(d), np.zeros(d), 0.0
    for t in range(n):
        for i in range(d):
            off[i] = np.sin(x[t, i])
            y[i] = 0.0
        for j in range(d):
            if off[j] > 0.0:
                for i in range(d - 1):
                    y[i] += a[i, j] * off[j]
        total += np.sum(y * y)
    return total


def twice(a, x):
    """Two inner loops that need the same item, and one that needs another."""
    n, d = x.shape
    off, y, total = np.zeros(d), np.zeros(d), 0.0
    for t in range(n):
        for i in range(d):
            off[i] = np.sin(x[t, i])
            y[i] = 0.0
        for j in range(d):
            for i in range(j, d):
                y[i] += a[i, j] * off[j]
            for i in range(j):
                y[i] += a[j, i] * off[j] * off[j - 1]
        total += np.sum(y * y)
    return total


def pieces(a, x):
    """Counters that begin at a number of the outer loop's, which is in the data."""
    n, d = x.shape
    y, lo = np.ones(d), 0
    for t in range(n):
        hi = min(lo + t + 1, d)
        for k in range(lo, hi):
            y[k] = 0.5 * y[k] + a[lo, k]
        lo = hi % d if x[t, 0] > 0.0 else lo // 2
    return np.sum(y * y) + np.sum(x)


def downwards(a, x):
    """The same from the last to the first, two at a time."""
    n, d = x.shape
    y, lo, hi = np.ones(d), 0, d
    for t in range(n):
        k = hi - 1
        while k > lo:
            y[k] = 0.5 * y[k] + a[t % d, k]
            k -= 2
        lo = lo + 1 if x[t, 0] > 0.0 else 0
        hi = hi - 1 if x[t, 1] > 0.0 else d
    return np.sum(y * y) + np.sum(x)


PROGRAMS = [items, computed, number, three, in_a_branch, twice, pieces, downwards]


def arguments(n, d, dtype=np.float64):
    rng = np.random.default_rng(n)
    return rng.normal(size=(d, d)).astype(dtype), rng.normal(size=(n, d)).astype(dtype)


def differences(f, arguments, place, h=1e-6):
    found = np.zeros_like(arguments[place])
    for index in np.ndindex(found.shape):
        ends = []
        for sign in (1, -1):
            moved = [np.copy(argument) for argument in arguments]
            moved[place][index] += sign * h
            ends.append(f(*moved))
        found[index] = (ends[0] - ends[1]) / (2 * h)
    return found


def hold(f, many):
    """Values and gradients by the first two arguments, by both executors and differences."""
    fast, slow = (nbta.value_and_grad(f, (0, 1), compiled=how) for how in (True, False))
    for given in many:
        found, reference = fast(*given), slow(*given)
        np.testing.assert_allclose(found[0], f(*given), rtol=1e-12)
        for place in (0, 1):
            expected = differences(f, given, place)
            np.testing.assert_allclose(found[1][place], reference[1][place], rtol=1e-9, atol=1e-12)
            np.testing.assert_allclose(found[1][place], expected, rtol=1e-5, atol=1e-6)


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("f", PROGRAMS)
def test_gradients(f):
    hold(f, [arguments(4, 10), arguments(1, 2), arguments(0, 3)])


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("f", PROGRAMS)
def test_second_derivatives(f):
    def squared(a, x):
        return sum(np.sum(g * g) for g in nbta.grad(f, (0, 1))(a, x))

    given = arguments(3, 4)
    found, reference = (
        nbta.value_and_grad(squared, (0, 1), compiled=how)(*given) for how in (True, False)
    )
    for one, other in zip(found[1], reference[1], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("f", [items, computed, number, twice, pieces, downwards])
def test_the_inner_loop_saves_nothing(f):
    inner = "`for i in range(" if f is number else "`for i in range(j"
    inner = {computed: "`for i in range(d - 2", pieces: "`for k", downwards: "`while"}.get(f, inner)
    found = notes(f, *arguments(12, 13))
    assert not [note for note in found if f"an iteration of the loop {inner}" in note]


def test_in_single_precision():
    given = arguments(5, 11, np.float32)
    found, reference = (
        nbta.value_and_grad(items, (0, 1), compiled=how)(*given) for how in (True, False)
    )
    for one, other in zip(found[1], reference[1], strict=True):
        assert one.dtype == np.float32
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)
