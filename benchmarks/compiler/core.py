"""What the compiler itself costs: a call, a compilation, a long chain, the import.

Each row has a bound.  What is compared is measured alternately, so that a machine that slows down
slows both, and the median is taken.  The time of the work itself is not measured here, only what
comes on top of it.  `costs.py` has more of it, and the command.
"""

from __future__ import annotations

import gc
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import minigraph as mg
from minigraph.measuring import duration


@dataclass(frozen=True)
class Row:
    """One measurement.

    Attributes:
        what: in words.
        base, found: what it is compared with, and minigraph (0: with nothing).
        compared: "difference", "value" or "ratio": which of the three figures the bound is for.
        bound: the most it may be.
        unit: "s" or "byte".
    """

    what: str
    base: float
    found: float
    compared: str
    bound: float
    unit: str = "s"

    @property
    def figure(self) -> float:
        if self.compared == "value":
            return self.found
        return self.found - self.base if self.compared == "difference" else self.ratio

    @property
    def ratio(self) -> float:
        return self.found / self.base if self.base else float("nan")

    @property
    def holds(self) -> bool:
        return self.figure <= self.bound

    def cells(self) -> tuple[str, ...]:
        def text(amount: float) -> str:
            return duration(amount) if self.unit == "s" else f"{amount / 1e6:.1f} MB"

        def compared(figure: float) -> str:
            return f"{figure:.2f}" if self.compared == "ratio" else text(figure)

        base, ratio = (text(self.base), f"{self.ratio:.2f}") if self.base else ("-", "-")
        shown = (self.what, base, text(self.found), ratio, self.compared)
        return (*shown, compared(self.figure), compared(self.bound), "yes" if self.holds else "NO")


HEAD = ("what", "base", "minigraph", "ratio", "bounded", "found", "at most", "holds")


def alternate(
    base: Callable[[], float], found: Callable[[], float], rounds: int
) -> tuple[float, float]:
    """The medians of two measurements (each returns seconds), taken in turns."""
    pairs = [(base(), found()) for _ in range(rounds)]
    first, second = zip(*pairs, strict=True)
    return statistics.median(first), statistics.median(second)


# ---- a call ------------------------------------------------------------------------------------


def three_ops(a: Any, b: Any) -> Any:
    c = a + b
    d = c * a
    return d - b


def per_call(function: Callable[..., Any], args: Sequence[Any], calls: int) -> float:
    """Seconds of one call, from a loop of `calls`."""
    a, b = args
    steps = range(calls)
    start = time.perf_counter()
    for _ in steps:
        function(a, b)
    return (time.perf_counter() - start) / calls


def call_overhead(*, calls: int = 20_000, rounds: int = 15, size: int = 8) -> Row:
    rng = np.random.default_rng(0)
    args = rng.normal(size=size), rng.normal(size=size)
    compiled = mg.jit(three_ops)
    assert np.array_equal(compiled(*args), three_ops(*args))
    base_s, found_s = alternate(
        lambda: per_call(three_ops, args, calls), lambda: per_call(compiled, args, calls), rounds
    )
    what = f"one call of three ops on {size} float64"
    return Row(what, base_s, found_s, "difference", 3e-6)


# ---- a compilation -----------------------------------------------------------------------------


def long_function(nodes: int) -> Callable[..., Any]:
    """A function that records this many nodes, each of which the result depends on."""
    assert nodes % 4 == 0

    def steps(x: Any, y: Any) -> Any:
        for _ in range(nodes // 4):
            x = x + y
            y = y * x
            y = np.tanh(y)
            x = x - y
        return x

    return steps


def compile_once(nodes: int) -> float:
    """Seconds from the function to its compiled program (trace, passes, plan, code, guard).

    Of processor time: one thread does it all, and other programs disturb that less.
    """
    function = mg.jit(long_function(nodes), backend="python")
    x, y = np.ones(4), np.full(4, 0.5)
    gc.collect()
    start = time.process_time()
    compiled = function.lower(x, y)
    wall_s = time.process_time() - start
    assert len(compiled.graph().nodes) == nodes, len(compiled.graph().nodes)
    return wall_s


def compilation(*, nodes: int = 1000, rounds: int = 9) -> Row:
    compile_once(nodes)  # NumPy's answers about dtypes are remembered from here on
    found_s = statistics.median(compile_once(nodes) for _ in range(rounds))
    return Row(f"trace, passes and code of {nodes:,} nodes", 0.0, found_s, "value", 0.15)


def long_chain(*, small: int = 10_000, factor: int = 10, rounds: int = 3) -> Row:
    base_s, found_s = alternate(
        lambda: compile_once(small), lambda: compile_once(small * factor), rounds
    )
    what = f"{small * factor:,} nodes in a chain against {small:,}"
    return Row(what, base_s, found_s, "ratio", 1.5 * factor)


# ---- the text form -----------------------------------------------------------------------------


def parse_once(nodes: int) -> float:
    """Seconds of processor time from a graph to its text, and back."""
    graph = mg.trace(long_function(nodes), np.ones(4), np.full(4, 0.5))
    gc.collect()
    start = time.process_time()
    again = mg.parse(str(graph))
    wall_s = time.process_time() - start
    assert len(again.nodes) == nodes
    return wall_s


def text_form(*, small: int = 10_000, factor: int = 10, rounds: int = 3) -> Row:
    base_s, found_s = alternate(
        lambda: parse_once(small), lambda: parse_once(small * factor), rounds
    )
    what = f"printing and parsing {small * factor:,} nodes against {small:,}"
    return Row(what, base_s, found_s, "ratio", 2.0 * factor)


# ---- the import --------------------------------------------------------------------------------


def import_time(module: str, cache: str) -> float:
    """Seconds that `import module` takes in a fresh process, with compiled files in `cache`."""
    source = (
        "import sys, time; start = time.perf_counter(); "
        f"import {module}; print(time.perf_counter() - start)"
    )
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": cache}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    done = subprocess.run(
        [sys.executable, "-c", source],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return float(done.stdout)


def importing(*, rounds: int = 15) -> Row:
    with tempfile.TemporaryDirectory() as cache:
        import_time("minigraph", cache)  # every file is compiled and in memory from here on
        base_s, found_s = alternate(
            lambda: import_time("numpy", cache), lambda: import_time("minigraph", cache), rounds
        )
    return Row("import minigraph against import numpy", base_s, found_s, "difference", 0.15)
