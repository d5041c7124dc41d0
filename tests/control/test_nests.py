"""Loops, maps and branches in each other, with checkpoints and threads, to the second order."""

import numpy as np
import pytest
from compiled_pairs import compare
from fuzz.nests import LEVELS, arguments, compare_orders, nest, nests, orders
from fuzz.ways import in_python
from generated_source import outcome, tensors
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

import nbta
from nbta.compiler.explain import loops_around
from nbta.control import reverse_mode
from nbta.graph.graph import subgraphs
from nbta.structure import leaves

BOUNDED = {
    "suppress_health_check": [HealthCheck.too_slow],
    "phases": [Phase.explicit, Phase.reuse, Phase.generate],
}


@pytest.mark.slow
@settings(max_examples=10, **BOUNDED)
@given(nests(deepest=3))
def test_random_nests(program):
    compare_orders(program)


CHECKPOINTS = [level for level in LEVELS if "checkpoint" in level[1]]
PARALLEL = ("map", {"parallel_iterations": 2})


@pytest.mark.slow_but_every(7)
@pytest.mark.parametrize("inner", CHECKPOINTS, ids=lambda level: repr(nest([level])))
def test_checkpoints_in_a_parallel_map(inner):
    """The second derivative was refused, as nobody looked for checkpoints in the map's body."""
    compare_orders(nest([PARALLEL, inner]))


@pytest.mark.parametrize("outer", CHECKPOINTS[::3], ids=lambda level: repr(nest([level])))
def test_a_parallel_map_in_checkpoints(outer):
    compare_orders(nest([outer, PARALLEL]))


#: Levels without options, in all of which derivatives of any order are compiled whole.
NATIVE = [(kind, {}) for kind in ("scan", "foldl", "foldr", "while", "map", "cond")]


@pytest.mark.slow
@settings(max_examples=4, **BOUNDED)
@given(st.lists(st.sampled_from(NATIVE), min_size=1, max_size=2), st.sampled_from(NATIVE[:5]))
@example([("scan", {}), ("map", {})], ("map", {}))
def test_random_nests_call_no_python_in_loops(outer, inner):
    program = nest([*outer, inner])
    traced = nbta.function(orders(program), compiled=False, convert=False)
    traced(*arguments(program))
    calls = traced._compiled_program().generated.calls
    assert [call.op.name for call in calls if loops_around(call.op)] == []


#: Arrays that grow in each iteration of a loop around, and loops with checkpoints, in each other.
GROWING = [
    [("list", {})], [("rows", {})], [("plain", {})],
    [("list", {"checkpoint": "sqrt"})], [("rows", {"checkpoint": 2})],
    [("scan", {}), ("list", {})], [("while", {"checkpoint": 2}), ("list", {})],
    [("foldl", {}), ("rows", {})], [("scan", {"checkpoint": "sqrt"}), ("rows", {})],
    [("cond", {}), ("plain", {})], [("scan", {}), ("plain", {})],
    [("while", {}), ("list", {"checkpoint": "sqrt"})], [("scan", {}), ("rows", {"checkpoint": 2})],
    [("cond", {}), ("list", {"checkpoint": "online"})], [("cond", {}), ("rows", {"checkpoint": 2})],
    [("list", {"checkpoint": 2}), ("array", {"checkpoint": "online"})],
    [("map", {}), ("scan", {"checkpoint": "sqrt"})],
    [("foldl", {"checkpoint": 2}), ("map", {"checkpoint": "sqrt"})],
]  # fmt: skip


@pytest.mark.slow_but_every(4)
@pytest.mark.parametrize("levels", GROWING, ids=lambda levels: repr(nest(levels)))
def test_growing_arrays_call_no_python_to_second_order(levels):
    program = nest(levels)
    compare_orders(program)
    given, traced = arguments(program), nbta.function(orders(program), compiled=True)
    with in_python():
        found = traced(*given)
    compare(found, nbta.function(orders(program), compiled=False)(*given))
    assert "operations that run in Python" not in traced.explain()


#: All levels but those with threads, which start anew in each iteration.
LEVELS_OF_LOOPS = [level for level in LEVELS if "parallel_iterations" not in level[1]]


@pytest.mark.slow
@settings(max_examples=6, **BOUNDED)
@given(st.lists(st.sampled_from(LEVELS_OF_LOOPS), min_size=2, max_size=3))
@example([("scan", {}), ("map", {"checkpoint": 2}), ("while", {"checkpoint": "online"})])
@example([("scan", {}), ("plain", {}), ("list", {"checkpoint": "sqrt"})])
def test_gradients_of_random_nests_call_no_python(levels):
    program = nest(levels)
    given, traced = arguments(program), nbta.function(orders(program, 1), compiled=True)
    with in_python():
        found = traced(*given)
    compare(found, nbta.function(orders(program, 1), compiled=False)(*given))
    assert "operations that run in Python" not in traced.explain()
    assert [trace.runner.fallbacks for trace in traced.every_trace()] == [0]


@pytest.mark.slow
@pytest.mark.parametrize(
    "levels", [[PARALLEL, ("scan", {"checkpoint": 2})], [("scan", {}), ("list", {})]]
)
def test_third_derivatives(levels):
    compare_orders(nest(levels), 3)


FOLDS = nest([("foldl", {"checkpoint": 2}), ("foldl", {})])


@pytest.mark.slow
@settings(max_examples=3, **BOUNDED)
@given(nests(deepest=2))
@example(FOLDS)  # a buffer of the function's own, whose handle Python was to keep
def test_random_nests_compiled(program):
    values = arguments(program)
    with nbta.Graph().as_default():
        fed = {nbta.placeholder("float64", np.shape(value)): value for value in values}
        results = nbta.function(orders(program))(*fed)
    found = outcome(tensors(leaves(results)), fed)
    assert found == "agreed" or found.startswith("not compiled"), found


@pytest.mark.slow
def test_a_refusal_is_found(monkeypatch):
    monkeypatch.setattr(reverse_mode, "all_bodies", subgraphs)
    with pytest.raises(nbta.InvalidArgumentError, match="computes iterations again"):
        found_by_the_family()


@settings(max_examples=200, phases=[Phase.generate], derandomize=True)
@given(nests(deepest=2))
def found_by_the_family(program):
    with nbta.Graph().as_default():
        nbta.function(orders(program))(*map(nbta.constant, arguments(program)))
