"""Arrays that an iteration makes and an adjoint one reads: what they hold is saved as tensors.

A loop with ``checkpoint=`` in another loop runs its iterations again in the adjoint iteration of
that one, where they read again what they read, from an array that the forward iteration has made.
The tape of the outer loop keeps the array's handle for that, by which only Python can find it. But
slots are written once: after the last write a tensor of all elements says the same, and a tape of
tensors is an array like any other. Of rows of several lengths it is a vector of all their items,
with the dimensions of each.
"""

from typing import NamedTuple

from nbta import shapes
from nbta.compiler.array_fills import written_as_whole
from nbta.compiler.carrying import nothing_like
from nbta.compiler.elements import (
    begins_of,
    dimensions_of_rows,
    element_shape,
    joined,
    noted,
    packed,
    put_values,
    row_of,
    rows_of,
    stacked,
)
from nbta.compiler.manager import Fact, analysis, contract
from nbta.compiler.passes import prune
from nbta.compiler.program import Program, changes
from nbta.compiler.tapes import Tapes
from nbta.graph.copying import keep_shapes
from nbta.graph.graph import lies_in, substitute
from nbta.graph.operation import DATA, Spec, Tensor
from nbta.graph.views import Branch, Loop, is_branch, is_loop, origin
from nbta.ops.arrays.tensor_arrays import (
    CONCAT,
    CREATE,
    GATHER,
    LOOKUPS,
    READ,
    SIZE,
    WRITES,
    Access,
)
from nbta.ops.core.arithmetic import add, multiply
from nbta.ops.core.dispatch import CONSTANT, as_tensor
from nbta.ops.core.filling import zeros
from nbta.ops.core.shaping import INT64, cast, reshape, shape_of
from nbta.ops.indexing.gathering import take
from nbta.ops.indexing.items import getitem
from nbta.ops.indexing.joining import concatenate, stack
from nbta.ops.loops.residuals import EMPTY, RESTORE, SAVE, empty_tape, restore, saved_by, tape_spec


@contract(requires=[Fact.RANKS, Fact.TAPES_OF_LOOPS], breaks=[Fact.SAVED_BY_TAPES])
@changes
def save_elements(program: Program) -> Program:
    """Read elements of arrays that iterations made from tensors where another loop reads them."""
    tapes = analysis(Tapes, program)
    kept = _Beside()
    found = [_replace(tapes, kept, *array, ops) for array, ops in _read_later(tapes)]
    return prune.in_place(program) if any(found) else program


def _read_later(tapes):
    """Arrays with what reads them, or asks for their size, by a handle that was saved."""
    for array, users in list(tapes.uses.users.items()):
        if array is None or len(array) > 1 or not tapes.is_known(array):
            continue
        later = [op for op in users if origin(op.inputs[0]).op is not array[0]]
        found = [op for op in later if op.record not in LOOKUPS]
        plain = all(_is_plain(tapes, op) for op in found)
        if found and plain:
            yield array, found


def _is_plain(tapes, op):
    """Whether an operation gives numbers of an array, which nothing but data orders."""
    free = not op.control_inputs and op not in tapes.uses.waited
    simple = op.record in (READ, GATHER, SIZE) or (op.record is CONCAT and len(op.inputs) < 4)
    return free and simple and op.outputs[0].kind == DATA


def _replace(tapes, kept, create, users):
    """Let users of an array that an iteration has made take a tensor's rows; whether they can."""
    elements = _elements(tapes, create)
    if elements is None:
        return False
    views = dict.fromkeys(origin(op.inputs[0]) for op in users)
    places = {view: [kept.carried(view, tensor) for tensor in elements] for view in views}
    if any(tensor is None for found in places.values() for tensor in found):
        return False
    for op in users:
        found = type(elements)(*places[origin(op.inputs[0])])
        with op.graph.as_default(), op.graph.control_dependencies(None):
            made = found.instead(op)
        keep_shapes(op.outputs, made)
        substitute(op.graph, dict(zip(op.outputs, made, strict=True)))
    return True


def _elements(tapes, create):
    """All elements of an array, where it has been filled; None where that cannot be told."""
    writes = [op for op in tapes.uses.users[(create,)] if op.record in WRITES]
    if create.attrs["clear_after_read"] or not all(lies_in(w.graph, create.graph) for w in writes):
        return None
    whole = written_as_whole(tapes.uses, tapes, create)
    if whole is not None:
        return _Even(whole)
    shape, dtype = element_shape(tapes, create), create.attrs["dtype"]
    if shape is None:
        return _uneven(tapes, create)
    array = _filled(tapes, create, shape)
    with create.graph.as_default(), create.graph.control_dependencies(None):
        return None if array is None else _Even(stacked(create.graph, array, Spec(dtype, shape)))


