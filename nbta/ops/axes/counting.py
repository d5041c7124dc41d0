"""How many there are of each: counts, and sums of weights."""

from __future__ import annotations

import builtins
import math
import operator
from typing import TYPE_CHECKING

import numpy as np

from nbta.errors import invalid
from nbta.graph.operation import Tensor
from nbta.ops.axes.ranges import linspace
from nbta.ops.axes.reductions import max as max_
from nbta.ops.axes.reductions import min as min_
from nbta.ops.axes.reductions import sum as sum_
from nbta.ops.axes.sorting import rising, searchsorted
from nbta.ops.core.arithmetic import (
    equal,
    greater,
    greater_equal,
    less,
    less_equal,
    logical_and,
    logical_not,
    minimum,
    where,
)
from nbta.ops.core.axis_arguments import operand
from nbta.ops.core.checks import checked
from nbta.ops.core.dispatch import data_spec, exported, stands_for
from nbta.ops.core.elementwise import promoted
from nbta.ops.core.filling import ones_like, zeros
from nbta.ops.core.shaping import INT64, cast, named, reshape, size
from nbta.ops.indexing.gathering import as_indices, scatter_add
from nbta.ops.indexing.items import getitem
from nbta.ops.indexing.joining import concatenate, rows_of
from nbta.ops.indexing.transposing import swapaxes

if TYPE_CHECKING:
    from nbta.typing import Array, ArrayLike

__all__ = ["bincount", "histogram", "histogram_bin_edges"]


@exported(numpy=3)
def bincount(
    x: ArrayLike,
    weights: ArrayLike | None = None,
    minlength: int = 0,
    *,
    name: str | None = None,
) -> Array:
    """How often each number from 0 on is there, or the sum of the weights of each.

    Parameters
    ----------
    x : array-like or Tensor of int
        Of rank 1.
    weights : array-like or Tensor, optional
        One an element of ``x``. Gradients pass to them.
    minlength : int, optional
        How long the result is at least. Where only the run knows ``x``, it is as long as that, and
        a greater number in ``x`` is an error.

    Returns
    -------
    Tensor or numpy.ndarray
        Of int64; with weights of float64.

    Raises
    ------
    InvalidArgumentError
        For negative numbers, for what is not of rank 1, for complex weights, and without
        ``minlength`` for numbers that only the run knows.

    Examples
    --------
    >>> nbta.bincount([0, 2, 2])
    array([1, 0, 2])
    >>> nbta.bincount([0, 2, 2], [0.5, 1.0, 2.0], minlength=4)
    array([0.5, 0. , 3. , 0. ])
    """
    x, length = as_indices(x), operator.index(minlength)
    if x.ndim != 1 or length < 0:
        what = f"minlength: {length} is negative" if length < 0 else f"x has rank {x.ndim}, not 1"
        raise invalid("value", f"bincount: {what}")
    if not isinstance(x, Tensor):
        length = max(length, *(x + 1), 0)
    elif not length:
        message = (
            "bincount: the length of the result would be known only in a run; give minlength=, "
            "above the greatest number that there can be"
        )
        raise invalid("value", message)
    fits = logical_and(greater_equal(x, 0), less(x, length))
    message = f"bincount: a number is negative, or not less than the {length} of minlength="
    x = cast(checked(x, equal(sum_(logical_not(fits)), 0), message), INT64)
    if weights is None:
        return scatter_add(zeros(length, INT64), x, np.int64(1), name=name)
    return scatter_add(zeros(length), x, _weights(weights), name=name)


def _weights(weights):
    weights = operand(weights)
    if weights.dtype.kind == "c":
        raise invalid(
            "dtype", "bincount: weights are complex; count their real and imaginary parts apart"
        )
    if weights.ndim != 1:
        raise invalid("shape", f"weights has rank {weights.ndim}; give one weight per element of x")
    return cast(weights, np.float64)


