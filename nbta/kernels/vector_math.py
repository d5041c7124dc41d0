"""Arithmetic and elementary functions of numbers, as instructions that LLVM makes vectors of.

Numba's own elementary functions call a scalar library function an element, 15 ns for a float32
tanh. Here an argument is reduced by integer operations on its bits, a polynomial does the rest, and
nothing branches: 0.2 to 2 ns an element in a plain loop, within 4 units in the last place of the
true value, infinities, NaN and the sign of zero right.

A definition runs while Numba lowers a call: each operator of a ``Value`` appends an instruction.
Numba took 0.3 to 0.9 s to type and compile the same text as functions of its own.

Reductions and corrections follow fdlibm (Sun Microsystems, 1993) and W. J. Cody and W. Waite,
"Software Manual for the Elementary Functions" (1980). The polynomials are Chebyshev interpolations
in 50 digits of what stands beside them.

Numba's operators raise for a complex divisor of 0, follow Python for NaN, and widen small integers;
here results have the arguments' type, follow NumPy, and LLVM makes vector instructions of all but
`modulo` of floats. `order_up` and `order_down` let it do so for the greatest and least of floats
too: in their order as integers, NaN is above or below all numbers.
"""

from math import inf, nan, sqrt
from typing import NamedTuple

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

LOG2_E = 1.4426950408889634


class Constants(NamedTuple):
    """Numbers of one dtype; a polynomial begins with its highest coefficient."""

    magic: float  # added and taken away again, it leaves the nearest integer
    ln2_high: float  # ln 2 in two parts, the first with so few bits that multiples are exact
    ln2_low: float
    exp_top: float  # above, exp is infinite
    exp_bottom: float  # below, it is 0
    expm1_bottom: float  # below, it is -1
    tanh_top: float  # above, it is 1
    tiny: float  # the least normal number
    tiny_scale: float  # makes what is less a normal number,
    tiny_power: float  # by this power of 2
    erf_top: float  # above, it is 1
    erf_middle: float
    expm1: tuple  # (expm1(r) - r) / r**2 for r up to ln 2 / 2
    log: tuple  # (2 artanh(s) / s - 2) / s**2 by s**2, for s of numbers from sqrt(1/2) to sqrt(2)
    erf_near: tuple  # erf(x) / x - 1 by x**2, to x = 1
    erf_far: tuple  # (1 - erf(x)) exp(x**2) by (x - middle) / (x + middle), from x = 1


