"""Why values and their readers are not in one kernel: one sweep, when all groups are there."""

from __future__ import annotations

from collections.abc import Iterator

from minigraph.ir import Node, Value

from .grouping import Grouping
from .groups import Group
from .refusals import MOVES_NOTHING, Refusal

Apart = tuple[Value, Node, Refusal]


def apart(grouping: Grouping) -> Iterator[Apart]:
    """Each pair of a value that a node makes and a node that reads it, if no kernel holds both.

    Constants are left out; a view inside of a kernel counts as part of it.
    """
    pairs = _Pairs(grouping)
    for node in grouping.graph.nodes:
        if not grouping.sources.is_window(node):
            yield from pairs.of_reader(node)
    for node in grouping.graph.nodes:
        if grouping.sources.is_window(node):
            yield from pairs.of_view(node)


class _Pairs:
    """What is needed to look at each pair once.

    Attributes:
        makers: the node of each value, constants left out.
        holders: the groups of each node; views may be in several.
        outside: for a view inside of a kernel why its operand is not.
    """

    def __init__(self, grouping: Grouping) -> None:
        self.grouping = grouping
        self.makers = {
            v: n for n in grouping.graph.nodes if n.op.name != "const" for v in n.outputs
        }
        self.holders: dict[Node, set[Group]] = {}
        for group in grouping.groups():
            for node in group.nodes:
                self.holders.setdefault(node, set()).add(group)
        self.outside: dict[Node, Refusal] = {}

    def of_reader(self, node: Node) -> Iterator[Apart]:
        """The operands of a node that is no view."""
        group = self.grouping.group(node)
        for value in dict.fromkeys(node.inputs):
            views = self.grouping.sources.windows.get(value) if group is not None else None
            first = views[0] if views else None
            maker = self.makers.get(value if first is None else first.inputs[0])
            if maker is None or (group is not None and maker in group.nodes):
                continue
            refusal = self.grouping.why_apart(value, node, maker)
            if first is None:
                yield value, node, refusal
            else:
                self.outside.setdefault(first, refusal)

    def of_view(self, node: Node) -> Iterator[Apart]:
        """The operand of a view, after all of its readers."""
        (value,) = node.inputs
        maker = self.makers.get(value)
        if maker is None:
            return
        if node in self.outside:
            yield value, node, self.outside[node]
        elif self.holders.get(node, set()).isdisjoint(self.holders.get(maker, ())):
            yield value, node, MOVES_NOTHING
