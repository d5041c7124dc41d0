"""Loops that run each trip back right behind the trip itself, so that nothing of it is kept.

A loop that adds up, such as a loss over data or an estimate over simulated paths, has a gradient
whose trips need nothing of one another: the trip of an item can go back as soon as it went forward,
in the same loop. No tape lies between the two then, and what a loop in that trip keeps is of one
trip, which stays in the cache. (Hascoet, Fidanova and Held, Adjoining independent computations, in
Automatic Differentiation of Algorithms, Springer 2002: the II-LOOP of Tapenade.)

The loop back may take its trips in the order of those forward where it only adds to what it
carries. Sums over trips are taken in that order then.
"""

from itertools import compress
from operator import not_

from nbta.compiler.induction import Linear, Trip
from nbta.compiler.passes import prune
from nbta.compiler.program import Program, changes
from nbta.compiler.sums import ADDING, summands
from nbta.compiler.tapes import Tapes
from nbta.compiler.touched import users_of
from nbta.graph.copying import Captured, Copy, copied
from nbta.graph.graph import lies_in, live, running, substitute
from nbta.graph.operation import DATA, Operation, Tensor
from nbta.graph.views import Branch, Loop, Variable, is_branch, is_loop
from nbta.ops.arrays import CREATE, READ, SIZE, WRITE
from nbta.ops.indexing import ADD_ITEM
from nbta.ops.products import MATMUL, OUTER
from nbta.ops.trip_counts import counts_trips, is_integer

#: What a trip back may do besides computing: read tapes, and keep some that are its own.
_KEEPING = {CREATE, READ, WRITE, SIZE}


@changes
def join_trips(program: Program) -> Program:
    """Let loops run each trip back right behind it, where that needs nothing of other trips."""
    operations = list(running(program))
    if not any(op.record is READ for op in operations):
        return program
    waited = {before for op in operations for before in op.control_inputs}
    while (pair := _found(program, waited)) is not None:
        pair.join()
        program = prune.in_place(program)
    return program


def _found(program, waited):
    """A loop, and one that runs its trips back, from the outside in."""
    tapes = Tapes(program)
    for op in tapes.uses.operations:
        if is_loop(op) and not op.control_inputs and op not in waited:
            pair = _pair(tapes, Loop(op), waited)
            if pair is not None:
                return pair
    return None


def _pair(tapes, back, waited):
    reads = [op for op in back.body.operations if op.record is READ]
    for loop in dict.fromkeys(tape.loop for op in reads if (tape := _tape(tapes, op)) is not None):
        if loop.graph is back.op.graph and not loop.control_inputs and loop not in waited:
            pair = _Pair(tapes, Loop(loop), back)
            if pair.is_sound():
                return pair
    return None


def _tape(tapes, read):
    return tapes.tapes.get(tapes.whereabouts(read.inputs[0]).tensor)


