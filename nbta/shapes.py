"""Partly known shapes: None for an unknown rank, else a tuple of extents, None where unknown."""

import operator

from nbta.errors import invalid

MAX_RANK = 8


def as_pattern(argument: str, shape) -> tuple[int | None, ...] | None:
    """A shape pattern from what a user gave for ``argument``.

    Raises
    ------
    InvalidArgumentError
        For a negative extent, one that is not an integer, or more than 8 dimensions.
    """
    if shape is None:
        return None
    extents = shape if isinstance(shape, tuple | list) else (shape,)
    pattern = tuple(None if extent is None else _extent(argument, extent) for extent in extents)
    if len(pattern) > MAX_RANK:
        raise invalid(
            "rank",
            f"{argument}: elements have at most {MAX_RANK} dimensions, and {pattern} has "
            f"{len(pattern)}; join some of them",
        )
    return pattern


def _extent(argument, extent):
    try:
        extent = operator.index(extent)
    except TypeError:
        message = f"{argument}: {extent!r} is no extent; use an integer, or None where unknown"
        raise invalid("shape", message) from None
    if not 0 <= extent < 2**62:
        message = f"{argument}: the extent {extent} is outside [0, 2**62); use None where unknown"
        raise invalid("negative_extent", message)
    return extent
