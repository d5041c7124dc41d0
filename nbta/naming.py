"""Names and handles of arrays."""

from __future__ import annotations

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


#: What an array is called that was given no name.
UNNAMED = "TensorArray"


def forward_name(name: str, number: int) -> str:
    """The name of an array in its handle, from the name that it was given and its number."""
    return f"{name or UNNAMED}_{number}"


def gradient_name(name: str, source: str) -> str:
    """The name of the gradient array of an array for a source."""
    return f"{name}@" + source.replace("\\", r"\\").replace("@", r"\@")


class Flow:
    """A float32 scalar with no meaning but order: an operation given it runs after all before.

    An eager array does one operation after another, so that its flow carries nothing; it is here
    for code that passes flows along, and says which array it belongs to.
    """

    __slots__ = ("_store", "handle")
    dtype = "float32"
    shape = ()

    def __init__(self, handle: Handle) -> None:
        self.handle = handle
        self._store = None  # of the array, for compiled code

    def __reduce__(self):
        return Flow, (self.handle,)  # another process has no such array

    def __float__(self) -> float:
        return 0.0

    def __repr__(self):
        return f"<flow of {self.handle.name}>"
