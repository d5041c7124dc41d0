"""Joining tensors and taking them apart; and what changes axes, under one roof."""

import builtins
import operator

import numpy as np

from nbta import shapes
from nbta.codegen import join_rules
from nbta.errors import invalid
from nbta.graph.operation import Tensor
from nbta.graph.spec import Spec
from nbta.ops.dispatch import apply, as_array, data_spec, define, exported
from nbta.ops.elementwise import meet
from nbta.ops.filling import zeros
from nbta.ops.gathering import along, as_axis, check_axis
from nbta.ops.indexing import getitem
from nbta.ops.rearranging import arange, expand_dims, flip, pad, squeeze
from nbta.ops.shaping import identity, reshape, shape_of

__all__ = [
    "arange",
    "concatenate",
    "expand_dims",
    "flip",
    "pad",
    "split",
    "squeeze",
    "stack",
]


def _as_values(values):
    """What is to be joined, in one dtype."""
    values = list(values)
    if not values:
        raise invalid("value", "there is nothing to join; give one tensor at least")
    return meet(*values)


def _mismatch(specs, axis, besides):
    texts = ", ".join(shapes.text(spec.shape) for spec in specs)
    return invalid("shape", f"shapes {texts} do not join along axis {axis}; {besides}")


def _infer_concatenate(*specs, axis):
    known = [spec for spec in specs if spec.shape is not None]
    if not known:
        return Spec(specs[0].dtype, None)
    place = check_axis(axis, known[0].shape)
    rest = None
    try:
        for spec in known:
            rest = shapes.merge(rest, (*spec.shape[:place], None, *spec.shape[place + 1 :]))
    except ValueError:
        raise _mismatch(specs, axis, "their other axes must be equal") from None
    total = _total([spec.shape[place] if spec.shape is not None else None for spec in specs])
    return Spec(specs[0].dtype, (*rest[:place], total, *rest[place + 1 :]))


def _total(extents):
    """The sum of extents, as far as it is known."""
    extents = [extent for extent in extents if extent != 0]
    if len(extents) == 1:
        return extents[0]
    return sum(extents) if shapes.is_known(extents) else None


def _concatenate_gradient(op, dy):
    axis, begin, grads = op.attrs["axis"], 0, []
    for tensor in op.inputs[:-1]:
        end = begin + _extent_at(tensor, axis)
        grads.append(getitem(dy, along(axis, builtins.slice(begin, end))))
        begin = end
    return [*grads, getitem(dy, along(axis, builtins.slice(begin, None)))]


def _extent_at(tensor, axis):
    extents = tensor.spec.shape
    if extents is not None and type(extents[axis]) is int:
        return extents[axis]
    return getitem(shape_of(tensor), axis)


CONCATENATE = define(
    "Concatenate",
    _infer_concatenate,
    lambda *values, axis: np.concatenate(values, axis),
    _concatenate_gradient,
    emit=join_rules.concatenate,
)


@exported(numpy=2)
def concatenate(values, axis=0, *, name=None):
    """Tensors one behind the other along an axis.

    Parameters
    ----------
    values : sequence of array-like or Tensor
        Of one shape, but for the axis.
    axis : int or None, optional
        With None, the flattened tensors are joined.

    Returns
    -------
    Tensor or numpy.ndarray
        Of the dtype that the values have in common.

    Raises
    ------
    InvalidArgumentError
        For shapes that do not fit, scalars, and an empty sequence.

    Examples
    --------
    >>> nbta.concatenate([[1, 2], [3.5]])
    array([1. , 2. , 3.5])
    """
    values = _as_values(values)
    if axis is None:
        values, axis = [reshape(value, (-1,)) for value in values], 0
    return apply(CONCATENATE, values, {"axis": as_axis(axis)}, name)


def _infer_stack(*specs, axis):
    shape = None
    try:
        for spec in specs:
            shape = shapes.merge(shape, spec.shape)
    except ValueError:
        raise _mismatch(specs, axis, "stacked tensors must have one shape") from None
    if shape is None:
        return Spec(specs[0].dtype, None)
    place = check_axis(axis, (*shape, len(specs)))
    return Spec(specs[0].dtype, (*shape[:place], len(specs), *shape[place:]))


def _stack_gradient(op, dy):
    axis = op.attrs["axis"]
    return [getitem(dy, along(axis, i)) for i in range(len(op.inputs))]


STACK = define(
    "Stack",
    _infer_stack,
    lambda *values, axis: np.stack(values, axis),
    _stack_gradient,
    emit=join_rules.stack,
    total=True,
)


