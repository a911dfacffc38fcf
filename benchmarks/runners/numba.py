"""Numba by hand: what minigraph's generated code is up against."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..workloads import Case, Workload
from .base import Prepared, Runner

LARGE = 100_000
"""Elements from which threads share the work."""


BY_HAND, NJIT = "Numba by hand", "Numba njit"


class NumbaByHand(Runner):
    """Runs loops that were written for Numba, workload by workload, or Python's own loops."""

    package = "numba"
    variants = {
        NJIT: "Python's loops over numbers as they stand, @njit",
        BY_HAND: "loops written by hand, @njit with threads and fastmath",
    }
    baseline = {NJIT: "Python", BY_HAND: "NumPy"}

    def load(self) -> None:
        import numba

        from ..natural import numba as natural
        from ..natural import numba_loops, numba_networks

        self.numba, self.natural = numba, natural
        self.loops, self.networks = numba_loops, numba_networks
        numba.set_num_threads(min(self.threads, numba.config.NUMBA_NUM_THREADS))

    def versions(self) -> Mapping[str, str]:
        return {"Numba": self.numba.__version__, "NumPy": np.__version__}

    def threads_used(self) -> str:
        return f"{self.numba.get_num_threads()} in parallel loops, BLAS {self.threads}"

    @classmethod
    def refuses(cls, variant: str, workload: Workload) -> str:
        if variant == NJIT:
            return "" if workload.kind == "loop" else "no loop over numbers"
        return "nobody writes these derivatives by hand" if workload.gradients else ""

    def build(self, case: Case) -> Prepared:
        family = case.workload.family
        if self.variant == NJIT:
            return _prepared(self.loops.AS_WRITTEN[family], *case.arguments)
        build = getattr(self, family, None)
        if build is not None:
            return build(case)
        function = getattr(self.loops if case.workload.kind == "loop" else self.natural, family)
        options = [*case.parameters.values(), *case.options.values()]
        return _prepared(function, *case.arguments, *options)

    # ---- elements and rows

    def fancy_func(self, case: Case) -> Prepared:
        return self._by_size("fancy_func", case)

    def chain(self, case: Case) -> Prepared:
        return self._by_size("chain", case)

    def _by_size(self, family: str, case: Case) -> Prepared:
        first = case.arguments[0]
        suffix = "" if np.ndim(first) == 0 else "_large" if first.size >= LARGE else "_small"
        return _prepared(getattr(self.natural, family + suffix), *case.arguments)

    def reduction(self, case: Case) -> Prepared:
        over = {0: "columns", 1: "rows"}[case.options["axis"]]
        return _prepared(getattr(self.natural, f"{case.options['method']}_{over}"), *case.arguments)

    # ---- networks

    def mlp(self, case: Case) -> Prepared:
        (x,) = case.arguments
        hidden = [np.empty((len(x), case.parameters[name].size), x.dtype) for name in ("b1", "b2")]
        return _prepared(self.networks.mlp, x, *case.parameters.values(), *hidden)

    def lstm(self, case: Case) -> Prepared:
        p = case.parameters
        weights = [np.ascontiguousarray(p[name].T) for name in ("w_ih", "w_hh")]
        return _prepared(self.networks.lstm, *case.arguments, *weights, p["b_ih"] + p["b_hh"])

    def gru(self, case: Case) -> Prepared:
        p = case.parameters
        weights = [np.ascontiguousarray(p[name].T) for name in ("w_ih", "w_hh")]
        return _prepared(self.networks.gru, *case.arguments, *weights, p["b_ih"], p["b_hh"])

    def encoder(self, case: Case) -> Prepared:
        p = case.parameters

        def layer(*names: str) -> Any:
            weight = np.concatenate([p[f"{name}_weight"] for name in names])
            bias = np.concatenate([p[f"{name}_bias"] for name in names])
            return np.ascontiguousarray(weight.T), bias

        layers = [layer("query", "key", "value"), *map(layer, ("output", "hidden", "last"))]
        norms = [(p[f"{name}_scale"], p[f"{name}_shift"]) for name in ("norm1", "norm2")]
        heads = case.options["heads"]
        return _prepared(self.networks.encoder, *case.arguments, heads, *layers, *norms)

    def mlp_training(self, case: Case) -> Prepared:
        p = {name: value.copy() for name, value in case.parameters.items()}
        weights, biases = (tuple(p[f"{kind}{i}"] for i in (1, 2, 3)) for kind in "wb")
        rate = case.options["rate"]
        if case.options["optimizer"] == "sgd":
            step_sgd = self.networks.step_sgd
            run_sgd = functools.partial(step_sgd, *case.arguments, weights, biases, rate)
            return Prepared(run_sgd, _loss, source=step_sgd.py_func)
        zeros = [tuple(map(np.zeros_like, each)) for each in (weights, weights, biases, biases)]
        state, step = tuple(zeros), 0

        def run() -> Any:
            nonlocal step
            step += 1
            return self.networks.step_adam(*case.arguments, weights, biases, rate, state, step)

        return Prepared(run, _loss, source=self.networks.step_adam.py_func)


def _prepared(function: Any, *arguments: Any) -> Prepared:
    run: Callable[[], Any] = functools.partial(function, *arguments)
    return Prepared(run, _results, source=function.py_func)


def _results(found: Any) -> tuple[np.ndarray[Any, Any]]:
    return (np.asarray(found),)


def _loss(found: float) -> tuple[np.ndarray[Any, Any]]:
    """A float32 that Numba returned as Python's float."""
    return (np.asarray(found, np.float32),)
