"""Tapes as arrays: one for a whole nest of loops, in place of one for each iteration around.

A loop in the body of another one makes a tape in each of its iterations. `tapes_to_arrays` makes
one array before the nest that all iterations fill one after the other, as a list of lists lies in
memory in Apache Arrow's columnar format. Where the values of an outer iteration begin is a sum of
iteration counts, which the loops around carry; adjoint loops read it from an array of its own. A
shadow is a tensor of as many items, to which code adds in place.
"""

from collections import defaultdict
from itertools import chain
from typing import NamedTuple

import numpy as np

from nbta import shapes
from nbta.codegen.code import NotCompiledError
from nbta.compiler.array_fills import row_in_place
from nbta.compiler.carrying import as_long, bodies_of, out_of_branch, owners_around, threaded
from nbta.compiler.hoisted_saves import hoisted
from nbta.compiler.induction import depth
from nbta.compiler.manager import Fact, analysis, contract
from nbta.compiler.passes import prune
from nbta.compiler.program import Program, changes
from nbta.compiler.shape_vectors import shape_in
from nbta.compiler.tapes import Tape, Tapes, is_invariant, is_shadow, made
from nbta.graph.graph import everything, lies_in, running, subgraphs, substitute
from nbta.graph.labels import SAVED, call_after
from nbta.graph.operation import DATA, FLOW, FLOW_SPEC, TAPES, Facts, Operation, Spec, Tensor
from nbta.graph.views import (
    Branch,
    Loop,
    is_body_of_branch,
    is_branch,
    is_loop,
    origin,
    variable_of,
)
from nbta.ops.arrays.tensor_arrays import (
    CREATE,
    GATHER,
    ITERATION,
    LOOKUP,
    READ,
    SIZE,
    WRITTEN,
    Access,
    build,
)
from nbta.ops.core.arithmetic import ADD_N, add, less
from nbta.ops.core.dispatch import PARAMETER, as_tensor, special
from nbta.ops.core.filling import zeros
from nbta.ops.indexing.items import add_item, getitem
from nbta.ops.indexing.joining import concatenate, stack
from nbta.ops.loops.bodies import trace
from nbta.ops.loops.iteration_counts import constant_of
from nbta.ops.loops.loop import COUNTER, ONE, add_while
from nbta.ops.loops.residuals import (
    ADD_SAVED,
    ADD_SHADOWS,
    EMPTY,
    RESTORE,
    RESTORE_ROWS,
    SAVE,
    SHADOW,
    shadow,
)

_OF_FLOWS = TAPES[FLOW]


@contract(needed=True)
@changes
def flows_of_tapes(program: Program) -> Program:
    """Let a tape of flows be a flow: what is restored comes after all that was saved."""
    found = [op for op in everything(program) if any(t.kind == _OF_FLOWS for t in op.outputs)]
    restores = [op for op in everything(program) if op.record is RESTORE]
    restores = [op for op in restores if op.inputs[0].kind == _OF_FLOWS]
    for op in found:
        for tensor in op.outputs:
            if tensor.kind == _OF_FLOWS:
                tensor.spec = FLOW_SPEC
        if op.record is PARAMETER:
            op.attrs["spec"] = FLOW_SPEC
    for op in [*(op for op in found if not subgraphs(op)), *restores]:
        with op.graph.as_default(), op.graph.control_dependencies(None):
            if op.record in (EMPTY, SHADOW):
                flow = special(FLOW)
            elif op.record in (SAVE, ADD_SAVED):
                flow = op.graph.create(ADD_N, [op.inputs[0], op.inputs[2]]).outputs[0]
            elif op.record is ADD_SHADOWS:
                flow = op.graph.create(ADD_N, op.inputs).outputs[0]
            elif op.record is RESTORE:
                flow = op.inputs[0]
            else:
                continue
        substitute(op.graph, {op.outputs[0]: flow})
    return prune.in_place(program) if found else program


