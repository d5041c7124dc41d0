"""Tensors made from numbers: constants, filled ones, ranges, and what a run is given."""

from __future__ import annotations

import functools
import math
import weakref
from typing import TYPE_CHECKING

import numpy as np

from nbta import shapes
from nbta.codegen.fusion import joined
from nbta.codegen.values import Block, product, times, total, typed
from nbta.codegen.windows import clear, number_in
from nbta.codegen.windows import fill as put_item
from nbta.dtypes import as_dtype, without_loss
from nbta.errors import FailedPreconditionError, invalid
from nbta.graph.graph import current
from nbta.graph.operation import NotDifferentiable, Spec, Tensor
from nbta.loops import assign, both, call, either, negated, otherwise, over, select, when
from nbta.loops.nodes import ONE, ZERO, as_node
from nbta.ops.core.dimensions import as_shape, pattern_of
from nbta.ops.core.dispatch import CONSTANT, apply, as_array, as_tensor, building, define, exported
from nbta.ops.core.elementwise import common_dtype, promoted
from nbta.ops.core.shaping import cast, new_dimensions, shape_of, size, sum_to
from nbta.runtime.intrinsics import MOST_ITEMS
from nbta.tuning import WHOLE_FILL

if TYPE_CHECKING:
    from nbta.typing import Array, ArrayLike, DTypeLike, Pattern, ShapeLike


def _infer_fill(_, value, *, pattern):
    if any(type(dimension) is int and dimension < 0 for dimension in pattern or ()):
        message = f"shape: {shapes.text(pattern)} has a negative dimension"
        raise invalid("shape", message)
    return Spec(value.dtype, pattern)


def _emit_fill(code, op) -> None:
    """One item everywhere."""
    dimensions = new_dimensions(code, op, 0)
    value, result = op.inputs[1], op.outputs[0]
    if not dimensions:
        return code.bind(result, code.value(value))
    group = joined(code, [], dimensions)
    return group.repeat(code, code.scalar(value), result)


FILL = define(
    "Fill",
    _infer_fill,
    lambda shape, value, *, pattern: np.full(shape, value),
    lambda op, dy: [None, sum_to(dy, ())],
    emit=_emit_fill,
    shape_input=0,
    linear=(1,),
    moves=True,
)


def _infer_fill_around(shape, value, *box, pattern, axes):
    return _infer_fill(shape, value, pattern=pattern)


def _fill_around(shape, value, *box, pattern, axes):
    """A fill whose box has what no program may read."""
    result = np.full(shape, value)
    inside = [slice(None)] * result.ndim
    for axis, first, count in zip(axes, box[::2], box[1::2], strict=True):
        inside[axis] = slice(*_span(int(first), int(count), result.shape[axis], max, min))
    result[tuple(inside)] = np.nan if result.dtype.kind in "fc" else 77
    return result


def _span(first, count, length, most, least):
    """Where a box begins and ends along an axis."""
    low = least(most(first, 0), length)
    return low, least(most(first + count, low), length)


def _emit_fill_around(code, op) -> None:
    """One item around a box."""
    dimensions = new_dimensions(code, op, 0)
    put, block = _put_everywhere(code, op.inputs[1]), code.result(op, dimensions=dimensions)
    ends = map(code.integer, op.inputs[2:])
    spans = {
        axis: _span(next(ends), next(ends), dimensions[axis], *_EXTREMES)
        for axis in op.attrs["axes"]
    }
    spans = {axis: [code.variable(end, "o") for end in span] for axis, span in spans.items()}
    low, high = spans[max(spans)]  # rows of few items take longer to go around than to fill
    with code.nest(when(high - low > WHOLE_FILL)):
        _put_around(code, block, put, 0, block.offset, spans)
    with code.nest(otherwise()):
        put(code, block)


def _put_everywhere(code, value):
    """What puts a value in all places of a block."""
    if value.op.record is CONSTANT and not any(value.op.attrs["value"].tobytes()):
        return clear
    item = code.scalar(value)
    return lambda code, block: put_item(code, block, item)


def _put_around(code, block, put, axis, place, spans):
    """Fill what is around a box, from an axis on; the items of that begin at a place."""
    rest = {a: span for a, span in spans.items() if a > axis}
    inner = product(block.dimensions[axis + 1 :])
    low, high = spans.get(axis, (ZERO, block.dimensions[axis]))
    if axis in spans:
        for start, count in ((ZERO, low), (high, block.dimensions[axis] - high)):
            part = Block(block.base, (times(count, inner),), total(place, times(start, inner)))
            put(code, part)
    if rest:
        row = code.name("i")
        with code.nest(over(row, low, high)):
            _put_around(code, block, put, axis + 1, total(place, times(row, inner)), rest)


_EXTREMES = tuple(functools.partial(call, name) for name in ("max", "min"))

