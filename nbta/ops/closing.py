"""The end of arrays that only one trip of a loop uses: they are freed when it is over."""

from nbta.graph.graph import subgraphs
from nbta.graph.order import ordered
from nbta.graph.spec import FLOW
from nbta.ops.arrays import CLOSE, LOOKUPS
from nbta.ops.dispatch import special
from nbta.ops.extents import outside


def close_behind(graph, handles) -> None:
    """Free arrays when all in a body that uses them has run, and their gradient arrays.

    The counter of trips, which is the first result of the body, waits for it.
    """
    if not handles:
        return
    lookups = list(_lookups(graph))
    found = {handle: handle for handle in handles}
    for op in lookups:
        if op.graph is graph and op.inputs[0] in found:
            found[op.outputs[0]] = op.outputs[0]
    users = [op for op in graph.operations if any(tensor in found for tensor in op.inputs)]
    with graph.as_default(), graph.control_dependencies(users):
        again = [_look_up_again(graph, op, found) for op in lookups if op.graph is not graph]
    with graph.control_dependencies(users + [op for op in again if op is not None]):
        ends = [graph.create(CLOSE, [handle]) for handle in found.values()]
    graph.outputs[0].op.control_inputs += ends
    graph.changed()


def _lookups(graph):
    """Lookups of gradient arrays in a body and in the bodies in it, the array before its own."""
    for op in ordered(graph.operations):
        if op.record in LOOKUPS:
            yield op
        for body in subgraphs(op):
            yield from _lookups(body)


def _look_up_again(graph, op, found):
    """Get at a gradient array of one of the arrays found, which a body in this one may use."""
    array = found.get(outside(op.inputs[0]))
    trip = [outside(tensor) for tensor in op.inputs[2:]]
    if array is None or not all(_is_visible(tensor, graph) for tensor in trip):
        return None
    inputs = [array, special(FLOW), *map(graph.resolve, trip)]
    again = graph.create(op.record, inputs, op.attrs)
    found[op.outputs[0]] = again.outputs[0]
    return again


def _is_visible(tensor, graph):
    """Whether a tensor belongs to a body or to a graph around it."""
    while graph is not None:
        if tensor.graph is graph:
            return True
        graph = getattr(graph, "outer", None)
    return False
