"""Passes: the graph that each makes, and the same numbers from it."""

import itertools

import numpy as np
import pytest
from fuzz.ways import in_python
from golden import programs
from golden_graph import all_operations, with_gradients
from tape_programs import built

import nbta
from nbta.compiler import passes
from nbta.compiler.induction import Counts
from nbta.compiler.program import extract
from nbta.execution.reference import Plan, Step
from nbta.graph.verifier import verify
from nbta.ops.core.dispatch import operation_key
from nbta.ops.loops.aliases import ArrayUses


def values(program):
    rng = np.random.default_rng(0)
    given = [rng.uniform(0.5, 1.5, tensor.shape)[()] for tensor in program.inputs]
    return Plan(program.inputs, program.outputs, program.targets)(Step(), given)


def types(program):
    """Types of all operations, those in bodies too, without what has no cost."""
    found = [op.type for op in all_operations(program)]
    return sorted(name for name in found if name not in ("Parameter", "Constant"))


def after(step, program):
    """The program that a pass makes, which computes the same and is whole."""
    result = step(program)
    verify(result)
    for found, expected in zip(values(result), values(program), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-14)
    return result


def loop(body, *first):
    return nbta.while_loop(lambda i, *_: i < 3, lambda i, *v: (i + 1, *body(i, *v)), (0, *first))


def test_extraction_takes_what_is_needed_and_keeps_names():
    def f(x):
        nbta.exp(x)
        with nbta.name_scope("layer"):
            return nbta.tanh(x, name="squash") * 2.0

    program = built(f, (2,))
    assert [op.name for op in program.operations if op.type != "Constant"] == [
        "x0", "layer/squash", "layer/Mul",
    ]  # fmt: skip
    verify(program)


def test_fed_tensors_are_parameters():
    with nbta.Graph().as_default():
        x = nbta.placeholder("float64", ())
        y = nbta.exp(x)
        z = y * 2.0
    assert types(extract([y], [z])) == ["Mul"]


def test_operations_without_results_are_targets():
    with nbta.Graph().as_default():
        ta = nbta.TensorArray("float64", size=1)
        closing = ta.write(0, 1.0).close()
    program = extract([], [], [closing])
    assert types(program) == ["TensorArrayCloseV3", "TensorArrayV3", "TensorArrayWriteV3"]
    assert program.targets[0].control_inputs[0].type == "TensorArrayWriteV3"


@pytest.mark.smoke
def test_prune_drops_variables_that_no_result_needs():
    def f(x):
        _, y, _ = loop(lambda i, y, z: (y * x, z + nbta.sin(y)), x, x)
        return y

    program = built(f, (2,))
    (before,) = (op for op in program.operations if op.type == "While")
    pruned = after(passes.prune, program)
    (op,) = (op for op in pruned.operations if op.type == "While")
    assert (before.attrs["count"], op.attrs["count"]) == (4, 3)
    assert types(pruned) == ["Add", "Add", "Less", "Mul", "While"]


@pytest.mark.parametrize("branch", [False, True])
def test_prune_drops_variables_of_loops_in_loops_that_no_result_needs(branch):
    """What goes through an inner loop, or a branch, beside what a result needs."""

    def f(x):
        def step(i, y, z):
            return y * x, z + nbta.sin(z)

        def inner(i, y, z):
            if branch:
                return nbta.cond(x > 1.0, lambda: step(i, y, z), lambda: (y, z * 2.0))
            return loop(step, y, z)[1:]

        return loop(inner, x, x)[1]

    program = after(passes.prune, built(f, ()))
    found = types(program)
    assert "Mul" in found
    assert "Sin" not in found
    counts = [op.attrs["count"] for op in all_operations(program) if op.type == "While"]
    assert counts == [3] * len(counts)  # the counter, `i`, and what the result needs


