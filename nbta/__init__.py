"""Growable, differentiable tensor arrays for Numba."""

from nbta.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    NbtaError,
    NotFoundError,
    ResourceExhaustedError,
    UnimplementedError,
)
from nbta.saving import load, save
from nbta.tensor_array import TensorArray

__version__ = "0.1.0.dev0"

__all__ = [
    "FailedPreconditionError",
    "InvalidArgumentError",
    "NbtaError",
    "NotFoundError",
    "ResourceExhaustedError",
    "TensorArray",
    "UnimplementedError",
    "load",
    "save",
]
