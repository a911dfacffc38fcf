"""Figures with a row for each workload: speed-up, break-even, the gain of passes, memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter

from ..harness.results import Cell, Results
from . import verdicts
from .looks import NOISY, Drawn, Point, Rows, count, legend, looks_of, maker, ratio_axis, row_figure
from .tables import PLANNED, amount, spoken
from .verdicts import KINDS, Ratio


def drawn(results: Results) -> Iterator[Drawn]:
    """Those that there is something for."""
    for kind in KINDS:
        yield from speed_up(results, kind)
    yield from break_even(results)
    yield from ablation(results)
    yield from memory(results)


def makers(results: Results) -> dict[str, list[str]]:
    """Who makes columns → the columns; of minigraph's the one that is compared."""
    found: dict[str, list[str]] = {}
    ours = verdicts.reference(results)
    for column in verdicts.columns(results):
        if column != ours and verdicts.is_ours(column):
            continue
        found.setdefault(maker(results, column), []).append(column)
    return found


def every(results: Results) -> list[str]:
    return [name for kind in KINDS for name in verdicts.workloads(results, kind)]


def collected(
    series: Mapping[str, Sequence[str]],
    names: Sequence[str],
    point: Callable[[str, Sequence[str]], Point | None],
) -> Rows:
    """The points that there are, of each series that has some."""
    found = {
        label: {name: each for name in names if (each := point(name, columns))}
        for label, columns in series.items()
    }
    return {label: points for label, points in found.items() if points}


def compared(one: Cell | None, other: Cell | None) -> Point | None:
    """How many times as long one takes, if both were measured."""
    if one is None or other is None:
        return None
    ratio = Ratio.of(one.statistics, other.statistics)
    noisy = bool(verdicts.noise(one) or verdicts.noise(other))
    return Point(ratio.value, ratio.lower, ratio.upper, noisy, ratio.few)


def ends(rows: Rows) -> list[float]:
    return [end for row in rows.values() for p in row.values() for end in (p.lower, p.upper)]


# ---- speed-up ----------------------------------------------------------------------------------


def speed_up(results: Results, kind: str) -> Iterator[Drawn]:
    """How many times as fast the reference is as the fastest column of each framework."""
    ours, names = verdicts.reference(results), verdicts.workloads(results, kind)
    others = {who: found for who, found in makers(results).items() if ours not in found}

    def point(name: str, columns: Sequence[str]) -> Point | None:
        mine = verdicts.measured(results, name, ours)
        return compared(verdicts.fastest(results, name, columns), mine)

    rows = collected(others, names, point)
    if not rows:
        return
    figure, axes, shown = row_figure(results, names, rows)
    ratio_axis(axes, ends(rows))
    axes.set_xlabel(f"how many times as fast {ours} is (left of the line: slower)")
    legend(figure, looks_of(rows), [NOISY])
    said = "; ".join(f"against {who} {spoken(_verdicts(row))}" for who, row in rows.items())
    yield Drawn(
        f"speed-up-{kind}",
        f"{KINDS[kind]}: how many times as fast {ours} is",
        f"Speed-up of {ours} on {len(shown)} workloads: {said}.",
        "Of each framework its fastest column. A point is the ratio of the medians, a bar goes to "
        f"those of the quartiles. Left of the line, {ours} is slower; twice as slow is as far from "
        "it as twice as fast.",
        figure,
    )


def _verdicts(row: Mapping[str, Point]) -> Counter[str]:
    """For minigraph: a speed-up above 1 is a gain."""
    return Counter(
        Ratio(1 / p.value, 1 / p.upper, 1 / p.lower, p.few).verdict for p in row.values()
    )


# ---- when compiling pays -----------------------------------------------------------------------


