"""Forward mode of loops, branches, arrays: against reverse mode and differences, to any order."""

import re

import numpy as np
import pytest
import transposed

import nbta
from nbta.structure import leaves

X = np.array([0.7, -1.3, 1.1])
T = np.array([0.3, 0.5, -0.9])


def recurrent(x):
    w = nbta.outer(x, nbta.sin(x))

    def step(h, row):
        h = nbta.tanh(w @ h + row * x)
        return h, nbta.sum(h)

    return nbta.scan(step, x, np.arange(12.0).reshape(4, 3) / 7)


def until_far(x):
    return nbta.while_loop(lambda v, n: nbta.sum(v * v) < 50.0, lambda v, n: (v * 1.5 + x, n + 1),
                           (x, 0))  # fmt: skip


def no_iteration(x):
    return nbta.while_loop(lambda i, v: i < 0, lambda i, v: (i + 1, v * x), (0, nbta.sin(x)))


def one_variable_after_another(x):
    def body(i, a, b, c):
        return i + 1, nbta.cast(i, np.float64) * c, a + 1.0, x[0] * b

    return nbta.while_loop(lambda i, *_: i < 5, body, (0, 1.0, 2.0, 3.0))


def nested(x):
    total = 0.0
    for i in range(3):
        part = x[i]
        for j in range(i):
            part = np.sin(part * x[j]) + i
        total += part * part
    return total


def branches(x):
    total = 0.0
    for i in range(3):
        if x[i] > 1.0:
            total += x[i] ** 2
        elif x[i] < 0.0:
            total += np.exp(x[i]) * total
        else:
            total = total * 2.0 + 1.0
    return total, nbta.cond(total > 0.0, lambda: x * total, lambda: 1.0 - x)


def one_branch_only(x):
    return nbta.cond(x[0] > 0.0, lambda: np.ones(3), lambda: x)