def test_prune_drops_tapes_of_gradients_that_are_not_fetched():
    def f(x):
        _, y = loop(lambda i, y: (nbta.tanh(y * x),), x)
        nbta.gradients(y, [x])
        return y

    program = built(f, (2,))
    assert "Tape" in types(program)
    assert types(after(passes.prune, program)) == ["Add", "Add", "Less", "Mul", "Tanh", "While"]


@pytest.mark.smoke
def test_prune_keeps_what_a_condition_or_another_variable_needs():
    def f(x):
        return nbta.while_loop(
            lambda a, b, c, d: c < 10.0,
            lambda a, b, c, d: (a + b, b * 1.5, c + 1.0 + d * 0.0, d + 1.0),
            (x, x, nbta.constant(0.0), nbta.constant(0.0)),
        )[0]

    (op,) = (op for op in after(passes.prune, built(f, ())).operations if op.type == "While")
    assert op.attrs["count"] == 5  # all four, and the counter of iterations


def test_prune_looks_before_it_changes_anything():
    """Loops in three loops lose variables of their own whose users are in those around."""

    def f(c):
        total = 0.0
        for _ in range(9):
            for j in range(9):
                for k in range(9):
                    total += c[j, k] ** 2
        return total

    c = np.ones((9, 9))
    along = np.linspace(-1.0, 1.0, 81).reshape(9, 9)
    product = nbta.function(lambda c: nbta.jvp(nbta.grad(f), c, along)[1], compiled=True)
    with in_python():
        np.testing.assert_allclose(product(c), 18.0 * along)


def test_no_analysis_answers_for_a_graph_that_has_lost_something():
    def f(x):
        _, y, _ = loop(lambda i, y, z: (y * x, z + nbta.sin(y)), x, x)
        return y

    program = built(f, ())
    (op,) = (op for op in program.operations if op.type == "While")
    counts, arrays = Counts(program), ArrayUses(program)
    assert counts.number(op.outputs[0]) == counts.iterations(op)
    passes.prune.in_place(program)
    with pytest.raises(AssertionError, match="Counts of a graph that has changed"):
        counts.number(op.outputs[0])
    with pytest.raises(AssertionError, match="ArrayUses of a graph that has changed"):
        arrays.touching(None)


@pytest.mark.smoke
def test_prune_drops_results_of_branches():
    def f(x):
        y, _ = nbta.cond(x > 1.0, lambda: (x * 2, nbta.exp(x)), lambda: (x, nbta.sin(x)))
        return y

    pruned = after(passes.prune, built(f, ()))
    assert types(pruned) == ["Case", "Greater", "Mul"]


def test_prune_lets_flows_go_past_branches_that_write_nothing():
    def f(x):
        ta = nbta.TensorArray("float64", 2, element_shape=(), clear_after_read=False).write(0, x)
        y, ta = nbta.cond(x > 1.0, lambda: (nbta.exp(x), ta), lambda: (nbta.sin(x), ta))
        ta = ta.write(1, y)
        return ta.read(0) + ta.read(1)

    pruned = after(passes.prune, built(f, ()))
    (case,) = (op for op in pruned.operations if op.type == "Case")
    assert [tensor.kind for tensor in (*case.inputs, *case.outputs)] == ["data"] * 3


@pytest.mark.smoke
def test_prune_keeps_effects_in_bodies():
    def f(x):
        ta = nbta.TensorArray("float64", size=3)
        _, ta = nbta.while_loop(lambda i, ta: i < 3, lambda i, ta: (i + 1, ta.write(i, x)), (0, ta))
        return ta.stack()

    assert "TensorArrayWriteV3" in types(after(passes.prune, built(f, ())))


@pytest.mark.smoke
def test_fold_constants_computes_what_is_known():
    def f(x):
        return x * nbta.sum(nbta.ones((3,)) * 2.0)

    assert types(after(passes.fold_constants, built(f, ()))) == ["Mul"]


