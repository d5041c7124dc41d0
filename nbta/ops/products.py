"""Products of matrices and vectors, and axes in another order."""

import math

import numpy as np

from nbta import shapes
from nbta.codegen import join_rules, product_rules, shape_rules
from nbta.errors import invalid
from nbta.graph.spec import Spec
from nbta.ops.axis_arguments import integers, operand, within
from nbta.ops.dispatch import apply, define, exported
from nbta.ops.elementwise import conjugate, meet
from nbta.ops.half import narrow, widened
from nbta.ops.shaping import reshape, shape_of, unbroadcast


def _misfit(a, b, message):
    texts = f"shapes {shapes.text(a.shape)} and {shapes.text(b.shape)}"
    return invalid("matmul", f"{texts} {message}")


def _infer_matmul(a, b):
    if 0 in (a.rank, b.rank):
        raise _misfit(a, b, "are not both matrices or vectors; multiply scalars with *")
    if a.shape is None or b.shape is None:
        return Spec(a.dtype, None)
    inner = a.shape[-1], b.shape[-2:][0]
    if all(type(extent) is int for extent in inner) and inner[0] != inner[1]:
        message = f"do not multiply: the inner lengths {inner[0]} and {inner[1]} must be equal"
        raise _misfit(a, b, message)
    columns = b.shape[-1:] if b.rank > 1 else ()
    return Spec(a.dtype, (*_batch(a, b), *a.shape[-2:-1], *columns))


def _batch(a, b):
    """The axes before the matrices, broadcast."""
    try:
        return shapes.broadcast(a.shape[:-2], b.shape[:-2])
    except ValueError:
        message = "do not broadcast together in the axes before the last two"
        raise _misfit(a, b, message) from None


def _evaluate_matmul(a, b):
    return narrow(np.matmul(widened(a), widened(b)), a.dtype)


def _matmul_gradient(op, dy):
    a, b = op.inputs
    ranks = a.spec.rank, b.spec.rank
    if None in ranks:
        return _unranked_gradient(a, b, dy)
    if ranks[0] > 2 or ranks[1] > 2:
        return _batched_gradient(a, b, dy)
    x, y = conjugate(a), conjugate(b)
    if ranks == (2, 2):
        return [matmul(dy, transpose(y)), matmul(transpose(x), dy)]
    if ranks == (1, 2):
        return [matmul(y, dy), outer(x, dy)]
    if ranks == (2, 1):
        return [outer(dy, y), matmul(transpose(x), dy)]
    return [dy * y, dy * x]


def _unranked_gradient(a, b, dy):
    """The gradient where the run tells whether an operand is a vector."""
    x, y = as_matrix(conjugate(a), "row"), as_matrix(conjugate(b), "column")
    dy = reshape(dy, shape_of(matmul(x, y)))
    dx = unbroadcast(matmul(dy, swapaxes(y, -1, -2)), x)
    dy = unbroadcast(matmul(swapaxes(x, -1, -2), dy), y)
    return [reshape(dx, shape_of(a)), reshape(dy, shape_of(b))]


def _batched_gradient(a, b, dy):
    """Vectors become matrices of one row or column; sums go over batch axes that broadcast."""
    from nbta.ops.joining import expand_dims

    x, y = conjugate(a), conjugate(b)
    if a.spec.rank == 1:
        x, dy = expand_dims(x, 0), expand_dims(dy, -2)
    if b.spec.rank == 1:
        y, dy = expand_dims(y, 1), expand_dims(dy, -1)
    dx = unbroadcast(matmul(dy, swapaxes(y, -1, -2)), x)
    if y.spec.rank == 2 and _positive(y.spec.shape):
        # One product of matrices in place of a batch of them and its sum.
        rows = reshape(x, (-1, y.spec.shape[0])), reshape(dy, (-1, y.spec.shape[1]))
        dy = matmul(transpose(rows[0]), rows[1])
    else:
        dy = unbroadcast(matmul(swapaxes(x, -1, -2), dy), y)
    return [
        reshape(dx, shape_of(a)) if a.spec.rank == 1 else dx,
        reshape(dy, shape_of(b)) if b.spec.rank == 1 else dy,
    ]


def _positive(shape):
    return shapes.is_known(shape) and math.prod(shape) > 0


AS_MATRIX = define(
    "AsMatrix",
    lambda spec, *, side: Spec(spec.dtype, _matrix_shape(spec.shape, side)),
    lambda x, *, side: np.reshape(x, _matrix_shape(x.shape, side)),
    lambda op, dy: [reshape(dy, shape_of(op.inputs[0]))],
    emit=join_rules.as_matrix,
    total=True,
)


def _matrix_shape(shape, side):
    if shape is None or len(shape) != 1:
        return shape
    return (1, *shape) if side == "row" else (*shape, 1)


