"""Gradient arrays that a program looks up itself, in every way to run and to differentiate it.

Each program is written for Numba too: `in_every_way` runs it on eager arrays, in `@njit`, traced,
and with value and gradient, tangents of one order and of two, one by one and compiled.
"""

import numpy as np
import pytest
from fuzz.ways import in_python
from numba import njit

import nbta
from nbta.graph.graph import current

X, ALONG = np.array([3.0, 2.0]), np.array([1.0, 0.5])


def along(f, x, step):
    """The derivative of a polynomial of a degree up to 4 along a direction."""
    return (8 * (f(x + step) - f(x - step)) - (f(x + 2 * step) - f(x - 2 * step))) / 12


def differences(f, x, h=2.0**-5):
    """Gradient, and second derivatives along `ALONG`, of a program of such polynomials."""

    def slope(x):
        return np.array([along(f, x, step) / h for step in h * np.eye(len(x))])

    return slope(x), along(slope, x, h * ALONG) / h


def in_every_way(f, value, numba=True):
    """Hold a program's value and derivatives against those of the eager program."""
    assert f(X) == pytest.approx(value, rel=1e-12)
    if numba:
        assert njit(f)(X) == pytest.approx(value, rel=1e-12)
    slope, bend = differences(f, X)
    for compiled in (False, True):
        with in_python():
            assert nbta.function(f, compiled=compiled)(X) == pytest.approx(value, rel=1e-12)
            found, gradient = nbta.value_and_grad(f, compiled=compiled)(X)
            assert found == pytest.approx(value, rel=1e-12)
            np.testing.assert_allclose(gradient, slope, rtol=1e-9, atol=1e-7)
            jvp = nbta.function(lambda x, v: nbta.jvp(f, (x,), (v,)), compiled=compiled)
            found, tangent = jvp(X, ALONG)
            assert found == pytest.approx(value, rel=1e-12)
            np.testing.assert_allclose(tangent, slope @ ALONG, rtol=1e-9, atol=1e-7)
            hvp = nbta.function(lambda x, v: nbta.hvp(f, x, v), compiled=compiled)
            np.testing.assert_allclose(hvp(X, ALONG), bend, rtol=1e-9, atol=1e-7)
            twice = nbta.grad(lambda x: np.sum(nbta.grad(f)(x) * ALONG), compiled=compiled)
            np.testing.assert_allclose(twice(X), bend, rtol=1e-9, atol=1e-7)


def refused_in_every_way(f, reason, numba=True):
    """The same error from a program, whatever runs it; derivatives of two orders need no value."""
    jvp = lambda x: nbta.jvp(f, (x,), (ALONG,))  # noqa: E731
    runs = [f, njit(f)] if numba else [f]
    for compiled in (False, True):
        runs += [nbta.function(g, compiled=compiled) for g in (f, jvp)]
        runs.append(nbta.value_and_grad(f, compiled=compiled))
    for run in runs:
        with in_python(), pytest.raises(nbta.NbtaError) as caught:
            run(X)
        assert caught.value.reason == reason


# Sources that nbta's own derivatives use too.


def named_gradients(x):
    ta = nbta.TensorArray(np.float64, size=2, element_shape=(), clear_after_read=False).unstack(x)
    g = ta.grad("gradients", clear_after_read=False)
    for i in range(10):
        g = g.accumulate(i % 2, 1.0)
    return np.sum(ta.stack() ** 2)


def named_as_a_second_gradient(x):
    ta = nbta.TensorArray(np.float64, size=2, element_shape=(), clear_after_read=False).unstack(x)
    g = ta.grad("gradients_1", clear_after_read=False)
    h = ta.grad("gradients", clear_after_read=False)
    for i in range(2):
        g = g.accumulate(i, x[i])
        h = h.accumulate(i, x[i] * x[i])
    return np.sum(ta.stack() ** 2) + np.sum(h.stack() * g.stack())


def one_level_deeper(x):
    ta = nbta.TensorArray(np.float64, size=1, element_shape=(), clear_after_read=False)
    ta = ta.write(0, x[0])
    g = ta.grad("s")
    g.grad("gradients", clear_after_read=False).accumulate(0, x[1])
    g = g.accumulate(0, x[0] ** 2)
    return g.read(0) + ta.read(0)


