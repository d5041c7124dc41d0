"""One peer in a process of its own: ``python -m asv_bench.peers.worker MODULE THREADS``.

It reads requests from its standard input and answers each, one JSON object a line:

``{"do": "make", "work": NAME, "options": {...}}`` imports, builds and runs once, and answers
``{"import_seconds": ..., "first_seconds": ..., "versions": {...}}``;
``{"do": "save", "path": FILE}`` keeps the results of that run there (NumPy, .npz);
``{"do": "run", "times": N}`` runs so often and answers ``{"seconds": ...}``, of all runs.

``{"error": TEXT}`` says what went wrong, ``{"missing": TEXT}`` what is not installed or not done.
"""

import importlib
import json
import os
import platform
import sys
import time
import traceback

#: What figures depend on, where a worker has it in use.
LIBRARIES = (
    "nbta", "numpy", "numba", "jax", "diffrax", "blackjax", "tensorflow", "torch", "pytensor",
    "awkward",
)  # fmt: skip


class Worker:
    """What answers; each method is a request."""

    def __init__(self, module):
        self.module = module

    def make(self, work, options):
        """Import the peer, build the work, and run it once: that compiles."""
        began = time.perf_counter()
        module = importlib.import_module(f"asv_bench.peers.{self.module}")
        if not hasattr(module, work):
            return {"missing": f"{self.module}.py has no {work}"}
        imported = time.perf_counter()
        self.job = getattr(module, work)(**options)
        self.results = self.job()
        ended = time.perf_counter()
        seconds = {"import_seconds": imported - began, "first_seconds": ended - imported}
        return {**seconds, "versions": versions()}

    def save(self, path):
        """Keep the results in the order in which they came."""
        import numpy as np

        np.savez(path, *map(np.asarray, self.results))
        return {}

    def run(self, times):
        """Seconds of so many runs."""
        began = time.perf_counter()
        for _ in range(times):
            self.results = self.job()
        return {"seconds": time.perf_counter() - began}

    def answer(self, do, **given):
        """The answer to a request, or why there is none."""
        try:
            return getattr(self, do)(**given)
        except ModuleNotFoundError as error:
            return {"missing": str(error)}
        except Exception:
            return {"error": traceback.format_exc(limit=-4)}


def versions():
    """Of Python and of the libraries that this process has imported."""
    found = {name: sys.modules[name].__version__ for name in LIBRARIES if name in sys.modules}
    return {"python": platform.python_version(), **found}


def keep_to(processors):
    """Use as many processors as threads, for pools that go by their number."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:processors])


def main():
    """Answer until there are no more requests; what libraries print goes to standard error."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    keep_to(int(sys.argv[2]))
    worker = Worker(sys.argv[1])
    for line in sys.stdin:
        answers.write(json.dumps(worker.answer(**json.loads(line))) + "\n")


if __name__ == "__main__":
    main()
