"""What the vector mathematics is written in: one lane of a vector, as LLVM instructions.

A function of this folder is Python over `Lane`s. Calling it *writes* instructions into the kernel
that uses it, one for each operator, and no branch ever; the loop around them is what LLVM makes
vectors of. Nothing here is compiled alone, typed or linked, so a use costs a millisecond where a
compiled callee costs a hundred, and no inliner has to be persuaded.

The operators are IEEE arithmetic as written, never contracted: error-free transformations hold.
(In a kernel without fast-math flags, that is; Numba would set them on these instructions too.)
`a.times_plus(b, c)` may be one rounding or two, a fused instruction where the machine has one;
`fused(a, b, c)` is one rounding always, and slow on machines that have none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from llvmlite import ir


@dataclass(frozen=True)
class Format:
    """A binary floating-point format and the integers of its width."""

    width: int
    fraction: int  # explicit bits of the significand
    type: ir.Type

    @property
    def bias(self) -> int:
        return (1 << (self.width - self.fraction - 2)) - 1

    @property
    def integer(self) -> ir.IntType:
        return ir.IntType(self.width)


SINGLE = Format(32, 23, ir.FloatType())
DOUBLE = Format(64, 52, ir.DoubleType())


class Lane:
    """What all lanes have: the place where their instructions go, and the value."""

    __slots__ = ("builder", "format", "value")

    def __init__(self, builder: Any, format: Format, value: Any) -> None:
        self.builder, self.format, self.value = builder, format, value


class Truth(Lane):
    """A condition. `choose` is the only use of one: both sides are computed."""

    def choose(self, yes: Float | float, no: Float | float) -> Float:
        lane = Float(self.builder, self.format, None)
        return lane.like(self.builder.select(self.value, lane.lift(yes), lane.lift(no)))

    def __invert__(self) -> Truth:
        return Truth(self.builder, self.format, self.builder.not_(self.value))

    def __or__(self, other: Truth) -> Truth:
        return Truth(self.builder, self.format, self.builder.or_(self.value, other.value))

    def __and__(self, other: Truth) -> Truth:
        return Truth(self.builder, self.format, self.builder.and_(self.value, other.value))


class Integer(Lane):
    """A signed integer as wide as the float it belongs to; arithmetic wraps around."""

    def lift(self, other: Integer | int) -> Any:
        if isinstance(other, Integer):
            return other.value
        return ir.Constant(self.format.integer, other)

    def like(self, value: Any) -> Integer:
        return Integer(self.builder, self.format, value)

    def __add__(self, other: Integer | int) -> Integer:
        return self.like(self.builder.add(self.value, self.lift(other)))

    def __sub__(self, other: Integer | int) -> Integer:
        return self.like(self.builder.sub(self.value, self.lift(other)))

    def __neg__(self) -> Integer:
        return self.like(self.builder.neg(self.value))

    def __and__(self, other: Integer | int) -> Integer:
        return self.like(self.builder.and_(self.value, self.lift(other)))

    def __or__(self, other: Integer | int) -> Integer:
        return self.like(self.builder.or_(self.value, self.lift(other)))

    def __xor__(self, other: Integer | int) -> Integer:
        return self.like(self.builder.xor(self.value, self.lift(other)))

    def __lshift__(self, count: int) -> Integer:
        return self.like(self.builder.shl(self.value, self.lift(count)))

    def __rshift__(self, count: int) -> Integer:
        """The shift that keeps the sign."""
        return self.like(self.builder.ashr(self.value, self.lift(count)))

    def unsigned_shift(self, count: int) -> Integer:
        return self.like(self.builder.lshr(self.value, self.lift(count)))

    def at_least(self, least: int) -> Integer:
        below = self.builder.icmp_signed("<", self.value, self.lift(least))
        return self.like(self.builder.select(below, self.lift(least), self.value))

    def narrow(self) -> Integer:
        """The lower half of the bits."""
        return Integer(self.builder, SINGLE, self.builder.trunc(self.value, SINGLE.integer))

    def of_table(self, table: bytes) -> Float:
        """The entry with this number of a table of float64."""
        module = self.builder.module
        type = ir.ArrayType(ir.IntType(8), len(table))
        name = f"vector_math.{sha256(table).hexdigest()}"
        if (variable := module.globals.get(name)) is None:
            variable: Any = ir.GlobalVariable(module, type, name)
            variable.linkage, variable.global_constant, variable.align = "internal", True, 64
            variable.initializer = ir.Constant(type, bytearray(table))
        pointer = self.builder.bitcast(variable, DOUBLE.type.as_pointer())
        entry = self.builder.load(self.builder.gep(pointer, [self.value]))
        return Float(self.builder, DOUBLE, entry)

    def is_zero(self) -> Truth:
        value = self.builder.icmp_signed("==", self.value, self.lift(0))
        return Truth(self.builder, self.format, value)

    def as_float(self) -> Float:
        """The float of these bits."""
        return Float(self.builder, self.format, self.builder.bitcast(self.value, self.format.type))


class Float(Lane):
    """A float32 or float64. Comparisons are false for NaN."""

    def lift(self, other: Float | float) -> Any:
        return other.value if isinstance(other, Float) else ir.Constant(self.format.type, other)

    def like(self, value: Any) -> Float:
        return Float(self.builder, self.format, value)

    def constant(self, value: float) -> Float:
        return self.like(self.lift(value))

    def __add__(self, other: Float | float) -> Float:
        return self.like(self.builder.fadd(self.value, self.lift(other)))

    def __radd__(self, other: float) -> Float:
        return self.like(self.builder.fadd(self.lift(other), self.value))

    def __sub__(self, other: Float | float) -> Float:
        return self.like(self.builder.fsub(self.value, self.lift(other)))

    def __rsub__(self, other: float) -> Float:
        return self.like(self.builder.fsub(self.lift(other), self.value))

    def __mul__(self, other: Float | float) -> Float:
        return self.like(self.builder.fmul(self.value, self.lift(other)))

    def __truediv__(self, other: Float | float) -> Float:
        return self.like(self.builder.fdiv(self.value, self.lift(other)))

    def __rtruediv__(self, other: float) -> Float:
        return self.like(self.builder.fdiv(self.lift(other), self.value))

    def __neg__(self) -> Float:
        return self.like(self.builder.fneg(self.value))

    def __abs__(self) -> Float:
        return self._intrinsic("llvm.fabs")

    def __lt__(self, other: Float | float) -> Truth:
        return self._compare("<", other)

    def __le__(self, other: Float | float) -> Truth:
        return self._compare("<=", other)

    def __gt__(self, other: Float | float) -> Truth:
        return self._compare(">", other)

    def __ge__(self, other: Float | float) -> Truth:
        return self._compare(">=", other)

    def equals(self, other: Float | float) -> Truth:
        return self._compare("==", other)

    def is_negative(self) -> Truth:
        """Its sign is minus, be it zero or NaN."""
        bits = self.bits()
        value = self.builder.icmp_signed("<", bits.value, bits.lift(0))
        return Truth(self.builder, self.format, value)

    def is_nan(self) -> Truth:
        value = self.builder.fcmp_unordered("uno", self.value, self.value)
        return Truth(self.builder, self.format, value)

    def at_most(self, limit: Float | float) -> Float:
        """The smaller of the two; NaN stays NaN."""
        return (self > limit).choose(limit, self)

    def at_least(self, limit: Float | float) -> Float:
        """The larger of the two; NaN stays NaN."""
        return (self < limit).choose(limit, self)

    def times_plus(self, factor: Float | float, term: Float | float) -> Float:
        """`self * factor + term`, rounded once where that is fast."""
        return self._intrinsic("llvm.fmuladd", factor, term)

    def sqrt(self) -> Float:
        return self._intrinsic("llvm.sqrt")

    def rint(self) -> Float:
        """The nearest integer, of any size."""
        return self._intrinsic("llvm.rint")

    def with_sign_of(self, other: Float) -> Float:
        return self._intrinsic("llvm.copysign", other)

    def bits(self) -> Integer:
        integer = self.format.integer
        return Integer(self.builder, self.format, self.builder.bitcast(self.value, integer))

    def single(self) -> Float:
        """As float32, rounded."""
        return Float(self.builder, SINGLE, self.builder.fptrunc(self.value, SINGLE.type))

    def double(self) -> Float:
        """A float32 as float64."""
        return Float(self.builder, DOUBLE, self.builder.fpext(self.value, DOUBLE.type))

    def _compare(self, relation: str, other: Float | float) -> Truth:
        value = self.builder.fcmp_ordered(relation, self.value, self.lift(other))
        return Truth(self.builder, self.format, value)

    def _intrinsic(self, name: str, *others: Float | float) -> Float:
        type = self.format.type
        function = self.builder.module.declare_intrinsic(
            name, [type], ir.FunctionType(type, [type] * (1 + len(others)))
        )
        arguments = [self.value, *(self.lift(other) for other in others)]
        return self.like(self.builder.call(function, arguments))


def fused(a: Float, b: Float | float, c: Float | float) -> Float:
    """`a * b + c`, rounded once."""
    return a._intrinsic("llvm.fma", b, c)


def polynomial(x: Float, coefficients: Sequence[float]) -> Float:
    """`coefficients[0] + coefficients[1] * x + ...`, by Horner's rule."""
    result = x.constant(coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        result = result.times_plus(x, coefficient)
    return result


def nearest(x: Float) -> tuple[Float, Integer]:
    """`x` rounded to the nearest integer, as a float and as an integer: |x| < 2**(fraction - 1).

    Adding 1.5 * 2**fraction leaves no bits below the point, and the integer in the lowest bits: no
    conversion instruction, which many machines lack for vectors of 64-bit integers.
    """
    format = x.format
    magic = 1.5 * 2.0**format.fraction
    shifted = x + magic
    bits_of_magic = (2 * (format.bias + format.fraction) + 1) << format.fraction - 1
    return shifted - magic, shifted.bits() - bits_of_magic


def power_of_two(n: Integer) -> Float:
    """2**n, for n within the exponents of normal numbers."""
    return ((n + n.format.bias) << n.format.fraction).as_float()


def scale(x: Float, n: Integer) -> Float:
    """`x * 2**n`, rounded once: to infinity, to a denormal or to zero too."""
    half = n >> 1
    return x * power_of_two(half) * power_of_two(n - half)


def two_sum(a: Float | float, b: Float) -> tuple[Float, Float]:
    """The rounded sum and its error, exactly (Knuth)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def fast_two_sum(a: Float | float, b: Float) -> tuple[Float, Float]:
    """The rounded sum and its error, exactly, for |a| >= |b| (Dekker)."""
    total = a + b
    return total, b - (total - a)


def two_product(a: Float, b: Float | float) -> tuple[Float, Float]:
    """The rounded product and its error, exactly."""
    product = a * b
    return product, fused(a, b, -product)
