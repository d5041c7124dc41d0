"""Functions as operations of PyTensor and PyMC, with PyTensor's checker of gradients."""

import numba
import numpy as np
import pytest
from interop_programs import NOISE, WEIGHTS, X, energy, newton, several

import nbta
from nbta.interop import to_pytensor

pytestmark = pytest.mark.filterwarnings("ignore")  # PyTensor's and PyMC's own
pytensor = pytest.importorskip("pytensor")
pt = pytensor.tensor


@pytest.mark.parametrize("compiled", [False, True])
def test_values_and_gradients_are_nbtas(compiled):
    rate, noise = pt.dscalar(), pt.dvector()
    value = to_pytensor(energy, compiled)(rate, noise)
    run = pytensor.function([rate, noise], [value, *pytensor.grad(value, [rate, noise])])
    want, slopes = nbta.value_and_grad(energy, argnums=(0, 1))(0.5, NOISE)
    for one, other in zip(run(0.5, NOISE), (want, *slopes), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-14)


def test_pytensors_checker_agrees_to_the_second_order():
    verify, generator = pytensor.gradient.verify_grad, np.random.default_rng(0)
    verify(to_pytensor(energy), [np.float64(0.5), NOISE], rng=generator)
    verify(to_pytensor(newton), [np.float64(3.0)], rng=generator)
    f = to_pytensor(energy)
    slope = lambda r, n: pytensor.grad(f(r, n), n)  # noqa: E731
    verify(slope, [np.float64(0.5), NOISE], rng=generator)


def test_second_derivatives_and_directions():
    noise, direction = pt.dvector(), pt.dvector()
    value = to_pytensor(energy)(0.5, noise)
    matrix = pytensor.function([noise], pytensor.gradient.hessian(value, noise))
    np.testing.assert_allclose(matrix(NOISE), nbta.hessian(energy, 1)(0.5, NOISE), rtol=1e-12)
    along = pytensor.gradient.Rop(value, noise, direction)
    found = pytensor.function([noise, direction], along)(NOISE, np.ones(4))
    np.testing.assert_allclose(found, nbta.grad(energy, 1)(0.5, NOISE).sum(), rtol=1e-14)


def test_structures_integers_and_options():
    p, x = {"w": pt.dmatrix(), "b": pt.dvector()}, pt.dvector()
    found = to_pytensor(several)(p, x, power=3)
    slope = pytensor.grad(found["norm"], [*p.values(), x])
    run = pytensor.function([*p.values(), x], [found["norm"], found["largest"], *slope])
    norm, largest, *slopes = run(*WEIGHTS.values(), X)
    want = several(WEIGHTS, X, power=3)
    np.testing.assert_allclose(norm, want["norm"], rtol=1e-14)
    assert (largest, largest.dtype) == (want["largest"], np.int64)
    by_p, by_x = nbta.grad(lambda p, x: several(p, x, power=3)["norm"], (0, 1))(WEIGHTS, X)
    for one, other in zip(slopes, (*by_p.values(), by_x), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


def asked(f):
    """How often PyTensor's compiled code asked Python for what an operation gives."""
    nodes = [node for node in f.maker.fgraph.apply_nodes if type(node.op).__name__ == "NbtaOp"]
    kinds = [numba.typeof(node.op.function.native) for node in nodes]
    assert all(kind.entries for kind in kinds)
    return len(nodes), sum(entry.asked for kind in kinds for entry in kind.entries)


def test_the_numba_mode_calls_natively():
    rate, noise = pt.dscalar(), pt.dvector()
    value = to_pytensor(energy)(rate, noise)
    wanted = [value, *pytensor.grad(value, [rate, noise])]
    run = pytensor.function([rate, noise], wanted, mode="NUMBA")
    want, slopes = nbta.value_and_grad(energy, argnums=(0, 1))(0.5, NOISE)
    for one, other in zip(run(0.5, NOISE), (want, *slopes), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-14)
    count, before = asked(run)
    assert count == 2
    run(0.25, NOISE * 2.0)
    assert asked(run) == (count, before)
    f = pytensor.function([noise], to_pytensor(lambda x: x[3])(noise), mode="NUMBA")
    with pytest.raises(nbta.InvalidArgumentError, match="there is no index 3"):
        f(X)
    # Several results, of several dtypes and ranks.
    p = {"w": pt.dmatrix(), "b": pt.dvector()}
    found = to_pytensor(several)(p, noise, power=3)
    f = pytensor.function([*p.values(), noise], [found["norm"], found["largest"]], mode="NUMBA")
    norm, largest = f(*WEIGHTS.values(), X)
    want = several(WEIGHTS, X, power=3)
    np.testing.assert_allclose(norm, want["norm"], rtol=1e-14)
    assert (largest, largest.dtype) == (want["largest"], np.int64)


def test_errors():
    with pytest.raises(nbta.InvalidArgumentError, match=r"args\[0\] is .*object.*; give arrays"):
        to_pytensor(energy)(object(), NOISE)
    run = pytensor.function([x := pt.dvector()], to_pytensor(lambda x: x[3])(x))
    with pytest.raises(nbta.InvalidArgumentError, match="there is no index 3"):
        run(X)


def test_pymc_samples_the_parameter_of_a_loop():
    pm = pytest.importorskip("pymc")

    def path(rate, noise):
        level, levels = 0.0, np.zeros(len(noise))
        for t in range(len(noise)):
            level = rate * level + noise[t]
            levels[t] = level
        return levels

    generator = np.random.default_rng(1)
    noise = generator.normal(size=60)
    seen = path(0.7, noise) + 0.1 * generator.normal(size=60)
    with pm.Model():
        rate = pm.Uniform("rate", 0.0, 1.0)
        pm.Normal("seen", to_pytensor(path)(rate, noise), 0.1, observed=seen)
        options = {"chains": 1, "cores": 1, "progressbar": False, "random_seed": 1}
        found = pm.sample(200, tune=200, compute_convergence_checks=False, **options)
    draws = found.posterior["rate"].values
    assert abs(draws.mean() - 0.7) < 0.02
    assert 0.001 < draws.std() < 0.02
