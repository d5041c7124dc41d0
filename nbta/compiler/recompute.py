"""What a loop need not save: values that are computed, or restored, again where they are needed."""

import functools
from typing import NamedTuple

import numpy as np

from nbta.compiler.induction import Clamped, Counts, Iteration, Linear, is_outside
from nbta.compiler.loop_ends import is_cheap_remainder
from nbta.compiler.overwrite_analysis import Item, is_replaced, last_version
from nbta.compiler.tapes import Tapes, is_shadow, made
from nbta.graph.copying import keep_shapes
from nbta.graph.graph import lies_in
from nbta.graph.operation import DATA, HANDLE, Record, Tensor
from nbta.graph.views import Loop, is_body_of_branch, is_loop, origin, owners, variable_of
from nbta.ops.arrays.tensor_arrays import LOOKUP
from nbta.ops.core.arithmetic import add, floor_divide, maximum, multiply, subtract
from nbta.ops.core.dispatch import CONSTANT, PARAMETER, constant_in
from nbta.ops.core.filling import RANGE
from nbta.ops.core.shaping import CAST, INT64, cast
from nbta.ops.indexing.items import GETITEM, SET_ITEM, index_of
from nbta.ops.indexing.joining import STACK
from nbta.ops.loops.iteration_counts import Limit, constant_of, is_integer, limit_before
from nbta.ops.loops.loop import WHILE
from nbta.ops.loops.residuals import RESTORE, restore

ADD, SUB, MUL = add.record, subtract.record, multiply.record
FLOOR_DIVIDE = floor_divide.record


def outermost_loop(loop, iterations):
    """Of a loop and those around it, whose iterations are given, the one around all others."""
    for _ in iterations[1:]:
        loop = next(owner for owner in owners(loop) if is_loop(owner))
    return loop


def saved_by(tapes, loop):
    """Tapes of a loop by what they save."""
    found = {}
    for tape in tapes.all:
        if tape.loop is loop and tape.value.kind == DATA:
            found.setdefault(tape.value, tape)
    return found


