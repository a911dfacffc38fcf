"""Who is measured when: all runners of a workload side by side, in rounds, within a budget.

A workload goes through these phases:

1. Each runner gets a process; they import their frameworks, as many at a time as there are cores.
   (In a quick run processes are kept for the next workload, and this is done once.)
2. One after another builds the workload and calls it for the first time: in an order that is drawn,
   those that do not compile first.  What comes out is held against the reference; who is wrong is
   out.  Then it is called until its speed is steady.
3. In each of the rounds all have a turn, in an order that changes, and all others are stopped
   meanwhile.  So a machine that slows down slows all of them.

A runner that crashes, hangs, takes too long or is wrong loses its cell, and nobody else's.  What
there is no time for is "not reached".  A workload may take somewhat more than its share of the time
that is left; what it does not take goes to those after it.  They come mixed, so that time that runs
out does not take all of a kind; and what leaves out parts of a compiler comes after all the rest.
"""

from __future__ import annotations

import contextlib
import dataclasses
import random
import shutil
import signal
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ..runners.base import Runner
from ..workloads import Case, Workload
from . import machine
from .checking import judged, request
from .contender import FEWEST, NO_TIME, Contender, Effort
from .display import Display
from .processes import CAN_STOP, Process, Settings
from .results import Cell, Results, Warming, Work

GRACE_S = 5.0  # beyond the end of a workload's time, for a turn that has begun
REST_S = 0.05  # before a turn where the others cannot be stopped: their threads stop by themselves
LONG_S = 0.1  # a call that takes longer is not disturbed by cold caches
LOADED, READY = 0.4, 0.8  # of a workload's time has gone by, at most; the rest is for the rounds
TURN_S = 0.01  # of a turn go by before and after its calls
SHORT_S = 6.0  # of patience for a first call are left to whoever begins one
TYPICAL_S = 1.5  # of a first call
LONGER = 2.5  # times, with training: its programs are long


