"""Loops whose first and last iterations differ from all those between.

So are stencils at the ends of an array: ``left = u[i - 1] if i > 0 else 0.0``, those that stay
there, ``u[max(i - 1, 0)]``, and periodic ones, ``u[(i + 1) % n]`` and ``u[i - 1]``, whose indices
wrap around. A comparison of two integers that grow evenly is settled between the ends if it is so
in the iterations next to them. A choice of two indices by one, or the larger or smaller of two, is
one of these there, and a remainder its dividend, or that and the divisor.
Code for such a loop goes through the first iterations, those between, and the last, and has a
version for those between, where all that is constant: no index is outside there, and LLVM makes
vector instructions of what is left (index set splitting).
"""

from typing import NamedTuple

from nbta.compiler.access_sets import ends_outside
from nbta.compiler.induction import Counts, around, positive
from nbta.graph.graph import everything
from nbta.graph.operation import Operation, Tensor
from nbta.graph.views import Loop
from nbta.ops.core.arithmetic import WHERE, equal, maximum, minimum, mod, not_equal
from nbta.ops.loops.iteration_counts import compared, constant_of, is_integer
from nbta.tuning import END_ITERATIONS


class Between(NamedTuple):
    """What holds in all iterations of a loop but some at each end.

    Attributes
    ----------
    iterations : int
        How many iterations each end has.
    truths : dict of Tensor
        Truth values that are the same in all of them.
    integers : dict of Tensor
        By an integer, another one that it is, a sign, and what comes on top with that sign.
    counts : Counts
        What is known of integers there.
    """

    iterations: int
    truths: dict[Tensor, bool]
    integers: dict[Tensor, tuple[Tensor, int, Tensor]]
    counts: Counts


def settled(loop: Loop, counts: Counts) -> Between | None:
    """What holds between the ends of a loop and not at them; None for nothing."""
    body, most = loop.body, 0
    ends = _Ends(loop, counts)
    truths: dict[Tensor, bool] = {}
    integers: dict[Tensor, tuple[Tensor, int, Tensor]] = {}
    for op in everything(body):
        found = None
        if op.record is mod.record:
            found = ends.remainder(op)
        elif op.record in (maximum.record, minimum.record):
            found = ends.extreme(op)
        elif op.record is WHERE and op.inputs[0] in truths and _are_integers(op):
            chosen = op.inputs[1 if truths[op.inputs[0]] else 2]
            found = (0, (chosen, 0, chosen))
        elif len(op.inputs) == 2 and all(map(is_integer, op.inputs)):
            apart, truth = ends.truth(op)
            if apart:
                truths[op.outputs[0]] = truth
                most = max(most, apart)
        elif ends_outside(ends.counts, op, body):
            within = (
                k
                for k in range(1, END_ITERATIONS + 1)
                if not ends_outside(ends.counts, op, body, k)
            )
            most = max(most, next(within, 0))
        if found is not None:
            apart, (other, sign, more) = found
            integers[op.outputs[0]] = (other, sign, more)
            form = ends.counts.number(other) + ends.counts.number(more) * sign
            ends.counts.assume(op.outputs[0], form)
            most = max(most, apart)
    return Between(most, truths, integers, ends.counts) if most else None


def is_cheap_remainder(op: Operation) -> bool:
    """Whether it is a remainder that takes no division: by a constant, or settled in its loop."""
    if op.record is not mod.record or not _are_integers(op):
        return False
    if constant_of(op.inputs[1]) is not None:
        return True
    body = next(around(op.graph), None)
    loop = None if body is None else Loop(body.owner)
    if loop is None or loop.body is not body:
        return False
    return _Ends(loop, Counts(body)).remainder(op) is not None


class _Ends:
    """How far from the ends of a loop integers are on one side of others.

    Attributes
    ----------
    counts : Counts
        What is known of integers between the ends.
    """

    def __init__(self, loop: Loop, counts: Counts):
        self._body, self.counts = loop.body, counts.apart()
        self._iterations, self._bound = counts.iterations(loop.op), counts.bound(loop.body)

    def truth(self, op) -> tuple[int | None, bool]:
        """From how many iterations on a comparison is settled, and what it is then."""
        for truth, number in self._signs(op):
            apart = self._natural_from(number)
            if apart is not None:
                return apart, truth
        return None, False

    def remainder(self, op):
        """From how many iterations on a remainder is its dividend, or that and the divisor."""
        dividend, divisor = op.inputs
        if not _are_integers(op):
            return None
        number, period = map(self.counts.number, op.inputs)
        for sign in (0, 1, -1):
            found = number + period * sign
            low, high = map(self._natural_from, (found, period - found + -1))
            if low is not None and high is not None:
                return max(low, high), (dividend, sign, divisor)
        return None

    def extreme(self, op):
        """From how many iterations on the larger, or smaller, of two integers is one of them."""
        if not _are_integers(op):
            return None
        x, y = map(self.counts.number, op.inputs)
        sign = 1 if op.record is maximum.record else -1
        for chosen, more in zip(op.inputs, ((x - y) * sign, (y - x) * sign), strict=True):
            apart = self._natural_from(more)
            if apart is not None:
                return apart, (chosen, 0, chosen)
        return None

    def _signs(self, op):
        """Pairs of a truth value, and a number that is not negative if that is so."""
        limit = compared(op.outputs[0])
        if limit is not None:
            low, high = map(self.counts.number, (limit.low, limit.high))
            more = limit.more
            return [(True, high - low + (more - 1)), (False, low - high + -more)]
        if op.record in (equal.record, not_equal.record):
            x, y = map(self.counts.number, op.inputs)
            differ = op.record is not_equal.record
            return [(differ, x - y + -1), (differ, y - x + -1)]
        return []

    def _natural_from(self, number) -> int | None:
        """From how many iterations on, at each end, a number is not negative; None if unknown."""
        form = self.counts.affine_form(number, self._body)
        if form is None:
            return None
        start, step = form
        for apart in range(END_ITERATIONS + 1):
            nearest = start + step * apart
            if step < 0:
                nearest = start + (self._iterations + (-1 - apart)) * step
            if self._bound is not None:
                nearest = positive(nearest, self._bound)
            if self.counts.is_natural(nearest):
                return apart
        return None


def _are_integers(op):
    return all(map(is_integer, (*op.inputs[-2:], *op.outputs)))
