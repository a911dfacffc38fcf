"""What a reader is told of a stage and of a plan, line by line; how it looks is said elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from minigraph.ir import ArrayType, Graph, Node, Plan, Value, is_structured, node_text
from minigraph.passes import Difference, Stage, changes, liveness

from .palette import slot_letters

MARKS = {"+": "new", "-": "gone", "~": "changed", "!": "refused"}


class Change(NamedTuple):
    """One line about one node: `mark` of `MARKS`, the node, its source line, the reason."""

    mark: str
    text: str
    place: str
    why: str


class Storage(NamedTuple):
    """Where one node puts its result, what it frees, and the bytes that are alive after it."""

    text: str
    slot: str
    what: str
    alive: str


def differences(stage: Stage, before: Graph) -> list[Change]:
    """What a stage changed and refused, in the order of the graph."""
    file = next((node.loc.file for node in before.nodes if node.loc is not None), "")
    found = [
        Change(each.mark, change_text(each), place_text(each.node, file), each.why)
        for each in changes(stage, before)
    ]
    notes = [Change("!", each.why, "", "") for each in stage.events if each.kind == "note"]
    return found + notes


def change_text(change: Difference) -> str:
    """`%e = add %a, %b -> const 3`: of what did not change, no second copy."""
    if change.mark != "~" or is_structured(change.node):
        return change.text
    after = node_text(change.node)
    before = change.text.removesuffix(f" -> {after}")
    # Of a node in regions their names come first.
    regions, equals, rest = before.rpartition(": %")
    where = f"{regions}: " if equals and regions.replace(": ", "").isidentifier() else ""
    name, equals, rest = after.partition(" = ")
    if equals and before.removeprefix(where).startswith(f"{name} = "):
        after = rest
    old, colon, kind = before.rpartition(" : ")
    new, _, other = after.rpartition(" : ")
    if colon and kind == other:
        before, after = old, new
    return f"{before} -> {after}"


def place_text(node: Node, file: str) -> str:
    """`@L7`, or `@other.py:7` where that is not a line of `file`."""
    if node.loc is None:
        return ""
    return f"@L{node.loc.line}" if node.loc.file == file else f"@{node.loc}"


def count_text(changes: Sequence[Change]) -> str:
    """`2 gone, 1 changed`."""
    counts = [(sum(each.mark == mark for each in changes), word) for mark, word in MARKS.items()]
    return ", ".join(f"{number} {word}" for number, word in counts if number)


def bytes_text(size: Any) -> str:
    """A size with separators; one that depends on named dimensions as it is."""
    return f"{size:,}" if isinstance(size, int) else str(size)


def storage(graph: Graph, plan: Plan) -> list[Storage]:
    """What the plan says about each node that makes, takes over, looks into or frees a buffer."""
    lives = liveness(graph)
    taken = set(plan.reuses.values())
    ends: dict[int, list[Value]] = {}
    for value in plan.slot:
        if value not in taken:
            ends.setdefault(lives.last_seen[value], []).append(value)
    rows: list[Storage] = []
    for position, (node, alive) in enumerate(zip(graph.nodes, plan.live_bytes, strict=True)):
        slots = [plan.slot[value] for value in node.outputs if value in plan.slot]
        what = [text for value in node.outputs if (text := _storage_text(value, plan))]
        if node.op.view and isinstance(node.output.type, ArrayType):
            owner = lives.root[node.output]
            what.append(f"a view of %{owner.name}")
            slots = [plan.slot[owner]] if owner in plan.slot else []
        freed = ", ".join(slot_letters(plan.slot[value]) for value in ends.get(position, ()))
        if freed:
            what.append(f"frees {freed}")
        if what:
            names = ", ".join(map(slot_letters, slots))
            text = repr(node) if any(True for _ in node.regions) else node_text(node)
            rows.append(Storage(text, names, "; ".join(what), bytes_text(alive)))
        rows += _region_rows(node, plan)
    return rows


def _region_rows(node: Node, plan: Plan) -> Iterator[Storage]:
    """The rows of the regions of a node, whose buffers are counted anew."""
    for name, region in node.regions:
        inner = plan.regions.get((node, name))
        rows = [] if inner is None else storage(region, inner)
        if inner is not None and rows:
            peak = bytes_text(inner.peak_bytes)
            yield Storage(f"  {name} of {node!r}", "", f"needs {peak} bytes more at most", "")
            for row in rows:
                yield row._replace(text=f"    {row.text}", slot=row.slot.lower())


def _storage_text(value: Value, plan: Plan) -> str:
    if value not in plan.slot:
        return ""
    before = plan.reuses.get(value)
    if before is None:
        why = plan.why_not.get(value)
        new = f"new, {bytes_text(plan.slot_bytes[plan.slot[value]])} bytes"
        return f"{new} ({why})" if why else new
    if value in plan.in_place:
        return f"in place of %{before.name}"
    return f"the memory that %{before.name} left"
