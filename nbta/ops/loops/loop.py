"""While: runs a body as long as a condition holds.

The inputs are the first values of the variables, a counter of iterations before all others, and
then what cond and body capture. The results are the last values of the variables.

The gradient is a loop that runs as many iterations backwards. What it needs of an iteration's
values the forward loop saves in arrays that grow with it (tapes), which become variables of it when
the gradient is built: a tape is an array like any other, so that a gradient of the gradient needs
no rule of its own.

A loop with an attribute ``checkpoint`` saves its variables at the start of each segment instead
(`nbta.ops.loops.checkpoints`). Its gradient is a loop over segments, backwards. An iteration of
that has a loop that runs the segment again, a copy of the forward body, the ordinary gradient of
this copy, and the end of its tapes. It has ``checkpoint="again"`` itself, so that a gradient of the
gradient computes segments again, too.
"""

from contextlib import contextmanager

import numpy as np

from nbta.graph.dependence import closure, loop_edges, uses
from nbta.graph.graph import SubGraph, current, drop_unused, substitute, unify
from nbta.graph.labels import ADJOINT, SAVED, call_after, shown_loop
from nbta.graph.operation import DATA, FLOW, Facts, Spec, Tensor
from nbta.graph.order import ordered
from nbta.graph.views import Loop
from nbta.ops.arrays.tensor_arrays import CREATE
from nbta.ops.core.arithmetic import add, less, minimum, subtract
from nbta.ops.core.dispatch import PARAMETER, as_tensor, define
from nbta.ops.loops.bodies import GradientGraph, keep_only, no_gradient_like, note, trace
from nbta.ops.loops.branch import add_case
from nbta.ops.loops.checkpoints import (
    AGAIN,
    Replay,
    begins,
    close_after,
    number_of_segments,
    schedule_of,
)
from nbta.ops.loops.iteration_counts import iterations_on_entry
from nbta.ops.loops.residuals import empty_tape, restore, save, saved_by
from nbta.ops.loops.selections import selection
from nbta.ops.random.draws import check_drawn_once
from nbta.progress import bar

COUNTER = Spec(np.dtype(np.int64), ())
ONE = np.int64(1)


def _infer(*specs, cond, body, count, **notes):
    return tuple(tensor.spec for tensor in body.inputs[:count])


def _evaluate(step, values, cond, body, count, checkpoint=None, progress=None, **notes):
    if progress is not None:
        total = iterations_on_entry(cond, body, count, values)
        with bar(progress, total) as counter:
            return _run(step, values, cond, body, count, counter)
    return _run(step, values, cond, body, count, np.zeros(1, np.int64))


def _run(step, values, cond, body, count, done):
    captured = values[count:]
    goes_on, advance = step.function(cond), step.function(body)
    if step.is_limited:
        step.foresee(iterations_on_entry(cond, body, count, values) or 0, cond, body)
    try:
        while goes_on(step, values.copy())[0]:
            values = [*advance(step, values), *captured]  # which used up the list before
            done[0] += 1
    except Exception as error:
        note(error, f"(iteration {done[0]} of {shown_loop(body.owner)})")
        raise
    return values[:count]


def _connections(op):
    """A result depends on its own first value, and on all that any iteration brings in."""
    edges = loop_edges(op)
    return [
        [op.inputs[place] for place in sorted(closure({result}, edges))]
        for result in range(Loop(op).count)
    ]


def counting(function):
    """The function of a body, with the counter of iterations before its variables."""

    def advance(counter, *variables):
        return [add(counter, ONE), *function(*variables)]

    return advance


def add_while(cond, body, first, name=None, checkpoint=None, progress=None, origin=None):
    """The operation of a loop.

    ``first`` are the first values of its variables, ``origin`` is the `Origin` of the loop that the
    user wrote: this may be one of its gradient.
    """
    graph = current()
    captured = unify([cond, body], len(first))
    attrs = {"cond": cond, "body": body, "count": len(first)}
    options = {"checkpoint": checkpoint, "progress": progress, "origin": origin}
    attrs |= {key: value for key, value in options.items() if value is not None}
    op = graph.create(WHILE, [*first, *captured], attrs, name=name)
    cond.owner = body.owner = op
    return op


def _on_tape(op, tensor) -> Tensor:
    """The tape of a loop with a tensor of its body, iteration by iteration."""
    if tensor not in op.tapes:
        op.tapes[tensor] = saved_by(Loop(op), tensor)
        call_after(op.tapes[tensor], tensor, SAVED)
    return op.tapes[tensor]


