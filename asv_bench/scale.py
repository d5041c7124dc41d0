"""Runs at the far end of what fits a machine: ``python -m asv_bench.scale``, one process a run.

Each job runs at three sizes, ten times as large each, checks its result, and says how long it took
and how large the process became: what grows faster than its work shows as a rise of the time of an
item. Keeps the figures in ``docs/figures/scale.json`` and writes the table of
``docs/performance.md`` anew. All of it takes half an hour and 12 GB.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from typing import NamedTuple

import numba
import numpy as np

import nbta

from . import figures, page


def _appended(dtype):
    """Append so many items in one `@njit` loop."""
    kind = np.dtype(dtype).type

    @numba.njit
    def append(ta, count):
        for i in range(count):
            ta.append(kind(i))

    def job(n):
        def fill(count):
            ta = nbta.TensorArray(dtype, dynamic_size=True, clear_after_read=False)
            append(ta, count)
            return ta

        fill(10)
        yield
        ta = fill(n)
        yield
        assert len(ta) == n
        assert ta[n - 1] == np.array(n - 1).astype(dtype)

    return job


def logistic(n):
    """Value and gradient of a recurrence of so many iterations, states chosen while it runs."""

    def loss(rate, count):
        def body(i, x):
            return i + 1, rate * x * (1.0 - x)

        return nbta.while_loop(lambda i, _: i < count, body, (0, 0.3), checkpoint="online")[1]

    found = nbta.value_and_grad(loss, compiled=True)
    found(3.2, 1000)
    yield
    value, slope = found(3.2, n)
    yield
    above = found(3.2 + 1e-6, n)[0]
    assert abs((above - value) / 1e-6 - slope) < 1e-4


def ragged(n):
    """The gradient of a recurrence over so many sequences of 0 to 39 numbers."""
    rng = np.random.default_rng(0)
    lengths = rng.integers(0, 40, n)
    sequences = np.split(rng.standard_normal(lengths.sum()), np.cumsum(lengths)[:-1])

    def loss(weight, sequence):
        state = 0.0
        for item in sequence:
            state = np.tanh(weight * state + item)
        return state

    found = nbta.value_and_grad(loss, compiled=True, batch_axis=(None, 0))
    found(0.5, sequences[:100])
    yield
    value, slope = found(0.5, sequences)
    yield
    above = found(0.5 + 1e-6, sequences)[0]
    assert abs((above - value) / 1e-6 - slope) < 1e-4 * n


def _operations(compiled):
    """Trace, differentiate and run a graph of so many operations, none of them in a loop."""

    def job(n):
        def loss(x, count):
            for _ in range(count // 4):
                x = nbta.sin(x * 1.01) + 0.1 * x
            return x

        options = {"compiled": compiled, "convert": False, "static_argnums": 1}
        nbta.value_and_grad(loss, **options)(0.5, 8)  # Numba compiles what all programs use
        found = nbta.value_and_grad(loss, **options)
        yield
        value, _ = found(0.5, n)
        yield
        x = 0.5
        for _ in range(n // 4):
            x = np.sin(x * 1.01) + 0.1 * x
        assert abs(value - x) < 1e-12

    return job


class Job(NamedTuple):
    """What runs at which sizes; ``run`` yields before what counts, and after it."""

    title: str
    run: object
    sizes: tuple


JOBS = (
    Job("float64 appended in an `@njit` loop", _appended("float64"), (10**7, 10**8, 10**9)),
    Job("uint8 appended in an `@njit` loop", _appended("uint8"), (2**27, 2**29, 2**31 + 16)),
    Job('iterations with `checkpoint="online"`', logistic, (10**6, 10**7, 10**8)),
    Job("ragged sequences with `batch_axis`", ragged, (10**4, 10**5, 10**6)),
    Job("operations, one by one", _operations(False), (10**3, 10**4, 10**5)),
    Job("operations, compiled", _operations(True), (10**3, 10**4, 10**5)),
)


def measure(job, size):
    """Seconds, CPU seconds and largest memory in bytes of one run, in this process."""
    import resource  # systems other than Linux count differently, or not at all

    steps = job.run(size)
    next(steps)
    start = time.perf_counter(), time.process_time()
    next(steps)
    seconds, cpu = time.perf_counter() - start[0], time.process_time() - start[1]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    for _ in steps:
        pass
    return {"size": size, "seconds": seconds, "cpu": cpu, "peak": peak}


def alone(place, size):
    """`measure` in a process of its own, which finds no compiled graphs."""
    command = [sys.executable, "-m", __spec__.name, "--one", str(place), str(size)]
    with tempfile.TemporaryDirectory() as folder:
        env = {**os.environ, "NBTA_CACHE_DIR": folder}
        ended = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=env)
    return json.loads(ended.stdout.splitlines()[-1])


def main(arguments=None):
    """Measure the jobs whose titles hold a text, and write their figures."""
    parser = argparse.ArgumentParser(prog="python -m asv_bench.scale", description=__doc__)
    parser.add_argument("-k", default="", help="only jobs whose titles hold this text")
    parser.add_argument("--one", nargs=2, metavar=("JOB", "SIZE"), help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.one:
        place, size = map(int, options.one)
        print(json.dumps(measure(JOBS[place], size)))
        return
    for place, job in enumerate(JOBS):
        if options.k not in job.title:
            continue
        around, runs = figures.Circumstances(numba.get_num_threads()), []
        for size in job.sizes:
            runs.append(alone(place, size))
            print(job.title, runs[-1], flush=True)
        row = {"title": job.title, "runs": runs, "measured": around.found()}
        figures.keep(figures.SCALE, [row], [job.title for job in JOBS])
    page.update()


if __name__ == "__main__":
    main()
