"""Special functions in generated code: SciPy's own, called by address, and what SciPy exports not.

SciPy exports its functions of numbers to C (``scipy.special.cython_special``), so that the values
are SciPy's to the last bit, and no call goes through Python.
"""

import ctypes
import functools
import math

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import get_cython_function_address, intrinsic

from nbta.codegen.fusion import Elementwise
from nbta.loops import call, several
from nbta.loops.nodes import as_node
from nbta.runtime.intrinsics import _items
from nbta.tuning import ZETA_FROM

_MODULE = "scipy.special.cython_special"
#: What helpers are called whose addresses are SciPy's.
PREFIX = "special_"
_INT32, _DOUBLE = ir.IntType(32), ir.DoubleType()


@functools.cache
def special_address(name: str, arity: int) -> int | None:
    """The address of SciPy's function of so many float64; None where it has none to give.

    Functions of several types are exported once for each, with a number before the name.
    """
    import importlib

    exports = importlib.import_module(_MODULE).__pyx_capi__
    wanted = f"double ({'double, ' * arity}int __pyx_skip_dispatch)"
    for symbol in (name, *(f"__pyx_fuse_{k}{name}" for k in range(4))):
        if symbol in exports and _signature(exports[symbol]) == wanted:
            return get_cython_function_address(_MODULE, symbol)
    return None


def _signature(capsule):
    """What a capsule of Cython's says of the function in it."""
    name_of = ctypes.pythonapi.PyCapsule_GetName
    name_of.restype, name_of.argtypes = ctypes.c_char_p, [ctypes.py_object]
    return name_of(capsule).decode()


@intrinsic
def of_reals(typingctx, function, arguments):
    """What a function of C's, at an address, gives for float64 and a last integer, which is 0."""

    def codegen(context, builder, sig, args):
        given = [
            context.cast(builder, value, kind, types.float64)
            for value, kind in zip(_items(builder, args[1]), arguments, strict=True)
        ]
        kind = ir.FunctionType(_DOUBLE, [_DOUBLE] * len(given) + [_INT32]).as_pointer()
        return builder.call(builder.inttoptr(args[0], kind), [*given, _INT32(0)])

    return types.float64(types.int64, arguments), codegen


class OfSciPy(Elementwise):
    """Calls a function that SciPy exports; float32 goes by float64, as in SciPy.

    Parameters
    ----------
    name : str or callable
        SciPy's name; or ``name(op)``, which gives it with numbers that go before the operands.
    """

    def __init__(self, name):
        super().__init__(None, "f")
        self._name = name if callable(name) else lambda op: (name,)

    def __call__(self, code, op):
        """As for others; Python does it where SciPy exports no such function."""
        name, *before = self._name(op)
        if special_address(name, len(before) + len(op.inputs)) is None:
            code.call_python(op)
        else:
            super().__call__(code, op)

    def item(self, op, items, code):
        """An item of the result."""
        name, *before = self._name(op)
        given = (*map(as_node, before), *items)
        return call("of_reals", code.helper(f"{PREFIX}{name}_{len(given)}"), several(*given))


#: Bernoulli numbers over factorials, of 2, 4, ...: what the sums below differ from integrals by.
BERNOULLI = (
    1 / 12, -1 / 720, 1 / 30240, -1 / 1209600, 1 / 47900160, -691 / 1307674368000,
    1 / 74724249600, -3617 / 10670622842880000, 43867 / 5109094217170944000,
    -174611 / 802857662698291200000,
)  # fmt: skip


@numba.njit(error_model="numpy")
def _euler_maclaurin(s, q):
    """The sum of ``(q + k)**-s`` over all k from 0 on, by the formula of Euler and Maclaurin.

    The first ones are added up until as many corrections as there are leave nothing: each is about
    ``((s + 2 j) / (2 pi q))**2`` of the one before.
    """
    total, far = 0.0, 12.0 + 0.55 * s
    power = q**-s
    while q < far:
        total += power
        q += 1.0
        power = q**-s
        if q > 0.0 and power * q <= 1e-18 * abs(total):
            return total
    total += power * q / (s - 1.0) + 0.5 * power
    term, k = power * s / q, 1.0
    for ratio in BERNOULLI:
        total += term * ratio
        term *= (s + k) * (s + k + 1.0) / (q * q)
        k += 2.0
    return total


@numba.njit(error_model="numpy")
def hurwitz_zeta(s, q):
    """The sum of ``(q + k)**-s`` over all k from 0 on, which there is for exponents above 1."""
    s, q = float(s), float(q)
    if s <= 1.0:
        return math.inf if s == 1.0 else math.nan
    if q <= 0.0 and q == np.floor(q):
        return math.inf
    if s != s or q != q or (q <= 0.0 and s != np.floor(s)):
        return math.nan
    if q > 1e8:  # one correction is enough, and powers of s would leave the range first
        return (1.0 / (s - 1.0) + 0.5 / q) * q ** (1.0 - s)
    if s == math.inf and q > 1.0:
        return math.nan  # as SciPy
    return _euler_maclaurin(s, q)


@numba.njit(error_model="numpy")
def riemann_zeta(s):
    """Riemann's zeta function from there on; the sum's formula holds where the sum has no end."""
    s = float(s)
    if s < ZETA_FROM:
        return math.nan
    return hurwitz_zeta(s, 1.0) if s >= 1.0 else _euler_maclaurin(s, 1.0)


@numba.njit(error_model="numpy")
def _lambert_start(x, k):
    """Near the value; near -1 by the series in ``sqrt(2 * (e * x + 1))``."""
    off = max(2.0 * (math.e * x + 1.0), 0.0)
    if off < 0.6:
        root = math.sqrt(off) if k == 0 else -math.sqrt(off)
        return -1.0 + root * (1.0 - root * (1.0 / 3.0 - root * (11.0 / 72.0)))
    if k != 0:
        return math.log(-x) - math.log(-math.log(-x))
    if x > 3.0:
        return math.log(x) - math.log(math.log(x))
    high = math.log1p(x)
    return high * (1.0 - math.log1p(high) / (2.0 + high))


@numba.njit(error_model="numpy")
def lambert_w(x, k):
    """The real w with ``w * exp(w) = x``, from -1 upwards (k = 0) or downwards (k = -1)."""
    x = float(x)
    if x != x or math.e * x + 1.0 < -1e-15 or (k != 0 and x > 0.0):
        return math.nan
    if x == 0.0 or x == math.inf:
        return x if k == 0 else -math.inf
    w = _lambert_start(x, k)
    for _ in range(30):  # by Halley's iteration
        if w == -1.0:
            return w
        # On the lower branch an exponential alone may be out of range.
        tail = w - (x * math.exp(-w) if k == 0 else -math.exp(math.log(-x) - w))
        step = tail / (w + 1.0 - (w + 2.0) * tail / (2.0 * w + 2.0))
        w -= step
        if not abs(step) > 1e-10 * abs(w):
            return w
    return w


#: Names in generated code.
NAMES = {
    "of_reals": of_reals,
    "hurwitz_zeta": hurwitz_zeta,
    "riemann_zeta": riemann_zeta,
    "lambert_w": lambert_w,
}
