"""Gradient arrays of arrays that trips make, found without the arrays.

A trip of a loop makes an array, a list that it fills, and the trip of the loop back looks up the
gradient array of it. For that it would have to find the array again, by a handle that only Python
can keep. But it needs no more of it than its size and the shapes of its elements: it makes an
empty one like it, a *stand-in*, whose gradient array takes what is added.
"""

from collections import defaultdict

import numpy as np

from nbta import shapes
from nbta.compiler.induction import around, depth
from nbta.compiler.nests import Nest, as_long, owners_around
from nbta.compiler.passes import prune
from nbta.compiler.program import Program, changes
from nbta.compiler.shape_passes import shape_in
from nbta.compiler.tapes import Again, Tapes
from nbta.graph.graph import lies_in
from nbta.graph.operation import Spec
from nbta.graph.views import Branch, Loop, holder_in, is_body_of_branch, is_branch, origin
from nbta.ops.arithmetic import add, less, minimum
from nbta.ops.arrays import CREATE, LOOKUP, LOOKUPS, READ, SCATTER, SIZE, WRITE, WRITES, Access
from nbta.ops.bodies import trace
from nbta.ops.dispatch import as_tensor
from nbta.ops.filling import zeros
from nbta.ops.indexing import getitem, set_item
from nbta.ops.joining import arange, concatenate, stack
from nbta.ops.loop import COUNTER, ONE, add_while
from nbta.ops.shaping import INT64, shape_of


@changes
def detach_gradients(program: Program) -> Program:
    """Make gradient arrays of arrays that a trip of a loop made in the trip back, anew.

    They need no more of the forward array than its size and the shape of its elements; so its
    handle need not be kept for them.
    """
    tapes, lookups = Tapes(program), defaultdict(list)
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
        if used <= set(ops):  # else others have the handle than those that look it up
            detached = _detach(tapes, array, [op for op in ops if op in used])
            moved |= detached
            left.update(ops if detached else (op for op in ops if op not in used))
    return prune.in_place(program) if moved else program


def _detach(tapes, array, lookups):
    """Let all lookups of a gradient array find that of a stand-in; whether they can."""
    if not lookups or not tapes.is_known(array):
        return False
    handles = [_root(op.inputs[0]) for op in lookups]
    places = [tapes.whereabouts(handle).trips for handle in handles]
    homes = [_home(*each) for each in zip(lookups, handles, places, strict=True)]
    home = None if None in homes else _around_all(homes)
    together = home is not None and all(
        op.record is LOOKUP and len(op.inputs) == 2 and tapes.same_trips(places[0], during)
        for op, during in zip(lookups, places, strict=True)
    )
    trips = _first_seen(home, places) if together else None
    made = None if trips is None else _stand_in(tapes, home, array[0], trips)
    for op in lookups if made is not None else ():
        op.inputs[0] = op.graph.resolve(made.handle)
        if len(array) > 2 and op.attrs["clear_after_read"] is None:
            op.attrs["clear_after_read"] = False  # as for gradient arrays of gradient arrays
        if origin(op.inputs[1]).op.record is READ:  # of the trip forward, which is long over
            op.inputs[1] = op.graph.resolve(made.flow)
        _run_behind(made.flow.op, holder_in(home, op))
        op.graph.changed()
    return made is not None


def _around_all(graphs):
    """The innermost graph that some graphs are, or lie in."""
    found = min(graphs, key=depth)
    while not all(lies_in(graph, found) for graph in graphs):
        found = found.outer
    return found


def _first_seen(graph, places):
    """Of indices that are the same the first that a graph sees, or computes as a branch in it."""
    again = Again(graph, graph, (), {})
    for trips in places:
        seen = [t if lies_in(graph, t.graph) else again.make(t) for t in trips]
        if all(trip is not None for trip in seen):
            return tuple(seen)
    return None


def _run_behind(written, op):
    """Let an operation come after a write of which its own flow does not know."""
    if written.record is not CREATE and written not in op.control_inputs:
        op.add_control_input(written)


def _root(handle):
    """The handle of an array that is no gradient array, by which one has been looked up."""
    while origin(handle).op.record is LOOKUP:
        handle = origin(handle).op.inputs[0]
    return handle


def _home(op, handle, trips):
    """Where a stand-in of an array can be, once for each: where a trip reads its handle.

    Or, where a branch has made the array, in the only branch that uses it.
    """
    made, graph = origin(handle).op, op.graph
    if trips:
        seen = made.record is READ and all(lies_in(made.graph, trip.graph) for trip in trips)
        return made.graph if seen else None
    if not is_branch(made) or graph is made.graph:
        return None
    while graph.outer is not made.graph:
        graph = graph.outer
    return graph if is_body_of_branch(graph) else None


def _stand_in(tapes, home, create, trips):
    """An empty array like one that a trip, or a branch, has made; None if that is unknown."""
    if create.record is not CREATE or not _is_visited_once(tapes, home, create.graph, trips):
        return None
    shape = _element_shape(tapes, create)
    known = shapes.is_known(shape)
    extents = None if known or shape is None else shape_in(home, shape)
    if not known and extents is None:
        return _of_rows(tapes, home, create, trips)
    size = _again(home, create, trips, _size(tapes, create))
    if size is None:
        return None
    attrs = dict(create.attrs) | {"dynamic_size": False, "infer_shape": True}
    attrs |= {"element_shape": shape} if shape and known else {}
    made = Access(*home.create(CREATE, [size], attrs).outputs)
    return made if known else _told(made, size, extents, create.attrs["dtype"])


