"""Shapes inferred again for given lengths: what the graph says then, and its equal results."""

import numpy as np
import pytest
from golden import programs
from golden_graph import all_operations, with_gradients
from loop_programs import inside, loops
from tape_programs import (
    built,
    differentiated,
    fused_gru,
    fused_lstm,
    gru,
    lstm,
    nested,
    run,
    same_bits,
    split_gru,
    tanh_rnn,
    types,
)

import nbta
from nbta.compiler.passes import hoist
from nbta.compiler.program import extract
from nbta.compiler.shape_passes import shapes_of_variables, simplify_shapes
from nbta.compiler.specialising import fits, specialise
from nbta.graph.verifier import verify
from nbta.shapes import Dim


def shapes_of(values):
    return [np.shape(value) for value in values]


def specialised(program, values, together=True):
    made = specialise(program, shapes_of(values), together)
    verify(made)
    same_bits(made, program, values)
    return made


def unknown(program):
    """Names of operations with a result of which an axis is unknown."""
    return [
        op.name
        for op in all_operations(program)
        for tensor in op.outputs
        if tensor.spec.shape is None or None in tensor.spec.shape
    ]


def test_lengths_of_1_are_known_and_others_are_not():
    program = built(lambda x, y: x * y, (None, None), (None,))
    made = specialise(program, [(1, 3), (1,)])
    (x, y), z = made.inputs, made.outputs[0]
    assert x.spec.shape[0] == 1
    assert isinstance(x.spec.shape[1], Dim)
    assert y.spec.shape == (1,)
    assert z.spec.shape == x.spec.shape
    assert fits(made, [(1, 7), (1,)])
    assert not fits(made, [(2, 7), (1,)])
    assert not fits(made, [(1, 1), (1,)])
    assert not fits(made, [(1, 7, 1), (1,)])


def test_a_known_length_stays_and_so_does_a_dim():
    dim = Dim()
    program = built(lambda x: x + 1, (dim, 3))
    assert specialise(program, [(5, 3)]).outputs[0].spec.shape == (dim, 3)
    assert specialise(program, [(1, 3)]).outputs[0].spec.shape == (1, 3)
    assert program.outputs[0].spec.shape == (dim, 3)


def test_lengths_are_taken_for_one_only_where_something_needs_it_and_where_they_are():
    program = built(lambda x, y, z: [x + y, z], (None,), (None,), (None,))
    apart = specialise(program, [(3,), (3,), (3,)])
    assert len({tensor.spec.shape for tensor in apart.inputs}) == 3
    together = specialise(program, [(3,), (3,), (3,)], together=True)
    x, y, z = (tensor.spec.shape for tensor in together.inputs)
    assert x == y != z
    assert fits(together, [(4,), (4,), (5,)])
    assert not fits(together, [(4,), (5,), (5,)])
    different = specialise(program, [(3,), (4,), (3,)], together=True)
    assert len({tensor.spec.shape for tensor in different.inputs}) == 3


def test_a_variable_that_changes_its_length_is_not_known():
    def f(x):
        return nbta.while_loop(
            lambda i, y: i < 3,
            lambda i, y: (i + 1, nbta.concatenate([y, y])),
            (0, x),
            shape_invariants=(None, (None,)),
        )[1]

    made = specialised(built(f, (None,)), [np.ones(2)])
    assert made.outputs[0].spec.shape == (None,)


def test_shapes_that_cannot_be_leave_the_program_alone():
    def f(x, y):
        return nbta.cond(nbta.sum(x) < 0, lambda: x @ y, lambda: y)

    program = built(f, (3, 2), (None,))
    assert specialise(program, [(3, 2), (1,)]) is program
    for x in (np.ones((3, 2)), -np.ones((3, 2))):
        specialised(program, [x, np.ones(1)])
        specialised(program, [x, np.ones(2)])


def test_what_is_made_like_a_variable_that_changes_its_length_is_not_known():
    def f(x):
        return nbta.while_loop(
            lambda i, y: i < 3,
            lambda i, y: (i + 1, nbta.concatenate([nbta.ones(nbta.shape(y)), y])),
            (0, x),
            shape_invariants=(None, (None,)),
        )[1]

    for length in (1, 2):
        made = specialised(built(f, (None,)), [np.ones(length)])
        assert {op.outputs[0].spec.shape for op in all_operations(made) if op.type == "Fill"} == {
            (None,)
        }


@pytest.mark.parametrize("make", [tanh_rnn, gru, lstm, fused_gru, fused_lstm, split_gru])
def test_all_shapes_of_a_recurrent_net_with_its_gradients_are_known(make):
    program, values = differentiated(make)
    made = specialised(program, values)
    assert unknown(made) == []
    for steps in (0, 1, 4):
        rest = [np.ones((steps, 2, 3)), *values[1:]]
        again = specialised(program, rest)
        if steps != 1:
            assert fits(made, shapes_of(rest))
            same_bits(made, program, rest)
            same_bits(simplify_shapes(made), program, rest)
        same_bits(simplify_shapes(again), program, rest)


