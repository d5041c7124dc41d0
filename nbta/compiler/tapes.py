"""Where values come from by way of tapes.

A tape is an array that a forward loop fills with one value a trip, at the trip's number, for loops
that come after. A loop in a loop makes new tapes each trip, and keeps their handles, flows and
numbers of trips on tapes of the outer loop: what is read from those is known by where the outer
loop made it, and by the trip.
"""

from collections import defaultdict
from typing import NamedTuple

from nbta.compiler.induction import Counts, Linear, Trip, is_outside
from nbta.graph.graph import SubGraph, lies_in, running
from nbta.graph.operation import Operation, Tensor
from nbta.graph.spec import HANDLE
from nbta.graph.views import Loop, Variable, is_loop, origin
from nbta.ops.aliases import ArrayUses, array_of
from nbta.ops.arrays import READ, WRITE, WRITES
from nbta.ops.loop import WHILE
from nbta.ops.trip_counts import constant_of, counts_trips


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


def depth(graph) -> int:
    """How many graphs lie around one."""
    count = 0
    while isinstance(graph, SubGraph) and graph.outer is not None:
        graph, count = graph.outer, count + 1
    return count


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
        super().__init__()
        self._found = _candidates(program)
        self.uses = ArrayUses(program, lambda handle: self.whereabouts(handle).tensor)
        unproven = [t for t in self._found.values() if not self._is_proven(t)]
        self.uses.users[None] += [t.write for t in unproven if t.value.kind == HANDLE]
        self.tapes = {t.handle: t for t in self._found.values() if self._is_proven(t)}
        self._found = self.tapes
        self._numbers.clear()  # some may have trusted what was no tape after all

    def is_known(self, array) -> bool:
        """Whether all that touches an array is among its users."""
        if array is None or array in self.uses.results:
            return False
        return not self.uses.is_value(array) or not self.uses.users[None]

    def users(self, tape: Tape) -> list[Operation]:
        """What touches the array of a tape."""
        return self.uses.users[(tape.handle.op,)]

    def _is_proven(self, tape):
        writes = [op for op in self.users(tape) if op.record in WRITES]
        return self.is_known((tape.handle.op,)) and writes == [tape.write]

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
        body = Loop(loop).body
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
        if made is not tape.flow.last or not self.same_trips(during, trips):
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
    for flow in Loop(loop).variables()[1:]:
        if flow.following is write.outputs[0]:
            plain = write.inputs[3] is flow.parameter
            return flow.place if plain and flow.first is create.outputs[1] else None
    return None


def _grows(create):
    """Whether an operation makes an array as loops make their tapes."""
    if constant_of(create.inputs[0]) != 0:
        return False
    return create.attrs["dynamic_size"] and not create.attrs["clear_after_read"]
