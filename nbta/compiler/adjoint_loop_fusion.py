"""Loops that run each adjoint iteration right after the iteration itself, to keep nothing of it.

A loop that adds up, such as a loss over data or an estimate over simulated paths, has a gradient
whose iterations need nothing of one another: the iteration of an item can go back as soon as it
went forward, in the same loop. No tape lies between the two then, and what a loop in that iteration
keeps is of one iteration, which stays in the cache. (Hascoet, Fidanova and Held, Adjoining
independent computations, in Automatic Differentiation of Algorithms, Springer 2002: the II-LOOP of
Tapenade.)

The loop back may take its iterations in the order of those forward where it only adds to what it
carries. Sums over iterations are taken in that order then.
"""

from itertools import compress, islice
from operator import not_

from nbta.compiler.access_sets import users_in, users_of
from nbta.compiler.induction import Iteration, Linear
from nbta.compiler.manager import Fact, analysis, contract
from nbta.compiler.passes import prune
from nbta.compiler.products import is_of_iterations
from nbta.compiler.program import Program, changes
from nbta.compiler.sums import sum_from, sum_of_summand
from nbta.compiler.tapes import Tapes
from nbta.graph.copying import Captured, Copy, copied
from nbta.graph.graph import lies_in, live, running, substitute
from nbta.graph.operation import DATA, Operation, Tensor
from nbta.graph.views import Branch, Loop, Variable, is_branch, is_loop
from nbta.ops.arrays.tensor_arrays import CREATE, READ, SIZE, WRITE
from nbta.ops.indexing.items import ADD_ITEM
from nbta.ops.loops.iteration_counts import counts_iterations, is_integer
from nbta.ops.loops.residuals import ADD_SAVED, RESTORE, SHADOW

#: What an adjoint iteration may do besides computing: read tapes, and keep some that are its own.
_KEEPING = {CREATE, READ, WRITE, SIZE, SHADOW}


@contract(requires=[Fact.RANKS, Fact.SAVED_BY_TAPES, Fact.TAPES_OF_LOOPS], reorders=True)
@changes
def fuse_adjoint_loops(program: Program) -> Program:
    """Let loops run each adjoint iteration right after it, if that needs nothing of others."""
    operations = list(running(program))
    if not any(op.record is RESTORE for op in operations):
        return program
    waited = {before for op in operations for before in op.control_inputs}
    while pairs := _sound_pairs(program, waited):
        for pair in pairs:
            pair.join()
        program = prune.in_place(program)
    return program


def _sound_pairs(program, waited) -> list["_Pair"]:
    """Loops, each with one that may run its adjoint iterations; none is in or of two pairs.

    All are found before one is joined, as nothing is known of what joining makes.
    """
    tapes = analysis(Tapes, program)
    loops = [op for op in tapes.uses.operations if is_loop(op)]
    free = dict.fromkeys(op for op in loops if not op.control_inputs and op not in waited)
    found: list[_Pair] = []
    sums = _Sums()
    for back in free:
        forward = [op for op in _forward(tapes, back) if op in free]
        pairs = (_Pair(tapes, sums, Loop(op), Loop(back)) for op in forward)
        sound = (p for p in pairs if not any(map(p.meets, found)) and p.is_sound())
        found += islice(sound, 1)
    return found


def _forward(tapes, back) -> dict[Operation, None]:
    """The loops beside a loop whose tapes it reads."""
    reads = [op for op in Loop(back).body.operations if op.record is RESTORE]
    found = [tape.loop for op in reads if (tape := _tape(tapes, op)) is not None]
    return dict.fromkeys(op for op in found if op.graph is back.graph)


def _tape(tapes, read):
    return tapes.tape_of(read.inputs[0])[0]


class _Sums(dict):
    """The places of variables that a loop only adds to, by loop."""

    def __missing__(self, op):
        users = users_in(Loop(op))
        self[op] = {v.place for v in Loop(op).variables() if _is_added_to(v, users)}
        return self[op]


