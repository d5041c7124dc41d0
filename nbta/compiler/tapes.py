"""Tapes of programs: where values come from by way of them, and which need not be kept.

A tape is an array that a forward loop fills with one value a trip, at the trip's number, for loops
that come after. A loop in a loop makes new tapes each trip, and keeps their handles, flows and
numbers of trips on tapes of the outer loop: what is read from those is known by where the outer
loop made it, and by the trip.

`rematerialise` computes again what loops need not keep for those that come after; `share_tapes`
keeps once what several tapes hold.
"""

import functools
from collections import defaultdict
from typing import NamedTuple

import numpy as np

from nbta import shapes
from nbta.compiler.final_values import Item, last_version
from nbta.compiler.induction import Clamped, Counts, Linear, Trip, around, depth, is_outside
from nbta.compiler.manager import Fact, analysis, contract
from nbta.compiler.passes import is_sure, prune
from nbta.compiler.program import Program, changes
from nbta.graph.copying import keep_shapes
from nbta.graph.graph import SubGraph, lies_in, running, substitute, sweep
from nbta.graph.operation import DATA, FLOW, HANDLE, Operation, Tensor
from nbta.graph.order import ordered
from nbta.graph.views import (
    Branch,
    Loop,
    Variable,
    holder_in,
    is_body_of_branch,
    is_branch,
    is_loop,
    origin,
    owners,
    variable_of,
)
from nbta.ops.aliases import ArrayUses, array_of
from nbta.ops.arithmetic import add, floor_divide, maximum, multiply, subtract
from nbta.ops.arrays import CREATE, GATHER, LOOKUP, READ, SIZE, WRITE, WRITES
from nbta.ops.branch import CASE
from nbta.ops.dispatch import CONSTANT, PARAMETER, constant_in, special
from nbta.ops.indexing import GETITEM, SET_ITEM, index_of
from nbta.ops.joining import RANGE, STACK
from nbta.ops.loop import WHILE
from nbta.ops.products import MATMUL, OUTER, SWAPAXES, TRANSPOSE
from nbta.ops.shaping import CAST, INT64, cast
from nbta.ops.trip_counts import Limit, constant_of, counts_trips, is_integer, limit_before

ADD, SUB, MUL = add.record, subtract.record, multiply.record
FLOOR_DIVIDE = floor_divide.record


class Tape(NamedTuple):
    """An array of a value a trip: its handle, the loop, the place of its flow there, the write."""

    handle: Tensor
    loop: Operation
    place: int
    write: Operation

    @property
    def body(self) -> SubGraph:
        """The forward loop's."""
        return Loop(self.loop).body

    @property
    def flow(self) -> Variable:
        """The variable of the loop that has the array's flow."""
        return Loop(self.loop).variable(self.place)

    @property
    def value(self) -> Tensor:
        """What each trip writes."""
        return self.write.inputs[2]


class Place(NamedTuple):
    """Where a value is made, and the indices of the trips in which, of loops from the outside in.

    Without trips it is made where everybody who sees it can see it without a tape.
    """

    tensor: Tensor
    trips: tuple[Tensor, ...] = ()


class Taken(NamedTuple):
    """A number of trips that a tape brings, by where it was made and the trips' linear forms."""

    tensor: Tensor
    trips: tuple

    @property
    def graph(self):
        """The innermost graph that it depends on the trips of."""
        graphs = [atom.body for _, terms in self.trips for atom, _ in terms if type(atom) is Trip]
        return max(graphs, key=depth, default=None)


def _made(tensor):
    """`origin`, and of a handle or flow that only one branch of several makes, in that branch."""
    source = origin(tensor)
    while source.kind != DATA and source.op.record is CASE:
        ends = [
            end for end in Branch(source.op).ends(source.index) if end.op.record is not CONSTANT
        ]
        if len(ends) != 1:
            return source
        source = origin(ends[0])
    return source


