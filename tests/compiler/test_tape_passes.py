"""Tapes not needed, or needed once: the arrays that are left, bitwise identical results."""

import numpy as np
import pytest
from golden import programs
from golden_graph import with_gradients
from tape_programs import (
    arrays,
    built,
    differentiated,
    gru,
    halving,
    lstm,
    nested,
    run,
    same_bits,
    tanh_rnn,
    types,
)

import nbta
from nbta.compiler import passes, tape_passes
from nbta.compiler.array_passes import arrays_to_tensors
from nbta.compiler.least_saved import save_least
from nbta.compiler.pipeline import optimised
from nbta.compiler.program import extract
from nbta.compiler.rematerialisation import rematerialise
from nbta.compiler.shape_passes import simplify_shapes
from nbta.compiler.specialising import specialise
from nbta.compiler.tape_passes import share_tapes
from nbta.compiler.tapes import Tapes
from nbta.graph.verifier import verify

NETS = [tanh_rnn, gru, lstm, nested, halving]


def after(program, values, *steps):
    """The program after passes, each of which gives bitwise identical results."""
    for step in steps:
        made = step(program)
        verify(made)
        same_bits(made, program, values)
        program = made
    return program


def everything(program, values):
    """The program after all passes over shapes and tapes, in their order."""
    given = [np.shape(value) for value in values]

    def known(program):
        return specialise(program, given, together=True)

    first = (known, simplify_shapes, rematerialise, passes.prune, simplify_shapes)
    return after(program, values, *first, share_tapes, passes.prune)


def taped(f, *values):
    """A program of a function and its gradients, and values for it."""

    def with_gradients(*given):
        y = f(*given)
        return [y, *(g for g in nbta.gradients(y, given) if g is not None)]

    return built(with_gradients, *map(np.shape, values)), [np.asarray(v) for v in values]


def tapes(program):
    return sorted(name for name in arrays(program) if name.startswith("tape_of"))


@pytest.mark.slow_but_every(5)
@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("make", NETS)
def test_nets_give_the_same_bits(make, order):
    program, values = differentiated(make, order)
    before = arrays(program)
    made = everything(program, values)
    assert len(arrays(made)) < len(before) or make is halving  # which keeps h and tanh(h @ u)
    for steps in (0, 1, 3):
        rest = [np.ones((steps, 2, 3)), *values[1:]]
        same_bits(share_tapes(rematerialise(program)), program, rest)


@pytest.mark.smoke
def test_counters_and_shapes_are_computed_again():
    program, values = differentiated(tanh_rnn)
    kept = ["tape_of_Parameter"] * 2 + ["tape_of_Shape", "tape_of_Tanh"]
    assert tapes(program) == [*kept, "tape_of_TensorArrayReadV3"]
    made = everything(program, values)
    # The states, first to last, and the rows of xs.
    assert tapes(made) == ["tape_of_Parameter", "tape_of_TensorArrayReadV3"]


@pytest.mark.smoke
@pytest.mark.parametrize(
    ("first", "step", "dtype"), [(0, 1, "int32"), (5, -3, "int64"), (250, 3, "uint8")]
)
def test_an_induction_variable_is_computed_again(first, step, dtype):
    def f(x):
        def body(i, k, y):
            return (
                i + 1,
                k + nbta.constant(step % 256, dtype) if dtype == "uint8" else k + step,
                (nbta.sin(y) * nbta.cast(k, "float64")),
            )

        first_k = nbta.constant(first, dtype)
        return nbta.while_loop(lambda i, k, y: i < 6, body, (0, first_k, x))[2]

    program, values = taped(f, 0.5)
    assert len(tapes(program)) >= 2
    made = after(program, values, rematerialise, passes.prune)
    assert len(tapes(made)) < len(tapes(program))


def test_a_float_that_is_counted_stays_on_its_tape():
    """0.1 added ten times is not 10 * 0.1."""

    def f(x):
        return nbta.while_loop(
            lambda i, t, y: i < 10, lambda i, t, y: (i + 1, t + 0.1, nbta.sin(y) * t), (0, 0.0, x)
        )[2]

    program, values = taped(f, 0.5)
    assert tapes(after(program, values, rematerialise, passes.prune)) == tapes(program)


@pytest.mark.smoke
def test_a_row_of_a_tensor_is_taken_again():
    def f(x, w):
        return nbta.while_loop(
            lambda i, h: i < 4, lambda i, h: (i + 1, nbta.tanh(h * nbta.take(w, i, 0))), (0, x)
        )[1].sum()

    program, values = taped(f, np.ones(3), np.linspace(0, 1, 12).reshape(4, 3))
    made = after(program, values, rematerialise, passes.prune)
    assert "tape_of_Take" in tapes(program)
    assert "tape_of_Take" not in tapes(made)