@contract(requires=[Fact.RANKS, Fact.TAPES_OF_LOOPS], breaks=[Fact.TAPES_OF_LOOPS], needed=True)
@changes
def tapes_to_arrays(program: Program) -> Program:
    """Let loops fill an array in place of a tape, and loops in loops one for all iterations."""
    operations = list(running(program))
    if not any(op.record is SAVE for op in operations):
        return program
    tapes, nests = analysis(Tapes, program), {}
    _begin_around_branches(tapes, operations)
    operations = list(running(program))
    leaves, sums = _leaves(tapes, operations), _Sums(tapes, nests)
    for leaf in leaves:
        if leaf.shadows:
            sums.note(leaf, _nest_of(leaf.owners, nests).join(leaf))
        elif _is_saved_around(leaf):
            _save_around(leaf, nests)
        else:
            leaf = leaf if leaf.before else hoisted(leaf, tapes)
            _nest_of(leaf.owners, nests, len(leaf.before)).join(leaf)
    for op in operations:
        if op.record is RESTORE and not op.outputs[0].spec.is_tape and sums.is_shadow(op.inputs[0]):
            sums.restore(op)
    for op in filter(is_loop, operations):
        loop = Loop(op)
        for variable in loop.variables():
            if variable.parameter.spec.is_tape:
                loop.body.outputs[variable.place] = variable.parameter
        loop.body.changed()
    return prune.in_place(program)


class Leaf(NamedTuple):
    """A tape of values that are no tapes, what restores them, and in which iterations.

    ``owners`` are the loop that makes it, those around, and branches in between, from the inside.
    ``shadows`` tells how many there are that need the shapes of the values, or their number.
    """

    tape: Tape
    save: Operation
    before: list[Operation]
    owners: list[Operation]
    reads: list[tuple[Operation, tuple]]
    shadows: int

    @property
    def value(self) -> Tensor:
        """What is saved."""
        return self.save.inputs[2]


def _leaves(tapes, operations):
    """All tapes that something restores values from."""
    found, shadows, leaves = defaultdict(list), defaultdict(list), []
    for op in operations:
        if op.record is SHADOW:
            inner, depth = _innermost(*_under(tapes, op.inputs[0]))
            save = _saves(inner)[0]
            if _is_ragged(op, save.inputs[2]) or _is_now_and_then(save):
                shadows[inner].append((op, depth))
                found[inner] += []
        if op.record in (RESTORE, RESTORE_ROWS) and not op.outputs[0].spec.is_tape:
            source, iterations = tapes.reaching_definition(op.inputs[0])
            if is_loop(source.op):
                found[Tape(source.op, source.index)].append((op, iterations))
            elif not is_shadow(source):
                raise NotCompiledError(f"{op.name} restores from a tape that only the run knows")
    for tape, reads in found.items():
        if is_shadow(tape.last):
            continue
        save, before = _saves(tape)
        depths = [len(iterations) for _, iterations in reads] + [
            depth for _, depth in shadows[tape]
        ]
        owners = owners_of(tape.loop, [op for op, _ in reads + shadows[tape]], max(depths))
        plain = not before or (_begins_there(tape, before) and not shadows[tape])
        once = len(owners or ()) == 1 or (plain and save.graph is tape.body)
        if save is None or owners is None or not once:
            raise NotCompiledError(f"iterations of {tape.loop.name} save on a tape in several ways")
        leaves.append(Leaf(tape, save, before, owners, reads, len(shadows[tape])))
    return leaves


def _begins_there(tape, before):
    """Whether what is saved before a loop is saved where the loop is, one value after the other."""
    indices = [constant_of(save.inputs[1]) for save in before]
    there = all(save.graph is tape.loop.graph for save in before)
    return there and indices == list(range(len(before)))


def _innermost(source, iterations):
    """The tape of values that are no tapes in a tape, and how many loops are around that."""
    if not is_loop(source.op):
        raise NotCompiledError(f"{source.name} is a tape that only the run knows")
    tape, depth = Tape(source.op, source.index), len(iterations)
    while (save := _saves(tape)[0]) is not None and save.inputs[2].spec.is_tape:
        inner = made(save.inputs[2])
        if not (is_loop(inner.op) and lies_in(inner.graph, tape.body)):
            raise NotCompiledError(f"{tape.loop.name} saves a tape of another loop")
        tape, depth = Tape(inner.op, inner.index), depth + 1
    return tape, depth


def _under(tapes, tensor):
    """The tape that a tape is, or is a shadow of, after its loop, and its iterations."""
    source = origin(tensor)
    op = source.op
    if not is_shadow(source):
        return tapes.reaching_definition(source)
    if op.record is RESTORE:
        outer, iterations = _under(tapes, op.inputs[0])
        return made(Tape(outer.op, outer.index).value), (*iterations, op.inputs[1])
    if op.record in (SHADOW, ADD_SAVED, ADD_SHADOWS):
        return _under(tapes, op.inputs[0])
    if is_branch(op):
        return _under(tapes, Branch(op).ends(source.index)[0])
    variable = Loop(op).variable(source.index) if is_loop(op) else variable_of(source)
    return _under(tapes, variable.first)


