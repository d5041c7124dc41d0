"""nbta.gradients: its arguments, its sources, and higher orders through every array operation."""

import numpy as np
import pytest
from running import array, checked, run

import nbta
from nbta import raw_ops
from nbta.ops.loops import bodies
from nbta.testing import check_grads

X = np.array([0.7, -1.3, 2.1])


def build(values):
    """A graph with a placeholder a value, and how to run it."""
    graph = nbta.Graph()
    with graph.as_default():
        fed = [nbta.placeholder(np.asarray(v).dtype, np.shape(v)) for v in values]
    session = nbta.Session(graph)
    return graph, fed, lambda fetches: session.run(fetches, dict(zip(fed, values, strict=True)))


# Arguments.


def test_grad_ys_multiply_each_y():
    def program(x):
        seeds = [np.array([1.0, 2.0, 3.0]), None]
        return nbta.gradients([x * x, nbta.sum(x) * 5.0], [x], seeds)[0]

    np.testing.assert_allclose(run(program, X), 2 * X * [1, 2, 3] + 5)


def test_grad_ys_may_be_tensors_and_are_differentiated():
    def program(x, w):
        (dx,) = nbta.gradients([x**2], [x], [w])
        return nbta.gradients([dx], [w, x])

    dw, dx = run(program, X, X + 1)
    np.testing.assert_allclose(dw, 2 * X)
    np.testing.assert_allclose(dx, 2 * (X + 1))


def test_several_ys_add_up_for_several_xs():
    def program(a, b):
        return nbta.gradients([a * b, a + 2.0 * b, a], [a, b])

    da, db = run(program, 3.0, 4.0)
    assert (da, db) == (4.0 + 1.0 + 1.0, 3.0 + 2.0)


@pytest.mark.smoke
def test_the_same_y_twice_counts_twice_and_the_same_x_twice_is_given_twice():
    assert run(lambda x: nbta.gradients([x * x, x * x], [x, x]), 3.0) == [12.0, 12.0]


def test_a_y_that_is_an_x():
    assert run(lambda x: nbta.gradients([x], [x]), 3.0) == [1.0]
    assert run(lambda x: nbta.gradients([x, x * 2.0], [x]), 3.0) == [3.0]


@pytest.mark.smoke
def test_an_x_in_the_middle_is_free_but_lets_others_through():
    def program(x):
        middle = nbta.sin(x)
        y = middle * middle * x
        return nbta.gradients([y], [middle, x]), nbta.gradients([y], [middle])

    (dm, dx), (alone,) = run(program, 0.5)
    assert dm == alone == pytest.approx(2 * np.sin(0.5) * 0.5)
    assert dx == pytest.approx(np.sin(0.5) ** 2 + dm * np.cos(0.5))


@pytest.mark.smoke
def test_an_x_that_is_stopped_too_gives_partial_derivatives():
    with nbta.Graph().as_default() as g:
        x = nbta.placeholder("float64", ())
        h = x * x
        partial = nbta.gradients(h * x, [x, h], stop_gradients=[h])
        total = nbta.gradients(h * x, [x, h])
        _, last = nbta.while_loop(lambda i, v: i < 2, lambda i, v: (i + 1, v * h * x), (0, x))
        in_loop = nbta.gradients(last, [x, h], stop_gradients=[h])  # x h x h x
    found = nbta.Session(g).run([partial, total, in_loop], {x: 3.0})
    assert found == [[9.0, 3.0], [27.0, 3.0], [3 * 9.0 * 81, 2 * 27.0 * 9]]


@pytest.mark.smoke
def test_stop_gradients_are_constants_in_loops_and_branches_too():
    def program(x):
        stopped = x * 3.0
        _, y = nbta.while_loop(
            lambda i, _: i < 2, lambda i, y: (i + 1, y * stopped * x), (0, nbta.cast(1, x.dtype))
        )
        z = nbta.cond(x > 0.0, lambda: stopped * x, lambda: x)
        return nbta.gradients([y + z], [x], stop_gradients=[stopped])[0]

    assert run(program, 2.0) == pytest.approx(2 * 2 * 36 + 6)


def test_stop_gradients_takes_arrays():
    def program(x):
        ta = array(2).write(0, x)
        y = ta.read(0) * x
        return nbta.gradients([y], [x], stop_gradients=[ta])[0]

    assert run(program, 3.0) == 3.0


