"""Batches in pieces: lists of items, and structures of arrays that hold an item a row."""

import numpy as np

from nbta.batching import common_length, items_first
from nbta.structure import leaves, map_leaves, paths


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
    if isinstance(arg, list):
        return [(path, len(arg))]
    pairs = zip(paths(arg, path), leaves(arg), strict=True)
    return [(name, len(items_first(name, value, axis))) for name, value in pairs]


def cut(arg, axis, start, stop):
    """Some items of an argument; in its arrays, which are contiguous, the first axis is theirs."""
    if isinstance(arg, list):
        return arg[start:stop]

    def rows(value):
        return np.ascontiguousarray(items_first("args", value, axis)[start:stop])

    return map_leaves(rows, arg)


def item(piece, number):
    """An item of what `cut` gives."""
    if isinstance(piece, list):
        return piece[number]
    return map_leaves(lambda rows: rows[number], piece)
