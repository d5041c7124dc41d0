"""Pictures of an array: its slots as cells, for HTML and for matplotlib.

Looking changes nothing: state bytes and elements are taken from memory as they are. It takes as
long as the cells that are shown, however many slots there are.
"""

import os
from dataclasses import dataclass, field

import numpy as np

from nbta import array_memory, shapes
from nbta.display.picture import (
    by_matplotlib,
    clean,
    escaped,
    format_of,
    need_matplotlib,
    shortened,
)
from nbta.errors import invalid
from nbta.runtime import python_calls
from nbta.runtime.slots import CLEARED, READ, WRITTEN, ZERO

#: States of slots, and what each means.
STATES = {
    "unwritten": "unwritten",
    "written": "written",
    "zeros": "zeros: nothing was added yet",
    "sum": "sum: added to at least once",
    "read": "read, and kept",
    "cleared": "cleared: read, and given up",
}
#: What a cell says besides its colour.
MARKS = {
    "unwritten": "·", "written": "written", "zeros": "zeros", "sum": "sum", "read": "✓ read",
    "cleared": "cleared",
}  # fmt: skip
_SHOWN, _LAST = 47, 7  # cells at most, and how many of them are of the last slots
_COUNTED = 1 << 16  # slots up to which those in each state are counted
_ITEMS = 6  # an element of more is shown by its shape


@dataclass(frozen=True)
class Slot:
    """A cell."""

    number: int
    state: str
    lines: tuple[str, ...]  # the value, or its shape where it is not small
    tooltip: str


@dataclass
class View:
    """An array, and its gradient arrays."""

    title: str
    facts: list[str]
    slots: list[Slot]
    left_out: int = 0  # slots between the first and the last that are shown
    counts: dict[str, int] = field(default_factory=dict)
    below: list["View"] = field(default_factory=list)

    @property
    def states(self) -> list[str]:
        """States of the cells here and below."""
        there = {slot.state for slot in self.slots} | {s for v in self.below for s in v.states}
        return [state for state in STATES if state in there]


def view_of(array, title: str | None = None) -> View:
    """What a picture of an array shows."""
    facts = _facts(array)
    below = [_below(gradient) for gradient in array_memory.gradients_of(array)]
    title = array.handle.name if title is None else title
    if array.closed:
        return View(title, [*facts, "closed"], [], below=below)
    size = len(array)
    states = python_calls.native(python_calls.state_bytes)(array._address)[:size]
    shown = range(size)
    numbers = [*shown[: _SHOWN - _LAST], *shown[max(_SHOWN, size) - _LAST :]]
    slots = [_slot_of(array, number, int(states[number])) for number in numbers]
    return View(title, facts, slots, size - len(numbers), _counts(array, states), below)


def _below(gradient):
    source = array_memory.source_of(gradient)
    return view_of(gradient, f"gradient array of source {source!r}")


def _facts(array):
    shape = array.element_shape
    facts = [str(array.dtype), elements_text(shape)]
    if not array.closed:
        facts.append("1 slot" if len(array) == 1 else f"{len(array):,} slots")
    if array.dynamic_size:
        facts.append("grows")
    if array.is_gradient:
        facts.append("writes add")
    facts.append("clears after a read" if array.clear_after_read else "keeps what is read")
    return facts


def elements_text(shape) -> str:
    """What is known of an array's elements."""
    if shape is None:
        return "elements of any shape"
    return f"elements {shapes.text(shape)}" if shape else "scalars"


def _counts(array, states):
    """How many slots are in each state; nothing for more slots than are worth counting."""
    if len(states) > _COUNTED:
        return {}
    bits, counts = np.unique(np.asarray(states), return_counts=True)
    found = dict.fromkeys(STATES, 0)
    for state, count in zip(bits.tolist(), counts.tolist(), strict=True):
        found[_state(state, array.is_gradient)] += count
    return {state: count for state, count in found.items() if count}


def _state(bits, gradient):
    if bits & CLEARED:
        return "cleared"
    if bits & READ:
        return "read"
    if not bits & WRITTEN:
        return "unwritten"
    if not gradient:
        return "written"
    return "zeros" if bits & ZERO else "sum"


