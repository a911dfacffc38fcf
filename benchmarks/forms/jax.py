"""What JAX and XLA made of a function: jaxpr, StableHLO, and HLO after XLA's passes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from ..runners.base import Form

LOCATION = re.compile(r"\s+# (?P<file>\S+):(?P<line>\d+):\d+ \(.*\)$")  # of an equation
ALIAS = re.compile(r"^#(loc\d*) = loc\((.*)\)$")  # of StableHLO
PLACE = re.compile(r'"(?P<file>[^"]+)":(?P<line>\d+):')
USED = re.compile(r" loc\(#(loc\d*)\)$")
TABLE = re.compile(r"^(\d+) (?:\"(.*)\"|\{(.*)\})$")  # of HLO: names of files, locations, frames
FRAME = re.compile(r"stack_frame_id=(\d+)")
INSTRUCTION = re.compile(r"^\s+(?:ROOT )?%\S+ = .*?\b([a-z][\w-]*)\(")
NO_OPERATIONS = ("parameter", "constant", "tuple", "get-tuple-element", "bitcast")


def forms(function: Any, arguments: Any, file: str) -> list[Form]:
    """All of a function of `jax.jit`; `file` is the user's, whose lines are looked for."""
    traced = function.trace(*arguments)
    lowered = traced.lower()
    return [
        _jaxpr(traced.jaxpr.pretty_print(source_info=True), file),
        _stablehlo(lowered.as_text(debug_info=True), file),
        _hlo(lowered.compile().as_text(), file),
    ]


def _by_line(pairs: Iterable[tuple[int, int]]) -> dict[int, list[int]]:
    """From pairs of a line of the file and a line of a text."""
    found: dict[int, list[int]] = {}
    for line, number in pairs:
        found.setdefault(line, []).append(number)
    return found


def _jaxpr(text: str, file: str) -> Form:
    """Where an equation comes from stands behind it."""
    lines = text.splitlines()
    pairs = [
        (int(found["line"]), number)
        for number, line in enumerate(lines, 1)
        if (found := LOCATION.search(line)) and found["file"] == file
    ]
    plain = [LOCATION.sub("", line) for line in lines]
    nodes = sum(" = " in line for line in plain)
    return Form("jaxpr", "jaxpr", "\n".join(plain), nodes, "before", _by_line(pairs))


def _stablehlo(text: str, file: str) -> Form:
    """Places stand at the end of the text, and refer to one another."""
    aliases = dict(found.groups() for line in text.splitlines() if (found := ALIAS.match(line)))

    def places(name: str) -> set[int]:
        found: set[int] = set()
        waiting = [aliases.get(name, "")]
        while waiting:
            value = waiting.pop()
            found |= {int(each["line"]) for each in PLACE.finditer(value) if each["file"] == file}
            waiting += [aliases.get(each, "") for each in re.findall(r"#(loc\d*)", value)]
        return found

    lines = [line for line in text.splitlines() if not ALIAS.match(line)]
    pairs = [
        (place, number)
        for number, line in enumerate(lines, 1)
        if "stablehlo." in line and (found := USED.search(line))
        for place in places(found[1])
    ]
    plain = "\n".join(re.sub(r' loc\((?:#loc\d*|"[^"]*"|unknown)\)', "", line) for line in lines)
    nodes = sum(" = stablehlo." in line and "stablehlo.constant" not in line for line in lines)
    return Form("StableHLO", "hlo", plain, nodes, "before", _by_line(pairs))


def _hlo(text: str, file: str) -> Form:
    """Metadata name a frame, which names a place, which names a file: three tables at the top.

    What is run is counted: a fusion is one.
    """
    head, _, _ = text.partition("\n%")
    tables: dict[str, dict[str, str]] = {}
    table: dict[str, str] = {}
    for line in head.splitlines():
        if found := TABLE.match(line):
            table[found[1]] = found[2] or found[3]
        elif line.isidentifier():
            table = tables[line] = {}

    frames = tables.get("StackFrames", {})

    def lines_of(frame: str) -> list[int]:
        """Of a frame, or of the one nearest to it that is in the file."""
        seen: set[str] = set()
        while frame in frames and frame not in seen:
            seen.add(frame)
            told = _fields(frames[frame])
            place = _fields(tables["FileLocations"][told["file_location_id"]])
            if tables["FileNames"][place["file_name_id"]] == file:
                return [int(place["line"])]
            frame = told["parent_frame_id"]
        return []

    pairs = [
        (line, number)
        for number, each in enumerate(text.splitlines(), 1)
        if (frame := FRAME.search(each))
        for line in lines_of(frame[1])
    ]
    return Form("optimised HLO", "hlo", text, _instructions(text), "after", _by_line(pairs))


def _fields(text: str) -> dict[str, str]:
    return dict(part.split("=") for part in text.split())


def _instructions(text: str) -> int:
    inner = set(re.findall(r"(?:calls|to_apply)=(%[\w.-]+)", text))
    count, name = 0, ""
    for line in text.splitlines():
        if line and not line[0].isspace():
            name = line.split(" ", 1)[0]
        elif (found := INSTRUCTION.match(line)) and name not in inner:
            count += found[1] not in NO_OPERATIONS
    return count
