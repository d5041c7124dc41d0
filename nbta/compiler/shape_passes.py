"""Passes about shapes: what they are for given lengths, and what is needless once that is known."""

import functools

from nbta import shapes
from nbta.compiler.access_sets import indices_of, is_within
from nbta.compiler.induction import Counts
from nbta.compiler.manager import Fact, analysis, contract
from nbta.compiler.program import Program, changes, rebuild
from nbta.compiler.same_shapes import SameShapes
from nbta.compiler.shape_vectors import count_of, lengths_of_inputs, vector_of
from nbta.graph.copying import Copy, copied
from nbta.graph.graph import SubGraph, everything, running, subgraphs, sweep, unify
from nbta.graph.operation import Operation, Tensor
from nbta.graph.order import before
from nbta.graph.views import origin, variable_of
from nbta.ops.core.dispatch import PARAMETER
from nbta.ops.core.shaping import SHAPE, SIZE
from nbta.ops.indexing.items import GETITEM


@contract(requires=[Fact.RANKS])
def simplify_shapes(program: Program) -> Program:
    """Take shapes from the inputs of the program, and leave out what gives its input.

    Where all that a value was needed for is its shape, it is no longer computed; this is done only
    where that cannot have failed.
    """
    lengths = lengths_of_inputs(program)
    waited_for = {other for op in everything(program) for other in op.control_inputs}
    chosen = set()
    for graph in [program, *(body for op in everything(program) for body in subgraphs(op))]:
        found = {op for op in graph.operations if _is_needless(op, lengths, program)}
        chosen |= _without_risk(graph, found - waited_for, program)
    if not chosen:
        return program
    made = rebuild(program, functools.partial(_simplified, chosen, lengths))
    sweep(made)  # of what only shapes needed
    return made


@contract(requires=[Fact.RANKS])
@changes
def shapes_of_variables(program: Program) -> Program:
    """Measure what a loop begins with for its variables, where all iterations have one shape.

    So no tape of the shape is needed. A length that has a `Dim` is the same one in all iterations,
    and of others `SameShapes` tells.
    """
    shapes = [op for op in running(program) if op.record is SHAPE]
    same = SameShapes(program) if shapes else None
    for op in shapes:
        _measure_first(op, same)
    return program


def _measure_first(op, same):
    source = origin(op.inputs[0])
    shape, variable = source.spec.shape, variable_of(source)
    while variable is not None and (
        same.keeps(variable) or (variable.first.spec.shape == shape and None not in (shape or ()))
    ):
        source = origin(variable.first)
        variable = variable_of(source)
    if source.spec.shape is not None and source is not origin(op.inputs[0]):
        op.inputs[0] = op.graph.resolve(source)
        op.graph.changed()


def _is_needless(op, lengths, program):
    """Whether an operation gives what is known, or its input."""
    if op.control_inputs or not op.inputs:
        return False
    shape = op.inputs[0].spec.shape
    if shape is None or not all(type(n) is int or n in lengths for n in shape):
        return False
    if op.record.keeps:
        return op.outputs[0].spec.shape == shape
    of_input = op.inputs[0].op.graph is program and op.inputs[0].op.record is PARAMETER
    return op.record in (SHAPE, SIZE) and (shapes.is_known(shape) or not of_input)


def _without_risk(graph, chosen, program):
    """Those of the chosen operations without which everything still runs that may fail."""
    while True:
        cut = {op: (op.inputs[:1] if op.record.keeps else []) for op in chosen}
        dead = _live(graph, {}) - _live(graph, cut)
        risky = {op for op in dead if op not in chosen and not _is_safe(op, program)}
        if not risky:
            return chosen
        chosen = {op for op in chosen if risky.isdisjoint(_above(before(op)))}


def _live(graph, cut):
    """Operations that a graph runs, where some need only what ``cut`` says."""
    ends = [*(t.op for t in graph.outputs), *getattr(graph, "targets", ())]
    return _above(ends, cut)


def _above(ends, cut=()):
    found, todo = set(), list(ends)
    while todo:
        op = todo.pop()
        if op not in found:
            found.add(op)
            todo += [t.op for t in cut[op]] if op in cut else before(op)
    return found


def _is_safe(op: Operation, program):
    """Whether an operation cannot fail, and what a parameter stands for neither."""
    if op.control_inputs:
        return False
    if op.record is PARAMETER:
        return op.graph is program or _is_safe_around(op, program)
    return op.cannot_fail or _reads_within(op, program)


def _reads_within(op, program):
    """Whether an operation reads items or slices, and is proven to find them."""
    if op.record is not GETITEM or op.inputs[0].spec.shape is None:
        return False
    steps = (index.step for index in indices_of(op) if isinstance(index, slice))
    known = not any(isinstance(step, Tensor) for step in steps)  # a step of 0 is an error
    return known and is_within(analysis(Counts, program), op)


def _is_safe_around(op, program):
    source = op.graph.sources.get(op.outputs[0])
    return source is not None and _is_safe(source.op, program)


def _simplified(chosen, lengths, copy: Copy, op: Operation, inputs):
    if op in chosen:
        if op.record.keeps:
            return inputs[:1]
        build = vector_of if op.record is SHAPE else count_of
        return [build(copy.graph, op.inputs[0].spec.shape, lengths)]
    if not subgraphs(op):
        return copied(copy, op, inputs)
    return _with_captures(copy, op, inputs)


def _with_captures(copy, op, inputs):
    """An operation with bodies, which may capture more than before."""
    attrs = {key: copy.attr(value) for key, value in op.attrs.items()}
    bodies = [b for v in attrs.values() for b in (v if isinstance(v, tuple) else (v,))]
    bodies = [body for body in bodies if isinstance(body, SubGraph)]
    more = unify(bodies, len(bodies[0].inputs) - len(bodies[0].captures))
    return copy.create(op, [*inputs, *more], attrs)
