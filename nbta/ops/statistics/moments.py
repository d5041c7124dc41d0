"""Statistics along axes: how many, how wide, on average; and all of it with NaN left out."""

from __future__ import annotations

import builtins
import functools
import math
import operator
from typing import TYPE_CHECKING

import numpy as np

from nbta import shapes
from nbta.errors import invalid
from nbta.graph.operation import Tensor
from nbta.ops.axes.diagonals import diagonal
from nbta.ops.axes.reductions import (
    argmax,
    argmin,
    chosen,
    cumprod,
    cumsum,
    inexact_only,
    max,
    mean,
    mean_dtype,
    min,
    prod,
    sum,
)
from nbta.ops.axes.truths import all, any
from nbta.ops.core.arithmetic import (
    add,
    clip,
    divide,
    greater,
    greater_equal,
    imag,
    logical_and,
    logical_not,
    maximum,
    multiply,
    not_equal,
    real,
    square,
    subtract,
)
from nbta.ops.core.arithmetic import (
    where as choose,
)
from nbta.ops.core.axis_arguments import axis_attrs, integers, operand, within
from nbta.ops.core.checks import checked
from nbta.ops.core.descriptions import CUMULATED, REDUCED
from nbta.ops.core.dispatch import as_array, data_spec, exported, stands_for
from nbta.ops.core.elementwise import common_dtype, conjugate, promoted, wide
from nbta.ops.core.filling import ones_like
from nbta.ops.core.shaping import broadcast_to, cast, named, reshape, shape_of, stop_gradient
from nbta.ops.elementary.basic import sqrt
from nbta.ops.elementary.rounding import fmax, fmin, isnan
from nbta.ops.indexing.arranging import ranked
from nbta.ops.indexing.joining import concatenate, squeeze
from nbta.ops.indexing.transposing import swapaxes, transpose
from nbta.ops.linalg.products import matmul

if TYPE_CHECKING:
    from nbta.typing import Array, ArrayLike, Axis, DTypeLike


def _dimensions(x):
    """The shape of a tensor or an array, with None where only a run knows."""
    return x.spec.shape if isinstance(x, Tensor) else x.shape


def dimensions_along(x, axis):
    """How many elements a reduction along axes takes: an integer, or a tensor of one."""
    axis = axis_attrs(x, axis)["axis"]
    known = _dimensions(x)
    if known is not None and axis is not None:
        known = [known[one] for one in axis]
    if shapes.is_known(known):
        return math.prod(known)
    lengths = shape_of(x)
    if axis is None:
        return prod(lengths)
    return functools.reduce(operator.mul, [lengths[one] for one in axis])


def _counted(x, axis, mask):
    """How many elements count, in the dtype of the operand; with a mask, with the axes kept."""
    if mask is not None:
        return sum(chosen(ones_like(x), mask, 0), axis, True)
    return cast(dimensions_along(x, axis), x.dtype)


def _floats(x, dtype, mean):
    """The operand in floats, in which half precision is computed as float32; and its own dtype."""
    x = operand(x)
    if mean is not None:
        x = _beside_mean(x, mean)
        if dtype is not None and dtype != x.dtype:
            message = "dtype: NumPy subtracts mean= in the array's own dtype; cast the array"
            raise invalid("dtype", message)
    own = mean_dtype(x.dtype) if dtype is None else np.dtype(inexact_only(dtype))
    if own.kind == "c" and x.dtype.kind != "c":
        raise invalid("dtype", f"dtype={own}: a variance is real; cast the result")
    return cast(x, wide(own)) if x.dtype != wide(own) else x, own


def _beside_mean(x, mean):
    """The operand in the dtype that it has less its mean."""
    dtype = common_dtype(x, mean)
    if dtype.kind == "c" and x.dtype.kind != "c":
        raise invalid("dtype", "mean: that of real numbers is real; give its real part")
    return x if x.dtype == dtype else cast(x, dtype)


