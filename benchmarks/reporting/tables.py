"""The tables of a run, computed from its results: for the terminal, and for the README."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from minigraph.measuring import duration

from ..harness.results import Results
from . import verdicts
from .grids import Entry, Grid, Notes, Report, as_markdown
from .verdicts import KINDS, LOST, MEASURED, NO_GAIN, WON

TONE = {WON: "gain", LOST: "loss", NO_GAIN: ""}
NOTHING = Entry("-", "grey")
EQUAL, NOISY = "=", "~"
UNWRITTEN = ("missing", "not written")
_SIGNS = (
    f"{EQUAL}: no gain for either, the ranges between the quartiles overlap; {NOISY}: noisy; "
    f"{NOTHING}: not "
)
MARKS = "×: how many times as long as {}; " + _SIGNS + "meant for this column."
SHARES = (
    "The time of {} divided by that of the other: below 1 is a gain, bold a loss; "
    + _SIGNS
    + "written."
)
PLANNED = "planned by minigraph"
VARIANTS = (
    "torch eager with grad",
    "torch.jit.script of cells",
    "torch.jit.freeze",
    "TensorFlow eager",
    "MXNet imperative",
    "MXNet hybridize",
)
"""Peers that have no column in Markdown, which would be too wide: others of theirs have."""


def amount(count: float) -> str:
    """Bytes with their unit, to three digits."""
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("KB", 1e3)):
        if abs(count) >= size:
            return f"{three_digits(count / size)} {unit}"
    return f"{three_digits(count)} B"


def times(value: float) -> str:
    """A ratio: to two decimals, and to two digits at least."""
    if value < 0.1:
        return three_digits(float(f"{value:.2g}"))
    return f"{value:.2f}" if value < 10 else three_digits(value)


def three_digits(value: float) -> str:
    """Without an exponent, as long as there is no need."""
    return f"{float(f'{value:.3g}'):g}"


def terminal(results: Results) -> Report:
    """For `Console.print`: what was measured, and why something was not."""
    parts: list[Grid | str] = [heading(results)]
    kinds = by_kind(results)
    for kind, names in kinds.items():
        if results.has_any:
            parts.append(against_the_fastest(results, kind, names))
        table = Columns(results, names, verdicts.columns(results))
        parts.append(table.times(f"{KINDS[kind]}: medians"))
    every = sum(kinds.values(), [])
    rest = [*counts(results, kinds), *costs(results, every, verdicts.columns(results))]
    return Report([*parts, *rest])


def markdown(results: Results) -> str:
    """The same for a page: minigraph's times, and what share they are of those of others."""
    kinds = by_kind(results)
    every = sum(kinds.values(), [])
    own = [name for name in verdicts.columns(results) if verdicts.is_ours(name)]
    shown = [name for name in (verdicts.reference(results), *main_peers(results)) if name]
    parts: list[Grid] = [
        *(shares(results, kind, names) for kind, names in kinds.items()),
        *counts(results, kinds),
        *losses(results, every),
        Columns(results, every, own).times("Minigraph's own ways: medians"),
        *costs(results, every, shown),
    ]
    return "\n\n".join(map(as_markdown, parts))


def by_kind(results: Results) -> dict[str, list[str]]:
    """The workloads of each kind whose turn came."""
    left = set(not_reached(results))
    found = {
        kind: [name for name in verdicts.workloads(results, kind) if name not in left]
        for kind in KINDS
    }
    return {kind: names for kind, names in found.items() if names}


def not_reached(results: Results) -> list[str]:
    """The workloads that no column had its turn with, for want of time."""
    found: dict[str, set[str]] = {}
    for cell in results.cells:
        found.setdefault(cell.workload, set()).add(cell.status)
    return [
        name
        for name, statuses in found.items()
        if "not reached" in statuses <= {"not reached", *UNWRITTEN}
    ]


def heading(results: Results) -> str:
    """When, where and with what it was measured."""
    machine, left = results.machine, not_reached(results)
    commit = f", commit {results.commit[:10]}" if results.commit else ""
    changed = " with changes" if results.dirty else ""
    versions: dict[str, str] = {}
    for column in results.runners.values():
        versions.update(column.versions)
    sentences = [
        f"Measured {results.started[:10]} ({results.kind} run{commit}{changed})",
        f"{machine['processor']}, {machine['cores']} cores, {machine['system']}, "
        f"Python {machine['python']}; threads of each: {results.threads}",
        ", ".join(f"{name} {version}" for name, version in versions.items()),
        f"Sizes times {results.scale:g}" if results.scale != 1 else "",
        "The run was interrupted" if results.interrupted else "",
        f"Not reached: {', '.join(left)}" if left else "",
    ]
    return ". ".join(filter(None, sentences)) + "."


