"""Indexing by integers, slices, ``...`` and None; and all that picks elements, under one roof."""

import builtins
import operator

import numpy as np

from nbta import shapes
from nbta.codegen import index_rules
from nbta.errors import invalid
from nbta.graph.operation import Tensor
from nbta.graph.spec import Spec
from nbta.ops.dispatch import apply, define, exported
from nbta.ops.gathering import gather, one_hot, scatter_add, take
from nbta.ops.shaping import shape_of
from nbta.ops.slicing import dynamic_slice, dynamic_update_slice, slice

__all__ = [
    "SYMBOLIC",
    "dynamic_slice",
    "dynamic_update_slice",
    "gather",
    "getitem",
    "one_hot",
    "scatter_add",
    "slice",
    "take",
]


class _Symbolic:
    """In a key, where an integer goes that is an input of the operation."""

    def __repr__(self):
        return "?"


SYMBOLIC = _Symbolic()
_EVERY = builtins.slice(None)


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
        raise invalid("mask", f"{item!r} is no index; where it is a mask, use nbta.where")
    if isinstance(item, Tensor):
        return _as_symbolic(item, scalars)
    try:
        return operator.index(item)
    except TypeError:
        message = (
            f"{item!r} is no index here; use integers, slices, ... and None, and nbta.take for an "
            f"array of indices along one axis"
        )
        raise invalid("index", message) from None


def _as_symbolic(tensor, scalars):
    if tensor.dtype.kind not in "iu" or tensor.spec.rank not in (0, None):
        message = (
            f"{tensor!r} is no index here; cast it to an integer, or use nbta.take for indices "
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


def _aligned(key, shape):
    """The key with a part for each axis in place of ``...``; None parts stay."""
    used = sum(part is not None and part is not Ellipsis for part in key)
    if used > len(shape):
        message = (
            f"[{_text(key)}] has {used} indices, and shape {shapes.text(shape)} has {len(shape)} "
            f"axes; leave some out"
        )
        raise invalid("index", message)
    # Found by identity: parts of a key may have an equality of their own.
    place = next((i for i, part in enumerate(key) if part is Ellipsis), len(key))
    return key[:place] + (_EVERY,) * (len(shape) - used) + key[place + 1 :]


def _infer_getitem(spec, *scalars, key):
    return Spec(spec.dtype, None if spec.shape is None else _indexed(spec.shape, key))


def _indexed(shape, key):
    """The shape that a key picks."""
    result, axis = [], 0
    for part in _aligned(key, shape):
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
    extent = shape[axis]
    if type(extent) is not int or index is SYMBOLIC or -extent <= index < extent:
        return
    message = (
        f"[{_text(key)}] is out of range for shape {shapes.text(shape)}: axis {axis} has {extent} "
        f"elements, and there is no index {index}"
    )
    raise invalid("index", message)


def _sliced(extent, part):
    """How many a slice picks of an axis."""
    if extent == 0:
        return 0
    bounds = (part.start, part.stop, part.step)
    if any(n is SYMBOLIC for n in bounds):
        return None
    if type(extent) is int:
        return len(range(*part.indices(extent)))
    if part.stop is None and (part.start, part.step) in _WHOLE:
        return extent
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
        message = f"[{_text(key)}]: an index is no scalar; use nbta.take for arrays of indices"
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
        _indexed(np.shape(x), key)
        raise invalid("index", f"[{_text(key)}]: {error}") from None


def _getitem_gradient(op, dy):
    x, *scalars = op.inputs
    attrs = {"key": op.attrs["key"], "pattern": x.spec.shape}
    dx = apply(SCATTER_SLICE, [dy, shape_of(x), *scalars], attrs)
    return [dx] + [None] * len(scalars)


def _emit_getitem(code, op):
    key = _aligned(op.attrs["key"], op.inputs[0].spec.shape)
    index_rules.getitem(code, op, key, SYMBOLIC)


def _is_within(op):
    """Whether all indices are integers that were found to be within their axes."""
    fixed = all(type(part) is int for part in op.attrs["key"])
    return fixed and shapes.is_known(op.inputs[0].spec.shape)


GETITEM = define(
    "GetItem",
    _infer_getitem,
    _evaluate_getitem,
    _getitem_gradient,
    emit=_emit_getitem,
    total=_is_within,
    selects=True,
)


@exported
def getitem(x, key, *, name=None):
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
    scalars = []
    parts = _as_parts(items, scalars)
    return apply(GETITEM, [x, *scalars], {"key": parts}, name)


def _is_array(item):
    if isinstance(item, Tensor):
        return bool(item.spec.rank)
    return isinstance(item, list) or (isinstance(item, np.ndarray) and item.ndim > 0)


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


def _emit_scatter_slice(code, op):
    key = _aligned(op.attrs["key"], op.outputs[0].spec.shape)
    index_rules.scatter_slice(code, op, key, SYMBOLIC)


SCATTER_SLICE = define(
    "ScatterSlice",
    _infer_scatter_slice,
    _evaluate_scatter_slice,
    _scatter_slice_gradient,
    emit=_emit_scatter_slice,
    shape_input=1,
)
