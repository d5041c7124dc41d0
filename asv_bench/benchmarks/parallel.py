"""Parallel loops: sums of vectors into lanes, bitwise identical each time; slots; lanes."""

from functools import partial

import numba
import numpy as np
from numba import njit, prange, types
from numba.core import cgutils
from numba.extending import intrinsic

import nbta

from . import common

_SLOTS, _ITEMS, _LANES, _ROWS = 16, 4096, 8, 10_000
#: How many different vectors are added: one, which stays in a cache, or 160 MB of them.
TERMS = (1, _ROWS)


@njit(parallel=True, cache=True)
def accumulate_lanes(sums, n, terms):
    """Add ``n`` vectors, each to the slot whose turn it is."""
    lanes = sums.lanes(_LANES)
    for lane in prange(_LANES):
        part = lanes.take(lane)
        for i in lanes.range(lane, n):
            part.accumulate(i % _SLOTS, terms[i % len(terms)])
    return lanes.join()


@intrinsic
def exchange(typingctx, values, index, value):
    """Put a number into an array of int64 and give the one that was there, in one step."""

    def codegen(context, builder, sig, args):
        array = context.make_array(sig.args[0])(context, builder, args[0])
        place = cgutils.get_item_pointer(
            context, builder, sig.args[0], array, [args[1]], wraparound=False
        )
        return builder.atomic_rmw("xchg", place, args[2], "acq_rel")

    return types.int64(values, types.int64, types.int64), codegen


@njit(parallel=True, cache=True)
def accumulate_locked(sums, locks, n, terms):
    """`accumulate_lanes` into shared NumPy rows, each under a lock that threads spin on."""
    for i in prange(n):
        slot = i % _SLOTS
        while exchange(locks, slot, 1) == 1:
            pass
        row, term = sums[slot], terms[i % len(terms)]
        for k in range(_ITEMS):
            row[k] += term[k]
        exchange(locks, slot, 0)


def on_threads(number, function, *args):
    """Run a parallel loop on so many threads."""
    numba.set_num_threads(number)
    try:
        return function(*args)
    finally:
        numba.set_num_threads(numba.config.NUMBA_NUM_THREADS)


class _Sums(common.Pair):
    """The sums of 10,000 vectors of 4096 float32, in 16 slots."""

    params = (TERMS,)
    param_names = ("vectors",)

    def setup(self, vectors):
        """Two threads at least, and the vectors."""
        if numba.config.NUMBA_NUM_THREADS < 2:
            raise NotImplementedError("this takes two threads")
        self.terms = np.random.default_rng(1).random((vectors, _ITEMS), np.float32)
        super().setup(vectors)

    def count(self, vectors):
        """Additions."""
        return _ROWS

    def lanes(self, threads, count):
        """The sums by lanes, on so many threads."""
        array = nbta.TensorArray(np.float32, size=_SLOTS, element_shape=(_ITEMS,)).grad("sums")
        return partial(on_threads, threads, accumulate_lanes, array, count, self.terms)

    def make_nbta(self, count, vectors):
        """Lanes on two threads."""
        return self.lanes(2, count)


class SecondThread(_Sums):
    """The same on one thread as the peer. 160 MB take the two cores' share of memory's speed."""

    label = "accumulate in lanes, 2 threads to 1"

    def reach_of(self, vectors):
        """1.6 times as fast, where memory's speed is not what limits one thread."""
        return common.Reach("ratio", 1 / 1.6) if vectors == 1 else None

    def make_peer(self, count, vectors):
        """Lanes on one thread."""
        return self.lanes(1, count)


class OrderedSums(_Sums):
    """Sums that are bitwise identical each time, against sums in the order that threads come in."""

    label = "accumulate in lanes, to spin locks"
    reach = common.Reach("ratio", 1.15)

    def make_peer(self, count, vectors):
        """Shared rows, each under its lock, on two threads."""
        sums, locks = np.zeros((_SLOTS, _ITEMS), np.float32), np.zeros(_SLOTS, np.int64)
        return partial(on_threads, 2, accumulate_locked, sums, locks, count, self.terms)


@njit(parallel=True, cache=True)
def write_slots(array, n, value):
    """Write to all slots, which threads share out."""
    for i in prange(n):
        array.write(i, value)


@njit(parallel=True, cache=True)
def append_lanes(array, n):
    """Append numbers to lanes and join them."""
    lanes = array.lanes(_LANES)
    for lane in prange(_LANES):
        part = lanes.take(lane)
        for i in lanes.range(lane, n):
            part.append(float(i))
    return lanes.join()


class Filling:
    """An array that threads fill: nanoseconds an element, memory touched for the first time."""

    params = ((1, 2),)
    param_names = ("threads",)

    def setup(self, threads):
        if threads > numba.config.NUMBA_NUM_THREADS:
            raise NotImplementedError("there are fewer threads")
        self.vector = np.ones(64)
        self.write(4, threads)
        self.append(16, threads)

    def write(self, count, threads):
        """Vectors of 64 float64 into slots."""
        array = nbta.TensorArray(np.float64, size=count, element_shape=(64,))
        on_threads(threads, write_slots, array, count, self.vector)

    def append(self, count, threads):
        """Numbers into 8 lanes, which are joined."""
        array = nbta.TensorArray(np.float64, dynamic_size=True, element_shape=())
        on_threads(threads, append_lanes, array, count)

    def track_write(self, threads):
        """Of a vector."""
        return self.nanoseconds(self.write, 50_000, threads)

    def track_append(self, threads):
        """Of a number."""
        return self.nanoseconds(self.append, 1_000_000, threads)

    def nanoseconds(self, fill, count, threads):
        """An element; the median of some runs."""
        return common.median_seconds(lambda: fill(count, threads), calls=1) / count * 1e9

    track_write.unit = track_append.unit = "ns"
