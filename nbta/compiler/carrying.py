"""Values that go through loops and branches, and what stands for them around these."""

from collections import defaultdict

import numpy as np

from nbta.graph.graph import lies_in
from nbta.graph.operation import DATA, Tensor
from nbta.graph.views import Branch, Loop, holder_in, is_body_of_branch, is_branch, is_loop
from nbta.ops.arrays.tensor_arrays import READS
from nbta.ops.core.dispatch import as_tensor, special
from nbta.ops.core.shaping import INT64, cast
from nbta.ops.loops.residuals import empty_tape


def owners_around(graph, depth) -> list | None:
    """So many loops around a graph, with branches in between, from the inside out; or None."""
    found = []
    while depth:
        owner = getattr(graph, "owner", None)
        if owner is None or not (is_branch(owner) or graph is Loop(owner).body):
            return None
        found.append(owner)
        graph = owner.graph
        depth -= is_loop(owner)
    while is_body_of_branch(graph):  # what restores may be in a branch of its own
        found.append(graph.owner)
        graph = graph.owner.graph
    return found


def out_of_branch(case, value) -> Tensor:
    """A value of a branch after it; where another branch runs, zeros, or none of them."""
    if not any(lies_in(value.graph, branch) for branch in case.branches):
        return value
    ends = []
    for branch in case.branches:
        with branch.as_default(), branch.control_dependencies(None):
            here = lies_in(branch, value.graph)
            ends.append(branch.resolve(value) if here else as_tensor(nothing_like(value), branch))
    return case.add_result(ends)


def nothing_like(value):
    """What stands for a value where it is not made: zeros, or none of them."""
    if value.spec.is_tape:
        return empty_tape(value.spec)
    if value.kind != DATA:
        return special(value.kind)
    dimensions = [dimension if type(dimension) is int else 0 for dimension in value.spec.shape]
    return np.zeros(dimensions, value.dtype)


def bodies_of(home, op):
    """The bodies in a graph that an operation lies in, from the inside out."""
    found, graph = [], op.graph
    while graph is not home:
        found.append(graph)
        graph = graph.outer
    return found


def carried(graph, ops, value, act, order) -> Tensor:
    """A value that goes through operations of a graph, and of bodies in it, one after another.

    ``act(op, value)`` gives the value after one of them, which is the same where that only reads
    it; ``order(graph)`` numbers operations in running order. The last value is returned.
    """
    holders = defaultdict(list)
    for op in ops:
        holders[holder_in(graph, op)].append(op)
    for holder in sorted(holders, key=order(graph).get):
        inner = holders[holder]
        with graph.as_default(), graph.control_dependencies(None):
            value = act(holder, value) if holder in inner else graph.resolve(value)
        if holder not in inner:
            value = _carried_in(holder, inner, value, act, order)
    return value


def _carried_in(holder, ops, value, act, order):
    """`carried` through the bodies of a loop or branch."""
    if is_branch(holder):
        case = Branch(holder)
        ends = [
            carried(branch, [op for op in ops if lies_in(op.graph, branch)],
                    branch.resolve(value), act, order)
            for branch in case.branches
        ]  # fmt: skip
        pairs = zip(case.branches, ends, strict=True)
        same = all(end is branch.resolve(value) for branch, end in pairs)
        return value if same else case.add_result(ends)
    loop, body = Loop(holder), Loop(holder).body
    if all(op.record in READS for op in ops):
        carried(body, ops, body.resolve(value), act, order)
        return value
    place = loop.count
    loop.add_variable(value, lambda parameter: parameter)
    body.outputs[place] = carried(body, ops, loop.variable(place).parameter, act, order)
    body.changed()
    return loop.variable(place).last


def threaded(bodies, first, inner, begun=lambda value: value) -> list[Tensor]:
    """A new variable of bodies in one another, given from the inside out; its last values.

    ``inner(parameter)`` gives its next value in the innermost one, which is the first of the
    result; each other one is what the loop or branch of a body gives. Other branches pass it on.
    ``begun(value)`` gives the value with which the innermost loop begins.
    """
    if not bodies:
        return [inner(first)]
    *deeper, body = bodies
    op = body.owner
    if not deeper:
        first = begun(first)
    if is_branch(op):
        with body.as_default(), body.control_dependencies(None):
            following = threaded(deeper, body.resolve(first), inner, begun)
        branches = Branch(op).branches
        ends = [following[-1] if branch is body else branch.resolve(first) for branch in branches]
        return [*following, Branch(op).add_result(ends)]
    loop, place = Loop(op), Loop(op).count
    loop.add_variable(first, lambda parameter: parameter)
    with body.as_default(), body.control_dependencies(None):
        following = threaded(deeper, loop.variable(place).parameter, inner, begun)
    body.outputs[place] = following[-1]
    body.changed()
    return [*following, loop.variable(place).last]


def as_long(index) -> Tensor:
    """An index as int64."""
    return index if index.dtype == INT64 else cast(index, INT64)
