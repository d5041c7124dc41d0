"""Random bits from keys and counters, and what numbers are made of them."""

import numpy as np

from nbta.codegen import gammas, philox
from nbta.codegen.fusion import Elementwise, ElementwiseOf, calling
from nbta.codegen.special import OfSciPy
from nbta.errors import invalid
from nbta.graph.operation import NotDifferentiable, Spec
from nbta.loops import call
from nbta.ops.core.dispatch import apply
from nbta.ops.core.elementwise import (
    broadcast_shape,
    broadcasting,
    define_elementwise,
    floats_only,
    from_scipy,
    summed,
)
from nbta.ops.special.gammas import variate_slope

BITS = np.dtype(np.uint64)
_NO_GRADIENT = NotDifferentiable("random bits are integers, which have no derivative")


def _of_bits(*specs, **attrs):
    for spec in specs:
        if spec.dtype != BITS:
            raise invalid("dtype", f"random: keys are uint64, not {spec.dtype}; use random.key")
    return broadcasting(*specs)


def _evaluate_philox(key, counter, *, stream):
    key, counter = np.broadcast_arrays(key, counter)
    return np.asarray(philox.philox.py_func(key, counter, np.uint64(stream)))


PHILOX = define_elementwise(
    "Philox", _of_bits, _evaluate_philox, _NO_GRADIENT,
    emit=ElementwiseOf(
        lambda op, *counters: call("philox", *counters, call("uint64", op.attrs["stream"])), "u"
    ),
)  # fmt: skip


def _evaluate_unit(bits, *, dtype):
    return np.asarray(philox.unit_of.py_func(bits, np.uint64(_rest(dtype))).astype(dtype))


def _rest(dtype):
    """How many bits a number has no room for, with one for the middle of the cell."""
    return 64 - np.finfo(dtype).nmant


UNIT = define_elementwise(
    "UnitOfBits", lambda spec, *, dtype: _of_bits(spec)._replace(dtype=dtype), _evaluate_unit,
    _NO_GRADIENT,
    emit=ElementwiseOf(
        lambda op, bits: call("unit_of", bits, call("uint64", _rest(op.attrs["dtype"]))), "u"
    ),
)  # fmt: skip
BELOW = define_elementwise(
    "BelowOfBits", _of_bits,
    lambda bits, span: np.asarray(philox.below.py_func(bits, span)), _NO_GRADIENT,
    emit=Elementwise(calling("below"), "u"),
)  # fmt: skip


def _infer_gamma(key, counter, a):
    return Spec(a.dtype, broadcast_shape(_of_bits(key, counter), a))


def _evaluate_gamma(key, counter, a):
    found = gammas.over_arrays(gammas.gamma_of)(key, counter, a.astype(np.float64))
    return np.asarray(found).astype(a.dtype)


GAMMA = define_elementwise(
    "RandomGamma", _infer_gamma, _evaluate_gamma,
    summed(lambda key, counter, a, x, dx: (None, None, dx * variate_slope(a, x))),
    emit=Elementwise(calling("gamma_of"), "uf"),
)  # fmt: skip
# SciPy's, whose bits are the same in NumPy and in compiled code.
LOG1P = define_elementwise(
    "Log1pOfSciPy", floats_only, lambda x: from_scipy("log1p", x),
    lambda op, dy: [dy / (1 + op.inputs[0])], emit=OfSciPy("log1p"),
)  # fmt: skip


def philox_bits(key, counter, stream):
    """64 random bits for each counter; what ``stream`` tells apart has nothing in common."""
    return apply(PHILOX, [key, counter], {"stream": int(stream)})


def unit_of(bits, dtype):
    """Numbers between 0 and 1, none of them either, as fine as the dtype has them below 1."""
    return apply(UNIT, [bits], {"dtype": np.dtype(dtype)})


def gamma_of(key, counter, a):
    """Gamma variates of orders, for each counter."""
    return apply(GAMMA, [key, counter, a])


def below(bits, span):
    """Integers from 0 on below others."""
    return apply(BELOW, [bits, span])


def log1p_of_scipy(x):
    """``log(1 + x)``, to bitwise identical results everywhere."""
    return apply(LOG1P, [x])
