"""What the texts of elementwise ops (`Op.scalar`) call, but for the vector math: NumPy's meaning.

Each function takes elements of the loop's dtype.  What it returns is converted to the dtype of the
result, so integers may come wider: int8 in, int64 out, the low bits are right.  Choices are between
values that are computed anyhow; LLVM makes selects of them, and vectors of loops.

Where C leaves the result open (a float that fits no integer) NumPy's depends on the processor; the
functions here do what it does on x86-64.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numba
import numpy as np
from numba.extending import intrinsic

exact = numba.njit(error_model="numpy", inline="always")
"""IEEE arithmetic as written, division by zero as in NumPy.

Numba puts the function into its caller before it types it: for functions as short as these that
takes a quarter of the time of compiling and linking another one.
"""


def _like(typing_context: Any, number: Any, x: Any) -> Any:
    """The number in the type of `x`."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return context.cast(builder, arguments[0], signature.args[0], signature.return_type)

    return x(number, x), generate


like: Any = intrinsic(_like)
"""`like(number, x)`: a literal in the type of `x`, or an int narrowed to it."""

# ---- integers ---------------------------------------------------------------------------------


@exact
def order(x: Any, y: Any) -> Any:
    """How an int64 and a uint64 compare, as -1, 0 or 1: no integer type holds both."""
    below = x < 0 or np.uint64(x) < y
    above = x >= 0 and np.uint64(x) > y
    return np.int64(above) - np.int64(below)


@exact
def floor_divide_ints(x: Any, y: Any) -> Any:
    """0 if `y` is 0; the smallest integer divided by -1 wraps around."""
    quotient = x // (like(1, y) if y == 0 or y == -1 else y)
    return like(0, x) if y == 0 else (like(-x, x) if y == -1 else like(quotient, x))


@exact
def remainder_ints(x: Any, y: Any) -> Any:
    """With the sign of `y`; 0 if `y` is 0."""
    return like(0, x) if y == 0 else like(x - floor_divide_ints(x, y) * y, x)


@exact
def fmod_ints(x: Any, y: Any) -> Any:
    """With the sign of `x`; 0 if `y` is 0."""
    rest = remainder_ints(x, y)
    return like(rest - y, x) if rest != 0 and (x < 0) != (y < 0) else rest


@exact
def power_ints(x: Any, y: Any) -> Any:
    """By squaring; `y` is not negative."""
    result, square, left = like(1, x), x, y
    while left > 0:
        result = like(result * square, x) if left & 1 else result
        square = like(square * square, x)
        left = like(left >> 1, y)
    return result


@exact
def left_shift(x: Any, y: Any) -> Any:
    """0 once all bits have gone; a negative `y` counts as a large one."""
    return like(x << y, x) if 0 <= y < 64 else like(0, x)


@exact
def right_shift(x: Any, y: Any) -> Any:
    """Nothing but signs once all bits have gone; a negative `y` counts as a large one."""
    return x >> (y if 0 <= y < 64 else like(63, y))


@exact
def right_shift_unsigned(x: Any, y: Any) -> Any:
    """0 once all bits have gone."""
    return x >> y if y < 64 else like(0, x)


