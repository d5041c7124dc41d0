"""Nested structures: lists, tuples, named tuples, dicts and objects of users' classes."""

from __future__ import annotations

import copy
import dataclasses
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import numpy as np

from nbta import classes
from nbta.classes import node_of
from nbta.dtypes import as_plain
from nbta.errors import invalid
from nbta.graph.operation import Shape, Tensor
from nbta.ops.core.shaping import reshape, shape_of
from nbta.ops.indexing.joining import concatenate

if TYPE_CHECKING:
    from collections.abc import Callable

    from nbta.typing import Array, ArrayLike, T

LEAF = object()


def leaves(structure) -> list:
    """The values of a structure, from left to right, of dicts by key; None has none."""
    found: list = []
    try:
        _collect(structure, found)
    except RecursionError:
        message = "a list, a dict or an object contains itself, or goes too deep; give its parts"
        raise invalid("argument", message) from None
    return found


def _collect(structure, found):
    """Append the values of a structure; arrays first, of which a list may hold a million."""
    if type(structure) is np.ndarray:
        found.append(structure)
    elif isinstance(structure, list | tuple):
        for part in structure:
            _collect(part, found)
    elif isinstance(structure, dict):
        for _, part in items_of(structure):
            _collect(part, found)
    elif (node := node_of(structure)) is not None:
        for part in node.parts:
            _collect(part, found)
    elif structure is not None:
        found.append(structure)


def items_of(structure: dict) -> list[tuple]:
    """Keys and values of a dict, in an order that does not depend on how it was filled.

    They are those that it holds, whatever its class gives for them.
    """
    return [(key, dict.__getitem__(structure, key)) for key in sorted(structure, key=repr)]


def layout(structure):
    """A structure without its values, for comparison."""
    if structure is None:
        return None
    if isinstance(structure, dict):
        items = items_of(structure)
        return (dict, tuple(key for key, _ in items), tuple(layout(part) for _, part in items))
    if isinstance(structure, list | tuple):
        return (_kind(structure), tuple(layout(part) for part in structure))
    if (node := node_of(structure)) is not None:
        return (node.kind, node.rest, tuple(map(layout, node.parts)))
    return LEAF


def _kind(sequence):
    """Its type; a tensor's shape is a tuple like any other."""
    return tuple if isinstance(sequence, Shape) else type(sequence)


def pack(like, values, of_list=list):
    """The structure of ``like`` with other values.

    ``of_list`` makes what stands for a list of Python's.
    """
    return _pack(like, iter(values), of_list)


def _pack(like, values, of_list):
    if like is None:
        return None
    if isinstance(like, dict):
        parts = {key: _pack(part, values, of_list) for key, part in items_of(like)}
        return dict_like(like, {key: parts[key] for key in like})
    if isinstance(like, tuple) and hasattr(like, "_fields"):
        return type(like)(*(_pack(part, values, of_list) for part in like))
    if isinstance(like, list | tuple):
        kind = _kind(like)
        return (of_list if kind is list else kind)(_pack(part, values, of_list) for part in like)
    if (node := node_of(like)) is not None:
        return node.packed([_pack(part, values, of_list) for part in node.parts])
    return next(values)


def kind_of_dict(like: dict) -> tuple:
    """What a dict has beside items: its class, what makes items that it misses, and attributes."""
    made = like.default_factory if isinstance(like, defaultdict) else None
    return type(like), made, bool(getattr(like, "__dict__", None))


