"""Generated Python: a graph as the NumPy lines that a person would have written.

    # fancy_func(a: f64[4], b: f64[4]) -> f64[4]
    import numpy as np


    def fancy_func(a, b):
        e = a + b               # f64[4]
        g = np.exp(e, out=e)    # f64[4]
        del e
        return g * 2.0

Each value has one local of the user's name; numbers stand where they are used; a buffer is freed or
written again where the plan says so, and under `static_alloc` kept for the next call.  What the
text shows is what runs, but for two things that `load` adds around it: results come as a tuple, and
an exception gets its note (see `_runnable`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from minigraph.ir import Graph, Plan, Value

from .control import write_nodes
from .program import Program, explain_failure
from .settings import DEFAULT_SETTINGS, Settings
from .storage import to_keep
from .writer import Writer

LOWERING = ("parallel",)


def available() -> str | None:
    """Why this backend cannot run here: it always can."""
    return None


def emit(graph: Graph, plan: Plan | None = None, settings: Settings = DEFAULT_SETTINGS) -> Program:
    """Write the program of a graph.

    Args:
        graph: a function (flat inputs in order, outputs in order) or a whole program (statements).
        plan: which names to delete and which buffers to write again; without one, neither.
        settings: what the user chose.
    """
    assert plan is None or len(plan.dies) == len(graph.nodes), "a plan of another graph"
    writer = Writer(graph, plan)
    is_function = not graph.signature.program
    kept: list[Value] = []
    if settings.static_alloc and is_function and plan is not None:
        kept = to_keep(graph, plan)
    writer.bind_sizes(size for value in kept for size in value.shape)
    writer.take_kept(kept)
    write_nodes(writer, graph, plan)
    writer.give_kept()
    if is_function:
        writer.write_return()
    source, lines = writer.assemble()
    constants, names = writer.constants, writer.text
    program = Program(writer.name, source, lines, constants, graph, plan, names=names)
    program.kept_bytes = writer.kept_bytes
    return program


def load(program: Program, **names: Any) -> Callable[..., tuple[Any, ...]]:
    """Compile a program.

    Args:
        program: from `emit`.
        **names: further names that its source may use.

    Returns:
        A callable that takes the graph's inputs one by one and returns a tuple of its outputs.
        `load` adds no call of its own: for a function it is the generated function itself.
    """
    explain = partial(explain_failure, program=program)
    namespace = {**program.constants, **names, "_explain": explain}
    if not program.graph.signature.program:
        exec(compile(_runnable(program), program.filename, "exec"), namespace)
        return namespace[program.name]
    code = compile(program.source, program.filename, "exec")

    def run() -> tuple[Any, ...]:
        try:
            exec(code, dict(namespace))
        except Exception as error:
            explain_failure(error, program)
            raise
        return ()

    return run


def _runnable(program: Program) -> str:
    """The function's text with its body inside a `try`, each line where the source has it.

    The line above `def` (a comment or blank) gives the room, and one space of indentation keeps the
    columns, so that tracebacks point into the source as shown.  A `try` costs nothing until it
    catches; a wrapper around the function would cost as much as a small operation at every call.
    """
    lines = program.source.split("\n")
    at = next(index for index, line in enumerate(lines) if line.startswith("def "))
    lines[at - 1 : at + 1] = [lines[at], " try:"]
    results = lines[-1].removeprefix("    return").strip()
    comma = "," if len(program.graph.outputs) == 1 else ""
    lines[-1] = f"    return ({results}{comma})"
    return "\n".join([*lines, " except Exception as _failure:", "  _explain(_failure)", "  raise"])
