"""Batches in pieces: lists of items, and structures of arrays that hold an item a row."""

import numpy as np

from nbta.batching import common_length, items_first
from nbta.structure import map_batches


def count(args, axes) -> int:
    """How many items there are in arguments that are cut along some axes.

    Raises
    ------
    InvalidArgumentError
        For arguments that do not agree, and for what has no such axis.
    """
    return common_length(
        (path, length)
        for i, (arg, axis) in enumerate(zip(args, axes, strict=True))
        if axis is not None
        for path, length in _lengths(f"args[{i}]", arg, axis)
    )


def _lengths(path, arg, axis):
    found = []

    def noted(path, part):
        is_list = isinstance(part, list)
        found.append((path, len(part) if is_list else len(items_first(path, part, axis))))

    map_batches(noted, path, arg)
    return found


def cut(arg, axis, start, stop):
    """Some items of an argument; in its arrays, which are contiguous, the first axis is theirs."""

    def some(path, part):
        if isinstance(part, list):
            return part[start:stop]
        return np.ascontiguousarray(items_first(path, part, axis)[start:stop])

    return map_batches(some, "args", arg)


def item(piece, number):
    """An item of what `cut` gives."""
    return map_batches(lambda _, part: part[number], "args", piece)
