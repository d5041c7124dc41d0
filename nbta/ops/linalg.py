"""Linear algebra under one roof; what is solved with triangles is here."""

import functools
import string

import numpy as np

from nbta import shapes
from nbta.codegen import linalg_rules
from nbta.errors import invalid
from nbta.graph.spec import Spec
from nbta.ops.arithmetic import multiply
from nbta.ops.axis_arguments import integers, operand
from nbta.ops.contraction import einsum
from nbta.ops.dispatch import apply, define, exported
from nbta.ops.elementwise import conjugate, meet
from nbta.ops.half import narrow, widened
from nbta.ops.products import matmul, outer, swapaxes, transpose
from nbta.ops.shaping import unbroadcast

__all__ = [
    "cholesky",
    "dot",
    "einsum",
    "matmul",
    "outer",
    "swapaxes",
    "transpose",
    "triangular_solve",
    "tril",
]


@exported(numpy=2)
def dot(a, b, *, name=None):
    """Sum of products over the last axis of ``a`` and the last but one of ``b``, or its only one.

    As ``numpy.dot``: for matrices and vectors it is `nbta.matmul`, with a scalar the product, and
    axes before the last two are not matched but all combined.

    Raises
    ------
    InvalidArgumentError
        For lengths that differ, and for an unknown rank.

    Examples
    --------
    >>> nbta.dot([1, 2], [10, 1])
    np.int64(12)
    """
    a, b = meet(a, b)
    if 0 in (a.ndim, b.ndim):
        return multiply(a, b, name=name)
    if None in (a.ndim, b.ndim):
        raise invalid("rank", "dot: the ranks must be known; reshape the operands, or use matmul")
    if a.ndim == 1 or b.ndim <= 2:
        return matmul(a, b, name=name)
    first, second = string.ascii_lowercase[: a.ndim], string.ascii_uppercase[: b.ndim - 2]
    result = f"{first[:-1]}{second}Z"
    return einsum(f"{first},{second}{first[-1]}Z->{result}", a, b, name=name)


def _infer_tril(spec, *, k):
    if spec.rank is not None and spec.rank < 2:
        message = f"shape {shapes.text(spec.shape)} has no matrix; give two axes or more"
        raise invalid("rank", message)
    return Spec(spec.dtype, spec.shape)


TRIL = define(
    "Tril",
    _infer_tril,
    lambda x, *, k: np.tril(x, k),
    lambda op, dy: [tril(dy, op.attrs["k"])],
    emit=linalg_rules.tril,
    total=True,
)


@exported
def tril(x, k=0, *, name=None):
    """Matrices with zeros above diagonal ``k``, of the shape of ``x``.

    Raises
    ------
    InvalidArgumentError
        For less than two axes.

    Examples
    --------
    >>> nbta.tril([[1, 2], [3, 4]])
    array([[1, 0],
           [3, 4]])
    """
    return apply(TRIL, [operand(x)], {"k": integers((k,))[0]}, name)


def _square(spec):
    """Shape rule of functions of square matrices."""
    _infer_tril(spec, k=0)
    if spec.shape is not None and not shapes.compatible(spec.shape[-2:-1], spec.shape[-1:]):
        message = f"shape {shapes.text(spec.shape)} has no square matrix in its last two axes"
        raise invalid("shape", message)
    return Spec(spec.dtype, spec.shape)


def _evaluate_cholesky(a):
    half = widened(a) / 2
    try:
        factor = np.linalg.cholesky(half + np.conj(np.swapaxes(half, -1, -2)))
    except np.linalg.LinAlgError:
        message = f"a matrix in shape {shapes.text(a.shape)} is not positive definite"
        raise invalid("cholesky", message) from None
    return narrow(factor, a.dtype)


def _cholesky_gradient(op, dy):
    factor = op.outputs[0]
    inner = matmul(conjugate(swapaxes(factor, -1, -2)), tril(dy))
    inner = (tril(inner) + tril(inner, -1)) / 2
    left = _solve(conjugate(factor), inner, transpose=True)
    both = _solve(factor, swapaxes(left, -1, -2), transpose=True)
    return [(swapaxes(both, -1, -2) + conjugate(both)) / 2]


CHOLESKY = define(
    "Cholesky", _square, _evaluate_cholesky, _cholesky_gradient, emit=linalg_rules.cholesky
)


@exported
def cholesky(a, *, name=None):
    """The lower triangular factor of positive definite matrices: its square is ``a``.

    Parameters
    ----------
    a : array-like or Tensor
        Of shape ``(..., n, n)``. What is factored is its mean with its conjugate transpose, and so
        the gradient is symmetric.

    Raises
    ------
    InvalidArgumentError
        For a matrix that is not square or not positive definite.

    Examples
    --------
    >>> nbta.cholesky([[4.0, 2.0], [2.0, 2.0]])
    array([[2., 0.],
           [1., 1.]])
    """
    return apply(CHOLESKY, [operand(a, floats=True)], name=name)


