"""Integers that are known not to be negative, by what they are computed from.

An index that is not negative counts from the start of an array, so that one of a view is that of
the array and a number more.
"""

from __future__ import annotations

from nbta.graph.graph import current
from nbta.graph.operation import Tensor
from nbta.ops.arithmetic import add, multiply
from nbta.ops.dispatch import CONSTANT
from nbta.ops.extents import outside
from nbta.ops.numbers import Number

_COUNTERS = "counters of loops that begin at 0 or later"
#: How many operations an integer is followed through.
_DEPTH = 4


def note_counter(counter, start, step) -> None:
    """Note the counter of a loop, from ``start`` on."""
    if step > 0 and is_natural(start):
        current().root.cache.setdefault(_COUNTERS, set()).add(counter)


def is_natural(value, depth=_DEPTH) -> bool:
    """Whether a value is sure to be an integer from 0 on."""
    if not isinstance(value, Tensor):
        return type(value) is int and value >= 0
    if isinstance(value, Number):
        return value.weak is int and value.least is not None and value.least >= 0
    if value.dtype.kind not in "iu" or value.spec.rank != 0:
        return False
    value = outside(value)
    if value in value.graph.root.cache.get(_COUNTERS, ()):
        return True
    op = value.op
    if op.record is CONSTANT:
        return bool(op.attrs["value"] >= 0)
    known = op.record in (add.record, multiply.record) and depth
    return bool(known) and all(is_natural(each, depth - 1) for each in op.inputs)
