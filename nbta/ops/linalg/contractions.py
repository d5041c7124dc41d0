"""Products of vectors, matrices and tensors by NumPy's other names: all are products of two."""

from __future__ import annotations

import math
import operator
import string
from typing import TYPE_CHECKING

from nbta.errors import invalid
from nbta.ops.axes.reductions import sum as sum_
from nbta.ops.core.arithmetic import multiply, subtract
from nbta.ops.core.axis_arguments import integers, one_axis, operand
from nbta.ops.core.dispatch import data_spec, exported, stands_for
from nbta.ops.core.elementwise import conjugate, promoted
from nbta.ops.core.shaping import broadcast_to, reshape, shape
from nbta.ops.indexing.items import getitem
from nbta.ops.indexing.joining import squeeze, stack
from nbta.ops.indexing.transposing import swapaxes, transpose
from nbta.ops.linalg.lu import eye_like, inv, solve
from nbta.ops.linalg.products import as_matrix, einsum, matmul, outer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nbta.typing import Array, ArrayLike


def _ranks(what, *tensors):
    """Ranks, which must be known."""
    ranks = tuple(tensor.ndim for tensor in tensors)
    if None in ranks:
        raise invalid("rank", f"{what}: the ranks must be known; reshape the operands first")
    return ranks


@exported(numpy=2)
def vdot(a: ArrayLike, b: ArrayLike, *, name: str | None = None) -> Array:
    """Sum of the products of all elements, ``a`` being conjugated, as `numpy.vdot`.

    Parameters
    ----------
    a, b : array-like or Tensor
        Numbers, as many in each, of any shapes.

    Returns
    -------
    Tensor or numpy.ndarray
        A scalar in the promoted dtype.

    Raises
    ------
    InvalidArgumentError
        For different numbers of elements.

    Examples
    --------
    >>> nbta.vdot([[1, 2], [3, 4]], [[1, 0], [0, 1]])
    np.int64(5)
    """
    a, b = promoted(a, b)
    return matmul(reshape(conjugate(a), -1), reshape(b, -1), name=name)


@exported
def vecdot(a: ArrayLike, b: ArrayLike, axis: int = -1, *, name: str | None = None) -> Array:
    """Dot product along an axis, ``a`` being conjugated, as `numpy.vecdot`.

    Parameters
    ----------
    a, b : array-like or Tensor
        Vectors along the axis; other axes broadcast.
    axis : int, default -1
        The summed axis, counted in the shape of each operand.

    Returns
    -------
    Tensor or numpy.ndarray
        Of the broadcast shape without the axis, in the promoted dtype.

    Raises
    ------
    InvalidArgumentError
        For shapes that do not broadcast.

    Examples
    --------
    >>> nbta.vecdot([[1, 2], [3, 4]], [1, 10])
    array([21, 43])
    """
    a, b = (_last(one, axis) for one in promoted(a, b))
    return sum_(multiply(conjugate(a), b), -1, name=name)


def _last(x, axis):
    """An array with an axis, counted in it alone, as its last one."""
    axis = one_axis(x, axis)
    rank = x.ndim
    if axis == -1 or axis + 1 == rank:
        return x
    return transpose(x, [*(k for k in range(rank) if k != axis), axis])


@stands_for("linalg.vecdot", numpy=2)
def _vecdot(a, b, /, *, axis=-1):
    return vecdot(a, b, axis)


@exported(numpy=2)
def inner(a: ArrayLike, b: ArrayLike, *, name: str | None = None) -> Array:
    """Inner product over the last axes of two tensors, as `numpy.inner`.

    Parameters
    ----------
    a, b : array-like or Tensor
        Numbers, whose last axes have one length; a scalar multiplies the other operand.

    Returns
    -------
    Tensor or numpy.ndarray
        Of the shape of ``a`` without its last axis, followed by that of ``b`` without its last
        axis.

    Raises
    ------
    InvalidArgumentError
        For last axes of different lengths, and for an unknown rank.

    Examples
    --------
    >>> nbta.inner([[1, 2], [3, 4]], [10, 1])
    array([12, 34])
    """
    a, b = promoted(a, b)
    if 0 in _ranks("inner", a, b):
        return multiply(a, b, name=name)
    return tensordot(a, b, (-1, -1), name=name)


