"""Shapes as arguments: what users give for one, and what is known of its dimensions."""

import numpy as np

from nbta.dtypes import as_plain, check_plain
from nbta.errors import invalid
from nbta.graph.graph import SubGraph
from nbta.graph.operation import Tensor
from nbta.ops.core.dispatch import FUNCTIONS, stacked


def as_shape(shape, *others):
    """A shape argument as a vector of int64, symbolic where any dimension is."""
    if isinstance(shape, Tensor):
        if shape.dtype.kind not in "iu" or shape.ndim not in (0, 1, None):
            message = f"shape: {shape!r} is not a shape; give a vector of integers"
            raise invalid("shape", message)
        if shape.ndim == 1 and hasattr(length := shape.shape[0], "ask_again"):
            length.ask_again()  # it is the rank, which a trace may be for
        return shape
    check_plain("shape", shape)
    dimensions = list(shape) if isinstance(shape, list | tuple) or np.ndim(shape) else [shape]
    if any(isinstance(dimension, list | tuple | dict) for dimension in dimensions):
        raise invalid("shape", "shape contains a sequence; give one integer per axis")
    floats = [n for n in dimensions if isinstance(n, Tensor) and n.dtype.kind not in "iu"]
    if floats:
        raise invalid("shape", f"shape: {floats[0]!r} is not an integer; give one integer per axis")
    if any(isinstance(dimension, Tensor) for dimension in dimensions):
        cast = FUNCTIONS["cast"]  # which stands above: it takes tensors, whose making takes shapes
        return stacked([cast(dimension, np.int64) for dimension in dimensions])
    array = as_plain("shape", dimensions)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise invalid("shape", f"shape: {shape!r} is not a shape; give one integer per axis")
    if (array < -1).any():
        raise invalid("shape", f"shape: {shape!r} has a negative dimension")
    return array.astype(np.int64)


def pattern_of(shape):
    """What is known of the dimensions in a shape argument: a tuple, or None for an unknown rank."""
    if not isinstance(shape, Tensor):
        return tuple(int(dimension) for dimension in np.atleast_1d(shape))
    if shape.spec.rank == 0:
        return (_dimension(shape),)
    found = _vector(shape)
    if found is not None:
        return tuple(None if type(n) is int and n < 0 else n for n in found)
    length = shape.spec.shape[0] if shape.spec.shape else None
    return (None,) * length if type(length) is int else None


def outside(tensor):
    """The tensor that a captured parameter stands for; any other tensor itself."""
    tensor = tensor if type(tensor) is Tensor else tensor.itself
    while isinstance(tensor.graph, SubGraph) and tensor in tensor.graph.sources:
        tensor = tensor.graph.sources[tensor]
    return tensor


def _vector(tensor):
    """Dimensions in a tensor that holds a shape, as far as its making tells them."""
    tensor = outside(tensor)
    op = tensor.op
    if op.type == "Constant":
        return tuple(int(dimension) for dimension in np.atleast_1d(op.attrs["value"]))
    if op.type == "Shape":
        return op.inputs[0].spec.shape
    if op.type == "Cast":
        return _vector(op.inputs[0])
    if op.type == "Stack":
        return tuple(_dimension(item) for item in op.inputs)
    if op.type == "Concatenate":
        parts = [_vector(part) for part in op.inputs]
        return None if None in parts else tuple(dimension for part in parts for dimension in part)
    if op.type == "GetItem" and len(op.inputs) == 1:
        return _picked(op, slice)
    return None


def _dimension(tensor):
    """The dimension in a scalar, None where it is not known."""
    tensor = outside(tensor)
    op = tensor.op
    if op.type == "Constant" and op.attrs["value"].ndim == 0:
        return int(op.attrs["value"])
    if op.type == "Cast":
        return _dimension(op.inputs[0])
    if op.type == "GetItem" and len(op.inputs) == 1:
        return _picked(op, int)
    if op.type == "TensorArraySizeV3":
        return _size(outside(op.inputs[0]).op)
    return None


def _size(op):
    """How many slots an array has that an operation makes, where that stays."""
    fixed = op.type == "TensorArrayV3" and not op.attrs["dynamic_size"]
    return _dimension(op.inputs[0]) if fixed else None


def _picked(op, kind):
    """One dimension, or some, taken out of a shape."""
    vector, key = _vector(op.inputs[0]), op.attrs["key"]
    if vector is None or len(key) != 1 or not isinstance(key[0], kind):
        return None
    try:
        return vector[key[0]]
    except IndexError:
        return None
