"""What changes the axes of a tensor: pad, flip, squeeze, expand_dims; and arange."""

import builtins
import math

import numpy as np

from nbta import shapes
from nbta.codegen import join_rules, range_rules
from nbta.dtypes import as_dtype, as_plain
from nbta.errors import invalid
from nbta.graph.operation import Tensor
from nbta.graph.record import NotDifferentiable
from nbta.graph.spec import Spec
from nbta.ops.axis_arguments import within
from nbta.ops.dispatch import apply, as_array, data_spec, define, exported
from nbta.ops.elementwise import common_dtype, meet
from nbta.ops.extents import pattern_of
from nbta.ops.filling import zeros_like
from nbta.ops.gathering import as_axis
from nbta.ops.indexing import getitem
from nbta.ops.shaping import cast, identity, reshape, shape_of, sum_to
from nbta.ops.slicing import slice
from nbta.runtime.protocol import MOST_ITEMS


def _infer_pad(x, value, *, widths):
    if x.shape is None:
        return Spec(x.dtype, None if len(widths) == 1 else (None,) * len(widths))
    pairs = zip(x.shape, _for_axes(widths, x.shape), strict=True)
    return Spec(x.dtype, tuple(_padded(extent, pair) for extent, pair in pairs))


def _padded(extent, pair):
    if sum(pair) == 0:
        return extent
    return extent + sum(pair) if type(extent) is int else None


def _for_axes(widths, shape):
    """One pair for each axis."""
    if len(widths) not in (1, len(shape)):
        message = (
            f"pad_width: there are {len(widths)} pairs for shape {shapes.text(shape)}; give one "
            f"for each axis, or one for all"
        )
        raise invalid("rank", message)
    return widths * len(shape) if len(widths) == 1 else widths


def _evaluate_pad(x, value, *, widths):
    shape = np.shape(x)
    pairs = _for_axes(widths, shape)
    out = np.full([n + a + b for n, (a, b) in zip(shape, pairs, strict=True)], value)
    out[tuple(builtins.slice(a, a + n) for n, (a, _) in zip(shape, pairs, strict=True))] = x
    return out


def _pad_gradient(op, dy):
    x, _ = op.inputs
    widths, extents = op.attrs["widths"], shape_of(x)
    if len(widths) == 1:
        begin = zeros_like(extents) + widths[0][0]
    else:
        begin = [before for before, _ in widths]
    dx = slice(dy, begin, extents)
    return [dx, sum_to(dy, ()) - sum_to(dx, ())]


PAD = define("Pad", _infer_pad, _evaluate_pad, _pad_gradient, emit=join_rules.pad)


@exported(numpy=2)
def pad(x, pad_width, constant_values=0, *, name=None):
    """A tensor with a border of one value.

    Parameters
    ----------
    x : array-like or Tensor
    pad_width : int, pair of int, or sequence of pairs of int
        How wide the border is: everywhere, before and after each axis, or one pair an axis.
    constant_values : scalar or Tensor of rank 0, optional
        What is in the border.

    Returns
    -------
    Tensor or numpy.ndarray
        Of the dtype of ``x``.

    Raises
    ------
    InvalidArgumentError
        For a negative width, and for another number of pairs than axes.

    Examples
    --------
    >>> nbta.pad([1, 2], (1, 2), constant_values=9)
    array([9, 1, 2, 9, 9])
    """
    x = x if isinstance(x, Tensor) else as_array(x)
    value = constant_values
    value = cast(value, x.dtype) if isinstance(value, Tensor) else as_array(value).astype(x.dtype)
    if value.ndim not in (0, None):
        raise invalid("shape", "constant_values: give one scalar for the whole border")
    return apply(PAD, [x, value], {"widths": _as_widths(pad_width)}, name)


def _as_widths(given):
    """Pairs of integers, one for all axes or one for each."""
    if isinstance(given, Tensor) or not _are_integers(given):
        message = f"pad_width: {given!r} is none; give an integer, a pair, or a pair for each axis"
        raise invalid("pad_width", message)
    widths = as_plain("pad_width", given)
    if (widths < 0).any():
        raise invalid("pad_width", f"pad_width: {given!r} has a negative width")
    rows = np.broadcast_to(widths, (1, 2)) if widths.ndim < 2 else widths
    return tuple((int(row[0]), int(row[-1])) for row in rows)


def _are_integers(given):
    try:
        widths = np.asarray(given)
    except ValueError:  # a ragged list
        return False
    short = widths.ndim == 0 or widths.shape[-1] in (1, 2)
    return widths.dtype.kind in "iu" and widths.ndim <= 2 and short


@exported(numpy=2)
def flip(x, axis=None, *, name=None):
    """The elements in the opposite order along axes.

    Parameters
    ----------
    x : array-like or Tensor
    axis : int or tuple of int, optional
        By default all axes.

    Raises
    ------
    InvalidArgumentError
        For an axis that ``x`` does not have, and for a tensor of unknown rank.

    Examples
    --------
    >>> nbta.flip([1, 2, 3])
    array([3, 2, 1])
    """
    x = x if isinstance(x, Tensor) else as_array(x)
    shape = data_spec(x).shape
    if shape is None:
        message = f"{x!r} has an unknown rank, so its axes cannot be flipped; reshape it first"
        raise invalid("rank", message)
    axes = range(len(shape)) if axis is None else within(_as_axes(axis), shape)
    if not axes:
        return identity(x, name=name)
    steps = [-1 if place in axes else None for place in range(len(shape))]
    return getitem(x, tuple(builtins.slice(None, None, step) for step in steps), name=name)


