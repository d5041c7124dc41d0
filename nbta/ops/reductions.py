"""Reductions along axes, and what is computed along axes like them."""

import functools
import math
import operator

import numpy as np

from nbta import shapes
from nbta.codegen import reduction_rules, scan_rules
from nbta.errors import invalid
from nbta.graph.record import NotDifferentiable
from nbta.graph.spec import Spec, is_inexact
from nbta.ops.arithmetic import equal
from nbta.ops.axis_arguments import (
    axis_attrs,
    keeping,
    nonempty,
    numbers,
    one_axis,
    operand,
    ordered,
    reducing,
)
from nbta.ops.dispatch import apply, define, exported
from nbta.ops.elementwise import conjugate
from nbta.ops.half import narrow, wide
from nbta.ops.recurrences import exclusive_cumprod, linear_recurrence
from nbta.ops.shaping import INT64, broadcast_to, cast, reshape, shape_of

__all__ = [
    "argmax",
    "cumsum",
    "exclusive_cumprod",
    "linear_recurrence",
    "max",
    "mean",
    "min",
    "prod",
    "sum",
]


@functools.cache
def _total_dtype(dtype):
    """That of a sum, by NumPy's rules: integers are widened."""
    return np.sum(np.ones(1, dtype)).dtype


def mean_dtype(dtype):
    """That of a mean: integers become floats."""
    return dtype if is_inexact(dtype) else np.dtype(np.float64)


def axes_back(value, op):
    """A result, or its gradient, with the lost axes again as axes of length 1.

    A reduction of all axes stays a scalar, which broadcasts.
    """
    from nbta.ops.joining import expand_dims

    axis = op.attrs["axis"]
    if op.attrs["keepdims"] or not axis:
        return value
    if len({one < 0 for one in axis}) > 1:
        message = f"the gradient along axes {axis} needs a known rank; give axes of one sign"
        raise invalid("rank", message)
    for one in sorted(axis, reverse=axis[0] < 0):
        value = expand_dims(value, one)
    return value


def spread(dy, op):
    """A gradient given back to all the elements that were reduced."""
    return broadcast_to(axes_back(dy, op), shape_of(op.inputs[0]))


def reduce_by(record, x, axis, keepdims, name):
    """A reduction along axes as users give them."""
    return apply(record, [x], axis_attrs(x, axis, keepdims=bool(keepdims)), name)


def _evaluate_sum(x, *, axis, keepdims):
    result = _total_dtype(x.dtype)
    return narrow(np.sum(x, axis=axis, dtype=wide(result), keepdims=keepdims), result)


SUM = define(
    "Sum",
    reducing(_total_dtype),
    _evaluate_sum,
    lambda op, dy: [spread(dy, op)],
    emit=reduction_rules.total,
    total=True,
)


@exported(numpy=2)
def sum(x, axis=None, keepdims=False, *, name=None):
    """The sum along axes; integers and truth values are added as int64 or uint64.

    Parameters
    ----------
    x : array-like or Tensor
    axis : int, tuple of int or None
        None is all axes; negative ones are counted from the last.
    keepdims : bool
        Whether the axes stay, with length 1.

    Raises
    ------
    InvalidArgumentError
        For an axis that is not there.

    Examples
    --------
    >>> nbta.sum([[1, 2], [3, 4]], axis=0)
    array([4, 6])
    """
    return reduce_by(SUM, operand(x), axis, keepdims, name)


