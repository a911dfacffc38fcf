"""Which values share memory, and how long each name and each piece of memory is needed."""

from __future__ import annotations

from minigraph.ir import Graph, Value, storage_roots


class Liveness:
    """The lifetimes of a graph; positions count nodes, the return stands at `len(graph.nodes)`.

    Attributes:
        root: the value that owns the memory of each value (a view's base; else the value itself).
        last_read: the position of the last node that reads the value by its own name.
        last_seen: for each root, the last position that reads its memory by any name.
        A value that nobody reads ends where it is made (an input: at -1).
    """

    __slots__ = ("last_read", "last_seen", "root")

    def __init__(
        self, root: dict[Value, Value], last_read: dict[Value, int], last_seen: dict[Value, int]
    ) -> None:
        self.root = root
        self.last_read = last_read
        self.last_seen = last_seen


def liveness(graph: Graph) -> Liveness:
    """The lifetimes, in one sweep; what regions return lies in memory of its own."""
    root = storage_roots(graph)
    last_read: dict[Value, int] = dict.fromkeys(graph.inputs, -1)
    last_seen: dict[Value, int] = dict.fromkeys(graph.inputs, -1)
    end = len(graph.nodes)
    for position, node in enumerate(graph.nodes):
        for value in node.inputs:
            last_read[value] = position
            owner = root[value]
            last_seen[owner] = max(last_seen[owner], position)
        for value in node.outputs:
            last_read[value] = position
            owner = root[value]
            last_seen[owner] = max(last_seen.get(owner, -1), position)
    for value in graph.outputs:
        last_read[value] = end
        last_seen[root[value]] = end
    return Liveness(root, last_read, last_seen)
