"""New processes: seconds from a process's start to its first value and gradient."""

import math
import tempfile
import time
from statistics import median

from . import cases
from .crew import FEW, PeerError, Process, difference

SIZE = (200, 16, 32, 32)
CASE = cases.Case("New processes", "recurrent", "start, tanh net", {"cell": "tanh", "size": SIZE},
                  1e-4, cases.UNHOISTED)  # fmt: skip
KINDS = ("no cache", "warm cache")
TITLES = {kind: f"{CASE.title}, {kind}" for kind in KINDS}


def caches(folder):
    """Where each peer keeps what it has compiled."""
    return {
        "NBTA_CACHE_DIR": f"{folder}/nbta",
        "NUMBA_CACHE_DIR": f"{folder}/numba",
        "PYTENSOR_FLAGS": f"base_compiledir={folder}/pytensor",
        "JAX_COMPILATION_CACHE_DIR": f"{folder}/jax",
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    }


def measure(peers, repeats, until=math.inf, **settings):
    """By kind, a row for each peer: with an empty cache, and with what the start before it kept.

    All first results are held against the first peer's before any figure is kept.
    """
    rows = {kind: [{"peer": peer.name, "starts": []} for peer in peers] for kind in KINDS}
    expected = []
    for turn in range(repeats):
        if turn >= FEW and time.monotonic() > until:
            break
        for k, peer in enumerate(peers):
            with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
                for kind in KINDS:
                    start = _start(peer, caches(folder), expected, settings)
                    rows[kind][k]["starts"].append(start)
    return {kind: [_row(**row) for row in found] for kind, found in rows.items()}


def _start(peer, environment, expected, settings):
    """Seconds in all, of the import, and of building and the first run; or a note."""
    began = time.perf_counter()
    with Process(peer, environment=environment, **settings) as process:
        try:
            answer = process.make(CASE)
            seconds = time.perf_counter() - began
            results = process.results()
        except PeerError as reason:
            return {"note": str(reason)}
    if not expected:
        expected.append(results)
    off = difference(results, expected[0])
    if not off <= CASE.tolerance:
        return {"note": f"results differ by {off:.1e}"}
    return {"seconds": seconds, "difference": off, **answer}


def _row(peer, starts):
    notes = [start["note"] for start in starts if "note" in start]
    if notes:
        return {"peer": peer, "note": notes[0]}
    parts = ("import_seconds", "first_seconds")
    parts = {name: median(start[name] for start in starts) for name in parts}
    samples = [start["seconds"] for start in starts]
    known = {"versions": starts[0]["versions"], "difference": max(s["difference"] for s in starts)}
    return {"peer": peer, **parts, **known, "times": 1, "samples": samples}
