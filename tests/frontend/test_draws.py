"""Random numbers that functions draw by NumPy, Python and Numba."""

import random

import numba
import numpy as np
import pytest

import nbta
from nbta.testing import check_grads

pytestmark = pytest.mark.filterwarnings("ignore::nbta.PerformanceWarning")


@numba.njit
def _seed_numbas(seed):
    np.random.seed(seed)
    random.seed(seed)


def seed(number):
    np.random.seed(number)
    random.seed(number)
    _seed_numbas(number)


def walk(x, n):
    place = x
    for _ in range(n):
        place += np.random.normal(0.1 * place, x)
        if np.random.random() < 0.4:
            place *= np.random.uniform(0.5 * x, x)
    return place


def sizes(x, n):
    shape = x.shape if np.ndim(x) else (n, 2)
    z = np.random.normal(size=shape) + np.random.standard_normal(n)[0]
    return np.sum(x * z) + np.sum(np.random.rand(2, n) * x) + np.random.randn() * np.random.ranf()


def scaled(x, n):
    shift = np.random.laplace(x, x) + np.random.logistic(x, 2.0) + np.random.gumbel(x, x)
    wait = np.random.exponential(x) * np.random.rayleigh(x) + np.random.lognormal(x, 0.3 * x)
    return shift * wait + np.sum(np.random.normal(x, x, (n, 3)) ** 2)


def counts(x, n):
    drawn = np.random.poisson(3.0 * x) + np.random.binomial(n, 1.0 / (1.0 + x))
    return x * drawn + np.sum(np.random.randint(1, 9 * n, size=(2, 3))) * x


def pythons(x, n):
    found = random.gauss(x, 1.0) * random.random() + random.uniform(0.0, x)
    for _ in range(n):
        found += random.randint(1, 5) * x + random.expovariate(x) * random.choice([1.0, 2.0])
    return found


def of_items(x, n):
    y = np.stack([x, x**2, 2.0 * x, np.sin(x)])
    order, some = np.random.permutation(y), np.random.choice(y, 5)
    np.random.shuffle(y)
    return order[0] * order[1] + np.sum(some * np.arange(5)) + np.sum(y * np.arange(4.0))


def in_branches(x, n):
    total = 0.0
    for i in range(n):
        if x * i > 3.0:
            total += np.random.normal() * x**2
        elif i % 2:
            total += np.random.exponential()
    return total * x


def seeded(x, n):
    np.random.seed(n)
    first = np.random.normal()
    np.random.seed(n)
    return x * first * np.random.normal()


def made_inside(x, n):
    state, rng, order = np.random.RandomState(4), np.random.default_rng(7), [1.0, 2.0, 3.0]
    state.shuffle(order)
    x = x * order[0]
    z = rng.normal(size=3) * rng.integers(1, 5)
    return np.sum(state.normal(x, 2.0 * x, size=(2, 3))) + state.rand() * x + np.sum(z * x)


OWN = np.random.default_rng(11)


def own_generator(x, n):
    return x * OWN.normal(x) + sum(OWN.random() * x for _ in range(3))


FUNCTIONS = [walk, sizes, scaled, counts, pythons, of_items, in_branches, seeded, made_inside]


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_numbers_are_pythons(function, compiled):
    found = nbta.value_and_grad(function, compiled=compiled)
    for start in (1, 2):  # each call draws anew
        seed(start)
        value, slope = found(1.3, 6)
        after = np.random.get_state()[2], random.getstate()[1][-1]
        seed(start)
        assert value == pytest.approx(function(1.3, 6), rel=1e-12)
        assert after == (np.random.get_state()[2], random.getstate()[1][-1])
        ends = []
        for x in (1.3 + 1e-6, 1.3 - 1e-6):
            seed(start)
            ends.append(function(x, 6))
        assert slope == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-6)


@numba.njit
def numbas(x, n):
    total = np.random.normal() * x
    for _ in range(n):
        total += x * np.random.normal(x, 0.5 * x) + np.random.uniform(x, 2.0 * x)
        if np.random.rand() < 0.5:
            total += np.random.randint(3) * x * random.random()
    return total + np.sum(np.random.standard_normal(3) * x)


