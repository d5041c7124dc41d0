"""A mixture of Gaussians: log posterior with a Wishart prior on the precision matrices.

The factors of precision matrices are lower triangles: ``q`` has the logarithms of their diagonals,
``l`` the numbers below, column by column.
"""

import math

import numpy as np
from numba import njit

from ..programs.learning import likelihood_plain, triangle
from ..programs.program import rng
from .evaluation import Eval, compiled, floats, gradient


@njit(cache=True)
def wishart(q, l, m, gamma):  # noqa: E741
    """The logarithm of the prior."""
    k, d = q.shape
    n, total = d + m + 1, 0.0
    for c in range(k):
        for i in range(d):
            total += m * q[c, i] - 0.5 * gamma * gamma * math.exp(2.0 * q[c, i])
        for p in range(l.shape[1]):
            total -= 0.5 * gamma * gamma * l[c, p] * l[c, p]
    log_gamma = 0.25 * d * (d - 1) * math.log(math.pi)
    for j in range(d):
        log_gamma += math.lgamma(0.5 * (n - j))
    return total + k * (n * d * math.log(gamma / math.sqrt(2.0)) - log_gamma)


@njit(cache=True)
def objective(alpha, mu, q, l, x, m, gamma):  # noqa: E741
    """The log posterior of the points ``x``."""
    n, d = x.shape
    constant = -0.5 * n * d * math.log(2.0 * math.pi)
    return constant + likelihood_plain(alpha, mu, q, l, x) + wishart(q, l, m, gamma)


def log_sum_exp(x):
    """Of the last axis."""
    most = np.max(x, axis=-1)
    return most + np.log(np.sum(np.exp(x - most[..., None]), axis=-1))


def objective_in_numpy(alpha, mu, q, l, x, m, gamma):  # noqa: E741
    """The same, for all points and components at once."""
    (n, d), k = x.shape, len(alpha)
    rows, columns = triangle(d)
    lower = np.zeros((k, d, d))
    lower[:, rows, columns] = l
    diagonal, sums, off = np.exp(q), np.sum(q, axis=1), x[:, None] - mu
    white = diagonal * off + np.einsum("kij,nkj->nki", lower, off)
    terms = alpha + sums - 0.5 * np.sum(white * white, axis=2)
    likelihood = np.sum(log_sum_exp(terms)) - n * (0.5 * d * np.log(2 * np.pi) + log_sum_exp(alpha))
    freedom = d + m + 1
    log_gamma = 0.25 * d * (d - 1) * np.log(np.pi)
    log_gamma += sum(math.lgamma(0.5 * (freedom - j)) for j in range(d))
    prior = k * (freedom * d * np.log(gamma / np.sqrt(2.0)) - log_gamma) + m * np.sum(sums)
    return likelihood + prior - 0.5 * gamma**2 * (np.sum(diagonal**2) + np.sum(l**2))


def functions(objective):
    return {
        "objective": compiled(objective),
        "jacobian": gradient(objective, argnums=(0, 1, 2, 3)),
    }


def arguments(data):
    x, alpha, mu, q = floats(data["x"], data["alpha"], data["mu"], data["q"])
    # An array of no numbers has lost its second length in JSON.
    lower = np.reshape(data["l"], (data["k"], data["d"] * (data["d"] - 1) // 2))
    return alpha, mu, q, lower.astype(np.float64), x, data["m"], float(data["gamma"])


def generate(d, k, n=1000, m=0, gamma=1.0):
    """Standard normal numbers; means between 0 and 1."""
    random = rng(d * k)
    return {
        "d": d, "k": k, "n": n, "m": m, "gamma": gamma,
        "x": random.normal(size=(n, d)).tolist(),
        "alpha": random.normal(size=k).tolist(),
        "mu": random.uniform(size=(k, d)).tolist(),
        "q": random.normal(size=(k, d)).tolist(),
        "l": random.normal(size=(k, d * (d - 1) // 2)).tolist(),
    }  # fmt: skip


def output(gradients):
    return {
        name: each.tolist() for name, each in zip(("alpha", "mu", "q", "l"), gradients, strict=True)
    }


EVAL = Eval(
    objectives={"loops": objective, "numpy": objective_in_numpy},
    arguments=arguments,
    functions=functions,
    outputs={"jacobian": output},
    generate=generate,
    sizes=((10, 25), (20, 50), (64, 100)),
    small=(3, 2, 5, 1, 0.7),
)
