"""Lanes: every error, and where memory goes."""

import pickle
from itertools import count

import numpy as np
import pytest
from lane_programs import (
    add_up,
    collect,
    fill,
    finish,
    growing,
    kept_forward,
    make,
    nested,
    passed_on,
    ragged_in_parallel,
    ragged_sums,
    share,
    sums,
    values_of,
    with_parts,
)
from memory_in_use import in_use, live_bytes
from numba import njit
from numba.core.errors import TypingError
from numba.core.runtime import _nrt_python

import nbta
from nbta.runtime import python_calls, settings
from nbta.runtime.store import FIELD

# Errors.


def taken():
    lanes = growing(element_shape=()).lanes(4)
    lanes.take(1)
    return lanes


def joined():
    lanes = growing(element_shape=()).lanes(4)
    lanes.join()
    return lanes


def of_closed():
    array = growing(element_shape=())
    lanes = array.lanes(2)
    array.close()
    return lanes


def no_longer_growing():
    array = growing(element_shape=())
    lanes = with_parts(array, lambda a: a, lambda a: a.append(1.0))
    array.grad("end of growth")
    return lanes


def read_in_between():
    array = sums()
    lanes = with_parts(array, lambda a: a.accumulate(2, np.ones(2)))
    array.read(2)
    return lanes


def widened():
    """The array learns another shape than its lane did."""
    array = growing()
    lanes = with_parts(array, lambda a: a.append(np.ones(3)))
    array.append(np.ones(2))
    return lanes


ONE = np.ones(2)
FAILING = {
    "none": (growing, make, lambda a: a.lanes(0), (0,), "lanes_count", "lanes|1 to 65536|0 were"),
    "less": (growing, make, lambda a: a.lanes(-3), (-3,), "lanes_count", "lanes|1 to 65536|-3"),
    "too many": (
        growing, make, lambda a: a.lanes(2**40), (2**40,), "lanes_count", "lanes|1 to 65536|fixed"
    ),
    "fixed size": (
        lambda: nbta.TensorArray("float64", 3, tensor_array_name="state"), make,
        lambda a: a.lanes(2), (2,), "lanes_fixed_size", "lanes|does not grow|dynamic_size=True",
    ),
    "closed": (
        lambda: of_closed()._array, make, lambda a: a.lanes(2), (2,), "closed", "lanes|closed"
    ),
    "no lane": (
        taken, fill, lambda a: a.take(4), (4, 1.0), "no_lane", "take|no lane 4|4 lanes|from 0"
    ),
    "below": (taken, fill, lambda a: a.take(-1), (-1, 1.0), "no_lane", "take|no lane -1|4 lanes"),
    "twice": (
        taken, fill, lambda a: a.take(1), (1, 1.0), "lane_taken", "take|lane 1|already|one user"
    ),
    "late": (joined, fill, lambda a: a.take(0), (0, 1.0), "lanes_joined", "take|joined|new ones"),
    "joined": (joined, finish, lambda a: a.join(), (), "lanes_joined", "join|joined|finished"),
    "no share": (
        taken, share, lambda a: a.range(7, 10), (7, 10), "no_lane", "range|no lane 7|4 lanes"
    ),
    "negative total": (
        taken, share, lambda a: a.range(0, -5), (0, -5), "lanes_total", "range|-5|[0, 2**62)"
    ),
    "join of closed": (of_closed, finish, lambda a: a.join(), (), "closed", "join|closed"),
    "lane closed": (
        lambda: with_parts(growing(element_shape=()), lambda a: a, lambda a: a.close()), finish,
        lambda a: a.join(), (), "lane_closed", "join|lane 1 was closed|lost",
    ),
    "no growth": (
        no_longer_growing, finish, lambda a: a.join(), (), "write_out_of_range",
        "join|no slot 0|does not grow|gradient lookup",
    ),
    "gap": (
        lambda: with_parts(
            growing(element_shape=()), lambda a: a.append(1.0), lambda a: a.write(2, 1.0)
        ), finish, lambda a: a.join(), (), "lane_unwritten", "join|slot 0 of lane 1|never written",
    ),
    "cleared": (
        lambda: with_parts(
            growing(element_shape=(), clear_after_read=True), lambda a: a.append(1.0).read(0)
        ), finish,
        lambda a: a.join(), (), "lane_cleared", "join|slot 0 of lane 0|read|clear_after_read=False",
    ),
    "sum cleared": (
        lambda: with_parts(sums(), lambda a: a, lambda a: a.accumulate(1, ONE).read(1)), finish,
        lambda a: a.join(), (), "lane_cleared", "join|slot 1 of lane 1|after the join",
    ),
    "shapes of lanes": (
        lambda: with_parts(growing(), lambda a: a.append(ONE), lambda a: a.append(1.0)), finish,
        lambda a: a.join(), (), "lane_shape", "join|slot 0 of lane 1|shape ()|(2,)|infer_shape",
    ),
    "shape of the array": (
        widened, finish, lambda a: a.join(), (), "lane_shape", "join|slot 0 of lane 0|(3,)|(2,)"
    ),
    "shapes of sums": (
        lambda: with_parts(
            sums(shape=None), lambda a: a.accumulate(0, ONE), lambda a: a.accumulate(1, np.ones(3))
        ), finish, lambda a: a.join(), (), "lane_shape", "join|slot 1 of lane 1|(3,)|(2,)",
    ),
    "ragged sums": (
        lambda: with_parts(
            ragged_sums(), lambda a: a.accumulate(2, ONE), lambda a: a.accumulate(2, np.ones(3))
        ), finish, lambda a: a.join(), (), "lane_shape", "join|slot 2 of lane 1|(3,)|(2,)",
    ),
    "sum that was read": (
        read_in_between, finish, lambda a: a.join(), (), "already_read", "join|slot 2|was read"
    ),
    "sum past the end": (
        lambda: with_parts(
            sums(clear_after_read=False).grad("next", clear_after_read=False), lambda a: a.read(5)
        ), finish, lambda a: a.join(), (), "write_out_of_range", "join|no slot 5|3 slots",
    ),
    "bools": (
        lambda: with_parts(sums("bool"), *[lambda a: a.accumulate(1, np.ones(2, bool))] * 2),
        finish, lambda a: a.join(), (), "aggregate_dtype", "join|slot 1|bools have no sum",
    ),
}  # fmt: skip


