"""Arithmetic that follows NumPy where Numba's own does not, as instructions without branches.

Numba's operators raise for a complex divisor of 0, follow Python for NaN, and widen small integers;
here results have the arguments' type, and LLVM makes vector instructions of all but `modulo` of
floats. `order_up` and `order_down` let it do so for the greatest and least of floats too: in their
order as integers, NaN is above or below all numbers.
"""

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from nbta.runtime.vector_math import Value, integer_type, select, sign_bit, with_sign


def _intrinsic(build, name, result=lambda kind: kind):
    """A function for compiled code, of one or two numbers of one type."""

    def typed(typingctx, given):
        kind = typingctx.unify_types(*given)
        if not isinstance(kind, types.Number | types.Boolean):
            return None

        def codegen(context, builder, sig, args):
            return build(context, builder, kind, *args)

        return result(kind)(*[kind] * len(given)), codegen

    def one(typingctx, x):
        return typed(typingctx, (x,))

    def two(typingctx, x, y):
        return typed(typingctx, (x, y))

    function = one if build.__code__.co_argcount == 4 else two
    function.__name__ = function.__qualname__ = name
    return intrinsic(function)


def _is_float(kind):
    return isinstance(kind, types.Float)


def _is_signed(kind):
    return isinstance(kind, types.Integer) and kind.signed


def _compare(builder, kind, sign, x, y):
    """Whether ``x sign y``; false for NaN."""
    if _is_float(kind):
        return builder.fcmp_ordered(sign, x, y)
    compare = builder.icmp_signed if _is_signed(kind) else builder.icmp_unsigned
    return compare(sign, x, y)


def _picking(sign, of_truths):
    """The one of two that compares so, or a NaN."""

    def build(context, builder, kind, x, y):
        if isinstance(kind, types.Boolean):
            return getattr(builder, of_truths)(x, y)
        first = _compare(builder, kind, sign, x, y)
        if _is_float(kind):
            first = builder.or_(first, builder.fcmp_unordered("uno", x, x))
        return builder.select(first, x, y)

    return build


def _sign(context, builder, kind, x):
    if _is_float(kind):
        x = Value(builder, x)
        nonzero = select(x > 0, 1, select(x < 0, -1, x))
        return select(x.equals(0), 0, nonzero).llvm
    zero = x.type(0)
    above = builder.zext(builder.icmp_unsigned("!=", x, zero), x.type)
    if not kind.signed:
        return above
    below = builder.icmp_signed("<", x, zero)
    return builder.select(below, x.type(-1), above)


def _floor(context, builder, kind, x):
    function = builder.module.declare_intrinsic("llvm.floor", [x.type])
    return builder.call(function, [x])


def _divided(builder, kind, x, y):
    """Quotient rounded down and remainder of integers; both 0 for a divisor of 0."""
    zero, one = y.type(0), y.type(1)
    no_divisor = builder.icmp_unsigned("==", y, zero)
    if not kind.signed:
        divisor = builder.select(no_divisor, one, y)
        quotient, rest = builder.udiv(x, divisor), builder.urem(x, divisor)
    else:
        negates = builder.icmp_signed("==", y, y.type(-1))  # the CPU traps for the least number
        divisor = builder.select(builder.or_(no_divisor, negates), one, y)
        quotient, rest = builder.sdiv(x, divisor), builder.srem(x, divisor)
        unlike = builder.icmp_signed("<", builder.xor(rest, divisor), zero)
        above = builder.and_(unlike, builder.icmp_signed("!=", rest, zero))
        quotient = builder.sub(quotient, builder.zext(above, y.type))
        rest = builder.add(rest, builder.select(above, divisor, zero))
        quotient = builder.select(negates, builder.neg(x), quotient)
    return builder.select(no_divisor, zero, quotient), builder.select(no_divisor, zero, rest)


