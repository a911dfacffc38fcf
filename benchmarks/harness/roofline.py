"""The roofs of this machine, measured: what memory, caches, arithmetic and BLAS give at best.

It runs as a program of its own, so that the threads it uses are those that it is told to:

    python -m benchmarks.harness.roofline 2

prints a JSON object.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from . import machine, pinned

Array = np.ndarray[Any, Any]
Run = Callable[[], Any]

DRAM_SIZE = 1 << 24  # float64 in each of three arrays: far more than caches hold
L2_SIZE = 1 << 14  # float64 in each of three arrays of a thread: 384 KB
L2_TIMES = 2000
VALUES = 1 << 12  # on which the arithmetic is done: they stay in the first cache
STEPS = 8  # multiply-adds on a value; so few that the next values need not wait for them
TIMES = 16_000
SIDE = 1536  # of the matrices
SAMPLES = 15


def roofs(threads: int) -> dict[str, Any]:
    """What this machine reaches with so many threads.

    Returns:
        `threads`; bytes a second of `a = b + s * c` in memory (`dram_bytes_per_s`), and in the
        second cache (`l2_bytes_per_s`, with arrays of `l2_bytes` together), counting what is read
        and written once each; operations a second of multiply-adds (`float32_per_s`,
        `float64_per_s`), and of BLAS in a product of float32 matrices (`matmul_per_s`).

    Raises:
        RuntimeError: they cannot be measured; the text says why.
    """
    names = ("NUMBA", "OMP", "OPENBLAS", "MKL")
    limits = {f"{name}_NUM_THREADS": str(threads) for name in names}
    cores = machine.processors()[:threads] if hasattr(os, "sched_setaffinity") else []
    command = [*pinned.command(sys.executable, cores, __name__), str(threads)]
    done = subprocess.run(
        command, env=os.environ | limits, cwd=machine.ROOT, capture_output=True, text=True
    )
    if done.returncode:
        last = ["", *done.stderr.splitlines()][-1]
        raise RuntimeError(f"the roofs could not be measured: {last}")
    return json.loads(done.stdout)


def measure(threads: int) -> dict[str, Any]:
    """The roofs, in this process."""
    import numba

    numba.set_num_threads(threads)
    triad, triads, multiply_adds = _kernels()
    a, b, c = (np.ones(DRAM_SIZE) for _ in range(3))
    small = [np.ones((threads, L2_SIZE)) for _ in range(3)]
    found: dict[str, Any] = {"threads": threads, "l2_bytes": 3 * small[0].nbytes}
    found["dram_bytes_per_s"] = 3 * a.nbytes / _median(lambda: triad(a, b, c, 0.5))
    moved = 3 * small[0].nbytes * L2_TIMES
    found["l2_bytes_per_s"] = moved / _median(lambda: triads(*small, 0.5, L2_TIMES))
    for dtype in (np.float32, np.float64):
        values = np.ones((threads, VALUES), dtype)
        found[f"{values.dtype}_per_s"] = (2 * STEPS * TIMES * values.size) / _median(
            lambda values=values: multiply_adds(values, values.dtype.type(0.5), TIMES)
        )
    left, right = (np.ones((SIDE, SIDE), np.float32) for _ in range(2))
    product = np.empty_like(left)
    operations = 2 * SIDE**3
    found["matmul_per_s"] = operations / _median(lambda: np.matmul(left, right, out=product))
    return found


def _median(run: Run) -> float:
    run()  # compiles
    found = []
    for _ in range(SAMPLES):
        start = time.perf_counter()
        run()
        found.append(time.perf_counter() - start)
    return statistics.median(found)


def _kernels() -> tuple[Callable[..., None], ...]:
    import numba

    @numba.njit(parallel=True, fastmath={"contract"})
    def triad(a: Array, b: Array, c: Array, s: float) -> None:
        for i in numba.prange(a.size):
            a[i] = b[i] + s * c[i]

    @numba.njit(parallel=True, fastmath={"contract"})
    def triads(a: Array, b: Array, c: Array, s: float, times: int) -> None:
        for row in numba.prange(len(a)):
            mine, left, right = a[row], b[row], c[row]
            for turn in range(times):
                factor = s + turn
                for i in range(mine.size):
                    mine[i] = left[i] + factor * right[i]

    @numba.njit(parallel=True, fastmath={"contract"})
    def multiply_adds(values: Array, s: float, times: int) -> None:
        for row in numba.prange(len(values)):
            mine = values[row]
            for _ in range(times):
                for i in range(mine.size):
                    value = mine[i]
                    for _ in range(STEPS):
                        value = value * s + s
                    mine[i] = value

    return triad, triads, multiply_adds


if __name__ == "__main__":
    print(json.dumps(measure(int(sys.argv[1]))))
