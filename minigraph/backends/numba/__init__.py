"""The Numba backend: fused loops as Numba kernels, driven by compiled functions.

    kernels: rows, columns, everything    the body of a `kernel` node -> loops, by what they do
    keeping, reducing, space, writing     what these are written with
    segments                              a run of nodes -> a function that calls kernels and BLAS
    loops, regions, parts, places, statements      an `if`, `while` or `scan` -> such a function
    numbers, intervals, frames, batches            what these are written with
    division                              which nodes are in which segment, and which are Python's
    matrices                              a product of batches, or a large one, as a kernel
    driver                                the whole graph -> a Python function around segments
    runtime, cache                        text -> machine code, in memory and on disk
    intrinsics, products, scalars, checked, vector_math    what compiled text calls
    again                                 a loop that compiled code gave up on, in Python

Numba itself is imported when the first program is loaded.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from importlib.util import find_spec
from typing import Any

from minigraph.errors import CompileError
from minigraph.ir import Graph, Node, Plan, is_structured, node_text
from minigraph.ops import Numbers, scalar_text

from ..program import Program
from ..python import load as load_python
from ..settings import DEFAULT_SETTINGS, Settings
from ..writer import MOST_FREE
from .driver import NumbaProgram, write_program
from .listing import listing

LOWERING = ("fuse", "parallel")
"""The passes that this backend wants, after all others."""

_broken: list[str] = []  # why Numba, though it is installed, could not be imported


def available() -> str | None:
    """Why this backend cannot run here."""
    missing = [name for name in ("numba", "scipy") if not _is_installed(name)]
    if missing:
        return f"{' and '.join(missing)} cannot be imported"
    if _broken:
        return _broken[0]
    return "NUMBA_DISABLE_JIT is set" if _is_switched_off() else None


def _is_installed(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except (ImportError, ValueError):  # a finder refuses it, or it is half imported
        return False


def _is_switched_off() -> bool:
    """Whether Numba was told to compile nothing, which leaves no pointers to read through."""
    numba: Any = sys.modules.get("numba")
    if hasattr(numba, "config"):
        return bool(numba.config.DISABLE_JIT)
    return os.environ.get("NUMBA_DISABLE_JIT", "").strip() not in ("", "0")


def _runtime() -> Any:
    """The module that needs Numba.

    Raises:
        CompileError: Numba is installed and cannot be imported.
    """
    try:
        return importlib.import_module(".runtime", __package__)
    except Exception as error:
        # Whatever it is, nothing runs without it.
        _broken.append(f"numba cannot be imported: {error}")
        raise CompileError(_broken[0], instead='backend="python"') from error


def emit(graph: Graph, plan: Plan | None = None, settings: Settings = DEFAULT_SETTINGS) -> Program:
    """Write the program of a graph that `fuse` has gone over."""
    assert plan is not None, "the Numba backend follows a plan"
    return write_program(graph, plan, settings)


def cannot_fuse(node: Node, numbers: Numbers, settings: Settings) -> str:
    """Why no kernel computes the node as the user wants it; "" if one can."""
    exact = settings.math == "libm" and node.op.kind == "elementwise"
    if exact and scalar_text(node, numbers, exact=True) is None:
        return 'with math="libm" NumPy computes it'
    return ""


def views(program: Program) -> Mapping[str, Callable[[], str]]:
    """The compiled functions as text: with the user's names, and what LLVM made of them."""
    assert isinstance(program, NumbaProgram)
    runtime = _runtime()
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
        if segment.is_loop:
            rows = "; its rows in threads" if segment.shared else ""
            lines.append(f"{name}: {segment.nodes[0].op.name}, one compiled function{rows}")
            continue
        kernels = sum(node.op.name == "kernel" for node in segment.nodes)
        copies = sum(node.op.view for node in segment.nodes)
        products = len(segment.nodes) - kernels - copies
        counts = ((kernels, "kernel"), (products, "product"), (copies, "reshape"))
        parts = [_count(*each) for each in counts]
        shared = f"; {_count(len(segment.shared), 'kernel')} in threads" if segment.shared else ""
        lines.append(f"{name}: {' and '.join(filter(None, parts))}, one compiled function{shared}")
    for node in program.python_nodes:
        if node.op.name == "const":
            continue
        place = f"  # {node.loc}" if node.loc else ""
        text, reason = node_text(node), program.reasons.get(node)
        if any(True for _ in node.regions):  # only the head
            text = text.partition("{")[0].rstrip()
        if reason is not None:
            text = f"{text}, for {reason.text}"
        lines.append(f"in Python: {text}{place}")
    lines.append(f"compiled code: {_runtime().kept(program.settings)}")
    return lines


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}" if number else ""


def load(program: Program) -> Callable[..., tuple[Any, ...]]:
    """Compile a program."""
    assert isinstance(program, NumbaProgram)
    runtime = _runtime()
    supply = {
        "free": partial(_free_memory, program, runtime.new_memory),
        "new_memory": lambda: runtime.new_memory,
        "dense": lambda: runtime.dense,
        "threads": lambda: runtime.threads_of(program.settings),
    }
    # First of all: code from the cache looks for the threads when it is loaded.
    names = {name: supply[wish]() for wish, name in program.given_names.items() if wish in supply}
    names |= runtime.compile_segments(program.segments, program.settings)
    names |= _constants(program, runtime.dense)
    return load_python(program, **names)


def _free_memory(program: NumbaProgram, new_memory: Callable[[int], Any]) -> deque[Any]:
    """What calls take memory from; under `static_alloc` the first one finds some there."""
    free: deque[Any] = deque(maxlen=MOST_FREE)
    size = program.memory_bytes
    if program.settings.static_alloc and isinstance(size, int):
        free.append(new_memory(size))
    return free


def _constants(program: NumbaProgram, dense: Callable[..., Any]) -> dict[str, Any]:
    """The constants that compiled code reads, in C order once and for all, by name."""
    outputs = set(program.graph.outputs)
    names = {
        program.names[value]
        for segment in program.segments.values()
        for value in segment.reads
        if value not in outputs
    }
    return {name: dense(program.constants[name])[0] for name in names & program.constants.keys()}
