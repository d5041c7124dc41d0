"""Writes, reads and sums in compiled loops over arrays of a fixed size."""

import time
from functools import partial

import numpy as np
from numba import njit

import nbta

from . import common

_UNWRITTEN, _WRITTEN, _READ = 0, 1, 3


@njit(cache=True)
def write_nbta(array, n, value):
    """Write one value to every slot."""
    for i in range(n):
        array.write(i, value)


@njit(cache=True)
def write_scalars(values, states, value):
    """`write_nbta` on NumPy arrays; the slot that was taken, or -1."""
    for i in range(len(values)):
        if states[i] != _UNWRITTEN:
            return i
        values[i] = value
        states[i] = _WRITTEN
    return -1


@njit(cache=True)
def write_vectors(values, states, value):
    """`write_scalars` for vectors."""
    for i in range(len(values)):
        if states[i] != _UNWRITTEN:
            return i
        for k in range(len(value)):
            values[i, k] = value[k]
        states[i] = _WRITTEN
    return -1


@njit(cache=True)
def write_nbta_numbers(array, n):
    """Write values that the loop makes."""
    for i in range(n):
        array.write(i, float(i))


@njit(cache=True)
def write_numbers(values, states):
    """`write_nbta_numbers` on NumPy arrays."""
    for i in range(len(values)):
        if states[i] != _UNWRITTEN:
            return i
        values[i] = float(i)
        states[i] = _WRITTEN
    return -1


@njit(cache=True)
def write_nbta_vectors(array, n, value):
    """Write vectors whose first item the loop makes."""
    for i in range(n):
        value[0] = i
        array.write(i, value)


@njit(cache=True)
def write_changing_vectors(values, states, value):
    """`write_nbta_vectors` on NumPy arrays."""
    for i in range(len(values)):
        value[0] = i
        if states[i] != _UNWRITTEN:
            return i
        for k in range(len(value)):
            values[i, k] = value[k]
        states[i] = _WRITTEN
    return -1


@njit(cache=True)
def read_nbta_scalars(array, n):
    """Sum of all elements."""
    total = 0.0
    for i in range(n):
        total += array.read(i)
    return total


@njit(cache=True)
def read_scalars(values, states):
    """`read_nbta_scalars` on NumPy arrays; NaN for a slot that may not be read."""
    total = 0.0
    for i in range(len(values)):
        if states[i] != _WRITTEN:
            return np.nan
        states[i] = _READ
        total += values[i]
    return total


@njit(cache=True)
def read_nbta_vectors(array, n, total):
    """Add all elements to ``total``."""
    for i in range(n):
        element = array.read(i)
        for k in range(len(total)):
            total[k] += element[k]


@njit(cache=True)
def read_vectors(values, states, total):
    """`read_nbta_vectors` on NumPy arrays; the slot that may not be read, or -1."""
    for i in range(len(values)):
        if states[i] != _WRITTEN:
            return i
        states[i] = _READ
        for k in range(len(total)):
            total[k] += values[i, k]
    return -1


@njit(cache=True)
def copy_nbta_scalars(array, out):
    """Copy all elements."""
    for i in range(len(out)):
        out[i] = array.read(i)


@njit(cache=True)
def copy_scalars(values, states, out):
    """`copy_nbta_scalars` on NumPy arrays."""
    for i in range(len(values)):
        if states[i] != _WRITTEN:
            return i
        states[i] = _READ
        out[i] = values[i]
    return -1


class _Sized(common.Pair):
    clock = staticmethod(time.process_time)
    params = (common.ELEMENTS,)
    param_names = ("element",)

    def count(self, element, *params):
        return common.items(element)


class Write(_Sized):
    """Write one value to every slot."""

    label = "in-kernel write"

    def make_nbta(self, count, element):
        """A fresh array."""
        array = common.touched_array(count, element)
        return partial(write_nbta, array, count, common.value_for(element))

    def make_peer(self, count, element):
        """Elements and state bytes, both fresh."""
        loop = write_scalars if element == "scalar" else write_vectors
        return partial(loop, *common.touched_numpy(count, element), common.value_for(element))


