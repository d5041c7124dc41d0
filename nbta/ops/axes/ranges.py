"""Numbers between two ends, in even steps or by even factors."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING

import numpy as np

from nbta.dtypes import as_dtype
from nbta.errors import invalid
from nbta.graph.operation import Tensor
from nbta.ops.core.arithmetic import (
    equal,
    logical_and,
    maximum,
    where,
)
from nbta.ops.core.dispatch import exported
from nbta.ops.core.elementwise import common_dtype, promoted
from nbta.ops.core.filling import PLACEHOLDER, arange
from nbta.ops.core.shaping import cast, named, reshape
from nbta.ops.elementary.basic import floor, log10, power, sign
from nbta.ops.indexing.arranging import counted, moveaxis, ranked

if TYPE_CHECKING:
    from nbta.typing import Array, ArrayLike, DTypeLike

__all__ = ["geomspace", "linspace", "logspace"]


def _ends(start, stop):
    """Both as floats of one dtype and shape."""
    return map(ranked, promoted(start, stop, floats=True))


def _count(num):
    """How many numbers there are to be, which an argument of a function says when it is asked."""
    asked = isinstance(num, Tensor) and num.op.record is PLACEHOLDER
    return counted("num", operator.index(num) if asked else num)


def _steps(start, stop, count, endpoint):
    """The numbers, along a new first axis, and the step between them; the ends are exact."""
    parts = count - 1 if endpoint else count
    delta = stop - start
    numbers = reshape(cast(arange(count), start.dtype), (-1, *[1] * delta.ndim))
    if isinstance(count, Tensor):
        step = delta / cast(maximum(parts, 1), start.dtype)
        of_one = where(parts > 0, step, start.dtype.type(np.nan))
    else:
        step = delta / max(parts, 1)
        of_one = step if parts > 0 else np.full((), np.nan, start.dtype)
    found = numbers * step + start  # one number is multiplied by 0
    return _ending(found, numbers, count, stop) if endpoint else found, of_one


def _ending(found, numbers, count, stop):
    """The numbers with the last of several as it is."""
    is_last = equal(numbers, count - 1)
    if isinstance(count, Tensor):
        return where(logical_and(is_last, count > 1), stop, found)
    return where(is_last, stop, found) if count > 1 else found


@exported(numpy=3)
def linspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: DTypeLike | None = None,
    axis: int = 0,
    *,
    name: str | None = None,
) -> Array | tuple[Array, Array]:
    """Evenly spaced numbers between two ends, as `numpy.linspace`.

    Parameters
    ----------
    start, stop : array-like or Tensor
        The first and the last number, of shapes that broadcast. Gradients pass to both.
    num : int or Tensor of int, default 50
        How many numbers.
    endpoint : bool, default True
        Whether the last number is ``stop``; otherwise ``stop`` would be the next one.
    retstep : bool, default False
        Whether to return the step as well.
    dtype : dtype-like, optional
        By default that of the ends, and float64 for integers. For an integer dtype, numbers are
        rounded down.
    axis : int, default 0
        The place of the new axis.

    Returns
    -------
    Tensor or numpy.ndarray, or a tuple of two
        ``num`` numbers along a new axis, for each pair of ends; with ``retstep``, also the step.

    Raises
    ------
    InvalidArgumentError
        For a negative number, and for ends that do not broadcast.

    Examples
    --------
    >>> nbta.linspace(0.0, 1.0, 5)
    array([0.  , 0.25, 0.5 , 0.75, 1.  ])
    >>> nbta.grad(lambda stop: nbta.sum(nbta.linspace(0.0, stop, 5)))(1.0)
    np.float64(2.5)
    """
    start, stop = _ends(start, stop)
    found, step = _steps(start, stop, _count(num), endpoint)
    whole = dtype is not None and as_dtype(dtype).kind in "iu"
    found = _arranged(floor(found) if whole else found, dtype, axis, name)
    return (found, step) if retstep else found


def _arranged(found, dtype, axis, name):
    """With the numbers along an axis, and in a dtype if one is asked for."""
    found = moveaxis(found, 0, axis) if axis else found
    return named(found, name) if dtype is None else cast(found, as_dtype(dtype), name=name)


@exported(numpy=3)
def logspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    base: ArrayLike = 10.0,
    dtype: DTypeLike | None = None,
    axis: int = 0,
    *,
    name: str | None = None,
) -> Array:
    """Powers of a base with evenly spaced exponents, as `numpy.logspace`.

    Parameters
    ----------
    start, stop : array-like or Tensor
        The first and the last exponent, of shapes that broadcast.
    num, endpoint
        As for `nbta.linspace`.
    base : array-like or Tensor, default 10.0
        The base.
    dtype, axis
        As for `nbta.linspace`.

    Returns
    -------
    Tensor or numpy.ndarray
        ``num`` numbers along a new axis, for each pair of ends.

    Raises
    ------
    InvalidArgumentError
        As `nbta.linspace`.

    Examples
    --------
    >>> nbta.logspace(0.0, 2.0, 3)
    array([  1.,  10., 100.])
    """
    start, stop = _ends(start, stop)
    exponents, _ = _steps(start, stop, _count(num), endpoint)
    return _arranged(power(base, exponents), dtype, axis, name)


@exported(numpy=3)
def geomspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    dtype: DTypeLike | None = None,
    axis: int = 0,
    *,
    name: str | None = None,
) -> Array:
    """Numbers with a constant ratio between neighbours, as `numpy.geomspace`.

    Parameters
    ----------
    start, stop : array-like or Tensor
        The first and the last number: real and of one sign. For an end of 0 the result is NaN,
        where NumPy raises.
    num, endpoint, dtype, axis
        As for `nbta.linspace`; the dtype is float64 by default.

    Returns
    -------
    Tensor or numpy.ndarray
        ``num`` numbers along a new axis, for each pair of ends.

    Raises
    ------
    InvalidArgumentError
        As `nbta.linspace`, and for complex ends.

    Examples
    --------
    >>> nbta.geomspace(1.0, 8.0, 4)
    array([1., 2., 4., 8.])
    """
    if common_dtype(start, stop).kind == "c":
        message = (
            "geomspace: complex ends; write start * (stop / start) ** nbta.linspace(0, 1, num)"
        )
        raise invalid("dtype", message)
    start, stop = (cast(end, np.float64) for end in _ends(start, stop))
    of_both, count = sign(start), _count(num)
    found, _ = _steps(log10(start * of_both), log10(stop * of_both), count, endpoint)
    found = of_both * power(10.0, found)
    numbers = reshape(arange(count), (-1, *[1] * (found.ndim - 1)))
    found = where(equal(numbers, 0), start, found)
    found = _ending(found, numbers, count, stop) if endpoint else found
    return _arranged(found, dtype, axis, name)
