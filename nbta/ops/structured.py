"""Matrices that are made of blocks or of diagonals, as SciPy has them."""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING

import numpy as np

from nbta.errors import invalid
from nbta.ops.axis_arguments import operand
from nbta.ops.dispatch import exported
from nbta.ops.elementwise import conjugate, promoted
from nbta.ops.gathering import take
from nbta.ops.indexing import getitem
from nbta.ops.joining import concatenate, expand_dims, flip, pad

if TYPE_CHECKING:
    from nbta.typing import Array, ArrayLike


@exported(also="scipy.linalg.block_diag", numpy=math.inf)
def block_diag(*arrays: ArrayLike, name: str | None = None) -> Array:
    """A matrix with some matrices along its diagonal, and zeros elsewhere.

    Parameters
    ----------
    *arrays : array-like or Tensor
        Matrices; a vector is one row, a scalar one element.

    Raises
    ------
    InvalidArgumentError
        For nothing, and for more than two axes.

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
    """A matrix each of whose diagonals has one value.

    Parameters
    ----------
    c : array-like or Tensor
        The first column.
    r : array-like or Tensor, optional
        The first row, but for its first element, which is that of ``c``; by default the
        conjugate of ``c``.

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
