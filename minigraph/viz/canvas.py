"""What pictures are composed with: names that are unique, leaves that are drawn for each user, and
arrows that count.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from minigraph.errors import OptionError
from minigraph.ir import Node, Value

from .escape import clip
from .options import Options
from .picture import Arrow, Box, Cluster, Line
from .words import LINE_WIDTH, edge_width, node_tooltip, value_name, value_tooltip

MOST_SHARING = 40  # users of one leaf when leaves are shared


@dataclass(slots=True)
class Leaf:
    """Something without inputs, drawn for each of its users.

    Attributes:
        box: what is drawn, but for its name and the line that counts the uses.
        home: the cluster it belongs to.
        uses: how many nodes use it; drawn: how many were drawn.
        inside: what a user shows instead where leaves stand inside.
    """

    box: Box
    home: Cluster
    uses: int
    drawn: int = 0
    inside: str = ""


@dataclass(slots=True)
class Source:
    """Where an arrow begins: at a box, or at a leaf that is still to be drawn."""

    value: Value
    text: str
    box: str = ""
    leaf: Leaf | None = None
    label: bool = True  # its type differs from what its maker was given
    name: str = ""  # the value's name, where a box makes several
    dead: bool = False
    mark: str = ""
    labelled: bool = field(default=False)


Scope = dict[Value, Source]


class Canvas:
    """The parts of a picture that is being composed."""

    def __init__(self, options: Options, *, fold: bool = False) -> None:
        self.options = options
        self.fold = fold
        self.labels = "none" if fold else options.labels
        self.root = Cluster("root", "root")
        self.arrows: dict[tuple[object, ...], Arrow] = {}
        self.order: dict[str, int] = {}
        self.names: set[str] = set()
        self.copies: dict[tuple[int, str], str] = {}  # the box of each leaf beside each user
        self.hidden: dict[Value, Node] = {}  # values of nodes that are not drawn

    def name(self, wanted: str) -> str:
        """A name for a box or cluster that nothing else has."""
        wanted = re.sub(r"\W", "_", wanted, flags=re.ASCII)
        name, number = wanted, 1
        while name in self.names:
            number += 1
            name = f"{wanted}_{number}"
        self.names.add(name)
        self.order[name] = len(self.order)
        return name

    def arrow(self, source: Source, head: str, key: str, mark: str = "") -> None:
        """An arrow from where a value is made to a box that uses it; a second one counts as x2."""
        tail = source.box or self.leaf_box(source, key)
        back = self.fold and bool(source.box) and self.order[tail] >= self.order[head]
        role = "back" if back else "data"
        # In a folded picture, values of many repetitions share one arrow, and none is named.
        found = self.arrows.get((tail, head, role, None if self.fold else source.value))
        if found is not None:
            found.count += 1
            return
        self.arrows[tail, head, role, None if self.fold else source.value] = Arrow(
            tail,
            head,
            role,
            label=self.arrow_label(source, head),
            tooltip=value_tooltip(source.value),
            width=edge_width(source.value.type),
            weight=3 if source.box else 1,
            mark=mark or source.mark if "removed" in (mark, source.mark) else "",
            dead=source.dead,
        )

    def arrow_label(self, source: Source, head: str) -> str:
        words = [source.name] if source.name else []
        wanted = source.label and not source.labelled or head.startswith("return")
        if self.labels == "all" or (self.labels == "changes" and wanted):
            words.append(str(source.value.type))
            source.labelled = source.leaf is None
        return clip(" ".join(words), LINE_WIDTH) if self.labels != "none" else ""

    def leaf_box(self, source: Source, key: str) -> str:
        """The copy of a leaf that stands beside one user (the only one where leaves are shared)."""
        leaf = source.leaf
        assert leaf is not None, source
        if self.options.leaves == "shared":
            if leaf.uses > MOST_SHARING:
                raise OptionError(
                    f"{source.text} has {leaf.uses} users, too many to be drawn once for all",
                    instead='leaves="beside", which draws it again beside each user',
                )
            key = ""
        if (id(leaf), key) in self.copies:
            return self.copies[id(leaf), key]
        leaf.drawn += 1
        lines = list(leaf.box.lines)
        if leaf.uses > 1 and key:
            lines.append(Line(f"use {leaf.drawn} of {leaf.uses}", "dim"))
        name = self.name(f"{leaf.box.name}_for_{key}" if key else leaf.box.name)
        self.copies[id(leaf), key] = name
        box = leaf.box
        leaf.home.members.append(
            Box(name, box.look, lines, box.tooltip, box.classes, box.mark, box.dead, box.fill)
        )
        return name

    def connect(self, sources: Sequence[Source], head: str, mark: str) -> None:
        for source in sources:
            if not self.is_inside(source):
                self.arrow(source, head, head, mark)

    def is_inside(self, source: Source) -> bool:
        """A small constant that its users name instead of an arrow."""
        return (
            self.options.leaves == "inside" and source.leaf is not None and bool(source.leaf.inside)
        )

    def source(self, value: Value, scope: Scope, home: Cluster) -> Source:
        """Where a value comes from; a value that nothing defines is shown as such."""
        found = scope.get(value)
        if found is None and value in self.hidden:
            box = Box(f"cut{value.id}", "cut", [Line(f"... {value_name(value)}")])
            box.tooltip = node_tooltip(self.hidden[value])
            found = scope[value] = Source(value, value_name(value), leaf=Leaf(box, self.root, 1))
        if found is None:
            lines = [Line(value_name(value), "strong"), Line("not defined")]
            box = Box(f"undefined{value.id}", "cut", lines, value_tooltip(value), mark="removed")
            leaf = Leaf(box, home, uses=1)
            found = scope[value] = Source(value, value_name(value), leaf=leaf)
        return found
