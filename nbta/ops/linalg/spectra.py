"""Eigenvalues, singular values, orthogonal columns and exponentials of matrices, by LAPACK.

Gradients of vectors divide by the differences of values: where values repeat, but for rounding
errors, they are infinite or NaN, as the vectors are any of a space there. Gradients of values alone
do not, but their second derivatives do. Values of which nobody uses the vectors may repeat or
nearly so.
"""

from __future__ import annotations

import numbers
import operator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from nbta.codegen.values import is_known, product, times, total
from nbta.errors import invalid
from nbta.graph.graph import mark_adjoints
from nbta.graph.operation import Spec, Tensor
from nbta.kernels.factors import VECTORS
from nbta.loops import Constant, call, call_at, over
from nbta.loops.nodes import ZERO
from nbta.ops.axes.places import take_along_axis
from nbta.ops.axes.reductions import sum as sum_
from nbta.ops.axes.sorting import argsort
from nbta.ops.axes.truths import count_nonzero
from nbta.ops.core.arithmetic import (
    add,
    add_n,
    divide,
    greater,
    less,
    less_equal,
    logical_and,
    maximum,
    multiply,
    negative,
    real,
    subtract,
    where,
)
from nbta.ops.core.axis_arguments import operand
from nbta.ops.core.dispatch import apply, data_spec, define, exported, stands_for
from nbta.ops.core.elementwise import conjugate, promoted, wide, without_gradient
from nbta.ops.core.filling import ones_like, zeros_like
from nbta.ops.core.numpy_arguments import check_choice
from nbta.ops.core.shaping import cast, shape_of, stop_gradient
from nbta.ops.elementary.basic import abs as abs_
from nbta.ops.elementary.basic import sign
from nbta.ops.indexing.items import getitem
from nbta.ops.indexing.joining import concatenate, expand_dims, flip, pad, squeeze
from nbta.ops.indexing.transposing import swapaxes
from nbta.ops.linalg.products import matmul
from nbta.ops.linalg.triangular import (
    address_of,
    cholesky,
    infer_tril,
    lapack,
    mirrored,
    square,
    triangular_solve,
    tril,
)

if TYPE_CHECKING:
    from typing import Literal

    from nbta.typing import Array, ArrayLike


def _real(dtype):
    return np.empty(0, dtype).real.dtype


def _matrices(a):
    """Matrices in a dtype that LAPACK has, and the dtype of the result."""
    (a,) = promoted(a, floats=True)
    dtype = a.dtype
    infer_tril(data_spec(a), k=0)
    return (a if wide(dtype) == dtype else cast(a, wide(dtype))), dtype


def _lengths(a):
    """Rows and columns, which Python must know."""
    return tuple(operator.index(dimension) for dimension in a.shape[-2:])


def _adjoint(x):
    return conjugate(swapaxes(x, -1, -2))


def _as_rows(values):
    """Values as a factor of columns of matrices."""
    return expand_dims(values, -2)


def _refuse_turning(dtype, what):
    """Refuse the gradient by vectors that are each free to be turned."""
    if dtype.kind == "c":
        message = (
            f"{what} of complex matrices have no gradient, as each is unique only up to a factor "
            "of modulus 1; use the values, or a function of the matrix that needs no such vectors"
        )
        raise invalid("turned", message)


def _by_place(a, results, function):
    """Fill results, matrix by matrix."""
    for place in np.ndindex(a.shape[:-2]):
        for result, one in zip(results, function(a[place]), strict=True):
            result[place] = one
    return results


def _converged(what, status):
    if status:
        message = f"{what} were not found; look for NaN and infinities in the matrix"
        raise invalid("converge", message)


def _count(code, terms, **lengths):
    """A polynomial of lengths: factors by the letters of the lengths."""
    parts = [product([Constant(c), *(lengths[one] for one in key)]) for key, c in terms.items()]
    if all(map(is_known, parts)):
        return Constant(sum(part.value for part in parts))
    return code.derived(total(*parts))


def _least(code, one, other):
    if one == other:
        return one
    if is_known(one) and is_known(other):
        return Constant(min(one.value, other.value))
    return code.derived(call("min", one, other))


def _for_each(code, a, arrays, routine, rest):
    """Call a helper for each matrix, with arrays by their blocks and lengths within."""
    i = code.name("i")
    places = [address_of(block, times(i, product(lengths))) for block, lengths in arrays]
    called = call_at(code.helper(f"{routine}_{a.dtype.name}"), *places, *rest)
    with code.nest(over(i, product(a.dimensions[:-2]))):
        code.fail_if(called.differs(0))


def _work(code, dtype, count):
    """The address of room for so many items."""
    return code.new(dtype, (count,)).address


# Eigenvalues.


def _infer_eigh(a, *, invariant=False):
    spec = square(a)
    return Spec(_real(a.dtype), None if spec.shape is None else spec.shape[:-1]), spec


def _evaluate_eigh(a, *, invariant=False):
    from scipy.linalg import get_lapack_funcs  # takes 0.1 s, which most programs need not wait for

    name = "heevd" if a.dtype.kind == "c" else "syevd"
    results = np.empty(a.shape[:-1], _real(a.dtype)), np.empty_like(a)
    if not a.size:
        return results
    (find,) = get_lapack_funcs((name,), (a,))

    def one(a):
        w, v, status = find((a + a.conj().T) / 2, lower=1)
        _converged("eigenvalues", status)
        return w, v

    return _by_place(a, results, one)


#: Differences of values up to so many roundings of their sum count as none. One of LAPACK's values
#: has an error of one or a few, so that a quotient by a greater difference is right to some percent
#: at least.
_ROUNDED = 64


def _inverse_differences(values, apart=False):
    """Of each two of some values, with zeros for each and itself.

    ``apart``: infinite for differences that may be rounding errors of LAPACK's, as for none. What
    is computed by quotients of rounding errors would be wrong without a sign of it.
    """
    gaps = subtract(_as_rows(values), expand_dims(values, -1))
    unit = _unit(values)
    if apart:
        share = _ROUNDED * float(np.finfo(values.dtype).eps)
        bound = multiply(sum_(abs_(values), -1, keepdims=True), share)
        gaps = where(less_equal(abs_(gaps), expand_dims(bound, -1)), zeros_like(gaps), gaps)
    return subtract(divide(1.0, add(gaps, unit)), unit)


def _unit(values):
    """The identity of the order of some values."""
    ones = ones_like(multiply(expand_dims(values, -1), expand_dims(values, -2)))
    return subtract(tril(ones), tril(ones, -1))


def _hermitian(x):
    return (x + _adjoint(x)) / 2


def _products(columns, others):
    """Products of each two columns in the same place."""
    return sum_(multiply(conjugate(columns), others), -2)


