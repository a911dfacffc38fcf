"""exp and what follows from it: exp2, expm1, sinh, cosh, tanh, expit.

x = n ln 2 + r with |r| <= ln 2 / 2, ln 2 in two parts of which n times the first is exact (Cody and
Waite, "Software Manual for the Elementary Functions", 1980); e**r by a minimax polynomial (Remez);
2**n by its bits. The hyperbolic functions come from expm1, as in Muller, "Elementary Functions".
"""

from __future__ import annotations

import math

from .lanes import (
    Float,
    Integer,
    nearest,
    polynomial,
    power_of_two,
    scale,
)

LN2, LOG2_E = math.log(2.0), math.log2(math.e)
LN2_HIGH = {32: 0.693359375, 64: 0.6931471803691238}
LN2_LOW = {32: -2.12194440054690583e-4, 64: 1.9082149292705877e-10}

# (e**r - 1 - r) / r**2 for |r| <= ln 2 / 2, error 2**-24 and 2**-53.
EXPONENTIAL = {
    32: (
        0.5000000027076464,
        0.16666576645631404,
        0.04166637412411121,
        0.008363235154522733,
        0.001394121608961549,
    ),
    64: (
        0.5000000000000001,
        0.16666666666666674,
        0.04166666666662382,
        0.008333333333322084,
        0.0013888888917370289,
        0.00019841269886961154,
        2.480152105330233e-05,
        2.7557241930039194e-06,
        2.7620203588335305e-07,
        2.5110198567968557e-08,
    ),
}

# (2**r - 1) / r for |r| <= 1 / 2, error 2**-27 and 2**-56.
POWER_OF_TWO = {
    32: (
        0.6931471880742028,
        0.24022651086548708,
        0.055503568895038324,
        0.009618030376293793,
        0.0013390981886401737,
        0.00015469867918491349,
    ),
    64: (
        0.6931471805599453,
        0.24022650695910097,
        0.05550410866482166,
        0.009618129107606715,
        0.001333355814639577,
        0.00015403530442028332,
        1.5252733853557114e-05,
        1.3215442409805384e-06,
        1.0178051595360734e-07,
        7.0726215506561494e-09,
        4.456697510296486e-10,
    ),
}

# Where exp and exp2 are 0 or infinite, sinh and cosh infinite; where expm1 is -1 and tanh 1.
EXP_LOWEST, EXP_HIGHEST = {32: -105.0, 64: -746.0}, {32: 89.0, 64: 710.0}
EXP2_LOWEST, EXP2_HIGHEST = {32: -155.0, 64: -1080.0}, {32: 129.0, 64: 1025.0}
COSH_HIGHEST = {32: 89.5, 64: 710.6}
EXPM1_LOWEST = {32: -20.0, 64: -40.0}
TANH_HIGHEST = {32: 9.1, 64: 20.0}
# Below, f(x) = x (1 + O(x)) is x.
TINY = {32: 2.0**-26, 64: 2.0**-55}


def expm1_of_rest(r: Float) -> Float:
    """e**r - 1 for |r| <= ln 2 / 2."""
    return (r * r).times_plus(polynomial(r, EXPONENTIAL[r.format.width]), r)


def reduced(x: Float) -> tuple[Float, Integer]:
    """e**r - 1 and n, with x = n ln 2 + r."""
    width = x.format.width
    n, exponent = nearest(x * LOG2_E)
    return expm1_of_rest(n.times_plus(-LN2_LOW[width], n.times_plus(-LN2_HIGH[width], x))), exponent


def coarse_expm1(x: Float) -> Float:
    """e**x - 1 for |x| < 50, less exact the larger |x|: for results that go to 1 with e**-|x|."""
    n, exponent = nearest(x * LOG2_E)
    power = power_of_two(exponent)
    return power.times_plus(expm1_of_rest(n.times_plus(-LN2, x)), power - 1.0)


def exp(x: Float) -> Float:
    """The exponential function."""
    width = x.format.width
    part, n = reduced(x.at_least(EXP_LOWEST[width]).at_most(EXP_HIGHEST[width]))
    return scale(part + 1.0, n)


def exp2_of_rest(r: Float) -> Float:
    """2**r for |r| <= 1 / 2."""
    return r.times_plus(polynomial(r, POWER_OF_TWO[r.format.width]), 1.0)


def exp2(x: Float) -> Float:
    """Two to the power x, exact for integers."""
    width = x.format.width
    x = x.at_least(EXP2_LOWEST[width]).at_most(EXP2_HIGHEST[width])
    n, exponent = nearest(x)
    return scale(exp2_of_rest(x - n), exponent)


def expm1(x: Float) -> Float:
    """e**x - 1, from halves so that 2**n does not overflow before the result does."""
    width = x.format.width
    part, n = reduced(x.at_least(EXPM1_LOWEST[width]).at_most(EXP_HIGHEST[width]))
    half = power_of_two(n - 1)
    result = half.times_plus(part, half - 0.5) * 2.0
    return (abs(x) < TINY[width]).choose(x, result)


def sinh(x: Float) -> Float:
    """The hyperbolic sine, (t + t / (t + 1)) / 2 with t = expm1(|x|).

    A quarter of t is computed, against early overflow.
    """
    width = x.format.width
    part, n = reduced(abs(x).at_most(COSH_HIGHEST[width]))
    quarter = power_of_two(n - 2)
    quarter = quarter.times_plus(part, quarter - 0.25)
    result = (quarter + quarter / quarter.times_plus(4.0, 1.0)) * 2.0
    return (abs(x) < TINY[width]).choose(x, result.with_sign_of(x))


def cosh(x: Float) -> Float:
    """The hyperbolic cosine, (e + 1 / e) / 2 with e = exp(|x|), likewise from a quarter of e."""
    part, n = reduced(abs(x).at_most(COSH_HIGHEST[x.format.width]))
    quarter = power_of_two(n - 2)
    quarter = quarter.times_plus(part, quarter)
    return (quarter + 1.0 / (quarter * 16.0)) * 2.0


def tanh(x: Float) -> Float:
    """The hyperbolic tangent, t / (t + 2) with t = expm1(2 |x|)."""
    t = coarse_expm1(abs(x).at_most(TANH_HIGHEST[x.format.width]) * 2.0)
    return (t / (t + 2.0)).with_sign_of(x)


def expit(x: Float) -> Float:
    """The logistic sigmoid, 1 / (1 + e**-x), from e**-|x|: gradual where it underflows."""
    width = x.format.width
    part, n = reduced((-abs(x)).at_least(EXP_LOWEST[width]))
    e = scale(part + 1.0, n)
    return (x >= 0.0).choose(1.0, e) / (e + 1.0)
