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
from nbta.graph.graph import SubGraph, current
from nbta.graph.spec import DATA, Spec
from nbta.ops.bodies import no_gradient_like
from nbta.ops.dispatch import define
from nbta.ops.replay import Replay


class Body:
    """What is run for each row.

    Attributes
    ----------
    graph : SubGraph
        Its parameters are all that it needs.
    """

    def __init__(self, graph):
        self.graph = graph

    def __repr__(self):
        return f"<body of {len(self.graph.operations)} operations>"


def add_map(graph, xs, shared, sums, threads, name=None):
    """The operation that runs a traced body for rows of tensors.

    Parameters
    ----------
    graph : SubGraph
        With a parameter for a row of each of ``xs``, for each of ``shared``, and then for what it
        captures.
    xs, shared : list of Tensor
    sums : tuple of (int or None)
        For each result, if it is to be added up: the place among the parameters of one that it is
        like. Else None.
    threads : int or None
        How many may take part.
    """
    attrs = {"body": Body(graph), "rows": len(xs), "sums": sums, "threads": threads}
    return current().create(MAP, [*xs, *shared, *graph.captures], attrs, name)


def is_closed(graph) -> bool:
    """Whether a body captures plain values only, so that its rows may run in any order."""
    return all(tensor.kind == DATA for tensor in graph.captures)


def row_spec(spec) -> Spec:
    """Of a row of a tensor."""
    return spec._replace(shape=None if spec.shape is None else spec.shape[1:])


def _infer(*specs, body, rows, sums, threads):
    known = {extent for spec in specs for extent in spec.shape or ()}
    count = next((s.shape[0] for s in specs[:rows] if s.shape and type(s.shape[0]) is int), None)
    if count is None:
        count = specs[0].shape[0] if specs[0].shape else None
    return tuple(
        _stacked(tensor.spec, count, known) if like is None else specs[like]
        for tensor, like in zip(body.graph.outputs, sums, strict=True)
    )


def _stacked(spec, count, known):
    """Of the results of all rows; lengths that the body makes may be others in each run."""
    if spec.shape is None:
        return spec
    extents = [n if type(n) is int or n in known else None for n in spec.shape]
    return spec._replace(shape=(count, *extents))


def _evaluate(step, *values, body, rows, sums, threads):
    if any(np.ndim(value) == 0 for value in values[:rows]):
        message = "map_fn: elems has a scalar, which has no first axis to go along"
        raise invalid("xs", message)
    cut, shared = [np.ascontiguousarray(value) for value in values[:rows]], values[rows:]
    lengths = {len(value) for value in cut}
    if len(lengths) != 1:
        message = f"map_fn: elems have {sorted(lengths)} rows; give all as many"
        raise invalid("length", message)
    if not lengths.pop():
        return _of_no_rows(body.graph, values, rows, sums)
    columns = [[value[i, ...] for i in range(len(value))] for value in cut]
    given = [*cut, *(np.asarray(value, order="C") for value in shared)]
    like = [None if p is None else (np.shape(values[p]), values[p].dtype) for p in sums]
    found = step.each(body.graph, given, dict(enumerate(columns)), like, threads)
    for value in found:
        if isinstance(value, list):
            some = sorted({np.shape(part) for part in value})
            message = f"map_fn: rows give results of the shapes {some[0]} and {some[-1]}"
            raise invalid("inconsistent_shapes", message)
    return tuple(found)


def _of_no_rows(graph, values, rows, sums):
    lengths = {}
    for place, (tensor, value) in enumerate(zip(graph.inputs, values, strict=True)):
        extents = np.shape(value)[1:] if place < rows else np.shape(value)
        lengths.update(zip(tensor.spec.shape or (), extents, strict=False))
    lengths.pop(None, None)
    return tuple(
        _nothing(tensor.spec, lengths) if like is None else np.zeros_like(values[like])
        for tensor, like in zip(graph.outputs, sums, strict=True)
    )


def _nothing(spec, lengths):
    """No rows of results; lengths that inputs have are known."""
    pattern = (None,) if spec.shape is None else spec.shape
    extents = [n if type(n) is int else lengths.get(n) for n in pattern]
    if None in extents:
        message = f"map_fn: there are no rows, and each would give {spec}, whose shape is not known"
        raise UnimplementedError(message)
    return np.empty((0, *extents), spec.dtype)


def _gradient(context, op, *grads):
    inner, rows, sums = (op.attrs[key] for key in ("body", "rows", "sums"))
    inner = inner.graph
    wanted = [place for place, tensor in enumerate(op.inputs) if context.wants(tensor)]
    stacked = [k for k, like in enumerate(sums) if like is None and grads[k] is not None]
    added = [k for k, like in enumerate(sums) if like is not None and grads[k] is not None]
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
        likes = tuple(None if place < rows else place + shift for place in wanted)
        shared = [*(grads[k] for k in added), *op.inputs[rows:]]
        made = add_map(body, cut, shared, likes, op.attrs["threads"], scope)
    result = [None] * len(op.inputs)
    for place, grad in zip(wanted, made.outputs, strict=True):
        result[place] = grad
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


MAP = define("Map", _infer, _evaluate, _gradient, effects=True, several=True)
