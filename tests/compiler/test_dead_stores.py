"""Adjoints that are taken once are not set to zero; those that are read again are."""

import re

import grid_programs
import numpy as np
import pytest
from frontend_random import built
from fuzz.ways import executed
from test_saved_around import hold

import nbta


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


def backwards(x, w):
    out = np.zeros(len(x))
    for i in range(len(x) - 1, -1, -1):
        out[i] = x[i] * w[i]
    return np.sum(out * out)


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


def triangle(x, w):
    table = np.zeros((len(x), len(x)))
    for i in range(len(x)):
        for j in range(i):
            table[i, j] = x[i] * w[j] + np.sin(x[j])
    return np.sum(table * table)


def assigned_again(x, w):
    """The first loop's items have no part in the result, but for the last two."""
    out = np.zeros(len(x))
    for i in range(len(x)):
        out[i] = x[i] * w[i]
    for i in range(len(x) - 2):
        out[i] = np.sin(x[i + 1])
    return np.sum(out * w)


def assigned_in_each_step(x, w):
    out = np.zeros(len(x))
    for t in range(len(x) // 3):
        for i in range(len(x)):
            out[i] = x[i] * w[i] + t
        out[1] *= out[0]
    return np.sum(out * out)


def some_assigned_twice(x, w):
    out = np.zeros(len(x))
    for i in range(len(x)):
        out[i // 2] = x[i] * w[i]
    return np.sum(out * w)


def wrapped_around(x, w):
    out = np.zeros(len(x))
    for i in range(2 * len(x)):
        out[i - len(x)] = x[i % len(x)] * w[i // 2] + i
    return np.sum(out * out)


def end_assigned_again(x, w):
    out = np.zeros(len(x))
    for i in range(len(x)):
        out[i] = x[i] * w[i]
    out[len(x) - 1] = w[0]
    out[0] = x[1]
    return np.sum(out * out)


def end_assigned_before(x, w):
    """The adjoint at the ends is read after the loop, which has taken that of one end."""
    out = np.zeros(len(x))
    out[0] = w[1]
    out[len(x) - 1] = x[1]
    for i in range(len(x) - 1):
        out[i] = x[i] * w[i]
    return np.sum(out * out)


def read_in_next_iteration(x, w):
    out = np.zeros(len(x) + 1)
    for i in range(len(x)):
        out[i + 1] = x[i] * w[i]
        out[i] = out[i + 1] * x[i] + 1
    return np.sum(out * out)


def in_place(x, w):
    v = x.copy()
    for t in range(3):
        for j in range(len(v) - 1):
            v[j] = w[t] * v[j + 1] + np.sin(v[j])
    return np.sum(v * v)


def given_back(x, w):
    out = x * w
    for t in range(2):
        for i in range(t, len(x)):
            out[i] = np.sin(x[i]) * (t + 1)
        out = out + w
    return np.sum(out * x)


DEAD = [between_ends, backwards, rows_of_table, triangle]
READ = [
    assigned_again, assigned_in_each_step, some_assigned_twice, wrapped_around, end_assigned_again,
    end_assigned_before, read_in_next_iteration, in_place, given_back,
]  # fmt: skip


def arguments(n):
    random = np.random.default_rng(n)
    return random.normal(size=n), random.normal(size=n)


@pytest.mark.parametrize("f", [*DEAD, *READ])
def test_gradients(f):
    hold(f, [arguments(7), arguments(13), arguments(4)])


@pytest.mark.parametrize("f", DEAD)
def test_no_adjoint_is_set_to_zero(f):
    gradient = nbta.value_and_grad(f, (0, 1), compiled=True)
    gradient(*arguments(9))
    assert re.search(r"drop_dead_stores: .*out of loops: \d+ SetItem", gradient.explain())


@pytest.mark.parametrize("f", [some_assigned_twice, wrapped_around, assigned_in_each_step])
def test_adjoints_that_are_read_again_are_set_to_zero(f):
    gradient = nbta.value_and_grad(f, (0, 1), compiled=True)
    gradient(*arguments(9))
    assert "drop_dead_stores" not in gradient.explain()


def check_program(seed, machine_code=False):
    """A random program by both executors, where the arrays have two lengths."""
    f, _ = built(grid_programs.program(seed))
    fast, slow = (nbta.value_and_grad(f, (0, 1), compiled=how) for how in (True, False))
    for given in (arguments(7), arguments(12)):
        with executed(machine_code):
            value, slopes = fast(*given)
        expected, others = slow(*given)
        np.testing.assert_allclose(value, expected, rtol=1e-10)
        np.testing.assert_allclose(value, f(*given), rtol=1e-10)
        for one, other in zip(slopes, others, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-11)


@pytest.mark.parametrize("seed", range(6))
def test_random_programs(seed):
    check_program(seed)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(100, 160, 10))
def test_many_random_programs(first):
    for seed in range(first, first + 10):
        check_program(seed, machine_code=seed % 4 == 0)