class Again:
    """Builds values that the body of a loop had in an iteration.

    Parameters
    ----------
    graph : SubGraph
        Where they are built.
    body : SubGraph
    iterations : tuple of Tensor
        The indices of the iterations, of the loops around the values, from the outside in.
    saved : dict of Tape
        By the values that they save, of the body.
    counts : Counts, optional
        With it, items that are final are read again (`overwrite_analysis`).
    """

    def __init__(self, graph, body, iterations, saved, counts=None):
        self._graph, self._made, self._saved, self._counts = graph, {}, saved, counts
        self._iterations, self._under_way = {}, set()
        for index in reversed(iterations):
            while not is_loop(body.owner):
                body = body.outer
            self._iterations[body] = index
            body = body.outer

    def make(self, tensor: Tensor) -> Tensor | None:
        """A value of the body; None where it takes more than a little."""
        source = origin(tensor)
        if not lies_in(self._graph, source.graph):
            source = made(tensor)
        if source not in self._made:
            self._made[source] = self._built(source)
        return self._made[source]

    def _input(self, tensor):
        """What a value is made of: made again too, or read from the tape that saves it."""
        source = origin(tensor)
        if source not in self._saved or source in self._made:
            return self.make(tensor)
        free = source.op.record is PARAMETER or is_cheap(source.op)
        made = self._built(source) if free else None
        self._made[source] = self._read(source) if made is None else made
        return self._made[source]

    def _read(self, source):
        """What a tape gives in the iteration, by the same operation as elsewhere in the graph."""
        tape = self._saved[source]
        index = origin(self._iterations[tape.body])
        graph = index.graph if self._is_there(tape.body, index) else self._graph
        inputs = list(map(graph.resolve, (tape.last, index)))
        for op in graph.operations:
            same = op.record is RESTORE and not op.control_inputs
            if same and all(a is b for a, b in zip(op.inputs, inputs, strict=True)):
                return self._graph.resolve(op.outputs[0])
        with graph.as_default(), graph.control_dependencies(None):
            return self._graph.resolve(restore(*inputs, source.spec))

    def _is_there(self, body, index):
        """Whether a loop is proven to have made an iteration of this index, where it is computed.

        Then its tapes have a slot there, and what the iteration has computed did not fail.
        """
        iterations, inner = [index], body
        while inner.outer in self._iterations:
            inner = inner.outer
            iterations.append(self._iterations[inner])
        counts = self._counts
        if not isinstance(counts, Tapes) or not lies_in(index.graph, inner.outer):
            return False
        return counts.is_made(body.owner, tuple(reversed(iterations)))

    def _built(self, source):
        """A value, unless it is needed for itself: as in ``j = k[i]; k[j] = i`` by an index."""
        if source in self._under_way:
            return None
        self._under_way.add(source)
        try:
            return self._new(source)
        finally:
            self._under_way.remove(source)

    def _new(self, source):
        op = source.op
        if op.record is CONSTANT:
            return self._create(CONSTANT, [], op.attrs)
        if source.graph not in self._iterations:
            return self._elsewhere(source)
        made = self._again(source)
        return self._final(source) if made is None else made

    def _elsewhere(self, source):
        """A value from around, or one of a branch that can be computed without it."""
        if lies_in(self._graph, source.graph):
            is_old = source.kind == DATA and source.spec.rank and is_replaced(source, self._graph)
            return None if is_old else self._graph.resolve(source)
        graph = source.graph
        while is_body_of_branch(graph):
            graph = graph.outer
        if not (graph in self._iterations or lies_in(self._graph, graph)):
            return None
        if source.kind != DATA:  # only the same branch of another Case asks for it
            return self._again(source)
        return self._computed(source) if source.op.cannot_fail else None

    def _again(self, source):
        rules = {PARAMETER: self._counted, WHILE: self._after, RESTORE: self._restored_again,
                 LOOKUP: self._looked_up_again}  # fmt: skip
        return rules.get(source.op.record, self._computed)(source)

    def _computed(self, source):
        op, inputs = source.op, []
        if not is_cheap(op):
            return None
        for tensor in op.inputs:
            inputs.append(self._input(tensor))
            if inputs[-1] is None:
                return None
        graph, inputs = self._far_out(inputs, None if op.cannot_fail else op.graph)
        with graph.control_dependencies(None):
            made = graph.create(op.record, inputs, dict(op.attrs)).outputs
        keep_shapes(op.outputs, made)
        return self._graph.resolve(made[source.index])

    def _far_out(self, inputs, body=None):
        """The graph around the loops that do not change some tensors, and what they are there.

        So others tell of whose iteration it is. In a branch it stays: others may have no array
        there. What may fail did not in the iteration of a ``body`` that it is taken from, so it
        stays where that iteration is known, and proven to have been made.
        """
        made, graph = list(map(origin, inputs)), self._graph
        free = [tensor for tensor in made if tensor.op.record is not CONSTANT]
        if body is not None:
            index = self._iterations.get(body)
            if index is None or not self._is_there(body, origin(index)):
                return graph, inputs
            free.append(origin(index))
        while _is_in_loop(graph) and not any(t.graph is graph for t in free):
            graph = graph.outer
        if graph is self._graph:
            return graph, inputs
        return graph, [
            graph.resolve(tensor)
            if tensor.op.record is not CONSTANT
            else graph.create(CONSTANT, [], dict(tensor.op.attrs)).outputs[0]
            for tensor in made
        ]

    def _restored_again(self, source):
        """What a tape of an earlier loop still has, where others must know what it is.

        Which array a handle stands for, and which iteration an integer.
        """
        read = source.op
        if source.kind == DATA and (source.dtype.kind not in "iu" or source.spec.rank != 0):
            return None
        if read.control_inputs or not isinstance(self._counts, Tapes):
            return None
        if self._counts.tape_of(read.inputs[0])[0] is None and not is_shadow(read.inputs[0]):
            return None
        inputs = list(map(self.make, read.inputs))
        if any(tensor is None for tensor in inputs):
            return None
        return self._outside(RESTORE, inputs, read.attrs)

    def _looked_up_again(self, source):
        """A gradient array of what an earlier loop made: nobody but it has the array's handle."""
        lookup, tapes = source.op, self._counts
        if source.kind != HANDLE or len(lookup.inputs) > 2 or not isinstance(tapes, Tapes):
            return None
        array = tapes.uses.array(lookup.inputs[0])
        if lookup.control_inputs or array is None:
            return None
        with self._graph.as_default():
            flow = tapes.size_is_known(array[0], self._graph)
            handle = None if flow is None else self.make(lookup.inputs[0])
            if handle is None:
                return None
            flow = self._graph.resolve(flow)
            return self._outside(LOOKUP, [handle, flow], lookup.attrs)

    def _after(self, source):
        """What a loop counted, where that follows from its first values."""
        if source.index == 0:
            return self._iteration_count(source)
        variable = Loop(source.op).variable(source.index)
        rise = None if self._counts is None else rise_of(self._counts, variable.parameter)
        if rise is None:
            return None
        first, total = self.make(variable.first), self._in_all(source.op, rise, self)
        return None if first is None or total is None else self._raised(first, total)

    def _iteration_count(self, source):
        """How many iterations a loop made, where that follows from its first values."""
        limit = limit_before(Loop(source.op))
        if limit is None or self._counts is None:
            return None
        *_, outermost = self._iterations
        clamped = [a for a in self._counts.iterations(source.op).terms if type(a) is Clamped]
        low, high = map(self.make, (limit.low, limit.high))
        if low is None or high is None or not all(is_outside(a.inner, outermost) for a in clamped):
            return None  # what is not plain must stay what it is: tapes are proven by it
        graph, (low, high) = self._far_out([low, high])
        with graph.as_default(), graph.control_dependencies(None):
            found = Limit(low, high, limit.more).iterations(lambda end: cast(end, source.dtype))
            return self._graph.resolve(maximum(found, 0) if clamped else found)

    def _final(self, source):
        """What an array still has in the end, where it was read or written."""
        if self._counts is None:
            return None
        for item in items_of(source):
            version = last_version(self._counts, item, self._graph)
            scalars = [] if version is None else list(map(self.make, item.scalars))
            if version is not None and not any(tensor is None for tensor in scalars):
                inputs = [self._graph.resolve(version), *scalars]
                graph, inputs = self._far_out(inputs, source.graph)
                with graph.control_dependencies(None):
                    made = graph.create(GETITEM, inputs, {"key": item.key}).outputs
                keep_shapes([source], made)
                return self._graph.resolve(made[0])
        return None

    def _create(self, record, inputs, attrs=None):
        with self._graph.control_dependencies(None):
            return self._graph.create(record, inputs, dict(attrs or {})).outputs[0]

    def _outside(self, record, inputs, attrs=None):
        """`_create`, as far out as can be."""
        graph, inputs = self._far_out(inputs)
        with graph.control_dependencies(None):
            made = graph.create(record, inputs, dict(attrs or {}))
        return self._graph.resolve(made.outputs[0])

    def _counted(self, variable):
        """A variable that each iteration changes by as much; integers wrap around as they did."""
        found = progression(variable)
        if found is None:
            return self._summed(variable)
        first, step = map(self.make, found.numbers)
        return None if first is None or step is None else self.counted(variable, first, step)

    def counted(self, variable, first, step):
        """A variable with a `progression`, from its first value and its step."""
        iteration = self._graph.resolve(self._iterations[variable.graph])
        if iteration.dtype != variable.dtype:
            iteration = self._outside(CAST, [iteration], {"dtype": variable.dtype})
        if constant_of(step) != 1:
            iteration = self._outside(MUL, [iteration, step])
        record = progression(variable).record
        if record is ADD and constant_of(first) == 0:
            return iteration
        return self._outside(record, [first, iteration])

    def _summed(self, variable):
        """A variable that loops in its loop raise, too: a sum over earlier iterations.

        A rise of ``a + b * t`` in iteration ``t`` is ``a * n + b * n * (n - 1) / 2`` in all ``n``.
        """
        body, found = variable.graph, variable_of(variable)
        rise = None if self._counts is None else rise_of(self._counts, variable)
        if rise is None:
            return None
        first, at_first = self.make(found.first), self._rise(rise, body, self._iterations)
        if first is None or at_first is None:
            return None
        return self._raised(
            first, self._in_iterations(self._iterations[body], at_first, rise.slope)
        )

    def _rise(self, rise, body, iterations):
        """By how much iteration 0 of a body raises a variable, in iterations of those around."""
        made = Again(self._graph, body, (), {}, self._counts)
        made._iterations = (
            ({} if body in iterations else {body: None}) | iterations | {body: self._number(0)}
        )
        parts = [self._number(rise.fixed), *map(made.make, rise.steps)]
        parts += [self._in_all(loop, inner, made) for loop, inner in rise.loops]
        if any(part is None for part in parts):
            return None
        first, *rest = map(self._long, parts)
        return functools.reduce(lambda one, other: self._outside(ADD, [one, other]), rest, first)

    def _in_all(self, loop, rise, around):
        """By how much a whole loop raises a variable, in the iterations that ``around`` has."""
        count = around._input(loop.outputs[0])
        if count is None:
            return None
        at_first = self._rise(rise, Loop(loop).body, around._iterations)
        return None if at_first is None else self._in_iterations(count, at_first, rise.slope)

    def _in_iterations(self, n, at_first, slope):
        n = self._long(n)
        total = self._outside(MUL, [n, at_first])
        return self._outside(ADD, [total, self._triangular(n, slope)]) if slope else total

    def _raised(self, first, total):
        if first.dtype != total.dtype:
            total = self._outside(CAST, [total], {"dtype": first.dtype})
        return total if constant_of(first) == 0 else self._outside(ADD, [first, total])

    def _triangular(self, n, slope):
        """``slope * n * (n - 1) / 2``."""
        before = self._outside(ADD, [n, self._number(-1)])
        pairs = self._outside(FLOOR_DIVIDE, [self._outside(MUL, [n, before]), self._number(2)])
        return self._outside(MUL, [pairs, self._number(slope)])

    def _number(self, value):
        return constant_in(self._graph, np.int64(value))

    def _long(self, tensor):
        tensor = self._graph.resolve(tensor)
        return tensor if tensor.dtype == INT64 else self._outside(CAST, [tensor], {"dtype": INT64})


