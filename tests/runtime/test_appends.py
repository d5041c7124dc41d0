"""Appends in compiled loops leave states to whoever looks: every way to look finds them."""

import pickle

import numpy as np
import pytest
from numba import njit

import nbta
from nbta.errors import InvalidArgumentError
from nbta.runtime import memory as mem
from nbta.runtime import python_calls
from nbta.runtime.store import FIELD

#: Around the boundaries of growth: what a store itself holds, and the first buffers.
COUNTS = (1, 2, 10, 11, 12, 13, 40, 41, 44, 45, 60, 180)


@njit(cache=True)
def append_scalars(array, count):
    """Append numbers in a loop whose length the compiler does not know."""
    k = 0
    while k < count:
        array.append(float(k))
        k += 1


@njit(cache=True)
def append_all(array, count):
    """The same over a range, whose slots are looked at together."""
    for k in range(count):
        array.append(float(k))


@njit(cache=True)
def append_vectors(array, count):
    """Elements with a dimension."""
    value, k = np.empty(3), 0
    while k < count:
        value[:] = k
        array.append(value)
        k += 1


@njit(cache=True)
def append_then_fail(array, count):
    """Leave the loop by an exception."""
    k = 0
    while True:
        array.append(float(k))
        k += 1
        if k == count:
            raise ValueError("enough")


@njit(cache=True)
def append_and_look(array, count):
    """Look at what was just appended, by each of the ways that have a fast path."""
    total, k = 0.0, 0
    while k < count:
        array.append(float(k))
        total += array[k] if k % 3 else array.read(k)
        if k % 7 == 3:
            array.write(k + 1, -1.0)
            k += 1
        k += 1
    return total


@njit(cache=True)
def append_by_two_names(one, other, count):
    """Two arguments, which may be one array."""
    k = 0
    while k < count:
        one.append(float(k))
        other.append(float(-k))
        k += 1


@njit(cache=True)
def write_again(array, slot):
    """A write to a slot that an append took."""
    array.write(slot, 0.0)


@njit(cache=True)
def append_write_again(array, count):
    """The same in the loop that appends."""
    k = 0
    while k < count:
        array.append(float(k))
        k += 1
    for slot in range(count):
        array.write(slot, 0.0)


def growing(shape=(), **options):
    """An empty array."""
    return nbta.TensorArray(np.float64, dynamic_size=True, element_shape=shape, **options)


def waits(array):
    """Whether states of an array are not stored yet."""
    fields = njit(lambda address: mem.load_int(address + 8 * FIELD.fast_append))
    return bool(fields(array._address))


def appended(count, append=append_scalars, shape=(), **options):
    """An array after a loop of appends, and its elements."""
    array = growing(shape, **options)
    append(array, count)
    elements = np.arange(float(count))
    return array, np.repeat(elements, 3).reshape(-1, 3) if shape else elements


def test_states_wait():
    """Or nothing here is tested."""
    array, _ = appended(50)
    assert waits(array)
    assert array._states().tolist() == [1] * 50
    assert not waits(array)


#: What may be done next: it finds all elements.
LOOKS = {
    "read": lambda array: [array.read(k) for k in range(len(array))],
    "getitem": lambda array: [array[k] for k in range(len(array))],
    "stack": lambda array: array.stack(),
    "gather": lambda array: array.gather(range(len(array))),
    "asarray": np.asarray,
    "iterate": list,
    "pickle": lambda array: pickle.loads(pickle.dumps(array)).stack(),
    "after appends": lambda array: (array.append(array[0]), array.stack()[:-1])[1],
    "states": lambda array: array.stack() if (array._states() == 1).all() else None,
}


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("count", COUNTS)
def test_all_find_the_elements(look, count):
    for append, shape in ((append_scalars, ()), (append_all, ()), (append_vectors, (3,))):
        array, elements = appended(count, append, shape, clear_after_read=False)
        np.testing.assert_array_equal(LOOKS[look](array), elements)


@pytest.mark.parametrize("count", COUNTS)
def test_slots_are_written_once(count):
    for slot in (0, count // 2, count - 1):
        for write in (lambda array, k: array.write(k, 0.0), write_again):
            array, elements = appended(count, clear_after_read=False)
            with pytest.raises(InvalidArgumentError, match="written once"):
                write(array, slot)
            np.testing.assert_array_equal(array.stack(), elements)
    array = growing()
    with pytest.raises(InvalidArgumentError, match="written once"):
        append_write_again(array, count)


@pytest.mark.parametrize("count", COUNTS)
def test_gradients_and_sizes(count):
    array, elements = appended(count)
    sums = array.grad("sums")
    np.testing.assert_array_equal(sums.stack(), np.zeros(count))
    with pytest.raises(InvalidArgumentError, match="slot"):
        append_scalars(array, 1)
    array.scatter([], np.zeros((0,)))
    np.testing.assert_array_equal(array.stack(), elements)


@pytest.mark.parametrize("count", COUNTS)
def test_later_writes(count):
    """Slots that a jump leaves out are unwritten, and appends go on after it."""
    array, elements = appended(count)
    array.write(count + 3, 7.0)
    append_scalars(array, 2)
    expected = [*elements, 0.0, 0.0, 0.0, 7.0, 0.0, 1.0]
    states = [1] * count + [0, 0, 0, 1, 1, 1]
    assert array._states().tolist() == states
    np.testing.assert_array_equal(array.stack(), expected)


@pytest.mark.parametrize("count", COUNTS)
def test_an_exception_leaves_what_was_appended(count):
    array = growing()
    with pytest.raises(ValueError, match="enough"):
        append_then_fail(array, count)
    np.testing.assert_array_equal(array.stack(), np.arange(float(count)))


@pytest.mark.parametrize("count", COUNTS)
def test_loops_that_look(count):
    compiled, plain = growing(clear_after_read=False), growing(clear_after_read=False)
    assert append_and_look(compiled, count) == append_and_look.py_func(plain, count)
    assert compiled._states().tolist() == plain._states().tolist()
    np.testing.assert_array_equal(compiled.stack(), plain.stack())


@pytest.mark.parametrize("count", COUNTS)
def test_two_names(count):
    one, other = growing(), growing()
    append_by_two_names(one, other, count)
    append_by_two_names(one, one, count)
    both = np.stack([np.arange(float(count)), -np.arange(float(count))], axis=1).ravel()
    np.testing.assert_array_equal(one.stack(), [*np.arange(float(count)), *both])
    np.testing.assert_array_equal(other.stack(), -np.arange(float(count)))
    assert python_calls.native(python_calls.guards_intact)(one._address)
