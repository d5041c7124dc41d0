"""Numba's typed lists and dicts in functions that are traced: lists and dicts of Python's.

A compiled container cannot hold what only the run knows. One that the function makes is Python's
from the start, and what an argument holds is taken out of it. They differ in one thing: a typed
container casts numbers to the dtype that it was made for. Where Python's number would be another
one then, it is refused.
"""

from __future__ import annotations

import numba

from nbta.errors import UnimplementedError
from nbta.frontend.lists import listing
from nbta.frontend.problems import here

#: Numbers of these are what Python's arithmetic gives.
_AS_PYTHON = (numba.types.float64, numba.types.complex128, numba.types.int64)


def is_typed(kind) -> bool:
    """Whether a class is that of Numba's typed lists or dicts."""
    # By name, as Numba loads these classes when they are asked for, which takes 40 ms.
    return getattr(kind, "__module__", None) in ("numba.typed.typedlist", "numba.typed.typeddict")


def empty(kind, *types, allocated=0, n_keys=0, **named_types):
    """An empty container of Python's for one of Numba's, which is made for items of these types.

    How many items to allocate memory for, which may be given, does not change what it holds.
    """
    for each in (*types, *named_types.values()):
        if isinstance(each, numba.types.Number) and each not in _AS_PYTHON:
            raise UnimplementedError(
                f"{here()}: a typed {kind.__name__.lower()} of {each}, to which Numba casts what "
                f"is put into it; make it of float64, complex128 or int64, or use an array"
            )
    return listing(()) if python_kind(kind) is list else {}


def python_kind(kind) -> type:
    """Python's class for one of Numba's containers; others as they are."""
    if not is_typed(kind):
        return kind
    return dict if hasattr(kind, "empty") else list


def opened(value):
    """What an argument holds: an array of a list of numbers, and Python's container of others."""
    if python_kind(type(value)) is dict:
        return dict(value)
    return value if isinstance(value._dtype, numba.types.Number) else list(value)
