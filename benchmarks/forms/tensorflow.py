"""What TensorFlow makes of a function: its graph, that graph after Grappler, and XLA's HLO.

An operation of a graph knows the lines that made it; nodes that Grappler or XLA made of it are told
by its name, of which they keep a part.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ..runners.base import Form

Lines = Mapping[str, Sequence[int]]

ENDS = {"_Arg", "_Retval", "Placeholder", "Const", "NoOp", "_HostConst"}
"""Operations that compute nothing."""
INSTRUCTION = re.compile(r"\s+(?:ROOT )?%?\S+ = (?:\(.*?\)|\S+) (?!parameter\(|constant\()[a-z]")
ORIGIN = re.compile(r' source_file="[^"]*" source_line=\d+')
NAME = re.compile(r'op_name="([^"]*)"')


def graphs(
    tf: Any, function: Callable[..., Any], arguments: Sequence[Any], file: str
) -> list[Form]:
    """The graph as it was traced, and as it is run; calls the function once.

    Args:
        tf: TensorFlow.
        function: the user's.
        arguments: of the call.
        file: the user's.
    """
    from tensorflow.python.eager import context

    concrete = tf.function(function).get_concrete_function(*arguments)
    context.enable_run_metadata()
    concrete(*arguments)
    run = max(context.export_run_metadata().function_graphs, key=_size)
    context.disable_run_metadata()
    lines = _lines(concrete.graph, file)
    before, after = run.pre_optimization_graph, run.post_optimization_graph
    return [
        _graph("graph", before, "before", lines),
        _graph("graph after Grappler", after, "after", lines),
    ]


def hlo(tf: Any, function: Callable[..., Any], arguments: Sequence[Any], file: str) -> list[Form]:
    """What XLA gets, and what it makes machine code of; compiles the function again."""
    made = tf.function(function, jit_compile=True)
    lines = _lines(made.get_concrete_function(*arguments).graph, file)
    text_of = made.experimental_get_compiler_ir(*arguments)
    return [
        _hlo("HLO", text_of(stage="hlo"), "before", lines),
        _hlo("optimised HLO", text_of(stage="optimized_hlo"), "after", lines),
    ]


def _size(graphs: Any) -> int:
    """How much there was to optimise; small ones are TensorFlow's own."""
    return len(graphs.pre_optimization_graph.node)


def _graph(title: str, graph: Any, stage: str, lines: Lines) -> Form:
    """A line for each node: `add = AddV2(MatMul, bias)`; then those of the functions it calls."""
    nodes = [*graph.node]
    text = [_node(each) for each in nodes]
    for function in graph.library.function:
        text += ["", f"function {function.signature.name}:"]
        text += [f"  {_node(each)}" for each in function.node_def]
        nodes += [None, None, *function.node_def]
    found: dict[int, list[int]] = {}
    for number, node in enumerate(nodes, 1):
        for line in _lines_of(node.name, lines) if node else ():
            found.setdefault(line, []).append(number)
    count = sum(node is not None and node.op not in ENDS for node in nodes)
    return Form(title, "tensorflow", "\n".join(text), count, stage, found)


def _node(node: Any) -> str:
    return f"{node.name} = {node.op}({', '.join(node.input)})"


def _hlo(title: str, text: str, stage: str, lines: Lines) -> Form:
    """Instructions are counted where they are not part of a fusion."""
    found: dict[int, list[int]] = {}
    count, in_fusion = 0, False
    written = ORIGIN.sub("", text).split("\n")
    for number, instruction in enumerate(written, 1):
        if instruction.endswith("{"):
            in_fusion = "fused_computation" in instruction.split("(")[0]
        count += not in_fusion and INSTRUCTION.match(instruction) is not None
        name = NAME.search(instruction)
        for line in _lines_of(name[1], lines) if name else ():
            found.setdefault(line, []).append(number)
    return Form(title, "hlo", "\n".join(written), count, stage, found)


def _lines_of(name: str, lines: Lines) -> Sequence[int]:
    """Of the operation whose name this one ends with."""
    parts = name.split("/")
    ends = ("_".join(parts[start:]) for start in range(len(parts)))
    return next((lines[end] for end in ends if end in lines), ())


def _lines(graph: Any, file: str) -> dict[str, list[int]]:
    """Name of each operation, with `_` for `/` → the lines of the user's file that led to it."""
    return {
        operation.name.replace("/", "_"): [
            frame.lineno for frame in operation.traceback or () if frame.filename == file
        ]
        for each in _with_functions(graph)
        for operation in each.get_operations()
    }


def _with_functions(graph: Any) -> Iterator[Any]:
    """A graph and those of the loops and branches in it."""
    yield graph
    for operation in graph.get_operations():
        for attribute in ("cond", "body", "then_branch", "else_branch"):
            if attribute in operation.node_def.attr:
                name = operation.get_attr(attribute).name
                yield from _with_functions(graph._get_function(name).graph)
