"""Recorded and random programs by the generated source, which Python runs with bounds checked.

`both_executors.install` does the same for whatever else is run, for as long as one likes.
"""

import both_executors
import numpy as np
import pytest
from generated_source import BOUNDED, outcome, tensors
from golden import programs as recorded
from golden_graph import Expressions, RawGraph
from hypothesis import given, settings
from hypothesis import strategies as st
from interpreted import interpreted, watched
from random_programs import programs

import nbta
from nbta.compiler import executable as compiling
from nbta.execution.runner import Runner
from nbta.structure import leaves

#: What may stay as it is, one in so many: what gives up or is not compiled at all.
RARE = 6


@pytest.fixture(autouse=True)
def checked():
    with watched():
        yield


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


@pytest.mark.smoke_every(4)
@pytest.mark.parametrize("part", range(4))
def test_recorded_operations(part):
    found = []
    for program in recorded("raw")[part::24]:
        built = RawGraph()
        wanted = tensors([built.step(step) for step in program["steps"]])
        found.append(outcome(wanted, built.feeds))
    assert {"agreed", "failed"} <= set(found)


X = [np.array([0.71, -0.43, 0.92]), np.array([-0.37, 0.83, 0.11])]


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
