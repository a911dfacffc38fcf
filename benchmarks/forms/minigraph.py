"""What minigraph made of a function: the traced graph, the optimised one, and the program."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..runners.base import Form

LOCATION = re.compile(r"# (?P<file>\S+):(?P<line>\d+)$")  # at the end of a line
KERNEL = re.compile(r" = kernel .*\{$")  # its body follows, and ends with `}}`


def forms(function: Any, source: Any) -> list[Form]:
    """All of the program that was compiled last; `source` is the user's, whose lines count."""
    file = Path(inspect.getsourcefile(source) or "").name
    first, *_, last = function.stages
    return [
        _graph("traced graph", first.graph, "before", file),
        _graph("optimised graph", last.graph, "after", file),
        _program(function, file),
    ]


def details(function: Any) -> dict[str, Any]:
    """How much there is to do before and after the passes, and with how much memory.

    Bytes are those that are read and written, before nodes are fused and then; they are left out
    where they depend on data.
    """
    from .traffic import does_something, traffic

    first, *_, last = function.stages
    names = [stage.name for stage in function.stages]
    at = names.index("fuse") if "fuse" in names else len(names)
    found = {
        "nodes_before": _count(first.graph),
        "nodes_after": _count(last.graph),
        "kernels": sum(map(does_something, last.graph.nodes)),
        "in_threads": _in_threads(function),
        "planned_peak_bytes": function.plan.peak_bytes,
        "unfused_bytes": traffic(function.stages[at - 1].graph),
        "fused_bytes": traffic(last.graph, function.plan.written),
    }
    return {name: value for name, value in found.items() if value is not None}


def _in_threads(function: Any) -> list[str]:
    """What of a program threads share, as `explain` says it."""
    return [line.strip() for line in function.explain().splitlines() if " in threads" in line]


def _count(graph: Any) -> int:
    """The nodes that compute something, in kernels and other regions, too."""
    from minigraph.ir import walk

    return sum(node.op.name not in ("const", "kernel") for node in walk(graph))


def _graph(title: str, graph: Any, stage: str, file: str) -> Form:
    text = str(graph)
    return Form(title, "minigraph", text, _count(graph), stage, _lines(text, file))


def _program(function: Any, file: str) -> Form:
    """Of a backend that compiles all of its text, with the user's names and lines."""
    from minigraph.errors import OptionError

    try:
        text = function.source("numba")
    except OptionError:
        text = function.source()
    return Form("program", "python", text, None, "after", _lines(text, file))


def _lines(text: str, file: str) -> Mapping[int, list[int]]:
    """A line of text names the line that it came of; a kernel came of all that is in it."""
    found: dict[int, list[int]] = {}
    kernels: list[int] = []  # those that are open
    for number, line in enumerate(text.split("\n"), 1):
        place = LOCATION.search(line)
        if place and place["file"] == file:
            around = () if " = const " in line else kernels  # kernels share constants
            for each in {number, *around}:
                found.setdefault(int(place["line"]), []).append(each)
        if KERNEL.search(line):
            kernels.append(number)
        elif line.lstrip().startswith("}}") and kernels:
            kernels.pop()
    return {line: sorted(set(numbers)) for line, numbers in sorted(found.items())}
