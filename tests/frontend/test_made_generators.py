"""Generators of random numbers that a function makes: in loops, branches, objects and batches."""

import copy
import random

import numpy as np
import pytest
import scipy.stats

import nbta
from nbta.testing import check_grads

pytestmark = pytest.mark.filterwarnings("ignore::nbta.PerformanceWarning")

X = np.array([0.13, 0.42, 0.71, 1.04])


def in_nested_loops(x):
    rng, total = np.random.default_rng(1), 0.0
    for i in range(len(x)):
        for _ in range(12):
            if rng.random() < 0.5:
                total += x[i] * rng.normal()
            else:
                total -= x[i] ** 2 * rng.integers(5)
    return total + rng.normal() * x[0]


def many_paths(x):
    rng, total = np.random.default_rng(0), 0.0
    for _ in range(300):
        total += max(x[3] * np.exp(x[1] * rng.standard_normal()) - 1.0, 0.0)
    return total / 300


def accepted(x):
    rng, state, count = np.random.default_rng(1), x[0], 0
    for _ in range(60):
        new = state + 0.3 * rng.normal()
        if rng.random() < np.exp((state**2 - new**2) * x[1]):
            state = new * x[2]
            count += 1
    return state * count


def until(x):
    rng, total, steps = np.random.RandomState(0), x[0], 0
    while total < 3.0 and steps < 100:
        total *= 1.05 + x[1] * rng.randn()
        steps += 1
    return total * steps + rng.rand() * x[0]


def returned_early(x):
    rng = np.random.RandomState(1)
    for _ in range(50):
        z = rng.normal()
        if z * x[0] > 0.15:
            return z * x[1] + rng.normal() * x[0]
    return x[0]


def made_in_a_loop(x):
    total = 0.0
    for i in range(len(x) + 20):
        rng = np.random.default_rng(5)
        total += x[i % 4] * rng.normal() + rng.normal()
    return total


def seeded_by_the_run(x):
    total = np.sum(np.random.RandomState(int(x[0] * 50)).normal(size=4) * x)
    for i in range(len(x) + 20):
        rng, other = np.random.default_rng(i), np.random.default_rng([3, i])
        total += x[i % 4] * rng.normal() + other.normal() * x[0]
    return total + random.Random(int(x[1] * 49)).random() * x[2]


def of_shared_bits(x):
    bits, total = np.random.PCG64(4), 0.0
    one, other = np.random.Generator(bits), np.random.Generator(bits)
    for i in range(len(x)):
        total += one.normal() * x[i] + other.normal()
    return total + one.normal() * x[0]


def of_many_bits(x):
    first, second = np.random.SeedSequence(5).spawn(2)
    made = [np.random.MT19937(first), np.random.Philox(second), np.random.SFC64(3)]
    total = 0.0
    for i in range(len(x)):
        for bits in made:
            total += np.random.Generator(bits).normal() * x[i]
    return total


def copied(x):
    one, total = np.random.default_rng(4), 0.0
    one.normal()
    other = copy.deepcopy(one)
    for i in range(len(x)):
        total += one.normal() * x[i] + other.normal() * x[0]
    return total


def of_scipy(x):
    rng = np.random.default_rng(4)
    z = scipy.stats.norm.rvs(size=4, random_state=rng) * rng.normal(size=4)
    return np.sum(x * z * scipy.stats.gamma.rvs(2.0, size=4, random_state=rng))


def of_python(x):
    rng, total = random.Random(3), 0.0
    for i in range(len(x) + 11):
        total += rng.gauss(0, 1) * x[i % 4] + rng.uniform(1, 2) * x[0] + rng.randint(1, 6) * x[1]
    return total + rng.random()


def of_a_state(x):
    rng, total = np.random.RandomState(3), 0.0
    rng.normal()
    for i in range(len(x) + 11):
        total += rng.normal() * x[i % 4] + rng.randint(1, 6) * x[1] + rng.choice(4) * x[0]
    return total + np.sum(rng.permutation(x) * np.arange(4))


def of_sizes(x):
    rng, total = np.random.default_rng(3), 0.0
    for i in range(len(x)):
        total += np.sum(rng.normal(size=i + 1) * x[i]) + np.sum(rng.standard_normal(3) * x[:3])
    return total + np.sum(rng.random(int(x[0] * 50)) * x[1])


