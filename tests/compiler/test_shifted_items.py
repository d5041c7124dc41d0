"""Items that an iteration reads ahead and later ones read again: one tape, if none changes."""

import re
from types import SimpleNamespace

import numpy as np
import pytest

import nbta
from nbta.compiler import shifted_items
from nbta.compiler.access_sets import Place
from nbta.compiler.shifted_items import Sweeps


def saved(slope):
    """How many tapes of items there are."""
    return len(set(re.findall(r"tape_of_GetItem\w*", slope.explain())))


def hold(f, *calls):
    """Value and gradient, compiled, against operations one by one and against differences."""
    slope, reference = (nbta.value_and_grad(f, (0, 1), compiled=kind) for kind in (True, False))
    for v, p, n in calls:
        (value, found), (same, expected) = slope(v, p, n), reference(v, p, n)
        np.testing.assert_allclose(value, same, rtol=1e-13)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-13)
        way, h = np.cos(np.arange(v.size) + 1.0).reshape(v.shape), 1e-6
        ends = [f(v + t * way, p + 0.7 * t, n) for t in (h, -h)]
        along = np.sum(found[0] * way) + 0.7 * found[1]
        np.testing.assert_allclose(along, (ends[0] - ends[1]) / (2.0 * h), rtol=1e-6, atol=1e-8)
    return slope


def vector(n, seed=0):
    return np.random.default_rng(seed).uniform(0.5, 1.0, n)


def sweep(one, other, changed, step):
    """Sweeps in place whose iterations read two items, which are shorter each time."""

    def f(v, p, n):
        v = v.copy()
        for i in range(n):
            low, high = 3, len(v) - 3 - i
            first, end = (low, high) if step > 0 else (high - 1, low - 1)
            for j in range(first, end, step):
                v[j + changed] = p * np.sin(v[j + one]) * v[j + other]
        return np.sum(v * v)

    return f


SHIFTED = [(1, 0, 0, 1), (0, -1, 2, 1), (-2, -1, 0, -1)]
CHANGED = [(0, -1, 0, 1), (1, 0, 1, 1)]


@pytest.mark.smoke_every(2)
@pytest.mark.parametrize(("one", "other", "changed", "step"), SHIFTED + CHANGED)
def test_one_tape_for_both_unless_an_iteration_changes_the_item(one, other, changed, step):
    calls = [(vector(n), 0.9, 3) for n in (12, 6)]  # up to none of the iterations
    slope = hold(sweep(one, other, changed, step), *calls)
    assert (saved(slope) == 1) == ((one, other, changed, step) in SHIFTED)


def tree(v, p, n):
    """As a binomial tree is gone through, with early exercise."""
    v = v.copy()
    for i in range(n - 1, -1, -1):
        for j in range(i + 1):
            v[j] = max(0.6, 0.99 * (p * v[j + 1] + (1.0 - p) * v[j]) * v[j])
    return v[0]


def outside(v, p, n):
    """No iteration reads the item that the first one would, where there is none."""
    v = v.copy()
    for i in range(n):
        for j in range(10 * i, len(v) - 1):
            v[j] = p * v[j + 1] * v[j]
    return np.sum(v * v)


def plate(v, p, n):
    """Shifted along the second axis, and three in a row."""
    v = v.copy()
    for i in range(n):
        for j in range(1, v.shape[1] - 1):
            v[i, j] = p * v[i, j + 1] * np.sin(v[i, j]) + v[i, j + 1] * v[i, j]
    return np.sum(v * v)


def two(v, p, n):
    """The other array is changed at the item that the next iteration reads."""
    u, v = v * v, v.copy()
    for _ in range(n):
        for j in range(len(v) - 1):
            v[j] = p * v[j + 1] * v[j] * u[j] * u[j + 1]
            u[j + 1] = np.sin(v[j])
    return np.sum(u) + np.sum(v)


def chosen(v, p, n):
    """A branch changes the item ahead."""
    v = v.copy()
    for _ in range(n):
        for j in range(len(v) - 1):
            a = v[j] * v[j + 1]
            if v[j] > 0.7:
                v[j + 1] = 0.5 * a
            v[j] = p * a
    return np.sum(v * v)


def reset(v, p, n):
    """An iteration changes what the one before has read ahead, and reads it then."""
    v = v.copy()
    for _ in range(n):
        for j in range(1, len(v) - 1):
            ahead = v[j + 1]
            v[j] = v[j] * ahead
            v[j] = p * np.sin(v[j]) * ahead
    return np.sum(v * v)


def alone(v, p, n):
    """One loop, without one around it."""
    v = v.copy()
    for j in range(n, len(v) - 1):
        v[j] = p * v[j + 1] * v[j]
    return np.sum(v * v)


def other_axes(v, p, n):
    """Neighbours in arrays with other numbers of axes, and diagonals, which are none."""
    m, total = np.outer(v, np.cos(v)), 0.0
    for _ in range(n):
        for j in range(len(v) - 1):
            total = np.sin(total * v[j] + m[j, j + 1] * v[j + 1] * m[0, j]) * m[j, j]
    return p * total


@pytest.mark.smoke_every(2)
@pytest.mark.parametrize(
    ("f", "shape", "n"),
    [
        (tree, (8,), (7, 1, 0)),
        (outside, (25,), (5, 2, 0)),
        (plate, (3, 9), (3, 0)),
        (two, (9,), (3, 0)),
        (chosen, (9,), (3,)),
        (reset, (9,), (3,)),
        (alone, (9,), (0, 7, 8, 12)),
        (other_axes, (9,), (3, 0)),
    ],
)
def test_programs(f, shape, n):
    v = vector(int(np.prod(shape)), 1).reshape(shape)
    hold(f, *((v, 0.9, each) for each in n))


