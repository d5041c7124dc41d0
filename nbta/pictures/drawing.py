"""Pictures of graphs by matplotlib, where graphviz is not there."""

from itertools import pairwise

from nbta.pictures import layout
from nbta.pictures.diagram import EDGES, Diagram, End
from nbta.pictures.layout import NAME, PAD, SMALL, TITLE
from nbta.pictures.style import CAPTURED, FAINT, FORWARD, INK, LINES, WARNING, paint_of
from nbta.pictures.text import clean

_MARGIN, _LEGEND_ROW, _COLUMNS = 16.0, 16.0, 4
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
        self.level, self._homes = layout.lay_out(diagram), layout.homes_of(diagram)
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
        for number, (cell, width) in enumerate(
            zip(node.cells, layout.cell_widths(node), strict=True)
        ):
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
            widths = layout.cell_widths(end.node)
            x, width = x + sum(widths[: end.cell]), widths[end.cell]
        return x + width / 2, y + height * below

    def _points(self, edge):
        """Where an arrow passes."""
        start, stop = self._anchor(edge.tail, True), self._anchor(edge.head, False)
        passed = []
        for frame, tail, head in layout.steps_of(self._homes, edge):
            level, x, y = self._levels[frame]
            boxes = level.ways.get((tail, head), ())
            passed += [(x + box.middle, y + box.y) for box in boxes]
        return [start, *passed, stop]

    def _back(self, edge):
        """Around the right side of what a trip does."""
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
        elif edge.kind == "race":
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
