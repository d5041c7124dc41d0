"""Tapes of what loops between do not change: filled once, before those loops.

In ``for t: for j: for i: s += a[i] * m[i, j]`` the items of ``a`` that an iteration of ``t`` reads
are the same for each ``j``. A tape of the loop along ``i`` would keep them as often as there are
``j``. Here a loop of its own before that along ``j`` keeps them once. It runs as many iterations as
that along ``i``, or none where there is no ``j``, so it reads what was read anyway, and never more.
"""

import numpy as np

from nbta.compiler.tapes import Tape
from nbta.graph.copying import keep_shapes
from nbta.graph.graph import lies_in, subgraphs
from nbta.graph.operation import DATA
from nbta.graph.views import Loop, is_loop, origin, variable_of
from nbta.ops.core.arithmetic import add, less, maximum, minimum, multiply
from nbta.ops.core.dispatch import CONSTANT, PARAMETER, as_tensor
from nbta.ops.core.shaping import INT64, cast
from nbta.ops.loops.bodies import trace
from nbta.ops.loops.iteration_counts import constant_of, limit_before, step_of
from nbta.ops.loops.loop import COUNTER, ONE, add_while
from nbta.ops.loops.residuals import empty_tape, save


class Again:
    """Builds a value of a loop's body in the body of another loop before those around it.

    Parameters
    ----------
    loop : Loop
        That makes the value.
    outside : Graph
        Where the other loop is to be.
    """

    def __init__(self, loop, outside):
        self._loop, self._outside = loop, outside

    def can_make(self, tensor) -> bool:
        """Whether a value is the same in all iterations of the loops between."""
        seen, todo = set(), [origin(tensor)]
        while todo:
            source = todo.pop()
            if source in seen:
                continue
            needed = self._needed(source)
            if needed is None:
                return False
            seen.add(source)
            todo += needed
        return True

    def _needed(self, source):
        """What a value is computed from; None for what another loop cannot compute."""
        op = source.op
        if lies_in(self._outside, source.graph) or op.record is CONSTANT:
            return []
        if op.record is PARAMETER:
            if source.graph is not self._loop.body or step_of(source) is None:
                return None
            first = variable_of(source).first
            return [] if constant_of(first) == 0 else [origin(first)]
        plain = op.record.pure and not subgraphs(op) and not op.control_inputs
        return [*map(origin, op.inputs)] if plain and source.kind == DATA else None

    def make(self, tensor, body, iteration):
        """The value in an iteration of the other loop."""
        made, wanted = {}, origin(tensor)
        todo = [wanted]
        while todo:  # operands first; a value may be an operand many times over
            source = todo[-1]
            missing = [each for each in self._needed(source) if each not in made]
            if missing:
                todo += missing[::-1]
            else:
                todo.pop()
                if source not in made:
                    made[source] = self._made(source, body, iteration, made)
        return made[wanted]

    def _made(self, source, body, iteration, made):
        """A value, of values that are there."""
        op = source.op
        if lies_in(self._outside, source.graph):
            return body.resolve(source)
        if op.record is CONSTANT:
            return body.create(CONSTANT, [], dict(op.attrs)).outputs[0]
        if op.record is PARAMETER:
            return self._counted(source, body, iteration, made)
        again = body.create(op.record, [made[origin(t)] for t in op.inputs], dict(op.attrs)).outputs
        keep_shapes(op.outputs, again)
        return again[source.index]

    def _counted(self, variable, body, iteration, made):
        """A variable that each iteration raises by as much."""
        first, step = variable_of(variable).first, step_of(variable)
        if step != 1:
            iteration = multiply(iteration, as_tensor(np.int64(step), body))
        if variable.dtype != INT64:
            iteration = cast(iteration, variable.dtype)
        return iteration if constant_of(first) == 0 else add(made[origin(first)], iteration)


def hoisted(leaf, counts):
    """A tape that loops around it make, with fewer loops around it, or the same one.

    Parameters
    ----------
    leaf : nbta.compiler.linearised_tapes.Leaf
    counts : Counts
    """
    between = _between(leaf)
    if not between:
        return leaf
    filling = _filled(leaf, between, counts)
    tape = Tape(filling, 1)
    owners = [filling, *leaf.owners[1 + len(between) :]]
    reads = [(op, iterations[: len(iterations) - len(between)]) for op, iterations in leaf.reads]
    return leaf._replace(tape=tape, save=tape.save, owners=owners, reads=reads)


def _between(leaf):
    """The loops around one that saves a value that do not change this, from the inside."""
    loop, value, found = Loop(leaf.tape.loop), leaf.value, []
    if value.kind != DATA:
        return found
    most = min(len(iterations) for _, iterations in leaf.reads)
    inner = [*leaf.owners, None]
    for owner in leaf.owners[1 : 1 + most]:
        known = is_loop(owner) and inner[len(found)].graph is Loop(owner).body
        counted = known and all(is_told(Loop(op), owner.graph) for op in (loop.op, owner, *found))
        if not counted or not Again(loop, owner.graph).can_make(value):
            break
        found.append(owner)
    return found


def is_told(loop: Loop, graph) -> bool:
    """Whether the number of a loop's iterations is known in a graph around it."""
    limit = limit_before(loop)
    ends = () if limit is None else (origin(limit.low), origin(limit.high))
    return bool(ends) and all(e.op.record is CONSTANT or lies_in(graph, e.graph) for e in ends)


def _filled(leaf, between, counts):
    """A loop that saves the same values before some loops."""
    graph, loop, value = between[-1].graph, Loop(leaf.tape.loop), leaf.value
    begun = len(graph.operations)
    again = Again(loop, graph)
    with graph.as_default(), graph.control_dependencies(None), graph.name_scope("once") as scope:
        count = iterations_before(loop, graph)
        for owner in between:
            some = counts.iterates(owner) or counts.iterations(owner) == counts.iterations(loop.op)
            if not some:
                one = minimum(iterations_before(Loop(owner), graph), as_tensor(np.int64(1), graph))
                count = multiply(count, one)
        start = empty_tape(value.spec)

        def iteration(number, tape):
            return [add(number, ONE), save(tape, number, again.make(value, number.graph, number))]

        specs = [COUNTER, start.spec]
        cond = trace(graph, f"{scope}cond", specs, lambda n, _: [less(n, n.graph.resolve(count))])
        body = trace(graph, f"{scope}body", specs, iteration)
        first = [as_tensor(np.int64(0), graph), start]
        filling = add_while(cond, body, first, scope, origin=loop.origin)
    _move_before(between[-1], graph, begun)
    return filling


def _move_before(op, graph, begun):
    """Let the operations of a graph from a place on come before one.

    After it the items that they read may have changed, and would have to be copied.
    """
    operations = graph.operations
    place = operations.index(op)
    graph.operations = [*operations[:place], *operations[begun:], *operations[place:begun]]
    for number, each in enumerate(graph.operations):
        each.number = number
    graph.changed()


def iterations_before(loop: Loop, graph):
    """How many iterations a loop runs, in a graph around it."""
    limit = limit_before(loop)

    def end(tensor):
        made = origin(tensor)
        if made.op.record is CONSTANT:
            made = graph.create(CONSTANT, [], dict(made.op.attrs)).outputs[0]
        made = graph.resolve(made)
        return made if made.dtype == INT64 else cast(made, INT64)

    return maximum(limit.iterations(end), as_tensor(np.int64(0), graph))
