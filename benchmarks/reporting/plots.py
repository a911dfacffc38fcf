"""A folder that shows a run: its figures, and a page with them and with all tables."""

from __future__ import annotations

import re
from pathlib import Path

from ..harness.results import Results
from .bars import judged, table
from .grids import as_markdown
from .tables import heading, markdown

TITLE = "# What a run has found"


class CannotDraw(Exception):
    """The figures cannot be drawn, or not there; the text says what to do."""


def write(results: Results, folder: Path) -> list[Path]:
    """Draw all figures that there is something for, and write a page, `README.md`, beside them.

    The same results give the same bytes.

    Returns:
        The files, `README.md` the last.

    Raises:
        CannotDraw: matplotlib is not installed, or a page that is none of ours is there.
    """
    try:
        import matplotlib
    except ImportError:
        raise CannotDraw(
            "figures are drawn by matplotlib, which is not installed; install it by "
            "`pip install 'minigraph[bench]'`, and call again with the same results"
        ) from None
    from . import curves, rows
    from .looks import STYLE

    page = folder / "README.md"
    if page.exists() and not page.read_text(encoding="utf-8").startswith(TITLE):
        raise CannotDraw(f"{page} is none that was made here; draw into another folder")
    folder.mkdir(parents=True, exist_ok=True)
    parts, written = [TITLE, heading(results)], list[Path]()
    with matplotlib.rc_context(dict(STYLE)):
        for found in (*rows.drawn(results), *curves.drawn(results)):
            path = folder / f"{found.name}.svg"
            about = {"Title": found.title, "Description": found.alternative}
            metadata = {**about, "Date": None, "Creator": None}
            found.figure.savefig(path, format="svg", metadata=metadata)
            written.append(path)
            alternative = re.sub(r"([\[\]])", r"\\\1", found.alternative)
            parts += [f"## {found.title}", f"![{alternative}]({path.name})", found.caption]
    parts += ["## Tables", markdown(results)]
    if bars := judged(results):
        parts += [as_markdown(table(bars))]
    page.write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    return [*written, page]
