"""Adding elements by dtype code, and half precision kept in float32 for it.

Gradient arrays of float16 and bfloat16 are stored in float32, so that a sum rounds once, when it
is read. The conversions work on bits (IEEE 754-2019, round to nearest even): not every CPU has
instructions for both formats.
"""

import numpy as np

from nbta.dtypes import BFLOAT16, CODES, FLOAT16
from nbta.runtime import memory as mem
from nbta.runtime.memory import kernel, room

_FIRST_FLOATING = CODES["float16"]  # and complex dtypes come last
_I8, _U8 = CODES["int8"], CODES["uint8"]
_I16, _U16 = CODES["int16"], CODES["uint16"]
_I32, _U32 = CODES["int32"], CODES["uint32"]
_F32, _C64 = CODES["float32"], CODES["complex64"]
_F64, _C128 = CODES["float64"], CODES["complex128"]


@kernel
def rounds(code):
    """Whether a sum of a dtype depends on the order of its terms."""
    return code >= _FIRST_FLOATING


@kernel
def _add(target, source):
    for i in range(len(target)):
        target[i] += source[i]


@kernel
def _add_as(target, source, nbytes, itemsize, dtype):
    count = nbytes // itemsize
    _add(mem.array_at(target, count, dtype), mem.array_at(source, count, dtype))


@kernel
def add_elements(code, target, source, nbytes):
    """``target += source`` over ``nbytes`` bytes of items with a dtype code (not half, bool)."""
    if code in (_F32, _C64):
        _add_as(target, source, nbytes, 4, np.float32)
    elif code in (_F64, _C128):
        _add_as(target, source, nbytes, 8, np.float64)
    elif code in (_I8, _U8):
        _add_as(target, source, nbytes, 1, np.int8)
    elif code in (_I16, _U16):
        _add_as(target, source, nbytes, 2, np.int16)
    elif code in (_I32, _U32):
        _add_as(target, source, nbytes, 4, np.int32)
    else:
        _add_as(target, source, nbytes, 8, np.int64)


@kernel
def float16_bits_to_float32(half):
    """The bits of a float32 equal to the float16 with these bits."""
    sign = np.uint32(half & 0x8000) << np.uint32(16)
    exponent = np.int32((half >> 10) & 0x1F)
    fraction = np.uint32(half & 0x3FF)
    if exponent == 31:
        return np.uint32(sign | np.uint32(0x7F800000) | (fraction << np.uint32(13)))
    if exponent == 0:
        if fraction == 0:
            return np.uint32(sign)
        exponent = np.int32(1)
        while fraction & np.uint32(0x400) == 0:  # subnormal in float16, normal in float32
            fraction <<= np.uint32(1)
            exponent -= np.int32(1)
        fraction &= np.uint32(0x3FF)
    biased = np.uint32(exponent + 112) << np.uint32(23)
    return np.uint32(sign | biased | (fraction << np.uint32(13)))


@kernel
def float32_bits_to_float16(bits):
    """The bits of the float16 nearest to the float32 with these bits."""
    sign = np.uint32((bits >> 16) & 0x8000)
    exponent = np.int32((bits >> 23) & 0xFF)
    fraction = np.uint32(bits & 0x7FFFFF)
    if exponent == 255:
        quiet = np.uint32(0x200) if fraction else np.uint32(0)
        return np.uint16(sign | np.uint32(0x7C00) | quiet | (fraction >> np.uint32(13)))
    exponent -= np.int32(112)
    if exponent >= 31:
        return np.uint16(sign | np.uint32(0x7C00))
    shift = np.uint32(13)
    if exponent <= 0:
        if exponent < -10:
            return np.uint16(sign)
        fraction |= np.uint32(0x800000)
        shift = np.uint32(14 - exponent)
        exponent = np.int32(0)
    kept = (np.uint32(exponent) << np.uint32(10)) + (fraction >> shift)
    rest = fraction & ((np.uint32(1) << shift) - np.uint32(1))
    half = np.uint32(1) << (shift - np.uint32(1))
    if rest > half or (rest == half and kept & np.uint32(1)):
        kept += np.uint32(1)  # may carry into the exponent, as it should
    return np.uint16(sign | kept)


@kernel
def float32_bits_to_bfloat16(bits):
    """The bits of the bfloat16 nearest to the float32 with these bits."""
    if bits & np.uint32(0x7FFFFFFF) > np.uint32(0x7F800000):
        return np.uint16((bits >> np.uint32(16)) | np.uint32(0x40))
    odd = (bits >> np.uint32(16)) & np.uint32(1)
    return np.uint16((bits + np.uint32(0x7FFF) + odd) >> np.uint32(16))


@kernel
def widen(code, target, source, count):
    """Store ``count`` half-precision items as float32."""
    wide = mem.array_at(target, count, np.uint32)
    half = mem.array_at(source, count, np.uint16)
    for i in range(count):
        if code == FLOAT16:
            wide[i] = float16_bits_to_float32(np.uint32(half[i]))
        else:
            wide[i] = np.uint32(half[i]) << np.uint32(16)


@kernel
def narrow(code, target, source, count):
    """Store ``count`` float32 items in half precision, each rounded once."""
    half = mem.array_at(target, count, np.uint16)
    wide = mem.array_at(source, count, np.uint32)
    for i in range(count):
        if code == FLOAT16:
            half[i] = float32_bits_to_float16(wide[i])
        else:
            half[i] = float32_bits_to_bfloat16(wide[i])


@kernel
def add_widened(code, target, source, count):
    """Add ``count`` half-precision items to float32 sums."""
    sums = mem.array_at(target, count, np.float32)
    half = mem.array_at(source, count, np.uint16)
    item = mem.array_at(room(4), 1, np.uint32)
    for i in range(count):
        if code == FLOAT16:
            item[0] = float16_bits_to_float32(np.uint32(half[i]))
        else:
            item[0] = np.uint32(half[i]) << np.uint32(16)
        sums[i] += item.view(np.float32)[0]


@kernel
def add_stored(code, target, source, nbytes):
    """`add_elements` of two sums as gradient arrays store them: half precision in float32."""
    add_elements(_F32 if is_half(code) else code, target, source, nbytes)


@kernel
def is_half(code):
    """Whether a dtype is accumulated in float32."""
    return code in (FLOAT16, BFLOAT16)
