"""Factors of matrices and Fourier transforms, which compiled code calls by address."""

import ctypes
import threading
import time

import numpy as np
import pytest
import scipy.linalg
from many import each

from nbta.compiler import build
from nbta.kernels.factors import LOWER, TRANSPOSED, UNIT, VECTORS
from nbta.tuning import FACTOR_BLOCK, FACTOR_COLUMNS, FACTOR_LAPACK

#: LAPACK's letter for a dtype.
LETTERS = {"float32": "s", "float64": "d", "complex64": "c", "complex128": "z"}
#: What surrounds each array, so that a write outside shows.
MARGIN, MARK = 5, 77
RNG = np.random.default_rng(5)


def numbers(shape, dtype):
    """Random numbers."""
    values = RNG.normal(size=shape)
    return (values + 1j * RNG.normal(size=shape) if LETTERS[dtype] in "cz" else values).astype(
        dtype
    )


def tolerance(dtype):
    return 3e-3 if LETTERS[dtype] in "sc" else 1e-9


def close(one, other, dtype):
    np.testing.assert_allclose(one, other, tolerance(dtype), tolerance(dtype))


def fortran(library, function, dtype):
    return build.address(f"{library}_{LETTERS[dtype]}{function}")


def products(dtype):
    return build.address(f"gemm_{dtype}"), build.address(f"blas_{dtype}")


def real(dtype):
    return np.empty(0, dtype).real.dtype


def run(name, *given):
    """Call a helper with copies of arrays between margins; what it gives, and these arrays."""
    rooms = []
    for value in given:
        if isinstance(value, np.ndarray):
            room = np.full(value.size + 2 * MARGIN, MARK, value.dtype)
            room[MARGIN : MARGIN + value.size] = value.ravel()
            rooms.append((room, value.shape))
        else:
            rooms.append(value)
    numbers = [
        r[0].ctypes.data + MARGIN * r[0].itemsize if isinstance(r, tuple) else r for r in rooms
    ]
    entry = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * len(given))
    assert len(build.FUNCTIONS[name].signature.args) == len(given)
    status = entry(build.address(name))(*numbers)
    found = []
    for room, shape in (r for r in rooms if isinstance(r, tuple)):
        assert (room[:MARGIN] == MARK).all()
        assert (room[-MARGIN:] == MARK).all()
        found.append(room[MARGIN:-MARGIN].reshape(shape))
    return status, *found


SIZES = (1, 2, 5, 64, 65, 130)


def sizes(dtype):
    """By rows, in blocks, and of one dtype by LAPACK, whose threads may wait for each other."""
    return (*SIZES, FACTOR_LAPACK + 1) if dtype == "float64" else SIZES


@pytest.mark.parametrize("dtype", LETTERS)
def test_triangles(dtype):
    def check(n):
        a = numbers((n, n), dtype) / n + np.eye(n, dtype=dtype)
        gram = (a @ a.conj().T).astype(dtype)
        status, _, factor = run(
            f"cholesky_{dtype}",
            gram,
            np.empty_like(a),
            n,
            fortran("lapack", "potrf", dtype),
            *products(dtype),
        )
        assert status == 0
        close(factor, np.linalg.cholesky(gram), dtype)
        for columns in (1, 33):
            b = numbers((n, columns), dtype)
            for flags in range(8):
                triangle = np.tril(a) if flags & LOWER else np.triu(a)
                if flags & UNIT:
                    np.fill_diagonal(triangle, 1)
                status, _, x = run(
                    f"solve_{dtype}",
                    a,
                    b,
                    n,
                    columns,
                    flags,
                    fortran("blas", "trsm", dtype),
                    *products(dtype),
                )
                assert status == 0
                close((triangle.T if flags & TRANSPOSED else triangle) @ x, b, dtype)

    each(sizes(dtype), check)


def slope_of_matrix(factor, slope):
    """By inverses: the conjugate transpose of one, the halved triangle, and another one."""
    inner = np.tril(factor.conj().T @ np.tril(slope))
    inverse = np.linalg.inv(factor)
    found = inverse.conj().T @ (inner - np.diag(np.diag(inner)) / 2) @ inverse
    return (found + found.conj().T) / 2


def change_of_factor(factor, change):
    """By inverses: the factor times the halved triangle of what is left of the change by them."""
    inverse = np.linalg.inv(factor)
    inner = np.tril(inverse @ ((change + change.conj().T) / 2) @ inverse.conj().T)
    return factor @ (inner - np.diag(np.diag(inner)) / 2)