def _define_derived(name, gradient, **traits):
    """The record of a value, the last input, whose derivative the other inputs say."""
    return define(
        name,
        lambda *specs, **attrs: specs[-1],
        lambda *values, **attrs: values[-1],
        gradient,
        emit=lambda code, op: code.bind(op.outputs[0], code.value(op.inputs[-1])),
        **traits,
    )


def _resolved(a, w, v, right, apart=False):
    """Columns orthogonal to the vectors: ``(w[k] - a) z[k] = c[k] - v[k] v[k]^H c[k]``.

    These are the reduced resolvents of the values (T. Kato, "Perturbation theory for linear
    operators", 1966). A vector turns by that of the change of the matrix times the vector.
    """
    w_, v_ = stop_gradient(w), stop_gradient(v)
    inner = matmul(_adjoint(v_), stop_gradient(right))
    inner = multiply(inner, cast(_inverse_differences(w_, apart), v.dtype))
    return apply(RESOLVED, [a, w, v, right, matmul(v_, inner)])


def _resolved_gradient(op, dz):
    """By the equation, in which a column depends on its own value and vector alone.

    The derivative of the quotients has the turns of all vectors, which are as large as other values
    are near to each other, and cancel in exact numbers only.
    """
    (a, w, v, right, _), z = op.inputs, op.outputs[0]
    mark_adjoints([right, z])  # a column that nobody uses is zero
    y = _resolved(a, w, v, dz)
    by_v = add(
        multiply(y, conjugate(_as_rows(_products(v, right)))),
        multiply(z, conjugate(_as_rows(_products(v, dz)))),
    )
    by_w = negative(real(_products(y, z)))
    return [_hermitian(matmul(y, _adjoint(z))), by_w, negative(by_v), y, None]


RESOLVED = _define_derived("ReducedResolvent", _resolved_gradient)


def _by_values(a, w, v, dw):
    """The gradient at matrices whose eigenvalues have adjoints."""
    v_ = stop_gradient(v)
    found = _hermitian(matmul(_scaled(v_, stop_gradient(dw)), _adjoint(v_)))
    return apply(BY_VALUES, [a, w, v, dw, found])


def _along_values(a, w, v, change):
    """Tangents of eigenvalues along a change of matrices, which is Hermitian."""
    v_ = stop_gradient(v)
    found = real(_products(v_, matmul(stop_gradient(change), v_)))
    return apply(ALONG_VALUES, [a, w, v, change, found])


def _second_by_values(a, w, v, dw, change):
    """The derivative of `_by_values` along a change of matrices.

    By quotients of differences of the adjoints, so that those of equal adjoints are zero, whatever
    the values are; the derivative of that by resolvents.
    """
    turned = matmul(change, v)
    inner = _hermitian(matmul(_adjoint(v), turned))
    inner = multiply(inner, cast(subtract(_as_rows(dw), expand_dims(dw, -1)), v.dtype))
    inner = multiply(inner, cast(_inverse_differences(w, apart=True), v.dtype))
    found = matmul(v, matmul(inner, _adjoint(v)))
    half = matmul(_resolved(a, w, v, _scaled(turned, dw)), _adjoint(v))
    whole = add(half, _adjoint(half))
    return add(whole, stop_gradient(subtract(found, whole)))


def _by_values_gradient(op, dg):
    a, w, v, dw, _ = op.inputs
    mark_adjoints([dw])
    change = _hermitian(dg)
    by_a = _second_by_values(a, w, v, dw, change)
    return [by_a, None, None, _along_values(a, w, v, change), None]


def _by_values_tangent(op, da, dw, dv, change, dg):
    a, w, v, adjoints, _ = op.inputs
    mark_adjoints([adjoints])
    terms = [] if change is None else [_by_values(a, w, v, change)]
    if da is not None:
        terms.append(_second_by_values(a, w, v, adjoints, _hermitian(da)))
    return [add_n(terms) if terms else None]


BY_VALUES = _define_derived("ByEigenvalues", _by_values_gradient, tangent=_by_values_tangent)


def _along_values_gradient(op, dt):
    a, w, v, change, _ = op.inputs
    return [_second_by_values(a, w, v, dt, change), None, None, _by_values(a, w, v, dt), None]


ALONG_VALUES = _define_derived("AlongEigenvalues", _along_values_gradient)


def _eigh_gradient(op, dw, dv):
    (w, v), a, terms = op.outputs, op.inputs[0], []
    if v.dtype.kind == "c" and dv is None:
        # What comes of these vectors is the same however each of them is turned.
        w, v = apply(EIGH, op.inputs, {"invariant": True})
    if dv is not None:
        if not op.attrs.get("invariant"):
            _refuse_turning(v.dtype, "eigenvectors")
        terms.append(_hermitian(matmul(_resolved(a, w, v, dv, apart=True), _adjoint(v))))
    if dw is not None:
        terms.append(_by_values(a, w, v, dw))
    return [add_n(terms) if terms else None]


def _emit_eigh(code, op) -> None:
    """Values and, where somebody needs them, vectors, matrix by matrix."""
    a, (values, vectors) = code.value(op.inputs[0]), op.outputs
    code.equate(a.dimensions[-1], a.dimensions[-2])
    n, kind, is_complex = a.dimensions[-1], a.dtype, a.dtype.kind == "c"
    w = code.result(op, dimensions=a.dimensions[:-1])
    v = code.result(op, dimensions=a.dimensions, index=1)
    length = _count(code, {"": 1, "n": 6, "nn": 2}, n=n)
    more = _work(code, values.dtype, length) if is_complex else ZERO
    whole = _work(code, np.int32, _count(code, {"": 3, "n": 5}, n=n))
    routine = lapack(code, "heevd" if is_complex else "syevd", kind)
    flags = VECTORS * bool(code.uses(vectors))
    rest = [n, flags, _work(code, kind, length), length, more, length, whole, routine]
    _for_each(code, a, [(a, (n, n)), (w, (n,)), (v, (n, n))], "eigh", rest)


EIGH = define("Eigh", _infer_eigh, _evaluate_eigh, _eigh_gradient, emit=_emit_eigh)


class EighResult(NamedTuple):
    """What `eigh` gives."""

    eigenvalues: Any
    eigenvectors: Any


def _by_triangle(a, triangle):
    """As a function reads matrices, that may be told which triangle to read."""
    if triangle is None:
        return a
    if str(triangle).upper() not in ("L", "U"):
        raise invalid("value", f"UPLO: {triangle!r} names no triangle; give 'L' or 'U'")
    return mirrored(a, str(triangle).upper() == "U")