@exported(also="linalg.tensordot", numpy=3)
def tensordot(
    a: ArrayLike,
    b: ArrayLike,
    axes: int | Sequence[int | Sequence[int]] = 2,
    *,
    name: str | None = None,
) -> Array:
    """Sums of products over some axes of both.

    Parameters
    ----------
    a, b : array-like or Tensor
    axes : int or pair
        So many last axes of ``a`` and first ones of ``b``, or those of ``a`` and those of ``b``.

    Returns
    -------
    Tensor or numpy.ndarray
        With the axes of ``a`` that are left, then those of ``b``.

    Raises
    ------
    InvalidArgumentError
        For axes that are not there or not as many, lengths that differ, and an unknown rank.

    Examples
    --------
    >>> nbta.tensordot([[1, 2], [3, 4]], [10, 1], 1)
    array([12, 34])
    """
    a, b = promoted(a, b)
    ranks = _ranks("tensordot", a, b)
    of_a, of_b = _contracted(axes, *ranks)
    left, right = string.ascii_lowercase[: ranks[0]], list(string.ascii_uppercase[: ranks[1]])
    for one, other in zip(of_a, of_b, strict=True):
        right[other] = left[one]
    result = [letter for letter in (*left, *right) if (letter in left) != (letter in right)]
    return einsum(f"{left},{''.join(right)}->{''.join(result)}", a, b, name=name)


def _contracted(axes, rank_a, rank_b):
    """Axes of both, from the first."""
    if hasattr(axes, "__index__"):
        count = operator.index(axes)
        axes = range(rank_a - count, rank_a), range(count)
        if not 0 <= count <= min(rank_a, rank_b):
            raise invalid("axis", f"axes: {count} axes of ranks {rank_a} and {rank_b}")
    pair = [(one,) if hasattr(one, "__index__") else tuple(one) for one in axes]
    if len(pair) != 2 or len(pair[0]) != len(pair[1]):
        raise invalid("axis", f"axes: {axes} must be two lists of one length")
    return [_placed(integers(one), rank) for one, rank in zip(pair, (rank_a, rank_b), strict=True)]


def _placed(axes, rank):
    """Axes from the first, in their order."""
    for axis in axes:
        if not -rank <= axis < rank:
            raise invalid("axis", f"axes: there is no axis {axis} in rank {rank}")
    found = [axis % rank for axis in axes]
    if len(set(found)) < len(found):
        raise invalid("axis", f"axes: {tuple(axes)} names an axis twice in rank {rank}")
    return found


@exported(also="linalg.matrix_power", numpy=2)
def matrix_power(a: ArrayLike, n: int, *, name: str | None = None) -> Array:
    """Square matrices to an integer power, as `numpy.linalg.matrix_power`.

    Parameters
    ----------
    a : array-like or Tensor
        Matrices ``(..., m, m)``.
    n : int
        The power, a number of Python; negative powers invert the matrix first.

    Returns
    -------
    Tensor or numpy.ndarray
        Of the shape of ``a``.

    Raises
    ------
    InvalidArgumentError
        For a power that is not a Python integer, and for a negative power of a singular matrix.

    Examples
    --------
    >>> nbta.matrix_power([[1, 1], [0, 1]], 5)
    array([[1, 5],
           [0, 1]])
    """
    try:
        n = operator.index(n)
    except (TypeError, ValueError):
        message = f"n must be a Python integer, not {n}; else write a loop of products"
        raise invalid("value", message) from None
    a = operand(a)
    if n == 0:
        return eye_like(a, name=name)
    a, found = inv(a) if n < 0 else a, None
    for digit in bin(abs(n))[2:]:
        found = found if found is None else matmul(found, found)
        if digit == "1":
            found = a if found is None else matmul(found, a)
    return found