@pytest.mark.parametrize("dtype", LETTERS)
def test_derivatives_of_triangles(dtype):
    """With anything above the diagonal, which nobody reads."""

    def check(n):
        a, slope = numbers((n, n), dtype) / n + np.eye(n, dtype=dtype), numbers((n, n), dtype)
        factor = np.linalg.cholesky(a @ a.conj().T).astype(dtype)
        work, given = np.empty(n * (n + FACTOR_BLOCK), dtype), factor + np.triu(slope, 1)
        status, _, _, found, _ = run(
            f"cholesky_gradient_{dtype}", given, slope, np.empty_like(a), work, n, *products(dtype)
        )
        assert status == 0
        close(found, slope_of_matrix(factor, slope), dtype)
        np.testing.assert_array_equal(found, found.conj().T)
        status, _, _, found = run(
            f"cholesky_tangent_{dtype}", given, slope, np.empty_like(a), n, *products(dtype)
        )
        assert status == 0
        close(found, change_of_factor(factor, slope), dtype)
        np.testing.assert_array_equal(found, np.tril(found))

    each(
        (
            0,
            FACTOR_COLUMNS,
            FACTOR_COLUMNS + 1,
            FACTOR_BLOCK,
            FACTOR_BLOCK + 1,
            3 * FACTOR_BLOCK,
            *SIZES,
        ),
        check,
    )


@pytest.mark.parametrize("dtype", LETTERS)
def test_factors_with_pivots(dtype):
    def check(n):
        a = numbers((n, n), dtype)
        status, both, pivots = run(
            f"lu_{dtype}",
            a,
            np.empty(n, np.int32),
            n,
            fortran("lapack", "getrf", dtype),
            *products(dtype),
        )
        assert status == 0
        expected = scipy.linalg.lu_factor(a)
        close(both, expected[0], dtype)
        np.testing.assert_array_equal(pivots, expected[1])
        for columns, flags in ((1, 0), (33, 0), (33, TRANSPOSED)):
            b = numbers((n, columns), dtype)
            status, _, _, x = run(
                f"lu_solve_{dtype}", both, pivots, b, n, columns, flags,
                fortran("blas", "trsm", dtype), *products(dtype),
            )  # fmt: skip
            assert status == 0
            close(x, np.linalg.solve(a.T if flags else a, b), dtype)
        _, _, _, sign, size = run(
            f"slogdet_{dtype}", both, pivots, np.empty(1, dtype), np.empty(1, real(dtype)), n
        )
        close((sign[0], size[0]), np.linalg.slogdet(a), dtype)
        if n < 10:
            _, _, _, found = run(f"det_{dtype}", both, pivots, np.empty(1, dtype), n)
            close(found[0], np.linalg.det(a), dtype)
        _, _, order = run("permutation", pivots, np.empty(n, np.int64), n)
        close(a[order], (np.tril(both, -1) + np.eye(n)) @ np.triu(both), dtype)

    each(sizes(dtype), check)


def test_what_has_no_result():
    one, zero = np.eye(2), np.zeros((2, 2))
    both = products("float64")
    potrf = fortran("lapack", "potrf", "float64"), *both
    trsm = fortran("blas", "trsm", "float64"), *both
    assert run("cholesky_float64", -one, one, 2, *potrf)[0] == 1
    assert run("cholesky_float64", -np.eye(200), np.eye(200), 200, *potrf)[0] == 1
    assert run("solve_float64", zero, one, 2, 2, 0, *trsm)[0] == 1
    assert run("lu_solve_float64", zero, np.arange(2, dtype=np.int32), one, 2, 2, 0, *trsm)[0] == 1


@pytest.mark.parametrize("dtype", LETTERS)
def test_eigenvectors(dtype):
    function = "heevd" if LETTERS[dtype] in "cz" else "syevd"

    def check(n):
        a = numbers((n, n), dtype)
        length = 1 + 6 * n + 2 * n * n
        for flags in (0, VECTORS):
            status, _, w, v, *_ = run(
                f"eigh_{dtype}", a, np.empty(n, real(dtype)), np.empty_like(a), n, flags,
                np.empty(length, dtype), length, np.empty(length, real(dtype)), length,
                np.empty(3 + 5 * n, np.int32), fortran("lapack", function, dtype),
            )  # fmt: skip
            mean = (a + a.conj().T) / 2
            assert status == 0
            close(w, np.linalg.eigvalsh(mean), dtype)
            if flags:
                close(mean @ v, v * w, dtype)

    each((1, 2, 5, 40), check)


