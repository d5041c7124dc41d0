"""What is in the middle of sorted elements and at other fractions, also with NaN left out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nbta.errors import UnimplementedError, invalid
from nbta.graph.operation import Tensor
from nbta.ops.axes.places import take_along_axis
from nbta.ops.axes.reductions import cumsum, mean_dtype, sum
from nbta.ops.axes.sorting import MOST, argsort, selected_places, sort
from nbta.ops.axes.truths import all
from nbta.ops.core.arithmetic import (
    add,
    divide,
    equal,
    greater,
    greater_equal,
    less,
    logical_and,
    logical_not,
    maximum,
    minimum,
    mod,
    multiply,
    subtract,
    where,
)
from nbta.ops.core.axis_arguments import axis_attrs, operand
from nbta.ops.core.checks import checked
from nbta.ops.core.descriptions import QUANTILES
from nbta.ops.core.dispatch import as_array, data_spec, exported
from nbta.ops.core.elementwise import wide
from nbta.ops.core.shaping import broadcast_to, cast, reshape, shape_of
from nbta.ops.elementary.basic import floor, isfinite
from nbta.ops.elementary.rounding import ceil, isnan, rint
from nbta.ops.indexing.arranging import moveaxis, ranked
from nbta.ops.indexing.gathering import take
from nbta.ops.indexing.joining import concatenate, expand_dims, stack
from nbta.ops.indexing.transposing import transpose
from nbta.ops.statistics.moments import dimensions_along

if TYPE_CHECKING:
    from nbta.typing import Array, ArrayLike, Axis


def _in_rows(x, axis):
    """The elements along axes as the last axis, and the axes from the first on."""
    rank = x.spec.rank if isinstance(x, Tensor) else x.ndim
    if axis is None:
        return reshape(x, (-1,)), None
    if rank is None:
        raise invalid("rank", "axis: quantiles along one need a tensor of known rank")
    axes = axis_attrs(x, axis)["axis"]
    others = tuple(one for one in range(rank) if one not in axes)
    if (*others, *axes) != tuple(range(rank)):
        x = transpose(x, (*others, *axes))
    if len(axes) != 1:
        lengths = shape_of(x) if isinstance(x, Tensor) else np.array(x.shape)
        x = reshape(x, [*(lengths[one] for one in range(len(others))), -1])
    return x, axes


def _kept(found, x, axes, keepdims, name):
    """A result with the lost axes again where they are to stay, after those of the fractions."""
    if keepdims:
        rank = x.spec.rank if isinstance(x, Tensor) else x.ndim
        if rank is None:
            raise invalid("rank", "keepdims: it needs a tensor of known rank")
        axes = tuple(range(rank)) if axes is None else axes
        more = (found.spec.rank if isinstance(found, Tensor) else np.ndim(found)) - rank
        found = expand_dims(found, tuple(one + more + len(axes) for one in axes)) if axes else found
    return found if name is None else cast(found, found.dtype, name=name)


def _between(low, high, part):
    """As NumPy goes from one to the other: from the nearer end, so that both ends are met."""
    apart = subtract(high, low)
    up, down = add(low, multiply(apart, part)), subtract(high, multiply(apart, subtract(1, part)))
    return where(greater_equal(part, 0.5), down, up)


# Where methods look among so many sorted elements: after which one, and which part of the way to
# the next one they go from there, None for those that take one element. What has jumps compares
# products themselves, as compiled code may put a product and a sum together.


def _of_last(n, q):
    return multiply(q, maximum(subtract(n, 1), 0))


def _straight(at):
    below = floor(at)
    return below, subtract(at, below)


def _half_way(at):
    below = floor(at)
    return below, where(equal(at, below), *(np.array(v, at.dtype) for v in (0, 0.5)))


def _estimate(alpha, beta):
    """See R. J. Hyndman and Y. Fan, The American Statistician 50, 1996."""
    return lambda n, q: _straight(
        subtract(add(multiply(n, q), add(alpha, q * (1 - alpha - beta))), 1)
    )


def _averaged(n, q):
    at = multiply(n, q)
    above = floor(at)
    part = where(equal(at, above), *(np.array(v, at.dtype) for v in (0.5, 1)))
    return subtract(above, 1), part


def _inverted(n, q):
    at = multiply(n, q)
    above = floor(at)
    return where(equal(at, above), subtract(above, 1), above), None


def _closest(n, q):
    """The element that is nearest, and of two the one with an even number, counted from 1."""
    halves = multiply(multiply(n, q), 2)
    whole = floor(halves)
    below = floor(multiply(subtract(whole, 3), 0.5))
    between = logical_and(equal(halves, whole), equal(mod(whole, 2), 1))
    stays = logical_and(between, equal(mod(below, 2), 1))
    return where(stays, below, add(below, 1)), None


_METHODS = {
    "linear": lambda n, q: _straight(_of_last(n, q)),
    "lower": lambda n, q: (floor(_of_last(n, q)), None),
    "higher": lambda n, q: (ceil(_of_last(n, q)), None),
    "nearest": lambda n, q: (rint(_of_last(n, q)), None),
    "midpoint": lambda n, q: _half_way(_of_last(n, q)),
    "inverted_cdf": _inverted,
    "averaged_inverted_cdf": _averaged,
    "closest_observation": _closest,
    "interpolated_inverted_cdf": _estimate(0, 1),
    "hazen": _estimate(0.5, 0.5),
    "weibull": _estimate(0, 0),
    "median_unbiased": _estimate(1 / 3, 1 / 3),
    "normal_unbiased": _estimate(3 / 8, 3 / 8),
}
#: Those that take one element, and so leave integers what they are.
_CHOICES = {"lower", "higher", "nearest", "inverted_cdf", "closest_observation"}


def _check_method(method):
    if method not in _METHODS:
        known = ", ".join(map(repr, _METHODS))
        message = f"method: nbta has no quantiles by {method!r}; give one of {known}"
        raise UnimplementedError(message)


def _place(count, q, method, dtype):
    """Where a fraction of sorted elements is: the indices around it, and the way between."""
    count = cast(count, np.float64)
    whole, way = _METHODS[method](count if dtype == np.float64 else cast(count, dtype), q)
    last = cast(maximum(subtract(count, 1), 0), whole.dtype)
    below, above = (minimum(maximum(one, 0), last) for one in (whole, add(whole, 1)))
    return cast(below, np.int64), cast(above, np.int64), way


def _fractions(q, dtype, percent):
    """Fractions as an array or tensor; numbers of Python take the dtype of the elements."""
    weak = isinstance(q, int | float) and not isinstance(q, np.generic)
    if percent != 1:
        q = q / percent if weak else divide(q, percent)
    q = operand(q, floats=True) if isinstance(q, Tensor) else as_array(q)
    q = q if isinstance(q, Tensor) else q.astype(dtype if weak else np.result_type(q, np.float32))
    inside, message = (q >= 0) & (q <= 1), "q: fractions are from 0 to 1, percentages from 0 to 100"
    if isinstance(q, Tensor):
        return checked(q, all(inside), message)
    if not np.all(inside):
        raise invalid("value", message)
    return q


def _rank(q):
    return q.spec.rank if isinstance(q, Tensor) else np.ndim(q)


def _rows(x, axis, method="linear"):
    """Rows, of floats where there is something between two items; the dtype of the result."""
    _check_method(method)
    x = operand(x)
    if x.dtype.kind == "c":
        raise invalid("dtype", "complex numbers have no order; use real, imag or abs first")
    own = x.dtype if method in _CHOICES else mean_dtype(x.dtype)
    x = x if x.dtype == wide(own) else cast(x, wide(own))
    rows, axes = _in_rows(x, axis)
    return x, rows, axes, own


def _narrow(found, own):
    """A result of half precision again."""
    return found if own.itemsize != 2 else cast(found, own)


def _are_few(q):
    """Whether fractions are so few that items are selected, and rows not sorted."""
    count = 1 if _rank(q) == 0 else data_spec(q).shape[0]
    return type(count) is int and 0 < count <= MOST // 2


def _order(q):
    """Numbers of fractions in rising order, where that is known; and of each the place in it."""
    if _rank(q) == 0:
        return np.zeros(1, np.int64), 0
    order = np.arange(q.shape[0]) if isinstance(q, Tensor) else np.argsort(q, kind="stable")
    return order, np.argsort(order)


def _selected(rows, places):
    """The items of rows that a sort would bring to some places: in linear time."""
    return take_along_axis(rows, selected_places(rows, places), -1)


def _quantile(x, q, axis, method, keepdims, name, percent=1):
    x, rows, axes, own = _rows(x, axis, method)
    q = _fractions(q, mean_dtype(x.dtype), percent)
    if _rank(q) not in (0, 1):
        raise invalid("rank", "q: give one fraction or a vector of them")
    count = dimensions_along(rows, -1)
    below, above, way = _place(count, q, method, q.dtype)
    end = subtract(cast(count, np.int64), 1)  # where NaN is sorted to
    if _are_few(q):
        order, rank = _order(q)
        places = stack([below] if way is None else [below, above], -1)
        places = reshape(take(places, order, 0) if _rank(q) else places, (-1,))
        rows = _selected(rows, concatenate([places, reshape(end, (1,))]))
        below, above, end = rank, rank + 1, -1
        if way is not None:
            below, above = 2 * rank, 2 * rank + 1
    else:
        rows = sort(rows)
    along = -1
    if _rank(q):
        rows, along = transpose(rows, (rows.ndim - 1, *range(rows.ndim - 1))), 0
        way = None if way is None else reshape(way, (-1, *[1] * (rows.ndim - 1)))
    found = take(rows, below, along)
    if way is not None:
        found = _between(found, take(rows, above, along), way)
    if rows.dtype.kind == "f":
        last = take(rows, end, along)
        found = where(isnan(last), last, found)
    return _kept(_narrow(found, own), x, axes, keepdims, name)


def _nan_quantile(x, q, axis, method, keepdims, name, percent=1):
    """Row by row, with as many elements as are no NaN, which are sorted last."""
    x, rows, axes, own = _rows(x, axis, method)
    if x.dtype.kind in "biu":
        return _quantile(x, q, axes, method, keepdims, name, percent)
    q = _fractions(q, x.dtype, percent)
    count = sum(cast(logical_not(isnan(rows)), np.int64), -1, keepdims=True)
    each = [q] if _rank(q) == 0 else [q[k] for k in range(q.shape[0])]
    each = [_place(count, one, method, q.dtype) for one in each]
    if _are_few(q):
        order, rank = _order(q)
        places = [place for k in order for place in each[k][:2]]
        rows = _selected(rows, concatenate(places, -1))
        each = [(2 * k, 2 * k + 1, each[n][2]) for n, k in enumerate(np.ravel(rank))]
        pairs = [(take(rows, [low], -1), take(rows, [high], -1), way) for low, high, way in each]
    else:
        rows = sort(rows)
        pairs = [(*(take_along_axis(rows, at, -1) for at in one[:2]), one[2]) for one in each]
    found = [low if way is None else _between(low, high, way) for low, high, way in pairs]
    found = [take(one, 0, -1) for one in found]
    found = stack(found) if _rank(q) else found[0]
    return _kept(_narrow(found, own), x, axes, keepdims, name)


def _spread(weights, x, axis):
    """Weights of the shape of a tensor; a row of them is along the one axis."""
    weights = operand(weights)
    lengths = shape_of(x) if isinstance(x, Tensor) else x.shape
    if weights.ndim == 1 != x.ndim:
        if axis is None or not isinstance(axis, int):
            message = "weights: a row of weights needs one axis=; or give a weight per element"
            raise invalid("axis", message)
        weights = reshape(weights, [-1 if k == axis % x.ndim else 1 for k in range(x.ndim)])
    return cast(broadcast_to(weights, lengths), np.float64)


def _shares(weights, skipping):
    """The shares of the first elements in a row; with nothing else, NaN."""
    if not skipping:
        total = sum(weights, -1)
        fits = logical_and(all(greater_equal(weights, 0)), all(greater(total, 0)))
        fits = logical_and(fits, all(isfinite(total)))
        message = "weights: one is negative or not finite, or all in a row are 0"
        weights = checked(weights, fits, message)
    found = cumsum(weights, -1)
    found = divide(found, take(found, [-1], -1))
    return where(equal(found, 0), -1.0, found)  # what has no weight is no element


def _weighted(x, q, axis, weights, method, keepdims, name, percent=1, skipping=False):
    """The first elements that have a share of the weights; gradients go to them."""
    if method != "inverted_cdf":
        raise invalid("value", f"weights: they are for method='inverted_cdf', not {method!r}")
    x = ranked(x)
    q, weights = _fractions(q, np.dtype(np.float64), percent), _spread(weights, x, axis)
    (rows, axes), (weights, _) = _in_rows(x, axis), _in_rows(weights, axis)
    if skipping and rows.dtype.kind == "f":
        weights = where(isnan(rows), 0.0, weights)
    order = argsort(rows, -1)
    rows = take_along_axis(rows, order, -1)
    shares = _shares(take_along_axis(weights, order, -1), skipping)
    before = less(expand_dims(shares, -2), reshape(q, (-1, 1)))
    last = subtract(dimensions_along(rows, -1), 1)
    found = take_along_axis(rows, minimum(sum(cast(before, np.int64), -1), last), -1)
    if rows.dtype.kind == "f" and not skipping:
        end = take(rows, [-1], -1)  # where NaN is sorted to
        found = where(isnan(end), end, found)
    found = moveaxis(found, -1, 0) if _rank(q) else take(found, 0, -1)
    return _kept(found, x, axes, keepdims, name)


@exported(numpy=3, family=QUANTILES)
def quantile(
    x: ArrayLike,
    q: ArrayLike,
    axis: Axis = None,
    *,
    method: str = "linear",
    keepdims: bool = False,
    weights: ArrayLike | None = None,
    name: str | None = None,
) -> Array:
    """Quantiles of the elements along axes, as `numpy.quantile`; NaN where an element is NaN.

    Parameters
    ----------
    q : number, array-like or Tensor
        Fractions from 0 to 1, a scalar or a vector.

    Raises
    ------
    InvalidArgumentError
        For fractions out of range, axes that are not there or empty, complex numbers, and weights
        that are negative or all 0.
    UnimplementedError
        For other methods.

    Examples
    --------
    >>> nbta.quantile([3.0, 1.0, 2.0, 4.0], [0.0, 0.5])
    array([1. , 2.5])
    """
    if weights is not None:
        return _weighted(x, q, axis, weights, method, keepdims, name)
    return _quantile(x, q, axis, method, keepdims, name)


@exported(numpy=3, family=QUANTILES)
def percentile(
    x: ArrayLike,
    q: ArrayLike,
    axis: Axis = None,
    *,
    method: str = "linear",
    keepdims: bool = False,
    weights: ArrayLike | None = None,
    name: str | None = None,
) -> Array:
    """Percentiles of the elements along axes, as `numpy.percentile`; see `nbta.quantile`.

    Parameters
    ----------
    q : number, array-like or Tensor
        Percentages from 0 to 100, a scalar or a vector.

    Raises
    ------
    InvalidArgumentError, UnimplementedError
        As `nbta.quantile`.

    Examples
    --------
    >>> nbta.percentile([3.0, 1.0, 2.0, 4.0], 50)
    np.float64(2.5)
    """
    if weights is not None:
        return _weighted(x, q, axis, weights, method, keepdims, name, 100)
    return _quantile(x, q, axis, method, keepdims, name, percent=100)


@exported(numpy=2, family=QUANTILES)
def median(
    x: ArrayLike, axis: Axis = None, *, keepdims: bool = False, name: str | None = None
) -> Array:
    """Median of the elements along axes, as `numpy.median`; NaN where an element is NaN.

    The gradient goes to the middle element, or half to each of the middle two.

    Returns
    -------
    Tensor or numpy.ndarray
        Of the shape of ``x`` without the reduced axes; float64 for integers.

    Raises
    ------
    InvalidArgumentError
        For axes without elements, and for complex numbers.

    Examples
    --------
    >>> nbta.median([[3.0, 1.0, 2.0], [4.0, 6.0, 5.0]], axis=1)
    array([2., 5.])
    """
    return _quantile(x, 0.5, axis, "midpoint", keepdims, name)


@exported(numpy=2, family=QUANTILES)
def nanmedian(
    x: ArrayLike, axis: Axis = None, *, keepdims: bool = False, name: str | None = None
) -> Array:
    """Median along axes without NaN, as `numpy.nanmedian`; NaN where there are no other elements.

    Returns
    -------
    Tensor or numpy.ndarray
        Of the shape of ``x`` without the reduced axes; float64 for integers.

    Raises
    ------
    InvalidArgumentError
        For axes without elements, and for complex numbers.

    Examples
    --------
    >>> nbta.nanmedian([3.0, np.nan, 2.0])
    np.float64(2.5)
    """
    return _nan_quantile(x, 0.5, axis, "midpoint", keepdims, name)


@exported(numpy=3, family=QUANTILES)
def nanquantile(
    x: ArrayLike,
    q: ArrayLike,
    axis: Axis = None,
    *,
    method: str = "linear",
    keepdims: bool = False,
    weights: ArrayLike | None = None,
    name: str | None = None,
) -> Array:
    """Quantiles along axes without NaN, as `numpy.nanquantile`; NaN where nothing else is left.

    Parameters
    ----------
    q : number, array-like or Tensor
        Fractions from 0 to 1, a scalar or a vector.

    Raises
    ------
    InvalidArgumentError, UnimplementedError
        As `nbta.quantile`.

    Examples
    --------
    >>> nbta.nanquantile([3.0, np.nan, 2.0], 0.25)
    np.float64(2.25)
    """
    if weights is not None:
        return _weighted(x, q, axis, weights, method, keepdims, name, 1, True)
    return _nan_quantile(x, q, axis, method, keepdims, name)


@exported(numpy=3, family=QUANTILES)
def nanpercentile(
    x: ArrayLike,
    q: ArrayLike,
    axis: Axis = None,
    *,
    method: str = "linear",
    keepdims: bool = False,
    weights: ArrayLike | None = None,
    name: str | None = None,
) -> Array:
    """Percentiles along axes without NaN, as `numpy.nanpercentile`; NaN where nothing else is left.

    Parameters
    ----------
    q : number, array-like or Tensor
        Percentages from 0 to 100, a scalar or a vector.

    Raises
    ------
    InvalidArgumentError, UnimplementedError
        As `nbta.quantile`.

    Examples
    --------
    >>> nbta.nanpercentile([3.0, np.nan, 2.0], 25)
    np.float64(2.25)
    """
    if weights is not None:
        return _weighted(x, q, axis, weights, method, keepdims, name, 100, True)
    return _nan_quantile(x, q, axis, method, keepdims, name, percent=100)
