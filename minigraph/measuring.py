"""How long a call takes: warm-up, samples, and what may be said of them.

It imports nothing but the standard library, since the benchmarks run this file in environments that
have no minigraph.

What is compared are medians; how far samples scatter is told by the quartiles.  Two measurements
whose ranges between the quartiles overlap are not told apart ("no gain"), nor are two of which one
has too few samples for quartiles to say anything.
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

FEW = 5  # samples; quartiles of fewer say nothing


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

    @property
    def is_few(self) -> bool:
        """Whether there are too few samples to tell this from anything."""
        return self.samples < FEW

    def overlaps(self, other: Statistics) -> bool:
        """Whether the ranges between the quartiles have a duration in common, or might have.

        They might where either side has fewer samples than `FEW`.
        """
        if self.is_few or other.is_few:
            return True
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
        stable: whether the last groups of calls took the same time, within `TOLERANCE`.
    """

    calls: int
    call_s: float
    stable: bool


TOLERANCE = 0.05  # by which the speeds of the last groups may differ
GROUPS = 4  # that have to agree
LONG_GROUPS = 2  # of one call each, where a call takes longer than a group should


def warm_up(run: Run, *, group_s: float = 0.01, limit_s: float = 2.0) -> WarmUp:
    """Call until the speed is steady, or until `limit_s` seconds have gone by.

    Calls are timed in groups that take about `group_s` seconds each, and that is steady which takes
    the same time in the last few groups.  Calls that are longer than a group should be are timed
    one by one; two of them have to agree, and two are made however long they take.
    """
    start = time.perf_counter()
    calls, found = 1, [seconds_of(run, 1)]
    while True:
        count = calls_for(found[-1], group_s)
        found.append(seconds_of(run, count))
        calls += count
        is_long = found[-1] > group_s
        last = found[-LONG_GROUPS:] if is_long else found[1:][-GROUPS:]
        enough = len(last) == (LONG_GROUPS if is_long else GROUPS)
        stable = enough and max(last) <= min(last) * (1 + TOLERANCE)
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