def _divided_floats(builder, kind, x, y):
    """The same of floats, step by step as NumPy's ``npy_divmod``."""
    rest = Value(builder, builder.frem(x, y))
    x, y = Value(builder, x), Value(builder, y)
    ratio, zero = x / y, Value(builder, y.like(0))
    quotient = (x - rest) / y
    unlike = Value(builder, builder.xor((y < 0).llvm, (rest < 0).llvm))
    exact = rest.equals(0)
    quotient = select(exact, quotient, select(unlike, quotient - 1, quotient))
    rest = select(exact, with_sign(zero, y), select(unlike, rest + y, rest))
    whole = Value(builder, _floor(None, builder, kind, quotient.llvm))
    whole = select(quotient - whole > 0.5, whole + 1, whole)
    whole = select(quotient.equals(0), with_sign(quotient, ratio), whole)
    return select(y.equals(0), ratio, whole).llvm, rest.llvm


def _division(place):
    def build(context, builder, kind, x, y):
        divide = _divided_floats if _is_float(kind) else _divided
        return divide(builder, kind, x, y)[place]

    return build


def _complex_divide(context, builder, kind, x, y):
    """Smith's algorithm (Comm. ACM 5, 1962), as in NumPy."""
    one = context.make_complex(builder, kind, x)
    other = context.make_complex(builder, kind, y)
    a, b, c, d = (Value(builder, v) for v in (one.real, one.imag, other.real, other.imag))
    by_real = abs(c) >= abs(d)
    large, small = select(by_real, c, d), select(by_real, d, c)
    ratio = small / large
    scale = Value(builder, a.like(1)) / (large + small * ratio)
    real = select(by_real, a + b * ratio, a * ratio + b) * scale
    imag = select(by_real, b - a * ratio, b * ratio - a) * scale
    nothing = c.equals(0) & d.equals(0)
    result = context.make_complex(builder, kind)
    result.real = select(nothing, a / abs(c), real).llvm
    result.imag = select(nothing, b / abs(c), imag).llvm
    return result._getvalue()


def _ordering(nan):
    """Integers in the order of floats; ``nan`` stands for every NaN."""

    def build(context, builder, kind, x):
        bits = integer_type(x.type)
        x = builder.select(builder.fcmp_unordered("uno", x, x), x.type(nan), x)
        return _turned(builder, builder.bitcast(x, bits))

    return build


def _turned(builder, bits):
    """Negative floats in reverse; twice is nothing."""
    negative = builder.ashr(bits, bits.type(bits.type.width - 1))
    return builder.xor(bits, builder.and_(negative, bits.type(~sign_bit(bits))))


def _from_order(context, builder, kind, x):
    number = ir.FloatType() if x.type.width == 32 else ir.DoubleType()
    return builder.bitcast(_turned(builder, x), number)


def _integer_of(kind):
    return types.int32 if kind == types.float32 else types.int64


def _float_of(kind):
    return types.float32 if kind == types.int32 else types.float64


_NAN = float("nan")
maximum = _intrinsic(_picking(">", "or_"), "maximum")
minimum = _intrinsic(_picking("<", "and_"), "minimum")
sign = _intrinsic(_sign, "sign")
floor = _intrinsic(_floor, "floor")
floor_divide = _intrinsic(_division(0), "floor_divide")
modulo = _intrinsic(_division(1), "modulo")
complex_divide = _intrinsic(_complex_divide, "complex_divide")
order_up = _intrinsic(_ordering(_NAN), "order_up", _integer_of)
order_down = _intrinsic(_ordering(-_NAN), "order_down", _integer_of)
from_order = _intrinsic(_from_order, "from_order", _float_of)


@numba.njit(error_model="numpy")
def integer_power(x, y):
    """``x**y`` of an int64 and a uint64, modulo ``2**64``; smaller integers are its last bits."""
    result = numba.int64(1)
    while y != numba.uint64(0):
        if y & numba.uint64(1):
            result *= x
        x *= x
        y >>= numba.uint64(1)
    return result


@numba.njit(error_model="numpy")
def complex_exp(z):
    """NumPy's, which is real where the argument is; Numba multiplies infinity by the sine of 0."""
    return type(z)(complex(np.exp(z.real), z.imag)) if z.imag == 0 else np.exp(z)


NAMES = (
    "complex_exp",
    "maximum", "minimum", "sign", "floor", "floor_divide", "modulo", "complex_divide", "order_up",
    "order_down", "from_order", "integer_power",
)  # fmt: skip
