"""Which elements are true, and how many; whether arrays are equal, or nearly so."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nbta.errors import invalid
from nbta.graph.operation import Tensor
from nbta.ops.axes.reductions import chosen, sum
from nbta.ops.core.arithmetic import equal, greater, logical_not, not_equal
from nbta.ops.core.axis_arguments import operand
from nbta.ops.core.descriptions import REDUCED
from nbta.ops.core.dispatch import exported
from nbta.ops.core.elementwise import promoted
from nbta.ops.core.shaping import cast
from nbta.ops.elementary.rounding import isclose

if TYPE_CHECKING:
    from nbta.typing import Array, ArrayLike, Axis


def _truths(x):
    x = operand(x)
    return x if x.dtype.kind == "b" else not_equal(x, 0)


def _count(truths, axis, keepdims, name=None):
    """How many hold: sums, of nothing too, which has no greatest."""
    return sum(cast(truths, np.int64), axis, keepdims, name=name)


@exported(numpy=2, family=REDUCED)
def any(
    x: ArrayLike,
    axis: Axis = None,
    keepdims: bool = False,
    *,
    where: ArrayLike | None = None,
    name: str | None = None,
) -> Array:
    """Whether any element along axes is true, as `numpy.any`; False where there are no elements.

    Examples
    --------
    >>> nbta.any([[0, 0], [0, 3]], axis=0)
    array([False,  True])
    """
    return greater(_count(chosen(_truths(x), where, False), axis, keepdims), 0, name=name)


@exported(numpy=2, family=REDUCED)
def all(
    x: ArrayLike,
    axis: Axis = None,
    keepdims: bool = False,
    *,
    where: ArrayLike | None = None,
    name: str | None = None,
) -> Array:
    """Whether all elements along axes are true, as `numpy.all`; True where there are no elements.

    Examples
    --------
    >>> nbta.all([[1, 0], [2, 3]], axis=0)
    array([ True, False])
    """
    missing = logical_not(chosen(_truths(x), where, True))
    return equal(_count(missing, axis, keepdims), 0, name=name)


@exported(numpy=2, family=REDUCED)
def count_nonzero(
    x: ArrayLike, axis: Axis = None, *, keepdims: bool = False, name: str | None = None
) -> Array:
    """Number of elements along axes that are not 0, as int64, as `numpy.count_nonzero`.

    Examples
    --------
    >>> nbta.count_nonzero([[1, 0], [2, 3]], axis=0)
    array([2, 1])
    """
    return _count(_truths(x), axis, keepdims, name)


@exported(numpy=2)
def allclose(
    x: ArrayLike,
    y: ArrayLike,
    rtol: ArrayLike = 1e-05,
    atol: ArrayLike = 1e-08,
    equal_nan: bool = False,
    *,
    name: str | None = None,
) -> Array:
    """Whether all pairs of elements are close, as `numpy.allclose`; see `nbta.isclose`.

    Parameters
    ----------
    x, y, rtol, atol, equal_nan
        As for `nbta.isclose`.

    Returns
    -------
    Tensor or numpy.ndarray
        A boolean scalar.

    Raises
    ------
    InvalidArgumentError
        For shapes that do not broadcast.

    Examples
    --------
    >>> nbta.allclose([1.0, 2.0], [1.0 + 1e-9, 2.0])
    np.True_
    """
    return all(isclose(x, y, rtol, atol, equal_nan), name=name)


@exported(numpy=2)
def array_equal(x: ArrayLike, y: ArrayLike, *, name: str | None = None) -> Array:
    """Whether two tensors have the same shape and equal elements, as `numpy.array_equal`.

    Parameters
    ----------
    x, y : array-like or Tensor
        What to compare.

    Returns
    -------
    Tensor or numpy.ndarray
        A boolean scalar.

    Raises
    ------
    InvalidArgumentError
        For a tensor whose shape is not fully known.

    Examples
    --------
    >>> nbta.array_equal([1, 2], [1, 3])
    np.False_
    """
    x, y = promoted(x, y)
    if not (_has_shape(x) and _has_shape(y)):
        message = "two tensors of unknown shapes: compare shapes, and then nbta.all(x == y)"
        raise invalid("shape", message)
    alike = tuple(x.shape) == tuple(y.shape)
    return all(equal(x, y), name=name) if alike else np.False_


def _has_shape(x):
    return not isinstance(x, Tensor) or (x.spec.rank is not None and None not in x.spec.shape)
