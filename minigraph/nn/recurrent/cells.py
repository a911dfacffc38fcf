"""Cells: one step of a recurrent network, and `unroll`, which makes all steps of a sequence.

    cell = nn.LSTMCell(100)
    output, states = cell(x, cell.begin_state(batch_size))          x: (batch, features)
    outputs, states = cell.unroll(length, x)                        x: (batch, length, features)

A cell of your own has `state_info` and `forward(x, states) -> (output, states)`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minigraph import autograd
from minigraph.engine import has_array
from minigraph.errors import OptionError, ShapeError, unknown
from minigraph.mode import here
from minigraph.trace import ACTIVE, NUMPY

from ..conversion import to_arrays, to_ndarrays
from ..hybrid import HybridBlock, only_array
from ..parameter import Parameter
from .checks import check_lengths, check_states, fits
from .steps import (
    EQUATIONS,
    States,
    Weights,
    compiled_over_sequence,
    one_step,
    step_by_step,
)

ACTIVATIONS = ("relu", "tanh")
LAYOUTS = ("NTC", "TNC")


class RecurrentCell(HybridBlock):
    """One step: `cell(x, states)` is the pair (output, states); states are a list of arrays."""

    def state_info(self, batch_size: int = 0) -> list[dict[str, Any]]:
        """Shape and layout of each array that belongs to the state; the batch is the first axis."""
        raise NotImplementedError(f"{type(self).__name__} defines no state_info(self, batch_size)")

    def begin_state(
        self, batch_size: int = 0, func: Any = NUMPY.zeros, **options: Any
    ) -> list[Any]:
        """The state that a sequence begins with: zeros.

        Args:
            batch_size: of the sequences.
            func: makes each array, from its shape.
            **options: of that function; the dtype, if it is not among them, is that of the cell's
                parameters.
        """
        dtypes = [parameter.dtype for parameter in self.collect_params().values()]
        options.setdefault("dtype", dtypes[0] if dtypes else "float32")
        return [func(info["shape"], **options) for info in self.state_info(batch_size)]

    def unroll(
        self,
        length: int | None,
        inputs: Any,
        begin_state: Any = None,
        layout: str = "NTC",
        merge_outputs: bool | None = None,
        valid_length: Any = None,
    ) -> tuple[Any, list[Any]]:
        """Make all steps of a batch of sequences.

        Args:
            length: how many steps; None: as many as the inputs have.
            inputs: one array in the layout, or a list of arrays (batch, features).
            begin_state: None: `self.begin_state(batch_size)`.
            layout: "NTC" is (batch, time, features), "TNC" (time, batch, features).
            merge_outputs: True: one array in the layout; False: a list of one for each step; None:
                as the inputs are.
            valid_length: (batch,), of the sequences; None: all are as long as the inputs.  After
                its end a sequence has outputs 0, and its states stay what they were there.

        Returns:
            The outputs, and the states at the end.

        Raises:
            ShapeError: the inputs have another length; states or lengths do not fit.
        """
        if layout not in LAYOUTS:
            raise unknown("layout", layout, LAYOUTS)
        arguments = inputs, begin_state, valid_length
        merged = not isinstance(inputs, list | tuple) if merge_outputs is None else merge_outputs
        inputs, begin, lengths = to_arrays(arguments)
        found = self._unroll_arrays(length, inputs, begin, lengths, layout, merged)
        recorded = ACTIVE.get() is None and autograd.is_recording()
        return found if recorded or has_array(arguments) else to_ndarrays(found)

    def _unroll_arrays(
        self, length: Any, inputs: Any, begin: Any, lengths: Any, layout: str, merged: bool
    ) -> tuple[Any, list[Any]]:
        listed = isinstance(inputs, list | tuple)
        inputs = np.stack(inputs) if listed else only_array(self, inputs)
        if inputs.ndim < 3:
            raise ShapeError(
                f"{type(self).__name__}.unroll takes sequences in layout {layout}, and the inputs "
                f"have shape {inputs.shape}",
                where=here(),
                instead="inputs[None] for one sequence, and a last axis of features",
            )
        if layout == "NTC" and not listed:
            inputs = inputs.swapaxes(0, 1)
        found, batch = inputs.shape[:2]
        if length is not None and not fits((length,), (found,)):
            raise ShapeError(
                f"length={length}, and the inputs have {found} steps: their shape is "
                f"{inputs.shape} as (time, batch, features)",
                where=here(),
                instead=f"unroll({found}, ...), or the other layout=",
            )
        check_lengths(lengths, found, batch)
        if begin is None:
            begin = self.begin_state(batch)
        begin = tuple(
            state.astype(np.result_type(state.dtype, inputs.dtype))
            if inputs.dtype.kind == "f"
            else state
            for state in check_states(self, begin, self.state_info(batch))
        )
        outputs, states = self._unroll(inputs, begin, lengths, reverse=False)
        if not merged:
            return [outputs[at] for at in range(found)], list(states)
        return outputs.swapaxes(0, 1) if layout == "NTC" else outputs, list(states)

    def _complete(self, inputs: Any, states: States) -> None:
        """Complete the shapes of parameters that wait for a first call, by a step for nothing."""
        if any(parameter.is_deferred for parameter in self.collect_params().values()):
            self(inputs[0], list(states))

    def _unroll(
        self, inputs: Any, states: States, lengths: Any, reverse: bool
    ) -> tuple[Any, States]:
        """`unroll` of one array (time, batch, features), from its end if `reverse`."""
        self._complete(inputs, states)

        def step(states: States, x: Any) -> tuple[Any, States]:
            output, after = self(x, list(states))
            return output, tuple(after)

        return step_by_step(step, (inputs,), states, lengths, reverse)


class _Basic(RecurrentCell):
    """A cell with equations of its own.

    Its parameters are `i2h_weight` (parts * hidden_size, features), `h2h_weight` (parts *
    hidden_size, hidden_size), `i2h_bias` and `h2h_bias`.
    """

    def __init__(
        self,
        kind: str,
        hidden_size: int,
        i2h_weight_initializer: Any,
        h2h_weight_initializer: Any,
        i2h_bias_initializer: Any,
        h2h_bias_initializer: Any,
        input_size: int,
        dtype: Any,
    ) -> None:
        super().__init__()
        if hidden_size < 1:
            raise OptionError(f"hidden_size={hidden_size}", where=here(), instead="at least 1")
        self.kind = kind
        self.hidden_size = hidden_size
        rows = EQUATIONS[kind].parts * hidden_size
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
        begin = check_states(self, states, self.state_info(only_array(self, x).shape[0]))
        end = one_step(self.kind, x, begin, self._weights())
        return end[0], list(end)

    def _unroll(
        self, inputs: Any, states: States, lengths: Any, reverse: bool
    ) -> tuple[Any, States]:
        self._complete(inputs, states)
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
        i2h_weight_initializer: of W, shape (hidden_size, features); None: the network's.
        h2h_weight_initializer: of U, shape (hidden_size, hidden_size).
        i2h_bias_initializer: of b.
        h2h_bias_initializer: of d.
        input_size: features that go in; 0: as many as there are at the first call.
        dtype: of the parameters.
    """

    def __init__(
        self,
        hidden_size: int,
        activation: str = "tanh",
        i2h_weight_initializer: Any = None,
        h2h_weight_initializer: Any = None,
        i2h_bias_initializer: Any = "zeros",
        h2h_bias_initializer: Any = "zeros",
        input_size: int = 0,
        dtype: Any = "float32",
    ) -> None:
        if activation not in ACTIVATIONS:
            raise unknown("activation of an RNNCell", activation, ACTIVATIONS)
        super().__init__(
            activation,
            hidden_size,
            i2h_weight_initializer,
            h2h_weight_initializer,
            i2h_bias_initializer,
            h2h_bias_initializer,
            input_size,
            dtype,
        )


