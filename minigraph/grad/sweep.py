"""The sweep over nodes from the last to the first, which adds up cotangents."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from minigraph.ir import ArrayType, Node, Op, Value
from minigraph.ops import array_type, derive, get

from .branches import through_if
from .building import Place, Rebuilder, add, add_stored
from .calls import through_call
from .pieces import Pieces, piece_of
from .reach import influenced
from .regions import Scope
from .scans import through_scan
from .whiles import through_while


def backward(
    builder: Rebuilder,
    nodes: Sequence[Node],
    cotangents: Mapping[Value, Value],
    wanted: Sequence[Value],
    paused: Collection[Node] = (),
) -> list[Value | None]:
    """Record the gradients of some values of a recording.

    Args:
        builder: takes the new nodes; each stands where the node stands that it differentiates.
        nodes: what computed the values, in order.
        cotangents: of the values to start from.
        wanted: the values whose gradients are asked for.
        paused: nodes in regions through which no gradient flows.

    Returns:
        One cotangent for each wanted value; None where nothing leads there.

    Raises:
        UnsupportedError: an op on the way has no rule (with the user's line).
    """
    builder = _Remembering(builder)
    reached = influenced(nodes, wanted)
    sums = dict(cotangents)
    for node in reversed(nodes):
        if reached.isdisjoint(node.outputs) or sums.keys().isdisjoint(node.outputs):
            continue
        place = (node.loc, ())
        needs = [value in reached for value in node.inputs]
        given = [sums.get(value) for value in node.outputs]
        through = REGIONS.get(node.op.name)
        if through is not None:
            parts = through(Scope(backward, builder, place, paused), node, given, needs)
        else:
            parts = derive(builder, node, given, needs, place)
        for value, needed, part in zip(node.inputs, needs, parts, strict=True):
            if needed and part is not None:
                so_far = sums.get(value)
                sums[value] = part if so_far is None else builder.sum(so_far, part, place)
    return [sums.get(value) for value in wanted]


REGIONS = {
    "call": through_call,
    "if": through_if,
    "scan": through_scan,
    "while": through_while,
}
"""The ops that are differentiated through their regions."""


class _Remembering:
    """A builder that knows what it has recorded, where another spelling is better.

    Of cotangents that are zero but for a part it adds up the part alone: so a loop over the rows of
    an array does not add whole arrays for each row.  Pieces of an array are stored side by side.  A
    transposed product is the product of the transposed: so the gradient of `w` in `x @ w.T` lies in
    memory as `w` does.
    """

    def __init__(self, builder: Rebuilder) -> None:
        self.builder = builder
        self.ids = builder.ids
        self.maker = builder.maker
        self.exchange = builder.exchange
        self._zeros: set[Value] = set()
        self._stored: dict[Value, tuple[Op, Sequence[Value], Mapping[str, Any]]] = {}
        self._pieces: dict[Value, Pieces] = {}
        self._products: dict[Value, Sequence[Value]] = {}  # of two matrices
        self._turned: dict[Value, Value] = {}  # transposed matrices, and what they are of

    def emit(
        self,
        op: Op,
        inputs: Sequence[Value],
        attrs: Mapping[str, Any],
        *,
        place: Place | None = None,
        checked: bool = False,
    ) -> tuple[Value, ...]:
        if op.name == "transpose" and inputs[0] in self._products:
            left, right = [self._turn(value, place) for value in self._products[inputs[0]]]
            return self.emit(get("matmul"), (right, left), {}, place=place, checked=checked)
        found = self.builder.emit(op, inputs, attrs, place=place, checked=checked)
        if op.name == "transpose" and _is_matrix(found[0]):
            self._turned[found[0]] = inputs[0]
        elif op.name == "matmul" and all(map(_is_matrix, inputs)):
            self._products[found[0]] = inputs
        elif op.name == "zeros":
            self._zeros.add(found[0])
        elif op.name in ("update", "scatter_add") and inputs[0] in self._zeros:
            self._stored[found[0]] = (op, inputs[1:], attrs)
            piece = piece_of(op, inputs[0], inputs[1:], attrs)
            if piece is not None:
                self._pieces[found[0]] = piece
        return found

    def constant(self, concrete: Any, place: Place | None = None) -> Value:
        return self.builder.constant(concrete, place)

    def _turn(self, matrix: Value, place: Place | None) -> Value:
        """The transpose of a matrix."""
        known = self._turned.get(matrix)
        if known is not None:
            return known
        return self.emit(get("transpose"), (matrix,), {"axes": (1, 0)}, place=place)[0]

    def sum(self, so_far: Value, part: Value, place: Place) -> Value:
        """Record `so_far + part`."""
        if part not in self._stored:
            return add(self, so_far, part, place)
        op, operands, attrs = self._stored[part]
        if so_far in self._pieces and part in self._pieces:
            both = self._pieces[so_far].beside(self._pieces[part])
            if both is not None:
                return self._beside(both, so_far, part, place)
        return add_stored(self.builder, so_far, op, operands, attrs, place)

    def _beside(self, both: Pieces, so_far: Value, part: Value, place: Place) -> Value:
        """Record the sum of pieces that have no element in common."""
        found = both.joined(self, array_type(so_far.type), place)
        if found is None:
            op, operands, attrs = self._stored[part]
            (found,) = self.builder.emit(op, (so_far, *operands), attrs, place=place, checked=True)
            self._pieces[found] = both
        return found


def _is_matrix(value: Value) -> bool:
    return isinstance(value.type, ArrayType) and value.type.ndim == 2
