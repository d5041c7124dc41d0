"""Powers and exponentials where differences of nearly equal numbers would lose digits.

Box and Cox's transforms and their inverses, what robust losses are made of, exponential integrals,
and the dilogarithm.
"""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING

import numpy as np

from nbta.codegen.fusion import INF, Elementwise
from nbta.codegen.special import OfSciPy
from nbta.errors import invalid
from nbta.loops import call, select
from nbta.ops.core.arithmetic import (
    add,
    clip,
    divide,
    equal,
    greater,
    less,
    maximum,
    minimum,
    multiply,
    negative,
    reciprocal,
    square,
    subtract,
    where,
)
from nbta.ops.core.dispatch import apply, exported, stands_for
from nbta.ops.core.elementwise import (
    binary,
    define_elementwise,
    floats_only,
    from_scipy,
    of_one,
    of_two,
    promoted,
)
from nbta.ops.core.filling import ones_like, zeros_like
from nbta.ops.elementary.basic import (
    abs,
    base_gradient,
    exp,
    exponent_gradient,
    log,
    log1p,
    power,
    sign,
    sqrt,
)
from nbta.ops.special.bessel import in_scipys_dtype

if TYPE_CHECKING:
    from nbta.typing import Array, ArrayLike


def _by_powers(x, limit, coefficients, beyond):
    """A series near 0, and something else beyond: each is asked where it is meant alone."""
    near = less(abs(x), limit)
    inside, outside = where(near, x, zeros_like(x)), where(near, ones_like(x), x)
    found = zeros_like(x)
    for coefficient in reversed(coefficients):
        found = add(multiply(found, inside), coefficient)
    return where(near, found, beyond(outside))


@of_one("Exp10", "exp10", lambda x, y: math.log(10) * y)
def exp10(x: ArrayLike, *, name: str | None = None) -> Array:
    """10 to the power of each element, as ``scipy.special.exp10``.

    Examples
    --------
    >>> nbta.exp10([0.0, 3.0])
    array([   1., 1000.])
    """


#: Of powers of x in the derivative of `exprel`; as many as leave less than the last place of one of
#: third order at 0.5.
_SLOPES = [(k + 1) / math.factorial(k + 2) for k in range(20)]


def _exprel_slope(x, y):
    return _by_powers(x, 0.5, _SLOPES, _exprel_slope_beyond)


def _exprel_slope_beyond(x):
    inverse = reciprocal(minimum(x, 6e4))  # infinity over itself would be NaN
    return add(multiply(multiply(exp(x), 1 - inverse), inverse), square(inverse))


@of_one("ExpRel", "exprel", _exprel_slope)
def exprel(x: ArrayLike, *, name: str | None = None) -> Array:
    """``(exp(x) - 1) / x``, and 1 at 0, as ``scipy.special.exprel``.

    Examples
    --------
    >>> nbta.exprel([0.0, 1.0])
    array([1.        , 1.71828183])
    """


@binary(
    "PowM1",
    of_two("powm1"),
    lambda x, y, z, dz: (
        lambda: base_gradient(x, y, z, dz),
        lambda: exponent_gradient(x, add(z, 1), dz),
    ),
    infer=floats_only,
    floats=True,
    also=("powm1",),
    emit=OfSciPy("powm1"),
)
def powm1(x: ArrayLike, y: ArrayLike, *, name: str | None = None) -> Array:
    """``x**y - 1``, accurate where it is small, as ``scipy.special.powm1``.

    Examples
    --------
    >>> nbta.powm1(2.0, [3.0, 1e-12])
    array([7.00000000e+00, 6.93147181e-13])
    """


def _curve(w, lmbda):
    """The derivative of ``(exp(lmbda w) - 1) / lmbda`` by ``lmbda``."""
    none, rises = equal(w, -math.inf), greater(lmbda, 0)
    end = where(rises, square(reciprocal(where(rises, lmbda, 1.0))), math.inf)
    w = where(none, 0.0, w)
    t = multiply(lmbda, w)
    return where(none, end, multiply(square(w), _exprel_slope(t, None)))


def _of_number(y, slope):
    """A slope, and NaN where a value is: powers of NaN are numbers if they are 0th ones."""
    return where(equal(y, y), slope, y)


def _boxcox_gradient(base, logarithm):
    def gradient(x, lmbda, y, dy):
        slope = _of_number(y, power(base(x), lmbda - 1))
        return dy * slope, dy * _curve(logarithm(x), lmbda)

    return gradient


@binary(
    "BoxCox",
    of_two("boxcox"),
    _boxcox_gradient(lambda x: x, log),
    infer=floats_only,
    floats=True,
    also=("boxcox",),
    emit=OfSciPy("boxcox"),
)
def boxcox(x: ArrayLike, lmbda: ArrayLike, *, name: str | None = None) -> Array:
    """Box-Cox transform ``(x**lmbda - 1) / lmbda``, as ``scipy.special.boxcox``.

    Where ``lmbda`` is 0 it is ``log(x)``.

    Examples
    --------
    >>> nbta.boxcox([1.0, 4.0], [0.0, 0.5])
    array([0., 2.])
    """


