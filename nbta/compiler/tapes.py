"""Tapes of programs: where values come from by way of them, and which need not be saved twice.

A loop in a loop makes a tape in each iteration of the outer loop, which that saves on a tape of
its own: what is restored from those is known by where the outer loop made it, and by the iteration.
"""

from collections import defaultdict
from typing import NamedTuple

from nbta.compiler.induction import Counts, Iteration, Linear, around, depth, is_outside
from nbta.graph.graph import SubGraph, lies_in, running, subgraphs
from nbta.graph.operation import DATA, FLOW, Operation, Tensor
from nbta.graph.order import ordered
from nbta.graph.views import (
    Branch,
    Loop,
    Variable,
    holder_in,
    is_branch,
    is_loop,
    origin,
    variable_of,
)
from nbta.ops.arrays.tensor_arrays import WRITES
from nbta.ops.core.dispatch import CONSTANT, PARAMETER, special
from nbta.ops.loops.aliases import ArrayUses, array_of
from nbta.ops.loops.branch import CASE
from nbta.ops.loops.iteration_counts import counts_iterations
from nbta.ops.loops.loop import WHILE
from nbta.ops.loops.residuals import (
    ADD_SAVED,
    ADD_SHADOWS,
    EMPTY,
    RESTORE,
    RESTORE_ROWS,
    SAVE,
    SHADOW,
)


class Tape(NamedTuple):
    """A variable of a loop to which each iteration adds a value: the loop, and its place there."""

    loop: Operation
    place: int

    @property
    def body(self) -> SubGraph:
        """The loop's."""
        return Loop(self.loop).body

    @property
    def variable(self) -> Variable:
        """The variable."""
        return Loop(self.loop).variable(self.place)

    @property
    def last(self) -> Tensor:
        """The tape after the loop."""
        return self.variable.last

    @property
    def save(self) -> Operation:
        """What adds a value."""
        return self.variable.following.op

    @property
    def value(self) -> Tensor:
        """What each iteration saves."""
        return self.save.inputs[2]


class Place(NamedTuple):
    """Where a value is made, and the indices of the iterations in which, of loops from outside in.

    Without iterations it is made where everybody who sees it can see it without a tape.
    """

    tensor: Tensor
    iterations: tuple[Tensor, ...] = ()


class Taken(NamedTuple):
    """A number of iterations that a tape brings, by where it was made and in which iterations."""

    tensor: Tensor
    iterations: tuple

    @property
    def graph(self):
        """The innermost graph that it depends on the iterations of."""
        graphs = [
            atom.body
            for _, terms in self.iterations
            for atom, _ in terms
            if type(atom) is Iteration
        ]
        return max(graphs, key=depth, default=None)


def made(tensor):
    """`origin`; of a handle, flow or tape that only one branch of several makes, in that branch."""
    source = origin(tensor)
    while source.kind != DATA and source.op.record is CASE:
        ends = Branch(source.op).ends(source.index)
        ends = [end for end in ends if end.op.record not in (CONSTANT, EMPTY)]
        if len(ends) != 1:
            return source
        source = origin(ends[0])
    return source


