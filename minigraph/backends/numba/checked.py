"""Python's numbers in compiled loops: as int64 and float64, as long as these hold the result.

What they do not hold, and what Python raises an error for, ends the loop (`fail_unless`): it then
runs again in Python, which gives the large number or raises the error where the user wrote it.
So nothing here needs to say which error it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from types import MappingProxyType
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from .scalars import floor_divide, remainder

_checked = numba.njit(error_model="numpy", inline="always")
EXACT = 2**53
"""All integers up to it, of either sign, are floats."""

_LEAST = -(2**63)
_INT = types.int64
_MESSAGE = "this loop is for Python to run"


def _fail(context: Any, builder: Any, condition: Any) -> None:
    """Leave the function being written where the condition holds."""
    with cgutils.if_unlikely(builder, condition):
        context.call_conv.return_user_exc(builder, OverflowError, (_MESSAGE,))


def _fail_unless(typing_context: Any, condition: Any) -> Any:
    """End the loop unless the condition holds."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        holds = context.cast(builder, arguments[0], signature.args[0], types.boolean)
        _fail(context, builder, builder.not_(holds))
        return context.get_dummy_value()

    return types.void(condition), generate


fail_unless: Any = intrinsic(_fail_unless)


def _as_ints(context: Any, builder: Any, signature: Any, arguments: Any) -> list[Any]:
    pairs = zip(arguments, signature.args, strict=True)
    return [context.cast(builder, value, kind, _INT) for value, kind in pairs]


# ---- int64 ------------------------------------------------------------------------------------


def _checked_operation(operation: str) -> tuple[Any, Any]:
    """Two functions: of two int64, and with a condition without which the result is of no use.

    Where one number is known, the test whether the result fits needs only the other one: so who
    uses the result does not wait for it.
    """

    def result(
        context: Any, builder: Any, signature: Any, arguments: Any, needed: Any = None
    ) -> Any:
        x, y = _as_ints(context, builder, signature, arguments)
        known = [getattr(kind, "literal_value", None) for kind in signature.args]
        if known[1] is None and known[0] is not None and operation != "sub":
            x, y, known = y, x, known[::-1]
        value, fails = _with_overflow(builder, operation, x, y, known[1])
        _fail(context, builder, fails if needed is None else builder.and_(needed, fails))
        return value

    @intrinsic(prefer_literal=True)
    def compute(typing_context: Any, x: Any, y: Any) -> Any:
        """The sum, difference or product of two int64."""
        return _INT(x, y), result

    @intrinsic(prefer_literal=True)
    def compute_if(typing_context: Any, x: Any, y: Any, needed: Any) -> Any:
        """The same, which may be anything where the condition does not hold."""

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            *operands, needed = arguments
            return result(context, builder, _INT(*signature.args[:2]), operands, needed)

        return _INT(x, y, needed), generate

    return compute, compute_if


def _with_overflow(builder: Any, operation: str, x: Any, y: Any, known: int | None) -> Any:
    """The result modulo 2⁶⁴, and whether it is another one."""
    number = ir.IntType(64)
    if known is None:
        pair = ir.LiteralStructType([number, ir.IntType(1)])
        kind = ir.FunctionType(pair, [number, number])
        name = f"llvm.s{operation}.with.overflow.i64"
        found = builder.call(cgutils.get_or_insert_function(builder.module, kind, name), [x, y])
        return builder.extract_value(found, 0), builder.extract_value(found, 1)
    low, high = _fitting(operation, known)
    value = getattr(builder, operation)(x, y)
    below = builder.icmp_signed("<", x, number(low))
    return value, builder.or_(below, builder.icmp_signed(">", x, number(high)))


def _fitting(operation: str, known: int) -> tuple[int, int]:
    """The least and the largest int64 whose result with a known one is an int64."""
    least, most = -(2**63), 2**63 - 1
    if operation == "mul":
        if known == 0:
            return least, most
        bounds = sorted((Fraction(least, known), Fraction(most, known)))
        return max(math.ceil(bounds[0]), least), min(math.floor(bounds[1]), most)
    added = known if operation == "add" else -known
    return max(least - added, least), min(most - added, most)


add_ints, add_ints_if = _checked_operation("add")
subtract_ints, subtract_ints_if = _checked_operation("sub")
multiply_ints, multiply_ints_if = _checked_operation("mul")


