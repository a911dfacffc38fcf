"""sin, cos, tan, for arguments of any size.

x = n pi / 2 + r with |r| <= pi / 4, after Payne and Hanek (SIGNUM Newsletter 18, 1983): with
x = m 2**k and m an integer, x 2 / pi modulo 4 is m times 2**k 2 / pi modulo 4, modulo 4; the latter
is looked up by k, in as many parts as cancellation can eat (a float64 comes as close to a multiple
of pi / 2 as 2**-61). One way for all arguments: a test for the large ones would be a branch, and no
loop with a branch becomes vectors.

sin(r) and cos(r) by minimax polynomials (Remez); which of the two, and its sign, by n modulo 4.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from functools import cache

from .lanes import Float, Integer, polynomial, power_of_two, two_product, two_sum

HALF_PI_HIGH, HALF_PI_LOW = math.pi / 2, 6.123233995736766e-17
# Below, sin(x) is x and cos(x) is 1; the tables begin there.
LOWEST_EXPONENT = -30

# (sin(r) - r) / r**3 in r**2, error 2**-25 and 2**-55.
SIN = {
    32: (-0.16666664664859251, 0.008332748400501657, -0.00019587879558424545),
    64: (
        -0.16666666666666666,
        0.008333333333330945,
        -0.00019841269836751749,
        2.7557316098853844e-06,
        -2.5051131048669973e-08,
        1.5918070456741266e-10,
    ),
}
# (cos(r) - 1 + r**2 / 2) / r**4 in r**2, error 2**-29 and 2**-59.
COS = {
    32: (0.04166666466110915, -0.0013888303043875362, 2.45479109454929e-05),
    64: (
        0.041666666666666664,
        -0.0013888888888887395,
        2.4801587298761247e-05,
        -2.755731726933891e-07,
        2.087614575594854e-09,
        -1.138259469148055e-11,
    ),
}


@cache
def _two_over_pi(bits: int) -> int:
    """2 / pi times 2**bits, by Machin's formula: pi / 4 = 4 arctan(1/5) - arctan(1/239)."""
    one = 1 << bits + 64

    def arctan_of_inverse(n: int) -> int:
        term, total, k = one // n, one // n, 1
        while term:
            term //= -n * n
            k += 2
            total += term // k
        return total

    pi = 4 * (4 * arctan_of_inverse(5) - arctan_of_inverse(239))
    return (2 << 2 * bits + 64) // pi


