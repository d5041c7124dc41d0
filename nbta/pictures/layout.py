"""Where things stand in a picture of a graph, where graphviz is not there to say it.

Sugiyama's method, frame by frame from the inside: layers by the longest way, stand-ins where an
arrow passes a layer, an order within layers by the mean of what is above and then below, and then
places as near to that mean as the order allows. Lengths are in points.
"""

from dataclasses import dataclass, field
from graphlib import TopologicalSorter
from itertools import pairwise

import numpy as np
from scipy.optimize import isotonic_regression

from nbta.pictures.diagram import Diagram, Edge, Frame, Node

TITLE, PAD, GAP, LAYERS = 16.0, 12.0, 18.0, 30.0
NAME, SMALL = 8.0, 6.5  # sizes of text
_SWEEPS = 8
_LETTER = 0.64  # mean width of a letter, in sizes of text
_FREE = ("next", "race")  # arrows that say nothing of what is above what


@dataclass(eq=False)
class Box:
    """A place: of a node, a frame, or of an arrow that passes a layer."""

    item: object
    width: float
    height: float
    x: float = 0.0  # of the left side, within the frame around it
    y: float = 0.0  # of the upper side
    inner: "Level | None" = None

    @property
    def middle(self) -> float:
        """Of its width."""
        return self.x + self.width / 2


@dataclass(eq=False)
class Level:
    """What is in one frame, laid out."""

    boxes: dict = field(default_factory=dict)  # by node or frame
    ways: dict = field(default_factory=dict)  # boxes that the arrows of a pair pass
    width: float = 0.0
    height: float = 0.0


def text_width(text: str, size: float) -> float:
    """About how wide a text is."""
    return _LETTER * size * len(text)


def cell_widths(node: Node) -> list[float]:
    """How wide the cells of a bar are."""
    return [max(text_width(line, NAME) for line in cell.lines) + 10 for cell in node.cells]


def _node_size(node):
    if node.cells:
        return sum(cell_widths(node)), 26.0 + 9.0 * any(c.kind == "captured" for c in node.cells)
    lines = [*node.lines[1:], *filter(None, [node.warning])]
    widths = [text_width(node.lines[0], NAME) * 1.1, *(text_width(t, SMALL) for t in lines)]
    return max(widths) + 14, 10.0 + 1.3 * NAME + 1.35 * SMALL * len(lines)


def lay_out(diagram: Diagram) -> Level:
    """Places of everything, each relative to the frame that it is in."""
    homes = homes_of(diagram)
    pairs: dict[Frame, list] = {}
    for edge in diagram.edges:
        if edge.kind not in _FREE:
            for frame, tail, head in steps_of(homes, edge):
                pairs.setdefault(frame, []).append((tail, head))
    return _level(diagram.root, pairs)


def homes_of(diagram: Diagram) -> dict:
    """The frames around each node, from the outermost, and the node itself."""
    return dict(_homes(diagram.root, (diagram.root,)))


def _homes(frame, path):
    for item in frame.items:
        if isinstance(item, Frame):
            yield from _homes(item, (*path, item))
        else:
            yield item, (*path, item)


def steps_of(homes: dict, edge: Edge) -> list[tuple]:
    """The frames that an arrow passes, with what it leads from and to in each.

    None stands for the lower side of a frame that it leaves, or the upper side of one that it
    enters.
    """
    tail, head = homes[edge.tail.node], homes[edge.head.node]
    depth = 0
    while depth < min(len(tail), len(head)) - 1 and tail[depth] is head[depth]:
        depth += 1
    leaving = [(tail[i], tail[i + 1], None) for i in range(len(tail) - 2, depth - 1, -1)]
    entering = [(head[i], None, head[i + 1]) for i in range(depth, len(head) - 1)]
    return [*leaving, (tail[depth - 1], tail[depth], head[depth]), *entering]


