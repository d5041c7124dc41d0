"""Linear algebra under one roof; what is solved with triangles is here."""

from __future__ import annotations

import functools
import string
from typing import TYPE_CHECKING

import numpy as np

from nbta import shapes
from nbta.codegen import windows
from nbta.codegen.fusion import as_it_is, broadcast, spread, typed
from nbta.codegen.values import is_known, product, times, total
from nbta.codegen.windows import held
from nbta.errors import invalid
from nbta.graph.operation import Spec
from nbta.loops import (
    Constant,
    Evaluate,
    Expression,
    assign,
    both,
    call,
    call_at,
    do,
    over,
)
from nbta.loops.nodes import ZERO
from nbta.ops.core.arithmetic import ADD_N, add_n, multiply, negative
from nbta.ops.core.axis_arguments import integers, operand
from nbta.ops.core.dispatch import apply, define, exported, stands_for
from nbta.ops.core.elementwise import conjugate, narrow, promoted, widened
from nbta.ops.core.filling import ones_like
from nbta.ops.core.shaping import unbroadcast
from nbta.ops.indexing.joining import expand_dims, squeeze
from nbta.ops.indexing.transposing import swapaxes, transpose
from nbta.ops.linalg.products import einsum, matmul, outer
from nbta.tuning import FACTOR_BLOCK, FACTOR_COLUMNS

if TYPE_CHECKING:
    from typing import Literal

    from nbta.typing import Array, ArrayLike

__all__ = [
    "cho_factor",
    "cho_solve",
    "cholesky",
    "dot",
    "einsum",
    "matmul",
    "outer",
    "solve_triangular",
    "swapaxes",
    "transpose",
    "triangular_solve",
    "tril",
]


@exported(numpy=2)
def dot(a: ArrayLike, b: ArrayLike, *, name: str | None = None) -> Array:
    """Dot product, as `numpy.dot`: the product of matrices, vectors or scalars.

    For vectors and matrices it is `nbta.matmul`, and with a scalar the product. For higher ranks,
    the last axis of ``a`` is summed against the last but one of ``b``, and all other axes are
    combined.

    Parameters
    ----------
    a, b : array-like or Tensor
        Numbers, whose summed axes have one length.

    Returns
    -------
    Tensor or numpy.ndarray
        Of the shape of ``a`` without its last axis, followed by that of ``b`` without its last but
        one.

    Raises
    ------
    InvalidArgumentError
        For lengths that differ, and for an unknown rank.

    Examples
    --------
    >>> nbta.dot([1, 2], [10, 1])
    np.int64(12)
    """
    a, b = promoted(a, b)
    if 0 in (a.ndim, b.ndim):
        return multiply(a, b, name=name)
    if None in (a.ndim, b.ndim):
        raise invalid("rank", "dot: the ranks must be known; reshape the operands, or use matmul")
    if a.ndim == 1 or b.ndim <= 2:
        return matmul(a, b, name=name)
    first, second = string.ascii_lowercase[: a.ndim], string.ascii_uppercase[: b.ndim - 2]
    result = f"{first[:-1]}{second}Z"
    return einsum(f"{first},{second}{first[-1]}Z->{result}", a, b, name=name)


def infer_tril(spec, *, k):
    """Shape rule of what takes matrices."""
    if spec.rank is not None and spec.rank < 2:
        message = f"shape {shapes.text(spec.shape)} has no matrix; give two axes or more"
        raise invalid("rank", message)
    return Spec(spec.dtype, spec.shape)


#: Diagonals beyond are left to NumPy, which has a limit of its own.
_FAR = 2**61


def _emit_tril(code, op) -> None:
    """Matrices with zeros above a diagonal."""
    k = op.attrs["k"]
    if abs(k) > _FAR:
        return code.call_python(op)
    value = code.value(op.inputs[0])
    block = code.result(op, dimensions=value.dimensions)
    *outer, rows, columns = value.dimensions
    o, i, n, at = (code.name(stem) for stem in "oink")
    around = code.lines
    for header in (over(o, product(outer)), over(i, rows)):
        code.lines = code.lines.nest(header)
    code.add(assign(n, call("min", call("max", i + (k + 1), 0), columns)))
    code.add(assign(at, times(total(times(o, rows), i), columns)))
    source, target = total(value.offset, at), total(block.offset, at)
    code.add(do("copy", block.base.name, target, value.base.name, source, n))
    code.add(do("clear", block.base.name, total(target, n), columns - n))
    code.lines = around
    return None


