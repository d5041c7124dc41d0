"""Elementary functions of one argument."""

import math

import numpy as np

from nbta.codegen import number_rules as rules
from nbta.codegen.number_rules import Elementary
from nbta.errors import invalid
from nbta.graph.record import NotDifferentiable
from nbta.graph.spec import Spec
from nbta.ops.arithmetic import counted, divide, square, where
from nbta.ops.comparison import equal, greater
from nbta.ops.dispatch import CONSTANT, apply, exported
from nbta.ops.elementwise import (
    INTEGER,
    binary,
    broadcasting,
    conjugate,
    define_elementwise,
    meet,
    truth,
    unary,
)
from nbta.ops.filling import ones_like, zeros_like
from nbta.ops.shaping import cast

STEPS = NotDifferentiable("it is constant but for its steps")


@unary("Exp", np.exp, lambda x, y: y, emit=Elementary("exp", "complex_exp"))
def exp(x, *, name=None):
    """e to the power of each element.

    Examples
    --------
    >>> nbta.exp([0.0, 1.0])
    array([1.        , 2.71828183])
    """


@unary("Expm1", np.expm1, lambda x, y: y + 1, emit=Elementary("expm1"))
def expm1(x, *, name=None):
    """``exp(x) - 1``, exact near 0.

    Examples
    --------
    >>> nbta.expm1([0.0, 1e-12])
    array([0.e+00, 1.e-12])
    """


@unary("Log", np.log, lambda x, y: 1 / x, emit=Elementary("log"))
def log(x, *, name=None):
    """Natural logarithm.

    Examples
    --------
    >>> nbta.log([1.0, 2.0])
    array([0.        , 0.69314718])
    """


def _power_gradient(x, y, z, dz):
    """0**0 is 1 and flat in its base; the exponent of 0 has no slope either way."""
    if y.op.record is CONSTANT and np.all(y.op.attrs["value"] != 0):
        dx = dz * conjugate(y * power(x, y - 1))
    else:
        dx = _base_gradient(x, y, z, dz)
    return dx, _exponent_gradient(x, z, dz)


def _base_gradient(x, y, z, dz):
    zero_power = equal(y, 0)
    base = where(zero_power, ones_like(x), x)
    return dz * conjugate(where(zero_power, zeros_like(z), y * power(base, y - 1)))


def _exponent_gradient(x, z, dz):
    positive = where(equal(x, 0), ones_like(x), x)
    if x.dtype.kind != "c":
        positive = where(greater(x, 0), positive, ones_like(x))
    return dz * conjugate(z * log(positive))


def _not_signed(op):
    """Integers refuse negative exponents."""
    return op.inputs[0].dtype.kind != "i"


@binary("Pow", np.power, _power_gradient, infer=counted, emit=rules.power, total=_not_signed)
def power(x, y, *, name=None):
    """``x`` to the power ``y``, elementwise with broadcasting.

    The gradient with respect to the exponent is 0 where the base is 0 or negative.

    Examples
    --------
    >>> nbta.power([1.0, 2.0], 3)
    array([1., 8.])
    """


@unary("Log1p", np.log1p, lambda x, y: 1 / (1 + x), emit=Elementary("log1p", "np.log1p"))
def log1p(x, *, name=None):
    """``log(1 + x)``, exact near 0.

    Examples
    --------
    >>> nbta.log1p([0.0, 1e-12])
    array([0.e+00, 1.e-12])
    """


@unary(
    "Sqrt", np.sqrt, lambda x, y: 0.5 / y, emit=Elementary("sqrt", "np.sqrt", compiled=math.sqrt)
)
def sqrt(x, *, name=None):
    """Square root.

    Examples
    --------
    >>> nbta.sqrt([4.0, 9.0])
    array([2., 3.])
    """


def _rsqrt(x):
    return np.reciprocal(np.sqrt(x))


@unary("Rsqrt", _rsqrt, lambda x, y: -0.5 * y / x, emit=rules.rsqrt)
def rsqrt(x, *, name=None):
    """One over the square root.

    Examples
    --------
    >>> nbta.rsqrt([4.0, 16.0])
    array([0.5 , 0.25])
    """


@unary("Tanh", np.tanh, lambda x, y: 1 - square(y), emit=Elementary("tanh"))
def tanh(x, *, name=None):
    """Hyperbolic tangent.

    Examples
    --------
    >>> nbta.tanh([0.0, 1.0])
    array([0.        , 0.76159416])
    """


def _sigmoid(x):
    return _from_scipy("expit", x)


def _from_scipy(name, x):
    """A special function; of half precision by float32, as SciPy has no bfloat16."""
    from scipy import special  # takes 0.15 s, which most programs need not wait for

    wide = x if x.dtype in (np.float32, np.float64) else x.astype(np.float32)
    return getattr(special, name)(wide).astype(x.dtype)


