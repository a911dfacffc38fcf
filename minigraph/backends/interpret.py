"""The evaluator of `ops/`, node by node: the oracle of every test.

The program's source is the graph's text; nothing is generated.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minigraph.ir import Graph, Node, Plan, outputs_to_copy
from minigraph.ops import evaluate

from .names import identifier
from .program import Program, explain_failure
from .settings import DEFAULT_SETTINGS, Settings
from .storage import fresh


def available() -> str | None:
    """Why this backend cannot run here: it always can."""
    return None


def emit(graph: Graph, plan: Plan | None = None, settings: Settings = DEFAULT_SETTINGS) -> Program:
    """The graph's text as a program; the plan is kept and not followed."""
    return Program(identifier(graph.name), str(graph), _lines(graph), {}, graph, plan)


def _lines(graph: Graph) -> list[tuple[int, Node]]:
    """One line a node, in order, below the header (a node with regions takes several)."""
    lines: list[tuple[int, Node]] = []
    number = 2
    for node in graph.nodes:
        lines.append((number, node))
        number += 1 + sum(str(region).count("\n") for _, region in node.regions)
    return lines


def load(program: Program) -> Callable[..., tuple[Any, ...]]:
    """A callable that evaluates the graph: inputs one by one, a tuple of outputs."""
    graph = program.graph
    copied = outputs_to_copy(graph)

    def run(*inputs: Any) -> tuple[Any, ...]:
        try:
            results = evaluate(graph, inputs)
        except Exception as error:
            explain_failure(error, program)
            raise
        return tuple(
            fresh(result) if copy else result for result, copy in zip(results, copied, strict=True)
        )

    return run
