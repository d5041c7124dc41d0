"""Operations with arrays of indices: take, scatter_add, one_hot."""

from __future__ import annotations

import builtins
import operator
from typing import TYPE_CHECKING, Literal

import numpy as np

from nbta import shapes
from nbta.codegen.fusion import spread
from nbta.codegen.values import Block, Scalar, product, times, total, typed
from nbta.codegen.windows import (
    added,
    clear,
    held,
    integer,
    move,
    offset_of,
    position,
    strides_of,
    window,
)
from nbta.dtypes import as_dtype
from nbta.errors import invalid, out_of_range
from nbta.graph.operation import Addend, NotDifferentiable, Spec, Tensor
from nbta.graph.views import origin
from nbta.loops import assign, both, call, do, either, over, select, when
from nbta.loops.nodes import ONE, ZERO
from nbta.ops.core.arithmetic import equal, maximum, minimum, mod, where
from nbta.ops.core.axis_arguments import within
from nbta.ops.core.checks import AFTER
from nbta.ops.core.dimensions import pattern_of
from nbta.ops.core.dispatch import apply, as_array, define, define_change, exported
from nbta.ops.core.elementwise import promoted
from nbta.ops.core.filling import arange, zeros, zeros_like
from nbta.ops.core.shaping import reshape, shape_of, size, unbroadcast
from nbta.runtime.intrinsics import MOST_ITEMS

if TYPE_CHECKING:
    from nbta.typing import Array, ArrayLike, DTypeLike, Integer


def as_axis(axis) -> int:
    """An axis argument as an integer.

    Raises
    ------
    InvalidArgumentError
        For what is not an integer.
    """
    try:
        return operator.index(axis)
    except TypeError:
        raise invalid("axis", f"axis: {axis!r} is not an axis; give an integer") from None


def check_axis(axis: int, shape) -> int:
    """The axis counted from the first, which a tensor of the shape must have."""
    return within((axis,), shape)[0]


def along(axis: int, item) -> tuple:
    """The key that has the item at an axis and takes all of the others; no rank is needed."""
    every = builtins.slice(None)
    if axis >= 0:
        return (every,) * axis + (item,)
    return (Ellipsis, item) + (every,) * (-axis - 1)


def as_indices(indices):
    """Indices as a tensor or array of integers."""
    if not isinstance(indices, Tensor):
        indices = as_array(indices)
        if indices.size == 0 and indices.dtype.kind == "f":  # an empty list
            indices = indices.astype(np.int64)
    if indices.dtype.kind == "b":
        message = (
            "the number of elements that a boolean mask selects is known only in a run; use "
            "nbta.where, with 0 for elements that a sum leaves out"
        )
        raise invalid("mask", message)
    if indices.dtype.kind not in "iu":
        raise invalid("dtype", f"indices: must be integers, not {indices.dtype}; cast them")
    return indices


def _taken(x, indices, axis):
    """The shape of rows picked at an axis."""
    if x.shape is None:
        return None
    axis = check_axis(axis, x.shape)
    if indices.shape is None:
        return None
    return (*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :])


def _infer_take(x, indices, *, axis):
    return Spec(x.dtype, _taken(x, indices, axis))


def _out_of_range(indices, shape, axis):
    axis = check_axis(axis, shape)
    dimension = shape[axis]
    wrong = indices[(indices < -dimension) | (indices >= dimension)].flat[0]
    message = (
        f"index {wrong} is out of range: axis {axis} of shape {shapes.text(shape)} has {dimension} "
        f"rows, numbered from 0, or from {-dimension} to -1"
    )
    return out_of_range(message)


def _evaluate_take(x, indices, *, axis):
    indices = np.asarray(indices)
    try:
        return np.take(x, indices.astype(np.intp, copy=False), axis)
    except IndexError:
        raise _out_of_range(indices, np.shape(x), axis) from None


