"""Dead store elimination: a write that the next write covers is not made.

    graph f(%x: f64[3]) {
      %0 = negative %x             : f64[3]
      write %x, %0
      %1 = exp %0                  : f64[3]
      write %x, %1
      return %1
    }

becomes

    graph f(%x: f64[3]) {
      %0 = negative %x             : f64[3]
      %1 = exp %0                  : f64[3]
      write %x, %1
      return %1
    }

Legality: both write the whole of the same argument, and between them nobody can look: there is no
effect other than writes, nothing that may raise (the caller would then see the first write), and no
read of the argument or of a view of it.

Cost: one sweep from the end to the start.
"""

from __future__ import annotations

from minigraph.ir import Graph, Node, Value, storage_roots

from .recorder import Recorder
from .regions import in_regions, is_effect


def drop_writes(graph: Graph, recorder: Recorder) -> Graph:
    """Remove each write that a later one covers before anybody can have seen it."""
    graph = in_regions(graph, drop_writes, recorder)
    if not any(node.op.name == "write" for node in graph.nodes):
        return graph
    root = storage_roots(graph)
    covered: dict[Value, Node] = {}  # arguments that are written again before anybody looks
    kept: list[Node] = []
    for node in reversed(graph.nodes):
        if node.op.name == "write":
            target, value = node.inputs
            later = covered.get(target)
            if later is not None:
                why = f"%{target.name} is written again, and nobody looks in between"
                recorder.removed(node, "drop_writes.covered", why)
                continue
            covered[target] = node
            covered.pop(root[value], None)
        elif is_effect(node):
            covered.clear()
        else:
            for value in node.inputs:
                covered.pop(root[value], None)
        kept.append(node)
    return graph if len(kept) == len(graph.nodes) else graph.replace(reversed(kept))
