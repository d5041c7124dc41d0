"""Variables that are a number or None, which only the run knows.

In the state of a loop or a branch such a variable is two values: the number, or a stand-in for it,
and whether it is there. The user's code sees a tensor, and to use that checks that it is there.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nbta.frontend import effects
from nbta.frontend.problems import here
from nbta.graph.operation import Tensor
from nbta.ops.dispatch import as_tensor
from nbta.structure import leaves


class Parts(NamedTuple):
    """A number or None in the state of a loop or a branch."""

    value: object
    present: object


class Maybe(Tensor):
    """A number or None in the user's code.

    Attributes
    ----------
    parts : Parts
    """

    __slots__ = ("parts",)

    def __init__(self, parts):
        self.parts = parts

    @property
    def itself(self):
        """The number, which a run fails for where there is none."""
        error = TypeError(
            f"{here()}: None, or what has no value yet, is used as a number, on the way taken"
        )
        effects.check(self.parts.present, error)
        return as_tensor(self.parts.value)

    content = property(lambda self: self.itself)
    is_known = False
    graph = property(lambda self: self.parts.value.graph)
    op = property(lambda self: self.parts.value.op)
    index = property(lambda self: self.parts.value.index)
    spec = property(lambda self: self.parts.value.spec)


def as_state(values) -> tuple:
    """The values of variables, of which two stand for one that may be None."""
    return tuple(value.parts if isinstance(value, Maybe) else value for value in values)


def as_user(values) -> tuple:
    """The values of variables for the user's code."""
    return tuple(map(_seen, values))


def _seen(value):
    if not isinstance(value, Parts):
        return value
    if not isinstance(value.present, Tensor):
        return value.value if value.present else None
    if not isinstance(value.value, Tensor):
        value = Parts(as_tensor(value.value), value.present)
    return Maybe(value)


def in_state(get, set_):
    """Functions that get and set variables, for the state of a loop or a branch."""
    setter = set_ and (lambda values: set_(as_user(values)))
    return lambda: as_state(get()), setter


def may_be_none(one, other) -> bool:
    """Whether one of two values of a variable may be None, and they go together else."""
    kinds = [_is_empty(value) or isinstance(value, Parts) for value in (one, other)]
    return any(kinds) and all(
        empty or is_number(value) for empty, value in zip(kinds, (one, other), strict=True)
    )


def _is_empty(value) -> bool:
    """Whether a value is None, or that of an attribute that is not there."""
    return value is None or getattr(type(value), "is_absent", False)


def is_number(value) -> bool:
    """Whether a value is a scalar of the graph's or Python's."""
    if isinstance(value, Tensor):
        return value.kind == "data" and value.spec.rank == 0
    return isinstance(value, bool | int | float | complex | np.generic)


def as_parts(value, like) -> Parts:
    """A value that may be None; ``like`` is a number that it is in other cases, or parts."""
    if isinstance(value, Parts):
        return value
    if _is_empty(value):
        like = leaves(like)[0]
        dtype = like.dtype if hasattr(like, "dtype") else np.asarray(like).dtype
        return Parts(np.zeros((), dtype)[()], np.False_)
    return Parts(value, np.True_)
