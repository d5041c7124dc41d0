"""custom_jvp: rules for tangents, which forward mode applies and reverse mode transposes."""

import ctypes
import ctypes.util
import math
import pickle

import numpy as np
import pytest
from numba import cfunc, njit, typeof

import nbta

X = np.array([0.5, -1.0, 2.0])

libm = ctypes.CDLL(ctypes.util.find_library("m"))
libm.sin.argtypes, libm.sin.restype = [ctypes.c_double], ctypes.c_double
libm.cos.argtypes, libm.cos.restype = [ctypes.c_double], ctypes.c_double
libm.hypot.argtypes, libm.hypot.restype = [ctypes.c_double] * 2, ctypes.c_double


@cfunc("f8(f8)")
def decay(x):
    return math.exp(-x)


# Each has the other in its rule.
sine, cosine = nbta.custom_jvp(libm.sin), nbta.custom_jvp(libm.cos)


@sine.tangent
def sine_rule(dx, x, y):
    return dx * cosine(x)


@cosine.tangent
@njit
def cosine_rule(dx, x, y):
    return -dx * np.sin(x)


FUNCTIONS = {
    "ctypes": (sine, 1),
    "two numbers": (
        nbta.custom_jvp(libm.hypot, lambda dx, dz, x, z, y: (x * dx + z * dz) / y),
        2,
    ),
    "cfunc": (nbta.custom_jvp(decay, njit(lambda dx, x, y: -dx * y)), 1),
    "njit": (nbta.custom_jvp(njit(lambda x: np.sin(x)), lambda dx, x, y: dx * np.cos(x)), 1),
}


@pytest.mark.parametrize("kind", FUNCTIONS)
def test_both_modes_without_python(kind):
    f, count = FUNCTIONS[kind]

    def loop(x):
        total = 0.5
        for i in range(len(x)):
            total = f(*[total + x[i]] * count) * 0.5 + x[i]
        return total

    x = np.linspace(0.2, 1.0, 5)
    nbta.testing.check_grads(loop, (x,))
    for derivative in [nbta.value_and_grad] + [nbta.hessian] * (kind == "ctypes"):
        native = derivative(loop, compiled=True)
        compiled = njit(lambda x, native=native: native(x))
        found, expected = compiled(x), derivative(loop, compiled=False)(x)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-15)
        before = sum(entry.asked for entry in typeof(native).entries)
        compiled(x)
        assert sum(entry.asked for entry in typeof(native).entries) == before


def test_the_rule_and_not_the_function_is_differentiated():
    f = nbta.custom_jvp(np.clip, lambda dx, dlow, dhigh, x, low, high, y: dx)

    def total(x):
        return nbta.sum(3.0 * f(x, -0.75, 0.75))

    assert nbta.grad(total)(X).tolist() == [3.0, 3.0, 3.0]
    value, tangent = nbta.jvp(total, X, np.ones(3))
    assert (value, tangent) == (1.5, 9.0)


@pytest.mark.parametrize("compiled", [False, True])
def test_arrays_with_a_rule_that_has_a_loop(compiled):
    @nbta.custom_jvp
    @njit
    def running(x, w):
        result = np.empty_like(x)
        total = 0.0
        for i in range(len(x)):
            total += w * x[i] ** 2
            result[i] = total
        return result

    @running.tangent
    def rule(dx, dw, x, w, y):
        result = np.zeros(len(x))
        total = 0.0
        for i in range(len(x)):
            total += 2.0 * w * x[i] * dx[i] + dw * x[i] ** 2
            result[i] = total
        return result

    nbta.testing.check_grads(running, (X, 1.5))

    def energy(x, w):
        return nbta.sum(running(x, w) ** 2)

    def plain(x, w):
        return nbta.sum(nbta.cumsum(w * x**2) ** 2)

    for derivative in (nbta.grad, nbta.hessian):
        found = derivative(energy, compiled=compiled)(X, 1.5)
        np.testing.assert_allclose(found, derivative(plain)(X, 1.5), rtol=1e-12)
    along = nbta.function(lambda x: nbta.hvp(lambda q: energy(q, 1.5), x, X), compiled=compiled)
    np.testing.assert_allclose(along(X), nbta.hessian(plain)(X, 1.5) @ X, rtol=1e-12)


