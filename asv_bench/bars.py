"""The rows of ``python -m asv_bench.report`` as a Markdown table, from their samples."""

from .figures import number, ratios, spread
from .figures import table as markdown

HEAD = ["what", "nbta", "compared with", "ratio", "spread", "target", "met"]


def figures_of(row):
    """Median seconds of nbta and of the peer; their ratios' median, least and most, by pairs."""
    mine, other = zip(*row["samples"], strict=True)
    return spread(mine)[0], spread(other)[0], spread(ratios(mine, other))


def met(row):
    """Whether a row comes as far as its bar; None where it has none."""
    if row["bar"] is None:
        return None
    seconds, _, (ratio, *_) = figures_of(row)
    figure = {"ratio": ratio, "ns": seconds / row["count"] * 1e9, "s": seconds}
    return figure[row["bar"]["unit"]] <= row["bar"]["limit"]


def quantity(seconds, row):
    """A time as people read it: a bandwidth, ns an item, or s in all."""
    if row["nbytes"]:
        return f"{number(row['nbytes'] / seconds / 1e9)} GB/s"
    if row["count"] == 1:
        return f"{number(seconds)} s"
    return f"{number(seconds / row['count'] * 1e9)} ns"


def line(row):
    """A row's entries."""
    mine, other, (ratio, least, most) = figures_of(row)
    bar = f"{row['bar']['limit']:g} {row['bar']['unit']}" if row["bar"] else ""
    reached = {True: "yes", False: "no", None: ""}[met(row)]
    between = f"{number(least)} to {number(most)}"
    sides = quantity(mine, row), quantity(other, row)
    return [row["title"], *sides, number(ratio), between, bar, reached]


def table(rows):
    """All rows."""
    return markdown(HEAD, [line(row) for row in rows])
