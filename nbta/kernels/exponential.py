"""The exponential of a matrix, which generated code calls by address.

Scaling and squaring with the Padé approximant of degree 13 (N. J. Higham, "The scaling and squaring
method for the matrix exponential revisited", SIAM J. Matrix Anal. Appl. 26, 2005). Products and the
solution are the helpers of graphs, whose addresses are arguments.
"""

from math import ceil, log2

import numpy as np
from numba import njit, types
from numba.extending import register_jitable

from nbta.kernels.matrices import OPTIONS, routines
from nbta.runtime.intrinsics import call, pointer

#: Up to this 1-norm the approximant has the precision of float64 (the paper's theta of 13).
_NEAR = 5.371920351148152
#: Coefficients of its numerator, of even and of odd powers; the denominator has other signs.
_EVEN = (
    64764752532480000, 7771770303897600, 129060195264000, 670442572800, 1323241920, 960960, 182,
)  # fmt: skip
_ODD = (
    32382376266240000, 1187353796428800, 10559470521600, 33522128640, 40840800, 16380, 1,
)  # fmt: skip


@njit(**OPTIONS)
def _norm(x, n):
    """The greatest sum of a column."""
    most = 0.0
    for j in range(n):
        total = 0.0
        for i in range(n):
            total += abs(x[i * n + j])
        if total > most or total != total:
            most = total
    return most


@njit(**OPTIONS)
def _combine(z, n, powers, factors):
    """A sum of the identity and three powers, each by a factor."""
    (two, four, six), (b0, b2, b4, b6) = powers, factors
    for i in range(n * n):
        z[i] = b2 * two[i] + b4 * four[i] + b6 * six[i]
    for i in range(n):
        z[i * n + i] = z[i * n + i] + b0


@njit(**OPTIONS)
def _add(z, x, n):
    for i in range(n * n):
        z[i] = z[i] + x[i]


def _expm(number):
    """The exponential of one matrix; ``work`` has room for six. 1 where there is none."""
    size = number.bitwidth // 8
    of_even, of_odd = (tuple(map(number.cast_python_value, c)) for c in (_EVEN, _ODD))

    @register_jitable
    def multiply(one, other, target, n, products):
        call(products[0], (one, other, target, n, n, n, 0, products[1]))

    @register_jitable
    def series(target, places, n, products, factors):
        """Higher powers with the sixth taken out, and lower ones."""
        two, four, six, spare = places
        powers = pointer(number, two, 1), pointer(number, four, 1), pointer(number, six, 1)
        b0, b2, b4, b6, b8, b10, b12 = factors
        _combine(pointer(number, spare, 1), n, powers, (number(0), b8, b10, b12))
        multiply(six, spare, target, n, products)
        _combine(pointer(number, spare, 1), n, powers, (b0, b2, b4, b6))
        _add(pointer(number, target, 1), pointer(number, spare, 1), n)

    def expm(a, out, work, pivots, n, gemm, blas, lu, getrf, lu_solve, trsm):
        products, step = (gemm, blas), n * n * size
        x, even, odd = work, work + 4 * step, work + 5 * step
        places = work + step, work + 2 * step, work + 3 * step, out
        source, scaled = pointer(number, a, 0), pointer(number, x, 1)
        norm = _norm(source, n)
        if not norm < np.inf:
            return 1
        squarings = max(0, ceil(log2(norm / _NEAR))) if norm > 0 else 0
        factor = number(0.5**squarings)
        for i in range(n * n):
            scaled[i] = source[i] * factor
        multiply(x, x, places[0], n, products)
        multiply(places[0], places[0], places[1], n, products)
        multiply(places[1], places[0], places[2], n, products)
        series(even, places, n, products, of_odd)
        multiply(x, even, odd, n, products)
        series(even, places, n, products, of_even)
        u, v = pointer(number, odd, 1), pointer(number, even, 1)
        z, y = pointer(number, out, 1), pointer(number, x, 1)
        for i in range(n * n):
            z[i], y[i] = v[i] + u[i], v[i] - u[i]
        call(lu, (x, pivots, n, getrf, gemm, blas))
        if call(lu_solve, (x, pivots, out, n, n, 0, trsm, gemm, blas)) != 0:
            return 1
        for _ in range(squarings):
            multiply(out, out, x, n, products)
            for i in range(n * n):
                z[i] = y[i]
        return 0

    expm.__name__ = expm.__qualname__ = f"expm_{number.name}"
    return expm


_NUMBERS = (types.float32, types.float64, types.complex64, types.complex128)
#: What compiled graphs call by its address, by name.
FUNCTIONS = routines(11, *map(_expm, _NUMBERS))