def of_items(x):
    rng, total = np.random.default_rng(3), 0.0
    for _ in range(len(x) + 10):
        y = x.copy()
        rng.shuffle(y)
        total += y[0] * y[1] + np.sum(x[rng.permutation(len(x))] * np.arange(4))
        total += np.sum(rng.choice(x, 3, replace=False) * np.arange(3))
        total += np.sum(rng.choice(x, 2, p=[0.1, 0.2, 0.3, 0.4]))
        i, j = rng.choice(4, 2, replace=False)
        total += x[i] * x[j] ** 2
    return total


def of_rows_and_columns(x):
    rng, m = np.random.default_rng(3), np.outer(x, x**2)
    p, q = rng.permutation(m, axis=1), rng.choice(m, 2, axis=1, shuffle=False)
    rng.shuffle(m, axis=1)
    rng.shuffle(m)
    places = np.arange(16.0).reshape(4, 4)
    return np.sum(p * places) + np.sum(q * places[:, :2]) + np.sum(m * places**2)


def of_a_state_without_return(x):
    rng, weights = np.random.RandomState(0), np.array([0.5, 0.2, 0.2, 0.1])
    found = np.sum(rng.choice(x, 3, replace=False) * np.arange(3))
    np.random.seed(2)
    found += np.sum(np.random.choice(x, (2, 2), False, weights) * np.arange(4).reshape(2, 2))
    return found + np.sum(np.random.choice(x, 4, p=weights) * np.arange(4))


def scaled(x):
    rng, total = np.random.default_rng(3), 0.0
    for i in range(len(x)):
        total += rng.normal(x[i], x[0] ** 2) + rng.uniform(x[0], x[i] + 2) + rng.exponential(x[i])
        total += np.sum(rng.lognormal(x[i], 0.3, size=2))
    return total


def counts(x):
    rng, total = np.random.default_rng(3), 0.0
    for i in range(len(x)):
        total += rng.poisson(i + 2.0) * x[i] + rng.binomial(i + 3, 0.4) * x[0]
        total += rng.integers(0, i + 1) * x[1] + rng.integers(i, i + 9, size=2)[0] * x[2]
    return total


class Walk:
    def __init__(self, seed):
        self.rng, self.steps = np.random.default_rng(seed), 0

    def step(self, v):
        self.steps += 1
        return v + self.rng.normal() * v * 0.1


def of_an_object(x):
    walk, v = Walk(2), x[0]
    while v < 0.5:
        v = walk.step(v) + 0.05
    return v * walk.steps + walk.step(x[1])


def drawn(rng, v):
    return v * rng.normal() if v > 0.3 else v * rng.random()


def passed_on(x):
    rng = np.random.default_rng(8)
    return sum(drawn(rng, v) for v in x) + sum([drawn(rng, v) for v in x]) + drawn(rng, x[1])


def tried(x):
    rng, total = np.random.default_rng(1), 0.0

    def step(i):
        nonlocal total
        try:
            total += rng.normal() * x[i]
        finally:
            total += rng.random() * x[0]

    for i in range(len(x)):
        step(i)
    return total


def of_one_of_two(x):
    made, total = {"a": np.random.default_rng(1), "b": np.random.default_rng(2)}, 0.0
    for i in range(len(x)):
        if x[i] > 0.5:
            total += made["a"].normal() * x[i]
        else:
            total += made["b"].normal() * x[i]
    return total * made["a"].random()


def in_long_iterations(x):
    rng, v = np.random.default_rng(1), x
    for _ in range(4):
        for _ in range(7):
            for _ in range(8):
                v = 0.9 * np.sin(v * rng.normal()) + 0.1 * np.cos(v) + np.tanh(v * rng.random()) / 9
                v = v + 0.1 * np.exp(-v * v) - 0.01 * np.sqrt(1.0 + v * v) + 0.1 * np.log1p(v * v)
    return np.sum(v)


PROGRAMS = [
    in_nested_loops, many_paths, accepted, until, returned_early, made_in_a_loop,
    seeded_by_the_run, of_shared_bits, of_many_bits, copied, of_scipy, of_python, of_a_state,
    of_sizes, of_items, of_rows_and_columns, of_a_state_without_return, scaled, counts,
    of_an_object, passed_on, tried, of_one_of_two, in_long_iterations,
]  # fmt: skip


