"""Gradients of Numba loops, and arrays that grow inside ``@njit``.

Take a function of arrays and numbers, in plain Python or compiled by ``@numba.njit``, with any
loops and branches, and differentiate it unmodified:

>>> import numba
>>> import numpy as np
>>> import nbta
>>> @numba.njit
... def energy(rate, noise):
...     path = np.zeros(len(noise) + 1)
...     for t in range(len(noise)):
...         path[t + 1] = rate * path[t] + noise[t]
...         if path[t + 1] > 4.0:
...             break
...     return np.sum(path**2)
>>> nbta.value_and_grad(energy)(0.5, np.array([1.0, 2.0, 2.0, 1.5]))
(np.float64(27.578125), np.float64(54.1875))

Results are exact, or there is an error that names the line and the remedy. nbta reads source, so
functions must be in a file or a notebook.

Gradients
    `grad`, `value_and_grad`, `jvp`, `vjp`, `hvp`, `linearize`, `jacobian`, `jacfwd`,
    `hessian`, `sparse_jacobian`, `sparse_hessian`, `vmap`;
    `custom_gradient` and `custom_jvp` for functions with a derivative of your own, `implicit` for
    solvers, `testing.check_grads` to check.
Functions
    `function` compiles without differentiating, `warm` before the first call; ``f.explain()`` and
    ``f.source`` show what became of a function, ``f.profile()`` where its time goes. `debug.nans`
    finds the first NaN.
Arrays
    `TensorArray`, a list of tensors that grows in place, in Python, in ``@njit`` and in gradients;
    `save` and `load`; `trim` gives memory of dropped arrays back.
Loops for code written with nbta
    `while_loop`, `fori_loop`, `scan`, `map_fn`, `cond`, `switch_case`, with NumPy's functions under
    their names: `sum`, `where`, `matmul`, ...
Graphs
    `Graph`, `Session`, `gradients`, `raw_ops`: TensorFlow's TensorArray operations, with flows and
    sources.

In a terminal, ``nbta info`` says what is installed and ``nbta demo`` trains a model.
"""

import importlib

from nbta.array_memory import trim
from nbta.eager import Lanes
from nbta.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    NbtaError,
    NotFoundError,
    OutOfRangeError,
    PerformanceWarning,
    PrecisionWarning,
    ResourceExhaustedError,
    UnimplementedError,
)
from nbta.saving import load, save
from nbta.tensor_array import TensorArray

__version__ = "0.1.0.dev0"

_ARRAYS = [
    "FailedPreconditionError",
    "InvalidArgumentError",
    "Lanes",
    "NbtaError",
    "NotFoundError",
    "OutOfRangeError",
    "PerformanceWarning",
    "PrecisionWarning",
    "ResourceExhaustedError",
    "TensorArray",
    "UnimplementedError",
    "load",
    "save",
    "trim",
]


#: Packages that messages and pages name, and that few need.
_DOORS = ("distributed", "interop")


def __getattr__(name):
    """What belongs to graphs. Importing that takes 0.07 s, which arrays alone need not wait for."""
    if name in _DOORS:
        return importlib.import_module(f"nbta.{name}")
    if name.startswith("_") and name != "__all__":
        raise AttributeError(f"module 'nbta' has no attribute {name!r}")
    namespace = importlib.import_module("nbta.namespace")
    names = {name: getattr(namespace, name) for name in namespace.__all__}
    names["__all__"] = sorted([*_ARRAYS, *names])
    globals().update(names)
    if name not in names:
        raise AttributeError(f"module 'nbta' has no attribute {name!r}")
    return names[name]


def __dir__():
    return __getattr__("__all__")
