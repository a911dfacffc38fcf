"""Minigraph against NumPy, PyTorch, ONNX Runtime and JAX.

    python -m benchmarks.against

Each work is written once, as a formula, and runs in every framework that is installed.  Results are
checked against NumPy's first.  Then all have their turns in many short rounds, so that a machine
that slows down slows all of them, and the medians are compared with the bars that minigraph is held
to.  The command exits with 1 where one is missed.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import os
import sys
from collections.abc import Callable, Sequence
from importlib import metadata

from minigraph import backends

from ..core import machine, table
from .comparing import HEAD, Row, compare
from .costs import COSTS
from .loops import loops
from .peers import PEERS, threads
from .recurrent import recurrent
from .training import TRAINING
from .works import WORKS

LOOPS = {"loops": loops, "recurrent": recurrent}
PACKAGES = ("torch", "onnxruntime", "jax", "numba", "llvmlite")


def others() -> dict[str, Callable[..., list[Row]]]:
    """What is no single formula, by name."""
    return {**COSTS, **TRAINING, **LOOPS}


def versions() -> str:
    found: list[str] = []
    for package in PACKAGES:
        try:
            found.append(f"{package} {metadata.version(package)}")
        except metadata.PackageNotFoundError:
            found.append(f"{package} is not installed")
    return ", ".join(found)


def conditions(backend: str) -> list[str]:
    """Where, with what, and by what it is disturbed."""
    lines = [machine(), versions(), threads(), f"backend: {backends.resolve(backend)}"]
    lines.append(f"load when it began: {os.getloadavg()[0]:.1f}")
    if "OPENBLAS_CORETYPE" in os.environ:
        lines.append(
            "OPENBLAS_CORETYPE is set: NumPy's matrix products may be slower than they could be"
        )
    return lines


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    names = [*(work.name for work in WORKS), *others()]
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.against",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--list", action="store_true", help="print the names, and stop")
    parser.add_argument("--only", metavar="NAME", action="append", choices=names, help="repeatable")
    parser.add_argument(
        "--without",
        metavar="PEER",
        action="append",
        choices=[*PEERS],
        default=[],
        help="repeatable",
    )
    parser.add_argument("--backend", default="auto", help="of minigraph (default: auto)")
    parser.add_argument("--rounds", type=int, default=15, metavar="N")
    parser.add_argument("--json", metavar="FILE", help="write the rows there, too")
    return parser.parse_args(argv)


def _measure(name: str, options: argparse.Namespace) -> list[Row]:
    """The rows of a work or cost; where it fails, one that says so."""
    try:
        if name in others():
            return others()[name](backend=options.backend)
        work = next(work for work in WORKS if work.name == name)
        return compare(
            work, backend=options.backend, rounds=options.rounds, without=options.without
        )
    except Exception as error:
        return [Row(name, "", None, math.inf, 0.0, "value", note=f"{error}")]


def main(argv: Sequence[str] | None = None) -> int:
    options = _arguments(argv)
    if options.list:
        for work in WORKS:
            print(f"{work.name:<16}{work.title}")
        for name in others():
            print(name)
        return 0
    rows: list[Row] = []
    said = conditions(options.backend)
    print(*said, sep="\n", flush=True)
    for name in options.only or [*(work.name for work in WORKS), *others()]:
        print(f"… {name}", file=sys.stderr, flush=True)
        rows += _measure(name, options)
    said.append(f"load when it was done: {os.getloadavg()[0]:.1f}")
    print(said[-1], "", table(HEAD, [row.cells() for row in rows]), sep="\n")
    if options.json:
        with open(options.json, "w") as file:
            known = [{**dataclasses.asdict(row), "reached": row.reached} for row in rows]
            json.dump({"conditions": said, "rows": known}, file, indent=1)
    return 1 if any(row.reached is False for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