def _take_gradient(op, dy):
    x, indices = op.inputs

    def onto(total, dy):
        return scatter_add(total, indices, dy, op.attrs["axis"])

    def alone(dy):
        return onto(zeros(shape_of(x), dy.dtype), dy)

    return [Addend(dy, (TAKE, op.attrs["axis"], indices), alone, onto), None]


def _emit_take(code, op) -> None:
    """Rows that indices name; a single one along the first axis is a view."""
    x, indices = map(code.value, op.inputs)
    axis = op.attrs["axis"] % len(x.dimensions)
    before, after = x.dimensions[:axis], x.dimensions[axis + 1 :]
    if isinstance(indices, Scalar):
        return _take_one(code, op, x, axis)
    block = code.result(op, dimensions=(*before, *indices.dimensions, *after))
    rows = _Rows(code, x.dimensions, axis, indices)
    with rows.each(code) as (outer, place, row):
        target = total(block.offset, times(rows.index_of(outer, row), rows.length))
        source = total(x.offset, times(rows.place_of(outer, place), rows.length))
        code.add(_copy_row(block.base, target, x.base, source, rows.length))
    return None


def _copy_row(target, to, source, of, length):
    if length == ONE:
        return assign(target.name[to], source.name[of])
    return do("copy", target.name, to, source.name, of, length)


def _take_one(code, op, x, axis):
    index = code.variable(_as_int(op.inputs[1].dtype, code.scalar(op.inputs[1])), "k")
    place = position(code, index, x.dimensions[axis])
    around = window(code, x)
    found = around.moved(*(ZERO,) * axis, place, *(ZERO,) * (len(x.dimensions) - axis - 1))
    dimensions = x.dimensions[:axis] + x.dimensions[axis + 1 :]
    if not dimensions:
        return code.bind(op.outputs[0], code.local(x.base.name[found.offset], x.dtype))
    if all(dimension == ONE for dimension in x.dimensions[:axis]):
        return code.bind(op.outputs[0], Block(x.base, dimensions, offset_of(code, found)))
    block = code.result(op, dimensions=dimensions)
    strides = around.strides[:axis] + around.strides[axis + 1 :]
    source = type(around)(x.base, found.offset, strides)
    return move(code, dimensions, window(code, block), source)


def _as_int(dtype, index):
    return index if dtype == "int64" else call("int64", index)


class _Rows:
    """The rows along an axis that indices name, in loops over the axes before it and over them."""

    def __init__(self, code, dimensions, axis, indices):
        self.before, self.length = product(dimensions[:axis]), product(dimensions[axis + 1 :])
        self.dimension, self._indices = dimensions[axis], indices
        self.count = ONE if isinstance(indices, Scalar) else product(indices.dimensions)

    def each(self, code):
        """A block in which the number before, the index and the row's number have names."""
        return _Nested(code, self)

    def place_of(self, outer, place):
        """Which row of the tensor one is, all axes before taken as one."""
        return place if outer == ZERO else total(times(outer, self.dimension), place)

    def index_of(self, outer, row):
        """Which row one is of those that the indices name."""
        return row if outer == ZERO else total(times(outer, self.count), row)

    def item(self, row):
        """An index."""
        indices = self._indices
        index = indices.item if isinstance(indices, Scalar) else indices.at(row)
        return _as_int(indices.dtype, index)


class _Nested:
    """The loops of `_Rows`."""

    def __init__(self, code, rows):
        self._code, self._rows, self._around = code, rows, code.lines

    def __enter__(self):
        code, rows = self._code, self._rows
        outer, row, place = ZERO, code.name("j"), code.name("k")
        header = over(row, rows.count)
        if rows.before != ONE:  # there may be none, and indices are to be right all the same
            with code.nest(header):
                self._check(rows.item(row))
            outer = code.name("i")
            code.lines = code.lines.nest(over(outer, rows.before))
        code.lines = code.lines.nest(header)
        code.add(assign(place, rows.item(row)))
        if rows.before == ONE:
            self._check(place)
        code.add(assign(place, select(place < 0, place + rows.dimension, place)))
        return outer, place, row

    def _check(self, index):
        dimension = self._rows.dimension
        self._code.fail_if(either(index < -dimension, index >= dimension))

    def __exit__(self, *_):
        self._code.lines = self._around


