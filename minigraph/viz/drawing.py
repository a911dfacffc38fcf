"""Drawings: how much of a graph is shown, which engine lays it out, what becomes of the result."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from minigraph.errors import OptionError, suggestion
from minigraph.ir import Graph, inner_first

from .compose import Composer
from .fold import find_repeats, is_constant
from .layout import EngineFailure, engines, lay_out
from .options import Options, options_of
from .overlays import draw_legend, draw_removed, draw_reuse
from .overview import overview
from .picture import Picture, dot_text
from .svg import finish
from .words import counted

FULL = 300  # boxes that are drawn with everything
FOLDED = 2_000  # boxes that are drawn at all, without the labels of arrows
EXTENSIONS = ("svg", "png", "pdf", "dot", "gv", "txt")


@dataclass(frozen=True, slots=True)
class Drawing:
    """A finished drawing.

    Attributes:
        svg: the standalone SVG.
        dot: the DOT text it was made from.
        engine: the layout engine that made it.
        note: what is not shown, or why it looks rougher than it could; "" if nothing.
    """

    svg: str
    dot: str
    engine: str
    note: str

    def save(self, path: str | Path) -> None:
        """Write the SVG or the DOT text, by the extension."""
        kind = extension(path, ("svg", "dot", "gv"))
        Path(path).write_text(self.svg if kind == "svg" else self.dot, encoding="utf-8")

    def _repr_svg_(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        note = f": {self.note}" if self.note else ""
        return f"<Drawing by {self.engine}, {len(self.svg):,} bytes{note}>"


def dot(graph: Graph, **options: Any) -> str:
    """The DOT text of a graph; needs no layout engine.

    Args:
        graph: what to draw.
        **options: see `Options`.

    Raises:
        OptionError: an option that does not exist, or does not fit the graph.
    """
    chosen = options_of(options)
    return text_of(picture_of(graph, chosen), chosen)


def draw(graph: Graph, **options: Any) -> Drawing:
    """The drawing of a graph: as much of it as can be read, within a time limit.

    Args:
        graph: what to draw.
        **options: see `Options`.

    Raises:
        OptionError: an option that does not exist, or does not fit the graph.
        DrawingError: there is no layout engine, or none that can draw it.
    """
    chosen = options_of(options)
    return drawn(graph, chosen)


def drawn(graph: Graph, chosen: Options, *, attempts: int = 3) -> Drawing:
    """The drawing, in at most so many attempts of the layout engine."""
    made = render(graph, "svg", chosen, attempts)
    prefix = chosen.prefix or "mg" + hashlib.sha256(made.text.encode()).hexdigest()[:8]
    svg = finish(made.output, made.picture, prefix=prefix, theme=chosen.theme)
    return Drawing(svg, made.text, made.engine, made.picture.note)


def text_of(picture: Picture, options: Options) -> str:
    """The DOT text for people to keep."""
    return dot_text(picture, options.prefix or "mg", dark=options.theme == "dark")


def save(graph: Graph, path: str | Path, **options: Any) -> str | None:
    """Write a drawing (`.svg`, `.png`, `.pdf`, `.dot`) or the text form (`.txt`).

    Args:
        graph: what to draw.
        path: the file; its extension says what is written.
        **options: see `Options`.

    Returns:
        What the drawing does not show, or None.

    Raises:
        OptionError: an extension or option that does not exist, or does not fit the graph.
        DrawingError: there is no layout engine for it, or none that can draw it.
    """
    kind = extension(path, EXTENSIONS)
    chosen = options_of(options)
    note = ""
    if kind == "txt":
        content = f"{graph}\n".encode()
    elif kind in ("dot", "gv"):
        picture = picture_of(graph, chosen)
        content, note = text_of(picture, chosen).encode(), picture.note
    elif kind == "svg":
        drawing = drawn(graph, chosen)
        content, note = drawing.svg.encode(), drawing.note
    else:
        made = render(graph, kind, chosen)
        content, note = made.output, made.picture.note
    Path(path).write_bytes(content)
    return note or None


def extension(path: str | Path, known: tuple[str, ...]) -> str:
    """What the name of a file asks for.

    Raises:
        OptionError: nothing that is known.
    """
    found = Path(path).suffix.removeprefix(".").lower()
    if found not in known:
        raise OptionError(
            f"a drawing cannot be saved as {Path(path).name!r}",
            instead=suggestion(f".{found}", [f".{kind}" for kind in known]),
        )
    return found


# ---------------------------------------------------------------------------- how much is shown


def size_of(graph: Graph) -> int:
    """The boxes of a full drawing, or a third of its arrows where these are more."""
    sizes: dict[int, tuple[int, int]] = {}
    for each in inner_first(graph):
        boxes, arrows = len(each.inputs) + len(each.outputs), len(each.outputs)
        for node in each.nodes:
            boxes += not is_constant(node)
            arrows += len(node.inputs)
            for _, region in node.regions:
                boxes += sizes[id(region)][0]
                arrows += sizes[id(region)][1]
        sizes[id(each)] = boxes, arrows
    boxes, arrows = sizes[id(graph)]
    return max(boxes, arrows // 3)


def drawn_size(picture: Picture) -> int:
    """The same measure of what is drawn."""
    return max(sum(1 for _ in picture.root.boxes()), len(picture.arrows) // 3)


def picture_of(graph: Graph, options: Options) -> Picture:
    """Everything up to 300 boxes; then repeats folded; beyond 2 000 boxes an overview."""
    size = size_of(graph)
    if options.force or options.focus is not None or size <= FULL:
        picture = compose(graph, options)
        if options.force or drawn_size(picture) <= FOLDED:
            return picture
        raise OptionError(
            f"the neighbourhood of {options.focus} has {drawn_size(picture)} boxes",
            instead=f"radius={max(1, options.radius // 2)}, or force=True",
        )
    if size - sum(repeat.saved for repeat in find_repeats(graph)) <= FOLDED:
        picture = compose(graph, options, fold=True)
        if drawn_size(picture) > FULL and any(True for node in graph.nodes for _ in node.regions):
            picture = compose(graph, options, fold=True, closed=True)
        if drawn_size(picture) <= FOLDED:
            picture.note = "; ".join(filter(None, [folded_note(size, picture), picture.note]))
            return picture
    return overview(graph, options)


def compose(graph: Graph, options: Options, *, fold: bool = False, closed: bool = False) -> Picture:
    """The graph and what is drawn over it."""
    composer = Composer(graph, options, fold=fold, closed=closed)
    scope = composer.compose()
    if options.focus is None and not fold:
        draw_removed(composer, scope)
        composer.draw_unused(scope)
    elif composer.changes.removed:
        count = counted(len(composer.changes.removed), "removed node")
        composer.notes.append(f"{count} not drawn")
    draw_reuse(composer, scope)
    if options.legend:
        draw_legend(composer)
    return composer.picture()


def folded_note(size: int, picture: Picture) -> str:
    """What a folded picture leaves out."""
    shown = sum(1 for _ in picture.root.boxes())
    what = f"folded: {shown} of {size} boxes" if shown < size else f"{shown} boxes"
    return f'{what}, without types; focus="%name" draws a part in full'


# ---------------------------------------------------------------------------- the ladder


@dataclass(frozen=True, slots=True)
class Made:
    """What an engine wrote, from which picture and text."""

    output: bytes
    picture: Picture
    text: str
    engine: str


def render(graph: Graph, kind: str, options: Options, attempts: int = 3) -> Made:
    """Have a picture laid out: as it should be, else quickly, else as an overview.

    Args:
        graph: what to draw.
        kind: "svg", "png" or "pdf".
        options: how.
        attempts: how many of these three ways may be tried.

    Raises:
        DrawingError: nothing worked; it says why the first way did not.
    """
    found = engines(kind, options.engine)
    ladder: tuple[tuple[str, Callable[[], Picture], bool], ...] = (
        ("", lambda: picture_of(graph, options), False),
        ("drawn with quick settings", lambda: picture_of(graph, options), True),
        ("drawn as an overview", lambda: overview(graph, options), True),
    )
    failures: list[EngineFailure] = []
    for way, compose, quick in ladder[:attempts]:
        picture = compose()
        if way:
            reason = f"{way}, as {failures[0].fact}"
            picture.note = f"{picture.note}; {reason}" if picture.note else reason
        text = dot_text(picture, dark=options.theme == "dark", quick=quick)
        for engine in found:
            try:
                output = lay_out(text, kind, engine, options.time_limit)
            except EngineFailure as error:
                failures.append(error)
                if error.timed_out:
                    break
                continue
            return Made(output, picture, text, engine.name)
    raise next((each for each in failures if not each.timed_out), failures[0]).error() from None
