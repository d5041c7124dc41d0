"""Gradient arrays of arrays that iterations make, found without the arrays.

An iteration of a loop makes an array, a list that it fills, and the iteration of the loop back
looks up the gradient array of it. For that it would have to find the array again, by a handle that
only Python can keep. But it needs no more of it than its size and the shapes of its elements: it
makes an empty one like it, a *shadow array*, whose gradient array takes what is added.
"""

from collections import defaultdict
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from nbta import shapes
from nbta.compiler.carrying import as_long, out_of_branch, owners_around
from nbta.compiler.elements import (
    dimensions_of_rows,
    each,
    element_shape,
    packed,
    stacked,
    unpacked,
)
from nbta.compiler.induction import Linear, around, depth
from nbta.compiler.manager import Fact, analysis, contract
from nbta.compiler.passes import prune
from nbta.compiler.program import Program, changes
from nbta.compiler.recompute import Again
from nbta.compiler.shape_vectors import shape_in
from nbta.compiler.tapes import Tapes
from nbta.graph.graph import SubGraph, lies_in, substitute
from nbta.graph.operation import FLOW, Operation, Spec, Tensor
from nbta.graph.views import Branch, Loop, holder_in, is_body_of_branch, is_branch, origin
from nbta.ops.arrays.tensor_arrays import CREATE, LOOKUP, LOOKUPS, SIZE, WRITES, Access
from nbta.ops.core.arithmetic import ADD_N, minimum, subtract
from nbta.ops.core.dispatch import as_tensor
from nbta.ops.core.filling import arange, zeros
from nbta.ops.core.shaping import shape_of
from nbta.ops.indexing.items import getitem
from nbta.ops.indexing.joining import concatenate, stack
from nbta.ops.loops.residuals import RESTORE, restore, saved_by


@contract(requires=[Fact.RANKS, Fact.TAPES_OF_LOOPS], breaks=[Fact.SAVED_BY_TAPES])
@changes
def detach_gradients(program: Program) -> Program:
    """Make gradient arrays of arrays that an iteration made anew in the adjoint iteration.

    They need no more of the forward array than its size and the shape of its elements; so its
    handle need not be kept for them.
    """
    tapes, lookups = analysis(Tapes, program), defaultdict(list)
    for op in tapes.uses.operations:
        if op.record in LOOKUPS:
            lookups[tapes.uses.array(op.inputs[0]), op.attrs["source"]].append(op)
    unknown = any(array is None for array, _ in lookups)
    known = [
        ((*array, source), ops)
        for (array, source), ops in lookups.items()
        if array is not None and not (unknown and tapes.uses.is_value(array[:1]))
    ]
    moved, left = False, set()
    for array, ops in sorted(known, key=lambda one: -len(one[0])):
        used = {origin(op.inputs[0]).op for op in tapes.uses.users[array] if op not in left}
        passed = [_pass_over(tapes, op) for op in ops if op not in used]
        moved |= any(passed)
        asked = {op.attrs.get("clear_after_read") for op in ops}
        # else others have the handle than those that look it up, or the first in a run decides
        if used <= set(ops) and len(asked) == 1:
            detached = _detach(tapes, array, [op for op in ops if op in used])
            moved |= detached
            left.update(ops if detached else (op for op in ops if op not in used))
    return prune.in_place(program) if moved else program


class _Use(NamedTuple):
    """A lookup of a gradient array: where its shadow array can be, and of which iterations."""

    lookup: Operation
    home: SubGraph | None
    iterations: tuple


class _Group(NamedTuple):
    """Lookups that share a shadow array, in a graph that each iteration enters once."""

    home: SubGraph
    iterations: tuple
    lookups: list[Operation]


