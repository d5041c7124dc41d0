"""Sums over the trips of a loop, which code may take in any order.

A loop whose trips compute each for itself, such as exponentials or items of an array, and that adds
up, goes in vector instructions where additions may change places, and one trip after the other
where they may not. Sums of what takes little, without more, keep their order: loops of few trips
are slower in vector instructions. So do those that something in the loop looks at, such as sums
that correct their rounding.
"""

from collections import Counter

import numpy as np

from nbta.graph.graph import subgraphs
from nbta.graph.operation import FLOW, Operation, is_inexact
from nbta.graph.views import Loop, Variable
from nbta.ops.arithmetic import ADD_N, add, subtract
from nbta.ops.trip_counts import step_of

ADDING = {add.record, subtract.record, ADD_N}
FLOATS = {np.dtype(np.float32), np.dtype(np.float64)}


def free_sums(loop: Loop) -> set[Operation]:
    """What adds to variables of a loop whose trips need nothing of each other but for such sums."""
    if any(map(subgraphs, loop.body.operations)) or not any(map(_pays, loop.body.operations)):
        return set()
    used = Counter(tensor for op in loop.body.operations for tensor in op.inputs)
    used.update(loop.body.outputs)
    used.update(tensor for op in loop.cond.operations for tensor in op.inputs)
    variables = [v for v in loop.variables()[1:] if v.parameter.spec.kind != FLOW]
    sums = {v.following.op for v in variables if _is_sum(v, used)}
    rest = [v for v in variables if v.following.op not in sums]
    return sums if all(_is_independent(v, used) for v in rest) else set()


def _pays(op):
    """Whether an operation is one for which vector instructions pay, in loops of few trips too."""
    dear = op.record.elementwise and not op.record.quick
    return op.record.changes or (dear and is_inexact(op.outputs[0].dtype))


def _is_sum(variable: Variable, used):
    """Whether a number is only added to, and looked at behind the loop."""
    op, parameter = variable.following.op, variable.parameter
    specs = [tensor.spec for tensor in (parameter, *op.inputs)]
    first = op.record is not subtract.record or op.inputs[0] is parameter
    return (
        op.record in ADDING
        and first
        and {spec.shape for spec in specs} == {()}
        and len({spec.dtype for spec in specs}) == 1
        and parameter.dtype in FLOATS
        and [tensor for tensor in op.inputs if tensor is parameter] == [parameter]
        and used[parameter] == used[variable.following] == 1
    )


def _is_independent(variable: Variable, used):
    """Whether what a trip leaves to the next one is known ahead, or is an array that it fills."""
    parameter, following = variable.parameter, variable.following
    if variable.is_kept:
        return True
    if parameter.spec.rank == 0:
        return step_of(parameter) is not None
    while following.op.record.changes and used[following] == 1:
        following = following.op.inputs[0]
    return following is parameter and used[parameter] == 1