def _level(frame, pairs):
    boxes = {}
    for item in frame.items:
        if isinstance(item, Frame):
            inner = _level(item, pairs)
            width = max(inner.width, text_width(item.title, NAME) * 1.1)
            boxes[item] = Box(item, width + 2 * PAD, inner.height + 2 * PAD + TITLE, inner=inner)
        else:
            boxes[item] = Box(item, *_node_size(item))
    edges = list(dict.fromkeys(pairs.get(frame, ())))
    rows, ways = _rows(boxes, edges)
    above, below = _neighbours(rows, edges, boxes, ways)
    _order(rows, above, below)
    level = Level(boxes, ways)
    _place(rows, above, below, level)
    return level


def _layers(items, edges):
    """The layer of each item: below all that it needs, and just above what needs it first."""
    needs = {item: set() for item in items}
    edges = [pair for pair in edges if None not in pair]
    for tail, head in edges:
        needs[head].add(tail)
    order = list(TopologicalSorter(needs).static_order())
    layer = {}
    for item in order:
        layer[item] = max((layer[other] + 1 for other in needs[item]), default=0)
    users = {item: [] for item in items}
    for tail, head in edges:
        users[tail].append(head)
    for item in reversed(order):
        if users[item] and not needs[item]:
            layer[item] = min(layer[other] for other in users[item]) - 1
    return layer


def _rows(boxes, edges):
    """Boxes by layer, with stand-ins for arrows that pass a layer; and these by arrow."""
    layer = _layers(list(boxes), edges)
    rows = [[] for _ in range(max(layer.values(), default=-1) + 1)]
    for item, box in boxes.items():
        rows[layer[item]].append(box)
    ways = {}
    for tail, head in edges:
        first = -1 if tail is None else layer[tail]
        last = len(rows) if head is None else layer[head]
        ways[tail, head] = [Box(None, 4.0, 0.0) for _ in range(first + 1, last)]
        for number, box in enumerate(ways[tail, head], first + 1):
            rows[number].append(box)
    return rows, ways


def _neighbours(rows, edges, boxes, ways):
    """For each box those above and those below that arrows lead from and to."""
    above = {box: [] for row in rows for box in row}
    below = {box: [] for row in rows for box in row}
    for tail, head in edges:
        chain = [boxes.get(tail), *ways[tail, head], boxes.get(head)]
        chain = [box for box in chain if box is not None]
        for one, other in pairwise(chain):
            below[one].append(other)
            above[other].append(one)
    return above, below


def _order(rows, above, below):
    """Sort each layer by the mean place of its neighbours, downwards and upwards in turn."""
    place = {box: i for row in rows for i, box in enumerate(row)}
    for sweep in range(_SWEEPS):
        near = below if sweep % 2 else above
        for row in reversed(rows) if sweep % 2 else rows:
            row.sort(key=lambda box: _mean([place[b] for b in near[box]], place[box]))
            place.update((box, i) for i, box in enumerate(row))


def _mean(values, otherwise):
    return sum(values) / len(values) if values else otherwise


def _place(rows, above, below, level):
    """Give each box its place, and the level its size."""
    top = 0.0
    for row in rows:
        height = max(box.height for box in row)
        for box in row:
            box.y = top + (height - box.height) / 2
        top += height + LAYERS
        _spread(row, [0.0] * len(row))
    for sweep in range(_SWEEPS):
        near = below if sweep % 2 else above
        for row in reversed(rows) if sweep % 2 else rows:
            _spread(row, [_mean([b.middle for b in near[box]], box.middle) for box in row])
    everything = [box for row in rows for box in row]
    left = min((box.x for box in everything), default=0.0)
    for box in everything:
        box.x -= left
    level.width = max((box.x + box.width for box in everything), default=0.0)
    level.height = max(top - LAYERS, 0.0)


def _spread(row, wishes):
    """Put the middles of boxes as near to what each wishes as their order and widths allow."""
    widths = np.array([box.width for box in row])
    near = np.array([GAP if box.item is not None else GAP / 3 for box in row])
    steps = (widths[1:] + widths[:-1]) / 2 + np.maximum(near[1:], near[:-1])
    offsets = np.concatenate([[0.0], np.cumsum(steps)])
    middles = isotonic_regression(np.asarray(wishes) - offsets).x + offsets
    for box, middle in zip(row, middles, strict=True):
        box.x = float(middle) - box.width / 2
