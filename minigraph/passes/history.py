"""What the pipeline did: the stages, and what tells two of them apart."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from minigraph.errors import OptionError
from minigraph.ir import Graph, Node, Value, node_text

from .recorder import Event


class Stage(NamedTuple):
    """The graph after one run of one pass.

    Attributes:
        name: the pass; of the first stage "traced".
        graph: the same object as in the stage before if nothing changed.
        events: what the pass told.
        wall_s: how long it took.
        round: the passes run in rounds until none changes anything; counted from 1.
    """

    name: str
    graph: Graph
    events: tuple[Event, ...]
    wall_s: float
    round: int


class History:
    """The stages of one compilation, in order; the first is the graph as it was traced."""

    def __init__(self, stages: Sequence[Stage]) -> None:
        self.stages = list(stages)

    @property
    def graph(self) -> Graph:
        """The result."""
        return self.stages[-1].graph

    @property
    def events(self) -> Iterator[Event]:
        """What all passes told, in order."""
        return (event for stage in self.stages for event in stage.events)

    def stage(self, name: str) -> Stage:
        """The last stage with this name; "optimized" is the last of all.

        Raises:
            OptionError: there is none.
        """
        if name == "optimized":
            return self.stages[-1]
        for stage in reversed(self.stages):
            if stage.name == name:
                return stage
        known = [*dict.fromkeys(stage.name for stage in self.stages), "optimized"]
        raise unknown("stage", name, known)

    def before(self, stage: Stage) -> Graph:
        """The graph that a stage began with."""
        return self.stages[max(self.stages.index(stage) - 1, 0)].graph


def unknown(what: str, name: object, known: Sequence[str]) -> OptionError:
    """The error for a name that does not exist, with the nearest that does."""
    near = difflib.get_close_matches(str(name), known, 1)
    guess = f"did you mean {near[0]!r}? " if near else ""
    return OptionError(
        f"there is no {what} {name!r}", instead=f"{guess}known are {', '.join(known)}"
    )


class Difference(NamedTuple):
    """One line of a diff.

    Attributes:
        mark: + new, - gone, ~ changed, ! refused.
        node: the node of the graph after (of - and !: before).
        text: the node as IR text; of a change both, with an arrow between.
        why: the reason, as the pass told it.
    """

    mark: str
    node: Node
    text: str
    why: str


def diff(before: Graph, after: Graph, events: Sequence[Event] = ()) -> list[Difference]:
    """What tells two stages apart, by the identity of values: new names alone are no change.

    Args:
        before: a stage.
        after: the next one, or a later one.
        events: what the passes between told; without it reasons and refusals are missing.
    """
    reasons: dict[Node, str] = {}
    refusals: dict[Node, Event] = {}
    for event in events:
        if event.kind == "refuse":
            refusals.setdefault(event.before[0], event)
        else:
            reasons.update(dict.fromkeys((*event.before, *event.after), event.why))
    old = _by_result(before)
    merged = _merged(events)
    pending = iter(before.nodes)
    kept = {old.get(_result(node)) or _origin_in(node, old) for node in after.nodes}
    found: list[Difference] = []

    def gone_until(last: Node | None) -> None:
        for node in pending:
            if node is last:
                return
            if node not in kept:
                found.append(Difference("-", node, node_text(node), reasons.get(node, "")))

    for node in after.nodes:
        was = old.get(_result(node)) or _origin_in(node, old)
        if was is None:
            found.append(Difference("+", node, node_text(node), reasons.get(node, "")))
            continue
        gone_until(was)
        if was is not node:
            why = reasons.get(was) or reasons.get(node) or _operands(was, node, merged)
            found.append(Difference("~", node, f"{node_text(was)} -> {node_text(node)}", why))
        refusal = refusals.get(was) or refusals.get(node)
        if refusal is not None:
            found.append(Difference("!", was, node_text(was), f"{refusal.code}: {refusal.why}"))
    gone_until(None)
    return found


def _result(node: Node) -> Value | Node:
    """What identifies a node from stage to stage: its first result."""
    return node.outputs[0] if node.outputs else node


def _by_result(graph: Graph) -> dict[Value | Node, Node]:
    return {_result(node): node for node in graph.nodes}


def _origin_in(node: Node, old: dict[Value | Node, Node]) -> Node | None:
    """The node of an earlier stage that a node without results stands for."""
    while not node.outputs:
        if node in old:
            return node
        (origin,) = node.origin
        if origin is node:
            return None
        node = origin
    return None


def _merged(events: Sequence[Event]) -> dict[Value, str]:
    """For each value that another stands for, why."""
    return {
        value: event.why
        for event in events
        if event.kind == "replace"
        for value in event.before[0].outputs
    }


def _operands(was: Node, node: Node, merged: dict[Value, str]) -> str:
    """Which operands of a node changed."""
    names = [
        f"%{a.name} is %{b.name} now" + (f" ({merged[a]})" if a in merged else "")
        for a, b in zip(was.inputs, node.inputs, strict=False)
        if a is not b
    ]
    return "operand changed: " + ", ".join(dict.fromkeys(names)) if names else ""
