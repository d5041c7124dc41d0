"""Functions of whole arrays, at places without a finite derivative, whose results nobody takes."""

import numpy as np
import pytest
import scipy.special

import nbta

INF, NAN = np.inf, np.nan
ZEROS, SOME = np.zeros(3), np.array([0.0, INF, NAN])
SINGULAR = np.array([[1.0, 2.0], [2.0, 4.0]])
BAD = np.array([[NAN, 1.0], [INF, 2.0]])

#: Functions with arrays for which derivatives are infinite or NaN. Products of matrices are not
#: among them, as a sum over NaN is NaN.
CASES = {
    "norm": (lambda x: np.linalg.norm(x), [ZEROS, SOME]),
    "norm of rows": (lambda x: np.linalg.norm(x, axis=1), [np.zeros((2, 3))]),
    "norm of order 3": (lambda x: np.linalg.norm(x, 3), [ZEROS, SOME]),
    "frobenius": (lambda x: np.linalg.norm(x), [np.zeros((2, 2)), BAD]),
    "std": (lambda x: np.std(x), [ZEROS, SOME]),
    "var": (lambda x: np.var(x), [SOME]),
    "prod": (lambda x: np.prod(x), [ZEROS]),
    "cumprod": (lambda x: np.cumprod(x), [ZEROS]),
    "cumsum": (lambda x: np.cumsum(x), [SOME]),
    "mean": (lambda x: np.mean(x), [SOME]),
    "max": (lambda x: np.max(x), [SOME]),
    "sort": (lambda x: np.sort(x), [SOME]),
    "median": (lambda x: np.median(x), [SOME]),
    "quantile": (lambda x: np.quantile(x, 0.3), [SOME]),
    "logsumexp": (lambda x: scipy.special.logsumexp(x), [SOME, np.full(3, -INF)]),
    "softmax": (lambda x: scipy.special.softmax(x), [SOME, np.full(3, -INF)]),
    "log_softmax": (lambda x: scipy.special.log_softmax(x), [SOME, np.full(3, -INF)]),
    "trace": (lambda x: np.trace(x), [BAD]),
    "dot": (lambda x: np.dot(x, x), [SOME]),
    "vdot": (lambda x: np.vdot(x, x), [SOME]),
    "interp": (lambda x: np.interp(x, np.array([0.0, 1.0]), np.array([0.0, INF])), [ZEROS]),
    "average": (lambda x: np.average(x, weights=x), [SOME]),
    "normalised": (lambda x: x / np.sum(x), [ZEROS, SOME]),
    "unit vector": (lambda x: x / np.linalg.norm(x), [ZEROS, SOME]),
    "cross-entropy": (lambda x: -np.sum(x * np.log(x)), [ZEROS, SOME]),
    "correlation": (lambda x: np.corrcoef(x, x)[0, 1], [ZEROS]),
}


ALL = [
    pytest.param(f, x, id=f"{name}-{k}")
    for name, (f, arrays) in CASES.items()
    for k, x in enumerate(arrays)
]


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(("f", "x"), ALL)
def test_what_nobody_takes_has_no_part(f, x, compiled):
    def masked(x, taken):
        return np.sum(np.where(taken, f(x), 0.0)) + np.sum(np.where(np.isfinite(x), 2.0 * x, 0.0))

    slopes = nbta.grad(masked, compiled=compiled)(x, False)
    np.testing.assert_array_equal(slopes, np.where(np.isfinite(x), 2.0, 0.0))
    second = nbta.grad(lambda x: np.sum(nbta.grad(masked)(x, False) ** 2), compiled=compiled)(x)
    np.testing.assert_array_equal(second, np.zeros_like(x))


@pytest.mark.parametrize(("f", "x"), ALL)
def test_in_directions_of_nothing_nothing_changes(f, x):
    value, tangent = nbta.jvp(f, x, np.zeros_like(x))
    np.testing.assert_array_equal(tangent, np.zeros_like(value))