def test_unconnected_is_none_or_zero():
    def program(x, y):
        assert nbta.gradients([x], [y]) == [None]
        kept = nbta.cond(x > 0.0, lambda: x, lambda: x * 2.0)
        assert nbta.gradients([kept], [y]) == [None]
        return nbta.gradients([x], [y], unconnected="zero")[0]

    np.testing.assert_array_equal(run(program, 1.0, X), np.zeros(3))


def test_an_array_that_nothing_depends_on_has_no_gradient():
    def program(x):
        ta = array(1).write(0, x)
        assert nbta.gradients([x * 2.0], [ta]) == [None]
        return x

    run(program, 1.0)


@pytest.mark.parametrize("what", ["ys", "xs", "stop_gradients"])
def test_flows_and_strings_are_refused(what):
    with nbta.Graph().as_default():
        x = nbta.placeholder("float64", ())
        arguments = {"ys": [x], "xs": [x], what: ["x"]}
        with pytest.raises(nbta.InvalidArgumentError, match=rf"{what}\[0\]"):
            nbta.gradients(**arguments)
        arguments[what] = [array(1).flow]
        if what != "stop_gradients":
            with pytest.raises(nbta.InvalidArgumentError, match=rf"{what}\[0\]"):
                nbta.gradients(**arguments)


def test_one_array_at_two_points_is_refused_for_both_share_a_gradient_array():
    with nbta.Graph().as_default():
        early = array(2).write(0, 1.0)
        late = early.write(1, 2.0)
        y = early.read(0) * 3.0 + late.read(0) * 5.0
        with pytest.raises(nbta.InvalidArgumentError, match="one array at two points"):
            nbta.gradients([y], [early, late])
        assert len(nbta.gradients([y], [late, late])) == 2


# Sources.


@pytest.mark.smoke
def test_each_call_has_accumulators_of_its_own():
    graph, (x,), go = build([2.0])
    with graph.as_default():
        y = array(1).write(0, x * x).read(0)
        calls = [nbta.gradients([y], [x], name="any") for _ in range(3)]
        with nbta.name_scope("scope"):
            calls.append(nbta.gradients([y * 2.0], [x]))
        calls.append(nbta.gradients([y], [x]))
    sources = [op.attrs["source"] for op in graph.operations if op.type == "TensorArrayGradV3"]
    assert list(dict.fromkeys(sources)) == ["any", "any_1", "any_2", "scope/gradients", "gradients"]
    for _ in range(2):
        assert go(calls) == [[4.0], [4.0], [4.0], [8.0], [4.0]]
    assert [go(call) for call in calls] == [[4.0], [4.0], [4.0], [8.0], [4.0]]


def by_hand(x):
    """The gradient of an array, looked up by its source with raw operations."""
    ta = array(2).unstack(nbta.stack([x[0], x[1] * x[2]]))
    y = ta.read(0) ** 2 * ta.read(1) + nbta.sum(ta.stack())
    (slots,) = nbta.gradients([y], [ta], name="mine")
    (source,) = {op.attrs["source"] for op in slots.flow.graph.operations if "source" in op.attrs}
    handle, flow = raw_ops.TensorArrayGradV3(ta.handle, slots.flow, source=source)
    return raw_ops.TensorArrayGatherV3(handle, [0, 1], flow, dtype="float64")


def test_a_user_reads_a_gradient_array_by_its_source():
    a, b, c = X
    np.testing.assert_allclose(run(by_hand, X), [2 * a * b * c + 1, a * a + 1])


def test_what_a_user_reads_from_a_gradient_array_is_differentiated():
    a, b, c = X
    found = run(lambda x: nbta.gradients([by_hand(x)], [x])[0], X)
    np.testing.assert_allclose(found, [2 * b * c + 2 * a, 2 * a * c, 2 * a * b])


def test_a_gradient_array_that_the_rules_have_read_is_an_error_not_zeros():
    graph, (x,), go = build([2.0])
    with graph.as_default():
        ta = array(1).write(0, x)
        (dx,) = nbta.gradients([ta.read(0) ** 2], [x])
        with nbta.control_dependencies([dx]):
            again = ta.grad("gradients").read(0)
    assert go(dx) == 4.0
    with pytest.raises(nbta.InvalidArgumentError, match="was cleared"):
        go([dx, again])


# Arrays as xs.


