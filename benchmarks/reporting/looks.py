"""How figures look: colours and markers that are told apart in grey print and by everybody."""

from __future__ import annotations

import itertools
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from ..harness.results import Results

WIDTH = 7.0  # inches, which a page has
POINTS = 9  # of the smallest letters
TITLE_WIDTH = 31  # letters of a line of a workload's title
STYLE: Mapping[str, Any] = {
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": POINTS + 1,
    "figure.constrained_layout.use": True,
    "font.size": POINTS,
    "legend.fontsize": POINTS,
    "legend.frameon": False,
    "lines.linewidth": 1.2,
    "lines.markersize": 5,
    "savefig.facecolor": "white",
    "svg.fonttype": "none",
    "svg.hashsalt": "minigraph",
    "xtick.labelsize": POINTS,
    "ytick.labelsize": POINTS,
}


@dataclass(frozen=True)
class Look:
    """A colour of Okabe and Ito's palette, or a grey, and a marker."""

    colour: str
    marker: str


MAKERS: Mapping[str, str] = {
    "torch": "PyTorch",
    "tensorflow": "TensorFlow",
    "mxnet": "MXNet",
    "jax": "JAX",
    "onnxruntime": "ONNX Runtime",
    "pytensor": "PyTensor",
}
"""Framework of a runner → its name in figures."""

LOOKS: Mapping[str, Look] = {
    "minigraph": Look("#000000", "o"),
    "NumPy": Look("#666666", "s"),
    "Numba": Look("#999999", "X"),
    "PyTorch": Look("#D55E00", "^"),
    "TensorFlow": Look("#E69F00", "v"),
    "MXNet": Look("#0072B2", "D"),
    "JAX": Look("#009E73", "P"),
    "ONNX Runtime": Look("#CC79A7", ">"),
    "PyTensor": Look("#56B4E9", "<"),
}
OTHERS = (Look("#000000", "*"), Look("#0072B2", "p"), Look("#D55E00", "h"), Look("#009E73", "d"))


@dataclass(frozen=True)
class Point:
    """A figure with its range; `noisy` ones are drawn hollow, of `few` samples nothing is said."""

    value: float
    lower: float
    upper: float
    noisy: bool = False
    few: bool = False


Rows = Mapping[str, Mapping[str, Point]]
"""Name of a series → workload → the point."""


@dataclass(frozen=True)
class Drawn:
    """A figure.

    Attributes:
        name: of its file; title: above it.
        alternative: what it shows, for those who do not see it.
        caption: how to read it.
    """

    name: str
    title: str
    alternative: str
    caption: str
    figure: Figure


def maker(results: Results, column: str) -> str:
    """Who makes a column: a framework, or one of minigraph, NumPy and Numba."""
    framework = results.runners[column].framework
    if framework:
        return MAKERS.get(framework, framework)
    return next((name for name in LOOKS if column.startswith(name)), column)


def looks_of(names: Iterable[str]) -> dict[str, Look]:
    """A look for each series, the same in all figures for those that are known."""
    names = list(names)
    free = [look for name, look in LOOKS.items() if name not in names]
    others = itertools.cycle([*free, *OTHERS])
    return {name: LOOKS[name] if name in LOOKS else next(others) for name in names}


