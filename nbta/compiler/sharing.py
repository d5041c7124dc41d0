"""The pass that keeps once what several tapes hold."""

from typing import NamedTuple

import numpy as np

from nbta import shapes
from nbta.compiler.induction import Linear
from nbta.compiler.program import Program, rebuild
from nbta.compiler.tapes import Tapes, place_of_flow
from nbta.graph.copying import copied
from nbta.graph.graph import substitute
from nbta.graph.operation import Operation
from nbta.graph.record import TABLE
from nbta.graph.spec import DATA
from nbta.graph.views import Loop, Variable, origin
from nbta.ops.arrays import CREATE, GATHER, READ, SIZE, WRITE
from nbta.ops.dispatch import constant_in
from nbta.ops.trip_counts import constant_of

ADD, CAST, MUL, RANGE = (TABLE[name] for name in ("Add", "Cast", "Mul", "Range"))


def share_tapes(program: Program) -> Program:
    """Let one tape do for several, and for arrays that are only stacked after the loop.

    Tapes of one value become one. The tape of a variable and that of its next value become one
    that begins with the first value. An array that holds what a tape holds, and that is only
    stacked as a whole, is stacked from the tape. `prune` then drops what nothing uses any more.
    """
    program = rebuild(program, copied)
    while True:
        tapes = Tapes(program)
        if not any(step(tapes) for step in (_share_equal, _share_next, _share_stacked)):
            return program
        program = rebuild(program, copied)


def _share_equal(tapes):
    """Put one tape in place of another one of the same value; whether there were such."""
    kept = {}
    for tape in _plain(tapes):
        other = kept.setdefault((tape.loop, tape.value), tape)
        if other is not tape and _alike(tape, other):
            _retire(tape, other)
            return True
    return False


def _plain(tapes):
    """Tapes that are only read, slot by slot."""
    only_read = {READ, WRITE}
    return [t for t in tapes.tapes.values() if {op.record for op in tapes.users(t)} <= only_read]


def _alike(one, other):
    names = ("dtype", "element_shape", "infer_shape")
    return all(one.handle.op.attrs[n] == other.handle.op.attrs[n] for n in names)


def _retire(tape, other):
    """Read another tape in place of one, to which nothing is written any more."""
    tape.body.outputs[tape.place] = tape.flow.parameter
    new = {tape.handle: other.handle, tape.flow.last: other.flow.last}
    substitute(tape.loop.graph, new)


def _share_next(tapes):
    """Let the tape of a variable hold its next value too, one slot further; whether one can."""
    for tape in _plain(tapes):
        if not _may_shift(tapes, tape):
            continue
        following = _variable(tape).following
        others = [t for t in _plain(tapes) if t.loop is tape.loop and t.value is following]
        others = [t for t in others if _all_rows(tapes, t) and t is not tape]
        stacks = _stacks(tapes, following, tape)
        if not others and not stacks:
            continue
        for other in others:
            for read in tapes.users(other):
                if read.record is READ:
                    read.inputs[1] = _plus_one(read.inputs[1])
        _shift(tape)
        for other in others:
            _retire(other, tape)
        for stack in stacks:
            stack.take_from(tape, 1)
        return True
    return False


def _may_shift(tapes, tape):
    """Whether a tape of a variable could begin with its first value and go on with the next."""
    variable = _variable(tape)
    if variable is None or origin(tape.value) is not tape.value or not _all_rows(tapes, tape):
        return False
    kept = [t.spec for t in (variable.first, variable.parameter, variable.following)]
    shape = kept[0].shape
    even = shape is not None and None not in shape and all(spec == kept[0] for spec in kept)
    return even and kept[0].kind == DATA


def _variable(tape) -> Variable | None:
    """The variable that a tape holds; None where it holds something else, or the counter."""
    variables = Loop(tape.loop).variables()[1:]
    return next((v for v in variables if v.parameter is tape.value), None)


def _all_rows(tapes, tape):
    """Whether every read of a tape is sure to find what the loop wrote."""
    users = tapes.users(tape)
    free = not any(op.control_inputs or op in tapes.uses.waited for op in users)
    return free and all(op is tape.write or tapes.tape_read(op) is not None for op in users)


def _plus_one(index):
    one = constant_in(index.graph, np.ones((), index.dtype))
    return index.graph.create(ADD, [index, one]).outputs[0]


def _shift(tape):
    """Write the first value of a variable to slot 0, and each trip's next one behind that."""
    graph, loop, body, variable = tape.loop.graph, tape.loop, tape.body, _variable(tape)
    handle, flow = tape.handle.op.outputs
    zero = constant_in(graph, np.zeros((), np.int64))
    written = graph.create(WRITE, [handle, zero, variable.first, flow])
    loop.inputs[tape.place] = written.outputs[0]
    inputs = [tape.write.inputs[0], body.outputs[0], variable.following, tape.flow.parameter]
    body.outputs[tape.place] = body.create(WRITE, inputs).outputs[0]
    body.changed()


class _Stack(NamedTuple):
    """An array that a loop fills, slot by slot, and that is stacked afterwards.

    ``way`` is 1 where trip 0 writes slot 0, and -1 where it writes the last one.
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
                inputs = [tape.handle, indices, tape.flow.last]
                made = op.graph.create(GATHER, inputs, dict(op.attrs))
                substitute(op.graph, {op.outputs[0]: made.outputs[0]})

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
    return number.graph.create(ADD, [number, by]).outputs[0]


def _share_stacked(tapes):
    """Stack tapes in place of arrays that hold the same; whether there were such."""
    for tape in _plain(tapes):
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
    if create.record is not CREATE or create.graph is not loop.graph or array in tapes.tapes:
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
    told = [made.attrs["element_shape"] for made in (create, *gathers, tape.handle.op)]
    shaped = any(map(shapes.is_known, told[:-1])), shapes.is_known(told[-1])
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
    """Whether all values like a spec are sure to be admitted by an array."""
    wanted, shape = create.attrs["element_shape"], spec.shape
    if create.attrs["dtype"] != spec.dtype or shape is None or None in shape:
        return False
    return _says(wanted, shape)


def _says(pattern, shape):
    """Whether a shape is sure to be what a pattern says."""
    return pattern is None or (
        len(pattern) == len(shape)
        and all(n in (None, m) for n, m in zip(pattern, shape, strict=True))
    )


def _is_whole(tapes, gather, flow, count):
    """Whether a gather takes slots 0 to the last, where the loop is over."""
    indices = origin(gather.inputs[1])
    made = indices.op
    if gather.graph is not flow.graph or origin(gather.inputs[2]) is not flow:
        return False
    if made.record is not RANGE or indices.graph is not flow.graph:
        return False
    bounds = constant_of(made.inputs[0]), constant_of(made.inputs[2])
    same = made.inputs[1].dtype == made.attrs["dtype"]
    return same and bounds == (0, 1) and tapes.number(made.inputs[1]) == count
