"""Philox 4x32-10, the counter-based generator of random bits, for arrays and in generated code.

J. Salmon, M. Moraes, R. Dror, D. Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
The same source runs on NumPy's arrays and is compiled by Numba, and has integers alone but for one
exact product: so the bits are the same wherever it runs.
"""

import numba
import numpy as np

_LOW, _HALF, _ONE = np.uint64(0xFFFFFFFF), np.uint64(32), np.uint64(1)
_FACTOR0, _FACTOR1 = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
_WEYL0, _WEYL1 = np.uint64(0x9E3779B9), np.uint64(0xBB67AE85)


@numba.njit(error_model="numpy")
def philox(key, low, high):
    """The first 64 of the 128 bits of a block.

    Parameters
    ----------
    key : uint64
    low, high : uint64
        The counter's halves.
    """
    x0, x1, x2, x3 = low & _LOW, low >> _HALF, high & _LOW, high >> _HALF
    k0, k1 = key & _LOW, key >> _HALF
    for _ in range(10):
        p0, p1 = _FACTOR0 * x0, _FACTOR1 * x2
        x0, x2 = (p1 >> _HALF) ^ x1 ^ k0, (p0 >> _HALF) ^ x3 ^ k1
        x1, x3 = p1 & _LOW, p0 & _LOW
        k0, k1 = (k0 + _WEYL0) & _LOW, (k1 + _WEYL1) & _LOW
    return x0 | (x1 << _HALF)


@numba.njit(error_model="numpy")
def unit_of(bits, rest):
    """A number between 0 and 1 from the first bits, all but ``rest``: in the middle of its cell."""
    return ((bits >> rest) + 0.5) * (1.0 / (_ONE << (np.uint64(64) - rest)))


@numba.njit(error_model="numpy")
def below(bits, span):
    """An integer below ``span``: the first 64 bits of the product of both."""
    a, b, c, d = bits >> _HALF, bits & _LOW, span >> _HALF, span & _LOW
    middle = a * d + ((b * d) >> _HALF)
    return a * c + (middle >> _HALF) + ((b * c + (middle & _LOW)) >> _HALF)


#: Names in generated code.
NAMES = {"philox": philox, "unit_of": unit_of, "below": below}
