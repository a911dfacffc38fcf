"""Traced Python numbers: arguments that carry their value, and sizes that have a name."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from minigraph import ops
from minigraph.errors import ConcreteValueError, DimensionError
from minigraph.ir import (
    SCALARS,
    Dim,
    Loc,
    ScalarType,
    Size,
    Value,
    decide_at_least,
    decide_equal,
)

from .operands import BINARY, Traced, install_operators, operand
from .recording import KEEP, Recording, current


class TracedScalar(Traced):
    """A Python number that came in as an argument (or was computed from such).

    It carries its value: Python may ask for it, and then the value joins the guard.
    """

    __slots__ = ("value_",)
    value_: Value

    def __init__(self, recording: Recording, value: Value) -> None:
        self.recording_ = recording
        self.value_ = value

    @property
    def __class__(self) -> type:  # type: ignore[override]
        assert isinstance(self.value_.type, ScalarType)
        return self.value_.type.python

    def force_(self, why: str, instead: str = KEEP) -> Any:
        """The number; pins the arguments that it depends on."""
        return self.recording_.require(
            self.value_, ConcreteValueError, f"{why} needs the number itself", instead
        )

    def __bool__(self) -> bool:
        return self.recording_.truth(self.value_)

    def __int__(self) -> int:
        return int(self.force_("int()", _BY_NAME))

    def __float__(self) -> float:
        return float(self.force_("float()", _BY_NAME))

    def __complex__(self) -> complex:
        return complex(self.force_("complex()"))

    def __index__(self) -> int:
        return operator.index(self.force_("an index, a shape or a range", _AS_ARRAY))

    def __hash__(self) -> int:
        return hash(self.force_("hash()", _AS_ARRAY))

    def __format__(self, spec: str) -> str:
        return format(self.force_("formatting", _IN_SCRIPT), spec)

    def __str__(self) -> str:
        return str(self.force_("formatting", _IN_SCRIPT))

    def __repr__(self) -> str:
        return repr(self.force_("formatting", _IN_SCRIPT))

    def __round__(self, digits: Any = None) -> Any:
        if digits is None:
            return self if self.__class__ is int else self._record("round_number")
        return self._record("round_number", digits)

    def __trunc__(self) -> Any:
        return self._record("math_trunc")

    def __floor__(self) -> Any:
        return self._record("math_floor")

    def __ceil__(self) -> Any:
        return self._record("math_ceil")

    def _record(self, name: str, *others: Any) -> TracedScalar:
        """The result of an op on this number and others."""
        recording = self.recording_
        values = [self.value_, *(operand(recording, other) for other in others)]
        return TracedScalar(recording, recording.emit(ops.get(name), values, {})[0])

    def __getattr__(self, name: str) -> Any:
        kind, known = self.__class__, self.recording_.is_known(self.value_)
        if not hasattr(kind, name):
            raise AttributeError(f"'{kind.__name__}' object has no attribute '{name}'")
        if not known and kind is not complex and name in _ATTRIBUTES:
            return _ATTRIBUTES[name](self)
        return getattr(self.force_(f".{name}"), name)

    def __copy__(self) -> TracedScalar:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> TracedScalar:
        return self


_BY_NAME = "int(x) or float(x), written as such: that is recorded"
_AS_ARRAY = "an array that is indexed by the number: np.array(items)[i]"
_IN_SCRIPT = 'print("x", x), or str(x) in a print; an f-string in a function under @mg.script'


def _real(number: Any) -> Any:
    return +number  # of a bool an int


def _is_integer(number: Any) -> Any:
    return number % 1 == 0


_ATTRIBUTES: dict[str, Callable[[TracedScalar], Any]] = {
    "real": _real,
    "imag": lambda number: +number.__class__(0),
    "numerator": _real,
    "conjugate": lambda number: lambda: _real(number),
    "is_integer": lambda number: lambda: _is_integer(number),
    "bit_length": lambda number: lambda: number._record("bit_length"),
    "bit_count": lambda number: lambda: number._record("bit_count"),
}
"""Attributes of numbers that are not known."""


class TracedDim:
    """A size with a name, of one axis of an array or computed from such.

    As a shape it stays symbolic; as a number it is the op `size`.
    """

    __slots__ = ("array_", "axis_", "dim")

    def __init__(self, array: Any, axis: int, dim: Dim) -> None:
        self.array_ = array
        self.axis_ = axis
        self.dim = dim

    @property
    def __class__(self) -> type:  # type: ignore[override]
        return int

    @property
    def recorded_value_(self) -> Value:
        """The size as a number of the graph."""
        recording = current()
        if self.array_ is not None:
            return recording.emit(ops.get("size"), (self.array_.value_,), {"axis": self.axis_})[0]
        return recording.size_of(self.dim)

    def _where(self) -> Loc | None:
        return current().here()

    def __hash__(self) -> int:
        return hash(self.dim)

    def __bool__(self) -> bool:
        return self != 0

    def _undecided(self, what: str) -> Any:
        error = DimensionError(
            f"{what} needs the number, and {self.dim} stands for every size",
            where=self._where(),
            instead="leave this dimension static",
        )
        raise current().located(error)

    def __index__(self) -> int:
        return self._undecided("an index or a range")

    def __int__(self) -> int:
        return self._undecided("int()")

    def __float__(self) -> float:
        return self._undecided("float()")

    def __str__(self) -> str:
        return self._undecided("formatting")

    def __format__(self, spec: str) -> str:
        return self._undecided("formatting")

    def __repr__(self) -> str:
        return f"<traced size {self.dim}>"

    def __neg__(self) -> Any:
        return _dim_operator(operator.sub, reflected=True)(self, 0)

    def __pos__(self) -> TracedDim:
        return self

    __trunc__ = __floor__ = __ceil__ = __pos__

    def __round__(self, digits: Any = None) -> Any:
        return self if digits is None else round(self._number(), digits)

    def __abs__(self) -> Any:
        return self if ops.decided(decide_at_least, self.dim, 0) else abs(self._number())  # type: ignore[arg-type]

    def __invert__(self) -> Any:
        return -1 - self  # type: ignore[operator]

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other  # type: ignore[operator]

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self

    def _number(self) -> TracedScalar:
        return TracedScalar(current(), self.recorded_value_)


def dim_of(thing: Any) -> Size | None:
    """An int or a named size as a size; None for anything else."""
    if isinstance(thing, TracedDim):
        return thing.dim
    if type(thing) is int or (isinstance(thing, np.integer) and not isinstance(thing, Traced)):
        return int(thing)
    return None


def _dim_operator(function: Any, reflected: bool) -> Any:
    def apply_operator(self: TracedDim, other: Any) -> Any:
        size = dim_of(other)
        if size is not None and function in _SIZE_OPERATORS:
            found = function(size, self.dim) if reflected else function(self.dim, size)
            return TracedDim(None, 0, found) if isinstance(found, Dim) else found
        if isinstance(other, np.ndarray) or hasattr(type(other), "type_"):  # a traced one, too
            return NotImplemented
        number = self._number()
        if isinstance(other, TracedDim):
            other = TracedScalar(current(), other.recorded_value_)
        return function(other, number) if reflected else function(number, other)

    return apply_operator


_SIZE_OPERATORS = (operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod)


def _dim_comparison(op_name: str, function: Any, decide: Callable[[Size, Size], bool]) -> Any:
    """A comparison: decided for all sizes, or recorded where a branch or a loop may ask for it."""

    def method(self: TracedDim, other: Any) -> Any:
        size = dim_of(other)
        if size is None:
            if op_name in ("equal", "not_equal") and not isinstance(other, Traced):
                return NotImplemented
            return function(TracedScalar(current(), self.recorded_value_), other)
        try:
            return decide(self.dim, size)
        except DimensionError as error:
            recording = current()
            if not recording.script and not recording.sections:
                raise recording.located(error) from None
            values = [self.recorded_value_, operand(recording, other)]
            return TracedScalar(recording, recording.emit(ops.get(op_name), values, {})[0])

    return method


def _binary(op_name: str, reflected: bool) -> Any:
    op = ops.get(op_name)

    def method(self: TracedScalar, other: Any) -> Any:
        if (
            not isinstance(other, TracedScalar | TracedDim)
            and type(other) not in SCALARS
            and not hasattr(type(other), "recorded_value_")
        ):
            return NotImplemented
        recording = self.recording_
        values = [self.value_, operand(recording, other)]
        results = recording.emit(op, values[::-1] if reflected else values, {})
        numbers = tuple(TracedScalar(recording, value) for value in results)
        return numbers[0] if len(numbers) == 1 else numbers

    return method


def _unary(op_name: str) -> Any:
    op = ops.get(op_name)

    def method(self: TracedScalar) -> TracedScalar:
        (value,) = self.recording_.emit(op, (self.value_,), {})
        return TracedScalar(self.recording_, value)

    return method


install_operators(TracedScalar, _binary, _unary)


def _with_modulus(power: Any) -> Any:
    def method(self: TracedScalar, other: Any, modulus: Any = None) -> Any:
        if modulus is None:
            return power(self, other)
        return self._record("pow_modulo", other, modulus)

    return method


TracedScalar.__pow__ = _with_modulus(TracedScalar.__pow__)  # type: ignore[attr-defined]
TracedScalar.__divmod__ = _binary("divmod", False)  # type: ignore[attr-defined]
TracedScalar.__rdivmod__ = _binary("divmod", True)  # type: ignore[attr-defined]
for _name, _op_name, _decide in (
    ("eq", "equal", decide_equal),
    ("ne", "not_equal", lambda a, b: not decide_equal(a, b)),
    ("lt", "less", lambda a, b: not decide_at_least(a, b)),
    ("le", "less_equal", lambda a, b: decide_at_least(b, a)),
    ("gt", "greater", lambda a, b: not decide_at_least(b, a)),
    ("ge", "greater_equal", decide_at_least),
):
    _method = _dim_comparison(_op_name, getattr(operator, _name), _decide)
    setattr(TracedDim, f"__{_name}__", _method)
for _name in BINARY:
    _function = getattr(operator, _name if _name not in ("and", "or") else _name + "_")
    setattr(TracedDim, f"__{_name}__", _dim_operator(_function, False))
    setattr(TracedDim, f"__r{_name}__", _dim_operator(_function, True))
