"""Tapes of nested loops: one for a whole nest, in place of one for each trip of the outer loop.

A loop in the body of another one makes its tapes anew in each outer trip, and a tape of the outer
loop keeps their handles. `join_tapes` makes one array in front of the nest that all trips fill one
behind the other, as a list of lists lies in memory in Apache Arrow's columnar format. Where the
values of an outer trip begin is a sum of trip counts, which the loops around carry; those that
come after read it from a tape of its own.
"""

import math
from collections import defaultdict
from functools import partial
from itertools import chain
from typing import NamedTuple

import numpy as np

from nbta import shapes
from nbta.codegen.values import NUMBERS
from nbta.compiler.induction import depth
from nbta.compiler.kept_once import kept_once
from nbta.compiler.manager import Fact, analysis, contract
from nbta.compiler.passes import prune
from nbta.compiler.program import Program, changes
from nbta.compiler.tapes import Tape, Tapes
from nbta.graph.graph import lies_in, running, subgraphs, substitute
from nbta.graph.operation import DATA, Operation, Tensor
from nbta.graph.views import Branch, Loop, holder_in, is_body_of_branch, is_branch, is_loop, origin
from nbta.ops.arithmetic import add
from nbta.ops.arrays import (
    CREATE,
    GATHER,
    LOOKUP,
    READ,
    SIZE,
    TRIP,
    WRITE,
    Access,
    build,
    tape,
)
from nbta.ops.dispatch import CONSTANT, PARAMETER, as_tensor
from nbta.ops.filling import zeros
from nbta.ops.indexing import add_item, getitem
from nbta.ops.loop import COUNTER
from nbta.ops.shaping import INT64, cast


@contract(
    requires=[Fact.RANKS, Fact.TAPES_OF_LOOPS], breaks=[Fact.TAPES_OF_LOOPS, Fact.SLOT_STATES]
)
@changes
def join_tapes(program: Program) -> Program:
    """Let loops in loops fill one tape for all trips of the outer loops."""
    tapes = analysis(Tapes, program)
    found = _found(tapes)
    if not found:
        return program
    nests = {}
    for nested in found:
        if _is_saved_around(nested):
            _save_around(nested, nests)
            continue
        nested = kept_once(nested, tapes)
        key = tuple(nested.owners)
        nests.setdefault(key, Nest(key, nests)).join(nested)
    return prune.in_place(program)


class _Gradient(NamedTuple):
    """Gradient arrays of a tape, one for each trip: lookups, and the trips of those that use them.

    ``array`` is how they are known (`nbta.ops.aliases`). Writes are listed by the operation behind
    the nest that they are in, one behind the other.
    """

    array: tuple
    lookups: list[Operation]
    trips: dict[Operation, tuple]
    writes: list[list[Operation]]
    reads: list[Operation]


class Nested(NamedTuple):
    """A tape that loops around it make, and each read of it with the trips.

    ``owners`` are the loop that fills it, those around, and branches in between, from the inside.
    """

    tape: Tape
    owners: list[Operation]
    reads: list[tuple[Operation, tuple]]
    gradients: list[_Gradient]


def _found(tapes):
    """Tapes whose handles are kept for what comes after, where all that touches them is known."""
    found = []
    for each in tapes.tapes.values():
        others = [op for op in tapes.users(each) if op is not each.write]
        if each.value.kind != DATA and not any(op.record is LOOKUP for op in others):
            continue  # nobody needs handles and flows of tapes that are joined
        if any(tapes.whereabouts(op.inputs[0]).tensor is not each.handle for op in others):
            continue  # tapes of tapes have its handle, and who reads those does not tell the trip
        placed = {op: tapes.whereabouts(op.inputs[0]).trips for op in others}
        depth = max(map(len, placed.values()), default=0)
        around = owners_around(each.handle.graph, depth)
        if around is None or not (
            depth or not all(lies_in(op.graph, each.handle.graph) for op in others)
        ):
            continue
        owners = [each.loop, *around]
        gradients = _gradients(tapes, each, placed, owners[-1])
        reads = [(op, trips) for op, trips in placed.items() if op.record is not LOOKUP]
        levels = [_level(owners, *use) for use in placed.items()]
        here = any(len(trips) < depth for op, trips in placed.items() if op.record is LOOKUP)
        if gradients is None or here or None in levels:
            continue
        if all(_may_move(*read) for read in reads):
            found.append(Nested(each, owners, reads, gradients))
            _note_sure_reads(tapes, [op for op, _ in reads])
    return found