def array_of(subject):
    return subject._array if isinstance(subject, nbta.Lanes) else subject


def snapshot(subject):
    """All that can be seen of an array, or of lanes and their array."""
    array = array_of(subject)
    facts = repr(subject), repr(array), array.element_shape, array._fields[FIELD.layout]
    return facts if array.closed else (*facts, array._states().tolist())


def failure_of(operation, subject):
    before, name = snapshot(subject), array_of(subject).handle.name
    with pytest.raises(nbta.InvalidArgumentError) as caught:
        operation(subject)
    assert snapshot(subject) == before
    assert name in str(caught.value)
    return caught.value.reason, str(caught.value).replace(name, "NAME")


@pytest.mark.slow_but_every(5)
@pytest.mark.parametrize("label", FAILING)
def test_errors(label):
    make_subject, compiled, eager, args, reason, words = FAILING[label]
    found, message = failure_of(eager, make_subject())
    assert found == reason
    for word in words.split("|"):
        assert word in message
    assert failure_of(lambda subject: compiled(subject, *args), make_subject()) == (found, message)


@pytest.mark.parametrize(
    ("operation", "words"),
    [
        (lambda a: a.lanes(1.5), "lanes on state|count must be one integer|1.5"),
        (lambda a: a.lanes([2, 3]), "lanes on state|count must be one integer|shape (2,)"),
        (lambda a: a.lanes(2).take("a"), "take on state|lane must be one integer|'a'"),
        (lambda a: a.lanes(2).range(0.5, 3), "range on state|lane must be one integer"),
        (lambda a: a.lanes(2).range(0, 2.5), "range on state|total must be one integer|2.5"),
        (lambda a: a.lanes(2**80), "lanes on state|1 to 65536"),
        (lambda a: a.lanes(2).take(2**80), "take on state|no lane|2 lanes"),
        (lambda a: a.lanes(2).range(0, 2**80), "range on state|[0, 2**62)"),
        (lambda a: pickle.dumps(a.lanes(2)), "lanes of state|this process|join"),
    ],
)
def test_errors_of_arguments(operation, words):
    with pytest.raises(nbta.InvalidArgumentError) as caught:
        operation(growing())
    for word in words.split("|"):
        assert word in str(caught.value)


@pytest.mark.parametrize(
    ("function", "subject", "args", "words"),
    [
        (make, growing, (1.5,), "lanes: count must be an integer, not float64"),
        (fill, taken, (0.5, 1.0), "take: lane must be an integer, not float64"),
        (share, taken, (0.5, 1), "range: lane must be an integer, not float64"),
        (share, taken, (0, 1.5), "range: total must be an integer, not float64"),
    ],
)
def test_errors_of_typing(function, subject, args, words):
    with pytest.raises(TypingError, match=words):
        function(subject(), *args)


