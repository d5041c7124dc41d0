"""Passes on arrays that are written as a whole: they are tensors, read by rows."""

from nbta.compiler.array_fills import Whole, creation
from nbta.compiler.induction import Counts
from nbta.compiler.manager import Fact, analysis, contract
from nbta.compiler.passes import prune
from nbta.compiler.program import Program, changes
from nbta.graph.graph import substitute
from nbta.ops.arrays.tensor_arrays import SIZE
from nbta.ops.core.shaping import CAST
from nbta.ops.loops.aliases import ArrayUses


@contract(requires=[Fact.RANKS])
@changes
def arrays_to_tensors(program: Program) -> Program:
    """Read the rows of a tensor in place of an array that was written from it as a whole.

    It stays an array where a read may find anything but the row: where only the run tells its
    size, where a slot may be read twice and is cleared, where an index may be negative.
    """
    changed = sizes = _replace_sizes(program)
    done = set()
    while (whole := _next(program, done)) is not None:
        whole.replace()
        done.add(whole.array)
        changed = True
    return prune.in_place(program) if changed or sizes else program


def _next(program, done):
    """The next array that can be done without."""
    uses, counts = analysis(ArrayUses, program), analysis(Counts, program)
    for array in list(uses.users):
        if array is not None and array not in done:
            found = Whole.of(array, uses, counts, done)
            if found is not None:
                return found
    return None


def _replace_sizes(program):
    """Take the size of an array from where it was made, if it cannot grow."""
    uses, counts, changed = analysis(ArrayUses, program), analysis(Counts, program), False
    for array, users in uses.users.items():
        made = creation(array, counts)
        if made is None or len(array) > 1 or not uses.is_plain(array):
            continue
        for op in [op for op in users if op.record is SIZE]:
            size = op.graph.resolve(made.inputs[0])
            if size.dtype != op.outputs[0].dtype:
                attrs = {"dtype": op.outputs[0].dtype}
                size = op.graph.create(CAST, [size], attrs).outputs[0]
            substitute(op.graph, {op.outputs[0]: size})
            changed = True
    return changed
