"""What triangular factors with pivots give: solutions, inverses and determinants.

A matrix is factored once for all that is asked of it. What `LU` forwards counts in gradients as the
matrix itself: rules of those who use the factors give the derivative by the matrix, which is a
solution with the same factors, and `LU` passes it on as it is. So no gradient factors anything
again, or goes through the factors' own derivative.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from nbta.codegen import windows
from nbta.codegen.fusion import spread
from nbta.codegen.values import product, times, total
from nbta.errors import invalid
from nbta.graph.operation import NotDifferentiable, Spec
from nbta.kernels.factors import TRANSPOSED
from nbta.loops import Evaluate, call_at, do, over
from nbta.loops.nodes import ONE, ZERO
from nbta.ops.core.arithmetic import add, imag
from nbta.ops.core.axis_arguments import operand
from nbta.ops.core.dispatch import apply, data_spec, define, exported, stands_for
from nbta.ops.core.elementwise import conjugate, promoted, wide
from nbta.ops.core.filling import ones_like, zeros_like
from nbta.ops.core.shaping import cast, shape, unbroadcast
from nbta.ops.indexing.gathering import one_hot
from nbta.ops.indexing.joining import expand_dims, squeeze
from nbta.ops.indexing.transposing import swapaxes
from nbta.ops.linalg.products import matmul
from nbta.ops.linalg.triangular import (
    address_of,
    batch_of,
    cho_factor,
    cho_solve,
    infer_solve,
    lapack,
    mirrored,
    products,
    repeat,
    solve_triangular,
    square,
    triangular_solve,
    tril,
)

if TYPE_CHECKING:
    from typing import Literal

    from nbta.typing import Array, ArrayLike


def _infer_lu(a):
    spec = square(a)
    return spec, Spec(np.dtype(np.int32), None if spec.shape is None else spec.shape[:-1])


def _evaluate_lu(a):
    from scipy.linalg import get_lapack_funcs  # takes 0.1 s, which most programs need not wait for

    (factor,) = get_lapack_funcs(("getrf",), (a,)) if a.size else (None,)
    found, pivots = a.copy(), np.empty(a.shape[:-1], np.int32)
    for place in np.ndindex(a.shape[:-2] if a.size else (0,)):
        found[place], pivots[place], _ = factor(a[place])
    return found, pivots


def _emit_lu(code, op) -> None:
    """A copy becomes the factors, matrix by matrix."""
    value = code.value(op.inputs[0])
    code.equate(value.dimensions[-1], value.dimensions[-2])
    block = code.result(op, dimensions=value.dimensions)
    pivots = code.result(op, dimensions=value.dimensions[:-1], index=1)
    *outer, _, n = value.dimensions
    i, size = code.name("i"), product((n, n))
    helper = code.helper(f"lu_{block.dtype.name}")
    routines = lapack(code, "getrf", block.dtype), *products(code, block.dtype)
    places = address_of(block, times(i, size)), address_of(pivots, times(i, n))
    whole = product(value.dimensions)
    target, source = ((b.base.name, b.offset) for b in (block, value))
    code.add(do("copy", *target, *source, whole))
    header = over(i, product(outer))
    code.nested([header], Evaluate(call_at(helper, *places, n, *routines)))


LU = define("LU", _infer_lu, _evaluate_lu, lambda op, da, _: [da], emit=_emit_lu)


def _infer_solution(lu, pivots, b, *, transpose):
    return infer_solve(lu, b, lower=False, transpose=transpose)


def _evaluate_solution(lu, pivots, b, *, transpose):
    from scipy.linalg import get_lapack_funcs

    spec = _infer_solution(*(Spec(x.dtype, x.shape) for x in (lu, pivots, b)), transpose=transpose)
    batch, result = spec.shape[:-2], np.empty(spec.shape, b.dtype)
    lu, b = (np.broadcast_to(x, (*batch, *x.shape[-2:])) for x in (lu, b))
    pivots = np.broadcast_to(pivots, (*batch, *pivots.shape[-1:]))
    (solve,) = get_lapack_funcs(("getrs",), (b,)) if result.size else (None,)
    for place in np.ndindex(batch):
        if (np.diagonal(lu[place]) == 0).any():
            where = f"matrix {place}" if place else "the matrix"
            raise invalid("singular", f"{where} is singular, and has no inverse")
        if result.size:
            result[place], _ = solve(lu[place], pivots[place], b[place], int(transpose))
    return result


def _solution_gradient(op, dx):
    """By the matrix in place of its factors, and by the right side."""
    lu, pivots, b = op.inputs
    turned, x = op.attrs["transpose"], op.outputs[0]
    db = solution(conjugate(lu), pivots, dx, not turned)
    left, right = (conjugate(x), db) if turned else (db, conjugate(x))
    da = -matmul(left, swapaxes(right, -1, -2))
    return [unbroadcast(da, lu), None, unbroadcast(db, b)]


def _emit_solution(code, op) -> None:
    """Solutions, matrix by matrix, in a copy of the right sides."""
    a, pivots, b = map(code.value, op.inputs)
    *outer_a, n, _ = a.dimensions
    *outer_b, rows, columns = b.dimensions
    code.equate(n, rows)
    outer = batch_of(code, outer_a, outer_b, op.outputs[0].spec.shape[:-2])
    block = code.result(op, dimensions=(*outer, rows, columns))
    repeat(code, block, b, outer)
    names = [code.name("i") for _ in outer]
    places = [
        address_of(one, total(*map(times, names, steps)))
        for one, steps in (
            (a, spread(code, a.dimensions, len(block.dimensions), (*outer, n, n))),
            (pivots, spread(code, pivots.dimensions, len(outer) + 1, (*outer, n))),
            (block, windows.strides_of(code, block.dimensions)),
        )
    ]
    kind, flags = block.dtype.name, TRANSPOSED * op.attrs["transpose"]
    routines = lapack(code, "trsm", block.dtype, "blas"), *products(code, block.dtype)
    helper = code.helper(f"lu_solve_{kind}")
    solved = call_at(helper, *places, n, columns, flags, *routines)
    around = code.lines
    for name, dimension in zip(names, outer, strict=True):
        code.lines = code.lines.nest(over(name, dimension))
    code.fail_if(solved.differs(0))
    code.lines = around


SOLUTION = define(
    "LUSolve",
    _infer_solution,
    _evaluate_solution,
    _solution_gradient,
    emit=_emit_solution,
    spreads=lambda op, place: place == 2,
)


def solution(lu, pivots, b, transpose=False, name=None):
    """With what `LU` gives, and matrices on the right."""
    return apply(SOLUTION, [lu, pivots, b], {"transpose": bool(transpose)}, name)


def _swaps(pivots):
    """Minus ones for matrices with an odd number of swapped rows."""
    moved = pivots != np.arange(pivots.shape[-1])
    return np.where(np.count_nonzero(moved, -1) % 2, -1, 1)


def _evaluate_det(lu, pivots):
    found = np.prod(np.diagonal(lu, axis1=-2, axis2=-1), -1) * _swaps(pivots)
    return found.astype(lu.dtype)


def _inverse_of(lu, pivots):
    """The conjugate transpose of the inverse, which is the derivative of the logarithm."""
    return solution(conjugate(lu), pivots, _eye(lu), True)


def _as_matrices(scalars):
    return expand_dims(scalars, (-2, -1))


def _det_gradient(op, dy):
    factor = _as_matrices(dy * conjugate(op.outputs[0]))
    return [factor * _inverse_of(*op.inputs), None]


def _emit_det(code, op) -> None:
    _each(code, op, "det", op.outputs)


def _each(code, op, routine, results):
    """A call for each matrix, which puts down one number for each result."""
    lu, pivots = map(code.value, op.inputs)
    *outer, _, n = lu.dimensions
    targets = [
        code.result(op, dimensions=tuple(outer), index=k) if outer else code.new(r.dtype, (ONE,))
        for k, r in enumerate(results)
    ]
    i = code.name("i") if outer else ZERO
    parts = [(lu, times(i, product((n, n)))), (pivots, times(i, n)), *((t, i) for t in targets)]
    places = [address_of(*part) for part in parts]
    helper = code.helper(f"{routine}_{lu.dtype.name}")
    headers = [over(i, product(outer))] if outer else []
    code.nested(headers, Evaluate(call_at(helper, *places, n)))
    for target, result in zip(targets, results, strict=True):
        if not outer:
            code.bind(result, code.local(target.at(0), target.dtype))


DET = define(
    "Det",
    lambda lu, pivots: Spec(lu.dtype, None if lu.shape is None else lu.shape[:-2]),
    _evaluate_det,
    _det_gradient,
    emit=_emit_det,
)


def _real(dtype):
    return np.empty(0, dtype).real.dtype


def _infer_slogdet(lu, pivots):
    batch = None if lu.shape is None else lu.shape[:-2]
    return Spec(lu.dtype, batch), Spec(_real(lu.dtype), batch)


def _evaluate_slogdet(lu, pivots):
    with np.errstate(all="ignore"):
        values = np.diagonal(lu, axis1=-2, axis2=-1)
        sizes = np.abs(values)
        signs = np.where(sizes == 0, 0, values / np.where(sizes == 0, 1, sizes))
        sign = (np.prod(signs, -1) * _swaps(pivots)).astype(lu.dtype)
        return sign, np.sum(np.log(sizes), -1, dtype=sizes.dtype)


def _slogdet_gradient(op, dsign, dlog):
    """Of a complex determinant the sign turns with it, too."""
    parts = [] if dlog is None else [cast(dlog, op.inputs[0].dtype)]
    if dsign is not None and dsign.dtype.kind == "c":
        parts.append(cast(imag(dsign * conjugate(op.outputs[0])), dsign.dtype) * 1j)
    if not parts:
        return [None, None]
    factor = _as_matrices(parts[0] if len(parts) == 1 else add(*parts))
    return [factor * _inverse_of(*op.inputs), None]


def _emit_slogdet(code, op) -> None:
    _each(code, op, "slogdet", op.outputs)


SLOGDET = define(
    "SLogDet", _infer_slogdet, _evaluate_slogdet, _slogdet_gradient, emit=_emit_slogdet
)


def _evaluate_permutation(pivots):
    count = pivots.shape[-1]
    found = np.empty(pivots.shape, np.int64)
    found[...] = np.arange(count)
    for place in np.ndindex(pivots.shape[:-1]):
        for k in range(count):
            both = [k, pivots[place][k]]
            found[place][both] = found[place][both[::-1]]
    return found


def _emit_permutation(code, op) -> None:
    value = code.value(op.inputs[0])
    block = code.result(op, dimensions=value.dimensions)
    *outer, n = value.dimensions
    i = code.name("i")
    places = address_of(value, times(i, n)), address_of(block, times(i, n))
    permuted = call_at(code.helper("permutation"), *places, n)
    code.nested([over(i, product(outer))], Evaluate(permuted))


PERMUTATION = define(
    "Permutation",
    lambda pivots: Spec(np.dtype(np.int64), pivots.shape),
    _evaluate_permutation,
    NotDifferentiable("its result is an integer"),
    emit=_emit_permutation,
)


def _packed_gradient(op, dy):
    """By the factors themselves (M. Seeger et al., "Auto-differentiating linear algebra", 2017)."""
    both = op.outputs[0]
    lower, upper = conjugate(_lower(both)), conjugate(_upper(both))
    inner = tril(matmul(swapaxes(lower, -1, -2), tril(dy, -1)), -1)
    inner = inner + _upper(matmul(_upper(dy), swapaxes(upper, -1, -2)))
    left = triangular_solve(lower, inner, transpose=True)
    right = triangular_solve(upper, swapaxes(left, -1, -2), lower=False)
    return [matmul(_moved(op.inputs[1], both.dtype), swapaxes(right, -1, -2)), None]


PACKED = define(
    "LUPacked",
    lambda lu, pivots: Spec(lu.dtype, lu.shape),
    lambda lu, pivots: lu,
    _packed_gradient,
    emit=lambda code, op: code.bind(op.outputs[0], code.kept(op.inputs[0])),
)


def _lower(both):
    return tril(both, -1) + _eye(both)


def _upper(both):
    return both - tril(both, -1)


def _moved(pivots, dtype):
    """The matrix ``p`` of ``a = p @ l @ u``."""
    order = apply(PERMUTATION, [pivots])
    return swapaxes(one_hot(order, shape(pivots)[-1], dtype), -1, -2)


def _eye(a):
    """One identity matrix of the order of matrices."""
    dimensions = data_spec(a).shape
    if dimensions is not None and type(dimensions[-1]) is int:
        return np.eye(dimensions[-1], dtype=a.dtype)
    ones = ones_like(a)
    return tril(ones) - tril(ones, -1)


def eye_like(a, name=None):
    """Identity matrices in the place of square ones, whose order Python must know."""
    square(Spec(a.dtype, tuple(map(operator.index, a.shape))))
    return add(zeros_like(a), np.eye(operator.index(a.shape[-1]), dtype=a.dtype), name=name)


def factored(a):
    """What `LU` gives of matrices of floats."""
    return apply(LU, [a])


def _system(*given):
    """Operands in a dtype that LAPACK has, and the dtype of the result."""
    given = promoted(*given, floats=True)
    dtype = given[0].dtype
    return [cast(x, wide(dtype)) for x in given] if wide(dtype) != dtype else given, dtype


def _solved(a, b, transpose=False, name=None):
    (a, b), dtype = _system(a, b)
    if b.ndim is None:
        raise invalid("rank", "b: its rank must be known, to tell a vector from matrices")
    right = expand_dims(b, 1) if b.ndim == 1 else b
    found = solution(*factored(a), right, transpose)
    found = squeeze(found, -1) if b.ndim == 1 else found
    return cast(found, dtype, name=name)


@exported(also="linalg.solve", numpy=2)
def solve(a: ArrayLike, b: ArrayLike, *, name: str | None = None) -> Array:
    """``x`` with ``a @ x = b``, by LU factors with pivots, as `numpy.linalg.solve`.

    Parameters
    ----------
    a : array-like or Tensor
        Matrices ``(..., n, n)``.
    b : array-like or Tensor
        Right-hand sides: matrices ``(..., n, m)``, or one vector ``(n,)``. First axes broadcast.

    Returns
    -------
    Tensor or numpy.ndarray
        ``x``, of shape ``(..., n, m)`` or ``(..., n)``.

    Raises
    ------
    InvalidArgumentError
        For shapes that do not fit together, a singular matrix, and ``b`` of unknown rank.

    See Also
    --------
    triangular_solve, cho_solve : Where ``a`` is a triangle, or positive definite.

    Examples
    --------
    >>> nbta.solve([[3.0, 1.0], [1.0, 2.0]], [9.0, 8.0])
    array([2., 3.])
    """
    return _solved(a, b, name=name)


#: SciPy's names of structures, and what each is here.
_STRUCTURES = {
    None: "general", "gen": "general", "general": "general", "sym": "symmetric",
    "symmetric": "symmetric", "her": "hermitian", "hermitian": "hermitian", "pos": "positive",
    "positive definite": "positive", "diagonal": "diagonal", "tridiagonal": "tridiagonal",
    "upper triangular": "upper", "lower triangular": "lower",
}  # fmt: skip


def _structured(what, a, assume_a, lower):
    """Matrices as SciPy reads them for a structure: one triangle, or some diagonals; and which."""
    if assume_a not in _STRUCTURES:
        known = ", ".join(repr(one) for one in _STRUCTURES if one)
        message = f"scipy.linalg.{what}: assume_a={assume_a!r}; give one of {known}"
        raise invalid("value", message)
    a, structure = operand(a), _STRUCTURES[assume_a]
    if structure in ("hermitian", "positive"):
        return mirrored(a, not lower), structure
    if structure == "symmetric":
        strict = tril(a, -1) if lower else a - tril(a)
        return strict + swapaxes(strict, -1, -2) + (tril(a) - tril(a, -1)), structure
    if structure in ("diagonal", "tridiagonal"):
        width = int(structure == "tridiagonal")
        return tril(a, width) - tril(a, -width - 1), structure
    return a, structure


@stands_for("scipy.linalg.solve", numpy=2)
def _scipy_solve(
    a, b, lower=False, overwrite_a=False, overwrite_b=False, check_finite=True, assume_a=None,
    transposed=False,
):  # fmt: skip
    """SciPy's; what it reads of a matrix of some structure has the gradient."""
    a, structure = _structured("solve", a, assume_a, lower)
    if structure in ("upper", "lower"):
        return solve_triangular(a, b, trans=int(transposed), lower=structure == "lower")
    if structure == "positive":
        return cho_solve(cho_factor(conjugate(a) if transposed else a), b)
    return _solved(a, b, transposed)


