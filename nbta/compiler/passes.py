"""Passes: each takes a program and gives another one that computes the same for less."""

import functools

import numpy as np

from nbta import shapes
from nbta.compiler.program import Program, changes, rebuild
from nbta.graph.copying import Copy, Part, copied, keep_shapes
from nbta.graph.dependence import closure, uses
from nbta.graph.graph import drop_unused, live, running, subgraphs, substitute, within
from nbta.graph.operation import Operation
from nbta.graph.order import before, ordered
from nbta.graph.views import Branch, Loop, is_branch, is_loop
from nbta.ops.aliases import ArrayUses
from nbta.ops.arrays import CLOSE, WRITES
from nbta.ops.dispatch import CONSTANT, constant_in

#: Constants of more elements are computed again in each run rather than kept.
LARGEST = 10_000


def prune(program: Program) -> Program:
    """Leave out variables of loops and results of branches that nothing needs.

    A program that does not fetch a gradient keeps no tapes for it. What is written to an array that
    something else looks at is needed.
    """
    while True:
        smaller = rebuild(program, functools.partial(_pruned, ArrayUses(program)))
        if _edges(smaller) == _edges(program):
            return smaller
        program = smaller  # what a loop no longer takes may have been made for it alone


def _edges(graph):
    """How many inputs all operations have, and the operations themselves."""
    inner = sum(_edges(body) for op in graph.operations for body in subgraphs(op))
    return inner + sum(1 + len(op.inputs) for op in graph.operations)


def _pruned(arrays: ArrayUses, copy: Copy, op: Operation, inputs):
    if is_loop(op):
        return _pruned_loop(arrays, copy, Loop(op), inputs)
    if is_branch(op):
        return _pruned_case(arrays, copy, Branch(op), inputs)
    return copied(copy, op, inputs)


def _pruned_loop(arrays, copy, loop, inputs):
    op, cond, body, count = loop.op, loop.cond, loop.body, loop.count
    edges = dict(enumerate(uses(body)))
    start = {i for i in range(count) if op.outputs[i] in copy.used} | {0, *uses(cond)[0]}
    while True:
        places = sorted(closure(start, edges))
        kept = [i for i in places if i < count]
        more = _results_with_effects(arrays, [body], set(kept), count)
        if not more:
            break
        start |= more
    parts = [
        Part(cond.scope, [cond.inputs[i] for i in places], cond.outputs),
        Part(body.scope, [body.inputs[i] for i in places], [body.outputs[i] for i in kept]),
    ]
    attrs = loop.attrs(*map(copy.body, parts), len(kept))
    made = copy.create(op, [inputs[i] for i in places], attrs)
    results = dict(zip(kept, made, strict=True))
    return [results.get(i) for i in range(count)]


def _pruned_case(arrays, copy, case, inputs):
    op, branches = case.op, case.branches
    kept = {i for i, tensor in enumerate(op.outputs) if tensor in copy.used}
    while more := _results_with_effects(arrays, branches, kept, len(op.outputs)):
        kept |= more
    kept = sorted(kept)
    needed = [uses(branch) for branch in branches]
    places = sorted(set().union(*(ways[i] for ways in needed for i in kept)))
    bodies = tuple(
        copy.body(Part(b.scope, [b.inputs[i] for i in places], [b.outputs[i] for i in kept]))
        for b in branches
    )
    attrs = {**op.attrs, "branches": bodies}
    made = copy.create(op, [inputs[0], *(inputs[i + 1] for i in places)], attrs)
    results = dict(zip(kept, made, strict=True))
    return [results.get(i) for i in range(len(op.outputs))]


def _results_with_effects(arrays, bodies, kept, count) -> set:
    """Places of results that must stay for what is written on the way to them.

    Parameters
    ----------
    arrays : ArrayUses
    bodies : list of SubGraph
        With ``count`` results each.
    kept : set of int
        The places that stay in any case.
    """
    found = set()
    for body in bodies:
        alive = set(_needed(body, kept))
        rest = [op for op in _needed(body, range(count)) if op not in alive]
        dropped, leads = within(rest), set()
        for op in rest:
            if not leads.isdisjoint(before(op)) or _is_visible(arrays, op, dropped):
                leads.add(op)
        found |= {i for i in set(range(count)) - kept if body.outputs[i].op in leads}
    return found