def _saves(tape):
    """What saves values in iterations, and what did before the first; None for anything else."""
    inside, before = [], []
    _follow(tape.variable.following, tape.variable.parameter, inside)
    _follow(tape.variable.first, None, before)
    return (inside[0] if len(inside) == 1 else None), before[::-1]


def _is_now_and_then(save):
    """Whether only some iterations save a value."""
    return is_body_of_branch(save.graph)


def _follow(end, start, found):
    """Note what saves on a tape on the way from one state of it to another, from the last on."""
    tape = origin(end)
    while tape is not start and tape.op.record is not EMPTY:
        if is_branch(tape.op):
            for each in Branch(tape.op).ends(tape.index):
                _follow(each, start, found)
            return
        if tape.op.record is not SAVE:
            raise NotCompiledError(f"{tape.name} holds sums of adjoints, which a tape has saved")
        found.append(tape.op)
        tape = origin(tape.op.inputs[0])


def owners_of(loop: Operation, users, depth) -> list | None:
    """A loop, and so many loops around it, with branches in between, from the inside; or None."""
    if not depth and all(lies_in(op.graph, loop.graph) for op in users):
        return [loop]
    around = owners_around(loop.graph, depth)
    return None if around is None else [loop, *around]


def _level(owners, op, iterations):
    """The place of the innermost owner after which an operation uses what iterations made."""
    passed = 0
    for place, owner in enumerate(owners):
        passed += place > 0 and is_loop(owner)
        if passed == len(iterations) and lies_in(op.graph, owner.graph):
            return place
    raise NotCompiledError(f"{op.name} uses a tape outside of the loops that made it")


def _is_saved_around(leaf):
    """Whether a loop in the body of another one saves one number, always the same."""
    plain = _is_number(leaf.value) and len(leaf.owners) > 1 and is_loop(leaf.owners[1])
    plain = plain and all(op.record is RESTORE and iterations for op, iterations in leaf.reads)
    return plain and is_invariant(leaf.value, leaf.tape.body)


def _save_around(leaf, nests):
    """Let the loop around one that saves a number save it, once for all its iterations.

    A loop without iterations has no number: zero is saved then, and nobody restores it.
    """
    loop, value = leaf.tape.loop, leaf.value
    around = loop.graph
    if lies_in(origin(value).graph, leaf.tape.body):
        with around.as_default(), around.control_dependencies(None):
            none = as_tensor(np.zeros((), value.dtype), around)
        value = Loop(loop).add_variable(none, lambda _: leaf.value)
    outside = _nest_of(leaf.owners[1:], nests)
    saved = outside.keep(around.resolve(origin(value)))
    for read, iterations in leaf.reads:
        level = _level(leaf.owners, read, iterations)
        found = outside.kept(saved, iterations, level - 1, leaf.value.spec)
        substitute(read.graph, {read.outputs[0]: read.graph.resolve(found)})


def _nest_of(owners, nests, ahead=0):
    key = tuple(owners)
    return nests.setdefault((key, ahead) if ahead else key, Nest(key, nests, ahead))


