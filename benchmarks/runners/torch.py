"""PyTorch: eager, as TorchScript, frozen, and by `torch.compile`.

Inference is under `no_grad`, but in the column named after the lack of it.  Recurrent layers are
PyTorch's own, which call one kernel written in C++; TorchScript scripts them, too, and a column of
its own holds loops over cells.  Loops over numbers are for TorchScript alone: elsewhere no tensor
would be involved, and Python would be measured.  Lists stand there for arrays, whose elements
TorchScript boxes.

Settings are the defaults, but for what is the fastest: `optimize_for_inference` after freezing is
no faster here, nor are Inductor's `freezing` and `cpp_wrapper`, nor is compiling the update of an
optimizer.  Dynamo leaves nn.LSTM and nn.GRU to eager mode, and what it makes of cells is slower.
Threads are those within an operation; no two operations run at once.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..workloads import Case, Workload
from .base import Array, Form, Prepared, Runner

EAGER, WITH_GRAD = "torch eager", "torch eager with grad"
SCRIPT, CELLS, FREEZE = "torch.jit.script", "torch.jit.script of cells", "torch.jit.freeze"
COMPILE = "torch.compile"
MODULES = ("mlp", "layer_norm", "lstm", "gru", "encoder")


class Torch(Runner):
    framework = "torch"
    package = "torch"
    variants = {
        EAGER: "operation by operation, under no_grad",
        WITH_GRAD: "as the textbook calls it: autograd takes notes",
        SCRIPT: "scripted (not traced), under no_grad",
        CELLS: "recurrent layers as a scripted loop over nn.LSTMCell or nn.GRUCell",
        FREEZE: "scripted, in eval mode, then torch.jit.freeze",
        COMPILE: "torch.compile(dynamic=False), with Inductor",
    }
    baseline = dict.fromkeys((SCRIPT, CELLS, FREEZE, COMPILE), EAGER)

    def load(self) -> None:
        warnings.simplefilter("ignore")  # TorchScript is deprecated
        import torch

        if self.variant == COMPILE:  # they import more, which no compilation should take
            import torch._dynamo
            import torch._inductor.compile_fx

        from ..natural import torch as natural

        torch.set_num_threads(self.threads)
        self.torch: Any = torch
        self.natural: Any = natural

    def versions(self) -> dict[str, str]:
        return {"torch": self.torch.__version__}

    def threads_used(self) -> str:
        return f"torch.get_num_threads() {self.torch.get_num_threads()}"

    @classmethod
    def refuses(cls, variant: str, workload: Workload) -> str:
        family = workload.family
        if variant == WITH_GRAD and family != "mlp":
            return "inference with gradients is shown with the MLP"
        if variant == CELLS and not family.startswith(("lstm", "gru")):
            return "no recurrent layer"
        if workload.is_of_numbers and variant != SCRIPT:
            return "numbers are Python's own: no tensor is involved"
        if variant == FREEZE and workload.kind == "training":
            return "frozen parameters are constants, and cannot learn"
        if variant == FREEZE and family not in MODULES:
            return "a function: there are no parameters to freeze"
        return ""

    # ---- how a function or a module is run -----------------------------------------------------

    def _made(self, function: Any) -> Any:
        """A function or module as this column calls it."""
        if self.variant in (SCRIPT, CELLS):
            return self.torch.jit.script(function)
        if self.variant == FREEZE:
            return self.torch.jit.freeze(self.torch.jit.script(function))
        if self.variant == COMPILE:
            return self.torch.compile(function, dynamic=False)
        return function

    def _inference(self, function: Any, arguments: Sequence[Any]) -> Prepared:
        """A call of a function of tensors, or of a module, without gradients."""
        torch = self.torch
        made = self._made(function.eval() if isinstance(function, torch.nn.Module) else function)
        around = torch.enable_grad if self.variant == WITH_GRAD else torch.no_grad

        def forms() -> list[Form]:
            with around():
                return self._forms(function, made, arguments, lambda made: made(*arguments))

        return Prepared(
            functools.partial(made, *arguments),
            lambda found: (found.detach().numpy(),),
            around,
            source=self._source(function),
            forms=forms,
        )

    def _source(self, function: Any) -> Any:
        """What the user wrote of it: a function, `forward`, or how PyTorch's module is made."""
        if not isinstance(function, self.torch.nn.Module):
            return function
        kind = type(function)
        return kind.forward if kind.__module__ == self.natural.__name__ else self.natural.encoder

    def _forms(
        self, function: Any, made: Any, arguments: Sequence[Any], call: Callable[[Any], Any]
    ) -> list[Form]:
        """Of what `_made` made of a function; `call` calls it, and backward where that is done."""
        from ..forms import torch as forms

        file = self.natural.__file__
        if self.variant == COMPILE:
            return forms.compiled(function, call, file)
        if self.variant in (SCRIPT, CELLS, FREEZE):
            scripted = self.torch.jit.script(function)
            return forms.torchscript(scripted, made, arguments, file)
        return []

    def _of_tensors(self, function: Any, case: Case, *more: Any) -> Prepared:
        return self._inference(function, (*map(self.torch.from_numpy, case.arguments), *more))

    def _of_numbers(self, function: Callable[..., Any], *arguments: Any) -> Prepared:
        """A call of a function that knows no tensors."""
        made = self.torch.jit.script(function)
        return Prepared(
            functools.partial(made, *arguments),
            lambda found: (np.array(found),),
            source=function,
            forms=lambda: self._forms(function, made, arguments, made),
        )

    def _parameters(self, case: Case) -> dict[str, Any]:
        return {name: self.torch.from_numpy(each) for name, each in case.parameters.items()}

    # ---- inference -----------------------------------------------------------------------------

    def mlp(self, case: Case) -> Prepared:
        return self._of_tensors(self.natural.MLP(**self._parameters(case)), case)

    def fancy_func(self, case: Case) -> Prepared:
        if isinstance(case.arguments[0], int):
            return self._of_numbers(self.natural.fancy_func_of_numbers, *case.arguments)
        return self._of_tensors(self.natural.fancy_func, case)

    def chain(self, case: Case) -> Prepared:
        return self._of_tensors(self.natural.chain, case)

    def softmax(self, case: Case) -> Prepared:
        return self._of_tensors(self.natural.softmax, case)

    def layer_norm(self, case: Case) -> Prepared:
        return self._of_tensors(self.natural.LayerNorm(**self._parameters(case)), case)

    def reduction(self, case: Case) -> Prepared:
        return self._of_tensors(self.natural.reduction, case, *case.options.values())

    def lstm(self, case: Case) -> Prepared:
        return self._of_tensors(self._recurrent("LSTM", case), case)

    def gru(self, case: Case) -> Prepared:
        return self._of_tensors(self._recurrent("GRU", case), case)

    def _recurrent(self, kind: str, case: Case) -> Any:
        made = getattr(self.natural, f"{kind}OfCells" if self.variant == CELLS else kind)
        return made(*self._parameters(case).values())

    def encoder(self, case: Case) -> Prepared:
        return self._of_tensors(self._encoder(case), case)

    def _encoder(self, case: Case) -> Any:
        return self.natural.encoder(**case.options, **self._parameters(case))

    def black_scholes(self, case: Case) -> Prepared:
        return self._of_tensors(self.natural.black_scholes, case)

    def mandelbrot(self, case: Case) -> Prepared:
        return self._of_tensors(self.natural.mandelbrot, case, case.options["steps"])

    def heat(self, case: Case) -> Prepared:
        return self._of_tensors(self.natural.heat, case)

    def pairwise(self, case: Case) -> Prepared:
        return self._of_tensors(self.natural.pairwise, case)

    # ---- training ------------------------------------------------------------------------------

    def mlp_training(self, case: Case) -> Prepared:
        torch = self.torch
        net = self.natural.MLP(**self._parameters(case))
        optimizer = self.natural.optimizer(net, **case.options)
        loss = torch.nn.CrossEntropyLoss()
        made = self._made(net)
        x, labels = map(torch.from_numpy, case.arguments)

        def step() -> Any:
            optimizer.zero_grad()
            found = loss(made(x), labels)
            found.backward()
            optimizer.step()
            return found

        return Prepared(
            step,
            lambda found: (found.detach().numpy(),),
            source=self._source(net),
            forms=lambda: self._forms(net, made, (x,), lambda made: made(x).sum().backward()),
        )

    def lstm_training(self, case: Case) -> Prepared:
        module = self._recurrent("LSTM", case)
        return self._gradients(module, case, "sum", lambda: _gradients_of(module))

    def gru_training(self, case: Case) -> Prepared:
        module = self._recurrent("GRU", case)
        return self._gradients(module, case, "sum", lambda: _gradients_of(module))

    def encoder_training(self, case: Case) -> Prepared:
        module = self._encoder(case).train()
        gradients = functools.partial(self.natural.encoder_gradients, module)
        return self._gradients(module, case, "mean", gradients)

    def _gradients(
        self, module: Any, case: Case, reduction: str, gradients: Callable[[], Sequence[Any]]
    ) -> Prepared:
        """The loss is the sum or mean of the squares; nothing is updated."""
        made = self._made(module)
        x = self.torch.from_numpy(case.arguments[0])

        def step() -> Any:
            module.zero_grad()
            loss = getattr(made(x).square(), reduction)()
            loss.backward()
            return loss

        def result(loss: Any) -> Sequence[Array]:
            return [each.detach().numpy() for each in (loss, *gradients())]

        return Prepared(
            step,
            result,
            source=self._source(module),
            forms=lambda: self._forms(module, made, (x,), lambda made: made(x).sum().backward()),
        )

    # ---- loops over numbers --------------------------------------------------------------------

    def collatz(self, case: Case) -> Prepared:
        return self._of_numbers(self.natural.collatz, *case.arguments)

    def newton(self, case: Case) -> Prepared:
        return self._of_numbers(self.natural.newton, *case.arguments)

    def levenshtein(self, case: Case) -> Prepared:
        lists = (each.tolist() for each in case.arguments)
        return self._of_numbers(self.natural.levenshtein, *lists)

    def sieve(self, case: Case) -> Prepared:
        return self._of_numbers(self.natural.sieve, *case.arguments)


def _gradients_of(module: Any) -> list[Any]:
    return [each.grad for each in module.parameters()]