@exported
def eigh(
    a: ArrayLike,
    UPLO: Literal["L", "U"] | None = None,  # noqa: N803 - NumPy's name
    *,
    name: str | None = None,
) -> tuple[Array, Array]:
    """Eigenvalues and eigenvectors of symmetric or Hermitian matrices.

    Parameters
    ----------
    a : array-like or Tensor
        Of shape ``(..., n, n)``. What is taken is its mean with its conjugate transpose, and so the
        gradient is symmetric.
    UPLO : {"L", "U"}, optional
        To read the lower or the upper triangle alone, which then has the gradient.

    Returns
    -------
    eigenvalues : Tensor or numpy.ndarray
        Of shape ``(..., n)``, from the least.
    eigenvectors : Tensor or numpy.ndarray
        In columns. Their gradient is infinite or NaN where eigenvalues repeat, and refused for
        complex matrices.

    Raises
    ------
    InvalidArgumentError
        For a matrix that is not square, another ``UPLO``, and where LAPACK finds none.

    Examples
    --------
    >>> nbta.eigh([[2.0, 0.0], [0.0, 1.0]])[0]
    array([1., 2.])
    """
    a, dtype = _matrices(a)
    w, v = apply(EIGH, [_by_triangle(a, UPLO)], name=name)
    return EighResult(cast(w, _real(dtype)), cast(v, dtype))


@exported
def eigvalsh(
    a: ArrayLike,
    UPLO: Literal["L", "U"] | None = None,  # noqa: N803 - NumPy's name
    *,
    name: str | None = None,
) -> Array:
    """Eigenvalues of symmetric or Hermitian matrices, as `numpy.linalg.eigvalsh`.

    Parameters
    ----------
    a, UPLO
        As for `nbta.eigh`.

    Returns
    -------
    Tensor or numpy.ndarray
        Real numbers in ascending order, of shape ``(..., n)``.

    Raises
    ------
    InvalidArgumentError
        For a matrix that is not square, for another ``UPLO``, and if LAPACK finds no eigenvalues.

    Examples
    --------
    >>> nbta.eigvalsh([[2.0, 0.0], [0.0, 1.0]])
    array([1., 2.])
    """
    return eigh(a, UPLO, name=name)[0]


@stands_for("linalg.eigh", numpy=2)
def _numpys_eigh(a, UPLO="L"):  # noqa: N803 - NumPy's name
    """NumPy's, which reads one triangle, and no more."""
    return eigh(a, UPLO)


@stands_for("linalg.eigvalsh", numpy=2)
def _numpys_eigvalsh(a, UPLO="L"):  # noqa: N803 - NumPy's name
    return eigvalsh(a, UPLO)


def _generalised(a, b, kind, lower):
    """Values and vectors of two matrices by the factor of the second, which is definite.

    As LAPACK's hegv: of ``a v = w b v``, ``a b v = w v`` or ``b a v = w v``.
    """
    if kind not in (1, 2, 3):
        raise invalid("value", f"scipy.linalg.eigh: type must be 1, 2 or 3, not {kind!r}")
    a, b = promoted(a, b, floats=True)
    (a, dtype), (b, _) = _matrices(a), _matrices(b)
    a, b = mirrored(a, not lower), mirrored(b, not lower)
    factor = cholesky(b)
    turned = conjugate(factor)
    if kind == 1:
        half = triangular_solve(factor, a)
        inner = _adjoint(triangular_solve(factor, _adjoint(half)))
        w, v = apply(EIGH, [inner])
        v = triangular_solve(turned, v, transpose=True)
    else:
        w, v = apply(EIGH, [matmul(_adjoint(factor), matmul(a, factor))])
        v = triangular_solve(turned, v, transpose=True) if kind == 2 else matmul(factor, v)
    return cast(w, _real(dtype)), cast(v, dtype)


@stands_for("scipy.linalg.eigh", numpy=2)
def _scipy_eigh(
    a, b=None, *, lower=True, eigvals_only=False, overwrite_a=False, overwrite_b=False, type=1,
    check_finite=True, subset_by_index=None, subset_by_value=None, driver=None,
):  # fmt: skip
    """SciPy's, of one matrix or two."""
    if subset_by_index is not None or subset_by_value is not None:
        message = (
            "scipy.linalg.eigh: subset_by_index and subset_by_value: take a part of the result"
        )
        raise invalid("value", message)
    drivers = ("ev", "evd", "evr", "evx") if b is None else ("gv", "gvd", "gvx")
    check_choice("scipy.linalg.eigh", "driver", driver, (None, *drivers))
    if b is None:
        w, v = eigh(a, "L" if lower else "U")
    else:
        w, v = _generalised(a, b, type, lower)
    return w if eigvals_only else (w, v)


@stands_for("scipy.linalg.eigvalsh", numpy=2)
def _scipy_eigvalsh(
    a, b=None, *, lower=True, overwrite_a=False, overwrite_b=False, type=1, check_finite=True,
    subset_by_index=None, subset_by_value=None, driver=None,
):  # fmt: skip
    return _scipy_eigh(
        a, b, lower=lower, eigvals_only=True, type=type, subset_by_index=subset_by_index,
        subset_by_value=subset_by_value, driver=driver,
    )  # fmt: skip


# Singular values.


def _infer_svd(a):
    infer_tril(a, k=0)
    if a.shape is None:
        return (Spec(a.dtype, None), Spec(_real(a.dtype), None), Spec(a.dtype, None))
    *outer, m, n = a.shape
    k = min(m, n) if type(m) is type(n) is int else m if m == n and m is not None else None
    return (
        Spec(a.dtype, (*outer, m, k)), Spec(_real(a.dtype), (*outer, k)),
        Spec(a.dtype, (*outer, k, n)),
    )  # fmt: skip


def _evaluate_svd(a):
    from scipy.linalg import get_lapack_funcs

    specs = _infer_svd(Spec(a.dtype, a.shape))
    results = tuple(np.empty(spec.shape, spec.dtype) for spec in specs)
    if not a.size:
        return results
    (find,) = get_lapack_funcs(("gesdd",), (a,))

    def one(a):
        *found, status = find(a, full_matrices=0)
        _converged("singular values", status)
        return found

    return _by_place(a, results, one)


def _inverse_sums(values):
    """Of each two of some values, with zeros for each and itself."""
    unit = _unit(values)
    sums = add(add(expand_dims(values, -1), _as_rows(values)), unit)
    return divide(subtract(1.0, unit), sums)


def _halves(u, both):
    """The rows for the left vectors, and those for the right ones."""
    m = shape_of(u)[-2]
    return getitem(both, (..., slice(None, m), slice(None))), getitem(
        both, (..., slice(m, None), slice(None))
    )


