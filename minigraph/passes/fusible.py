"""What may stand in a kernel: questions about one node.

`cannot_fuse` is what a backend answers if it says nothing else; the rest holds for all backends.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minigraph.ir import INT, ArrayType, Dim, Node, Size, Type
from minigraph.ops import (
    NONE_KNOWN,
    Numbers,
    array_type,
    is_float_product,
    loop_dtypes,
    scalar_text,
)

REDUCTIONS = frozenset("sum prod max min mean any all".split())
MOVES = frozenset(("expand_dims", "squeeze", "broadcast_to"))


def cannot_fuse(node: Node, numbers: Numbers = NONE_KNOWN) -> str:
    """Why no kernel can compute the node; "" if one can.

    Args:
        node: of any op.
        numbers: its operands that are known.
    """
    if node.op.kind == "elementwise":
        if scalar_text(node, numbers) is None:
            return f"`{node.op.name}` is not computed element by element on {_types(node)}"
        if _has_open_int(node, numbers):
            return "a Python int among the operands may be of any size"
        return ""
    plain = [_is_plain(value.type) for value in (*node.inputs, *node.outputs)]
    if not all(plain):
        return f"`{node.op.name}` of {_types(node)}"
    return ""


def _has_open_int(node: Node, numbers: Numbers) -> bool:
    """Whether a Python int that is known only when the program runs is compared as an integer.

    Of a float loop it is a float; whatever else takes it may raise, and is in no kernel.
    """
    dtypes = loop_dtypes(node, numbers)
    return dtypes is not None and any(
        value.type == INT and value not in numbers and dtype.kind in "iu"
        for value, dtype in zip(node.inputs, dtypes[0], strict=True)
    )


def is_product(node: Node) -> bool:
    """A product of floats, of matrices or batches of them, which a kernel may begin with."""
    if not is_float_product(node):
        return False
    left, right = (array_type(value.type).ndim for value in node.inputs)
    return left >= 2 and (right == 2 or (right > 2 and node.op.name == "matmul"))


def cannot_loop(node: Node) -> str:
    """Why the node is no part of a loop, whatever runs it; "" if it is."""
    name = node.op.name
    if node.op.kind == "elementwise" or is_product(node):
        return ""
    if node.op.kind != "reduce":
        return f"`{name}` is no loop over single elements"
    if name not in REDUCTIONS:
        return f"there is no loop for `{name}`"
    if len(node.inputs) != 1 or "initial" in node.attrs:
        return f"there is no loop for `{name}` with where= or initial="
    axes: tuple[int, ...] = node.attrs["axis"]
    if not axes:
        return "it reduces no axis"
    shape = array_type(node.inputs[0].type).shape
    if name in ("max", "min") and any(shape[axis] == 0 for axis in axes):
        return f"`{name}` of no elements raises"
    return "" if follow_each_other(axes) else "the reduced axes do not follow each other"


def follow_each_other(axes: Sequence[int]) -> bool:
    """Whether there is no other axis between these (sorted) ones."""
    return axes[-1] - axes[0] == len(axes) - 1


def is_window(node: Node) -> bool:
    """Whether the node shows elements that index arithmetic finds in the operand."""
    if node.may_raise or not isinstance(node.inputs[0].type, ArrayType) or not node.op.view:
        return False
    if node.op.name == "slice":
        return _is_static_slice(node)
    return node.op.name == "transpose" or node.op.name in MOVES


def only_moves(node: Node) -> bool:
    """Whether each element of the result stands at the same place of the loops as before."""
    if node.op.name == "slice":
        return all(item is None or item is ... or item == slice(None) for item in _index(node))
    return node.op.name in MOVES


def _index(node: Node) -> Sequence[Any]:
    return node.attrs["index"]


def _is_static_slice(node: Node) -> bool:
    """Whether the first element and the steps are known, however large named dimensions are."""
    assert isinstance(node.inputs[0].type, ArrayType)
    sizes = list(node.inputs[0].type.shape)
    index = _index(node)
    missing = len(sizes) - sum(item is not None and item is not ... for item in index)
    for item in index:
        if item is ...:
            del sizes[:missing]
        elif item is not None and not _is_known(item, sizes.pop(0)):
            return False
    return True


def _is_known(item: Any, size: Size) -> bool:
    if type(item) is not slice:
        return isinstance(item, int) and (item >= 0 or isinstance(size, int))
    bounds: tuple[Any, Any, Any] = (item.start, item.stop, item.step)
    if any(isinstance(bound, Dim) for bound in bounds):
        return False
    start, _, step = bounds
    return isinstance(size, int) or (step in (None, 1) and (start is None or start >= 0))


def _is_plain(type_: Type) -> bool:
    return isinstance(type_, ArrayType) and (
        type_.dtype.kind in "biu" or (type_.dtype.kind == "f" and type_.dtype.itemsize > 2)
    )


def _types(node: Node) -> str:
    return ", ".join(dict.fromkeys(str(value.type) for value in node.inputs)) or "nothing"
