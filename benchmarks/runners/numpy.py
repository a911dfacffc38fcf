"""NumPy as it is, operation by operation; loops over numbers in plain Python."""

from __future__ import annotations

import functools
from collections.abc import Mapping

import numpy as np

from .. import formulas
from ..workloads import Case, Workload
from .base import Prepared, Runner


class NumPy(Runner):
    """Runs the formulas of the user's code without any compiler."""

    variants = {"NumPy": "operation by operation; loops over numbers in plain Python"}
    baseline = {}

    def load(self) -> None:
        """Nothing: NumPy is there, and its BLAS reads the environment."""

    def versions(self) -> Mapping[str, str]:
        return {"NumPy": np.__version__}

    def threads_used(self) -> str:
        return f"BLAS {self.threads}; the rest of NumPy 1"

    @classmethod
    def refuses(cls, variant: str, workload: Workload) -> str:
        if workload.gradients:
            return "NumPy has no derivatives, and nobody writes these by hand"
        return ""

    def build(self, case: Case) -> Prepared:
        function = formulas.formula(case, np)
        return Prepared(
            functools.partial(function, *case.arguments),
            lambda result: (np.asarray(result),),
            quiet,
            source=function,
        )


def quiet() -> np.errstate:
    """What becomes infinite on the way is not told."""
    return np.errstate(all="ignore")
