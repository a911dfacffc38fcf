"""PyTensor, with all rewrites, then the Numba linker, which is the default of its version.

The recurrent layers, which are scans, go to the C linker: by Numba they compile for half a minute
instead of ten seconds, and then take half as much time again, or twice as much with gradients.

Arguments are arrays of NumPy, as PyTensor takes them, trusted to be of the right type; parameters
are shared variables.  Its own loops run on one thread; only its BLAS, that of SciPy, has more.
"""

from __future__ import annotations

import functools
import io
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .. import formulas
from ..workloads import Case, Workload
from .base import Array, Form, Prepared, Runner

SOURCES = (Path(formulas.__file__).parent, Path(formulas.__file__).parent / "natural")
SCANS = ("lstm", "gru")


class PyTensor(Runner):
    framework = "pytensor"
    package = "pytensor"
    variants = {"PyTensor": "pytensor.function; scans by the C linker, the rest by Numba"}
    baseline = {"PyTensor": "NumPy"}

    def load(self) -> None:
        import pytensor
        from pytensor.graph import traversal

        from ..natural import pytensor as natural

        self.pytensor: Any = pytensor
        self.traversal: Any = traversal
        self.natural: Any = natural

    def versions(self) -> Mapping[str, str]:
        import numba

        return {"PyTensor": self.pytensor.__version__, "its Numba": numba.__version__}

    def threads_used(self) -> str:
        return f"BLAS {self.threads}; loops 1"

    @classmethod
    def refuses(cls, variant: str, workload: Workload) -> str:
        if workload.family in ("levenshtein", "sieve"):
            return "its loop writes to single elements; a scan would copy the array"
        return ""

    def build(self, case: Case) -> Prepared:
        arguments = [np.asarray(each) for each in case.arguments]
        self.pytensor.config.floatX = case.workload.dtype or "float64"  # what Python's floats are
        symbols = [self.pytensor.tensor.tensor(dtype=a.dtype, shape=a.shape) for a in arguments]
        source, results, updates = self._written(case, symbols)
        by_c = self.pytensor.compile.mode.Mode("cvm", "fast_run")
        mode = by_c if case.workload.family.startswith(SCANS) else None  # the default
        function = self.pytensor.function(symbols, results, updates=updates, mode=mode)
        function.trust_input = True
        return Prepared(
            functools.partial(function, *arguments),
            _arrays,
            source=source,
            details=lambda: {
                "nodes_before": len(self.traversal.io_toposort(symbols, results)),
                "nodes_after": len(function.maker.fgraph.apply_nodes),
            },
            forms=lambda: [
                self._form("graph", "before", results),
                self._form("graph, rewritten", "after", function.maker.fgraph.outputs),
            ],
        )

    def _written(self, case: Case, symbols: Sequence[Any]) -> tuple[Any, list[Any], Any]:
        """The user's function, what it returns for the symbols, and updates of parameters."""
        family = case.workload.family
        source = getattr(self.natural, family.removesuffix("_training"), None)
        parameters = {
            name: self.pytensor.shared(value, name, shape=value.shape)
            for name, value in case.parameters.items()
        }
        if family == "mlp_training":
            source = self.natural.mlp_training
            loss, updates = source(*symbols, **parameters, **case.options)
            return source, [loss], updates
        if source is None:
            source = formulas.formula(case, self.pytensor.tensor, parameters)
            return source, [source(*symbols)], None
        found = source(*symbols, **parameters, **case.options)
        if case.workload.gradients:
            reduction = "mean" if family == "encoder_training" else "sum"
            return source, self.natural.loss_and_gradients(found, reduction, parameters), None
        return source, [found], None

    def _form(self, title: str, stage: str, results: Sequence[Any]) -> Form:
        text, ids = io.StringIO(), dict[Any, str]()
        self.pytensor.dprint(results, file=text, used_ids=ids)
        applied = list(self.traversal.applys_between([], results))
        source_lines = {ids[node]: _line(node) for node in applied if node in ids}
        lines: dict[int, list[int]] = {}
        for number, printed in enumerate(text.getvalue().splitlines(), 1):
            for line in map(source_lines.get, re.findall(r"\[id \w+\]", printed)):
                if line is not None:
                    lines.setdefault(line, []).append(number)
        return Form(title, "pytensor", text.getvalue(), len(applied), stage, lines)


def _line(node: Any) -> int | None:
    """The line of the user's source that made a node, if PyTensor has kept it."""
    frames = [
        frame
        for output in node.outputs
        for trace in getattr(output.tag, "trace", None) or []
        for frame in trace
        if Path(frame[0]).parent in SOURCES
    ]
    return frames[-1][1] if frames else None


def _arrays(result: Sequence[Any]) -> Sequence[Array]:
    return [np.asarray(each) for each in result]
