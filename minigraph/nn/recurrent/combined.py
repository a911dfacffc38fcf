"""Cells made of cells: several after each other, both directions, and what changes another cell."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from minigraph.autograd import is_training
from minigraph.errors import ChildError, ShapeError, UnsupportedError
from minigraph.mode import here
from minigraph.random import generator

from .. import functional as F
from ..functional import check_rate
from .cell import RecurrentCell
from .checks import check_states, fits
from .steps import States, step_by_step


class SequentialRNNCell(RecurrentCell):
    """Cells one after the other: each takes the output of the one before it.

    Its states are those of the cells, in one list.
    """

    def __init__(self, *cells: RecurrentCell) -> None:
        super().__init__()
        self.cells: list[RecurrentCell] = []
        self.add(*cells)

    def add(self, *cells: RecurrentCell) -> SequentialRNNCell:
        """Put cells at the end."""
        for cell in cells:
            _check_cell(self, cell)
        self.cells = [*self.cells, *cells]
        return self

    def __len__(self) -> int:
        return len(self.cells)

    def __iter__(self) -> Iterator[RecurrentCell]:
        return iter(self.cells)

    def __getitem__(self, index: int) -> RecurrentCell:
        return self.cells[index]

    def state_info(self, batch_size: int = 0) -> list[dict[str, Any]]:
        return [info for cell in self.cells for info in cell.state_info(batch_size)]

    def begin_state(self, batch_size: int, **options: Any) -> list[Any]:
        return [state for cell in self.cells for state in cell.begin_state(batch_size, **options)]

    def _each(self, states: States) -> Iterator[tuple[RecurrentCell, States]]:
        """Each cell with its own states."""
        start = 0
        for cell in self.cells:
            count = len(cell.state_info())
            yield cell, tuple(states[start : start + count])
            start += count

    def forward(self, x: Any, states: Any) -> tuple[Any, list[Any]]:
        """One step of each cell; `states` is the list of all their states."""
        begin = check_states(self, states, self.state_info(x.shape[0]))
        end: list[Any] = []
        for cell, own in self._each(begin):
            x, after = cell(x, list(own))
            end += after
        return x, end

    def _unroll(
        self, inputs: Any, states: States, lengths: Any, reverse: bool
    ) -> tuple[Any, States]:
        end: list[Any] = []
        for cell, own in self._each(states):
            inputs, after = cell._unroll(inputs, own, lengths, reverse)
            end += after
        return inputs, tuple(end)


class BidirectionalCell(RecurrentCell):
    """Two cells over a sequence, one from its start and one from its end; `unroll` runs it.

    Their outputs are put side by side; the states are those of both, in one list.

    Args:
        l_cell: from the start.
        r_cell: from the end.
    """

    def __init__(self, l_cell: RecurrentCell, r_cell: RecurrentCell) -> None:
        super().__init__()
        _check_cell(self, l_cell)
        _check_cell(self, r_cell)
        self.l_cell = l_cell
        self.r_cell = r_cell

    def state_info(self, batch_size: int = 0) -> list[dict[str, Any]]:
        return [*self.l_cell.state_info(batch_size), *self.r_cell.state_info(batch_size)]

    def begin_state(self, batch_size: int, **options: Any) -> list[Any]:
        left = self.l_cell.begin_state(batch_size, **options)
        return [*left, *self.r_cell.begin_state(batch_size, **options)]

    def forward(self, x: Any, states: Any) -> tuple[Any, list[Any]]:
        """Refused: one step does not know the end of the sequence."""
        raise UnsupportedError(
            "a BidirectionalCell makes no single steps: one of its cells begins at the end",
            where=here(),
            instead="cell.unroll(length, inputs)",
        )

    def _unroll(
        self, inputs: Any, states: States, lengths: Any, reverse: bool
    ) -> tuple[Any, States]:
        count = len(self.l_cell.state_info())
        left, left_end = self.l_cell._unroll(inputs, states[:count], lengths, reverse)
        right, right_end = self.r_cell._unroll(inputs, states[count:], lengths, not reverse)
        return np.concatenate([left, right], axis=-1), (*left_end, *right_end)


class DropoutCell(RecurrentCell):
    """`nn.Dropout` as a cell without states, to stand between others.

    Args:
        rate: how likely an element is dropped while training.
    """

    def __init__(self, rate: float) -> None:
        super().__init__()
        check_rate(rate)
        self.rate = rate

    def state_info(self, batch_size: int = 0) -> list[dict[str, Any]]:
        return []

    def forward(self, x: Any, states: Any = ()) -> tuple[Any, list[Any]]:
        """What stays of x, and no states."""
        return F.dropout(x, self.rate), []

    def _unroll(
        self, inputs: Any, states: States, lengths: Any, reverse: bool
    ) -> tuple[Any, States]:
        return F.dropout(inputs, self.rate), ()

    def extra_repr(self) -> str:
        return f"{self.rate}"


class ModifierCell(RecurrentCell):
    """A cell that changes what another one computes, and has its states.

    Args:
        base_cell: the other one.
    """

    def __init__(self, base_cell: RecurrentCell) -> None:
        super().__init__()
        _check_cell(self, base_cell)
        self.base_cell = base_cell

    def state_info(self, batch_size: int = 0) -> list[dict[str, Any]]:
        return self.base_cell.state_info(batch_size)

    def begin_state(self, batch_size: int, **options: Any) -> list[Any]:
        return self.base_cell.begin_state(batch_size, **options)


class ResidualCell(ModifierCell):
    """The other cell's output plus its input, which has as many features."""

    def forward(self, x: Any, states: Any) -> tuple[Any, list[Any]]:
        output, states = self.base_cell(x, states)
        return self._added(output, x), states

    def _unroll(
        self, inputs: Any, states: States, lengths: Any, reverse: bool
    ) -> tuple[Any, States]:
        outputs, states = self.base_cell._unroll(inputs, states, lengths, reverse)
        if lengths is not None:
            inputs = F.sequence_mask(inputs, lengths, axis=0, batch_axis=1)
        return self._added(outputs, inputs), states

    def _added(self, output: Any, x: Any) -> Any:
        """The sum of what came out and what went in.

        Raises:
            ShapeError: they have another number of features.
        """
        if not fits(output.shape, x.shape):
            raise ShapeError(
                f"a ResidualCell adds its input of {x.shape[-1]} features to the output of its "
                f"{type(self.base_cell).__name__}, which has {output.shape[-1]}",
                where=here(),
                instead="a cell with as many hidden numbers as features go in",
            )
        return output + x


