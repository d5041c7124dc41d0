"""Integers of Python's that a loop of the graph makes larger: Python's have no end, a graph's do.

``fact *= k`` needs more than 64 bits from ``k = 21`` on. Where a product or shift of an iteration
does, or a sum of two numbers that both grow, as Fibonacci's do, that is an error in place of
another number. Counters are not looked at, nor what the next iteration does not take up, such as
the index ``i * n + j``, nor products in a branch that the run decides, nor items of a list that is
one tensor in the loop (`nbta.control.item_variables`).
"""

from __future__ import annotations

import numpy as np

from nbta.errors import invalid
from nbta.frontend.native import plain
from nbta.frontend.problems import here
from nbta.ops.core.arithmetic import add, less, multiply
from nbta.ops.core.checks import ASSERT, after, first_token
from nbta.ops.core.dispatch import apply, as_tensor
from nbta.ops.core.shaping import cast
from nbta.ops.elementary.basic import abs as absolute
from nbta.ops.elementary.basic import power
from nbta.ops.elementary.integers import left_shift
from nbta.ops.indexing.items import GETITEM


def checked_growth(pairs) -> list:
    """What integers are after an iteration; it fails in a run where one is too large.

    Parameters
    ----------
    pairs : list of (Tensor, Tensor)
        Integers before and after an iteration, which were Python's before the loop.
    """
    pairs = [(plain(start), plain(end)) for start, end in pairs]
    growing, before = [start for start, _ in pairs], None
    while growing != before:
        before = growing
        growing = [start for start, end in pairs if not _counts(start, end, before)]
    ids = set(map(id, growing))
    return [
        _checked(end, _steps(start, end, growing)) if id(start) in ids else end
        for start, end in pairs
    ]


def _counts(start, end, growing):
    """Whether an iteration changes nothing, or adds what no variable that may grow has part in."""
    others = [each for each in end.op.inputs if each is not start]
    is_sum = end.op.record is add.record and len(others) == 1
    same = end is start or end.op.record is GETITEM
    return same or (is_sum and not _is_made_of(others[0], growing))


def _is_made_of(tensor, starts):
    """Whether a tensor of a body is made of any of some."""
    todo, seen = [tensor], set()
    while todo:
        each = todo.pop()
        if any(each is start for start in starts):
            return True
        if each not in seen and each.graph is tensor.graph:
            seen.add(each)
            todo += each.op.inputs
    return False


def _steps(start, end, growing):
    """The operations, on the way from a variable to its next value, that may make it too large."""
    found, todo, seen = [], [end.op], set()
    while todo:
        op = todo.pop()
        if op in seen or op.graph is not start.graph:
            continue
        seen.add(op)
        inputs = [each for each in op.inputs if each is start or _is_made_of(each, [start])]
        both = all(_is_made_of(each, growing) for each in op.inputs)
        if inputs and (op.record in _SIZES or (op.record is add.record and both)):
            found.append(op)
        todo += [each.op for each in inputs if each is not start]
    return found


def _checked(end, steps):
    for op in steps:
        numbers = [cast(each, np.float64) for each in op.inputs]
        size = absolute(_SIZES.get(op.record, add)(*numbers))
        message = (
            f"{here()}: a loop makes an integer of more than 64 bits, which a graph does not have; "
            f"begin with a float, such as 1.0"
        )
        fits = less(size, as_tensor(2.0**63))
        end = after(
            end, apply(ASSERT, [first_token(), fits], {"message": invalid("value", message)})
        )
    return end


#: What tells, of operands as floats, how large the result is.
_SIZES = {
    multiply.record: multiply,
    left_shift.record: lambda number, places: multiply(number, power(as_tensor(2.0), places)),
}
