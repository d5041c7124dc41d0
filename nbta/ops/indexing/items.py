"""Indexing by integers, slices, ``...`` and None, and all else that picks elements."""

from __future__ import annotations

import builtins
import operator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from nbta import shapes
from nbta.codegen import windows
from nbta.codegen.fusion import put_at_once, spread
from nbta.codegen.values import Block, Scalar, Vector, is_known, times, typed, uncast
from nbta.codegen.windows import (
    Window,
    clipped,
    held,
    integers,
    is_below,
    move,
    number_in,
    offset_of,
    position,
    put,
    strides_of,
    window,
)
from nbta.dtypes import check_plain
from nbta.errors import NbtaError, invalid, out_of_range
from nbta.graph.operation import Addend, Spec, Tensor
from nbta.loops import Constant, Expression, Name, assign, call, either, select
from nbta.loops.nodes import ONE, ZERO, as_node
from nbta.ops.core.dimensions import pattern_of
from nbta.ops.core.dispatch import (
    apply,
    as_array,
    data_spec,
    define,
    define_change,
    exported,
    is_in_body,
    is_weak,
    stacked,
)
from nbta.ops.core.elementwise import of_dtype, promoted
from nbta.ops.core.filling import zeros, zeros_like
from nbta.ops.core.shaping import INT64, cast, reshape, shape_of, unbroadcast, wanted
from nbta.ops.indexing.gathering import (
    SCATTER_ADD,
    SCATTER_SET,
    as_indices,
    gather,
    one_hot,
    scatter_add,
    take,
)
from nbta.tuning import SLICE_BOUND

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nbta.typing import Array, ArrayLike, ShapeLike

__all__ = [
    "SYMBOLIC",
    "add_item",
    "dynamic_slice",
    "dynamic_update_slice",
    "gather",
    "getitem",
    "one_hot",
    "scatter_add",
    "set_item",
    "slice",
    "take",
]


def _as_vector(argument, value):
    """Integers, one an axis, as a vector of int64, symbolic where any of them is."""
    if isinstance(value, Tensor):
        return _symbolic_vector(argument, value)
    check_plain(argument, value)
    items = list(value) if isinstance(value, list | tuple) else list(np.atleast_1d(value))
    if any(isinstance(item, Tensor) for item in items):
        return stacked([_scalar(argument, item) for item in items])
    array = np.asarray(items)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise invalid("shape", f"{argument}: {value!r} is not a vector with one integer per axis")
    return array.astype(np.int64)


def _symbolic_vector(argument, value):
    if value.dtype.kind not in "iu" or value.spec.rank not in (0, 1, None):
        raise invalid("shape", f"{argument}: {value!r} is not a vector with one integer per axis")
    value = reshape(value, (1,)) if value.spec.rank == 0 else value
    return value if value.dtype == INT64 else cast(value, INT64)


def _scalar(argument, item):
    dtype = item.dtype if isinstance(item, Tensor) else np.asarray(item).dtype
    if dtype.kind not in "iu":
        raise invalid("dtype", f"{argument}: {item!r} is not an integer; cast it")
    return cast(item, INT64)


def _check_rank(argument, shape, *vectors):
    """That vectors have one entry an axis."""
    for vector in vectors:
        count = vector.shape[0] if vector.shape else None
        if shape is not None and type(count) is int and count != len(shape):
            message = (
                f"{argument}: there are {count} entries for shape {shapes.text(shape)}; give one "
                f"for each of its {len(shape)} axes"
            )
            raise invalid("rank", message)


def _length(axis, dimension, begin, size, clamp):
    """The length of a block along an axis, None where it is not known; it must lie inside."""
    if type(dimension) is not int:
        return size if size >= 0 else None
    length = dimension - begin if size == -1 and not clamp else size
    if length < 0 or length > dimension or (not clamp and not 0 <= begin <= dimension - length):
        what = f"{size} from {begin} on" if not clamp else f"{size}"
        message = (
            f"axis {axis} has {dimension} elements, and a slice of {what} does not fit; choose it "
            f"within the axis"
        )
        raise invalid("slice", message)
    return length


def _infer_slice(x, begin, size, *, pattern, clamp):
    _check_rank("begin", x.shape, begin)
    _check_rank("size", x.shape, size)
    if x.shape is not None and pattern is None:
        pattern = (None,) * len(x.shape)
    return Spec(x.dtype, pattern)


def _block(shape, begin, size, clamp):
    """The key of a block."""
    if not len(shape) == len(begin) == len(size):
        message = (
            f"shape {shapes.text(shape)} has {len(shape)} axes, and the block begins at "
            f"{len(begin)} and has {len(size)} sizes; give one of each for an axis"
        )
        raise invalid("rank", message)
    key = []
    for axis, (dimension, first, length) in enumerate(zip(shape, begin, size, strict=True)):
        length = _length(axis, dimension, int(first), int(length), clamp)
        first = min(max(int(first), 0), dimension - length)
        key.append(builtins.slice(first, first + length))
    return tuple(key)


def _evaluate_slice(x, begin, size, *, pattern, clamp):
    return x[_block(np.shape(x), begin, size, clamp)]


def _slice_gradient(op, dy):
    x, begin, _ = op.inputs

    def alone(dy):
        return dynamic_update_slice(zeros(shape_of(x), dy.dtype), dy, begin)

    def onto(total, dy):
        return apply(ADD, [total, dy, begin])

    return [Addend(dy, (SLICE, *op.inputs[1:]), alone, onto), None, None]


