"""Timing for users: `with mg.Benchmark("..."):` as in the textbook, and `mg.bench` with statistics.

    with mg.Benchmark("Without hybridize"):
        for _ in range(1000):
            net(x)

prints one line, `Without hybridize: 0.0279 sec`: one elapsed time, as it came.  `mg.bench(f, x)`
tells the first call (which compiles) from the others, warms up, takes many samples, and says how
far they scatter; two of its results can be compared.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

from .errors import OptionError
from .measuring import (
    FEW,
    Statistics,
    WarmUp,
    calls_for,
    duration,
    seconds_of,
    take_samples,
    warm_up,
)

SAMPLES = 60  # of a measurement; of one of long calls, `FEW`
SAMPLE_S = 0.005  # that a sample takes, of as many calls as go into that
LIMIT_S = 3.0  # for all samples, where they are not the fewest


class Benchmark:
    """Prints how long the block of a `with` statement took, and keeps it.

    Attributes:
        description: what is printed before the time.
        seconds: the time; None until the block has ended.
    """

    def __init__(self, description: str = "Done") -> None:
        self.description = description
        self.seconds: float | None = None

    def __enter__(self) -> Self:
        self.seconds = None
        self._start = time.perf_counter()
        return self

    def __exit__(self, *exception: object) -> None:
        self.seconds = time.perf_counter() - self._start
        print(f"{self.description}: {self.seconds:.4f} sec")


@dataclass(frozen=True)
class Measurement:
    """How long calls of a function take.

    Attributes:
        name: of the function.
        first_s: seconds of the first call; it compiles, where nothing is compiled yet.
        warm_up: the calls before the samples.
        samples_s: seconds of one call, of each sample; calls_per_sample: how many it was taken of.
    """

    name: str
    first_s: float
    warm_up: WarmUp
    samples_s: tuple[float, ...]
    calls_per_sample: int

    @property
    def statistics(self) -> Statistics:
        """Median and quartiles of the samples."""
        return Statistics.of(self.samples_s)

    def __str__(self) -> str:
        steady = "" if self.warm_up.stable else "; the speed was not steady after warming up"
        return f"{self.name}: {self.statistics}, first call {duration(self.first_s)}{steady}"

    def against(self, other: Measurement) -> str:
        """This function against another one, in a sentence.

        They are told apart only where the ranges between their quartiles do not overlap, and both
        have samples enough for quartiles.

        Raises:
            OptionError: `other` is no measurement.
        """
        if not isinstance(other, Measurement):
            raise OptionError(
                f"measurements are compared, and this is a value of type {type(other).__name__}",
                instead="mg.bench(f, x).against(mg.bench(g, x))",
            )
        ours, theirs = self.statistics, other.statistics
        if ours.is_few or theirs.is_few:
            return f"{self.name} against {other.name}: too few samples to tell them apart"
        if ours.overlaps(theirs):
            return f"{self.name} against {other.name}: no gain, the ranges of the quartiles overlap"
        ratio = theirs.median_s / ours.median_s
        if ratio < 1:
            return f"{self.name} is {1 / ratio:.3g} times slower than {other.name}"
        calls = self.break_even(other)
        after = f"; the first call has paid after {calls:,.0f} more" if calls >= 1 else ""
        return f"{self.name} is {ratio:.3g} times faster than {other.name}{after}"

    def break_even(self, other: Measurement) -> float:
        """After how many calls this function has won back what its first call took longer.

        0 where that took no longer; infinite where it never does.
        """
        more_s = self.first_s - other.first_s
        if more_s <= 0:
            return 0.0
        gain_s = other.statistics.median_s - self.statistics.median_s
        return math.ceil(more_s / gain_s) if gain_s > 0 else math.inf


def bench(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Measurement:
    """How long `function(*args, **kwargs)` takes.

    The first call is timed apart.  Then calls are made until their speed is steady, or for two
    seconds; then samples are taken, each of as many calls as take some milliseconds, with the
    garbage collector off.  All that takes about half a second for a short function; for one of a
    second, it makes about ten calls.

    Raises:
        OptionError: the first argument cannot be called.
    """
    if not callable(function):
        raise OptionError(
            f"mg.bench calls a function, and was given a value of type {type(function).__name__}",
            instead="mg.bench(f, x), not mg.bench(f(x))",
        )

    def run() -> Any:
        return function(*args, **kwargs)

    first_s = seconds_of(run, 1)
    steady = warm_up(run)
    calls = calls_for(steady.call_s, SAMPLE_S)
    samples = max(FEW, min(SAMPLES, round(LIMIT_S / (calls * steady.call_s))))
    name = getattr(function, "__name__", type(function).__name__)
    return Measurement(name, first_s, steady, tuple(take_samples(run, calls, samples)), calls)
