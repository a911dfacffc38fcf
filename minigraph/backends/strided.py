"""Where the elements of an array lie, as index arithmetic over a buffer in C order.

Views (transposes, slices, stretched and new axes) change only the strides and the offset, so a
kernel can read through them without making them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minigraph.ir import ArrayType, Dim, Node, Shape, Size, Value


class Strided:
    """An array as a window on a buffer; counted in elements, not bytes.

    Attributes:
        buffer: the value that owns the memory, in C order.
        shape: the extents.
        strides: the distance between neighbours along each dimension; 0: stretched.
        offset: the place of the first element.
    """

    __slots__ = ("buffer", "offset", "shape", "strides")

    def __init__(self, buffer: Value, shape: Shape, strides: Sequence[Size], offset: Size) -> None:
        self.buffer = buffer
        self.shape = shape
        self.strides = tuple(strides)
        self.offset = offset

    @property
    def is_dense(self) -> bool:
        """The elements are those of the buffer from its start, in C order."""
        return self.offset == 0 and self.strides == c_strides(self.shape)


def c_strides(shape: Shape) -> tuple[Size, ...]:
    """The strides of an array in C order, in elements."""
    strides: list[Size] = []
    step: Size = 1
    for size in reversed(shape):
        strides.append(step)
        step = step * size
    return tuple(reversed(strides))


def whole(value: Value) -> Strided:
    """A value in a buffer of its own."""
    shape = value.type.shape if isinstance(value.type, ArrayType) else ()
    return Strided(value, shape, c_strides(shape), 0)


def view(node: Node, base: Strided) -> Strided | None:
    """What a view node shows of its operand; None: not to be said by strides."""
    change = _CHANGES.get(node.op.name)
    kind = node.output.type
    assert isinstance(kind, ArrayType)
    changed = None if change is None else change(node, base, kind.shape)
    if changed is None:
        return None
    strides, offset = changed
    return Strided(base.buffer, kind.shape, strides, offset)


Changed = tuple[list[Size], Size] | None


def _transpose(node: Node, base: Strided, shape: Shape) -> Changed:
    return [base.strides[axis] for axis in node.attrs["axes"]], base.offset


def _expand_dims(node: Node, base: Strided, shape: Shape) -> Changed:
    new: tuple[int, ...] = node.attrs["axis"]
    left = iter(base.strides)
    return [0 if dim in new else next(left) for dim in range(len(shape))], base.offset


def _squeeze(node: Node, base: Strided, shape: Shape) -> Changed:
    gone: tuple[int, ...] = node.attrs["axis"]
    return [step for dim, step in enumerate(base.strides) if dim not in gone], base.offset


def _broadcast_to(node: Node, base: Strided, shape: Shape) -> Changed:
    new = len(shape) - len(base.shape)
    pairs = zip(base.strides, base.shape, shape[new:], strict=True)
    return [0] * new + [step if old == size else 0 for step, old, size in pairs], base.offset


def _reshape(node: Node, base: Strided, shape: Shape) -> Changed:
    if base.is_dense:
        return list(c_strides(shape)), 0
    wide = [(size, step) for size, step in zip(base.shape, base.strides, strict=True) if size != 1]
    if [size for size, _ in wide] != [size for size in shape if size != 1]:
        return None
    steps = iter([step for _, step in wide])  # only axes of one element come or go
    return [0 if size == 1 else next(steps) for size in shape], base.offset


def _slice(node: Node, base: Strided, shape: Shape) -> Changed:
    index: list[Any] = node.attrs["index"]
    missing = len(base.shape) - sum(item is not None and item is not ... for item in index)
    strides: list[Size] = []
    offset = base.offset
    dim = 0
    for item in [*index, ...] if ... not in index else index:
        if item is None:
            strides.append(0)
        elif item is ...:
            strides += base.strides[dim : dim + missing]
            dim += missing
        else:
            first, step = _start(item, base.shape[dim])
            if first is None:
                return None
            offset += first * base.strides[dim]
            if isinstance(item, slice):
                strides.append(step * base.strides[dim])
            dim += 1
    return strides, offset


def _start(item: Any, size: Size) -> tuple[Size | None, int]:
    """The first element that an index or slice takes along an axis, and its step."""
    if isinstance(item, slice):
        step = 1 if item.step is None else item.step
        if isinstance(size, int) and not isinstance(step, Dim):
            if isinstance(item.start, Dim) or isinstance(item.stop, Dim):
                return None, 0
            return item.indices(size)[0], step
        if step != 1:
            return None, 0
        first = 0 if item.start is None else item.start
        return (first, 1) if _is_count(first) else (None, 0)
    if isinstance(item, int) and isinstance(size, int):
        return item % size if size else 0, 1
    return (item, 1) if _is_count(item) else (None, 0)


def _is_count(item: Any) -> bool:
    return isinstance(item, int) and item >= 0


_CHANGES = {
    "transpose": _transpose,
    "expand_dims": _expand_dims,
    "squeeze": _squeeze,
    "broadcast_to": _broadcast_to,
    "reshape": _reshape,
    "slice": _slice,
}