def _detach(tapes, array, lookups):
    """Let all lookups of a gradient array find that of a shadow array; whether they can."""
    if not lookups or not tapes.is_known(array):
        return False
    groups = _groups(tapes, array, [_use(tapes, op) for op in lookups])
    made = [_shadow_array(tapes, group.home, array[0], group.iterations) for group in groups]
    if not made or any(each is None for each in made):
        return False
    steps = list(pairwise(groups))
    indices = [_same_iterations_there(tapes, one, other) for one, other in steps]
    if any(index is None for index in indices):
        return False
    for group, shadow_array in zip(groups, made, strict=True):
        _look_up(array, group, shadow_array)
    for (one, other), given, index in zip(steps, pairwise(made), indices, strict=True):
        _pass_on(tapes, array, (one, other), given, index)
    return True


def _use(tapes, lookup):
    handle = _root(lookup.inputs[0])
    made, iterations = tapes.reaching_definition(handle)
    plain = lookup.record is LOOKUP and len(lookup.inputs) == 2
    # else iterations may share it, or look it up by iteration
    plain &= not iterations or made.op.record is CREATE
    return _Use(lookup, _home(lookup, handle, iterations) if plain else None, iterations)


def _groups(tapes, array, uses):
    """One group, or else several, of which each has a loop of its own after the one before."""
    if any(use.home is None for use in uses):
        return []
    whole = _group(tapes, array, uses)
    if whole is not None:
        return [whole]
    graph, found = _around_all([use.home for use in uses]), defaultdict(list)
    if any(use.home is graph for use in uses):
        return []
    for use in uses:
        found[holder_in(graph, use.home.owner)].append(use)
    order = tapes.order(graph)
    groups = [_group(tapes, array, found[op]) for op in sorted(found, key=order.get)]
    return [] if any(group is None for group in groups) else groups


def _group(tapes, array, uses):
    """Uses as a group, where all are of the same iterations, each with an array of its own."""
    home, places = _around_all([use.home for use in uses]), [use.iterations for use in uses]
    if not all(tapes.same_iterations(places[0], during) for during in places):
        return None
    iterations = _first_seen(home, places)
    once = iterations is not None and _is_visited_once(tapes, home, array[0].graph, iterations)
    return _Group(home, iterations, [use.lookup for use in uses]) if once else None


def _look_up(array, group, shadow_array):
    """Let lookups find the gradient array of a shadow array."""
    for op in group.lookups:
        op.inputs[0] = op.graph.resolve(shadow_array.handle)
        if len(array) > 2 and op.attrs.get("clear_after_read") is None:
            op.attrs["clear_after_read"] = False  # as for gradient arrays of gradient arrays
        # of the forward iteration, long over
        if not lies_in(origin(op.inputs[1]).graph, group.home):
            op.inputs[1] = op.graph.resolve(shadow_array.flow)
        _run_after(shadow_array.flow.op, holder_in(group.home, op))
        op.graph.changed()


# What one loop adds to a gradient array that a later one goes on with.


def _same_iterations_there(tapes, one, other):
    """The counters of the loops around a group in the iterations of another; None where unknown."""
    graph, counters = _around_all([one.home, other.home]), []
    bodies = [body for body in around(one.home) if lies_in(body, graph) and body is not graph]
    count = len(bodies)
    if count > min(len(one.iterations), len(other.iterations)):
        return None
    pairs = zip(one.iterations[-count:], other.iterations[-count:], strict=True)
    for body, (there, here) in zip(reversed(bodies), pairs if count else (), strict=True):
        start, step = tapes.affine(there, body)
        if (start, step) != (Linear(0), 1):
            zero = as_tensor(np.int64(0), other.home)
            first = Again(other.home, body, (*counters, zero), {}, tapes).make(there)
            if first is None:
                return None
            here = _distance(other.home, here, first, step)
        counters.append(here)
    return tuple(counters)


def _distance(graph, here, first, step):
    with graph.as_default(), graph.control_dependencies(None):
        here, first = (as_long(graph.resolve(tensor)) for tensor in (here, first))
        return subtract(here, first) if step == 1 else subtract(first, here)


