"""Products of adjoints without a look at zeros: a result that has a NaN is computed with looks."""

import random
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.linalg

import nbta
from nbta.compiler.pipeline import optimised
from nbta.execution.batch import WorkTable
from nbta.graph.graph import within
from nbta.graph.operation import TABLE
from nbta.ops.core.arithmetic import SCALE, SCALE_BACK
from nbta.ops.core.dispatch import apply, as_tensor


def drawn(seed):
    """A loop of random steps of four numbers, an array among the variables, and a branch."""
    draw = random.Random(seed)
    one = [nbta.exp, nbta.tanh, nbta.sqrt, lambda a: a * a, lambda a: 1.0 / a, nbta.log, nbta.abs]
    two = [nbta.multiply, nbta.multiply, nbta.add, nbta.subtract, nbta.divide, nbta.maximum]
    plan = [(draw.randrange(5), draw.choice(one), draw.choice(two), draw.sample(range(4), 3))
            for _ in range(draw.randrange(2, 6))]  # fmt: skip
    end, iterations = draw.randrange(4), draw.choice([0, 1, 3, 3])

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
        return nbta.while_loop(lambda i, *_: i < iterations, body, (0, x[:3], *given))[2 + end]

    return f


def decided(f):
    """A function that takes steps by a gradient, of which some decide what comes next."""

    def g(x):
        def body(i, x):
            slope = nbta.grad(f)(x)
            x = x - 0.1 * nbta.where(slope > 0, slope, 0.5)
            return i + 1, nbta.cond(slope[0] < 1.0, lambda: x, lambda: x * 0.5)

        return nbta.sum(nbta.while_loop(lambda i, x: i < 2, body, (0, x))[1])

    return g


POINTS = [-np.inf, -1.5, 0.0, 0.5, 2.0, 1e200, np.inf, np.nan]


def compare(derived, f, seed, count=4):
    """Compiled results are those of the reference executor, which always looks at zeros."""
    draw = np.random.default_rng(seed)
    for _ in range(count):
        x = draw.choice(POINTS, 4)
        with np.errstate(all="ignore"):
            found = derived(f, True)(x)
            wanted = derived(f, False)(x)
        np.testing.assert_allclose(found, wanted, rtol=1e-7, err_msg=f"{seed} at {x}")


def gradient(f, compiled):
    return nbta.grad(f, compiled=compiled)


def product(f, compiled):
    return nbta.function(lambda x: nbta.hvp(f, (x,), (x[::-1],))[0], compiled=compiled)


def tangent(f, compiled):
    return nbta.function(lambda x: nbta.jvp(f, (x,), (x * 0.0,))[1], compiled=compiled)


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("first", [0, 10, pytest.param(20, marks=pytest.mark.slow)])
@pytest.mark.parametrize("derived", [gradient, tangent, product])
def test_random_programs(derived, first):
    """Wherever a factor is not finite, compiled code finds what looking at zeros does."""
    for seed in range(first, first + (10 if first < 20 else 60)):
        compare(derived, drawn(seed), seed)


@pytest.mark.parametrize("first", [0, pytest.param(3, marks=pytest.mark.slow)])
def test_random_steps(first):
    """A gradient that decides about what follows looks at zeros itself."""
    for seed in range(first, first + (67 if first else 3)):
        f = decided(drawn(seed))
        for derived in (lambda f, compiled: nbta.function(f, compiled=compiled), gradient):
            compare(derived, f, seed, count=2)


def looks(f, *xs):
    """How many products look at zeros in the program of a gradient, and whether NaN is shown."""
    with nbta.Graph().as_default():
        given = [nbta.placeholder("float64", np.shape(x)) for x in xs]
        wanted = f(*given)
        program = optimised(given, wanted if isinstance(wanted, list) else [wanted])
    return sum(op.record in (SCALE, SCALE_BACK) for op in within(program.operations)), program


def total(x):
    """A loop of products."""
    return nbta.while_loop(lambda i, y: i < 5, lambda i, y: (i + 1, y * nbta.sin(x)), (0, x))[1]


def test_a_gradient_in_a_loop_takes_plain_products():
    """So does a direction, and both together."""
    for derived in (
        lambda x: nbta.gradients(total(x), [x]),
        lambda x: nbta.jvp(total, (x,), (x,))[1],
        lambda x: nbta.hvp(total, (x,), (x,))[0],
    ):
        count, program = looks(derived, 1.0)
        assert program.is_plain
        assert count == 0