def _ddof(ddof, correction):
    """What is taken off the number of elements, which has two names."""
    if correction is not None:
        if ddof != 0:
            raise ValueError("ddof and correction can't be provided simultaneously.")
        ddof = correction
    if isinstance(ddof, complex | np.complexfloating):
        raise invalid("dtype", f"ddof, correction: {ddof} is complex; give a real number")
    return ddof


def _real_dtype(dtype):
    return np.empty(0, dtype).real.dtype if dtype.kind == "c" else dtype


def _narrow(x, dtype, name):
    """A result in the dtype that it is to have."""
    return x if x.dtype == dtype and name is None else cast(x, dtype, name=name)


def _squares(x):
    """The squares of absolute values."""
    return add(square(real(x)), square(imag(x))) if x.dtype.kind == "c" else square(x)


def _variance(x, axis, ddof, keepdims, mask, mean):
    """By two passes, as NumPy; where no elements are left it divides by 0."""
    count = _counted(x, axis, mask)
    if mean is None:
        apart = subtract(x, divide(sum(x, axis, True, where=mask), count))
    else:
        apart = subtract(x, cast(mean, x.dtype))
        if data_spec(apart).rank != data_spec(x).rank:
            message = "mean: it has more axes than the array; give it as with keepdims=True"
            raise invalid("shape", message)
    total = sum(chosen(_squares(apart), mask, 0), axis, True)
    left = maximum(subtract(real(count), ddof), 0)
    found = divide(total, left)
    return found if keepdims else squeezed(found, axis)


def squeezed(x, axis):
    """Without the axes that a reduction kept."""
    return reshape(x, ()) if axis is None else squeeze(x, axis)


@exported(numpy=2, family=REDUCED)
def var(
    x: ArrayLike,
    axis: Axis = None,
    *,
    ddof: float = 0,
    keepdims: bool = False,
    dtype: DTypeLike | None = None,
    where: ArrayLike | None = None,
    correction: float | None = None,
    mean: ArrayLike | None = None,
    name: str | None = None,
) -> Array:
    """Variance of the elements along axes, as `numpy.var`: the mean of their squared deviations.

    Examples
    --------
    >>> nbta.var([1.0, 2.0, 3.0], ddof=1)
    np.float64(1.0)
    """
    x, own = _floats(x, dtype, mean)
    found = _variance(x, axis, _ddof(ddof, correction), keepdims, where, mean)
    return _narrow(found, _real_dtype(own), name)


@exported(numpy=2, family=REDUCED)
def std(
    x: ArrayLike,
    axis: Axis = None,
    *,
    ddof: float = 0,
    keepdims: bool = False,
    dtype: DTypeLike | None = None,
    where: ArrayLike | None = None,
    correction: float | None = None,
    mean: ArrayLike | None = None,
    name: str | None = None,
) -> Array:
    """Standard deviation of the elements along axes, as `numpy.std`.

    The gradient is NaN where several elements are all equal, as that of a square root is at 0. It
    is 0 for a single element.

    Examples
    --------
    >>> nbta.std([1.0, 3.0])
    np.float64(1.0)
    """
    x, own = _floats(x, dtype, mean)
    ddof = _ddof(ddof, correction)
    found = _variance(x, axis, ddof, keepdims, where, mean)
    if where is None and mean is None and ddof == 0 and _has_one(x, axis):
        found = stop_gradient(found)  # it is 0 for each element, though no square root is smooth
    return _narrow(sqrt(found), _real_dtype(own), name)


def _has_one(x, axis):
    """Whether a reduction is known to be of one element."""
    shape = data_spec(x).shape
    axes = range(len(shape or ())) if axis is None else np.atleast_1d(axis)
    return shape is not None and builtins.all(type(shape[a]) is int and shape[a] == 1 for a in axes)


