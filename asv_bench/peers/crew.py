"""Peers at work in turn, each in its own process."""

import json
import math
import os
import subprocess
import tempfile
import time
from pathlib import Path
from threading import Timer
from typing import NamedTuple

import numpy as np

ROOT = Path(__file__).parents[2]
#: Environment variables that say how many threads a pool has; JAX goes by the processors.
POOLS = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    "TF_NUM_INTEROP_THREADS",
    "TF_NUM_INTRAOP_THREADS",
)
#: Seconds that a sample lasts at least, where one run is shorter.
SAMPLE = 0.1
#: Seconds of a run from which on `FEW` samples are enough.
SLOW, FEW = 2.0, 3
#: Seconds between two samples, in which the last peer's idle threads stop spinning.
PAUSE = 0.05


class Peer(NamedTuple):
    """A name in the table, the module that does the work, and options that it adds."""

    name: str
    module: str
    options: dict
    python: str


class PeerError(Exception):
    """A worker that cannot do what it was asked for."""


class Process:
    """A worker's process, as its employer sees it."""

    def __init__(self, peer, threads=2, environment=None, patience=600.0, verbose=False):
        self.peer, self.patience = peer, patience
        self.process = subprocess.Popen(
            [peer.python, "-m", "asv_bench.peers.worker", peer.module, str(threads)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=None if verbose else subprocess.DEVNULL,
            text=True,
            cwd=ROOT,
            env=_environment(threads) | (environment or {}),
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()

    def ask(self, do, **given):
        """The answer to a request; killed where it takes longer than ``patience`` seconds."""
        began, timer = time.monotonic(), Timer(self.patience, self.process.kill)
        timer.start()
        try:
            self.process.stdin.write(json.dumps({"do": do, **given}) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        finally:
            timer.cancel()
        late = time.monotonic() - began >= self.patience
        ended = f"took longer than {self.patience:.0f} s" if late else "the process ended"
        answer = json.loads(line) if line else {"error": ended}
        if "error" in answer or "missing" in answer:
            raise PeerError(answer.get("missing") or answer["error"])
        return answer

    def make(self, case):
        """Have a case built and run once; seconds of the import and of that run."""
        return self.ask("make", work=case.work, options={**case.options, **self.peer.options})

    def results(self):
        """What the case gave, as arrays."""
        with tempfile.TemporaryDirectory() as folder:
            path = str(Path(folder, "results.npz"))
            self.ask("save", path=path)
            with np.load(path) as found:
                return list(found.values())


def _environment(threads):
    """As many threads in every pool; nbta found beside this package."""
    pools = {pool: str(threads) for pool in POOLS}
    kept = {name: value for name, value in os.environ.items() if name != "NBTA_DEBUG"}
    return {**kept, **pools, "PYTHONPATH": str(ROOT), "TF_CPP_MIN_LOG_LEVEL": "3"}


def difference(found, expected):
    """Largest difference, of the largest number of each result."""
    if [a.shape for a in found] != [a.shape for a in expected]:
        return math.inf
    pairs = zip(found, expected, strict=True)
    return max(float(np.max(np.abs(a - b)) / np.max(np.abs(b))) for a, b in pairs)


def measure(case, peers, repeats, until=math.inf, **settings):
    """A row for each peer: samples, or a note why there are none. Times are in seconds.

    The first peer's results are what the others' are held against. Where the clock
    (`time.monotonic`) is past ``until``, `FEW` samples are enough.
    """
    rows, ready, expected = [], [], None
    try:
        for peer in peers:
            process, row = Process(peer, **settings), {"peer": peer.name}
            rows.append(row)
            ready.append((process, row))
            try:
                row |= process.make(case)
                results = process.results()
                expected = results if expected is None else expected
                row["difference"] = difference(results, expected)
                if not row["difference"] <= case.tolerance:
                    raise PeerError(f"results differ by {row['difference']:.1e}")
            except PeerError as reason:
                row["note"] = str(reason)
                process.__exit__()
                ready.pop()
        _in_turn(ready, repeats, until)
    finally:
        for process, _ in ready:
            process.__exit__()
    return rows


def _in_turn(ready, repeats, until):
    """Samples of every peer, round robin, each round beginning with another one."""
    for turn in range(repeats):
        if turn >= FEW and time.monotonic() > until:
            break
        first = turn % max(1, len(ready))
        for process, row in ready[first:] + ready[:first]:
            if "note" not in row and (turn < FEW or max(row["samples"]) < SLOW):
                _sample(process, row)


def _sample(process, row):
    """One more sample, in seconds a run; the first one finds how many runs that takes."""
    time.sleep(PAUSE)
    try:
        if "times" not in row:
            once = process.ask("run", times=1)["seconds"]
            row |= {"times": max(1, math.ceil(SAMPLE / once)), "samples": []}
        seconds = process.ask("run", times=row["times"])["seconds"]
        row["samples"].append(seconds / row["times"])
    except PeerError as reason:
        row["note"] = str(reason)
