"""Elementary functions of one argument."""

from __future__ import annotations

import math
import operator
import os
from functools import reduce
from typing import TYPE_CHECKING

import numpy as np

from nbta.codegen.fusion import (
    Elementary,
    Elementwise,
    ElementwiseOf,
    as_it_is,
    by_kind,
    calling,
    numpy_name,
    parts_of,
)
from nbta.codegen.values import Scalar, product, typed
from nbta.graph.operation import NotDifferentiable, Spec
from nbta.loops import accumulate, assign, call, over
from nbta.ops.core.arithmetic import (
    SCALE,
    counted,
    divide,
    equal,
    greater,
    numbers,
    square,
    where,
)
from nbta.ops.core.descriptions import POWERS, SIGNED
from nbta.ops.core.dispatch import CONSTANT, apply, exported
from nbta.ops.core.elementwise import (
    INTEGER,
    binary,
    conjugate,
    define_elementwise,
    from_scipy,
    promoted,
    real_only,
    truth,
    unary,
)
from nbta.ops.core.filling import ones_like, zeros_like
from nbta.ops.core.shaping import cast
from nbta.tuning import MOST_HALVES

if TYPE_CHECKING:
    from collections.abc import Callable

    from nbta.ops.core.dispatch import F
    from nbta.typing import Array, ArrayLike

STEPS = NotDifferentiable("it is piecewise constant")


def _levelling_off(name, evaluate, derivative, **options) -> Callable[[F], F]:
    """`unary` of a function that is flat at infinity: however fast one comes there, it stays."""

    def tangent(op, dx):
        return [apply(SCALE, [dx, derivative(op.inputs[0], op.outputs[0])], {"both": True})]

    return unary(name, evaluate, derivative, tangent=tangent, **options)


@_levelling_off("Exp", np.exp, lambda x, y: y, emit=Elementary("exp", "complex_exp"), spreads=True)
def exp(x: ArrayLike, *, name: str | None = None) -> Array:
    """Exponential of each element, as `numpy.exp`.

    Examples
    --------
    >>> nbta.exp([0.0, 1.0])
    array([1.        , 2.71828183])
    """


@_levelling_off("Expm1", np.expm1, lambda x, y: y + 1, emit=Elementary("expm1", "complex_expm1"))
def expm1(x: ArrayLike, *, name: str | None = None) -> Array:
    """``exp(x) - 1``, accurate near 0, as `numpy.expm1`.

    Examples
    --------
    >>> nbta.expm1([0.0, 1e-12])
    array([0.e+00, 1.e-12])
    """


@unary("Log", np.log, lambda x, y: 1 / x, emit=Elementary("log", "complex_log"), spreads=True)
def log(x: ArrayLike, *, name: str | None = None) -> Array:
    """Natural logarithm, as `numpy.log`.

    Examples
    --------
    >>> nbta.log([1.0, 2.0])
    array([0.        , 0.69314718])
    """


@unary(
    "Log2",
    np.log2,
    lambda x, y: 1 / (x * math.log(2)),
    emit=Elementary("log2", "complex_log2", compiled=math.log2),
)
def log2(x: ArrayLike, *, name: str | None = None) -> Array:
    """Logarithm to base 2, as `numpy.log2`.

    Examples
    --------
    >>> nbta.log2([1.0, 8.0])
    array([0., 3.])
    """


@unary(
    "Log10",
    np.log10,
    lambda x, y: 1 / (x * math.log(10)),
    emit=Elementary("log10", "complex_log10", compiled=math.log10),
)
def log10(x: ArrayLike, *, name: str | None = None) -> Array:
    """Logarithm to base 10, as `numpy.log10`.

    Examples
    --------
    >>> nbta.log10([1.0, 1000.0])
    array([0., 3.])
    """


@_levelling_off(
    "Exp2",
    np.exp2,
    lambda x, y: math.log(2) * y,
    infer=real_only,
    emit=Elementary("exp2"),
)
def exp2(x: ArrayLike, *, name: str | None = None) -> Array:
    """2 to the power of each element, as `numpy.exp2`.

    Examples
    --------
    >>> nbta.exp2([0.0, 3.0])
    array([1., 8.])
    """


def _power_gradient(x, y, z, dz):
    """0**0 is 1 and flat in its base; the exponent of 0 has no slope either way."""

    def by_base():
        known = y.op.attrs["value"][()] if y.op.record is CONSTANT else None
        if known is not None and np.all(known != 0):  # so is the exponent of the slope
            return dz * conjugate(y * power(x, known - known.dtype.type(1)))
        return base_gradient(x, y, z, dz)

    return by_base, lambda: exponent_gradient(x, z, dz)


