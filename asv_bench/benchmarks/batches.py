"""Gradients over a batch of independent sequences, on one thread and on two."""

import subprocess
import sys
import time
from statistics import median

import numba
import numpy as np

import nbta

COUNT, INPUTS, STATES = 64, 32, 64
#: Least and greatest number of steps.
LENGTHS = {"even": (200, 200), "ragged": (20, 400)}
THREADS = (1, 2)
#: Pairs of blocks for a ratio, and calls in a block, as they follow each other in training.
#: Threads that wait for the next call spin for a while and then sleep; to wake one takes up to 3 ms
#: here, as long as its work.
PAIRS, CALLS = 7, 10


def sequences(kind):
    """Inputs (steps, 1, inputs), one sequence an item."""
    rng = np.random.default_rng(0)
    least, most = LENGTHS[kind]
    lengths = rng.integers(least, most + 1, COUNT)
    return [rng.normal(size=(n, 1, INPUTS)).astype(np.float32) for n in lengths]


def weights():
    """Of a tanh network."""
    rng = np.random.default_rng(1)
    shapes = {"w_in": (INPUTS, STATES), "w_rec": (STATES, STATES), "b": (STATES,)}
    return {name: rng.normal(0, 0.1, shape).astype(np.float32) for name, shape in shapes.items()}


def loss(params, x):
    """Sum of squares of all states of a sequence."""

    def advance(state, x):
        state = nbta.tanh(x @ params["w_in"] + state @ params["w_rec"] + params["b"])
        return state, state

    start = np.zeros((1, STATES), np.float32)
    return nbta.sum(nbta.square(nbta.scan(advance, start, x)[1]))


class Work:
    """Value and gradient of all sequences, compiled."""

    def make(self, kind):
        """Compile; as many threads as there are give results bitwise identical to those of one."""
        if max(THREADS) > numba.config.NUMBA_NUM_THREADS:
            raise NotImplementedError("there are fewer threads than are compared")
        self.params, self.items = weights(), sequences(kind)
        self.both = nbta.value_and_grad(loss, batch_axis=0, compiled=True)
        found = [self.run(threads) for threads in THREADS]
        assert found[0][0] == found[1][0]
        assert all((found[0][1][name] == found[1][1][name]).all() for name in self.params)

    def run(self, threads):
        """Do the work."""
        numba.set_num_threads(threads)
        return self.both(self.params, self.items)

    def sample(self, threads):
        """Median of the seconds of calls one after another."""
        self.run(threads)
        seconds = []
        for _ in range(CALLS):
            start = time.perf_counter()
            self.run(threads)
            seconds.append(time.perf_counter() - start)
        return median(seconds)


class Gradients(Work):
    """Seconds for all sequences."""

    params = (tuple(LENGTHS), THREADS)
    param_names = ("lengths", "threads")

    def setup(self, lengths, threads):
        self.make(lengths)

    def time_value_and_grad(self, lengths, threads):
        """64 sequences, 32 inputs, 64 states, float32."""
        self.run(threads)


class Speedup(Work):
    """What a second thread brings; 1.8 for even lengths and 1.7 for ragged ones are the reach."""

    params = (tuple(LENGTHS),)
    param_names = ("lengths",)

    def setup(self, lengths):
        self.make(lengths)

    def pairs(self, repeats=PAIRS):
        """Seconds of a call on one thread and on two; each goes first half of the time."""
        found = []
        for k in range(repeats):
            order = THREADS if k % 2 == 0 else THREADS[::-1]
            seconds = {threads: self.sample(threads) for threads in order}
            found.append([seconds[threads] for threads in THREADS])
        return found

    def track_ratio(self, lengths):
        """Median of the time on one thread over that on two."""
        return median(one / two for one, two in self.pairs())

    track_ratio.unit = "ratio"


class SmallItems:
    """64 items of some microseconds beside busy processes: seconds on two threads to one."""

    params = ((1, 10, 100, 1000),)
    param_names = ("steps",)
    #: Processes that take all they get, and pairs of which the ratio is.
    BUSY, PAIRS = 2, 200

    def setup(self, steps):
        if max(THREADS) > numba.config.NUMBA_NUM_THREADS:
            raise NotImplementedError("there are fewer threads than are compared")
        rng = np.random.default_rng(0)
        self.args = rng.normal(0, 0.3, (8, 8)), list(rng.normal(size=(COUNT, steps, 8)))
        self.both = nbta.value_and_grad(recurrence, batch_axis=0, compiled=True)
        self.both(*self.args)

    def sample(self, threads):
        """Seconds of a call after one on as many threads."""
        numba.set_num_threads(threads)
        self.both(*self.args)
        start = time.perf_counter()
        self.both(*self.args)
        return time.perf_counter() - start

    def pairs(self):
        """Seconds on one thread and on two."""
        command = [sys.executable, "-c", "while True: pass"]
        busy = [subprocess.Popen(command) for _ in range(self.BUSY)]
        try:
            return [[self.sample(threads) for threads in THREADS] for _ in range(self.PAIRS)]
        finally:
            for process in busy:
                process.kill()
                process.wait()

    def track_ratio(self, steps):
        """All time on two threads over that on one; 1.3 is the most.

        Medians say less: a call takes its work, or 16 ms more where another process has its turn.
        """
        one, two = np.sum(self.pairs(), axis=0)
        return two / one

    track_ratio.unit = "ratio"


def recurrence(w, x):
    """Sum of squares of the last state of a sequence, as a plain function."""
    state = np.zeros(8)
    for row in x:
        state = np.tanh(row + state @ w)
    return np.sum(state * state)