def row_figure(
    results: Results, names: Sequence[str], rows: Rows
) -> tuple[Figure, Axes, list[str]]:
    """One row for each workload, in which each series has a point beside those of the others.

    Returns:
        The figure, its axes, and the workloads that have a row: those with a point.
    """
    there = {name for points in rows.values() for name in points}
    shown = [name for name in names if name in there]
    height = max(0.4, 0.045 * len(rows))
    figure = Figure((WIDTH, 1.5 + height * len(shown)))
    axes = figure.add_subplot()
    for index in range(0, len(shown), 2):
        axes.axhspan(index - 0.5, index + 0.5, color="#f2f2f2", linewidth=0, zorder=0)
    looks = looks_of(rows)
    for number, (series, points) in enumerate(rows.items()):
        beside = (number - (len(rows) - 1) / 2) * 0.75 / len(rows)
        ys = [shown.index(name) + beside for name in points]
        ends = [[p.lower for p in points.values()], [p.upper for p in points.values()]]
        axes.hlines(ys, *ends, color=looks[series].colour, linewidth=1, zorder=2)
        draw_points(axes, [p.value for p in points.values()], ys, points.values(), looks[series])
    titles = [textwrap.fill(results.workloads[name].title, TITLE_WIDTH) for name in shown]
    axes.set_yticks(range(len(shown)), titles)
    axes.set_ylim(len(shown) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    return figure, axes, shown


def draw_points(
    axes: Axes, xs: Sequence[float], ys: Sequence[float], points: Iterable[Point], look: Look
) -> None:
    """The markers of a series; those of noisy points are hollow."""
    places = list(zip(xs, ys, (point.noisy for point in points), strict=True))
    for noisy in (False, True):
        there = [(x, y) for x, y, is_noisy in places if is_noisy == noisy]
        if there:
            face = "white" if noisy else None
            axes.plot(*zip(*there, strict=True), **marking(look, face), zorder=3)


def marking(look: Look, face: str | None = None) -> dict[str, Any]:
    """What `plot` takes to draw no line, but a marker."""
    return {
        "linestyle": "none",
        "marker": look.marker,
        "color": look.colour,
        "markerfacecolor": face or look.colour,
        "markeredgewidth": 1,
    }


def legend(figure: Figure, looks: Mapping[str, Look], more: Sequence[Line2D] = ()) -> None:
    """Above all axes."""
    handles = [Line2D([], [], **marking(look), label=name) for name, look in looks.items()]
    figure.legend(handles=[*handles, *more], loc="outside upper center", ncols=4, columnspacing=1.2)


def hollow(label: str, marker: str = "o") -> Line2D:
    """For the legend: what a marker without filling means."""
    return Line2D([], [], **marking(Look("#555555", marker), "white"), label=label)


NOISY = hollow("hollow: noisy")
GUESSED = hollow("hollow: not measured")


def count(number: float) -> str:
    """A large number in a few letters."""
    for unit, size in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("K", 1e3)):
        if number >= size:
            return f"{float(f'{number / size:.2g}'):g} {unit}"
    return f"{number:g}"


def ratio_axis(axes: Axes, values: Iterable[float]) -> None:
    """A logarithmic axis of ratios, on which half is as far from 1 as double is."""
    low, high = min(0.5, *values), max(2.0, *values)
    axes.set_xscale("log", base=2)
    axes.set_xlim(low / 1.25, high * 1.25)
    steps = [2.0**power for power in range(-12, 13)]
    shown = [step for step in steps if low / 1.25 <= step <= high * 1.25]
    axes.xaxis.set_major_locator(FixedLocator(shown))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(
        FuncFormatter(lambda value, _: f"{value:g}" if value >= 1 else f"1/{1 / value:g}")
    )
    axes.axvline(1, color="black", linewidth=1, zorder=1)


def spread(wanted: Sequence[float], gap: float) -> list[float]:
    """Places between 0 and 1 near to those wanted, in their order, none nearer than `gap`.

    If there is not enough room, they are less than `gap` apart.
    """
    order = sorted(range(len(wanted)), key=wanted.__getitem__)
    gap = min(gap, 1 / max(1, len(wanted) - 1))
    groups: list[tuple[list[int], float]] = []  # neighbours, and where the lowest of them is
    for index in order:
        members, start = [index], min(max(wanted[index], 0.0), 1.0)
        while groups and start < groups[-1][1] + len(groups[-1][0]) * gap:
            members = groups.pop()[0] + members
            middle = sum(wanted[each] - place * gap for place, each in enumerate(members))
            start = min(max(middle / len(members), 0.0), 1 - (len(members) - 1) * gap)
        groups.append((members, start))
    found: dict[int, float] = {}
    for members, start in groups:
        found.update({member: start + place * gap for place, member in enumerate(members)})
    return [found[index] for index in range(len(wanted))]
