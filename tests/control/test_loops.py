"""while_loop: values eager and in graphs, gradients to second order."""

import numpy as np
import pytest
from running import array, both, checked, run

import nbta
from nbta.testing import check_grads

X = np.array([0.7, -1.3, 2.1])


def times(n, body, first):
    """A loop of ``n`` iterations; the body gets the number of the iteration and one structure."""
    advance = lambda i, value: (i + 1, body(i, value))  # noqa: E731
    return nbta.while_loop(lambda i, _: i < n, advance, (0, first))[1]


def as_float(i):
    return nbta.cast(i, np.float64)


# Variables.


def nested(x):
    first = {"a": [x[0], (x[1], x)], "b": x[2]}

    def body(i, v):
        a, (b, row) = v["a"]
        return {"a": [b * v["b"], (a + b, row * a)], "b": nbta.sum(row)}

    return times(3, body, first)


def swapped(x):
    def body(i, v):
        a, b, c = v
        return b, c * a, a

    return times(4, body, (x[0], x[1], x[2]))


def invariant_variables(x):
    def body(i, v):
        a, scale, offset = v
        return a * scale + offset, scale, offset

    return times(3, body, (x[0], x[1], x[2]))


def one_invariant_twice_and_captured(x):
    y = x[1] * 1.0

    def body(i, v):
        a, one, other = v
        return a * one + other * y, one, other

    return times(3, body, (x[0], y, y))


def integers_and_truth_values(x):
    def body(i, v):
        a, odd, count = v
        a = nbta.where(odd, a * x[1], a + x[2])
        return a, nbta.logical_not(odd), count + nbta.cast(odd, np.int64)

    return times(5, body, (x[0], np.bool_(True), np.int64(3)))


def captured(x):
    scale = nbta.sin(x)
    return times(3, lambda i, a: a * scale + x[i % 3] * nbta.cos(scale), x)


def one_tensor_as_variable_and_captured(x):
    return times(3, lambda i, a: a * x, x)


def growing(x):
    return times(3, lambda i, a: nbta.concatenate([a, a[-1:] * x[i : i + 1]]), x[:1])


def growing_in_two_axes(x):
    first = nbta.reshape(x[:1], (1, 1))

    def body(i, a):
        wide = nbta.concatenate([a, a * x[1]], axis=1)
        return nbta.concatenate([wide, wide + x[2]], axis=0)

    return times(2, body, first)


def shrinking(x):
    return times(2, lambda i, a: a[1:] * a[0], x)


# Stopping.


def stopped_by_data(x):
    def body(i, y):
        return i + 1, y * (1.0 + nbta.square(x[0])) + x[1] ** 2

    return nbta.while_loop(lambda i, y: y < 20.0, body, (0, nbta.square(x[2])))


def at_most_thrice(x):
    return nbta.while_loop(lambda y: True, lambda y: y * x, x, maximum_iterations=3)


def at_most_as_often_as_data_says(x):
    n = nbta.cast(nbta.sum(x) > 0.0, np.int32) * 2
    return nbta.while_loop(
        lambda y, _: nbta.sum(y) < 1e3, lambda y, i: (y * x, i + 1), (x, 0), maximum_iterations=n
    )


def both_ends(x):
    _, y = nbta.while_loop(
        lambda i, y: nbta.logical_and(i < 9, y < 4.0), lambda i, y: (i + 1, y + x[2]), (0, x[0])
    )
    return y


# Bodies with bodies.


def inner_iterations_by_outer_index(x):
    return times(4, lambda i, a: times(i, lambda j, b: b * x[1] + as_float(j * i), a), x[0])


def inner_iterations_by_data(x):
    def body(i, a):
        return nbta.while_loop(lambda b: b < as_float(i) * 2.0, lambda b: b * 1.5 + x[2] ** 2, a)

    return times(4, body, x[0] ** 2)


def inner_uses_values_of_the_outer(x):
    def body(i, a):
        here = nbta.sin(a * x[1])
        return times(2, lambda j, b: b * here + a * x[j], a) + here

    return times(3, body, x[0])


def three_deep(x):
    def body(i, a):
        return times(i + 1, lambda j, b: times(j, lambda k, c: c * x[k] + b, a * b), a * 0.5)

    return times(3, body, x[0])


