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
from minigraph.errors import ShapeError
from minigraph.mode import here
from minigraph.trace import ACTIVE, NUMPY

from ..conversion import to_arrays, to_ndarrays
from ..hybrid import HybridBlock, only_array
from .checks import check_layout, check_states, checked_lengths, fits
from .steps import States, step_by_step


class RecurrentCell(HybridBlock):
    """One step: `cell(x, states)` is the pair (output, states); states are a list of arrays."""

    def state_info(self, batch_size: int = 0) -> list[dict[str, Any]]:
        """Shape and layout of each array that belongs to the state; the batch is the first axis."""
        raise NotImplementedError(f"{type(self).__name__} defines no state_info(self, batch_size)")

    def begin_state(self, batch_size: int, func: Any = NUMPY.zeros, **options: Any) -> list[Any]:
        """The state that a sequence begins with: zeros.

        Args:
            batch_size: how many sequences there are.
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
        check_layout(layout)
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
                instead=f"{'inputs[None]' if layout == 'NTC' else 'inputs[:, None]'} for one "
                "sequence"
                if inputs.ndim == 2
                else "an array of the axes of the layout: N the batch, T time, C features",
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
        lengths = checked_lengths(lengths, found, batch)
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