def test_the_gradient_of_an_array_is_an_array():
    graph, (x,), go = build([X])
    with graph.as_default():
        ta = array(3).unstack(x)
        y = ta.read(0) * ta.read(2) + nbta.sum(ta.stack()) + ta.read(0)
        (slots,) = nbta.gradients([y], [ta])
        stacked, again, one = slots.stack(), slots.stack(), slots.read(1)
    np.testing.assert_allclose(go(stacked), [X[2] + 2, 1, X[0] + 1])
    np.testing.assert_allclose(go([stacked, again, one])[1], [X[2] + 2, 1, X[0] + 1])


def test_the_gradient_of_an_array_is_differentiated():
    def program(x):
        ta = array(3).unstack(x)
        y = nbta.prod(ta.stack()) * ta.read(0)
        (slots,) = nbta.gradients([y], [ta])
        return slots.stack()

    check_grads(nbta.function(program), (X,), order=2)


def test_the_gradient_of_an_array_through_a_loop():
    def program(x):
        ta = array(3).unstack(x)
        _, y = nbta.while_loop(
            lambda i, _: i < 3, lambda i, y: (i + 1, y * ta.read(i) + ta.read(0)), (0, x[0])
        )
        (slots,) = nbta.gradients([y], [ta])
        return slots.stack()

    a, b, c = X
    np.testing.assert_allclose(run(program, X), [a * b * c + b * c + c + 1, (a * a + a) * c,
                                                 (a * a + a) * b + a])  # fmt: skip


# Second order through every operation on arrays.


def through_write_and_read(x):
    ta = array(3).write(2, x[0] * x[1]).write(0, x[2] ** 2)
    return ta.read(0) * ta.read(2) + ta.read(2)


def through_gather_and_scatter(x):
    ta = array(4).scatter([3, 0, 1], x**2)
    return nbta.sum(ta.gather([1, 3, 3]) * x)


def through_stack_and_unstack(x):
    return nbta.prod(array(3).unstack(nbta.sin(x)).stack()) * x


def through_rows(x):
    ta = nbta.TensorArray("float64", size=3, clear_after_read=False)
    return ta.unstack(nbta.outer(x, x)).read(1) * ta.size()


def through_concat_and_split(x):
    ta = nbta.TensorArray("float64", size=2, infer_shape=False, clear_after_read=False)
    ta = ta.split(x**2, [2, 1])
    return ta.concat().value * x + ta.read(1)[0] * ta.read(0)[1]


def through_ragged(x):
    ta = nbta.TensorArray("float64", size=3, infer_shape=False, clear_after_read=False)
    ta = ta.write(0, x[:1] ** 2).write(1, x * 2.0).write(2, x[1:] * x[0])
    return nbta.sum(ta.read(1) * ta.concat().value[1:4]) + ta.read(2)[0]


def through_dynamic(x):
    ta = array(0, dynamic_size=True).append(x[0] * x[1]).write(3, x[2] ** 2).append(x[1])
    return nbta.sum(ta.stack() ** 2)


def through_cleared(x):
    ta = nbta.TensorArray("float64", size=2).write(0, x[0] ** 2).write(1, x[1] * x[2])
    return ta.read(0) * ta.read(1)


def through_unwritten(x):
    return nbta.sum(array(4).write(1, x[0] * x[1]).stack() ** 2) + x[2]


def through_slots_read_often(x):
    ta = array(2).write(0, x[0] * x[1])
    return ta.read(0) * ta.read(0) * ta.gather([0, 0])[1] * nbta.sum(ta.stack()) + x[2]


def through_two_arrays(x):
    one = array(3).unstack(x**2)
    other = array(3).unstack(one.stack() * x)
    return one.read(0) * other.read(1) * other.read(0)


def through_writes_of_one_value(x):
    product = x[0] * x[1] * x[2]
    ta = array(3).write(0, product).write(1, product).scatter([2], nbta.stack([product]))
    return ta.read(0) * ta.read(1) + ta.read(2)


def through_identity(x):
    ta = array(2).write(0, x[0] * x[1]).identity()
    return ta.write(1, ta.read(0) * x[2]).read(1)


def through_a_gradient_array_of_the_user(x):
    ta = array(2).unstack(x[:2])
    g = ta.grad("by hand", clear_after_read=False)
    g = g.write(0, x[0] * x[1]).write(0, x[2] ** 2).write(1, x[1] * x[2])
    return g.read(0) * g.read(1) * nbta.sum(g.stack())


PROGRAMS = [f for name, f in sorted(globals().items()) if name.startswith("through_")]