def _gradients(tapes, tape, placed, nest):
    """The gradient arrays that come behind a nest, and theirs behind them, or None.

    Of these all that touches them is known: writes, in one body for each operation behind the nest,
    and behind all of them reads.
    """
    found, todo = [], [((tape.handle.op,), placed)]
    for array, users in todo:
        for source, lookups in _by_source(users).items():
            gradient = _gradient(tapes, (*array, source), lookups, nest)
            if gradient is None:
                return None
            found.append(gradient)
            todo.append((gradient.array, gradient.trips))
    return found


def _by_source(placed):
    """The lookups among the users of an array, with their trips."""
    sources = defaultdict(dict)
    for op, trips in placed.items():
        if op.record is LOOKUP:
            sources[op.attrs["source"]][op] = trips
    return sources


def _gradient(tapes, array, lookups, nest):
    users = tapes.uses.users[array]
    hidden = array in tapes.uses.passed or tapes.uses.holders[array]
    plain = all(
        len(op.inputs) == 2 and not op.control_inputs and op not in tapes.uses.waited
        for op in lookups
    )
    if hidden or not plain or not all(_may_shift(tapes, op, lookups) for op in users):
        return None
    number = tapes.order(nest.graph)
    writes, reads = defaultdict(list), []
    for op in users:
        if not lies_in(op.graph, nest.graph):
            return None
        if op.record is not LOOKUP:
            (reads if op.record is READ else writes[holder_in(nest.graph, op)]).append(op)
    last = max((number[op] for op in writes), default=-1)
    in_order = all(number[nest] < number[op] for op in writes)
    in_order &= all(number[holder_in(nest.graph, op)] > max(last, number[nest]) for op in reads)
    if not in_order or any(len({op.graph for op in ops}) > 1 for ops in writes.values()):
        return None
    trips = {op: lookups[tapes.whereabouts(op.inputs[0]).tensor.op] for op in users}
    in_turn = [writes[op] for op in sorted(writes, key=number.get)]
    return _Gradient(array, list(lookups), trips, in_turn, reads)


def _may_shift(tapes, op, lookups):
    """Whether an operation touches a slot that it names, in what one of some lookups gives.

    Or looks its gradient array up.
    """
    if op.record not in (READ, WRITE, LOOKUP) or op.control_inputs or op in tapes.uses.waited:
        return False
    return tapes.whereabouts(op.inputs[0]).tensor.op in lookups


def _may_move(op, trips):
    """Whether an operation may find its slots in an array that has others in front of them."""
    return not op.control_inputs and (op.record is READ or (op.record is GATHER and not trips))


def owners_around(graph, depth) -> list | None:
    """So many loops around a graph, with branches in between, from the inside out; or None."""
    found = []
    while depth:
        owner = getattr(graph, "owner", None)
        if owner is None or not (is_branch(owner) or graph is Loop(owner).body):
            return None
        found.append(owner)
        graph = owner.graph
        depth -= is_loop(owner)
    while is_body_of_branch(graph):  # what reads the tapes may be in a branch of its own
        found.append(graph.owner)
        graph = graph.owner.graph
    return found


def _level(owners, op, trips):
    """The place of the innermost of some owners behind which an operation uses what trips made.

    None where it does not lie in the loop around those.
    """
    passed = 0
    for place, owner in enumerate(owners):
        passed += place > 0 and is_loop(owner)
        if passed == len(trips) and lies_in(op.graph, owner.graph):
            return place
    return None


def _is_saved_around(nested):
    """Whether a loop in the body of another fills a tape with one number, always the same."""
    value, plain = nested.tape.value, not nested.gradients and bool(nested.reads)
    if not plain or not _is_number(value) or not is_loop(nested.owners[1]):
        return False
    known = all(op.attrs.get("sure") and trips for op, trips in nested.reads)
    return known and _is_invariant(value, nested.tape.body)


def _is_invariant(value, body):
    """Whether a value is loop invariant: computed without effects from values around a body."""
    seen, todo = set(), [origin(value)]
    while todo:
        source = todo.pop()
        op = source.op
        if source in seen or op.record is CONSTANT or not lies_in(source.graph, body):
            continue
        plain = op.record.pure and not subgraphs(op) and not op.control_inputs
        if op.record is PARAMETER or source.graph is not body or not plain:
            return False
        seen.add(source)
        todo += map(origin, op.inputs)
    return True


