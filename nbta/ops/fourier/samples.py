"""Functions given by their values at points or by coefficients; rows that meet each other."""

from __future__ import annotations

import builtins
import math
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from nbta import shapes
from nbta.codegen.values import NUMBERS, typed
from nbta.codegen.windows import added, held
from nbta.errors import invalid
from nbta.graph.operation import Spec, Tensor
from nbta.loops import assign, call, do, over
from nbta.ops.axes.reductions import sum as sum_
from nbta.ops.axes.sorting import argsort, searchsorted
from nbta.ops.core.arithmetic import (
    clip,
    emit_product,
    equal,
    greater,
    less,
    logical_not,
    logical_or,
    mod,
    real,
    where,
)
from nbta.ops.core.axis_arguments import integers, numbers, one_axis, operand
from nbta.ops.core.checks import checked
from nbta.ops.core.dispatch import data_spec, exported
from nbta.ops.core.elementwise import conjugate, narrow, promoted, widened
from nbta.ops.core.filling import ones_like, zeros, zeros_like
from nbta.ops.core.shaping import cast, named, reshape, shape_of
from nbta.ops.core.strong_zeros import define_product, sum_of_products
from nbta.ops.elementary.basic import sqrt
from nbta.ops.indexing.arranging import ranked
from nbta.ops.indexing.gathering import along, take
from nbta.ops.indexing.items import getitem
from nbta.ops.indexing.joining import concatenate, flip, rows_of, stack
from nbta.ops.linalg.spectra import lstsq

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nbta.typing import Array, ArrayLike, Axis

__all__ = ["convolve", "correlate", "gradient", "interp", "polyfit", "polyval", "vander"]


@exported(numpy=3)
def interp(
    x: ArrayLike,
    xp: ArrayLike,
    fp: ArrayLike,
    left: ArrayLike | None = None,
    right: ArrayLike | None = None,
    period: float | None = None,
    *,
    name: str | None = None,
) -> Array:
    """What a function is at some points that is known at others and straight between them.

    Parameters
    ----------
    x : array-like or Tensor
        Where to evaluate it.
    xp, fp : array-like or Tensor
        Ascending points, which are not checked, and the values there; of rank 1 and one length.
    left, right : scalar or Tensor, optional
        The values beyond the points; by default the first and the last of ``fp``.
    period : float, optional
        After which the function comes again; ``xp`` need not be ascending then.

    Returns
    -------
    Tensor or numpy.ndarray
        Of the shape of ``x``, of float64 or complex128. Gradients pass to all three; at a point the
        slope is that after it, at the last one that before it.

    Raises
    ------
    InvalidArgumentError
        For points and values that are not of rank 1 and one length, for no points, and a period
        of 0.

    Examples
    --------
    >>> nbta.interp([0.5, 1.5, 3.0], [0.0, 1.0, 2.0], [0.0, 10.0, 30.0])
    array([ 5., 20., 30.])
    """
    x, xp = (cast(operand(value), np.float64) for value in (x, xp))
    fp = operand(fp)
    fp = cast(fp, np.complex128 if fp.dtype.kind == "c" else np.float64)
    _check_points(xp, fp)
    if period is not None:
        x, xp, fp, left, right = _around(x, xp, fp, period)
    before = take(fp, 0) if left is None else left
    after = take(fp, -1) if right is None else right
    first, last = take(xp, 0), take(xp, -1)
    if data_spec(xp).shape == (1,):  # NaN meets it, too
        return where(less(x, first), before, where(greater(x, last), after, take(fp, 0)), name=name)
    with np.errstate(all="ignore"):  # lines that nobody takes, between infinite values
        inner = _between(x, xp, fp)
    found = where(less(x, first), before, where(greater(x, last), after, inner))
    return named(found, name)


def _check_points(xp, fp):
    have, want = data_spec(xp).shape, data_spec(fp).shape
    for what, shape in (("xp", have), ("fp", want)):
        if shape is not None and (len(shape) != 1 or shape == (0,)):
            message = f"{what}: shape {shapes.text(shape)}; give one row, of one point or more"
            raise invalid("shape", message)
    if have is not None and want is not None and not shapes.compatible(have, want):
        message = f"xp has shape {shapes.text(have)} and fp {shapes.text(want)}; make them one"
        raise invalid("shape", message)


