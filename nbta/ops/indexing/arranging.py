"""Tensors laid out anew: under each other, in rows, repeated, rolled, turned, in grids."""

from __future__ import annotations

import functools
import math
import operator
from typing import TYPE_CHECKING

import numpy as np

from nbta.codegen.windows import move, window
from nbta.dtypes import as_dtype
from nbta.errors import invalid
from nbta.graph.operation import Spec, Tensor
from nbta.loops import select
from nbta.loops.nodes import ZERO
from nbta.ops.core.arithmetic import greater_equal, logical_or, multiply
from nbta.ops.core.axis_arguments import integers, one_axis, operand
from nbta.ops.core.axis_arguments import within as places_of
from nbta.ops.core.checks import checked
from nbta.ops.core.dispatch import apply, data_spec, define, exported, is_weak, stands_for
from nbta.ops.core.elementwise import common_dtype, promoted
from nbta.ops.core.filling import arange, zeros, zeros_like
from nbta.ops.core.shaping import broadcast_to, cast, identity, named, reshape
from nbta.ops.indexing.gathering import as_indices, take
from nbta.ops.indexing.items import getitem
from nbta.ops.indexing.joining import (
    as_sections,
    concatenate,
    expand_dims,
    flip,
    rows_of,
    split,
    stack,
)
from nbta.ops.indexing.transposing import swapaxes, transpose

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nbta.typing import Array, ArrayLike, Axis, ShapeLike

__all__ = [
    "append",
    "array_split",
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "block",
    "broadcast_arrays",
    "column_stack",
    "dsplit",
    "dstack",
    "fliplr",
    "flipud",
    "hsplit",
    "hstack",
    "kron",
    "matrix_transpose",
    "meshgrid",
    "moveaxis",
    "ravel",
    "repeat",
    "resize",
    "roll",
    "rollaxis",
    "rot90",
    "tile",
    "vsplit",
    "vstack",
]


def ranked(x):
    """A tensor or an array whose rank is known."""
    x = operand(x)
    if data_spec(x).shape is None:
        message = (
            f"{x!r} has an unknown rank; reshape it to a shape with as many dimensions as axes"
        )
        raise invalid("rank", message)
    return x


# More axes.


def _in_rank(x, rank):
    """With new axes of length 1 in front, or for matrices of rank 3 after, as NumPy has it."""
    x = ranked(x)
    if x.ndim >= rank:
        return x
    keys = {3: {0: (None,) * 3, 1: (None, ..., None), 2: (..., None)}}
    return getitem(x, keys.get(rank, {}).get(x.ndim, (None,) * (rank - x.ndim)))


def _all_in_rank(arrays, rank, name):
    found = tuple(named(_in_rank(x, rank), name=name) for x in arrays)
    return found[0] if len(found) == 1 else found


@exported(numpy=math.inf)
def atleast_1d(*arrays: ArrayLike, name: str | None = None) -> Array | tuple[Array, ...]:
    """Tensors of rank 1 or more, as `numpy.atleast_1d`: scalars become vectors of length 1.

    Parameters
    ----------
    *arrays : array-like or Tensor
        Tensors of any rank.

    Returns
    -------
    Tensor or numpy.ndarray, or a tuple of them
        One for each argument; a tuple if there are several.

    Raises
    ------
    InvalidArgumentError
        For an unknown rank.

    Examples
    --------
    >>> nbta.atleast_1d(2.5)
    array([2.5])
    """
    return _all_in_rank(arrays, 1, name)


@exported(numpy=math.inf)
def atleast_2d(*arrays: ArrayLike, name: str | None = None) -> Array | tuple[Array, ...]:
    """Tensors of rank 2 or more, as `numpy.atleast_2d`: new axes come first.

    Parameters
    ----------
    *arrays : array-like or Tensor
        Tensors of any rank.

    Returns
    -------
    Tensor or numpy.ndarray, or a tuple of them
        One for each argument; a tuple if there are several.

    Raises
    ------
    InvalidArgumentError
        For an unknown rank.

    Examples
    --------
    >>> nbta.atleast_2d([1, 2])
    array([[1, 2]])
    """
    return _all_in_rank(arrays, 2, name)


@exported(numpy=math.inf)
def atleast_3d(*arrays: ArrayLike, name: str | None = None) -> Array | tuple[Array, ...]:
    """Tensors of rank 3 or more, as `numpy.atleast_3d`.

    A vector of length n becomes ``(1, n, 1)``, a matrix ``(m, n)`` becomes ``(m, n, 1)``.

    Parameters
    ----------
    *arrays : array-like or Tensor
        Tensors of any rank.

    Returns
    -------
    Tensor or numpy.ndarray, or a tuple of them
        One for each argument; a tuple if there are several.

    Raises
    ------
    InvalidArgumentError
        For an unknown rank.

    Examples
    --------
    >>> nbta.atleast_3d([1, 2]).shape
    (1, 2, 1)
    """
    return _all_in_rank(arrays, 3, name)


