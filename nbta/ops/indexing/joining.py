"""Joining tensors and taking them apart; and what changes axes, under one roof."""

from __future__ import annotations

import builtins
import operator
from typing import TYPE_CHECKING, Literal

import numpy as np

from nbta import shapes
from nbta.codegen import windows
from nbta.codegen.values import SHORT, Block, Scalar, Vector, is_known, times, total
from nbta.codegen.windows import (
    Window,
    bind_reshaped,
    held,
    move,
    offset_of,
    sum_of,
    window,
)
from nbta.dtypes import as_plain
from nbta.errors import invalid
from nbta.graph.operation import Spec, Tensor
from nbta.loops import Constant, assign
from nbta.loops.nodes import ONE, ZERO, as_node
from nbta.ops.core.axis_arguments import within
from nbta.ops.core.dispatch import apply, as_array, data_spec, define, exported
from nbta.ops.core.elementwise import promoted
from nbta.ops.core.filling import zeros, zeros_like
from nbta.ops.core.shaping import cast, identity, reshape, shape_of, sum_to
from nbta.ops.indexing.gathering import along, as_axis, check_axis, take
from nbta.ops.indexing.items import Part, getitem, is_together, parts_of, picked, slice

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nbta.typing import Array, ArrayLike, Axis

__all__ = [
    "concatenate",
    "expand_dims",
    "flip",
    "pad",
    "split",
    "squeeze",
    "stack",
    "unstack",
]


def _infer_pad(x, value, *, widths):
    if x.shape is None:
        return Spec(x.dtype, None if len(widths) == 1 else (None,) * len(widths))
    pairs = zip(x.shape, _for_axes(widths, x.shape), strict=True)
    return Spec(x.dtype, tuple(_padded(dimension, pair) for dimension, pair in pairs))


def _padded(dimension, pair):
    if sum(pair) == 0:
        return dimension
    return dimension + sum(pair) if type(dimension) is int else None


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
    widths, dimensions = op.attrs["widths"], shape_of(x)
    if len(widths) == 1:
        begin = zeros_like(dimensions) + widths[0][0]
    else:
        begin = [before for before, _ in widths]
    dx = slice(dy, begin, dimensions)
    return [dx, sum_to(dy, ()) - sum_to(dx, ())]


def _emit_pad(code, op) -> None:
    """A tensor within a border of one value."""
    value, result = code.value(op.inputs[0]), op.outputs[0]
    if isinstance(value, Scalar):
        return code.bind(result, value)
    widths = op.attrs["widths"]
    widths = widths * len(value.dimensions) if len(widths) == 1 else widths
    dimensions = tuple(
        held(code, sum_of(code, [dimension, as_node(sum(pair))]), known)
        for dimension, pair, known in zip(value.dimensions, widths, result.spec.shape, strict=True)
    )
    border = code.scalar(op.inputs[1])
    block = code.result(op, dimensions=dimensions)
    windows.fill(code, block, border)
    place = window(code, block).moved(*(before for before, _ in widths))
    return move(code, value.dimensions, place, window(code, value))


PAD = define(
    "Pad", _infer_pad, _evaluate_pad, _pad_gradient, emit=_emit_pad, linear=True, moves=True
)


