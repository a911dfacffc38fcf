"""What a terminal shows: source, graphs, what each pass did and why, and where values live.

Drawn with rich: in colour on a terminal, as plain text into a pipe.  Meaning never rests on colour
alone.
"""

from __future__ import annotations

import io
import re
import sys
import textwrap
from collections.abc import Iterable, Sequence
from functools import cache
from importlib import import_module
from typing import IO, Any

from minigraph.ir import Graph, Plan
from minigraph.passes import History, plan_of

from .escape import clip
from .lines import Change, bytes_text, count_text, differences, storage

PIPE_WIDTH = 100
NODE_WIDTH = 46  # of the column that holds nodes, at most
SHOWN_LINES = 40  # of a text that is shown as a part of something longer
SHOWN_CHANGES = 16  # of one pass, likewise

COLOURS = {"+": "green", "-": "red", "~": "blue", "!": "yellow"}

IR_COLOURS = (
    (r"%[\w.]+", "cyan"),
    (r"(?:^\s*|= )(?P<bold>[a-z_]\w*)(?= |$)", ""),
    (r"(?<=const )\S+", "yellow"),
    (r" : \S+(?=\s|$)", "dim"),
    (r"# .*$", "dim"),
)

Cell = tuple[str, Any]
"""Text, and its style: words, or what rich made."""


