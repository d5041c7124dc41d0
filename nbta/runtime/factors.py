"""Triangular factors that generated code calls by address."""

from math import sqrt

import numpy as np
from numba import njit, types

from nbta.runtime.blocks import OPTIONS
from nbta.runtime.pointers import pointer

#: Which triangle of a matrix is read, and whether it is taken transposed.
LOWER, TRANSPOSED = 1, 2


def _cholesky(number):
    """The lower factor of the mean of a matrix and its conjugate transpose; 1 where none is."""

    def cholesky(a, out, n):
        x, z, half = pointer(number, a, 0), pointer(number, out, 1), number(0.5)
        for i in range(n):
            for j in range(i + 1):
                s = half * x[i * n + j] + half * np.conj(x[j * n + i])
                for k in range(j):
                    s = s - z[i * n + k] * np.conj(z[j * n + k])
                if i != j:
                    z[i * n + j] = s / z[j * n + j]
                elif s.real > 0:
                    z[i * n + j] = number(sqrt(s.real))
                else:
                    return 1
            for j in range(i + 1, n):
                z[i * n + j] = number(0)
        return 0

    cholesky.__name__ = cholesky.__qualname__ = f"cholesky_{number.name}"
    return cholesky


@njit(**OPTIONS)
def _gather(x, at, z, row, span, columns):
    """Take off a row what a row of the triangle makes of the rows of a span."""
    first, last = span
    if columns == 1:
        s = z[row]
        for k in range(first, last):
            s = s - x[at + k] * z[k]
        z[row] = s
        return
    for k in range(first, last):
        factor, other = x[at + k], k * columns
        for c in range(columns):
            z[row + c] = z[row + c] - factor * z[other + c]


@njit(**OPTIONS)
def _scatter(x, at, z, row, span, columns):
    """Take off the rows of a span what a row of the triangle makes of one row."""
    first, last = span
    if columns == 1:
        s = z[row]
        for k in range(first, last):
            z[k] = z[k] - x[at + k] * s
        return
    for k in range(first, last):
        factor, other = x[at + k], k * columns
        for c in range(columns):
            z[other + c] = z[other + c] - factor * z[row + c]


def _solve(number):
    """Solve with a triangle, in place of the right side; 1 for a zero on the diagonal."""

    def solve(a, b, n, columns, flags):
        x, z = pointer(number, a, 0), pointer(number, b, 1)
        lower, transposed = flags & LOWER != 0, flags & TRANSPOSED != 0
        for i in range(n):
            if x[i * n + i] == 0:
                return 1
        for step in range(n):
            i = step if lower != transposed else n - 1 - step
            span = (0, i) if lower else (i + 1, n)
            at, row = i * n, i * columns
            if not transposed:
                _gather(x, at, z, row, span, columns)
            for c in range(columns):
                z[row + c] = z[row + c] / x[at + i]
            if transposed:
                _scatter(x, at, z, row, span, columns)
        return 0

    solve.__name__ = solve.__qualname__ = f"solve_{number.name}"
    return solve


_NUMBERS = (types.float32, types.float64, types.complex64, types.complex128)
FUNCTIONS = {f"cholesky_{number.name}": (_cholesky(number), 3) for number in _NUMBERS}
FUNCTIONS |= {f"solve_{number.name}": (_solve(number), 5) for number in _NUMBERS}
