"""Ndarrays as eager arrays and back, at the border of the outermost block; nothing is copied."""

from __future__ import annotations

from typing import Any

import numpy as np

from minigraph.array import Array, wrap


def to_arrays(thing: Any) -> Any:
    """Ndarrays as arrays, in structures too."""
    kind = type(thing)
    if kind is np.ndarray:
        return wrap(thing)
    if kind is tuple or kind is list:
        return kind([to_arrays(item) for item in thing])
    if kind is dict:
        return {key: to_arrays(value) for key, value in thing.items()}
    return thing


def to_ndarrays(thing: Any) -> Any:
    """Arrays as ndarrays, in structures too."""
    kind = type(thing)
    if kind is Array:
        return thing.data_
    if kind is tuple or kind is list:
        return kind([to_ndarrays(item) for item in thing])
    if kind is dict:
        return {key: to_ndarrays(value) for key, value in thing.items()}
    return thing


def has_array(thing: Any) -> bool:
    """There is an array in the structure."""
    kind = type(thing)
    if kind is tuple or kind is list:
        return any(map(has_array, thing))
    if kind is dict:
        return any(map(has_array, thing.values()))
    return kind is Array
