"""Operations with arrays of indices: take, scatter_add, one_hot."""

import builtins
import operator

import numpy as np

from nbta import shapes
from nbta.codegen import gather_rules
from nbta.dtypes import as_dtype
from nbta.errors import invalid
from nbta.graph.operation import Tensor
from nbta.graph.record import NotDifferentiable
from nbta.graph.spec import Spec
from nbta.ops.axis_arguments import within
from nbta.ops.dispatch import apply, as_array, define, exported
from nbta.ops.elementwise import meet
from nbta.ops.extents import pattern_of
from nbta.ops.filling import zeros
from nbta.ops.shaping import reshape, shape_of, unbroadcast
from nbta.runtime.protocol import MOST_ITEMS


def as_axis(axis) -> int:
    """An axis argument as an integer.

    Raises
    ------
    InvalidArgumentError
        For what is no integer.
    """
    try:
        return operator.index(axis)
    except TypeError:
        raise invalid("axis", f"axis: {axis!r} is no axis; give an integer") from None


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
        message = "a boolean mask picks a number of elements that no shape can tell; use nbta.where"
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
    extent = shape[axis]
    wrong = indices[(indices < -extent) | (indices >= extent)].flat[0]
    message = (
        f"index {wrong} is out of range: axis {axis} of shape {shapes.text(shape)} has {extent} "
        f"rows, numbered from 0, or from {-extent} to -1"
    )
    return invalid("index", message)


def _evaluate_take(x, indices, *, axis):
    indices = np.asarray(indices)
    try:
        return np.take(x, indices.astype(np.intp, copy=False), axis)
    except IndexError:
        raise _out_of_range(indices, np.shape(x), axis) from None


def _take_gradient(op, dy):
    x, indices = op.inputs
    return [scatter_add(zeros(shape_of(x), dy.dtype), indices, dy, op.attrs["axis"]), None]


TAKE = define(
    "Take", _infer_take, _evaluate_take, _take_gradient, emit=gather_rules.take, selects=True
)


@exported(numpy=3)
def take(x, indices, axis=None, *, name=None):
    """The elements, or rows along an axis, that indices name.

    Parameters
    ----------
    x : array-like or Tensor
    indices : array-like or Tensor of int
        Of any shape; negative ones count from the end.
    axis : int, optional
        By default ``x`` is taken as flat.

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
    return apply(TAKE, [x, as_indices(indices)], {"axis": as_axis(axis)}, name)


@exported
def gather(x, indices, axis=0, *, name=None):
    """The rows along an axis that indices name; TensorFlow's name of `take`.

    Raises
    ------
    InvalidArgumentError
        As `take` does.

    Examples
    --------
    >>> nbta.gather([[1, 2], [3, 4]], [1, 1])
    array([[3, 4],
           [3, 4]])
    """
    return take(x, indices, axis, name=name)


def _infer_scatter_add(x, indices, updates, *, axis):
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


def _evaluate_scatter_add(x, indices, updates, *, axis):
    indices, out = np.asarray(indices), np.array(x)
    axis = check_axis(axis, out.shape)
    try:
        np.add.at(out, along(axis, indices.astype(np.intp, copy=False)), updates)
    except IndexError:
        raise _out_of_range(indices, out.shape, axis) from None
    return out


def _scatter_add_gradient(op, dy):
    _, indices, updates = op.inputs
    rows = take(dy, indices, op.attrs["axis"])
    return [dy, None, unbroadcast(rows, updates)]


SCATTER_ADD = define(
    "ScatterAdd",
    _infer_scatter_add,
    _evaluate_scatter_add,
    _scatter_add_gradient,
    emit=gather_rules.scatter_add,
)


@exported
def scatter_add(x, indices, updates, axis=0, *, name=None):
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
    x, updates = meet(x, updates)
    attrs = {"axis": as_axis(axis)}
    return apply(SCATTER_ADD, [x, as_indices(indices), updates], attrs, name)


def _infer_one_hot(indices, depth, *, dtype, extent):
    return Spec(dtype, None if indices.shape is None else (*indices.shape, extent))


def _evaluate_one_hot(indices, depth, *, dtype, extent):
    numbers = np.arange(min(depth, MOST_ITEMS))  # NumPy gives none from 2**63 - 512 on
    return np.equal(np.asarray(indices)[..., None], numbers).astype(dtype)


ONE_HOT = define(
    "OneHot",
    _infer_one_hot,
    _evaluate_one_hot,
    NotDifferentiable("its input is an index"),
    emit=gather_rules.one_hot,
)


@exported
def one_hot(indices, depth, dtype=np.float64, *, name=None):
    """Rows with a one at an index and zeros elsewhere.

    Parameters
    ----------
    indices : array-like or Tensor of int
        One outside ``[0, depth)`` gives a row of zeros.
    depth : int or Tensor
        Length of the rows.
    dtype : dtype-like, optional

    Returns
    -------
    Tensor or numpy.ndarray
        Of the shape of ``indices`` and ``depth`` behind it.

    Examples
    --------
    >>> nbta.one_hot([1, 0, -1], 3)
    array([[0., 1., 0.],
           [1., 0., 0.],
           [0., 0., 0.]])
    """
    depth = as_indices(depth)
    if depth.ndim not in (0, None):
        raise invalid("depth", f"depth: {depth!r} is no length; give one integer")
    extent = pattern_of(depth)[0] if depth.ndim == 0 else None
    if type(extent) is int and extent < 0:
        raise invalid("depth", f"depth: {extent} is negative")
    attrs = {"dtype": as_dtype(dtype), "extent": extent}
    return apply(ONE_HOT, [as_indices(indices), depth], attrs, name)
