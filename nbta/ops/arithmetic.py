"""Elementwise arithmetic and comparison."""

import numpy as np

from nbta import shapes
from nbta.codegen import number_rules as rules
from nbta.errors import invalid
from nbta.graph.record import NotDifferentiable
from nbta.graph.spec import DATA, FLOW_SPEC, Spec
from nbta.ops.comparison import equal, greater, less
from nbta.ops.dispatch import apply, exported
from nbta.ops.elementwise import (
    binary,
    broadcast_shape,
    broadcasting,
    conjugate,
    define_elementwise,
    meet,
    unary,
)
from nbta.ops.filling import zeros_like
from nbta.ops.shaping import cast, unbroadcast


@binary("Add", np.add, lambda x, y, z, dz: (dz, dz), emit=rules.add, quick=True)
def add(x, y, *, name=None):
    """Sum of two tensors, elementwise with broadcasting.

    Examples
    --------
    >>> nbta.add([1, 2], 10)
    array([11, 12])
    """


def _numbers(*specs):
    """Shape rule of operations that truth values do not have."""
    if specs[0].dtype.kind == "b":
        raise invalid("dtype", "truth values have no difference or negative; cast them first")
    return broadcasting(*specs)


@binary(
    "Sub", np.subtract, lambda x, y, z, dz: (dz, -dz), infer=_numbers, emit="{} - {}", quick=True
)
def subtract(x, y, *, name=None):
    """Difference of two tensors, elementwise with broadcasting.

    Examples
    --------
    >>> nbta.subtract([1, 2], 10)
    array([-9, -8])
    """


@binary(
    "Mul",
    np.multiply,
    lambda x, y, z, dz: (dz * conjugate(y), dz * conjugate(x)),
    emit=rules.multiply,
    quick=True,
)
def multiply(x, y, *, name=None):
    """Product of two tensors, elementwise with broadcasting.

    Examples
    --------
    >>> nbta.multiply([1, 2], 10)
    array([10, 20])
    """


def _divide_gradient(x, y, z, dz):
    dx = dz / conjugate(y)
    return dx, -dx * conjugate(z)


@binary("Div", np.true_divide, _divide_gradient, floats=True, emit=rules.divide)
def divide(x, y, *, name=None):
    """Quotient of two tensors, elementwise with broadcasting; integers are divided as floats.

    Examples
    --------
    >>> nbta.divide([1, 2], 4)
    array([0.25, 0.5 ])
    """


def counted(*specs):
    """Shape rule: quotients of truth values are int8, by NumPy's rules."""
    found = broadcasting(*specs)
    return Spec(np.dtype(np.int8), found.shape) if found.dtype.kind == "b" else found


def _not_complex(op):
    """NumPy has no such function of complex numbers; integers divided by 0 give 0."""
    return op.inputs[0].dtype.kind != "c"


@binary(
    "FloorDiv",
    np.floor_divide,
    NotDifferentiable("it is constant but for its steps"),
    infer=counted,
    emit=rules.floor_divide,
    total=_not_complex,
)
def floor_divide(x, y, *, name=None):
    """Quotient rounded down, elementwise with broadcasting.

    Examples
    --------
    >>> nbta.floor_divide([7, -7], 2)
    array([ 3, -4])
    """


@binary(
    "Mod",
    np.mod,
    lambda x, y, z, dz: (dz, -dz * floor_divide(x, y)),
    infer=counted,
    emit=rules.modulo,
    total=_not_complex,
)
def mod(x, y, *, name=None):
    """Remainder of floor division, with the sign of ``y``, elementwise with broadcasting.

    Examples
    --------
    >>> nbta.mod([7, -7], 4)
    array([3, 1])
    """


def _pick_gradient(chosen):
    """Gradient of minimum and maximum: to the one that was taken, half to each of equals."""

    def gradient(x, y, z, dz):
        first = cast(chosen(x, y), dz.dtype) + 0.5 * cast(equal(x, y), dz.dtype)
        return dz * first, dz * (1 - first)

    return gradient


@binary(
    "Minimum", np.minimum, _pick_gradient(lambda x, y: less(x, y)), emit=rules.minimum, quick=True
)
def minimum(x, y, *, name=None):
    """The lesser of two, elementwise with broadcasting; equal ones share the gradient.

    Examples
    --------
    >>> nbta.minimum([1, 5], 3)
    array([1, 3])
    """


@binary(
    "Maximum",
    np.maximum,
    _pick_gradient(lambda x, y: greater(x, y)),
    emit=rules.maximum,
    quick=True,
)
def maximum(x, y, *, name=None):
    """The greater of two, elementwise with broadcasting; equal ones share the gradient.

    Examples
    --------
    >>> nbta.maximum([1, 5], 3)
    array([3, 5])
    """


NEGATIVE = define_elementwise(
    "Neg", _numbers, np.negative, lambda op, dy: [-dy], emit="-{}", quick=True
)


