"""Case: runs one of several branches.

The inputs are the number of the branch (or a truth value: the first branch is for True) and what
the branches capture. The gradient is a case with the gradients of the branches. What it needs of a
branch's values becomes another result of the forward case.
"""

from collections import defaultdict

import numpy as np

from nbta.graph.dependence import dependence
from nbta.graph.graph import at_line, current, unify
from nbta.graph.labels import call_after
from nbta.graph.operation import DATA, NO_FACTS
from nbta.graph.views import Branch, common_spec
from nbta.ops.core.arithmetic import where
from nbta.ops.core.dispatch import (
    CONSTANT,
    as_tensor,
    constant_in,
    define,
    operation_key,
    special,
)
from nbta.ops.core.filling import zeros
from nbta.ops.loops.bodies import GradientGraph, no_gradient_like, parts_are_read
from nbta.ops.loops.residuals import empty_tape


def _infer(index, *specs, branches, facts=NO_FACTS):
    results = [[tensor.spec for tensor in branch.outputs] for branch in branches]
    return tuple(common_spec(*specs) for specs in zip(*results, strict=True))


def choose(index, branches):
    """The branch for a number or a truth value; a number that none has means the last."""
    if index.dtype.kind == "b":
        return branches[0 if index else 1]
    place = int(index)
    return branches[place if 0 <= place < len(branches) else -1]


def _evaluate(step, values, *, branches, facts=NO_FACTS):
    return step.function(choose(values.pop(0), branches))(step, values)


def _connections(op):
    ways = zip(*map(dependence, Branch(op).branches), strict=True)
    return [[op.inputs[place + 1] for place in sorted(set().union(*places))] for places in ways]


def add_case(index, branches, name=None, **attrs):
    """The operation that runs one of several branches."""
    captured = unify(branches, 0)
    attrs = {"branches": tuple(branches), **attrs}
    op = current().create(CASE, [index, *captured], attrs, name=name)
    for branch in branches:
        branch.owner = op
    return op


#: Of so many operations before a branch one may be what the branch computes again.
NEAR = 64
#: So many operations on integers are done for both branches, without asking which one it is.
FEW = 8


def choices(index, branches) -> list | None:
    """The results of two branches that compute next to nothing, as `where` of values around them.

    Of numbers alone: a choice between two is made without a jump, which is taken wrongly as often
    as the condition is open. A few integers, such as the index of a neighbour at the end of an
    array, are computed for both branches, so that a gradient can compute them again in place of
    saving them. None for all other branches.

    Parameters
    ----------
    index : Tensor
    branches : list of SubGraph
    """
    if index.dtype.kind != "b" or index.spec.rank != 0 or len(branches) != 2:
        return None
    ends = list(zip(*(branch.outputs for branch in branches), strict=True))
    if any(end.kind != DATA or end.spec.rank != 0 for pair in ends for end in pair):
        return None
    if any(op.record.effects or op.record.foreign for b in branches for op in b.operations):
        return None
    found, new = {}, set()
    if not all(_is_near(end, found, new) for pair in ends for end in pair) or len(new) > FEW:
        return None
    values = [[_made(end, found) for end in pair] for pair in ends]
    return [one if one is other else where(index, one, other) for one, other in values]


def _around(tensor, found):
    """A value of a branch as a tensor of the graph around it; None where it has none."""
    branch, op = tensor.graph, tensor.op
    if tensor in branch.sources:
        return branch.sources[tensor]
    if op.record is CONSTANT:
        return constant_in(branch.outer, op.attrs["value"])
    if op not in found:
        inputs = [_around(each, found) for each in op.inputs]
        known = not op.control_inputs and all(t is not None for t in inputs)
        found[op] = _again(branch.outer, op, inputs) if known else None
    return None if found[op] is None else found[op].outputs[tensor.index]


def _again(graph, op, inputs):
    """What has computed in a graph what an operation of a branch would of some inputs; or None."""
    near = [other for other in graph.operations[-NEAR:] if other.record is op.record]
    keys = {operation_key(each, each.inputs, tuple(each.control_inputs)): each for each in near}
    key = operation_key(op, inputs)
    return None if key is None else keys.get(key)


def _is_near(tensor, found, new) -> bool:
    """Whether a value is around a branch, or an integer that follows from values around it.

    Operations that are not done there yet are noted in ``new``.
    """
    op = tensor.op
    if op in new or _around(tensor, found) is not None:
        return True
    if len(new) > FEW or op.control_inputs or not _is_of_integers(op):
        return False
    new.add(op)
    return all(_is_near(each, found, new) for each in op.inputs)


def _is_of_integers(op):
    """Whether an operation gives an integer or a truth value of others, and cannot fail."""
    numbers = (*op.inputs, *op.outputs)
    if any(t.kind != DATA or t.spec.rank != 0 or t.dtype.kind not in "biu" for t in numbers):
        return False
    return op.inputs and op.record.elementwise and op.record.cheap and op.record.is_total(op)


