"""A runner's answer to a workload, in this process; for the tests of runners."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchmarks.harness.checking import Verdict, check
from benchmarks.runners.base import outputs_of
from benchmarks.workloads import WORKLOADS, Case, Workload

SCALE = 0.01


def one_of_each_family() -> Iterator[Workload]:
    """For parametrised tests."""
    found: dict[tuple[str, Any], Workload] = {}
    for workload in WORKLOADS.values():
        found.setdefault((workload.family, str(workload.options), workload.dtype), workload)
    yield from found.values()


def case_of(name: str) -> Case:
    return WORKLOADS[name].case(SCALE)


def answer(runner: Any, name: str) -> Verdict:
    """What is said of the outputs, which are made as a worker makes them."""
    case = case_of(name)
    prepared = runner.prepare(case)
    with prepared.around():
        outputs = outputs_of(prepared, case.workload.calls, prepared.run())
    return check(case, outputs, case.expected())


def texts_of_lines(lines: Mapping[int, Sequence[int]], file: str, text: str) -> dict[str, str]:
    """Lines of a file → the lines of a form that came of them; without what is around."""
    with open(file) as source:
        written, made = source.read().splitlines(), text.splitlines()
    return {
        written[line - 1].strip(): "\n".join(made[number - 1].strip() for number in of_it)
        for line, of_it in lines.items()
    }
