"""Every text and outline can be read, in light and in dark: by the formula, not by eye."""

from __future__ import annotations

import itertools

import pytest
from viz.reading import contrast

from minigraph.ir import KINDS
from minigraph.viz import palette

FILLS = {
    **{name: (look.fill, look.dark) for name, look in palette.LOOKS.items()},
    **{f"slot {palette.slot_letters(i)}": tuple(s) for i, s in enumerate(palette.SLOTS)},
    "page": (palette.PAGE, palette.PAGE_DARK),
    "dead": (palette.DEAD_FILL, palette.DEAD_FILL_DARK),
}


def test_the_formula():
    assert contrast("#000000", "#FFFFFF") == pytest.approx(21)
    assert contrast("#777777", "#FFFFFF") == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize("fill", FILLS)
def test_text_on_every_fill(fill: str):
    light, dark = FILLS[fill]
    assert contrast(palette.TEXT, light) >= 7
    assert contrast(palette.TEXT_DARK, dark) >= 7
    assert contrast(palette.DIM, light) >= 4.5
    assert contrast(palette.DIM_DARK, dark) >= 4.5


@pytest.mark.parametrize("fill", FILLS)
def test_outlines_on_every_fill(fill: str):
    light, dark = FILLS[fill]
    assert contrast(palette.BORDER, light) >= 3
    assert contrast(palette.BORDER_DARK, dark) >= 3


def test_lines_and_marks_on_the_page():
    for light, dark in [
        (palette.EDGE, palette.EDGE_DARK),
        (palette.BORDER, palette.BORDER_DARK),
        *((mark.border, mark.dark) for mark in palette.MARKS.values()),
    ]:
        assert contrast(light, palette.PAGE) >= 3
        assert contrast(dark, palette.PAGE_DARK) >= 3


def test_each_light_colour_has_one_dark_one():
    pairs = [
        *FILLS.values(),
        *((mark.border, mark.dark) for mark in palette.MARKS.values()),
        (palette.TEXT, palette.TEXT_DARK),
        (palette.DIM, palette.DIM_DARK),
        (palette.BORDER, palette.BORDER_DARK),
        (palette.EDGE, palette.EDGE_DARK),
    ]
    assert palette.dark_colours() == dict(pairs)
    assert len({light for light, _ in pairs}) == len(pairs)


def test_every_kind_has_a_look_of_its_own():
    assert set(KINDS) <= set(palette.LOOKS)
    looks = {(each.shape, each.style, each.outlines) for each in palette.LOOKS.values()}
    # The port of a region is a small plain box like an elementwise op, without an op's name.
    assert len(looks) == len(palette.LOOKS) - 1


def test_marks_differ_without_colour():
    signs = [mark.sign for mark in palette.MARKS.values()]
    assert len(set(signs)) == len(signs)


def test_slots_have_letters_that_never_repeat():
    letters = [palette.slot_letters(slot) for slot in range(1000)]
    assert letters[:3] == ["A", "B", "C"] and letters[25:28] == ["Z", "AA", "AB"]
    assert all(one != other for one, other in itertools.pairwise(sorted(letters)))
