"""The pass that computes again what loops need not keep for those that come after."""

from nbta.compiler.program import Program, rebuild
from nbta.compiler.tapes import Tapes
from nbta.graph.copying import copied, keep_shapes
from nbta.graph.graph import lies_in, substitute
from nbta.graph.operation import Tensor
from nbta.graph.record import TABLE
from nbta.graph.spec import DATA
from nbta.graph.views import origin, variable_of
from nbta.ops.arrays import READ
from nbta.ops.dispatch import CONSTANT, PARAMETER
from nbta.ops.joining import STACK
from nbta.ops.products import MATMUL, OUTER, SWAPAXES, TRANSPOSE
from nbta.ops.trip_counts import constant_of

ADD, CAST, MUL, RANGE = (TABLE[name] for name in ("Add", "Cast", "Mul", "Range"))


def rematerialise(program: Program) -> Program:
    """Compute again what a loop keeps on a tape, where that takes little.

    From the number of the trip follow variables that each trip raises by as much, shapes and
    integers, and rows of captured tensors. From what other tapes of the loop keep anyway follow
    parts of it, and sums, products and what else takes less time than a tape. `prune` then drops
    the tapes.
    """
    while True:
        tapes = Tapes(program)
        if not any(_is_simple(tapes, op) for op in tapes.uses.operations if op.record is READ):
            return program
        program = rebuild(program, copied)
        tapes = Tapes(program)
        found = [_replaced(tapes, op) for op in tapes.uses.operations if op.record is READ]
        if not any(found):
            return program


def _is_simple(tapes, read):
    """Whether what a tape gives could be made again, by what makes it."""
    made = tapes.whereabouts(read.outputs[0]).tensor
    if made.op.record is PARAMETER:
        return made.dtype.kind in "iu" or not made.spec.rank
    return made.op.record is CONSTANT or _is_cheap(made.op) or made.op.record.quick


def _replaced(tapes, read):
    """Put what is computed again in place of what a tape gives; whether that can be."""
    place = tapes.tape_read(read)
    if place is None or read.control_inputs or read in tapes.uses.waited:
        return False
    tape = tapes.tapes[tapes.whereabouts(read.inputs[0]).tensor]
    users = [op for op in tapes.users(tape) if op is not tape.write]
    if any(op.record is not READ for op in users):
        return False  # a gradient array has as many slots as the tape
    alone = len(place.trips) > 1 or any(map(_is_multiplied, users))
    kept = {} if alone else _kept(tapes, tape.loop)
    again = _Again(read.graph, tape.body, place.trips, kept).make(place.tensor)
    if again is None:
        return False
    substitute(read.graph, {read.outputs[0]: again})
    return True


def _kept(tapes, loop):
    """Tapes of a loop by what they keep."""
    found = {}
    for tape in tapes.tapes.values():
        if tape.loop is loop and tape.value.kind == DATA:
            found.setdefault(tape.value, tape)
    return found


def _is_multiplied(read):
    """Whether a product takes what a tape gives: it may be summed with the tape as a whole."""
    todo = [read.outputs[0]]
    for tensor in todo:
        users = [op for op in read.graph.operations if any(t is tensor for t in op.inputs)]
        if any(op.record in (MATMUL, OUTER) for op in users):
            return True
        todo += [op.outputs[0] for op in users if op.record in (SWAPAXES, TRANSPOSE)]
    return False


#: Of so many operations one value is made again.
STEPS = 4