FLOAT32 = Constants(
    magic=1.5 * 2**23,
    ln2_high=0.693359375,
    ln2_low=-2.12194440e-4,
    exp_top=89,
    exp_bottom=-105,
    expm1_bottom=-20,
    tanh_top=10,
    tiny=2.0**-126,
    tiny_scale=2.0**25,
    tiny_power=25,
    erf_top=4,
    erf_middle=2.5,
    expm1=(
        0.001392625083149761171, 0.0083632328836826181975, 0.041666554212984150315,
        0.16666576666119928306, 0.5,
    ),
    log=(
        0.23341943388714560876, 0.28550396959618013578, 0.40000125594554367087,
        0.6666666654988317655,
    ),
    erf_near=(
        0.000078758750626854883411, -0.00080168642871658695293, 0.0051890874234339739861,
        -0.026854212010626412443, 0.11283594715160217732, -0.37612626666720331023,
        0.12837916584835094603,
    ),
    erf_far=(
        0.00063574618864429448865, -0.0026671916609726196421, -0.0039716799544324902736,
        0.039925948115240840806, -0.12503369182368707818, 0.25171311192429700425,
        -0.37173672853085268771, 0.21080636431555945921,
    ),
)  # fmt: skip
FLOAT64 = Constants(
    magic=1.5 * 2**52,
    ln2_high=0.693147180369123816490,
    ln2_low=1.90821492927058770002e-10,
    exp_top=710,
    exp_bottom=-746,
    expm1_bottom=-40,
    tanh_top=22,
    tiny=2.0**-1022,
    tiny_scale=2.0**54,
    tiny_power=54,
    erf_top=6,
    erf_middle=3,
    expm1=(
        2.0914755325893202191e-9, 2.5105312729622101775e-8, 2.7557273478718580474e-7,
        2.7557255170000887438e-6, 0.0000248015873256774619, 0.00019841269875002278793,
        0.0013888888888883711167, 0.0083333333333260831202, 0.041666666666666669783,
        0.1666666666666667103, 0.5,
    ),
    log=(
        0.13100721383503491404, 0.13267418596474883397, 0.15386290534658991988,
        0.18181794700897799585, 0.22222222400547757297, 0.28571428570764450117,
        0.40000000000000941266, 0.66666666666666666448,
    ),
    erf_near=(
        5.9571761477489114044e-11, -1.137284885679167367e-9, 1.4659775274047435814e-8,
        -1.6350312701054695011e-7, 1.6461000484121368033e-6, -0.000014925595266831181565,
        0.00012055331111642710923, -0.00085483269808337899052, 0.0052239776248180144673,
        -0.026866170645076793248, 0.11283791670954878666, -0.37612638903183748056,
        0.12837916709551257377,
    ),
    erf_far=(
        1.2801900862962661938e-6, 2.0236031796417566352e-6, -8.0080213194126843348e-6,
        -0.000012848894512523528795, 0.000064061820735305467428, 0.000045254726354833541373,
        -0.00059706235170932842794, 0.00070774644439015373147, 0.0042691363475082563605,
        -0.024392499318273193125, 0.071665837197748743386, -0.15011593650078743912,
        0.24560380171233194479, -0.32623356004303717477, 0.17900115118138995023,
    ),
)  # fmt: skip

#: A product and a sum may be one instruction. Nothing else, or the corrections would be simplified
#: away; and never none, as an instruction without flags gets those of Numba's caller.
FLAGS = ("contract",)
CONSTANTS = {types.float32: FLOAT32, types.float64: FLOAT64}


class Value:
    """A number or a condition in the function that is being built."""

    def __init__(self, builder, llvm):
        self.builder, self.llvm = builder, llvm

    def like(self, x):
        """Another value, or a constant of this type, as LLVM has it."""
        return x.llvm if isinstance(x, Value) else self.llvm.type(float(x))

    def bits(self):
        """The bits of a number as an LLVM integer."""
        return self.builder.bitcast(self.llvm, integer_type(self.llvm.type))

    def of_bits(self, bits):
        """The number of this type with such bits."""
        return Value(self.builder, self.builder.bitcast(bits, self.llvm.type))

    def _arithmetic(self, instruction, a, b):
        build = getattr(self.builder, instruction)
        return Value(self.builder, build(self.like(a), self.like(b), flags=FLAGS))

    def _ordered(self, sign, other):
        build = self.builder.fcmp_ordered  # false for NaN
        return Value(self.builder, build(sign, self.llvm, self.like(other), flags=FLAGS))

    def __add__(self, other):
        return self._arithmetic("fadd", self, other)

    def __radd__(self, other):
        return self._arithmetic("fadd", other, self)

    def __sub__(self, other):
        return self._arithmetic("fsub", self, other)

    def __rsub__(self, other):
        return self._arithmetic("fsub", other, self)

    def __mul__(self, other):
        return self._arithmetic("fmul", self, other)

    def __rmul__(self, other):
        return self._arithmetic("fmul", other, self)

    def __truediv__(self, other):
        return self._arithmetic("fdiv", self, other)

    def __neg__(self):
        return Value(self.builder, self.builder.fneg(self.llvm, flags=FLAGS))

    def __abs__(self):
        bits = self.bits()
        return self.of_bits(self.builder.and_(bits, bits.type(~sign_bit(bits))))

    def __lt__(self, other):
        return self._ordered("<", other)

    def __gt__(self, other):
        return self._ordered(">", other)

    def __ge__(self, other):
        return self._ordered(">=", other)

    def equals(self, other):
        """Whether two numbers are equal."""
        return self._ordered("==", other)

    def __and__(self, other):
        return Value(self.builder, self.builder.and_(self.llvm, other.llvm))


