"""How arrays are filled: by one scatter as a whole, or by a loop, an element in each iteration."""

import math
from typing import NamedTuple

from nbta import shapes
from nbta.codegen.values import NUMBERS
from nbta.compiler.induction import Linear
from nbta.compiler.tapes import place_of_flow
from nbta.graph.graph import lies_in, substitute
from nbta.graph.operation import DATA, FLOW, Operation, Tensor
from nbta.graph.order import ordered
from nbta.graph.views import Loop, Variable, is_loop, origin, owners
from nbta.ops.arrays.tensor_arrays import (
    CREATE,
    GATHER,
    LOOKUPS,
    READ,
    READS,
    SCATTER,
    WRITE,
    WRITES,
)
from nbta.ops.core.dispatch import special
from nbta.ops.core.filling import RANGE
from nbta.ops.indexing.items import GETITEM, SYMBOLIC
from nbta.ops.loops.iteration_counts import constant_of, counts_iterations
from nbta.tuning import PACKED_ROW


class _Filled(NamedTuple):
    """The loop that makes all of an array's one write, and the place of its flow there."""

    loop: Operation
    place: int
    write: Operation

    @property
    def flow(self) -> Variable:
        """The variable of the loop that has the array's flow."""
        return Loop(self.loop).variable(self.place)

    @property
    def value(self) -> Tensor:
        """What each iteration writes."""
        return self.write.inputs[2]


def filling(tapes, create) -> _Filled | None:
    """How one loop fills an array, an element in each iteration; None for others."""
    writes = [op for op in tapes.uses.users[(create,)] if op.record in WRITES]
    plain = create.record is CREATE and constant_of(create.inputs[0]) == 0
    plain = plain and create.attrs["dynamic_size"] and not create.attrs["clear_after_read"]
    if not plain or [op.record for op in writes] != [WRITE]:
        return None
    (write,) = writes
    body = write.graph
    loop = getattr(body, "owner", None)
    if loop is None or not is_loop(loop) or loop.graph is not create.graph:
        return None
    if body is not Loop(loop).body or not counts_iterations(Loop(loop)):
        return None
    place = place_of_flow(loop, write, create)
    if write.inputs[1] is not Loop(loop).counter or place is None:
        return None
    return _Filled(loop, place, write)


def row_in_place(spec) -> tuple | None:
    """The shape of elements that may lie contiguous: numbers, and short rows of a known shape."""
    if spec.kind != DATA or not shapes.is_known(spec.shape):
        return None
    short = 0 < math.prod(spec.shape) <= PACKED_ROW and spec.dtype.char in NUMBERS
    return spec.shape if spec.rank == 0 or short else None


def creation(array, counts):
    """What makes the forward array of an array, where its size is proven and does not change."""
    op = None if array is None else array[0]
    fixed = op is not None and not op.attrs.get("dynamic_size") and op.inputs[0].spec.rank == 0
    return op if fixed and counts.number(op.inputs[0]).is_natural() else None


def slots_in_order(op) -> Tensor | None:
    """How many slots a scatter or gather goes to, if these are the first ones in order."""
    slots = origin(op.inputs[1]).op
    if slots.record is not RANGE:
        return None
    first, last, step = slots.inputs
    return last if (constant_of(first), constant_of(step)) == (0, 1) else None


