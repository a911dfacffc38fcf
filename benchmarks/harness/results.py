"""The results of a run: one JSON file, from which all tables and plots are made.

`results.schema.json` says what is in the file; what is computed from it (statistics, break-even) is
not in there.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jsonschema

from minigraph.measuring import Statistics

SCHEMA = 1
STATUSES = (
    "measured",
    "wrong",  # another result than the reference; not timed
    "crashed",  # the process ended, or the runner raised an exception
    "timed out",
    "not written",  # there is no implementation
    "missing",  # the framework is not installed
    "not reached",  # no time was left, or the run was interrupted
)
_SCHEMA_FILE = Path(__file__).with_name("results.schema.json")


class Unreadable(Exception):
    """A file that is no result of a run, or of another version; the text says why."""


@dataclass(frozen=True)
class Column:
    """A runner, as it was found on the machine.

    Attributes:
        about: what it is, in a few words.
        versions: of what it loaded; threads: how many it says that it uses.
        baseline: the column that break-even is computed with (None: none).
        missing: why it could not be loaded (None: it could).
        ablation: whether it leaves out a part of a compiler.
    """

    framework: str
    about: str
    versions: Mapping[str, str] = field(default_factory=dict)
    threads: str = ""
    baseline: str | None = None
    missing: str | None = None
    ablation: bool = False


@dataclass(frozen=True)
class Work:
    """A workload, as it was when it was measured; see `workloads.Workload`."""

    title: str
    family: str
    kind: str
    size: int
    operations: int
    products: bool
    dtype: str
    tolerance: float


@dataclass(frozen=True)
class Warming:
    """How the warm-up went: how many calls, and whether their speed became steady."""

    calls: int
    stable: bool


@dataclass
class Cell:
    """A workload in a runner.

    Attributes:
        status: one of `STATUSES`; message: why, where it is not "measured".
        error: how far the result is from the reference, as a share of the largest number expected.
        prepare_s: of building; first_call_s: of building and the first call, with all compiling.
        import_s: of importing the framework.
        samples_s: seconds of one call, a list for each round.
        memory: what `harness.memory.Memory` tells, in bytes, and what the process took after the
            import (None: the system does not tell).
        details: what a compiler tells of what it made.
    """

    workload: str
    runner: str
    status: str = "not reached"
    message: str = ""
    error: float | None = None
    prepare_s: float | None = None
    first_call_s: float | None = None
    import_s: float | None = None
    warm_up: Warming | None = None
    calls_per_sample: int = 1
    samples_s: list[list[float]] = field(default_factory=list)
    memory: dict[str, Any] | None = None
    details: dict[str, Any] = field(default_factory=dict)

    @property
    def statistics(self) -> Statistics:
        """Over all samples of all rounds; only of a measured cell."""
        return Statistics.of(list(itertools.chain.from_iterable(self.samples_s)))

    def break_even(self, other: Cell) -> int | None:
        """With how many calls this one is done before the other, both beginning at nothing.

        None where it never is: it is slower, or the two are not told apart.
        """
        mine, theirs = self.statistics, other.statistics
        gain_s = theirs.median_s - mine.median_s
        if gain_s <= 0 or mine.overlaps(theirs):
            return None
        assert self.first_call_s is not None and other.first_call_s is not None
        more_s = self.first_call_s - other.first_call_s  # and n - 1 calls follow
        return 1 + max(0, math.ceil(more_s / gain_s))


@dataclass
class Results:
    """All of a run; the contract of each field is `results.schema.json`."""

    kind: str
    started: str
    machine: dict[str, Any]
    threads: int
    method: dict[str, Any]
    scale: float = 1.0
    commit: str | None = None
    dirty: bool | None = None
    finished: str | None = None
    interrupted: bool = False
    load: list[float] = field(default_factory=list)
    roofs: dict[str, Any] | None = None
    runners: dict[str, Column] = field(default_factory=dict)
    workloads: dict[str, Work] = field(default_factory=dict)
    cells: list[Cell] = field(default_factory=list)

    def cell(self, workload: str, runner: str) -> Cell | None:
        """None where the runner was not asked for, or the workload is not meant for it."""
        found = (each for each in self.cells if (each.workload, each.runner) == (workload, runner))
        return next(found, None)

    def break_even(self, cell: Cell) -> int | None:
        """`Cell.break_even` with the column that does not compile.

        None also where that has no measurement.
        """
        column = self.runners[cell.runner].baseline
        other = self.cell(cell.workload, column) if column else None
        if other is None or {cell.status, other.status} != {"measured"}:
            return None
        return cell.break_even(other)

    @property
    def has_any(self) -> bool:
        """Whether something was measured."""
        return any(cell.status == "measured" for cell in self.cells)

    def save(self, path: Path) -> None:
        """Write the file; what was there stays until all of it is written."""
        known = {"schema": SCHEMA, **dataclasses.asdict(self)}
        text = json.dumps(known, indent=1, allow_nan=False, ensure_ascii=False)
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_name(f"{path.name}.unfinished")
        unfinished.write_text(f"{text}\n", encoding="utf-8")
        os.replace(unfinished, path)


def load(path: Path) -> Results:
    """Read a file that `save` has written.

    Raises:
        Unreadable: it is none.
    """
    try:
        known = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise Unreadable(f"{path} cannot be read: {error}") from error
    validate(known)
    del known["schema"]
    known["runners"] = {name: Column(**each) for name, each in known["runners"].items()}
    known["workloads"] = {name: Work(**each) for name, each in known["workloads"].items()}
    known["cells"] = [_cell(each) for each in known["cells"]]
    return Results(**known)


def _cell(known: dict[str, Any]) -> Cell:
    warm_up = known["warm_up"]
    return Cell(**{**known, "warm_up": warm_up and Warming(**warm_up)})


def validate(known: Any) -> None:
    """Hold parsed JSON against the schema.

    Raises:
        Unreadable: it does not agree; the text names the place.
    """
    schema = json.loads(_SCHEMA_FILE.read_text(encoding="utf-8"))
    wrong = jsonschema.exceptions.best_match(
        jsonschema.Draft202012Validator(schema).iter_errors(known)
    )
    if wrong is not None:
        raise Unreadable(f"no results of this version: {wrong.json_path}: {wrong.message}")
