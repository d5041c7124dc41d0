"""Elementwise arithmetic, comparison and logic."""

from __future__ import annotations

import operator
from functools import reduce
from typing import TYPE_CHECKING

import numpy as np

from nbta import shapes
from nbta.codegen.fusion import Elementwise, ElementwiseOf, as_it_is, by_kind, calling, complex_only
from nbta.errors import invalid
from nbta.graph.graph import is_adjoint
from nbta.graph.operation import DATA, FLOW_SPEC, NO_FACTS, NotDifferentiable, Spec, Tensor
from nbta.loops import Expression, call, negated, select
from nbta.loops.nodes import ONE, ZERO
from nbta.ops.core.descriptions import COUNTED, NUMBERS, POWERS, SIGNED, TRUTHS
from nbta.ops.core.dispatch import CONSTANT, apply, data_spec, exported, stands_for
from nbta.ops.core.elementwise import (
    CONJ,
    INTEGER,
    binary,
    broadcast_shape,
    broadcasting,
    conjugate,
    define_elementwise,
    floats_only,
    promoted,
    real_only,
    truth,
    unary,
)
from nbta.ops.core.filling import zeros_like
from nbta.ops.core.shaping import CAST, cast, unbroadcast

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nbta.ops.core.dispatch import F
    from nbta.typing import Array, ArrayLike


def _compare(name, evaluate, rule, kinds="biuf") -> Callable[[F], F]:
    """A comparison; complex numbers are compared in Python, as NumPy does."""
    rule = Elementwise(rule, kinds)
    return binary(name, evaluate, INTEGER, infer=truth, emit=rule, cheap=True)


@_compare("Less", np.less, operator.lt)
def less(x: ArrayLike, y: ArrayLike, *, name: str | None = None) -> Array:
    """Whether ``x < y``, element by element, as `numpy.less`.

    Examples
    --------
    >>> nbta.less([1, 5], 3)
    array([ True, False])
    """


@_compare("LessEqual", np.less_equal, operator.le)
def less_equal(x: ArrayLike, y: ArrayLike, *, name: str | None = None) -> Array:
    """Whether ``x <= y``, element by element, as `numpy.less_equal`.

    Examples
    --------
    >>> nbta.less_equal([1, 3], 3)
    array([ True,  True])
    """


@_compare("Greater", np.greater, operator.gt)
def greater(x: ArrayLike, y: ArrayLike, *, name: str | None = None) -> Array:
    """Whether ``x > y``, element by element, as `numpy.greater`.

    Examples
    --------
    >>> nbta.greater([1, 5], 3)
    array([False,  True])
    """


@_compare("GreaterEqual", np.greater_equal, operator.ge)
def greater_equal(x: ArrayLike, y: ArrayLike, *, name: str | None = None) -> Array:
    """Whether ``x >= y``, element by element, as `numpy.greater_equal`.

    Examples
    --------
    >>> nbta.greater_equal([1, 3], 3)
    array([False,  True])
    """


@_compare("Equal", np.equal, Expression.equals, "biufc")
def equal(x: ArrayLike, y: ArrayLike, *, name: str | None = None) -> Array:
    """Whether ``x == y``, element by element, as `numpy.equal`.

    Examples
    --------
    >>> nbta.equal([1, 3], 3)
    array([False,  True])
    """


@_compare("NotEqual", np.not_equal, Expression.differs, "biufc")
def not_equal(x: ArrayLike, y: ArrayLike, *, name: str | None = None) -> Array:
    """Whether ``x != y``, element by element, as `numpy.not_equal`.

    Examples
    --------
    >>> nbta.not_equal([1, 3], 3)
    array([ True, False])
    """


@_compare("LogicalAnd", np.logical_and, operator.and_, "b")
def logical_and(x: ArrayLike, y: ArrayLike, *, name: str | None = None) -> Array:
    """Whether both operands are true, element by element, as `numpy.logical_and`.

    Examples
    --------
    >>> nbta.logical_and([True, True], [True, False])
    array([ True, False])
    """


