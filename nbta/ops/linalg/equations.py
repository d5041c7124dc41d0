"""SciPy's equations with matrices of some structure, and functions of matrices by exponentials.

They have no names of their own here: `scipy.linalg`'s functions take tensors. The matrices are made
whole and factored, which takes the cube of their order, where SciPy's time for bands grows as that
alone: so bands are taken up to `WHOLE` rows.
"""

from __future__ import annotations

import operator

import numpy as np

from nbta.errors import invalid
from nbta.ops.core.arithmetic import add, imag, multiply, negative, real, subtract
from nbta.ops.core.axis_arguments import operand
from nbta.ops.core.dispatch import refuses, stands_for
from nbta.ops.core.elementwise import conjugate, promoted
from nbta.ops.core.filling import zeros, zeros_like
from nbta.ops.core.numpy_arguments import check_choice
from nbta.ops.core.shaping import reshape
from nbta.ops.indexing.arranging import kron
from nbta.ops.indexing.gathering import take
from nbta.ops.indexing.items import getitem
from nbta.ops.indexing.joining import concatenate
from nbta.ops.indexing.transposing import swapaxes
from nbta.ops.linalg.lu import eye_like, solve
from nbta.ops.linalg.products import matmul
from nbta.ops.linalg.spectra import eigh, expm
from nbta.ops.linalg.structured import circulant, toeplitz
from nbta.ops.linalg.triangular import cho_solve, cholesky, mirrored

#: How many rows a matrix may have of which SciPy keeps a few numbers a row.
WHOLE = 1000


def _few(what, count):
    """Refuse what would take far more time and memory than it takes SciPy."""
    if count > WHOLE:
        message = (
            f"{what}: nbta would build the whole matrix of {count} rows here; write the "
            "elimination as a loop over the rows, whose gradient takes as little time as it does"
        )
        raise invalid("size", message)


def _toeplitz_of(c_or_cr):
    pair = c_or_cr if isinstance(c_or_cr, tuple) else (c_or_cr,)
    return toeplitz(*(reshape(operand(one), (-1,)) for one in pair))


@stands_for("scipy.linalg.solve_toeplitz", numpy=3)
def _solve_toeplitz(c_or_cr, b, check_finite=True):
    return solve(*promoted(_toeplitz_of(c_or_cr), b, floats=True))


@stands_for("scipy.linalg.matmul_toeplitz", numpy=4)
def _matmul_toeplitz(c_or_cr, x, check_finite=False, workers=None):
    is_count = type(workers) is int and workers >= -1 and workers != 0
    if workers is not None and not is_count:
        raise invalid("value", f"scipy.linalg.matmul_toeplitz: workers={workers!r}; give 1 or -1")
    return matmul(*promoted(_toeplitz_of(c_or_cr), x, floats=True))


@stands_for("scipy.linalg.solve_circulant", numpy=2)
def _solve_circulant(c, b):
    c = operand(c)
    if c.ndim != 1:
        raise invalid("rank", f"solve_circulant: c has rank {c.ndim}; give one column")
    return solve(*promoted(circulant(c), b, floats=True))


def _from_bands(bands, lower, upper, n):
    """A whole matrix of diagonals in rows, which are counted by columns, as LAPACK has them."""
    rows, columns = np.ogrid[:n, :n]
    inside = (rows - columns <= lower) & (columns - rows <= upper)
    places = np.where(inside, (upper + rows - columns) * n + columns, (lower + upper + 1) * n)
    flat = concatenate([reshape(bands, (-1,)), zeros(1, bands.dtype)], 0)
    return take(flat, places)


def _checked_bands(what, ab, count):
    rows, n = (operator.index(dimension) for dimension in ab.shape) if ab.ndim == 2 else (0, 0)
    if rows != count:
        message = f"{what}: ab has {rows} rows for {count} diagonals; give a row for each"
        raise invalid("shape", message)
    _few(what, n)
    return n


@stands_for("scipy.linalg.solve_banded", numpy=3)
def _solve_banded(
    l_and_u, ab, b, overwrite_ab=False, overwrite_b=False, check_finite=True
):  # fmt: skip
    """SciPy's; only the bands have gradients."""
    lower, upper = map(operator.index, l_and_u)
    ab, b = promoted(ab, b, floats=True)
    n = _checked_bands("solve_banded", ab, lower + upper + 1)
    return solve(_from_bands(ab, lower, upper, n), b)


