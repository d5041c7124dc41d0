"""What loops and branches share: tracing their bodies, and values that their gradients need."""

from nbta.errors import NbtaError
from nbta.graph.graph import SubGraph
from nbta.graph.order import ordered
from nbta.graph.spec import DATA
from nbta.ops.dispatch import CONSTANT, as_tensor, special
from nbta.ops.shaping import shape_of, zeros


def note(error: Exception, text: str) -> None:
    """Say in an error where it happened."""
    if isinstance(error, NbtaError):
        error.args = (f"{error} {text}",)
    else:
        error.add_note(text)


def trace(outer, name, specs, function) -> SubGraph:
    """The sub-graph of a function of parameters like ``specs``."""
    body = SubGraph(outer, name)
    with body.as_default():
        parameters = [body.parameter(spec) for spec in specs]
        body.outputs = [as_tensor(tensor, body) for tensor in function(*parameters)]
    return body


def gradient_graph(outer, name, forward, value) -> SubGraph:
    """A body for the gradient of another one.

    ``value(backward, tensor)`` gives what stands there for a tensor of the forward body that is
    neither constant nor captured.
    """
    backward = SubGraph(outer, name)
    backward.forward = forward
    known = {}

    def recall(tensor):
        if tensor not in known:
            with backward.as_default(), backward.control_dependencies(None):
                known[tensor] = _recall(backward, forward, tensor, value)
        return known[tensor]

    backward.recall = recall
    return backward


def _recall(backward, forward, tensor, value):
    if tensor in forward.sources:
        return backward.resolve(forward.sources[tensor])
    if tensor.op.record is CONSTANT:
        return backward.create(CONSTANT, [], tensor.op.attrs, "Const").outputs[0]
    return value(backward, tensor)


def computed_again(backward, forward, tensor):
    """A value that no trip changes, from what is captured; None where it is not like that."""
    ops = ordered({tensor.op})
    if any(op.record.effects or not _is_fixed(op, forward) for op in ops):
        return None
    op = tensor.op
    return backward.create(op.record, op.inputs, op.attrs, op.type).outputs[tensor.index]


def _is_fixed(op, forward):
    return bool(op.inputs) or op.record is CONSTANT or op.outputs[0] in forward.sources


def no_gradient_like(tensor):
    """Zeros in place of a gradient that does not arrive."""
    if tensor.kind != DATA:
        return special(tensor.kind)
    return as_tensor(zeros(shape_of(tensor), tensor.dtype))
