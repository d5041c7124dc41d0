"""The plot of all ratios to nbta: a row for each case, a mark for each peer, a line for the spread.

The README's chart is the same plot of eight cases and the libraries that most people know.

Colours are those of M. Okabe and K. Ito, "Color universal design", 2008, each with a mark of its
own. Text and lines are of a grey that shows on white and on black; the ground is transparent.
"""

import hashlib
import json

from ..figures import number
from .table import compared, subjects

#: Of each peer: colour, mark.
STYLES = {
    "jax": ("#0072B2", "o"),
    "jax hoisted": ("#56B4E9", "v"),
    "tensorflow": ("#E69F00", "s"),
    "torch": ("#D55E00", "D"),
    "pytensor": ("#009E73", "^"),
    "typed.List": ("#CC79A7", "P"),
    "doubling": ("#A0792C", "X"),
    "awkward": ("#8C7AE6", "*"),
    "blackjax": ("#2D3436", "h"),
}
#: Of the libraries in the README's chart: the peer whose colour and mark they have.
LIBRARIES = {
    "JAX": "jax",
    "diffrax": "jax hoisted",
    "TensorFlow": "tensorflow",
    "PyTorch": "torch",
    "numba.typed.List": "typed.List",
}
#: Titles of its cases, in the tables and in the chart; in some of them nbta is behind.
CASES = {
    "adaptive Lotka-Volterra": "adaptive ODE solver",
    "tanh net 1000x1x8x16": "small recurrent net",
    "lstm net 200x32x64x128": "LSTM, batch of 32",
    "tanh net 200x16x32x32, Hessian by vector": "Hessian-vector product",
    "ragged batch, sorted": "batch of ragged sequences",
    "append 1,000,000 scalars": "append 10⁶ numbers",
    "dense net 512x1024x1024x512": "dense net, no loop",
    "start, tanh net, no cache": "first use, no cache",
}
GREY, FONT = "#7A7A7A", "DejaVu Sans"
TIMES = "\N{MULTIPLICATION SIGN}"
#: Ratio from which on the slowest peer's is told in digits.
TOLD = 10
#: Inches: the figure's width; a row's height, and of it what peers of one case share; a heading's.
WIDTH, ROW, SHARE, HEADING, MARGINS = 10.0, 0.3, 0.62, 0.42, 1.15


def digest(rows):
    """Which samples a plot shows; it stands in the plot's description."""
    return hashlib.sha256(json.dumps(rows, sort_keys=True).encode()).hexdigest()


def draw(rows, path):
    """Write the plot, SVG or PNG by the path's name; the same samples give the same file."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    settings = {"svg.hashsalt": "nbta", "font.family": FONT, "font.size": 9, "text.color": GREY}
    with mpl.rc_context(settings):
        places = list(_places(rows))
        height = places[-1][0] + ROW
        figure = Figure(figsize=(WIDTH, height + MARGINS))
        bottom, top = 0.5 / figure.get_figheight(), 1 - 0.65 / figure.get_figheight()
        axes = figure.add_axes((0.3, bottom, 0.68, top - bottom))
        _frame(axes, height, rows)
        for y, row in places:
            _heading(axes, y, row) if isinstance(row, str) else _case(axes, y, row)
        _legend(figure, rows)
        known = {"Description": digest(rows)}
        known |= {"Date": None} if path.suffix == ".svg" else {}
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, transparent=True, metadata=known, dpi=110)


def chart(rows):
    """The rows of the README's chart, under the names that it has for cases and libraries."""
    found = {row["title"]: row for row in rows}
    for title, told in CASES.items():
        base, *others = found[title]["peers"]
        solver = found[title]["subject"] == "Adaptive solvers"
        peers = [base]
        for peer in others:
            name = _library(peer["peer"], solver)
            if name:
                peers.append(peer | {"peer": name})
        yield {"title": told, "subject": "", "peers": peers}