@exported(numpy=2)
def cross(
    a: ArrayLike,
    b: ArrayLike,
    axisa: int = -1,
    axisb: int = -1,
    axisc: int = -1,
    axis: int | None = None,
    *,
    name: str | None = None,
) -> Array:
    """Vector products.

    Parameters
    ----------
    a, b : array-like or Tensor
        With vectors of length 3, or 2 for ones in a plane, along ``axisa`` and ``axisb``; other
        axes broadcast.
    axisa, axisb, axisc : int
        Where vectors are in ``a``, ``b`` and the result.
    axis : int, optional
        All three.

    Returns
    -------
    Tensor or numpy.ndarray
        Of two vectors in a plane what stands upright on it, without an axis.

    Raises
    ------
    InvalidArgumentError
        For vectors of another length or an unknown one.

    Examples
    --------
    >>> nbta.cross([1, 0, 0], [0, 1, 0])
    array([0, 0, 1])
    """
    a, b = promoted(a, b)
    if axis is not None:
        axisa = axisb = axisc = axis
    (x, in_plane), (y, others) = _components(a, axisa), _components(b, axisb)
    upright = subtract(multiply(x[0], y[1]), multiply(x[1], y[0]))
    if in_plane and others:
        return upright
    first = subtract(multiply(x[1], y[2]), multiply(x[2], y[1]))
    second = subtract(multiply(x[2], y[0]), multiply(x[0], y[2]))
    parts = [broadcast_to(part, shape(upright)) for part in (first, second, upright)]
    return stack(parts, axis=axisc, name=name)


def _components(x, axis):
    """Three components of vectors, and whether the last is 0 as they are in a plane."""
    (rank,) = _ranks("cross", x)
    (axis,) = _placed(integers((axis,)), rank)
    length = operator.index(x.shape[axis])
    if length not in (2, 3):
        raise invalid("shape", f"cross: axis {axis} has the length {length}, not 2 or 3")
    before = (slice(None),) * axis
    parts = [getitem(x, (*before, k)) for k in range(length)]
    return (parts, False) if len(parts) == 3 else ([*parts, multiply(parts[0], 0)], True)


@stands_for("linalg.cross", numpy=2)
def _cross(x1, x2, /, *, axis=-1):
    return cross(x1, x2, axis=axis)


@exported(also="linalg.multi_dot", numpy=1)
def multi_dot(arrays: Sequence[ArrayLike], *, name: str | None = None) -> Array:
    """Product of several matrices, in the cheapest order, as `numpy.linalg.multi_dot`.

    Parameters
    ----------
    arrays : sequence of array-like or Tensor
        Two or more matrices; the first and the last may be vectors. Lengths that are not known
        before the run count as equal when the order is chosen.

    Returns
    -------
    Tensor or numpy.ndarray
        The product, in the promoted dtype.

    Raises
    ------
    InvalidArgumentError
        For fewer than two, for other ranks, and for lengths that do not fit together.

    Examples
    --------
    >>> nbta.multi_dot([[1, 2], [[1, 2], [3, 4]], [10, 1]])
    np.int64(80)
    """
    arrays = promoted(*arrays)
    ranks = _ranks("multi_dot", *arrays)
    if len(arrays) < 2 or set(ranks[1:-1]) - {2} or {ranks[0], ranks[-1]} - {1, 2}:
        message = "give two matrices or more; only the first and the last may be vectors"
        raise invalid("rank", f"multi_dot: ranks {ranks}; {message}")
    first, *inside, last = arrays
    chain = [as_matrix(first, "row"), *inside, as_matrix(last, "column")]
    found = _chained(chain, _cheapest(_lengths(chain)), 0, len(chain) - 1)
    gone = tuple(axis for axis, rank in ((0, ranks[0]), (1, ranks[-1])) if rank == 1)
    return squeeze(found, gone, name=name) if gone else found


