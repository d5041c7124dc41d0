"""The command line: ``python -m asv_bench.peers``, from the repository's root.

Measures every case on nbta and on its peers, in turn, after their results were found equal. Prints
Markdown tables of ratios, keeps all samples in ``docs/figures/peers.json``, draws
``docs/figures/peers.svg`` and the README's ``chart.svg``, and writes the tables of
``docs/performance.md`` anew. Peers come from ``pip install -e ".[peers]"``. Where their
requirements clash, give some an interpreter of its own, which needs NumPy besides::

    python -m asv_bench.peers --python tensorflow=/path/to/its/python

A case that is measured again (``-k``) takes its old row's place; the other rows stay.
"""

import argparse
import math
import sys
import time
from pathlib import Path

from .. import figures, page
from . import crew, plot, startup, table
from .cases import cases

#: Name, module, options. All are held against the first, results and times.
PEERS = (
    ("nbta", "with_nbta", {}),
    ("jax", "with_jax", {}),
    ("jax hoisted", "with_jax", {"hoisted": True}),
    ("tensorflow", "with_tensorflow", {}),
    ("torch", "with_torch", {}),
    ("pytensor", "with_pytensor", {}),
    ("blackjax", "with_blackjax", {}),
    ("typed.List", "with_numba", {"way": "list"}),
    ("doubling", "with_numba", {"way": "doubling"}),
    ("awkward", "with_awkward", {}),
)
#: Samples at most, and new processes; seconds for one request.
REPEATS, STARTS, PATIENCE = 9, 3, 120.0


def arguments(words=None):
    """What the user asks for."""
    parser = argparse.ArgumentParser(
        prog="asv_bench.peers",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "-k", default="", metavar="TEXT", help="only cases with this in subject or title"
    )
    parser.add_argument("--peers", help="only these beside nbta, with commas between them")
    parser.add_argument("--repeats", type=int, default=REPEATS, help="samples of each peer")
    parser.add_argument("--starts", type=int, default=STARTS, help="new processes of each peer")
    parser.add_argument(
        "--minutes", type=float, default=math.inf,
        help=f"share this time among cases, with {crew.FEW} samples of each at least",
    )  # fmt: skip
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--patience", type=float, default=PATIENCE, help="seconds for one request")
    parser.add_argument(
        "--json", type=Path, metavar="FILE", default=figures.PEERS,
        help="keep samples there; plot and page are made for the usual file only",
    )  # fmt: skip
    parser.add_argument(
        "--no-measure", action="store_true", help="tables, plot and page from samples kept before"
    )
    parser.add_argument("--verbose", action="store_true", help="show what the peers print")
    parser.add_argument(
        "--python", action="append", default=[], metavar="PEER=PATH",
        help="the interpreter for a peer (for nbta, say); by default this one",
    )  # fmt: skip
    return parser.parse_args(words)


def crew_of(options):
    """The peers that are to work, by name; nbta is one of them, as the others are held to it."""
    pythons = dict(pair.split("=", 1) for pair in options.python)
    names = {"nbta", *options.peers.split(",")} if options.peers else {name for name, *_ in PEERS}
    unknown = names - {name for name, *_ in PEERS}
    if unknown:
        raise SystemExit(f"no such peer: {', '.join(sorted(unknown))}")
    for name, module, extra in PEERS:
        if name in names:
            python = pythons.get(name, pythons.get(name.split()[0], sys.executable))
            yield crew.Peer(name, module, extra, python)


def measured(options):
    """Rows of all chosen cases, as they are done; new processes first, which take longest."""
    peers, end = list(crew_of(options)), time.monotonic() + 60 * options.minutes
    settings = {name: getattr(options, name) for name in ("threads", "patience", "verbose")}
    chosen = cases(options.k)

    def workers(case):
        return [peer for peer in peers if peer.name in ("nbta", *case.peers)]

    if options.starts and startup.CASE.named(options.k):
        around = figures.Circumstances(options.threads)
        found = startup.measure(workers(startup.CASE), options.starts, until=end, **settings)
        for kind, rows in found.items():
            yield _row(startup.TITLES[kind], startup.CASE, around, rows)
    for k, case in enumerate(chosen):
        share = (end - time.monotonic()) / (len(chosen) - k)
        around = figures.Circumstances(options.threads)
        until = time.monotonic() + share
        rows = crew.measure(case, workers(case), options.repeats, until, **settings)
        yield _row(case.title, case, around, rows)


def _row(title, case, around, rows):
    return {"title": title, "subject": case.subject, "measured": around.found(), "peers": rows}


def main(words=None):
    """Measure, print, keep, draw."""
    options = arguments(words)
    titles = [*(case.title for case in cases()), *startup.TITLES.values()]
    for row in () if options.no_measure else measured(options):
        figures.keep(options.json, [row], titles)
        print(f"{row['title']}: {table.told(row)}", file=sys.stderr, flush=True)
    rows = figures.read(options.json)
    if not rows:
        raise SystemExit(f"no samples in {options.json}")
    print(table.tables(rows))
    if options.json == figures.PEERS:
        plot.draw(rows, figures.PLOT)
        plot.draw(list(plot.chart(rows)), figures.CHART)
        page.update()


if __name__ == "__main__":
    main()