def test_lanes_can_be_joined_after_an_error():
    array = growing()
    lanes = array.lanes(2)
    first, second = lanes.take(0), lanes.take(1)
    second.append(1.0).append(2.0)
    first.write(1, 4.0)
    with pytest.raises(nbta.InvalidArgumentError, match="slot 0 of lane 0"):
        lanes.join()
    first.write(0, 3.0)
    assert lanes.join().stack().tolist() == [3, 4, 1, 2]


def test_the_array_of_a_lane_is_closed_by_the_join():
    lanes = growing().lanes(1)
    part = lanes.take(0).append(1.0)
    lanes.join()
    with pytest.raises(nbta.InvalidArgumentError, match=r"\[lane 0\]: the array is closed"):
        part.append(2.0)


def test_a_lane_refuses_sums_into_slots_that_were_read():
    array = sums()
    array.read(1)
    lanes = array.lanes(2)
    part = lanes.take(1)
    with pytest.raises(nbta.InvalidArgumentError, match=r"@sums\[lane 1\]: slot 1 was read"):
        part.accumulate(1, np.ones(2))
    part.accumulate(0, np.ones(2))
    assert lanes.join().read(0).tolist() == [1, 1]


def test_arrays_of_a_graph_have_no_lanes():
    with nbta.Graph().as_default():
        array = nbta.TensorArray("float64", dynamic_size=True, tensor_array_name="state")
        with pytest.raises(nbta.UnimplementedError, match=r"lanes on state: flows .*map_fn"):
            array.lanes(2)


# Memory.


def joined_and_dropped():
    array = growing("int64", element_shape=())
    assert collect(array, 20, 500).size() == 500
    add_up(sums("float32", 3, (5,)), 8, np.ones((50, 5), np.float32))
    ragged_in_parallel(growing(infer_shape=False, element_shape=(None,)), 10)
    nested(growing("int64", element_shape=()), 10)
    kept_forward.clear()


def dropped_without_a_join():
    lanes = make(growing(element_shape=()), 5)
    fill(lanes, 3, 1.0)
    lanes.take(4).append(2.0)
    again, _ = passed_on(lanes)
    sums().lanes(3).take(0).accumulate(1, np.ones(2))
    kept_forward.clear()
    return again.take(0).size()


def failing_joins():
    for label in ("gap", "cleared", "shapes of lanes", "ragged sums", "twice"):
        make_subject, _, eager, *_ = FAILING[label]
        failure_of(eager, make_subject())
    kept_forward.clear()


@pytest.mark.slow
@pytest.mark.parametrize("run", [joined_and_dropped, dropped_without_a_join, failing_joins])
def test_nothing_is_left(run):
    _nrt_python.memsys_enable_stats()
    run()
    before = in_use()
    for _ in range(10):
        run()
    assert in_use() == before


def test_joining_frees_the_lanes():
    array = growing(element_shape=(100,))
    lanes = array.lanes(4)
    before = live_bytes()
    parts = [lanes.take(k) for k in range(4)]
    for part in parts:
        for _ in range(20):
            part.append(np.ones(100))
    lanes.join()
    joined_bytes = python_calls.native(python_calls.data_bytes)(array._address).size
    assert live_bytes() - before < joined_bytes + 2000


def test_lanes_of_sums_take_no_memory_for_elements_before_the_first():
    nbta.trim()  # dropped memory that may be a little larger
    array = sums(size=4, shape=(10_000,))
    before = live_bytes()
    lanes = array.lanes(8)
    assert live_bytes() - before < 10_000
    lanes.take(3).accumulate(0, np.ones(10_000))
    assert live_bytes() - before < 5 * 8 * 10_000
    lanes.join()
    assert array.read(0).sum() == 10_000


def guarded_join(lanes):
    lanes.join()
    array = lanes._array
    assert python_calls.native(python_calls.guards_intact)(array._address)
    return values_of(array)


def join_and_read(*slots):
    def operation(lanes):
        array = lanes.join()
        return [array.read(slot).tolist() for slot in slots]

    return operation