def _pass_on(tapes, array, groups, shadow_arrays, counters):
    """Let the gradient array of a group begin with the sums that an earlier one left."""
    one, other = groups
    for op in (*one.lookups, *other.lookups):
        op.attrs["clear_after_read"] = False
    total = _total(tapes, array, one, shadow_arrays[0])
    begun = saved_in(other.home, one.home, counters, total)
    with other.home.as_default(), other.home.control_dependencies(None):
        handle, flow, dimensions = shadow_arrays[1]
        sums = Access(handle, flow).gradient(array[-1], clear_after_read=False)
        if dimensions is None:
            written = sums.scatter(arange(getitem(shape_of(begun), 0)), begun)
        else:
            written = unpacked(other.home, sums, dimensions, begun)
    for op in other.lookups:
        _run_after(written.op, holder_in(other.home, op))
    other.home.changed()


def _total(tapes, array, group, shadow_array):
    """All sums of a shadow array's gradient array, after what a group of lookups adds."""
    writes = [op for op in tapes.uses.users[array] if op.record in WRITES]
    mine = [op for op in writes if origin(op.inputs[0]).op in group.lookups]
    last, home = dict.fromkeys(holder_in(group.home, op) for op in mine), group.home
    ends = [end for op in last for end in op.outputs if end.kind == FLOW]
    handle, flow, dimensions = shadow_array
    with home.as_default(), home.control_dependencies(None):
        sums = Access(handle, flow).gradient(array[-1], clear_after_read=False)
        sums = Access(sums.handle, home.create(ADD_N, [sums.flow, *ends]).outputs[0])
        dtype, shape = array[0].attrs["dtype"], element_shape(tapes, array[0])
        if dimensions is not None:
            return packed(home, sums, dimensions, dtype)
        return stacked(home, sums, Spec(dtype, shape))


def _pass_over(tapes, lookup):
    """Let flows go by a lookup of which nobody uses the array; whether that is one by a tape."""
    plain = lookup.record is LOOKUP and not lookup.control_inputs
    by_tape = origin(_root(lookup.inputs[0])).op.record is RESTORE
    if not (plain and by_tape) or lookup in tapes.uses.waited:
        return False
    substitute(lookup.graph, {lookup.outputs[1]: lookup.inputs[1]})
    return True


def _around_all(graphs):
    """The innermost graph that some graphs are, or lie in."""
    found = min(graphs, key=depth)
    while not all(lies_in(graph, found) for graph in graphs):
        found = found.outer
    return found


def _first_seen(graph, places):
    """Of indices that are the same the first that a graph sees, or computes as a branch in it."""
    again = Again(graph, graph, (), {})
    for iterations in places:
        seen = [t if lies_in(graph, t.graph) else again.make(t) for t in iterations]
        if all(iteration is not None for iteration in seen):
            return tuple(seen)
    return None


def _run_after(written, op):
    """Let an operation come after a write of which its own flow does not know."""
    if written.record is not CREATE and written not in op.control_inputs:
        op.add_control_input(written)


def _root(handle):
    """The handle of an array that is no gradient array, by which one has been looked up."""
    while origin(handle).op.record is LOOKUP:
        handle = origin(handle).op.inputs[0]
    return handle


def _home(op, handle, iterations):
    """Where a shadow array of an array can be, once for each: where an iteration reads its handle.

    Or, where a branch has made the array, in the only branch that uses it.
    """
    made, graph = origin(handle).op, op.graph
    if iterations:
        seen = made.record is RESTORE and all(
            lies_in(made.graph, iteration.graph) for iteration in iterations
        )
        return made.graph if seen else None
    if not is_branch(made) or graph is made.graph:
        return None
    while graph.outer is not made.graph:
        graph = graph.outer
    return graph if is_body_of_branch(graph) else None


