"""Lengths of arrays that grow in a loop, as numbers that the loop carries.

A loop with checkpoints runs its iterations again when its arrays have grown to their end. How long
an array was in an iteration is told by its flow: what was written before. So each loop on the way
gets one more variable, and each branch one more result, with the length that belongs to the flow,
and nobody asks the array.
"""

import functools

import numpy as np

from nbta.graph.graph import SubGraph, everything, lies_in, subgraphs, substitute
from nbta.graph.views import Branch, Loop, is_branch, is_loop, place_of
from nbta.ops.arrays import tensor_arrays as arrays
from nbta.ops.arrays.tensor_arrays import build
from nbta.ops.axes.reductions import max as max_
from nbta.ops.core.arithmetic import ADD_N, add, maximum
from nbta.ops.core.dimensions import outside
from nbta.ops.core.dispatch import PARAMETER
from nbta.ops.core.shaping import IDENTITY, cast, reshape, shape
from nbta.ops.indexing.joining import concatenate

ONE = np.int32(1)


def carry_lengths(loop) -> None:
    """Let bodies of loops with checkpoints count how long arrays from around them are.

    A loop in the body of another one may have been built before it was known which array it
    carries, so all loops in a loop are looked at once more. What cannot be counted stays: where
    an array is written to by several names, of which none has seen all that the others wrote.

    Parameters
    ----------
    loop : Operation
        Built, and not used yet.
    """
    for op in [loop, *everything(Loop(loop).body)]:
        if is_loop(op) and Loop(op).checkpoint is not None:
            _carry_in(op)


def _carry_in(loop):
    """The same for the body of one loop."""
    body, counts = Loop(loop).body, {}
    for op in list(everything(body)):
        array = outside(op.inputs[0]) if _asks(op) else None
        if array is None or not _grows(array) or lies_in(array.graph, body):
            continue
        counts.setdefault(array, _Lengths(loop, array)).answer(op)


def _asks(op):
    return op.record is arrays.SIZE or (op.record is arrays.CONCAT and len(op.inputs) == 2)


def _grows(array):
    return array.op.record is arrays.CREATE and array.op.attrs["dynamic_size"]


