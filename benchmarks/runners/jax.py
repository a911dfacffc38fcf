"""JAX: `jax.jit` of what its users write.

Formulas of arrays are NumPy's own, with `jax.numpy` in its place.  Parameters are arguments, as
everywhere in JAX; loops are those of `jax.lax`.  Float64 is switched on for workloads in float64
alone.  A step of training gives its state away (`donate_argnums`), so that it is updated in place.
XLA's pool has as many threads as NPROC says, else as many as the process may use cores.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .. import formulas
from ..workloads import Case
from .base import Array, Form, Prepared, Runner


class Jax(Runner):
    framework = "jax"
    package = "jax"
    variants = {"JAX jit": "jax.jit; XLA for CPUs"}
    baseline = {"JAX jit": "NumPy"}

    def load(self) -> None:
        os.environ.setdefault("JAX_PLATFORMS", "cpu")
        os.environ["NPROC"] = str(self.threads)  # how many threads XLA makes
        import jax

        from ..natural import jax as natural

        self.jax: Any = jax
        self.natural: Any = natural

    def versions(self) -> dict[str, str]:
        import jaxlib

        return {"jax": self.jax.__version__, "jaxlib": jaxlib.__version__}

    def threads_used(self) -> str:
        """The threads of XLA's pool by their name, where the system tells it; NPROC sets them."""
        self.jax.devices()  # makes the pool
        names = [path.read_text().strip() for path in Path("/proc/self/task").glob("*/comm")]
        if not names:
            return f"NPROC={os.environ['NPROC']}"
        return f"{sum(name.startswith('tf_XLAEigen') for name in names)} in XLA's pool"

    def build(self, case: Case) -> Prepared:
        self.jax.config.update("jax_enable_x64", case.workload.dtype == "float64")
        return getattr(self, case.workload.family, self._formula)(case)

    def _called(
        self,
        function: Callable[..., Any],
        arguments: Sequence[Any],
        source: Any = None,
        several: bool = False,
        **options: Any,
    ) -> Prepared:
        """A function that returns one array, or `several` in a tree."""
        source = source or function
        compiled = self.jax.jit(function, **options)
        wait = self.jax.block_until_ready
        return Prepared(
            (lambda: wait(compiled(*arguments)))
            if several
            else (lambda: compiled(*arguments).block_until_ready()),
            lambda found: list(map(np.asarray, self.jax.tree.leaves(found))),
            source=source,
            forms=lambda: self._forms(compiled, arguments, source),
        )

    def _forms(self, compiled: Any, arguments: Sequence[Any], source: Any) -> list[Form]:
        from ..forms import jax as forms

        return forms.forms(compiled, arguments, inspect.getsourcefile(source) or "")

    def _parameters(self, case: Case) -> dict[str, Any]:
        return {name: self.jax.numpy.asarray(each) for name, each in case.parameters.items()}

    def _arrays(self, case: Case) -> list[Any]:
        return [self.jax.numpy.asarray(each) for each in case.arguments]

    def _formula(self, case: Case) -> Prepared:
        """A formula of NumPy's, with jax.numpy in its place."""
        jnp = self.jax.numpy

        def call(parameters: Any, *arguments: Any) -> Any:
            return formulas.formula(case, jnp, parameters)(*arguments)

        source = formulas.formula(case, jnp)
        return self._called(call, (self._parameters(case), *self._arrays(case)), source)

    def _network(self, case: Case) -> Prepared:
        function = functools.partial(getattr(self.natural, case.workload.family), **case.options)
        arguments = (self._parameters(case), *self._arrays(case))
        return self._called(function, arguments, function.func)

    softmax = layer_norm = lstm = gru = encoder = _network

    # ---- training ------------------------------------------------------------------------------

    def mlp_training(self, case: Case) -> Prepared:
        start, update = getattr(self.natural, case.options["optimizer"])(case.options["rate"])
        compiled = self.jax.jit(update, donate_argnums=0)
        arguments = self._arrays(case)
        state = start({name: each.copy() for name, each in self._parameters(case).items()})

        def step() -> Any:
            nonlocal state
            loss, state = self.jax.block_until_ready(compiled(state, *arguments))
            return loss

        return Prepared(
            step,
            lambda loss: (np.asarray(loss),),
            source=self.natural.mlp_loss,
            forms=lambda: self._forms(compiled, (state, *arguments), self.natural.mlp_loss),
        )

    def _gradients(self, case: Case) -> Prepared:
        """The loss is the sum or mean of the squares; nothing is updated."""
        family, _, _ = case.workload.family.partition("_")
        network = functools.partial(getattr(self.natural, family), **case.options)
        reduction = "mean" if family == "encoder" else "sum"

        def loss(parameters: Any, x: Any) -> Any:
            return getattr(self.jax.numpy.square(network(parameters, x)), reduction)()

        arguments = (self._parameters(case), *self._arrays(case))
        prepared = self._called(
            self.jax.value_and_grad(loss), arguments, network.func, several=True
        )

        def result(found: Any) -> Sequence[Array]:
            loss, gradients = found
            return [np.asarray(each) for each in (loss, *map(gradients.get, case.parameters))]

        return dataclasses.replace(prepared, result=result)

    lstm_training = gru_training = encoder_training = _gradients

    # ---- loops over numbers --------------------------------------------------------------------

    def _loop(self, case: Case) -> Prepared:
        return self._called(getattr(self.natural, case.workload.family), case.arguments)

    collatz = newton = _loop

    def levenshtein(self, case: Case) -> Prepared:
        return self._called(self.natural.levenshtein, self._arrays(case))

    def sieve(self, case: Case) -> Prepared:
        return self._called(self.natural.sieve, case.arguments, static_argnums=0)
