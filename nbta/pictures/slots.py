"""Arrays as figures of matplotlib, with the cells of the HTML."""

from nbta.errors import invalid
from nbta.pictures.cells import MARKS, STATES, view_of
from nbta.pictures.picture import need_matplotlib
from nbta.pictures.text import clean

_COLUMNS = 16  # cells in a row
_UNIT = 0.66  # inches of a cell
_LEGEND = 0.9  # height of the legend, and least width of a picture, in cells
_LEAST = 10.0
_LETTER = 0.125  # width of a letter of a title
#: Fill, edge, line and hatch of a cell in each state.
_LOOKS = {
    "unwritten": ("#ffffff", "#999999", "--", ""),
    "written": ("#cce3f0", "#0072b2", "-", ""),
    "zeros": ("#ffffff", "#d55e00", ":", ""),
    "sum": ("#f7dfcc", "#d55e00", "-", ""),
    "read": ("#ccece3", "#009e73", "-", ""),
    "cleared": ("#ffffff", "#bbbbbb", "-", "////"),
}


def draw(array, axes=None):
    """Draw an array and its gradient arrays; see `nbta.TensorArray.plot`."""
    error = need_matplotlib("TensorArray.plot")
    if error:
        raise error
    from matplotlib.figure import Figure

    views = list(_flat(view_of(array), 0))
    width, height = _width(views), sum(_height(view) for view, _ in views) + _LEGEND
    if axes is None:
        figure = Figure(figsize=(width * _UNIT, height * _UNIT), facecolor="white")
        axes = figure.add_axes((0, 0, 1, 1))
    elif not hasattr(axes, "add_patch"):
        raise invalid("axes", f"plot: axes must be matplotlib axes, not {axes!r}")
    axes.set(xlim=(-0.2, width - 0.2), ylim=(height - 0.2, -0.2))
    axes.set_axis_off()
    y = 0.0
    for view, depth in views:
        _array(axes, view, 0.4 * depth, y)
        y += _height(view)
    _legend(axes, views[0][0].states)
    return axes


def _flat(view, depth):
    yield view, depth
    for below in view.below:
        yield from _flat(below, depth + 1)


def _rows(view):
    return -(-(len(view.slots) + bool(view.left_out)) // _COLUMNS)


def _height(view):
    return _rows(view) + 1.0


def _title(view):
    return f"{view.title}   {' · '.join(view.facts)}"


def _width(views):
    cells = (0.4 * d + min(len(v.slots) + bool(v.left_out), _COLUMNS) for v, d in views)
    titles = (0.4 * d + _LETTER * len(_title(v)) for v, d in views)
    return max(_LEAST, *cells, *titles) + 0.4


def _array(axes, view, x, y):
    """One array from a height on."""
    _text(axes, x, y + 0.15, _title(view), 9, ha="left", fontweight="bold")
    y += 0.5
    place, before = 0, None
    for slot in view.slots:
        if before is not None and slot.number > before + 1:
            gap = f"…\n{view.left_out:,}\nmore"
            _text(axes, *_middle(place, x, y), gap, 7)
            place += 1
        _slot(axes, slot, place, x, y)
        place, before = place + 1, slot.number


def _middle(place, x, y):
    row, column = divmod(place, _COLUMNS)
    return x + column + 0.47, y + row + 0.45


def _slot(axes, slot, place, x, y):
    from matplotlib.patches import Rectangle

    across, down = _middle(place, x, y)
    fill, edge, line, hatch = _LOOKS[slot.state]
    corner, thick = (across - 0.45, down - 0.43), 2.6 if slot.state == "read" else 1.4
    patch = Rectangle(
        corner, 0.9, 0.86, facecolor=fill, edgecolor=edge, linestyle=line, linewidth=thick,
        hatch=hatch, gid=f"{slot.state}-{slot.number}",
    )  # fmt: skip
    axes.add_patch(patch)
    _text(axes, across, down - 0.32, str(slot.number), 6, color="#555555")
    _text(axes, across, down + 0.33, MARKS[slot.state], 6, color="#333333")
    longest = max(map(len, slot.lines), default=1)
    size = max(3.5, min(9.0, 66 / longest))
    _text(axes, across, down, "\n".join(slot.lines), size, fontfamily="monospace")


def _text(axes, x, y, text, size, ha="center", **style):
    lines = "\n".join(map(clean, text.split("\n")))
    axes.text(x, y, lines, ha=ha, va="center", fontsize=size, parse_math=False,
              **{"color": "#222222", **style})  # fmt: skip


def _legend(axes, states):
    from matplotlib.patches import Patch

    if not states:
        return
    patches = [
        Patch(facecolor=fill, edgecolor=edge, linestyle=line, hatch=hatch, label=STATES[state])
        for state, (fill, edge, line, hatch) in _LOOKS.items()
        if state in states
    ]
    axes.legend(
        handles=patches, loc="lower left", ncols=3, frameon=False, fontsize=8
    )  # fmt: skip
