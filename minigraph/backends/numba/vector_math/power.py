"""power, cbrt, rsqrt, hypot.

x**y is 2**(y log2 |x|), with the logarithm in two floats: from s = (m - 1) / (m + 1) and
log(m) = 2 atanh(s), by the error-free transformations of Dekker and Knuth (see Muller et al.,
"Handbook of Floating-Point Arithmetic").
"""

from __future__ import annotations

import math

from .exponential import EXP2_HIGHEST, EXP2_LOWEST, LOG2_E, exp2_of_rest
from .lanes import (
    Float,
    fast_two_sum,
    fused,
    nearest,
    polynomial,
    power_of_two,
    scale,
    two_product,
)
from .logarithm import split

# The nearest floats, and what is missing.
LOG2_E_HIGH = {32: 1.4426950216293335, 64: LOG2_E}
LOG2_E_LOW = {32: 1.9259629911266175e-08, 64: 2.0355273740931033e-17}
TWO_THIRDS_HIGH = {32: 0.6666666865348816, 64: 2 / 3}
TWO_THIRDS_LOW = {32: -1.9868214925130207e-08, 64: 3.700743415417188e-17}

# (2 atanh(s) - 2 s - 2/3 s**3) / s**5 in s**2, relative error 2**-21 and 2**-58.
ATANH_TAIL = {
    32: (0.40000015085423085, 0.2856222787479079, 0.2304851885747308),
    64: (
        0.4,
        0.2857142857142937,
        0.2222222222165489,
        0.18181818335596403,
        0.15384594942732963,
        0.13334805680596026,
        0.11706211941468096,
        0.11723415585105566,
    ),
}
# x**(-1/3) between 2**-1.5 and 2**1.5, relative error 2**-8.
INVERSE_CUBE_ROOT = (
    2.0151506202492335,
    -2.386460073900911,
    2.30501211364079,
    -1.2343673618419952,
    0.3339909142648958,
    -0.03560430265135196,
)


def _log2(x: Float) -> tuple[Float, Float]:
    """log2 of a positive number, in two floats."""
    width = x.format.width
    f, _, e = split(x)
    total, missing = fast_two_sum(2.0, f)
    inverse = 1.0 / total
    s = f * inverse
    s_rest = (fused(-s, total, f) - s * missing) * inverse
    square, square_rest = two_product(s, s)
    square_rest = (s * 2.0).times_plus(s_rest, square_rest)
    # 2 atanh(s) = 2 s + s square (2/3 + square tail)
    tail = square * polynomial(square, ATANH_TAIL[width])
    inner, inner_rest = fast_two_sum(TWO_THIRDS_HIGH[width], tail)
    inner_rest = inner_rest + TWO_THIRDS_LOW[width]
    part, part_rest = two_product(square, inner)
    part_rest = square.times_plus(inner_rest, square_rest.times_plus(inner, part_rest))
    cubic, cubic_rest = two_product(s, part)
    cubic_rest = s.times_plus(part_rest, s_rest.times_plus(part, cubic_rest))
    log, log_rest = fast_two_sum(s * 2.0, cubic)
    log_rest = log_rest + (s_rest * 2.0 + cubic_rest)
    high, low = two_product(log, LOG2_E_HIGH[width])
    low = log.times_plus(LOG2_E_LOW[width], log_rest.times_plus(LOG2_E_HIGH[width], low))
    high, more = fast_two_sum(e, high)
    return high, more + low


def _power_of_size(x: Float, y: Float) -> Float:
    """x**y for x that is not negative."""
    width = x.format.width
    log, low = _log2(x)
    log = x.equals(0.0).choose(-math.inf, log)
    log = x.equals(math.inf).choose(x, log)
    # One to the power of infinity is one.
    y = log.equals(0.0).choose(log, y)
    exponent = y * log
    rest = y.times_plus(low, fused(y, log, -exponent))
    rest = (abs(exponent) < 2.0 * x.format.bias).choose(rest, 0.0)
    exponent = exponent.at_least(EXP2_LOWEST[width]).at_most(EXP2_HIGHEST[width])
    n, whole = nearest(exponent)
    return scale(exp2_of_rest(exponent - n + rest), whole)


def power(x: Float, y: Float) -> Float:
    """x**y, with the special cases of C's `pow`."""
    size = abs(x)
    result = _power_of_size(size, y)
    half = y * 0.5
    whole = y.equals(y.rint())
    odd = whole & ~half.equals(half.rint())
    result = odd.choose(result.with_sign_of(x), result)
    defined = whole | (x >= 0.0) | x.equals(0.0) | size.equals(math.inf)
    result = defined.choose(result, math.nan)
    result = (x.is_nan() | y.is_nan()).choose(math.nan, result)
    return (x.equals(1.0) | y.equals(0.0)).choose(1.0, result)


def cbrt(x: Float) -> Float:
    """The cube root, from m**(-1/3) by Newton's iteration, without division."""
    width = x.format.width
    f, _, e = split(abs(x))
    third, whole = nearest(e * (1 / 3))
    # x = 2**(3 third) m with m between 2**-1.5 and 2**1.5
    m = (f + 1.0) * power_of_two(nearest(third.times_plus(-3.0, e))[1])
    y = polynomial(m, INVERSE_CUBE_ROOT)
    for _ in range(2 if width == 32 else 3):
        y = (y * (1 / 3)).times_plus((y * y).times_plus(-(m * y), 1.0), y)
    square = y * y
    root = m * square
    error = (root * root).times_plus(-root, m)
    root = (square * (1 / 3)).times_plus(error, root)
    result = (root * power_of_two(whole)).with_sign_of(x)
    return (x.equals(0.0) | ~(abs(x) < math.inf)).choose(x, result)


def rsqrt(x: Float) -> Float:
    """One over the square root."""
    return 1.0 / x.sqrt()


def hypot(x: Float, y: Float) -> Float:
    """sqrt(x**2 + y**2) that does not overflow before the result does."""
    far = abs(x).equals(math.inf) | abs(y).equals(math.inf)
    if x.format.width == 32:
        a, b = x.double(), y.double()
        result = a.times_plus(a, b * b).sqrt().single()
    else:
        large = (abs(x) > 2.0**500) | (abs(y) > 2.0**500)
        small = (abs(x) < 2.0**-400) & (abs(y) < 2.0**-400)
        up = large.choose(2.0**-600, small.choose(2.0**600, 1.0))
        down = large.choose(2.0**600, small.choose(2.0**-600, 1.0))
        a, b = x * up, y * up
        result = a.times_plus(a, b * b).sqrt() * down
    return far.choose(math.inf, result)
