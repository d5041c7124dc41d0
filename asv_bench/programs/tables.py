"""Tables that are filled from their neighbours: alignments, grids, trees."""

import math

import numpy as np
from numba import njit

import nbta

from .loops import repeat, repeat_down
from .program import Program, rng

FAR = 1e10

# Soft dynamic time warping.


def soft_dtw(x, y):
    """How far two series are from each other, the steps of each at will, by a soft minimum."""
    n, m = x.shape[0], y.shape[0]

    def row(i, r):
        def column(j, r):
            a, b, c = r[i - 1, j - 1], r[i - 1, j], r[i, j - 1]
            least = nbta.minimum(nbta.minimum(a, b), c)
            soft = nbta.exp(least - a) + nbta.exp(least - b) + nbta.exp(least - c)
            off = x[i - 1] - y[j - 1]
            return nbta.set_item(r, (i, j), off * off + least - nbta.log(soft))

        return repeat(1, m + 1, column, r)

    r = nbta.set_item(nbta.fill((n + 1, m + 1), FAR), (0, 0), 0.0)
    return repeat(1, n + 1, row, r)[-1, -1]


def soft_dtw_by_scans(x, y):
    """The same by nested scans: one over rows, which carry the row above, and one along a row."""

    def row(above, x):
        def column(left, here):
            y, corner, over = here
            soft = -nbta.logsumexp(-nbta.stack([corner, over, left]))
            value = (x - y) ** 2 + soft
            return value, value

        _, values = nbta.scan(column, FAR, (y, above[:-1], above[1:]))
        return nbta.concatenate([nbta.fill((1,), FAR), values]), None

    first = nbta.concatenate([nbta.zeros((1,)), nbta.fill(y.shape, FAR)])
    return nbta.scan(row, first, x)[0][-1]


@njit(cache=True)
def soft_dtw_plain(x, y):
    n, m = len(x), len(y)
    r = np.full((n + 1, m + 1), FAR)
    r[0, 0] = 0.0
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            a, b, c = r[i - 1, j - 1], r[i - 1, j], r[i, j - 1]
            least = min(min(a, b), c)
            soft = math.exp(least - a) + math.exp(least - b) + math.exp(least - c)
            off = x[i - 1] - y[j - 1]
            r[i, j] = off * off + least - math.log(soft)
    return r[n, m]


@njit(cache=True)
def soft_dtw_adjoint(x, y):
    """The table holds all that the way back needs: weights are ``exp`` of differences in it."""
    n, m = len(x), len(y)
    r = np.full((n + 1, m + 1), FAR)
    r[0, 0] = 0.0
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            a, b, c = r[i - 1, j - 1], r[i - 1, j], r[i, j - 1]
            least = min(min(a, b), c)
            soft = math.exp(least - a) + math.exp(least - b) + math.exp(least - c)
            off = x[i - 1] - y[j - 1]
            r[i, j] = off * off + least - math.log(soft)
    bars, x_bar, y_bar = np.zeros((n + 1, m + 1)), np.zeros(n), np.zeros(m)
    bars[n, m] = 1.0
    for i in range(n, 0, -1):
        for j in range(m, 0, -1):
            bar, off = bars[i, j], x[i - 1] - y[j - 1]
            x_bar[i - 1] += 2.0 * off * bar
            y_bar[j - 1] -= 2.0 * off * bar
            soft = r[i, j] - off * off
            bars[i - 1, j - 1] += bar * math.exp(soft - r[i - 1, j - 1])
            bars[i - 1, j] += bar * math.exp(soft - r[i - 1, j])
            bars[i, j - 1] += bar * math.exp(soft - r[i, j - 1])
    return r[n, m], (x_bar, y_bar)


def soft_dtw_in_jax(x, y):
    """Nested scans."""
    import jax
    import jax.numpy as jnp
    from jax import lax

    def row(above, x):
        def column(left, here):
            y, corner, over = here
            soft = -jax.nn.logsumexp(-jnp.stack([corner, over, left]))
            value = (x - y) ** 2 + soft
            return value, value

        _, values = lax.scan(column, FAR, (y, above[:-1], above[1:]))
        return jnp.concatenate([jnp.array([FAR]), values]), None

    first = jnp.full(y.shape[0] + 1, FAR).at[0].set(0.0)
    return lax.scan(row, first, x)[0][-1]