@pytest.mark.smoke
def test_inner_loops_compute_again_what_their_iterations_tell():
    def f(x):
        def outer(i, y):
            z = nbta.while_loop(
                lambda j, z: j < 3,
                lambda j, z: (j + 1, nbta.sin(z) * nbta.cast(i * 10 + j, "float64")),
                (0, y),
            )[1]
            return i + 1, z

        return nbta.while_loop(lambda i, y: i < 4, outer, (0, x))[1]

    program, values = taped(f, 0.3)
    made = after(program, values, rematerialise, passes.prune)
    assert types(made).count("Restore") < types(program).count("Restore")
    assert not any("Cast" in name for name in tapes(made))


@pytest.mark.smoke
def test_a_read_that_may_miss_its_tape_stays():
    """An array like a tape, read where only the run tells whether there is such a slot."""

    def f(x):
        array = nbta.TensorArray("float64", size=0, dynamic_size=True, clear_after_read=False)
        _, array = nbta.while_loop(
            lambda i, a: i < 3, lambda i, a: (i + 1, a.write(i, x * 2.0)), (0, array)
        )
        return array.read(nbta.cast(x, "int64"))

    with nbta.Graph().as_default():
        x = nbta.placeholder("float64", ())
        program = extract([x], [f(x)])
    for step in (rematerialise, share_tapes):
        assert types(step(program)) == types(program)
        for value in (1.0, 3.0):
            same_bits(step(program), program, [np.float64(value)])


@pytest.mark.smoke
def test_the_tapes_of_a_variable_and_of_its_next_value_become_one():
    def f(x):
        return nbta.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, nbta.exp(y * x)), (0, x))[1]

    program, values = taped(f, 0.3)
    made = after(program, values, share_tapes, passes.prune)
    # exp(y * x) needs its result, and y: the states from the first to the last.
    assert len(tapes(program)) - len(tapes(made)) == 1
    assert types(made).count("Save") == 2


def test_all_tapes_of_one_value_become_one_at_once(monkeypatch):
    """To share them one by one the program would be built again as often as there are some."""

    @nbta.function
    def f(x, k):
        a, m = x.copy(), np.zeros((x.shape[0], 3))
        for i in range(int(k)):
            for _ in a:
                m[i % 4, 2] += a[2]
            a[1] += 0.2
        return np.sum(m)

    program, values = taped(f, np.array([0.3, -0.2, 0.5, 0.1]), 2.0)
    program = optimised(program.inputs, program.outputs)
    looks = []
    monkeypatch.setattr(tape_passes, "Tapes", lambda p: looks.append(p) or Tapes(p))
    made = after(program, values, share_tapes, passes.prune)
    assert len(tapes(program)) - len(tapes(made)) >= 2
    assert len(looks) == 2


def test_a_state_that_changes_its_shape_keeps_its_tapes():
    def f(x):
        def body(i, y):
            return i + 1, nbta.tanh(nbta.concatenate([y, y * y]))

        first = nbta.exp(x)
        return nbta.while_loop(
            lambda i, y: i < 3, body, (0, first), shape_invariants=(None, (None,))
        )[1].sum()

    program, values = taped(f, np.ones(2))
    made = after(program, values, share_tapes, passes.prune)
    assert "tape_of_Tanh" in tapes(made)


@pytest.mark.parametrize("make", [tanh_rnn, gru, lstm])
@pytest.mark.parametrize("steps", [0, 1, 4])
def test_results_that_are_only_stacked_come_from_the_tape(make, steps):
    program, values = differentiated(make, last=True, steps=4)
    values[0] = values[0][:steps]
    stacked = arrays(program).count("TensorArray")
    given = [np.shape(value) for value in differentiated(make, last=True, steps=4)[1]]
    made = specialise(program, given, together=True)
    made = after(
        made, values, simplify_shapes, rematerialise, passes.prune, simplify_shapes, share_tapes,
        passes.prune,
    )  # fmt: skip
    if steps != 1:
        same_bits(made, program, values)
    assert arrays(made).count("TensorArray") == stacked - 1