def select(condition, a, b):
    """``a`` where a condition holds, else ``b``; one of the two may be a constant."""
    number = a if isinstance(a, Value) else b
    choose = number.builder.select
    return Value(number.builder, choose(condition.llvm, number.like(a), number.like(b)))


def integer_type(float_type):
    """The integers with as many bits as a float type."""
    return ir.IntType(32 if float_type == ir.FloatType() else 64)


def sign_bit(bits):
    """The integer with the sign bit alone."""
    return -1 << (bits.type.width - 1)


def exponent_bits(bits):
    """At which bit the exponent begins, and its bias."""
    return (23, 127) if bits.type.width == 32 else (52, 1023)


def with_sign(y, x):
    """``abs(y)`` with the sign of x, which -0 has too."""
    builder, bits = x.builder, x.bits()
    return x.of_bits(builder.or_(abs(y).bits(), builder.and_(bits, bits.type(sign_bit(bits)))))


def power_of_2(x, n):
    """``2**n`` of the type of x, for an LLVM integer."""
    start, bias = exponent_bits(n)
    return x.of_bits(x.builder.shl(x.builder.add(n, n.type(bias)), n.type(start)))


def integer_in(shifted, c):
    """The LLVM integer n for ``shifted`` = n + magic."""
    magic = Value(shifted.builder, shifted.like(c.magic))
    return shifted.builder.sub(shifted.bits(), magic.bits())


def powers_of_2(shifted, c):
    """``2**(n // 2)`` and ``2**(n - n // 2)`` for ``shifted`` = n + magic."""
    builder, n = shifted.builder, integer_in(shifted, c)
    first = builder.ashr(n, n.type(1))
    return power_of_2(shifted, first), power_of_2(shifted, builder.sub(n, first))


def power_below(shifted, c):
    """``2**(n - 1)`` for ``shifted`` = n + magic."""
    n = integer_in(shifted, c)
    return power_of_2(shifted, shifted.builder.sub(n, n.type(1)))


def fraction_and_power(x):
    """``m`` from sqrt(1/2) to sqrt(2) and ``k`` with x = m 2**k, for positive normal numbers."""
    builder, bits = x.builder, x.bits()
    start = bits.type(exponent_bits(bits)[0])
    root = Value(builder, x.like(sqrt(0.5)))
    power = builder.ashr(builder.sub(bits, root.bits()), start)
    fraction = builder.sub(bits, builder.shl(power, start))
    return x.of_bits(fraction), Value(builder, builder.sitofp(power, x.llvm.type))


def _polynomial(x, coefficients):
    """By Estrin's scheme: neighbours are put together, so that few operations wait for others.

    In scalar code that waits for each result exp takes 14 ns in place of 19 by Horner's, in vectors
    as long as by that.
    """
    terms, power = coefficients[::-1], x
    while len(terms) > 1:
        pairs = zip(terms[::2], terms[1::2], strict=False)
        last = terms[-1:] if len(terms) % 2 else ()
        terms, power = (*(low + power * high for low, high in pairs), *last), power * power
    return terms[0]


def _reduced(x, c):
    """``n + magic`` and ``expm1(r)``, where x = n ln 2 + r."""
    shifted = x * LOG2_E + c.magic
    n = shifted - c.magic
    r = (x - n * c.ln2_high) - n * c.ln2_low
    return shifted, r + r * r * _polynomial(r, c.expm1)


def _at_most(x, top):
    return select(x > top, top, x)  # a comparison with NaN is false, so that NaN passes


def _at_least(x, bottom):
    return select(x < bottom, bottom, x)


def _exp(x, c):
    shifted, p = _reduced(_at_least(_at_most(x, c.exp_top), c.exp_bottom), c)
    first, second = powers_of_2(shifted, c)
    return (1 + p) * first * second


def _expm1(x, c):
    shifted, p = _reduced(_at_least(_at_most(x, c.exp_top), c.expm1_bottom), c)
    power = power_below(shifted, c)  # 2**n itself may be too large
    y = power * p + (power - 0.5)
    return with_sign(y + y, x)


