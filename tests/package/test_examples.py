"""The programs of examples/ do what they say."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import nbta

EXAMPLES = Path(__file__).parents[2] / "examples"


def load(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_grow():
    path = load("grow").walk(20.0, 1)
    assert np.abs(path).max() <= 20
    assert len(path) > 10


@pytest.fixture(scope="module")
def ode():
    return load("fit_ode")


def test_the_solver_is_as_exact_as_it_is_told_to_be(ode):
    reference = solve_ivp(
        lambda t, y: np.asarray(ode.slope(ode.TRUE, y)), (0, ode.TIMES[-1]), ode.START,
        t_eval=ode.TIMES, rtol=1e-9, atol=1e-9,
    )  # fmt: skip
    states_at = nbta.function(ode.states_at)
    coarse, few = states_at(ode.TRUE, ode.TIMES, tolerance=1e-3)
    fine, many = states_at(ode.TRUE, ode.TIMES, tolerance=1e-6)
    assert few < many
    np.testing.assert_allclose(coarse, reference.y.T, rtol=0.05, atol=0.05)
    np.testing.assert_allclose(fine, reference.y.T, rtol=1e-4, atol=1e-4)
    assert states_at.traces == 1


@pytest.mark.slow
def test_the_fit_finds_the_rates(ode):
    observed, _ = nbta.function(ode.states_at)(ode.TRUE, ode.TIMES)
    rates, found, taken = ode.fit(observed, ode.TRUE * 1.1)
    np.testing.assert_allclose(rates, ode.TRUE, rtol=1e-3)
    assert found.fun < 1e-6
    assert len(set(taken)) > 1


@pytest.mark.parametrize("name", ["lotka_volterra", "van_der_pol"])
def test_gradients_follow_the_steps_that_the_solver_took(name):
    adaptive = load("adaptive_ode")
    slope = getattr(adaptive, name)
    start, rates = {
        "lotka_volterra": (np.array([10.0, 5.0]), np.array([1.1, 0.4, 0.4, 0.1])),
        "van_der_pol": (np.array([2.0, 0.0]), np.array([5.0])),
    }[name]
    solved = nbta.function(lambda y, r: adaptive.solve(slope, y, r, 2.0, 1e-8))(start, rates)
    reference = solve_ivp(
        lambda t, y: np.asarray(slope(rates, y)), (0, 2.0), start, rtol=1e-10, atol=1e-10
    )
    np.testing.assert_allclose(solved[0], reference.y[:, -1], rtol=1e-6)
    assert solved[2] > 0  # some steps were refused
    given = slope, start, rates, 2.0, 1e-8
    value, found = adaptive.gradients(*given)
    np.testing.assert_allclose(value, np.sum(np.square(solved[0])), rtol=1e-12)
    expected = np.concatenate(adaptive.differences(*given))
    np.testing.assert_allclose(np.concatenate(found), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.slow
def test_the_adaptive_example_runs(capsys):
    load("adaptive_ode").main(quick=True)
    assert "Van der Pol" in capsys.readouterr().out


def test_loops_in_njit():
    loops = load("loops_in_njit")
    runs = loops.runs(4000)
    found = {name: loop(*args) for name, (loop, args) in runs.items()}
    draws = found.pop("Hamiltonian Monte Carlo")
    for lowest in found.values():
        assert np.max(np.abs(loops.slope(lowest, loops.OFFSETS))) < 1e-7
    for loop, args in loops.runs(5).values():
        np.testing.assert_allclose(loop(*args), loop.py_func(*args), rtol=1e-9, atol=1e-9)
    # For any density exp(-energy) the mean of q times the slope is the number of variables.
    virial = [np.sum(q * loops.slope(q, loops.OFFSETS)) for q in draws[500:]]
    assert abs(np.mean(virial) / loops.SIZE - 1.0) < 0.05
