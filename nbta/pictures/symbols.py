"""Arrays of graphs as HTML: what is known of them, and what their flow comes behind."""

from nbta.graph.spec import FLOW
from nbta.ops.extents import outside
from nbta.pictures.cells import elements_text
from nbta.pictures.html import html_in_graph
from nbta.pictures.labels import details_of

_STEPS = 12


def html_of(array) -> str:
    """A symbolic array as HTML."""
    facts = [str(array.dtype), elements_text(array.element_shape)]
    facts += ["grows"] * array.dynamic_size + ["writes add"] * array.is_gradient
    facts.append("in a graph: it has slots when that runs; its flow comes behind")
    steps = _behind(array.flow)
    shown = [(op.name, " ".join(details_of(op)[:2]) or op.type) for op in steps[-_STEPS:]]
    if len(steps) > _STEPS:
        shown.insert(0, ("…", f"{len(steps) - _STEPS} more"))
    return html_in_graph(array.handle.op.name, facts, shown)


def _behind(flow):
    """The operations that a flow comes behind, the first one first, as far as there is one way."""
    steps, flow = [], outside(flow)
    while flow is not None:
        steps.append(flow.op)
        flows = [outside(tensor) for tensor in flow.op.inputs if tensor.kind == FLOW]
        flow = flows[0] if len(flows) == 1 else None
    return steps[::-1]