# Joining.


@exported(numpy=1)
def vstack(values: Sequence[ArrayLike] | Array, *, name: str | None = None) -> Array:
    """Tensors joined along the first axis, vectors being rows, as `numpy.vstack`.

    Parameters
    ----------
    values : sequence of array-like or Tensor, or Tensor
        What to join; of one tensor, its parts along the first axis.

    Returns
    -------
    Tensor or numpy.ndarray
        The joined tensors, of rank 2 or more, in the promoted dtype.

    Raises
    ------
    InvalidArgumentError
        For shapes that do not fit together, and for an empty sequence.

    Examples
    --------
    >>> nbta.vstack([[1, 2], [3, 4]])
    array([[1, 2],
           [3, 4]])
    """
    return concatenate([_in_rank(x, 2) for x in rows_of(values)], 0, name=name)


@exported(numpy=1)
def hstack(values: Sequence[ArrayLike] | Array, *, name: str | None = None) -> Array:
    """Tensors joined along the second axis, vectors and scalars along the first, as `numpy.hstack`.

    Parameters
    ----------
    values : sequence of array-like or Tensor, or Tensor
        What to join; of one tensor, its parts along the first axis.

    Returns
    -------
    Tensor or numpy.ndarray
        The joined tensors, in the promoted dtype.

    Raises
    ------
    InvalidArgumentError
        For shapes that do not fit together, and for an empty sequence.

    Examples
    --------
    >>> nbta.hstack([[1, 2], 3])
    array([1, 2, 3])
    """
    values = [_in_rank(x, 1) for x in rows_of(values)]
    return concatenate(values, 0 if values and values[0].ndim == 1 else 1, name=name)


@exported(numpy=1)
def dstack(values: Sequence[ArrayLike] | Array, *, name: str | None = None) -> Array:
    """Tensors joined along the third axis, as `numpy.dstack`; see `nbta.atleast_3d`.

    Parameters
    ----------
    values : sequence of array-like or Tensor, or Tensor
        What to join; of one tensor, its parts along the first axis.

    Returns
    -------
    Tensor or numpy.ndarray
        The joined tensors, of rank 3 or more, in the promoted dtype.

    Raises
    ------
    InvalidArgumentError
        For shapes that do not fit together, and for an empty sequence.

    Examples
    --------
    >>> nbta.dstack([[1, 2], [3, 4]])
    array([[[1, 3],
            [2, 4]]])
    """
    return concatenate([_in_rank(x, 3) for x in rows_of(values)], 2, name=name)


@exported(numpy=1)
def column_stack(values: Sequence[ArrayLike] | Array, *, name: str | None = None) -> Array:
    """Vectors as the columns of a matrix, as `numpy.column_stack`; matrices are joined unchanged.

    Parameters
    ----------
    values : sequence of array-like or Tensor, or Tensor
        Vectors and matrices of as many rows; of one tensor, its parts along the first axis.

    Returns
    -------
    Tensor or numpy.ndarray
        The matrix, in the promoted dtype.

    Raises
    ------
    InvalidArgumentError
        For shapes that do not fit together, and for an empty sequence.

    Examples
    --------
    >>> nbta.column_stack([[1, 2], [3, 4]])
    array([[1, 3],
           [2, 4]])
    """
    values = [ranked(x) for x in rows_of(values)]
    columns = [reshape(x, (-1, 1)) if x.ndim < 2 else x for x in rows_of(values)]
    return concatenate(columns, 1, name=name)


def _in_dtype(function):
    """A function that joins tensors, of which ``dtype=`` and ``casting=`` are NumPy's."""

    def joined(values, *axis, dtype=None, casting="same_kind"):
        values = rows_of(values)
        if function is not concatenate:  # which alone takes the dtype of arrays beside numbers
            values = list(map(operand, values))
        if values and (dtype is not None or casting != "same_kind"):
            values = _cast_by(values, dtype, casting)
        return function(values, *axis)

    return joined


def _cast_by(values, dtype, casting):
    """Tensors in one dtype, as far as a rule of NumPy's for casting allows it."""
    common = common_dtype(*values) if dtype is None else as_dtype(dtype)
    for value in values:
        have = common if is_weak(value) and dtype is None else data_spec(operand(value)).dtype
        if not np.can_cast(have, common, casting):
            message = f"Cannot cast array data from {have!r} to {common!r} according to the rule"
            raise TypeError(f"{message} {casting!r}")
    return [cast(value, common) for value in values]


