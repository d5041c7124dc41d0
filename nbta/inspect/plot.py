"""nbta.plot: a graph as a picture, by graphviz, or by matplotlib where that is not there."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from graphlib import TopologicalSorter
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from nbta.display.picture import (
    CAPTURED,
    FAINT,
    FORWARD,
    INK,
    LINES,
    WARNING,
    Picture,
    by_graphviz,
    by_matplotlib,
    clean,
    escaped,
    format_of,
    is_there,
    missing_packages,
    need_matplotlib,
    paint_of,
)
from nbta.errors import FailedPreconditionError, invalid
from nbta.graph.graph import Graph, all_bodies, current, within
from nbta.graph.operation import Operation
from nbta.inspect.diagram import EDGES, Diagram, Edge, End, Frame, Node, diagram_of
from nbta.inspect.folding import folded_diagram

if TYPE_CHECKING:
    import os


#: Operations up to which a graph is drawn with a box for each of them.
UNFOLDED = 120
_FONT = "Helvetica,Arial,sans-serif"
_SHAPES = {"array": "cylinder", "input": "box", "folded": "box3d", "bar": "plain"}
#: Settings with which dot stops improving early, for large graphs: 280 operations take 1 s of
#: processor time in place of 3 s, 800 take 10 s in place of minutes. (With a limit for `nslimit1`
#: boxes end up in wrong layers.)
_QUICK = {"nslimit": "1", "mclimit": "0.1"}
_STRAIGHT = {"splines": "line"}
_HUGE = 400  # boxes from which arrows are straight


#: All attributes that edges have, in the order of the alphabet: for edges between neighbours in one
#: layer, dot 2.43 takes an attribute for another one if they were declared in another order.
_EDGE = {
    "arrowhead": "normal", "arrowsize": "0.7", "class": "", "color": INK, "constraint": "true",
    "headport": "", "penwidth": "1", "style": "solid", "tailport": "", "tooltip": "", "weight": "1",
}  # fmt: skip


def digraph(diagram: Diagram):
    """The picture as a `graphviz.Digraph`."""
    import graphviz

    graph = graphviz.Digraph()
    graph.attr("graph", **_layout(diagram), label=_legend(diagram), labelloc="b")
    graph.attr("node", fontname=_FONT, fontsize="11", style="filled,rounded", fontcolor=INK)
    graph.attr("edge", **_EDGE)
    _fill(graph, diagram.root, diagram.sources)
    for edge in diagram.edges:
        sides = "ee" if edge.kind == "next" else "sn"
        graph.edge(_port(edge.tail, sides[0]), _port(edge.head, sides[1]), **_line(edge))
    return graph


def _layout(diagram):
    return {
        "fontname": _FONT, "fontsize": "11", "bgcolor": "white", "rankdir": "TB",
        "nodesep": "0.25", "ranksep": "0.35", "class": "nbta", **(_QUICK if diagram.large else {}),
        **(_STRAIGHT if diagram.count > _HUGE else {}),
    }  # fmt: skip


def _fill(graph, frame, sources):
    for item in frame.items:
        if isinstance(item, Node):
            graph.node(item.key, **_box(item, sources))
        else:
            with graph.subgraph(name=f"cluster_{item.key}") as inner:
                inner.attr(**_frame(item, sources))
                _fill(inner, item, sources)


def _frame(frame: Frame, sources):
    paint = paint_of(frame.source, sources)
    whole = frame.kind == "operation"
    text = escaped(frame.title)
    return {
        "label": f"<<b>{text}</b>>" if whole else f"<<i>{text}</i>>",
        "labelloc": "t", "labeljust": "l", "fontname": _FONT, "fontsize": "11",
        "style": "rounded,filled", "color": paint.edge, "penwidth": "1.6" if whole else "0.8",
        "fillcolor": "#fafafa" if whole else "#f0f0f0", "fontcolor": INK,
        "class": _class(frame, frame.kind, sources), "tooltip": _tooltip(frame.title),
    }  # fmt: skip


def _class(item, kind, sources):
    place = [] if item.source is None else [f"source-{sources.index(item.source)}"]
    warning = ["warning"] if getattr(item, "warning", "") else []
    return " ".join([kind, *place, *warning])


def _tooltip(text):
    import graphviz

    return graphviz.escape(escaped(text))


def _box(node: Node, sources):
    paint = paint_of(node.source, sources, node.kind)
    return {
        "label": _table(node, sources) if node.cells else _text(node),
        "shape": _SHAPES.get(node.kind, "box"), "fillcolor": paint.fill,
        "color": WARNING if node.warning else paint.edge,
        "penwidth": "2.4" if node.warning else "1.1", "margin": "0.09,0.05",
        "class": _class(node, node.kind, sources), "tooltip": _tooltip(node.tooltip),
        **({"style": "filled", "height": "0.7"} if node.kind in ("array", "folded") else {}),
    }  # fmt: skip


def _text(node):
    """The lines of a box: the name in bold, the others smaller."""
    name, *others = map(escaped, node.lines)
    lid = '<br/><font point-size="5"> </font>' if node.kind == "array" else ""
    small = "".join(f'<br/><font point-size="9.5" color="#333333">{line}</font>' for line in others)
    warning = f'<br/><font point-size="9.5" color="#a84300"><b>{escaped(node.warning)}</b></font>'
    return f"<{lid}<b>{name}</b>{small}{warning if node.warning else ''}>"


def _table(node, sources):
    cells = "".join(_cell(number, cell, sources) for number, cell in enumerate(node.cells))
    table = 'border="0" cellborder="1" cellspacing="0" cellpadding="4"'
    return f'<<table {table} color="{FAINT}"><tr>{cells}</tr></table>>'


def _cell(number, cell, sources):
    fill = CAPTURED if cell.kind == "captured" else "#ffffff"
    if cell.source is not None:
        fill = paint_of(cell.source, sources).fill
    first, *others = map(escaped, cell.lines)
    small = "".join(f'<br/><font point-size="9">{line}</font>' for line in others)
    kind = "captured<br/>" if cell.kind == "captured" else ""
    mark = f'<font point-size="8" color="{FAINT}"><i>{kind}</i></font>' if kind else ""
    return f'<td port="p{number}" bgcolor="{fill}">{mark}<b>{first}</b>{small}</td>'


def _port(end: End, side):
    if end.cell is not None:
        return f"{end.node.key}:p{end.cell}:{side}"
    return f"{end.node.key}:{side}" if end.node.cells else end.node.key


def _line(edge):
    line = LINES[edge.kind]
    settings = {
        "color": line.color, "style": line.dash, "penwidth": str(line.width),
        "arrowhead": line.head, "class": f"edge {edge.kind}", "tooltip": EDGES[edge.kind],
    }  # fmt: skip
    if edge.kind in _FREE:
        settings["constraint"] = "false"
    if edge.kind in ("handle", "control"):
        settings["weight"] = "0"
    return settings


_STROKES = {"solid": "———", "dashed": "— —", "dotted": "· · · ·"}


_COLUMNS = 4  # of the legend


def _legend(diagram):
    """What lines and colours mean, in a table below the picture."""
    items = [
        f'<td align="left"><font color="{LINES[kind].color}"><b>{_STROKES[LINES[kind].dash]}</b>'
        f"</font> {EDGES[kind]}</td>"
        for kind in diagram.kinds
    ]
    items += [
        f'<td align="left" bgcolor="{paint_of(source, diagram.sources).fill}">made by '
        f"<b>{escaped(source)}</b></td>"
        for source in diagram.sources
    ]
    rows = [items[i : i + _COLUMNS] for i in range(0, len(items), _COLUMNS)]
    body = "".join(f"<tr>{''.join(row)}</tr>" for row in rows)
    return f'<<table border="0" cellspacing="8" cellpadding="3">{body}</table>>' if body else ""


# By matplotlib. Where things stand: Sugiyama's method, frame by frame from the inside. Layers by
# the longest way, dummy nodes where an arrow passes a layer, an order within layers by the mean of
# what is above and then below, and then places as near to that mean as the order allows. Lengths
# are in points.

TITLE, PAD, GAP, LAYERS = 16.0, 12.0, 18.0, 30.0
NAME, SMALL = 8.0, 6.5  # sizes of text
_SWEEPS = 8
_LETTER = 0.64  # mean width of a letter, in sizes of text
_FREE = ("next", "race", "again")  # arrows that say nothing of what is above what


@dataclass(eq=False)
class Box:
    """A place: of a node, a frame, or of an arrow that passes a layer."""

    item: object
    width: float
    height: float
    x: float = 0.0  # of the left side, within the frame around it
    y: float = 0.0  # of the upper side
    inner: Level | None = None

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
    """Boxes by layer, with placeholders for arrows that pass a layer; and these by arrow."""
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
    from scipy.optimize import isotonic_regression  # which takes 0.2 s

    widths = np.array([box.width for box in row])
    near = np.array([GAP if box.item is not None else GAP / 3 for box in row])
    steps = (widths[1:] + widths[:-1]) / 2 + np.maximum(near[1:], near[:-1])
    offsets = np.concatenate([[0.0], np.cumsum(steps)])
    middles = isotonic_regression(np.asarray(wishes) - offsets).x + offsets
    for box, middle in zip(row, middles, strict=True):
        box.x = float(middle) - box.width / 2


# What is drawn there.

_MARGIN, _LEGEND_ROW = 16.0, 16.0
_BEHIND = {"handle": 2.0, "control": 2.1}  # arrows that others cross
_HEADS = {"normal": "-|>", "odiamond": "-|>", "vee": "->", "none": "-"}


def figure_of(diagram: Diagram):
    """The picture as a `matplotlib.figure.Figure`."""
    drawing = _Drawing(diagram)
    drawing.frame(drawing.level, _MARGIN, _MARGIN, 1.0)
    for number, edge in enumerate(diagram.edges):
        drawing.edge(number, edge)
    drawing.legend()
    return drawing.figure


class _Drawing:
    """A figure with one unit a point, and y downwards."""

    def __init__(self, diagram):
        from matplotlib.figure import Figure

        self.diagram, self.sources = diagram, diagram.sources
        self.level, self._homes = lay_out(diagram), homes_of(diagram)
        rows = -(-(len(diagram.kinds) + len(self.sources)) // _COLUMNS)
        width = max(self.level.width + 2 * _MARGIN, 420.0)
        height = self.level.height + 2 * _MARGIN + _LEGEND_ROW * rows + 10
        self.figure = Figure(figsize=(width / 72, height / 72), facecolor="white")
        self._axes = self.figure.add_axes((0, 0, 1, 1))
        self._axes.set(xlim=(0, width), ylim=(height, 0))
        self._axes.set_axis_off()
        self._corners = {}  # of nodes, with their sizes
        self._levels = {}  # by frame: what it holds, and where that begins

    # Boxes.

    def frame(self, level, x, y, depth, frame=None):
        """Everything in a frame, whose inside begins at a point."""
        self._levels[frame or self.diagram.root] = level, x, y
        for item, box in level.boxes.items():
            if box.inner is None:
                self._node(item, x + box.x, y + box.y, box.width, box.height)
            else:
                self._around(item, x + box.x, y + box.y, box.width, box.height, depth)
                inside = y + box.y + PAD + TITLE
                self.frame(box.inner, x + box.x + PAD, inside, depth + 0.01, item)

    def _around(self, frame, x, y, width, height, depth):
        whole = frame.kind == "operation"
        edge = paint_of(frame.source, self.sources).edge
        self._rectangle(
            f"{frame.kind}-{frame.key}", (x, y, width, height), "#fafafa" if whole else "#f0f0f0",
            edge, 1.5 if whole else 0.7, depth,
        )  # fmt: skip
        style = {"fontweight": "bold"} if whole else {"fontstyle": "italic"}
        self._text(x + 8, y + TITLE / 2 + 3, frame.title, NAME, ha="left", zorder=4, **style)

    def _rectangle(self, name, place, fill, edge, width, depth, rounding=5.0):
        from matplotlib.patches import FancyBboxPatch

        x, y, across, down = place
        shape = f"round,pad=0,rounding_size={rounding}" if rounding else "square,pad=0"
        patch = FancyBboxPatch(
            (x, y), across, down, boxstyle=shape, facecolor=fill, edgecolor=edge, linewidth=width,
            zorder=depth, gid=name,
        )  # fmt: skip
        self._axes.add_patch(patch)

    def _text(self, x, y, text, size, ha="center", zorder=5, **style):
        self._axes.text(
            x, y, clean(text), ha=ha, va="center", fontsize=size, parse_math=False, zorder=zorder,
            **{"color": INK, **style},
        )  # fmt: skip

    def _node(self, node, x, y, width, height):
        self._corners[node] = x, y, width, height
        if node.cells:
            self._bar(node, x, y, height)
            return
        paint = paint_of(node.source, self.sources, node.kind)
        edge, thick = (WARNING, 2.2) if node.warning else (paint.edge, 1.0)
        self._rectangle(
            f"{node.kind}-{node.key}", (x, y, width, height), paint.fill, edge, thick, 3.0,
            0.0 if node.kind in ("array", "folded") else 5.0,
        )  # fmt: skip
        if node.kind == "array":  # a lid, as on a drum
            self._axes.plot([x, x + width], [y + 3, y + 3], color=edge, linewidth=0.8, zorder=3.1)
        line, middle = y + 5 + 0.65 * NAME, x + width / 2
        self._text(middle, line, node.lines[0], NAME, fontweight="bold")
        line += 0.65 * NAME
        warning = [(node.warning, WARNING)] if node.warning else []
        for text, color in [*((text, INK) for text in node.lines[1:]), *warning]:
            self._text(middle, line + 0.7 * SMALL, text, SMALL, color=color)
            line += 1.35 * SMALL

    def _bar(self, node, x, y, height):
        for number, (cell, width) in enumerate(zip(node.cells, cell_widths(node), strict=True)):
            fill = CAPTURED if cell.kind == "captured" else FORWARD.fill
            if cell.source is not None:
                fill = paint_of(cell.source, self.sources).fill
            place = (x, y, width, height)
            self._rectangle(f"cell-{node.key}-{number}", place, fill, FAINT, 0.8, 3.0, 0.0)
            middle, line = x + width / 2, y + height - 8.0 * len(cell.lines) - 1.0
            if cell.kind == "captured":
                self._text(middle, y + 6, "captured", SMALL - 1, color=FAINT, fontstyle="italic")
            for depth, text in enumerate(cell.lines):
                style = {} if depth else {"fontweight": "bold"}
                size = SMALL if depth else NAME
                self._text(middle, line + 8.0 * depth, text, size, **style)
            x += width

    # Arrows.

    def _anchor(self, end: End, below):
        """Where an arrow touches a node: in the middle of its lower or upper side."""
        x, y, width, height = self._corners[end.node]
        if end.cell is not None:
            widths = cell_widths(end.node)
            x, width = x + sum(widths[: end.cell]), widths[end.cell]
        return x + width / 2, y + height * below

    def _points(self, edge):
        """Where an arrow passes."""
        start, stop = self._anchor(edge.tail, True), self._anchor(edge.head, False)
        passed = []
        for frame, tail, head in steps_of(self._homes, edge):
            level, x, y = self._levels[frame]
            boxes = level.ways.get((tail, head), ())
            passed += [(x + box.middle, y + box.y) for box in boxes]
        return [start, *passed, stop]

    def _back(self, edge):
        """Around the right side of what an iteration does."""
        (x, y, width, height), (ax, ay, across, down) = (
            self._corners[edge.tail.node], self._corners[edge.head.node],
        )  # fmt: skip
        start, stop = (x + width, y + height / 2), (ax + across, ay + down / 2)
        home = self._homes[edge.tail.node][-2]
        level, left, _ = self._levels[home]
        right = left + level.width + PAD * 0.5
        return [start, (right, start[1]), (right, stop[1]), stop]

    def edge(self, number, edge):
        """One arrow."""
        from matplotlib.patches import FancyArrowPatch
        from matplotlib.path import Path

        line = LINES[edge.kind]
        if edge.kind == "next":
            path = Path(self._back(edge))
        elif edge.kind in ("race", "again"):
            path = Path([_center(self._corners[end.node]) for end in (edge.tail, edge.head)])
        else:
            path = Path(*_smooth(self._points(edge)))
        patch = FancyArrowPatch(
            path=path, arrowstyle=_HEADS[line.head], color=line.color, linewidth=line.width * 0.8,
            linestyle=line.dash, mutation_scale=8, shrinkA=0, shrinkB=0, joinstyle="round",
            zorder=_BEHIND.get(edge.kind, 2.5), gid=f"edge-{edge.kind}-{number}",
            alpha=0.85, fill=line.head != "odiamond",
        )  # fmt: skip
        self._axes.add_patch(patch)

    def legend(self):
        """What lines and colours mean, below the picture."""
        from matplotlib.lines import Line2D
        from matplotlib.patches import Patch

        kinds, sources = self.diagram.kinds, self.sources
        if not kinds and not sources:
            return
        lines = [
            Line2D([], [], color=LINES[k].color, linestyle=LINES[k].dash, linewidth=LINES[k].width)
            for k in kinds
        ]
        paints = [paint_of(source, sources) for source in sources]
        patches = [Patch(facecolor=paint.fill, edgecolor=paint.edge) for paint in paints]
        labels = [EDGES[k] for k in kinds] + [f"made by {clean(source)}" for source in sources]
        legend = self._axes.legend(
            lines + patches, [" "] * len(labels), loc="lower center", ncols=_COLUMNS,
            frameon=False, fontsize=NAME,
        )  # fmt: skip
        for text, label in zip(legend.get_texts(), labels, strict=True):
            text.set_parse_math(False)
            text.set_text(label)


def _center(place):
    x, y, width, height = place
    return x + width / 2, y + height / 2


def _smooth(points):
    """A curve through points that is upright at each."""
    from matplotlib.path import Path

    vertices, codes = [points[0]], [Path.MOVETO]
    for (x, y), (to_x, to_y) in pairwise(points):
        half = (to_y - y) / 2
        vertices += [(x, y + half), (to_x, to_y - half), (to_x, to_y)]
        codes += [Path.CURVE4] * 3
    return vertices, codes


def plot(
    graph: Any = None,
    file: str | os.PathLike[str] | None = None,
    *,
    depth: int | None = None,
    engine: str | None = None,
    fold: Literal["auto", "line", "loop"] | None = "auto",
) -> Picture:
    """Draw a graph.

    Boxes are operations, with the dtypes and shapes of their results; drums are arrays. Solid
    arrows are data; dashed blue arrows are flows, which only define an order; thin grey lines
    connect an operation with the array that it uses; dotted arrows are control edges. A loop or a
    branch is a frame around its operations: the bar at the top shows its variables and the tensors
    that it captures, and the bar at the bottom its results. Operations that were added by a call of
    `gradients` have their own colour, also within a forward loop. A write that may never run has a
    thick border, and two operations that race are connected (see `check_flow`). Scalar constants
    are drawn where they are used.

    Parameters
    ----------
    graph : Graph, function or Operation, optional
        A graph; the body of a loop or branch; an operation that has bodies; a function made by
        `nbta.function`, `grad` or `value_and_grad`, whose last call is drawn as it was traced; or
        ``function.graph``, the same after all passes. By default, the graph that is being built.
    file : path, optional
        The file to write, whose name ends in ``.svg``, ``.png`` or ``.pdf``.
    depth : int, optional
        The number of nested frames to draw; deeper frames become one box. 0 draws no frames.
    engine : {None, "graphviz", "matplotlib"}
        By default, graphviz if it is installed (the package and its program ``dot``), else
        matplotlib, with a simpler layout.
    fold : {"auto", "line", "loop", None}
        "line" draws one box for each of the user's lines, with its text and the number of its
        operations, in a frame for each loop and each gradient of a loop; "loop" one box for each
        loop; None a box for each operation. By default graphs of more than 120 operations are drawn
        by line, where no ``depth`` is given. Such a picture has 60 boxes at most besides arguments:
        lines that follow one another share one where there are more.

    Returns
    -------
    Picture
        Shown by notebooks; it has ``picture.svg`` and ``picture.save(file)``.

    Raises
    ------
    InvalidArgumentError
        If ``graph`` is not a graph, or if the depth, engine, fold or file name is invalid.
    FailedPreconditionError
        If the engine is not installed, or a function was not called yet.

    Examples
    --------
    >>> with nbta.Graph().as_default() as g:
    ...     x = nbta.placeholder("float64", (), name="x")
    ...     ta = nbta.TensorArray("float64", size=1).write(0, x)
    ...     dx, = nbta.gradients(ta.read(0) ** 2, [x])
    >>> nbta.plot(g)
    <nbta picture by ...>
    """
    if file is not None:
        format_of(file)
    _check(depth, engine, fold)
    picture = _drawn(_diagram(*_graph_of(graph), depth, fold), engine)
    if file is not None:
        picture.save(file)
    return picture


def _diagram(graph, results, depth, fold):
    """What to draw, folded where that is asked for, or called for by the size."""
    by = "line" if fold == "auto" else fold
    if isinstance(graph, Operation) or by is None:
        return diagram_of(graph, results, depth)
    count = len(within(graph.operations))
    if fold != "auto" or (depth is None and count > UNFOLDED):
        return folded_diagram(graph, results, by)
    return diagram_of(graph, results, depth)


def _check(depth, engine, fold):
    if fold not in ("auto", "line", "loop", None):
        message = f'plot: fold must be "auto", "line", "loop" or None, not {fold!r}'
        raise invalid("value", message)
    if fold in ("line", "loop") and depth is not None:
        raise invalid("value", f"plot: depth folds bodies, and fold={fold!r} all of the graph")
    if depth is not None and (isinstance(depth, bool) or not isinstance(depth, int) or depth < 0):
        raise invalid("depth", f"plot: depth must be None or an int from 0 on, not {depth!r}")
    if engine not in (None, "graphviz", "matplotlib"):
        message = f'plot: engine must be "graphviz", "matplotlib" or None, not {engine!r}'
        raise invalid("engine", message)


def _graph_of(graph):
    """What to draw, and the results of a function."""
    graph = current() if graph is None else graph
    if hasattr(graph, "traced"):  # a function made by nbta.function
        return graph.traced()
    if isinstance(graph, Graph) or (isinstance(graph, Operation) and all_bodies(graph)):
        return graph, ()
    message = (
        f"plot: {graph!r} is no graph; give a Graph, a function made by nbta.function that was "
        f"called, or a loop or branch (an Operation with bodies)"
    )
    raise invalid("graph", message)


def _drawn(diagram, engine):
    if engine is None:
        engine = next((name for name in _LACKS if not _LACKS[name]()), None)
        if engine is None:
            raise missing_packages("plot needs graphviz (with its program dot) or matplotlib")
    lacking = _LACKS[engine]()
    if lacking:
        raise lacking
    if engine == "graphviz":
        return by_graphviz(digraph(diagram))
    return by_matplotlib(figure_of(diagram))


def _lacks_graphviz():
    """The error that says what graphviz lacks; None where it is there."""
    if not is_there("graphviz"):
        return missing_packages('plot(engine="graphviz") needs the package graphviz')
    if shutil.which("dot") is None:
        message = (
            'plot(engine="graphviz") needs the program dot of Graphviz, which is not on the path; '
            'install Graphviz (graphviz.org), or use engine="matplotlib"'
        )
        error = FailedPreconditionError(message)
        error.reason = "missing_dot"
        return error
    return None


def _lacks_matplotlib():
    return need_matplotlib('plot(engine="matplotlib")')


_LACKS = {"graphviz": _lacks_graphviz, "matplotlib": _lacks_matplotlib}
