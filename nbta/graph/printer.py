"""A graph as text that a person can read."""

import os
from operator import add

import numpy as np

from nbta.graph.graph import Graph, SubGraph, all_bodies, is_of_gradient
from nbta.graph.labels import written
from nbta.graph.operation import DATA, NO_FACTS, Facts, label_of
from nbta.graph.views import arguments, is_loop


def as_text(graph: Graph) -> str:
    """One line an operation, in creation order; bodies are indented below what runs them.

    Scalar constants stand where they are used, and names in a body leave out the body's own.
    """
    return "\n".join(["graph", *_lines(graph, "  ")])


Graph.__str__ = as_text


def annotated(graph: SubGraph) -> str:
    """The same of a program, with its parameters and results, and the user's names and lines."""
    labels = [label_of(tensor) for tensor in graph.inputs]
    names = [f"{label} = " if label else "" for label in labels]
    given = [f"{_name(graph, t)}: {_kind(t)}" for t in graph.inputs]
    lines = [f"program({', '.join(map(add, names, given))})", *_lines(graph, "  ", _comment)]
    return "\n".join([*lines, f"  return {_names(graph, graph.outputs)}"])


def _comment(op):
    """A comment with a loop's statement or a tensor's variable, and the line that it comes from."""
    words = [written(op)] if is_loop(op) else [label_of(tensor) for tensor in op.outputs]
    place = op.location
    if place is not None:
        line = f"{os.path.basename(place.filename)}:{place.line}"
        words.append(f"gradient of {line}" if is_of_gradient(op) else line)
    text = ", ".join(word for word in words if word)
    return f"  # {text}" if text else ""


def _lines(graph, indent, comment=lambda op: ""):
    lines = []
    for op in graph.operations:
        if op.type == "Parameter" or is_scalar(op):
            continue
        lines.append(indent + line_of(graph, op) + comment(op))
        for body in all_bodies(op):
            lines.append(f"{indent}  {_short_scope(graph, body)}({_given(graph, op, body)}):")
            lines += _lines(body, indent + "    ", comment)
            lines.append(f"{indent}    return {_names(body, body.outputs)}")
    return lines


def line_of(graph: Graph, op) -> str:
    """An operation as one line, without its bodies."""
    outputs = ", ".join(f"{_name(graph, t)}: {_kind(t)}" for t in op.outputs)
    bodies = bool(all_bodies(op))
    inputs = [] if bodies else [_names(graph, op.inputs)] if op.inputs else []
    attrs = attributes(op)
    after = [f"after={_plain(graph, other.name)}" for other in op.control_inputs]
    call = f"{op.type}({', '.join([*inputs, *attrs * (not bodies), *after])})"
    return f"{outputs} = {call}" if outputs else f"{_plain(graph, op.name)} = {call}"


def is_scalar(op) -> bool:
    """Whether an operation is a scalar constant, which is shown where it is used."""
    return op.type == "Constant" and np.ndim(op.attrs["value"]) == 0


def _names(graph, tensors):
    return ", ".join(_name(graph, tensor) for tensor in tensors)


def _name(graph, tensor):
    """A scalar constant's value; else the operation, with a number where it has several results."""
    op = tensor.op
    if is_scalar(op):
        return "none" if tensor.kind != DATA else str(op.attrs["value"])
    return _plain(graph, op.name if len(op.outputs) == 1 else tensor.name)


def _plain(graph, name):
    scope = graph.scope if isinstance(graph, SubGraph) else ""
    return name.removeprefix(scope)


def _short_scope(graph, body):
    return _plain(graph, body.scope[:-1])


def _given(graph, op, body):
    """Parameters that the body uses, with what is given for them."""
    used = {tensor for inner in body.operations for tensor in inner.inputs} | set(body.outputs)
    pairs = zip(body.inputs, arguments(op, body), strict=True)
    return ", ".join(
        f"{_name(body, inner)} <- {_name(graph, outer)}" for inner, outer in pairs if inner in used
    )


def _kind(tensor):
    return str(tensor.spec) if tensor.kind == DATA else tensor.kind


def attributes(op) -> list[str]:
    """``key=value`` for the attributes that say more than the specs of the results do."""
    said = {key: value for key, value in op.attrs.items() if key != "facts"}
    known = zip(Facts._fields, op.facts, NO_FACTS, strict=True)
    said |= {key: value for key, value, default in known if value != default}
    return [f"{key}={_short(value)}" for key, value in said.items() if _says(key, value)]


_HIDDEN = {
    "known",
    "label",
    "learnt",
    "pattern",
    "spec",
    "origin",
    "is_saved",
    "of_adjoint",
    "runs_adjoints",
}  # what specs or names show


def _says(key, value):
    """Whether an attribute tells more than the line does without it."""
    return (
        key not in _HIDDEN and value is not None and not (isinstance(value, str) and value == DATA)
    )


def _short(value):
    if isinstance(value, np.ndarray) and value.size > 6:
        return f"array{value.shape}"
    if isinstance(value, np.ndarray):
        return str(value.tolist())
    text = value.name if isinstance(value, np.dtype) else repr(value)
    text = " ".join(text.split())
    return text if len(text) <= 60 else text[:57] + "..."
