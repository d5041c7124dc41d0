"""Passes on tapes: which are read in branches, and which need not be saved twice."""

from typing import NamedTuple

import numpy as np

from nbta import shapes
from nbta.compiler.array_fills import slots_in_order
from nbta.compiler.induction import Linear
from nbta.compiler.manager import Fact, analysis, contract
from nbta.compiler.passes import prune
from nbta.compiler.program import Program, changes
from nbta.compiler.shifted_items import share_shifted
from nbta.compiler.tapes import Tapes, can_shift, is_local, place_of_flow, saved_variable
from nbta.graph.graph import running, substitute, sweep
from nbta.graph.operation import DATA, Operation
from nbta.graph.views import Branch, is_branch, origin
from nbta.ops.arrays.tensor_arrays import CREATE, GATHER, SIZE, WRITE
from nbta.ops.core.arithmetic import add
from nbta.ops.core.dispatch import constant_in
from nbta.ops.core.filling import RANGE
from nbta.ops.core.shaping import CAST
from nbta.ops.loops.residuals import RESTORE, RESTORE_ROWS, SAVE


@contract(requires=[Fact.RANKS, Fact.TAPES_OF_LOOPS])
@changes
def read_in_branches(program: Program) -> Program:
    """Restore handles, flows and tapes in the branches that use them, where a branch saved them."""
    for case in [op for op in running(program) if is_branch(op)]:
        for branch in Branch(case).branches:
            for outer, parameter in list(branch.captures.items()):
                read = outer.op
                if outer.kind != DATA and read.record is RESTORE and not read.control_inputs:
                    inputs = list(map(branch.resolve, read.inputs))
                    again = branch.create(RESTORE, inputs, read.attrs)
                    substitute(branch, {parameter: again.outputs[0]})
    return prune.in_place(program)


@contract(requires=[Fact.RANKS, Fact.TAPES_OF_LOOPS], breaks=[Fact.SAVED_BY_TAPES])
@changes
def share_tapes(program: Program) -> Program:
    """Let one tape do for several, and for arrays that are only stacked after the loop.

    Tapes of one value become one. The tape of a variable and that of its next value become one
    that begins with the first value; so do those of items that one iteration reads ahead and the
    next one again. An array that holds what a tape holds, and that is only
    stacked as a whole, is stacked from the tape. `prune` then drops what nothing uses any more.
    """
    while True:
        tapes = analysis(Tapes, program)
        steps = (_share_equal, _share_next, _share_stacked, share_shifted)
        if not any(step(tapes) for step in steps):
            return program
        sweep(program)


def _share_equal(tapes):
    """Put one tape in place of all others of the same value; whether there were such."""
    first, found = {}, False
    for tape in tapes.all:
        other = first.setdefault((tape.loop, tape.value), tape)
        if other is not tape:
            tape.body.outputs[tape.place] = tape.variable.parameter
            substitute(tape.loop.graph, {tape.last: other.last})
            found = True
    return found


def _share_next(tapes):
    """Let the tape of a variable have its next value too, one place further; whether one can."""
    for tape in tapes.all:
        if not can_shift(tapes, tape):
            continue
        following = saved_variable(tape).following
        others = [t for t in tapes.all if t.loop is tape.loop and t.value is following]
        others = [t for t in others if t is not tape and is_local(tapes, t)]
        stacks = _stacks(tapes, following, tape)
        if not others and not stacks:
            continue
        for other in others:
            for restore in tapes.restores[other]:
                restore.inputs = [restore.graph.resolve(tape.last), _plus_one(restore.inputs[1])]
                restore.graph.changed()
        _shift(tape)
        for stack in stacks:
            stack.take_from(tape, 1)
        return True
    return False


def _plus_one(index):
    one = constant_in(index.graph, np.ones((), index.dtype))
    return index.graph.create(add.record, [index, one]).outputs[0]


def _shift(tape):
    """Save the first value of a variable at place 0, and the next one of each iteration after."""
    graph, loop, body, variable = tape.loop.graph, tape.loop, tape.body, saved_variable(tape)
    zero = constant_in(graph, np.zeros((), np.int64))
    first = graph.create(SAVE, [tape.variable.first, zero, variable.first])
    loop.inputs[tape.place] = first.outputs[0]
    inputs = [tape.variable.parameter, body.outputs[0], variable.following]
    body.outputs[tape.place] = body.create(SAVE, inputs).outputs[0]
    body.changed()


