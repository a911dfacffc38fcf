"""log, log2, log10, log1p, and what follows: arcsinh, arccosh, arctanh, logaddexp, logaddexp2.

x = 2**e m with sqrt(1/2) <= m < sqrt(2), from the bits. With f = m - 1, float32 takes a minimax
polynomial of log(1 + f) (Remez); float64 takes s = f / (2 + f) and log(1 + f) = 2 atanh(s), odd in
s, so half as many terms; it is summed from f so that only small terms are rounded (as in FDLIBM by
Sun Microsystems, 1993).
"""

from __future__ import annotations

import math
import struct

from .exponential import LN2, LN2_HIGH, LN2_LOW, LOG2_E, exp, exp2
from .lanes import Float, Integer, polynomial, power_of_two, two_sum

LOG10_E = 0.4342944819032518
LOG10_2_HIGH = {32: 0.30078125, 64: 0.30102999566406652}
LOG10_2_LOW = {32: 0.00024874566398119522, 64: -8.5323443170571066e-14}

# Bits of sqrt(1/2), where the significand m begins.
ROOT = {
    32: struct.unpack("<i", struct.pack("<f", 0.5**0.5))[0],
    64: struct.unpack("<q", struct.pack("<d", 0.5**0.5))[0],
}
# From here on, log(1 + x) is log(x).
LARGE = 2.0**64
SMALLEST_NORMAL = {32: 2.0**-126, 64: 2.0**-1022}

# (log(1 + f) - f + f**2 / 2) / f**3 for the float32 range of f, error 2**-30.
POLYNOMIAL = (
    0.33333311934501514,
    -0.24999986414507377,
    0.2000214605378347,
    -0.16669216664771846,
    0.14220022280128755,
    -0.12385547326104296,
    0.11865124132509301,
    -0.11780725544616266,
    0.06921092156448248,
)
# (2 atanh(s) - 2 s) / s**3 as a polynomial in s**2, error 2**-51.5.
ATANH = (
    0.666666666666667,
    0.39999999999898445,
    0.2857142862640058,
    0.22222211072522877,
    0.18182893243882664,
    0.15331596125125913,
    0.14617882659291653,
)


def split(x: Float) -> tuple[Float, Integer, Float]:
    """The significand minus 1, the exponent, and that as a float; `x` is positive and finite."""
    format = x.format
    width, fraction = format.width, format.fraction
    lifted = fraction + 2
    denormal = x < SMALLEST_NORMAL[width]
    bits = denormal.choose(x * 2.0**lifted, x).bits() + ((format.bias << fraction) - ROOT[width])
    biased = bits.unsigned_shift(fraction)
    m = ((bits & ((1 << fraction) - 1)) + ROOT[width]).as_float()
    # The bits of 2**fraction, with an integer in the lowest: that power plus the integer.
    anchor = 2.0**fraction
    shift = denormal.choose(anchor + format.bias + lifted, anchor + format.bias)
    exponent = (biased | (format.bias + fraction << fraction)).as_float() - shift
    return m - 1.0, biased - format.bias, exponent


def log_of_significand(f: Float) -> tuple[Float, Float]:
    """log(1 + f) - f, in two parts: the larger is exact but for its rounding, -f**2 / 2."""
    half_square = f * f * 0.5
    if f.format.width == 32:
        return -half_square, f * f * f * polynomial(f, POLYNOMIAL)
    s = f / (f + 2.0)
    square = s * s
    return -half_square, s * (half_square + square * polynomial(square, ATANH))


def edges(x: Float, result: Float) -> Float:
    """The logarithm of zero, infinity, negative numbers and NaN; else `result`."""
    result = (x < math.inf).choose(result, x)
    result = (x > 0.0).choose(result, math.nan)
    return x.equals(0.0).choose(-math.inf, result)


def log(x: Float) -> Float:
    """The natural logarithm."""
    width = x.format.width
    f, _, e = split(x)
    square, rest = log_of_significand(f)
    result = e.times_plus(LN2_HIGH[width], e.times_plus(LN2_LOW[width], rest) + square + f)
    return edges(x, result)


def log2(x: Float) -> Float:
    """The logarithm to base 2, exact for powers of two."""
    f, _, e = split(x)
    square, rest = log_of_significand(f)
    return edges(x, (square + rest + f).times_plus(LOG2_E, e))


def log10(x: Float) -> Float:
    """The logarithm to base 10."""
    width = x.format.width
    f, _, e = split(x)
    square, rest = log_of_significand(f)
    result = (square + rest + f).times_plus(LOG10_E, e * LOG10_2_LOW[width])
    return edges(x, e.times_plus(LOG10_2_HIGH[width], result))


def log1p(x: Float) -> Float:
    """log(1 + x), with the rounding error of 1 + x added to the significand."""
    width = x.format.width
    total, error = two_sum(1.0, x)
    f, n, e = split(total)
    f = (x < LARGE).choose(error.times_plus(power_of_two(-n), f), f)
    square, rest = log_of_significand(f)
    result = e.times_plus(LN2_HIGH[width], e.times_plus(LN2_LOW[width], rest) + square + f)
    return x.equals(0.0).choose(x, edges(total, result))


def arcsinh(x: Float) -> Float:
    """log(|x| + sqrt(x**2 + 1)) with the sign of x; for large |x| that is log(2 |x|)."""
    size = abs(x)
    large = size > 2.0 ** (x.format.fraction // 2 + 2)
    root = size.times_plus(size, 1.0).sqrt()
    argument = large.choose(size - 1.0, size + size * (size / (root + 1.0)))
    return (log1p(argument) + large.choose(LN2, 0.0)).with_sign_of(x)


def arccosh(x: Float) -> Float:
    """log(x + sqrt(x**2 - 1)), likewise."""
    large = x > 2.0 ** (x.format.fraction // 2 + 2)
    t = x - 1.0
    argument = large.choose(t, t + (t * (t + 2.0)).sqrt())
    result = log1p(argument) + large.choose(LN2, 0.0)
    return (x >= 1.0).choose(result, math.nan)


def arctanh(x: Float) -> Float:
    """log((1 + x) / (1 - x)) / 2."""
    size = abs(x)
    return (log1p(size * 2.0 / (1.0 - size)) * 0.5).with_sign_of(x)


def logaddexp(x: Float, y: Float) -> Float:
    """log(e**x + e**y)."""
    largest = x.at_least(y)
    distance = x.equals(y).choose(0.0, abs(x - y))
    return largest + log1p(exp(-distance))


def logaddexp2(x: Float, y: Float) -> Float:
    """log2(2**x + 2**y)."""
    largest = x.at_least(y)
    distance = x.equals(y).choose(0.0, abs(x - y))
    return largest + log1p(exp2(-distance)) * LOG2_E
