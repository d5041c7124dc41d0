"""Forks while other threads use an array: the child goes on, whatever these were doing."""

import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from llvmlite.binding import ffi
from numba import njit, prange
from numba.core.compiler_lock import global_compiler_lock
from together import LIMIT, watchdog

import nbta
from nbta.runtime import python_calls, settings
from nbta.runtime.slots import PENDING, WRITTEN
from nbta.runtime.store import FIELD

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here"),
    pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning"),
]
#: Slots of an array that a thread fills; children of each way.
SLOTS, FORKS = 2000, 60
LARGE = settings.get(settings.LARGE) // 8


@pytest.fixture(scope="module", autouse=True)
def compiled_before():
    """What children call where others use their array; on a busy machine it compiles for long."""
    ta = growing(LARGE).append(np.ones(LARGE))
    ta.grad("s").accumulate(0, np.ones(LARGE)).read(0)
    assert intact(ta)


def child_of(act, *args):
    """A forked process that does something and goes; its number."""
    child = os.fork()
    if child == 0:
        try:
            os._exit(0 if act(*args) else 1)
        except BaseException:
            os._exit(2)
    return child


def status_of(child):
    """A child's exit code; one that hangs is ended, and its code is that of the signal."""
    until = time.monotonic() + LIMIT / 4
    while time.monotonic() < until:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.002)
    os.kill(child, 9)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


# What other threads have locked.


@pytest.mark.slow
@pytest.mark.parametrize("lock", [global_compiler_lock, ffi.lib._lock], ids=["Numba", "LLVM"])
def test_a_child_can_compile_though_another_thread_did(lock):
    """A child that had something to load waited for ever for whoever compiled at the fork."""
    has_begun = threading.Event()

    def compile_something():
        with lock:
            has_begun.set()
            time.sleep(0.3)

    thread = threading.Thread(target=compile_something)
    with watchdog():
        thread.start()
        has_begun.wait()
        assert status_of(child_of(lambda: lock._lock.acquire(timeout=5))) == 0
        thread.join()
        assert lock._lock.acquire(timeout=5)  # the parent gives it back, too
        lock._lock.release()


FIRST_USE = """
import os, threading, time, warnings
import numpy as np
import nbta
warnings.simplefilter("ignore", DeprecationWarning)
ta = nbta.TensorArray("float64", 0, True, element_shape=(100_000,), clear_after_read=False)
value, done = np.ones(100_000), threading.Event()
def fill():
    while not done.is_set():
        ta.append(value)
        time.sleep(0.01)
thread = threading.Thread(target=fill)
thread.start()
children = []
for _ in range(15):
    child = os.fork()
    if child == 0:
        before = len(ta)
        ta.append(value)
        os._exit(0 if len(ta) == before + 1 else 1)
    children.append(child)
    time.sleep(0.01)
print([os.waitpid(child, 0)[1] for child in children])
done.set()
thread.join()
"""


@pytest.mark.slow
def test_forks_while_a_thread_uses_operations_for_the_first_time():
    found = subprocess.run(
        [sys.executable, "-c", FIRST_USE], capture_output=True, text=True, timeout=LIMIT, check=True
    )
    assert found.stdout.split("\n")[0] == str([0] * 15)


# Slots that iterations had claimed.


@njit(cache=True)
def read_compiled(ta, index):
    return ta.read(index)


@njit(cache=True)
def write_compiled(ta, index):
    ta.write(index, 2.0)


@njit(cache=True)
def add_compiled(ta, index):
    ta.accumulate(index, 2.0)


def use_forward(ta):
    """Read each written slot and write the others, in compiled code and not."""
    written = [int(state) & WRITTEN for state in ta._states()]
    for slot, has_value in enumerate(written):
        if has_value:
            read_compiled(ta, slot)
            ta.read(slot)
        else:
            write_compiled(ta, slot)
    return intact(ta)


def use_gradient(ta):
    for slot in range(len(ta)):
        add_compiled(ta, slot)
        ta.accumulate(slot, 1.0)
        ta.read(slot)
    return intact(ta)