class _Pair:
    """A loop, and one that may run its adjoint iterations.

    Parameters
    ----------
    tapes : Tapes
    sums : _Sums
        Of loops as they are now.
    forward, back : Loop
    """

    def __init__(self, tapes, sums, forward: Loop, back: Loop):
        self._tapes, self._sums_of, self._forward, self._back = tapes, sums, forward, back
        self._index = (
            tapes.iterations(forward.op) - Linear(1) - Linear(0, {Iteration(back.body): 1})
        )
        self._known = self._of_the_iteration()
        kept = [_is_kept(variable) for variable in back.variables()[1:]]
        self._kept = list(compress(back.variables()[1:], kept))
        self._sums = list(compress(back.variables()[1:], map(not_, kept)))

    def meets(self, other: "_Pair") -> bool:
        """Whether two pairs have a loop in common, or one with a loop in it that is the other's."""
        return self._holds(other) or other._holds(self)

    def _holds(self, other):
        own, others = (self._forward, self._back), (other._forward, other._back)
        return any(a.op is b.op or lies_in(b.op.graph, a.body) for a in own for b in others)

    def _of_the_iteration(self) -> dict[Tensor, Tensor]:
        """What an adjoint iteration needs not compute, by what the forward iteration has."""
        found = {}
        for op in live(self._back.body):
            if op.record is RESTORE:
                place = self._tapes.restored(op)
                if place is not None and self._is_of_the_iteration(op, place):
                    found[op.outputs[0]] = place.tensor
            elif self._is_number_of_the_iteration(op.outputs):
                found[op.outputs[0]] = self._forward.counter
        return found

    def _is_number_of_the_iteration(self, results):
        plain = len(results) == 1 and is_integer(results[0])
        return plain and self._tapes.number(results[0]) == self._index

    def _is_of_the_iteration(self, read, place):
        of_the_loop = lies_in(self._forward.body, place.tensor.graph)
        is_one = (
            len(place.iterations) == 1 and self._tapes.number(place.iterations[0]) == self._index
        )
        return of_the_loop and is_one and _tape(self._tapes, read).loop is self._forward.op

    def is_sound(self) -> bool:
        """Whether adjoint iterations may go along with those forward, and whether that pays."""
        return (
            self._goes_through_all_iterations()
            and self._only_adds()
            and self._needs_no_other_iteration()
            and self._is_plain()
        )

    def _goes_through_all_iterations(self):
        back, iterations = self._back, self._tapes.iterations
        plain = all(loop.checkpoint is loop.progress is None for loop in (back, self._forward))
        return (
            plain
            and counts_iterations(back)
            and iterations(back.op) == iterations(self._forward.op)
        )

    def _only_adds(self):
        return self._sums_of[self._back.op].issuperset(v.place for v in self._sums)

    def _needs_no_other_iteration(self):
        """Whether an adjoint iteration needs what is before the loop, and what its own has."""
        after, needed = _after(self._forward.op), self._needed()
        outside = self._outside(needed, self._ways(after))
        return self._back.counter not in needed and _all_lie_ahead(outside, after)

    def _outside(self, needed, ways) -> list[Tensor]:
        """What the adjoint iterations need of the graph around."""
        sources = self._back.body.sources
        found = [sources[tensor] for tensor in needed if tensor in sources]
        return found + [v.first for v in (*self._kept, *(way[-1] for way in ways))]

    def _ways(self, after) -> list[list[Variable]]:
        """Each sum of the loop back, after those of loops that must come after the one forward.

        As in `for i: s += f(x[i], p)` and then `for j: s += g(x[j], p)`, of which the latter goes
        back first: its sums go on to the former. They can come in either order.
        """
        users = users_of(self._back.op.graph)
        return [_way(variable, after, users, self._sums_of) for variable in self._sums]

    def _needed(self) -> set[Tensor]:
        """The parameters that adjoint iterations need besides what is known of their own."""
        found, todo = set(), [v.following for v in self._sums]
        while todo:
            tensor = todo.pop()
            if tensor not in found and tensor not in self._known:
                found.add(tensor)
                todo += tensor.op.inputs
        return {tensor for tensor in found if not tensor.op.inputs}

    def _is_plain(self):
        """Whether adjoint iterations change nothing others see, and make no product of many."""
        inner = list(running(self._back.body))
        pure = all(
            op.record.pure or op.record in _KEEPING or is_loop(op) or is_branch(op) for op in inner
        )
        pure = pure and not any(op.control_inputs for op in inner)
        both = (*inner, *running(self._forward.body))
        return pure and not any(map(is_of_iterations, both))

    def join(self) -> None:
        """Let the forward iterations do what those back do, which are no more.

        Unless these need by now, since other loops are joined, what lies after those forward.
        """
        after = _after(self._forward.op)
        ways = self._ways(after)
        outside = self._outside(self._needed(), ways)
        if not _all_lie_ahead(outside, after):
            return
        body, back = self._forward.body, self._back
        substitute(back.op.graph, {tensor: _origin(tensor) for tensor in outside})
        known = {tensor: body.resolve(value) for tensor, value in self._known.items()}
        for variable in self._kept:
            known[variable.parameter] = body.resolve(variable.first)
        places = [self._add(way, known) for way in ways]
        ends = [variable.following for variable in self._sums]
        with body.as_default(), body.control_dependencies(None):
            copy = Copy(body, back.body.scope, copied, Captured(back.body, body, known))
            made, _ = copy.fill([*back.body.inputs, *known], ends)
        for place, tensor in zip(places, made, strict=True):
            body.outputs[place] = tensor
        body.changed()
        new = {v.last: v.first for v in self._kept} | {back.iterations: self._forward.iterations}
        for way, place in zip(ways, places, strict=True):
            new |= _moved_ahead(way, self._forward.op.outputs[place])
        substitute(back.op.graph, new)
        self._forward.op.know(has_adjoint=True)
        self._sums_of[self._forward.op] = set(places)

    def _add(self, way, known):
        """A variable of the loop forward for one of the loop back; its place."""

        def following(parameter):
            known[way[0].parameter] = parameter
            return parameter

        return self._forward.add_variable(way[-1].first, following).index


