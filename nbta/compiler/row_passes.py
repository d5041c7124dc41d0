"""Elementwise operations on what a loop reads row by row: in the loop, or before it on all rows."""

import numpy as np

from nbta import shapes
from nbta.codegen.fusion import Elementary
from nbta.compiler.access_sets import users_of
from nbta.compiler.induction import Counts
from nbta.compiler.manager import Fact, analysis, contract
from nbta.compiler.passes import prune
from nbta.compiler.program import Program, changes
from nbta.compiler.sums import goes_in_vectors
from nbta.graph.graph import live, subgraphs, substitute
from nbta.graph.views import Loop, is_loop
from nbta.ops.core.arithmetic import ADD_N
from nbta.ops.core.dispatch import CONSTANT, as_tensor, constant_in
from nbta.ops.core.shaping import BROADCAST_TO, SUM_TO
from nbta.ops.indexing.items import GETITEM, SYMBOLIC

_WITH_SHAPE = frozenset({BROADCAST_TO, SUM_TO})
_REST = (slice(1, None),)


@contract(requires=[Fact.RANKS, Fact.WHOLE_AXES])
@changes
def rows_of_elementwise(program: Program) -> Program:
    """Compute in a loop, a row per iteration, what only that loop needs and only row by row.

    So that what was computed of all rows takes no memory and is not read from it again.
    """
    changed = False
    while (found := _next(program)) is not None:
        _move(*found)
        changed = True
    return prune.in_place(program) if changed else program


def _next(graph):
    """An operation to be moved: with the reads of its rows, and how the rows of inputs are made."""
    counts, users = analysis(Counts, graph), users_of(graph)
    for op in live(graph):
        for body in subgraphs(op):
            found = _next(body)
            if found is not None:
                return found
        if _is_by_row(op):
            reads = _reads(op, users)
            ways = _ways(op, reads[0], counts) if reads else None
            if ways is not None:
                return op, reads, ways
    return None


def _is_by_row(op):
    """Whether a row of the result needs rows only, and no row fails where all at once would."""
    return op.record in _WITH_SHAPE or (op.record.elementwise and op.record.is_total(op))


def _reads(op, users):
    """The reads of rows in the one loop that uses a result; none where anything else uses it."""
    result = op.outputs[0]
    loops = users[result]
    alone = len(loops) == 1 and loops[0] is not None and is_loop(loops[0])
    if not alone or op.control_inputs or users[op] or not result.spec.rank:
        return []
    loop = Loop(loops[0])
    bodies = [loop.body, loop.cond]
    body, cond = ([b.captures[result]] if result in b.captures else [] for b in bodies)
    if not body or any(users_of(bodies[1])[t] for t in cond):
        return []
    reads = users_of(bodies[0])[body[0]]
    plain = None not in reads and all(
        r.record is GETITEM and r.attrs["key"] == (SYMBOLIC,) for r in reads
    )
    if (
        result.spec.rank == 1
        and is_expensive(op)
        and not goes_in_vectors(loop, analysis(Counts, loop.body))
    ):
        return []  # before the loop they are vector instructions, in it one by one
    return reads if plain and len({r.inputs[-1] for r in reads}) == 1 else []


