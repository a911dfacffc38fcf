"""`python -m benchmarks run`: what is asked for is chosen, measured, saved and printed."""

from __future__ import annotations

import datetime
import signal
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console

from .. import runners
from ..reporting import tables
from ..runners.base import Runner
from ..workloads import WORKLOADS, Workload
from . import machine, processes, roofline
from .contender import FULL, QUICK, Effort
from .display import Display
from .results import Cell, Column, Results
from .schedule import Schedule

OUT = processes.ROOT / ".benchmarks" / "results.json"
INTERRUPTED = 130  # the exit status, as shells have it


@dataclass(frozen=True)
class Request:
    """What the command line asks for.

    Attributes:
        quick: fewer workloads, fewer rounds.
        only, runner, without: names, or beginnings of names.
        ablation: None: in full runs.
        own: a folder with runners.
    """

    quick: bool = False
    only: Sequence[str] = ()
    runner: Sequence[str] = ()
    without: Sequence[str] = ()
    threads: int | None = None
    budget_s: float | None = None
    patience_s: float | None = None
    scale: float = 1.0
    ablation: bool | None = None
    own: Path | None = None
    out: Path = OUT

    @property
    def kind(self) -> str:
        chosen = self.only or self.runner or self.without or self.scale != 1 or self.own
        chosen = chosen or self.threads or self.budget_s is not None or self.patience_s
        return "custom" if chosen else "quick" if self.quick else "full"

    @property
    def effort(self) -> Effort:
        effort = QUICK if self.quick else FULL
        asked = {"budget_s": self.budget_s, "patience_s": self.patience_s}
        return replace(effort, **{name: each for name, each in asked.items() if each is not None})

    def workloads(self) -> dict[str, Workload]:
        """In the order of `WORKLOADS`.

        Raises:
            LookupError: there is no such name.
        """
        asked = _all(self.only, WORKLOADS)
        return {
            name: each
            for name, each in WORKLOADS.items()
            if (name in asked if asked else each.quick or not self.quick)
        }

    def columns(self) -> dict[str, type[Runner]]:
        """Those that are compared; `LookupError` as above."""
        known = runners.columns(self.own)
        asked, without = _all(self.runner, known), _all(self.without, known)
        found = {
            name: each
            for name, each in known.items()
            if (not asked or name in asked) and name not in without
        }
        if not found:
            raise LookupError("no runner is left")
        return found

    def ablations(self) -> dict[str, type[Runner]]:
        asked = self.kind == "full" if self.ablation is None else self.ablation
        return runners.ablations(self.own) if asked else {}


def _all(names: Iterable[str], known: Mapping[str, object]) -> set[str]:
    return {found for name in names for found in runners.named(name, list(known))}


def run(request: Request, console: Console) -> int:
    """Measure, save, and print.

    Returns:
        The exit status: 1 where nothing was measured, `INTERRUPTED` after Ctrl-C.
    """
    columns, ablations, workloads = request.columns(), request.ablations(), request.workloads()
    results = _empty(request, columns, ablations)
    results.cells = [
        _cell(workload, name, runner)
        for workload in workloads.values()
        for name, runner in (*columns.items(), *(ablations if workload.ablation else {}).items())
    ]
    _announce(results, request, console)
    start = time.monotonic()
    if not request.quick:
        results.roofs = _roofs(results.threads, console)
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C
    try:
        with tempfile.TemporaryDirectory(prefix="benchmarks-") as folder, Display(console) as shown:
            settings = processes.Settings(results.threads, request.own, Path(folder))
            parts = (settings, request.effort, Path(folder), request.out, shown)
            schedule = Schedule(results, workloads, {**columns, **ablations}, *parts)
            schedule.run()
    finally:
        signal.signal(signal.SIGTERM, before)
    results.finished = _now()
    results.load += machine.load()
    if results.commit is not None:
        commit, dirty = machine.commit()
        results.dirty = bool(results.dirty or dirty or commit != results.commit)
    is_saved = results.has_any or not request.out.exists()
    if is_saved:
        results.save(request.out)
    console.print(tables.terminal(results))
    if results.interrupted:
        console.print("Interrupted: what was measured until then is kept.")
    console.print(_spent(time.monotonic() - start, schedule.spent), soft_wrap=True)
    told = "All of it is in" if is_saved else "Nothing was measured, and nothing changed in"
    console.print(f"{told} {request.out}", soft_wrap=True, markup=False)
    if results.interrupted:
        return INTERRUPTED
    return 0 if results.has_any else 1


def _cell(workload: Workload, name: str, runner: type[Runner]) -> Cell:
    """For a pair that nobody wrote, no process need be started."""
    refusal = runner.refuses(name, workload)
    return Cell(workload.name, name, *(("not written", refusal) if refusal else ()))


def _spent(wall_s: float, phases: Mapping[str, float]) -> str:
    """What took how long."""
    ordered = sorted(phases.items(), key=lambda item: -item[1])
    return f"It took {wall_s:.0f} s: " + ", ".join(f"{name} {s:.0f} s" for name, s in ordered)


def _empty(
    request: Request, columns: Mapping[str, type[Runner]], ablations: Mapping[str, type[Runner]]
) -> Results:
    threads, effort = request.threads or machine.cores(), request.effort
    method = {
        **asdict(effort),
        "others_stopped": processes.CAN_STOP,
        "environment": processes.Settings(threads).variables(),
    }
    results = Results(request.kind, _now(), machine.facts(), threads, method, request.scale)
    results.commit, results.dirty = machine.commit()
    results.load = machine.load()
    for name, runner in (*columns.items(), *ablations.items()):
        results.runners[name] = Column(
            runner.framework,
            runner.variants.get(name) or runner.ablations[name],
            baseline=runner.baseline.get(name),
            missing=processes.missing(runner),
            ablation=name in ablations,
        )
    return results


def _roofs(threads: int, console: Console) -> dict[str, Any] | None:
    """What the machine gives at best; None where that cannot be measured."""
    try:
        with console.status("measuring the machine"):
            return roofline.roofs(threads)
    except RuntimeError as error:
        console.print(f"{error}", markup=False)
        return None


def _announce(results: Results, request: Request, console: Console) -> None:
    """Under what conditions is measured, and what is not there."""
    found = results.machine
    console.print(f"{results.threads} threads for each; {found['cores']} cores, {found['system']}")
    busy = results.load and results.load[0] > found["cores"] / 4
    if busy:
        console.print(f"Other programs are running (load {results.load[0]:.1f}): expect noise")
    missing: dict[str, list[str]] = {}
    for name, column in results.runners.items():
        if column.missing is not None:
            missing.setdefault(column.missing, []).append(name)
    for why, names in missing.items():
        console.print(f"Left out: {', '.join(names)} ({why})", soft_wrap=True)
    console.print(f"At most {request.effort.budget_s:.0f} s; Ctrl-C keeps what was measured\n")


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
