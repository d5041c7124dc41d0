"""Items by where they are in an array whose axes are taken as one."""

from __future__ import annotations

import builtins
import functools
import math
import operator
from typing import TYPE_CHECKING, Literal

import numpy as np

from nbta.errors import invalid
from nbta.graph.operation import NotDifferentiable, Spec, Tensor
from nbta.loops import accumulate, assign, call, loop_while, over
from nbta.ops.axes.reductions import argmax
from nbta.ops.axes.reductions import sum as sum_
from nbta.ops.core.arithmetic import (
    clip,
    equal,
    floor_divide,
    greater_equal,
    less,
    logical_and,
    logical_not,
    logical_or,
    mod,
    not_equal,
    where,
)
from nbta.ops.core.axis_arguments import one_axis, operand
from nbta.ops.core.checks import checked
from nbta.ops.core.dispatch import apply, as_array, as_tensor, define, exported, stands_for
from nbta.ops.core.elementwise import promoted
from nbta.ops.core.filling import arange, zeros_like
from nbta.ops.core.shaping import (
    INT64,
    broadcast_to,
    cast,
    named,
    reshape,
    shape_of,
    stop_gradient,
)
from nbta.ops.indexing.arranging import moveaxis
from nbta.ops.indexing.gathering import SCATTER_SET, as_indices, take
from nbta.ops.indexing.items import getitem
from nbta.ops.indexing.joining import concatenate, rows_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nbta.typing import Array, ArrayLike

__all__ = [
    "choose",
    "compress",
    "delete",
    "extract",
    "insert",
    "put_along_axis",
    "select",
    "take_along_axis",
]


def dimensions_of(x) -> list:
    """Lengths of the axes: integers where they are known, else scalars."""
    known = x.spec.shape if isinstance(x, Tensor) else np.shape(x)
    if known is None:
        message = (
            f"{x!r} has an unknown rank; reshape it to a shape with as many dimensions as axes"
        )
        raise invalid("rank", message)
    return [n if type(n) is int else getitem(shape_of(x), k) for k, n in enumerate(known)]


def inside(index, dimension):
    """An index counted from the first item, and whether there is such an item."""
    index = cast(index, INT64)
    index = where(less(index, 0), index + dimension, index)
    return index, logical_and(greater_equal(index, 0), less(index, dimension))


def numbers_of(indices, dimensions):
    """Places as numbers, of an index an axis; beyond the last one where any is out of range."""
    found, fit = 0, None
    for index, dimension in zip(indices, dimensions, strict=True):
        index, fits = inside(index, dimension)
        found = found * dimension + index
        fit = fits if fit is None else logical_and(fit, fits)
    return where(fit, found, math.prod(dimensions))


def numbers_along(indices, dimensions, axis):
    """Places as numbers, where indices along an axis are right and others count one by one."""
    found = indices * math.prod(dimensions[axis + 1 :])
    for other, dimension in enumerate(dimensions):
        if other != axis:
            row = arange(dimension) * math.prod(dimensions[other + 1 :])
            found = found + reshape(row, (-1, *[1] * (len(dimensions) - other - 1)))
    return found


@exported(numpy=3)
def take_along_axis(
    x: ArrayLike, indices: ArrayLike, axis: int | None = -1, *, name: str | None = None
) -> Array:
    """The items of each row along an axis that indices in a row of their own name.

    Parameters
    ----------
    x : array-like or Tensor
    indices : array-like or Tensor of int
        Of the rank of ``x``. Axes besides ``axis`` broadcast against those of ``x``.
    axis : int or None, optional
        None takes ``x`` as flat.

    Returns
    -------
    Tensor or numpy.ndarray
        Of the shape of ``indices``, broadcast.

    Raises
    ------
    InvalidArgumentError
        For an index that is out of range, for indices that are not integers or of another rank.

    Examples
    --------
    >>> nbta.take_along_axis([[10, 20], [30, 40]], [[1], [0]], 1)
    array([[20],
           [30]])
    """
    x, indices = operand(x), as_indices(indices)
    if axis is None:
        x, axis = reshape(x, (-1,)), 0
    axis = one_axis(x, axis)
    _check_rank(x, indices)
    return take(reshape(x, (-1,)), _numbers(x, indices, axis), name=name)


