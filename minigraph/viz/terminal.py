"""What a terminal shows: source, graphs, what each pass did and why, and where values live.

What is shown is worked out first (`differences`, `storage`), then drawn with rich: in colour on a
terminal, as plain text into a pipe.  Meaning never rests on colour alone.
"""

from __future__ import annotations

import io
import re
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import IO, Any, NamedTuple

from minigraph.ir import ArrayType, Graph, Node, Plan, Value, node_text
from minigraph.passes import Difference, History, Stage, diff, liveness, plan_of

from .words import counted

PIPE_WIDTH = 100
NODE_WIDTH = 46  # the column of reasons starts here at the latest
SHOWN_LINES = 40  # of a text that is shown as a part of something longer
SHOWN_CHANGES = 16  # of one pass, likewise

MARKS = {"+": ("new", "green"), "-": ("gone", "red"), "~": ("changed", "blue"), "!": ("refused", "yellow")}
"""Mark → what it means, and its colour."""

IR_COLOURS = (
    (r"%[\w.]+", "cyan"),
    (r"(?:^\s*|= )(?P<bold>[a-z_]\w*)(?= |$)", ""),
    (r"(?<=const )\S+", "yellow"),
    (r" : \S+(?=\s|$)", "dim"),
    (r"# .*$", "dim"),
)


# ---------------------------------------------------------------------------- what is shown


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


def steps(history: History) -> Iterator[tuple[Stage, Graph]]:
    """Each stage after the first, with the graph that it began with."""
    before = history.stages[0].graph
    for stage in history.stages[1:]:
        yield stage, before
        before = stage.graph


def differences(stage: Stage, before: Graph) -> list[Change]:
    """What a stage changed and refused, by the identity of values, in the order of the graph."""
    found = [
        Change(each.mark, change_text(each), place_text(each.node, stage.graph), each.why)
        for each in diff(before, stage.graph, stage.events)
    ]
    notes = [Change("!", each.why, "", "") for each in stage.events if each.kind == "note"]
    return found + notes


def change_text(change: Difference) -> str:
    """`%e = add %a, %b -> const 3`: of what did not change, no second copy."""
    if change.mark != "~":
        return change.text
    after = node_text(change.node)
    before = change.text.removesuffix(f" -> {after}")
    name, equals, rest = after.partition(" = ")
    if equals and before.startswith(f"{name} = "):
        after = rest
    kind = after.rpartition(" : ")[2]
    if f" : {kind}" in after and before.endswith(f" : {kind}"):
        before = before.removesuffix(f" : {kind}")
    return f"{before} -> {after}"


def place_text(node: Node, graph: Graph) -> str:
    """`@L7`; with the file where that is another than the graph's first."""
    if node.loc is None:
        return ""
    first = next((each.loc.file for each in graph.nodes if each.loc is not None), node.loc.file)
    return f"@L{node.loc.line}" if node.loc.file == first else f"@{node.loc}"


def count_text(changes: Sequence[Change]) -> str:
    """`2 gone, 1 changed`."""
    counts = [(sum(each.mark == mark for each in changes), word) for mark, (word, _) in MARKS.items()]
    return ", ".join(f"{number} {word}" for number, word in counts if number)


def slot_name(slot: int) -> str:
    """A, B, ... Z, AA, AB, ..."""
    letters = ""
    slot += 1
    while slot:
        slot, rest = divmod(slot - 1, 26)
        letters = chr(ord("A") + rest) + letters
    return letters


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
        what = [text for value in node.outputs if (text := _storage_text(node, value, plan))]
        if node.op.view and isinstance(node.output.type, ArrayType):
            owner = lives.root[node.output]
            what.append(f"a view of %{owner.name}")
            slots = [plan.slot[owner]] if owner in plan.slot else []
        freed = ", ".join(slot_name(plan.slot[value]) for value in ends.get(position, ()))
        if freed:
            what.append(f"frees {freed}")
        if what:
            names = ", ".join(map(slot_name, slots))
            rows.append(Storage(node_text(node), names, "; ".join(what), bytes_text(alive)))
    return rows


def _storage_text(node: Node, value: Value, plan: Plan) -> str:
    if value not in plan.slot:
        return ""
    before = plan.reuses.get(value)
    if before is None:
        return f"a new buffer of {bytes_text(plan.slot_bytes[plan.slot[value]])} bytes"
    if value in plan.in_place:
        return f"in place of %{before.name}, which is not read again"
    return f"the buffer that %{before.name} left"


