"""nbta as a tool of GradBench, a suite that runs the same derivatives in many libraries.

Each of its evals is a module here of the same name: the objective from its mathematical
description, as loops and in NumPy's style, and the functions of it that the eval asks for.
"""

from functools import cache
from importlib import import_module

#: The evals, in the order in which GradBench's documentation suggests to implement them.
EVALS = (
    "hello", "llsq", "lse", "gmm", "ode", "lstm", "det", "kmeans", "ba", "ht", "particle", "saddle",
)  # fmt: skip
STYLES = ("loops", "numpy")


def find(name):
    """The `Eval` of that name; None where there is none."""
    return import_module(f"{__name__}.{name}").EVAL if name in EVALS else None


@cache
def functions(name, style):
    """The functions of an eval in a style, by name, the same ones each time."""
    found = find(name)
    return found.functions(found.objectives[style])