def break_even(results: Results) -> Iterator[Drawn]:
    """With how many calls the fastest compiled column of each framework has paid."""
    compiled = {
        who: [column for column in columns if results.runners[column].baseline]
        for who, columns in makers(results).items()
    }
    never, bases = Counter[str](), dict[str, str]()

    def point(name: str, columns: Sequence[str]) -> Point | None:
        best = verdicts.fastest(results, name, columns)
        baseline = best and results.runners[best.runner].baseline
        if best is None or baseline is None or not verdicts.measured(results, name, baseline):
            return None
        bases[best.runner] = baseline
        calls = results.break_even(best)
        if calls is None:
            never[best.runner] += 1
            return Point(0, 0, 0)
        return Point(calls, calls, calls, bool(verdicts.noise(best)))

    names = every(results)
    rows = collected(compiled, names, point)
    if not rows:
        return
    most = max(10.0, *ends(rows))
    beyond = most ** (1 + 2 * MARGIN)
    placed = {
        who: {name: p if p.value else Point(beyond, beyond, beyond) for name, p in row.items()}
        for who, row in rows.items()
    }
    figure, axes, shown = row_figure(results, names, placed)
    _axis_to_never(axes, most, beyond)
    axes.set_xlabel("calls until compiling has paid")
    legend(figure, looks_of(placed), [NOISY])
    paid = sum(p.value > 0 for row in rows.values() for p in row.values())
    pairs = ", ".join(f"{column} against {base}" for column, base in bases.items())
    yield Drawn(
        "break-even",
        "With how many calls compiling has paid",
        "Calls after which a compiled program, its first call included, is done before one that "
        f"is not compiled, on {len(shown)} workloads: {paid} programs pay after some calls, "
        f"{never.total()} never.",
        "Of each framework the fastest column that compiles, against one that does not: "
        f"{pairs}. Importing does not count. Never: it is not faster, beyond noise.",
        figure,
    )


MARGIN = 0.06  # of the axis, on each side of what is never


def _axis_to_never(axes: Axes, most: float, beyond: float) -> None:
    border = most ** (1 + MARGIN)
    axes.set_xscale("log")
    axes.set_xlim(0.7, most ** (1 + 3 * MARGIN))
    axes.axvline(border, color="black", linewidth=1)
    axes.set_xticks([*(tick for tick in axes.get_xticks() if 1 <= tick <= most), beyond])
    axes.minorticks_off()
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: "never" if x > border else count(x)))


# ---- the gain of each pass ---------------------------------------------------------------------


def ablation(results: Results) -> Iterator[Drawn]:
    """How many times as long minigraph takes without one of its parts."""
    names = every(results)
    ablations = verdicts.ablations(results)

    def point(name: str, columns: Sequence[str]) -> Point | None:
        (column,) = columns
        whole = verdicts.whole(results, name, ablations[column][1])
        return compared(verdicts.measured(results, name, column), whole)

    rows = collected({part: [column] for column, (part, _) in ablations.items()}, names, point)
    if not rows:
        return
    figure, axes, shown = row_figure(results, names, rows)
    ratio_axis(axes, ends(rows))
    axes.set_xlabel("how many times as long it takes without")
    legend(figure, looks_of(rows), [NOISY])
    largest = "; ".join(
        f"without {part} up to {max(p.value for p in row.values()):.3g} times as long"
        for part, row in rows.items()
    )
    yield Drawn(
        "ablation",
        "What each part of minigraph gains",
        f"Time without one part of the compiler, on {len(shown)} workloads: {largest}.",
        "Right of the line, the part gains; left of it, it costs. A point is the ratio of the "
        "medians, a bar goes to those of the quartiles. What is whole was measured again beside "
        "those without a part.",
        figure,
    )


# ---- memory ------------------------------------------------------------------------------------


def memory(results: Results) -> Iterator[Drawn]:
    """The highest resident memory beyond the import, and what minigraph planned."""
    ours, names = verdicts.reference(results), every(results)

    def point(name: str, columns: Sequence[str]) -> Point | None:
        best = verdicts.fastest(results, name, columns)
        found = (best.memory or {}).get("beyond_bytes") if best else None
        return None if found is None else _bytes(found)

    def planned(name: str, columns: Sequence[str]) -> Point | None:
        cell = verdicts.measured(results, name, ours)
        found = cell.details.get("planned_peak_bytes") if cell else None
        return None if found is None else _bytes(found)

    rows = {**collected(makers(results), names, point), **collected({PLANNED: []}, names, planned)}
    if not rows:
        return
    figure, axes, shown = row_figure(results, names, rows)
    axes.set_xscale("log")
    axes.set_xlim(LEAST / 2, 2 * max(ends(rows)))
    axes.minorticks_off()
    axes.xaxis.set_major_formatter(
        FuncFormatter(lambda x, _: f"≤ {amount(x)}" if x == LEAST else amount(x))
    )
    axes.set_xlabel("memory of the process in later calls, beyond imports and arguments")
    legend(figure, looks_of(rows))
    yield Drawn(
        "memory",
        "Memory",
        "The highest resident memory of later calls, beyond imports and arguments, on "
        f"{len(shown)} workloads, for {', '.join(rows)}; at most {amount(max(ends(rows)))}.",
        "Of each framework its fastest column, in the calls after the first one. What compiling "
        "has left in the process counts; what minigraph plans is for arrays alone.",
        figure,
    )


LEAST = 1e4  # bytes; less than two pages are not told apart


def _bytes(found: float) -> Point:
    found = max(found, LEAST)
    return Point(found, found, found)