def _is_in_loop(graph):
    owner = getattr(graph, "owner", None)
    return owner is not None and is_loop(owner)


def items_of(source) -> list[Item]:
    """The items of arrays that a value of a body is read from, or a number is written to."""
    op = source.op
    if getattr(source.graph, "owner", None) is None:
        return []
    found = [Item(op.inputs[0], op.inputs[1:], op.attrs["key"])] if op.record is GETITEM else []
    if source.spec.rank != 0:
        return found
    for write in source.graph.operations:
        if write.record is SET_ITEM and write.inputs[1] is source:
            array, key, scalars = write.outputs[0], write.attrs["key"], write.inputs[2:]
            one = all(i is not None for i in index_of(key, scalars, array.spec.shape))
            found += [Item(array, scalars, key)] * (one and array.dtype == source.dtype)
    return found


class Progression(NamedTuple):
    """How each iteration changes a variable: it adds a number to it or subtracts it.

    No iteration changes that number.

    Attributes
    ----------
    record : Record
        `ADD` or `SUB`.
    numbers : tuple of Tensor
        The first value, and the number.
    """

    record: Record
    numbers: tuple[Tensor, Tensor]


def progression(variable: Tensor) -> Progression | None:
    """How each iteration changes an integer by as much; None where it does not."""
    found = variable_of(variable)
    if found is None or variable.dtype.kind not in "iu" or variable.spec.rank != 0:
        return None
    op = found.following.op
    if op.record not in (ADD, SUB):
        return None
    before, step = op.inputs
    if before is not variable and op.record is ADD:
        before, step = step, before
    plain = before is variable and _is_fixed(step, variable.graph)
    return Progression(op.record, (found.first, step)) if plain else None


