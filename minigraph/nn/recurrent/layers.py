"""Recurrent layers: several layers and both directions of a sequence in one call."""

from __future__ import annotations

from typing import Any

import numpy as np

from minigraph.errors import ShapeError
from minigraph.mode import here
from minigraph.trace import NUMPY

from .. import functional as F
from ..functional import check_rate
from ..hybrid import HybridBlock, only_array
from ..parameter import Parameter
from .checks import (
    check_activation,
    check_features,
    check_layout,
    check_sizes,
    check_states,
    checked_lengths,
)
from .steps import EQUATIONS, States, Weights, compiled_over_sequence

DIRECTIONS = ("l", "r")  # from left to right and from right to left: what parameters begin with


class RecurrentLayer(HybridBlock):
    """What `RNN`, `LSTM` and `GRU` share: all but the equations of one step.

    The parameters of the first layer are `l0_i2h_weight` (of what goes in), `l0_h2h_weight` (of the
    hidden state), `l0_i2h_bias` and `l0_h2h_bias`; the other direction has `r0_...`, the next layer
    `l1_...`.  They are PyTorch's `weight_ih_l0`, `weight_hh_l0`, `bias_ih_l0`, `bias_hh_l0`,
    `..._l0_reverse` and `..._l1`, with the gates in the same order.
    """

    kind: str
    l0_i2h_weight: Parameter
    l0_h2h_weight: Parameter

    def __init__(
        self,
        hidden_size: int,
        num_layers: int = 1,
        layout: str = "TNC",
        dropout: float = 0.0,
        bidirectional: bool = False,
        input_size: int = 0,
        i2h_weight_initializer: Any = None,
        h2h_weight_initializer: Any = None,
        i2h_bias_initializer: Any = "zeros",
        h2h_bias_initializer: Any = "zeros",
        dtype: Any = "float32",
    ) -> None:
        """A layer whose parameters wait to be initialized.

        Args:
            hidden_size: how many numbers a hidden state has.
            num_layers: each takes what the one before it returns.
            layout: of what goes in and comes out: "TNC" is (time, batch, features), "NTC" (batch,
                time, features).
            dropout: the rate at which features are dropped while training, between the layers.
            bidirectional: each layer has two parts, one from the start and one from the end; their
                outputs are put side by side.
            input_size: features that go in; 0: as many as there are at the first call.
            i2h_weight_initializer: of the weights of what goes in; None: the network's.
            h2h_weight_initializer: of the weights of the hidden state; None: the network's.
            i2h_bias_initializer: of one bias.
            h2h_bias_initializer: of the other.
            dtype: of the parameters.
        """
        super().__init__()
        check_layout(layout)
        check_sizes(self, hidden_size=hidden_size, num_layers=num_layers)
        check_rate(dropout)
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.layout = layout
        self.dropout = dropout
        self.bidirectional = bidirectional
        rows = EQUATIONS[self.kind].parts * hidden_size

        def parameter(name: str, shape: tuple[int, ...], init: Any) -> None:
            made = Parameter(name, shape, dtype, init, allow_deferred_init=True)
            setattr(self, name, made)

        for layer, prefix in enumerate(self._prefixes()):
            features = self._directions * hidden_size if layer >= self._directions else input_size
            parameter(f"{prefix}_i2h_weight", (rows, features), i2h_weight_initializer)
            parameter(f"{prefix}_h2h_weight", (rows, hidden_size), h2h_weight_initializer)
            parameter(f"{prefix}_i2h_bias", (rows,), i2h_bias_initializer)
            parameter(f"{prefix}_h2h_bias", (rows,), h2h_bias_initializer)

    @property
    def _directions(self) -> int:
        return 2 if self.bidirectional else 1

    def _prefixes(self) -> list[str]:
        """How the names of parameters begin, in the order in which states are stacked."""
        directions = DIRECTIONS[: self._directions]
        return [f"{way}{layer}" for layer in range(self.num_layers) for way in directions]

    def _weights(self, prefix: str) -> Weights:
        return Weights(*(getattr(self, f"{prefix}_{name}").data() for name in Weights._fields))

    # ---- states ----------------------------------------------------------------------------

    def state_info(self, batch_size: int = 0) -> list[dict[str, Any]]:
        """Shape and layout of each array that belongs to the state."""
        shape = (self.num_layers * self._directions, batch_size, self.hidden_size)
        return [{"shape": shape, "__layout__": "LNC"}] * EQUATIONS[self.kind].states

    def begin_state(self, batch_size: int, func: Any = NUMPY.zeros, **options: Any) -> list[Any]:
        """The state that a sequence begins with: zeros, h (of an LSTM h and c).

        Args:
            batch_size: how many sequences there are.
            func: makes each array, from its shape.
            **options: of that function; the dtype, if it is not among them, is the layer's.
        """
        options.setdefault("dtype", self.l0_h2h_weight.dtype)
        return [func(info["shape"], **options) for info in self.state_info(batch_size)]

    def _begin(self, states: Any, batch: Any) -> list[States]:
        """The states that each direction of each layer begins with: those given, or zeros.

        Raises:
            ShapeError: those given do not fit.
        """
        infos = self.state_info(batch)
        wanted = infos[0]["shape"]
        if states is None:
            zeros = NUMPY.zeros(wanted[1:], self.l0_h2h_weight.dtype)
            return [(zeros,) * len(infos)] * wanted[0]
        given = check_states(self, states, infos)
        return [tuple(state[at] for state in given) for at in range(wanted[0])]

    # ---- calling ---------------------------------------------------------------------------

    def infer_shape(self, x: Any, states: Any = None, lengths: Any = None) -> None:
        self._check(x)
        for prefix in self._prefixes()[: self._directions]:
            weight = getattr(self, f"{prefix}_i2h_weight")
            weight.shape = (weight.shape[0], x.shape[-1])

    def _check(self, x: Any) -> None:
        axes = "(time, batch, features)" if self.layout == "TNC" else "(batch, time, features)"
        alone = "x[:, None]" if self.layout == "TNC" else "x[None]"
        if only_array(self, x).ndim != 3:
            raise ShapeError(
                f"{type(self).__name__} of layout {self.layout} takes {axes}, and the input has "
                f"shape {x.shape}",
                where=here(),
                instead=f"{alone} for one sequence" if x.ndim == 2 else f"an array {axes}",
            )

    def forward(self, x: Any, states: Any = None, lengths: Any = None) -> Any:
        """Run over a batch of sequences.

        Args:
            x: in the layer's layout.
            states: those that it begins with; None: zeros, and none are returned.
            lengths: (batch,), of the sequences; None: all are as long as x.  After its end a
                sequence has outputs 0, its states stay what they were there, and from there the
                other direction begins.

        Returns:
            The outputs of the last layer, in the layer's layout; with states the pair (outputs,
            states at the end).
        """
        self._check(x)
        check_features(self, x, self.l0_i2h_weight)
        if self.layout == "NTC":
            x = x.swapaxes(0, 1)
        length, batch, _ = x.shape
        lengths = checked_lengths(lengths, length, batch)
        begin = self._begin(states, batch)
        end: list[States] = []
        for layer in range(self.num_layers):
            x = F.dropout(x, self.dropout) if layer else x
            outputs: list[Any] = []
            for reverse in (False, True)[: self._directions]:
                weights = self._weights(f"{DIRECTIONS[reverse]}{layer}")
                output, last = compiled_over_sequence(
                    self.kind, x, begin[len(end)], weights, lengths, reverse
                )
                outputs.append(output)
                end.append(last)
            x = np.concatenate(outputs, axis=-1) if self.bidirectional else output
        outputs = x.swapaxes(0, 1) if self.layout == "NTC" else x
        return outputs if states is None else (outputs, list(map(np.stack, zip(*end, strict=True))))

    def extra_repr(self) -> str:
        assert self.l0_i2h_weight.shape is not None
        sizes = f"{self.l0_i2h_weight.shape[1] or '?'} -> {self.hidden_size}, {self.layout}"
        layers = f", num_layers={self.num_layers}" if self.num_layers > 1 else ""
        dropout = f", dropout={self.dropout}" if self.dropout else ""
        return sizes + layers + dropout + (", bidirectional" if self.bidirectional else "")


