"""Loops, maps and branches in each other, with checkpoints and threads, to the second order."""

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from nested_programs import LEVELS, arguments, nest, nests
from test_both_executors import outcome, tensors

import nbta
from nbta import reverse_mode
from nbta.graph.graph import subgraphs
from nbta.structure import leaves

BOUNDED = {
    "suppress_health_check": [HealthCheck.too_slow],
    "phases": [Phase.explicit, Phase.reuse, Phase.generate],
}
STEP = 6e-6


def direction(program):
    x, _ = arguments(program)
    return np.sin(np.arange(x.size) + 1.0).reshape(x.shape)


def orders(program, count=2):
    """What a nest gives, its slope along a direction, and so on: each with its gradients."""
    along = direction(program)

    def run(x, c):
        y, found = program(x, c), []
        for _ in range(count):
            dx, dc = nbta.gradients([y], [x, c], unconnected="zero")
            found += [y, dx, dc]
            y = nbta.sum(dx * along) + 0.7 * dc
        return found

    return run


def check(program, count=2):
    """Against the same nest without options, and this against differences along a direction."""
    x, c = arguments(program)
    plain = nbta.function(orders(program.plain(), count))
    expected = plain(x, c)
    for mine, theirs in zip(nbta.function(orders(program, count))(x, c), expected, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-11)
    v = direction(program)
    ends = [plain(x + h * v, c + h * 0.7) for h in (STEP, -STEP)]
    for k in range(0, len(expected), 3):
        slope = (ends[0][k] - ends[1][k]) / (2 * STEP)
        found = np.sum(expected[k + 1] * v) + expected[k + 2] * 0.7
        np.testing.assert_allclose(found, slope, rtol=1e-5, atol=1e-5)


@settings(max_examples=10, **BOUNDED)
@given(nests(deepest=3))
def test_random_nests(program):
    check(program)


CHECKPOINTS = [level for level in LEVELS if "checkpoint" in level[1]]
PARALLEL = ("map", {"parallel_iterations": 2})


@pytest.mark.parametrize("inner", CHECKPOINTS, ids=lambda level: repr(nest([level])))
def test_checkpoints_in_a_parallel_map(inner):
    """The second derivative was refused, as nobody looked for checkpoints in the map's body."""
    check(nest([PARALLEL, inner]))


@pytest.mark.parametrize("outer", CHECKPOINTS[::3], ids=lambda level: repr(nest([level])))
def test_a_parallel_map_in_checkpoints(outer):
    check(nest([outer, PARALLEL]))


def test_third_derivatives():
    check(nest([PARALLEL, ("scan", {"checkpoint": 2})]), 3)


FOLDS = nest([("foldl", {"checkpoint": 2}), ("foldl", {})])


@settings(max_examples=3, **BOUNDED)
@given(nests(deepest=2))
@example(FOLDS)  # a buffer of the function's own, whose handle Python was to keep
def test_random_nests_compiled(program):
    values = arguments(program)
    with nbta.Graph().as_default():
        fed = {nbta.placeholder("float64", np.shape(value)): value for value in values}
        results = orders(program)(*fed)
    found = outcome(tensors(leaves(results)), fed)
    assert found == "agreed" or found.startswith("not compiled"), found


def test_a_refusal_is_found(monkeypatch):
    monkeypatch.setattr(reverse_mode, "all_bodies", subgraphs)
    with pytest.raises(nbta.InvalidArgumentError, match="computes trips again"):
        found_by_the_family()


@settings(max_examples=200, phases=[Phase.generate], database=None)
@given(nests(deepest=2))
def found_by_the_family(program):
    with nbta.Graph().as_default():
        orders(program)(*map(nbta.constant, arguments(program)))