@pytest.mark.smoke_every(3)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__.removeprefix("through_"))
def test_second_order(program):
    checked(program, X)


@pytest.mark.slow_but_every(5)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__.removeprefix("through_"))
def test_second_order_in_a_branch(program):
    def branched(x):
        return nbta.cond(nbta.sum(x) > 0.0, lambda: nbta.sum(program(x)), lambda: nbta.sum(x))

    checked(branched, X)
    checked(branched, -X)


def test_third_order():
    def program(x):
        ta = array(1).write(0, x**2)
        return ta.read(0) * ta.read(0)

    found = nbta.grad(nbta.grad(nbta.grad(program)))(1.5)
    assert found == pytest.approx(24 * 1.5)
    check_grads(program, (np.array(1.5),), order=3)


def test_third_order_through_a_loop_with_an_array():
    def program(x):
        ta = array(3)
        step = lambda i, t: (i + 1, t.write(i, x ** nbta.cast(i + 2, x.dtype)))  # noqa: E731
        _, ta = nbta.while_loop(lambda i, _: i < 3, step, (0, ta))
        return ta.read(0) * ta.read(2)

    check_grads(program, (np.array(1.2),), order=3)
    found = nbta.grad(nbta.grad(nbta.grad(program)))(1.2)
    assert found == pytest.approx(6 * 5 * 4 * 1.2**3)


# Dtypes.


def test_float32_stays_float32():
    def program(x):
        ta = nbta.TensorArray("float32", size=2, clear_after_read=False).unstack(x)
        return nbta.sum(ta.stack() ** 2 * ta.read(0))

    x = np.array([1.5, -0.5], np.float32)
    found = nbta.grad(program)(x)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, [3 * 1.5**2 + 0.25, 2 * -0.5 * 1.5], rtol=1e-6)
    assert nbta.hvp(program, x, np.ones(2, np.float32)).dtype == np.float32


def test_complex_arrays_follow_tensorflow():
    def program(z):
        ta = nbta.TensorArray("complex128", size=2, clear_after_read=False)
        ta = ta.write(0, z * z).write(1, nbta.conj(z) * 2j)
        return ta.read(0) * ta.read(1) * ta.read(0)

    checked(program, np.array(0.6 - 0.8j))

    def magnitude(z):
        kept = nbta.TensorArray("complex128", size=1).write(0, z).read(0)
        return nbta.real(kept * nbta.conj(kept))

    assert nbta.grad(magnitude)(3.0 + 4.0j) == pytest.approx(6.0 + 8.0j)


def test_arrays_of_integers_and_truth_values_among_others():
    def program(x):
        places = nbta.TensorArray("int32", size=3, clear_after_read=False).unstack([2, 0, 1])
        kept = nbta.TensorArray("bool", size=3, clear_after_read=False).unstack(x > 0.0)
        rows = array(3).unstack(x)
        step = lambda i, y: (  # noqa: E731
            i + 1,
            nbta.cond(kept.read(i), lambda: y * rows.read(places.read(i)), lambda: y + x[i]),
        )
        return nbta.while_loop(lambda i, _: i < 3, step, (0, x[0]))[1]

    checked(program, X)


# Inside of bodies.


@pytest.mark.smoke
def test_gradients_in_a_body_read_a_captured_array_anew_in_each_iteration():
    def program(x):
        ta = array(3).unstack(x)

        def body(i, out):
            y = ta.read(0) ** 2 * ta.read(1)
            (slots,) = nbta.gradients([y], [ta])
            return i + 1, out.write(i, slots.read(i))

        return nbta.while_loop(lambda i, _: i < 3, body, (0, array(3)))[1].stack()

    np.testing.assert_allclose(run(program, X), [2 * X[0] * X[1], X[0] ** 2, 0])
    check_grads(nbta.function(program), (X,))


