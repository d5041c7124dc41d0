"""Loops with checkpoints in loops: segments as loops of their own.

A loop with ``checkpoint=`` saves its variables in the first iteration of each segment, in a branch.
In a loop around it, which makes the arrays for that anew in each iteration, those would stay apart:
one array for a whole nest (`nbta.compiler.linearised_tapes`) takes what every iteration of a loop
writes. As a loop over segments around a loop over the iterations of one it does, and asks in no
iteration whether a segment begins.
"""

from typing import NamedTuple

import numpy as np

from nbta.compiler.manager import Fact, contract
from nbta.compiler.passes import prune
from nbta.compiler.program import Program, changes
from nbta.graph.copying import Captured, Copy, copied
from nbta.graph.graph import current, running, substitute
from nbta.graph.operation import Operation, Tensor
from nbta.graph.views import Branch, Loop, Variable, is_loop, origin
from nbta.ops.core.arithmetic import add, less, logical_and
from nbta.ops.core.dispatch import as_tensor
from nbta.ops.loops.bodies import trace
from nbta.ops.loops.iteration_counts import constant_of
from nbta.ops.loops.loop import COUNTER, ONE, add_while
from nbta.ops.loops.residuals import save


@contract(requires=[Fact.RANKS, Fact.BUFFERS_STAY, Fact.SAVED_BY_TAPES])
@changes
def loops_of_segments(program: Program) -> Program:
    """Let loops in loops that save states at the start of segments be two loops in one another."""
    inner = [op for op in running(program) if is_loop(op) and op.graph is not program]
    waited = {before for op in running(program) for before in op.control_inputs}
    found = [(Loop(op), _states(Loop(op))) for op in inner if _may_be_split(op, waited)]
    for loop, states in reversed(found):  # from the inside out: a loop takes those in it along
        if states:
            (_save_always if _is_always_one(loop, states[0]) else _split)(loop, states)
    return prune.in_place(program) if any(states for _, states in found) else program


def _may_be_split(op, waited):
    """Whether nothing is ordered by a loop, and no bar counts its iterations."""
    return not op.control_inputs and op not in waited and Loop(op).progress is None


class _State(NamedTuple):
    """A variable that a loop saves: by its place, that of the tape, and what saves it."""

    place: int
    tape: int
    save: Operation


def _states(loop):
    """What a loop saves in the first iteration of each segment."""
    cases = [(tape, tape.following.op) for tape in loop.variables()]
    found = [_state(tape, case) for tape, case in cases if case.facts.saves_state]
    return [] if None in found else found


def _state(tape: Variable, case: Operation) -> _State | None:
    branch = Branch(case).branches[0]
    save = branch.outputs[tape.following.index].op
    saved = branch.sources.get(save.inputs[2])  # it may be a variable that no iteration changes
    places = [k for k, tensor in enumerate(tape.loop.parameters) if tensor is saved]
    return _State(places[0], tape.place, save) if places else None


def _split(loop, states):
    """Put a loop over segments, and in it one over their iterations, in place of a loop."""
    op, graph, specs = loop.op, loop.op.graph, [COUNTER, *(v.spec for v in loop.parameters)]
    name = f"{op.name.rpartition('/')[2]}_segments"
    with graph.as_default(), graph.control_dependencies(None), graph.name_scope(name) as scope:
        cond = trace(graph, f"{scope}cond", specs, lambda _, *now: [_goes_on(loop, now)])
        body = trace(graph, f"{scope}body", specs, lambda *now: _segment(loop, states, *now))
        start = [as_tensor(np.int64(0), graph), *loop.first]
        made = add_while(cond, body, start, scope, origin=loop.origin)
    substitute(graph, dict(zip(op.outputs, made.outputs[1:], strict=True)))


def _goes_on(loop, now):
    """The condition of a loop, for values of its variables."""
    return _built(loop.cond, now, loop.cond.outputs)[0]


def _segment(loop, states, segment, *now):
    """The numbers of the segment and the variables after it, from those at its start."""
    length, following = _length(loop, states[0], segment), list(now)
    for state in states:
        following[state.tape] = save(now[state.tape], segment, now[state.place])
    rest = [k for k in range(loop.count) if k not in {state.tape for state in states}]
    after = _iterations(loop, length, rest, now)
    for place, tensor in zip(rest, after, strict=True):
        following[place] = tensor
    return [add(segment, ONE), *following]


def _iterations(loop, length, places, now):
    """The variables of some places after the iterations of a segment, fewer where the loop ends."""
    graph = length.graph
    specs = [COUNTER, *(loop.parameters[place].spec for place in places)]

    def whole(values):
        return [values[places.index(k)] if k in places else now[k] for k in range(loop.count)]

    def goes_on(iteration, *values):
        return [logical_and(less(iteration, length), _goes_on(loop, whole(values)))]

    def advance(iteration, *values):
        ends = [loop.following[place] for place in places]
        return [add(iteration, ONE), *_built(loop.body, whole(values), ends)]

    with graph.name_scope("segment") as scope:
        cond = trace(graph, f"{scope}cond", specs, goes_on)
        body = trace(graph, f"{scope}body", specs, advance)
        start = [as_tensor(np.int64(0), graph), *(now[place] for place in places)]
        return add_while(cond, body, start, scope, origin=loop.origin).outputs[1:]


def _built(body, variables, wanted) -> list[Tensor]:
    """What a body of a loop computes from values of the variables, in the current graph."""
    graph = current()
    given = zip(body.inputs, map(graph.resolve, variables), strict=False)
    copy = Copy(graph, body.scope, copied, Captured(body, graph, dict(given)))
    return copy.fill(body.inputs, wanted)[0]


def _length(loop, state, segment):
    """How many iterations a whole segment has (`nbta.ops.loops.checkpoints`)."""
    if loop.checkpoint == "online":
        return add(segment, ONE)
    graph, period = segment.graph, _period(state)
    constant = constant_of(period)
    return graph.resolve(period) if constant is None else as_tensor(np.int64(constant), graph)


def _is_always_one(loop, state):
    """Whether each iteration is a segment."""
    return loop.checkpoint != "online" and constant_of(_period(state)) == 1


def _period(state) -> Tensor:
    """How many iterations segments have that are all as long: a write's index is divided by it."""
    return origin(state.save.inputs[1].op.inputs[1])


def _save_always(loop, states):
    """Save states of a loop whose segments have one iteration without asking where they begin."""
    body = loop.body
    with body.as_default(), body.control_dependencies(None):
        for state in states:
            tape, variable = loop.parameters[state.tape], loop.parameters[state.place]
            body.outputs[state.tape] = save(tape, loop.counter, variable)
    body.changed()
