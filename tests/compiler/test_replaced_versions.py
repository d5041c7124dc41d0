"""Iterations that read an array and change it afterwards, with their adjoint in the same iteration.

The adjoint needs what was read before. To read it again from the array as it was would take a copy
of the whole array in each iteration: the work of a loop over rows would grow with their square.
"""

import math
import random

import numpy as np
import pytest
from many import each
from test_in_place import held

import nbta

X = np.array([0.4, -0.7, 1.1])
M = np.linspace(-0.9, 1.1, 15).reshape(5, 3)


def normalised(x, m):
    """Weights of each row, and their sum: what an E step computes."""
    r, total = np.zeros(m.shape), 0.0
    for i in range(m.shape[0]):
        s = 0.0
        for j in range(m.shape[1]):
            r[i, j] = math.exp(x[j] * m[i, j]) / (1.5 + x[j])
            s += r[i, j]
        for j in range(m.shape[1]):
            r[i, j] /= s
        total += math.log(s)
    return total


def one_item(x, m):
    """An item of the row that is read is replaced, and all are read again."""
    r, total = m.copy(), 0.0
    for i in range(m.shape[0]):
        s = 0.0
        for j in range(m.shape[1]):
            s += x[j] * math.sin(r[i, j] * x[j])
        r[i, 0] = 2.0
        for j in range(m.shape[1]):
            s += x[j] * math.sin(r[i, j] * x[j])
        total += s * s
    return total


def branched(x, m):
    """Only some iterations change what they have read."""
    r, total = m.copy(), 0.0
    for i in range(m.shape[0]):
        s = 0.0
        for j in range(m.shape[1]):
            s += x[j] * math.sin(r[i, j] * x[j])
        if m[i, 0] > 0.0:
            for j in range(m.shape[1]):
                r[i, j] = r[i, j] * 2.0 + 1.0
        total += s * s
    return total


def check(f):
    held(f, X, M, make=nbta.value_and_grad)


@pytest.mark.parametrize("f", [normalised, one_item, branched])
def test_no_array_is_copied_in_iterations(f):
    check(f)


# Random iterations: steps that read rows, change them, or do both.


def reads(i, s, x, r, m):
    for j in range(m.shape[1]):
        s += x[j] * math.sin(r[i, j] * x[j])
    return s


def reads_a_neighbour(i, s, x, r, m):
    for j in range(m.shape[1] - 1):
        s += math.sin(x[j]) * x[j + 1] * r[i, j] * r[i, j + 1]
    return s


def changes(i, s, x, r, m):
    for j in range(m.shape[1]):
        r[i, j] = 0.5 * r[i, j] + m[i, j]
    return s


def changes_by_what_is_differentiated(i, s, x, r, m):
    for j in range(m.shape[1]):
        r[i, j] = math.tanh(x[j] * m[i, j])
    return s


def changes_an_item(i, s, x, r, m):
    r[i, 1] = 0.25 * s
    return s


def changes_in_a_branch(i, s, x, r, m):
    if m[i, 1] > 0.0:
        for j in range(m.shape[1]):
            r[i, j] = r[i, j] * 2.0 + 1.0
    return s


def changes_and_reads(i, s, x, r, m):
    for j in range(m.shape[1]):
        r[i, j] = math.exp(x[j] * m[i, j])
        s += r[i, j] * r[i, j]
    return s


STEPS = [reads, reads_a_neighbour, changes, changes_by_what_is_differentiated, changes_an_item,
         changes_in_a_branch, changes_and_reads]  # fmt: skip


def program(seed):
    rng = random.Random(seed)
    steps = tuple(rng.choice(STEPS) for _ in range(rng.randint(2, 5)))

    def f(x, m):
        r, total = m.copy(), 0.0
        for i in range(m.shape[0]):
            s = x[0]
            for step in steps:
                s = step(i, s, x, r, m)
            total += s * s
        return total

    f.__name__ = "_then_".join(step.__name__ for step in steps)
    return f


@pytest.mark.parametrize("seed", range(3))
def test_random_iterations(seed):
    check(program(seed))


@pytest.mark.slow
@pytest.mark.parametrize("batch", range(6))
def test_many_random_iterations(batch):
    each(range(3 + 15 * batch, 18 + 15 * batch), lambda seed: check(program(seed)))
