"""What one stage changed, told by the identity of values and nodes, never by their text."""

from __future__ import annotations

from minigraph.ir import Graph, Node, Value, inner_first


class Changes:
    """The marks of nodes of `after`, and the nodes of `before` that are gone.

    A pass leaves untouched nodes as the same objects, and a rebuilt node keeps its output values:
    so a node is unchanged if it is the same object, changed if its values are, new otherwise.
    """

    def __init__(self, before: Graph | None, after: Graph) -> None:
        self._nodes: set[Node] | None = None
        self.removed: list[Node] = []
        if before is None:
            return
        self._nodes = all_nodes(before)
        self._values = {value for node in self._nodes for value in node.outputs}
        nodes = all_nodes(after)
        values: set[Value] = {value for node in nodes for value in node.outputs}
        replaced = {origin for node in nodes if not node.outputs for origin in node.origin}
        self.removed = [
            node
            for node in before.nodes
            if node not in nodes
            and node not in replaced
            and not any(value in values for value in node.outputs)
        ]

    def mark(self, node: Node) -> str:
        """A key of `MARKS`, or nothing."""
        if self._nodes is None or node in self._nodes:
            return ""
        if any(value in self._values for value in node.outputs):
            return "changed"
        if not node.outputs and any(origin in self._nodes for origin in node.origin):
            return "changed"
        return "new"


def dead_nodes(graph: Graph) -> set[Node]:
    """Nodes whose results reach neither an output nor an effect."""
    needed = set(graph.outputs)
    dead: set[Node] = set()
    for node in reversed(graph.nodes):
        if node.is_effect or any(value in needed for value in node.outputs) or _acts(node):
            needed.update(node.inputs)
        else:
            dead.add(node)
    return dead


def _acts(node: Node) -> bool:
    return any(inner.is_effect for _, region in node.regions for inner in all_nodes(region))


def all_nodes(graph: Graph) -> set[Node]:
    """The nodes of the graph and of every region in it."""
    return {node for each in inner_first(graph) for node in each.nodes}
