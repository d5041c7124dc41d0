"""Lanes: private arrays that threads fill, joined so that the result never depends on threads."""

import gc
import hashlib
import json
import os
import subprocess
import sys
import threading
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some
from lane_programs import (
    add_up,
    collect,
    fill,
    finish,
    growing,
    make,
    nested,
    passed_on,
    ragged_in_parallel,
    ragged_sums,
    share,
    sums,
    values_of,
)
from numba import njit, prange, typeof

import nbta

RECORD = np.dtype([("a", np.int32), ("b", np.float64)])


# What a join gives.


def test_slots_are_joined_in_the_order_of_the_lanes():
    array = growing("int64").append(-1)
    lanes = array.lanes(3)
    for k in (2, 0, 1):
        part = lanes.take(k)
        for i in lanes.range(k, 8):
            part = part.append(i)
    array.append(-2)  # before the join, so before what the lanes hold
    assert lanes.join() is array
    assert array.append(-3).stack().tolist() == [-1, -2, 0, 1, 2, 3, 4, 5, 6, 7, -3]


def test_sums_are_joined_in_the_order_of_the_lanes():
    large, one = np.float32(2.0**24), np.float32(1)
    array = sums("float32", 2, ())
    array.accumulate(0, large)
    lanes = array.lanes(3)
    lanes.take(2).accumulate(0, one).accumulate(1, large)
    lanes.take(0).accumulate(1, one).accumulate(1, one)
    lanes.take(1).accumulate(0, one)
    assert lanes.join() is array
    assert array.stack().tolist() == [large + one + one, (one + one) + large]


@pytest.mark.parametrize("lanes", [1, 2, 3, 7, 8, 1000])
@pytest.mark.parametrize("total", [0, 1, 2, 7, 8, 999, 2**61])
def test_shares_are_neighbours_of_almost_one_size(lanes, total):
    parts = growing().lanes(lanes)
    assert len(parts) == lanes
    shares = [parts.range(k, total) for k in range(lanes)]
    assert shares[0].start == 0
    assert shares[-1].stop == total
    assert all(a.stop == b.start for a, b in pairwise(shares))
    assert max(map(len, shares)) - min(map(len, shares)) <= 1


SAMPLES = {
    "bool": ("bool", np.array([True, False])),
    "uint8": ("uint8", np.array([1, 2], np.uint8)),
    "complex128": ("complex128", np.array([1 + 2j, 3])),
    "bytes": ("S5", np.array([b"ab", b"cde"])),
    "text": ("U3", np.array(["x", "yz"])),
    "dates": ("datetime64[s]", np.array([1, 2], "datetime64[s]")),
    "records": (RECORD, np.array([(1, 2.0), (3, 4.0)], RECORD)),
    "nothing": ("float64", np.ones((2, 0, 3))),
}


@pytest.mark.parametrize("label", SAMPLES)
def test_slots_of_any_dtype(label):
    dtype, value = SAMPLES[label]
    value = value.astype(dtype)
    array = growing(dtype)
    lanes = array.lanes(3)
    lanes.take(2).append(value)
    lanes.take(0).append(value[::-1]).append(value)
    lanes.join()
    np.testing.assert_array_equal(array.stack(), [value[::-1], value, value])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int8", "uint32", "complex64"])
def test_sums_of_any_dtype(dtype):
    pytest.importorskip("ml_dtypes")
    array = sums(dtype, 3, (2,))
    one = np.ones(2, array.dtype)
    array.accumulate(0, one)
    lanes = array.lanes(4)
    for k in range(4):
        lanes.take(k).accumulate(0, one).accumulate(2, one)
    assert lanes.join().stack().astype("complex64").tolist() == [[5, 5], [0, 0], [4, 4]]


def test_half_precision_rounds_once():
    array = sums("float16", 1, ())
    lanes = array.lanes(3)
    lanes.take(0).accumulate(0, np.float16(2048))
    for k in (1, 2):
        lanes.take(k).accumulate(0, np.float16(1))
    assert lanes.join().read(0) == 2050


def test_bools_add_where_they_need_no_sum():
    array = sums("bool", 3, (2,))
    lanes = array.lanes(2)
    for k in range(2):
        lanes.take(k).accumulate(2 * k, np.ones(2, bool))
    assert lanes.join().stack().tolist() == [[True, True], [False, False], [True, True]]


def test_elements_of_different_shapes():
    array = growing(infer_shape=False).append(np.ones(2))
    lanes = array.lanes(3)
    lanes.take(1).append(np.ones((2, 1))).append(3.0)
    lanes.take(0).append(np.arange(3.0))
    lanes.join().append([])
    assert values_of(array) == [[1, 1], [0, 1, 2], [[1], [1]], 3, []]


