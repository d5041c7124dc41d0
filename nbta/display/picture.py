"""What all pictures share: their class, text that no format refuses, colours and lines."""

from __future__ import annotations

import html
import importlib
import io
import os
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from nbta.errors import FailedPreconditionError, invalid

if TYPE_CHECKING:
    from collections.abc import Callable

FORMATS = ("svg", "png", "pdf")
_DPI, _PIXELS = 144, 20_000  # of a side at most: viewers give up on more


def format_of(file) -> str:
    """The format that the end of a file's name says.

    Raises
    ------
    InvalidArgumentError
        For another one than ``.svg``, ``.png`` and ``.pdf``.
    """
    ending = Path(os.fspath(file)).suffix.lower().removeprefix(".")
    if ending not in FORMATS:
        message = f"file: {os.fspath(file)!r} must end in .svg, .png or .pdf"
        raise invalid("file", message)
    return ending


def missing_packages(what: str) -> FailedPreconditionError:
    """The error where nothing is there to draw with."""
    error = FailedPreconditionError(f'{what}: pip install "nbta[plot]"')
    error.reason = "missing_extra"
    return error


def need_matplotlib(who: str) -> FailedPreconditionError | None:
    """The error that says who needs matplotlib; None where it is there."""
    return None if is_there("matplotlib") else missing_packages(f"{who} needs matplotlib")


def is_there(package: str) -> bool:
    """Whether a package that need not be installed is."""
    try:
        importlib.import_module(package)
    except ImportError:
        return False
    return True


class Picture:
    """A picture of a graph, by graphviz or matplotlib; notebooks show it.

    Attributes
    ----------
    engine : str
        ``"graphviz"`` or ``"matplotlib"``.
    svg : str
        The picture as SVG.

    Examples
    --------
    >>> with nbta.Graph().as_default() as g:
    ...     y = nbta.tanh(nbta.placeholder("float64", (), name="x"))
    >>> picture = nbta.plot(g)
    >>> "Tanh" in picture.svg
    True
    """

    def __init__(self, engine: str, render: Callable[[str], bytes]) -> None:
        self.engine, self._render = engine, render
        self._made = {}

    def _bytes(self, kind):
        if kind not in self._made:
            self._made[kind] = self._render(kind)
        return self._made[kind]

    @property
    def svg(self) -> str:
        """The picture as SVG, to be put into a page as it is."""
        text = self._bytes("svg").decode()
        return text[text.index("<svg") :]

    def save(self, file: str | os.PathLike[str]) -> None:
        """Write the picture to a file that ends in ``.svg``, ``.png`` or ``.pdf``.

        Parameters
        ----------
        file : str or path-like
            The file. Its ending says the format: ``.svg``, ``.png`` or ``.pdf``.

        Raises
        ------
        InvalidArgumentError
            For another ending.
        """
        Path(file).write_bytes(self._bytes(format_of(file)))

    def _repr_svg_(self):
        return self.svg

    def __repr__(self):
        return f"<nbta picture by {self.engine}>"


def by_graphviz(graph) -> Picture:
    """The picture of a `graphviz.Digraph`."""
    return Picture("graphviz", lambda kind: graph.pipe(format=kind))


def by_matplotlib(figure) -> Picture:
    """The picture of a `matplotlib.figure.Figure`."""
    return Picture("matplotlib", lambda kind: _saved(figure, kind))


def _saved(figure, kind):
    import matplotlib

    file = io.BytesIO()
    dpi = min(_DPI, _PIXELS / max(figure.get_size_inches()))
    known = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind)
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "nbta"}):
        figure.savefig(file, format=kind, dpi=dpi, metadata=known)
    return file.getvalue()


# Text: short, on few lines, and without characters that no picture can show.

#: Longest name in a node; the tooltip has all of it.
_NAME = 34


def clean(text: str) -> str:
    """A text without control characters and lone surrogates, which XML cannot hold.

    Examples
    --------
    >>> clean("one\\x00two")
    'one\\ufffdtwo'
    """
    return "".join(c if c.isprintable() or c == " " else "\ufffd" for c in str(text))


def escaped(text: str) -> str:
    """A text unmodified in HTML, SVG and in labels of graphviz.

    Examples
    --------
    >>> escaped('<b>"&')
    '&lt;b&gt;&quot;&amp;'
    """
    return html.escape(clean(text))


def shortened(text: str, limit: int = _NAME) -> str:
    """A text of at most so many characters; what is left out is in the middle."""
    if len(text) <= limit:
        return text
    head = (limit - 1) // 2
    return f"{text[:head]}…{text[len(text) - (limit - 1 - head) :]}"


# Colours and lines, the same for all engines; those of Okabe and Ito, and tints of them.


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
    "tape": Line("#a8447a", "solid", 1.3, "normal"),
    "control": Line("#333333", "dotted", 1.4, "vee"),
    "next": Line("#009e73", "solid", 2.2, "normal"),
    "race": Line(WARNING, "dashed", 2.2, "none"),
    "again": Line("#8a8a8a", "dotted", 1.0, "vee"),
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