# ---------------------------------------------------------------------------- how it is drawn

Cell = tuple[str, str]
"""Text and style."""


class Terminal:
    """Writes to standard output (or `file`).

    Attributes:
        width: columns that may be used: those of the terminal, or 100 in a pipe, so that what is
            piped is the same everywhere.
    """

    def __init__(self, file: IO[str] | None = None) -> None:
        from rich.console import Console

        stream = sys.stdout if file is None else file
        if isinstance(stream, io.TextIOWrapper) and not (stream.encoding or "").startswith("utf"):
            stream.reconfigure(errors="backslashreplace")
        self.console = Console(file=stream, highlight=False, markup=False, emoji=False)
        self.width = max(40, self.console.width) if self.console.is_terminal else PIPE_WIDTH
        self.line = "-" if self.console.options.ascii_only else "─"

    # ------------------------------------------------------------------ lines

    def flush(self) -> None:
        """What was written is seen before what others write now."""
        self.console.file.flush()

    def write(self, *cells: Cell | str) -> None:
        """One line made of cells, never wrapped."""
        from rich.text import Text

        text = Text()
        for cell in cells:
            content, style = (cell, "") if isinstance(cell, str) else cell
            text.append(content, style)
        text.rstrip()
        self.console.print(text, soft_wrap=True)

    def heading(self, title: str, aside: str = "") -> None:
        """A title between rules, with a remark at the right."""
        rule = self.line
        head = f"{rule}{rule} "
        end = f" {aside} {rule}{rule}" if aside else f" {rule}{rule}"
        fill = max(2, min(self.width, PIPE_WIDTH) - len(head) - len(title) - len(end) - 1)
        self.write("")
        self.write((head, "dim"), (title, "bold"), (f" {rule * fill}{end}", "dim"))

    def paragraph(self, text: str, indent: int = 2, style: str = "") -> None:
        """Words, wrapped."""
        margin = " " * indent
        for line in textwrap.wrap(
            text, min(self.width, PIPE_WIDTH), initial_indent=margin, subsequent_indent=margin
        ):
            self.write((line, style))

    def table(
        self, rows: Iterable[Sequence[str]], head: Sequence[str] = (), right: Sequence[int] = ()
    ) -> None:
        """Aligned columns; those in `right` to the right; the last one is wrapped."""
        rows = [list(map(str, row)) for row in rows]
        every = [list(head), *rows] if head else rows
        if not rows:
            return
        last = len(every[0]) - 1
        widths = [max(_cells(row[column]) for row in every) for column in range(last + 1)]
        start = 2 + sum(width + 2 for width in widths[:last])
        for number, row in enumerate(every):
            style = "dim" if head and number == 0 else ""
            padded = [
                _pad(text, width, column in right)
                for column, (text, width) in enumerate(zip(row, widths, strict=True))
            ]
            lines = self._wrapped(padded[last] if last in right else row[last], start)
            self.write("  ", (("  ").join([*padded[:last], lines[0]]), style))
            for line in lines[1:]:
                self.write(" " * start + line)

    def _wrapped(self, text: str, start: int) -> list[str]:
        room = self.width - start
        if room < 24 or _cells(text) <= room:
            return [text]
        return textwrap.wrap(text, room, break_long_words=False) or [""]

    # ------------------------------------------------------------------ source and graphs

    def source(self, text: str, first: int = 1, limit: int = 0) -> None:
        """Python source with line numbers."""
        lines = text.rstrip("\n").split("\n")
        shown = lines[:limit] if limit and len(lines) > limit else lines
        coloured = self._python("\n".join(shown))
        digits = len(str(first + len(lines)))
        for number, line in enumerate(coloured, first):
            self.write((f"  {number:>{digits}}  ", "dim"), *line)
        if len(shown) < len(lines):
            self.write((f"  ... {len(lines) - len(shown)} more lines", "dim"))

    def program(self, text: str) -> None:
        """Generated source as it is: what stands here can be copied and run."""
        for line in self._python(text):
            self.write(*line)

    def _python(self, text: str) -> list[list[Cell]]:
        """The lines of Python source, coloured where that can be seen."""
        if not self.console.is_terminal or self.console.no_color:
            return [[(line, "")] for line in text.split("\n")]
        from rich.syntax import Syntax

        drawn = Syntax("", "python", theme="ansi_dark").highlight(text)
        return [
            [(segment.text, segment.style) for segment in line.render(self.console)]  # type: ignore[misc]
            for line in drawn.split("\n", allow_blank=True)
        ][: text.count("\n") + 1]

    def graph(self, graph: Graph, limit: int = 0) -> None:
        """The text form; of a long one the first nodes."""
        lines = str(graph).split("\n")
        if limit and len(lines) > limit + 2:
            left = len(lines) - limit
            lines[limit - 2 : -2] = [f"  # ... {left} more lines"]
        for line in lines:
            self.write(*_ir_cells(line))

    # ------------------------------------------------------------------ passes

    def changes(self, changes: Sequence[Change], limit: int = 0) -> None:
        """One line for each change: mark, node, source line, reason."""
        shown = changes[:limit] if limit and len(changes) > limit else changes
        width = min(NODE_WIDTH, max((_cells(each.text) for each in shown), default=0))
        places = max((_cells(each.place) for each in shown), default=0)
        start = 4 + width + 2 + places + (2 if places else 0)
        for each in shown:
            lines = self._wrapped(each.why, start)
            cells: list[Cell | str] = ["  ", (each.mark, f"bold {MARKS[each.mark][1]}"), " "]
            cells += _ir_cells(_pad(each.text, width))
            cells.append((f"  {_pad(each.place, places)}" if places else "", "dim"))
            if _cells(each.text) <= width:
                self.write(*cells, "  ", lines[0])
                lines = lines[1:]
            else:
                self.write(*cells)
            for line in lines:
                self.write(" " * start + line)
        if len(shown) < len(changes):
            self.write((f"    ... {count_text(changes[len(shown):])} more", "dim"))

    def passes(self, history: History, name: str | None = None, limit: int = 0) -> None:
        """What each pass did (or the one of that name); those that did nothing on one line."""
        quiet: list[str] = []
        for number, (stage, before) in enumerate(steps(history), 1):
            changes = differences(stage, before)
            if name not in (None, stage.name):
                continue
            if not changes:
                quiet.append(stage.name)
                continue
            nodes = f"{len(before.nodes)} -> {len(stage.graph.nodes)} nodes"
            self.write(
                (f"{number} {stage.name}", "bold"),
                (f"   {nodes}   {count_text(changes)}   {stage.wall_s * 1e3:.2f} ms", "dim"),
            )
            self.changes(changes, limit)
        told = [stage.name for stage, before in steps(history) if differences(stage, before)]
        quiet = [each for each in dict.fromkeys(quiet) if each not in told]
        if quiet:
            self.write(("changed nothing: ", "dim"), ", ".join(quiet))

    def summary(self, history: History) -> None:
        """One row for each stage: nodes, peak bytes, time."""
        rows: list[tuple[str, ...]] = []
        before: Graph | None = None
        for stage in history.stages:
            if stage.graph is not before:
                peak = bytes_text(plan_of(stage.graph).peak_bytes)
                rows.append(
                    (stage.name, str(len(stage.graph.nodes)), peak, f"{stage.wall_s * 1e3:.2f}")
                )
            before = stage.graph
        self.table(rows, ("stage", "nodes", "peak bytes", "ms"), right=(1, 2, 3))

    # ------------------------------------------------------------------ memory

    def plan(self, graph: Graph, plan: Plan) -> None:
        """Which buffer each array uses, what is freed when, and the bytes alive after each node."""
        rows = storage(graph, plan)
        self.table(
            [(each.text, each.slot, each.alive, each.what) for each in rows],
            ("node", "buffer", "alive after", "because it gets"),
            right=(2,),
        )


def _cells(text: str) -> int:
    """The columns that a text takes."""
    from rich.cells import cell_len

    return cell_len(text)


def _pad(text: str, width: int, right: bool = False) -> str:
    space = " " * max(0, width - _cells(text))
    return space + text if right else text + space


def _ir_cells(line: str) -> list[Cell]:
    """A line of the text form, coloured."""
    styles: dict[int, str] = {}
    for pattern, style in IR_COLOURS:
        for match in re.finditer(pattern, line):
            group = "bold" if "bold" in match.re.groupindex else 0
            styles.update(dict.fromkeys(range(*match.span(group)), style or "bold"))
    cells: list[Cell] = []
    for index, character in enumerate(line):
        style = styles.get(index, "")
        if cells and cells[-1][1] == style:
            cells[-1] = (cells[-1][0] + character, style)
        else:
            cells.append((character, style))
    return cells
