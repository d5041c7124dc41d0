"""Elementwise operations on all rows of a tensor that one loop reads, row by row in that loop."""

from collections import defaultdict

import numpy as np

from nbta import shapes
from nbta.compiler.induction import Counts
from nbta.compiler.passes import prune
from nbta.compiler.program import Program, changes
from nbta.graph.graph import live, subgraphs, substitute
from nbta.graph.views import Loop, is_loop
from nbta.ops.arithmetic import ADD_N
from nbta.ops.dispatch import as_tensor
from nbta.ops.indexing import GETITEM, SYMBOLIC
from nbta.ops.shaping import BROADCAST_TO, SUM_TO

_WITH_SHAPE = frozenset({BROADCAST_TO, SUM_TO})
_REST = (slice(1, None),)


@changes
def rows_of_elementwise(program: Program) -> Program:
    """Compute in a loop, a row a trip, what only that loop needs and only row by row.

    So that what was computed of all rows takes no memory and is not read from it again.
    """
    changed = False
    while (found := _next(program)) is not None:
        _move(*found)
        changed = True
    return prune(program) if changed else program


def _next(graph):
    """An operation to be moved: with the reads of its rows, and how the rows of inputs are made."""
    counts, users = Counts(), _users(graph)
    for op in live(graph):
        for body in subgraphs(op):
            found = _next(body)
            if found is not None:
                return found
        if _is_by_row(op):
            reads = _reads(op, users, graph)
            ways = _ways(op, reads[0], counts) if reads else None
            if ways is not None:
                return op, reads, ways
    return None


def _is_by_row(op):
    """Whether a row of the result needs rows only, and no row fails where all at once would."""
    return op.record in _WITH_SHAPE or (op.record.elementwise and op.record.is_total(op))


def _users(graph):
    users = defaultdict(list)
    for op in live(graph):
        for tensor in op.inputs:
            users[tensor].append(op)
        for other in op.control_inputs:
            users[other].append(op)
    return users


def _reads(op, users, graph):
    """The reads of rows in the one loop that uses a result; none where anything else uses it."""
    result = op.outputs[0]
    loops = users[result]
    alone = len(loops) == 1 and is_loop(loops[0]) and not op.control_inputs
    if not alone or users[op] or not result.spec.rank or any(t is result for t in graph.outputs):
        return []
    loop = Loop(loops[0])
    bodies = [loop.body, loop.cond]
    body, cond = ([b.captures[result]] if result in b.captures else [] for b in bodies)
    if not body or any(_users(bodies[1])[t] for t in cond):
        return []
    reads = _users(bodies[0])[body[0]]
    plain = all(r.record is GETITEM and r.attrs["key"] == (SYMBOLIC,) for r in reads)
    return reads if plain and len({r.inputs[-1] for r in reads}) == 1 else []


def _ways(op, read, counts):
    """How a row of the result is made: for each input whether by a row, as it is, or by the first.

    None where it is not sure that this gives the same, or where rows might be made twice.
    """
    index, body = read.inputs[1], read.graph
    found = counts.affine(index, body)
    if found is None or found[1] == 0 or not _fits(op):
        return None
    ways = [_way(tensor, op.outputs[0], counts) for tensor in _values(op)]
    size = counts.length(op.outputs[0])
    checked = "row" in ways or counts.direction(index, body.owner, size) is not None
    return ways if checked and None not in ways else None


def _values(op):
    """The inputs whose elements those of the result are made of."""
    return op.inputs[:1] if op.record in _WITH_SHAPE else op.inputs


def _way(tensor, result, counts):
    rank = tensor.spec.rank
    if rank is None or rank < result.spec.rank:
        return None if rank is None else "all"
    if counts.length(tensor) == counts.length(result):
        return "row"
    return "first" if tensor.spec.shape[0] == 1 else None


def _fits(op):
    """Whether the shapes of a row are sure to fit, as the loop may make no trip."""
    rank, inputs = op.outputs[0].spec.rank, _values(op)
    if any(tensor.spec.rank is None or tensor.spec.rank > rank for tensor in inputs):
        return False
    if op.record is SUM_TO:
        return inputs[0].spec.rank == rank and _agree([inputs[0], op.outputs[0]], rank)
    if op.record is BROADCAST_TO:
        return inputs[0].spec.rank == 0 or _agree([inputs[0], op.outputs[0]], rank)
    alike = op.record is not ADD_N or len({tensor.spec.shape[1:] for tensor in inputs}) == 1
    return alike and (len(inputs) == 1 or _agree(inputs, rank))


def _agree(tensors, rank):
    """Whether axes behind the first are sure to be of one length where they are not 1."""
    for axis in range(1 - rank, 0):
        extents = [t.spec.shape[axis] for t in tensors if t.spec.rank >= -axis]
        long = [extent for extent in extents if extent is None or extent != 1]
        if len(long) > 1 and (None in long or len(set(long)) > 1):
            return False
    return True


def _move(op, reads, ways):
    """Put the operation on rows in place of the reads of its rows."""
    body, index = reads[0].graph, reads[0].inputs[1]
    inputs = [_row(body, t, index, w) for t, w in zip(_values(op), ways, strict=True)]
    row = _on_rows(op, body, inputs)
    substitute(body, {read.outputs[0]: row for read in reads})
    Loop(body.owner).release(op.outputs[0])  # so that it has no users


def _on_rows(op, body, inputs):
    if op.record not in _WITH_SHAPE:
        return body.create(op.record, inputs, op.attrs).outputs[0]
    pattern = op.outputs[0].spec.shape[1:]
    if inputs[0].spec.shape == pattern and None not in pattern:
        return inputs[0]  # it was summed over no axis, or repeated along none but the first
    shape = body.resolve(_rest(op.graph, op.inputs[1], pattern))
    return body.create(op.record, [*inputs, shape], {"pattern": pattern}).outputs[0]


def _row(body, tensor, index, way):
    value = body.resolve(tensor)
    if way == "all":
        return value
    inputs, key = ([value, index], (SYMBOLIC,)) if way == "row" else ([value], (0,))
    made = body.cache.setdefault("rows", {})
    if (value, index, way) not in made:
        made[value, index, way] = body.create(GETITEM, inputs, {"key": key}).outputs[0]
    return made[value, index, way]


def _rest(graph, shape, pattern):
    """A shape without its first extent."""
    if shapes.is_known(pattern):
        return as_tensor(np.array(pattern, np.int64), graph)
    return graph.create(GETITEM, [shape], {"key": _REST}).outputs[0]