def test_a_batch_of_1_is_known_to_be_one():
    program, values = differentiated(tanh_rnn, batch=1)
    made = specialised(program, values)
    assert unknown(made) == []
    same_bits(simplify_shapes(made), program, values)


@pytest.mark.parametrize("together", [False, True])
def test_nested_loops_and_second_order(together):
    for make in (nested, tanh_rnn):
        program, values = differentiated(make, order=2)
        made = specialised(program, values, together)
        same_bits(simplify_shapes(made), program, values)


def test_shapes_come_from_inputs_and_what_reshapes_nothing_falls_away():
    def f(x, y):
        z = nbta.tanh(x) + y
        return [nbta.reshape(z, nbta.shape(x)), nbta.broadcast_to(y, nbta.shape(z)), nbta.size(z)]

    program = specialise(built(f, (None, 3), (None, 3)), [(2, 3), (2, 3)], together=True)
    made = simplify_shapes(program)
    verify(made)
    same_bits(made, program, [np.ones((2, 3)), np.ones((2, 3))])
    assert types(made) == ["Add", "GetItem", "Mul", "Shape", "Tanh"]


def test_shapes_move_out_of_all_loops():
    def f(x):
        def outer(i, y):
            z = nbta.while_loop(
                lambda j, z: j < 2,
                lambda j, z: (j + 1, z + nbta.cast(nbta.sum(nbta.shape(z)), "float64")),
                (0, y),
            )[1]
            return i + 1, z

        return nbta.while_loop(lambda i, y: i < 2, outer, (0, x))[1]

    program = specialise(built(f, (None,)), [(4,)])
    made = simplify_shapes(program)
    verify(made)
    same_bits(made, program, [np.ones(4)])
    assert [op.type for op in made.operations].count("Shape") == 1
    assert types(made).count("Shape") == 1


def test_what_may_fail_is_computed_even_if_only_its_shape_is_used():
    def f(x):
        return nbta.shape(nbta.cholesky(x))

    program = specialise(built(f, (3, 3)), [(3, 3)])
    made = simplify_shapes(program)
    assert "Cholesky" in types(made)
    for each in (program, made):
        assert run(each, [-np.eye(3)]) is nbta.InvalidArgumentError
    proven = simplify_shapes(specialise(built(lambda x: nbta.shape(nbta.exp(x)), (3, 3)), [(3, 3)]))
    assert types(proven) == []


def test_elements_of_an_array_that_is_handed_out_stay_unknown():
    def f(x):
        array = nbta.TensorArray("float64", size=2, infer_shape=False, clear_after_read=False)
        array = array.write(0, x).write(1, nbta.concatenate([x, x]))
        return array.read(0)

    made = specialised(built(f, (None,)), [np.ones(2)])
    assert made.outputs[0].spec.shape == (None,)


SOME = [program for family in ("gradients", "loops") for program in programs(family)[::8]]


@pytest.mark.slow_but_every(5)
@pytest.mark.parametrize("program", SOME, ids=lambda program: program["id"])
def test_recorded_programs_give_the_same(program):
    feeds, wanted = with_gradients(program)
    values = list(feeds.values())
    given = extract(list(feeds), wanted)
    for together in (False, True):
        same_bits(simplify_shapes(specialised(given, values, together)), given, values)


def lengths(tensors):
    return [tensor.spec.shape for tensor in tensors]


def test_sections_that_must_be_as_long_as_an_input_are():
    program = built(lambda x, y: [n * y for n in nbta.split(x, 3)], (None,), (None,))
    made = specialised(program, [np.ones(6), np.ones(2)])
    assert lengths(made.outputs) == [made.inputs[1].spec.shape] * 3
    assert fits(made, [(9,), (3,)])
    assert not fits(made, [(9,), (2,)])
    assert not fits(made, [(8,), (2,)])
    assert not fits(made, [(3,), (1,)])
    assert unknown(specialised(program, [np.ones(8), np.ones(2)]))
    short = specialised(program, [np.ones(3), np.ones(2)])
    assert not fits(short, [(9,), (3,)])
    assert fits(short, [(3,), (4,)])


def test_lengths_that_nothing_needs_to_be_equal_stay_apart():
    program = built(lambda x, y: [*nbta.split(x, 2), y], (None,), (None,))
    made = specialised(program, [np.ones(6), np.ones(3)])
    one, other, y = lengths(made.outputs)
    assert one == other != y
    assert isinstance(one[0], Dim)
    assert fits(made, [(8,), (3,)])
    assert not fits(made, [(2,), (3,)])
    assert not fits(made, [(7,), (3,)])


