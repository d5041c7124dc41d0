"""Threads that take part in work, and how many are asked to; figures are in asv_bench."""

import os
import subprocess
import sys
import threading

import numba
import numpy as np
import pytest

import nbta
from nbta.execution import batch, crew


class Counter:
    """Work of some parts, of which each thread takes the next."""

    def __init__(self, parts, look=lambda thread, part: None):
        self.left, self.look, self.done, self.lock = iter(range(parts)), look, [], threading.Lock()

    def __call__(self, thread):
        while True:
            with self.lock:
                part = next(self.left, None)
            if part is None:
                return
            self.look(thread, part)
            with self.lock:
                self.done.append((thread, part))


def never():
    raise AssertionError("nothing is to be stopped")


@pytest.fixture
def fresh(monkeypatch):
    """A crew without threads."""
    monkeypatch.setattr(crew, "crew", crew.Crew())
    return crew.crew


def parts(counter):
    return sorted(part for _, part in counter.done)


def test_each_part_is_done_once(fresh):
    for threads in range(1, 6):
        counter = Counter(50)
        assert crew.do_together(counter, threads, never) >= 0
        assert parts(counter) == list(range(50))
        assert {thread for thread, _ in counter.done} <= set(range(threads))


def test_other_threads_take_part(fresh):
    both = threading.Barrier(3)
    counter = Counter(3, lambda thread, part: both.wait(60))
    crew.do_together(counter, 3, never)
    assert sorted(thread for thread, _ in counter.done) == [0, 1, 2]


def test_who_comes_late_is_not_waited_for(fresh, monkeypatch):
    asked = []
    monkeypatch.setattr(fresh, "call", lambda offer, others: asked.append((offer, others)))
    counter = Counter(4)
    crew.do_together(counter, 3, never)
    ((offer, others),) = asked
    offer.take_part(1)
    assert others == 2
    assert counter.done == [(0, part) for part in range(4)]


def test_who_has_begun_is_waited_for(fresh):
    begun, caller_is_done = threading.Event(), threading.Event()

    def work(thread):
        if thread == 0:
            begun.wait(60)
            caller_is_done.set()
        else:
            begun.set()
            caller_is_done.wait(60)
            done.append(thread)

    done = []
    crew.do_together(work, 2, never)
    assert done == [1]


@pytest.mark.parametrize("guilty", [0, 1])
def test_an_error_of_any_thread_is_raised_when_all_have_ended(fresh, guilty):
    both, stopped, ended = threading.Barrier(2), threading.Event(), []

    def work(thread):
        both.wait(60)
        if thread == guilty:
            raise KeyError(thread)
        if guilty == 0:
            stopped.wait(60)
        ended.append(thread)

    with pytest.raises(KeyError):
        crew.do_together(work, 2, stopped.set)
    assert ended == [1 - guilty]


def test_work_in_work(fresh):
    inner = []

    def look(thread, part):
        counter = Counter(5)
        crew.do_together(counter, 3, never)
        inner.append(parts(counter))

    counter = Counter(8, look)
    crew.do_together(counter, 3, never)
    assert parts(counter) == list(range(8))
    assert inner == [list(range(5))] * 8


@pytest.mark.parametrize(
    ("seconds", "threads"), [(0.0, 1), (1e-5, 1), (1.9, 1), (2.1, 2), (9.5, 9), (1e6, 10**6)]
)
def test_threads_by_seconds(seconds, threads):
    assert batch.worth_of(seconds * batch.THREAD_SHARE) == threads


@pytest.mark.skipif(numba.config.NUMBA_NUM_THREADS < 2, reason="there is one thread")
@pytest.mark.parametrize(("each", "expected"), [(1e-9, 1), (1.0, 2)])
def test_a_batch_asks_as_many_threads_as_the_last_one_was_worth(each, expected, monkeypatch):
    asked = []

    def do_together(work, threads, stop):
        asked.append(threads)
        work(0)
        return each * SIZE

    monkeypatch.setattr(batch, "do_together", do_together)
    both = nbta.value_and_grad(lambda w, x: nbta.sum(w * x), batch_axis=0, compiled=True)
    before = numba.get_num_threads()
    numba.set_num_threads(2)
    try:
        for _ in range(2):
            value, slope = both(2.0, np.ones((ITEMS, 3)))
            assert (value, slope) == (6.0 * ITEMS, 3.0 * ITEMS)
        numba.set_num_threads(1)
        both(2.0, np.ones((ITEMS, 3)))
    finally:
        numba.set_num_threads(before)
    assert asked == [2, expected, 1]


ITEMS = 64
SIZE = ITEMS * 4  # the items, and their elements


FORK = """
import os, threading, time, warnings
from nbta.execution import crew
both = lambda: [crew.do_together(lambda thread: done.add(thread) or time.sleep(0.2), 2, print)]
done = set(); both(); print(sorted(done), flush=True)
warnings.simplefilter("ignore", DeprecationWarning)  # from Python 3.12 on, of threads at a fork
child = os.fork()
if child == 0:
    done = set(); both(); print(sorted(done), flush=True)
    os._exit(0)
os.waitpid(child, 0)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forked_process_has_threads_of_its_own():
    done = subprocess.run(
        [sys.executable, "-c", FORK], capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split("\n") == ["[0, 1]", "[0, 1]", ""]
