"""`minigraph demo`: two programs go through the compiler, and every step is shown.

Nothing here is prepared: what is printed comes from the pipeline that `mg.jit` uses.
"""

from __future__ import annotations

import tempfile
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from minigraph.compiled import Compiled, compile
from minigraph.errors import DrawingError
from minigraph.ir import Graph
from minigraph.target import Target
from minigraph.viz import Terminal, bytes_text, counted, save

TEXTBOOK = """\
def add(a, b):
    return a + b


def fancy_func(a, b, c, d):
    e = add(a, b)
    f = add(c, d)
    g = add(e, f)
    return g


print(fancy_func(1, 2, 3, 4))
"""

ARRAYS = """\
import numpy as np


def add(a, b):
    return a + b


def fancy_func(a, b, c, d):
    e = add(a, b)
    f = add(c, d)
    unused = np.exp(f) * e      # nobody reads this
    again = add(a, b)           # this is e
    g = add(e, f) / again
    return np.sqrt(g)
"""

SIZE = 1_000_000

NEXT = (
    ('echo "print((1 + 2) * (3 + 4))" | minigraph explain -', "every stage of a program"),
    ('minigraph draw FILE.py:FUNC --args "f64[1000]" -o out.svg', "your function as a picture"),
    ("minigraph doctor", "what works on this machine"),
)


def demo(terminal: Terminal, picture: Path, command: str = "minigraph") -> None:
    """Show both programs and draw the first.

    Args:
        terminal: where to.
        picture: the file to draw.
        command: how the user calls `minigraph`.

    Raises:
        DrawingError: there is no picture; everything else has been shown.
        OSError: it cannot be written.
    """
    with tempfile.TemporaryDirectory(prefix="minigraph-") as folder:
        compiled = show_textbook(terminal, Path(folder) / "fancy_func.py")
        show_arrays(terminal, Path(folder) / "fancy_arrays.py")
        failure = draw(terminal, compiled, picture)
    terminal.heading("Next, try")
    terminal.table([(line.replace("minigraph", command), why) for line, why in NEXT])
    if failure is not None:
        raise failure


def show_textbook(terminal: Terminal, path: Path) -> Compiled:
    """A program of numbers, down to what is left of it."""
    path.write_text(TEXTBOOK, encoding="utf-8")
    terminal.heading("1  A program", path.name)
    terminal.source(TEXTBOOK)

    traced = Target(str(path)).trace_program()
    compiled = compile(traced, "python")
    terminal.heading("2  Recorded: the graph, with your names and lines", _nodes(traced))
    terminal.graph(traced)

    terminal.heading("3  What each pass changed, and why", "~ changed  - gone  + new  ! refused")
    terminal.passes(compiled.history)

    terminal.heading("4  The program that is left")
    terminal.program(compiled.source())

    terminal.heading("5  Its output")
    terminal.flush()
    compiled()
    return compiled


def show_arrays(terminal: Terminal, path: Path) -> None:
    """The same function on arrays: work and memory that is saved, and the same result."""
    path.write_text(ARRAYS, encoding="utf-8")
    function = Target(f"{path}:fancy_func").load(backend="python")
    rng = np.random.default_rng(0)
    arguments = [rng.uniform(1, 2, SIZE) for _ in range(4)]
    terminal.heading("6  The same on arrays, with a dead line and a repeated one", path.name)
    terminal.source(ARRAYS)

    compiled = function.lower(*arguments)
    terminal.heading("7  What each pass changed, and why", _nodes(compiled.graph("traced")))
    terminal.passes(compiled.history)

    graph = compiled.graph()
    terminal.heading("8  Where each array lives", f"{_nodes(graph)}, bytes")
    terminal.plan(graph, compiled.plan)

    terminal.heading("9  The program, with these buffers")
    terminal.program(compiled.source())

    terminal.heading("10  Compared with eager NumPy")
    eager, eager_peak = _measured(function.function, arguments)
    naive = compile(compiled.graph("traced"), "python", passes=()).memory_report()
    report = function.memory_report(*arguments)
    terminal.table(
        [
            ("operations", len(compiled.graph("traced").nodes), len(graph.nodes)),
            ("bytes without reuse", bytes_text(naive.naive), bytes_text(report.naive)),
            ("peak bytes, planned", "", bytes_text(report.planned)),
            ("peak bytes, measured", bytes_text(eager_peak), bytes_text(report.measured)),
        ],
        ("", "as written", "optimised"),
        right=(1, 2),
    )
    result = function(*arguments)
    same = int(np.count_nonzero(result.view(np.uint64) == eager.view(np.uint64)))
    terminal.write(f"  {same:,} of {eager.size:,} elements are the same, bit for bit")


def draw(terminal: Terminal, compiled: Compiled, picture: Path) -> Exception | None:
    """Draw the recorded graph of the textbook's program; what went wrong, if it did."""
    try:
        save(compiled.graph("traced"), picture, title="fancy_func, as recorded")
    except (DrawingError, OSError) as error:
        return error
    terminal.write("  ", (str(picture), "bold"), " shows the graph of step 2")
    return None


def _nodes(graph: Graph) -> str:
    return counted(len(graph.nodes), "node")


def _measured(function: Callable[..., Any], arguments: list[Any]) -> tuple[Any, int]:
    """The result of a call, and the most bytes it had allocated at once."""
    tracemalloc.start()
    result = function(*arguments)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return result, peak
