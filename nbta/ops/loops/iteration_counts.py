"""How many iterations a loop makes, as far as its condition tells.

A condition is one test ``low < high``, or several that must all hold. A test that each iteration
brings nearer to its end by one is a `Limit`, whatever its ends are: variables that steps of
constants change, constants, and what the loop captures. What is known of the ends is known of the
iterations: in a run (`iterations_on_entry`), by operations before the loop (`iterations_before`),
and in linear forms where a program is compiled (`nbta.compiler.induction`).
"""

from typing import NamedTuple

import numpy as np

from nbta.graph.operation import DATA, Tensor
from nbta.graph.views import Loop, is_loop, origin, place_of, variable_of
from nbta.ops.core.arithmetic import (
    add,
    greater,
    greater_equal,
    less,
    less_equal,
    logical_and,
    subtract,
)
from nbta.ops.core.dimensions import outside
from nbta.ops.core.dispatch import CONSTANT, as_tensor
from nbta.ops.core.shaping import CAST, IDENTITY, cast

ADD, SUB = add.record, subtract.record
#: What a step may consist of.
_STEPS = frozenset({ADD, SUB, CAST, IDENTITY})

# Steps of variables.


def is_integer(tensor: Tensor) -> bool:
    """Whether a tensor is an integer of 32 or 64 bits: none that is counted needs more."""
    wide = tensor.dtype.kind == "i" and tensor.dtype.itemsize >= 4
    return wide and tensor.spec.rank == 0 and tensor.kind == DATA


def constant_of(tensor: Tensor) -> int | None:
    """The integer that a tensor is proven to be; None where only the run knows."""
    tensor = origin(tensor)
    while tensor.op.record is CAST and is_integer(tensor.op.inputs[0]):
        tensor = origin(tensor.op.inputs[0])
    return _value(tensor) if is_integer(tensor) else None


def _value(tensor):
    """The value of an integer constant of any width."""
    op = outside(tensor).op
    if op.record is not CONSTANT or np.ndim(op.attrs["value"]) or tensor.dtype.kind not in "iu":
        return None
    return int(op.attrs["value"])


def step_of(parameter: Tensor) -> int | None:
    """By how much each iteration raises a variable; None for what is no induction variable."""
    variable = variable_of(parameter)
    if variable is None or not is_integer(parameter):
        return None
    return _added(variable.following, variable.parameter)


def _added(tensor, start):
    """The constant that is added to ``start`` on the way to a tensor."""
    total = 0
    while tensor is not start:
        more, tensor = _last_step(tensor)
        if more is None or (not is_integer(tensor) and tensor.dtype != start.dtype):
            return None
        total += more
    return total


def _last_step(tensor):
    """The constant that the last step adds, None where there is none, and what it is added to."""
    op = tensor.op
    if op.record not in _STEPS:
        return None, tensor
    tensor, more = op.inputs[0], 0
    if op.record in (ADD, SUB):
        more = _amount(op.inputs[1])
        if more is None and op.record is ADD:
            tensor, more = op.inputs[1], _amount(op.inputs[0])
    return (-more if more and op.record is SUB else more), tensor


def _amount(tensor):
    found = constant_of(tensor)
    return _value(tensor) if found is None else found


def counts_iterations(loop: Loop) -> bool:
    """Whether the first variable of a loop is 0, 1, 2 and so on."""
    counter = loop.variable(0)
    return constant_of(counter.first) == 0 and step_of(counter.parameter) == 1


# Limits.


class Limit(NamedTuple):
    """A test ``low < high + more`` of a condition."""

    low: Tensor
    high: Tensor
    more: int

    def iterations(self, value):
        """How many iterations the test admits; ``value`` gives what its ends are on entry."""
        left = value(self.high) - value(self.low)
        return left + self.more if self.more else left


#: By comparison: whether the operands change places, and what is added to the upper one.
_COMPARED = {
    less.record: (False, 0),
    less_equal.record: (False, 1),
    greater.record: (True, 0),
    greater_equal.record: (True, 1),
}