class LSTMCell(_Basic):
    """One step of `nn.LSTM`, whose states are h and c.

    Args:
        hidden_size: how many numbers a hidden state has.
        i2h_weight_initializer: of W, shape (4 * hidden_size, features); None: the network's.
        h2h_weight_initializer: of U, shape (4 * hidden_size, hidden_size).
        i2h_bias_initializer: of b.
        h2h_bias_initializer: of d.
        input_size: features that go in; 0: as many as there are at the first call.
        dtype: of the parameters.
    """

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
        super().__init__(
            "lstm",
            hidden_size,
            i2h_weight_initializer,
            h2h_weight_initializer,
            i2h_bias_initializer,
            h2h_bias_initializer,
            input_size,
            dtype,
        )


class GRUCell(_Basic):
    """One step of `nn.GRU`.

    Args:
        hidden_size: how many numbers a hidden state has.
        i2h_weight_initializer: of W, shape (3 * hidden_size, features); None: the network's.
        h2h_weight_initializer: of U, shape (3 * hidden_size, hidden_size).
        i2h_bias_initializer: of b.
        h2h_bias_initializer: of d.
        input_size: features that go in; 0: as many as there are at the first call.
        dtype: of the parameters.
    """

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
        super().__init__(
            "gru",
            hidden_size,
            i2h_weight_initializer,
            h2h_weight_initializer,
            i2h_bias_initializer,
            h2h_bias_initializer,
            input_size,
            dtype,
        )