def _emit_slice_block(code, op) -> None:
    """A block: a view where it lies together in memory."""
    x, result = op.inputs[0], op.outputs[0]
    value = code.value(x)
    if isinstance(value, Scalar):
        return code.bind(result, value)
    starts, sizes = (integers(code, t, len(value.dimensions)) for t in op.inputs[1:])
    clamp, lengths, begun = op.attrs["clamp"], [], []
    for start, size, dimension, known in zip(
        starts, sizes, value.dimensions, result.spec.shape, strict=True
    ):
        length = held(code, _emit_length(code, start, size, dimension, clamp), known)
        lengths.append(code.canonical(length))
        begun.append(_begin(code, start, dimension, length))
    whole = window(code, value)
    found = Window(value.base, whole.moved(*begun).offset, whole.strides)
    if _is_together(code, value.dimensions, lengths):
        return code.bind(result, Block(value.base, tuple(lengths), offset_of(code, found)))
    block = code.result(op, dimensions=tuple(lengths))
    return move(code, lengths, window(code, block), found)


def _emit_length(code, start, size, dimension, clamp):
    """How long a block is along an axis; it must be within it."""
    left = dimension - start
    if number_in(size) is None:
        length = size if clamp else code.derived(select(size.equals(-1), left, size))
    else:
        length = code.derived(left) if size == as_node(-1) and not clamp else size
    if not is_known(length):
        code.fail_if(length < 0)
    is_below(code, length, dimension)
    if not clamp and start != ZERO:
        code.fail_if(either(start < 0, start > dimension - length))
    return length


def _begin(code, start, dimension, length):
    """Where a block begins that is moved inwards if it reaches over the edge."""
    if start == ZERO or code.same(dimension, length):
        return ZERO
    return code.derived(call("min", call("max", start, 0), dimension - length), "k")


def _is_together(code, dimensions, lengths):
    long = [axis for axis, length in enumerate(lengths) if length != ONE]
    after = range(long[0] + 1, len(dimensions)) if long else ()
    return all(code.same(dimensions[axis], lengths[axis]) for axis in after)


SLICE = define(
    "Slice",
    _infer_slice,
    _evaluate_slice,
    _slice_gradient,
    emit=_emit_slice_block,
    selects=True,
    shape_input=2,
    linear=(0,),
)


def _static_lengths(x, begin, size):
    """The shape of a block, as far as it is known."""
    if isinstance(size, Tensor):
        return pattern_of(size)
    dimensions = x.spec.shape if isinstance(x, Tensor) else np.shape(x)
    if dimensions is None or len(dimensions) != len(size):
        return tuple(None if n < 0 else int(n) for n in size)
    if isinstance(begin, Tensor) or len(begin) != len(size):
        return tuple(None if n < 0 else int(n) for n in size)
    facts = zip(dimensions, begin.tolist(), size.tolist(), strict=True)
    try:
        return tuple(_length(i, n, b, s, False) for i, (n, b, s) in enumerate(facts))
    except NbtaError:
        if is_in_body(x):  # a run is to refuse it, if it comes there
            return (None,) * len(dimensions)
        raise


@exported
def dynamic_slice(
    x: ArrayLike, starts: ShapeLike, sizes: Sequence[int], *, name: str | None = None
) -> Array:
    """A block of fixed size, moved inwards where it would reach over the edge.

    Parameters
    ----------
    x : array-like or Tensor
    starts : sequence of int or Tensor, or Tensor
        Where the block begins, one entry an axis. Negative ones are moved to 0; so that the block
        fits, large ones are moved to ``dimension - size``.
    sizes : sequence of int
        Its shape.

    Returns
    -------
    Tensor or numpy.ndarray
        Of shape ``sizes`` and the dtype of ``x``.

    Raises
    ------
    InvalidArgumentError
        For sizes that are larger than ``x``, negative or symbolic, and where there is not one entry
        an axis.

    Examples
    --------
    >>> nbta.dynamic_slice([1, 2, 3, 4], [3], [2])
    array([3, 4])
    """
    begin, size = _as_vector("starts", starts), _as_vector("sizes", sizes)
    if isinstance(size, Tensor):
        raise invalid("size", "sizes: they must be integers; use nbta.slice for symbolic sizes")
    if (size < 0).any():
        raise invalid("size", f"sizes: {sizes!r} has a negative size")
    x = promoted(x)[0]
    _check_rank("sizes", data_spec(x).shape, size)
    for axis, (dimension, length) in enumerate(zip(data_spec(x).shape or (), size, strict=False)):
        _length(axis, dimension, 0, int(length), True)
    attrs = {"pattern": tuple(size.tolist()), "clamp": True}
    return apply(SLICE, [x, begin, size], attrs, name)


def _infer_update(x, update, begin):
    _check_rank("starts", x.shape, begin)
    if x.shape is not None and update.shape is not None:
        _check_update(x.shape, update.shape)
    return Spec(x.dtype, x.shape)


def _check_update(shape, update):
    pairs = zip(shape, update, strict=False)
    over = any(type(n) is int and type(m) is int and m > n for n, m in pairs)
    if len(shape) != len(update) or over:
        message = (
            f"update: shape {shapes.text(update)} does not fit into {shapes.text(shape)}; give one "
            f"of as many axes, none of them longer"
        )
        raise invalid("shape", message)


def _set_block(out, update, begin):
    out[_block(out.shape, begin, np.shape(update), True)] = update
    return out


def _add_block(out, update, begin):
    out[_block(out.shape, begin, np.shape(update), True)] += update
    return out


def _update_gradient(op, dy):
    _, update, begin = op.inputs
    block = _block_of(dy, op)  # before it is cleared, which then happens in place
    return [dynamic_update_slice(dy, zeros_like(update, dy.dtype), begin), block, None]