def _shadow_array(tapes, home, create, iterations):
    """An empty array like one that an iteration, or a branch, has made; None if that is unknown."""
    if create.record is not CREATE:
        return None
    shape = element_shape(tapes, create)
    known = shapes.is_known(shape)
    dimensions = None if known or shape is None else shape_in(home, shape)
    if not known and dimensions is None:
        return _of_rows(tapes, home, create, iterations)
    size = _again(home, create, iterations, _size(tapes, create))
    if size is None:
        return None
    attrs = dict(create.attrs) | {"dynamic_size": False, "infer_shape": True}
    attrs |= {"element_shape": shape} if shape and known else {}
    made = _ShadowArray(*home.create(CREATE, [size], attrs).outputs)
    return made if known else _told(made, size, dimensions, create.attrs["dtype"])


def _again(home, create, iterations, made):
    """What is known of an array that iterations made: computed again, or saved; else None."""
    found = None if made is None else Again(home, create.graph, iterations, {}).make(made)
    if found is not None or made is None:
        return found
    return saved_in(home, create.graph, iterations, made)


def saved_in(home, graph, iterations, made):
    """What a graph made in iterations of the loops around it, saved for another; else None."""
    owners, specs = owners_around(graph, len(iterations)), []
    for owner in owners or ():
        if is_branch(owner):
            made = out_of_branch(Branch(owner), made)
        else:
            specs.append(made.spec)
            made = saved_by(Loop(owner), Loop(owner).body.resolve(made))
    if owners is None or not lies_in(home, made.graph):
        return None
    with home.as_default(), home.control_dependencies(None):
        made = home.resolve(made)
        for iteration in iterations:
            made = restore(made, home.resolve(iteration), specs.pop())
    return made


def _size(tapes, create):
    """How many slots an array has in the end, in the graph that makes it; None if unknown."""
    if not create.attrs.get("dynamic_size"):
        return create.inputs[0]
    flow = tapes.last_flow(create)
    if flow is None:
        return None
    return create.graph.create(SIZE, [create.outputs[0], flow], {}).outputs[0]


class _ShadowArray(NamedTuple):
    """An array in place of one that iterations made; its rows' dimensions, if they differ."""

    handle: Tensor
    flow: Tensor
    dimensions: Tensor | None = None


def _of_rows(tapes, home, create, iterations):
    """An array of zeros like the rows that iterations wrote; None if those are unknown."""
    made = _again(home, create, iterations, dimensions_of_rows(tapes, create))
    if made is None:
        return None
    attrs = dict(create.attrs) | {"dynamic_size": False, "infer_shape": False}
    with home.as_default(), home.control_dependencies(None):
        count = getitem(shape_of(made), 0)
    array = Access(*home.create(CREATE, [count], attrs).outputs)

    def written(row, flow):
        zero = zeros(getitem(row.graph.resolve(made), row), attrs["dtype"])
        return Access(row.graph.resolve(array.handle), flow).write(row, zero)

    return _ShadowArray(array.handle, each(home, count, array.flow, written), made)


def _told(made, size, dimensions, dtype):
    """An empty array that knows by a first row of zeros which shape its elements have."""
    array, graph = Access(made.handle, made.flow), made.flow.graph
    with graph.as_default(), graph.control_dependencies(None):
        count = minimum(as_long(size), np.int64(1))
        rows = zeros(concatenate([stack([count]), graph.resolve(dimensions)]), dtype)
        return _ShadowArray(array.handle, array.scatter(arange(count), rows))


def _is_visited_once(tapes, home, body, iterations):
    """Whether iterations around a graph name as many iterations around a body, each once."""
    bodies = list(around(home))
    found = [tapes.affine(*pair) for pair in zip(reversed(iterations), bodies, strict=False)]
    each = len(found) == len(iterations) and all(f is not None and f[1] in (1, -1) for f in found)
    return each and all(lies_in(body, other) for other in bodies[len(iterations) :])