def _tanh(x, c):
    a = _at_most(abs(x), c.tanh_top)
    e = _expm1(a + a, c)
    return with_sign(e / (e + 2), x)


def _log_of_parts(m, k, correction, c):
    """``log(m 2**k (1 + correction))`` for a small correction."""
    f = m - 1
    s = f / (2 + f)
    z = s * s
    h = 0.5 * f * f
    low = k * c.ln2_low + correction
    return k * c.ln2_high - ((h - (s * (h + z * _polynomial(z, c.log)) + low)) - f)


def _with_log_edges(y, x):
    y = select(x.equals(inf), inf, y)
    y = select(x.equals(0), -inf, y)
    return select(x >= 0, y, nan)


def _log(x, c):
    small = x < c.tiny
    m, k = fraction_and_power(select(small, x * c.tiny_scale, x))
    k = select(small, k - c.tiny_power, k)
    return _with_log_edges(_log_of_parts(m, k, 0, c), x)


def _log1p(x, c):
    u = 1 + x
    back = u - 1
    lost = (1 - (u - back)) + (x - back)  # what rounding u took away, exactly (Knuth)
    correction = select((u > 0) & (u < inf), lost / u, 0)
    y = _log_of_parts(*fraction_and_power(u), correction, c)
    return with_sign(_with_log_edges(y, u), x)


def _sigmoid(x, c):
    e = _exp(-abs(x), c)
    return select(x >= 0, 1, e) / (1 + e)


def _softplus(x, c):
    e = _exp(-abs(x), c)
    u = 1 + e
    lost = e - (u - 1)  # what rounding u took away, exactly, as e is at most 1 (Dekker)
    return _at_least(x, 0) + _log_of_parts(*fraction_and_power(u), lost / u, c)


def _erf(x, c):
    a = _at_most(abs(x), c.erf_top)
    z = a * a
    near = a + a * _polynomial(z, c.erf_near)
    t = (a - c.erf_middle) / (a + c.erf_middle)
    far = 1 - _exp(-z, c) * _polynomial(t, c.erf_far)
    return with_sign(select(a > 1, far, near), x)


def _scalar(definition):
    """An intrinsic ``(x)`` for compiled code; x is float32 or float64."""

    def function(typingctx, x):
        if x not in CONSTANTS:
            return None

        def codegen(context, builder, sig, args):
            return definition(Value(builder, args[0]), CONSTANTS[x]).llvm

        return x(x), codegen

    function.__name__ = function.__qualname__ = definition.__name__[1:]
    return intrinsic(function)


def _loop(scalar):
    """A function ``(x, out)`` of vectors of one dtype."""

    @numba.njit(error_model="numpy")
    def function(x, out):
        for i in range(x.size):
            out[i] = scalar(x[i])

    return function


exp, expm1, tanh, log, log1p = map(_scalar, (_exp, _expm1, _tanh, _log, _log1p))
sigmoid, softplus, erf = map(_scalar, (_sigmoid, _softplus, _erf))
exp_all, expm1_all, tanh_all, log_all, log1p_all = map(_loop, (exp, expm1, tanh, log, log1p))
sigmoid_all, softplus_all, erf_all = map(_loop, (sigmoid, softplus, erf))


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


def _exp2(context, builder, kind, x):
    """Numba's own has one name for all dtypes, so that a module could not use two of them."""
    function = builder.module.declare_intrinsic("llvm.exp2", [x.type])
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
exp2 = _intrinsic(_exp2, "exp2")
floor_divide = _intrinsic(_division(0), "floor_divide")
modulo = _intrinsic(_division(1), "modulo")
complex_divide = _intrinsic(_complex_divide, "complex_divide")
order_up = _intrinsic(_ordering(_NAN), "order_up", _integer_of)
order_down = _intrinsic(_ordering(-_NAN), "order_down", _integer_of)
from_order = _intrinsic(_from_order, "from_order", _float_of)