TRIL = define(
    "Tril",
    infer_tril,
    lambda x, *, k: np.tril(x, k),
    lambda op, dy: [tril(dy, op.attrs["k"])],
    emit=_emit_tril,
    total=True,
    linear=(0,),
    moves=True,
)


@exported(numpy=2)
def tril(x: ArrayLike, k: int = 0, *, name: str | None = None) -> Array:
    """The lower triangle of matrices, as `numpy.tril`.

    Parameters
    ----------
    x : array-like or Tensor
        Matrices ``(..., m, n)``.
    k : int, default 0
        Diagonal above which elements become 0.

    Returns
    -------
    Tensor or numpy.ndarray
        Of the shape and dtype of ``x``.

    Raises
    ------
    InvalidArgumentError
        For fewer than two axes.

    Examples
    --------
    >>> nbta.tril([[1, 2], [3, 4]])
    array([[1, 0],
           [3, 4]])
    """
    return apply(TRIL, [operand(x)], {"k": integers((k,))[0]}, name)


def square(spec):
    """Shape rule of functions of square matrices."""
    infer_tril(spec, k=0)
    if spec.shape is not None and not shapes.compatible(spec.shape[-2:-1], spec.shape[-1:]):
        message = f"shape {shapes.text(spec.shape)} has no square matrix in its last two axes"
        raise invalid("shape", message)
    return Spec(spec.dtype, spec.shape)


def _real_diagonal(x):
    return np.tril(np.triu(x)).real


def _evaluate_mirror(x):
    strict = np.tril(x, -1)
    return (strict + _turned(strict) + _real_diagonal(x)).astype(x.dtype)


def _evaluate_fold(x):
    return (np.tril(x, -1) + np.tril(_turned(x), -1) + _real_diagonal(x)).astype(x.dtype)


def _by_pairs(below, above):
    """Code for square matrices: rules of an item below the diagonal, and of the one above.

    They are given such items of the input, and what gives the conjugate of one.
    """

    def emit(code, op) -> None:
        value = code.value(op.inputs[0])
        code.equate(value.dimensions[-1], value.dimensions[-2])
        block = code.result(op, dimensions=value.dimensions)
        *outer, _, n = value.dimensions
        o, i, j = (code.name(stem) for stem in "oij")
        matrix = times(o, product((n, n)))

        def item(of, row, column):
            return of.base.name[total(of.offset, matrix, times(row, n), column)]

        x, y = item(value, i, j), item(value, j, i)
        turned = Expression.conjugate if block.dtype.kind == "c" else as_it_is
        around = code.lines
        for header in (over(o, product(outer)), over(i, n)):
            code.lines = code.lines.nest(header)
        with code.nest(over(j, i)):
            for place, rule in ((item(block, i, j), below), (item(block, j, i), above)):
                code.add(assign(place, typed(rule(x, y, turned), block.dtype)))
        own = item(value, i, i)
        own = own.real if block.dtype.kind == "c" else own
        code.add(assign(item(block, i, i), typed(own, block.dtype)))
        code.lines = around

    return emit


MIRROR = define(
    "Mirror",
    square,
    _evaluate_mirror,
    lambda op, dy: [apply(FOLD, [dy])],
    emit=_by_pairs(lambda x, y, turned: x, lambda x, y, turned: turned(x)),
    total=True,
    linear=(0,),
)
FOLD = define(
    "Fold",
    square,
    _evaluate_fold,
    lambda op, dy: [apply(MIRROR, [dy])],
    emit=_by_pairs(lambda x, y, turned: x + turned(y), lambda x, y, turned: ZERO),
    total=True,
    linear=(0,),
)


def mirrored(a, upper):
    """Hermitian matrices that have the upper or the lower triangle of some matrices."""
    if upper:
        return swapaxes(mirrored(swapaxes(a, -1, -2), False), -1, -2)
    return apply(MIRROR, [a])