def _gradient(context, op, *grads):
    carried, kept = _active(context, op, grads)
    result = [None] * len(op.inputs)  # of now: tapes will be further inputs
    first = [
        no_gradient_like(op.outputs[place]) if grads[place] is None else grads[place]
        for place in carried
    ]
    sums = [_so_far(context, op.inputs[place]) for place in kept]
    rule = _backward if Loop(op).checkpoint is None else _backward_by_segments
    backward = rule(context, op, carried, kept, first, sums)
    for place, grad in zip([*carried, *kept], backward.outputs[1:], strict=True):
        result[place] = grad
    return result


def _so_far(context, tensor):
    """What a loop adds to, in place: what has arrived at a captured tensor already, or zeros."""
    adds = tensor.kind == DATA or tensor.spec.is_tape
    found = context.so_far(tensor) if adds else None
    return no_gradient_like(tensor) if found is None else found


def _active(context, op, grads):
    """Places of the variables that carry a gradient back, and of the captured tensors it reaches.

    A variable carries one if some result with a gradient depends on it, and if it depends itself
    on something that a gradient is wanted of.
    """
    count, edges = Loop(op).count, loop_edges(op)
    wanted = {place for place, tensor in enumerate(op.inputs) if context.wants(tensor)}
    given = {place for place, grad in enumerate(grads) if grad is not None}
    reached = closure(given, edges)
    carried = [
        place
        for place in range(count)
        if place in reached
        and op.inputs[place].spec.differentiable
        and closure({place}, edges) & wanted
    ]
    kept = sorted(
        place for place in wanted if place >= count and any(place in edges[i] for i in carried)
    )
    return carried, kept


def _backward(context, op, carried, kept, first, sums):
    """The loop of adjoint iterations, from gradients of variables and sums for the rest."""
    loop, graph = Loop(op), current()
    body, iterations = loop.body, loop.iterations
    specs = [COUNTER, *(body.inputs[place].spec for place in [*carried, *kept])]
    with graph.name_scope(op.name.rpartition("/")[2] + "_grad") as scope:
        backward = GradientGraph(graph, f"{scope}body", body)
        with backward.as_default():
            parameters = [backward.parameter(spec) for spec in specs]
            ends = [body.outputs[place] for place in carried]
            starts = [body.inputs[place] for place in [*carried, *kept]]
            made = _one_adjoint_iteration(context, ends, starts, parameters)
            backward.outputs = [backward.resolve(tensor) for tensor in made]
        chosen = selection(backward)
        if chosen is not None:
            saved = chosen.save(loop)
            iterations = saved.count()
            with backward.as_default():
                backward.cache["iteration"] = saved.iteration(parameters[0])
        cond = trace(graph, f"{scope}cond", specs, lambda counter, *_: [less(counter, iterations)])
        handles = []
        backward.resolve_pending(_value_of_iteration(op, backward, handles))
        if context.transient:
            close_after(backward, handles)
        start = [as_tensor(np.int64(0), graph), *first, *sums]
        made = add_while(cond, backward, start, scope, None, _label(loop), loop.origin)
        made.know(runs_adjoints=True)
        return made


def _label(loop):
    """What the bar of a backward loop says; None where the forward loop has no bar."""
    return loop.progress and f"{loop.progress.removesuffix(' (gradient)')} (gradient)"


def _one_adjoint_iteration(context, ends, starts, parameters):
    """Next values of the counter, of the variables' gradients, and of the sums for the captured.

    ``ends`` are the variables after the iteration, ``starts`` those before it and the captured
    tensors.
    """
    counter, count = parameters[0], 1 + len(ends)
    given, sums = parameters[1:count], parameters[count:]
    first = zip(starts[len(ends) :], sums, strict=True)
    for parameter, tensor in zip(parameters[1:], starts, strict=True):
        call_after(parameter, tensor, ADJOINT)
    grads = context.run(ends, given, starts, first)
    following = [
        no_gradient_like(tensor) if grad is None else grad
        for tensor, grad in zip(starts[: len(ends)], grads, strict=False)
    ]
    added = [
        total if grad is None else grad
        for total, grad in zip(sums, grads[len(ends) :], strict=True)
    ]
    return [add(counter, ONE), *following, *added]


