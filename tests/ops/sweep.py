"""A reverse sweep over a small graph, for the tests of the rules themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from minigraph import ops
from minigraph.ir import Graph, Ids, Node, Op, Value
from minigraph.ops import cotangent_type, derive


class Recorder:
    """Records nodes behind those of a graph."""

    def __init__(self, graph: Graph) -> None:
        self.ids = Ids.after(graph)
        self.nodes = list(graph.nodes)

    def emit(
        self,
        op: Op,
        inputs: Sequence[Value],
        attrs: Mapping[str, Any],
        *,
        place: Any = None,
        checked: bool = False,
    ) -> tuple[Value, ...]:
        types = ops.infer(op, [value.type for value in inputs], attrs)
        outputs = tuple(self.ids.value(type_) for type_ in types)
        node = Node(self.ids.next(), op, inputs, attrs, outputs)
        if checked and node.may_raise:
            node = Node(node.id, op, inputs, {**attrs, "safe": True}, outputs)
        self.nodes.append(node)
        return outputs

    def constant(self, concrete: Any, place: Any = None) -> Value:
        return self.emit(ops.get("const"), (), {"value": concrete})[0]


def gradient(graph: Graph, wanted: Sequence[int]) -> Graph:
    """`(inputs, cotangents of the outputs that have one) -> cotangents of the wanted inputs`."""
    builder = Recorder(graph)
    found: dict[Value, Value] = {}
    seeds: list[Value] = []
    for output in graph.outputs:
        type_ = cotangent_type(output.type)
        if type_ is not None:
            seeds.append(builder.ids.value(type_))
            found[output] = seeds[-1]
    inside = {graph.inputs[index] for index in wanted}
    for node in graph.nodes:
        if not inside.isdisjoint(node.inputs):
            inside.update(v for v in node.outputs if cotangent_type(v.type) is not None)
    for node in reversed(graph.nodes):
        cotangents = [found.get(value) for value in node.outputs]
        needs = [value in inside for value in node.inputs]
        if not any(needs) or not any(cotangents):
            continue
        for value, term in zip(node.inputs, derive(builder, node, cotangents, needs), strict=True):
            if term is not None and value in found:
                (term,) = builder.emit(ops.get("add"), [found[value], term], {})
            if term is not None:
                found[value] = term
    results = []
    for index in wanted:
        value = graph.inputs[index]
        type_ = cotangent_type(value.type)
        assert type_ is not None
        if value not in found:
            attrs = {"shape": type_.shape} | (
                {} if type_.dtype == float else {"dtype": type_.dtype}
            )
            (found[value],) = builder.emit(ops.get("zeros"), (), attrs)
        results.append(found[value])
    return Graph("gradient", [*graph.inputs, *seeds], builder.nodes, results)
