"""The pass that computes again, or restores again, what a loop need not save."""

from functools import cache, partial

from nbta.compiler.manager import Fact, analysis, contract
from nbta.compiler.products import is_multiplied
from nbta.compiler.program import Program, changes
from nbta.compiler.recompute import Again, is_cheap, items_of, outermost_loop, saved_by
from nbta.compiler.tapes import Tapes
from nbta.graph.graph import lies_in, substitute
from nbta.graph.operation import HANDLE
from nbta.ops.arrays.tensor_arrays import LOOKUP
from nbta.ops.core.dispatch import CONSTANT, PARAMETER
from nbta.ops.loops.residuals import RESTORE


@contract(requires=[Fact.RANKS, Fact.TAPES_OF_LOOPS], breaks=[Fact.SAVED_BY_TAPES])
@changes
def rematerialise(program: Program) -> Program:
    """Compute again what a loop saves on a tape, where that takes little.

    From the number of the iteration follow variables that each iteration raises by as much, shapes
    and integers, and rows of captured tensors; from what other tapes of the loop keep anyway follow
    parts of it. `prune` then drops the tapes. What takes operations with numbers is chosen by
    `nbta.compiler.least_saved`.
    """
    done = set()
    while True:
        tapes = analysis(Tapes, program)
        reads = [op for op in tapes.uses.operations if op.record is RESTORE]
        if not any(_is_simple(tapes, op) for op in reads):
            return program
        saved = cache(partial(saved_by, tapes))  # what is put in place has the same values
        found = {op for op in reads if _replaced(tapes, op, saved)}
        if found <= done:  # what cannot be made again may have been given the same reads once more
            return program
        done |= found


def _is_simple(tapes, read):
    """Whether what a tape gives could be made again, by what makes it."""
    made = tapes.reaching_definition(read.outputs[0]).tensor
    if made.op.record in (RESTORE, LOOKUP):
        return made.kind == HANDLE or made.spec.is_tape
    if made.op.record is PARAMETER:
        return made.dtype.kind in "iu" or not made.spec.rank
    return made.op.record is CONSTANT or is_cheap(made.op) or items_of(made)


def _replaced(tapes, read, saved):
    """Put what is computed again in place of what a tape gives; whether that can be.

    ``saved(loop)`` is `saved_by`.
    """
    place = tapes.restored(read)
    if place is None or read.control_inputs or read in tapes.uses.waited:
        return False
    tape, _ = tapes.tape_of(read.inputs[0])
    users = tapes.restores[tape]
    if tape in tapes.shadows or any(op.record is not RESTORE for op in users):
        return False  # the tape stays
    outermost = outermost_loop(tape.loop, place.iterations)
    seen = lies_in(read.graph, outermost.graph)  # not from a branch of its own
    kept = saved(outermost) if seen and not any(map(is_multiplied, users)) else {}
    again = Again(read.graph, tape.body, place.iterations, kept, tapes).make(place.tensor)
    if again is None:
        return False
    substitute(read.graph, {read.outputs[0]: again})
    return True
