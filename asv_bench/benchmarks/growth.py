"""Appends from nothing on: in compiled loops and from Python, and what memory they take."""

import math
import os
import time
from functools import partial
from pathlib import Path

import numpy as np
from numba import njit, types
from numba.typed import List

import nbta

from . import common, storage

try:
    import resource
except ImportError:
    resource = None

PEERS = ("array of the final size", "doubling by hand", "typed.List", "awkward GrowableBuffer")
_ITEMS = 1024
_STATM = Path("/proc/self/statm")


@njit(cache=True)
def append_nbta(n):
    """A new array with ``n`` numbers."""
    array = nbta.TensorArray(np.float64, size=0, dynamic_size=True, element_shape=())
    for i in range(n):
        array.append(float(i))
    return array


@njit(cache=True)
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


@njit(cache=True)
def append_list(n):
    """A new typed list with ``n`` numbers."""
    values = List.empty_list(np.float64)
    for i in range(n):
        values.append(float(i))
    return values


@njit(cache=True)
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


@njit(cache=True)
def append_while(n, repeats, value):
    """New arrays, in loops of which nobody knows how long they are."""
    total = 0
    for _ in range(repeats):
        array = nbta.TensorArray(np.float64, size=0, dynamic_size=True, element_shape=())
        i = 0
        while i < n:
            array.append(value)
            i += 1
        total += len(array)
    return total


@njit(cache=True)
def write_while(values, states, repeats, value):
    """The same into an array of the final size, with the checks of `storage.write_scalars`."""
    total = 0
    for _ in range(repeats):
        states[:] = 0
        i = used = 0
        while i < len(values):
            if used >= len(values) or states[used] != 0:
                return -1
            values[used] = value
            states[used] = 1
            used += 1
            i += 1
        total += used
    return total