def _resolved_pairs(a, u, s, v, right, apart=False):
    """`_resolved` of ``[[0, a], [a^T, 0]]``, whose values are ``s`` and whose vectors pairs.

    Of columns for left vectors above columns for right vectors, orthogonal to either vector of the
    pair.
    """
    u_, s_, v_ = stop_gradient(u), stop_gradient(s), swapaxes(stop_gradient(v), -1, -2)
    above, below = _halves(u_, stop_gradient(right))
    p, q = matmul(_adjoint(u_), above), matmul(_adjoint(v_), below)
    near = multiply((p + q) / 2, _inverse_differences(s_, apart))
    far = multiply((p - q) / 2, _inverse_sums(s_))
    rows = _as_rows(s_)
    above = add(matmul(u_, add(near, far)), divide(subtract(above, matmul(u_, p)), rows))
    below = add(matmul(v_, subtract(near, far)), divide(subtract(below, matmul(v_, q)), rows))
    return apply(RESOLVED_PAIRS, [a, u, s, v, right, concatenate([above, below], -2)])


def _resolved_pairs_gradient(op, dz):
    """As that of `_resolved`."""
    (a, u, s, v, right, _), z = op.inputs, op.outputs[0]
    mark_adjoints([right, z])
    y = _resolved_pairs(a, u, s, v, dz)
    found = []
    halves = [_halves(u, one) for one in (y, z, right, dz)]
    for side, vectors in enumerate((u, swapaxes(v, -1, -2))):
        y_, z_, right_, dz_ = (half[side] for half in halves)
        by_vectors = add(
            multiply(y_, _as_rows(_products(vectors, right_))),
            multiply(z_, _as_rows(_products(vectors, dz_))),
        )
        found.append(negative(by_vectors))
    (y_u, y_v), (z_u, z_v) = halves[:2]
    by_a = add(matmul(y_u, _adjoint(z_v)), matmul(z_u, _adjoint(y_v)))
    return [by_a, found[0], negative(_products(y, z)), swapaxes(found[1], -1, -2), y, None]


RESOLVED_PAIRS = _define_derived("ReducedResolventOfPairs", _resolved_pairs_gradient)


def _turned(u, v, z):
    """The change of matrices by that of their vectors."""
    above, below = _halves(u, z)
    return add(matmul(above, v), matmul(u, _adjoint(below)))


def _by_singular_values(a, u, s, v, ds):
    """The gradient at matrices whose singular values have adjoints."""
    found = matmul(_scaled(stop_gradient(u), stop_gradient(ds)), stop_gradient(v))
    return apply(BY_SINGULAR_VALUES, [a, u, s, v, ds, found])


def _along_singular_values(a, u, s, v, change):
    """Tangents of singular values along a change of matrices."""
    u_, columns = stop_gradient(u), swapaxes(stop_gradient(v), -1, -2)
    found = _products(u_, matmul(stop_gradient(change), columns))
    return apply(ALONG_SINGULAR_VALUES, [a, u, s, v, change, found])


def _second_by_singular_values(a, u, s, v, ds, change):
    """The derivative of `_by_singular_values` along a change, as `_second_by_values`."""
    left, right = matmul(change, swapaxes(v, -1, -2)), matmul(_adjoint(change), u)
    inner = matmul(_adjoint(u), left)
    rows, columns = _as_rows(ds), expand_dims(ds, -1)
    even, odd = _hermitian(inner), (inner - _adjoint(inner)) / 2
    near = multiply(multiply(even, subtract(rows, columns)), _inverse_differences(s, apart=True))
    far = multiply(multiply(odd, add(rows, columns)), _inverse_sums(s))
    shares = divide(ds, s)
    above = _scaled(subtract(left, matmul(u, inner)), shares)
    below = _scaled(subtract(right, matmul(swapaxes(v, -1, -2), _adjoint(inner))), shares)
    found = add(matmul(add(matmul(u, add(near, far)), above), v), matmul(u, _adjoint(below)))
    both = _scaled(concatenate([left, right], -2), ds)
    whole = _turned(u, v, _resolved_pairs(a, u, s, v, both))
    return add(whole, stop_gradient(subtract(found, whole)))


def _by_singular_values_gradient(op, dg):
    ds = op.inputs[4]
    mark_adjoints([ds])
    by_a = _second_by_singular_values(*op.inputs[:5], dg)
    return [by_a, None, None, None, _along_singular_values(*op.inputs[:4], dg), None]


def _by_singular_values_tangent(op, da, du, ds, dv, change, dg):
    mark_adjoints([op.inputs[4]])
    terms = [] if change is None else [_by_singular_values(*op.inputs[:4], change)]
    if da is not None:
        terms.append(_second_by_singular_values(*op.inputs[:5], da))
    return [add_n(terms) if terms else None]


BY_SINGULAR_VALUES = _define_derived(
    "BySingularValues", _by_singular_values_gradient, tangent=_by_singular_values_tangent
)


def _along_singular_values_gradient(op, dt):
    mark_adjoints([op.inputs[4]])
    by_a = _second_by_singular_values(*op.inputs[:4], dt, op.inputs[4])
    return [by_a, None, None, None, _by_singular_values(*op.inputs[:4], dt), None]


ALONG_SINGULAR_VALUES = _define_derived("AlongSingularValues", _along_singular_values_gradient)


def _svd_gradient(op, du, ds, dv):
    """See J. Townsend, "Differentiating the singular value decomposition", 2016."""
    (a,), (u, s, v), terms = op.inputs, op.outputs, []
    if du is not None or dv is not None:
        _refuse_turning(u.dtype, "singular vectors")
        above = zeros_like(u) if du is None else du
        below = swapaxes(zeros_like(v) if dv is None else dv, -1, -2)
        both = concatenate([above, below], -2)
        terms.append(_turned(u, v, _resolved_pairs(a, u, s, v, both, apart=True)))
    if ds is not None and u.dtype.kind == "c":
        terms.append(matmul(_scaled(u, ds), v))
    elif ds is not None:
        terms.append(_by_singular_values(a, u, s, v, ds))
    return [add_n(terms) if terms else None]


def _emit_svd(code, op) -> None:
    """Values and, where somebody needs them, vectors, matrix by matrix."""
    a, (left, values, right) = code.value(op.inputs[0]), op.outputs
    *outer, m, n = map(code.canonical, a.dimensions)
    k, kind, is_complex = _least(code, m, n), a.dtype, a.dtype.kind == "c"
    u = code.result(op, dimensions=(*outer, m, k))
    s = code.result(op, dimensions=(*outer, k), index=1)
    v = code.result(op, dimensions=(*outer, k, n), index=2)
    length = _count(code, {"kk": 4, "k": 7, "m": 65, "n": 65}, m=m, n=n, k=k)
    room = {"mn": 1, "mk": 1, "kn": 1, "kk": 4, "k": 7, "m": 65, "n": 65}
    work = _work(code, kind, _count(code, room, m=m, n=n, k=k))
    reals = _count(code, {"kk": 7, "k": 7, "mk": 2, "nk": 2}, m=m, n=n, k=k)
    more = _work(code, values.dtype, reals) if is_complex else ZERO
    whole = _work(code, np.int32, _count(code, {"k": 8}, k=k))
    flags = VECTORS * bool(code.uses(left) or code.uses(right))
    rest = [m, n, flags, work, length, more, whole, lapack(code, "gesdd", kind)]
    arrays = [(a, (m, n)), (u, (m, k)), (s, (k,)), (v, (k, n))]
    _for_each(code, a, arrays, "svd", rest)