@stands_for("concatenate", numpy=2)
def _numpys_concatenate(arrays, axis=0, *, dtype=None, casting="same_kind"):
    return _in_dtype(concatenate)(arrays, axis, dtype=dtype, casting=casting)


@stands_for("stack", numpy=2)
def _numpys_stack(arrays, axis=0, *, dtype=None, casting="same_kind"):
    return _in_dtype(stack)(arrays, axis, dtype=dtype, casting=casting)


@stands_for("vstack", "row_stack", numpy=1)
def _numpys_vstack(tup, *, dtype=None, casting="same_kind"):
    return _in_dtype(vstack)(tup, dtype=dtype, casting=casting)


@stands_for("hstack", numpy=1)
def _numpys_hstack(tup, *, dtype=None, casting="same_kind"):
    return _in_dtype(hstack)(tup, dtype=dtype, casting=casting)


@exported(numpy=1)
def block(arrays: Sequence | Array, *, name: str | None = None) -> Array:
    """A tensor put together from blocks in nested lists, as `numpy.block`.

    The innermost lists are joined along the last axis, the next ones along the last but one, and so
    on.

    Parameters
    ----------
    arrays : nested lists of array-like or Tensor
        Blocks, all at one depth. Blocks of a lower rank get new first axes.

    Returns
    -------
    Tensor or numpy.ndarray
        The joined blocks, in the promoted dtype.

    Raises
    ------
    InvalidArgumentError
        For shapes that do not fit together, an empty list, and blocks at several depths.

    Examples
    --------
    >>> nbta.block([[np.eye(2), np.zeros((2, 1))], [5.0, 6.0, 7.0]])
    array([[1., 0., 0.],
           [0., 1., 0.],
           [5., 6., 7.]])
    """
    depths = _depths(arrays)
    if len(set(depths)) != 1:
        raise invalid("value", "block: the lists differ in depth; put single blocks into lists")
    leaves = promoted(*(ranked(x) for x in _leaves(arrays)))
    rank = max(depths[0], *(x.ndim for x in leaves))
    return named(_joined(arrays, iter(leaves), rank, depths[0]), name=name)


def _depths(arrays, depth=0):
    if not isinstance(arrays, list):
        return [depth]
    if not arrays:
        raise invalid("value", "block: a list is empty; give each at least one block")
    return [found for part in arrays for found in _depths(part, depth + 1)]


def _leaves(arrays):
    return [x for part in arrays for x in _leaves(part)] if isinstance(arrays, list) else [arrays]


def _joined(arrays, leaves, rank, depth):
    if not isinstance(arrays, list):
        return _in_front(next(leaves), rank)
    parts = [_joined(part, leaves, rank, depth - 1) for part in arrays]
    return concatenate(parts, rank - depth)


def _in_front(x, rank):
    return getitem(x, (None,) * (rank - x.ndim)) if x.ndim < rank else x


@exported(numpy=3)
def append(
    x: ArrayLike, values: ArrayLike, axis: int | None = None, *, name: str | None = None
) -> Array:
    """``x`` followed by ``values`` along an axis, as `numpy.append`.

    Parameters
    ----------
    x, values : array-like or Tensor
        What to join; along an axis, other lengths must agree.
    axis : int, optional
        Axis to join along; by default both are flattened first.

    Returns
    -------
    Tensor or numpy.ndarray
        The joined elements, in the promoted dtype.

    Raises
    ------
    InvalidArgumentError
        For shapes that do not fit together.

    Examples
    --------
    >>> nbta.append([1, 2], 3)
    array([1, 2, 3])
    """
    return concatenate([operand(x), operand(values)], axis, name=name)


# Cutting.


@exported(numpy=3)
def array_split(
    x: ArrayLike, indices_or_sections: ArrayLike, axis: int = 0, *, name: str | None = None
) -> list[Array]:
    """As `nbta.split`, for any number of sections, as `numpy.array_split`.

    If the sections cannot all be of one length, the first ones are longer by one element. Where the
    length of the axis is not known before the run, a traced function is traced again for that
    length.

    Parameters
    ----------
    x, indices_or_sections, axis
        As for `nbta.split`.

    Returns
    -------
    list of Tensor or numpy.ndarray
        The sections.

    Raises
    ------
    InvalidArgumentError
        For fewer than one section, and for an axis that ``x`` does not have.

    Examples
    --------
    >>> nbta.array_split([1, 2, 3], 2)
    [array([1, 2]), array([3])]
    """
    sections = as_sections(indices_or_sections)
    if type(sections) is not int:
        return split(x, sections, axis, name=name)
    x = ranked(x)
    length, longer = divmod(int(x.shape[one_axis(x, axis)]), sections)
    points = np.cumsum([length + (k < longer) for k in range(sections)])[:-1]
    return split(x, points.tolist(), axis, name=name)


