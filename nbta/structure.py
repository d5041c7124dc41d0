"""Nested structures: lists, tuples, named tuples and dicts of values."""

import numpy as np

from nbta.dtypes import as_plain
from nbta.errors import invalid
from nbta.graph.operation import Shape, Tensor
from nbta.ops.joining import concatenate
from nbta.ops.shaping import reshape, shape_of

LEAF = object()


def leaves(structure) -> list:
    """The values of a structure, from left to right, of dicts by key; None has none."""
    if structure is None:
        return []
    if isinstance(structure, dict):
        return [leaf for key in _keys(structure) for leaf in leaves(structure[key])]
    if isinstance(structure, list | tuple):
        return [leaf for part in structure for leaf in leaves(part)]
    return [structure]


def _keys(structure):
    """Keys of a dict, in an order that does not depend on how it was filled."""
    return sorted(structure, key=repr)


def layout(structure):
    """A structure without its values, for comparison."""
    if structure is None:
        return None
    if isinstance(structure, dict):
        keys = _keys(structure)
        return (dict, tuple(keys), tuple(layout(structure[key]) for key in keys))
    if isinstance(structure, list | tuple):
        return (_kind(structure), tuple(layout(part) for part in structure))
    return LEAF


def _kind(sequence):
    """Its type; a tensor's shape is a tuple like any other."""
    return tuple if isinstance(sequence, Shape) else type(sequence)


def pack(like, values):
    """The structure of ``like`` with other values."""
    values = iter(values)
    return _pack(like, values)


def _pack(like, values):
    if like is None:
        return None
    if isinstance(like, dict):
        parts = {key: _pack(like[key], values) for key in _keys(like)}
        return {key: parts[key] for key in like}
    if isinstance(like, tuple) and hasattr(like, "_fields"):
        return type(like)(*(_pack(part, values) for part in like))
    if isinstance(like, list | tuple):
        return _kind(like)(_pack(part, values) for part in like)
    return next(values)


def map_leaves(function, *structures):
    """A structure like the first, of the function's results on the values of all."""
    return pack(structures[0], map(function, *(leaves(part) for part in structures)))


def map_batches(function, path, batches):
    """A structure of ``function(path, batch)`` for the batches in a structure, in order of leaves.

    Lists are batches, whatever their items are; tuples and dicts are structures of batches.
    """
    if batches is None:
        return None
    if isinstance(batches, dict):
        parts = {k: map_batches(function, f"{path}[{k!r}]", batches[k]) for k in _keys(batches)}
        return {key: parts[key] for key in batches}
    if isinstance(batches, tuple):
        parts = [map_batches(function, f"{path}[{i}]", part) for i, part in enumerate(batches)]
        return type(batches)(*parts) if hasattr(batches, "_fields") else tuple(parts)
    return function(path, batches)


def describe(structure) -> str:
    """A structure in a message: ``(*, {'a': *})`` with stars for values."""
    if isinstance(structure, dict):
        return "{" + ", ".join(f"{k!r}: {describe(v)}" for k, v in structure.items()) + "}"
    if isinstance(structure, tuple):
        inner = ", ".join(map(describe, structure))
        return f"({inner},)" if len(structure) == 1 else f"({inner})"
    if isinstance(structure, list):
        return "[" + ", ".join(map(describe, structure)) + "]"
    return "None" if structure is None else "*"


def paths(structure, name) -> list[str]:
    """Where each value stands, as Python would say it: ``name[0]['a']``."""
    if isinstance(structure, dict):
        return [p for key in _keys(structure) for p in paths(structure[key], f"{name}[{key!r}]")]
    if isinstance(structure, list | tuple):
        return [p for i, part in enumerate(structure) for p in paths(part, f"{name}[{i}]")]
    return [] if structure is None else [name]


def flatten(structure):
    """All values of a structure one behind the other, those of dicts by key.

    Parameters
    ----------
    structure : nested lists, tuples and dicts of arrays, numbers or Tensors

    Returns
    -------
    numpy.ndarray or Tensor, shape (total number of elements,)
        In the dtype that all values have in common.

    See Also
    --------
    unflatten : the inverse.

    Examples
    --------
    >>> nbta.flatten({"bias": 1.0, "weights": np.array([[2.0, 3.0]])})
    array([1., 2., 3.])
    """
    parts = [reshape(part, (-1,)) for part in leaves(structure)]
    if not parts:
        return np.zeros(0)
    return concatenate(parts)


def unflatten(vector, like):
    """Cut a vector into a structure of arrays.

    Parameters
    ----------
    vector : array-like or Tensor, shape (total number of elements,)
    like : structure
        Has the structure and the shapes; its values do not matter.

    Returns
    -------
    structure
        Like ``like``, of the vector's dtype.

    Raises
    ------
    InvalidArgumentError
        For a vector of another length.

    Examples
    --------
    >>> nbta.unflatten([1.0, 2.0, 3.0], {"bias": 0.0, "weights": np.zeros((1, 2))})
    {'bias': np.float64(1.0), 'weights': array([[2., 3.]])}
    """
    vector = vector if isinstance(vector, Tensor) else as_plain("vector", vector)
    extents = [_shape(part) for part in leaves(like)]
    counts = [int(np.prod(shape)) for shape in extents]
    length = vector.shape[0] if vector.shape else None
    if vector.ndim != 1 or length not in (None, sum(counts)):
        message = (
            f"unflatten: vector has shape {vector.shape}, and the structure has {sum(counts)} "
            f"elements; give a vector of that length"
        )
        raise invalid("unflatten", message)
    ends = np.cumsum(counts)
    parts = [vector[end - n : end] for end, n in zip(ends, counts, strict=True)]
    cut = [reshape(part, shape) for part, shape in zip(parts, extents, strict=True)]
    return pack(like, (part if isinstance(part, Tensor) else part[()] for part in cut))


def _shape(part):
    if isinstance(part, Tensor):
        shape = shape_of(part)
        if isinstance(shape, Tensor):
            message = f"unflatten: the shape of {part.name!r} is not known; give arrays as like"
            raise invalid("unflatten", message)
        return tuple(int(n) for n in shape)
    return np.shape(part)
