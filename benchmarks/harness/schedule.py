"""Who is measured when: all runners of a workload side by side, in rounds, within a budget.

A workload goes through these phases:

1. Each runner gets a process; they import their frameworks, as many at a time as there are cores.
   (In a quick run processes are kept for the next workload, and this is done once.)
2. One after another builds the workload and calls it for the first time, those that do not compile
   first.  What comes out is held against the reference; who is wrong is out.  Then it is called
   until its speed is steady.
3. In each of the rounds all have a turn, in an order that changes, and all others are stopped
   meanwhile.  So a machine that slows down slows all of them.

A runner that crashes, hangs or is wrong loses its cell, and nobody else's.  What there is no time
for is "not reached".
"""

from __future__ import annotations

import random
import shutil
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from minigraph.measuring import calls_for

from ..runners.base import Runner
from ..workloads import Case, Workload
from . import machine
from .checking import check
from .display import Display
from .processes import CAN_STOP, Crashed, Failed, Process, Settings, TimedOut
from .results import Cell, Results, Row, Warming

GRACE_S = 5.0  # beyond the end of a workload's time, for a turn that has begun
REST_S = 0.05  # before a turn where the others cannot be stopped: their threads stop by themselves
LONG_S = 0.1  # a call that takes longer is not disturbed by cold caches
NO_TIME = "no time left"
LOADED, READY = 0.45, 0.75  # of a workload's time has gone by, at most; the rest is for the rounds


@dataclass(frozen=True)
class Effort:
    """How much is measured, and how long it may take.

    Attributes:
        budget_s: of all.
        rounds: in which a runner has a turn; samples: in a turn, at most.
        sample_s: what a sample takes, by repeating short calls.
        turns_s: of all turns of a runner; slow ones have fewer, but `FEWEST`.
        warm_s: of its warm-up, at most.
        patience_s: for an answer, before a process is ended.
        share: how many times its share of the time that is left a workload may take.
        fresh: whether each workload gets new processes, in which nothing is compiled yet.
    """

    budget_s: float = 1700.0
    rounds: int = 15
    samples: int = 3
    sample_s: float = 0.002
    turns_s: float = 1.0
    warm_s: float = 0.4
    patience_s: float = 120.0
    share: float = 3.0
    fresh: bool = True


FULL = Effort()
QUICK = Effort(
    budget_s=110.0, rounds=9, turns_s=0.5, warm_s=0.2, patience_s=30.0, share=1.6, fresh=False
)
FEWEST = 3  # turns


@dataclass
class Contender:
    """A runner that takes part in a workload."""

    cell: Cell
    process: Process
    patience_s: float
    out: bool = False
    turns: int = 0
    samples: int = 0
    call_s: float = 0.0

    def receive(self, until: float) -> dict[str, Any] | None:
        """The answer to what was asked for; None where there is none, and the cell says why."""
        left_s = until - time.monotonic()
        try:
            return self.process.receive(min(self.patience_s, left_s))
        except TimedOut as reason:
            if left_s >= self.patience_s:
                self.leave("timed out", str(reason))
            else:
                self.leave("not reached", f"{NO_TIME}: {reason}")
        except (Crashed, Failed) as reason:
            self.leave("crashed", str(reason))
        self.process.end()
        return None

    def ask(self, do: str, until: float, **request: Any) -> dict[str, Any] | None:
        self.process.send(do, **request)
        return self.receive(until)

    def leave(self, status: str, message: str) -> None:
        """Take no more part; the process may be kept."""
        self.process.stop()
        self.out = True
        self.cell.status, self.cell.message = status, message
        self.cell.samples_s = []

    def plays(self, number: int, rounds: int) -> bool:
        """Whether it has a turn in this round; all have one in the first."""
        return (number * self.turns) // rounds != ((number - 1) * self.turns) // rounds