def compared(test: Tensor) -> Limit | None:
    """A test that is one comparison."""
    if test.op.record not in _COMPARED:
        return None
    swapped, more = _COMPARED[test.op.record]
    low, high = test.op.inputs[::-1] if swapped else test.op.inputs
    return Limit(low, high, more)


def limits(cond, body, count) -> list[Limit]:
    """What a condition says of the number of iterations, as far as it is plain."""
    return _limits(tests_of(cond.outputs[0]), cond, body, count)


def plain_limit(cond, body, count) -> Limit | None:
    """The limit that a condition is, if it is one and nothing else ends the loop."""
    tests = tests_of(cond.outputs[0])
    found = _limits(tests, cond, body, count)
    return found[0] if len(found) == len(tests) == 1 else None


def tests_of(tensor):
    """What must all be true."""
    if tensor.op.record is logical_and.record:
        return [test for part in tensor.op.inputs for test in tests_of(part)]
    return [tensor]


def _limits(tests, cond, body, count):
    found = []
    for limit in filter(None, map(compared, tests)):
        ends = [_uncast(limit.low), _uncast(limit.high)]
        low, high = (_step(end, cond, body, count) for end in ends)
        if None not in (low, high) and low - high == 1:
            found.append(Limit(*ends, limit.more))
    return found


def _uncast(tensor):
    """An integer before it was given another dtype."""
    while tensor.op.record is CAST and {tensor.dtype.kind, tensor.op.inputs[0].dtype.kind} <= {"i"}:
        tensor = tensor.op.inputs[0]
    return tensor


def _step(end, cond, body, count):
    """By how much each iteration raises an end of a test; None where that is not plain."""
    if end.dtype.kind not in "iu":
        return None
    if end.op.record is CONSTANT:
        return 0
    place = next((i for i, tensor in enumerate(cond.inputs) if tensor is end), None)
    if place is None or place >= count:
        return None if place is None else 0
    return _added(body.outputs[place], body.inputs[place])


def iterations_on_entry(cond, body, count, values) -> int | None:
    """The number of iterations, where the condition is one plain limit; ``values``: all inputs."""
    versions = cond.version, body.version
    if body.cache.get("limit", (None,))[0] != versions:  # 20 us, which inner loops pay each time
        body.cache["limit"] = versions, plain_limit(cond, body, count)
    limit = body.cache["limit"][1]
    if limit is None:
        return None
    return max(0, limit.iterations(lambda end: int(_on_entry(end, values))))


def limit_before(loop: Loop) -> Limit | None:
    """The one limit that a loop has, with its ends as they are before the loop."""
    limit = plain_limit(loop.cond, loop.body, loop.count)
    if limit is None:
        return None
    ends = (limit.low, limit.high)
    inputs = loop.op.inputs
    low, high = (e if e.op.record is CONSTANT else inputs[place_of(e)] for e in ends)
    return Limit(low, high, limit.more)


def iterations_before(loop: Loop) -> Tensor:
    """The number of iterations that the first limit admits, in the graph around the loop."""
    limit = limits(loop.cond, loop.body, loop.count)[0]
    return limit.iterations(lambda end: cast(as_tensor(_on_entry(end, loop.op.inputs)), np.int64))


def integer_after(tensor: Tensor) -> int | None:
    """The integer that steps of constants and loops of known numbers of iterations lead to."""
    total = 0
    while (found := constant_of(tensor)) is None:
        tensor = outside(tensor)
        more, before = _last_step(tensor)
        if more is None and is_loop(tensor.op):
            loop = Loop(tensor.op)
            variable, limit = loop.variable(tensor.index), limit_before(loop)
            step, before = step_of(variable.parameter), variable.first
            ends = (constant_of(limit.low), constant_of(limit.high)) if limit else (None, None)
            if step is not None and None not in ends:
                more = step * max(0, ends[1] - ends[0] + limit.more)
        if more is None or not is_integer(before):
            return None
        total, tensor = total + more, before
    return total + found


def _on_entry(end, values):
    """What an end of a limit is before the loop."""
    return end.op.attrs["value"] if end.op.record is CONSTANT else values[place_of(end)]
