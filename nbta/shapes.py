"""Partly known shapes: None for an unknown rank, else a tuple of dimensions.

A dimension is an integer, None where nothing is known, or a `Dim`: a length that only a run knows,
but which is not 1, so that broadcasting is decided. One `Dim` object stands for one length.
"""

import operator

from nbta.errors import invalid

MAX_RANK = 8


class Dim:
    """A length known at run time only, other than 1."""

    __slots__ = ()

    def __repr__(self):
        return "?"


class IterationDim(Dim):
    """A length of an iteration, of which code learns where something is first made with it."""

    __slots__ = ()


def as_pattern(argument: str, shape) -> tuple[int | None, ...] | None:
    """A shape pattern from what a user gave for ``argument``.

    Raises
    ------
    InvalidArgumentError
        For a negative dimension, one that is not an integer, or more than 8 dimensions.
    """
    if shape is None:
        return None
    dimensions = shape if isinstance(shape, tuple | list) else (shape,)
    # of tensors' shapes
    dimensions = [getattr(dimension, "pattern", dimension) for dimension in dimensions]
    pattern = tuple(
        None if dimension is None else _dimension(argument, dimension) for dimension in dimensions
    )
    if len(pattern) > MAX_RANK:
        raise invalid(
            "rank",
            f"{argument}: elements have at most {MAX_RANK} dimensions, and {pattern} has "
            f"{len(pattern)}; join some of them",
        )
    return pattern


def _dimension(argument, dimension):
    if isinstance(dimension, Dim):
        return dimension
    try:
        dimension = operator.index(dimension)
    except TypeError:
        message = (
            f"{argument}: {dimension!r} is no dimension; use an integer, or None where unknown"
        )
        raise invalid("shape", message) from None
    if not 0 <= dimension < 2**62:
        message = (
            f"{argument}: the dimension {dimension} is outside [0, 2**62); use None where unknown"
        )
        raise invalid("negative_extent", message)
    return dimension


def is_known(shape) -> bool:
    """Whether every dimension is an integer."""
    return shape is not None and all(type(dimension) is int for dimension in shape)


def public(shape):
    """The shape as users see it, with None for every dimension that is not an integer."""
    if shape is None:
        return None
    return tuple(dimension if type(dimension) is int else None for dimension in shape)


def text(shape) -> str:
    """The shape in a message: ``(2, ?)`` or ``unknown rank``."""
    if shape is None:
        return "unknown rank"
    parts = [str(dimension) if type(dimension) is int else "?" for dimension in shape]
    return f"({parts[0]},)" if len(parts) == 1 else f"({', '.join(parts)})"


def broadcast(*shapes):
    """The shape of an elementwise result.

    Raises
    ------
    ValueError
        For shapes that do not broadcast together.
    """
    if any(shape is None for shape in shapes):
        return None
    rank = max((len(shape) for shape in shapes), default=0)
    padded = [(1,) * (rank - len(shape)) + tuple(shape) for shape in shapes]
    result = []
    for dimensions in zip(*padded, strict=True):
        dimension = dimensions[0]
        for other in dimensions[1:]:
            dimension = _wider(dimension, other)
        result.append(dimension)
    return tuple(result)


def _wider(one, other):
    """The dimension that two broadcast to; unlike integers other than 1 do not."""
    if one is other or other == 1:
        return one
    if one == 1:
        return other
    proven = [dimension for dimension in (one, other) if type(dimension) is int]
    if len(proven) == 2 and one != other:
        raise ValueError
    # Whatever is not 1 decides: the other is 1 or the same.
    return (proven or [dimension for dimension in (one, other) if dimension is not None] or [None])[
        0
    ]


def merge(one, other):
    """What two descriptions of one shape say together.

    Raises
    ------
    ValueError
        For descriptions that contradict each other.
    """
    if one is None or other is None:
        return other if one is None else one
    if len(one) != len(other):
        raise ValueError
    return tuple(_both(a, b) for a, b in zip(one, other, strict=True))


def _both(one, other):
    if type(one) is int and type(other) is int:
        if one != other:
            raise ValueError
        return one
    ranked = sorted((one, other), key=lambda n: (type(n) is not int, n is None))
    return ranked[0]


def compatible(one, other) -> bool:
    """Whether two descriptions can be of one shape."""
    try:
        merge(one, other)
    except ValueError:
        return False
    return True


def common(one, other):
    """What is true of both shapes: dimensions that differ are unknown."""
    if one is None or other is None or len(one) != len(other):
        return None
    return tuple(a if a is b or a == b else None for a, b in zip(one, other, strict=True))