# ---- all columns -------------------------------------------------------------------------------


class Columns:
    """Those columns that have something to show on some workloads, and why others have not."""

    def __init__(self, results: Results, names: Sequence[str], wanted: Sequence[str]) -> None:
        self.results, self.names = results, names
        self.reference = verdicts.reference(results)
        self.notes = Notes()
        self.shown = [name for name in wanted if self._has_something(name)]
        self.absent = [name for name in wanted if name not in self.shown]

    def _has_something(self, column: str) -> bool:
        cells = [self.results.cell(name, column) for name in self.names]
        return any(cell and cell.status not in UNWRITTEN for cell in cells)

    def grid(self, title: str, entry: Callable[[str, str], Entry], first: str = "") -> Grid:
        """The table that has `entry(workload, column)` in its cells.

        Args:
            title: of the table.
            entry: a cell of it.
            first: a column to stand before the others.
        """
        shown = [first, *self.shown] if first else self.shown
        rows = [(name, [entry(name, column) for column in shown]) for name in self.names]
        titles = {name: self.results.workloads[name].title for name in self.names}
        return Grid(title, ["workload", *shown], rows, titles)

    def times(self, title: str) -> Grid:
        """The medians, and how many times as long they are as the reference's."""
        grid = self.grid(title, self.time)
        marks = [MARKS.format(self.reference)] if self.reference else []
        return replace(grid, remarks=[*marks, *self.reasons()])

    def time(self, workload: str, column: str) -> Entry:
        entry = self.median(workload, column)
        ratio = verdicts.ratio(self.results, workload, column, self.reference)
        if ratio is None or column == self.reference:
            return entry
        text = f"{entry.text} ×{times(ratio.value)}{EQUAL if ratio.verdict == NO_GAIN else ''}"
        return Entry(text, {WON: "loss", LOST: "gain", NO_GAIN: ""}[ratio.verdict])

    def share(self, workload: str, column: str) -> Entry:
        """The reference's time, divided by that of a column."""
        ratio = verdicts.ratio(self.results, workload, self.reference, column)
        cell = self.results.cell(workload, column)
        if ratio is None or column == self.reference:
            absent = cell is not None and cell.status == "not written"
            return NOTHING if absent else self.median(workload, column)
        return Entry(
            f"{times(ratio.value)}{EQUAL if ratio.verdict == NO_GAIN else ''}"
            f"{self.noisy(workload, column)}",
            TONE[ratio.verdict],
        )

    def median(self, workload: str, column: str) -> Entry:
        """The time, or in words why there is none."""
        cell = self.results.cell(workload, column)
        if cell is None:
            return NOTHING
        if cell.status != MEASURED:
            return Entry(cell.status, "grey", self.notes.number(cell.message or ""))
        return Entry(duration(cell.statistics.median_s) + self.noisy(workload, column))

    def noisy(self, workload: str, column: str) -> str:
        cell = verdicts.measured(self.results, workload, column)
        return NOISY if cell and verdicts.noise(cell) else ""

    def reasons(self) -> list[str]:
        """Why cells have no time, and why some have no column."""
        found: dict[str, list[str]] = {}
        for name in self.absent:
            missing = self.results.runners[name].missing
            reason = f"missing, {missing}" if missing else "not written for any of these"
            found.setdefault(reason, []).append(name)
        absent = [f"No column of {', '.join(each)}: {reason}." for reason, each in found.items()]
        return [*self.notes.lines(), *absent]


# ---- who was faster ----------------------------------------------------------------------------


def against_the_fastest(results: Results, kind: str, names: Sequence[str]) -> Grid:
    """Each workload, and the fastest of all that are not minigraph."""
    table = Columns(results, names, verdicts.columns(results))
    ours = table.reference or "nothing"
    others = [name for name in verdicts.peers(results) if name != ours]
    rows, found = list[tuple[str, Sequence[Entry]]](), Counter[str]()
    for name in names:
        best = verdicts.fastest(results, name, others)
        row = [table.median(name, ours), NOTHING, NOTHING, NOTHING, NOTHING]
        if best:
            row[1:3] = Entry(best.runner), table.median(name, best.runner)
        if best and (ratio := verdicts.ratio(results, name, ours, best.runner)):
            found[ratio.verdict] += 1
            tone = TONE[ratio.verdict]
            row[3:] = Entry(times(ratio.value), tone), Entry(ratio.verdict, tone)
        rows.append((name, row))
    rest = len(names) - found.total()
    said = f"Of {len(names)} workloads: {spoken(found)}, not compared {rest}. {NOISY}: noisy."
    return Grid(
        f"{KINDS[kind]}: {ours} against the fastest other",
        ["workload", ours, "fastest other", "its time", "ratio", "verdict"],
        rows,
        {name: results.workloads[name].title for name in names},
        [said, *table.notes.lines()],
    )


