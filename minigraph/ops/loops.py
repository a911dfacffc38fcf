"""Loop axes: where the dimensions of a kernel's values lie in the loops that compute them.

A kernel runs over a *loop space*, a shape.  Each of its values has *axes*: for each dimension the
loop axis that it runs along, or None where the value has extent 1 and the loop has not (it is
stretched).  So in the loop space `(n, m)`

    %x: f32[n,m]  has axes (0, 1)
    %s = sum %x {axis=(1,)} : f32[n]                     (0,)
    %t = sum %x {axis=(1,), keepdims=True} : f32[n,1]    (0, None)
    %y = subtract %x, %t                                 (0, 1)

and `subtract %x, %s` does not fit even if n is m, since it would read `%s` along loop axis 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from minigraph.ir import Node, Shape, Size, Value, decide_equal

from .rules import decided

Axes = tuple[int | None, ...]


def place(node: Node, known: Mapping[Value, Axes], loop: Shape) -> dict[Value, Axes] | None:
    """The axes of a node's result, and of the operands that have none yet; None: it does not fit.

    Args:
        node: elementwise, a reduction, or one that only moves axes (`expand_dims`, `squeeze`,
            `broadcast_to`, `slice` of whole axes and None).
        known: the axes of the values that are placed already.
        loop: the extents of the loop axes.
    """
    if node.op.kind == "elementwise" or node.op.name == "broadcast_to":
        return _place_elementwise(node, known, loop)
    (operand,) = node.inputs
    axes = known.get(operand)
    if axes is None:
        axes = _fill(operand.shape, [None] * len(operand.shape), loop)
    if axes is None:
        return None
    result = _reduced(node, axes) if node.op.kind == "reduce" else _moved(node, axes)
    return {operand: axes, node.output: result}


def extent(shape: Shape) -> tuple[int, int]:
    """How much the loops over a shape are: the more axes, then the more that vary, the more."""
    return len(shape), sum(size != 1 for size in shape)


def largest(shapes: Iterable[Shape]) -> Shape:
    """The shape that the loops run over which compute values of these shapes."""
    return max(shapes, key=extent, default=())


def _place_elementwise(
    node: Node, known: Mapping[Value, Axes], loop: Shape
) -> dict[Value, Axes] | None:
    shape = node.output.shape
    found: list[int | None] = [None] * len(shape)
    for operand in node.inputs:
        for dim, axis in enumerate(known.get(operand, ()), len(shape) - len(operand.shape)):
            if axis is not None and found[dim] not in (None, axis):
                return None
            found[dim] = axis if axis is not None else found[dim]
    axes = _fill(shape, found, loop)
    if axes is None:
        return None
    placed: dict[Value, Axes] = {node.output: axes}
    for operand in node.inputs:
        own = operand.shape
        offset = len(shape) - len(own)
        wanted = tuple(
            axes[dim] if _same(size, shape[dim]) else None for dim, size in enumerate(own, offset)
        )
        if known.get(operand, wanted) != wanted or placed.get(operand, wanted) != wanted:
            return None
        placed[operand] = wanted
    return placed


def _fill(shape: Shape, found: Sequence[int | None], loop: Shape) -> Axes | None:
    """`found` with an axis for each dimension that has none and is not stretched.

    A value of as many dimensions as there are loop axes lies on them one by one; of another one
    each dimension must have been found.
    """
    axes = list(found)
    for dim, size in enumerate(shape):
        if axes[dim] is not None:
            continue
        if len(shape) == len(loop) and _same(size, loop[dim]):
            axes[dim] = dim
        elif not _same(size, 1):
            return None
    used = [axis for axis in axes if axis is not None]
    return tuple(axes) if all(a < b for a, b in zip(used, used[1:], strict=False)) else None


def _reduced(node: Node, axes: Axes) -> Axes:
    gone: tuple[int, ...] = node.attrs["axis"]
    if node.attrs.get("keepdims"):
        return tuple(None if dim in gone else axis for dim, axis in enumerate(axes))
    return tuple(axis for dim, axis in enumerate(axes) if dim not in gone)


def _moved(node: Node, axes: Axes) -> Axes:
    """The axes of a result in which dimensions of extent 1 come or go."""
    if node.op.name == "expand_dims":
        new: tuple[int, ...] = node.attrs["axis"]
        left = iter(axes)
        return tuple(None if dim in new else next(left) for dim in range(len(axes) + len(new)))
    if node.op.name == "squeeze":
        gone: tuple[int, ...] = node.attrs["axis"]
        return tuple(axis for dim, axis in enumerate(axes) if dim not in gone)
    assert node.op.name == "slice", node
    left = iter(axes)
    index = [item for item in node.attrs["index"] if item is not Ellipsis]
    return (*(None if item is None else next(left) for item in index), *left)


def _same(a: Size, b: Size) -> bool:
    """Whether two extents are certainly the same."""
    return decided(decide_equal, a, b) is True
