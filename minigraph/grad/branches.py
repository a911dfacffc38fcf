"""Through `if`: an `if` of the same condition, whose branches compute the operands' cotangents.

    %y = if %positive, %x {
        then=graph then(%x: f64[3]) { %y = exp %x          : f64[3]  return %y },
        otherwise=graph otherwise(%x: f64[3]) { return %x }} : f64[3]

has, where `%dy` is the cotangent of `%y`,

    %dx = if %positive, %y, %dy {
        then=graph then(%y: f64[3], %dy: f64[3]) { %0 = multiply %dy, %y : f64[3]  return %0 },
        otherwise=graph otherwise(%y: f64[3], %dy: f64[3]) { return %dy }} : f64[3]

What a branch needs of what it computed it computes again or saves, as `partition` says; what is
saved becomes a further result of the `if`.  The branches share these results where the types are
the same; a result that the other branch has nothing for is zeros there.
"""

from __future__ import annotations

from collections.abc import Sequence

from minigraph.ir import ArrayType, Graph, Ids, Node, ScalarType, Type, Value
from minigraph.ops import cotangent_type, get

from .partition import Partition
from .reach import leading
from .regions import Scope, halves, read_by

BRANCHES = ("then", "otherwise")


def through_if(
    scope: Scope, node: Node, cotangents: Sequence[Value | None], needs: Sequence[bool]
) -> list[Value | None]:
    """The cotangents of the condition (None) and of the operands."""
    node = scope.now(node)
    regions: list[Graph] = [node.attrs[name] for name in BRANCHES]
    given = [at for at, g in enumerate(cotangents) if g is not None]
    wanted = [
        at
        for at, value in enumerate(node.inputs[1:])
        if needs[at + 1]
        and cotangent_type(value.type) is not None
        and any(_leads(region, at, given) for region in regions)
    ]
    if not wanted:
        return [None] * len(node.inputs)
    parts = [halves(scope, region, wanted, given) for region in regions]
    slots, places = _slots(parts)
    forward = [_forward(part, slots, own) for part, own in zip(parts, places, strict=True)]
    saved: Sequence[Value] = ()
    if slots:
        saved = scope.more(node, dict(zip(BRANCHES, forward, strict=True)))
    count = len(node.inputs) - 1 + len(node.outputs)
    backward = [_backward(part, count, slots, own) for part, own in zip(parts, places, strict=True)]
    given_now = [g for g in cotangents if g is not None]
    everything = [*node.inputs[1:], *node.outputs, *saved, *given_now]
    read = read_by(*backward)
    kept = [at for at in range(len(everything)) if any(b.inputs[at] in read for b in backward)]
    found = scope.emit(
        "if",
        [node.inputs[0], *(everything[at] for at in kept)],
        {
            name: Graph(name, [graph.inputs[at] for at in kept], graph.nodes, graph.outputs)
            for name, graph in zip(BRANCHES, backward, strict=True)
        },
    )
    parts_of = dict(zip(wanted, found, strict=True))
    return [None, *(parts_of.get(at) for at in range(len(node.inputs) - 1))]


def _leads(region: Graph, at: int, given: Sequence[int]) -> bool:
    return region.inputs[at] in leading(region.nodes, [region.outputs[each] for each in given])


def _slots(parts: Sequence[Partition]) -> tuple[list[Type], list[dict[int, Value]]]:
    """The types of the further results, and for each branch which of its values go into which."""
    slots: list[Type] = []
    places: list[dict[int, Value]] = []
    for part in parts:
        own: dict[int, Value] = {}
        for value in part.saved_values:
            free = (at for at, type_ in enumerate(slots) if type_ == value.type and at not in own)
            at = next(free, len(slots))
            if at == len(slots):
                slots.append(value.type)
            own[at] = value
        places.append(own)
    return slots, places


def _forward(part: Partition, slots: Sequence[Type], own: dict[int, Value]) -> Graph:
    """The branch, with a result for each slot."""
    graph = part.forward
    ids, nodes = Ids.after(graph), list(graph.nodes)
    results = list(graph.outputs[: len(graph.outputs) - part.saved])
    for at, type_ in enumerate(slots):
        if at in own:
            results.append(own[at])
        else:
            nodes.append(_nothing(ids, type_))
            results.append(nodes[-1].output)
    return Graph(graph.name, graph.inputs, nodes, results)


def _nothing(ids: Ids, type_: Type) -> Node:
    """What stands for a value that only the other branch has."""
    output = ids.value(type_)
    if isinstance(type_, ArrayType):
        attrs = {"shape": type_.shape, "dtype": type_.dtype}
        return Node(ids.next(), get("zeros"), (), attrs, [output])
    assert isinstance(type_, ScalarType), type_
    return Node(ids.next(), get("const"), (), {"value": type_.python()}, [output])


def _backward(part: Partition, count: int, slots: Sequence[Type], own: dict[int, Value]) -> Graph:
    """The gradients of a branch, as a function of operands, results, slots and cotangents."""
    graph = part.backward
    ids = Ids.after(graph)
    saved = dict(zip(part.saved_values, graph.inputs[count:], strict=False))
    inputs = [saved[own[at]] if at in own else ids.value(type_) for at, type_ in enumerate(slots)]
    return Graph(
        graph.name,
        [*graph.inputs[:count], *inputs, *graph.inputs[count + part.saved :]],
        graph.nodes,
        graph.outputs,
    )