def _turns(k: int) -> tuple[int, int]:
    """2**k 2 / pi modulo 4, between -2 and 2, as a fraction."""
    bits = 1400  # the largest k, and four parts with room to spare
    turns, four = _two_over_pi(bits), 4 << bits
    if k >= 0:
        turns = ((turns << k) + four // 2) % four - four // 2
        return turns, 1 << bits
    return turns, 1 << bits - k


def _parts(k: int, widths: tuple[int, ...]) -> Iterator[float]:
    """`_turns(k)` as a sum of floats with so many bits each."""
    numerator, denominator = _turns(k)
    for width in widths:
        fraction, exponent = math.frexp(numerator / denominator)
        part = math.ldexp(round(math.ldexp(fraction, width)), exponent - width)
        yield part
        above, below = part.as_integer_ratio()
        numerator, denominator = numerator * below - above * denominator, denominator * below


@cache
def _table() -> bytes:
    """Parts by the exponents of float64; zeros for that of infinity and NaN."""
    rows = [
        tuple(_parts(exponent - 52, (53, 53, 53, 53))) for exponent in range(LOWEST_EXPONENT, 1024)
    ]
    rows.append((0.0, 0.0, 0.0, 0.0))
    return b"".join(struct.pack("<4d", *row) for row in rows)


def _rounded(x: Float, unit: float = 1.0) -> tuple[Float, Float]:
    """The nearest multiple of `unit`, plus a constant that leaves its number modulo 4 in the lowest
    bits; and what was rounded off, exactly.
    """
    magic = 1.5 * 2.0**52 * unit
    shifted = x + magic
    return shifted, x - (shifted - magic)


def _reduced_single(x: Float) -> tuple[Float, Integer]:
    """For float32: in float64, where 24 bits times 29 are exact, without a table."""
    x = x.double()
    size = abs(x)
    # From 2**50 on in steps of 26 bits: x / 2**k is an integer below 2**50.
    parts: list[Float | float] = list(_parts(0, (29, 29, 53)))
    for least, k in (50, 27), (76, 53), (102, 79):
        here = size >= 2.0**least
        parts = [
            here.choose(math.ldexp(part, -k), before)
            for part, before in zip(_parts(k, (29, 29, 53)), parts, strict=True)
        ]
    _, first = _rounded(x * parts[0], 4.0)
    quarters, second = _rounded(x * parts[1])
    more_quarters, _ = _rounded(first + second)
    rest = first - (more_quarters - 1.5 * 2.0**52) + second
    r = x.times_plus(parts[2], rest) * HALF_PI_HIGH
    return r.single(), (quarters.bits() + more_quarters.bits()).narrow()


def _reduced_double(x: Float) -> tuple[Float, Integer]:
    """For float64: with three products and their rounding errors, exactly."""
    format = x.format
    biased = x.bits().unsigned_shift(format.fraction) & 2 * format.bias + 1
    row = (biased - (format.bias + LOWEST_EXPONENT)).at_least(0)
    m = x * power_of_two(-row + (format.fraction - LOWEST_EXPONENT))
    parts = [((row << 2) + k).of_table(_table()) for k in range(4)]
    (a, a_error), (b, b_error), (c, c_error) = (two_product(m, part) for part in parts[:3])
    _, a = _rounded(a, 8.0)
    quarters, a = _rounded(a)
    b, error_1 = two_sum(a_error, b)
    b, error_2 = two_sum(a, b)
    more_quarters, rest = _rounded(b)
    # What is left where `rest` is zero.
    tail, error_3 = two_sum(b_error, c)
    tail, error_4 = two_sum(error_1, tail)
    tail, error_5 = two_sum(error_2, tail)
    high, low = two_sum(rest, tail)
    low = low + (error_3 + error_4 + error_5 + m.times_plus(parts[3], c_error))
    r = high.times_plus(HALF_PI_HIGH, low.times_plus(HALF_PI_HIGH, high * HALF_PI_LOW))
    return r, quarters.bits() + more_quarters.bits()


def reduced(x: Float) -> tuple[Float, Integer]:
    """The rest r and the number n of quarter turns, of which only n modulo 4 counts."""
    return _reduced_single(x) if x.format.width == 32 else _reduced_double(x)


def _sin_and_cos(r: Float) -> tuple[Float, Float]:
    """Of |r| <= pi / 4."""
    width = r.format.width
    square = r * r
    sin = (square * r).times_plus(polynomial(square, SIN[width]), r)
    cos = (square * square).times_plus(polynomial(square, COS[width]), 1.0 - square * 0.5)
    return sin, cos


def _by_quarter(r: Float, n: Integer) -> Float:
    """The sine of r + n pi / 2."""
    sin, cos = _sin_and_cos(r)
    value = (n & 1).is_zero().choose(sin, cos)
    return (value.bits() ^ ((n & 2) << n.format.width - 2)).as_float()


def sin(x: Float) -> Float:
    """The sine."""
    r, n = reduced(x)
    return (abs(x) < 2.0**LOWEST_EXPONENT).choose(x, _by_quarter(r, n))


def cos(x: Float) -> Float:
    """The cosine."""
    r, n = reduced(x)
    return _by_quarter(r, n + 1)


def tan(x: Float) -> Float:
    """The tangent, sin / cos or -cos / sin."""
    r, n = reduced(x)
    sin, cos = _sin_and_cos(r)
    even = (n & 1).is_zero()
    result = even.choose(sin, -cos) / even.choose(cos, sin)
    return (abs(x) < 2.0**LOWEST_EXPONENT).choose(x, result)
