"""What is seen of a run while it is going on."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Sequence
from types import TracebackType

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from ..workloads import Workload
from .results import Cell

TROUBLE = ("wrong", "crashed", "timed out")


class Listened(Console):
    """A console whose reader may go away (`… | head`): what is measured is saved all the same."""

    def on_broken_pipe(self) -> None:
        self.quiet = True
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class Display:
    """A bar of the workloads with what is being done; above it, a line for each that is done."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self._progress = Progress(
            BarColumn(20),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.description}", markup=False),
            console=console,
            transient=True,
            refresh_per_second=1,  # it runs on the cores that are measured
        )
        self._task = self._progress.add_task("")
        self._workload = ""

    def __enter__(self) -> Display:
        self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._progress.stop()

    def begins(self, index: int, total: int, workload: Workload) -> None:
        self._workload = workload.name
        self._progress.update(self._task, completed=index, total=total)
        self.phase("computing the reference", "")

    def phase(self, what: str, runner: str) -> None:
        said = [each for each in (self._workload, what, runner) if each]
        self._progress.update(self._task, description=", ".join(said)[:70])

    def ends(self, cells: Sequence[Cell]) -> None:
        counts = Counter(cell.status for cell in cells)
        said = ", ".join(f"{count} {status}" for status, count in counts.items())
        self.console.print(f"[bold]{self._workload}[/]: {said}")
        for cell in cells:
            if cell.status in TROUBLE:
                reason = escape(cell.message.replace("\n", "\n    "))
                self.console.print(f"  {cell.runner} {cell.status}: {reason}")