class _Pair:
    """A loop, and one that may run its trips back.

    Parameters
    ----------
    tapes : Tapes
    forward, back : Loop
    """

    def __init__(self, tapes, forward: Loop, back: Loop):
        self._tapes, self._forward, self._back = tapes, forward, back
        self._index = tapes.trips(forward.op) - Linear(1) - Linear(0, {Trip(back.body): 1})
        self._known = self._of_the_trip()
        kept = [_is(v.following, v.parameter) for v in back.variables()[1:]]
        self._kept = list(compress(back.variables()[1:], kept))
        self._sums = list(compress(back.variables()[1:], map(not_, kept)))

    def _of_the_trip(self) -> dict[Tensor, Tensor]:
        """What a trip back needs not compute, by what the trip forward has."""
        found = {}
        for op in live(self._back.body):
            if op.record is READ:
                place = self._tapes.tape_read(op)
                if place is not None and self._is_of_the_trip(op, place):
                    found[op.outputs[0]] = place.tensor
            elif self._is_number_of_the_trip(op.outputs):
                found[op.outputs[0]] = self._forward.counter
        return found

    def _is_number_of_the_trip(self, results):
        plain = len(results) == 1 and is_integer(results[0])
        return plain and self._tapes.number(results[0]) == self._index

    def _is_of_the_trip(self, read, place):
        of_the_loop = lies_in(self._forward.body, place.tensor.graph)
        is_one = len(place.trips) == 1 and self._tapes.number(place.trips[0]) == self._index
        return of_the_loop and is_one and _tape(self._tapes, read).loop is self._forward.op

    def is_sound(self) -> bool:
        """Whether trips back may go along with those forward, and whether that pays."""
        return (
            self._goes_through_all_trips()
            and self._only_adds()
            and self._needs_no_other_trip()
            and self._is_plain()
        )

    def _goes_through_all_trips(self):
        back, trips = self._back, self._tapes.trips
        plain = all(loop.checkpoint is loop.progress is None for loop in (back, self._forward))
        return plain and counts_trips(back) and trips(back.op) == trips(self._forward.op)

    def _only_adds(self):
        users = users_of(self._back.body, self._back.cond)
        return all(_adds(v.following, v.parameter, users) for v in self._sums)

    def _needs_no_other_trip(self):
        """Whether a trip back needs what is there before the loop, and what its own trip has."""
        needed, sources = self._needed(), self._back.body.sources
        if self._back.counter in needed:
            return False
        outside = [sources[tensor] for tensor in needed if tensor in sources]
        outside += [v.first for v in (*self._sums, *self._kept)]
        behind = _behind(self._forward.op)
        return not any(tensor.op in behind for tensor in outside)

    def _needed(self) -> set[Tensor]:
        """The parameters of the body back that its trips need besides what is known of the trip."""
        found, todo = set(), [v.following for v in self._sums]
        while todo:
            tensor = todo.pop()
            if tensor not in found and tensor not in self._known:
                found.add(tensor)
                todo += tensor.op.inputs
        return {tensor for tensor in found if not tensor.op.inputs}

    def _is_plain(self):
        """Whether trips back change nothing that others see, and make no product of many trips."""
        inner = list(running(self._back.body))
        pure = all(
            op.record.pure or op.record in _KEEPING or is_loop(op) or is_branch(op) for op in inner
        )
        pure = pure and not any(op.control_inputs for op in inner)
        both = (*inner, *running(self._forward.body))
        return pure and not any(map(_is_of_many_trips, both))

    def join(self) -> None:
        """Let the trips forward do what those back do, which are no more."""
        body, back = self._forward.body, self._back
        known = {tensor: body.resolve(value) for tensor, value in self._known.items()}
        for variable in self._kept:
            known[variable.parameter] = body.resolve(variable.first)
        places = [self._add(variable, known) for variable in self._sums]
        ends = [variable.following for variable in self._sums]
        with body.as_default(), body.control_dependencies(None):
            copy = Copy(body, back.body.scope, copied, Captured(back.body, body, known))
            made, _ = copy.fill([*back.body.inputs, *known], ends)
        for place, tensor in zip(places, made, strict=True):
            body.outputs[place] = tensor
        body.changed()
        new = {v.last: v.first for v in self._kept} | {back.trips: self._forward.trips}
        last = (self._forward.op.outputs[place] for place in places)
        new |= zip((v.last for v in self._sums), last, strict=True)
        substitute(back.op.graph, new)
        self._forward.op.attrs["joint"] = True

    def _add(self, variable, known):
        """A variable of the loop forward for one of the loop back; its place."""
        forward = self._forward

        def following(parameter):
            known[variable.parameter] = parameter
            return parameter

        return forward.add_variable(variable.first, following).index


def _is_of_many_trips(op) -> bool:
    """Whether it makes a product that BLAS may make as one of all trips.

    `product_passes` leaves those of stacks of matrices alone, which are one for each matrix.
    """
    ranks = [tensor.spec.rank for tensor in op.inputs]
    return op.record in (MATMUL, OUTER) and (None in ranks or max(ranks) <= 2)


def _behind(op) -> set[Operation]:
    """An operation, and those of its graph that need what it gives."""
    found = {op}
    for other in live(op.graph):
        before = {tensor.op for tensor in other.inputs}.union(other.control_inputs)
        if not found.isdisjoint(before):
            found.add(other)
    return found


def _is(tensor, start) -> bool:
    """Whether a tensor is another one of its body, which loops and branches in it may hand on."""
    op = tensor.op
    if is_loop(op):
        variable = Loop(op).variable(tensor.index)
        return _is(variable.following, variable.parameter) and _is(variable.first, start)
    if is_branch(op):
        return any(
            _is(outer, start)
            for place, outer in enumerate(Branch(op).captured)
            if all(_is(end, end.graph.inputs[place]) for end in Branch(op).ends(tensor.index))
        )
    return tensor is start


def _adds(tensor, start, users) -> bool:
    """Whether a tensor is another one with something added, which nothing else looks at.

    Parameters
    ----------
    tensor, start : Tensor
        Of one body.
    users : dict
        Those in that body, of `users_of`.
    """
    if len(users[tensor]) != 1:
        return False
    if tensor is start:
        return True
    op = tensor.op
    if tensor.kind != DATA:
        return False
    if is_loop(op):
        variable = Loop(op).variable(tensor.index)
        return _adds_in_loop(variable) and _adds(variable.first, start, users)
    if is_branch(op):
        return _adds_in_branches(op, tensor, start, users)
    if op.record is ADD_ITEM:
        return _adds(op.inputs[0], start, users)
    return op.record in ADDING and any(_adds(each, start, users) for each in summands(op))


def _adds_in_loop(variable: Variable):
    users = users_of(variable.loop.body, variable.loop.cond)
    tested = users[variable.tested]
    return not tested and _adds(variable.following, variable.parameter, users)


def _adds_in_branches(op, tensor, start, users):
    """Whether one captured tensor is what each branch adds to."""
    branches = Branch(op).branches
    ends = list(zip(branches, Branch(op).ends(tensor.index), strict=True))
    found = [users_of(branch) for branch in branches]
    for place, outer in enumerate(Branch(op).captured):
        pairs = zip(ends, found, strict=True)
        if all(_adds(end, branch.inputs[place], inner) for (branch, end), inner in pairs):
            return _adds(outer, start, users)
    return False
