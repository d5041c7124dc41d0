"""Arguments to differentiate: by position, by name, given by either."""

import pickle

import numpy as np
import pytest

import nbta

X = np.array([1.0, 2.0, 3.0])


def weighted(x, rate=0.5, *, shift=1.0, count=2):
    total = 0.0
    for v in x:
        total += rate * v**count + shift * v
    return total


BY_X, BY_RATE, BY_SHIFT = 0.5 * 2.0 * X + 1.0, 14.0, 6.0
CALLS = {
    "by position": ((X, 0.5), {"shift": 1.0}),
    "by name": ((), {"x": X, "rate": 0.5, "shift": 1.0}),
    "some by name": ((X,), {"rate": 0.5, "shift": 1.0}),
}


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("call", CALLS)
def test_a_chosen_argument_may_be_given_by_position_or_by_name(call, compiled):
    args, kwargs = CALLS[call]
    options = {"static_argnames": "count", "compiled": compiled}
    by_names = nbta.grad(weighted, argnames=("rate", "x", "shift"), **options)
    for one, other in zip(by_names(*args, **kwargs), (BY_RATE, BY_X, BY_SHIFT), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-14)
    by_numbers = nbta.value_and_grad(weighted, argnums=(1, 0), **options)
    value, (rate, x) = by_numbers(*args, **kwargs)
    assert (value, rate) == (13.0, BY_RATE)
    np.testing.assert_allclose(x, BY_X, rtol=1e-14)
    assert nbta.grad(weighted, argnames="shift", **options)(*args, **kwargs) == BY_SHIFT
    np.testing.assert_allclose(nbta.grad(weighted, **options)(*args, **kwargs), BY_X, rtol=1e-14)


def test_matrices_of_arguments_by_name():
    def f(x, *, a):
        return a * x**3

    want = {"jacobian": np.diag(X**3 * 2.0 * 3.0 / X), "jacfwd": np.diag(6.0 * X**2)}
    for way, matrix in want.items():
        np.testing.assert_allclose(getattr(nbta, way)(f)(x=X, a=2.0), matrix, rtol=1e-14)
        by_a = getattr(nbta, way)(f, argnames="a")(X, a=2.0)
        np.testing.assert_allclose(by_a, X**3, rtol=1e-14)
    (found,) = nbta.jacobian(f, argnames=["a"])(X, a=2.0)
    np.testing.assert_allclose(found, X**3, rtol=1e-14)
    second = nbta.hessian(lambda x, *, a: np.sum(x) * a**3, argnames="a")(X, a=2.0)
    np.testing.assert_allclose(second, 6.0 * 6.0 * 2.0, rtol=1e-14)


def test_they_are_checked_by_differences():
    slope = nbta.value_and_grad(weighted, argnames=("x", "shift"), static_argnames="count")
    step, (by_x, by_shift) = 1e-6, slope(X, shift=0.3)[1]
    for k in range(3):
        up, down = X.copy(), X.copy()
        up[k] += step
        down[k] -= step
        there, here = weighted(up, shift=0.3), weighted(down, shift=0.3)
        assert abs((there - here) / (2 * step) - by_x[k]) < 1e-8
    there, here = weighted(X, shift=0.3 + step), weighted(X, shift=0.3 - step)
    assert abs((there - here) / (2 * step) - by_shift) < 1e-8


def test_batches_take_names_of_arguments_by_position():
    def loss(w, x):
        return (w * x) ** 2

    made = nbta.grad(loss, argnames="w", batch_axis=(None, 0))
    assert made(2.0, X) == 2 * 2.0 * 14.0
    assert pickle.loads(pickle.dumps(made))(2.0, X) == 2 * 2.0 * 14.0
    with pytest.raises(nbta.InvalidArgumentError, match="'w' is differentiated; give it by pos"):
        made(x=X, w=2.0)


def test_errors():
    with pytest.raises(nbta.InvalidArgumentError, match="no argument 'y'; there are x, rate"):
        nbta.grad(weighted, argnames="y")
    with pytest.raises(nbta.InvalidArgumentError, match="argnums is given, too"):
        nbta.grad(weighted, 0, argnames="x")
    with pytest.raises(nbta.InvalidArgumentError, match="'rate' is not given; give it, as its"):
        nbta.grad(weighted, argnames="rate")(X)
    with pytest.raises(nbta.InvalidArgumentError, match="there is no argument 1; given by pos"):
        nbta.grad(weighted, argnums=1)(X)
    with pytest.raises(nbta.InvalidArgumentError, match="'rate' is in argnums too"):
        nbta.grad(lambda x, **more: x, argnames="rate", static_argnames="rate")
    with pytest.raises(nbta.InvalidArgumentError, match="argument 1 is in argnums too"):
        nbta.grad(weighted, argnames="rate", static_argnums=1)
    with pytest.raises(nbta.InvalidArgumentError, match=r"count is .*int64.*gradients exist for"):
        nbta.grad(weighted, argnames="count")(X, count=2)
    with pytest.raises(nbta.InvalidArgumentError, match=r"argnums: \[0\] is not an int"):
        nbta.grad(weighted, argnums=[0])(X)


# vjp.


@nbta.function
def pair(x, a):
    return {"power": a * x**3, "sum": nbta.sum(x) * a}


def test_a_cotangent_is_pulled_back():
    value, pullback = nbta.vjp(pair, X, 2.0)
    np.testing.assert_array_equal(value["power"], 2.0 * X**3)
    for power, total in (np.ones(3), 0.0), (np.array([0.0, 1.0, -2.0]), 0.5):
        by_x, by_a = pullback({"power": power, "sum": total})
        np.testing.assert_allclose(by_x, 6.0 * X**2 * power + 2.0 * total, rtol=1e-14)
        np.testing.assert_allclose(by_a, np.sum(X**3 * power) + 6.0 * total, rtol=1e-14)


def test_it_agrees_with_forward_mode_in_a_loop_and_in_a_graph():
    def swing(x, steps):
        y = x.copy()
        while np.sum(y**2) < steps:
            y = y * 1.5 + 0.1 * np.sin(x)
        return y

    direction, cotangent = np.array([0.3, -1.0, 2.0]), np.array([1.0, 0.5, -0.25])
    _, tangent = nbta.jvp(swing, (X, 500.0), (direction, 0.0))
    _, pullback = nbta.vjp(swing, X, 500.0)
    assert abs(pullback(cotangent)[0] @ direction - tangent @ cotangent) < 1e-12
    within = nbta.function(lambda x, c: nbta.vjp(swing, x, 500.0)[1](c)[0])
    np.testing.assert_allclose(within(X, cotangent), pullback(cotangent)[0], rtol=1e-14)


def test_arguments_may_change_after_the_value():
    x = X.copy()
    _, pullback = nbta.vjp(lambda x: x**2, x)
    x[:] = 0.0
    np.testing.assert_array_equal(pullback(np.ones(3))[0], 2.0 * X)


def test_what_is_no_cotangent_is_refused():
    _, pullback = nbta.vjp(pair, X, 2.0)
    with pytest.raises(nbta.InvalidArgumentError, match="must have the structure of the value"):
        pullback(X)
    with pytest.raises(nbta.InvalidArgumentError, match=r"cotangent\['power'\] is float64 \(2,\)"):
        pullback({"power": np.ones(2), "sum": 1.0})
    _, pullback = nbta.vjp(lambda x: nbta.argmax(x), X)
    with pytest.raises(nbta.InvalidArgumentError, match=r"value is int64.*has no cotangent"):
        pullback(1)