def _ways(op, read, counts):
    """How a row of the result is made: for each input whether by a row, as it is, or by the first.

    None where it is not proven that this gives the same, or where rows might be made twice.
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
    """Whether the shapes of a row are proven to fit, as the loop may run no iteration."""
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
    """Whether axes after the first are proven to be of one length where they are not 1."""
    for axis in range(1 - rank, 0):
        dimensions = [t.spec.shape[axis] for t in tensors if t.spec.rank >= -axis]
        long = [dimension for dimension in dimensions if dimension is None or dimension != 1]
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
    """A shape without its first dimension."""
    if shapes.is_known(pattern):
        return as_tensor(np.array(pattern, np.int64), graph)
    return graph.create(GETITEM, [shape], {"key": _REST}).outputs[0]


def is_expensive(op) -> bool:
    """Whether an operation takes far less time in vector instructions: elementary functions."""
    rule, dtype = op.record.emit, op.outputs[0].dtype
    plain = isinstance(rule, Elementary) and rule.compiled is None
    return plain and dtype.kind == "f" and not op.record.cheap


@contract(requires=[Fact.RANKS, Fact.WHOLE_AXES])
@changes
def hoist_elementwise(program: Program) -> Program:
    """Compute before a loop what its iterations compute of items of tensors, each for itself.

    That is for elementary functions in loops whose iterations are not made side by side, as they
    change items at places that only the run tells, or go on with what the iteration before has
    left: before
     the loop they are vector instructions. What a tape would keep of them is there then.
    """
    counts = analysis(Counts, program)
    found = [_Items(op, counts).hoist() for op in live(program) if is_loop(op)]
    return prune.in_place(program) if any(found) else program


class _Items:
    """What a loop computes of items that it reads, one per iteration, all of them in one order.

    Attributes
    ----------
    found : dict
        The index of the items, by operation; in running order.
    """

    def __init__(self, loop, counts):
        self.loop, self.body, self.counts = loop, Loop(loop).body, counts
        self.users, self.found, self._made = users_of(self.body), {}, {}
        if goes_in_vectors(Loop(loop), counts):
            return
        for op in live(self.body):
            index = None if op.control_inputs else self._index(op)
            if index is not None:
                self.found[op] = index

    def _index(self, op):
        """By which index an operation gets its items; None for other operations."""
        if self._is_item(op):
            return op.inputs[1]
        plain = op.record.elementwise and op.record.is_total(op) and len(op.outputs) == 1
        if not plain or any(tensor.spec.shape != () for tensor in (*op.inputs, *op.outputs)):
            return None
        indices = {self.found[t.op] for t in op.inputs if t.op in self.found}
        rest = [t for t in op.inputs if t.op not in self.found]
        known = all(t.op.record is CONSTANT or t in self.body.sources for t in rest)
        return indices.pop() if known and len(indices) == 1 else None

    def _is_item(self, op):
        """Whether it reads each item of a vector from around the loop once."""
        source = self.body.sources.get(op.inputs[0]) if op.record is GETITEM else None
        if source is None or source.spec.rank != 1 or op.attrs["key"] != (SYMBOLIC,):
            return False
        length = self.counts.length(source)
        return self.counts.direction(op.inputs[1], self.loop, length) is not None

    def hoist(self) -> bool:
        """Read items of what is computed before the loop; whether there is any."""
        expensive = [op for op in self.found if is_expensive(op) and self._is_needed(op)]
        new = {op.outputs[0]: self._item(op) for op in expensive}
        substitute(self.body, new)
        return bool(new)

    def _is_needed(self, op):
        """Whether a result is needed for more than elementary functions that are pushed out."""
        result = op.outputs[0]
        return any(result is tensor for tensor in self.body.outputs) or any(
            user not in self.found or (not is_expensive(user) and self._is_needed(user))
            for user in self.users[result]
        )

    def _item(self, op):
        rows = self.body.capture(self._rows(op.outputs[0]))
        inputs, attrs = [rows, self.found[op]], {"key": (SYMBOLIC,)}
        return self.body.create(GETITEM, inputs, attrs).outputs[0]

    def _rows(self, tensor):
        """A tensor of the body, of all iterations, before the loop."""
        op = tensor.op
        if op not in self.found:
            constant = op.record is CONSTANT
            around = self.loop.graph
            return constant_in(around, op.attrs["value"]) if constant else self.body.sources[tensor]
        if op.record is GETITEM:
            return self.body.sources[op.inputs[0]]
        if op not in self._made:
            inputs = list(map(self._rows, op.inputs))
            self._made[op] = self.loop.graph.create(op.record, inputs, op.attrs).outputs[0]
        return self._made[op]