@exported(numpy=2, family=REDUCED)
def ptp(
    x: ArrayLike, axis: Axis = None, keepdims: bool = False, *, name: str | None = None
) -> Array:
    """Largest element along axes minus the smallest one, as `numpy.ptp`.

    Examples
    --------
    >>> nbta.ptp([[1, 5], [7, 4]], axis=1)
    array([4, 3])
    """
    return subtract(max(x, axis, keepdims), min(x, axis, keepdims), name=name)


def _weights(x, weights, axis):
    """Weights in a shape that broadcasts with the operand: as it is, or of some of its axes."""
    have, want = _dimensions(weights), _dimensions(x)
    if want is None and (axis is None or (have is not None and len(have) != 1)):
        return weights
    if have is None or want is None:
        message = "weights: a vector of them needs a tensor of known rank; give one per element"
        raise invalid("rank", message)
    rank = len(want)
    if len(have) == rank and _have_one_shape(x, weights, axis):
        return weights
    if axis is None:
        message = "weights and the operand differ in shape; give axis= as well"
        raise invalid("shape", message)
    within(axes := integers(axis if isinstance(axis, tuple | list) else (axis,)), want)
    axes = [one % rank for one in axes]
    if len(have) != len(axes):
        message = f"weights: they have {len(have)} axes, and axis= names {len(axes)}"
        raise invalid("shape", message)
    if axes != sorted(axes):
        weights = transpose(weights, np.argsort(axes).tolist())
    return weights[tuple(slice(None) if k in axes else None for k in range(rank))]


def _have_one_shape(x, weights, axis):
    """Whether weights have the operand's shape; if not, they have its axes in another order."""
    axes = axis if isinstance(axis, tuple | list) else ()
    if len(axes) < 2 or list(axes) == sorted(axes):
        return True
    return builtins.all(bool(n == m) for n, m in zip(x.shape, weights.shape, strict=True))


@exported(numpy=3, family=REDUCED)
def average(
    x: ArrayLike,
    axis: Axis = None,
    weights: ArrayLike | None = None,
    returned: bool = False,
    *,
    keepdims: bool = False,
    name: str | None = None,
) -> Array | tuple[Array, Array]:
    """Weighted mean of the elements along axes, as `numpy.average`.

    Parameters
    ----------
    weights : array-like or Tensor, optional
        Weights, of the shape of ``x`` or of the lengths of the axes in their order; without them
        all elements count alike. Where weights sum to 0 the result is NaN or infinite; NumPy
        raises.
    returned : bool, default False
        Whether to return the sums of the weights as well.

    Returns
    -------
    Tensor or numpy.ndarray, or a tuple of two
        The mean, of the shape of ``x`` without the reduced axes; with ``returned``, also the sum of
        the weights, of the same shape.

    Raises
    ------
    InvalidArgumentError
        For an axis that ``x`` does not have, and for weights that do not fit it.

    Examples
    --------
    >>> nbta.average([1.0, 2.0, 4.0], weights=[2.0, 1.0, 1.0])
    np.float64(2.0)
    """
    x = operand(x)
    if weights is None:
        found = mean(x, axis, keepdims, name=name)
        if not returned:
            return found
        count = cast(dimensions_along(x, axis), found.dtype)
        return found, multiply(ones_like(found), count)
    weights = weights if isinstance(weights, Tensor) else as_array(weights)
    x, weights = promoted(x, weights, floats=True)
    shape = shape_of(x) if isinstance(x, Tensor) else x.shape
    weights = broadcast_to(_weights(x, weights, axis), shape)
    total = sum(weights, axis, keepdims)
    found = divide(sum(multiply(x, weights), axis, keepdims), total, name=name)
    return (found, total) if returned else found


def _without(x, other):
    """Floats with another number in place of NaN, and whether each was none."""
    x = operand(x)
    if x.dtype.kind not in "fcV":
        return x, None
    present = logical_not(isnan(x))
    return choose(present, x, np.array(other, x.dtype)), present


