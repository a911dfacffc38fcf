"""NumPy's indexing rules, for extents that may be named dimensions.

An index is a list of entries, as it stands in an attr: int, slice, None, Ellipsis, and `%`
(OPERAND) for an array among the operands.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from minigraph.errors import DimensionError, DtypeError, ShapeError, UnsupportedError
from minigraph.ir import (
    OPERAND,
    ArrayType,
    Dim,
    ScalarType,
    Shape,
    Size,
    Type,
    decide_at_least,
    decide_equal,
)

from .bind import as_size, dtype_of
from .rules import OutOfBoundsError, array_type, broadcast_shapes, decided, items_of, shape_text

Entries = list[Any]


# ---- from Python to entries -------------------------------------------------------------------


def split_index(index: Any, *, masks: bool = False) -> tuple[Entries, list[Any]]:
    """What stands between the brackets as entries and array operands.

    Args:
        index: the index as Python gives it; arrays in it may be traced.
        masks: keep traced masks (for `update`, whose result has a known shape).

    Raises:
        UnsupportedError: a traced mask (its result's shape depends on data).
        OutOfBoundsError: what NumPy does not take as an index.
    """
    entries: Entries = []
    operands: list[Any] = []
    parts: list[Any] = (items_of(index) or []) if isinstance(index, tuple) else [index]
    for part in parts:
        _split_part(part, entries, operands, masks)
    return entries, operands


def _split_part(part: Any, entries: Entries, operands: list[Any], masks: bool) -> None:
    if part is None or part is Ellipsis:
        entries.append(part)
    elif type(part) is slice:
        bounds = _parts_of(part)
        entries.append(slice(*(None if bound is None else as_size(bound) for bound in bounds)))
    elif _is_mask(part):
        _split_known_mask(np.asarray(part), entries, operands)
    elif items_of(part) is not None:
        entries.append(OPERAND)
        operands.append(items_of(part) or np.empty(0, np.intp))
    elif getattr(part, "dtype", None) is None or isinstance(part, np.integer):
        entries.append(as_size(part))
    else:
        kind = np.dtype(part.dtype).kind
        if kind == "b" and not masks:
            raise UnsupportedError(
                "x[mask] has a shape that depends on data",
                instead="np.where(mask, x, other), or x[mask] = value to write",
            )
        if kind not in "iub":
            raise OutOfBoundsError("arrays used as indices must be of integer (or boolean) type")
        entries.append(OPERAND)
        operands.append(part)


def _parts_of(part: Any) -> tuple[Any, Any, Any]:
    """The start, stop and step of a slice."""
    return part.start, part.stop, part.step


def _is_mask(part: Any) -> bool:
    """Bools that are known while tracing: one, an array, or nested lists."""
    if type(part) is np.ndarray:
        return dtype_of(part).kind == "b"
    items = items_of(part)
    if items is None:
        return isinstance(part, bool | np.bool_)
    return bool(items) and all(_is_mask(item) for item in items)


def _split_known_mask(mask: np.ndarray[Any, Any], entries: Entries, operands: list[Any]) -> None:
    """A mask that is known while tracing selects known places."""
    if mask.ndim == 0:
        raise UnsupportedError(
            "an index of one bool is not recorded", instead="x[None] or x[None][:0]"
        )
    for places in np.nonzero(mask):
        entries.append(OPERAND)
        operands.append(places)


def is_basic(entries: Entries) -> bool:
    """No arrays: the result is a view."""
    return not any(entry is OPERAND for entry in entries)


def subscript(entries: Entries, operands: Sequence[str]) -> str:
    """The text between the brackets: `0, 1:n, None, v3`."""
    named = iter(operands)
    parts: list[str] = []
    for entry in entries:
        if entry is OPERAND:
            parts.append(next(named))
        elif entry is Ellipsis:
            parts.append("...")
        elif type(entry) is slice:
            bounds = ["" if bound is None else str(bound) for bound in _parts_of(entry)]
            parts.append(":".join(bounds if bounds[2] else bounds[:2]))
        else:
            parts.append(str(entry))
    return ", ".join(parts) + ("," if len(parts) == 1 and entries[0] is not OPERAND else "") or "()"


# ---- shapes -----------------------------------------------------------------------------------


def slice_bounds(part: Any, size: Size) -> tuple[Size, Size, int]:
    """(start, count, step) of the elements that a slice takes of an axis.

    Raises:
        DimensionError: the count depends on a named dimension in a way sizes cannot say.
    """
    step = 1 if part.step is None else part.step
    if isinstance(step, Dim):
        raise DimensionError("the step of a slice must be a number that is known while tracing")
    if step == 0:
        raise ShapeError("slice step cannot be zero")
    if step > 0:
        start = 0 if part.start is None else _clamp(part.start, size, 0, size)
        stop = size if part.stop is None else _clamp(part.stop, size, 0, size)
        distance = stop - start
    else:
        start = size - 1 if part.start is None else _clamp(part.start, size, -1, size - 1)
        stop = -1 if part.stop is None else _clamp(part.stop, size, -1, size - 1)
        distance = start - stop
    if not decide_at_least(distance, 0):
        return start, 0, step
    return start, (distance + (abs(step) - 1)) // abs(step), step


def _clamp(bound: Size, size: Size, low: Size, high: Size) -> Size:
    if not decide_at_least(bound, 0):
        bound = bound + size
        return bound if decide_at_least(bound, low) else low
    return bound if decide_at_least(high, bound) else high


def check_position(position: Size, size: Size, axis: int) -> bool:
    """Whether a position is known to lie on the axis; False: that depends on sizes.

    Raises:
        OutOfBoundsError: it is known not to.
    """
    below = decided(decide_at_least, size - 1, position)
    above = decided(decide_at_least, position, -size)
    if below is False or above is False:
        raise OutOfBoundsError(
            f"index {position} is out of bounds for axis {axis} with size {size}"
        )
    return bool(below and above)


def expand(entries: Entries, shape: Shape, masks: Sequence[int] = ()) -> Entries:
    """The entries with the Ellipsis as slices, one entry for each axis (and each None).

    Args:
        entries: the index.
        shape: of the array that is indexed.
        masks: for each operand the number of axes it takes (a mask takes its rank, others one).
    """
    taken = iter(masks)
    used = 0
    for entry in entries:
        if entry is OPERAND:
            used += next(taken, 1)
        elif entry is not None and entry is not Ellipsis:
            used += 1
    if used > len(shape):
        raise OutOfBoundsError(
            f"too many indices: the array has {len(shape)} axes, but {used} were indexed"
        )
    if sum(entry is Ellipsis for entry in entries) > 1:
        raise OutOfBoundsError("an index can only have a single ellipsis ('...')")
    rest = [slice(None)] * (len(shape) - used)
    if Ellipsis not in [entry for entry in entries if entry is Ellipsis]:
        return [*entries, *rest]
    at = next(index for index, entry in enumerate(entries) if entry is Ellipsis)
    # An ellipsis that stands for no axis still parts the arrays on its two sides.
    return [*entries[:at], *(rest or [Ellipsis]), *entries[at + 1 :]]


class Indexed:
    """What an index does to a shape.

    Attributes:
        shape: of the result; None where a mask makes it depend on data.
        certain: every int is known to lie on its axis.
    """

    __slots__ = ("certain", "shape")

    def __init__(self, shape: Shape | None, certain: bool) -> None:
        self.shape = shape
        self.certain = certain


def indexed(shape: Shape, entries: Entries, operands: Sequence[Type]) -> Indexed:
    """What an index does to a shape, by NumPy's rules.

    Arrays broadcast together; ints beside arrays count as arrays.  The broadcast axes stand where
    the arrays stood if those were side by side, else first.

    Raises:
        ShapeError, OutOfBoundsError: as in NumPy.
        DtypeError: an array that is no index.
        DimensionError: a slice's extent cannot be said.
    """
    arrays = [_index_array(type_) for type_ in operands]
    remaining = iter(arrays)
    parts: list[Size | Place] = []
    axis, certain = 0, True
    for entry in expand(entries, shape, [_axes_taken(array) for array in arrays]):
        if entry is None:
            parts.append(1)
        elif entry is Ellipsis:
            parts.append(NOTHING)
        elif isinstance(entry, slice):
            parts.append(slice_bounds(entry, shape[axis])[1])
            axis += 1
        elif entry is OPERAND:
            array = next(remaining)
            if array.dtype.kind == "b":
                _check_mask(array.shape, shape, axis)
            parts.append(ARRAY)
            axis += _axes_taken(array)
        else:
            certain = check_position(entry, shape[axis], axis) and certain
            parts.append(ARRAY if arrays else NOTHING)
            axis += 1
    if any(array.dtype.kind == "b" for array in arrays):
        return Indexed(None, False)
    if not arrays:
        return Indexed(tuple(part for part in parts if not isinstance(part, Place)), certain)
    broadcast = _broadcast_indices([array.shape for array in arrays])
    return Indexed(_put_together(parts, broadcast), certain)


class Place:
    """What an index entry leaves that is no axis of its own."""

    __slots__ = ()


ARRAY, NOTHING = Place(), Place()


def _axes_taken(array: ArrayType) -> int:
    return array.ndim if array.dtype.kind == "b" else 1


def _index_array(type_: Type) -> ArrayType:
    array = array_type(type_, "an index")
    if array.dtype.kind not in "iub" or (array.dtype.kind == "b" and isinstance(type_, ScalarType)):
        raise DtypeError(f"arrays used as indices must be of integers or bools, not {array}")
    return array


def _check_mask(mask: Shape, shape: Shape, axis: int) -> None:
    part = shape[axis : axis + len(mask)]
    if len(part) != len(mask) or not all(map(decide_equal, part, mask)):
        raise OutOfBoundsError(
            f"boolean index of shape {shape_text(mask)} did not match the indexed array's axes "
            f"of shape {shape_text(part)}"
        )


def _broadcast_indices(shapes: Sequence[Shape]) -> Shape:
    try:
        return broadcast_shapes(shapes)
    except ShapeError as error:
        raise OutOfBoundsError(f"shape mismatch of the index: {error.fact}") from error


def _put_together(parts: Sequence[Size | Place], broadcast: Shape) -> Shape:
    """The broadcast axes in the place of the arrays, or first if those were parted."""
    places = [index for index, part in enumerate(parts) if part is ARRAY]
    side_by_side = places[-1] - places[0] == len(places) - 1
    first = places[0] if side_by_side else 0
    kept = [(index, part) for index, part in enumerate(parts) if not isinstance(part, Place)]
    before = tuple(part for index, part in kept if index < first)
    return (*before, *broadcast, *(part for index, part in kept if index >= first))