class Tapes(Counts):
    """The tapes of a program, and who uses which array; made again when the program changes.

    Attributes
    ----------
    uses : ArrayUses
        With arrays known by way of tapes, too.
    tapes : dict of Tape
        By handle.
    """

    def __init__(self, program):
        super().__init__(program)
        self._orders = {}
        self._found = _candidates(program)
        self.uses = ArrayUses(program, self._made_in_some_trip)
        unproven = [t for t in self._found.values() if not self._is_proven(t)]
        self.uses.users[None] += [t.write for t in unproven if t.value.kind == HANDLE]
        self.tapes = {t.handle: t for t in self._found.values() if self._is_proven(t)}
        self._found = self.tapes
        self._numbers.clear()  # some may have trusted what was no tape after all

    def differences(self, fresh: "Tapes") -> dict[str, tuple]:
        """What a new analysis says otherwise: tapes, users of arrays, and integers."""
        orders = self._orders.items()
        pairs = {f"the order of {graph!r}": (n, fresh.order(graph)) for graph, n in orders}
        pairs["tapes"] = _names(self.tapes), _names(fresh.tapes)
        own = {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}
        return own | self.uses.differences(fresh.uses) | super().differences(fresh)

    def is_known(self, array) -> bool:
        """Whether all that touches an array is among its users."""
        if array is None or array in self.uses.results:
            return False
        return not self.uses.is_value(array) or not self.uses.users[None]

    def size_is_told(self, create: Operation, graph) -> Tensor | None:
        """A flow for which an array that does not grow, or was filled, has its last size.

        Where that is seen from a graph behind it; else None.
        """
        if not create.attrs["dynamic_size"] or create.outputs[0] in self.tapes:
            return special(FLOW)
        if not lies_in(graph, create.graph):  # the loop that made it is over
            writes = [op for op in self.uses.users[(create,)] if op.record in WRITES]
            over = self.is_known((create,)) and all(lies_in(w.graph, create.graph) for w in writes)
            return special(FLOW) if over else None
        flow, order = self.last_flow(create), self.order(create.graph)
        while graph is not create.graph and graph.outer is not create.graph:
            graph = graph.outer
        behind = flow is not None and graph is not create.graph and self.is_known((create,))
        return flow if behind and order[flow.op] < order[graph.owner] else None

    def last_flow(self, create: Operation) -> Tensor | None:
        """The flow of an array behind all writes, where it makes one way through its graph."""
        graph, flow, passed = create.graph, create.outputs[1], set()
        while flow is not None:
            last, users = flow, [op for op in graph.operations if any(t is flow for t in op.inputs)]
            ways = [end for op in users for end in op.outputs if _goes_on(create, flow, end)]
            flow = ways[0] if len(ways) == 1 else None
            passed.update(end.op for end in ways)
        writes = [op for op in self.uses.users[(create,)] if op.record in WRITES]
        return last if not ways and {holder_in(graph, op) for op in writes} <= passed else None

    def order(self, graph) -> dict[Operation, int]:
        """The places of a graph's operations in running order."""
        if graph not in self._orders:
            self._orders[graph] = {op: k for k, op in enumerate(ordered(graph.operations))}
        return self._orders[graph]

    def users(self, tape: Tape) -> list[Operation]:
        """What touches the array of a tape."""
        self.hold()
        return self.uses.users[(tape.handle.op,)]

    def _is_proven(self, tape):
        writes = [op for op in self.users(tape) if op.record in WRITES]
        return self.is_known((tape.handle.op,)) and writes == [tape.write]

    def whereabouts(self, tensor: Tensor) -> Place:
        """Where a value is made, also if tapes bring it."""
        self.hold()
        source = _made(tensor)
        if source.op.record is not READ:
            return Place(source)
        array, trips = self.whereabouts(source.op.inputs[0])
        tape = self._found.get(array)
        if tape is None:
            return Place(source)
        value = _made(tape.value)
        if not lies_in(value.graph, tape.body):
            if not trips:
                return self.whereabouts(value)
            return Place(value, trips) if value.graph is tape.loop.graph else Place(source)
        if value.op.record is READ:
            return Place(source)
        return Place(value, (*trips, source.op.inputs[1]))

    def _made_in_some_trip(self, handle):
        """Where a handle is made, also if tapes bring it that themselves got it from tapes."""
        made, seen = self.whereabouts(handle).tensor, set()
        while made.op.record is READ and made not in seen:
            seen.add(made)
            tape = self._found.get(self._made_in_some_trip(made.op.inputs[0]))
            if tape is not None:
                made = self.whereabouts(tape.value).tensor
        return made

    def same_trips(self, one, other) -> bool:
        """Whether indices of trips are the same numbers."""
        numbers = zip(map(self.number, one), map(self.number, other), strict=False)
        return len(one) == len(other) and all(a == b for a, b in numbers)

    def _computed(self, tensor):
        if tensor.op.record is not READ:
            return super()._computed(tensor)
        array, trips = self.whereabouts(tensor.op.inputs[0])
        tape = self._found.get(array)
        if tape is None:
            return None
        return self._in_trip(tape.value, tape.loop, (*trips, tensor.op.inputs[1]))

    def _in_trip(self, tensor, loop, trips):
        """An integer that the body of a loop makes, in some trip; None where it is not plain."""
        found = self.number(tensor)
        rest, bodies = Linear(found.constant, found.terms), around(Loop(loop).body)
        during = list(zip(bodies, reversed(trips), strict=False))
        steps = [(rest.terms.pop(Trip(body), 0), trip) for body, trip in during]
        if len(during) == len(trips) and is_outside(rest, during[-1][0]):
            return sum((self.number(trip) * step for step, trip in steps), rest)
        source = origin(tensor)
        made = source.op.record is WHILE and source.index == 0
        if not made or source.graph is not Loop(loop).body:
            return None
        forms = (self.number(index) for index in trips)
        frozen = tuple((form.constant, frozenset(form.terms.items())) for form in forms)
        return Linear(0, {Taken(source, frozen): 1})

    def length_of(self, tape: Tape, trips) -> Linear | None:
        """How many values a tape has in the end, of the loop that ran in some trips."""
        if not trips:
            return self.trips(tape.loop)
        around = next(owner for owner in owners(tape.loop) if is_loop(owner))
        return self._in_trip(tape.loop.outputs[0], around, trips)

    def tape_read(self, read: Operation) -> Place | None:
        """What a read of a tape is sure to give: the value, and its trips; else None.

        It comes after the loop, and its index is that of an iteration which the loop has made.
        Reads of what reverse mode saves are made to be such.
        """
        array, trips = self.whereabouts(read.inputs[0])
        tape = self.tapes.get(array)
        if tape is None or read.record is not READ or lies_in(read.graph, tape.body):
            return None
        if tape.handle.op.attrs.get("saves"):
            return Place(tape.value, (*trips, read.inputs[1]))
        made, during = self.whereabouts(read.inputs[2])
        if made is not tape.flow.last or not self.same_trips(during, trips):
            return None
        count, index = self.length_of(tape, trips), self.number(read.inputs[1])
        if count is None or not self.is_row(index, count):
            return None
        return Place(tape.value, (*trips, read.inputs[1]))

    def is_row(self, index, count) -> bool:
        """Whether an index is sure to be from 0 to before a count."""
        return self.is_natural(index) and self.is_natural(count - Linear(1) - index)


