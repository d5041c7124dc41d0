"""What functions of Python's `math` and `cmath` are for values that only the run knows."""

from __future__ import annotations

import math

import numpy as np

from nbta.errors import UnimplementedError
from nbta.frontend import native, python_numbers
from nbta.frontend.languages import is_numbas
from nbta.frontend.problems import here
from nbta.frontend.raising import check_integer, check_math
from nbta.graph.operation import Tensor
from nbta.ops.axes import reductions
from nbta.ops.core import arithmetic
from nbta.ops.core.arithmetic import complex_of
from nbta.ops.core.checks import checked
from nbta.ops.core.dispatch import FUNCTIONS, as_tensor
from nbta.ops.core.shaping import cast
from nbta.ops.elementary import basic as elementary
from nbta.ops.elementary import integers, rounding, trigonometry
from nbta.ops.numbers import Number
from nbta.ops.special import gammas


def call_math(function, args, kwargs):
    """A call of a function of math or cmath."""
    args, kwargs = native.plain(args), native.plain(kwargs)
    module = function.__module__
    ours = (_FUNCTIONS if module == "math" else _COMPLEX).get(function.__name__)
    if native.is_known((args, kwargs)):
        return _known(function, ours, args, kwargs)
    traced = [v for v in args if isinstance(v, Tensor)]
    if ours is None and all(isinstance(v, Number) for v in traced):
        return function(*args, **kwargs)  # which asks for the lengths
    if ours is None:
        message = (
            f"{here()}: {module}.{function.__name__} has no operation of nbta's; write it with "
            f"others, or give it a gradient with nbta.custom_gradient"
        )
        raise UnimplementedError(message)
    if function.__name__ in ("floor", "ceil", "trunc"):
        check_integer(f"math.{function.__name__}()", args[0])
    if is_numbas():
        return ours(*args, **kwargs)
    found = ours(*(map(_as_pythons, args) if module == "math" else args), **kwargs)
    check_math(function.__name__, module, found, args)
    if module == "math":
        python_numbers.note(found)
    return found


def _as_pythons(value):
    """A number in the precision in which Python's functions compute."""
    narrow = isinstance(value, Tensor) and value.ndim == 0 and value.dtype.kind == "f"
    return cast(as_tensor(value), np.float64) if narrow else value


def _known(function, ours, args, kwargs):
    """The function of known numbers: what Numba compiles gives NaN and infinity, and no error."""
    try:
        return function(*args, **kwargs)
    except (ValueError, OverflowError):
        if ours is None or not is_numbas():
            raise
    with np.errstate(all="ignore"):
        return ours(*args, **kwargs)


def as_float(value):
    """Integers and truth values as floats, as math takes them."""
    if isinstance(value, Tensor) and value.dtype.kind in "iub":
        return cast(as_tensor(value), np.float64)
    return value


def rounded(function):
    """A function that rounds to integers, and leaves those as they are."""

    def round_(x):
        found = as_tensor(x)
        return found if found.dtype.kind in "iu" else cast(function(as_float(found)), np.int64)

    return round_


def _of_floats(function):
    """A function of math's, which makes floats of integers."""
    return lambda *args: function(*map(as_float, args))


def _log(x, *base):
    found = elementary.log(as_float(x))
    return found / _log(*base) if base and isinstance(base[0], Tensor) else (
        found / math.log(*base) if base else found
    )  # fmt: skip


def _ldexp(x, exponent):
    """By two factors, as one alone may be out of range where the result is not."""
    exponent = as_tensor(exponent)
    half = arithmetic.floor_divide(exponent, 2)
    return (
        as_float(x) * elementary.exp2(as_float(half)) * elementary.exp2(as_float(exponent - half))
    )


def _modf(x):
    whole = rounding.trunc(x)
    return x - whole, whole


def _remainder(x, y):
    """IEEE 754's: what is left of the nearest multiple, of two the even one; each step is exact."""
    size, step = elementary.abs(x), elementary.abs(y)
    left = rounding.fmod(size, 2 * step)
    half = arithmetic.greater(left, 0.5 * step)
    most = arithmetic.greater_equal(left, 1.5 * step)
    left = left - step * arithmetic.where(most, 2.0, arithmetic.where(half, 1.0, 0.0))
    return left * rounding.copysign(1.0, x)