@_compare("LogicalOr", np.logical_or, operator.or_, "b")
def logical_or(x: ArrayLike, y: ArrayLike, *, name: str | None = None) -> Array:
    """Whether at least one operand is true, element by element, as `numpy.logical_or`.

    Examples
    --------
    >>> nbta.logical_or([True, False], [False, False])
    array([ True, False])
    """


@_compare("LogicalXor", np.logical_xor, Expression.differs, "b")
def logical_xor(x: ArrayLike, y: ArrayLike, *, name: str | None = None) -> Array:
    """Whether exactly one operand is true, element by element, as `numpy.logical_xor`.

    Examples
    --------
    >>> nbta.logical_xor([True, True], [True, False])
    array([False,  True])
    """


LOGICAL_NOT = define_elementwise(
    "LogicalNot", truth, np.logical_not, INTEGER, emit=Elementwise(negated, "b"), cheap=True
)


@exported(family=TRUTHS)
def logical_not(x: ArrayLike, *, name: str | None = None) -> Array:
    """Whether each element is false, as `numpy.logical_not`.

    Examples
    --------
    >>> nbta.logical_not([True, False])
    array([False,  True])
    """
    return apply(LOGICAL_NOT, promoted(x), name=name)


@binary(
    "Add",
    np.add,
    lambda x, y, z, dz: (dz, dz),
    emit=by_kind(operator.or_, operator.add),
    cheap=True,
    spreads=True,
)
def add(x: ArrayLike, y: ArrayLike, *, name: str | None = None) -> Array:
    """Sum of two operands, element by element, as `numpy.add`.

    Examples
    --------
    >>> nbta.add([1, 2], 10)
    array([11, 12])
    """


def numbers(*specs):
    """Shape rule of operations that truth values do not have."""
    if specs[0].dtype.kind == "b":
        raise invalid("dtype", "booleans have no difference, negative or sign; cast them first")
    return broadcasting(*specs)


@binary(
    "Sub",
    np.subtract,
    lambda x, y, z, dz: (dz, lambda: -dz),
    infer=numbers,
    family=SIGNED,
    emit=Elementwise(operator.sub, is_plain=True),
    cheap=True,
    spreads=True,
)
def subtract(x: ArrayLike, y: ArrayLike, *, name: str | None = None) -> Array:
    """Difference ``x - y``, element by element, as `numpy.subtract`.

    Examples
    --------
    >>> nbta.subtract([1, 2], 10)
    array([-9, -8])
    """


def _evaluate_scale(adjoint, factor, *, both=False):
    return scaled((adjoint, factor), (True, both))


def scaled(factors, adjoints):
    """The product of two arrays; zero where one of those that are adjoints is."""
    product = np.multiply(*factors)
    if not np.isnan(product.sum()):  # a look at the sum takes a tenth of one at each item
        return product
    for factor, is_one in zip(factors, adjoints, strict=True):
        if is_one:
            product = np.where(factor == 0, np.zeros((), product.dtype), product)
    return product


def _scale_gradient(op, dz):
    """Of the adjoint by the same rule, to any order; by the factor both are adjoints."""
    adjoint, factor = op.inputs
    both = {"both": True}
    by_adjoint = apply(SCALE, [dz, conjugate(factor)], op.attrs)
    by_factor = apply(SCALE, [dz, conjugate(adjoint)], both)
    return [unbroadcast(by_adjoint, adjoint), unbroadcast(by_factor, factor)]


def _emit_scale(op, adjoint, factor):
    return emit_product(op, (adjoint, factor), (True, op.attrs.get("both", False)))


def emit_product(op, items, adjoints):
    """The product of two items; zero where one of those that are adjoints is."""
    one, other = items
    found = one & other if op.outputs[0].dtype.kind == "b" else one * other
    for item, is_one in zip(items, adjoints, strict=True):
        found = _emit_guarded(op, item, found) if is_one else found
    return found