def _both(one, other):
    """A mask of what two masks leave, of which each may be None."""
    if one is None or other is None:
        return other if one is None else one
    return logical_and(one, other)


@exported(numpy=2, family=REDUCED)
def nansum(
    x: ArrayLike,
    axis: Axis = None,
    keepdims: bool = False,
    *,
    dtype: DTypeLike | None = None,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
    name: str | None = None,
) -> Array:
    """Sum of the elements along axes, NaN counting as 0, as `numpy.nansum`; see `nbta.sum`.

    The gradient with respect to a NaN is 0.

    Examples
    --------
    >>> nbta.nansum([1.0, np.nan, 2.0])
    np.float64(3.0)
    """
    x, options = _without(x, 0)[0], {"initial": initial, "where": where, "name": name}
    return sum(x, axis, keepdims, dtype=dtype, **options)


@exported(numpy=2, family=REDUCED)
def nanprod(
    x: ArrayLike,
    axis: Axis = None,
    keepdims: bool = False,
    *,
    dtype: DTypeLike | None = None,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
    name: str | None = None,
) -> Array:
    """Product of the elements along axes, NaN counting as 1, as `numpy.nanprod`; see `nbta.prod`.

    The gradient with respect to a NaN is 0.

    Examples
    --------
    >>> nbta.nanprod([3.0, np.nan, 2.0])
    np.float64(6.0)
    """
    x, options = _without(x, 1)[0], {"initial": initial, "where": where, "name": name}
    return prod(x, axis, keepdims, dtype=dtype, **options)


@exported(numpy=2, family=CUMULATED)
def nancumsum(
    x: ArrayLike,
    axis: int | None = None,
    *,
    dtype: DTypeLike | None = None,
    name: str | None = None,
) -> Array:
    """Cumulative sum, NaN counting as 0, as `numpy.nancumsum`; see `nbta.cumsum`.

    Examples
    --------
    >>> nbta.nancumsum([1.0, np.nan, 2.0])
    array([1., 1., 3.])
    """
    return cumsum(_without(x, 0)[0], axis, dtype=dtype, name=name)


@exported(numpy=2, family=CUMULATED)
def nancumprod(
    x: ArrayLike,
    axis: int | None = None,
    *,
    dtype: DTypeLike | None = None,
    name: str | None = None,
) -> Array:
    """Cumulative product, NaN counting as 1, as `numpy.nancumprod`; see `nbta.cumprod`.

    Examples
    --------
    >>> nbta.nancumprod([3.0, np.nan, 2.0])
    array([3., 3., 6.])
    """
    return cumprod(_without(x, 1)[0], axis, dtype=dtype, name=name)


@exported(numpy=2, family=REDUCED)
def nanmean(
    x: ArrayLike,
    axis: Axis = None,
    keepdims: bool = False,
    *,
    dtype: DTypeLike | None = None,
    where: ArrayLike | None = None,
    name: str | None = None,
) -> Array:
    """Mean along axes without NaN, as `numpy.nanmean`; NaN where there are no other elements.

    Examples
    --------
    >>> nbta.nanmean([1.0, np.nan, 2.0])
    np.float64(1.5)
    """
    x, present = _without(x, 0)
    return mean(x, axis, keepdims, dtype=dtype, where=_both(present, where), name=name)


def _of_enough(found, where, axis, keepdims, ddof, present, name):
    """A variance, and NaN where there are not more elements than are taken off their number."""
    if present is None:
        return named(found, name)
    enough = greater(sum(cast(where, np.int64), axis, keepdims), ddof)
    return choose(enough, found, np.array(math.nan, found.dtype), name=name)


