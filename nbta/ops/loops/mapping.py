"""Map: runs a body for each row of some inputs, in any order, so that several threads can.

The first inputs are cut into rows along their first axis; the body gets a row of each, and the
other inputs as they are. A result is stacked, or added up over all rows. The gradient is a Map
again, whose body computes the rows' results once more and then their gradients: stacked for what is
cut, added up for what all rows share. So a gradient of the gradient needs no rule of its own.

Unlike the bodies of loops, the body is closed: passes and gradients of what is around it do not
look into it.
"""

import numpy as np

from nbta.errors import UnimplementedError, invalid
from nbta.graph.dependence import dependence
from nbta.graph.graph import Closed, SubGraph, current
from nbta.graph.operation import DATA, Spec
from nbta.ops.core.dispatch import define
from nbta.ops.loops.bodies import no_gradient_like
from nbta.ops.loops.checkpoints import Replay


def add_map(graph, xs, shared, likes, threads, name):
    """The operation that runs a traced body for rows of tensors.

    Parameters
    ----------
    graph : SubGraph
        With a parameter for a row of each of ``xs``, for each of ``shared``, and then for what it
        captures.
    xs, shared : list of Tensor
    likes : tuple of (int or None)
        For each result the place among the parameters of one that it has the shape of, if any. A
        result that is like what all rows share is added up, others are stacked.
    threads : int or None
        How many may take part.
    """
    attrs = {"body": Closed(graph), "rows": len(xs), "likes": likes, "threads": threads}
    return current().create(MAP, [*xs, *shared, *graph.captures], attrs, name=name)


def is_closed(graph) -> bool:
    """Whether a body captures plain values only, so that its rows may run in any order."""
    return all(tensor.kind == DATA for tensor in graph.captures)


def row_spec(spec) -> Spec:
    """Of a row of a tensor."""
    return spec._replace(shape=None if spec.shape is None else spec.shape[1:])


def _infer(*specs, body, rows, likes, threads):
    known = {dimension for spec in specs for dimension in spec.shape or ()}
    count = next((s.shape[0] for s in specs[:rows] if s.shape and type(s.shape[0]) is int), None)
    if count is None:
        count = specs[0].shape[0] if specs[0].shape else None
    return tuple(
        _stacked(tensor.spec, count, known) if like is None else specs[like]
        for tensor, like in zip(body.graph.outputs, likes, strict=True)
    )


def _stacked(spec, count, known):
    """Of the results of all rows; lengths that the body makes may be others in each run."""
    if spec.shape is None:
        return spec
    dimensions = [n if type(n) is int or n in known else None for n in spec.shape]
    return spec._replace(shape=(count, *dimensions))


def _evaluate(step, *values, body, rows, likes, threads):
    if any(np.ndim(value) == 0 for value in values[:rows]):
        message = "map_fn: elems has a scalar, which has no first axis to iterate over"
        raise invalid("xs", message)
    cut, shared = [np.ascontiguousarray(value) for value in values[:rows]], values[rows:]
    lengths = {len(value) for value in cut}
    if len(lengths) != 1:
        message = f"map_fn: elems have {sorted(lengths)} rows; all must have the same number"
        raise invalid("length", message)
    if not lengths.pop():
        return _of_no_rows(body.graph, values, rows, likes)
    columns = [list(value) if value.ndim > 1 else _scalars(value) for value in cut]
    given = [*cut, *(np.asarray(value, order="C") for value in shared)]
    sums = [(given[p].shape, given[p].dtype) if _is_sum(p, rows) else None for p in likes]
    found = step.each(body.graph, given, dict(enumerate(columns)), sums, threads)
    for value in found:
        if isinstance(value, list):
            some = sorted({np.shape(part) for part in value})
            message = f"map_fn: rows give results of the shapes {some[0]} and {some[-1]}"
            raise invalid("inconsistent_shapes", message)
    return tuple(found)


def _scalars(vector):
    """The elements of a vector as arrays of rank 0."""
    return [vector[i, ...] for i in range(len(vector))]


def _is_sum(like, rows):
    """Whether a result is added up."""
    return like is not None and like >= rows


def _of_no_rows(graph, values, rows, likes):
    dimensions = [np.shape(v)[1:] if i < rows else np.shape(v) for i, v in enumerate(values)]
    return tuple(
        no_rows("map_fn", tensor.spec, graph.inputs, dimensions)
        if like is None
        else np.zeros_like(values[like])
        for tensor, like in zip(graph.outputs, likes, strict=True)
    )


