"""Tapes of nested loops: one for a whole nest, in place of one for each trip of the outer loop.

A loop in the body of another one makes its tapes anew in each outer trip, and a tape of the outer
loop keeps their handles. `join_tapes` makes one array in front of the nest that all trips fill one
behind the other, as a list of lists lies in memory in Apache Arrow's columnar format. Where the
values of an outer trip begin is a sum of trip counts, which the loops around carry; those that
come after read it from a tape of its own.
"""

from collections import defaultdict
from functools import partial
from itertools import chain
from typing import NamedTuple

import numpy as np

from nbta import shapes
from nbta.compiler.induction import around, depth
from nbta.compiler.passes import prune
from nbta.compiler.program import Program, changes
from nbta.compiler.shape_passes import shape_in
from nbta.compiler.tapes import Again, Tape, Tapes
from nbta.graph.graph import lies_in, running, substitute
from nbta.graph.operation import DATA, Operation, Tensor
from nbta.graph.views import Branch, Loop, is_body_of_branch, is_branch, is_loop, origin
from nbta.ops.aliases import array_of
from nbta.ops.arithmetic import add, minimum
from nbta.ops.arrays import (
    CREATE,
    GATHER,
    LOOKUP,
    LOOKUPS,
    READ,
    SCATTER,
    SIZE,
    TRIP,
    WRITE,
    WRITES,
    Access,
    build,
    tape,
)
from nbta.ops.dispatch import as_tensor
from nbta.ops.filling import zeros
from nbta.ops.indexing import add_item, getitem
from nbta.ops.joining import arange, concatenate, stack
from nbta.ops.loop import COUNTER
from nbta.ops.shaping import INT64, cast


@changes
def join_tapes(program: Program) -> Program:
    """Let loops in loops fill one tape for all trips of the outer loops."""
    found = _found(Tapes(program))
    if not found:
        return program
    nests = {}
    for nested in found:
        key = tuple(nested.owners)
        nests.setdefault(key, _Nest(key, nests)).join(nested)
    return prune(program)


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


class _Nested(NamedTuple):
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
        around = _owners(each.handle.graph, depth)
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
            found.append(_Nested(each, owners, reads, gradients))
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


def holder_in(graph, op):
    """The operation of a graph that an operation is, or runs in."""
    while op.graph is not graph:
        op = op.graph.owner
    return op


def _may_move(op, trips):
    """Whether an operation may find its slots in an array that has others in front of them."""
    return not op.control_inputs and (op.record is READ or (op.record is GATHER and not trips))


def _owners(graph, depth):
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


class _Nest:
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

    def join(self, nested: _Nested) -> None:
        """Put one array in place of a tape of each trip of the loops around."""
        old, body = nested.tape, Loop(self._filling).body
        with self._home.as_default(), self._home.control_dependencies(None):
            packed = old.value.spec.rank == 0 and not nested.gradients
            attrs = old.handle.op.attrs | {"packed": packed}
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
            op.inputs[1] = add(graph.resolve(self.start(trips, -1)), _long(op.inputs[1]))
        graph.changed()

    def _move(self, read, trips, joined, flows):
        """Let a read find its slot in the joined array, whose flows are behind each owner."""
        graph, level = read.graph, _level(self._owners, read, trips)
        with graph.as_default(), graph.control_dependencies(None):
            index, (handle, flow) = _long(read.inputs[1]), read.inputs[::2]
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
        outside = self._others.setdefault(owners, _Nest(owners, self._others))
        if self._kept is None:
            self._kept = outside.keep(origin(self.begin))
        if (trips, level) not in self._starts:
            found = outside.kept(self._kept, trips, level - outer, COUNTER)
            self._starts[trips, level] = found
        return self._starts[trips, level]

    def keep(self, value) -> tuple:
        """A new tape of a value in the body of the loop: its handle, and the flows of `threaded`."""
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
            index = _long(graph.resolve(trips[-1]))
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


@changes
def gradients_to_tensors(program: Program) -> Program:
    """Let gradient arrays of tapes of numbers be tensors, to which code adds in place.

    Gradients of gradients of a loop write to them in one loop, and read them in a later one.
    """
    tapes, found = Tapes(program), []
    for each in tapes.tapes.values():
        lookups = {op: () for op in tapes.users(each) if op.record is LOOKUP}
        places = [tapes.whereabouts(op.inputs[0]) for op in lookups]
        here = all(place.tensor is each.handle and not place.trips for place in places)
        if lookups and here and _is_number(each.value):
            gradients = _gradients(tapes, each, lookups, each.loop) or []
            found += [(each, gradient) for gradient in gradients]
    for each, gradient in found:
        _as_tensor(each.loop.graph, gradient, each.value.dtype, Loop(each.loop).trips)
    return prune(program) if found else program


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
    tapes = Tapes(program)
    found = [ops for ops in lookups.values() if all(_is_of_trip(tapes, op) for op in ops)]
    for op in chain.from_iterable(found):
        del op.inputs[2:]
        op.graph.changed()
    return prune(program) if found else program


