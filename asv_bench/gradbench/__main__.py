"""The command line: ``python -m asv_bench.gradbench``, which GradBench runs as a tool.

Reads messages of GradBench's protocol from its input and writes responses to its output until the
input ends.
"""

import argparse
import sys
import warnings

import numba

import nbta

from . import STYLES
from .protocol import converse


def main(words=None):
    """Answer messages."""
    parser = argparse.ArgumentParser(
        prog="asv_bench.gradbench",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--style", choices=STYLES, default=STYLES[0], help="how objectives are written"
    )
    parser.add_argument(
        "--multithreaded", action="store_true", help="use all processors, not one only"
    )
    asked = parser.parse_args(words)
    if not asked.multithreaded:
        numba.set_num_threads(1)
    warnings.simplefilter("ignore", nbta.PerformanceWarning)
    out = sys.stdout
    converse(sys.stdin, lambda line: print(line, file=out, flush=True), asked.style)


if __name__ == "__main__":
    main()