def _emit_guarded(op, adjoint, value):
    """What is computed of an adjoint; 0 where that is 0."""
    real = all(tensor.dtype == op.outputs[0].dtype for tensor in op.inputs[:2])
    if real and op.outputs[0].dtype.char in "fd":
        return call("guarded", adjoint, value)
    return select(adjoint.equals(0), 0, value)


def _infer_scale(adjoint, factor, *, both=False):
    return broadcasting(adjoint, factor)


#: The product of an adjoint and a derivative in gradient rules. An adjoint that is exactly zero
#: stays zero, whatever the derivative is: nothing depends on that operation, as where a branch or
#: `where` did not take it (strong zeros, as Enzyme has them). With ``both``, either of them is one.
SCALE = define_elementwise(
    "Scale",
    _infer_scale,
    _evaluate_scale,
    _scale_gradient,
    emit=ElementwiseOf(_emit_scale, "fc"),
    cheap=True,
    spreads=True,
)


def _infer_scale_back(adjoint, divisor):
    return broadcasting(adjoint, divisor)


def _evaluate_scale_back(adjoint, divisor):
    quotient = np.true_divide(adjoint, divisor)
    return np.where(adjoint == 0, np.zeros((), adjoint.dtype), quotient)


def _scale_back_gradient(op, dz):
    adjoint, divisor = op.inputs
    by_adjoint = apply(SCALE_BACK, [dz, conjugate(divisor)])
    scaled = apply(SCALE, [by_adjoint, conjugate(op.outputs[0])], {"both": True})
    return [unbroadcast(by_adjoint, adjoint), unbroadcast(-scaled, divisor)]


#: The same of an adjoint that is divided.
SCALE_BACK = define_elementwise(
    "ScaleBack",
    _infer_scale_back,
    _evaluate_scale_back,
    _scale_back_gradient,
    emit=ElementwiseOf(
        lambda op, adjoint, divisor: _emit_guarded(op, adjoint, _emit_divide(op, adjoint, divisor)),
        "fc",
    ),
    spreads=True,
)


def is_finite(value):
    """Whether numbers are known to be finite, for one reason or another that is easily seen."""
    if not isinstance(value, Tensor):
        return bool(np.isfinite(value).all())
    record, inputs = value.op.record, value.op.inputs
    if value.dtype.kind not in "fc":
        return True
    if record is CONSTANT:
        return bool(np.isfinite(value.op.attrs["value"]).all())
    return (record.moves or record in (CAST, NEGATIVE, CONJ)) and all(map(is_finite, inputs))


def _scaled(x, y):
    """A product, where one of the operands is an adjoint; None where it is an ordinary one."""
    if is_adjoint(x) and is_adjoint(y):
        return apply(SCALE, [x, y], {"both": True})
    adjoint, factor = (x, y) if is_adjoint(x) else (y, x)
    if not is_adjoint(adjoint) or is_finite(factor):
        return None
    return _by(adjoint, factor, SCALE, multiply)


def _scaled_back(x, y):
    return _by(x, y, SCALE_BACK, divide) if is_adjoint(x) else None


def _by(adjoint, factor, record, combined):
    """An adjoint by one more factor.

    Where it has one already, the two are combined first: a derivative that is zero, as ``0 * inf``
    is in a product of three, is no adjoint that is zero.
    """
    op = adjoint.op
    if op.inputs and is_adjoint(op.inputs[0]):
        if op.record is NEGATIVE:
            return negative(_by(op.inputs[0], factor, record, combined))
        if op.record is SCALE:
            return apply(SCALE, [op.inputs[0], combined(op.inputs[1], factor)])
    return apply(record, [adjoint, factor])


@binary(
    "Mul",
    np.multiply,
    lambda x, y, z, dz: (lambda: dz * conjugate(y), lambda: dz * conjugate(x)),
    of_adjoints=_scaled,
    emit=by_kind(operator.and_, operator.mul),
    cheap=True,
    spreads=True,
)
def multiply(x: ArrayLike, y: ArrayLike, *, name: str | None = None) -> Array:
    """Product of two operands, element by element, as `numpy.multiply`.

    Examples
    --------
    >>> nbta.multiply([1, 2], 10)
    array([10, 20])
    """