class Terminal:
    """Writes to standard output (or `file`).

    Attributes:
        plain: into a pipe or file: no colours.
        width: columns that may be used: those of the terminal, or 100 in a pipe, so that what is
            piped is the same everywhere.
    """

    def __init__(self, file: IO[str] | None = None) -> None:
        stream = sys.stdout if file is None else file
        if isinstance(stream, io.TextIOWrapper) and not (stream.encoding or "").startswith("utf"):
            stream.reconfigure(errors="backslashreplace")
        self.console = _rich("console").Console(
            file=stream, highlight=False, markup=False, emoji=False
        )
        self.plain = not self.console.is_terminal
        self.width = PIPE_WIDTH if self.plain else max(40, self.console.width)
        self.line = "-" if self.console.options.ascii_only else "─"

    # ------------------------------------------------------------------ lines

    def flush(self) -> None:
        """What was written is seen before what others write now."""
        self.console.file.flush()

    def write(self, *cells: Cell | str) -> None:
        """One line made of cells, never wrapped."""
        if self.plain:
            line = "".join(cell if isinstance(cell, str) else cell[0] for cell in cells)
            self.console.file.write(line.rstrip() + "\n")
            return
        text = _rich("text").Text()
        for cell in cells:
            content, style = (cell, "") if isinstance(cell, str) else cell
            text.append(content, style)
        text.rstrip()
        self.console.print(text, soft_wrap=True)

    def heading(self, title: str, aside: str = "") -> None:
        """A title between rules, with a remark at the right."""
        rule = self.line
        head = f"{rule}{rule} "
        end = f" {aside} {rule}{rule}" if aside else ""
        fill = max(2, min(self.width, PIPE_WIDTH) - len(head) - len(title) - len(end) - 1)
        self.write("")
        self.write((head, "dim"), (title, "bold"), (f" {rule * fill}{end}", "dim"))

    def table(
        self, rows: Iterable[Sequence[object]], head: Sequence[str] = (), right: Sequence[int] = ()
    ) -> None:
        """Aligned columns; those in `right` to the right; the last one is wrapped."""
        texts = [list(map(str, row)) for row in rows]
        every = [list(head), *texts] if head else texts
        if not texts:
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

    def program(self, text: str, limit: int = 0, stage: str = "program") -> None:
        """Generated source as it is; `stage` is what shows all of it."""
        lines = text.split("\n")
        shown = lines[:limit] if limit and len(lines) > limit else lines
        for line in self._python("\n".join(shown)):
            self.write(*line)
        if len(shown) < len(lines):
            self.write((f"# ... {len(lines) - len(shown)} more lines: --stage {stage}", "dim"))

    def _python(self, text: str) -> list[list[Cell]]:
        """The lines of Python source, coloured where that can be seen."""
        if self.plain or self.console.no_color:
            return [[(line, "")] for line in text.split("\n")]
        drawn = _rich("syntax").Syntax("", "python", theme="ansi_dark").highlight(text)
        return [
            [(segment.text, segment.style or "") for segment in line.render(self.console)]
            for line in drawn.split("\n", allow_blank=True)[: text.count("\n") + 1]
        ]

    def graph(self, graph: Graph, limit: int = 0, stage: str = "") -> None:
        """The text form; of a long one the first nodes."""
        lines = str(graph).split("\n")
        if limit and len(lines) > limit + 2:
            left = len(lines) - limit
            lines[limit - 2 : -2] = [f"  # ... {left} more lines: --stage {stage}"]
        for line in lines:
            self.write(*([line] if self.plain else _ir_cells(line)))

    # ------------------------------------------------------------------ passes

    def changes(self, changes: Sequence[Change], limit: int = 0, more: str = "") -> None:
        """One line for each change: mark, node, source line, reason; `more` says how to see all."""
        shown = changes[:limit] if limit and len(changes) > limit else changes
        width = min(NODE_WIDTH, max((_cells(each.text) for each in shown), default=0))
        places = max((_cells(each.place) for each in shown), default=0)
        start = 4 + width + 2 + places + (2 if places else 0)
        for each in shown:
            fits = _cells(each.text) <= width and start <= self.width - 30
            cells: list[Cell | str] = ["  ", (each.mark, f"bold {COLOURS[each.mark]}"), " "]
            cells += _ir_cells(_pad(each.text, width))
            cells.append((f"  {_pad(each.place, places if fits else 0)}" if places else "", "dim"))
            column = start if fits else 8
            lines = self._wrapped(each.why, column)
            if fits:
                cells += ["  ", lines.pop(0)]
            self.write(*cells)
            for line in filter(None, lines):
                self.write(" " * column + line)
        if len(shown) < len(changes):
            left = count_text(changes[len(shown) :])
            self.write((f"    ... {left} more: {more}", "dim"))

    def passes(self, history: History, name: str | None = None, limit: int = 0) -> None:
        """What each pass did (or the one of that name); those that did nothing on one line."""
        told: dict[str, bool] = {}
        for stage, before in history.steps():
            if name not in (None, stage.name):
                continue
            changes = differences(stage, before)
            told[stage.name] = told.get(stage.name, False) or bool(changes)
            if not changes:
                continue
            nodes = f"{len(before.nodes)} -> {len(stage.graph.nodes)} nodes"
            self.write(
                (stage.name, "bold"),
                (f", round {stage.round}" if stage.round > 1 else "", ""),
                (f"   {nodes}   {count_text(changes)}   {stage.wall_s * 1e3:.2f} ms", "dim"),
            )
            self.changes(changes, limit, f"--pass {stage.name}")
        quiet = [each for each, something in told.items() if not something]
        if quiet:
            self.write(("changed nothing: ", "dim"), ", ".join(quiet))

    def summary(self, history: History) -> None:
        """One row for each stage: nodes, peak bytes, time."""
        rows: list[tuple[str, ...]] = []
        before: Graph | None = None
        for stage in history.stages:
            if stage.graph is not before:
                peak = bytes_text(plan_of(stage.graph).peak_bytes)
                wall = f"{stage.wall_s * 1e3:.2f}" if before is not None else ""  # not measured
                rows.append((stage.name, str(len(stage.graph.nodes)), peak, wall))
            before = stage.graph
        head = ("stage", "nodes", "peak bytes", "ms")
        if all(row[2] == "0" for row in rows):
            head, rows = (*head[:2], head[3]), [(*row[:2], row[3]) for row in rows]
        self.table(rows, head, right=range(1, len(head)))

    # ------------------------------------------------------------------ memory

    def plan(self, graph: Graph, plan: Plan, limit: int = 0) -> None:
        """Which buffer each array uses, what is freed when, and the bytes alive after each node."""
        rows = storage(graph, plan)
        shown = rows[:limit] if limit and len(rows) > limit else rows
        self.table(
            [(clip(each.text, NODE_WIDTH), each.slot, each.alive, each.what) for each in shown],
            ("node", "buffer", "alive after", "memory"),
            right=(2,),
        )
        if len(shown) < len(rows):
            self.write((f"  ... {len(rows) - len(shown)} more: --pass plan", "dim"))


@cache
def _rich(part: str) -> Any:
    """A module of rich, loaded when something is first shown and not by `import minigraph`."""
    return import_module(f"rich.{part}")


def _cells(text: str) -> int:
    """The columns that a text takes."""
    return _rich("cells").cell_len(text)


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