def _is_of_trip(tapes, lookup):
    """Whether the array was made in the trip whose number the lookup has."""
    array, trip = tapes.uses.array(lookup.inputs[0]), tapes.whereabouts(lookup.inputs[2]).tensor.op
    return array is not None and trip.record is TRIP and lies_in(array[0].graph, trip.graph)


@changes
def detach_gradients(program: Program) -> Program:
    """Make gradient arrays of arrays that a trip of a loop made in the trip back, anew.

    They need no more of the forward array than its size and the shape of its elements; so its
    handle need not be kept for them.
    """
    tapes, lookups = Tapes(program), defaultdict(list)
    for op in tapes.uses.operations:
        if op.record in LOOKUPS:
            lookups[tapes.uses.array(op.inputs[0]), op.attrs["source"]].append(op)
    unknown = any(array is None for array, _ in lookups)
    known = [
        ((*array, source), ops)
        for (array, source), ops in lookups.items()
        if array is not None and not (unknown and tapes.uses.is_value(array[:1]))
    ]
    moved, left = False, set()
    for array, ops in sorted(known, key=lambda one: -len(one[0])):
        used = {origin(op.inputs[0]).op for op in tapes.uses.users[array] if op not in left}
        if used <= set(ops):  # else others have the handle than those that look it up
            detached = _detach(tapes, array, [op for op in ops if op in used])
            moved |= detached
            left.update(ops if detached else (op for op in ops if op not in used))
    return prune(program) if moved else program


def _detach(tapes, array, lookups):
    """Let all lookups of a gradient array find that of a stand-in; whether they can."""
    if not lookups or not tapes.is_known(array):
        return False
    handles = [_root(op.inputs[0]) for op in lookups]
    places = [tapes.whereabouts(handle).trips for handle in handles]
    homes = [_home(*each) for each in zip(lookups, handles, places, strict=True)]
    home = None if None in homes else _around_all(homes)
    together = home is not None and all(
        op.record is LOOKUP and len(op.inputs) == 2 and tapes.same_trips(places[0], during)
        for op, during in zip(lookups, places, strict=True)
    )
    trips = _first_seen(home, places) if together else None
    made = None if trips is None else _stand_in(tapes, home, array[0], trips)
    for op in lookups if made is not None else ():
        op.inputs[0] = op.graph.resolve(made.handle)
        if len(array) > 2 and op.attrs["clear_after_read"] is None:
            op.attrs["clear_after_read"] = False  # as for gradient arrays of gradient arrays
        if origin(op.inputs[1]).op.record is READ:  # of the trip forward, which is long over
            op.inputs[1] = op.graph.resolve(made.flow)
        _run_behind(made.flow.op, holder_in(home, op))
        op.graph.changed()
    return made is not None


def _around_all(graphs):
    """The innermost graph that some graphs are, or lie in."""
    found = min(graphs, key=depth)
    while not all(lies_in(graph, found) for graph in graphs):
        found = found.outer
    return found


def _first_seen(graph, places):
    """Of indices that are the same the first that a graph sees, or computes as a branch in it."""
    again = Again(graph, graph, (), {})
    for trips in places:
        seen = [t if lies_in(graph, t.graph) else again.make(t) for t in trips]
        if all(trip is not None for trip in seen):
            return tuple(seen)
    return None


def _run_behind(written, op):
    """Let an operation come after a write of which its own flow does not know."""
    if written.record is not CREATE and written not in op.control_inputs:
        op.add_control_input(written)


def _root(handle):
    """The handle of an array that is no gradient array, by which one has been looked up."""
    while origin(handle).op.record is LOOKUP:
        handle = origin(handle).op.inputs[0]
    return handle


def _home(op, handle, trips):
    """Where a stand-in of an array can be, once for each: where a trip reads its handle.

    Or, where a branch has made the array, in the only branch that uses it.
    """
    made, graph = origin(handle).op, op.graph
    if trips:
        seen = made.record is READ and all(lies_in(made.graph, trip.graph) for trip in trips)
        return made.graph if seen else None
    if not is_branch(made) or graph is made.graph:
        return None
    while graph.outer is not made.graph:
        graph = graph.outer
    return graph if is_body_of_branch(graph) else None