@exported(numpy=3)
def histogram_bin_edges(
    x: ArrayLike,
    bins: int | ArrayLike = 10,
    range: tuple[ArrayLike, ArrayLike] | None = None,  # NumPy's name
    *,
    name: str | None = None,
) -> Array:
    """Edges of the bins of `nbta.histogram`, as `numpy.histogram_bin_edges`.

    Parameters
    ----------
    x : array-like or Tensor
        Real numbers, of any shape.
    bins : int, or array-like or Tensor
        Number of bins of one width, or their edges.
    range : pair of scalar or Tensor, optional
        The first and the last edge; by default the smallest and the largest element of ``x``,
        through which gradients pass.

    Returns
    -------
    Tensor or numpy.ndarray
        The edges, a vector that is longer by one than there are bins.

    Raises
    ------
    InvalidArgumentError
        For edges that do not ascend, fewer than one bin, and names of NumPy's rules, such as
        "auto".

    Examples
    --------
    >>> nbta.histogram_bin_edges([0.0, 4.0, 1.0], 4)
    array([0., 1., 2., 3., 4.])
    """
    if isinstance(bins, str):
        message = f"bins: with {bins!r}, their number is known only in a run; give a number"
        raise invalid("value", message)
    if isinstance(bins, Tensor) or np.ndim(bins):
        return named(_rising(operand(bins)), name=name)
    count = operator.index(bins)
    if count < 1:
        raise invalid("value", f"bins must be 1 or more, or edges, not {count}")
    first, last = _outer_edges(operand(x), range)
    return linspace(first, last, count + 1, name=name)


def _rising(edges):
    if edges.ndim != 1:
        raise invalid("rank", f"bins has rank {edges.ndim}; give the edges in one row")
    message = "histogram: the edges are not increasing; sort them with nbta.sort"
    return checked(edges, rising(edges), message)


def _outer_edges(x, given):
    """The first and the last; apart where all are the same, as NumPy has it."""
    first, last = given if given is not None else _extremes(x)
    first, last = promoted(first, last, floats=True)
    if x.dtype.kind == "f":
        first, last = promoted(first, last, np.zeros((), x.dtype))[:2]
    message = "histogram: the range is empty or not finite; give range="
    first = checked(
        first, logical_and(less_equal(first, last), less(last - first, np.inf)), message
    )
    same = equal(first, last)
    return where(same, first - 0.5, first), where(same, last + 0.5, last)


def _extremes(x):
    if not isinstance(x, Tensor) and not x.size:
        return 0.0, 1.0
    lengths = x.shape or ()
    if all(n > 0 if type(n) is int else getattr(n, "least", 0) for n in lengths):
        return min_(x), max_(x)
    # Only the run knows whether there is any element.
    x, end = promoted(reshape(x, (-1,)), np.inf, floats=True)
    some = greater(size(x), 0)
    first, last = (min_(concatenate([x, end[None]])), max_(concatenate([x, -end[None]])))
    return where(some, first, 0.0), where(some, last, 1.0)


