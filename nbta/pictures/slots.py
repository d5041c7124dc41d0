"""Arrays as figures of matplotlib, with the cells of the HTML."""

from nbta.errors import invalid
from nbta.pictures.cells import STATES, view_of
from nbta.pictures.picture import need_matplotlib
from nbta.pictures.text import clean

_COLUMNS = 16  # cells in a row
_HEIGHT = 1.0
#: Fill, edge, line and hatch of a cell in each state.
_LOOKS = {
    "unwritten": ("#ffffff", "#999999", "--", ""),
    "written": ("#cce3f0", "#0072b2", "-", ""),
    "zeros": ("#ffffff", "#d55e00", ":", ""),
    "sum": ("#f7dfcc", "#d55e00", "-", ""),
    "read": ("#ccece3", "#009e73", "-", ".."),
    "cleared": ("#eeeeee", "#999999", "-", "////"),
}


def draw(array, axes=None):
    """Draw an array and its gradient arrays; see `nbta.TensorArray.plot`."""
    error = need_matplotlib("TensorArray.plot")
    if error:
        raise error
    from matplotlib.figure import Figure

    views = list(_flat(view_of(array), 0))
    if axes is None:
        rows = sum(_rows(view) + 1.4 for view, _ in views)
        columns = max(6, min(_COLUMNS, max(len(view.slots) for view, _ in views)))
        size = (0.72 * columns + 1.2, 0.62 * rows + 0.9)
        axes = Figure(figsize=size, facecolor="white", layout="constrained").add_subplot()
    elif not hasattr(axes, "add_patch"):
        raise invalid("axes", f"plot: axes must be matplotlib axes, not {axes!r}")
    _draw(axes, views)
    return axes


def _flat(view, depth):
    yield view, depth
    for below in view.below:
        yield from _flat(below, depth + 1)


def _rows(view):
    return -(-(len(view.slots) + bool(view.left_out)) // _COLUMNS)


def _draw(axes, views):
    y = 0.0
    for view, depth in views:
        y = _array(axes, view, 0.4 * depth, y)
    axes.set(xlim=(-0.2, _width(views)), ylim=(y, -0.3))
    axes.set_axis_off()
    _legend(axes, views[0][0].states)


def _width(views):
    return max(6.0, *(0.4 * d + min(len(v.slots) + bool(v.left_out), _COLUMNS) for v, d in views))


def _array(axes, view, x, y):
    """One array from a height on; the height below it."""
    head = f"{view.title}   {' · '.join(view.facts)}"
    _text(axes, x, y + 0.15, head, 9, ha="left", fontweight="bold")
    y += 0.5
    place, before = 0, None
    for slot in view.slots:
        if before is not None and slot.number > before + 1:
            gap = f"…\n{view.left_out:,}\nmore"
            _text(axes, *_middle(place, x, y), gap, 7)
            place += 1
        _slot(axes, slot, place, x, y)
        place, before = place + 1, slot.number
    return y + _rows(view) * _HEIGHT + 0.5


def _middle(place, x, y):
    row, column = divmod(place, _COLUMNS)
    return x + column + 0.47, y + row * _HEIGHT + 0.45


def _slot(axes, slot, place, x, y):
    from matplotlib.patches import Rectangle

    across, down = _middle(place, x, y)
    fill, edge, line, hatch = _LOOKS[slot.state]
    corner = (across - 0.45, down - 0.43)
    patch = Rectangle(
        corner, 0.9, 0.86, facecolor=fill, edgecolor=edge, linestyle=line, linewidth=1.4,
        hatch=hatch, gid=f"{slot.state}-{slot.number}",
    )  # fmt: skip
    axes.add_patch(patch)
    _text(axes, across, down - 0.32, str(slot.number), 6, color="#555555")
    longest = max(map(len, slot.lines), default=1)
    size = max(3.5, min(8.0, 58 / max(longest, 1)))
    _text(axes, across, down + 0.05, "\n".join(slot.lines), size, fontfamily="monospace")


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
        handles=patches, loc="upper center", bbox_to_anchor=(0.5, 0.0), ncols=3, frameon=False,
        fontsize=8,
    )  # fmt: skip
