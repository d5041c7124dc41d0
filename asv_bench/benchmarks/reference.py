"""Running graphs operation by operation, as they run before compiling pays."""

import numpy as np

import nbta

from . import common
from .graph_build import chain

ITERATIONS = 500


class Chain:
    """10,000 operations, one after the other, on three numbers."""

    def setup(self):
        self.graph, self.x, self.y = chain(5000)
        self.session = nbta.Session(self.graph)
        self.run()

    def run(self):
        """All of them."""
        self.session.run(self.y, {self.x: np.ones(3)}, compiled=False)

    def track_operation(self):
        """Of one."""
        return common.median_seconds(self.run, samples=7) / 10_000 * 1e9

    track_operation.unit = "ns"


class Loop:
    """A loop that writes a number per iteration, of a known number of iterations."""

    params = (("forward", "value and gradient"),)
    param_names = ("direction",)

    def setup(self, direction):
        def written(rate):
            path = nbta.TensorArray("float64", size=ITERATIONS, element_shape=())
            *_, path = nbta.while_loop(
                lambda i, *_: i < ITERATIONS,
                lambda i, x, path: (i + 1, rate * x, path.write(i, x)),
                (0, 1.0, path),
            )
            return nbta.sum(path.stack())

        make = nbta.function if direction == "forward" else nbta.value_and_grad
        self.function = make(written, compiled=False)
        self.function(0.999)

    def track_iteration(self, direction):
        """Of one."""
        return common.median_seconds(lambda: self.function(0.999), samples=7) / ITERATIONS * 1e9

    track_iteration.unit = "ns"


class Recurrence:
    """A loop of 10,000 iterations on an array of as many items, each from the one before."""

    params = (("forward", "value and gradient"),)
    param_names = ("direction",)

    def setup(self, direction):
        def filled(x):
            a = nbta.set_item(nbta.zeros_like(x), 0, x[0])

            def step(i, a):
                return i + 1, nbta.set_item(a, i, nbta.sin(a[i - 1]) * x[i] + x[i])

            _, a = nbta.while_loop(lambda i, _: i < x.shape[0], step, (1, a))
            return nbta.sum(a)

        make = nbta.function if direction == "forward" else nbta.value_and_grad
        self.function = make(filled, compiled=False)
        self.x = np.random.default_rng(0).normal(size=10_000)
        self.function(self.x)

    def track_call(self, direction):
        """Of all of it."""
        return common.median_seconds(lambda: self.function(self.x), samples=5)

    track_call.unit = "s"