def _around(x, xp, fp, period):
    """Points in one period, with the last one before them and the first one after."""
    period = builtins.abs(period) if not isinstance(period, Tensor) else period
    if not isinstance(period, Tensor) and period == 0:
        raise invalid("value", "period: it must not be 0")
    x, xp = mod(x, period), mod(xp, period)
    order = argsort(xp)
    xp, fp = take(xp, order), take(fp, order)
    xp = concatenate([xp[-1:] - period, xp, xp[:1] + period])
    return x, xp, concatenate([fp[-1:], fp, fp[:1]]), None, None


def _between(x, xp, fp):
    """On the line after the last point that is not greater, or on the last of all lines."""
    count = xp.shape[0]
    place = searchsorted(xp, x, "right")
    low = clip(place - 1, 0, None)
    high = clip(low + 1, None, count - 1)
    low = where(equal(place, count), clip(count - 2, 0, None), low)
    x0, x1, f0, f1 = take(xp, low), take(xp, high), take(fp, low), take(fp, high)
    width = x1 - x0
    slope = (f1 - f0) / where(equal(width, 0), 1.0, width)
    near, far = slope * (x - x0) + f0, slope * (x - x1) + f1
    at_last = equal(x, take(xp, -1))
    found = where(at_last, far, near)
    # Slopes that are not finite: what NumPy takes there, one after the other.
    for value, holds in (
        (f1, at_last), (f0, equal(x, x0)), (far, equal(far, far)), (f0, equal(f0, f1)),
    ):  # fmt: skip
        found = where(logical_or(equal(found, found), logical_not(holds)), found, value)
    return where(equal(x, x), found, x + f0)


@exported(numpy=2)
def polyval(p: Sequence[ArrayLike] | Array, x: ArrayLike, *, name: str | None = None) -> Array:
    """Value of a polynomial at some points, as `numpy.polyval`.

    Parameters
    ----------
    p : sequence of scalar or Tensor, or Tensor of rank 1
        Coefficients, from the highest power to the constant. A traced function is traced for their
        number.
    x : array-like or Tensor
        The points, of any shape.

    Returns
    -------
    Tensor or numpy.ndarray
        Of the shape of ``x``, in the promoted dtype.

    Raises
    ------
    InvalidArgumentError
        For an unknown number of coefficients.

    Examples
    --------
    >>> nbta.polyval([3, 0, 1], 5)
    np.int64(76)
    """
    x = operand(x)
    found = zeros_like(x)
    for coefficient in rows_of(p if isinstance(p, list | tuple) else operand(p)):
        found = found * x + operand(coefficient)
    return named(found, name)


@exported(numpy=3)
def vander(
    x: ArrayLike, n: int | None = None, increasing: bool = False, *, name: str | None = None
) -> Array:
    """Vandermonde matrix: the powers of each element of a vector as a row, as `numpy.vander`.

    Parameters
    ----------
    x : array-like or Tensor
        A vector.
    n : int, optional
        Number of columns; by default the length of ``x``, for which a traced function is traced.
    increasing : bool, default False
        Whether powers ascend from left to right, instead of descending.

    Returns
    -------
    Tensor or numpy.ndarray
        A matrix of as many rows as ``x`` has elements.

    Raises
    ------
    InvalidArgumentError
        For another rank, and for a negative number.

    Examples
    --------
    >>> nbta.vander([2, 3], 3)
    array([[4, 2, 1],
           [9, 3, 1]])
    """
    x = operand(x)
    if x.ndim != 1:
        raise invalid("rank", f"vander: x has rank {x.ndim}; give one row")
    (count,) = integers((int(x.shape[0]) if n is None else n,))
    if count < 0:
        raise invalid("value", f"n: {count} is negative")
    x = cast(x, np.promote_types(x.dtype, int))  # NumPy's rule
    columns = [ones_like(x)]
    while len(columns) < count:
        columns.append(columns[-1] * x)
    columns = columns[:count] if increasing else columns[:count][::-1]
    if not columns:
        return zeros((x.shape[0], 0), x.dtype, name=name)
    return stack(columns, 1, name=name)