@binary(
    "BoxCox1P",
    of_two("boxcox1p"),
    _boxcox_gradient(lambda x: 1 + x, log1p),
    infer=floats_only,
    floats=True,
    also=("boxcox1p",),
    emit=OfSciPy("boxcox1p"),
)
def boxcox1p(x: ArrayLike, lmbda: ArrayLike, *, name: str | None = None) -> Array:
    """Box-Cox transform of ``1 + x``, as ``scipy.special.boxcox1p``; see `nbta.boxcox`.

    Examples
    --------
    >>> nbta.boxcox1p([0.0, 3.0], [0.0, 0.5])
    array([0., 2.])
    """


def _inverse_gradient(base, logarithm):
    """The slope of ``x`` by ``lmbda`` is ``-x w**2 p(-lmbda w)``, with ``w`` the logarithm.

    There ``p(t)`` is ``(exp(t) - 1 - t) / t**2``, which is `exprel` less its derivative. Where
    ``x`` is 0, it comes to the slope by ``y`` over ``lmbda**2``.
    """

    def gradient(y, lmbda, x, dx):
        w, slope = logarithm(x), _of_number(x, power(base(x), 1 - lmbda))
        none = equal(w, -math.inf)
        w = where(none, 0.0, w)
        t = negative(multiply(lmbda, w))
        bent = base(x) * square(w) * subtract(exprel(t), _exprel_slope(t, None))
        end = divide(slope, square(where(none, lmbda, 1.0)))
        return dx * slope, negative(dx * where(none, end, bent))

    return gradient


@binary(
    "InvBoxCox",
    of_two("inv_boxcox"),
    _inverse_gradient(lambda x: x, log),
    infer=floats_only,
    floats=True,
    also=("inv_boxcox",),
    emit=OfSciPy("inv_boxcox"),
)
def inv_boxcox(y: ArrayLike, lmbda: ArrayLike, *, name: str | None = None) -> Array:
    """Inverse of `nbta.boxcox` in its first argument, as ``scipy.special.inv_boxcox``.

    Examples
    --------
    >>> nbta.inv_boxcox([0.0, 2.0], [0.0, 0.5])
    array([1., 4.])
    """


@binary(
    "InvBoxCox1P",
    of_two("inv_boxcox1p"),
    _inverse_gradient(lambda x: 1 + x, log1p),
    infer=floats_only,
    floats=True,
    also=("inv_boxcox1p",),
    emit=OfSciPy("inv_boxcox1p"),
)
def inv_boxcox1p(y: ArrayLike, lmbda: ArrayLike, *, name: str | None = None) -> Array:
    """Inverse of `nbta.boxcox1p` in its first argument, as ``scipy.special.inv_boxcox1p``.

    Examples
    --------
    >>> nbta.inv_boxcox1p([0.0, 2.0], [0.0, 0.5])
    array([0., 3.])
    """


def _huber_gradient(delta, r, y, dy):
    return dy * maximum(subtract(abs(r), delta), 0), dy * clip(r, negative(delta), delta)


def _where_negative(gradient):
    """A loss with a negative threshold is infinite, and has no slope."""

    def rule(delta, r, y, dy):
        fits = less(delta, 0)
        threshold = where(fits, ones_like(delta), delta)
        return [where(fits, 0.0, one) for one in gradient(threshold, r, y, dy)]

    return rule


def _emit_huber(delta, r):
    size = call("abs", r)
    near, far = 0.5 * r * r, delta * (size - 0.5 * delta)
    return select(delta < 0, INF, select(size <= delta, near, far))


@binary(
    "Huber",
    of_two("huber"),
    _where_negative(_huber_gradient),
    infer=floats_only,
    floats=True,
    also=("huber",),
    emit=Elementwise(_emit_huber, "f"),
)
def huber(delta: ArrayLike, r: ArrayLike, *, name: str | None = None) -> Array:
    """Huber loss: ``r**2 / 2`` within ``delta`` of 0 and linear beyond, as ``scipy.special.huber``.

    It is infinite where ``delta`` is negative.

    Examples
    --------
    >>> nbta.huber(1.0, [0.5, -3.0])
    array([0.125, 2.5  ])
    """


def _far_out(dtype):
    """Of ``r / delta``: from there on a square may leave the range, and hardly matters."""
    return 1e17 if dtype.itemsize > 2 else 250


