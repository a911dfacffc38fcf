"""What a runner is: one way of a framework to run workloads, one column of the tables.

A file of this folder is a framework.  It has one class, whose `variants` are the columns, and whose
methods are named after the families of workloads: `mlp(self, case)` builds the network as a user of
the framework would write it, and returns it prepared.  The framework is imported by `load`, never
by the file, so that the list of runners can be read where nothing is installed.

These files, `workloads.py` and `worker.py` run in environments of their own, some with an old
NumPy: they import nothing but NumPy, the standard library and the framework.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from ..workloads import Case, Workload

Array = np.ndarray[Any, Any]


class NotWritten(Exception):
    """Nothing to be measured, as `Runner.refuses` tells, or as only shows when it is built."""


@dataclass(frozen=True)
class Form:
    """A text in which a compiler shows what it made of a workload.

    Attributes:
        title: what it is ("jaxpr", "optimised HLO").
        language: "python", "minigraph", "torchscript", "jaxpr", "hlo", "json", "onnx", "pytensor".
        text: all of it.
        nodes: how many operations there are in it (None: not counted).
        stage: "before" or "after" the framework's optimisations.
        lines: line of the user's source (counted in its file) → the lines of `text`, counted from
            1, that came of it, as far as the framework tells.
    """

    title: str
    language: str
    text: str
    nodes: int | None = None
    stage: str = "before"
    lines: Mapping[int, Sequence[int]] = field(default_factory=dict)


@dataclass(frozen=True)
class Prepared:
    """A workload that is ready to be called.

    Attributes:
        run: one call (of a training step: one step), all arguments bound and in the framework's own
            arrays.  It returns when the result has been computed, not when that was begun.
        result: what `run` returned → arrays of NumPy, in the order of the workload's reference.
            Not timed.
        around: a context that all calls are made in, entered outside of what is timed.
        source: the user's function or class of this implementation, for `inspect.getsource`.
        details: asked for after the measurement: facts for the results, such as
            `planned_peak_bytes`, `nodes_before`, `nodes_after`.
        forms: asked for by `compare` alone, after a call.
    """

    run: Callable[[], Any]
    result: Callable[[Any], Sequence[Array]]
    around: Callable[[], contextlib.AbstractContextManager[Any]] = contextlib.nullcontext
    source: Any = None
    details: Callable[[], Mapping[str, Any]] = dict
    forms: Callable[[], Sequence[Form]] = list


class Runner:
    """One variant of a framework, in a process of its own.

    Attributes:
        framework: the name of the environment and of the requirements file; "" where it is part of
            what minigraph itself needs.
        package: what has to be importable.
        variants: name of the column → what it is, in a few words.
        baseline: column → the column that one has without compiling, with which break-even is
            computed: the framework's own eager one, or NumPy where it has none.  What it tells is
            when compiling pays for a user of that framework; across frameworks it does not compare.
        ablations: name of a further column, that is measured only to tell what one part of the
            compiler gains → what is left out.  They are "… without a part", and "… whole", which
            is measured again beside them.
    """

    framework: ClassVar[str] = ""
    package: ClassVar[str] = "numpy"
    variants: ClassVar[Mapping[str, str]] = {}
    baseline: ClassVar[Mapping[str, str]] = {}
    ablations: ClassVar[Mapping[str, str]] = {}

    def __init__(self, variant: str, threads: int) -> None:
        self.variant = variant
        self.threads = threads

    @classmethod
    def refuses(cls, variant: str, workload: Workload) -> str:
        """Why this variant has no implementation of a workload; "" if it has one.

        No framework is needed to tell, so that none is imported for what nobody wrote.
        """
        builds_all = cls.build is not Runner.build or cls.prepare is not Runner.prepare
        is_there = builds_all or hasattr(cls, workload.family)
        return "" if is_there else f"no implementation of {workload.family}"

    def load(self) -> None:
        """Import the framework and hold it to `threads` threads.

        Raises:
            ImportError: it is not installed here.
        """
        raise NotImplementedError

    def versions(self) -> Mapping[str, str]:
        """The versions of what was loaded."""
        raise NotImplementedError

    def threads_used(self) -> str:
        """How many threads the framework says that it uses."""
        raise NotImplementedError

    def prepare(self, case: Case) -> Prepared:
        """Build the workload.  What a framework does at the first call is left to that.

        Raises:
            NotWritten: this framework, or this variant, has no implementation.
        """
        reason = self.refuses(self.variant, case.workload)
        if reason:
            raise NotWritten(reason)
        return self.build(case)

    def build(self, case: Case) -> Prepared:
        """Build a workload that there is an implementation of."""
        return getattr(self, case.workload.family)(case)


def outputs_of(prepared: Prepared, calls: int, first: Any) -> list[Array]:
    """The outputs of so many calls, stacked; `first` is what the first of them returned.

    They are copies, since a framework may compute its next result into the same memory.
    """
    found = []
    for number in range(calls):
        returned = prepared.run() if number else first
        arrays = [np.array(each) for each in prepared.result(returned)]
        if any(each.dtype.hasobject for each in arrays):
            raise TypeError(f"a result is no array of numbers: {type(returned).__name__}")
        found.append(arrays)
    return found[0] if calls == 1 else [np.stack(each) for each in zip(*found, strict=True)]
