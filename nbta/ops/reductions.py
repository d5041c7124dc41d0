"""Reductions along axes, and what is computed along axes like them."""

import functools
import math
import operator

import numpy as np

from nbta import shapes
from nbta.errors import invalid
from nbta.graph.record import NotDifferentiable
from nbta.graph.spec import Spec, is_inexact
from nbta.ops.arithmetic import equal, where
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
from nbta.ops.dispatch import apply, define
from nbta.ops.elementary import exp
from nbta.ops.elementwise import conjugate
from nbta.ops.half import narrow, wide, widened
from nbta.ops.recurrences import exclusive_cumprod, linear_recurrence
from nbta.ops.shaping import INT64, broadcast_to, cast, reshape, shape_of, zeros_like

__all__ = [
    "argmax",
    "cumsum",
    "exclusive_cumprod",
    "linear_recurrence",
    "log_softmax",
    "logsumexp",
    "max",
    "mean",
    "min",
    "prod",
    "softmax",
    "sum",
]


@functools.cache
def _total_dtype(dtype):
    """That of a sum, by NumPy's rules: integers are widened."""
    return np.sum(np.ones(1, dtype)).dtype


def _mean_dtype(dtype):
    return dtype if is_inexact(dtype) else np.dtype(np.float64)


def _axes_back(value, op):
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


def _spread(dy, op):
    """A gradient given back to all the elements that were reduced."""
    return broadcast_to(_axes_back(dy, op), shape_of(op.inputs[0]))


def _reduce(record, x, axis, keepdims, name):
    return apply(record, [x], axis_attrs(x, axis, keepdims=bool(keepdims)), name)


def _evaluate_sum(x, *, axis, keepdims):
    result = _total_dtype(x.dtype)
    return narrow(np.sum(x, axis=axis, dtype=wide(result), keepdims=keepdims), result)


SUM = define("Sum", reducing(_total_dtype), _evaluate_sum, lambda op, dy: [_spread(dy, op)])


def sum(x, axis=None, keepdims=False, name=None):
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
    return _reduce(SUM, operand(x), axis, keepdims, name)


def _evaluate_mean(x, *, axis, keepdims):
    result = _mean_dtype(x.dtype)
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
        return [_spread(dy * share, op)]
    lengths = shape_of(x)
    if axis is None:
        count = prod(lengths)
    else:
        count = functools.reduce(operator.mul, [lengths[one] for one in axis], 1)
    return [_spread(dy * cast(1.0 / count, dy.dtype), op)]


MEAN = define("Mean", reducing(_mean_dtype), _evaluate_mean, _mean_gradient)


def mean(x, axis=None, keepdims=False, name=None):
    """The arithmetic mean along axes, see `nbta.sum`; that of integers is float64, of nothing NaN.

    Examples
    --------
    >>> nbta.mean([[1, 2], [3, 4]], axis=1)
    array([1.5, 3.5])
    """
    return _reduce(MEAN, operand(x), axis, keepdims, name)


def _extreme(name, reduce):
    """The record of max or min; equal ones share the gradient."""

    def evaluate(x, *, axis, keepdims):
        if not x.size:
            nonempty(x.shape, axis)
        return reduce(x, axis=axis, keepdims=keepdims)

    def gradient(op, dy):
        taken = equal(op.inputs[0], _axes_back(op.outputs[0], op))
        # float16 counts to 65504 only.
        count = sum(cast(taken, wide(dy.dtype)), op.attrs["axis"], op.attrs["keepdims"])
        share = dy / count if count.dtype == dy.dtype else cast(dy / count, dy.dtype)
        return [_axes_back(share, op) * cast(taken, dy.dtype)]

    return define(name, reducing(lambda dtype: dtype, ordered, empty=False), evaluate, gradient)


MAX = _extreme("Max", np.max)
MIN = _extreme("Min", np.min)


def max(x, axis=None, keepdims=False, name=None):
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
    return _reduce(MAX, operand(x), axis, keepdims, name)


def min(x, axis=None, keepdims=False, name=None):
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
    return _reduce(MIN, operand(x), axis, keepdims, name)


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
    dx, product = _spread(dy, op), x
    for one in axis:
        dx = dx * conjugate(_others(product, one))
        product = prod(product, one, keepdims=True)
    return [dx]


PROD = define("Prod", reducing(_total_dtype), _evaluate_prod, _prod_gradient)


