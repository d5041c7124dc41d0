"""Which inputs a gradient can reach from which outputs."""

from nbta.graph.graph import SubGraph
from nbta.graph.operation import Operation, Tensor
from nbta.graph.order import ordered
from nbta.graph.record import NotDifferentiable


def connections(op: Operation) -> list[list[Tensor]]:
    """For each output, the inputs that a gradient of it passes to."""
    if isinstance(op.record.gradient, NotDifferentiable):
        return [[] for _ in op.outputs]
    if op.record.connections is not None:
        ways = op.record.connections(op)
    else:
        ways = [op.inputs] * len(op.outputs)
    return [
        [tensor for tensor in inputs if tensor.spec.differentiable]
        if output.spec.differentiable
        else []
        for output, inputs in zip(op.outputs, ways, strict=True)
    ]


def dependence(body: SubGraph) -> list[set[int]]:
    """For each result of a body, the places of the parameters that a gradient of it reaches."""
    key = ("dependence", body.version)
    if key not in body.cache:
        body.cache = {k: v for k, v in body.cache.items() if k[0] != "dependence"}
        reach = {tensor: {place} for place, tensor in enumerate(body.inputs)}
        for op in ordered({tensor.op for tensor in body.outputs}):
            for output, inputs in zip(op.outputs, connections(op), strict=True):
                if output not in reach:
                    reach[output] = set().union(*(reach[tensor] for tensor in inputs))
        body.cache[key] = [reach[tensor] for tensor in body.outputs]
    return body.cache[key]


def closure(start: set[int], edges: dict[int, set[int]]) -> set[int]:
    """All that can be reached from ``start``."""
    found, todo = set(start), list(start)
    while todo:
        new = edges.get(todo.pop(), set()) - found
        found |= new
        todo += new
    return found


def loop_edges(op: Operation) -> dict[int, set[int]]:
    """For each variable of a loop, the inputs that its next value depends on."""
    return dict(enumerate(dependence(op.attrs["body"])))