def _evaluate_cholesky(a):
    half = widened(a) / 2
    try:
        factor = np.linalg.cholesky(half + np.conj(np.swapaxes(half, -1, -2)))
    except np.linalg.LinAlgError:
        message = f"a matrix in shape {shapes.text(a.shape)} is not positive definite"
        raise invalid("cholesky", message) from None
    return narrow(factor, a.dtype)


def _cholesky_gradient(op, dy):
    return [apply(CHOLESKY_GRADIENT, [op.outputs[0], _as_lower(dy)])]


def _as_lower(x):
    """The same where only the lower triangle is read: nobody needs to clear the other one."""
    if x.op.record is TRIL and x.op.attrs["k"] >= 0:
        return _as_lower(x.op.inputs[0])
    if x.op.record is not ADD_N:
        return x
    return add_n([_as_lower(one) for one in x.op.inputs])


def _emit_cholesky(code, op) -> None:
    """Lower factors, matrix by matrix."""
    value, result = code.value(op.inputs[0]), op.outputs[0]
    code.equate(value.dimensions[-1], value.dimensions[-2])
    block = code.result(op, dimensions=value.dimensions)
    *outer, _, n = value.dimensions
    i, size = code.name("i"), product((n, n))
    helper = code.helper(f"cholesky_{result.dtype.name}")
    routines = lapack(code, "potrf", result.dtype), *products(code, result.dtype)
    with code.nest(over(i, product(outer))):
        places = [address_of(one, times(i, size)) for one in (value, block)]
        code.fail_if(call_at(helper, *places, n, *routines).differs(0))


def address_of(block, start):
    """The address of an item of a block."""
    return call("address", block.base.name, total(block.offset, start))


CHOLESKY = define(
    "Cholesky",
    square,
    _evaluate_cholesky,
    _cholesky_gradient,
    emit=_emit_cholesky,
    tangent=lambda op, change: [apply(CHOLESKY_TANGENT, [op.outputs[0], change])],
)


def _infer_cholesky_gradient(factor, slope):
    return square(slope if factor.shape is None else factor)


def _adjoint(x):
    return conjugate(swapaxes(x, -1, -2))


def _turned(x):
    return np.conj(np.swapaxes(x, -1, -2))


def _evaluate_cholesky_gradient(factor, slope):
    """In the blocks of compiled code, so that NaN and infinities go as far; see there."""
    dtype, factor, slope = slope.dtype, widened(factor), widened(slope)
    found, n = np.zeros_like(factor), factor.shape[-1]
    size = 1 if n <= FACTOR_COLUMNS else FACTOR_BLOCK
    for first in range(0, n, size)[::-1]:
        here, below = slice(first, first + size), slice(first + size, None)
        corner, columns = factor[..., here, here], factor[..., below, here]
        unit = np.eye(corner.shape[-1], dtype=factor.dtype)
        inverse = _evaluate_solve(np.tril(corner), unit, lower=True, transpose=False)
        half = (slope[..., below, here] / 2 - found[..., below, below] @ columns) @ inverse
        own = np.tril(slope[..., here, here] - 2 * _turned(half) @ columns)
        own = np.tril(_turned(corner) @ own) / 2
        own = _turned(inverse) @ ((own + _turned(np.tril(own, -1))) @ inverse)
        found[..., below, here], found[..., here, below] = half, _turned(half)
        found[..., here, here] = (own + _turned(own)) / 2
    return narrow(found, dtype)


def _evaluate_cholesky_tangent(factor, change):
    """In the blocks of compiled code likewise."""
    dtype, factor, change = change.dtype, np.tril(widened(factor)), widened(change)
    found, n = np.tril(change / 2 + _turned(change) / 2), factor.shape[-1]
    size = 1 if n <= FACTOR_COLUMNS else FACTOR_BLOCK
    for first in range(0, n, size):
        here, below = slice(first, first + size), slice(first + size, None)
        rows, done = slice(first, None), slice(0, first)
        found[..., rows, here] -= found[..., rows, done] @ _turned(factor[..., here, done])
        found[..., rows, here] -= factor[..., rows, done] @ _turned(found[..., here, done])
        corner = factor[..., here, here]
        unit = np.broadcast_to(np.eye(corner.shape[-1], dtype=factor.dtype), corner.shape)
        inverse = _evaluate_solve(corner, unit, lower=True, transpose=False)
        inner = inverse @ _evaluate_mirror(found[..., here, here]) @ _turned(inverse)
        inner = np.tril(inner, -1) + _real_diagonal(inner) / 2
        found[..., here, here] = corner @ inner
        further = found[..., below, here] @ _turned(inverse)
        found[..., below, here] = further - factor[..., below, here] @ _turned(inner)
    return narrow(found, dtype)