def append_and_read(ta):
    before = len(ta)
    ta.append(np.full(ta.element_shape, 2.0))
    return len(ta) == before + 1 and (ta.read(before) == 2.0).all() and intact(ta)


def intact(ta):
    """Whether nobody wrote beside an array's buffers, and its fast paths are open again."""
    guards = python_calls.native(python_calls.guards_intact)(ta._address)
    return guards and ta._fields[FIELD.users] == 0


def forward(**options):
    return nbta.TensorArray("float64", SLOTS, element_shape=(), clear_after_read=False, **options)


def sums():
    return forward().grad("s", clear_after_read=False)


@pytest.mark.parametrize(("make", "use"), [(forward, use_forward), (sums, use_gradient)])
def test_a_slot_that_an_iteration_had_claimed(make, use):
    """As a fork finds an array whose loop's iterations were in the middle of reads and writes."""
    ta = make()
    if ta.is_gradient:
        ta.accumulate(0, 1.0)  # elements have memory from the first sum on
    else:
        ta.scatter([0, 1], [1.0, 2.0])
    other = make()
    use(other)  # writes, and then reads, are compiled before the fork
    if not other.is_gradient:
        use(other)
    enter = [FIELD.users, FIELD.parallel, FIELD.claims]
    for field in enter:
        ta._fields[field] = 1
    ta._fields[FIELD.epoch] = settings.get(settings.EPOCH)
    for field in (FIELD.fast_write, FIELD.fast_read, FIELD.fast_add):
        ta._fields[field] = 0
    for field in (FIELD.claim_write, FIELD.claim_read, FIELD.claim_add):
        ta._fields[field] = SLOTS
    states = python_calls.native(python_calls.state_bytes)(ta._address)
    states[1:5] |= PENDING
    with watchdog():
        assert status_of(child_of(use, ta)) == 0


# Many forks.


@njit(nogil=True, cache=True)
def append_without_lock(ta, value, count):
    for _ in range(count):
        ta.append(value)


@njit(parallel=True, cache=True)
def write_in_parallel(ta, count):
    for slot in prange(count):
        ta.write(slot, 1.0)


@njit(parallel=True, cache=True)
def read_in_parallel(ta, count):
    total = 0.0
    for slot in prange(count):
        total += ta.read(slot)
    return total


@njit(parallel=True, cache=True)
def add_in_parallel(ta, count):
    for slot in prange(count):
        ta.accumulate(slot, 1.0)


def growing(width):
    return nbta.TensorArray(
        "float64", dynamic_size=True, element_shape=(width,), clear_after_read=False
    )


#: What a thread makes, what it does with it again and again, and what children do.
BUSY = {
    "calls that let go of the lock": (
        lambda: growing(LARGE),
        lambda ta: [ta.append(np.ones(LARGE)) for _ in range(50)],
        append_and_read,
    ),
    "nogil functions": (
        lambda: growing(4),
        lambda ta: append_without_lock(ta, np.ones(4), SLOTS),
        append_and_read,
    ),
    "parallel writes": (forward, lambda ta: write_in_parallel(ta, SLOTS), use_forward),
    "parallel reads": (
        lambda: forward().unstack(np.ones(SLOTS)),
        lambda ta: read_in_parallel(ta, SLOTS),
        use_forward,
    ),
    "parallel sums": (sums, lambda ta: add_in_parallel(ta, SLOTS), use_gradient),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", BUSY)
def test_hundreds_of_children(name):
    make, work, use = BUSY[name]
    first = make()
    work(first)  # compiled before the forks
    use(first)
    if make is forward:
        other = make()
        use(other)  # writes, and then reads
        use(other)
    used, done = [make()], threading.Event()

    def keep_busy():
        while not done.is_set():
            used.append(make())
            work(used[-1])
            del used[:-2]

    thread = threading.Thread(target=keep_busy)
    with watchdog():
        thread.start()
        try:
            statuses = [status_of(child_of(use, used[-1])) for _ in range(FORKS)]
        finally:
            done.set()
            thread.join(LIMIT)
    assert statuses == [0] * FORKS
    assert settings.get(settings.LOCKS) == settings.get(settings.FORKS) == 0