def _check_rank(x, indices):
    if indices.ndim != x.ndim:
        message = (
            f"indices has rank {indices.ndim}, and x has rank {x.ndim}; give the same number of "
            "axes, of length 1 where the indices are the same for all"
        )
        raise invalid("rank", message)


def _numbers(x, indices, axis):
    """Places along an axis as numbers in the flattened tensor; beyond it where there is none."""
    if indices.ndim == 1:
        return indices
    dimensions = dimensions_of(x)
    index, fits = inside(indices, dimensions[axis])
    return where(fits, numbers_along(index, dimensions, axis), math.prod(dimensions))


@exported(numpy=4)
def put_along_axis(
    x: ArrayLike,
    indices: ArrayLike,
    values: ArrayLike,
    axis: int | None = -1,
    *,
    name: str | None = None,
) -> Array:
    """``x`` with new values at the places that `nbta.take_along_axis` would read.

    `numpy.put_along_axis` changes its argument, and so it does in unmodified functions; this
    function returns a new tensor.

    Parameters
    ----------
    x : array-like or Tensor
        The tensor to start from.
    indices : array-like or Tensor of int
        Places along the axis, of the rank of ``x``. Of several values for one place the last one
        counts.
    values : array-like or Tensor
        New values, broadcast to the shape of ``indices`` and converted to the dtype of ``x``.
    axis : int or None, default -1
        Axis of the places; None flattens ``x`` first.

    Returns
    -------
    Tensor or numpy.ndarray
        Of the shape and dtype of ``x``.

    Raises
    ------
    InvalidArgumentError
        As `nbta.take_along_axis`.

    Examples
    --------
    >>> nbta.put_along_axis([[1, 2], [3, 4]], [[0], [1]], 9, 1)
    array([[9, 2],
           [3, 9]])
    """
    x = operand(x)
    values = cast(values, x.dtype)
    if axis is None:
        flat = put_along_axis(reshape(x, (-1,)), indices, values, 0)
        return reshape(flat, x.shape, name=name)
    indices, axis = as_indices(indices), one_axis(x, axis)
    _check_rank(x, indices)
    flat, numbers = reshape(x, (-1,)), _numbers(x, indices, axis)
    return reshape(apply(SCATTER_SET, [flat, numbers, values], {"axis": 0}), x.shape, name=name)


# By conditions and choices.


@exported(numpy=3)
def select(
    condlist: Sequence[ArrayLike],
    choicelist: Sequence[ArrayLike],
    default: ArrayLike = 0,
    *,
    name: str | None = None,
) -> Array:
    """For each place, the choice of the first condition that holds, as `numpy.select`.

    Parameters
    ----------
    condlist : sequence of array-like or Tensor of bool
        The conditions, of shapes that broadcast.
    choicelist : sequence of array-like or Tensor
        The choices, one for each condition, of shapes that broadcast with them.
    default : array-like or Tensor, default 0
        The value where no condition holds.

    Returns
    -------
    Tensor or numpy.ndarray
        Of the broadcast shape, in the promoted dtype of the choices.

    Raises
    ------
    InvalidArgumentError
        Without conditions, for other than one choice a condition, and for shapes that do not
        broadcast.

    Examples
    --------
    >>> nbta.select([[True, False], [True, True]], [[1, 2], [3, 4]])
    array([1, 4])
    """
    condlist, choicelist = (
        several if isinstance(several, list | tuple) else list(operand(several))
        for several in (condlist, choicelist)
    )
    if len(condlist) != len(choicelist) or not condlist:
        message = f"select: {len(condlist)} conditions and {len(choicelist)} choices; give one each"
        raise invalid("value", message)
    *choices, found = promoted(*choicelist, default)
    for condition, choice in zip(condlist[::-1], choices[::-1], strict=True):
        found = where(condition, choice, found)
    return named(found, name)


