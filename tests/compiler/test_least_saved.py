"""What loops save is a minimum cut: nothing costs less, and gradients stay what they are."""

import itertools
import random

import numpy as np
import pytest

import nbta
from nbta.compiler.least_saved import Network
from nbta.testing import check_grads
from nbta.tuning import ENDLESS_PRICE


def drawn(seed):
    """Edges of a small network, and its nodes."""
    draw = random.Random(seed)
    nodes = [*range(draw.randrange(1, 6)), Network.sink]
    edges = {}
    for start in [Network.source, *nodes[:-1]]:
        for end in draw.sample(nodes, draw.randrange(1, len(nodes) + 1)):
            if end != start:
                edges[start, end] = draw.choice([0, 1, 2, 3, 7, ENDLESS_PRICE])
    return edges, nodes[:-1]


@pytest.mark.parametrize("seed", range(200))
def test_nothing_costs_less(seed):
    edges, nodes = drawn(seed)
    network = Network()
    for (start, end), price in edges.items():
        network.add(start, end, price)
    costs = []
    for count in range(len(nodes) + 1):
        for chosen in itertools.combinations(nodes, count):
            inside = {Network.source, *chosen}
            cut = (price for (a, b), price in edges.items() if a in inside and b not in inside)
            costs.append(sum(cut))
    assert network.flow() == min(costs) == sum(map(edges.get, network.cut()))


def bytes_saved(f, *args, of=""):
    """How many bytes an iteration, of some loops, a compiled gradient saves, as `explain` says."""
    function = nbta.value_and_grad(f, compiled=True)
    value, found = function(*args)
    one, wanted = nbta.value_and_grad(f, compiled=False)(*args)
    np.testing.assert_allclose(value, one, rtol=1e-12)
    np.testing.assert_allclose(found, wanted, rtol=1e-9)
    text = function.explain().partition("values saved for gradients:")[2]
    rows = [row.partition(" bytes an iteration of") for row in text.splitlines()]
    return sum(int(row.split()[-1]) for row, part, loop in rows if part and of in loop)


def epidemic(p):
    s, i, r, cost = p[2], p[3], p[4], 0.0
    for _ in range(30):
        new = p[0] * s * i * 0.1
        recovered = p[1] * i * 0.1
        s = s - new
        i = i + new - recovered
        r = r + recovered
        cost += (i - 0.1) ** 2 + r * new
    return cost


def chain(p):
    x, y = p[0], p[1]
    for _ in range(30):
        a = np.exp(-x) * p[2]
        b = a + y
        c = b * a - 0.5
        d = c * b + a
        x, y = 0.1 * d * c + 0.5 * x, 0.1 * b * d
    return x * y


def wide(p):
    """One exponential, of which much is made: the squares and products are made again."""
    total = 0.0
    x = p[0]
    for _ in range(20):
        e = np.exp(-x * x)
        a, b, c = e * p[1], e + p[2], e - p[3]
        total += a * b * c + a * a + b * b * c
        x = x + 0.01 * e
    return total


@pytest.mark.parametrize(("f", "most"), [(epidemic, 24), (chain, 24), (wide, 16)])
def test_bytes_an_iteration(f, most):
    """As derived by hand: the states, and each exponential."""
    p = np.array([0.5, 0.3, 0.9, 0.1, 0.2])
    assert bytes_saved(f, p) <= most
    check_grads(f, (p,), order=2)


def bag(p):
    """An offset that each item has: not saved with each place, nor the index that it leads to."""
    best = np.zeros(40)
    for i in range(len(p)):
        weight = 1 + int(p[i] * 5)
        for c in range(39, weight - 1, -1):
            best[c] = max(best[c], best[c - weight] + p[i])
    return best[39]


def test_what_a_loop_does_not_change_is_saved_once():
    p = np.array([0.5, 0.3, 0.9, 0.1, 0.2])
    assert bytes_saved(bag, p, of="for c in") == 1
    check_grads(bag, (p,), order=2)


