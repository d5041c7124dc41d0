"""Differences of neighbours along an axis, and integrals by trapezia."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING

import numpy as np

from nbta.errors import invalid
from nbta.graph.operation import Tensor
from nbta.ops.axes.reductions import cumprod, cumsum, sum
from nbta.ops.core.arithmetic import (
    add,
    divide,
    equal,
    greater,
    less,
    logical_and,
    mod,
    multiply,
    not_equal,
    subtract,
    where,
)
from nbta.ops.core.axis_arguments import one_axis, operand
from nbta.ops.core.dispatch import as_array, exported, stands_for
from nbta.ops.core.elementwise import promoted
from nbta.ops.core.shaping import broadcast_to, cast, named, reshape, shape_of, stop_gradient
from nbta.ops.elementary.basic import abs
from nbta.ops.indexing.items import getitem
from nbta.ops.indexing.joining import concatenate

if TYPE_CHECKING:
    from nbta.typing import Array, ArrayLike


def _rank(x):
    return x.spec.rank if isinstance(x, Tensor) else x.ndim


def _along(axis, part):
    """The key of a part along an axis, which may be counted from the last."""
    if axis >= 0:
        return (slice(None),) * axis + (part,)
    return (..., part) + (slice(None),) * (-1 - axis)


def _neighbours(x, axis):
    """All but the last, and all but the first along an axis."""
    return (getitem(x, _along(axis, part)) for part in (np.s_[:-1], np.s_[1:]))


def _edge(x, edge, axis):
    """What is put before or after a tensor: one number stands for as many as fit."""
    edge = edge if isinstance(edge, Tensor) else as_array(edge)
    if _rank(edge) != 0:
        return edge
    first = getitem(x, _along(axis, np.s_[:1]))
    return broadcast_to(edge, shape_of(first) if isinstance(first, Tensor) else first.shape)


@exported(numpy=3)
def diff(
    x: ArrayLike,
    n: int = 1,
    axis: int = -1,
    prepend: ArrayLike | None = None,
    append: ArrayLike | None = None,
    *,
    name: str | None = None,
) -> Array:
    """Differences between neighbouring elements along an axis, as `numpy.diff`.

    Parameters
    ----------
    x : array-like or Tensor
        Numbers, or booleans, of which the result says whether neighbours differ.
    n : int, default 1
        Number of times to take differences.
    axis : int, default -1
        Axis of the neighbours.
    prepend, append : array-like or Tensor, optional
        Values to put before and after ``x`` along the axis first: a scalar, or of the rank of
        ``x``.

    Returns
    -------
    Tensor or numpy.ndarray
        Of the shape of ``x``, with an axis that is shorter by ``n`` (and longer by the added
        values).

    Raises
    ------
    InvalidArgumentError
        For a negative ``n``, for a scalar, and for an axis that ``x`` does not have.

    Examples
    --------
    >>> nbta.diff([1, 4, 9, 16])
    array([3, 5, 7])
    """
    x, n = operand(x), operator.index(n)
    if n < 0:
        raise invalid("value", f"n must be 0 or more, not {n}")
    axis = one_axis(x, axis)
    if n == 0:
        return named(x, name=name)  # without what is put before and after
    parts = [None if edge is None else _edge(x, edge, axis) for edge in (prepend, append)]
    if any(part is not None for part in parts):
        parts = promoted(*(part for part in (parts[0], x, parts[1]) if part is not None))
        x = concatenate(parts, axis)
    for _ in range(n):
        before, after = _neighbours(x, axis)
        x = not_equal(after, before) if x.dtype.kind == "b" else subtract(after, before)
    return x


@exported(numpy=3)
def ediff1d(
    x: ArrayLike,
    to_end: ArrayLike | None = None,
    to_begin: ArrayLike | None = None,
    *,
    name: str | None = None,
) -> Array:
    """Differences between neighbouring elements of a flattened tensor, as `numpy.ediff1d`.

    Parameters
    ----------
    x : array-like or Tensor
        Numbers, of any shape.
    to_end, to_begin : array-like or Tensor, optional
        Values to put after and before the differences.

    Returns
    -------
    Tensor or numpy.ndarray
        A vector in the dtype of ``x``.

    Examples
    --------
    >>> nbta.ediff1d([1, 4, 9], to_begin=0)
    array([0, 3, 5])
    """
    found = diff(reshape(operand(x), -1))
    edges = [
        None if e is None else reshape(cast(operand(e), found.dtype), -1)
        for e in (to_begin, to_end)
    ]
    parts = [part for part in (edges[0], found, edges[1]) if part is not None]
    return found if len(parts) == 1 else concatenate(parts, 0, name=name)


@exported(numpy=4)
def trapezoid(
    y: ArrayLike,
    x: ArrayLike | None = None,
    dx: ArrayLike = 1.0,
    axis: int = -1,
    *,
    name: str | None = None,
) -> Array:
    """Integral along an axis by the trapezoidal rule, as `numpy.trapezoid`.

    Parameters
    ----------
    y : array-like or Tensor
        Values of the function.
    x : array-like or Tensor, optional
        Points of the values: a vector, or of a shape that broadcasts with ``y``.
    dx : scalar or Tensor, default 1.0
        Distance between neighbouring points, if ``x`` is not given.
    axis : int, default -1
        Axis to integrate along.

    Returns
    -------
    Tensor or numpy.ndarray
        Of the shape of ``y`` without the axis.

    Raises
    ------
    InvalidArgumentError
        For a scalar, and for an axis that ``y`` does not have.

    Examples
    --------
    >>> nbta.trapezoid([1.0, 2.0, 3.0], dx=2.0)
    np.float64(8.0)
    """
    y = operand(y)
    axis = one_axis(y, axis)
    before, after = _neighbours(y, axis)
    if x is None:
        steps = dx
    elif _rank(x := operand(x)) == 1:
        after_axis = (0 if axis < 0 else _known_rank(y)) - 1 - axis
        steps = getitem(diff(x), (slice(None), *[None] * after_axis))
    else:
        steps = diff(x, axis=axis)
    return sum(divide(multiply(steps, add(after, before)), 2.0), axis, name=name)


stands_for("scipy.integrate.trapezoid", numpy=4)(trapezoid)


def _known_rank(y):
    if _rank(y) is None:
        raise invalid("rank", "trapezoid: give a tensor of known rank, or a negative axis")
    return _rank(y)


def _cumulative(scan, initial):
    """A scan by its name in the array API's standard, which flattens nothing."""

    def scanned(x, axis=None, dtype=None, include_initial=False):
        x = operand(x)
        if axis is None and _rank(x) != 1:
            raise invalid("axis", "axis may be left out only for tensors of rank 1; give one")
        axis = one_axis(x, 0 if axis is None else axis)
        found = scan(x, axis, dtype=dtype)
        if not include_initial:
            return found
        lengths = shape_of(found) if isinstance(found, Tensor) else found.shape
        one = [1 if k == axis % len(lengths) else n for k, n in enumerate(lengths)]
        return concatenate([broadcast_to(np.array(initial, found.dtype), one), found], axis)

    return scanned