@exported(numpy=2)
def choose(
    indices: ArrayLike,
    choices: Sequence[ArrayLike] | Array,
    mode: Literal["raise", "wrap", "clip"] = "raise",
    *,
    name: str | None = None,
) -> Array:
    """For each index, the element of one of several tensors, as `numpy.choose`.

    Parameters
    ----------
    indices : array-like or Tensor of int
        For each place, the number of the tensor to take the element from.
    choices : sequence of array-like or Tensor
        The tensors, of shapes that broadcast with ``indices``.
    mode : {"raise", "wrap", "clip"}, default "raise"
        What to do with an index out of range: raise an error, count it modulo the number of
        choices, or replace it by the nearest one.

    Returns
    -------
    Tensor or numpy.ndarray
        Of the broadcast shape, in the promoted dtype of the choices.

    Raises
    ------
    InvalidArgumentError
        Without choices, for another mode, and for an index out of range.

    Examples
    --------
    >>> nbta.choose([1, 0], [[1, 2], [3, 4]])
    array([3, 2])
    """
    if mode not in ("raise", "wrap", "clip"):
        raise invalid("value", f'mode must be "raise", "wrap" or "clip", not {mode!r}')
    choices, indices = rows_of(choices), cast(as_indices(indices), INT64)
    if mode == "wrap" and choices:
        indices = mod(indices, len(choices))
    if mode == "clip":
        indices = clip(indices, 0, len(choices) - 1)
    if mode == "raise":
        fits = logical_and(greater_equal(indices, 0), less(indices, len(choices)))
        message = f"choose: an index is not from 0 to {len(choices) - 1}; see mode="
        indices = checked(indices, equal(sum_(logical_not(fits)), 0), message)
    return select([equal(indices, k) for k in range(len(choices))], choices, name=name)


def _conditions(condlist, x):
    """Conditions one by one; one alone stands for itself, as NumPy tells it."""
    if not isinstance(condlist, list | tuple):
        rank = operand(condlist).ndim
        return [condlist] if rank == 0 or (rank == 1 and x.ndim) else rows_of(condlist)
    alone = not isinstance(condlist[0], list | tuple | Tensor | np.ndarray) and x.ndim != 0
    return [condlist] if alone else list(condlist)


def _only_by_items(operations, x):
    """Refuse what looks at several items of x: NumPy gives a function those that are chosen."""
    made_of_x = {x}
    for op in operations:
        if made_of_x.isdisjoint(op.inputs):
            continue
        if not op.record.elementwise:
            message = (
                f"piecewise: a function uses {op.type}, which is not elementwise, and NumPy passes "
                "it only the items of a condition; use nbta.where"
            )
            raise invalid("value", message)
        made_of_x.update(op.outputs)


def _piece(x, condition, function, args, kwargs):
    """The values of one function, of the first item for which a condition holds where it does not.

    So a function is not asked where it may have no value, which would spoil gradients.
    """
    if not callable(function):
        return function
    one = stop_gradient(take(reshape(x, (-1,)), argmax(reshape(condition, (-1,)))))
    x = where(condition, x, one)
    operations = x.graph.operations
    before = len(operations)
    found = function(x, *args, **kwargs)
    _only_by_items(operations[before:], x)
    return found


@stands_for("piecewise", numpy=math.inf)
def _piecewise(x, condlist, funclist, *args, **kwargs):
    """NumPy's, of functions that go item by item: the last condition that holds decides."""
    x = as_tensor(operand(x))
    conditions = [broadcast_to(operand(one), shape_of(x)) for one in _conditions(condlist, x)]
    conditions = [not_equal(one, 0) if one.dtype != bool else one for one in conditions]
    if len(funclist) not in (len(conditions), len(conditions) + 1):
        message = f"piecewise: {len(conditions)} conditions and {len(funclist)} functions"
        raise invalid("value", message)
    if len(funclist) > len(conditions):
        otherwise = functools.reduce(logical_or, conditions)
        conditions = [*conditions, logical_not(otherwise)]
    found = zeros_like(x)
    for condition, function in zip(conditions, funclist, strict=True):
        piece = _piece(x, condition, function, args, kwargs)
        found = where(condition, cast(operand(piece), x.dtype), found)
    return found


