"""Writes that a read sees and its gradient does not: ordered by other edges than the flow."""

import numpy as np

from nbta.errors import invalid
from nbta.graph.order import before
from nbta.graph.spec import FLOW
from nbta.ops.arrays import CONCAT, GATHER, READ, SCATTER, SPLIT, WRITE
from nbta.ops.dispatch import CONSTANT

_READS, _WRITES = {READ, GATHER, CONCAT}, {WRITE, SCATTER, SPLIT}


def check(operations, reached) -> None:
    """Refuse reads of what was written when the write lies before them, but not in their flow.

    Parameters
    ----------
    operations : list of Operation
        Of one graph.
    reached : set of Tensor
        What depends on what a gradient is asked of.

    Raises
    ------
    InvalidArgumentError
        Where a gradient would be lost.
    """
    writes = {}
    for op in operations:
        if op.record in _WRITES and op.outputs[0] in reached:
            writes.setdefault(op.inputs[0], []).append(op)
    for op in operations:
        if op.record in _READS and op.inputs[0] in writes:
            _check_read(op, writes[op.inputs[0]])


def _check_read(read, writes):
    earlier = _ancestors([*(t.op for t in read.inputs[1:-1]), *read.control_inputs], before)
    if earlier.isdisjoint(writes):
        return
    in_flow = _ancestors([read.inputs[-1].op], _flow_before)
    for write in writes:
        if write in earlier and write not in in_flow and _may_share(read, write):
            message = (
                f"gradients: {read.name!r} runs after {write.name!r} and may read what that wrote, "
                f"but by another name of the array, so that no gradient would pass; read from the "
                f"array that the write gave"
            )
            raise invalid("lost_gradient", message)


def _ancestors(start, step):
    found, todo = set(), list(start)
    while todo:
        op = todo.pop()
        if op not in found:
            found.add(op)
            todo += step(op)
    return found


def _flow_before(op):
    return [tensor.op for tensor in op.inputs if tensor.kind == FLOW]


def _may_share(one, other):
    """Whether two operations may touch the same slot."""
    slots = [_slots(op) for op in (one, other)]
    return None in slots or bool(slots[0] & slots[1])


def _slots(op):
    """The slots that an operation touches; None where the run tells."""
    if op.record in (CONCAT, SPLIT) or op.inputs[1].op.record is not CONSTANT:
        return None
    return {int(slot) for slot in np.atleast_1d(op.inputs[1].op.attrs["value"])}
