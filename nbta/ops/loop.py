"""While: runs a body as long as a condition holds.

The inputs are the first values of the variables, a counter of trips before all others, and then
what cond and body capture. The results are the last values of the variables.

The gradient is a loop that runs as many trips backwards. What it needs of a trip's values the
forward loop keeps in arrays that grow with it (tapes), which become variables of it when the
gradient is built: a tape is an array like any other, so that a gradient of the gradient needs no
rule of its own.
"""

import numpy as np

from nbta.graph.dependence import closure, loop_edges
from nbta.graph.graph import current, unify
from nbta.graph.operation import Tensor
from nbta.graph.spec import Spec
from nbta.ops.arithmetic import add, add_n, subtract
from nbta.ops.array_access import Access, tape
from nbta.ops.bodies import GradientGraph, no_gradient_like, note, trace
from nbta.ops.comparison import less
from nbta.ops.dispatch import as_tensor, define

COUNTER = Spec(np.dtype(np.int64), ())
ONE = np.int64(1)


def _infer(*specs, cond, body, count):
    return tuple(tensor.spec for tensor in body.inputs[:count])


def _evaluate(step, *values, cond, body, count):
    variables, captured = values[:count], values[count:]
    goes_on, advance = step.function(cond), step.function(body)
    trip = 0
    try:
        while goes_on(step, (*variables, *captured))[0]:
            variables = advance(step, (*variables, *captured))
            trip += 1
    except Exception as error:
        note(error, f"(trip {trip} of the loop {body.owner.name!r})")
        raise
    return variables


def _connections(op):
    """A result depends on its own first value, and on all that any trip brings in."""
    edges = loop_edges(op)
    return [
        [op.inputs[place] for place in sorted(closure({result}, edges))]
        for result in range(op.attrs["count"])
    ]


def counting(function):
    """The function of a body, with the counter of trips before its variables."""

    def advance(counter, *variables):
        return [add(counter, ONE), *function(*variables)]

    return advance


def add_while(cond, body, first, name=None):
    """The operation of a loop; ``first`` are the first values of its variables."""
    graph = current()
    captured = unify([cond, body], len(first))
    attrs = {"cond": cond, "body": body, "count": len(first)}
    op = graph.create(WHILE, [*first, *captured], attrs, name)
    cond.owner = body.owner = op
    return op


def _add_variable(op, first, following):
    """Give a loop another variable; ``following(parameter)`` builds its next value in the body."""
    place = op.attrs["count"]
    cond, body = op.attrs["cond"], op.attrs["body"]
    for graph in (cond, body):
        parameter = graph.parameter(first.spec)
        graph.inputs.insert(place, graph.inputs.pop())
    op.inputs.insert(place, first)
    op.attrs["count"] = place + 1
    op.outputs.append(Tensor(op, place, first.spec))
    with body.as_default(), body.control_dependencies(None):
        body.outputs.append(body.resolve(following(parameter)))
    body.changed()
    return op.outputs[place]


def _on_tape(op, tensor) -> Access:
    """The array in which a loop keeps a tensor of its body, trip by trip."""
    if tensor not in op.tapes:
        body = op.attrs["body"]
        with op.graph.as_default(), op.graph.control_dependencies(None):
            start = tape(tensor.spec, f"tape_of_{tensor.op.type}")

        def following(flow):
            return Access(body.capture(start.handle), flow).write(body.inputs[0], tensor)

        op.tapes[tensor] = Access(start.handle, _add_variable(op, start.flow, following))
    return op.tapes[tensor]


def _gradient(context, op, *grads):
    carried, kept = _active(context, op, grads)
    result = [None] * len(op.inputs)  # of now: tapes will be further inputs
    backward = _backward(context, op, carried, kept, [grads[place] for place in carried])
    for place, grad in zip([*carried, *kept], backward.outputs[1:], strict=True):
        result[place] = grad
    return result


def _active(context, op, grads):
    """Places of the variables that carry a gradient back, and of the captured tensors it reaches.

    A variable carries one if some result with a gradient depends on it, and if it depends itself
    on something that a gradient is wanted of.
    """
    count, edges = op.attrs["count"], loop_edges(op)
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


def _backward(context, op, carried, kept, grads):
    """The loop that runs the trips backwards."""
    body, trips = op.attrs["body"], op.outputs[0]
    graph = current()
    first = [
        no_gradient_like(op.outputs[place]) if grad is None else grad
        for place, grad in zip(carried, grads, strict=True)
    ]
    sums = [no_gradient_like(op.inputs[place]) for place in kept]
    specs = [COUNTER, *(body.inputs[place].spec for place in [*carried, *kept])]
    with graph.name_scope(op.name.rpartition("/")[2] + "_grad") as scope:
        cond = trace(graph, f"{scope}cond", specs, lambda counter, *_: [less(counter, trips)])
        backward = GradientGraph(graph, f"{scope}body", body)
        with backward.as_default():
            parameters = [backward.parameter(spec) for spec in specs]
            made = _one_trip_back(context, body, carried, kept, parameters)
            backward.outputs = [backward.resolve(tensor) for tensor in made]
        backward.settle(_value_of_trip(op, backward))
        start = [as_tensor(np.int64(0), graph), *first, *sums]
        return add_while(cond, backward, start, scope)


def _one_trip_back(context, body, carried, kept, parameters):
    """Next values of the counter, of the variables' gradients, and of the sums for the captured."""
    counter, given, sums = parameters[0], parameters[1:], parameters[1 + len(carried) :]
    given = given[: len(carried)]
    outputs = [body.outputs[place] for place in carried]
    inputs = [body.inputs[place] for place in [*carried, *kept]]
    grads = context.run(outputs, given, inputs)
    following = [
        no_gradient_like(tensor) if grad is None else grad
        for tensor, grad in zip(inputs[: len(carried)], grads, strict=False)
    ]
    added = [
        total if grad is None else add_n([total, grad])
        for total, grad in zip(sums, grads[len(carried) :], strict=True)
    ]
    return [add(counter, ONE), *following, *added]


def _value_of_trip(op, backward):
    """How the backward body gets at a value of the forward body: from a tape."""

    def value(tensor):
        kept = _on_tape(op, tensor)
        if "trip" not in backward.cache:
            last = subtract(as_tensor(op.outputs[0], backward), ONE)
            backward.cache["trip"] = subtract(last, backward.inputs[0])
        kept = Access(*(as_tensor(part, backward) for part in kept))
        return kept.read(backward.cache["trip"], tensor.spec)

    return value


WHILE = define(
    "While", _infer, _evaluate, _gradient, effects=True, several=True, connections=_connections
)
