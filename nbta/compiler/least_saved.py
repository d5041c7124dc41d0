"""What a loop saves for its gradient is a minimum cut.

An adjoint iteration needs some values of the iteration. Each may be saved, or computed again from
others that are. Values are the nodes of a network that flows from what can only be saved, such as
a variable or an exponential, along operations to what is needed; a node may be cut at the price of
a tape, and an operation can be reached from the source at the price of doing it once more. The
nodes of a cut of least price are what to save (Moses, Churavy, SC 2021, have this of Enzyme; prices
of operations are ours).
"""

from collections import deque

from nbta.compiler.manager import Fact, analysis, contract
from nbta.compiler.passes import prune
from nbta.compiler.program import Program, changes
from nbta.compiler.recompute import is_multiplied
from nbta.compiler.tapes import Tape, Tapes
from nbta.graph.copying import keep_shapes
from nbta.graph.graph import lies_in, substitute
from nbta.graph.operation import DATA
from nbta.graph.views import Loop, origin
from nbta.ops.dispatch import CONSTANT, PARAMETER
from nbta.ops.residuals import RESTORE

#: Prices of an operation on a number, of a tape of bytes of one, and of items of an array by those
#: of a number: so many operations take as long as to save a number and to restore it.
OPERATION, BYTE, ITEMS = 4, 2, 64
FREE, NEVER = 0, 1 << 40


@contract(requires=[Fact.RANKS, Fact.TAPES_OF_LOOPS], breaks=[Fact.SAVED_BY_TAPES])
@changes
def save_least(program: Program) -> Program:
    """Save values of loops from which adjoint iterations compute others in the least time."""
    tapes = analysis(Tapes, program)
    by_loop: dict = {}
    for tape in tapes.all:
        by_loop.setdefault(tape.loop, []).append(tape)
    found = [_Choice(tapes, loop, own).make() for loop, own in by_loop.items() if len(own) > 1]
    return prune.in_place(program) if any(found) else program


class _Choice:
    """What a loop saves: what it saves now, and what would cost less."""

    def __init__(self, tapes, loop, own):
        self._tapes, self._loop, self._body = tapes, loop, Loop(loop).body
        self._own = {tape.value: tape for tape in own if tape.value.kind == DATA}
        self._reads, self._graph, self._trips = {}, None, None
        self._again: dict = {}

    def make(self) -> bool:
        """Change what the loop saves; whether that changed."""
        movable = [tape for tape in self._own.values() if self._is_movable(tape)]
        if not movable:
            return False
        network = self._network([tape.value for tape in movable])
        saved = network.cut() if network else None
        if saved is None:
            return False
        return self._put(movable, saved)