@exported
def pad(
    x: ArrayLike,
    pad_width: ArrayLike,
    constant_values: ArrayLike = 0,
    *,
    mode: Literal["constant", "edge", "reflect", "symmetric", "wrap"] = "constant",
    name: str | None = None,
) -> Array:
    """A tensor with a border.

    Parameters
    ----------
    x : array-like or Tensor
    pad_width : int, pair of int, or sequence of pairs of int
        How wide the border is: everywhere, before and after each axis, or one pair an axis.
    constant_values : scalar or Tensor of rank 0, optional
        What is in the border of one value.
    mode : {"constant", "edge", "reflect", "symmetric", "wrap"}, optional
        What is in it: one value, the item at the edge, the items mirrored at that item or after
        it, or those from the other end. But for "constant", a traced function is traced for the
        lengths of the axes.

    Returns
    -------
    Tensor or numpy.ndarray
        Of the dtype of ``x``.

    Raises
    ------
    InvalidArgumentError
        For a negative width, another number of pairs than axes, and another mode.

    Examples
    --------
    >>> nbta.pad([1, 2], (1, 2), constant_values=9)
    array([9, 1, 2, 9, 9])
    >>> nbta.pad([1, 2, 3], 2, mode="reflect")
    array([3, 2, 1, 2, 3, 2, 1])
    """
    x = x if isinstance(x, Tensor) else as_array(x)
    if mode != "constant":
        return _mirrored(x, _as_widths(pad_width), mode, name)
    value = constant_values
    value = cast(value, x.dtype) if isinstance(value, Tensor) else as_array(value).astype(x.dtype)
    if value.ndim not in (0, None):
        raise invalid("shape", "constant_values: give one scalar for the whole border")
    return apply(PAD, [x, value], {"widths": _as_widths(pad_width)}, name)


def _mirrored(x, widths, mode, name):
    """A border of items of the tensor, which NumPy tells by their numbers."""
    if mode not in ("edge", "reflect", "symmetric", "wrap"):
        modes = '"constant", "edge", "reflect", "symmetric" or "wrap"'
        raise invalid("value", f"mode must be {modes}, not {mode!r}")
    for axis, pair in enumerate(_for_axes(widths, data_spec(x).shape)):
        if any(pair):
            dimension = int(x.shape[axis])
            if not dimension:
                raise invalid("empty", f"pad: axis {axis} has no items to make a border of")
            x = take(x, np.pad(np.arange(dimension), pair, mode), axis)
    return identity(x, name=name)


def _as_widths(given):
    """Pairs of integers, one for all axes or one for each."""
    if isinstance(given, Tensor) or not _are_integers(given):
        message = f"pad_width must be an integer, a pair, or a pair for each axis, not {given!r}"
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
def flip(x: ArrayLike, axis: Axis = None, *, name: str | None = None) -> Array:
    """The elements in reverse order along axes, as `numpy.flip`.

    Parameters
    ----------
    x : array-like or Tensor
        Elements of any dtype.
    axis : int or tuple of int, optional
        Axes to reverse; all by default.

    Returns
    -------
    Tensor or numpy.ndarray
        Of the shape and dtype of ``x``.

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
        dimension = spec.shape[place]
        if dimension is not None and dimension != 1:
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


def _emit_squeeze(code, op) -> None:
    """The same items without axes of length 1."""
    value, shape, axes = code.value(op.inputs[0]), op.inputs[0].spec.shape, op.attrs["axes"]
    if axes is None:
        gone = {axis for axis, dimension in enumerate(shape) if dimension == 1}
        for axis in set(range(len(shape))) - gone:
            code.fail_if(value.dimensions[axis].equals(1))
    else:
        gone = {axis % len(shape) for axis in axes}
        for axis in gone:
            code.equate(value.dimensions[axis], ONE)
    bind_reshaped(
        code, op, value, [e for axis, e in enumerate(value.dimensions) if axis not in gone]
    )


SQUEEZE = define(
    "Squeeze",
    _infer_squeeze,
    _evaluate_squeeze,
    _squeeze_gradient,
    emit=_emit_squeeze,
    linear=(0,),
    moves=True,
)


@exported(numpy=2)
def squeeze(x: ArrayLike, axis: Axis = None, *, name: str | None = None) -> Array:
    """``x`` without axes of length 1, as `numpy.squeeze`.

    Parameters
    ----------
    x : array-like or Tensor
        Elements of any dtype.
    axis : int or tuple of int, optional
        Axes to remove; by default all of length 1. If which ones these are is not known before the
        run, a traced function is traced for the lengths that decide it; otherwise the rank is
        unknown.

    Returns
    -------
    Tensor or numpy.ndarray
        The same elements, with fewer axes.

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
    for dimension in tensor.shape or () if lengths is not None else ():
        if getattr(dimension, "pattern", 1) is None:
            lengths.ask(dimension.sources)


