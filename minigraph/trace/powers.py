"""The type of a power of Python's numbers, which may depend on their values.

    2 ** n          an int, and a float of a negative n
    x ** 0.5        a float, and complex of a negative x

Where the values are not known, the result has the type that it has for most of them, and a check
fails for the others.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from minigraph import ops
from minigraph.ir import BOOL, COMPLEX, FLOAT, INT, Value

if TYPE_CHECKING:
    from .recording import Recording


def with_result(
    recording: Recording, base: Value, exponent: Value, attrs: Mapping[str, Any]
) -> Mapping[str, Any]:
    """The attrs of `pow` with the type of the result; the numbers that settle it are guarded."""
    whole = exponent.type in (BOOL, INT)
    result = COMPLEX if COMPLEX in (base.type, exponent.type) else FLOAT
    if result is COMPLEX or (whole and base.type is FLOAT):
        return {**attrs, "result": result}
    why = "the type of the result of pow depends on this"
    number = recording.force(exponent, why) if recording.is_known(exponent) else None
    if whole:
        result = FLOAT if number is not None and number < 0 else INT
        if number is None:
            _check_whole(recording, base, exponent)
    elif number is None or (math.isfinite(number) and number % 1 != 0):
        if number is not None and recording.is_known(base):
            result = COMPLEX if -math.inf < recording.force(base, why) < 0 else FLOAT
        else:
            _check_real(recording, base, exponent, number)
    return {**attrs, "result": result}


def _check_whole(recording: Recording, base: Value, exponent: Value) -> None:
    holds = _compute(recording, "greater_equal", exponent, 0)
    if not recording.constant_number(base):  # 0 to a negative power is Python's own error
        zero = _compute(recording, "equal", base, 0)
        holds = _compute(recording, "bitwise_or", holds, zero)
    _check(recording, holds, "an int to a negative power is a float")


def _check_real(recording: Recording, base: Value, exponent: Value, number: float | None) -> None:
    negative = _compute(recording, "less", base, 0)
    holds = _compute(recording, "equal", negative, False)  # of NaN, too
    if base.type is FLOAT:
        infinite = _compute(recording, "equal", base, -math.inf)
        holds = _compute(recording, "bitwise_or", holds, infinite)
    if number is None:
        rest = _compute(recording, "remainder", exponent, 1.0)
        fractional = _compute(recording, "greater", rest, 0)
        whole = _compute(recording, "equal", fractional, False)  # of infinity and NaN, too
        holds = _compute(recording, "bitwise_or", holds, whole)
    _check(recording, holds, "a negative number to a fractional power is complex")


def _compute(recording: Recording, op: str, *operands: Value | bool | int | float) -> Value:
    """What an op gives that is no variable of the user's."""
    inputs = [x if isinstance(x, Value) else recording.constant(x) for x in operands]
    place = (recording.here(), ())
    return recording.emit(ops.get(op), inputs, {}, place=place, checked=True)[0]


def _check(recording: Recording, holds: Value, fact: str) -> None:
    message = f"{fact}, and a compiled program has results of one type only"
    attrs = {"error": "ValueError", "message": message}
    recording.emit(ops.get("check"), (holds,), attrs, place=(recording.here(), ()))
