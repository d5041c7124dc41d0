"""Sparse Jacobians and Hessians against dense ones, and patterns that miss nothing."""

import pickle

import numpy as np
import pytest
import scipy.sparse
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st
from random_programs import programs
from sparse_programs import SparseMaker, made

import nbta
from nbta.errors import InvalidArgumentError
from nbta.structure import leaves

RNG = np.random.default_rng(7)
X = RNG.normal(size=12)
BAND = np.triu(np.tril(RNG.normal(size=(12, 12)), 1), -2)
PLACES = RNG.integers(0, 12, size=9)


def three_points(x):
    return x[2:] * x[:-2] - 2 * np.sin(x[1:-1])


def five_diagonals_in_a_loop(x):
    y = np.zeros_like(x)
    for i in range(2, len(x) - 2):
        y[i] = x[i - 2] - 4 * x[i - 1] + x[i] ** 3 - 4 * x[i + 1] + x[i + 2]
    y[0] = x[0]
    y[-1] = np.exp(x[-1])
    return y


def periodic(x):
    return x * (np.roll(x, -1) - np.roll(x, 2))


def tridiagonal_solve(x):
    """By Thomas's algorithm: each item depends on all."""
    n = len(x)
    c, d = np.zeros(n), np.zeros(n)
    c[0], d[0] = -0.25, x[0] / 4.0
    for i in range(1, n):
        pivot = 4.0 + c[i - 1]
        c[i] = -1.0 / pivot
        d[i] = (x[i] + d[i - 1]) / pivot
    for k in range(n - 1):
        i = n - 2 - k
        d[i] = d[i] - c[i] * d[i + 1]
    return d


def blocks(x):
    y = np.zeros(12)
    for b in range(4):
        s = 0.0
        for k in range(3):
            s += x[3 * b + k] ** 2
        for k in range(3):
            y[3 * b + k] = s * x[3 * b + k]
    return y


def burgers(u):
    du = np.zeros_like(u)
    du[1:-1] = -u[1:-1] * (u[2:] - u[:-2]) + 0.1 * (u[2:] - 2 * u[1:-1] + u[:-2])
    return du


def reaction_diffusion(x):
    u = x.reshape(3, 4)
    padded = np.zeros((5, 6))
    padded[1:-1, 1:-1] = u
    around = padded[2:, 1:-1] + padded[:-2, 1:-1] + padded[1:-1, 2:] + padded[1:-1, :-2]
    return around - 4 * u + u * (1 - u**2)


def reaction_diffusion_in_loops(x):
    n, m = 3, 4
    found = np.zeros(12)
    for i in range(n):
        for j in range(m):
            s = -4 * x[m * i + j]
            if i > 0:
                s += x[m * (i - 1) + j]
            if i < n - 1:
                s += x[m * (i + 1) + j]
            if j > 0:
                s += x[m * i + j - 1]
            if j < m - 1:
                s += x[m * i + j + 1]
            found[m * i + j] = s
    return found


def recurrence(x):
    y = x.copy()
    for i in range(1, len(x)):
        y[i] = np.sin(y[i - 1]) * x[i]
    return y


def listed(x):
    found = []
    s = 0.0
    for i in range(len(x)):
        s = 0.5 * s + x[i] if x[i] > 0 else 0.25 * s
        found.append(s * x[0])
    return np.array(found)


def gathered(x):
    return x[PLACES] ** 2


def scattered(x):
    y = np.zeros(15)
    for k in range(len(PLACES)):
        y[PLACES[k] + 2] += x[k] ** 2
    return y


def branches(x):
    y = np.zeros_like(x)
    for i in range(1, len(x)):
        if x[i] > 0:
            y[i] = x[i - 1] * x[i]
        else:
            y[i] = x[0]
    return y


def upwind(x):
    y = np.zeros_like(x)
    for i in range(1, len(x) - 1):
        y[i] = x[i] * (x[i] - x[i - 1] if x[i] > 0 else x[i + 1] - x[i])
    return y


def ordered(x):
    return np.concatenate([np.sort(x[:4]), x[4:] ** 2])


def by_constants(x):
    return np.tanh(BAND @ x)


def masked(x):
    return np.where(np.arange(12) % 3 == 0, x**2, 0.0) + (np.arange(12) % 2) * x[::-1]


def newton_for_each_item(x):
    y = np.zeros_like(x)
    for i in range(len(x)):
        u = 1.0
        while abs(u * u * u + u - x[i]) > 1e-12:
            u -= (u * u * u + u - x[i]) / (3 * u * u + 1)
        y[i] = u
    return y


def steps(x):
    u = x
    for _ in range(3):
        u = np.concatenate([u[:1], u[1:-1] + 0.1 * (u[2:] - 2 * u[1:-1] + u[:-2]), u[-1:]])
    return u