def _library(peer, solver):
    """What the chart calls a peer; None for one that is not in it."""
    names = {"jax": "diffrax" if solver else "JAX", "tensorflow": "TensorFlow", "torch": "PyTorch",
             "typed.List": "numba.typed.List"}  # fmt: skip
    return names.get(peer)


def _places(rows):
    """Inches from the top, with a subject's name or a case."""
    y = 0.0
    for subject, found in subjects(rows).items():
        y += HEADING
        if subject:
            yield y, subject
        for row in found:
            y += ROW
            yield y, row


def _frame(axes, height, rows):
    """A logarithmic axis, above and below; left of 1 the ground is tinted."""
    from matplotlib.ticker import FuncFormatter

    least, most = _range(rows)
    axes.set(xscale="log", xlim=(least, most), ylim=(height, 0.1), yticks=[])
    axes.axvspan(least, 1, color=GREY, alpha=0.16, linewidth=0)
    axes.axvline(1, color=GREY, linewidth=1.2)
    axes.grid(axis="x", color=GREY, alpha=0.25, linewidth=0.6)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}{TIMES}"))
    axes.tick_params(axis="x", which="both", colors=GREY, top=True, labeltop=True)
    axes.tick_params(axis="x", which="minor", length=0, labelsize=0)
    axes.spines[:].set_visible(False)
    for x, side, text in ((0.93, "right", "← other faster"), (1.08, "left", "nbta faster →")):
        axes.text(x, 0.26, text, ha=side, va="center", fontsize=10, fontweight="bold")


def _range(rows):
    """Limits with room at both sides."""
    ends = [end for row in rows for found in _figures(row).values() for end in found[1:]]
    return min([*ends, 0.2]) / 1.4, max([*ends, 10]) * 2.4


def _figures(row):
    """By peer median, least and most, for those that gave any."""
    return {name: found for name, found in compared(row)[1].items() if not isinstance(found, str)}


def _heading(axes, y, subject):
    axes.text(-0.43, y, subject, transform=axes.get_yaxis_transform(), va="center",
              fontweight="bold", fontsize=10)  # fmt: skip


def _case(axes, y, row):
    """Marks of one case, one below the other so that none hides another, and its title."""
    axes.text(-0.015, y, row["title"], transform=axes.get_yaxis_transform(), ha="right",
              va="center")  # fmt: skip
    axes.axhline(y, color=GREY, alpha=0.18, linewidth=0.6)
    found = _figures(row)
    slowest = max((middle for middle, *_ in found.values()), default=None)
    for k, (name, (middle, least, most)) in enumerate(found.items()):
        colour, mark = _style(name)
        at = y + ROW * SHARE * ((k + 0.5) / len(found) - 0.5)
        axes.plot([least, most], [at, at], color=colour, linewidth=1.6, alpha=0.75, zorder=2)
        axes.plot(middle, at, mark, color=colour, markersize=6 if mark != "*" else 8, zorder=3)
        if middle == slowest and middle >= TOLD:
            told = f"{number(middle)}{TIMES}"
            axes.annotate(told, (most, at), xytext=(5, 0), textcoords="offset points", va="center",
                          fontsize=7.5)  # fmt: skip


def _style(name):
    return STYLES[LIBRARIES.get(name, name)]


def _legend(figure, rows):
    """All peers that there are, in the order of their colours."""
    from matplotlib.lines import Line2D

    there = {name for row in rows for name in _figures(row)}
    handles = [
        Line2D([], [], color=colour, marker=mark, markersize=6, linewidth=1.6, label=name)
        for name in [*STYLES, *LIBRARIES]
        if name in there
        for colour, mark in [_style(name)]
    ]
    figure.legend(handles=handles, loc="upper center", ncols=len(handles), frameon=False,
                  labelcolor=GREY, handlelength=1.6, columnspacing=1.4,
                  bbox_to_anchor=(0.5, 1.0))  # fmt: skip
