"""arcsin, arccos, arctan, arctan2.

arctan(t) for |t| <= tan(pi / 8) by a minimax polynomial (Remez); larger arguments by
arctan(x) = pi / 4 + arctan((x - 1) / (x + 1)) = pi / 2 - arctan(1 / x), with one division for all.
arcsin(x) for |x| <= 1/2 likewise; beyond it is pi / 2 - 2 arcsin(sqrt((1 - x) / 2)). Both as in
Cephes by Moshier, 1989.
"""

from __future__ import annotations

import math

from .lanes import Float, Truth, polynomial

# pi as the nearest float, and what is missing.
PI_HIGH = {32: 3.1415927410125732, 64: math.pi}
PI_LOW = {32: -8.742278000372485e-08, 64: 1.2246467991473532e-16}

# (arctan(t) - t) / t**3 in t**2 for |t| <= tan(pi / 8), error 2**-26 and 2**-55.
ARCTAN = {
    32: (
        -0.3333333186356124,
        0.1999955937789766,
        -0.14264502453806827,
        0.1074880357677106,
        -0.06466642925355473,
    ),
    64: (
        -0.3333333333333333,
        0.19999999999995774,
        -0.14285714284715104,
        0.11111111018863823,
        -0.09090904714287508,
        0.07692186143754062,
        -0.06664550441657119,
        0.058584676647016054,
        -0.05087024529467727,
        0.03927473799680546,
        -0.019226978127026548,
    ),
}
# (arcsin(x) - x) / x**3 in x**2 for |x| <= 1/2, error 2**-24 and 2**-52.
ARCSIN = {
    32: (
        0.1666667313371825,
        0.07498761453026229,
        0.045020294513881974,
        0.026432679143527486,
        0.038329923360645515,
    ),
    64: (
        0.16666666666666646,
        0.07500000000023263,
        0.04464285709940029,
        0.03038194761940617,
        0.02237203952397522,
        0.017355411859904288,
        0.013927879449374453,
        0.011888786105145453,
        0.007738976159520507,
        0.016226652499312714,
        -0.011071699819960928,
        0.028404364706266255,
    ),
}


def _of_pi(x: Float, part: float) -> tuple[float, float]:
    """So much of pi in the format of `x`, and what is missing to it."""
    return PI_HIGH[x.format.width] * part, PI_LOW[x.format.width] * part


def _arctan_of_ratio(y: Float, x: Float) -> Float:
    """arctan(y / x) for y and x that are not negative, nor both zero or both infinite."""
    steep, flat = y > x * math.tan(3 * math.pi / 8), y <= x * math.tan(math.pi / 8)
    above = steep.choose(-x, flat.choose(y, y - x))
    below = steep.choose(y, flat.choose(x, y + x))
    t = above / below
    square = t * t
    result = (square * t).times_plus(polynomial(square, ARCTAN[x.format.width]), t)
    (quarter, quarter_rest), (half, half_rest) = _of_pi(x, 1 / 4), _of_pi(x, 1 / 2)
    high = steep.choose(half, flat.choose(0.0, quarter))
    low = steep.choose(half_rest, flat.choose(0.0, quarter_rest))
    return high + (low + result)


def arctan(x: Float) -> Float:
    """The inverse tangent."""
    return _arctan_of_ratio(abs(x), x.constant(1.0)).with_sign_of(x)


def arctan2(y: Float, x: Float) -> Float:
    """The angle of the point (x, y), from -pi to pi."""
    height, width = abs(y), abs(x)
    corner = height.equals(math.inf) & width.equals(math.inf)
    origin = height.equals(0.0) & width.equals(0.0)
    # Away from where the sum of both overflows, and from the coarse denormal numbers.
    large, small = 2.0**x.format.bias, 2.0 ** -(x.format.bias // 2)
    up = ((height < small) & (width < small)).choose(2.0**x.format.fraction, 1.0)
    factor = ((height > large) | (width > large)).choose(0.25, up)
    height = corner.choose(1.0, height) * factor
    width = (corner | origin).choose(1.0, width) * factor
    angle = _arctan_of_ratio(height, width)
    pi, pi_rest = _of_pi(x, 1)
    return x.is_negative().choose(pi - (angle - pi_rest), angle).with_sign_of(y)


def _arcsin_of_part(x: Float) -> tuple[Truth, Float]:
    """Whether |x| > 1/2, and arcsin(|x|) or else arcsin(sqrt((1 - |x|) / 2))."""
    size = abs(x)
    far = size > 0.5
    square = far.choose(0.5 - size * 0.5, size * size)
    root = far.choose(square.sqrt(), size)
    return far, (root * square).times_plus(polynomial(square, ARCSIN[x.format.width]), root)


def arcsin(x: Float) -> Float:
    """The inverse sine."""
    far, part = _arcsin_of_part(x)
    half, rest = _of_pi(x, 1 / 2)
    return far.choose(half - (part * 2.0 - rest), part).with_sign_of(x)


def arccos(x: Float) -> Float:
    """The inverse cosine."""
    far, part = _arcsin_of_part(x)
    (half, half_rest), (pi, pi_rest) = _of_pi(x, 1 / 2), _of_pi(x, 1)
    beyond = (x < 0.0).choose(pi - (part * 2.0 - pi_rest), part * 2.0)
    return far.choose(beyond, half - (part.with_sign_of(x) - half_rest))
