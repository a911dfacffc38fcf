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
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

from minigraph.ir import Graph, Plan

from ..program import Program
from ..python import load as load_python
from ..settings import Settings
from .driver import NumbaProgram, write_program

LOWERING = ("fuse",)
"""The passes that this backend wants, after all others."""


def available() -> str | None:
    """Why this backend cannot run here."""
    missing = [name for name in ("numba", "scipy") if find_spec(name) is None]
    return f"{' and '.join(missing)} cannot be imported" if missing else None


def emit(graph: Graph, plan: Plan | None = None, settings: Settings | None = None) -> Program:
    """Write the program of a graph that `fuse` has gone over."""
    assert plan is not None, "the Numba backend needs a plan"
    return write_program(graph, plan, settings or Settings())


def load(program: Program) -> Callable[..., tuple[Any, ...]]:
    """Compile a program."""
    assert isinstance(program, NumbaProgram)
    runtime: Any = importlib.import_module(".runtime", __package__)
    names = runtime.compile_segments(program.segments, program.settings)
    memory = runtime.Memory()
    supplied = {
        "take": memory.take,
        "give": memory.give,
        "dense": runtime.dense,
        "threads": runtime.threads_of(program.settings),
    }
    for wish, name in program.given_names.items():
        if wish in supplied:
            names[name] = supplied[wish]
    return load_python(program, **names)
