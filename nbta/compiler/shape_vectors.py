"""Shapes as tensors, anywhere in a program, from those of its inputs."""

import functools

import numpy as np

from nbta import shapes
from nbta.compiler.program import Program
from nbta.graph.graph import SubGraph
from nbta.graph.operation import Tensor
from nbta.ops.core.arithmetic import multiply
from nbta.ops.core.dispatch import CONSTANT
from nbta.ops.core.shaping import SHAPE
from nbta.ops.indexing.items import GETITEM
from nbta.ops.indexing.joining import STACK


def lengths_of_inputs(program):
    """Where each length is, among the inputs of a program: its number, and the axis."""
    found = {}
    for number, tensor in enumerate(program.inputs):
        for axis, dimension in enumerate(tensor.spec.shape or ()):
            if isinstance(dimension, shapes.Dim):
                found.setdefault(dimension, (number, axis))
    return found


def shape_in(graph: SubGraph, shape) -> Tensor | None:
    """A shape as a vector, somewhere in a program; None where its inputs do not tell it."""
    lengths = lengths_of_inputs(_outermost(graph))
    known = shape is not None and all(type(n) is int or n in lengths for n in shape)
    return vector_of(graph, shape, lengths) if known else None


def _outermost(graph):
    while not isinstance(graph, Program):
        graph = graph.outer
    return graph


def _once(graph, key, make):
    """What is made at the start of the whole program, where it is not there yet."""
    program = _outermost(graph)
    if key not in program.cache:
        program.cache[key] = make(program)
    return graph.resolve(program.cache[key])


def vector_of(graph, shape, lengths):
    """A shape as a tensor: a constant, or that of an input, or put together."""
    if shapes.is_known(shape):
        return _constant(graph, np.array(shape, np.int64))
    return _once(graph, ("shape", shape), lambda program: _made_vector(program, shape, lengths))


def _made_vector(program, shape, lengths):
    for tensor in program.inputs:
        if tensor.spec.shape == shape:
            return program.create(SHAPE, [tensor], {}).outputs[0]
    items = [_length(program, dimension, lengths) for dimension in shape]
    return program.create(STACK, items, {"axis": 0}).outputs[0]


def _length(program, dimension, lengths):
    """One length, as an int64 scalar."""
    if type(dimension) is int:
        return _constant(program, np.array(dimension, np.int64))
    if ("length", dimension) not in program.cache:
        number, axis = lengths[dimension]
        whole = vector_of(program, program.inputs[number].spec.shape, lengths)
        made = program.create(GETITEM, [whole], {"key": (axis,)})
        program.cache["length", dimension] = made.outputs[0]
    return program.cache["length", dimension]


def count_of(graph, shape, lengths):
    """How many elements a shape has."""
    known = int(np.prod([n for n in shape if type(n) is int], dtype=object))
    if shapes.is_known(shape):
        return _constant(graph, np.array(known, np.int64))
    return _once(graph, ("count", shape), lambda program: _product(program, known, shape, lengths))


def _product(program, known, shape, lengths):
    factors = [_length(program, n, lengths) for n in shape if type(n) is not int]
    if known != 1:
        factors.insert(0, _constant(program, np.array(known, np.int64)))
    return functools.reduce(
        lambda a, b: program.create(multiply.record, [a, b], {}).outputs[0], factors
    )


def _constant(graph, array):
    array.flags.writeable = False
    return graph.create(CONSTANT, [], {"value": array}).outputs[0]