#: A fill around a box of items that are all written before anything reads them: along some axes,
#: in pairs, the first index and how many follow. `nbta.compiler.partial_fills` proves that.
FILL_AROUND = define(
    "FillAround",
    _infer_fill_around,
    _fill_around,
    NotDifferentiable("it is made after derivatives are"),
    emit=_emit_fill_around,
    shape_input=0,
)


@exported
def fill(shape: ShapeLike, value: ArrayLike, *, name: str | None = None) -> Array:
    """A tensor with one value in all places, as `numpy.full`.

    Parameters
    ----------
    shape : int, tuple of int or Tensor, or Tensor
        The shape of the result.
    value : scalar or Tensor of rank 0
        The value.

    Returns
    -------
    Tensor or numpy.ndarray
        Of the given shape, in the dtype of the value.

    Examples
    --------
    >>> nbta.fill((2,), 7.0)
    array([7., 7.])
    """
    wanted = as_shape(shape, value)
    return apply(FILL, [wanted, value], {"pattern": pattern_of(wanted)}, name)


@exported
def zeros(shape: ShapeLike, dtype: DTypeLike = np.float64, *, name: str | None = None) -> Array:
    """A tensor of zeros, as `numpy.zeros`.

    Parameters
    ----------
    shape : int, tuple of int or Tensor, or Tensor
        The shape of the result.
    dtype : dtype-like, default float64
        The dtype of the result.

    Returns
    -------
    Tensor or numpy.ndarray
        Of the given shape and dtype.

    Examples
    --------
    >>> nbta.zeros(2)
    array([0., 0.])
    """
    return fill(shape, np.zeros((), as_dtype(dtype)), name=name)


@exported
def ones(shape: ShapeLike, dtype: DTypeLike = np.float64, *, name: str | None = None) -> Array:
    """A tensor of ones, as `numpy.ones`.

    Parameters
    ----------
    shape : int, tuple of int or Tensor, or Tensor
        The shape of the result.
    dtype : dtype-like, default float64
        The dtype of the result.

    Returns
    -------
    Tensor or numpy.ndarray
        Of the given shape and dtype.

    Examples
    --------
    >>> nbta.ones(2, "int64")
    array([1, 1])
    """
    return fill(shape, np.ones((), as_dtype(dtype)), name=name)


def _full_like(x, value, dtype, name):
    x = x if isinstance(x, Tensor) or building() is None else as_tensor(x)
    if not isinstance(x, Tensor):
        x = as_array(x)
        wanted = np.array(x.shape, np.int64)
    else:
        wanted = shape_of(x)
    dtype = x.dtype if dtype is None else as_dtype(dtype)
    return fill(wanted, np.full((), value, dtype), name=name)


@exported(numpy=2)
def zeros_like(x: ArrayLike, dtype: DTypeLike | None = None, *, name: str | None = None) -> Array:
    """Zeros of the shape of another tensor, as `numpy.zeros_like`.

    Parameters
    ----------
    x : array-like or Tensor
        The tensor to take the shape from.
    dtype : dtype-like, optional
        The dtype of the result; that of ``x`` by default.

    Returns
    -------
    Tensor or numpy.ndarray
        Of the shape of ``x``.

    Examples
    --------
    >>> nbta.zeros_like([1.5, 2.5])
    array([0., 0.])
    """
    return _full_like(x, 0, dtype, name)


@exported(numpy=2)
def ones_like(x: ArrayLike, dtype: DTypeLike | None = None, *, name: str | None = None) -> Array:
    """Ones of the shape of another tensor, as `numpy.ones_like`.

    Parameters
    ----------
    x : array-like or Tensor
        The tensor to take the shape from.
    dtype : dtype-like, optional
        The dtype of the result; that of ``x`` by default.

    Returns
    -------
    Tensor or numpy.ndarray
        Of the shape of ``x``.

    Examples
    --------
    >>> nbta.ones_like([1.5, 2.5])
    array([1., 1.])
    """
    return _full_like(x, 1, dtype, name)


def _unfed(*, spec, label):
    error = FailedPreconditionError(
        f"the placeholder {label!r} got no value; give Session.run one in feed_dict, of {spec}"
    )
    error.reason = "unfed"
    raise error


def _no_gradient(op, dy):
    return []


PLACEHOLDER = define("Placeholder", lambda *, spec, label: spec, _unfed, _no_gradient, fed=True)


