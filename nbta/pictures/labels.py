"""What stands in the box of an operation."""

import re

import numpy as np

from nbta.graph.graph import Graph, SubGraph, all_bodies
from nbta.graph.operation import Operation, Tensor
from nbta.graph.printer import attributes, is_scalar, line_of
from nbta.graph.spec import DATA
from nbta.ops import arrays
from nbta.ops.extents import outside
from nbta.pictures.cells import elements_text
from nbta.pictures.diagram import Node
from nbta.pictures.sources import source_of
from nbta.pictures.text import shortened

_SLOTS = {arrays.WRITE, arrays.READ}
_LISTS = {arrays.SCATTER, arrays.GATHER}
#: Attributes that differ from these are worth a line in the box of an array.
_DEFAULTS = {"dynamic_size": (True, "grows"), "clear_after_read": (False, "keeps what is read")}
_LINES = 4  # attributes of one operation that are shown


def kind_of(tensor: Tensor) -> str:
    """Dtype and shape of a tensor, or what else it is."""
    return str(tensor.spec) if tensor.kind == DATA else tensor.kind


def short_name(graph: Graph, name: str) -> str:
    """A name as it is called within its body."""
    scope = graph.scope if isinstance(graph, SubGraph) else ""
    return name.removeprefix(scope)


def inlined(tensor: Tensor) -> str | None:
    """The value of a small constant, which stands where it is used; None for other tensors.

    Small are scalars, and short vectors of integers, which mostly are shapes.
    """
    op = outside(tensor).op
    if is_scalar(op):
        return "none" if tensor.kind != DATA else shortened(_scalar(op.attrs["value"]), 14)
    value = op.attrs["value"] if op.type == "Constant" else None
    short = value is not None and value.ndim == 1 and value.size <= 3 and value.dtype.kind in "iu"
    return str(value.tolist()) if short else None


def _scalar(value):
    value = np.asarray(value)
    return str(value) if value.dtype.kind in "biufcmM" else repr(value[()])


def tensor_name(tensor: Tensor) -> str:
    """The last part of the name of what gives a tensor, with a number behind loops and branches.

    A variable of a loop is called after its first value, if that has a name.
    """
    tensor = outside(tensor)
    op, graph = tensor.op, tensor.graph
    if op.type == "Parameter" and isinstance(graph, SubGraph) and graph.owner is not None:
        owner = graph.owner
        place = next(i for i, parameter in enumerate(graph.inputs) if parameter is tensor)
        first = owner.inputs[place + len(owner.inputs) - len(graph.inputs)]
        if inlined(first) is None:
            return tensor_name(first)
    name = tensor.name if all_bodies(op) else op.name
    return shortened(name.rpartition("/")[2], 26)


def type_beside(op: Operation) -> str:
    """The type of an operation where its name does not show it."""
    plain = re.sub(r"_\d+$", "", op.name.rpartition("/")[2])
    return "" if plain.lower() == op.type.lower() else op.type


def node_of(graph: Graph, op: Operation, key: str) -> Node:
    """The box of an operation."""
    lines = [shortened(short_name(graph, op.name)), *filter(None, [type_beside(op)])]
    lines += [shortened(line, 44) for line in details_of(op)]
    lines += [kind_of(t) for t in op.outputs if t.kind == DATA]
    return Node(key, _kind(op), lines, line_of(graph, op), source_of(op))


def _kind(op):
    if op.record is arrays.CREATE or op.record in arrays.LOOKUPS:
        return "array"
    if all_bodies(op):
        return "folded"
    return {"Placeholder": "input", "Parameter": "input", "Constant": "constant"}.get(op.type, "op")


def details_of(op: Operation) -> list[str]:
    """What an operation is given when the graph is built, a line each."""
    if all_bodies(op):
        return [f"{len(body.operations)} operations inside" for body in all_bodies(op)]
    if op.type in ("Placeholder", "Parameter"):
        return []
    if op.type == "Constant":
        value = op.attrs["value"]
        return [] if value.size > 6 else [str(value.tolist())]
    if op.record is arrays.CREATE:
        return _of_new_array(op)
    if op.record in arrays.LOOKUPS:
        return [f"source {op.attrs['source']!r}"]
    if op.record in _SLOTS | _LISTS:
        return _slots(op)
    shown = [kind for kind in map(inlined, op.inputs) if kind is not None]
    given = [f"({', '.join(inlined(t) or '·' for t in op.inputs)})"] if shown else []
    return [*given, *attributes(op)[:_LINES]]


def _of_new_array(op):
    attrs, size = op.attrs, inlined(op.inputs[0])
    known = attrs["element_shape"]
    lines = [
        f"{attrs['tensor_array_name']!r}",
        f"{attrs['dtype'].name} {elements_text(known)}",
        *([] if size is None else [f"size {size}"]),
    ]
    return lines + [text for key, (value, text) in _DEFAULTS.items() if attrs[key] is value]


def _slots(op):
    """The slots that an operation names, where these are constants."""
    index = outside(op.inputs[1]).op
    if index.type != "Constant" or np.size(index.attrs["value"]) > 6:
        return []
    found = index.attrs["value"].tolist()
    slot = f"slot {found}" if op.record in _SLOTS else f"slots {found}"
    value = inlined(op.inputs[2]) if op.record is arrays.WRITE else None
    return [slot if value is None else f"{slot} gets {value}"]
