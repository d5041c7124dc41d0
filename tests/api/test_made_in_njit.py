"""Derivatives that ``@njit`` functions make themselves, as by ``nbta.grad(f)``."""

import collections
import subprocess
import sys

import numba
import numpy as np
import pytest
from numba.core.errors import TypingError

import nbta
from nbta import value_and_grad as slope_of

X, Y = np.array([1.0, 2.0, 3.0]), np.array([0.5, -1.0, 0.25])
Pair = collections.namedtuple("Pair", ["a", "b"])


def distance(q, data):
    total = 0.0
    for i in range(len(q)):
        total += (q[i] - data[i]) ** 4
    return total


distance_in_njit = numba.njit(distance)


def scaled(q, data):
    return q * q * data, nbta.sum(q)


def same(found, expected):
    assert type(found) is type(expected) or np.ndim(expected) == 0
    if isinstance(expected, tuple):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            same(one, other)
    else:
        np.testing.assert_array_equal(found, expected, strict=isinstance(expected, np.ndarray))


def alike(function, *args):
    """The results in compiled code are those that Python gives."""
    same(function(*args), function.py_func(*args))


def test_functions_of_variables():
    cube = lambda x: x**3  # noqa: E731 - a variable of a function around

    @numba.njit
    def compiled(q, data):
        both = slope_of(distance, argnums=(0, 1))
        h = distance
        value = both(q, data), nbta.grad(h)(q, data), nbta.hessian(distance_in_njit)(q, data)
        return value, nbta.grad(nbta.grad(cube))(q[1]), nbta.jacobian(scaled)(q, data)[0]

    alike(compiled, X, Y)


def test_one_function_for_all_calls_alike():
    @numba.njit
    def compiled(q, data):
        g = nbta.grad(distance)
        total = np.zeros(len(q))
        for _ in range(3):
            total += nbta.grad(distance)(q, data) + g(q, data, out=np.empty(len(q)))
        return total

    alike(compiled, X, Y)
    again = numba.njit(lambda q, data: nbta.grad(distance))
    assert again(X, Y) is numba.njit(lambda q: nbta.grad(distance))(X)
    assert again(X, Y) is not numba.njit(lambda: nbta.grad(distance, argnums=1))()


def test_functions_that_are_arguments():
    @numba.njit
    def compiled(f, q, data):
        return nbta.value_and_grad(f, (0, 1), compiled=True)(q, data), nbta.vjp(f, q, data)[0]

    for f in (distance_in_njit, nbta.function(distance)):
        alike(compiled, f, X, Y)


def test_products_with_directions_of_functions_of_pythons():
    @numba.njit
    def compiled(q, data):
        pair = (q, data)
        return (
            nbta.jvp(scaled, pair, (data, q)),
            nbta.hvp(distance, pair, pair),
            nbta.jvp(np.sin, q, q),
        )

    alike(compiled, X, Y)


def test_pullbacks_and_linear_maps_have_copies_of_the_arguments():
    @numba.njit
    def compiled(q, data):
        q = q.copy()
        value, pullback = nbta.vjp(scaled, q, data)
        other, along = nbta.linearize(scaled, q, data)
        q[0] = 99.0
        return value, pullback((data, 1.0)), pullback((q, 0.0)), other, along(data, q)

    alike(compiled, X, Y)
    compiled(X, Y)

    def energy(pair, k):
        return pair.a * pair.b * k

    @numba.njit
    def structured(a, b):
        return nbta.vjp(energy, Pair(a, b), 2.0)[1](a)

    alike(structured, X, Y)


def test_in_parallel_loops():
    @numba.njit(parallel=True)
    def compiled(rows, data):
        found = np.empty((4, *rows.shape))
        for i in numba.prange(len(rows)):
            found[0, i] = nbta.grad(distance)(rows[i], data)
            value, pullback = nbta.vjp(distance, rows[i], data)
            found[1, i] = pullback(value)[0]
            found[3, i] = nbta.hvp(distance, (rows[i], data), (data, data))[0]
            found[2, i] = nbta.grad(distance)(rows[i, : i % 3 + 1], data)[0]
        return found

    alike(compiled, np.arange(15.0).reshape(5, 3), Y)


def test_batches():
    @numba.njit
    def compiled(q, data):
        return nbta.value_and_grad(distance, batch_axis=(None, 0))(q, data)

    alike(compiled, X, np.arange(12.0).reshape(4, 3))


FIRST = """
import numba, nbta

def cube(x):
    return x**3

print(numba.njit(lambda x: nbta.grad(cube)(x))(2.0))
"""


def test_the_first_use_of_nbta_may_be_in_compiled_code():
    """Twice, as whether something compiles before that depends on caches."""
    for _ in range(2):
        done = subprocess.run([sys.executable, "-c", FIRST], capture_output=True, text=True)
        assert (done.stdout, done.stderr) == ("12.0\n", "")


# Mistakes.


def refused(function, *args, words):
    with pytest.raises(TypingError) as caught:
        function(*args)
    last = str(caught.value).splitlines()[-1]
    assert words in last
    assert last.startswith(__file__)


def test_what_cannot_be_made_is_refused_at_the_line():
    k = 1.5

    @numba.njit
    def unknown(f, q, data, k):
        return nbta.grad(f, argnums=k)(q, data)

    words = "nbta.grad: argnums is int64, whose value is not known here; give a constant"
    refused(unknown, distance_in_njit, X, Y, 1, words=words)

    @numba.njit
    def no_argument(q, data):
        return nbta.grad(distance, argnames="other")(q, data)

    refused(no_argument, X, Y, words="nbta.grad: argnames: there is no argument 'other'")

    @numba.njit
    def no_option(q, data):
        return nbta.grad(distance, other=k)(q, data)

    refused(no_option, X, Y, words="nbta.grad: TypeError: ")

    @numba.njit
    def no_function(q):
        return nbta.grad(q)(q)

    refused(no_function, X, words="which does not say which function it is; give a function")


def test_cotangents_and_tangents_that_do_not_fit():
    @numba.njit
    def pulled(q, data, one, other):
        return nbta.vjp(scaled, q, data)[1]((one, other))

    words = "cotangent[1] is float32 (), and value[1] is float64 (); they must be equal"
    refused(pulled, X, Y, X, np.float32(1.0), words=words)
    with pytest.raises(nbta.InvalidArgumentError):
        pulled(X, Y, X[:2], 1.0)

    @numba.njit
    def two(q, data):
        return nbta.vjp(scaled, q, data)[1](q, 1.0)

    refused(two, X, Y, words="a derivative at a point takes one cotangent")

    @numba.njit
    def along(q, data):
        return nbta.jvp(scaled, (q, data), (q.astype(np.float32), data))

    refused(along, X, Y, words="tangents[0] is float32 (?,), and primals[0] is float64 (?,)")
