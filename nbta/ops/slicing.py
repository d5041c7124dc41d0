"""Blocks of a tensor by where they begin and how large they are."""

import builtins

import numpy as np

from nbta import shapes
from nbta.codegen import slice_rules
from nbta.dtypes import check_plain
from nbta.errors import invalid
from nbta.graph.operation import Tensor
from nbta.graph.spec import Spec
from nbta.ops.dispatch import apply, data_spec, define, exported
from nbta.ops.elementwise import meet
from nbta.ops.extents import pattern_of
from nbta.ops.filling import zeros, zeros_like
from nbta.ops.shaping import INT64, cast, reshape, shape_of


def _as_vector(argument, value):
    """Integers, one an axis, as a vector of int64, symbolic where any of them is."""
    if isinstance(value, Tensor):
        return _symbolic_vector(argument, value)
    check_plain(argument, value)
    items = list(value) if isinstance(value, list | tuple) else list(np.atleast_1d(value))
    if any(isinstance(item, Tensor) for item in items):
        from nbta.ops.joining import stack

        return stack([_scalar(argument, item) for item in items])
    array = np.asarray(items)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise invalid("shape", f"{argument}: {value!r} is no vector of integers, one an axis")
    return array.astype(np.int64)


def _symbolic_vector(argument, value):
    if value.dtype.kind not in "iu" or value.spec.rank not in (0, 1, None):
        raise invalid("shape", f"{argument}: {value!r} is no vector of integers, one an axis")
    value = reshape(value, (1,)) if value.spec.rank == 0 else value
    return value if value.dtype == INT64 else cast(value, INT64)


def _scalar(argument, item):
    dtype = item.dtype if isinstance(item, Tensor) else np.asarray(item).dtype
    if dtype.kind not in "iu":
        raise invalid("dtype", f"{argument}: {item!r} is no integer; cast it")
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


def _length(axis, extent, begin, size, clamp):
    """The length of a block along an axis, None where it is not known; it must lie inside."""
    if type(extent) is not int:
        return size if size >= 0 else None
    length = extent - begin if size == -1 and not clamp else size
    if length < 0 or length > extent or (not clamp and not 0 <= begin <= extent - length):
        what = f"{size} from {begin} on" if not clamp else f"{size}"
        message = (
            f"axis {axis} has {extent} elements, and a slice of {what} does not fit; choose it "
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
    for axis, (extent, first, length) in enumerate(zip(shape, begin, size, strict=True)):
        length = _length(axis, extent, int(first), int(length), clamp)
        first = min(max(int(first), 0), extent - length)
        key.append(builtins.slice(first, first + length))
    return tuple(key)


def _evaluate_slice(x, begin, size, *, pattern, clamp):
    return x[_block(np.shape(x), begin, size, clamp)]


def _slice_gradient(op, dy):
    x, begin, _ = op.inputs
    return [dynamic_update_slice(zeros(shape_of(x), dy.dtype), dy, begin), None, None]


SLICE = define(
    "Slice",
    _infer_slice,
    _evaluate_slice,
    _slice_gradient,
    emit=slice_rules.slice_block,
    shape_input=2,
)


def _static_lengths(x, begin, size, clamp):
    """The shape of a block, as far as it is known."""
    if isinstance(size, Tensor):
        return pattern_of(size)
    extents = x.spec.shape if isinstance(x, Tensor) else np.shape(x)
    if extents is None or len(extents) != len(size):
        return tuple(None if n < 0 else int(n) for n in size)
    if isinstance(begin, Tensor) or len(begin) != len(size):
        return tuple(None if n < 0 else int(n) for n in size)
    facts = zip(extents, begin.tolist(), size.tolist(), strict=True)
    return tuple(_length(i, n, b, s, clamp) for i, (n, b, s) in enumerate(facts))


@exported
def dynamic_slice(x, starts, sizes, *, name=None):
    """A block of fixed size, moved inwards where it would reach over the edge.

    Parameters
    ----------
    x : array-like or Tensor
    starts : sequence of int or Tensor, or Tensor
        Where the block begins, one entry an axis. Negative ones are moved to 0; so that the block
        fits, large ones are moved to ``extent - size``.
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
    x = meet(x)[0]
    _check_rank("sizes", data_spec(x).shape, size)
    for axis, (extent, length) in enumerate(zip(data_spec(x).shape or (), size, strict=False)):
        _length(axis, extent, 0, int(length), True)
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


def _evaluate_update(x, update, begin):
    out = np.array(x)
    out[_block(out.shape, begin, np.shape(update), True)] = update
    return out


def _update_gradient(op, dy):
    _, update, begin = op.inputs
    size = shape_of(update)
    attrs = {"pattern": update.spec.shape, "clamp": True}
    rest = dynamic_update_slice(dy, zeros_like(update, dy.dtype), begin)
    return [rest, apply(SLICE, [dy, begin, size], attrs), None]


UPDATE = define(
    "DynamicUpdateSlice",
    _infer_update,
    _evaluate_update,
    _update_gradient,
    emit=slice_rules.update_block,
)


@exported
def dynamic_update_slice(x, update, starts, *, name=None):
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
    return apply(UPDATE, [*meet(x, update), begin], name=name)


@exported
def slice(x, begin, size, *, name=None):
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
    x = meet(x)[0]
    pattern = _static_lengths(x, begin, size, False)
    return apply(SLICE, [x, begin, size], {"pattern": pattern, "clamp": False}, name)
