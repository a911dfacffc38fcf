"""Operands for the ops' own tests.

`op.sample(rng, dtype)` is a list of (inputs, attrs), most of them made by the op's own `bind`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Sample = tuple[list[Any], dict[str, Any]]

SPECIAL = (0.0, -0.0, 1.0, -1.0, 0.5, np.inf, -np.inf, np.nan)


def array(
    rng: np.random.Generator, dtype: np.dtype[Any], *shape: int, positive: bool = False
) -> np.ndarray[Any, Any]:
    """Small numbers, about half of them negative where the dtype has any: dtype[shape]."""
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(dtype)
    if dtype.kind in "iu":
        low = 1 if positive else 0 if dtype.kind == "u" else -9
        return rng.integers(low, 10, shape).astype(dtype)
    low = 0.1 if positive else -3.0
    found = rng.uniform(low, 3.0, shape)
    if dtype.kind == "c":
        return (found + 1j * rng.uniform(low, 3.0, shape)).astype(dtype)
    return found.astype(dtype)


def special(rng: np.random.Generator, dtype: np.dtype[Any], *shape: int) -> np.ndarray[Any, Any]:
    """Like `array`, with NaN, infinities and both zeros, or the extreme integers, among them."""
    found = array(rng, dtype, *shape)
    if dtype.kind in "iu":
        edges = [np.iinfo(dtype).min, np.iinfo(dtype).max, 0]
    else:
        edges = list(SPECIAL) if dtype.kind in "fc" else []
    if edges and found.size:
        places = rng.permutation(found.size)[: len(edges)]
        found.reshape(-1)[places] = np.asarray(edges[: len(places)]).astype(dtype)
    return found
