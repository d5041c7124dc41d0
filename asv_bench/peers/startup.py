"""New processes: seconds from a process's start to its first value and gradient."""

import tempfile
import time

from . import cases
from .crew import PeerError, Process, figures

SIZE = (200, 16, 32, 32)
CASE = cases.Case("recurrent", "start, tanh net", {"cell": "tanh", "size": SIZE}, 1e-4)


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


def measure(peers, repeats, **settings):
    """Rows with an empty cache and with one that the process before has filled."""
    samples = {}
    for _ in range(repeats):
        for peer in peers:
            with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
                for kind in ("no cache", "warm cache"):
                    sample = _start(peer, caches(folder), settings)
                    samples.setdefault((kind, peer.name), []).append(sample)
    return [_row(kind, name, found) for (kind, name), found in sorted(samples.items())]


def _start(peer, environment, settings):
    """Seconds in all, of the import, and of building and the first run; or a note."""
    began = time.perf_counter()
    with Process(peer, environment=environment, **settings) as process:
        try:
            answer = process.make(CASE)
        except PeerError as reason:
            return {"note": str(reason)}
        return {"seconds": time.perf_counter() - began, **answer}


def _row(kind, name, found):
    row = {"case": f"{CASE.title}, {kind}", "peer": name}
    notes = [sample["note"] for sample in found if "note" in sample]
    if notes:
        return row | {"note": notes[0]}
    row |= {"samples": [sample["seconds"] for sample in found]}
    parts = {
        name: figures([sample[name] for sample in found])["seconds"]
        for name in ("import_seconds", "first_seconds")
    }
    return row | figures(row["samples"]) | parts
