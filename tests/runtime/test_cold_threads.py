"""Threads that use nbta first, all in the same moment: nothing crashes, and values are right."""

import os
import subprocess
import sys
from pathlib import Path

import cold_threads
import pytest

import nbta

#: Starts of a process for each kind of first use; in the quick suite of a few kinds.
STARTS, QUICK = 100, 5
KINDS = [*cold_threads.KINDS, cold_threads.MIXED]


def check(kind, starts, *folder):
    command = [sys.executable, cold_threads.__file__, kind, str(starts), *folder]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("", 0), done.stderr[-2000:]


@pytest.fixture(scope="module")
def kernels(tmp_path_factory):
    """A folder of kernels, as a wheel has."""
    folder = tmp_path_factory.mktemp("kernels")
    subprocess.run([sys.executable, "-m", "nbta.kernels.ahead", str(folder)], check=True)
    return str(folder)


@pytest.mark.parametrize("kind", ["eager", cold_threads.MIXED])
def test_a_few_starts(kind):
    check(kind, QUICK)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_starts_from_source(kind):
    check(kind, STARTS)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_starts_with_kernels_of_a_wheel(kind, kernels):
    check(kind, STARTS, kernels)


IMPORTS = """
import threading
found, barrier = [], threading.Barrier(4)
def use(k):
    barrier.wait()
    import nbta
    array = nbta.TensorArray("float64", dynamic_size=True).write(0, k)
    found.append(array.read(0) == k and nbta.grad(lambda x: x * x)(k) == 2 * k)
threads = [threading.Thread(target=use, args=(k + 1.0,)) for k in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
assert found == [True] * 4, found
"""


@pytest.mark.parametrize("starts", [1, pytest.param(25, marks=pytest.mark.slow)])
def test_threads_that_import(starts):
    root = str(Path(nbta.__file__).parents[1])
    for _ in range(starts):
        environment = {**os.environ, "PYTHONPATH": root}
        done = subprocess.run(
            [sys.executable, "-c", IMPORTS], env=environment, capture_output=True, check=False
        )
        assert done.returncode == 0, done.stderr.decode()[-2000:]