@pytest.mark.smoke
def test_fold_constants_leaves_large_and_failing_ones_alone():
    large = built(lambda x: x + nbta.zeros((200, 200)), (1, 1))
    assert "Fill" in types(after(passes.fold_constants, large))
    program = built(lambda x: nbta.take(nbta.constant([1.0]), nbta.constant([3])) * x, ())
    assert types(passes.fold_constants(program)) == ["Mul", "Take"]
    with pytest.raises(nbta.InvalidArgumentError, match="index 3 is out of range"):
        values(passes.fold_constants(program))


@pytest.mark.smoke
def test_share_computes_equal_things_once():
    def f(x, y):
        return nbta.tanh(x) * nbta.tanh(x) + x[0:1] + x[0:1] + nbta.sum(y, 0) - nbta.sum(y, 1)

    shared = types(after(passes.share, built(f, (2,), (2, 2))))
    assert shared.count("Tanh") == 1
    assert shared.count("GetItem") == 1
    assert shared.count("Sum") == 2  # along different axes


@pytest.mark.smoke
def test_share_leaves_effects_and_users_functions_alone():
    calls = []

    @nbta.custom_gradient
    def noted(x):
        calls.append(x)
        return x + 1

    def f(x):
        ta = nbta.TensorArray("float64", size=1, clear_after_read=False).write(0, x)
        return ta.read(0) + ta.read(0) + noted(x) + noted(x)

    shared = types(after(passes.share, built(f, ())))
    assert shared.count("TensorArrayReadV3") == 2
    assert shared.count("Custom") == 2


@pytest.mark.smoke
def test_share_respects_control_inputs():
    def f(x):
        first = nbta.exp(x)
        with nbta.control_dependencies([first]):
            second = nbta.tanh(x)
        return first + second + nbta.tanh(x)

    assert types(after(passes.share, built(f, ()))).count("Tanh") == 2


@pytest.mark.smoke
def test_hoist_moves_what_no_iteration_changes_out_of_loops():
    def f(x, w):
        return loop(lambda i, y: (nbta.tanh(y @ (w.T * 2.0)),), x)[1]

    hoisted = after(passes.hoist, built(f, (2, 3), (3, 3)))
    (op,) = (op for op in hoisted.operations if op.type == "While")
    inner = [o.type for o in op.attrs["body"].operations if o.type not in ("Parameter", "Constant")]
    assert sorted(inner) == ["Add", "Add", "MatMul", "Tanh"]
    assert {"Transpose", "Mul"} <= {o.type for o in hoisted.operations}


@pytest.mark.smoke
def test_hoist_moves_out_of_all_loops():
    def f(x):
        def outer(i, y):
            return loop(lambda j, z: (z + nbta.exp(x),), y)[1:]

        return loop(outer, x)[1]

    hoisted = after(passes.hoist, built(f, (2,)))
    assert [o.type for o in hoisted.operations].count("Exp") == 1


@pytest.mark.smoke
def test_hoist_leaves_what_may_fail_where_it_is():
    def f(x):
        return nbta.while_loop(
            lambda y: nbta.sum(y) > 1e9, lambda y: y + nbta.cholesky(-x), x
        )  # no iteration: nothing fails

    hoisted = after(passes.hoist, built(f, (2, 2)))
    assert "Cholesky" not in [o.type for o in hoisted.operations]


FLOATS = {
    "Div": lambda x: x / 3.0,
    "Sqrt": nbta.sqrt,
    "Rsqrt": nbta.rsqrt,
    "Log": nbta.log,
    "Log1p": nbta.log1p,
    "Erf": nbta.erf,
    "Softplus": nbta.softplus,
    "Pow": lambda x: x**2.5,
    "FloorDiv": lambda x: x // 0.3,
    "Mod": lambda x: x % 0.3,
    "Sum": lambda x: nbta.sum(x, 0, keepdims=True),
    "Stack": lambda x: nbta.stack([x[0], x[1]]),
}