def test_gradients_in_a_body_of_values_that_went_through_a_growing_past():
    def program(x):
        def body(i, ta, out):
            v = x * nbta.cast(i, x.dtype)
            ta = ta.write(i, v)
            (dv,) = nbta.gradients([ta.read(i) ** 2 * ta.read(i - 1)], [v])
            return i + 1, ta, out.write(i, dv)

        first = array(4).write(0, x)
        return nbta.while_loop(lambda i, *_: i < 4, body, (1, first, array(4)))[2].stack()

    np.testing.assert_allclose(run(program, 2.0), [0, 2 * 2 * 2, 2 * 4 * 2, 2 * 6 * 4])
    check_grads(nbta.function(program), (np.array(2.0),))


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("wrt", ["v", "x", "y"])
@pytest.mark.parametrize("is_deep", [False, True], ids=["loop", "loops"])
@pytest.mark.parametrize("order", [1, 2])
def test_derivatives_of_gradients_in_a_body_are_compiled_or_refused(wrt, is_deep, order):
    """They save tapes on tapes, and sums of adjoints; not all such nests are compiled."""

    def scaled(u, v):
        return nbta.while_loop(lambda k, _: k < 2, lambda k, w: (k + 1, w * v), (0, u))[1]

    def program(x):
        def body(i, y):
            v = y * x

            def following(j, u):
                return j + 1, (scaled(u, v) if is_deep else u) * v

            inner = nbta.while_loop(lambda j, _: j <= i, following, (0, v))[1]
            (slope,) = nbta.gradients([inner], [{"v": v, "x": x, "y": y}[wrt]])
            return i + 1, y - 0.1 * slope

        return nbta.while_loop(lambda i, _: i < 2, body, (0, x))[1]

    def derived(x, order=order):
        return nbta.gradients([derived(x, order - 1)], [x])[0] if order else program(x)

    expected = nbta.function(derived, compiled=False)(0.7)
    compiled = nbta.function(derived, compiled=True)
    if order == 2 or is_deep:
        with pytest.raises(nbta.errors.UnimplementedError, match="cannot be compiled"):
            compiled(0.7)
    else:
        assert compiled(0.7) == pytest.approx(expected, rel=1e-9)
    assert nbta.function(derived)(0.7) == pytest.approx(expected, rel=1e-9)


def test_gradients_in_a_body_through_a_loop_in_it():
    def program(x):
        def body(i, y):
            v = y * x
            inner = nbta.while_loop(lambda j, _: j <= i, lambda j, u: (j + 1, u * v), (0, v))[1]
            return i + 1, y - 0.1 * nbta.gradients([inner], [v])[0]

        return nbta.while_loop(lambda i, _: i < 2, body, (0, x))[1]

    first = 0.7 - 0.1 * 2 * 0.49
    assert run(program, 0.7) == pytest.approx(first - 0.1 * 3 * (first * 0.7) ** 2)
    check_grads(nbta.function(program), (np.array(0.7),))


@pytest.mark.smoke
def test_gradients_in_a_branch():
    def program(x):
        def slope():
            ta = array(1).write(0, x)
            return nbta.gradients([ta.read(0) ** 3], [x])[0]

        return nbta.cond(x > 0.0, slope, lambda: x)

    assert run(program, 2.0) == 12.0
    check_grads(nbta.function(program), (np.array(2.0),))


def test_what_a_branch_computes_again_is_looked_at_once(monkeypatch):
    """For each value that its gradient asks for, all that this depends on was looked at again."""
    looks, indexes = [], bodies._indexes
    monkeypatch.setattr(bodies, "_indexes", lambda op: looks.append(op) or indexes(op))

    def chain(x):
        for _ in range(30):
            x = nbta.sin(x) * x
        return x

    def program(x):
        return nbta.cond(x > 0.1, lambda: chain(x), lambda: x)

    check_grads(program, (np.array(0.7),), order=1)
    looks.clear()
    with nbta.Graph().as_default():
        x = nbta.placeholder("float64", ())
        nbta.gradients(program(x), x)
    assert len(looks) == len(set(looks)) >= 60


def test_a_long_chain_that_a_branch_computes_again():
    """As many operations as Python has no room for on its stack."""

    def program(x):
        def chain():
            y = x
            for _ in range(400):
                y = y * 0.999 + nbta.sin(y) * 0.001
            return y

        return nbta.cond(x > 0.1, chain, lambda: x)

    check_grads(program, (np.array(0.7),), order=1)


def test_two_calls_in_one_body():
    def program(x):
        def body(i, y):
            v = y * 1.0
            ta = array(1).write(0, v)
            first = nbta.gradients([ta.read(0) ** 2], [v])[0]
            second = nbta.gradients([first * ta.read(0)], [v])[0]
            return i + 1, first + second * x

        return nbta.while_loop(lambda i, _: i < 3, body, (0, x))[1]

    y = 0.4
    for _ in range(3):
        y = 2 * y + 4 * y * 0.4
    assert run(program, 0.4) == pytest.approx(y)
    check_grads(nbta.function(program), (np.array(0.4),))
