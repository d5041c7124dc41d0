"""Programs whose gradients tensor libraries are known to have given wrong without a word.

Each has its name from the fault; all are held against numbers found by hand and against central
differences, to second order.
"""

import numpy as np
import pytest
from running import array, both, checked, run

import nbta
from nbta.testing import check_grads

X = np.array([0.7, -1.3, 2.1])


def loop(n, body, *first):
    """``n`` iterations of ``body(i, *values)``."""
    advance = lambda i, *v: (i + 1, *body(i, *v))  # noqa: E731
    return nbta.while_loop(lambda i, *_: i < n, advance, (0, *first))[1:]


def slope(program, *args):
    """The first argument's gradient, of the sum of what the program gives."""
    return run(lambda *xs: nbta.gradients([program(*xs)], [xs[0]])[0], *args)


@pytest.mark.smoke
def test_an_array_used_before_and_after_a_loop():
    def program(x):
        ta = array(3).write(0, x[0])
        before = ta.read(0) * 2.0
        (ta,) = loop(2, lambda i, t: [t.write(i + 1, t.read(i) * x[i + 1])], ta)
        return before * ta.read(0) + ta.read(0) * ta.read(2)

    a, b, c = X
    np.testing.assert_allclose(slope(program, X), [4 * a + 2 * a * b * c, a * a * c, a * a * b])
    checked(program, X)


@pytest.mark.smoke
def test_a_tensor_used_before_in_and_after_a_loop():
    def program(x):
        y = x * x
        (z,) = loop(2, lambda i, z: [z * y + x], y)
        return z + y

    x = 1.3  # z = (x^4 + x) x^2 + x
    assert slope(program, x) == pytest.approx(6 * x**5 + 3 * x**2 + 1 + 2 * x)
    checked(program, np.float64(x))


@pytest.mark.smoke
def test_state_overwritten_in_a_loop():
    def program(x):
        def body(i, a, b):
            old = a
            a = x[i] * 2.0  # nothing of the old state is left
            return a, b + old * a

        a, b = loop(3, body, x[2], x[0])
        return a + b

    a, b, c = X  # b: a + c 2a + 2a 2b + 2b 2c, and the last 2c
    want = [1 + 2 * c + 4 * b, 4 * a + 4 * c, 2 * a + 4 * b + 2]
    np.testing.assert_allclose(slope(program, X), want)
    checked(program, X)


def test_state_overwritten_by_a_constant_passes_nothing_on():
    def program(x):
        def body(i, a):
            return [nbta.cond(i == 1, lambda: nbta.zeros_like(a) + 2.0, lambda: a * x)]

        return loop(4, body, x)[0]

    assert slope(program, 3.0) == 2 * 2 * 3.0
    checked(program, np.float64(3.0))


@pytest.mark.smoke
def test_a_break_flag():
    def program(x):
        def body(i, y, go):
            y = y * x
            return y, nbta.logical_and(go, y < 10.0)

        def advance(i, y, go):
            return (i + 1, *body(i, y, go))

        first = (0, x, np.bool_(True))
        return nbta.while_loop(lambda i, y, go: nbta.logical_and(go, i < 9), advance, first)[1]

    assert slope(program, 2.0) == 4 * 2.0**3  # 16 is the first power above 10
    checked(program, np.float64(2.0))


def test_a_break_flag_that_masks_the_rest_of_the_body():
    def program(x):
        def body(i, y, going):
            going = nbta.logical_and(going, y < 10.0)
            return nbta.where(going, y * x, y), going

        return loop(8, body, x, np.bool_(True))[0]

    assert slope(program, 2.0) == 4 * 2.0**3
    checked(program, np.float64(2.0))


@pytest.mark.smoke
def test_nested_dynamic_loops():
    def program(x):
        def outer(i, y):
            inner = nbta.while_loop(lambda z: z < 5.0 * i + 3.0, lambda z: z * x + 0.5, y)
            return [inner * 0.5]

        return loop(3, outer, x)[0]

    def by_hand(x):
        y, dy = x, 1.0
        for i in range(3):
            while y < 5.0 * i + 3.0:
                y, dy = y * x + 0.5, dy * x + y
            y, dy = y * 0.5, dy * 0.5
        return dy

    assert slope(program, 1.4) == pytest.approx(by_hand(1.4))
    checked(program, np.float64(1.4))


def test_nested_loops_whose_inner_loop_does_not_run_in_some_iterations():
    def program(x):
        def outer(i, y):
            return loop(i % 2 * 2, lambda j, z: [z * x + 1.0], y)

        return loop(4, outer, x)[0]

    x = 1.7
    y, dy = x, 1.0
    for _ in range(4):
        y, dy = y * x + 1, dy * x + y
    assert slope(program, x) == pytest.approx(dy)
    checked(program, np.float64(x))


