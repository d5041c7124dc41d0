"""Implicit: a value that solves an equation, with the derivative of the solution.

The inputs are the solution ``x``, found in whatever way, and then what the equation's residual
``r(x, ...)`` captures; the result is ``x``. No gradient passes to how it was found. That of the
others is by the implicit function theorem ``-(dr/dx)^-T`` of what arrives, through ``dr``. The rule
uses the result, which has this very rule, so that the derivatives are right to any order.
"""

from __future__ import annotations

import numpy as np

from nbta.control.control_flow import while_loop
from nbta.control.reverse_mode import gradients
from nbta.errors import invalid
from nbta.graph.copying import Copy, copied
from nbta.graph.graph import Closed, SubGraph, current
from nbta.graph.operation import DATA, Spec
from nbta.ops.core.arithmetic import add, divide, equal, less, negative
from nbta.ops.core.dispatch import as_tensor, define
from nbta.ops.core.filling import arange, zeros
from nbta.ops.core.shaping import cast, emit_identity, identity, reshape, shape_of, size
from nbta.ops.indexing.items import set_item
from nbta.ops.indexing.joining import stack
from nbta.ops.indexing.transposing import swapaxes
from nbta.ops.linalg.lu import solve


def add_implicit(x, residual):
    """The tensor ``x`` as the root of ``residual(x)``, a function of tensors of the graph."""
    graph = current()
    with graph.name_scope("implicit") as scope:
        body = SubGraph(graph, f"{scope}residual")
        with body.as_default():
            parameter = body.parameter(Spec(x.dtype, x.spec.shape))
            value = as_tensor(residual(parameter), body)
            body.outputs = [value]
    if any(tensor.kind != DATA for tensor in body.captures):
        message = "the residual takes a TensorArray from outside; give it the array's stack()"
        raise invalid("implicit", message)
    have, want = value.spec, x.spec
    if x.dtype.kind != "f" or have.dtype != want.dtype or len(have.shape) != len(want.shape):
        message = (
            f"the solution is {want} and its residual {have}; both must be real floats of one "
            f"dtype and shape"
        )
        raise invalid("implicit", message)
    return graph.create(IMPLICIT, [x, *body.captures], {"residual": Closed(body)}).outputs[0]


def _gradient(op, dx):
    body = op.attrs["residual"].graph
    solution = op.outputs[0]
    if solution.spec.rank == 0:
        x, (r,) = _again(body, [solution, *op.inputs[1:]], [0])
        along = divide(dx, gradients([r], x, unconnected="zero")[0])
    else:
        along = solve(swapaxes(_jacobian(op, body), -1, -2), reshape(dx, stack([size(dx)])))
        along = reshape(along, shape_of(dx))
    wanted = [k for k, tensor in enumerate(op.inputs) if k and tensor.spec.differentiable]
    others, (r,) = _again(body, [solution, *op.inputs[1:]], wanted)
    found = iter(gradients([r], others, [negative(along)], unconnected="zero"))
    return [next(found) if k in wanted else None for k in range(len(op.inputs))]


def _jacobian(op, body):
    """Derivatives of the residual by the solution, a row for each item of the residual."""
    graph = current()
    given = [graph.resolve(tensor) for tensor in [op.outputs[0], *op.inputs[1:]]]
    count = size(given[0])

    def row(k, rows):
        inner = [current().resolve(tensor) for tensor in given]
        (x,), (r,) = _again(body, inner, [0])
        seed = reshape(cast(equal(arange(size(r)), k), r.dtype), shape_of(r))
        (found,) = gradients([r], [x], [seed], unconnected="zero")
        return add(k, np.int64(1)), set_item(rows, k, reshape(found, stack([size(found)])))

    start = (as_tensor(np.int64(0)), zeros(stack([count, count]), given[0].dtype))
    return while_loop(lambda k, _: less(k, count), row, start)[1]


def _again(body, given, fresh):
    """The residual for some values, and copies of some of these that it is computed from."""
    graph = current()
    values = [graph.resolve(tensor) for tensor in given]
    for place in fresh:
        values[place] = identity(values[place])
    copy = Copy(graph, body.scope, copied)
    copy.tensors.update(zip(body.inputs, values, strict=True))
    outputs, _ = copy.fill(body.inputs, body.outputs)
    return [values[place] for place in fresh], outputs


IMPLICIT = define(
    "Implicit",
    lambda x, *others, residual: x,
    lambda x, *others, residual: x,
    _gradient,
    emit=emit_identity,
    connections=lambda op: [op.inputs[1:]],
)
