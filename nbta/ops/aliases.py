"""Which array a handle stands for, and which operations touch which array.

An array is known by the operation that makes it and, for a gradient array, the sources that it was
looked up by behind that: ``(op, *sources)``. None stands for what only the run tells.
"""

from collections import defaultdict

from nbta.graph.graph import running, subgraphs
from nbta.graph.operation import Operation, Tensor
from nbta.graph.spec import HANDLE
from nbta.graph.views import Branch, is_branch, origin, variables_in
from nbta.ops.array_access import Access
from nbta.ops.arrays import CLOSE, CREATE, LOOKUP, LOOKUPS, READ, READS, SIZE, WRITES
from nbta.ops.dispatch import CONSTANT
from nbta.ops.extents import outside
from nbta.ops.shaping import IDENTITY

#: What has an array's handle as its first input.
ON_ARRAYS = WRITES | READS | LOOKUPS | {SIZE, CLOSE}


def array_of(handle: Tensor, source=origin, roots=frozenset({CREATE})) -> tuple | None:
    """The array of a handle.

    Parameters
    ----------
    handle : Tensor
    source : callable
        Where a handle comes from, as far as somebody knows.
    roots : set of Record
        What makes a handle that is known by itself.
    """
    made = source(handle)
    if made.op.record in roots:
        return (made.op,)
    if made.op.record not in LOOKUPS:
        return None
    forward = array_of(made.op.inputs[0], source, roots)
    return None if forward is None else (*forward, made.op.attrs["source"])


def origins(handle: Tensor) -> set[Tensor]:
    """Where a handle may come from, in a graph that is being built.

    Through captures, branches, and the tapes that loops keep for gradients. What is no handle of an
    array made or looked up is known to the run alone; none is there where a branch has no array.
    """
    handle = outside(handle)
    op = handle.op
    if op.record is CONSTANT:  # in place of a handle where there is none
        return set()
    if op.record is IDENTITY:
        return origins(op.inputs[0])
    if is_branch(op):
        return set().union(*map(origins, Branch(op).ends(handle.index)))
    if op.record is not READ:
        return {handle}
    kept = [_kept_on(tape) for tape in origins(op.inputs[0])]
    return {handle} if any(tensor is None for tensor in kept) else set().union(*map(origins, kept))


def _kept_on(tape):
    """The handle in the body of a loop that a tape of handles keeps; the tape by its own."""
    for loop in tape.graph.operations:
        for inner, kept in loop.tapes.items():
            if isinstance(kept, Access) and kept.handle is tape:
                return inner
    return None


class ArrayUses:
    """The users of each array of a program.

    Parameters
    ----------
    program : Program
    source : callable
        Where a handle comes from.

    Attributes
    ----------
    operations : list of Operation
        All that may run, in bodies too.
    waited : set of Operation
        What control edges lead from.
    users : dict of list of Operation
        What has an array's handle as its first input, by the array.
    holders : dict of list of Operation
        What is given its handle as a value, such as a write that stores it.
    results : set
        Arrays whose handles the program gives.
    passed : set
        Those, and arrays whose handles are variables of loops or results of bodies.
    """

    def __init__(self, program, source=origin):
        self._source = source
        self.operations = list(running(program))
        self.waited = {other for op in self.operations for other in op.control_inputs}
        self.users, self.holders = defaultdict(list), defaultdict(list)
        self.results = self._arrays(program.outputs)
        self.passed = set(self.results)
        for op in self.operations:
            self._note(op)

    def array(self, handle: Tensor) -> tuple | None:
        """The array of a handle."""
        return array_of(handle, self._source)

    def _arrays(self, tensors):
        return {self.array(tensor) for tensor in tensors if tensor.kind == HANDLE}

    def _note(self, op):
        given, bodies = op.inputs, subgraphs(op)
        if op.record in ON_ARRAYS:
            self.users[self.array(given[0])].append(op)
            given = given[1:]
        if bodies:
            ends = [tensor for body in bodies for tensor in body.outputs]
            self.passed |= self._arrays([*variables_in(op), *ends])
            return
        for tensor in given:
            if tensor.kind == HANDLE:
                self.holders[self.array(tensor)].append(op)

    def is_value(self, array) -> bool:
        """Whether an array's handle is a value, so that others than its users may touch it."""
        return array in self.passed or array in self.holders

    def lookups(self, array) -> list[Operation]:
        """What looks a gradient array up."""
        found = self.users.get(array[:-1], ()) if len(array) > 1 else ()
        return [op for op in found if op.record in LOOKUPS and self.array(op.outputs[0]) == array]

    def touching(self, array) -> set[Operation]:
        """What has anything to do with an array."""
        kept = (self.users.get(array, ()), self.holders.get(array, ()), self.lookups(array))
        return set().union(*kept)

    def is_plain(self, array) -> bool:
        """Whether all that touch an array are known, and no control edge leads to or from them."""
        ops = self.users.get(array, ())
        return not self.is_value(array) and not any(map(self._is_special, ops))

    def _is_special(self, op):
        waits = op.control_inputs or op in self.waited
        odd = op.record in LOOKUPS and (op.record is not LOOKUP or len(op.inputs) > 2)
        return waits or odd or op.record is CLOSE
