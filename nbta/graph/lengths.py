"""What Python code asks for while it is traced, lengths mostly, and what a trace knows of them."""

import os
import sys
from typing import NamedTuple

import numpy as np

from nbta import shapes

_PACKAGES = tuple(
    os.path.dirname(os.path.abspath(file)) + os.sep for file in (shapes.__file__, np.__file__)
)


class Look(NamedTuple):
    """The length of an axis of an argument, which a trace goes by.

    Attributes
    ----------
    leaf : int
        Which of the arguments' values.
    axis : int
    """

    leaf: int
    axis: int

    def __call__(self, values):
        """What it sees of arguments."""
        return values[self.leaf].shape[self.axis]


class ValueLook(NamedTuple):
    """The value of an argument that is one whole number, which a trace goes by.

    Attributes
    ----------
    leaf : int
        Which of the arguments' values.
    """

    leaf: int

    def __call__(self, values):
        """What it sees of arguments."""
        return values[self.leaf].item()


class _Shared:
    """What a trace is asked for that uses an array which another one may be in a run.

    Where that one was changed, the graph must say in which runs they are one (`Lengths.shared`).
    """

    def __call__(self, values):
        """The same for all arguments."""
        return True

    def __repr__(self):
        return "shared arrays"  # after each `Look`


SHARED = _Shared()


class Asked(BaseException):
    """The trace cannot go on: another one must begin, which knows what was asked for.

    No `Exception`, so that a user's ``except Exception`` lets it pass.
    """

    def __init__(self, lengths):
        super().__init__("nbta traces the function again, for the lengths that Python asks for")
        self.lengths = lengths


class Lengths:
    """The lengths of the arguments of one trace.

    Parameters
    ----------
    known : dict
        What was looked at before: by `Look`, `ValueLook` or `SHARED`, what it saw.

    Attributes
    ----------
    known : dict
        By `Look` or `ValueLook`.
    shared : bool
        Whether arrays that only a run knows to be one are kept so by the graph, which takes an
        operation more for each write to one of them.
    asked : dict
        By `Look` or `SHARED`, the line that asked. Once there is one, the trace is of no use.
    """

    def __init__(self, known):
        self.known, self.asked = {look: n for look, n in known.items() if look is not SHARED}, {}
        self.shared = SHARED in known
        self._places, self._open, self._tokens = {}, set(), {}

    def dimension(self, leaf, axis, length, general, kind=Look):
        """The dimension of an axis in this trace; ``general`` is that of any length."""
        look = kind(leaf, axis)
        if type(general) is int or look in self.known:
            return length
        self._open.add(look)
        if general is not None:
            self._places[general] = look
        return general

    @property
    def values(self) -> list:
        """Which arguments' values the trace goes by."""
        return [look.leaf for look in self.known if isinstance(look, ValueLook)]

    def stands_for(self, tensor, leaf) -> None:
        """Say which argument a tensor is, whose dimensions nothing else can tell apart."""
        for axis, dimension in enumerate(tensor.spec.shape):
            if dimension is None:
                token = self._tokens[tensor, axis] = shapes.Dim()
                self._places[token] = Look(leaf, axis)

    def source(self, tensor, axis):
        """What tells the length of an axis: its dimension, or what stands for that."""
        dimension = tensor.spec.shape[axis]
        return self._tokens.get((tensor, axis)) if dimension is None else dimension

    def least(self, source) -> int:
        """The smallest length that an axis can have.

        Arguments without elements have traces of their own, in which all lengths are integers.
        """
        if source not in self._places:
            return 0
        return 1 if source in self._tokens.values() else 2

    def ask(self, sources) -> None:
        """Begin again with the lengths that decide something; return where none does.

        Parameters
        ----------
        sources : iterable
            What it depends on; None for a length that is none of an argument's.
        """
        looks = set()
        for source in sources:
            looks |= {self._places[source]} if source in self._places else self._open
        if not looks:
            return
        self.asked.update(dict.fromkeys(looks, users_line()))
        raise Asked(self)

    def ask_shared(self) -> None:
        """Begin again with arrays that may be one kept so; return where they are."""
        if not self.shared:
            self.asked[SHARED] = users_line()
            raise Asked(self)


def users_line() -> str:
    """File and line of the code that called nbta, or NumPy, which called nbta."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGES):
        frame = frame.f_back
    if frame is None:
        return "?"
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"
