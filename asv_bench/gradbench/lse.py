"""The logarithm of a sum of exponentials, by its largest number."""

import numpy as np

from ..programs.learning import logsumexp_plain
from ..programs.program import rng
from .evaluation import Eval, compiled, floats, gradient


def objective_in_numpy(x):
    """Of all numbers."""
    most = np.max(x)
    return most + np.log(np.sum(np.exp(x - most)))


def functions(objective):
    return {"primal": compiled(objective), "gradient": gradient(objective)}


EVAL = Eval(
    objectives={"loops": logsumexp_plain, "numpy": objective_in_numpy},
    arguments=lambda data: floats(data["x"]),
    functions=functions,
    generate=lambda n: {"x": rng(n).random(n).tolist()},
    sizes=((10_000,), (160_000,), (1_280_000,)),
    small=(7,),
    pair=("primal", "gradient"),
)
