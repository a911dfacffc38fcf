"""Noise that is there only while training."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from minigraph.autograd import is_training
from minigraph.errors import OptionError
from minigraph.ops import normalize_axis
from minigraph.random import generator


def dropout(
    x: Any, rate: float = 0.5, axes: Sequence[int] = (), training: bool | None = None
) -> Any:
    """While training: 0 with this probability, else x / (1 - rate).

    Args:
        x: any shape.
        rate: at least 0, below 1.
        axes: along these all elements are dropped or kept together.
        training: None: as `autograd.is_training()` says.

    Raises:
        OptionError: the rate is no such number.
    """
    check_rate(rate)
    training = is_training() if training is None else training
    if not training or rate == 0:
        return x
    together = {normalize_axis(axis, x.ndim) for axis in axes}
    sizes = [1 if axis in together else size for axis, size in enumerate(x.shape)]
    kept = generator().random(sizes, dtype=np.float32) >= rate
    return np.where(kept, x * (1 / (1 - rate)), 0)


def check_rate(rate: float, what: str = "the rate of a dropout") -> None:
    """How likely something is dropped, or kept as it was.

    Raises:
        OptionError: it is not at least 0 and below 1.
    """
    if not 0 <= rate < 1:
        raise OptionError(f"{what} must be at least 0 and below 1, not {rate!r}")