def trinomial(v, p, n):
    """Each item is read in three iterations."""
    v = v.copy()
    for i in range(n):
        for j in range(10 * i, len(v) - 2):
            v[j] = p * v[j + 2] * np.sin(v[j + 1]) * v[j]
    return np.sum(v * v)


def downwards(v, p, n):
    """Four items, from the last to the first."""
    v = v.copy()
    for i in range(n):
        for j in range(len(v) - 4, i - 1, -1):
            v[j + 3] = p * v[j] * v[j + 1] * v[j + 2] * v[j + 3]
    return np.sum(v * v)


def three_alone(v, p, n):
    """One loop, without one around it."""
    v = v.copy()
    for j in range(len(v) - 2 - n):
        v[j] = p * v[j + 1] * v[j] * v[j + 2]
    return np.sum(v * v)


def middle(v, p, n):
    """What is read ahead is the same for one iteration more, and then another."""
    v = v.copy()
    for _ in range(n):
        for j in range(len(v) - 2):
            v[j + 1] = p * v[j + 2] * v[j + 1] * v[j]
    return np.sum(v * v)


def apart(v, p, n):
    """Two pairs of neighbours, which are not neighbours of each other."""
    v = v.copy()
    for _ in range(n):
        for j in range(len(v) - 4):
            v[j] = p * v[j + 4] * v[j + 3] * v[j + 1] * v[j]
    return np.sum(v * v)


@pytest.mark.smoke_every(2)
@pytest.mark.parametrize(
    ("f", "length", "n", "tapes"),
    [
        (trinomial, 23, (3, 2, 0), 1),
        (downwards, 9, (3, 7, 0), 1),
        (three_alone, 9, (0, 5, 6, 7, 12), 1),
        (middle, 7, (3,), 2),
        (apart, 9, (3,), 2),
    ],
)
def test_one_tape_for_a_row_of_neighbours(f, length, n, tapes):
    v = vector(length, 1)
    assert saved(hold(f, *((v, 0.9, each) for each in n))) == tapes


def burgers(v, p, n):
    """One of the factors is a difference of both items, which is computed again."""
    v = v.copy()
    for _ in range(n):
        for i in range(len(v) - 1):
            v[i] = v[i] - 0.1 * p * v[i] * (v[i + 1] - v[i])
    return np.sum(v * v)


@pytest.mark.smoke
def test_what_is_saved_is_chosen_by_what_one_tape_can_have():
    slope = hold(burgers, (vector(9), 0.9, 3))
    assert saved(slope) == 1
    assert "`v[i + 1]`" in slope.explain()
    assert "iteration of the loop `for i in range" in slope.explain()


@pytest.mark.smoke_every(2)
@pytest.mark.parametrize(("f", "n"), [(tree, 6), (three_alone, 2)])
def test_second_derivatives(f, n):
    v = vector(7, 2)
    nbta.testing.check_grads(lambda v, p: f(v, p, n), (v, 0.9), order=2)
    way = np.cos(np.arange(7.0))
    plain, compiled = (
        nbta.function(lambda v, p: nbta.hvp(lambda v: f(v, p, n), (v,), (way,)), compiled=kind)(
            v, 0.9
        )
        for kind in (False, True)
    )
    for one, other in zip(plain, compiled, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-11)


def test_items_of_one_tape_are_saved_in_place_of_their_sum():
    def f(v, p, n):
        v, q = v.copy(), 1.0 - p
        for i in range(n):
            for j in range(len(v) - 2 - i):
                v[j] = p * p * (p * v[j + 2] + 0.6 * v[j + 1] + q * v[j])
        return v[0] * v[1]

    slope = hold(f, (vector(9), 0.7, 4), (vector(3), 0.4, 1), (vector(2), 0.4, 3))
    assert saved(slope) == 1
    assert "tape_of_Add" not in slope.explain()


def test_items_that_no_tape_links_stay_apart():
    """Nothing needs ``v[j + 1]``: of what two iterations read, one tape cannot do."""

    def f(v, p, n):
        v = v.copy()
        for i in range(n):
            for j in range(len(v) - 2 - i):
                v[j] = np.sin(p * v[j + 2] * v[j]) + 0.5 * v[j + 1]
        return v[0] * v[1]

    hold(f, (vector(9), 0.7, 4), (vector(3), 0.4, 1), (vector(2), 0.4, 3))


def test_pairs_are_of_one_array_and_one_iteration_apart(monkeypatch):
    """Each item's place in its sweep is found twice, however many there are."""
    found = []

    def place(counts, op, body):
        found.append(op)
        return None if op is None else Place((), op)

    monkeypatch.setattr(shifted_items, "array_read", lambda _, value: value.array)
    monkeypatch.setattr(shifted_items, "place_in_sweep", place)
    names = [("a", 1), ("b", 2), ("a", 2), (None, 1), ("b", None), ("a", 1), ("a", 4), ("b", 1)]
    items = [SimpleNamespace(array=array, op=number) for array, number in names]
    wanted = [(names[k], names[n]) for k, n in ((1, 7), (2, 0), (2, 5))]
    pairs = Sweeps(None, SimpleNamespace(body=None), items).pairs()
    assert [tuple((one.array, one.op) for one in pair) for pair in pairs] == wanted
    assert len(found) == 2 * sum(array is not None for array, _ in names)
