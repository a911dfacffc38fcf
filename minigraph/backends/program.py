"""What a backend makes of a graph: readable source that knows which node each line stands for."""

from __future__ import annotations

import itertools
import linecache
import weakref
from collections.abc import Mapping, Sequence
from types import FrameType, TracebackType
from typing import Any

from minigraph.errors import DtypeError
from minigraph.ir import Graph, Loc, Node, Plan, Size, Value, node_text, type_of
from minigraph.ops import evaluate_node

_numbers = itertools.count(1)


class Program:
    """Source text with the way back to the graph.

    It stands in `linecache` under its file name for as long as it lives, so tracebacks, `pdb` and
    profilers show it.

    Attributes:
        name: the function's name in the source, a Python identifier.
        source: the text.
        lines: (line, node) pairs in ascending order; lines count from 1, a node may have several.
        constants: what the source names without defining: arrays and helpers, by name.
        filename: `<minigraph NAME NUMBER>`, never given twice in one process.
        graph: what the source computes.
        plan: the storage plan that it follows, if any.
        names: the text that stands for each value in the source.
        kept_bytes: how much memory it keeps between calls because the user asked for it.
    """

    __slots__ = (
        "__weakref__",
        "_node_of_line",
        "constants",
        "filename",
        "graph",
        "kept_bytes",
        "lines",
        "name",
        "names",
        "plan",
        "source",
    )

    def __init__(
        self,
        name: str,
        source: str,
        lines: Sequence[tuple[int, Node]],
        constants: Mapping[str, Any],
        graph: Graph,
        plan: Plan | None = None,
        *,
        names: Mapping[Value, str] | None = None,
        filename: str | None = None,
    ) -> None:
        self.name = name
        self.source = source
        self.lines = tuple(lines)
        self.constants = dict(constants)
        self.filename = filename or f"<minigraph {name} {next(_numbers)}>"
        self.graph = graph
        self.plan = plan
        self.names = dict(names or {})
        self.kept_bytes: Size = 0
        self._node_of_line: dict[int, Node] | None = None
        # Without a modification time `linecache.checkcache` leaves the entry alone.
        linecache.cache[self.filename] = (
            len(source),
            None,
            source.splitlines(keepends=True),
            self.filename,
        )
        weakref.finalize(self, linecache.cache.pop, self.filename, None).atexit = False

    def find(self, line: int) -> Node | None:
        """The node that a line of the source stands for."""
        if self._node_of_line is None:
            self._node_of_line = dict(self.lines)
        return self._node_of_line.get(line)

    def __str__(self) -> str:
        return self.source

    def __repr__(self) -> str:
        return f"<Program {self.filename}: {len(self.source.splitlines())} lines>"


def explain_failure(error: BaseException, program: Program) -> None:
    """Add a note to an exception raised inside a program: the user's line, the node, the operands.

    The exception stays the same object; whoever calls this re-raises it.  An error that did not
    come from the program's own frame, or that has this note already, is left alone.
    """
    found = _failed_node(error.__traceback__, program)
    if found is None:
        return
    node, operands, line = found
    parts = [f"while running {_place(node.loc)}" if node.loc else "while running this node"]
    if node.loc is not None and (text := linecache.getline(node.loc.file, node.loc.line).strip()):
        parts.append(f"    {text}")
    parts.append(f"  node:      {node_text(node)}")
    if operands:
        parts.append(f"  operands:  {', '.join(operands)}")
    if line:
        parts.append(f"  generated: {linecache.getline(program.filename, line).strip()}")
        parts.append(f"             {program.filename}:{line}")
    note = "\n".join(parts)
    if note not in getattr(error, "__notes__", ()):
        error.add_note(note)


def _place(loc: Loc) -> str:
    inside = f", in {loc.function}" if loc.function else ""
    return f"{loc.file}:{loc.line}{inside}"


def _failed_node(
    entry: TracebackType | None, program: Program
) -> tuple[Node, list[str], int] | None:
    """The node, its operands in words, and the line of the source (0: run by the evaluator)."""
    found = None
    while entry is not None:
        frame = entry.tb_frame
        if frame.f_code.co_filename == program.filename:
            node = program.find(entry.tb_lineno)
            if node is not None:
                found = node, _operands(node, frame, program), entry.tb_lineno
        elif frame.f_code is evaluate_node.__code__ and (found is None or not found[2]):
            node, inputs = frame.f_locals["node"], frame.f_locals["inputs"]
            pairs = zip(node.inputs, inputs, strict=True)
            found = node, [_described(value, held) for value, held in pairs], 0
        entry = entry.tb_next
    return found


def _operands(node: Node, frame: FrameType, program: Program) -> list[str]:
    words: list[str] = []
    for value in dict.fromkeys(node.inputs):
        name = program.names.get(value, "")
        if name in frame.f_locals:
            words.append(_described(value, frame.f_locals[name]))
        elif name in program.constants:
            words.append(_described(value, program.constants[name]))
        elif name:
            words.append(f"%{value.name} = {name}")
    return words


def _described(value: Value, held: Any) -> str:
    """`%a: f64[3]`, and for a Python number `%n = 3`."""
    if isinstance(held, bool | int | float | complex) and type(held).__module__ == "builtins":
        text = repr(held) if not isinstance(held, int) or held.bit_length() < 256 else "an int"
        return f"%{value.name} = {text}"
    try:
        return f"%{value.name}: {type_of(held)}"
    except DtypeError:
        return f"%{value.name}: {type(held).__name__}"
