"""A picture before its layout: boxes, arrows and clusters as plain data, and their DOT text.

The names of boxes and clusters are our own (`n3`, `n7_body_n2`); text of users stands in labels and
tooltips only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from .escape import cells, quote, quote_tooltip
from .palette import BORDER, DEAD_FILL, DIM, EDGE, LOOKS, MARKS, PAGE, TEXT, Look, dark_colours

FONT = "Courier"  # a font whose metrics every build of Graphviz has; the SVG names the reader's own
POINTS_PER_CELL, POINTS_PER_LINE = 6.0, 12.5  # Courier, 10 points
SLANTED = ("parallelogram", "trapezium", "invtrapezium")
SLANT = 0.21  # what a slanted side takes off at its narrow end, in widths
QUICK = "nslimit=1 nslimit1=1 mclimit=0.1 splines=line"  # when the layout takes too long


@dataclass(slots=True)
class Line:
    """One line of a label; `role` is "strong", "", "dim" or "struck"."""

    text: str
    role: str = ""


@dataclass(slots=True)
class Box:
    """A node of the drawing; `look` is a key of `LOOKS`, `mark` one of `MARKS`."""

    name: str
    look: str
    lines: list[Line]
    tooltip: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()
    mark: str = ""
    dead: bool = False
    fill: str = ""


@dataclass(slots=True)
class Arrow:
    """An edge of the drawing.

    `role` is "data", "order" (one effect after the other), "control" (into and out of a region),
    "back" (to the next repetition of a block) or "reuse" (of a buffer).  Arrows of great `weight`
    are drawn short and straight.
    """

    tail: str
    head: str
    role: str = "data"
    label: str = ""
    tooltip: tuple[str, ...] = ()
    width: float = 1
    count: int = 1
    weight: int = 1
    mark: str = ""
    dead: bool = False


@dataclass(slots=True)
class Cluster:
    """A frame: `role` is "root", "kernel" (solid), "call", "region", "repeat" (dashed) or "control"
    (double line).
    """

    name: str
    role: str
    label: str = ""
    tooltip: tuple[str, ...] = ()
    mark: str = ""
    members: list[Box | Cluster] = field(default_factory=list["Box | Cluster"])

    def boxes(self) -> Iterator[Box]:
        """The boxes in it, at any depth."""
        pending: list[Cluster] = [self]
        while pending:
            for member in pending.pop().members:
                if isinstance(member, Cluster):
                    pending.append(member)
                else:
                    yield member


@dataclass(slots=True)
class Picture:
    """Everything that is drawn; `note` says what was left out."""

    title: str
    description: str
    root: Cluster
    arrows: list[Arrow]
    note: str = ""
    rankdir: str = "TB"


CLUSTER_STYLES = {
    "kernel": "rounded",
    "call": "rounded,dashed",
    "region": "dashed",
    "repeat": "rounded,dashed",
    "control": "solid",
    "legend": "dotted",
}
ARROW_STYLES = {
    "legend": "style=invis",
    "order": f'style=dotted arrowhead=open color="{EDGE}"',
    "control": f'style=dashed color="{EDGE}"',
    "back": f'style=dashed constraint=false color="{EDGE}"',
    "reuse": f'style=dotted constraint=false arrowhead=none color="{MARKS["changed"].border}"',
}


def dot_text(
    picture: Picture, prefix: str = "mg", *, dark: bool = False, quick: bool = False
) -> str:
    """The DOT text; every element has an id that starts with `prefix`.

    Args:
        picture: what to write.
        prefix: of all ids, so that several drawings fit on one page.
        dark: in the colours of the dark theme.
        quick: ask for a rougher layout that takes far less time.
    """
    heading = quote(*filter(None, [picture.title, picture.note]), end="\\l")
    lines = [
        "digraph {",
        f'  graph [id="{prefix}" class=minigraph rankdir={picture.rankdir} bgcolor="{PAGE}"'
        f' fontname={FONT} fontsize=10 fontcolor="{TEXT}" labelloc=t labeljust=l'
        f" nodesep=0.25 ranksep=0.35 label={heading}{' ' + QUICK if quick else ''}]",
        f'  node [fontname={FONT} fontsize=10 fontcolor="{TEXT}" color="{BORDER}" height=0.3'
        ' margin="0.1,0.05"]',
        f'  edge [fontname={FONT} fontsize=8 fontcolor="{DIM}" color="{EDGE}" arrowsize=0.6]',
    ]
    lines.extend(_members(picture.root, prefix))
    lines.extend(_arrow(number, arrow, prefix) for number, arrow in enumerate(picture.arrows))
    lines.append("}\n")
    text = "\n".join(lines)
    return _darkened(text) if dark else text


def _darkened(text: str) -> str:
    """The text with each light colour exchanged; labels and tooltips are left alone."""
    table = dark_colours()
    return re.sub(
        r'((?:color|fillcolor|fontcolor)=")(#[0-9A-F]{6})(?=")',
        lambda found: found[1] + table.get(found[2], found[2]),
        text,
    )


def _members(root: Cluster, prefix: str) -> Iterator[str]:
    """The lines of boxes and clusters, without recursion."""
    pending: list[tuple[str, Iterator[Box | Cluster]]] = [("", iter(root.members))]
    while pending:
        closing, members = pending[-1]
        indent = "  " * len(pending)
        member = next(members, None)
        if member is None:
            pending.pop()
            if closing:
                yield indent[2:] + closing
        elif isinstance(member, Box):
            yield indent + _box(member, prefix)
        else:
            closing = "}}" if member.role == "control" else "}"
            yield indent + _cluster(member, prefix)
            pending.append((closing, iter(member.members)))


def _box(box: Box, prefix: str) -> str:
    look = LOOKS[box.look]
    mark = MARKS.get(box.mark)
    styles = ["filled", look.style, mark.style if mark else "", "dashed" if box.dead else ""]
    fill = DEAD_FILL if box.dead else box.fill or look.fill
    classes = ["op" if box.look not in ("input", "output", "constant", "capture") else "leaf"]
    classes += [box.look, *box.classes, box.mark, "dead" if box.dead else ""]
    words = [
        f'id="{prefix}-{box.name}"',
        f'class="{" ".join(filter(None, dict.fromkeys(classes)))}"',
        f"shape={look.shape}",
        f'style="{",".join(filter(None, styles))}"',
        f'fillcolor="{fill}"',
        f"penwidth={2.5 if mark else look.border:g}",
    ]
    if mark:
        words.append(f'color="{mark.border}"')
    if look.outlines > 1:
        words.append(f"peripheries={look.outlines}")
    words += _size(look, [line.text for line in box.lines])
    words.append(f"label={quote(*(line.text for line in box.lines))}")
    if box.tooltip:
        words.append(f"tooltip={quote_tooltip(*box.tooltip)}")
    return f"{box.name} [{' '.join(words)}]"


def _size(look: Look, lines: list[str]) -> list[str]:
    """What keeps the text inside of the shape, and the shape close to the text."""
    widths = [cells(line) * POINTS_PER_CELL for line in lines]
    if look.shape not in SLANTED:
        words = [f'margin="{look.margin}"'] if look.margin else []
        if not all(line.isascii() for line in lines):
            # Some builds of Graphviz know no widths beyond ASCII.
            words.append(f"width={(max(widths) + 20) / 72:.2f}")
        return words
    # Graphviz makes slanted shapes twice too large, so their size is computed here (in points).
    height = len(lines) * POINTS_PER_LINE + 8
    width = 54.0
    for number, text in enumerate(widths):
        top = (4 + number * POINTS_PER_LINE) / height
        bottom = top + POINTS_PER_LINE / height
        cut = {"trapezium": 1 - top, "invtrapezium": bottom}.get(look.shape, max(1 - top, bottom))
        width = max(width, (text + 10) / (1 - 2 * cut * SLANT))
    return [f"fixedsize=true width={width / 72:.2f} height={height / 72:.2f}"]


def _cluster(cluster: Cluster, prefix: str) -> str:
    mark = MARKS.get(cluster.mark)
    words = [
        f'style="{CLUSTER_STYLES[cluster.role]}"',
        f'color="{mark.border if mark else BORDER}"',
        f"penwidth={2.5 if mark else 1.0}",
        "fontsize=9",
        f"label={quote(cluster.label)}",
    ]
    if cluster.tooltip:
        words.append(f"tooltip={quote_tooltip(*cluster.tooltip)}")
    identity = f'id="{prefix}-{cluster.name}" class={cluster.role}'
    inner = f"subgraph cluster_{cluster.name} {{ graph [{identity} margin=8 {' '.join(words)}]"
    if cluster.role != "control":
        return inner
    # Graphviz draws a cluster with one outline only: the second is a cluster around it.
    outer = f'id="{prefix}-{cluster.name}-frame" class=frame margin=3 style=solid label=""'
    outer += f' color="{BORDER}"'
    return f"subgraph cluster_{cluster.name}_frame {{ graph [{outer}] {inner}"


def _arrow(number: int, arrow: Arrow, prefix: str) -> str:
    mark = MARKS.get(arrow.mark)
    words = [f'id="{prefix}-e{number}"', f'class="{arrow.role}"']
    if arrow.role in ARROW_STYLES:
        words.append(ARROW_STYLES[arrow.role])
    elif mark:
        words.append(f'color="{mark.border}" style={mark.style or "solid"}')
    elif arrow.dead:
        words.append("style=dashed")
    if arrow.width != 1:
        words.append(f"penwidth={arrow.width:g}")
    label = " ".join(filter(None, [arrow.label, f"x{arrow.count}" if arrow.count > 1 else ""]))
    if label:
        # The space keeps the text off the line.
        words.append(f"label={quote(' ' + label)}")
    if arrow.weight != 1:
        words.append(f"weight={arrow.weight}")
    if arrow.tooltip:
        tooltip = quote_tooltip(*arrow.tooltip)
        words.append(f"tooltip={tooltip}" + (f" labeltooltip={tooltip}" if label else ""))
    return f"  {arrow.tail} -> {arrow.head} [{' '.join(words)}]"