def _add_gradient(op, dy):
    return [dy, _block_of(dy, op), None]


def _block_of(dy, op):
    """The gradient of what was put into a block."""
    _, update, begin = op.inputs
    attrs = {"pattern": update.spec.shape, "clamp": True}
    return apply(SLICE, [dy, begin, shape_of(update)], attrs)


def _emit_update(code, op) -> None:
    """A tensor with a block replaced."""
    target, dimensions, value = _changed_block(code, op)
    if isinstance(value, Scalar):
        return code.bind(op.outputs[0], value)
    return move(code, dimensions, target, windows.window(code, value))


def _emit_add(code, op) -> None:
    """A tensor with values added to a block."""
    target, dimensions, value = _changed_block(code, op)
    if isinstance(value, Scalar):
        item = typed(code.scalar(op.inputs[0]) + value.item, value.dtype)
        return code.bind(op.outputs[0], code.local(item, value.dtype))
    return put(code, dimensions, target, value, strides_of(code, dimensions), adds=True)


def _changed_block(code, op):
    """Where a block of a tensor is to be changed, its dimensions, and what goes there."""
    x, update, begin = op.inputs
    value = code.value(update)
    if isinstance(value, Scalar):
        return None, (), value
    dimensions = code.dimensions(x)
    begun = []
    for start, dimension, length in zip(
        integers(code, begin, len(dimensions)), dimensions, value.dimensions, strict=True
    ):
        is_below(code, length, dimension)
        begun.append(_begin(code, start, dimension, length))
    block = code.changed(op)
    whole = window(code, block)
    target = Window(block.base, whole.moved(*begun).offset, whole.strides)
    return target, value.dimensions, code.value(update)


UPDATE = define_change(
    "DynamicUpdateSlice",
    _infer_update,
    _set_block,
    _update_gradient,
    emit=_emit_update,
    linear=(0, 1),
    moves=True,
)
ADD = define_change(
    "DynamicAddSlice", _infer_update, _add_block, _add_gradient, emit=_emit_add, linear=(0, 1)
)


@exported
def dynamic_update_slice(
    x: ArrayLike, update: ArrayLike, starts: ShapeLike, *, name: str | None = None
) -> Array:
    """``x`` with a block replaced; ``x`` itself stays as it is.

    Parameters
    ----------
    x : array-like or Tensor
    update : array-like or Tensor
        Of the rank of ``x``, and along no axis longer.
    starts : sequence of int or Tensor, or Tensor
        Where the block begins, one entry an axis; moved so that the block fits, as in
        `dynamic_slice`.

    Returns
    -------
    Tensor or numpy.ndarray
        Of the shape of ``x``, and of the dtype that ``x`` and ``update`` have in common.

    Raises
    ------
    InvalidArgumentError
        For an update that is larger than ``x`` or of another rank.

    Examples
    --------
    >>> nbta.dynamic_update_slice([1, 2, 3, 4], [8, 9], [1])
    array([1, 8, 9, 4])
    """
    begin = _as_vector("starts", starts)
    return apply(UPDATE, [*promoted(x, update), begin], name=name)


@exported
def slice(x: ArrayLike, begin: ShapeLike, size: ShapeLike, *, name: str | None = None) -> Array:
    """A block of a tensor by its first element and its shape.

    Parameters
    ----------
    x : array-like or Tensor
    begin : sequence of int or Tensor, or Tensor
        Where the block begins, one entry an axis.
    size : sequence of int or Tensor, or Tensor
        How long it is, one entry an axis; -1 is all that is left.

    Returns
    -------
    Tensor or numpy.ndarray
        Of shape ``size`` and the dtype of ``x``.

    Raises
    ------
    InvalidArgumentError
        For a block that reaches out of ``x``, and where there is not one entry an axis.

    Examples
    --------
    >>> nbta.slice([[1, 2, 3], [4, 5, 6]], [0, 1], [-1, 2])
    array([[2, 3],
           [5, 6]])
    """
    begin, size = _as_vector("begin", begin), _as_vector("size", size)
    x = promoted(x)[0]
    pattern = _static_lengths(x, begin, size)
    return apply(SLICE, [x, begin, size], {"pattern": pattern, "clamp": False}, name)


@dataclass(frozen=True)
class Part:
    """What a key takes of an axis: ``count`` items, or a single one where that is None."""

    start: Expression
    count: Expression | None
    step: Expression = ONE
    whole: bool = False


def parts_of(code, key, scalars, dimensions, x) -> list:
    """A `Part` for each axis, and None for each new one, of a key that ``scalars`` fill in.

    ``x`` is a tensor with the axes.
    """
    given = iter([(windows.integer(code, tensor), tensor) for tensor in scalars])
    axes = iter(enumerate(dimensions))

    def filled(n):
        return _bound_of(code, next(given)[0]) if n is SYMBOLIC else n

    found = []
    for part in key:
        if part is None:
            found.append(None)
            continue
        axis, dimension = next(axes)
        if isinstance(part, builtins.slice):
            bounds = [filled(n) for n in (part.start, part.stop, part.step)]
            found.append(_slice(code, *bounds, code.canonical(dimension)))
        elif part is SYMBOLIC:
            found.append(Part(_place_of(code, *next(given), x, axis, dimension), None))
        else:
            found.append(Part(position(code, part, dimension), None))
    return found


def _bound_of(code, bound):
    """A bound of a slice in a variable: one for all slices of an iteration that have it."""
    stays = type(uncast(bound)) is Name
    return code.derived(bound, "k") if stays else code.variable(bound, "k")


