"""Items that branches read, read before the branches.

Of a loop with branches LLVM makes vector instructions by computing all branches in each iteration.
Reads in branches are reads under a mask then. Where an item is read around a branch, too, or by the
next iteration, LLVM joins the reads across branches, and makes no vectors of what results. Branches
with arithmetic alone have neither cost. So a read that cannot fail, or that happens in any branch
that is taken, comes before them all.

Of a loop whose ends are loops of their own (`nbta.compiler.loop_ends`) a read may fail at the ends
alone, as that of ``u[i - 1]`` where ``i > 0`` is not asked first. It comes into a branch of that
condition, which the version between the ends does without.
"""

from functools import partial
from typing import NamedTuple

import numpy as np

from nbta.compiler.access_sets import (
    is_item_read,
    is_movable,
    is_within,
    moved,
    place_of,
    reads_in_any_case,
)
from nbta.compiler.induction import Counts
from nbta.compiler.loop_ends import settled
from nbta.compiler.manager import Fact, analysis, contract
from nbta.compiler.program import Program, changes
from nbta.compiler.stencils import stencils
from nbta.compiler.sums import free_sums, goes_in_vectors
from nbta.graph.graph import SubGraph, everything, running, substitute
from nbta.graph.operation import Operation, Tensor
from nbta.graph.views import Branch, Loop, is_loop, origin
from nbta.ops.core.arithmetic import LOGICAL_NOT, logical_and, logical_or
from nbta.ops.core.dispatch import CONSTANT
from nbta.ops.indexing.items import GETITEM
from nbta.ops.loops.bodies import trace
from nbta.ops.loops.branch import CASE, add_case


@contract(requires=[Fact.RANKS])
@changes
def read_before_branches(program: Program) -> Program:
    """Read items before the branches that use them, in loops that become vector instructions."""
    counts, found = analysis(Counts, program), []
    for op in running(program):
        if is_loop(op) and any(each.record is CASE for each in Loop(op).body.operations):
            loop = Loop(op)
            between = settled(loop, counts)
            known, apart = (counts, 0) if between is None else (between.counts, between.iterations)
            vectors = goes_in_vectors(loop, known, branches=True, apart=apart)
            if vectors or stencils(loop, counts, free_sums(loop), between):
                safe = _safe_reads(counts, loop.body)
                found += [(loop.body, read, None) for read in safe]
                if between is not None:
                    found += _reads_between(counts, loop.body, between, set(safe))
    for body, read, condition in found:
        _move(body, read, condition)
    return program


class _Condition(NamedTuple):
    """Where a read cannot fail: where a truth value of the body is, or is not."""

    test: Tensor
    holds: bool


def _reads_between(counts, body, between, safe):
    """Other reads in branches, that cannot fail where a condition is as between the ends."""
    cases = [op for op in body.operations if op.record is CASE and op.inputs[0] in between.truths]
    ways = [(op, between.truths[op.inputs[0]]) for op in cases]
    ways = [(op, holds, Branch(op).branches[0 if holds else 1]) for op, holds in ways]
    inner = {branch for *_, branch in ways}
    for read in everything(body):
        if read.graph is body or read.graph in inner or read in safe or not is_item_read(read):
            continue
        known = (
            (op, holds)
            for op, holds, branch in ways
            if is_within(counts, read, branch) and _runs_only_where(read.graph, body, op, holds)
        )
        way = next(known, None)
        if way is not None:
            yield body, read, _Condition(way[0].inputs[0], way[1])


def _runs_only_where(graph, body, case, holds) -> bool:
    """Whether a branch in a body runs only where the truth value of another branch is as told.

    Elsewhere what it reads would be missed, also where the index is one from the end.
    """
    while graph is not body:
        owner = graph.owner
        if owner.record is CASE and owner.inputs[0].dtype.kind == "b":
            value = graph is Branch(owner).branches[0]
            if _implies(owner.inputs[0], value, origin(case.inputs[0]), holds):
                return True
        graph = graph.outer
    return False


def _implies(test, value, condition, holds) -> bool:
    """Whether a truth value is ``value`` only where a condition is ``holds``."""
    test = origin(test)
    op = test.op
    if test is condition:
        return value is holds
    if op.record is LOGICAL_NOT:
        return _implies(op.inputs[0], not value, condition, holds)
    if op.record is (logical_and if value else logical_or).record:
        return any(_implies(each, value, condition, holds) for each in op.inputs)
    if op.record is not CASE or op.inputs[0].dtype.kind != "b":
        return False
    asked = origin(op.inputs[0])
    ends = zip(map(origin, Branch(op).ends(test.index)), (True, False), strict=True)
    first, second = (_known(end, asked, where) for end, where in ends)
    if first is (not value):
        return _implies(asked, False, condition, holds)
    return second is (not value) and _implies(asked, True, condition, holds)


def _known(end, asked, holds) -> bool | None:
    """What a branch gives for a truth value, where that asked for is ``holds``; None if unknown."""
    if end is asked:
        return holds
    return bool(end.op.attrs["value"]) if end.op.record is CONSTANT else None


def _safe_reads(counts, body) -> list[Operation]:
    """Reads of items in branches of a body that cannot fail, or happen in each iteration."""
    always = reads_in_any_case(body, partial(place_of, counts))
    return [
        op
        for op in everything(body)
        if op.graph is not body
        and is_item_read(op)
        and (is_within(counts, op, body) or place_of(counts, op) in always)
    ]


def _move(body: SubGraph, read: Operation, condition: _Condition | None) -> None:
    if all(is_movable(body, tensor) for tensor in read.inputs):
        inputs = [moved(body, tensor) for tensor in read.inputs]
        if condition is None:
            with body.control_dependencies(None):
                made = _same_read(body, read, inputs)
        else:
            made = read_where(*condition, body, read, inputs)
        substitute(read.graph, {read.outputs[0]: read.graph.resolve(made)})


def _same_read(graph, read, inputs):
    made = graph.create(GETITEM, inputs, dict(read.attrs))
    made.location = read.location
    return made.outputs[0]


def read_where(test: Tensor, holds: bool, graph, read: Operation, inputs: list[Tensor]) -> Tensor:
    """What an operation reads, of other inputs in a graph, where a truth value holds; else 0.

    ``holds`` is what the truth value is there.
    """
    with graph.as_default(), graph.control_dependencies(None), graph.name_scope("item") as scope:
        none = trace(graph, f"{scope}none", [], lambda: [np.zeros((), read.outputs[0].dtype)])
        taken = trace(graph, f"{scope}taken", [], list)
        with taken.as_default():
            taken.outputs = [_same_read(taken, read, list(map(taken.resolve, inputs)))]
        return add_case(test, [taken, none] if holds else [none, taken], scope).outputs[0]
