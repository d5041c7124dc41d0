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
