"""Copies of memory between all kinds of addresses, some of which are copied in pieces."""

import numpy as np
import pytest
from numba import njit

from nbta.runtime import memory as mem
from nbta.tuning import COPY_PIECE


@njit(cache=True)
def _copy(target, source, at, start, count):
    mem.copy_bytes(mem.address_of(target) + at, mem.address_of(source) + start, count)


@pytest.mark.parametrize("apart", [0, 1, 8, 16, 31, 32, 63, 4080, 4095])
def test_copies_at_all_distances(apart):
    """Distances modulo pages, some of which are copied in pieces."""
    source = np.random.default_rng(0).integers(1, 255, 5 * COPY_PIECE).astype(np.uint8)
    room = np.zeros(len(source) + 2 * 4096, np.uint8)
    start = 3
    at = (source.ctypes.data + start + apart - room.ctypes.data) % 4096
    for count in (0, 1, 31, COPY_PIECE - 1, COPY_PIECE, COPY_PIECE + 1, 4 * COPY_PIECE + 5):
        room[:] = 0
        _copy(room, source, at, start, count)
        expected = np.zeros_like(room)
        expected[at : at + count] = source[start : start + count]
        np.testing.assert_array_equal(room, expected)
