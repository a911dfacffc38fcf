"""An index as Python writes it, in the form of the IR."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from minigraph.ir import BOOL, INT, OPERAND, ArrayType, Value, decide_equal

from .operands import Traced, operand
from .recording import Recording
from .scalars import TracedDim, TracedScalar


def read_index(array: Any, index: Any) -> tuple[list[Any], list[Value], str]:
    """An index in the form of the IR.

    Returns:
        The items (`OPERAND` for each array), the operands, and the kind of indexing: "basic" (a
        view), "advanced" (integer arrays), "mask" (boolean arrays).
    """
    recording = array.recording_
    items: list[Any] = []
    operands: list[Value] = []
    masks: Masks = []
    kind = "basic"
    for item in index if type(index) is tuple else (index,):
        if item is None or item is Ellipsis:
            items.append(item)
        elif type(item) is slice:
            items.append(slice(*(_bound(part) for part in (item.start, item.stop, item.step))))
        elif type(item) is int:
            items.append(item)
        elif hasattr(type(item), "recorded_value_") and isinstance(item, int):
            items.append(int(item)) if not isinstance(item, TracedDim) else _operand(
                items, operands, item.recorded_value_
            )
        elif isinstance(item, TracedScalar) and item.value_.type is INT:
            _operand(items, operands, item.value_)
        elif isinstance(item, Traced):
            kind = _traced_item(recording, item, items, operands, masks, kind)
        elif isinstance(item, np.integer):
            items.append(int(item))
        else:
            kind = _array_item(recording, item, items, operands, masks, kind)
    if kind != "basic" and any(v.type is INT for v in operands):
        kind = "advanced" if kind != "mask" else kind
    if kind != "mask":
        for start, shape in masks:
            _check_mask(array.type_.shape, items, start, shape)
    return items, operands, kind


Masks = list[tuple[int, tuple[int, ...]]]  # of each mask spelled out: its first item, its shape


def _check_mask(shape: Any, items: list[Any], start: int, mask: tuple[int, ...]) -> None:
    """A mask has the extents of the axes that it selects from.

    Raises:
        IndexError: it has not (with NumPy's words).
        DimensionError: that depends on a named dimension.
    """
    axis = sum(item is not None for item in items[:start])
    if Ellipsis in items[:start]:
        axis = len(shape) - sum(item is not None for item in items[start:])
    for at, size in enumerate(mask, axis):
        if at < len(shape) and not decide_equal(shape[at], size):
            raise IndexError(
                f"boolean index did not match indexed array along axis {at}; size of axis is "
                f"{shape[at]} but size of corresponding boolean axis is {size}"
            )


def _operand(items: list[Any], operands: list[Value], value: Value) -> None:
    items.append(OPERAND)
    operands.append(value)


def _traced_item(
    recording: Recording,
    item: Any,
    items: list[Any],
    operands: list[Value],
    masks: Masks,
    kind: str,
) -> str:
    """A traced array in an index; an integer scalar indexes as an int does."""
    if getattr(item, "scalar_", False) and item.dtype.kind in "iu":
        _operand(items, operands, item.value_)
        return kind
    return _array_item(recording, item, items, operands, masks, kind)


def _array_item(
    recording: Recording,
    item: Any,
    items: list[Any],
    operands: list[Value],
    masks: Masks,
    kind: str,
) -> str:
    """An array in an index: integers, or a mask (spelled out as integers where it is known)."""
    if isinstance(item, float | str | bytes) or item.__class__ is float:
        raise IndexError(
            "only integers, slices (`:`), ellipsis (`...`), numpy.newaxis (`None`) and integer or "
            "boolean arrays are valid indices"
        )
    if isinstance(item, list) and not item:
        item = np.zeros(0, np.intp)
    value = operand(recording, item)
    if value.type is BOOL:
        value = recording.constant(np.asarray(recording.force(value, "a mask")))
    assert isinstance(value.type, ArrayType)
    if value.type.dtype.kind in "iu":
        _operand(items, operands, value)
        return "advanced" if kind != "mask" else kind
    if value.type.dtype.kind != "b":
        raise IndexError("arrays used as indices must be of integer (or boolean) type")
    if recording.is_known(value) and value.type.ndim:
        mask = recording.force(value, "a mask")
        masks.append((len(items), mask.shape))
        for positions in np.nonzero(mask):
            _operand(items, operands, recording.constant(positions))
        return "advanced" if kind != "mask" else kind
    _operand(items, operands, value)
    return "mask"


def _bound(part: Any) -> Any:
    """A bound of a slice as an int, a named size, or None."""
    if part is None:
        return None
    if isinstance(part, TracedDim):
        return part.dim
    return operator.index(part)
