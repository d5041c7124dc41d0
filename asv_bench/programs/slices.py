"""Loops over slices, whose vectors and matrices have another length in each iteration."""

import numpy as np
from numba import njit

from .program import Program, rng

# Cholesky decomposition, a column at once.


def cholesky(a):
    """Half the logarithm of the determinant, and a sum over the factor."""
    n = a.shape[0]
    b = np.zeros((n, n))
    for j in range(n):
        row = b[j, :j]
        b[j:, j] = (a[j:, j] - b[j:, :j] @ row) / np.sqrt(a[j, j] - row @ row)
    return np.sum(np.log(np.diag(b))) + np.sum(np.sin(b))


@njit(cache=True)
def cholesky_plain(a):
    n = a.shape[0]
    b = np.zeros((n, n))
    for j in range(n):
        row = b[j, :j]
        known = np.ascontiguousarray(b[j:, :j]) @ row
        b[j:, j] = (a[j:, j] - known) / np.sqrt(a[j, j] - row @ row)
    return np.sum(np.log(np.diag(b))) + np.sum(np.sin(b))


def cholesky_arguments(n):
    b = rng(n).uniform(-1, 1, (n, n))
    return (b @ b.T + n * np.eye(n),)


# Householder's reflections.


def reflections(a):
    """A sum over the triangle that reflections leave."""
    q = a.copy()
    for j in range(a.shape[0] - 1):
        v = np.zeros(a.shape[0] - j)
        v[0] = np.sign(q[j, j]) * np.sqrt(np.sum(q[j:, j] ** 2))
        v = v + q[j:, j]
        v = v / np.sqrt(v @ v)
        q[j:, j:] -= 2.0 * np.outer(v, v @ q[j:, j:])
    return np.sum(np.sin(q))


@njit(cache=True)
def reflections_plain(a):
    q = a.copy()
    for j in range(a.shape[0] - 1):
        v = np.zeros(a.shape[0] - j)
        v[0] = np.sign(q[j, j]) * np.sqrt(np.sum(q[j:, j] ** 2))
        v = v + q[j:, j]
        v = v / np.sqrt(v @ v)
        q[j:, j:] -= 2.0 * np.outer(v, v @ np.ascontiguousarray(q[j:, j:]))
    return np.sum(np.sin(q))


def reflections_arguments(n):
    return (rng(n).uniform(-1, 1, (n, n)) + np.eye(n),)


# Weights of all that came before, as attention and kernel filters have them.


def weighted(x, y):
    """Squares of what a mean of all earlier items, weighted by nearness, leaves of each."""
    s = 0.0
    for i in range(1, x.shape[0]):
        d = x[:i] - x[i]
        w = np.exp(-0.5 * d * d)
        e = y[i] - np.sum(w * y[:i]) / np.sum(w)
        s += e * e
    return s


def weighted_arguments(n):
    return rng(n).normal(size=n), rng(n + 1).normal(size=n)


PROGRAMS = [
    Program("cholesky by columns", cholesky, cholesky_plain, cholesky_arguments, 96, 5),
    Program("reflections", reflections, reflections_plain, reflections_arguments, 96, 5),
    Program("weights of earlier items", weighted, njit(cache=True)(weighted), weighted_arguments,
            500, 6, (0, 1)),
]  # fmt: skip
