"""Addresses of functions that generated code calls by name."""

from functools import cache

from numba.core import types

from nbta.runtime import blocks
from nbta.runtime.compiled import cached, pointer_of


@cache
def address(name: str) -> int:
    """The address of a helper, compiled or loaded from the disk cache at its first use."""
    kind, _, dtype = name.partition("_")
    if kind == "blas":
        return blocks.blas_address(dtype)
    function, arity = blocks.FUNCTIONS[name]
    signature = types.int64(*[types.int64] * arity)
    dispatcher = cached(function, signature, **blocks.OPTIONS)
    _kept.append(dispatcher)
    return pointer_of(dispatcher)


_kept = []  # what the addresses belong to
