"""Sums of exponentials, without overflow."""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING

import numpy as np

from nbta.codegen.fusion import (
    ElementwiseOf,
    as_it_is,
    calling,
    extreme_of,
    fold_in,
    fold_items,
    item_of,
    joined,
    total_of,
)
from nbta.codegen.values import Block, Scalar, typed
from nbta.loops import call, either, select
from nbta.ops.axes.reductions import (
    axes_back,
    kept_axes,
    max,
    mean_dtype,
    reduce_by,
    result_dimensions,
    sum,
    with_ones,
)
from nbta.ops.core.arithmetic import (
    add,
    equal,
    less,
    logical_and,
    multiply,
    not_equal,
    subtract,
    where,
)
from nbta.ops.core.axis_arguments import axis_attrs, keeping, operand, ordered, reducing
from nbta.ops.core.descriptions import REDUCED
from nbta.ops.core.dispatch import apply, define, exported, stands_for
from nbta.ops.core.elementwise import binary, narrow, promoted, real_only, widened
from nbta.ops.core.filling import zeros_like
from nbta.ops.core.shaping import stop_gradient
from nbta.ops.elementary.basic import abs, exp, log, sigmoid, sign


class _Part:
    """A value on the way to a result, which no operation of the graph gives."""

    def __init__(self, op):
        self.op, self.dtype = op, op.outputs[0].dtype


def _finite_or_nan(x):
    """0 in place of an infinity."""
    return select(either((x - x).equals(0), x.differs(x)), x, 0)


class _Exponentials:
    """Exponentials of an input less its greatest along axes, which is 0 where that is infinite."""

    def __init__(self, code, op):
        self.code, self.op, self.x = code, op, op.inputs[0]
        self.dtype = op.outputs[0].dtype
        self.kept = kept_axes(op)
        self.top, self.items, self.total = (_Part(op) for _ in range(3))
        if not self.kept:
            code.bind(self.top, code.local(_finite_or_nan(code.scalar(self.x)), self.dtype))
            return
        fold_items(code, self.x, self.top, self.kept, self.short,
                   extreme_of(self.dtype, 1), _finite_or_nan)  # fmt: skip

    @property
    def short(self):
        """Dimensions of what there is one of for each sum."""
        dimensions = self.code.dimensions(self.x)
        return with_ones(dimensions, self.kept) if any(self.kept) else ()

    def step(self, rule, *tensors, result=None):
        """Another operation on items, such as `operator.sub`; its group and an item of it."""
        code = self.code
        if not self.kept:
            value = code.local(rule(*map(code.scalar, tensors)), self.dtype)
            if result is not None:
                code.bind(result, value)
            return None, value.item
        group = joined(code, tensors, code.dimensions(self.x))
        item = rule(*(item_of(code, group, tensor) for tensor in tensors))
        if result is not None:
            group.step(code, item, result)
            item = code.values[result].item
        return group, item

    def add_up(self, items=None, finish=None):
        """Sum them; they are stored as items where a part is given for that."""
        group, item = self.step(lambda x, top: call("exp", x - top), self.x, self.top, result=items)
        if group is None:
            item = (finish or as_it_is)(item)
            self.code.bind(self.total, self.code.local(item, self.dtype))
            return
        fold_in(self.code, group, item, self.total, self.kept, self.short,
                   total_of(self.dtype), finish)  # fmt: skip


if TYPE_CHECKING:
    from nbta.typing import Array, ArrayLike, Axis


def _share(x, y, scale=None):
    """Of the first in a sum of exponentials; of two equal infinities it is a half."""
    alike = logical_and(equal(x, y), not_equal(subtract(x, x), 0))
    apart = subtract(where(alike, 0.0, x), where(alike, 0.0, y))
    return sigmoid(apart if scale is None else apart * scale)


def _logaddexp_gradient(scale=None):
    def gradient(x, y, z, dz):
        return dz * _share(x, y, scale), dz * _share(y, x, scale)

    return gradient