def named_as_tangents(x):
    ta = nbta.TensorArray(np.float64, size=1, element_shape=(), clear_after_read=False)
    ta = ta.write(0, x[0])
    g = ta.grad("s")
    ta.grad("s/tangents", clear_after_read=False).accumulate(0, x[1])
    ta.grad("s/tangents_1", clear_after_read=False).accumulate(0, x[1])
    g = g.accumulate(0, x[0] ** 2)
    return g.read(0) + ta.read(0)


def in_a_loop_of_arrays(x):
    total = 0.0
    for i in range(2):
        ta = nbta.TensorArray(np.float64, size=1, element_shape=(), clear_after_read=False)
        ta = ta.write(0, x[i])
        ta.grad("gradients").accumulate(0, x[1])
        ta.grad("gradients_1").accumulate(0, x[0])
        total += ta.read(0) ** 2
    return total


def in_a_branch(x):
    ta = nbta.TensorArray(np.float64, size=1, element_shape=(), clear_after_read=False)
    ta = ta.write(0, x[0])
    if x[1] > 1.0:
        ta.grad("gradients").accumulate(0, x[1])
    return ta.read(0) ** 2


@pytest.mark.parametrize(
    ("f", "value"),
    [
        (named_gradients, 13.0),
        (named_as_a_second_gradient, 48.0),
        (one_level_deeper, 12.0),
        (named_as_tangents, 12.0),
        (in_a_loop_of_arrays, 13.0),
        (in_a_branch, 9.0),
    ],
)
def test_sources_of_derivatives(f, value):
    in_every_way(f, value)


@pytest.mark.parametrize("compiled", [False, True])
def test_a_source_that_an_iteration_would_have(compiled):
    """Where a loop's body calls `gradients`, an iteration's source is ``SOURCE#NUMBER``."""
    sources = []

    def step(i, x):
        ta = nbta.TensorArray("float64", size=1, element_shape=()).write(0, x)
        sources.append(f"{current().scope}gradients#0")
        mine = ta.grad(sources[-1], clear_after_read=False).accumulate(0, 1.0)
        (slope,) = nbta.gradients([ta.read(0) ** 2], [x])
        return i + 1, x - 0.25 * slope + 0.0 * mine.read(0)

    def run(x):
        return nbta.while_loop(lambda i, x: i < 2, step, (0, x))[1]

    with in_python():
        assert nbta.function(run, compiled=compiled, convert=False)(1.0) == 0.25
    assert sources


@pytest.mark.parametrize("taken", ["gradients", "gradients#3"])
def test_a_lookup_by_hand_before_a_call_of_gradients(taken):
    with nbta.Graph().as_default() as graph:
        x = nbta.placeholder("float64", (), name="x")
        ta = nbta.TensorArray("float64", size=1, element_shape=()).write(0, x)
        mine = ta.grad(taken).write(0, 5.0)
        y = ta.read(0) ** 2
        slopes = [*nbta.gradients([y], [x]), *nbta.gradients([y], [x])]
        results = [*slopes, mine.read(0)]
    sources = [op.attrs["source"] for op in graph.operations if op.type == "TensorArrayGradV3"]
    assert list(dict.fromkeys(sources)) == [taken, "gradients_1", "gradients_1_1"]
    assert nbta.Session(graph).run(results, {x: 3.0}) == [6.0, 6.0, 5.0]


# The first lookup of a run decides whether reads clear.


def clears_and_is_looked_up_to_keep(x):
    ta = nbta.TensorArray(np.float64, size=1, element_shape=(), clear_after_read=False)
    ta = ta.write(0, x[0])
    ta.grad("s").accumulate(0, x[0] ** 2)
    h = ta.grad("s", clear_after_read=False)
    return h.read(0) + h.read(0)


def clears_by_default_one_level_deeper(x):
    ta = nbta.TensorArray(np.float64, size=1, element_shape=(), clear_after_read=False)
    ta = ta.write(0, x[0])
    h = ta.grad("s", clear_after_read=False).grad("t").accumulate(0, x[0] ** 2)
    return h.read(0) + h.read(0)


def keeps_and_is_looked_up_to_clear(x):
    ta = nbta.TensorArray(np.float64, size=1, element_shape=(), clear_after_read=False)
    ta = ta.write(0, x[0])
    ta.grad("s", clear_after_read=False).accumulate(0, x[0] ** 2)
    h = ta.grad("s")
    return h.read(0) * h.read(0)


