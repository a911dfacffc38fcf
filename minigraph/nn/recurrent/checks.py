"""What recurrent layers and cells say of arguments that do not fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from minigraph.errors import ShapeError
from minigraph.mode import here
from minigraph.trace import check

from ..functional import may_equal


def fits(shape: Any, wanted: tuple[Any, ...]) -> bool:
    """A shape is the wanted one, as far as sizes are known."""
    return shape is not None and len(shape) == len(wanted) and all(map(may_equal, shape, wanted))


def check_lengths(lengths: Any, length: Any, batch: Any) -> None:
    """The lengths of the sequences of a batch, if they are given.

    Raises:
        ShapeError: they are not one integer for each sequence.
        ValueError: one is below 0 or above the length of the array.
    """
    if lengths is None:
        return
    shape = getattr(lengths, "shape", None)
    if not fits(shape, (batch,)) or lengths.dtype.kind not in "iuf":
        found = type(lengths).__name__ if shape is None else f"{lengths.dtype} of shape {shape}"
        raise ShapeError(
            f"a batch of {batch} sequences has as many lengths, and they are {found}",
            where=here(),
            instead="np.array([...]), one integer for each sequence",
        )
    inside = ((lengths >= 0) & (lengths <= length)).all()
    top = f" {length}" if type(length) is int else " the length of the array"
    check(inside, ValueError, f"the length of a sequence must be from 0 to{top}")


def check_states(block: Any, states: Any, infos: Sequence[Mapping[str, Any]]) -> tuple[Any, ...]:
    """States as they are given, in a list or one alone, if they fit.

    Raises:
        ShapeError: their number or a shape is another one.
    """
    given = tuple(states) if isinstance(states, list | tuple) else (states,)
    shapes = [getattr(state, "shape", None) for state in given]
    wanted = [info["shape"] for info in infos]
    if len(given) != len(wanted) or not all(map(fits, shapes, wanted)):
        raise ShapeError(
            f"the states of {type(block).__name__} are arrays of shape {_listed(wanted)}, and "
            f"given are {_listed(shapes)}",
            where=here(),
            instead="begin_state(batch_size), or what the last call returned",
        )
    return given


def _listed(shapes: Sequence[Any]) -> str:
    return ", ".join(map(str, shapes)) or "none"
