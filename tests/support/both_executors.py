"""Every run of a session through the generated function too, which must agree."""

import weakref

import numpy as np
from interpreted import exits, interpreted, watched

from nbta.compiler import executable as compiling
from nbta.compiler.executable import FailedError
from nbta.execution.runner import Runner

counts = {
    "agreed": 0, "failed as the reference does": 0, "gave up": 0, "not compiled": 0, "in python": 0,
}  # fmt: skip
#: Why programs were not compiled, where functions gave up although the reference gives a result,
#: and what ran in Python, with how often; the number of an exit is before its line.
reasons, given_up, in_python = {}, {}, {}
#: How many runs of one runner are checked, as Python is slow, and differences take many.
EACH = 4
_done = weakref.WeakKeyDictionary()


def checked(self, given, compiled, original=Runner.run):
    """What `Runner.run` gives, held against the generated function's results."""
    _done[self] = _done.get(self, 0) + 1
    foreign = self.has_foreign or _done[self] > EACH
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
    function = self.function(tuple(np.shape(value) for value in given))
    if isinstance(function, str):
        counts["not compiled"] += 1
        _note(reasons, function)
        return None
    counts["in python"] += bool(function.generated.calls)
    for call in function.generated.calls:
        _note(in_python, call.op.type if call.op is not None else type(call).__name__)
    return function


def _note(table, what):
    table[what] = table.get(what, 0) + 1


def summary():
    """Lines that say what became of all runs."""
    yield ", ".join(f"{name}: {count}" for name, count in counts.items())
    for title, table in (
        ("not compiled", reasons), ("gave up although the reference gives a result", given_up),
        ("in Python", in_python),
    ):  # fmt: skip
        yield f"{title}:"
        yield from (f"{n:6} {what}" for what, n in sorted(table.items(), key=lambda kv: -kv[1]))


def _must_fail(self, given):
    function = _function(self, given)
    if function is not None:
        try:
            function(given)
        except FailedError:
            counts["failed as the reference does"] += 1
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
        _note(given_up, exits[-1] if exits else "?")
        return
    counts["agreed"] += 1
    wanted = self.tensors[1]
    for mine, theirs, tensor in zip(found, expected, wanted, strict=True):
        if tensor.kind == "data":
            compare(mine, theirs, tensor)


def compare(mine, theirs, tensor):
    mine, theirs = np.asarray(mine), np.asarray(theirs)
    assert mine.shape == theirs.shape, (tensor, mine.shape, theirs.shape)
    assert mine.dtype == theirs.dtype, (tensor, mine.dtype, theirs.dtype)
    if mine.dtype.kind in "fc":
        tolerance = 50 * np.finfo(mine.dtype).eps
        scale = np.max(np.abs(theirs), initial=1, where=np.isfinite(theirs))
        np.testing.assert_allclose(mine, theirs, rtol=tolerance, atol=tolerance * scale * 10)
    else:
        np.testing.assert_array_equal(mine, theirs)


def install():
    """From now on, in this process."""
    watched().__enter__()
    compiling.build = interpreted
    Runner.run = checked