def until(x):
    """Outputs up to the step that stops, and the state after it."""

    def body(i, state, out):
        state = state * x + 0.1
        return i + 1, state, out.write(i, state * state)

    out = array(0, dynamic_size=True)
    n, state, out = nbta.while_loop(lambda i, state, _: state < 6.0, body, (0, x, out))
    return n, state, out.stack()


def until_by_hand(x):
    state, dstate, outs, douts = x, 1.0, [], []
    while state < 6.0:
        state, dstate = state * x + 0.1, dstate * x + state
        outs.append(state**2)
        douts.append(2 * state * dstate)
    return state, dstate, outs, douts


@pytest.mark.parametrize("x", [1.5, 2.0, 7.0])
def test_until_loops_with_outputs_and_state(x):
    state, dstate, outs, douts = until_by_hand(x)
    n, last, stacked = both(until, np.float64(x))
    assert (n, last) == (len(outs), pytest.approx(state))
    np.testing.assert_allclose(stacked, outs)
    assert slope(lambda x: until(x)[1], x) == pytest.approx(dstate)
    assert slope(lambda x: nbta.sum(until(x)[2]), x) == pytest.approx(sum(douts))
    weighted = lambda x: nbta.sum(until(x)[2] * nbta.arange(1.0, until(x)[0] + 1.0))  # noqa: E731
    assert slope(weighted, x) == pytest.approx(np.dot(douts, np.arange(1, len(outs) + 1)))
    check_grads(until, (np.float64(x),))


def test_writes_to_a_dynamic_array_of_size_0_do_not_vanish():
    def program(x):
        ta = nbta.TensorArray("float64", size=0, dynamic_size=True)
        (ta,) = loop(4, lambda i, t: [t.write(i, x ** nbta.cast(i, x.dtype))], ta)
        return nbta.sum(ta.stack()), ta.size()

    total, size = both(program, np.float64(2.0))
    assert (total, size) == (15.0, 4)
    assert slope(lambda x: program(x)[0], 2.0) == 1 + 2 * 2 + 3 * 4
    check_grads(program, (np.float64(2.0),))


def test_a_dynamic_array_whose_loop_runs_no_iteration():
    def program(x, n):
        ta = array(0, dynamic_size=True)
        (ta,) = loop(n, lambda i, t: [t.append(x)], ta)
        return nbta.sum(ta.stack()) + x

    assert slope(program, 2.0, np.int64(0)) == 1.0
    assert slope(program, 2.0, np.int64(3)) == 4.0


def test_a_captured_array_also_read_after_the_loop():
    def program(x):
        ta = array(3).unstack(x)
        (y,) = loop(3, lambda i, y: [y * ta.read(i)], x[0])
        return y * ta.read(1) + nbta.sum(ta.stack() ** 2)

    a, b, c = X
    want = [2 * a * b * b * c + 2 * a, 2 * a * a * b * c + 2 * b, a * a * b * b + 2 * c]
    np.testing.assert_allclose(slope(program, X), want)
    checked(program, X)


def test_a_captured_array_written_to_after_the_loop():
    def program(x):
        ta = array(4).scatter([0, 1, 2], x)
        (y,) = loop(3, lambda i, y: [y * ta.read(i)], x[0])
        ta = ta.write(3, y)
        return nbta.prod(ta.stack())

    checked(program, X)
    np.testing.assert_allclose(slope(program, X), 2 * np.prod(X) ** 2 / X * X[0]
                               + np.prod(X) ** 2 * np.eye(3)[0])  # fmt: skip


@pytest.mark.smoke
def test_one_slot_read_several_times_in_a_loop():
    def program(x):
        ta = array(1).write(0, x * x)
        (y,) = loop(3, lambda i, y: [y * ta.read(0) + ta.read(0)], x)
        return y

    x = 1.2  # y = x^7 + x^6 + x^4 + x^2
    assert slope(program, x) == pytest.approx(7 * x**6 + 6 * x**5 + 4 * x**3 + 2 * x)
    checked(program, np.float64(x))


@pytest.mark.smoke
def test_one_slot_of_a_loop_variable_read_in_all_later_iterations():
    def program(x):
        def body(i, t):
            return [t.write(i + 1, t.read(i) * t.read(0))]

        (ta,) = loop(3, body, array(4).write(0, x))
        return ta.read(3)

    assert slope(program, 1.3) == pytest.approx(4 * 1.3**3)
    checked(program, np.float64(1.3))


