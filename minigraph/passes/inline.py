"""Inlining: the body of a `call` takes its place.

    graph f(%x: f64[3]) {
      %0 = exp %x                  : f64[3]
      %1, %2 = call %0 {body=graph body(%a: f64[3]) {
        %b = sin %a                  : f64[3]
        %c = multiply %a, %b         : f64[3]
        return (%c, %b)
      }, results=1} : f64[3], f64[3]
      %3 = add %1, %x              : f64[3]
      return %3
    }

becomes

    graph f(%x: f64[3]) {
      %0 = exp %x                  : f64[3]
      %2 = sin %0                  : f64[3]
      %1 = multiply %0, %2         : f64[3]
      %3 = add %1, %x              : f64[3]
      return %3
    }

Legality: a call means what its body means, in the same place.  It is a lowering, not to be done
earlier: while it stands, the body is differentiated as one, and nothing in it is merged with what
computes the same elsewhere, so that what is recomputed to save memory stays recomputed.

Cost: each node of a body is copied once.
"""

from __future__ import annotations

from minigraph.ir import Graph, Node, Value, walk

from .recorder import Recorder
from .regions import in_regions, overwritten, spliced


def inline(graph: Graph, recorder: Recorder) -> Graph:
    """Replace each `call` by the nodes of its body."""
    graph = in_regions(graph, inline, recorder)
    if not any(node.op.name == "call" for node in graph.nodes):
        return graph
    nodes: list[Node] = []
    written = overwritten(graph)
    now: dict[Value, Value] = {}  # results of calls that are values which were there before
    for node in graph.nodes:
        if not now.keys().isdisjoint(node.inputs):
            node = recorder.remake(node, inputs=[now.get(value, value) for value in node.inputs])
        if node.op.name == "call":
            body: Graph = node.attrs["body"]
            made, there = spliced(node, body, node.inputs, node.outputs, written, recorder)
            recorder.replaced(node, made, "inline.call", f"its body of {len(made)} nodes")
            nodes += made
            now |= there
        else:
            nodes.append(node)
    return graph.replace(nodes, [now.get(value, value) for value in graph.outputs])


def has_calls(graph: Graph) -> bool:
    """Whether there is anything to inline, in the graph or in its regions."""
    return any(node.op.name == "call" for node in walk(graph))
