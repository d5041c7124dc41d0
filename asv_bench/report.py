"""The speed table: ``python -m asv_bench.report`` from the repository's root.

Runs the benchmarks without airspeed velocity, nbta and its peer in turn in one process. Prints a
Markdown table, keeps the samples in ``docs/figures/bars.json`` and writes the table of
``docs/performance.md`` anew. A row that is measured again (``-k``) takes its old one's place.
"""

import argparse
import itertools
import sys

from . import bars, figures, page
from .benchmarks import eager, growth, parallel, startup, storage

ROWS = (
    storage.Write,
    storage.WriteChanging,
    storage.Read,
    storage.ReadCopying,
    growth.AppendScalars,
    growth.AppendVectors,
    storage.AccumulateOnce,
    storage.Accumulate,
    parallel.SecondThread,
    parallel.OrderedSums,
    eager.EagerWrite,
    eager.EagerRead,
    startup.WarmStart,
    startup.ColdStart,
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
    """One row: pairs of samples, in seconds, and what they depend on."""
    around = figures.Circumstances(threads=None)
    benchmark.setup(*params)
    samples, bar = benchmark.samples(repeats, *params), benchmark.reach_of(*params)
    return {
        "title": title,
        "count": benchmark.count(*params),
        "nbytes": benchmark.nbytes(*params),
        "bar": bar and bar._asdict(),
        "measured": around.found(),
        "samples": samples,
    }


def measured(pattern="", repeats=15):
    """The rows whose title holds a text, as they are done."""
    for title, benchmark, params in cases(pattern):
        pairs = min(repeats, benchmark.pairs)
        try:
            yield measure(title, benchmark, params, pairs)
        except NotImplementedError as reason:
            print(f"{title}: {reason}", file=sys.stderr)


def main():
    """The command line."""
    parser = argparse.ArgumentParser(prog="asv_bench.report", description=__doc__)
    parser.add_argument("-k", default="", metavar="NAME", help="only rows whose title holds this")
    parser.add_argument("--repeats", type=int, default=15, help="pairs of samples a row")
    options = parser.parse_args()
    titles = [title for title, *_ in cases()]
    for row in measured(options.k, options.repeats):
        figures.keep(figures.BARS, [row], titles)
        print(" | ".join(bars.line(row)), file=sys.stderr, flush=True)
    print(bars.table(figures.read(figures.BARS)))
    page.update()


if __name__ == "__main__":
    main()