@exact
def count_bits(x: Any) -> Any:
    """The ones in an unsigned `x`: in pairs, in fours, in eights, and their sum."""
    bits = np.uint64(x)
    bits -= (bits >> np.uint64(1)) & np.uint64(0x5555555555555555)
    pairs = np.uint64(0x3333333333333333)
    bits = (bits & pairs) + ((bits >> np.uint64(2)) & pairs)
    bits = (bits + (bits >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return (bits * np.uint64(0x0101010101010101)) >> np.uint64(56)


@exact
def count_bits_of_magnitude(x: Any) -> Any:
    """The ones in |x|, for signed integers."""
    wide = np.int64(x)
    return count_bits(-wide if wide < 0 else wide)


# ---- floats to integers -----------------------------------------------------------------------


@exact
def float_to_int64(x: Any) -> Any:
    """Towards zero; the smallest int64 if that is none."""
    fits = -(2.0**63) <= x < 2.0**63
    return np.int64(x) if fits else np.int64(-(2**63))


@exact
def float_to_int32(x: Any) -> Any:
    """Towards zero; the smallest int32 if that is none."""
    fits = -(2.0**31) - 1 < x < 2.0**31
    return np.int32(x) if fits else np.int32(-(2**31))


@exact
def float_to_uint64(x: Any) -> Any:
    """Towards zero, modulo 2⁶⁴ below; 0 above."""
    large = x >= 2.0**63
    number = float_to_int64(x - like(2.0**63, x) if large else x)
    return np.uint64(number) ^ np.uint64(2**63) if large else np.uint64(number)


# ---- floats -----------------------------------------------------------------------------------


@exact
def maximum(x: Any, y: Any) -> Any:
    """NaN if there is one; of two zeros the second."""
    return x if x > y or x != x else y


@exact
def minimum(x: Any, y: Any) -> Any:
    """NaN if there is one; of two zeros the second."""
    return x if x < y or x != x else y


@exact
def fmax(x: Any, y: Any) -> Any:
    """NaN if both are; of two zeros the second (in NumPy's vectors; its rests take the first)."""
    return x if x > y or y != y else y


@exact
def fmin(x: Any, y: Any) -> Any:
    """NaN if both are; of two zeros the second (in NumPy's vectors; its rests take the first)."""
    return x if x < y or y != y else y


@exact
def clip_to_fixed(x: Any, low: Any, high: Any) -> Any:
    """Between bounds that are the same for all elements: of two zeros `x` stays."""
    above = low if (low > x or low != low) and x == x else x
    return high if (high < above or high != high) and above == above else above


@exact
def floor_divide(x: Any, y: Any) -> Any:
    """The floor of the quotient whose remainder `remainder` gives; `x / y` if `y` is 0."""
    rest = np.fmod(x, y)
    quotient = (x - rest) / y
    quotient = quotient - like(1, x) if rest != 0 and (y < 0) != (rest < 0) else quotient
    below = np.floor(quotient)
    nearest = below + like(1, x) if quotient - below > 0.5 else below
    whole = nearest if quotient != 0 else math.copysign(like(0, x), x / y)
    return x / y if y == 0 else whole


@exact
def remainder(x: Any, y: Any) -> Any:
    """With the sign of `y`, of zeros too."""
    rest = np.fmod(x, y)
    signed = rest + y if rest != 0 and (y < 0) != (rest < 0) else rest
    return signed if signed != 0 or y == 0 else math.copysign(like(0, x), y)


@exact
def sign(x: Any) -> Any:
    """1, -1, or 0; NaN stays."""
    unit = like(1, x) if x > 0 else like(-1, x)
    return unit if x > 0 or x < 0 else (like(0, x) if x == 0 else x)


@exact
def signbit(x: Any) -> Any:
    """Of -0.0 and of NaN too."""
    return math.copysign(like(1, x), x) < 0


@exact
def isinf(x: Any) -> Any:
    """Of either sign."""
    return math.fabs(x) == math.inf


@exact
def isfinite(x: Any) -> Any:
    """Neither infinite nor NaN."""
    return math.fabs(x) < math.inf


@exact
def heaviside(x: Any, y: Any) -> Any:
    """0 below 0, `y` at 0, 1 above; NaN stays."""
    step = like(1, x) if x > 0 else like(0, x)
    return y if x == 0 else (x if x != x else step)


@exact
def reciprocal(x: Any) -> Any:
    """One division."""
    return like(1, x) / x


@exact
def reciprocal_root(x: Any) -> Any:
    """`x` to the power of -1/2, which is positive at -0.0 and -inf."""
    return like(0, x) if x == -math.inf else like(1, x) / math.sqrt(x + like(0, x))


@exact
def root_cubed(x: Any) -> Any:
    """`x` to the power of 3/2, which is positive at -0.0 and -inf."""
    positive = x + like(0, x)
    return -x if x == -math.inf else positive * math.sqrt(positive)


@exact
def degrees(x: Any) -> Any:
    """The factor is rounded in the type of `x`, as in NumPy."""
    return x * (like(180, x) / like(math.pi, x))


@exact
def radians(x: Any) -> Any:
    """The factor is rounded in the type of `x`, as in NumPy."""
    return x * (like(math.pi, x) / like(180, x))


FUNCTIONS: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {
        "ceil": np.ceil,
        "clip_to_fixed": clip_to_fixed,
        "copysign": math.copysign,
        "count_bits": count_bits,
        "count_bits_of_magnitude": count_bits_of_magnitude,
        "degrees": degrees,
        "fabs": math.fabs,
        "float_to_int8": float_to_int32,
        "float_to_int16": float_to_int32,
        "float_to_int32": float_to_int32,
        "float_to_int64": float_to_int64,
        "float_to_uint8": float_to_int32,
        "float_to_uint16": float_to_int32,
        "float_to_uint32": float_to_int64,
        "float_to_uint64": float_to_uint64,
        "floor": np.floor,
        "floor_divide": floor_divide,
        "floor_divide_ints": floor_divide_ints,
        "fmax": fmax,
        "fmin": fmin,
        "fmod": np.fmod,
        "fmod_ints": fmod_ints,
        "heaviside": heaviside,
        "isfinite": isfinite,
        "isinf": isinf,
        "left_shift": left_shift,
        "like": like,
        "maximum": maximum,
        "minimum": minimum,
        "order": order,
        "power_ints": power_ints,
        "radians": radians,
        "reciprocal": reciprocal,
        "reciprocal_root": reciprocal_root,
        "remainder": remainder,
        "remainder_ints": remainder_ints,
        "right_shift": right_shift,
        "right_shift_unsigned": right_shift_unsigned,
        "rint": np.rint,
        "root_cubed": root_cubed,
        "sign": sign,
        "signbit": signbit,
        "sqrt": math.sqrt,
        "trunc": np.trunc,
    }
)
"""What a text may call, by name."""