@exported(numpy=2, family=REDUCED)
def nanvar(
    x: ArrayLike,
    axis: Axis = None,
    *,
    ddof: float = 0,
    keepdims: bool = False,
    dtype: DTypeLike | None = None,
    where: ArrayLike | None = None,
    correction: float | None = None,
    mean: ArrayLike | None = None,
    name: str | None = None,
) -> Array:
    """Variance along axes without NaN, as `numpy.nanvar`; NaN where too few elements are left.

    Examples
    --------
    >>> nbta.nanvar([1.0, np.nan, 3.0])
    np.float64(1.0)
    """
    x, present = _without(x, 0)
    ddof, where = _ddof(ddof, correction), _both(present, where)
    mean = mean if mean is None or x.dtype.kind in "biu" else cast(mean, x.dtype)
    found = var(x, axis, ddof=ddof, keepdims=keepdims, dtype=dtype, where=where, mean=mean)
    return _of_enough(found, where, axis, keepdims, ddof, present, name)


@exported(numpy=2, family=REDUCED)
def nanstd(
    x: ArrayLike,
    axis: Axis = None,
    *,
    ddof: float = 0,
    keepdims: bool = False,
    dtype: DTypeLike | None = None,
    where: ArrayLike | None = None,
    correction: float | None = None,
    mean: ArrayLike | None = None,
    name: str | None = None,
) -> Array:
    """Standard deviation along axes without NaN, as `numpy.nanstd`; see `nbta.std`.

    Examples
    --------
    >>> nbta.nanstd([1.0, np.nan, 3.0])
    np.float64(1.0)
    """
    x, present = _without(x, 0)
    ddof, where = _ddof(ddof, correction), _both(present, where)
    mean = mean if mean is None or x.dtype.kind in "biu" else cast(mean, x.dtype)
    found = std(x, axis, ddof=ddof, keepdims=keepdims, dtype=dtype, where=where, mean=mean)
    return _of_enough(found, where, axis, keepdims, ddof, present, name)


def _nan_extreme(reduce, farthest, better):
    """The greatest or the least of what is no NaN; NaN where there is nothing else."""

    def extreme(x, axis, keepdims, initial, where, name):
        x, present = _without(x, farthest)
        if present is None:
            return reduce(x, axis, keepdims, initial=initial, where=where, name=name)
        if where is not None and initial is None:
            message = "where: no elements have no maximum or minimum; give initial= as well"
            raise invalid("value", message)
        found = reduce(chosen(x, where, farthest), axis, keepdims, name=name)
        has_any = any(present, axis, keepdims, where=where)
        if initial is None:
            return choose(has_any, found, np.array(math.nan, x.dtype))
        initial = cast(initial, x.dtype)
        return choose(has_any, better(found, initial), initial)

    return extreme


_nanmax, _nanmin = _nan_extreme(max, -math.inf, fmax), _nan_extreme(min, math.inf, fmin)


@exported(numpy=2, family=REDUCED)
def nanmax(
    x: ArrayLike,
    axis: Axis = None,
    keepdims: bool = False,
    *,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
    name: str | None = None,
) -> Array:
    """Largest element along axes without NaN, as `numpy.nanmax`; NaN where there are no others.

    Examples
    --------
    >>> nbta.nanmax([1.0, np.nan, 2.0])
    np.float64(2.0)
    """
    return _nanmax(x, axis, keepdims, initial, where, name)


@exported(numpy=2, family=REDUCED)
def nanmin(
    x: ArrayLike,
    axis: Axis = None,
    keepdims: bool = False,
    *,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
    name: str | None = None,
) -> Array:
    """Smallest element along axes without NaN, as `numpy.nanmin`; NaN where there are no others.

    Examples
    --------
    >>> nbta.nanmin([1.0, np.nan, 2.0])
    np.float64(1.0)
    """
    return _nanmin(x, axis, keepdims, initial, where, name)


def _nan_place(place, farthest, x, axis, keepdims):
    """The place of an extreme of what is no NaN; a run fails where there is nothing else."""
    x, present = _without(x, farthest)
    if present is not None:
        some = all(any(present, axis))
        x = checked(x, some, "nanargmax, nanargmin: all items along the axis are NaN")
    return place(x, axis, keepdims=keepdims)


