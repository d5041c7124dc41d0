"""Choices between an item and what is to replace it, kept from becoming masked stores."""

from nbta.compiler.access_sets import is_same_item
from nbta.compiler.induction import Counts
from nbta.compiler.manager import Fact, analysis, contract
from nbta.compiler.program import Program, changes
from nbta.compiler.promoted_items import promotable
from nbta.compiler.sums import FLOATS, goes_in_vectors, is_free_of_loops
from nbta.graph.graph import running
from nbta.graph.operation import Operation
from nbta.graph.views import Loop, is_loop
from nbta.ops.core.arithmetic import WHERE, is_choice_of_compared
from nbta.ops.indexing.items import GETITEM, SET_ITEM


@contract(requires=[Fact.RANKS])
@changes
def keep_stores_whole(program: Program) -> Program:
    """Let vectors be stored whole where a choice leaves an item as it is, or replaces it.

    Of ``t[i] = new if c else t[i]``, as the tangents of ``d[i] = min(d[i], x)`` have it, LLVM 22
    makes stores under a mask, for which some processors take many times as long as for whole ones:
    `jvp` of shortest paths took 2.4 times the function, and takes 1.7 times. The smallest number
    itself is an instruction, not a choice. Scalar code has no masks, and is slower with these bits.
    """
    counts = analysis(Counts, program)
    for op in running(program):
        if is_loop(op) and is_free_of_loops(Loop(op)):
            loop = Loop(op)
            found = [choice for each in loop.body.operations for choice in _kept_by(each)]
            if found and (goes_in_vectors(loop, counts) or promotable(loop, counts)):
                for choice in found:
                    choice.know(keeps_item=True)
    return program


def _kept_by(op: Operation) -> list[Operation]:
    """The choice that an operation stores, where one of its ways is the item in that place."""
    if op.record is not SET_ITEM:
        return []
    choice = op.inputs[1].op
    keeps = _is_open(choice) and any(_reads_item_of(op, way.op) for way in choice.inputs[1:])
    return [choice] if keeps else []


def _reads_item_of(change: Operation, read: Operation) -> bool:
    return read.record is GETITEM and read.graph is change.graph and is_same_item(read, change)


def _is_open(op: Operation) -> bool:
    """Whether an operation chooses between two floats by something else than their comparison."""
    number = op.record is WHERE and op.outputs[0].spec.rank == 0 and op.outputs[0].dtype in FLOATS
    return number and not is_choice_of_compared(op)