SVD = define("SVD", _infer_svd, _evaluate_svd, _svd_gradient, emit=_emit_svd)


def _full_gradient(op, du, ds, dv):
    if du is not None or dv is not None:
        message = (
            "the singular vectors that full_matrices=True adds have no gradient, as they are not "
            "unique; use full_matrices=False"
        )
        raise invalid("turned", message)
    u, _, v = svd(op.inputs[0], full_matrices=False)
    return [None if ds is None else matmul(multiply(u, cast(expand_dims(ds, -2), u.dtype)), v)]


def _infer_full(a):
    *outer, m, n = a.shape
    values = Spec(_real(a.dtype), (*outer, min(m, n)))
    return Spec(a.dtype, (*outer, m, m)), values, Spec(a.dtype, (*outer, n, n))


FULL_SVD = define("FullSVD", _infer_full, lambda a: tuple(np.linalg.svd(a)), _full_gradient)


class SVDResult(NamedTuple):
    """What `svd` gives."""

    U: Any
    S: Any
    Vh: Any


@exported(numpy=3)
def svd(
    a: ArrayLike,
    full_matrices: bool = True,
    compute_uv: bool = True,
    *,
    name: str | None = None,
) -> Any:
    """Singular values and vectors of matrices: ``a = u @ diag(s) @ vh``.

    Parameters
    ----------
    a : array-like or Tensor
        Of shape ``(..., m, n)``.
    full_matrices : bool
        Whether ``u`` and ``vh`` are square. Where ``a`` is not, compiled code leaves this to
        Python, and only the values have a gradient; False is native.
    compute_uv : bool
        Whether to give vectors besides the values.

    Returns
    -------
    tuple of Tensor or numpy.ndarray
        ``u``, ``s``, ``vh``; or ``s`` alone. Values from the greatest. The gradient of vectors is
        infinite or NaN where values repeat, or are 0, and refused for complex matrices.

    Raises
    ------
    InvalidArgumentError
        For less than two axes, and where LAPACK finds none; with ``full_matrices`` for lengths
        that only the run knows.

    Examples
    --------
    >>> nbta.svd([[3.0, 0.0], [0.0, -4.0]])[1]
    array([4., 3.])
    >>> nbta.svd([[3.0, 4.0]])[2].shape, nbta.svd([[3.0, 4.0]], full_matrices=False)[2].shape
    ((2, 2), (1, 2))
    """
    a, dtype = _matrices(a)
    full = full_matrices and compute_uv and len(set(_lengths(a))) > 1
    u, s, v = apply(FULL_SVD if full else SVD, [a], name=name)
    s = cast(s, _real(dtype))
    return SVDResult(cast(u, dtype), s, cast(v, dtype)) if compute_uv else s


@stands_for("linalg.svd", numpy=4)
def _numpys_svd(a, full_matrices=True, compute_uv=True, hermitian=False):
    if not hermitian:
        return svd(a, full_matrices, compute_uv)
    a, dtype = _matrices(a)
    w, v = apply(EIGH, [mirrored(a, False)])
    order = flip(argsort(abs_(w), -1), -1)
    w = take_along_axis(w, order, -1)
    s = cast(abs_(w), _real(dtype))
    if not compute_uv:
        return s
    u = take_along_axis(v, expand_dims(order, -2), -1)
    signed = multiply(u, cast(expand_dims(sign(w), -2), u.dtype))
    return SVDResult(cast(u, dtype), s, cast(_adjoint(signed), dtype))


@stands_for("scipy.linalg.svd", numpy=3)
def _scipy_svd(
    a, full_matrices=True, compute_uv=True, overwrite_a=False, check_finite=True,
    lapack_driver="gesdd",
):  # fmt: skip
    check_choice("scipy.linalg.svd", "lapack_driver", lapack_driver, ("gesdd", "gesvd"))
    found = svd(a, full_matrices, compute_uv)
    return tuple(found) if compute_uv else found


@exported(also="linalg.svdvals", numpy=1)
def svdvals(a: ArrayLike, *, name: str | None = None) -> Array:
    """Singular values of matrices, as `numpy.linalg.svdvals`.

    Parameters
    ----------
    a : array-like or Tensor
        Matrices ``(..., m, n)``.

    Returns
    -------
    Tensor or numpy.ndarray
        Real numbers in descending order, of shape ``(..., min(m, n))``.

    Raises
    ------
    InvalidArgumentError
        For fewer than two axes, and if LAPACK does not find the singular values.

    Examples
    --------
    >>> nbta.svdvals([[3.0, 0.0], [0.0, -4.0]])
    array([4., 3.])
    """
    return svd(a, compute_uv=False, name=name)


@stands_for("scipy.linalg.svdvals", numpy=1)
def _scipy_svdvals(a, overwrite_a=False, check_finite=True):
    return svdvals(a)


# What singular values give.


class _Cut(NamedTuple):
    """Singular vectors and values, none with a gradient, where some of the values are dropped.

    Each value has its place twice: as the inverse of a kept one and as a dropped one; what it is
    not is 0.
    """

    u: Any
    inverses: Any
    dropped: Any
    v: Any

    @property
    def adjoint(self):
        """That of the adjoint matrices."""
        return _Cut(_adjoint(self.v), self.inverses, self.dropped, _adjoint(self.u))


def _scaled(columns, values):
    """Columns of matrices times a number each."""
    return multiply(columns, cast(_as_rows(values), columns.dtype))


def _five(a, b, c, d, e, *, inner):
    """A product of five, in an order in which no large square matrix is made."""
    if inner:
        return matmul(a, matmul(matmul(b, c), matmul(d, e)))
    return matmul(matmul(matmul(a, b), matmul(c, d)), e)


