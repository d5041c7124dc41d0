"""Awkward Array's ``GrowableBuffer``, made in Python and filled in a loop that Numba compiles."""

import numpy as np
from awkward.numba import GrowableBuffer, register_and_check
from numba import njit

from . import cases

register_and_check()


def appends(count, width):
    """A function that gives what a loop has appended, as arrays; a buffer knows no rows."""
    source = np.arange(float(cases.LENGTHS))

    def numbers():
        buffer = GrowableBuffer(np.float64)
        append_numbers(buffer, count)
        return [buffer.snapshot()]

    def vectors():
        buffer = GrowableBuffer(np.float64)
        append_vectors(buffer, count, np.ones(width))
        return [buffer.snapshot().reshape(-1, width)]

    def ragged():
        buffer, lengths = GrowableBuffer(np.float64), GrowableBuffer(np.int64)
        append_ragged(buffer, lengths, count, source)
        return [buffer.snapshot(), lengths.snapshot()]

    return {1: numbers, None: ragged}.get(width, vectors)


@njit
def append_numbers(buffer, count):
    for i in range(count):
        buffer.append(float(i))


@njit
def append_vectors(buffer, count, value):
    for i in range(count):
        value[0] = i
        buffer.extend(value)


@njit
def append_ragged(buffer, lengths, count, source):
    for i in range(count):
        row = source[: i % len(source)]
        buffer.extend(row)
        lengths.append(len(row))