def _is_second(op, place):
    """Which input the result is linear in: an equation is solved for it."""
    return place == 1


def _by_factor(found, slope):
    """The gradient by the factor of either, where that by what is solved for is ``slope``.

    They solve linear equations that are each other's adjoint: a tangent T of A has
    ``T L^H + L T^H = A``, and of a gradient S the lower triangle of ``2 S L`` is given. So the
    factor's change R takes ``2 T R^H`` off A, and ``2 S R`` off what is given.
    """
    return tril(-2 * matmul(found, slope))


def _cholesky_tangent_gradient(op, dy):
    slope = apply(CHOLESKY_GRADIENT, [op.inputs[0], _as_lower(dy)])
    return [_by_factor(slope, op.outputs[0]), slope]


def _second_cholesky_gradient(op, dy):
    change = apply(CHOLESKY_TANGENT, [op.inputs[0], dy])
    return [_by_factor(op.outputs[0], change), change]


def _along_both(taken_off):
    """A tangent rule: solved as well, for the other tangent without what the factor's takes off."""

    def tangent(op, by_factor, by_other):
        if by_factor is not None:
            taken = 2 * matmul(*taken_off(op.outputs[0], by_factor))
            by_other = negative(taken) if by_other is None else by_other - taken
        return [apply(op.record, [op.inputs[0], by_other])]

    return tangent


def _emit_cholesky_gradient(code, op) -> None:
    """Matrix by matrix, in room that all share."""
    factor, slope = map(code.value, op.inputs)
    for one, other in zip(factor.dimensions, slope.dimensions, strict=True):
        code.equate(one, other)
    block = code.result(op, dimensions=factor.dimensions)
    *outer, _, n = factor.dimensions
    width = Constant(n.value + FACTOR_BLOCK) if is_known(n) else code.derived(n + FACTOR_BLOCK)
    work, kind = code.new(block.dtype, (n, width)), block.dtype
    i, size = code.name("i"), product((n, n))
    helper = code.helper(f"cholesky_gradient_{kind.name}")
    with code.nest(over(i, product(outer))):
        places = [address_of(one, times(i, size)) for one in (factor, slope, block)]
        code.add(Evaluate(call_at(helper, *places, work.address, n, *products(code, kind))))


def _emit_cholesky_tangent(code, op) -> None:
    """Matrix by matrix."""
    factor, change = map(code.value, op.inputs)
    for one, other in zip(factor.dimensions, change.dimensions, strict=True):
        code.equate(one, other)
    block = code.result(op, dimensions=factor.dimensions)
    *outer, _, n = factor.dimensions
    i, size, kind = code.name("i"), product((n, n)), block.dtype
    helper = code.helper(f"cholesky_tangent_{kind.name}")
    with code.nest(over(i, product(outer))):
        places = [address_of(one, times(i, size)) for one in (factor, change, block)]
        code.add(Evaluate(call_at(helper, *places, n, *products(code, kind))))


CHOLESKY_GRADIENT = define(
    "CholeskyGradient",
    _infer_cholesky_gradient,
    _evaluate_cholesky_gradient,
    _second_cholesky_gradient,
    emit=_emit_cholesky_gradient,
    spreads=_is_second,
    tangent=_along_both(lambda found, change: (found, tril(change))),
)
CHOLESKY_TANGENT = define(
    "CholeskyTangent",
    _infer_cholesky_gradient,
    _evaluate_cholesky_tangent,
    _cholesky_tangent_gradient,
    emit=_emit_cholesky_tangent,
    spreads=_is_second,
    tangent=_along_both(lambda found, change: (found, _adjoint(tril(change)))),
)