def spoken(found: Counter[str]) -> str:
    return ", ".join(f"{verdict} {found[verdict]}" for verdict in (WON, LOST, NO_GAIN))


def counted(found: Counter[str]) -> Entry:
    if not found:
        return NOTHING
    return Entry(" / ".join(str(found[verdict]) for verdict in (WON, LOST, NO_GAIN)))


def counts(results: Results, kinds: Mapping[str, Sequence[str]]) -> list[Grid]:
    """How many workloads the reference won and lost, against each column, if there is any."""
    ours = verdicts.reference(results)
    rows: list[tuple[str, Sequence[Entry]]] = []
    for column in verdicts.columns(results):
        found = [verdicts.tally(results, column, names) for names in kinds.values()]
        if column != ours and any(found):
            rows.append((column, [counted(each) for each in found]))
    title = f"Workloads on which {ours or 'nothing'} won / lost / had no gain"
    head = ["against", *(KINDS[kind] for kind in kinds)]
    return [Grid(title, head, rows)] if rows else []


def losses(results: Results, names: Sequence[str]) -> list[Grid]:
    """The workloads that the reference lost, each with whom it lost them to, the fastest first."""
    ours, rows = verdicts.reference(results), list[tuple[str, Sequence[Entry]]]()
    for name in names:
        found = verdicts.lost(results, name)
        if found:
            said = ", ".join(f"{peer} {times(ratio.value)}" for peer, ratio in found.items())
            rows.append((name, [Entry(said)]))
    if not rows:
        return []
    head = ["workload", f"the time of {ours} divided by that of"]
    return [Grid(f"Where {ours} loses, beyond noise", head, rows)]


def main_peers(results: Results) -> list[str]:
    """The columns that minigraph's is compared with in Markdown."""
    ours = verdicts.reference(results)
    return [name for name in verdicts.peers(results) if name not in (ours, *VARIANTS)]


def shares(results: Results, kind: str, names: Sequence[str]) -> Grid:
    """Minigraph's time, divided by that of each other."""
    ours = verdicts.reference(results)
    table = Columns(results, names, main_peers(results))
    grid = table.grid(KINDS[kind], table.share, first=ours or "")
    start = 2 if ours else 1
    head = [*grid.head[:start], *(f"/ {column}" for column in grid.head[start:])]
    return replace(grid, head=head, remarks=[SHARES.format(ours), *table.reasons()])


# ---- what else it costs ------------------------------------------------------------------------


def costs(results: Results, names: Sequence[str], wanted: Sequence[str]) -> list[Grid]:
    """First calls, and memory."""
    table = Columns(results, names, wanted)
    if not table.shown:
        return []

    def first_call(workload: str, column: str) -> Entry:
        cell = verdicts.measured(results, workload, column)
        return Entry(duration(cell.first_call_s)) if cell and cell.first_call_s else NOTHING

    def memory(workload: str, column: str, what: str = "beyond_bytes") -> Entry:
        planned = column == PLANNED
        cell = verdicts.measured(results, workload, table.reference if planned else column)
        facts = (cell.details if planned else cell.memory) if cell else None
        found = (facts or {}).get("planned_peak_bytes" if planned else what)
        return NOTHING if found is None else Entry(amount(found))

    first = table.grid("First call: building, compiling, running", first_call)
    highest = table.grid(
        "Memory at the first call: the highest, beyond imports and arguments",
        lambda workload, column: memory(workload, column, "first_call_bytes"),
    )
    return [
        replace(first, rows=[_importing(results, table.shown), *first.rows]),
        replace(highest, rows=[_importing(results, table.shown, memory=True), *highest.rows]),
        table.grid(
            "Memory of later calls, with what compiling left: beyond the same",
            memory,
            PLANNED,
        ),
    ]


def _importing(
    results: Results, columns: Sequence[str], *, memory: bool = False
) -> tuple[str, Sequence[Entry]]:
    """What importing took, in the middle of all processes of a column."""

    def entry(column: str) -> Entry:
        cells = [cell for cell in results.cells if cell.runner == column]
        found = [
            (cell.memory or {}).get("import_bytes") if memory else cell.import_s for cell in cells
        ]
        there = [each for each in found if each is not None]
        if not there:
            return NOTHING
        middle = statistics.median(there)
        return Entry(amount(middle) if memory else duration(middle))

    return "the import, before it", [entry(column) for column in columns]