def _infer_solve(a, b, *, lower, transpose):
    _square(a)
    _infer_tril(b, k=0)
    if a.shape is None or b.shape is None:
        return Spec(b.dtype, None)
    if not shapes.compatible(a.shape[-1:], b.shape[-2:-1]):
        message = f"a of shape {shapes.text(a.shape)} does not act on b of {shapes.text(b.shape)}"
        raise invalid("shape", message)
    try:
        batch = shapes.broadcast(a.shape[:-2], b.shape[:-2])
    except ValueError:
        texts = f"{shapes.text(a.shape)} and {shapes.text(b.shape)}"
        message = f"shapes {texts} do not broadcast in the axes before the last two"
        raise invalid("broadcast", message) from None
    return Spec(b.dtype, (*batch, *b.shape[-2:]))


#: OpenBLAS wakes its threads for 1024 results and more, however little work these are, and its
#: trtrs for any: 4 by 4 took 28 ms beside other busy processes, and 3 us by trsm on one thread.
_ON_ONE_THREAD = 1023
#: Rows up to which solving in pieces costs no more than threads save.
_SMALL = 128


@functools.cache
def _solver(dtype):
    from scipy.linalg import get_blas_funcs  # takes 0.1 s, which most programs need not wait for

    return get_blas_funcs("trsm", dtype=dtype)


def _solve_one(a, b, result, lower, transpose):
    """Solve for one matrix; of small ones so many columns at a time as one thread does."""
    rows, columns = b.shape
    step = _ON_ONE_THREAD // rows if rows <= _SMALL else columns
    solve = _solver(b.dtype)
    for first in range(0, columns, step):
        piece = np.s_[:, first : first + step]
        # BLAS's matrices are transposed, and so nothing is copied to make one.
        result[piece] = solve(1, a.T, b[piece], lower=not lower, trans_a=not transpose)


def _evaluate_solve(a, b, *, lower, transpose):
    _infer_solve(Spec(a.dtype, a.shape), Spec(b.dtype, b.shape), lower=lower, transpose=transpose)
    dtype, a, b = b.dtype, widened(a), widened(b)
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    a, b = (np.broadcast_to(x, (*batch, *x.shape[-2:])) for x in (a, b))
    result = np.empty(b.shape, b.dtype)
    for place in np.ndindex(batch if result.size else (0,)):
        zeros = np.flatnonzero(np.diagonal(a[place]) == 0)
        if zeros.size:
            where = f" of matrix {place}" if place else ""
            message = f"a is singular: element {zeros[0]} of the diagonal{where} is 0"
            raise invalid("singular", message)
        _solve_one(a[place], b[place], result[place], lower, transpose)
    return narrow(result, dtype)


def _solve_gradient(op, dy):
    a, b = op.inputs
    lower, transpose = op.attrs["lower"], op.attrs["transpose"]
    db = _solve(conjugate(a), dy, lower, not transpose)
    x = conjugate(op.outputs[0])
    left, right = (x, db) if transpose else (db, x)
    if not lower:
        left, right = right, left
    da = -tril(matmul(left, swapaxes(right, -1, -2)))
    return [unbroadcast(da if lower else swapaxes(da, -1, -2), a), unbroadcast(db, b)]


SOLVE = define(
    "TriangularSolve",
    _infer_solve,
    _evaluate_solve,
    _solve_gradient,
    emit=linalg_rules.triangular_solve,
)


def _solve(a, b, lower=True, transpose=False, name=None):
    """With matrices on the right."""
    return apply(SOLVE, [a, b], {"lower": bool(lower), "transpose": bool(transpose)}, name)


@exported
def triangular_solve(a, b, lower=True, transpose=False, *, name=None):
    """``x`` with ``a @ x = b``, where only one triangle of ``a`` is read.

    Parameters
    ----------
    a : array-like or Tensor
        Of shape ``(..., n, n)``.
    b : array-like or Tensor
        Matrices ``(..., n, m)``, or one vector ``(n,)``; the axes before the last two broadcast.
    lower : bool
        Which triangle is read; only this one has a gradient.
    transpose : bool
        Whether to solve with the transposed triangle, ``a.T @ x = b``; it is not conjugated.

    Raises
    ------
    InvalidArgumentError
        For shapes that do not fit, a zero on the diagonal, and ``b`` of unknown rank.

    Examples
    --------
    >>> nbta.triangular_solve([[2.0, 0.0], [1.0, 1.0]], [2.0, 3.0])
    array([1., 2.])
    """
    from nbta.ops.joining import expand_dims, squeeze

    a, b = meet(a, b, floats=True)
    if b.ndim is None:
        raise invalid("rank", "b: its rank must be known, to tell a vector from matrices")
    if b.ndim != 1:
        return _solve(a, b, lower, transpose, name)
    return squeeze(_solve(a, expand_dims(b, 1), lower, transpose, name), -1)