def sums_of_rows(x):
    return np.sum(x.reshape(3, 4) ** 2, axis=1) + np.max(x.reshape(3, 4), axis=1)


def running_sums(x):
    return np.cumsum(x**2)


def at_the_largest(x):
    y = x**2
    y[np.argmax(x)] = x[0]
    return y


def products(x):
    return np.outer(x[:3], x[3:5]) @ np.ones((2, 2))


def arrow(x):
    return np.concatenate([np.sum(x**2)[None], x[1:] ** 2])


def scanned(x):
    return nbta.scan(lambda s, v: (s * v, s + v), x[0], x[1:])[1]


def mapped(x):
    return nbta.map_fn(lambda row: row[0] * row[2], x.reshape(4, 3))


PROGRAMS = [
    three_points, five_diagonals_in_a_loop, periodic, tridiagonal_solve, blocks, burgers,
    reaction_diffusion, reaction_diffusion_in_loops, recurrence, listed, gathered, scattered,
    branches, upwind, ordered, by_constants, masked, newton_for_each_item, steps, sums_of_rows,
    running_sums, at_the_largest, products, arrow, scanned, mapped,
    lambda x: np.sum(x[:5] ** 2),
    lambda x: np.zeros(3) + x[:0].sum(),
    lambda x: x[:0],
    lambda x: np.ones(4),
]  # fmt: skip

#: Those whose patterns have no item that is zero for all values.
EXACT = [f for f in PROGRAMS if f not in (listed, branches, at_the_largest, ordered)]


def named(f):
    return f.__name__


def dense(f, x):
    found = nbta.jacobian(f, compiled=False)(x)
    return found.reshape(-1, x.size)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("f", PROGRAMS, ids=named)
def test_values_are_those_of_jacobian(f, compiled):
    sparse = nbta.sparse_jacobian(f, compiled=compiled)
    for x in (X, X[::-1] * 1.5):
        found, want = sparse(x), dense(f, x)
        assert isinstance(found, scipy.sparse.csr_array)
        assert found.shape == want.shape
        assert found.has_canonical_format
        np.testing.assert_allclose(found.toarray(), want, rtol=1e-12, atol=1e-13)


@pytest.mark.slow_but_every(2)
@pytest.mark.parametrize("f", EXACT, ids=named)
def test_patterns_have_no_more_items_than_some_value_needs(f):
    want = sum(dense(f, RNG.normal(size=12)) != 0 for _ in range(12)) > 0
    assert nbta.sparse_jacobian(f, compiled=False)(X).nnz == want.sum()


@pytest.mark.parametrize("f", [three_points, recurrence, upwind], ids=named)
def test_single_precision(f):
    x = X.astype(np.float32)
    found = nbta.sparse_jacobian(f)(x)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found.toarray(), dense(f, x), rtol=1e-6)


SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]


def check(program, x, n):
    """The sparse Jacobian by the argument that is an array, against the dense one."""

    def f(x, n):
        return nbta.concatenate([nbta.reshape(part, -1) for part in leaves(program(x, n))])

    with np.errstate(all="ignore"):
        want = nbta.jacobian(f, compiled=False)(x, n)
        found = nbta.sparse_jacobian(f, compiled=False)(x, n)
    np.testing.assert_allclose(
        found.toarray(), want.reshape(found.shape), rtol=1e-9, atol=1e-9 * abs(want).max(initial=1)
    )


@pytest.mark.filterwarnings("ignore::nbta.PerformanceWarning")
@settings(max_examples=20, suppress_health_check=SLOW, deadline=None)
@given(programs(depth=2), st.integers(0, 4))
def test_random_programs(program, n):
    check(program, np.array([0.71, -0.43, 0.92]), np.int64(n))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::nbta.PerformanceWarning")
@pytest.mark.parametrize("number", range(15))
def test_many_random_programs(number):
    @seed(number)
    @settings(max_examples=20, suppress_health_check=SLOW, deadline=None)
    @given(programs(depth=2), st.integers(0, 4))
    def held(program, n):
        check(program, np.array([0.71, -0.43, 0.92]), np.int64(n))

    held()


def check_pattern(seed):
    """At several points no item is nonzero that a pattern, found at one, does not have."""
    f, text = made(seed)
    rng = np.random.default_rng(seed)
    sparse, jacobian = nbta.sparse_jacobian(f, compiled=False), nbta.jacobian(f, compiled=False)
    for _ in range(3):
        x = rng.normal(size=SparseMaker.length)
        want = jacobian(x).reshape(-1, x.size)
        np.testing.assert_allclose(sparse(x).toarray(), want, rtol=1e-9, atol=1e-12, err_msg=text)


