"""Sums over the trips of a loop, which code may take in any order.

A loop whose trips compute each for itself, such as exponentials or items of an array, and that adds
up, goes in vector instructions where additions may change places, and one trip after the other
where they may not. Sums of what takes little, without more, keep their order: loops of few trips
are slower in vector instructions. So do those that something in the loop looks at, such as sums
that correct their rounding.
"""

from collections.abc import Callable
from itertools import chain

import numpy as np

from nbta.compiler.induction import Counts
from nbta.compiler.manager import analysis
from nbta.compiler.touched import differ, is_of_its_trip, touched, users_in
from nbta.graph.graph import subgraphs
from nbta.graph.operation import FLOW, Operation, Tensor, is_inexact
from nbta.graph.views import Loop, Variable
from nbta.ops.arithmetic import ADD_N, add, subtract
from nbta.ops.trip_counts import is_integer, step_of

ADDING = {add.record, subtract.record, ADD_N}
FLOATS = {np.dtype(np.float32), np.dtype(np.float64)}


def free_sums(loop: Loop) -> set[Operation]:
    """What adds to variables of a loop whose trips need nothing of each other but for such sums."""
    if any(map(subgraphs, loop.body.operations)) or not any(map(_pays, loop.body.operations)):
        return set()
    users = users_in(loop)
    variables = [v for v in loop.variables()[1:] if v.parameter.spec.kind != FLOW]
    sums = {v: _sums_in(v, users) for v in variables}
    rest = [v for v, found in sums.items() if not found]
    free = all(is_independent(v, users) for v in rest)
    return set(chain.from_iterable(sums.values())) if free else set()


def _pays(op):
    """Whether an operation is one for which vector instructions pay, in loops of few trips too."""
    dear = op.record.elementwise and not op.record.quick
    return op.record.changes or (dear and is_inexact(op.outputs[0].dtype))


def _sums_in(variable: Variable, users) -> list[Operation]:
    """What adds to a number that is only added to, and looked at behind the loop; else nothing."""
    end, found = sum_from(variable.parameter, users, _sum_of_numbers)
    return found if end is variable.following else []


def sum_from(start: Tensor, users: dict, added: Callable) -> tuple[Tensor | None, list[Operation]]:
    """The result of a body that is a tensor with something added, which nothing else looks at.

    Parameters
    ----------
    start : Tensor
        A parameter of the body.
    users : dict
        Those in the body, of `nbta.compiler.touched.users_of`.
    added : callable
        ``added(op, tensor)`` is what an operation makes of a tensor by adding to it, or None.

    Returns
    -------
    end : Tensor or None
        None where there is none.
    additions : list of Operation
        From the first to the last.
    """
    found: list[Operation] = []
    while start is not None and len(users[start]) == 1:
        (op,) = users[start]
        if op is None:
            return start, found
        found.append(op)
        start = added(op, start)
    return None, []


def _sum_of_numbers(op, tensor):
    specs = [each.spec for each in (*op.outputs, *op.inputs)]
    plain = {spec.shape for spec in specs} == {()} and len({spec.dtype for spec in specs}) == 1
    return sum_of_summand(op, tensor) if plain and specs[0].dtype in FLOATS else None


def sum_of_summand(op: Operation, tensor: Tensor) -> Tensor | None:
    """What an addition, or a subtraction, makes of what it adds to."""
    places = op.inputs[:1] if op.record is subtract.record else op.inputs
    is_summand = op.record in ADDING and any(each is tensor for each in places)
    return op.outputs[0] if is_summand else None


def is_independent(variable: Variable, users: dict) -> bool:
    """Whether what a trip leaves to the next one is known ahead, or is an array that it fills.

    Of such an array it may read what no trip changes, or what no other trip does.

    Parameters
    ----------
    variable : Variable
    users : dict
        Those in the loop, of `nbta.compiler.touched.users_in`.
    """
    if variable.is_kept:
        return True
    if variable.parameter.spec.rank == 0:
        return step_of(variable.parameter) is not None
    if _is_filled(variable, users):
        return True
    use, counts, body = (
        touched(variable, users),
        analysis(Counts, variable.loop.body),
        variable.loop.body,
    )
    return use is not None and all(
        differ(counts, read, change, body) or is_of_its_trip(counts, read, change, body)
        for read in use.reads
        for change in use.changes
    )


def _is_filled(variable, users):
    """Whether trips do nothing to an array but to change it."""
    following = variable.following
    while following.op.record.changes and len(users[following]) == 1:
        following = following.op.inputs[0]
    return following is variable.parameter and len(users[following]) == 1


def goes_in_vectors(loop: Loop, counts: Counts) -> bool:
    """Whether a loop's trips compute each for itself, so that LLVM can make several at once.

    What they change of arrays are items that each trip has of its own; of what they add up, it must
    pay that additions change places.
    """
    body = loop.body
    if any(map(subgraphs, body.operations)):
        return False
    users = users_in(loop)
    variables = [v for v in loop.variables()[1:] if v.parameter.spec.kind != FLOW]
    if not all(_sums_in(v, users) or is_independent(v, users) for v in variables):
        return False
    return all(_has_own_item(op, counts) for op in body.operations if op.record.changes)


def _has_own_item(op, counts):
    """Whether an operation changes another item in each trip of the loop that it is in."""
    found = (counts.affine(index, op.graph) for index in op.inputs[1:] if is_integer(index))
    return any(form is not None and form[1] for form in found)