def _divide_gradient(x, y, z, dz):
    dx = dz / conjugate(y)
    return dx, lambda: -dx * conjugate(z)


def _divide_tangent(op, dx, dy):
    """By the quotient, so that there is one more division: the gradient's rule has two."""
    y, z = op.inputs[1], op.outputs[0]
    if dy is None:
        return [dx / y]
    change = dy * z
    return [(-change if dx is None else dx - change) / y]


def _emit_divide(op, one, other):
    """Quotients; Numba's own of complex numbers raises for 0."""
    kind = op.inputs[0].dtype.kind
    return call("complex_divide", one, other) if kind == "c" else one / other


@binary(
    "Div",
    np.true_divide,
    _divide_gradient,
    floats=True,
    of_adjoints=_scaled_back,
    emit=ElementwiseOf(_emit_divide),
    spreads=True,
    tangent=_divide_tangent,
)
def divide(x: ArrayLike, y: ArrayLike, *, name: str | None = None) -> Array:
    """Quotient ``x / y``, element by element, as `numpy.divide`.

    Examples
    --------
    >>> nbta.divide([1, 2], 4)
    array([0.25, 0.5 ])
    """


@unary(
    "Reciprocal",
    np.reciprocal,
    lambda x, y: -square(y),
    floats=False,
    family=POWERS,
    emit=ElementwiseOf(lambda op, x: _emit_divide(op, ONE, x), "fc"),
)
def reciprocal(x: ArrayLike, *, name: str | None = None) -> Array:
    """One over each element, as `numpy.reciprocal`; the reciprocal of an integer is an integer.

    Examples
    --------
    >>> nbta.reciprocal([2.0, -4.0])
    array([ 0.5 , -0.25])
    """


def counted(*specs):
    """Shape rule: quotients of truth values are int8, by NumPy's rules."""
    found = broadcasting(*specs)
    return Spec(np.dtype(np.int8), found.shape) if found.dtype.kind == "b" else found


def real_counted(*specs):
    """Shape rule of remainders: of real numbers, int8 of truth values; x // 0 is 0 for integers."""
    return real_only(*specs) if specs[0].dtype.kind == "c" else counted(*specs)


@binary(
    "FloorDiv",
    np.floor_divide,
    NotDifferentiable("it is piecewise constant"),
    infer=real_counted,
    family=COUNTED,
    emit=Elementwise(calling("floor_divide"), "iuf"),
)
def floor_divide(x: ArrayLike, y: ArrayLike, *, name: str | None = None) -> Array:
    """Quotient rounded down, element by element, as `numpy.floor_divide`; it has no gradient.

    Examples
    --------
    >>> nbta.floor_divide([7, -7], 2)
    array([ 3, -4])
    """


@binary(
    "Mod",
    np.mod,
    lambda x, y, z, dz: (dz, -dz * floor_divide(x, y)),
    infer=real_counted,
    family=COUNTED,
    emit=Elementwise(calling("modulo"), "iuf"),
)
def mod(x: ArrayLike, y: ArrayLike, *, name: str | None = None) -> Array:
    """Remainder of floor division, with the sign of ``y``, element by element, as `numpy.mod`.

    Examples
    --------
    >>> nbta.mod([7, -7], 4)
    array([3, 1])
    """


@stands_for("divmod")
def _divmod(x, y):
    """Quotient rounded down, and what is left."""
    return floor_divide(x, y), mod(x, y)


@stands_for("positive")
def _positive(x):
    """The values as they are, of what has a sign."""
    (x,) = promoted(x)
    numbers(data_spec(x))
    return x


def _pick_gradient(chosen):
    """Gradient of minimum and maximum: to the one that was taken, half to each of equals.

    It is chosen, and no product: that of ``sqrt(maximum(x, 0))`` comes as infinite where ``x`` is
    not taken.
    """

    def gradient(x, y, z, dz):
        first, half = chosen(x, y), where(equal(x, y), 0.5 * dz, 0.0)
        return where(first, dz, half), where(first, 0.0, where(equal(x, y), half, dz))

    return gradient


