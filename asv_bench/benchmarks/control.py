"""Fixed jobs without nbta: what changes here is the machine. Read these first.

A change elsewhere that is no larger than these jobs' changes between the same two commits says
nothing; CONTRIBUTING.md tells how to judge.
"""

import subprocess
import sys
import time
from statistics import median

import numpy as np
from numba import njit

from . import common

ITERATIONS = 10_000


@njit(cache=True)
def geometric(path, rate):
    """What `loops.writes` does, on a NumPy array."""
    x, total = 1.0, 0.0
    for i in range(len(path)):
        path[i] = x
        x *= rate
    for x in path:
        total += x
    return total


class Control:
    """The processor, memory, new processes, and compiled code."""

    number, repeat, warmup_time = 1, 15, 0

    def setup(self):
        """The same numbers each time."""
        self.values = np.random.default_rng(1).random(300_000)
        self.path = np.empty(ITERATIONS)
        geometric(self.path, 0.9999)

    def time_sort(self):
        """One sort of a copy."""
        np.sort(self.values)

    def time_fresh_memory(self):
        """64 MB that the system has to find first."""
        np.full(8 << 20, 1.0)

    def time_process(self):
        """A new Python process with NumPy."""
        subprocess.run([sys.executable, "-c", "import numpy"], check=True)

    def track_compiled_iteration(self):
        """A plain loop of Numba's that writes a number per iteration."""
        return common.median_seconds(lambda: geometric(self.path, 0.9999)) / ITERATIONS * 1e9

    track_compiled_iteration.unit = "ns"

    def track_spread(self):
        """The slowest tenth of 200 sorts over the median one: 1.0 on a machine that is alone."""
        seconds = sorted(timed(self.time_sort) for _ in range(200))
        return seconds[180] / median(seconds)

    track_spread.unit = "ratio"


def timed(run):
    """Seconds of a call."""
    start = time.perf_counter()
    run()
    return time.perf_counter() - start
