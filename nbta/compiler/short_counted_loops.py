"""Loops in loops as short as an axis of an array, whose iterations are a few numbers."""

from nbta import shapes
from nbta.compiler.access_sets import indices_of
from nbta.compiler.induction import Clamped, Counts, Iteration, Length
from nbta.graph.graph import subgraphs
from nbta.graph.operation import DATA, Operation
from nbta.graph.views import Loop, is_loop
from nbta.ops.arrays.tensor_arrays import READ, WRITE
from nbta.ops.core.dispatch import CONSTANT, PARAMETER
from nbta.ops.indexing.items import GETITEM
from nbta.tuning import SWEEP_AXES, SWEEP_EXTRA


def is_short_counted_loop(loop: Loop, counts: Counts) -> bool:
    """Whether a loop in a loop takes no longer than an elementwise operation on an array would.

    It runs as many iterations as some axis is long, which is in memory, and an iteration computes
    numbers. Such a loop needs to look at signals no more often than that does: once before it.
    """
    owner = getattr(loop.op.graph, "owner", None)
    if (
        owner is None
        or not is_loop(owner)
        or not _is_along_axes(counts.iterations(loop.op), counts)
    ):
        return False
    body = loop.body.operations
    return all(map(_is_of_numbers, body)) and all(
        _is_touched_once(variable, body, counts) for variable in loop.variables()
    )


def _is_touched_once(variable, operations, counts):
    """Whether each iteration touches no more than one item of what a variable holds.

    Where items that a loop changes could be others that it reads, LLVM has both ways to go, and
    decides before a loop. It would do so for all iterations of the loop around at once.
    """
    if variable.parameter.spec.rank == 0:
        return True
    versions, places = {variable.parameter}, []
    for op in operations:
        if any(tensor in versions for tensor in op.inputs):
            if not (op.record is GETITEM or op.record.changes) or op.inputs[0] not in versions:
                return False
            places.append(list(map(counts.number, indices_of(op))))
            versions.update(op.outputs if op.record.changes else ())
    return all(place == places[0] for place in places)


def _is_along_axes(form, counts) -> bool:
    """Whether an integer is a sum of a few lengths at most."""
    if abs(form.constant) > SWEEP_EXTRA or sum(map(abs, form.terms.values())) > SWEEP_AXES:
        return False
    return all(_is_along_axis(atom, counts) for atom in form.terms)


def _is_along_axis(atom, counts):
    if isinstance(atom, shapes.Dim | Length):
        return True
    if isinstance(atom, Clamped):
        return _is_along_axes(atom.inner, counts)
    return isinstance(atom, Iteration) and _is_along_axes(
        counts.iterations(atom.body.owner), counts
    )


def _is_of_numbers(op: Operation) -> bool:
    """Whether an operation takes numbers, and items of arrays, and runs in no more than code."""
    if op.record in (PARAMETER, CONSTANT):
        return True
    if subgraphs(op):
        return False
    if op.record.changes:
        number = op.inputs[1].spec.rank == 0 and "key" in op.attrs
        return number and not any(isinstance(index, slice) for index in indices_of(op))
    plain = op.record in (READ, WRITE) or op.record.elementwise or op.record.selects
    moved = [*op.outputs, *(op.inputs[2:3] if op.record is WRITE else ())]
    return plain and all(t.kind != DATA or t.spec.rank == 0 for t in moved)
