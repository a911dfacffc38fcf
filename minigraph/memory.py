"""Which memory is recorded, and where it was written since.

A recorded array is worth nothing once its memory has changed.  Each recorded array holds the
`Memory` it looks into; every write looks here whether the memory is one of those.
"""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np

from minigraph.ir import Loc
from minigraph.mode import here


class Memory:
    """The memory of one ndarray and of all views of it, for as long as a recorded array needs it.

    Attributes:
        owner: the ndarray that all views look into.
        writes: lowest and highest address, and place, of each write since it is watched.
    """

    __slots__ = ("__weakref__", "owner", "writes")

    def __init__(self, owner: np.ndarray[Any, Any]) -> None:
        self.owner = owner
        self.writes: list[tuple[int, int, Loc | None]] = []

    def written(self, data: np.ndarray[Any, Any], since: int) -> tuple[int, int, Loc | None] | None:
        """The first write into an array's memory after the first `since` ones."""
        if len(self.writes) == since:
            return None
        low, high = bounds(data)
        hits = (write for write in self.writes[since:] if write[0] < high and low < write[1])
        return next(hits, None)


MEMORIES: weakref.WeakValueDictionary[int, Memory] = weakref.WeakValueDictionary()
"""Watched memory by the id of its owner."""

ADOPTED: weakref.WeakSet[Memory] = weakref.WeakSet()
"""Memory into which recorded values were written."""


def bounds(data: np.ndarray[Any, Any]) -> tuple[int, int]:
    """The lowest address of an array, and the one after the highest."""
    return np.lib.array_utils.byte_bounds(data)


def owner_of(data: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The ndarray whose memory a view looks into."""
    while isinstance(data.base, np.ndarray):
        data = data.base
    return data


def memory_of(data: np.ndarray[Any, Any]) -> Memory:
    """The memory of an array, watched from now on."""
    owner = owner_of(data)
    found = MEMORIES.get(id(owner))
    if found is None:
        found = MEMORIES[id(owner)] = Memory(owner)
    return found


def wrote(data: np.ndarray[Any, Any]) -> None:
    """Take note of a write."""
    memory = MEMORIES.get(id(owner_of(data)))
    if memory is not None:
        memory.writes.append((*bounds(data), here()))
