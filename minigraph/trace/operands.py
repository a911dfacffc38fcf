"""Anything that may stand in an array expression, as a value of the graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from minigraph import ops
from minigraph.errors import DtypeError
from minigraph.ir import SCALARS, ArrayType, ScalarType, Value

from .recording import Recording
from .rows import gathered


class Traced:
    """What all traced values share: their recording."""

    __slots__ = ("recording_",)
    recording_: Recording


def operand(recording: Recording, thing: Any) -> Value:
    """The IR value of anything that may stand in an array expression.

    Raises:
        DtypeError: it is no array and no number.
    """
    if isinstance(thing, Traced):
        if recording.hidden:
            recording.unhide((thing.value_,))  # type: ignore[attr-defined]
        return thing.value_  # type: ignore[attr-defined]
    if type(thing) in SCALARS or isinstance(thing, np.ndarray | np.generic):
        return recording.constant(thing)
    if isinstance(thing, list | tuple):
        return stack(recording, thing)
    if getattr(type(thing), "eager_array_", False):
        return recording.eager_value(thing)
    number = getattr(thing, "recorded_value_", None)
    if number is not None:
        return number
    if isinstance(thing, bool | int | float | complex):
        return recording.constant(thing.__class__.__mro__[-2](thing))
    raise DtypeError(
        f"a {type(thing).__name__} cannot take part in an array operation",
        where=recording.here(),
    )


def has_traced(thing: Any) -> bool:
    """A traced value, or a list or tuple with one inside."""
    if isinstance(thing, Traced) or hasattr(type(thing), "recorded_value_"):
        return True
    return isinstance(thing, list | tuple) and any(has_traced(item) for item in thing)


def stack(recording: Recording, things: list[Any] | tuple[Any, ...]) -> Value:
    """The array of a nested list: `np.array([x, 2.0])`; Python numbers are not weak there."""
    if not has_traced(things):
        return recording.constant(np.asarray(things))
    found = gathered(recording, things)
    if found is not None:
        return found
    parts = [operand(recording, thing) for thing in things]
    dtypes = [v.type.dtype for v in parts if isinstance(v.type, ArrayType)]
    dtypes += [np.dtype(v.type.python) for v in parts if isinstance(v.type, ScalarType)]
    dtype = np.result_type(*dtypes)
    arrays = [cast(recording, value, dtype) for value in parts]
    return recording.emit(ops.get("stack"), arrays, {"axis": 0})[0]


def cast(recording: Recording, value: Value, dtype: np.dtype[Any]) -> Value:
    """`value` as an array of `dtype` (itself if it is one)."""
    if isinstance(value.type, ArrayType) and value.type.dtype == dtype:
        return value
    return recording.emit(ops.get("cast"), (value,), {"dtype": dtype})[0]


def native_dtype(dtype: Any, recording: Recording, what: str = "it") -> None:
    """Refuse the byte order of another kind of machine: graphs do not know of it.

    Raises:
        DtypeError: it is not this machine's.
    """
    if not np.dtype(dtype).isnative:
        raise DtypeError(
            f"{what} has the dtype {np.dtype(dtype).str}, in the byte order of another machine",
            where=recording.here(),
            instead='x.astype(x.dtype.newbyteorder("="))',
        )


# Python's operators: the method's name, the op, and whether it is on whole numbers only.
BINARY = {
    "add": "add",
    "sub": "subtract",
    "mul": "multiply",
    "truediv": "divide",
    "floordiv": "floor_divide",
    "mod": "remainder",
    "pow": "pow",
    "and": "bitwise_and",
    "or": "bitwise_or",
    "xor": "bitwise_xor",
    "lshift": "left_shift",
    "rshift": "right_shift",
}
COMPARE = {
    "eq": "equal",
    "ne": "not_equal",
    "lt": "less",
    "le": "less_equal",
    "gt": "greater",
    "ge": "greater_equal",
}
UNARY = {"neg": "negative", "pos": "positive", "invert": "invert", "abs": "absolute"}


def install_operators(
    kind: type,
    binary: Callable[[str, bool], Any],
    unary: Callable[[str], Any],
) -> None:
    """Give a class Python's operators.

    Args:
        kind: the class.
        binary: makes a method from the name of an op and whether the operands are exchanged.
        unary: makes a method from the name of an op.
    """
    for name, op in BINARY.items():
        setattr(kind, f"__{name}__", binary(op, False))
        setattr(kind, f"__r{name}__", binary(op, True))
    for name, op in COMPARE.items():
        setattr(kind, f"__{name}__", binary(op, False))
    for name, op in UNARY.items():
        setattr(kind, f"__{name}__", unary(op))