class Nest:
    """A loop with the loops and branches around it.

    Parameters
    ----------
    owners : tuple of Operation
        From the inside out; the first fills arrays.
    others : dict of Nest
        All, by these, and by ``ahead`` if that is not 0.
    ahead : int
        How many values each run of the loop saves before its first iteration.

    Attributes
    ----------
    filling : Operation
        The loop.
    """

    def __init__(self, owners, others, ahead=0):
        self._owners, self.filling, self._others = owners, owners[0], others
        self._ahead = ahead
        self._home = owners[-1].graph
        self._is_repeated = any(map(is_loop, owners[1:]))
        self._begin = self._total = self._kept = None
        self._starts: dict[tuple, Tensor] = {}

    def _bodies(self):
        """The bodies that the loop lies in, from the inside out."""
        return [op.graph for op in self._owners[:-1]]

    @property
    def begin(self) -> Tensor:
        """How many values earlier runs of the loop have saved, in the body around it."""
        if self._begin is None:
            with self._home.as_default():
                zero = as_tensor(np.int64(0), self._home)
            *_, self._total = threaded(self._bodies(), zero, self._counted)
        return self._begin

    @property
    def total(self) -> Tensor:
        """How many iterations all runs of the loop make, after the nest."""
        if len(self._owners) == 1:
            return Loop(self.filling).iterations
        if self._begin is None:
            assert self.begin is not None  # it counts, and finds the total
        return self._total

    def _counted(self, begin):
        self._begin = begin
        saved = Loop(self.filling).iterations
        return add(begin, add(saved, self._number(self._ahead)) if self._ahead else saved)

    def _number(self, number):
        return as_tensor(np.int64(number), self.filling.graph)

    def join(self, leaf: Leaf) -> tuple:
        """Put one array in place of all tapes; its handle, and its flow after each owner."""
        save = leaf.save
        with self._home.as_default(), self._home.control_dependencies(None):
            array = _array(leaf.value)
        around, begin = self.filling.graph, self.begin if self._is_repeated else None
        with around.as_default(), around.control_dependencies(None):
            ahead = (
                add(begin, self._number(self._ahead))
                if begin is not None and self._ahead
                else begin
            )

        def begun(flow):
            with around.as_default(), around.control_dependencies(None):
                for each in leaf.before:
                    index = each.inputs[1] if begin is None else add(begin, as_long(each.inputs[1]))
                    flow = Access(around.resolve(array.handle), flow).write(index, each.inputs[2])
            return flow

        def written(flow):
            graph, index = save.graph, save.inputs[1]
            if begin is not None:
                index = Loop(self.filling).counter if self._ahead else index
                index = add(graph.resolve(ahead), as_long(index))
            return Access(graph.resolve(array.handle), flow).write(index, save.inputs[2])

        bodies = bodies_of(self._home, save)
        flows = threaded(bodies, array.flow, written, begun)[len(bodies) - len(self._bodies()) :]
        for read, iterations in leaf.reads:
            level = _level(self._owners, read, iterations)
            self._read(read, array.handle, flows[level], self.index(read, iterations, level))
        return array.handle, flows

    def _read(self, op, handle, flow, index):
        """Read an array in place of a tape."""
        graph = op.graph
        with graph.as_default(), graph.control_dependencies(None):
            inputs = [graph.resolve(handle), index, graph.resolve(flow)]
            if op.record is RESTORE:
                found = graph.create(READ, inputs, dict(op.attrs))
                found.know(is_written=True)
            else:
                found = graph.create(GATHER, inputs, dict(op.attrs))
        substitute(graph, {op.outputs[0]: found.outputs[0]})

    def index(self, op, iterations, level) -> Tensor:
        """Where an operation finds, among the values of all iterations, the one that it names."""
        graph, index = op.graph, op.inputs[1]
        if not self._is_repeated:
            return index
        with graph.as_default(), graph.control_dependencies(None):
            return add(graph.resolve(self.start(iterations, level)), as_long(index))

    def start(self, iterations, level) -> Tensor:
        """Where the values begin that the loop gave in some iterations of those around it.

        After the owner at a place; of the loops around that it is the iteration that runs.
        """
        if not iterations:
            return origin(self.begin)
        outer = next(k for k, owner in enumerate(self._owners) if k and is_loop(owner))
        owners, level = self._owners[outer:], level % len(self._owners)
        outside = self._others.setdefault(owners, Nest(owners, self._others))
        if self._kept is None:
            self._kept = outside.keep(origin(self.begin))
        if (iterations, level) not in self._starts:
            found = outside.kept(self._kept, iterations, level - outer, COUNTER)
            self._starts[iterations, level] = found
        return self._starts[iterations, level]

    def start_of(self, loop, op, iterations) -> Tensor:
        """Where the values begin that one of the loops gave in some iterations, where ``op`` is."""
        place = next(k for k, owner in enumerate(self._owners) if owner is loop)
        if not place:
            return self.start(iterations, _level(self._owners, op, iterations))
        begin = origin(self.begin)
        for owner in self._owners[1 : place + 1]:
            begin = origin(variable_of(begin).first) if is_loop(owner) else begin
        return self._saved_around(begin, place, op, iterations)

    def length_of(self, op, iterations) -> Tensor:
        """How many iterations the loop made in some iterations of those around it."""
        return self._saved_around(Loop(self.filling).iterations, 0, op, iterations)

    def _saved_around(self, number, place, op, iterations):
        """A number of the body that the loop of a place lies in, in some iterations."""
        around = [k for k, owner in enumerate(self._owners) if k > place and is_loop(owner)]
        outer, level = around[0], _level(self._owners[place:], op, iterations)
        outside = _nest_of(self._owners[outer:], self._others)
        for owner in self._owners[place + 1 : outer]:
            number = out_of_branch(Branch(owner), number)
        found = outside.kept(outside.keep(number), iterations, place + level - outer, COUNTER)
        return op.graph.resolve(found)

    def keep(self, value) -> tuple:
        """A new array of a value in the body: its handle, and its flow after each owner."""
        body, loop = Loop(self.filling).body, Loop(self.filling)
        with self._home.as_default(), self._home.control_dependencies(None):
            array = _array(value)

        def written(flow):
            index = loop.counter
            if self._is_repeated:
                index = add(body.resolve(self.begin), index)
            return Access(body.resolve(array.handle), flow).write(index, value)

        return array.handle, threaded([body, *self._bodies()], array.flow, written)[1:]

    def kept(self, joined, iterations, level, spec) -> Tensor:
        """What an array made by `keep` has of some iterations, read after the owner at a place."""
        handle, flows = joined
        graph = max(
            self._owners[level].graph, *(iteration.graph for iteration in iterations), key=depth
        )
        with graph.as_default(), graph.control_dependencies(None):
            index = as_long(graph.resolve(iterations[-1]))
            if self._is_repeated:
                index = add(graph.resolve(self.start(iterations[:-1], level)), index)
            array = Access(*map(graph.resolve, (handle, flows[level])))
            return array.read(index, spec, WRITTEN)