class _Again:
    """Builds values that the body of a loop had in a trip.

    Parameters
    ----------
    graph : SubGraph
        Where they are built.
    body : SubGraph
    trips : tuple of Tensor
        The indices of the trips, of the loops around the values, from the outside in.
    kept : dict of Tape
        By the values that they keep, of the body.
    """

    def __init__(self, graph, body, trips, kept):
        self._graph, self._made, self._kept = graph, {}, kept
        self._index, self._steps = trips[-1], STEPS
        self._trips = {}
        for index in reversed(trips):
            self._trips[body] = index
            body = body.outer

    def make(self, tensor: Tensor) -> Tensor | None:
        """A value of the body; None where it takes more than a little."""
        source = origin(tensor)
        if source not in self._made:
            self._made[source] = self._built(source)
        return self._made[source]

    def _input(self, tensor):
        """What a value is made of: made again too, or read from the tape that keeps it."""
        source = origin(tensor)
        if source not in self._kept or source in self._made:
            return self.make(tensor)
        free = source.op.record is PARAMETER or _is_cheap(source.op)
        made = self._built(source) if free else None
        self._made[source] = self._read(source) if made is None else made
        return self._made[source]

    def _read(self, source):
        """What a tape gives in the trip, by the same operation as elsewhere in the graph."""
        tape, graph = self._kept[source], self._graph
        handle, flow = graph.resolve(tape.handle), graph.resolve(tape.flow.last)
        inputs = [handle, self._index, flow]
        for op in graph.operations:
            same = op.record is READ and not op.control_inputs
            if same and all(a is b for a, b in zip(op.inputs, inputs, strict=True)):
                return op.outputs[0]
        attrs = {"dtype": source.dtype, "known": source.spec.shape, "kind": DATA}
        return self._create(READ, inputs, attrs)

    def _built(self, source):
        op = source.op
        if op.record is CONSTANT:
            return self._create(CONSTANT, [], op.attrs)
        if source.graph not in self._trips:
            return self._graph.resolve(source) if lies_in(self._graph, source.graph) else None
        if op.record is PARAMETER:
            return self._counted(source)
        if not _is_cheap(op) and not self._is_quick(op):
            return None
        inputs = []
        for tensor in op.inputs:
            inputs.append(self._input(tensor))
            if inputs[-1] is None:
                return None
        with self._graph.control_dependencies(None):
            made = self._graph.create(op.record, inputs, dict(op.attrs))
        keep_shapes(op.outputs, made.outputs)
        return made.outputs[source.index]

    def _is_quick(self, op):
        """Whether an operation takes less time than a tape of its result."""
        if not self._kept or op.control_inputs or not op.record.quick:
            return False
        self._steps -= 1
        return self._steps >= 0

    def _create(self, record, inputs, attrs=None):
        with self._graph.control_dependencies(None):
            return self._graph.create(record, inputs, dict(attrs or {})).outputs[0]

    def _counted(self, variable):
        """A variable that each trip raises by as much; integers wrap around as they did."""
        found = _progression(variable)
        if found is None:
            return None
        first, step = map(self.make, found)
        if first is None or step is None:
            return None
        trip = self._graph.resolve(self._trips[variable.graph])
        if trip.dtype != variable.dtype:
            trip = self._create(CAST, [trip], {"dtype": variable.dtype})
        if constant_of(step) != 1:
            trip = self._create(MUL, [trip, step])
        return trip if constant_of(first) == 0 else self._create(ADD, [first, trip])


def _progression(variable):
    """The first value of a variable and what each trip adds to it; None where that is not so."""
    found = variable_of(variable)
    if found is None or variable.dtype.kind not in "iu" or variable.spec.rank != 0:
        return None
    op = found.following.op
    if op.record is not ADD or not any(tensor is variable for tensor in op.inputs):
        return None
    step = op.inputs[1 if op.inputs[0] is variable else 0]
    made = origin(step)
    fixed = made.op.record is CONSTANT or not lies_in(made.graph, variable.graph)
    return (found.first, step) if fixed and step.spec.rank == 0 else None


def _is_cheap(op):
    """Whether an operation picks, or measures, or computes with integer scalars."""
    if op.control_inputs:
        return False
    scalars = all(t.spec.rank == 0 and t.dtype.kind in "iu" for t in op.inputs)
    return op.record.selects or (scalars and (op.record.quick or op.record is STACK))