def _needed(body, places):
    """Operations that results of a body need, in running order."""
    return ordered({body.outputs[place].op for place in places})


def _is_visible(arrays, op, dropped):
    """Whether an operation writes what others than those to be dropped may see."""
    if op.record in WRITES:
        array = arrays.array(op.inputs[0])
        return array is None or array in arrays.passed or not arrays.touching(array) <= dropped
    return any(_is_visible(arrays, o, dropped) for body in subgraphs(op) for o in live(body))


def frees(graph) -> list[Operation]:
    """What there is for memory alone: the ends of arrays that checkpoints make."""
    return [op for op in running(graph) if op.record is CLOSE and op.attrs.get("frees")]


@changes
def keep_all(program: Program) -> Program:
    """Free no array before its end; those of compiled code have buffers that stay anyway."""
    ends = set(frees(program))
    for op in running(program) if ends else ():
        op.control_inputs = [other for other in op.control_inputs if other not in ends]
    return prune(program) if ends else program


def fold_constants(program: Program) -> Program:
    """Compute what depends on constants alone."""
    return rebuild(program, _folded)


def _folded(copy: Copy, op: Operation, inputs):
    fixed = inputs and all(tensor.op.record is CONSTANT for tensor in inputs)
    fixed = fixed and not _waits(op, *(tensor.op for tensor in inputs))
    if not fixed or not op.record.pure or not _is_small(op):
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
    return all(known) and sum(np.prod(t.spec.shape) for t in op.outputs) <= LARGEST


def _constant(graph, value):
    array = np.array(value)
    array.flags.writeable = False
    return constant_in(graph, array)


def share(program: Program) -> Program:
    """Compute equal operations on equal inputs once."""
    return rebuild(program, _shared)


def _shared(copy: Copy, op: Operation, inputs):
    key = _key(copy, op, inputs)
    if key is None:
        return copied(copy, op, inputs)
    kept = copy.graph.cache.setdefault("shared", {})
    if key not in kept:
        kept[key] = copied(copy, op, inputs)
    copy.stands_for(op, kept[key][0].op)
    return kept[key]


def _key(copy, op, inputs):
    """What makes operations equal; None for those with effects or with a state of their own."""
    if not op.record.pure or not (op.inputs or op.record is CONSTANT):
        return None
    try:
        attrs = tuple((name, _hashable(value)) for name, value in op.attrs.items())
        key = (op.record, tuple(inputs), attrs, copy.after(op))
        hash(key)
    except TypeError:
        return None
    return key


def _hashable(value):
    if isinstance(value, np.ndarray | np.generic):
        return (value.dtype, value.shape, value.tobytes())
    if isinstance(value, slice):
        return (slice, value.start, value.stop, value.step)
    return tuple(map(_hashable, value)) if isinstance(value, tuple) else value


def hoist(program: Program) -> Program:
    """Compute before a loop what no trip of it changes, as far as that cannot fail."""
    return rebuild(program, _hoisted)


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
    return op.inputs and all(t in around for t in op.inputs) and not _waits(op) and is_sure(op)


def is_sure(op: Operation) -> bool:
    """Whether an operation cannot fail, whatever the values of its inputs are."""
    patterns = {tensor.spec.shape for tensor in op.inputs}
    if any(pattern is None or None in pattern for pattern in patterns):
        return False
    return op.record.is_total(op) and (len(op.inputs) == 1 or _sure_to_fit(op, patterns - {()}))


def _sure_to_fit(op, patterns):
    """Whether lengths that only the run tells cannot be unlike each other."""
    return all(map(shapes.is_known, patterns)) or (len(patterns) == 1 and op.record.elementwise)