def _separation_gradient(op, dx):
    """The equation is linear in ``c`` and its own adjoint; others by its differential."""
    p, d, x, tall = *op.inputs[:2], op.outputs[0], op.attrs["tall"]
    c = _separated(p, d, dx, _Cut(*op.inputs[3:-1]), tall=tall)
    p_, d_, x_, c_ = map(_adjoint, (p, d, x, c))
    by_p = [_five(p, c, d_, d, x_, inner=not tall), _five(p, x, d_, d, c_, inner=not tall)]
    by_d = [_five(d, x_, p_, p, c, inner=tall), _five(d, c_, p_, p, x, inner=tall)]
    return [add(*by_p), add(*by_d), c, *[None] * 5]


SEPARATION = _define_derived("Separation", _separation_gradient)


def _separated(p, d, c, cut, *, tall):
    """The solution of ``x - p^H p x d^H d = c``, where p and d have the values of a cut.

    Inverses of kept values times dropped ones are less than 1, so there is one, and only one.
    """
    u, inverses, dropped, v = cut
    share = multiply(expand_dims(inverses, -1), expand_dims(dropped, -2))
    factor = divide(multiply(share, share), multiply(subtract(1.0, share), add(1.0, share)))
    inner = matmul(matmul(_adjoint(u), stop_gradient(c)), _adjoint(v))
    beside = matmul(u, matmul(multiply(cast(factor, u.dtype), inner), v))
    x = add(stop_gradient(c), beside)
    return apply(SEPARATION, [p, d, c, *cut, x], {"tall": tall})


def _pinv_gradient(op, dp):
    """Of matrices whose kept singular values stay apart from the others.

    G. H. Golub and V. Pereyra, SIAM J. Numer. Anal. 10, 1973, where the dropped values are 0. Where
    they are not, a kept vector turns by a dropped one more, by their difference of squares.
    """
    a, cut, p = op.inputs[0], _Cut(*op.inputs[2:]), op.outputs[0]
    p_, e = _adjoint(p), _adjoint(dp)
    rest = subtract(a, matmul(a, matmul(p, a)))
    # By singular vectors it is 0 where nothing is dropped; here it is a rounding error, which the
    # inverses of small values would enlarge. So the value is by these, the derivative by this.
    exact = matmul(_scaled(cut.u, cut.dropped), cut.v)
    rest = add(rest, stop_gradient(subtract(exact, rest)))
    right = matmul(p_, matmul(p, _separated(p, rest, e, cut, tall=True)))
    left = _separated(p_, _adjoint(rest), dp, cut.adjoint, tall=False)
    left = matmul(matmul(p, p_), left)
    terms = [
        negative(matmul(p_, matmul(dp, p_))),
        subtract(right, matmul(right, matmul(p, a))),
        matmul(rest, matmul(_adjoint(right), p_)),
        subtract(_adjoint(left), matmul(a, matmul(p, _adjoint(left)))),
        matmul(p_, matmul(left, rest)),
    ]
    return [add_n(terms), *[None] * 5]


PINV = define(
    "PseudoInverse",
    lambda a, p, *cut: p,
    lambda a, p, *cut: p,
    _pinv_gradient,
    emit=lambda code, op: code.bind(op.outputs[0], code.value(op.inputs[1])),
)


def _precision(a):
    return float(max(_lengths(a)) * np.finfo(a.dtype).eps)


def _pseudo_inverse(a, cut):
    """By singular vectors, which gradients do not go through: they need no values apart."""
    u, s, v = svd(stop_gradient(a), full_matrices=False)
    cut = operand(cut)
    if cut.ndim:
        if cut.ndim > a.ndim - 2:
            raise invalid("shape", "rcond, rtol: give one number for each matrix, or one for all")
        cut = expand_dims(cut, -1)
    kept = greater(s, multiply(cut, getitem(s, (..., slice(0, 1)))))
    zeros = zeros_like(s)
    inverses = where(kept, divide(1.0, where(kept, s, ones_like(s))), zeros)
    found = matmul(_scaled(_adjoint(v), inverses), _adjoint(u))
    parts = _Cut(u, inverses, where(kept, zeros, s), v)
    m, n = a.shape[-2:]
    if type(m) is type(n) is int and m < n:  # the gradient is for no more columns than rows
        return _adjoint(apply(PINV, [_adjoint(a), _adjoint(found), *parts.adjoint]))
    return apply(PINV, [a, found, *parts])


@exported(numpy=2)
def pinv(a: ArrayLike, rcond: float | None = None, *, name: str | None = None) -> Array:
    """Pseudo-inverses of matrices.

    Parameters
    ----------
    a : array-like or Tensor
        Of shape ``(..., m, n)``.
    rcond : float, optional
        Singular values up to so much of the greatest count as 0; by default 1e-15.

    Returns
    -------
    Tensor or numpy.ndarray
        The gradient holds where near by as many singular values are kept.

    Raises
    ------
    InvalidArgumentError
        For less than two axes, and where LAPACK finds no singular values.

    Examples
    --------
    >>> nbta.pinv([[2.0], [0.0]])
    array([[0.5, 0. ]])
    """
    a, dtype = _matrices(a)
    return cast(_pseudo_inverse(a, 1e-15 if rcond is None else rcond), dtype, name=name)


@stands_for("linalg.pinv", numpy=3)
def _numpys_pinv(a, rcond=None, hermitian=False, *, rtol=np._NoValue):
    """NumPy's, of which ``rtol=None`` is another precision than none."""
    if rcond is not None and rtol is not np._NoValue:
        raise ValueError("`rtol` and `rcond` can't be both set.")
    a, dtype = _matrices(a)
    if rtol is not np._NoValue:
        rcond = _precision(a) if rtol is None else rtol
    return cast(pinv(mirrored(a, False) if hermitian else a, rcond), dtype)


@stands_for("scipy.linalg.pinv", numpy=1)
def _scipy_pinv(a, *, atol=None, rtol=None, check_finite=True):
    if atol is not None and not (isinstance(atol, numbers.Real) and atol == 0):
        raise invalid("value", "scipy.linalg.pinv: atol: give rtol, relative to the largest value")
    if rtol is not None and operand(rtol).dtype.kind == "c":
        raise invalid("value", f"scipy.linalg.pinv: rtol={rtol!r} is complex; give a real number")
    if isinstance(rtol, numbers.Real) and rtol < 0:
        raise invalid("value", f"scipy.linalg.pinv: rtol={rtol!r} is negative; give 0 or more")
    a, dtype = _matrices(a)
    return cast(_pseudo_inverse(a, _precision(a) if rtol is None else rtol), dtype)


@stands_for("scipy.linalg.pinvh", numpy=1)
def _scipy_pinvh(a, *, atol=None, rtol=None, lower=True, return_rank=False, check_finite=True):
    if return_rank:
        raise invalid("value", "scipy.linalg.pinvh: return_rank: there is np.linalg.matrix_rank")
    a, _ = _matrices(a)
    return _scipy_pinv(mirrored(a, not lower), atol=atol, rtol=rtol)