@pytest.mark.parametrize(
    "use",
    [
        lambda g: nbta.cast(g > 0, "float64"),
        lambda g: nbta.where(g > 0, 1.0, 2.0),
        lambda g: nbta.cond(g > 0, lambda: 1.0, lambda: 2.0),
        lambda g: nbta.cast(nbta.cast(g, "int64"), "float64"),
        lambda g: g**0.0 * nbta.power(1.0, g),
        lambda g: nbta.nan_to_num(g),
        lambda g: nbta.while_loop(lambda i: nbta.cast(i, "float64") < g, lambda i: i + 1, 0),
    ],
)
def test_a_gradient_that_decides_looks(use):
    """A NaN in its place would not arrive in the result."""

    def f(x):
        return use(nbta.gradients(total(x), [x])[0])

    count, program = looks(f, 1.0)
    assert count
    assert not program.is_plain


def test_what_is_printed_is_printed_once(capsys):
    """A program that calls Python looks at zeros, as it must not run again."""

    def f(w, x):
        s = masked(x, w)
        print("sum", s)
        return s

    assert nbta.grad(f, compiled=True)(2.0, np.array([1.0, 2.0, np.inf])) == 20.0
    assert capsys.readouterr().out.count("sum") == 1


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("size", [1, 7, 100])
def test_all_results_are_looked_at(dtype, size):
    """A NaN anywhere, in a part of a number too."""

    def f(x, w):
        y = np.zeros_like(x)
        for i in range(len(x)):
            y[i] = w[i] * x[i]
        s = 0.0
        for i in range(len(x)):
            if w[i].real > 0.0:
                s += abs(y[i]) ** 2
        return s

    x, w = np.ones(size, dtype), np.ones(size, dtype)
    for place in {0, size // 2, size - 1}:
        both = [nbta.value_and_grad(f, compiled=compiled) for compiled in (True, False)]
        both[0](x, np.ones(size, dtype))  # code that does not look at zeros
        w[:], w[place] = 1.0, -np.inf
        (one, found), (other, wanted) = (g(x, w) for g in both)
        assert found[place] == 0.0
        np.testing.assert_allclose(one, other, rtol=1e-6)
        np.testing.assert_allclose(found, wanted, rtol=1e-6)


def masked(x, w):
    """Squares, of which the last is left out."""
    y = np.zeros(len(x))
    for i in range(len(x)):
        y[i] = w * x[i]
    s = 0.0
    for i in range(len(x) - 1):
        s += y[i] ** 2
    return s


def test_a_nan_makes_a_function_careful():
    """From then on one run is enough, and says so."""
    f = nbta.grad(masked, argnums=1, compiled=True)
    x = np.array([1.0, 2.0, np.inf])
    assert f(np.ones(3), 2.0) == 8.0
    assert "look at zeros" not in f.explain()
    assert f(x, 2.0) == 20.0
    assert "look at zeros" in f.explain()
    assert f(np.ones(3), 2.0) == 8.0
    assert np.isnan(f(np.array([np.nan, 1.0, 1.0]), 2.0))


def test_auto_and_batches_and_threads():
    """All ways of running find the same."""
    x, wanted = np.array([1.0, 2.0, np.inf]), 20.0
    f = nbta.grad(masked, argnums=1)
    for _ in range(2000):
        assert f(np.ones(3), 2.0) == 8.0
    assert f(x, 2.0) == wanted
    f = nbta.grad(masked, argnums=1, compiled=True)
    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(lambda k: float(f(x, 2.0 + 0 * k)), range(40))) == {wanted}
    batch = nbta.vmap(nbta.grad(masked, argnums=1), in_axes=(0, None))
    found = nbta.function(batch, compiled=True)(np.stack([np.ones(3), x, np.ones(3)]), 2.0)
    np.testing.assert_array_equal(found, [8.0, wanted, 8.0])


