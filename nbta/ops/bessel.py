"""Bessel functions of integer order, also modified and scaled.

The derivative of each order is made of those of its neighbours, at 0 too, and so to any order.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING

from nbta.codegen.special import OfSciPy
from nbta.errors import invalid
from nbta.ops.dispatch import apply, exported, stands_for
from nbta.ops.elementary import sign
from nbta.ops.elementwise import define_elementwise, floats_only, from_scipy, promoted

if TYPE_CHECKING:
    from nbta.typing import Array, ArrayLike


def _define(name, general, few, gradient):
    """The record of the functions of all orders; SciPy has others for the first ones."""

    def infer(spec, *, n):
        return floats_only(spec)

    def evaluate(x, *, n):
        return from_scipy(few[n], x) if n in few else from_scipy(general, x, float(n))

    def call(op):
        n = op.attrs["n"]
        return (few[n],) if n in few else (general, float(n))

    def rule(op, dy):
        return [dy * gradient(op.inputs[0], op.outputs[0], op.attrs["n"])]

    return define_elementwise(name, infer, evaluate, rule, emit=OfSciPy(call))


def _of_order(record, x, n, name=None):
    """The function of an order."""
    return apply(record, promoted(x, floats=True), {"n": n}, name=name)


def _j_slope(x, y, n):
    if n == 0:
        return -_of_order(BESSEL_J, x, 1)
    return 0.5 * (_of_order(BESSEL_J, x, n - 1) - _of_order(BESSEL_J, x, n + 1))


def _i_slope(x, y, n):
    if n == 0:
        return _of_order(BESSEL_I, x, 1)
    return 0.5 * (_of_order(BESSEL_I, x, n - 1) + _of_order(BESSEL_I, x, n + 1))


def _scaled_slope(x, y, n):
    if n == 0:
        return _of_order(BESSEL_IE, x, 1) - sign(x) * y
    beside = _of_order(BESSEL_IE, x, n - 1) + _of_order(BESSEL_IE, x, n + 1)
    return 0.5 * beside - sign(x) * y


BESSEL_J = _define("BesselJ", "jv", {0: "j0", 1: "j1"}, _j_slope)
BESSEL_I = _define("BesselI", "iv", {0: "i0", 1: "i1"}, _i_slope)
BESSEL_IE = _define("BesselIE", "ive", {0: "i0e", 1: "i1e"}, _scaled_slope)


@exported
def j0(x: ArrayLike, *, name: str | None = None) -> Array:
    """Bessel function of the first kind of order 0.

    Examples
    --------
    >>> nbta.j0([0.0, 1.0])
    array([1.        , 0.76519769])
    """
    return _of_order(BESSEL_J, x, 0, name)


@exported
def j1(x: ArrayLike, *, name: str | None = None) -> Array:
    """Bessel function of the first kind of order 1.

    Examples
    --------
    >>> nbta.j1([0.0, 1.0])
    array([0.        , 0.44005059])
    """
    return _of_order(BESSEL_J, x, 1, name)


@exported(numpy=1)
def i0(x: ArrayLike, *, name: str | None = None) -> Array:
    """Modified Bessel function of order 0.

    Examples
    --------
    >>> nbta.i0([0.0, 1.0])
    array([1.        , 1.26606588])
    """
    return _of_order(BESSEL_I, x, 0, name)


@exported
def i1(x: ArrayLike, *, name: str | None = None) -> Array:
    """Modified Bessel function of order 1.

    Examples
    --------
    >>> nbta.i1([0.0, 1.0])
    array([0.       , 0.5651591])
    """
    return _of_order(BESSEL_I, x, 1, name)


@exported
def i0e(x: ArrayLike, *, name: str | None = None) -> Array:
    """``exp(-abs(x)) * i0(x)``, without overflow; at 0, where it has a kink, its derivative is 0.

    Examples
    --------
    >>> nbta.i0e([0.0, 1000.0])
    array([1.        , 0.01261724])
    """
    return _of_order(BESSEL_IE, x, 0, name)


@exported
def i1e(x: ArrayLike, *, name: str | None = None) -> Array:
    """``exp(-abs(x)) * i1(x)``, without overflow.

    Examples
    --------
    >>> nbta.i1e([0.0, 1000.0])
    array([0.        , 0.01261093])
    """
    return _of_order(BESSEL_IE, x, 1, name)


def _of_integer(record, name):
    """SciPy's function of any order, for the integers."""

    @stands_for(name)
    def of_order(v, z):
        try:
            n = operator.index(v)
        except TypeError:
            n = int(v) if isinstance(v, float) and v == int(v) else -1
        if n < 0:
            message = f"{name}: {v!r} is no order; give an integer from 0 on, of Python's"
            raise invalid("value", message)
        return _of_order(record, z, n)


_of_integer(BESSEL_J, "jv")
_of_integer(BESSEL_I, "iv")
_of_integer(BESSEL_IE, "ive")
