"""Matrices of first and second derivatives."""

import numpy as np
import pytest

import nbta
from nbta.structure import describe, leaves
from nbta.testing import check_grads

X = np.array([0.3, -0.7, 1.1])
MATRIX = np.arange(6.0).reshape(2, 3) / 7


def recurrence(x):
    y = x.copy()
    for i in range(1, len(x)):
        y[i] = np.sin(y[i - 1]) * x[i]
    return y


def valley(x):
    """Rosenbrock's function."""
    s = 0.0
    for i in range(len(x) - 1):
        s += 100.0 * (x[i + 1] - x[i] ** 2) ** 2 + (1.0 - x[i]) ** 2
    return s


def pairs(x):
    s = 0.0
    for i in range(len(x)):
        for j in range(i):
            s += np.tanh(x[i] - x[j]) * x[j] ** 2
    return s


def differences(f, x, step=6e-6):
    """The Jacobian by central differences."""
    columns = []
    for unit in np.eye(x.size).reshape(x.size, *x.shape):
        up, down = (np.asarray(f(x + sign * step * unit)) for sign in (1, -1))
        columns.append((up - down) / (2 * step))
    return np.moveaxis(np.array(columns), 0, -1).reshape(*columns[0].shape, *x.shape)


FUNCTIONS = {
    "scalar": lambda x: np.sum(np.sin(x)) * x[0],
    "vector": lambda x: np.tanh(MATRIX @ x) * x[0],
    "matrix": lambda x: np.outer(x, x[:2]) ** 2,
    "item assignment in a loop": recurrence,
}


@pytest.mark.smoke
@pytest.mark.parametrize("compiled", [False, True])
def test_jacobians_against_differences(compiled):
    for name, f in FUNCTIONS.items():
        found = nbta.jacobian(f, compiled=compiled)(X)
        np.testing.assert_allclose(found, differences(f, X), atol=1e-9, err_msg=name)


@pytest.mark.parametrize("compiled", [False, True])
def test_hessians_against_differences_of_gradients(compiled):
    for f in (FUNCTIONS["scalar"], lambda x: np.sum(np.exp(np.outer(x, x)))):
        found = nbta.hessian(f, compiled=compiled)(X)
        np.testing.assert_allclose(found, differences(nbta.grad(f), X), atol=1e-8)
        np.testing.assert_allclose(found, found.T, rtol=1e-13)


@pytest.mark.parametrize("f", [valley, pairs])
def test_hessians_of_loops_call_no_python(f):
    """A loop over the items of the gradient of a loop, which is a gradient in an iteration."""
    found = nbta.hessian(f, compiled=True)
    np.testing.assert_allclose(found(X), differences(nbta.grad(f), X), rtol=1e-8, atol=1e-7)
    np.testing.assert_allclose(found(X), nbta.hessian(f, compiled=False)(X), rtol=1e-12)
    x = np.linspace(-1.0, 1.0, 20)
    direction = np.cos(np.arange(20.0))
    (product,) = nbta.hvp(f, (x,), (direction,))
    np.testing.assert_allclose(found(x) @ direction, product, rtol=1e-9)
    assert "run in Python" not in found.explain()


def test_jacobian_of_a_matrix_argument_and_for_other_lengths():
    f = nbta.jacobian(lambda m: m.T @ m)
    for shape in ((2, 3), (4, 2)):
        m = np.arange(8.0)[: np.prod(shape)].reshape(shape)
        np.testing.assert_allclose(f(m), differences(lambda m: m.T @ m, m), atol=1e-8)
    assert f.traces == 1


@pytest.mark.parametrize("compiled", [False, True])
def test_jacobians_of_structures(compiled):
    def f(p, y):
        return {"a": p["w"] * y, "b": (np.sum(p["w"] ** 2),)}

    of_p, of_y = nbta.jacobian(f, (0, 1), compiled)({"w": X}, 2.0)["a"]
    np.testing.assert_array_equal(of_p["w"], 2 * np.eye(3))
    np.testing.assert_array_equal(of_y, X)
    ((of_b,), of_a) = (nbta.jacobian(f, 1, compiled)({"w": X}, 2.0)[k] for k in "ba")
    assert of_b == 0.0
    np.testing.assert_array_equal(of_a, X)
    found = nbta.hessian(lambda p: p["u"] * np.sum(p["w"] ** 2), compiled=compiled)
    found = found({"u": 3.0, "w": X})
    assert found["u"]["u"] == 0.0
    np.testing.assert_allclose(found["u"]["w"], 2 * X)
    np.testing.assert_allclose(found["w"]["u"], 2 * X)
    np.testing.assert_allclose(found["w"]["w"], 6 * np.eye(3))


