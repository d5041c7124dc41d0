"""Users' arrays that are filled in order: lists of what loops compute.

Their elements lie one after the other without states.
"""

from typing import NamedTuple

from nbta.compiler.manager import Fact, analysis, contract
from nbta.compiler.nests import row_in_place
from nbta.compiler.program import Program, changes
from nbta.compiler.tapes import Tapes, place_of_flow
from nbta.graph.operation import Operation, Tensor
from nbta.graph.views import Loop, Variable, is_loop, origin
from nbta.ops.arrays import CREATE, GATHER, READ, SIZE, WRITE, WRITES
from nbta.ops.trip_counts import constant_of, counts_trips


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
    if body is not Loop(loop).body or not counts_trips(Loop(loop)):
        return None
    place = place_of_flow(loop, write, create)
    if write.inputs[1] is not Loop(loop).counter or place is None:
        return None
    return _Filled(loop, place, write)


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
    return tapes.is_row(tapes.number(read.inputs[1]), tapes.trips(filled.loop))