def test_a_vector_that_is_reshaped_to_a_length_has_that_length():
    """Other axes of as many items need no lengths to be equal."""
    program = built(lambda x, y: nbta.reshape(nbta.concatenate([x, x])[1:], nbta.shape(y)),
                    (None,), (None,))  # fmt: skip
    made = specialised(program, [np.ones(3), np.ones(5)])
    assert lengths(made.outputs) == [made.inputs[1].spec.shape]
    assert fits(made, [(4,), (7,)])
    assert not fits(made, [(4,), (6,)])
    program = built(lambda x, y: nbta.reshape(x, nbta.shape(y)), (None, None), (None, None))
    made = specialised(program, [np.ones((3, 2)), np.ones((2, 3))])
    assert fits(made, [(3, 4), (2, 6)])


def test_the_shape_of_a_variable_is_that_of_what_it_begins_with():
    def f(x):
        def body(i, y):
            return i + 1, y + nbta.cast(nbta.shape(y)[0], "float64")

        return nbta.while_loop(lambda i, _: i < 3, body, (0, nbta.concatenate([x, x])))[1]

    program = specialised(built(f, (None,)), [np.ones(3)])
    (loop,) = loops(program)
    assert "Shape" in inside(loop)
    made = hoist(shapes_of_variables(program))
    (loop,) = loops(made)
    assert "Shape" not in inside(loop)
    same_bits(made, program, [np.arange(4.0)])


def test_a_length_that_must_be_a_number_is_one():
    program = built(lambda x: nbta.split(x, 2)[1] * np.ones(3), (None,))
    made = specialised(program, [np.ones(6)])
    assert made.outputs[0].spec.shape == (3,)
    assert fits(made, [(6,)])
    assert not fits(made, [(8,)])
    assert fits(specialised(program, [np.ones(2)]), [(2,)])


COMPUTED = {
    "concatenate": (lambda x, y: nbta.concatenate([x, y]) * nbta.concatenate([y, x]), (2,), (3,)),
    "gradient of concatenate": (
        lambda x, y: nbta.gradients(nbta.sum(nbta.square(nbta.concatenate([x, y]))), [x, y]),
        (2,), (3,),
    ),
    "points": (lambda x, y: nbta.split(x, [1, 3])[2] + y, (5,), (2,)),
    "slices": (lambda x, y: x[1:] - x[:-1] + y, (5,), (4,)),
    "every other": (lambda x, y: x[::-2] + y, (5,), (3,)),
    "pad": (lambda x, y: nbta.pad(x, 1) * y, (3,), (5,)),
    "reshape": (lambda x, y: nbta.reshape(x, (2, -1)) + y, (6,), (3,)),
    "to 1": (lambda x, y: x[1:] + y, (2,), (4,)),
}  # fmt: skip


@pytest.mark.parametrize(("f", "first", "second"), COMPUTED.values(), ids=COMPUTED)
def test_lengths_that_follow_from_those_of_inputs_are_known(f, first, second):
    program = built(f, (None,) * len(first), (None,) * len(second))
    rng = np.random.default_rng(0)
    made = specialised(program, [rng.normal(size=first), rng.normal(size=second)])
    assert unknown(made) == []
    kept = simplify_shapes(made)
    for n in range(8):
        for m in range(8):
            values = [rng.normal(size=n), rng.normal(size=m)]
            given = shapes_of(values)
            assert fits(kept, given) == fits(made, given)
            if fits(made, given):
                same_bits(kept, program, values)
                found = run(made, values)
                if not isinstance(found, type):
                    for value, tensor in zip(found, made.outputs, strict=True):
                        assert nbta.shapes.compatible(tensor.shape, np.shape(value))
                        assert all(
                            n != 1
                            for n, known in zip(np.shape(value), tensor.spec.shape, strict=True)
                            if isinstance(known, Dim)
                        )


def test_compiled_functions_are_made_again_where_a_coincidence_is_none():
    @nbta.function(compiled=True)
    def f(x, y):
        one, other = nbta.split(x, 2)
        return nbta.sum(one * y) + nbta.sum(nbta.concatenate([one, other, one]))

    for n, m in [(4, 2), (2, 5), (6, 3), (6, 3), (10, 1), (2, 1)]:
        x, y = np.arange(1.0, n + 1), np.arange(2.0, m + 2)
        one = x[: n // 2]
        assert f(x, y) == np.sum(one * y) + np.sum(x) + np.sum(one)
    with pytest.raises(nbta.NbtaError):
        f(np.ones(6), np.ones(2))
