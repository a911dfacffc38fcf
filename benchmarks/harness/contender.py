"""A runner that takes part in a workload: its process, its cell, and the turns that it has."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from minigraph.measuring import calls_for

from .processes import Crashed, Failed, Process, TimedOut
from .results import Cell

NO_TIME = "no time left"
FEWEST = 5  # turns, so that there are samples enough to tell two runners apart
MOST_S = 20.0  # of a runner's turns; only where a call takes long, there are fewer than `FEWEST`


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
        first_s: the same for a first call, in which all compiling is.
        share: how many times its share of the time that is left a workload may take.
        fresh: whether each workload gets new processes, in which nothing is compiled yet.
    """

    budget_s: float = 1700.0
    rounds: int = 12
    samples: int = 3
    sample_s: float = 0.002
    turns_s: float = 0.5
    warm_s: float = 0.3
    patience_s: float = 60.0
    first_s: float = 300.0
    share: float = 1.4
    fresh: bool = True


FULL = Effort()
QUICK = Effort(
    budget_s=110.0,
    rounds=7,
    turns_s=0.3,
    warm_s=0.2,
    patience_s=30.0,
    first_s=60.0,
    share=1.5,
    fresh=False,
)


@dataclass
class Contender:
    """A runner in a workload.

    Attributes:
        out: whether it takes no more part.
        turns: how many it has; samples: in each; call_s: what a call took in the warm-up.
    """

    cell: Cell
    process: Process
    effort: Effort
    clock: Callable[[], float] = time.monotonic
    out: bool = False
    turns: int = 0
    samples: int = 0
    call_s: float = 0.0

    def receive(self, until: float, *, keep: bool = False) -> dict[str, Any] | None:
        """The answer to what was asked for; None where there is none, and the cell says why.

        Args:
            until: when the workload's time is up.
            keep: do not end the process for that; its answer will come with a later workload.
        """
        left_s = until - self.clock()
        patience_s = self.effort.patience_s
        with self.costs_the_cell():
            try:
                return self.process.receive(min(patience_s, left_s))
            except TimedOut as reason:
                if left_s >= patience_s:
                    self.leave("timed out", str(reason))
                else:
                    self.leave("not reached", f"{NO_TIME}: {reason}")
                    if keep:
                        return None
        self.process.end()
        return None

    def ask(self, do: str, within_s: float, what: str, **request: Any) -> dict[str, Any] | None:
        """The answer to `what`; who takes longer than that has timed out, whoever set it."""
        with self.costs_the_cell():
            try:
                return self.process.ask(do, within_s, **request)
            except TimedOut as reason:
                self.leave("timed out", f"{what}: {reason}")
        self.process.end()
        return None

    @contextlib.contextmanager
    def costs_the_cell(self) -> Iterator[None]:
        """Whatever goes wrong within, here or in the process, is this cell's and nobody else's."""
        try:
            yield
        except (Crashed, Failed) as reason:
            self.leave("crashed", str(reason))
        except Exception as error:
            self.leave("crashed", f"in the harness: {type(error).__name__}: {error}")

    def leave(self, status: str, message: str) -> None:
        """Take no more part; the process may be kept."""
        self.out = True
        self.cell.status, self.cell.message = status, message
        self.cell.samples_s = []
        self.process.stop()

    def plan(self, call_s: float) -> None:
        """How many calls make a sample, samples a turn, and how many turns there are."""
        effort = self.effort
        calls = calls_for(call_s, effort.sample_s)
        sample_s = calls * call_s
        samples = int(effort.turns_s / effort.rounds / sample_s)
        self.samples = max(1, min(effort.samples, samples))
        turns = max(FEWEST, int(effort.turns_s / (self.samples * sample_s)))
        self.turns = max(1, min(effort.rounds, turns, int(MOST_S / (self.samples * sample_s))))
        self.cell.calls_per_sample = calls
        self.call_s = call_s

    @property
    def turn_s(self) -> float:
        """What a turn will take, about."""
        return self.samples * self.cell.calls_per_sample * self.call_s

    def plays(self, number: int, rounds: int) -> bool:
        """Whether it has a turn in this round; all have one in the first."""
        turns = min(self.turns, rounds)
        return (number * turns) // rounds != ((number - 1) * turns) // rounds