@exported(numpy=3)
def polyfit(
    x: ArrayLike,
    y: ArrayLike,
    deg: int,
    rcond: float | None = None,
    *,
    w: ArrayLike | None = None,
    name: str | None = None,
) -> Array:
    """The coefficients, from the highest power on, of a polynomial near some points.

    Parameters
    ----------
    x : array-like or Tensor
        Of rank 1.
    y : array-like or Tensor
        The values there; of a matrix each column has its own polynomial.
    deg : int
        The highest power.
    rcond : float, optional
        As in `nbta.lstsq`; by default the number of points times the precision.
    w : array-like or Tensor, optional
        What differences are multiplied by before their squares are added.

    Returns
    -------
    Tensor or numpy.ndarray
        Of float64 or complex128. Gradients pass to ``x``, ``y`` and ``w``.

    Raises
    ------
    InvalidArgumentError
        For a negative degree, another rank, and no points.

    Examples
    --------
    >>> nbta.polyfit([0.0, 1.0, 2.0], [1.0, 3.0, 7.0], 2).round(12)
    array([1., 1., 1.])
    """
    (deg,), x, y = integers((deg,)), operand(x), operand(y)
    if deg < 0:
        raise invalid("value", f"deg: {deg} is negative")
    if x.ndim != 1 or y.ndim not in (1, 2) or data_spec(x).shape == (0,):
        raise invalid("rank", "polyfit: give a row of points, and one or more rows of values")
    precision = np.finfo(x.dtype if x.dtype.kind in "fc" else np.float64).eps
    x, y = (cast(v, np.complex128 if v.dtype.kind == "c" else np.float64) for v in (x, y))
    count = data_spec(x).shape[0]
    if type(count) is not int:
        count = shape_of(x)[0]
        x = checked(x, greater(count, 0), "polyfit: there are no points")
    rows = vander(x, deg + 1)
    if w is not None:
        weights = reshape(cast(operand(w), np.float64), (-1, 1))
        rows, y = rows * weights, y * (weights if y.ndim == 2 else reshape(weights, (-1,)))
    scale = sqrt(sum_(real(rows * conjugate(rows)), 0))
    cut = count * precision if rcond is None else rcond
    found = lstsq(rows / scale, y, cut)[0]
    return named(found / (reshape(scale, (-1, 1)) if y.ndim == 2 else scale), name)


# Differences.


@exported(numpy=math.inf)
def gradient(
    f: ArrayLike,
    *varargs: ArrayLike,
    axis: Axis = None,
    edge_order: Literal[1, 2] = 1,
    name: str | None = None,
) -> Array | tuple[Array, ...]:
    """Slopes of a function that is given by its values on a grid: of two neighbours each.

    Parameters
    ----------
    f : array-like or Tensor
    *varargs : scalar, array-like or Tensor
        The distance of neighbours, one for all axes or for each; a row is the points themselves.
    axis : int or tuple of int, optional
        By default all axes.
    edge_order : {1, 2}, optional
        Of the slopes at the ends: of two neighbours, or of a parabola through three.

    Returns
    -------
    Tensor or numpy.ndarray, or a tuple of them
        One for each axis, of the shape of ``f``.

    Raises
    ------
    InvalidArgumentError
        For fewer items than ``edge_order + 1``, other than a distance for each axis, points of
        another length than the axis, and another order.

    Examples
    --------
    >>> nbta.gradient([1.0, 2.0, 4.0, 7.0])
    array([1. , 1.5, 2.5, 3. ])
    """
    (f,) = promoted(ranked(f), floats=True)
    axes = range(f.ndim) if axis is None else _in_order(f, axis)
    if edge_order not in (1, 2):
        raise invalid("value", f"edge_order must be 1 or 2, not {edge_order!r}")
    if len(varargs) not in (0, 1, len(axes)):
        message = (
            f"gradient: there are {len(varargs)} distances for {len(axes)} axes; give one each"
        )
        raise invalid("value", message)
    distances = varargs or (1.0,)
    distances = distances * len(axes) if len(distances) == 1 else distances
    found = tuple(_slopes(f, one, distance, edge_order, name)
                  for one, distance in zip(axes, distances, strict=True))  # fmt: skip
    return found[0] if len(found) == 1 else found


def _in_order(x, axis):
    axes = integers(axis if isinstance(axis, list | tuple) else (axis,))
    found = [one_axis(x, one) for one in axes]
    if len(set(found)) < len(found):
        raise invalid("axis", f"axis: {tuple(axes)} names an axis twice; give each once")
    return found


def _slopes(f, axis, distance, edge_order, name):
    dimension = data_spec(f).shape[axis]
    if type(dimension) is int and dimension < edge_order + 1:
        message = f"gradient: axis {axis} has {dimension} items; give {edge_order + 1} or more"
        raise invalid("shape", message)
    distance = distance if isinstance(distance, float | int) else operand(distance)
    if getattr(distance, "ndim", 0) > 1:
        raise invalid("rank", "gradient: a distance is a number, or points in one row")
    rule = _uneven if getattr(distance, "ndim", 0) else _even
    return concatenate(rule(f, axis, distance, edge_order), axis, name=name)


