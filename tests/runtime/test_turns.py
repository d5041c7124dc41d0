"""Processes that start together: one compiles, the others wait, and all get right answers."""

import contextlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from compilations import COUNTING, copy_kernels

import nbta
from nbta.runtime import compiled, machine_code

fcntl = pytest.importorskip("fcntl")

KERNEL = """
from numba.core import types
from nbta.runtime.compiled import cached

def tripled(x):
    return 3 * x

def load():
    return cached(tripled, types.int64(types.int64))
"""

PROGRAM = (
    COUNTING
    + """
import json
import numpy as np
import nbta
from users_kernel import load

array = nbta.TensorArray("float64", size=2).unstack(np.arange(6.0).reshape(2, 3))
total = load()(7) + array.read(1).sum()

def loss(w, x):
    return nbta.sum(nbta.scan(lambda h, row: (nbta.tanh(row @ w + h),) * 2, np.zeros(2), x)[1])

value, slope = nbta.value_and_grad(loss, compiled=True)(np.ones((3, 2)), np.ones((4, 3)))
print(json.dumps([total, float(value), slope.tolist(), counting.compiled]))
"""
)


@pytest.mark.slow
def test_processes_that_start_together_compile_once(tmp_path):
    (tmp_path / "users_kernel.py").write_text(KERNEL)
    copy_kernels(tmp_path / "graphs")
    paths = [str(Path(nbta.__file__).parents[1]), str(tmp_path), os.environ.get("PYTHONPATH", "")]
    environment = {
        **os.environ, "NBTA_CACHE_DIR": str(tmp_path / "graphs"), "OPENBLAS_NUM_THREADS": "1",
        "PYTHONPATH": os.pathsep.join(paths),
    }  # fmt: skip
    command = [sys.executable, "-W", "error", "-c", PROGRAM]
    processes = [
        subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for _ in range(8)
    ]
    outputs = [process.communicate(timeout=300) for process in processes]
    assert [err for _, err in outputs] == [""] * 8
    answers = [json.loads(out) for out, _ in outputs]
    assert {json.dumps(answer[:3]) for answer in answers} == {json.dumps(answers[0][:3])}
    assert answers[0][0] == 21 + 12
    compiled = [name for answer in answers for name in answer[3]]
    assert compiled.count("tripled") == 1
    assert compiled.count("run") == 1


def held(folder):
    """Whether somebody has the lock."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def test_a_turn_is_given_back_and_may_be_taken_again_inside(tmp_path):
    for _ in range(2):
        with contextlib.suppress(ZeroDivisionError), compiled.folder_lock(tmp_path):
            assert held(tmp_path)
            with compiled.folder_lock(tmp_path):
                assert held(tmp_path)
            assert held(tmp_path)
            raise ZeroDivisionError
        assert not held(tmp_path)


def test_who_waits_too_long_goes_on_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(compiled, "LOCK_SECONDS", 0.05)
    other = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(other, fcntl.LOCK_EX)
    start = time.monotonic()
    with compiled.folder_lock(tmp_path):
        assert time.monotonic() - start >= 0.05
    assert held(tmp_path)  # the other has it still
    os.close(other)


def test_no_turn_where_there_is_no_folder_and_no_lock(tmp_path, monkeypatch):
    entered = []
    with compiled.folder_lock(tmp_path / "none"):
        entered.append(1)
    monkeypatch.setattr(fcntl, "flock", refuse)
    with compiled.folder_lock(tmp_path):
        entered.append(2)
    monkeypatch.setattr(compiled, "fcntl", None)
    with compiled.folder_lock(tmp_path):
        entered.append(3)
    monkeypatch.setattr(machine_code, "folder", lambda: None)
    with machine_code._lock():
        entered.append(4)
    assert entered == [1, 2, 3, 4]


def refuse(*_):
    raise OSError(37, "No locks available")
