"""Keeping gradients small."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np


def global_norm(arrays: Iterable[Any]) -> Any:
    """The length of all arrays as one vector."""
    return np.sqrt(sum((x * x).sum() for x in arrays))


def clip_by_value(x: Any, limit: float) -> Any:
    """Each element between -limit and limit."""
    return np.clip(x, -limit, limit)


def clip_by_global_norm(arrays: Sequence[Any], limit: float) -> list[Any]:
    """The arrays times one factor, so that their `global_norm` is at most `limit`."""
    factor = clip_factor(global_norm(arrays), limit)
    return [x * factor for x in arrays]


def clip_factor(norm: Any, limit: float) -> Any:
    """What makes a norm at most `limit`, and leaves a smaller one as it is."""
    return limit / np.maximum(norm, limit)
