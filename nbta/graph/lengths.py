"""Lengths that Python code asks for while it is traced, and what a trace knows of them."""

import os
import sys
from typing import NamedTuple

import numpy as np

from nbta import shapes

_PACKAGES = tuple(
    os.path.dirname(os.path.abspath(file)) + os.sep for file in (shapes.__file__, np.__file__)
)


class Look(NamedTuple):
    """What a trace goes by: the length of an axis of an argument, or whether that is 0.

    Attributes
    ----------
    leaf : int
        Which of the arguments' values.
    axis : int
    exact : bool
        Whether the length itself was asked for.
    """

    leaf: int
    axis: int
    exact: bool

    def __call__(self, values):
        """What it sees of arguments."""
        extent = values[self.leaf].shape[self.axis]
        return extent if self.exact else extent == 0


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
        What was looked at before: by `Look`, what it saw.

    Attributes
    ----------
    known : dict
    asked : dict
        By `Look`, the line that asked. Once there is one, the trace is of no use.
    """

    def __init__(self, known):
        self.known, self.asked = known, {}
        self._places, self._open, self._tokens = {}, [], {}
        self._positive = {look[:2] for look, seen in known.items() if not look.exact and not seen}

    def extent(self, leaf, axis, length, general):
        """The extent of an axis in this trace; ``general`` is that of any length."""
        if type(general) is int:
            return general
        if Look(leaf, axis, True) in self.known or self.known.get(Look(leaf, axis, False)):
            return length
        self._open.append((leaf, axis))
        if general is not None:
            self._places[general] = leaf, axis
        return general

    def stands_for(self, tensor, leaf) -> None:
        """Say which argument a tensor is, whose extents nothing else can tell apart."""
        for axis, extent in enumerate(tensor.spec.shape):
            if extent is None:
                token = self._tokens[tensor, axis] = shapes.Dim()
                self._places[token] = leaf, axis

    def source(self, tensor, axis):
        """What tells the length of an axis: its extent, or what stands for that."""
        extent = tensor.spec.shape[axis]
        return self._tokens.get((tensor, axis)) if extent is None else extent

    def least(self, source) -> int:
        """The smallest length that an axis can have."""
        if self._places.get(source) not in self._positive:
            return 0
        return 1 if source in self._tokens.values() else 2

    def ask(self, sources, exact) -> None:
        """Begin again with what an answer needs; nothing happens where no argument decides it.

        Parameters
        ----------
        sources : iterable
            Which the answer depends on; None for a length that is none of an argument's.
        exact : bool
            Whether a length is asked for; otherwise first whether it is 0.
        """
        looks = set()
        for source in sources:
            place = self._places.get(source)
            if place is None:
                looks |= {Look(*each, True) for each in self._open}
            else:
                looks.add(Look(*place, exact or place in self._positive))
        if not looks:
            return
        if not all(look.exact for look in looks):
            looks = {look for look in looks if not look.exact}
        self.asked.update(dict.fromkeys(looks, users_line()))
        raise Asked(self)


def users_line() -> str:
    """File and line of the code that called nbta, or NumPy, which called nbta."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGES):
        frame = frame.f_back
    if frame is None:
        return "?"
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"
