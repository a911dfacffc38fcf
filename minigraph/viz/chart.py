"""Charts: numbers that change from step to step, such as losses, as one SVG.

    mg.viz.chart({"imperative": losses}, title="Digits", x="batch", y="loss").save("loss.svg")

The picture refers to nothing outside itself and follows the reader's light or dark theme.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element, SubElement, tostring

from minigraph.errors import OptionError

from .palette import BORDER, DIM, MARKS, PAGE, TEXT
from .svg import FONTS, style

WIDTH, HEIGHT = 640, 360
LEFT, RIGHT, TOP, BOTTOM = 64, 16, 44, 48
STROKES = (  # told apart by colour and by pattern
    (MARKS["changed"].border, ""),
    (MARKS["removed"].border, "6 3"),
    (MARKS["new"].border, "2 2"),
    (TEXT, "8 3 2 3"),
)


@dataclass(frozen=True, slots=True)
class Chart:
    """A finished chart.

    Attributes:
        svg: the standalone SVG.
    """

    svg: str

    def save(self, path: str | Path) -> None:
        """Write the SVG."""
        Path(path).write_text(self.svg, encoding="utf-8")

    def _repr_svg_(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        return f"<Chart, {len(self.svg):,} bytes>"


def chart(
    series: Mapping[str, Sequence[float]],
    *,
    title: str,
    x: str = "step",
    y: str = "",
    logarithmic: bool = False,
) -> Chart:
    """Lines through numbers, the first of each at step 0.

    Args:
        series: numbers by the name in the legend, at most four of them; what is not finite leaves
            a gap.
        title: above the chart.
        x: what the steps are.
        y: what the numbers are.
        logarithmic: equal heights are equal ratios; only numbers above 0 are drawn then.

    Raises:
        OptionError: nothing to draw, or too many lines to tell apart.
    """
    if len(series) > len(STROKES):
        raise OptionError(
            f"{len(series)} lines are too many to tell apart",
            instead=f"at most {len(STROKES)} in a chart",
        )
    lines = {name: list(_points(values, logarithmic)) for name, values in series.items()}
    points = [point for line in lines.values() for run in line for point in run]
    if not points:
        raise OptionError("a chart without a number to draw", instead='{"loss": [2.3, 1.7, 0.9]}')
    across = Axis(0, max(max(step for step, _ in points), 1), LEFT, WIDTH - RIGHT)
    low, high = min(value for _, value in points), max(value for _, value in points)
    up = Axis(low, high, HEIGHT - BOTTOM, TOP)

    prefix = "chart" + hashlib.sha256(repr((title, x, y, points)).encode()).hexdigest()[:8]
    root = _page(prefix, title)
    for at in across.ticks():
        _text(root, across.place(at), HEIGHT - BOTTOM + 18, _number(at), "middle")
    for at in up.ratios() if logarithmic else up.ticks():
        height = up.place(at)
        shape = {"x1": LEFT, "x2": WIDTH - RIGHT, "y1": height, "y2": height}
        _add(root, "line", **shape, stroke=BORDER, stroke_opacity=0.25)
        _text(root, LEFT - 8, height + 4, _number(10**at if logarithmic else at), "end")
    _text(root, (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 10, x, "middle")
    _text(root, LEFT, TOP - 10, y, "end")
    for (name, runs), (colour, dashes) in zip(lines.items(), STROKES, strict=False):
        drawing = {"fill": "none", "stroke": colour, "stroke_width": 1.5}
        if dashes:
            drawing["stroke_dasharray"] = dashes
        group = _add(root, "g", **drawing)
        _add(group, "title").text = name
        for run in runs:
            places = [f"{across.place(a):.1f},{up.place(b):.1f}" for a, b in run]
            _add(group, "polyline", points=" ".join(places))
    _legend(root, list(lines))
    return Chart(tostring(root, encoding="unicode") + "\n")


@dataclass(frozen=True, slots=True)
class Axis:
    """From numbers to places on the page.

    Attributes:
        low, high: the numbers; start, end: their places.
    """

    low: float
    high: float
    start: float
    end: float

    def place(self, number: float) -> float:
        """Where a number stands."""
        return self.start + (self.end - self.start) * (number - self.low) / self._span

    @property
    def _span(self) -> float:
        return self.high - self.low or 1.0

    def ticks(self) -> list[float]:
        """Round numbers along it, about five."""
        power = 10.0 ** math.floor(math.log10(self._span / 5))
        step = next(power * times for times in (1, 2, 5, 10) if self._span <= 6 * power * times)
        first = math.ceil(self.low / step - 1e-9)
        last = math.floor(self.high / step + 1e-9)
        return [count * step for count in range(first, last + 1)]

    def ratios(self) -> list[float]:
        """As `ticks`, where the numbers are powers of ten: 0.1, 0.2, 0.5, 1, ..."""
        if self._span < 0.5:
            return self.ticks()
        if self._span > 6:
            return [tick for tick in self.ticks() if tick == round(tick)]
        digits = (1, 2, 5) if self._span < 2.5 else (1,)
        powers = range(math.floor(self.low), math.ceil(self.high) + 1)
        ticks = [power + math.log10(digit) for power in powers for digit in digits]
        return [tick for tick in ticks if self.low <= tick <= self.high]


def _points(values: Sequence[float], logarithmic: bool) -> Iterator[list[tuple[int, float]]]:
    """Runs of (step, number) without gaps."""
    run: list[tuple[int, float]] = []
    for step, value in enumerate(map(float, values)):
        if math.isfinite(value) and (value > 0 or not logarithmic):
            run.append((step, math.log10(value) if logarithmic else value))
        elif run:
            yield run
            run = []
    if run:
        yield run


def _number(value: float) -> str:
    return f"{value:.3g}" if abs(value) < 1e3 else f"{value:,.0f}"


def _page(prefix: str, title: str) -> Element:
    size = {"width": str(WIDTH), "height": str(HEIGHT), "viewBox": f"0 0 {WIDTH} {HEIGHT}"}
    root = Element("svg", {"xmlns": "http://www.w3.org/2000/svg", **size})
    root.set("id", f"{prefix}-svg")
    root.set("role", "img")
    root.set("aria-labelledby", f"{prefix}-title")
    root.set("font-family", FONTS)
    root.set("font-size", "12")
    root.set("style", "max-width:100%;height:auto")
    _add(root, "title", id=f"{prefix}-title").text = title
    root.append(style(prefix))
    _add(root, "rect", width=WIDTH, height=HEIGHT, fill=PAGE)
    frame = {"x": LEFT, "y": TOP, "width": WIDTH - LEFT - RIGHT, "height": HEIGHT - TOP - BOTTOM}
    _add(root, "rect", **frame, fill="none", stroke=BORDER)
    heading = _text(root, WIDTH / 2, 20, title, "middle")
    heading.set("fill", TEXT.lower())
    heading.set("font-weight", "bold")
    return root


def _legend(root: Element, names: list[str]) -> None:
    """The names of the lines, in the upper right."""
    for index, (name, (colour, dashes)) in enumerate(zip(names, STROKES, strict=False)):
        height = TOP + 18 + 16 * index
        shape = {"x1": WIDTH - RIGHT - 36, "x2": WIDTH - RIGHT - 8, "y1": height, "y2": height}
        line = _add(root, "line", **shape, stroke=colour, stroke_width=2)
        if dashes:
            line.set("stroke-dasharray", dashes)
        _text(root, WIDTH - RIGHT - 44, height + 4, name, "end")


def _text(parent: Element, x: float, y: float, text: str, anchor: str) -> Element:
    element = _add(parent, "text", x=round(x, 1), y=round(y, 1), text_anchor=anchor, fill=DIM)
    element.text = text
    return element


def _add(parent: Element, tag: str, **attributes: Any) -> Element:
    """An element inside another; colours in lower case, as the dark theme looks for them."""
    named = {name.replace("_", "-"): value for name, value in attributes.items()}
    plain = {
        name: value.lower() if name in ("fill", "stroke") else str(value)
        for name, value in named.items()
    }
    return SubElement(parent, tag, plain)
