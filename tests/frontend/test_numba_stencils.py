"""Functions of `numba.stencil` in traced functions, against what Numba makes of them."""

import numba
import numpy as np
import pytest

import nbta
from nbta.testing import check_grads

X = np.array([0.3, -0.7, 1.2, 0.4, -1.1, 0.9, 0.5])
M = np.random.default_rng(1).normal(size=(5, 6))


@numba.stencil
def neighbours(a):
    return 0.25 * (a[-1] - 2.0 * a[0] * a[1])


@numba.stencil
def laplacian(u, k):
    return k * (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 2] - 4.0 * u[0, 0])


@numba.stencil(neighborhood=((-2, 1),), cval=0.5)
def weighted(a, w):
    total = 0.0
    for i in range(-2, 2):
        total += a[i] * w[i]
    return total


@numba.stencil(standard_indexing=("w",))
def filtered(a, w):
    return a[-1] * w[0] + a[0] * w[1] + a[1] * w[2]


@numba.stencil
def limited(a, b):
    if a[0] > b[1]:
        return a[0]
    return b[1] * a[-1]


@numba.stencil(neighborhood=((-1, 1),))
def spread(a):
    return np.max(a[-1:2]) - np.min(a[-1:2])


@numba.stencil
def halves(n):
    return n[-1] // 2 + n[1]


@numba.stencil
def thirds(n):
    return (n[-1] + n[0] + n[1]) / 3


def heat(u, k):
    for _ in range(4):
        u = u + laplacian(u, k)
    return np.sum(u * u)


def into(a):
    out = np.ones(len(a))
    neighbours(a, out=out)
    return np.sum(out * a)


CASES = [
    (lambda a: np.sum(neighbours(a) ** 2), (X,)),
    (heat, (M, 0.1)),
    (lambda a, w: np.sum(weighted(a, w) * a), (X, X[::-1].copy())),
    (lambda a, w: np.sum(filtered(a, w) * a), (X, X[:3].copy())),
    (lambda a, b: np.sum(limited(a, b) ** 2), (X, X[::-1].copy())),
    (lambda a: np.sum(spread(a) * a), (X,)),
    (into, (X,)),
]


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize(("f", "arguments"), CASES, ids=range(len(CASES)))
def test_values_and_gradients(f, arguments):
    """Numba calls stencils from compiled code and from Python's."""
    expected = f(*arguments)
    everything = tuple(range(len(arguments)))
    for compiled in (False, True):
        value, _ = nbta.value_and_grad(f, argnums=everything, compiled=compiled)(*arguments)
        assert value == pytest.approx(expected, rel=1e-13)
    check_grads(f, arguments)


@pytest.mark.parametrize(
    ("stencil", "arguments"),
    [
        (neighbours, (X,)),
        (neighbours, (X[:2],)),
        (neighbours, (X.astype(np.float32),)),
        (weighted, (X, X)),
        (weighted, (X[:3], X)),
        (laplacian, (M, 2)),
        (laplacian, (M[:, :3].copy(), 1.5)),
        (halves, (np.arange(7) * 3,)),
        (thirds, (np.arange(7),)),
    ],
)
def test_items_and_borders(stencil, arguments):
    expected = stencil(*arguments)
    for compiled in (False, True):
        found = nbta.function(lambda *given: stencil(*given), compiled=compiled)(*arguments)
        assert found.dtype == expected.dtype
        rtol = 1e-6 if arguments[0].dtype == "f4" else 1e-14
        np.testing.assert_allclose(found, expected, rtol=rtol)