@stands_for("unravel_index", numpy=3)
def _unravel_index(indices, shape, order="C"):
    """NumPy's: of numbers of items an index for each axis."""
    shape = tuple(map(operator.index, shape if isinstance(shape, list | tuple) else (shape,)))
    count, indices = math.prod(shape), cast(as_indices(indices), INT64)
    fits = logical_and(greater_equal(indices, 0), less(indices, count))
    message = f"unravel_index: an index is not from 0 to {count - 1}, the last of shape {shape}"
    indices = checked(indices, equal(sum_(logical_not(fits)), 0), message)
    found = []
    for dimension in shape[::-1] if _is_c(order) else shape:
        found.append(mod(indices, dimension))
        indices = floor_divide(indices, dimension)
    return tuple(found[::-1] if _is_c(order) else found)


def _is_c(order):
    if order not in ("C", "F"):
        raise invalid("value", f"order must be 'C' or 'F', not {order!r}")
    return order == "C"


@stands_for("ravel_multi_index", numpy=4)
def _ravel_multi_index(multi_index, dims, mode="raise", order="C"):
    """NumPy's: of an index for each axis the numbers of items."""
    indices, dims = rows_of(multi_index), tuple(map(operator.index, dims))
    modes = mode if isinstance(mode, tuple) else (mode,) * len(dims)
    if not len(indices) == len(dims) == len(modes):
        message = f"ravel_multi_index: {len(indices)} indices for {len(dims)} axes; give one each"
        raise invalid("value", message)
    parts = [_bounded(*part) for part in zip(indices, dims, modes, strict=True)]
    pairs = list(zip(parts, dims, strict=True))
    found = 0
    for part, dimension in pairs if _is_c(order) else pairs[::-1]:
        found = part + dimension * found
    return found


def _bounded(index, dimension, mode):
    """An index that is wrapped, clipped, or held to be among so many."""
    index = cast(as_indices(index), INT64)
    if mode == "wrap":
        return mod(index, dimension)
    if mode == "clip":
        return clip(index, 0, dimension - 1)
    if mode != "raise":
        raise invalid("value", f'mode must be "raise", "wrap" or "clip", not {mode!r}')
    fits = logical_and(greater_equal(index, 0), less(index, dimension))
    message = f"ravel_multi_index: an index is not from 0 to {dimension - 1}; see mode="
    return checked(index, equal(sum_(logical_not(fits)), 0), message)


# With places that are known when a graph is built.


@exported(numpy=3)
def compress(
    condition: ArrayLike, x: ArrayLike, axis: int | None = None, *, name: str | None = None
) -> Array:
    """Elements, or slices along an axis, for which a condition holds, as `numpy.compress`.

    Parameters
    ----------
    condition : array-like of bool
        A vector whose values are known when the graph is built, since they determine the shape.
    x : array-like or Tensor
        What to choose from.
    axis : int, optional
        Axis of the slices; by default ``x`` is flattened first.

    Returns
    -------
    Tensor or numpy.ndarray
        Of the shape of ``x``, with one slice along the axis for each True.

    Raises
    ------
    InvalidArgumentError
        For a condition that is not known before the run, is not a vector, or is longer than the
        axis.

    Examples
    --------
    >>> nbta.compress([True, False, True], [1, 2, 3])
    array([1, 3])
    """
    condition = _known("compress", condition)
    if condition.ndim != 1:
        raise invalid("rank", f"condition has rank {condition.ndim}; give a row of booleans")
    return take(x, np.flatnonzero(condition), axis, name=name)


