"""Reductions along axes, and what is computed along axes like them, such as recurrences."""

from __future__ import annotations

import functools
import math
import operator
from typing import TYPE_CHECKING

import numpy as np

from nbta import shapes
from nbta.codegen.fusion import calling, extreme_of, farthest, fold_items, product_of, total_of
from nbta.codegen.values import Scalar, is_known, product, times, total, typed
from nbta.errors import invalid
from nbta.graph.operation import NotDifferentiable, Spec, Tensor, is_inexact
from nbta.loops import Break, assign, both, call, either, over, select, when
from nbta.loops.nodes import ONE, ZERO
from nbta.ops.core import arithmetic
from nbta.ops.core.arithmetic import (
    add,
    divide,
    equal,
    logical_and,
    logical_or,
    maximum,
    minimum,
    multiply,
    negative,
    not_equal,
)
from nbta.ops.core.axis_arguments import (
    axis_attrs,
    keeping,
    nonempty,
    numbers,
    one_axis,
    operand,
    ordered,
    reducing,
)
from nbta.ops.core.descriptions import CUMULATED, REDUCED
from nbta.ops.core.dispatch import apply, data_spec, define, exported
from nbta.ops.core.elementwise import conjugate, narrow, promoted, wide
from nbta.ops.core.filling import ones_like
from nbta.ops.core.shaping import INT64, broadcast_to, cast, reshape, shape_of
from nbta.ops.elementary.integers import invert
from nbta.ops.indexing.joining import expand_dims, pad

if TYPE_CHECKING:
    from nbta.typing import Array, ArrayLike, Axis, DTypeLike

__all__ = [
    "argmax",
    "argmin",
    "cummax",
    "cummin",
    "cumprod",
    "cumsum",
    "exclusive_cumprod",
    "linear_recurrence",
    "max",
    "mean",
    "min",
    "prod",
    "sum",
]


class Along:
    """Loops over all runs along an axis: items before it, along it, after it."""

    def __init__(self, code, dimensions, axis, reverse=False):
        self._code = code
        self.count, self._reverse = dimensions[axis], reverse
        self.outer_dimension = product(dimensions[:axis])
        self.rest_dimension = product(dimensions[axis + 1 :])
        self.outer, self.rest, self.step = (code.name(stem) for stem in "orj")

    @property
    def is_dense(self):
        """Whether the items of a run lie together."""
        return self.rest_dimension == ONE

    def runs(self):
        """Headers of the loops over runs."""
        pairs = ((self.outer, self.outer_dimension), (self.rest, self.rest_dimension))
        return [over(name, dimension) for name, dimension in pairs]

    def steps(self):
        """The header of the loop along a run."""
        return over(self.step, self.count)

    def place(self):
        """Where in a run a step is."""
        return self.count - 1 - self.step if self._reverse else self.step

    def at(self, block, place):
        """The item of a block in the run."""
        run = total(times(self.outer, times(self.count, self.rest_dimension)), self.rest)
        step = times(place, self.rest_dimension)
        return block.at(run if step == ZERO else run + step)

    def result(self):
        """An item's place in what has one item for each run."""
        return total(times(self.outer, self.rest_dimension), self.rest)


def scan_along(code, op, start, follow, exclusive):
    """A state for each item: ``follow(state, *items)`` gives the next one."""
    result = op.outputs[0]
    dimensions = code.dimensions(op.inputs[0])
    for tensor in op.inputs[1:]:
        for mine, theirs in zip(dimensions, code.dimensions(tensor), strict=True):
            code.equate(mine, theirs)
    blocks = [code.value(tensor) for tensor in op.inputs]
    target = code.result(op, dimensions=dimensions)
    axis = op.attrs["axis"] % len(dimensions)
    along = Along(code, dimensions, axis, op.attrs.get("reverse", False))
    state = code.name("s")
    outer, rest = along.runs()
    with code.nest(outer), code.nest(rest):
        code.add(assign(state, typed(start, result.dtype)))
        with code.nest(along.steps()):
            items = [along.at(block, along.place()) for block in blocks]
            lines = [
                assign(along.at(target, along.place()), state),
                assign(state, typed(follow(state, *items), result.dtype)),
            ]
            code.add(*(lines if exclusive else lines[::-1]))