@binary(
    "Minimum",
    np.minimum,
    _pick_gradient(lambda x, y: less(x, y)),
    emit=Elementwise(calling("minimum"), "biuf"),
    cheap=True,
    spreads=True,
)
def minimum(x: ArrayLike, y: ArrayLike, *, name: str | None = None) -> Array:
    """The smaller of two elements, as `numpy.minimum`; equal elements share the gradient.

    Examples
    --------
    >>> nbta.minimum([1, 5], 3)
    array([1, 3])
    """


@binary(
    "Maximum",
    np.maximum,
    _pick_gradient(lambda x, y: greater(x, y)),
    emit=Elementwise(calling("maximum"), "biuf"),
    cheap=True,
    spreads=True,
)
def maximum(x: ArrayLike, y: ArrayLike, *, name: str | None = None) -> Array:
    """The larger of two elements, as `numpy.maximum`; equal elements share the gradient.

    Examples
    --------
    >>> nbta.maximum([1, 5], 3)
    array([3, 5])
    """


NEGATIVE = define_elementwise(
    "Neg",
    numbers,
    np.negative,
    lambda op, dy: [-dy],
    emit=Elementwise(operator.neg, is_plain=True),
    cheap=True,
    linear=(0,),
)


@exported(family=SIGNED)
def negative(x: ArrayLike, *, name: str | None = None) -> Array:
    """The negative of each element, as `numpy.negative`.

    Examples
    --------
    >>> nbta.negative([1, -2])
    array([-1,  2])
    """
    return apply(NEGATIVE, promoted(x), name=name)


@unary(
    "Square",
    np.square,
    lambda x, y: 2 * x,
    floats=False,
    family=POWERS,
    emit=by_kind(as_it_is, lambda x: x * x),
    cheap=True,
    spreads=True,
)
def square(x: ArrayLike, *, name: str | None = None) -> Array:
    """The square of each element, as `numpy.square`.

    Examples
    --------
    >>> nbta.square([1, -3])
    array([1, 9])
    """


def _infer_where(condition, x, y, *, facts=NO_FACTS):
    if condition.dtype.kind != "b":
        message = f"condition must hold booleans, not {condition.dtype}; compare first"
        raise invalid("dtype", message)
    return Spec(x.dtype, broadcast_shape(condition, x, y))


def _evaluate_where(condition, x, y, *, facts=NO_FACTS):
    return np.where(condition, x, y)


def _where_gradient(op, dz):
    condition, x, y = op.inputs
    nothing = zeros_like(dz)
    return [
        None,
        unbroadcast(where(condition, dz, nothing), x),
        unbroadcast(where(condition, nothing, dz), y),
    ]


def _where_tangent(op, _, dx, dy):
    condition, *values = op.inputs
    nothing = np.zeros((), values[0].dtype)
    return [where(condition, *(nothing if given is None else given for given in (dx, dy)))]


def _emit_where(op, condition, x, y):
    number = op.outputs[0].spec.rank == 0 and op.outputs[0].dtype.kind == "f"
    if number and _is_zero(op.inputs[1]):
        return call("unless", condition, y)
    if op.facts.keeps_item:
        return call("chosen", condition, x, y)
    return select(condition, x, y)


def is_choice_of_compared(op):
    """Whether a choice is between the two values that are compared for it: a minimum or maximum."""
    condition, *ways = op.inputs
    return set(condition.op.inputs) == set(ways)


def _is_zero(tensor):
    """Whether a number is known to be 0, and not -0."""
    value = tensor.op.attrs["value"] if tensor.op.record is CONSTANT else None
    return value is not None and value == 0 and not np.signbit(value)


WHERE = define_elementwise(
    "Where",
    _infer_where,
    _evaluate_where,
    _where_gradient,
    emit=ElementwiseOf(_emit_where),
    cheap=True,
    spreads=lambda op, place: place > 0,
    tangent=_where_tangent,
)