def _evaluate_mean(x, *, axis, keepdims):
    result = mean_dtype(x.dtype)
    total = np.sum(x, axis=axis, dtype=wide(result), keepdims=keepdims)
    shares = np.divide(total, x.size // np.size(total) if np.size(total) else 1, dtype=total.dtype)
    return narrow(shares, result)


def _mean_gradient(op, dy):
    x, axis = op.inputs[0], op.attrs["axis"]
    extents = x.spec.shape
    if extents is not None and axis is not None:
        extents = tuple(extents[one] for one in axis)
    if shapes.is_known(extents):
        share = np.array(1 / (math.prod(extents) or 1), dy.dtype)
        return [spread(dy * share, op)]
    lengths = shape_of(x)
    if axis is None:
        count = prod(lengths)
    else:
        count = functools.reduce(operator.mul, [lengths[one] for one in axis], 1)
    return [spread(dy * cast(1.0 / count, dy.dtype), op)]


MEAN = define(
    "Mean",
    reducing(mean_dtype),
    _evaluate_mean,
    _mean_gradient,
    emit=reduction_rules.mean,
    total=True,
)


@exported(numpy=2)
def mean(x, axis=None, keepdims=False, *, name=None):
    """The arithmetic mean along axes, see `nbta.sum`; that of integers is float64, of nothing NaN.

    Examples
    --------
    >>> nbta.mean([[1, 2], [3, 4]], axis=1)
    array([1.5, 3.5])
    """
    return reduce_by(MEAN, operand(x), axis, keepdims, name)


def _extreme(name, reduce, emit):
    """The record of max or min; equal ones share the gradient."""

    def evaluate(x, *, axis, keepdims):
        if not x.size:
            nonempty(x.shape, axis)
        return reduce(x, axis=axis, keepdims=keepdims)

    def gradient(op, dy):
        taken = equal(op.inputs[0], axes_back(op.outputs[0], op))
        # float16 counts to 65504 only.
        count = sum(cast(taken, wide(dy.dtype)), op.attrs["axis"], op.attrs["keepdims"])
        share = dy / count if count.dtype == dy.dtype else cast(dy / count, dy.dtype)
        return [axes_back(share, op) * cast(taken, dy.dtype)]

    infer = reducing(lambda dtype: dtype, ordered, empty=False)
    return define(name, infer, evaluate, gradient, emit=emit)


MAX = _extreme("Max", np.max, reduction_rules.extreme(1))
MIN = _extreme("Min", np.min, reduction_rules.extreme(-1))


@exported(also="amax", numpy=2)
def max(x, axis=None, keepdims=False, *, name=None):
    """The greatest element along axes, see `nbta.sum`; equal ones share the gradient.

    Raises
    ------
    InvalidArgumentError
        For axes without elements, and for complex numbers.

    Examples
    --------
    >>> nbta.max([[1, 2], [3, 4]], axis=0)
    array([3, 4])
    """
    return reduce_by(MAX, operand(x), axis, keepdims, name)


@exported(also="amin", numpy=2)
def min(x, axis=None, keepdims=False, *, name=None):
    """The least element along axes, see `nbta.sum`; equal ones share the gradient.

    Raises
    ------
    InvalidArgumentError
        For axes without elements, and for complex numbers.

    Examples
    --------
    >>> nbta.min([[1, 2], [3, 4]], axis=0)
    array([1, 2])
    """
    return reduce_by(MIN, operand(x), axis, keepdims, name)


def _evaluate_prod(x, *, axis, keepdims):
    result = _total_dtype(x.dtype)
    return narrow(np.prod(x, axis=axis, dtype=wide(result), keepdims=keepdims), result)


def _others(x, axis):
    """For each element the product of the others along an axis, without division."""
    return exclusive_cumprod(x, axis) * exclusive_cumprod(x, axis, reverse=True)


def _prod_gradient(op, dy):
    x, axis = op.inputs[0], op.attrs["axis"]
    if axis is None:
        others = reshape(_others(reshape(x, -1), 0), shape_of(x))
        return [dy * conjugate(others)]
    dx, product = spread(dy, op), x
    for one in axis:
        dx = dx * conjugate(_others(product, one))
        product = prod(product, one, keepdims=True)
    return [dx]


PROD = define(
    "Prod",
    reducing(_total_dtype),
    _evaluate_prod,
    _prod_gradient,
    emit=reduction_rules.prod,
    total=True,
)


@exported(numpy=2)
def prod(x, axis=None, keepdims=False, *, name=None):
    """The product along axes, see `nbta.sum`; its gradient is exact where elements are 0.

    Examples
    --------
    >>> nbta.prod([[1, 2], [3, 4]], axis=0)
    array([3, 8])
    """
    return reduce_by(PROD, operand(x), axis, keepdims, name)


def _evaluate_argmax(x, *, axis):
    if not x.size:
        nonempty(x.shape, axis)
    return np.argmax(x, axis=None if axis is None else axis[0])


ARGMAX = define(
    "ArgMax",
    reducing(lambda dtype: INT64, ordered, empty=False),
    _evaluate_argmax,
    NotDifferentiable("its result is a place"),
    emit=scan_rules.argmax,
)


@exported(numpy=2)
def argmax(x, axis=None, *, name=None):
    """The index of the greatest element along an axis, the first of equal ones, as int64.

    Without an axis it is the index into the flattened tensor. There is no gradient.

    Raises
    ------
    InvalidArgumentError
        For an axis without elements or that is not there, and for complex numbers.

    Examples
    --------
    >>> nbta.argmax([[1, 5], [7, 4]], axis=1)
    array([1, 0])
    """
    x = operand(x)
    return apply(ARGMAX, [x], {"axis": None if axis is None else (one_axis(x, axis),)}, name)


def _infer_cumsum(spec, *, axis, reverse):
    return Spec(_total_dtype(spec.dtype), keeping(numbers)(spec, axis=axis).shape)


def _evaluate_cumsum(x, *, axis, reverse):
    result = _total_dtype(x.dtype)
    x = np.flip(x, axis) if reverse else x
    sums = narrow(np.cumsum(x, axis=axis, dtype=wide(result)), result)
    return np.flip(sums, axis) if reverse else sums


def _cumsum_gradient(op, dy):
    return [apply(CUMSUM, [dy], {**op.attrs, "reverse": not op.attrs["reverse"]})]


CUMSUM = define(
    "CumSum", _infer_cumsum, _evaluate_cumsum, _cumsum_gradient, emit=scan_rules.cumsum, total=True
)


@exported(numpy=2)
def cumsum(x, axis=None, *, name=None):
    """Sums of the first elements along an axis; without an axis, of the flattened tensor.

    Integers and truth values are added as int64 or uint64.

    Examples
    --------
    >>> nbta.cumsum([[1, 2], [3, 4]], axis=1)
    array([[1, 3],
           [3, 7]])
    """
    x = operand(x)
    x, axis = (reshape(x, -1), 0) if axis is None else (x, axis)
    return apply(CUMSUM, [x], {"axis": one_axis(x, axis), "reverse": False}, name)
