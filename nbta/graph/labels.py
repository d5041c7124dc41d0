"""What users call loops and tensors: for people alone, besides the names in graphs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from nbta.graph.graph import SubGraph, is_of_gradient, within
from nbta.graph.operation import label_of
from nbta.graph.views import Branch, Loop, is_branch, is_loop

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nbta.graph.operation import Operation, Tensor

#: What names of adjoints, of arrays that keep values for them, and of tangents begin with; see
#: `called`.
ADJOINT, SAVED, TANGENT = "d_", "saved_", "t_"
#: Names in a text, and users' code, in which words may look like them: ``while`` is a loop's name.
_NAMES = re.compile(r"`[^`]*`|(?<![\w./])[A-Za-z0-9.][\w.\-/]*(?::\d+)?(?![\w/])")


def written(loop: Operation) -> str | None:
    """A loop as the user wrote it, with its line; None where it has a name of the user's."""
    origin = Loop(loop).origin
    if origin is None or origin.header is None:
        return None
    return f"gradient of {origin}" if is_of_gradient(loop) else str(origin)


def shown_loop(loop: Operation) -> str:
    """A loop for messages: as the user wrote it, or by its name."""
    origin = Loop(loop).origin
    if origin is None or origin.header is None:
        return f"the loop {loop.name!r}"
    return f"the gradient of the loop {origin}" if is_of_gradient(loop) else f"the loop {origin}"


def called(tensor: Tensor) -> str | None:
    """What the user calls a tensor, or what it is of: ``d_y`` is the adjoint of ``y``.

    Unlike `label_of` it follows what is known from other tensors (`Graph.roles`), from what a body
    captures, and from variables of loops and results of branches to what they are in bodies.
    """
    prefix = ""
    while True:
        label = label_of(tensor)
        if label is not None:
            return prefix + label
        role = tensor.graph.roles.get(tensor)
        if role is not None:
            prefix, tensor = prefix + role[0], role[1]
            continue
        following = _same(tensor)
        if following is None:
            return None
        tensor = following


def _same(tensor):
    """Another tensor that has the same name of the user's; None where none is known."""
    op, graph = tensor.op, tensor.graph
    if op.type == "Identity":
        return op.inputs[0]
    if isinstance(graph, SubGraph) and tensor in graph.sources:
        return graph.sources[tensor]
    if is_loop(op):
        return Loop(op).parameters[tensor.index]
    if is_branch(op):
        ends = (branch.outputs[tensor.index] for branch in Branch(op).branches)
        return next((end for end in ends if end.op.inputs and label_of(end) is not None), None)
    return None


def call_after(tensor: Tensor, other: Tensor, prefix: str = "") -> None:
    """Note that a tensor is called as another one, after a prefix such as that of adjoints."""
    if tensor is not other:
        tensor.graph.roles.setdefault(tensor, (prefix, other))


def array_called(create: Operation) -> str | None:
    """What the user calls the array that an operation makes."""
    handle = create.outputs[0]
    role = create.graph.roles.get(handle)
    if role is not None:
        name = called(role[1])
        return None if name is None else role[0] + name
    location = create.location
    return None if location is None or location.is_gradient else getattr(location, "assigned", None)


class Labels:
    """What the user calls loops and tensors of a graph.

    Parameters
    ----------
    operations : iterable of Operation
        Of the graph, without those in bodies.
    """

    def __init__(self, operations: Iterable[Operation]) -> None:
        self._found: dict[str, str] = {}
        for op in within(operations):
            text = written(op) if is_loop(op) else None
            if text is not None:
                self._found[op.name] = text
            for tensor in op.outputs:
                label = label_of(tensor)
                if label is not None:
                    self._found[tensor.name] = f"{label} ({tensor.name})"

    def put(self, text: str) -> str:
        """A text with these in the place of graphs' names."""
        return _NAMES.sub(lambda found: self._found.get(found[0], found[0]), text)
