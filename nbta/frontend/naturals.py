"""Integers of which a lower bound is known, by what they are computed from.

An index that is not negative counts from the start of an array, so that one of a view is that of
the array and a number more.
"""

from __future__ import annotations

from nbta.graph.graph import current
from nbta.graph.operation import Tensor
from nbta.ops.core.arithmetic import add, multiply, subtract
from nbta.ops.core.dimensions import outside
from nbta.ops.core.dispatch import CONSTANT
from nbta.ops.numbers import Number

_COUNTERS = "where counters of loops begin"
#: How many operations an integer is followed through.
_DEPTH = 4


def note_counter(counter, start, step) -> None:
    """Note the counter of a loop, from ``start`` on."""
    first = _least(start)
    if step > 0 and first is not None:
        current().root.cache.setdefault(_COUNTERS, {})[counter] = first


def is_natural(value) -> bool:
    """Whether a value is proven to be an integer from 0 on."""
    least = _least(value)
    return least is not None and least >= 0


def _least(value, depth=_DEPTH) -> int | None:
    """What an integer is not below; None where that is unknown, and of what is no integer."""
    if not isinstance(value, Tensor):
        return value if type(value) is int else None
    if isinstance(value, Number):
        return value.least if value.weak is int else None
    if value.dtype.kind not in "iu" or value.spec.rank != 0:
        return None
    value = outside(value)
    counters = value.graph.root.cache.get(_COUNTERS, {})
    if value in counters:
        return counters[value]
    op = value.op
    if op.record is CONSTANT:
        return int(op.attrs["value"])
    if not depth or op.record not in (add.record, subtract.record, multiply.record):
        return None
    if op.record is subtract.record:
        lower, taken = _least(op.inputs[0], depth - 1), outside(op.inputs[1]).op
        known = lower is not None and taken.record is CONSTANT and value.dtype.kind == "i"
        return lower - int(taken.attrs["value"]) if known else None
    bounds = [_least(each, depth - 1) for each in op.inputs]
    if None in bounds:
        return None
    if op.record is add.record:
        return sum(bounds)
    return bounds[0] * bounds[1] if min(bounds) >= 0 else None
