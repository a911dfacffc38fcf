"""How a graph shows itself in a notebook: as text always, as a picture where that is cheap."""

from __future__ import annotations

import itertools
import os
from collections.abc import Container
from html import escape

from minigraph.errors import DrawingError, MinigraphError
from minigraph.ir import Graph

from .drawing import FULL, drawn, size_of
from .escape import visible
from .options import Options

LINES = 40  # of the text form
SECONDS = 4.0  # for the layout, which takes a tenth of a second as a rule

_displays = itertools.count(1)


def mimebundle(
    graph: Graph,
    include: Container[str] | None = None,
    exclude: Container[str] | None = None,
) -> dict[str, str]:
    """The representations that a notebook may choose from; never raises.

    Each display has ids of its own: equal ids in two cells would corrupt the pictures.
    """
    text = text_form(graph)
    bundle = {"text/plain": text}
    wanted = {"image/svg+xml", "text/html"}
    if any(_chosen(kind, include, exclude) for kind in wanted):
        try:
            svg, note = picture(graph)
        except Exception as error:
            reason = error.fact if isinstance(error, MinigraphError) else repr(error)
            bundle["text/plain"] += f"\n# no picture: {visible(reason)}"
        else:
            bundle["image/svg+xml"] = svg
            bundle["text/html"] = page(svg, text, note)
    return {kind: data for kind, data in bundle.items() if _chosen(kind, include, exclude)}


def _chosen(kind: str, include: Container[str] | None, exclude: Container[str] | None) -> bool:
    if kind == "text/plain":
        return True
    return (not include or kind in include) and (not exclude or kind not in exclude)


def text_form(graph: Graph) -> str:
    """The first lines of the text form, and how many there are."""
    try:
        lines = str(graph).split("\n")
    except Exception:
        # A broken graph must show itself too.
        return repr(graph)
    if len(lines) > LINES:
        more = len(lines) - LINES
        lines = [*lines[:LINES], f"  # ... {more} more lines: print(graph)"]
    return "\n".join(lines)


def picture(graph: Graph) -> tuple[str, str]:
    """The SVG and its note.

    Raises:
        DrawingError: there is no layout engine, or the graph is too large to be drawn unasked.
    """
    size = size_of(graph)
    if size > FULL:
        raise DrawingError(f"{size} boxes; graph.svg() draws it")
    prefix = f"mg{next(_displays)}-{os.urandom(3).hex()}"
    drawing = drawn(graph, Options(prefix=prefix, time_limit=SECONDS), attempts=1)
    return drawing.svg, drawing.note


def page(svg: str, text: str, note: str) -> str:
    """The picture inline, so that its text can be selected, with the text form below."""
    below = f"<p>{escape(note)}</p>" if note else ""
    return (
        f'<div style="overflow:auto">{svg}</div>{below}'
        f"<details><summary>text form</summary><pre>{escape(text)}</pre></details>"
    )