def _names(tapes):
    """What is compared of tapes by handle: symbolic tensors have no truth value."""
    return {
        handle.name: (tape.loop, tape.place, tape.write, handle.op)
        for handle, tape in tapes.items()
    }


def _candidates(program):
    """Tapes by handle, as far as their writes tell."""
    writes = defaultdict(list)
    for op in running(program):
        if op.record in WRITES:
            writes[array_of(op.inputs[0])].append(op)
    found = [_as_tape(*array, ops) for array, ops in writes.items() if array and len(array) == 1]
    return {tape.handle: tape for tape in found if tape is not None}


def _as_tape(create, writes):
    """An array as the tape of a loop that makes all of its one write; None where it is none."""
    write = writes[0]
    body = write.graph
    loop = getattr(body, "owner", None)
    if len(writes) != 1 or write.record is not WRITE or not _grows(create):
        return None
    if loop is None or not is_loop(loop) or loop.graph is not create.graph:
        return None
    if body is not Loop(loop).body or not counts_trips(Loop(loop)):
        return None
    place = place_of_flow(loop, write, create)
    if write.inputs[1] is not Loop(loop).counter or place is None:
        return None
    return Tape(create.outputs[0], loop, place, write)


def place_of_flow(loop, write, create):
    """The variable of a loop that has the flow of an array, and nothing but this write in it."""
    ends = enumerate(Loop(loop).following)
    place = next((place for place, end in ends if end is write.outputs[0]), None)
    if place is None:
        return None
    flow = Loop(loop).variable(place)
    plain = write.inputs[3] is flow.parameter and flow.first is create.outputs[1]
    return place if plain else None


