"""Programs that look for values that would be wrong without a word."""

import numpy as np
import pytest
from running import array, run

import nbta


def runs(build, *values):
    """What ``build`` gives in a run of its graph, and in one after all passes: the same."""
    with nbta.Graph().as_default() as graph:
        arrays = [np.asarray(value) for value in values]
        fed = [nbta.placeholder(a.dtype, (None,) * a.ndim) for a in arrays]
        fetches = build(*fed)
    session = nbta.Session(graph)
    first, _, third = (
        session.run(fetches, dict(zip(fed, arrays, strict=True)), compiled)
        for compiled in (False, "auto", "auto")
    )
    np.testing.assert_equal(third, first)
    return first


def after(item):
    """Operations that run after another one."""
    return nbta.control_dependencies([item.op])


# What passes leave out must not be seen by anybody.


def test_writes_of_a_loop_stay_where_only_a_control_edge_or_creation_order_leads_to_their_reader():
    def program(n):
        ta = array(3)
        advance = lambda i, t: (i + 1, t.write(i, 2.0))  # noqa: E731
        i, _ = nbta.while_loop(lambda i, _: i < n, advance, (np.int64(0), ta))
        with after(i):
            ordered = ta.read(2)
        return i, ordered, ta.read(1)

    assert runs(program, np.int64(3)) == (3, 2.0, 2.0)


def test_writes_of_a_branch_stay_where_their_reader_follows_by_a_control_edge():
    def program(p):
        ta = array(1)
        one, _ = nbta.cond(p, lambda: (1.0, ta.write(0, 5.0)), lambda: (2.0, ta))
        with after(one):
            return one, ta.read(0)

    assert runs(program, np.bool_(True)) == (1.0, 5.0)
    assert runs(program, np.bool_(False)) == (2.0, 0.0)


def test_writes_of_an_inner_loop_stay_where_the_outer_one_lets_others_see_them():
    def program(n):
        ta = array(4)

        def outer(i, total):
            advance = lambda j, t: (j + 1, t.write(2 * i + j, 1.0 + j))  # noqa: E731
            j, _ = nbta.while_loop(lambda j, _: j < 2, advance, (np.int64(0), ta))
            return i + 1, total + j

        _, total = nbta.while_loop(lambda i, _: i < n, outer, (np.int64(0), np.int64(0)))
        with after(total):
            return total, ta.stack()

    total, stacked = runs(program, np.int64(2))
    assert total == 4
    np.testing.assert_array_equal(stacked, [1.0, 2.0, 1.0, 2.0])


def test_folded_and_shared_operations_hand_on_what_they_wait_for():
    def program(x):
        ta = array(2)
        with after(ta.write(0, 7.0).flow):
            folded = nbta.identity(2.0)
        with after(folded):
            first = ta.read(0)
        with after(ta.write(1, x).flow):
            one, other = nbta.exp(x), nbta.exp(x)
        with after(other):
            second = ta.read(1)
        return first, second, one

    assert runs(program, 1.0)[:2] == (7.0, 1.0)


def test_operations_that_wait_for_a_write_in_a_loop_stay_in_it():
    def program(x):
        ta = array(3)

        def body(i, y):
            with after(ta.write(i, x).flow):
                return i + 1, y + nbta.square(x)

        _, y = nbta.while_loop(lambda i, _: i < 3, body, (np.int32(0), x))
        with after(y):
            return y, ta.stack()

    y, stacked = runs(program, 2.0)
    assert y == 14.0
    np.testing.assert_array_equal(stacked, [2.0, 2.0, 2.0])


def test_what_may_not_fit_is_not_computed_before_a_loop_without_iterations():
    def f(x, y, n):
        advance = lambda i, total: (i + 1, total + nbta.sum(x * y))  # noqa: E731
        return nbta.while_loop(lambda i, _: i < n, advance, (np.int64(0), 0.0))[1]

    traced = nbta.function(f)
    for _ in range(3):
        assert traced(np.ones(3), np.ones(4), np.int64(0)) == 0.0


# Arguments that were taken for something else.