def _split_along(what, least, axis):
    def cut(x, indices_or_sections, name):
        x = ranked(x)
        if x.ndim < least:
            message = f"{what}: a tensor of rank {x.ndim} has no axis {axis}; reshape it first"
            raise invalid("rank", message)
        return split(x, indices_or_sections, axis if x.ndim > 1 else 0, name=name)

    return cut


_hsplit, _vsplit, _dsplit = (
    _split_along(*one) for one in (("hsplit", 1, 1), ("vsplit", 2, 0), ("dsplit", 3, 2))
)


@exported(numpy=2)
def hsplit(x: ArrayLike, indices_or_sections: ArrayLike, *, name: str | None = None) -> list[Array]:
    """``x`` split along its second axis, or a vector along its first, as `numpy.hsplit`.

    Parameters
    ----------
    x, indices_or_sections
        As for `nbta.split`.

    Returns
    -------
    list of Tensor or numpy.ndarray
        The parts.

    Raises
    ------
    InvalidArgumentError
        For a scalar, and for a number of parts that does not divide the axis.

    Examples
    --------
    >>> nbta.hsplit([1, 2, 3, 4], 2)
    [array([1, 2]), array([3, 4])]
    """
    return _hsplit(x, indices_or_sections, name)


@exported(numpy=2)
def vsplit(x: ArrayLike, indices_or_sections: ArrayLike, *, name: str | None = None) -> list[Array]:
    """``x`` split along its first axis, as `numpy.vsplit`.

    Parameters
    ----------
    x, indices_or_sections
        As for `nbta.split`; the rank of ``x`` is 2 or more.

    Returns
    -------
    list of Tensor or numpy.ndarray
        The parts.

    Raises
    ------
    InvalidArgumentError
        For a lower rank, and for a number of parts that does not divide the axis.

    Examples
    --------
    >>> nbta.vsplit([[1, 2], [3, 4]], 2)
    [array([[1, 2]]), array([[3, 4]])]
    """
    return _vsplit(x, indices_or_sections, name)


@exported(numpy=2)
def dsplit(x: ArrayLike, indices_or_sections: ArrayLike, *, name: str | None = None) -> list[Array]:
    """``x`` split along its third axis, as `numpy.dsplit`.

    Parameters
    ----------
    x, indices_or_sections
        As for `nbta.split`; the rank of ``x`` is 3 or more.

    Returns
    -------
    list of Tensor or numpy.ndarray
        The parts.

    Raises
    ------
    InvalidArgumentError
        For a lower rank, and for a number of parts that does not divide the axis.

    Examples
    --------
    >>> nbta.dsplit([[[1, 2]], [[3, 4]]], 2)[0].shape
    (2, 1, 1)
    """
    return _dsplit(x, indices_or_sections, name)


# Axes in another order.


