"""Functions as operations of JAX, under all of its transformations."""

import numpy as np
import pytest
from interop_programs import NOISE, WEIGHTS, X, energy, growing, newton, several, squared

import nbta
from nbta.interop import to_jax

jax = pytest.importorskip("jax")
jnp = jax.numpy
check_grads = pytest.importorskip("jax.test_util").check_grads


@pytest.fixture(autouse=True)
def _double():
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)  # in all threads
    yield
    jax.config.update("jax_enable_x64", before)


@pytest.fixture(params=["eager", "jit"])
def run(request):
    return jax.jit if request.param == "jit" else lambda f: f


@pytest.mark.parametrize("compiled", [False, True])
def test_values_and_gradients_are_nbtas(run, compiled):
    f = to_jax(energy, compiled)
    assert run(f)(0.5, NOISE) == energy(0.5, NOISE)
    found = run(jax.value_and_grad(f, argnums=(0, 1)))(0.5, NOISE)
    value, slopes = nbta.value_and_grad(energy, argnums=(0, 1))(0.5, NOISE)
    assert found[0] == value
    for one, other in zip(found[1], slopes, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-14)


def test_jaxs_checker_agrees_to_the_third_order(run):
    check_grads(run(to_jax(energy, True)), (0.5, NOISE), order=3, rtol=1e-4, atol=1e-4)


def test_modes_and_orders_agree(run):
    f = to_jax(energy)
    want = nbta.hessian(energy, 1)(0.5, NOISE)
    ways = [jax.jacfwd(jax.jacrev(f, 1), 1), jax.jacrev(jax.jacfwd(f, 1), 1)]
    ways += [jax.jacrev(jax.jacrev(f, 1), 1), jax.jacfwd(jax.jacfwd(f, 1), 1), jax.hessian(f, 1)]
    for way in ways:
        np.testing.assert_allclose(run(way)(0.5, NOISE), want, rtol=1e-12)


def test_batches(run):
    f, rates = to_jax(energy), jnp.array([0.5, 0.7, 1.1])
    noises = np.stack([NOISE, NOISE[::-1], 0.5 * NOISE])
    for axes, args in ((0, None), (rates, NOISE)), ((None, 1), (0.5, noises.T)):
        many = run(jax.vmap(f, in_axes=axes))(*args)
        slopes = run(jax.vmap(jax.grad(f, 1), in_axes=axes))(*args)
        for k in range(3):
            one = [
                a if axis is None else np.take(np.asarray(a), k, axis)
                for a, axis in zip(args, axes, strict=True)
            ]
            np.testing.assert_allclose(many[k], energy(*map(np.asarray, one)), rtol=1e-14)
            np.testing.assert_allclose(slopes[k], nbta.grad(energy, 1)(*one), rtol=1e-14)
    total = run(jax.grad(lambda r: jnp.sum(jax.vmap(f, (0, None))(r, NOISE))))
    each = [nbta.grad(energy)(r, NOISE) for r in np.asarray(rates)]
    np.testing.assert_allclose(total(rates), each, rtol=1e-14)
    check_grads(run(jax.vmap(f)), (rates, noises), order=2, rtol=1e-4, atol=1e-4)
    twice = run(jax.vmap(jax.vmap(f, (0, None)), (None, 0)))(rates, noises)
    assert twice.shape == (3, 3)


def test_loops_of_jaxs_around_it(run):
    root = to_jax(newton)

    def steps(a):
        def step(x, _):
            return root(x + a), root(x)

        return jnp.sum(jax.lax.scan(step, a, None, length=3)[1])

    def halved(a):
        return jax.lax.while_loop(lambda x: x > 2.0, lambda x: root(x), a)

    check_grads(run(steps), (3.0,), order=2, rtol=1e-5, atol=1e-5)
    check_grads(run(jax.vmap(steps)), (np.array([3.0, 0.6]),), order=2, rtol=1e-5, atol=1e-5)
    assert 1.0 < run(halved)(100.0) < 2.0
    slope = run(jax.vmap(jax.grad(steps)))(np.array([3.0, 0.6]))
    np.testing.assert_allclose(slope, [jax.grad(steps)(3.0), jax.grad(steps)(0.6)], rtol=1e-12)
    tangent = jax.linearize(steps, 3.0)[1]
    batch = jax.vmap(tangent)(jnp.arange(3.0))
    np.testing.assert_allclose(batch, tangent(1.0) * np.arange(3.0), rtol=1e-14)
    (back,) = jax.linear_transpose(jax.vmap(tangent), jnp.zeros(3))(jnp.arange(3.0))
    np.testing.assert_allclose(back, batch, rtol=1e-14)


def test_structures_integers_and_options(run):
    f = to_jax(several)
    found, want = run(f)(WEIGHTS, X), several(WEIGHTS, X)
    assert found.keys() == want.keys()
    for key, value in want.items():
        np.testing.assert_allclose(found[key], value, rtol=1e-14)
    assert found["largest"].dtype == jnp.int64

    def loss(p, x):
        results = f(p, x, power=3)
        return results["norm"] + results["y"][0]

    slope = run(jax.grad(loss))(WEIGHTS, X)
    want = nbta.grad(lambda p, x: np.sum(several(p, x)["y"] ** 3) + several(p, x)["y"][0])
    for key, found in want(WEIGHTS, X).items():
        np.testing.assert_allclose(slope[key], found, rtol=1e-12)
    assert run(jax.grad(to_jax(lambda x, k: x**k)))(3.0, 2) == 6.0


