"""Bessel functions of integer order, of both kinds, also modified and scaled.

The derivative of each order is made of those of its neighbours, at 0 too, and so to any order.
"""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING

import numpy as np

from nbta.codegen.special import OfSciPy
from nbta.errors import invalid
from nbta.ops.core.arithmetic import equal, where
from nbta.ops.core.descriptions import REAL_FLOATS
from nbta.ops.core.dispatch import apply, exported, stands_for
from nbta.ops.core.elementwise import define_elementwise, floats_only, from_scipy, promoted
from nbta.ops.core.shaping import cast
from nbta.ops.elementary.basic import sign

if TYPE_CHECKING:
    from nbta.typing import Array, ArrayLike


def _define(name, general, few, gradient):
    """The record of the functions of all orders; SciPy has others for the first ones.

    And it may have several for all of them: ``by`` is the name of the one that is meant.
    """

    def infer(spec, *, n, by=None):
        return floats_only(spec)

    def which(n, by=None):
        return (few[n],) if n in few and by is None else (by or general, float(n))

    def evaluate(x, **which_one):
        function, *order = which(**which_one)
        return from_scipy(function, x, *order)

    def call(op):
        return which(**op.attrs)

    def rule(op, dy):
        return [dy * gradient(op.inputs[0], op.outputs[0], op.attrs["n"])]

    return define_elementwise(name, infer, evaluate, rule, emit=OfSciPy(call))


def _of_order(record, x, n, name=None, **by):
    """The function of an order."""
    return apply(record, promoted(x, floats=True), {"n": n, **by}, name=name)


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


def _y_slope(x, y, n):
    if n == 0:
        return -_of_order(BESSEL_Y, x, 1)
    return 0.5 * (_of_order(BESSEL_Y, x, n - 1) - _of_order(BESSEL_Y, x, n + 1))


def _k_slope(x, y, n):
    if n == 0:
        return -_of_order(BESSEL_K, x, 1)
    return -0.5 * (_of_order(BESSEL_K, x, n - 1) + _of_order(BESSEL_K, x, n + 1))


def _scaled_k_slope(x, y, n):
    """At 0 both parts are infinite, and the one of greater order is more so."""
    low = y if n == 0 else _of_order(BESSEL_KE, x, n - 1)
    beside = low + _of_order(BESSEL_KE, x, n + 1) if n else _of_order(BESSEL_KE, x, 1)
    found = y - (0.5 * beside if n else beside)
    return where(equal(x, 0), -math.inf, found)


BESSEL_J = _define("BesselJ", "jv", {0: "j0", 1: "j1"}, _j_slope)
BESSEL_I = _define("BesselI", "iv", {0: "i0", 1: "i1"}, _i_slope)
BESSEL_IE = _define("BesselIE", "ive", {0: "i0e", 1: "i1e"}, _scaled_slope)
BESSEL_Y = _define("BesselY", "yn", {0: "y0", 1: "y1"}, _y_slope)
BESSEL_K = _define("BesselK", "kv", {0: "k0", 1: "k1"}, _k_slope)
BESSEL_KE = _define("BesselKE", "kve", {0: "k0e", 1: "k1e"}, _scaled_k_slope)


@exported(family=REAL_FLOATS)
def j0(x: ArrayLike, *, name: str | None = None) -> Array:
    """Bessel function of the first kind of order 0, as ``scipy.special.j0``.

    Examples
    --------
    >>> nbta.j0([0.0, 1.0])
    array([1.        , 0.76519769])
    """
    return _of_order(BESSEL_J, x, 0, name)


@exported(family=REAL_FLOATS)
def j1(x: ArrayLike, *, name: str | None = None) -> Array:
    """Bessel function of the first kind of order 1, as ``scipy.special.j1``.

    Examples
    --------
    >>> nbta.j1([0.0, 1.0])
    array([0.        , 0.44005059])
    """
    return _of_order(BESSEL_J, x, 1, name)


@exported(numpy=1, family=REAL_FLOATS)
def i0(x: ArrayLike, *, name: str | None = None) -> Array:
    """Modified Bessel function of the first kind of order 0, as `numpy.i0`.

    Examples
    --------
    >>> nbta.i0([0.0, 1.0])
    array([1.        , 1.26606588])
    """
    return _of_order(BESSEL_I, x, 0, name)


@exported(family=REAL_FLOATS)
def i1(x: ArrayLike, *, name: str | None = None) -> Array:
    """Modified Bessel function of the first kind of order 1, as ``scipy.special.i1``.

    Examples
    --------
    >>> nbta.i1([0.0, 1.0])
    array([0.       , 0.5651591])
    """
    return _of_order(BESSEL_I, x, 1, name)