@pytest.mark.smoke
def test_results_stacked_backwards_come_from_the_tape():
    def f(x, xs):
        h, hs = nbta.scan(lambda h, x: (nbta.tanh(h + x),) * 2, x, xs, reverse=True)
        nonlocal kept
        kept = hs
        return h

    kept = None
    with nbta.Graph().as_default():
        x, xs = nbta.placeholder("float64", ()), nbta.placeholder("float64", (5,))
        y = f(x, xs)
        program = extract([x, xs], [kept, y, *nbta.gradients(y, [x, xs])])
    values = [np.float64(0.1), np.linspace(0, 1, 5)]
    made = after(program, values, rematerialise, passes.prune, share_tapes, passes.prune)
    assert arrays(made).count("TensorArray") == arrays(program).count("TensorArray") - 1


def test_an_array_with_other_uses_stays():
    def f(x):
        array = nbta.TensorArray("float64", size=4, clear_after_read=False)
        _, y, array = nbta.while_loop(
            lambda i, y, a: i < 4,
            lambda i, y, a: (i + 1, nbta.tanh(y), a.write(i, nbta.tanh(y))),
            (0, x, array),
        )
        return y, array.stack(), array.read(2)

    with nbta.Graph().as_default():
        x = nbta.placeholder("float64", ())
        y, *rest = f(x)
        program = extract([x], [y, *rest, *nbta.gradients(y, [x])])
    made = after(program, [np.float64(0.3)], passes.share, rematerialise, share_tapes, passes.prune)
    assert "TensorArray" in arrays(made)


@pytest.mark.parametrize("size", [3, 5])
def test_an_array_of_another_size_than_there_are_iterations_stays(size):
    with nbta.Graph().as_default():
        x = nbta.placeholder("float64", ())
        array = nbta.TensorArray("float64", size=size, element_shape=())
        _, y, array = nbta.while_loop(
            lambda i, y, a: i < 4,
            lambda i, y, a: (i + 1, nbta.tanh(y), a.write(i, nbta.tanh(y))),
            (0, x, array),
        )
        program = optimised([x], [y, array.stack(), *nbta.gradients(y, [x])])
    made = after(program, [np.float64(0.3)], rematerialise, share_tapes, passes.prune)
    assert "TensorArray" in arrays(made)
    assert (run(made, [np.float64(0.3)]) is nbta.InvalidArgumentError) == (size == 3)


SOME = [program for family in ("gradients", "loops") for program in programs(family)[::8]]


@pytest.mark.slow_but_every(5)
@pytest.mark.parametrize("program", SOME, ids=lambda program: program["id"])
def test_recorded_programs_give_the_same(program):
    feeds, wanted = with_gradients(program)
    values = list(feeds.values())
    for make in (extract, optimised):
        everything(make(list(feeds), wanted), values)


def test_what_little_arithmetic_gives_is_not_kept():
    def f(x, w):
        def step(h, v):
            z = nbta.sigmoid(v)
            return z * nbta.tanh(h) + (1 - z) * (h - v) * nbta.sin(h), h

        h, hs = nbta.scan(step, x, w)
        return nbta.sum(h) + nbta.sum(nbta.square(hs))

    program, values = taped(f, np.ones(3), np.linspace(0, 1, 12).reshape(4, 3))
    assert sum("Sub" in name for name in tapes(program)) > 0
    made = after(
        everything(program, values),
        values,
        arrays_to_tensors,
        rematerialise,
        passes.prune,
        save_least,
    )
    assert [name for name in tapes(made) if "Sub" in name or "Mul" in name] == []


def test_parts_of_what_is_kept_are_not_kept_themselves():
    def f(x, w):
        def step(h, v):
            both = nbta.tanh(nbta.concatenate([h, v]))
            one, other = nbta.split(both, 2)
            return nbta.sin(one) * other + both[1:4], h

        return nbta.sum(nbta.scan(step, x, w)[0])

    program, values = taped(f, np.ones(3), np.linspace(0, 1, 12).reshape(4, 3))
    assert any("Split" in name for name in tapes(program))
    made = everything(program, values)
    assert not any("Split" in name for name in tapes(made))


def test_tapes_of_gradient_arrays_stay():
    def f(x, w):
        return nbta.while_loop(
            lambda i, h: i < 4,
            lambda i, h: (i + 1, nbta.tanh(h * (w[i] - h) * nbta.take(w, i, 0))),
            (0, x),
        )[1].sum()

    with nbta.Graph().as_default():
        x, w = nbta.placeholder("float64", (3,)), nbta.placeholder("float64", (4, 3))
        first = nbta.gradients(f(x, w), [x, w])
        second = nbta.gradients(sum(nbta.sum(nbta.square(g)) for g in first), [x, w])
    program = extract([x, w], [*first, *second])
    everything(program, [np.ones(3), np.linspace(0, 1, 12).reshape(4, 3)])