def _real(*specs):
    """Shape rule of functions for real numbers."""
    dtype = specs[0].dtype
    if dtype.kind == "c":
        raise invalid("dtype", f"it is for real numbers, not {dtype}; use real or abs first")
    return broadcasting(*specs)


@unary("Sigmoid", _sigmoid, lambda x, y: y * (1 - y), infer=_real, emit=Elementary("sigmoid"))
def sigmoid(x, *, name=None):
    """``1 / (1 + exp(-x))``.

    Examples
    --------
    >>> nbta.sigmoid([0.0, 1.0])
    array([0.5       , 0.73105858])
    """


def _softplus(x):
    return np.logaddexp(x, np.zeros((), x.dtype))


@unary("Softplus", _softplus, lambda x, y: sigmoid(x), infer=_real, emit=Elementary("softplus"))
def softplus(x, *, name=None):
    """``log(1 + exp(x))``, without overflow.

    Examples
    --------
    >>> nbta.softplus([0.0, 1000.0])
    array([6.93147181e-01, 1.00000000e+03])
    """


@unary(
    "Relu",
    lambda x: np.maximum(x, np.zeros((), x.dtype)),
    lambda x, y: cast(greater(x, 0), x.dtype),
    floats=False,
    infer=_real,
    emit=rules.relu,
    quick=True,
)
def relu(x, *, name=None):
    """The positive part; at 0 its derivative is 0.

    Examples
    --------
    >>> nbta.relu([-1.0, 2.0])
    array([0., 2.])
    """


def _erf(x):
    return _from_scipy("erf", x)


@unary(
    "Erf",
    _erf,
    lambda x, y: 2 / math.sqrt(math.pi) * exp(-square(x)),
    infer=_real,
    emit=Elementary("erf"),
)
def erf(x, *, name=None):
    """Error function.

    Examples
    --------
    >>> nbta.erf([0.0, 1.0])
    array([0.        , 0.84270079])
    """


@unary("Sin", np.sin, lambda x, y: cos(x), emit=Elementary("sin", compiled=math.sin))
def sin(x, *, name=None):
    """Sine, of radians.

    Examples
    --------
    >>> nbta.sin([0.0, 1.0])
    array([0.        , 0.84147098])
    """


@unary("Cos", np.cos, lambda x, y: -sin(x), emit=Elementary("cos", compiled=math.cos))
def cos(x, *, name=None):
    """Cosine, of radians.

    Examples
    --------
    >>> nbta.cos([0.0, 1.0])
    array([1.        , 0.54030231])
    """


@unary("Tan", np.tan, lambda x, y: 1 + square(y), emit=Elementary("tan", compiled=math.tan))
def tan(x, *, name=None):
    """Tangent, of radians.

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
    infer=_real,
    floats=True,
    emit=Elementary("atan2", compiled=math.atan2, arity=2),
)
def arctan2(y, x, *, name=None):
    """The angle of the point ``(x, y)``, in radians from -pi to pi, elementwise with broadcasting.

    Its gradient is NaN at the origin, where it has no direction.

    Examples
    --------
    >>> nbta.arctan2([1.0, -1.0], -1.0)
    array([ 2.35619449, -2.35619449])
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


ABS = define_elementwise("Abs", _infer_abs, np.abs, _abs_gradient, emit=rules.absolute, quick=True)


@exported(also="absolute")
def abs(x, *, name=None):
    """Absolute value; at 0 its derivative is 0.

    Examples
    --------
    >>> nbta.abs([-1.5, 2.0])
    array([1.5, 2. ])
    """
    return apply(ABS, meet(x), name=name)


def _not_truth(op):
    """NumPy has no sign of truth values."""
    return op.inputs[0].dtype.kind != "b"


@unary("Sign", np.sign, STEPS, floats=False, emit=rules.sign, quick=True, total=_not_truth)
def sign(x, *, name=None):
    """-1, 0 or 1.

    Examples
    --------
    >>> nbta.sign([-1.5, 0.0, 2.0])
    array([-1.,  0.,  1.])
    """


@unary("Floor", np.floor, STEPS, infer=_real, emit=rules.floor)
def floor(x, *, name=None):
    """The greatest integer that is not greater, as a float.

    Examples
    --------
    >>> nbta.floor([-1.5, 2.0])
    array([-2.,  2.])
    """


@unary("IsFinite", np.isfinite, INTEGER, infer=truth, emit=rules.is_finite)
def isfinite(x, *, name=None):
    """Whether an element is neither infinite nor NaN.

    Examples
    --------
    >>> nbta.isfinite([1.0, np.inf])
    array([ True, False])
    """