def _truth(op):
    return op.outputs[0].dtype.kind == "b"


def _evaluate_cumprod(x, *, axis, reverse):
    rows = np.moveaxis(x, axis, 0)[:: -1 if reverse else 1]
    result = np.ones(rows.shape, x.dtype)
    np.cumprod(rows[:-1], axis=0, out=result[1:])
    return np.moveaxis(result[:: -1 if reverse else 1], 0, axis)


def _cumprod_gradient(op, dy):
    axis, reverse = op.attrs["axis"], op.attrs["reverse"]
    inner = linear_recurrence(conjugate(op.inputs[0]), dy, axis, not reverse)
    return [inner * conjugate(op.outputs[0])]


def _emit_exclusive_cumprod(code, op) -> None:
    """Products of the items before each."""
    scan_along(code, op, 1, operator.and_ if _truth(op) else operator.mul, exclusive=True)


EXCLUSIVE_CUMPROD = define(
    "ExclusiveCumProd",
    keeping(numbers),
    _evaluate_cumprod,
    _cumprod_gradient,
    emit=_emit_exclusive_cumprod,
)


@exported
def exclusive_cumprod(
    x: ArrayLike, axis: int = -1, reverse: bool = False, *, name: str | None = None
) -> Array:
    """Along an axis, the product of all elements before each element.

    Parameters
    ----------
    x : array-like or Tensor
        Numbers, of any shape.
    axis : int, default -1
        Axis to multiply along.
    reverse : bool, default False
        Whether to multiply the elements after each element instead.

    Returns
    -------
    Tensor or numpy.ndarray
        Of the shape and dtype of ``x``.

    Examples
    --------
    >>> nbta.exclusive_cumprod([2.0, 3.0, 4.0])
    array([1., 2., 6.])
    """
    x = operand(x)
    attrs = {"axis": one_axis(x, axis), "reverse": bool(reverse)}
    return apply(EXCLUSIVE_CUMPROD, [x], attrs, name)


def _infer_recurrence(a, b, *, axis, reverse):
    try:
        shape = shapes.merge(a.shape, b.shape)
    except ValueError:
        message = f"a has shape {shapes.text(a.shape)} and b {shapes.text(b.shape)}; make them one"
        raise invalid("shape", message) from None
    return keeping(numbers)(Spec(a.dtype, shape), axis=axis)


def _evaluate_recurrence(a, b, *, axis, reverse):
    result = np.zeros(b.shape, b.dtype)
    rows, pushes, steps = (np.moveaxis(array, axis, 0) for array in (result, b, a))
    state = np.zeros((), b.dtype)
    for k in range(len(rows))[:: -1 if reverse else 1]:
        rows[k] = state
        state = steps[k] * state + pushes[k]
    return result


def _recurrence_gradient(op, dy):
    axis, reverse = op.attrs["axis"], op.attrs["reverse"]
    db = linear_recurrence(conjugate(op.inputs[0]), dy, axis, not reverse)
    return [db * conjugate(op.outputs[0]), db]


def _emit_recurrence(code, op) -> None:
    """Each state is a multiple of the one before, and something more."""

    def follow(state, factor, push):
        return factor & state | push if _truth(op) else factor * state + push

    scan_along(code, op, 0, follow, exclusive=True)


RECURRENCE = define(
    "LinearRecurrence",
    _infer_recurrence,
    _evaluate_recurrence,
    _recurrence_gradient,
    emit=_emit_recurrence,
)


