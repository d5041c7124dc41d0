"""Programs of one loop over the items of a series, each from the one before."""

import math

import numpy as np
from numba import njit

import nbta

from .loops import repeat
from .program import Program, rng

# A recurrence.


def recurrence(x):
    """Of ``a[i] = sin(a[i-1]) * x[i] + x[i]``, the sum."""

    def step(i, a):
        return nbta.set_item(a, i, nbta.sin(a[i - 1]) * x[i] + x[i])

    a = nbta.set_item(nbta.zeros_like(x), 0, x[0])
    return nbta.sum(repeat(1, x.shape[0], step, a))


@njit(cache=True)
def recurrence_plain(x):
    n = len(x)
    a = np.zeros(n)
    a[0] = x[0]
    for i in range(1, n):
        a[i] = math.sin(a[i - 1]) * x[i] + x[i]
    return np.sum(a)


@njit(cache=True)
def recurrence_adjoint(x):
    n = len(x)
    a, bars = np.zeros(n), np.zeros(n)
    a[0] = x[0]
    for i in range(1, n):
        a[i] = math.sin(a[i - 1]) * x[i] + x[i]
    bar = 1.0
    for i in range(n - 1, 0, -1):
        bars[i] = bar * (math.sin(a[i - 1]) + 1.0)
        bar = 1.0 + bar * x[i] * math.cos(a[i - 1])
    bars[0] = bar
    return np.sum(a), bars


def recurrence_in_jax(x):
    import jax.numpy as jnp
    from jax import lax

    def step(before, x):
        a = jnp.sin(before) * x + x
        return a, a

    _, a = lax.scan(step, x[0], x[1:])
    return x[0] + jnp.sum(a)


def recurrence_arguments(n):
    return (rng(n).normal(size=n),)


# Single items of a long vector, each changed now and then.

WIDTH, STRIDE = 4096, 2741


def updates(v, drive):
    """Sum of squares after ``v[i] = tanh(v[i]) + drive[t]`` for another ``i`` at each ``t``."""

    def step(t, v):
        i = t * STRIDE % WIDTH
        return nbta.set_item(v, i, nbta.tanh(v[i]) + drive[t])

    v = repeat(0, drive.shape[0], step, v)
    return nbta.sum(v * v)


@njit(cache=True)
def updates_plain(v, drive):
    v = v.copy()
    for t in range(len(drive)):
        i = t * STRIDE % WIDTH
        v[i] = math.tanh(v[i]) + drive[t]
    return np.sum(v * v)


@njit(cache=True)
def updates_adjoint(v, drive):
    n = len(drive)
    v, kept, drive_bar = v.copy(), np.empty(n), np.empty(n)
    for t in range(n):
        i = t * STRIDE % WIDTH
        kept[t] = math.tanh(v[i])
        v[i] = kept[t] + drive[t]
    bars = 2.0 * v
    for t in range(n - 1, -1, -1):
        i = t * STRIDE % WIDTH
        drive_bar[t] = bars[i]
        bars[i] *= 1.0 - kept[t] * kept[t]
    return np.sum(v * v), (bars, drive_bar)


def updates_in_jax(v, drive):
    import jax.numpy as jnp
    from jax import lax

    def step(t, v):
        i = t * STRIDE % WIDTH
        return v.at[i].set(jnp.tanh(v[i]) + drive[t])

    v = lax.fori_loop(0, drive.shape[0], step, v)
    return jnp.sum(v * v)


def updates_arguments(n):
    return rng(n).normal(size=WIDTH), rng(n + 1).normal(size=n)


# A hidden Markov model.


def hmm(start, moves, emits, seen):
    """Log likelihood of what is seen, by the forward algorithm; ``alpha`` adds up to 1."""
    count = moves.shape[0]

    def step(t, alpha, other, total):
        def to(j, other):
            arrived = repeat(0, count, lambda i, s: s + alpha[i] * moves[i, j], 0.0)
            return nbta.set_item(other, j, arrived * emits[j, seen[t]])

        other = repeat(0, count, to, other)
        scale = repeat(0, count, lambda j, s: s + other[j], 0.0)
        other = repeat(0, count, lambda j, a: nbta.set_item(a, j, a[j] / scale), other)
        return other, alpha, total + nbta.log(scale)

    _, _, total = repeat(0, seen.shape[0], step, start, nbta.zeros_like(start), 0.0)
    return total


