"""Tensor arrays in users' parallel loops, on one thread and on several."""

import os
import subprocess
import sys
import textwrap

import numba
import numpy as np
import pytest
from numba import njit, prange
from together import LIMIT, together, unexpected, watchdog

import nbta
from nbta.runtime import python_calls
from nbta.runtime.cold_fields import FAILED, cold_number
from nbta.runtime.extension import store_fields
from nbta.runtime.memory import address_of, keep_alive
from nbta.runtime.parallel_loops import read_in_loop, write_in_loop
from nbta.runtime.store import FIELD, store_at

COUNT = 1000


@pytest.fixture(autouse=True)
def _no_deadlock():
    with watchdog():
        yield


@pytest.fixture(
    params=range(1, min(4, numba.config.NUMBA_NUM_THREADS) + 1), ids="{} threads".format
)
def threads(request):
    """How many threads run a parallel loop."""
    before = numba.get_num_threads()
    numba.set_num_threads(request.param)
    yield request.param
    numba.set_num_threads(before)


def array(size=0, dtype="float64", shape=(), **options):
    options = {"element_shape": shape, "clear_after_read": False, **options}
    return nbta.TensorArray(dtype, size, **options)


@njit
def kept_status(store):
    """Status of the failure that a store keeps for the end of a loop; 0 for none."""
    return cold_number(store_at(store), FAILED)


def idle(ta):
    """Whether no loop counts as using an array, nor a deposit as made in one; buffers intact."""
    states = python_calls.native(python_calls.state_bytes)(ta._address)
    fields = ta._fields
    left = fields[FIELD.users] | kept_status(ta._address) | fields[FIELD.lock]
    clean = left == 0 and not (states & ~np.uint8(15)).any()
    return clean and python_calls.native(python_calls.guards_intact)(ta._address)


@njit(parallel=True, cache=True)
def write(ta, count):
    for i in prange(count):
        ta.write(i, float(i))


@njit(parallel=True, cache=True)
def write_rows(ta, rows):
    for i in prange(len(rows)):
        ta.write(i, rows[i])


@njit(parallel=True, cache=True)
def write_modulo(ta, count, modulus):
    for i in prange(count):
        ta.write(i % modulus, float(i))


@njit(parallel=True, cache=True)
def append(ta, count):
    for i in prange(count):
        ta.append(float(i))


@njit(parallel=True, cache=True)
def read_sum(ta, count):
    total = 0.0
    for i in prange(count):
        total += ta.read(i)
    return total


@njit(parallel=True, cache=True)
def read_rows(ta, count):
    total = 0.0
    for i in prange(count):
        total += ta.read(i).sum()
    return total


@njit(parallel=True, cache=True)
def add(gradient, count, modulus):
    for i in prange(count):
        gradient.accumulate(i % modulus, 1)


@njit(parallel=True, cache=True)
def add_rows(gradient, rows):
    for i in prange(len(rows)):
        gradient.accumulate(i, rows[i])


# Writes.


@pytest.mark.slow_but_every(2)
def test_each_iteration_writes_its_own_slot(threads):
    ta = array(COUNT)
    write(ta, COUNT)
    np.testing.assert_array_equal(ta.stack(), np.arange(COUNT))
    assert idle(ta)


@pytest.mark.slow
@pytest.mark.parametrize("count", [0, 1, 2])
def test_there_may_be_fewer_iterations_than_threads(threads, count):
    ta = array(2)
    write(ta, count)
    assert [int(ta._states()[k]) & 1 for k in range(2)] == [k < count for k in range(2)]
    assert idle(ta)


@pytest.mark.slow
@pytest.mark.parametrize("width", [1, 7, 10_000])
def test_elements_with_dimensions(threads, width):
    ta, rows = array(60, shape=(width,)), np.random.default_rng(0).normal(size=(60, width))
    write_rows(ta, rows)
    np.testing.assert_array_equal(ta.stack(), rows)
    assert idle(ta)


@pytest.mark.slow
@pytest.mark.parametrize("options", [{"element_shape": None}, {"dynamic_size": True}])
def test_the_first_write_may_decide_the_shape_and_dynamic_arrays_have_a_size(threads, options):
    ta, rows = array(COUNT, **options), np.arange(COUNT * 3.0).reshape(COUNT, 3)
    if "dynamic_size" in options:
        write(ta, COUNT)
        rows = rows[:, 0] / 3
    else:
        write_rows(ta, rows)
    np.testing.assert_array_equal(ta.stack(), rows)
    assert idle(ta)


