"""TensorFlow: eager, by `tf.function`, and by `tf.function(jit_compile=True)`.

A `tf.function` is traced once, and the concrete function of it called: that leaves out the search
for the right trace at each call.  Parameters are tensors in inference and variables in training.
Recurrent layers are what is the fastest in each column: TensorFlow's kernel for a whole LSTM in
eager mode, unrolled cells in a `tf.function`, and Keras's layers (a loop over cells) with XLA.
Updates are TensorFlow's operations, and not Keras's optimizers, which take up to four times as
long.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..forms import tensorflow as tensorflow_forms
from ..workloads import Case, Workload
from .base import Array, Prepared, Runner

EAGER, FUNCTION, XLA = "TensorFlow eager", "tf.function", "tf.function XLA"


class TensorFlow(Runner):
    framework = "tensorflow"
    package = "tensorflow"
    variants = {
        EAGER: "operation by operation, outside of tf.function",
        FUNCTION: "the concrete function of a tf.function",
        XLA: "the concrete function of a tf.function(jit_compile=True)",
    }
    baseline = dict.fromkeys((FUNCTION, XLA), EAGER)

    def load(self) -> None:
        import tensorflow as tf

        tf.config.threading.set_intra_op_parallelism_threads(self.threads)
        tf.config.threading.set_inter_op_parallelism_threads(self.threads)
        tf.config.set_visible_devices([], "GPU")

        from ..natural import tensorflow as natural

        self.tf: Any = tf
        self.natural: Any = natural

    def versions(self) -> Mapping[str, str]:
        return {"tensorflow": self.tf.__version__, "keras": self.tf.keras.__version__}

    def threads_used(self) -> str:
        threading = self.tf.config.threading
        return (
            f"intra_op {threading.get_intra_op_parallelism_threads()}, "
            f"inter_op {threading.get_inter_op_parallelism_threads()}"
        )

    @classmethod
    def refuses(cls, variant: str, workload: Workload) -> str:
        if variant == EAGER and workload.kind == "loop" and workload.family != "sieve":
            return "each operation on a number is a call of a kernel: 40 s or more a call"
        return super().refuses(variant, workload)

    # ---- how a function is run -----------------------------------------------------------------

    def _prepared(
        self,
        function: Callable[..., Any],
        arguments: Sequence[Any],
        result: Any = None,
        source: Any = None,
    ) -> Prepared:
        """A call of a function of tensors.

        Args:
            function: the user's.
            arguments: of the call.
            result: arranges what is more than one array.
            source: shown for a function that is not the user's.
        """
        result = result or (lambda found: (found.numpy(),))
        source = source or function
        if self.variant == EAGER:
            return Prepared(functools.partial(function, *arguments), result, source=source)
        shown = tensorflow_forms.hlo if self.variant == XLA else tensorflow_forms.graphs
        made = self.tf.function(function, jit_compile=True if self.variant == XLA else None)
        return Prepared(
            functools.partial(made.get_concrete_function(*arguments), *arguments),
            result,
            source=source,
            forms=lambda: shown(self.tf, function, arguments, self.natural.__file__),
        )

    def _tensors(self, case: Case) -> list[Any]:
        """Arguments; ints and labels as int32, TensorFlow's default."""
        return [
            self.tf.constant(each, None if np.asarray(each).dtype.kind == "f" else self.tf.int32)
            for each in case.arguments
        ]

    def _parameters(self, case: Case) -> dict[str, Any]:
        """Tensors for inference, variables for training."""
        kind = self.tf.Variable if case.workload.kind == "training" else self.tf.constant
        order = self._order(case)
        return {name: kind(_turned(name, order(each))) for name, each in case.parameters.items()}

    def _order(self, case: Case) -> Callable[[Array], Array]:
        """From the gates as a case has them to those of TensorFlow's kernel, or back."""
        if self.variant == EAGER and case.workload.family.startswith("lstm"):
            return functools.partial(self.natural.ordered, "lstm_kernel")
        return lambda array: array

    def _function(self, case: Case) -> Prepared:
        """A workload without parameters, which is a function of the same name."""
        return self._prepared(getattr(self.natural, case.workload.family), self._tensors(case))

    def _network(self, case: Case) -> Prepared:
        """One with parameters or options, which the function of the same name takes."""
        make = getattr(self.natural, case.workload.family)
        return self._prepared(make(**case.options, **self._parameters(case)), self._tensors(case))

    # ---- inference -----------------------------------------------------------------------------

    fancy_func = chain = softmax = black_scholes = heat = pairwise = _function
    layer_norm = mlp = encoder = mandelbrot = reduction = _network

    def lstm(self, case: Case) -> Prepared:
        if self.variant == XLA:
            return self._layer(case)
        return self._prepared(self._lstm()(**self._parameters(case)), self._tensors(case))

    def _lstm(self) -> Callable[..., Any]:
        return self.natural.lstm_kernel if self.variant == EAGER else self.natural.lstm_cells

    def gru(self, case: Case) -> Prepared:
        if self.variant == XLA:
            return self._layer(case)
        return self._prepared(self.natural.gru_cells(**self._parameters(case)), self._tensors(case))

    def _layer(self, case: Case) -> Prepared:
        """A recurrent layer of Keras, which has batches first."""
        layer = self.natural.keras_layer(case.workload.family, **case.parameters)
        return self._prepared(
            layer,
            self._batches(case),
            lambda y: (y.numpy().swapaxes(0, 1),),
            self.natural.keras_layer,
        )

    def _batches(self, case: Case) -> list[Any]:
        (x,) = case.arguments
        return [self.tf.constant(np.ascontiguousarray(x.swapaxes(0, 1)))]

    # ---- training ------------------------------------------------------------------------------

    def mlp_training(self, case: Case) -> Prepared:
        natural, variables = self.natural, self._parameters(case)
        make = {"sgd": natural.descent, "adam": natural.adam}[case.options["optimizer"]]
        values = list(variables.values())
        step = natural.training(
            natural.mlp(**variables), values, make(values, case.options["rate"])
        )
        return self._prepared(step, self._tensors(case))

    def lstm_training(self, case: Case) -> Prepared:
        if self.variant == XLA:
            return self._layer_gradients(case)
        return self._gradients(case, self._lstm())

    def gru_training(self, case: Case) -> Prepared:
        if self.variant == XLA:
            return self._layer_gradients(case)
        return self._gradients(case, self.natural.gru_cells)

    def encoder_training(self, case: Case) -> Prepared:
        make = functools.partial(self.natural.encoder, **case.options)
        return self._gradients(case, make, self.tf.reduce_mean)

    def _gradients(
        self, case: Case, make: Callable[..., Any], reduce: Callable[..., Any] | None = None
    ) -> Prepared:
        variables = self._parameters(case)
        step = self.natural.gradients(
            make(**variables), list(variables.values()), reduce or self.tf.reduce_sum
        )

        def result(found: Sequence[Any]) -> list[Array]:
            loss, *gradients = (each.numpy() for each in found)
            return [loss, *map(self._order(case), map(_turned, variables, gradients))]

        return self._prepared(step, self._tensors(case), result)

    def _layer_gradients(self, case: Case) -> Prepared:
        family, _ = case.workload.family.split("_")
        layer = self.natural.keras_layer(family, **case.parameters)
        step = self.natural.gradients(layer, layer.trainable_variables, self.tf.reduce_sum)

        def result(found: Sequence[Any]) -> list[Array]:
            loss, *gradients = (each.numpy() for each in found)
            return [loss, *self.natural.from_keras(family, *gradients)]

        return self._prepared(step, self._batches(case), result)

    # ---- loops over numbers --------------------------------------------------------------------

    collatz = newton = levenshtein = _function  # by AutoGraph

    def sieve(self, case: Case) -> Prepared:
        return self._prepared(self.natural.sieve(*case.arguments), [])


def _turned(name: str, array: Array) -> Array:
    """Weights that a case has as (units, inputs), and back; the MLP's are (inputs, units)."""
    turned = name.endswith("_weight") or name in ("w_ih", "w_hh")
    return np.ascontiguousarray(array.T) if turned else array
