"""Borders of arrays as `numpy.pad` has them, with all its modes and their arguments."""

from __future__ import annotations

import builtins

import numpy as np

from nbta.dtypes import as_plain
from nbta.errors import invalid
from nbta.graph.operation import Tensor
from nbta.ops.axes.ranges import linspace
from nbta.ops.axes.reductions import max, mean, min
from nbta.ops.core.arithmetic import multiply, subtract
from nbta.ops.core.axis_arguments import operand
from nbta.ops.core.dispatch import data_spec, stands_for
from nbta.ops.core.elementwise import promoted
from nbta.ops.core.shaping import broadcast_to, cast
from nbta.ops.elementary.rounding import rint
from nbta.ops.indexing.gathering import take
from nbta.ops.indexing.items import getitem
from nbta.ops.indexing.joining import concatenate, flip, pad
from nbta.ops.statistics.quantiles import median

_STATISTICS = {"maximum": max, "mean": mean, "median": median, "minimum": min}
#: Which arguments the modes take.
_TAKEN = {
    "constant": "constant_values", "linear_ramp": "end_values", "reflect": "reflect_type",
    "symmetric": "reflect_type", **dict.fromkeys(_STATISTICS, "stat_length"),
}  # fmt: skip
_MODES = sorted({*_TAKEN, "edge", "wrap"})


@stands_for("pad", numpy=3)
def _numpys_pad(
    array, pad_width, mode="constant", *, constant_values=None, end_values=None, stat_length=None,
    reflect_type=None,
):  # fmt: skip
    x = operand(array)
    rank = data_spec(x).rank
    if rank is None:
        raise invalid("rank", f"pad: {x!r} has an unknown rank; reshape it first")
    given = {
        "constant_values": constant_values, "end_values": end_values,
        "stat_length": stat_length, "reflect_type": reflect_type,
    }  # fmt: skip
    _check_mode(mode, {name for name, value in given.items() if value is not None})
    widths = _widths(pad_width, rank, mode)
    if mode == "constant":
        value = operand(0 if constant_values is None else constant_values)
        if data_spec(value).rank == 0 and all(type(n) is int for pair in widths for n in pair):
            return pad(x, widths, value)
        return _by_axis(x, widths, _numbers(constant_values, rank), _constant)
    if mode == "linear_ramp":
        ends = operand(0 if end_values is None else end_values)
        if ends.ndim == 2 and tuple(ends.shape) not in ((1, 1), (1, 2)) and x.dtype.kind in "fc":
            ends = cast(ends, x.dtype)  # NumPy makes numbers of Python's of them
        return _by_axis(x, widths, _numbers(ends, rank), _ramp)
    if mode in _STATISTICS:
        return _by_axis(x, widths, _lengths(stat_length, rank), _statistic(_STATISTICS[mode]))
    if (reflect_type or "even") not in ("even", "odd"):
        message = f'reflect_type must be "even" or "odd", not {reflect_type!r}'
        raise invalid("value", message)
    if reflect_type == "odd":
        for axis, pair in enumerate(widths):
            x = _reflected(x, axis, pair, mode == "symmetric") if any(pair) else x
        return x
    return pad(x, widths, mode=mode)


def _check_mode(mode, given):
    if not isinstance(mode, str) or mode not in _MODES:
        known = ", ".join(map(repr, _MODES))
        empty = "; 'empty' leaves the border without values" if mode == "empty" else ""
        raise invalid("value", f"mode must be one of {known}, not {mode!r}{empty}")
    strange = sorted(given - {_TAKEN.get(mode)})
    if strange:
        raise ValueError(f"unsupported keyword arguments for mode {mode!r}: {', '.join(strange)}")


def _widths(given, rank, mode):
    """Pairs of integers, one for each axis: of a run, too, where the border is of one value."""
    if isinstance(given, dict):
        pairs = [(0, 0)] * rank
        for axis, width in given.items():
            pairs[axis] = width if isinstance(width, tuple) else (width, width)
        given = pairs
    pairs = _pairs_with_tensors(given, rank)
    if pairs is not None:
        return tuple(tuple(_width_of_run(width, mode) for width in pair) for pair in pairs)
    widths = as_plain("pad_width", given)
    if widths.dtype.kind not in "iu":
        raise TypeError("`pad_width` must be of integral type.")
    if (widths < 0).any():
        raise invalid("pad_width", f"pad_width: {given!r} has a negative width")
    try:
        return tuple((int(a), int(b)) for a, b in np.broadcast_to(widths, (rank, 2)))
    except ValueError:
        raise _misfit(given, rank) from None


def _misfit(given, rank):
    message = f"pad_width: {given!r} does not fit {rank} axes; give one pair for each axis"
    return invalid("pad_width", f"{message}, or one for all")


def _pairs_with_tensors(given, rank):
    """A pair for each axis where some width is a tensor, as NumPy makes them; else None."""
    if isinstance(given, Tensor) and data_spec(given).rank != 0:
        return _numbers(given, rank)
    rows = given if isinstance(given, list | tuple) else [given]
    if not any(isinstance(row, list | tuple) for row in rows):
        rows = [rows]
    rows = [row if isinstance(row, list | tuple) else [row] for row in rows]
    if not any(isinstance(width, Tensor) for row in rows for width in row):
        return None
    if len(rows) not in (1, rank) or any(len(row) not in (1, 2) for row in rows):
        raise _misfit(given, rank)
    return [(row[0], row[-1]) for row in (rows * rank if len(rows) == 1 else rows)]