def test_sums_of_different_shapes():
    array = ragged_sums()
    lanes = array.lanes(3)
    lanes.take(2).accumulate(0, [1.0, 2.0]).accumulate(3, [7.0])
    lanes.take(0).accumulate(0, [4.0, 8.0]).accumulate(2, [1.0])
    lanes.join().accumulate(2, [1.0]).accumulate(3, [1.0])
    assert values_of(array) == [[5, 10], [0, 0, 0], [2], [8]]


def test_blocks_whose_views_are_out_stay_as_they_are():
    array = ragged_sums(clear_after_read=False)
    lanes = array.lanes(2)
    view = lanes.take(0).accumulate(0, [1.0, 2.0]).read(0)
    lanes.join().accumulate(0, [1.0, 1.0])
    assert view.tolist() == [1, 2]
    assert array.read(0).tolist() == [2, 3]


def test_a_pattern_that_a_lane_learned_does_not_hold_others():
    array = growing(infer_shape=False)
    lanes = array.lanes(2)
    narrow = lanes.take(1)
    narrow.append(np.ones(2)).close()
    again = array.lanes(2)
    narrow = again.take(0)
    narrow.gather([], element_shape=(2,))  # its elements lie in one buffer from now on
    narrow.append([1.0, 2.0])
    again.take(1).append([[3.0]])
    again.join()
    assert values_of(array) == [[1, 2], [[3]]]


def test_ragged_lanes_of_an_array_that_learned_its_pattern():
    array = growing(infer_shape=False)
    lanes = array.lanes(2)
    lanes.take(1).append([1.0, 2.0])
    array.gather([], element_shape=(2,))
    array.append([0.0, 0.0])
    lanes.join()
    assert array.stack().tolist() == [[0, 0], [1, 2]]


def test_values_that_were_read_and_kept():
    array = growing(clear_after_read=False)
    lanes = array.lanes(2)
    part = lanes.take(0).append(1.0).append(2.0)
    assert part.read(1) == 2.0
    assert part.stack().tolist() == [1, 2]
    assert lanes.join().stack().tolist() == [1, 2]
    kept = sums(size=2, shape=()).lanes(1)
    assert kept.take(0).accumulate(0, 3.0).grad("next").size() == 2


def test_lanes_of_lanes():
    array = growing("int64")
    outer = array.lanes(2)
    second = outer.take(1)
    inner = second.lanes(2)
    for k in (1, 0):
        inner.take(k).append(10 + k)
    outer.take(0).append(1)
    assert inner.join() is second
    assert outer.join().stack().tolist() == [1, 10, 11]
    gradient = sums("float64", 1, ())
    outer = gradient.lanes(2)
    inner = outer.take(1).lanes(2)
    for k in range(2):
        inner.take(k).accumulate(0, 1.0 + k)
    inner.join()
    assert outer.join().read(0) == 3


def test_several_joins_and_lanes_that_nobody_took():
    array = growing("int64")
    first, second = array.lanes(2), array.lanes(2)
    second.take(0).append(1)
    first.take(1).append(2)
    second.join()
    first.join()
    assert array.stack().tolist() == [1, 2]
    assert len(array.lanes(5).join()) == 2
    assert len(growing().lanes(3).join()) == 0
    array.grad("end of growth")
    assert len(array) == 2


def test_empty_lanes_join_an_array_that_no_longer_grows():
    array = growing("int64").append(1)
    lanes = array.lanes(2)
    array.grad("end of growth")
    assert lanes.join().stack().tolist() == [1]


def test_slots_of_lanes_and_of_the_array_are_of_one_kind():
    array = growing(element_shape=(None, 2), clear_after_read=False)
    part = array.lanes(1).take(0)
    assert part.element_shape == (None, 2)
    assert (part.dynamic_size, part.clear_after_read, part.infer_shape) == (True, False, True)
    assert part.handle.name == f"{array.handle.name}[lane 0]"
    gradient = sums(size=3)
    part = gradient.lanes(12).take(11)
    assert (len(part), part.element_shape, part.is_gradient) == (3, (2,), True)
    assert part.handle.name.endswith("@sums[lane 11]")


def test_what_lanes_say_of_themselves():
    lanes = growing().lanes(4)
    lanes.take(2)
    assert "4 lanes, 1 taken" in repr(lanes)
    assert lanes.dtype == np.float64
    lanes.join()
    assert repr(lanes).startswith("<nbta.Lanes of 'state_")
    assert repr(lanes).endswith("4 lanes, joined>")