def base_gradient(x, y, z, dz):
    """Of powers by the base."""
    zero_power = equal(y, 0)
    base = where(zero_power, ones_like(x), x)
    return dz * conjugate(where(zero_power, zeros_like(z), y * power(base, y - 1)))


def exponent_gradient(x, z, dz):
    """Of powers by the exponent, which are ``z``."""
    positive = where(equal(x, 0), ones_like(x), x)
    if x.dtype.kind != "c":
        positive = where(greater(x, 0), positive, ones_like(x))
    return dz * conjugate(z * log(positive))


def _not_signed(op):
    """Integers refuse negative exponents."""
    return op.inputs[0].dtype.kind != "i"


#: Exponents for which NumPy multiplies complex numbers, too.
_FACTORS = (1, 2, 3)
#: Whether powers of floats are the C library's, and not products within 2 units in the last place.
_BY_LIBRARY = os.environ.get("NBTA_LIBRARY_POWERS") == "1"


class _EmitPower(ElementwiseOf):
    """Small constant exponents are products and roots; integers have no negative ones."""

    def __init__(self):
        super().__init__(_emit_power, "iufc")

    def __call__(self, code, op):
        exponents = op.inputs[1]
        if exponents.dtype.kind == "i" and _constant(exponents) is None:
            _refuse_negative(code, code.value(exponents))
        elif exponents.dtype.kind == "i" and _constant(exponents) < 0:
            code.fail_if(True)
        return super().__call__(code, op)


def _emit_power(op, base, exponent):
    factors = _constant(op.inputs[1])
    if factors in _FACTORS:
        return reduce(operator.mul, [base] * int(factors.real))
    if op.inputs[0].dtype.kind == "c":
        return call("complex_power", base, exponent)
    if op.inputs[0].dtype.kind == "f":
        halves = 0 if factors is None or _BY_LIBRARY else 2 * factors
        if 0 < abs(halves) <= MOST_HALVES and halves == int(halves):
            return call("half_integer_power", base, int(halves))
        return base**exponent
    return call("integer_power", call("int64", base), call("uint64", exponent))


def _constant(tensor):
    """The number that all items of a constant are; None for others."""
    if tensor.op.record is not CONSTANT:
        return None
    values = tensor.op.attrs["value"]
    first = values.flat[0] if values.size else 0
    return first if (values == first).all() else None


def _refuse_negative(code, value):
    if isinstance(value, Scalar):
        return code.fail_if(value.item < 0)
    found, index = code.name("q"), code.name("i")
    code.add(assign(found, False))
    with code.nest(over(index, product(value.dimensions))):
        code.add(accumulate(found, value.at(index) < 0, "|"))
    return code.fail_if(found)


def _is_of_base(op, place):
    """Whether a power is NaN where its base is: with an exponent that is known, and not 0."""
    return place == 0 and _constant(op.inputs[1]) not in (None, 0)


@binary(
    "Pow",
    np.power,
    _power_gradient,
    infer=counted,
    family=POWERS,
    emit=_EmitPower(),
    total=_not_signed,
    spreads=_is_of_base,
)
def power(x: ArrayLike, y: ArrayLike, *, name: str | None = None) -> Array:
    """``x`` to the power ``y``, element by element, as `numpy.power`.

    The gradient with respect to the exponent is 0 where the base is 0 or negative.

    Examples
    --------
    >>> nbta.power([1.0, 2.0], 3)
    array([1., 8.])
    """


@exported(also="float_power")
def float_power(x: ArrayLike, y: ArrayLike, *, name: str | None = None) -> Array:
    """``x`` to the power ``y``, computed in float64 or complex128, as `numpy.float_power`.

    Parameters
    ----------
    x, y : array-like or Tensor
        Numbers or booleans, of shapes that broadcast.

    Returns
    -------
    Tensor or numpy.ndarray
        Of the broadcast shape: complex128 if an operand is complex, else float64.

    Raises
    ------
    InvalidArgumentError
        For shapes that do not broadcast.

    Examples
    --------
    >>> nbta.float_power([2, 4], -1)
    array([0.5 , 0.25])
    """
    x, y = promoted(x, y)
    dtype = np.complex128 if x.dtype.kind == "c" else np.float64
    return power(cast(x, dtype), cast(y, dtype), name=name)


@unary("Log1p", np.log1p, lambda x, y: 1 / (1 + x), emit=Elementary("log1p", numpy_name("log1p")))
def log1p(x: ArrayLike, *, name: str | None = None) -> Array:
    """``log(1 + x)``, accurate near 0, as `numpy.log1p`.

    Examples
    --------
    >>> nbta.log1p([0.0, 1e-12])
    array([0.e+00, 1.e-12])
    """