def _part(f, axis, start, stop=None):
    return getitem(f, along(axis, builtins.slice(start, stop)))


def _row(f, axis, place):
    """One item of each row, as a row of one."""
    return _part(f, axis, place, place + 1 or None)


def _even(f, axis, distance, edge_order):
    """Of neighbours that are as far from each other."""
    middle = (_part(f, axis, 2) - _part(f, axis, None, -2)) / (2.0 * distance)
    if edge_order == 1:
        first = (_row(f, axis, 1) - _row(f, axis, 0)) / distance
        return first, middle, (_row(f, axis, -1) - _row(f, axis, -2)) / distance
    one, two, three = (_row(f, axis, k) for k in range(3))
    first = (-1.5 / distance) * one + (2.0 / distance) * two + (-0.5 / distance) * three
    one, two, three = (_row(f, axis, -k) for k in (3, 2, 1))
    last = (0.5 / distance) * one + (-2.0 / distance) * two + (1.5 / distance) * three
    return first, middle, last


def _uneven(f, axis, points, edge_order):
    """Of neighbours at points: weights are those of the parabola through three of them."""
    (points,) = promoted(points, floats=True)
    have, want = data_spec(points).shape[0], data_spec(f).shape[axis]
    if type(have) is type(want) is int and have != want:
        message = f"gradient: {have} points for an axis of {want} items; give one for each"
        raise invalid("shape", message)
    steps = points[1:] - points[:-1]

    def lying(row):
        return reshape(row, [-1 if k == axis else 1 for k in range(f.ndim)])

    before, after = lying(steps[:-1]), lying(steps[1:])
    middle = (
        -after / (before * (before + after)) * _part(f, axis, None, -2)
        + (after - before) / (before * after) * _part(f, axis, 1, -1)
        + before / (after * (before + after)) * _part(f, axis, 2)
    )
    if edge_order == 1:
        first = (_row(f, axis, 1) - _row(f, axis, 0)) / steps[0]
        return first, middle, (_row(f, axis, -1) - _row(f, axis, -2)) / steps[-1]
    first = _parabola([_row(f, axis, k) for k in range(3)], steps[0], steps[1])
    last = _parabola([_row(f, axis, -k) for k in (1, 2, 3)], -steps[-1], -steps[-2])
    return first, middle, last


def _parabola(items, near, far):
    """The slope at the first of three items of the parabola through them."""
    one, two, three = items
    return (
        -(2.0 * near + far) / (near * (near + far)) * one
        + (near + far) / (near * far) * two
        - near / (far * (near + far)) * three
    )


# Rows that meet each other at every distance.


def _infer_correlate(a, v, before, after, *, dimension):
    numbers(a)
    for spec in (a, v):
        if spec.shape is not None and len(spec.shape) != 1:
            message = f"a row is of rank 1, and this one has shape {shapes.text(spec.shape)}"
            raise invalid("rank", message)
    return Spec(a.dtype, (dimension,))


def _evaluate_correlate(a, v, before, after, *, dimension, multiplied=None):
    first, count = len(v) - 1 - before, len(a) - len(v) + 1 + before + after
    if multiplied is None:
        found = np.correlate(widened(a), np.conj(widened(v)), "full")
    else:
        rows = sliding_window_view(np.pad(widened(a), len(v) - 1), len(v))
        found = multiplied(rows, widened(v))
    return narrow(found[int(first) : int(first + count)], a.dtype)


def _correlate_gradient(op, dy):
    a, v, before, after = op.inputs
    rest = getitem(shape_of(v), 0) - 1
    da = [dy, flip(conjugate(v), 0), rest - before, rest - after]
    dv = [conjugate(a), dy, before, after]
    lengths = [x.spec.shape[0] if x.spec.shape is not None else None for x in (a, v)]
    return [
        sum_of_products(CORRELATE, inputs, {"dimension": dimension})
        for inputs, dimension in zip((da, dv), lengths, strict=True)
    ] + [None, None]