def test_complex_numbers_have_jaxs_conventions(run):
    z, ours, theirs = 1.5 - 0.5j, to_jax(squared), lambda z: z * z * jnp.conj(z) + 2.0 * z
    for way in (jax.grad(lambda z, f: jnp.abs(f(z)) ** 2), jax.grad(lambda z, f: f(z).imag)):
        np.testing.assert_allclose(run(lambda z, w=way: w(z, ours))(z), way(z, theirs), rtol=1e-14)
    along = [jax.jvp(f, (z,), (0.3 + 1j,))[1] for f in (ours, theirs)]
    np.testing.assert_allclose(*along, rtol=1e-14)


def test_without_double_precision_all_is_single():
    jax.config.update("jax_enable_x64", False)
    f = to_jax(energy)
    value, slope = jax.jit(jax.value_and_grad(f))(0.5, NOISE)
    assert (value.dtype, slope.dtype) == (jnp.float32, jnp.float32)
    np.testing.assert_allclose(slope, nbta.grad(energy)(0.5, NOISE), rtol=1e-6)


def test_errors(run):
    grown = to_jax(growing)
    np.testing.assert_array_equal(grown(100.0), [100.0, 50.0, 25.0, 12.5])
    with pytest.raises(nbta.UnimplementedError, match=r"to_jax of .*the shape of result 0 is"):
        jax.jit(grown)(100.0)
    with pytest.raises(nbta.InvalidArgumentError, match=r"args\[0\] is .*object.*; give arrays"):
        to_jax(energy)(object(), NOISE)
    with pytest.raises(Exception, match="there is no index 3"):
        run(to_jax(lambda x: x[3]))(X)


def test_optimisers_and_samplers_take_it():
    optax, blackjax = pytest.importorskip("optax"), pytest.importorskip("blackjax")
    f = to_jax(lambda p, x: np.sum((np.tanh(p["a"] * x) - p["b"]) ** 2))
    params, solver = {"a": jnp.array(0.5), "b": jnp.array(0.0)}, optax.adam(0.1)
    state = solver.init(params)

    @jax.jit
    def update(params, state):
        updates, state = solver.update(jax.grad(f)(params, X), state)
        return optax.apply_updates(params, updates), state

    before = f(params, X)
    for _ in range(20):
        params, state = update(params, state)
    assert f(params, X) < before

    density = to_jax(lambda x: -0.5 * np.sum(x**2))
    kernel = blackjax.nuts(density, step_size=0.5, inverse_mass_matrix=jnp.ones(2))
    first = kernel.init(jnp.zeros(2))
    keys = jax.random.split(jax.random.key(0), 300)
    step = jax.jit(lambda state, key: (kernel.step(key, state)[0],) * 2)
    _, states = jax.lax.scan(step, first, keys)
    assert abs(states.position.mean()) < 0.3
    assert 0.6 < states.position.std() < 1.4


def decay(y, rates):
    slope = np.zeros(len(y))
    for i in range(len(y)):
        slope[i] = -rates[i] * y[i]
        if i > 0:
            slope[i] += rates[i - 1] * y[i - 1]
    return slope


def test_solvers_of_differential_equations_take_it():
    diffrax = pytest.importorskip("diffrax")
    f, rates, start = to_jax(decay), jnp.array([1.0, 0.5]), jnp.array([1.0, 0.0])

    def end(rates):
        solved = diffrax.diffeqsolve(
            diffrax.ODETerm(lambda t, y, rates: f(y, rates)),
            diffrax.Tsit5(),
            t0=0.0,
            t1=1.0,
            dt0=0.1,
            y0=start,
            args=rates,
            stepsize_controller=diffrax.PIDController(rtol=1e-9, atol=1e-12),
        )
        return solved.ys[-1]

    def exact(rates):
        one, other = jnp.exp(-rates)
        return jnp.array([one, rates[0] / (rates[1] - rates[0]) * (one - other)])

    np.testing.assert_allclose(jax.jit(end)(rates), exact(rates), rtol=1e-7)
    np.testing.assert_allclose(jax.jacrev(end)(rates), jax.jacrev(exact)(rates), rtol=1e-5)


def test_root_finders_and_least_squares_take_it():
    optimistix = pytest.importorskip("optimistix")
    f = to_jax(lambda x, a: np.array([x[0] ** 2 - a, x[1] ** 3 - x[0] * a]))

    def root(a):
        solver = optimistix.Newton(rtol=1e-12, atol=1e-12)
        return optimistix.root_find(f, solver, jnp.array([1.0, 1.0]), args=a).value

    np.testing.assert_allclose(root(2.0), [2.0**0.5, 2.0**0.5], rtol=1e-10)
    np.testing.assert_allclose(jax.jacfwd(root)(2.0), [2.0**-1.5, 2.0**-1.5], rtol=1e-8)
    solver = optimistix.LevenbergMarquardt(rtol=1e-10, atol=1e-10)
    found = optimistix.least_squares(to_jax(decay), solver, jnp.array([1.0, 1.0]), args=X[:2])
    np.testing.assert_allclose(found.value, 0.0, atol=1e-6)


def test_models_of_numpyro_take_it():
    numpyro = pytest.importorskip("numpyro")
    misfit = to_jax(lambda rate: 20.0 * np.sum((np.tanh(rate * X) - np.tanh(0.4 * X)) ** 2))

    def model():
        rate = numpyro.sample("rate", numpyro.distributions.Uniform(0.0, 1.0))
        numpyro.factor("misfit", -misfit(rate))

    sampler = numpyro.infer.MCMC(
        numpyro.infer.NUTS(model), num_warmup=100, num_samples=200, progress_bar=False
    )
    sampler.run(jax.random.key(0))
    drawn = np.asarray(sampler.get_samples()["rate"])
    grid = np.linspace(0.0, 1.0, 201)
    weights = np.exp([-float(misfit(rate)) for rate in grid])
    assert abs(drawn.mean() - np.average(grid, weights=weights)) < 0.1