def _as_axes(axis):
    """One or more axes, as a tuple."""
    axes = axis if isinstance(axis, list | tuple) else (axis,)
    return tuple(as_axis(axis) for axis in axes)


def _infer_squeeze(spec, *, axes):
    if spec.shape is None or (axes is None and None in spec.shape):
        return Spec(spec.dtype, None)
    places = _ones(spec.shape) if axes is None else within(axes, spec.shape)
    for place in places:
        extent = spec.shape[place]
        if extent is not None and extent != 1:
            message = (
                f"axis {place} of shape {shapes.text(spec.shape)} does not have length 1, so it "
                f"cannot be squeezed; leave it out of axis="
            )
            raise invalid("squeeze", message)
    return Spec(spec.dtype, tuple(n for i, n in enumerate(spec.shape) if i not in places))


def _evaluate_squeeze(x, *, axes):
    _infer_squeeze(Spec(x.dtype, np.shape(x)), axes=axes)
    return np.squeeze(x, axes)  # None for all axes of length 1


def _squeeze_gradient(op, dy):
    x, axes = op.inputs[0], op.attrs["axes"]
    return [reshape(dy, shape_of(x)) if axes is None else expand_dims(dy, axes)]


SQUEEZE = define(
    "Squeeze",
    _infer_squeeze,
    _evaluate_squeeze,
    _squeeze_gradient,
    emit=join_rules.squeeze,
)


@exported(numpy=2)
def squeeze(x, axis=None, *, name=None):
    """A tensor without axes of length 1.

    Parameters
    ----------
    x : array-like or Tensor
    axis : int or tuple of int, optional
        By default all axes of length 1. Where the run tells which ones these are, a traced function
        is traced for the lengths that decide it; otherwise the result has an unknown rank.

    Raises
    ------
    InvalidArgumentError
        For an axis of another length.

    Examples
    --------
    >>> nbta.squeeze([[1, 2, 3]])
    array([1, 2, 3])
    """
    x = x if isinstance(x, Tensor) else as_array(x)
    shape = data_spec(x).shape
    if axis is not None:
        axes = within(_as_axes(axis), shape)
    elif shape is None or None in shape:
        axes = None
        _ask(x)
    else:
        axes = _ones(shape)
    return apply(SQUEEZE, [x], {"axes": axes}, name)


def _ask(tensor):
    """Begin the trace again where lengths of its arguments tell which axes have length 1."""
    lengths = tensor.graph.root.lengths
    for extent in tensor.shape or () if lengths is not None else ():
        if getattr(extent, "pattern", 1) is None:
            lengths.ask(extent.sources)


def _ones(shape):
    """The axes of length 1."""
    return tuple(i for i, extent in enumerate(shape) if extent == 1)


def _infer_expand_dims(spec, *, axes):
    if spec.shape is None:
        return Spec(spec.dtype, None)
    shape = list(spec.shape)
    for place in within(axes, (*spec.shape, *(1 for _ in axes))):
        shape.insert(place, 1)
    return Spec(spec.dtype, tuple(shape))


EXPAND_DIMS = define(
    "ExpandDims",
    _infer_expand_dims,
    lambda x, *, axes: np.expand_dims(x, axes),
    lambda op, dy: [squeeze(dy, op.attrs["axes"])],
    emit=join_rules.expand_dims,
    total=True,
)


@exported(numpy=2)
def expand_dims(x, axis, *, name=None):
    """A tensor with new axes of length 1.

    Parameters
    ----------
    x : array-like or Tensor
    axis : int or tuple of int
        Where they are in the result.

    Raises
    ------
    InvalidArgumentError
        For an axis that the result does not have.

    Examples
    --------
    >>> nbta.expand_dims([1, 2], 1)
    array([[1],
           [2]])
    """
    return apply(EXPAND_DIMS, [x], {"axes": _as_axes(axis)}, name)


def _infer_range(start, stop, step, *, dtype, extent):
    for spec in (start, stop, step):
        if spec.shape is not None and spec.shape != ():
            message = f"a bound has shape {shapes.text(spec.shape)}; give scalars"
            raise invalid("shape", message)
    return Spec(dtype, (extent,))


def _count(start, stop, step):
    """How many numbers there are, by NumPy's rule."""
    if step == 0:
        raise invalid("step", "step: it must not be 0")
    if all(isinstance(n, int) for n in (start, stop, step)):
        return len(range(start, stop, step))
    count = (stop - start) / step
    if not math.isfinite(count):
        raise invalid(
            "range", f"from {start} to {stop} by {step} there is no end; give finite ones"
        )
    return max(0, math.ceil(count))


def _evaluate_range(start, stop, step, *, dtype, extent):
    start, stop, step = (np.asarray(n).item() for n in (start, stop, step))
    count = _count(start, stop, step)
    if count > MOST_ITEMS:  # NumPy gives none from 2**63 - 512 on
        raise MemoryError(f"Unable to allocate {count} numbers from {start} to {stop} by {step}")
    return np.arange(start, stop, step, dtype)


RANGE = define(
    "Range",
    _infer_range,
    _evaluate_range,
    NotDifferentiable("the number of its elements jumps"),
    emit=range_rules.arange,
)


@exported
def arange(start, stop=None, step=1, dtype=None, *, name=None):
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
        Of rank 1. No gradient passes through it.

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
    bounds = meet(*bounds)
    attrs = {"dtype": common if dtype is None else as_dtype(dtype), "extent": _length(*bounds)}
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
    """The value of a scalar, None where only the run tells."""
    if isinstance(number, Tensor):
        number = number.op.attrs["value"] if number.op.type == "Constant" else None
    return number.item() if number is not None and number.ndim == 0 else None