@exported(numpy=3)
def moveaxis(x: ArrayLike, source: Axis, destination: Axis, *, name: str | None = None) -> Array:
    """``x`` with some axes at other places, the others keeping their order, as `numpy.moveaxis`.

    Parameters
    ----------
    x : array-like or Tensor
        Elements of any dtype.
    source, destination : int or sequence of int
        Which axes to move, and their places in the result.

    Returns
    -------
    Tensor or numpy.ndarray
        The same elements, with the axes in another order.

    Raises
    ------
    InvalidArgumentError
        For an axis that ``x`` does not have or that is given twice, and for other than one place an
        axis.

    Examples
    --------
    >>> nbta.moveaxis(np.zeros((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    x = ranked(x)
    source, destination = _axes(x, source), _axes(x, destination)
    if len(source) != len(destination):
        message = f"axis: {len(source)} axes go to {len(destination)} places; give one for each"
        raise invalid("axis", message)
    order = [axis for axis in range(x.ndim) if axis not in source]
    for place, axis in sorted(zip(destination, source, strict=True)):
        order.insert(place, axis)
    return transpose(x, order, name=name)


def _axes(x, given):
    """Axes in the order in which they are given, counted from the first."""
    axes = integers(given if isinstance(given, list | tuple) else (given,))
    places_of(axes, data_spec(x).shape)
    return [axis % x.ndim for axis in axes]


@exported(numpy=3)
def rollaxis(x: ArrayLike, axis: int, start: int = 0, *, name: str | None = None) -> Array:
    """``x`` with one axis moved before another, as `numpy.rollaxis`; see also `nbta.moveaxis`.

    Parameters
    ----------
    x : array-like or Tensor
        Elements of any dtype.
    axis : int
        The axis to move.
    start : int, default 0
        The axis before which it goes.

    Returns
    -------
    Tensor or numpy.ndarray
        The same elements, with the axes in another order.

    Raises
    ------
    InvalidArgumentError
        For an axis or a start that ``x`` does not have.

    Examples
    --------
    >>> nbta.rollaxis(np.zeros((2, 3, 4)), 2).shape
    (4, 2, 3)
    """
    x = ranked(x)
    (axis,), rank = _axes(x, axis), x.ndim
    if not -rank <= start <= rank:
        raise invalid("axis", f"start: there is no place {start} among the axes of rank {rank}")
    start = start + rank if start < 0 else start
    return moveaxis(x, axis, start - (axis < start), name=name)


@exported(numpy=1)
def matrix_transpose(x: ArrayLike, *, name: str | None = None) -> Array:
    """Matrices with their last two axes exchanged, as `numpy.matrix_transpose`.

    Parameters
    ----------
    x : array-like or Tensor
        Matrices ``(..., m, n)``.

    Returns
    -------
    Tensor or numpy.ndarray
        Of shape ``(..., n, m)``.

    Raises
    ------
    InvalidArgumentError
        For fewer than two axes.

    Examples
    --------
    >>> nbta.matrix_transpose(np.zeros((2, 3, 4))).shape
    (2, 4, 3)
    """
    return swapaxes(x, -1, -2, name=name)


@exported(numpy=1)
def ravel(x: ArrayLike, order: str = "C", *, name: str | None = None) -> Array:
    """All elements as a vector, as `numpy.ravel`.

    Parameters
    ----------
    x : array-like or Tensor
        Elements of any dtype.
    order : {"C", "F"}, default "C"
        "C" has the last index change fastest, "F" the first.

    Returns
    -------
    Tensor or numpy.ndarray
        A vector in the dtype of ``x``.

    Raises
    ------
    InvalidArgumentError
        For another order.

    Examples
    --------
    >>> nbta.ravel([[1, 2], [3, 4]])
    array([1, 2, 3, 4])
    """
    if order not in ("C", "F"):
        message = f'order must be "C" or "F", not {order!r}: tensors have no strides'
        raise invalid("value", message)
    return reshape(transpose(x) if order == "F" else x, (-1,), name=name)


# The opposite order, turned, rolled.


@exported(numpy=1)
def flipud(x: ArrayLike, *, name: str | None = None) -> Array:
    """The rows in reverse order, as `numpy.flipud`: `nbta.flip` along the first axis.

    Parameters
    ----------
    x : array-like or Tensor
        A tensor of rank 1 or more.

    Returns
    -------
    Tensor or numpy.ndarray
        Of the shape and dtype of ``x``.

    Raises
    ------
    InvalidArgumentError
        For a scalar.

    Examples
    --------
    >>> nbta.flipud([[1, 2], [3, 4]])
    array([[3, 4],
           [1, 2]])
    """
    return flip(x, 0, name=name)


@exported(numpy=1)
def fliplr(x: ArrayLike, *, name: str | None = None) -> Array:
    """The columns in reverse order, as `numpy.fliplr`: `nbta.flip` along the second axis.

    Parameters
    ----------
    x : array-like or Tensor
        A tensor of rank 2 or more.

    Returns
    -------
    Tensor or numpy.ndarray
        Of the shape and dtype of ``x``.

    Raises
    ------
    InvalidArgumentError
        For fewer than two axes.

    Examples
    --------
    >>> nbta.fliplr([[1, 2], [3, 4]])
    array([[2, 1],
           [4, 3]])
    """
    return flip(x, 1, name=name)


@exported(numpy=3)
def rot90(
    x: ArrayLike, k: int = 1, axes: tuple[int, int] = (0, 1), *, name: str | None = None
) -> Array:
    """``x`` rotated by multiples of 90 degrees in the plane of two axes, as `numpy.rot90`.

    Parameters
    ----------
    x : array-like or Tensor
        A tensor of rank 2 or more.
    k : int, default 1
        How many quarter turns, from the first axis towards the second.
    axes : tuple of two int, default (0, 1)
        The plane of the rotation.

    Returns
    -------
    Tensor or numpy.ndarray
        The same elements, in their new places.

    Raises
    ------
    InvalidArgumentError
        For other than two different axes of ``x``.

    Examples
    --------
    >>> nbta.rot90([[1, 2], [3, 4]])
    array([[2, 4],
           [1, 3]])
    """
    x = ranked(x)
    axes = _axes(x, axes)
    if len(axes) != 2:
        raise invalid("axis", f"axes: a rotation takes two axes, not {len(axes)}")
    (turns,) = integers((k,))
    one, other = axes
    if turns % 4 == 2:
        return flip(x, (one, other), name=name)
    if turns % 4 == 0:
        return identity(x, name=name)
    if turns % 4 == 1:
        return swapaxes(flip(x, other), one, other, name=name)
    return flip(swapaxes(x, one, other), other, name=name)


def _infer_roll(x, shift, *, axis):
    if shift.shape not in (None, ()) or shift.dtype.kind not in "iu":
        raise invalid("value", f"shift must be an integer, not {shift}")
    places_of((axis,), x.shape)
    return Spec(x.dtype, x.shape)


def _emit_roll(code, op) -> None:
    """Two blocks in each other's place."""
    value, axis = code.value(op.inputs[0]), op.attrs["axis"] % op.inputs[0].spec.rank
    count, shift = code.canonical(value.dimensions[axis]), code.integer(op.inputs[1])
    block = code.result(op, dimensions=value.dimensions)
    first = code.variable(select(count > 0, shift % count, 0))
    rest = code.variable(count - first)
    target, source = window(code, block), window(code, value)
    for length, to, of in ((first, ZERO, rest), (rest, first, ZERO)):
        dimensions = (*value.dimensions[:axis], length, *value.dimensions[axis + 1 :])
        move(code, dimensions, *(w.moved(*_at(axis, place, len(dimensions)))
                              for w, place in ((target, to), (source, of))))  # fmt: skip