def _save_around(nested, nests):
    """Let the loop around one that fills a tape save the number, once for all its iterations.

    A loop without iterations has no number: zero is saved then, and nobody reads it.
    """
    around, value = nested.tape.loop.graph, nested.tape.value
    if lies_in(origin(value).graph, nested.tape.body):
        with around.as_default(), around.control_dependencies(None):
            none = as_tensor(np.zeros((), value.dtype), around)
        value = Loop(nested.tape.loop).add_variable(none, lambda _: value)
    owners = tuple(nested.owners[1:])
    outside = nests.setdefault(owners, Nest(owners, nests))
    saved = outside.keep(around.resolve(origin(value)))
    for read, trips in nested.reads:
        level = _level(nested.owners, read, trips)
        found = outside.kept(saved, trips, level - 1, nested.tape.value.spec)
        substitute(read.graph, {read.outputs[0]: read.graph.resolve(found)})


class Nest:
    """A loop with the loops and branches around it.

    Parameters
    ----------
    owners : tuple of Operation
        From the inside out; the first fills tapes.
    others : dict of _Nest
        All, by these.
    """

    def __init__(self, owners, others):
        self._owners, self._filling, self._others = owners, owners[0], others
        self._home = owners[-1].graph
        self._is_repeated = any(map(is_loop, owners[1:]))
        self._begin = self._total = self._kept = None
        self._starts: dict[tuple, Tensor] = {}

    def _bodies(self):
        """The bodies that the loop lies in, from the inside out."""
        return [op.graph for op in self._owners[:-1]]

    @property
    def begin(self) -> Tensor:
        """How many trips earlier runs of the loop have made, in the body around it."""
        if self._begin is None:
            with self._home.as_default():
                zero = as_tensor(np.int64(0), self._home)
            *_, self._total = threaded(self._bodies(), zero, self._counted)
        return self._begin

    def _counted(self, begin):
        self._begin = begin
        return add(begin, Loop(self._filling).trips)

    def join(self, nested: Nested) -> None:
        """Put one array in place of a tape of each trip of the loops around."""
        old, body = nested.tape, Loop(self._filling).body
        with self._home.as_default(), self._home.control_dependencies(None):
            attrs = dict(old.handle.op.attrs)
            if not nested.gradients:
                attrs |= packing(old.value.spec, {op.record for op, _ in nested.reads})
            made = Access(*build(CREATE, [np.int32(0)], attrs, "tape"))
        around = self._filling.graph
        begin = self.begin

        def filled(flow):
            substitute(around, {old.handle: around.resolve(made.handle),
                                old.handle.op.outputs[1]: flow})  # fmt: skip
            return old.flow.last

        flows = threaded(self._bodies(), made.flow, filled)
        with body.as_default(), body.control_dependencies(None):
            old.write.inputs[1] = add(body.resolve(begin), old.write.inputs[1])
        body.changed()
        for read, trips in nested.reads:
            self._move(read, trips, made.handle, flows)
        whole = {(old.handle.op,): Access(made.handle, flows[-1])}
        for gradient in nested.gradients:
            for op, trips in gradient.trips.items():
                if op.record is not LOOKUP and trips:
                    self._shift(op, trips)
            if _is_number(old.value):
                _as_tensor(self._home, gradient, old.value.dtype, self._total)
            else:
                whole[gradient.array] = self._as_one_array(gradient, whole[gradient.array[:-1]])

    def _as_one_array(self, found, joined):
        """Put a gradient array of the joined array in place of those of trips; it, behind all.

        New flows go through the writes, one behind the other, and then to the reads.
        """
        attrs = found.lookups[0].attrs
        with self._home.as_default(), self._home.control_dependencies(None):
            whole = joined.gradient(attrs["source"], attrs["clear_after_read"])
        for op in found.trips:
            op.inputs[0] = op.graph.resolve(whole.handle)
        flow = whole.flow
        for writes in found.writes:
            *_, flow = threaded(bodies_of(self._home, writes[0]), flow, partial(_chained, writes))
        for read in found.reads:
            read.inputs[2] = read.graph.resolve(flow)
        return Access(whole.handle, flow)

    def _shift(self, op, trips):
        """Let an operation find the slot of some trips in an array for all."""
        graph = op.graph
        with graph.as_default(), graph.control_dependencies(None):
            op.inputs[1] = add(graph.resolve(self.start(trips, -1)), as_long(op.inputs[1]))
        graph.changed()

    def _move(self, read, trips, joined, flows):
        """Let a read find its slot in the joined array, whose flows are behind each owner."""
        graph, level = read.graph, _level(self._owners, read, trips)
        with graph.as_default(), graph.control_dependencies(None):
            index, (handle, flow) = as_long(read.inputs[1]), read.inputs[::2]
            if level:
                handle, flow = map(graph.resolve, (joined, flows[level]))
            if self._is_repeated:
                index = add(graph.resolve(self.start(trips, level)), index)
        read.inputs = [handle, index, flow]
        graph.changed()

    def start(self, trips, level) -> Tensor:
        """Where the values begin that the loop gave in some trips of those around it.

        Behind the owner at a place; of the loops around that it is the trip that runs.
        """
        if not trips:
            return origin(self.begin)
        outer = next(k for k, owner in enumerate(self._owners) if k and is_loop(owner))
        owners, level = self._owners[outer:], level % len(self._owners)
        outside = self._others.setdefault(owners, Nest(owners, self._others))
        if self._kept is None:
            self._kept = outside.keep(origin(self.begin))
        if (trips, level) not in self._starts:
            found = outside.kept(self._kept, trips, level - outer, COUNTER)
            self._starts[trips, level] = found
        return self._starts[trips, level]

    def keep(self, value) -> tuple:
        """A new tape of a value in the body: its handle, and its flow behind each owner."""
        body, loop = Loop(self._filling).body, Loop(self._filling)
        with self._home.as_default(), self._home.control_dependencies(None):
            made = tape(value.spec, "starts")
            made.handle.op.attrs["packed"] = True

        def written(flow):
            index = loop.counter
            if self._is_repeated:
                index = add(body.resolve(self.begin), index)
            return Access(body.resolve(made.handle), flow).write(index, value)

        return made.handle, threaded([body, *self._bodies()], made.flow, written)[1:]

    def value_in(self, value, trips) -> Tensor:
        """What the body of the loop had in some trips, those of the loop itself the last."""
        return self.kept(self.keep(value), trips, len(self._owners) - 1, value.spec)

    def kept(self, joined, trips, level, spec) -> Tensor:
        """What a tape made by `keep` has of some trips, read behind the owner at a place."""
        handle, flows = joined
        graph = max(self._owners[level].graph, *(trip.graph for trip in trips), key=depth)
        with graph.as_default(), graph.control_dependencies(None):
            index = as_long(graph.resolve(trips[-1]))
            if self._is_repeated:
                index = add(graph.resolve(self.start(trips[:-1], level)), index)
            return Access(*map(graph.resolve, (handle, flows[level]))).read(index, spec)