@pytest.mark.parametrize("compiled", [False, True])
def test_functions_of_numba_have_its_generators(compiled):
    found = nbta.value_and_grad(numbas, compiled=compiled)
    for start in (1, 2):
        seed(start)
        before = np.random.get_state()[1:3]
        value, slope = found(1.3, 40)
        np.testing.assert_equal(np.random.get_state()[1:3], before)  # NumPy's is left alone
        seed(start)
        assert value == pytest.approx(numbas(1.3, 40), rel=1e-12)
        ends = []
        for x in (1.3 + 1e-6, 1.3 - 1e-6):
            seed(start)
            ends.append(numbas(x, 40))
        assert slope == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-6)


@pytest.mark.filterwarnings("error::nbta.PerformanceWarning")
def test_numbas_generators_draw_in_machine_code():
    @numba.njit
    def total(x):
        s = 0.0
        for _ in range(100):
            s += x * np.random.normal()
        return s

    nbta.grad(total, compiled=True)(1.0)


@pytest.mark.parametrize("compiled", [False, True])
def test_a_generator_from_outside_goes_on(compiled):
    global OWN
    found = nbta.value_and_grad(own_generator, compiled=compiled)
    for start in (11, 12):
        OWN = np.random.default_rng(start)
        values = [found(1.3, 0)[0], found(1.3, 0)[0]]
        OWN = np.random.default_rng(start)
        assert values == pytest.approx([own_generator(1.3, 0), own_generator(1.3, 0)])


def test_to_second_order_and_in_batches():
    def loss(x):
        np.random.seed(3)
        return in_branches(x, 6) * walk(x, 4)

    check_grads(loss, (1.3,))
    np.testing.assert_allclose(
        nbta.vmap(loss)(np.array([0.9, 1.3])), [loss(0.9), loss(1.3)], rtol=1e-12
    )


def test_a_run_that_fails_draws_once():
    def filled(x, n):
        found = np.zeros(5)
        for i in range(n):
            found[i] = x * np.random.normal()
        return np.sum(found)

    for compiled in (False, True):
        f = nbta.function(filled, compiled=compiled)
        f(1.0, 5)
        for _ in range(2):
            np.random.seed(1)
            with pytest.raises(nbta.InvalidArgumentError, match="out of range"):
                f(1.0, 6)
            state = np.random.get_state()[2]
            np.random.seed(1)
            np.random.normal(size=6)
            assert state == np.random.get_state()[2]


def _scan(x):
    def step(c, t):
        return c * np.random.normal(x), None

    return nbta.scan(step, x, np.arange(10.0), checkpoint="sqrt")[0]


REFUSED = {
    "a shape parameter": (lambda x: np.random.gamma(x), "of gamma() with respect to"),
    "integers by arrays": (
        lambda x: x * np.sum(np.random.poisson(np.array([x, 2.0]))), "poisson() with respect to"),
    "state": (lambda x: np.random.get_state()[1][0] * x, "get_state() of a generator"),
    "a source by the run": (lambda x: np.random.PCG64(int(x)).random_raw() * x, "seed of PCG64"),
    "no seed": (lambda x: x * np.random.default_rng().normal(), "default_rng without a seed"),
    "no seed of a state": (lambda x: x * np.random.RandomState().rand(), "without a seed"),
    "checkpoint": (_scan, "loop with checkpoint="),
    "a list": (lambda x: random.shuffle([x, 1.0]), "shuffle() of a list"),
    "a text": (lambda x: random.choice(["a", "b"]), "returns neither a number nor an"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name):
    function, message = REFUSED[name]
    with pytest.raises(nbta.NbtaError) as caught:
        nbta.grad(function)(2.0)
    assert message in str(caught.value)


@pytest.mark.parametrize("compiled", [False, True])
def test_a_negative_scale_is_numpys_error(compiled):
    f = nbta.grad(lambda x, s: np.random.normal(x, s), compiled=compiled)
    f(1.0, 2.0)
    with pytest.raises(ValueError, match="scale < 0"):
        f(1.0, -2.0)