def test_several_results_and_integers():
    def forward(x, n):
        return x * x, x**n, np.int64(n + 1)

    def rule(dx, dn, x, n, square, power, number):
        return 2.0 * x * dx, power / x * n * dx, None

    whole = nbta.Spec(np.dtype(np.int64), ())
    f = nbta.custom_jvp(forward, rule, result=lambda x, n: (x, x, whole))
    np.testing.assert_allclose(nbta.grad(lambda x: nbta.sum(f(x, 3)[1] * f(x, 3)[0]))(X), 5 * X**4)
    np.testing.assert_allclose(nbta.grad(lambda x: nbta.sum(f(x, 3)[2] * x))(X), [4, 4, 4])
    nbta.testing.check_grads(lambda x: f(x, 2)[:2], (X,))


def test_complex_numbers_and_half_the_precision():
    z = np.array([1 + 2j, 3 - 1j])
    nbta.testing.check_grads(nbta.custom_jvp(np.square, lambda dz, z, y: 2.0 * z * dz), (z,), 1)
    small = nbta.grad(nbta.custom_jvp(np.square, lambda dx, x, y: 2.0 * x * dx))(np.float32(3.0))
    assert (small, small.dtype) == (6.0, np.float32)


def test_in_loops_branches_and_batches():
    def f(x):
        _, last = nbta.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, sine(x) + x), (0, x))
        return nbta.cond(last > 0, lambda: sine(last), lambda: last)

    for x in (0.5, -0.5):
        nbta.testing.check_grads(f, (x,))
    found = nbta.vmap(nbta.grad(f))(X)
    np.testing.assert_allclose(found, [nbta.grad(f)(x) for x in X], rtol=1e-14)


def test_another_rule_is_used_from_then_on():
    f = nbta.custom_jvp(np.sin, lambda dx, x, y: dx * np.cos(x))
    g = nbta.grad(lambda x: f(x) * 2.0)
    assert g(0.0) == 2.0
    f.tangent(lambda dx, x, y: 7.0 * dx)
    assert g(0.0) == 14.0


def test_pickles_and_a_description():
    other = pickle.loads(pickle.dumps(nbta.custom_jvp(np.sin, lambda dx, x, y: 5.0 * dx)))
    assert nbta.grad(other)(0.0) == 5.0
    assert repr(FUNCTIONS["cfunc"][0]).startswith("<nbta.custom_jvp of ")


# Mistakes.

MISTAKES = {
    "sin has no rule for tangents, so that nothing can be": (None, nbta.UnimplementedError),
    "gave 2 tangents, and sin has 1 results; give one": (lambda dx, x, y: (dx, dx), ValueError),
    "gave None for result 0 of sin, which is float64 ()": (lambda dx, x, y: None, ValueError),
    "gave float64 (3,) for result 0": (lambda dx, x, y: dx * X, ValueError),
    "gave float32 () for result 0": (lambda dx, x, y: nbta.cast(dx, "float32"), ValueError),
    "is machine code, which cannot be transposed": (libm.hypot, ValueError),
}


@pytest.mark.parametrize("words", MISTAKES)
def test_rules_that_do_not_fit(words):
    rule, error = MISTAKES[words]
    f = nbta.custom_jvp(np.sin, rule)
    for action in (lambda: nbta.jvp(f, 1.0, 1.0), lambda: nbta.grad(f)(1.0)):
        with pytest.raises(error) as caught:
            action()
        assert words in str(caught.value)
        assert isinstance(caught.value, nbta.NbtaError)


@pytest.mark.parametrize("compiled", [False, True])
def test_a_tangent_of_another_length_is_refused_by_the_run(compiled):
    f = nbta.custom_jvp(np.sin, lambda dx, x, y: dx[1:])
    for g in (nbta.grad(lambda x: nbta.sum(f(x)), compiled=compiled),
              nbta.function(lambda x: nbta.jvp(f, x, x)[1], compiled=compiled)):  # fmt: skip
        with pytest.raises(nbta.InvalidArgumentError):
            g(X)


def half(dx, x, y):
    total = 0.0
    for _ in range(2):
        if dx > 0:
            total += 0.5 * dx
    return total


@pytest.mark.parametrize(
    "rule",
    [
        lambda dx, x, y: dx * dx,
        lambda dx, x, y: np.abs(dx),
        lambda dx, x, y: dx if dx > 0 else -x * dx,
        lambda dx, x, y: np.where(dx > x, dx, 0.0),
        half,
    ],
)
def test_a_rule_that_is_not_linear_has_no_transpose(rule):
    f = nbta.custom_jvp(np.sin, rule)
    assert nbta.jvp(f, 0.5, 1.0)[1] == 1.0
    with pytest.raises(nbta.UnimplementedError, match=r"'sin': .* is not linear in the tangents"):
        nbta.grad(f)(0.5)
