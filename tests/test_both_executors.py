"""Recorded and random programs by the generated source, which Python runs with bounds checked.

`both_executors.install` does the same for whatever else is run, for as long as one likes.
"""

import both_executors
import numpy as np
import pytest
from both_executors import compare
from golden import programs as recorded
from golden_graph import Expressions, RawGraph
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from interpreted import exits, interpreted, watched
from random_programs import programs

import nbta
from nbta.codegen.code import NotCompiledError
from nbta.compiler import compiled as compiling
from nbta.compiler.compiled import Compiled
from nbta.compiler.executable import Executable, FailedError
from nbta.compiler.pipeline import optimised
from nbta.execution.plan import Plan
from nbta.execution.runner import Runner
from nbta.execution.step import Step
from nbta.graph.operation import Tensor
from nbta.structure import leaves

#: What may stay as it is, one in so many: what gives up or is not compiled at all.
RARE = 6


@pytest.fixture(autouse=True)
def checked():
    with watched():
        yield


class Interpreted(Compiled):
    """A program whose generated source Python runs."""

    def _built(self, generated):
        return Executable(generated, interpreted(generated.source, generated.globals), Step)


def outcome(wanted, feeds):
    """What became of a program: "agreed", "failed", or why there is nothing to compare.

    "failed" where both did.
    """
    given, values = list(feeds), [np.asarray(value) for value in feeds.values()]
    with np.errstate(all="ignore"):
        try:
            expected = Plan(given, wanted, ())(Step(), values)
        except nbta.NbtaError as error:
            expected = error
        try:
            function = Interpreted(optimised(given, wanted), list(map(np.shape, values)), Step)
        except NotCompiledError as reason:
            return f"not compiled: {reason}"
        return called(function, values, wanted, expected)


def called(function, values, wanted, expected):
    """What becomes of two calls, as results go into arrays like those of the call before."""
    for _ in range(2):
        exits.clear()
        try:
            found, _ = function([value.copy() for value in values])
        except FailedError:
            return "failed" if isinstance(expected, Exception) else f"gave up at {exits}"
        assert not isinstance(expected, Exception), expected
        for mine, theirs, tensor in zip(found, expected, wanted, strict=True):
            if tensor.kind == "data":
                compare(mine, theirs, tensor)
    return "agreed"


def tensors(fetches):
    """The tensors that are asked for."""
    return [fetch for fetch in leaves(fetches) if isinstance(fetch, Tensor)]


@pytest.mark.slow_but_every(4)
@pytest.mark.parametrize("family", ["gradients", "loops"])
@pytest.mark.parametrize("part", range(4))
def test_recorded_gradients(family, part):
    found = []
    for program in recorded(family)[part::8]:
        built = Expressions(program)
        for call in program["gradients"]:
            built.differentiate(call)
        wanted = tensors([built.names[ref] for ref in program["fetch"]] + built.calls)
        found.append(outcome(wanted, built.feeds))
    assert sum(what != "agreed" for what in found) <= len(found) / RARE, found


@pytest.mark.parametrize("part", range(4))
def test_recorded_operations(part):
    found = []
    for program in recorded("raw")[part::24]:
        built = RawGraph()
        wanted = tensors([built.step(step) for step in program["steps"]])
        found.append(outcome(wanted, built.feeds))
    assert {"agreed", "failed"} <= set(found)


X = [np.array([0.71, -0.43, 0.92]), np.array([-0.37, 0.83, 0.11])]
#: Without looking for smaller examples, which takes minutes.
BOUNDED = {
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large],
    "phases": [Phase.explicit, Phase.reuse, Phase.generate],
}


@pytest.mark.slow
@settings(max_examples=25, **BOUNDED)
@given(programs(depth=2), st.sampled_from(X), st.integers(0, 4))
def test_random_programs(program, x, n):
    with nbta.Graph().as_default():
        fed = {nbta.placeholder("float64", (3,)): x, nbta.placeholder("int64", ()): np.int64(n)}
        results = leaves(program(*fed))
        ys = [y for y in results if y.dtype == np.float64]
        slopes = nbta.gradients([nbta.add_n([nbta.sum(y * y) for y in ys])], [next(iter(fed))])
    found = outcome(tensors([results, slopes]), fed)
    assert found == "agreed" or found.startswith("not compiled"), found


def test_tapes_stay_whose_gradient_arrays_are_used(monkeypatch):
    monkeypatch.setattr(compiling, "build", interpreted)
    monkeypatch.setattr(Runner, "run", both_executors.checked)
    before = dict(both_executors.counts)
    nbta.testing.check_grads(
        lambda x: nbta.map_fn(lambda v: {"a": nbta.sin(v) * x, "b": v * v}, x), (X[0],), order=2
    )
    assert both_executors.counts["gave up"] == before["gave up"]
    assert both_executors.counts["agreed"] > before["agreed"]
