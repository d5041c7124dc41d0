"""Every run of a session through the generated function too, which must agree."""

import numpy as np
from interpreted import interpreted

from nbta.compiler import compiled as compiling
from nbta.compiler.executable import FailedError
from nbta.execution.runner import Runner

counts = {"agreed": 0, "gave up": 0, "not compiled": 0, "in python": 0}
reasons = {}


def checked(self, given, compiled, original=Runner.run):
    """What `Runner.run` gives, held against the generated function's results."""
    foreign = self.has_foreign
    try:
        expected = original(self, given, compiled)
    except Exception:
        if not foreign:
            _must_fail(self, given)
        raise
    if not foreign:
        _must_agree(self, given, expected[0])
    return expected


def _function(self, given):
    function = self.function([np.shape(value) for value in given])
    if isinstance(function, str):
        counts["not compiled"] += 1
        reasons[function] = reasons.get(function, 0) + 1
        return None
    counts["in python"] += bool(function.generated.calls)
    return function


def _must_fail(self, given):
    function = _function(self, given)
    if function is not None:
        try:
            function(given)
        except FailedError:
            counts["gave up"] += 1
        else:
            raise AssertionError("the generated function did not fail, and the reference did")


def _must_agree(self, given, expected):
    function = _function(self, given)
    if function is None:
        return
    try:
        found, _ = function(given)
    except FailedError:
        counts["gave up"] += 1
        return
    counts["agreed"] += 1
    wanted = self._tensors[1]
    for mine, theirs, tensor in zip(found, expected, wanted, strict=True):
        if tensor.kind == "data":
            _compare(mine, theirs, tensor)


def _compare(mine, theirs, tensor):
    mine, theirs = np.asarray(mine), np.asarray(theirs)
    assert mine.shape == theirs.shape, (tensor, mine.shape, theirs.shape)
    assert mine.dtype == theirs.dtype, (tensor, mine.dtype, theirs.dtype)
    if mine.dtype.kind in "fc":
        tolerance = 50 * np.finfo(mine.dtype).eps
        scale = np.nanmax(np.abs(theirs), initial=1, where=np.isfinite(theirs))
        np.testing.assert_allclose(mine, theirs, rtol=tolerance, atol=tolerance * scale * 10)
    else:
        np.testing.assert_array_equal(mine, theirs)


def install():
    """From now on, in this process."""
    compiling.build = interpreted
    Runner.run = checked
