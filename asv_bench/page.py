"""The tables of ``docs/performance.md``: ``python -m asv_bench.page`` writes them anew.

They stand between markers, ``<!-- NAME: begin -->`` and ``<!-- NAME: end -->``, and are made from
the files of figures; what is written by hand around them stays.
"""

import re

from . import bars, figures
from .peers import table

PAGE = figures.ROOT / "docs" / "performance.md"


def sections():
    """Of each marker, the text after it."""
    peers, reached = figures.read(figures.PEERS), figures.read(figures.BARS)
    scaled = figures.read(figures.SCALE)
    return {
        "bars": f"{figures.described(reached)}\n\n{bars.table(reached)}",
        "peers": "\n\n".join([figure(), about(peers), table.tables(peers)]),
        "scale": f"{figures.described(scaled)}\n\n{scale(scaled)}",
    }


def figure():
    """The plot, as seen from the page."""
    path = figures.PLOT.relative_to(PAGE.parent).as_posix()
    text = "Times of other libraries divided by nbta's, a row for each case of the tables below."
    return f"![{text}]({path})"


def about(rows):
    """What was measured, when, on what."""
    samples = [len(peer["samples"]) for row in rows for peer in row["peers"] if "samples" in peer]
    after = f"Samples of each: {min(samples)} to {max(samples)}."
    return f"{figures.described(rows)}\n{after}\nVersions: {table.versions(rows)}."


def scale(rows):
    """Runs at several sizes, a line each: what grows faster than its work takes longer an item."""
    lines = [
        [
            "" if place else row["title"],
            f"{run['size']:,}",
            figures.quantity(run["cpu"]),
            figures.quantity(run["cpu"] / run["size"]),
            f"{run['peak'] / 1e6:,.0f} MB",
        ]
        for row in rows
        for place, run in enumerate(row["runs"])
    ]
    return figures.table(["what", "how many", "CPU time", "of each", "peak memory"], lines)


def filled(text, texts):
    """A page with other texts between its markers."""
    for name, inside in texts.items():
        begin, end = (f"<!-- {name}: {word} -->" for word in ("begin", "end"))
        pattern = re.compile(f"(?<={begin}\n).*?(?={end})", re.DOTALL)
        if len(pattern.findall(text)) != 1:
            raise ValueError(f"{PAGE.name} needs one {begin} with one {end} after it")
        text = pattern.sub(lambda _, inside=inside: f"\n{inside}\n\n", text)
    return text


def update():
    """Write the page anew from the files of figures."""
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8"), sections()), encoding="utf-8")


if __name__ == "__main__":
    update()