def dict_like(like: dict, items: dict) -> dict:
    """A dict of the same class with other items under the same keys.

    Raises
    ------
    InvalidArgumentError
        For one with attributes besides, which may hold what the items are, or change.
    """
    kind, _, has_more = kind_of_dict(like)
    if kind is dict:
        return items
    if has_more:
        message = f"a {kind.__name__} is a dict with attributes of its own; give dict(...) of it"
        raise invalid("argument", message)
    found = copy.copy(like)
    dict.update(found, items)
    return found


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
        items = items_of(batches)
        parts = {key: map_batches(function, f"{path}[{key!r}]", part) for key, part in items}
        return dict_like(batches, {key: parts[key] for key in batches})
    if isinstance(batches, tuple):
        parts = [map_batches(function, f"{path}[{i}]", part) for i, part in enumerate(batches)]
        return type(batches)(*parts) if hasattr(batches, "_fields") else tuple(parts)
    if (node := node_of(batches)) is not None:
        named = zip(node.names, node.parts, strict=True)
        return node.packed([map_batches(function, path + name, part) for name, part in named])
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
    if (node := node_of(structure)) is not None:
        return f"{node.kind.__name__}({', '.join(map(describe, node.parts))})"
    return "None" if structure is None else "*"


def paths(structure, name) -> list[str]:
    """Where each value stands, as Python would say it: ``name[0]['a']``."""
    if isinstance(structure, dict):
        items = items_of(structure)
        return [p for key, part in items for p in paths(part, f"{name}[{key!r}]")]
    if isinstance(structure, list | tuple):
        return [p for i, part in enumerate(structure) for p in paths(part, f"{name}[{i}]")]
    if (node := node_of(structure)) is not None:
        named = zip(node.names, node.parts, strict=True)
        return [p for own, part in named for p in paths(part, name + own)]
    return [] if structure is None else [name]


def register_structure(
    kind: type[T],
    flatten: Callable[[T], tuple[Any, Any]] | None = None,
    unflatten: Callable[[Any, Any], T] | None = None,
) -> type[T]:
    """Make objects of a class structures, as arguments and results of all functions, and in files.

    Dataclasses and named tuples are structures without registration. If they are registered, `load`
    can find the class, and objects of a dataclass with its own ``__init__`` are made without
    calling it.

    Parameters
    ----------
    kind : type
        The class; its subclasses are not registered.
    flatten : callable, optional
        ``flatten(object)`` returns a pair: the parts, a sequence of structures, and the rest, which
        has a hash and is part of the key of a graph. It is not needed for a dataclass: its fields
        are the parts, except strings, functions, members of enumerations, dtypes and classes, or
        tuples of these, which are the rest.
    unflatten : callable, optional
        ``unflatten(rest, parts)`` makes an object from both; the parts may be tensors.

    Returns
    -------
    type
        The class, so that `register_structure` can be used as a decorator of dataclasses.

    Raises
    ------
    InvalidArgumentError
        If ``kind`` is not a class or is already a structure, or if only one of the two functions is
        given.

    Notes
    -----
    This is JAX's ``jax.tree_util.register_pytree_node``. Objects of registered classes are values:
    a function gets its own copy of an object, and returns what it changes.

    Objects of a dataclass that is not registered are values, too, when they are passed to a
    function, and when a loop or branch of the graph replaces one by another; otherwise their fields
    may be assigned, like those of any object. The dataclass must have the ``__init__`` that
    ``@dataclass`` wrote, and its objects may not have attributes other than fields (and cached
    properties, which are computed again). An object is made from its fields without calling
    ``__post_init__``.

    Examples
    --------
    >>> class Line:
    ...     def __init__(self, slope, offset):
    ...         self.slope, self.offset = slope, offset
    >>> line = nbta.register_structure(
    ...     Line, lambda line: ((line.slope, line.offset), None), lambda _, parts: Line(*parts)
    ... )
    >>> found = nbta.grad(lambda line, x: line.slope * x + line.offset)(Line(2.0, 1.0), 3.0)
    >>> found.slope, found.offset
    (np.float64(3.0), np.float64(1.0))

    A dataclass, of which the text is part of what the graph is for:

    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Layer:
    ...     weights: np.ndarray
    ...     kind: str
    >>> def output(layer, x):
    ...     y = layer.weights @ x
    ...     return np.tanh(y) if layer.kind == "tanh" else y
    >>> nbta.grad(output)(Layer(np.array([0.0, 0.0]), "tanh"), np.array([1.0, 2.0]))
    Layer(weights=array([1., 2.]), kind='tanh')
    """
    if not isinstance(kind, type):
        raise invalid("register", f"register_structure: {kind!r} is no class")
    plain = flatten is None and unflatten is None
    named = plain and classes.is_namedtuple(kind)
    if issubclass(kind, list | tuple | dict) and not named:
        raise invalid("register", f"register_structure: {kind.__name__} is a structure already")
    if plain and (named or dataclasses.is_dataclass(kind)):
        classes.add(kind, None)
    elif flatten is None or unflatten is None:
        message = (
            f"register_structure: {kind.__name__} is no dataclass; give flatten and unflatten, both"
        )
        raise invalid("register", message)
    else:
        classes.add(kind, (flatten, unflatten))
    return kind