stands_for("cumulative_sum", numpy=1)(_cumulative(cumsum, 0))
stands_for("cumulative_prod", numpy=1)(_cumulative(cumprod, 1))


@stands_for("unwrap", numpy=3)
def _unwrap(p, discont=None, axis=-1, *, period=2 * np.pi):
    """NumPy's: what jumps by more than half a period goes on in the next one."""
    if isinstance(period, Tensor):
        raise invalid("value", "unwrap: period is known only in a run; give a number")
    p = operand(p)
    axis, steps = one_axis(p, axis), diff(p, axis=axis)
    dtype = np.result_type(steps.dtype, period)
    whole = dtype.kind in "iu"
    half = period // 2 if whole else period / 2
    wrapped = subtract(mod(add(steps, half), period), half)
    if not whole or period % 2 == 0:
        at_end = logical_and(equal(wrapped, -half), greater(steps, 0))
        wrapped = where(at_end, half, wrapped)
    small = less(abs(steps), period / 2 if discont is None else discont)
    jumps = stop_gradient(where(small, 0, subtract(wrapped, steps)))  # of whole periods
    first, rest = (getitem(p, _along(axis, part)) for part in (np.s_[:1], np.s_[1:]))
    rest = cast(add(rest, cumsum(jumps, axis)), dtype)
    return concatenate([cast(first, dtype), rest], axis)
