"""Gradients of a long loop with checkpoints: peak memory of the process, slots that are kept, time.

A state is a vector of 10 000 float64 (80 kB); a trip has two such values on tapes.
"""

import numpy as np

import nbta
from nbta.execution.step import Step
from nbta.ops.arrays import CLOSE

WIDTH = 10_000
MODES = ("none", "sqrt", "online", "50")


def gradient(mode, trips):
    """The gradient of a recurrent loop by its weights, run operation by operation."""
    checkpoint = {"none": None, "50": 50}.get(mode, mode)

    def loss(w, x):
        def step(h, _):
            return nbta.tanh(h * w) + 0.1 * h, None

        return nbta.sum(nbta.scan(step, x, None, trips, checkpoint=checkpoint)[0])

    return nbta.grad(loss, compiled=False)


class Checkpoints:
    """One gradient of a loop of so many trips, by the kind of checkpoints."""

    param_names = ("checkpoint", "trips")
    params = (MODES, (100, 400, 1600))
    number, repeat, rounds, warmup_time, timeout = 1, 3, 1, 0, 180

    def setup(self, mode, trips):
        self.gradient = gradient(mode, trips)
        self.arguments = np.full(WIDTH, 0.9), np.linspace(0.1, 1.0, WIDTH)

    def peakmem_gradient(self, mode, trips):
        """The process at its largest."""
        self.gradient(*self.arguments)

    def time_gradient(self, mode, trips):
        """Forward and backward, with what is computed again."""
        self.gradient(*self.arguments)

    def track_kept(self, mode, trips):
        """Slots of float64 arrays that are kept at a time, at most."""
        return most_kept(lambda: self.gradient(*self.arguments))

    track_kept.unit = "slots"


def most_kept(run):
    """The most slots that arrays have together whenever an array is made or the run is over.

    A backward trip's tapes are full when those of the next one are made but closed by then, so the
    tapes are counted when they are closed.
    """
    arrays, most = [], 0
    add, close = Step.add, CLOSE.evaluate

    def look():
        nonlocal most
        arrays[:] = [array for array in arrays if not array.closed]
        most = max(most, sum(int(a.size()) for a in arrays if a.dtype == np.float64))

    def adding(step, made):
        arrays.append(made)
        return add(step, made)

    def closing(step, handle):
        look()
        return close(step, handle)

    Step.add = adding
    object.__setattr__(CLOSE, "evaluate", closing)
    try:
        run()
        look()
    finally:
        Step.add = add
        object.__setattr__(CLOSE, "evaluate", close)
    return most
