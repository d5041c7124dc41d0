"""The speed table: ``python -m asv_bench.report`` from the repository's root.

Runs the benchmarks without airspeed velocity, nbta and its peer in turn in one process, prints a
Markdown table and writes ``asv_bench/results.json``.
"""

import argparse
import itertools
import json
import platform
import time
from pathlib import Path
from statistics import median

import numba
import numpy as np

import nbta

from .benchmarks import control, eager, growth, parallel, startup, storage

RESULTS = Path(__file__).with_name("results.json")
ROWS = (
    storage.Write,
    storage.WriteChanging,
    storage.Read,
    storage.ReadCopying,
    growth.AppendScalars,
    growth.AppendVectors,
    storage.Accumulate,
    parallel.SecondThread,
    parallel.OrderedSums,
    eager.EagerWrite,
    eager.EagerRead,
    startup.WarmStart,
    startup.ColdStart,
)
HEAD = (
    "| row | nbta | peer | ratio (median) | spread | reach | met |\n"
    "| --- | --- | --- | --- | --- | --- | --- |"
)


def cases(pattern=""):
    """Every row with every choice of its parameters, as (title, benchmark, parameters)."""
    for row in ROWS:
        names, groups = getattr(row, "param_names", ()), getattr(row, "params", ())
        for params in itertools.product(*groups):
            named = zip(names, params, strict=True)
            title = ", ".join([row.label, *(f"{name} {value}" for name, value in named)])
            if pattern.lower() in title.lower():
                yield title, row(), params


def measure(title, benchmark, params, repeats):
    """One row's figures: seconds of both sides, and nbta's over the peer's, pair by pair."""
    benchmark.setup(*params)
    pairs = benchmark.samples(repeats, *params)
    ratios = [mine / peer for mine, peer in pairs]
    seconds = median(mine for mine, _ in pairs)
    count, nbytes = benchmark.count(*params), benchmark.nbytes(*params)
    reach = benchmark.reach_of(*params)
    result = {
        "row": title,
        "count": count,
        "nbytes": nbytes,
        "nbta_seconds": seconds,
        "peer_seconds": median(peer for _, peer in pairs),
        "ratio": median(ratios),
        "ratio_least": min(ratios),
        "ratio_most": max(ratios),
        "samples": pairs,
    }
    if reach is not None:
        figures = {"ratio": result["ratio"], "ns": seconds / count * 1e9, "s": seconds}
        result["reach"] = f"{reach.limit:g} {reach.unit}"
        result["met"] = figures[reach.unit] <= reach.limit
    return result


def quantity(seconds, result):
    """A time as people read it: a bandwidth, ns an item, or ms in all."""
    if result["nbytes"]:
        return f"{result['nbytes'] / seconds / 1e9:.2f} GB/s"
    if result["count"] == 1:
        return f"{seconds * 1e3:.0f} ms"
    return f"{seconds / result['count'] * 1e9:.2f} ns"


def line(result):
    """A row of the table."""
    mine, peer = (quantity(result[side], result) for side in ("nbta_seconds", "peer_seconds"))
    spread = f"{result['ratio_least']:.2f} to {result['ratio_most']:.2f}"
    met = {True: "yes", False: "no"}.get(result.get("met"), "")
    ratio, reach = f"{result['ratio']:.2f}", result.get("reach", "")
    return f"| {' | '.join([result['row'], mine, peer, ratio, spread, reach, met])} |"


def noise(repeats=15):
    """Seconds that the control took, least and most: the machine's own unrest."""
    job, seconds = control.Control(), []
    job.setup()
    for _ in range(repeats):
        start = time.perf_counter()
        job.time_sort()
        seconds.append(time.perf_counter() - start)
    return min(seconds), max(seconds)


def machine():
    """What the figures depend on."""
    versions = {"nbta": nbta.__version__, "numba": numba.__version__, "numpy": np.__version__}
    return {"python": platform.python_version(), "machine": platform.machine(), **versions}


def run(pattern="", repeats=15):
    """Measure the rows whose title holds a text; print each as it is done."""
    before, results = noise(), []
    print(HEAD)
    for title, benchmark, params in cases(pattern):
        pairs = min(repeats, benchmark.pairs) if benchmark.pairs < 15 else repeats
        try:
            results.append(measure(title, benchmark, params, pairs))
        except NotImplementedError as reason:
            print(f"| {title} | | | | | {reason} | |")
            continue
        print(line(results[-1]), flush=True)
    after = noise()
    print(
        f"\nControl (a NumPy sort) before and after, least to most: "
        f"{before[0] * 1e3:.2f} to {before[1] * 1e3:.2f} ms, "
        f"{after[0] * 1e3:.2f} to {after[1] * 1e3:.2f} ms"
    )
    return {"machine": machine(), "control": [before, after], "rows": results}


def main():
    """The command line."""
    parser = argparse.ArgumentParser(prog="asv_bench.report", description=__doc__)
    parser.add_argument("-k", default="", metavar="NAME", help="only rows whose title holds this")
    parser.add_argument("--repeats", type=int, default=15, help="pairs of samples a row")
    options = parser.parse_args()
    RESULTS.write_text(json.dumps(run(options.k, options.repeats), indent=1) + "\n")


if __name__ == "__main__":
    main()