def bodies_of(home, op):
    """The bodies in a graph that an operation lies in, from the inside out."""
    found, graph = [], op.graph
    while graph is not home:
        found.append(graph)
        graph = graph.outer
    return found


def _is_number(value):
    return value.kind == DATA and value.spec.rank == 0


def _as_tensor(home, found, dtype, count):
    """Put a tensor of so many numbers, that goes through loops, in place of gradient arrays."""
    with home.as_default(), home.control_dependencies(None):
        sums = zeros((count,), dtype)
        for writes in found.writes:
            *_, sums = threaded(bodies_of(home, writes[0]), sums, partial(added_in_place, writes))
    for read in found.reads:
        with read.graph.as_default(), read.graph.control_dependencies(None):
            value = getitem(read.graph.resolve(sums), read.inputs[1])
        substitute(read.graph, {read.outputs[0]: value})
    for lookup in found.lookups:
        substitute(lookup.graph, {lookup.outputs[1]: lookup.inputs[1]})


def added_in_place(writes, sums):
    """Add what writes of one body write, and take them out of the flow."""
    for write in writes:
        sums = add_item(sums, write.inputs[1], write.inputs[2])
        substitute(write.graph, {write.outputs[0]: write.inputs[3]})
    return sums


def _chained(writes, flow):
    """Let writes of one body come one behind the other; the flow behind the last."""
    for write in writes:
        write.inputs[3] = flow
        flow = write.outputs[0]
    return flow


