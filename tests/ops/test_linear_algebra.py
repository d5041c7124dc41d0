"""Linear algebra by NumPy's and SciPy's names, in unmodified functions, against these."""

import warnings

import numpy as np
import pytest
import scipy.linalg
from golden_graph import all_operations
from many import each

import nbta
from nbta.compiler.pipeline import optimised
from nbta.testing import check_grads

RNG = np.random.default_rng(3)
A, STACK = RNG.normal(size=(4, 4)), RNG.normal(size=(3, 4, 4))
B, V = RNG.normal(size=(4, 2)), RNG.normal(size=4)
DEFINITE = A @ A.T + np.eye(4)


def results(value):
    """The arrays in what a function gives."""
    return (
        [np.asarray(v) for v in value] if isinstance(value, tuple | list) else [np.asarray(value)]
    )


def agrees(function, *args, rtol=1e-12):
    """That both executors give what NumPy and SciPy do, with dtypes and shapes."""
    expected = results(function(*args))
    for compiled in (False, True):
        found = results(nbta.function(function, compiled=compiled)(*args))
        for one, other in zip(found, expected, strict=True):
            assert (one.dtype, one.shape) == (other.dtype, other.shape)
            np.testing.assert_allclose(one, other, rtol, rtol * 10)


def assert_close(found, wanted):
    for one, other in zip(results(found), results(wanted), strict=True):
        np.testing.assert_allclose(one, other, 1e-9, 1e-12)


def complex_of(x):
    return x + 1j * np.flip(x) * 0.7


def as_dtype(dtype, *arrays):
    if np.dtype(dtype).kind == "c":
        arrays = [complex_of(x) for x in arrays]
    return [x.astype(dtype) for x in arrays]


def tolerance(dtype):
    return 1e-11 if np.dtype(dtype).itemsize >= 8 and dtype != "complex64" else 2e-3


def refused(reason, match, function, *args):
    """That a function refuses, at once and in a graph."""
    for run in (function, nbta.function(function)):
        with pytest.raises(nbta.InvalidArgumentError, match=match) as caught:
            run(*args)
        assert caught.value.reason == reason


def assert_native(function, *args):
    """That compiled code of a function leaves nothing to Python."""
    run = nbta.function(function, compiled=True)
    run(*args)
    assert "run in Python" not in run.explain()


# Products


def products(a, stack, b, v):
    return (
        np.vdot(a, a), np.vdot(v, v), np.inner(a, stack), np.inner(v, v), np.inner(v, v[0]),
        np.tensordot(a, b, 1), np.tensordot(a, a), np.tensordot(stack, b, ([1], [0])),
        np.tensordot(stack, a, ((2, 1), (0, 1))), np.tensordot(v, v, 0), np.linalg.vecdot(stack, v),
        np.vecdot(b, b, axis=0), np.linalg.matrix_power(a, 5), np.linalg.matrix_power(stack, 0),
        np.linalg.matrix_power(stack, -2), np.linalg.multi_dot([v, a, b]), np.linalg.outer(v, v),
        np.linalg.multi_dot([b.T, a, a, v]), np.linalg.multi_dot([a, b]), np.linalg.matmul(a, b),
        np.linalg.tensordot(a, b, axes=1), np.einsum("i,ij,jk,k", v, a, a, v), v.dot(a), a.dot(b),
        np.linalg.matrix_transpose(stack),
    )  # fmt: skip


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128"])
def test_products(dtype):
    agrees(products, *as_dtype(dtype, A, STACK, B, V), rtol=tolerance(dtype))


def test_products_of_integers():
    a, v = np.arange(9).reshape(3, 3), np.arange(3)

    def some(a, v):
        power = np.linalg.matrix_power(a, 3)
        return np.vdot(a, a), np.inner(a, v), np.tensordot(a, a), power, np.cross(a, v)

    agrees(some, a, v)


def vectors(a, b):
    flat = a[..., :2]
    return (
        np.cross(a, b), np.cross(a, b[0]), np.cross(flat, b), np.cross(a, flat),
        np.cross(a.T, b.T, axis=0), np.cross(a, b.T, axisb=0, axisc=0), np.linalg.cross(a, b),
    )  # fmt: skip