TAKE = define(
    "Take",
    _infer_take,
    _evaluate_take,
    _take_gradient,
    emit=_emit_take,
    selects=True,
    misses=True,
    linear=(0,),
)


@exported(numpy=3)
def take(
    x: ArrayLike,
    indices: ArrayLike,
    axis: int | None = None,
    *,
    mode: Literal["raise", "wrap", "clip"] = "raise",
    name: str | None = None,
) -> Array:
    """Elements, or slices along an axis, at given indices, as `numpy.take`.

    Parameters
    ----------
    x : array-like or Tensor
        What to take from.
    indices : array-like or Tensor of int
        Indices, of any shape; negative ones count from the end.
    axis : int, optional
        The axis that is indexed; by default ``x`` is flattened first.
    mode : {"raise", "wrap", "clip"}, default "raise"
        What to do with an index out of range: raise an error, take it modulo the length, or replace
        it by the first or the last index. With "clip", negative indices become 0.

    Returns
    -------
    Tensor or numpy.ndarray
        Of the shape of ``x``, with the shape of ``indices`` in place of the axis.

    Raises
    ------
    InvalidArgumentError
        For an index that is out of range, for indices that are not integers, and for an axis that
        ``x`` does not have.

    Examples
    --------
    >>> nbta.take([10, 20, 30], [2, 0, -1])
    array([30, 10, 30])
    >>> nbta.take([[1, 2], [3, 4]], 1, axis=1)
    array([2, 4])
    """
    if axis is None:
        x, axis = reshape(x, (-1,)), 0
    indices, axis = as_indices(indices), as_axis(axis)
    if mode != "raise":
        indices = _bounded(indices, x if isinstance(x, Tensor) else as_array(x), axis, mode)
    return apply(TAKE, [x, indices], {"axis": axis}, name)


def _bounded(indices, x, axis, mode):
    """Indices from 0 to before the length of an axis."""
    if mode not in ("wrap", "clip"):
        raise invalid("value", f'mode must be "raise", "wrap" or "clip", not {mode!r}')
    dimension = x.shape[axis]
    return (
        mod(indices, dimension) if mode == "wrap" else minimum(maximum(indices, 0), dimension - 1)
    )


@exported
def gather(x: ArrayLike, indices: ArrayLike, axis: int = 0, *, name: str | None = None) -> Array:
    """Slices along an axis at given indices: `nbta.take` by TensorFlow's name ``tf.gather``.

    Parameters
    ----------
    x : array-like or Tensor
        What to take from.
    indices : array-like or Tensor of int
        Indices, of any shape; negative ones count from the end.
    axis : int, default 0
        The axis that is indexed.

    Returns
    -------
    Tensor or numpy.ndarray
        Of the shape of ``x``, with the shape of the indices in place of the axis.

    Raises
    ------
    InvalidArgumentError
        As `nbta.take`.

    Examples
    --------
    >>> nbta.gather([[1, 2], [3, 4]], [1, 1])
    array([[3, 4],
           [3, 4]])
    """
    return take(x, indices, axis, name=name)


def _infer_scatter(x, indices, updates, *, axis):
    rows = _taken(x, indices, axis)
    if rows is not None and updates.shape is not None:
        _check_updates(rows, updates.shape)
    return Spec(x.dtype, x.shape)


def _check_updates(rows, updates):
    try:
        fits = len(shapes.broadcast(rows, updates)) == len(rows)
        fits = fits and shapes.compatible(shapes.broadcast(rows, updates), rows)
    except ValueError:
        fits = False
    if not fits:
        message = (
            f"updates: shape {shapes.text(updates)} does not broadcast to {shapes.text(rows)}, "
            f"the shape of the rows that the indices name"
        )
        raise invalid("shape", message)