@exported
def linear_recurrence(
    a: ArrayLike, b: ArrayLike, axis: int = -1, reverse: bool = False, *, name: str | None = None
) -> Array:
    """Along an axis, ``u`` with ``u[0] = 0`` and ``u[k + 1] = a[k] * u[k] + b[k]``.

    Parameters
    ----------
    a, b : array-like or Tensor
        Factors and summands, of one shape.
    axis : int, default -1
        Axis of the recurrence.
    reverse : bool, default False
        Whether to begin at the end of the axis, with ``u[-1] = 0``.

    Returns
    -------
    Tensor or numpy.ndarray
        ``u``, of the shape of ``a`` and in the promoted dtype.

    Examples
    --------
    >>> nbta.linear_recurrence([2.0, 2.0, 2.0], [1.0, 1.0, 1.0])
    array([0., 1., 3.])
    """
    a, b = promoted(a, b)
    attrs = {"axis": one_axis(b, axis), "reverse": bool(reverse)}
    return apply(RECURRENCE, [a, b], attrs, name)


def kept_axes(op) -> list[bool]:
    """Axis by axis of the input, whether it stays."""
    rank, axis = op.inputs[0].spec.rank, op.attrs["axis"]
    axes = set(range(rank)) if axis is None else {one % rank for one in axis}
    return [axis not in axes for axis in range(rank)]


def result_dimensions(code, op, kept):
    """Dimensions of the result."""
    dimensions = code.dimensions(op.inputs[0])
    if op.attrs.get("keepdims"):
        return with_ones(dimensions, kept)
    return tuple(e for e, k in zip(dimensions, kept, strict=True) if k)


def with_ones(dimensions, kept):
    """Dimensions with 1 in place of those of axes that do not stay."""
    return tuple(e if k else ONE for e, k in zip(dimensions, kept, strict=True))


def _fold(code, op, fold, finish=None):
    kept = kept_axes(op)
    fold_items(
        code, op.inputs[0], op.outputs[0], kept, result_dimensions(code, op, kept), fold, finish
    )


def gone(code, op):
    """Dimensions of the axes that do not stay."""
    dimensions = code.dimensions(op.inputs[0])
    return [e for e, k in zip(dimensions, kept_axes(op), strict=True) if not k]


def _alone(code, op):
    """A result that is its input, of rank 0."""
    result = op.outputs[0]
    code.bind(result, code.local(code.scalar(op.inputs[0]), result.dtype))


def refuse_empty(code, dimensions) -> None:
    """Leave where an axis has no items."""
    for dimension in dimensions:
        if not is_known(dimension) or dimension == ZERO:
            code.fail_if(dimension.equals(0))


@functools.cache
def _total_dtype(dtype):
    """That of a sum, by NumPy's rules: integers are widened."""
    return np.sum(np.ones(1, dtype)).dtype


def mean_dtype(dtype):
    """That of a mean: integers become floats."""
    return dtype if is_inexact(dtype) else np.dtype(np.float64)


def axes_back(value, op):
    """A result, or its gradient, with the lost axes again as axes of length 1.

    A reduction of all axes stays a scalar, which broadcasts.
    """
    axis = op.attrs["axis"]
    if op.attrs["keepdims"] or not axis:
        return value
    if len({one < 0 for one in axis}) > 1:
        message = f"the gradient along axes {axis} needs a known rank; give axes of one sign"
        raise invalid("rank", message)
    for one in sorted(axis, reverse=axis[0] < 0):
        value = expand_dims(value, one)
    return value


def spread(dy, op):
    """A gradient returned to all the elements that were reduced."""
    return broadcast_to(axes_back(dy, op), shape_of(op.inputs[0]))


def reduce_by(record, x, axis, keepdims, name):
    """A reduction along axes as users give them."""
    if not isinstance(keepdims, bool | np.bool_ | int):
        message = (
            f"keepdims: {keepdims!r} is not a truth value; give a dtype, and what else, by name"
        )
        raise invalid("value", message)
    return apply(record, [x], axis_attrs(x, axis, keepdims=bool(keepdims)), name)


def chosen(x, where, other):
    """The elements that a reduction takes: all without a mask, else with others in their place."""
    if where is None:
        return x
    found = arithmetic.where(where, x, cast(other, x.dtype))
    have, want = data_spec(found).shape, data_spec(x).shape
    if have is not None and want is not None and len(have) != len(want):
        message = f"where: a mask of {len(have)} axes for an array of {len(want)}"
        raise invalid("shape", f"{message}; it is broadcast to the array, and not the array to it")
    return found