def _value_of_iteration(op, backward, handles):
    """How the backward body gets at a value of the forward body: from a tape.

    ``handles`` gets those of arrays that the iteration has made.
    """

    def value(tensor):
        tape = _on_tape(op, tensor)
        if "iteration" not in backward.cache:
            last = subtract(as_tensor(Loop(op).iterations, backward), ONE)
            backward.cache["iteration"] = subtract(last, backward.inputs[0])
        found = restore(as_tensor(tape, backward), backward.cache["iteration"], tensor.spec)
        call_after(found, tensor)
        if tensor.op.record is CREATE and tensor.index == 0:
            handles.append(found)
        return found

    return value


# Segment by segment.


def _backward_by_segments(context, op, carried, kept, first, sums):
    """The loop that goes through the segments backwards, each run forward again and then back."""
    graph, schedule, loop = current(), schedule_of(op), Loop(op)
    inner = loop.body
    check_drawn_once(inner)
    specs = [COUNTER, *(inner.inputs[place].spec for place in [*carried, *kept])]
    with graph.name_scope(op.name.rpartition("/")[2] + "_segments_grad") as scope:
        count = number_of_segments(schedule, graph.resolve(loop.iterations))
        cond = trace(graph, f"{scope}cond", specs, lambda counter, *_: [less(counter, count)])
        body = SubGraph(graph, f"{scope}body")
        with body.as_default():
            parameters = [body.parameter(spec) for spec in specs]
            segment = subtract(subtract(count, ONE), parameters[0])
            places = (carried, kept)
            back = _one_iteration_again if schedule.has_single_iterations else _one_segment_back
            made = back(context, op, schedule, segment, places, parameters)
            body.outputs = [body.resolve(tensor) for tensor in made]
        drop_unused(body, ordered({tensor.op for tensor in body.outputs}))
        start = [as_tensor(np.int64(0), graph), *first, *sums]
        return add_while(cond, body, start, scope, AGAIN, _label(loop), loop.origin)


def _one_segment_back(context, op, schedule, segment, places, parameters):
    """`_one_adjoint_iteration`, for a segment."""
    body, (carried, kept) = current(), places
    start, iterations = schedule.start(segment), body.resolve(Loop(op).iterations)
    length = subtract(minimum(schedule.start(add(segment, ONE)), iterations), start)
    again, replay, variables = _segment_again(op, carried, length)
    where = {place: i for i, place in enumerate(variables, 1)}
    captured = {tensor: i for i, tensor in enumerate(again.inputs)}
    with _for_this_alone(context):
        backward = _backward(
            context,
            again,
            [where[place] for place in carried],
            [captured[body.resolve(op.inputs[place])] for place in kept],
            parameters[1 : 1 + len(carried)],
            parameters[1 + len(carried) :],
        )
    first = dict(zip(again.inputs[1 : 1 + len(variables)], variables, strict=True))
    replay.take_out_stores()
    keep_only(again, {tensor for o in ordered({backward}) for tensor in o.inputs})
    body.outputs = [add(parameters[0], ONE), *backward.outputs[1:]]
    _restore(op, first, schedule, segment, start)
    return body.outputs


def _one_iteration_again(context, op, schedule, iteration, places, parameters):
    """`_one_segment_back` of a single iteration: no loop runs it again, and it needs no tapes."""
    body, (carried, kept) = current(), places
    needed = _needed_again(op, carried)
    first = {place: _placeholder(Loop(op).parameters[place].spec) for place in needed}
    replay = _replay(op, body, first.keys(), first.values())
    with _for_this_alone(context):
        ends = replay.build([Loop(op).following[place] for place in carried])
        starts = [first[place] for place in carried]
        starts += [body.resolve(op.inputs[place]) for place in kept]
        body.outputs = _one_adjoint_iteration(context, ends, starts, parameters)
    replay.take_out_stores()
    _restore(op, {tensor: place for place, tensor in first.items()}, schedule, iteration, iteration)
    live = ordered({tensor.op for tensor in body.outputs})
    close_after(body, [each.outputs[0] for each in live if each.record is CREATE])
    return body.outputs


def _restore(op, first, schedule, segment, start):
    """Put the variables at the start of a segment, by place, where others stand in for them."""
    body = current()
    live = ordered({tensor.op for tensor in body.outputs})
    used = {tensor for each in live for tensor in each.inputs}.union(body.outputs)
    restored = {
        placeholder: body.resolve(_at_start(op, place, schedule, segment, start))
        for placeholder, place in first.items()
        if placeholder in used
    }
    substitute(body, restored)


