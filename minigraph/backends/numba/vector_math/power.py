"""power, cbrt, rsqrt, hypot.

x**y is 2**(y log2 |x|). float32 goes through float64. float64 takes the logarithm in two floats,
from s = (m - 1) / (m + 1) and log(m) = 2 atanh(s), about 2**-66 off in all, with the error-free
transformations of Dekker and Knuth (see Muller et al., "Handbook of Floating-Point Arithmetic").
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

LOG2_E_REST = 2.0355273740931033e-17
TWO_THIRDS, TWO_THIRDS_REST = 2 / 3, 3.700743415417188e-17

# log2((1 + s) / (1 - s)) / s in s**2, relative error 2**-38.
SHORT_LOG2 = (
    2.8853900817900864,
    0.9617966733417975,
    0.5770835849651513,
    0.4116727189977767,
    0.34073010658534336,
)
# (2 atanh(s) - 2 s - 2/3 s**3) / s**5 in s**2, relative error 2**-58.
ATANH_TAIL = (
    0.4,
    0.2857142857142937,
    0.2222222222165489,
    0.18181818335596403,
    0.15384594942732963,
    0.13334805680596026,
    0.11706211941468096,
    0.11723415585105566,
)
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
    """log2 of a positive float64, in two floats."""
    f, _, e = split(x)
    total, missing = fast_two_sum(f.constant(2.0), f)
    inverse = 1.0 / total
    s = f * inverse
    s_rest = (fused(-s, total, f) - s * missing) * inverse
    square, square_rest = two_product(s, s)
    square_rest = (s * 2.0).times_plus(s_rest, square_rest)
    # 2 atanh(s) = 2 s + s square (2/3 + square tail)
    tail = square * polynomial(square, ATANH_TAIL)
    inner, inner_rest = fast_two_sum(f.constant(TWO_THIRDS), tail)
    inner_rest = inner_rest + TWO_THIRDS_REST
    part, part_rest = two_product(square, inner)
    part_rest = square.times_plus(inner_rest, square_rest.times_plus(inner, part_rest))
    cubic, cubic_rest = two_product(s, part)
    cubic_rest = s.times_plus(part_rest, s_rest.times_plus(part, cubic_rest))
    log, log_rest = fast_two_sum(s * 2.0, cubic)
    log_rest = log_rest + (s_rest * 2.0 + cubic_rest)
    high, low = two_product(log, LOG2_E)
    low = log.times_plus(LOG2_E_REST, log_rest.times_plus(LOG2_E, low))
    high, more = fast_two_sum(e, high)
    return high, more + low


def _edges_of_log(x: Float, log: Float) -> Float:
    """Of zero and infinity."""
    log = x.equals(0.0).choose(x.constant(-math.inf), log)
    return x.equals(math.inf).choose(x, log)


def _unless_one(log: Float, y: Float) -> Float:
    """y, or 0 if one is raised to it: also to infinity."""
    return log.equals(0.0).choose(log, y)


def _short_power(x: Float, y: Float) -> Float:
    """x**y for positive float64 that are float32, good for a float32."""
    f, _, e = split(x)
    s = f / (f + 2.0)
    log = _edges_of_log(x, s.times_plus(polynomial(s * s, SHORT_LOG2), e))
    exponent = (_unless_one(log, y) * log).at_least(-200.0).at_most(200.0)
    n, whole = nearest(exponent)
    return exp2_of_rest(exponent - n) * power_of_two(whole)


def _long_power(x: Float, y: Float) -> Float:
    """x**y for positive float64."""
    high, low = _log2(x)
    log = _edges_of_log(x, high)
    y = _unless_one(log, y)
    exponent = y * log
    rest = y.times_plus(low, fused(y, log, -exponent))
    rest = (abs(exponent) < EXP2_HIGHEST[64] + 100).choose(rest, 0.0)
    exponent = exponent.at_least(EXP2_LOWEST[64]).at_most(EXP2_HIGHEST[64])
    n, whole = nearest(exponent)
    return scale(exp2_of_rest(exponent - n + rest), whole)


def power(x: Float, y: Float) -> Float:
    """X to the power y, with the special cases of C's `pow`."""
    size = abs(x)
    if x.format.width == 32:
        result = _short_power(size.double(), y.double()).single()
    else:
        result = _long_power(size, y)
    one, nan = x.constant(1.0), x.constant(math.nan)
    half = y * 0.5
    whole = y.equals(y.rint())
    odd = whole & ~half.equals(half.rint())
    result = odd.choose(result.with_sign_of(x), result)
    defined = whole | (x >= 0.0) | x.equals(0.0) | size.equals(math.inf)
    result = defined.choose(result, nan)
    result = (x.is_nan() | y.is_nan()).choose(nan, result)
    return (x.equals(1.0) | y.equals(0.0)).choose(one, result)


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
        up = large.choose(x.constant(2.0**-600), small.choose(x.constant(2.0**600), 1.0))
        down = large.choose(x.constant(2.0**600), small.choose(x.constant(2.0**-600), 1.0))
        a, b = x * up, y * up
        result = a.times_plus(a, b * b).sqrt() * down
    return far.choose(x.constant(math.inf), result)
