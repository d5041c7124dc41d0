"""Loops over no rows, or rows of no columns: all loops in all ways, to second order."""

import functools

import numpy as np
import pytest
from compiled_pairs import Pair, compare, error_of
from fuzz.ways import in_python

import nbta

SHAPES = [(rows, columns) for rows in range(3) for columns in range(3)]


def filled(shape):
    return np.linspace(0.3, 1.2, max(1, int(np.prod(shape))))[: int(np.prod(shape))].reshape(shape)


def stacked(results, shape):
    """Rows as NumPy stacks them; for none, an empty array of their shape."""
    return np.stack(results) if results else np.zeros((0, *shape))


# Each loop, and the same in NumPy.


def mapped(x):
    return nbta.map_fn(lambda r: nbta.sin(r) * r, x)


def mapped_by_numpy(x):
    return stacked([np.sin(r) * r for r in x], x.shape[1:])


def summed(x):
    return nbta.map_fn(lambda r: nbta.sum(r * r), x)


def joined(x):
    return nbta.map_fn(lambda r: nbta.concatenate([r * r, nbta.ones(2), r]), x)


def joined_by_numpy(x):
    return stacked([np.concatenate([r * r, np.ones(2), r]) for r in x], (2 * x.shape[1] + 2,))


def squares(x):
    return nbta.map_fn(lambda r: nbta.outer(r, nbta.sin(r)), x)


def squares_by_numpy(x):
    return stacked([np.outer(r, np.sin(r)) for r in x], x.shape[1:] * 2)


def nested(x):
    return nbta.map_fn(lambda r: nbta.map_fn(lambda e: e * nbta.sin(e), r), x)


def nested_scans(x):
    inner = lambda c, e: (c * 0.5 + e, c * e)  # noqa: E731
    return nbta.scan(lambda c, r: nbta.scan(inner, nbta.sin(c), r), 0.5, x)


def nested_scans_by_numpy(x):
    carry, results = 0.5, []
    for r in x:
        carry, row = np.sin(carry), []
        for e in r:
            row.append(carry * e)
            carry = carry * 0.5 + e
        results.append(stacked(row, ()))
    return np.float64(carry), stacked(results, x.shape[1:])


def scanned(x, reverse=False, **options):
    step = lambda c, r: (nbta.tanh(c) + nbta.sum(r), c * r)  # noqa: E731
    return nbta.scan(step, 0.7, x, reverse=reverse, **options)


def scanned_by_numpy(x, reverse=False):
    carry, results = 0.7, []
    for r in x[::-1] if reverse else x:
        carry, y = np.tanh(carry) + r.sum(), carry * r
        results.append(y)
    return np.float64(carry), stacked(results[::-1] if reverse else results, x.shape[1:])


def by_carry(x):
    """The carry is as long as a row."""
    step = lambda c, r: (nbta.sin(c) * r, {"c": c, "s": nbta.sum(c)})  # noqa: E731
    return nbta.scan(step, nbta.ones_like(x[:1].sum(axis=0)), x)


def by_carry_by_numpy(x):
    carry, cs = np.ones(x.shape[1]), []
    for r in x:
        cs.append(carry)
        carry = np.sin(carry) * r
    rows = stacked(cs, x.shape[1:])
    return carry, {"c": rows, "s": rows.sum(1)}


def folded(x, fold):
    return fold(lambda a, r: a * 0.9 + nbta.sum(r * r) * a, x, 1.5)


def folded_by_numpy(x, reverse):
    found = 1.5
    for r in x[::-1] if reverse else x:
        found = found * 0.9 + (r * r).sum() * found
    return np.float64(found)


def folded_from_the_first(x):
    return nbta.foldl(lambda a, r: a * r + nbta.sin(a), x)


def folded_from_the_first_by_numpy(x):
    return functools.reduce(lambda a, r: a * r + np.sin(a), x)


def unstacked(x):
    return nbta.TensorArray("float64", nbta.shape(x)[0]).unstack(nbta.sin(x)).stack()


def filled_by_a_loop(x):
    ta = nbta.TensorArray("float64", nbta.shape(x)[0]).unstack(x)
    n = nbta.shape(x)[0]
    body = lambda i, s: (i + 1, s * 0.5 + nbta.sum(nbta.sin(ta.read(nbta.cast(i, "int32")))))  # noqa: E731
    return nbta.while_loop(lambda i, s: i < n, body, (np.int64(0), 1.0))[1]


def filled_by_a_loop_by_numpy(x):
    total = 1.0
    for r in x:
        total = total * 0.5 + np.sin(r).sum()
    return np.float64(total)


def of_some_rows(x, n):
    """How many rows there are only the run tells."""
    return nbta.map_fn(lambda r: r * nbta.sin(r), x[n:])


