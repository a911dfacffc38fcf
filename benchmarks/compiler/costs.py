"""What a call and a compilation cost besides the work, and the memory that compiled code takes.

    python -m benchmarks compiler

It prints one table with that of `core.py`, and exits with 1 where a bound is missed.  Compile times
and peak memory are measured in processes of their own.
"""

from __future__ import annotations

import datetime
import functools
import json
import math
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from rich.console import Console

import minigraph as mg
from minigraph import nn, viz
from minigraph.measuring import calls_for, seconds_of

from ..formulas import formula
from ..harness.machine import ROOT
from ..reporting.grids import Entry, Grid, as_markdown
from ..workloads import WORKLOADS, single
from . import core
from .core import Row


def guard(*, rounds: int = 15, sample_s: float = 0.005) -> Row:
    """The public call of the network, against the loaded program with the same arrays."""
    case = WORKLOADS["mlp-1"].case()
    (x,) = case.arguments
    function = mg.jit(formula(case, np))
    compiled = function.lower(x)
    arrays = {"x": x, **case.parameters}
    flat = [arrays[value.name] for value in compiled.graph().inputs]
    public, direct = functools.partial(function, x), functools.partial(compiled.run, *flat)
    public()
    calls = calls_for(seconds_of(direct, 10), sample_s)
    base_s, found_s = core.alternate(
        lambda: seconds_of(direct, calls), lambda: seconds_of(public, calls), rounds
    )
    what = "a guarded call of the MLP, batch 1, against its program"
    return Row(what, base_s, found_s, "difference", 1.3e-6)


# ---- compile times -----------------------------------------------------------------------------

_COMPILE = """
import contextlib, json, time

with contextlib.suppress(ImportError):
    import numba
import numpy as np

rng = np.random.default_rng(0)
w1, w2, w3 = (rng.normal(size=s).astype("f4") for s in [(512, 256), (256, 128), (128, 2)])
b1, b2, b3 = (rng.normal(size=n).astype("f4") for n in (256, 128, 2))
one, many = (rng.normal(size=(batch, 512)).astype("f4") for batch in (1, 32))
start = time.perf_counter()
import minigraph as mg


@mg.jit
def mlp(x):
    h = np.maximum(x @ w1 + b1, 0)
    h = np.maximum(h @ w2 + b2, 0)
    return h @ w3 + b3


mlp(one)
first = time.perf_counter()
mlp(many)
second = time.perf_counter()
print(json.dumps([first - start, second - first]))
"""


def first_calls(*, rounds: int = 3) -> Iterator[Row]:
    """From `import minigraph` (Numba is imported before) to the first result."""
    cold: list[list[float]] = []
    warm: list[list[float]] = []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as cache:
            cold.append(_child(_COMPILE, cache=cache))
            warm.append(_child(_COMPILE, cache=cache))
    first, again = (statistics.median(run[0] for run in runs) for runs in (cold, warm))
    second = statistics.median(run[1] for run in cold)
    yield Row("first call of the MLP, nothing cached", 0.0, first, "value", 3.0)
    yield Row("first call of the MLP with another batch size", 0.0, second, "value", 0.03)
    yield Row("first call of the MLP in a new process", 0.0, again, "value", 0.45)


# ---- memory ------------------------------------------------------------------------------------

_MEMORY = """
import json, math, sys
import numpy as np
import minigraph as mg
from benchmarks.harness.memory import Memory


@mg.jit
def gelu(x):
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)))


for size in (1 << 17, 1 << 18, 1 << 19):  # what compiling takes is not asked
    gelu(np.ones((size,), np.float32))
x = np.ones((int(sys.argv[1]),), np.float32)
memory = Memory()
with memory.watched():
    result = gelu(x)
beyond = memory.known().get("beyond_bytes", math.nan)
print(json.dumps([x.nbytes + beyond, x.nbytes + result.nbytes]))
"""


def peak_memory(*, rounds: int = 3, size: int = 1 << 24) -> Row:
    """Resident memory at its highest during one call, inputs and outputs among it.

    Of the first call for that size, so that what is kept for later calls counts.
    """
    with tempfile.TemporaryDirectory() as cache:
        runs = [_child(_MEMORY, str(size), cache=cache) for _ in range(rounds)]
    found = statistics.median(run[0] for run in runs)
    what = f"peak memory of GELU by tanh, {size:,} float32, against input and output"
    return Row(what, runs[0][1], found, "ratio", 1.01, unit="byte")