def test_jacobians_have_derivatives_and_precisions():
    check_grads(nbta.jacobian(FUNCTIONS["vector"]), (X,))
    found = nbta.jacobian(FUNCTIONS["matrix"])(X.astype("float32"))
    assert found.dtype == np.float32
    inside = nbta.function(lambda x: nbta.jacobian(recurrence)(x) @ x)
    np.testing.assert_allclose(inside(X), nbta.jacobian(recurrence)(X) @ X)


def test_a_result_without_items():
    assert nbta.jacobian(lambda x: x[1:])(np.array([2.0])).shape == (0, 1)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: nbta.jacobian(lambda x: x)(np.arange(3)), "gradients exist for floats"),
        (lambda: nbta.jacobian(lambda x: x > 0)(X), "f's result.*give real floats"),
        (lambda: nbta.jacobian(lambda x: x)(X + 1j), "the argument.*real and imaginary parts"),
        (lambda: nbta.jacobian(lambda x: x, 1)(X), "no argument 1"),
        (lambda: nbta.hessian(lambda x: x)(X), "f must return a scalar"),
    ],
    ids=["integers", "truth values", "complex", "argnums", "not a scalar"],
)
def test_what_is_refused(call, words):
    with pytest.raises(nbta.InvalidArgumentError, match=words):
        call()


# Forward mode.


def structured(p, n):
    return {"a": nbta.outer(p["x"], nbta.sin(p["x"])) * p["s"], "b": [nbta.sum(p["x"]) * n]}


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("argnums", [0, 1, (0, 1)])
def test_jacobians_by_columns_are_those_by_rows(argnums, compiled):
    given = {"x": np.array([0.5, -1.0, 2.0]), "s": 0.7}, np.array([1.5, 2.0])
    by_columns = nbta.jacfwd(structured, argnums, compiled=compiled)(*given)
    by_rows = nbta.jacobian(structured, argnums)(*given)
    assert describe(by_columns) == describe(by_rows)
    for one, other in zip(leaves(by_columns), leaves(by_rows), strict=True):
        assert one.shape == other.shape
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("compiled", [False, True])
def test_jacobians_by_columns_through_loops(compiled):
    def states(x):
        y = np.zeros((4, 2))
        for i in range(4):
            y[i, 0] = x[i % 2] * x[0] + (y[i - 1, 1] if i > 0 else 0.0)
            y[i, 1] = np.sin(y[i, 0])
        return y

    x = np.array([0.4, -1.2])
    found = nbta.jacfwd(states, compiled=compiled)(x)
    assert found.shape == (4, 2, 2)
    np.testing.assert_allclose(found, nbta.jacobian(states)(x), rtol=1e-12)
    assert nbta.jacfwd(states)(np.zeros(2)).shape == (4, 2, 2)


def test_jacfwd_refuses_what_jacobian_refuses():
    with pytest.raises(nbta.InvalidArgumentError, match="the argument"):
        nbta.jacfwd(lambda z: z)(np.array([1j]))
    with pytest.raises(nbta.InvalidArgumentError, match="gradients exist for floats"):
        nbta.jacfwd(lambda n: n)(np.array([1]))
    with pytest.raises(nbta.InvalidArgumentError, match="f's result is int64"):
        nbta.jacfwd(lambda x: nbta.argmax(x))(np.ones(2))


def test_a_linearised_function_takes_directions():
    def f(x, p):
        return {"y": x * p["k"], "n": nbta.argmax(x)}

    x, k = np.array([1.0, 3.0]), np.array(2.0)
    value, along = nbta.linearize(f, x, {"k": k})
    np.testing.assert_array_equal(value["y"], [2.0, 6.0])
    for direction in (np.array([1.0, 0.5]), np.array([-1.0, 0.0])):
        expected = nbta.jvp(f, (x, {"k": k}), (direction, {"k": 0.5}))[1]
        found = along(direction, {"k": 0.5})
        np.testing.assert_allclose(found["y"], expected["y"])
        assert found["n"] == 0
    x[0] = 99.0  # the point is a copy
    np.testing.assert_allclose(along(np.zeros(2), {"k": 1.0})["y"], [1.0, 3.0])
    with pytest.raises(nbta.InvalidArgumentError, match=r"tangents\[0\] is float64 \(3,\)"):
        along(np.zeros(3), {"k": 1.0})
    with pytest.raises(nbta.InvalidArgumentError, match="structure of primals"):
        along(np.zeros(2))
    with pytest.raises(nbta.InvalidArgumentError, match="gradients exist for floats"):
        nbta.linearize(lambda n: n * 2, 3)


def test_linearize_in_a_graph():
    def slope(x, t):
        value, along = nbta.linearize(lambda v: nbta.sin(v) * v, x)
        return value, along(t) + along(2.0 * t)

    _, found = nbta.function(slope)(0.5, 1.0)
    np.testing.assert_allclose(found, 3.0 * (np.cos(0.5) * 0.5 + np.sin(0.5)))
