"""The test case, and which modes a method is run in."""

import unittest
from contextlib import contextmanager

import numpy as np

import nbta
from foreign import messages
from foreign.calls import Session
from foreign.values import OutOfScope, Shape, Value, run
from nbta.graph.graph import current

BOTH, GRAPH = ("eager", "graph"), ("graph",)


def executing_eagerly():
    """Whether no graph is being built."""
    return current() is None


class TestCase(unittest.TestCase):
    """What TensorFlow's own adds to the standard one."""

    @contextmanager
    def session(self, *args, **kwargs):
        """A session for the graph of the test."""
        yield Session()

    cached_session = test_session = session

    def evaluate(self, structure):
        """Values of tensors."""
        return run(structure)

    def _array(self, value):
        """A value to compare; shapes as their lists."""
        if isinstance(value, Shape):
            return np.asarray(value.dims, object)
        return np.asarray(run(value) if isinstance(value, (Value, list, tuple)) else value)

    def _alike(self, a, b):
        a, b = self._array(a), self._array(b)
        assert a.shape == b.shape, f"shapes {a.shape} and {b.shape}"
        return a, b

    def assertAllEqual(self, a, b, msg=None):  # noqa: N802
        """Equal shapes and elements."""
        a, b = self._alike(a, b)
        np.testing.assert_array_equal(a, b)

    def assertAllClose(self, a, b, rtol=1e-6, atol=1e-6, msg=None):  # noqa: N802
        """Equal shapes, and elements up to a tolerance."""
        a, b = self._alike(a, b)
        np.testing.assert_allclose(a, b, rtol=rtol, atol=atol)

    @contextmanager
    def assertRaisesRegex(self, classes, text):  # noqa: N802
        """An error of a class, and for the reason that the text says."""
        messages.reasons(text)
        with self.assertRaises(classes) as caught:  # noqa: PT027
            yield caught
        messages.check(caught.exception, text)

    def assertRaisesOpError(self, text):  # noqa: N802
        """An error of an operation, for the reason that the text says."""
        return self.assertRaisesRegex(nbta.NbtaError, text)  # noqa: PT027


class Benchmark:
    """Benchmarks are not run."""


class Worker:
    """A process of a cluster, which nbta does not have."""

    target = "a worker"


def create_local_cluster(num_workers, num_ps):
    """Names of workers, none of which runs."""
    return [Worker()] * num_workers, [Worker()] * num_ps


def is_gpu_available():
    """Only tests of graphics processors ask."""
    raise OutOfScope("graphics processors")


# Decorators: they note the modes, and `running` runs them.


def run_in_both(test):
    """Each method, or this one, in both modes."""
    test.foreign_modes = BOTH
    return test


def graph_only(test):
    """In graphs only."""
    test.foreign_modes = GRAPH
    return test


def as_it_is(test):
    """No change."""
    return test


def for_a_reason(reason=None):
    """A decorator with a reason that changes nothing: there is one kind of control flow here."""
    return as_it_is


def modes(cls, name):
    """The modes that a method is to be run in.

    TensorFlow leaves methods out of eager mode whose names begin with ``testSkipEager``.
    """
    if name.startswith("testSkipEager"):
        return GRAPH
    own = getattr(getattr(cls, name), "foreign_modes", None)
    return own or getattr(cls, "foreign_modes", ("eager",))
