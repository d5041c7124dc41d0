"""The programs of the gallery find what is known otherwise; each has a page, picture and card."""

import importlib.util
import re
import sys
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from scipy import stats

import nbta

mpl.use("Agg")
ROOT = Path(__file__).parents[2]
EXAMPLES, PAGES, PICTURES = ROOT / "examples", ROOT / "docs/gallery", ROOT / "docs/figures/gallery"
LARGEST = 64_000  # bytes of a picture


def names():
    """Of the examples that draw a picture, which are those of the gallery."""
    drawn = (p for p in EXAMPLES.glob("*.py") if "def main(picture=None)" in p.read_text("utf-8"))
    return sorted(path.stem for path in drawn)


@pytest.fixture
def run(tmp_path, capsys, monkeypatch):
    """Runs an example, with other constants: its module, and what its main function returns."""

    def run(name, **constants):
        spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
        module, picture = importlib.util.module_from_spec(spec), tmp_path / "picture.svg"
        monkeypatch.setitem(sys.modules, name, module)  # what Numba keeps of a module imports it
        spec.loader.exec_module(module)
        vars(module).update(constants)
        found = module.main(picture)
        assert capsys.readouterr().out.count("\n") >= 2
        text = picture.read_text("utf-8")
        assert "<svg" in text
        assert len(text) < LARGEST
        assert "<dc:date>" not in text  # the same picture each day
        return module, found

    return run


def differences(function, x, *rest, step=1e-6):
    """The gradient by central differences."""
    steps = step * np.maximum(1.0, np.abs(x))[:, None] * np.eye(len(x))
    rows = zip(steps, np.diagonal(steps), strict=True)
    return np.array([(function(x + h, *rest) - function(x - h, *rest)) / (2 * s) for h, s in rows])


def standard_errors(cost, x, *rest):
    """From differences of the gradient of minus the log-likelihood."""
    curvature = differences(nbta.grad(cost), x, *rest)
    return np.sqrt(np.diag(np.linalg.inv(curvature)))


# Pages.


def test_each_example_has_a_page_a_picture_and_a_card():
    index = (PAGES / "index.md").read_text("utf-8")
    contents = re.search(r"```\{toctree\}\n(?::.*\n)+\n((?:\w+\n)+)```", index)[1].split()
    cards = re.findall(
        r":link: (\w+)\n:link-type: doc\n:img-top: \S+/(\w+)\.svg\n:img-alt: .", index
    )
    assert [link for link, _ in cards] == [picture for _, picture in cards] == contents
    assert sorted(contents) == names()
    assert sorted(path.stem for path in PAGES.glob("*.md") if path.stem != "index") == names()
    assert sorted(path.stem for path in PICTURES.iterdir()) == names()


@pytest.mark.parametrize("name", names())
def test_a_page_shows_the_program_and_says_how_it_is_run(name):
    page = (PAGES / f"{name}.md").read_text("utf-8")
    assert f"`python examples/{name}.py picture.svg`" in page
    assert re.search(rf"^!\[[^]]+\]\(\.\./figures/gallery/{name}\.svg\)$", page, re.MULTILINE)
    assert f"{{literalinclude}} ../../examples/{name}.py" in page
    title = page.partition("\n")[0].removeprefix("# ")
    assert f":::{{grid-item-card}} {title}\n" in (PAGES / "index.md").read_text("utf-8")
    assert (PICTURES / f"{name}.svg").stat().st_size < LARGEST


# Programs.


@pytest.mark.slow  # Numba and nbta compile for seconds
def test_predator_prey(run):
    module, rates = run("predator_prey")
    true, times, nothing = (
        np.array([1.1, 0.4, 0.4, 0.1]),
        np.linspace(0.5, 12.0, 24),
        np.zeros((24, 2)),
    )

    def fitted(rates):
        path = np.zeros((24, 2))
        module.misfit(rates, times, nothing, path)
        return path.ravel()

    slopes = differences(fitted, true)  # of the exact solution, as far as the step allows
    errors = 0.3 * np.sqrt(np.diag(np.linalg.inv(slopes @ slopes.T)))
    assert np.all(np.abs(rates - true) < 3.0 * errors)
    assert np.all(errors < 0.1 * true)
    given = times, nothing, np.zeros((24, 2))
    found = nbta.grad(module.misfit)(true, *given)
    expected = differences(module.misfit, true, *given, step=1e-8)
    np.testing.assert_allclose(found, expected, rtol=1e-4)


