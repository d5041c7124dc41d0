"""Which gradient computation an operation belongs to."""

from nbta.graph.graph import Graph
from nbta.graph.operation import Operation
from nbta.graph.spec import HANDLE
from nbta.ops.arrays import CREATE, LOOKUPS
from nbta.ops.extents import outside


def source_of(op: Operation) -> str | None:
    """The source of the call of `gradients` that made an operation, or whose array it works on.

    An operation belongs to the innermost scope that `gradients` opened. Outside of these it belongs
    to the source of the gradient array that it looks up or uses. A write to a tape, which a loop
    does for its gradient, belongs to whom the tape belongs to.
    """
    return _scope_of(op.graph, op.name) or _of_array(op)


def scope_source(graph: Graph, scope: str) -> str | None:
    """The source that a scope, such as that of a body, belongs to."""
    return _scope_of(graph, scope)


def _scope_of(graph, name):
    scopes = graph.root.gradient_scopes
    parts = name.split("/")
    for count in range(len(parts) - 1, 0, -1):
        scope = "/".join(parts[:count])
        if f"{scope}/" in scopes:
            return scope
    return None


def _of_array(op):
    if op.record in LOOKUPS:
        return op.attrs["source"]
    if not op.inputs or op.inputs[0].kind != HANDLE:
        return None
    maker = outside(op.inputs[0]).op
    if maker.record in LOOKUPS:
        return source_of(maker)
    return _scope_of(maker.graph, maker.name) if maker.record is CREATE else None