LIMITED = {
    "lanes": (lambda: growing(element_shape=()), lambda a: len(a.lanes(3))),
    "lanes of sums": (sums, lambda a: len(a.lanes(3))),
    "slots": (
        lambda: with_parts(growing(), *[lambda a: a.append(ONE).append(ONE)] * 3), guarded_join
    ),
    "ragged": (
        lambda: with_parts(growing(infer_shape=False), *[lambda a: a.append(ONE).append(1.0)] * 3),
        guarded_join,
    ),
    "views": (
        lambda: with_parts(
            growing(infer_shape=False, clear_after_read=False),
            lambda a: a.append(ONE).append(1.0).read(1), lambda a: a.append([3.0]).read(0),
        ), guarded_join,
    ),
    "sums": (
        lambda: with_parts(sums(size=99), *[lambda a: a.accumulate(1, ONE)] * 3), guarded_join
    ),
    "ragged sums": (
        lambda: with_parts(ragged_sums(), *[lambda a: a.accumulate(0, ONE)] * 2),
        join_and_read(0),
    ),
    "views of sums of any shape": (
        lambda: with_parts(
            sums(shape=None, infer_shape=False).grad("next", clear_after_read=False),
            lambda a: a.accumulate(0, ONE).read(0), lambda a: a.accumulate(2, [1.0]).read(2),
        ), join_and_read(0, 2),
    ),
    "views of sums": (
        lambda: with_parts(
            ragged_sums(clear_after_read=False),
            lambda a: a.accumulate(0, ONE).read(0), lambda a: a.accumulate(2, ONE).read(2),
            lambda a: a.accumulate(3, ONE)
        ), join_and_read(0, 2, 3),
    ),
}  # fmt: skip


SQUARE = np.ones((2, 2))
RAGGED = {
    "ragged from the start": lambda a: a.append(SQUARE).append(ONE),
    "packed at first": lambda a: a.append(ONE).append(SQUARE),
}


@pytest.mark.slow
@pytest.mark.parametrize("fill", RAGGED.values(), ids=RAGGED)
def test_memory_that_a_failed_join_found_is_given_back(fill):
    """However far a join comes; arrays that are packed all through need no memory for it."""
    _nrt_python.memsys_enable_stats()
    for allowed in count():
        before = in_use()
        array = growing(infer_shape=False, clear_after_read=False).append(ONE)
        lanes = with_parts(array, *[lambda a: fill(a).read(0)] * 3)
        assert in_use() != before
        settings.put(settings.ALLOCATIONS_LEFT, allowed)
        try:
            lanes.join()
            break
        except nbta.ResourceExhaustedError:
            pass
        finally:
            settings.put(settings.ALLOCATIONS_LEFT, -1)
        array.write(100, ONE)  # growth leaves behind what lies after the last slot
        del array, lanes
        assert in_use() == before
    assert allowed > 1


@pytest.mark.parametrize("label", LIMITED)
def test_an_operation_without_memory_changes_nothing(label):
    make_subject, operation = LIMITED[label]
    expected = operation(make_subject())
    for allowed in count():
        subject = make_subject()
        before = snapshot(subject)
        old = settings.put(settings.ALLOCATIONS_LEFT, allowed)
        try:
            assert operation(subject) == expected
            break
        except nbta.ResourceExhaustedError:
            pass
        finally:
            settings.put(settings.ALLOCATIONS_LEFT, old)
        assert snapshot(subject) == before
        assert operation(subject) == expected
    assert allowed > 0 or label == "ragged sums"  # blocks change hands


@njit(cache=True)
def first_element(array):
    return array.read(0)[0]


@pytest.mark.slow
def test_memory_under_views_in_compiled_code_lives_as_long_as_the_array():
    """Compiled code may look at an element of a uniform array without a reference to its memory."""
    before = live_bytes()
    array = growing(clear_after_read=False, element_shape=(1000,))
    lanes = array.lanes(3)
    read, other = lanes.take(0).append(np.ones(1000)), lanes.take(2).append(np.ones(1000))
    first_element(read)
    bytes_of = python_calls.native(python_calls.data_bytes)
    nbytes = len(bytes_of(read._address))
    assert nbytes == len(bytes_of(other._address))
    lanes.join()
    kept = live_bytes() - before - len(bytes_of(array._address))
    assert nbytes <= kept < nbytes + 2000
    del array, lanes, read, other
    assert live_bytes() == before


def test_views_of_a_lane_outlive_it():
    array = growing(clear_after_read=False)
    array.append(np.zeros(3))
    lanes = array.lanes(2)
    views = [lanes.take(k).append(np.full(3, k + 1.0)).read(0) for k in range(2)]
    lanes.join()
    for _ in range(100):
        array.append(np.zeros(3))
    assert [view.tolist() for view in views] == [[1] * 3, [2] * 3]
    assert python_calls.native(python_calls.guards_intact)(array._address)


def test_reads_of_a_joined_array_see_one_buffer():
    array = growing(element_shape=(2,), clear_after_read=False)
    with_parts(array, *[lambda a: a.append(ONE)] * 3).join()
    assert array._fields[FIELD.size] == 3
    assert np.shares_memory(array.stack(), array.read(1))