@pytest.mark.slow  # Numba and nbta compile for seconds
def test_kalman_filter(run):
    module, (parameters, observed) = run("kalman_filter")
    true = np.array([0.98, 0.25, 0.3, 0.8])
    seen = np.flatnonzero(~np.isnan(observed))
    lags = np.abs(seen[:, None] - seen)

    def whole(parameters):
        """The density of all observations at once, as they are jointly normal."""
        decay, frequency, shock, noise = parameters
        cov = shock**2 / (1.0 - decay**2) * decay**lags * np.cos(frequency * lags)
        return -stats.multivariate_normal.logpdf(observed[seen], cov=cov + noise**2 * (lags == 0))

    np.testing.assert_allclose(module.cost(true, observed), whole(true), rtol=1e-10)
    slope = nbta.grad(module.cost)
    np.testing.assert_allclose(slope(true, observed), differences(whole, true), rtol=1e-6)
    np.testing.assert_allclose(differences(whole, parameters), 0.0, atol=0.05)
    errors = standard_errors(module.cost, parameters, observed)
    assert np.all(np.abs(parameters - true) < 3.0 * errors)


@pytest.mark.slow  # Numba and nbta compile for seconds
def test_hidden_markov(run):
    module, (fit, states) = run("hidden_markov")
    # Zucchini and MacDonald, Hidden Markov Models for Time Series, the model with three states.
    np.testing.assert_allclose(fit.fun, 329.4603, atol=1e-4)
    np.testing.assert_allclose(np.exp(fit.x[:3]), [13.146, 19.721, 29.714], atol=5e-3)
    emission, transition, start = module.model(fit.x, module.COUNTS)
    forward, backward = np.zeros_like(emission), np.ones_like(emission)
    for t in range(len(emission)):
        before = np.exp(start) if t == 0 else forward[t - 1] @ np.exp(transition)
        forward[t] = before * np.exp(emission[t])
    for t in range(len(emission) - 2, -1, -1):
        backward[t] = np.exp(transition) @ (np.exp(emission[t + 1]) * backward[t + 1])
    likelihood = forward[-1].sum()
    np.testing.assert_allclose(-np.log(likelihood), fit.fun, rtol=1e-10)
    np.testing.assert_allclose(states, forward * backward / likelihood, atol=1e-9)


def test_garch(run):
    module, (parameters, errors, returns) = run("garch")
    true = np.array([0.03, 0.12, 0.86])
    assert np.all(np.abs(parameters - true) < 3.0 * errors)
    np.testing.assert_allclose(errors, standard_errors(module.cost, parameters, returns), rtol=1e-4)
    variances = module.filtered(true, returns)
    whole = -stats.norm.logpdf(returns, scale=np.sqrt(variances)).sum()
    np.testing.assert_allclose(module.cost(true, returns), whole, rtol=1e-12)
    slopes, slope = np.zeros((2000, 3)), np.zeros(3)
    for t in range(2000):  # the recursion of the variances, differentiated by hand
        slopes[t] = slope
        slope = np.array([1.0, returns[t] ** 2, variances[t]]) + true[2] * slope
    score = (0.5 / variances - 0.5 * returns**2 / variances**2) @ slopes
    np.testing.assert_allclose(nbta.grad(module.cost)(true, returns), score, rtol=1e-9)


@pytest.mark.slow  # Numba and nbta compile for seconds
def test_dividing_cells(run):
    module, (fitted, times, measured) = run("dividing_cells")
    true = np.array([0.8, 0.95])
    total, cells = module.grown(0.7, 1.0, 6.0)  # one rate for all: growth is exponential
    np.testing.assert_allclose(total, np.exp(0.7 * 6.0), rtol=1e-12)
    assert len(cells) > 30
    slope, aux = nbta.grad(module.grown, has_aux=True)(0.7, 1.0, 6.0)
    np.testing.assert_allclose(slope, 6.0 * np.exp(0.7 * 6.0), rtol=1e-12)
    np.testing.assert_array_equal(aux, cells)
    found = nbta.grad(module.misfit)(true, times, measured)
    expected = differences(module.misfit, true, times, measured)
    np.testing.assert_allclose(found, expected, rtol=1e-5)

    def volumes(parameters):
        return np.array([module.grown(*parameters, t)[0] for t in times])

    slopes = differences(volumes, true) / volumes(true)
    errors = 0.03 * np.sqrt(np.diag(np.linalg.inv(slopes @ slopes.T)))
    assert np.all(np.abs(fitted - true) < 3.0 * errors)


