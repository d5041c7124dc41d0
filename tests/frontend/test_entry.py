"""How unmodified functions come in and go out: outputs, lists, prange, traces, text."""

import numba
import numpy as np
import pytest

import nbta

X = np.linspace(0.2, 1.4, 12)
GRAVITY = np.array([0.0, -9.81])


def fill(x, out, scale):
    for i in range(len(x)):
        out[i] = x[i] * scale


def fill_and_sum(x, out):
    fill(x, out, 2.0)
    return np.sum(out)


@pytest.mark.parametrize("compiled", [False, True])
def test_outputs(compiled):
    given = np.zeros(12)
    filled = nbta.function(fill, outputs=("out",), compiled=compiled)
    np.testing.assert_array_equal(filled(X, given, 3.0), 3.0 * X)
    np.testing.assert_array_equal(filled(X, scale=2.0, out=given), 2.0 * X)
    np.testing.assert_array_equal(given, 0.0)
    total, out, x = nbta.function(fill_and_sum, outputs=("out", "x"), compiled=compiled)(X, given)
    np.testing.assert_allclose(total, 2.0 * np.sum(X), rtol=1e-14)
    np.testing.assert_array_equal(out, 2.0 * X)
    np.testing.assert_array_equal(x, X)
    slope = nbta.grad(lambda x: np.sum(filled(x, np.zeros(12), 3.0) ** 2), compiled=compiled)
    np.testing.assert_allclose(slope(X), 18.0 * X, rtol=1e-14)


def test_outputs_that_are_none():
    with pytest.raises(nbta.InvalidArgumentError, match="there is no argument 'result'"):
        nbta.function(fill, outputs=("result",))(X, X, 1.0)
    with pytest.raises(nbta.InvalidArgumentError, match="not converted"):
        nbta.function(fill, outputs=("out",), convert=False)(X, X, 1.0)


def flight(speed):
    place, velocity = np.zeros(2), speed * np.array([0.6, 0.8])
    path = []
    while place[1] >= 0.0:
        path.append(place.copy())
        place += 0.05 * velocity
        velocity += 0.05 * GRAVITY
    return np.sum(place**2), np.stack(path), np.concatenate(path), np.vstack(path)


@pytest.mark.parametrize("compiled", [False, True])
def test_lists_of_arrays(compiled):
    found = nbta.function(flight, compiled=compiled)(5.0)
    for mine, expected in zip(found, flight(5.0), strict=True):
        np.testing.assert_allclose(mine, expected, rtol=1e-12)
    slope = nbta.grad(lambda v: flight(v)[0], compiled=compiled)(5.0)
    ends = [flight(5.0 + h)[0] for h in (1e-6, -1e-6)]
    np.testing.assert_allclose(slope, (ends[0] - ends[1]) / 2e-6, rtol=1e-6)


@numba.njit
def squares(x):
    s = 0.0
    for i in numba.prange(len(x)):
        s += x[i] ** 2
    return s


def test_prange_and_one_trace_for_all_lengths():
    f = nbta.value_and_grad(squares, compiled=False)
    for n in (9, 12, 30):
        value, slope = f(np.ones(n))
        assert value == n
        np.testing.assert_array_equal(slope, 2.0)
    assert f.traces == 1


def test_the_text_of_a_conversion():
    text = nbta.function(fill).convert_source
    assert text.startswith("def _nbta_function(x, out, scale):")
    assert "for_(" in text
    assert nbta.function(fill, convert=False).convert_source is None
    assert nbta.function(np.sin).convert_source is None


@nbta.opaque
def largest(x):
    return nbta.max(x)


def test_opaque_functions_pass_no_gradient():
    slope = nbta.grad(lambda x: np.sum(x) / largest(x))
    np.testing.assert_allclose(slope(X), 1.0 / 1.4, rtol=1e-14)
    assert largest(X) == 1.4


def test_unrolled_iterations_are_pythons():
    seen = []

    def f(x):
        s = 0.0
        for k in nbta.unroll(range(12)):
            seen.append(k)
            s += x[k]
        return s

    np.testing.assert_array_equal(nbta.grad(f)(X), 1.0)
    assert seen == list(range(12))


def second(x):
    a = x.copy()
    for i in range(1, len(a)):
        a[i] = a[i] * a[i - 1] ** 2
    return np.sum(a)


def test_second_derivatives_of_a_loop_that_writes():
    nbta.testing.check_grads(second, (X[4:10],), rtol=1e-5)


class Model:
    def __init__(self, rate):
        self.rate, self.weights = rate, np.ones(3)

    @nbta.function
    def above(self, x):
        s = 0.0
        for v in x:
            if v > 0.5:
                s += v * self.rate
        return s

    def weighted(self, x):
        s = 0.0
        for i in range(len(x)):
            s += x[i] * self.weights[i % 3]
        return s

    def __call__(self, x):
        return self.above(x) * self.weighted(x)


def test_methods():
    model = Model(2.0)
    np.testing.assert_allclose(model.above(X), 2.0 * np.sum(X[X > 0.5]), rtol=1e-14)
    np.testing.assert_array_equal(nbta.grad(model.above)(X), 2.0 * (X > 0.5))
    np.testing.assert_array_equal(nbta.grad(model.weighted)(X), 1.0)
    both = 2.0 * (X > 0.5) * np.sum(X) + model.above(X)
    np.testing.assert_allclose(nbta.grad(model)(X), both, rtol=1e-12)
