"""Schedules: the learning rate as a function of how many updates have been done.

    trainer = Trainer(net.collect_params(), "sgd", {"learning_rate": Cosine(0.1, updates=1000)})

A schedule is called with the number of updates done before this one (0 at the first), and answers
in NumPy terms: the count may be an int, an array of counts, or the traced count of a compiled
training step.  Its numbers never change once it is made.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from minigraph.errors import OptionError

Count = Any
"""How many updates have been done: an int, an integer array, or a traced one."""


@dataclass(frozen=True)
class Schedule:
    """Base of the schedules: a frozen dataclass that depends on nothing but its fields."""

    rate: float

    COUNTS: ClassVar[tuple[str, ...]] = ()
    """Fields that are whole numbers from 1 up."""

    def __post_init__(self) -> None:
        not_negative(self, "rate")
        for name in self.COUNTS:
            at_least_one(self, name)

    def __call__(self, count: Count) -> Any:
        """The learning rate of the update after `count` others."""
        raise NotImplementedError(f"{type(self).__name__} is a schedule without __call__")


@dataclass(frozen=True)
class Constant(Schedule):
    """`rate`, always."""

    def __call__(self, count: Count) -> Any:
        return self.rate + 0.0 * count


@dataclass(frozen=True)
class Step(Schedule):
    """Times `factor` after each `every` updates, but never below `least`."""

    every: int
    factor: float = 0.1
    least: float = 0.0

    COUNTS = ("every",)

    def __call__(self, count: Count) -> Any:
        return np.maximum(self.rate * self.factor ** (count // self.every), self.least)


@dataclass(frozen=True)
class MultiStep(Schedule):
    """Times `factor` once so many updates are done as each of the `milestones` says."""

    milestones: Sequence[int]
    factor: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "milestones", tuple(self.milestones))  # a copy of its own

    def __call__(self, count: Count) -> Any:
        return self.rate * self.factor ** sum(count >= milestone for milestone in self.milestones)


@dataclass(frozen=True)
class Polynomial(Schedule):
    """From `rate` to `final` in so many updates, as `(1 - count / updates) ** power`."""

    updates: int
    power: float = 1.0
    final: float = 0.0

    COUNTS = ("updates",)

    def __call__(self, count: Count) -> Any:
        left = 1.0 - np.minimum(count, self.updates) / self.updates
        return self.final + (self.rate - self.final) * left**self.power


@dataclass(frozen=True)
class Cosine(Schedule):
    """From `rate` to `final` in so many updates, along half a period of a cosine."""

    updates: int
    final: float = 0.0

    COUNTS = ("updates",)

    def __call__(self, count: Count) -> Any:
        done = np.minimum(count, self.updates) / self.updates
        return self.final + (self.rate - self.final) * (1.0 + np.cos(np.pi * done)) / 2.0


@dataclass(frozen=True)
class WarmUp(Schedule):
    """In a straight line from `rate` to where the schedule `then` begins; after that `then`."""

    then: Schedule
    updates: int

    COUNTS = ("updates",)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.then, Schedule):
            raise OptionError(
                f"WarmUp goes on with a schedule, not with {self.then!r}",
                instead=f"WarmUp({self.rate}, Constant({self.then!r}), updates={self.updates})",
            )

    def __call__(self, count: Count) -> Any:
        rising = self.rate + (self.then(0) - self.rate) * (count / self.updates)
        return np.where(
            count < self.updates, rising, self.then(np.maximum(count - self.updates, 0))
        )


def not_negative(of: Any, *names: str) -> None:
    """These fields are finite numbers from 0 up.

    Raises:
        OptionError: one is not.
    """
    for name in names:
        value = getattr(of, name)
        if not is_number(value) or not 0 <= value < np.inf:
            raise OptionError(
                f"{type(of).__name__}: {name} is {value!r}", instead="a number from 0 up"
            )


def at_least_one(of: Any, name: str) -> None:
    """This field is a whole number from 1 up.

    Raises:
        OptionError: it is not.
    """
    value = getattr(of, name)
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < 1:
        raise OptionError(
            f"{type(of).__name__}: {name} is {value!r}", instead="a whole number from 1 up"
        )


def is_number(value: Any) -> bool:
    """A real number of Python's or NumPy's; no bool."""
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
