"""The equations of `simplify`, read from left to right, with the conditions that make them exact.

A condition is about dtypes and shapes, or about one constant.  In the table stand, in this order,
the name, the pattern, what replaces it, the equation, and why both sides are the same bit for bit.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from minigraph.ir import ArrayType, ScalarType, Value, is_array

from .patterns import uniform_number
from .rewriting import Match, Rule, kind_of

# ---- conditions


def real(match: Match) -> bool:
    """The result is not complex."""
    return match.kind != "c"


def integral(match: Match) -> bool:
    """The result is of integers (no bools)."""
    return match.kind in "iu"


def discrete(match: Match) -> bool:
    """The result is of integers or bools."""
    return match.kind in "iub"


def boolean(match: Match) -> bool:
    """The result is of bools."""
    return match.kind == "b"


def floating(match: Match) -> bool:
    """The result is of real floating-point numbers."""
    return match.kind == "f"


def inexact(match: Match) -> bool:
    """The result is of floating-point or complex numbers."""
    return match.kind in "fc"


def signed(match: Match) -> bool:
    """The result has a sign bit or two's complement, so that -x is x with the other sign."""
    return kind_of(match["x"].type) in "if"


def unchanged(match: Match) -> bool:
    """The result has the type of x."""
    return match.type == match["x"].type


def real_and_unchanged(match: Match) -> bool:
    """Both."""
    return real(match) and unchanged(match)


# ---- replacements that are more than an expression


def reciprocal(match: Match) -> Value | None:
    """Multiply by 1 / C instead of dividing by C; a constant that is weak stays so."""
    divisor, constant = match.number("C"), match.constant("C")
    if not isinstance(divisor, int | float) or not divisor or not unchanged(match):
        return None
    inverse: Any = 1.0 / divisor if abs(divisor) < 2.0**1023 else 0.0
    if is_array(constant):
        assert isinstance(match.type, ArrayType)
        dtype = constant.dtype if constant.dtype.kind == "f" else match.type.dtype
        with np.errstate(all="ignore"):
            inverse = np.full(constant.shape, inverse, dtype)[()]
    kept = float(uniform_number(inverse))
    if not kept or not math.isfinite(kept) or (power_of_two(match) and kept * divisor != 1):
        return None
    return match.make("multiply", match["x"], match.make_constant(inverse))


def power_of_two(match: Match) -> bool:
    """C is a power of two, and its reciprocal a normal number of the result's dtype."""
    type_, divisor = match.type, match.number("C")
    dtype = type_.dtype if isinstance(type_, ArrayType) else np.dtype(float)
    if match.kind != "f" or not isinstance(divisor, int | float) or abs(divisor) > 2.0**1023:
        return False
    return is_normal_power_of_two(float(divisor), dtype)


def is_normal_power_of_two(number: float, dtype: np.dtype[Any]) -> bool:
    """A power of two whose reciprocal is exact in `dtype`, both of them normal numbers."""
    if number == 0 or not math.isfinite(number) or abs(math.frexp(number)[0]) != 0.5:
        return False
    limits = np.finfo(dtype)
    tiny, largest = float(limits.smallest_normal), float(limits.max)
    return all(tiny <= abs(n) <= largest for n in (number, 1 / number))


def together(match: Match) -> Value | None:
    """(x op C) op D as x op (C op D), for one op."""
    op, types = match.node.op, [node.output.type for node in match.nodes]
    constant = _combined(match, match.constant("C"), match.constant("D"))
    if constant is None or kind_of(types[0]) != kind_of(types[1]):
        return None
    if isinstance(types[0], ArrayType) and (
        not isinstance(types[1], ArrayType) or types[0].dtype != types[1].dtype
    ):
        return None
    return match.make(op.name, match["x"], match.make_constant(constant))


def _combined(match: Match, c: Any, d: Any) -> Any:
    """`c op d`, computed in the dtype of the result; a Python number stays one."""
    op, type_ = match.node.op, match.type
    weak = not (is_array(c) or is_array(d))
    size = math.prod(np.broadcast_shapes(np.shape(c), np.shape(d)))
    if size > max(np.size(c), np.size(d)):
        return None
    try:
        if isinstance(type_, ScalarType) or (weak and match.kind in "fc"):
            assert op.python is not None
            return op.python(c, d) if weak else None
        assert isinstance(op.numpy, str) and isinstance(type_, ArrayType)
        with np.errstate(all="ignore"):
            operands = [np.asarray(each).astype(type_.dtype) for each in (c, d)]
            result = getattr(np, op.numpy)(*operands)
    except OverflowError:
        return None
    return result.item() if weak else result