def keeps_in_a_branch(x):
    ta = nbta.TensorArray(np.float64, size=1, element_shape=(), clear_after_read=False)
    ta = ta.write(0, x[0])
    if x[1] > 1.0:
        ta.grad("s", clear_after_read=False).accumulate(0, x[1])
    h = ta.grad("s").accumulate(0, x[0] ** 2)
    return h.read(0) * h.read(0)


def keeps_in_each_iteration(x):
    total = 0.0
    for i in range(12):
        ta = nbta.TensorArray(np.float64, size=1, element_shape=(), clear_after_read=False)
        ta = ta.write(0, x[i % 2])
        ta.grad("s", clear_after_read=False).accumulate(0, x[0] ** 2)
        h = ta.grad("s")
        total += h.read(0) * h.read(0) + ta.read(0)
    return total


@pytest.mark.parametrize(
    ("f", "value"),
    [
        (keeps_and_is_looked_up_to_clear, 81.0),
        (keeps_in_a_branch, 121.0),
        (keeps_in_each_iteration, 1002.0),
    ],
)
def test_lookups_that_differ_in_what_a_read_does(f, value):
    in_every_way(f, value)


@pytest.mark.parametrize("f", [clears_and_is_looked_up_to_keep, clears_by_default_one_level_deeper])
def test_a_slot_that_the_first_lookup_lets_a_read_clear(f):
    refused_in_every_way(f, "cleared")


# Closing: of a gradient array it ends that one alone.


def closed_gradient_array(x):
    ta = nbta.TensorArray(np.float64, size=1, element_shape=(), clear_after_read=False)
    ta = ta.write(0, x[0])
    ta.grad("s").close()
    return ta.read(0) ** 2


def another_source_after_a_close(x):
    ta = nbta.TensorArray(np.float64, size=1, element_shape=(), clear_after_read=False)
    ta = ta.write(0, x[0])
    g = ta.grad("s")
    g.close()
    return ta.grad("t").accumulate(0, x[1] ** 2).read(0)


def gradient_array_of_a_closed_one(x):
    ta = nbta.TensorArray(np.float64, size=1, element_shape=(), clear_after_read=False)
    ta = ta.write(0, x[0])
    g = ta.grad("s")
    h = g.grad("t").accumulate(0, x[1] ** 2)
    g.close()
    return h.read(0) + ta.read(0)


@pytest.mark.parametrize(
    ("f", "value"),
    [
        (closed_gradient_array, 9.0),
        (another_source_after_a_close, 4.0),
        (gradient_array_of_a_closed_one, 7.0),
    ],
)
def test_closing_a_gradient_array_ends_that_one_alone(f, value):
    in_every_way(f, value)


def used_by_another_name(x):
    ta = nbta.TensorArray(np.float64, size=1, element_shape=(), clear_after_read=False)
    ta = ta.write(0, x[0])
    ta.grad("s").close()
    return ta.grad("s").read(0)


def used_after_its_close(x):
    ta = nbta.TensorArray(np.float64, size=1, element_shape=(), clear_after_read=False)
    g = ta.grad("s").accumulate(0, x[0])
    g.close()
    return g.read(0)


def read_by_nobody_after_its_close(x):
    ta = nbta.TensorArray(np.float64, size=1, element_shape=(), clear_after_read=False)
    g = ta.grad("s").accumulate(0, x[0])
    g.close()
    g.read(0)
    return x[0]


@pytest.mark.parametrize(
    "f", [used_by_another_name, used_after_its_close, read_by_nobody_after_its_close]
)
def test_a_closed_gradient_array_is_of_no_use(f):
    refused_in_every_way(f, "closed")


# Gradient arrays live on after their forward array.


def closed_in_each_iteration(x):
    ta = nbta.TensorArray(np.float64, size=1, element_shape=(), clear_after_read=False)
    total = 0.0
    for i in range(12):
        ta.grad("s").accumulate(0, x[1] * i)
        if i == 11:
            ta.grad("s").close()
    ta = ta.write(0, x[0])
    total += ta.read(0) ** 2
    return total


