"""Which array a handle stands for, and which operations touch which array.

An array is known by the operation that makes it and, for a gradient array, the sources that it was
looked up by after that: ``(op, *sources)``. None stands for what only the run knows.

A derivative has a source of its own for its gradient arrays, which no lookup of the program has:
`own_source` finds it for reverse mode, `own_suffix` for forward mode.

`check_writes` refuses writes that a read sees and its gradient does not, as other edges than the
flow order them.
"""

import itertools
from collections import defaultdict

from nbta.errors import invalid
from nbta.graph.graph import Analysis, Graph, SubGraph, current, running, subgraphs, within
from nbta.graph.operation import FLOW, HANDLE, Operation, Tensor
from nbta.graph.order import before
from nbta.graph.views import Branch, arguments, is_branch, origin, variables_in
from nbta.ops.arrays.tensor_arrays import (
    CLOSE,
    CONCAT,
    CREATE,
    LOOKUP,
    LOOKUPS,
    READS,
    SIZE,
    SPLIT,
    WRITES,
    slots,
)
from nbta.ops.core.dimensions import outside
from nbta.ops.core.dispatch import CONSTANT, PARAMETER
from nbta.ops.core.filling import RANGE
from nbta.ops.core.shaping import IDENTITY
from nbta.ops.loops.residuals import RESTORE, saved_values

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


def own_source(wanted: str) -> str:
    """A source that no lookup has in the graph that is being built, nor in those around it.

    The gradient arrays of one forward array are distinguished by source alone, and a program may
    look up by any: ``wanted``, or the first of ``wanted_1``, ``wanted_2``, ... that it does not.
    """
    met = _met(_sources(current()))
    return next(name for name in _numbered(wanted) if name not in met)


def own_suffix(wanted: str) -> str:
    """The same for what `with_suffix` puts after the sources of all lookups."""
    sources = _sources(current())
    met = _met(sources)
    free = (
        name
        for name in _numbered(wanted)
        if met.isdisjoint(with_suffix(source, name) for source in sources)
    )
    return next(free)


def with_suffix(source: str, suffix: str) -> str:
    """The source of the array of tangents beside the gradient array of a source."""
    return f"{source}/{suffix}"


def _numbered(wanted):
    return itertools.chain([wanted], (f"{wanted}_{n}" for n in itertools.count(1)))


def _sources(graph: Graph) -> set[str]:
    """The sources of all lookups, in bodies too, of a graph and of those around it."""
    found = set()
    while True:
        found |= {op.attrs["source"] for op in within(graph.operations) if op.record in LOOKUPS}
        if not isinstance(graph, SubGraph):
            return found
        graph = graph.outer


def _met(sources):
    """The sources that another one must not be: ``source#3`` is also iteration 3 of ``source``."""
    return {"#".join(s.split("#")[:n]) for s in sources for n in range(1, s.count("#") + 2)}


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
    if op.record is PARAMETER:  # a value of a forward iteration, of which there is no tape as yet
        forward = getattr(handle.graph, "stands_for", lambda _: None)(handle)
        return {handle} if forward is None else origins(forward)
    if is_branch(op):
        return set().union(*map(origins, Branch(op).ends(handle.index)))
    if op.record is not RESTORE:
        return {handle}
    return set().union(*map(origins, saved_values(op.inputs[0])))


class ArrayUses(Analysis):
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
        super().__init__(program)
        self._source = source
        self.operations = list(running(program))
        self.waited = {other for op in self.operations for other in op.control_inputs}
        self.users, self.holders = defaultdict(list), defaultdict(list)
        self.results = self._arrays(program.outputs)
        self.passed = set(self.results)
        for op in self.operations:
            self._note(op)

    def differences(self, fresh: "ArrayUses") -> dict[str, tuple]:
        """What a new analysis says otherwise: operations, and what touches which array."""
        names = ("operations", "waited", "users", "holders", "results", "passed")
        found = [(name, _some(getattr(self, name)), _some(getattr(fresh, name))) for name in names]
        return {name: (old, new) for name, old, new in found if old != new}

    def array(self, handle: Tensor) -> tuple | None:
        """The array of a handle."""
        self.hold()
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
        self.hold()
        kept = (self.users.get(array, ()), self.holders.get(array, ()), self.lookups(array))
        return set().union(*kept)

    def is_plain(self, array) -> bool:
        """Whether all that touch an array are known, and no control edge leads to or from them."""
        self.hold()
        ops = self.users.get(array, ())
        return not self.is_value(array) and not any(map(self._is_special, ops))

    def _is_special(self, op):
        waits = op.control_inputs or op in self.waited
        odd = op.record in LOOKUPS and (op.record is not LOOKUP or len(op.inputs) > 2)
        return waits or odd or op.record is CLOSE