@exported
def negative(x, *, name=None):
    """The values with the other sign.

    Examples
    --------
    >>> nbta.negative([1, -2])
    array([-1,  2])
    """
    return apply(NEGATIVE, meet(x), name=name)


@unary("Square", np.square, lambda x, y: 2 * x, floats=False, emit=rules.square, quick=True)
def square(x, *, name=None):
    """The square of each element.

    Examples
    --------
    >>> nbta.square([1, -3])
    array([1, 9])
    """


def _infer_where(condition, x, y):
    if condition.dtype.kind != "b":
        message = f"condition: must be truth values, not {condition.dtype}; compare it first"
        raise invalid("dtype", message)
    return Spec(x.dtype, broadcast_shape(condition, x, y))


def _where_gradient(op, dz):
    condition, x, y = op.inputs
    nothing = zeros_like(dz)
    return [
        None,
        unbroadcast(where(condition, dz, nothing), x),
        unbroadcast(where(condition, nothing, dz), y),
    ]


WHERE = define_elementwise(
    "Where", _infer_where, np.where, _where_gradient, emit="({1} if {0} else {2})", quick=True
)


@exported(numpy=3)
def where(condition, x, y, *, name=None):
    """``x`` where the condition holds, else ``y``, with broadcasting.

    Parameters
    ----------
    condition : array-like or Tensor of bool
    x, y : array-like or Tensor

    Raises
    ------
    InvalidArgumentError
        For a condition that is not boolean.

    Examples
    --------
    >>> nbta.where([True, False], 1.0, 2.0)
    array([1., 2.])
    """
    return apply(WHERE, [condition, *meet(x, y)], name=name)


@exported(numpy=3)
def clip(x, low, high, *, name=None):
    """The values limited to ``[low, high]``; None sets no limit.

    Examples
    --------
    >>> nbta.clip([-1.0, 0.5, 3.0], 0, 1)
    array([0. , 0.5, 1. ])
    """
    if low is None and high is None:
        return meet(x)[0]
    if low is None:
        return minimum(x, high, name=name)
    return maximum(x, low, name=name) if high is None else minimum(maximum(x, low), high, name=name)


def _infer_add_n(*specs):
    if all(spec.kind != DATA for spec in specs):
        return FLOW_SPEC
    shape = None
    try:
        for spec in specs:
            shape = shapes.merge(shape, spec.shape)
    except ValueError:
        raise _unlike(*(spec.shape for spec in specs)) from None
    return Spec(specs[0].dtype, shape)


def _unlike(*found):
    texts = ", ".join(map(shapes.text, found))
    return invalid("shape", f"shapes {texts} are not one; broadcast them first, or use +")


def _evaluate_add_n(*values):
    total = values[0]
    for value in values[1:]:
        if value.shape != total.shape:
            raise _unlike(*map(np.shape, values))
        total = total + value
    return total


ADD_N = define_elementwise(
    "AddN",
    _infer_add_n,
    _evaluate_add_n,
    lambda op, dy: [dy] * len(op.inputs),
    emit=rules.ADD_N,
    quick=True,
)


@exported
def add_n(values, *, name=None):
    """Sum of tensors of one shape; of flows, the flow that comes after all of them.

    Raises
    ------
    InvalidArgumentError
        For nothing, and for tensors of several shapes.

    Examples
    --------
    >>> nbta.add_n([[1, 2], [10, 20]])
    array([11, 22])
    """
    values = list(values)
    if not values:
        raise invalid("value", "add_n: there is nothing to add; give one tensor at least")
    return values[0] if len(values) == 1 else apply(ADD_N, meet(*values), name=name)


@exported(numpy=1)
def real(x, *, name=None):
    """The real part.

    Examples
    --------
    >>> nbta.real([1 + 2j])
    array([1.])
    """
    return apply(REAL, meet(x), name=name)


@exported(numpy=1)
def imag(x, *, name=None):
    """The imaginary part.

    Examples
    --------
    >>> nbta.imag([1 + 2j])
    array([2.])
    """
    return apply(IMAG, meet(x), name=name)


@exported(also="conjugate")
def conj(x, *, name=None):
    """The complex conjugate.

    Examples
    --------
    >>> nbta.conj([1 + 2j])
    array([1.-2.j])
    """
    return conjugate(meet(x)[0])


def _infer_part(spec):
    return Spec(np.empty(0, spec.dtype).real.dtype, spec.shape)


def _part_gradient(unit):
    def gradient(op, dy):
        if op.inputs[0].dtype.kind == "c":
            return [cast(dy, op.inputs[0].dtype) * unit]
        return [dy if unit == 1 else zeros_like(dy)]

    return gradient


REAL = define_elementwise("Real", _infer_part, np.real, _part_gradient(1), emit=rules.real)
IMAG = define_elementwise("Imag", _infer_part, np.imag, _part_gradient(1j), emit=rules.imag)