@pytest.mark.smoke
def test_two_calls_and_two_runs_through_one_loop():
    with nbta.Graph().as_default() as graph:
        x = nbta.placeholder("float64", ())
        (ta,) = loop(3, lambda i, t: [t.write(i, x ** nbta.cast(i + 1, x.dtype))], array(3))
        y = ta.read(0) * ta.read(2)
        first, second = nbta.gradients([y], [x])[0], nbta.gradients([y * 2.0], [x])[0]
        third = nbta.gradients([first * second], [x])[0]
    session = nbta.Session(graph)
    for v in (1.5, -0.5):
        want = [4 * v**3, 8 * v**3, 32 * 6 * v**5]
        np.testing.assert_allclose(session.run([first, second, third], {x: v}), want)
        for fetch, number in zip((third, second, first), want[::-1], strict=True):
            np.testing.assert_allclose(session.run(fetch, {x: v}), number)
    np.testing.assert_allclose(nbta.Session(graph).run(third, {x: 2.0}), 32 * 6 * 32)


def test_runs_between_calls_see_the_graph_as_it_has_become():
    with nbta.Graph().as_default() as graph:
        x = nbta.placeholder("float64", ())
        (y,) = loop(3, lambda i, y: [nbta.cond(i > 0, lambda: y * x, lambda: nbta.sin(y))], x)
        session = nbta.Session(graph)
        found, tensor = [], y
        for _ in range(3):
            found.append(float(session.run(tensor, {x: 0.8})))
            tensor = nbta.gradients([tensor], [x])[0]
    s, c = np.sin(0.8), np.cos(0.8)
    assert found == pytest.approx([s * 0.64, c * 0.64 + 1.6 * s, -s * 0.64 + 2 * 1.6 * c + 2 * s])


def test_a_variable_unused_in_later_iterations():
    def program(x):
        def body(i, a, b):
            b = nbta.cond(i < 1, lambda: b * a * a, lambda: b + x[1])
            return a * x[2], b

        return loop(3, body, x[0], x[1])[1]

    a, b, _ = X  # b a a + 2 b
    np.testing.assert_allclose(slope(program, X), [2 * a * b, a * a + 2, 0], atol=1e-15)
    checked(program, X)


def test_a_variable_that_no_result_needs():
    def program(x):
        def body(i, a, b):
            return a * x[0], b * a

        a, _ = loop(3, body, x[1], x[2])
        return a

    np.testing.assert_allclose(slope(program, X), [3 * X[0] ** 2 * X[1], X[0] ** 3, 0])
    checked(program, X)


def test_the_gradient_of_an_early_slot_comes_from_every_later_iteration():
    def program(x):
        def body(i, t, total):
            total = total + nbta.sum(t.gather(nbta.arange(i + 1)) * x)
            return t.write(i + 1, total), total

        ta, total = loop(3, body, array(4).write(0, x), x * 0.0)
        return total * ta.read(2)

    checked(program, np.float64(0.7))


def test_an_array_read_through_an_old_name_in_a_loop():
    def program(x):
        old = array(4).write(0, x[0]).write(1, x[1])

        def body(i, t):
            return [t.write(i + 2, old.read(i) * t.read(i + 1))]

        (new,) = loop(2, body, old)
        return new.read(3) * old.read(0)

    a, b, _ = X  # slot 2 is a b, slot 3 b a b
    np.testing.assert_allclose(slope(program, X), [2 * a * b * b, 2 * a * a * b, 0])
    checked(program, X)


def test_an_old_name_in_a_loop_reads_what_earlier_iterations_wrote():
    def program(x):
        old = array(4).write(0, 1.5)

        def body(i, t, y):
            return [t.write(i + 1, x[i]), y * old.read(i)]

        return loop(3, body, old, x[0])[1]

    a, b, _ = X  # 1.5 a a b
    np.testing.assert_allclose(slope(program, X), [3 * a * b, 1.5 * a * a, 0])
    checked(program, X)


def test_an_old_name_in_a_branch_of_a_nested_loop():
    def program(x):
        old = array(4).write(0, x[0])

        def body(i, t, y):
            def inner(j, u, z):
                value = nbta.cond(j > 0, lambda: old.read(i), lambda: t.read(i))
                return [u, z + value * value]

            t, y = loop(2, inner, t, y)
            return [t.write(i + 1, x[i] * y), y]

        return loop(2, body, old, x[0])[1]

    checked(program, X)


def test_users_functions_are_not_run_again_to_find_a_value():
    calls = []

    def drawn(x):
        calls.append(1)
        return x * len(calls)

    noise = nbta.custom_gradient(drawn, backward=lambda dy, x, y: dy * (y / x))

    def program(x, w):
        return loop(3, lambda i, y: [y * noise(w)], x)[0]

    y, dx, dw = run(lambda x, w: (y := program(x, w), *nbta.gradients([y], [x, w])), 2.0, 1.0)
    assert len(calls) == 3
    assert y == 2.0 * 6.0
    assert dx == 6.0
    assert dw == 3 * 12.0  # d/dw of 2 (1 w) (2 w) (3 w) at 1