@exported(numpy=2)
def extract(condition: ArrayLike, x: ArrayLike, *, name: str | None = None) -> Array:
    """Elements of a flattened tensor for which a flattened condition holds, as `numpy.extract`.

    Parameters
    ----------
    condition : array-like of bool
        Whether to choose each element; its values are known when the graph is built.
    x : array-like or Tensor
        What to choose from.

    Returns
    -------
    Tensor or numpy.ndarray
        A vector with one element for each True.

    Raises
    ------
    InvalidArgumentError
        For a condition that is not known before the run.

    Examples
    --------
    >>> nbta.extract([[True, False]], [[1, 2]])
    array([1])
    """
    return take(x, np.flatnonzero(_known("extract", condition)), name=name)


def _infer_true(mask):
    if mask.dtype.kind != "b" or mask.rank not in (1, None):
        raise invalid("dtype", f"the mask is {mask}; give a vector of truth values")
    return Spec(INT64, (None,))


def _emit_true(code, op) -> None:
    """Counted, and then written one after the other without a branch that depends on the mask."""
    mask = code.value(op.inputs[0])
    (length,) = mask.dimensions
    i, found, place = (code.name(stem) for stem in "isk")
    code.add(assign(found, 0))
    with code.nest(over(i, length)):
        code.add(accumulate(found, call("int64", mask.at(i))))
    count = code.variable(found)
    block = code.result(op, dimensions=(count,))
    code.add(assign(i, 0), assign(place, 0))
    with code.nest(loop_while(place < count)):
        code.add(
            assign(block.at(place), i),
            accumulate(place, call("int64", mask.at(i))),
            accumulate(i, 1),
        )


TRUE_PLACES = define(
    "TruePlaces",
    _infer_true,
    lambda mask: np.flatnonzero(mask).astype(np.int64),
    NotDifferentiable("its result is an index"),
    emit=_emit_true,
    distinct=True,
)


def true_places(mask):
    """Where a vector of truth values is true; how many there are only the run knows."""
    return apply(TRUE_PLACES, [mask])


def _known(what, value):
    """An array that tells how long a result is."""
    if isinstance(value, Tensor):
        message = (
            f"{what}: the number of items is known only in a run, so no shape can hold it; take "
            "all of them, with nbta.where and 0 for those that a sum leaves out"
        )
        raise invalid("mask", message)
    return as_array(value)


@exported(numpy=3)
def delete(
    x: ArrayLike, obj: ArrayLike, axis: int | None = None, *, name: str | None = None
) -> Array:
    """``x`` without some of its elements, or without slices along an axis, as `numpy.delete`.

    Parameters
    ----------
    x : array-like or Tensor
        What to delete from. A traced function is traced for the length of the axis.
    obj : int, slice, or array-like of int or bool
        What to delete, known when the graph is built; a single index may be a tensor.
    axis : int, optional
        Axis of the slices; by default ``x`` is flattened first.

    Returns
    -------
    Tensor or numpy.ndarray
        Of the shape of ``x`` except along the axis, in the dtype of ``x``.

    Raises
    ------
    InvalidArgumentError
        For an index out of range, and for indices that are not known before the run.

    Examples
    --------
    >>> nbta.delete([1, 2, 3], 1)
    array([1, 3])
    """
    x, axis = _flat_or_along(x, axis)
    if _is_one_place(obj):
        dimension = int(x.shape[axis])
        place, rows = _place("delete", obj, dimension, dimension - 1), arange(dimension - 1)
        return take(x, rows + cast(rows >= place, INT64), axis, name=name)
    obj = obj if isinstance(obj, builtins.slice) else _known("delete", obj)
    return take(x, _edited(np.delete, int(x.shape[axis]), obj), axis, name=name)


def _is_one_place(obj):
    """Whether one index is given, which only the run knows."""
    return isinstance(obj, Tensor) and obj.spec.rank == 0 and obj.dtype.kind in "iu"