def differences(f, x):
    steps = 1e-6 * np.eye(len(x))
    return np.array([(f(x + step) - f(x - step)) / 2e-6 for step in steps])


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_numbers_are_numpys_in_each_call(f, compiled):
    found = nbta.value_and_grad(f, compiled=compiled)
    want, slope = f(X), differences(f, X)
    for _ in range(2):
        value, gradient = found(X)
        np.testing.assert_allclose(value, want, 1e-11)
        np.testing.assert_allclose(gradient, slope, 1e-5, 1e-6)
    other = X[::-1].copy()
    np.testing.assert_allclose(found(other)[0], f(other), 1e-11)


@pytest.mark.parametrize("compiled", [False, True])
def test_items_of_batches_have_their_own(compiled):
    items = np.stack([X, X[::-1], 0.5 * X, X**2] * 8)
    for f in (in_nested_loops, until, of_a_state):
        value, slope = nbta.value_and_grad(f, batch_axis=(0,), compiled=compiled)(items)
        np.testing.assert_allclose(value, sum(map(f, items)), 1e-11)
        np.testing.assert_allclose(slope[1], differences(f, items[1]), 1e-5, 1e-6)
        found = nbta.vmap(f, compiled=compiled)(items)
        np.testing.assert_allclose(found, list(map(f, items)), 1e-11)


def test_to_second_order_and_in_loops_that_run_again():
    check_grads(in_nested_loops, (X,))
    check_grads(scaled, (X,))

    def loss(x):
        def step(c, v):
            rng = np.random.default_rng(3)
            for _ in range(12):
                c = c * 0.9 + rng.normal() * v
            return c, c

        return nbta.scan(step, 0.0, x, checkpoint="sqrt")[0]

    check_grads(loss, (X,))


OUTER = np.random.default_rng(0)


def _read_after_a_loop(x):
    rng, total = np.random.default_rng(0), 0.0
    for v in x:
        for _ in range(int(v * 20)):
            total += rng.normal()
    return rng, total


REFUSED = {
    "no seed of a source": (
        lambda x: np.random.Generator(np.random.PCG64()).normal() * x[0], "PCG64 without a seed"),
    "a copy after a loop": (
        lambda x: copy.deepcopy(_read_after_a_loop(x)[0]).normal() * x[0], "follow deepcopy"),
    "SciPy after a loop": (
        lambda x: scipy.stats.norm.rvs(random_state=_read_after_a_loop(x)[0]) * x[0],
        "rvs, which is given a generator that has drawn"),
    "a state after a loop": (
        lambda x: _read_after_a_loop(x)[0].bytes(1)[0] * x[0], "bytes() of a generator whose"),
    "SciPy by one from outside": (
        lambda x: scipy.stats.norm.rvs(random_state=OUTER) * x[0], "would draw once for all runs"),
    "SciPy by NumPy's": (lambda x: scipy.stats.norm.rvs() * x[0], "would draw once for all runs"),
    "a copy of one from outside": (
        lambda x: copy.deepcopy(OUTER).normal() * x[0], "a copy of a generator"),
    "out=": (lambda x: OUTER.random(out=np.zeros(3))[0] * x[0], "random(out=) needs a generator"),
    "chances of the run": (
        lambda x: np.sum(np.random.default_rng(1).choice(x, 2, p=x / np.sum(x))),
        "of choice() with respect to parameters that only the run knows"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name):
    f, words = REFUSED[name]
    before = OUTER.bit_generator.state, np.random.get_state()[2]
    with pytest.raises(nbta.NbtaError) as caught:
        nbta.grad(f)(X)
    assert words in str(caught.value)
    assert before == (OUTER.bit_generator.state, np.random.get_state()[2])


def test_functions_given_to_loops_of_nbtas_make_their_own():
    def loss(x):
        rng = np.random.default_rng(1)
        return nbta.scan(lambda c, v: (c + rng.normal() * v, None), 0.0, x)[0]

    with pytest.raises(
        nbta.InvalidArgumentError, match="draws from a generator that was made outside"
    ):
        nbta.grad(loss)(X)
