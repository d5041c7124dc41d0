"""Arrays are filled around the items that loops store before anything reads them.

The items that a fill leaves out are given a number that no result may have.
"""

import filled_programs
import numpy as np
import pytest
from frontend_random import built
from fuzz.ways import executed

import nbta
from nbta.codegen import windows
from nbta.ops.core import filling


@pytest.fixture
def boxes(monkeypatch):
    """The blocks that are filled around a box, in which there is a large number."""
    found, around = [], filling._put_around

    def put(code, block, put, axis, place, spans):
        if axis == 0:
            found.append(block)
            large = np.array(1e30 if block.dtype.kind == "f" else 77, block.dtype)
            windows.fill(code, block, code.number(large))
        around(code, block, put, axis, place, spans)

    monkeypatch.setattr(filling, "_put_around", put)
    monkeypatch.setattr(filling, "WHOLE_FILL", 0)
    return found


def between_ends(x, w):
    u = x.copy()
    for _ in range(3):
        new = np.empty(len(u))
        new[0] = u[0]
        new[len(u) - 1] = u[len(u) - 1]
        for i in range(1, len(u) - 1):
            new[i] = u[i] + 0.2 * np.sin(u[i - 1] - 2 * u[i] + u[i + 1])
        u = new
    return np.sum(u * w)


def sums_so_far(x, w):
    """An item is read in the iteration after the one that stores it."""
    sums = np.zeros(len(x))
    for i in range(len(x) - 2, 0, -1):
        sums[i] = 0.5 * sums[i + 1] + x[i]
    return np.sum(sums * w)


def rows_of_table(x, w):
    table = np.zeros((4, len(x)))
    for j in range(len(x)):
        table[0, j] = x[j] * w[j]
    for i in range(1, 4):
        for j in range(len(x)):
            best = table[i - 1, j]
            if j > 0 and table[i - 1, j - 1] < best:
                best = table[i - 1, j - 1]
            table[i, j] = best + x[j] * w[i]
    return np.sum(table[3] * w)


def plane(x, w):
    u = np.outer(x, w)
    for _ in range(2):
        new = np.ones((len(x), len(x)))
        for j in range(1, len(x) - 1):
            for i in range(2, len(x)):
                new[i, j] = u[i - 1, j] + 0.5 * u[i, j + 1] + 0.1 * new[i - 1, j - 1]
        u = new
    return np.sum(u * u)


def read_too_early(x, w):
    new, total = np.zeros(len(x)), 0.0
    for i in range(len(x) - 1):
        new[i] = x[i] * w[i]
        total += new[i + 1]
    return np.sum(new * w) + total


def wraps_around(x, w):
    sums = np.zeros(len(x))
    for i in range(len(x)):
        sums[i] = 0.5 * sums[i - 1] + x[i]
    return np.sum(sums * w)


def every_other(x, w):
    new = np.zeros(len(x))
    for i in range(0, len(x), 2):
        new[i] = x[i]
    return np.sum(new * w)


def triangle(x, w):
    table = np.ones((len(x), len(x)))
    for i in range(len(x)):
        for j in range(i):
            table[i, j] = x[i] * w[j]
    return np.sum(table * table)


def until_one_is_large(x, w):
    new, i = np.ones(len(x)), 0
    while i < len(x) and x[i] < 1:
        new[i] = x[i]
        i += 1
    return np.sum(new * w)


def under_a_condition(x, w):
    new = np.ones(len(x))
    for i in range(len(x)):
        if x[i] > 0:
            new[i] = x[i]
    return np.sum(new * w)


def read_before(x, w):
    new = np.ones(len(x))
    total = new[int(abs(w[0])) + 1]
    for i in range(len(x)):
        new[i] = x[i]
    return np.sum(new * w) + total


def arguments(n, seed=0):
    random = np.random.default_rng(n + seed)
    return random.normal(size=n), random.normal(size=n)


@pytest.mark.parametrize("f", [between_ends, sums_so_far, rows_of_table, plane])
def test_what_loops_store_is_not_filled(f, boxes):
    with executed(machine_code=False):
        found = nbta.function(f, compiled=True)
        for given in (arguments(9), arguments(4), arguments(5)):
            np.testing.assert_allclose(found(*given), f(*given), rtol=1e-12)
    assert boxes


@pytest.mark.parametrize(
    "f",
    [read_too_early, wraps_around, every_other, triangle, until_one_is_large, under_a_condition,
     read_before],
)  # fmt: skip
def test_what_may_be_read_is_filled(f, boxes):
    with executed(machine_code=False):
        found = nbta.function(f, compiled=True)(*arguments(9))
    np.testing.assert_allclose(found, f(*arguments(9)), rtol=1e-12)
    assert not boxes


def test_first_sums_are_stores(boxes):
    gradient = nbta.value_and_grad(between_ends, (0, 1), compiled=True)
    with executed(machine_code=False):
        gradient(*arguments(9))
    assert len(boxes) >= 2
    assert "fill_around: " in gradient.explain()


def test_as_many_rows_as_a_loop_has_counted_are_not_filled(boxes):
    """Adjoint iterations are as many as the loop's counter says, which waits for the loop."""

    def f(x, w):
        costs, table = np.outer(x, w), np.zeros((len(x), len(w)))
        for i in range(1, len(x)):
            for j in range(len(w)):
                table[i, j] = costs[i, j] + max(table[i - 1, j], 0.2)
        return np.sum(table)

    gradient = nbta.grad(f, (0, 1), compiled=True)
    with executed(machine_code=False):
        found = gradient(*arguments(9))
    for one, other in zip(found, nbta.grad(f, (0, 1), compiled=False)(*arguments(9)), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)
    assert len(boxes) == 2


def test_stores_of_negative_zeros_are_sums(boxes):
    """What is added to 0.0 is never -0.0, and neither is what is stored in place of that."""

    def f(x):
        out = np.zeros(len(x))
        for i in range(len(x)):
            out[i] = -x[i]
        return np.sum(out * np.zeros(len(x)))

    given = np.arange(40.0)
    found, other = (nbta.grad(f, compiled=how)(given) for how in (True, False))
    np.testing.assert_array_equal(np.signbit(found), np.signbit(other))


def check_program(seed, machine_code=False):
    """A random program by both executors, where arrays have two lengths, one of them twice."""
    f, _ = built(filled_programs.program(seed))
    fast, slow = (nbta.value_and_grad(f, (0, 1), compiled=how) for how in (True, False))
    for given in (arguments(7), arguments(12), arguments(7, 50)):
        with executed(machine_code):
            value, slopes = fast(*given)
        expected, others = slow(*given)
        np.testing.assert_allclose(value, expected, rtol=1e-10)
        np.testing.assert_allclose(value, f(*given), rtol=1e-10)
        for one, other in zip(slopes, others, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-11)


@pytest.mark.parametrize("seed", range(4))
def test_random_programs(seed, boxes):
    check_program(seed)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(100, 160, 10))
def test_many_random_programs(first, boxes):
    for seed in range(first, first + 10):
        check_program(seed, machine_code=seed % 4 == 0)
