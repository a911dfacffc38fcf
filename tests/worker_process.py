"""A column whose framework lives in an environment of its own, asked in a process of its own."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import pytest

from benchmarks import environments, runners
from benchmarks.harness import checking
from benchmarks.harness.processes import Process, Settings
from benchmarks.workloads import WORKLOADS

SCALE = 0.02
LIMIT_S = 600.0  # for one answer; other programs may be running


def needing(framework: str) -> pytest.MarkDecorator:
    """Skips where a framework is in no environment, and not here either."""
    there = environments.interpreter(framework) or importlib.util.find_spec(framework)
    reason = f"no {framework}: python -m benchmarks setup --with {framework}"
    return pytest.mark.skipif(not there, reason=reason)


class Asked:
    """A column that is asked for one workload after another."""

    def __init__(self, column: str, folder: Path) -> None:
        self.process = Process(column, runners.columns()[column], Settings(1), folder)

    def __enter__(self) -> Asked:
        self.process.ask("load", LIMIT_S)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: Any, trace: TracebackType | None
    ) -> None:
        self.process.end()

    def wrong(self, name: str) -> str:
        """What is wrong with its answer, or that there is none; nothing where all is right."""
        case = WORKLOADS[name].case(SCALE)
        answer = self.process.ask(
            "prepare", LIMIT_S, workload=name, scale=SCALE, digest=case.digest
        )
        if "not_written" in answer:
            return f"not written: {answer['not_written']}"
        with np.load(answer["outputs"]) as outputs:
            found = [outputs[each] for each in outputs.files]
        return checking.check(case, found, case.expected()).wrong

    def all_wrong(self, names: Iterable[str]) -> dict[str, str]:
        """What is wrong, by name of the workload."""
        found = {name: self.wrong(name) for name in names}
        return {name: wrong for name, wrong in found.items() if wrong}

    def shown(self) -> dict[str, Any]:
        """The source and the forms of the last workload."""
        return self.process.ask("forms", LIMIT_S)
