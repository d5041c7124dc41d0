"""Limits, splittings and polynomials of the elementary functions in ``vector_math``.

The polynomials are Chebyshev interpolations in 50 digits of what stands beside them.
"""

from typing import NamedTuple

LOG2_E = 1.4426950408889634


class Constants(NamedTuple):
    """Numbers of one dtype; a polynomial begins with its highest coefficient."""

    magic: float  # added and taken away again, it leaves the nearest integer
    ln2_high: float  # ln 2 in two parts, the first with so few bits that multiples are exact
    ln2_low: float
    exp_top: float  # above, exp is infinite
    exp_bottom: float  # below, it is 0
    expm1_bottom: float  # below, it is -1
    tanh_top: float  # above, it is 1
    tiny: float  # the least normal number
    tiny_scale: float  # makes what is less a normal number,
    tiny_power: float  # by this power of 2
    erf_top: float  # above, it is 1
    erf_middle: float
    expm1: tuple  # (expm1(r) - r) / r**2 for r up to ln 2 / 2
    log: tuple  # (2 artanh(s) / s - 2) / s**2 by s**2, for s of numbers from sqrt(1/2) to sqrt(2)
    erf_near: tuple  # erf(x) / x - 1 by x**2, to x = 1
    erf_far: tuple  # (1 - erf(x)) exp(x**2) by (x - middle) / (x + middle), from x = 1


FLOAT32 = Constants(
    magic=1.5 * 2**23,
    ln2_high=0.693359375,
    ln2_low=-2.12194440e-4,
    exp_top=89,
    exp_bottom=-105,
    expm1_bottom=-20,
    tanh_top=10,
    tiny=2.0**-126,
    tiny_scale=2.0**25,
    tiny_power=25,
    erf_top=4,
    erf_middle=2.5,
    expm1=(
        0.001392625083149761171, 0.0083632328836826181975, 0.041666554212984150315,
        0.16666576666119928306, 0.5,
    ),
    log=(
        0.23341943388714560876, 0.28550396959618013578, 0.40000125594554367087,
        0.6666666654988317655,
    ),
    erf_near=(
        0.000078758750626854883411, -0.00080168642871658695293, 0.0051890874234339739861,
        -0.026854212010626412443, 0.11283594715160217732, -0.37612626666720331023,
        0.12837916584835094603,
    ),
    erf_far=(
        0.00063574618864429448865, -0.0026671916609726196421, -0.0039716799544324902736,
        0.039925948115240840806, -0.12503369182368707818, 0.25171311192429700425,
        -0.37173672853085268771, 0.21080636431555945921,
    ),
)  # fmt: skip
FLOAT64 = Constants(
    magic=1.5 * 2**52,
    ln2_high=0.693147180369123816490,
    ln2_low=1.90821492927058770002e-10,
    exp_top=710,
    exp_bottom=-746,
    expm1_bottom=-40,
    tanh_top=22,
    tiny=2.0**-1022,
    tiny_scale=2.0**54,
    tiny_power=54,
    erf_top=6,
    erf_middle=3,
    expm1=(
        2.0914755325893202191e-9, 2.5105312729622101775e-8, 2.7557273478718580474e-7,
        2.7557255170000887438e-6, 0.0000248015873256774619, 0.00019841269875002278793,
        0.0013888888888883711167, 0.0083333333333260831202, 0.041666666666666669783,
        0.1666666666666667103, 0.5,
    ),
    log=(
        0.13100721383503491404, 0.13267418596474883397, 0.15386290534658991988,
        0.18181794700897799585, 0.22222222400547757297, 0.28571428570764450117,
        0.40000000000000941266, 0.66666666666666666448,
    ),
    erf_near=(
        5.9571761477489114044e-11, -1.137284885679167367e-9, 1.4659775274047435814e-8,
        -1.6350312701054695011e-7, 1.6461000484121368033e-6, -0.000014925595266831181565,
        0.00012055331111642710923, -0.00085483269808337899052, 0.0052239776248180144673,
        -0.026866170645076793248, 0.11283791670954878666, -0.37612638903183748056,
        0.12837916709551257377,
    ),
    erf_far=(
        1.2801900862962661938e-6, 2.0236031796417566352e-6, -8.0080213194126843348e-6,
        -0.000012848894512523528795, 0.000064061820735305467428, 0.000045254726354833541373,
        -0.00059706235170932842794, 0.00070774644439015373147, 0.0042691363475082563605,
        -0.024392499318273193125, 0.071665837197748743386, -0.15011593650078743912,
        0.24560380171233194479, -0.32623356004303717477, 0.17900115118138995023,
    ),
)  # fmt: skip
