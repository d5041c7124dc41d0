"""What is known of elements of an array: their shape, or the dimensions of rows of several lengths.

Rows of several lengths are one vector of all their items, one row after the other, and a matrix of
their dimensions.
"""

from functools import partial

import numpy as np

from nbta import shapes
from nbta.compiler.carrying import as_long, bodies_of, threaded
from nbta.control.control_flow import cond
from nbta.graph.graph import current, lies_in
from nbta.graph.operation import Spec, Tensor
from nbta.ops.arrays.tensor_arrays import CREATE, SCATTER, SIZE, WRITE, WRITES, Access
from nbta.ops.axes.reductions import cumsum, prod
from nbta.ops.axes.reductions import sum as summed
from nbta.ops.core.arithmetic import ADD_N, add, floor_divide, less, maximum, subtract
from nbta.ops.core.dispatch import as_tensor
from nbta.ops.core.filling import arange, zeros
from nbta.ops.core.shaping import INT64, cast, reshape, shape_of
from nbta.ops.indexing.gathering import take
from nbta.ops.indexing.items import getitem, set_item
from nbta.ops.indexing.joining import concatenate, expand_dims, stack
from nbta.ops.loops.bodies import trace
from nbta.ops.loops.loop import COUNTER, ONE, add_while


def element_shape(tapes, create):
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
    return shape[1:] if op.record is SCATTER else (None, *shape[1:])


def noted(tapes, create, attrs, put) -> Access | None:
    """An array as large as another one, with something of each value that this is given.

    ``put(array, write)`` gives the flow after what it notes of an operation that writes. None
    where one lies elsewhere.
    """
    graph, writes = create.graph, [op for op in tapes.uses.users[(create,)] if op.record in WRITES]
    if not all(lies_in(op.graph, graph) for op in writes):
        return None
    kept = ("dtype", "dynamic_size", "infer_shape")
    attrs = {name: create.attrs[name] for name in kept} | {"clear_after_read": False} | attrs
    with graph.as_default(), graph.control_dependencies(None):
        array = Access(*graph.create(CREATE, create.inputs, attrs, name="noted").outputs)

        def written(write, flow):
            return put(Access(flow.graph.resolve(array.handle), flow), write)

        # One after the other they would wait for themselves where one branch or loop has several.
        flows = [threaded(bodies_of(graph, op), array.flow, partial(written, op))[-1]
                 for op in writes]  # fmt: skip
        return Access(array.handle, graph.create(ADD_N, [array.flow, *flows]).outputs[0])


def put_values(array: Access, write) -> Tensor:
    """The flow of an array after the values that an operation writes to another one."""
    if write.record is WRITE:
        return array.write(*write.inputs[1:3])
    if write.record is SCATTER:
        return array.scatter(*write.inputs[1:3])
    return array.split(*write.inputs[1:3])


def _put_dimensions(array, write):
    """The same of the dimensions of those values."""
    if write.record is WRITE:
        return array.write(write.inputs[1], shape_of(write.inputs[2]))
    if write.record is SCATTER:
        indices, rows = write.inputs[1:3]
        return array.scatter(indices, _repeated(getitem(shape_of(rows), slice(1, None)), indices))
    value, lengths = write.inputs[1:3]
    first = expand_dims(cast(lengths, INT64), 1)
    rest = _repeated(getitem(shape_of(value), slice(1, None)), lengths)
    slots = arange(getitem(shape_of(lengths), 0))
    return array.scatter(slots, concatenate([first, rest], axis=1))


def _repeated(dimensions, vector):
    """Dimensions, once for each item of a vector."""
    count = getitem(shape_of(vector), 0)
    return add(zeros(stack([count, dimensions.spec.shape[0]]), INT64), dimensions)


def stacked(graph, array: Access, spec) -> Tensor:
    """All elements of an array, each like a spec, in a graph that is being built."""
    size = as_long(graph.create(SIZE, list(array), {}).outputs[0])
    return array.gather(arange(size), Spec(spec.dtype, (None, *spec.shape)))