def _goes_on(create, flow, end):
    """Whether a result of an operation that uses a flow of an array is that flow behind writes."""
    op = end.op
    if op.record in WRITES:
        return array_of(op.inputs[0]) == (create,)
    if is_loop(op):
        variable = Loop(op).variable(end.index)
        return variable.first is flow and not variable.is_kept
    return is_branch(op) and any(_comes_from(flow, way) for way in Branch(op).ends(end.index))


def _comes_from(flow, end):
    """Whether a flow in a branch goes on from one around it."""
    found = origin(end)
    while found is not flow:
        op = found.op
        if op.record in WRITES:
            found = origin(op.inputs[-1])
        elif is_loop(op):
            found = origin(Loop(op).variable(found.index).first)
        else:
            return is_branch(op) and any(_comes_from(flow, e) for e in Branch(op).ends(found.index))
    return True


def _grows(create):
    """Whether an operation makes an array as loops make their tapes."""
    if constant_of(create.inputs[0]) != 0:
        return False
    return create.attrs["dynamic_size"] and not create.attrs["clear_after_read"]


@contract(requires=[Fact.RANKS, Fact.TAPES_OF_LOOPS])
@changes
def read_in_branches(program: Program) -> Program:
    """Read handles and flows in the branches that use them, where the same branch kept them."""
    for case in [op for op in running(program) if is_branch(op)]:
        for branch in Branch(case).branches:
            for outer, parameter in list(branch.captures.items()):
                read = outer.op
                if outer.kind != DATA and read.record is READ and not read.control_inputs:
                    made = branch.create(READ, list(map(branch.resolve, read.inputs)), read.attrs)
                    substitute(branch, {parameter: made.outputs[0]})
    return prune.in_place(program)


@contract(requires=[Fact.RANKS, Fact.TAPES_OF_LOOPS], breaks=[Fact.SAVED_BY_TAPES])
@changes
def rematerialise(program: Program) -> Program:
    """Compute again what a loop keeps on a tape, where that takes little.

    From the number of the trip follow variables that each trip raises by as much, shapes and
    integers, and rows of captured tensors. From what other tapes of the loop keep anyway follow
    parts of it, and sums, products and what else takes less time than a tape. `prune` then drops
    the tapes.
    """
    done = set()
    while True:
        tapes = analysis(Tapes, program)
        if not any(_is_simple(tapes, op) for op in tapes.uses.operations if op.record is READ):
            return program
        reads = [op for op in tapes.uses.operations if op.record is READ]
        found = {op for op in reads if _replaced(tapes, op)}
        if found <= done:  # what cannot be made again may have been given the same reads once more
            return program
        done |= found


def _is_simple(tapes, read):
    """Whether what a tape gives could be made again, by what makes it."""
    made = tapes.whereabouts(read.outputs[0]).tensor
    if made.op.record in (READ, LOOKUP):
        return made.kind == HANDLE
    if made.op.record is PARAMETER:
        return made.dtype.kind in "iu" or not made.spec.rank
    return made.op.record is CONSTANT or _is_cheap(made.op) or made.op.record.quick or _items(made)


def _replaced(tapes, read):
    """Put what is computed again in place of what a tape gives; whether that can be."""
    place = tapes.tape_read(read)
    if place is None or read.control_inputs or read in tapes.uses.waited:
        return False
    tape = tapes.tapes[tapes.whereabouts(read.inputs[0]).tensor]
    users = [op for op in tapes.users(tape) if op is not tape.write]
    if any(op.record is not READ for op in users):
        return False  # a gradient array has as many slots as the tape
    outermost = _outermost(tape, place)
    seen = lies_in(read.graph, outermost.graph)  # not from a branch of its own
    kept = _kept(tapes, outermost) if seen and not any(map(_is_multiplied, users)) else {}
    again = Again(read.graph, tape.body, place.trips, kept, tapes).make(place.tensor)
    if again is None:
        return False
    substitute(read.graph, {read.outputs[0]: again})
    return True