@njit(parallel=True, cache=True)
def write_ragged(ta, count):
    for i in prange(count):
        ta.write(i, np.full(i % 5, float(i)))


@pytest.mark.slow
def test_ragged_elements(threads):
    ta = array(COUNT, shape=None, infer_shape=False)
    write_ragged(ta, COUNT)
    for slot in range(COUNT):
        np.testing.assert_array_equal(ta.read(slot), np.full(slot % 5, float(slot)))
    assert idle(ta)


@pytest.mark.slow
def test_one_iteration_wins_a_slot_and_the_loop_tells_of_the_others(threads):
    ta = array(10)
    with pytest.raises(nbta.InvalidArgumentError, match=r"write on .*: slot \d holds a value") as e:
        write_modulo(ta, 100, 10)
    assert e.value.reason == "already_written"
    assert idle(ta)
    for slot in range(10):
        value = ta.read(slot)
        assert value == 0 or value % 10 == slot


@njit(parallel=True, cache=True)
def race(ta, slots, width, won, read):
    for i in prange(len(won)):
        value = np.full(width, float(i))
        for slot in range(slots):
            won[i] += write_in_loop(store_fields(ta), slot, address_of(value))
            read[i] += read_in_loop(store_fields(ta), slot)
        keep_alive(value)


@pytest.mark.slow
@pytest.mark.parametrize("width", [1, 4096])
def test_each_slot_is_claimed_by_one_writer_and_cleared_by_one_reader(width):
    slots = 100_000 // width
    for _ in range(30):  # copying a wide element takes long enough for others to come in between
        ta = array(slots, shape=(width,), clear_after_read=True)
        won, read = np.zeros(8, np.int64), np.zeros(8, np.int64)
        race(ta, slots, width, won, read)
        assert won.sum() == read.sum() == slots
        assert idle(ta)


# Functions that the loop calls, several arrays, loops in loops.


@njit(cache=True)
def helper(ta, other, i):
    ta.write(i, other.read(i) + 1)


@njit(parallel=True, cache=True)
def by_helper(ta, other, count):
    for i in prange(count):
        helper(ta, other, i)


@njit(parallel=True, cache=True)
def through_a_tuple(arrays, count):
    for i in prange(count):
        arrays[0].write(i, 1.0)
        arrays[1].write(i, 2.0)


@njit(parallel=True, cache=True)
def nested(ta, rows, columns):
    for i in prange(rows):
        for j in prange(columns):
            ta.write(i * columns + j, float(i))


# Not in a cache: while Numba compiles the one, it has forgotten names of the other's loop.
@njit(parallel=True)
def called_loop(ta, first, count):
    for j in prange(count):
        ta.write(first + j, 1.0)


@njit(parallel=True)
def loops_in_calls(ta, rows, columns):
    for i in prange(rows):
        called_loop(ta, i * columns, columns)


@njit(parallel=True, cache=True)
def twice(ta, other, count, condition):
    if condition:
        for i in prange(count):
            ta.write(i, float(i))
    for i in prange(count):
        other.write(i, ta.read(i))
    return ta.size()


@njit(parallel=True, cache=True)
def own_arrays(out, count):
    for i in prange(count):
        own = nbta.TensorArray(np.float64, dynamic_size=True, element_shape=())
        for k in range(i):
            own.append(float(k))
        out.write(i, own.stack().sum())


@njit(parallel=True, cache=True)
def half_of_them(ta, count):
    for i in prange(count):
        if i % 2 == 0:
            continue
        ta.write(i, 1.0)
    ta.write(0, 5.0)


@pytest.mark.slow
def test_functions_called_in_the_loop_and_several_arrays(threads):
    ta, other = array(COUNT), array(COUNT).unstack(np.arange(COUNT, dtype=float))
    by_helper(ta, other, COUNT)
    np.testing.assert_array_equal(ta.stack(), np.arange(COUNT) + 1)
    assert idle(ta)
    assert idle(other)
    with pytest.raises(nbta.InvalidArgumentError, match=r"read on .* no slot 1000"):
        by_helper(array(COUNT + 1), other, COUNT + 1)
    assert idle(other)


