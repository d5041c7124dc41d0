"""Items of parts as items of the whole: ``x[7:9][1]`` is ``x[8]``, in gradients too.

Users name parts of an argument, and take their items in a loop. The gradient of such an item is a
part of zeros with the item in it, which is added to the part's place, in each iteration. All that
is an item of the whole that is added to, where bounds and indices are numbers: an item is in a part
if and only if the whole has it.
"""

from collections import Counter

from nbta.compiler.induction import Counts
from nbta.compiler.manager import Fact, analysis, contract
from nbta.compiler.program import Program, changes
from nbta.graph.copying import keep_shapes
from nbta.graph.graph import SubGraph, running, substitute
from nbta.graph.operation import Operation, Tensor
from nbta.graph.views import origin
from nbta.ops.core.dispatch import CONSTANT
from nbta.ops.core.shaping import SHAPE
from nbta.ops.indexing.items import ADD_ITEM, GETITEM, SCATTER_SLICE
from nbta.shapes import is_known


@contract(requires=[Fact.RANKS])
@changes
def items_of_parts(program: Program) -> Program:
    """Read items of parts from the whole, and add to items of parts there."""
    counts, used = analysis(Counts, program), {}
    for op in list(running(program)):
        if op.record is GETITEM:
            _read_of_whole(op)
        elif op.record is ADD_ITEM and _part(op) is not None:
            if op.graph not in used:
                used[op.graph] = _uses(op.graph)
            _add_to_whole(counts, op, used[op.graph])
    return program


def _uses(graph: SubGraph) -> Counter:
    found = Counter(tensor for op in graph.operations for tensor in op.inputs)
    found.update(graph.outputs)
    return found


def _part(op: Operation) -> slice | None:
    """The slice of the first axis that is all of an operation's key, from a number on."""
    key = op.attrs["key"]
    if len(key) != 1 or not isinstance(key[0], slice) or op.control_inputs:
        return None
    start, stop, step = key[0].start or 0, key[0].stop, key[0].step
    fixed = _is_place(start) and (stop is None or _is_place(stop)) and step in (None, 1)
    return slice(start, stop) if fixed else None


def _is_place(number):
    return type(number) is int and number >= 0


def _in_whole(part: slice, key) -> tuple | None:
    """The key of the whole for one of a part; None where it may name something else."""
    if not key or not all(type(place) is int for place in key) or key[0] < 0:
        return None
    place = part.start + key[0]
    return (place, *key[1:]) if part.stop is None or place < part.stop else None


def _read_of_whole(op):
    source = op.inputs[0].op
    if source.record is not GETITEM or source.graph is not op.graph or op.control_inputs:
        return
    part = _part(source)
    key = None if part is None else _in_whole(part, op.attrs["key"])
    if key is not None:
        op.inputs, op.attrs = [source.inputs[0]], {**op.attrs, "key": key}
        op.graph.changed()


def _add_to_whole(counts, op, used):
    x, value = op.inputs
    part, items = _part(op), _items_of_zeros(value, used)
    if items is None or not _is_like(counts, items[-1], x, part):
        return
    keys = [_in_whole(part, item.attrs["key"]) for item in items]
    if None in keys:
        return
    graph, last = op.graph, x
    with graph.as_default(), graph.control_dependencies(None):
        for item, key in zip(reversed(items), reversed(keys), strict=True):
            added = item.inputs[0 if item.record is SCATTER_SLICE else 1]
            made = graph.create(ADD_ITEM, [last, added], {**op.attrs, "key": key})
            made.location = op.location
            keep_shapes([x], made.outputs)
            (last,) = made.outputs
    substitute(graph, {op.outputs[0]: last})


def _items_of_zeros(value: Tensor, used) -> list[Operation] | None:
    """What puts items to zeros, the last one first, if that is all that a value is."""
    found = []
    while used[value] == 1 and not value.op.control_inputs:
        found.append(value.op)
        if value.op.record is SCATTER_SLICE and len(value.op.inputs) == 2:
            return found
        if value.op.record is not ADD_ITEM or len(value.op.inputs) != 2:
            return None
        value = value.op.inputs[0]
    return None


def _is_like(counts, zeros: Operation, x: Tensor, part: slice) -> bool:
    """Whether zeros are made in the shape of a part of an array, or of one as long."""
    shape = origin(zeros.inputs[1]).op
    if shape.record is CONSTANT and is_known(x.spec.shape):
        n, *rest = x.spec.shape
        return tuple(shape.attrs["value"]) == (len(range(n)[part]), *rest)
    source = origin(shape.inputs[0]).op if shape.record is SHAPE else None
    if source is None or source.record is not GETITEM or _part(source) != part:
        return False
    whole = source.inputs[0]
    lengths = [[counts.length(t, axis) for t in (whole, x)] for axis in range(x.spec.rank or 0)]
    known = all(one is not None and one == other for one, other in lengths)
    return known and whole.spec.rank == x.spec.rank
