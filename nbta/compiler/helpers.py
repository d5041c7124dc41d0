"""Addresses of functions that generated code calls by name."""

import functools

import numba
from numba.core import types

from nbta.compiler import cache
from nbta.runtime import blocks


@functools.cache
def address(name: str) -> int:
    """The address of a helper, compiled or loaded from the disk cache at its first use."""
    kind, _, dtype = name.partition("_")
    if kind == "blas":
        return blocks.blas_address(dtype)
    function, arity = blocks.FUNCTIONS[name]
    signature = types.int64(*[types.int64] * arity)

    def compiled():
        dispatcher = numba.njit(**blocks.OPTIONS)(function)
        dispatcher.compile(signature)
        return dispatcher

    found = cache.kept(f"{name} {signature}", blocks.OPTIONS, compiled)
    _kept.append(found)
    return found.address


_kept = []  # what the addresses belong to
