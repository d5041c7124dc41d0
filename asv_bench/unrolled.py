"""The first value and gradient of programs without loops, small to large: nbta beside JAX.

``python -m asv_bench.unrolled`` starts a process a figure, with an empty folder for graphs,
and prints seconds from a call of ``value_and_grad``'s function to its results: those of the clock,
and after a stroke those of the processors, which hardly depend on what else the machine does. A
small graph is compiled before, so that helpers of the runtime are there. Both libraries' numbers
must agree.
"""

import argparse
import gc
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

#: Programs with the sizes that are measured.
CASES = {"layers": (5, 20, 80, 320), "steps": (300,), "parameters": (200,), "lstm": (6,)}


def layers(xp, loop, n):
    """``n`` layers of two functions of a matrix, as issues of deep networks have them."""
    rng = np.random.default_rng(0)

    def function(x, w, c):
        for _ in loop(n):
            x = xp.tanh(x @ w) * 0.9 + xp.sin(x) * c
        return xp.sum(x * x)

    return function, (rng.normal(size=(4, 8)), rng.normal(size=(8, 8)) * 0.3, rng.normal(size=8))


def steps(xp, loop, n):
    """``n`` steps of a plain recurrent net, written out."""
    rng = np.random.default_rng(0)

    def function(h, w):
        for _ in loop(n):
            h = xp.tanh(h @ w)
        return xp.sum(h)

    return function, (rng.normal(size=(4, 8)), rng.normal(size=(8, 8)) * 0.3)


def parameters(xp, loop, n):
    """The sum of squares of ``n`` parameters in a dict."""
    rng = np.random.default_rng(0)

    def function(tree):
        return sum(xp.sum(value * value) for value in tree.values())

    return function, ({f"p{k}": rng.normal(size=3) for k in range(n)},)


def lstm(xp, loop, n):
    """``n`` layers of an LSTM over 20 steps, by plain loops; nbta makes that over steps a loop."""
    rng = np.random.default_rng(0)
    steps, width = 20, 8

    def cell(w, x, h, c):
        z = xp.concatenate((x, h)) @ w
        i, f, o = (0.5 + 0.5 * xp.tanh(0.5 * z[k * width : (k + 1) * width]) for k in range(3))
        c = f * c + i * xp.tanh(z[3 * width :])
        return o * xp.tanh(c), c

    def function(weights, x):
        states, loss = [(xp.zeros(width), xp.zeros(width)) for _ in range(n)], 0.0
        for t in range(steps):
            row = x[t]
            for layer in loop(n):
                states[layer] = cell(weights[layer], row, *states[layer])
                row = states[layer][0]
            loss = loss + xp.sum(row * row)
        return loss

    weights = rng.normal(size=(n, 2 * width, 4 * width)) * 0.3
    return function, (weights, rng.normal(size=(steps, width)))


def by_nbta(name, n):
    """Value and slopes, and the seconds until they are there."""
    import nbta

    nbta.value_and_grad(lambda x: nbta.sum(nbta.tanh(x @ x)), compiled=True)(np.eye(3))
    function, arguments = globals()[name](nbta, lambda n: nbta.unroll(range(n)), n)
    return timed(nbta.value_and_grad(function, compiled=True), arguments)


def by_jax(name, n):
    """The same by JAX, in float64."""
    import jax

    jax.config.update("jax_enable_x64", True)
    jax.jit(lambda x: x + 1)(1.0)
    function, arguments = globals()[name](jax.numpy, range, n)
    return timed(jax.jit(jax.value_and_grad(function)), arguments)


def timed(function, arguments):
    """Seconds of a first call, and a number that stands for its results.

    Garbage of imports, which Python would look for in whatever comes next, is collected before.
    """
    gc.collect()
    begin, spent = time.perf_counter(), time.process_time()
    value, slope = function(*arguments)
    first = slope["p0"] if isinstance(slope, dict) else slope
    check = float(value) + float(np.sum(np.asarray(first)))
    spent = time.process_time() - spent
    return {"seconds": time.perf_counter() - begin, "processor": spent, "check": check}


def measured(library, name, n, python=sys.executable):
    """The same in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        settings = {**os.environ, "NBTA_CACHE_DIR": folder}
        command = [python, "-m", "asv_bench.unrolled", "--one", library, name, str(n)]
        output = subprocess.run(command, env=settings, stdout=subprocess.PIPE, check=True).stdout
    return json.loads(output)


def main(repeats=3, python=sys.executable):
    """Print the table; JAX may be another Python's."""
    print("| program | nbta s | JAX s | to it |", "| --- | --- | --- | --- |", sep="\n")
    for name, n in ((name, n) for name, sizes in CASES.items() for n in sizes):
        libraries = {"nbta": sys.executable, "jax": python}
        runs = [[measured(library, name, n, by) for library, by in libraries.items()]
                for _ in range(repeats)]  # fmt: skip
        np.testing.assert_allclose(*(run["check"] for run in runs[0]), rtol=1e-9)
        rows = [[statistics.median(run[k][kind] for run in runs) for k in (0, 1)]
                for kind in ("seconds", "processor")]  # fmt: skip
        mine, theirs, ratios = zip(*((m, t, m / t) for m, t in rows), strict=True)
        cells = (" / ".join(f"{each:.2f}" for each in pair) for pair in (mine, theirs, ratios))
        print(f"| {n} {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--one", nargs=3, metavar=("LIBRARY", "PROGRAM", "SIZE"))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--jax", default=sys.executable, help="a Python that has JAX")
    given = parser.parse_args()
    if given.one:
        library, name, n = given.one
        print(json.dumps({"nbta": by_nbta, "jax": by_jax}[library](name, int(n))))
    else:
        main(given.repeats, given.jax)
