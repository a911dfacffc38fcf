"""minigraph: functions by `mg.jit` and `mg.script` with each backend, and networks of blocks."""

from __future__ import annotations

import copy
import functools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .. import formulas
from ..workloads import Case, Workload
from .base import Array, Form, NotWritten, Prepared, Runner
from .numpy import quiet

PASSES = {
    "fusion": ("fuse",),
    "CSE": ("cse",),
    "folding and simplifying": ("fold", "fold_branches", "simplify", "propagate"),
    "hoisting": ("hoist",),
}
"""What can be left out by leaving out passes."""

SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "buffer reuse": {"reuse_buffers": False},
    "threads in kernels": {"num_threads": 1},
    "its own vector math": {"math": "libm"},
}
"""What can be left out by a setting."""

BLOCKS = ("block", "hybridize")


def passes_without(mg: Any, *names: str) -> tuple[str, ...]:
    """All passes of the Numba backend, as they are by default, but for some."""
    return tuple(p for p in (*mg.passes.DEFAULT, *mg.passes.LOWERINGS) if p not in names)


def _way(variant: str) -> str:
    """The backend, or how blocks are run."""
    return variant.split()[1]


class Minigraph(Runner):
    """One backend, or one way to run a network of blocks."""

    package = "minigraph"
    variants = {
        "minigraph numba": "mg.jit: fused loops, compiled",
        "minigraph python": "mg.jit: generated Python over NumPy",
        "minigraph interpret": "mg.jit: the optimised graph, node by node",
        "minigraph cupy": "mg.jit: fused kernels on a GPU",
        "minigraph block": "blocks, run by Python",
        "minigraph hybridize": "blocks, hybridized; training by tape and trainer",
        "minigraph hybridize static": "hybridized with static_alloc and static_shape",
    }
    baseline = {
        **dict.fromkeys(("minigraph numba", "minigraph python", "minigraph interpret"), "NumPy"),
        "minigraph hybridize": "minigraph block",
        "minigraph hybridize static": "minigraph block",
    }
    ablations = {
        "minigraph numba whole": "nothing",
        **{f"minigraph numba without {name}": name for name in (*PASSES, *SETTINGS)},
    }

    def load(self) -> None:
        import minigraph as mg

        self.mg: Any = mg
        mg.set_num_threads(self.threads)
        self.in_blocks = _way(self.variant) in BLOCKS
        way = "numba" if self.in_blocks else _way(self.variant)
        self.options: dict[str, Any] = {"backend": way}
        if way not in mg.backends.names():
            raise ImportError(f"minigraph has no backend {way}")
        if way == "numba":
            import numba  # noqa: F401  # part of the time to import, not of that to compile
        if self.variant.endswith("static"):
            self.options |= {"static_alloc": True, "static_shape": True}
        left_out = self.ablations.get(self.variant)
        if left_out in PASSES:
            self.options["passes"] = passes_without(mg, *PASSES[left_out])
        else:
            self.options |= SETTINGS.get(left_out or "", {})

    def versions(self) -> Mapping[str, str]:
        return {"minigraph": self.mg.__version__, "NumPy": np.__version__}

    def threads_used(self) -> str:
        return f"{self.mg.get_num_threads()} in kernels, BLAS {self.threads}"

    @classmethod
    def refuses(cls, variant: str, workload: Workload) -> str:
        way = _way(variant)
        if way in BLOCKS and not hasattr(cls, workload.family):
            return "no network"
        is_slow = way == "interpret" and workload.kind == "loop"
        return "the interpreter takes seconds for each call of a loop" if is_slow else ""

    def build(self, case: Case) -> Prepared:
        left_out = PASSES.get(self.ablations.get(self.variant, ""), ())
        if left_out and self.graph(case) == self.graph(case, *left_out):
            raise NotWritten("it changes nothing here")
        return self._built(case)

    def graph(self, case: Case, *left_out: str) -> str:
        """After all passes but some, which are the same for each backend; called in Python."""
        other = copy.copy(self)
        other.options = {"backend": "python", "passes": passes_without(self.mg, *left_out)}
        prepared = other._built(case)
        with prepared.around():
            prepared.run()
        return str(prepared.run.func.stages[-1].graph)

    def _built(self, case: Case) -> Prepared:
        build = getattr(self, case.workload.family, None)
        if build is not None:
            return build(case)
        function = formulas.formula(case, np)
        compiler = self.mg.script if case.workload.kind == "loop" else self.mg.jit
        return self._prepared(compiler(function, **self.options), case.arguments, function)

    # ---- networks

    def mlp(self, case: Case) -> Prepared:
        if self.in_blocks:
            return self._predicting("mlp", case)
        function = formulas.mlp(np, **case.parameters)
        return self._prepared(self.mg.jit(function, **self.options), case.arguments, function)

    def lstm(self, case: Case) -> Prepared:
        return self._predicting("lstm", case)

    def gru(self, case: Case) -> Prepared:
        return self._predicting("gru", case)

    def encoder(self, case: Case) -> Prepared:
        return self._predicting("encoder", case)

    def lstm_training(self, case: Case) -> Prepared:
        return self._differentiating("lstm", "sum", case)

    def gru_training(self, case: Case) -> Prepared:
        return self._differentiating("gru", "sum", case)

    def encoder_training(self, case: Case) -> Prepared:
        return self._differentiating("encoder", "mean", case)

    def mlp_training(self, case: Case) -> Prepared:
        from ..natural import minigraph as natural

        net, _ = natural.network("mlp", case.parameters)
        loss = self.mg.nn.SoftmaxCrossEntropyLoss()
        step = natural.training(net, loss, **case.options)
        if self.in_blocks:
            self._hybridize(net, loss)
            return self._prepared(step, self._arrays(case), step, net)
        return self._prepared(self.mg.jit(step, **self.options), self._arrays(case), step)

    def _predicting(self, family: str, case: Case) -> Prepared:
        from ..natural import minigraph as natural

        net, _ = natural.network(family, case.parameters, **case.options)
        predict = natural.predicting(net)
        if self.in_blocks:
            self._hybridize(net)
            return self._prepared(net, self._arrays(case), predict, net)
        return self._prepared(self.mg.jit(predict, **self.options), case.arguments, predict)

    def _differentiating(self, family: str, reduction: str, case: Case) -> Prepared:
        from ..natural import minigraph as natural

        net, parameters = natural.network(family, case.parameters, **case.options)
        step = natural.differentiating(net, reduction)
        run: Any = step
        if self.in_blocks:
            self._hybridize(net)
        else:
            run = self.mg.jit(step, **self.options)

        def result(loss: Any) -> Sequence[Array]:
            return [np.asarray(each) for each in (loss, *(p.grad() for p in parameters))]

        compiled = net if self.in_blocks else run
        return Prepared(
            functools.partial(run, *self._arrays(case)),
            result,
            quiet,
            source=step,
            details=lambda: self._details(compiled),
            forms=lambda: self._forms(compiled, step),
        )

    def _hybridize(self, *blocks: Any) -> None:
        if self.variant != "minigraph block":
            for block in blocks:
                block.hybridize(**self.options)

    def _arrays(self, case: Case) -> Sequence[Any]:
        return [self.mg.array(each) for each in case.arguments]

    def _prepared(
        self, run: Any, arguments: Sequence[Any], source: Any, compiled: Any = None
    ) -> Prepared:
        return Prepared(
            functools.partial(run, *arguments),
            lambda result: (np.asarray(result),),
            quiet,
            source=source,
            details=lambda: self._details(compiled or run),
            forms=lambda: self._forms(compiled or run, source),
        )

    def _details(self, function: Any) -> Mapping[str, Any]:
        from ..forms import minigraph as forms

        return {} if self.variant == "minigraph block" else forms.details(function)

    def _forms(self, function: Any, source: Any) -> Sequence[Form]:
        from ..forms import minigraph as forms

        return [] if self.variant == "minigraph block" else forms.forms(function, source)