def test_hamiltonian_monte_carlo(run):
    module, draws = run("hamiltonian_monte_carlo")
    x, y = draws.T
    # x and y - b (x^2 - 1) are independent and standard normal.
    z = y - module.CURVATURE * (x**2 - 1.0)
    for each in (x, z):
        np.testing.assert_allclose([each.mean(), each.var()], [0.0, 1.0], atol=0.06)
        np.testing.assert_allclose(np.mean(each**4), 3.0, atol=0.4)
    np.testing.assert_allclose([np.mean(x * z), np.mean(x**2 * z)], 0.0, atol=0.06)


def test_hyperparameters(run):
    module, (guess, chosen, parts) = run("hyperparameters")
    found = nbta.grad(module.validation_loss)(guess, *parts)
    a, target, a_other, y_other = (
        part if k % 2 else module.features(part) for k, part in enumerate(parts)
    )

    def loss(hyper):
        """The same by hand: the training loss is quadratic, and so its slope is linear."""
        weights, velocity = np.zeros(a.shape[1]), np.zeros(a.shape[1])
        for _ in range(module.STEPS):
            slope = 2.0 * a.T @ (a @ weights - target) / len(a) + 2.0 * np.exp(hyper[1:]) * weights
            velocity = 0.9 * velocity - np.exp(hyper[0]) * slope
            weights = weights + velocity
        return np.mean((a_other @ weights - y_other) ** 2)

    np.testing.assert_allclose(found, differences(loss, guess), rtol=1e-5, atol=1e-9)
    assert loss(chosen) < 0.95 * loss(guess)


def test_survival_newton(run):
    module, (fitted, errors) = run("survival_newton")
    shape, _, drug = fitted
    # survreg of R on these data (Venables and Ripley, Modern Applied Statistics with S, 13.2):
    # effect 1.267, log(scale) -0.312 with an error of 0.147, log-likelihood -106.6.
    np.testing.assert_allclose(-drug / shape, 1.267, atol=5e-4)
    np.testing.assert_allclose(-np.log(shape), -0.312, atol=5e-4)
    np.testing.assert_allclose(errors[0] / shape, 0.147, atol=5e-4)
    data = module.TIMES, module.SEEN, module.TREATED
    np.testing.assert_allclose(module.cost(fitted, *data), 106.6, atol=0.05)
    np.testing.assert_allclose(errors, standard_errors(module.cost, fitted, *data), rtol=1e-6)
    np.testing.assert_allclose(differences(module.cost, fitted, *data), 0.0, atol=1e-6)


def test_kepler_orbit(run):
    module, (fitted, data) = run("kepler_orbit")
    mean, eccentricity = 2.0, 0.6
    anomaly = module.solved(mean, eccentricity)
    np.testing.assert_allclose(anomaly - eccentricity * np.sin(anomaly), mean, rtol=1e-13)
    slopes = [nbta.grad(module.solved, argnums=k)(mean, eccentricity) for k in (0, 1)]
    expected = np.array([1.0, np.sin(anomaly)]) / (1.0 - eccentricity * np.cos(anomaly))
    np.testing.assert_allclose(slopes, expected, rtol=1e-12)

    def loss(orbit, times, observed, noise):
        amplitude, period, e, argument, start = orbit
        mean = 2.0 * np.pi * (times - start) / period
        anomaly = mean + e * np.sin(mean)
        for _ in range(200):  # a contraction
            anomaly = mean + e * np.sin(anomaly)
        true = 2.0 * np.arctan2(
            np.sqrt(1.0 + e) * np.sin(anomaly / 2.0), np.sqrt(1.0 - e) * np.cos(anomaly / 2.0)
        )
        velocity = amplitude * (np.cos(true + argument) + e * np.cos(argument))
        return np.sum((velocity - observed) ** 2) / (2.0 * noise**2)

    true = np.array([50.0, 10.0, 0.5, 0.8, 3.0])
    value, gradient = nbta.value_and_grad(module.misfit)(true, *data)
    np.testing.assert_allclose(value, loss(true, *data), rtol=1e-10)
    np.testing.assert_allclose(gradient, differences(loss, true, *data), rtol=1e-5)
    errors = standard_errors(module.misfit, fitted, *data)
    assert np.all(np.abs(fitted - true) < 3.0 * errors)
    assert loss(fitted, *data) < loss(true, *data)


def complex_steps(function, x, *rest):
    """The gradient of a function that takes complex numbers, to rounding."""
    return np.array([function(x + h, *rest).imag / 1e-30 for h in 1e-30j * np.eye(len(x))])


