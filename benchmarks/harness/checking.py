"""What a runner has computed, held against the right answer before anything is timed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..workloads import Array, Case


@dataclass(frozen=True)
class Verdict:
    """What was found.

    Attributes:
        wrong: what is wrong; nothing, if all is right.
        error: the largest difference, as a share of the largest number expected, or, where a
            workload counts, the share of elements that differ (None: it cannot be told).
    """

    wrong: str = ""
    error: float | None = None


def request(case: Case) -> dict[str, Any]:
    """What a worker is asked for with `prepare`: that it builds the case, and saves its outputs."""
    return {"workload": case.workload.name, "scale": case.scale, "digest": case.digest}


def judged(case: Case, saved: str, expected: Sequence[Array]) -> Verdict:
    """`check` of the outputs that a worker has saved; their file is gone then."""
    with np.load(saved) as file:
        outputs = [file[name] for name in file.files]
    Path(saved).unlink()
    return check(case, outputs, expected)


def check(case: Case, outputs: Sequence[Array], expected: Sequence[Array]) -> Verdict:
    """Shapes, dtypes and values of a runner's outputs."""
    wrong = _wrong_kind(case, outputs)
    if wrong:
        return Verdict(wrong)
    found = case.compared(outputs)
    if len(found) != len(expected):
        return Verdict(f"{len(found)} results instead of {len(expected)}")
    for got, right in zip(found, expected, strict=True):
        if got.shape != right.shape:
            return Verdict(f"a result of shape {got.shape} instead of {right.shape}")
    for got in found:
        strange = np.count_nonzero(~np.isfinite(got))
        if strange:
            return Verdict(f"{strange} of {got.size} numbers are not finite")
    if case.workload.gradients:  # one of them may be 0 by theory: they are compared as one
        found, expected = ((each[0], np.stack(each[1:])) for each in (found, expected))
    errors = [_error(case, got, right) for got, right in zip(found, expected, strict=True)]
    error = max(errors)
    if error > case.workload.tolerance:
        return Verdict(_distance(case, error), error)
    return Verdict("", error)


def _wrong_kind(case: Case, outputs: Sequence[Array]) -> str:
    """What is wrong with the dtypes, or with the shapes of gradients."""
    wanted = case.workload.dtype
    for output in outputs:
        if wanted and output.dtype != np.dtype(wanted):
            return f"a result of dtype {output.dtype} instead of {wanted}"
        if not wanted and output.dtype.kind not in "iu":
            return f"a result of dtype {output.dtype} instead of an integer"
    if not case.workload.gradients:
        return ""
    shapes = [each.shape for each in case.parameters.values()]
    got = [each.shape for each in outputs[1:]]
    return "" if got == shapes else f"gradients of shapes {got} instead of {shapes}"


def _error(case: Case, got: Array, right: Array) -> float:
    if case.workload.counts:
        return float(np.mean(got != right))
    if not right.size:
        return 0.0
    difference = np.max(np.abs(got.astype(np.float64) - right))
    largest = np.max(np.abs(right))
    return float(difference / largest) if largest else float(difference)


def _distance(case: Case, error: float) -> str:
    at_most = f"{case.workload.tolerance:.2g}"
    if case.workload.counts:
        return f"{error:.2g} of the elements differ from the reference; {at_most} may"
    return f"{error:.2g} away from the reference; {at_most} is allowed"
