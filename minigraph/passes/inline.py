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

from minigraph.ir import Graph, Node, Value

from .recorder import Recorder
from .regions import in_regions


def inline(graph: Graph, recorder: Recorder) -> Graph:
    """Replace each `call` by the nodes of its body."""
    if not has_calls(graph):
        return graph
    graph = in_regions(graph, inline, recorder)
    nodes: list[Node] = []
    now: dict[Value, Value] = {}  # results of calls that are values which were there before
    for node in graph.nodes:
        if not now.keys().isdisjoint(node.inputs):
            node = recorder.remake(node, inputs=[now.get(value, value) for value in node.inputs])
        if node.op.name == "call":
            nodes += _body(node, now, recorder)
        else:
            nodes.append(node)
    return graph.replace(nodes, [now.get(value, value) for value in graph.outputs])


def has_calls(graph: Graph) -> bool:
    """Whether there is anything to inline."""
    return any(node.op.name == "call" for node in graph.nodes)


def _body(call: Node, now: dict[Value, Value], recorder: Recorder) -> list[Node]:
    """The nodes of a body with values of the caller's, which `now` learns of."""
    body: Graph = call.attrs["body"]
    known = dict(zip(body.inputs, call.inputs, strict=True))
    made = {value for node in body.nodes for value in node.outputs}
    for inner, outer in zip(body.outputs, call.outputs, strict=True):
        if inner in made:
            known.setdefault(inner, outer)
    nodes: list[Node] = []
    for node in body.nodes:
        for value in node.outputs:
            known.setdefault(value, recorder.ids.value(value.type, value.hint))
        nodes.append(
            recorder.remake(
                call,
                op=node.op,
                inputs=[known[value] for value in node.inputs],
                attrs=node.attrs,
                outputs=[known[value] for value in node.outputs],
                loc=node.loc,
            )
        )
    for inner, outer in zip(body.outputs, call.outputs, strict=True):
        if known[inner] is not outer:
            now[outer] = known[inner]
    recorder.replaced(call, nodes, "inline.call", f"its body of {len(nodes)} nodes")
    return nodes