@exported
def as_matrix(x, side, *, name=None):
    """A vector as a matrix of one row or column; anything else as it is.

    Parameters
    ----------
    x : array-like or Tensor
    side : {"row", "column"}

    Examples
    --------
    >>> nbta.as_matrix([1, 2], "row")
    array([[1, 2]])
    """
    return apply(AS_MATRIX, [operand(x)], {"side": side}, name)


MATMUL = define(
    "MatMul",
    _infer_matmul,
    _evaluate_matmul,
    _matmul_gradient,
    emit=product_rules.matmul,
    total=True,
)


@exported
def matmul(a, b, *, name=None):
    """Product of matrices, by the rules of ``numpy.matmul``.

    Parameters
    ----------
    a, b : array-like or Tensor
        Of shape ``(..., n, k)`` and ``(..., k, m)``; the axes before the last two broadcast. A
        vector is one row on the left, one column on the right, and that axis is not in the result.

    Raises
    ------
    InvalidArgumentError
        For scalars, and for inner lengths that differ.

    Examples
    --------
    >>> nbta.matmul([[1, 2], [3, 4]], [10, 1])
    array([12, 34])
    """
    return apply(MATMUL, meet(a, b), name=name)


OUTER = define(
    "Outer",
    lambda a, b: Spec(a.dtype, (*a.shape, *b.shape)),
    np.outer,
    lambda op, dy: [
        matmul(dy, conjugate(op.inputs[1])),
        matmul(conjugate(op.inputs[0]), dy),
    ],
    emit=product_rules.outer,
    total=True,
)


@exported(numpy=2)
def outer(a, b, *, name=None):
    """Products of each element of ``a`` with each of ``b``: a matrix; both are flattened.

    Examples
    --------
    >>> nbta.outer([1, 2], [10, 1])
    array([[10,  1],
           [20,  2]])
    """
    vectors = [x if x.ndim == 1 else reshape(x, -1) for x in meet(a, b)]
    return apply(OUTER, vectors, name=name)


def _infer_transpose(spec, *, axes):
    if axes is None:
        return Spec(spec.dtype, None if spec.shape is None else spec.shape[::-1])
    if spec.shape is None:
        return Spec(spec.dtype, (None,) * len(axes))
    if len(axes) != spec.rank:
        message = (
            f"axes: {axes} has {len(axes)} axes, and shape {shapes.text(spec.shape)} {spec.rank}"
        )
        raise invalid("axis", message)
    return Spec(spec.dtype, tuple(spec.shape[axis] for axis in axes))


def _transpose_gradient(op, dy):
    axes = op.attrs["axes"]
    return [transpose(dy, None if axes is None else [axes.index(i) for i in range(len(axes))])]


TRANSPOSE = define(
    "Transpose",
    _infer_transpose,
    lambda x, *, axes: np.transpose(x, axes),
    _transpose_gradient,
    emit=shape_rules.transpose,
    total=True,
)


@exported(numpy=2)
def transpose(x, axes=None, *, name=None):
    """Axes in another order, by default the opposite one.

    Parameters
    ----------
    x : array-like or Tensor
    axes : tuple of int, optional
        Axis ``i`` of the result is axis ``axes[i]`` of ``x``.

    Raises
    ------
    InvalidArgumentError
        For axes that are not each axis of ``x`` once.

    Examples
    --------
    >>> nbta.transpose([[1, 2], [3, 4]])
    array([[1, 3],
           [2, 4]])
    """
    if axes is not None:
        axes = integers(axes)
        within(axes, (None,) * len(axes))
        axes = tuple(axis % len(axes) for axis in axes)
    return apply(TRANSPOSE, [operand(x)], {"axes": axes}, name)


def _infer_swapaxes(spec, *, a, b):
    if spec.shape is None:
        return spec
    (a,), (b,) = within((a,), spec.shape), within((b,), spec.shape)
    extents = list(spec.shape)
    extents[a], extents[b] = extents[b], extents[a]
    return Spec(spec.dtype, tuple(extents))


SWAPAXES = define(
    "SwapAxes",
    _infer_swapaxes,
    lambda x, *, a, b: np.swapaxes(x, a, b),
    lambda op, dy: [swapaxes(dy, **op.attrs)],
    emit=shape_rules.transpose,
    total=True,
)


@exported
def swapaxes(x, a, b, *, name=None):
    """Axis ``a`` in the place of axis ``b``, and the other way round.

    Raises
    ------
    InvalidArgumentError
        For an axis that is not there.

    Examples
    --------
    >>> nbta.swapaxes([[1, 2], [3, 4]], 0, -1)
    array([[1, 3],
           [2, 4]])
    """
    a, b = integers((a, b))
    return apply(SWAPAXES, [operand(x)], {"a": a, "b": b}, name)
