"""Arrays as HTML, for notebooks: no script, and colours that suit a light and a dark page."""

from nbta.pictures.cells import MARKS, View, view_of
from nbta.pictures.text import escaped

#: Colours are tints of what is behind, and text has the page's own colour.
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
    return f"<style>{_STYLE}</style>{_view(view_of(array))}"


def _view(view: View) -> str:
    return (
        f'<div class="nbta-array">{_header(view)}{_slots(view)}'
        f"{''.join(map(_view, view.below))}</div>"
    )


def _header(view):
    counts = [f"{count:,} {state}" for state, count in view.counts.items()]
    tail = f'<div class="nbta-counts">{escaped(", ".join(counts))}</div>' if counts else ""
    facts = escaped(" · ".join(view.facts))
    title = escaped(view.title)
    return (
        f'<div><span class="nbta-title">{title}</span> '
        f'<span class="nbta-facts">{facts}</span></div>{tail}'
    )


def _slots(view):
    if not view.slots:
        return ""
    cells = []
    for before, slot in zip([None, *view.slots], view.slots, strict=False):
        if before is not None and slot.number > before.number + 1:
            cells.append(f'<div class="nbta-gap">… {view.left_out:,} more …</div>')
        cells.append(_slot(slot))
    return f'<div class="nbta-slots">{"".join(cells)}</div>'


def _slot(slot):
    lines = "".join(f"<code>{escaped(line)}</code>" for line in slot.lines)
    tooltip = "&#10;".join(map(escaped, slot.tooltip.split("\n")))
    return (
        f'<div class="nbta-slot nbta-{slot.state}" title="{tooltip}"><i>{slot.number}</i>'
        f"{lines}<small>{MARKS[slot.state]}</small></div>"
    )


def html_in_graph(title: str, facts: list[str], steps: list[tuple[str, str]]) -> str:
    """An array of a graph as HTML: it has no slots, but operations that its flow comes behind."""
    cells = [
        f'<div class="nbta-slot nbta-written"><i>{escaped(name)}</i><code>{escaped(what)}</code>'
        "</div>"
        for name, what in steps
    ]
    arrow = '<div class="nbta-gap">→</div>'
    return (
        f'<style>{_STYLE}</style><div class="nbta-array">{_header(View(title, facts, []))}'
        f'<div class="nbta-slots">{arrow.join(cells)}</div></div>'
    )