def test_ragged_batch(run):
    module, (fitted, series) = run("ragged_batch")

    def loss(p, returns):
        level, shock = np.exp(p[0]), 1 / (1 + np.exp(-p[1]))
        memory, variance, total = (1 - shock) / (1 + np.exp(-p[2])), level, 0.0
        for r in returns:
            total += (np.log(variance) + r**2 / variance) / 2
            variance = (1 - shock - memory) * level + shock * r**2 + memory * variance
        return total

    assert len({len(each) for each in series}) > 100
    value, gradient = nbta.value_and_grad(module.loss, batch_axis=0)(fitted, series)
    np.testing.assert_allclose(value, sum(loss(fitted, each) for each in series), rtol=1e-12)
    expected = np.array([complex_steps(loss, fitted, each) for each in series])
    scale = np.abs(expected).sum(axis=0)  # as the terms cancel at the minimum
    np.testing.assert_array_less(np.abs(gradient - expected.sum(axis=0)), 1e-12 * scale)
    np.testing.assert_array_less(np.abs(gradient), 1e-4 * scale)
    errors = 1 / np.sqrt(np.diag(expected.T @ expected))  # at least so large
    assert np.all(np.abs(fitted - [0.0, -1.7, 2.0]) < 5 * errors)


def test_long_loop(run):
    _, found = run("long_loop", STEPS=200_000)

    def pendulum(p, steps):
        angle, speed = 2.0 + 0j, 0j
        for _ in range(steps):
            speed = speed - 1e-3 * (9.81 / p[0] * np.sin(angle) + p[1] * speed)
            angle = angle + 1e-3 * speed
        return angle

    kept, *others = found.values()
    p = np.array([1.0, 1e-3])
    for way in others:
        for (value, gradient, *_), (same, other, *_) in zip(kept, way, strict=True):
            assert value == same
            np.testing.assert_allclose(gradient, other, rtol=1e-12)
    for steps, (value, gradient, *_) in zip((200, 2000, 20_000), kept, strict=False):
        np.testing.assert_allclose(value, pendulum(p, steps).real, rtol=1e-9)
        np.testing.assert_allclose(gradient, complex_steps(pendulum, p, steps), rtol=1e-7)
    assert kept[-1][2] > 200_000 * 3 * 8 / 1e6
    assert all(way[-1][2] < kept[-1][2] / 20 for way in others)


@pytest.mark.slow  # Numba compiles what holds the address of a routine in each process
def test_lapack_gradient(run):
    module, (inferred, true, observed) = run("lapack_gradient")

    def misfit(v, observed):
        flow, state, seen = np.exp(v), np.zeros(40), []
        matrix = np.eye(40)
        for k, f in enumerate(flow):
            matrix[k : k + 2, k : k + 2] += f * np.array([[1, -1], [-1, 1]])
        for _ in range(60):
            state[0] += 1.0
            state = np.linalg.solve(matrix, state)
            seen.append(state[module.SENSORS])
        rough = np.sum(np.sqrt(np.diff(v) ** 2 + 1e-4))
        return np.sum(((np.array(seen) - observed) / 0.005) ** 2) / 2 + rough

    value, gradient = nbta.value_and_grad(module.misfit, compiled=True)(true + 0.1, observed)
    np.testing.assert_allclose(value, misfit(true + 0.1, observed), rtol=1e-10)
    expected = differences(misfit, true + 0.1, observed)
    np.testing.assert_allclose(gradient, expected, rtol=1e-5, atol=1e-7 * np.abs(expected).max())
    assert misfit(inferred, observed) < misfit(true, observed)
    assert np.std(inferred - true) < 0.15


def test_find_nan(run):
    module, (message, fitted) = run("find_nan")
    lines = (EXAMPLES / "find_nan.py").read_text("utf-8").splitlines()
    [line] = [k for k, text in enumerate(lines, 1) if "np.exp(-x)" in text and k < 25]
    assert message.startswith("Div made NaN of 0.0 and 0.0, at ")
    assert f"find_nan.py:{line}: {lines[line - 1].strip()}" in message
    outer = np.flatnonzero(module.VOLTS == -55.0)[0]
    assert re.findall(r"iteration (\d+) of", message) == ["0", str(outer)]

    def flows(p):
        result, v = [], module.VOLTS - p[1]
        x, gate = (v + 55.0) / 10.0, 0.32 * np.ones(len(v))
        with np.errstate(invalid="ignore"):
            opens = np.where(x == 0.0, 0.1, 0.1 * x / -np.expm1(-x))
        for _ in range(200):
            gate = gate + 0.05 * opens * (1.0 - gate)
            gate = gate - 0.05 * 0.125 * np.exp(-(v + 65.0) / 80.0) * gate
            result.append(p[0] * gate**4 * (module.VOLTS + 77.0))
        return np.array(result).T

    start, observed = np.array([20.0, 0.0]), flows([36.0, 4.0])
    value, gradient = nbta.value_and_grad(module.misfit)(start, observed, module.mended)
    np.testing.assert_allclose(value, np.mean((flows(start) - observed) ** 2), rtol=1e-10)
    expected = differences(lambda p: np.mean((flows(p) - observed) ** 2), start)
    np.testing.assert_allclose(gradient, expected, rtol=1e-5)
    slopes = differences(lambda p: flows(p).ravel(), fitted)
    errors = 40.0 * np.sqrt(np.diag(np.linalg.inv(slopes @ slopes.T)))
    assert np.all(np.abs(fitted - [36.0, 4.0]) < 3.0 * errors)
    assert np.all(errors < 0.1)


