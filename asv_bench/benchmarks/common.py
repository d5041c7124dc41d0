"""What the benchmarks share: two sides of a row, made afresh and timed in turn."""

import time
from abc import ABC, abstractmethod
from statistics import median
from timeit import timeit
from typing import NamedTuple

import numpy as np

import nbta
from nbta.runtime import python_calls

#: Elements of a sized array: a scalar, or a vector of so many float64.
ELEMENTS = ("scalar", 1, 8, 64, 1024)
SIDES = ("nbta", "peer")
#: Seconds that a sample lasts at least, where a call is shorter.
SAMPLE = 0.005
_FEW = 4


def median_seconds(run, samples=15, calls=None):
    """Median of the seconds of a call, which has been made before.

    ``calls`` a sample, or as many as last a few milliseconds.
    """
    calls = calls or max(1, int(SAMPLE / max(timeit(run, number=1), 1e-7)))
    return median(timeit(run, number=calls) / calls for _ in range(samples))


def buffer_bytes(function):
    """Bytes of all buffers that a compiled `nbta.function` keeps, after a call."""
    executable = function._last.runner.ran.executable
    work = executable.borrow()
    try:
        return sum(buffer.nbytes for buffer in work._buffers.values())
    finally:
        executable.give_back(work)


class Reach(NamedTuple):
    """How far a row is to come: ``ratio`` to the peer, ``ns`` an item, or ``s`` in all."""

    unit: str
    limit: float


class Pair(ABC):
    """A row: the same work by nbta and by a peer.

    A run uses its arrays up (slots are written once), so every sample gets new ones, made just
    before it and with all their memory touched.
    """

    number, repeat, rounds, warmup_time = 1, 15, 1, 0
    #: Whether a run on a few items comes before each sample.
    warm_up = True
    #: Pairs of samples for a ratio.
    pairs = 15
    reach: Reach | None = Reach("ratio", 1.5)
    label = ""
    #: What gives the time: that of the processor where one thread works, as others may run beside.
    clock = staticmethod(time.perf_counter)

    @abstractmethod
    def make_nbta(self, count, *params):
        """A function without arguments that does the work for ``count`` items."""

    @abstractmethod
    def make_peer(self, count, *params):
        """The same for the peer."""

    @abstractmethod
    def count(self, *params):
        """Items in a run."""

    def nbytes(self, *params):
        """Bytes in a run, for rows whose figure is a bandwidth; else 0."""
        return 0

    def reach_of(self, *params):
        """The reach for these parameters; None where the row is for information."""
        return self.reach

    def setup(self, *params):
        """Make both sides."""
        self.ready = {}
        for side in SIDES:
            self.prepare(side, *params)

    def prepare(self, side, *params):
        """Make one side's arrays, then run it on a few items, which may compile.

        Making the arrays has driven the code of Numba's dispatcher out of the processor's
        caches; a first call from Python takes 5 to 40 microseconds then.
        """
        self.result = None
        make = self.make_nbta if side == "nbta" else self.make_peer
        self.ready[side] = make(self.count(*params), *params)
        if self.warm_up:
            make(_FEW, *params)()

    def run(self, side):
        """Do one side's work; what it gives is kept, so that freeing it is not timed."""
        self.result = self.ready[side]()

    def sample(self, side, *params):
        """Seconds for one side with new arrays, and what holds the arrays."""
        self.prepare(side, *params)
        start = self.clock()
        self.run(side)
        seconds = self.clock() - start
        return seconds, self.ready.pop(side)

    def samples(self, repeats, *params):
        """Seconds of nbta and of the peer, in pairs; each goes first half of the time.

        All arrays live until the end: the C library would hand memory that one sample has warmed
        to the next NumPy array, but not to nbta's, which are mapped.
        """
        rows, kept = [], []
        for k in range(repeats):
            order = SIDES if k % 2 == 0 else SIDES[::-1]
            samples = {side: self.sample(side, *params) for side in order}
            rows.append([samples[side][0] for side in SIDES])
            kept.append(samples)
        return rows

    def time_nbta(self, *params):
        """Nbta's side."""
        self.run("nbta")

    def track_ratio(self, *params):
        """Median of nbta's time over the peer's."""
        return median(mine / peer for mine, peer in self.samples(self.pairs, *params))

    track_ratio.unit = "ratio"


def element_shape(element):
    """Shape of an element by its name in `ELEMENTS`."""
    return () if element == "scalar" else (element,)


def items(element):
    """How many elements a sized array has: at most 100 000 of them, or 16 MB."""
    return min(100_000, (16 << 20) // 8 // (1 if element == "scalar" else element))


def value_for(element):
    """What is written: a float, or a vector."""
    return 1.0 if element == "scalar" else np.ones(element)


def touched_array(count, element, clear_after_read=True):
    """A sized nbta array whose memory has been touched."""
    array = nbta.TensorArray(
        np.float64,
        size=count,
        element_shape=element_shape(element),
        clear_after_read=clear_after_read,
    )
    for view in (python_calls.data_bytes, python_calls.state_bytes):
        python_calls.native(view)(array._address)[:] = 0
    return array


def touched_numpy(count, element):
    """What the NumPy loops use: the elements, and a state byte for each; touched."""
    values = np.empty((count, *element_shape(element)))
    states = np.empty(count, np.uint8)
    values[...] = 0
    states[:] = 0
    return values, states