@exported(numpy=3)
def histogram(
    x: ArrayLike,
    bins: int | ArrayLike = 10,
    range: tuple[ArrayLike, ArrayLike] | None = None,  # NumPy's name
    density: bool | None = None,
    weights: ArrayLike | None = None,
    *,
    name: str | None = None,
) -> tuple[Array, Array]:
    """How many elements are in each of some bins, or the sum of their weights; and the edges.

    Parameters
    ----------
    x : array-like or Tensor
        What is in no bin, NaN too, is left out.
    bins, range
        See `nbta.histogram_bin_edges`. The last bin has its last edge as well.
    density : bool, optional
        Whether to divide by widths and by the sum of all, so that the area is 1.
    weights : array-like or Tensor, optional
        Of the shape of ``x``. Gradients pass to them; in ``x`` counts have steps and no gradient.

    Returns
    -------
    tuple of Tensor or numpy.ndarray
        The counts, of int64 or the dtype of the weights; the edges, one more.

    Raises
    ------
    InvalidArgumentError
        As `nbta.histogram_bin_edges`.

    Examples
    --------
    >>> nbta.histogram([0.5, 1.5, 1.7], [0.0, 1.0, 2.0])
    (array([1, 2]), array([0., 1., 2.]))
    """
    x = operand(x)
    edges, x = histogram_bin_edges(x, bins, range), reshape(x, (-1,))
    count = int(edges.shape[0]) - 1
    inside = logical_and(greater_equal(x, edges[0]), less_equal(x, edges[-1]))
    place = minimum(searchsorted(edges, x, "right") - 1, count - 1)
    weights = ones_like(x, INT64) if weights is None else reshape(operand(weights), (-1,))
    if data_spec(weights).shape == (1,) != data_spec(x).shape:
        raise invalid("shape", "weights is one number; give one for each element of x")
    sums = scatter_add(zeros(count + 1, weights.dtype), where(inside, place, count), weights)
    found = sums[:count]
    if density:
        found = found / (edges[1:] - edges[:-1]) / sum_(found)
    return named(found, name), edges


def _columns(sample):
    """Coordinates, one after another: columns of a matrix, or a list of rows."""
    if isinstance(sample, list | tuple):
        return [reshape(operand(one), (-1,)) for one in sample]
    sample = operand(sample)
    if sample.ndim == 1:
        return [sample]
    if sample.ndim != 2:
        raise invalid("rank", f"histogramdd: sample has rank {sample.ndim}; give points in rows")
    return rows_of(swapaxes(sample, 0, 1))


def _place_of(x, edges):
    """In which bin each is, from 1 on; 0 and one more for those outside, and for NaN."""
    last = edges[-1]
    count = int(edges.shape[0]) - 1
    place = searchsorted(edges, x, "right")
    place = where(equal(x, last), count, place)
    return where(equal(x, x), place, count + 1)


def _widths(edges, axis, rank):
    return reshape(edges[1:] - edges[:-1], [-1 if k == axis else 1 for k in builtins.range(rank)])


@stands_for("histogramdd", numpy=5)
def _histogramdd(sample, bins=10, range=None, density=None, weights=None):
    """NumPy's: how many points are in each box of a grid, or the sum of their weights."""
    columns = _columns(sample)
    rank = len(columns)
    bins = list(bins) if isinstance(bins, list | tuple) else [bins] * rank
    ranges = [None] * rank if range is None else range
    if not len(bins) == len(ranges) == rank:
        raise invalid("value", f"histogramdd: give bins and a range for each of {rank} axes")
    edges = [histogram_bin_edges(*one) for one in zip(columns, bins, ranges, strict=True)]
    counts = [int(one.shape[0]) + 1 for one in edges]
    number = 0
    for x, row, count in zip(columns, edges, counts, strict=True):
        number = number * count + _place_of(x, row)
    given = ones_like(number, np.float64) if weights is None else cast(operand(weights), np.float64)
    sums = scatter_add(zeros(math.prod(counts)), number, reshape(given, (-1,)))
    found = getitem(reshape(sums, counts), (slice(1, -1),) * rank)
    if density:
        total = sum_(found)
        for axis, row in enumerate(edges):
            found = found / _widths(row, axis, rank)
        found = found / total
    return found, tuple(edges)


@stands_for("histogram2d", numpy=6)
def _histogram2d(x, y, bins=10, range=None, density=None, weights=None):
    """NumPy's, of two coordinates; one row of edges is for both."""
    both = isinstance(bins, list | tuple) and len(bins) in (1, 2)
    if not both and (isinstance(bins, Tensor) or np.ndim(bins)):
        bins = [bins, bins]
    elif both and len(bins) == 1:
        bins = [bins[0], bins[0]]
    found, edges = _histogramdd([x, y], bins, range, density, weights)
    return found, *edges