def _array(value) -> Access:
    """A new array that grows with a loop and has values like one of its body."""
    spec, name = value.spec, f"tape_of_{value.op.type}"
    uniform = spec.shape is not None and all(type(n) is int for n in spec.shape)
    attrs = {
        "dtype": spec.dtype,
        "dynamic_size": True,
        "clear_after_read": False,
        "element_shape": spec.shape if uniform else None,
        "infer_shape": uniform,
        "tensor_array_name": name,
        "facts": Facts(is_saved=True, row=row_in_place(spec)),
    }
    array = Access(*build(CREATE, [np.int32(0)], attrs, name))
    call_after(array.handle, value, SAVED)
    return array


def _is_number(value):
    return value.kind == DATA and value.spec.rank == 0


class _Part(NamedTuple):
    """A shadow: a tensor of all sums, and where those of the tape begin in it; None for 0.

    Where sums are of several shapes, they are in a gradient array, of which this has handle and
    flow.
    """

    sums: Tensor
    start: Tensor | None
    handle: Tensor | None = None


class _Sums:
    """Tensors in place of shadows: each is found from what it is made of.

    Parameters
    ----------
    tapes : Tapes
    nests : dict of Nest
        By owners.
    """

    def __init__(self, tapes, nests):
        self._tapes, self._nests, self._found = tapes, nests, {}
        self._shadow, self._arrays, self._kept = {}, {}, {}

    def note(self, leaf, array) -> None:
        """Know the array of a tape whose values are of several shapes."""
        self._arrays[leaf.tape] = leaf, *array

    def is_shadow(self, tensor) -> bool:
        """`is_shadow`, found once."""
        if tensor not in self._shadow:
            self._shadow[tensor] = is_shadow(tensor)
        return self._shadow[tensor]

    def restore(self, op) -> None:
        """Take items of the tensor in place of what is restored from a shadow."""
        graph, part = op.graph, self.part(op.inputs[0])
        with graph.as_default(), graph.control_dependencies(None):
            place, sums = self._place(part, op), graph.resolve(part.sums)
            if part.handle is None:
                item = getitem(sums, place)
            else:
                item = Access(graph.resolve(part.handle), sums).read(place, op.outputs[0].spec)
        substitute(graph, {op.outputs[0]: item})

    def _place(self, part, op):
        index = as_long(op.inputs[1])
        return index if part.start is None else add(op.graph.resolve(part.start), index)

    def part(self, tensor) -> _Part:
        """The tensor that stands for a shadow."""
        if tensor not in self._found:
            source = self._source(tensor)
            if source is tensor:
                self._found[tensor] = self._made(tensor)
            else:
                part = self.part(source)
                self._found[tensor] = part._replace(sums=tensor.graph.resolve(part.sums))
        return self._found[tensor]

    def _source(self, tensor):
        """The shadow that one is, to which nothing has been added since."""
        while True:
            tensor = origin(tensor)
            variable, op = variable_of(tensor), tensor.op
            if is_loop(op):
                variable = Loop(op).variable(tensor.index)
            if is_branch(op):
                ends = {self._source(end) for end in Branch(op).ends(tensor.index)}
                if len(ends) > 1 or next(iter(ends)).graph in Branch(op).branches:
                    return tensor
                (tensor,) = ends
            elif variable is not None and self._keeps(variable):
                tensor = variable.first
            else:
                return tensor

    def _keeps(self, variable):
        """Whether no iteration adds to a shadow; while that is found out, it is taken for true."""
        kept, before = self._kept, len(self._kept)
        if variable.parameter not in kept:
            kept[variable.parameter] = True
            if self._source(variable.following) is not self._source(variable.first):
                while len(kept) > before:  # what was found of others may rest on it
                    kept.popitem()
                kept[variable.parameter] = False
        return kept[variable.parameter]

    def _made(self, tensor):
        op = tensor.op
        if op.record is PARAMETER:
            self.part(variable_of(tensor).last)  # notes that of the parameter
            return self._found[tensor]
        if is_loop(op):
            return self._loop(Loop(op), tensor)
        if is_branch(op):
            return self._branch(Branch(op), tensor)
        with op.graph.as_default(), op.graph.control_dependencies(None):
            rules = {SHADOW: self._zeros, ADD_SAVED: self._added, RESTORE: self._of_outer,
                     ADD_SHADOWS: self._both}  # fmt: skip
            return rules[op.record](op)

    def _loop(self, loop, tensor):
        variable = loop.variable(tensor.index)
        first = self.part(variable.first)

        def following(parameter):
            self._found[variable.parameter] = first._replace(sums=parameter)
            return parameter

        place = loop.count
        last = loop.add_variable(loop.op.graph.resolve(first.sums), following)
        loop.body.outputs[place] = loop.body.resolve(self.part(variable.following).sums)
        loop.body.changed()
        return first._replace(sums=last)

    def _branch(self, case, tensor):
        parts = [self.part(end) for end in case.ends(tensor.index)]
        return _Part(*(_result(case, ends) for ends in zip(*parts, strict=True)))

    def _zeros(self, op):
        source, iterations = _under(self._tapes, op.inputs[0])
        nest, value = self._nest(source, op, iterations)
        if iterations:
            goal = _goal(op.outputs[0])
            if goal is None:
                return self._own(op, nest, value, source, iterations)
            whole = self.part(goal.inputs[0])
            start = nest.start_of(source.op, op, iterations)
            return whole._replace(sums=op.graph.resolve(whole.sums), start=start)
        if _is_ragged(op, value):
            return self._array(op, source)
        total = op.graph.resolve(nest.total)
        if source.op is nest.filling and _is_now_and_then(_saves(Tape(source.op, source.index))[0]):
            _, array = self._saved(op, source)
            total = as_long(build(SIZE, [array.handle, array.flow])[0])
        return self._tensor(op, value, total)

    def _own(self, op, nest, value, source, iterations):
        """What stands for a shadow that nothing outside of the iteration sees."""
        if source.op is not nest.filling:
            raise NotCompiledError(f"{op.name} is of tapes of several loops")
        length = nest.length_of(op, iterations)
        if not _is_ragged(op, value):
            return self._tensor(op, value, length)
        array = self._copied(op, Tape(source.op, source.index), nest, iterations, length)
        found = array.gradient(op.name, clear_after_read=False)
        return _Part(found.flow, None, found.handle)

    def _copied(self, op, tape, nest, iterations, length):
        """An array of the values of several shapes that the loop of a nest saved in an iteration.

        The array that has those of all iterations is no forward array for gradients in each.
        """
        leaf, handle, flows = self._arrays[tape]
        start, flow = (
            nest.start_of(tape.loop, op, iterations),
            flows[_level(leaf.owners, op, iterations)],
        )
        own, spec = _array(leaf.value), Spec(leaf.value.dtype, (None,) * leaf.value.spec.rank)

        def iteration(number, end):
            graph = number.graph
            saved = Access(graph.resolve(handle), graph.resolve(flow))
            value = saved.read(add(graph.resolve(start), number), spec, WRITTEN)
            return [add(number, ONE), Access(graph.resolve(own.handle), end).write(number, value)]

        def is_left(number, _):
            return [less(number, number.graph.resolve(length))]

        specs = [COUNTER, FLOW_SPEC]
        with op.graph.name_scope("copied") as scope:
            cond, body = (trace(op.graph, f"{scope}{name}", specs, make)
                          for name, make in (("cond", is_left), ("body", iteration)))  # fmt: skip
            first = [as_tensor(np.int64(0), op.graph), own.flow]
            loop = add_while(cond, body, first, scope, origin=Loop(tape.loop).origin)
        return own._replace(flow=loop.outputs[1])

    def _tensor(self, op, value, total):
        rows, row = value.spec.shape, shape_in(op.graph, value.spec.shape)
        shape = stack([total]) if not rows else concatenate([stack([total]), row])
        sums = zeros(shape, value.dtype)
        known = (None, *rows)
        sums.op.attrs["pattern"] = shapes.merge(sums.op.attrs.get("pattern"), known)
        sums.spec = sums.spec._replace(shape=shapes.merge(sums.spec.shape, known))
        return _Part(sums, None)

    def _array(self, op, source):
        """A gradient array of that of a tape of values of several shapes."""
        leaf, array = self._saved(op, source)
        if [owner for owner in leaf.owners if is_loop(owner)][-1] is not source.op:
            raise NotCompiledError(f"{op.name} is of a part of values of several shapes")
        found = array.gradient(op.name, clear_after_read=False)
        return _Part(found.flow, None, found.handle)

    def _saved(self, op, source):
        """What is known of a tape, and its array after all that is saved on it."""
        leaf, handle, flows = self._arrays[_innermost(source, ())[0]]
        return leaf, Access(op.graph.resolve(handle), op.graph.resolve(flows[-1]))

    def _nest(self, source, op, iterations):
        """The loops that make the values of a tape that an operation uses, and one of these."""
        tape = Tape(source.op, source.index)
        owners = owners_of(tape.loop, [op], len(iterations))
        if owners is None:
            raise NotCompiledError(f"{op.name} uses a tape outside of the loops that made it")
        while (value := _saves(tape)[0].inputs[2]).spec.is_tape:
            inner = made(value)
            graph, around = inner.graph, []
            while graph is not tape.body:
                around.append(graph.owner)
                graph = graph.owner.graph
            owners = [inner.op, *around, *owners]
            tape = Tape(inner.op, inner.index)
        return _nest_of(owners, self._nests), value

    def _both(self, op):
        one, other = map(self.part, op.inputs)
        if {one.start, other.start, one.handle, other.handle} != {None}:
            raise NotCompiledError(f"{op.name} adds shadows of an iteration, or of several shapes")
        return one._replace(sums=add(*map(op.graph.resolve, (one.sums, other.sums))))

    def _added(self, op):
        if op.inputs[2].spec.is_tape:
            added = self.part(op.inputs[2])
            if added.start is None:  # a tensor of its own, which `_goal` took for one nobody adds
                raise NotCompiledError(f"{op.name} adds a shadow of an iteration")
            return added._replace(start=self.part(op.inputs[0]).start)
        part = self.part(op.inputs[0])
        sums, place = op.graph.resolve(part.sums), self._place(part, op)
        if part.handle is None:
            return part._replace(sums=add_item(sums, place, op.inputs[2]))
        array = Access(op.graph.resolve(part.handle), sums)
        return part._replace(sums=array.write(place, op.inputs[2]))

    def _of_outer(self, op):
        part, (source, iterations) = self.part(op.inputs[0]), _under(self._tapes, op.outputs[0])
        nest, _ = self._nest(source, op, iterations)
        return part._replace(start=nest.start_of(source.op, op, iterations))


