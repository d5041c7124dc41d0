"""Batches: arguments that are cut along an axis, or that are lists of items."""

import numpy as np

from nbta.errors import invalid


def axes_of(batch_axis, count_of_args, places) -> tuple:
    """The batch axis of each argument, None where all items share it.

    Parameters
    ----------
    batch_axis : int or tuple of int or None
    count_of_args : int
    places : tuple of int
        Arguments with respect to which there are gradients, which items share.

    Raises
    ------
    InvalidArgumentError
        For anything else, and where no argument is left to cut.
    """
    if _is_int(batch_axis):
        batch_axis = tuple(None if i in places else batch_axis for i in range(count_of_args))
    if not (isinstance(batch_axis, tuple) and all(a is None or _is_int(a) for a in batch_axis)):
        message = (
            f"batch_axis: {batch_axis!r} is no int and no tuple of ints and None, one an argument"
        )
        raise invalid("batch_axis", message)
    if len(batch_axis) != count_of_args:
        message = (
            f"batch_axis has {len(batch_axis)} entries, and there are {count_of_args} arguments; "
            f"give one an argument, None where items share it"
        )
        raise invalid("batch_axis", message)
    for place in places:
        if batch_axis[place] is not None:
            message = (
                f"batch_axis[{place}] is {batch_axis[place]}, and argument {place} is one of "
                f"argnums, which items share; give None for it"
            )
            raise invalid("batch_axis", message)
    if not any(axis is not None for axis in batch_axis):
        message = "batch_axis: items share every argument; give the batch as one of them"
        raise invalid("batch_axis", message)
    return batch_axis


def _is_int(value):
    return isinstance(value, int) and not isinstance(value, bool)


def count(args, axes) -> int:
    """How many items there are in the arguments.

    Raises
    ------
    InvalidArgumentError
        For arguments that do not agree, and for what has no such axis.
    """
    found = [
        (path, _length(path, part, axis))
        for i, (arg, axis) in enumerate(zip(args, axes, strict=True))
        if axis is not None
        for path, part in _parts(arg, f"args[{i}]")
    ]
    if not found:
        raise invalid("batch", "the arguments to cut hold no array and no list; give the batch")
    (first, items), *others = found
    for path, length in others:
        if length != items:
            message = (
                f"{first} has {items} items, and {path} has {length}; all that is cut must agree"
            )
            raise invalid("batch", message)
    return items


def _length(path, part, axis):
    if isinstance(part, list):
        return len(part)
    shape = np.shape(part)
    if not -len(shape) <= axis < len(shape):
        message = (
            f"{path} has shape {shape}, and so no axis {axis} to cut along; say with batch_axis= "
            f"which axis counts the items, None for arguments that items share"
        )
        raise invalid("batch_axis", message)
    return shape[axis]


def cut(args, axes, start, stop) -> list:
    """The arguments, with only some of the items in those that are cut; arrays are contiguous."""

    def piece(part, axis):
        if isinstance(part, list):
            return part[start:stop]
        return np.ascontiguousarray(_along(part, axis, slice(start, stop)))

    return _taken(args, axes, piece)


def item(args, axes, number) -> list:
    """The arguments of one item."""

    def piece(part, axis):
        return part[number] if isinstance(part, list) else _along(part, axis, number)

    return _taken(args, axes, piece)


def _along(array, axis, index):
    array = np.asarray(array)
    return array[(slice(None),) * (axis % array.ndim) + (index,)]


def _taken(args, axes, piece):
    pairs = zip(args, axes, strict=True)
    return [a if axis is None else _mapped(a, lambda p, x=axis: piece(p, x)) for a, axis in pairs]


def _parts(structure, path):
    """Lists and arrays in a structure of tuples and dicts, with where each stands."""
    if isinstance(structure, dict):
        pairs = [(f"{path}[{key!r}]", part) for key, part in structure.items()]
    elif isinstance(structure, tuple):
        pairs = [(f"{path}[{i}]", part) for i, part in enumerate(structure)]
    else:
        return [] if structure is None else [(path, structure)]
    return [found for where, part in pairs for found in _parts(part, where)]


def _mapped(structure, function):
    if structure is None:
        return None
    if isinstance(structure, dict):
        return {key: _mapped(part, function) for key, part in structure.items()}
    if isinstance(structure, tuple):
        parts = [_mapped(part, function) for part in structure]
        return type(structure)(*parts) if hasattr(structure, "_fields") else tuple(parts)
    return function(structure)