def _some(found):
    """A collection, without the empty lists that asking a table has put there."""
    return {key: ops for key, ops in found.items() if ops} if isinstance(found, dict) else found


def check_writes(operations, reached) -> None:
    """Refuse reads of what was written when the write lies before them, but not in their flow.

    Parameters
    ----------
    operations : list of Operation
        Of one graph, in an order that they can run in.
    reached : set of Tensor
        What depends on what a gradient is asked of.

    Raises
    ------
    InvalidArgumentError
        Where a gradient would be lost.
    """
    past = _Past()
    for op in operations:
        if op.record in READS or subgraphs(op):
            past.check_read(op)
        past.add(op, _brings(op, reached))


class _Past:
    """The writes before each operation, as bits of a number: all of them, and those by flow."""

    def __init__(self):
        self._writes, self._of_array = [], {}
        self._all, self._by_flow = {}, {}

    def add(self, op, brings):
        """Note an operation, after all that it needs."""
        own = 0
        if brings:
            own = 1 << len(self._writes)
            self._writes.append(op)
            for handle in _touched(op, WRITES):
                self._of_array[handle] = self._of_array.get(handle, 0) | own
        self._all[op] = own | _union(self._all, before(op))
        self._by_flow[op] = own | _union(self._by_flow, _flow_before(op))

    def check_read(self, read):
        """Compare what a read comes after with what is in its flow.

        After a write by an edge, it is refused where it may read what that wrote; after it by
        creation order alone, where it is proven to, as other reads may mean other slots.
        """
        unseen = _union(self._of_array, _touched(read, READS))
        unseen &= ~_union(self._by_flow, _flow_before(read))
        waited = _union(self._all, _waits(read)) if unseen else 0
        while unseen:
            last = unseen.bit_length() - 1
            write = self._writes[last]
            if (_may_share if waited >> last & 1 else _provably_share)(read, write):
                raise _lost(read, write)
            unseen -= 1 << last


def _union(sets, keys):
    result = 0
    for key in keys:
        result |= sets.get(key, 0)
    return result


def _lost(read, write):
    message = (
        f"gradients: {read.name!r} runs after {write.name!r} and may read the value that it wrote, "
        "but through another name of the array, which no gradient passes; read from the array "
        "that the write returned"
    )
    return invalid("lost_gradient", message)


def _waits(op):
    """What a read comes after, other than by flow."""
    if op.record in READS:
        return [*(tensor.op for tensor in op.inputs[1:-1]), *op.control_inputs]
    return op.control_inputs if subgraphs(op) else []


def _brings(op, reached):
    """Whether an operation may write what depends on what a gradient is asked of."""
    if op.record in WRITES:
        return op.outputs[0] in reached
    return bool(subgraphs(op)) and not reached.isdisjoint(op.inputs)


def _touched(op, records):
    """Handles of the arrays that an operation touches, or that its bodies do."""
    if op.record in records:
        return {op.inputs[0]}
    found = set()
    for body in subgraphs(op):
        given = dict(zip(body.inputs, arguments(op, body), strict=True))
        for inner in body.operations:
            found |= {given[handle] for handle in _touched(inner, records) if handle in given}
    return found


def _flow_before(op):
    return [tensor.op for tensor in op.inputs if tensor.kind == FLOW]


def _may_share(one, other):
    """Whether two operations may touch the same slot."""
    both = slots(one), slots(other)
    return None in both or bool(both[0] & both[1])


def _provably_share(read, write):
    """Whether a read touches the slot that a write touches, as far as the graph tells."""
    if subgraphs(read) or subgraphs(write):
        return False
    if read.record is CONCAT or read.inputs[1].op.record is RANGE:  # of all slots
        return True
    both = slots(read), slots(write)
    if None not in both:
        return bool(both[0] & both[1])
    return write.record is not SPLIT and read.inputs[1] is write.inputs[1]
