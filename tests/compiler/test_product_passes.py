"""Products that loops do in small pieces, done at once before them or after them."""

import numpy as np
import pytest
from golden import programs
from golden_graph import with_gradients
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from loop_programs import (
    PROGRAMS,
    inside,
    loops,
    nested,
    prepared,
    ranged,
    recurrent,
    same,
    until,
    values_of,
    whole,
)
from random_programs import programs as random_programs
from tape_programs import arrays, built, differentiated, fused_gru, fused_lstm, run, split_gru

import nbta
from nbta.compiler import product_passes
from nbta.compiler.array_passes import arrays_to_tensors
from nbta.compiler.linearised_tapes import tapes_to_arrays
from nbta.compiler.pipeline import lowered
from nbta.compiler.product_passes import hoist_products, sum_products_outside
from nbta.compiler.program import extract
from nbta.compiler.row_passes import rows_of_elementwise
from nbta.graph.views import is_loop
from nbta.structure import leaves
from nbta.testing import check_grads


def everything(program):
    for step in (arrays_to_tensors, rows_of_elementwise, hoist_products, sum_products_outside):
        program = step(program)
    return program


def filled(*shapes):
    rng = np.random.default_rng(0)
    return [rng.normal(size=shape) for shape in shapes]


def backward(program):
    """The types in the body of the last loop that steps back through iterations."""
    return inside(loops(program)[-1])


@pytest.mark.slow_but_every(4)
@pytest.mark.parametrize("name", PROGRAMS)
def test_recurrent_nets_give_the_same(name):
    program, values = PROGRAMS[name]()
    same(program, values, sum_products_outside)
    same(prepared(program), values, everything)


SOME = [program for family in ("gradients", "loops") for program in programs(family)[::4]]


@pytest.mark.slow_but_every(5)
@pytest.mark.parametrize("program", SOME, ids=lambda program: program["id"])
def test_recorded_programs_give_the_same(program):
    feeds, wanted = with_gradients(program)
    same(extract(list(feeds), wanted), list(feeds.values()), everything)


@pytest.mark.slow
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(random_programs(depth=2), st.integers(0, 4))
def test_random_programs_give_the_same(program, n):
    with nbta.Graph().as_default():
        x, iterations = nbta.placeholder("float64", (3,)), nbta.placeholder("int64", ())
        numbers, arrays = program(x, iterations)
        y = sum(nbta.sum(value) for value in [*numbers, *arrays])
        grads = [g for g in nbta.gradients(y, [x]) if g is not None]
    values = [np.array([0.71, -0.43, 0.92]), np.int64(n)]
    same(extract([x, iterations], [*numbers, *arrays, *grads]), values, everything)


def test_the_product_of_rows_is_done_before_the_loop():
    for reverse, batch in [(False, True), (False, False), (True, True), (True, False)]:
        program, values = recurrent(reverse=reverse, batch=batch)
        program = arrays_to_tensors(prepared(program))
        before, _ = loops(program)
        after, _ = loops(same(program, values, hoist_products))
        assert inside(before).count("MatMul") == 2
        assert inside(after).count("MatMul") == 1


def scan_of_rows(x, w):
    return nbta.scan(lambda h, row: (nbta.tanh(h + row @ w), None), nbta.zeros((2,)), x)[0]


def test_products_that_may_not_fit_stay_in_the_loop():
    program = arrays_to_tensors(prepared(built(scan_of_rows, (None, 3), (None, 2))))
    result = same(program, filled((4, 3), (3, 2)), hoist_products)
    assert "MatMul" in inside(loops(result)[0])
    same(program, filled((0, 3), (5, 2)), hoist_products)  # no iteration: nothing fails


def test_products_of_rows_that_a_loop_may_not_visit_stay_there():
    def f(x, w):
        return nbta.while_loop(
            lambda i, h: nbta.logical_and(i < 4, nbta.sum(h) < 0.1),
            lambda i, h: (i + 1, nbta.tanh(x[i] @ w)),
            (0, nbta.zeros((2,))),
        )[1]

    result = same(prepared(built(f, (4, 3), (3, 2))), filled((4, 3), (3, 2)), hoist_products)
    assert "MatMul" in inside(loops(result)[0])


