"""Loops whose first and last iterations take other branches than all those between.

So are stencils at the ends of an array: ``left = u[i - 1] if i > 0 else 0.0``. A comparison of two
integers that grow evenly is settled between the ends if it is so in the second iteration, or in the
last but one, whichever is nearer to where it changes. Code for such a loop goes through the first
iteration, those between, and the last, and has a version for those between, where what is settled
is constant: no index is outside there, and LLVM makes vector instructions of what is left
(index set splitting).
"""

from nbta.compiler.induction import Counts
from nbta.graph.graph import everything
from nbta.graph.operation import Tensor
from nbta.graph.views import Loop
from nbta.ops.arithmetic import equal, not_equal
from nbta.ops.trip_counts import compared, is_integer


def settled(loop: Loop, counts: Counts) -> dict[Tensor, bool]:
    """Truth values that are the same in all iterations but the first and the last, and what.

    Those that are the same at the ends, too, are not among them.
    """
    iterations = counts.trips(loop.op)
    found = {}
    for op in everything(loop.body):
        if len(op.inputs) != 2 or not all(map(is_integer, op.inputs)):
            continue
        signs = _signs(op)
        if signs is None or _truth(signs, loop.body, counts, iterations, 0) is not None:
            continue
        between = _truth(signs, loop.body, counts, iterations, 1)
        if between is not None:
            found[op.outputs[0]] = between
    return found


def _signs(op):
    """Pairs of a truth value, and of integers whose difference is not negative if that is so.

    Each pair is ``(truth, (high, low, more))``, for ``high - low + more >= 0``.
    """
    test = op.outputs[0]
    limit = compared(test)
    if limit is not None:
        low, high, more = limit
        return [(True, (high, low, more - 1)), (False, (low, high, -more))]
    if op.record in (equal.record, not_equal.record):
        x, y = op.inputs
        differ = op.record is not_equal.record
        return [(differ, (x, y, -1)), (differ, (y, x, -1))]
    return None


def _truth(signs, body, counts, iterations, apart):
    """What is known of all iterations but so many at each end; None for nothing."""
    for truth, (high, low, more) in signs:
        forms = [counts.affine(tensor, body) for tensor in (high, low)]
        if None in forms:
            continue
        (start, step), (other, by) = forms
        start, step = start - other + more, step - by
        nearest = start + step * apart if step >= 0 else start + (iterations + -1 - apart) * step
        if step and counts.is_natural(nearest):
            return truth
    return None
