"""Products with logarithms: entropies, and what undoes ``w * exp(w)``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nbta.codegen.fusion import Elementwise, ElementwiseOf
from nbta.codegen.special import OfSciPy
from nbta.codegen.special import lambert_w as _of_number
from nbta.errors import invalid
from nbta.loops import both, call, select
from nbta.ops.axes.reductions import sum as sum_
from nbta.ops.core.arithmetic import divide, equal, logical_and, logical_not, where
from nbta.ops.core.checks import checked
from nbta.ops.core.dispatch import apply, exported, stands_for
from nbta.ops.core.elementwise import (
    binary,
    define_elementwise,
    floats_only,
    from_scipy,
    of_two,
    promoted,
    unary,
)
from nbta.ops.core.filling import zeros_like
from nbta.ops.core.shaping import cast
from nbta.ops.elementary.basic import exp, log, log1p
from nbta.ops.elementary.rounding import isnan

if TYPE_CHECKING:
    from nbta.typing import Array, ArrayLike


def _share(x, whole):
    """``x / whole``, and 0 of nothing, whatever the whole is."""
    none = equal(x, 0)
    return where(none, zeros_like(x), divide(x, where(none, 1.0, whole)))


def _times_logarithm(name):
    """An emitted rule: a number times the logarithm of another one, and 0 where that is 0."""
    return lambda x, y: select(both(x.equals(0), y.equals(y)), 0, x * call(name, y))


@binary(
    "XLogY",
    of_two("xlogy"),
    lambda x, y, z, dz: (dz * log(y), dz * _share(x, y)),
    infer=floats_only,
    floats=True,
    also=("xlogy",),
    emit=Elementwise(_times_logarithm("log"), "f"),
)
def xlogy(x: ArrayLike, y: ArrayLike, *, name: str | None = None) -> Array:
    """``x * log(y)``, and 0 where ``x`` is 0, as ``scipy.special.xlogy``.

    Where ``x`` is 0, the derivative is ``log(y)`` with respect to ``x`` and 0 with respect to
    ``y``.

    Examples
    --------
    >>> nbta.xlogy([0.0, 2.0], [0.0, np.e])
    array([0., 2.])
    """


@binary(
    "XLog1PY",
    of_two("xlog1py"),
    lambda x, y, z, dz: (dz * log1p(y), dz * _share(x, 1 + y)),
    infer=floats_only,
    floats=True,
    also=("xlog1py",),
    emit=Elementwise(_times_logarithm("log1p"), "f"),
)
def xlog1py(x: ArrayLike, y: ArrayLike, *, name: str | None = None) -> Array:
    """``x * log1p(y)``, and 0 where ``x`` is 0, as ``scipy.special.xlog1py``.

    Where ``x`` is 0, the derivative is ``log1p(y)`` with respect to ``x`` and 0 with respect to
    ``y``.

    Examples
    --------
    >>> nbta.xlog1py([0.0, 2.0], [-1.0, 1e-12])
    array([0.e+00, 2.e-12])
    """


@unary(
    "Entr",
    lambda x: from_scipy("entr", x),
    lambda x, y: -log(x) - 1,
    infer=floats_only,
    also=("entr",),
    emit=OfSciPy("entr"),
)
def entr(x: ArrayLike, *, name: str | None = None) -> Array:
    """Entropy ``-x * log(x)``, 0 at 0 and -inf for negative numbers, as ``scipy.special.entr``.

    The derivative is infinite at 0 and NaN for negative numbers.

    Examples
    --------
    >>> nbta.entr([0.0, 0.5])
    array([0.        , 0.34657359])
    """


@binary(
    "RelEntr",
    of_two("rel_entr"),
    lambda x, y, z, dz: (dz * (log(divide(x, y)) + 1), -dz * _share(x, y)),
    infer=floats_only,
    floats=True,
    also=("rel_entr",),
    emit=OfSciPy("rel_entr"),
)
def rel_entr(x: ArrayLike, y: ArrayLike, *, name: str | None = None) -> Array:
    """Relative entropy ``x * log(x / y)``, as ``scipy.special.rel_entr``.

    It is 0 where ``x`` is 0 and ``y`` is not negative, and infinite for other pairs that are not
    both positive. Where ``x`` is 0, the derivative with respect to ``x`` is -inf.

    Examples
    --------
    >>> nbta.rel_entr([0.0, 0.5], [1.0, 0.25])
    array([0.        , 0.34657359])
    """


@binary(
    "KLDiv",
    of_two("kl_div"),
    lambda x, y, z, dz: (dz * log(divide(x, y)), dz * (1 - _share(x, y))),
    infer=floats_only,
    floats=True,
    also=("kl_div",),
    emit=OfSciPy("kl_div"),
)
def kl_div(x: ArrayLike, y: ArrayLike, *, name: str | None = None) -> Array:
    """``x * log(x / y) - x + y``, as ``scipy.special.kl_div``; see `nbta.rel_entr`.

    Examples
    --------
    >>> nbta.kl_div([0.0, 0.5], [1.0, 0.25])
    array([1.        , 0.09657359])
    """


def _infer_lambert(spec, *, k):
    return floats_only(spec)


_OF_NUMBERS = np.frompyfunc(_of_number.py_func, 2, 1)


def _evaluate_lambert(x, *, k):
    return np.asarray(_OF_NUMBERS(x.astype(np.float64), k)).astype(x.dtype)


def _lambert_gradient(op, dw):
    w = op.outputs[0]
    return [dw * divide(exp(-w), 1 + w)]


class _EmitLambert(ElementwiseOf):
    """The branch is a number in the call."""

    def __init__(self):
        super().__init__(lambda op, x: call("lambert_w", x, op.attrs["k"]), "f")


LAMBERT_W = define_elementwise(
    "LambertW", _infer_lambert, _evaluate_lambert, _lambert_gradient, emit=_EmitLambert()
)


@exported
def lambertw(x: ArrayLike, k: int = 0, *, name: str | None = None) -> Array:
    """Lambert's W function: the real ``w`` with ``w * exp(w) == x``, or NaN where there is none.

    ``scipy.special.lambertw`` of tensors gives the same value as a complex number.

    Parameters
    ----------
    x : array-like or Tensor
        Real numbers from ``-1 / e`` on; the derivative is infinite at that end.
    k : {0, -1}, default 0
        Branch: 0 for values from -1 upwards, -1 for values from -1 downwards, which exist for
        negative ``x`` alone.

    Returns
    -------
    Tensor or numpy.ndarray
        Of the shape and dtype of ``x``; float64 for integers and booleans.

    Raises
    ------
    InvalidArgumentError
        For complex numbers, and for other branches, which have no real values.

    Examples
    --------
    >>> nbta.lambertw([0.0, np.e])
    array([0., 1.])
    """
    if k not in (0, -1):
        raise invalid("value", f"k: the branch {k} has no real values; give 0 or -1")
    return apply(LAMBERT_W, promoted(x, floats=True), {"k": int(k)}, name=name)


@stands_for("scipy.special.lambertw", numpy=2)
def _lambertw_of_scipy(z, k=0, tol=1e-8):
    if not 0 <= tol <= 1e-8:
        raise invalid("value", f"tol must be from 0 to 1e-8, nbta's own, not {tol!r}; leave it out")
    found = lambertw(z, k)
    is_complex = logical_and(isnan(found), logical_not(isnan(z)))
    message = (
        f"scipy.special.lambertw: the branch k={k} is complex here, and nbta has its real part"
    )
    holds = equal(sum_(cast(is_complex, np.int64)), 0)
    return cast(checked(found, holds, f"{message} alone"), np.complex128)
