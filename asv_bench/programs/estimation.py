"""Likelihoods: of a linear state, of a Gaussian process, and of counts."""

import math

import numpy as np
from numba import njit
from scipy.linalg import solve_triangular
from scipy.special import gammaln

from .program import Program, rng

# A linear state that is seen through noise (a Kalman filter).


def filtered(f, q, h, r, ys):
    """Minus twice the logarithm of the likelihood, but for a constant; n measurements of two."""
    d = f.shape[0]
    x, p, total = np.zeros(d), np.eye(d), 0.0
    for t in range(ys.shape[0]):
        x = f @ x
        p = f @ p @ f.T + q
        e = ys[t] - h @ x
        s = h @ p @ h.T + r
        gain = np.linalg.solve(s, h @ p)
        total += e @ np.linalg.solve(s, e) + np.linalg.slogdet(s)[1]
        x = x + e @ gain
        p = p - gain.T @ s @ gain
    return total


def filtered_in_jax(f, q, h, r, ys):
    import jax
    import jax.numpy as jnp

    def step(carry, y):
        x, p, total = carry
        x = f @ x
        p = f @ p @ f.T + q
        e = y - h @ x
        s = h @ p @ h.T + r
        gain = jnp.linalg.solve(s, h @ p)
        total += e @ jnp.linalg.solve(s, e) + jnp.linalg.slogdet(s)[1]
        return (x + e @ gain, p - gain.T @ s @ gain, total), None

    start = jnp.zeros(f.shape[0]), jnp.eye(f.shape[0]), 0.0
    return jax.lax.scan(step, start, ys)[0][2]


def filter_arguments(n):
    random = rng(n)
    f = 0.9 * np.linalg.qr(random.normal(size=(4, 4)))[0]
    h = random.normal(size=(2, 4))
    return f, 0.1 * np.eye(4), h, 0.5 * np.eye(2), random.normal(size=(n, 2))


# A Gaussian process with a squared exponential kernel.


def marginal(logs, x, y):
    """Minus twice the logarithm of the likelihood of n values, but for a constant."""
    length, size, noise = np.exp(logs)
    d = (x.reshape(-1, 1) - x.reshape(1, -1)) / length
    k = size * np.exp(-0.5 * d * d) + noise * np.eye(x.shape[0])
    factor = np.linalg.cholesky(k)
    z = solve_triangular(factor, y, lower=True)
    return z @ z + 2.0 * np.sum(np.log(np.diag(factor)))


@njit
def marginal_plain(logs, x, y):
    length, size, noise = np.exp(logs)
    d = (x.reshape(-1, 1) - x.reshape(1, -1)) / length
    k = size * np.exp(-0.5 * d * d) + noise * np.eye(x.shape[0])
    factor = np.linalg.cholesky(k)
    z = y.copy()
    for i in range(len(z)):
        z[i] = (z[i] - factor[i, :i] @ z[:i]) / factor[i, i]
    return z @ z + 2.0 * np.sum(np.log(np.diag(factor)))


def marginal_in_jax(logs, x, y):
    import jax
    import jax.numpy as jnp

    length, size, noise = jnp.exp(logs)
    d = (x.reshape(-1, 1) - x.reshape(1, -1)) / length
    k = size * jnp.exp(-0.5 * d * d) + noise * jnp.eye(x.shape[0])
    factor = jnp.linalg.cholesky(k)
    z = jax.scipy.linalg.solve_triangular(factor, y, lower=True)
    return z @ z + 2.0 * jnp.sum(jnp.log(jnp.diag(factor)))


def marginal_arguments(n):
    random = rng(n)
    x = np.sort(random.uniform(0.0, 10.0, n))
    return np.log(np.array([1.0, 1.5, 0.1])), x, np.sin(x) + 0.3 * random.normal(size=n)


# Regression of counts that vary more than Poisson's (negative binomial).


def counted(slopes, log_size, x, y):
    """Minus the logarithm of the likelihood of n counts."""
    size, mean = np.exp(log_size[0]), np.exp(x @ slopes)
    ways = gammaln(y + size) - gammaln(size) - gammaln(y + 1.0)
    return -np.sum(ways + size * np.log(size / (size + mean)) + y * np.log(mean / (size + mean)))


@njit
def counted_plain(slopes, log_size, x, y):
    size, total = math.exp(log_size[0]), 0.0
    for i in range(x.shape[0]):
        mean = math.exp(x[i] @ slopes)
        ways = math.lgamma(y[i] + size) - math.lgamma(size) - math.lgamma(y[i] + 1.0)
        logs = size * math.log(size / (size + mean)) + y[i] * math.log(mean / (size + mean))
        total -= ways + logs
    return total


def counted_in_jax(slopes, log_size, x, y):
    import jax.numpy as jnp
    from jax.scipy.special import gammaln

    size, mean = jnp.exp(log_size[0]), jnp.exp(x @ slopes)
    ways = gammaln(y + size) - gammaln(size) - gammaln(y + 1.0)
    return -jnp.sum(ways + size * jnp.log(size / (size + mean)) + y * jnp.log(mean / (size + mean)))


def counted_arguments(n):
    random = rng(n)
    x = random.normal(size=(n, 8)) / 3
    slopes = random.normal(size=8) / 2
    y = random.negative_binomial(2.0, 2.0 / (2.0 + np.exp(x @ slopes + 1.0)))
    return slopes, np.array([0.5]), x, y.astype(float)


PROGRAMS = (
    Program(
        "kalman filter of 4 states", filtered, njit(filtered), filter_arguments, n=1000, small=5,
        argnums=(0, 1, 3), in_jax=filtered_in_jax,
    ),
    Program(
        "gaussian process", marginal, marginal_plain, marginal_arguments, n=300, small=6,
        in_jax=marginal_in_jax,
    ),
    Program(
        "negative binomial", counted, counted_plain, counted_arguments, n=100_000, small=20,
        argnums=(0, 1), in_jax=counted_in_jax,
    ),
)  # fmt: skip