def _at(axis, place, rank):
    return [place if k == axis else ZERO for k in range(rank)]


ROLL = define(
    "Roll",
    _infer_roll,
    lambda x, shift, *, axis: np.roll(x, int(shift), axis),
    lambda op, dy: [apply(ROLL, [dy, -op.inputs[1]], op.attrs), None],
    emit=_emit_roll,
    linear=(0,),
    moves=True,
)


@exported(numpy=3)
def roll(x: ArrayLike, shift: ArrayLike, axis: Axis = None, *, name: str | None = None) -> Array:
    """Elements shifted along axes, those from the end coming in at the start, as `numpy.roll`.

    Parameters
    ----------
    x : array-like or Tensor
        Elements of any dtype.
    shift : int or Tensor, or tuple of them
        How far to shift: one number for all axes, or one for each.
    axis : int or tuple of int, optional
        Axes to shift along; by default ``x`` is flattened, shifted and given its shape again.

    Returns
    -------
    Tensor or numpy.ndarray
        Of the shape and dtype of ``x``.

    Raises
    ------
    InvalidArgumentError
        For an axis that ``x`` does not have, for shifts that are not integers, and for other than
        one shift an axis.

    Examples
    --------
    >>> nbta.roll([1, 2, 3, 4], 1)
    array([4, 1, 2, 3])
    """
    x = ranked(x)
    if axis is None:
        return reshape(roll(reshape(x, (-1,)), shift, 0), x.shape, name=name)
    axes = integers(axis if isinstance(axis, list | tuple) else (axis,))
    shifts = list(shift) if isinstance(shift, list | tuple) else [shift] * len(axes)
    if len(axes) == 1:
        axes = axes * len(shifts)
    if len(axes) != len(shifts):
        message = f"shift: there are {len(shifts)} for {len(axes)} axes; give one for each"
        raise invalid("value", message)
    for one, distance in zip(axes, shifts, strict=True):
        x = apply(ROLL, [x, _distance(distance)], {"axis": one_axis(x, one)}, name)
    return x


def _distance(shift):
    found = as_indices(shift)
    return found if isinstance(found, Tensor) else found.astype(np.int64)


# Repeated.


@exported(numpy=2)
def tile(x: ArrayLike, reps: ShapeLike, *, name: str | None = None) -> Array:
    """``x`` repeated along each axis, as `numpy.tile`.

    Parameters
    ----------
    x : array-like or Tensor
        What to repeat.
    reps : int or tuple of int
        How often along each of the last axes; if there are more numbers than axes, ``x`` gets new
        first axes.

    Returns
    -------
    Tensor or numpy.ndarray
        Of the lengths of ``x`` times ``reps``, axis by axis.

    Raises
    ------
    InvalidArgumentError
        For a negative number, and for an unknown rank.

    Examples
    --------
    >>> nbta.tile([1, 2], (2, 2))
    array([[1, 2, 1, 2],
           [1, 2, 1, 2]])
    """
    x = ranked(x)
    counts = list(reps) if isinstance(reps, list | tuple | np.ndarray) else [reps]
    counts = [_count("reps", n) for n in [*[1] * (x.ndim - len(counts)), *counts]]
    x = _in_front(x, len(counts))
    apart, whole, shape = [], [], []
    for count, dimension in zip(counts, x.shape, strict=True):
        apart += [dimension] if _is_one(count) else [1, dimension]
        whole += [dimension] if _is_one(count) else [count, dimension]
        shape.append(dimension if _is_one(count) else count * dimension)
    if len(apart) == x.ndim:
        return identity(x, name=name)
    return reshape(broadcast_to(reshape(x, apart), whole), shape, name=name)