class ZoneoutCell(ModifierCell):
    """While training, elements of the other cell's states stay at random what they were.

    The output is the other cell's own (Gluon's `zoneout_outputs` would have to keep the last one).

    Args:
        base_cell: the other one.
        zoneout_states: how likely an element of a state stays.
    """

    def __init__(self, base_cell: RecurrentCell, zoneout_states: float = 0.0) -> None:
        super().__init__(base_cell)
        check_rate(zoneout_states, "the rate of a zoneout")
        self.zoneout_states = zoneout_states

    def _changing(self, states: States, *lengths: Any) -> States:
        """Where elements of the states change, drawn at random."""
        return tuple(
            generator().random((*lengths, *state.shape), dtype=np.float32) >= self.zoneout_states
            for state in states
        )

    def forward(self, x: Any, states: Any) -> tuple[Any, list[Any]]:
        """One step."""
        output, after = self.base_cell(x, states)
        if not is_training() or not self.zoneout_states:
            return output, after
        return output, list(map(np.where, self._changing(states), after, states))

    def _unroll(
        self, inputs: Any, states: States, lengths: Any, reverse: bool
    ) -> tuple[Any, States]:
        if not is_training() or not self.zoneout_states:
            return self.base_cell._unroll(inputs, states, lengths, reverse)
        self._complete(inputs, states)

        def step(states: States, x: Any, *changing: Any) -> tuple[Any, States]:
            output, after = self.base_cell(x, list(states))
            return output, tuple(map(np.where, changing, after, states))

        changing = self._changing(states, inputs.shape[0])  # all at once, outside of the loop
        return step_by_step(step, (inputs, *changing), states, lengths, reverse)

    def extra_repr(self) -> str:
        return f"zoneout_states={self.zoneout_states}"


def _check_cell(block: RecurrentCell, cell: Any) -> None:
    """What a cell is made of is a cell.

    Raises:
        ChildError: it is something else.
    """
    if not isinstance(cell, RecurrentCell):
        raise ChildError(
            f"{type(block).__name__} is made of cells, and is given a {type(cell).__name__}",
            where=here(),
            instead="nn.LSTMCell(...) and the like; layers such as nn.LSTM stack by num_layers=",
        )