def closed_before_its_gradient_array_is_used(x):
    ta = nbta.TensorArray(np.float64, size=1, element_shape=(), clear_after_read=False)
    ta = ta.write(0, x[0])
    g = ta.grad("s")
    ta.close()
    g = g.accumulate(0, x[1] ** 2)
    return g.read(0)


def closed_after_a_read(x):
    ta = nbta.TensorArray(np.float64, size=4, element_shape=(), clear_after_read=False)
    for i in range(4):
        ta = ta.write(i, x[0] * i * x[1])
    g = ta.grad("s")
    total = np.sum(ta.stack())
    ta.close()
    for i in range(4):
        g = g.accumulate(i, total * i)
    return np.sum(g.stack())


def one_level_deeper_after_a_close(x):
    ta = nbta.TensorArray(np.float64, size=1, element_shape=(), clear_after_read=False)
    ta = ta.write(0, x[0])
    g = ta.grad("s").accumulate(0, x[0] ** 2)
    h = g.grad("t")
    total = g.read(0)
    g.close()
    ta.close()
    h = h.accumulate(0, total * x[1])
    return h.read(0)


def closed_in_a_branch(x):
    ta = nbta.TensorArray(np.float64, size=1, element_shape=(), clear_after_read=False)
    ta = ta.write(0, x[0])
    g = ta.grad("s").accumulate(0, x[0])
    if x[1] > 1.0:
        ta.close()
    g = g.accumulate(0, x[1] ** 2)
    return g.read(0)


def made_and_closed_in_each_iteration(x):
    total = 0.0
    for i in range(12):
        ta = nbta.TensorArray(np.float64, size=1, element_shape=(), clear_after_read=False)
        ta = ta.write(0, x[0] * i)
        g = ta.grad("s").accumulate(0, x[1] ** 2 * i)
        value = ta.read(0)
        ta.close()
        total += g.read(0) * value
    return total


@pytest.mark.parametrize(
    ("f", "value"),
    [
        (closed_in_each_iteration, 9.0),
        (closed_before_its_gradient_array_is_used, 4.0),
        (closed_after_a_read, 216.0),
        (one_level_deeper_after_a_close, 18.0),
        (closed_in_a_branch, 7.0),
        (made_and_closed_in_each_iteration, 6072.0),
    ],
)
def test_derivatives_of_what_a_program_closes(f, value):
    in_every_way(f, value)


def test_an_array_of_text_is_closed_beside_one_of_numbers():
    """It has no gradient array that could be looked up before."""

    def f(x):
        ta = nbta.TensorArray(np.float64, size=1, element_shape=()).write(0, x[0])
        text = nbta.TensorArray("U4", size=1, element_shape=()).write(0, "text")
        text.close()
        return ta.read(0) ** 2

    in_every_way(f, 9.0, numba=False)


# Reads past the end of a gradient array give zeros, and make it longer.


def read_past_the_end(x):
    ta = nbta.TensorArray(np.float64, size=1, element_shape=(), clear_after_read=False)
    ta = ta.write(0, x[0])
    g = ta.grad("s").accumulate(0, x[0] ** 2)
    return g.read(0) + g.read(3)


def gathered_past_the_end(x):
    ta = nbta.TensorArray(np.float64, size=1, element_shape=(), clear_after_read=False)
    ta = ta.write(0, x[0])
    g = ta.grad("s").accumulate(0, x[0] ** 2)
    return np.sum(g.gather(np.array([0, 3, 5])) ** 2)


def read_past_the_end_in_a_loop(x):
    ta = nbta.TensorArray(np.float64, size=1, element_shape=(), clear_after_read=False)
    ta = ta.write(0, x[0])
    g = ta.grad("s").accumulate(0, x[0] ** 2)
    total = 0.0
    for i in range(12):
        total += g.read(i) * x[1]
    return total


def added_to_where_a_read_made_room(x):
    ta = nbta.TensorArray(np.float64, size=1, element_shape=(), clear_after_read=False)
    ta = ta.write(0, x[0])
    g = ta.grad("s").accumulate(0, x[0] ** 2)
    total = g.read(3)
    g = g.accumulate(1, x[1] ** 2 * x[0])
    return total + g.read(1)