class RNN(RecurrentLayer):
    """`h' = activation(W x + b + U h + d)`, at each step of sequences.

    Args:
        hidden_size: how many numbers a hidden state has.
        num_layers: each takes what the one before it returns.
        activation: "relu" or "tanh".
        *others: those of every layer, in the order of `nn.LSTM`, from `layout` on.
        **options: the same, by name.
    """

    kind = "relu"

    def __init__(
        self,
        hidden_size: int,
        num_layers: int = 1,
        activation: str = "relu",
        *others: Any,
        **options: Any,
    ) -> None:
        check_activation(self, activation)
        super().__init__(hidden_size, num_layers, *others, **options)
        self.kind = activation


class LSTM(RecurrentLayer):
    """Long short-term memory, at each step of sequences.

    i, f, g, o = the four parts of W x + b + U h + d
    c' = sigmoid(f) * c + sigmoid(i) * tanh(g)
    h' = sigmoid(o) * tanh(c')
    """

    kind = "lstm"


class GRU(RecurrentLayer):
    """Gated recurrent units, at each step of sequences.

    p, q = W x + b, U h + d
    r = sigmoid of the first third of p + q, z = sigmoid of the second
    n = tanh(last third of p + r * last third of q)
    h' = (1 - z) * n + z * h
    """

    kind = "gru"
