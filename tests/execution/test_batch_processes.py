"""Batches in processes of their own: numbers of threads, forks, signals; beside Numba's layers."""

import os
import signal
import subprocess
import sys
import time

import pytest

PROGRAM = """
import hashlib
import sys
import numba
import numpy as np
import nbta

rng = np.random.default_rng(0)
W = rng.normal(size=(4, 4)).astype(np.float32) * 0.5
XS = [rng.normal(size=(n, 4)).astype(np.float32) for n in range(1, 90)]

def loss(w, x):
    step = lambda h, row: (nbta.tanh(row + h @ w), None)
    return nbta.sum(nbta.scan(step, np.zeros(4, np.float32), x)[0])

def mapped(w, x):
    return nbta.sum(nbta.map_fn(lambda row: nbta.tanh(row @ w), x, parallel_iterations=16))

both = nbta.value_and_grad(loss, batch_axis=0, compiled=True)
rows = nbta.value_and_grad(mapped, (0, 1), compiled=True)

def digest():
    value, slope = both(W, XS)
    other, slopes = rows(W, XS[-1])
    parts = [value, slope, other, *slopes]
    return hashlib.sha256(b"".join(np.asarray(part).tobytes() for part in parts)).hexdigest()
"""


def start(program, **environment):
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM + program],
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def answer(process):
    try:
        out, err = process.communicate(timeout=120)
    finally:
        process.kill()
    assert (process.returncode, err) == (0, "")
    return out.split()


def settings(layer, threads):
    return {"NUMBA_THREADING_LAYER": layer, "NUMBA_NUM_THREADS": str(threads)}


WAYS = [("omp", 1), ("omp", 2), ("omp", 16), ("workqueue", 4), ("workqueue", 16)]


@pytest.fixture(scope="module")
def alone():
    """What one thread computes."""
    return answer(start("print(digest())", **settings("workqueue", 1)))


@pytest.mark.slow
@pytest.mark.parametrize(("layer", "threads"), WAYS)
def test_layers_and_numbers_of_threads_change_no_bit(layer, threads, alone):
    program = "print(digest(), digest())\nassert numba.threading_layer() == sys.argv[1], 'layer'"
    if threads == 1:
        program = "print(digest(), digest())"
    process = start(program.replace("sys.argv[1]", repr(layer)), **settings(layer, threads))
    assert set(answer(process)) == set(alone)


FORK = """
import os
import warnings
before = digest()
warnings.simplefilter("ignore", DeprecationWarning)  # from Python 3.12 on, of threads at a fork
child = os.fork()
if child == 0:
    code = 1
    try:
        code = 0 if digest() == before else 2
    finally:
        os._exit(code)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), digest() == before)
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.parametrize("layer", ["omp", "workqueue"])
def test_a_forked_process_computes_the_same(layer):
    assert answer(start(FORK, **settings(layer, 2))) == ["0", "True"]


# A shell lets what runs in its background ignore the signal.
SIGNALS = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
before = digest()
LONG = [np.tile(x, (200, 1)) for x in XS] * 20
print("begin", flush=True)
try:
    while True:
        both(W, LONG)
except KeyboardInterrupt:
    print("stopped", flush=True)
print(digest() == before)
"""


@pytest.mark.slow_but_every(3)
@pytest.mark.skipif(os.name != "posix", reason="no such signals")
@pytest.mark.parametrize(("layer", "threads"), [("omp", 1), ("omp", 2), ("workqueue", 2)])
def test_a_signal_ends_a_batch(layer, threads):
    process = start(SIGNALS, **settings(layer, threads))
    assert process.stdout.readline() == "begin\n"
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    begun = time.monotonic()
    assert answer(process) == ["stopped", "True"]
    assert time.monotonic() - begun < 60
