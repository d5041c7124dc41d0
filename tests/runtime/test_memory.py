"""Where memory goes: nothing leaks, a failed allocation changes nothing, views stay valid."""

import gc
from contextlib import contextmanager
from itertools import count, pairwise
from pathlib import Path

import numpy as np
import pytest
from memory_in_use import in_use, live_bytes
from numba.core.runtime import _nrt_python

import nbta
from nbta.runtime import python_calls, settings
from nbta.runtime.store import FIELD

pytestmark = pytest.mark.usefixtures("no_leak")
CYCLES = 1000
STATM = Path("/proc/self/statm")
PAGE = 4096


@contextmanager
def changed(field, value):
    """Another value of a setting for a while."""
    old = settings.put(field, value)
    try:
        yield
    finally:
        settings.put(field, old)


@pytest.fixture
def no_leak():
    """Memory in use is after the test what it was before."""
    _nrt_python.memsys_enable_stats()
    nbta.TensorArray("float64", 1, clear_after_read=True).write(0, 1.0).grad("warm").write(
        0, 1.0
    ).stack()
    before = in_use()
    yield
    assert in_use() == before


def intact(array):
    """Whether nobody wrote beside an array's buffers."""
    return python_calls.native(python_calls.guards_intact)(array._address)


def address(value):
    return value.__array_interface__["data"][0]


# Nothing leaks.


def uniform(k):
    array = nbta.TensorArray("float64", 4, clear_after_read=True).unstack(
        np.full((4, 3), k, np.float64)
    )
    return [array.read(0), array.gather([2, 1]), array.read(3)]


def ragged(k):
    array = nbta.TensorArray("int32", 3, infer_shape=False, clear_after_read=k % 2 == 0)
    array.write(0, np.full((k % 5,), k, np.int32)).write(2, np.full((2, 2), k, np.int32))
    array.write(1, np.int32(k))
    return [array.read(2), array.read(0)]


def growing(k):
    array = nbta.TensorArray("float32", dynamic_size=True, clear_after_read=False)
    first = array.append(np.full(3, k, np.float32)).read(0)
    for _ in range(20):
        array.append(first)
    return [first, array.stack()]


def growing_ragged(k):
    array = nbta.TensorArray("float32", 0, True, clear_after_read=k % 2, infer_shape=False)
    for rows in range(12):
        array.append(np.full((rows, 2), k, np.float32))
    return [array.read(11)] if k % 2 else [array.read(4), array.concat().value]


def gradients(k):
    array = nbta.TensorArray("float16", 3, infer_shape=k % 2 == 0, clear_after_read=True)
    array.unstack(np.full((3, 2), k % 9, np.float16))
    gradient = array.grad("gradients")
    array.grad("other").accumulate(1, np.ones(2, np.float16))
    array.close()
    second = gradient.write(0, np.ones(2, np.float16)).grad("gradients")
    return [gradient.gather([0, 2]), second.stack()]


def failing(k):
    array = nbta.TensorArray("float64", 2, infer_shape=False, clear_after_read=True)
    array.write(0, np.full(3, k, np.float64))
    broken = [
        lambda: array.write(0, np.ones(3)),
        lambda: array.scatter([1, 0], np.ones((2, 2))),
        lambda: array.split(np.ones(4), [2, 2]),
        lambda: array.stack(),
        lambda: array.gather([0, 0]),
    ]
    for operation in broken:
        with pytest.raises(nbta.InvalidArgumentError):
            operation()
    return [array.read(0)]


def closing(k):
    array = nbta.TensorArray("complex64", 2, clear_after_read=True).unstack(
        np.full((2, 4), k, np.complex64)
    )
    value = array.read(1)
    array.close()
    array.close()
    return [value]