def test_gradients_of_weights_are_summed_after_the_loop():
    program, values = recurrent()
    program = prepared(program)
    result = same(program, values, sum_products_outside)
    assert backward(program).count("MatMul") == 3
    assert backward(program).count("SumTo") == 1
    assert backward(result).count("MatMul") == 1  # the one from step to step
    assert "SumTo" not in backward(result)
    assert "Transpose" not in backward(result)


def test_what_several_sums_need_is_stacked_once():
    program, values = recurrent()
    result = same(tapes_to_arrays(prepared(program)), values, sum_products_outside)
    assert backward(result).count("TensorArrayWriteV3") == 1


def test_tapes_are_gathered_and_not_filled_again():
    for batch in (True, False):
        program, values = recurrent(batch=batch)
        program = tapes_to_arrays(prepared(program))
        gathers = whole(program).count("TensorArrayGatherV3")
        result = same(program, values, sum_products_outside)
        assert whole(result).count("TensorArrayGatherV3") == gathers + 3
        assert loops(result)[-1].attrs["count"] == loops(program)[-1].attrs["count"] - 2


def test_sums_of_vectors_go_along_where_they_are_stacked_anyway():
    program, values = recurrent(batch=False)
    result = same(prepared(program), values, sum_products_outside)
    assert "Outer" not in backward(result)
    assert backward(result).count("AddN") < backward(prepared(program)).count("AddN")


def test_a_sum_that_begins_with_something_goes_on_from_there():
    def f(x, first):
        return nbta.scan(lambda total, row: (total + nbta.outer(row, row), None), first, x)[0]

    program = prepared(built(f, (None, 3), (3, 3)))
    for steps in (0, 1, 4):
        result = same(program, filled((steps, 3), (3, 3)), everything)
        assert loops(result) == []  # nothing is left to be done in one


def test_other_terms_stay_in_the_loop():
    def f(x, first):
        def step(total, row):
            return nbta.add_n([total, nbta.outer(row, row), nbta.exp(total * 0.0 + 1.0)]), None

        def plain(total, row):
            more = nbta.add_n([nbta.outer(row, 2 * row), nbta.tanh(nbta.outer(row, row))])
            return total + more, None

        return nbta.scan(step, first, x)[0], nbta.scan(plain, first, x)[0]

    program = prepared(built(f, (None, 3), (3, 3)))
    result = same(program, filled((4, 3), (3, 3)), everything)
    kept, split = loops(result)
    assert inside(kept).count("Outer") == 1  # the total has another use
    assert inside(split).count("Outer") == 1
    assert "Tanh" in inside(split)


def test_a_total_that_others_see_stays():
    def f(x, first):
        return nbta.scan(lambda t, row: (t + nbta.outer(row, row), t), first, x)

    result = same(prepared(built(f, (None, 3), (3, 3))), filled((4, 3), (3, 3)), everything)
    assert "Outer" in inside(loops(result)[0])


def test_sums_that_decide_when_to_stop_stay():
    def f(x):
        return nbta.while_loop(
            lambda c, t: nbta.sum(t) < 50.0,
            lambda c, t: (c + 1.0, t + nbta.outer(x, c * x)),
            (1.0, nbta.zeros((3, 3))),
        )[1]

    result = same(prepared(built(f, (3,))), [np.ones(3)], sum_products_outside)
    assert "Outer" in inside(loops(result)[0])


def test_scalars_and_integers_stay():
    def f(x):
        total, count = nbta.constant(0.0), nbta.zeros((3, 3), "int64")

        def step(state, row):
            ones = nbta.cast(row, "int64")
            return (state[0] + nbta.sum(row), state[1] + nbta.outer(ones, ones)), None

        return list(nbta.scan(step, (total, count), x)[0])

    program = prepared(built(f, (None, 3)))
    result = same(program, filled((4, 3)), sum_products_outside)
    assert loops(result)[0].attrs["count"] == loops(program)[0].attrs["count"]


def test_rows_of_several_shapes_stay():
    def f(x):
        def body(i, total):
            part = x[:i]
            return i + 1, total + nbta.transpose(part) @ part

        return nbta.while_loop(lambda i, t: i < 4, body, (0, nbta.zeros((3, 3))))[1]

    result = same(prepared(built(f, (4, 3))), filled((4, 3)), sum_products_outside)
    assert "MatMul" in inside(loops(result)[0])


def test_iterations_that_only_the_run_tells_fill_growing_arrays():
    program, values = until()
    result = same(prepared(program), values, everything)
    assert backward(result).count("MatMul") < backward(prepared(program)).count("MatMul")


