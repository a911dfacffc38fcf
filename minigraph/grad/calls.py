"""Through `call`: by the backward graph that it brings, or by computing its body once more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from minigraph.errors import UnsupportedError
from minigraph.ir import ArrayType, Graph, Node, Value
from minigraph.ops import cotangent_type
from minigraph.passes import does_something

from .building import add, zeros
from .regions import Scope, inlined, without


def through_call(
    scope: Scope, node: Node, cotangents: Sequence[Value | None], needs: Sequence[bool]
) -> list[Value | None]:
    """The cotangents of the inputs."""
    results: int = node.attrs.get("results", len(node.outputs))
    # A second derivative may also go through what was saved for the first.
    if "backward" not in node.attrs or any(cotangents[results:]):
        return _recomputed(scope, node, cotangents, needs)
    given = [
        g if g is not None else zeros(scope.builder, value.type, scope.place)
        for value, g in zip(node.outputs[:results], cotangents, strict=False)
        if cotangent_type(value.type) is not None
    ]
    outside = [node.inputs[at] for at in node.attrs.get("outside", ()) if needs[at]]
    if outside:
        raise UnsupportedError(
            f"a function with a gradient of its own brings none by %{outside[0].name} "
            f"({outside[0].type}), which it reads",
            where=node.loc,
            instead="an argument with a gradient, or mg.stop_gradient of it",
        )
    graph: Graph = node.attrs["backward"]
    now = dict(zip(graph.inputs, (*node.inputs, *node.outputs, *given), strict=True))
    found: list[Value | None] = [None] * len(node.inputs)
    gradients = inlined(scope.builder, graph, now)
    for at, value in zip(node.attrs["wanted"], gradients, strict=True):
        found[at] = value
    return found


def _recomputed(
    scope: Scope, call: Node, cotangents: Sequence[Value | None], needs: Sequence[bool]
) -> list[Value | None]:
    """The body once more, not before its cotangents are there, and differentiated.

    What it does to the world is not done again: the results of that are among those of the call.
    """
    body = without(call.attrs["body"], scope.paused)
    waited = next(g for g in cotangents if g is not None)
    inputs = [
        scope.op("barrier", value, waited) if isinstance(value.type, ArrayType) else value
        for value in call.inputs
    ]
    now = dict(zip(body.inputs, inputs, strict=True))
    nodes = _again(scope, body, now, dict(zip(body.outputs, call.outputs, strict=True)))
    sums: dict[Value, Value] = {}
    for value, g in zip(body.outputs, cotangents, strict=True):
        if g is not None:
            so_far, value = sums.get(now[value]), now[value]
            sums[value] = g if so_far is None else add(scope.builder, so_far, g, scope.place)
    needed = [value for value, need in zip(inputs, needs, strict=True) if need]
    found = iter(scope.sweep(scope.builder, nodes, sums, needed))
    return [next(found) if need else None for need in needs]


def _again(
    scope: Scope, body: Graph, now: dict[Value, Value], done: Mapping[Value, Value]
) -> list[Node]:
    """The nodes of a body recorded once more, but for what they do to the world.

    Args:
        scope: where they are recorded.
        body: what is recorded.
        now: what its inputs are; its other values are entered.
        done: what its outputs were the first time.
    """
    nodes: list[Node] = []
    for node in body.nodes:
        operands = [now[value] for value in node.inputs]
        if does_something(node):
            outputs = _taken(node, done)
        else:
            outputs = scope.builder.emit(
                node.op, operands, node.attrs, place=(node.loc, ()), checked=True
            )
        now.update(zip(node.outputs, outputs, strict=True))
        nodes.append(Node(-1, node.op, operands, node.attrs, outputs, node.loc))
    return nodes


def _taken(node: Node, done: Mapping[Value, Value]) -> list[Value]:
    """What an effect gave the first time."""
    for value in node.outputs:
        if value not in done:
            raise UnsupportedError(
                f"`{node.op.name}` would have to be done a second time to differentiate twice",
                where=node.loc,
                instead="mg.grad(mg.grad(f)), which sees both derivatives at once",
            )
    return [done[value] for value in node.outputs]
