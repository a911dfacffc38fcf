"""minigraph: functions by `mg.jit` and `mg.script`, with each backend."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import numpy as np

from .. import formulas
from ..workloads import Case
from .base import Prepared, Runner
from .numpy import quiet


class Minigraph(Runner):
    """Runs the formulas compiled."""

    package = "minigraph"
    variants = {
        "minigraph numba": "mg.jit: fused loops, compiled",
        "minigraph python": "mg.jit: generated Python over NumPy",
        "minigraph interpret": "mg.jit: the optimised graph, node by node",
    }
    baseline = dict.fromkeys(variants, "NumPy")

    def load(self) -> None:
        import minigraph as mg

        self.mg: Any = mg
        self.backend = self.variant.split()[1]
        if self.backend == "numba":
            import numba

            numba.set_num_threads(min(self.threads, numba.config.NUMBA_NUM_THREADS))
        mg.set_num_threads(self.threads)

    def versions(self) -> Mapping[str, str]:
        return {"minigraph": self.mg.__version__, "NumPy": np.__version__}

    def threads_used(self) -> str:
        return f"{self.mg.get_num_threads()} in kernels, BLAS {self.threads}"

    def prepare(self, case: Case) -> Prepared:
        function = formulas.formula(case, np)
        compiler = self.mg.script if case.workload.kind == "loop" else self.mg.jit
        compiled = compiler(function, backend=self.backend)
        return Prepared(
            functools.partial(compiled, *case.arguments),
            lambda result: (np.asarray(result),),
            quiet,
            source=function,
        )
