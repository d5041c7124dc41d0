"""Elements of several lengths: where they lie, their offsets, and what moves them out."""

import itertools
import threading
from contextlib import contextmanager

import numpy as np
import pytest
from numba import njit

import nbta
from nbta.runtime import python_calls, settings
from nbta.runtime.store import FIELD, PACKED, RAGGED

LENGTHS = [3, 0, 1, 7, 2, 0, 5]
VECTORS = [np.arange(length) + 10.0 * slot for slot, length in enumerate(LENGTHS)]
OFFSETS = np.cumsum([0, *LENGTHS])


def array(**options):
    options = {"dynamic_size": True, "infer_shape": False, "clear_after_read": False, **options}
    return nbta.TensorArray("float64", **options)


def filled(vectors=VECTORS, **options):
    ta = array(**options)
    for vector in vectors:
        ta.append(vector)
    return ta


def layout(ta):
    return ta._fields[FIELD.layout]


def intact(ta):
    return python_calls.native(python_calls.guards_intact)(ta._address)


def address(value):
    return value.__array_interface__["data"][0]


@contextmanager
def changed(field, value):
    before = settings.put(field, value)
    try:
        yield
    finally:
        settings.put(field, before)


def test_elements_lie_back_to_back_and_are_joined_without_a_copy():
    ta = filled()
    value, lengths = ta.concat()
    assert layout(ta) == PACKED
    np.testing.assert_array_equal(value, np.concatenate(VECTORS))
    np.testing.assert_array_equal(lengths, LENGTHS)
    assert address(ta.concat().value) == address(value) == address(ta[0])
    assert address(ta.read(3)) == address(value) + 8 * OFFSETS[3]
    assert address(ta.gather([3])) == address(ta.read(3))
    assert not value.flags.writeable
    assert intact(ta)


def test_offsets_are_a_view_that_growth_leaves_alone():
    ta = filled()
    first, rows = ta.offsets, ta.concat().value
    assert (first.dtype, first.flags.writeable) == (np.int64, False)
    assert address(ta.offsets) == address(first)
    for k in range(1000):
        ta.append(np.full(k % 9, float(k)))
    np.testing.assert_array_equal(first, OFFSETS)
    np.testing.assert_array_equal(rows, np.concatenate(VECTORS))
    np.testing.assert_array_equal(ta.offsets[: len(first)], first)
    assert ta.offsets[-1] == len(ta.concat().value) == OFFSETS[-1] + sum(k % 9 for k in range(1000))
    ta.close()
    np.testing.assert_array_equal(first, OFFSETS)


def test_offsets_of_other_arrays_are_computed():
    unordered = array(size=3)
    for slot in (2, 0, 1):
        unordered.write(slot, np.ones((slot, 2)))
    assert layout(unordered) == RAGGED
    assert unordered.offsets.tolist() == [0, 0, 1, 3]
    assert unordered.grad("g").offsets.tolist() == [0, 0, 1, 3]
    assert filled(clear_after_read=True).grad("g").offsets.tolist() == OFFSETS.tolist()
    rows = nbta.TensorArray("float64", 2).unstack(np.ones((2, 3)))
    assert rows.offsets.tolist() == [0, 3, 6]
    assert nbta.TensorArray("int32", 2, element_shape=(4,)).offsets.tolist() == [0, 4, 8]
    assert array(element_shape=(None,)).offsets.tolist() == [0]


def test_offsets_stay_when_elements_are_read_and_cleared():
    ta = filled(clear_after_read=True)
    ta.read(3)
    ta.read(6)
    assert ta.offsets.tolist() == OFFSETS.tolist()
    assert [ta[k].tolist() for k in (0, 4)] == [VECTORS[0].tolist(), VECTORS[4].tolist()]
    with pytest.raises(nbta.InvalidArgumentError, match="slot 3 was cleared"):
        ta.concat()


