"""Integers that a loop of the graph makes larger: Python's have no end, a graph's have 64 bits.

``fact *= k`` needs more from ``k = 21`` on. Where a product, power or shift of an iteration does,
or a sum or difference of two numbers that both grow, as Fibonacci's do, that is an error in place
of another number. NumPy's signed integers are Python's to a trace, and do not wrap in compiled
code, which takes that to be undefined; unsigned ones wrap. Not looked at are counters, what the
next iteration does not take up, such as the index ``i * n + j``, and items of a list that is one
tensor in the loop (`nbta.control.item_variables`).
"""

from __future__ import annotations

import numpy as np

from nbta.errors import invalid
from nbta.frontend.native import plain
from nbta.frontend.problems import here
from nbta.graph.views import Branch, Loop, is_branch, is_loop
from nbta.ops.core.arithmetic import add, less, multiply, subtract
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
        Integers before and after an iteration.
    """
    pairs = [(plain(start), as_tensor(plain(end))) for start, end in pairs]
    growing = _growing(pairs)
    of_any = _made_of(growing)
    return [
        _checked(end, _made_of({start}), of_any) if start in growing else end
        for start, end in pairs
    ]


def _growing(pairs):
    """Those that an iteration does not only add something to that does not grow."""
    growing = {start for start, _ in pairs}
    while growing:
        made = _made_of(growing)
        still = {
            start for start, end in pairs if start in growing and not _counts(start, end, made)
        }
        if still == growing:
            break
        growing = still
    return growing


def _counts(start, end, made):
    others = [each for each in end.op.inputs if each is not start]
    is_sum = end.op.record in _SUMS and len(others) == 1
    return end is start or end.op.record is GETITEM or (is_sum and others[0] not in made)


def _made_of(starts):
    """All numbers of a body that are made of any of some; an item is not made of its index."""
    found = set(starts)
    for op in next(iter(starts)).graph.operations if starts else ():
        if op.record is not GETITEM and not found.isdisjoint(op.inputs):
            found.update(each for each in op.outputs if each.spec.rank == 0)
    return found


def _checked(end, made, of_any):
    """A variable's next value, with a look at what may make it too large on the way from itself."""
    steps, todo, seen = [], [end], set()
    while todo:
        tensor = todo.pop()
        if tensor in seen or tensor not in made:
            continue
        seen.add(tensor)
        op, inputs = tensor.op, tensor.op.inputs
        is_sum = op.record in _SUMS and of_any.issuperset(inputs)
        if is_branch(op) or is_loop(op):
            _check_bodies(op, tensor.index, made, of_any)
            inputs = [each for each in inputs if each.dtype.kind == "i"]  # of floats are others
        elif (op.record in _SIZES or is_sum) and tensor.dtype.kind == "i":
            steps.append(op)  # of floats `int` looks at what it makes an integer of
        todo += inputs
    for op in steps:
        size = absolute((_SIZES | _SUMS)[op.record](*(cast(x, np.float64) for x in op.inputs)))
        message = (
            f"{here()}: a loop makes an integer of more than 64 bits, which a graph does not have; "
            f"begin with a float, such as 1.0, or with np.uint64(1) for one that wraps"
        )
        inputs = [first_token(), less(size, as_tensor(2.0**63))]
        end = after(end, apply(ASSERT, inputs, {"message": invalid("value", message)}))
    return end


def _check_bodies(op, place, made, of_any):
    """The same in the bodies of a branch or a loop, for a result."""
    for body in Branch(op).branches if is_branch(op) else [Loop(op).body]:
        own, others = (_made_inside(op, body, tensors) for tensors in (made, of_any))
        with body.as_default():
            body.outputs[place] = _checked(body.outputs[place], own, others)
        body.changed()


def _made_inside(op, body, tensors):
    """What a body makes of some tensors around it."""
    starts = {inner for inner, outer in body.sources.items() if outer in tensors}
    variables = Loop(op).variables() if is_loop(op) else []
    starts |= {variable.parameter for variable in variables if variable.first in tensors}
    made = _made_of(starts)
    while further := {v.parameter for v in variables if v.following in made} - starts:
        starts |= further
        made = _made_of(starts)
    return made


#: What tells, of operands as floats, how large a result is.
_SIZES = {
    multiply.record: multiply,
    power.record: power,
    left_shift.record: lambda number, places: multiply(number, power(as_tensor(2.0), places)),
}
_SUMS = {add.record: add, subtract.record: subtract}
