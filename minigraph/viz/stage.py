"""What one stage changed."""

from __future__ import annotations

from collections.abc import Sequence

from minigraph.ir import Graph, Node
from minigraph.passes import Event, diff

from .palette import MARKS

SIGNS = {mark.sign: name for name, mark in MARKS.items()}


class Changes:
    """What sets a stage apart from an earlier one: marks, reasons, refusals, and what is gone."""

    def __init__(self, before: Graph | None, after: Graph, events: Sequence[Event]) -> None:
        self.marks: dict[Node, str] = {}
        self.reasons: dict[Node, str] = {}
        self.refused: dict[Node, str] = {}
        self.removed: list[Node] = []
        for each in diff(before, after, events) if before is not None else ():
            if each.mark == "!":
                self.refused[each.node] = each.why
                continue
            self.marks[each.node] = SIGNS[each.mark]
            self.reasons[each.node] = each.why
            if each.mark == "-":
                self.removed.append(each.node)

    def mark(self, node: Node) -> str:
        """A key of `MARKS`, or nothing."""
        return self.marks.get(node, "")

    def why(self, node: Node) -> str:
        """Why it was changed, or why it was not."""
        refused = [f"refused: {why}" for why in [self.refused.get(node)] if why]
        return "; ".join(filter(None, [self.reasons.get(node, ""), *refused]))
