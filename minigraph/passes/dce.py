"""Dead code elimination: what nobody can see is not computed.

    graph f(%x: f64[3]) {
      %0 = exp %x                  : f64[3]
      %1 = negative %0             : f64[3]
      %2 = sqrt %x                 : f64[3]
      print %2 {parts=('x', %)}
      return %x
    }

becomes

    graph f(%x: f64[3]) {
      %2 = sqrt %x                 : f64[3]
      print %2 {parts=('x', %)}
      return %x
    }

Legality: a node stays if it does something to the world (prints, writes, draws a random number), if
it may raise, or if a node that stays or the graph's result reads it.  That a loop might not end is
no reason to keep it: only how long it takes could be seen.

Cost: one sweep from the end to the start.
"""

from __future__ import annotations

from minigraph.ir import Graph, Node, Value

from .recorder import Recorder
from .regions import in_regions, is_effect


def dce(graph: Graph, recorder: Recorder) -> Graph:
    """Remove the nodes whose results nobody reads."""
    graph = in_regions(graph, dce, recorder)
    dead = dead_nodes(graph)
    if not dead:
        return graph
    for node, why in reversed(dead.items()):
        recorder.removed(node, "dce.unused", why)
    return graph.replace([node for node in graph.nodes if node not in dead])


def dead_nodes(graph: Graph) -> dict[Node, str]:
    """The nodes whose results reach neither an output nor an effect, the last first, and why."""
    needed: set[Value] = set(graph.outputs)
    dead_reader: dict[Value, Node] = {}
    dead: dict[Node, str] = {}
    for node in reversed(graph.nodes):
        if is_effect(node) or not needed.isdisjoint(node.outputs):
            needed.update(node.inputs)
        else:
            dead[node] = _cause(node, dead_reader)
            dead_reader.update(dict.fromkeys(node.inputs, node))
    return dead


def _cause(node: Node, dead_reader: dict[Value, Node]) -> str:
    readers = [dead_reader[value] for value in node.outputs if value in dead_reader]
    if readers:
        names = ", ".join(f"%{value.name}" for value in readers[0].outputs)
        return f"its last reader {names} is dead"
    return "nobody reads it"
