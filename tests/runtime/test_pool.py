"""The pool of dropped arrays' pages: what it gives, what it never gives, and its bounds."""

import gc
import os
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from numba import njit, prange

import nbta
from nbta.runtime import settings

resource = pytest.importorskip("resource")
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="pages are mapped under Linux")
MIB = 1 << 20


@pytest.fixture(autouse=True)
def empty_pool():
    """No guards, which cost faults, and nothing in the pool before and after."""
    guard = settings.put(settings.GUARD, 0)
    gc.collect()
    nbta.trim()
    yield
    gc.collect()
    nbta.trim()
    settings.put(settings.GUARD, guard)


def pooled():
    return settings.get(settings.POOL_BYTES)


def in_places():
    """The same, by the places of the table."""
    table = np.array(settings._block[settings.POOL_TABLE :]).reshape(-1, settings.POOL_PLACE)
    assert not (table[:, settings.POOL_STATE] == settings.POOL_BUSY).any()
    full = table[:, settings.POOL_STATE] == settings.POOL_FULL
    return table[full, settings.POOL_TOUCHED].sum()


@njit
def fill(count, value, rows):
    """Make, fill and drop an array of a size, and one that grows."""
    total = 0.0
    for k in range(rows):
        array = nbta.TensorArray(np.float64, size=count, element_shape=())
        grown = nbta.TensorArray(np.float64, dynamic_size=True, element_shape=())
        for i in range(count):
            array.write(i, value)
            grown.append(value)
        total += array.stack()[k] + grown.read(k)
    return total


@njit
def some(count, first, value):
    """Write one slot, look at all."""
    array = nbta.TensorArray(np.float64, size=count, element_shape=(), clear_after_read=False)
    array.write(first, value)
    array.read(count // 2)
    return array.stack()


@njit(nogil=True)
def churn(count, turns):
    """Many arrays, each full of its own number; how many slots were not as they should be."""
    wrong = 0
    for k in range(turns):
        array = nbta.TensorArray(np.int64, size=count, element_shape=(), clear_after_read=False)
        for i in range(1, count):
            array.write(i, k + 1)
        seen = array.stack()
        wrong += seen[0] != 0
        for i in range(1, count):
            wrong += seen[i] != k + 1
    return wrong


@njit(parallel=True)
def read_unwritten(array, count):
    """Sum of slots that iterations read, each twice; every second one is unwritten."""
    total = 0.0
    for i in prange(count):
        total += array.read(i) + array.read(i)
    return total


@pytest.mark.parametrize("count", [1 << 16, 1 << 18])
def test_a_loop_of_arrays_faults_no_pages(count):
    fill(count, 1.0, 3)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    fill(count, 1.0, 20)
    # Half a MiB of elements, and as much again that grew: 5,000 pages, were they fresh.
    assert resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before < 200


def test_trim_returns_what_was_dropped():
    array = nbta.TensorArray("float64", size=1 << 20).unstack(np.ones(1 << 20))
    nbta.trim()
    del array
    gc.collect()
    assert pooled() == in_places() == 9 * MIB
    assert nbta.trim() > 8 * MIB
    assert pooled() == in_places() == 0


def test_a_view_keeps_its_memory_out_of_the_pool():
    array = nbta.TensorArray("float64", size=1 << 18).unstack(np.full(1 << 18, 3.0))
    view = array.stack()
    del array
    gc.collect()
    other = nbta.TensorArray("float64", size=1 << 18).unstack(np.zeros(1 << 18))
    assert (view == 3.0).all()
    del view, other
    gc.collect()
    assert pooled() == in_places() >= 4 * MIB


def test_unwritten_slots_are_zeros_in_used_memory():
    count = 1 << 18
    for first in (0, 5, count - 1):
        fill(count, 7.0, 3)
        expected = np.zeros(count)
        expected[first] = 2.0
        np.testing.assert_array_equal(some(count, first, 2.0), expected)
    fill(count, 7.0, 3)
    array = nbta.TensorArray("float64", size=count, element_shape=(), clear_after_read=False)
    np.testing.assert_array_equal(array.gather([3, 1, count - 1, 3]), np.zeros(4))
    gradient = array.grad("gradients")
    gradient.accumulate(4, 1.5)
    expected = np.zeros(count)
    expected[4] = 1.5
    np.testing.assert_array_equal(gradient.stack(), expected)


def test_parallel_reads_of_unwritten_slots_are_zeros():
    count = 1 << 18
    fill(count, 7.0, 3)
    array = nbta.TensorArray("float64", size=count, element_shape=(), clear_after_read=False)
    array.scatter(np.arange(0, count, 2), np.ones(count // 2))
    assert read_unwritten(array, count) == count


@pytest.mark.parametrize("count", [1 << 18, 3 << 18, 1 << 20])
def test_growing_arrays_find_all_slots_free(count):
    fill(count, 7.0, 2)
    array = nbta.TensorArray("float64", dynamic_size=True, element_shape=())
    array.write(300_000, 1.0)
    assert (np.asarray(array) == 0.0).sum() == 300_000
    array.write(2 * count, 1.0)
    array.scatter(np.arange(300_001, 2 * count), np.ones(2 * count - 300_001))


def test_the_pool_is_bounded():
    limit = settings.put(settings.POOL_LIMIT, 20 * MIB)
    try:
        arrays = [nbta.TensorArray("int8", size=k * MIB, element_shape=(2,)) for k in range(1, 9)]
        for array in arrays:
            array.write(0, np.ones(2, np.int8))
        del array
        while arrays:
            arrays.pop()
            gc.collect()
            assert pooled() == in_places() <= 20 * MIB
        assert pooled() > 0
        settings.put(settings.POOL_LIMIT, 0)
        nbta.trim()
        fill(1 << 18, 1.0, 1)
        assert pooled() == in_places() == 0
    finally:
        settings.put(settings.POOL_LIMIT, limit)


def test_threads_share_the_pool():
    churn(10, 1)
    wrong = []
    threads = [
        threading.Thread(target=lambda n=n: wrong.append(churn((1 << 17) + n, 30)))
        for n in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == [0] * 6
    assert pooled() == in_places() > 0


def test_a_child_of_a_fork_has_a_pool_of_its_own():
    fill(1 << 18, 1.0, 2)
    held, place = pooled(), settings.POOL_TABLE + 31 * settings.POOL_PLACE
    settings._block[place] = settings.POOL_BUSY  # as if a thread were putting memory there
    child = os.fork()
    if child == 0:
        free = settings._block[place] == settings.POOL_EMPTY and pooled() == in_places() == held
        right = free and churn(1 << 18, 3) == 0 and nbta.trim() >= 0 and pooled() == 0
        os._exit(0 if right else 1)
    settings._block[place] = settings.POOL_EMPTY
    _, status = os.waitpid(child, 0)
    assert status == 0
    assert pooled() == in_places() == held
    assert churn(1 << 18, 3) == 0


def test_a_system_without_memory_gets_the_pool_first():
    fill(1 << 20, 1.0, 2)
    held = pooled()
    mapped = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    old = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (mapped + 64 * MIB, old[1]))
    try:
        array = nbta.TensorArray("int8", size=200 * MIB, element_shape=())
    finally:
        resource.setrlimit(resource.RLIMIT_AS, old)
    assert held > 0
    assert pooled() == in_places() == 0
    assert len(array) == 200 * MIB
