"""NumPy as it is, operation by operation, and loops over numbers in plain Python."""

from __future__ import annotations

import functools
from collections.abc import Mapping

import numpy as np

from .. import formulas
from ..natural import numpy as natural
from ..natural import python
from ..workloads import Case, Workload
from .base import Prepared, Runner

PYTHON = "Python"


class NumPy(Runner):
    """Runs the formulas of the user's code without any compiler."""

    variants = {
        PYTHON: "loops over numbers, on ints and lists",
        "NumPy": "operation by operation; loops are those over arrays",
    }

    def load(self) -> None:
        """Nothing: NumPy is there, and its BLAS reads the environment."""

    def versions(self) -> Mapping[str, str]:
        return {"NumPy": np.__version__}

    def threads_used(self) -> str:
        return "1" if self.variant == PYTHON else f"BLAS {self.threads}; the rest of NumPy 1"

    @classmethod
    def refuses(cls, variant: str, workload: Workload) -> str:
        if variant == PYTHON and workload.kind != "loop":
            return "plain Python is for loops over numbers"
        if workload.gradients:
            return "NumPy has no derivatives, and nobody writes these by hand"
        return ""

    def build(self, case: Case) -> Prepared:
        arguments = case.arguments
        if self.variant == PYTHON:
            function = getattr(python, case.workload.family)
            arguments = tuple(np.asarray(each).tolist() for each in arguments)
        elif case.workload.kind == "loop":
            function = getattr(natural, case.workload.family)
        else:
            function = formulas.formula(case, np)
        return Prepared(
            functools.partial(function, *arguments),
            lambda result: (np.asarray(result),),
            quiet,
            source=function,
        )


def quiet() -> np.errstate:
    """What becomes infinite on the way is not told."""
    return np.errstate(all="ignore")