@unary(
    "Sqrt",
    np.sqrt,
    lambda x, y: 0.5 / y,
    emit=Elementary("sqrt", numpy_name("sqrt"), compiled=math.sqrt),
    spreads=True,
)
def sqrt(x: ArrayLike, *, name: str | None = None) -> Array:
    """Square root, as `numpy.sqrt`.

    Examples
    --------
    >>> nbta.sqrt([4.0, 9.0])
    array([2., 3.])
    """


def _rsqrt(x):
    return np.reciprocal(np.sqrt(x))


@unary(
    "Cbrt",
    np.cbrt,
    lambda x, y: 1 / (3 * square(y)),
    infer=real_only,
    emit=Elementary("cbrt", compiled=np.cbrt),
)
def cbrt(x: ArrayLike, *, name: str | None = None) -> Array:
    """Cube root, also of negative numbers, as `numpy.cbrt`.

    Examples
    --------
    >>> nbta.cbrt([8.0, -27.0])
    array([ 2., -3.])
    """


def _emit_rsqrt(op, item):
    return typed(1, op.inputs[0].dtype) / call("sqrt", item)


@unary("Rsqrt", _rsqrt, lambda x, y: -0.5 * y / x, emit=ElementwiseOf(_emit_rsqrt, "f"))
def rsqrt(x: ArrayLike, *, name: str | None = None) -> Array:
    """One over the square root.

    Examples
    --------
    >>> nbta.rsqrt([4.0, 16.0])
    array([0.5 , 0.25])
    """


@_levelling_off(
    "Tanh",
    np.tanh,
    lambda x, y: 1 - square(y),
    emit=Elementary("tanh", "complex_tanh"),
    spreads=True,
)
def tanh(x: ArrayLike, *, name: str | None = None) -> Array:
    """Hyperbolic tangent, as `numpy.tanh`.

    Examples
    --------
    >>> nbta.tanh([0.0, 1.0])
    array([0.        , 0.76159416])
    """


def _sigmoid(x):
    return from_scipy("expit", x)


@_levelling_off(
    "Sigmoid",
    _sigmoid,
    lambda x, y: y * (1 - y),
    infer=real_only,
    also=("expit",),
    emit=Elementary("sigmoid"),
)
def sigmoid(x: ArrayLike, *, name: str | None = None) -> Array:
    """``1 / (1 + exp(-x))``, as ``scipy.special.expit``.

    Examples
    --------
    >>> nbta.sigmoid([0.0, 1.0])
    array([0.5       , 0.73105858])
    """


def _softplus(x):
    return np.logaddexp(x, np.zeros((), x.dtype))


@_levelling_off(
    "Softplus", _softplus, lambda x, y: sigmoid(x), infer=real_only, emit=Elementary("softplus")
)
def softplus(x: ArrayLike, *, name: str | None = None) -> Array:
    """``log(1 + exp(x))``, without overflow.

    Examples
    --------
    >>> nbta.softplus([0.0, 1000.0])
    array([6.93147181e-01, 1.00000000e+03])
    """


def _emit_relu(op, item):
    return call("maximum", item, typed(0, op.inputs[0].dtype))


def _relu_gradient(op, dy):
    """Chosen, and no product, as in `maximum`."""
    return [where(greater(op.inputs[0], 0), dy, 0.0)]


@unary(
    "Relu",
    lambda x: np.maximum(x, np.zeros((), x.dtype)),
    None,
    floats=False,
    infer=real_only,
    pullback=_relu_gradient,
    emit=ElementwiseOf(_emit_relu, "biuf"),
    cheap=True,
)
def relu(x: ArrayLike, *, name: str | None = None) -> Array:
    """``x`` where it is positive, else 0; the derivative at 0 is 0.

    Examples
    --------
    >>> nbta.relu([-1.0, 2.0])
    array([0., 2.])
    """


def _erf(x):
    return from_scipy("erf", x)


@_levelling_off(
    "Erf",
    _erf,
    lambda x, y: 2 / math.sqrt(math.pi) * exp(-square(x)),
    infer=real_only,
    emit=Elementary("erf"),
)
def erf(x: ArrayLike, *, name: str | None = None) -> Array:
    """Error function, as ``scipy.special.erf``.

    Examples
    --------
    >>> nbta.erf([0.0, 1.0])
    array([0.        , 0.84270079])
    """


@unary(
    "Sin",
    np.sin,
    lambda x, y: cos(x),
    emit=Elementary("sin", "complex_sin", compiled=math.sin),
    spreads=True,
)
def sin(x: ArrayLike, *, name: str | None = None) -> Array:
    """Sine of an angle in radians, as `numpy.sin`.

    Examples
    --------
    >>> nbta.sin([0.0, 1.0])
    array([0.        , 0.84147098])
    """