LOOPS = {
    "map_fn": (mapped, mapped_by_numpy),
    "map_fn, sums": (summed, lambda x: (x * x).sum(1)),
    "map_fn, longer": (joined, joined_by_numpy),
    "map_fn, squares": (squares, squares_by_numpy),
    "map_fn, checkpoint": (
        lambda x: nbta.map_fn(lambda r: nbta.sin(r) * r, x, checkpoint=2), mapped_by_numpy,
    ),
    "map_fn, threads": (
        lambda x: nbta.map_fn(lambda r: nbta.sin(r) * r, x, parallel_iterations=2),
        mapped_by_numpy,
    ),
    "map_fn, longer, threads": (
        lambda x: nbta.map_fn(
            lambda r: nbta.concatenate([r * r, nbta.ones(2), r]), x, parallel_iterations=2
        ),
        joined_by_numpy,
    ),
    "map_fn, two": (
        lambda x: nbta.map_fn(lambda v: v[0] * v[1] * v[1], (x, nbta.sin(x))),
        lambda x: x * np.sin(x) ** 2,
    ),
    "nested map_fn": (nested, lambda x: x * np.sin(x)),
    "nested scan": (nested_scans, nested_scans_by_numpy),
    "scan": (scanned, scanned_by_numpy),
    "scan, reverse": (
        functools.partial(scanned, reverse=True), functools.partial(scanned_by_numpy, reverse=True),
    ),
    "scan, checkpoint": (functools.partial(scanned, checkpoint="sqrt"), scanned_by_numpy),
    "scan, carry": (by_carry, by_carry_by_numpy),
    "foldl": (
        functools.partial(folded, fold=nbta.foldl),
        functools.partial(folded_by_numpy, reverse=False),
    ),
    "foldr": (
        functools.partial(folded, fold=nbta.foldr),
        functools.partial(folded_by_numpy, reverse=True),
    ),
    "unstack": (unstacked, np.sin),
    "while_loop": (filled_by_a_loop, filled_by_a_loop_by_numpy),
}  # fmt: skip


def number(result):
    """One number of all that a loop gives."""
    parts = [nbta.sum(nbta.sin(y) * y) for y in nbta.structure.leaves(result)]
    return nbta.add_n(parts)


def slope(f):
    return lambda x: nbta.sum(nbta.sin(nbta.grad(f)(x)))


def differences(f, x, step=1e-4):
    """Of five points, whose error is the fourth power of the step."""
    found = np.zeros_like(x)
    for index in np.ndindex(x.shape):
        for place, weight in ((-2, 1.0), (-1, -8.0), (1, 8.0), (2, -1.0)):
            moved = x.copy()
            moved[index] += place * step
            found[index] += weight * float(f(moved)) / (12 * step)
    return found


@pytest.mark.slow_but_every(18)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", LOOPS)
def test_loops(name, shape):
    f, by_numpy = LOOPS[name]
    x = filled(shape)
    expected = by_numpy(x)
    compare(f(x), expected)
    gives_up = "checkpoint" in name or "threads" in name
    with in_python():
        compare(Pair(f, may_fall_back=gives_up)(x), expected)
        scalar = lambda x: number(f(x))  # noqa: E731
        first = Pair(scalar, nbta.grad, gives_up, rtol=1e-8)(x)
        np.testing.assert_allclose(first, differences(lambda x: number(by_numpy(x)), x), atol=1e-7)
        second = Pair(slope(scalar), nbta.grad, gives_up, rtol=1e-8)(x)
        plain = nbta.function(slope(scalar), compiled=False)
        np.testing.assert_allclose(second, differences(plain, x), atol=1e-6)


@pytest.mark.parametrize("columns", range(3))
def test_a_fold_without_a_first_value(columns):
    f, by_numpy = folded_from_the_first, folded_from_the_first_by_numpy
    with in_python():
        pair = Pair(f)
        for rows in (1, 2):
            x = filled((rows, columns))
            compare(f(x), by_numpy(x))
            compare(pair(x), by_numpy(x))
        x = filled((0, columns))
        assert "elems has no rows" in pair.fails(x)
        assert "elems has no rows" in str(error_of(f, x))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_rows_that_only_the_run_counts(shape):
    x = filled(shape)
    with in_python():
        pair = Pair(of_some_rows, may_fall_back=True)
        grad = Pair(lambda x, n: nbta.sum(of_some_rows(x, n)), nbta.grad, may_fall_back=True)
        for n in range(len(x) + 1):
            compare(pair(x, n), x[n:] * np.sin(x[n:]))
            expected = np.where(np.arange(len(x))[:, None] < n, 0.0, np.sin(x) + x * np.cos(x))
            np.testing.assert_allclose(grad(x, n), expected)


@pytest.mark.parametrize("compiled", [False, True])
def test_one_function_for_rows_and_none(compiled):
    """Calls in turns: what was compiled for some shapes does not answer for others."""
    f = nbta.function(joined, compiled=compiled)
    with in_python():
        for _ in range(2):
            for shape in [(2, 3), (0, 3), (3, 1), (0, 2), (1, 0), (4, 3)]:
                x = filled(shape)
                compare(f(x), joined_by_numpy(x))


def test_items_of_a_batch():
    """Some of them without rows."""
    w = np.array([0.5, -0.25])
    rows = [filled((n, 2)) for n in (2, 0, 1, 0)]
    loss = lambda w, x: number(scanned(x * w))  # noqa: E731
    value, found = nbta.value_and_grad(loss, batch_axis=(None, 0))(w, rows)
    each = [nbta.value_and_grad(loss, compiled=False)(w, x) for x in rows]
    np.testing.assert_allclose(value, sum(v for v, _ in each))
    np.testing.assert_allclose(found, sum(g for _, g in each))


def test_a_session():
    """Where lengths of the columns are known, or an argument's."""
    with nbta.Graph().as_default() as graph:
        x = nbta.placeholder("float64", (None, 3))
        y = nbta.map_fn(lambda r: r * 2.0, x)
        (g,) = nbta.gradients([nbta.sum(y)], [x])
    found = nbta.Session(graph).run([y, g], {x: np.zeros((0, 3))})
    assert [value.shape for value in found] == [(0, 3), (0, 3)]


def test_an_eager_array_learns_from_no_rows():
    ta = nbta.TensorArray("float64", 0, dynamic_size=True).unstack(np.zeros((0, 3)))
    assert ta.stack().shape == (0, 3)
    assert ta.element_shape == (3,)
    with pytest.raises(nbta.InvalidArgumentError, match="elements of shape"):
        ta.append(np.ones(2))