def _is_one(count):
    return type(count) is int and count == 1


def _count(what, number):
    """A number of repetitions, which its use checks where only the run knows it."""
    return number if isinstance(number, Tensor) else counted(what, number)


def counted(argument, number):
    """How many of something an argument asks for; a tensor where only the run knows."""
    by_run = isinstance(number, Tensor) and type(number).__index__ is Tensor.__index__
    if by_run and number.ndim == 0 and number.dtype.kind in "iu":
        message = f"{argument}: the number of this run is negative; give how many there are to be"
        return checked(number, greater_equal(number, 0), message)
    try:
        count = operator.index(number)
    except TypeError:
        raise invalid("value", f"{argument}: {number!r} is not an integer") from None
    if count < 0:
        raise invalid("value", f"{argument}: {count} is negative; give how many there are to be")
    return count


@exported(numpy=3)
def repeat(
    x: ArrayLike, repeats: ArrayLike, axis: int | None = None, *, name: str | None = None
) -> Array:
    """Each element, or each slice along an axis, several times, as `numpy.repeat`.

    Parameters
    ----------
    x : array-like or Tensor
        What to repeat.
    repeats : int or Tensor of rank 0, or sequence of int
        How often: one number for all slices, or one for each, known when the graph is built.
    axis : int, optional
        Axis of the slices; by default ``x`` is flattened first.

    Returns
    -------
    Tensor or numpy.ndarray
        Of the shape of ``x`` except along the axis.

    Raises
    ------
    InvalidArgumentError
        For negative numbers, for other than one number a slice, and for a vector of numbers that is
        not known before the run.

    Examples
    --------
    >>> nbta.repeat([1, 2], 2)
    array([1, 1, 2, 2])
    >>> nbta.repeat([1, 2, 3], [0, 1, 2])
    array([2, 3, 3])
    """
    x = ranked(x)
    x, axis = (reshape(x, (-1,)), 0) if axis is None else (x, one_axis(x, axis))
    repeats = repeats if isinstance(repeats, Tensor) else np.asarray(repeats)
    if repeats.ndim:
        return take(x, _repeated(x.shape[axis], repeats), axis, name=name)
    count = _count("repeats", repeats if isinstance(repeats, Tensor) else repeats.item())
    before, dimension, after = x.shape[:axis], x.shape[axis], x.shape[axis + 1 :]
    apart = reshape(x, (*before, dimension, 1, *after))
    wide = broadcast_to(apart, (*before, dimension, count, *after))
    return reshape(wide, (*before, dimension * count, *after), name=name)


def _repeated(dimension, repeats):
    """Which row each row of the result is."""
    if isinstance(repeats, Tensor):
        message = (
            "repeats: the number of rows is known only in a run; give known numbers, or pick rows "
            "with nbta.take and indices of a known length"
        )
        raise invalid("value", message)
    counts = [_count("repeats", number) for number in repeats]
    if len(counts) == 1:
        counts = counts * int(dimension)
    if len(counts) != int(dimension):
        message = f"repeats has {len(counts)} numbers for {int(dimension)} rows; give one per row"
        raise invalid("shape", message)
    return np.repeat(np.arange(len(counts)), counts)


@exported(numpy=2)
def resize(x: ArrayLike, new_shape: ShapeLike, *, name: str | None = None) -> Array:
    """``x`` in a shape of any size, its elements repeated as often as needed, as `numpy.resize`.

    Parameters
    ----------
    x : array-like or Tensor
        The elements, of any shape.
    new_shape : int, tuple of int or Tensor, or Tensor
        The shape of the result.

    Returns
    -------
    Tensor or numpy.ndarray
        Of the given shape, in the dtype of ``x``.

    Raises
    ------
    InvalidArgumentError
        For a negative dimension, and outside of traced functions for a number of elements that is
        not known before the run.

    Examples
    --------
    >>> nbta.resize([1, 2, 3], (2, 2))
    array([[1, 2],
           [3, 1]])
    """
    several = isinstance(new_shape, list | tuple) or operand(new_shape).ndim
    shape = [counted("new_shape", n) for n in (new_shape if several else [new_shape])]
    x = reshape(x, (-1,))
    have, want = int(x.shape[0]), math.prod(shape)
    if not have:
        return zeros(shape, x.dtype, name=name)
    return reshape(take(x, arange(want) % have, 0), shape, name=name)


