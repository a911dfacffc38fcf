"""How the elements of values lie in memory, as far as that is known without running anything.

It is no part of a type, yet a sum adds in the order of memory, so its last bits depend on it.  What
may not change the last bits may therefore not change this.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Sequence

import numpy as np

from minigraph.ir import (
    DENSE_VIEWS,
    ArrayType,
    Graph,
    Node,
    Value,
    carried_count,
    freeze,
    is_loop,
    operands,
    running_regions,
)

C_ORDER = "C"

C_FROM_C = {"elementwise", "reduce", "cumulate", "join", "random"}
"""Kinds whose results are in C order if all operands are."""

KEEPS_AXES = {
    *("barrier", "broadcast_to", "expand_dims", "imag", "real", "reshape", "slice", "squeeze"),
}
"""Views in which the axes follow each other as before."""

Lie = tuple[bool, bool]
"""How elements lie: in C order, and side by side."""


class MemoryOrder:
    """The order of the axes of each value, and whether its elements lie side by side.

    Attributes:
        axes: a token; values of one shape with equal tokens have their axes in the same order, and
            an elementwise op would make a result in that order of them.
        dense: the values without gaps, backward steps or repetition.
    """

    def __init__(
        self,
        inputs: Collection[Value],
        strided: Collection[Value] = (),
        gaps: Collection[Value] | None = None,
    ) -> None:
        gaps = strided if gaps is None else gaps
        self.axes: dict[Value, Hashable] = {
            value: value if value in strided else C_ORDER for value in inputs
        }
        self.dense: set[Value] = {value for value in inputs if value not in gaps}
        self._of_loops: dict[tuple[Node, tuple[Lie, ...]], list[Lie]] = {}

    def add(self, node: Node) -> None:
        """Take in the results of a node whose operands are known."""
        if node.op.kind == "control" and node.op.name not in ("kernel", "barrier"):
            for value, (in_c_order, is_dense) in zip(
                node.outputs, self._results(node), strict=True
            ):
                self.axes[value] = C_ORDER if in_c_order else value
                if is_dense:
                    self.dense.add(value)
            return
        for value in node.outputs:
            self.axes[value] = self._axes(node, value)
            source = node.inputs[0] if node.op.view and node.inputs else None
            if source is None or (node.op.name in DENSE_VIEWS and source in self.dense):
                self.dense.add(value)

    def after(self, nodes: Iterable[Node]) -> MemoryOrder:
        """This order, with what nodes make."""
        for node in nodes:
            self.add(node)
        return self

    def same(self, a: Value, b: Value) -> bool:
        """Whether two values of one type certainly lie in memory alike, without gaps."""
        if not isinstance(a.type, ArrayType) or not a.type.ndim:
            return True
        return self.axes[a] == self.axes[b] and a in self.dense and b in self.dense

    def is_c(self, value: Value) -> bool:
        """Whether the elements lie in C order, side by side."""
        return self.axes[value] == C_ORDER and value in self.dense

    def inside(self, node: Node, name: str) -> MemoryOrder:
        """The order at the start of a region; of a loop what holds at the start of each turn."""
        region: Graph = node.attrs[name]
        given = [self._lie(value) for value in operands(node)]
        if is_loop(node):
            given = self._at_each_turn(node, given)
        return self._starting(region, given)

    def _starting(self, region: Graph, given: Sequence[Lie]) -> MemoryOrder:
        pairs = list(zip(region.inputs, given, strict=True))
        found = MemoryOrder(
            region.inputs,
            strided=[value for value, (in_c_order, _) in pairs if not in_c_order],
            gaps=[value for value, (_, is_dense) in pairs if not is_dense],
        )
        found._of_loops = self._of_loops
        return found

    def _lie(self, value: Value) -> Lie:
        few_axes = not isinstance(value.type, ArrayType) or value.type.ndim < 2
        return few_axes or self.axes[value] == C_ORDER, value in self.dense

    def _outputs(self, region: Graph) -> list[Lie]:
        """How the outputs of a region lie whose inputs are known here."""
        for node in region.nodes:
            self.add(node)
        return [self._lie(value) for value in region.outputs]

    def _at_each_turn(self, node: Node, given: list[Lie]) -> list[Lie]:
        """What is the same at the start of each turn; what is carried lies side by side."""
        key = (node, tuple(given))
        if key not in self._of_loops:
            body: Graph = node.attrs["body"]
            count = carried_count(node)
            changed = True
            while changed:
                left = self._starting(body, given)._outputs(body)[:count]
                both = [(a and c, True) for (a, _), (c, _) in zip(given, left, strict=False)]
                changed = both != given[:count]
                given = [*both, *given[count:]]
            self._of_loops[key] = given
        return self._of_loops[key]

    def _results(self, node: Node) -> list[Lie]:
        """How the results of a node with regions lie."""
        if is_loop(node):
            turns = self._at_each_turn(node, [self._lie(value) for value in node.inputs])
            count = carried_count(node)
            return [*turns[:count], *[(True, True)] * (len(node.outputs) - count)]
        found = [self.inside(node, name)._outputs(region) for name, region in running_regions(node)]
        if node.op.name == "if":
            return [(a and c, True) for (a, _), (c, _) in zip(*found, strict=True)]
        return [lie for each in found for lie in each]

    def _axes(self, node: Node, value: Value) -> Hashable:
        if not isinstance(value.type, ArrayType) or value.type.ndim < 2:
            return C_ORDER
        if node.op.name == "const":
            return C_ORDER if np.asarray(node.attrs["value"]).flags.c_contiguous else value
        if node.op.name == "kernel" or (node.op.name == "copy" and node.attrs.get("order") == "C"):
            return C_ORDER
        if node.op.numpy in ("matmul", "dot") and value.type.ndim == 2:  # however operands lie
            return C_ORDER
        arrays = [v for v in node.inputs if isinstance(v.type, ArrayType) and v.type.ndim > 1]
        in_c_order = all(self.axes[v] == C_ORDER for v in arrays)
        if node.op.view:
            if in_c_order and node.op.name in KEEPS_AXES:
                return C_ORDER
            return (node.op, freeze(node.attrs), self.axes[arrays[0]] if arrays else C_ORDER)
        # Ufuncs leave repeated axes out of account; what else makes arrays may not.
        if not is_ufunc(node) and not self.dense.issuperset(arrays):
            return value
        known = node.op.kind in C_FROM_C or node.op.numpy in ("matmul", "dot") or _is_filled(node)
        if in_c_order and known:
            return C_ORDER
        if node.op.stores:
            return self.axes[node.inputs[0]]
        if node.op.kind == "elementwise":
            return self._axes_of_operands(value.type, arrays)
        return value

    def _axes_of_operands(self, type_: ArrayType, arrays: Sequence[Value]) -> Hashable:
        """The order of operands that have the result's shape; of several, C order wins.

        Operands that are stretched may have a say, too, if they have more than one axis.
        """
        same = {v for v in arrays if isinstance(v.type, ArrayType) and v.type.shape == type_.shape}
        orders = {self.axes[v] for v in same}
        if C_ORDER in orders:
            return C_ORDER
        known = len(orders) == 1 and len(same) == len(set(arrays))
        return orders.pop() if known else (type_, frozenset(arrays))


def _is_filled(node: Node) -> bool:
    """It makes an array of sizes and numbers alone."""
    return node.op.kind == "create" and not any(
        isinstance(value.type, ArrayType) and value.type.ndim for value in node.inputs
    )


def is_ufunc(node: Node) -> bool:
    """NumPy runs it as an elementwise ufunc, or by the same iterator."""
    return node.op.kind == "elementwise" and isinstance(node.op.numpy, str)