@exported(also="linalg.inv", numpy=1)
def inv(a: ArrayLike, *, name: str | None = None) -> Array:
    """Inverse of matrices, as `numpy.linalg.inv`.

    Parameters
    ----------
    a : array-like or Tensor
        Matrices ``(..., n, n)``.

    Returns
    -------
    Tensor or numpy.ndarray
        Of the shape of ``a``; float64 for integers.

    Raises
    ------
    InvalidArgumentError
        For a matrix that is not square, or is singular.

    Examples
    --------
    >>> nbta.inv([[2.0, 0.0], [1.0, 1.0]])
    array([[ 0.5,  0. ],
           [-0.5,  1. ]])
    """
    (a,), dtype = _system(a)
    square(data_spec(a))
    return cast(solution(*factored(a), _eye(a)), dtype, name=name)


@stands_for("scipy.linalg.inv", numpy=1)
def _scipy_inv(a, overwrite_a=False, check_finite=True, assume_a=None, lower=False):
    a, structure = _structured("inv", a, assume_a, lower)
    if structure in ("upper", "lower"):
        a = tril(a) if structure == "lower" else a - tril(a, -1)
    return inv(a)


@exported(also=("linalg.det", "scipy.linalg.det"), numpy=1)
def det(
    a: ArrayLike,
    overwrite_a: bool = False,
    check_finite: bool = True,
    *,
    name: str | None = None,
) -> Array:
    """Determinant of matrices, as `numpy.linalg.det`.

    Parameters
    ----------
    a : array-like or Tensor
        Matrices ``(..., n, n)``.
    overwrite_a, check_finite : bool
        Accepted for compatibility with SciPy; nothing is overwritten.

    Returns
    -------
    Tensor or numpy.ndarray
        Of shape ``(...)``; float64 for integers.

    Raises
    ------
    InvalidArgumentError
        For a matrix that is not square. From the gradient, which is the determinant times the
        inverse, for a singular matrix.

    Examples
    --------
    >>> nbta.det([[2.0, 1.0], [1.0, 3.0]])
    np.float64(5.0)
    """
    (a,), dtype = _system(a)
    return cast(apply(DET, factored(a)), dtype, name=name)