def _filled(tapes, create, shape):
    """An array after all writes, of which each slot may be read.

    Where some may be unwritten and the array would not take them for zeros it is one beside it.
    """
    told = shapes.is_known(create.attrs["element_shape"]) or create.attrs["dynamic_size"]
    if not told and shapes.is_known(shape):
        return noted(tapes, create, {"element_shape": shape}, put_values)
    flow = tapes.last_flow(create)
    return None if flow is None else Access(create.outputs[0], flow)


class _Even(NamedTuple):
    """Elements of one shape, stacked."""

    stacked: Tensor

    def instead(self, op):
        """What an operation on the array gives."""
        stacked = op.graph.resolve(self.stacked)
        if op.record is SIZE:
            return [cast(getitem(shape_of(stacked), 0), op.outputs[0].dtype)]
        if op.record is CONCAT:
            return self._joined(_first(stacked, op))
        return [(getitem if op.record is READ else _rows)(stacked, op.inputs[1])]

    def _joined(self, stacked):
        dimensions = shape_of(stacked)
        count, length = getitem(dimensions, 0), getitem(dimensions, 1)
        shape = concatenate([stack([multiply(count, length)]), getitem(dimensions, slice(2, None))])
        return [reshape(stacked, shape), add(zeros(stack([count]), INT64), length)]


def _first(rows, concat):
    """Those of as many slots as are joined, from the first one on."""
    count = concat.inputs[2:]
    return getitem(rows, slice(None, count[0])) if count else rows


def _rows(stacked, indices):
    return take(stacked, indices, axis=0)


class _Uneven(NamedTuple):
    """Rows of several lengths: their items, of each where they begin, and its dimensions."""

    items: Tensor
    begins: Tensor
    dimensions: Tensor

    def instead(self, op):
        """What an operation on the array gives."""
        graph = op.graph
        if op.record is SIZE:
            return [cast(getitem(shape_of(graph.resolve(self.begins)), 0), op.outputs[0].dtype)]
        if op.record is CONCAT:
            return joined(graph.resolve(self.items), _first(graph.resolve(self.dimensions), op))
        row = row_of if op.record is READ else rows_of
        return [row(*self, graph.resolve(op.inputs[1]))]


def _uneven(tapes, create):
    """`_Uneven` of an array; None where dimensions are unknown."""
    flow = tapes.last_flow(create)
    dimensions = None if flow is None else dimensions_of_rows(tapes, create)
    if dimensions is None:
        return None
    with create.graph.as_default(), create.graph.control_dependencies(None):
        array = Access(create.outputs[0], flow)
        items = packed(create.graph, array, dimensions, create.attrs["dtype"])
        return _Uneven(items, begins_of(dimensions), dimensions)


class _Beside:
    """Values of the iterations that made an array, where a handle of it is seen."""

    def __init__(self):
        self._carried = {}

    def carried(self, view: Tensor, value: Tensor) -> Tensor | None:
        """What a handle, or a tape of handles, is to an array, of a value of the body that made it.

        None where the handle does not get there by tapes and branches.
        """
        source = origin(view)
        key = source, value
        if key not in self._carried:
            self._carried[key] = self._found(source, value)
        return self._carried[key]

    def _found(self, source, value):
        op = source.op
        if op.record is CREATE:
            return value
        if is_branch(op):
            return self._out_of_branch(source, value)
        if is_loop(op):
            return self._saved(Loop(op), source.index, value)
        if op.record is not RESTORE:
            return None
        tape = self.carried(op.inputs[0], value)
        if tape is None:
            return None
        spec = tape_spec(value.spec) if source.spec.is_tape else value.spec
        with op.graph.as_default(), op.graph.control_dependencies(None):
            return restore(op.graph.resolve(tape), op.inputs[1], spec)

    def _out_of_branch(self, source, value):
        case, ends = Branch(source.op), []
        for branch, end in zip(case.branches, case.ends(source.index), strict=True):
            with branch.as_default(), branch.control_dependencies(None):
                if end.op.record is EMPTY:
                    found = empty_tape(value.spec)
                else:
                    none = end.op.record is CONSTANT
                    found = nothing_like(value) if none else self.carried(end, value)
                if found is None:
                    return None
                ends.append(branch.resolve(as_tensor(found, branch)))
        return case.add_result(ends)

    def _saved(self, loop, place, value):
        """A tape beside that which a loop makes."""
        save = loop.variable(place).following.op
        if save.record is not SAVE or save.inputs[1] is not loop.counter:
            return None
        inner = self.carried(save.inputs[2], value)
        return None if inner is None else saved_by(loop, loop.body.resolve(inner))
