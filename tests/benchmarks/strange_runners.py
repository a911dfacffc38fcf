"""Runners that go wrong, each in its own way: a folder of one's own holds this file in tests."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import time
from collections.abc import Callable

import numpy as np

from benchmarks.runners.base import NotWritten, Prepared, Runner

PHASES = ("load", "prepare", "call", "warm", "measure", "finish")
AROUND = ("call", "warm", "measure")  # the phases in which calls are made, in their order


def raises():
    raise ValueError("it went wrong")


def exits():
    print("these were its last words", flush=True)
    os._exit(3)


def segfaults():
    ctypes.string_at(0)


def hangs():
    time.sleep(3600)


def interrupts():
    os.kill(os.getppid(), signal.SIGINT)


STRANGE: dict[str, Callable[[], None]] = {
    each.__name__: each for each in (raises, exits, segfaults, hangs, interrupts)
}
OUTPUTS: dict[str, Callable[[np.ndarray], object]] = {
    "right": lambda y: y,
    "wrong value": lambda y: y * np.float32(1.01),
    "wrong shape": lambda y: y[0],
    "wrong dtype": lambda y: y.astype(np.float64),
    "nan": lambda y: np.full_like(y, np.nan),
    "no array": lambda y: None,
    "two": lambda y: y,
}


class Strange(Runner):
    variants = {
        **{f"{what} in {phase}": what for what in STRANGE for phase in PHASES},
        **dict.fromkeys(OUTPUTS, "an output"),
        "not written": "nothing",
        "missing": "nothing",
    }

    def load(self) -> None:
        self.times = 0
        self.at("load")
        if self.variant == "missing":
            raise ImportError("what it needs is not there")

    def versions(self) -> dict[str, str]:
        return {"strange": "1"}

    def threads_used(self) -> str:
        return "1"

    def at(self, phase: str) -> None:
        what, _, where = self.variant.partition(" in ")
        if where == phase:
            STRANGE[what]()

    @contextlib.contextmanager
    def around(self):
        self.at(AROUND[min(self.times, 2)])
        self.times += 1
        yield

    def prepare(self, case) -> Prepared:
        if self.variant == "not written":
            raise NotWritten("nobody wrote it")
        self.at("prepare")
        (x,), p = case.arguments, case.parameters
        output = OUTPUTS.get(self.variant, OUTPUTS["right"])

        def run():
            h = np.maximum(x @ p["w1"] + p["b1"], 0)
            h = np.maximum(h @ p["w2"] + p["b2"], 0)
            return output(h @ p["w3"] + p["b3"])

        def details():
            self.at("finish")
            return {"nodes": np.int64(3)}

        count = 2 if self.variant == "two" else 1
        return Prepared(run, lambda found: (found,) * count, self.around, details=details)


class Large(Runner):
    """Each call needs 50 MB for a while; nothing that is there before does."""

    variants = {"large": "50 MB"}

    def load(self) -> None:
        pass

    def versions(self) -> dict[str, str]:
        return {}

    def threads_used(self) -> str:
        return "1"

    def prepare(self, case) -> Prepared:
        (x,) = case.arguments

        def run():
            return x[:1] + np.ones(50_000_000, np.uint8)[:1]

        return Prepared(run, lambda found: (np.ones(30_000_000, np.uint8), found))


class NotThere(Runner):
    package = "no_such_package"
    variants = {"not there": "nothing"}

    def mlp(self, case) -> Prepared:
        raise AssertionError("its package is not there")
