"""What may be computed in memory that is read at the same time, or that belongs to an argument."""

from __future__ import annotations

import numpy as np

from minigraph.ir import ArrayType, Graph, Node, Value, written_operands
from minigraph.ops import Axes, largest, place, writes_where_told

from .fusible import is_product
from .liveness import Liveness
from .regions import is_effect

# ---- in a kernel


def overwritten(kernel: Node, *, product_apart: bool = False) -> dict[Value, set[Value]]:
    """For each result of a `kernel` node the operands in whose memory it may be written.

    A kernel of the form map or epilogue computes each element by itself: what an operand of the
    result's type holds at a place is read no more when the result's element there is written, if
    nothing reads the operand through a view.  Not so the result that an epilogue's product goes
    into: that is written before all operands have been read, unless the product has a place of its
    own (`product_apart`).

    A kernel with reductions computes what there is once for a row or column likewise, after the
    loops over its elements that the result waits for.
    """
    body: Graph = kernel.attrs["body"]
    pairs = list(zip(kernel.inputs, body.inputs, strict=True))
    results = list(zip(kernel.outputs, body.outputs, strict=True))
    products = [node for node in body.nodes if is_product(node)]
    elsewhere = {v for node in body.nodes if node.op.view or node in products for v in node.inputs}
    into = None
    if products and not product_apart:
        types = [node.output.type for node in products]
        into = next((value for value in body.outputs if value.type in types), None)
    loops = _Loops(body) if kernel.attrs["form"] in ("rows", "columns") else None
    return {
        value: {
            operand
            for operand, read in pairs
            if read.type == result.type
            and read not in elsewhere
            and (loops is None or loops.are_done(read, result))
        }
        for value, result in results
        if result is not into
    }


class _Loops:
    """The loops over the reduced axes of a body, one after the other.

    Attributes:
        axes: the loop axes of each value; turn: after how many loops it can be computed.
        last: the last loop.
    """

    def __init__(self, body: Graph) -> None:
        self.nodes = [node for node in body.nodes if node.op.name != "const" and not node.op.view]
        self.axes: dict[Value, Axes] = {}
        self.turn: dict[Value, int] = {}
        self.reduced: set[int | None] = set()
        shapes = [
            value.type.shape
            for node in self.nodes
            for value in (*node.inputs, *node.outputs)
            if isinstance(value.type, ArrayType)
        ]
        self.last = -1
        for node in self.nodes:
            self.axes.update(place(node, self.axes, largest(shapes)) or {})
            turn = max((self.turn.get(value, 0) for value in node.inputs), default=0)
            if node.op.kind == "reduce":
                dims: tuple[int, ...] = node.attrs["axis"]
                self.reduced.update(self.axes[node.inputs[0]][dim] for dim in dims)
                self.last = max(self.last, turn)
                turn += 1
            self.turn[node.output] = turn
        varying = (self.turn[value] for value in body.outputs if self.varies(value))
        self.last = max([self.last, *varying])

    def varies(self, value: Value) -> bool:
        """Whether the value is another one at each step of the loops."""
        return any(axis in self.reduced for axis in self.axes[value])

    def are_done(self, read: Value, result: Value) -> bool:
        """Whether nothing reads an operand any more at the place where the result has come to."""
        if self.varies(result) or self.axes[read] != self.axes[result]:
            return False
        for node in self.nodes:
            if read in node.inputs:
                after = self.last + 1 if self.varies(node.output) else self.turn[node.output]
                if after > self.turn[result]:
                    return False
        return True


# ---- in the memory of an argument


def written_directly(graph: Graph, lives: Liveness) -> dict[Value, Value]:
    """The results that can be computed in the memory of the argument that they are written to.

        %1 = subtract %w, %0 : f32[4]       # in the memory of %w
        write %w, %1                        # nothing is left to do

    Legality: the argument is written once, by a result of its own type that is no output; whoever
    reads the argument does so before, or at the same place in the same node; and nothing happens in
    between that the world sees or that may raise, when the argument must be as it was.
    """
    written: dict[Value, list[int]] = {}
    made_at: dict[Value, int] = {}
    last_read: dict[Value, int] = {}
    last_event: list[int] = []  # up to each node: the position of what happened last
    for position, node in enumerate(graph.nodes):
        is_write = node.op.name == "write"
        for target in written_operands(node):
            written.setdefault(target, []).append(position)
        for value in node.inputs[1:] if is_write else node.inputs:
            last_read[lives.root[value]] = position
        made_at.update(dict.fromkeys(node.outputs, position))
        event = position if is_effect(node) and not is_write else -1
        last_event.append(max(event, last_event[-1] if last_event else -1))
    found: dict[Value, Value] = {}
    for target, (position, *others) in written.items():
        if graph.nodes[position].op.name != "write":
            continue
        value = graph.nodes[position].inputs[1]
        made = made_at.get(value, -1)
        if (
            not others
            and made >= 0
            and value not in found
            and made >= last_event[position]
            and made >= last_read.get(target, -1)
            and lives.last_seen[lives.root[value]] < len(graph.nodes)
            and _can_be_made_in(graph.nodes[made], value, target, lives)
        ):
            found[value] = target
    return found


def _can_be_made_in(node: Node, value: Value, target: Value, lives: Liveness) -> bool:
    """Whether a node can put a result of its own into the memory of an argument."""
    kind = value.type
    if not isinstance(kind, ArrayType) or kind != target.type or lives.root[value] is not value:
        return False
    # NumPy's loops over float16 that overlap give NaN other signs.
    if kind.dtype == np.float16 or not writes_where_told(node):
        return False
    if is_effect(node) or not (kind.ndim or node.op.name == "kernel"):
        return False
    readers = [operand for operand in node.inputs if lives.root.get(operand) is target]
    if any(operand is not target for operand in readers):
        return False
    if node.op.stores:
        return node.inputs[0] is target and readers == [target]
    if not readers:
        return True
    if node.op.name == "kernel":
        return target in overwritten(node, product_apart=True).get(value, ())
    return node.op.kind == "elementwise"