def threaded(bodies, first, inner) -> list[Tensor]:
    """A new variable of bodies in one another, given from the inside out; its last values.

    ``inner(parameter)`` gives its next value in the innermost one, which is the first of the
    result; each other one is what the loop or branch of a body gives. Other branches pass it on.
    """
    if not bodies:
        return [inner(first)]
    *deeper, body = bodies
    op = body.owner
    if is_branch(op):
        with body.as_default(), body.control_dependencies(None):
            following = threaded(deeper, body.resolve(first), inner)
        branches = Branch(op).branches
        ends = [following[-1] if branch is body else branch.resolve(first) for branch in branches]
        return [*following, Branch(op).add_result(ends)]
    loop, place = Loop(op), Loop(op).count
    loop.add_variable(first, lambda parameter: parameter)
    with body.as_default(), body.control_dependencies(None):
        following = threaded(deeper, loop.variable(place).parameter, inner)
    body.outputs[place] = following[-1]
    body.changed()
    return [*following, loop.variable(place).last]


@contract(requires=[Fact.RANKS, Fact.TAPES_OF_LOOPS, Fact.SLOT_STATES])
@changes
def gradients_to_tensors(program: Program) -> Program:
    """Let gradient arrays of tapes of numbers be tensors, to which code adds in place.

    Gradients of gradients of a loop write to them in one loop, and read them in a later one.
    """
    tapes, found = analysis(Tapes, program), []
    for each in tapes.tapes.values():
        lookups = {op: () for op in tapes.users(each) if op.record is LOOKUP}
        places = [tapes.whereabouts(op.inputs[0]) for op in lookups]
        here = all(place.tensor is each.handle and not place.trips for place in places)
        if lookups and here and _is_number(each.value):
            gradients = _gradients(tapes, each, lookups, each.loop) or []
            found += [(each, gradient) for gradient in gradients]
    for each, gradient in found:
        _as_tensor(each.loop.graph, gradient, each.value.dtype, Loop(each.loop).trips)
    return prune.in_place(program) if found else program


@contract(requires=[Fact.RANKS])
@changes
def forget_trips(program: Program) -> Program:
    """Find gradient arrays without the trip's number where the trip makes the forward array itself.

    A body that calls `gradients` numbers its trips, for arrays that all of them see. What a trip
    makes is seen by no other trip, and has gradient arrays of its own as it is.
    """
    lookups = defaultdict(list)
    for op in running(program):
        if op.record is LOOKUP and len(op.inputs) > 2:
            lookups[op.attrs["source"]].append(op)
    if not lookups:
        return program
    tapes = analysis(Tapes, program)
    found = [ops for ops in lookups.values() if all(_is_of_trip(tapes, op) for op in ops)]
    for op in chain.from_iterable(found):
        del op.inputs[2:]
        op.graph.changed()
    return prune.in_place(program) if found else program


def _is_of_trip(tapes, lookup):
    """Whether the array was made in the trip whose number the lookup has."""
    array, trip = tapes.uses.array(lookup.inputs[0]), tapes.whereabouts(lookup.inputs[2]).tensor.op
    return array is not None and trip.record is TRIP and lies_in(array[0].graph, trip.graph)


#: Of so many numbers are the largest rows of packed tapes.
LARGEST_ROW = 16


def packing(spec, users) -> dict:
    """Attributes of a tape whose elements lie one behind the other; none where they may not.

    Those are numbers, and short rows whose shape is known and that are read one by one.
    """
    if spec.kind != DATA or not shapes.is_known(spec.shape):
        return {}
    if spec.rank == 0:
        return {"packed": True}
    short = 0 < math.prod(spec.shape) <= LARGEST_ROW and spec.dtype.char in NUMBERS
    return {"packed": True, "packed_row": spec.shape} if short and users <= {READ, WRITE} else {}


@contract(requires=[Fact.RANKS], breaks=[Fact.SLOT_STATES])
@changes
def pack_tapes(program: Program) -> Program:
    """Let tapes of numbers that are only read be numbers one behind the other, without states.

    So are tapes of short rows.
    """
    tapes = analysis(Tapes, program)
    for each in tapes.tapes.values():
        users = {op.record for op in tapes.users(each)}
        found = packing(each.value.spec, users) if users <= {READ, GATHER, WRITE, SIZE} else {}
        if found:
            each.handle.op.attrs.update(found)
            _note_sure_reads(tapes, [op for op in tapes.users(each) if op.record is READ])
    return program


def _note_sure_reads(tapes, reads):
    """Say of reads that their slots are sure to be there."""
    for read in reads:
        if tapes.tape_read(read) is not None:
            read.attrs["sure"] = True


def as_long(index) -> Tensor:
    """An index as int64."""
    return index if index.dtype == INT64 else cast(index, INT64)
