"""Means over simulated paths, with their derivatives path by path."""

import math

import numpy as np
from numba import njit

from .program import Program, rng

STEPS, STRIKE = 50, 100.0

# An Asian call: what the mean of a price over a year is above the strike, discounted.


def asian(terms, noise):
    """For an initial price, a rate and a volatility; ``noise`` (steps, paths) is normal."""
    price, rate, volatility = terms
    steps, paths = noise.shape
    step = 1.0 / steps
    drift, spread = (rate - 0.5 * volatility**2) * step, volatility * np.sqrt(step)
    s, total = price * np.ones(paths), np.zeros(paths)
    for t in range(steps):
        s = s * np.exp(drift + spread * noise[t])
        total = total + s
    return np.exp(-rate) * np.mean(np.maximum(total / steps - STRIKE, 0.0))


@njit(cache=True)
def asian_plain(terms, noise):
    price, rate, volatility = terms
    steps, paths = noise.shape
    step = 1.0 / steps
    drift, spread = (rate - 0.5 * volatility**2) * step, volatility * math.sqrt(step)
    s, total = np.full(paths, price), np.zeros(paths)
    for t in range(steps):
        for i in range(paths):
            s[i] *= math.exp(drift + spread * noise[t, i])
            total[i] += s[i]
    payoff = 0.0
    for i in range(paths):
        payoff += max(total[i] / steps - STRIKE, 0.0)
    return math.exp(-rate) * payoff / paths


def asian_in_jax(terms, noise):
    import jax
    import jax.numpy as jnp

    price, rate, volatility = terms
    steps, paths = noise.shape
    step = 1.0 / steps
    drift, spread = (rate - 0.5 * volatility**2) * step, volatility * jnp.sqrt(step)

    def advance(carry, z):
        s, total = carry
        s = s * jnp.exp(drift + spread * z)
        return (s, total + s), None

    start = price * jnp.ones(paths), jnp.zeros(paths)
    (_, total), _ = jax.lax.scan(advance, start, noise)
    return jnp.exp(-rate) * jnp.mean(jnp.maximum(total / steps - STRIKE, 0.0))


def asian_arguments(n):
    return np.array([100.0, 0.03, 0.2]), rng(n).normal(size=(STEPS, n))


PROGRAMS = [
    Program("asian option", asian, asian_plain, asian_arguments, 20_000, 9, in_jax=asian_in_jax),
]
