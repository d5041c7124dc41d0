"""One array used by many Python threads: nothing is lost, and nothing waits forever."""

import os
import threading
import time

import numpy as np
import pytest
from numba import njit
from together import LIMIT, together, unexpected, watchdog

import nbta
from nbta.runtime import python_calls, settings
from nbta.runtime.store import FIELD

THREADS = 8
#: Elements below, and above, the size from which on a call lets go of the interpreter's lock.
SMALL, LARGE = 1, settings.get(settings.LARGE) // 8
SHAPES = [(), (3,), (LARGE,)]
SHAPE_NAMES = ["items", "small", "large"]
shapes = pytest.mark.parametrize("shape", SHAPES, ids=SHAPE_NAMES)


def array(size=0, shape=(), **options):
    options = {"element_shape": shape, "clear_after_read": False, **options}
    return nbta.TensorArray("float64", size, **options)


def values(count, shape):
    """An element a slot, full of its number."""
    return np.broadcast_to(np.arange(count, dtype=np.float64).reshape(-1, *[1] * len(shape)),
                           (count, *shape)).copy()  # fmt: skip


def intact(ta):
    """Whether nobody wrote beside an array's buffers, and its fast paths are open again."""
    users = ta._fields[FIELD.users]
    return users == 0 and python_calls.native(python_calls.guards_intact)(ta._address)


def outcome(operation, *args):
    """What an operation gives, or the reason of its error."""
    try:
        return operation(*args)
    except nbta.NbtaError as error:
        return error.reason


# Python threads.


@pytest.mark.slow_but_every(3)
@shapes
def test_each_thread_writes_its_own_slots(shape):
    each = 40 if shape == (LARGE,) else 400
    ta, rows = array(THREADS * each, shape), values(THREADS * each, shape)

    def writer(number):
        for slot in range(number, len(rows), THREADS):
            ta.write(slot, rows[slot])

    assert not unexpected(together(*(lambda n=n: writer(n) for n in range(THREADS))))
    np.testing.assert_array_equal(ta.stack(), rows)
    assert intact(ta)


@pytest.mark.slow_but_every(3)
@shapes
def test_one_writer_of_a_slot_wins_and_the_others_are_told(shape):
    slots = 50
    ta, rows = array(slots, shape), values(THREADS, shape)

    def writer(number):
        return [s for s in range(slots) if outcome(ta.write, s, rows[number]) is ta]

    won = together(*(lambda n=n: writer(n) for n in range(THREADS)))
    assert outcome(ta.write, 0, rows[0]) == "already_written"
    assert not unexpected(won)
    assert sorted(slot for slots in won for slot in slots) == list(range(slots))
    for number, slots in enumerate(won):
        for slot in slots:
            np.testing.assert_array_equal(ta.read(slot), rows[number])


@pytest.mark.slow_but_every(3)
@shapes
def test_no_append_is_lost(shape):
    each = 30 if shape == (LARGE,) else 500
    ta, rows = array(0, shape, dynamic_size=True), values(THREADS, shape)

    def appender(number):
        for _ in range(each):
            ta.append(rows[number])

    assert not unexpected(together(*(lambda n=n: appender(n) for n in range(THREADS))))
    first = ta.stack().reshape(THREADS * each, -1)
    assert (first == first[:, :1]).all()
    numbers, counts = np.unique(first[:, 0], return_counts=True)
    assert numbers.tolist() == list(range(THREADS))
    assert set(counts) == {each}
    assert intact(ta)


def test_ragged_appends_and_large_pieces_are_all_there():
    ta = array(0, None, dynamic_size=True, infer_shape=False)
    lengths = [1, LARGE, 7, 2 * LARGE]

    def appender(length):
        for _ in range(25):
            ta.append(np.full(length, float(length)))

    assert not unexpected(together(*(lambda n=n: appender(n) for n in lengths)))
    value, found = ta.concat()
    assert sorted(found) == sorted(lengths * 25)
    np.testing.assert_array_equal(value, np.repeat(found.astype(float), found))
    assert intact(ta)


