"""Figures with two logarithmic axes: time against size, and the roofline."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter

from minigraph.measuring import duration

from ..harness.results import Cell, Results, Work
from . import verdicts
from .looks import (
    GUESSED,
    NOISY,
    WIDTH,
    Drawn,
    Look,
    Point,
    count,
    draw_points,
    legend,
    looks_of,
    maker,
    marking,
    spread,
)
from .rows import makers

LINE = 0.165  # inches between lines of letters
FAMILIES = {
    "mlp": "MLP: samples of a batch",
    "chain": "elementwise chain: elements",
    "fancy_func": "fancy_func: elements",
    "lstm": "LSTM: samples of a batch",
    "gru": "GRU: samples of a batch",
}


def drawn(results: Results) -> Iterator[Drawn]:
    """Those that there is something for; sizes and operations are only known at scale 1."""
    if results.scale == 1:
        yield from sizes(results)
        yield from roofline(results)


class Label(NamedTuple):
    """A text beside the axes, and the point that it belongs to."""

    text: str
    x: float
    y: float
    colour: str


def labelled(axes: Axes, labels: Sequence[Label], height: float) -> None:
    """Write the texts to the right of logarithmic axes of `height` inches, none over another."""
    low, high = map(math.log, axes.get_ylim())
    wanted = [(math.log(label.y) - low) / (high - low) for label in labels]
    for label, place in zip(labels, spread(wanted, LINE / height), strict=True):
        axes.annotate(
            label.text,
            (label.x, label.y),
            (1.06, place),
            textcoords="axes fraction",
            va="center",
            arrowprops={
                "arrowstyle": "-",
                "color": label.colour,
                "linewidth": 0.5,
                "relpos": (0, 0.5),
                "shrinkA": 1,
                "shrinkB": 3,
            },
            annotation_clip=False,
        )


# ---- time against size -------------------------------------------------------------------------


def sizes(results: Results) -> Iterator[Drawn]:
    """The families that have workloads of several sizes."""
    families: dict[str, list[str]] = {}
    for name in verdicts.workloads(results, "inference"):
        families.setdefault(results.workloads[name].family, []).append(name)
    found = {
        family: lines for family in FAMILIES if (lines := _lines(results, families.get(family, [])))
    }
    if not found:
        return
    figure = Figure((WIDTH, 0.8 + 2.4 * ((len(found) + 1) // 2)))
    for place, (family, lines) in enumerate(found.items(), 1):
        axes = figure.add_subplot((len(found) + 1) // 2, 2, place)
        _draw_lines(results, axes, FAMILIES[family], lines)
    everybody = {maker(results, column) for lines in found.values() for column in lines}
    legend(figure, looks_of(who for who in makers(results) if who in everybody), [NOISY])
    said = "; ".join(f"{FAMILIES[family]}, {_said(lines)}" for family, lines in found.items())
    yield Drawn(
        "sizes",
        "Time against size",
        f"Time of a call against the size, both logarithmic. {said}.",
        "Of each framework the column that is fastest over all sizes of a family. Where a curve "
        "is level, a call costs more than the work in it. Bars go from quartile to quartile. "
        + "; ".join(f"{FAMILIES[family]}: {', '.join(lines)}" for family, lines in found.items())
        + ".",
        figure,
    )


def _lines(results: Results, names: Sequence[str]) -> dict[str, list[Cell]]:
    """Of each framework the fastest column → its cells from the smallest size to the largest."""
    ordered = sorted(names, key=lambda name: results.workloads[name].size)
    found: dict[str, list[Cell]] = {}
    for columns in makers(results).values():
        lines = {
            column: [cell for name in ordered if (cell := verdicts.measured(results, name, column))]
            for column in columns
        }
        longest = max(map(len, lines.values()))
        if longest < 2:
            continue
        whole = {column: cells for column, cells in lines.items() if len(cells) == longest}
        best = min(whole, key=lambda column: _mean_s(whole[column]))
        found[best] = whole[best]
    return found


def _mean_s(cells: Sequence[Cell]) -> float:
    return statistics.geometric_mean(cell.statistics.median_s for cell in cells)


def _draw_lines(
    results: Results, axes: Axes, title: str, lines: Mapping[str, Sequence[Cell]]
) -> None:
    known = looks_of(maker(results, column) for column in lines)
    for column, cells in lines.items():
        look = known[maker(results, column)]
        found = [cell.statistics for cell in cells]
        points = [
            Point(each.median_s, each.lower_s, each.upper_s, bool(verdicts.noise(cell)))
            for each, cell in zip(found, cells, strict=True)
        ]
        xs = [results.workloads[cell.workload].size for cell in cells]
        ys = [point.value for point in points]
        axes.plot(xs, ys, color=look.colour, zorder=2)
        ends = [point.lower for point in points], [point.upper for point in points]
        axes.vlines(xs, *ends, color=look.colour, linewidth=1, zorder=2)
        draw_points(axes, xs, ys, points, look)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.minorticks_off()
    ticks = sorted(
        {results.workloads[cell.workload].size for row in lines.values() for cell in row}
    )
    axes.set_xticks(ticks, [count(tick) for tick in ticks])
    axes.yaxis.set_major_formatter(FuncFormatter(lambda wall_s, _: duration(wall_s)))
    axes.set_title(title, loc="left")


def _said(lines: Mapping[str, Sequence[Cell]]) -> str:
    column, cells = next(iter(lines.items()))
    first, last = (duration(cell.statistics.median_s) for cell in (cells[0], cells[-1]))
    return f"{column} from {first} to {last}, beside {', '.join(list(lines)[1:]) or 'nothing'}"


# ---- the roofline ------------------------------------------------------------------------------

FLOAT32, FLOAT64 = Look("#0072B2", "o"), Look("#D55E00", "s")
ROOFS = {
    "float32_per_s": "multiply-adds, float32",
    "float64_per_s": "multiply-adds, float64",
    "matmul_per_s": "BLAS, float32",
}
SLOPES = {
    "l2_bytes_per_s": ("--", "roof of the second cache"),
    "dram_bytes_per_s": ("-", "roof of memory"),
}
GREY = "#555555"


class Program(NamedTuple):
    """A workload in the roofline.

    Attributes:
        before, after: operations a byte, without fusion and with it.
        slower, rate: operations a second, likewise.
        guessed: whether `slower` was not measured.
        share: of the roof above it that `rate` is.
    """

    title: str
    look: Look
    before: float
    after: float
    slower: float
    rate: float
    guessed: bool
    share: float


def roofline(results: Results) -> Iterator[Drawn]:
    """Operations a second against operations a byte, under the roofs of this machine."""
    programs = _programs(results) if results.roofs else []
    if not programs or results.roofs is None:
        return
    height = max(3.2, LINE * (len(programs) + len(ROOFS)))
    figure = Figure((WIDTH, height + 1.2))
    axes = figure.add_subplot()
    labels = _draw_roofs(axes, results.roofs, programs)
    for program in programs:
        _draw_program(axes, program)
        text = f"{program.title}: {100 * program.share:.0f} %"
        labels.append(Label(text, program.after, program.rate, program.look.colour))
    axes.set_xlabel("operations a byte")
    axes.set_ylabel("operations a second")
    labelled(axes, labels, height)
    handles = {"float32": FLOAT32, "float64": FLOAT64}
    lines = [
        Line2D([], [], color=GREY, linestyle=style, label=label) for style, label in SLOPES.values()
    ]
    legend(figure, handles, [*lines, *([GUESSED] if programs[0].guessed else [])])
    said = ", ".join(f"{each.title} {100 * each.share:.0f} %" for each in programs)
    yield Drawn(
        "roofline",
        "Roofline",
        f"Operations a second against operations for each byte moved, and what part of the roof is "
        f"reached: {said}.",
        "The programs that were measured without fusion, too, or all if none was. Each arrow goes "
        "from the program without fusion to the one with it; its beginning is hollow where the "
        "time without fusion was not measured, and then as far below the roof as its end. Percent: "
        "of the roof above the end, which is that of the second cache (dashed) for what fits in "
        "there, and that of BLAS for what is made of products. A function such as exp counts as "
        "one operation; a program that finds its data in the third cache can be above the roof of "
        "memory.",
        figure,
    )


def attainable(roofs: Mapping[str, Any], work: Work, moved_bytes: float) -> float:
    """The roof over a program, in operations a second."""
    near = moved_bytes <= roofs["l2_bytes"]
    slope = roofs["l2_bytes_per_s" if near else "dram_bytes_per_s"]
    flat = roofs["float64_per_s" if work.dtype == "float64" else "float32_per_s"]
    if work.products:
        flat = max(flat, roofs["matmul_per_s"])
    return min(flat, slope * work.operations / moved_bytes)


def _programs(results: Results) -> list[Program]:
    ours, found = verdicts.reference(results), list[Program]()
    assert results.roofs is not None
    for name in verdicts.workloads(results, "inference"):
        workload = results.workloads[name]
        without = verdicts.measured(results, name, f"{ours} without fusion")
        cell = verdicts.measured(results, name, ours)
        if without is not None and ours is not None:
            cell = verdicts.whole(results, name, ours)
        details = cell.details if cell else {}
        before, after = details.get("unfused_bytes"), details.get("fused_bytes")
        if cell is None or not (workload.operations and before and after):
            continue
        rate = workload.operations / cell.statistics.median_s
        roofs = [attainable(results.roofs, workload, moved) for moved in (before, after)]
        slower = rate * roofs[0] / roofs[1]
        if without is not None:
            slower = workload.operations / without.statistics.median_s
        look = FLOAT64 if workload.dtype == "float64" else FLOAT32
        intensities = workload.operations / before, workload.operations / after
        share = rate / roofs[1]
        found.append(Program(name, look, *intensities, slower, rate, without is None, share))
    return [each for each in found if not each.guessed] or found


def _draw_roofs(axes: Axes, roofs: Mapping[str, Any], programs: Sequence[Program]) -> list[Label]:
    """The lines, and the labels of those that have theirs beside the axes."""
    xs = [x for each in programs for x in (each.before, each.after)]
    left, right = min(xs) / 3, max(xs) * 3
    ys = [y for each in programs for y in (each.slower, each.rate)]
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.minorticks_off()
    axes.set_xlim(left, right)
    axes.set_ylim(min(ys) / 2, 2 * max(*ys, *(roofs[name] for name in ROOFS)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: count(x)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda rate, _: count(rate)))
    top = max(roofs[name] for name in ROOFS)
    for name, (style, _) in SLOPES.items():
        ridge = top / roofs[name]
        axes.plot([left, ridge], [left * roofs[name], top], color=GREY, linestyle=style, zorder=1)
    for name in ROOFS:
        start = roofs[name] / roofs["l2_bytes_per_s"]
        axes.plot([start, right], [roofs[name]] * 2, color=GREY, zorder=1)
    return [Label(ROOFS[name], right, roofs[name], GREY) for name in ROOFS]


def _draw_program(axes: Axes, program: Program) -> None:
    look = program.look
    if program.before != program.after or program.slower != program.rate:
        axes.annotate(
            "",
            (program.after, program.rate),
            (program.before, program.slower),
            arrowprops={"arrowstyle": "->", "color": look.colour, "lw": 0.9, "shrinkA": 0},
        )
        face = "white" if program.guessed else None
        axes.plot([program.before], [program.slower], **marking(look, face), markersize=3.5)
    axes.plot([program.after], [program.rate], **marking(look), zorder=3)
