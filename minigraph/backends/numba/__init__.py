"""The Numba backend: fused loops as Numba kernels, driven by compiled functions.

    kernels, writing, reducing, space    the body of a `kernel` node -> loops
    segments                             a run of nodes -> one function that calls kernels and BLAS
    driver                               the whole graph -> a Python function around the segments
    runtime, cache                       text -> machine code, in memory and on disk
    intrinsics, products, scalars, vector_math    what compiled text calls

Numba itself is imported when the first program is loaded.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from functools import partial
from importlib.util import find_spec
from typing import Any

from minigraph.ir import Graph, Node, Plan, node_text
from minigraph.ops import TRANSCENDENTAL

from ..program import Program
from ..python import load as load_python
from ..settings import Settings
from .driver import NumbaProgram, write_program
from .listing import listing

LOWERING = ("fuse", "cse")
"""The passes that this backend wants, after all others."""

DEFAULT = Settings()


def available() -> str | None:
    """Why this backend cannot run here."""
    missing = [name for name in ("numba", "scipy") if find_spec(name) is None]
    return f"{' and '.join(missing)} cannot be imported" if missing else None


def emit(graph: Graph, plan: Plan | None = None, settings: Settings = DEFAULT) -> Program:
    """Write the program of a graph that `fuse` has gone over."""
    assert plan is not None, "the Numba backend follows a plan"
    return write_program(graph, plan, settings)


def cannot_fuse(node: Node, settings: Settings) -> str:
    """Why no kernel computes the node as the user wants it; "" if one can."""
    exact = settings.math == "libm" and node.op.name in TRANSCENDENTAL
    return 'with math="libm" NumPy computes it' if exact else ""


def views(program: Program) -> Mapping[str, Callable[[], str]]:
    """The compiled functions as text: with the user's names, and what LLVM made of them."""
    assert isinstance(program, NumbaProgram)
    runtime: Any = importlib.import_module(".runtime", __package__)
    return {
        "numba": partial(listing, program),
        "llvm": partial(runtime.machine_text, program.segments, "llvm"),
        "asm": partial(runtime.machine_text, program.segments, "asm"),
    }


def explain(program: Program) -> list[str]:
    """What is compiled, and what Python runs."""
    assert isinstance(program, NumbaProgram)
    lines = []
    for name, segment in program.segments.items():
        products = sum(node.op.name != "kernel" for node in segment.nodes)
        parts = f"{len(segment.nodes) - products} kernels and {products} products"
        shared = f", {len(segment.shared)} of them in threads" if segment.shared else ""
        lines.append(f"{name}: {parts} in one compiled function{shared}")
    for node in program.python_nodes:
        place = f"  # {node.loc}" if node.loc else ""
        lines.append(f"in Python: {node_text(node)}{place}")
    return lines


def load(program: Program) -> Callable[..., tuple[Any, ...]]:
    """Compile a program."""
    assert isinstance(program, NumbaProgram)
    runtime: Any = importlib.import_module(".runtime", __package__)
    names = runtime.compile_segments(program.segments, program.settings)
    supplied = {
        "free": [],  # memory that no call uses at the moment
        "new_memory": runtime.new_memory,
        "dense": runtime.dense,
        "threads": runtime.threads_of(program.settings),
    }
    for wish, name in program.given_names.items():
        if wish in supplied:
            names[name] = supplied[wish]
    return load_python(program, **names)