def _add_rows(out, indices, updates, *, axis):
    indices = np.asarray(indices)
    axis = check_axis(axis, out.shape)
    try:
        np.add.at(out, along(axis, indices.astype(np.intp, copy=False)), updates)
    except IndexError:
        raise _out_of_range(indices, out.shape, axis) from None
    return out


def _set_rows(out, indices, updates, *, axis):
    indices = np.asarray(indices)
    axis = check_axis(axis, out.shape)
    try:
        out[along(axis, indices.astype(np.intp, copy=False))] = updates
    except IndexError:
        raise _out_of_range(indices, out.shape, axis) from None
    return out


def _scatter_add_gradient(op, dy):
    _, indices, updates = op.inputs
    rows = take(dy, indices, op.attrs["axis"])
    return [dy, None, unbroadcast(rows, updates)]


def _is_last(indices, shape):
    """Whether each index is the last one that names its row."""
    numbers = reshape(arange(size(indices)), shape_of(indices))
    last = zeros(shape[:1], np.int64)
    last = apply(SCATTER_SET, [last, indices, numbers], {"axis": 0})
    return equal(take(last, indices, 0), numbers)


def _scatter_set_gradient(op, dy):
    """Replaced rows pass nothing on; of several in one place only the last one counts."""
    x, indices, updates = op.inputs
    rows = take(dy, indices, op.attrs["axis"])
    rest = apply(SCATTER_SET, [dy, indices, np.zeros((), dy.dtype)], {"axis": op.attrs["axis"]})
    if not _are_distinct(indices):
        after = (None,) * (rows.spec.rank - indices.spec.rank)
        stays = _is_last(indices, shape_of(x))[(..., *after)]
        rows = where(stays, rows, zeros_like(rows))
    return [rest, None, unbroadcast(rows, updates)]


def _are_distinct(indices):
    """Whether indices are known to be distinct, as the places are where a mask is true."""
    op = origin(indices).op
    while op.record is AFTER:
        op = origin(op.inputs[0]).op
    return op.record.distinct


def _emit_scatter(code, op) -> None:
    """A tensor with updates in the rows that indices name, or added to them, one by one."""
    adds = op.record is SCATTER_ADD
    x, indices, updates = op.inputs
    dimensions = code.dimensions(x)
    axis = op.attrs["axis"] % len(dimensions)
    index, update = code.value(indices), code.value(updates)
    rows = _Rows(code, dimensions, axis, index)
    groups = dimensions[:axis], index.dimensions, dimensions[axis + 1 :]
    steps = spread(code, update.dimensions, sum(map(len, groups)), sum(groups, ()))
    block = code.changed(op)
    with rows.each(code) as (outer, place, row):
        start = total(block.offset, times(rows.place_of(outer, place), rows.length))
        numbers = _numbers(code, groups, (outer, row))
        names = [code.name("i") for _ in groups[2]]
        target = total(start, *map(times, names, strides_of(code, groups[2])))
        source = total(*map(times, [*numbers, *names], steps))
        item = update.item if isinstance(update, Scalar) else update.at(source)
        at = block.base.name[target]
        headers = [over(i, e) for i, e in zip(names, groups[2], strict=True)]
        item = added(at, item, block.dtype) if adds else item
        code.nested(headers, assign(at, typed(item, block.dtype)))


def _numbers(code, groups, counters):
    """Indices along the axes of groups that are walked as one."""
    found = []
    for dimensions, counter in zip(groups[:2], counters, strict=True):
        for axis, step in enumerate(strides_of(code, dimensions)):
            index = counter if step == ONE else counter // step
            found.append(index % dimensions[axis] if axis else index)
    return found


SCATTER_ADD = define_change(
    "ScatterAdd",
    _infer_scatter,
    _add_rows,
    _scatter_add_gradient,
    emit=_emit_scatter,
    misses=True,
    linear=(0, 2),
)
SCATTER_SET = define_change(
    "ScatterSet",
    _infer_scatter,
    _set_rows,
    _scatter_set_gradient,
    emit=_emit_scatter,
    misses=True,
    linear=(0, 2),
    moves=True,
)


