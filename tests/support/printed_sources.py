"""Prints digests of the generated sources of programs, which are to be the same in each process."""

import hashlib
import json
import random
import sys
from pathlib import Path

import numpy as np

import nbta


def cheapest(e):
    """Of an image: the least sum along a way down, beside which two others may be."""
    n, m = e.shape
    c = e.copy()
    for i in range(1, n):
        for j in range(m):
            best = c[i - 1, j]
            if j > 0 and c[i - 1, j - 1] < best:
                best = c[i - 1, j - 1]
            if j < m - 1 and c[i - 1, j + 1] < best:
                best = c[i - 1, j + 1]
            c[i, j] = e[i, j] + best
    return np.min(c[n - 1])


def smoothed(v, steps):
    """Sweeps in which an item gets parts of its neighbours, in branches too."""
    v, w = v.copy(), np.zeros(len(v))
    for _ in range(steps):
        for j in range(1, len(v) - 1):
            w[j] = v[j] * np.sin(v[j + 1]) + (v[j - 1] if v[j] > 0.0 else 0.5 * v[j + 1])
        v, w = w, v
    return np.sum(v * v)


def sources(nests):
    """The digest of the source of each program's value and gradient, by name."""
    from fuzz import item_nests

    vector = np.sin(np.arange(7.0))
    programs = {
        "cheapest": (cheapest, (0,), (np.outer(vector, vector),)),
        "smoothed": (smoothed, (0,), (vector, 3)),
    }
    for seed in range(nests):
        given = item_nests.arguments()
        programs[f"nest {seed}"] = item_nests.program(seed).function(), (0, 1), given
    found = {}
    with item_nests.as_loops():
        for name, (f, argnums, given) in programs.items():
            trace, arrays = nbta.value_and_grad(f, argnums, compiled=True).bound((given, {}))
            trace.runner.prepared(arrays, True)
            (compiled,) = trace.runner.compiled
            found[name] = hashlib.sha256(compiled.generated.source.encode()).hexdigest()
    return found


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    # Objects lie elsewhere in each process, and with them the order of sets of them.
    junk = [object() for _ in range(random.Random(sys.argv[1]).randrange(10**5))]
    print(json.dumps(sources(int(sys.argv[2]))))
