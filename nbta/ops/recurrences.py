"""Recurrences along an axis; the gradient of one is another one, in reverse."""

import numpy as np

from nbta import shapes
from nbta.codegen import scan_rules
from nbta.errors import invalid
from nbta.graph.spec import Spec
from nbta.ops.axis_arguments import keeping, numbers, one_axis, operand
from nbta.ops.dispatch import apply, define, exported
from nbta.ops.elementwise import conjugate, meet


def _evaluate_cumprod(x, *, axis, reverse):
    rows = np.moveaxis(x, axis, 0)[:: -1 if reverse else 1]
    result = np.ones(rows.shape, x.dtype)
    np.cumprod(rows[:-1], axis=0, out=result[1:])
    return np.moveaxis(result[:: -1 if reverse else 1], 0, axis)


def _cumprod_gradient(op, dy):
    axis, reverse = op.attrs["axis"], op.attrs["reverse"]
    inner = linear_recurrence(conjugate(op.inputs[0]), dy, axis, not reverse)
    return [inner * conjugate(op.outputs[0])]


EXCLUSIVE_CUMPROD = define(
    "ExclusiveCumProd",
    keeping(numbers),
    _evaluate_cumprod,
    _cumprod_gradient,
    emit=scan_rules.exclusive_cumprod,
)


@exported
def exclusive_cumprod(x, axis=-1, reverse=False, *, name=None):
    """Along an axis, the product of the elements before each one; in reverse, behind it.

    Examples
    --------
    >>> nbta.exclusive_cumprod([2.0, 3.0, 4.0])
    array([1., 2., 6.])
    """
    x = operand(x)
    attrs = {"axis": one_axis(x, axis), "reverse": bool(reverse)}
    return apply(EXCLUSIVE_CUMPROD, [x], attrs, name)


def _infer_recurrence(a, b, *, axis, reverse):
    try:
        shape = shapes.merge(a.shape, b.shape)
    except ValueError:
        message = f"a has shape {shapes.text(a.shape)} and b {shapes.text(b.shape)}; make them one"
        raise invalid("shape", message) from None
    return keeping(numbers)(Spec(a.dtype, shape), axis=axis)


def _evaluate_recurrence(a, b, *, axis, reverse):
    result = np.zeros(b.shape, b.dtype)
    rows, pushes, steps = (np.moveaxis(array, axis, 0) for array in (result, b, a))
    state = np.zeros((), b.dtype)
    for k in range(len(rows))[:: -1 if reverse else 1]:
        rows[k] = state
        state = steps[k] * state + pushes[k]
    return result


def _recurrence_gradient(op, dy):
    axis, reverse = op.attrs["axis"], op.attrs["reverse"]
    db = linear_recurrence(conjugate(op.inputs[0]), dy, axis, not reverse)
    return [db * conjugate(op.outputs[0]), db]


RECURRENCE = define(
    "LinearRecurrence",
    _infer_recurrence,
    _evaluate_recurrence,
    _recurrence_gradient,
    emit=scan_rules.recurrence,
)


@exported
def linear_recurrence(a, b, axis=-1, reverse=False, *, name=None):
    """Along an axis, ``u`` with ``u[0] = 0`` and ``u[k + 1] = a[k] * u[k] + b[k]``.

    In reverse it begins with 0 at the last one. Both tensors have one shape.

    Examples
    --------
    >>> nbta.linear_recurrence([2.0, 2.0, 2.0], [1.0, 1.0, 1.0])
    array([0., 1., 3.])
    """
    a, b = meet(a, b)
    attrs = {"axis": one_axis(b, axis), "reverse": bool(reverse)}
    return apply(RECURRENCE, [a, b], attrs, name)
