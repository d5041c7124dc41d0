"""Clusters around centroids: a step of Newton's method for the sum of squared distances."""

import numpy as np
from numba import njit

import nbta

from ..programs.program import rng
from .evaluation import Eval, compiled, floats


@njit(cache=True)
def cost(points, centroids):
    """The sum of each point's squared distance to the nearest centroid."""
    total = 0.0
    for i in range(len(points)):
        nearest = np.inf
        for j in range(len(centroids)):
            square = 0.0
            for k in range(points.shape[1]):
                off = points[i, k] - centroids[j, k]
                square += off * off
            nearest = min(nearest, square)
        total += nearest
    return total


def cost_in_numpy(points, centroids):
    """The same, for all pairs at once."""
    off = points[:, None] - centroids
    return np.sum(np.min(np.sum(off * off, axis=2), axis=1))


def functions(cost):
    def direction(points, centroids):
        """The gradient over the Hessian, which is diagonal: its product with ones is all of it."""

        def slope(centroids):
            return nbta.grad(cost, argnums=1)(points, centroids)

        slopes, curvatures = nbta.jvp(slope, centroids, np.ones_like(centroids))
        return slopes / curvatures

    return {"cost": compiled(cost), "dir": compiled(direction)}


def generate(k, n, d):
    """Points in a cube; the last ones are the centroids, so that each has a point."""
    points = rng(n).random((n, d)).tolist()
    return {"points": points, "centroids": points[-k:]}


EVAL = Eval(
    objectives={"loops": cost, "numpy": cost_in_numpy},
    arguments=lambda data: floats(data["points"], data["centroids"]),
    functions=functions,
    generate=generate,
    sizes=((10, 1000, 8), (100, 1000, 16), (100, 10_000, 16)),
    small=(3, 12, 2),
    pair=("cost", "dir"),
)