def no_rows(what, spec, inputs, dimensions):
    """Results of no rows, stacked.

    Parameters
    ----------
    what : str
        Who says so where their shape is not known.
    spec : Spec
        Of the result of a row.
    inputs : list of Tensor
        From which a row would be computed.
    dimensions : list of tuple
        Their shapes: lengths that they have are known.

    Raises
    ------
    UnimplementedError
        Where a length is not known.
    """
    lengths = {}
    for tensor, shape in zip(inputs, dimensions, strict=True):
        lengths.update(zip(tensor.spec.shape or (), shape, strict=False))
    lengths[None] = None
    pattern = (None,) if spec.shape is None else spec.shape
    found = [n if type(n) is int else lengths.get(n) for n in pattern]
    if None in found:
        message = (
            f"{what}: there are no rows, and the shape of a row's result, {spec}, is not known"
        )
        raise UnimplementedError(message)
    return np.empty((0, *found), spec.dtype)


def _connections(op):
    ways = dependence(op.attrs["body"].graph)
    return [[op.inputs[place] for place in sorted(places)] for places in ways]


def _gradient(context, op, *grads):
    inner, rows, likes = (op.attrs[key] for key in ("body", "rows", "likes"))
    inner = inner.graph
    wanted = [place for place, tensor in enumerate(op.inputs) if context.wants(tensor)]
    given = [k for k, grad in enumerate(grads) if grad is not None]
    added = [k for k in given if _is_sum(likes[k], rows)]
    stacked = [k for k in given if k not in added]
    with current().name_scope(op.name.rpartition("/")[2] + "_grad") as scope:
        body = SubGraph(current(), f"{scope}body")
        with body.as_default():
            specs = [tensor.spec for tensor in inner.inputs]
            new = list(map(body.parameter, specs[:rows]))
            dys = [body.parameter(inner.outputs[k].spec) for k in [*stacked, *added]]
            new += map(body.parameter, specs[rows:])
            ys = _Again(op, body, dict(zip(inner.inputs, new, strict=True)), inner).build(
                [inner.outputs[k] for k in [*stacked, *added]]
            )
            xs = [new[place] for place in wanted]
            found = context.run(ys, dys, xs)
            body.outputs = [
                body.resolve(no_gradient_like(x) if g is None else g)
                for x, g in zip(xs, found, strict=True)
            ]
        cut = [*op.inputs[:rows], *(grads[k] for k in stacked)]
        shift = len(stacked) + len(added)
        likes = tuple(place if place < rows else place + shift for place in wanted)
        shared = [*(grads[k] for k in added), *op.inputs[rows:]]
        made = add_map(body, cut, shared, likes, op.attrs["threads"], scope)
    result = [None] * len(op.inputs)
    for place, grad in zip(wanted, made.outputs, strict=True):
        result[place] = grad
    return result


def _tangent(context, op, *given):
    """A map that computes the rows' results once more, and their tangents beside them."""
    inner, rows, likes = (op.attrs[key] for key in ("body", "rows", "likes"))
    inner = inner.graph
    places = [place for place, tangent in enumerate(given) if tangent is not None]
    cut = [place for place in places if place < rows]
    shared = [place for place in places if place >= rows]
    with current().name_scope(op.name.rpartition("/")[2] + "_tangent") as scope:
        body = SubGraph(current(), f"{scope}body")
        with body.as_default():
            specs = [tensor.spec for tensor in inner.inputs]
            new = list(map(body.parameter, specs[:rows]))
            directions = [body.parameter(specs[place]) for place in cut]
            new += map(body.parameter, specs[rows:])
            directions += [body.parameter(specs[place]) for place in shared]
            known = dict(zip(inner.inputs, new, strict=True))
            due = [inner.outputs[k] if context.has(y) else None for k, y in enumerate(op.outputs)]
            ys = _Again(op, body, known, inner).build([y for y in due if y is not None])
            found = iter(context.run(ys, [new[place] for place in places], directions))
            found = [None if y is None else next(found) for y in due]
            kept = [k for k, tangent in enumerate(found) if tangent is not None]
            body.outputs = [body.resolve(found[k]) for k in kept]
        likes = tuple(
            p if p is None or p < rows else p + len(cut) for p in (likes[k] for k in kept)
        )
        xs = [*op.inputs[:rows], *(given[place] for place in cut)]
        others = [*op.inputs[rows:], *(given[place] for place in shared)]
        made = add_map(body, xs, others, likes, op.attrs["threads"], scope)
    result = [None] * len(op.outputs)
    for k, tangent in zip(kept, made.outputs, strict=True):
        result[k] = tangent
    return result


class _Again(Replay):
    """The body once more, in that of the gradient."""

    def _refused(self, op, what, remedy):
        message = (
            f"gradients: {self._loop.name!r} has parallel_iterations=, so that its gradient "
            f"computes rows again, and {op.name!r} ({op.type}) {what}; {remedy}, or leave out "
            f"parallel_iterations="
        )
        return invalid("parallel_iterations", message)


MAP = define(
    "Map",
    _infer,
    _evaluate,
    _gradient,
    effects=True,
    several=True,
    connections=_connections,
    tangent=_tangent,
)
