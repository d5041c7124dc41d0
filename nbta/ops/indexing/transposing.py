"""Axes in another order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nbta import shapes
from nbta.codegen.values import product, times, total
from nbta.errors import invalid
from nbta.graph.operation import Spec
from nbta.loops import assign, over
from nbta.ops.core.axis_arguments import integers, operand, within
from nbta.ops.core.dispatch import apply, define, exported
from nbta.ops.core.shaping import emit_identity

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nbta.typing import Array, ArrayLike

__all__ = ["swapaxes", "transpose"]


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


def _emit_transpose(code, op) -> None:
    """Axes in another order; the transpose of a matrix is made when somebody needs it."""
    rank = op.inputs[0].spec.rank
    if "axes" in op.attrs:
        axes = op.attrs["axes"] or tuple(range(rank))[::-1]
    else:
        axes = list(range(rank))
        a, b = op.attrs["a"] % rank, op.attrs["b"] % rank
        axes[a], axes[b] = axes[b], axes[a]
    if tuple(axes) == tuple(range(rank)):
        return emit_identity(code, op)
    if rank == 2:
        return code.bind_turned(op)
    return _move_axes(code, op, axes)


def _move_axes(code, op, axes):
    x = code.value(op.inputs[0])
    dimensions = tuple(x.dimensions[axis] for axis in axes)
    block = code.result(op, dimensions=dimensions)
    names = [code.name("i") for _ in axes]
    steps = [product(x.dimensions[axis + 1 :]) for axis in axes]
    out = [product(dimensions[k + 1 :]) for k in range(len(axes))]
    source = total(*(times(i, step) for i, step in zip(names, steps, strict=True)))
    target = total(*(times(i, step) for i, step in zip(names, out, strict=True)))
    code.nested(
        [over(i, e) for i, e in zip(names, dimensions, strict=True)],
        assign(block.at(target), x.at(source)),
    )


TRANSPOSE = define(
    "Transpose",
    _infer_transpose,
    lambda x, *, axes: np.transpose(x, axes),
    _transpose_gradient,
    emit=_emit_transpose,
    total=True,
    linear=(0,),
    moves=True,
)


@exported(numpy=2)
def transpose(x: ArrayLike, axes: Sequence[int] | None = None, *, name: str | None = None) -> Array:
    """``x`` with its axes in another order, as `numpy.transpose`.

    Parameters
    ----------
    x : array-like or Tensor
        Elements of any dtype.
    axes : tuple of int, optional
        Axis ``i`` of the result is axis ``axes[i]`` of ``x``; by default the order is reversed.

    Returns
    -------
    Tensor or numpy.ndarray
        The same elements, with the axes in another order.

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
    dimensions = list(spec.shape)
    dimensions[a], dimensions[b] = dimensions[b], dimensions[a]
    return Spec(spec.dtype, tuple(dimensions))


SWAPAXES = define(
    "SwapAxes",
    _infer_swapaxes,
    lambda x, *, a, b: np.swapaxes(x, a, b),
    lambda op, dy: [swapaxes(dy, **op.attrs)],
    emit=_emit_transpose,
    total=True,
    linear=(0,),
    moves=True,
)


@exported(numpy=3)
def swapaxes(x: ArrayLike, a: int, b: int, *, name: str | None = None) -> Array:
    """``x`` with two axes exchanged, as `numpy.swapaxes`.

    Parameters
    ----------
    x : array-like or Tensor
        Elements of any dtype.
    a, b : int
        The two axes.

    Returns
    -------
    Tensor or numpy.ndarray
        The same elements, with the axes in another order.

    Raises
    ------
    InvalidArgumentError
        For an axis that ``x`` does not have.

    Examples
    --------
    >>> nbta.swapaxes([[1, 2], [3, 4]], 0, -1)
    array([[1, 3],
           [2, 4]])
    """
    a, b = integers((a, b))
    return apply(SWAPAXES, [operand(x)], {"a": a, "b": b}, name)
