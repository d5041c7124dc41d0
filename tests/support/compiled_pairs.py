"""Functions and graphs run compiled and one by one, several times, with what came out compared."""

import re

import numpy as np

import nbta
from nbta.structure import leaves


class Pair:
    """A function of arrays, compiled and not.

    Parameters
    ----------
    f : callable
        Traced anew for both.
    make : callable
        `nbta.function`, `nbta.grad`, ...
    may_fall_back : bool
        Whether the compiled function may give up although there is a result.
    """

    def __init__(self, f, make=nbta.function, may_fall_back=False, rtol=1e-9):
        self.slow, self.fast = make(f, compiled=False), make(f, compiled=True)
        self._may_fall_back, self._rtol = may_fall_back, rtol
        self._kept = []

    def __call__(self, *args):
        """Both results must be the same, and none that was given before may have changed."""
        expected, found = self.slow(*args), self.fast(*args)
        compare(found, expected, self._rtol)
        self._kept.append((found, [np.copy(value) for value in leaves(found)]))
        for old, copies in self._kept:
            for value, copy in zip(leaves(old), copies, strict=True):
                np.testing.assert_array_equal(value, copy)
        self.check_fallbacks()
        return found

    def fails(self, *args):
        """Both must refuse in the same words; gives those."""
        errors = [error_of(f, *args) for f in (self.slow, self.fast)]
        one, other = errors
        assert type(one) is type(other)
        assert (unnumbered(one), one.reason) == (unnumbered(other), other.reason)
        return str(one)

    def runners(self):
        """What ran."""
        return [trace.runner for trace in self.fast.every_trace()]

    def check_fallbacks(self):
        """The compiled function never gave up."""
        if not self._may_fall_back:
            assert [runner.fallbacks for runner in self.runners()] == [0] * len(self.runners())

    def calls(self):
        """What runs in Python."""
        return [
            call.op.type
            for runner in self.runners()
            for one in runner.compiled
            for call in one.generated.calls
        ]


def unnumbered(error):
    """What an error says, without the numbers after the names of arrays."""
    return re.sub(r"(\w)_\d+\b(?!')", r"\1", str(error))


def error_of(f, *args):
    """The error that a call raises."""
    try:
        result = f(*args)
    except nbta.NbtaError as error:
        return error
    raise AssertionError(f"no error, but {result!r}")


def compare(found, expected, rtol=1e-9):
    """Hold structures of arrays against each other."""
    assert type(found) is type(expected)
    for mine, theirs in zip(leaves(found), leaves(expected), strict=True):
        if theirs is None or mine is None:
            assert mine is theirs
            continue
        mine, theirs = np.asarray(mine), np.asarray(theirs)
        assert (mine.dtype, mine.shape) == (theirs.dtype, theirs.shape)
        if mine.dtype.kind in "fc":
            tolerance = max(rtol, 50 * float(np.finfo(mine.dtype).eps))
            size = np.max(np.abs(theirs), initial=1.0, where=np.isfinite(theirs))
            np.testing.assert_allclose(mine, theirs, tolerance, tolerance * float(size))
        else:
            np.testing.assert_array_equal(mine, theirs)
