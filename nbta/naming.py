"""Names and handles of arrays."""

from __future__ import annotations

import weakref
from typing import NamedTuple

FORWARD, GRADIENT = "_tensor_arrays", "_tensor_array_grads"


class Handle(NamedTuple):
    """What names an array: the container it lives in, and its name there.

    A forward array is ``NAME_k`` with a number ``k`` of its own, so that two arrays of one name
    differ; a gradient array is ``NAME_k@SOURCE``. An ``@`` of a source has a backslash before it,
    so that the gradient array of a gradient array differs.
    """

    container: str
    name: str

    def __str__(self):
        return self.container + self.name


def gradient_name(name: str, source: str) -> str:
    """The name of the gradient array of an array for a source."""
    return f"{name}@" + source.replace("\\", r"\\").replace("@", r"\@")


class Flow:
    """A float32 scalar with no meaning but order: an operation given it runs after all before.

    An eager array does one operation after another, so that its flow carries nothing; it is here
    for code that passes flows along, and says which array it belongs to.
    """

    __slots__ = ("handle",)
    dtype = "float32"
    shape = ()

    def __init__(self, handle: Handle) -> None:
        self.handle = handle

    def __float__(self) -> float:
        return 0.0

    def __repr__(self):
        return f"<flow of {self.handle.name}>"


#: Arrays that Python knows, by the number in their header, for the messages of compiled code.
_arrays: weakref.WeakValueDictionary = weakref.WeakValueDictionary()


def register(number: int, array) -> None:
    """Let messages about array ``number`` use the name of ``array``."""
    _arrays[number] = array


def handle_of(array) -> str:
    """The name of an array, or of what is registered under a number."""
    if isinstance(array, str):
        return array
    known = _arrays.get(array)
    return known.handle.name if known is not None else f"TensorArray_{array}"


def find(number: int):
    """The array registered under a number, or None."""
    return _arrays.get(number)
