"""Variables of a loop that are the items of one tensor.

A list of numbers is a variable for each item. Where an iteration assigns an item at a place that
only the run knows, as in ``buf[i % 8] = x[i]``, it puts all items together, changes one, and takes
them apart again. A loop that carries the tensor itself changes one item, in place, and so does its
gradient.
"""

from collections.abc import Callable
from operator import is_
from typing import NamedTuple

from nbta.graph.graph import SubGraph, substitute
from nbta.graph.operation import Tensor
from nbta.ops.indexing.items import GETITEM, getitem
from nbta.ops.indexing.joining import STACK, stack


class _Together(NamedTuple):
    """Variables by their places, and the tensor that has their next values as its items."""

    places: list[int]
    tensor: Tensor


def carry_together(
    cond: SubGraph, body: SubGraph, first: list[Tensor]
) -> tuple[list[Tensor], Callable[[list[Tensor]], list[Tensor]]]:
    """Let a loop that is being built carry a tensor in place of variables that are its items.

    Parameters
    ----------
    cond, body : SubGraph
        They are changed.
    first : list of Tensor
        The first values of the variables.

    Returns
    -------
    first : list of Tensor
        Those of the variables that there are then.
    apart : callable
        Gives the last values of the variables that there were, from those.
    """
    found = _found(cond, body, len(first))
    if not found:
        return first, list
    joined = {place for each in found for place in each.places}
    left = [place for place in range(len(first)) if place not in joined]
    parameters = [[graph.parameter(each.tensor.spec) for each in found] for graph in (cond, body)]
    for each, parameter in zip(found, parameters[1], strict=True):
        _replace(body, [body.inputs[place] for place in each.places], parameter)
    for graph, made in zip((cond, body), parameters, strict=True):
        others = graph.inputs[len(first) : len(graph.inputs) - len(made)]
        _drop(graph, [graph.inputs[place] for place in joined])
        graph.inputs = [*(graph.inputs[place] for place in left), *made, *others]
    body.outputs = [*(body.outputs[place] for place in left), *(each.tensor for each in found)]
    body.changed()
    together = [stack([first[place] for place in each.places]) for each in found]

    def apart(last):
        tensors = dict(zip(left, last, strict=False))
        for each, tensor in zip(found, last[len(left) :], strict=True):
            tensors |= {place: getitem(tensor, k) for k, place in enumerate(each.places)}
        return [tensors[place] for place in range(len(first))]

    return [*(first[place] for place in left), *together], apart


def _found(cond, body, count) -> list[_Together]:
    """Variables that are the items of one tensor, each once, and that the condition leaves alone.

    An iteration must use them together, or changing a copy of them would take as long.
    """
    tested = {tensor for op in cond.operations for tensor in op.inputs} | set(cond.outputs)
    items: dict[Tensor, dict[int, int]] = {}
    for place, following in enumerate(body.outputs[:count]):
        op = following.op
        if op.record is GETITEM and cond.inputs[place] not in tested and _is_one(op):
            items.setdefault(op.inputs[0], {}).setdefault(op.attrs["key"][0], place)
    found = []
    for tensor, places in items.items():
        parameters = [body.inputs[places[k]] for k in sorted(places)]
        whole = sorted(places) == list(range(tensor.spec.shape[0]))
        equal = all(parameter.dtype == tensor.dtype for parameter in parameters)
        if whole and equal and tensor.graph is body and tensor not in body.sources:
            found.append(_Together([places[k] for k in sorted(places)], tensor))
    return found


def _is_one(op):
    """Whether an operation takes an item at a place that is known of a vector of known length."""
    shape, key = op.inputs[0].spec.shape, op.attrs["key"]
    vector = shape is not None and len(shape) == 1 and type(shape[0]) is int
    return vector and len(key) == 1 and type(key[0]) is int and key[0] >= 0


def _replace(body, parameters, tensor):
    """Let items of a tensor, or the tensor, take the place of parameters of a body."""
    before = [op for op in body.operations if op is not tensor.op]
    stacks = [op for op in before if op.record is STACK and _are(op.inputs, parameters)]
    substitute(body, {op.outputs[0]: tensor for op in stacks})
    before = [op for op in before if op not in stacks]
    used = {each for op in before for each in op.inputs} | set(body.outputs)
    with body.as_default(), body.control_dependencies(None):
        items = {
            parameter: getitem(tensor, k)
            for k, parameter in enumerate(parameters)
            if parameter in used
        }
    substitute(body, items)
    made = [item.op for item in items.values()]
    body.operations = [tensor.op, *made, *before]


def _are(tensors, others):
    return len(tensors) == len(others) and all(map(is_, tensors, others))


def _drop(graph, parameters):
    gone = {parameter.op for parameter in parameters}
    graph.operations = [op for op in graph.operations if op not in gone]
    for number, op in enumerate(graph.operations):
        op.number = number