def test_add_n_takes_one_shape_only():
    def program(x, y):
        total = nbta.add_n([x, y])
        return total, nbta.gradients(total, [x, y])

    total, (dx, dy) = runs(program, np.ones(3), np.ones(3))
    assert (total.shape, dx.shape, dy.shape) == ((3,), (3,), (3,))
    with pytest.raises(nbta.InvalidArgumentError, match="differ; broadcast"):
        runs(program, np.ones(3), np.ones(1))
    with pytest.raises(nbta.InvalidArgumentError, match="differ; broadcast"):
        nbta.add_n([np.ones(3), 1.0])


@pytest.mark.parametrize("shape", [(2,), (4, 3), (1, 2, 3, 4)])
def test_sum_to_a_shape_that_does_not_broadcast(shape):
    with pytest.raises(nbta.InvalidArgumentError, match="not a shape that"):
        nbta.sum_to(np.ones((2, 3, 4)), shape)
    with pytest.raises(nbta.InvalidArgumentError, match="not a shape that"):
        runs(lambda x: nbta.sum_to(x, shape), np.ones((2, 3, 4)))


def test_a_length_that_is_not_that_of_the_first_axis():
    def by_columns(x):
        return nbta.scan(lambda c, row: (c + nbta.sum(row), c), 0.0, x, length=nbta.shape(x)[1])

    def by_value(x):
        return nbta.scan(lambda c, row: (c + row, c), 0.0, x, length=nbta.cast(x[0], "int32"))

    assert runs(by_columns, np.ones((2, 2)))[0] == 4.0
    with pytest.raises(nbta.InvalidArgumentError, match="xs_of_one_length"):
        runs(by_columns, np.ones((2, 3)))
    with pytest.raises(nbta.InvalidArgumentError, match="xs_of_one_length"):
        runs(by_value, np.array([3.0, 1.0]))


def test_functions_that_go_by_the_order_of_a_dict():
    first = nbta.function(lambda d: next(iter(d.values())) * 1.0)
    assert first({"a": 1.0, "b": 2.0}) == 1.0
    assert first({"b": 2.0, "a": 1.0}) == 2.0
    named = nbta.function(lambda **d: next(iter(d.values())) * 1.0)
    assert (named(a=1.0, b=2.0), named(b=2.0, a=1.0)) == (1.0, 2.0)


@pytest.mark.parametrize("name", ["and", "rand", "or", "ror", "invert"])
def test_operators_on_bits_take_integers_alone(name):
    arguments = () if name == "invert" else (3,)

    def function(x):
        return getattr(x, f"__{name}__")(*arguments)

    assert run(function, np.int64(6)) == function(np.int64(6))
    with pytest.raises((nbta.NbtaError, TypeError), match=r"bit|integer"):
        run(function, np.float64(6))


@pytest.mark.parametrize(
    "call",
    [
        lambda x: np.reshape(x, (3, 2), "F"),
        lambda x: np.zeros_like(x, np.float32, "F"),
    ],
)
def test_numpys_positional_arguments_are_not_taken_for_others(call):
    with pytest.raises(nbta.InvalidArgumentError, match="takes no argument order="):
        run(call, np.ones((2, 3)))


@pytest.mark.parametrize("function", [np.sum, np.prod, np.mean])
def test_numpys_positional_arguments_are_honoured(function):
    x = np.arange(6.0).reshape(2, 3)
    found, wanted = run(lambda x: function(x, 0, np.float32), x), function(x, 0, np.float32)
    assert found.dtype == wanted.dtype
    np.testing.assert_allclose(found, wanted)


# Calls of gradients that share something.


def test_calls_that_enter_one_scope_again_have_accumulators_of_their_own():
    def program(x):
        ta = array(1).write(0, x)
        ys = ta.read(0) * 2.0, ta.read(0) * 3.0
        arrays = [nbta.gradients([y], [ta], name="again/")[0] for y in ys]
        values = [nbta.gradients([y], [x], name="again/")[0] for y in ys]
        return [slot.read(0) for slot in arrays], values

    assert runs(program, 1.0) == ([2.0, 3.0], [2.0, 3.0])