def _again(home, create, trips, made):
    """What is known of an array that some trips have made: computed again, or kept; else None."""
    found = None if made is None else Again(home, create.graph, trips, {}).make(made)
    if found is not None or made is None:
        return found
    owners = owners_around(create.graph, len(trips)) or []
    while owners and is_branch(owners[0]):
        made = _out_of_branch(made)
        del owners[0]
    if trips and owners:
        return home.resolve(Nest(tuple(owners), {}).value_in(made, trips))
    return None if trips or not lies_in(home, made.graph) else home.resolve(made)


def _out_of_branch(value):
    """A value of a branch behind it; zeros, or none of them, where another branch runs."""
    case, ends = Branch(value.graph.owner), []
    for branch in case.branches:
        with branch.as_default(), branch.control_dependencies(None):
            other = np.zeros([extent or 0 for extent in value.spec.shape], value.dtype)
            ends.append(value if branch is value.graph else as_tensor(other, branch))
    return case.add_result(ends)


def _size(tapes, create):
    """How many slots an array has in the end, in the graph that makes it; None if unknown."""
    if not create.attrs.get("dynamic_size"):
        return create.inputs[0]
    if create.outputs[0] in tapes.tapes:
        return Loop(tapes.tapes[create.outputs[0]].loop).trips
    flow = tapes.last_flow(create)
    if flow is None:
        return None
    return create.graph.create(SIZE, [create.outputs[0], flow], {}).outputs[0]


# Rows of several lengths.


def _of_rows(tapes, home, create, trips):
    """An array of zeros like the rows that some trips have written; None if those are unknown."""
    made = _again(home, create, trips, _extents(tapes, create))
    if made is None:
        return None
    attrs = dict(create.attrs) | {"dynamic_size": False, "infer_shape": False}
    with home.as_default(), home.control_dependencies(None):
        count = getitem(shape_of(made), 0)
    array = Access(*home.create(CREATE, [count], attrs).outputs)

    def written(row, flow):
        zero = zeros(getitem(row.graph.resolve(made), row), attrs["dtype"])
        return Access(row.graph.resolve(array.handle), flow).write(row, zero)

    return Access(array.handle, _each(home, count, array.flow, written))


def _extents(tapes, create):
    """The extents of each row that an array has in the end, in the graph that makes it.

    None where they are unknown, as where there may be slots without any.
    """
    rank, graph = _rank(tapes, create), create.graph
    flow = tapes.last_flow(create) if create.attrs["dynamic_size"] else None
    if rank is None or flow is None or create.attrs["clear_after_read"]:
        return None
    spec = Spec(create.attrs["dtype"], (None,) * rank)
    with graph.as_default(), graph.control_dependencies(None):
        size = as_long(graph.create(SIZE, [create.outputs[0], flow], {}).outputs[0])
        first = zeros(stack([size, np.int64(rank)]), INT64)

    def measured(row, found):
        array = Access(*map(row.graph.resolve, (create.outputs[0], flow)))
        return set_item(found, row, shape_of(array.read(row, spec)))

    return _each(graph, size, first, measured)


def _rank(tapes, create):
    """The rank of all elements that are written to an array; None where they may have several."""
    writes = [op for op in tapes.uses.users[(create,)] if op.record in WRITES]
    found = {_written(op) for op in writes}
    ranks = {None if shape is None else len(shape) for shape in found}
    return ranks.pop() if len(ranks) == 1 else None


def _each(graph, count, first, following):
    """The last value of a variable that a loop gives another value for each number below one."""
    specs = [COUNTER, first.spec]
    with graph.as_default(), graph.control_dependencies(None), graph.name_scope("rows") as scope:
        cond = trace(graph, f"{scope}cond", specs, lambda row, _: [less(row, count)])
        body = trace(
            graph, f"{scope}body", specs, lambda row, last: [add(row, ONE), following(row, last)]
        )
        start = [as_tensor(np.int64(0), graph), first]
        return add_while(cond, body, start, scope).outputs[1]


def _told(array, size, extents, dtype):
    """An empty array that knows by a first row of zeros which shape its elements have."""
    graph = array.flow.graph
    with graph.as_default(), graph.control_dependencies(None):
        count = minimum(as_long(size), np.int64(1))
        rows = zeros(concatenate([stack([count]), graph.resolve(extents)]), dtype)
        return Access(array.handle, array.scatter(arange(count), rows))


def _is_visited_once(tapes, home, body, trips):
    """Whether trips of the loops around a graph name as many trips around a body, each once."""
    bodies = list(around(home))
    found = [tapes.affine(*pair) for pair in zip(reversed(trips), bodies, strict=False)]
    each = len(found) == len(trips) and all(f is not None and f[1] in (1, -1) for f in found)
    return each and all(lies_in(body, other) for other in bodies[len(trips) :])


def _element_shape(tapes, create):
    """The shape of an array's elements as the graph knows it before anything is written; or None.

    Its lengths may be those that only the run tells.
    """
    told = create.attrs.get("element_shape")
    if shapes.is_known(told):
        return told
    writes = [op for op in tapes.uses.users[(create,)] if op.record in WRITES]
    found = {_written(op) for op in writes} or {()}
    shape = found.pop()
    return shape if not found and shape is not None and None not in shape else None


def _written(op):
    """The shape of what an operation writes to a slot; None where that is not known."""
    shape = op.inputs[op.record.value_input].spec.shape
    if op.record is WRITE or shape is None:
        return shape
    return shape[1:] if op.record is SCATTER else None
