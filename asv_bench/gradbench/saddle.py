"""A saddle point: the least of the greatest values of a function of two points."""

import numpy as np

from .descent import MODES, maximum, minimum
from .evaluation import Eval, compiled, floats


def objective(x, y):
    """The square of the one point's distance from the origin, less that of the other."""
    return (x[0] * x[0] + x[1] * x[1]) - (y[0] * y[0] + y[1] * y[1])


def objective_in_numpy(x, y):
    """The same."""
    return x @ x - y @ y


def functions(objective):
    def by(outer, inner):
        def found(start):
            def best(x):
                return maximum(lambda y: objective(x, y), start, inner)

            x = minimum(lambda x: objective(x, best(x)), start, outer)
            return np.concatenate((x, best(x)))

        return compiled(found)

    return {a + b: by(MODES[a], MODES[b]) for a in MODES for b in MODES}


EVAL = Eval(
    objectives={"loops": objective, "numpy": objective_in_numpy},
    arguments=lambda data: floats(data["start"]),
    functions=functions,
    generate=lambda *start: {"start": list(start)},
    sizes=((1.0, 1.0),),
    small=(1.0, 1.0),
    pair=("ff", "rr"),
)