def prod(x, axis=None, keepdims=False, name=None):
    """The product along axes, see `nbta.sum`; its gradient is exact where elements are 0.

    Examples
    --------
    >>> nbta.prod([[1, 2], [3, 4]], axis=0)
    array([3, 8])
    """
    return _reduce(PROD, operand(x), axis, keepdims, name)


def _evaluate_argmax(x, *, axis):
    if not x.size:
        nonempty(x.shape, axis)
    return np.argmax(x, axis=None if axis is None else axis[0])


ARGMAX = define(
    "ArgMax",
    reducing(lambda dtype: INT64, ordered, empty=False),
    _evaluate_argmax,
    NotDifferentiable("its result is a place"),
)


def argmax(x, axis=None, name=None):
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


CUMSUM = define("CumSum", _infer_cumsum, _evaluate_cumsum, _cumsum_gradient)


def cumsum(x, axis=None, name=None):
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


def _shifted(x, axis):
    """``x`` less its maximum, in which ``exp`` cannot overflow, and the maximum."""
    x = widened(x)
    top = np.max(x, axis=axis, keepdims=True, initial=-np.inf)
    top = np.where(np.isinf(top), np.zeros((), x.dtype), top)
    return x - top, top


def _evaluate_logsumexp(x, *, axis, keepdims):
    shifted, top = _shifted(x, axis)
    result = np.log(np.sum(np.exp(shifted), axis=axis, keepdims=True)) + top
    return narrow(result if keepdims else np.squeeze(result, axis)[()], x.dtype)


def _logsumexp_gradient(op, dy):
    """Where all is -inf, nothing has a share, and -inf less -inf would be NaN."""
    y = op.outputs[0]
    finite = where(equal(y, -math.inf), zeros_like(y), y)
    return [_axes_back(dy, op) * exp(op.inputs[0] - _axes_back(finite, op))]


LOGSUMEXP = define(
    "LogSumExp", reducing(_mean_dtype, ordered), _evaluate_logsumexp, _logsumexp_gradient
)


def logsumexp(x, axis=None, keepdims=False, name=None):
    """``log(sum(exp(x)))`` along axes, see `nbta.sum`, without overflow; of nothing it is -inf.

    Raises
    ------
    InvalidArgumentError
        For an axis that is not there, and for complex numbers.

    Examples
    --------
    >>> nbta.logsumexp([1000.0, 1000.0])
    np.float64(1000.6931471805599)
    """
    return _reduce(LOGSUMEXP, operand(x, floats=True), axis, keepdims, name)


def _evaluate_softmax(x, *, axis):
    parts = np.exp(_shifted(x, axis)[0])
    return narrow(parts / np.sum(parts, axis=axis, keepdims=True), x.dtype)


def _softmax_gradient(op, dy):
    y, axis = op.outputs[0], op.attrs["axis"]
    return [y * (dy - sum(dy * y, axis, keepdims=True))]


SOFTMAX = define("Softmax", keeping(), _evaluate_softmax, _softmax_gradient)


def softmax(x, axis=-1, name=None):
    """``exp(x) / sum(exp(x))`` along axes, without overflow; of the shape of ``x``.

    Examples
    --------
    >>> nbta.softmax([1000.0, 1000.0])
    array([0.5, 0.5])
    """
    x = operand(x, floats=True)
    return apply(SOFTMAX, [x], axis_attrs(x, axis), name)


def _evaluate_log_softmax(x, *, axis):
    shifted = _shifted(x, axis)[0]
    total = np.log(np.sum(np.exp(shifted), axis=axis, keepdims=True))
    return narrow(shifted - total, x.dtype)


def _log_softmax_gradient(op, dy):
    return [dy - exp(op.outputs[0]) * sum(dy, op.attrs["axis"], keepdims=True)]


LOG_SOFTMAX = define("LogSoftmax", keeping(), _evaluate_log_softmax, _log_softmax_gradient)


def log_softmax(x, axis=-1, name=None):
    """The logarithm of `nbta.softmax`, exact where that is nearly 0; of the shape of ``x``.

    Examples
    --------
    >>> nbta.log_softmax([0.0, 1000.0])
    array([-1000.,     0.])
    """
    x = operand(x, floats=True)
    return apply(LOG_SOFTMAX, [x], axis_attrs(x, axis), name)