@pytest.mark.slow_but_every(4)
@pytest.mark.filterwarnings("ignore::nbta.PerformanceWarning")
@pytest.mark.parametrize("seed", range(40))
def test_random_programs_of_arrays(seed):
    check_pattern(seed)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::nbta.PerformanceWarning")
@pytest.mark.parametrize("seed", range(1000, 1600))
def test_many_random_programs_of_arrays(seed):
    check_pattern(seed)


# Colours.


def number_of_derivatives(sparse):
    (plan,) = sparse._plans.values()
    return plan._number


def test_a_tridiagonal_jacobian_takes_three_derivatives():
    x = np.linspace(0, 1, 10_000)
    sparse = nbta.sparse_jacobian(burgers)
    assert sparse(x).nnz == 3 * 9998
    assert number_of_derivatives(sparse) == 3


def test_a_dense_row_is_computed_by_gradients():
    sparse = nbta.sparse_jacobian(arrow)
    sparse(np.linspace(0, 1, 50))
    assert number_of_derivatives(sparse) == 2


@pytest.mark.parametrize("seed", range(5))
def test_columns_of_one_colour_have_no_row_in_common(seed):
    pattern = scipy.sparse.random_array((30, 40), density=0.08, rng=seed).tocsr().astype(bool)
    colours = nbta.api.sparse._colours(pattern.T.tocsr())
    for colour in range(colours.max() + 1):
        assert pattern[:, [c == colour for c in colours]].sum(1).max() <= 1
    assert colours.max() < 15


# Arguments.


def weighted(x, w, k, *, scale):
    return scale * w[k] * x[k:] ** 2


def test_other_arguments():
    sparse = nbta.sparse_jacobian(weighted)
    for k in (2, 5, 2):
        found = sparse(X, BAND[0] + 1, k, scale=2.0).toarray()
        want = nbta.jacobian(weighted)(X, BAND[0] + 1, k, scale=2.0)
        np.testing.assert_allclose(found, want)
    static = nbta.sparse_jacobian(weighted, static_argnums=2, static_argnames="scale")
    np.testing.assert_allclose(static(X, BAND[0] + 1, 2, scale=2.0).toarray(), want)
    by_weights = nbta.sparse_jacobian(weighted, argnums=-2)(X, BAND[0] + 1, 3, scale=1.0)
    assert by_weights.nnz == 9


def test_indices_are_part_of_the_pattern():
    def f(x, places):
        return x[places]

    sparse = nbta.sparse_jacobian(f)
    for places in ([0, 3], [3, 0], [1, 1]):
        assert (sparse(X, np.array(places)).toarray() == np.eye(12)[places]).all()


def test_a_float_that_chooses_does_not_decide_the_pattern():
    def f(x, t):
        return x[1:] if t > 0 else x[:-1] ** 2

    sparse = nbta.sparse_jacobian(f)
    for t in (1.0, -1.0):
        np.testing.assert_allclose(sparse(X, t).toarray(), nbta.jacobian(f)(X, t))
    assert sparse(X, 1.0).nnz == 22


def test_arrays_from_outside_may_change():
    places = np.array([0, 1])

    def f(x):
        return x[places]

    sparse = nbta.sparse_jacobian(f)
    assert (sparse(X).toarray() == np.eye(12)[:2]).all()
    places[:] = [5, 2]
    assert (sparse(X).toarray() == np.eye(12)[[5, 2]]).all()


SHIFT = 1


def shifted(x):
    return x[SHIFT:] ** 2


def test_numbers_from_outside_may_change(monkeypatch):
    sparse = nbta.sparse_jacobian(shifted)
    for shift in (1, 1, 3, 1):
        monkeypatch.setitem(globals(), "SHIFT", shift)
        np.testing.assert_allclose(sparse(X).toarray(), (2 * np.diag(X))[shift:])


def test_results_share_no_memory():
    sparse = nbta.sparse_jacobian(three_points)
    one = sparse(X)
    one.indices[:] = 0
    one.data[:] = 0
    np.testing.assert_allclose(sparse(X).toarray(), dense(three_points, X))


def test_it_can_be_pickled():
    sparse = pickle.loads(pickle.dumps(nbta.sparse_jacobian(three_points)))
    np.testing.assert_allclose(sparse(X).toarray(), dense(three_points, X))


# Patterns that are given.


def test_a_pattern_that_is_given():
    pattern = dense(three_points, X) != 0
    for given_pattern in (pattern, scipy.sparse.coo_array(pattern), np.ones((10, 12), bool)):
        found = nbta.sparse_jacobian(three_points, pattern=given_pattern)(X)
        assert found.nnz == (30 if given_pattern is pattern else given_pattern.sum())
        np.testing.assert_allclose(found.toarray(), dense(three_points, X))


