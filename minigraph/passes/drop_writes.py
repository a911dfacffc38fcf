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
read of the argument or of a view of it.  So the writes within a branch or a loop, each of which is
there for what might look at the argument in the middle, are not made if nothing does.

Cost: one sweep from the end to the start.
"""

from __future__ import annotations

from collections.abc import Collection

from minigraph.ir import Graph, Node, Value, operands, storage_roots, walk, written_operands

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
            if target in covered:
                recorder.removed(node, "drop_writes.covered", _why([target]))
                continue
            covered[target] = node
            covered.pop(root[value], None)
        elif _only_writes(node):
            targets = [v for v in dict.fromkeys(written_operands(node)) if v in covered]
            if targets:
                quiet = _without_writes(node, targets, recorder)
                recorder.replaced(node, quiet, "drop_writes.inside", _why(targets))
                node = quiet
            for value in node.inputs:
                covered.pop(root[value], None)
        elif is_effect(node):
            covered.clear()
        else:
            for value in node.inputs:
                covered.pop(root[value], None)
        kept.append(node)
    kept.reverse()
    same = len(kept) == len(graph.nodes) and all(map(_is, kept, graph.nodes))
    return graph if same else graph.replace(kept)


def _why(targets: Collection[Value]) -> str:
    names = ", ".join(f"%{value.name}" for value in targets)
    return f"{names} is written again, and nobody looks in between"


def _is(a: Node, b: Node) -> bool:
    return a is b


def _only_writes(node: Node) -> bool:
    """Whether its regions write, and do nothing else that could show what they wrote."""
    inner = [each for _, region in node.regions for each in walk(region) if each.is_effect]
    return bool(inner) and all(each.op.name == "write" for each in inner)


def _writes(node: Node, targets: Collection[Value]) -> bool:
    return any(value in targets for value in written_operands(node))


def _without_writes(node: Node, targets: Collection[Value], recorder: Recorder) -> Node:
    """A node whose regions do not write to these operands."""
    changed: dict[str, Graph] = {}
    for name, region in node.regions:
        pairs = zip(region.inputs, operands(node), strict=True)
        inside = {inner for inner, outer in pairs if outer in targets}
        nodes = [
            _without_writes(each, inside, recorder) if _writes(each, inside) else each
            for each in region.nodes
            if not (each.op.name == "write" and each.inputs[0] in inside)
        ]
        changed[name] = region.replace(nodes)
    return recorder.remake(node, attrs={**node.attrs, **changed})
