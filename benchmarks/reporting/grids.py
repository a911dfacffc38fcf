"""Tables as data, and their two forms: for a terminal of any width, and Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from rich import box
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

TONES = {"": "", "gain": "cyan", "loss": "yellow", "grey": "bright_black"}
WIDE = 160  # columns of a terminal in which there is room for the titles of rows
GAP = 2  # blanks between two columns


@dataclass(frozen=True)
class Entry:
    """What stands in a cell.

    Attributes:
        text: what is read; tone: how it is meant, one of `TONES`, never told by it alone.
        note: number of a footnote (0: none).
    """

    text: str
    tone: str = ""
    note: int = 0

    def __str__(self) -> str:
        return f"{self.text} [{self.note}]" if self.note else self.text


@dataclass
class Notes:
    """Footnotes, each said once."""

    texts: list[str] = field(default_factory=list)

    def number(self, text: str) -> int:
        """The number of a footnote with this text; 0 if there is nothing to say."""
        text = " ".join(text.split())
        if not text:
            return 0
        if text not in self.texts:
            self.texts.append(text)
        return self.texts.index(text) + 1

    def lines(self) -> list[str]:
        return [f"[{number}] {text}" for number, text in enumerate(self.texts, 1)]


@dataclass(frozen=True)
class Grid:
    """A table.

    Attributes:
        title: above it; head: of all columns, the one with the names of the rows first.
        rows: the name of each, and its entries; titles: name of a row → how it is called at length.
        remarks: below it, one paragraph each.
    """

    title: str
    head: Sequence[str]
    rows: Sequence[tuple[str, Sequence[Entry]]]
    titles: dict[str, str] = field(default_factory=dict)
    remarks: Sequence[str] = ()

    def lines(self, long: bool) -> list[list[Entry]]:
        names = self.titles if long else {}
        return [[Entry(names.get(name, name)), *row] for name, row in self.rows]

    def parts(self, width: int, long: bool) -> Iterator[list[int]]:
        """Numbers of columns, so many at a time as `width` has room for; the first in each."""
        first, *widths = (GAP + each for each in self.widths(long))
        part, taken = [0], first
        for column, each in enumerate(widths, 1):
            if len(part) > 1 and taken + each - GAP > width:
                yield part
                part, taken = [0], first
            part.append(column)
            taken += each
        yield part

    def widths(self, long: bool) -> list[int]:
        """Of the columns; heads are broken between words."""
        lines = self.lines(long)
        return [
            max([*map(len, head.split()), *(len(str(line[column])) for line in lines)], default=0)
            for column, head in enumerate(self.head)
        ]


@dataclass(frozen=True)
class Report:
    """Tables and paragraphs, which `rich` prints to fit a terminal."""

    parts: Sequence[Grid | str]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for part in self.parts:
            if isinstance(part, str):
                yield Text(part)
            else:
                yield from _printed(part, options.max_width)
            yield ""


def _printed(grid: Grid, width: int) -> RenderResult:
    long = width >= WIDE and bool(grid.titles)
    lines, widths = grid.lines(long), grid.widths(long)
    yield Text(grid.title, style="bold")
    for columns in grid.parts(width, long):
        table = Table(
            box=box.SIMPLE_HEAD, padding=(0, GAP - 1, 0, 0), pad_edge=False, show_edge=False
        )
        for column in columns:
            side = "right" if column else "left"
            table.add_column(Text(grid.head[column]), justify=side, width=widths[column])
        for line in lines:
            entries = [line[column] for column in columns]
            table.add_row(*(Text(str(each), style=TONES[each.tone]) for each in entries))
        yield table
    for remark in grid.remarks:
        yield Text(remark, style=TONES["grey"])


def as_markdown(grid: Grid) -> str:
    """The table as GitHub shows it; what minigraph loses is bold."""
    lines = [list(map(_escaped, grid.head)), ["---", *["---:"] * (len(grid.head) - 1)]]
    for line in grid.lines(long=True):
        lines.append([_marked(each) for each in line])
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    remarks = "\n\n".join(map(_escaped, grid.remarks))
    return "\n\n".join(filter(None, (f"### {grid.title}", table, remarks)))


def _marked(entry: Entry) -> str:
    text = _escaped(entry.text)
    text = f"**{text}**" if entry.tone == "loss" else text
    return f"{text} [{entry.note}]" if entry.note else text


def _escaped(text: str) -> str:
    for sign in "\\|<*_`":
        text = text.replace(sign, f"\\{sign}")
    return text