@pytest.mark.parametrize("name", FLOATS)
def test_hoist_moves_all_that_cannot_fail(name):
    """Also out of loops that run no iteration, and on what has no logarithm."""
    for limit, first in itertools.product((3, 0), (1.0, -1.0)):

        def f(x, limit=limit, first=first):
            return nbta.while_loop(
                lambda i, y: i < limit,
                lambda i, y: (i + 1, y * 0.5 + FLOATS[name](x * first)),
                (0, x),
            )[1]

        with np.errstate(all="ignore"):  # as in all runs
            hoisted = after(passes.hoist, built(f, (2,)))
        (loop,) = (op for op in hoisted.operations if op.type == "While")
        assert name in [op.type for op in hoisted.operations]
        assert name not in [op.type for op in loop.attrs["body"].operations]


def test_hoist_leaves_powers_of_integers_in_loops_that_may_run_no_iteration():
    def f(x):
        base, exponent = nbta.cast(x, "int64"), nbta.cast(x, "int64") - 5
        return nbta.while_loop(lambda y: y > 1e9, lambda y: y + nbta.sum(base**exponent), x[0])

    hoisted = after(passes.hoist, built(f, (2,)))
    assert "Pow" not in [op.type for op in hoisted.operations]
    assert "Sub" in [op.type for op in hoisted.operations]


@pytest.mark.slow_but_every(4)
@pytest.mark.parametrize("checkpoint", [None, 2, "sqrt", "online"])
@pytest.mark.parametrize("iterations", [0, 5])
def test_what_is_hoisted_changes_no_gradient(checkpoint, iterations):
    """Against the same without a loop, of first and second order, in both executors."""

    def iteration(w, y):
        return nbta.tanh(y / nbta.sqrt(w) + nbta.log(w) * nbta.erf(w) - nbta.softplus(-w))

    def looped(w):
        def body(i, y):
            return i + 1, iteration(w, y)

        loop = nbta.while_loop(lambda i, y: i < iterations, body, (0, w * w), checkpoint=checkpoint)
        return nbta.sum(loop[1])

    def unrolled(w):
        y = w * w
        for _ in range(iterations):
            y = iteration(w, y)
        return nbta.sum(y)

    w = np.array([0.5, 1.5, 3.0])
    for compiled in (False, True):
        for wanted, found in (
            (nbta.value_and_grad(unrolled)(w), nbta.value_and_grad(looped, compiled=compiled)(w)),
            (nbta.hvp(unrolled, w, w), nbta.hvp(looped, w, w)),
        ):
            for a, b in zip(wanted, found, strict=True):
                np.testing.assert_allclose(b, a, rtol=1e-12)


SOME = [program for family in ("gradients", "loops") for program in programs(family)[::8]]


@pytest.mark.smoke_every(6)
@pytest.mark.slow_but_every(5)
@pytest.mark.parametrize("step", [passes.prune, passes.fold_constants, passes.share, passes.hoist])
@pytest.mark.parametrize("program", SOME, ids=lambda program: program["id"])
def test_recorded_programs_give_the_same_after_each_pass(program, step):
    feeds, wanted = with_gradients(program)
    given = extract(list(feeds), wanted)
    results = []
    for each in (given, step(given)):
        verify(each)
        results.append(Plan(each.inputs, each.outputs)(Step(), list(feeds.values())))
    for expected, found in zip(*results, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)


@pytest.mark.smoke
@pytest.mark.parametrize(("one", "other"), [(True, 1), (0.0, -0.0), (1, 1.0), ((1, True), (1, 1))])
def test_attributes_that_python_calls_equal_are_distinguished(one, other):
    """``x[True]`` is not ``x[1]``."""
    with nbta.Graph().as_default():
        op = nbta.sin(nbta.placeholder(np.float64, ())).op
    keys = set()
    for value in (one, other, one):
        op.attrs["drawn"] = value
        keys.add(operation_key(op, op.inputs))
    assert len(keys) == 2