def _in_dtype(x, dtype):
    x = operand(x)
    return x if dtype is None else cast(x, dtype)


def _as_asked(found, dtype):
    """A result in the dtype that is asked for, in which integers wrap and truth values merge.

    What was computed with more bits, or counted, is the same then.
    """
    if dtype is None or found.dtype == dtype:
        return found
    return cast(found, dtype)


def _with_first(combine, found, initial, name):
    """A result of a reduction that begins with a value of the user's."""
    return found if initial is None else combine(found, cast(initial, found.dtype), name=name)


def inexact_only(dtype):
    """A dtype in which means are computed."""
    if dtype is not None and not is_inexact(np.dtype(dtype)):
        message = (
            f"dtype={np.dtype(dtype)}: means are of floats or complex numbers; cast the result"
        )
        raise invalid("dtype", message)
    return dtype


def _evaluate_sum(x, *, axis, keepdims):
    result = _total_dtype(x.dtype)
    return narrow(np.sum(x, axis=axis, dtype=wide(result), keepdims=keepdims), result)


def _emit_total(code, op) -> None:
    """Sums."""
    if not op.inputs[0].spec.rank:
        return _alone(code, op)
    return _fold(code, op, total_of(op.outputs[0].dtype))


SUM = define(
    "Sum",
    reducing(_total_dtype),
    _evaluate_sum,
    lambda op, dy: [spread(dy, op)],
    emit=_emit_total,
    total=True,
    linear=(0,),
)


@exported(numpy=2, family=REDUCED)
def sum(
    x: ArrayLike,
    axis: Axis = None,
    keepdims: bool = False,
    *,
    dtype: DTypeLike | None = None,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
    name: str | None = None,
) -> Array:
    """Sum of the elements along axes, as `numpy.sum`.

    Booleans and integers are added as int64 or uint64. The sum of no elements is 0.

    Examples
    --------
    >>> nbta.sum([[1, 2], [3, 4]], axis=0)
    array([4, 6])
    """
    found = reduce_by(SUM, chosen(_in_dtype(x, dtype), where, 0), axis, keepdims, name)
    return _with_first(add, _as_asked(found, dtype), initial, name)


