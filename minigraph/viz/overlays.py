"""What is drawn over a picture: what a pass removed, which buffers are reused, the legend."""

from __future__ import annotations

from .canvas import Scope
from .compose import Composer
from .escape import clip, visible
from .fold import is_constant
from .palette import LOOKS, slot_letters
from .picture import Arrow, Box, Cluster, Line
from .words import LINE_WIDTH, node_tooltip


def draw_removed(composer: Composer, scope: Scope) -> None:
    """What the stage before had and this one has not, as ghosts, with the reason."""
    for node in composer.changes.removed:
        if is_constant(node):
            composer.constant(node, scope, composer.root, "gone_", composer.uses[node.output])
            leaf = scope[node.output].leaf
            assert leaf is not None
            leaf.box.lines[0].role = "struck"
            continue
        reason = composer.changes.why(node)
        sources = [composer.source(value, scope, composer.root) for value in node.inputs]
        lines = composer.node_lines(node, sources, "removed")
        lines[0].role = "struck"
        if reason:
            lines.extend(Line(text, "dim") for text in wrap(visible(reason)))
        name = composer.name(f"gone_n{node.id}")
        look = node.op.kind if node.op.kind in LOOKS else "library"
        box = Box(name, look, lines, node_tooltip(node, reason), mark="removed")
        composer.root.members.append(box)
        composer.connect(sources, name, "removed")
        composer.define(node, scope, name)
        for value in node.outputs:
            scope[value].mark = "removed"


def wrap(text: str) -> list[str]:
    """At most two lines of a reason."""
    if len(text) <= LINE_WIDTH:
        return [text]
    first = text[: LINE_WIDTH + 1].rpartition(" ")[0] or text[:LINE_WIDTH]
    return [first, clip(text[len(first) :].strip(), LINE_WIDTH)]


def draw_reuse(composer: Composer, scope: Scope) -> None:
    """Dotted lines from a buffer's earlier value to the one that takes it over."""
    plan = composer.options.plan
    if plan is None:
        return
    for value, earlier in plan.reuses.items():
        first, second = scope.get(earlier), scope.get(value)
        if first and second and first.box and second.box and first.box != second.box:
            label = f"{slot_letters(plan.slot[value])} again" if value in plan.slot else "again"
            arrow = Arrow(first.box, second.box, "reuse", label)
            composer.arrows[first.box, second.box, "reuse"] = arrow


def draw_legend(composer: Composer) -> None:
    """The shapes that occur, one below the other, with their meaning."""
    used = {box.look for box in composer.root.boxes()}
    cluster = Cluster(composer.name("legend"), "legend", "legend")
    before = ""
    for look in [look for look in LOOKS if look in used]:
        box = Box(composer.name(f"legend_{look}"), look, [Line(LOOKS[look].meaning)])
        cluster.members.append(box)
        if before:
            composer.arrows[before, box.name, "legend"] = Arrow(before, box.name, "legend")
        before = box.name
    composer.root.members.append(cluster)
