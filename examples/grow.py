"""An array that grows inside compiled code: a random walk until it leaves a band."""

import numpy as np
from numba import njit

import nbta


@njit
def walk(width, seed):
    """Points of a random walk in the plane, up to the first one farther out than ``width``."""
    np.random.seed(seed)
    points = nbta.TensorArray(np.float64, size=0, dynamic_size=True, element_shape=(2,))
    point = np.zeros(2)
    while np.abs(point).max() <= width:
        points.append(point)
        point = point + np.random.normal(0.0, 1.0, 2)
    return points.stack()


if __name__ == "__main__":
    path = walk(20.0, 1)
    print(f"{len(path)} points, the last one at {path[-1].round(2)}")