def test_scipy_optimisers(run):
    module, (found, covariance, observed) = run("scipy_optimisers")

    def epidemic(p):
        infection, recovery, infected = np.exp(p)
        susceptible, days = 1.0 - infected, []
        for step in range(600):
            if step % 10 == 0:
                days.append(infected)
            new = infection * susceptible * infected / 10
            susceptible = susceptible - new
            infected = infected + new - recovery * infected / 10
        return np.array(days)

    assert len(found) == 5
    slopes = np.array([epidemic(found["BFGS"] + h).imag / 1e-30 for h in 1e-30j * np.eye(3)])
    scaled = slopes / module.NOISE
    np.testing.assert_allclose(covariance, np.linalg.inv(scaled @ scaled.T), rtol=1e-4)
    errors = np.sqrt(np.diag(covariance))
    for p in found.values():
        left = scaled @ (epidemic(p) - observed) / module.NOISE
        assert np.all(np.abs(left) < 1e-4 / errors)  # the gradient is zero
        assert np.all(np.abs(p - module.TRUE) < 3 * errors)
    np.testing.assert_allclose(nbta.jacobian(module.epidemic)(found["BFGS"]), slopes.T, rtol=1e-9)


@pytest.mark.slow
def test_dask_cluster(run):
    pytest.importorskip("distributed")
    _, (fits, trains) = run("dask_cluster")

    def loss(p, times):  # sums over pairs of events
        base, jump, decay = np.exp(p)
        since = times[:, None] - times
        excited = jump * np.sum(np.where(since > 0, np.exp(-decay * np.abs(since)), 0.0), axis=1)
        expected = base * 50.0 + jump / decay * np.sum(1.0 - np.exp(-decay * (50.0 - times)))
        return expected - np.sum(np.log(base + excited))

    (one, value, gradient), other = fits[0], fits[1]
    for mine, same in zip(fits[0], other, strict=True):
        assert np.asarray(mine).tobytes() == np.asarray(same).tobytes()
    start = np.log([1.0, 1.0, 3.0])
    np.testing.assert_allclose(value, sum(loss(start, each) for each in trains), rtol=1e-12)
    slopes = np.array([complex_steps(loss, start, each) for each in trains])
    np.testing.assert_allclose(gradient, slopes.sum(axis=0), rtol=1e-10)
    slopes = np.array([complex_steps(loss, one, each) for each in trains])
    assert np.all(np.abs(slopes.sum(axis=0)) < 1e-2)
    errors = np.sqrt(np.diag(np.linalg.inv(slopes.T @ slopes)))
    assert np.all(np.abs(one - np.log([0.5, 1.2, 2.0])) < 3 * errors)


def test_profile_lines(run):
    module, (lines, (value, gradient), (place, velocity, mass)) = run("profile_lines")
    text = (EXAMPLES / "profile_lines.py").read_text("utf-8").splitlines()
    assert {"squared = np.sum(apart * apart, axis=1) + SOFTENING"} <= {line.text for line in lines}
    for line in lines:
        assert line.text.strip() == text[line.line - 1].strip()
        assert 0.0 <= line.gradient <= line.seconds

    def energy(direction):
        x, v = place + 1e-30j * direction, velocity.astype(complex)
        for _ in range(module.STEPS):
            apart = x - x[:, None]
            squared = np.sum(apart**2, axis=2) + module.SOFTENING
            v = v + module.STEP * np.sum((mass / squared**1.5)[:, :, None] * apart, axis=1)
            x = x + module.STEP * v
        return 0.5 * np.sum(mass * np.sum(v**2, axis=1))

    random = np.random.default_rng(1)
    for direction in random.normal(size=(3, *place.shape)):
        found = energy(direction)
        np.testing.assert_allclose(value, found.real, rtol=1e-12)
        np.testing.assert_allclose(np.sum(gradient * direction), found.imag / 1e-30, rtol=1e-9)
