"""The figures of a run, drawn from its results into a folder, with a page that describes them."""

from __future__ import annotations

import re
from pathlib import Path

from ..harness.results import Results
from .tables import heading


class NoMatplotlib(Exception):
    """The figures cannot be drawn here; the text says what to do."""


def write(results: Results, folder: Path) -> list[Path]:
    """Draw all figures that there is something for, and write `index.md` beside them.

    The same results give the same bytes.

    Returns:
        The files, `index.md` the last.

    Raises:
        NoMatplotlib: matplotlib is not installed.
    """
    try:
        import matplotlib
    except ImportError:
        raise NoMatplotlib(
            "figures are drawn by matplotlib, which is not installed; install it by "
            "`pip install 'minigraph[bench]'`, and call again with the same results"
        ) from None
    from . import curves, rows
    from .looks import STYLE

    folder.mkdir(parents=True, exist_ok=True)
    parts, written = ["# Figures", heading(results)], list[Path]()
    with matplotlib.rc_context(dict(STYLE)):
        for found in (*rows.drawn(results), *curves.drawn(results)):
            path = folder / f"{found.name}.svg"
            about = {"Title": found.title, "Description": found.alternative}
            metadata = {**about, "Date": None, "Creator": None}
            found.figure.savefig(path, format="svg", metadata=metadata)
            written.append(path)
            alternative = re.sub(r"([\[\]])", r"\\\1", found.alternative)
            parts += [f"## {found.title}", f"![{alternative}]({path.name})", found.caption]
    index = folder / "index.md"
    index.write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    return [*written, index]
