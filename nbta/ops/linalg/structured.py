"""Matrices that are made of blocks or of diagonals, as SciPy has them."""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING

import numpy as np

from nbta.errors import invalid
from nbta.ops.axes.diagonals import diag
from nbta.ops.axes.truths import all, allclose
from nbta.ops.core.arithmetic import divide, equal, multiply, negative, not_equal, subtract
from nbta.ops.core.axis_arguments import operand
from nbta.ops.core.checks import checked
from nbta.ops.core.dispatch import exported, stands_for
from nbta.ops.core.elementwise import conjugate, promoted
from nbta.ops.core.filling import zeros_like
from nbta.ops.core.shaping import reshape
from nbta.ops.elementary.basic import abs
from nbta.ops.indexing.gathering import take
from nbta.ops.indexing.items import getitem
from nbta.ops.indexing.joining import concatenate, expand_dims, flip, pad
from nbta.ops.indexing.transposing import swapaxes

if TYPE_CHECKING:
    from nbta.typing import Array, ArrayLike


@exported(also="scipy.linalg.block_diag", numpy=math.inf)
def block_diag(*arrays: ArrayLike, name: str | None = None) -> Array:
    """A matrix of blocks along its diagonal and zeros elsewhere, as ``scipy.linalg.block_diag``.

    Parameters
    ----------
    *arrays : array-like or Tensor
        Matrices; a vector is one row, a scalar one element.

    Returns
    -------
    Tensor or numpy.ndarray
        A matrix whose height and width are the sums of those of the arguments.

    Raises
    ------
    InvalidArgumentError
        Without arguments, and for more than two axes.

    Examples
    --------
    >>> nbta.block_diag([[1, 2]], 3)
    array([[1, 2, 0],
           [0, 0, 3]])
    """
    if not arrays or any(operand(x).ndim not in (0, 1, 2) for x in arrays):
        raise invalid("rank", "block_diag: give matrices, vectors or scalars, one at least")
    blocks = [expand_dims(x, tuple(range(2 - x.ndim))) if x.ndim < 2 else x
              for x in promoted(*map(operand, arrays))]  # fmt: skip
    widths = [operator.index(block.shape[1]) for block in blocks]
    rows = [
        pad(block, ((0, 0), (sum(widths[:k]), sum(widths[k + 1 :]))))
        for k, block in enumerate(blocks)
    ]
    return concatenate(rows, 0, name=name)


@exported(also="scipy.linalg.toeplitz", numpy=2)
def toeplitz(c: ArrayLike, r: ArrayLike | None = None, *, name: str | None = None) -> Array:
    """A matrix with constant diagonals, as ``scipy.linalg.toeplitz``.

    Parameters
    ----------
    c : array-like or Tensor
        The first column, a vector.
    r : array-like or Tensor, optional
        The first row, whose first element is ignored; by default the conjugate of ``c``.

    Returns
    -------
    Tensor or numpy.ndarray
        A matrix of as many rows as ``c`` and as many columns as ``r`` has elements.

    Raises
    ------
    InvalidArgumentError
        For another rank than 1.

    Examples
    --------
    >>> nbta.toeplitz([1, 2, 3], [1, 7])
    array([[1, 7],
           [2, 1],
           [3, 2]])
    """
    c, r = promoted(operand(c), conjugate(operand(c)) if r is None else operand(r))
    if c.ndim != 1 or r.ndim != 1:
        raise invalid("rank", "toeplitz: give a column and a row, each of rank 1")
    rows, columns = (operator.index(x.shape[0]) for x in (c, r))
    if not rows or not columns:
        return take(c, np.zeros((rows, columns), np.int64), 0, name=name)
    places = columns - 1 + np.arange(rows)[:, None] - np.arange(columns)
    return take(concatenate([flip(getitem(r, slice(1, None)), 0), c], 0), places, 0, name=name)


# SciPy's others, of tensors.


def _last_length(what, x):
    if x.ndim is None or x.ndim < 1:
        raise invalid("rank", f"{what}: give one row")
    return operator.index(x.shape[-1])


@stands_for("scipy.linalg.circulant", numpy=1)
def circulant(c):
    """SciPy's: each column is the one before it, moved down by one."""
    c = operand(c)
    count = np.arange(_last_length("circulant", c))
    return take(c, (count[:, None] - count) % max(count.size, 1), -1)