WORKLOADS = [uniform, ragged, growing, growing_ragged, gradients, failing, closing]


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda workload: workload.__name__)
def test_cycles_leave_nothing_behind(workload):
    kept = [(value, value.copy()) for k in range(CYCLES // 10) for value in workload(k)]
    for k in range(CYCLES):
        workload(k)
    for value, copy in kept:
        np.testing.assert_array_equal(value, copy)


def test_live_bytes_count_what_an_array_holds():
    before = live_bytes()
    array = nbta.TensorArray("float64", 100, element_shape=(10,), clear_after_read=True)
    held = live_bytes() - before
    guards = 4 * settings.get(settings.GUARD)
    assert 100 * 81 <= held - guards <= 100 * 81 + 32
    array.close()
    assert live_bytes() == before


# A failed allocation changes nothing.


def filled(infer_shape=True, size=3, **options):
    array = nbta.TensorArray("float64", size, infer_shape=infer_shape, **options)
    return array.unstack(np.arange(2.0 * size).reshape(size, 2))


def unordered():
    """Elements that are not packed, as they were not written in the order of their slots."""
    array = nbta.TensorArray("float64", 3, infer_shape=False, clear_after_read=True)
    return array.write(2, ROWS).write(0, ROWS).write(1, ROWS)


def ragged_gradient():
    array = nbta.TensorArray("float64", 3, infer_shape=False, clear_after_read=True)
    array.write(0, np.ones(2)).write(1, np.ones((1, 2)))
    return array.grad("gradients")


def half_gradient():
    array = nbta.TensorArray("float16", 2, clear_after_read=True).unstack(
        np.ones((2, 3), np.float16)
    )
    return array.grad("gradients").write(0, np.ones(3, np.float16))


def tight_gradient():
    """A gradient array whose size is all the room it has."""
    return filled().grad("gradients")


ROWS = np.arange(6.0).reshape(3, 2)
WIDE_ROWS = np.tile(ROWS, 9)  # a store has no room for them itself
SITES = {
    "create": (
        lambda: None,
        lambda _: nbta.TensorArray("float64", 9, element_shape=(4,), clear_after_read=True).size(),
    ),
    "first write": (
        lambda: nbta.TensorArray("float64", 3, clear_after_read=True),
        lambda a: a.write(1, ROWS),
    ),
    "first ragged write": (
        lambda: nbta.TensorArray("float64", 3, infer_shape=False, clear_after_read=True),
        lambda a: a.write(1, ROWS),
    ),
    "growth": (lambda: filled(dynamic_size=True), lambda a: a.write(9, ROWS[0])),
    "first growth": (
        lambda: nbta.TensorArray("float64", dynamic_size=True, clear_after_read=True),
        lambda a: a.append(WIDE_ROWS),
    ),
    "ragged growth": (lambda: filled(False, dynamic_size=True), lambda a: a.write(9, ROWS)),
    "scatter": (
        lambda: nbta.TensorArray("float64", 3, clear_after_read=True),
        lambda a: a.scatter([0, 2, 1], WIDE_ROWS),
    ),
    "ragged scatter": (
        lambda: nbta.TensorArray("float64", 1, True, infer_shape=False, clear_after_read=True),
        lambda a: a.scatter([0, 4, 2], ROWS),
    ),
    "split": (
        lambda: nbta.TensorArray("float64", 0, True, clear_after_read=True),
        lambda a: a.split(np.arange(80.0), [40, 40]),
    ),
    "ragged split": (
        lambda: nbta.TensorArray("float64", 2, infer_shape=False, clear_after_read=True),
        lambda a: a.split(ROWS, [1, 2]),
    ),
    "ragged read": (lambda: filled(False), lambda a: a.read(1)),
    "ragged stack": (unordered, lambda a: a.stack()),
    "ragged concat": (unordered, lambda a: a.concat().value),
    "gather": (filled, lambda a: a.gather([2, 0])),
    "asked shape": (
        lambda: nbta.TensorArray("float64", 2, clear_after_read=True),
        lambda a: a.gather([1, 0], element_shape=(2,)),
    ),
    "lookup": (lambda: filled(dynamic_size=True), lambda a: a.grad("gradients").size()),
    "second lookup": (
        lambda: filled(False).grad("one").grad("two"),
        lambda a: a.grad("gradients").stack(),
    ),
    "ragged lookup": (lambda: filled(False, dynamic_size=True), lambda a: a.grad("one").size()),
    "first accumulation": (
        lambda: filled(size=99).grad("gradients"),
        lambda a: a.accumulate(1, ROWS[1]),
    ),
    "ragged accumulation": (ragged_gradient, lambda a: a.accumulate(1, ROWS[:1])),
    "virtual zeros": (ragged_gradient, lambda a: a.read(1)),
    "scatter into gradients": (
        lambda: filled(False).grad("gradients"),
        lambda a: a.scatter([2, 0, 2], ROWS),
    ),
    "past the end": (tight_gradient, lambda a: a.read(5)),
    "gather past the end": (tight_gradient, lambda a: a.gather([5, 0])),
    "half read": (half_gradient, lambda a: a.read(0)),
    "half stack": (half_gradient, lambda a: a.stack()),
}


def attempt(operation, array):
    """The result of an operation, or the reason why there was no memory for it."""
    try:
        return operation(array), None
    except nbta.ResourceExhaustedError as error:
        return None, error.reason


def snapshot(array):
    """All that an operation could change and a caller could see."""
    if array is None:
        return None
    return repr(array), array._states().tolist(), array.element_shape, array.dynamic_size


def values_of(result):
    """A result in a form that compares."""
    if isinstance(result, nbta.TensorArray):
        return [result.read(i).tolist() for i in np.flatnonzero(result._states() == 1)]
    return result.tolist()


@pytest.mark.parametrize("site", SITES)
def test_an_operation_without_memory_changes_nothing(site):
    make, operation = SITES[site]
    expected = values_of(operation(make()))
    failures = 0
    for allowed in count():
        array = make()
        before = snapshot(array)
        with changed(settings.ALLOCATIONS_LEFT, allowed):
            result, reason = attempt(operation, array)
            enough = settings.get(settings.ALLOCATIONS_LEFT) > 0
        if reason:
            assert reason == "too_large"
            assert snapshot(array) == before
            failures += 1
            result = operation(array)
        assert array is None or intact(array)
        assert values_of(result) == expected
        if enough:
            break
    assert failures > 0 or site == "ragged read"  # it can do without the memory it asks for


# Views stay valid, and large buffers grow where they are.


def test_a_mapped_buffer_grows_in_place_while_views_are_out():
    with changed(settings.MAP_THRESHOLD, PAGE):
        array = nbta.TensorArray("int64", dynamic_size=True, clear_after_read=False)
        views = []
        for k in range(6000):
            array.append(np.full(16, k, np.int64))
            views.append(array.read(k))
        moves = sum(address(b) - address(a) != 128 for a, b in pairwise(views))
        assert 1 <= moves <= 8  # six doublings below a page, then 32-fold room
        for k, view in enumerate(views):
            assert (view == k).all()
        assert intact(array)
        np.testing.assert_array_equal(array.stack()[:, 0], np.arange(6000))


def test_views_outlive_growth_close_and_the_array():
    array = nbta.TensorArray("float64", dynamic_size=True, clear_after_read=True)
    early = array.append(np.arange(3.0)).read(0)
    for _ in range(100):
        array.append(np.ones(3))
    late = array.read(1)
    assert not np.shares_memory(early, late)
    array.close()
    del array
    assert early.tolist() == [0, 1, 2]
    assert late.tolist() == [1, 1, 1]


@pytest.mark.parametrize("mapped", [False, True])
def test_ragged_views_outlive_the_slots_that_were_cleared(mapped):
    threshold = 1 if mapped else settings.get(settings.MAP_THRESHOLD)
    with changed(settings.MAP_THRESHOLD, threshold):
        array = nbta.TensorArray(
            "int16", dynamic_size=True, infer_shape=False, clear_after_read=True
        )
        for k in range(300):
            array.append(np.full((k % 7, 2), k, np.int16))
        views = [array.read(k) for k in range(0, 300, 3)]
        for k in range(300, 900):
            array.append(np.full((k % 7, 2), k, np.int16))
        assert intact(array)
        array.close()
    for view, k in zip(views, range(0, 300, 3), strict=True):
        np.testing.assert_array_equal(view, np.full((k % 7, 2), k, np.int16))


def resident():
    """Bytes of this process that are in physical memory, without pages of files.

    The system takes back those of libraries as it likes, and reads them again.
    """
    _, everything, of_files, *_ = map(int, STATM.read_text().split())
    return (everything - of_files) * PAGE


@pytest.mark.skipif(not STATM.exists(), reason="resident memory is read from /proc")
@pytest.mark.parametrize("backward", [False, True])
def test_clearing_reads_give_pages_back(backward):
    slots, width = 4096, 1024
    with changed(settings.RELEASE_THRESHOLD, 8 << 20):
        array = nbta.TensorArray("float64", slots, element_shape=(width,), clear_after_read=True)
        for k in range(slots):
            array.write(k, np.full(width, float(k)))
        full = resident()
        order = range(slots - 1, -1, -1) if backward else range(slots)
        kept = {}
        for k in order:
            value = array.read(k)
            assert value[0] == value[-1] == k
            if k % 500 == 0:
                kept[k] = value
        assert full - resident() > 24 << 20  # of 32 MiB
        assert intact(array)
    for k, value in kept.items():
        np.testing.assert_array_equal(value, np.full(width, float(k)))


@pytest.mark.skipif(not STATM.exists(), reason="resident memory is read from /proc")
def test_pages_under_a_view_stay():
    slots, width = 2048, 1024
    with changed(settings.RELEASE_THRESHOLD, 8 << 20):
        array = nbta.TensorArray("float64", slots, element_shape=(width,), clear_after_read=True)
        for k in range(slots):
            array.write(k, np.full(width, float(k)))
        view = array.gather(range(1000))
        for k in range(1000, slots):
            array.read(k)
    assert (view == np.arange(1000.0)[:, None]).all()


def test_a_stack_is_a_read_only_view():
    array = filled(clear_after_read=False)
    stacked, again, element = array.stack(), array.stack(), array.read(1)
    assert address(stacked) == address(again)
    assert np.shares_memory(stacked, element)
    assert address(element) - address(stacked) == element.nbytes
    assert np.shares_memory(array.gather([1, 2]), stacked)
    for value in (stacked, element):
        assert not value.flags.writeable
        before = value.copy()
        with pytest.raises(ValueError):  # noqa: PT011 - its words are NumPy's
            value[...] = 0
        np.testing.assert_array_equal(value, before)


@pytest.mark.parametrize("shape", [(), (1,), (3, 5)])
def test_a_slot_costs_one_byte_beside_its_element(shape):
    slots = 1000
    array = nbta.TensorArray("float64", slots, element_shape=shape, clear_after_read=True)
    nbytes = 8 * int(np.prod(shape))
    assert array._fields[FIELD.element_bytes] == nbytes
    assert len(python_calls.native(python_calls.data_bytes)(array._address)) == slots * nbytes
    assert len(python_calls.native(python_calls.state_bytes)(array._address)) == slots


def test_a_gradient_array_takes_no_memory_for_elements_before_its_first_use():
    array = nbta.TensorArray("float64", 100, clear_after_read=True).unstack(np.ones((100, 50)))
    before = live_bytes()
    gradient = array.grad("gradients")
    assert live_bytes() - before < 100 * 50
    assert len(python_calls.native(python_calls.data_bytes)(gradient._address)) == 0
    gradient.write(3, np.ones(50))
    assert len(python_calls.native(python_calls.data_bytes)(gradient._address)) == 100 * 50 * 8


def test_sizes_that_no_memory_holds_are_refused():
    with pytest.raises(nbta.ResourceExhaustedError) as caught:
        nbta.TensorArray("float64", 2**45, element_shape=(2**20,), clear_after_read=True)
    assert caught.value.reason == "too_large"
    array = nbta.TensorArray("float64", 1, dynamic_size=True, clear_after_read=True).write(0, 1.0)
    before = snapshot(array)
    with pytest.raises(nbta.ResourceExhaustedError):
        array.write(2**50, 1.0)
    assert snapshot(array) == before
    assert array.read(0) == 1.0


# Resident memory does not creep either.


def one_cycle(k):
    array = (
        nbta.TensorArray("float64", size=2, clear_after_read=True)
        .write(0, ROWS[0])
        .write(1, ROWS[1])
    )
    array.read(0)
    array.read(1)
    if k % 10 == 0:
        with pytest.raises(nbta.InvalidArgumentError):
            array.read(0)
    array.close()


def compiled_call():
    """A compiled function that refuses some of its arguments, with its gradient."""

    def loss(w, xs):
        ta = nbta.TensorArray("float64", 4, element_shape=(2,), clear_after_read=True).unstack(xs)
        return nbta.sum(nbta.scan(lambda h, x: (nbta.tanh(x + h @ w),) * 2, w[0], ta.stack())[1])

    both = nbta.value_and_grad(loss, compiled=True)
    w, rows = np.eye(2), [np.ones((count, 2)) for count in (4, 3, 5)]

    def call(k):
        if k % 10 == 0:  # more rows than slots
            with pytest.raises(nbta.InvalidArgumentError):
                both(w, rows[2])
        else:
            both(w, rows[k % 2])

    return call


@pytest.mark.slow_but_every(2)
@pytest.mark.skipif(not STATM.exists(), reason="resident memory is read from /proc")
@pytest.mark.parametrize(("make", "count"), [(lambda: one_cycle, 20_000), (compiled_call, 500)])
def test_resident_memory_stays_flat(make, count):
    step = make()
    for k in range(count // 4):
        step(k)
    gc.collect()
    before = resident()
    for k in range(count):
        step(k)
    gc.collect()
    assert resident() - before < 1 << 20