def branch_in_body(x):
    def body(i, a):
        return nbta.cond(i % 2 == 0, lambda: nbta.sin(a) * x[0], lambda: a * a + x[1])

    return times(5, body, x[2])


def branch_by_data_in_body(x):
    def body(i, v):
        a, b = v
        return nbta.cond(a > b, lambda: (a * 0.5, b + x[2] ** 2), lambda: (a + 1.1 * x[2], b * a))

    return times(5, body, (x[0], x[1]))


def switch_in_body(x):
    def body(i, a):
        return nbta.switch_case(
            i, [lambda: a * x[0], lambda: nbta.exp(a), lambda: a], default=lambda: a + x[1]
        )

    return times(5, body, x[2] * 0.1)


def operands_of_branches(x):
    def body(i, a):
        a = nbta.cond(a > 0.3, lambda y, z: y * z["w"], lambda y, z: y - z["w"], a, {"w": x[0]})
        return nbta.switch_case(i, [nbta.multiply, nbta.subtract], a, x[1], default=nbta.add)

    return times(5, body, x[2])


def loop_in_branch(x):
    return nbta.cond(
        x[0] > 0.0,
        lambda: times(3, lambda i, a: a * x[1] + nbta.sin(a), x[2]),
        lambda: times(2, lambda i, a: a + x[1], x[0]),
    )


def loop_in_branch_in_loop(x):
    def body(i, a):
        return nbta.cond(
            i > 1, lambda: times(i, lambda j, b: b * x[j % 3], a), lambda: a * nbta.sin(a)
        )

    return times(4, body, x[0])


# Arrays.


def written_in_each_iteration(x):
    ta = times(3, lambda i, t: t.write(i, x[i] ** as_float(i + 1)), array(3))
    return ta.stack() * ta.read(1)


def written_backwards(x):
    def body(i, v):
        a, t = v
        return a * x[i], t.write(2 - i, a)

    a, t = times(3, body, (x[0], array(3)))
    return a, t.stack()


def read_two_back(x):
    first = array(6).write(0, x[0]).write(1, x[1])
    ta = times(4, lambda i, t: t.write(i + 2, t.read(i + 1) * t.read(i) + x[2]), first)
    return ta.stack()


def grown_by_append(x):
    first = array(0, dynamic_size=True).append(x[0])
    ta = times(3, lambda i, t: t.append(t.read(t.size() - 1) * x[i] + t.read(0)), first)
    return ta.stack()


def captured_and_read(x):
    ta = array(3).unstack(nbta.sin(x))
    return times(3, lambda i, a: a * ta.read(i) + ta.read(2), x[0])


def cleared_by_the_loop(x):
    ta = nbta.TensorArray("float64", size=3).unstack(x**2)
    return times(3, lambda i, a: a * ta.read(2 - i), x[0])


def rows_captured_and_gathered(x):
    ta = nbta.TensorArray("float64", size=3, clear_after_read=False).unstack(nbta.outer(x, x))
    return times(2, lambda i, a: a * ta.gather(nbta.stack([0, i]))[1] + ta.read(i), x)


def made_in_each_iteration(x):
    def body(i, a):
        ta = array(2).write(0, a * x[i]).write(1, a + x[0])
        return ta.read(0) * ta.read(1) + ta.read(0)

    return times(3, body, x[1] * 0.3)


def made_in_one_iteration_and_read_in_the_next(x):
    def body(i, t):
        return array(2).write(0, t.read(1) * x[i]).write(1, t.read(0) + t.read(1))

    return times(3, body, array(2).unstack(x[:2])).stack()


def two_arrays_swapped(x):
    def body(i, v):
        one, other = v
        return other.write(i, x[i] * 2.0), one.write(i, x[0] * as_float(i + 1))

    one, other = times(3, body, (array(3), array(3)))
    return one.stack() * other.read(1), other.stack() * one.read(2)


def swapped_and_read(x):
    def body(i, v):
        one, other = v
        return other.write(i + 1, one.read(i) * x[i]), one.write(i + 1, other.read(i) + x[2])

    first = array(4).write(0, x[0]), array(4).write(0, x[1])
    one, other = times(3, body, first)
    return one.stack(), other.stack()