def test_a_batch_is_careful_from_the_next_one_on(monkeypatch):
    """An item with a NaN runs alone once, and then by code that looks at zeros."""
    alone, after = [], WorkTable.after
    monkeypatch.setattr(WorkTable, "after", lambda *a: alone.append(1) or after(*a))
    f = nbta.value_and_grad(masked, argnums=1, batch_axis=(0, None), compiled=True)
    items, counts = [np.ones(3), np.array([1.0, 2.0, np.inf]), np.ones(3)], []
    for _ in range(4):
        before = len(alone)
        assert f(items, 2.0)[1] == 8.0 + 20.0 + 8.0
        counts.append(len(alone) - before)
    assert counts[0] > 0
    assert counts[2:] == [0, 0]


@pytest.mark.parametrize(
    "name", sorted(r.name for r in TABLE.values() if r.elementwise and r.spreads)
)
def test_what_spreads_nan(name):
    """The result is NaN where an operand is, whatever the others are, in both executors."""
    record = TABLE[name]
    shown = {"Where": (1, 2), "Pow": (0,), "Scale": (), "ScaleBack": ()}
    others = [2.0] if name == "Pow" else [-np.inf, -1.0, 0.0, 1.0, 3.0, np.inf]
    count = next(n for n in (1, 2, 3) if fits(record, n))
    for place in shown.get(name, range(count)):
        for other in others:
            given = [np.float64(other)] * count
            given[place] = np.float64(np.nan)
            if name == "Where":
                given[0] = np.bool_(place == 1)
            constant = given[1:] if name == "Pow" else []

            def f(*xs, constant=constant):
                return apply(record, [*map(as_tensor, xs), *map(as_tensor, constant)])

            xs = given[: len(given) - len(constant)]
            assert np.isnan(nbta.function(f, compiled=False)(*xs))
            assert np.isnan(nbta.function(f, compiled=True)(*xs))


SOLVED = {
    "LUSolve": lambda a, b: np.linalg.solve(a @ a.T, b),
    "TriangularSolve": lambda a, b: scipy.linalg.solve_triangular(a, b, lower=True),
    "CholeskyGradient": lambda a, b: apply(TABLE["CholeskyGradient"], [a, b]),
    "CholeskyTangent": lambda a, b: apply(TABLE["CholeskyTangent"], [a, b]),
}


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("n", [3, 40])
@pytest.mark.parametrize("name", SOLVED)
def test_what_is_solved_for_spreads_nan(name, n, compiled):
    """The result has a NaN where the right side has one, or is the same whatever is there."""
    draw = np.random.default_rng(n)
    a = np.tril(draw.normal(size=(n, n))) + n * np.eye(n)
    a[n // 2, 0] = a[-1, 1] = 0.0
    b = draw.normal(size=(n, n))
    f = nbta.function(SOLVED[name], compiled=compiled)
    for place in [(0, 0), (n - 1, 0), (0, n - 1), (n // 2, 0), (n - 1, n - 1), (n - 1, 1)]:
        spoilt, other = b.copy(), b.copy()
        spoilt[place], other[place] = np.nan, 7.0
        found = f(a, spoilt)
        if not np.isnan(found).any():
            np.testing.assert_array_equal(found, f(a, other))


def fits(record, count):
    """Whether a record takes so many operands."""
    try:
        record.evaluate(*np.ones(count))
    except (TypeError, ValueError):
        return False
    return True


@pytest.mark.parametrize("place", ["in a loop", "outside"])
def test_products_of_matrices_that_decide_look_at_zeros(place):
    """A row of infinity, which is masked after the product, has no part in what is decided."""

    def loss(b, a):
        y = nbta.matmul(a, b)
        return nbta.sum(nbta.where(nbta.abs(y) < 1e300, y, 0.0) ** 2)

    def f(b, a):
        for _ in range(14 if place == "in a loop" else 1):
            slope = nbta.grad(loss)(b, a)
            b = nbta.cond(slope[0] > 1.0, lambda b=b, s=slope: b - 0.01 * s, lambda b=b: b + 1.0)
        return nbta.sum(b * b)

    b, a = np.array([1.0, 2.0]), np.array([[1.0, 2.0], [np.inf, 1.0], [0.5, -1.0]])
    found = [nbta.function(f, compiled=kind)(b, a) for kind in (True, False)]
    np.testing.assert_allclose(found[0], found[1])
    np.testing.assert_allclose(found[0], f(b, a[[0, 2]]))
