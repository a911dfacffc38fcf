"""Calls measured in turns, and the rows that come of it."""

from __future__ import annotations

import contextlib
import gc
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..core import seconds
from . import peers
from .peers import PEERS, Call
from .works import Work


@dataclass(frozen=True)
class Row:
    """One measurement beside another, or beside a bound.

    Attributes:
        what: the work; against: who or what minigraph is compared with ("" if with nothing).
        theirs, ours: in `unit`.
        at_most: the bar, for the figure that `compared` names (None: no bar).
        compared: "ratio", "value" or "difference".
        unit: "s" or "byte".
        note: what else is to be said.
    """

    what: str
    against: str
    theirs: float | None
    ours: float
    at_most: float | None = None
    compared: str = "ratio"
    unit: str = "s"
    note: str = ""

    @property
    def figure(self) -> float:
        if self.compared == "value":
            return self.ours
        assert self.theirs is not None
        return self.ours - self.theirs if self.compared == "difference" else self.ratio

    @property
    def ratio(self) -> float:
        return self.ours / self.theirs if self.theirs else float("nan")

    @property
    def reached(self) -> bool | None:
        """None where there is no bar."""
        return None if self.at_most is None else self.figure <= self.at_most

    def cells(self) -> tuple[str, ...]:
        def text(figure: float | None) -> str:
            if figure is None:
                return "-"
            return seconds(figure) if self.unit == "s" else f"{figure / 1e6:.1f} MB"

        bar = "" if self.at_most is None else f"{self.at_most:.2f}"
        if self.at_most is not None and self.compared != "ratio":
            more = " more" if self.compared == "difference" else ""
            bar = text(self.at_most) + more
        ratio = "-" if self.theirs is None else f"{self.ratio:.2f}"
        verdict = {None: "", True: "yes", False: "NO"}[self.reached]
        shown = (self.what, self.against or "-", text(self.theirs), text(self.ours), ratio)
        return (*shown, bar, verdict, self.note)


HEAD = ("work", "against", "theirs", "minigraph", "ratio", "at most", "reached", "")


class Disagreement(Exception):
    """A result is not the one that NumPy computes."""


def compare(
    work: Work,
    *,
    backend: str = "auto",
    rounds: int = 15,
    scale: float = 1.0,
    rest_s: float = 0.03,
    sample_s: float = 0.001,
    without: Sequence[str] = (),
) -> list[Row]:
    """The rows of a work: each bar, then the peers that have none.

    Raises:
        Disagreement: a result is not the one that NumPy computes.
    """
    rng = np.random.default_rng(0)
    bound, inputs = work.bound(rng), work.inputs(rng, scale)
    calls = {"minigraph": peers.minigraph(work, inputs, bound, backend)}
    missing: dict[str, str] = {}
    for name in work.everybody:
        if name in without:
            missing[name] = "left out"
            continue
        try:
            calls[name] = PEERS[name](work, inputs, bound)
        except ImportError as error:
            missing[name] = f"{error.name} is not installed"
    with peers.quiet():
        wanted = work.formula(np, *bound)(*inputs)
    for name, call in calls.items():
        _check(work, name, call, wanted)
    found = in_turns(calls, rounds, rest_s, sample_s)
    size_bytes = sum(array.nbytes for array in inputs)
    return _rows(work, found, missing, size_bytes)


def _check(work: Work, name: str, call: Call, wanted: Any) -> None:
    with call.around():
        result = call.run()
    if not call.checked:
        return
    if hasattr(result, "detach"):
        result = result.detach()
    error = work.error(np.asarray(result), wanted)
    if not error <= work.tolerance:
        raise Disagreement(f"{work.name}: {name} is {error:.2g} away from NumPy")


def in_turns(
    calls: Mapping[str, Call], rounds: int, rest_s: float, sample_s: float, samples: int = 8
) -> dict[str, float]:
    """Seconds of one call of each: the median over rounds, in each of which all have their turn.

    Before its turn each has a rest, in which the threads of the one before it stop waiting for more
    work (they keep a core busy while they wait), and calls that do not count.  A turn is a few
    samples, of which the fastest counts: what else runs on the machine only ever adds.
    """
    counts: dict[str, int] = {}
    for name, call in calls.items():
        with call.around():
            seconds_of(call, 2)
            counts[name] = min(1000, max(1, round(sample_s / seconds_of(call, 3))))
    found: dict[str, list[float]] = {name: [] for name in calls}
    with _no_garbage_collection():
        for _ in range(rounds):
            for name, call in calls.items():
                with call.around():
                    time.sleep(rest_s)
                    seconds_of(call, counts[name])
                    turn = [seconds_of(call, counts[name]) for _ in range(samples)]
                found[name].append(min(turn))
            gc.collect()
    return {name: statistics.median(turns) for name, turns in found.items()}


def seconds_of(call: Call, count: int) -> float:
    run = call.run
    start = time.perf_counter()
    for _ in range(count):
        run()
    return (time.perf_counter() - start) / count


@contextlib.contextmanager
def _no_garbage_collection() -> Any:
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _rows(
    work: Work, found: Mapping[str, float], missing: Mapping[str, str], size_bytes: int
) -> list[Row]:
    ours = found["minigraph"]
    rows: list[Row] = []
    told: set[str] = set()
    for bar in work.bars:
        there = [name for name in bar.peers if name in found]
        if not there:
            continue
        fastest = min(there, key=found.__getitem__)
        against = fastest if len(bar.peers) == 1 else f"fastest: {fastest}"
        rows.append(Row(work.title, against, found[fastest], ours, bar.at_most))
        told.add(fastest)
    for name in work.everybody:
        if name in missing:
            rows.append(Row(work.title, name, None, ours, note=missing[name]))
        elif name not in told:
            rows.append(Row(work.title, name, found[name], ours))
    if "reading memory" in found:
        rate = f"{size_bytes / found['reading memory'] / 1e9:.0f} GB/s"
        rows = [replace_note(row, rate) if row.against == "reading memory" else row for row in rows]
    return rows


def replace_note(row: Row, note: str) -> Row:
    return Row(row.what, row.against, row.theirs, row.ours, row.at_most, note=note)