class _Lengths:
    """Lengths of one array by its flows, for the body of one loop."""

    def __init__(self, loop, array):
        self._loop, self._array = loop, array
        self._known = {}  # None where a flow does not tell
        self._lost = False  # whether a loop cannot tell what its variable is next

    def answer(self, op):
        """Count for an operation that asks, if its flow tells of all that has run before."""
        flow = op.inputs[1]
        length = self._of(flow) if self._sees_all(op, self._seen(flow)) else None
        if length is None or self._lost:
            return
        if op.record is arrays.SIZE:
            substitute(op.graph, {op.outputs[0]: length})
            _take_out(op)
        else:
            op.inputs = [*op.inputs, length]
            op.graph.changed()

    # What a flow tells of.

    def _writes(self, op):
        """Whether an operation, or one in its bodies, writes to the array."""
        if op.record in arrays.WRITES:
            return outside(op.inputs[0]) is self._array
        return any(self._writes(inner) for body in subgraphs(op) for inner in body.operations)

    def _sees_all(self, op, seen):
        """Whether all writes before an operation, in its iteration, are among those seen."""
        while op is not self._loop:
            for other in op.graph.operations:
                if other.number < op.number and self._writes(other) and other not in seen:
                    return False
            op = op.graph.owner
        return True

    def _complete(self, graph, flow):
        """Whether a flow at the end of a body tells of all writes in it."""
        seen = self._seen(flow)
        return all(op in seen for op in graph.operations if self._writes(op))

    def _seen(self, flow):
        """Operations that come before a flow in every case, in its graph and around it."""
        op, graph = flow.op, flow.graph
        if op.record is PARAMETER:
            around = graph.sources.get(flow) if isinstance(graph, SubGraph) else None
            return set() if around is None else self._seen(around)
        if op.record is ADD_N:
            return set().union(*map(self._seen, op.inputs))
        if is_branch(op):
            ends = map(self._seen, Branch(op).ends(flow.index))
            return {op} | set.intersection(*ends)
        before = _flow_before(flow)
        return {op} if before is None else {op} | self._seen(before)

    # Lengths.

    def _of(self, flow):
        """The length after a flow, in the flow's graph; None where it does not tell."""
        if flow not in self._known:
            graph = flow.graph
            with graph.as_default(), graph.control_dependencies(None):
                self._known[flow] = self._found(flow)
        return self._known[flow]

    def _found(self, flow):
        op = flow.op
        if op.record is ADD_N:  # of several names, one of which is carried
            parts = [length for length in map(self._of, op.inputs) if length is not None]
            return functools.reduce(maximum, parts) if parts else None
        if op.record is PARAMETER:
            return self._of_parameter(flow)
        if is_branch(op):
            return self._of_case(Branch(op), flow.index)
        if is_loop(op):
            self._carry(Loop(op).variable(flow.index))
            return self._known[flow]
        before = _flow_before(flow)
        length = None if before is None else self._of(before)
        counts = length is not None and op.record in arrays.WRITES and self._writes(op)
        return _after(op, length) if counts else length

    def _of_parameter(self, flow):
        graph = flow.graph
        if flow not in graph.sources:
            self._carry(Loop(graph.owner).variable(place_of(flow)))
            return self._known[flow]
        if is_loop(graph.owner) and any(map(self._writes, graph.operations)):
            return None  # of earlier iterations, which the flow does not tell of
        length = self._around(graph.owner, graph.sources[flow])
        return None if length is None else graph.capture(length)

    def _around(self, op, flow):
        """The length after a flow around a body; around the loop the array is asked."""
        if op is not self._loop:
            return self._of(flow)
        with op.graph.as_default(), op.graph.control_dependencies(None):
            return build(arrays.SIZE, [self._array, flow])[0]

    def _carry(self, variable):
        """Give a loop a variable with the length after the flow that is one."""
        loop, flow, end = variable.loop, variable.parameter, variable.following
        complete = self._complete(loop.body, end)
        first = self._around(loop.op, variable.first) if complete else None
        if flow in self._known:  # by now, as the loop is in the iteration of one around it
            return
        if first is None:
            self._known |= dict.fromkeys([flow, variable.tested, variable.last])
            return

        def following(parameter):
            self._known[flow] = parameter
            length = self._of(end)
            self._lost |= length is None
            return parameter if length is None else length

        last = loop.add_variable(first, following)
        tested = loop.variable(last.index).tested
        self._known |= {variable.tested: tested, variable.last: last}

    def _of_case(self, case, place):
        ends = case.ends(place)
        complete = all(map(self._complete, case.branches, ends))
        found = [self._of(flow) for flow in ends] if complete else [None]
        if any(length is None for length in found):
            return None
        return case.add_result(found)


def _take_out(op):
    """Leave out an operation whose result nobody uses any more."""
    graph = op.graph
    if not any(op in other.control_inputs for other in graph.operations):
        graph.operations.remove(op)
        for number, other in enumerate(graph.operations):
            other.number = number
        graph.changed()


def _flow_before(flow):
    """The flow that an operation's flow comes after; None where that is not plain."""
    op = flow.op
    if is_loop(op):
        return Loop(op).variable(flow.index).first
    return op.inputs[-1] if op.record in arrays.WRITES or op.record is IDENTITY else None


def _after(op, before):
    """The length after a write."""
    if op.record is arrays.SPLIT:
        return maximum(before, cast(shape(op.inputs[2])[0], np.int32))
    needed = add(cast(op.inputs[1], np.int32), ONE)
    if op.record is arrays.WRITE:
        return maximum(before, needed)
    return max_(concatenate([reshape(before, (1,)), needed]))