@exported
def cholesky(a: ArrayLike, upper: bool = False, *, name: str | None = None) -> Array:
    """Cholesky factor of positive definite matrices, as `numpy.linalg.cholesky`.

    Parameters
    ----------
    a : array-like or Tensor
        Matrices ``(..., n, n)``. The mean of each and its conjugate transpose is factored, so that
        the gradient is symmetric.
    upper : bool, default False
        Whether to return the upper factor, the conjugate transpose of the lower one.

    Returns
    -------
    Tensor or numpy.ndarray
        The lower factor ``L`` with ``L @ L.T == a``, or the upper one, of the shape of ``a``.

    Raises
    ------
    InvalidArgumentError
        For a matrix that is not square or not positive definite.

    Examples
    --------
    >>> nbta.cholesky([[4.0, 2.0], [2.0, 2.0]])
    array([[2., 0.],
           [1., 1.]])
    >>> nbta.grad(lambda a: nbta.sum(nbta.cholesky(a)))(np.array([[4.0, 2.0], [2.0, 2.0]]))
    array([[0.25, 0.  ],
           [0.  , 0.5 ]])
    """
    if not upper:
        return apply(CHOLESKY, [operand(a, floats=True)], name=name)
    return swapaxes(conjugate(cholesky(a)), -1, -2, name=name)


@stands_for("linalg.cholesky", numpy=1)
def _numpys_cholesky(a, /, *, upper=False):
    """NumPy's, which reads the lower triangle, or else the upper one, and nothing else."""
    return cholesky(mirrored(operand(a), upper), upper)


@stands_for("scipy.linalg.cholesky", numpy=2)
def _scipy_cholesky(a, lower=False, overwrite_a=False, check_finite=True):
    return cholesky(mirrored(operand(a), not lower), not lower)


@exported
def cho_factor(
    a: ArrayLike,
    lower: bool = False,
    overwrite_a: bool = False,
    check_finite: bool = True,
    *,
    name: str | None = None,
) -> tuple[Array, bool]:
    """Cholesky factor for `cho_solve`, as ``scipy.linalg.cho_factor``.

    Parameters
    ----------
    a : array-like or Tensor
        Positive definite matrices ``(..., n, n)``; see `cholesky`.
    lower : bool, default False
        Whether to compute the lower factor instead of the upper one; the other triangle is zeros.
    overwrite_a, check_finite : bool
        Accepted for compatibility with SciPy; nothing is overwritten.

    Returns
    -------
    c : Tensor or numpy.ndarray
        The factor, of the shape of ``a``.
    lower : bool
        Whether it is the lower one.

    Raises
    ------
    InvalidArgumentError
        For a matrix that is not square or not positive definite.

    Examples
    --------
    >>> nbta.cho_factor([[4.0, 2.0], [2.0, 2.0]])
    (array([[2., 1.],
           [0., 1.]]), False)
    """
    return cholesky(a, not lower, name=name), bool(lower)


@stands_for("scipy.linalg.cho_factor", numpy=4)
def _scipy_cho_factor(a, lower=False, overwrite_a=False, check_finite=True):
    return cho_factor(mirrored(operand(a), not lower), lower)


@exported(also="scipy.linalg.cho_solve", numpy=4)
def cho_solve(
    c_and_lower: tuple[ArrayLike, bool],
    b: ArrayLike,
    overwrite_b: bool = False,
    check_finite: bool = True,
    *,
    name: str | None = None,
) -> Array:
    """``x`` with ``a @ x = b``, from a factor of ``a``, as ``scipy.linalg.cho_solve``.

    Parameters
    ----------
    c_and_lower : tuple
        The result of `cho_factor`: a triangular factor, and whether it is the lower one.
    b : array-like or Tensor
        Right-hand sides: matrices ``(..., n, m)``, or one vector ``(n,)``.
    overwrite_b, check_finite : bool
        Accepted for compatibility with SciPy; nothing is overwritten.

    Returns
    -------
    Tensor or numpy.ndarray
        ``x``, of the shape of ``b``.

    Raises
    ------
    InvalidArgumentError
        For shapes that do not fit together, and for a zero on the diagonal.

    Examples
    --------
    >>> nbta.cho_solve(nbta.cho_factor([[4.0, 2.0], [2.0, 2.0]]), [2.0, 0.0])
    array([ 1., -1.])
    """
    factor, lower = c_and_lower
    factor, b = promoted(factor, b, floats=True)
    turned = conjugate(factor)
    if lower:
        return triangular_solve(turned, triangular_solve(factor, b), transpose=True, name=name)
    inner = triangular_solve(turned, b, lower=False, transpose=True)
    return triangular_solve(factor, inner, lower=False, name=name)


