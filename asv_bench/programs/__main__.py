"""The command line: ``python -m asv_bench.programs``, from the repository's root.

Prints a table, a program a line: milliseconds of the plain function that Numba compiled and of
nbta's value and gradient, their ratio at the program's size n and at 4n, and how the ratio grows;
beside value and gradient written by hand, where there is that, and by JAX (``--jax``). All are
medians, of one process, with everything compiled. A program whose gradient calls Python is measured
at n / 8 only. What a gradient copies in loops is listed below the table.
"""

import argparse
import warnings

import nbta

from ..figures import number
from . import PROGRAMS
from .measure import BY_HAND, FUNCTION, GRADIENT, JAX, measure

HEAD = [
    "program", "n", "function ms", "gradient ms", "ratio", "ratio at 4n", "growth",
    "by hand ms", "to it", "JAX ms", "to it", "bar", "met",
]  # fmt: skip
GROWTH, HAND = 1.15, 1.5


def arguments(words=None):
    """What the user asks for."""
    parser = argparse.ArgumentParser(
        prog="asv_bench.programs",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "-k", action="append", metavar="NAME", help="only programs so named; may be given often"
    )
    parser.add_argument("--jax", action="store_true", help="measure JAX, too, in float64")
    parser.add_argument(
        "--busy", action="store_true",
        help="where other work runs beside: processor time, the lowest tenth of the samples; "
        "not with --jax, of whose threads it misses a part",
    )  # fmt: skip
    return parser.parse_args(words)


def line(program, rows):
    """A program's entries."""
    first, last = rows[0], rows[-1]
    growth = last.ratio() / first.ratio() if len(rows) > 1 else None
    ratio, hand, jax = first.ratio(), first.ratio(BY_HAND), first.ratio(JAX)
    met = [ratio <= program.reach, growth is not None and growth <= GROWTH]
    met += [hand is None or hand <= HAND, jax is None or jax <= 1.0]
    times = [first.seconds(side) for side in (FUNCTION, GRADIENT, BY_HAND, JAX)]
    times = [shown(time and time * 1e3) for time in times]
    return [
        program.name, str(first.n), times[0], times[1], shown(ratio),
        shown(last.ratio() if len(rows) > 1 else None), shown(growth),
        times[2], shown(hand), times[3], shown(jax),
        f"{program.reach:g}", "yes" if all(met) else "no",
    ]  # fmt: skip


def shown(value):
    """A figure, or nothing."""
    if value is None:
        return ""
    return f"{value:.2f}" if 0.1 <= value < 9.95 else number(value)


def main(words=None):
    """Measure, and print a line as soon as there is one."""
    asked = arguments(words)
    if asked.jax:
        import jax

        jax.config.update("jax_enable_x64", True)
    warnings.simplefilter("ignore", nbta.PerformanceWarning)
    print(f"| {' | '.join(HEAD)} |\n|{' --- |' * len(HEAD)}", flush=True)
    remarks = []
    for program in PROGRAMS.values():
        if not asked.k or any(name in program.name for name in asked.k):
            rows, notes = measure(program, asked.jax, asked.busy)
            print(f"| {' | '.join(line(program, rows))} |", flush=True)
            remarks += [f"{program.name}: {note}" for note in notes]
    print("", *remarks, sep="\n")


if __name__ == "__main__":
    main()
