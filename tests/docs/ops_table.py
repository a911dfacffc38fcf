"""The README's table of supported NumPy functions, made from the registry of ops.

`python tests/docs/ops_table.py` writes it into README.md.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable
from operator import attrgetter
from pathlib import Path

import numpy as np

from minigraph import ops
from minigraph.trace.composites import COMPOSITES

README = Path(__file__).resolve().parents[2] / "README.md"
BETWEEN = re.compile(r"(<!-- ops: [^\n]*-->\n).*?(<!-- end of ops -->)", re.DOTALL)

KINDS = {
    "elementwise": "elementwise",
    "reduce": "reductions",
    "cumulate": "running sums and extremes",
    "contract": "products",
    "layout": "shape",
    "index": "indexing",
    "join": "joining",
    "library": "called whole",
    "create": "creation",
}
"""Kind of op → what the table calls it, in the table's order."""


def names(kind: str) -> list[str]:
    """The NumPy functions of a kind, without `np.`."""
    return listed(name for name, op in ops.RECORDED.items() if op.kind == kind)


def listed(found: Iterable[str]) -> list[str]:
    """Those that the installed NumPy has, in order, without the methods of arrays."""
    return sorted(name for name in set(found) if exists(name))


def exists(name: str) -> bool:
    """`np.` and the name leads somewhere: names come and go with NumPy's versions."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # some are there, and deprecated
            attrgetter(name)(np)
    except AttributeError:
        return False
    return not name.startswith("ndarray.")


def cell(found: Iterable[str]) -> str:
    return " ".join(f"`{name}`" for name in found)


def table() -> str:
    rows = [(title, cell(names(kind))) for kind, title in KINDS.items()]
    rows.append(("composed of these", cell(listed(COMPOSITES))))
    rows.append(("of SciPy", cell(f"scipy.special.{name}" for name in ops.special.RULES)))
    draws = [f"Generator.{name}" for name in sorted((*ops.DRAWS, *ops.DRAWS_IN_PLACE))]
    rows.append(("random draws", cell([*names("random"), *draws])))
    lines = ["| kind | NumPy functions |", "| --- | --- |"]
    lines += [f"| {title} | {functions} |" for title, functions in rows]
    return "\n".join(lines) + "\n"


def written(text: str) -> str:
    """The README with the table as it should be."""
    assert len(BETWEEN.findall(text)) == 1
    return BETWEEN.sub(lambda found: found[1] + table() + found[2], text)


if __name__ == "__main__":
    README.write_text(written(README.read_text(encoding="utf-8")), encoding="utf-8")