@stands_for("scipy.linalg.solveh_banded", numpy=2)
def _solveh_banded(
    ab, b, *, overwrite_ab=False, overwrite_b=False, lower=False, check_finite=True
):  # fmt: skip
    """SciPy's, of positive definite matrices; likewise."""
    ab, b = promoted(ab, b, floats=True)
    if ab.ndim != 2:
        raise invalid("rank", f"solveh_banded: ab has rank {ab.ndim}; give diagonals in rows")
    width = operator.index(ab.shape[0]) - 1
    n = _checked_bands("solveh_banded", ab, width + 1)
    matrix = _from_bands(ab, width, 0, n) if lower else _from_bands(ab, 0, width, n)
    return cho_solve((cholesky(mirrored(matrix, not lower)), True), b)


@stands_for("scipy.linalg.eigh_tridiagonal", numpy=3)
def _eigh_tridiagonal(
    d, e, eigvals_only=False, *, check_finite=True, tol=0.0, lapack_driver="auto"
):
    """SciPy's, all values."""
    drivers = ("auto", "stemr", "stebz", "stev", *(["sterf"] if eigvals_only else ()))
    check_choice("scipy.linalg.eigh_tridiagonal", "lapack_driver", lapack_driver, drivers)
    d, e = promoted(d, e, floats=True)
    n = operator.index(d.shape[0])
    _few("eigh_tridiagonal", n)
    bands = concatenate([reshape(d, (1, n)), reshape(concatenate([e, d[:1]], 0), (1, n))], 0)
    w, v = eigh(mirrored(_from_bands(bands, 1, 0, n), False))
    return w if eigvals_only else (w, v)


@stands_for("scipy.linalg.eigvalsh_tridiagonal", numpy=2)
def _eigvalsh_tridiagonal(d, e, *, check_finite=True, tol=0.0, lapack_driver="auto"):
    return _eigh_tridiagonal(d, e, True, lapack_driver=lapack_driver)


# By products of Kronecker: as many equations as the solution has items.


def _by_items(what, matrix, q):
    """A solution of equations for its items, row by row."""
    count = operator.index(matrix.shape[0])
    _few(what, count)
    return reshape(solve(matrix, reshape(q, (-1,))), q.shape)


@stands_for("scipy.linalg.solve_sylvester", numpy=3)
def _solve_sylvester(a, b, q):
    """SciPy's: ``a @ x + x @ b = q``."""
    a, b, q = promoted(a, b, q, floats=True)
    turned = swapaxes(b, 0, 1)
    return _by_items("solve_sylvester", add(kron(a, eye_like(b)), kron(eye_like(a), turned)), q)


@stands_for("scipy.linalg.solve_continuous_lyapunov", "scipy.linalg.solve_lyapunov", numpy=2)
def _solve_continuous_lyapunov(a, q):
    """SciPy's: ``a @ x + x @ a^H = q``."""
    return _solve_sylvester(a, swapaxes(conjugate(operand(a)), 0, 1), q)


@stands_for("scipy.linalg.solve_discrete_lyapunov", numpy=3)
def _solve_discrete_lyapunov(a, q, method=None):
    """SciPy's: ``a @ x @ a^H - x + q = 0``."""
    if method not in (None, "direct", "bilinear"):
        raise invalid("value", f"solve_discrete_lyapunov: SciPy has no method {method!r}")
    a, q = promoted(a, q, floats=True)
    both = kron(a, conjugate(a))
    return _by_items("solve_discrete_lyapunov", subtract(eye_like(both), both), q)


# Functions of matrices.


@stands_for("scipy.linalg.expm_frechet", numpy=2)
def _expm_frechet(A, E, method=None, compute_expm=True, check_finite=True):  # noqa: N803
    """SciPy's, by the exponential of blocks (C. Van Loan, 1978)."""
    check_choice("scipy.linalg.expm_frechet", "method", method, (None, "SPS", "blockEnlarge"))
    a, e = promoted(A, E, floats=True)
    n = a.shape[-1]
    above, below = concatenate([a, e], -1), concatenate([zeros_like(a), a], -1)
    whole = expm(concatenate([above, below], -2))
    slope = getitem(whole, (..., slice(None, n), slice(n, None)))
    return (getitem(whole, (..., slice(None, n), slice(None, n))), slope) if compute_expm else slope