class WriteChanging(_Sized):
    """Write values that the loop makes, so that no compiler can set them up ahead of it."""

    label = "in-kernel write, value from the loop"

    def make_nbta(self, count, element):
        """A fresh array."""
        array = common.touched_array(count, element)
        if element == "scalar":
            return partial(write_nbta_numbers, array, count)
        return partial(write_nbta_vectors, array, count, common.value_for(element))

    def make_peer(self, count, element):
        """Elements and state bytes, both fresh."""
        given = common.touched_numpy(count, element)
        if element == "scalar":
            return partial(write_numbers, *given)
        return partial(write_changing_vectors, *given, common.value_for(element))


class Read(_Sized):
    """Read every slot, and sum."""

    label = "in-kernel read"
    params = (common.ELEMENTS, (True, False))
    param_names = ("element", "clear_after_read")

    def make_nbta(self, count, element, clear):
        """An array with all slots written."""
        array = common.touched_array(count, element, clear)
        write_nbta(array, count, common.value_for(element))
        if element == "scalar":
            return partial(read_nbta_scalars, array, count)
        return partial(read_nbta_vectors, array, count, np.zeros(element))

    def make_peer(self, count, element, clear):
        """Elements, and state bytes that say written."""
        values, states = common.touched_numpy(count, element)
        states[:] = _WRITTEN
        if element == "scalar":
            return partial(read_scalars, values, states)
        return partial(read_vectors, values, states, np.zeros(element))


class ReadCopying(_Sized):
    """Read every scalar into another array: no chain of additions hides the cost of reading."""

    label = "in-kernel read, copied"
    params = (("scalar",), (True, False))
    param_names = ("element", "clear_after_read")

    def make_nbta(self, count, element, clear):
        """An array with all slots written."""
        array = common.touched_array(count, element, clear)
        write_nbta(array, count, common.value_for(element))
        return partial(copy_nbta_scalars, array, np.ones(count))

    def make_peer(self, count, element, clear):
        """Elements, and state bytes that say written."""
        values, states = common.touched_numpy(count, element)
        states[:] = _WRITTEN
        return partial(copy_scalars, values, states, np.ones(count))


@njit(cache=True)
def look_nbta_scalars(array, n):
    """Sum of all elements, by index."""
    total = 0.0
    for i in range(n):
        total += array[i]
    return total


@njit(cache=True)
def iterate_nbta_scalars(array, n):
    """Sum of all elements, one after the other."""
    total = 0.0
    for element in array:
        total += element
    return total


@njit(cache=True)
def look_scalars(values, states):
    """The same on NumPy arrays; NaN for a slot without a value."""
    total = 0.0
    for i in range(len(values)):
        if states[i] != _WRITTEN:
            return np.nan
        total += values[i]
    return total


@njit(cache=True)
def look_nbta_vectors(array, n, total):
    """Add all elements to ``total``, by index."""
    for i in range(n):
        element = array[i]
        for k in range(len(total)):
            total[k] += element[k]


@njit(cache=True)
def iterate_nbta_vectors(array, n, total):
    """Add all elements to ``total``, one after the other."""
    for element in array:
        for k in range(len(total)):
            total[k] += element[k]


@njit(cache=True)
def look_vectors(values, states, total):
    """The same on NumPy arrays; the slot without a value, or -1."""
    for i in range(len(values)):
        if states[i] != _WRITTEN:
            return i
        element = values[i]
        for k in range(len(total)):
            total[k] += element[k]
    return -1


@njit(cache=True)
def scalar_of(array, i):
    """One element, for a loop that calls this."""
    return array[i]


@njit(cache=True)
def call_nbta_scalars(array, n):
    """Sum of all elements, by another function."""
    total = 0.0
    for i in range(n):
        total += scalar_of(array, i)
    return total


@njit(cache=True)
def add_vector(array, i, total):
    """Add one element to ``total``, for a loop that calls this."""
    element = array[i]
    for k in range(len(total)):
        total[k] += element[k]


@njit(cache=True)
def call_nbta_vectors(array, n, total):
    """Add all elements to ``total``, by another function."""
    for i in range(n):
        add_vector(array, i, total)


_LOOKS = {
    "ta[i]": (look_nbta_scalars, look_nbta_vectors),
    "ta[i] in a callee": (call_nbta_scalars, call_nbta_vectors),
    "for v in ta": (iterate_nbta_scalars, iterate_nbta_vectors),
}


