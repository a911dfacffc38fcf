"""A runner in a process of its own, in its framework's environment, for the tests of runners."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest
from answering import SCALE

from benchmarks import runners
from benchmarks.harness.checking import judged, request
from benchmarks.harness.processes import Process, Settings, missing
from benchmarks.workloads import WORKLOADS

PATIENCE_S = 3600.0  # a hanging process is to end; how long something takes is not asked

Answer = dict[str, Any]


class Asked:
    """A column that is asked for one workload after another.

    The test is skipped where the framework is neither here nor in an environment.

    Args:
        column: its name.
        folder: for what the process writes.
        own: a folder with runners of one's own.
    """

    def __init__(self, column: str, folder: Path, own: Path | None = None) -> None:
        runner = runners.columns(own)[column]
        reason = missing(runner)
        if reason is not None:
            pytest.skip(reason)
        self.process = Process(column, runner, Settings(1, own), folder / "process")

    def __enter__(self) -> Asked:
        loaded = self.ask("load")
        if "missing" in loaded:
            self.process.end()
            pytest.skip(loaded["missing"])
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: Any, trace: TracebackType | None
    ) -> None:
        self.process.end()

    def ask(self, do: str, **more: Any) -> Answer:
        return self.process.ask(do, PATIENCE_S, **more)

    def prepare(self, name: str, scale: float = SCALE) -> Answer:
        return self.ask("prepare", **request(WORKLOADS[name].case(scale)))

    def wrong(self, name: str) -> str:
        """What is wrong with its answer, or that there is none; nothing where all is right."""
        case = WORKLOADS[name].case(SCALE)
        answer = self.ask("prepare", **request(case))
        if "not_written" in answer:
            return f"not written: {answer['not_written']}"
        return judged(case, answer["outputs"], case.expected()).wrong

    def all_wrong(self, names: Iterable[str]) -> dict[str, str]:
        """What is wrong, by name of the workload."""
        found = {name: self.wrong(name) for name in names}
        return {name: wrong for name, wrong in found.items() if wrong}

    def shown(self, name: str) -> Answer:
        """The source of a workload, and its forms with the numbers of their lines."""
        self.prepare(name)
        found = self.ask("forms")
        for form in found["forms"]:
            form["lines"] = {int(line): numbers for line, numbers in form["lines"].items()}
        return found

    def details(self) -> Answer:
        """Of the last workload."""
        return self.ask("finish")["details"]
