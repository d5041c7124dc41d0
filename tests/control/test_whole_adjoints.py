"""Products look at adjoints of zero where that may matter."""

import random

import numpy as np
import pytest

import nbta
from nbta.graph.whole_adjoints import WholeAdjoints


def drawn(seed):
    """A loop of random steps of four numbers, an array among the variables, and a branch."""
    draw = random.Random(seed)
    one = [nbta.exp, nbta.tanh, nbta.sqrt, lambda a: a * a, lambda a: 1.0 / a, nbta.log, nbta.abs]
    two = [nbta.multiply, nbta.multiply, nbta.add, nbta.subtract, nbta.divide, nbta.maximum]
    plan = [(draw.randrange(5), draw.choice(one), draw.choice(two), draw.sample(range(4), 3))
            for _ in range(draw.randrange(2, 6))]  # fmt: skip
    end, trips = draw.randrange(4), draw.choice([0, 1, 3, 3])

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
        return nbta.while_loop(lambda i, *_: i < trips, body, (0, x[:3], *given))[2 + end]

    return f


@pytest.mark.parametrize("first", [0, 40, pytest.param(80, marks=pytest.mark.slow)])
def test_random_programs(first, monkeypatch):
    """A finite result has the gradient that it has where every product looks at zeros."""
    finite = 0
    for seed in range(first, first + (40 if first < 80 else 400)):
        draw, f = np.random.default_rng(seed), drawn(seed)
        plain = nbta.value_and_grad(f, compiled=False)
        with monkeypatch.context() as patch:
            patch.setattr(WholeAdjoints, "inputs", lambda *_: set())
            patch.setattr(WholeAdjoints, "ends", lambda *_: set())
            careful = nbta.value_and_grad(f, compiled=False)
            careful(np.ones(4))
        for _ in range(6):
            x = draw.choice([-np.inf, -1.5, 0.0, 0.5, 2.0, 1e200, np.inf, np.nan], 4)
            with np.errstate(all="ignore"):
                value, found = plain(x)
                wanted = careful(x)[1]
            if np.isfinite(value):
                finite += np.isfinite(wanted).sum()
                np.testing.assert_allclose(found, wanted, rtol=1e-9, err_msg=str(seed))
    assert finite > 60