class SlogdetResult(NamedTuple):
    """What `slogdet` gives."""

    sign: Any
    logabsdet: Any


@exported(also="linalg.slogdet", numpy=1)
def slogdet(a: ArrayLike, *, name: str | None = None) -> tuple[Array, Array]:
    """Signs of determinants, and the logarithms of their sizes.

    Parameters
    ----------
    a : array-like or Tensor
        Of shape ``(..., n, n)``.

    Returns
    -------
    sign : Tensor or numpy.ndarray
        Of real matrices -1, 0 or 1; of complex ones a number on the unit circle, or 0.
    logabsdet : Tensor or numpy.ndarray
        Minus infinity for a singular matrix.

    Raises
    ------
    InvalidArgumentError
        For a matrix that is not square; and from the gradient, which is the inverse, for a
        singular one.

    Examples
    --------
    >>> sign, logabsdet = nbta.slogdet([[2.0, 1.0], [1.0, 3.0]])
    >>> float(sign), round(float(np.exp(logabsdet)), 12)
    (1.0, 5.0)
    """
    (a,), dtype = _system(a)
    sign, logarithm = apply(SLOGDET, factored(a), name=name)
    return SlogdetResult(cast(sign, dtype), cast(logarithm, _real(dtype)))


@exported(also="scipy.linalg.lu_factor", numpy=3)
def lu_factor(
    a: ArrayLike,
    overwrite_a: bool = False,
    check_finite: bool = True,
    *,
    name: str | None = None,
) -> tuple[Array, Array]:
    """What `lu_solve` takes: triangular factors, and with which row each was swapped.

    Parameters
    ----------
    a : array-like or Tensor
        Of shape ``(..., n, n)``.
    overwrite_a, check_finite : bool
        As SciPy has them; nothing is overwritten.

    Returns
    -------
    lu : Tensor or numpy.ndarray
        The upper factor, and below its diagonal the lower one, whose diagonal is ones.
    pivots : Tensor or numpy.ndarray
        Of int32 and shape ``(..., n)``.

    Raises
    ------
    InvalidArgumentError
        For a matrix that is not square; and from the gradient, for a singular one.

    Examples
    --------
    >>> nbta.lu_factor([[1.0, 2.0], [2.0, 2.0]])
    (array([[2. , 2. ],
           [0.5, 1. ]]), array([1, 1], dtype=int32))
    """
    (a,), dtype = _system(a)
    found, pivots = factored(a)
    return cast(apply(PACKED, [found, pivots]), dtype, name=name), pivots