@contextmanager
def _for_this_alone(context):
    """For gradients of loops whose tapes, and whose iterations' arrays, nobody needs afterwards."""
    before, context.transient = context.transient, True
    try:
        yield
    finally:
        context.transient = before


def _segment_again(op, carried, length):
    """A loop that runs a segment of another one again, as far as a gradient needs it.

    It begins with placeholders for the variables at the start of the segment. Its variables are a
    counter of its own and those of some places, which are returned too.
    """
    loop, graph, places = Loop(op), current(), _needed_again(op, carried)
    specs = [loop.parameters[place].spec for place in places]
    with graph.name_scope("again") as scope:
        cond = trace(
            graph, f"{scope}cond", [COUNTER, *specs], lambda counter, *_: [less(counter, length)]
        )
        body = SubGraph(graph, f"{scope}body")
        with body.as_default():
            parameters = [body.parameter(spec) for spec in [COUNTER, *specs]]
            replay = _replay(op, body, places, parameters[1:])
            found = replay.build([loop.following[place] for place in places])
            body.outputs = [add(parameters[0], ONE), *found]
        first = [as_tensor(np.int64(0), graph), *map(_placeholder, specs)]
        again = add_while(cond, body, first, scope, origin=loop.origin)
    return again, replay, places


def _needed_again(op, carried):
    """Places of the variables that the next values of some of them need."""
    edges = dict(enumerate(uses(Loop(op).body)))
    return sorted(place for place in closure(set(carried), edges) if place < Loop(op).count)


def _replay(op, target, places, tensors):
    """What builds an iteration again, from tensors in place of the variables of some places."""
    known = {Loop(op).parameters[k]: tensor for k, tensor in zip(places, tensors, strict=True)}
    replay = Replay(op, target, known)
    replay.check_variables(places)
    return replay


def _placeholder(spec):
    return current().create(PARAMETER, [], {"spec": spec}, name="value").outputs[0]


def _at_start(op, place, schedule, segment, start):
    """The value of a variable at the start of a segment."""
    spec = Loop(op).variable(place).parameter.spec
    if place == 0:
        return start
    if spec.kind == FLOW or spec.is_tape:  # what the segment does again comes after the loop
        return op.outputs[place]
    return restore(current().resolve(_on_state_tape(op, place, schedule)), segment, spec)


def _on_state_tape(op, place, schedule) -> Tensor:
    """The tape of a loop with a variable at the start of each segment."""
    loop = Loop(op)
    body, parameter = loop.body, loop.variable(place).parameter
    if parameter not in op.tapes:
        with op.graph.as_default(), op.graph.control_dependencies(None):
            start = empty_tape(parameter.spec)

        def following(tape):
            with body.name_scope("save_state") as scope:
                branches = [SubGraph(body, f"{scope}first"), SubGraph(body, f"{scope}other")]
                with branches[0].as_default():
                    saved = save(tape, schedule.segment(loop.counter), parameter)
                    branches[0].outputs = [saved]
                with branches[1].as_default():
                    branches[1].outputs = [branches[1].resolve(tape)]
                first, facts = begins(schedule, loop.counter), Facts(saves_state=True)
                return add_case(first, branches, scope, facts=facts).outputs[0]

        op.tapes[parameter] = loop.add_variable(start, following)
    return op.tapes[parameter]


def _tangent(context, op, *given):
    """The loop itself, with the tangents of its variables as further ones."""
    loop, count = Loop(op), Loop(op).count
    pairs = zip(loop.parameters, op.outputs, strict=True)
    places = [place for place, pair in enumerate(pairs) if any(map(context.has, pair))]
    result = [None] * count
    if not places:
        return result
    first = [context.of_or_none_like(op.inputs[place]) for place in places]
    parameters = [loop.parameters[place] for place in places]
    ends = [loop.following[place] for place in places]

    def following(variables):
        pairs = zip(parameters, variables, strict=True)
        return context.through(loop.body, ends, dict(pairs))

    last = loop.add_variables(first, [tensor.spec for tensor in parameters], following)
    for place, tensor in zip(places, last, strict=True):
        result[place] = tensor
    return result


WHILE = define(
    "While",
    _infer,
    _evaluate,
    _gradient,
    effects=True,
    several=True,
    takes_list=True,
    connections=_connections,
    tangent=_tangent,
)
