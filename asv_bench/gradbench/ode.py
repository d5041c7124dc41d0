"""A differential equation by the classical method of Runge and Kutta."""

import numpy as np

from ..programs.motion import solve_plain
from ..programs.program import rng
from .evaluation import Eval, compiled, floats, gradient

END = 2.0


def solve(x, steps):
    """All ``y`` at the end, where the slope of each is its ``x`` times the ``y`` before it."""
    return solve_plain(x, steps, END)


def solve_in_numpy(x, steps):
    """The same, with the slopes of all at once."""

    def slopes(y):
        return x * np.concatenate((np.ones(1), y[:-1]))

    h, y = END / steps, np.zeros(len(x))
    for _ in range(steps):
        k1 = slopes(y)
        k2 = slopes(y + 0.5 * h * k1)
        k3 = slopes(y + 0.5 * h * k2)
        k4 = slopes(y + h * k3)
        y = y + h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)
    return y


def functions(solve):
    return {
        "primal": compiled(solve),
        "gradient": gradient(lambda x, steps: solve(x, steps)[-1]),
    }


EVAL = Eval(
    objectives={"loops": solve, "numpy": solve_in_numpy},
    arguments=lambda data: (*floats(data["x"]), data["s"]),
    functions=functions,
    generate=lambda n, s: {"x": rng(n).random(n).tolist(), "s": s},
    sizes=((1000, 10), (1000, 100), (10_000, 100)),
    small=(4, 12),
    pair=("primal", "gradient"),
)
