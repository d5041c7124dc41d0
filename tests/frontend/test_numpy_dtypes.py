"""Dtypes of results of universal functions: NumPy's, for each dtype of the arguments."""

import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import nbta

sys.path.insert(0, str(Path(__file__).parents[2] / "docs"))
import numpy_table as table

CODES = "?bhilBHILefdFD"
UNIVERSAL = {name: function for name, function in table.functions("numpy").items()
             if isinstance(function, np.ufunc) and function.signature is None
             and function.nin <= 2}  # fmt: skip


def quietly(call):
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return call()


@pytest.mark.parametrize("name", UNIVERSAL)
def test_each_dtype_gives_numpys(name):
    function = UNIVERSAL[name]
    for code in CODES:
        given = [np.array([1, 0, 1]).astype(code), np.array([1, 1, 1]).astype(code)][: function.nin]
        try:
            wanted = quietly(lambda given=given: function(*given))
            found = quietly(lambda given=given: nbta.function(function, compiled=False)(*given))
        except Exception:  # one of the libraries has no such loop
            continue
        wanted, found = (v if isinstance(v, tuple) else (v,) for v in (wanted, found))
        for one, other in zip(found, wanted, strict=True):
            assert one.dtype == other.dtype, f"{name} of {np.dtype(code)}"
            tight = other.dtype.itemsize > 8 or other.dtype.kind not in "fc"
            tol = 1e-12 if tight or other.dtype == np.float64 else 1e-5
            tol = 2e-3 if other.dtype == np.float16 else tol
            np.testing.assert_allclose(one, other, rtol=tol, atol=tol, err_msg=f"{name} {code}")


def with_a_matrix(x):
    return np.sum(np.matrix([[1.0, 2.0], [3.0, 4.0]]) * x.reshape(2, 1))


def squares_a_matrix(x):
    m = np.matrix(np.eye(2) + 1.0)
    return np.sum(m * m) * x[0]


def with_a_mask(x):
    return np.ma.masked_array([1.0, 2.0], [False, True]).sum() * x[0]


@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
@pytest.mark.parametrize("f", [with_a_matrix, squares_a_matrix, with_a_mask])
def test_arrays_of_another_meaning_are_refused_where_they_are_made(f):
    for compiled in (False, True):
        with pytest.raises(nbta.InvalidArgumentError, match="which would be lost") as caught:
            nbta.grad(f, compiled=compiled)(np.array([1.5, 2.0]))
        assert caught.value.reason == "subclass"


ASKING = [
    lambda x: np.zeros(3, np.result_type(x, np.float32)) + x[:3],
    lambda x: np.zeros(2, np.result_type(x[0], 1, len(x))) + x[:2],
    lambda x: np.zeros(2, np.result_type(len(x), np.int8)),
    lambda x: np.zeros(2, np.result_type(x.astype(np.float32), 1.5)),
    lambda x: np.zeros(3, np.common_type(x, x.astype(complex))),
    lambda x: x * (2 if np.isscalar(x) else 3) * (5 if np.isscalar(x[0]) else 7),
    lambda x: x * (2 if np.isscalar(x.sum()) else 3) * (5 if np.isscalar(len(x)) else 7),
]


@pytest.mark.parametrize("f", ASKING, ids=range(len(ASKING)))
def test_functions_that_ask_for_dtypes(f):
    x = np.arange(1.0, 5.0)
    found, expected = nbta.function(f, compiled=False)(x), f(x)
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


def by_the_type_of_a_number(x, count):
    kind = type(x)
    made = np.empty(count, kind)
    made[:] = x
    made += (
        np.zeros(count, dtype=kind) + np.full(count, x, kind) + np.array([x] * count, dtype=kind)
    )
    return made * np.ones(count).astype(kind) + np.issubdtype(kind, np.floating)


@pytest.mark.parametrize("number", [1.5, 3, 1.5 + 2.0j, np.float32(1.5), np.float64(1.5)])
@pytest.mark.parametrize("compiled", [False, True])
def test_the_type_of_a_number_is_a_dtype(number, compiled):
    found = nbta.function(by_the_type_of_a_number, compiled=compiled)(number, 3)
    expected = by_the_type_of_a_number(number, 3)
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)