@exported(numpy=2)
def matrix_rank(
    a: ArrayLike,
    tol: ArrayLike | None = None,
    *,
    rtol: ArrayLike | None = None,
    name: str | None = None,
) -> Array:
    """Rank of matrices by singular values, as `numpy.linalg.matrix_rank`; it has no gradient.

    Parameters
    ----------
    a : array-like or Tensor
        Matrices ``(..., m, n)``, or a vector.
    tol : float, optional
        Singular values up to this number count as 0.
    rtol : float, optional
        The same relative to the largest singular value; by default the longer of m and n times the
        precision of the dtype.

    Returns
    -------
    Tensor or numpy.ndarray
        int64, of shape ``(...)``.

    Raises
    ------
    InvalidArgumentError
        If LAPACK does not find the singular values.

    Examples
    --------
    >>> nbta.matrix_rank([[1.0, 2.0], [2.0, 4.0]])
    np.int64(1)
    """
    if operand(a).ndim == 1:
        return cast(count_nonzero(a) > 0, np.int64, name=name)
    a, _ = _matrices(a)
    s = stop_gradient(svdvals(a))
    if tol is None:
        rtol = _precision(a) if rtol is None else rtol
        rtol = expand_dims(rtol, -1) if operand(rtol).ndim else rtol
        tol = multiply(rtol, getitem(s, (..., slice(0, 1))))
    else:
        tol = expand_dims(tol, -1)
    return sum_(cast(greater(s, tol), np.int64), -1, name=name)


@stands_for("linalg.matrix_rank", numpy=3)
def _numpys_matrix_rank(a, tol=None, hermitian=False, *, rtol=None):
    if tol is not None and rtol is not None:
        raise ValueError("`tol` and `rtol` can't be both set.")
    if hermitian and operand(a).ndim > 1:
        a = mirrored(_matrices(a)[0], False)
    return matrix_rank(a, tol, rtol=rtol)


@exported(also="linalg.lstsq", numpy=3)
def lstsq(
    a: ArrayLike, b: ArrayLike, rcond: float | None = None, *, name: str | None = None
) -> tuple[Array, Array, Array, Array]:
    """``x`` that makes the squares of ``a @ x - b`` least, the shortest where there are several.

    Parameters
    ----------
    a : array-like or Tensor
        A matrix ``(m, n)``.
    b : array-like or Tensor
        A vector ``(m,)`` or a matrix ``(m, k)``.
    rcond : float, optional
        Singular values up to so much of the greatest count as 0; by default the longer length
        times the precision, which is itself taken for what is not between 0 and 1.

    Returns
    -------
    x : Tensor or numpy.ndarray
        The gradient holds where near by as many singular values are kept.
    residuals : Tensor or numpy.ndarray
        Sums of squares; empty unless there are more rows than columns. (NumPy's are empty for a
        lesser rank, too.)
    rank : Tensor or numpy.ndarray
        An integer without a gradient.
    s : Tensor or numpy.ndarray
        Singular values.

    Raises
    ------
    InvalidArgumentError
        For shapes that do not fit, and where LAPACK finds no singular values.

    Examples
    --------
    >>> nbta.lstsq([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]], [1.0, 3.0, 5.0])[0].round(12)
    array([1., 2.])
    """
    a, b = promoted(a, b, floats=True)
    if a.ndim != 2 or b.ndim not in (1, 2):
        raise invalid("rank", "lstsq: give a matrix and a vector or a matrix")
    (a, dtype), n = _matrices(a), operator.index(a.shape[1])
    m = data_spec(a).shape[0]
    is_known = type(m) is int
    m = m if is_known else shape_of(a)[0]
    precision = _precision(a) if is_known else maximum(m, n) * float(np.finfo(a.dtype).eps)
    b, cut = cast(b, a.dtype), precision if rcond is None else _share(rcond, a.dtype)
    cut = cast(cut, _real(a.dtype)) if isinstance(cut, Tensor) else cut
    x = matmul(_pseudo_inverse(a, cut), b)
    right = expand_dims(b, 1) if b.ndim == 1 else b
    rest = subtract(matmul(a, expand_dims(x, 1) if b.ndim == 1 else x), right)
    squares = sum_(real(multiply(conjugate(rest), rest)), 0)
    rank = cast(matrix_rank(a, rtol=cut), np.int32)
    if not is_known:
        count = shape_of(squares)[0]
        squares = getitem(squares, slice(0, where(greater(m, n), count, zeros_like(count))))
    elif m <= n:
        squares = getitem(squares, slice(0, 0))
    values = cast(svdvals(a), _real(dtype))
    return cast(x, dtype, name=name), cast(squares, _real(dtype)), rank, values


def _share(rcond, dtype):
    """LAPACK's (dlalsd): what is no share between 0 and 1 is the precision."""
    precision = np.finfo(dtype).eps
    if not isinstance(rcond, Tensor):
        return rcond if 0 < rcond < 1 else precision
    return where(
        logical_and(greater(rcond, 0), less(rcond, 1)), rcond, cast(precision, rcond.dtype)
    )


@stands_for("scipy.linalg.lstsq", numpy=3)
def _scipy_lstsq(
    a, b, cond=None, overwrite_a=False, overwrite_b=False, check_finite=True, lapack_driver=None
):
    # gelsy has no singular values.
    check_choice("scipy.linalg.lstsq", "lapack_driver", lapack_driver, (None, "gelsd", "gelss"))
    _lengths(operand(a))  # by which the sum of squares is a number or an array
    x, squares, rank, values = lstsq(a, b, np.finfo(operand(a).dtype).eps if cond is None else cond)
    if operand(b).ndim == 1 and squares.shape == (1,):
        squares = squeeze(squares, 0)
    return x, squares, rank, values


# Orthogonal columns.


def _infer_qr(a):
    left, _, _ = _infer_svd(a)
    shape = None if a.shape is None else (*a.shape[:-2], left.shape[-1], a.shape[-1])
    return left, Spec(a.dtype, shape)


def _evaluate_qr(a):
    found = np.linalg.qr(a)
    return found.Q, found.R


def _qr_gradient(op, dq, dr):
    """For no more columns than rows; with the diagonal of r real, as LAPACK has it."""
    q, r = op.outputs
    terms = [] if dq is None else [matmul(_adjoint(q), dq)]
    if dr is not None:
        terms.append(matmul(negative(dr), _adjoint(r)))
    if not terms:
        return [None]
    inner = add_n(terms)
    strict = subtract(inner, tril(inner))
    diagonal = subtract(tril(inner), tril(inner, -1))
    if diagonal.dtype.kind == "c":
        diagonal = cast(real(diagonal), diagonal.dtype)
    along = matmul(q, add(add(strict, _adjoint(strict)), diagonal))
    both = negative(along) if dq is None else subtract(dq, along)
    turned = triangular_solve(conjugate(r), swapaxes(both, -1, -2), lower=False)
    return [swapaxes(turned, -1, -2)]


