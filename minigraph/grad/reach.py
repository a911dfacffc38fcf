"""Which values change with which: forth, for what a gradient flows to; back, for what it needs.

Both look into regions.  What a loop carries changes with whatever changes it in any turn.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

from minigraph.ir import Graph, Node, Value, carried_count, is_loop, operands
from minigraph.ops import ZERO, cotangent_type, is_complex


def influenced(nodes: Iterable[Node], sources: Iterable[Value]) -> set[Value]:
    """These values, and those that change with them: whose gradient flows back to them.

    Through complex numbers too, so that they are refused on the way back.
    """
    reached = set(sources)
    for node in nodes:
        if not reached.isdisjoint(node.inputs) and node.op.vjp is not ZERO:
            reached.update(value for value in _outputs(node, reached) if _flows(value))
    return reached


def leading(nodes: Sequence[Node], targets: Iterable[Value]) -> set[Value]:
    """These values, and those that they change with."""
    found = set(targets)
    for node in reversed(nodes):
        if not found.isdisjoint(node.outputs) and node.op.vjp is not ZERO:
            found.update(value for value in _inputs(node, found) if _flows(value))
    return found


def _flows(value: Value) -> bool:
    return cotangent_type(value.type) is not None or is_complex(value.type)


def _outputs(node: Node, reached: set[Value]) -> Collection[Value]:
    """The outputs of a node that may change with these values."""
    if is_loop(node):
        body: Graph = node.attrs["body"]
        return _paired(body.outputs, node.outputs, loop_reached(node, reached))
    regions = _regions(node)
    if not regions:
        return node.outputs
    found: list[Value] = []
    for region, inputs, outputs in regions:
        within = influenced(region.nodes, _paired(inputs, region.inputs, reached))
        found += _paired(region.outputs, outputs, within)
    return found


def _inputs(node: Node, wanted: set[Value]) -> Collection[Value]:
    """The inputs of a node with which these values may change."""
    if is_loop(node):
        body: Graph = node.attrs["body"]
        return _paired(body.inputs, node.inputs, loop_leading(node, wanted))
    regions = _regions(node)
    if not regions:
        return node.inputs
    found: list[Value] = []
    for region, inputs, outputs in regions:
        within = leading(region.nodes, _paired(outputs, region.outputs, wanted))
        found += _paired(region.inputs, inputs, within)
    return found


def loop_reached(node: Node, reached: Collection[Value]) -> set[Value]:
    """The values of a loop's body that change with these ones outside, in any turn.

    What is carried through a loop that may have no turns is one of them, whatever a turn does.
    """
    body: Graph = node.attrs["body"]
    found = _settled(
        _paired(node.inputs, body.inputs, reached),
        lambda found: influenced(body.nodes, found),
        [(after, before) for after, before in _carried(node)],
    )
    if _may_have_no_turns(node):
        found.update(after for after, before in _carried(node) if before in found)
    return found


def loop_leading(node: Node, wanted: Collection[Value]) -> set[Value]:
    """The values of a loop's body with which these results of it change, in any turn.

    Here too what is carried through a loop that may have no turns is one of them.
    """
    body: Graph = node.attrs["body"]
    found = _settled(
        _paired(node.outputs, body.outputs, wanted),
        lambda found: leading(body.nodes, found),
        [(before, after) for after, before in _carried(node)],
    )
    if _may_have_no_turns(node):
        found.update(before for after, before in _carried(node) if after in found)
    return found


def _may_have_no_turns(node: Node) -> bool:
    return node.op.name == "while" or not isinstance(node.attrs["length"], int)


def _carried(node: Node) -> Iterable[tuple[Value, Value]]:
    """What the body returns, and what that is in the next turn."""
    body: Graph = node.attrs["body"]
    return zip(body.outputs[: carried_count(node)], body.inputs, strict=False)


def _settled(
    found: Collection[Value],
    spread: Callable[[Collection[Value]], set[Value]],
    steps: Sequence[tuple[Value, Value]],
) -> set[Value]:
    """What is found once another turn finds nothing new; `steps` lead from turn to turn."""
    seen = spread(found)
    while True:
        more = {to for from_, to in steps if from_ in seen and to not in seen and _flows(to)}
        if not more:
            return seen
        seen = spread(seen | more)


def _regions(node: Node) -> list[tuple[Graph, Sequence[Value], Sequence[Value]]]:
    """The regions that say what a node does, with its inputs and outputs that are theirs."""
    if node.op.name == "if":
        both: list[Graph] = [node.attrs["then"], node.attrs["otherwise"]]
        return [(branch, operands(node), node.outputs) for branch in both]
    if node.op.name == "call" and "backward" not in node.attrs:
        return [(node.attrs["body"], node.inputs, node.outputs)]
    return []


def _paired(
    values: Sequence[Value], others: Sequence[Value], chosen: Collection[Value]
) -> list[Value]:
    """The values that stand where a chosen one does."""
    return [other for value, other in zip(values, others, strict=True) if value in chosen]


class Wanted:
    """Which cotangents go through a loop.

    Attributes:
        carried: positions of what is carried whose cotangents are carried.
        others: positions of the other inputs whose cotangents are asked for.
        stacked: positions of the stacked results whose cotangents are given.
    """

    def __init__(
        self,
        node: Node,
        cotangents: Sequence[Value | None],
        needs: Sequence[bool],
    ) -> None:
        body: Graph = node.attrs["body"]
        carried = carried_count(node)
        given = {v for v, g in zip(node.outputs, cotangents, strict=True) if g is not None}
        sources = {v for v, need in zip(node.inputs, needs, strict=True) if need}
        leads, reached = loop_leading(node, given), loop_reached(node, sources)
        through = [
            at
            for at, value in enumerate(body.inputs)
            if value in leads and value in reached and cotangent_type(value.type) is not None
        ]
        ends = [at for at in range(carried) if node.outputs[at] in given]
        self.carried = sorted(
            {*(at for at in through if at < carried)}
            | {at for at in ends if body.outputs[at] in reached}
        )
        self.others = [at for at in through if at >= carried and needs[at]]
        self.stacked = [
            at for at, value in enumerate(node.outputs) if at >= carried and value in given
        ]