@exported(also="scipy.linalg.lu_solve", numpy=3)
def lu_solve(
    lu_and_piv: tuple[ArrayLike, ArrayLike],
    b: ArrayLike,
    trans: Literal[0, 1, 2] = 0,
    overwrite_b: bool = False,
    check_finite: bool = True,
    *,
    name: str | None = None,
) -> Array:
    """``x`` with ``a @ x = b``, from the factors of ``a``, as ``scipy.linalg.lu_solve``.

    Parameters
    ----------
    lu_and_piv : tuple
        The result of `lu_factor`: factors and pivots.
    b : array-like or Tensor
        Right-hand sides: matrices ``(..., n, m)``, or one vector ``(n,)``.
    trans : {0, 1, 2}, default 0
        Whether to solve with ``a``, its transpose, or its conjugate transpose.
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
    >>> nbta.lu_solve(nbta.lu_factor([[3.0, 1.0], [1.0, 2.0]]), [9.0, 8.0])
    array([2., 3.])
    """
    if trans not in (0, 1, 2):
        raise invalid("value", f"trans must be 0, 1 or 2, not {trans!r}")
    both, pivots = lu_and_piv
    both, b = promoted(both, b, floats=True)
    rows = _moved(operand(pivots), both.dtype)
    right, both = (expand_dims(b, 1) if b.ndim == 1 else b), conjugate(both) if trans == 2 else both
    if trans == 0:
        found = triangular_solve(_lower(both), matmul(swapaxes(rows, -1, -2), right))
        found = triangular_solve(both, found, lower=False)
    else:
        found = triangular_solve(both, right, lower=False, transpose=True)
        found = matmul(rows, triangular_solve(_lower(both), found, transpose=True))
    return squeeze(found, -1, name=name) if b.ndim == 1 else found


@exported(also="scipy.linalg.lu", numpy=1)
def lu(a: ArrayLike, *, name: str | None = None) -> tuple[Array, Array, Array]:
    """Factors ``p``, ``l`` and ``u`` of square matrices: ``a = p @ l @ u``.

    Parameters
    ----------
    a : array-like or Tensor
        Of shape ``(..., n, n)``.

    Returns
    -------
    tuple of Tensor or numpy.ndarray
        ``p``, a permutation; ``l``, a lower triangle with ones on its diagonal; and ``u``, an
        upper one.

    Raises
    ------
    InvalidArgumentError
        For a matrix that is not square; and from the gradient, for a singular one.

    Examples
    --------
    >>> nbta.lu([[1.0, 2.0], [2.0, 2.0]])[2]
    array([[2., 2.],
           [0., 1.]])
    """
    both, pivots = lu_factor(a)
    return _moved(pivots, _real(both.dtype)), _lower(both), add(_upper(both), 0, name=name)