@pytest.mark.parametrize("dtype", LETTERS)
def test_singular_vectors_and_orthogonal_columns(dtype):
    generate = "ungqr" if LETTERS[dtype] in "cz" else "orgqr"

    def check(shape):
        (m, n), k, most = shape, min(shape), max(shape)
        a, length = numbers(shape, dtype), 4 * k * k + 7 * k + most + 64 * (m + n)
        for flags in (0, VECTORS):
            status, _, u, s, v, *_ = run(
                f"svd_{dtype}", a, np.empty((m, k), dtype), np.empty(k, real(dtype)),
                np.empty((k, n), dtype), m, n, flags,
                np.empty(m * n + m * k + k * n + length, dtype), length,
                np.empty(7 * k * k + 7 * k + 2 * most * k, real(dtype)), np.empty(8 * k, np.int32),
                fortran("lapack", "gesdd", dtype),
            )  # fmt: skip
            assert status == 0
            close(s, np.linalg.svd(a, compute_uv=False), dtype)
            if flags:
                close((u * s) @ v, a, dtype)
        length = 64 * (m + n)
        status, _, q, r, _ = run(
            f"qr_{dtype}", a, np.empty((m, k), dtype), np.empty((k, n), dtype), m, n,
            np.empty(m * n + k + length, dtype), length, fortran("lapack", "geqrf", dtype),
            fortran("lapack", generate, dtype),
        )  # fmt: skip
        assert status == 0
        for one, other in zip((q, r), np.linalg.qr(a), strict=True):
            close(one, other, dtype)

    each([(1, 1), (4, 4), (7, 3), (3, 7), (40, 33)], check)


@pytest.mark.parametrize("dtype", LETTERS)
def test_exponentials(dtype):
    helpers = [
        build.address(f"gemm_{dtype}"), build.address(f"blas_{dtype}"),
        build.address(f"lu_{dtype}"), fortran("lapack", "getrf", dtype),
        build.address(f"lu_solve_{dtype}"), fortran("blas", "trsm", dtype),
    ]  # fmt: skip

    def check(case):
        n, size = case
        a = (numbers((n, n), dtype) * size).astype(dtype)
        rooms = np.empty(6 * n * n, dtype), np.empty(n, np.int32)
        status, _, found, *_ = run(f"expm_{dtype}", a, np.empty_like(a), *rooms, n, *helpers)
        expected = scipy.linalg.expm(a.astype(np.complex128 if LETTERS[dtype] in "cz" else float))
        assert status == 0
        bound = abs(expected).max() * (1e-4 if LETTERS[dtype] in "sc" else 1e-13)
        np.testing.assert_allclose(found, expected, 0, bound)
        a[0, 0] = np.nan
        assert run(f"expm_{dtype}", a, np.empty_like(a), *rooms, n, *helpers)[0] == 1

    each([(1, 0.0), (1, 3.0), (2, 1e-8), (3, 0.1), (5, 2.0), (40, 0.5)], check)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_fourier_transforms(dtype):
    bound = 1e-5 if dtype == "complex64" else 1e-14

    def check(n):
        x = numbers((3, n), dtype)
        for sign, expected in ((-1, np.fft.fft(x)), (1, np.fft.ifft(x) * n)):
            status, _, found, _ = run(
                f"fourier_{dtype}", x, np.empty_like(x), np.empty(2 * n, dtype), n, 3, sign
            )
            assert status == 0
            np.testing.assert_allclose(found, expected, 0, bound * abs(expected).max())

    each((1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 30, 49, 60, 97, 121, 128, 250, 1000, 1024), check)


def test_one_thread_at_a_time_asks_for_an_address(monkeypatch):
    """A module that is being loaded alone has no addresses for others yet."""
    there, found = [], []

    def ask(name):
        there.append(name)
        time.sleep(0.02)
        found.append(len(there))
        there.remove(name)
        return 7

    monkeypatch.setitem(build._FORTRAN, "lapack", ask)
    names = [f"lapack_of_thread_{k}" for k in range(4)]
    threads = [threading.Thread(target=build.address.__wrapped__, args=[name]) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [1] * 4
