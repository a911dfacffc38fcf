"""Joint graphs: a graph with its derivative."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from minigraph.ir import Graph, Ids, Node, Op, Value, freeze, storage_roots
from minigraph.ops import cotangent_type, get, infer

from .sweep import Place, add, backward, zeros


class GraphBuilder:
    """Adds nodes to those of a graph."""

    def __init__(self, graph: Graph) -> None:
        self.ids = Ids.after(graph)
        self.nodes = list(graph.nodes)
        self._constants: dict[Any, Value] = {}

    def emit(
        self,
        op: Op,
        inputs: Sequence[Value],
        attrs: Mapping[str, Any],
        *,
        place: Place | None = None,
        checked: bool = False,
    ) -> tuple[Value, ...]:
        types = infer(op, [value.type for value in inputs], attrs)
        loc, names = place or (None, ())
        outputs = [
            self.ids.value(type_, names[at] if at < len(names) else None)
            for at, type_ in enumerate(types)
        ]
        node = Node(self.ids.next(), op, inputs, attrs, outputs, loc)
        if checked and node.may_raise:
            node = Node(node.id, op, inputs, {**attrs, "safe": True}, outputs, loc)
        self.nodes.append(node)
        return tuple(outputs)

    def constant(self, concrete: Any, place: Place | None = None) -> Value:
        key = (type(concrete), freeze(concrete))
        if key not in self._constants:
            attrs = {"value": concrete}
            (self._constants[key],) = self.emit(get("const"), (), attrs, place=place)
        return self._constants[key]


def joint(
    graph: Graph, wanted: Sequence[int] | None = None, paused: Collection[Node] = ()
) -> Graph:
    """A graph with its derivative.

    Args:
        graph: what to differentiate.
        wanted: positions of the inputs whose gradients are asked for; all that have one.
        paused: nodes through which no gradient flows.

    Returns:
        (inputs, cotangents of the outputs that have one) -> (outputs, gradients of `wanted`).

    Raises:
        UnsupportedError: an op on the way has no rule (with the user's line).
    """
    if wanted is None:
        wanted = differentiable(graph.inputs)
    builder = GraphBuilder(graph)
    cotangents: list[Value] = []
    sums: dict[Value, Value] = {}
    for value in graph.outputs:
        type_ = cotangent_type(value.type)
        if type_ is not None:
            cotangents.append(builder.ids.value(type_, value.hint and f"d{value.hint}"))
            sums[value] = (
                cotangents[-1] if value not in sums else add(builder, sums[value], cotangents[-1])
            )
    targets = [graph.inputs[at] for at in wanted]
    nodes = [node for node in builder.nodes if node not in paused]
    found = backward(builder, nodes, sums, targets)
    gradients = [
        zeros(builder, target.type) if value is None else value
        for target, value in zip(targets, found, strict=True)
    ]
    nodes = _before_writes(builder, len(graph.nodes))
    return Graph(
        f"{graph.name}_joint",
        [*graph.inputs, *cotangents],
        nodes,
        [*graph.outputs, *gradients],
    )


def differentiable(values: Sequence[Value]) -> list[int]:
    """The positions of the values that have a gradient."""
    return [at for at, value in enumerate(values) if cotangent_type(value.type) is not None]


def _before_writes(builder: GraphBuilder, count: int) -> list[Node]:
    """The nodes, where those from `count` on read what an argument held before it was written."""
    written = {node.inputs[0] for node in builder.nodes[:count] if node.op.name == "write"}
    if not written:
        return builder.nodes
    root = storage_roots(Graph("before", (), builder.nodes[:count], ()))
    kept: dict[Value, Value] = {}
    later: list[Node] = []
    for node in builder.nodes[count:]:
        for value in node.inputs:
            if value not in kept and root.get(value, value) in written:
                kept[value] = builder.ids.value(value.type)
        inputs = [kept.get(value, value) for value in node.inputs]
        later.append(Node(node.id, node.op, inputs, node.attrs, node.outputs, node.loc))
    made = {value for node in builder.nodes for value in node.outputs}
    nodes = [_copied(builder, value, kept) for value in kept if value not in made]
    for node in builder.nodes[:count]:
        nodes.append(node)
        nodes += [_copied(builder, value, kept) for value in node.outputs if value in kept]
    return [*nodes, *later]


def _copied(builder: GraphBuilder, value: Value, kept: Mapping[Value, Value]) -> Node:
    return Node(builder.ids.next(), get("copy"), [value], {}, [kept[value]])
