"""Adjoints that are exactly zero stay zero, whatever the derivatives are that they meet."""

import itertools

import numpy as np
import pytest
from elementwise_records import arity

import nbta
from nbta.graph.graph import Graph
from nbta.graph.operation import TABLE

#: Where derivatives of one function or another are infinite or not defined, and some others.
POINTS = (-np.inf, -2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0, 800.0, np.inf, np.nan)


#: Operations whose second derivatives are refused.
REFUSED = {"Fixed", "GammaVariateSlope", "GammaIncSlope"}
RECORDS = [record for record in TABLE.values() if arity(record) and record.name not in REFUSED]


def points(count):
    """Vectors of all combinations."""
    return [np.array(each) for each in zip(*itertools.product(POINTS, repeat=count), strict=True)]


@pytest.mark.slow_but_every(2)
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.name)
def test_a_zero_stays_zero(record, compiled):
    given = points(arity(record))
    n = len(given[0])
    with Graph().as_default() as graph:
        xs = [nbta.placeholder("float64", (n,)) for _ in given]
        seed, tangent = (nbta.placeholder("float64", (n,)) for _ in range(2))
        y = graph.create(record, xs).outputs[0]
        first = nbta.gradients(y, xs, [seed], unconnected="zero")
        forward = nbta.gradients(first, [seed], [tangent] * len(xs), unconnected="zero")
        second = nbta.gradients(first, xs, [tangent] * len(xs), unconnected="zero")
    session = nbta.Session(graph)

    def run(fetches, seeds, tangents):
        feeds = dict(zip(xs, given, strict=True)) | {seed: seeds, tangent: tangents}
        return session.run(fetches, feeds, compiled=compiled)

    zeros, ones = np.zeros(n), np.ones(n)
    for found in run(first, zeros, ones) + run(second, zeros, ones):
        np.testing.assert_array_equal(found, zeros)
    for found in run(forward, ones, zeros) + run(second, ones, zeros):
        np.testing.assert_array_equal(found, zeros)
    # Others are as they are without zeros beside them, and those of forward mode as of reverse.
    some = np.arange(n) % 3 == 0
    whole, part = run(first, ones, ones), run(first, np.where(some, 0.0, 1.0), ones)
    for one, other in zip(whole, part, strict=True):
        np.testing.assert_array_equal(np.where(some, 0.0, one), other)
    with np.errstate(invalid="ignore"):
        total = np.sum(whole, axis=0)
    finite = np.isfinite([*given, run(y, zeros, zeros), *whole]).all(axis=0)
    np.testing.assert_allclose(run(forward, zeros, ones)[0][finite], total[finite], rtol=1e-12)


@pytest.mark.parametrize("dtype", ["float16", "float32", "complex64", "complex128"])
def test_in_other_dtypes(dtype):
    def root(x):
        return np.real(np.sum(np.where(np.abs(x) > 0.0, np.sqrt(x) + x * np.log(x) + 1.0 / x, x)))

    x = np.array([0.0, 1.0], dtype)
    for compiled in False, True:
        found = nbta.grad(root, compiled=compiled)(x)
        np.testing.assert_allclose(found, np.array([1.0, 0.5 + 1.0 - 1.0], dtype), rtol=1e-3)


def items(w, x, read):
    y, total = np.zeros(len(x)), 0.0
    for i in range(len(x)):
        y[i] = w * x[i]
    for k in read:
        total += y[k] ** 2
    return total


def a_list(w, x, read):
    y, total = [], 0.0
    for i in range(len(x)):
        y.append(w * x[i])
    for k in read:
        total += y[k] ** 2
    return total


def slots(w, x, read):
    y = nbta.TensorArray(np.float64, len(x), element_shape=())
    for i in range(len(x)):
        y = y.write(i, w * x[i])
    return nbta.sum(y.gather(read) ** 2)


def rows(w, x, read):
    return ((w * x)[read] ** 2).sum()


