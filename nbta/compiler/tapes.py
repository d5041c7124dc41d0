"""Where values come from by way of tapes, and which operations touch which array.

A tape is an array that a forward loop fills with one value a trip, at the trip's number, for loops
that come after. A loop in a loop makes new tapes each trip, and keeps their handles, flows and
numbers of trips on tapes of the outer loop: what is read from those is known by where the outer
loop made it, and by the trip.
"""

from collections import defaultdict
from typing import NamedTuple

from nbta.compiler.induction import Counts, Linear, Trip, constant_of, is_outside, origin, step_of
from nbta.graph.graph import SubGraph, subgraphs
from nbta.graph.operation import Operation, Tensor
from nbta.graph.spec import HANDLE
from nbta.ops.arrays import CLOSE, CREATE, LOOKUPS, READ, READS, SIZE, WRITE, WRITES
from nbta.ops.loop import WHILE

#: What has an array's handle as its first input.
ON_ARRAYS = WRITES | READS | LOOKUPS | {SIZE, CLOSE}


class Tape(NamedTuple):
    """An array of a value a trip: its handle, the loop, the place of its flow there, the write."""

    handle: Tensor
    loop: Operation
    place: int
    write: Operation

    @property
    def body(self) -> SubGraph:
        """The forward loop's."""
        return self.loop.attrs["body"]

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


def depth(graph) -> int:
    """How many graphs lie around one."""
    count = 0
    while isinstance(graph, SubGraph) and graph.outer is not None:
        graph, count = graph.outer, count + 1
    return count


def everything(graph):
    """Operations of a graph and of all bodies in it."""
    for op in graph.operations:
        yield op
        for body in subgraphs(op):
            yield from everything(body)


def lies_in(graph, body) -> bool:
    """Whether a graph is a body, or lies somewhere in it."""
    while graph is not None:
        if graph is body:
            return True
        graph = getattr(graph, "outer", None)
    return False


def counts_trips(loop) -> bool:
    """Whether the first variable of a loop is 0, 1, 2 and so on."""
    counter = loop.attrs["body"].inputs[0]
    return constant_of(loop.inputs[0]) == 0 and step_of(counter) == 1