def written_by_the_chosen_branch(x):
    def body(i, t):
        return nbta.cond(x[i] > 0.0, lambda: t.write(i, x[i] ** 2), lambda: t.write(i, x[0] * x[1]))

    return times(3, body, array(3)).stack()


def one_of_two_arrays(x):
    one, other = array(3).unstack(x), array(3).unstack(x**2)

    def body(i, a):
        chosen = nbta.cond(i % 2 == 0, lambda: one, lambda: other)
        return a * chosen.read(i)

    return times(3, body, x[0])


def written_in_the_inner_loop(x):
    def body(i, t):
        return times(2, lambda j, u: u.write(2 * i + j, x[i] * x[j] * as_float(j + 1)), t)

    return times(3, body, array(6)).stack()


def inner_arrays_of_run_time_length(x):
    def body(i, a):
        inner = times(i + 1, lambda j, t: t.write(j, a * x[j]), array(i + 1))
        return nbta.sum(inner.stack() ** 2) * 0.3

    return times(3, body, x[0])


def ragged_in_a_loop(x):
    ta = nbta.TensorArray("float64", size=3, infer_shape=False, clear_after_read=False)
    ta = times(3, lambda i, t: t.write(i, x[: i + 1] * x[i]), ta)
    return ta.concat().value, ta.read(1)


DIFFERENTIABLE = [
    f for f in list(globals().values())
    if getattr(f, "__module__", None) == __name__ and f.__name__ not in ("times", "as_float")
]  # fmt: skip


@pytest.mark.smoke_every(2)
@pytest.mark.slow_but_every(2)
@pytest.mark.parametrize("program", DIFFERENTIABLE, ids=lambda f: f.__name__)
def test_values_and_gradients(program):
    checked(program, X)


@pytest.mark.slow_but_every(4)
@pytest.mark.parametrize("program", DIFFERENTIABLE, ids=lambda f: f.__name__)
def test_inside_of_another_loop(program):
    """The whole program in the body of a loop, with a branch around it."""

    def around(x):
        def again(y):
            total = nbta.add_n([nbta.sum(v) for v in nbta.structure.leaves(program(y))])
            return nbta.sin(y * total)

        return times(2, lambda i, y: nbta.cond(i > 0, lambda: again(y), lambda: y * 0.9), x)

    checked(around, X, order=1)


def test_explicit_numbers():
    assert run(lambda x: nbta.gradients([at_most_thrice(x)], [x])[0], 2.0) == 4 * 2.0**3
    found = run(lambda x: nbta.gradients([swapped(x)[0]], [x])[0], X)
    a, b, c = X  # b, ca, a; then ca, ab, b; ab, bca, ca; and bca, (ca)(ab), ab
    np.testing.assert_allclose(found, [b * c, c * a, a * b])


# Iterations.


@pytest.mark.smoke_every(2)
@pytest.mark.parametrize("n", [0, 1, 4])
def test_as_many_iterations_as_the_run_says(n):
    def program(x, y):
        return times(nbta.cast(y, np.int64), lambda i, a: a * x, x * 1.0)

    def slopes(x, y):
        z = program(x, y)
        (dx,) = nbta.gradients([z], [x])
        return z, dx, nbta.gradients([dx], [x])[0]

    z, dx, ddx = run(slopes, 1.5, float(n))
    assert z == pytest.approx(1.5 ** (n + 1))
    assert dx == pytest.approx((n + 1) * 1.5**n)
    assert ddx == pytest.approx((n + 1) * n * 1.5 ** max(n - 1, 0))


def test_no_iteration_is_the_identity_for_variables_and_nothing_for_what_is_captured():
    def slopes(x, w):
        state = times(nbta.cast(nbta.sum(w) * 0.0, np.int64), lambda i, a: a * w, x)
        ta = array(3).unstack(x)
        flow = times(0, lambda i, t: t, ta)
        return nbta.gradients([state * [1.0, 2.0, 3.0], flow.stack()], [x, w])

    dx, dw = run(slopes, X, X + 1)
    np.testing.assert_array_equal(dx, [2, 3, 4])
    np.testing.assert_array_equal(dw, np.zeros(3))


