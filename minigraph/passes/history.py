"""What the pipeline did: the stages, and what tells two of them apart."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from minigraph.errors import unknown
from minigraph.ir import Graph, Node, Value, is_structured, node_text

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

    def steps(self) -> Iterator[tuple[Stage, Graph]]:
        """Each stage after the first, with the graph that it began with."""
        before = self.stages[0].graph
        for stage in self.stages[1:]:
            yield stage, before
            before = stage.graph

    def before(self, stage: Stage) -> Graph:
        """The graph that a stage began with."""
        at = next(index for index, each in enumerate(self.stages) if each is stage)
        return self.stages[max(at - 1, 0)].graph


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


def changes(stage: Stage, before: Graph) -> list[Difference]:
    """What a stage did and refused, in one line each.

    Of a fusion these are the kernels, and the pairs of a value and its reader that are in no kernel
    together; of any other pass the diff of the two graphs.
    """
    if any(event.rule == "fuse.kernel" for event in stage.events):
        return [line for event in stage.events for line in _fusion_line(event)]
    return diff(before, stage.graph, stage.events)


def _fusion_line(event: Event) -> Iterator[Difference]:
    if event.rule == "fuse.kernel":
        (kernel,) = event.after
        yield Difference("+", kernel, f"{kernel!r}: {event.why}", "")
    elif event.rule == "fuse.apart":
        reader, operand = event.before[0], event.values[-1]
        text = f"%{operand.name} -> {reader!r}: {event.code}: {event.why}"
        yield Difference("!", reader, text, "")
    elif event.kind == "replace" and event.after:
        node = event.before[0]
        yield Difference("~", node, f"{node!r}: {event.why}", "")


def diff(before: Graph, after: Graph, events: Sequence[Event] = ()) -> list[Difference]:
    """What tells two stages apart, by the identity of values: new names alone are no change.

    Args:
        before: a stage.
        after: the next one, or a later one.
        events: what the passes between told; without it reasons and refusals are missing.
    """
    return _diff(before, after, _Told(events))


def _diff(before: Graph, after: Graph, told: _Told) -> list[Difference]:
    old = {_result(node): node for node in before.nodes}
    pairs = [(node, old.get(_result(node)) or _origin_in(node, old)) for node in after.nodes]
    kept = {was for _, was in pairs}
    pending = iter(before.nodes)
    found: list[Difference] = []
    for node, was in [*pairs, (None, None)]:
        if node is not None and was is None:
            found.append(Difference("+", node, _text(node), told.why(node)))
            continue
        for gone in iter(lambda: next(pending, None), was):
            assert gone is not None
            if gone not in kept:
                found.append(Difference("-", gone, _text(gone), told.why(gone)))
        if node is None or was is None:
            continue
        if was is not node:
            why = told.why(was) or told.why(node) or told.operands(was, node)
            texts = dict.fromkeys((_text(was), _text(node)))  # one, if only regions changed
            found.append(Difference("~", node, " -> ".join(texts), why))
        refusal = told.refusals.get(was)
        if refusal is not None:
            found.append(Difference("!", was, _text(was), f"{refusal.code}: {refusal.why}"))
        found += _inside(was, node, told)
    return found


def _text(node: Node) -> str:
    """A node as text, of an `if` or a loop the line that it begins with."""
    return repr(node) if is_structured(node) else node_text(node)


def _inside(was: Node, node: Node, told: _Told) -> Iterator[Difference]:
    """The same for the regions of an `if` or a loop, each line with the region's name."""
    if is_structured(was) and was.op is node.op:
        after = dict(node.regions)
        for name, region in was.regions:
            for line in _diff(region, after[name], told):
                yield line._replace(text=f"{name}: {line.text}")


class _Told:
    """What events say of each node."""

    def __init__(self, events: Sequence[Event]) -> None:
        self.refusals: dict[Node, Event] = {}
        self._reasons: dict[Node, dict[str, None]] = {}  # each once, in order
        self._merged: dict[Value, str] = {}
        for event in events:
            if event.kind == "refuse":
                self.refusals.setdefault(event.before[0], event)
                continue
            for node in (*event.before, *event.after):
                self._reasons.setdefault(node, {})[event.why] = None
            if event.kind == "replace":
                for node in event.before:
                    self._merged.update(dict.fromkeys(node.outputs, event.why))

    def why(self, node: Node) -> str:
        return "; ".join(self._reasons.get(node, ()))

    def operands(self, was: Node, node: Node) -> str:
        """Which operands of a node changed."""
        names = [
            f"%{a.name} is %{b.name} now" + (f" ({self._merged[a]})" if a in self._merged else "")
            for a, b in zip(was.inputs, node.inputs, strict=False)
            if a is not b
        ]
        return "operand changed: " + ", ".join(dict.fromkeys(names)) if names else ""


def _result(node: Node) -> Value | Node:
    """What identifies a node from stage to stage: its first result."""
    return node.outputs[0] if node.outputs else node


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