def _place_of(code, place, index, x, axis, dimension):
    """Where an index is in an axis, counted from the first item."""
    place = code.variable(place, "k")
    if code.is_within(index, x, axis):
        return place
    return position(code, place, dimension, code.guard(index, dimension))


def _slice(code, start, stop, step, dimension):
    """A slice of an axis; bounds are numbers, variables or None."""
    start, stop, step = map(clipped, (start, stop, 1 if step is None else step))
    if isinstance(step, Expression):
        code.fail_if(either(step.equals(0), step < -SLICE_BOUND))
    if is_known(dimension) and not any(isinstance(n, Expression) for n in (start, stop, step)):
        found = range(dimension.value)[start:stop:step]
        whole = len(found) == dimension.value and step > 0
        return Part(as_node(found.start), Constant(len(found)), as_node(step), whole)
    if stop is None and step == 1 and start in (None, 0):
        return Part(ZERO, dimension, ONE, True)
    if step == -1 and start is stop is None:
        return Part(code.derived(dimension - 1, "k"), dimension, as_node(-1))
    lower, upper, first, last = _ends(code, step, dimension)
    count = _fewer(code, start, stop, step, dimension)
    start = first if start is None else _bound(code, start, dimension, lower, upper)
    if count is None:
        stop = last if stop is None else _bound(code, stop, dimension, lower, upper)
        count = _count(code, start, stop, step)
    return Part(start, count, as_node(step))


def _fewer(code, start, stop, step, dimension):
    """The count of a slice that leaves out so many items of an axis, by their number alone.

    So ``v[1:]`` and ``v[:-1]`` have one length, and ``v[2:]``, ``v[1:-1]`` and ``v[:-2]``.
    """
    ends = [0 if n is None else n for n in (start, stop)]
    if step != 1 or any(isinstance(n, Expression) for n in ends) or ends[0] < 0 or ends[1] > 0:
        return None
    if stop == 0:
        return None
    return code.derived(call("max", 0, dimension - (ends[0] - ends[1])))


def _ends(code, step, dimension):
    """Within what the bounds of a slice are, and its bounds where none are given."""
    top = dimension - 1
    if isinstance(step, Expression):
        lower = code.derived(select(step > 0, 0, -1), "k")
        upper = code.derived(select(step > 0, dimension, top), "k")
        first = code.derived(select(step > 0, 0, upper), "k")
        return lower, upper, first, code.derived(select(step > 0, upper, -1), "k")
    if step > 0:
        return ZERO, dimension, ZERO, dimension
    upper = code.derived(top, "k")
    return as_node(-1), upper, upper, as_node(-1)


def _bound(code, bound, dimension, lower, upper):
    if isinstance(bound, Expression):
        near, far = call("min", bound, upper), call("max", bound + dimension, lower)
        return code.derived(select(bound >= 0, near, far), "k")
    if bound == 0 and lower == ZERO:
        return ZERO
    found = call("min", bound, upper) if bound >= 0 else call("max", dimension - -bound, lower)
    return code.derived(found, "k")