def _emit_correlate(code, op) -> None:
    """One pass over the results for each item of the second row, so that they are vectors."""
    if any(tensor.dtype.char not in NUMBERS for tensor in op.inputs[:2]):
        return code.call_python(op)
    a, v = map(code.value, op.inputs[:2])
    before, after = (code.integer(tensor) for tensor in op.inputs[2:])
    dtype, (long,), (short,) = op.outputs[0].dtype, a.dimensions, v.dimensions
    count = held(code, code.variable(long - short + 1 + before + after),
                 op.outputs[0].spec.shape[0])  # fmt: skip
    code.fail_if(count < 0)
    block = code.result(op, dimensions=(count,))
    i, j, item, place = map(code.name, "ijxk")
    code.add(do("clear", block.base.name, block.offset, count))
    with code.nest(over(j, short)):
        code.add(assign(item, v.at(j)), assign(place, j - before))
        first, end = call("max", 0, 0 - place), call("min", count, long - place)
        with code.nest(over(i, first, end)):
            at, met = block.at(i), a.at(i + place)
            term = emit_product(op, (met, item), op.attrs.get("adjoints", (False, False)))
            code.add(assign(at, typed(added(at, term, dtype), dtype)))
    return None


CORRELATE = define_product(
    "Correlate",
    _infer_correlate,
    _evaluate_correlate,
    _correlate_gradient,
    emit=_emit_correlate,
)


def _met(a, v, mode):
    """Sums of products of two rows, of which the first is the longer one."""
    rest = v.shape[0] - 1
    before, after = {"valid": (0, 0), "full": (rest, rest)}.get(mode, (rest - rest // 2, rest // 2))
    lengths = [data_spec(x).shape[0] for x in (a, v)]
    known = all(type(length) is int for length in lengths)
    dimension = lengths[0] - rest + before + after if known else None
    if mode == "same":
        dimension = lengths[0]
    return sum_of_products(CORRELATE, [a, v, before, after], {"dimension": dimension})


def _rows(a, v, mode):
    """Both rows in one dtype, the longer one first, and whether they were the other way round."""
    if mode not in ("full", "same", "valid"):
        raise invalid("value", f'mode must be "full", "same" or "valid", not {mode!r}')
    a, v = promoted(*(reshape(x, (-1,)) if not x.ndim else x for x in (ranked(a), ranked(v))))
    for x in (a, v):
        if data_spec(x).shape == (0,):
            raise invalid("empty", "a row has no items; give at least one")
    turned = bool(a.shape[0] < v.shape[0])
    return (v, a, True) if turned else (a, v, False)


@exported(numpy=3)
def convolve(
    a: ArrayLike,
    v: ArrayLike,
    mode: Literal["full", "same", "valid"] = "full",
    *,
    name: str | None = None,
) -> Array:
    """Discrete convolution of two vectors, as `numpy.convolve`.

    Parameters
    ----------
    a, v : array-like or Tensor
        Vectors. A traced function is traced for which of them is longer.
    mode : {"full", "same", "valid"}, default "full"
        Which part of the result: every overlap, as many as the longer vector has elements, or the
        complete overlaps.

    Returns
    -------
    Tensor or numpy.ndarray
        A vector in the promoted dtype.

    Raises
    ------
    InvalidArgumentError
        For another rank, an empty vector, and another mode.

    Examples
    --------
    >>> nbta.convolve([1, 2, 3], [0, 1, 0.5])
    array([0. , 1. , 2.5, 4. , 1.5])
    """
    a, v, _ = _rows(a, v, mode)
    return named(_met(a, flip(v, 0), mode), name=name)


@exported(numpy=3)
def correlate(
    a: ArrayLike,
    v: ArrayLike,
    mode: Literal["full", "same", "valid"] = "valid",
    *,
    name: str | None = None,
) -> Array:
    """Cross-correlation of two vectors, as `numpy.correlate`; complex ``v`` is conjugated.

    Parameters
    ----------
    a, v, mode
        As for `nbta.convolve`; the mode is "valid" by default.

    Returns
    -------
    Tensor or numpy.ndarray
        A vector in the promoted dtype.

    Raises
    ------
    InvalidArgumentError
        As `nbta.convolve`.

    Examples
    --------
    >>> nbta.correlate([1, 2, 3], [0, 1, 0.5])
    array([3.5])
    >>> nbta.correlate([1, 2, 3], [0, 1, 0.5], "full")
    array([0.5, 2. , 3.5, 3. , 0. ])
    """
    a, v, turned = _rows(a, v, mode)
    if turned:  # the distances are the other way round then
        return flip(_met(conjugate(a), v, mode), 0, name=name)
    return named(_met(a, conjugate(v), mode), name=name)