class AppendInAnyLoop(common.Pair):
    """Make an array and append to it in a loop whose length is not known, many times over."""

    clock = staticmethod(time.process_time)
    label = "in-kernel append, scalars, unknown length"
    reach = common.Reach("ratio", 1.2)
    params = ((1_000, 3_000, 10_000, 100_000, 1_000_000),)
    param_names = ("numbers",)

    def count(self, numbers):
        """Appends."""
        return max(1, 1_000_000 // numbers) * numbers

    def make_nbta(self, count, numbers):
        """Arrays are made in the loop's function."""
        return partial(append_while, min(count, numbers), max(1, count // numbers), 1.5)

    def make_peer(self, count, numbers):
        """The array is there, and was used before."""
        given = common.touched_numpy(min(count, numbers), "scalar")
        return partial(write_while, *given, max(1, count // numbers), 1.5)


@njit(cache=True)
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


@njit(cache=True)
def append_ragged(n, value):
    """Rows of ``n`` vectors of 0, 1, ..., 7, 0, 1, ... numbers, and their offsets."""
    array = nbta.TensorArray(
        np.float64, dynamic_size=True, element_shape=(None,), infer_shape=False
    )
    for i in range(n):
        array.append(value[: i % len(value)])
    return array.concat().value, array.offsets


@njit(cache=True)
def append_ragged_doubling(n, value):
    """The same by hand: two NumPy arrays that are replaced by ones of twice their lengths."""
    rows, offsets = np.empty(8), np.zeros(8, np.int64)
    for i in range(n):
        one = value[: i % len(value)]
        end = offsets[i] + len(one)
        if end > len(rows):
            longer_rows = np.empty(2 * len(rows))
            longer_rows[: offsets[i]] = rows[: offsets[i]]
            rows = longer_rows
        if i + 1 == len(offsets):
            longer = np.zeros(2 * len(offsets), np.int64)
            longer[: i + 1] = offsets
            offsets = longer
        rows[offsets[i] : end] = one
        offsets[i + 1] = end
    return rows[: offsets[n]], offsets[: n + 1]


@njit(cache=True)
def append_ragged_list(n, value):
    """The same by a typed list of arrays, which are joined at the end."""
    values, offsets = List.empty_list(types.float64[::1]), np.zeros(n + 1, np.int64)
    for i in range(n):
        values.append(value[: i % len(value)].copy())
        offsets[i + 1] = offsets[i] + len(values[i])
    rows = np.empty(offsets[n])
    for i in range(n):
        rows[offsets[i] : offsets[i + 1]] = values[i]
    return rows, offsets


_RAGGED = {
    "nbta": append_ragged,
    "doubling by hand": append_ragged_doubling,
    "typed.List": append_ragged_list,
}


class AppendRagged:
    """Append vectors of several lengths, and join them."""

    params = (tuple(_RAGGED),)
    param_names = ("way",)
    _COUNT = 100_000

    def setup(self, way):
        self.value = np.ones(8)
        _RAGGED[way](4, self.value)

    def track_append(self, way):
        """Of one."""
        run = partial(_RAGGED[way], self._COUNT, self.value)
        return common.median_seconds(run, samples=9) / self._COUNT * 1e9

    track_append.unit = "ns"


class Memory:
    """What a growing array takes: room ahead is address space, not memory."""

    params = ((1_000, 1_000_000, 16_000_000),)
    param_names = ("numbers",)

    def setup(self, count):
        append_nbta(4)

    def peakmem_append(self, count):
        """The process at its largest, Numba and all."""
        return append_nbta(count)

    def track_slot(self, count):
        """Bytes of memory a slot, of 8 that the number takes; on Linux, from 1,000,000 on."""
        if count < 1_000_000 or not _STATM.exists():
            return math.nan  # nothing, to asv
        before = resident()
        array = append_nbta(count)
        after = resident()
        array.close()
        return (after - before) / count

    track_slot.unit = "bytes"


@njit(cache=True)
def small_nbta(count, repeats):
    """Make an array, append numbers, stack it, many times over."""
    total = 0.0
    for _ in range(repeats):
        array = nbta.TensorArray(np.float64, dynamic_size=True, element_shape=())
        for i in range(count):
            array.append(float(i))
        total += array.stack()[count - 1]
    return total


@njit(cache=True)
def small_doubling(count, repeats):
    """The same by hand."""
    total = 0.0
    for _ in range(repeats):
        total += append_doubling(count).copy()[count - 1]
    return total


@njit(cache=True)
def small_list(count, repeats):
    """The same with typed lists."""
    total = 0.0
    for _ in range(repeats):
        values = append_list(count)
        stacked = np.empty(count)
        for i in range(count):
            stacked[i] = values[i]
        total += stacked[count - 1]
    return total


class SmallArrays:
    """Arrays that are made, filled with a few numbers, stacked and dropped."""

    params = ((10, 100), ("nbta", "doubling by hand", "typed.List"))
    param_names = ("numbers", "peer")
    _REPEATS = 2_000

    def setup(self, count, peer):
        functions = {"nbta": small_nbta, "doubling by hand": small_doubling}
        self.run = partial(functions.get(peer, small_list), count, self._REPEATS)
        self.run()

    def track_array(self, count, peer):
        """Of one."""
        return common.median_seconds(self.run, samples=9) / self._REPEATS * 1e9

    track_array.unit = "ns"

    def track_memory(self, count, peer):
        """Bytes of memory an array, of 8 that each number takes."""
        if peer != "nbta" or not _STATM.exists():
            return math.nan
        before = resident()
        kept = [append_nbta(count) for _ in range(100_000)]
        return (resident() - before) / len(kept)

    track_memory.unit = "bytes"


@njit(cache=True)
def dropped_nbta(count, value, repeats):
    """Make an array, fill it, drop it, many times over."""
    total = 0.0
    for _ in range(repeats):
        array = nbta.TensorArray(np.float64, size=count, element_shape=(len(value),))
        for i in range(count):
            array.write(i, value)
        total += array.read(count // 2)[0]
    return total


@njit(cache=True)
def dropped_numpy(count, value, repeats):
    """The same by `np.empty`."""
    total = 0.0
    for _ in range(repeats):
        values = np.empty((count, len(value)))
        for i in range(count):
            for k in range(len(value)):
                values[i, k] = value[k]
        total += values[count // 2, 0]
    return total


class DroppedArrays:
    """Arrays of 8 MiB that are made, filled and dropped: memory, and the pages that it faults."""

    params = ((1, 8, 64, 1024), ("nbta", "np.empty"))
    param_names = ("doubles", "peer")
    _NUMBERS, _REPEATS = 1 << 20, 8

    def setup(self, doubles, peer):
        function = dropped_nbta if peer == "nbta" else dropped_numpy
        self.run = partial(function, self._NUMBERS // doubles, np.ones(doubles), self._REPEATS)
        self.run()

    def track_array(self, doubles, peer):
        """Of one."""
        return common.median_seconds(self.run, samples=9) / self._REPEATS * 1e3

    track_array.unit = "ms"

    def track_faults(self, doubles, peer):
        """Of one."""
        if resource is None:
            return math.nan
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        self.run()
        return (resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before) / self._REPEATS

    track_faults.unit = "page faults"


def resident():
    """Bytes of this process that are in memory."""
    return int(_STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
