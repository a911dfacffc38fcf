"""Arrays of one number throughout, in elementwise ops: the number itself, so that none is read.

    %0 = zeros {shape=(3,)}
    %1 = add %x, %0

of `%x: f64[3]` is

    %2 = const np.float64(0.0)
    %1 = add %x, %2
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minigraph.errors import MinigraphError
from minigraph.ir import ArrayType, Graph, Node, Value, type_of
from minigraph.ops import get, infer

from .dce import dead_nodes
from .order import C_ORDER
from .recorder import Recorder

OTHERWISE = ("pow", "power", "clip")
"""Ops that NumPy computes in another way if an operand is a number."""


def without_fills(graph: Graph, recorder: Recorder) -> Graph:
    """The graph with numbers for filled arrays, where a kernel will read them.

    The type of the result must be the same, and the order of its elements: a filled array takes
    part in choosing it, so that the other operands have to lie in C order.
    """
    fills = _Fills(graph, recorder)
    nodes = [each for node in graph.nodes for each in fills.added(node)]
    if len(nodes) == len(graph.nodes):
        return graph
    read = set(graph.outputs)
    unread = set(fills.replaced)  # if nobody else reads them
    kept: list[Node] = []
    for node in reversed(nodes):
        if node.outputs and node.outputs[0] in unread and node.outputs[0] not in read:
            recorder.removed(node, "fuse.fill", "only its one number is read")
            unread.update(node.inputs)
        else:
            kept.append(node)
            read.update(node.inputs)
    return graph.replace(reversed(kept))


class _Fills:
    """One sweep over a graph.

    Attributes:
        replaced: for each filled array that was read as a number that number.
    """

    def __init__(self, graph: Graph, recorder: Recorder) -> None:
        self.recorder = recorder
        self.order = recorder.options.order(graph)
        self.dead = dead_nodes(graph)
        self.constants: dict[Value, Any] = {}
        self.filled: dict[Value, Any] = {}
        self.replaced: dict[Value, Value] = {}

    def added(self, node: Node) -> list[Node]:
        """A node as it is now, and the number that it reads if that is new."""
        self.order.add(node)
        if node.op.name == "const":
            self.constants[node.output] = node.attrs["value"]
        elif node.op.kind == "create" and not node.may_raise:
            self._learn(node)
        elif node.op.kind == "elementwise" and not self.filled.keys().isdisjoint(node.inputs):
            return self._with_numbers(node)
        return [node]

    def _learn(self, node: Node) -> None:
        """Take in a node that makes an array of one number."""
        type_ = node.output.type
        assert isinstance(type_, ArrayType)
        number: Any = {"zeros": 0, "empty": 0, "ones": 1}.get(node.op.name)
        if node.op.name == "full":
            number = self.constants.get(node.inputs[0])
        if number is not None and np.ndim(number) == 0 and type_.ndim:
            self.filled[node.output] = np.asarray(number).astype(type_.dtype)[()]

    def _with_numbers(self, node: Node) -> list[Node]:
        others = [v for v in node.inputs if v not in self.filled]
        stays = node.op.name in OTHERWISE or node.is_effect or node in self.dead
        if stays or not all(map(self._is_c, others)):
            return [node]
        made: list[Node] = []
        numbers = dict(self.replaced)
        for value in node.inputs:
            if value in self.filled and value not in numbers:
                number = self.filled[value]
                numbers[value] = self.recorder.ids.value(type_of(number))
                made.append(self._constant(node, numbers[value], number))
        inputs = [numbers.get(value, value) for value in node.inputs]
        try:
            found = infer(node.op, [value.type for value in inputs], node.attrs)
        except MinigraphError:
            return [node]
        new = self.recorder.remake(node, inputs=inputs)
        known = {value: self.constants[value] for value in inputs if value in self.constants}
        known |= {each.output: each.attrs["value"] for each in made}
        fits = found == tuple(v.type for v in node.outputs)
        if not fits or self.recorder.options.cannot_fuse(new, known):
            return [node]
        self.replaced = numbers
        names = ", ".join(f"%{value.name}" for value in node.inputs if value in self.filled)
        self.recorder.replaced(node, [*made, new], "fuse.fill", f"{names} holds one number")
        return [*made, new]

    def _constant(self, node: Node, value: Value, number: Any) -> Node:
        return self.recorder.remake(
            node, op=get("const"), inputs=(), attrs={"value": number}, outputs=(value,)
        )

    def _is_c(self, value: Value) -> bool:
        return self.order.axes[value] == C_ORDER