class Tapes(Counts):
    """The tapes of a program, and who uses which array; made again when the program changes.

    Attributes
    ----------
    uses : ArrayUses
        With arrays known by way of tapes, too.
    all : list of Tape
    restores : dict of list of Operation
        What restores values, by tape.
    shadows : set of Tape
        Those that have shadows.
    """

    def __init__(self, program):
        super().__init__(program)
        self._orders = {}
        operations = list(running(program))
        found = (_as_tape(op, place) for op in operations if is_loop(op) for place in _tapes_of(op))
        self.all = [tape for tape in found if tape is not None]
        self._known = set(self.all)
        self.restores, self.shadows = defaultdict(list), set()
        for op in operations:
            if op.record in (RESTORE, RESTORE_ROWS):
                self.restores[self.tape_of(op.inputs[0])[0]].append(op)
            elif op.record is SHADOW:
                self.shadows.add(self.tape_of(op.inputs[0])[0])
        self.uses = ArrayUses(program, self._made_in_some_iteration)

    def differences(self, fresh: "Tapes") -> dict[str, tuple]:
        """What a new analysis says otherwise: tapes, users of arrays, and integers."""
        orders = self._orders.items()
        pairs = {f"the order of {graph!r}": (n, fresh.order(graph)) for graph, n in orders}
        pairs["tapes"] = self.all, fresh.all
        own = {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}
        return own | self.uses.differences(fresh.uses) | super().differences(fresh)

    def is_known(self, array) -> bool:
        """Whether all that touches an array is among its users."""
        if array is None or array in self.uses.results:
            return False
        return not self.uses.is_value(array) or not self.uses.users.get(None)

    def size_is_known(self, create: Operation, graph) -> Tensor | None:
        """A flow for which an array that does not grow, or was filled, has its last size.

        Where that is seen from a graph after it; else None.
        """
        if not create.attrs["dynamic_size"]:
            return special(FLOW)
        if not lies_in(graph, create.graph):  # the loop that made it is over
            writes = [op for op in self.uses.users[(create,)] if op.record in WRITES]
            over = self.is_known((create,)) and all(lies_in(w.graph, create.graph) for w in writes)
            return special(FLOW) if over else None
        flow, order = self.last_flow(create), self.order(create.graph)
        while graph is not create.graph and graph.outer is not create.graph:
            graph = graph.outer
        after = flow is not None and graph is not create.graph and self.is_known((create,))
        return flow if after and order[flow.op] < order[graph.owner] else None

    def last_flow(self, create: Operation) -> Tensor | None:
        """The flow of an array after all writes, where it makes one way through its graph."""
        graph, flow, passed = create.graph, create.outputs[1], set()
        while flow is not None:
            last, users = flow, [op for op in graph.operations if any(t is flow for t in op.inputs)]
            ways = [end for op in users for end in op.outputs if _goes_on(create, flow, end)]
            flow = ways[0] if len(ways) == 1 else None
            passed.update(end.op for end in ways)
        writes = [op for op in self.uses.users[(create,)] if op.record in WRITES]
        return last if not ways and {holder_in(graph, op) for op in writes} <= passed else None

    def order(self, graph) -> dict[Operation, int]:
        """The places of a graph's operations in running order."""
        if graph not in self._orders:
            self._orders[graph] = {op: k for k, op in enumerate(ordered(graph.operations))}
        return self._orders[graph]

    def tape_of(self, tensor: Tensor) -> tuple[Tape | None, tuple]:
        """The tape that a tensor is after its loop, and the iterations of the loops around."""
        source, iterations = self.reaching_definition(tensor)
        tape = Tape(source.op, source.index) if is_loop(source.op) else None
        return (tape if tape in self._known else None), iterations

    def reaching_definition(self, tensor: Tensor) -> Place:
        """Where a value is made, also if tapes bring it."""
        self.hold()
        source = made(tensor)
        if source.op.record is not RESTORE:
            return Place(source)
        tape, iterations = self.tape_of(source.op.inputs[0])
        if tape is None:
            return Place(source)
        value = made(tape.value)
        if not lies_in(value.graph, tape.body):
            if not iterations:
                return self.reaching_definition(value)
            return Place(value, iterations) if value.graph is tape.loop.graph else Place(source)
        if value.op.record is RESTORE:
            return Place(source)
        return Place(value, (*iterations, source.op.inputs[1]))

    def _made_in_some_iteration(self, handle):
        """Where a handle is made, also if tapes bring it that themselves got it from tapes."""
        found, seen = self.reaching_definition(handle).tensor, set()
        while found.op.record is RESTORE and found not in seen:
            seen.add(found)
            tape = self._some_tape(found.op.inputs[0], seen)
            if tape is not None:
                found = self.reaching_definition(tape.value).tensor
        return found

    def _some_tape(self, tensor, seen):
        """The tape of which one of some iteration is restored."""
        source = self.reaching_definition(tensor).tensor
        while source.op.record is RESTORE and source not in seen:
            seen.add(source)
            outer = self._some_tape(source.op.inputs[0], seen)
            if outer is None:
                return None
            source = self.reaching_definition(outer.value).tensor
        tape = Tape(source.op, source.index) if is_loop(source.op) else None
        return tape if tape in self._known else None

    def same_iterations(self, one, other) -> bool:
        """Whether indices of iterations are the same numbers."""
        numbers = zip(map(self.number, one), map(self.number, other), strict=False)
        return len(one) == len(other) and all(a == b for a, b in numbers)

    def _computed(self, tensor):
        if tensor.op.record is not RESTORE:
            return super()._computed(tensor)
        tape, iterations = self.tape_of(tensor.op.inputs[0])
        if tape is None:
            return None
        return self._in_iteration(tape.value, tape.loop, (*iterations, tensor.op.inputs[1]))

    def _in_iteration(self, tensor, loop, iterations):
        """An integer that a loop's body makes, in some iteration; None where it is not plain."""
        found = self.number(tensor)
        rest, bodies = Linear(found.constant, found.terms), around(Loop(loop).body)
        during = list(zip(bodies, reversed(iterations), strict=False))
        steps = [(rest.terms.pop(Iteration(body), 0), iteration) for body, iteration in during]
        if len(during) == len(iterations) and is_outside(rest, during[-1][0]):
            return sum((self.number(iteration) * step for step, iteration in steps), rest)
        source = origin(tensor)
        made = source.op.record is WHILE and source.index == 0
        if not made or source.graph is not Loop(loop).body:
            return None
        forms = (self.number(index) for index in iterations)
        frozen = tuple(form.key for form in forms)
        return Linear(0, {Taken(source, frozen): 1})

    def restored(self, restore: Operation) -> Place | None:
        """What an operation restores: the value, and its iterations; None where that is unknown."""
        if restore.record is not RESTORE:
            return None
        tape, iterations = self.tape_of(restore.inputs[0])
        if tape is None or lies_in(restore.graph, tape.body):
            return None
        return Place(tape.value, (*iterations, restore.inputs[1]))

    def is_made(self, loop: Operation, iterations: tuple) -> bool:
        """Whether a loop is proven to make an iteration, in iterations of those around it.

        The loops are each in the body of the one before, and their iterations from the outside in.
        """
        *outer, index = iterations
        if not outer:
            return self.is_row(self.number(index), self.iterations(loop))
        count = self._in_iteration(loop.outputs[0], loop.graph.owner, outer)
        return count is not None and self.is_row(self.number(index), count)

    def is_row(self, index, count) -> bool:
        """Whether an index is proven to be from 0 to before a count."""
        return self.is_natural(index) and self.is_natural(count - Linear(1) - index)