def _count(code, start, stop, step):
    """How many items there are from a bound to another."""
    if not isinstance(step, Expression) and step == 1 and start == ZERO:
        return stop
    if step in (1, -1):
        length = stop - start if step == 1 else start - stop
        return code.derived(call("max", 0, length))
    up = select(stop > start, (stop - start - 1) // step + 1, 0)
    down = select(start > stop, (start - stop - 1) // -step + 1, 0)
    if isinstance(step, int):
        return code.derived(up if step > 0 else down)
    return code.derived(select(step > 0, up, down))


def picked(code, value, parts) -> tuple[Window, tuple[Expression, ...]]:
    """What parts of a key take of a block: a window with its dimensions, without new axes."""
    around, real = window(code, value), [part for part in parts if part is not None]
    begun = around.moved(*(part.start for part in real))
    pairs = [(p, s) for p, s in zip(real, around.strides, strict=True) if p.count is not None]
    steps = tuple(times(part.step, stride) for part, stride in pairs)
    return Window(value.base, begun.offset, steps), tuple(part.count for part, _ in pairs)


def _pick(code, op, value, parts):
    result = op.outputs[0]
    found, counts = picked(code, value, parts)
    if not result.spec.rank:
        return code.bind(result, code.local(found.at(), value.dtype))
    counts = iter(counts)
    dimensions = [
        ONE if p is None else next(counts) for p in parts if p is None or p.count is not None
    ]
    dimensions = tuple(
        held(code, *pair) for pair in zip(dimensions, result.spec.shape, strict=True)
    )
    if is_together(parts):
        return code.bind(result, Block(value.base, dimensions, offset_of(code, found)))
    block = code.result(op, dimensions=dimensions)
    kept = tuple(n for n, p in zip(dimensions, _lasting(parts), strict=True) if p is not None)
    return move(code, kept, window(code, block, kept), found)


def _lasting(parts):
    return [part for part in parts if part is None or part.count is not None]


def is_together(parts) -> bool:
    """Whether what is taken lies together: all after the first longer part is taken whole."""
    real = [part for part in parts if part is not None]
    long = [k for k, part in enumerate(real) if part.count not in (None, ONE)]
    if not long:
        return True
    first = long[0]
    return real[first].step == ONE and all(part.whole for part in real[first + 1 :])


class _Symbolic:
    """In a key, where an integer goes that is an input of the operation."""

    def __repr__(self):
        return "?"


SYMBOLIC = _Symbolic()
_EVERY = builtins.slice(None)


def _key_of(items, x):
    """The parts of a key, and the inputs that fill it in.

    No run may come to a body, so that only a run is to raise for an index there which is proven to
    be out of range: it is an input, as passes rely on integers in keys to be within their axes.
    """
    scalars: list[Any] = []
    parts = _as_parts(items, scalars)
    if not is_in_body(x) or not any(type(part) is int for part in parts):
        return parts, scalars
    shape = data_spec(as_array(x) if isinstance(x, list | tuple) else x).shape
    if shape is None:
        return parts, scalars
    given, key, inputs = iter(scalars), [], []
    for part, dimension in zip(parts, _dimensions_of(parts, shape), strict=True):
        if type(part) is int and _is_outside(part, dimension):
            key.append(SYMBOLIC)
            inputs.append(np.int64(clipped(part)))
            continue
        key.append(part)
        inside = (part.start, part.stop, part.step) if isinstance(part, builtins.slice) else (part,)
        inputs += [next(given) for each in inside if each is SYMBOLIC]
    return tuple(key), inputs


def _dimensions_of(key, shape):
    """The length of the axis that each part of a key is for; None for '...' and new axes."""
    used = sum(part is not None and part is not Ellipsis for part in key)
    axis, found = 0, []
    for part in key:
        counts = part is not None and part is not Ellipsis and axis < len(shape)
        found.append(shape[axis] if counts else None)
        axis += len(shape) - used if part is Ellipsis else part is not None
    return found


def _is_outside(index, dimension):
    return type(dimension) is int and not -dimension <= index < dimension


def _as_parts(items, scalars):
    """The parts of a key, with symbolic integers moved to ``scalars``."""
    parts = tuple(_as_part(item, scalars) for item in items)
    if sum(part is Ellipsis for part in parts) > 1:
        raise invalid("index", f"[{_text(parts)}]: there is more than one '...'; use one")
    return parts


def _as_part(item, scalars):
    if item is None or item is Ellipsis:
        return item
    if not isinstance(item, builtins.slice):
        return _as_integer(item, scalars)
    bounds = (item.start, item.stop, item.step)
    part = builtins.slice(*(None if n is None else _as_integer(n, scalars) for n in bounds))
    if part.step == 0:
        raise invalid("index", f"[{_text((part,))}]: the step of a slice must not be 0")
    return part


def _as_integer(item, scalars):
    kind = getattr(item, "dtype", np.dtype(int)).kind
    if isinstance(item, bool) or kind == "b":
        raise invalid("mask", f"{item!r} is not an index; where it is a mask, use nbta.where")
    if isinstance(item, Tensor):
        return _as_symbolic(item, scalars)
    try:
        return operator.index(item)
    except TypeError:
        message = (
            f"{item!r} is not an index here; use integers, slices, ... and None, and nbta.take "
            f"for an array of indices along one axis"
        )
        raise invalid("index", message) from None


def _as_symbolic(tensor, scalars):
    if tensor.dtype.kind not in "iu" or tensor.spec.rank not in (0, None):
        message = (
            f"{tensor!r} is not an index here; cast it to an integer, or use nbta.take for indices "
            f"along one axis"
        )
        raise invalid("index", message)
    scalars.append(tensor)
    return SYMBOLIC


def _text(key) -> str:
    """A key as it is written between brackets."""
    return ", ".join(_part_text(part) for part in key)


def _part_text(part):
    if part is Ellipsis:
        return "..."
    if not isinstance(part, builtins.slice):
        return repr(part)
    start, stop, step = ("" if n is None else repr(n) for n in (part.start, part.stop, part.step))
    return f"{start}:{stop}" + (f":{step}" if step else "")


def aligned(key, shape):
    """The key with a part for each axis in place of ``...``; None parts stay."""
    used = sum(part is not None and part is not Ellipsis for part in key)
    if used > len(shape):
        message = (
            f"[{_text(key)}] has {used} indices, and shape {shapes.text(shape)} has {len(shape)} "
            f"axes; leave some out"
        )
        raise out_of_range(message)
    # Found by identity: parts of a key may have an equality of their own.
    place = next((i for i, part in enumerate(key) if part is Ellipsis), len(key))
    return key[:place] + (_EVERY,) * (len(shape) - used) + key[place + 1 :]


def index_of(key, scalars, shape) -> list:
    """The integer or the tensor that a key has for each axis; None where it has a slice."""
    parts = indexes_of(key, scalars, shape)
    return [None if isinstance(part, builtins.slice) else part for part in parts]


def indexes_of(key, scalars, shape) -> list:
    """What a key has for each axis: an integer or a tensor, or a slice from and to these."""
    scalars, found = iter(scalars), []
    for part in aligned(key, shape):
        parts = (part.start, part.stop, part.step) if isinstance(part, builtins.slice) else (part,)
        given = [next(scalars) if each is SYMBOLIC else each for each in parts]
        if part is not None:
            found.append(given[0] if len(given) == 1 else builtins.slice(*given))
    return found


def _infer_getitem(spec, *scalars, key):
    return Spec(spec.dtype, None if spec.shape is None else indexed(spec.shape, key))


def indexed(shape, key):
    """The shape that a key picks."""
    result, axis = [], 0
    for part in aligned(key, shape):
        if part is None:
            result.append(1)
            continue
        if isinstance(part, builtins.slice):
            result.append(_sliced(shape[axis], part))
        else:
            _check_range(part, axis, shape, key)
        axis += 1
    return tuple(result)


def _check_range(index, axis, shape, key):
    dimension = shape[axis]
    if index is SYMBOLIC or not _is_outside(index, dimension):
        return
    message = (
        f"[{_text(key)}] is out of range for shape {shapes.text(shape)}: axis {axis} has "
        f"{dimension} "
        f"elements, and there is no index {index}"
    )
    raise out_of_range(message)


def _sliced(dimension, part):
    """How many a slice picks of an axis."""
    if dimension == 0:
        return 0
    bounds = (part.start, part.stop, part.step)
    if any(n is SYMBOLIC for n in bounds):
        return None
    if type(dimension) is int:
        return len(range(*part.indices(dimension)))
    if part.stop is None and (part.start, part.step) in _WHOLE:
        return dimension
    start, step = part.start or 0, part.step or 1
    empty = step > 0 and part.stop is not None and part.stop <= start
    return 0 if empty and (start < 0) == (part.stop < 0) else None


#: Start and step of slices that take a whole axis.
_WHOLE = {(start, step) for start in (None, 0) for step in (None, 1)} | {(None, -1), (-1, -1)}


def _filled(key, scalars):
    """The key with the values of the scalars in it."""
    try:
        if len(key) == 1 and key[0] is SYMBOLIC:
            return (operator.index(scalars[0]),)
        values = map(operator.index, scalars)
        return tuple(_fill(part, values) for part in key)
    except TypeError:
        message = f"[{_text(key)}]: an index is not a scalar; use nbta.take for arrays of indices"
        raise invalid("index", message) from None


def _fill(part, values):
    if not isinstance(part, builtins.slice):
        return next(values) if part is SYMBOLIC else part
    bounds = (part.start, part.stop, part.step)
    return builtins.slice(*(next(values) if n is SYMBOLIC else n for n in bounds))


def _evaluate_getitem(x, *scalars, key):
    if scalars:
        key = _filled(key, scalars)
    try:
        return x[key]
    except IndexError as error:
        raise _not_there(x, key, error) from None


def _not_there(x, key, error):
    """The error for a key that an array does not have."""
    try:
        indexed(np.shape(x), key)
    except NbtaError as refusal:
        return refusal
    return out_of_range(f"[{_text(key)}]: {error}")


def _getitem_gradient(op, dy):
    x, *scalars = op.inputs
    key = op.attrs["key"]

    def alone(dy):
        attrs = {"key": key, "pattern": x.spec.shape}
        return apply(SCATTER_SLICE, [dy, shape_of(x), *scalars], attrs)

    def onto(total, dy):
        return apply(ADD_ITEM, [total, dy, *scalars], {"key": key})

    place = GETITEM, repr(key), *scalars
    return [Addend(dy, place, alone, onto)] + [None] * len(scalars)


def _misses(op):
    """Whether an index is of the run, or of an axis whose length only the run knows."""
    shape = op.inputs[0].spec.shape
    axes = iter(shape)
    parts = [(part, next(axes)) for part in aligned(op.attrs["key"], shape) if part is not None]
    picked = [(part, n) for part, n in parts if not isinstance(part, builtins.slice)]
    return any(part is SYMBOLIC or type(n) is not int for part, n in picked)


def _is_within(op):
    """Whether all indices are integers that were found to be within their axes."""
    fixed = all(type(part) is int for part in op.attrs["key"])
    return fixed and shapes.is_known(op.inputs[0].spec.shape)


def _emit_getitem(code, op) -> None:
    """A view of what lies together in memory; other items are copied."""
    key = aligned(op.attrs["key"], op.inputs[0].spec.shape)
    x, result = op.inputs[0], op.outputs[0]
    if any(tensor.spec.rank for tensor in op.inputs[1:]):
        return code.call_python(op)
    value = code.values[x]
    if isinstance(value, Vector) and len(key) == 1 and _is_constant(key[0]):
        return code.bind(result, _of_vector(value, key[0]))
    value = code.value(x)
    if isinstance(value, Scalar):
        return _of_scalar(code, op, value)
    parts = parts_of(code, key, op.inputs[1:], value.dimensions, x)
    return _pick(code, op, value, parts)


def _is_constant(part):
    if isinstance(part, builtins.slice):
        return SYMBOLIC not in (part.start, part.stop, part.step)
    return isinstance(part, int)


def _of_vector(value, part):
    if isinstance(part, int):
        return Scalar(value.items[part], value.dtype)
    return Vector(value.items[part], value.dtype)


def _of_scalar(code, op, value):
    if not op.outputs[0].spec.rank:
        return code.bind(op.outputs[0], value)
    block = code.result(op, dimensions=(ONE,) * op.outputs[0].spec.rank)
    return code.add(assign(block.at(0), value.item))


GETITEM = define(
    "GetItem",
    _infer_getitem,
    _evaluate_getitem,
    _getitem_gradient,
    emit=_emit_getitem,
    total=_is_within,
    selects=True,
    misses=_misses,
    linear=(0,),
)


@exported
def getitem(x: ArrayLike, key: Any, *, name: str | None = None) -> Array:
    """What ``x[key]`` is: elements by integers, slices, ``...`` and None.

    Parameters
    ----------
    x : array-like or Tensor
    key : int, slice, Ellipsis, None, or a tuple of these
        Integers and bounds of slices may be symbolic scalars. An array of integers, alone, picks
        rows as `take` does along the first axis.

    Returns
    -------
    Tensor or numpy.ndarray
        Of the dtype of ``x``, and of the shape that NumPy gives.

    Raises
    ------
    InvalidArgumentError
        For an index that is out of range or no index, for more indices than axes, and for boolean
        masks.

    Examples
    --------
    >>> nbta.getitem([[1, 2, 3], [4, 5, 6]], np.s_[1, ::-1])
    array([6, 5, 4])
    """
    items = key if isinstance(key, tuple) else (key,)
    if len(items) == 1 and _is_array(items[0]):
        return take(x, items[0], 0, name=name)
    parts, scalars = _key_of(items, x)
    return apply(GETITEM, [x, *scalars], {"key": parts}, name)


def _is_array(item):
    if isinstance(item, Tensor):
        return bool(item.spec.rank)
    return isinstance(item, list) or (isinstance(item, np.ndarray) and item.ndim > 0)


@exported
def set_item(x: ArrayLike, key: Any, value: ArrayLike, *, name: str | None = None) -> Array:
    """``x`` with other items at a key, as after ``x[key] = value``; ``x`` itself stays as it is.

    In compiled code the items are replaced where they are, unless something needs the old ones.

    Parameters
    ----------
    x : array-like or Tensor
    key : int, slice, Ellipsis, None, or a tuple of these
        As for `getitem`; integers and bounds of slices may be symbolic scalars. An array of
        integers, alone, names rows along the first axis; of a row that it names more than once the
        last value stays.
    value : array-like or Tensor
        Broadcasts to the shape of ``x[key]``. It is cast to the dtype of ``x`` where that is of the
        same kind.

    Returns
    -------
    Tensor or numpy.ndarray
        Of the shape and dtype of ``x``.

    Raises
    ------
    InvalidArgumentError
        For an index that is out of range or no index, for boolean masks, and for a value of a shape
        or kind that does not fit.

    Examples
    --------
    >>> nbta.set_item([1.0, 2.0, 3.0], -1, 9.0)
    array([1., 2., 9.])
    >>> nbta.set_item([1.0, 2.0, 3.0], [0, 2], [7.0, 8.0])
    array([7., 2., 8.])
    >>> nbta.set_item(np.zeros((2, 3)), np.s_[:, 1], [5, 6])
    array([[0., 5., 0.],
           [0., 6., 0.]])
    """
    return _changed(SET_ITEM, SCATTER_SET, x, key, value, name)


@exported
def add_item(x: ArrayLike, key: Any, value: ArrayLike, *, name: str | None = None) -> Array:
    """``x`` with values added at a key, as after ``x[key] += value``; ``x`` itself stays as it is.

    Parameters
    ----------
    x, key, value
        As for `set_item`. A row that an array of indices names more than once gets all of its
        values, as by NumPy's ``np.add.at``.

    Returns
    -------
    Tensor or numpy.ndarray
        Of the shape and dtype of ``x``.

    Raises
    ------
    InvalidArgumentError
        As `set_item` does.

    Examples
    --------
    >>> nbta.add_item([1.0, 2.0, 3.0], np.s_[1:], 10.0)
    array([ 1., 12., 13.])
    >>> nbta.add_item([0.0, 0.0], [1, 1], [2.0, 3.0])
    array([0., 5.])
    """
    return _changed(ADD_ITEM, SCATTER_ADD, x, key, value, name)


def _changed(record, rows, x, key, value, name):
    """A tensor changed by one operation, or by another where the key is an array of rows."""
    x, value = _target(x), value if isinstance(value, Tensor) or is_weak(value) else as_array(value)
    value = castable(value, x.dtype)
    items = key if isinstance(key, tuple) else (key,)
    if len(items) == 1 and _is_array(items[0]):
        return apply(rows, [x, as_indices(items[0]), value], {"axis": 0}, name)
    parts, scalars = _key_of(items, x)
    return apply(record, [x, _of_rank(value, x, parts), *scalars], {"key": parts}, name)


def _target(x):
    """What is to be changed, as a tensor or an array."""
    if isinstance(x, Tensor) and x.weak is None:
        return x
    return promoted(x)[0]


def castable(value, dtype):
    """A value in the dtype of what it goes into, as far as that loses no part of it."""
    have = value.weak or value.dtype if isinstance(value, Tensor) else getattr(value, "dtype", None)
    weak = is_weak(value)
    kind = np.dtype(have or type(value))
    sort = np.uint8 if weak and kind.kind == "i" else kind  # Python's have a sign where needed
    if not np.can_cast(sort, dtype, "same_kind"):
        message = (
            f"value: it is {kind}, and what it goes into is {dtype}; cast one of them, such as "
            f"nbta.cast(x, {kind.name!r})"
        )
        raise invalid("dtype", message)
    return of_dtype(value, dtype, None)


def _of_rank(value, x, parts):
    """A value without first axes of one item that what it goes into does not have."""
    rank = data_spec(x).rank
    if rank is not None:
        indices = [part for part in parts if part is not None and part is not Ellipsis]
        lasting = [part for part in parts if part is None or isinstance(part, builtins.slice)]
        rank = max(rank - len(indices) + len(lasting), 0)  # too many are told of by the operation
    while rank is not None and value.ndim is not None and value.ndim > rank:
        if data_spec(value).shape[0] != 1:
            break
        value = getitem(value, 0)
    return value


def _infer_scatter_slice(dy, _, *scalars, key, pattern):
    return Spec(dy.dtype, pattern)


def _evaluate_scatter_slice(dy, shape, *scalars, key, pattern):
    out = np.zeros(shape, np.asarray(dy).dtype)
    out[_filled(key, scalars) if scalars else key] = dy
    return out


def _scatter_slice_gradient(op, dy):
    _, _, *scalars = op.inputs
    picked = apply(GETITEM, [dy, *scalars], {"key": op.attrs["key"]})
    return [picked, None] + [None] * len(scalars)


def _emit_scatter_slice(code, op) -> None:
    """Zeros, with items at the places that a key names."""
    key = aligned(op.attrs["key"], op.outputs[0].spec.shape)
    dy, result, scalars = op.inputs[0], op.outputs[0], op.inputs[2:]
    if any(tensor.spec.rank for tensor in scalars):
        return code.call_python(op)
    value, dimensions = code.kept(dy), wanted(code, op)
    for dimension in dimensions:
        windows.is_below(code, ZERO, dimension)
    if not dimensions:
        return code.bind(result, code.local(_first(code.value(dy)), result.dtype))
    parts = parts_of(code, key, scalars, dimensions, result)
    shape = tuple(ONE if part is None else part.count for part in _lasting(parts))
    if len(shape) != len(value.dimensions):
        return code.call_python(op)
    for mine, theirs in zip(value.dimensions, shape, strict=True):
        code.equate(mine, theirs)
    return _put(code, op, dimensions, parts)


def _put(code, op, dimensions, parts):
    value = code.value(op.inputs[0])
    block = code.result(op, dimensions=dimensions)
    if not all(part is None or part.whole for part in parts):
        windows.clear(code, block)
    target, counts = picked(code, block, parts)
    if isinstance(value, Scalar):
        return code.add(assign(target.at(), value.item))
    return move(code, counts, target, window(code, value, counts))


def _first(value):
    return value.item if isinstance(value, Scalar) else value.at(0)


SCATTER_SLICE = define(
    "ScatterSlice",
    _infer_scatter_slice,
    _evaluate_scatter_slice,
    _scatter_slice_gradient,
    emit=_emit_scatter_slice,
    shape_input=1,
    linear=(0,),
    moves=True,
)


# Replacing items, and adding to them.


def _infer_item(x, value, *scalars, key):
    if x.shape is not None:
        _check_value(indexed(x.shape, key), value.shape, key)
    return Spec(x.dtype, x.shape)


def _check_value(shape, value, key):
    """That a value broadcasts to what a key picks."""
    if value is None:
        return
    fits = len(value) <= len(shape) and all(
        type(n) is not int or type(m) is not int or n in (1, m)
        for n, m in zip(value[::-1], shape[::-1], strict=False)
    )
    if not fits:
        message = (
            f"value: shape {shapes.text(value)} does not broadcast to {shapes.text(shape)}, the "
            f"shape of [{_text(key)}]"
        )
        raise invalid("shape", message)


def _set_items(out, value, *scalars, key):
    place = _place(out, scalars, key, value)
    try:
        out[place] = value
    except IndexError as error:
        raise _not_there(out, place, error) from None
    return out


def _add_items(out, value, *scalars, key):
    place = _place(out, scalars, key, value)
    try:
        out[place] += value
    except IndexError as error:
        raise _not_there(out, place, error) from None
    return out


def _place(x, scalars, key, value):
    """A key with numbers in it, whose items a value fits; whether it is within an array shows."""
    key = _filled(key, scalars) if scalars else key
    if np.ndim(value):
        _check_value(indexed(x.shape, key), value.shape, key)
    return key


def _set_gradient(op, dy):
    _, _, *scalars = op.inputs
    value = _of_value(op, dy)  # before the items are cleared, which then happens in place
    rest = apply(SET_ITEM, [dy, np.zeros((), dy.dtype), *scalars], {"key": op.attrs["key"]})
    return [rest, value, *[None] * len(scalars)]


def _add_item_gradient(op, dy):
    return [dy, _of_value(op, dy), *[None] * (len(op.inputs) - 2)]


def _of_value(op, dy):
    """The gradient of what was put to the places that a key names."""
    _, value, *scalars = op.inputs
    return unbroadcast(apply(GETITEM, [dy, *scalars], {"key": op.attrs["key"]}), value)


def _emit_item(code, op) -> None:
    """Items replaced, or added to, where they are unless somebody needs the old ones."""
    x, value, *scalars = op.inputs
    adds = op.record is ADD_ITEM
    if any(tensor.spec.rank for tensor in scalars):
        return code.call_python(op)
    if not x.spec.rank:
        return _emit_only_item(code, op, adds)
    key = aligned(op.attrs["key"], x.spec.shape)
    parts = parts_of(code, key, scalars, code.dimensions(x), x)
    last = _lasting(parts)
    dimensions = tuple(ONE if part is None else part.count for part in last)
    _equate_long(code, value, dimensions)
    steps = spread(code, code.dimensions(value), len(dimensions), dimensions)
    block = code.changed(op)
    target, _ = picked(code, block, parts)
    strides = iter(target.strides)
    around = Window(
        target.base, target.offset, tuple(ZERO if part is None else next(strides) for part in last)
    )
    if put_at_once(code, value, dimensions, around, adds=adds):
        return None
    return put(code, dimensions, around, code.value(value), steps, adds=adds)


def _equate_long(code, value, dimensions):
    """Know that dimensions are those of a value, where these are proven not to be repeated."""
    known = value.spec.shape
    for axis in range(-min(len(known), len(dimensions)), 0):
        if isinstance(known[axis], shapes.Dim):
            code.equate(code.dimensions(value)[axis], dimensions[axis])


def _emit_only_item(code, op, adds):
    """The one item of a scalar."""
    x, value = code.scalar(op.inputs[0]), code.value(op.inputs[1])
    item = value.item if isinstance(value, Scalar) else value.at(0)
    dtype = op.outputs[0].dtype
    return code.bind(op.outputs[0], code.local(x + item if adds else item, dtype))


SET_ITEM = define_change(
    "SetItem",
    _infer_item,
    _set_items,
    _set_gradient,
    emit=_emit_item,
    misses=_misses,
    linear=(0, 1),
    moves=True,
)
ADD_ITEM = define_change(
    "AddItem",
    _infer_item,
    _add_items,
    _add_item_gradient,
    emit=_emit_item,
    misses=_misses,
    linear=(0, 1),
)
