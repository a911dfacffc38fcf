"""Where arrays were written while something recorded needs their contents.

What a tape keeps is worth nothing once its memory has changed.  Each recording scope has a `Watch`,
which its steps hold for as long as they are needed; while there is any, writes into arrays are
noted: when, where in memory, and on which line.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from minigraph.ir import Loc
from minigraph.mode import here

Data = np.ndarray[Any, Any]

NUMBERS = itertools.count(1)
"""Recorded steps and writes in the order in which they happen."""

WATCHES: set[int] = set()
"""Who needs to know of writes; while it is empty nothing is noted."""

_WRITES: dict[int, Writes] = {}  # by the id of the ndarray that owns the memory
_PRUNED_ABOVE = 1024


class Watch:
    """Held by what needs to know of writes."""

    __slots__ = ()

    def __init__(self) -> None:
        WATCHES.add(id(self))

    def __del__(self, discard: Callable[[int], None] = WATCHES.discard) -> None:
        discard(id(self))  # bound early: at exit the names of the module may be gone


class Writes:
    """The writes into the memory of one ndarray, through any view.

    Attributes:
        owner: the ndarray.
        ranges: for each range of addresses its last write: number and place.
        adopted: recorded values were written.
    """

    __slots__ = ("adopted", "owner", "ranges")

    def __init__(self, owner: weakref.ref[Data]) -> None:
        self.owner = owner
        self.ranges: dict[tuple[int, int], tuple[int, Loc | None]] = {}
        self.adopted = False


def owner_of(data: Data) -> Data:
    """The ndarray whose memory a view looks into."""
    while isinstance(data.base, np.ndarray):
        data = data.base
    return data


def _writes(data: Data) -> Writes | None:
    owner = owner_of(data)
    found = _WRITES.get(id(owner))
    return found if found is not None and found.owner() is owner else None


def wrote(data: Data, index: Any = Ellipsis, *, adopted: bool = False) -> None:
    """Take note of a write into an array, if anything needs to know.

    Args:
        data: the array.
        index: where in it.
        adopted: what was written is recorded.
    """
    if not WATCHES:
        if _WRITES:
            _WRITES.clear()
        return
    found = _writes(data)
    if found is None:
        if len(_WRITES) > _PRUNED_ABOVE:
            for key in [key for key, writes in _WRITES.items() if writes.owner() is None]:
                del _WRITES[key]
        owner = owner_of(data)
        found = _WRITES[id(owner)] = Writes(weakref.ref(owner))
    found.adopted = found.adopted or adopted
    found.ranges[_bounds(_part(data, index))] = (next(NUMBERS), here())


def _part(data: Data, index: Any) -> Data:
    """The part of an array that is written under an index, if it is a view; else all of it."""
    if index is Ellipsis:
        return data
    items = index if type(index) is tuple else (index,)
    if not any(item is Ellipsis for item in items):
        items = (*items, Ellipsis)  # also one element is a view then
    try:
        part = data[items]
    except IndexError:
        return data  # the write itself will say so
    return part if np.may_share_memory(part, data) else data


def _bounds(data: Data) -> tuple[int, int]:
    """The lowest address of an array, and the one after its highest."""
    return np.lib.array_utils.byte_bounds(data)


def any_written() -> bool:
    """Some write is noted."""
    return bool(_WRITES)


def written(data: Data, since: int) -> tuple[int, Loc | None] | None:
    """The first write that is noted of an array's memory after a number, and its place."""
    found = _writes(data) if _WRITES else None
    if found is None:
        return None
    low, high = _bounds(data)
    hits = (
        write
        for (start, end), write in found.ranges.items()
        if write[0] > since and start < high and low < end
    )
    return min(hits, key=lambda write: write[0], default=None)


def is_adopted(data: Data) -> bool:
    """Recorded values were written into the memory that an array looks into."""
    found = _writes(data) if _WRITES else None
    return found is not None and found.adopted
