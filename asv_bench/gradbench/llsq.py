"""Least squares: a polynomial's coefficients for the signs of points between -1 and 1."""

import numpy as np
from numba import njit

from ..programs.learning import least_squares_plain
from ..programs.program import rng
from .evaluation import Eval, compiled, floats, gradient


@njit(cache=True)
def objective(x, n):
    """Half the sum of squares at ``n`` points."""
    points = 2.0 / (n - 1) * np.arange(n) - 1.0
    return least_squares_plain(x, points, np.sign(points))


def objective_in_numpy(x, n):
    """The same, with all powers of all points as a matrix."""
    points = 2.0 / (n - 1) * np.arange(n) - 1.0
    off = np.sign(points) - points[:, None] ** np.arange(len(x)) @ x
    return 0.5 * np.sum(off * off)


def functions(objective):
    return {"primal": compiled(objective), "gradient": gradient(objective)}


EVAL = Eval(
    objectives={"loops": objective, "numpy": objective_in_numpy},
    arguments=lambda data: (*floats(data["x"]), data["n"]),
    functions=functions,
    generate=lambda n, m: {"x": rng(n).random(m).tolist(), "n": n},
    sizes=((1024, 128), (4096, 128), (16384, 128)),
    small=(9, 3),
    pair=("primal", "gradient"),
)