def _divided(wanted: str, *, is_checked: bool) -> Any:
    @intrinsic
    def compute(typing_context: Any, x: Any, y: Any) -> Any:
        """The quotient of two int64, rounded down, or the remainder, with the sign of `y`."""

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            a, b = _as_ints(context, builder, signature, arguments)
            zero, one = a.type(0), a.type(1)
            if is_checked:
                lowest = builder.icmp_signed("==", a, a.type(-(2**63)))
                too_large = builder.and_(lowest, builder.icmp_signed("==", b, a.type(-1)))
                by_zero = builder.icmp_signed("==", b, zero)
                _fail(context, builder, builder.or_(by_zero, too_large))
            rest = builder.srem(a, b)
            other_sign = builder.icmp_signed("<", builder.xor(rest, b), zero)
            is_off = builder.and_(builder.icmp_signed("!=", rest, zero), other_sign)
            if wanted == "remainder":
                return builder.add(rest, builder.select(is_off, b, zero))
            return builder.sub(builder.sdiv(a, b), builder.select(is_off, one, zero))

        return _INT(x, y), generate

    return compute


floor_divide_numbers = _divided("quotient", is_checked=True)
remainder_of_numbers = _divided("remainder", is_checked=True)
floor_divide_by_known = _divided("quotient", is_checked=False)
remainder_by_known = _divided("remainder", is_checked=False)


@intrinsic
def within(typing_context: Any, x: Any, low: Any, high: Any) -> Any:
    """An int64 that must lie between two others."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        value, low, high = _as_ints(context, builder, signature, arguments)
        below = builder.icmp_signed("<", value, low)
        _fail(context, builder, builder.or_(below, builder.icmp_signed(">", value, high)))
        return value

    return _INT(x, low, high), generate


@intrinsic
def place(typing_context: Any, position: Any, size: Any) -> Any:
    """Where along an axis of this size a position lies; a negative one counts from the end."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        at, size = _as_ints(context, builder, signature, arguments)
        before = builder.block
        outside = builder.icmp_unsigned(">=", at, size)
        with cgutils.if_unlikely(builder, outside):
            from_end = builder.add(at, size)
            _fail(context, builder, builder.icmp_unsigned(">=", from_end, size))
            inside = builder.block
        found = builder.phi(at.type)
        found.add_incoming(at, before)
        found.add_incoming(from_end, inside)
        return found

    return _INT(position, size), generate


def _opaque(typing_context: Any, x: Any) -> Any:
    """A float64 of which LLVM knows nothing, so that it calls the function that Python calls."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        number = ir.IntType(64)
        bits = builder.bitcast(arguments[0], number)
        kind = ir.FunctionType(number, [number])
        same = builder.asm(kind, "", "=r,0", [bits], False)
        return builder.bitcast(same, arguments[0].type)

    return types.float64(types.float64), generate


opaque: Any = intrinsic(_opaque)


def _fused(typing_context: Any, x: Any, y: Any, z: Any) -> Any:
    """`x * y + z`, rounded once."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.fma(*arguments)

    return types.float64(types.float64, types.float64, types.float64), generate


fused: Any = intrinsic(_fused)


