"""MXNet 1.9.1 and Gluon: imperative, hybridized, and hybridized with static memory and shapes.

Functions are called on arrays (`mxnet.nd`), or hybridized as a `HybridLambda`; networks are
blocks, of Gluon's layers where it has them.  The LSTM and the GRU are Gluon's, which call one
operator for all steps, oneDNN's in inference.  Training is that of the textbook, by
`autograd.record` and `gluon.Trainer`.  OpenMP's threads sleep where they wait: by default they
keep the cores busy, and a call takes a thousand times as long where another program runs.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..workloads import Case, Workload
from .base import Array, Form, Prepared, Runner

IMPERATIVE, HYBRID, STATIC = "MXNet imperative", "MXNet hybridize", "MXNet hybridize static"
TOO_SLOW = {
    IMPERATIVE: "20 µs or more for each operation on a number: at least twenty seconds a call",
    HYBRID: "an iteration of contrib.while_loop takes 0.1 ms or more: at least ten seconds a call",
}
THREADS = "OMP_NUM_THREADS", "MXNET_OMP_MAX_THREADS"


class MXNet(Runner):
    framework = "mxnet"
    package = "mxnet"
    variants = {
        IMPERATIVE: "operation by operation",
        HYBRID: "hybridize()",
        STATIC: "hybridize(static_alloc=True, static_shape=True)",
    }
    baseline = dict.fromkeys((HYBRID, STATIC), IMPERATIVE)

    def load(self) -> None:
        os.environ.update(dict.fromkeys(THREADS, str(self.threads)))
        os.environ["OMP_WAIT_POLICY"] = "passive"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it uses names that NumPy is to drop
            import mxnet

            from ..natural import mxnet as natural

        self.mx: Any = mxnet
        self.natural: Any = natural

    def versions(self) -> Mapping[str, str]:
        return {"mxnet": self.mx.__version__}

    def threads_used(self) -> str:
        return ", ".join(f"{name}={os.environ[name]}" for name in (*THREADS, "OMP_WAIT_POLICY"))

    @classmethod
    def refuses(cls, variant: str, workload: Workload) -> str:
        if workload.family == "sieve":
            return "" if variant == IMPERATIVE else "a graph has no slices that are written"
        if workload.kind == "loop":
            return TOO_SLOW.get(variant, TOO_SLOW[HYBRID])
        return super().refuses(variant, workload)

    # ---- how a function or a block is run ------------------------------------------------------

    def _hybridized(self, block: Any) -> Any:
        """A block as this column calls it."""
        if self.variant == HYBRID:
            block.hybridize()
        elif self.variant == STATIC:
            block.hybridize(static_alloc=True, static_shape=True)
        return block

    def _called(
        self, called: Callable[..., Any], arguments: Sequence[Any], source: Any
    ) -> Prepared:
        def run() -> Any:
            found = called(*arguments)
            found.wait_to_read()
            return found

        return Prepared(
            run,
            lambda found: (found.asnumpy(),),
            source=source,
            forms=functools.partial(self._forms, called),
        )

    def _forms(self, called: Any) -> list[Form]:
        """The symbol of a block that was called; MXNet does not show what it makes of that."""
        if self.variant == IMPERATIVE:
            return []
        _, symbol = called._cached_graph
        text = symbol.tojson()
        count = sum(node["op"] != "null" for node in json.loads(text)["nodes"])
        return [Form("symbol", "json", text, count)]

    def _function(self, case: Case) -> Prepared:
        """A workload without parameters, which is a function of the same name."""
        return self._of(case, getattr(self.natural, case.workload.family))

    def _of(self, case: Case, function: Any) -> Prepared:
        if self.variant == IMPERATIVE:
            called: Any = functools.partial(function, self.mx.nd)
        else:
            called = self._hybridized(self.mx.gluon.nn.HybridLambda(function))
        return self._called(called, self._arrays(case), function)

    def _block(self, case: Case, block: Any, source: Any = None) -> Prepared:
        """A workload that is a block, whose parameters have been set."""
        source = source or type(block).hybrid_forward
        return self._called(self._hybridized(block), self._arrays(case), source)

    def _arrays(self, case: Case) -> list[Any]:
        """Arguments; numbers as arrays of one element, since there are none without axes."""
        given = map(np.atleast_1d, case.arguments)
        return [self.mx.nd.array(each, dtype=each.dtype) for each in given]

    # ---- inference -----------------------------------------------------------------------------

    chain = softmax = black_scholes = heat = pairwise = _function

    def fancy_func(self, case: Case) -> Prepared:
        prepared = self._function(case)
        shape = np.shape(case.arguments[0])
        return dataclasses.replace(prepared, result=lambda found: (found.asnumpy().reshape(shape),))

    def _with_options(self, case: Case) -> Prepared:
        make = getattr(self.natural, case.workload.family)
        return self._of(case, make(**case.options))

    mandelbrot = reduction = _with_options

    def layer_norm(self, case: Case) -> Prepared:
        scale, shift = case.parameters.values()
        block = self.natural.LayerNorm(len(scale))
        return self._block(
            case, self.natural.with_parameters(block, {"gamma": scale, "beta": shift})
        )

    def mlp(self, case: Case) -> Prepared:
        return self._block(case, self._mlp(case), self.natural.mlp)

    def _mlp(self, case: Case) -> Any:
        given = list(case.parameters.values())
        net = self.natural.mlp(given[0].shape[0], *map(len, given[1::2]))
        return self.natural.with_parameters(net, self._arranged(case))

    def lstm(self, case: Case) -> Prepared:
        return self._block(case, self._recurrent(case), self.natural.lstm)

    def gru(self, case: Case) -> Prepared:
        return self._block(case, self._recurrent(case), self.natural.gru)

    def _recurrent(self, case: Case) -> Any:
        make = getattr(self.natural, case.workload.family.split("_")[0])
        hidden = case.parameters["w_hh"].shape[1]
        layer = make(case.parameters["w_ih"].shape[1], hidden)
        return self.natural.with_parameters(layer, self._arranged(case))

    def encoder(self, case: Case) -> Prepared:
        return self._block(case, self._encoder(case))

    def _encoder(self, case: Case) -> Any:
        units, inner = (len(case.parameters[name]) for name in ("query_bias", "hidden_bias"))
        block = self.natural.Encoder(units, inner, **case.options)
        return self.natural.with_parameters(block, self._arranged(case))

    def _arranged(self, case: Case) -> dict[str, Array]:
        """The parameters of a case by Gluon's names, in Gluon's layout: (units, inputs)."""
        return {
            _gluon_name(name): each.T if name in ("w1", "w2", "w3") else each
            for name, each in case.parameters.items()
        }

    # ---- training ------------------------------------------------------------------------------

    def mlp_training(self, case: Case) -> Prepared:
        gluon, autograd = self.mx.gluon, self.mx.autograd
        net = self._hybridized(self._mlp(case))
        loss = self._hybridized(gluon.loss.SoftmaxCrossEntropyLoss())
        settings = {"learning_rate": case.options["rate"]}
        trainer = gluon.Trainer(net.collect_params(), case.options["optimizer"], settings)
        x, labels = self._arrays(case)

        def step() -> Any:
            with autograd.record():
                losses = loss(net(x), labels)
            losses.backward()
            trainer.step(len(x))
            found = losses.mean()
            self.mx.nd.waitall()  # for the updates, too
            return found

        return Prepared(
            step,
            lambda found: (found.asnumpy().reshape(()),),
            source=step,
            forms=functools.partial(self._forms, net),
        )

    def lstm_training(self, case: Case) -> Prepared:
        return self._gradients(case, self._recurrent(case), "sum")

    def gru_training(self, case: Case) -> Prepared:
        return self._gradients(case, self._recurrent(case), "sum")

    def encoder_training(self, case: Case) -> Prepared:
        return self._gradients(case, self._encoder(case), "mean")

    def _gradients(self, case: Case, block: Any, reduction: str) -> Prepared:
        """The loss is the sum or mean of the squares; nothing is updated."""
        net, autograd = self._hybridized(block), self.mx.autograd
        (x,) = self._arrays(case)
        parameters = net.collect_params()
        kept = [self.natural.named(parameters, _gluon_name(name)) for name in case.parameters]

        def step() -> Any:
            with autograd.record():
                loss = getattr(net(x).square(), reduction)()
            loss.backward()
            self.mx.nd.waitall()
            return loss

        def result(loss: Any) -> list[Array]:
            return [loss.asnumpy().reshape(()), *(each.grad().asnumpy() for each in kept)]

        return Prepared(step, result, source=step, forms=functools.partial(self._forms, net))

    # ---- loops over numbers --------------------------------------------------------------------

    def sieve(self, case: Case) -> Prepared:
        function = self.natural.sieve
        prepared = self._called(functools.partial(function, *case.arguments), (), function)
        return dataclasses.replace(prepared, result=lambda found: (found.asnumpy().reshape(()),))


def _gluon_name(name: str) -> str:
    """What the name of a parameter ends with in Gluon."""
    recurrent = {"w_ih": "i2h_weight", "w_hh": "h2h_weight", "b_ih": "i2h_bias", "b_hh": "h2h_bias"}
    if name in recurrent:
        return recurrent[name]
    for kind, word in (("w", "weight"), ("b", "bias")):
        if name[0] == kind and name[1:].isdigit():
            return f"dense{name[1:]}_{word}"
    return name.replace("_scale", "_gamma").replace("_shift", "_beta")