def test_lengths_that_only_the_run_tells_need_no_element_of_an_empty_array():
    program, values = PROGRAMS["lengths of the run, no steps"]()
    result = same(prepared(program), values, everything)
    assert "Case" in whole(result)
    assert np.all(values_of(result, values)[1] == 0.0)


def test_both_loops_of_a_nest_are_emptied():
    program, values = nested()
    result = same(prepared(program), values, everything)
    assert inside(loops(result)[-1]).count("MatMul") == 1


def lowered_and_the_same(make, batch=2):
    program, values = differentiated(make, batch=batch)
    made = lowered(program, [value.shape for value in values])
    for steps in (3, 5):
        some = [values[0][:steps], *values[1:]]
        for one, other in zip(run(made, some), run(program, some), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)
    return made


@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize(("make", "tapes"), [(fused_gru, 5), (split_gru, 5), (fused_lstm, 7)])
def test_nets_with_gates_side_by_side_keep_only_gates_and_states(make, tapes, batch):
    made = lowered_and_the_same(make, batch)
    assert len([name for name in arrays(made) if name.startswith("tape_of")]) == tapes
    for loop in loops(made):
        assert {"Shape", "Size", "SumTo"}.isdisjoint(inside(loop))


@pytest.mark.parametrize("batch", [1, 2])
def test_weights_that_each_iteration_takes_apart_are_taken_apart_once(batch):
    made = lowered_and_the_same(split_gru, batch)
    forward, back = loops(made)
    assert "Split" not in inside(forward) + inside(back)
    assert inside(forward).count("MatMul") == 3  # of the state; those of the input are outside
    assert inside(back).count("MatMul") == 6  # gradients of the state and of the input


def test_who_uses_what_is_found_anew_only_when_that_changed(monkeypatch):
    """For each of many loops it would take a time that grows with the square of the program."""

    def f(x, w):
        for _ in range(6):
            x = nbta.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, nbta.sin(y)), (0, x))[1]
        step = lambda i, y: (i + 1, nbta.tanh(w @ y))  # noqa: E731
        return nbta.sum(nbta.while_loop(lambda i, y: i < 3, step, (0, x))[1])

    def with_gradients(x, w):
        y = f(x, w)
        return [y, *nbta.gradients(y, [x, w])]

    program, values = prepared(built(with_gradients, (2, 1), (2, 2))), filled((2, 1), (2, 2))
    looks = []
    made = product_passes.ArrayUses
    monkeypatch.setattr(product_passes, "ArrayUses", lambda p: looks.append(p) or made(p))
    found = same(program, values, sum_products_outside)
    assert len(loops(program)) >= 14
    assert len(looks) <= 2
    assert len(found.operations) > len(program.operations)  # what was summed after a loop


def test_a_sum_of_outer_products_over_a_range_of_numbers():
    def f(u, v):
        b = np.zeros((u.shape[0], v.shape[0]))
        for i in range(200):
            b = b + np.outer(u * i, v)
        return b

    u, v = filled(5, 4)
    np.testing.assert_allclose(nbta.function(f, compiled=True)(u, v), f(u, v), rtol=1e-12)


def bodies(op):
    return op.attrs["body"].operations


def test_items_of_an_array_that_the_outermost_loop_keeps_need_no_tape():
    """Of ``p``, which is kept once per iteration, for its own sake: what inner loops read of it."""

    def f(a, p):
        def step(_, p, s):
            def row(i, q):
                return ranged(
                    p.shape[0], lambda j, q: nbta.add_item(q, i, a[i, j] * p[j] * p[i]), q
                )

            q = ranged(p.shape[0], row, nbta.zeros_like(p))
            return nbta.sin(q) + p * q, s + nbta.sum(p * q)

        return ranged(3, step, p, 0.0)[1]

    a, p = np.linspace(-1.0, 1.0, 16).reshape(4, 4), np.linspace(0.2, 1.0, 4)
    check_grads(f, (a, p), order=2)
    fast = nbta.value_and_grad(f, argnums=(0, 1), compiled=True)
    found, expected = fast(a, p), nbta.value_and_grad(f, argnums=(0, 1), compiled=False)(a, p)
    for one, other in zip(leaves(found), leaves(expected), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)
    inner = [op for op in loops(fast._last.runner.ran.program) if not any(map(is_loop, bodies(op)))]
    assert not any("TensorArray" in name for op in inner for name in inside(op))