def _slot_of(array, number, bits):
    state = _state(bits, array.is_gradient)
    if not bits & WRITTEN or bits & CLEARED:
        return Slot(number, state, (), f"slot {number}: {STATES[state]}")
    if bits & ZERO:
        return Slot(number, state, ("0",), f"slot {number}: {STATES[state]}")
    value = _element(array, number)
    lines = _lines(value)
    whole = shortened(_plain(np.array2string(value, threshold=40)), 400)
    return Slot(number, state, lines, f"slot {number}: {STATES[state]}\n{whole}")


def _element(array, number):
    """A slot's element as it lies in memory."""
    dtype = array_memory.dtype_in_memory(array.dtype, array.is_gradient)
    shape, data = array_memory.shape_and_bytes(array, number)
    return data.view(dtype).reshape(shape)


def _lines(value):
    """A small value on few lines, else its shape."""
    if value.ndim == 0:
        return (shortened(_plain(_scalar(value[()])), 14),)
    rows = [] if value.size > _ITEMS or value.ndim > 2 else np.atleast_2d(value)
    texts = tuple(" ".join(shortened(_plain(_scalar(x)), 8) for x in row) for row in rows)
    if texts and len(texts) <= 3 and all(0 < len(text) <= 22 for text in texts):
        return texts
    return (shapes.text(value.shape),)


def _scalar(value):
    kind = np.asarray(value).dtype
    if kind.kind in "fc" or kind.name == "bfloat16":
        return f"{complex(value):.4g}" if kind.kind == "c" else f"{float(value):.4g}"
    return str(value) if kind.kind in "biumM" else repr(value.item())


def _plain(text):
    return clean(text.replace("\n", " "))


# HTML, for notebooks: no script, and colours that suit a light and a dark page.

#: Colours are tints of the background, and text has the page's own colour.
_STYLE = """
.nbta-array{font:13px/1.35 system-ui,sans-serif;margin:.4em 0;color:inherit}
.nbta-array .nbta-array{margin:.5em 0 .2em .3em;padding-left:.8em;border-left:3px solid #d55e0099}
.nbta-array .nbta-title{font-weight:700}
.nbta-array .nbta-facts,.nbta-array .nbta-counts{opacity:.75}
.nbta-array .nbta-slots{display:flex;flex-wrap:wrap;gap:3px;margin:.35em 0}
.nbta-array .nbta-slot{box-sizing:border-box;min-width:3.4em;min-height:3.6em;padding:1px 5px 3px;
border:1.5px solid #80808099;border-radius:4px;text-align:center;white-space:nowrap}
.nbta-array .nbta-slot i{display:block;font:10px/1.4 system-ui,sans-serif;opacity:.7}
.nbta-array .nbta-slot code{display:block;font:12px/1.25 ui-monospace,monospace;
background:none;color:inherit;padding:0;border:0}
.nbta-array .nbta-slot small{display:block;font-size:10px;opacity:.8}
.nbta-array .nbta-unwritten{border-style:dashed;opacity:.65}
.nbta-array .nbta-written{background:#0072b233;border-color:#0072b2}
.nbta-array .nbta-zeros{border-color:#d55e00;border-style:dotted}
.nbta-array .nbta-sum{background:#d55e0033;border-color:#d55e00}
.nbta-array .nbta-read{background:#009e7333;border-color:#009e73;border-width:2.5px}
.nbta-array .nbta-cleared{background:repeating-linear-gradient(45deg,#80808044 0 4px,#0000 4px 9px)}
.nbta-array .nbta-gap{align-self:center;opacity:.75;padding:0 .6em}
"""


def html_of(array) -> str:
    """An array and its gradient arrays as HTML."""
    return f"<style>{_STYLE}</style>{_html(view_of(array))}"


def _html(view: View) -> str:
    return (
        f'<div class="nbta-array">{_html_header(view)}{_html_slots(view)}'
        f"{''.join(map(_html, view.below))}</div>"
    )


def _html_header(view):
    counts = [f"{count:,} {state}" for state, count in view.counts.items()]
    tail = f'<div class="nbta-counts">{escaped(", ".join(counts))}</div>' if counts else ""
    facts = escaped(" · ".join(view.facts))
    title = escaped(view.title)
    return (
        f'<div><span class="nbta-title">{title}</span> '
        f'<span class="nbta-facts">{facts}</span></div>{tail}'
    )


