"""Run a module on some cores only: what it imports makes its threads there, too.

    python -m benchmarks.harness.pinned 0,1 MODULE ARGUMENTS

NumPy's BLAS makes its threads when NumPy is imported, and a thread that there is already does not
follow its process to other cores.
"""

from __future__ import annotations

import os
import runpy
import sys
from collections.abc import Sequence


def command(python: str, cores: Sequence[int], module: str) -> list[str]:
    """What runs the module; on any core, where none is named."""
    if not cores:
        return [python, "-m", module]
    return [python, "-m", __name__, ",".join(map(str, cores)), module]


if __name__ == "__main__":
    os.sched_setaffinity(0, set(map(int, sys.argv[1].split(","))))
    del sys.argv[:2]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
