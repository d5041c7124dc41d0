"""Products look at tangents and adjoints of zero where that may matter, and nowhere else."""

import itertools
import random

import numpy as np
import pytest
from elementwise_records import arity

import nbta
from nbta.control.forward_mode import tangents
from nbta.control.whole_tangents import WholeTangents, _passes
from nbta.graph.graph import Graph
from nbta.graph.operation import TABLE
from nbta.graph.whole_adjoints import WholeAdjoints

POINTS = (-np.inf, -800.0, -1.0, 0.0, 0.5, 1.0, 800.0, np.inf, np.nan)


def jvp(f, compiled=False):
    return nbta.function(lambda x, d: nbta.jvp(f, x, d), compiled=compiled)


def guards(f, x):
    """How many products of the tangents of a function look at zeros."""
    function = jvp(f)
    function(x, np.ones_like(x))
    return str(function.traced()[0]).count("= Scale(")


def looped(step):
    """A function whose loop makes steps of three numbers, of which the first is the result."""

    def f(x):
        def body(i, a, b, c):
            return i + 1, *step(a, b, c)

        return nbta.while_loop(lambda i, *_: i < 4, body, (0, x[0], x[1], x[2]))[1]

    return f


@pytest.mark.parametrize(
    ("step", "hides"),
    [
        (lambda a, b, c: (a * b + c, b, c * a), False),
        (lambda a, b, c: (nbta.where(a > b, a * b, c), nbta.maximum(b * c, a), c), False),
        (lambda a, b, c: (nbta.cond(a > b, lambda: a * b, lambda: c * c), b, c), False),
        (lambda a, b, c: (nbta.exp(a * b) + c, b, c), True),
        (lambda a, b, c: (a + b * nbta.tanh(c), b, b * c), True),
        (lambda a, b, c: (a + 1.0 / b, b * c, c), True),
        (lambda a, b, c: (a * b, b, nbta.exp(c)), False),  # what no result depends on hides nothing
    ],
    ids=["products", "choices", "branches", "exp", "by a loop", "divisor", "unused"],
)
def test_products_that_hide_nothing_are_ordinary_ones(step, hides):
    assert (guards(looped(step), np.array([0.5, 0.25, 2.0])) > 0) == hides


def test_results_count_one_by_one():
    """What is whole for one result may be hidden in another."""

    def f(x):
        product = x[0] * x[1]
        return nbta.stack([product, nbta.exp(product)])

    assert guards(f, np.array([0.5, 0.25]))
    value, tangent = jvp(f)(np.array([-np.inf, 1.0]), np.array([0.0, 0.0]))
    assert value.tolist() == [-np.inf, 0.0]
    assert tangent.tolist() == [0.0, 0.0]


def passing(record):
    """Operations of all points, and the places of inputs of which it is claimed that they pass."""
    count = arity(record)
    given = list(map(np.array, zip(*itertools.product(POINTS, repeat=count), strict=True)))
    with Graph().as_default() as graph:
        xs = [nbta.placeholder("float64", x.shape) for x in given]
        y = graph.create(record, xs).outputs[0]
    return [(given, xs, y, place) for place in range(count) if _passes(y.op, place)]


CASES = [case for record in list(TABLE.values()) if arity(record) for case in passing(record)]


@pytest.mark.parametrize(
    ("given", "xs", "y", "place"), CASES, ids=[f"{y.op.type}-{place}" for *_, y, place in CASES]
)
def test_what_depends_on_infinities_is_not_finite(given, xs, y, place):
    """Where a result is finite, its tangent is, though one is NaN where the input is not finite."""
    with y.graph.as_default():
        direction = nbta.placeholder("float64", given[place].shape)
        (tangent,) = tangents([y], [xs[place]], [direction])
    lost = np.where(np.isfinite(given[place]), 0.0, np.nan)
    feeds = {**dict(zip(xs, given, strict=True)), direction: lost}
    value, moved = nbta.Session(y.graph).run([y, tangent], feeds)
    assert np.isfinite(moved[np.isfinite(value)]).all()


def drawn(seed):
    """A loop of random steps of four numbers, an array among the variables, and a branch."""
    draw = random.Random(seed)
    one = [nbta.exp, nbta.tanh, nbta.sqrt, lambda a: a * a, lambda a: 1.0 / a, nbta.log, nbta.abs]
    two = [nbta.multiply, nbta.multiply, nbta.add, nbta.subtract, nbta.divide, nbta.maximum]
    plan = [(draw.randrange(5), draw.choice(one), draw.choice(two), draw.sample(range(4), 3))
            for _ in range(draw.randrange(2, 6))]  # fmt: skip
    ends, trips = draw.sample(range(4), 2), draw.choice([0, 1, 3, 3])

    def f(x):
        def body(i, v, *numbers):
            for kind, unary, binary, (k, m, n) in plan:
                a, b = numbers[m], captured if kind == 4 else numbers[n]
                if kind == 0:
                    new = unary(a)
                elif kind == 1:
                    new = nbta.cond(a > b, lambda a=a, u=unary: u(a), lambda a=a, b=b: a * b)
                elif kind == 2:
                    v = nbta.add_item(v, n % 3, a * b)
                    new = v[m % 3]
                else:
                    new = binary(a, b)
                numbers = [new if place == k else each for place, each in enumerate(numbers)]
            return i + 1, v, *numbers

        given, captured = nbta.unstack(x), x[0] * x[1]
        found = nbta.while_loop(lambda i, *_: i < trips, body, (0, x[:3], *given))[2:]
        return nbta.stack([found[k] for k in ends])

    return f


def derived(f, way):
    """Value and derivative of both results along a direction, of the first one, or its gradient."""
    if way == "gradient":
        found = nbta.value_and_grad(lambda x: f(x)[0], compiled=False)
        return lambda x, _: found(x)
    return jvp(f if way == "both" else lambda x: f(x)[0])


@pytest.mark.parametrize("way", ["both", "one", "gradient"])
@pytest.mark.parametrize("first", [0, 40, pytest.param(80, marks=pytest.mark.slow)])
def test_random_programs(first, way, monkeypatch):
    """A finite result has the derivative that it has where every product looks at zeros."""
    finite = 0
    for seed in range(first, first + (40 if first < 80 else 400)):
        draw, one = np.random.default_rng(seed), np.ones(4)
        f = drawn(seed)

        plain = derived(f, way)
        with monkeypatch.context() as patch:
            patch.setattr(WholeTangents, "has", lambda *_: False)
            patch.setattr(WholeAdjoints, "inputs", lambda *_: set())
            patch.setattr(WholeAdjoints, "ends", lambda *_: set())
            careful = derived(f, way)
            careful(one, one)
        for _ in range(6):
            x = draw.choice([-np.inf, -1.5, 0.0, 0.5, 2.0, 1e200, np.inf, np.nan], 4)
            direction = draw.choice([0.0, 0.0, 1.0], 4)
            with np.errstate(all="ignore"):
                value, found = plain(x, direction)
                wanted = careful(x, direction)[1]
            shown = np.broadcast_to(np.isfinite(value), found.shape)
            finite += np.isfinite(wanted[shown]).sum()
            np.testing.assert_allclose(found[shown], wanted[shown], rtol=1e-9, err_msg=str(seed))
    assert finite > 60
