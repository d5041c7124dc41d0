"""Passes: each takes a program and gives another one that computes the same for less."""

import functools
import operator

import numpy as np

from nbta import shapes
from nbta.compiler.manager import Fact, analysis, contract
from nbta.compiler.program import Program, changes, rebuild
from nbta.graph.copying import Copy, copied, keep_shapes
from nbta.graph.dependence import UsesThroughBodies, places_of
from nbta.graph.graph import drop_unused, keep_live, live, running, subgraphs, substitute, within
from nbta.graph.operation import FLOW, Operation, Tensor
from nbta.graph.order import before, ordered
from nbta.graph.views import Branch, Loop, is_branch, is_loop, place_of
from nbta.ops.arrays.tensor_arrays import CLOSE, WRITES
from nbta.ops.core.dispatch import CONSTANT, PARAMETER, constant_in, operation_key
from nbta.ops.core.filling import FILL
from nbta.ops.loops.aliases import ArrayUses
from nbta.tuning import CONSTANT_ITEMS


@contract()
@changes
def prune(program: Program) -> Program:
    """Leave out variables of loops and results of branches that nothing needs.

    A program that does not fetch a gradient keeps no tapes for it. What is written to an array that
    something else looks at is needed.
    """
    facts = _Facts(program)
    while changes := _plan(facts):  # what is left out may be the last that looked at an array
        for change in changes:
            change()
    return program


def _plan(facts) -> list:
    """What to leave out, as calls that do it: all is found before anything is changed."""
    program, found = facts.program, []
    _go_past_branches(program)
    _look(facts, program, program.outputs, found)
    return found


class _Facts:
    """What holds of a program and its bodies, each as long as it stays as it is.

    A second look, after what the first has found, is at what that changed and at what is around.

    Attributes
    ----------
    program : Program
    uses : UsesThroughBodies
    bare : dict
        By graph, its version and the results that were left, where nothing was to be left out and
        no other graph had a say in that.
    asked : int
        How often arrays of the whole program had a say.
    """

    def __init__(self, program):
        self.program, self.uses, self.bare, self.asked = program, UsesThroughBodies(), {}, 0

    def arrays(self) -> ArrayUses:
        """Who uses which array, which few programs are asked for."""
        self.asked += 1
        return analysis(ArrayUses, self.program)


def _look(facts, graph, outputs, found):
    """Note what a graph has that nothing needs, where some of its results are left."""
    state = graph.version, frozenset(outputs)
    if facts.bare.get(graph) != state:
        before = len(found), facts.asked
        _look_through(facts, graph, outputs, found)
        if (len(found), facts.asked) == before:
            facts.bare[graph] = state


def _look_through(facts, graph, outputs, found):
    """`_look`, from the end.

    What an operation takes is needed as far as something later needs what it gives.
    """
    targets = getattr(graph, "targets", ())
    order, used = ordered({*targets, *(tensor.op for tensor in outputs)}), set(outputs)
    needed = {*targets, *(tensor.op for tensor in outputs)}
    for op in reversed(order):
        if op in needed:
            inputs = _look_inside(facts, op, used, found)
            used.update(inputs)
            needed.update(op.control_inputs, (tensor.op for tensor in inputs))
    kept = [op for op in order if op in needed]
    if len({*kept, *(tensor.op for tensor in graph.inputs)}) < len(graph.operations):
        found.append(functools.partial(_keep_alone, graph, kept))


def _keep_alone(graph, kept):
    """Keep only some operations, in running order, and the parameters."""
    graph.operations = list(dict.fromkeys([*(tensor.op for tensor in graph.inputs), *kept]))
    keep_live(graph, kept)


def _go_past_branches(graph):
    """Let flows that no branch of a Case writes to go past it, in bodies too."""
    for case in map(Branch, filter(is_branch, graph.operations)):
        passed = {
            tensor: place
            for tensor in case.op.outputs
            if tensor.kind == FLOW and (place := _passed_on(case.ends(tensor.index))) is not None
        }
        if passed:
            substitute(graph, {old: case.captured[place] for old, place in passed.items()})
    for op in graph.operations:
        for body in subgraphs(op):
            _go_past_branches(body)


def _passed_on(ends) -> int | None:
    """The place of what branches captured that each gives as it is; else None."""
    places = {place_of(end) if end.op.record is PARAMETER else None for end in ends}
    return places.pop() if len(places) == 1 else None


