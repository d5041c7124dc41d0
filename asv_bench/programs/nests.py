"""Loops within loops over items."""

import math

import numpy as np
from numba import njit

import nbta

from .loops import repeat
from .program import Program, rng

# All pairs.


def pairs(x):
    """Sum of ``x[i] * tanh(x[j])`` over all ``j < i``."""

    def row(i, s):
        return repeat(0, i, lambda j, s: s + x[i] * nbta.tanh(x[j]), s)

    return repeat(0, x.shape[0], row, 0.0)


@njit(cache=True)
def pairs_plain(x):
    s = 0.0
    for i in range(len(x)):
        for j in range(i):
            s += x[i] * math.tanh(x[j])
    return s


@njit(cache=True)
def pairs_adjoint(x):
    s, bars = 0.0, np.zeros(len(x))
    for i in range(len(x)):
        for j in range(i):
            s += x[i] * math.tanh(x[j])
    for i in range(len(x) - 1, -1, -1):
        for j in range(i - 1, -1, -1):
            y = math.tanh(x[j])
            bars[i] += y
            bars[j] += x[i] * (1.0 - y * y)
    return s, bars


def pairs_in_jax(x):
    """A loop over rows: JAX takes no gradient of a loop with a traced number of iterations."""
    import jax.numpy as jnp
    from jax import lax

    def row(s, i):
        below = jnp.arange(x.shape[0]) < i
        return s + jnp.sum(jnp.where(below, x[i] * jnp.tanh(x), 0.0)), None

    return lax.scan(row, 0.0, jnp.arange(x.shape[0]))[0]


def pairs_arguments(n):
    return (rng(n).normal(size=n),)


# Newton's method for each of many equations.

PRECISION = 1e-10


def kepler(anomalies, eccentricities):
    """Sum of the sines of all solutions of Kepler's equation ``e - k sin(e) = m``."""

    def one(i, s):
        m, k = anomalies[i], eccentricities[i]

        def newton(e, _):
            step = (e - k * nbta.sin(e) - m) / (1.0 - k * nbta.cos(e))
            return e - step, step

        e, _ = nbta.while_loop(
            lambda _, step: nbta.abs(step) > PRECISION, newton, (m, nbta.ones_like(m))
        )
        return s + nbta.sin(e)

    return repeat(0, anomalies.shape[0], one, 0.0)


@njit(cache=True)
def kepler_plain(anomalies, eccentricities):
    s = 0.0
    for i in range(len(anomalies)):
        m, k = anomalies[i], eccentricities[i]
        e, step = m, 1.0
        while abs(step) > PRECISION:
            step = (e - k * math.sin(e) - m) / (1.0 - k * math.cos(e))
            e -= step
        s += math.sin(e)
    return s


def kepler_in_jax(anomalies, eccentricities):
    """So many steps as always do, for all at once: reverse mode takes no ``while_loop``."""
    import jax.numpy as jnp
    from jax import lax

    m, k = anomalies, eccentricities

    def newton(_, state):
        e, step = state
        goes_on = jnp.abs(step) > PRECISION
        step = jnp.where(goes_on, (e - k * jnp.sin(e) - m) / (1.0 - k * jnp.cos(e)), 0.0)
        return e - step, step

    e, _ = lax.fori_loop(0, 8, newton, (m, jnp.ones_like(m)))
    return jnp.sum(jnp.sin(e))


def kepler_arguments(n):
    return rng(n).uniform(0.3, 2.8, n), rng(n + 1).uniform(0.05, 0.6, n)


PROGRAMS = [
    Program("pairs", pairs, pairs_plain, pairs_arguments, 600, 6, adjoint=pairs_adjoint,
            in_jax=pairs_in_jax),
    Program("newton", kepler, kepler_plain, kepler_arguments, 5000, 4, (0, 1),
            in_jax=kepler_in_jax),
]  # fmt: skip
