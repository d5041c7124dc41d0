"""Functions are compiled ahead for arguments of some kinds, and run nothing for that."""

import numba
import numpy as np
import pytest
from fuzz.ways import in_python

import nbta
from nbta.compiler.executable import Compiled

X = np.array([1.0, 2.0, 3.0])


@pytest.fixture
def builds(monkeypatch):
    """Functions that were compiled."""
    found, build = [], Compiled.build

    def counted(self):
        if not self.is_built:
            found.append(self)
        return build(self)

    monkeypatch.setattr(Compiled, "build", counted)
    return found


def total(x, power):
    found = 0.0
    for v in x:
        found += v**power
    return found


@pytest.mark.parametrize(
    "example",
    [np.ones(5), nbta.Spec("float64", (None,)), nbta.Spec("float64", (7,))],
    ids=["array", "any length", "length"],
)
def test_a_call_after_it_compiles_nothing(example, builds):
    slope = nbta.value_and_grad(total)
    assert slope.warm(example, 2.0) is slope
    assert (slope.traces, len(builds)) == (1, 1)
    assert repr(slope).endswith(", 1 graph, compiled>")  # before any call
    for n in (2, 3, 100):
        value, found = slope(np.arange(1.0, n + 1), 2.0)
        np.testing.assert_allclose(found, 2.0 * np.arange(1.0, n + 1), rtol=1e-14)
        assert abs(value - np.sum(np.arange(1.0, n + 1) ** 2)) < 1e-9 * value
    assert (slope.traces, len(builds)) == (1, 1)
    assert repr(slope).endswith(", 1 graph, compiled>")


def test_types_of_numba_and_a_caller_that_compiles_nothing(builds):
    slope = nbta.grad(total, compiled=True).warm(numba.float64[:], numba.float64)
    slope.warm(np.ones(1), 2.0)  # arrays of length 1 have a program of their own
    before = slope.traces, len(builds)
    of_lengths = numba.njit("f8[::1](f8[::1], f8)")(lambda x, power: slope(x, power))
    for n in (1, 2, 5):
        np.testing.assert_array_equal(of_lengths(np.ones(n), 2.0), np.full(n, 2.0))
    assert (slope.traces, len(builds)) == before == (2, 2)
    pair = nbta.grad(lambda p: nbta.sum(p[0] * p[1])).warm(
        numba.types.Tuple((numba.float64[:], numba.float64))
    )
    pair((X, 2.0))
    assert pair.traces == 1


def test_nothing_runs():
    ran = []

    @nbta.custom_gradient
    def noted(x):
        ran.append(x)
        return x

    f = nbta.function(lambda x: noted(x)).warm(nbta.Spec("float64", ()))
    assert not ran
    assert (f(2.0), ran) == (2.0, [2.0])


def test_a_signature_needs_no_arguments(builds):
    f = nbta.function(
        total, input_signature=[nbta.Spec("float64", (None,)), nbta.Spec("float64", ())]
    )
    f.warm()
    assert f(X, 2.0) == 14.0
    assert len(builds) == 1


def test_structures_static_arguments_and_batches(builds):
    spec = nbta.Spec("float64", (3,))
    f = nbta.grad(lambda p, k: nbta.sum(p["w"] ** k * p["b"]), static_argnums=1)
    f.warm({"w": spec, "b": 2.0}, 2)
    np.testing.assert_array_equal(f({"w": X, "b": 2.0}, 2)["w"], 4.0 * X)
    assert len(builds) == 1
    batch = nbta.grad(lambda w, x: nbta.sum(w * x) ** 2, batch_axis=0)
    assert batch.warm(spec, nbta.Spec("float64", (None, 3))) is batch
    assert len(builds) == 2
    found = batch(X, np.ones((40, 3)))
    np.testing.assert_allclose(found, np.full(3, 40 * 2 * 6.0), rtol=1e-14)
    assert len(builds) == 2


def test_decorators_for_several_kinds(builds):
    @nbta.warm(numba.float64[:], 2.0)
    @nbta.warm(X.astype(np.float32), 2.0)
    @nbta.value_and_grad
    def power(x, k):
        return total(x, k)

    assert (power.traces, len(builds)) == (2, 2)
    for dtype in ("float64", "float32"):
        np.testing.assert_array_equal(power(X.astype(dtype), 2.0)[1], 2.0 * X.astype(dtype))
    assert (power.traces, len(builds)) == (2, 2)
    for f in (total, numba.njit(total), 2.0):
        with pytest.raises(nbta.InvalidArgumentError, match=r"warm: .* is not a function"):
            nbta.warm(X, 2.0)(f)


def test_refusals():
    with pytest.raises(nbta.UnimplementedError, match="cannot be compiled: compiled=False says"):
        nbta.grad(total, compiled=False).warm(X, 2.0)
    with pytest.raises(nbta.InvalidArgumentError, match="does not tell the rank"):
        nbta.grad(total).warm(nbta.Spec("float64", None), 2.0)
    with pytest.raises(nbta.InvalidArgumentError, match="gradients exist for floats"):
        nbta.grad(total).warm(nbta.Spec("int64", (None,)), 2.0)
    with pytest.raises(nbta.InvalidArgumentError, match="unicode_type is not a tensor; give"):
        nbta.grad(total).warm(numba.types.unicode_type, 2.0)
    with in_python(), pytest.raises(nbta.InvalidArgumentError, match="there are no items"):
        nbta.grad(total, batch_axis=(0, None)).warm(np.zeros((0, 3)), 2.0)