def tree_map(function: Callable[..., Any], structure: Any, *others: Any) -> Any:
    """Apply a function to the values of one or more structures; return the structure of results.

    Parameters
    ----------
    function : callable
        A function of one value from each structure.
    structure : nested lists, tuples, dicts, dataclasses and registered classes
        The first structure.
    *others : structure
        Structures of the same layout.

    Returns
    -------
    structure
        The results, in the layout of the first structure.

    Raises
    ------
    InvalidArgumentError
        If the layouts of the structures differ.

    Notes
    -----
    This is JAX's ``jax.tree.map``; the results of ``function`` may be structures themselves.

    Examples
    --------
    >>> weights, slopes = {"w": 1.0, "b": [2.0]}, {"w": 10.0, "b": [20.0]}
    >>> nbta.tree_map(lambda p, g: p - 0.1 * g, weights, slopes)
    {'w': 0.0, 'b': [0.0]}
    """
    for other in others:
        if layout(other) != layout(structure):
            message = (
                f"tree_map: structures must be equal, and are {describe(structure)} and "
                f"{describe(other)}"
            )
            raise invalid("structure", message)
    return map_leaves(function, structure, *others)


def flatten(structure: Any) -> Array:
    """Concatenate all values of a structure into a vector, those of dicts in sorted order of keys.

    Parameters
    ----------
    structure : nested lists, tuples, dicts and dataclasses of arrays, numbers or Tensors
        The structure.

    Returns
    -------
    numpy.ndarray or Tensor, shape (total number of elements,)
        The values, in their common dtype.

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


def unflatten(vector: ArrayLike, like: T) -> T:
    """Divide a vector into a structure of arrays.

    Parameters
    ----------
    vector : array-like or Tensor, shape (total number of elements,)
        The values.
    like : structure
        A structure with the wanted layout and shapes; its values are not used.

    Returns
    -------
    structure
        A structure like ``like``, in the vector's dtype.

    Raises
    ------
    InvalidArgumentError
        If the length of the vector does not fit.

    Examples
    --------
    >>> nbta.unflatten([1.0, 2.0, 3.0], {"bias": 0.0, "weights": np.zeros((1, 2))})
    {'bias': np.float64(1.0), 'weights': array([[2., 3.]])}
    """
    vector = vector if isinstance(vector, Tensor) else as_plain("vector", vector)
    dimensions = [_shape(part) for part in leaves(like)]
    counts = [int(np.prod(shape)) for shape in dimensions]
    length = vector.shape[0] if vector.shape else None
    if vector.ndim != 1 or length not in (None, sum(counts)):
        message = (
            f"unflatten: vector has shape {vector.shape}, and the structure has {sum(counts)} "
            f"elements; give a vector of that length"
        )
        raise invalid("unflatten", message)
    ends = np.cumsum(counts)
    parts = [vector[end - n : end] for end, n in zip(ends, counts, strict=True)]
    cut = [reshape(part, shape) for part, shape in zip(parts, dimensions, strict=True)]
    return pack(like, (part if isinstance(part, Tensor) else part[()] for part in cut))


def _shape(part):
    if isinstance(part, Tensor):
        shape = shape_of(part)
        if isinstance(shape, Tensor):
            message = f"unflatten: the shape of {part.name!r} is not known; give arrays as like"
            raise invalid("unflatten", message)
        return tuple(int(n) for n in shape)
    return np.shape(part)