def _emit_logaddexp(rule, half):
    """The greater of two and what the other adds, which is nothing new where they are infinite."""

    def item(op, x, y):
        same = typed(half, op.outputs[0].dtype)
        return select(x.equals(y), x + same, call("maximum", x, y) + rule(-call("abs", x - y)))

    return ElementwiseOf(item, "f")


@binary(
    "LogAddExp",
    np.logaddexp,
    _logaddexp_gradient(),
    infer=real_only,
    floats=True,
    emit=_emit_logaddexp(lambda x: call("log1p", call("exp", x)), math.log(2)),
)
def logaddexp(x: ArrayLike, y: ArrayLike, *, name: str | None = None) -> Array:
    """``log(exp(x) + exp(y))``, without overflow, as `numpy.logaddexp`.

    Examples
    --------
    >>> nbta.logaddexp([0.0, 1000.0], [0.0, 1000.0])
    array([6.93147181e-01, 1.00069315e+03])
    """


@binary(
    "LogAddExp2",
    np.logaddexp2,
    _logaddexp_gradient(math.log(2)),
    infer=real_only,
    floats=True,
    emit=_emit_logaddexp(lambda x: call("log1p", call("exp2", x)) * 1.4426950408889634, 1),
)
def logaddexp2(x: ArrayLike, y: ArrayLike, *, name: str | None = None) -> Array:
    """``log2(2**x + 2**y)``, without overflow, as `numpy.logaddexp2`.

    Examples
    --------
    >>> nbta.logaddexp2([0.0, 1000.0], [0.0, 1000.0])
    array([1.000e+00, 1.001e+03])
    """


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


def _emit_logsumexp(code, op) -> None:
    """The greatest is added again to each sum's logarithm."""
    parts, result = _Exponentials(code, op), op.outputs[0]
    parts.add_up(finish=calling("log"))
    top, total = code.value(parts.top), code.value(parts.total)
    dimensions = result_dimensions(code, op, parts.kept)
    if not dimensions:
        return code.bind(result, code.local(top.item + total.item, result.dtype))
    group = joined(code, [], dimensions)
    items = [
        value.item if isinstance(value, Scalar) else
        group.load(code, Block(value.base, dimensions, value.offset))
        for value in (top, total)
    ]  # fmt: skip
    return group.step(code, operator.add(*items), result)


LOGSUMEXP = define(
    "LogSumExp",
    reducing(mean_dtype, ordered),
    _evaluate_logsumexp,
    _logsumexp_gradient,
    emit=_emit_logsumexp,
    spreads=True,
)


@exported(also="scipy.special.logsumexp", numpy=2, family=REDUCED)
def logsumexp(
    x: ArrayLike,
    axis: Axis = None,
    keepdims: bool = False,
    *,
    b: ArrayLike | None = None,
    return_sign: bool = False,
    name: str | None = None,
) -> Array | tuple[Array, Array]:
    """``log(sum(exp(x)))`` along axes, without overflow, as ``scipy.special.logsumexp``.

    It is -inf where there are no elements.

    Parameters
    ----------
    b : array-like or Tensor, optional
        Factors of the exponentials, of a shape that broadcasts with ``x``. An element whose factor
        is 0 does not count.
    return_sign : bool, default False
        Whether to return the logarithm of the absolute value of the sum, and its sign. Without it,
        the logarithm of a negative sum is NaN.

    Returns
    -------
    Tensor or numpy.ndarray, or a tuple of two
        Of the shape of ``x`` without the reduced axes; with ``return_sign``, the logarithm and the
        sign.

    Raises
    ------
    InvalidArgumentError
        For an axis that ``x`` does not have, and for complex numbers.

    Examples
    --------
    >>> nbta.logsumexp([1000.0, 1000.0])
    np.float64(1000.6931471805599)
    """
    if b is not None:
        return _weighted(x, b, axis, keepdims, return_sign, name)
    found = reduce_by(LOGSUMEXP, operand(x, floats=True), axis, keepdims, name)
    return (found, sign(exp(found))) if return_sign else found


