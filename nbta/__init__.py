"""Growable, differentiable tensor arrays for Numba."""

import importlib

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
]


def __getattr__(name):
    """What belongs to graphs. Importing that takes 0.07 s, which arrays alone need not wait for."""
    if name.startswith("_") and name != "__all__":
        raise AttributeError(f"module 'nbta' has no attribute {name!r}")
    namespace = importlib.import_module("nbta.api")
    names = {name: getattr(namespace, name) for name in namespace.__all__}
    names["__all__"] = sorted([*_ARRAYS, *names])
    globals().update(names)
    if name not in names:
        raise AttributeError(f"module 'nbta' has no attribute {name!r}")
    return names[name]


def __dir__():
    return sorted({*globals(), *__getattr__("__all__")})
