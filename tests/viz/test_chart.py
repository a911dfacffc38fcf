"""Charts: what they show is where the numbers are."""

from __future__ import annotations

import math
from pathlib import Path
from xml.etree import ElementTree

import pytest
from viz.reading import SVG

import minigraph as mg
from minigraph.errors import OptionError
from minigraph.viz import palette
from minigraph.viz.chart import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, Axis

Runs = list[list[tuple[float, float]]]


def lines(svg: str) -> dict[str, Runs]:
    """The places that each line goes through."""
    found: dict[str, Runs] = {}
    for group in ElementTree.fromstring(svg).iter(f"{SVG}g"):
        found[str(group.findtext(f"{SVG}title"))] = [
            [(float(x), float(y)) for x, y in (point.split(",") for point in run.split())]
            for run in (line.get("points", "") for line in group.iter(f"{SVG}polyline"))
        ]
    return found


def texts(svg: str) -> list[str | None]:
    return [element.text for element in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def test_a_line_goes_from_corner_to_corner():
    svg = mg.viz.chart({"a": [0.0, 5.0, 10.0]}, title="Up", x="batch", y="loss").svg
    middle = ((LEFT + WIDTH - RIGHT) / 2, (TOP + HEIGHT - BOTTOM) / 2)
    assert lines(svg) == {"a": [[(LEFT, HEIGHT - BOTTOM), middle, (WIDTH - RIGHT, TOP)]]}
    assert {"Up", "batch", "loss", "a", "0", "2", "10"} <= set(texts(svg))


def test_what_is_not_finite_leaves_a_gap():
    svg = mg.viz.chart({"a": [1, 2, math.nan, 3, math.inf, 4, 5]}, title="Gaps").svg
    assert [len(run) for run in lines(svg)["a"]] == [2, 1, 2]


def test_equal_ratios_are_equal_heights():
    svg = mg.viz.chart({"a": [100.0, 0.0, 10.0, 1.0]}, title="Log", logarithmic=True).svg
    (((_, first),), ((_, second), (_, third))) = lines(svg)["a"]
    assert second - first == pytest.approx(third - second, abs=0.1)
    assert {"1", "2", "5", "10", "20", "50", "100"} <= set(texts(svg))


@pytest.mark.parametrize(("low", "high"), [(0, 1), (-3, 5), (1e-6, 2e-6), (0, 12345), (7, 7)])
def test_ticks_are_round_and_few(low: float, high: float):
    axis = Axis(low, high, 0, 1)
    for ticks in (axis.ticks(), axis.ratios()):
        assert len(ticks) <= 8
        assert all(low - 1e-9 <= tick <= high + 1e-9 for tick in ticks)
    assert axis.ticks()


def test_text_is_no_markup_and_the_theme_follows_the_reader():
    svg = mg.viz.chart({"<b>": [1, 2]}, title='a & "b"').svg
    assert "<b>" not in svg and {"<b>", 'a & "b"'} <= set(texts(svg))
    assert f'[fill="{palette.PAGE.lower()}"]{{fill:{palette.PAGE_DARK.lower()}}}' in svg


def test_it_is_saved_and_shown(tmp_path: Path):
    chart = mg.viz.chart({"a": [1, 2]}, title="Title")
    chart.save(tmp_path / "a.svg")
    assert (tmp_path / "a.svg").read_text(encoding="utf-8") == chart.svg == chart._repr_svg_()
    assert repr(chart).startswith("<Chart, ")


@pytest.mark.parametrize(
    ("series", "message"),
    [
        ({}, "without a number to draw"),
        ({"a": [math.nan]}, "without a number to draw"),
        ({name: [1, 2] for name in "abcde"}, "5 lines are too many"),
    ],
)
def test_wrong_use_is_told(series: dict[str, list[float]], message: str):
    with pytest.raises(OptionError, match=message):
        mg.viz.chart(series, title="Wrong")