@exported(family=REAL_FLOATS)
def i0e(x: ArrayLike, *, name: str | None = None) -> Array:
    """``exp(-abs(x)) * i0(x)``, without overflow, as ``scipy.special.i0e``.

    The derivative at 0, where the function has a kink, is 0.

    Examples
    --------
    >>> nbta.i0e([0.0, 1000.0])
    array([1.        , 0.01261724])
    """
    return _of_order(BESSEL_IE, x, 0, name)


@exported(family=REAL_FLOATS)
def i1e(x: ArrayLike, *, name: str | None = None) -> Array:
    """``exp(-abs(x)) * i1(x)``, without overflow, as ``scipy.special.i1e``.

    Examples
    --------
    >>> nbta.i1e([0.0, 1000.0])
    array([0.        , 0.01261093])
    """
    return _of_order(BESSEL_IE, x, 1, name)


@exported(family=REAL_FLOATS)
def y0(x: ArrayLike, *, name: str | None = None) -> Array:
    """Bessel function of the second kind of order 0, as ``scipy.special.y0``; NaN below 0.

    Examples
    --------
    >>> nbta.y0([0.0, 1.0])
    array([       -inf, 0.08825696])
    """
    return _of_order(BESSEL_Y, x, 0, name)


@exported(family=REAL_FLOATS)
def y1(x: ArrayLike, *, name: str | None = None) -> Array:
    """Bessel function of the second kind of order 1, as ``scipy.special.y1``; NaN below 0.

    Examples
    --------
    >>> nbta.y1([0.0, 1.0])
    array([       -inf, -0.78121282])
    """
    return _of_order(BESSEL_Y, x, 1, name)


@exported(family=REAL_FLOATS)
def k0(x: ArrayLike, *, name: str | None = None) -> Array:
    """Modified Bessel function of the second kind of order 0, as ``scipy.special.k0``; NaN below 0.

    Examples
    --------
    >>> nbta.k0([0.0, 1.0])
    array([       inf, 0.42102444])
    """
    return _of_order(BESSEL_K, x, 0, name)


@exported(family=REAL_FLOATS)
def k1(x: ArrayLike, *, name: str | None = None) -> Array:
    """Modified Bessel function of the second kind of order 1, as ``scipy.special.k1``; NaN below 0.

    Examples
    --------
    >>> nbta.k1([0.0, 1.0])
    array([       inf, 0.60190723])
    """
    return _of_order(BESSEL_K, x, 1, name)


@exported(family=REAL_FLOATS)
def k0e(x: ArrayLike, *, name: str | None = None) -> Array:
    """``exp(x) * k0(x)``, without underflow, as ``scipy.special.k0e``.

    Examples
    --------
    >>> nbta.k0e([0.0, 1.0])
    array([       inf, 1.14446308])
    """
    return _of_order(BESSEL_KE, x, 0, name)


@exported(family=REAL_FLOATS)
def k1e(x: ArrayLike, *, name: str | None = None) -> Array:
    """``exp(x) * k1(x)``, without underflow, as ``scipy.special.k1e``.

    Examples
    --------
    >>> nbta.k1e([0.0, 1.0])
    array([       inf, 1.63615349])
    """
    return _of_order(BESSEL_KE, x, 1, name)


def _of_integer(record, name, **by):
    """SciPy's function of any order, for the integers."""

    @stands_for(name)
    def of_order(v, z):
        try:
            n = operator.index(v)
        except TypeError:
            n = int(v) if isinstance(v, float) and v == int(v) else -1
        if n < 0:
            message = f"{name}: the order must be a Python integer of 0 or more, not {v!r}"
            raise invalid("value", message)
        return _of_order(record, in_scipys_dtype(name, v, z), n, **by)


#: SciPy's functions that are of float64 where the order is an integer.
_OF_INTEGERS = {"yn", "kn", "expn"}


def in_scipys_dtype(name, order, z):
    """The other argument of such a function, which integers make float64."""
    (z,) = promoted(z, floats=True)
    wide = name in _OF_INTEGERS and not isinstance(order, float) and z.dtype.kind == "f"
    return cast(z, np.float64) if wide and z.dtype != np.float64 else z


_of_integer(BESSEL_J, "jv")
_of_integer(BESSEL_I, "iv")
_of_integer(BESSEL_IE, "ive")
_of_integer(BESSEL_Y, "yn")
_of_integer(BESSEL_Y, "yv", by="yv")
_of_integer(BESSEL_K, "kn")
_of_integer(BESSEL_K, "kv")
_of_integer(BESSEL_KE, "kve")
