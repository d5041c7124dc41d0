"""The discrete Fourier transform, which generated code calls by address.

SciPy exports no transform to C. This is Stockham's algorithm for mixed radices (P. N. Swarztrauber,
"FFT algorithms for vector computers", 1984): a pass for each prime factor of the length, and for
each 4 in it, between two buffers, which leaves the result in order. A prime factor p costs p
multiplications an item, so that lengths with a large one are slow, and as exact as others.
"""

from math import cos, pi, sin

from numba import njit, types

from nbta.kernels.matrices import OPTIONS, routines
from nbta.runtime.intrinsics import pointer


@njit(**OPTIONS)
def _radix(n):
    """4, or the least prime factor."""
    if n % 4 == 0:
        return 4
    p = 2
    while p * p <= n:
        if n % p == 0:
            return p
        p += 1
    return n


@njit(**OPTIONS)
def _roots(number, w, n, sign):
    """Powers of a root of unity; the angles are of the first eighth, where they are exact."""
    for k in range(n):
        eighth = 8 * k // n
        part = 8 * k - eighth * n  # of n: the angle is (eighth + part / n) * pi / 4
        odd = eighth & 1
        angle = (n - part if odd else part) / n * (pi / 4)
        c, s = cos(angle), sin(angle)
        if odd:
            c, s = s, c
        quarter = eighth >> 1
        if quarter == 1:
            c, s = -s, c
        elif quarter == 2:
            c, s = -c, -s
        elif quarter == 3:
            c, s = s, -c
        w[k] = number(complex(c, sign * s))


@njit(**OPTIONS)
def _by_two(x, z, w, m, s):
    for k in range(m):
        turn = w[k * s]
        for q in range(s):
            a, b = x[q + s * k], x[q + s * (k + m)]
            z[q + s * 2 * k] = a + b
            z[q + s * (2 * k + 1)] = (a - b) * turn


@njit(**OPTIONS)
def _by_four(x, z, w, m, s, quarter):
    for k in range(m):
        one, two, three = w[k * s], w[2 * k * s], w[3 * k * s]
        for q in range(s):
            at, to = q + s * k, q + s * 4 * k
            a, b, c, d = x[at], x[at + s * m], x[at + s * 2 * m], x[at + s * 3 * m]
            sums, even, odd = a + c, b + d, (b - d) * quarter
            z[to] = sums + even
            z[to + s] = ((a - c) + odd) * one
            z[to + 2 * s] = (sums - even) * two
            z[to + 3 * s] = ((a - c) - odd) * three


@njit(**OPTIONS)
def _by_prime(x, z, w, m, s, p):
    n = m * s * p
    for k in range(m):
        for t in range(p):
            turn = w[k * t * s]
            for q in range(s):
                total = x[q + s * k]
                for j in range(1, p):
                    total += x[q + s * (k + m * j)] * w[j * t % p * (n // p)]
                z[q + s * (p * k + t)] = total * turn


def _fourier(number):
    """Transforms of lines of items; ``room`` is for one more line and the powers of the root."""
    size = number.bitwidth // 8

    def fourier(source, target, room, n, lines, sign):
        if n == 0:
            return 0
        w = pointer(number, room + n * size, 2)
        _roots(number, w, n, sign)
        for line in range(lines):
            given, found = source + line * n * size, target + line * n * size
            x = pointer(number, given, 1)
            z, other = pointer(number, found, 1), pointer(number, room, 1)
            left, s, passes = n, 1, 0
            while left > 1:
                left, passes = left // _radix(left), passes + 1
            if passes % 2 == 0:  # so that the last one ends in the target
                z, other = other, z
            if passes == 0:
                other[0] = x[0]
            left = n
            while left > 1:
                p = _radix(left)
                m = left // p
                y = x if s == 1 else other
                if p == 4:
                    _by_four(y, z, w, m, s, w[n // 4])
                elif p == 2:
                    _by_two(y, z, w, m, s)
                else:
                    _by_prime(y, z, w, m, s, p)
                z, other, left, s = other, z, m, s * p
        return 0

    fourier.__name__ = fourier.__qualname__ = f"fourier_{number.name}"
    return fourier


#: What compiled graphs call by its address, by name.
FUNCTIONS = routines(6, *map(_fourier, (types.complex64, types.complex128)))