def _place(what, index, dimension, last):
    """An index from the first, in a run that fails where it is beyond the last of some rows."""
    index = cast(as_tensor(index), INT64)
    place = where(less(index, 0), index + dimension, index)
    holds = logical_and(greater_equal(place, 0), less(place, last + 1))
    return checked(place, holds, f"{what}: an index is out of range for {dimension} rows")


def _flat_or_along(x, axis):
    x = operand(x)
    return (reshape(x, (-1,)), 0) if axis is None else (x, one_axis(x, axis))


def _edited(function, dimension, *arguments):
    """The numbers of rows as a function of NumPy leaves them."""
    try:
        return function(np.arange(dimension), *arguments)
    except (IndexError, ValueError) as error:
        raise invalid("index", f"{function.__name__}: {error}") from None


@exported(numpy=4)
def insert(
    x: ArrayLike,
    obj: ArrayLike,
    values: ArrayLike,
    axis: int | None = None,
    *,
    name: str | None = None,
) -> Array:
    """``x`` with elements, or slices along an axis, inserted before others, as `numpy.insert`.

    Parameters
    ----------
    x : array-like or Tensor
        What to insert into. A traced function is traced for the length of the axis.
    obj : int, slice, or array-like of int or bool
        Indices to insert before, known when the graph is built; a single index may be a tensor.
    values : array-like or Tensor
        What to insert; it is converted to the dtype of ``x`` and broadcast to the new slices.
    axis : int, optional
        Axis of the slices; by default ``x`` is flattened first.

    Returns
    -------
    Tensor or numpy.ndarray
        Of the shape of ``x`` except along the axis, in the dtype of ``x``.

    Raises
    ------
    InvalidArgumentError
        For an index out of range, and for indices that are not known before the run.

    Examples
    --------
    >>> nbta.insert([1, 2, 3], 1, 9)
    array([1, 9, 2, 3])
    """
    x, axis = _flat_or_along(x, axis)
    values, dimension = cast(operand(values), x.dtype), int(x.shape[axis])
    if values.ndim < x.ndim:
        values = getitem(values, (None,) * (x.ndim - values.ndim))
    is_open = _is_one_place(obj)
    indices = _place("insert", obj, dimension, dimension) if is_open else _before(obj, dimension)
    if indices.ndim == 0:  # NumPy's rule for one place: a row of values is one new row
        values = moveaxis(values, 0, axis)
    is_one = is_open or indices.size == 1
    count = int(values.shape[axis]) if is_one else indices.size
    shape = [*x.shape[:axis], count, *x.shape[axis + 1 :]]
    rows = concatenate([x, broadcast_to(values, shape)], axis)
    if is_open:
        places = arange(dimension + count)
        new = where(less(places, indices + count), places - indices + dimension, places - count)
        found = where(less(places, indices), places, new)
    else:
        found = _mixed(np.atleast_1d(indices), dimension, count)
    return take(rows, found, axis, name=name)


def _before(obj, dimension):
    """Before which rows others are put, counted from the first."""
    if isinstance(obj, builtins.slice):
        return np.arange(dimension)[obj]
    indices = _known("insert", obj)
    if indices.dtype.kind == "b":
        indices = np.flatnonzero(indices)
    indices = indices.astype(np.int64)
    outside = indices[(indices < -dimension) | (indices > dimension)]
    if outside.size:
        message = f"insert: index {outside.flat[0]} is out of range for {dimension} rows"
        raise invalid("index", message)
    return np.where(indices < 0, indices + dimension, indices)


def _mixed(indices, dimension, count):
    """Which row, of the old ones and the new ones after them, each row of the result is."""
    indices = np.repeat(indices, count) if indices.size == 1 else indices
    new = indices[np.argsort(indices, kind="stable")] + np.arange(count)
    found = np.empty(dimension + count, np.int64)
    is_old = np.ones(dimension + count, bool)
    is_old[new] = False
    found[is_old] = np.arange(dimension)
    found[new] = dimension + np.argsort(indices, kind="stable")
    return found
