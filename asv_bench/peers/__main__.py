"""The command line: ``python -m asv_bench.peers``, from the repository's root.

Prints a Markdown table: the median time of a run, with the least and the most of the samples.
Peers come from ``pip install jax diffrax torch pytensor tensorflow-cpu``. Where their requirements
clash, give each an interpreter of its own, which needs NumPy besides::

    python -m asv_bench.peers --python tensorflow=/path/to/its/python --json peers.json
"""

import argparse
import json
import os
import platform
import sys
from pathlib import Path

from . import crew, startup
from .cases import cases

#: Name, module, options.
PEERS = (
    ("nbta", "with_nbta", {}),
    ("jax", "with_jax", {}),
    ("jax hoisted", "with_jax", {"hoisted": True}),
    ("tensorflow", "with_tensorflow", {}),
    ("torch", "with_torch", {}),
    ("pytensor", "with_pytensor", {}),
)


def arguments():
    """What the user asks for."""
    parser = argparse.ArgumentParser(
        prog="asv_bench.peers",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("-k", default="", metavar="TEXT", help="only cases whose title holds this")
    parser.add_argument("--peers", help="only these, with commas between them")
    parser.add_argument("--repeats", type=int, default=9, help="samples of each peer")
    parser.add_argument("--starts", type=int, default=3, help="new processes of each peer; 0: none")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--patience", type=float, default=600.0, help="seconds for one request")
    parser.add_argument("--compiled", action="store_true", help="nbta with compiled=True")
    parser.add_argument("--json", type=Path, metavar="FILE", help="keep all figures there")
    parser.add_argument("--verbose", action="store_true", help="show what the peers print")
    parser.add_argument(
        "--python", action="append", default=[], metavar="PEER=PATH",
        help="the interpreter for a peer (for nbta, say); by default this one",
    )  # fmt: skip
    return parser.parse_args()


def chosen(options):
    """The peers to be measured."""
    pythons = dict(pair.split("=", 1) for pair in options.python)
    names = options.peers.split(",") if options.peers else [name for name, *_ in PEERS]
    for name, module, extra in PEERS:
        if name in names:
            if name == "nbta" and options.compiled:
                extra = {"compiled": True}
            python = pythons.get(name, pythons.get(name.split()[0], sys.executable))
            yield crew.Peer(name, module, extra, python)


def quantity(seconds):
    """A time as people read it."""
    unit, scale = ("s", 1) if seconds >= 1 else ("ms", 1e3) if seconds >= 1e-3 else ("us", 1e6)
    return f"{seconds * scale:.3g} {unit}"


def cell(row):
    """A peer's entry in the table."""
    if "seconds" not in row:
        return row["note"].strip().splitlines()[-1][:60]
    return f"{quantity(row['seconds'])} ({quantity(row['least'])} to {quantity(row['most'])})"


def line(title, cells):
    """A line of the table."""
    return f"| {' | '.join([title, *cells])} |"


def print_rows(rows, peers):
    """A line for each case."""
    for title in dict.fromkeys(row["case"] for row in rows):
        found = {row["peer"]: cell(row) for row in rows if row["case"] == title}
        print(line(title, [found.get(peer.name, "") for peer in peers]), flush=True)


def only_works(peer, case):
    """Whether a peer has its own way to do this work: hoisting is for recurrent nets."""
    return case.work in ("recurrent", "ragged") or "hoisted" not in peer.options


def main():
    """Measure, print, keep."""
    options = arguments()
    peers, rows = list(chosen(options)), []
    settings = {name: getattr(options, name) for name in ("threads", "patience", "verbose")}
    before = os.getloadavg()
    print(line("case", [peer.name for peer in peers]))
    print(line("---", ["---"] * len(peers)))
    for case in cases(options.k):
        workers = [peer for peer in peers if only_works(peer, case)]
        found = crew.measure(case, workers, options.repeats, **settings)
        print_rows(found, peers)
        rows += found
    if options.starts and options.k.lower() in startup.CASE.title:
        plain = [peer for peer in peers if "hoisted" not in peer.options]
        found = startup.measure(plain, options.starts, **settings)
        print_rows(found, peers)
        rows += found
    if options.json:
        kept = {"machine": machine(options.threads), "load": [before, os.getloadavg()]}
        options.json.write_text(json.dumps({**kept, "rows": rows}, indent=1) + "\n")


def machine(threads):
    """What the figures depend on."""
    versions = {"python": platform.python_version(), "machine": platform.machine()}
    return {**versions, "processors": os.cpu_count(), "threads": threads}


if __name__ == "__main__":
    main()