@pytest.mark.slow
def test_arrays_in_a_tuple(threads):
    pair = array(COUNT), array(COUNT)
    through_a_tuple(pair, COUNT)
    with pytest.raises(nbta.InvalidArgumentError, match="holds a value"):
        through_a_tuple((array(COUNT), pair[1]), COUNT)
    assert [ta.stack().sum() for ta in pair] == [COUNT, 2 * COUNT]
    assert all(map(idle, pair))


@pytest.mark.slow
@pytest.mark.parametrize("function", [nested, loops_in_calls])
def test_loops_in_loops(threads, function):
    ta = array(300)
    function(ta, 30, 10)
    assert len(ta.stack()) == 300
    assert idle(ta)
    with pytest.raises(nbta.InvalidArgumentError, match="no slot 300"):
        function(array(300), 31, 10)
    with pytest.raises(nbta.InvalidArgumentError, match="takes no more writes"):
        function(ta, 1, 1)
    assert idle(ta)


@pytest.mark.slow
@pytest.mark.parametrize("condition", [True, False])
def test_one_loop_after_another_and_one_that_may_not_run(threads, condition):
    ta, other = array(COUNT), array(COUNT)
    assert twice(ta, other, COUNT, condition) == COUNT
    expected = np.arange(COUNT) if condition else np.zeros(COUNT)
    np.testing.assert_array_equal(other.stack(), expected)
    assert idle(ta)
    assert idle(other)


@pytest.mark.slow
def test_iterations_make_arrays_of_their_own(threads):
    out = array(50)
    own_arrays(out, 50)
    k = np.arange(50)
    np.testing.assert_array_equal(out.stack(), k * (k - 1) / 2)


@njit(parallel=True, cache=True)
def failing_own_arrays(count, bad):
    total = 0.0
    for i in prange(count):
        own = nbta.TensorArray(np.float64, 3, element_shape=())
        own.write(4 if i == bad else 0, 1.0)
        total += own.read(0)
    return total


@njit(parallel=True, cache=True)
def failing_creation(out, count):
    for i in prange(count):
        own = nbta.TensorArray(np.float64, 1 - i, element_shape=())
        out.write(i, float(own.size()))


@pytest.mark.slow
@pytest.mark.parametrize("bad", [0, 49])
def test_failures_of_arrays_that_an_iteration_makes_are_raised(threads, bad):
    assert failing_own_arrays(50, -1) == 50
    with pytest.raises(nbta.InvalidArgumentError, match="write on TensorArray: there is no slot 4"):
        failing_own_arrays(50, bad)
    assert failing_own_arrays(50, -1) == 50


@pytest.mark.slow
def test_failing_to_make_an_array_in_the_loop_is_raised(threads):
    out = array(5)
    with pytest.raises(nbta.InvalidArgumentError, match="the size is -"):
        failing_creation(out, 5)
    assert idle(out)


@pytest.mark.slow
def test_code_after_the_loop_goes_on_as_before(threads):
    ta = array(COUNT)
    half_of_them(ta, COUNT)
    np.testing.assert_array_equal(ta.stack(), [5, *np.arange(1, COUNT) % 2])


# Reads.


@pytest.mark.slow
@pytest.mark.parametrize("clears", [False, True])
def test_each_iteration_reads_its_own_slot(threads, clears):
    ta = array(COUNT, clear_after_read=clears).unstack(np.arange(COUNT, dtype=float))
    assert read_sum(ta, COUNT) == COUNT * (COUNT - 1) / 2
    rows = array(COUNT, shape=(3,), clear_after_read=clears).unstack(np.ones((COUNT, 3)))
    assert read_rows(rows, COUNT) == 3 * COUNT
    assert idle(rows)
    if clears:
        with pytest.raises(nbta.InvalidArgumentError, match="was cleared") as e:
            read_sum(ta, COUNT)
        assert e.value.reason == "cleared"
    else:
        assert read_sum(ta, COUNT) == COUNT * (COUNT - 1) / 2
    assert idle(ta)


