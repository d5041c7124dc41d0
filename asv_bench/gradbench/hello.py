"""The first eval to try a tool with: a square."""

import numpy as np
from numba import njit

from .evaluation import Eval, compiled, gradient


@njit(cache=True)
def square(x):
    """Of a number."""
    return x * x


EVAL = Eval(
    objectives={"loops": square, "numpy": np.square},
    arguments=lambda number: (float(number),),
    functions=lambda square: {"square": compiled(square), "double": gradient(square)},
    generate=float,
    sizes=(),
    small=(3,),
    pair=("square", "double"),
)
