"""What recurrent layers and cells say of arguments that do not fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from minigraph.errors import OptionError, ShapeError, unknown
from minigraph.mode import here
from minigraph.trace import NUMPY, check

from ..functional import may_equal

LAYOUTS = ("TNC", "NTC")
ACTIVATIONS = ("relu", "tanh")


def check_layout(layout: str) -> None:
    """The axes of sequences.

    Raises:
        OptionError: there is no such layout.
    """
    if layout not in LAYOUTS:
        raise unknown("layout", layout, LAYOUTS)


def check_activation(block: Any, activation: str) -> None:
    """What a plain network applies to its sums.

    Raises:
        OptionError: there is no such activation.
    """
    if activation not in ACTIVATIONS:
        raise unknown(f"activation of an {type(block).__name__}", activation, ACTIVATIONS)


def check_sizes(block: Any, **sizes: Any) -> None:
    """How many there are of something.

    Raises:
        OptionError: one is no whole number, or below 1.
    """
    for name, size in sizes.items():
        if not isinstance(size, int | np.integer) or size < 1:
            raise OptionError(
                f"{type(block).__name__} with {name}={size!r}",
                where=here(),
                instead="a whole number, at least 1",
            )


def check_features(block: Any, x: Any, weight: Any) -> None:
    """The last axis of an input, which meets a weight.

    Raises:
        UninitializedError: the weight has no values.
        ShapeError: it has another number of elements than the weight takes.
    """
    features = weight.data().shape[-1]
    if not may_equal(x.shape[-1], features):
        raise ShapeError(
            f"this {type(block).__name__} takes {features} features, and the input has "
            f"{x.shape[-1]}: its shape is {x.shape}",
            where=here(),
            instead="features in the last axis, as many as in the first call or input_size=",
        )


def fits(shape: Any, wanted: tuple[Any, ...]) -> bool:
    """A shape is the wanted one, as far as sizes are known."""
    return shape is not None and len(shape) == len(wanted) and all(map(may_equal, shape, wanted))


def checked_lengths(lengths: Any, length: Any, batch: Any) -> Any:
    """The lengths of the sequences of a batch as an array, if they are given.

    Raises:
        ShapeError: they are not one whole number for each sequence.
        ValueError: one is below 0 or above the length of the array, or no whole number.
    """
    if lengths is None:
        return None
    if isinstance(lengths, list | tuple):
        lengths = NUMPY.asarray(lengths)
    shape = getattr(lengths, "shape", None)
    if not fits(shape, (batch,)) or lengths.dtype.kind not in "iuf":
        found = type(lengths).__name__ if shape is None else f"{lengths.dtype} of shape {shape}"
        raise ShapeError(
            f"a batch of {batch!r} sequences has as many lengths, and they are {found}",
            where=here(),
            instead="one whole number for each sequence, in an array or a list",
        )
    inside = ((lengths >= 0) & (lengths <= length)).all()
    if lengths.dtype.kind == "f":  # as Gluon's data sets have them
        inside = inside & (lengths == np.floor(lengths)).all()
    rule = "the length of a sequence must be a whole number from 0 to "
    check(inside, ValueError, rule, length, ", and the lengths are ", lengths)
    return lengths


def check_states(block: Any, states: Any, infos: Sequence[Mapping[str, Any]]) -> tuple[Any, ...]:
    """States as they are given, in a list or one alone, if they fit.

    Raises:
        ShapeError: their number or a shape is another one.
    """
    given = tuple(states) if isinstance(states, list | tuple) else (states,)
    shapes = [getattr(state, "shape", None) for state in given]
    wanted = [info["shape"] for info in infos]
    if len(given) != len(wanted):
        name, count = type(block).__name__, len(wanted)
        names = " (h, c)" if getattr(block, "kind", "") == "lstm" else ""
        raise ShapeError(
            f"{name} has {count} state{'s'[: count != 1]}{names}, and given "
            f"{'is' if len(given) == 1 else 'are'} {len(given)}",
            where=here(),
            instead=f"a list of arrays of shape {_listed(wanted)}: begin_state(batch_size), or "
            "what the last call returned",
        )
    if not all(map(fits, shapes, wanted)):
        raise ShapeError(
            f"the states of {type(block).__name__} are arrays of shape {_listed(wanted)}, and "
            f"given are {_listed(shapes)}",
            where=here(),
            instead="begin_state(batch_size), or what the last call returned",
        )
    return given


def _listed(shapes: Sequence[Any]) -> str:
    return ", ".join(map(str, shapes)) or "none"