@exported(numpy=2)
def stack(values, axis=0, *, name=None):
    """Tensors of one shape, joined along a new axis.

    Parameters
    ----------
    values : sequence of array-like or Tensor
    axis : int, optional
        Where the new axis is in the result.

    Returns
    -------
    Tensor or numpy.ndarray
        Of the dtype that the values have in common.

    Raises
    ------
    InvalidArgumentError
        For shapes that are not equal, and an empty sequence.

    Examples
    --------
    >>> nbta.stack([[1, 2], [3, 4]], axis=1)
    array([[1, 3],
           [2, 4]])
    """
    return apply(STACK, _as_values(values), {"axis": as_axis(axis)}, name)


def _pieces(points):
    """Slices between split points."""
    return [builtins.slice(a, b) for a, b in zip((0, *points), (*points, None), strict=True)]


def _infer_split(spec, *, sections, axis):
    count = sections if type(sections) is int else len(sections) + 1
    if spec.shape is None:
        return (Spec(spec.dtype, None),) * count
    place = check_axis(axis, spec.shape)
    extent = spec.shape[place]
    lengths = [None] * count
    if type(extent) is int:
        lengths = _lengths(spec.shape, place, sections)
    return tuple(
        Spec(spec.dtype, (*spec.shape[:place], n, *spec.shape[place + 1 :])) for n in lengths
    )


def _lengths(shape, axis, sections):
    extent = shape[axis]
    if type(sections) is not int:
        return [len(range(extent)[piece]) for piece in _pieces(sections)]
    if extent % sections:
        message = (
            f"axis {axis} of shape {shapes.text(shape)} has {extent} elements, which {sections} "
            f"equal sections do not divide; give split points"
        )
        raise invalid("split", message)
    return [extent // sections] * sections


def _evaluate_split(x, *, sections, axis):
    if type(sections) is int:
        length = _lengths(x.shape, check_axis(axis, x.shape), sections)[0]
        sections = range(length, length * sections, length) if length else (0,) * (sections - 1)
    return tuple(x[along(axis, piece)] for piece in _pieces(tuple(sections)))


def _split_gradient(op, *grads):
    parts = [
        zeros(shape_of(output), output.dtype) if grad is None else grad
        for grad, output in zip(grads, op.outputs, strict=True)
    ]
    return [concatenate(parts, op.attrs["axis"])]


def _has_lengths(op):
    """Whether sections have lengths: they are computed before the run, which checks them."""
    return not any(None in (tensor.spec.shape or (None,)) for tensor in op.outputs)


SPLIT = define(
    "Split",
    _infer_split,
    _evaluate_split,
    _split_gradient,
    emit=join_rules.split,
    total=_has_lengths,
    selects=True,
)


@exported(numpy=3)
def split(x, indices_or_sections, axis=0, *, name=None):
    """The parts of a tensor between split points along an axis.

    Parameters
    ----------
    x : array-like or Tensor
    indices_or_sections : int, or sequence of int or Tensor
        How many equal parts there are, or where parts after the first begin.
    axis : int, optional

    Returns
    -------
    list of Tensor or numpy.ndarray

    Raises
    ------
    InvalidArgumentError
        For a number of parts that does not divide the axis.

    Examples
    --------
    >>> nbta.split([1, 2, 3, 4], 2)
    [array([1, 2]), array([3, 4])]
    >>> nbta.split([1, 2, 3, 4], [1])
    [array([1]), array([2, 3, 4])]
    """
    x = x if isinstance(x, Tensor) else as_array(x)
    axis, sections = as_axis(axis), _as_sections(indices_or_sections)
    if data_spec(x).shape is not None:
        check_axis(axis, data_spec(x).shape)
    if sections in (1, ()):
        return [identity(x, name=name)]
    if type(sections) is int or _ascending(sections):
        return list(apply(SPLIT, [x], {"sections": sections, "axis": axis}, name))
    return [getitem(x, along(axis, piece), name=name) for piece in _pieces(sections)]


def _as_sections(given):
    """A number of sections, or a tuple of split points."""
    try:
        sections = operator.index(given)
    except TypeError:
        points = tuple(given)
        return tuple(n if isinstance(n, Tensor) else operator.index(n) for n in points)
    if sections < 1:
        raise invalid("split", f"{sections} sections are none; give 1 or more, or split points")
    return sections


def _ascending(points):
    """Whether pieces follow each other without overlap, so that joining them is the inverse."""
    if any(isinstance(point, Tensor) for point in points):
        return False
    return all(a <= b for a, b in zip((0, *points), points, strict=False))
