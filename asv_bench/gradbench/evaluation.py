"""What an eval consists of."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple

import numpy as np

import nbta

#: Without `compiled`, a first call of a small size would be interpreted.
compiled = partial(nbta.function, compiled=True)
gradient = partial(nbta.grad, compiled=True)


class Eval(NamedTuple):
    """An eval: its objective in each style, and what is asked of it."""

    #: The objective in each of `asv_bench.gradbench.STYLES`.
    objectives: Mapping[str, Callable]
    #: ``arguments(input)``: the objective's arguments from the input of a message.
    arguments: Callable
    #: ``functions(objective)``: for each name, a function of the same arguments that nbta compiles.
    functions: Callable
    #: ``generate(*size)``: an input of that size without ``min_runs`` and ``min_seconds``.
    generate: Callable
    #: Three sizes that are measured, and one for tests.
    sizes: tuple
    small: tuple
    #: For each function, how its result becomes JSON; `plain` where there is none.
    outputs: Mapping[str, Callable] = {}
    #: The functions whose times are compared: the objective and what is derived from it.
    pair: tuple[str, str] = ("objective", "jacobian")

    def output(self, function, result):
        """The result of a function as JSON."""
        return self.outputs.get(function, plain)(result)


def plain(result):
    """Numbers and nested lists in place of arrays."""
    if isinstance(result, (tuple, list)):
        return [plain(each) for each in result]
    return np.asarray(result).tolist()


def floats(*values):
    """Each as a float64 array."""
    return tuple(np.array(value, np.float64) for value in values)
