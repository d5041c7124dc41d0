"""Gradients of a long loop with checkpoints: peak memory of the process, bytes that are kept, time.

A state is a vector of 10 000 float64 (80 kB); an iteration has two such values on tapes.
"""

from functools import cache

import numpy as np

import nbta
from nbta.ops.loops import residuals

from . import common

WIDTH = 10_000
MODES = ("none", "50", "sqrt", "online")


@cache
def gradient(mode, iterations, compiled):
    """The gradient of a recurrent loop by its weights."""
    checkpoint = {"none": None, "50": 50}.get(mode, mode)

    def loss(w, x):
        def step(h, _):
            return nbta.tanh(h * w) + 0.1 * h, None

        return nbta.sum(nbta.scan(step, x, None, iterations, checkpoint=checkpoint)[0])

    return nbta.grad(loss, compiled=compiled)


class _Gradient:
    """One gradient of a loop of so many iterations, by the kind of checkpoints."""

    param_names = ("checkpoint", "iterations")
    params = (MODES, (100, 1600))
    number, repeat, rounds, warmup_time = 1, 3, 1, 0

    def setup(self, mode, iterations):
        self.gradient = gradient(mode, iterations, self.compiled)
        self.arguments = np.full(WIDTH, 0.9), np.linspace(0.1, 1.0, WIDTH)

    def run(self):
        """One gradient."""
        return self.gradient(*self.arguments)

    def peakmem_gradient(self, mode, iterations):
        """The process at its largest, Numba and all."""
        self.run()

    def time_gradient(self, mode, iterations):
        """Forward and backward, with what is computed again."""
        self.run()


class OneByOne(_Gradient):
    """Operation by operation."""

    params = (MODES, (400,))
    compiled = False

    def track_kept(self, mode, iterations):
        """Bytes of states on tapes that are kept at a time, at most."""
        return most_kept(self.run)

    track_kept.unit = "bytes"


class Compiled(_Gradient):
    """Compiled code keeps its buffers for the next call."""

    compiled = True

    def setup(self, mode, iterations):
        super().setup(mode, iterations)
        if self.gradient.traces == 0:  # once for all samples
            self.run()

    def track_kept(self, mode, iterations):
        """Bytes of buffers, of the tapes above all."""
        return common.buffer_bytes(self.gradient)

    track_kept.unit = "bytes"


def most_kept(run):
    """The most bytes that states on tapes have together."""
    held = most = 0

    def note(more):
        nonlocal held, most
        held += more
        most = max(most, held)

    class Counted(residuals.Values):
        """A tape that notes how many states it gets, and when it goes."""

        def __init__(self, values=()):
            super().__init__(values)
            note(sum(map(is_state, values)))

        def append(self, value):
            super().append(value)
            note(is_state(value))

        def __del__(self):
            note(-sum(map(is_state, self)))

    values, residuals.Values = residuals.Values, Counted
    try:
        run()
    finally:
        residuals.Values = values
    return 8 * WIDTH * most


def is_state(value):
    """Whether a value on a tape is a state, or as long as one."""
    return np.shape(value) == (WIDTH,) and value.dtype == np.float64
