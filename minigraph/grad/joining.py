"""Joint graphs: a graph with its derivative."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from minigraph.ir import Graph, Node, Value, storage_roots, written_operands
from minigraph.ops import cotangent_type, get

from .building import GraphBuilder, Rebuilder, add, zeros


class Sweep(Protocol):
    """`sweep.backward`."""

    def __call__(
        self,
        builder: Rebuilder,
        nodes: Sequence[Node],
        cotangents: Mapping[Value, Value],
        wanted: Sequence[Value],
        paused: Collection[Node] = (),
    ) -> list[Value | None]: ...


def join(
    sweep: Sweep,
    graph: Graph,
    wanted: Sequence[int],
    given: Sequence[int],
    paused: Collection[Node] = (),
) -> Graph:
    """A graph with its derivative.

    Args:
        sweep: what records it.
        graph: what to differentiate.
        wanted: positions of the inputs whose gradients are asked for.
        given: positions of the outputs whose cotangents are given.
        paused: nodes through which no gradient flows.

    Returns:
        (inputs, cotangents of `given`) -> (outputs, gradients of `wanted`).

    Raises:
        UnsupportedError: an op on the way has no rule (with the user's line).
    """
    builder = GraphBuilder(graph)
    cotangents: list[Value] = []
    sums: dict[Value, Value] = {}
    for at in given:
        value = graph.outputs[at]
        type_ = cotangent_type(value.type)
        assert type_ is not None, value
        cotangents.append(builder.ids.value(type_, value.hint and f"d{value.hint}"))
        sums[value] = (
            cotangents[-1] if value not in sums else add(builder, sums[value], cotangents[-1])
        )
    targets = [graph.inputs[at] for at in wanted]
    nodes = [node for node in builder.nodes if node not in paused]
    found = sweep(builder, nodes, sums, targets, paused)
    gradients = [
        zeros(builder, target.type) if value is None else value
        for target, value in zip(targets, found, strict=True)
    ]
    nodes = _before_writes(builder)
    return Graph(
        f"{graph.name}_joint",
        [*graph.inputs, *cotangents],
        nodes,
        [*graph.outputs, *gradients],
    )


def _before_writes(builder: GraphBuilder) -> list[Node]:
    """The nodes, where new ones read what an argument held before it was written."""
    count = builder.count
    written = {value for node in builder.nodes[:count] for value in written_operands(node)}
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
