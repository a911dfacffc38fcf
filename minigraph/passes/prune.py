"""Dead results and operands of regions: what nobody needs is not handed in, on or out.

    graph f(%x: f64[3], %n: int) {
      %0 = const 0                 : int
      %i, %a, %b, %c = while %0, %x, %x, %x, %n {test=graph test(%i: int, %a: f64[3], %b: f64[3], \
%c: f64[3], %n: int) {
        %more = less %i, %n          : bool
        return %more
      }, body=graph body(%i: int, %a: f64[3], %b: f64[3], %c: f64[3], %n: int) {
        %one = const 1               : int
        %j = add %i, %one            : int
        %p = sin %b                  : f64[3]
        %q = cos %b                  : f64[3]
        %r = add %c, %q              : f64[3]
        return (%j, %p, %q, %r)
      }} : int, f64[3], f64[3], f64[3]
      return %a
    }

becomes

    graph f(%x: f64[3], %n: int) {
      %0 = const 0                 : int
      %i, %a, %b = while %0, %x, %x, %n {test=graph test(%i: int, %a: f64[3], %b: f64[3], \
%n: int) {
        %more = less %i, %n          : bool
        return %more
      }, body=graph body(%i: int, %a: f64[3], %b: f64[3], %n: int) {
        %one = const 1               : int
        %j = add %i, %one            : int
        %p = sin %b                  : f64[3]
        %q = cos %b                  : f64[3]
        return (%j, %p, %q)
      }} : int, f64[3], f64[3]
      return %a
    }

for `%c` is needed to compute the next `%c` only.

Legality: needed is what leads to a result of the graph, to an effect (also one inside), or to the
test of a loop.  What may raise is an effect.  A loop without effects of which nothing is needed is
dead, and left to `dce`, although it might not have ended: only how long it takes could be seen.

Cost: each value of each region is looked at once, see `needed.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minigraph.ir import Graph, Node, Value, carried_count, first_operand, operands, scanned_count

from .needed import Scope, needed
from .recorder import Recorder
from .regions import in_regions_of


def prune(graph: Graph, recorder: Recorder) -> Graph:
    """Leave out of `if`s and loops what is not needed."""
    if not any(any(True for _ in node.regions) for node in graph.nodes):
        return graph
    scope = needed(graph)
    nodes = _nodes(scope, recorder)
    return graph if _same(nodes, graph.nodes) else graph.replace(nodes)


def _nodes(scope: Scope, recorder: Recorder) -> list[Node]:
    """The nodes of a graph, narrowed; those of a region without dead ones."""
    nodes: list[Node] = []
    for node in scope.graph.nodes:
        if scope.holder is not None and node not in scope.live:
            recorder.removed(node, "prune.dead", "inside, nothing that is needed reads it")
        elif node in scope.regions:
            nodes.append(_narrowed(scope, node, recorder))
        else:
            nodes.append(in_regions_of(node, prune, recorder))
    return nodes


def _narrowed(scope: Scope, node: Node, recorder: Recorder) -> Node:
    """An `if` or a loop without operands, results and inner nodes that are not needed."""
    regions = scope.regions[node]
    given, first = operands(node), first_operand(node)
    carried, scanned = carried_count(node), scanned_count(node)
    taken = [
        at
        for at in range(len(given))
        if any(inner.graph.inputs[at] in inner.needed for inner in regions.values())
        or (at < carried and node.outputs[at] in scope.needed)
    ]
    kept = {at for at in taken if at < carried}
    left = [at for at, v in enumerate(node.outputs) if v in scope.needed or at in kept]
    changed: dict[str, Any] = {}
    for name, inner in regions.items():
        region = _region(inner, taken, None if name == "test" else left, recorder)
        if region is not inner.graph:
            changed[name] = region
    if not changed:
        return node
    if node.op.name == "scan":
        changed["carried"] = sum(at < carried for at in taken)
        changed["scanned"] = sum(carried <= at < carried + scanned for at in taken)
    narrow = recorder.remake(
        node,
        inputs=[*node.inputs[:first], *(given[at] for at in taken)],
        attrs={**node.attrs, **changed},
        outputs=[node.outputs[at] for at in left],
    )
    why = _why(node, set(taken), set(left))
    if why:
        recorder.replaced(node, narrow, "prune.narrow", why)
    return narrow


def _region(
    scope: Scope, taken: Sequence[int], left: Sequence[int] | None, recorder: Recorder
) -> Graph:
    """A region with some of its inputs and outputs (None: with all of these)."""
    graph = scope.graph
    nodes = _nodes(scope, recorder)
    inputs = [graph.inputs[at] for at in taken]
    outputs = graph.outputs if left is None else [graph.outputs[at] for at in left]
    if len(inputs) == len(graph.inputs) and len(outputs) == len(graph.outputs):
        return graph if _same(nodes, graph.nodes) else graph.replace(nodes)
    return Graph(graph.name, inputs, nodes, outputs)


def _why(node: Node, taken: set[int], left: set[int]) -> str:
    """What was left out, in words."""
    carried = carried_count(node)
    turns = [v for at, v in enumerate(node.outputs[:carried]) if at not in left]
    results = [v for at, v in enumerate(node.outputs) if at >= carried and at not in left]
    unread = [v for at, v in enumerate(operands(node)) if at >= carried and at not in taken]
    said = (
        (turns, "needed for nothing but the next turn"),
        (results, "needed by nobody"),
        (unread, "read inside by nobody"),
    )
    return "; ".join(f"{_names(values)}: {what}" for values, what in said if values)


def _names(values: Sequence[Value]) -> str:
    return ", ".join(dict.fromkeys(f"%{value.name}" for value in values))


def _same(nodes: Sequence[Node], before: Sequence[Node]) -> bool:
    return len(nodes) == len(before) and all(a is b for a, b in zip(nodes, before, strict=True))