def _outermost(tape, place):
    """Of the loops whose trips a place names the one around all others."""
    loop = tape.loop
    for _ in place.trips[1:]:
        loop = next(owner for owner in owners(loop) if is_loop(owner))
    return loop


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
        found = (op for op in read.graph.operations if op.record in _OF_MATRICES)
        users = [op for op in found if any(t is tensor for t in op.inputs)]
        if any(op.record in (MATMUL, OUTER) for op in users):
            return True
        todo += [op.outputs[0] for op in users]
    return False


_OF_MATRICES = frozenset((MATMUL, OUTER, SWAPAXES, TRANSPOSE))


#: Of so many operations one value is made again.
STEPS = 4


class Again:
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
    counts : Counts, optional
        With it, items that are final are read again (`final_values`).
    """

    def __init__(self, graph, body, trips, kept, counts=None):
        self._graph, self._made, self._kept, self._counts = graph, {}, kept, counts
        self._steps = STEPS
        self._trips = {}
        for index in reversed(trips):
            while not is_loop(body.owner):
                body = body.outer
            self._trips[body] = index
            body = body.outer

    def make(self, tensor: Tensor) -> Tensor | None:
        """A value of the body; None where it takes more than a little."""
        source = origin(tensor)
        if not lies_in(self._graph, source.graph):
            source = _made(tensor)
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
        tape = self._kept[source]
        index = origin(self._trips[tape.body])
        graph = index.graph if self._is_there(tape, index) else self._graph
        inputs = list(map(graph.resolve, (tape.handle, index, tape.flow.last)))
        for op in graph.operations:
            same = op.record is READ and not op.control_inputs
            if same and all(a is b for a, b in zip(op.inputs, inputs, strict=True)):
                return self._graph.resolve(op.outputs[0])
        attrs = {"dtype": source.dtype, "known": source.spec.shape, "kind": DATA}
        with graph.control_dependencies(None):
            made = graph.create(READ, inputs, attrs).outputs[0]
        return self._graph.resolve(made)

    def _is_there(self, tape, index):
        """Whether a tape is sure to be seen, and to have a slot, wherever the index is computed."""
        counts = self._counts
        if not isinstance(counts, Tapes) or not lies_in(index.graph, tape.handle.graph):
            return False
        return counts.is_row(counts.number(index), counts.trips(tape.loop))

    def _built(self, source):
        op = source.op
        if op.record is CONSTANT:
            return self._create(CONSTANT, [], op.attrs)
        if source.graph not in self._trips:
            return self._elsewhere(source)
        made = self._again(source)
        return self._final(source) if made is None else made

    def _elsewhere(self, source):
        """A value from around, or one of a branch that can be computed without it."""
        if lies_in(self._graph, source.graph):
            return self._graph.resolve(source)
        graph = source.graph
        while is_body_of_branch(graph):
            graph = graph.outer
        if not (graph in self._trips or lies_in(self._graph, graph)):
            return None
        if source.kind != DATA:  # only the same branch of another Case asks for it
            return self._again(source)
        return self._computed(source) if is_sure(source.op) else None

    def _again(self, source):
        rules = {PARAMETER: self._counted, WHILE: self._after, READ: self._read_again,
                 LOOKUP: self._looked_up_again}  # fmt: skip
        return rules.get(source.op.record, self._computed)(source)

    def _computed(self, source):
        op, inputs = source.op, []
        if not _is_cheap(op) and not self._is_quick(op):
            return None
        for tensor in op.inputs:
            inputs.append(self._input(tensor))
            if inputs[-1] is None:
                return None
        graph, inputs = self._far_out(inputs) if is_sure(op) else (self._graph, inputs)
        with graph.control_dependencies(None):
            made = graph.create(op.record, inputs, dict(op.attrs)).outputs
        keep_shapes(op.outputs, made)
        return self._graph.resolve(made[source.index])

    def _far_out(self, inputs):
        """The graph around the loops that do not change some tensors, and what they are there.

        So others tell of whose trip it is. In a branch it stays: others may have no array there.
        """
        made, graph = list(map(origin, inputs)), self._graph
        free = [tensor for tensor in made if tensor.op.record is not CONSTANT]
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

    def _is_quick(self, op):
        """Whether an operation takes less time than a tape of its result."""
        if op.control_inputs or not op.record.quick:
            return False
        if not self._kept and (self._counts is None or any(t.spec.rank != 0 for t in op.outputs)):
            return False
        self._steps -= 1
        return self._steps >= 0

    def _read_again(self, source):
        """What a tape of an earlier loop still has, where others must know what it is.

        Which array a handle stands for, and which trip an integer.
        """
        read = source.op
        if source.kind == DATA and (source.dtype.kind not in "iu" or source.spec.rank != 0):
            return None
        if read.control_inputs or not isinstance(self._counts, Tapes):
            return None
        if self._counts.whereabouts(read.inputs[0]).tensor not in self._counts.tapes:
            return None
        inputs = list(map(self.make, read.inputs))
        if any(tensor is None for tensor in inputs):
            return None
        return self._outside(READ, inputs, read.attrs)

    def _looked_up_again(self, source):
        """A gradient array of what an earlier loop made: nobody but it has the array's handle."""
        lookup, tapes = source.op, self._counts
        if source.kind != HANDLE or len(lookup.inputs) > 2 or not isinstance(tapes, Tapes):
            return None
        array = tapes.uses.array(lookup.inputs[0])
        if lookup.control_inputs or array is None:
            return None
        with self._graph.as_default():
            flow = tapes.size_is_told(array[0], self._graph)
            handle = None if flow is None else self.make(lookup.inputs[0])
            if handle is None:
                return None
            flow = self._graph.resolve(flow)
            return self._outside(LOOKUP, [handle, flow], lookup.attrs)

    def _after(self, source):
        """What a loop counted, where that follows from its first values."""
        if source.index == 0:
            return self._trip_count(source)
        variable = Loop(source.op).variable(source.index)
        rise = None if self._counts is None else rise_of(self._counts, variable.parameter)
        if rise is None:
            return None
        first, total = self.make(variable.first), self._in_all(source.op, rise, self)
        return None if first is None or total is None else self._raised(first, total)

    def _trip_count(self, source):
        """How many trips a loop made, where that follows from its first values."""
        limit = limit_before(Loop(source.op))
        if limit is None or self._counts is None:
            return None
        *_, outermost = self._trips
        clamped = [a for a in self._counts.trips(source.op).terms if type(a) is Clamped]
        low, high = map(self.make, (limit.low, limit.high))
        if low is None or high is None or not all(is_outside(a.inner, outermost) for a in clamped):
            return None  # what is not plain must stay what it is: tapes are proven by it
        graph, (low, high) = self._far_out([low, high])
        with graph.as_default(), graph.control_dependencies(None):
            found = Limit(low, high, limit.more).trips(lambda end: cast(end, source.dtype))
            return self._graph.resolve(maximum(found, 0) if clamped else found)

    def _final(self, source):
        """What an array still has in the end, where it was read or written."""
        if self._counts is None:
            return None
        for item in _items(source):
            version = last_version(self._counts, item, self._graph)
            inputs = [version] if version is None else [self._graph.resolve(version)]
            inputs += map(self.make, item.scalars)
            if not any(tensor is None for tensor in inputs):
                made = self._create(GETITEM, inputs, {"key": item.key})
                keep_shapes([source], [made])
                return made
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
        found = _progression(variable)
        if found is None:
            return self._summed(variable)
        record, *ends = found
        first, step = map(self.make, ends)
        if first is None or step is None:
            return None
        trip = self._graph.resolve(self._trips[variable.graph])
        if trip.dtype != variable.dtype:
            trip = self._outside(CAST, [trip], {"dtype": variable.dtype})
        if constant_of(step) != 1:
            trip = self._outside(MUL, [trip, step])
        if record is ADD and constant_of(first) == 0:
            return trip
        return self._outside(record, [first, trip])

    def _summed(self, variable):
        """A variable that loops in its loop raise, too: a sum over earlier iterations.

        A rise of ``a + b * t`` in iteration ``t`` is ``a * n + b * n * (n - 1) / 2`` in all ``n``.
        """
        body, found = variable.graph, variable_of(variable)
        rise = None if self._counts is None else rise_of(self._counts, variable)
        if rise is None:
            return None
        first, at_first = self.make(found.first), self._rise(rise, body, self._trips)
        if first is None or at_first is None:
            return None
        return self._raised(first, self._in_trips(self._trips[body], at_first, rise.slope))

    def _rise(self, rise, body, trips):
        """By how much iteration 0 of a body raises a variable, in iterations of those around."""
        made = Again(self._graph, body, (), {}, self._counts)
        made._trips = ({} if body in trips else {body: None}) | trips | {body: self._number(0)}
        parts = [self._number(rise.fixed), *map(made.make, rise.steps)]
        parts += [self._in_all(loop, inner, made) for loop, inner in rise.loops]
        if any(part is None for part in parts):
            return None
        first, *rest = map(self._long, parts)
        return functools.reduce(lambda one, other: self._outside(ADD, [one, other]), rest, first)

    def _in_all(self, loop, rise, around):
        """By how much a whole loop raises a variable, in the iterations that ``around`` has."""
        count = around.make(loop.outputs[0])
        if count is None:
            return None
        at_first = self._rise(rise, Loop(loop).body, around._trips)
        return None if at_first is None else self._in_trips(count, at_first, rise.slope)

    def _in_trips(self, n, at_first, slope):
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