@exported
def placeholder(dtype: DTypeLike, shape: Pattern = None, *, name: str | None = None) -> Tensor:
    """Add a tensor to a graph whose value is fed in each run.

    Parameters
    ----------
    dtype : dtype-like
        The dtype of the values.
    shape : tuple of int or None, optional
        None in the tuple is a dimension that may differ between runs; None instead of the tuple
        allows any shape.
    name : str, optional
        Name of the operation.

    Returns
    -------
    Tensor
        The placeholder.

    Raises
    ------
    InvalidArgumentError
        Outside graphs.

    Examples
    --------
    >>> with nbta.Graph().as_default() as g:
    ...     x = nbta.placeholder("float64", (None, 2), name="x")
    >>> x.shape
    (?, 2)
    """
    graph = current()
    if graph is None:
        message = "placeholder: no graph is being built; open one with Graph().as_default()"
        raise invalid("graph", message)
    if graph.root is not graph:
        message = "placeholder: make it outside of the loop or branch and use it there"
        raise invalid("graph", message)
    spec = Spec(as_dtype(dtype), shapes.as_pattern("shape", shape))
    attrs = {"spec": spec, "label": name or "Placeholder"}
    with graph.control_dependencies(None):
        return graph.create(PLACEHOLDER, [], attrs, name=name).outputs[0]


def _converted(value, dtype):
    """A value in another dtype: numbers of Python without loss, arrays within their kind."""
    given = as_array(value)
    if hasattr(value, "dtype"):
        fits = np.can_cast(given.dtype, dtype, "same_kind")
        array = given.astype(dtype) if fits else None
    else:
        array = without_loss(value, dtype)
    if array is None:
        message = f"constant: {value!r} does not fit {dtype}; round it, or cast it with nbta.cast"
        raise invalid("dtype", message)
    return array


#: By identity, arrays that their user promised not to change.
_promised: dict[int, weakref.ref] = {}


def _forget(key: int, _: weakref.ref) -> None:
    _promised.pop(key, None)


def is_promised(array: np.ndarray) -> bool:
    """Whether an array is what `constant` gave outside of graphs."""
    return id(array) in _promised


@exported
def constant(value: ArrayLike, dtype: DTypeLike | None = None, *, name: str | None = None) -> Array:
    """Return a tensor of a value that is known now; outside graphs, an array.

    The caller promises that the value does not change: a traced function that reads such an array
    from outside, or calls ``nbta.constant(w)`` for an array from outside, uses the values that the
    array had when it was traced, and is traced again for another array. Changes of all other arrays
    from outside are seen at each call; see `nbta.function`.

    Parameters
    ----------
    value : array-like
        The value.
    dtype : dtype-like, optional
        By default, that of the value.
    name : str, optional
        Name of the operation in a graph.

    Returns
    -------
    numpy.ndarray or Tensor
        The value.

    Raises
    ------
    InvalidArgumentError
        If the value is not an array, or does not fit the dtype.

    Examples
    --------
    >>> nbta.constant([1, 2], dtype="float32")
    array([1., 2.], dtype=float32)
    """
    array = as_array(value) if dtype is None else _converted(value, as_dtype(dtype))
    array, graph = np.array(array), current()
    if graph is None:
        _promised[id(array)] = weakref.ref(array, functools.partial(_forget, id(array)))
        return array
    array.flags.writeable = False
    with graph.control_dependencies(None):
        return graph.create(CONSTANT, [], {"value": array}, name=name or "Const").outputs[0]


def _infer_range(start, stop, step, *, dtype, dimension):
    for spec in (start, stop, step):
        if spec.shape is not None and spec.shape != ():
            message = f"a bound has shape {shapes.text(spec.shape)}; give scalars"
            raise invalid("shape", message)
    return Spec(dtype, (dimension,))


def _count(start, stop, step):
    """How many numbers there are, by NumPy's rule."""
    if step == 0:
        raise invalid("step", "step: it must not be 0")
    if all(isinstance(n, int) for n in (start, stop, step)):
        return len(range(start, stop, step))
    count = (stop - start) / step
    if not math.isfinite(count):
        raise invalid(
            "range", f"from {start} to {stop} by {step} there is no end; give finite bounds"
        )
    return max(0, math.ceil(count))


def _evaluate_range(start, stop, step, *, dtype, dimension):
    start, stop, step = (np.asarray(n).item() for n in (start, stop, step))
    count = _count(start, stop, step)
    if count > MOST_ITEMS:  # NumPy gives none from 2**63 - 512 on
        raise MemoryError(f"Unable to allocate {count} numbers from {start} to {stop} by {step}")
    return np.arange(start, stop, step, dtype)


def _emit_arange(code, op) -> None:
    """By integers where all are; floats with the rounding of NumPy."""
    kinds = {tensor.dtype.kind for tensor in op.inputs}
    dtype = op.outputs[0].dtype
    if any(tensor.dtype == np.uint64 for tensor in op.inputs) or dtype.kind in "bc":
        return code.call_python(op)
    if kinds <= {"i", "u"} and dtype.kind in "iu":
        return _integers(code, op)
    return _floats(code, op) if dtype.kind == "f" else code.call_python(op)


