"""Items that branches read, read before the branches.

Of a loop with branches LLVM makes vector instructions by computing all branches in each iteration.
Reads in branches are reads under a mask then. Where an item is read around a branch, too, or by the
next iteration, LLVM joins the reads across branches, and makes no vectors of what results. Branches
with arithmetic alone have neither cost. So a read that cannot fail, or that happens in any branch
that is taken, comes before them all.
"""

from functools import partial

from nbta.compiler.access_sets import (
    is_item_read,
    is_movable,
    is_within,
    moved,
    place_of,
    reads_in_any_case,
)
from nbta.compiler.induction import Counts
from nbta.compiler.manager import Fact, analysis, contract
from nbta.compiler.program import Program, changes
from nbta.compiler.stencils import stencils
from nbta.compiler.sums import free_sums, goes_in_vectors
from nbta.graph.graph import SubGraph, everything, running, substitute
from nbta.graph.operation import Operation
from nbta.graph.views import Loop, is_loop
from nbta.ops.indexing.items import GETITEM
from nbta.ops.loops.branch import CASE


@contract(requires=[Fact.RANKS])
@changes
def read_before_branches(program: Program) -> Program:
    """Read items before the branches that use them, in loops that become vector instructions."""
    counts, found = analysis(Counts, program), []
    for op in running(program):
        if is_loop(op) and any(each.record is CASE for each in Loop(op).body.operations):
            loop = Loop(op)
            vectors = goes_in_vectors(loop, counts, branches=True)
            if vectors or stencils(loop, counts, free_sums(loop)):
                found += [(loop.body, read) for read in _safe_reads(counts, loop.body)]
    for body, read in found:
        _move(body, read)
    return program


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


def _move(body: SubGraph, read: Operation) -> None:
    if all(is_movable(body, tensor) for tensor in read.inputs):
        inputs = [moved(body, tensor) for tensor in read.inputs]
        with body.control_dependencies(None):
            made = body.create(GETITEM, inputs, dict(read.attrs))
        made.location = read.location
        substitute(read.graph, {read.outputs[0]: read.graph.resolve(made.outputs[0])})