def _ones(shape):
    """The axes of length 1."""
    return tuple(i for i, dimension in enumerate(shape) if dimension == 1)


def _infer_expand_dims(spec, *, axes):
    if spec.shape is None:
        return Spec(spec.dtype, None)
    shape = list(spec.shape)
    for place in within(axes, (*spec.shape, *(1 for _ in axes))):
        shape.insert(place, 1)
    return Spec(spec.dtype, tuple(shape))


def _emit_expand_dims(code, op) -> None:
    """The same items with new axes of length 1."""
    value, axes = code.value(op.inputs[0]), op.attrs["axes"]
    dimensions = list(value.dimensions)
    rank = len(dimensions) + len(axes)
    for axis in sorted(axis % rank for axis in axes):
        dimensions.insert(axis, ONE)
    bind_reshaped(code, op, value, dimensions)


EXPAND_DIMS = define(
    "ExpandDims",
    _infer_expand_dims,
    lambda x, *, axes: np.expand_dims(x, axes),
    lambda op, dy: [squeeze(dy, op.attrs["axes"])],
    emit=_emit_expand_dims,
    total=True,
    linear=(0,),
    moves=True,
)


@exported(numpy=2)
def expand_dims(x: ArrayLike, axis: int | Sequence[int], *, name: str | None = None) -> Array:
    """``x`` with new axes of length 1, as `numpy.expand_dims`.

    Parameters
    ----------
    x : array-like or Tensor
        Elements of any dtype.
    axis : int or tuple of int
        Places of the new axes in the result.

    Returns
    -------
    Tensor or numpy.ndarray
        The same elements, with more axes.

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


def rows_of(values) -> list:
    """The items of a sequence, or the rows of a tensor, whose number must be known."""
    if isinstance(values, Tensor):
        return [getitem(values, k) for k in range(int(values.shape[0]))]
    return list(values)


def _as_values(values):
    """What is to be joined, in one dtype."""
    values = rows_of(values)
    if not values:
        raise invalid("value", "there is nothing to join; give at least one tensor")
    return promoted(*values)


def _mismatch(specs, axis, besides):
    texts = ", ".join(shapes.text(spec.shape) for spec in specs)
    return invalid("shape", f"shapes {texts} do not join along axis {axis}; {besides}")


def _infer_concatenate(*specs, axis):
    known = [spec for spec in specs if spec.shape is not None]
    if not known:
        return Spec(specs[0].dtype, None)
    place = check_axis(axis, known[0].shape)
    if any(spec.rank != known[0].rank for spec in known):
        raise _mismatch(specs, axis, "all must have the same number of axes")
    rest = None
    try:
        for spec in known:
            rest = shapes.merge(rest, (*spec.shape[:place], None, *spec.shape[place + 1 :]))
    except ValueError:
        raise _mismatch(specs, axis, "their other axes must be equal") from None
    total = _total([spec.shape[place] if spec.shape is not None else None for spec in specs])
    return Spec(specs[0].dtype, (*rest[:place], total, *rest[place + 1 :]))


def _total(dimensions):
    """The sum of dimensions, as far as it is known."""
    dimensions = [dimension for dimension in dimensions if dimension != 0]
    if len(dimensions) == 1:
        return dimensions[0]
    return sum(dimensions) if shapes.is_known(dimensions) else None


def _concatenate_gradient(op, dy):
    axis, begin, grads = op.attrs["axis"], 0, []
    for tensor in op.inputs[:-1]:
        end = begin + _dimension_at(tensor, axis)
        grads.append(getitem(dy, along(axis, builtins.slice(begin, end))))
        begin = end
    return [*grads, getitem(dy, along(axis, builtins.slice(begin, None)))]


def _dimension_at(tensor, axis):
    dimensions = tensor.spec.shape
    if dimensions is not None and type(dimensions[axis]) is int:
        return dimensions[axis]
    return getitem(shape_of(tensor), axis)


def _emit_concatenate(code, op) -> None:
    """One tensor after the other along an axis."""
    axis = op.attrs["axis"] % op.outputs[0].spec.rank
    values = [code.kept(tensor) for tensor in op.inputs]
    if all(isinstance(value, Vector) for value in values):
        items = sum((value.items for value in values), ())
        return code.bind(op.outputs[0], Vector(items, op.outputs[0].dtype))
    values = [code.value(tensor) for tensor in op.inputs]
    first = values[0].dimensions
    for value in values[1:]:
        for place, (mine, theirs) in enumerate(zip(first, value.dimensions, strict=True)):
            if place != axis:
                code.equate(mine, theirs)
    lengths = [value.dimensions[axis] for value in values]
    whole = held(code, sum_of(code, lengths), op.outputs[0].spec.shape[axis])
    block = code.result(op, dimensions=(*first[:axis], whole, *first[axis + 1 :]))
    return _lay(code, block, axis, values, lengths)


def _lay(code, block, axis, values, lengths):
    """Put values one after the other."""
    whole, start = window(code, block), []
    for value, length in zip(values, lengths, strict=True):
        place = [ZERO] * len(block.dimensions)
        place[axis] = total(*start)
        target = Window(block.base, whole.moved(*place).offset, whole.strides)
        dimensions = (*block.dimensions[:axis], length, *block.dimensions[axis + 1 :])
        move(code, dimensions, target, window(code, value, dimensions))
        start.append(length)


CONCATENATE = define(
    "Concatenate",
    _infer_concatenate,
    lambda *values, axis: np.concatenate(values, axis),
    _concatenate_gradient,
    emit=_emit_concatenate,
    linear=True,
    moves=True,
)


@exported(numpy=2)
def concatenate(
    values: Sequence[ArrayLike] | Array, axis: int | None = 0, *, name: str | None = None
) -> Array:
    """Tensors one after the other along an axis.

    Parameters
    ----------
    values : sequence of array-like or Tensor
        Of one shape, but for the axis.
    axis : int or None, optional
        With None, the flattened tensors are joined.

    Returns
    -------
    Tensor or numpy.ndarray
        Of the dtype that the values have in common.

    Raises
    ------
    InvalidArgumentError
        For shapes that do not fit, scalars, and an empty sequence.

    Examples
    --------
    >>> nbta.concatenate([[1, 2], [3.5]])
    array([1. , 2. , 3.5])
    """
    values = _as_values(values)
    if axis is None:
        values, axis = [reshape(value, (-1,)) for value in values], 0
    return apply(CONCATENATE, values, {"axis": as_axis(axis)}, name)


def _infer_stack(*specs, axis):
    shape = None
    try:
        for spec in specs:
            shape = shapes.merge(shape, spec.shape)
    except ValueError:
        raise _mismatch(specs, axis, "stacked tensors must have one shape") from None
    if shape is None:
        return Spec(specs[0].dtype, None)
    place = check_axis(axis, (*shape, len(specs)))
    return Spec(specs[0].dtype, (*shape[:place], len(specs), *shape[place:]))


def _stack_gradient(op, dy):
    axis = op.attrs["axis"]
    return [getitem(dy, along(axis, i)) for i in range(len(op.inputs))]


def _emit_stack(code, op) -> None:
    """Tensors of one shape along a new axis; integers of rank 0 stay as they are."""
    result, axis = op.outputs[0], op.attrs["axis"] % op.outputs[0].spec.rank
    values = [code.value(tensor) for tensor in op.inputs]
    if isinstance(values[0], Scalar):
        return _stack_scalars(code, op, values)
    first = values[0].dimensions
    for value in values[1:]:
        for mine, theirs in zip(first, value.dimensions, strict=True):
            code.equate(mine, theirs)
    dimensions = (*first[:axis], Constant(len(values)), *first[axis:])
    block = code.destination(result, result.dtype, dimensions)
    code.bind(result, block)
    rows = [Block(value.base, (*first[:axis], ONE, *first[axis:]), value.offset)
            for value in values]  # fmt: skip
    return _lay(code, block, axis, rows, [ONE] * len(rows))


def _stack_scalars(code, op, values):
    result = op.outputs[0]
    if result.dtype.name in SHORT:
        return code.bind(result, Vector(tuple(value.item for value in values), result.dtype))
    block = code.result(op, dimensions=(Constant(len(values)),))
    return code.add(*(assign(block.at(k), value.item) for k, value in enumerate(values)))


STACK = define(
    "Stack",
    _infer_stack,
    lambda *values, axis: np.stack(values, axis),
    _stack_gradient,
    emit=_emit_stack,
    total=True,
    linear=True,
    moves=True,
)


@exported(numpy=1)
def unstack(x: ArrayLike, *, axis: int = 0, name: str | None = None) -> tuple[Array, ...]:
    """Slices of a tensor at each index of an axis, as `numpy.unstack`.

    Parameters
    ----------
    x : array-like or Tensor
        What to take apart. A traced function is traced for the length of the axis.
    axis : int, default 0
        The axis, which the slices do not have.

    Returns
    -------
    tuple of Tensor or numpy.ndarray
        As many slices as the axis is long.

    Raises
    ------
    InvalidArgumentError
        For an axis that ``x`` does not have, or whose length is not known.

    Examples
    --------
    >>> nbta.unstack([[1, 2], [3, 4]])
    (array([1, 2]), array([3, 4]))
    """
    x = x if isinstance(x, Tensor) else as_array(x)
    check_axis(as_axis(axis), data_spec(x).shape)
    return tuple(getitem(x, along(axis, k), name=name) for k in range(int(x.shape[axis])))


@exported(numpy=2)
def stack(values: Sequence[ArrayLike] | Array, axis: int = 0, *, name: str | None = None) -> Array:
    """Tensors of one shape, joined along a new axis.

    Parameters
    ----------
    values : sequence of array-like or Tensor
    axis : int, optional
        Where the new axis is in the result.

    Returns
    -------
    Tensor or numpy.ndarray
        Of the dtype that the values have in common.

    Raises
    ------
    InvalidArgumentError
        For shapes that are not equal, and an empty sequence.

    Examples
    --------
    >>> nbta.stack([[1, 2], [3, 4]], axis=1)
    array([[1, 3],
           [2, 4]])
    """
    return apply(STACK, _as_values(values), {"axis": as_axis(axis)}, name)


def _pieces(points):
    """Slices between split points."""
    return [builtins.slice(a, b) for a, b in zip((0, *points), (*points, None), strict=True)]


def _infer_split(spec, *, sections, axis):
    count = sections if type(sections) is int else len(sections) + 1
    if spec.shape is None:
        return (Spec(spec.dtype, None),) * count
    place = check_axis(axis, spec.shape)
    dimension = spec.shape[place]
    lengths = [None] * count
    if type(dimension) is int:
        lengths = _lengths(spec.shape, place, sections)
    return tuple(
        Spec(spec.dtype, (*spec.shape[:place], n, *spec.shape[place + 1 :])) for n in lengths
    )


def _lengths(shape, axis, sections):
    dimension = shape[axis]
    if type(sections) is not int:
        return [len(range(dimension)[piece]) for piece in _pieces(sections)]
    if dimension % sections:
        message = (
            f"axis {axis} of shape {shapes.text(shape)} has {dimension} elements, which {sections} "
            f"equal sections do not divide; give split points"
        )
        raise invalid("split", message)
    return [dimension // sections] * sections


def _evaluate_split(x, *, sections, axis):
    if type(sections) is int:
        length = _lengths(x.shape, check_axis(axis, x.shape), sections)[0]
        sections = range(length, length * sections, length) if length else (0,) * (sections - 1)
    return tuple(x[along(axis, piece)] for piece in _pieces(tuple(sections)))


def _split_gradient(op, *grads):
    parts = [
        zeros(shape_of(output), output.dtype) if grad is None else grad
        for grad, output in zip(grads, op.outputs, strict=True)
    ]
    return [concatenate(parts, op.attrs["axis"])]


def _has_lengths(op):
    """Whether sections have lengths: they are computed before the run, which checks them."""
    return not any(None in (tensor.spec.shape or (None,)) for tensor in op.outputs)


def _emit_split(code, op) -> None:
    """Parts along an axis: views along the first one."""
    value, sections = code.value(op.inputs[0]), op.attrs["sections"]
    axis = op.attrs["axis"] % len(value.dimensions)
    dimension = code.canonical(value.dimensions[axis])
    parts = (_sections if type(sections) is int else _points)(code, dimension, sections)
    for result, part in zip(op.outputs, parts, strict=True):
        if code.uses(result):
            _piece(code, op, value, axis, result, part)


def _sections(code, dimension, count):
    code.fail_if((dimension % count).differs(0))
    known = is_known(dimension)
    length = Constant(dimension.value // count) if known else code.derived(dimension // count)
    return [Part(times(k, length), length) for k in range(count)]


def _points(code, dimension, points):
    bounds = zip((0, *points), (*points, None), strict=True)
    return [parts_of(code, [builtins.slice(a, b)], (), [dimension], None)[0] for a, b in bounds]


def _piece(code, op, value, axis, result, part):
    every = [Part(ZERO, dimension, ONE, True) for dimension in value.dimensions]
    parts = [*every[:axis], part, *every[axis + 1 :]]
    found, dimensions = picked(code, value, parts)
    dimensions = tuple(
        held(code, *pair) for pair in zip(dimensions, result.spec.shape, strict=True)
    )
    if is_together(parts):
        return code.bind(result, Block(value.base, dimensions, offset_of(code, found)))
    block = code.result(op, dimensions=dimensions, index=result.index)
    return move(code, dimensions, window(code, block), found)


SPLIT = define(
    "Split",
    _infer_split,
    _evaluate_split,
    _split_gradient,
    emit=_emit_split,
    total=_has_lengths,
    selects=True,
    linear=(0,),
)


@exported(numpy=3)
def split(
    x: ArrayLike, indices_or_sections: ArrayLike, axis: int = 0, *, name: str | None = None
) -> list[Array]:
    """The parts of a tensor between split points along an axis.

    Parameters
    ----------
    x : array-like or Tensor
    indices_or_sections : int, or sequence of int or Tensor
        How many equal parts there are, or where parts after the first begin.
    axis : int, optional

    Returns
    -------
    list of Tensor or numpy.ndarray

    Raises
    ------
    InvalidArgumentError
        For a number of parts that does not divide the axis.

    Examples
    --------
    >>> nbta.split([1, 2, 3, 4], 2)
    [array([1, 2]), array([3, 4])]
    >>> nbta.split([1, 2, 3, 4], [1])
    [array([1]), array([2, 3, 4])]
    """
    x = x if isinstance(x, Tensor) else as_array(x)
    axis, sections = as_axis(axis), as_sections(indices_or_sections)
    if data_spec(x).shape is not None:
        check_axis(axis, data_spec(x).shape)
    if sections in (1, ()):
        return [identity(x, name=name)]
    if type(sections) is int or _ascending(sections):
        return list(apply(SPLIT, [x], {"sections": sections, "axis": axis}, name))
    return [getitem(x, along(axis, piece), name=name) for piece in _pieces(sections)]


def as_sections(given):
    """A number of sections, or a tuple of split points."""
    try:
        sections = operator.index(given)
    except TypeError:
        points = tuple(given)
        return tuple(n if isinstance(n, Tensor) else operator.index(n) for n in points)
    if sections < 1:
        raise invalid(
            "split", f"{sections} sections are not possible; give 1 or more, or split points"
        )
    return sections


def _ascending(points):
    """Whether pieces follow each other without overlap, so that joining them is the inverse."""
    if any(isinstance(point, Tensor) for point in points):
        return False
    return all(a <= b for a, b in zip((0, *points), points, strict=False))