class Rise(NamedTuple):
    """By how much an iteration raises an integer: by ``slope`` more than the one before.

    ``fixed`` and ``steps`` are added at once, and ``loops`` raise it in each of their iterations.
    """

    fixed: int
    steps: list
    loops: list
    slope: int

    @property
    def constant(self):
        """The rise, if it is the same constant in each iteration; else None."""
        return None if self.loops or self.steps else self.fixed


def rise_of(counts: Counts, variable: Tensor) -> Rise | None:
    """What raises a variable of a body; None if that is not a polynomial of the iteration.

    An index that counts through several loops is one, such as that of a packed triangle::

        for j in range(n):
            for i in range(j + 1, n):
                y[i] += a[place] * x[j]
                place += 1
    """
    found, body = variable_of(variable), variable.graph
    if found is None or not is_integer(variable):
        return None
    fixed, steps, loops, slope, tensor = 0, [], [], 0, found.following
    while tensor is not variable:
        op = tensor.op
        if tensor.graph is not body or tensor.dtype != variable.dtype:
            return None
        if op.record in (ADD, SUB):
            way = 0 if op.record is SUB or _is_fixed(op.inputs[1], body) else 1
            step, tensor = op.inputs[1 - way], op.inputs[way]
            number = constant_of(step)
            if number is not None:
                fixed += number if op.record is ADD else -number
            elif op.record is ADD and _is_fixed(step, body):
                steps.append(step)
            else:
                return None
        elif op.record is WHILE:
            inner = Loop(op).variable(tensor.index)
            rise = rise_of(counts, inner.parameter)
            more = None if rise is None else _slope(counts, op, rise, body)
            if more is None:
                return None
            loops.append((op, rise))
            slope, tensor = slope + more, inner.first
        else:
            return None
    return Rise(fixed, steps, loops, slope)