def _look_inside(facts, op, used, found) -> list[Tensor]:
    """Note what bodies of an operation have that nothing needs; the inputs that it is left with."""
    inputs, places = op.inputs, range(len(op.outputs))
    if is_loop(op):
        loop = Loop(op)
        taken = _inputs_of_loop(facts, loop, used)
        inputs = [inputs[place] for place in taken]
        places = [place for place in taken if place < loop.count]
        if len(inputs) < len(op.inputs):
            found.append(functools.partial(loop.keep, taken))
        _look(facts, loop.cond, loop.cond.outputs, found)
        _look(facts, loop.body, [loop.following[place] for place in places], found)
    elif is_branch(op):
        case = Branch(op)
        places, taken = _parts_of_case(facts, case, used)
        inputs = [case.index, *(case.captured[place] for place in taken)]
        if len(places) < len(op.outputs) or len(inputs) < len(op.inputs):
            found.append(functools.partial(case.keep, places, taken))
        for branch in case.branches:
            _look(facts, branch, [branch.outputs[place] for place in places], found)
    else:
        for body in subgraphs(op):
            _look(facts, body, body.outputs, found)
    return inputs


def _inputs_of_loop(facts, loop, used) -> list[int]:
    """Places of the inputs of a loop that are needed, where what is around uses some tensors."""
    op, body, count = loop.op, loop.body, loop.count
    start = sum(1 << i for i in range(count) if op.outputs[i] in used)
    while True:
        places = places_of(facts.uses.of_loop(loop, start))
        kept = {i for i in places if i < count}
        more = _results_with_effects(facts, [body], kept, count)
        if not more:
            return places
        start |= sum(1 << i for i in more)


def _parts_of_case(facts, case, used) -> tuple[list[int], list[int]]:
    """Places of the results of a branch, and of what it captures, that are needed."""
    op, branches = case.op, case.branches
    kept = {i for i, tensor in enumerate(op.outputs) if tensor in used}
    while more := _results_with_effects(facts, branches, kept, len(op.outputs)):
        kept |= more
    needed = list(map(facts.uses.of, branches))
    taken = functools.reduce(operator.or_, (ways[i] for ways in needed for i in kept), 0)
    return sorted(kept), places_of(taken)


def _results_with_effects(facts, bodies, kept, count) -> set:
    """Places of results that must stay for what is written on the way to them.

    Parameters
    ----------
    facts : _Facts
    bodies : list of SubGraph
        With ``count`` results each.
    kept : set of int
        The places that stay in any case.
    """
    found = set()
    for body in bodies if len(kept) < count else ():
        alive = set(_needed(body, kept))
        rest = [op for op in _needed(body, range(count)) if op not in alive]
        dropped, leads = within(rest), set()
        for op in rest:
            if not leads.isdisjoint(before(op)) or _is_visible(facts, op, dropped):
                leads.add(op)
        found |= {i for i in set(range(count)) - kept if body.outputs[i].op in leads}
    return found


def _needed(body, places):
    """Operations that results of a body need, in running order."""
    return ordered({body.outputs[place].op for place in places})


def _is_visible(facts, op, dropped):
    """Whether an operation writes what others than those to be dropped may see."""
    if op.record in WRITES:
        found = facts.arrays()
        array = found.array(op.inputs[0])
        return array is None or array in found.passed or not found.touching(array) <= dropped
    return any(_is_visible(facts, o, dropped) for body in subgraphs(op) for o in live(body))


def frees(graph) -> list[Operation]:
    """What there is for memory alone: the ends of arrays that checkpoints make."""
    return [op for op in running(graph) if op.record is CLOSE and op.facts.only_frees]


@contract(establishes=[Fact.BUFFERS_STAY])
@changes
def keep_all(program: Program) -> Program:
    """Free no array before its end; those of compiled code have buffers that stay anyway."""
    ends = set(frees(program))
    for op in running(program) if ends else ():
        op.control_inputs = [other for other in op.control_inputs if other not in ends]
    return prune.in_place(program) if ends else program


@contract()
def fold_constants(program: Program) -> Program:
    """Compute what depends on constants alone."""
    found = any(_is_fixed(op, op.inputs) for op in running(program))
    return rebuild(program, _folded) if found else program


def _is_fixed(op, inputs):
    """Whether an operation may be computed now, where these are its inputs."""
    fixed = inputs and all(tensor.op.record is CONSTANT for tensor in inputs)
    fixed = fixed and not _waits(op, *(tensor.op for tensor in inputs))
    return fixed and op.record.pure and _is_small(op)


def _folded(copy: Copy, op: Operation, inputs):
    if not _is_fixed(op, inputs):
        return copied(copy, op, inputs)
    try:
        with np.errstate(all="ignore"):
            values = op.record.evaluate(*(t.op.attrs["value"][()] for t in inputs), **op.attrs)
    except Exception:  # it fails when it runs, if it runs
        return copied(copy, op, inputs)
    values = values if isinstance(values, tuple | list) else (values,)
    return [_constant(copy.graph, value) for value in values]


def _waits(*operations):
    """Whether any must come after others, which would not run for it any more."""
    return any(op.control_inputs for op in operations)