def _items(source) -> list[Item]:
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


def _progression(variable):
    """How each iteration changes a variable, its first value, and by how much; or None.

    It adds to it or subtracts from it (`ADD`, `SUB`) a number that no iteration changes.
    """
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
    return (op.record, found.first, step) if plain else None


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
    count = counts.trips(loop)
    rest = Linear(count.constant, count.terms)
    slope = rest.terms.pop(Trip(body), 0)
    clamped = any(type(atom) is Clamped for atom in count.terms)
    if clamped or not is_outside(rest, body) or not _is_same(counts, rise, body):
        return None
    if not slope:
        return 0
    return None if rise.slope or rise.constant is None else slope * rise.constant


def _is_same(counts, rise, body):
    """Whether a rise in a loop in a body is the same in all iterations of the body."""
    return all(_is_fixed(step, body) for step in rise.steps) and all(
        is_outside(_without(counts.trips(loop), Loop(loop).body.outer), body)
        and _is_same(counts, inner, body)
        for loop, inner in rise.loops
    )


def _without(form, body):
    """A linear form without the iteration number of a body."""
    return Linear(form.constant, {a: n for a, n in form.terms.items() if a != Trip(body)})


def _is_fixed(tensor, body):
    """Whether a number comes from outside of a body, or is a constant."""
    made = origin(tensor)
    return tensor.spec.rank == 0 and (made.op.record is CONSTANT or not lies_in(made.graph, body))


