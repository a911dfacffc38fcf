"""What a call and a compilation cost besides the work: guards, compile times, memory.

Compile times and memory are measured in processes of their own.
"""

from __future__ import annotations

import functools
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable

import numpy as np

import minigraph as mg

from .comparing import Row, in_turns
from .peers import Call
from .works import WIDTHS, mlp, parameters, single


def guard(*, backend: str = "auto", rounds: int = 15, sample_s: float = 0.001) -> list[Row]:
    """The public call of the network, against the loaded program with the same arrays."""
    rng = np.random.default_rng(0)
    bound = parameters(rng)
    x = single(rng, 1, WIDTHS[0])
    function = mg.jit(mlp(np, *bound), backend=backend)
    compiled = function.lower(x)
    arrays = {"x": x, **dict(zip(("w1", "b1", "w2", "b2", "w3", "b3"), bound, strict=True))}
    flat = [arrays[value.name] for value in compiled.graph().inputs]
    calls = {
        "public": Call(functools.partial(function, x)),
        "direct": Call(functools.partial(compiled.run, *flat)),
    }
    found = in_turns(calls, rounds, rest_s=0.0, sample_s=sample_s)
    title = "a guarded call of the MLP, batch 1"
    ours, theirs = found["public"], found["direct"]
    return [Row(title, "its program called directly", theirs, ours, 1.3e-6, "difference")]


# ---- compile times -----------------------------------------------------------------------------

_COMPILE = """
import json, sys, time

backend = sys.argv[1]
if backend in ("auto", "numba"):
    try:
        import numba
    except ImportError:
        pass
import numpy as np

rng = np.random.default_rng(0)
w1, w2, w3 = (rng.normal(size=s).astype("f4") for s in [(512, 256), (256, 128), (128, 2)])
b1, b2, b3 = (rng.normal(size=n).astype("f4") for n in (256, 128, 2))
one, many = (rng.normal(size=(batch, 512)).astype("f4") for batch in (1, 32))
start = time.perf_counter()
import minigraph as mg


@mg.jit(backend=backend)
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


def compiling(*, backend: str = "auto", rounds: int = 3) -> list[Row]:
    """From `import minigraph` (Numba is imported before) to the first result."""
    cold: list[list[float]] = []
    warm: list[list[float]] = []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as cache:
            cold.append(_child(_COMPILE, backend, cache=cache))
            warm.append(_child(_COMPILE, backend, cache=cache))
    first, again = (statistics.median(run[0] for run in runs) for runs in (cold, warm))
    second = statistics.median(run[1] for run in cold)
    return [
        Row("MLP, first call, nothing cached", "", None, first, 3.0, "value"),
        Row("MLP, first call of a second batch size", "", None, second, 0.03, "value"),
        Row("MLP, first call of a new process", "", None, again, 0.45, "value"),
    ]


# ---- memory ------------------------------------------------------------------------------------

_MEMORY = """
import gc, json, math, sys
import numpy as np
import minigraph as mg


@mg.jit(backend=sys.argv[1])
def gelu(x):
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)))


def status(key):
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(key))


for size in (1 << 17, 1 << 18, 1 << 19):  # what compiling takes is not asked
    gelu(np.ones((size,), np.float32))
x = np.ones((int(sys.argv[2]),), np.float32)
gc.collect()
before = status("VmRSS:")
with open("/proc/self/clear_refs", "w") as file:
    file.write("5")  # the peak begins anew
result = gelu(x)
print(json.dumps([x.nbytes + status("VmHWM:") - before, x.nbytes + result.nbytes]))
"""


def memory(*, backend: str = "auto", rounds: int = 3, size: int = 1 << 24) -> list[Row]:
    """Resident memory at its highest during one call, inputs and outputs among it.

    Of the first call for that size, so that what is kept for later calls counts.
    """
    title = f"peak memory of the GELU chain, {size >> 20} M"
    if not os.path.exists("/proc/self/clear_refs"):
        return [Row(title, "", None, float("nan"), unit="byte", note="only measured on Linux")]
    with tempfile.TemporaryDirectory() as cache:
        runs = [_child(_MEMORY, backend, str(size), cache=cache) for _ in range(rounds)]
    found = statistics.median(run[0] for run in runs)
    return [Row(title, "input and output", runs[0][1], found, 1.01, unit="byte")]


def _child(program: str, *arguments: str, cache: str) -> list[float]:
    """What a program prints as JSON, in a process that keeps compiled code in `cache`."""
    environment = {
        **os.environ,
        "MINIGRAPH_CACHE": cache,
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
    }
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "program.py")
        with open(path, "w") as file:
            file.write(program)
        command = [sys.executable, path, *arguments]
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        last_line = ["", *done.stderr.splitlines()][-1]
        raise RuntimeError(f"a process ended with status {done.returncode}. {last_line}".strip())
    return json.loads(done.stdout)


COSTS: dict[str, Callable[..., list[Row]]] = {
    "guard": guard,
    "compile": compiling,
    "memory": memory,
}