def _fill(code, op, count, item):
    """The result, with ``item`` of a place's number."""
    block = code.result(op, dimensions=(count,))
    i = code.name("i")
    code.nested([over(i, count)], assign(block.at(i), item(i)))


def _integers(code, op):
    start, stop, step = (code.integer(tensor) for tensor in op.inputs)
    dtype, known = op.outputs[0].dtype, op.outputs[0].spec.shape[0]
    for number in dict.fromkeys((start, stop, step)):
        if number_in(number) is None:  # so that differences are exact
            code.fail_if(either(number < -(2**61), number > 2**61))
    if step == ONE:
        wanted = call("max", 0, stop - start)
    else:
        code.fail_if(step.equals(0))
        wanted = call("max", 0, (stop - start + step - select(step > 0, 1, -1)) // step)
    count = as_node(known) if type(known) is int else code.variable(wanted)
    if dtype != np.int64:  # NumPy refuses the first two numbers where they do not fit
        for number in (start, start + step):
            code.fail_if(either(number < int(np.iinfo(dtype).min), number > int(min(_most(dtype)))))
    _fill(code, op, count, lambda i: typed(start + i * step, dtype))


def _most(dtype):
    return np.iinfo(dtype).max, np.iinfo(np.int64).max


def _floats(code, op):
    """The step is rounded as the difference of the first two numbers."""
    dtype = op.outputs[0].dtype
    start, stop, step = (
        code.local(call("float64", code.scalar(tensor)), "float64").item for tensor in op.inputs
    )
    code.fail_if(step.equals(0))
    count = code.local((stop - start) / step, "float64").item
    # Not finite, too many, or so few that the quotient is no measure.
    code.fail_if(either(negated((count - count).equals(0)), count > 2.0**61))
    code.fail_if(both(count.equals(0), stop.differs(start)))
    known = op.outputs[0].spec.shape[0]
    whole = call("int64", call("max", count, 0.0))
    more = call("int64", both(count > whole, count > 0))
    dimension = as_node(known) if type(known) is int else code.variable(whole + more)
    first = code.local(start, dtype).item
    delta = code.local(typed(start + step, dtype) - first, dtype).item
    _fill(code, op, dimension, lambda i: first + typed(i, dtype) * delta)


def _range_gradient(op, dy):
    """Number k is start + k * step; how many there are has no derivative."""
    places = cast(arange(size(dy)), dy.dtype)
    start, _, step = op.inputs
    return [cast(sum_to(dy, ()), start.dtype), None, cast(sum_to(dy * places, ()), step.dtype)]


def _range_connections(op):
    start, _, step = op.inputs
    return [[start, step] if op.outputs[0].dtype.kind == "f" else []]


RANGE = define(
    "Range",
    _infer_range,
    _evaluate_range,
    _range_gradient,
    emit=_emit_arange,
    connections=_range_connections,
)


@exported
def arange(
    start: ArrayLike,
    stop: ArrayLike | None = None,
    step: ArrayLike = 1,
    dtype: DTypeLike | None = None,
    *,
    name: str | None = None,
) -> Array:
    """Numbers in even steps, from ``start`` to before ``stop``.

    Parameters
    ----------
    start : scalar or Tensor of rank 0
        Without ``stop``, this is the stop, and numbers start at 0.
    stop, step : scalar or Tensor of rank 0, optional
    dtype : dtype-like, optional
        By default the dtype that the arguments have in common.

    Returns
    -------
    Tensor or numpy.ndarray
        Of rank 1. Gradients of floats pass to ``start`` and ``step``.

    Raises
    ------
    InvalidArgumentError
        For a step of 0, and for what is no real scalar.

    Examples
    --------
    >>> nbta.arange(3)
    array([0, 1, 2])
    >>> nbta.arange(1.0, 2.0, 0.25)
    array([1.  , 1.25, 1.5 , 1.75])
    """
    bounds = (0, start, step) if stop is None else (start, stop, step)
    common = common_dtype(*bounds)
    if common.kind in "bcSUMmO":
        raise invalid("dtype", f"a range has no bounds of dtype {common}; give real numbers")
    bounds = promoted(*bounds)
    attrs = {"dtype": common if dtype is None else as_dtype(dtype), "dimension": _length(*bounds)}
    return apply(RANGE, bounds, attrs, name)


def _length(start, stop, step):
    """The length of a range, as far as it is known."""
    known = [_constant(n) for n in (start, stop, step)]
    if None not in known:
        return _count(*known)
    if known[0] != 0 or known[2] != 1 or stop.dtype.kind not in "iu" or stop.ndim != 0:
        return None
    return pattern_of(stop)[0]


def _constant(number):
    """The value of a scalar, None where only the run knows."""
    if isinstance(number, Tensor):
        number = number.op.attrs["value"] if number.op.record is CONSTANT else None
    return number.item() if number is not None and number.ndim == 0 else None