def _is_small(op):
    known = [shapes.is_known(tensor.spec.shape) for tensor in op.outputs]
    return all(known) and sum(np.prod(t.spec.shape) for t in op.outputs) <= CONSTANT_ITEMS


def _constant(graph, value):
    array = np.array(value)
    array.flags.writeable = False
    return constant_in(graph, array)


@contract()
def share(program: Program) -> Program:
    """Compute equal operations on equal inputs once."""
    return rebuild(program, _shared) if _has_equal(program) else program


def _has_equal(graph):
    """Whether two operations of a graph, or of a body in it, are equal."""
    operations, keys = live(graph), set()
    for op in operations:
        key = operation_key(op, op.inputs, tuple(op.control_inputs))
        if key is not None and (key in keys or keys.add(key)):
            return True
    return any(_has_equal(body) for op in operations for body in subgraphs(op))


def _shared(copy: Copy, op: Operation, inputs):
    key = operation_key(op, inputs, copy.after(op))
    if key is None:
        return copied(copy, op, inputs)
    kept = copy.graph.cache.setdefault("shared", {})
    if key not in kept:
        kept[key] = copied(copy, op, inputs)
    copy.stands_for(op, kept[key][0].op)
    return kept[key]


@contract()
def separate_fills(program: Program) -> Program:
    """Let all that changes a fill change one of its own.

    Several adjoints of one shape begin with the same zeros, as `share` leaves them. They would be
    made once and copied for each, and a copy reads what need only be written.
    """
    taken = set()
    fills = (op.inputs[place] for op in running(program) for place in _fills_to_change(op))
    found = any(fill in taken or taken.add(fill) for fill in fills)
    return rebuild(program, _with_own_fills) if found else program


def _fills_to_change(op):
    """The places of inputs that an operation changes, and that are fills of its graph."""
    if is_loop(op):
        places = [v.place for v in Loop(op).variables() if not v.is_kept]
    else:
        places = [0] if op.record.changes else []
    given = [(place, op.inputs[place]) for place in places]
    return [p for p, t in given if t.op.record is FILL and t.graph is op.graph and t.spec.rank != 0]


def _with_own_fills(copy: Copy, op: Operation, inputs):
    taken = copy.graph.cache.setdefault("filled", set())
    for place in _fills_to_change(op):
        fill = inputs[place]
        if fill in taken:
            made = copy.graph.create(FILL, fill.op.inputs, fill.op.attrs, name=fill.op.type)
            made.location = fill.op.location
            keep_shapes([fill], made.outputs)
            inputs = [*inputs[:place], *made.outputs, *inputs[place + 1 :]]
        taken.add(fill)
    return copied(copy, op, inputs)


@contract()
def hoist(program: Program) -> Program:
    """Compute before a loop what no iteration of it changes, as far as that cannot fail."""
    found = any(_has_movable(Loop(op)) for op in running(program) if is_loop(op))
    return rebuild(program, _hoisted) if found else program


def _has_movable(loop):
    """Whether anything of a loop's body can be done before it, but for constants alone."""
    around = {*loop.body.inputs[loop.count :]}
    needed = live(loop.body)
    around |= {op.outputs[0] for op in needed if op.record is CONSTANT and not _waits(op)}
    return any(_is_movable(op, around) for op in needed)


def _hoisted(copy: Copy, op: Operation, inputs):
    if not is_loop(op):
        return copied(copy, op, inputs)
    loop = Loop(op)
    cond, body = map(copy.body, (loop.cond, loop.body))
    around = dict(zip(body.inputs[loop.count :], inputs[loop.count :], strict=True))
    moved = {}
    for inner in ordered({tensor.op for tensor in body.outputs}):
        if inner.record is CONSTANT and not _waits(inner):
            around.update(
                zip(
                    inner.outputs, copy.graph.create(CONSTANT, [], inner.attrs).outputs, strict=True
                )
            )
        elif _is_movable(inner, around):
            outer = copy.graph.create(
                inner.record, [around[t] for t in inner.inputs], inner.attrs, name=inner.type
            )
            keep_shapes(inner.outputs, outer.outputs)
            moved.update(zip(inner.outputs, outer.outputs, strict=True))
            around.update(moved)
    inputs = [*inputs, *moved.values()]
    substitute(body, {old: body.parameter(old.spec) for old in moved})
    for old in moved:
        cond.parameter(old.spec)
    drop_unused(body, ordered({tensor.op for tensor in body.outputs}))
    return copy.create(op, inputs, loop.attrs(cond, body))


def _is_movable(op, around):
    """Whether an operation can be done before the loop, on values from there, and cannot fail."""
    return op.inputs and all(t in around for t in op.inputs) and not _waits(op) and op.cannot_fail