def _way(variable, after, users, sums) -> list[Variable]:
    """A sum, and those of loops before that only it goes on from, as far as these are after."""
    found = [variable]
    while (first := found[-1].first).op in after and is_loop(first.op):
        if len(users[first]) != 1 or first.index not in sums[first.op]:
            break
        found.append(Loop(first.op).variable(first.index))
    return found


def _moved_ahead(way, last) -> dict[Tensor, Tensor]:
    """What stands for the end of a sum, when its part comes before those of other loops."""
    if len(way) == 1:
        return {way[0].last: last}
    op = way[-1].loop.op
    op.inputs[way[-1].place] = last
    return {way[0].last: way[1].last}


def _after(op) -> set[Operation]:
    """An operation, and those of its graph that need what it gives."""
    found = {op}
    for other in live(op.graph):
        before = {tensor.op for tensor in other.inputs}.union(other.control_inputs)
        if not found.isdisjoint(before):
            found.add(other)
    return found


def _all_lie_ahead(tensors, after) -> bool:
    """Whether tensors come before a loop, or from what it and those after only forward."""
    return not any(_origin(tensor).op in after for tensor in tensors)


def _origin(tensor) -> Tensor:
    """What a tensor is in its body before loops and branches that only hand it on."""
    while (outer := _forwarded(tensor)) is not None:
        tensor = outer
    return tensor


def _forwarded(tensor):
    op = tensor.op
    if is_loop(op):
        variable = Loop(op).variable(tensor.index)
        return variable.first if _is_kept(variable) else None
    if is_branch(op):
        outer = {_around(op, end.graph).get(_origin(end)) for end in Branch(op).ends(tensor.index)}
        return outer.pop() if len(outer) == 1 else None
    return None


def _around(op, branch) -> dict[Tensor, Tensor]:
    """What the parameters of a branch stand for."""
    return dict(zip(branch.inputs, Branch(op).captured, strict=True))


def _is_kept(variable: Variable) -> bool:
    """Whether no iteration changes a variable."""
    return _origin(variable.following) is variable.parameter


def _is_added_to(variable: Variable, users) -> bool:
    """Whether a loop only adds to a variable, and looks at it nowhere."""
    adds = variable.parameter.kind == DATA or variable.parameter.spec.is_tape
    unseen = adds and not users[variable.tested]
    return unseen and _sum(variable.parameter, users) is variable.following


def _sum(start, users):
    """The result of a body that is a parameter with something added, which nothing else uses."""
    return sum_from(start, users, _sum_with)[0]


def _sum_with(op, tensor):
    """What an operation makes of a tensor by adding to it, or None."""
    if is_loop(op):
        return _sum_of_loop(op, tensor)
    if is_branch(op):
        return _sum_of_branches(op, tensor)
    if op.record in (ADD_ITEM, ADD_SAVED):
        return op.outputs[0] if op.inputs[0] is tensor else None
    return sum_of_summand(op, tensor)


def _sum_of_loop(op, tensor):
    users = users_in(Loop(op))
    variables = [v for v in Loop(op).variables() if v.first is tensor]
    return next((v.last for v in variables if _is_added_to(v, users)), None)


def _sum_of_branches(op, tensor):
    """The result for which each branch adds to a tensor, or hands it on."""
    places = {_place_of_sum(op, branch, tensor) for branch in Branch(op).branches}
    place = places.pop() if len(places) == 1 else None
    return None if place is None else op.outputs[place]


def _place_of_sum(op, branch, tensor):
    users = users_of(branch)
    starts = [own for own, outer in _around(op, branch).items() if outer is tensor]
    ends = {_sum(own, users) for own in starts} - {None}
    return next((place for place, end in enumerate(branch.outputs) if end in ends), None)