@njit(parallel=True, cache=True)
def looked_at(ta, rows, out):
    for i in prange(len(out)):
        out[i] = ta[i] + ta[-1 - i] + rows[i][1]


@pytest.mark.parametrize("clears", [False, True])
def test_looks_in_a_loop_see_what_was_written_before(clears):
    count = 64
    ta = array(count, clear_after_read=clears).unstack(np.arange(float(count)))
    rows = array(count, shape=(3,), clear_after_read=clears).unstack(np.ones((count, 3)))
    if not clears:
        ta.read(0)
    out = np.zeros(count)
    looked_at(ta, rows, out)
    assert (out == count).all()
    rows.read(5)
    if clears:
        with pytest.raises(nbta.InvalidArgumentError, match="slot 5 was cleared"):
            looked_at(ta, rows, out)
    with pytest.raises(nbta.FailedPreconditionError, match="may change while"):
        looked_at(array(count).write(0, 0.0), rows, out)
    assert idle(ta)
    assert idle(rows)


@pytest.mark.slow
def test_slots_that_nobody_wrote_read_as_zeros_and_take_no_writes(threads):
    ta = array(COUNT)
    assert read_sum(ta, COUNT) == 0
    with pytest.raises(nbta.InvalidArgumentError, match="was read"):
        write(ta, 1)
    assert idle(ta)


@njit(parallel=True, cache=True)
def stack_inside(ta, count):
    total = 0.0
    for _ in prange(count):
        total += ta.stack().sum()
    return total


@pytest.mark.slow
def test_a_stack_in_the_loop_is_refused(threads):
    ta = array(3).unstack([1.0, 2.0, 3.0])
    with pytest.raises(nbta.FailedPreconditionError, match=r"stack on .*before or after") as e:
        stack_inside(ta, 10)
    assert e.value.reason == "bulk_in_loop"
    assert idle(ta)
    np.testing.assert_array_equal(ta.stack(), [1, 2, 3])


# Growth.


@pytest.mark.slow
@pytest.mark.parametrize("function", [append, write])
def test_growth_in_a_loop_is_refused(threads, function):
    ta = array(3, dynamic_size=True)
    with pytest.raises(nbta.FailedPreconditionError, match=r"slot 3 is past the end .* lanes") as e:
        function(ta, 10)
    assert e.value.reason == "growth_in_loop"
    assert idle(ta)
    assert len(ta) == 3
    assert len(ta.append(1.0)) == 4


@pytest.mark.slow
def test_growth_of_a_gradient_array_by_reads_is_refused(threads):
    gradient = array(3, dynamic_size=True).grad("gradients")
    with pytest.raises(nbta.FailedPreconditionError, match="slot 3 is past the end of the"):
        read_sum(gradient, 5)
    assert idle(gradient)
    assert len(gradient) == 3


# Gradient arrays.


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
def test_a_second_term_of_a_rounded_sum_is_refused_in_one_loop(threads, dtype):
    gradient = array(10, dtype).unstack(np.zeros(10, dtype)).grad("gradients")
    add(gradient, 10, 10)
    add(gradient, 10, 10)
    with pytest.raises(nbta.FailedPreconditionError, match="depend on the schedule") as e:
        add(gradient, 11, 10)
    assert e.value.reason == "deposited_twice"
    assert idle(gradient)
    assert set(gradient.stack()) <= {2, 3}


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["int8", "int64", "uint32"])
def test_integers_may_be_added_up_in_one_loop(threads, dtype):
    gradient = array(10, dtype).unstack(np.zeros(10, dtype)).grad("gradients")
    add(gradient, 1000, 10)
    np.testing.assert_array_equal(gradient.stack(), np.full(10, 100))
    assert idle(gradient)


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(1000,), (7,)])
def test_rows_are_added_side_by_side(threads, shape):
    rows = np.random.default_rng(0).normal(size=(50, *shape))
    gradient = array(50, shape=shape).unstack(rows).grad("gradients")
    for _ in range(3):
        add_rows(gradient, rows)
    np.testing.assert_array_equal(gradient.stack(), rows + rows + rows)
    assert idle(gradient)


@njit(parallel=True, cache=True)
def look_up(ta, count):
    for i in prange(count):
        ta.grad("gradients").accumulate(i, 1.0)


