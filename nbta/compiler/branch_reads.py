"""Items that branches read, read before the branches.

Of a loop with branches LLVM makes vector instructions by computing all branches in each iteration.
Reads in branches are reads under a mask then. Where an item is read around a branch, too, or by the
next iteration, LLVM joins the reads across branches, and makes no vectors of what results. Branches
with arithmetic alone have neither cost. So a read that cannot fail, or that happens in any branch
that is taken, comes before them all.
"""

from collections.abc import Callable
from functools import partial

from nbta.compiler.access_sets import is_within
from nbta.compiler.induction import Counts
from nbta.compiler.manager import Fact, analysis, contract
from nbta.compiler.program import Program, changes
from nbta.compiler.stencils import stencils
from nbta.compiler.sums import free_sums, goes_in_vectors
from nbta.graph.graph import Graph, SubGraph, everything, running, subgraphs, substitute
from nbta.graph.operation import Operation, Tensor
from nbta.graph.views import Loop, is_loop, origin
from nbta.ops.core.arithmetic import add, multiply, subtract
from nbta.ops.core.dispatch import CONSTANT, constant_in
from nbta.ops.indexing.items import GETITEM
from nbta.ops.loops.branch import CASE
from nbta.ops.loops.iteration_counts import is_integer

_INDICES = frozenset((add.record, subtract.record, multiply.record))


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


def is_item_read(op: Operation) -> bool:
    """Whether an operation reads an item that is a number."""
    return op.record is GETITEM and op.outputs[0].spec.rank == 0 and not op.control_inputs


def reads_in_any_case(graph: Graph, place: Callable) -> set:
    """The places, of operations that read items, that a body or a branch reads whenever it runs."""
    found = {place(op) for op in graph.operations if is_item_read(op)} - {None}
    for op in graph.operations:
        if op.record is CASE:
            found |= set.intersection(*(reads_in_any_case(each, place) for each in subgraphs(op)))
    return found


def place_of(counts: Counts, op: Operation) -> tuple | None:
    """What tells an item from others: its array, and its indices as linear forms."""
    if not all(map(is_integer, op.inputs[1:])):
        return None
    forms = (counts.number(index) for index in op.inputs[1:])
    places = tuple((form.constant, frozenset(form.terms.items())) for form in forms)
    return origin(op.inputs[0]), op.attrs["key"], places


def _move(body: SubGraph, read: Operation) -> None:
    inputs = [outside(body, tensor) for tensor in read.inputs]
    if all(tensor is not None for tensor in inputs):
        with body.control_dependencies(None):
            made = body.create(GETITEM, inputs, dict(read.attrs))
        made.location = read.location
        substitute(read.graph, {read.outputs[0]: read.graph.resolve(made.outputs[0])})


def outside(body, tensor) -> Tensor | None:
    """A tensor of a branch in the body around it, where it is captured or an index."""
    while tensor in tensor.graph.sources and tensor.graph is not body:
        tensor = tensor.graph.sources[tensor]
    op = tensor.op
    if tensor.graph is body:
        return tensor
    if op.record is CONSTANT:
        return constant_in(body, op.attrs["value"])
    if op.record not in _INDICES or not is_integer(tensor) or op.control_inputs:
        return None
    inputs = [outside(body, each) for each in op.inputs]
    if any(each is None for each in inputs):
        return None
    with body.control_dependencies(None):
        return body.create(op.record, inputs, dict(op.attrs)).outputs[0]