def test_mixed_precision_does_not_lose_what_is_added_up():
    def program(x):
        ta = nbta.TensorArray("float16", size=1, clear_after_read=False).write(0, x)
        step = lambda i, y: [y + ta.read(0) * np.float16(0.001)]  # noqa: E731
        return loop(1000, step, np.float16(0.0))[0]

    found = slope(program, np.float16(1.0))
    assert found.dtype == np.float16
    assert abs(float(found) - 1.0) < 2e-3


@pytest.mark.parametrize("indirect", [False, True])
def test_a_read_that_only_a_control_edge_puts_after_a_write_is_an_error(indirect):
    with nbta.Graph().as_default() as graph:
        x = nbta.placeholder("float64", ())
        old = array(2)
        new = old.write(0, x)
        with nbta.control_dependencies([new.read(0) if indirect else new.flow]):
            y, other = old.read(0), old.read(1)
        assert nbta.Session(graph).run(y, {x: 3.0}) == 3.0
        with pytest.raises(nbta.InvalidArgumentError, match="another name of the array"):
            nbta.gradients([y], [x])
        assert nbta.gradients([other], [x]) == [None]  # another slot


def test_flows_that_only_control_edges_join_are_an_error():
    def program(x):
        ta = array(2)
        parts = [ta.write(k, x[k]) for k in range(2)]
        with nbta.control_dependencies([part.flow for part in parts]):
            return nbta.sum(ta.stack() ** 2)

    with pytest.raises(nbta.InvalidArgumentError, match="another name of the array"):
        slope(program, X)


def test_a_read_by_an_old_name_of_a_slot_that_was_written_before():
    def program(x):
        old = array(3).write(0, x[0]).write(1, x[1])
        new = old.write(2, x[2])
        place = nbta.cast(new.read(2) > 0.0, np.int64)
        return old.read(0) * new.read(2) + nbta.gather(x, place)

    np.testing.assert_allclose(slope(program, X), [X[2], 1, X[0]])


def test_a_slot_found_by_what_was_written_later_is_an_error_by_an_old_name():
    def program(x):
        old = array(3).write(0, x[0]).write(1, x[1])
        new = old.write(2, x[2])
        return old.read(nbta.argmax(new.stack()))

    with pytest.raises(nbta.InvalidArgumentError, match="another name of the array"):
        slope(program, X)


def read_by_a_loop(x):
    old = array(3)
    with nbta.control_dependencies([old.unstack(x).flow]):
        return loop(3, lambda i, y: [y + old.read(i)], nbta.constant(0.0))[0]


def written_by_a_loop_that_gives_another_result(x):
    ta = array(3)

    def body(i, y):
        return [y + ta.write(i, x[i]).read(i)]

    (y,) = loop(3, body, x[0])
    with nbta.control_dependencies([y]):
        return nbta.sum(ta.stack() ** 2)


def written_and_read_in_a_body(x):
    def body(i, y):
        old = array(2)
        (new,) = loop(2, lambda j, t: [t.write(j, y * x[j])], old)
        with nbta.control_dependencies([new.flow]):
            return [old.read(0) + old.read(1)]

    return loop(2, body, x[0])[0]


def read_in_a_branch(x):
    old = array(1)
    new = nbta.cond(x[0] > 0.0, lambda: old.write(0, x[0]), lambda: old)
    with nbta.control_dependencies([new.flow]):
        return nbta.cond(x[1] > 0.0, lambda: x[1], lambda: old.read(0))


@pytest.mark.parametrize(
    "program",
    [
        read_by_a_loop,
        written_by_a_loop_that_gives_another_result,
        written_and_read_in_a_body,
        read_in_a_branch,
    ],
    ids=lambda f: f.__name__,
)
def test_the_same_through_bodies_of_loops_and_branches(program):
    run(program, X)
    with pytest.raises(nbta.InvalidArgumentError, match="another name of the array"):
        slope(program, X)


@pytest.mark.parametrize("stacked", [False, True])
def test_an_old_name_that_reads_what_was_just_written_is_refused(stacked):
    def program(x):
        old = array(1)
        new = old.write(0, x)
        value = nbta.sum(old.stack()) if stacked else old.read(0)
        return value + nbta.size(new.stack())

    with pytest.raises(nbta.InvalidArgumentError, match="no gradient passes"):
        nbta.grad(program, convert=False)(2.0)
    assert nbta.grad(program)(2.0) == 1.0  # the name stands for what was written, as in Python


def test_an_old_name_that_reads_the_slot_of_the_same_iteration_is_refused():
    def program(x):
        old = array(3)

        def body(i, t, y):
            t = t.write(i, y)
            return [t, y * old.read(i)]

        return loop(2, body, old, x)[1]

    with pytest.raises(nbta.InvalidArgumentError, match="no gradient passes"):
        nbta.grad(program)(2.0)