# Against a model: appends one after another, and sums in a fixed order.

WORDS = some.lists(some.lists(some.integers(-5, 5), max_size=6), min_size=1, max_size=6)


@given(before=some.lists(some.integers(0, 9), max_size=10), words=WORDS, known=some.booleans())
def test_joined_slots_are_those_of_appends_in_order(before, words, known):
    array = growing("int64", element_shape=() if known else None)
    for value in before:
        array.append(value)
    lanes = array.lanes(len(words))
    for k in reversed(range(len(words))):
        part = lanes.take(k)
        for value in words[k]:
            part.append(value)
    lanes.join()
    expected = [*before, *(value for word in words for value in word)]
    assert [int(array.read(slot)) for slot in range(len(array))] == expected


DEPOSITS = some.lists(some.tuples(some.integers(0, 3), some.floats(-1e6, 1e6, width=32)))


@given(before=DEPOSITS, words=some.lists(DEPOSITS, min_size=1, max_size=5))
def test_joined_sums_have_the_bits_of_sums_in_order(before, words):
    array = sums("float32", 4, ())
    expected = model_of(before)
    for slot, value in before:
        array.accumulate(slot, np.float32(value))
    lanes = array.lanes(len(words))
    for k in reversed(range(len(words))):
        part = lanes.take(k)
        for slot, value in words[k]:
            part.accumulate(slot, np.float32(value))
    for word in words:
        for slot, value in model_of(word).items():
            expected[slot] = expected[slot] + value if slot in expected else value
    assert lanes.join().stack().tolist() == [expected.get(slot, 0) for slot in range(4)]


def model_of(deposits):
    """Sums in float32 of the slots that something is added to."""
    totals = {}
    for slot, value in deposits:
        value = np.float32(value)
        totals[slot] = totals[slot] + value if slot in totals else value
    return totals


# In compiled code.


@contextmanager
def threads(number):
    """Run parallel loops on so many threads, or on as many as there are."""
    old = numba.get_num_threads()
    numba.set_num_threads(min(number, numba.config.NUMBA_NUM_THREADS))
    try:
        yield
    finally:
        numba.set_num_threads(old)


@pytest.mark.slow
@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("n", [1, 3, 40])
def test_appends_of_a_parallel_loop(number, n):
    array = growing("int64", element_shape=()).append(-1)
    with threads(number):
        joined = collect(array, n, 1000)
    assert joined.handle == array.handle
    np.testing.assert_array_equal(array.stack(), [-1, *np.arange(1000) ** 2])


def reference_sums(terms, n, size):
    """Sums over the shares of lanes, added in their order."""
    totals = [None] * size
    for indices in np.array_split(np.arange(len(terms)), n):
        part = {}
        for k in indices:
            slot = k % size
            part[slot] = part[slot] + terms[k] if slot in part else terms[k]
        for slot, value in part.items():
            totals[slot] = value if totals[slot] is None else totals[slot] + value
    return np.array(totals)


@pytest.mark.slow
@pytest.mark.parametrize("n", [1, 5, 64])
def test_sums_of_a_parallel_loop_have_the_same_bits_each_time(n):
    terms = np.random.default_rng(7).standard_normal((1000, 5)).astype(np.float32)
    expected = reference_sums(terms, n, 3)
    for number in (1, 2, 2, 2):
        array = sums("float32", 3, (5,))
        with threads(number):
            add_up(array, n, terms)
        assert array.stack().tobytes() == expected.tobytes()