@stands_for("scipy.linalg.coshm", numpy=1)
def _coshm(A):  # noqa: N803 - SciPy's name
    return multiply(0.5, add(expm(A), expm(negative(operand(A)))))


@stands_for("scipy.linalg.sinhm", numpy=1)
def _sinhm(A):  # noqa: N803
    return multiply(0.5, subtract(expm(A), expm(negative(operand(A)))))


@stands_for("scipy.linalg.tanhm", numpy=1)
def _tanhm(A):  # noqa: N803
    return solve(_coshm(A), _sinhm(A))


def _turning(a):
    """The exponential of a real matrix times the imaginary unit."""
    return expm(multiply(operand(a), 1j))


@stands_for("scipy.linalg.cosm", numpy=1)
def _cosm(A):  # noqa: N803
    if operand(A).dtype.kind != "c":
        return real(_turning(A))
    return multiply(0.5, add(_turning(A), expm(multiply(A, -1j))))


@stands_for("scipy.linalg.sinm", numpy=1)
def _sinm(A):  # noqa: N803
    if operand(A).dtype.kind != "c":
        return imag(_turning(A))
    return multiply(-0.5j, subtract(_turning(A), expm(multiply(A, -1j))))


@stands_for("scipy.linalg.tanm", numpy=1)
def _tanm(A):  # noqa: N803
    return solve(_cosm(A), _sinm(A))


# What is not here, and what is instead.

refuses(
    "eigenvalues of general matrices are complex numbers in no order; of symmetric or Hermitian "
    "ones there are nbta.eigh and nbta.eigvalsh, of any there are singular values (nbta.svd), "
    "and trace, det and slogdet for their sums and products",
    *("linalg.eig", "linalg.eigvals", "scipy.linalg.eig", "scipy.linalg.eigvals"),
)
refuses(
    "roots are eigenvalues of a general matrix, complex and in no order; for one of them write "
    "Newton's iteration as a loop, or give its derivative with nbta.custom_gradient",
    "roots",
)
refuses(
    "the length of the remainder depends on its values; divide values of nbta.polyval at points, "
    "or multiply by nbta.convolve",
    "polydiv",
)
refuses(
    "of a symmetric or Hermitian matrix take w, v = nbta.eigh(a) and (v * f(w)) @ v.conj().T; "
    "else there is nbta.expm",
    *(f"scipy.linalg.{name}" for name in (
        "sqrtm", "logm", "signm", "funm", "fractional_matrix_power", "expm_cond",
    )),
)  # fmt: skip
refuses(
    "there are nbta.qr, nbta.eigh, nbta.svd, nbta.lu and nbta.cholesky; for an equation with "
    "a matrix nbta.solve, solve_sylvester and solve_discrete_lyapunov",
    *(f"scipy.linalg.{name}" for name in (
        "schur", "rsf2csf", "cdf2rdf", "qz", "ordqz", "hessenberg", "ldl", "rq", "qr_multiply",
        "qr_insert", "qr_delete", "qr_update", "matrix_balance", "cossin",
    )),
)  # fmt: skip
refuses(
    "with u, s, vh = nbta.svd(a, full_matrices=False) there are u @ vh for the orthogonal "
    "factor, and columns of u and vh for the spaces, as many as s says",
    *(f"scipy.linalg.{name}" for name in (
        "polar", "orth", "null_space", "orthogonal_procrustes", "subspace_angles",
    )),
)  # fmt: skip
refuses(
    "iterate the equation of Riccati in a loop until it converges, with nbta.solve in each "
    "iteration; or make it of nbta.custom_gradient, whose gradient solve_discrete_lyapunov or "
    "solve_continuous_lyapunov gives",
    "scipy.linalg.solve_continuous_are",
    "scipy.linalg.solve_discrete_are",
)
refuses(
    "make the whole matrix, and take nbta.eigh or nbta.cholesky; solveh_banded and "
    "eigh_tridiagonal of scipy.linalg take bands",
    *(f"scipy.linalg.{name}" for name in (
        "eig_banded", "eigvals_banded", "cholesky_banded", "cho_solve_banded",
    )),
)  # fmt: skip