def _pseudo_gradient(delta, r, y, dy):
    """With ``v = r / delta``; the difference ``sqrt(1 + v**2) - 1`` as a product."""
    none = equal(delta, 0)
    threshold = where(none, ones_like(delta), delta)
    v = divide(r, threshold)
    far = greater(abs(v), _far_out(v.dtype))
    v = where(far, 0.0, v)
    root = sqrt(1 + square(v))
    more = multiply(v, divide(v, root + 1))
    bent = where(far, abs(r), threshold * divide(square(more), root))
    slope = where(far, threshold * sign(r), threshold * divide(v, root))
    return where(none, 0.0, dy * bent), where(none, 0.0, dy * slope)


@binary(
    "PseudoHuber",
    of_two("pseudo_huber"),
    _where_negative(_pseudo_gradient),
    infer=floats_only,
    floats=True,
    also=("pseudo_huber",),
    emit=OfSciPy("pseudo_huber"),
)
def pseudo_huber(delta: ArrayLike, r: ArrayLike, *, name: str | None = None) -> Array:
    """Smooth Huber loss, ``delta**2 * (sqrt(1 + (r / delta)**2) - 1)``; see `nbta.huber`.

    It follows ``scipy.special.pseudo_huber``: infinite where ``delta`` is negative and 0 where it
    is 0.

    Examples
    --------
    >>> nbta.pseudo_huber([1.0, 0.0], [0.0, 3.0])
    array([0., 0.])
    """


#: Of powers of ``z - 1`` in the derivative of `spence`, up to 0.2 from there.
_LOGARITHM = [(-1) ** (k + 1) / (k + 1) for k in range(32)]


@of_one(
    "Spence",
    "spence",
    lambda z, y: _by_powers(z - 1, 0.2, _LOGARITHM, lambda u: -divide(log1p(u), u)),
)
def spence(z: ArrayLike, *, name: str | None = None) -> Array:
    """Dilogarithm of ``1 - z``, as ``scipy.special.spence``.

    It is the integral of ``log(t) / (1 - t)`` from 1 to ``z``.

    Examples
    --------
    >>> nbta.spence([1.0, 0.0])
    array([0.        , 1.64493407])
    """


@of_one("WrightOmega", "wrightomega", lambda x, y: reciprocal(1 + reciprocal(y)))
def wrightomega(x: ArrayLike, *, name: str | None = None) -> Array:
    """The ``w`` with ``w + log(w) == x``, as ``scipy.special.wrightomega``.

    Examples
    --------
    >>> nbta.wrightomega([1.0, 100.0])
    array([ 1.        , 95.44148665])
    """


@of_one("Exp1", "exp1", lambda x, y: -divide(exp(-x), x))
def exp1(x: ArrayLike, *, name: str | None = None) -> Array:
    """Exponential integral of ``exp(-t) / t`` from ``x`` to infinity, as ``scipy.special.exp1``.

    Examples
    --------
    >>> nbta.exp1([1.0, 2.0])
    array([0.21938393, 0.04890051])
    """


@of_one("Expi", "expi", lambda x, y: divide(exp(x), x))
def expi(x: ArrayLike, *, name: str | None = None) -> Array:
    """Exponential integral of ``exp(t) / t`` up to ``x``, as ``scipy.special.expi``.

    Examples
    --------
    >>> nbta.expi([1.0, -1.0])
    array([ 1.89511782, -0.21938393])
    """


def _infer_expn(spec, *, n):
    return floats_only(spec)


EXPN = define_elementwise(
    "ExpN",
    _infer_expn,
    lambda x, *, n: from_scipy("expn", x, float(n)),
    lambda op, dy: [dy * negative(expn(op.attrs["n"] - 1, op.inputs[0]))],
    emit=OfSciPy(lambda op: ("expn", float(op.attrs["n"]))),
)


@exported
def expn(n: int, x: ArrayLike, *, name: str | None = None) -> Array:
    """Integral of ``exp(-x * t) / t**n`` from 1 to infinity, as ``scipy.special.expn``.

    Parameters
    ----------
    n : int
        Order, from 0 on.
    x : array-like or Tensor
        Real numbers from 0 on, of any shape.

    Returns
    -------
    Tensor or numpy.ndarray
        Of the shape and dtype of ``x``; float64 for integers and booleans.

    Raises
    ------
    InvalidArgumentError
        For another order.

    Examples
    --------
    >>> nbta.expn(2, [0.0, 1.0])
    array([1.        , 0.14849551])
    """
    try:
        order = operator.index(n)
    except TypeError:
        order = int(n) if isinstance(n, float) and n == int(n) else -1
    if order < 0:
        message = f"expn: the order must be a Python integer of 0 or more, not {n!r}"
        raise invalid("value", message)
    (x,) = promoted(x, floats=True)
    if order:
        return apply(EXPN, [x], {"n": order}, name=name)
    found = divide(exp(negative(x)), abs(x))  # as SciPy at minus zero, too
    return where(less(x, 0), np.array(math.nan, x.dtype), found, name=name)


@stands_for("expn")
def _expn_of_scipy(n, x):
    return expn(n, in_scipys_dtype("expn", n, x))