@exported(numpy=3)
def where(
    condition: ArrayLike,
    x: ArrayLike | None = None,
    y: ArrayLike | None = None,
    *,
    name: str | None = None,
) -> Array:
    """``x`` where a condition holds, else ``y``, as `numpy.where`.

    Parameters
    ----------
    condition : array-like or Tensor of bool
        Which of the two to take.
    x, y : array-like or Tensor
        The values, of shapes that broadcast with the condition.

    Returns
    -------
    Tensor or numpy.ndarray
        Of the broadcast shape, in the promoted dtype of ``x`` and ``y``.

    Raises
    ------
    InvalidArgumentError
        For a condition that is not boolean. Without ``x`` and ``y``, since the number of places
        where a condition holds is not known before the run.

    Examples
    --------
    >>> nbta.where([True, False], 1.0, 2.0)
    array([1., 2.])
    """
    if x is None or y is None:
        message = (
            "where: with one argument it gives the indices at which that holds, and only the run "
            "knows their number; choose with where(condition, x, y), add up with sum(x, "
            "where=condition), or count with count_nonzero"
        )
        raise invalid("symbolic", message)
    return apply(WHERE, [condition, *promoted(x, y)], name=name)


@exported(numpy=3)
def clip(
    x: ArrayLike,
    low: ArrayLike | None = None,
    high: ArrayLike | None = None,
    *,
    min: ArrayLike | None = None,  # NumPy's names
    max: ArrayLike | None = None,
    a_min: ArrayLike | None = None,
    a_max: ArrayLike | None = None,
    name: str | None = None,
) -> Array:
    """Values limited to the range from ``low`` to ``high``, as `numpy.clip`.

    Parameters
    ----------
    x : array-like or Tensor
        Real numbers.
    low, high : array-like or Tensor, optional
        Limits, of shapes that broadcast with ``x``; None is no limit. Where ``low`` is larger than
        ``high``, the result is ``high``.
    min, max, a_min, a_max : array-like or Tensor, optional
        NumPy's other names of the limits.

    Returns
    -------
    Tensor or numpy.ndarray
        Of the broadcast shape, in the promoted dtype.

    Examples
    --------
    >>> nbta.clip([-1.0, 0.5, 3.0], 0, 1)
    array([0. , 0.5, 1. ])
    """
    low, high = _one_of(low, min, a_min), _one_of(high, max, a_max)
    if low is None and high is None:
        return promoted(x)[0]
    if low is None:
        return minimum(x, high, name=name)
    return maximum(x, low, name=name) if high is None else minimum(maximum(x, low), high, name=name)


def _one_of(*values):
    """The first that is given."""
    return next((value for value in values if value is not None), None)


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
    return invalid("shape", f"shapes {texts} differ; broadcast them first, or use +")


def _evaluate_add_n(*values):
    total = values[0]
    for value in values[1:]:
        if value.shape != total.shape:
            raise _unlike(*map(np.shape, values))
        total = total + value
    return total


#: Of a line of source: Python's parser, and what goes through its trees, take a longer sum for a
#: tree as deep as it has terms.
_TERMS = 64


class _EmitAddN(ElementwiseOf):
    """A sum of values of one shape, which are not broadcast."""

    def __init__(self):
        super().__init__(
            lambda op, *items: reduce(operator.or_ if _is_truth(op) else operator.add, items)
        )

    def __call__(self, code, op):
        first, *others = map(code.dimensions, op.inputs)
        for dimensions in others:
            for mine, theirs in zip(first, dimensions, strict=True):
                code.equate(mine, theirs)
        super().__call__(code, op)

    def shortened(self, op, items, keep):
        """The last terms, after the sum of those before."""
        items = items[::-1]
        while len(items) > _TERMS:
            first = [items.pop() for _ in range(_TERMS)]
            items.append(keep(self._rule(op, *first)))
        return items[::-1]


def _is_truth(op):
    return op.inputs[0].dtype.kind == "b"


