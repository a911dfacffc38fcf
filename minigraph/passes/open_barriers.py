"""Barriers open once nothing is moved or merged any more.

    graph f(%x: f64[3], %g: f64[3]) {
      %0 = exp %g                  : f64[3]
      %1 = barrier %x, %0          : f64[3]
      %2 = sin %1                  : f64[3]
      %3 = multiply %0, %2         : f64[3]
      return %3
    }

becomes

    graph f(%x: f64[3], %g: f64[3]) {
      %0 = exp %g                  : f64[3]
      %2 = sin %x                  : f64[3]
      %3 = multiply %0, %2         : f64[3]
      return %3
    }

Legality: a barrier is its first operand.  What it keeps apart stays apart, for this is the last
pass: nodes run in the order in which they stand.  One whose operand is read by a reader of its own
stays, since kernels take each operand once.

Cost: each edge is looked at once.
"""

from __future__ import annotations

from minigraph.ir import Graph, Node, Value

from .recorder import Recorder
from .regions import in_regions


def open_barriers(graph: Graph, recorder: Recorder) -> Graph:
    """Let the readers of each barrier read what it stands for."""
    graph = in_regions(graph, open_barriers, recorder)
    barriers = [node for node in graph.nodes if node.op.name == "barrier"]
    if not barriers:
        return graph
    users = graph.users()
    now: dict[Value, Value] = {}
    for node in barriers:
        behind = now.get(node.inputs[0], node.inputs[0])
        if not any(
            now.get(value, value) is behind
            for user in users[node.output]
            for value in user.inputs
            if value is not node.output
        ):
            now[node.output] = behind
            recorder.replaced(node, behind, "open_barriers.open", "nothing is moved any more")
    nodes: list[Node] = []
    for node in graph.nodes:
        if node.op.name == "barrier" and node.output in now:
            continue
        if not now.keys().isdisjoint(node.inputs):
            node = recorder.remake(node, inputs=[now.get(value, value) for value in node.inputs])
        nodes.append(node)
    return graph.replace(nodes, [now.get(value, value) for value in graph.outputs])