@njit(parallel=True, cache=True)
def look_up_one_slot(ta, count):
    for _ in prange(count):
        ta.grad("gradients").accumulate(0, 1.0)


@pytest.mark.slow
def test_lookups_in_the_loop_find_one_accumulator(threads):
    ta = array(COUNT).unstack(np.zeros(COUNT))
    look_up(ta, COUNT)
    look_up(ta, COUNT)
    owners = python_calls.native(python_calls.gradient_owners)(ta._address)
    assert len(owners) == 8
    assert idle(ta)
    assert idle(ta.grad("gradients"))
    np.testing.assert_array_equal(ta.grad("gradients").stack(), np.full(COUNT, 2))


@pytest.mark.slow
def test_failures_of_arrays_that_the_loop_looks_up_are_raised(threads):
    ta = array(2).unstack([1.0, 2.0])
    with pytest.raises(nbta.FailedPreconditionError, match="@gradients: slot 0 was added to"):
        look_up_one_slot(ta, 10)
    assert idle(ta)
    assert idle(ta.grad("gradients"))


# Failures.


@njit(parallel=True, cache=True)
def fail_in_both(ta, other, count):
    for i in prange(count):
        if i % 2:
            ta.write(i + 100, 1.0)
        else:
            other.write(i + 100, 1.0)


@njit(parallel=True, cache=True)
def serial_because_of_a_raise(ta, count):
    for i in prange(count):
        if i == 7:
            raise ValueError("seven")
        ta.write(i, 1.0)


@njit(parallel=True, cache=True)
def serial_loop(ta, count):
    for i in range(count):
        ta.write(i, 1.0)


@njit(parallel=True, cache=True)
def caught(ta, count):
    for i in prange(count):
        ta.write(i, 1.0)
    return 1


@pytest.mark.slow
def test_of_several_failures_in_one_array_the_lowest_slot_is_told():
    before = numba.get_num_threads()
    numba.set_num_threads(1)
    try:
        with pytest.raises(nbta.InvalidArgumentError, match="no slot 10:"):
            write(array(10), 20)
    finally:
        numba.set_num_threads(before)


@pytest.mark.slow
def test_failures_in_two_arrays_raise_one_and_leave_both_usable(threads):
    ta, other = array(10), array(10)
    for _ in range(2):
        with pytest.raises(nbta.InvalidArgumentError, match=r"there is no slot 10\d"):
            fail_in_both(ta, other, 8)
        assert ta._fields[FIELD.users] == other._fields[FIELD.users] == 0
    write(other, 10)
    write(ta, 10)
    assert idle(ta)
    assert idle(other)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::numba.core.errors.NumbaPerformanceWarning")
def test_failures_in_serial_loops_are_raised_at_once():
    ta = array(10)
    with pytest.raises(nbta.InvalidArgumentError, match="no slot 10:"):
        serial_loop(ta, 20)
    assert (ta.stack() == 1).all()
    assert idle(ta)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::numba.core.errors.NumbaPerformanceWarning")
def test_a_loop_with_a_raise_runs_serially_and_raises():
    ta = array(10)
    with pytest.raises(ValueError, match="seven"):
        serial_because_of_a_raise(ta, 10)
    np.testing.assert_array_equal(ta.stack(), [1] * 7 + [0] * 3)
    with pytest.raises(nbta.InvalidArgumentError, match="no slot 3:"):
        serial_because_of_a_raise(array(3), 6)
    assert idle(ta)


@pytest.mark.slow
def test_closed_arrays_in_a_loop(threads):
    ta = array(10)
    ta.close()
    with pytest.raises(nbta.InvalidArgumentError, match="closed"):
        write(ta, 10)
    assert ta._fields[FIELD.users] == 0


# Other threads at the same time.


@njit(parallel=True, cache=True)
def write_from(ta, first, count):
    for i in prange(count):
        ta.write(first + i, float(first + i))


@njit(parallel=True, nogil=True, cache=True)
def write_without_lock(ta, first, count):
    for i in prange(count):
        ta.write(first + i, float(first + i))