def test_offsets_refuse_what_concat_refuses():
    ta = array(size=3).write(0, np.ones((2, 3)))
    with pytest.raises(nbta.InvalidArgumentError, match=r"offsets on .*slot 1 was never written"):
        ta.offsets  # noqa: B018
    ta.write(1, np.ones(2)).write(2, np.ones((1, 3)))
    with pytest.raises(nbta.InvalidArgumentError, match=r"offsets on .*slot 1 has shape \(2,\)"):
        ta.offsets  # noqa: B018
    with pytest.raises(nbta.InvalidArgumentError, match=r"offsets on .*slot 0 is a scalar"):
        nbta.TensorArray("float64", 2).unstack([1.0, 2.0]).offsets  # noqa: B018
    ta.close()
    with pytest.raises(nbta.InvalidArgumentError, match=r"offsets on .*the array is closed"):
        ta.offsets  # noqa: B018
    with nbta.Graph().as_default():
        written = array().append(np.ones(2))
        with pytest.raises(nbta.InvalidArgumentError, match="only when the graph runs"):
            written.offsets  # noqa: B018


@njit
def offsets_in_njit(count):
    ta = nbta.TensorArray(np.float64, dynamic_size=True, infer_shape=False, element_shape=(None,))
    source = np.arange(8.0)
    for k in range(count):
        ta.append(source[: k % 8])
    offsets = ta.offsets
    for k in range(count):
        ta.append(source[: k % 8])
    return offsets, ta.concat().value, ta.offsets


def test_offsets_in_compiled_code():
    first, rows, offsets = offsets_in_njit(500)
    lengths = [k % 8 for k in range(500)]
    np.testing.assert_array_equal(offsets, np.cumsum([0, *lengths, *lengths]))
    np.testing.assert_array_equal(first, offsets[:501])
    np.testing.assert_array_equal(rows, np.concatenate([np.arange(float(k)) for k in 2 * lengths]))


#: What an array of packed elements does not go on with, slot and value.
ODD = {
    "a gap": (9, np.ones(2)),
    "another rank": (7, np.ones((2, 1))),
    "a scalar": (7, 3.0),
    "a large element": (7, np.ones(1 << 17)),
}


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("clear", [False, True])
def test_an_element_that_does_not_go_on_moves_all_out(odd, clear):
    slot, value = ODD[odd]
    ta = filled(clear_after_read=clear)
    seen = ta.read(3)
    ta.write(slot, value)
    assert layout(ta) == RAGGED
    assert intact(ta)
    np.testing.assert_array_equal(seen, VECTORS[3])
    np.testing.assert_array_equal(ta[slot], value)
    for k in (0, 1, 2, 4, 5, 6):
        np.testing.assert_array_equal(ta.read(k), VECTORS[k])
    g = ta.grad("g")
    assert g.read(3).tolist() == [0.0] * 7
    ta.close()
    np.testing.assert_array_equal(seen, VECTORS[3])


def test_trailing_dimensions_decide():
    ta = array().append(np.ones((2, 3))).append(np.ones((0, 3)))
    assert layout(ta) == PACKED
    ta.append(np.full((1, 4), 2.0))
    assert layout(ta) == RAGGED
    assert [ta[k].shape for k in range(3)] == [(2, 3), (0, 3), (1, 4)]
    nothing = array()
    for rows in (2, 0, 3):
        nothing.append(np.ones((rows, 0)))
    assert nothing.concat().value.shape == (5, 0)
    assert nothing.offsets.tolist() == [0, 2, 2, 5]


def test_scatters_and_splits_that_fail_take_nothing():
    ta = array(size=5)
    with pytest.raises(nbta.InvalidArgumentError, match="slot 1 holds a value"):
        ta.scatter([0, 1, 1], np.ones((3, 2)))
    ta.write(0, np.ones(4))
    with pytest.raises(nbta.InvalidArgumentError, match="slot 0 holds a value"):
        ta.split(np.ones(5), [1, 1, 1, 1, 1])
    ta.scatter([1, 2], np.ones((2, 3)))
    assert layout(ta) == PACKED
    ta.write(3, np.ones(1)).write(4, np.zeros(0))
    assert layout(ta) == PACKED
    assert ta.offsets.tolist() == [0, 4, 7, 10, 11, 11]


