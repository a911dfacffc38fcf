"""The history of a compilation as plain text: each stage, what changed and why."""

from __future__ import annotations

from collections.abc import Iterator

from minigraph.ir import Graph

from .history import History, Stage, changes


def explain(history: History) -> str:
    """What each pass changed and refused: `+` new, `-` gone, `~` changed, `!` refused."""
    return "\n".join(_stage_lines(history))


def describe(history: History) -> str:
    """Every stage in full: the traced graph, then what each pass did and the graph it left."""
    parts = [f"# traced\n{history.stages[0].graph}"]
    for stage, before in history.steps():
        if stage.graph is not before:
            parts.append(f"# {_title(stage, before)}\n{stage.graph}")
    parts.append("# passes\n" + explain(history))
    return "\n\n".join(parts)


def _title(stage: Stage, before: Graph) -> str:
    return (
        f"{stage.name}, round {stage.round}: {len(before.nodes)} -> {len(stage.graph.nodes)} nodes"
    )


def _stage_lines(history: History) -> Iterator[str]:
    quiet: list[str] = []
    notes: list[str] = []
    for stage, before in history.steps():
        found = changes(stage, before)
        notes += [f"{stage.name}: {event.why}" for event in stage.events if event.kind == "note"]
        if not found:
            quiet.append(stage.name)
            continue
        yield _title(stage, before)
        for change in found:
            place = f"  # {change.node.loc}" if change.node.loc else ""
            yield f"  {change.mark} {change.text}{place}"
            if change.why:
                yield f"      {change.why}"
    if quiet:
        yield "passes that changed nothing: " + ", ".join(dict.fromkeys(quiet))
    yield from notes