def _evaluate_mean(x, *, axis, keepdims):
    result = mean_dtype(x.dtype)
    total = np.sum(x, axis=axis, dtype=wide(result), keepdims=keepdims)
    shares = np.divide(total, x.size // np.size(total) if np.size(total) else 1, dtype=total.dtype)
    return narrow(shares, result)


def _mean_gradient(op, dy):
    x, axis = op.inputs[0], op.attrs["axis"]
    dimensions = x.spec.shape
    if dimensions is not None and axis is not None:
        dimensions = tuple(dimensions[one] for one in axis)
    if shapes.is_known(dimensions):
        share = np.array(1 / (math.prod(dimensions) or 1), dy.dtype)
        return [spread(dy * share, op)]
    lengths = shape_of(x)
    if axis is None:
        count = prod(lengths)
    else:
        count = functools.reduce(operator.mul, [lengths[one] for one in axis], 1)
    return [spread(dy * cast(1.0 / count, dy.dtype), op)]


def _emit_mean(code, op) -> None:
    """Sums by counts."""
    if not op.inputs[0].spec.rank:
        return _alone(code, op)
    dtype = op.outputs[0].dtype
    count = typed(product(gone(code, op)), dtype)

    def finish(sum_):
        return call("complex_divide", sum_, count) if dtype.kind == "c" else sum_ / count

    return _fold(code, op, total_of(dtype), finish)


MEAN = define(
    "Mean",
    reducing(mean_dtype),
    _evaluate_mean,
    _mean_gradient,
    emit=_emit_mean,
    total=True,
    linear=(0,),
)


@exported(numpy=2, family=REDUCED)
def mean(
    x: ArrayLike,
    axis: Axis = None,
    keepdims: bool = False,
    *,
    dtype: DTypeLike | None = None,
    where: ArrayLike | None = None,
    name: str | None = None,
) -> Array:
    """Arithmetic mean of the elements along axes, as `numpy.mean`.

    The mean of integers is float64, the mean of no elements NaN.

    Examples
    --------
    >>> nbta.mean([[1, 2], [3, 4]], axis=1)
    array([1.5, 3.5])
    """
    x = _in_dtype(x, inexact_only(dtype))
    if where is None:
        return reduce_by(MEAN, x, axis, keepdims, name)
    x = cast(x, mean_dtype(x.dtype))
    count = sum(chosen(ones_like(x), where, 0), axis, keepdims)
    return divide(sum(x, axis, keepdims, where=where), count, name=name)


def _extreme(name, reduce, emit):
    """The record of max or min; equal ones share the gradient."""

    def evaluate(x, *, axis, keepdims):
        if not x.size:
            nonempty(x.shape, axis)
        return reduce(x, axis=axis, keepdims=keepdims)

    def gradient(op, dy):
        taken = equal(op.inputs[0], axes_back(op.outputs[0], op))
        # float16 counts to 65504 only.
        count = sum(cast(taken, wide(dy.dtype)), op.attrs["axis"], op.attrs["keepdims"])
        share = dy / count if count.dtype == dy.dtype else cast(dy / count, dy.dtype)
        return [arithmetic.where(taken, axes_back(share, op), 0.0)]

    infer = reducing(lambda dtype: dtype, ordered, empty=False)
    return define(name, infer, evaluate, gradient, emit=emit)


def _emit_extreme(sign):
    """The rule of the greatest (1) or the least (-1)."""

    def rule(code, op):
        if not op.inputs[0].spec.rank:
            return _alone(code, op)
        refuse_empty(code, gone(code, op))
        return _fold(code, op, extreme_of(op.outputs[0].dtype, sign))

    return rule


MAX = _extreme("Max", np.max, _emit_extreme(1))
MIN = _extreme("Min", np.min, _emit_extreme(-1))


def _masked(x, initial, where):
    """What an extreme item is looked for in, and the value to begin with, in its dtype."""
    x = operand(x)
    initial = None if initial is None else cast(initial, x.dtype)
    if where is None:
        return x, initial
    if initial is None:
        message = "where: no elements have no maximum or minimum; give initial= as well"
        raise invalid("value", message)
    return chosen(x, where, initial), initial


@exported(also="amax", numpy=2, family=REDUCED)
def max(
    x: ArrayLike,
    axis: Axis = None,
    keepdims: bool = False,
    *,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
    name: str | None = None,
) -> Array:
    """Largest element along axes, as `numpy.max`; equal elements share the gradient.

    Raises
    ------
    InvalidArgumentError
        For axes without elements where there is no ``initial``, and for complex numbers.

    Examples
    --------
    >>> nbta.max([[1, 2], [3, 4]], axis=0)
    array([3, 4])
    """
    x, initial = _masked(x, initial, where)
    found = reduce_by(MAX, x, axis, keepdims, name)
    return found if initial is None else maximum(found, initial)


@exported(also="amin", numpy=2, family=REDUCED)
def min(
    x: ArrayLike,
    axis: Axis = None,
    keepdims: bool = False,
    *,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
    name: str | None = None,
) -> Array:
    """Smallest element along axes, as `numpy.min`; equal elements share the gradient.

    Raises
    ------
    InvalidArgumentError
        For axes without elements where there is no ``initial``, and for complex numbers.

    Examples
    --------
    >>> nbta.min([[1, 2], [3, 4]], axis=0)
    array([1, 2])
    """
    x, initial = _masked(x, initial, where)
    found = reduce_by(MIN, x, axis, keepdims, name)
    return found if initial is None else minimum(found, initial)


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
    dx, product = spread(dy, op), x
    for one in axis:
        dx = dx * conjugate(_others(product, one))
        product = prod(product, one, keepdims=True)
    return [dx]


def _emit_prod(code, op) -> None:
    """Products."""
    if not op.inputs[0].spec.rank:
        return _alone(code, op)
    return _fold(code, op, product_of(op.outputs[0].dtype))


PROD = define(
    "Prod",
    reducing(_total_dtype),
    _evaluate_prod,
    _prod_gradient,
    emit=_emit_prod,
    total=True,
)


@exported(numpy=2, family=REDUCED)
def prod(
    x: ArrayLike,
    axis: Axis = None,
    keepdims: bool = False,
    *,
    dtype: DTypeLike | None = None,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
    name: str | None = None,
) -> Array:
    """Product of the elements along axes, as `numpy.prod`.

    Booleans and integers are multiplied as int64 or uint64. The gradient is exact where elements
    are 0.

    Examples
    --------
    >>> nbta.prod([[1, 2], [3, 4]], axis=0)
    array([3, 8])
    """
    found = reduce_by(PROD, chosen(_in_dtype(x, dtype), where, 1), axis, keepdims, name)
    return _with_first(multiply, _as_asked(found, dtype), initial, name)


def _evaluate_argmax(x, *, axis):
    if not x.size:
        nonempty(x.shape, axis)
    return np.argmax(x, axis=None if axis is None else axis[0])


def _emit_argmax(code, op) -> None:
    """The place of the first of the greatest items, or of the first NaN."""
    x, result = code.value(op.inputs[0]), op.outputs[0]
    if isinstance(x, Scalar):
        return code.bind(result, code.local(ZERO, result.dtype))
    kept = kept_axes(op)
    refuse_empty(code, [e for e, k in zip(x.dimensions, kept, strict=True) if not k])
    if not any(kept):
        along = Along(code, (code.dimension(product(x.dimensions)),), 0)
        return code.bind(result, Scalar(_place_in_run(code, along, x), result.dtype))
    axis = kept.index(False)
    target = code.result(op, dimensions=x.dimensions[:axis] + x.dimensions[axis + 1 :])
    along = Along(code, x.dimensions, axis)
    if not along.is_dense:
        return _places_in_rows(code, along, x, target)
    with code.nest(along.runs()[0]):
        code.add(assign(target.at(along.outer), _place_in_run(code, along, x)))
    return None


def _place_in_run(code, along, x):
    """The greatest of items that lie together, and then the first that is like it."""
    fold = extreme_of(x.dtype, 1)
    best, found, item = code.name("s"), code.name("k"), code.name("x")
    run = times(along.outer, along.count) if along.outer_dimension != ONE else ZERO
    code.add(assign(best, fold.first), assign(found, 0))
    with code.nest(along.steps()):
        read = fold.item(x.at(total(run, along.step)))
        code.add(assign(best, fold.inner(best, read)))
    greatest = code.local(fold.back(best), x.dtype).item
    same = item.equals(greatest)
    if x.dtype.kind == "f":
        same = either(same, both(item.differs(item), greatest.differs(greatest)))
    with code.nest(along.steps()):
        code.add(assign(item, x.at(total(run, along.step))))
        with code.nest(when(same)):
            code.add(assign(found, along.step), Break())
    return found


def _places_in_rows(code, along, x, target):
    """Row by row, with the greatest so far of each column."""
    best = code.new(x.dtype, (code.dimension(along.rest_dimension),))
    around = code.lines
    outer, header = along.runs()
    code.lines = code.lines.nest(outer)
    item, last, better = (code.name(stem) for stem in "xsq")
    with code.nest(header):
        code.add(assign(best.at(along.rest), along.at(x, 0)),
                 assign(target.at(along.result()), 0))  # fmt: skip
    is_better = item > last
    if x.dtype.kind == "f":
        is_better = both(either(is_better, item.differs(item)), last.equals(last))
    with code.nest(along.steps()), code.nest(header):
        place = target.at(along.result())
        code.add(
            assign(item, along.at(x, along.step)),
            assign(last, best.at(along.rest)),
            assign(better, is_better),
            assign(best.at(along.rest), select(better, item, last)),
            assign(place, select(better, along.step, place)),
        )
    code.lines = around
    code.release(best.base)


ARGMAX = define(
    "ArgMax",
    reducing(lambda dtype: INT64, ordered, empty=False),
    _evaluate_argmax,
    NotDifferentiable("its result is an index"),
    emit=_emit_argmax,
)


@exported(numpy=2, family=REDUCED)
def argmax(
    x: ArrayLike, axis: int | None = None, *, keepdims: bool = False, name: str | None = None
) -> Array:
    """Index of the largest element along an axis, as `numpy.argmax`; it has no gradient.

    Parameters
    ----------
    x : array-like or Tensor
        Real numbers. Of equal elements the first counts.
    axis : int, optional
        Axis to search along; by default ``x`` is flattened first.

    Returns
    -------
    Tensor or numpy.ndarray
        Indices, as int64, of the shape of ``x`` without the axis.

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
    attrs = {"axis": None if axis is None else (one_axis(x, axis),)}
    if not keepdims:
        return apply(ARGMAX, [x], attrs, name)
    return _with_axes(apply(ARGMAX, [x], attrs), x, attrs["axis"], name)


def _with_axes(places, x, axis, name):
    """Places with the lost axes again, which is what a reduction would leave."""
    if axis is not None:
        return expand_dims(places, axis[0], name=name)
    rank = x.spec.rank if isinstance(x, Tensor) else x.ndim
    if rank is None:
        raise invalid("rank", "keepdims: without an axis it needs a known rank; give an axis")
    return reshape(places, (1,) * rank, name=name)


@exported(numpy=2, family=REDUCED)
def argmin(
    x: ArrayLike, axis: int | None = None, *, keepdims: bool = False, name: str | None = None
) -> Array:
    """Index of the smallest element along an axis, as `numpy.argmin`; it has no gradient.

    Parameters
    ----------
    x : array-like or Tensor
        Real numbers. Of equal elements the first counts.
    axis : int, optional
        Axis to search along; by default ``x`` is flattened first.

    Returns
    -------
    Tensor or numpy.ndarray
        Indices, as int64, of the shape of ``x`` without the axis.

    Raises
    ------
    InvalidArgumentError
        For an axis without elements or that is not there, and for complex numbers.

    Examples
    --------
    >>> nbta.argmin([[1, 5], [7, 4]], axis=1)
    array([0, 1])
    """
    return argmax(_opposite(operand(x)), axis, keepdims=keepdims, name=name)


def _opposite(x):
    """Numbers in the opposite order; of integers by their bits, as the least has no negative."""
    return invert(x) if x.dtype.kind in "biu" else negative(x)


def _infer_cumsum(spec, *, axis, reverse):
    return Spec(_total_dtype(spec.dtype), keeping(numbers)(spec, axis=axis).shape)


def _evaluate_cumsum(x, *, axis, reverse):
    result = _total_dtype(x.dtype)
    x = np.flip(x, axis) if reverse else x
    sums = narrow(np.cumsum(x, axis=axis, dtype=wide(result)), result)
    return np.flip(sums, axis) if reverse else sums


def _cumsum_gradient(op, dy):
    return [apply(CUMSUM, [dy], {**op.attrs, "reverse": not op.attrs["reverse"]})]


def _emit_cumsum(code, op) -> None:
    """Sums up to each item, in order."""
    scan_along(code, op, 0, operator.add, exclusive=False)


CUMSUM = define(
    "CumSum",
    _infer_cumsum,
    _evaluate_cumsum,
    _cumsum_gradient,
    emit=_emit_cumsum,
    total=True,
    linear=(0,),
)


def _axis_of_scan(x, axis):
    """The operand and the axis of a scan; without an axis it is flattened."""
    x, axis = (reshape(x, -1), 0) if axis is None else (x, axis)
    return x, one_axis(x, axis)


@exported(numpy=2, family=CUMULATED)
def cumsum(
    x: ArrayLike,
    axis: int | None = None,
    *,
    dtype: DTypeLike | None = None,
    name: str | None = None,
) -> Array:
    """Cumulative sum along an axis, as `numpy.cumsum`.

    Booleans and integers are added as int64 or uint64.

    Examples
    --------
    >>> nbta.cumsum([[1, 2], [3, 4]], axis=1)
    array([[1, 3],
           [3, 7]])
    """
    x, axis = _axis_of_scan(_in_dtype(x, dtype), axis)
    return _as_asked(apply(CUMSUM, [x], {"axis": axis, "reverse": False}, name), dtype)


@exported(numpy=2, family=CUMULATED)
def cumprod(
    x: ArrayLike,
    axis: int | None = None,
    *,
    dtype: DTypeLike | None = None,
    name: str | None = None,
) -> Array:
    """Cumulative product along an axis, as `numpy.cumprod`.

    Booleans and integers are multiplied as int64 or uint64. The gradient is exact where elements
    are 0.

    Examples
    --------
    >>> nbta.cumprod([1.0, 2.0, 3.0])
    array([1., 2., 6.])
    """
    x, axis = _axis_of_scan(_in_dtype(x, dtype), axis)
    x = cast(x, _total_dtype(x.dtype))
    before = apply(EXCLUSIVE_CUMPROD, [x], {"axis": axis, "reverse": False})
    return _as_asked(multiply(before, x, name=name), dtype)


def _infer_running(spec, *, axis, sign):
    return keeping(ordered)(spec, axis=axis)


def _evaluate_running(x, *, axis, sign):
    return (np.maximum if sign > 0 else np.minimum).accumulate(x, axis=axis)


def _running_gradient(op, dy):
    """What arrives while one element is the greatest goes to that; the first of equals is it."""
    y, axis = op.outputs[0], op.attrs["axis"]
    if y.spec.rank is None:
        message = "the gradient of a running maximum needs a known rank; give the shape"
        raise invalid("rank", message)
    axis %= y.spec.rank
    before, after = (y[(slice(None),) * axis + (part,)] for part in (np.s_[:-1], np.s_[1:]))
    both_nan = logical_and(not_equal(before, before), not_equal(after, after))
    stays = cast(logical_or(equal(before, after), both_nan), dy.dtype)
    widths = [(int(one == axis), 0) for one in range(y.spec.rank)]
    stays = pad(stays, widths)
    later = linear_recurrence(stays, stays * dy, axis, reverse=True)
    return [(1 - stays) * (dy + later)]


def _emit_running(code, op) -> None:
    """The greatest, or the least, up to each item."""
    dtype, sign = op.outputs[0].dtype, op.attrs["sign"]
    step = calling("maximum" if sign > 0 else "minimum")
    scan_along(code, op, farthest(dtype, -sign), step, exclusive=False)


RUNNING = define(
    "RunningExtreme", _infer_running, _evaluate_running, _running_gradient, emit=_emit_running
)


def _running(x, axis, sign, name):
    x, axis = _axis_of_scan(operand(x), axis)
    return apply(RUNNING, [x], {"axis": axis, "sign": sign}, name)


@exported(family=CUMULATED)
def cummax(x: ArrayLike, axis: int | None = None, *, name: str | None = None) -> Array:
    """Running maximum along an axis, as ``numpy.maximum.accumulate``.

    It is NaN from the first NaN on. The gradient goes to the first of equal elements.

    Parameters
    ----------
    x : array-like or Tensor
        Real numbers or booleans, of any shape.

    Raises
    ------
    InvalidArgumentError
        For an axis that ``x`` does not have, and for complex numbers.

    Examples
    --------
    >>> nbta.cummax([1.0, 3.0, 2.0])
    array([1., 3., 3.])
    """
    return _running(x, axis, 1, name)


@exported(family=CUMULATED)
def cummin(x: ArrayLike, axis: int | None = None, *, name: str | None = None) -> Array:
    """Running minimum along an axis, as ``numpy.minimum.accumulate``.

    It is NaN from the first NaN on. The gradient goes to the first of equal elements.

    Parameters
    ----------
    x : array-like or Tensor
        Real numbers or booleans, of any shape.

    Raises
    ------
    InvalidArgumentError
        For an axis that ``x`` does not have, and for complex numbers.

    Examples
    --------
    >>> nbta.cummin([3.0, 1.0, 2.0])
    array([3., 1., 1.])
    """
    return _running(x, axis, -1, name)