ADD_N = define_elementwise(
    "AddN",
    _infer_add_n,
    _evaluate_add_n,
    lambda op, dy: [dy] * len(op.inputs),
    emit=_EmitAddN(),
    cheap=True,
    spreads=True,
    tangent=lambda op, *given: [add_n([tangent for tangent in given if tangent is not None])],
)


@exported
def add_n(values: Sequence[ArrayLike] | Array, *, name: str | None = None) -> Array:
    """Sum of several tensors of one shape, or one flow that comes after several flows.

    Parameters
    ----------
    values : sequence of array-like or Tensor, or Tensor
        What to add up; of one tensor, its parts along the first axis. Or a sequence of flows.

    Returns
    -------
    Tensor or numpy.ndarray
        Of the shape of each of the values, in the promoted dtype.

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
        raise invalid("value", "add_n: there is nothing to add; give at least one tensor")
    return values[0] if len(values) == 1 else apply(ADD_N, promoted(*values), name=name)


@exported(numpy=1)
def real(x: ArrayLike, *, name: str | None = None) -> Array:
    """The real part of each element, as `numpy.real`.

    Parameters
    ----------
    x : array-like or Tensor
        Real or complex numbers, of any shape.

    Returns
    -------
    Tensor or numpy.ndarray
        Of the shape of ``x``: float32 for complex64, float64 for complex128, else ``x`` itself.

    Examples
    --------
    >>> nbta.real([1 + 2j])
    array([1.])
    """
    return apply(REAL, promoted(x), name=name)


@exported(numpy=1)
def imag(x: ArrayLike, *, name: str | None = None) -> Array:
    """The imaginary part of each element, as `numpy.imag`.

    Parameters
    ----------
    x : array-like or Tensor
        Real or complex numbers, of any shape.

    Returns
    -------
    Tensor or numpy.ndarray
        Of the shape of ``x``: float32 for complex64, float64 for complex128; zeros for real
        numbers.

    Examples
    --------
    >>> nbta.imag([1 + 2j])
    array([2.])
    """
    return apply(IMAG, promoted(x), name=name)


@exported(also="conjugate", family=NUMBERS)
def conj(x: ArrayLike, *, name: str | None = None) -> Array:
    """The complex conjugate of each element, as `numpy.conjugate`.

    Examples
    --------
    >>> nbta.conj([1 + 2j])
    array([1.-2.j])
    """
    return conjugate(promoted(x)[0])


def _infer_part(spec):
    return Spec(np.empty(0, spec.dtype).real.dtype, spec.shape)


def _real_gradient(op, dy):
    return [cast(dy, op.inputs[0].dtype)]


def _imag_gradient(op, dy):
    zeros = zeros_like(dy)
    return [complex_of(zeros, dy) if op.inputs[0].dtype.kind == "c" else zeros]


REAL = define_elementwise(
    "Real",
    _infer_part,
    np.real,
    _real_gradient,
    emit=complex_only(lambda x: x.real, as_it_is),
    linear=(0,),
)
IMAG = define_elementwise(
    "Imag",
    _infer_part,
    np.imag,
    _imag_gradient,
    emit=complex_only(lambda x: x.imag, lambda x: ZERO),
    linear=(0,),
)


def _infer_complex(real, imag):
    found = floats_only(real, imag)
    return Spec(np.result_type(found.dtype, np.complex64), found.shape)


def _evaluate_complex(real, imag):
    shape = np.broadcast_shapes(np.shape(real), np.shape(imag))
    found = np.empty(shape, np.result_type(real, np.complex64))
    found.real, found.imag = real, imag
    return found


#: Of ``real + 1j * imag``, infinite and undefined parts would leave nothing of the other one.
COMPLEX = define_elementwise(
    "Complex",
    _infer_complex,
    _evaluate_complex,
    lambda op, dy: [unbroadcast(f(dy), x) for f, x in zip((real, imag), op.inputs, strict=True)],
    emit=Elementwise(calling("complex"), "f"),
    linear=(0, 1),
)


def complex_of(real, imag):
    """Complex numbers of their real and imaginary parts, as TensorFlow's ``tf.complex``."""
    return apply(COMPLEX, promoted(real, imag, floats=True))