def _result(case, ends) -> Tensor | None:
    """What branches end with, around them: the tensor around them that all have, or a result."""
    given = [end is not None for end in ends]
    if not any(given):
        return None
    if not all(given):
        raise NotCompiledError(f"{case.op.name} has shadows of a loop and of an iteration")
    around = {b.sources.get(end, end) for b, end in zip(case.branches, ends, strict=True)}
    if len(around) == 1 and (found := around.pop()).graph not in case.branches:
        return found
    return case.add_result([b.resolve(end) for b, end in zip(case.branches, ends, strict=True)])


def _goal(tensor) -> Operation | None:
    """What adds a shadow of an iteration's tape, after all that adds to it, to that of the loop."""
    while tensor is not None:
        following = None
        for op in tensor.graph.operations:
            if not any(t is tensor for t in op.inputs):
                continue
            if op.record is ADD_SHADOWS:
                raise NotCompiledError(f"{op.name} adds shadows of an iteration")
            if op.record is ADD_SAVED and op.inputs[2] is tensor:
                return op
            if op.record is ADD_SAVED:
                following = op.outputs[0]
            elif is_loop(op):
                ways = [v.last for v in Loop(op).variables() if v.first is tensor]
                following = ways[0] if ways else following
            elif is_branch(op):
                following = _through(Branch(op), tensor) or following
        if following is None and is_body_of_branch(tensor.graph):
            ways = zip(tensor.graph.outputs, tensor.graph.owner.outputs, strict=True)
            following = next((result for end, result in ways if end is tensor), None)
        tensor = following
    return None