@pytest.mark.slow_but_every(2)
@pytest.mark.parametrize("width", [4, LARGE], ids=["small", "large"])
def test_of_two_scatters_to_one_slot_one_happens_as_a_whole(width):
    for _ in range(10):
        ta = array(2 * THREADS + 1, (width,))
        shared = 2 * THREADS

        def scatter(number, ta=ta, shared=shared):
            slots = [2 * number, shared, 2 * number + 1]
            ta.scatter(slots, np.full((3, width), number + 1.0))
            return number

        results = together(*(lambda n=n: scatter(n) for n in range(THREADS)))
        (winner,) = (result for result in results if not isinstance(result, Exception))
        assert {error.reason for error in unexpected(results)} == {"already_written"}
        expected = np.zeros((2 * THREADS + 1, width))
        expected[[2 * winner, shared, 2 * winner + 1]] = winner + 1
        np.testing.assert_array_equal(ta.stack(), expected)


@pytest.mark.slow
def test_small_writes_wait_for_a_large_operation_of_another_thread():
    slots = 400_000
    for delay in np.arange(0, 0.003, 1e-4):
        ta = array(slots)

        def write(ta=ta, delay=delay):
            while not ta._fields[FIELD.users] and not ta._states()[0]:
                pass
            begin = time.perf_counter()
            while time.perf_counter() < begin + delay:
                pass
            return outcome(ta.write, slots - 1, 2.0)

        unstacked, written = together(lambda ta=ta: outcome(ta.unstack, np.ones(slots)), write)
        if written is ta:  # it had the lock first, ahead of all of the other operation
            assert unstacked == "already_written"
            assert ta._states()[:-1].max() == 0
        else:
            assert (unstacked, written) == (ta, "already_written")
            assert (ta.stack() == 1).all()


@pytest.mark.slow_but_every(3)
@shapes
def test_each_value_is_read_and_cleared_once(shape):
    slots = 60
    rows = values(slots, shape)
    ta = array(slots, shape, clear_after_read=True).unstack(rows)

    def reader():
        found = [(slot, outcome(ta.read, slot)) for slot in range(slots)]
        return [(slot, value) for slot, value in found if not isinstance(value, str)]

    results = together(*[reader] * THREADS)
    assert not unexpected(results)
    assert outcome(ta.read, 0) == "cleared"
    got = sorted((pair for result in results for pair in result), key=lambda pair: pair[0])
    assert [slot for slot, _ in got] == list(range(slots))
    for slot, value in got:
        np.testing.assert_array_equal(value, rows[slot])


@pytest.mark.slow_but_every(3)
@shapes
def test_a_stack_sees_each_write_as_a_whole(shape):
    slots = 60
    ta, rows = array(slots, shape), values(slots, shape) + 1

    def writer():
        for slot in range(slots):  # unless a stack has read it as zeros
            assert outcome(ta.write, slot, rows[slot]) in (ta, "already_read")

    def stacker():
        return [ta.stack().copy() for _ in range(20)]

    written, *stacks = together(writer, stacker, stacker)
    assert not unexpected([written, *stacks])
    for stack in (stack for several in stacks for stack in several):
        for slot in range(slots):
            assert (stack[slot] == 0).all() or (stack[slot] == rows[slot]).all()