def test_maximum_iterations_of_every_kind():
    for maximum in (2, np.int32(2), np.int64(2)):
        both(lambda x: nbta.while_loop(lambda y: True, lambda y: y * x, x, maximum), 3.0)  # noqa: B023

    def limited(x, n):
        return nbta.while_loop(lambda y: True, lambda y: y * x, x, maximum_iterations=n)

    assert both(limited, 3.0, np.int32(2)) == 27.0
    assert both(limited, 3.0, np.int32(-1)) == 3.0


def test_shape_invariants_are_kept_or_an_error():
    def growing(x, pattern):
        return nbta.while_loop(
            lambda i, _: i < 2,
            lambda i, a: (i + 1, nbta.concatenate([a, a * 2.0])),
            (0, x),
            shape_invariants=[None, pattern],
        )[1]

    np.testing.assert_array_equal(run(lambda x: growing(x, (None,)), [1.0]), [1, 2, 2, 4])
    check_grads(nbta.function(lambda x: growing(x, (None,))), (X,))
    with pytest.raises(nbta.InvalidArgumentError, match="shape_invariants"):
        run(lambda x: growing(x, (1,)), [1.0])


def test_a_variable_without_an_invariant_is_as_if_there_were_none():
    """None says nothing of one variable, even where another one has an invariant."""

    def both_grow(x, y):
        return nbta.while_loop(
            lambda i, a, b: i < 2,
            lambda i, a, b: (i + 1, nbta.concatenate([a, a]), nbta.concatenate([b, a])),
            (0, x, y),
            shape_invariants=[(), (None,), None],
        )[1:]

    for way in (both_grow, nbta.function(both_grow), nbta.function(both_grow, compiled=True)):
        a, b = way(np.array([1.0]), np.array([2.0]))
        np.testing.assert_array_equal(a, [1, 1, 1, 1])
        np.testing.assert_array_equal(b, [2, 1, 1, 1])


@pytest.mark.parametrize("shape", [(3, 5), (1, 5)])
def test_a_variable_may_lose_its_rank(shape):
    """What is squeezed has a rank that only the run tells, where lengths are not known."""

    def f(rows, state):
        def body(i, s):
            return i + 1, s + nbta.squeeze(nbta.slice(rows, nbta.stack([i, 0]), [1, -1]))

        invariants = [(), None]
        loop = nbta.while_loop(
            lambda i, s: i < len(rows), body, (0, state), shape_invariants=invariants
        )
        return loop[1]

    rows, state = np.ones(shape), np.zeros(shape[1:])
    np.testing.assert_array_equal(f(rows, state), rows.sum(0))
    with nbta.Graph().as_default() as g:
        fed = nbta.placeholder("float64", shape)
        found = f(fed, nbta.constant(state))
    np.testing.assert_array_equal(nbta.Session(g).run(found, {fed: rows}), rows.sum(0))


def test_lists_tuples_and_single_values_come_back_as_they_went_in():
    one = lambda x: nbta.while_loop(lambda a: a < 3.0, lambda a: a + x, x)  # noqa: E731
    assert both(one, 1.0) == 3.0
    listed = nbta.while_loop(lambda a, b: a < 3, lambda a, b: [a + 1, b], [0, {"c": 1.0}])
    assert isinstance(listed, list)
    assert listed[1] == {"c": 1.0}

    def of_a_dict(x):
        return nbta.while_loop(lambda v: v["a"] < 3.0, lambda v: {"a": v["a"] + x}, {"a": x})

    assert both(of_a_dict, 1.0) == {"a": 3.0}


def test_integer_variables_pass_no_gradient():
    def program(x, n):
        a, k = times(3, lambda i, v: (v[0] * nbta.cast(v[1], x.dtype), v[1] + 1), (x, n))
        assert nbta.gradients([nbta.cast(k, x.dtype)], [x]) == [None]
        return nbta.gradients([a], [x])[0]

    assert run(program, 1.5, np.int64(2)) == 2 * 3 * 4


def test_operands_are_copied_for_branches():
    def double(y):
        y *= 2.0
        return y

    def doubled(x):
        return nbta.cond(x[0] > 0.0, double, double, x)

    x = np.ones(2)
    for function in (doubled, nbta.function(doubled)):
        np.testing.assert_array_equal(function(x), [2.0, 2.0])
        np.testing.assert_array_equal(x, [1.0, 1.0])