@pytest.mark.parametrize("seed", range(10))
def test_a_pattern_that_misses_an_item_is_refused(seed):
    pattern = dense(three_points, X) != 0
    rows, columns = pattern.nonzero()
    k = np.random.default_rng(seed).integers(len(rows))
    pattern[rows[k], columns[k]] = False
    with pytest.raises(InvalidArgumentError, match=f"pattern misses items of row {rows[k]}:"):
        nbta.sparse_jacobian(three_points, pattern=pattern)(X)


def test_patterns_of_another_kind_are_refused():
    with pytest.raises(InvalidArgumentError, match=r"pattern has shape \(3, 12\), and the matrix"):
        nbta.sparse_jacobian(three_points, pattern=np.ones((3, 12), bool))(X)
    with pytest.raises(InvalidArgumentError, match="pattern has dtype float64 and 2 axes"):
        nbta.sparse_jacobian(three_points, pattern=np.ones((10, 12)))
    with pytest.raises(InvalidArgumentError, match="pattern has dtype bool and 1 axes"):
        nbta.sparse_jacobian(three_points, pattern=np.ones(10, bool))


def test_a_pattern_that_is_not_found_is_dense_with_a_warning():
    def f(x):
        found = []
        for i in range(len(x)):
            if x[i] > -5:
                found.append(x[i])
        return np.array(found)

    with pytest.warns(nbta.PerformanceWarning, match="Give pattern="):
        found = nbta.sparse_jacobian(f)(X)
    np.testing.assert_allclose(found.toarray(), np.eye(12))


@pytest.mark.filterwarnings("ignore::nbta.PerformanceWarning")
@pytest.mark.parametrize("x", [[1.0, 3.0, 2.0], [-1.0, 3.0, -2.0]])
def test_another_number_of_results_is_refused(x):
    def f(x):
        found = []
        for i in range(len(x)):
            if x[i] > 0:
                found.append(x[i] ** 2)
        return np.array(found)

    sparse = nbta.sparse_jacobian(f)
    assert sparse(np.array([1.0, -1.0, 2.0])).shape == (2, 3)
    with pytest.raises(InvalidArgumentError, match="how many items f returns depends on values"):
        sparse(np.array(x))


# Errors.


@pytest.mark.parametrize(
    ("f", "x", "text"),
    [
        (lambda x: x, X.astype(complex), "the argument is complex128"),
        (lambda x: x * 1j, X, "f's result is complex128"),
        (lambda x: x, np.arange(3), "the argument is int64"),
        (lambda x: np.argsort(x), X, "f's result is int64"),
        (lambda x: (x, x), X, "f returns"),
        (lambda p: p["a"], {"a": X}, "the argument is"),
        (lambda x: x, X.astype(np.float16), "the argument is float16"),
    ],
)
def test_what_is_no_array_of_real_floats_is_refused(f, x, text):
    with pytest.raises(InvalidArgumentError, match=rf"sparse_jacobian: {text}.*must be one array"):
        nbta.sparse_jacobian(f)(x)


def test_other_refusals():
    with pytest.raises(InvalidArgumentError, match=r"argnums: \(0,\) is not an int"):
        nbta.sparse_jacobian(three_points, argnums=(0,))
    with pytest.raises(InvalidArgumentError, match="runs outside of graphs"):
        nbta.function(nbta.sparse_jacobian(three_points))(X)
    with pytest.raises(InvalidArgumentError, match="there is no argument 1"):
        nbta.sparse_jacobian(three_points, argnums=1)(X)


# Hessians.


def valley(x):
    s = 0.0
    for i in range(len(x) - 1):
        s += 100.0 * (x[i + 1] - x[i] ** 2) ** 2 + (1.0 - x[i]) ** 2
    return s


def chain(x):
    return np.sum(np.cosh(x[1:] - x[:-1])) + np.sum(x[::3] ** 4)


def energy_of_steps(x):
    return np.sum(steps(x) ** 2)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("f", [valley, chain, energy_of_steps], ids=named)
def test_hessians(f, compiled):
    found = nbta.sparse_hessian(f, compiled=compiled)(X)
    want = nbta.hessian(f)(X)
    np.testing.assert_allclose(found.toarray(), want, rtol=1e-12, atol=1e-12)
    assert found.nnz == (want != 0).sum()


def test_hessians_of_users_own_operations():
    @nbta.custom_gradient
    def square(x):
        return x * x

    @square.backward
    @nbta.custom_gradient
    def slope(dy, x, y):
        return 2.0 * x * dy

    @slope.backward
    def slope_again(ddx, dy, x, y, dx):
        return 2.0 * x * ddx, 2.0 * dy * ddx, np.zeros_like(y)

    def f(x):
        return np.sum(square(x)[1:] * x[:-1])

    np.testing.assert_allclose(nbta.sparse_hessian(f)(X).toarray(), nbta.hessian(f)(X))