def infer_solve(a, b, *, lower, transpose):
    """Shape rule of solutions, of square matrices and matrices on the right."""
    square(a)
    infer_tril(b, k=0)
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


def lapack(code, function, dtype, library="lapack"):
    """The address of SciPy's function of LAPACK or BLAS for a dtype."""
    return code.helper(f"{library}_{_PREFIXES[dtype.name]}{function}")


def products(code, dtype):
    """The addresses of the two helpers that multiply matrices."""
    return tuple(code.helper(f"{helper}_{dtype.name}") for helper in ("gemm", "blas"))


_PREFIXES = {"float32": "s", "float64": "d", "complex64": "c", "complex128": "z"}
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
    infer_solve(Spec(a.dtype, a.shape), Spec(b.dtype, b.shape), lower=lower, transpose=transpose)
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
    x, taken = conjugate(op.outputs[0]), negative(db)
    left, right = (x, taken) if transpose else (taken, x)
    if not lower:
        left, right = right, left
    da = tril(unbroadcast(matmul(left, swapaxes(right, -1, -2)), a))
    return [da if lower else swapaxes(da, -1, -2), unbroadcast(db, b)]


def _solve_tangent(op, da, db):
    """Solved likewise, for what the tangent of the matrix leaves of the right side's."""
    lower, transpose = op.attrs["lower"], op.attrs["transpose"]
    if da is not None:
        da = tril(da if lower else swapaxes(da, -1, -2))
        taken = matmul(da if lower != transpose else swapaxes(da, -1, -2), op.outputs[0])
        db = negative(taken) if db is None else db - taken
    return [_solve(op.inputs[0], db, lower, transpose)]


def _emit_triangular_solve(code, op) -> None:
    """Solutions, matrix by matrix, in a copy of the right sides."""
    a, b = code.value(op.inputs[0]), code.value(op.inputs[1])
    *outer_a, n, other = a.dimensions
    *outer_b, rows, columns = b.dimensions
    code.equate(n, other)
    code.equate(n, rows)
    known = op.outputs[0].spec.shape
    outer = batch_of(code, outer_a, outer_b, known[:-2])
    block = code.result(op, dimensions=(*outer, rows, columns))
    repeat(code, block, b, outer)
    flags = op.attrs["lower"] + 2 * op.attrs["transpose"]
    names = [code.name("i") for _ in outer]
    steps = spread(code, a.dimensions, len(block.dimensions), (*outer, n, n))
    source = total(*map(times, names, steps))
    target = total(*map(times, names, windows.strides_of(code, block.dimensions)))
    helper = code.helper(f"solve_{block.dtype.name}")
    routines = lapack(code, "trsm", block.dtype, "blas"), *products(code, block.dtype)
    around = code.lines
    for name, dimension in zip(names, outer, strict=True):
        code.lines = code.lines.nest(over(name, dimension))
    places = address_of(a, source), address_of(block, target)
    solved = call_at(helper, *places, n, columns, flags, *routines)
    code.fail_if(both(columns > 0, solved.differs(0)))
    code.lines = around


def batch_of(code, one, other, known):
    """Dimensions of what is before matrices, which broadcasts."""
    if not one and not other:
        return ()
    pairs = [(dimensions, tuple(e.value if is_known(e) else None for e in dimensions))
             for dimensions in (one, other)]  # fmt: skip
    found = broadcast(code, pairs)
    return tuple(held(code, *pair) for pair in zip(found, known, strict=True))


def repeat(code, block, value, outer):
    """Put matrices into a block, again and again where it has more of them."""
    steps = spread(code, value.dimensions, len(block.dimensions), block.dimensions)
    names = [code.name("i") for _ in outer]
    source = total(value.offset, *map(times, names, steps))
    to = windows.strides_of(code, block.dimensions)
    target = total(block.offset, *map(times, names, to))
    code.nested(
        [over(name, dimension) for name, dimension in zip(names, outer, strict=True)],
        do(
            "copy", block.base.name, target, value.base.name, source, product(block.dimensions[-2:])
        ),
    )