@pytest.mark.parametrize(
    ("f", "value"),
    [
        (read_past_the_end, 9.0),
        (gathered_past_the_end, 81.0),
        (read_past_the_end_in_a_loop, 18.0),
        (added_to_where_a_read_made_room, 12.0),
    ],
)
def test_reads_past_the_end_of_a_gradient_array(f, value):
    in_every_way(f, value)


def added_to_after_a_read_that_nobody_uses(x):
    ta = nbta.TensorArray(np.float64, size=1, element_shape=(), clear_after_read=False)
    ta = ta.write(0, x[0])
    g = ta.grad("s")
    g.read(0)
    g = g.accumulate(0, x[0])
    return g.read(0)


def test_a_read_that_nobody_uses_ends_additions():
    refused_in_every_way(added_to_after_a_read_that_nobody_uses, "already_read")


# A lookup is for the shapes that the forward array has then.


def added_to_before_the_forward_write(x):
    ta = nbta.TensorArray(np.float64, size=2, element_shape=(None,), clear_after_read=False)
    g = ta.grad("s").accumulate(1, x * x)
    ta = ta.write(0, x[:1])
    return np.sum(g.read(1)) + np.sum(ta.read(0))


def looked_up_between_writes_of_several_shapes(x):
    ta = nbta.TensorArray(
        np.float64, size=2, element_shape=(None,), infer_shape=False, clear_after_read=False
    )
    ta = ta.write(0, x[:1])
    g = ta.grad("s").accumulate(1, x * x)
    ta = ta.write(1, x[:1] * x[1])
    return np.sum(g.read(1)) + np.sum(ta.read(0)) + np.sum(ta.read(1))


def looked_up_before_a_loop_writes(x):
    ta = nbta.TensorArray(np.float64, size=12, element_shape=(None,), clear_after_read=False)
    g = ta.grad("s").accumulate(1, x * x)
    for i in range(12):
        ta = ta.write(i, x[:1] * x[1])
    return np.sum(g.read(1)) + np.sum(ta.stack())


def looked_up_in_a_loop_that_writes(x):
    ta = nbta.TensorArray(np.float64, size=12, element_shape=(None,), clear_after_read=False)
    for i in range(12):
        ta.grad("s").accumulate(i, x * x)
        ta = ta.write(i, x[:1] * x[1])
    return np.sum(ta.grad("s").stack()) + np.sum(ta.stack())


@pytest.mark.parametrize(
    ("f", "value"),
    [
        (added_to_before_the_forward_write, 16.0),
        (looked_up_between_writes_of_several_shapes, 22.0),
        (looked_up_before_a_loop_writes, 85.0),
        (looked_up_in_a_loop_that_writes, 228.0),
    ],
)
def test_lookups_before_writes_of_other_shapes(f, value):
    in_every_way(f, value)


# Forward arrays do not accumulate.


def accumulated_in_a_forward_array(x):
    ta = nbta.TensorArray(np.float64, size=1, element_shape=(), clear_after_read=False)
    ta.accumulate(0, 1.0)
    return x[0]


def accumulated_in_each_iteration(x):
    ta = nbta.TensorArray(np.float64, size=12, element_shape=(), clear_after_read=False)
    for i in range(12):
        ta = ta.accumulate(i, x[0])
    return np.sum(ta.stack())


def accumulated_in_one_of_two(x):
    ta = nbta.TensorArray(np.float64, size=1, element_shape=(), clear_after_read=False)
    tb = nbta.TensorArray(np.float64, size=1, element_shape=(), clear_after_read=False)
    tc = ta if x[0] > 1.0 else tb
    return tc.accumulate(0, x[0]).read(0)


def accumulated_in_a_loop_of_nbta(x):
    ta = nbta.TensorArray(np.float64, size=4, element_shape=(), clear_after_read=False)

    def body(i, ta):
        return i + 1, ta.accumulate(i, x[0])

    return np.sum(nbta.while_loop(lambda i, ta: i < 4, body, (0, ta))[1].stack())


@pytest.mark.parametrize(
    ("f", "numba"),
    [
        (accumulated_in_a_forward_array, True),
        (accumulated_in_each_iteration, True),
        (accumulated_in_one_of_two, True),
        (accumulated_in_a_loop_of_nbta, False),
    ],
)
def test_a_forward_array_does_not_accumulate(f, numba):
    refused_in_every_way(f, "not_gradient", numba)