def _html_slots(view):
    if not view.slots:
        return ""
    cells = []
    for before, slot in zip([None, *view.slots], view.slots, strict=False):
        if before is not None and slot.number > before.number + 1:
            cells.append(f'<div class="nbta-gap">… {view.left_out:,} more …</div>')
        cells.append(_html_slot(slot))
    return f'<div class="nbta-slots">{"".join(cells)}</div>'


def _html_slot(slot):
    lines = "".join(f"<code>{escaped(line)}</code>" for line in slot.lines)
    tooltip = "&#10;".join(map(escaped, slot.tooltip.split("\n")))
    return (
        f'<div class="nbta-slot nbta-{slot.state}" title="{tooltip}"><i>{slot.number}</i>'
        f"{lines}<small>{MARKS[slot.state]}</small></div>"
    )


def html_in_graph(title: str, facts: list[str], steps: list[tuple[str, str]]) -> str:
    """An array of a graph as HTML: it has no slots, but operations that its flow comes after."""
    cells = [
        f'<div class="nbta-slot nbta-written"><i>{escaped(name)}</i><code>{escaped(what)}</code>'
        "</div>"
        for name, what in steps
    ]
    arrow = '<div class="nbta-gap">→</div>'
    return (
        f'<style>{_STYLE}</style><div class="nbta-array">{_html_header(View(title, facts, []))}'
        f'<div class="nbta-slots">{arrow.join(cells)}</div></div>'
    )


# Figures of matplotlib, with the cells of the HTML.

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
    file = axes if isinstance(axes, str | os.PathLike) else None
    if file is not None:
        format_of(file)  # refuses another suffix before anything is drawn
        axes = None
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
        message = f"plot: axes must be matplotlib axes, not {axes!r}; or give the path of a file"
        raise invalid("axes", message)
    axes.set(xlim=(-0.2, width - 0.2), ylim=(height - 0.2, -0.2))
    axes.set_axis_off()
    y = 0.0
    for view, depth in views:
        _draw_array(axes, view, 0.4 * depth, y)
        y += _height(view)
    _draw_legend(axes, views[0][0].states)
    if file is not None:
        by_matplotlib(axes.figure).save(file)
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


def _draw_array(axes, view, x, y):
    """One array from a height on."""
    _draw_text(axes, x, y + 0.15, _title(view), 9, ha="left", fontweight="bold")
    y += 0.5
    place, before = 0, None
    for slot in view.slots:
        if before is not None and slot.number > before + 1:
            gap = f"…\n{view.left_out:,}\nmore"
            _draw_text(axes, *_middle(place, x, y), gap, 7)
            place += 1
        _draw_slot(axes, slot, place, x, y)
        place, before = place + 1, slot.number


def _middle(place, x, y):
    row, column = divmod(place, _COLUMNS)
    return x + column + 0.47, y + row + 0.45


def _draw_slot(axes, slot, place, x, y):
    from matplotlib.patches import Rectangle

    across, down = _middle(place, x, y)
    fill, edge, line, hatch = _LOOKS[slot.state]
    corner, thick = (across - 0.45, down - 0.43), 2.6 if slot.state == "read" else 1.4
    patch = Rectangle(
        corner, 0.9, 0.86, facecolor=fill, edgecolor=edge, linestyle=line, linewidth=thick,
        hatch=hatch, gid=f"{slot.state}-{slot.number}",
    )  # fmt: skip
    axes.add_patch(patch)
    _draw_text(axes, across, down - 0.32, str(slot.number), 6, color="#555555")
    _draw_text(axes, across, down + 0.33, MARKS[slot.state], 6, color="#333333")
    longest = max(map(len, slot.lines), default=1)
    size = max(3.5, min(9.0, 66 / longest))
    _draw_text(axes, across, down, "\n".join(slot.lines), size, fontfamily="monospace")


def _draw_text(axes, x, y, text, size, ha="center", **style):
    lines = "\n".join(map(clean, text.split("\n")))
    axes.text(x, y, lines, ha=ha, va="center", fontsize=size, parse_math=False,
              **{"color": "#222222", **style})  # fmt: skip


def _draw_legend(axes, states):
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