def cast_once(match: Match) -> Value | None:
    """A cast of a cast, where the first one loses nothing."""
    outer, inner = match.nodes
    x, between, last = match["x"].type, inner.output.type, match.type
    if not (isinstance(x, ArrayType) and isinstance(between, ArrayType)):
        return None
    assert isinstance(last, ArrayType)
    if not widens_exactly(x.dtype, between.dtype):
        return None
    if x.dtype == last.dtype:
        return match["x"]
    # From float to integer, what lies out of range comes out as the hardware likes.
    if last.dtype.kind in "iu" and "f" in (x.dtype.kind, between.dtype.kind):
        return None
    return match.make("cast", match["x"], **outer.attrs)


def widens_exactly(small: np.dtype[Any], large: np.dtype[Any]) -> bool:
    """Every number of `small` is one of `large`."""
    if small.kind in "iu" and large.kind == "f":
        bits = small.itemsize * 8 - (small.kind == "i")
        return bits <= np.finfo(large).nmant + 1
    return large.kind != "c" and np.can_cast(small, large, "safe")


def axes_of_axes(match: Match) -> Value | None:
    """A transpose of a transpose."""
    outer, inner = match.nodes
    axes = tuple(inner.attrs["axes"][axis] for axis in outer.attrs["axes"])
    if axes == tuple(range(len(axes))):
        return match["x"]
    return match.make("transpose", match["x"], axes=axes)


def axes_in_order(match: Match) -> bool:
    """The axes stay where they are."""
    axes = match.node.attrs["axes"]
    return axes == tuple(range(len(axes)))


def one_reshape(match: Match) -> Value | None:
    """Steps that keep the elements in C order are one reshape.

    In another order, a reshape may copy; then a further one makes a view of the copy.
    """
    if not match.in_c_order("x") and any(node.op.name == "reshape" for node in match.nodes):
        return None
    if match.type == match["x"].type:
        return match["x"]
    assert isinstance(match.type, ArrayType)
    return match.make("reshape", match["x"], shape=match.type.shape)


def one_broadcast(match: Match) -> Value | None:
    """A broadcast of a broadcast."""
    return match.make("broadcast_to", match["x"], shape=match.node.attrs["shape"])


def takes_all(match: Match) -> bool:
    """Every entry is a slice from the start in steps of 1, and no axis became shorter."""
    entries: list[Any] = [each for each in match.node.attrs["index"] if each is not Ellipsis]
    return unchanged(match) and all(
        type(entry) is slice and entry.start in (None, 0) and entry.step in (None, 1)
        for entry in entries
    )


def replaces_all(match: Match) -> bool:
    """All entries of the index are whole axes, and the new array lies as the old one did."""
    whole = all(entry is Ellipsis or entry == slice(None) for entry in match.node.attrs["index"])
    return whole and unchanged(match) and match.lies_like("x", "y")


# ---- the table

IEEE = "IEEE 754: exact for every number, NaN and both zeros included"
WRAPS = "exact modulo 2ⁿ, as in two's complement"
SAME_ELEMENTS = "the same elements"