def _stand_in(tapes, home, create, trips):
    """An empty array like one that a trip, or a branch, has made; None if that is unknown."""
    shape = _element_shape(tapes, create) if create.record is CREATE else None
    if shape is None or not _is_visited_once(tapes, home, create.graph, trips):
        return None
    known = shapes.is_known(shape)
    extents = None if known else shape_in(home, shape)
    size = _size_again(tapes, home, create, trips) if known or extents is not None else None
    if size is None:
        return None
    attrs = dict(create.attrs) | {"dynamic_size": False, "infer_shape": True}
    attrs |= {"element_shape": shape} if shape and known else {}
    made = Access(*home.create(CREATE, [size], attrs).outputs)
    return made if known else _told(made, size, extents, create.attrs["dtype"])


def _size_again(tapes, home, create, trips):
    """The size of an array that some trips have made: computed again, or kept; None if neither."""
    made = _size(tapes, create)
    size = None if made is None else Again(home, create.graph, trips, {}).make(made)
    owners = _owners(create.graph, len(trips)) if size is None and trips else None
    if made is None or not owners:
        return size
    while is_branch(owners[0]):
        made = _out_of_branch(made)
        del owners[0]
    return home.resolve(_Nest(tuple(owners), {}).value_in(made, trips))


def _out_of_branch(number):
    """A number of a branch behind it; 0 where another branch runs."""
    case, ends = Branch(number.graph.owner), []
    for branch in case.branches:
        with branch.as_default(), branch.control_dependencies(None):
            other = as_tensor(np.zeros((), number.dtype), branch)
        ends.append(number if branch is number.graph else other)
    return case.add_result(ends)


def _size(tapes, create):
    """How many slots an array has in the end, in the graph that makes it; None if unknown."""
    if not create.attrs.get("dynamic_size"):
        return create.inputs[0]
    if create.outputs[0] in tapes.tapes:
        return Loop(tapes.tapes[create.outputs[0]].loop).trips
    flow = _last_flow(tapes, create)
    if flow is None:
        return None
    return create.graph.create(SIZE, [create.outputs[0], flow], {}).outputs[0]


def _last_flow(tapes, create):
    """The flow of an array behind all writes, where it makes one way through its graph."""
    graph, flow, passed = create.graph, create.outputs[1], set()
    while flow is not None:
        last, users = flow, [op for op in graph.operations if any(t is flow for t in op.inputs)]
        ways = [end for op in users for end in op.outputs if _goes_on(create, flow, end)]
        flow = ways[0] if len(ways) == 1 else None
        passed.update(end.op for end in ways)
    writes = [op for op in tapes.uses.users[(create,)] if op.record in WRITES]
    return last if not ways and {holder_in(graph, op) for op in writes} <= passed else None


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


def _told(array, size, extents, dtype):
    """An empty array that knows by a first row of zeros which shape its elements have."""
    graph = array.flow.graph
    with graph.as_default(), graph.control_dependencies(None):
        count = minimum(_long(size), np.int64(1))
        rows = zeros(concatenate([stack([count]), graph.resolve(extents)]), dtype)
        return Access(array.handle, array.scatter(arange(count), rows))


def _is_visited_once(tapes, home, body, trips):
    """Whether trips of the loops around a graph name as many trips around a body, each once."""
    bodies = list(around(home))
    found = [tapes.affine(*pair) for pair in zip(reversed(trips), bodies, strict=False)]
    each = len(found) == len(trips) and all(f is not None and f[1] in (1, -1) for f in found)
    return each and all(lies_in(body, other) for other in bodies[len(trips) :])


def _element_shape(tapes, create):
    """The shape of an array's elements as the graph knows it before anything is written; or None.

    Its lengths may be those that only the run tells.
    """
    told = create.attrs.get("element_shape")
    if shapes.is_known(told):
        return told
    writes = [op for op in tapes.uses.users[(create,)] if op.record in WRITES]
    found = {_written(op) for op in writes} or {()}
    shape = found.pop()
    return shape if not found and shape is not None and None not in shape else None


def _written(op):
    """The shape of what an operation writes to a slot; None where that is not known."""
    shape = op.inputs[op.record.value_input].spec.shape
    if op.record is WRITE or shape is None:
        return shape
    return shape[1:] if op.record is SCATTER else None


@changes
def pack_tapes(program: Program) -> Program:
    """Let tapes of numbers that are only read be numbers one behind the other, without states."""
    tapes = Tapes(program)
    for each in tapes.tapes.values():
        only_read = {op.record for op in tapes.users(each)} <= {READ, GATHER, WRITE, SIZE}
        if only_read and each.value.kind == DATA and each.value.spec.rank == 0:
            each.handle.op.attrs["packed"] = True
            _note_sure_reads(tapes, [op for op in tapes.users(each) if op.record is READ])
    return program


def _note_sure_reads(tapes, reads):
    """Say of reads that their slots are sure to be there."""
    for read in reads:
        if tapes.tape_read(read) is not None:
            read.attrs["sure"] = True


def _long(index):
    return index if index.dtype == INT64 else cast(index, INT64)