SOLVE = define(
    "TriangularSolve",
    infer_solve,
    _evaluate_solve,
    _solve_gradient,
    emit=_emit_triangular_solve,
    spreads=_is_second,
    tangent=_solve_tangent,
)


def _solve(a, b, lower=True, transpose=False, name=None):
    """With matrices on the right."""
    return apply(SOLVE, [a, b], {"lower": bool(lower), "transpose": bool(transpose)}, name)


@exported
def triangular_solve(
    a: ArrayLike,
    b: ArrayLike,
    lower: bool = True,
    transpose: bool = False,
    *,
    name: str | None = None,
) -> Array:
    """``x`` with ``a @ x = b``, where only one triangle of ``a`` is read.

    Parameters
    ----------
    a : array-like or Tensor
        Matrices ``(..., n, n)``.
    b : array-like or Tensor
        Right-hand sides: matrices ``(..., n, m)``, or one vector ``(n,)``. First axes broadcast.
    lower : bool, default True
        Whether the lower triangle is read, instead of the upper one; only that one has a gradient.
    transpose : bool, default False
        Whether to solve ``a.T @ x = b`` instead; ``a`` is not conjugated.

    Returns
    -------
    Tensor or numpy.ndarray
        ``x``, of shape ``(..., n, m)`` or ``(..., n)``.

    Raises
    ------
    InvalidArgumentError
        For shapes that do not fit together, a zero on the diagonal, and ``b`` of unknown rank.

    Examples
    --------
    >>> nbta.triangular_solve([[2.0, 0.0], [1.0, 1.0]], [2.0, 3.0])
    array([1., 2.])
    """
    a, b = promoted(a, b, floats=True)
    if b.ndim is None:
        raise invalid("rank", "b: its rank must be known, to tell a vector from matrices")
    if b.ndim != 1:
        return _solve(a, b, lower, transpose, name)
    return squeeze(_solve(a, expand_dims(b, 1), lower, transpose, name), -1)


#: SciPy's names for how a matrix is taken: as it is, transposed, conjugated beside.
_FORMS = {0: (False, False), 1: (True, False), 2: (True, True)}
_FORMS |= dict(zip("NTC", _FORMS.values(), strict=True))


@exported(also="scipy.linalg.solve_triangular", numpy=7)
def solve_triangular(
    a: ArrayLike,
    b: ArrayLike,
    trans: Literal[0, 1, 2, "N", "T", "C"] = 0,
    lower: bool = False,
    unit_diagonal: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
    *,
    name: str | None = None,
) -> Array:
    """``x`` with ``a @ x = b`` for triangular ``a``, as ``scipy.linalg.solve_triangular``.

    Parameters
    ----------
    a : array-like or Tensor
        Matrices ``(..., n, n)``, of which one triangle is read.
    b : array-like or Tensor
        Right-hand sides: matrices ``(..., n, m)``, or one vector ``(n,)``.
    trans : {0, 1, 2, "N", "T", "C"}, default 0
        Whether to solve with ``a``, its transpose, or its conjugate transpose.
    lower : bool, default False
        Whether the lower triangle is read, instead of the upper one; only that one has a gradient.
    unit_diagonal : bool, default False
        Whether the diagonal is taken as ones, without being read.
    overwrite_b, check_finite : bool
        Accepted for compatibility with SciPy; nothing is overwritten.

    Returns
    -------
    Tensor or numpy.ndarray
        ``x``, of the shape of ``b``.

    Raises
    ------
    InvalidArgumentError
        For shapes that do not fit together, a zero on the diagonal, and ``b`` of unknown rank.

    Examples
    --------
    >>> nbta.solve_triangular([[1.0, 2.0], [0.0, 4.0]], [4.0, 4.0])
    array([2., 1.])
    """
    if trans not in _FORMS:
        raise invalid("value", f"trans must be 0, 1, 2, 'N', 'T' or 'C', not {trans!r}")
    transpose, conjugated = _FORMS[trans]
    a, b = promoted(a, b, floats=True)
    a = conjugate(a) if conjugated else a
    if unit_diagonal:
        strict = tril(a, -1) if lower else a - tril(a)
        ones = ones_like(a)
        a = strict + (tril(ones) - tril(ones, -1))
    return triangular_solve(a, b, lower, transpose, name=name)