def is_shadow(tensor: Tensor) -> bool:
    """Whether a tape is a shadow."""
    seen, todo = set(), [tensor]
    while todo:
        tensor = origin(todo.pop())
        op = tensor.op
        if tensor in seen:
            continue
        seen.add(tensor)
        if op.record in (SHADOW, ADD_SAVED, ADD_SHADOWS):
            return True
        if op.record in (SAVE, RESTORE):
            todo.append(op.inputs[0])
        elif is_loop(op):
            todo.append(Loop(op).variable(tensor.index).first)
        elif is_branch(op):
            todo += Branch(op).ends(tensor.index)
        elif op.record is PARAMETER and variable_of(tensor) is not None:
            todo.append(variable_of(tensor).first)
    return False


def _tapes_of(op):
    """The places of a loop's variables that are tapes."""
    return [place for place, tensor in enumerate(op.outputs) if tensor.spec.is_tape]


def _as_tape(op, place):
    """A variable of a loop as a tape of all its iterations; None where it is none."""
    tape = Tape(op, place)
    variable, save = tape.variable, tape.save
    plain = save.record is SAVE and save.inputs[0] is variable.parameter
    plain = plain and save.inputs[1] is Loop(op).counter and counts_iterations(Loop(op))
    return tape if plain and origin(variable.first).op.record is EMPTY else None


def place_of_flow(loop, write, create):
    """The variable of a loop that has the flow of an array, and nothing but this write in it."""
    ends = enumerate(Loop(loop).following)
    place = next((place for place, end in ends if end is write.outputs[0]), None)
    if place is None:
        return None
    flow = Loop(loop).variable(place)
    plain = write.inputs[3] is flow.parameter and flow.first is create.outputs[1]
    return place if plain else None


def _goes_on(create, flow, end):
    """Whether a result of an operation that uses a flow of an array is that flow after writes."""
    op = end.op
    if op.record in WRITES:
        return array_of(op.inputs[0]) == (create,)
    if is_loop(op):
        variable = Loop(op).variable(end.index)
        return variable.first is flow and not variable.is_kept
    return is_branch(op) and any(_comes_from(flow, way) for way in Branch(op).ends(end.index))


def _comes_from(flow, end):
    """Whether a flow in a branch goes on from one around it."""
    found = origin(end)
    while found is not flow:
        op = found.op
        if op.record in WRITES:
            found = origin(op.inputs[-1])
        elif is_loop(op):
            found = origin(Loop(op).variable(found.index).first)
        else:
            return is_branch(op) and any(_comes_from(flow, e) for e in Branch(op).ends(found.index))
    return True


def can_shift(tapes, tape):
    """Whether a tape of a variable could begin with its first value and go on with the next."""
    variable = saved_variable(tape)
    if variable is None or origin(tape.value) is not tape.value or not is_local(tapes, tape):
        return False
    specs = [t.spec for t in (variable.first, variable.parameter, variable.following)]
    shape = specs[0].shape
    even = shape is not None and None not in shape and all(spec == specs[0] for spec in specs)
    return even and specs[0].kind == DATA


def is_local(tapes, tape):
    """Whether all that uses a tape restores values of it, one by one, in the graph of its loop."""
    if tape in tapes.shadows or any(made(other.value) is tape.last for other in tapes.all):
        return False
    return all(
        op.record is RESTORE and lies_in(op.graph, tape.loop.graph) and not op.control_inputs
        for op in tapes.restores[tape]
    )


def saved_variable(tape) -> Variable | None:
    """The variable that a tape has; None where it has something else, or the counter."""
    variables = Loop(tape.loop).variables()[1:]
    return next((v for v in variables if v.parameter is tape.value), None)


def is_invariant(value: Tensor, body: SubGraph) -> bool:
    """Whether a value is loop invariant: computed without effects from values around a body."""
    seen, todo = set(), [origin(value)]
    while todo:
        source = todo.pop()
        op = source.op
        if source in seen or op.record is CONSTANT or not lies_in(source.graph, body):
            continue
        plain = op.record.pure and not subgraphs(op) and not op.control_inputs
        if op.record is PARAMETER or source.graph is not body or not plain:
            return False
        seen.add(source)
        todo += map(origin, op.inputs)
    return True
