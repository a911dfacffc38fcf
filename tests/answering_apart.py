"""A runner's answers from a process of its own, in its framework's environment; for its tests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from answering import SCALE, case_of

from benchmarks.harness.checking import Verdict, check
from benchmarks.harness.processes import Process, Settings, missing
from benchmarks.runners.base import Runner

PATIENCE_S = 3600.0  # a hanging process is to end; how long something takes is not asked


@contextmanager
def process(column: str, runner: type[Runner], folder: Path) -> Iterator[Process]:
    """Skips the test where the framework is neither here nor in an environment."""
    reason = missing(runner)
    if reason is not None:
        pytest.skip(reason)
    found = Process(column, runner, Settings(1), folder)
    try:
        loaded = found.ask("load", PATIENCE_S)
        if "missing" in loaded:
            pytest.skip(loaded["missing"])
        yield found
    finally:
        found.end()


def prepare(found: Process, name: str) -> dict[str, Any]:
    digest = case_of(name).digest
    return found.ask("prepare", PATIENCE_S, workload=name, scale=SCALE, digest=digest)


def answer(found: Process, name: str) -> Verdict:
    """What is said of the outputs."""
    case = case_of(name)
    with np.load(prepare(found, name)["outputs"]) as outputs:
        return check(case, list(outputs.values()), case.expected())