#: What a length counts as that only the run tells.
_USUAL = 64


def _lengths(chain):
    dimensions = [data_spec(x).shape for x in chain]
    found = [dimensions[0][0], *(pair[1] for pair in dimensions)]
    return [n if type(n) is int else _USUAL for n in found]


def _cheapest(lengths):
    """Where to part each stretch of a chain (Cormen et al., Introduction to Algorithms, 14.2)."""
    count = len(lengths) - 1
    cost, parted = {(i, i): 0 for i in range(count)}, {}
    for span in range(1, count):
        for i in range(count - span):
            j = i + span
            ways = {
                k: cost[i, k] + cost[k + 1, j] + lengths[i] * lengths[k + 1] * lengths[j + 1]
                for k in range(i, j)
            }
            parted[i, j] = min(ways, key=ways.get)
            cost[i, j] = ways[parted[i, j]]
    return parted


def _chained(chain, parted, i, j):
    if i == j:
        return chain[i]
    k = parted[i, j]
    return matmul(_chained(chain, parted, i, k), _chained(chain, parted, k + 1, j))


@stands_for("linalg.outer", numpy=2)
def _outer(x1, x2, /):
    if (operand(x1).ndim, operand(x2).ndim) != (1, 1):
        raise invalid("rank", "linalg.outer: give two vectors; nbta.outer flattens others")
    return outer(x1, x2)


@stands_for("linalg.matrix_transpose", numpy=1)
def _matrix_transpose(x, /):
    return swapaxes(x, -1, -2)


@stands_for("matvec")
def _matvec(x1, x2, /):
    """NumPy's: matrices times vectors, of which both may be many."""
    a, b = promoted(x1, x2)
    return getitem(matmul(a, getitem(b, (..., None))), (..., 0))


@stands_for("vecmat")
def _vecmat(x1, x2, /):
    """NumPy's: conjugated vectors times matrices."""
    a, b = promoted(x1, x2)
    return getitem(
        matmul(getitem(conjugate(a), (..., None, slice(None))), b), (..., 0, slice(None))
    )


def _dimension(dimensions):
    """How many items there are along axes, which Python must know."""
    return math.prod(map(operator.index, dimensions))


@stands_for("linalg.tensorsolve", numpy=3)
def _tensorsolve(a, b, axes=None):
    """NumPy's: the last axes of a tensor are those of the solution."""
    a, b = promoted(a, b, floats=True)
    rank, right = _ranks("tensorsolve", a, b)
    if axes is not None:
        last = _placed(integers(axes), rank)
        a = transpose(a, [*(k for k in range(rank) if k not in last), *last])
    wanted = tuple(map(operator.index, a.shape[right:]))
    count = _dimension(b.shape)
    if math.prod(wanted) != count:
        message = f"tensorsolve: there are {count} equations for {math.prod(wanted)} items"
        raise invalid("shape", message)
    found = solve(reshape(a, (count, count)), reshape(b, (count,)))
    return reshape(found, wanted)


@stands_for("linalg.tensorinv", numpy=2)
def _tensorinv(a, ind=2):
    """NumPy's: the inverse of a tensor as a map from its last axes to its first ones."""
    (ind,), a = integers((ind,)), operand(a)
    _ranks("tensorinv", a)
    if ind <= 0:
        raise invalid("value", f"tensorinv: ind must be 1 or more, not {ind}")
    first, last = (tuple(map(operator.index, part)) for part in (a.shape[:ind], a.shape[ind:]))
    if math.prod(first) != math.prod(last):
        message = f"tensorinv: axes of {math.prod(first)} and {math.prod(last)} items; give ind="
        raise invalid("shape", message)
    return reshape(inv(reshape(a, (math.prod(first), -1))), (*last, *first))