def filling(x):
    a = np.zeros(6)
    for i in range(6):
        a[i] = x[i % 3] * i
        a[i // 2] += a[i] * x[0]
    return a[::2] * x


def grown(x):
    ta = nbta.TensorArray("float64", size=0, dynamic_size=True, clear_after_read=False)
    i = 0
    while i < 4:
        ta = ta.write(i, x * x[0] + i)
        i += 1
    return ta.read(2) * x + nbta.sum(ta.stack(), axis=0)


def written_in_part(x):
    ta = nbta.TensorArray("float64", size=5, element_shape=(3,), clear_after_read=False)
    ta = ta.write(0, np.ones(3)).write(3, x * x)
    return ta.stack(), ta.read(1) + ta.read(3), ta.read(0)


def constants_first(x):
    ta = nbta.TensorArray("float64", size=2, infer_shape=False, clear_after_read=False)
    ta = ta.write(0, np.ones(2)).write(1, x * x)
    return ta.concat(), ta.read(0), ta.read(1)


def scattered(x):
    ta = nbta.TensorArray("float64", size=4, clear_after_read=False)
    ta = ta.scatter([2, 0, 1], nbta.outer(x, x)).write(3, x)
    return ta.gather([3, 1, 1]), ta.concat()


def split(x):
    ta = nbta.TensorArray("float64", size=2, infer_shape=False, clear_after_read=False)
    ta = ta.split(x * x, [1, 2])
    return ta.concat(), ta.read(1)


def written_in_branches(x):
    ta = nbta.TensorArray("float64", size=0, dynamic_size=True, clear_after_read=False)
    for i in range(3):
        if x[i] > 0.0:
            ta = ta.write(i, x[i] * x)
        else:
            ta = ta.write(i, np.ones(3))
    return ta.stack()


def one_of_two_arrays(x):
    one, other = (nbta.TensorArray("float64", size=1, clear_after_read=False) for _ in range(2))
    one, other = one.write(0, x), other.write(0, np.ones(3))
    chosen = nbta.cond(x[0] > 0.0, lambda: one, lambda: other)
    return chosen.read(0) * x, other.read(0)


def captured_array(x):
    ta = nbta.TensorArray("float64", size=3, clear_after_read=False).unstack(x * x)
    return nbta.scan(lambda c, i: (c * ta.read(i), ta.read(2 - i)), x[0], np.arange(3))


def gradient_array(x):
    ta = nbta.TensorArray("float64", size=3, clear_after_read=False).unstack(x * x)
    grads = ta.grad("source")
    for i in range(3):
        grads = grads.write(0, x[i] * x[0]).write(1, x[i])
    return grads.stack(), ta.stack()


def first_gradients_inside(x):
    def step(v, _):
        return v - 0.1 * nbta.gradients(nbta.sum(nbta.sin(v) * x), v)[0], None

    return nbta.scan(step, x, None, length=3)[0]


def complex_state(x):
    z = nbta.cast(x, "complex128") * (1.0 + 0.5j)
    found = nbta.foldl(lambda a, v: a * v / (a + 2.0) + nbta.conj(v), z, 1.0 + 0.5j)
    return found, nbta.abs(found), nbta.real(found * z)


def integers_beside(x):
    return {"n": nbta.argmax(x), "s": nbta.sort(x), "b": x > 0.0}


def nothing_of_it(x):
    return np.ones(3), nbta.stop_gradient(x) * 2.0


def rows_in_parallel(x):
    return nbta.map_fn(lambda v: (v * x, nbta.sum(nbta.sin(v * x))), x, parallel_iterations=2)


def with_checkpoints(x):
    return nbta.scan(lambda c, v: (nbta.sin(c * v), c * c), x[0], nbta.tile(x, 3), checkpoint=2)


def with_own_checkpoints(x):
    return nbta.scan(
        lambda c, v: (nbta.sin(c * v), c * c), x[0], nbta.tile(x, 3), checkpoint="online"
    )


def arrays_made_in_segments(x):
    def step(c, v):
        ta = nbta.TensorArray("float64", size=0, dynamic_size=True, clear_after_read=False)
        ta = ta.write(0, c * x).write(1, x * v)
        last, squares = nbta.scan(lambda d, w: (nbta.sin(d * w) + ta.read(1)[0], d * d), c, x)
        return last * v, nbta.sum(squares) + nbta.sum(ta.stack())

    return nbta.scan(step, x[0], nbta.tile(x, 2), checkpoint=2)


@nbta.custom_gradient
def cubed(x):
    return x**3


@cubed.backward
@nbta.custom_gradient
def cubed_backward(dy, x, y):
    return 3.0 * x * x * dy


@cubed_backward.backward
def cubed_twice(ddx, dy, x, y, dx):
    return 3.0 * x * x * ddx, 6.0 * x * dy * ddx, np.zeros_like(y)


def custom(x):
    return nbta.foldl(lambda a, v: cubed(a) * v, x, x[0])


PROGRAMS = [
    recurrent, until_far, no_iteration, one_variable_after_another, nested, branches,
    one_branch_only, filling, grown, written_in_part, constants_first, scattered, split,
    written_in_branches, one_of_two_arrays, captured_array, gradient_array, first_gradients_inside,
    complex_state, integers_beside, nothing_of_it, rows_in_parallel, with_checkpoints,
    with_own_checkpoints, arrays_made_in_segments, custom,
]  # fmt: skip
#: What has no third derivatives, or takes long.
FIRST_ONLY = {integers_beside, nothing_of_it, custom}
SMOOTH = [f for f in PROGRAMS if f not in FIRST_ONLY]


def close(found, expected, rtol=1e-10):
    assert len(leaves(found)) == len(leaves(expected))
    for one, other in zip(leaves(found), leaves(expected), strict=True):
        assert np.asarray(one).dtype == np.asarray(other).dtype
        np.testing.assert_allclose(one, other, rtol=rtol, atol=1e-10)


def along(f, compiled):
    return nbta.function(lambda x, t: nbta.jvp(f, (x,), (t,)), compiled=compiled)


def loss(f):
    def total(x):
        found = [nbta.sum(nbta.abs(y) ** 2) for y in leaves(f(x))
                 if np.dtype(y.dtype).kind in "fc"]  # fmt: skip
        return nbta.add_n(found)

    return total


@pytest.mark.smoke_every(6)
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_forward_mode_is_reverse_mode_transposed(f, compiled):
    close(along(f, compiled)(X, T), transposed.jvp(f, (X,), (T,)))


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_forward_mode_agrees_with_differences(f):
    _, slopes = nbta.jvp(f, (X,), (T,))
    ends = [nbta.function(f)(X + sign * 1e-6 * T) for sign in (1.0, -1.0)]
    for slope, high, low in zip(leaves(slopes), *map(leaves, ends), strict=True):
        if np.asarray(slope).dtype.kind in "fc" and f is not nothing_of_it:
            np.testing.assert_allclose(slope, (high - low) / 2e-6, rtol=1e-6, atol=1e-7)
        else:
            np.testing.assert_array_equal(slope, np.zeros_like(slope))


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(
    "f", [f for f in PROGRAMS if f not in FIRST_ONLY], ids=lambda f: f.__name__
)
def test_orders_and_modes_commute(f, compiled):
    """Second derivatives by all four ways, and a third one by two."""
    total = loss(f)
    slope = nbta.grad(total)
    expected = nbta.grad(lambda x: nbta.sum(nbta.grad(total)(x) * T), compiled=False)(X)
    close(along(slope, compiled)(X, T)[1], expected)
    reverse = nbta.grad(lambda x: nbta.jvp(total, x, T)[1], compiled=compiled)
    close(reverse(X), expected)
    twice = nbta.function(
        lambda x: nbta.jvp(lambda y: nbta.jvp(total, y, T)[1], x, T), compiled=compiled
    )
    close(twice(X)[1], np.sum(expected * T))


@pytest.mark.parametrize(
    "f", [recurrent, nested, branches, filling, grown, captured_array], ids=lambda f: f.__name__
)
def test_third_derivatives(f):
    total = loss(f)

    def second(x):
        return nbta.sum(nbta.grad(lambda y: nbta.sum(nbta.grad(total)(y) * T))(x) * T)

    expected = np.sum(nbta.grad(second, compiled=False)(X) * T)
    found = nbta.jvp(lambda x: nbta.jvp(nbta.grad(total), x, T)[1] @ T, X, T)[1]
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    forward = lambda g: lambda x: nbta.jvp(g, x, T)[1]  # noqa: E731
    np.testing.assert_allclose(forward(forward(forward(total)))(X), expected, rtol=1e-9)


def saved(graph):
    return [op for op in nbta.graph.graph.everything(graph) if op.facts.is_saved]


def test_nothing_is_saved():
    with nbta.Graph().as_default() as graph:
        x = nbta.placeholder("float64", (3,))
        nbta.jvp(recurrent, x, x * 0.5)
    assert not saved(graph)


def test_a_loop_has_only_the_tangents_that_change():
    from nbta.graph.views import Loop

    with nbta.Graph().as_default() as graph:
        x = nbta.placeholder("float64", ())
        body = lambda i, a, b: (i + 1, a * x, b * 2.0)  # noqa: E731
        nbta.jvp(lambda x: nbta.while_loop(lambda i, a, b: i < 3, body, (0, 1.0, 1.0)), x, x)
        nbta.jvp(lambda y: nbta.while_loop(lambda i, a, b: i < 3, lambda i, a, b: (i + 1, a * y, b),
                                           (0, 1.0, 1.0)), x, x)  # fmt: skip
    first, second = (op for op in graph.operations if op.type == "While")
    assert Loop(first).count == 4  # nothing depends on the direction: x is captured from outside
    assert Loop(second).count == 4


def test_what_leads_to_no_result_needs_no_derivative():
    once = nbta.custom_gradient(lambda x: x * 2.0, lambda dy, x, y: 2.0 * dy)
    found = nbta.jvp(lambda x: x[nbta.argmax(once(x))] ** 2, X, T)
    np.testing.assert_allclose(found, (X[2] ** 2, 2 * X[2] * T[2]))

    def loop(x):
        ta = nbta.TensorArray("float64", size=0, dynamic_size=True)
        for i in range(3):
            ta = ta.write(i, once(x)[i])
        return x[nbta.argmax(ta.stack())]

    assert nbta.jvp(loop, X, T) == (X[2], T[2])


def test_a_custom_function_without_a_second_backward_function_is_refused():
    once = nbta.custom_gradient(lambda x: x * 2.0, lambda dy, x, y: 2.0 * dy)
    with pytest.raises(nbta.UnimplementedError, match="second derivatives and jvp"):
        nbta.jvp(once, 1.0, 1.0)


def test_tangents_of_unknown_lengths_copy_no_arrays_in_loops():
    """The tangent of a sum of which one term has none is not broadcast where its shape is known."""

    def sums(x):
        a = np.zeros((x.shape[0] + 1, x.shape[0] + 1))
        for i in range(1, a.shape[0]):
            for j in range(1, a.shape[0]):
                a[i, j] = np.minimum(a[i - 1, j], a[i, j - 1]) + x[i - 1] * x[j - 1]
        return a[-1, -1]

    nbta.testing.assert_no_copies_in_loops(lambda x, t: nbta.jvp(sums, x, t)[1], X, T)
    nbta.testing.assert_no_copies_in_loops(lambda x, t: nbta.hvp(sums, x, t), X, T)


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("f", SMOOTH, ids=lambda f: f.__name__)
def test_hvp_is_reverse_over_reverse(f, compiled):
    total = loss(f)
    expected = nbta.grad(lambda x: nbta.sum(nbta.grad(total)(x) * T), compiled=False)(X)
    close(nbta.function(lambda x: nbta.hvp(total, x, T), compiled=compiled)(X), expected)


# Gradients of what forward mode gives: they pass by the flows of arrays of tangents.


def squares_in_a_nest(x):
    s = x[0]
    for i in range(len(x)):
        for _ in range(i):
            s = np.sin(s) * s
    return s


def items_in_a_nest(x):
    s = 0.0
    for i in range(len(x)):
        for j in range(i):
            s = s + x[i] * np.tanh(x[j] + s)
    return s


def three_deep(x):
    s = x[0]
    for i in range(len(x)):
        for j in range(i):
            for _ in range(j + 1):
                s = np.sin(s) + 0.1 * x[j]
    return s


def branches_in_a_nest(x):
    s = x[0]
    for i in range(len(x)):
        if x[i] > 0.0:
            for j in range(i):
                s = np.sin(s) * x[j]
        else:
            s = s * x[i] * s
    return s


def rows_in_a_nest(x):
    h = x * 1.0
    for i in range(len(x)):
        for j in range(i):
            h = np.tanh(h * x[j]) + x
    return np.sum(h * h)


def lists_in_a_nest(x):
    total = 0.0
    for i in range(len(x)):
        kept = []
        s = x[i]
        for j in range(i + 1):
            s = s * np.cos(x[j])
            kept.append(s)
        for value in kept:
            total += value * value * value
    return total


def searched(x):
    s = x[0]
    for i in range(len(x)):
        while s * s > 0.1:
            s = 0.7 * np.sin(s) * (1.0 + 0.1 * x[i])
        s = s + x[i]
    return s


NESTED = [
    squares_in_a_nest, items_in_a_nest, three_deep, branches_in_a_nest, rows_in_a_nest,
    lists_in_a_nest, searched,
]  # fmt: skip


@pytest.mark.smoke_every(3)
@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("f", NESTED)
def test_gradients_of_tangents_of_gradients(f, compiled):
    x = np.array([0.7, -0.4, 0.9, 0.5])

    def along(x):
        return nbta.sum(nbta.hvp(f, (x,), (np.cos(x),))[0] * x)

    value = nbta.function(along, compiled=False)
    steps = 1e-5 * np.eye(4)
    slopes = [(value(x + step) - value(x - step)) / 2e-5 for step in steps]
    found = nbta.grad(along, compiled=compiled)(x)
    np.testing.assert_allclose(found, slopes, rtol=1e-6, atol=1e-7)


# Costs: what a compiled derivative of a loop does, by its source.


def differences(u):
    s = 0.0
    for i in range(1, len(u)):
        d = u[i] * u[i] - u[i - 1]
        s += d * d
    return s


def ratios(x):
    s = 0.0
    for i in range(len(x)):
        s += np.sin(x[i]) / (2.0 + x[i] * x[i])
    return s


def pooled(x):
    s = 0.0
    for i in range(0, len(x) - 1, 2):
        for j in range(0, len(x) - 1, 2):
            a = max(x[i] * x[j], x[i + 1] - x[j + 1])
            s += a * a
    return s


LONGER = np.sin(np.arange(1.0, 14.0) ** 2)


def nearest(x):
    d = np.full((len(x), len(x)), 3.0)
    for k in range(len(x)):
        for i in range(len(x)):
            for j in range(len(x)):
                d[i, j] = min(d[i, j], x[k] * x[j] + x[i] * (2.0 + x[k]))
    return np.sum(d * d)


def best_of_earlier(x):
    best = np.zeros(20)
    for i in range(len(x)):
        for c in range(19, 4, -1):
            best[c] = max(best[c], best[c - 3] + x[i] * x[i])
    return best[19] * best[12]


def best_of_this_round(x):
    best = np.zeros(20)
    for i in range(len(x)):
        for c in range(5, 20):
            best[c] = max(best[c], best[c - 3] + x[i] * x[i])
    return best[19] * best[12]


COSTS = [differences, ratios, pooled, nearest, best_of_earlier, best_of_this_round]


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("f", COSTS, ids=lambda f: f.__name__)
def test_derivatives_of_loops_to_the_third_order(f):
    nbta.testing.check_grads(f, (LONGER[:7],), order=3)
    direction = LONGER[::-1].copy()

    def derivatives(x, t):
        return nbta.jvp(f, x, t), nbta.hvp(f, x, t)

    slow, fast = (nbta.function(derivatives, compiled=compiled) for compiled in (False, True))
    close(fast(LONGER, direction), slow(LONGER, direction))


def source_of(derivative, f):
    found = nbta.function(lambda x, t: derivative(f, x, t), compiled=True)
    found(LONGER, LONGER)
    return "\n".join(line for line in found.source.splitlines() if "#" not in line)


def filled_arrays(source):
    """The names of the arrays that code fills, all of them or around what a loop stores."""
    return set(re.findall(r"clear\((\w+),", source))


def test_hvp_makes_no_array_that_its_result_does_not_need():
    found = source_of(nbta.hvp, differences)
    assert "copy(" not in found
    assert len(filled_arrays(found)) == 1  # the tangent of the adjoint, which itself is no result


def test_an_adjoint_and_its_tangent_are_each_filled_in_place():
    found = source_of(lambda f, x, t: nbta.jvp(nbta.grad(f), x, t), differences)
    assert "copy(" not in found
    assert len(filled_arrays(found)) == 2


def test_the_tangent_of_a_quotient_divides_once():
    assert source_of(nbta.jvp, ratios).count(" / ") == 2  # the value, and its tangent


def test_the_tangents_of_extremes_go_in_vectors_in_nested_loops():
    assert source_of(nbta.jvp, pooled).count("fast_add") >= 2


@pytest.mark.parametrize("compiled", [False, True])
def test_tangents_of_quotients_that_are_not_finite(compiled):
    along = nbta.function(
        lambda x, y, s, t: nbta.jvp(lambda x, y: x / y, (x, y), (s, t))[1], compiled=compiled
    )
    x, y, zero = np.array([1.0, 2.0, 0.0]), np.array([0.0, np.inf, 0.0]), np.zeros(3)
    np.testing.assert_array_equal(along(x, y, zero, zero), zero)
    z, w = np.array([1 + 2j, 3 - 1j]), np.array([0.5j, 2 + 1j])
    np.testing.assert_allclose(along(z, w, w, z), (w - z / w * z) / w)


def test_jvp_checks_arrays_that_differ_from_their_primals():
    for wrong in (T[:2], T.astype(np.float32), (T,), np.ones((3, 1))):
        with pytest.raises(nbta.InvalidArgumentError, match="tangents"):
            nbta.jvp(lambda x: x * 2.0, (X,), (wrong,))


def test_tangents_of_replaced_items_are_stored_whole():
    assert "chosen(" in source_of(nbta.jvp, nearest)
    assert "chosen(" in source_of(nbta.jvp, best_of_earlier)  # which comes before what changes it
    assert "chosen(" not in source_of(nbta.jvp, best_of_this_round)  # one item waits for another
