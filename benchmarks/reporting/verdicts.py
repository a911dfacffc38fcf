"""What may be said of results: who is compared, ratios with their ranges, and what is noise."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from minigraph.measuring import Statistics

from ..harness.results import Cell, Results

KINDS: Mapping[str, str] = {
    "inference": "Inference",
    "training": "Training",
    "loop": "Loops of numbers",
}
MEASURED = "measured"
OURS = "minigraph"  # what the names of minigraph's own columns begin with
WON, LOST, NO_GAIN = "won", "lost", "no gain"
WIDE = 0.1  # of the median: where the quartiles are farther apart, the machine was restless


@dataclass(frozen=True)
class Ratio:
    """How long one takes for each second that another takes.

    Attributes:
        value: of the medians.
        lower, upper: of those quartiles that are nearest to each other, and farthest.
        few: of one of them there are too few samples to tell it from the other.
    """

    value: float
    lower: float
    upper: float
    few: bool = False

    @classmethod
    def of(cls, ours: Statistics, theirs: Statistics) -> Ratio:
        return cls(
            ours.median_s / theirs.median_s,
            ours.lower_s / theirs.upper_s,
            ours.upper_s / theirs.lower_s,
            ours.is_few or theirs.is_few,
        )

    @property
    def verdict(self) -> str:
        """No gain is where the ranges between the quartiles have a duration in common."""
        return {True: WON, False: LOST, None: NO_GAIN}[self.is_below(1.0)]

    def is_below(self, bound: float) -> bool | None:
        """Whether all of the range is; None where the bound lies in it, or samples are few."""
        if self.few or self.lower <= bound <= self.upper:
            return None
        return self.upper < bound


def noise(cell: Cell) -> str:
    """Why a measurement is to be taken with care; nothing, if it is not."""
    found, reasons = cell.statistics, []
    if found.is_few:
        reasons.append("few samples")
    if found.upper_s - found.lower_s > WIDE * found.median_s:
        reasons.append("quartiles far apart")
    if cell.warm_up is not None and not cell.warm_up.stable:
        reasons.append("never steady while warming up")
    return ", ".join(reasons)


def columns(results: Results) -> list[str]:
    """The runners that are compared with each other."""
    return [name for name, runner in results.runners.items() if not runner.ablation]


def ablations(results: Results) -> dict[str, tuple[str, str]]:
    """Columns that leave out a part of a compiler → which part, and of which column."""
    found: dict[str, tuple[str, str]] = {}
    for name, runner in results.runners.items():
        of_whom, without, part = name.partition(" without ")
        if runner.ablation and without:
            found[name] = (part, of_whom)
    return found


def whole(results: Results, workload: str, column: str) -> Cell | None:
    """A column that leaves nothing out, as it was measured beside those that leave out a part."""
    return measured(results, workload, f"{column} whole") or measured(results, workload, column)


def is_ours(column: str) -> bool:
    return column.startswith(OURS)


def reference(results: Results) -> str | None:
    """The column that the others are compared with: minigraph's, if it was measured at all."""
    having = {cell.runner for cell in results.cells if cell.status == MEASURED}
    return next((name for name in columns(results) if name in having), None)


def peers(results: Results) -> list[str]:
    """The columns that minigraph is compared with."""
    return [name for name in columns(results) if not is_ours(name)]


def workloads(results: Results, kind: str) -> list[str]:
    """The workloads of a kind that have a place in these results, in their order."""
    there = {cell.workload for cell in results.cells}
    return [name for name, each in results.workloads.items() if each.kind == kind and name in there]


def measured(results: Results, workload: str, column: str | None) -> Cell | None:
    """The cell, if there is a measurement in it."""
    cell = results.cell(workload, column) if column else None
    return cell if cell is not None and cell.status == MEASURED else None


def ratio(results: Results, workload: str, ours: str | None, theirs: str) -> Ratio | None:
    """Of one column to another, where both were measured."""
    mine, other = measured(results, workload, ours), measured(results, workload, theirs)
    return mine and other and Ratio.of(mine.statistics, other.statistics)


def fastest(results: Results, workload: str, among: Sequence[str]) -> Cell | None:
    """The measured cell that has the smallest median."""
    found = [cell for name in among if (cell := measured(results, workload, name))]
    return min(found, key=lambda cell: cell.statistics.median_s, default=None)


def lost(results: Results, workload: str) -> dict[str, Ratio]:
    """The peers that were faster than the reference beyond noise, the fastest first."""
    ours = reference(results)
    found = {
        peer: each for peer in peers(results) if (each := ratio(results, workload, ours, peer))
    }
    ordered = sorted(found.items(), key=lambda item: -item[1].value)
    return {peer: each for peer, each in ordered if each.verdict == LOST}


def tally(results: Results, theirs: str, among: Sequence[str]) -> Counter[str]:
    """On how many workloads the reference has won against a column, lost, or neither."""
    ours = reference(results)
    found = (ratio(results, workload, ours, theirs) for workload in among)
    return Counter(each.verdict for each in found if each)
