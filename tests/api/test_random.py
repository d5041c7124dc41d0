"""Random numbers by key and counter."""

import numpy as np
import pytest
from scipy import special, stats

import nbta
from nbta import random
from nbta.codegen.philox import below, philox

# Of Random123's kat_vectors, philox 4x32 10: counter, key, result.
KNOWN = [
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D)),
    ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2, (0x408F276D, 0x41C83B0E)),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344), (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB),
    ),
]  # fmt: skip


def whole(low, high):
    return np.uint64(low | high << 32)


@pytest.mark.parametrize(("counter", "key", "result"), KNOWN)
@pytest.mark.parametrize("function", [philox, philox.py_func], ids=["compiled", "NumPy"])
def test_known_answers(function, counter, key, result):
    found = function(whole(*key), whole(*counter[:2]), whole(*counter[2:]))
    assert found == whole(*result)


def test_products_of_128_bits():
    generator = np.random.default_rng(0)
    for bits, span in generator.integers(0, 2**64, (50, 2), np.uint64, endpoint=False):
        assert below.py_func(bits, span) == int(bits) * int(span) >> 64
        assert below(bits, span) == int(bits) * int(span) >> 64


def drawn(key, dtype):
    one, other = random.split(key, 2)
    return (
        random.normal(one, (3, 50), dtype),
        random.uniform(other, 70, dtype),
        random.exponential(random.fold_in(key, 3), (60,), dtype),
        random.integers(key, (2, 40), -5, 6),
        random.permutation(key, 12),
        random.permutation(key, np.arange(10.0).reshape(5, 2)),
        random.normal(key, (), dtype),
        random.gamma(key, [[0.01], [0.7], [1.0], [40.0]], (4, 30), dtype),
        random.gamma(one, 2.5, dtype=dtype),
    )


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_the_same_bits_eagerly_and_by_both_executors(dtype):
    for seed in (0, 2**63 + 5):
        key = random.key(seed)
        want = drawn(key, dtype)
        for compiled in (False, True):
            found = nbta.function(lambda k: drawn(k, dtype), compiled=compiled)(key)
            for a, b in zip(found, want, strict=True):
                assert np.asarray(a).dtype == np.asarray(b).dtype
                np.testing.assert_array_equal(a, b)
    assert want[0].dtype == dtype


@pytest.mark.parametrize("compiled", [False, True])
def test_keys_in_loops(compiled):
    key = random.key(11)

    def walk(key, n):
        x = 0.0
        for t in range(n):
            x = x + random.normal(random.fold_in(key, t))
        return x

    want = 0.0
    for t in range(20):
        want = want + random.normal(random.fold_in(key, t))
    assert nbta.function(walk, compiled=compiled)(key, 20) == want


def test_bounds():
    key = random.key(4)
    want = 5.0 * random.uniform(key, 100) - 2.0
    for compiled in (False, True):
        found = nbta.function(lambda k: random.uniform(k, 100, minval=-2.0, maxval=3.0),
                              compiled=compiled)(key)  # fmt: skip
        np.testing.assert_allclose(found, want, atol=1e-15)


def test_distributions():
    one, two, three, four = random.split(random.key(1), 4)
    for values, name in (
        (random.normal(one, 20000), "norm"),
        (random.uniform(two, 20000), "uniform"),
        (random.exponential(three, 20000), "expon"),
        (random.normal(one, 20000, "float32"), "norm"),
    ):
        assert stats.kstest(values, name).pvalue > 1e-3
    counts = np.bincount(random.integers(four, 20000, 0, 10), minlength=10)
    assert stats.chisquare(counts).pvalue > 1e-3
    assert sorted(random.permutation(four, 100).tolist()) == list(range(100))


def test_keys_are_apart():
    key = random.key(0)
    keys = [key, *random.split(key, 100), *(random.fold_in(k, 0) for k in random.split(key, 100))]
    assert len({int(k) for k in keys}) == 201
    assert random.fold_in(key, -1) == random.fold_in(key, 2**64 - 1)


def test_pathwise_gradients():
    def price(vol):
        noise = random.normal(random.key(7), (50,))
        return np.mean(np.exp(vol * noise) * random.uniform(random.key(8), (50,), maxval=vol))

    nbta.testing.check_grads(price, (0.3,))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: random.normal(0, (2,)), "a key is one uint64"),
        (lambda: random.normal(random.split(random.key(0)), (2,)), "a key is one uint64"),
        (lambda: random.key(0.5), "not an integer"),
        (lambda: random.fold_in(random.key(0), 0.5), "not an integer"),
        (lambda: random.uniform(random.key(0), 2, "int32"), "give float32 or float64"),
        (lambda: random.integers(random.key(0), 2, 3, 3), r"no integer is in \[3"),
        (lambda: random.gamma(random.key(0), 1.0, (2,), "float16"), "give float32 or float64"),
        (lambda: random.gamma(random.key(0), [1.0, 2.0], (3,)), "broadcast"),
        (lambda: random.gamma(random.key(0), [1.0, 2.0], ()), "broadcast"),
        (lambda: random.gamma(0, 1.0), "a key is one uint64"),
    ],
    ids=[
        "number",
        "keys",
        "seed",
        "data",
        "dtype",
        "integers",
        "half",
        "shape",
        "rank",
        "gamma",
    ],
)
def test_what_is_refused(call, words):
    with pytest.raises(nbta.InvalidArgumentError, match=words):
        call()


ORDERS = (0.05, 0.5, 1.0, 1.7, 20.0, 1e4)