def _through(case, tensor):
    """The result of a branch that is a captured shadow, with more added."""
    for place, result in enumerate(case.op.outputs):
        if result.spec.is_tape:
            ends = (_first(end) for end in case.ends(place))
            if any(end.graph.sources.get(end) is tensor for end in ends):
                return result
    return None


def _first(tensor):
    """What a shadow in a body was before anything in it was added."""
    while tensor.op.record not in (PARAMETER, SHADOW):
        op = tensor.op
        if is_branch(op):
            tensor = _first(Branch(op).ends(tensor.index)[0])
            tensor = tensor.graph.sources.get(tensor, tensor)
        else:
            tensor = Loop(op).variable(tensor.index).first if is_loop(op) else op.inputs[0]
    return tensor


def _begin_around_branches(tapes, operations):
    """Let shadows that branches end with begin around them, where that takes a gradient array.

    A handle that is a branch's result would be of an array that Python keeps.
    """
    for op in filter(is_branch, reversed(operations)):  # those in others first
        for result in op.outputs:
            if result.spec.is_tape and is_shadow(result):
                _begin_around(tapes, Branch(op), result.index)


def _begin_around(tapes, case, place):
    begun = [_first(end).op for end in case.ends(place)]
    if any(op.record is not SHADOW for op in begun):
        return
    tape, _ = _innermost(*_under(tapes, begun[0].inputs[0]))
    of = {b.sources.get(op.inputs[0]) for b, op in zip(case.branches, begun, strict=True)}
    if len(of) != 1 or None in of or not _is_ragged(begun[0], _saves(tape)[0].inputs[2]):
        return
    with case.op.graph.as_default(), case.op.graph.control_dependencies(None):
        around = shadow(*of)
    for branch, op in zip(case.branches, begun, strict=True):
        substitute(branch, {op.outputs[0]: branch.resolve(around)})


