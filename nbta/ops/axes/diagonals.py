"""Diagonals, and what is beside them: taken, made, cut off."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING

import numpy as np

from nbta.dtypes import as_dtype
from nbta.errors import invalid
from nbta.graph.operation import Tensor
from nbta.ops.axes.reductions import sum as sum_
from nbta.ops.core.arithmetic import equal, greater_equal, maximum, minimum, where
from nbta.ops.core.axis_arguments import integers
from nbta.ops.core.dispatch import data_spec, exported, stands_for
from nbta.ops.core.filling import arange, zeros
from nbta.ops.core.shaping import cast, reshape
from nbta.ops.indexing.arranging import counted, moveaxis, ranked
from nbta.ops.indexing.gathering import scatter_add, take

if TYPE_CHECKING:
    from nbta.typing import Array, ArrayLike, DTypeLike, Integer

__all__ = ["diag", "diagflat", "diagonal", "eye", "trace", "tri", "triu"]


def _length(rows, columns, offset):
    """How many items a diagonal has."""
    rows, columns = (rows + offset, columns) if offset < 0 else (rows, columns - offset)
    if type(rows) is type(columns) is int:
        return max(0, min(rows, columns))
    return maximum(0, minimum(rows, columns))


@exported(numpy=4)
def diagonal(
    x: ArrayLike, offset: int = 0, axis1: int = 0, axis2: int = 1, *, name: str | None = None
) -> Array:
    """The items whose index along one axis is that along another, and ``offset`` more.

    Parameters
    ----------
    x : array-like or Tensor
    offset : int, optional
        Positive above the main diagonal, negative below.
    axis1, axis2 : int, optional

    Returns
    -------
    Tensor or numpy.ndarray
        The two axes are gone, and a last one has the diagonal.

    Raises
    ------
    InvalidArgumentError
        For axes that are not there or the same.

    Examples
    --------
    >>> nbta.diagonal([[1, 2], [3, 4]])
    array([1, 4])
    """
    x, (offset,) = ranked(x), integers((offset,))
    if x.ndim < 2:
        raise invalid("rank", f"a tensor of rank {x.ndim} has no matrix; give two axes or more")
    if (axis1, axis2) not in ((x.ndim - 2, x.ndim - 1), (-2, -1)):
        x = moveaxis(x, (axis1, axis2), (-2, -1))
    *outer, rows, columns = x.shape
    first = offset if offset >= 0 else -offset * columns
    square = not offset and data_spec(x).shape[-2] == data_spec(x).shape[-1] is not None
    count = rows if square else _length(rows, columns, offset)
    numbers = first + arange(count) * (columns + 1)
    return take(reshape(x, (*outer, rows * columns)), numbers, -1, name=name)


@exported(numpy=4)
def trace(
    x: ArrayLike, offset: int = 0, axis1: int = 0, axis2: int = 1, *, name: str | None = None
) -> Array:
    """Sum along a diagonal, as `numpy.trace`.

    Parameters
    ----------
    x, offset, axis1, axis2
        As for `nbta.diagonal`.

    Returns
    -------
    Tensor or numpy.ndarray
        Of the shape of ``x`` without the two axes.

    Raises
    ------
    InvalidArgumentError
        As `nbta.diagonal`.

    Examples
    --------
    >>> nbta.trace([[1, 2], [3, 4]])
    np.int64(5)
    """
    return sum_(diagonal(x, offset, axis1, axis2), -1, name=name)


@exported(numpy=2)
def diag(x: ArrayLike, k: int = 0, *, name: str | None = None) -> Array:
    """The diagonal of a matrix, or a matrix with a given diagonal, as `numpy.diag`.

    Parameters
    ----------
    x : array-like or Tensor
        A matrix, or a vector to put on the diagonal of a matrix of zeros.
    k : int, default 0
        Which diagonal: 0 is the main one, positive numbers are above it, negative ones below.

    Returns
    -------
    Tensor or numpy.ndarray
        A vector for a matrix, and a square matrix for a vector, in the dtype of ``x``.

    Raises
    ------
    InvalidArgumentError
        For another rank than 1 or 2.

    Examples
    --------
    >>> nbta.diag([1, 2])
    array([[1, 0],
           [0, 2]])
    >>> nbta.diag([[1, 2], [3, 4]])
    array([1, 4])
    """
    x, (k,) = ranked(x), integers((k,))
    if x.ndim == 2:
        return diagonal(x, k, name=name)
    if x.ndim != 1:
        raise invalid("rank", f"diag is for vectors and matrices, not for rank {x.ndim}")
    size = x.shape[0] + abs(k)
    numbers = max(k, -k * size) + arange(x.shape[0]) * (size + 1)
    return reshape(scatter_add(zeros(size * size, x.dtype), numbers, x), (size, size), name=name)


@exported(numpy=2)
def diagflat(x: ArrayLike, k: int = 0, *, name: str | None = None) -> Array:
    """A matrix with the flattened elements of a tensor on its diagonal, as `numpy.diagflat`.

    Parameters
    ----------
    x : array-like or Tensor
        The elements, of any shape.
    k : int, default 0
        Which diagonal; see `nbta.diag`.

    Returns
    -------
    Tensor or numpy.ndarray
        A square matrix in the dtype of ``x``.

    Examples
    --------
    >>> nbta.diagflat([[1, 2]])
    array([[1, 0],
           [0, 2]])
    """
    return diag(reshape(x, (-1,)), k, name=name)


def _offsets(rows, columns):
    """The numbers of columns, and those of rows below each other."""
    return arange(columns), reshape(arange(rows), (-1, 1))


def _lengths(n, m):
    return n, n if m is None else m


@exported(numpy=4)
def eye(
    n: Integer,
    m: Integer | None = None,
    k: int = 0,
    dtype: DTypeLike = np.float64,
    *,
    name: str | None = None,
) -> Array:
    """Ones on a diagonal and zeros elsewhere, as `numpy.eye`.

    Parameters
    ----------
    n : int or Tensor of rank 0
        Number of rows.
    m : int or Tensor of rank 0, optional
        Number of columns; n by default.
    k : int, default 0
        Which diagonal: 0 is the main one, positive numbers are above it, negative ones below.
    dtype : dtype-like, default float64
        Dtype of the result.

    Returns
    -------
    Tensor or numpy.ndarray
        A matrix of n rows and m columns.

    Examples
    --------
    >>> nbta.eye(2)
    array([[1., 0.],
           [0., 1.]])
    """
    n, m = _lengths(n, m)
    columns, rows = _offsets(counted("n", n), counted("m", m))
    return cast(equal(columns, rows + k), as_dtype(dtype), name=name)


def _number(k):
    """Which diagonal it is."""
    if not isinstance(k, Tensor) and np.asarray(k).dtype.kind == "f":
        raise invalid("dtype", f"k: {k} is not an integer; give the number of a diagonal")
    return k


@exported(numpy=4)
def tri(
    n: Integer,
    m: Integer | None = None,
    k: int = 0,
    dtype: DTypeLike = np.float64,
    *,
    name: str | None = None,
) -> Array:
    """Ones on a diagonal and below it, and zeros above it, as `numpy.tri`.

    Parameters
    ----------
    n, m, k, dtype
        As for `nbta.eye`.

    Returns
    -------
    Tensor or numpy.ndarray
        A matrix of n rows and m columns.

    Examples
    --------
    >>> nbta.tri(2)
    array([[1., 0.],
           [1., 1.]])
    """
    columns, rows = _offsets(*_lengths(n, m))
    return cast(greater_equal(rows + _number(k), columns), as_dtype(dtype), name=name)


@exported(numpy=2)
def triu(x: ArrayLike, k: int = 0, *, name: str | None = None) -> Array:
    """The upper triangle of matrices, as `numpy.triu`.

    Parameters
    ----------
    x : array-like or Tensor
        Matrices ``(..., m, n)``.
    k : int, default 0
        Diagonal below which elements become 0.

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
    >>> nbta.triu([[1, 2], [3, 4]])
    array([[1, 2],
           [0, 4]])
    """
    x = ranked(x)
    if x.ndim < 2:
        raise invalid("rank", f"a tensor of rank {x.ndim} has no matrix; give two axes or more")
    columns, rows = _offsets(*x.shape[-2:])
    return where(greater_equal(columns, rows + _number(k)), x, np.zeros((), x.dtype), name=name)


@stands_for("linalg.diagonal", numpy=1)
def _diagonals(x, offset=0):
    """NumPy's, of the matrices in the last two axes."""
    return diagonal(x, offset, -2, -1)


@stands_for("linalg.trace", numpy=1)
def _traces(x, offset=0, dtype=None):
    """NumPy's, of the matrices in the last two axes."""
    return sum_(diagonal(x, offset, -2, -1), -1, dtype=dtype)


def _square(x):
    """The length of the axes of a matrix, which Python must know."""
    lengths = {operator.index(n) for n in ranked(x).shape}
    if len(lengths) != 1 or x.ndim < 2:
        raise invalid("shape", "give an array all of whose axes have one length, two at least")
    return lengths.pop()


@stands_for("diag_indices_from", numpy=1)
def _diag_indices_from(arr):
    return np.diag_indices(_square(arr), ranked(arr).ndim)


def _matrix(x):
    x = ranked(x)
    if x.ndim != 2:
        raise invalid("rank", f"of rank {x.ndim}; give a matrix")
    return map(operator.index, x.shape)


@stands_for("tril_indices_from", numpy=2)
def _tril_indices_from(arr, k=0):
    rows, columns = _matrix(arr)
    return np.tril_indices(rows, k, columns)


@stands_for("triu_indices_from", numpy=2)
def _triu_indices_from(arr, k=0):
    rows, columns = _matrix(arr)
    return np.triu_indices(rows, k, columns)
