"""Arrays that are the rows of one array, taken together again without taking each one out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minigraph import ops
from minigraph.ir import ArrayType, Value

from .recording import Recording
from .views import Step


class Row(Step):
    """The view of one row of an array.

    Attributes:
        at: which one; count: how many there are.
    """

    __slots__ = ("at", "count")

    def __init__(self, at: int, before: ArrayType) -> None:
        super().__init__("slice", {"index": [at]}, (), before)
        self.at = at
        (self.count, *_) = before.shape


def gathered(recording: Recording, things: Sequence[Any]) -> Value | None:
    """The array of things of one type, if all rows of some arrays are among them, in order.

    Args:
        recording: the one that is running.
        things: arrays or numbers; numbers that are rows have a `row_`.

    Returns:
        The things along a new first axis; None if they have to be taken one by one.
    """
    pieces: list[Any] = []
    at, found = 0, False
    while at < len(things):
        count = _rows_from(things, at)
        found |= bool(count)
        row = getattr(things[at], "row_", things[at])
        pieces.append(row.storage_.value if count else row)
        at += count or 1
    if not found:
        return None
    values = [piece if isinstance(piece, Value) else _alone(recording, piece) for piece in pieces]
    kinds = {(v.type.dtype, v.type.shape[1:]) for v in values if v is not None}  # type: ignore[union-attr]
    if None in values or len(kinds) > 1:
        return None
    return values[0] if len(values) == 1 else recording.emit(ops.get("concatenate"), values, {})[0]  # type: ignore[arg-type]


def _rows_from(things: Sequence[Any], start: int) -> int:
    """How many things from one on are all rows of one array, in order; else 0."""
    first = getattr(things[start], "row_", things[start])
    path = getattr(first, "path_", ())
    if len(path) != 1 or type(path[0]) is not Row or not first.layout_.c_order:
        return 0
    count = path[0].count
    if count > len(things) - start:
        return 0
    for at in range(count):
        row = getattr(things[start + at], "row_", things[start + at])
        path = getattr(row, "path_", ())
        if len(path) != 1 or type(path[0]) is not Row or path[0].at != at:
            return 0
        if row.storage_ is not first.storage_:
            return 0
    return count


def _alone(recording: Recording, thing: Any) -> Value | None:
    """An array with a new first axis."""
    value = getattr(thing, "value_", None)
    if value is None or not isinstance(value.type, ArrayType):
        return None
    return recording.emit(ops.get("expand_dims"), (value,), {"axis": (0,)})[0]