def activations(*, layers: int = 10, width: int = 512) -> Iterator[Row]:
    """Memory for the activations of an MLP of ten layers at inference, batch 256.

    Measured with the Python backend, whose every array `tracemalloc` sees; the plan is one for all.
    """
    net = nn.HybridSequential()
    for _ in range(layers):
        net.add(nn.Dense(width, activation="relu"))
    net.initialize()
    x = mg.array(single(np.random.default_rng(0), 256, width))
    net(x)
    imperative = _peak_bytes(functools.partial(net, x))
    net.hybridize(backend="python")
    hybridized = _peak_bytes(functools.partial(net, x))
    planned = net.memory_report().planned
    what = f"activations of {layers} hybridized layers, against imperative"
    yield Row(f"{what}, measured", imperative, hybridized, "ratio", 0.6, unit="byte")
    yield Row(f"{what}, planned", imperative, planned, "ratio", 0.6, unit="byte")


def _peak_bytes(call: Callable[[], Any]) -> int:
    """The most memory that is allocated at once during a call."""
    kept = [call()]
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    kept.append(call())
    after = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return after - before


def _child(program: str, *arguments: str, cache: str) -> list[float]:
    """What a program prints as JSON, in a process that keeps compiled code in `cache`."""
    path = os.pathsep.join(filter(None, [str(ROOT), *sys.path]))
    environment = {**os.environ, "MINIGRAPH_CACHE": cache, "PYTHONPATH": path}
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "program.py")
        with open(file, "w") as text:
            text.write(program)
        command = [sys.executable, file, *arguments]
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        last_line = ["", *done.stderr.splitlines()][-1]
        raise RuntimeError(f"a process ended with status {done.returncode}. {last_line}".strip())
    return json.loads(done.stdout)


# ---- drawings ----------------------------------------------------------------------------------


def drawing(*, layers: int = 12, rounds: int = 3) -> Row:
    """A Transformer's encoder, folded by layers."""
    net = nn.HybridSequential()
    net.add(*(nn.TransformerEncoderBlock(32, 4) for _ in range(layers)))
    net.initialize()
    x = np.ones((1, 8, 32), np.float32)
    net(x)
    graph = mg.trace(net, x)
    viz.draw(mg.trace(core.three_ops, x, x))  # the first drawing may have to compile its layout
    found_s = statistics.median(seconds_of(lambda: viz.draw(graph), 1) for _ in range(rounds))
    return Row(f"drawing {layers} layers of an encoder", 0.0, found_s, "value", 1.0)


def large_drawing(*, nodes: int = 10_000, rounds: int = 3) -> Row:
    graph = mg.trace(core.long_function(nodes), np.ones(4), np.ones(4))
    found_s = statistics.median(seconds_of(lambda: viz.draw(graph), 1) for _ in range(rounds))
    return Row(f"drawing {nodes:,} nodes", 0.0, found_s, "value", 2.0)


# ---- the report --------------------------------------------------------------------------------


def rows() -> Iterator[Row]:
    yield core.call_overhead()
    yield guard()
    yield core.compilation()
    yield core.long_chain()
    yield core.text_form()
    yield core.importing()
    yield from first_calls()
    if not math.isnan((memory := peak_memory()).found):  # a system that does not tell
        yield memory
    yield from activations()
    yield drawing()
    yield large_drawing()


def conditions() -> str:
    """When and on what, without naming it."""
    return (
        f"{datetime.date.today()}, {os.cpu_count()} cores, {platform.system()}, "
        f"Python {platform.python_version()}, NumPy {np.__version__}, minigraph {mg.__version__}"
    )


def table(found: list[Row]) -> str:
    """In Markdown, as it stands in the README."""
    lines = [(what, list(map(Entry, rest))) for what, *rest in (row.cells() for row in found)]
    return as_markdown(Grid(conditions(), core.HEAD, lines))


def main() -> int:
    found: list[Row] = []
    with Console(stderr=True).status("measuring") as status:
        for row in rows():
            status.update(f"measured: {row.what}")
            found.append(row)
    print(table(found))
    return 0 if all(row.holds for row in found) else 1