class Whole:
    """An array that one scatter fills, and that is only read after it."""

    def __init__(self, array, uses, counts, scatter, done):
        self.array, self._uses, self._counts = array, uses, counts
        self._scatter, self._made = scatter, array[0]
        self.value = scatter.inputs[2]
        users = uses.users[array]
        self._readers = [op for op in users if op.record in READS]
        lookups = [op for op in users if op.record in LOOKUPS]
        self._lookups = [op for op in lookups if uses.array(op.outputs[0]) not in done]
        self._found_by = uses.lookups(array)

    @classmethod
    def of(cls, array, uses, counts, done):
        """What is to be done about an array; None where it must stay."""
        writers = [op for op in uses.users[array] if op.record in WRITES]
        if len(writers) != 1 or writers[0].record is not SCATTER:
            return None
        found = cls(array, uses, counts, writers[0], done)
        return found if found._is_certain() else None

    def _is_certain(self):
        prefixes = [self.array[:n] for n in range(1, len(self.array) + 1)]
        return (
            all(map(self._uses.is_plain, prefixes))
            and self._scatter.graph is self._made.graph
            and self.is_filled()
            and self._one_reader_if_cleared()
            and all(map(self._is_row_or_all, self._readers))
        )

    def is_filled(self):
        """Whether each slot is proven to get a row, of a shape that the array admits."""
        return self._has_all_slots() and self._shapes_agree()

    def _has_all_slots(self):
        made = creation(self.array, self._counts)
        if made is None:
            return False
        size = self._counts.number(made.inputs[0])
        return self._covers(self._scatter, size) and self._counts.length(self.value) == size

    def _covers(self, op, size):
        """Whether the indices of a scatter or gather are all slots in order."""
        count = slots_in_order(op)
        return count is not None and self._counts.number(count) == size

    def _row(self):
        return self.value.spec.shape[1:]

    def _shapes_agree(self):
        made = self._made.attrs
        return (
            self.value.dtype == made["dtype"]
            and _says(self._row(), made.get("element_shape"))
            and (len(self.array) == 1 or self._forward_shapes_agree())
        )

    def _forward_shapes_agree(self):
        """Whether no slot of the forward array can have another shape."""
        values = []
        for op in self._uses.users[self.array[:1]]:
            if op.record in WRITES - {WRITE, SCATTER}:
                return False
            if op.record in WRITES:
                shape = op.inputs[2].spec.shape
                values.append(shape[1:] if shape is not None and op.record is SCATTER else shape)
        row = self._row()
        return len(self.array) == 2 and None not in row and all(shape == row for shape in values)

    def _clears(self):
        if len(self.array) == 1:
            return self._made.attrs.get("clear_after_read", True)
        clear = {op.attrs.get("clear_after_read") for op in self._found_by}
        return clear != {False}

    def _one_reader_if_cleared(self):
        if not self._clears():
            return True
        if len(self._readers) > 1:
            return False
        return all(self._once_a_slot(op) for op in self._readers)

    def _once_a_slot(self, op):
        loops = [Loop(owner) for owner in self._owners(op) if is_loop(owner)]
        if op.record is not READ or not loops:
            return not loops
        found = self._counts.affine(op.inputs[1], loops[0].body)
        return len(loops) == 1 and found is not None and found[1] != 0

    def _owners(self, op):
        """The operations around one, up to the graph in which the array is made."""
        home = self._scatter.graph
        return [owner for owner in owners(op) if lies_in(owner.graph, home)]

    def _is_row_or_all(self, op):
        top = ([op, *self._owners(op)])[-1]
        after = top.graph is self._scatter.graph and self._scatter in ordered([top])
        return (
            after
            and op.record in (READ, GATHER)
            and op.attrs["dtype"] == self.value.dtype
            and _says(self._row(), op.attrs.get("known"))
            and (self._is_row(op) if op.record is READ else self._is_all(op))
        )

    def _is_row(self, op):
        inner = [op.graph, *(owner.graph for owner in self._owners(op))]
        in_cond = any(Loop(o).cond in inner for o in self._owners(op) if is_loop(o))
        index = op.inputs[1]
        return op.outputs[0].kind == DATA and not in_cond and self._counts.is_index(index)

    def _is_all(self, op):
        known = op.attrs.get("element_shape")
        size = self._counts.length(self.value)
        some = (size - Linear(1)).is_natural()
        own = None if op.attrs.get("strict") else self._made.attrs.get("element_shape")
        proven = any(shapes.is_known(s) for s in (known, own))
        return self._covers(op, size) and _says(self._row(), known) and (some or proven)

    def replace(self):
        """Put rows in place of reads, and leave the array alone."""
        for op in self._readers:
            value = op.graph.resolve(self.value)
            if op.record is READ:
                inputs, attrs = [value, op.inputs[1]], {"key": (SYMBOLIC,)}
                value = op.graph.create(GETITEM, inputs, attrs).outputs[0]
            substitute(op.graph, {op.outputs[0]: value})
        if not self._lookups:
            self._bypass()

    def _bypass(self):
        """Let flows pass by what nobody reads any more."""
        scatter = self._scatter
        substitute(scatter.graph, {scatter.outputs[0]: scatter.inputs[3]})
        for op in self._found_by if len(self.array) > 1 else ():
            substitute(op.graph, {op.outputs[1]: op.inputs[1]})
        if len(self.array) == 1:
            made = self._made
            with made.graph.as_default():
                substitute(made.graph, {made.outputs[1]: special(FLOW)})


def written_as_whole(uses, counts, create) -> Tensor | None:
    """The tensor whose rows one scatter writes to all slots of a forward array; else None."""
    writes = [op for op in uses.users[(create,)] if op.record in WRITES]
    if [op.record for op in writes] != [SCATTER] or writes[0].graph is not create.graph:
        return None
    whole = Whole((create,), uses, counts, writes[0], ())
    return whole.value if whole.is_filled() else None


def _says(shape, pattern):
    """Whether a shape is proven to be what a pattern says."""
    if pattern is None:
        return True
    return len(shape) == len(pattern) and all(
        type(want) is not int or have == want for have, want in zip(shape, pattern, strict=True)
    )