def test_vector_products():
    a, b = RNG.normal(size=(2, 4, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of vectors of length 2
        agrees(vectors, a, b)
    np.testing.assert_allclose(nbta.cross([1.0, 2.0], [3.0, 4.0]), -2)


@pytest.mark.smoke
def test_gradients_of_products():
    check_grads(lambda a, v: (np.vdot(a, a), np.inner(a, v), np.tensordot(a, a)), (A, V))
    check_grads(lambda a: np.linalg.matrix_power(a, 3), (A,))
    check_grads(lambda a, b: np.linalg.multi_dot([b, a, a, b]), (A, V))
    check_grads(lambda a, b: np.cross(a, b), tuple(RNG.normal(size=(2, 2, 3))))


def test_what_has_no_product():
    refused("axis", "5 axes of ranks 2 and 2", lambda a: nbta.tensordot(a, a, 5), A)
    refused(
        "axis", "must be two lists of one length", lambda a: nbta.tensordot(a, a, ([0], [0, 1])), A
    )
    refused("axis", "no axis 2 in rank 2", lambda a: nbta.tensordot(a, a, ([2], [0])), A)
    refused("axis", "twice", lambda a: nbta.tensordot(a, a, ([0, 0], [0, 1])), A)
    refused("shape", "lengths 4 and 2", lambda a, b: nbta.tensordot(a, b.T, 1), A, B)
    refused("rank", "two matrices or more", lambda a: nbta.multi_dot([a]), A)
    refused("rank", "only the first and the last", lambda a, v: nbta.multi_dot([a, v, a]), A, V)
    refused("shape", "axis 0 has the length 4, not 2 or 3", lambda v: nbta.cross(v, v), V)
    refused("value", "must be a Python integer", lambda a: nbta.matrix_power(a, 0.5), A)
    refused("shape", "square", lambda b: nbta.matrix_power(b, 0), B)
    with nbta.Graph().as_default():
        for function in (nbta.inner, nbta.tensordot, lambda a, b: nbta.multi_dot([a, b])):
            with pytest.raises(nbta.InvalidArgumentError, match="ranks must be known"):
                function(nbta.placeholder("float64"), A)


def test_a_chain_of_products_takes_the_cheapest_order():
    sizes = [(9, 2), (2, 9), (9, 9), (9, 1)]
    with nbta.Graph().as_default() as g:
        nbta.multi_dot([nbta.placeholder("float64", shape) for shape in sizes])
    assert [op.outputs[0].shape for op in g.operations if op.type == "MatMul"] == [
        (9, 1), (2, 1), (9, 1),
    ]  # fmt: skip


# Triangles


def triangles(a, b, v):
    factor, lower = scipy.linalg.cho_factor(a, lower=True)
    upper = scipy.linalg.cho_factor(a)
    solve = scipy.linalg.solve_triangular
    return (
        np.linalg.cholesky(a), scipy.linalg.cholesky(a), scipy.linalg.cholesky(a, lower=True),
        scipy.linalg.cho_solve((factor, lower), b), scipy.linalg.cho_solve(upper, v),
        solve(a, b), solve(a, v, lower=True), solve(a, b, 1), solve(a, v, "C", lower=True),
        solve(a, v, unit_diagonal=True), solve(a, b, lower=True, unit_diagonal=True, trans="T"),
    )  # fmt: skip


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128"])
def test_triangles(dtype):
    a, b, v = as_dtype(dtype, A, B, V)
    definite = a @ a.conj().T + 4 * np.eye(4, dtype=dtype)
    agrees(triangles, definite, b, v, rtol=tolerance(dtype))


def test_upper_triangles():
    agrees(lambda a: np.linalg.cholesky(a, upper=True), DEFINITE)


@pytest.mark.smoke
def test_gradients_of_triangles():
    def solved(a, b):
        return scipy.linalg.cho_solve(scipy.linalg.cho_factor(a), b)

    def of_ones(a, b):
        return scipy.linalg.solve_triangular(a, b, unit_diagonal=True, trans=1)

    check_grads(solved, (DEFINITE, B))
    check_grads(of_ones, (A, V))
    assert_native(nbta.grad(lambda a, b: np.sum(solved(a, b))), DEFINITE, B)


@pytest.mark.slow_but_every(12)
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("shape", [(0, 0), (2, 0, 0), (0, 2, 2), (1, 1), (2, 3, 3), (49, 49)])
def test_gradients_of_factors_by_both_executors(shape, dtype):
    """First and second ones, and against differences along a direction."""
    (root, weights, way), unit = RNG.normal(size=(3, *shape)), np.eye(shape[-1])
    root, weights, way = as_dtype(dtype, root, weights, way)
    a = (root @ np.conj(np.swapaxes(root, -1, -2)) / 4 + unit).astype(dtype)

    def loss(a):
        factor = nbta.cholesky(a)  # of the mean with the conjugate transpose, as `way` has none
        return np.sum(np.real(factor * weights + factor**3))

    def turned(a):
        return np.sum(np.real(nbta.grad(loss)(a) * weights))

    for function in (loss, turned):
        found, expected = (nbta.grad(function, compiled=c)(a) for c in (True, False))
        assert found.dtype == expected.dtype == dtype
        np.testing.assert_allclose(found, expected, tolerance(dtype), tolerance(dtype))
        if tolerance(dtype) < 1e-10:
            near = [float(function(a + step * way)) for step in (1e-6, -1e-6)]
            along = np.sum(np.real(np.conj(found) * way))
            np.testing.assert_allclose((near[0] - near[1]) / 2e-6, along, 1e-5, 1e-7)


def test_gradients_of_half_precision_factors():
    half = np.float16(DEFINITE)
    for compiled in (False, True):
        found = nbta.grad(lambda a: np.sum(nbta.cholesky(a)), compiled=compiled)(half)
        expected = nbta.grad(lambda a: np.sum(nbta.cholesky(a)))(np.float64(half))
        assert found.dtype == np.float16
        np.testing.assert_allclose(found, expected, 0.05, 0.05)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("n", [3, 20, 60])
def test_nan_goes_as_far_in_gradients_of_factors_by_both_executors(n, bad):
    root, weights = RNG.normal(size=(n, n)), np.zeros((n, n))
    weights[2, 1] = bad
    slope = [
        nbta.grad(lambda a: np.sum(nbta.cholesky(a) * weights), compiled=compiled)
        for compiled in (False, True)
    ]
    one, other = (f(root @ root.T + np.eye(n)) for f in slope)
    assert not np.isfinite(one[:3, :3]).all()
    np.testing.assert_array_equal(np.isfinite(one), np.isfinite(other))


def test_a_gradient_of_a_factor_solves_with_blocks_alone():
    """Nobody clears a triangle that is not read, nor solves with the whole factor for it."""
    with nbta.Graph().as_default():
        a, v = nbta.placeholder("float64", (4, 4)), nbta.placeholder("float64", (4,))
        factor = nbta.cholesky(a)
        whitened = nbta.triangular_solve(factor, v)
        value = nbta.vdot(whitened, whitened) + nbta.sum(nbta.log(nbta.diagonal(factor)))
        program = optimised([a, v], [value, *nbta.gradients(value, [a])])
    types = [op.type for op in all_operations(program)]
    counts = [types.count(name) for name in ("CholeskyGradient", "TriangularSolve", "Tril")]
    assert counts == [1, 2, 0]


def test_second_derivatives_of_factors_take_two_more_calls():
    """One for the tangent of the factor, one for that of its gradient: nobody solves for them."""

    def slope(x, a, v):
        return nbta.hvp(lambda x: np.sum(np.linalg.cholesky(a * x) ** 3), (x,), (v,))

    with nbta.Graph().as_default():
        given = [nbta.placeholder("float64", shape) for shape in ((), (4, 4), ())]
        program = optimised(given, list(slope(*given)))
    types = [op.type for op in all_operations(program)]
    names = "Cholesky", "CholeskyTangent", "CholeskyGradient", "TriangularSolve"
    assert [types.count(name) for name in names] == [1, 1, 2, 0]


@pytest.mark.parametrize("n", [5, 20, 60])
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_directional_derivatives_of_factors(n, dtype):
    """Of both orders, in blocks and by rows, by both executors; the second ones by differences."""
    root, way = as_dtype(dtype, RNG.normal(size=(n, n)), RNG.normal(size=(n, n)))
    a, w = root @ root.conj().T + n * np.eye(n), way + way.conj().T

    def loss(a):
        factor = np.linalg.cholesky(a)
        return np.sum(np.real(factor * np.conj(factor)) ** 2)

    factor = np.linalg.cholesky(a)
    step = 1e-5
    near = [nbta.grad(loss)(a + sign * step * w) for sign in (1, -1)]
    for compiled in (False, True):
        value, change = nbta.function(
            lambda a, w: nbta.jvp(np.linalg.cholesky, (a,), (w,)), compiled=compiled
        )(a, w)
        np.testing.assert_allclose(value, factor, rtol=1e-12, atol=1e-12)
        whole = change @ factor.conj().T
        np.testing.assert_allclose(whole + whole.conj().T, w, rtol=1e-11, atol=1e-11)
        np.testing.assert_array_equal(change, np.tril(change))
        second = nbta.function(lambda a, w: nbta.hvp(loss, (a,), (w,)), compiled=compiled)(a, w)
        expected = (near[0] - near[1]) / (2 * step)
        np.testing.assert_allclose(np.squeeze(second), expected, rtol=1e-6, atol=1e-7)


def test_how_a_triangle_is_taken():
    refused("value", "'T' or 'C', not 3", lambda a: nbta.solve_triangular(a, a, 3), A)


# Factors with pivots


def solutions(a, stack, b, v):
    pair = np.linalg.slogdet(stack)
    return (
        np.linalg.solve(a, b), np.linalg.solve(a, v), np.linalg.solve(stack, b),
        np.linalg.inv(a), np.linalg.inv(stack), np.linalg.det(a), np.linalg.det(stack),
        pair.sign, pair[1], *np.linalg.slogdet(a), scipy.linalg.solve(a, b, transposed=False),
        scipy.linalg.inv(a), np.linalg.solve(a, stack),
    )  # fmt: skip


def factors(a, b, v):
    pair = scipy.linalg.lu_factor(a)
    solve = scipy.linalg.lu_solve
    found = solve(pair, b), solve(pair, v, 1), solve(pair, b, trans=2)
    return *pair, *found, *scipy.linalg.lu(a)


@pytest.mark.slow_but_every(2)
@pytest.mark.parametrize("dtype", ["float64", "float32", "complex64", "complex128"])
def test_what_factors_with_pivots_give(dtype):
    a, stack, b, v = as_dtype(dtype, A, STACK, B, V)
    agrees(solutions, a, stack, b, v, rtol=tolerance(dtype))
    agrees(factors, a, b, v, rtol=tolerance(dtype))


@pytest.mark.parametrize("n", [0, 1, 2, 70, 150])
def test_matrices_of_all_sizes(n):
    a, b = RNG.normal(size=(n, n)) + n * np.eye(n), RNG.normal(size=(n, 80))

    def some(a, b):
        found = np.linalg.solve(a, b), np.linalg.solve(a.T, b[:, :1]), np.linalg.slogdet(a)[1]
        return *found, np.linalg.cholesky(a @ a.T + np.eye(len(a))) if n else np.linalg.inv(a)

    agrees(some, a, b, rtol=1e-11)


def test_gradients_of_what_factors_give():
    check_grads(np.linalg.solve, (STACK, B))
    check_grads(np.linalg.solve, (A, STACK))
    check_grads(np.linalg.solve, (A, V))
    check_grads(np.linalg.inv, (A,))
    check_grads(lambda a: (np.linalg.det(a), np.linalg.slogdet(a)[1]), (STACK,))
    check_grads(lambda a, b: scipy.linalg.lu_solve(scipy.linalg.lu_factor(a), b), (A, B))
    check_grads(lambda a: scipy.linalg.lu_factor(a)[0], (A,))


@pytest.mark.slow
def test_gradients_of_complex_factors():
    a, b = complex_of(A) + np.eye(4), complex_of(B)
    check_grads(np.linalg.solve, (a, b))
    check_grads(np.linalg.det, (a,))
    check_grads(lambda a: tuple(np.linalg.slogdet(a)), (a,))
    check_grads(lambda a: scipy.linalg.lu_factor(a)[0], (a,))


def test_a_matrix_is_factored_once_for_its_solution_its_determinant_and_their_gradients():
    with nbta.Graph().as_default():
        a, v = nbta.placeholder("float64", (4, 4)), nbta.placeholder("float64", (4,))
        value = nbta.vdot(v, nbta.solve(a, v)) + nbta.slogdet(a)[1]
        program = optimised([a, v], [value, *nbta.gradients(value, [a])])
    types = [op.type for op in all_operations(program)]
    assert (types.count("LU"), types.count("LUSolve")) == (1, 3)


def test_singular_matrices():
    zero = np.array([[1.0, 2.0], [2.0, 4.0]])

    def measures(a):
        return np.linalg.det(a), *np.linalg.slogdet(a)

    agrees(measures, zero)
    for compiled in (False, True):
        for function in (
            lambda a: np.linalg.solve(a, np.ones(2)),
            np.linalg.inv,
            nbta.grad(np.linalg.det),
            nbta.grad(lambda a: np.linalg.slogdet(a)[1]),
        ):
            with pytest.raises(nbta.InvalidArgumentError, match="singular") as caught:
                nbta.function(function, compiled=compiled)(zero)
            assert caught.value.reason == "singular"
    refused("singular", r"matrix \(1,\)", nbta.inv, np.stack([np.eye(2), zero]))


def test_scipys_determinant():
    agrees(lambda a, b: (scipy.linalg.det(a), scipy.linalg.det(b)), A, STACK)


def test_nan_goes_through_factors():
    bad = np.array([[1.0, 2.0], [3.0, np.nan]])
    for compiled in (False, True):
        found = nbta.function(np.linalg.solve, compiled=compiled)(bad, np.ones(2))
        assert np.isnan(found).all()
        assert np.isnan(nbta.function(np.linalg.det, compiled=compiled)(bad))


def test_half_precision_is_solved_in_float32():
    half = np.float16(A)
    assert nbta.solve(half, half[0]).dtype == nbta.det(half).dtype == np.float16
    np.testing.assert_allclose(nbta.inv(half) @ np.float64(half), np.eye(4), 0, 0.05)


def test_what_has_no_solution():
    refused("shape", "square", nbta.inv, B)
    refused("shape", "square", lambda b: nbta.det(b), B)
    refused("shape", "does not act on", nbta.solve, A, np.ones(3))
    refused("broadcast", "do not broadcast", nbta.solve, STACK, RNG.normal(size=(2, 4, 1)))
    refused(
        "value",
        "trans must be 0, 1 or 2, not 3",
        lambda a: nbta.lu_solve(nbta.lu_factor(a), a, 3),
        A,
    )
    for function, given in ((scipy.linalg.solve, (A, V)), (scipy.linalg.inv, (A,))):
        run = nbta.function(lambda *x, f=function: f(*x, assume_a="banded"))
        with pytest.raises(nbta.InvalidArgumentError, match="assume_a='banded'; give one of 'gen'"):
            run(*given)
    with nbta.Graph().as_default(), pytest.raises(nbta.InvalidArgumentError, match="rank must"):
        nbta.solve(A, nbta.placeholder("float64"))


STRUCTURES = (
    None, "gen", "sym", "her", "pos", "diagonal", "tridiagonal", "upper triangular",
    "lower triangular",
)  # fmt: skip


@pytest.mark.parametrize("assume_a", STRUCTURES)
def test_structures_of_which_a_part_is_read(assume_a):
    """The other triangle is other numbers, which must be no matter."""
    full = DEFINITE + np.triu(A, 1) * (assume_a in ("sym", "her", "pos"))

    def solved(a, b, v):
        return (
            scipy.linalg.solve(a, b, assume_a=assume_a),
            scipy.linalg.solve(a, v, lower=True, assume_a=assume_a),
        )

    agrees(solved, DEFINITE, B, V, rtol=1e-10)
    parts = np.tril(full) if assume_a != "upper triangular" else full
    found = nbta.function(lambda a: scipy.linalg.solve(a, V, assume_a=assume_a, lower=True))(parts)
    expected = scipy.linalg.solve(parts, V, assume_a=assume_a, lower=True)
    np.testing.assert_allclose(found, expected, 1e-10)
    check_grads(lambda a, v: scipy.linalg.solve(a, v, assume_a=assume_a), (DEFINITE, V))
    if assume_a not in ("diagonal", "tridiagonal"):  # of others SciPy's inverse has what is left
        agrees(lambda a: scipy.linalg.inv(a, assume_a=assume_a), DEFINITE, rtol=1e-10)


def test_structures_of_complex_matrices_and_transposed_ones():
    hermitian = complex_of(A) @ complex_of(A).conj().T + np.eye(4)
    for assume_a in ("gen", "her", "pos", "sym"):
        agrees(lambda a, b, s=assume_a: scipy.linalg.solve(a, b, assume_a=s), hermitian, B + 0j,
               rtol=1e-9)  # fmt: skip
    for assume_a in ("gen", "pos", "sym", "upper triangular", "lower triangular"):
        agrees(lambda a, b, s=assume_a: scipy.linalg.solve(a, b, assume_a=s, transposed=True),
               DEFINITE, B, rtol=1e-10)  # fmt: skip


def tensor_equations(a, b):
    square = a.reshape(2, 2, 2, 2)
    return (
        np.linalg.tensorsolve(square, b), np.linalg.tensorsolve(square, b, axes=(0, 2)),
        np.linalg.tensorinv(square), np.linalg.tensorinv(a.reshape(4, 2, 2), ind=1),
    )  # fmt: skip


def test_equations_of_tensors():
    agrees(tensor_equations, DEFINITE, B[:2], rtol=1e-10)
    check_grads(tensor_equations, (DEFINITE, B[:2]))
    for message, function in (
        ("there are 3 equations for 2 items", lambda a: np.linalg.tensorsolve(a[:3, :2], a[0, :3])),
        ("ind must be 1 or more", lambda a: np.linalg.tensorinv(a, ind=0)),
        ("axes of 4 and 3 items", lambda a: np.linalg.tensorinv(a[:, :3], ind=1)),
    ):
        with pytest.raises(nbta.InvalidArgumentError, match=message):
            nbta.function(function)(A)


def test_lengths_that_only_the_run_tells():
    def some(a, b):
        found = np.linalg.solve(a, b), np.linalg.inv(a), np.linalg.matrix_power(a, 0)
        return (
            *found,
            *scipy.linalg.lu_factor(a),
            scipy.linalg.lu_solve(scipy.linalg.lu_factor(a), b),
        )

    for compiled in (False, True):
        run = nbta.function(some, compiled=compiled)
        for n in (4, 3, 2):
            for one, other in zip(run(A[:n, :n], B[:n]), some(A[:n, :n], B[:n]), strict=True):
                np.testing.assert_allclose(one, other, 1e-11)


def test_a_filter_in_a_loop():
    """A Kalman filter: likelihood and gradient, in one loop of native code."""

    def likelihood(f, q, r, ys):
        x, p, total = np.zeros(4), np.eye(4), 0.0
        for t in range(len(ys)):
            x, p = f @ x, f @ p @ f.T + q
            s = p[:2, :2] + r
            e = ys[t] - x[:2]
            k = np.linalg.solve(s, p[:2]).T
            total += e @ np.linalg.solve(s, e) + np.linalg.slogdet(s)[1]
            x, p = x + k @ e, p - k @ p[:2]
        return total

    args = 0.3 * A, DEFINITE, np.eye(2), RNG.normal(size=(12, 2))
    run = nbta.value_and_grad(likelihood, argnums=(0, 1, 2), compiled=True)
    value, grads = run(*args)
    np.testing.assert_allclose(value, likelihood(*args))
    expected = nbta.grad(likelihood, argnums=(0, 1, 2), compiled=False)(*args)
    each(zip(grads, expected, strict=True), lambda pair: np.testing.assert_allclose(*pair, 1e-9))
    assert "run in Python" not in run.explain()
    check_grads(lambda r: likelihood(*args[:2], r, args[3]), (args[2],), order=1)


# Eigenvalues, singular values, orthogonal columns


TALL = RNG.normal(size=(6, 3))


def hermitian(a):
    return a + np.swapaxes(a.conj(), -1, -2)


def spectra(a, stack):
    found = np.linalg.eigh(hermitian(a))
    return (
        *found, found.eigenvalues, np.linalg.eigvalsh(hermitian(stack)), *np.linalg.eigh(stack * 0),
        scipy.linalg.eigvalsh(hermitian(a)), scipy.linalg.expm(a), scipy.linalg.expm(stack * 3),
    )  # fmt: skip


def decompositions(a, tall, stack):
    return (
        *np.linalg.svd(a), *np.linalg.svd(tall, full_matrices=False), np.linalg.svdvals(stack),
        *np.linalg.svd(tall.T, full_matrices=False), np.linalg.svd(tall, compute_uv=False),
        *np.linalg.svd(tall), *scipy.linalg.svd(tall, full_matrices=False),
        scipy.linalg.svdvals(tall), *np.linalg.qr(tall), *np.linalg.qr(tall.T),
        *np.linalg.qr(stack), np.linalg.qr(tall, mode="r"), *scipy.linalg.qr(tall, mode="economic"),
    )  # fmt: skip


def inverses(a, tall, stack, b, y):
    flat = tall * np.array([1, 1, 0], tall.dtype)
    return (
        np.linalg.pinv(tall), np.linalg.pinv(stack), np.linalg.pinv(tall, 0.9),
        np.linalg.pinv(flat), scipy.linalg.pinv(tall), np.linalg.matrix_rank(stack),
        np.linalg.matrix_rank(flat), np.linalg.matrix_rank(tall, 1.0), np.linalg.matrix_rank(y),
        *np.linalg.lstsq(tall, y), *np.linalg.lstsq(tall.T, y[:3]), np.linalg.lstsq(flat, y)[0],
        np.linalg.lstsq(a, b)[0], scipy.linalg.lstsq(tall, y)[0], scipy.linalg.lstsq(tall, y)[1],
        np.linalg.cond(a), np.linalg.cond(stack, -2), np.linalg.cond(tall, 2),
        np.linalg.norm(tall, 2), np.linalg.norm(stack, "nuc", axis=(0, 2)),
        np.linalg.norm(stack, -2, axis=(-1, 0), keepdims=True),
    )  # fmt: skip


@pytest.mark.parametrize("dtype", ["float64", "float32", "complex64", "complex128"])
def test_spectra(dtype):
    agrees(spectra, *as_dtype(dtype, A, STACK), rtol=tolerance(dtype))


@pytest.mark.parametrize("dtype", ["float64", "float32", "complex64", "complex128"])
def test_decompositions(dtype):
    agrees(decompositions, *as_dtype(dtype, A, TALL, STACK), rtol=tolerance(dtype))


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_what_singular_values_give(dtype):
    agrees(inverses, *as_dtype(dtype, A, TALL, STACK, B, TALL[:, 0]), rtol=tolerance(dtype))


def test_decompositions_are_native():
    def some(a, tall):
        e, s = np.linalg.eigh(a), np.linalg.svd(tall, full_matrices=False)
        found = (
            np.sum(e[0]) + np.sum(e[1] ** 2) + np.sum(s[0] * s[2][0]) + np.sum(np.linalg.qr(a)[1])
        )
        return found + np.sum(scipy.linalg.expm(a)) + np.sum(np.linalg.pinv(tall))

    assert_native(nbta.grad(some), A, TALL)


def test_matrices_with_nothing_in_them():
    def some(a):
        return np.linalg.eigvalsh(a), scipy.linalg.expm(a), np.linalg.svdvals(a)

    agrees(some, np.zeros((0, 0)))
    agrees(lambda a: tuple(np.linalg.svd(a, full_matrices=False)), np.zeros((0, 3)))
    agrees(lambda a: tuple(np.linalg.qr(a)), np.zeros((3, 0)))


@pytest.mark.smoke
def test_gradients_of_values():
    check_grads(lambda a: np.linalg.eigvalsh(a), (STACK,))
    check_grads(lambda a: np.linalg.svdvals(a), (TALL,))
    check_grads(lambda a: (np.linalg.cond(a), np.linalg.norm(a, 2), np.linalg.norm(a, "nuc")), (A,))


@pytest.mark.smoke
def test_gradients_of_vectors():
    check_grads(lambda a: np.linalg.eigh(a)[1], (A,))
    check_grads(lambda a: tuple(np.linalg.svd(a, full_matrices=False)), (TALL,))
    check_grads(lambda a: tuple(np.linalg.svd(a, full_matrices=False)), (TALL.T.copy(),))
    check_grads(lambda a: tuple(np.linalg.qr(a)), (TALL,))
    check_grads(lambda a: np.linalg.qr(a, "r"), (TALL,))
    check_grads(lambda a: np.linalg.qr(a)[0], (TALL,))
    check_grads(lambda a: tuple(np.linalg.qr(a)), (TALL.T.copy(),))


@pytest.mark.smoke
def test_gradients_of_what_singular_values_give():
    check_grads(np.linalg.pinv, (TALL,))
    check_grads(np.linalg.pinv, (TALL.T.copy(),))
    check_grads(lambda a, y: np.linalg.lstsq(a, y)[:2], (TALL, TALL[:, 0]))


SPREAD = np.linspace(1.0, 0.2, 3)
#: By shares of the greatest singular value: nothing is dropped, something, all but one, everything.
SHARES = [1e-15, 0.3, 0.8, 1.0]


def of_values(values, *shape):
    """Matrices of these singular values."""
    u, _, v = np.linalg.svd(np.random.default_rng(5).normal(size=shape), full_matrices=False)
    return (u * values) @ v


def pinvs(share):
    """Functions of matrices that drop singular values up to a share of the greatest."""
    flat = [1.0, 2.0, -1.0]
    return {
        "pinv": lambda a: np.linalg.pinv(a, share),
        "wide": lambda a: np.linalg.pinv(np.swapaxes(a, -1, -2), rtol=share),
        "nbta": lambda a: nbta.pinv(a, share),
        "scipy": lambda a: scipy.linalg.pinv(a, rtol=share),
        "hermitian": lambda a: np.linalg.pinv(a[:3] + a[:3].T, share, hermitian=True),
        "pinvh": lambda a: scipy.linalg.pinvh(a[:3] + a[:3].T, rtol=share),
        "lstsq": lambda a: nbta.lstsq(a, a[:, 0] * a[:, 1], share)[:2],
        "numpy's": lambda a: np.linalg.lstsq(a.T, a[:3, :2], share)[0],
        "scipy's": lambda a: scipy.linalg.lstsq(a, a[:, 0] * a[:, 1], share)[0],
        "polyfit": lambda a: np.polyfit(a[:, 0], a[:, 1], 2, share, w=[*flat, a[0, 1]]),
    }  # fmt: skip


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("share", SHARES)
def test_gradients_where_singular_values_are_dropped(share, compiled):
    def both(a):
        return np.linalg.pinv(a, share), nbta.lstsq(a, a[:, 0] * a[:, 1], share)[:2]

    start = of_values(SPREAD, 4, 3)
    assert_close(nbta.function(both, compiled=compiled)(start)[0], np.linalg.pinv(start, share))
    check_grads(nbta.function(both, compiled=compiled), (start,), order=2 if share < 1 else 1)


@pytest.mark.filterwarnings("ignore:Polyfit")
@pytest.mark.parametrize("name", pinvs(0.3))
def test_gradients_of_each_function_that_drops_singular_values(name):
    """To the first order; the quick cases operation by operation."""
    start = of_values(SPREAD, 4, 3)
    for share in SHARES:
        function = nbta.function(pinvs(share)[name], compiled=False)
        assert_close(function(start), pinvs(share)[name](start))
        check_grads(function, (start,), order=1)


@pytest.mark.filterwarnings("ignore:Polyfit")
@pytest.mark.slow
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", pinvs(0.3))
def test_second_gradients_of_each_function_that_drops_singular_values(name, compiled):
    start = of_values(SPREAD, 4, 3)
    for share in SHARES[:3]:
        check_grads(nbta.function(pinvs(share)[name], compiled=compiled), (start,))


@pytest.mark.parametrize("compiled", [False, True])
def test_gradients_where_values_of_complex_matrices_are_dropped(compiled):
    """Of a batch, of which each matrix has its own share, and keeps another number of values."""
    stack = complex_of(of_values(SPREAD, 3, 4, 3))
    shares = np.array([1e-15, 0.45, 0.9])
    function = nbta.function(lambda a: np.linalg.pinv(a, rtol=shares), compiled=compiled)
    assert_close(function(stack), np.linalg.pinv(stack, rtol=shares))
    check_grads(function, (stack,), order=1)
    check_grads(function, (np.ascontiguousarray(np.swapaxes(stack, 1, 2)),), order=1)
    part = stack[1:2, :3, :2]
    check_grads(nbta.function(lambda a: np.linalg.pinv(a, 0.5), compiled=compiled), (part,))


def test_what_is_dropped_may_repeat_or_be_zero():
    """Neither the kept values nor the dropped ones need be apart from each other."""
    for values in ([1.0, 1.0, 0.2, 0.2], [1.0, 0.2, 0.0, 0.0], [1.0, 1.0, 1.0, 0.0]):
        start = of_values(values, 5, 4)
        some = nbta.function(lambda a: np.linalg.pinv(a, 0.5), compiled=False)
        check_grads(some, (start,))
        slope = nbta.grad(lambda a: np.sum(np.linalg.pinv(a, 2.0)), compiled=False)(start)
        assert not slope.any()
    zero = np.zeros(TALL.shape)
    assert not nbta.grad(lambda a: np.sum(np.linalg.pinv(a) * TALL.T), compiled=False)(zero).any()


def test_gradients_of_tall_matrices_make_no_large_square():
    """Of so many rows, a square matrix would need 320 GB."""
    tall = np.random.default_rng(1).normal(size=(200_000, 2))

    def loss(a):
        return np.sum(nbta.lstsq(a, a[:, 0] ** 2, 1.0 - 1e-9)[0]) + np.sum(nbta.pinv(a)[0, :3])

    slope = nbta.grad(loss, compiled=False)
    for function in (slope, nbta.grad(lambda a: np.sum(slope(a)[:5]), compiled=False)):
        assert np.isfinite(function(tall)).all()


@pytest.mark.smoke
def test_gradients_of_exponentials():
    check_grads(lambda a: scipy.linalg.expm(a), (A,))
    check_grads(lambda a: scipy.linalg.expm(a), (STACK,), order=1)
    check_grads(lambda a: scipy.linalg.expm(a), (np.zeros((2, 2)),))


@pytest.mark.slow
def test_gradients_of_complex_decompositions():
    a, tall = complex_of(A), complex_of(TALL)
    check_grads(lambda a: np.linalg.eigvalsh(a), (a,))
    check_grads(lambda a: np.linalg.svdvals(a), (tall,), order=1)
    check_grads(lambda a: tuple(np.linalg.qr(a)), (tall,))
    check_grads(np.linalg.pinv, (tall,))
    check_grads(lambda a: scipy.linalg.expm(a), (a,))


def test_repeated_values():
    """Gradients of values are as they should be, those of vectors NaN or infinite."""
    one = np.eye(3)
    weights = np.arange(9.0).reshape(3, 3)  # adjoints that are 0 would stay 0
    for compiled in (False, True):

        def grad(function, compiled=compiled):
            return nbta.grad(lambda a: np.sum(function(a)), compiled=compiled)(one)

        np.testing.assert_allclose(grad(np.linalg.eigvalsh), one)
        np.testing.assert_allclose(grad(np.linalg.svdvals), one)
        assert not np.isfinite(grad(lambda a: np.linalg.eigh(a)[1] * weights)).all()
        assert not np.isfinite(grad(lambda a: np.linalg.svd(a)[0] * weights)).all()


def by_eigh(a):
    w, v = np.linalg.eigh(a)
    return np.exp(w[2]) * v[0, 2] * v[1, 2] + v[2, 2] ** 2


def by_svd(a):
    u, s, v = np.linalg.svd(a, full_matrices=False)
    return np.exp(s[0]) * u[0, 0] * v[0, 1] + u[4, 0] ** 2


@pytest.mark.parametrize("name", ["eigh", "svd"])
def test_higher_derivatives_where_other_values_nearly_repeat(name):
    """Those of one value and its vectors do not depend on other gaps, nor second ones of sums."""
    function = {"eigh": by_eigh, "svd": by_svd}[name]
    rng = np.random.default_rng(2)
    root, way = rng.normal(size=(2, 6, 3))
    turned = np.linalg.qr(root[:3])[0]
    tall = (np.linalg.qr(root)[0] * [2.0, 1.0, 1.0]) @ turned
    a = (turned * [1.0, 1.0, 2.0]) @ turned.T if name == "eigh" else tall
    way = way[:3] + way[:3].T if name == "eigh" else way

    def along(slope):
        return nbta.function(lambda a: np.sum(nbta.grad(slope)(a) * way), compiled=False)

    def difference(slope):
        return (slope(a + 1e-5 * way) - slope(a - 1e-5 * way)) / 2e-5

    first = along(function)
    second = along(first)
    assert second(a) == pytest.approx(difference(first), rel=1e-6)
    assert along(second)(a) == pytest.approx(difference(second), rel=1e-6)

    def with_sum(a):
        return function(a) + (
            np.trace(a) - np.sum(np.linalg.eigvalsh(a)) if name == "eigh" else 0.0
        )

    for compiled in (False, True):
        found = nbta.function(lambda a: nbta.hvp(with_sum, a, way), compiled=compiled)(a)
        assert np.sum(found * way) == pytest.approx(second(a), rel=1e-9)


def test_what_nearly_repeated_values_do_not_give():
    """Of rounding errors, that would be any number."""
    turned = np.linalg.qr(np.random.default_rng(1).normal(size=(3, 3)))[0]
    a, way = (turned * [1.0, 1.0, 2.0]) @ turned.T, np.arange(9.0).reshape(3, 3)

    def root(a):
        w, v = np.linalg.eigh(a)
        return np.sum(((v * np.sqrt(w)) @ v.T) * way)

    def ordered(a):
        u, s, v = np.linalg.svd(a)
        return np.sum(((u * s**2) @ v) * way)

    for function in (root, ordered):
        assert np.isnan(nbta.grad(function, compiled=False)(a)).any()
    for values in (np.linalg.eigvalsh, np.linalg.svdvals):
        slope = nbta.grad(lambda a, f=values: np.sum(np.exp(f(a))), compiled=False)
        assert np.isfinite(slope(a)).all()
        assert np.isnan(nbta.grad(lambda a, f=slope: np.sum(f(a) * way), compiled=False)(a)).any()


def test_second_derivatives_where_other_values_repeat():
    """Adjoints that are zero stay zero where the difference of two values is."""
    for function, a in (
        (np.linalg.eigvalsh, [1.0, 1.0, 2.0]),
        (np.linalg.svdvals, [2.0, 1.0, 1.0]),
    ):
        a = np.diag(a)
        place = int(np.argmax(function(a)))
        slope = nbta.grad(lambda a, f=function, place=place: np.exp(f(a)[place]), compiled=False)
        found = nbta.jacobian(slope, compiled=False)(a)
        assert np.isfinite(found).all()


def test_vectors_without_gradients():
    a = complex_of(A)

    def first(a):
        return nbta.real(np.linalg.eigh(a)[1])[0, 0]

    for function, match in (
        (first, "eigenvectors of complex matrices"),
        (lambda a: nbta.real(np.linalg.svd(a)[0])[0, 0], "singular vectors of complex matrices"),
        (lambda a: nbta.real(np.linalg.svd(a[:, :2])[0])[0, 0], "use full_matrices=False"),
    ):
        with pytest.raises(nbta.InvalidArgumentError, match=match) as caught:
            nbta.grad(function)(a)
        assert caught.value.reason == "turned"


def test_the_gradient_of_values_with_full_vectors():
    check_grads(lambda a: np.linalg.svd(a)[1], (TALL,))


def test_what_is_not_decomposed():
    bad = np.full((3, 3), np.nan)
    for compiled in (False, True):
        for function in (nbta.eigvalsh, nbta.svdvals):
            with pytest.raises(nbta.InvalidArgumentError, match="NaN"):
                nbta.function(function, compiled=compiled)(bad)
    refused("value", "must be 'reduced', 'complete' or 'r'", lambda a: nbta.qr(a, "raw"), A)
    refused("value", "no norm 3 of matrices", lambda a: nbta.condition_number(a, 3), A)
    refused("value", "UPLO: 'X' names no triangle", lambda a: nbta.eigh(a, "X"), A)
    for given in (A, V):
        with pytest.raises(nbta.InvalidArgumentError, match="only the run knows which norm"):
            nbta.function(nbta.norm)(given, 1.5)
    refused("rank", "a vector or a matrix", nbta.lstsq, STACK, V)
    refused("rank", "no matrix", nbta.svdvals, V)
    refused("shape", "square", nbta.expm, TALL)
    for function in (
        lambda a: scipy.linalg.qr(a, mode="raw"), lambda a: scipy.linalg.pinv(a, atol=1.0),
        lambda a: scipy.linalg.qr(a, mode="economic", pivoting=True),
        lambda a: scipy.linalg.eigh(a, subset_by_index=(0, 1)),
        lambda a: scipy.linalg.eigh(a[:2], a[:2], type=4),
    ):  # fmt: skip
        with pytest.raises(nbta.InvalidArgumentError, match=r"scipy\.linalg\.") as caught:
            nbta.function(function)(TALL)
        assert caught.value.reason == "value"


def by_one_triangle(a):
    return (
        np.linalg.eigvalsh(a, "U"), np.linalg.eigvalsh(a, UPLO="l"),
        np.abs(np.linalg.eigh(a, "L")[1]), np.abs(np.linalg.eigh(a, UPLO="U").eigenvectors),
        scipy.linalg.eigvalsh(a, lower=False), scipy.linalg.eigh(a, lower=False, eigvals_only=True),
    )  # fmt: skip


def test_eigenvalues_by_one_triangle():
    for a in (A, complex_of(A), STACK):
        agrees(by_one_triangle if a.ndim == 2 else lambda a: np.linalg.eigvalsh(a, "U"), a)
    assert_native(by_one_triangle, A)
    check_grads(lambda a: (nbta.eigvalsh(a, "U"), np.abs(np.linalg.eigh(a, "L")[1])), (A,))
    slope = nbta.grad(lambda a: np.sum(np.linalg.eigvalsh(a, "U") ** 3))(A)
    np.testing.assert_array_equal(np.tril(slope, -1), 0)


@pytest.mark.parametrize("kind", [1, 2, 3])
def test_eigenvalues_of_two_matrices(kind):
    def some(a, b):
        given = {"lower": lower, "type": kind}
        return (
            scipy.linalg.eigh(a, b, eigvals_only=True, **given),
            np.abs(scipy.linalg.eigh(a, b, **given)[1]), scipy.linalg.eigvalsh(a, b, **given),
        )  # fmt: skip

    symmetric = A + A.T
    for lower in (False, True):  # noqa: B007 - the function reads it
        agrees(some, symmetric, DEFINITE, rtol=1e-9)
        check_grads(some, (symmetric, DEFINITE), rtol=1e-4)
    z = complex_of(A)
    agrees(some, z + z.conj().T, z @ z.conj().T + np.eye(4), rtol=1e-9)
    assert_native(some, symmetric, DEFINITE)


def completed(a, tall):
    return (
        *np.linalg.qr(tall, "complete"), *np.linalg.qr(a, mode="complete"),
        *np.linalg.qr(tall.T, "complete"), *scipy.linalg.qr(tall), *scipy.linalg.qr(tall, mode="r"),
    )  # fmt: skip


def test_orthogonal_columns_that_fill_a_space():
    for dtype in ("float64", "complex128"):
        agrees(completed, *as_dtype(dtype, A, TALL))
    agrees(lambda a: tuple(np.linalg.qr(a, "complete")), STACK[:, :, :2])
    assert_native(completed, A, TALL)
    check_grads(lambda a: np.linalg.qr(a, "complete")[1], (TALL,))
    with pytest.raises(nbta.UnimplementedError, match="use mode='reduced'"):
        nbta.grad(lambda a: np.sum(np.linalg.qr(a, "complete")[0]))(TALL)


def test_condition_numbers_by_norms():
    def some(a):
        return [np.linalg.cond(a, p) for p in (1, -1, np.inf, -np.inf, "fro", "nuc")]

    agrees(some, DEFINITE, rtol=1e-10)
    agrees(lambda a: np.linalg.cond(a, "fro"), STACK, rtol=1e-10)
    check_grads(lambda a: (np.linalg.cond(a, 1), np.linalg.cond(a, "fro")), (DEFINITE,))
    agrees(lambda a: (scipy.linalg.norm(a), scipy.linalg.norm(a, 1), scipy.linalg.norm(a, 2)), A)


# Blocks and diagonals


def test_blocks_and_diagonals():
    def some(a, b, v):
        return (
            scipy.linalg.block_diag(a, b, v), scipy.linalg.block_diag(v), scipy.linalg.toeplitz(v),
            scipy.linalg.block_diag(a, v[0]), scipy.linalg.toeplitz(v, b[:, 0]),
            scipy.linalg.toeplitz(v[:2], v), scipy.linalg.toeplitz(v[:1]),
        )  # fmt: skip

    agrees(some, A, B, V)
    agrees(some, complex_of(A), complex_of(B), complex_of(V))
    check_grads(lambda a, v: scipy.linalg.block_diag(a, v) ** 2, (A, V))
    check_grads(lambda c, r: scipy.linalg.toeplitz(c, r) ** 2, (V, B[:, 0]))
    assert nbta.toeplitz(np.zeros(0), V).shape == (0, 4)
    refused("rank", "give matrices, vectors or scalars", nbta.block_diag, STACK)
    refused("rank", "each of rank 1", nbta.toeplitz, A)


def names_of_numpy_2(a, s, v):
    return (
        np.linalg.trace(s), np.linalg.trace(s, offset=-1), np.linalg.diagonal(s, offset=1),
        np.linalg.vector_norm(s), np.linalg.vector_norm(s, axis=(0, 2), ord=1),
        np.linalg.vector_norm(a, axis=1, keepdims=True), np.linalg.vector_norm(v, ord=np.inf),
        np.linalg.matrix_norm(s), np.linalg.matrix_norm(s, ord=1, keepdims=True),
        np.linalg.matrix_norm(a, ord="nuc"),
        np.matvec(s, v), np.vecmat(v, s),
    )  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128", "int64"])
def test_names_of_numpy_2(dtype):
    given = as_dtype(dtype, *(x * 3 for x in (A, STACK, V)))
    agrees(names_of_numpy_2, *given, rtol=tolerance(dtype) if dtype != "int64" else 1e-12)


def test_gradients_by_names_of_numpy_2():
    check_grads(names_of_numpy_2, (A, STACK, V))


def of_rows(v, w, a):
    return (
        scipy.linalg.circulant(v), scipy.linalg.circulant(a), scipy.linalg.hankel(v),
        scipy.linalg.hankel(v, w), scipy.linalg.companion(v), scipy.linalg.fiedler(v),
        scipy.linalg.fiedler(a), scipy.linalg.leslie(v, w), scipy.linalg.convolution_matrix(v, 6),
        scipy.linalg.convolution_matrix(v, 3, "same"), scipy.linalg.khatri_rao(a, a[:2]),
        scipy.linalg.convolution_matrix(w, 5, "valid"), scipy.linalg.diagsvd(v, 4, 6),
        scipy.linalg.convolution_matrix(v, 2, mode="same"), scipy.linalg.diagsvd(v, 5, 4),
    )  # fmt: skip


def test_matrices_made_of_rows():
    agrees(of_rows, V, V[1:] * 2, A)
    agrees(of_rows, np.array([3, 1, 2, 5]), np.array([1, 4, 7]), np.arange(16).reshape(4, 4))
    check_grads(of_rows, (V, V[1:] * 2, A), order=1)
    assert_native(of_rows, V, V[1:] * 2, A)
    for match, function in (
        ("two coefficients or more", lambda v: scipy.linalg.companion(v[:1])),
        ("first coefficient is 0", lambda v: scipy.linalg.companion(v * 0.0)),
        ("one item more than s", lambda v: scipy.linalg.leslie(v, v)),
        ("give one row, a count", lambda v: scipy.linalg.convolution_matrix(v, 2, "none")),
        ("two matrices with the same number of columns", lambda v: scipy.linalg.khatri_rao(v, v)),
        ("4 values for 3 by 2", lambda v: scipy.linalg.diagsvd(v, 3, 2)),
    ):
        with pytest.raises(nbta.InvalidArgumentError, match=match):
            nbta.function(function)(V)


COLUMN, ROW = np.array([5.0, 1.0, 0.5, 0.2]), np.array([5.0, -1.0, 0.3, 0.1])
BANDS, RIGHT = RNG.normal(size=(4, 6)), RNG.normal(size=(6, 2))


def of_diagonals(c, r, b, v):
    return (
        scipy.linalg.solve_toeplitz(c, v), scipy.linalg.solve_toeplitz((c, r), b),
        scipy.linalg.matmul_toeplitz((c, r), b), scipy.linalg.matmul_toeplitz(c, v),
        scipy.linalg.solve_circulant(c, v), scipy.linalg.solve_circulant(c, b),
    )  # fmt: skip


def of_bands(bands, b):
    wide = np.concatenate([bands[:2], bands[2:3] + 6.0, bands[3:]], 0)
    upper = np.concatenate([bands[:2], bands[2:3] + 6.0], 0)
    lower = np.concatenate([bands[:1] + 6.0, bands[1:3]], 0)
    return (
        scipy.linalg.solve_banded((1, 2), wide, b), scipy.linalg.solveh_banded(upper, b),
        scipy.linalg.solve_banded((1, 2), wide, b[:, 0]),
        scipy.linalg.solveh_banded(lower, b, lower=True),
    )  # fmt: skip


def of_three_diagonals(d, e):
    w, v = scipy.linalg.eigh_tridiagonal(d, e)
    return w, np.abs(v), scipy.linalg.eigvalsh_tridiagonal(d, e)


def test_matrices_of_a_few_diagonals():
    agrees(of_diagonals, COLUMN, ROW, B, V)
    agrees(of_bands, BANDS, RIGHT, rtol=1e-11)
    agrees(of_three_diagonals, V, B[:3, 0], rtol=1e-11)
    check_grads(of_diagonals, (COLUMN, ROW, B, V))
    check_grads(of_bands, (BANDS, RIGHT), rtol=1e-4)
    check_grads(of_three_diagonals, (V, B[:3, 0]), rtol=1e-4)
    slope = nbta.grad(lambda ab: np.sum(scipy.linalg.solve_banded((1, 2), ab, RIGHT) ** 2))(
        BANDS + 3.0
    )
    unread = [*slope[0, :2], slope[1, 0], slope[3, -1]]
    np.testing.assert_array_equal(unread, 0)
    for match, function in (
        ("4 rows for 3 diagonals", lambda ab: scipy.linalg.solve_banded((1, 1), ab, ab[0])),
        ("whole matrix of 1200 rows", lambda ab: scipy.linalg.solve_banded(
            (1, 2), np.tile(ab, (1, 200)), np.ones(1200))),
        ("give one column", lambda ab: scipy.linalg.solve_circulant(ab, ab)),
        ("give diagonals in rows", lambda ab: scipy.linalg.solveh_banded(ab[0], ab[0])),
    ):  # fmt: skip
        with pytest.raises(nbta.InvalidArgumentError, match=match):
            nbta.function(function)(BANDS)


def of_sylvester(a, b, q):
    return (
        scipy.linalg.solve_sylvester(a, b, q), scipy.linalg.solve_continuous_lyapunov(a, a),
        scipy.linalg.solve_discrete_lyapunov(a / 9, a),
    )  # fmt: skip


def test_equations_from_both_sides():
    q, b = RNG.normal(size=(4, 3)), RNG.normal(size=(3, 3))
    for dtype in ("float64", "complex128"):
        agrees(of_sylvester, *as_dtype(dtype, A, b, q), rtol=1e-9)
    check_grads(of_sylvester, (A, b, q), rtol=1e-4)
    with pytest.raises(nbta.InvalidArgumentError, match=r"no method .fast."):
        nbta.function(lambda a: scipy.linalg.solve_discrete_lyapunov(a, a, "fast"))(A)


def test_whether_a_matrix_is_its_transpose():
    def some(a):
        return (
            scipy.linalg.issymmetric(a), scipy.linalg.ishermitian(a),
            scipy.linalg.issymmetric(a, atol=1.0), scipy.linalg.ishermitian(a, rtol=0.5),
        )  # fmt: skip

    for a in (A, DEFINITE, DEFINITE + 1e-3 * A, complex_of(A) + complex_of(A).conj().T):
        for compiled in (False, True):
            np.testing.assert_array_equal(nbta.function(some, compiled=compiled)(a), some(a))
    with pytest.raises(nbta.InvalidArgumentError, match="has rank 1; give a matrix"):
        nbta.function(lambda v: scipy.linalg.issymmetric(v))(V)


def of_exponentials(a):
    return (
        scipy.linalg.coshm(a), scipy.linalg.sinhm(a), scipy.linalg.tanhm(a), scipy.linalg.cosm(a),
        scipy.linalg.sinm(a), scipy.linalg.tanm(a), *scipy.linalg.expm_frechet(a, a * a),
        scipy.linalg.expm_frechet(a, a, compute_expm=False),
    )  # fmt: skip


def test_functions_by_exponentials():
    agrees(of_exponentials, A / 3, rtol=1e-10)
    agrees(of_exponentials, complex_of(A) / 4, rtol=1e-10)
    check_grads(of_exponentials, (A / 3,), rtol=1e-4)
    agrees(
        lambda a: (scipy.linalg.pinvh(a + a.T), scipy.linalg.pinvh(a, lower=False)), A, rtol=1e-9
    )


#: What of NumPy and SciPy is not here, and what the message names.
NOT_HERE = {
    "eig": (lambda a: np.linalg.eig(a), r"np\.linalg\.eig with .*eigvalsh"),
    "eigvals": (
        lambda a: scipy.linalg.eigvals(a),
        r"scipy\.linalg\.eigvals with .*singular values",
    ),
    "roots": (lambda a: np.roots(a[0]), r"np\.roots with .*Newton"),
    "polydiv": (lambda a: np.polydiv(a[0], a[1]), r"np\.polydiv with .*nbta\.polyval"),
    "sqrtm": (lambda a: scipy.linalg.sqrtm(a), r"sqrtm with .*nbta\.eigh"),
    "logm": (lambda a: scipy.linalg.logm(a), r"logm with .*nbta\.expm"),
    "schur": (lambda a: scipy.linalg.schur(a), r"schur with .*nbta\.qr"),
    "polar": (lambda a: scipy.linalg.polar(a), r"polar with .*nbta\.svd"),
    "null_space": (lambda a: scipy.linalg.null_space(a), r"null_space with .*columns of u and vh"),
    "are": (lambda a: scipy.linalg.solve_discrete_are(a, a, a, a), "custom_gradient"),
    "bits": (lambda a: np.packbits(a > 1), r"np\.packbits with .*nbta\.right_shift"),
    "real_if_close": (lambda a: np.real_if_close(a), r"nbta\.real and nbta\.imag"),
    "ix_": (lambda a: np.ix_(a[0] > 1), r"rows\[:, None\]"),
    "bandwidth": (lambda a: scipy.linalg.bandwidth(a), "NumPy array"),
    "eig_banded": (lambda a: scipy.linalg.eig_banded(a), "eigh_tridiagonal"),
}


@pytest.mark.parametrize("name", NOT_HERE)
def test_a_refusal_says_what_there_is(name):
    function, message = NOT_HERE[name]
    with pytest.raises(nbta.InvalidArgumentError, match=message):
        nbta.function(function)(DEFINITE)
