"""Appends in compiled loops, from nothing on."""

from functools import partial

import numpy as np
from numba import njit
from numba.typed import List

import nbta

from . import common, storage

PEERS = ("array of the final size", "doubling by hand", "typed.List", "awkward GrowableBuffer")
_ITEMS = 1024


@njit
def append_nbta(n):
    """A new array with ``n`` numbers."""
    array = nbta.TensorArray(np.float64, size=0, dynamic_size=True, element_shape=())
    for i in range(n):
        array.append(float(i))
    return array


@njit
def append_doubling(n):
    """What people write by hand: a NumPy array that is replaced by one of twice its length."""
    values, used = np.empty(8), 0
    for i in range(n):
        if used == len(values):
            longer = np.empty(2 * used)
            longer[:used] = values
            values = longer
        values[used] = float(i)
        used += 1
    return values[:used]


@njit
def append_list(n):
    """A new typed list with ``n`` numbers."""
    values = List.empty_list(np.float64)
    for i in range(n):
        values.append(float(i))
    return values


@njit
def append_awkward(buffer, n):
    """Append ``n`` numbers to a buffer."""
    for i in range(n):
        buffer.append(float(i))


def growable_buffer():
    """A new, empty awkward buffer."""
    try:
        from awkward.numba import GrowableBuffer
    except ImportError:
        raise NotImplementedError("awkward is not installed") from None
    return GrowableBuffer(np.float64)


class AppendScalars(common.Pair):
    """Append numbers to an empty array."""

    label = "in-kernel append, scalars"
    params = (PEERS,)
    param_names = ("peer",)

    def count(self, peer):
        """Appends."""
        return 1_000_000

    def reach_of(self, peer):
        """An absolute one; the other peers are there to compare."""
        return common.Reach("ns", 3.0) if peer == PEERS[0] else None

    def make_nbta(self, count, peer):
        """The array is made in the loop's function."""
        return partial(append_nbta, count)

    def make_peer(self, count, peer):
        """Everything is made in the timed function, as far as the peer can."""
        if peer == PEERS[0]:
            return partial(storage.write_numbers, *common.touched_numpy(count, "scalar"))
        if peer == PEERS[1]:
            return partial(append_doubling, count)
        if peer == PEERS[2]:
            return partial(append_list, count)
        return partial(append_awkward, growable_buffer(), count)


@njit
def append_nbta_vectors(n, value):
    """A new array with ``n`` vectors."""
    array = nbta.TensorArray(np.float64, dynamic_size=True, element_shape=(len(value),))
    for _ in range(n):
        array.append(value)
    return array


def fill_numpy(n):
    """A new NumPy array, filled."""
    values = np.empty(n)
    values[:] = 1.0
    return values


class AppendVectors(common.Pair):
    """Append elements of 8 KiB, against NumPy filling fresh memory from Python.

    160 MB, as the C library hands out smaller arrays from memory that was used before.
    """

    label = "in-kernel append, 8 KiB elements"
    reach = common.Reach("ratio", 1.25)

    def count(self):
        """Appends."""
        return 20_000

    def nbytes(self):
        """All elements."""
        return self.count() * _ITEMS * 8

    def make_nbta(self, count):
        """The array is made in the loop's function."""
        return partial(append_nbta_vectors, count, np.ones(_ITEMS))

    def make_peer(self, count):
        """The array is made in the timed function."""
        return partial(fill_numpy, count * _ITEMS)

    def track_bandwidth(self):
        """Median bandwidth of the appends."""
        seconds = sorted(self.sample("nbta")[0] for _ in range(self.pairs))
        return self.nbytes() / seconds[len(seconds) // 2] / 1e9

    track_bandwidth.unit = "GB/s"