@pytest.mark.parametrize("a", ORDERS)
def test_gamma_variates(a):
    law = stats.gamma(a)
    found = np.concatenate([random.gamma(random.key(seed), a, 20000) for seed in range(10)])
    assert stats.kstest(np.log(found), lambda t: law.cdf(np.exp(t))).pvalue > 1e-3
    for power in (1, 2, 3):
        error = np.sqrt((law.moment(2 * power) - law.moment(power) ** 2) / found.size)
        assert abs(np.mean(found**power) - law.moment(power)) < 4 * error
    narrow = random.gamma(random.key(0), a, 20000, "float32")
    wide = random.gamma(random.key(0), np.float32(a), 20000)
    np.testing.assert_array_equal(narrow, wide.astype(np.float32))


@pytest.mark.parametrize("compiled", [False, True])
def test_gamma_at_the_edges(compiled):
    drawn = nbta.function(lambda a: random.gamma(random.key(5), a), compiled=compiled)
    found = drawn(np.array([0.0, -0.0, -1.0, -np.inf, np.nan, np.inf, 1e-310, 1e300]))
    np.testing.assert_array_equal(found[:-1], [0, 0, np.nan, np.nan, np.nan, np.inf, 0])
    np.testing.assert_allclose(found[-1], 1e300)
    assert drawn(np.zeros(0)).shape == (0,)
    slope = nbta.grad(lambda a: nbta.sum(random.gamma(random.key(5), a)), compiled=compiled)
    np.testing.assert_array_equal(slope(np.array([1e-4, 0.0, -1.0]))[1:], np.nan)
    assert slope(np.array([1e-6])) == 0.0  # of a number that is too small to be any but 0


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_gradients_of_gamma_variates(compiled, dtype):
    """A number moves with its order as the quantile does that it is."""
    orders = np.array([0.3, 0.9, 1.0, 2.5, 30.0])
    x = random.gamma(random.key(9), orders, (40, 5), dtype)
    f = nbta.grad(lambda a: nbta.sum(random.gamma(random.key(9), a, (40, 5), dtype)),
                  compiled=compiled)  # fmt: skip
    level, h = special.gammainc(orders, x.astype(float)), 1e-3 * orders
    ends = [special.gammaincinv(orders + k * h, level) for k in (-3, -2, -1, 1, 2, 3)]
    want = np.dot([-1, 9, -45, 45, -9, 1], np.reshape(ends, (6, -1))).reshape(40, 5) / (60 * h)
    np.testing.assert_allclose(f(orders), want.sum(0), rtol=1e-8 if dtype == "float64" else 1e-4)


@pytest.mark.parametrize("compiled", [False, True])
def test_gradients_of_gamma_expectations(compiled):
    """Of f(x) = x**2 and log(x), whose expectations are a (a + 1) and digamma(a)."""

    def means(a):
        x = random.gamma(random.key(2), a, (100000, 3))
        return nbta.mean(x * x, 0), nbta.mean(nbta.log(x), 0)

    orders = np.array([0.6, 2.0, 9.0])
    for place, want in ((0, 2 * orders + 1), (1, special.polygamma(1, orders))):
        slope = nbta.grad(lambda a, i=place: nbta.sum(means(a)[i]), compiled=compiled)(orders)
        np.testing.assert_allclose(slope, want, rtol=0.03)


def test_what_is_computed_of_gamma_variates():
    """Beta and Dirichlet variates, whose gradients go through those of several orders."""

    def beta(a, b):
        one, other = random.split(random.key(4))
        x, y = random.gamma(one, a, 50000), random.gamma(other, b, 50000)
        return nbta.mean(x / (x + y))

    a, b = 2.0, 3.0
    value, slopes = nbta.value_and_grad(beta, argnums=(0, 1))(a, b)
    np.testing.assert_allclose(value, a / (a + b), rtol=0.01)
    np.testing.assert_allclose(slopes, [b / (a + b) ** 2, -a / (a + b) ** 2], rtol=0.03)


@pytest.mark.parametrize("compiled", [False, True])
def test_second_derivatives_of_gamma_variates(compiled):
    def f(a):
        return random.gamma(random.key(0), a)

    for a in (0.4, 2.0, 30.0):
        x, h = f(a), 1e-3 * a
        level = special.gammainc(a, x)
        ends = np.array([special.gammaincinv(a + k * h, level) for k in (-2, -1, 0, 1, 2)])
        want = np.dot([-1, 16, -30, 16, -1], ends) / (12 * h * h)
        second = nbta.grad(nbta.grad(f), compiled=compiled)(a)
        np.testing.assert_allclose(second, want, rtol=1e-5, atol=1e-9)
    scale = nbta.grad(nbta.grad(lambda s: nbta.exp(s * f(2.0))), compiled=compiled)(0.1)
    x = f(2.0)
    np.testing.assert_allclose(scale, x * x * np.exp(0.1 * x))
    assert nbta.jvp(f, (2.0,), (2.0,))[1] == 2 * nbta.grad(f)(2.0)


def test_third_derivatives_of_gamma_variates_are_refused():
    def f(a):
        return nbta.grad(lambda a: random.gamma(random.key(0), a))(a)

    with pytest.raises(nbta.UnimplementedError, match="third derivative"):
        nbta.grad(nbta.grad(f))(2.0)
    with pytest.raises(nbta.UnimplementedError, match="third derivative"):
        nbta.hvp(f, (2.0,), (1.0,))