@pytest.mark.slow
def test_reads_while_an_array_grows_give_what_was_written():
    ta = array(0, (LARGE // 16,), dynamic_size=True)
    grown = threading.Event()

    def grow():
        try:
            for slot in range(300):
                ta.append(np.full(LARGE // 16, float(slot)))
        finally:
            grown.set()

    def read():
        random = np.random.default_rng(0)
        while not grown.is_set():
            if len(ta):
                slot = int(random.integers(len(ta)))
                assert (ta.read(slot) == slot).all()

    assert not unexpected(together(grow, read, read))


@pytest.mark.slow
def test_concat_while_an_array_grows_has_room_for_its_lengths():
    ta = array(0, (1,), dynamic_size=True).append([0.0])

    def grow():
        for slot in range(1, 3000):
            ta.append(np.array([float(slot)]))

    def join():
        for _ in range(200):
            value, lengths = ta.concat()
            assert len(value) == len(lengths)
            np.testing.assert_array_equal(value, np.arange(len(value)))

    assert not unexpected(together(grow, join))


@pytest.mark.slow_but_every(3)
@shapes
def test_closing_while_others_use_an_array_ends_their_use(shape):
    for _ in range(5):
        ta, row = array(0, shape, dynamic_size=True), values(2, shape)[1]

        def use(ta=ta, row=row):
            while True:
                try:
                    ta.append(row)
                    assert np.array_equal(ta.read(0), row)
                    ta.stack()
                except nbta.InvalidArgumentError as error:
                    return error.reason

        def close(ta=ta):
            time.sleep(0.01)
            ta.close()

        assert together(use, use, use, close) == ["closed"] * 3 + [None]
        assert intact(ta)


# Gradient arrays.


def test_threads_with_one_source_share_one_accumulator():
    for _ in range(20):
        ta = array(3).unstack([1.0, 2.0, 3.0])

        def look_up_and_add(ta=ta):
            gradient = ta.grad("gradients")
            for slot in range(3):
                gradient.accumulate(slot, 2.0 ** (8 * slot))
            return gradient

        gradients = together(*[look_up_and_add] * THREADS)
        assert not unexpected(gradients)
        assert len({gradient._address for gradient in gradients}) == 1
        owners = python_calls.native(python_calls.gradient_owners)(ta._address)
        assert len(owners) == 8
        sums = THREADS * 2.0 ** np.array([0, 8, 16])
        np.testing.assert_array_equal(gradients[0].stack(), sums)


def test_threads_with_their_own_sources_have_an_accumulator_each():
    ta, sources = array(2).unstack([1.0, 2.0]), 12

    def add(number):
        for _ in range(20):
            for k in range(sources):
                source = f"gradients_{(k + number) % sources}"
                ta.grad(source).accumulate(0, 1.0 + (k + number) % sources)

    assert not unexpected(together(*(lambda n=n: add(n) for n in range(THREADS))))
    assert len(python_calls.native(python_calls.gradient_owners)(ta._address)) == 8 * sources
    for k in range(sources):
        assert ta.grad(f"gradients_{k}").read(0) == 20 * THREADS * (k + 1)


@pytest.mark.slow_but_every(2)
@pytest.mark.parametrize("width", [2, LARGE], ids=["small", "large"])
def test_sums_of_many_threads_lose_no_term(width):
    gradient = array(3, (width,)).unstack(np.zeros((3, width))).grad("gradients")

    def add(number):
        for k in range(60):
            gradient.accumulate(k % 3, np.full(width, 2.0**number))

    assert not unexpected(together(*(lambda n=n: add(n) for n in range(THREADS))))
    np.testing.assert_array_equal(gradient.stack(), np.full((3, width), 20 * (2.0**THREADS - 1)))


# Functions that run without the interpreter's lock.


@njit(nogil=True, cache=True)
def write_all(ta, first, step):
    for slot in range(first, ta.size(), step):
        ta.write(slot, float(slot))


@njit(nogil=True, cache=True)
def append_all(ta, count, value):
    for _ in range(count):
        ta.append(value)


@njit(nogil=True, cache=True)
def append_rows(ta, count, row):
    for _ in range(count):
        ta.append(row)


@njit(nogil=True, cache=True)
def add_all(ta, source, count):
    gradient = ta.grad(source)
    for k in range(count):
        gradient.accumulate(k % 2, 1.0)


@njit(nogil=True, cache=True)
def read_rows(ta, count):
    wrong = 0
    for k in range(count):
        slot = k % max(ta.size(), 1)
        if slot < ta.size():
            row = ta.read(slot)
            wrong += row[0] != row[-1]
    return wrong


@njit(nogil=True, cache=True)
def append_to_both(pair, count):
    for k in range(count):
        pair[0].append(float(k))
        pair[1].append(float(k))


@njit(cache=True)
def append_holding(ta, count, value):
    for _ in range(count):
        ta.append(value)


@njit(nogil=True, cache=True)
def write_past_the_end(ta):
    ta.write(ta.size(), 1.0)


COUNT = 20_000


@pytest.mark.slow
def test_nogil_functions_write_slots_side_by_side():
    ta = array(COUNT)
    write_all(array(1), 0, 1)  # compiled before the threads start
    assert not unexpected(together(*(lambda n=n: write_all(ta, n, 4) for n in range(4))))
    np.testing.assert_array_equal(ta.stack(), np.arange(COUNT))
    assert intact(ta)


@pytest.mark.slow
def test_nogil_plain_and_eager_appends_to_one_array_are_all_there():
    ta = array(0, dynamic_size=True)

    def eager():
        for _ in range(COUNT // 10):
            ta.append(3.0)

    results = together(
        lambda: append_all(ta, COUNT, 1.0),
        lambda: append_all(ta, COUNT, 1.0),
        lambda: [append_holding(ta, COUNT // 10, 2.0) for _ in range(10)],
        eager,
    )
    assert not unexpected(results)
    found = np.unique(ta.stack(), return_counts=True)
    np.testing.assert_array_equal(found, [[1, 2, 3], [2 * COUNT, COUNT, COUNT // 10]])
    assert intact(ta)


@pytest.mark.slow
def test_nogil_readers_see_whole_elements_while_an_array_grows():
    ta = array(1, (16,), dynamic_size=True)
    ta.write(0, np.zeros(16))
    append_rows(array(0, (16,), dynamic_size=True), 1, np.zeros(16))
    results = together(
        lambda: append_rows(ta, COUNT, np.ones(16)),
        lambda: append_rows(ta, COUNT, np.full(16, 2.0)),
        lambda: read_rows(ta, COUNT),
        lambda: read_rows(ta, COUNT),
    )
    assert results == [None, None, 0, 0]
    assert len(ta) == 2 * COUNT + 1
    assert intact(ta)


@pytest.mark.slow
def test_nogil_lookups_of_one_source_make_one_accumulator_that_loses_nothing():
    ta = array(2).unstack([1.0, 2.0])
    results = together(
        *[lambda: add_all(ta, "gradients", COUNT)] * 3,
        *[lambda: add_all(ta, "others", COUNT)] * 2,
    )
    assert not unexpected(results)
    assert len(python_calls.native(python_calls.gradient_owners)(ta._address)) == 16
    np.testing.assert_array_equal(ta.grad("gradients").stack(), [3 * COUNT / 2] * 2)
    np.testing.assert_array_equal(ta.grad("others").stack(), [COUNT] * 2)
    assert intact(ta)
    assert intact(ta.grad("others"))


@pytest.mark.slow
def test_arrays_in_a_tuple_are_told_of_a_nogil_function_too():
    pair = array(0, dynamic_size=True), array(0, dynamic_size=True)
    assert not unexpected(together(*[lambda: append_to_both(pair, COUNT)] * 3))
    assert [len(ta) for ta in pair] == [3 * COUNT] * 2
    assert all(map(intact, pair))


@pytest.mark.slow
def test_a_nogil_function_that_fails_leaves_the_array_as_any_other():
    ta = array(2)
    with pytest.raises(nbta.InvalidArgumentError, match=r"write on .* no slot 2"):
        write_past_the_end(ta)
    assert intact(ta)


@pytest.mark.slow
def test_closing_an_array_that_a_nogil_function_uses_ends_the_function():
    ta = array(0, (16,), dynamic_size=True).append(np.zeros(16))

    def close():
        time.sleep(0.02)
        ta.close()

    results = together(
        lambda: append_rows(ta, 100_000_000, np.ones(16)),
        lambda: read_rows(ta, 100_000_000),
        close,
    )
    assert [getattr(error, "reason", None) for error in results] == ["closed", "closed", None]
    assert intact(ta)


# Processes.


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
def test_a_child_may_use_an_array_whose_lock_its_parents_thread_held():
    ta, rows = array(0, (LARGE,), dynamic_size=True), np.ones((8, LARGE))
    done = threading.Event()

    def fill():
        while not done.is_set():
            ta.append(rows[0])
            ta.scatter(range(len(ta), len(ta) + 8), rows)

    filler = threading.Thread(target=fill)
    with watchdog():
        filler.start()
        try:
            statuses = [_status_of(_fork(ta)) for _ in range(30)]
        finally:
            done.set()
            filler.join(LIMIT)
    assert statuses == [0] * 30
    assert intact(ta)


def _fork(ta):
    """A child that appends to an array and goes; its number."""
    child = os.fork()
    if child == 0:
        try:
            before = len(ta)
            ta.append(np.full(LARGE, 2.0))
            ok = len(ta) > before and (ta.read(len(ta) - 1) == 2.0).all() and intact(ta)
            os._exit(0 if ok else 1)
        except BaseException:
            os._exit(2)
    return child


def _status_of(child):
    """A child's exit code; one that hangs is ended, and its code is that of the signal."""
    until = time.monotonic() + LIMIT / 4
    while time.monotonic() < until:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.005)
    os.kill(child, 9)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
