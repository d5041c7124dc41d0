"""Sums over the iterations of a loop, which code may take in any order.

A loop whose iterations compute each for itself, such as exponentials or items of an array, and that
adds up, goes in vector instructions where additions may change places, and one iteration after the
other where they may not. Sums of what takes little, without more, keep their order in loops within
loops, as loops of few iterations are slower in vector instructions. So do those that something in
the loop looks at, such as sums that correct their rounding.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from nbta.compiler.access_sets import (
    comes_before,
    differ,
    ends_outside,
    is_of_its_iteration,
    touched,
    users_in,
)
from nbta.compiler.induction import Counts
from nbta.compiler.manager import analysis
from nbta.graph.graph import everything, subgraphs
from nbta.graph.operation import FLOW, Operation, Tensor, is_inexact
from nbta.graph.views import Loop, Variable, is_loop
from nbta.ops.core.arithmetic import ADD_N, WHERE, add, is_choice_of_compared, subtract
from nbta.ops.loops.branch import CASE
from nbta.ops.loops.iteration_counts import is_integer, step_of

ADDING = {add.record, subtract.record, ADD_N}
FLOATS = {np.dtype(np.float32), np.dtype(np.float64)}


class Sums(NamedTuple):
    """What may change places with other additions.

    Attributes
    ----------
    operations : set of Operation
        Additions to numbers.
    branches : dict of Tensor
        What branches add to, by the result that is the sum. Some may leave it unchanged.
    """

    operations: set[Operation]
    branches: dict[Tensor, Tensor]

    @classmethod
    def none(cls) -> "Sums":
        """None."""
        return cls(set(), {})

    def update(self, others: "Sums") -> None:
        """Take others as well."""
        self.operations.update(others.operations)
        self.branches.update(others.branches)

    def __contains__(self, tensor):
        """Whether a number is such a sum."""
        return tensor.op in self.operations or tensor in self.branches


def free_sums(loop: Loop) -> Sums:
    """What adds to variables of a loop whose iterations share nothing but such sums."""
    found, operations = Sums.none(), list(everything(loop.body))
    plain = all(op.record is not CASE for op in operations)
    if not is_free_of_loops(loop) or not (_pay(operations) or (plain and _runs_once(loop))):
        return found
    for variable in loop.variables()[1:]:
        if variable.parameter.spec.kind != FLOW:
            sums = _sums_in(variable)
            if not sums.operations and not is_independent(variable):
                return Sums.none()
            found.update(sums)
    return found


def _runs_once(loop):
    """Whether no loop is around, so that what vector instructions need before and after is little.

    Where an item of a vector is added in each iteration, 160,000 of them take 0.03 ms in place of
    0.16.
    """
    around = loop.op.graph
    while around.owner is not None:
        if is_loop(around.owner):
            return False
        around = around.owner.graph
    return True


def _pay(operations):
    """Whether vector instructions pay: with branches, of which all are computed, for items."""
    if any(op.record is CASE for op in operations):
        return any(op.record.changes for op in operations)
    return any(map(_pays, operations))


def _pays(op):
    """Whether vector instructions pay for an operation, in loops of few iterations too.

    So they do for a choice between floats that is none of the two that are compared, as that of
    the tangents of a largest number is: without them it is a branch, and wrong half of the time.
    """
    expensive = op.record.elementwise and not op.record.cheap
    chooses = op.record is WHERE and not is_choice_of_compared(op)
    return op.record.changes or ((expensive or chooses) and is_inexact(op.outputs[0].dtype))


def _sums_in(variable: Variable) -> Sums:
    """What adds to a number that is only added to, and looked at after the loop; else nothing."""
    found = Sums.none()
    if variable.parameter.spec.rank != 0:
        return found
    end = _summed(variable.parameter, users_in(variable.loop), found)
    return found if end is variable.following else Sums.none()


def _summed(start, users, found) -> Tensor | None:
    """The result of a body that is a number with something added, by branches too; or None."""
    while start is not None:
        end, more = sum_from(start, users, _sum_of_numbers)
        found.operations.update(more)
        if end is not None:
            return end
        last = more[-1].outputs[0] if more else start
        start = _summed_by_case(last, users, found)
    return None


def _summed_by_case(start, users, found):
    """The result that is a number which the branches of its only user add to; or None."""
    case = users[start][0] if len(users[start]) == 1 else None
    if case is None or case.record is not CASE:
        return None
    ends = set()
    for branch in subgraphs(case):
        inner = branch.captures.get(start)
        end = None if inner is None else _summed(inner, users, found)
        ends.add(None if end is None else next(k for k, t in enumerate(branch.outputs) if t is end))
    place = ends.pop() if len(ends) == 1 else None
    if place is None:
        return None
    found.branches[case.outputs[place]] = start
    return case.outputs[place]


def sum_from(start: Tensor, users: dict, added: Callable) -> tuple[Tensor | None, list[Operation]]:
    """The result of a body that is a tensor with something added, which nothing else looks at.

    Parameters
    ----------
    start : Tensor
        A parameter of the body.
    users : dict
        Those in the body, of `nbta.compiler.access_sets.users_of`.
    added : callable
        ``added(op, tensor)`` is what an operation makes of a tensor by adding to it, or None.

    Returns
    -------
    end : Tensor or None
        None where there is none.
    additions : list of Operation
        From the first to the last, also where there is no such result.
    """
    found: list[Operation] = []
    while start is not None and len(users[start]) == 1:
        (op,) = users[start]
        if op is None:
            return start, found
        following = added(op, start)
        if following is None:
            break
        found.append(op)
        start = following
    return None, found


def _sum_of_numbers(op, tensor):
    specs = [each.spec for each in (*op.outputs, *op.inputs)]
    plain = {spec.shape for spec in specs} == {()} and len({spec.dtype for spec in specs}) == 1
    return sum_of_summand(op, tensor) if plain and specs[0].dtype in FLOATS else None


def sum_of_summand(op: Operation, tensor: Tensor) -> Tensor | None:
    """What an addition, or a subtraction, makes of what it adds to."""
    places = op.inputs[:1] if op.record is subtract.record else op.inputs
    is_summand = op.record in ADDING and any(each is tensor for each in places)
    return op.outputs[0] if is_summand else None


def is_independent(variable: Variable) -> bool:
    """Whether what an iteration leaves to the next is known ahead, or is an array it fills.

    Of such an array it may read what no iteration changes, or no other one, or only later ones, as
    a sweep in place does.
    """
    if variable.is_kept:
        return True
    if variable.parameter.spec.rank == 0:
        return step_of(variable.parameter) is not None or _is_unchanged(variable)
    if _is_filled(variable):
        return True
    use, body = touched(variable), variable.loop.body
    counts = analysis(Counts, body)
    return use is not None and all(
        differ(counts, read, change, body)
        or is_of_its_iteration(counts, read, change, body)
        or comes_before(counts, read, change, use, body)
        for read in use.reads
        for change in use.changes
    )


def _is_unchanged(variable):
    """Whether all branches leave a number unchanged."""
    number = variable.following
    while number is not variable.parameter and number.op.record is CASE:
        ends = {b.sources.get(b.outputs[number.index]) for b in subgraphs(number.op)}
        number = ends.pop() if len(ends) == 1 else None
        if number is None:
            return False
    return number is variable.parameter


def _is_filled(variable):
    """Whether iterations do nothing to an array but to change it."""
    users, following = users_in(variable.loop), variable.following
    while following.op.record.changes and len(users[following]) == 1:
        following = following.op.inputs[0]
    return following is variable.parameter and len(users[following]) == 1


def goes_in_vectors(loop: Loop, counts: Counts, *, branches: bool = False, apart: int = 0) -> bool:
    """Whether a loop's iterations compute each for itself, so that LLVM can make several at once.

    What they change of arrays are items that each iteration has of its own; of what they add up, it
    must pay that additions change places. With ``branches`` there may be some, without loops; with
    ``apart``, at so many iterations at both ends it need not be so.
    """
    body, operations = loop.body, list(everything(loop.body))
    has_branches = len(operations) > len(body.operations)
    if has_branches and not (branches and _pay(operations)):
        return False
    if not has_plain_branches(loop, counts, apart):
        return False
    variables = [v for v in loop.variables()[1:] if v.parameter.spec.kind != FLOW]
    if not all(_sums_in(v).operations or is_independent(v) for v in variables):
        return False
    return all(_has_own_item(op, counts, body) for op in operations if op.record.changes)


def has_plain_branches(loop: Loop, counts: Counts, apart: int = 0) -> bool:
    """Whether a loop has no bodies but branches that may all be computed in each iteration.

    With ``apart``, in each but so many at both ends.

    They have no loops, and read or change no items that are outside in the first or the last
    iteration, as those of neighbours are at the ends of an array, where they are not taken.
    """
    inner = (op for op in everything(loop.body) if op.graph is not loop.body)
    return is_free_of_loops(loop) and not any(
        ends_outside(counts, op, loop.body, apart) for op in inner
    )


def is_free_of_loops(loop: Loop) -> bool:
    """Whether a loop has no bodies but branches."""
    bodies = (op for op in everything(loop.body) if subgraphs(op))
    return all(op.record is CASE for op in bodies)


def _has_own_item(op, counts, body):
    """Whether an operation changes another item in each iteration of the loop that it is in."""
    found = (counts.affine(index, body) for index in op.inputs[1:] if is_integer(index))
    return any(form is not None and form[1] for form in found)
