"""Colours and lines, the same for all engines; those of Okabe and Ito, and tints of them."""

from typing import NamedTuple


class Line(NamedTuple):
    """How an arrow looks."""

    color: str
    dash: str  # "solid", "dashed", "dotted"
    width: float
    head: str  # graphviz's name


class Paint(NamedTuple):
    """How a box looks."""

    fill: str
    edge: str


INK, FAINT, WARNING = "#222222", "#6b6b6b", "#d55e00"
FORWARD = Paint("#ffffff", "#555555")
QUIET = Paint("#f1f1f1", "#8a8a8a")
CAPTURED = "#fff3c4"

LINES = {
    "data": Line("#333333", "solid", 1.3, "normal"),
    "flow": Line("#0072b2", "dashed", 1.7, "normal"),
    "handle": Line("#8a8a8a", "solid", 0.8, "odiamond"),
    "control": Line("#333333", "dotted", 1.4, "vee"),
    "next": Line("#009e73", "solid", 2.2, "normal"),
    "race": Line(WARNING, "dashed", 2.2, "none"),
}

_SOURCES = (
    Paint("#fde0c5", "#b85a00"),
    Paint("#d3ecfa", "#0072b2"),
    Paint("#f6d9ea", "#a8447a"),
    Paint("#cdeee2", "#00805d"),
    Paint("#fbf5b0", "#8c8000"),
    Paint("#dcd9f3", "#5b4fa8"),
)


def paint_of(source: str | None, sources: list[str], kind: str = "op") -> Paint:
    """The colours of a gradient computation's boxes, by its place among all sources.

    After six computations the colours come again; the legend names them all.
    """
    if source is not None:
        return _SOURCES[sources.index(source) % len(_SOURCES)]
    return QUIET if kind in ("constant", "input") else FORWARD
