"""What stands on the frame of a loop or a branch: what goes in, and what comes out."""

from nbta.graph.graph import Closed, SubGraph, all_bodies
from nbta.graph.operation import Operation, Tensor
from nbta.graph.spec import DATA
from nbta.ops.extents import outside
from nbta.pictures.diagram import Cell
from nbta.pictures.labels import inlined, kind_of, tensor_name
from nbta.pictures.sources import source_of


def is_loop(op: Operation) -> bool:
    """Whether results of its body are what its next trip begins with."""
    return op.type == "While"


def named_bodies(op: Operation) -> list[tuple[str, SubGraph]]:
    """The bodies of an operation, each with what it is for."""
    found = []
    for key, value in op.attrs.items():
        if isinstance(value, Closed):
            found.append(("each row", value.graph))
        elif isinstance(value, SubGraph):
            found.append(({"cond": "go on?", "body": "each trip"}.get(key, key), value))
        elif isinstance(value, tuple) and value and isinstance(value[0], SubGraph):
            found += [(_branch(op, i), branch) for i, branch in enumerate(value)]
    return found


def _branch(op, number):
    if op.inputs[0].dtype.kind == "b":
        return f"if {not number}"
    return f"branch {number}"


def entry_places(op: Operation) -> list[int]:
    """Which inputs the bar of what goes in shows: all that a body uses, and loops' variables.

    A captured scalar constant is no part of it; its value stands where it is used.
    """
    shown = set(range(_variables(op)))
    for body in all_bodies(op):
        shift = len(op.inputs) - len(body.inputs)
        used = {tensor for inner in body.operations for tensor in inner.inputs} | set(body.outputs)
        for place, parameter in enumerate(body.inputs, shift):
            if parameter in used and inlined(op.inputs[place]) is None:
                shown.add(place)
    return sorted(shown)


def _variables(op):
    """How many inputs are no captured tensors: variables, the number of a branch, rows."""
    return op.attrs.get("count", op.attrs.get("rows", 1))


def entry_cell(op: Operation, place: int) -> Cell:
    """The cell of an input."""
    tensor = op.inputs[place]
    late = place >= _variables(op)
    lines = (_entry_name(op, place, tensor), kind_of(tensor))
    return Cell("captured" if late else "variable", lines, _source(tensor))


def _entry_name(op, place, tensor):
    if is_loop(op) and place == 0:
        return "trip"
    value = inlined(tensor)
    name = f"from {value}" if value is not None and tensor.kind == DATA else tensor_name(tensor)
    if op.type == "Case" and place == 0:
        return f"which: {name}"
    return f"rows of {name}" if place < op.attrs.get("rows", 0) else name


def result_cells(op: Operation) -> list[Cell]:
    """The bar of what comes out; a loop's first cell is whether there is another trip."""
    question = [Cell("result", ("go on?",))] if is_loop(op) else []
    return question + [
        Cell("result", (_result_name(op, tensor), kind_of(tensor)), _source(tensor))
        for tensor in op.outputs
    ]


def _result_name(op, tensor):
    if not is_loop(op):
        return f":{tensor.index}"
    if tensor.index == 0:
        return "trip"
    first = op.inputs[tensor.index]
    return f":{tensor.index}" if inlined(first) is not None else tensor_name(first)


def _source(tensor):
    """The source of what gives a tensor; for a variable of a loop, of what gives its first value.

    So what a gradient added to a forward loop has the gradient's colour.
    """
    op = outside(tensor).op
    if is_loop(op):
        return _source(op.inputs[outside(tensor).index]) or source_of(op)
    return source_of(op)


def parameter_cells(graph: SubGraph) -> tuple[list[Tensor], list[Cell]]:
    """Parameters of a body that is shown by itself, as far as it uses them, and their cells."""
    used = {tensor for op in graph.operations for tensor in op.inputs} | set(graph.outputs)
    shown = [p for p in graph.inputs if p in used and inlined(p) is None]
    cells = [
        Cell(
            "captured" if p in graph.sources else "variable",
            (tensor_name(p), kind_of(p)),
        )
        for p in shown
    ]
    return shown, cells
