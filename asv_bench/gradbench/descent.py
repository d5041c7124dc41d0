"""Gradient descent as in Pearlmutter and Siskind's programs, with derivatives in both modes."""

import numpy as np

import nbta

ENOUGH = 1e-5


def by_reverse(f):
    """The gradient of ``f`` by reverse mode."""
    return nbta.grad(f)


def by_forward(f):
    """The gradient of ``f`` by forward mode, a direction for each of two variables."""

    def gradient(x):
        return np.stack([nbta.jvp(f, x, direction)[1] for direction in np.eye(len(x))])

    return gradient


#: What the letters of functions stand for.
MODES = {"f": by_forward, "r": by_reverse}


def minimum(f, x, derive):
    """Where ``f`` is least, by steps along its gradient from ``x``.

    The steps' size is doubled after ten steps that all lead down, and halved at one that does not.
    """
    slope = derive(f)
    value, down, size, taken = f(x), slope(x), 1e-5, 0
    while np.sqrt(np.sum(down * down)) > ENOUGH:
        if taken == 10:
            size, taken = 2.0 * size, 0
        step = size * down
        if np.sqrt(np.sum(step * step)) <= ENOUGH:
            break
        following = f(x - step)
        if following < value:
            x = x - step
            value, down, taken = following, slope(x), taken + 1
        else:
            size, taken = 0.5 * size, 0
    return x


def maximum(f, x, derive):
    """Where ``f`` is greatest."""
    return minimum(lambda x: -f(x), x, derive)
