"""Making graphs: operations, gradients, and tracing of functions."""

import tempfile
from pathlib import Path

import numpy as np

import nbta
from nbta.graph.graph import within

from . import workloads

LENGTHS = (500, 5000)


def chain(length):
    """A graph of twice as many operations, one after the other."""
    with nbta.Graph().as_default() as graph:
        x = y = nbta.placeholder("float64", (3,))
        for _ in range(length):
            y = nbta.tanh(y) + 0.1
    return graph, x, y


class Chain:
    """Two operations a link."""

    params = (LENGTHS,)
    param_names = ("links",)

    def setup(self, length):
        chain(10)
        self.graph, self.x, self.y = chain(length)

    def time_build(self, length):
        """Without a gradient."""
        chain(length)

    def peakmem_build(self, length):
        """The process at its largest."""
        chain(length)

    def time_gradient(self, length):
        """Of the last by the first: five operations more a link."""
        with self.graph.as_default():
            nbta.gradients(nbta.sum(self.y), [self.x])

    def track_gradient(self, length):
        """Operations that a gradient adds, for each that is there."""
        before = len(self.graph.operations)
        self.time_gradient(length)
        return len(self.graph.operations) / before - 1

    track_gradient.unit = "operations"


class Loops:
    """While loops with arrays, with their gradient, as `nbta.value_and_grad` traces them."""

    params = (tuple(workloads.WORKS),)
    param_names = ("function",)

    def setup(self, name):
        self.work = workloads.WORKS[name]()
        workloads.traced(self.work)

    def time_trace(self, name):
        """A graph for these arguments."""
        workloads.traced(self.work)

    def track_operations(self, name):
        """In the graph and in all bodies of its loops and branches; a count, always the same."""
        graph, _ = workloads.traced(self.work)
        return len(within(graph.inputs[0].op.graph.operations))

    track_operations.unit = "operations"


class Explained:
    """`explain` of a function of many lines, which looks up what users call each operation."""

    params = (LENGTHS[0], 2000)
    param_names = ("lines",)

    def setup(self, lines):
        self.folder = tempfile.TemporaryDirectory()
        path = Path(self.folder.name, "long_function.py")
        body = "".join(f"    y = x * {k}.5 + y\n" for k in range(lines))
        path.write_text(f"def f(x):\n    y = x\n{body}    return y\n", encoding="utf-8")
        names = {}
        exec(compile(path.read_text(encoding="utf-8"), path, "exec"), names)
        self.function = nbta.function(names["f"], compiled=False)
        self.function(np.ones(3))

    def teardown(self, lines):
        self.folder.cleanup()

    def time_explain(self, lines):
        """Passes included, which the first call makes."""
        self.function.explain()