class Tapes(Counts):
    """The tapes of a program, and who uses which array; made again when the program changes.

    Attributes
    ----------
    operations : list of Operation
        All of them.
    users : dict of list of Operation
        What touches an array, by the array; under None what touches an array that only the run
        tells.
    """

    def __init__(self, program):
        super().__init__()
        self.operations = list(everything(program))
        self.waited_for = {other for op in self.operations for other in op.control_inputs}
        self.users = defaultdict(list)
        self._found = self._candidates()
        self._shown = {self.array(t) for t in program.outputs if t.kind == HANDLE}
        self._escaped = set(self._shown)
        self._note_users()
        self.tapes = {t.handle: t for t in self._found.values() if self._is_proven(t)}
        self._found = self.tapes
        self._numbers.clear()  # some may have trusted what was no tape after all

    def _candidates(self):
        writes = defaultdict(list)
        for op in self.operations:
            if op.record in WRITES:
                writes[origin(op.inputs[0])].append(op)
        found = {}
        for handle, ops in writes.items():
            tape = _as_tape(handle, ops)
            if tape is not None:
                found[handle] = tape
        return found

    def _note_users(self):
        for op in self.operations:
            rest = op.inputs
            if op.record in ON_ARRAYS:
                self.users[self.array(op.inputs[0])].append(op)
                rest = op.inputs[1:]
            elif subgraphs(op):
                rest = op.inputs[: op.attrs.get("count", 0)]
            rest = [*rest, *(t for body in subgraphs(op) for t in body.outputs)]
            self._escaped |= {self.array(t) for t in rest if t.kind == HANDLE}
        unproven = [t for t in self._found.values() if not self._is_proven(t)]
        self.users[None] += [t.write for t in unproven if t.value.kind == HANDLE]

    def is_known(self, array) -> bool:
        """Whether all that touches an array is in ``users``."""
        if array is None or array in self._shown:
            return False
        return array not in self._escaped or not self.users[None]

    def _is_proven(self, tape):
        writes = [op for op in self.users[tape.handle] if op.record in WRITES]
        return self.is_known(tape.handle) and writes == [tape.write]

    def array(self, handle: Tensor):
        """The array of a handle: where it is made, or the forward array and the source."""
        made = self.whereabouts(handle).tensor
        if made.op.record is CREATE:
            return made
        if made.op.record in LOOKUPS:
            forward = self.array(made.op.inputs[0])
            return None if forward is None else (forward, made.op.attrs["source"])
        return None

    def whereabouts(self, tensor: Tensor) -> Place:
        """Where a value is made, also if tapes bring it."""
        source = origin(tensor)
        if source.op.record is not READ:
            return Place(source)
        array, trips = self.whereabouts(source.op.inputs[0])
        tape = self._found.get(array)
        if tape is None:
            return Place(source)
        value = origin(tape.value)
        if not lies_in(value.graph, tape.body):
            if not trips:
                return self.whereabouts(value)
            return Place(value, trips) if value.graph is tape.loop.graph else Place(source)
        if value.op.record is READ:
            return Place(source)
        return Place(value, (*trips, source.op.inputs[1]))

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
        body = loop.attrs["body"]
        found = self.number(tensor)
        rest = Linear(found.constant, found.terms)
        step = rest.terms.pop(Trip(body), 0)
        if not rest.terms or (len(trips) == 1 and is_outside(rest, body)):
            return rest + self.number(trips[-1]) * step
        source = origin(tensor)
        if source.op.record is not WHILE or source.index != 0 or source.graph is not body:
            return None
        forms = (self.number(index) for index in trips)
        frozen = tuple((form.constant, frozenset(form.terms.items())) for form in forms)
        return Linear(0, {Taken(source, frozen): 1})

    def length_of(self, tape: Tape, trips) -> Linear | None:
        """How many values a tape has in the end, of the loop that ran in some trips."""
        if not trips:
            return self.trips(tape.loop)
        return self._in_trip(tape.loop.outputs[0], tape.loop.graph.owner, trips)

    def tape_read(self, read: Operation) -> Place | None:
        """What a read of a tape is sure to give: the value, and its trips; else None.

        It comes behind the loop, and its index is that of a trip which the loop has made.
        """
        array, trips = self.whereabouts(read.inputs[0])
        tape = self.tapes.get(array)
        if tape is None or read.record is not READ or lies_in(read.graph, tape.body):
            return None
        made, during = self.whereabouts(read.inputs[2])
        if made is not tape.loop.outputs[tape.place] or not self.same_trips(during, trips):
            return None
        count, index = self.length_of(tape, trips), self.number(read.inputs[1])
        if count is None or not self._is_row(index, count):
            return None
        return Place(tape.value, (*trips, read.inputs[1]))

    def _is_row(self, index, count):
        """Whether an index is sure to be from 0 to before a count."""
        low, high = (Linear(index.constant, index.terms) for _ in range(2))
        for trip, factor in index.terms.items():
            if type(trip) is not Trip:
                continue
            far = (self.trips(trip.body.owner) - Linear(1)) * factor
            low, high = (end - Linear(0, {trip: factor}) for end in (low, high))
            low, high = (low + far, high) if factor < 0 else (low, high + far)
        return low.is_natural() and (count - Linear(1) - high).is_natural()


def _as_tape(handle, writes):
    """An array as the tape of a loop that makes all of its one write; None where it is none."""
    create, write = handle.op, writes[0]
    body = write.graph
    loop = getattr(body, "owner", None)
    if len(writes) != 1 or write.record is not WRITE or not _grows(create):
        return None
    if loop is None or loop.record is not WHILE or loop.graph is not create.graph:
        return None
    if body is not loop.attrs["body"] or not counts_trips(loop):
        return None
    place = place_of_flow(loop, write, create)
    if write.inputs[1] is not body.inputs[0] or place is None:
        return None
    return Tape(handle, loop, place, write)


def place_of_flow(loop, write, create):
    """The variable of a loop that has the flow of an array, and nothing but this write in it."""
    body = loop.attrs["body"]
    for place in range(1, loop.attrs["count"]):
        if body.outputs[place] is write.outputs[0]:
            plain = write.inputs[3] is body.inputs[place]
            return place if plain and loop.inputs[place] is create.outputs[1] else None
    return None


def _grows(create):
    """Whether an operation makes an array as loops make their tapes."""
    if create.record is not CREATE or constant_of(create.inputs[0]) != 0:
        return False
    return create.attrs["dynamic_size"] and not create.attrs["clear_after_read"]
