"""Functions of vectorize and guvectorize, and of np.vectorize, are followed by their source."""

import numba
import numpy as np
import pytest
from numba import guvectorize, vectorize

import nbta

# None has cache=True: Numba saves the loop of a gufunc and what calls it apart, and numbers their
# symbols. Two processes that compile them at once leave a pair that do not know each other, and
# whoever loads that pair calls address 0.
X = np.array([[0.3, 1.7, 2.2], [0.5, 0.1, 0.9]])


@vectorize
def clipped(a, b):
    if a > b:
        return a * b
    return a + b


@vectorize(["float32(float32, float32)", "float64(float64, float64)"])
def polynomial(a, b):
    total = 0.0
    for k in range(3):
        total += a**k * b
    return total


@guvectorize(["(float64[:], float64[:], float64[:])"], "(n),(n)->(n)")
def smoothed(a, b, out):
    for i in range(len(a)):
        out[i] = a[i] * b[i]
        if i > 0:
            out[i] += 0.5 * out[i - 1]


@guvectorize(["(float64[:], float64, float64[:])"], "(n),()->()")
def norm(a, p, out):
    total = 0.0
    for v in a:
        total += abs(v) ** p
    out[0] = total


@guvectorize(["(float64[:, :], float64[:], float64[:])"], "(m,n),(n)->(m)")
def product(a, v, out):
    for i in range(a.shape[0]):
        out[i] = 0.0
        for j in range(a.shape[1]):
            out[i] += a[i, j] * v[j]


@guvectorize("(n),(n)->(n)")
def undeclared(a, b, out):
    for i in range(len(a)):
        out[i] = a[i] * b[i]


@guvectorize(["(float64[:], float64[:], float64[:], float64[:])"], "(n),()->(n),()")
def scaled_and_summed(a, p, out, total):
    total[0] = 0.0
    for i in range(len(a)):
        out[i] = a[i] * p[0]
        total[0] += out[i]


@vectorize(["float64(float64)"])
def exp(a):
    """Not NumPy's."""
    return 3.0 * a


numpys = np.vectorize(lambda a, b: a * b if a > b else a + b)


def items_with_a_number(x):
    return np.sum(clipped(x, 1.0) * x)


def items_with_broadcasting(x):
    return np.sum(clipped(x, x[0]) * polynomial(x, x[:, :1]))


def numbers_in_a_loop(x):
    total = 0.0
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            total += clipped(x[i, j], 0.8) * polynomial(x[i, j], 2.0)
    return total


def of_another_name(x):
    return np.sum(exp(x) ** 2)


def by_numpy(x):
    return np.sum(numpys(x, 1.0) * x)


def rows(x):
    return np.sum(smoothed(x, x[0]) * x)


def rows_to_numbers(x):
    return np.sum(norm(x, 3.0) * norm(x[0], x[1, :2]))


def a_matrix(x):
    return np.sum(product(x, x[1]) ** 2)


def given_an_array_to_fill(x):
    out, rest = np.zeros(x.shape), np.empty(x.shape)
    undeclared(x, x, out)
    smoothed(x, out, out=rest)
    return np.sum(out * rest)


def two_results(x):
    parts, totals = scaled_and_summed(x, x[:, 0])
    return np.sum(parts * x) + np.sum(totals**2)


PROGRAMS = [
    items_with_a_number, items_with_broadcasting, numbers_in_a_loop, of_another_name, by_numpy,
    rows, rows_to_numbers, a_matrix, given_an_array_to_fill, two_results,
]  # fmt: skip


def slope(f, x, step=1e-6):
    """Central differences."""
    found = np.zeros_like(x)
    for place in np.ndindex(x.shape):
        unit = np.zeros_like(x)
        unit[place] = step
        found[place] = (f(x + unit) - f(x - unit)) / (2 * step)
    return found


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_they_have_values_and_gradients(program):
    for compiled in (False, True):
        value, gradient = nbta.value_and_grad(program, compiled=compiled)(X)
        np.testing.assert_allclose(value, program(X), rtol=1e-12)
        np.testing.assert_allclose(gradient, slope(program, X), rtol=1e-6, atol=1e-7)


def test_in_njit():
    @numba.njit
    def f(x):
        out = np.empty(x.shape)
        smoothed(x, x, out)
        return np.sum(clipped(x, 1.0)) + np.sum(out)

    for compiled in (False, True):
        value, gradient = nbta.value_and_grad(f, compiled=compiled)(X)
        np.testing.assert_allclose(value, f(X), rtol=1e-12)
        np.testing.assert_allclose(gradient, slope(f, X), rtol=1e-6, atol=1e-7)


def test_declared_dtypes_decide():
    f = nbta.function(lambda x: polynomial(x, np.float32(2.0)))
    assert f(X.astype(np.float32)).dtype == np.float32
    assert f(X).dtype == np.float64
    assert nbta.function(lambda n: polynomial(n, 2))(np.arange(3)).dtype == np.float64


def test_no_items():
    for compiled in (False, True):
        value, gradient = nbta.value_and_grad(items_with_a_number, compiled=compiled)(np.zeros(0))
        assert value == 0.0
        assert gradient.shape == (0,)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda x: smoothed(x, x[0, :2]), nbta.InvalidArgumentError, "along the axis n"),
        (lambda x: smoothed(x[0, 0], x), nbta.InvalidArgumentError, r"has 0 axes, and \(n\)"),
        (lambda x: clipped(x, 1.0, where=x > 1), nbta.UnimplementedError, "clipped .* where="),
        (lambda x: clipped(x), TypeError, "clipped takes 2 arguments"),
        (lambda x: undeclared(x, x), TypeError, "no declared types"),
        (lambda x: polynomial(x * 1j, x), nbta.InvalidArgumentError, "given complex128"),
        (lambda x: np.vectorize(divmod)(x, 2.0), nbta.UnimplementedError, "more than one number"),
        (lambda x: np.vectorize(abs, excluded={0})(x), nbta.UnimplementedError, "excluded="),
        (lambda x: np.frompyfunc(abs, 1, 1)(x), nbta.InvalidArgumentError, "source is not known"),
    ],
)
def test_what_they_do_not_take_is_told(call, error, words):
    with pytest.raises(error, match=words) as failed:
        nbta.function(call)(X)
    said = "\n".join([str(failed.value), *getattr(failed.value, "__notes__", ())])
    assert "test_universal_functions.py" in said


OF_NUMBAS = [(clipped, 2.0, 1.5), (clipped, X, 0.8), (polynomial, X, 2.0), (smoothed, X, X[0])]


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(("f", "args"), [(f, args) for f, *args in OF_NUMBAS])
def test_universal_functions_are_differentiated_themselves(f, args, compiled):
    np.testing.assert_allclose(nbta.function(f, compiled=compiled)(*args), f(*args), rtol=1e-14)
    ones = tuple(np.ones_like(a) for a in args)
    value, slope = nbta.jvp(f, tuple(args), ones)
    up, down = (f(*[a + step for a in args]) for step in (1e-6, -1e-6))
    np.testing.assert_allclose(value, f(*args), rtol=1e-14)
    np.testing.assert_allclose(slope, (up - down) / 2e-6, rtol=1e-7)
