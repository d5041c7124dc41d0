"""What a picture of a graph shows: boxes, arrows and frames, before anybody has laid them out."""

from collections.abc import Iterator
from dataclasses import dataclass, field

#: What an arrow means, and what the legend says of it.
EDGES = {
    "data": "data",
    "flow": "flow: order only",
    "handle": "handle: which array",
    "control": "control: order only",
    "next": "next trip",
    "race": "race: nothing orders these",
}


_LARGE = 120


@dataclass(frozen=True)
class Cell:
    """A part of a bar: a variable of a loop, a captured tensor, a result."""

    kind: str  # "variable", "captured", "result"
    lines: tuple[str, ...]
    source: str | None = None


@dataclass(eq=False)
class Node:
    """A box: an operation, or a bar of cells on the frame of a loop or branch."""

    key: str
    kind: str  # "op", "array", "input", "constant", "folded", "bar"
    lines: list[str] = field(default_factory=list)  # the first is the name
    tooltip: str = ""
    source: str | None = None
    warning: str = ""
    cells: list[Cell] = field(default_factory=list)


@dataclass(eq=False)
class Frame:
    """A box around others: an operation with bodies, or one of these."""

    key: str
    kind: str  # "graph", "operation", "body"
    title: str
    source: str | None = None
    items: list = field(default_factory=list)

    def nodes(self) -> Iterator[Node]:
        """All nodes inside, however deep."""
        for item in self.items:
            if isinstance(item, Frame):
                yield from item.nodes()
            else:
                yield item

    def frames(self) -> Iterator["Frame"]:
        """All frames inside, however deep."""
        for item in self.items:
            if isinstance(item, Frame):
                yield item
                yield from item.frames()


@dataclass(frozen=True)
class End:
    """Where an arrow starts or ends: a node, and the number of a cell where it has cells."""

    node: Node
    cell: int | None = None


@dataclass(frozen=True)
class Edge:
    """An arrow."""

    tail: End
    head: End
    kind: str
    source: str | None = None


@dataclass(eq=False)
class Diagram:
    """All of a picture."""

    root: Frame
    edges: list[Edge] = field(default_factory=list)

    @property
    def count(self) -> int:
        """How many nodes it has."""
        return sum(1 for _ in self.root.nodes())

    @property
    def large(self) -> bool:
        """Whether it has so many nodes that quick ways and fewer arrows are called for."""
        return self.count > _LARGE

    def thin_out(self) -> None:
        """Leave out handles of operations that a flow of the same array leads to."""
        led = {edge.head.node for edge in self.edges if edge.kind == "flow"}
        self.edges = [e for e in self.edges if e.kind != "handle" or e.head.node not in led]

    @property
    def sources(self) -> list[str]:
        """Gradient computations that anything belongs to, in the order of their first part."""
        owners = [*self.root.nodes(), *self.root.frames()]
        cells = [cell for node in self.root.nodes() for cell in node.cells]
        return list(dict.fromkeys(o.source for o in [*owners, *cells] if o.source is not None))

    @property
    def kinds(self) -> list[str]:
        """Kinds of arrows in it."""
        there = {edge.kind for edge in self.edges}
        return [kind for kind in EDGES if kind in there]

    @property
    def warned(self) -> bool:
        """Whether a node has a warning."""
        return any(node.warning for node in self.root.nodes())
