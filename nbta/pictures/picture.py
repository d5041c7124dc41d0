"""A picture that shows itself in notebooks and can be saved."""

import importlib
import io
import os
from pathlib import Path

from nbta.errors import FailedPreconditionError, invalid

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

    def __init__(self, engine: str, render):
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

    def save(self, file) -> None:
        """Write the picture to a file that ends in ``.svg``, ``.png`` or ``.pdf``.

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
