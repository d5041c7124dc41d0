"""Arguments that name axes, and the shape rules of what works along them."""

import operator

import numpy as np

from nbta import shapes
from nbta.errors import invalid
from nbta.graph.operation import Spec, Tensor, is_inexact
from nbta.ops.core.dispatch import as_array
from nbta.ops.core.shaping import cast


def operand(x, floats=False):
    """A tensor or an array, not copied; integers become floats where asked."""
    x = x if isinstance(x, Tensor) else as_array(x)
    return cast(x, np.float64) if floats and x.dtype.kind in "biu" else x


def axis_attrs(x, axis, **others):
    """Attributes with the axes as a sorted tuple from the first axis on, None for all.

    Where the rank is unknown, they are as the user gave them.
    """
    if axis is not None:
        axis = tuple(axis) if isinstance(axis, tuple | list) else (axis,)
        axis = within(integers(axis), x.spec.shape if isinstance(x, Tensor) else x.shape)
    return {"axis": axis, **others}


def integers(axis):
    """Axes as a tuple of integers."""
    try:
        return tuple(operator.index(one) for one in axis)
    except TypeError:
        message = f"axis: {axis} must be an integer, a tuple of integers or None"
        raise invalid("axis", message) from None


def within(axis, shape):
    """Axes counted from the first one; None for an axis is all of them."""
    if shape is None:
        return axis
    rank = len(shape)
    if axis is None:
        return tuple(range(rank))
    for one in axis:
        if not -rank <= one < rank:
            message = (
                f"axis: there is no axis {one} in rank {rank}, shape {shapes.text(shape)}; "
                + (f"axes are from {-rank} to {rank - 1}" if rank else "a scalar has no axes")
            )
            raise invalid("axis", message)
    found = sorted({one % rank for one in axis})
    if len(found) < len(axis):
        raise invalid("axis", f"axis: {axis} names an axis twice in rank {rank}")
    return tuple(found)


def one_axis(x, axis):
    """An axis argument that must be a single one, counted from the first where that is known."""
    found = axis_attrs(x, axis)["axis"]
    if found is None or len(found) != 1 or isinstance(axis, tuple | list):
        raise invalid("axis", f"axis: {axis} is not one axis; give an integer")
    return found[0]


def numbers(spec):
    """Refuse what is not a number."""
    if spec.dtype.kind not in "biu" and not is_inexact(spec.dtype):
        raise invalid("dtype", f"elements of {spec.dtype} are not numbers")


def ordered(spec):
    """Refuse what is not a number, and complex ones."""
    numbers(spec)
    if spec.dtype.kind == "c":
        message = "complex numbers have no order; use real, imag or abs first"
        raise invalid("dtype", message)


def nonempty(shape, axis):
    """Refuse axes of length 0, where the greatest or least is asked for."""
    for one in within(axis, shape) if shape is not None else ():
        if type(shape[one]) is int and shape[one] == 0:
            message = (
                f"axis {one} of shape {shapes.text(shape)} has length 0, and so no maximum or "
                "minimum; give an axis with elements"
            )
            raise invalid("empty", message)


def _reduced(shape, axis, keepdims):
    if shape is None:
        return () if axis is None and not keepdims else None
    axis = within(axis, shape)
    if keepdims:
        return tuple(1 if i in axis else dimension for i, dimension in enumerate(shape))
    return tuple(dimension for i, dimension in enumerate(shape) if i not in axis)


def reducing(result, check=numbers, empty=True):
    """A shape rule for reductions; ``result`` gives the dtype for that of the input."""

    def infer(spec, *, axis, keepdims=False):
        check(spec)
        if not empty:
            nonempty(spec.shape, axis)
        return Spec(result(spec.dtype), _reduced(spec.shape, axis, keepdims))

    return infer


def keeping(check=ordered):
    """A shape rule for what keeps the shape."""

    def infer(spec, *, axis, **_):
        check(spec)
        within(axis if axis is None or isinstance(axis, tuple) else (axis,), spec.shape)
        return Spec(spec.dtype, spec.shape)

    return infer