@dataclass
class Schedule:
    """A run.

    Attributes:
        results: what is filled in; the cells that are to be measured are there.
        workloads, runners: by name.
        settings: of the processes.
        folder: for what they write; it is emptied.
        out: where the results are saved after each workload.
    """

    results: Results
    workloads: Mapping[str, Workload]
    runners: Mapping[str, type[Runner]]
    settings: Settings
    effort: Effort
    folder: Path
    out: Path
    display: Display
    _order: random.Random = field(default_factory=lambda: random.Random(0))
    _kept: dict[str, Process] = field(default_factory=dict)

    def run(self) -> None:
        """Measure; an interruption (Ctrl-C) ends it, and keeps what was measured."""
        end = time.monotonic() + self.effort.budget_s
        names = list(dict.fromkeys(cell.workload for cell in self.results.cells))
        try:
            for index, name in enumerate(names):
                left_s = end - time.monotonic()
                share_s = min(left_s, self.effort.share * left_s / (len(names) - index))
                cells = [cell for cell in self.results.cells if cell.workload == name]
                self.display.begins(index, len(names), self.workloads[name])
                self._measure(self.workloads[name], cells, share_s)
                self.display.ends(cells)
                self.results.save(self.out)
        except KeyboardInterrupt:
            self.results.interrupted = True
        finally:
            for process in self._kept.values():
                process.end()

    def _measure(self, workload: Workload, cells: Sequence[Cell], share_s: float) -> None:
        start = time.monotonic()
        until = start + share_s
        if share_s <= 0:
            for cell in cells:
                cell.message = NO_TIME
            return
        case = workload.case(self.results.scale)
        expected = case.expected()
        self.results.workloads[workload.name] = _row(case, expected)
        contenders: list[Contender] = []
        try:
            for contender in self._loaded(cells, start + LOADED * share_s):
                contenders.append(contender)
            for contender in sorted(contenders, key=self._compiles):
                self._prepare(contender, case, expected, start + READY * share_s)
            self._rounds(contenders, until)
            for contender in contenders:
                self._finish(contender, until)
        finally:
            for contender in contenders:
                self._leave_behind(contender.process)

    # ---- the phases --------------------------------------------------------------------------

    def _loaded(self, cells: Sequence[Cell], until: float) -> Iterator[Contender]:
        """Those that could import their framework, as soon as they have begun to."""
        waiting, loading = deque(self._startable(cells)), deque[Contender]()
        while waiting or loading:
            while waiting and len(loading) < machine.cores():
                cell = waiting.popleft()
                if time.monotonic() > until:
                    cell.message = NO_TIME
                    continue
                contender = self._start(cell)
                yield contender
                contender.process.send("load")
                loading.append(contender)
            if not loading:
                return
            contender = loading.popleft()
            self.display.phase("importing", contender.cell.runner)
            answer = contender.receive(until)
            if answer is not None:
                self._know(contender, answer)

    def _startable(self, cells: Sequence[Cell]) -> Iterator[Cell]:
        for cell in cells:
            missing = self.results.runners[cell.runner].missing
            if missing is None:
                yield cell
            else:
                cell.status, cell.message = "missing", missing

    def _start(self, cell: Cell) -> Contender:
        process = self._kept.pop(cell.runner, None)
        if process is None:
            folder = self.folder / f"{cell.workload} {cell.runner}".replace(" ", "_")
            process = Process(cell.runner, self.runners[cell.runner], self.settings, folder)
        process.go_on()
        return Contender(cell, process, self.effort.patience_s)

    def _leave_behind(self, process: Process) -> None:
        if self.effort.fresh or process.ended:
            process.end()
            shutil.rmtree(process.folder, ignore_errors=True)
        else:
            process.stop()
            self._kept[process.name] = process

    def _know(self, contender: Contender, answer: dict[str, Any]) -> None:
        """What a framework says of itself."""
        cell, known = contender.cell, self.results.runners
        if "missing" in answer:
            known[cell.runner] = replace(known[cell.runner], missing=answer["missing"])
            contender.leave("missing", answer["missing"])
            return
        cell.import_s = answer["import_s"]
        found = {"versions": answer["versions"], "threads": answer["threads"]}
        known[cell.runner] = replace(known[cell.runner], **found)

    def _compiles(self, contender: Contender) -> bool:
        """Whether it is likely to take its time before its first result."""
        return self.results.runners[contender.cell.runner].baseline is not None

    def _prepare(
        self, contender: Contender, case: Case, expected: Sequence[Any], until: float
    ) -> None:
        """Build, call, check, warm up, stop."""
        cell = contender.cell
        if contender.out:
            return
        if time.monotonic() > until:
            contender.leave("not reached", NO_TIME)
            return
        self.display.phase("first call", cell.runner)
        request = {"workload": cell.workload, "scale": self.results.scale, "digest": case.digest}
        answer = contender.ask("prepare", until, **request)
        if answer is None:
            return
        if "not_written" in answer:
            contender.leave("not written", answer["not_written"])
            return
        cell.prepare_s, cell.first_call_s = answer["prepare_s"], answer["first_call_s"]
        verdict = check(case, _arrays(Path(answer["outputs"])), expected)
        cell.error = verdict.error
        if verdict.wrong:
            contender.leave("wrong", verdict.wrong)
            return
        self.display.phase("warming up", cell.runner)
        answer = contender.ask("warm", until + self.effort.warm_s, limit_s=self.effort.warm_s)
        if answer is not None:
            cell.warm_up = Warming(answer["calls"], answer["stable"])
            self._plan(contender, answer["call_s"])
            contender.process.stop()

    def _plan(self, contender: Contender, call_s: float) -> None:
        """How many calls make a sample, samples a turn, and how many turns there are."""
        effort = self.effort
        calls = calls_for(call_s, effort.sample_s)
        sample_s = calls * call_s
        samples = int(effort.turns_s / effort.rounds / sample_s)
        contender.samples = max(1, min(effort.samples, samples))
        turns = int(effort.turns_s / (contender.samples * sample_s))
        contender.turns = max(FEWEST, min(effort.rounds, turns))
        contender.cell.calls_per_sample = calls
        contender.call_s = call_s

    def _rounds(self, contenders: Sequence[Contender], until: float) -> None:
        rounds = self.effort.rounds
        order = list(contenders)
        try:
            for number in range(rounds):
                self._order.shuffle(order)
                for contender in order:
                    if contender.out or not contender.plays(number, rounds):
                        continue
                    if number and time.monotonic() > until:
                        return
                    self.display.phase(f"round {number + 1} of {rounds}", contender.cell.runner)
                    self._turn(contender, until + GRACE_S)
        finally:
            for contender in contenders:
                if contender.cell.samples_s:
                    contender.cell.status = "measured"

    def _turn(self, contender: Contender, until: float) -> None:
        cell, process = contender.cell, contender.process
        process.go_on()
        if not CAN_STOP:
            time.sleep(REST_S)
        lead = 0 if contender.call_s > LONG_S else min(cell.calls_per_sample, 3)
        answer = contender.ask(
            "measure", until, lead=lead, calls=cell.calls_per_sample, samples=contender.samples
        )
        if answer is not None:
            cell.samples_s.append(answer["samples_s"])
            process.stop()

    def _finish(self, contender: Contender, until: float) -> None:
        """Memory, and what the compiler tells; what was measured stays, whatever happens here."""
        cell, samples_s = contender.cell, contender.cell.samples_s
        if contender.out or not samples_s:
            return
        self.display.phase("asking what it made", cell.runner)
        contender.process.go_on()
        answer = contender.ask("finish", until + GRACE_S)
        if answer is None:
            cell.status, cell.samples_s = "measured", samples_s
            return
        cell.memory, cell.details = answer["memory"] or None, answer["details"]


def _row(case: Case, expected: Sequence[Any]) -> Row:
    workload = case.workload
    arrays = [*case.arguments, *case.parameters.values()]
    results = case.parameters.values() if workload.gradients else expected
    item = np.dtype(workload.dtype or np.int64).itemsize
    moved = sum(np.asarray(each).nbytes for each in arrays)
    moved += sum(each.size * item for each in results) // workload.calls
    return Row(
        workload.title,
        workload.family,
        workload.kind,
        workload.size,
        workload.operations,
        moved,
        workload.dtype,
        workload.tolerance,
    )


def _arrays(path: Path) -> list[Any]:
    with np.load(path) as file:
        found = [file[name] for name in file.files]
    path.unlink()
    return found