def _unit_in_last_place(typing_context: Any, x: Any) -> Any:
    """Of a positive float64 that is not denormal: the power of two below it, times 2⁻⁵²."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        number = ir.IntType(64)
        bits = builder.bitcast(arguments[0], number)
        power = builder.bitcast(builder.and_(bits, number(0x7FF << 52)), arguments[0].type)
        return builder.fmul(power, arguments[0].type(2.0**-52))

    return types.float64(types.float64), generate


unit_in_last_place: Any = intrinsic(_unit_in_last_place)


@_checked
def exact_float(x: Any) -> Any:
    """An int64 that a float64 holds, for comparisons with one."""
    fail_unless(-EXACT <= x <= EXACT)
    return np.float64(x)


@_checked
def int_of_float(x: Any) -> Any:
    """A float64 rounded towards zero."""
    fail_unless(-(2.0**63) <= x < 2.0**63)
    return np.int64(x)


@_checked
def divide_ints(x: Any, y: Any) -> Any:
    """`x / y`, rounded once."""
    fail_unless((y != 0) & (-EXACT <= x <= EXACT) & (-EXACT <= y <= EXACT))
    return np.float64(x) / np.float64(y)


@_checked
def divide_floats(x: Any, y: Any) -> Any:
    """`x / y`; zero divides nothing."""
    fail_unless(y != 0)
    return x / y


@_checked
def floor_divide_floats(x: Any, y: Any) -> Any:
    """`x // y`."""
    fail_unless(y != 0)
    return floor_divide(x, y)


@_checked
def remainder_of_floats(x: Any, y: Any) -> Any:
    """`x % y`."""
    fail_unless(y != 0)
    return remainder(x, y)


@_checked
def left_shift_int(x: Any, y: Any) -> Any:
    """`x << y`."""
    count = y if 0 <= y < 63 else 0
    shifted = x << count
    fail_unless((count == y) & (shifted >> count == x))
    return shifted


@_checked
def right_shift_int(x: Any, y: Any) -> Any:
    """`x >> y`."""
    fail_unless(y >= 0)
    return x >> (y if y < 64 else 63)


@numba.njit(error_model="numpy")
def power_int(x: Any, y: Any) -> Any:
    """`x ** y` of ints, for `y` from 0 up, by squaring."""
    fail_unless(y >= 0)
    result, square, left = np.int64(1), np.int64(x), np.int64(y)
    while left > 0:
        if left & 1:
            result = multiply_ints(result, square)
        left >>= 1
        if left > 0:
            square = multiply_ints(square, square)
    return result


@numba.njit(error_model="numpy")
def power_floats(x: Any, y: Any) -> Any:
    """`x ** y` of floats, where that is a float."""
    by_zero = x == 0 and -math.inf < y < 0
    is_complex = -math.inf < x < 0 and y == y and y != np.floor(y)
    fail_unless(not (by_zero or is_complex))
    result = math.pow(opaque(x), opaque(y))
    is_finite = math.fabs(x) < math.inf and math.fabs(y) < math.inf
    fail_unless(not (is_finite and math.fabs(result) == math.inf))
    return result


@numba.njit(error_model="numpy")
def square_float(x: Any) -> Any:
    """`x ** 2`, which Python computes by C's `pow`.

    That is off by less than 0.53 units in the last place: it is the rounded product unless this is
    off by almost half a unit itself.
    """
    product = x * x
    error = math.fabs(fused(x, x, -product))
    if 1e-290 < product < math.inf and error < 0.46 * unit_in_last_place(product):
        return product
    return power_floats(x, 2.0)


@_checked
def defined(result: Any, x: Any) -> Any:
    """A result of C's function of `x` that Python gives, too, instead of an error."""
    is_number = math.fabs(result) < math.inf
    fail_unless(is_number | (x != x) | ((math.fabs(x) == math.inf) & (result == result)))
    return result


@numba.njit(error_model="numpy")
def greatest_common_divisor(x: Any, y: Any) -> Any:
    """Of two int64."""
    a, b = np.int64(x), np.int64(y)
    fail_unless((a != _LEAST) & (b != _LEAST))
    while b != 0:
        a, b = b, a % b
    return -a if a < 0 else a


@numba.njit(error_model="numpy")
def integer_root(x: Any) -> Any:
    """The largest int64 whose square is not above `x`."""
    fail_unless((x >= 0) & (x < 2**62))
    root = np.int64(math.sqrt(np.float64(x)))
    if root * root > x:
        root -= 1
    if (root + 1) * (root + 1) <= x:
        root += 1
    return root


_OF_C = (
    "acos acosh asin asinh atan atan2 atanh copysign cos cosh degrees erf erfc exp expm1 fabs log "
    "log10 log1p log2 radians sin sinh sqrt tan tanh"
).split()

FUNCTIONS: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {
        **{f"c_{name}": getattr(math, name) for name in _OF_C},
        "add_ints": add_ints,
        "add_ints_if": add_ints_if,
        "defined": defined,
        "divide_floats": divide_floats,
        "divide_ints": divide_ints,
        "exact_float": exact_float,
        "fail_unless": fail_unless,
        "floor_divide_by_known": floor_divide_by_known,
        "floor_divide_floats": floor_divide_floats,
        "floor_divide_numbers": floor_divide_numbers,
        "greatest_common_divisor": greatest_common_divisor,
        "int_of_float": int_of_float,
        "integer_root": integer_root,
        "left_shift_int": left_shift_int,
        "multiply_ints": multiply_ints,
        "multiply_ints_if": multiply_ints_if,
        "place": place,
        "power_floats": power_floats,
        "power_int": power_int,
        "remainder_by_known": remainder_by_known,
        "remainder_of_floats": remainder_of_floats,
        "remainder_of_numbers": remainder_of_numbers,
        "right_shift_int": right_shift_int,
        "square_float": square_float,
        "subtract_ints": subtract_ints,
        "subtract_ints_if": subtract_ints_if,
        "within": within,
    }
)
"""What the text of a loop may call, by name; `c_sin` is C's function, as in Python's `math`."""
