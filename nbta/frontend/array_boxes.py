"""A `TensorArray` that a traced function makes: what is written to it stays, as in an eager one.

In a graph each write gives the array to go on with. Here one object stands for it, which holds the
last of these; loops and branches take that as a place of the user's.
"""

from __future__ import annotations

from nbta.frontend import native
from nbta.frontend.boxes import Attribute, born, boxed, explicitly_older, note_place
from nbta.symbolic import SymbolicTensorArray

#: What gives the array to go on with.
_WRITES = ("write", "append", "accumulate", "scatter", "unstack", "split", "identity")
_OTHERS = ("read", "gather", "stack", "concat", "size", "grad", "grad_with_shape", "close", "lanes")


class ArrayBox:
    """A tensor array of a traced function.

    Attributes
    ----------
    array : SymbolicTensorArray
        Behind all that was done with it.
    """

    #: For `nbta.frontend.native.plain`.
    holds_array = True

    def __init__(self, array):
        self.array = array
        born(self)

    def __getattr__(self, name):
        return getattr(self.array, name)

    def __getitem__(self, index):
        return self.array[index]

    def __iter__(self):
        return iter(self.array)

    def __len__(self):
        return len(self.array)

    def __array__(self, dtype=None, copy=None):
        return self.array.__array__(dtype)

    def __repr__(self):
        return repr(self.array)


def _writing(name):
    def method(self, *args, **options):
        args, options = native.plain(args), native.plain(options)
        new = getattr(self.array, name)(*args, **options)
        if explicitly_older(self):  # a value, in the body of nbta.while_loop or its like
            return ArrayBox(new)
        note_place(Attribute(self, "array"))
        self.array = new
        return self

    return method


def _asking(name):
    def method(self, *args, **options):
        args, options = native.plain(args), native.plain(options)
        return in_box(getattr(self.array, name)(*args, **options))

    return method


for _name in _WRITES:
    setattr(ArrayBox, _name, _writing(_name))
for _name in _OTHERS:
    setattr(ArrayBox, _name, _asking(_name))


def in_box(found):
    """What a function gives, with arrays as they are, and a new tensor array in a box."""
    return ArrayBox(found) if isinstance(found, SymbolicTensorArray) else boxed(found)


def unlike(one, other) -> bool:
    """Whether a variable is a tensor array in a box in one place, and another one elsewhere."""
    kinds = [isinstance(value, ArrayBox) for value in (one, other)]
    known = [isinstance(value, ArrayBox | SymbolicTensorArray) for value in (one, other)]
    return all(known) and any(kinds) and one is not other


def unboxed(value):
    """The array in a box; other values as they are."""
    return value.array if isinstance(value, ArrayBox) else value