@stands_for("scipy.linalg.hankel", numpy=2)
def _hankel(c, r=None):
    """SciPy's: what a column has, and then a row but for its first item, along rising diagonals."""
    c = operand(c)
    c, r = promoted(reshape(c, (-1,)), zeros_like(c) if r is None else operand(r))
    if not r.ndim:
        raise invalid("rank", "scipy.linalg.hankel: r: a number; give a row")
    r = reshape(r, (-1,))
    places = np.add.outer(*(np.arange(operator.index(x.shape[0])) for x in (c, r)))
    return take(concatenate([c, getitem(r, slice(1, None))], 0), places, 0)


@stands_for("scipy.linalg.companion", numpy=1)
def _companion(a):
    """SciPy's: the matrix whose eigenvalues are the roots of a polynomial."""
    (a,) = promoted(a, floats=True)
    count = _last_length("companion", a)
    if a.ndim != 1 or count < 2:
        raise invalid("shape", "companion: give two coefficients or more, in one row")
    message = "companion: the first coefficient is 0"
    first = checked(getitem(a, slice(0, 1)), not_equal(getitem(a, 0), 0), message)
    row = reshape(negative(divide(getitem(a, slice(1, None)), first)), (1, -1))
    return concatenate([row, np.eye(count - 2, count - 1, dtype=a.dtype)], 0)


@stands_for("scipy.linalg.fiedler", numpy=1)
def _fiedler(a):
    """SciPy's: how far items are from each other."""
    a = operand(a)
    return abs(subtract(expand_dims(a, -1), expand_dims(a, -2)))


@stands_for("scipy.linalg.leslie", numpy=2)
def _leslie(f, s):
    """SciPy's: how a population of several ages grows."""
    f, s = promoted(f, s)
    if f.ndim != 1 or s.ndim != 1 or _last_length("leslie", f) != _last_length("leslie", s) + 1:
        raise invalid("shape", "leslie: give two rows, of which f has one item more than s")
    return concatenate([expand_dims(f, 0), pad(diag(s), ((0, 0), (0, 1)))], 0)


@stands_for("scipy.linalg.convolution_matrix", numpy=3)
def _convolution_matrix(a, n, mode="full"):
    """SciPy's: what times a row of n items is `np.convolve` of both."""
    a, n = operand(a), operator.index(n)
    if a.ndim != 1 or n < 1 or mode not in ("full", "same", "valid"):
        message = 'convolution_matrix: give one row, a count, and "full", "same" or "valid"'
        raise invalid("value", message)
    count = operator.index(a.shape[0])
    column, row = (pad(x, (0, n - 1)) for x in (a, flip(a, 0)))
    trimmed = {"full": 0, "same": min(n, count) - 1, "valid": 2 * (min(n, count) - 1)}[mode]
    first, whole = trimmed // 2, count + n - 1
    column = getitem(column, slice(first, whole - (trimmed - first)))
    return toeplitz(column, getitem(row, slice(whole - n - first, whole - first)))


@stands_for("scipy.linalg.khatri_rao", numpy=2)
def _khatri_rao(a, b):
    """SciPy's: the Kronecker products of columns."""
    a, b = promoted(a, b)
    if a.ndim != 2 or b.ndim != 2:
        raise invalid("rank", "khatri_rao: give two matrices with the same number of columns")
    found = multiply(getitem(a, np.s_[:, None, :]), getitem(b, np.s_[None, :, :]))
    return reshape(found, (-1, found.shape[-1]))


@stands_for("scipy.linalg.diagsvd", numpy=3)
def _diagsvd(s, M, N):  # noqa: N803 - SciPy's names
    """SciPy's: the rectangular matrix of singular values."""
    s = operand(s)
    rows, columns, count = operator.index(M), operator.index(N), _last_length("diagsvd", s)
    if count not in (rows, columns):
        raise invalid("shape", f"diagsvd: {count} values for {rows} by {columns}")
    return pad(diag(s), ((0, rows - count), (0, columns - count)))


def _mirrors(what, turned):
    """Whether a matrix is its transpose, exactly or nearly."""

    def holds(a, atol=None, rtol=None):
        a = operand(a)
        if a.ndim != 2:
            raise invalid("rank", f"{what}: a has rank {a.ndim}; give a matrix")
        other = turned(a)
        if not atol and not rtol:
            return all(equal(a, other))
        return allclose(a, other, 0.0 if rtol is None else rtol, 0.0 if atol is None else atol)

    return stands_for(f"scipy.linalg.{what}", numpy=1)(holds)


_mirrors("issymmetric", lambda a: swapaxes(a, 0, 1))
_mirrors("ishermitian", lambda a: conjugate(swapaxes(a, 0, 1)))