MANY_THREADS = """
import hashlib, json, sys
import numba
import numpy as np
import nbta
from lane_programs import add_up, collect, growing, sums

terms = np.random.default_rng(11).standard_normal((3000, 40)).astype(np.float32)
digests = set()
for number in (1, 2, 4, 16, 16):
    numba.set_num_threads(number)
    array, appended = sums("float32", 7, (40,)), growing("int64", element_shape=())
    add_up(array, 24, terms)
    collect(appended, 24, 5000)
    found = array.stack().tobytes() + appended.stack().tobytes()
    digests.add(hashlib.sha256(found).hexdigest())
print(json.dumps([numba.threading_layer(), numba.get_num_threads(), sorted(digests)]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("layer", ["omp", "workqueue"])
def test_sixteen_threads_give_the_same_bits(layer):
    if layer == "omp":
        pytest.importorskip("numba.np.ufunc.omppool")
    paths = [str(Path(nbta.__file__).parents[1]), str(Path(__file__).parents[1] / "support")]
    environment = {
        **os.environ, "NUMBA_NUM_THREADS": "16", "NUMBA_THREADING_LAYER": layer,
        "PYTHONPATH": os.pathsep.join(paths),
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", MANY_THREADS],
        env=environment, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    terms = np.random.default_rng(11).standard_normal((3000, 40)).astype(np.float32)
    expected = reference_sums(terms, 24, 7).tobytes() + (np.arange(5000) ** 2).tobytes()
    found = json.loads(done.stdout.splitlines()[-1])
    assert found == [layer, 16, [hashlib.sha256(expected).hexdigest()]]


def test_lanes_pass_between_python_and_compiled_code():
    array = growing(element_shape=())
    lanes = make(array, 3)
    assert isinstance(lanes, nbta.Lanes)
    assert array.handle.name in repr(lanes)
    part = fill(lanes, 2, 2.0)
    assert part.handle.name == f"{array.handle.name}[lane 2]"
    lanes.take(0).append(0.0)
    again, count = passed_on(lanes)
    assert count == len(again) == 3
    assert typeof(again) == typeof(lanes)
    assert share(again, 1, 10) == (4, 7)
    fill(again, 1, 1.0)
    assert finish(lanes).stack().tolist() == [0, 1, 2]
    assert part.closed


def test_a_lane_alone_keeps_the_name_of_its_array():
    def orphan():
        return fill(make(growing(element_shape=()), 3), 2, 2.0)

    part = orphan()
    gc.collect()
    name = part.handle.name
    assert name.startswith("state_")
    assert name.endswith("[lane 2]")
    with pytest.raises(nbta.InvalidArgumentError, match=r"state_\d+\[lane 2\]: slot -1"):
        part.read(-1)


@pytest.mark.slow
def test_lanes_of_lanes_in_a_parallel_loop():
    assert nested(growing("int64", element_shape=()), 50).stack().tolist() == list(range(100))


@pytest.mark.slow
def test_ragged_slots_of_a_parallel_loop():
    array = ragged_in_parallel(growing(infer_shape=False, element_shape=(None,)), 30)
    expected = [[k + 0.5] * length for k in range(30) for length in range(k % 4)]
    assert values_of(array) == expected


@njit(parallel=True, cache=True)
def records_in_parallel(array, value, n):
    lanes = array.lanes(n)
    for k in prange(n):
        lanes.take(k).append(value)
    return lanes.join()


@pytest.mark.slow
@pytest.mark.parametrize("label", ["bytes", "records", "nothing"])
def test_slots_of_any_dtype_of_a_parallel_loop(label):
    dtype, value = SAMPLES[label]
    value = value.astype(dtype)
    array = records_in_parallel(growing(dtype, element_shape=value.shape), value, 5)
    np.testing.assert_array_equal(array.stack(), [value] * 5)


# Python's threads.


def run_threads(work, number):
    """Run ``work(k)`` in threads; one that does not end fails the test instead of stopping it."""
    failed = []

    def guarded(k):
        try:
            work(k)
        except BaseException as error:
            failed.append(error)

    started = [threading.Thread(target=guarded, args=(k,), daemon=True) for k in range(number)]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join(60)
    assert not any(thread.is_alive() for thread in started)
    return failed


def test_python_threads_fill_lanes():
    array = growing("int64")
    lanes = array.lanes(8)

    def work(k):
        part = lanes.take(k)
        for i in lanes.range(k, 1000):
            part.append(i)

    assert run_threads(work, 8) == []
    assert lanes.join().stack().tolist() == list(range(1000))


@njit(nogil=True, cache=True)
def race(lanes, reached, wins, me):
    """Try to take each lane at the moment at which the other thread tries."""
    for k in range(len(lanes)):
        reached[me] = k + 1
        while reached[1 - me] <= k:
            len(lanes.range(0, 0))  # a call, after which memory is looked at again
        try:
            lanes.take(k)
            wins[me, k] = 1
        except Exception:
            wins[me, k] = 0


@pytest.mark.slow
def test_a_lane_is_given_once_whoever_asks_at_the_same_time():
    lanes = growing("int64", element_shape=()).lanes(5000)
    reached, wins = np.zeros(2, np.int64), np.zeros((2, 5000), np.int64)
    race(growing("int64", element_shape=()).lanes(1), np.ones(2, np.int64), wins, 0)
    assert run_threads(lambda me: race(lanes, reached, wins, me), 2) == []
    assert (wins.sum(axis=0) == 1).all()