RULES = (
    # Neutral elements
    Rule("add_zero", "add(x, 0)", "x", "x + 0 = x", "integers have one zero", discrete),
    Rule("add_minus_zero", "add(x, -0.0)", "x", "x + (-0) = x", IEEE, floating),
    Rule("subtract_zero", "subtract(x, 0)", "x", "x - 0 = x", IEEE),
    Rule("multiply_one", "multiply(x, 1)", "x", "x · 1 = x", IEEE, real),
    Rule("divide_one", "divide(x, 1)", "x", "x / 1 = x", IEEE, real, total=True),
    Rule("floor_divide_one", "floor_divide(x, 1)", "x",
         "⌊x / 1⌋ = x", "x is whole", integral, total=True),
    Rule("pow_one", "pow(x, 1)", "x", "x¹ = x", IEEE, real, total=True),
    Rule("power_one", "power(x, 1)", "x", "x¹ = x", IEEE, real, total=True),
    Rule("or_zero", "bitwise_or(x, 0)", "x", "x | 0 = x", "bit by bit"),
    Rule("xor_zero", "bitwise_xor(x, 0)", "x", "x ^ 0 = x", "bit by bit"),
    Rule("and_ones", "bitwise_and(x, -1)", "x", "x & -1 = x", "-1 has every bit"),
    Rule("and_true", "bitwise_and(x, True)", "x", "x ∧ true = x", "bools only", boolean),
    Rule("left_shift_zero", "left_shift(x, 0)", "x", "x · 2⁰ = x", "no bit moves", total=True),
    Rule("right_shift_zero", "right_shift(x, 0)", "x", "x / 2⁰ = x", "no bit moves", total=True),
    # Absorbing elements
    Rule("multiply_zero", "multiply(x, 0)", "0",
         "x · 0 = 0", "integers only: no NaN, no -0", discrete),
    Rule("and_zero", "bitwise_and(x, 0)", "0", "x & 0 = 0", "bit by bit"),
    Rule("or_ones", "bitwise_or(x, -1)", "-1", "x | -1 = -1", "-1 has every bit", signed),
    Rule("or_true", "bitwise_or(x, True)", "True", "x ∨ true = true", "bools only", boolean),
    Rule("pow_zero", "pow(x, 0)", "1", "x⁰ = 1", "NaN⁰ = 1 too", real, total=True),
    Rule("power_zero", "power(x, 0)", "1", "x⁰ = 1", "NaN⁰ = 1 too", real, total=True),
    Rule("one_pow", "pow(1, x)", "1", "1ˣ = 1", "1 to the NaN is 1 too", floating, total=True),
    Rule("one_power", "power(1, x)", "1", "1ˣ = 1", "1 to the NaN is 1 too", floating, total=True),
    # The same operand twice
    Rule("subtract_self", "subtract(x, x)", "0", "x - x = 0", WRAPS, integral),
    Rule("xor_self", "bitwise_xor(x, x)", "0", "x ^ x = 0", "bit by bit"),
    Rule("and_self", "bitwise_and(x, x)", "x", "x & x = x", "bit by bit", unchanged),
    Rule("or_self", "bitwise_or(x, x)", "x", "x | x = x", "bit by bit", unchanged),
    Rule("maximum_self", "maximum(x, x)", "x", "max(x, x) = x", IEEE, unchanged),
    Rule("minimum_self", "minimum(x, x)", "x", "min(x, x) = x", IEEE, unchanged),
    Rule("fmax_self", "fmax(x, x)", "x", "max(x, x) = x", IEEE, unchanged),
    Rule("fmin_self", "fmin(x, x)", "x", "min(x, x) = x", IEEE, unchanged),
    Rule("logical_and_self", "logical_and(x, x)", "x", "x ∧ x = x", "bools only", unchanged),
    Rule("logical_or_self", "logical_or(x, x)", "x", "x ∨ x = x", "bools only", unchanged),
    Rule("where_same", "where(c, x, x)", "x", "(c ? x : x) = x", "either way x", unchanged),
    Rule("where_true", "where(True, x, y)", "x",
         "(true ? x : y) = x", "the mask is constant", unchanged),
    Rule("where_false", "where(False, y, x)", "x",
         "(false ? y : x) = x", "the mask is constant", unchanged),
    # `nn.functional.relu` is written like this, for its derivative at 0.
    Rule("rectified", "multiply(maximum(x, 0), greater(x, 0))", "maximum(x, 0)",
         "max(x, 0) · [x > 0] = max(x, 0)", "1 keeps what is positive, and 0 and NaN stay", real),
    # Done twice
    Rule("negative_twice", "negative(negative(x))", "x",
         "-(-x) = x", "the sign bit flips back", unchanged),
    Rule("invert_twice", "invert(invert(x))", "x", "~~x = x", "every bit flips back", unchanged),
    Rule("not_twice", "logical_not(logical_not(x))", "x", "¬¬x = x", "bools only", unchanged),
    Rule("conjugate_twice", "conjugate(conjugate(x))", "x",
         "x̄̄ = x", "the sign bit flips back", unchanged),
    Rule("conjugate_real", "conjugate(x)", "x",
         "x̄ = x", "x is real", real_and_unchanged),
    Rule("positive", "positive(x)", "x", "+x = x", SAME_ELEMENTS, unchanged),
    Rule("absolute_twice", "absolute(absolute(x))", "absolute(x)",
         "||x|| = |x|", "no sign is left"),
    Rule("absolute_negative", "absolute(negative(x))", "absolute(x)",
         "|-x| = |x|", "the sign is cleared", signed),
    Rule("floor_twice", "floor(floor(x))", "floor(x)", "⌊⌊x⌋⌋ = ⌊x⌋", "it is whole already"),
    Rule("ceil_twice", "ceil(ceil(x))", "ceil(x)", "⌈⌈x⌉⌉ = ⌈x⌉", "it is whole already"),
    Rule("trunc_twice", "trunc(trunc(x))", "trunc(x)",
         "trunc trunc x = trunc x", "it is whole already"),
    Rule("rint_twice", "rint(rint(x))", "rint(x)", "rint rint x = rint x", "it is whole already"),
    Rule("sign_twice", "sign(sign(x))", "sign(x)", "sgn sgn x = sgn x", "-1, 0 and 1 stay", real),
    # Constants brought together
    Rule("divide_power_of_two", "divide(x, C)", reciprocal, "x / 2ᵏ = x · 2⁻ᵏ",
         "2⁻ᵏ is exact, and both round the same number", power_of_two, total=True),
    Rule("add_constants", "add(add(x, C), D)", together,
         "(x + C) + D = x + (C + D)", WRAPS, integral),
    Rule("multiply_constants", "multiply(multiply(x, C), D)", together,
         "(x · C) · D = x · (C · D)", WRAPS, integral),
    # Copies and casts
    Rule("copy", "copy(x, ...)", "x", "copy(x) = x", "values are never changed", unchanged),
    Rule("identity", "identity(x)", "x", "identity(x) = x", "values are never changed"),
    Rule("stop_gradient", "stop_gradient(x)", "x",
         "stop_gradient(x) = x", "derivatives are there already"),
    Rule("cast_same", "cast(x, ...)", "x", "cast(x) = x", "it has that dtype", unchanged),
    Rule("cast_twice", "cast(cast(x, ...), ...)", cast_once, "cast(cast(x)) = cast(x)",
         "the dtype between holds every number of the first"),
    # Layout
    Rule("transpose_none", "transpose(x, ...)", "x",
         "x with its axes in order = x", SAME_ELEMENTS, axes_in_order),
    Rule("transpose_twice", "transpose(transpose(x, ...), ...)", axes_of_axes,
         "(xᵖ)^q = x^(p∘q)", "one permutation after the other"),
    Rule("reshape_none", "reshape(x, ...)", "x",
         "x in its own shape = x", SAME_ELEMENTS, unchanged),
    *(
        Rule(f"{outer}_of_{inner}", f"{outer}({inner}(x, ...), ...)", one_reshape,
             f"{outer}({inner}(x)) = reshape(x)", "the elements keep their C order")
        for outer in ("reshape", "expand_dims", "squeeze")
        for inner in ("reshape", "expand_dims", "squeeze")
    ),
    Rule("squeeze_none", "squeeze(x, ...)", "x", "x without no axes = x", SAME_ELEMENTS, unchanged),
    Rule("broadcast_none", "broadcast_to(x, ...)", "x",
         "x in its own shape = x", SAME_ELEMENTS, unchanged),
    Rule("broadcast_twice", "broadcast_to(broadcast_to(x, ...), ...)", one_broadcast,
         "broadcast(broadcast(x)) = broadcast(x)", "the last shape counts"),
    Rule("slice_all", "slice(x, ...)", "x", "x[:] = x", SAME_ELEMENTS, takes_all),
    Rule("update_all", "update(y, x, ...)", "x", "(y[:] := x) = x", "nothing of y is left",
         replaces_all, total=True),
    # Equations of real numbers that floating-point numbers do not keep
    Rule("add_zero_fast", "add(x, 0)", "x", "x + 0 = x", "-0.0 + 0.0 is 0.0", inexact, fast=True),
    Rule("multiply_one_fast", "multiply(x, 1)", "x",
         "x · 1 = x", "∞ · 1 has a NaN part", inexact, fast=True),
    Rule("multiply_zero_fast", "multiply(x, 0)", "0",
         "x · 0 = 0", "NaN · 0 is NaN, -1 · 0 is -0", inexact, fast=True),
    Rule("subtract_self_fast", "subtract(x, x)", "0",
         "x - x = 0", "∞ - ∞ is NaN", inexact, fast=True),
    Rule("divide_self_fast", "divide(x, x)", "1", "x / x = 1", "0 / 0 is NaN", inexact, fast=True),
    Rule("log_exp_fast", "log(exp(x))", "x", "log eˣ = x", "e¹⁰⁰⁰ is ∞", inexact, fast=True),
    Rule("exp_log_fast", "exp(log(x))", "x",
         "e^(log x) = x", "log of -1 is NaN", inexact, fast=True),
    Rule("add_constants_fast", "add(add(x, C), D)", together, "(x + C) + D = x + (C + D)",
         "rounds once, not twice", inexact, fast=True),
    Rule("multiply_constants_fast", "multiply(multiply(x, C), D)", together,
         "(x · C) · D = x · (C · D)", "rounds once, not twice", inexact, fast=True),
    Rule("divide_constant_fast", "divide(x, C)", reciprocal, "x / C = x · (1 / C)",
         "rounds twice, not once", floating, fast=True, total=True),
)  # fmt: skip