def assigned_over(w, x, read):
    y, total = np.zeros(1), 0.0
    for i in range(len(x)):
        y[0] = w * x[len(x) - 1 - i]
        if i != 1:
            total += y[0] ** 2
    return total - (w * x[1]) ** 2


def in_no_iterations(w, x, read):
    lost, total = w * x[2], (w * x[0]) ** 2 + (w * x[3]) ** 2
    for _ in range(read[0]):
        total = total * lost
    return total


def state_after_the_last_use(w, x, read):
    state, total = w, 0.0
    for i in (0, 3):
        for _ in range(1):
            total += (state * x[i]) ** 2
            state = state * x[2]
        state = w
    return total


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(
    "f",
    [items, a_list, slots, rows, assigned_over, in_no_iterations, state_after_the_last_use],
    ids=lambda f: f.__name__,
)
def test_what_no_result_depends_on(f, compiled):
    """A product with NaN, as of a missing observation, in what the loss does not read."""
    x, read = np.array([0.5, 2.0, np.nan, 3.0]), np.array([0, 3])
    value, slope = nbta.value_and_grad(f, compiled=compiled)(0.5, x, read)
    assert (value, slope) == (2.3125, 9.25)
    along = nbta.function(lambda w, d: nbta.jvp(lambda w: f(w, x, read), w, d), compiled=compiled)
    assert tuple(along(0.5, 1.0)) == (2.3125, 9.25)
    second = nbta.jvp(nbta.grad(lambda w: f(w, x, read), compiled=compiled), 0.5, 1.0)
    assert tuple(second) == (9.25, 18.5)


@pytest.mark.parametrize("compiled", [False, True])
def test_of_the_last_state(compiled):
    """Which no iteration uses, and which an item makes infinite, or is for itself."""

    def products(w, x):
        total = 0.0
        for each in x:
            total += w
            w = w * each
        return total

    def quotients(w, a, n):
        total = 0.0
        for _ in range(n):
            total += 1.0 / w
            w = w * a
        return total

    x = np.array([0.5, 2.0, 3.0, np.inf])
    slopes = nbta.grad(products, argnums=(0, 1), compiled=compiled)(0.5, x)
    assert slopes[0] == 5.5
    assert slopes[1].tolist() == [4.5, 1.0, 0.5, 0.0]
    slopes = nbta.grad(quotients, argnums=(0, 1), compiled=compiled)(0.5, np.inf, 4)
    assert slopes == (-4.0, 0.0)


PRODUCTS = {
    "vectors": (lambda a, b: a @ b * np.ones(2), (3,), (3,)),
    "row_matrix": (lambda a, b: b.T @ a, (3,), (3, 4)),
    "matrix_vector": (lambda a, b: a @ b, (4, 3), (3,)),
    "matrices": (lambda a, b: a @ b, (4, 3), (3, 2)),
    "large": (lambda a, b: a @ b, (9, 8), (8, 7)),
    "transposed": (lambda a, b: b.T @ a.T, (4, 3), (3, 2)),
    "batch": (lambda a, b: a @ b, (2, 4, 3), (3, 2)),
    "batches": (lambda a, b: a @ b, (2, 4, 3), (2, 3, 2)),
    "batch_vector": (lambda a, b: a @ b, (2, 4, 3), (3,)),
    "outer": (np.outer, (3,), (4,)),
    "einsum": (lambda a, b: np.einsum("ij,kj->ki", a, b), (4, 3), (2, 3)),
    "einsum_items": (lambda a, b: np.einsum("ij,ij->i", a, b), (4, 3), (4, 3)),
    "einsum_spread": (lambda a, b: np.einsum("ij,i->ji", a, b), (4, 3), (4,)),
    "einsum_batch": (lambda a, b: np.einsum("bij,bj->bi", a, b), (2, 4, 3), (2, 3)),
    "einsum_three": (lambda a, b: np.einsum("ij,jk,k->i", a, b, b[0]), (4, 3), (3, 3)),
    "tensordot": (lambda a, b: np.tensordot(a, b, 1), (4, 3), (3, 2)),
    "inner": (np.inner, (4, 3), (2, 3)),
    "kron": (np.kron, (2, 2), (2, 2)),
    "convolve": (lambda a, b: np.convolve(a, b, "same"), (9,), (3,)),
    "correlate": (lambda a, b: np.correlate(a, b, "valid"), (9,), (3,)),
    "in_a_loop": (lambda a, b: _in_a_loop(a, b), (4, 3), (3, 3)),
}  # fmt: skip