@intrinsic(prefer_literal=True)
def half_integer_power(typingctx, x, halves):
    """``x ** (halves / 2)`` of a float, for a literal but 0: within 2 units in the last place.

    By squaring, square roots and reciprocals, in about 1 ns where `pow` takes 15, in vectors. In
    float64 each step carries its rounding error (T. J. Dekker, "A floating-point technique for
    extending the available precision", 1971), as the errors of plain products add up: 5 units for
    x**-2.5. float32 is computed in float64.
    """
    if x not in (types.float32, types.float64) or not isinstance(halves, types.IntegerLiteral):
        return None
    count = halves.literal_value

    def codegen(context, builder, sig, args):
        base = args[0]
        if x.bitwidth == 32:
            base = builder.fpext(base, ir.DoubleType())
        found = _half_integer_power(builder, base, count, exactly=x.bitwidth == 64)
        return found if x.bitwidth == 64 else builder.fptrunc(found, args[0].type)

    return x(x, halves), codegen


class _Precise(NamedTuple):
    """A float64 and its rounding error, as LLVM values of instructions that none may merge."""

    builder: ir.IRBuilder
    high: ir.Value
    low: ir.Value

    def __mul__(self, other):
        builder = self.builder
        high = builder.fmul(self.high, other.high)
        error = builder.fma(self.high, other.high, builder.fneg(high))
        crossed = builder.fma(self.high, other.low, builder.fmul(self.low, other.high))
        return _Precise(builder, high, builder.fadd(error, crossed))

    def reciprocal(self):
        builder, one = self.builder, self.high.type(1.0)
        high = builder.fdiv(one, self.high)
        rest = builder.fma(builder.fneg(high), self.high, one)
        rest = builder.fma(builder.fneg(high), self.low, rest)
        return _Precise(builder, high, builder.fmul(rest, high))

    def root(self):
        builder = self.builder
        high = _square_root(builder, self.high)
        rest = builder.fadd(builder.fma(builder.fneg(high), high, self.high), self.low)
        return _Precise(builder, high, builder.fdiv(rest, builder.fadd(high, high)))

    def rounded(self):
        """Their sum; where it is 0 or infinite there is no error."""
        builder, zero = self.builder, self.high.type(0.0)
        total = builder.fadd(self.high, self.low)
        differs = builder.fcmp_ordered("one", total, zero)  # neither 0 nor infinity less infinity
        return builder.select(differs, total, self.high)


class _Rounded(NamedTuple):
    """The same without errors, for steps that are few or more precise than the result."""

    builder: ir.IRBuilder
    high: ir.Value

    def __mul__(self, other):
        return _Rounded(self.builder, self.builder.fmul(self.high, other.high))

    def reciprocal(self):
        return _Rounded(self.builder, self.builder.fdiv(self.high.type(1.0), self.high))

    def root(self):
        return _Rounded(self.builder, _square_root(self.builder, self.high))

    def rounded(self):
        return self.high


def _square_root(builder, x):
    return builder.call(builder.module.declare_intrinsic("llvm.sqrt", [x.type]), [x])


def _half_integer_power(builder, x, halves, exactly):
    if halves % 2:  # of -inf as `pow` has it, not as the square root; of -0, too
        x = builder.fadd(x, x.type(0.0))
        lowest = builder.fcmp_ordered("==", x, x.type(-inf))
        x = builder.select(lowest, x.type(inf), x)
    is_short = -2 <= halves <= 6  # within 1.8 units, by trial
    rounded = _Rounded(builder, x)
    base = rounded if is_short or not exactly else _Precise(builder, x, x.type(0.0))
    root = base.root() if halves % 2 else None
    if halves < 0:  # before the products, which may overflow where the result does not
        base, root = base.reciprocal(), root and root.reciprocal()
    count, result = abs(halves) // 2, root
    while count:
        if count % 2:
            result = base if result is None else result * base
        count //= 2
        base = base * base if count else base
    return result.rounded()


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
    "order_down", "from_order", "half_integer_power", "integer_power",
)  # fmt: skip
