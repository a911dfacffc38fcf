"""What PyTorch's compilers made of a function: TorchScript's graphs, FX graphs, Inductor's code."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ..runners.base import Form

NO_OPERATIONS = ("prim::Constant", "prim::GetAttr")
LOCATION = re.compile(r"# (?P<file>.+):(?P<line>\d+):\d+$")  # at the end of a node of TorchScript
DEFINED = re.compile(r"%([a-zA-Z_][\w.]*)(?= :)")  # numbers are given anew
FX_NODE = re.compile(r"^\s+(\w+)(?:: \"[^\"]*\")? = ")
FRAME = re.compile(r'File "(?P<file>.+)", line (?P<line>\d+), in ')
CALLED = re.compile(
    r"^\s+(?:\w+ = )?(?:\w*fused\w*|extern_kernels\.\w+|torch\.ops\.[\w.]+)\(", re.M
)

# ---- TorchScript -------------------------------------------------------------------------------


def torchscript(scripted: Any, executed: Any, arguments: Any, file: str) -> list[Form]:
    """The graph of all that was scripted, and the one that was run after the profiling calls.

    Args:
        scripted: a function or module, before it was frozen.
        executed: what is called.
        arguments: of a call.
        file: the user's, whose lines are looked for.
    """
    named = _lines_of_names(str(scripted.graph), file)
    graphs = {
        ("TorchScript, inlined", "before"): scripted.inlined_graph,
        ("TorchScript, as run (graph_for)", "after"): executed.graph_for(*arguments),
    }
    return [
        Form(title, "torchscript", str(graph), _count(graph), stage, _lines(graph, named, file))
        for (title, stage), graph in graphs.items()
    ]


def _nodes(graph: Any) -> Iterator[Any]:
    """Of a graph and of the blocks in it."""
    for node in graph.nodes():
        yield node
        for block in node.blocks():
            yield from _nodes(block)


def _count(graph: Any) -> int:
    return sum(node.kind() not in NO_OPERATIONS for node in _nodes(graph))


def _located(text: str, file: str) -> Iterator[tuple[int, int | None, list[str]]]:
    """Each line's number, the line of the file that it tells, and the values defined in it."""
    for number, line in enumerate(text.splitlines(), 1):
        found = LOCATION.search(line)
        told = int(found["line"]) if found and found["file"] == file else None
        yield number, told, DEFINED.findall(line.partition(" = ")[0]) if " = " in line else []


def _lines_of_names(text: str, file: str) -> dict[str, int]:
    """Values → the line that made them, where functions are called and not yet inlined."""
    return {name: line for _, line, names in _located(text, file) if line for name in names}


def _lines(graph: Any, named: Mapping[str, int], file: str) -> dict[int, list[int]]:
    """A line is found by its own comment, and by the name of a value, which inlining leaves."""
    found: dict[int, list[int]] = {}
    for number, told, names in _located(str(graph), file):
        for line in {told, *map(named.get, names)} - {None}:
            found.setdefault(line, []).append(number)
    return found


# ---- torch.compile -----------------------------------------------------------------------------


def compiled(function: Any, call: Callable[[Any], Any], file: str) -> list[Form]:
    """The graphs that Dynamo took, and the code that Inductor wrote; compiles once more.

    Args:
        function: or a module.
        call: calls what is made of it, and backward where that is wanted.
        file: the user's, whose lines are looked for.
    """
    import torch
    from torch._inductor import config
    from torch._inductor.compile_fx import compile_fx
    from torch._inductor.utils import run_and_get_code

    found: list[Form] = []

    def backend(graph: Any, inputs: Any) -> Any:
        found.append(_fx(graph, file))
        return compile_fx(graph, inputs)

    torch._dynamo.reset()
    with config.patch(force_disable_caches=True):
        made = torch.compile(function, backend=backend, dynamic=False)
        _, codes = run_and_get_code(call, made)
    if codes:  # none where Dynamo leaves all to Python
        code = "\n".join(codes)
        count = len(CALLED.findall(code))
        found.append(Form("Inductor's code", "python", code, count, "after"))
    return found


def _fx(graph: Any, file: str) -> Form:
    text = graph.print_readable(print_output=False)
    places = {
        match[1]: number
        for number, line in enumerate(text.splitlines(), 1)
        if (match := FX_NODE.match(line))
    }
    operations = [node for node in graph.graph.nodes if node.op.startswith("call")]
    lines: dict[int, list[int]] = {}
    for node in operations:
        frames = FRAME.finditer(node.stack_trace or "")
        inner = [int(frame["line"]) for frame in frames if frame["file"] == file][-1:]
        if inner and node.name in places:
            lines.setdefault(inner[0], []).append(places[node.name])
    return Form("FX graph", "python", text, len(operations), "before", lines)
