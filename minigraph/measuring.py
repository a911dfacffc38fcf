"""How long a call takes: warm-up, samples, and what may be said of them.

It imports nothing but the standard library, since the benchmarks run this file in environments that
have no minigraph.

What is compared are medians; how far samples scatter is told by the quartiles.  Two measurements
whose ranges between the quartiles overlap are not told apart ("no gain").
"""

from __future__ import annotations

import contextlib
import gc
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

Run = Callable[[], Any]


@dataclass(frozen=True)
class Statistics:
    """What is known of a call's duration.

    Attributes:
        median_s, lower_s, upper_s: the quartiles of the samples, in seconds of one call.
        samples: how many there are.
    """

    median_s: float
    lower_s: float
    upper_s: float
    samples: int

    @classmethod
    def of(cls, samples_s: Sequence[float]) -> Statistics:
        """The statistics of at least one sample; quartiles lie between samples where they must."""
        if len(samples_s) < 2:
            (only,) = samples_s
            return cls(only, only, only, 1)
        lower, median, upper = statistics.quantiles(samples_s, n=4, method="inclusive")
        return cls(median, lower, upper, len(samples_s))

    def overlaps(self, other: Statistics) -> bool:
        """Whether the ranges between the quartiles have a duration in common."""
        return self.lower_s <= other.upper_s and other.lower_s <= self.upper_s

    def __str__(self) -> str:
        return (
            f"{duration(self.median_s)} (quartiles {duration(self.lower_s)} to "
            f"{duration(self.upper_s)}, {self.samples} samples)"
        )


def duration(wall_s: float) -> str:
    """A duration with its unit, to three digits."""
    wall_s = float(f"{wall_s:.3g}")  # first, or 999.9 µs were 1e+03 of them
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if abs(wall_s) >= size:
            return f"{round(wall_s / size, 9):g} {unit}"
    return f"{wall_s / 1e-9:.3g} ns"


def seconds_of(run: Run, calls: int) -> float:
    """Seconds of one call, from a loop of `calls`."""
    turns = range(calls)
    start = time.perf_counter()
    for _ in turns:
        run()
    return (time.perf_counter() - start) / calls


@dataclass(frozen=True)
class WarmUp:
    """How a call came to a steady speed.

    Attributes:
        calls: how many were made.
        call_s: seconds of one of the last.
        stable: whether the last few groups of calls took the same time, within `TOLERANCE`.
    """

    calls: int
    call_s: float
    stable: bool


TOLERANCE = 0.05  # by which the speeds of the last groups may differ
GROUPS = 4  # that have to agree


def warm_up(run: Run, *, group_s: float = 0.01, limit_s: float = 2.0) -> WarmUp:
    """Call until the speed is steady, or until `limit_s` seconds have gone by.

    Calls are timed in groups that take about `group_s` seconds each.
    """
    start = time.perf_counter()
    calls, found = 1, [seconds_of(run, 1)]
    while True:
        count = calls_for(found[-1], group_s)
        found.append(seconds_of(run, count))
        calls += count
        last = found[-GROUPS:]
        stable = len(found) > GROUPS and max(last) <= min(last) * (1 + TOLERANCE)
        if stable or time.perf_counter() - start > limit_s:
            return WarmUp(calls, statistics.median(last), stable)


def calls_for(call_s: float, sample_s: float) -> int:
    """How many calls make a sample of about `sample_s` seconds."""
    return max(1, min(100_000, round(sample_s / max(call_s, 1e-9))))


def take_samples(run: Run, calls: int, samples: int) -> list[float]:
    """Seconds of one call, as often as asked, each from `calls` calls; collects no garbage."""
    with collecting_no_garbage():
        return [seconds_of(run, calls) for _ in range(samples)]


@contextlib.contextmanager
def collecting_no_garbage() -> Iterator[None]:
    """As `timeit` does: what is left over is collected before and after, not in between."""
    was_on = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