def _weighted(x, b, axis, keepdims, return_sign, name):
    """With factors. What is taken off first and added again counts nothing in a gradient."""
    x, b = promoted(x, b, floats=True)
    absent = equal(b, 0)
    x = add(x, zeros_like(b))
    x = where(absent, np.array(-math.inf, x.dtype), x)
    top = stop_gradient(max(x, axis, True))
    top = where(less(abs(top), math.inf), top, zeros_like(top))
    parts = where(absent, 0.0, multiply(b, exp(subtract(x, top))))
    total = sum(parts, axis, keepdims)
    top = top if keepdims else sum(top, axis)
    if return_sign:
        return add(log(abs(total)), top, name=name), sign(total)
    return add(log(total), top, name=name)


def _evaluate_softmax(x, *, axis):
    parts = np.exp(_shifted(x, axis)[0])
    return narrow(parts / np.sum(parts, axis=axis, keepdims=True), x.dtype)


def _softmax_gradient(op, dy):
    y, axis = op.outputs[0], op.attrs["axis"]
    return [y * (dy - sum(dy * y, axis, keepdims=True))]


def _emit_softmax(code, op) -> None:
    """The items are stored where the result is to be, and then divided."""
    parts, result = _Exponentials(code, op), op.outputs[0]
    if result in code.destinations:
        code.destinations[parts.items] = code.destinations.pop(result)
    with code.holding(parts.items):
        parts.add_up(parts.items)
        if parts.kept:
            code.value(parts.total)
            code.destinations[result] = lambda dimensions, stays=False: code.values[parts.items]
    parts.step(operator.truediv, parts.items, parts.total, result=result)


SOFTMAX = define("Softmax", keeping(), _evaluate_softmax, _softmax_gradient, emit=_emit_softmax)


@stands_for("scipy.special.softmax", numpy=2)
def _softmax_of_scipy(x, axis=None):
    return softmax(x, axis)


@stands_for("scipy.special.log_softmax", numpy=2)
def _log_softmax_of_scipy(x, axis=None):
    return log_softmax(x, axis)


@exported
def softmax(x: ArrayLike, axis: Axis = -1, *, name: str | None = None) -> Array:
    """``exp(x) / sum(exp(x))`` along axes, without overflow, as ``scipy.special.softmax``.

    Parameters
    ----------
    x : array-like or Tensor
        Real numbers. Integers and booleans become float64.
    axis : int, tuple of int or None, default -1
        The axes along which the result sums to 1; None is all axes.

    Returns
    -------
    Tensor or numpy.ndarray
        Of the shape and dtype of ``x``; float64 for integers and booleans.

    Raises
    ------
    InvalidArgumentError
        For an axis that ``x`` does not have, and for complex numbers.

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


def _emit_log_softmax(code, op) -> None:
    """Exponentials are not stored."""
    parts = _Exponentials(code, op)
    parts.add_up(finish=calling("log"))
    parts.step(
        lambda x, top, total: x - top - total, parts.x, parts.top, parts.total, result=op.outputs[0]
    )


LOG_SOFTMAX = define(
    "LogSoftmax",
    keeping(),
    _evaluate_log_softmax,
    _log_softmax_gradient,
    emit=_emit_log_softmax,
)


@exported
def log_softmax(x: ArrayLike, axis: Axis = -1, *, name: str | None = None) -> Array:
    """Logarithm of `nbta.softmax`, accurate for small values, as ``scipy.special.log_softmax``.

    Parameters
    ----------
    x, axis
        As for `nbta.softmax`.

    Returns
    -------
    Tensor or numpy.ndarray
        Of the shape and dtype of ``x``; float64 for integers and booleans.

    Raises
    ------
    InvalidArgumentError
        For an axis that ``x`` does not have, and for complex numbers.

    Examples
    --------
    >>> nbta.log_softmax([0.0, 1000.0])
    array([-1000.,     0.])
    """
    x = operand(x, floats=True)
    return apply(LOG_SOFTMAX, [x], axis_attrs(x, axis), name)