@pytest.mark.slow
@pytest.mark.parametrize("function", [write_without_lock, write_from])
def test_loops_of_several_python_threads_share_an_array(threads, function):
    if numba.threading_layer() == "workqueue":
        pytest.skip("Numba's workqueue layer ends a process that does so")
    ta = array(4 * COUNT)
    results = together(*(lambda n=n: function(ta, n * COUNT, COUNT) for n in range(4)))
    assert not unexpected(results)
    np.testing.assert_array_equal(ta.stack(), np.arange(4 * COUNT))
    assert idle(ta)


@pytest.mark.slow
def test_python_threads_write_to_an_array_while_a_loop_does(threads):
    ta = array(20 * COUNT)

    def eager():
        for slot in range(10 * COUNT, 11 * COUNT):
            ta.write(slot, float(slot))

    def loop():
        write_without_lock(ta, 0, 10 * COUNT)

    assert not unexpected(together(loop, eager))
    np.testing.assert_array_equal(ta.stack()[: 11 * COUNT], np.arange(11 * COUNT))
    assert idle(ta)


@pytest.mark.slow
def test_an_array_closed_while_a_loop_uses_it_ends_the_loop(threads):
    closed = 0
    for _ in range(5):
        ta = array(200_000)
        looped, _ = together(lambda ta=ta: write(ta, 200_000), ta.close)
        closed += getattr(looped, "reason", None) == "closed"
        assert looped is None or looped.reason == "closed"
        assert ta.closed
        assert ta._fields[FIELD.users] == 0
    assert closed


# Layers.

_PROGRAM = """
    import numba, numpy as np, nbta
    from nbta import cli
    from numba import njit, prange

    announced = cli._threading_layer()

    @njit(parallel=True)
    def write(ta, count):
        for i in prange(count):
            ta.write(i, float(i))

    for threads in range(1, numba.config.NUMBA_NUM_THREADS + 1):
        numba.set_num_threads(threads)
        ta = nbta.TensorArray("float64", 1000, element_shape=())
        write(ta, 1000)
        assert (ta.stack() == np.arange(1000)).all()
        try:
            write(ta, 2)
        except nbta.InvalidArgumentError as error:
            assert error.reason == "already_read"
        else:
            raise AssertionError("the loop's failure was lost")
    assert announced == f"{numba.threading_layer()}, not started"
    assert cli._threading_layer() == numba.threading_layer()
    print(numba.threading_layer())
"""


@pytest.mark.slow
@pytest.mark.parametrize("layer", ["workqueue", "omp", "default"])
def test_both_of_numbas_own_layers_and_info_tells_which(layer):
    environment = {**os.environ, "NUMBA_THREADING_LAYER": layer}
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(_PROGRAM)],
        env=environment, capture_output=True, text=True, timeout=LIMIT,
    )  # fmt: skip
    assert run.stderr == ""
    assert run.stdout.strip() == layer or layer == "default"


# Lanes in loops.


@njit(parallel=True, cache=True)
def fill_lanes(ta, n, slot):
    parts = ta.lanes(n)
    for k in prange(n):
        part = parts.take(k)
        part.append(1.0)
        part.write(slot, 2.0)
    return parts.join()


@njit(cache=True)
def take_one(parts, k):
    parts.take(k).append(1.0)


@njit(parallel=True, cache=True)
def take_twice(ta, n):
    parts = ta.lanes(n)
    for k in prange(2 * n):
        take_one(parts, k // 2)
    return parts.join()


@njit(parallel=True, cache=True)
def join_within(ta):
    parts = ta.lanes(2)
    for _ in prange(2):
        ta.size()
        parts.join()


def growing():
    return nbta.TensorArray("float64", dynamic_size=True, element_shape=())


@pytest.mark.slow
def test_what_fails_in_a_lane_is_raised_after_the_loop():
    assert len(fill_lanes(growing(), 4, 1)) == 8
    with pytest.raises(nbta.InvalidArgumentError, match="slot 0 holds a value"):
        fill_lanes(growing(), 4, 0)
    with pytest.raises(nbta.InvalidArgumentError, match=r"lane \d was already taken"):
        take_twice(growing(), 4)


@pytest.mark.slow
def test_lanes_are_not_joined_in_a_loop_that_uses_the_array():
    ta = growing().append(1.0)
    with pytest.raises(nbta.FailedPreconditionError, match="a parallel loop uses the array"):
        join_within(ta)
    assert list(ta.append(2.0).stack()) == [1.0, 2.0]
