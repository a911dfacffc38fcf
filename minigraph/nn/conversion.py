"""Ndarrays as eager arrays and back, at the border of the outermost block.

No array is copied, and a structure without anything to convert stays the same object.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import is_
from typing import Any

import numpy as np

from minigraph.array import Array, wrap
from minigraph.ir import flatten, is_container, unflatten


def to_arrays(thing: Any) -> Any:
    """Ndarrays as arrays, in structures too."""
    if type(thing) is np.ndarray:
        return wrap(thing)
    return _mapped(to_arrays, thing)


def to_ndarrays(thing: Any) -> Any:
    """Arrays as ndarrays, in structures too."""
    if type(thing) is Array:
        return thing.data_
    return _mapped(to_ndarrays, thing)


def _mapped(function: Callable[[Any], Any], thing: Any) -> Any:
    """A structure with its children converted."""
    kind = type(thing)
    if kind is tuple or kind is list:
        children = [function(child) for child in thing]
        same = all(map(is_, children, thing))
        return thing if same else kind(children)
    if kind is dict:
        converted = {key: function(child) for key, child in thing.items()}
        return thing if all(map(is_, converted.values(), thing.values())) else converted
    if not is_container(thing):
        return thing
    children, tree = flatten(thing, lambda child: child is not thing)
    converted = [function(child) for child in children]
    return thing if all(map(is_, converted, children)) else unflatten(tree, iter(converted))
