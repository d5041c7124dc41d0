"""Lengths of vectors and sizes of matrices."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from nbta.errors import invalid
from nbta.graph.operation import Tensor
from nbta.ops.axes.reductions import max, mean_dtype, min, sum
from nbta.ops.core.arithmetic import (
    add,
    divide,
    equal,
    imag,
    multiply,
    not_equal,
    real,
    square,
    where,
)
from nbta.ops.core.axis_arguments import axis_attrs, operand
from nbta.ops.core.dispatch import exported, stands_for
from nbta.ops.core.elementwise import wide
from nbta.ops.core.shaping import cast
from nbta.ops.elementary.basic import abs, power, sqrt
from nbta.ops.indexing.items import getitem
from nbta.ops.indexing.joining import expand_dims
from nbta.ops.indexing.transposing import transpose
from nbta.ops.linalg.lu import inv
from nbta.ops.linalg.spectra import svdvals

if TYPE_CHECKING:
    from nbta.typing import Array, ArrayLike, Axis


def _squares(x):
    """The squares of absolute values."""
    return add(square(real(x)), square(imag(x))) if x.dtype.kind == "c" else square(x)


def _rooted(total, root):
    """A root of a sum, which has no slope where that is 0: so have `abs` and `hypot`."""
    zero = equal(total, 0)
    return where(zero, 0.0, root(where(zero, 1.0, total)))


def _check_known(order):
    if isinstance(order, Tensor):
        message = "ord: only the run knows which norm it is; give a number, as by static_argnames="
        raise invalid("value", message)


def _of_vector(x, order, axis, keepdims):
    """The norms of vectors along axes."""
    _check_known(order)
    if order in (None, 2):
        return _rooted(sum(_squares(x), axis, keepdims), sqrt)
    if order == math.inf:
        return max(abs(x), axis, keepdims)
    if order == -math.inf:
        return min(abs(x), axis, keepdims)
    if order == 0:
        return sum(cast(not_equal(x, 0), real(x).dtype), axis, keepdims)
    if order == 1:
        return sum(abs(x), axis, keepdims)
    if isinstance(order, str | complex):
        raise invalid("value", f"ord: there is no norm {order!r} of vectors; give a real number")
    powers = sum(power(abs(x), order), axis, keepdims)
    return _rooted(powers, lambda total: power(total, 1.0 / order))


def _of_matrix(x, order, axis, keepdims):
    """The norms of matrices whose rows and columns are two axes."""
    _check_known(order)
    rows, columns = axis
    if order in (None, "fro"):
        return _of_vector(x, None, axis, keepdims)
    if order in (2, -2, "nuc"):
        return _of_singular_values(x, order, axis, keepdims)
    if order not in (1, -1, math.inf, -math.inf):
        raise invalid("value", f"ord: there is no norm {order!r} of matrices; give 'fro', 1 or inf")
    along, left = (rows, columns) if order in (1, -1) else (columns, rows)
    found = (max if order > 0 else min)(sum(abs(x), along, True), left, True)
    return found if keepdims else sum(found, axis)


def _of_singular_values(x, order, axis, keepdims):
    """The norms of matrices that are the greatest or least singular value, or their sum."""
    if x.ndim is None:
        raise invalid("rank", f"ord: {order!r} needs the rank to be known; reshape the operand")
    others = tuple(one for one in range(x.ndim) if one not in axis)
    values = svdvals(transpose(x, (*others, *axis)))
    if order == "nuc":
        found = sum(values, -1)
    else:
        found = getitem(values, (..., 0 if order == 2 else -1))
    return expand_dims(found, tuple(sorted(axis))) if keepdims else found


@exported(also="linalg.norm", numpy=4)
def norm(
    x: ArrayLike,
    ord: float | str | None = None,
    axis: Axis = None,
    keepdims: bool = False,
    *,
    name: str | None = None,
) -> Array:
    """The norm of vectors or matrices, as ``np.linalg.norm``.

    Where a norm is 0, its derivative is 0; equal greatest elements share the gradient.

    Parameters
    ----------
    x : array-like or Tensor
    ord : number, "fro", "nuc" or None
        None is the square root of the sum of squares. Of vectors ``inf`` is the greatest absolute
        value, ``-inf`` the least, 0 the number of elements that are not 0, and p the p-th root of
        the sum of p-th powers. Of matrices 1 is the greatest sum of a column and ``inf`` of a row,
        -1 and ``-inf`` the least; 2 is the greatest singular value, -2 the least, "nuc" their sum.
    axis : int, pair of int or None
        One axis has vectors, two have matrices. None takes a vector or a matrix for what it is, and
        without ``ord`` all elements as one vector.
    keepdims : bool
        Whether the axes stay, with length 1.

    Returns
    -------
    Tensor or numpy.ndarray
        Of real floats.

    Raises
    ------
    InvalidArgumentError
        For a norm or axes that are not there.

    Examples
    --------
    >>> nbta.norm([3.0, 4.0])
    np.float64(5.0)
    >>> nbta.norm([[1.0, -2.0], [3.0, 4.0]], 1)
    np.float64(6.0)
    """
    x, own = _floats(x)
    return _narrowed(_norm(x, ord, axis, keepdims), own, name)


def _floats(x):
    """The operand in floats, in which half precision is computed as float32; and its own dtype."""
    x = operand(x)
    own = mean_dtype(x.dtype)
    return cast(x, wide(own)) if x.dtype != wide(own) else x, own


def _narrowed(found, own, name=None):
    """A norm in the dtype of the operand, or the real one of complex numbers."""
    dtype = own if own.kind != "c" else found.dtype
    return found if found.dtype == dtype and name is None else cast(found, dtype, name=name)


def _norm(x, order, axis, keepdims):
    if axis is None and order is None:
        return _of_vector(x, None, None, keepdims)
    rank = x.spec.rank if isinstance(x, Tensor) else x.ndim
    if axis is None and rank not in (1, 2):
        message = f"ord: {order!r} is for vectors and matrices, and the rank is {rank}; give axis="
        raise invalid("rank", message)
    given = (axis,) if isinstance(axis, int) else tuple(range(rank) if axis is None else axis)
    if len(given) == 1:
        return _of_vector(x, order, given, keepdims)
    if len(given) != 2:
        raise invalid(
            "axis", f"axis: {axis} names {len(given)} axes; give one, or two for matrices"
        )
    axis_attrs(x, given)
    if rank is not None:
        given = tuple(one % rank for one in given)
    return _of_matrix(x, order, given, keepdims)


@exported(also="linalg.cond", numpy=2)
def condition_number(
    a: ArrayLike, p: float | str | None = None, *, name: str | None = None
) -> Array:
    """Condition number of matrices, as `numpy.linalg.cond`.

    Parameters
    ----------
    a : array-like or Tensor
        Matrices ``(..., m, n)``.
    p : float or str, optional
        By default, or with 2, the largest singular value divided by the smallest; with -2 the
        inverse of that; with another norm of `norm`, such as 1 or "fro", the norm of a square
        matrix times the norm of its inverse.

    Returns
    -------
    Tensor or numpy.ndarray
        Real numbers, of shape ``(...)``.

    Raises
    ------
    InvalidArgumentError
        If LAPACK does not find the singular values. For other norms, for a singular matrix, where
        NumPy returns infinity.

    Examples
    --------
    >>> nbta.condition_number([[3.0, 0.0], [0.0, -4.0]])
    np.float64(1.3333333333333333)
    """
    if p not in (None, 2, -2):
        return multiply(norm(a, p, (-2, -1)), norm(inv(a), p, (-2, -1)), name=name)
    s = svdvals(a)
    first, last = getitem(s, (..., 0)), getitem(s, (..., -1))
    return divide(last, first, name=name) if p == -2 else divide(first, last, name=name)


@stands_for("linalg.vector_norm", numpy=1)
def _vector_norm(x, axis=None, keepdims=False, ord=2):
    """NumPy's, which takes several axes, or all, as those of one vector."""
    x, own = _floats(x)
    return _narrowed(_of_vector(x, ord, axis, keepdims), own)


@stands_for("linalg.matrix_norm", numpy=1)
def _matrix_norm(x, keepdims=False, ord="fro"):
    """NumPy's, of the matrices in the last two axes."""
    return norm(x, ord, (-2, -1), keepdims)


@stands_for("scipy.linalg.norm", numpy=5)
def _scipy_norm(a, ord=None, axis=None, keepdims=False, check_finite=True):
    return norm(a, ord, axis, keepdims)
