"""What people append to in Numba's loops: typed lists, and arrays that are doubled by hand."""

from functools import partial

import numpy as np
from numba import njit, types
from numba.typed import List

from . import cases

_NUMBERS = types.float64[::1]


def appends(count, width, way):
    """A function that gives what a loop has appended, as arrays."""
    numbers, vectors, ragged = WAYS[way]
    if width == 1:
        return lambda: [numbers(count)]
    if width:
        return lambda: [vectors(count, np.ones(width))]
    return partial(ragged, count, np.arange(float(cases.LENGTHS)))


@njit
def list_numbers(count):
    values = List.empty_list(np.float64)
    for i in range(count):
        values.append(float(i))
    joined = np.empty(len(values))
    for i, value in enumerate(values):
        joined[i] = value
    return joined


@njit
def list_vectors(count, value):
    values = List.empty_list(_NUMBERS)
    for i in range(count):
        value[0] = i
        values.append(value.copy())
    joined = np.empty((len(values), len(value)))
    for i, row in enumerate(values):
        joined[i] = row
    return joined


@njit
def list_ragged(count, source):
    values = List.empty_list(_NUMBERS)
    for i in range(count):
        values.append(source[: i % len(source)].copy())
    lengths = np.empty(len(values), np.int64)
    for i, row in enumerate(values):
        lengths[i] = len(row)
    joined, end = np.empty(lengths.sum()), 0
    for row in values:
        joined[end : end + len(row)] = row
        end += len(row)
    return joined, lengths


@njit
def longer(values, used, more):
    """The array itself, or one at least twice as long where so many more do not fit."""
    if used + more <= len(values):
        return values
    made = np.empty(max(2 * len(values), used + more), values.dtype)
    made[:used] = values[:used]
    return made


@njit
def doubled_numbers(count):
    values, used = np.empty(8), 0
    for i in range(count):
        if used == len(values):
            values = longer(values, used, 1)
        values[used] = float(i)
        used += 1
    return values[:used]


@njit
def doubled_vectors(count, value):
    values, used, width = np.empty(8 * len(value)), 0, len(value)
    for i in range(count):
        value[0] = i
        if used + width > len(values):
            values = longer(values, used, width)
        values[used : used + width] = value
        used += width
    return values[:used].reshape(-1, width)


@njit
def doubled_ragged(count, source):
    values, lengths, used = np.empty(8), np.empty(8, np.int64), 0
    for i in range(count):
        size = i % len(source)
        values, lengths = longer(values, used, size), longer(lengths, i, 1)
        values[used : used + size] = source[:size]
        lengths[i] = size
        used += size
    return values[:used], lengths[:count]


WAYS = {
    "list": (list_numbers, list_vectors, list_ragged),
    "doubling": (doubled_numbers, doubled_vectors, doubled_ragged),
}