@unary(
    "Cos",
    np.cos,
    lambda x, y: -sin(x),
    emit=Elementary("cos", "complex_cos", compiled=math.cos),
    spreads=True,
)
def cos(x: ArrayLike, *, name: str | None = None) -> Array:
    """Cosine of an angle in radians, as `numpy.cos`.

    Examples
    --------
    >>> nbta.cos([0.0, 1.0])
    array([1.        , 0.54030231])
    """


@unary(
    "Tan",
    np.tan,
    lambda x, y: 1 + square(y),
    emit=Elementary("tan", "complex_tan", compiled=math.tan),
)
def tan(x: ArrayLike, *, name: str | None = None) -> Array:
    """Tangent of an angle in radians, as `numpy.tan`.

    Examples
    --------
    >>> nbta.tan([0.0, 1.0])
    array([0.        , 1.55740772])
    """


def _arctan2_gradient(y, x, angle, dangle):
    share = dangle / (square(x) + square(y))
    return share * x, -share * y


@binary(
    "ArcTan2",
    np.arctan2,
    _arctan2_gradient,
    infer=real_only,
    floats=True,
    emit=Elementary("atan2", compiled=math.atan2),
)
def arctan2(y: ArrayLike, x: ArrayLike, *, name: str | None = None) -> Array:
    """Angle of the point ``(x, y)`` in radians, from -pi to pi, as `numpy.arctan2`.

    The gradient is NaN at the origin, which has no direction.

    Examples
    --------
    >>> nbta.arctan2([1.0, -1.0], -1.0)
    array([ 2.35619449, -2.35619449])
    """


@unary(
    "Erfc",
    lambda x: from_scipy("erfc", x),
    lambda x, y: -2 / math.sqrt(math.pi) * exp(-square(x)),
    infer=real_only,
    emit=Elementary("erfc", compiled=math.erfc),
)
def erfc(x: ArrayLike, *, name: str | None = None) -> Array:
    """``1 - erf(x)``, accurate where it is small, as ``scipy.special.erfc``.

    Examples
    --------
    >>> nbta.erfc([0.0, 5.0])
    array([1.00000000e+00, 1.53745979e-12])
    """


def _infer_abs(spec):
    return Spec(np.empty(0, spec.dtype).real.dtype, spec.shape)


def _abs_gradient(op, dy):
    x, y = op.inputs[0], op.outputs[0]
    if x.dtype.kind != "c":
        return [dy * sign(x)]
    zero = equal(y, 0)
    unit = divide(x, cast(where(zero, ones_like(y), y), x.dtype))
    return [cast(dy, x.dtype) * where(zero, zeros_like(x), unit)]


ABS = define_elementwise(
    "Abs", _infer_abs, np.abs, _abs_gradient, emit=by_kind(as_it_is, calling("abs")), cheap=True
)


@exported(also=("absolute", "fabs"))
def abs(x: ArrayLike, *, name: str | None = None) -> Array:
    """Absolute value, as `numpy.absolute`; its derivative at 0 is 0.

    Parameters
    ----------
    x : array-like or Tensor
        Real or complex numbers, of any shape.

    Returns
    -------
    Tensor or numpy.ndarray
        Of the shape and dtype of ``x``; float32 for complex64 and float64 for complex128.

    Examples
    --------
    >>> nbta.abs([-1.5, 2.0])
    array([1.5, 2. ])
    """
    return apply(ABS, promoted(x), name=name)


@unary(
    "Sign",
    np.sign,
    STEPS,
    floats=False,
    emit=Elementwise(calling("sign"), "iuf"),
    cheap=True,
    infer=numbers,
    family=SIGNED,
)
def sign(x: ArrayLike, *, name: str | None = None) -> Array:
    """Sign of each element, -1, 0 or 1, as `numpy.sign`; it has no gradient.

    Examples
    --------
    >>> nbta.sign([-1.5, 0.0, 2.0])
    array([-1.,  0.,  1.])
    """


@unary("Floor", np.floor, STEPS, infer=real_only, emit=Elementwise(calling("floor"), "f"))
def floor(x: ArrayLike, *, name: str | None = None) -> Array:
    """The largest integer that is at most ``x``, as a float, as `numpy.floor`; it has no gradient.

    Examples
    --------
    >>> nbta.floor([-1.5, 2.0])
    array([-2.,  2.])
    """


def _emit_is_finite(op, item):
    """What is not, less itself is NaN."""
    return reduce(operator.and_, ((part - part).equals(0) for part in parts_of(op, item)))


@unary("IsFinite", np.isfinite, INTEGER, infer=truth, emit=ElementwiseOf(_emit_is_finite, "fc"))
def isfinite(x: ArrayLike, *, name: str | None = None) -> Array:
    """Whether each element is neither infinite nor NaN, as `numpy.isfinite`.

    Examples
    --------
    >>> nbta.isfinite([1.0, np.inf])
    array([ True, False])
    """