def _emit_qr(code, op) -> None:
    """Columns and a triangle, matrix by matrix."""
    a = code.value(op.inputs[0])
    *outer, m, n = map(code.canonical, a.dimensions)
    k, kind = _least(code, m, n), a.dtype
    q = code.result(op, dimensions=(*outer, m, k))
    r = code.result(op, dimensions=(*outer, k, n), index=1)
    length = _count(code, {"m": 64, "n": 64}, m=m, n=n)
    room = _count(code, {"mn": 1, "k": 1, "m": 64, "n": 64}, m=m, n=n, k=k)
    generate = "ungqr" if kind.kind == "c" else "orgqr"
    routines = [lapack(code, function, kind) for function in ("geqrf", generate)]
    rest = [m, n, _work(code, kind, room), length, *routines]
    _for_each(code, a, [(a, (m, n)), (q, (m, k)), (r, (k, n))], "qr", rest)


QR = define("QR", _infer_qr, _evaluate_qr, _qr_gradient, emit=_emit_qr)


class QRResult(NamedTuple):
    """What `qr` gives."""

    Q: Any
    R: Any


@exported(also="linalg.qr", numpy=2)
def qr(
    a: ArrayLike,
    mode: Literal["reduced", "complete", "r"] = "reduced",
    *,
    name: str | None = None,
) -> Any:
    """Orthogonal columns and an upper triangle: ``a = q @ r``.

    Parameters
    ----------
    a : array-like or Tensor
        Of shape ``(..., m, n)``.
    mode : {"reduced", "complete", "r"}
        With ``"r"`` the triangle alone, with ``"complete"`` as many columns as rows.

    Returns
    -------
    q : Tensor or numpy.ndarray
        Of shape ``(..., m, min(m, n))``, or ``(..., m, m)``. Columns beyond ``n`` are any that
        complete the others, and have no gradient.
    r : Tensor or numpy.ndarray
        Of shape ``(..., min(m, n), n)``, or ``(..., m, n)`` with zeros below.

    Raises
    ------
    InvalidArgumentError
        For less than two axes, another mode, and lengths that only the run knows; and from the
        gradient where columns depend on each other.

    Examples
    --------
    >>> nbta.abs(nbta.qr([[3.0, 1.0], [4.0, 2.0]])[1]).round(12)
    array([[5. , 2.2],
           [0. , 0.4]])
    """
    if mode not in ("reduced", "complete", "r"):
        raise invalid("value", f"mode must be 'reduced', 'complete' or 'r', not {mode!r}")
    a, dtype = _matrices(a)
    m, n = _lengths(a)
    if m >= n:
        q, r = apply(QR, [a], name=name)
    else:
        q, r = apply(QR, [getitem(a, (..., slice(0, m)))], name=name)
        r = concatenate([r, matmul(_adjoint(q), getitem(a, (..., slice(m, n))))], -1)
    if mode == "complete" and m > n:
        q, r = concatenate([q, _completing(a, m, n)], -1), pad(r, _below(r, m - n))
    r = cast(r, dtype)
    return r if mode == "r" else QRResult(cast(q, dtype), r)


def _below(r, count):
    """Widths of rows below, and nothing else."""
    return [*[(0, 0)] * (r.ndim - 2), (0, count), (0, 0)]


def _completing(a, m, n):
    """LAPACK's columns beyond those of a matrix: zeros beside it leave them as they are."""
    q, _ = apply(QR, [pad(a, [*[(0, 0)] * (a.ndim - 1), (0, m - n)])])
    message = (
        "qr: the columns that mode='complete' adds have no gradient, as they are not unique; use "
        "mode='reduced'"
    )
    return without_gradient(getitem(q, (..., slice(n, m))), message)


@stands_for("scipy.linalg.qr", numpy=1)
def _scipy_qr(a, overwrite_a=False, lwork=None, mode="full", pivoting=False, check_finite=True):
    if pivoting or mode not in ("economic", "r", "full"):
        message = f"scipy.linalg.qr: mode={mode!r}, pivoting={pivoting}"
        raise invalid("value", f"{message}: there are 'full', 'economic' and 'r', without pivoting")
    check_choice("scipy.linalg.qr", "lwork", lwork, (None, -1))
    found = qr(a, "reduced" if mode == "economic" else "complete")
    return (found.R,) if mode == "r" else tuple(found)


# Exponentials.


def _evaluate_expm(a):
    from scipy.linalg import expm

    return expm(a) if a.size else a


def _expm_gradient(op, dy):
    """The upper right block of the exponential of a block matrix (C. Van Loan, 1978)."""
    turned = _adjoint(op.inputs[0])
    above = concatenate([turned, dy], -1)
    below = concatenate([zeros_like(turned), turned], -1)
    n = shape_of(op.inputs[0])[-1]
    return [_block_above(apply(EXPM, [concatenate([above, below], -2)]), n)]


def _block_above(whole, n):
    return getitem(whole, (..., slice(None, n), slice(n, None)))


def _emit_expm(code, op) -> None:
    """Exponentials, matrix by matrix."""
    a = code.value(op.inputs[0])
    code.equate(a.dimensions[-1], a.dimensions[-2])
    n, kind = a.dimensions[-1], a.dtype
    block = code.result(op, dimensions=a.dimensions)
    work = _work(code, kind, _count(code, {"nn": 6}, n=n))
    helpers = [
        code.helper(f"gemm_{kind.name}"), code.helper(f"blas_{kind.name}"),
        code.helper(f"lu_{kind.name}"), lapack(code, "getrf", kind),
        code.helper(f"lu_solve_{kind.name}"), lapack(code, "trsm", kind, "blas"),
    ]  # fmt: skip
    rest = [work, _work(code, np.int32, n), n, *helpers]
    _for_each(code, a, [(a, (n, n)), (block, (n, n))], "expm", rest)


EXPM = define("MatrixExponential", square, _evaluate_expm, _expm_gradient, emit=_emit_expm)


@exported(also="scipy.linalg.expm", numpy=1)
def expm(a: ArrayLike, *, name: str | None = None) -> Array:
    """Matrix exponential, by scaling and squaring, as ``scipy.linalg.expm``.

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
        For a matrix that is not square.

    Examples
    --------
    >>> nbta.expm([[0.0, 1.0], [0.0, 0.0]])
    array([[1., 1.],
           [0., 1.]])
    """
    a, dtype = _matrices(a)
    return cast(apply(EXPM, [a]), dtype, name=name)