@dataclass
class Schedule:
    """A run.

    Attributes:
        results: what is filled in; the cells that are to be measured are there.
        workloads, runners: by name.
        settings: of the processes.
        folder: for what they write; it is emptied.
        out: where the results are saved after each workload.
        process, clock: what begins a process, and tells the time.
        spent: how many seconds each phase took, over all workloads.
    """

    results: Results
    workloads: Mapping[str, Workload]
    runners: Mapping[str, type[Runner]]
    settings: Settings
    effort: Effort
    folder: Path
    out: Path
    display: Display
    process: Callable[[str, type[Runner], Settings, Path], Process] = Process
    clock: Callable[[], float] = time.monotonic
    spent: Counter[str] = field(default_factory=Counter)
    _order: random.Random = field(default_factory=lambda: random.Random(0))
    _alive: list[Process] = field(default_factory=list)
    _loading: set[Process] = field(default_factory=set)  # asked, and not yet answered
    _kept: dict[str, Process] = field(default_factory=dict)

    def run(self) -> None:
        """Measure; an interruption (Ctrl-C) ends it, and keeps what was measured."""
        end = self.clock() + self.effort.budget_s
        parts = self._parts()
        weights = [self._weight(*part) for part in parts]
        try:
            for index, (workload, cells) in enumerate(parts):
                left_s = end - self.clock()
                part = weights[index] / (sum(weights[index:]) or 1)
                share_s = left_s * min(1.0, self.effort.share * part)
                self.display.begins(index, len(parts), workload)
                self._measure(workload, cells, share_s)
                self.display.ends(cells)
                if self.results.has_any:
                    self.results.save(self.out)
        except KeyboardInterrupt:
            self.results.interrupted = True
        finally:
            with _interruptions_wait() as asked, contextlib.ExitStack() as stack:
                for process in self._alive:
                    stack.callback(process.end)
            self.results.interrupted |= bool(asked)

    def _parts(self) -> list[tuple[Workload, list[Cell]]]:
        """Workloads with their cells: the columns of all, then what leaves out a part."""
        found = []
        for ablation in (False, True):
            cells: dict[str, list[Cell]] = {}
            for cell in self.results.cells:
                if self.results.runners[cell.runner].ablation is ablation:
                    cells.setdefault(cell.workload, []).append(cell)
            named = [self.workloads[name] for name in cells]
            found += [(each, cells[each.name]) for each in mixed(named)]
        return found

    def _weight(self, workload: Workload, cells: Sequence[Cell]) -> float:
        """How much of the time it should have, in relation to the others."""
        known = self.results.runners
        there = [
            cell
            for cell in cells
            if cell.status == "not reached" and known[cell.runner].missing is None
        ]
        return len(there) * (LONGER if workload.kind == "training" else 1.0)

    def _measure(self, workload: Workload, cells: Sequence[Cell], share_s: float) -> None:
        start = self.clock()
        until = start + share_s
        waiting = list(self._startable(cells))
        if waiting and share_s <= 0:
            for cell in waiting:
                cell.message = NO_TIME
            return
        with self._spending("references"):
            case = workload.case(self.results.scale)
            expected = case.expected()
            self._describe(workload)
        contenders: list[Contender] = []
        try:
            with self._spending("imports"):
                self._load(waiting, contenders, start + LOADED * share_s)
            self._prepare_all(contenders, case, expected, start + READY * share_s)
            with self._spending("rounds"):
                self._rounds(contenders, until)
            with self._spending("questions"):
                for contender in contenders:
                    self._finish(contender)
        finally:
            with self._spending("ends of processes"), _interruptions_wait() as asked:
                for contender in contenders:
                    self._leave_behind(contender.process)
        if asked:
            raise KeyboardInterrupt

    @contextlib.contextmanager
    def _spending(self, phase: str) -> Iterator[None]:
        start = self.clock()
        try:
            yield
        finally:
            self.spent[phase] += self.clock() - start

    def _describe(self, workload: Workload) -> None:
        names = [each.name for each in dataclasses.fields(Work)]
        work = Work(**{name: getattr(workload, name) for name in names})
        known = {**self.results.workloads, workload.name: work}
        self.results.workloads = {name: known[name] for name in self.workloads if name in known}

    # ---- the phases --------------------------------------------------------------------------

    def _load(self, cells: Sequence[Cell], contenders: list[Contender], until: float) -> None:
        """Begin processes, and wait until they have imported their frameworks."""
        waiting, loading = deque(cells), deque[Contender]()
        while waiting or loading:
            while waiting and len(loading) < machine.cores():
                cell = waiting.popleft()
                if self.clock() > until:
                    cell.message = NO_TIME
                    continue
                contender = self._start(cell)
                if contender is not None:
                    contenders.append(contender)
                    loading.append(contender)
            if loading:
                self._await(loading.popleft(), until)

    def _await(self, contender: Contender, until: float) -> None:
        """Its framework has been imported, or it has no part in this workload."""
        process = contender.process
        self.display.phase("importing", contender.cell.runner)
        answer = contender.receive(until, keep=not self.effort.fresh)
        if answer is not None:
            self._loading.discard(process)
            self._know(contender, answer)

    def _startable(self, cells: Sequence[Cell]) -> Iterator[Cell]:
        """Those that somebody wrote, and whose framework is there."""
        for cell in cells:
            missing = self.results.runners[cell.runner].missing
            if cell.status == "not reached" and missing is None:
                yield cell
            elif cell.status == "not reached":
                cell.status, cell.message = "missing", missing

    def _start(self, cell: Cell) -> Contender | None:
        """In a process that is there, or in a new one; None where there can be none."""
        process = self._kept.pop(cell.runner, None)
        if process is None:
            folder = self.folder / f"{cell.workload} {cell.runner}".replace(" ", "_")
            try:
                with _interruptions_wait() as asked:
                    runner = self.runners[cell.runner]
                    process = self.process(cell.runner, runner, self.settings, folder)
                    self._alive.append(process)
            except OSError as error:
                cell.status, cell.message = "crashed", f"no process: {error}"
                return None
            if asked:
                raise KeyboardInterrupt
        contender = Contender(cell, process, self.effort, self.clock)
        process.go_on()
        if process not in self._loading:
            process.send("load")
            self._loading.add(process)
        return contender

    def _leave_behind(self, process: Process) -> None:
        if self.effort.fresh or process.ended:
            process.end()
            self._alive.remove(process)
            self._loading.discard(process)
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

    def _prepare_all(
        self, contenders: Sequence[Contender], case: Case, expected: Sequence[Any], until: float
    ) -> None:
        """One after another; who takes long leaves enough to those that come after it.

        A first call may take two thirds of the time that is left, or all but what the others take
        typically, whichever is less; but its even share in any case.
        """
        waiting = [each for each in contenders if not each.out]
        self._order.shuffle(waiting)
        waiting.sort(key=self._compiles)
        for index, contender in enumerate(waiting):
            left_s, others = until - self.clock(), len(waiting) - index - 1
            if left_s <= 0:
                contender.leave("not reached", NO_TIME)
                continue
            rest_s = min(left_s * 2 / 3 if others else left_s, left_s - TYPICAL_S * others)
            limit_s = max(SHORT_S, left_s / (others + 1), rest_s)
            with contender.costs_the_cell(), self._spending("first calls"):
                self._prepare(contender, case, expected, limit_s)
            with self._spending("warming up"):
                self._warm_up(contender)

    def _prepare(
        self, contender: Contender, case: Case, expected: Sequence[Any], limit_s: float
    ) -> None:
        """Build, call, check."""
        cell = contender.cell
        self.display.phase("first call", cell.runner)
        limit_s = min(limit_s, self.effort.first_s)
        answer = contender.ask("prepare", limit_s, "first call", **request(case))
        if answer is None:
            return
        if "not_written" in answer:
            contender.leave("not written", answer["not_written"])
            return
        cell.prepare_s, cell.first_call_s = answer["prepare_s"], answer["first_call_s"]
        verdict = judged(case, answer["outputs"], expected)
        cell.error = verdict.error
        if verdict.wrong:
            contender.leave("wrong", verdict.wrong)

    def _warm_up(self, contender: Contender) -> None:
        if contender.out:
            return
        self.display.phase("warming up", contender.cell.runner)
        warm_s, first_s = self.effort.warm_s, contender.cell.first_call_s or 0.0
        limit_s = self._patience(warm_s + 2 * first_s)
        answer = contender.ask("warm", limit_s, "warm-up", limit_s=warm_s)
        if answer is not None:
            contender.cell.warm_up = Warming(answer["calls"], answer["stable"])
            contender.plan(answer["call_s"])
            contender.process.stop()

    def _rounds(self, contenders: Sequence[Contender], until: float) -> None:
        order = [each for each in contenders if not each.out]
        rounds = self._rounds_in(until - self.clock(), order)
        try:
            for number in range(rounds):
                self._order.shuffle(order)
                for contender in order:
                    if contender.out or not contender.plays(number, rounds):
                        continue
                    has_enough = len(contender.cell.samples_s) >= FEWEST
                    is_long = contender.turn_s > GRACE_S / len(order)
                    if self.clock() > until and (has_enough or is_long):
                        continue
                    self.display.phase(f"round {number + 1} of {rounds}", contender.cell.runner)
                    self._turn(contender)
        finally:
            for contender in contenders:
                if contender.cell.samples_s:
                    contender.cell.status = "measured"
                elif not contender.out:
                    contender.cell.message = NO_TIME

    def _rounds_in(self, left_s: float, contenders: Sequence[Contender]) -> int:
        """As many as there is time for: fewer for all, rather than none for the last."""
        rounds = self.effort.rounds
        wanted_s = sum(each.turns * (each.turn_s + TURN_S) for each in contenders)
        fitting = int(rounds * left_s / wanted_s) if wanted_s > max(0.0, left_s) else rounds
        return min(rounds, max(FEWEST, fitting))

    def _patience(self, usual_s: float) -> float:
        """How long to wait for what usually takes so long."""
        return min(self.effort.patience_s, GRACE_S + usual_s)

    def _turn(self, contender: Contender) -> None:
        cell, process = contender.cell, contender.process
        process.go_on()
        if not CAN_STOP:
            time.sleep(REST_S)
        lead = 0 if contender.call_s > LONG_S else min(cell.calls_per_sample, 3)
        answer = contender.ask(
            "measure",
            self._patience(10 * contender.turn_s),
            "a turn",
            lead=lead,
            calls=cell.calls_per_sample,
            samples=contender.samples,
        )
        if answer is not None:
            cell.samples_s.append(answer["samples_s"])
            process.stop()

    def _finish(self, contender: Contender) -> None:
        """Memory, and what the compiler tells; what was measured stays, whatever happens here."""
        cell, samples_s = contender.cell, contender.cell.samples_s
        if contender.out or not samples_s:
            return
        self.display.phase("asking what it made", cell.runner)
        contender.process.go_on()
        answer = contender.ask("finish", GRACE_S, "what it made")
        if answer is None:
            cell.status, cell.samples_s = "measured", samples_s
            return
        cell.memory, cell.details = answer["memory"] or None, answer["details"]


def mixed(workloads: Sequence[Workload]) -> list[Workload]:
    """The first of each family, then the second of each, and so on; kinds evenly among them."""
    families: Counter[str] = Counter()
    levels = []
    for workload in workloads:
        levels.append((families[workload.family], workload.kind))
        families[workload.family] += 1
    sizes, seen, places = Counter(levels), Counter[Any](), []
    for level in levels:
        seen[level] += 1
        places.append((level[0], (seen[level] - 0.5) / sizes[level]))
    return [workloads[index] for index in sorted(range(len(places)), key=places.__getitem__)]


@contextlib.contextmanager
def _interruptions_wait() -> Iterator[list[int]]:
    """Within, Ctrl-C is only noted down: what has begun is done to the end."""
    asked: list[int] = []
    signals = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(each, lambda number, frame: asked.append(number)) for each in signals]
    try:
        yield asked
    finally:
        for number, handler in zip(signals, before, strict=True):
            signal.signal(number, handler)
