"""Arrays and compiled functions that the tests of lanes share."""

import numpy as np
from numba import njit, prange

import nbta


def growing(dtype="float64", **options):
    return nbta.TensorArray(dtype, dynamic_size=True, tensor_array_name="state", **options)


def sums(dtype="float64", size=3, shape=(2,), **options):
    options = {"element_shape": shape, "tensor_array_name": "state", **options}
    forward = nbta.TensorArray(dtype, size, **options)
    kept_forward.append(forward)  # messages find a name while Python holds the forward array
    return forward.grad("sums")


kept_forward = []


def values_of(array):
    """All elements of an array, whatever their shapes."""
    return [array.read(slot).tolist() for slot in range(len(array))]


def ragged_sums(**options):
    forward = nbta.TensorArray("float64", 4, infer_shape=False, element_shape=(None,))
    kept_forward.append(forward.write(0, np.ones(2)).write(1, np.ones(3)))
    return forward.grad("sums", **options)


def with_parts(array, *deposits):
    """Lanes of an array, and what is done with the array of each."""
    lanes = array.lanes(len(deposits))
    for k, deposit in enumerate(deposits):
        deposit(lanes.take(k))
    return lanes


# In compiled code.


@njit(parallel=True, cache=True)
def collect(array, n, total):
    """Append the squares of the numbers below ``total``."""
    lanes = array.lanes(n)
    for lane in prange(n):
        part = lanes.take(lane)
        for k in lanes.range(lane, total):
            part.append(k * k)
    return lanes.join()


@njit(parallel=True, cache=True)
def add_up(array, n, terms):
    """Add each term into a slot."""
    lanes = array.lanes(n)
    for lane in prange(n):
        part = lanes.take(lane)
        for k in lanes.range(lane, len(terms)):
            part.accumulate(k % len(array), terms[k])
    lanes.join()


@njit(parallel=True, cache=True)
def nested(array, n):
    outer = array.lanes(n)
    for k in prange(n):
        part = outer.take(k)
        inner = part.lanes(2)
        inner.take(1).append(2 * k + 1)
        inner.take(0).append(2 * k)
        inner.join()
    return outer.join()


@njit(parallel=True, cache=True)
def ragged_in_parallel(array, n):
    lanes = array.lanes(n)
    for k in prange(n):
        part = lanes.take(k)
        for length in range(k % 4):
            part.append(np.full(length, k + 0.5))
    return lanes.join()


@njit(cache=True)
def make(array, n):
    return array.lanes(n)


@njit(cache=True)
def fill(lanes, k, value):
    return lanes.take(k).append(value)


@njit(cache=True)
def share(lanes, k, total):
    found = lanes.range(k, total)
    return found.start, found.stop


@njit(cache=True)
def finish(lanes):
    return lanes.join()


@njit(cache=True)
def passed_on(lanes):
    return lanes, len(lanes)