def soft_dtw_arguments(n):
    random = rng(n)
    return random.normal(size=n).cumsum() * 0.3, random.normal(size=n + 2).cumsum() * 0.3


# The heat equation.

STEPS = 200


def heat(u, k):
    """Sum of squares of temperatures after some steps, on a rod of changing conductivity."""
    n = u.shape[0]

    def step(_, u, v):
        def cell(i, v):
            return nbta.set_item(v, i, u[i] + k[i] * (u[i - 1] - 2.0 * u[i] + u[i + 1]))

        return repeat(1, n - 1, cell, v), u

    u, _ = repeat(0, STEPS, step, u, u)
    return nbta.sum(u * u)


@njit(cache=True)
def heat_plain(u, k):
    n, u, v = len(u), u.copy(), u.copy()
    for _ in range(STEPS):
        for i in range(1, n - 1):
            v[i] = u[i] + k[i] * (u[i - 1] - 2.0 * u[i] + u[i + 1])
        u, v = v, u
    return np.sum(u * u)


@njit(cache=True)
def heat_adjoint(u, k):
    """What each step begins with is kept, as ``k`` needs it."""
    n = len(u)
    kept = np.empty((STEPS + 1, n))
    kept[0] = u
    for t in range(STEPS):
        now, then = kept[t], kept[t + 1]
        then[0], then[n - 1] = now[0], now[n - 1]
        for i in range(1, n - 1):
            then[i] = now[i] + k[i] * (now[i - 1] - 2.0 * now[i] + now[i + 1])
    last = kept[STEPS]
    bars, other, k_bar = 2.0 * last, np.zeros(n), np.zeros(n)
    for t in range(STEPS - 1, -1, -1):
        now = kept[t]
        other[:] = 0.0
        other[0], other[n - 1] = bars[0], bars[n - 1]
        for i in range(1, n - 1):
            bar = bars[i]
            k_bar[i] += bar * (now[i - 1] - 2.0 * now[i] + now[i + 1])
            bar_k = bar * k[i]
            other[i] += bar - 2.0 * bar_k
            other[i - 1] += bar_k
            other[i + 1] += bar_k
        bars, other = other, bars
    return np.sum(last * last), (bars, k_bar)


def heat_in_jax(u, k):
    import jax.numpy as jnp
    from jax import lax

    def step(u, _):
        return u.at[1:-1].add(k[1:-1] * (u[:-2] - 2.0 * u[1:-1] + u[2:])), None

    u, _ = lax.scan(step, u, None, length=STEPS)
    return jnp.sum(u * u)


def heat_arguments(n):
    return rng(n).normal(size=n), rng(n + 1).uniform(0.001, 0.01, n)


STEPS_2D = 50


def heat_2d(u, k):
    """The same on a plate."""
    n, m = u.shape

    def step(_, u, v):
        def row(i, v):
            def cell(j, v):
                around = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1]
                return nbta.set_item(v, (i, j), u[i, j] + k[i, j] * (around - 4.0 * u[i, j]))

            return repeat(1, m - 1, cell, v)

        return repeat(1, n - 1, row, v), u

    u, _ = repeat(0, STEPS_2D, step, u, u)
    return nbta.sum(u * u)


@njit(cache=True)
def heat_2d_plain(u, k):
    n, m = u.shape
    u, v = u.copy(), u.copy()
    for _ in range(STEPS_2D):
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                around = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1]
                v[i, j] = u[i, j] + k[i, j] * (around - 4.0 * u[i, j])
        u, v = v, u
    return np.sum(u * u)


def heat_2d_in_jax(u, k):
    import jax.numpy as jnp
    from jax import lax

    def step(u, _):
        inner = u[1:-1, 1:-1]
        around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
        return u.at[1:-1, 1:-1].add(k[1:-1, 1:-1] * (around - 4.0 * inner)), None

    u, _ = lax.scan(step, u, None, length=STEPS_2D)
    return jnp.sum(u * u)


