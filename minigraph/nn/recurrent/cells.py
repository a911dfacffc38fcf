"""The cells with equations of their own: `RNNCell`, `LSTMCell`, `GRUCell`."""

from __future__ import annotations

from typing import Any

from ..hybrid import only_array
from ..parameter import Parameter
from .cell import RecurrentCell
from .checks import check_activation, check_features, check_sizes, check_states
from .steps import EQUATIONS, States, Weights, compiled_over_sequence, one_step


class _Basic(RecurrentCell):
    """A cell with equations of its own.

    Its parameters are `i2h_weight` (parts * hidden_size, features), `h2h_weight` (parts *
    hidden_size, hidden_size), `i2h_bias` and `h2h_bias`.
    """

    kind: str

    def __init__(
        self,
        hidden_size: int,
        i2h_weight_initializer: Any = None,
        h2h_weight_initializer: Any = None,
        i2h_bias_initializer: Any = "zeros",
        h2h_bias_initializer: Any = "zeros",
        input_size: int = 0,
        dtype: Any = "float32",
    ) -> None:
        """A cell whose parameters wait to be initialized.

        Args:
            hidden_size: how many numbers a hidden state has.
            i2h_weight_initializer: of the weights of what goes in; None: the network's.
            h2h_weight_initializer: of the weights of the hidden state; None: the network's.
            i2h_bias_initializer: of one bias.
            h2h_bias_initializer: of the other.
            input_size: features that go in; 0: as many as there are at the first call.
            dtype: of the parameters.
        """
        super().__init__()
        check_sizes(self, hidden_size=hidden_size)
        self.hidden_size = hidden_size
        rows = EQUATIONS[self.kind].parts * hidden_size
        self.i2h_weight = Parameter(
            "i2h_weight",
            (rows, input_size),
            dtype,
            i2h_weight_initializer,
            allow_deferred_init=True,
        )
        self.h2h_weight = Parameter(
            "h2h_weight", (rows, hidden_size), dtype, h2h_weight_initializer
        )
        self.i2h_bias = Parameter("i2h_bias", rows, dtype, i2h_bias_initializer)
        self.h2h_bias = Parameter("h2h_bias", rows, dtype, h2h_bias_initializer)

    def state_info(self, batch_size: int = 0) -> list[dict[str, Any]]:
        info = {"shape": (batch_size, self.hidden_size), "__layout__": "NC"}
        return [info] * EQUATIONS[self.kind].states

    def infer_shape(self, x: Any, states: Any) -> None:
        assert self.i2h_weight.shape is not None
        self.i2h_weight.shape = (self.i2h_weight.shape[0], only_array(self, x).shape[-1])

    def _weights(self) -> Weights:
        return Weights(
            self.i2h_weight.data(),
            self.h2h_weight.data(),
            self.i2h_bias.data(),
            self.h2h_bias.data(),
        )

    def forward(self, x: Any, states: Any) -> tuple[Any, list[Any]]:
        """One step.

        Args:
            x: (batch, features).
            states: a list of arrays (batch, hidden_size).
        """
        check_features(self, only_array(self, x), self.i2h_weight)
        begin = check_states(self, states, self.state_info(x.shape[0]))
        end = one_step(self.kind, x, begin, self._weights())
        return end[0], list(end)

    def _unroll(
        self, inputs: Any, states: States, lengths: Any, reverse: bool
    ) -> tuple[Any, States]:
        self._complete(inputs, states)
        check_features(self, inputs, self.i2h_weight)
        weights = self._weights()
        return compiled_over_sequence(self.kind, inputs, states, weights, lengths, reverse)

    def extra_repr(self) -> str:
        assert self.i2h_weight.shape is not None
        return f"{self.i2h_weight.shape[1] or '?'} -> {self.hidden_size}"


class RNNCell(_Basic):
    """One step of `nn.RNN`: `h' = activation(W x + b + U h + d)`.

    Args:
        hidden_size: how many numbers a hidden state has.
        activation: "relu" or "tanh".
        *others: those of every cell, in the order of `nn.LSTMCell`.
        **options: the same, by name.
    """

    kind = "tanh"

    def __init__(
        self, hidden_size: int, activation: str = "tanh", *others: Any, **options: Any
    ) -> None:
        check_activation(self, activation)
        super().__init__(hidden_size, *others, **options)
        self.kind = activation


class LSTMCell(_Basic):
    """One step of `nn.LSTM`, whose states are h and c."""

    kind = "lstm"


class GRUCell(_Basic):
    """One step of `nn.GRU`."""

    kind = "gru"