def _isclose(a, b, *, rel_tol=1e-09, abs_tol=0.0):
    a, b = as_float(a), as_float(b)
    least = arithmetic.maximum(
        rel_tol * arithmetic.maximum(elementary.abs(a), elementary.abs(b)), abs_tol
    )
    finite = arithmetic.logical_and(elementary.isfinite(a), elementary.isfinite(b))
    near = arithmetic.logical_and(finite, arithmetic.less_equal(elementary.abs(a - b), least))
    return arithmetic.logical_or(near, arithmetic.equal(a, b))


def _hypot(*sides):
    sides = [as_float(side) for side in sides]
    if len(sides) == 2:
        return trigonometry.hypot(*sides)
    return elementary.sqrt(arithmetic.add_n([as_tensor(side) ** 2 for side in sides]))


def _items(values):
    """The items of what math goes along, as a vector."""
    return values if isinstance(values, Tensor) else native.together(list(values))


def _dist(p, q):
    p, q = (as_tensor(as_float(_items(point))) for point in (p, q))
    same = arithmetic.equal(native.length(p), native.length(q))
    message = f"{here()}: math.dist: both points must have the same number of dimensions"
    apart = checked(p, same, message) - q
    return elementary.sqrt(reductions.sum(apart * apart))


def _prod(items, *, start=1):
    return reductions.prod(_items(items)) * start


def _of_integers(function):
    """A function of any number of integers."""

    def combined(*values):
        found = values[0] if values else 0
        for value in values[1:]:
            found = function(found, value)
        return elementary.abs(as_tensor(found)) if len(values) == 1 else found

    return combined


def _find():
    named = "erf erfc sqrt exp exp2 expm1 log1p log2 log10 sin cos tan sinh cosh tanh cbrt trunc"
    named += " isnan isinf isfinite copysign fmod gamma"
    found = {name: FUNCTIONS[name] for name in named.split() if hasattr(math, name)}
    found |= {name: FUNCTIONS[f"arc{name[1:]}"] for name in (
        "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh")}  # fmt: skip
    found |= {
        "pow": elementary.power, "fabs": elementary.abs, "lgamma": gammas.gammaln,
        "radians": lambda x: x * (math.pi / 180.0), "degrees": lambda x: x * (180.0 / math.pi),
        "modf": _modf, "remainder": _remainder,
    }  # fmt: skip
    found = {name: _of_floats(function) for name, function in found.items()}
    return found | {
        "log": _log, "ldexp": _ldexp, "isclose": _isclose, "hypot": _hypot, "dist": _dist,
        "prod": _prod, "fsum": lambda items: reductions.sum(as_float(_items(items))),
        "floor": rounded(elementary.floor), "ceil": rounded(rounding.ceil),
        "trunc": rounded(rounding.trunc),
        "gcd": _of_integers(integers.gcd), "lcm": _of_integers(integers.lcm),
    }  # fmt: skip


def as_complex(value):
    """A number as cmath takes it: the root of -1.0 is 1j there."""
    return cast(as_tensor(value), np.complex128) if isinstance(value, Tensor) else complex(value)


def _polar(z):
    z = as_complex(z)
    return elementary.abs(z), trigonometry.angle(z)


def _rect(radius, phase):
    radius, phase = as_float(radius), as_float(phase)
    return complex_of(radius * elementary.cos(phase), radius * elementary.sin(phase))


def _complex_log(z, *base):
    found = elementary.log(as_complex(z))
    return found / _complex_log(*base) if base else found


def _find_complex():
    named = "exp log10 sqrt sin cos tan sinh cosh tanh"
    named += " isfinite isinf isnan"
    found = {name: FUNCTIONS[name] for name in named.split()}
    found |= {f"a{name}": FUNCTIONS[f"arc{name}"] for name in
              ("cos", "cosh", "sin", "sinh", "tan", "tanh")}  # fmt: skip
    found["phase"] = trigonometry.angle

    def of_complex(function):
        return lambda z: function(as_complex(z))

    found = {name: of_complex(function) for name, function in found.items()}
    return found | {"log": _complex_log, "polar": _polar, "rect": _rect, "isclose": _isclose}


_FUNCTIONS = _find()
_COMPLEX = _find_complex()
