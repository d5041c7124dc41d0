"""Writes that a read sees and its gradient does not: ordered by other edges than the flow."""

from nbta.errors import invalid
from nbta.graph.graph import subgraphs
from nbta.graph.order import before
from nbta.graph.spec import FLOW
from nbta.graph.views import arguments
from nbta.ops.arrays import CONCAT, READS, SPLIT, WRITES, slots


def check(operations, reached) -> None:
    """Refuse reads of what was written when the write lies before them, but not in their flow.

    Parameters
    ----------
    operations : list of Operation
        Of one graph, in an order that they can run in.
    reached : set of Tensor
        What depends on what a gradient is asked of.

    Raises
    ------
    InvalidArgumentError
        Where a gradient would be lost.
    """
    past = _Past()
    for op in operations:
        if op.record in READS or subgraphs(op):
            past.check_read(op)
        past.add(op, _brings(op, reached))


class _Past:
    """The writes before each operation, as bits of a number: all of them, and those by flow."""

    def __init__(self):
        self._writes, self._of_array = [], {}
        self._all, self._by_flow = {}, {}

    def add(self, op, brings):
        """Note an operation, behind all that it needs."""
        own = 0
        if brings:
            own = 1 << len(self._writes)
            self._writes.append(op)
            for handle in _touched(op, WRITES):
                self._of_array[handle] = self._of_array.get(handle, 0) | own
        self._all[op] = own | _union(self._all, before(op))
        self._by_flow[op] = own | _union(self._by_flow, _flow_before(op))

    def check_read(self, read):
        """Compare what a read comes after with what is in its flow.

        Behind a write by an edge, it is refused where it may read what that wrote; behind it by
        creation order alone, where it is sure to, as other reads may mean other slots.
        """
        unseen = _union(self._of_array, _touched(read, READS))
        unseen &= ~_union(self._by_flow, _flow_before(read))
        waited = _union(self._all, _waits(read)) if unseen else 0
        while unseen:
            last = unseen.bit_length() - 1
            write = self._writes[last]
            if (_may_share if waited >> last & 1 else _surely_share)(read, write):
                raise _lost(read, write)
            unseen -= 1 << last


def _union(sets, keys):
    result = 0
    for key in keys:
        result |= sets.get(key, 0)
    return result


def _lost(read, write):
    message = (
        f"gradients: {read.name!r} runs after {write.name!r} and may read what that wrote, but by "
        f"another name of the array, so that no gradient would pass; read from the array that the "
        f"write gave"
    )
    return invalid("lost_gradient", message)


def _waits(op):
    """What a read comes after, other than by flow."""
    if op.record in READS:
        return [*(tensor.op for tensor in op.inputs[1:-1]), *op.control_inputs]
    return op.control_inputs if subgraphs(op) else []


def _brings(op, reached):
    """Whether an operation may write what depends on what a gradient is asked of."""
    if op.record in WRITES:
        return op.outputs[0] in reached
    return bool(subgraphs(op)) and not reached.isdisjoint(op.inputs)


def _touched(op, records):
    """Handles of the arrays that an operation touches, or that its bodies do."""
    if op.record in records:
        return {op.inputs[0]}
    found = set()
    for body in subgraphs(op):
        given = dict(zip(body.inputs, arguments(op, body), strict=True))
        for inner in body.operations:
            found |= {given[handle] for handle in _touched(inner, records) if handle in given}
    return found


def _flow_before(op):
    return [tensor.op for tensor in op.inputs if tensor.kind == FLOW]


def _may_share(one, other):
    """Whether two operations may touch the same slot."""
    both = slots(one), slots(other)
    return None in both or bool(both[0] & both[1])


def _surely_share(read, write):
    """Whether a read touches the slot that a write touches, as far as the graph tells."""
    if subgraphs(read) or subgraphs(write):
        return False
    if read.record is CONCAT or read.inputs[1].op.type == "Range":  # of all slots
        return True
    both = slots(read), slots(write)
    if None not in both:
        return bool(both[0] & both[1])
    return write.record is not SPLIT and read.inputs[1] is write.inputs[1]