def dimensions_of_rows(tapes, create) -> Tensor | None:
    """The dimensions of each row that an array has in the end, in the graph that makes it.

    Those of slots without any are zeros. None where they are unknown.
    """
    rank, graph = _rank(tapes, create), create.graph
    if not rank:
        return None
    spec = Spec(INT64, (rank,))
    found = noted(tapes, create, {"dtype": INT64, "element_shape": spec.shape}, _put_dimensions)
    with graph.as_default(), graph.control_dependencies(None):
        return None if found is None else stacked(graph, found, spec)


def _rank(tapes, create):
    """The rank of all elements that are written to an array; None where they may have several."""
    writes = [op for op in tapes.uses.users[(create,)] if op.record in WRITES]
    found = {_written(op) for op in writes}
    ranks = {None if shape is None else len(shape) for shape in found}
    return ranks.pop() if len(ranks) == 1 else None


def each(graph, count, first, following):
    """The last value of a variable that a loop gives another value for each number below one."""
    specs = [COUNTER, first.spec]
    with graph.as_default(), graph.control_dependencies(None), graph.name_scope("rows") as scope:
        goes_on = trace(graph, f"{scope}cond", specs, lambda row, _: [less(row, count)])
        body = trace(
            graph, f"{scope}body", specs, lambda row, last: [add(row, ONE), following(row, last)]
        )
        start = [as_tensor(np.int64(0), graph), first]
        return add_while(goes_on, body, start, scope).outputs[1]


def packed(graph, array: Access, dimensions, dtype) -> Tensor:
    """The items of all rows of an array, in a graph that is being built."""
    begins, rank = begins_of(dimensions), dimensions.spec.shape[1]

    def filled(row, items):
        part = _part(row.graph, begins, dimensions, row)

        def put():
            found = Access(*map(current().resolve, array)).read(row, Spec(dtype, (None,) * rank))
            return set_item(items, part, reshape(found, (-1,)))

        return cond(less(part.start, part.stop), put, lambda: items)  # there may be no row

    total = summed(prod(dimensions, axis=1))
    return each(graph, getitem(shape_of(dimensions), 0), zeros(reshape(total, (1,)), dtype), filled)


def unpacked(graph, array: Access, dimensions, items) -> Tensor:
    """The flow of an array after writes of all rows."""
    begins = begins_of(dimensions)

    def written(row, flow):
        found = row_of(items, begins, dimensions, row)
        return Access(row.graph.resolve(array.handle), flow).write(row, found)

    return each(graph, getitem(shape_of(dimensions), 0), array.flow, written)


def row_of(items, begins, dimensions, row) -> Tensor:
    """A row among the items of all."""
    graph = row.graph
    found = getitem(graph.resolve(items), _part(graph, begins, dimensions, row))
    return reshape(found, getitem(graph.resolve(dimensions), row))


def rows_of(items, begins, dimensions, rows) -> Tensor:
    """Several rows, which all are of one shape, stacked."""
    graph = rows.graph
    count = getitem(shape_of(rows), 0)
    found = take(graph.resolve(dimensions), rows, axis=0)
    dimensions = floor_divide(summed(found, axis=0), maximum(count, ONE))  # there may be no row
    places = expand_dims(take(graph.resolve(begins), rows, axis=0), 1)
    within = expand_dims(arange(prod(dimensions)), 0)
    shape = concatenate([stack([count]), dimensions])
    return reshape(take(graph.resolve(items), add(places, within), axis=0), shape)


def joined(items, dimensions) -> list[Tensor]:
    """The first rows joined along their first axis, and their lengths; alike after that axis."""
    count, lengths = getitem(shape_of(dimensions), 0), getitem(dimensions, (slice(None), 0))
    rest = getitem(dimensions, (slice(None), slice(1, None)))
    rest = floor_divide(summed(rest, axis=0), maximum(count, ONE))  # there may be no row
    shape = concatenate([stack([summed(lengths)]), rest])
    return [reshape(getitem(items, slice(None, prod(shape))), shape), lengths]


def begins_of(dimensions) -> Tensor:
    """Where each row begins among the items of all."""
    lengths = prod(dimensions, axis=1)
    return subtract(cumsum(lengths), lengths)


def _part(graph, begins, dimensions, row):
    begin = getitem(graph.resolve(begins), row)
    return slice(begin, add(begin, prod(getitem(graph.resolve(dimensions), row))))