@stands_for("nanargmax", numpy=2)
def _nanargmax(x, axis=None, *, keepdims=False):
    return _nan_place(argmax, -math.inf, x, axis, keepdims)


@stands_for("nanargmin", numpy=2)
def _nanargmin(x, axis=None, *, keepdims=False):
    return _nan_place(argmin, math.inf, x, axis, keepdims)


def _variables(x, rowvar, dtype):
    """Observations as a matrix, of which each row is a variable."""
    x = cast(x, dtype) if x.dtype != dtype else x
    if x.ndim < 2:
        return reshape(x, (1, -1))
    return x if rowvar else swapaxes(x, 0, 1)


def _observed(what, weights, whole):
    """Weights of observations, of which none may be negative; None for none."""
    if weights is None:
        return None
    weights = operand(weights)
    if weights.ndim != 1 or (whole and weights.dtype.kind not in "iub"):
        kind = "integers" if whole else "numbers"
        raise invalid("value", f"cov: {what}: give {kind} in one row, one per observation")
    message = f"cov: {what}: one is negative"
    return checked(cast(weights, np.float64), all(greater_equal(weights, 0)), message)


def _covariances(x, y, rowvar, ddof, dtype, frequencies=None, importance=None):
    """The matrix of covariances, of one variable too."""
    given = [ranked(one) for one in (x, y) if one is not None]
    if builtins.any(one.ndim > 2 for one in given):
        raise invalid("rank", "covariances are of variables in a vector or a matrix; reshape them")
    dtype = np.result_type(*(one.dtype for one in given), np.float64) if dtype is None else dtype
    rows = [_variables(one, rowvar, np.dtype(dtype)) for one in given]
    found = rows[0] if len(rows) == 1 else concatenate(rows, 0)
    several = [one for one in (frequencies, importance) if one is not None]
    weights = functools.reduce(multiply, several) if several else None
    total = real(_counted(found, 1, None)) if weights is None else sum(weights)
    taken = ddof
    if importance is not None and ddof:
        taken = multiply(ddof, divide(sum(multiply(weights, importance)), total))
    apart = subtract(found, average(found, 1, weights, keepdims=True))
    counted = apart if weights is None else multiply(apart, weights)
    found = matmul(apart, swapaxes(conjugate(counted), 0, 1))
    found = multiply(found, divide(1.0, maximum(subtract(total, taken), 0)))
    return _of_several(found)


@stands_for("cov", numpy=7)
def _cov(
    m, y=None, rowvar=True, bias=False, ddof=None, fweights=None, aweights=None, *, dtype=None
):
    """NumPy's; with no more observations than ``ddof`` it divides by 0."""
    ddof, dtype = (1 if bias == 0 else 0) if ddof is None else ddof, inexact_only(dtype)
    weights = _observed("fweights", fweights, True), _observed("aweights", aweights, False)
    found = _covariances(m, y, rowvar, ddof, dtype, *weights)
    return reshape(found, ()) if _dimensions(found) == (1, 1) else found


def _of_several(found):
    """A matrix that is none of one variable, which NumPy makes a scalar of."""
    if _dimensions(found)[0] is not None:
        return found
    message = "cov, corrcoef: there is one variable in a matrix; give it as a vector"
    return checked(found, not_equal(dimensions_along(found, 0), 1), message)


@stands_for("corrcoef", numpy=3)
def _corrcoef(x, y=None, rowvar=True, *, dtype=None):
    """NumPy's, of real numbers; a variable that is constant has NaN."""
    found = _covariances(x, y, rowvar, 1, inexact_only(dtype))
    if found.dtype.kind == "c":
        message = f"corrcoef is for real numbers, not dtype={found.dtype}; divide what np.cov gives"
        raise invalid("dtype", message)
    if _dimensions(found) == (1, 1):
        return reshape(divide(found, found), ())
    width = sqrt(diagonal(found))
    return clip(divide(divide(found, width[:, None]), width), -1, 1)
