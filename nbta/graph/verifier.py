"""Checks that a graph is whole: after it was built, and after each change of it."""

import os

from nbta import shapes
from nbta.errors import NbtaError
from nbta.graph.graph import Graph, all_bodies, subgraphs
from nbta.graph.order import ordered
from nbta.graph.views import arguments


class BrokenGraphError(NbtaError, AssertionError):
    """A graph that no sequence of calls should have made: a mistake in nbta itself."""

    code = "INTERNAL"


def verify(graph: Graph) -> None:
    """Check names, edges, specs and bodies of a graph.

    Raises
    ------
    InvalidArgumentError
        For operations that wait for each other in a circle.
    BrokenGraphError
        For anything else that is wrong.
    """
    _check_names(graph)
    ordered(graph.operations)
    for op in graph.operations:
        _check_edges(graph, op)
        for body in subgraphs(op):
            _check_body(op, body)
        for body in all_bodies(op):
            verify(body)
        _check_specs(op)


#: Whether graphs are verified after all that nbta itself builds or changes.
DEBUG = os.environ.get("NBTA_DEBUG") == "1"
#: Whether also after each pass, where analyses are compared, and not only after a row of passes:
#: a third of the time of compiling small programs, which most tests do not take.
EACH_PASS = DEBUG


def verify_change(graph: Graph) -> None:
    """`verify`, with NBTA_DEBUG=1: after what nbta itself builds or changes."""
    if DEBUG:
        verify(graph)


def _need(condition, op, what):
    if not condition:
        raise _broken(op, what)


def _broken(op, what):
    return BrokenGraphError(f"operation {op.name!r} ({op.type}): {what}")


def _check_names(graph):
    seen = set()
    for number, op in enumerate(graph.operations):
        _need(op.number == number, op, "its number is not its place in creation order")
        _need(op.name not in seen, op, "another operation has this name")
        seen.add(op.name)


def _check_edges(graph, op):
    for tensor in op.inputs:
        if tensor.graph is not graph:
            raise _broken(op, f"its input {tensor.name!r} lies in another graph")
        if tensor.op.outputs[tensor.index] is not tensor:
            raise _broken(op, f"{tensor.name!r} is not a result")
    for other in op.control_inputs:
        _need(other.graph is graph, op, f"it waits for {other.name!r}, of another graph")


def _check_specs(op):
    specs = op.infer()
    _need(len(specs) == len(op.outputs), op, f"it should have {len(specs)} results")
    for spec, tensor in zip(specs, op.outputs, strict=True):
        same = (spec.dtype, spec.kind) == (tensor.spec.dtype, tensor.spec.kind)
        if not (same and shapes.compatible(spec.shape, tensor.spec.shape)):
            raise _broken(op, f"result {tensor.index} should be {spec} and is {tensor.spec}")


def _check_body(op, body):
    _need(body.owner is op, op, "its body belongs to another operation")
    given = arguments(op, body)
    _need(len(given) == len(body.inputs), op, "its body has more parameters than it has inputs")
    for tensor, parameter in zip(given, body.inputs, strict=True):
        same = (tensor.dtype, tensor.kind) == (parameter.dtype, parameter.kind)
        fits = same and shapes.compatible(tensor.spec.shape, parameter.spec.shape)
        _need(fits, op, f"{tensor.name!r} does not fit the parameter {parameter.name!r}")
        source = body.sources.get(parameter)
        _need(source is None or source is tensor, op, f"{parameter.name!r} is mixed up")
    for tensor in body.outputs:
        _need(tensor.graph is body, op, f"{tensor.name!r} is not of its body")
