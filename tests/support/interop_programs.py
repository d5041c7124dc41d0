"""Functions that other libraries get as operations: loops, structures, several results."""

import numba
import numpy as np

NOISE = np.array([1.0, 2.0, 2.0, 1.5])


@numba.njit
def energy(rate, noise):
    """A loop that leaves early, compiled by Numba."""
    path = np.zeros(len(noise) + 1)
    for t in range(len(noise)):
        path[t + 1] = rate * path[t] + noise[t]
        if path[t + 1] > 4.0:
            break
    return np.sum(path**2)


def newton(a):
    """As many iterations as an item needs."""
    x = 1.0
    while np.abs(x * x - a) > 1e-12:
        x = 0.5 * (x + a / x)
    return x


def growing(x):
    """As many items as the values decide."""
    found = []
    while x > 10.0:
        found.append(x)
        x = 0.5 * x
    return np.array(found)


def several(p, x, *, power=2):
    """A structure of arguments, and one of results, of which one is an integer."""
    y = np.tanh(p["w"] @ x) * p["b"]
    return {"y": y, "norm": np.sum(y**power), "largest": np.argmax(y)}


WEIGHTS = {"w": np.array([[0.5, -1.0, 0.25], [1.5, 0.75, -0.5]]), "b": np.array([2.0, -1.0])}
X = np.array([0.3, -0.2, 0.9])


def squared(z):
    """A complex result of a complex number, which is no analytic function."""
    return z * z * np.conj(z) + 2.0 * z
