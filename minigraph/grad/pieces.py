"""Cotangents that are zero but for a piece along one axis.

What is cut into pieces along an axis has a cotangent for each of them:

    %a = update %zeros, %x {index=[..., 0:4]}      %b = update %zeros, %y {index=[..., 4:8]}

Their sum stores one piece beside the other.  Once all are there, it is the pieces side by side:

    %c = concatenate %x, %y {axis=1}
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from minigraph.ir import ArrayType, Op, Size, Value
from minigraph.ops import Builder, array_type, get

from .building import Place


class Pieces(NamedTuple):
    """What an array holds that is zero elsewhere.

    Attributes:
        axis: along which it is cut.
        stored: by where each piece begins and ends.
    """

    axis: int
    stored: Mapping[tuple[int, int], Value]

    def beside(self, other: Pieces) -> Pieces | None:
        """Both, where they have no element in common."""
        if other.axis != self.axis:
            return None
        both = Pieces(self.axis, {**self.stored, **other.stored})
        ends = sorted(both.stored)
        apart = all(one[1] <= next_[0] for one, next_ in zip(ends, ends[1:], strict=False))
        return both if apart and len(ends) == len(self.stored) + len(other.stored) else None

    def joined(self, builder: Builder, whole: ArrayType, place: Place) -> Value | None:
        """Record the array, if no element of it is left out."""
        ends = sorted(self.stored)
        starts = [0, *(stop for _, stop in ends)]
        if starts != [*(start for start, _ in ends), whole.shape[self.axis]]:
            return None
        attrs = {"axis": self.axis} if self.axis else {}
        parts = [self.stored[each] for each in ends]
        return builder.emit(get("concatenate"), parts, attrs, place=place)[0]


def piece_of(
    op: Op, into: Value, operands: Sequence[Value], attrs: Mapping[str, Any]
) -> Pieces | None:
    """The piece that `op` stores into zeros; None if it is none along one axis."""
    whole = array_type(into.type)
    if op.name != "update" or len(operands) != 1 or not isinstance(operands[0].type, ArrayType):
        return None
    entries: list[Any] = list(attrs["index"])
    if Ellipsis in entries:
        at = entries.index(Ellipsis)
        entries[at : at + 1] = [slice(None)] * (whole.ndim - len(entries) + 1)
    found: list[tuple[int, int, int]] = []
    for axis, (entry, size) in enumerate(zip(entries, whole.shape, strict=False)):
        if not isinstance(entry, slice) or entry.step not in (None, 1):
            return None
        if entry == slice(None):
            continue
        start: Size = entry.start or 0
        stop: Size = size if entry.stop is None else entry.stop
        if not isinstance(start, int) or not isinstance(stop, int) or not isinstance(size, int):
            return None
        if not 0 <= start < stop <= size:
            return None
        found.append((axis, start, stop))
    if len(found) != 1:
        return None
    axis, start, stop = found[0]
    shape = (*whole.shape[:axis], stop - start, *whole.shape[axis + 1 :])
    if operands[0].type != ArrayType(whole.dtype, shape):
        return None
    return Pieces(axis, {(start, stop): operands[0]})