def _in_a_loop(a, b):
    y = np.zeros(len(a), a.dtype)
    for i in range(len(a)):
        y[i] = (b @ a[i]) @ a[i]
    return y


def broken(kind, place, bad, dtype):
    """A loss of the finite items of a product, and factors with a row that is not, or of zeros."""
    product, *shapes = PRODUCTS[kind]
    draw = np.random.default_rng(0)
    given = [draw.uniform(0.5, 1.5, shape).astype(dtype) for shape in shapes]
    mended = [each.copy() for each in given]
    given[place][-1], mended[place][-1] = bad, 0.0
    with np.errstate(all="ignore"):
        finite = np.isfinite(product(*given))

    def loss(a, b):
        return np.sum(np.where(finite, np.abs(product(a, b)), 0.0) ** 2)

    return loss, given, mended


@pytest.mark.slow_but_every(2)
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(("bad", "dtype"), [(np.inf, "float64"), (np.nan, "complex64")])
@pytest.mark.parametrize("kind", PRODUCTS)
def test_sums_of_products(kind, bad, dtype, compiled):
    """What a row has that is not finite has no part in a gradient by the results of others."""
    for place in range(2):
        loss, given, mended = broken(kind, place, bad, dtype)
        slopes = nbta.grad(loss, argnums=(0, 1), compiled=compiled)
        for one, other in zip(slopes(*given), slopes(*mended), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-4)


@pytest.mark.parametrize("kind", PRODUCTS)
@pytest.mark.parametrize("compiled", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_sums_of_products_to_second_order(kind, compiled):
    for place in range(2):
        loss, given, mended = broken(kind, place, np.inf, "float64")
        slope = nbta.grad(loss, argnums=1 - place, compiled=compiled)
        other = given[1 - place]

        def along(given, slope=slope, place=place, other=other):
            pair = (lambda x: (given[0], x)) if place == 0 else (lambda x: (x, given[1]))
            return nbta.jvp(lambda x: slope(*pair(x)), other, np.ones_like(other))

        for one, two in zip(along(given), along(mended), strict=True):
            np.testing.assert_allclose(one, two, rtol=1e-9)


def test_sums_of_products_of_batches():
    loss, given, mended = broken("matrices", 0, np.inf, "float64")
    stacked = [np.stack([one, other]) for one, other in zip(given, mended, strict=True)]
    found = nbta.vmap(nbta.grad(loss, argnums=1))(*stacked)
    np.testing.assert_allclose(found[0], found[1])
    assert np.isfinite(found).all()


LEVELLING_OFF = ["exp", "exp2", "expm1", "tanh", "sigmoid", "softplus", "erf"]


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("name", LEVELLING_OFF)
def test_tangents_of_functions_that_are_flat_at_infinity(name, compiled):
    """What comes there faster or slower is the same, as of masks divided by a temperature."""
    function = getattr(nbta, name)
    masked = np.array([-np.inf, 0.5])

    def loss(t):
        return np.sum(function(masked / t))

    forward = nbta.function(lambda t: nbta.jvp(loss, (t,), (1.0,)), compiled=compiled)
    value, slope = forward(2.0)
    assert value == loss(2.0)
    np.testing.assert_allclose(slope, nbta.grad(loss, compiled=compiled)(2.0), rtol=1e-14)
    np.testing.assert_allclose(slope, (loss(2.0 + 1e-6) - loss(2.0 - 1e-6)) / 2e-6, rtol=1e-8)