def _is_ragged(op, value):
    """Whether a shadow is of values of several shapes."""
    return shape_in(op.graph, value.spec.shape) is None


@contract(requires=[Fact.RANKS])
@changes
def forget_iterations(program: Program) -> Program:
    """Find gradient arrays without the iteration's number where it makes the forward array.

    A body that calls `gradients` numbers its iterations, for arrays that all of them see. What an
    iteration makes is seen by no other iteration, and has gradient arrays of its own as it is.
    """
    lookups = defaultdict(list)
    for op in running(program):
        if op.record is LOOKUP and len(op.inputs) > 2:
            lookups[op.attrs["source"]].append(op)
    if not lookups:
        return program
    tapes = analysis(Tapes, program)
    found = [ops for ops in lookups.values() if all(_is_of_iteration(tapes, op) for op in ops)]
    for op in chain.from_iterable(found):
        del op.inputs[2:]
        op.graph.changed()
    return prune.in_place(program) if found else program


def _is_of_iteration(tapes, lookup):
    """Whether the array was made in the iteration whose number the lookup has."""
    array, iteration = (
        tapes.uses.array(lookup.inputs[0]),
        tapes.reaching_definition(lookup.inputs[2]).tensor.op,
    )
    return (
        array is not None
        and iteration.record is ITERATION
        and lies_in(array[0].graph, iteration.graph)
    )
