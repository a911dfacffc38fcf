"""Between which bounds Python's ints lie: what is known to fit 64 bits needs no check.

%k = remainder %i, %ten          0 <= k <= 9
%m = multiply %k, %k             0 <= m <= 81: cannot overflow
%n = add %i, %one                checked; then it is above -2**63
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

Interval = tuple[int, int]
"""The least and the largest value."""

ANY: Interval = (-(2**63), 2**63 - 1)
SIZE: Interval = (0, 2**60)
POSITION: Interval = (-(2**60), 2**60)
"""Of what is in range as an index; an int that a loop counts up begins within it, too."""

COUNTER: Interval = (-(2**61), 2**61)
"""What a counter reaches in a lifetime."""


def interval(name: str, operands: Sequence[Interval]) -> Interval | None:
    """The bounds of the exact result of an op; None: nothing is known."""
    rule = _RULES.get(name)
    return None if rule is None else rule(*operands)


def fits(bounds: Interval) -> bool:
    """Whether 64 bits hold everything between the bounds."""
    return ANY[0] <= bounds[0] and bounds[1] <= ANY[1]


def cut(name: str, bounds: Interval, operands: Sequence[Interval]) -> Interval:
    """The bounds of a result that was found to fit 64 bits."""
    low, high = max(bounds[0], ANY[0]), min(bounds[1], ANY[1])
    if name == "multiply":  # of a known number it is a multiple
        for least, most in operands:
            if least == most and least not in (0, 1, -1):
                size = abs(least)
                low, high = -(-low // size) * size, high // size * size
    return low, high


def union(*bounds: Interval) -> Interval:
    """The bounds of one of several."""
    return min(low for low, _ in bounds), max(high for _, high in bounds)


def _add(x: Interval, y: Interval) -> Interval:
    return x[0] + y[0], x[1] + y[1]


def _subtract(x: Interval, y: Interval) -> Interval:
    return x[0] - y[1], x[1] - y[0]


def _multiply(x: Interval, y: Interval) -> Interval:
    corners = [a * b for a in x for b in y]
    return min(corners), max(corners)


def _negative(x: Interval) -> Interval:
    return -x[1], -x[0]


def _floor_divide(x: Interval, y: Interval) -> Interval | None:
    return (x[0] // y[0], x[1] // y[0]) if y[0] == y[1] > 0 else None


def _remainder(x: Interval, y: Interval) -> Interval | None:
    if y[0] > 0:
        return 0, y[1] - 1
    return (y[0] + 1, 0) if y[1] < 0 else None


def _bitwise_and(x: Interval, y: Interval) -> Interval | None:
    most = [bounds[1] for bounds in (x, y) if bounds[0] >= 0]
    return (0, min(most)) if most else None


_RULES: Mapping[str, Callable[..., Interval | None]] = {
    "add": _add,
    "subtract": _subtract,
    "multiply": _multiply,
    "negative": _negative,
    "floor_divide": _floor_divide,
    "remainder": _remainder,
    "bitwise_and": _bitwise_and,
    "maximum": lambda x, y: (max(x[0], y[0]), max(x[1], y[1])),
    "minimum": lambda x, y: (min(x[0], y[0]), min(x[1], y[1])),
}