class _Stack(NamedTuple):
    """An array that a loop fills, slot by slot, and that is stacked afterwards.

    ``way`` is 1 where iteration 0 writes slot 0, and -1 where it writes the last one.
    """

    create: Operation
    users: list
    way: int

    def take_from(self, tape, skipped):
        """Stack a tape instead, without its first slots."""
        for op in self.users:
            if op.record is SIZE:
                substitute(op.graph, {op.outputs[0]: self._size(op.graph, op.outputs[0].dtype)})
        for op in self.users:
            if op.record is GATHER:
                indices = self._indices(origin(op.inputs[1]).op, skipped)
                inputs, attrs = [op.graph.resolve(tape.last), indices], dict(op.attrs)
                rows = op.graph.create(RESTORE_ROWS, inputs, attrs)
                substitute(op.graph, {op.outputs[0]: rows.outputs[0]})

    def _size(self, graph, dtype):
        size = graph.resolve(self.create.inputs[0])
        if size.dtype == dtype:
            return size
        return graph.create(CAST, [size], {"dtype": dtype}).outputs[0]

    def _indices(self, old, skipped):
        """The slots of the tape, in the order of the slots of the array."""
        graph, dtype = old.graph, old.inputs[1].dtype
        size = self._size(graph, dtype)
        low, step = (constant_in(graph, np.array(n, dtype)) for n in (skipped, self.way))
        if self.way == 1:
            bounds = [low, _moved(size, skipped), step]
        else:
            bounds = [_moved(size, skipped - 1), _moved(low, -1), step]
        return graph.create(RANGE, bounds, dict(old.attrs)).outputs[0]


def _moved(number, by):
    by = constant_in(number.graph, np.array(by, number.dtype))
    return number.graph.create(add.record, [number, by]).outputs[0]


def _share_stacked(tapes):
    """Stack tapes in place of arrays that hold the same; whether there were such."""
    for tape in tapes.all:
        for stack in _stacks(tapes, tape.value, tape):
            stack.take_from(tape, 0)
            return True
    return False


def _stacks(tapes, value, tape):
    """Arrays that a loop fills with a value, and that are only stacked when it is over."""
    found = [
        _as_stack(tapes, op, tape)
        for op in tapes.uses.operations
        if op.record is WRITE and op.graph is tape.body and op.inputs[2] is value
    ]
    return [stack for stack in found if stack is not None]


def _as_stack(tapes, write, tape):
    loop, array = tape.loop, origin(write.inputs[0])
    create, users = array.op, tapes.uses.users[(array.op,)]
    if create.record is not CREATE or create.graph is not loop.graph:
        return None
    others = [op for op in users if op is not write]
    place = place_of_flow(loop, write, create)
    if place is None or not tapes.is_known((create,)) or not _only_stacked(tapes, create, others):
        return None
    count = tapes.number(create.inputs[0])
    way = tapes.direction(write.inputs[1], loop, count)
    if way is None or not count.is_natural() or not _holds(create, write.inputs[2].spec):
        return None
    gathers = [op for op in others if op.record is GATHER]
    if not all(_is_whole(tapes, op, loop.outputs[place], count) for op in gathers):
        return None
    if not all(_says(op.attrs["element_shape"], write.inputs[2].spec.shape) for op in gathers):
        return None
    told = [op.attrs["element_shape"] for op in (create, *gathers)]
    shaped = any(map(shapes.is_known, told)), shapes.is_known(write.inputs[2].spec.shape)
    same_when_empty = shaped[0] == shaped[1] or (count - Linear(1)).is_natural()
    return _Stack(create, others, way) if same_when_empty else None


def _only_stacked(tapes, create, users):
    """Whether an array of fixed size is read by gathers that may read each slot."""
    free = not any(op.control_inputs or op in tapes.uses.waited for op in [create, *users])
    gathers = [op for op in users if op.record is GATHER]
    once = len(gathers) == 1 or (gathers and not create.attrs["clear_after_read"])
    plain = all(op.record in (GATHER, SIZE) for op in users)
    return free and once and plain and not create.attrs["dynamic_size"]


def _holds(create, spec):
    """Whether all values like a spec are proven to be admitted by an array."""
    wanted, shape = create.attrs["element_shape"], spec.shape
    if create.attrs["dtype"] != spec.dtype or shape is None or None in shape:
        return False
    return _says(wanted, shape)


def _says(pattern, shape):
    """Whether a shape is proven to be what a pattern says."""
    return pattern is None or (
        len(pattern) == len(shape)
        and all(n in (None, m) for n, m in zip(pattern, shape, strict=True))
    )


def _is_whole(tapes, gather, flow, count):
    """Whether a gather takes slots 0 to the last, where the loop is over."""
    indices = origin(gather.inputs[1])
    if gather.graph is not flow.graph or origin(gather.inputs[2]) is not flow:
        return False
    slots = slots_in_order(gather)
    if slots is None or indices.graph is not flow.graph or slots.dtype != indices.op.attrs["dtype"]:
        return False
    return tapes.number(slots) == count