# Products and grids.


@exported(numpy=2)
def kron(a: ArrayLike, b: ArrayLike, *, name: str | None = None) -> Array:
    """Kronecker product, as `numpy.kron`: a copy of ``b`` scaled by each element of ``a``.

    Parameters
    ----------
    a, b : array-like or Tensor
        Numbers, of known rank.

    Returns
    -------
    Tensor or numpy.ndarray
        Of the products of the lengths of ``a`` and ``b``, axis by axis.

    Raises
    ------
    InvalidArgumentError
        For an unknown rank.

    Examples
    --------
    >>> nbta.kron([1, 10], [1, 2])
    array([ 1,  2, 10, 20])
    """
    a, b = promoted(ranked(a), ranked(b))
    rank = max(a.ndim, b.ndim)
    a, b = _in_front(a, rank), _in_front(b, rank)
    apart = [[part for dimension in a.shape for part in (dimension, 1)],
             [part for dimension in b.shape for part in (1, dimension)]]  # fmt: skip
    found = multiply(reshape(a, apart[0]), reshape(b, apart[1]))
    return reshape(found, [n * m for n, m in zip(a.shape, b.shape, strict=True)], name=name)


@exported(numpy=math.inf)
def meshgrid(
    *xi: ArrayLike,
    indexing: str = "xy",
    sparse: bool = False,
    copy: bool = True,
    name: str | None = None,
) -> tuple[Array, ...]:
    """Coordinates of all points of a grid, as `numpy.meshgrid`.

    Parameters
    ----------
    *xi : array-like or Tensor
        Vectors of the coordinates along each axis; a scalar is a vector of length 1.
    indexing : {"xy", "ij"}, default "xy"
        Whether the first two axes of the results are exchanged ("xy"), or in the order of the
        arguments.
    sparse : bool, default False
        Whether results have length 1 along the axes that they do not depend on.
    copy : bool, default True
        Accepted for compatibility with NumPy; results never share memory.

    Returns
    -------
    tuple of Tensor or numpy.ndarray
        One for each argument, with an axis for each argument.

    Raises
    ------
    InvalidArgumentError
        For another ``indexing``.

    Examples
    --------
    >>> nbta.meshgrid([1, 2], [3, 4])
    (array([[1, 2],
           [1, 2]]), array([[3, 3],
           [4, 4]]))
    """
    if indexing not in ("xy", "ij"):
        raise invalid("value", f'indexing must be "xy" or "ij", not {indexing!r}')
    places = list(range(len(xi)))
    if indexing == "xy" and len(xi) > 1:
        places[:2] = 1, 0
    rows = [reshape(operand(x), (-1,)) for x in xi]
    found = [reshape(x, [-1 if k == place else 1 for k in range(len(xi))])
             for x, place in zip(rows, places, strict=True)]  # fmt: skip
    if not sparse:
        shape = [0] * len(xi)
        for x, place in zip(rows, places, strict=True):
            shape[place] = x.shape[0]
        found = [broadcast_to(x, shape) for x in found]
    return tuple(named(x, name) for x in found)


@exported(numpy=math.inf)
def broadcast_arrays(*args: ArrayLike, name: str | None = None) -> tuple[Array, ...]:
    """Tensors broadcast to their common shape, as `numpy.broadcast_arrays`.

    Parameters
    ----------
    *args : array-like or Tensor
        Tensors of shapes that broadcast.

    Returns
    -------
    tuple of Tensor or numpy.ndarray
        One for each argument, of the common shape.

    Raises
    ------
    InvalidArgumentError
        For shapes that do not broadcast.

    Examples
    --------
    >>> nbta.broadcast_arrays([1, 2], 3)
    (array([1, 2]), array([3, 3]))
    """
    args = [operand(x) for x in args]
    marks = [zeros_like(x, np.bool_) for x in args]
    shape = functools.reduce(logical_or, marks).shape if marks else ()
    return tuple(broadcast_to(x, shape, name=name) for x in args)


@stands_for("apply_over_axes", numpy=3)
def _apply_over_axes(func, a, axes):
    """NumPy's: a reduction along one axis after another, all of which stay."""
    a = ranked(a)
    for axis in integers(axes if isinstance(axes, list | tuple | np.ndarray) else (axes,)):
        found = func(a, axis)
        a = found if found.ndim == a.ndim else expand_dims(found, axis)
    return a