@exported
def scatter_add(
    x: ArrayLike, indices: ArrayLike, updates: ArrayLike, axis: int = 0, *, name: str | None = None
) -> Array:
    """``x`` with updates added to the rows that indices name; ``x`` itself stays as it is.

    Parameters
    ----------
    x : array-like or Tensor
    indices : array-like or Tensor of int
        A row that is named more than once gets all of its updates. Negative ones count from the
        end.
    updates : array-like or Tensor
        Broadcasts to the shape of ``take(x, indices, axis)``.
    axis : int, optional

    Returns
    -------
    Tensor or numpy.ndarray
        Of the shape of ``x``, and of the dtype that ``x`` and ``updates`` have in common.

    Raises
    ------
    InvalidArgumentError
        For an index that is out of range, and for updates that do not fit.

    Examples
    --------
    >>> nbta.scatter_add([0.0, 0.0, 0.0], [2, 0, 2], [1.0, 2.0, 3.0])
    array([2., 0., 4.])
    """
    x, updates = promoted(x, updates)
    attrs = {"axis": as_axis(axis)}
    return apply(SCATTER_ADD, [x, as_indices(indices), updates], attrs, name)


def _infer_one_hot(indices, depth, *, dtype, dimension):
    return Spec(dtype, None if indices.shape is None else (*indices.shape, dimension))


def _evaluate_one_hot(indices, depth, *, dtype, dimension):
    numbers = np.arange(min(depth, MOST_ITEMS))  # NumPy gives none from 2**63 - 512 on
    return np.equal(np.asarray(indices)[..., None], numbers).astype(dtype)


def _emit_one_hot(code, op) -> None:
    """Zeros, and a one where each index says."""
    indices, depth = code.value(op.inputs[0]), code.variable(integer(code, op.inputs[1]), "k")
    length = held(code, code.derived(call("max", 0, depth)), op.outputs[0].spec.shape[-1])
    block = code.result(op, dimensions=(*indices.dimensions, length))
    clear(code, block)
    j, k = code.name("j"), code.name("k")
    scalar = isinstance(indices, Scalar)
    index = _as_int(indices.dtype, indices.item if scalar else indices.at(j))
    with code.nest(over(j, product(indices.dimensions))):
        code.add(assign(k, index))
        with code.nest(when(both(k >= 0, k < length))):
            code.add(assign(block.at(total(times(j, length), k)), typed(1, block.dtype)))


ONE_HOT = define(
    "OneHot",
    _infer_one_hot,
    _evaluate_one_hot,
    NotDifferentiable("its input is an index"),
    emit=_emit_one_hot,
)


@exported
def one_hot(
    indices: ArrayLike, depth: Integer, dtype: DTypeLike = np.float64, *, name: str | None = None
) -> Array:
    """Return rows with a one at an index and zeros elsewhere.

    Parameters
    ----------
    indices : array-like or Tensor of int
        The position of the one in each row. A row is zero if its index is outside ``[0, depth)``.
    depth : int or Tensor
        Length of the rows.
    dtype : dtype-like, optional
        The dtype of the result.

    Returns
    -------
    Tensor or numpy.ndarray
        The rows; the shape is that of ``indices``, followed by ``depth``.

    Raises
    ------
    InvalidArgumentError
        If ``depth`` is not a single integer.

    Examples
    --------
    >>> nbta.one_hot([1, 0, -1], 3)
    array([[0., 1., 0.],
           [1., 0., 0.],
           [0., 0., 0.]])
    """
    depth = as_indices(depth)
    if depth.ndim not in (0, None):
        raise invalid("depth", f"depth: {depth!r} is not a length; give one integer")
    dimension = pattern_of(depth)[0] if depth.ndim == 0 else None
    if type(dimension) is int and dimension < 0:
        raise invalid("depth", f"depth: {dimension} is negative")
    attrs = {"dtype": as_dtype(dtype), "dimension": dimension}
    return apply(ONE_HOT, [as_indices(indices), depth], attrs, name)