def _made(tensor, found):
    """A value that `_is_near` has told of, computed around the branch where it is not there."""
    there, op = _around(tensor, found), tensor.op
    if there is None:
        inputs = [_made(each, found) for each in op.inputs]
        with at_line(op.location):
            found[op] = tensor.graph.outer.create(op.record, inputs, dict(op.attrs))
        there = found[op].outputs[tensor.index]
    return there


def _expose(op, branch, tensor, free):
    """Another result of a case: a tensor of one branch, for the gradient of that branch alone.

    Other branches give nothing of use, or what their own gradients need of the same dtype: one
    number is saved for all branches, as only one of them runs. ``free`` is from `_free_numbers`.
    """
    if tensor in op.tapes:
        return op.tapes[tensor]
    found = free[tensor.dtype] if _is_number(tensor) else None
    if found:
        op.tapes[tensor] = found.pop()
        Branch(op).replace_end(branch, op.tapes[tensor], tensor)
        return op.tapes[tensor]
    ends = []
    for other in Branch(op).branches:
        with other.as_default(), other.control_dependencies(None):
            ends.append(tensor if other is branch else _nothing_like(tensor.spec))
    op.tapes[tensor] = Branch(op).add_result(ends)
    call_after(op.tapes[tensor], tensor)
    return op.tapes[tensor]


def _free_numbers(op, branch):
    """By dtype, numbers that a case gives for gradients of other branches and not of one."""
    taken = {result for tensor, result in op.tapes.items() if tensor.graph is branch}
    found = defaultdict(list)
    for result in reversed(dict.fromkeys(op.tapes.values())):
        if _is_number(result) and result not in taken:
            found[result.dtype].append(result)
    return found


def _is_number(tensor):
    return tensor.kind == DATA and tensor.spec.rank == 0


def _nothing_like(spec):
    if spec.is_tape:
        return empty_tape(spec)
    if spec.kind != DATA:
        return special(spec.kind)
    dimensions = [dimension if type(dimension) is int else 0 for dimension in spec.shape or ()]
    return as_tensor(zeros(np.array(dimensions, np.int64), spec.dtype))


def _gradient(context, op, *grads):
    given = [place for place, grad in enumerate(grads) if grad is not None]
    case, graph = Branch(op), current()
    depends = [dependence(branch) for branch in case.branches]
    kept = [
        place
        for place, tensor in enumerate(case.captured)
        if context.wants(tensor) and any(place in way[i] for way in depends for i in given)
    ]
    if not kept:
        return [None] * len(op.inputs)
    with graph.name_scope(op.name.rpartition("/")[2] + "_grad") as scope:
        sums = _sums(context, case, kept)
        backward = [
            _branch_gradient(context, op, branch, f"{scope}branch_{i}", (given, kept, sums), grads)
            for i, branch in enumerate(case.branches)
        ]
        made = add_case(graph.resolve(case.index), backward, scope)
    result = [None] * len(op.inputs)
    for place, grad in zip(kept, made.outputs, strict=True):
        result[place + 1] = grad
    return result


def _sums(context, case, kept):
    """What branches that read parts of captured tensors add to, if anything is there already."""
    found = {}
    for place in kept:
        tensor = case.captured[place]
        pairs = [(branch, branch.inputs[place]) for branch in case.branches]
        parts = tensor.spec.rank != 0 and any(parts_are_read(*pair) for pair in pairs)
        if parts or tensor.spec.is_tape:
            found[place] = context.so_far(tensor)
    return {place: total for place, total in found.items() if total is not None}


def _branch_gradient(context, op, branch, name, places, grads):
    """The gradient of a branch: for each tensor that it captures, added to the sum if there is one.

    ``places`` are those of results with a gradient, those of captured tensors, and sums so far.
    """
    given, kept, sums = places
    backward = GradientGraph(current(), name, branch)
    with backward.as_default():
        outputs = [branch.outputs[place] for place in given]
        seeds = [backward.resolve(grads[place]) for place in given]
        inputs = [branch.inputs[place] for place in kept]
        first = {branch.inputs[place]: backward.resolve(sums[place]) for place in sums}
        found = context.run(outputs, seeds, inputs, first)
        backward.outputs = [
            backward.resolve(first.get(tensor, no_gradient_like(tensor)) if grad is None else grad)
            for tensor, grad in zip(inputs, found, strict=True)
        ]
    free = _free_numbers(op, branch)
    backward.resolve_pending(lambda tensor: _expose(op, branch, tensor, free))
    return backward


def _tangent(context, op, *given):
    """The branch itself, with tangents of its results as further ones."""
    places = [place for place, tensor in enumerate(op.outputs) if context.has(tensor)]
    result = [None] * len(op.outputs)
    columns = [
        context.through(branch, [branch.outputs[place] for place in places], {})
        for branch in Branch(op).branches
    ]
    for place, *ends in zip(places, *columns, strict=True):
        result[place] = Branch(op).add_result(list(ends))
    return result


CASE = define(
    "Case",
    _infer,
    _evaluate,
    _gradient,
    effects=True,
    several=True,
    takes_list=True,
    connections=_connections,
    tangent=_tangent,
)
