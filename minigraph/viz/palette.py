"""Shapes and colours: what a kind of node looks like, readable without colour and in the dark.

A drawing carries the light colours; the dark theme is a table from each light colour to its dark
one, so every light colour has one meaning.  Text and borders keep the contrast that WCAG 2 asks
for (a test computes it): 4.5:1 for text, 3:1 for borders and marks.
"""

from __future__ import annotations

from typing import NamedTuple


class Look(NamedTuple):
    """How a kind of box is drawn.

    Attributes:
        shape: the Graphviz shape.
        fill, dark: the fill in the light and in the dark theme.
        meaning: the words of the legend.
        border: the width of the outline, in points.
        style: Graphviz styles besides `filled`.
        outlines: how often the outline is drawn.
        margin: around the text, in inches, where Graphviz leaves too much or too little.
    """

    shape: str
    fill: str
    dark: str
    meaning: str
    border: float = 1
    style: str = ""
    outlines: int = 1
    margin: str = ""


LOOKS = {
    "input": Look("invhouse", "#D6EAF8", "#12394F", "argument", border=1.5, margin="0.05,0.03"),
    "capture": Look("cylinder", "#FFF3C4", "#4A3F00", "captured array"),
    "constant": Look("note", "#EEEEEE", "#3A3A3A", "constant", style="dotted"),
    "output": Look("house", "#CFE3F2", "#0F3557", "result", border=2, margin="0.05,0.03"),
    "elementwise": Look("box", "#DDF3EA", "#0B3F31", "element by element", style="rounded"),
    "reduce": Look("invtrapezium", "#FCE3D0", "#5A2A0B", "reduction"),
    "cumulate": Look("invtrapezium", "#FBE9DD", "#4F2A12", "running reduction", outlines=2),
    "layout": Look("parallelogram", "#FFFFFF", "#1F2937", "view, other layout"),
    "join": Look("trapezium", "#F2F3F5", "#283445", "joined arrays"),
    "index": Look("folder", "#E8EDF4", "#233047", "indexing"),
    "contract": Look(
        "box3d", "#F6DFEB", "#4B2038", "matrix product", border=1.5, margin="0.12,0.09"
    ),
    "window": Look(
        "box", "#F5E6F1", "#42203A", "sliding window", style="diagonals", margin="0.2,0.08"
    ),
    "create": Look("ellipse", "#E4E9D8", "#333D1C", "new array"),
    "random": Look("hexagon", "#EFE4F7", "#3B2453", "random numbers", margin="0.02,0.02"),
    "control": Look("diamond", "#FFE9A8", "#4D3A00", "control flow", margin="0.02,0.02"),
    "effect": Look("octagon", "#FDE2E2", "#551B1B", "effect", margin="0.02,0.03"),
    "library": Look("box", "#E3E1F5", "#2B2757", "library call", outlines=2),
    "port": Look("box", "#FAFBFC", "#141D2A", "into or out of a region", style="rounded"),
    "block": Look("tab", "#F1F5F9", "#1E293B", "many nodes", border=1.5),
    "cut": Look("plaintext", "#FDFDFE", "#121A28", "more, not drawn", border=0),
}

PAGE, PAGE_DARK = "#FDFDFD", "#111827"
TEXT, TEXT_DARK = "#111827", "#F3F4F6"
DIM, DIM_DARK = "#4B5563", "#C3C9D2"
BORDER, BORDER_DARK = "#525B69", "#9CA3AF"
EDGE, EDGE_DARK = "#5B6472", "#A3AAB5"


class Mark(NamedTuple):
    """How a change is shown: a sign in the text and an outline (Okabe and Ito's colours)."""

    sign: str
    border: str
    dark: str
    style: str = ""


MARKS = {
    "new": Mark("+", "#009E73", "#00A278"),
    "changed": Mark("~", "#0072B2", "#56B4E9"),
    "removed": Mark("-", "#D55E00", "#D76300", style="dashed"),
}

DEAD_FILL, DEAD_FILL_DARK = "#F0F0F0", "#2B2F36"


class Stripe(NamedTuple):
    """The fill of one storage slot, beside its letter."""

    fill: str
    dark: str


SLOTS = (
    Stripe("#F6D9A0", "#6B4700"),
    Stripe("#BFE3F7", "#0B4A6B"),
    Stripe("#A6DDCB", "#00533D"),
    Stripe("#F7F0A3", "#524D00"),
    Stripe("#B3D3E8", "#003F63"),
    Stripe("#F2BF9B", "#6E3000"),
    Stripe("#EBCBDC", "#5E2C47"),
    Stripe("#D5D5D5", "#404040"),
)
"""Tints of Okabe and Ito's eight colours; from the ninth slot on they repeat, letters do not."""


def slot_letters(slot: int) -> str:
    """A, B, ..., Z, AA, AB, ...: one name for each slot."""
    letters = ""
    slot += 1
    while slot:
        slot, digit = divmod(slot - 1, 26)
        letters = chr(ord("A") + digit) + letters
    return letters


def dark_colours() -> dict[str, str]:
    """The dark colour of each light one."""
    table = {look.fill: look.dark for look in LOOKS.values()}
    table.update((mark.border, mark.dark) for mark in MARKS.values())
    table.update((stripe.fill, stripe.dark) for stripe in SLOTS)
    table.update(
        {
            PAGE: PAGE_DARK,
            TEXT: TEXT_DARK,
            DIM: DIM_DARK,
            BORDER: BORDER_DARK,
            EDGE: EDGE_DARK,
            DEAD_FILL: DEAD_FILL_DARK,
        }
    )
    return table
