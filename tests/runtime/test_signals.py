"""Ctrl-C at bad moments: in callbacks, which then never run, and while kernels compile.

ctypes prints what was raised, and gives compiled code any number for a result. The run must end.
"""

import os
import signal
import subprocess
import sys

import numba
import numpy as np
import pytest

import nbta
from nbta.compiler.executable import Workspace
from nbta.execution import batch
from nbta.runtime import machine_code

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


def never_runs(*_):
    raise KeyboardInterrupt


def interrupted(monkeypatch, name, f, small, large):
    """Call a compiled function whose callback of a name does not run; and afterwards again."""
    expected = f(small)
    with monkeypatch.context() as patched:
        patched.setattr(Workspace, name, never_runs)
        for compiled in f._runner().compiled:
            compiled.executable.free.clear()  # others have the callback that does run
        with pytest.raises(KeyboardInterrupt):
            f(large)
        for compiled in f._runner().compiled:
            compiled.executable.free.clear()
    np.testing.assert_array_equal(f(small), expected)


def test_a_buffer_that_did_not_grow_is_not_used(monkeypatch):
    f = nbta.function(lambda x: nbta.sum(nbta.sin(x @ x) @ x, 0), compiled=True)
    interrupted(monkeypatch, "_grow", f, np.eye(3), np.eye(300))


def test_an_array_that_did_not_grow_is_not_written_to(monkeypatch):
    def f(x):
        ta = nbta.TensorArray("float64", dynamic_size=True, element_shape=(None,))
        n = nbta.cast(x[0], "int32")
        _, ta = nbta.while_loop(
            lambda i, ta: i < n, lambda i, ta: (i + 1, ta.write(i, x * 2.0)), (0, ta)
        )
        return nbta.sum(ta.stack(), 0)

    f = nbta.function(f, compiled=True)
    interrupted(monkeypatch, "_grow", f, np.full(3, 4.0), np.full(3000, 40.0))


def test_a_call_of_python_that_did_not_run_gives_no_result(monkeypatch):
    @nbta.custom_gradient(backward=lambda dy, x, y: dy)
    def same(x):
        return x * 1.0

    f = nbta.function(lambda x: same(x) * 2.0, compiled=True)
    interrupted(monkeypatch, "_python", f, np.ones(3), np.ones(5))


@pytest.mark.parametrize("threads", [1, 2])
def test_no_item_of_a_batch_is_lost(monkeypatch, threads):
    before = numba.get_num_threads()
    numba.set_num_threads(min(threads, numba.config.NUMBA_NUM_THREADS))
    both = nbta.value_and_grad(
        lambda w, x: (w * nbta.sum(x), x[: nbta.cast(x[0], "int32")]),
        has_aux=True,
        batch_axis=0,
        compiled=True,
    )
    items = [np.full(8, float(1 + k % 3)) for k in range(20)]  # results are of several shapes
    with monkeypatch.context() as patched:
        made = batch._AFTER
        patched.setattr(batch, "_AFTER", lambda after: made(never_runs))
        with pytest.raises(KeyboardInterrupt):
            both(1.0, items)
    assert both(1.0, items)[1] == sum(x.sum() for x in items)
    numba.set_num_threads(before)


# The first use, which compiles what comes with the package.


@pytest.fixture(autouse=True)
def ctrl_c():
    """Python's handler, which a process that began in the background has not."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def press(times, done):
    """Ctrl-C, some times, in what must not be half done."""
    with machine_code.uninterrupted():
        for _ in range(times):
            signal.raise_signal(signal.SIGINT)
        done.append(times)


def test_ctrl_c_waits_for_what_must_not_be_half_done():
    done = []
    with pytest.raises(KeyboardInterrupt):
        press(1, done)
    with pytest.raises(KeyboardInterrupt):
        press(2, done)  # which does not wait
    press(0, done)
    assert done == [1, 0]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_error_in_what_must_not_be_half_done_comes_out():
    with pytest.raises(ZeroDivisionError), machine_code.uninterrupted():
        1 / 0  # noqa: B018
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


PROGRAM = """
import os, signal, sys, threading
import numpy as np
import nbta

signal.signal(signal.SIGINT, signal.default_int_handler)

def use():
    ta = nbta.TensorArray("float64", 3, element_shape=(2,)).unstack(np.ones((3, 2)))
    return ta.stack().sum()

threading.Timer(float(sys.argv[1]), os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    use()
    threading.Event().wait(60)
except KeyboardInterrupt:
    pass
print(use(), use())
"""


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [0.1, 1.0, 3.0])
def test_an_interrupted_first_use_can_be_made_again(tmp_path, seconds):
    """Numba said that a tuple of codes has no such attribute."""
    environment = os.environ | {"NBTA_CACHE_DIR": str(tmp_path), "NUMBA_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-c", PROGRAM, str(seconds)]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert run.stdout.split() == ["6.0", "6.0"], run.stderr
