"""Adjoints of what loops save: what is copied in all grows as the iterations of the loops do."""

from itertools import product

import interpreted
import numpy as np
import pytest
from fuzz.ways import in_python

import nbta

SHORT = np.int64(3)


def short_loop(x, state, checkpoint):
    """A loop of a few iterations."""

    def step(k, state):
        return k + 1, state + 0.1 * nbta.sin(state * x)

    first = (np.int64(0), state)
    return nbta.while_loop(lambda k, state: k < SHORT, step, first, checkpoint=checkpoint)[1]


def in_branch(x, state, checkpoint):
    return nbta.cond(x > 0.0, lambda: short_loop(x, state, checkpoint), lambda: state * x)


def in_branches(x, state, checkpoint):
    return nbta.cond(x > 0.5, lambda: state - x, lambda: in_branch(x, state, checkpoint))


def in_loop_in_branch(x, state, checkpoint):
    """A loop of loops in a branch."""

    def step(k, state):
        return k + 1, in_branch(x * nbta.cos(state), state, checkpoint)

    def loop():
        return nbta.while_loop(
            lambda k, state: k < 2, step, (np.int64(0), state), checkpoint=checkpoint
        )[1]

    return nbta.cond(x > -0.5, loop, lambda: state * x)


PLACES = {f.__name__: f for f in (short_loop, in_branch, in_branches, in_loop_in_branch)}
CHECKPOINTS = (None, 2, "sqrt", "online")


@pytest.mark.slow_but_every(8)
@pytest.mark.parametrize(
    ("place", "inner", "outer"), list(product(PLACES, CHECKPOINTS, (None, "sqrt", 2)))
)
def test_what_second_derivatives_copy(place, inner, outer):
    def f(x):
        step = lambda state, item: (PLACES[place](item, state, inner), None)  # noqa: E731
        return nbta.scan(step, x[0], x, checkpoint=outer)[0]

    slope = nbta.grad(lambda x: nbta.sum(nbta.sin(nbta.grad(f)(x))), compiled=True)
    reference = nbta.grad(lambda x: nbta.sum(nbta.sin(nbta.grad(f)(x))), compiled=False)
    items, copied = np.random.default_rng(0).uniform(-1.0, 1.0, 64), []
    for length in (16, 32, 64):
        before = interpreted.moved[0]
        with in_python():
            found = slope(items[:length])
        copied.append(interpreted.moved[0] - before)
        np.testing.assert_allclose(found, reference(items[:length]), rtol=1e-9, atol=1e-9)
    assert slope.every_trace()[0].runner.fallbacks == 0
    assert copied[2] - copied[1] <= 2.4 * (copied[1] - copied[0]) + 64, copied