@njit(cache=True)
def hmm_plain(start, moves, emits, seen):
    count = len(moves)
    alpha, other, total = start.copy(), np.zeros(count), 0.0
    for t in range(len(seen)):
        for j in range(count):
            arrived = 0.0
            for i in range(count):
                arrived += alpha[i] * moves[i, j]
            other[j] = arrived * emits[j, seen[t]]
        scale = 0.0
        for j in range(count):
            scale += other[j]
        for j in range(count):
            other[j] /= scale
        total += math.log(scale)
        alpha, other = other, alpha
    return total


def hmm_in_jax(start, moves, emits, seen):
    import jax.numpy as jnp
    from jax import lax

    def step(alpha, symbol):
        alpha = (alpha @ moves) * emits[:, symbol]
        scale = jnp.sum(alpha)
        return alpha / scale, jnp.log(scale)

    return jnp.sum(lax.scan(step, start, seen)[1])


def hmm_arguments(n, states=8, symbols=5):
    random = rng(n)
    start, moves = random.dirichlet(np.ones(states)), random.dirichlet(np.ones(states), states)
    emits = random.dirichlet(np.ones(symbols), states)
    return start, moves, emits, random.integers(0, symbols, n)


# A Kalman filter.


def kalman(y, rates):
    """Log likelihood of a series in noise, of which the state decays; ``rates`` are three."""
    decay, noise, error = rates[0], rates[1], rates[2]

    def step(t, mean, spread, total):
        mean = decay * mean
        spread = decay * decay * spread + noise
        off, wide = y[t] - mean, spread + error
        gain = spread / wide
        total = total - 0.5 * (nbta.log(2.0 * math.pi * wide) + off * off / wide)
        return mean + gain * off, (1.0 - gain) * spread, total

    return repeat(0, y.shape[0], step, 0.0, 1.0, 0.0)[2]


@njit(cache=True)
def kalman_plain(y, rates):
    decay, noise, error = rates[0], rates[1], rates[2]
    mean, spread, total = 0.0, 1.0, 0.0
    for t in range(len(y)):
        mean = decay * mean
        spread = decay * decay * spread + noise
        off, wide = y[t] - mean, spread + error
        gain = spread / wide
        total -= 0.5 * (math.log(2.0 * math.pi * wide) + off * off / wide)
        mean += gain * off
        spread = (1.0 - gain) * spread
    return total


def kalman_in_jax(y, rates):
    import jax.numpy as jnp
    from jax import lax

    decay, noise, error = rates

    def step(state, y):
        mean, spread = decay * state[0], decay * decay * state[1] + noise
        off, wide = y - mean, spread + error
        gain = spread / wide
        term = -0.5 * (jnp.log(2.0 * math.pi * wide) + off * off / wide)
        return (mean + gain * off, (1.0 - gain) * spread), term

    return jnp.sum(lax.scan(step, (0.0, 1.0), y)[1])


def kalman_arguments(n):
    return rng(n).normal(size=n).cumsum() * 0.1, np.array([0.95, 0.1, 0.3])


PROGRAMS = [
    Program("recurrence", recurrence, recurrence_plain, recurrence_arguments, 8000, 7,
            adjoint=recurrence_adjoint, in_jax=recurrence_in_jax),
    Program("updates", updates, updates_plain, updates_arguments, 5000, 3, (0, 1),
            adjoint=updates_adjoint, in_jax=updates_in_jax),
    Program("hmm forward", hmm, hmm_plain, hmm_arguments, 4000, 4, (0, 1, 2), in_jax=hmm_in_jax),
    Program("kalman filter", kalman, kalman_plain, kalman_arguments, 30_000, 6, (0, 1),
            in_jax=kalman_in_jax),
]  # fmt: skip
