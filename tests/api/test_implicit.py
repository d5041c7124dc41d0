"""`nbta.implicit`: derivatives of solutions, whatever finds them."""

import pickle

import numpy as np
import pytest

import nbta
from nbta.testing import check_grads


def bisected(a):
    low, high = 0.0, 10.0
    while high - low > 1e-14 * high:
        middle = 0.5 * (low + high)
        if middle <= low or middle >= high:
            break
        if middle**3 + middle < a:
            low = middle
        else:
            high = middle
    return low


cubic = nbta.implicit.root(lambda x, a: x**3 + x - a, bisected)


def solved(a, b):
    x = np.zeros(2)
    for _ in range(40):
        x = x - np.linalg.solve(a + np.diag(3.0 * x**2), a @ x + x**3 - b)
    return x


vector = nbta.implicit.root(lambda x, a, b: a @ x + x**3 - b, solved)
A, B = np.array([[3.0, 1.0], [0.5, 2.0]]), np.array([1.0, 2.0])


@nbta.implicit.fixed_point(lambda x, m, c: np.tanh(m @ x + c))
def settled(m, c):
    x = np.zeros((2, 3))
    for _ in range(200):
        x = np.tanh(m @ x + c)
    return x


@pytest.mark.parametrize("compiled", [False, True])
def test_of_a_number(compiled):
    x = cubic(10.0)
    assert x == pytest.approx(2.0, abs=1e-13)
    slope = 1 / (3 * x**2 + 1)
    value, found = nbta.value_and_grad(lambda a: a * cubic(a), compiled=compiled)(10.0)
    assert value == pytest.approx(20.0)
    assert found == pytest.approx(x + 10.0 * slope, rel=1e-12)
    assert nbta.grad(bisected, compiled=compiled)(10.0) == 0.0  # of the program, not the root


def test_to_the_third_order():
    # Of the inverse function, by its derivatives 3 x**2 + 1, 6 x and 6.
    x, p, q, r = 2.0, 13.0, 12.0, 6.0
    first = nbta.grad(cubic)
    second, third = nbta.grad(first), nbta.grad(nbta.grad(first))
    assert first(10.0) == pytest.approx(1 / p, rel=1e-11)
    assert second(10.0) == pytest.approx(-q / p**3, rel=1e-11)
    assert third(10.0) == pytest.approx((3 * q**2 - p * r) / p**5, rel=1e-11)
    assert nbta.jvp(cubic, 10.0, 2.0)[1] == pytest.approx(2 / p, rel=1e-11)
    assert x == pytest.approx(cubic(10.0))


@pytest.mark.smoke_every(2)
@pytest.mark.parametrize("compiled", [False, True])
def test_of_a_vector(compiled):
    def loss(f):
        return nbta.grad(lambda a, b: np.sum(f(a, b) ** 2), (0, 1), compiled=compiled)(A, B)

    for one, other in zip(loss(vector), loss(solved), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10)


def test_of_a_vector_by_differences():
    check_grads(vector, (A, B))


def test_of_a_matrix():
    m, c = np.array([[0.5, -0.3], [0.2, 0.4]]), np.linspace(-1.0, 1.0, 6).reshape(2, 3)
    check_grads(settled, (m, c), rtol=1e-5)


def test_in_a_loop_and_in_a_branch():
    def total(values):
        found = 0.0
        for i in range(len(values)):
            if values[i] > 0.0:
                found += i * cubic(values[i])
        return found

    values = np.array([3.0, -1.0, 10.0, 30.0])
    want = [0.0, 0.0, 2 / 13, 3 / (3 * cubic(30.0) ** 2 + 1)]
    for compiled in False, True:
        found = nbta.grad(total, compiled=compiled)(values)
        np.testing.assert_allclose(found, want, rtol=1e-11)


def test_what_the_equation_takes_from_around_it_counts():
    def f(k, a):
        return nbta.implicit.root(lambda x, a: x**3 + x - a * k, lambda a: bisected(a * k))(a)

    np.testing.assert_allclose(nbta.grad(f, (0, 1))(2.0, 5.0), [5 / 13, 2 / 13], rtol=1e-11)


def test_in_a_batch_and_pickled():
    f = nbta.value_and_grad(lambda w, a: cubic(w * a), batch_axis=(None, 0), reduction="sum")
    value, slope = f(1.0, np.array([10.0, 2.0]))
    assert value == pytest.approx(3.0)
    assert slope == pytest.approx(10 / 13 + 2 / 4, rel=1e-11)
    assert pickle.loads(pickle.dumps(cubic))(10.0) == cubic(10.0)


def test_a_structure_of_arguments():
    f = nbta.implicit.root(lambda x, p: p["a"] * x - p["b"], lambda p: p["b"] / p["a"])
    found = nbta.grad(f)({"a": 2.0, "b": 3.0})
    assert found == {"a": pytest.approx(-0.75), "b": pytest.approx(0.5)}


def test_residuals_that_do_not_fit_are_refused():
    f = nbta.implicit.root(lambda x, a: np.array([x, a]), lambda a: a)
    with pytest.raises(nbta.InvalidArgumentError, match="its residual") as e:
        f(1.0)
    assert e.value.reason == "implicit"