class Look(_Sized):
    """Sum all elements without reading them."""

    label = "in-kernel look"
    params = (common.ELEMENTS, (True, False), tuple(_LOOKS))
    param_names = ("element", "clear_after_read", "way")

    def make_nbta(self, count, element, clear, way):
        """An array with all slots written."""
        array = common.touched_array(count, element, clear)
        write_nbta(array, count, common.value_for(element))
        scalars, vectors = _LOOKS[way]
        if element == "scalar":
            return partial(scalars, array, count)
        return partial(vectors, array, count, np.zeros(element))

    def make_peer(self, count, element, clear, way):
        """Elements, and state bytes that say written."""
        values, states = common.touched_numpy(count, element)
        states[:] = _WRITTEN
        if element == "scalar":
            return partial(look_scalars, values, states)
        return partial(look_vectors, values, states, np.zeros(element))


@njit(cache=True)
def write_nbta_columns(array, n, columns):
    """Write the columns of a matrix."""
    for i in range(n):
        array.write(i, columns[:, i])


@njit(cache=True)
def write_columns(values, states, columns):
    """The same on NumPy arrays; the slot that was taken, or -1."""
    for i in range(len(values)):
        if states[i] != _UNWRITTEN:
            return i
        for k in range(len(columns)):
            values[i, k] = columns[k, i]
        states[i] = _WRITTEN
    return -1


class WriteColumns(_Sized):
    """Write values that are not in C order."""

    label = "in-kernel write, columns"
    params = ((8, 64),)

    def make_nbta(self, count, element):
        """A fresh array."""
        array = common.touched_array(count, element)
        return partial(write_nbta_columns, array, count, np.ones((element, count)))

    def make_peer(self, count, element):
        """Elements and state bytes, both fresh."""
        given = common.touched_numpy(count, element)
        return partial(write_columns, *given, np.ones((element, count)))


@njit(cache=True)
def add_nbta(array, n, term):
    """Add a term to every slot."""
    for i in range(n):
        array.accumulate(i, term)


@njit(cache=True)
def add_scalars(sums, states, term):
    """`add_nbta` on NumPy arrays; the slot that takes no more terms, or -1."""
    for i in range(len(sums)):
        if states[i] != _WRITTEN:
            return i
        sums[i] += term
    return -1


@njit(cache=True)
def add_vectors(sums, states, term):
    """`add_scalars` for vectors."""
    for i in range(len(sums)):
        if states[i] != _WRITTEN:
            return i
        for k in range(len(term)):
            sums[i, k] += term[k]
    return -1


class AccumulateOnce(_Sized):
    """Add a term to every slot of a gradient array whose slots hold sums."""

    label = "in-kernel accumulate, each slot"

    def make_nbta(self, count, element):
        """A gradient array whose slots hold sums."""
        forward = nbta.TensorArray(
            np.float64, size=count, element_shape=common.element_shape(element)
        )
        array, term = forward.grad("sums"), common.value_for(element)
        write_nbta(array, count, term)
        return partial(add_nbta, array, count, term)

    def make_peer(self, count, element):
        """Sums, and state bytes that say written."""
        sums, states = common.touched_numpy(count, element)
        states[:] = _WRITTEN
        loop = add_scalars if element == "scalar" else add_vectors
        return partial(loop, sums, states, common.value_for(element))


_SLOTS, _ITEMS = 8, 1024


@njit(cache=True)
def accumulate_nbta(array, n, term):
    """Add a term to each slot in turn."""
    for i in range(n):
        array.accumulate(i % _SLOTS, term)


@njit(cache=True)
def accumulate_numpy(sums, n, term):
    """`accumulate_nbta` as plain loops."""
    for i in range(n):
        row = sums[i % _SLOTS]
        for k in range(len(term)):
            row[k] += term[k]


class Accumulate(common.Pair):
    """Add to the slots of a gradient array; elements of 1024 float32."""

    label = "in-kernel accumulate, 1024 float32"
    reach = common.Reach("ratio", 1.3)

    def count(self):
        """Additions."""
        return 20_000

    def make_nbta(self, count):
        """A gradient array whose slots hold sums."""
        term = np.ones(_ITEMS, np.float32)
        array = nbta.TensorArray(np.float32, size=_SLOTS, element_shape=(_ITEMS,)).grad("sums")
        for slot in range(_SLOTS):
            array.write(slot, term)
        return partial(accumulate_nbta, array, count, term)

    def make_peer(self, count):
        """An array of sums."""
        sums = np.ones((_SLOTS, _ITEMS), np.float32)
        return partial(accumulate_numpy, sums, count, np.ones(_ITEMS, np.float32))
