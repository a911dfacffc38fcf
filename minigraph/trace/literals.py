"""Number literals of a traced program: ints and floats that record what is done with them.

They are subclasses of int and float with the value inside, so Python may branch on them, count to
them, hash and format them as ever; arithmetic gives further recorded numbers.  Comparisons give
plain bools and conversions plain numbers: both are known, and become constants where they are used.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from minigraph import ops
from minigraph.ir import Value, freeze

from .arrays import TracedArray
from .operands import Traced
from .recording import ACTIVE, Recording
from .scalars import TracedDim, TracedScalar


class _Recorded:
    """What recorded ints and floats share."""

    __slots__ = ()

    @property
    def recorded_value_(self) -> Value:
        """The value in the graph."""
        return object.__getattribute__(self, "__dict__")["value"]

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"'{self.__class__.__name__}' object has no attribute '{name}'")

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return self

    def __reduce_ex__(self, protocol: Any) -> Any:
        return (self.__class__, (plain(self),))

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if ACTIVE.get() is None:
            return getattr(ufunc, method)(*map(plain, inputs), **kwargs)
        return TracedArray.__array_ufunc__(self, ufunc, method, *inputs, **kwargs)  # type: ignore[attr-defined]

    def __array_function__(self, function: Any, kinds: Any, args: Any, kwargs: Any) -> Any:
        return TracedArray.__array_function__(self, function, kinds, args, kwargs)  # type: ignore[attr-defined]


class RecordedInt(_Recorded, int):
    """An int that records arithmetic."""

    __class__ = property(lambda self: int)  # type: ignore[assignment]


class RecordedFloat(_Recorded, float):
    """A float that records arithmetic."""

    __class__ = property(lambda self: float)  # type: ignore[assignment]


def plain(thing: Any) -> Any:
    """The number without its recording."""
    if type(thing) is RecordedInt:
        return int.__int__(thing)
    if type(thing) is RecordedFloat:
        return float.__float__(thing)
    return thing


def forced(thing: Any, why: str) -> Any:
    """What a place that cannot hold a traced value gets: the number itself, guarded.

    Raises:
        ConcreteValueError, DimensionError: it is not known while tracing.
    """
    if type(thing) is tuple:
        return tuple(forced(part, why) for part in thing)
    if isinstance(thing, TracedScalar):
        return thing.force_(why)
    if isinstance(thing, TracedArray):
        return thing.concrete_(why)
    return int(thing) if isinstance(thing, TracedDim) else plain(thing)


def recorded(number: Any, value: Value) -> Any:
    """`number` as a recorded number that stands for `value`; other types stay as they are."""
    kind = {int: RecordedInt, float: RecordedFloat}.get(type(number))
    if kind is None:
        return number
    made = kind.__new__(kind, number)
    object.__getattribute__(made, "__dict__")["value"] = value
    return made


class Literals:
    """The literals of one program; equal literals are one object, as in a code object."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self._made: dict[Any, Any] = {}

    def __call__(self, number: int | float) -> Any:
        key = freeze(number)
        made = self._made.get(key)
        if made is None:
            value = self.recording.constant(number, place=self.recording.places.locate(1))
            made = self._made[key] = recorded(number, value)
        return made


_NUMBERS = (int, float, bool, complex, RecordedInt, RecordedFloat)


def _binary(op_name: str, function: Callable[[Any, Any], Any], reflected: bool) -> Any:
    op = ops.get(op_name)

    def method(self: Any, other: Any) -> Any:
        if type(other) not in _NUMBERS:
            return NotImplemented if isinstance(other, Traced) else _fall_back(self, other)
        a, b = (other, self) if reflected else (self, other)
        result = function(plain(a), plain(b))
        active = ACTIVE.get()
        if active is None or type(result) not in (int, float):
            return result
        values = [_value(active, a), _value(active, b)]
        (value,) = active.emit(op, values, {}, checked=True)
        return recorded(result, value)

    def _fall_back(self: Any, other: Any) -> Any:
        kind = type(plain(self))
        name = f"__{'r' if reflected else ''}{function.__name__.strip('_')}__"
        found = getattr(kind, name, None)
        return NotImplemented if found is None else found(plain(self), other)

    return method


def _unary(op_name: str, function: Callable[[Any], Any]) -> Any:
    op = ops.get(op_name)

    def method(self: Any) -> Any:
        result = function(plain(self))
        active = ACTIVE.get()
        if active is None:
            return result
        return recorded(result, active.emit(op, [_value(active, self)], {})[0])

    return method


def _value(active: Recording, number: Any) -> Value:
    if isinstance(number, _Recorded):
        return number.recorded_value_
    return active.constant(number)


_BINARY = {
    "add": ("add", operator.add),
    "sub": ("subtract", operator.sub),
    "mul": ("multiply", operator.mul),
    "truediv": ("divide", operator.truediv),
    "floordiv": ("floor_divide", operator.floordiv),
    "mod": ("remainder", operator.mod),
    "pow": ("pow", operator.pow),
}
_INTEGER = {
    "and": ("bitwise_and", operator.and_),
    "or": ("bitwise_or", operator.or_),
    "xor": ("bitwise_xor", operator.xor),
    "lshift": ("left_shift", operator.lshift),
    "rshift": ("right_shift", operator.rshift),
}


def _install() -> None:
    for kind, table in ((RecordedInt, {**_BINARY, **_INTEGER}), (RecordedFloat, _BINARY)):
        for name, (op_name, function) in table.items():
            for reflected, prefix in ((False, ""), (True, "r")):
                method = _binary(op_name, function, reflected)
                if name == "pow" and not reflected:
                    method = _with_modulus(method)
                setattr(kind, f"__{prefix}{name}__", method)
        for name, op_name, function in (
            ("neg", "negative", operator.neg),
            ("pos", "positive", operator.pos),
            ("abs", "absolute", abs),
        ):
            setattr(kind, f"__{name}__", _unary(op_name, function))
    RecordedInt.__invert__ = _unary("invert", operator.invert)  # type: ignore[method-assign]


def _with_modulus(method: Any) -> Any:
    def power(self: Any, other: Any, modulus: Any = None) -> Any:
        if modulus is None:
            return method(self, other)
        return pow(plain(self), plain(other), plain(modulus))

    return power


_install()
