"""What users call loops and tensors: for people alone, besides the names in graphs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from nbta.graph.graph import is_of_gradient, within
from nbta.graph.operation import label_of
from nbta.graph.views import Loop, is_loop

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nbta.graph.operation import Operation

_NAMES = re.compile(r"(?<![\w./])[A-Za-z0-9.][\w.\-/]*(?::\d+)?(?![\w/])")


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
