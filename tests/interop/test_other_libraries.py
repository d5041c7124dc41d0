"""What of other libraries is no array: the error names the way; and extras that are missing."""

import subprocess
import sys

import numpy as np
import pytest

import nbta
from nbta.interop import to_jax, to_pytensor, to_torch


def total(x):
    return np.sum(x**2)


SLOPE = nbta.grad(total)


@pytest.mark.parametrize(
    ("make", "library"), [(to_jax, "jax"), (to_torch, "torch"), (to_pytensor, "pytensor")]
)
def test_a_missing_library_is_named_with_its_extra(make, library, monkeypatch):
    monkeypatch.setitem(sys.modules, library, None)
    monkeypatch.delitem(sys.modules, f"nbta.interop.{library}", raising=False)
    with pytest.raises(
        ImportError, match=rf"{make.__name__} needs .*: pip install \"nbta\[{library}"
    ):
        make(total)


class Series:
    """As pandas has it, for a test without it."""

    __module__ = "pandas.core.series"

    def __array__(self, *args, **kwargs):
        return np.ones(3)


def test_labels_are_refused():
    for call in (SLOPE, nbta.sum, lambda x: nbta.tanh(x)):
        with pytest.raises(nbta.InvalidArgumentError, match=r"Series has labels.*use \.to_numpy"):
            call(Series())


def test_pandas_and_xarray():
    pandas, xarray = pytest.importorskip("pandas"), pytest.importorskip("xarray")
    for value in (pandas.Series([1.0]), pandas.DataFrame({"a": [1.0]}), xarray.DataArray([1.0])):
        with pytest.raises(nbta.InvalidArgumentError, match=r"would be lost; use \.to_numpy\(\)"):
            SLOPE(value)
        np.testing.assert_array_equal(SLOPE(value.to_numpy()).ravel(), [2.0])


def test_tracers_of_jax():
    jax = pytest.importorskip("jax")
    np.testing.assert_array_equal(SLOPE(jax.numpy.ones(2)), [2.0, 2.0])
    for transform in (jax.jit, jax.vmap, lambda f: jax.grad(lambda x: f(x).sum())):
        with pytest.raises(nbta.InvalidArgumentError, match=r"nbta\.interop\.to_jax\(f\)"):
            transform(SLOPE)(jax.numpy.ones(2))


def test_tensors_of_torch():
    torch = pytest.importorskip("torch")
    np.testing.assert_array_equal(SLOPE(torch.ones(2)), [2.0, 2.0])
    with pytest.raises(nbta.InvalidArgumentError, match=r"nbta\.interop\.to_torch\(f\)"):
        SLOPE(torch.ones(2, requires_grad=True))
    with pytest.raises(nbta.InvalidArgumentError, match=r"nbta\.interop\.to_torch\(f\)"):
        torch.func.grad(lambda x: torch.tensor(SLOPE(x)).sum())(torch.ones(2))


@pytest.mark.filterwarnings("ignore")
def test_variables_of_pytensor():
    pytensor = pytest.importorskip("pytensor")
    with pytest.raises(nbta.InvalidArgumentError, match=r"nbta\.interop\.to_pytensor\(f\)"):
        SLOPE(pytensor.tensor.dvector())


def test_packages_that_messages_name_are_there_after_one_import():
    source = "import nbta; print(nbta.interop.to_torch.__name__, nbta.distributed.__name__)"
    run = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["to_torch", "nbta.distributed"]