def _width_of_run(width, mode):
    """A width, which a run may decide if the border is of one value."""
    if data_spec(operand(width)).dtype.kind not in "iu":
        raise TypeError("`pad_width` must be of integral type.")
    if not isinstance(width, Tensor):
        if width < 0:
            raise invalid("pad_width", f"pad_width: {width!r} is a negative width")
        return int(width)
    if mode != "constant":
        if width.weak is int:  # a length: a trace for each
            return int(width)
        message = f"pad_width: only the run knows {width!r}, and mode {mode!r} needs an integer"
        raise invalid("pad_width", f"{message}; take the items, as in x[indices], or give a number")
    return width


def _numbers(given, rank):
    """A number for each side of each axis."""
    given = operand(0 if given is None else given)
    shape = data_spec(given).shape
    known = shape is not None and all(type(n) is int for n in shape)
    if known and np.broadcast_shapes(shape, (rank, 2)) != (rank, 2):
        message = f"constant_values, end_values: of shape {shape}; give a pair for each axis"
        raise invalid("shape", f"{message}, one pair, or one number")
    whole = broadcast_to(given, (rank, 2))
    return [[getitem(whole, (axis, side)) for side in (0, 1)] for axis in range(rank)]


def _lengths(given, rank):
    """How many items count on each side of each axis; None for all."""
    if isinstance(given, Tensor):
        raise invalid("value", f"stat_length: {given!r} is known only in a run; give integers")
    if given is None:
        return [(None, None)] * rank
    lengths = np.broadcast_to(np.round(as_plain("stat_length", given)).astype(int), (rank, 2))
    if (lengths < 0).any():
        raise ValueError("index can't contain negative values")
    return lengths.tolist()


def _by_axis(x, widths, values, side):
    """Borders axis by axis, in which corners are of what is at the borders before."""
    for axis, (pair, value) in enumerate(zip(widths, values, strict=True)):
        if all(type(width) is int and not width for width in pair):
            continue
        parts = [side(x, axis, k, width, value) for k, width in enumerate(pair)]
        x = concatenate([cast(parts[0], x.dtype), x, cast(parts[1], x.dtype)], axis)
    return x


def _whole(x, axis, width):
    """The shape of a border."""
    return (*x.shape[:axis], width, *x.shape[axis + 1 :])


def _constant(x, axis, side, width, values):
    return broadcast_to(cast(values[side], x.dtype), _whole(x, axis, width))


def _ramp(x, axis, side, width, ends):
    edge = _between(x, axis, -1, None) if side else _between(x, axis, 0, 1)
    edge, end = promoted(take(edge, 0, axis), ends[side])
    found = linspace(end, edge, width, endpoint=False, dtype=x.dtype, axis=axis)
    return flip(found, axis) if side else found


def _between(x, axis, first, last):
    """Some items along an axis."""
    return getitem(x, (*[slice(None)] * axis, slice(first, last)))


def _statistic(function):
    def side(x, axis, k, width, lengths):
        dimension, length = int(x.shape[axis]), lengths[k]
        length = dimension if length is None or length > dimension else length
        if not length and function in (max, min):
            raise ValueError("stat_length of 0 yields no value for padding")
        if not length and function is median:
            raise invalid("empty", "stat_length: there is no median of 0 items")
        items = _between(x, axis, dimension - length, None) if k else _between(x, axis, 0, length)
        found = function(items, axis, keepdims=True)
        if x.dtype.kind in "iu" and found.dtype.kind == "f":
            found = rint(found)
        return broadcast_to(cast(found, x.dtype), _whole(x, axis, width))

    return side


def _reflected(x, axis, pair, with_edge):
    """A border of twice the edge less the items mirrored there, as often as they are needed."""
    period = int(x.shape[axis])
    if not period:
        raise invalid("empty", f"pad: axis {axis} has no items to make a border of")
    if period == 1 and not with_edge:  # NumPy repeats it
        return pad(x, [pair if k == axis else (0, 0) for k in range(x.ndim)], mode="edge")
    left, right = pair
    have = period
    while left or right:
        if with_edge:
            most = have // period * period
        else:
            most = (have - 1) // (period - 1) * (period - 1)
        count, parts = builtins.min(most, left), [x]
        if count:
            items = np.arange(count)[::-1] + (not with_edge)
            parts.insert(0, _mirrored(x, 0, items, axis))
        left -= count
        more = builtins.min(most, right)
        if more:
            # of what has its border on the left
            items = have - 1 - np.arange(more) - (not with_edge)
            parts.append(_mirrored(x, have - 1, items, axis))
        right -= more
        x, have = concatenate(parts, axis), have + count + more
    return x


def _mirrored(x, edge, items, axis):
    return subtract(multiply(take(x, [edge], axis), 2), take(x, items, axis))