def inside(x, k):
    """A convolution that looks where it is; of a state, where that was."""
    total, state = 0.0, 1.0
    for i in range(len(x)):
        acc = 0.0
        for j in range(len(k)):
            at = i + j - len(k) // 2
            if 0 <= at < len(x) and not (at == 2 or i == 1):
                acc += x[at] * k[j]
        if state > 0.5 and i % 2 == 0:
            state *= np.cos(acc)
        total += acc * acc * state
    return total


def test_what_asks_for_places_alone_is_computed_again():
    x, k = np.random.default_rng(2).normal(size=(2, 7))
    assert bytes_saved(inside, x, k[:3], of="for j in") == 0
    check_grads(inside, (x, k[:3]), order=2)


def vectors(x, w):
    for _ in range(10):
        y = x * w + 0.5
        z = y * y - x
        x = 0.5 * np.sin(z) + 0.1 * y * z
    return np.sum(x)


def test_vectors_are_made_again_of_vectors():
    x, w = np.linspace(0.1, 0.9, 7), np.linspace(1.0, 0.4, 7)
    assert bytes_saved(vectors, x, w) <= 16  # of an item: the state, and what the sine is of
    check_grads(vectors, (x, w), order=2)


def nested(p):
    """What an outer loop makes is read by the adjoint iterations of an inner one."""
    x = p[0]
    for _ in range(5):
        a = np.sin(x) * p[1]
        b = a * a + p[2]
        for _ in range(4):
            c = x * b - a
            d = c * c + x * a
            x = x + 0.01 * d * c
    return x


def test_nests():
    p = np.array([0.5, 0.3, 0.9])
    bytes_saved(nested, p)
    check_grads(nested, (p,), order=2)


def generated(seed):
    """A loop of random sums, products and sines of four numbers."""
    draw = random.Random(seed)
    steps = []
    for _ in range(draw.randrange(3, 14)):
        steps.append((draw.choice("+-**s*"), draw.randrange(9), draw.randrange(9)))

    def f(p):
        a, b, c = p[0], p[1], p[2]
        for _ in range(3):
            values = [a, b, c, p[0], p[1], p[2], a * b, b - c, c + 0.5]
            for kind, m, n in steps:
                one, other = values[m], values[n]
                new = (one + other if kind == "+" else one - other if kind == "-" else
                       np.sin(one) if kind == "s" else one * other)  # fmt: skip
                values[(m + n) % 9] = new
            a, b, c = 0.3 * values[0], 0.2 * values[4] + 0.1 * values[8], np.tanh(values[5])
        return a + b * c

    return f


@pytest.mark.parametrize("first", [0, pytest.param(10, marks=pytest.mark.slow)])
def test_random_loops(first):
    for seed in range(first, first + (10 if first < 10 else 90)):
        f, p = generated(seed), np.random.default_rng(seed).uniform(-1.0, 1.0, 3)
        wanted = nbta.grad(f, compiled=False)(p)
        np.testing.assert_allclose(nbta.grad(f, compiled=True)(p), wanted, rtol=1e-9, atol=1e-12)
        along = nbta.function(lambda p, f=f: nbta.hvp(f, (p,), (p[::-1],))[0], compiled=True)(p)
        slow = nbta.function(lambda p, f=f: nbta.hvp(f, (p,), (p[::-1],))[0], compiled=False)(p)
        np.testing.assert_allclose(along, slow, rtol=1e-8, atol=1e-12)


def long_chain(p):
    x, y = p[0], p[1]
    for _ in range(3):
        v = x
        v = v * v * 0.5 + y
        v = v * v * 0.5 + y * v
        v = v * v * 0.5 - v
        v = v * v * 0.5 + y * v * v
        v = v * v * v + v * y
        v = v * v * 0.5 + y
        v = v * v * 0.5 - v * v * v
        v = v * v * v + v * y
        x, y = 0.1 * v, 0.9 * y + 0.01 * v
    return x + y


def test_what_is_made_of_one_value_in_many_ways_is_made_once():
    check_grads(long_chain, (np.array([0.1, 0.2]),), order=2)
    source = nbta.value_and_grad(long_chain, compiled=True)
    source(np.array([0.1, 0.2]))
    assert len(source.source) < 30_000