@pytest.mark.parametrize("odd", ODD)
def test_a_failed_allocation_changes_nothing(odd):
    slot, value = ODD[odd]
    for allowed in itertools.count():
        ta = filled()
        with changed(settings.ALLOCATIONS_LEFT, allowed):
            try:
                ta.write(slot, value)
                break
            except nbta.ResourceExhaustedError:
                pass
        assert (len(ta), intact(ta)) == (len(VECTORS), True)
        np.testing.assert_array_equal(ta.concat().value, np.concatenate(VECTORS))
    assert allowed > len(VECTORS)  # the table, and a block for each


@pytest.mark.parametrize("backward", [False, True])
def test_large_arrays_return_pages_of_cleared_elements(backward):
    lengths = [(37 * k) % 4001 for k in range(1500)]
    with changed(settings.RELEASE_THRESHOLD, 8 << 20):
        ta = array(clear_after_read=True)
        for k, length in enumerate(lengths):
            ta.append(np.full(length, float(k)))
        assert layout(ta) == PACKED
        data = python_calls.native(python_calls.data_bytes)(ta._address)
        used = 8 * sum(lengths)
        order = range(len(lengths))
        values = [(k, ta.read(k)) for k in (reversed(order) if backward else order)]
    assert all((value == k).all() and len(value) == lengths[k] for k, value in values)
    assert not any(np.shares_memory(value, data) for _, value in values[:5])
    if settings.get(settings.MAP_THRESHOLD) < 1 << 21:  # pages that were returned read as zeros
        assert np.count_nonzero(data[:used]) < used / 100


def test_lanes_are_joined_back_to_back():
    ta = array().append(np.ones(3))
    lanes = ta.lanes(3)

    def work(number):
        lane = lanes.take(number)
        for k in range(number + 2):
            lane.append(np.full(k, 10.0 * number + k))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ta = lanes.join()
    expected = [np.ones(3)]
    expected += [np.full(k, 10.0 * n + k) for n in range(3) for k in range(n + 2)]
    assert layout(ta) == PACKED
    np.testing.assert_array_equal(ta.concat().value, np.concatenate(expected))
    assert np.diff(ta.offsets).tolist() == list(map(len, expected))
    assert intact(ta)


def step(rng, ta, model, seen):
    """One random operation on an array and on the list of values that it should hold."""
    turn, shape = rng.random(), (int(rng.integers(0, 5)),)
    if turn < 0.75 or not model:
        value = rng.normal(size=(*shape, 2) if turn < 0.02 else shape)
        ta.append(value)
        model.append(value)
    elif turn < 0.78:
        ta.write(len(model) + 1, np.ones(2)).write(len(model), np.zeros(1))
        model += [np.zeros(1), np.ones(2)]
    elif turn < 0.9:
        k = int(rng.integers(len(model)))
        if model[k] is not None:
            seen.append((ta.read(k), model[k]))
            model[k] = None if ta.clear_after_read else model[k]
    else:
        rows = rng.normal(size=(3, 2))
        ta.scatter(np.arange(3) + len(model), rows)
        model += list(rows)


def test_random_operations_agree_with_a_list():
    rng = np.random.default_rng(0)
    for _ in range(60):
        ta, model, seen = array(clear_after_read=bool(rng.integers(2))), [], []
        for _ in range(int(rng.integers(1, 40))):
            step(rng, ta, model, seen)
        assert intact(ta)
        seen += [(ta[k], value) for k, value in enumerate(model) if value is not None]
        for view, value in seen:
            np.testing.assert_array_equal(view, value)