def test_a_name_that_is_to_stay_as_it_is_cannot_be_given_twice():
    def program(x):
        return [nbta.while_loop(lambda y: y < 9.0, lambda y: y * x, x, name="w/") for _ in "ab"]

    with pytest.raises(nbta.InvalidArgumentError, match="another operation"):
        run(program, 2.0)


def in_a_branch(inside):
    return lambda x: nbta.cond(x > 0.0, lambda: inside(x), lambda: x)


def in_a_loop(inside):
    return lambda x: nbta.while_loop(lambda i, y: i < 2, lambda i, y: (i + 1, inside(x)), (0, x))[1]


def twice(inside):
    return lambda x: nbta.cond(x > 0.0, lambda: in_a_branch(inside)(x), lambda: x)


@pytest.mark.parametrize("around", [in_a_branch, in_a_loop, twice])
def test_an_x_that_reaches_a_body_by_what_is_computed_outside_of_it(around):
    def program(x, stop):
        y = x * x

        def slope(x):
            dx = nbta.gradients([y * x], [x], stop_gradients=stop(y), unconnected="zero")
            return dx[0]

        return around(slope)(x)

    with pytest.raises(nbta.InvalidArgumentError, match="outside of this body"):
        run(lambda x: program(x, lambda y: None), 3.0)
    assert run(lambda x: program(x, lambda y: [y]), 3.0) == 9.0


def test_gradients_in_a_body_of_what_is_computed_outside():
    def program(x):
        y = x * x
        alone = lambda: nbta.gradients([y], [x], unconnected="zero")[0]  # noqa: E731
        return nbta.cond(x > 0.0, alone, lambda: x)

    with pytest.raises(nbta.InvalidArgumentError, match="outside of this body"):
        run(program, 3.0)
    free = nbta.function(
        lambda x: nbta.cond(x > 0.0, lambda: nbta.grad(lambda v: v * (x * x))(x), lambda: x)
    )
    assert free(3.0) == 9.0


def test_a_graph_that_changes_while_it_runs():
    made = []

    @nbta.custom_gradient
    def meddling(x):
        if not made:
            with graph.as_default():
                made.append(nbta.gradients([result], [given])[0])
        return x

    @meddling.backward
    def _(dy, x, y):
        return dy

    with nbta.Graph().as_default() as graph:
        given = nbta.placeholder("float64", ())
        first = meddling(given)
        result = nbta.while_loop(lambda y: y < 50.0, lambda y: y * y * given, first)
    session = nbta.Session(graph)
    with pytest.raises(nbta.InvalidArgumentError, match="changed while it ran"):
        session.run(result, {given: 2.0})
    assert session.run([result, *made], {given: 2.0}) == [128.0, 448.0]


def test_more_equal_greatest_elements_than_float16_can_count():
    x = np.zeros(70_000, np.float16)
    slope = nbta.grad(lambda x: nbta.max(x) * np.float16(1000))(x)
    np.testing.assert_allclose(slope, 1000 / 70_000, rtol=1e-3)
    assert slope.dtype == np.float16


def test_results_can_be_written_to_in_every_run():
    with nbta.Graph().as_default() as g:
        folded, plain = nbta.constant([1.0, 2.0]) * 2.0, nbta.constant([1.0, 2.0])
    session = nbta.Session(g)
    for _ in range(3):
        for value in session.run([folded, plain]):
            value += 1
    np.testing.assert_array_equal(session.run(folded), [2, 4])


def test_a_shape_learned_from_a_write_that_does_not_run():
    def f(x, y):
        ta = nbta.TensorArray("float64", size=1)
        ta = nbta.cond(x[0] > 9, lambda: ta.write(0, x), lambda: ta.write(0, y))
        return ta.read(0) * 2.0

    with nbta.Graph().as_default() as g:
        x, y = nbta.placeholder("float64", (3,)), nbta.placeholder("float64")
        value = f(x, y)
    with pytest.raises(nbta.InvalidArgumentError, match="the graph was built for"):
        nbta.Session(g).run(value, {x: np.ones(3), y: np.ones((2, 2))})
