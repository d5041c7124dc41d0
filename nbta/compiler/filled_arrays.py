"""Users' arrays that are filled in order: lists of what loops compute.

Their elements lie one after the other without states.
"""

from nbta.compiler.array_fills import filling, row_in_place
from nbta.compiler.manager import Fact, analysis, contract
from nbta.compiler.program import Program, changes
from nbta.compiler.tapes import Tapes
from nbta.graph.views import origin
from nbta.ops.arrays.tensor_arrays import GATHER, READ, SIZE, WRITE


@contract(requires=[Fact.RANKS])
@changes
def pack_arrays(program: Program) -> Program:
    """Let numbers in arrays that are only read lie one after the other, without states.

    So do short rows.
    """
    tapes = analysis(Tapes, program)
    for array, users in list(tapes.uses.users.items()):
        plain = array is not None and len(array) == 1 and tapes.is_known(array)
        if not plain or not {op.record for op in users} <= _READING:
            continue
        create, filled = array[0], filling(tapes, array[0])
        values = [op.inputs[2] for op in users if op.record is WRITE]
        if (filled is None and not create.facts.is_appended) or not values:
            continue
        found = row_in_place(values[0].spec)
        if all(row_in_place(value.spec) == found for value in values):
            create.know(row=found)
            for op in users if found is not None and filled is not None else ():
                if op.record is READ and _is_there(tapes, filled, op):
                    op.know(is_written=True)
    return program


_READING = {READ, GATHER, WRITE, SIZE}


def _is_there(tapes, filled, read):
    """Whether what a read takes was written, for sure."""
    if origin(read.inputs[2]) is not filled.flow.last:
        return False
    return tapes.is_row(tapes.number(read.inputs[1]), tapes.iterations(filled.loop))
