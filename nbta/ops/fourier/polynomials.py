"""Polynomials by their coefficients from the highest power on, by NumPy's older functions.

They have no names of their own here: `np.polyadd` and its like take tensors.
"""

from __future__ import annotations

import operator

import numpy as np

from nbta.errors import invalid
from nbta.graph.operation import Tensor
from nbta.ops.core.arithmetic import add, divide, multiply, negative, not_equal, subtract
from nbta.ops.core.axis_arguments import integers, operand
from nbta.ops.core.checks import checked
from nbta.ops.core.dispatch import stands_for
from nbta.ops.core.elementwise import promoted
from nbta.ops.core.filling import zeros
from nbta.ops.core.shaping import cast, reshape
from nbta.ops.fourier.samples import convolve
from nbta.ops.indexing.items import getitem
from nbta.ops.indexing.joining import concatenate, pad, rows_of


def _coefficients(what, p):
    """Coefficients in one row; a number is a polynomial, too."""
    p = operand(p)
    if p.ndim not in (0, 1):
        raise invalid("rank", f"{what}: coefficients have rank {p.ndim}; give them in one row")
    return reshape(p, (1,)) if p.ndim == 0 else p


def _degree_by_degree(combine, what):
    """A function of two polynomials, of which the shorter one gets zeros in front."""

    def combined(a1, a2):
        a1, a2 = promoted(_coefficients(what, a1), _coefficients(what, a2))
        more = operator.index(a2.shape[0]) - operator.index(a1.shape[0])
        return combine(pad(a1, (max(more, 0), 0)), pad(a2, (max(-more, 0), 0)))

    return stands_for(what, numpy=2)(combined)


_SUMS = [_degree_by_degree(add, "polyadd"), _degree_by_degree(subtract, "polysub")]


def _led(p):
    """Coefficients of which the first is not 0, unless there is one alone, as NumPy drops zeros."""
    p = _coefficients("polymul", p)
    if not isinstance(p, Tensor):
        return np.poly1d(p).coeffs
    if operator.index(p.shape[0]) == 1:
        return p
    message = "polymul: a leading coefficient is 0, which NumPy drops; use nbta.convolve"
    return checked(p, not_equal(getitem(p, 0), 0), message)


@stands_for("polymul", numpy=2)
def _polymul(a1, a2):
    """NumPy's; a run fails where that would be shorter."""
    return convolve(_led(a1), _led(a2))


def _times(m):
    (m,) = integers((m,))
    if m < 0:
        message = f"m must be 0 or more, not {m}"
        raise invalid("value", message)
    return m


@stands_for("polyder", numpy=2)
def _polyder(p, m=1):
    """NumPy's: derivatives."""
    p = _coefficients("polyder", p)
    for _ in range(_times(m)):
        count = operator.index(p.shape[0])
        p = multiply(getitem(p, slice(0, max(count - 1, 0))), np.arange(count - 1, 0, -1))
    return p


def _constants(k, m):
    """Constants of integration, one a time; one stands for all."""
    given = [0.0] if k is None else rows_of(k) if getattr(operand(k), "ndim", 0) else [k]
    if len(given) not in (1, m) and m:
        raise invalid("value", f"k: there are {len(given)} constants for {m} integrals")
    return given * m if len(given) == 1 else given


@stands_for("polyint", numpy=3)
def _polyint(p, m=1, k=None):
    """NumPy's: integrals, with constants for each time."""
    p = _coefficients("polyint", p)
    for constant in _constants(k, _times(m)):
        count = operator.index(p.shape[0])
        p = divide(p, np.arange(count, 0, -1))
        p = concatenate(promoted(p, reshape(operand(constant), (1,))))
    return p


@stands_for("poly", numpy=1)
def _poly(seq_of_zeros):
    """NumPy's, of real roots: the product of what is 0 there, and leads with 1."""
    roots = operand(seq_of_zeros)
    if roots.ndim != 1 or roots.dtype.kind == "c":
        message = (
            "poly takes real roots in one row; give the eigenvalues of a matrix (nbta.eigvalsh, "
            "if it is symmetric), and multiply factors of complex roots with nbta.convolve"
        )
        raise invalid("value", message)
    roots = cast(roots, np.float64) if roots.dtype.kind in "biu" else roots
    found = add(zeros(1, roots.dtype), 1)
    for root in rows_of(roots):
        found = add(pad(found, (0, 1)), multiply(pad(found, (1, 0)), negative(root)))
    return found