def heat_2d_arguments(n):
    return rng(n).normal(size=(n, n)), rng(n + 1).uniform(0.002, 0.02, (n, n))


# An option's price by a binomial tree.


def option(terms, depth):
    """Price of an American put of a spot, strike, rate and volatility, for a year."""
    n = depth.shape[0]  # steps, told by an array's length as all sizes are
    spot, strike, rate, volatility = terms[0], terms[1], terms[2], terms[3]
    dt = 1.0 / nbta.cast(n, np.float64)
    up = volatility * nbta.sqrt(dt)
    grows, falls = nbta.exp(up), nbta.exp(-up)
    less = nbta.exp(-rate * dt)
    p = less * (nbta.exp(rate * dt) - falls) / (grows - falls)

    def worth(i, t):
        return strike - spot * nbta.exp(up * nbta.cast(2 * i - t, np.float64))

    def leaf(i, v):
        return nbta.set_item(v, i, nbta.maximum(worth(i, n), 0.0))

    def level(t, v):
        def node(i, v):
            held = p * v[i + 1] + (less - p) * v[i]
            return nbta.set_item(v, i, nbta.maximum(held, worth(i, t)))

        return repeat(0, t + 1, node, v)

    v = repeat(0, n + 1, leaf, nbta.zeros((n + 1,)))
    return repeat_down(n - 1, -1, level, v)[0]


@njit(cache=True)
def option_plain(terms, depth):
    n = len(depth)
    spot, strike, rate, volatility = terms[0], terms[1], terms[2], terms[3]
    dt = 1.0 / n
    up = volatility * math.sqrt(dt)
    grows, falls = math.exp(up), math.exp(-up)
    less = math.exp(-rate * dt)
    p = less * (math.exp(rate * dt) - falls) / (grows - falls)
    v = np.zeros(n + 1)
    for i in range(n + 1):
        v[i] = max(strike - spot * math.exp(up * (2 * i - n)), 0.0)
    for t in range(n - 1, -1, -1):
        for i in range(t + 1):
            held = p * v[i + 1] + (less - p) * v[i]
            v[i] = max(held, strike - spot * math.exp(up * (2 * i - t)))
    return v[0]


def option_in_jax(terms, depth):
    """Levels of full length, of which the ends do not count."""
    import jax.numpy as jnp
    from jax import lax

    n = depth.shape[0]
    spot, strike, rate, volatility = terms
    dt = 1.0 / n
    up = volatility * jnp.sqrt(dt)
    grows, falls, less = jnp.exp(up), jnp.exp(-up), jnp.exp(-rate * dt)
    p = less * (jnp.exp(rate * dt) - falls) / (grows - falls)
    index = jnp.arange(n + 1)

    def worth(t):
        return strike - spot * jnp.exp(up * (2 * index - t))

    def level(v, t):
        held = p * v[1:] + (less - p) * v[:-1]
        now = jnp.maximum(held, worth(t)[:-1])
        return v.at[:-1].set(jnp.where(index[:-1] <= t, now, 0.0)), None

    v, _ = lax.scan(level, jnp.maximum(worth(n), 0.0), jnp.arange(n - 1, -1, -1))
    return v[0]


def option_arguments(n):
    return np.array([100.0, 103.0, 0.04, 0.3]), np.zeros(n)


PROGRAMS = [
    Program("soft-dtw", soft_dtw, soft_dtw_plain, soft_dtw_arguments, 100, 4, (0, 1),
            adjoint=soft_dtw_adjoint, in_jax=soft_dtw_in_jax),
    Program("soft-dtw by scans", soft_dtw_by_scans, soft_dtw_plain, soft_dtw_arguments, 100, 4,
            (0, 1), adjoint=soft_dtw_adjoint, in_jax=soft_dtw_in_jax),
    Program("heat", heat, heat_plain, heat_arguments, 2000, 4, (0, 1), adjoint=heat_adjoint,
            in_jax=heat_in_jax),
    Program("heat 2-d", heat_2d, heat_2d_plain, heat_2d_arguments, 64, 4, (0, 1),
            in_jax=heat_2d_in_jax),
    Program("option tree", option, option_plain, option_arguments, 300, 5, in_jax=option_in_jax),
]  # fmt: skip