def _slope(counts, loop, rise, body):
    """By how much more a loop raises a variable in each iteration; None where that differs.

    The iterations are those of the loop whose body it is in.
    """
    count = counts.iterations(loop)
    rest = Linear(count.constant, count.terms)
    slope = rest.terms.pop(Iteration(body), 0)
    clamped = any(type(atom) is Clamped for atom in count.terms)
    if clamped or not is_outside(rest, body) or not _is_same(counts, rise, body):
        return None
    if not slope:
        return 0
    return None if rise.slope or rise.constant is None else slope * rise.constant


def _is_same(counts, rise, body):
    """Whether a rise in a loop in a body is the same in all iterations of the body."""
    return all(_is_fixed(step, body) for step in rise.steps) and all(
        is_outside(_without(counts.iterations(loop), Loop(loop).body.outer), body)
        and _is_same(counts, inner, body)
        for loop, inner in rise.loops
    )


def _without(form, body):
    """A linear form without the iteration number of a body."""
    return Linear(form.constant, {a: n for a, n in form.terms.items() if a != Iteration(body)})


def _is_fixed(tensor, body):
    """Whether a number comes from outside of a body, or is a constant."""
    made = origin(tensor)
    return tensor.spec.rank == 0 and (made.op.record is CONSTANT or not lies_in(made.graph, body))


def is_cheap(op):
    """Whether an operation picks, measures or counts, or computes with integers or their truth."""
    if op.control_inputs:
        return False
    scalars = all(t.spec.rank == 0 and t.dtype.kind in "iub" for t in op.inputs)
    cheap = op.record.cheap or op.record in (STACK, RANGE) or is_cheap_remainder(op)
    return op.record.selects or (scalars and cheap)
