"""A graph as text that a person can read."""

import numpy as np

from nbta.graph.graph import Graph, SubGraph, subgraphs
from nbta.graph.spec import DATA


def as_text(graph: Graph) -> str:
    """One line an operation, in creation order; bodies are indented below what runs them."""
    return "\n".join(["graph", *_lines(graph, "  ")])


def _lines(graph, indent):
    lines = []
    for op in graph.operations:
        if op.type == "Parameter":
            continue
        lines.append(indent + _line(op))
        for body in subgraphs(op):
            lines.append(f"{indent}  {body._scope[:-1]}{_signature(op, body)}")
            lines += _lines(body, indent + "    ")
            lines.append(f"{indent}    return {', '.join(t.name for t in body.outputs)}")
    return lines


def _line(op):
    outputs = ", ".join(f"{t.name} {_kind(t)}" for t in op.outputs)
    inputs = [t.name for t in op.inputs]
    attrs = [f"{key}={_short(value)}" for key, value in op.attrs.items() if not _is_body(value)]
    after = [f"after={op.name}" for op in op.control_inputs]
    call = f"{op.type}({', '.join([*inputs, *attrs, *after])})"
    return f"{outputs} = {call}" if outputs else f"{call}  # {op.name}"


def _kind(tensor):
    return str(tensor.spec) if tensor.kind == DATA else tensor.kind


def _is_body(value):
    values = value if isinstance(value, tuple) else (value,)
    return any(isinstance(item, SubGraph) for item in values)


def _signature(op, body):
    shift = len(op.inputs) - len(body.inputs)
    pairs = zip(body.inputs, op.inputs[shift:], strict=True)
    return f"({', '.join(f'{inner.name} <- {outer.name}' for inner, outer in pairs)}):"


def _short(value):
    if isinstance(value, np.ndarray) and value.size > 6:
        return f"array{value.shape}"
    text = value.name if isinstance(value, np.dtype) else repr(value)
    text = " ".join(text.split())
    return text if len(text) <= 60 else text[:57] + "..."
