"""Sums of exponentials, without overflow."""

import math

import numpy as np

from nbta.codegen import reduction_rules as rules
from nbta.ops.arithmetic import equal, where
from nbta.ops.axis_arguments import axis_attrs, keeping, operand, ordered, reducing
from nbta.ops.dispatch import apply, define, exported
from nbta.ops.elementary import exp
from nbta.ops.filling import zeros_like
from nbta.ops.half import narrow, widened
from nbta.ops.reductions import axes_back, mean_dtype, reduce_by, sum


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
    return [axes_back(dy, op) * exp(op.inputs[0] - axes_back(finite, op))]


LOGSUMEXP = define(
    "LogSumExp",
    reducing(mean_dtype, ordered),
    _evaluate_logsumexp,
    _logsumexp_gradient,
    emit=rules.logsumexp,
)


@exported
def logsumexp(x, axis=None, keepdims=False, *, name=None):
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
    return reduce_by(LOGSUMEXP, operand(x, floats=True), axis, keepdims, name)


def _evaluate_softmax(x, *, axis):
    parts = np.exp(_shifted(x, axis)[0])
    return narrow(parts / np.sum(parts, axis=axis, keepdims=True), x.dtype)


def _softmax_gradient(op, dy):
    y, axis = op.outputs[0], op.attrs["axis"]
    return [y * (dy - sum(dy * y, axis, keepdims=True))]


SOFTMAX = define("Softmax", keeping(), _evaluate_softmax, _softmax_gradient, emit=rules.softmax)


@exported
def softmax(x, axis=-1, *, name=None):
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


LOG_SOFTMAX = define(
    "LogSoftmax",
    keeping(),
    _evaluate_log_softmax,
    _log_softmax_gradient,
    emit=rules.log_softmax,
)


@exported
def log_softmax(x, axis=-1, *, name=None):
    """The logarithm of `nbta.softmax`, exact where that is nearly 0; of the shape of ``x``.

    Examples
    --------
    >>> nbta.log_softmax([0.0, 1000.0])
    array([-1000.,     0.])
    """
    x = operand(x, floats=True)
    return apply(LOG_SOFTMAX, [x], axis_attrs(x, axis), name)