def _is_cheap(op):
    """Whether an operation picks, or measures, or computes with integer scalars, or counts."""
    if op.control_inputs:
        return False
    scalars = all(t.spec.rank == 0 and t.dtype.kind in "iu" for t in op.inputs)
    return op.record.selects or (scalars and (op.record.quick or op.record in (STACK, RANGE)))


@contract(
    requires=[Fact.RANKS, Fact.TAPES_OF_LOOPS, Fact.SLOT_STATES], breaks=[Fact.SAVED_BY_TAPES]
)
@changes
def share_tapes(program: Program) -> Program:
    """Let one tape do for several, and for arrays that are only stacked after the loop.

    Tapes of one value become one. The tape of a variable and that of its next value become one
    that begins with the first value. An array that holds what a tape holds, and that is only
    stacked as a whole, is stacked from the tape. `prune` then drops what nothing uses any more.
    """
    while True:
        tapes = analysis(Tapes, program)
        if not any(step(tapes) for step in (_share_equal, _share_next, _share_stacked)):
            return program
        sweep(program)


def _share_equal(tapes):
    """Put one tape in place of all others of the same value; whether there were such.

    Whatever reads the others is then a read of that one, so that all can be told at once.
    """
    kept, found = {}, False
    for tape in _plain(tapes):
        other = kept.setdefault((tape.loop, tape.value), tape)
        if other is not tape and _alike(tape, other):
            _retire(tape, other)
            found = True
    return found


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
    if tapes.uses.is_value((tape.handle.op,)):
        return False  # it becomes part of one tape for all trips of the loop around
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
